#!/bin/bash
# sort --unique, check --unique and select: drawn cases against NumPy (unique_numpy.py), damage that must be found, refusals.
# HYPERSORT_SEED gives the seed, UNIQUE_CASES another number of cases than 12.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
need_numpy

drawn_ones()
{
    PYTHONDONTWRITEBYTECODE=1 python_cases "$numpy" unique_numpy.py "${HYPERSORT_SEED:-$RANDOM}" "${UNIQUE_CASES:-12}"
}

make_inputs()
{
    "$numpy" - <<'PYTHON'
import numpy as np
rng = np.random.default_rng(5)
np.save("keys.npy", rng.integers(0, 50, 1000).astype("<u8"))
np.save("none.npy", np.zeros(0, "<f4"))
records = np.zeros(1000, [("a", "<u4"), ("b", "S12"), ("v", "<u2")])
records["a"], records["b"], records["v"] = rng.integers(0, 3, 1000), rng.choice([b"pear", b"fig", b"apple"], 1000), np.arange(1000)
np.save("records.npy", records)
PYTHON
}

reported()
{
    ok 3 sort keys.npy -o u.npy --unique --counts c.npy --json
    json "r['distinct'] == 50 and r['keys'] == 1000 and r['counts'] == 'c.npy' and r['verify']['unique_ok']"
    ok 2 check u.npy --unique --json
    json "r['unique'] and r['first_repeat'] is None and r['keys'] == 50 and r['sorted']"
    ok 2 check u.npy --unique --against u.npy
    ok 3 check u.npy --unique --counts c.npy --against keys.npy --json
    json "r['against']['same_keys'] and r['against']['keys'] == 1000 and r['keys'] == 50"
    "$numpy" -c 'import numpy as n; c = n.load("c.npy"); c[[7, 31]] += [1, -1]; n.save("c2.npy", c); c[3] = 0; n.save("c3.npy", c)'
    run 2 check u.npy --unique --counts c2.npy --against keys.npy
    [ "$code" = 1 ] && grep -q 'u.npy: does not hold the keys of keys.npy, as often as the counts say$' "$work.err" ||
        fail "other counts: exit code $code"
    refused 2 2 "c3.npy: entry 3 is 0, and no count" check u.npy --unique --counts c3.npy --against keys.npy
    refused 2 2 "c.npy: has 50 counts, and keys.npy has 1000 keys" check keys.npy --unique --counts c.npy --against u.npy
    refused 0 2 "--counts is for bare keys, with --against OTHER" check u.npy --unique --counts c.npy
    ok 3 sort records.npy -o r.npy --unique --key a,b:desc --json
    json "r['distinct'] == 9 and r['records'] == 1000 and r['counts'] is None and r['verify']['unique_ok']"
    ok 3 check r.npy --unique --key a,b:desc
    ok 3 sort records.npy -o r.npy --unique --key b --no-verify
    run 2 check r.npy --unique --key a --json
    [ "$code" = 1 ] || fail "records in another order: exit code $code"
    ok 1 sort records.npy -o s.npy --key b
    run 3 check s.npy --unique --key b --json
    [ "$code" = 1 ] && grep -q 's.npy: record 1 has the key of record 0 again$' "$work.err" || fail "records of equal keys"
    json "r['sorted'] and not r['unique'] and r['first_repeat'] == 1"
    ok 2 sort none.npy -o n.npy --unique --counts nc.npy
    [ "$(wc -c <n.npy)" = "$(wc -c <none.npy)" ] || fail "of no keys there is one"
    ok 2 select keys.npy --at 0,-1,50% --json
    json "[s['position'] for s in r['selected']] == [0, 999, 499] and r['selected'][0]['key'] == '0' and r['keys'] == 1000"
    json "[s['at'] for s in r['selected']] == ['0', '-1', '50%'] and r['selected'][1]['key'] == '49'"
    # 999 times these are just below 500, and just above.
    ok 2 select keys.npy --at 50.05005005005005%,50.05005005005006%,99.999999999999999%,100.000%,.1% --json
    json "[s['position'] for s in r['selected']] == [499, 500, 998, 999, 0]"
    printf '%b' '\5\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0' '\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >wide.raw
    ok 2 select wide.raw --type u128 --at 0,1
    [ "$(cat "$work.out")" = $'0 7\n1 18446744073709551621' ] || fail "keys of 16 bytes"
    refused 0 2 "wide.raw: a raw file does not say what type its keys have: add --type" select wide.raw --at 0
    rm wide.raw
    ok 0 select keys.npy -r --at 0 --json
    json "r['order'] == 'descending' and r['selected'][0]['key'] == '49'"
    ok 2 select records.npy --key b:desc,v --at 0,-1 --json
    json "r['type'] == 'record' and r['order'] is None and r['key'] == 'b:desc,v' and r['records'] == 1000"
    json "[s['key'][0] for s in r['selected']] == ['pear', 'apple'] and len(r['selected'][0]['key']) == 2"
    ok 1 gen -n 500 --format gensort --ascii -o lines.txt
    ok 3 select lines.txt --format gensort --at 0,-1
    "$numpy" - <<'PYTHON' >lines.keys
import numpy as np

keys = np.sort(np.fromfile("lines.txt", "S100").astype("S10"))
for place in 0, 499:
    print(place, keys[place].decode().replace("\\", r"\x5c").replace(" ", r"\x20"))
PYTHON
    [ "$(cat "$work.out")" = "$(cat lines.keys)" ] || fail "the first and the last of gensort's keys"
    rm lines.txt
    ok 0 select keys.npy --at "$(printf '7,%.0s' {1..1023})7"
    [ "$(sort "$work.out" | uniq -c | xargs)" = "1024 $(head -n 1 "$work.out")" ] || fail "1024 places"
    # With little memory the file is read several times.
    ok 2 select keys.npy --at 0,-1,50% --json
    json "r['readings'] == 1"
    ok 2 select keys.npy --at 0,-1,50% -S 1K --json
    json "r['readings'] > 1 and [s['key'] for s in r['selected']][:2] == ['0', '49'] and r['type'] == 'u64'"
    ok 1 select keys.npy --at "$(printf '7,%.0s' {1..1023})-1" -S 1
    ok 2 select records.npy --key b:desc,v --at 0,-1 -S 100 --json
    json "r['readings'] > 1 and [s['key'][0] for s in r['selected']] == ['pear', 'apple']"
    refused 0 2 "--memory: 'much' is not a size, such as 8G" select keys.npy --at 0 -S much
    printf 'abbc' >border.raw
    # Keys that are counted, and that no exchange moves.
    ok 2 sort border.raw --type u8 -o u.raw --unique --json
    json "r['distinct'] == 3 and r['exchange'] == 'none'"
    # Out of order equal keys may lie apart, and nothing is said of them; of neighbours it is.
    printf 'aba' >apart.raw
    printf 'baa' >beside.raw
    local words
    for words in "--type u8" "--key @0:bytes1 --record 1"; do
        # shellcheck disable=SC2086  # words
        run 2 check apart.raw --unique $words --json
        json "not r['sorted'] and r['unique'] is None and r['first_repeat'] is None"
        # shellcheck disable=SC2086  # words
        run 0 check apart.raw --unique $words
        [ "$code" = 1 ] && grep -q '^unique  *not known' "$work.out" || fail "equal keys that lie apart: exit code $code"
        # shellcheck disable=SC2086  # words
        run 2 check beside.raw --unique $words --json
        json "not r['sorted'] and r['unique'] is False and r['first_repeat'] == 2"
    done
    # The second of two equal keys on another rank than the first.
    run 2 check border.raw --unique --key @0:bytes1 --record 1
    [ "$code" = 1 ] && grep -q 'border.raw: record 2 has the key of record 1 again$' "$work.err" ||
        fail "records of equal keys on two ranks: exit code $code"
    rm -f u.npy c.npy c2.npy c3.npy r.npy s.npy n.npy nc.npy border.raw u.raw apart.raw beside.raw
}

