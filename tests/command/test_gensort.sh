#!/bin/bash
# Records of the sort benchmarks by the command: made, sorted, checked with valsort's figures. The checksums are gensort 1.5's.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

# says WORDS: the last report has such a line.
says() { grep -qxE "$1" "$work.out" || fail "no line '$1'"; }

# Each kind: the same bytes on any number of ranks, in order when sorted, with the checksum that it had.
made_and_sorted()
{
    local kind ranks sum
    for kind in "" "-a" "--skew" "-a --skew" "--first 18446744073709551610"; do
        # shellcheck disable=SC2086 # options
        ok 1 gen --format gensort $kind -n 10007 -o one.dat
        run 1 check --format gensort one.dat
        sum=$(grep '^checksum' "$work.out")
        [ "$code" = 1 ] || fail "gensort $kind: not in order, but code $code"
        for ranks in 2 3 5; do
            # shellcheck disable=SC2086
            ok "$ranks" gen --format gensort $kind -n 10007 -o some.dat
            cmp -s one.dat some.dat || fail "gensort $kind: other records on $ranks ranks"
            ok "$ranks" sort --format gensort some.dat -o sorted.dat --output-format gensort
            ok "$ranks" check --format gensort sorted.dat --summary "$ranks.sum"
            says "$sum"
            says 'records +10007 of 100 bytes, by keys of 10'
            says 'order +all records are in order'
        done
        cmp -s 2.sum 3.sum && cmp -s 3.sum 5.sum || fail "gensort $kind: summaries differ between ranks"
        [ "$(stat -c %s 2.sum)" = 280 ] || fail "a summary of $(stat -c %s 2.sum) bytes"
    done
}

# Vectors of gensort 1.5; tests/files/test_gensort.c has more.
known_checksums()
{
    ok 3 gen --format gensort -n 1000 -o known.dat
    run 3 check --format gensort known.dat --json
    json "r['checksum'] == '1ea6370b955' and r['records'] == 1000 and not r['sorted'] and r['unordered'] > 400"
    ok 2 gen --format gensort -n 20 --first 18446744073709551610 -o far.dat
    run 2 check --format gensort far.dat
    says 'checksum +c28274221'
}

# Two records that change places are found, and so is a byte of a payload.
damage_found()
{
    local sum
    {
        head -c 100000 sorted.dat
        tail -c +100101 sorted.dat | head -c 100
        tail -c +100001 sorted.dat | head -c 100
        tail -c +100201 sorted.dat
    } >swapped.dat
    run 3 check --format gensort swapped.dat
    [ "$code" = 1 ] && grep -q 'swapped.dat: 1 unordered records, the first is record 1001$' "$work.err" ||
        fail "two records that changed places"
    ok 2 check --format gensort sorted.dat
    sum=$(grep '^checksum' "$work.out")
    {
        head -c 50050 sorted.dat
        printf x
        tail -c +50052 sorted.dat
    } >flipped.dat
    ok 2 check --format gensort flipped.dat
    ! grep -qxF "$sum" "$work.out" || fail "a changed byte leaves the checksum"
}

refusals()
{
    head -c 1050 sorted.dat >partial.dat
    : >empty.dat
    ok 2 check --format gensort empty.dat
    says 'records +0 of 100 bytes, by keys of 10'
    refused 2 2 "partial.dat|1050" check --format gensort partial.dat
    refused 1 2 "100 bytes" check --format gensort --record 64 sorted.dat
    refused 1 2 "--format gensort" gen -n 10 -a -o x.raw
    refused 1 2 "--summary" check sorted.dat --record 100 --key @0:bytes10 --summary x.sum
    ok 1 plan --format gensort sorted.dat -n 4
    refused 2 2 "sorted.dat" check --format gensort sorted.dat --summary sorted.dat
    refused 2 3 "none/x.sum" check --format gensort sorted.dat --summary none/x.sum
    if [ "${HAS_FAULTS:-OFF}" = ON ]; then
        HYPERSORT_FAULT=changed:2 refused 3 3 "rank 2 on |sorted.dat: was changed" check --format gensort sorted.dat
    fi
}

# What check and gen have no use for is refused, and not passed over.
unused_options()
{
    refused 2 2 "own keys|--record 100" check --format gensort --key @0:bytes4 sorted.dat
    refused 1 2 "own keys" check --format gensort --key @0:bytes10:desc sorted.dat
    refused 1 2 "-r" check --format gensort -r sorted.dat
    refused 1 2 "--type" check --format gensort --type u64 sorted.dat
    refused 1 2 "--unique" check --format gensort --unique sorted.dat
    refused 2 2 "--summary and --against" check --format gensort sorted.dat --summary x.sum --against known.dat
    refused 2 2 "%r|one per rank" check --format gensort sorted.dat --summary x.%r.sum
    refused 2 2 "--key" gen --format gensort -n 10 --key @0:u64 -o x.dat
    refused 1 2 "--type" gen --format gensort -n 10 --type u64 -o x.dat
    refused 1 2 "--first" gen -n 10 --first 0 -o x.raw --type u64
    # With --against other keys are heeded.
    ok 2 sort --format gensort known.dat -o fallen.dat --key @0:bytes10:desc
    ok 2 check --format gensort fallen.dat --key @0:bytes10:desc --against known.dat
    run 2 check --format gensort fallen.dat --against known.dat
    [ "$code" = 1 ] || fail "descending records are in ascending order"
}

# A summary takes the place of another one when it is whole; of no records it is empty.
summaries()
{
    local site before
    : >empty.dat
    echo old >x.sum
    ok 3 check --format gensort sorted.dat --summary x.sum
    says 'summary +x.sum'
    cmp -s x.sum 5.sum || fail "another summary of the same records"
    if [ "${HAS_FAULTS:-OFF}" = ON ]; then
        for site in write commit; do
            before=$(contents)
            HYPERSORT_FAULT=$site:0 run 2 check --format gensort known.dat --summary x.sum
            [ "$code" = 3 ] && grep -q '^hypersort: .*x.sum: ' "$work.err" && [ ! -s "$work.out" ] ||
                fail "summary, $site fails: exit code $code"
            [ "$(contents)" = "$before" ] || fail "summary, $site fails: files were left or changed"
        done
    fi
    ok 2 check --format gensort empty.dat --summary x.sum
    says 'summary +x.sum, empty: of no records there is none'
    [ -e x.sum ] && [ ! -s x.sum ] || fail "the summary of no records is not empty"
}

# More on a rank than is read, written and looked at together.
many_records()
{
    ok 2 gen --format gensort -n 700000 -o many.dat
    ok 1 sort --format gensort many.dat -o x.dat --index i.npy --engine host --verify=reread
    ok 1 check --format gensort x.dat
    ok 1 check x.dat --record 100 --key @0:bytes10 --against many.dat
    ok 1 sort --format gensort many.dat -o y.dat --engine host --device-memory 16M --verify=reread
    cmp -s x.dat y.dat || fail "many records: others in two passes"
    rm many.dat x.dat y.dat i.npy
}

made_and_sorted
known_checksums
damage_found
refusals
unused_options
summaries
many_records
finish
