#!/bin/bash
# hypersort sort --device-memory: keys that do not fit are sorted in two passes, into the same file as in memory, by any
# number of ranks; the report and plan say so; too little memory is code 5 and one line; a failed rank leaves nothing. The
# same for records, values and indices.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

# has WORDS: the last run printed them.
has() { grep -qF -- "$1" "$work.out" || fail "stdout lacks '$1'"; }
lacks() { ! grep -qF -- "$1" "$work.out" || fail "stdout has '$1'"; }

# The passes of what flows stand beside reading and writing, which are parts of them; what sorts in memory has its parts below it.
beside()
{
    grep -q '^local_sort ' "$work.out" && grep -q '^merge ' "$work.out" && ! grep -qE '^(sort|  local_sort|  merge) ' "$work.out" ||
        fail "the phases of what flows"
}
below()
{
    grep -q '^sort ' "$work.out" && grep -q '^  local_sort ' "$work.out" && ! grep -qE '^(local_sort|merge) ' "$work.out" ||
        fail "the phases of what sorts in memory"
}

few() { ok "$1" sort "$2" -o "$3" --engine host --threads 1 --device-memory 1M "${@:4}"; }

for type in $(drawn_half u32 f64); do
    ok 1 gen -n 700000 --type "$type" --dist nan -s 3 -o in.npy
    for order in "" -r; do
        # shellcheck disable=SC2086  # no option, or one
        ok 1 sort in.npy -o whole.npy --engine host $order
        lacks "passes "
        for ranks in 1 2 3; do
            # shellcheck disable=SC2086
            few "$ranks" in.npy out.npy --verify $order
            has "passes       2, as the keys do not fit into engine memory: "
            [ "$ranks" = 1 ] || has "exchange none"
            has "verified     in order, same count, same keys"
            cmp -s whole.npy out.npy || fail "$ranks ranks, $type $order: not the file of one pass"
        done
    done
done
few 5 in.npy out.npy --json
json "r['passes'] == 2 and r['runs'] >= 20 and r['segments'] >= 20 and r['exchange'] == 'none'"
run 2 sort in.npy -o out.npy --engine host --device-memory 1M --progress
# Two phases by turns would begin anew at each step, and no line would ever be due.
if [ "$code" != 0 ] || ! grep -q 's  read 100 %' "$work.err" || ! grep -q 's  write 100 %' "$work.err" ||
    grep -qE 'runs|segments' "$work.err"; then
    fail "sort --progress in two passes"
fi
ok 3 sort in.npy -o out.npy --engine host --device-memory 1G --json
json "r['passes'] == 1 and r['runs'] == 0 and r['segments'] == 0 and r['exchange'] != 'none'"
# What follows the sort may take another path: of each the report has its pairs of ranks.
for ranks in 2 3; do
    few "$ranks" in.npy out.npy --unique --json
    json "r['passes'] == 2 and r['paths']['staged']['moved_bytes'] > 0"
    json "all(p['pairs'] == $ranks * ($ranks - 1) / 2 for p in r['paths'].values())"
done
rm out.npy whole.npy

refused 1 5 "rank 0 on |two passes take at least " sort in.npy -o out.npy --engine host --device-memory 64K
refused 3 5 "rank 0 on |two passes take at least " sort in.npy -o out.npy --engine host --device-memory 64K
if [ "$HAS_FAULTS" = ON ]; then
    for rank in $(drawn_half 0 1 2); do
        for fault in copy:$rank:3 kernel:$rank:2 kernel:$rank:9 alloc:$rank:7; do
            export HYPERSORT_FAULT=$fault
            code=5
            [ "${fault%%:*}" = alloc ] || code=70
            refused 3 "$code" "rank $rank on " sort in.npy -o out.npy --engine host --threads 1 --device-memory 1M
            unset HYPERSORT_FAULT
        done
    done
fi

ok 1 plan in.npy -n 1 2 --device-memory 1M --json
json "all(p['passes'] == 2 and p['runs_per_rank'] > 1 and p['engine_bytes_per_rank'] <= 2**20 for p in r['plans'])"
json "r['bytes'] < r['plans'][0]['host_bytes_per_rank'] < r['bytes'] + 2**24 and r['plans'][0]['exchange'] == 'none'"
json "all(p['two_passes']['total_seconds'] > 0 for p in r['plans'])"
# On the host, where each thread has a workspace, plan promises as many passes as a sort takes, and refuses what a sort refuses. Slots leave a
# 64th of the memory, as those of a sort do.
for mega in 1 2 8; do
    run 1 sort in.npy -o out.npy --engine host --device-memory ${mega}M --json
    passes=$([ "$code" = 5 ] && echo 0 || grep -o '"passes": [12]' "$work.out" | cut -d ' ' -f 2)
    ok 1 plan in.npy -n 1 --engine host --device-memory ${mega}M --json
    json "all(p['passes'] == $passes for p in r['plans'])"
    json "all((p['engine_bytes_per_rank'] <= $mega * 2**20 * (63 / 64 if $passes == 2 else 1)) == ($passes > 0) for p in r['plans'])"