# More keys with counts than are looked at together.
many_counts()
{
    "$numpy" -c 'import numpy as n; n.save("many.npy", n.zeros(2**22 + 1, "u1")); n.save("ones.npy", n.ones(2**22 + 1, "<i8"))'
    run 0 check many.npy --unique --counts ones.npy --against many.npy --trace trace.json
    [ "$code" = 1 ] && [ "$(grep -o '"look at keys"' trace.json | wc -l)" = 4 ] || fail "many counts: exit code $code"
    rm many.npy ones.npy trace.json
}

# A library that is wrong (broken_elements.c) must be found out, and leave nothing behind.
verified()
{
    local HYPERSORT=$BUILD/tests/hypersort_broken damage before
    before=$(contents)
    for damage in count head least; do
        BROKEN_ELEMENTS=$damage run 3 sort keys.npy -o x.npy --unique --counts y.npy
        [ "$code" = 1 ] && grep -q 'keys.npy: what is kept is not one key of each key; nothing was written$' "$work.err" &&
            [ "$(contents)" = "$before" ] || fail "--unique that does '$damage': exit code $code"
        grep -q '^verified .*NOT ONE OF EACH KEY' "$work.out" || fail "--unique that does '$damage': the report does not say so"
    done
    BROKEN_SORT=swap run 3 sort keys.npy -o x.npy --unique
    [ "$code" = 1 ] && [ "$(contents)" = "$before" ] || fail "--unique of a sort that swaps keys: exit code $code"
}

