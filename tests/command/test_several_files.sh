#!/bin/bash
# Several inputs, sorted, checked and planned for as one array, and an output of a file per rank, by the command.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

# The keys of one file, and the same in pieces: raw ones of any length, one of them empty, and a .npy file.
make_inputs()
{
    ok 2 gen -n 30000 --type u32 --dist zipf -o all.raw
    head -c 4004 all.raw >a.raw
    tail -c +4005 all.raw | head -c 60000 >b.raw
    : >empty.raw
    tail -c +64005 all.raw >c.raw
    ok 1 gen -n 100 --type u32 -o d.npy
    ok 1 sort d.npy -o d.raw
    cat all.raw d.raw >whole.raw
    ok 1 sort whole.raw --type u32 -o wanted.raw
    head -c 50000 wanted.raw >first.raw
    tail -c +50001 wanted.raw >second.raw
}

several_sorted()
{
    local ranks way
    for ranks in 1 2 3 5; do
        for way in auto off; do
            ok "$ranks" sort a.raw b.raw empty.raw c.raw d.npy --type u32 -o out.raw --verify --direct-io "$way"
            cmp -s wanted.raw out.raw || fail "five inputs on $ranks ranks: other keys than one"
        done
        ok "$ranks" sort d.npy c.raw b.raw a.raw -o out.raw # the type is that of the first
        cmp -s wanted.raw out.raw || fail "four inputs on $ranks ranks: other keys than one"
    done
}