done
ok 1 plan in.npy -n 1 --device-memory 1M
has "two passes "
has "2 passes *"
ok 1 plan in.npy -n 1 --device-memory 100
has "does not fit: two passes take at least the "
ok 1 plan in.npy -n 2 --json
json "all(p['passes'] == 1 and p['host_bytes_per_rank'] == 0 and 'two_passes' not in p for p in r['plans'])"

# Records; those by few keys, so that ties go over every border; what travels with them; positions of them.
ok 1 gen -n 30000 --record 100 --key @3:u32 --dist zipf -s 4 -o in.bin
ok 1 gen -n 30000 --type u32 --dist zipf -s 5 -o keys.npy
little() { ok "$1" sort "${@:2}" --engine host --threads 1 --device-memory 800K --verify=reread; }
records=(in.bin --record 100 --key @3:u32,@90:bytes7:desc)
long=(in.bin --record 100 --key @3:u32,@50:bytes12)
few_keys=(in.bin --record 100 --key @6:u8)
ok 1 sort "${records[@]}" -o r.bin --index r.npy --values keys.npy -O rv.npy
ok 1 sort "${long[@]}" -o l.bin
ok 1 sort "${few_keys[@]}" -o f.bin
ok 1 sort keys.npy -r -o k.npy --values in.bin --value-bytes 100 -O v.bin
ok 1 sort keys.npy --index i.npy
for ranks in $(drawn_half 1 2 3 5); do
    little "$ranks" "${records[@]}" -o out
    has "passes       2, as the records do not fit into engine memory: "
    beside
    has "verified     in order, same count, same elements"
    cmp -s r.bin out || fail "$ranks ranks: other records than in one pass"
    little "$ranks" "${records[@]}" -o out --index index.npy --values keys.npy -O values.npy --json
    json "r['passes'] == 2 and r['runs'] > 5 and r['exchange'] == 'none' and r['verify']['stable']"
    { cmp -s r.bin out && cmp -s r.npy index.npy && cmp -s rv.npy values.npy; } ||
        fail "$ranks ranks: other records, values or positions than in one pass"
    little "$ranks" "${long[@]}" -o out
    has "passes       2"
    cmp -s l.bin out || fail "$ranks ranks: other records than in one pass, by keys of 16 bytes"
    little "$ranks" "${few_keys[@]}" -o out
    cmp -s f.bin out || fail "$ranks ranks: other records than in one pass, by few keys"
    little "$ranks" keys.npy -r -o out.npy --values in.bin --value-bytes 100 -O out
    has "passes       2, as the keys do not fit into engine memory: "
    { cmp -s k.npy out.npy && cmp -s v.bin out; } || fail "$ranks ranks: other pairs than in one pass"
    ok "$ranks" sort keys.npy --index index.npy --engine host --threads 1 --device-memory 600K
    has "passes       2"
    below
    cmp -s i.npy index.npy || fail "$ranks ranks: another index than in one pass"
done
ok 2 sort "${records[@]}" -o out --engine host --device-memory 1G --json
json "r['passes'] == 1 and r['runs'] == 0 and r['exchange'] != 'none'"
ok 2 sort "${records[@]}" -o out --engine host
below
ok 2 sort "${records[@]}" -o out --engine host --runs 5 --index index.npy
has "passes       2, by way of the disk: "
beside
refused 2 5 "elements: two passes take at least " sort "${records[@]}" -o out2 --engine host --device-memory 64K
# An output that is not what was read is found out on the way; also where the record is cut by two chunks. So is one that has something
# else when it is read back.
HYPERSORT=$BUILD/tests/hypersort_broken BROKEN_SORT=reread run 3 sort "${records[@]}" -o broken --engine host --threads 1 \
    --device-memory 800K --verify=reread
[ "$code" = 1 ] && [ ! -e broken ] || fail "another byte of records in two passes is read back: exit code $code"
for damage in swap lose flip; do
    HYPERSORT=$BUILD/tests/hypersort_broken BROKEN_ELEMENTS=$damage run 3 sort "${records[@]}" -o broken --engine host \
        --threads 1 --device-memory 800K
    [ "$code" = 1 ] && [ ! -e broken ] && grep -q ': the sorted records are .*; nothing was written$' "$work.err" ||
        fail "a sort that does '$damage': exit code $code"
done
if [ "$HAS_FAULTS" = ON ]; then
    for fault in copy:1:3 kernel:0:9 alloc:2:7 read:1:2 write:2:2 changed:0; do
        case $fault in
            alloc*) code=5 ;;
            read* | write* | changed*) code=3 ;;
            *) code=70 ;;
        esac
        rank=${fault#*:}
        HYPERSORT_FAULT=$fault refused 3 "$code" "rank ${rank%:*} on " sort "${records[@]}" -o out2 --engine host \
            --threads 1 --device-memory 800K
    done
fi

finish