refusals()
{
    refused 0 2 "--counts without --unique" sort keys.npy -o x --counts y
    refused 3 2 "keys.npy: holds u64; counts are of <i8" check keys.npy --unique --counts keys.npy --against keys.npy
    refused 0 2 "records.npy: holds no numbers; counts are of <i8" check keys.npy --unique --counts records.npy --against keys.npy
    refused 0 2 "-o FILE is missing" sort keys.npy --unique --counts c.npy
    refused 3 2 "x.npy: is named for two outputs" sort keys.npy -o x.npy --unique --counts ./x.npy
    refused 3 2 "keys.npy: is the input" sort keys.npy -o x.npy --unique --counts keys.npy
    refused 0 3 "missing/c.npy: cannot create" sort keys.npy -o x.npy --unique --counts missing/c.npy
    refused 0 2 "counts its duplicates by itself" check keys.npy --format gensort --unique
    refused 0 2 "--at PLACE is missing" select keys.npy
    refused 0 2 "records.npy: has a structured dtype|sort, check, select and plan take it with --key" select records.npy --at 0
    refused 0 2 "-r is for bare keys: write KEY:desc" select records.npy --key a -r --at 0
    refused 0 2 "--record and --key need each other" select keys.npy --at 0 --record 8
    refused 2 2 "keys.npy: has plain keys: leave out --key" select keys.npy --key 0 --at 0
    refused 2 2 "records.npy: --key: the keys have 18 bytes together" select records.npy --key a,b,v --at 0
    local place
    for place in 1000 -1001 100.1% 1.2.3% 0,,1 1, % .% x 1e3 "$(printf %060d 5)" 33.3333333333333333%; do
        refused 0 2 "--at: '|is not a place of the 1000 keys of keys.npy; they are 0 to 999, -1 to -1000, 0% to 100% with up to 15 decimals" \
            select keys.npy --at "$place"
    done
    refused 2 2 "none.npy: has no keys to select from" select none.npy --at 0%
    refused 0 2 "--at: more than 1024 places" select keys.npy --at "$(printf '0,%.0s' {1..1024})0"
    if [ "${HAS_FAULTS:-OFF}" = ON ]; then
        local site rank
        for rank in 0 2; do
            for site in read write commit changed; do
                HYPERSORT_FAULT=$site:$rank refused 3 3 "rank $rank on " sort keys.npy -o x.npy --unique --counts y.npy
            done
            for site in read changed; do
                HYPERSORT_FAULT=$site:$rank refused 3 3 "rank $rank on " select keys.npy --at 5
                HYPERSORT_FAULT=$site:$rank refused 3 3 "rank $rank on " select records.npy --key b --at 5
                HYPERSORT_FAULT=$site:$rank:2 refused 3 3 "rank $rank on " select keys.npy --at 5 -S 1K
            done
        done
    fi
}

make_inputs
reported
many_counts
verified
refusals
rm -f ./*
drawn_ones
finish