# Files that are open already count where more are opened: inputs before runs, inputs before those of --against. Each has a second descriptor
# for direct requests, where the file system has these.
many_descriptors()
{
    local direct=on against=() name
    mkdir many
    "$HYPERSORT" gen -n 100000 --type u64 -o many.all >"$work.out"
    split -b 2000 -d -a 3 many.all many/
    "$HYPERSORT" check many/000 --type u64 --direct-io on >"$work.out" 2>"$work.err"
    if grep -q "O_DIRECT" "$work.err"; then
        direct=auto
    fi
    for name in many/*; do against+=(--against "$name"); done
    (
        ulimit -Sn 1056
        ok 1 sort many/* --type u64 -o many.out --runs 150 --direct-io $direct
        run 1 check many/* --type u64 --direct-io $direct "${against[@]}"
        [ "$code" = 1 ] || fail "400 files against themselves: exit code $code"
        exit $failures
    ) || fail "many files with a limit that may be raised"
    ok 1 check many.out --type u64 --against many.all
    rm -r many many.all many.out
}

several_checked()
{
    ok 3 check first.raw second.raw --type u32 --against whole.raw
    run 3 check second.raw first.raw --type u32 --against whole.raw
    [ "$code" = 1 ] && grep -q 'second.raw and 1 more: not in ascending order: key 17600 ' "$work.err" ||
        fail "check of files in the wrong order"
    # So are files that others are held against.
    ok 3 check wanted.raw --type u32 --against a.raw --against b.raw --against empty.raw --against c.raw --against d.npy
    run 3 check wanted.raw --type u32 --against a.raw --against c.raw --json
    [ "$code" = 1 ] && grep -q 'wanted.raw: does not hold the keys of a.raw and 1 more' "$work.err" ||
        fail "check against two of five files"
    json "r['against']['file'] == 'a.raw and 1 more' and r['against']['files'] == ['a.raw', 'c.raw']"
    ok 2 sort first.raw second.raw --record 4 --key @0:u32:desc -o records.raw
    ok 2 check records.raw --record 4 --key @0:u32:desc --against second.raw --against first.raw
    run 2 check records.raw --record 4 --key @0:u32 --against second.raw --against a.raw
    [ "$code" = 1 ] && grep -q 'records.raw: not in order .* hold the records of second.raw and 1 more' "$work.err" ||
        fail "check of records against other files"
    ok 2 plan first.raw second.raw --type u32 -n 2 4
    grep -q '^input        first.raw and 1 more: 30100 u32 keys' "$work.out" || fail "plan of two files"
}

several_reported()
{
    ok 2 sort first.raw second.raw --type u32 -o out.raw --json
    json "r['input'] == 'first.raw and 1 more' and r['inputs'] == ['first.raw', 'second.raw'] and r['keys'] == 30100"
    ok 2 sort first.raw --type u32 -o out.raw --json
    json "r['input'] == 'first.raw' and r['inputs'] == ['first.raw']"
    ok 2 check first.raw second.raw --type u32 --json
    json "r['file'] == 'first.raw and 1 more' and r['files'] == ['first.raw', 'second.raw']"
    ok 2 plan first.raw second.raw --type u32 -n 4 8 --json
    json "r['inputs'] == ['first.raw', 'second.raw'] and [p['ranks'] for p in r['plans']] == [4, 8]"
}

several_refused()
{
    refused 3 2 "b.raw: is the input" sort a.raw b.raw --type u32 -o b.raw
    refused 3 2 "a.raw: a raw file does not say|--type" sort a.raw d.npy -o out
    refused 3 2 "d.npy: holds u32 keys, not u64" sort empty.raw d.npy --type u64 -o out
    refused 3 3 "none.raw: cannot open" sort a.raw none.raw --type u32 -o out
    refused 3 2 "'' cannot be IN" sort a.raw "" --type u32 -o out
    refused 3 2 "keys.csv: '.csv' files are not known here" sort a.raw keys.csv --type u32 -o out
    if [ "${HAS_FAULTS:-OFF}" = ON ]; then
        local rank
        for rank in 0 1 2; do
            HYPERSORT_FAULT=changed:$rank:2 refused 3 3 "rank $rank on |b.raw: was changed" sort a.raw b.raw --type u32 -o out
        done
    fi
}

# A file per rank: each whole by itself, together the result; others are not touched, and all appear or none.
file_per_rank()
{
    local ranks rank names
    echo other >part.9.npy
    for ranks in 1 2 3 5; do
        ok "$ranks" sort a.raw b.raw c.raw d.npy --type u32 -o part.%r.npy --verify
        names=
        for ((rank = 0; rank < ranks; rank++)); do
            [ "$ranks" != 3 ] || ok 1 check part.$rank.npy
            names="$names part.$rank.npy"
        done
        # shellcheck disable=SC2086  # a list of names
        ok 2 check $names --against wanted.raw --type u32
        # shellcheck disable=SC2086
        ok 3 sort $names -o out.raw
        cmp -s wanted.raw out.raw || fail "files of $ranks ranks: other keys"
    done
    [ "$(cat part.9.npy)" = other ] || fail "a file of no rank was touched"
    ok 2 gen -n 1000 --type u32 -o 'keys.%%r.%r.raw'
    ok 1 gen -n 1000 --type u32 -o 'keys.100%%.raw'
    cat keys.%r.0.raw keys.%r.1.raw | cmp -s - keys.100%.raw || fail "gen of a file per rank"
    refused 3 2 "rank 1 on |part.1.npy: is the input" sort part.1.npy -o part.%r.npy
    refused 3 3 "cannot create" sort d.npy -o none/part.%r.npy
    mkdir part.2.raw
    refused 3 3 "rank 2 on |part.2.raw: cannot create: Is a directory" sort d.npy -o part.%r.raw
    rmdir part.2.raw
    if [ "${HAS_FAULTS:-OFF}" = ON ]; then
        file_per_rank_faults
    fi
}

# mpirun may be gone before the last of its processes: a minute is the guard.
wait_for_removal()
{
    local i
    for ((i = 0; i < 1200; i++)); do
        compgen -G '*.part' >/dev/null || break
        sleep 0.05
    done
}

file_per_rank_faults()
{
    local rank site before
    for rank in 0 1 2; do
        for site in read write commit alloc; do
            HYPERSORT_FAULT=$site:$rank refused 3 "$([ $site = alloc ] && echo 5 || echo 3)" "rank $rank on " \
                sort d.npy -o part.%r.npy --engine host
        done
        before=$(contents)
        HYPERSORT_FAULT=kill:$rank patient run 3 sort d.npy -o part.%r.npy
        wait_for_removal
        [ "$(contents)" = "$before" ] || fail "rank $rank killed: files were left or changed"
        # The others remove what they have made, which takes the disk longer than a second at times.
        OMPI_MCA_odls_base_sigkill_timeout=5 HYPERSORT_FAULT=term:$rank run 3 sort d.npy -o part.%r.npy
        wait_for_removal
        [ "$code" != 0 ] && [ "$(contents)" = "$before" ] || fail "rank $rank told to stop: files were left or changed"
    done
    echo old >new.2.npy
    HYPERSORT_FAULT=commit:1:2 refused 3 3 "new.1.npy: cannot be given its name" sort d.npy -o new.%r.npy
    rm -f new.2.npy
}

make_inputs
run_parts several_sorted many_descriptors several_checked several_reported several_refused file_per_rank
finish
