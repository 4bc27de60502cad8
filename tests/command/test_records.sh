#!/bin/bash
# Records, indices and values by the command: drawn ones against NumPy (records_numpy.py), what check finds in damaged ones,
# what is refused. HYPERSORT_SEED gives the seed, RECORD_CASES another number of cases than 28.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
need_numpy

drawn_ones()
{
    python_cases "$numpy" records_numpy.py "${HYPERSORT_SEED:-$RANDOM}" "${RECORD_CASES:-28}"
}

# What the cases below begin with.
make_inputs()
{
    "$numpy" -W ignore - <<'PYTHON'
import numpy as np
rng = np.random.default_rng(5)
dtype = np.dtype([("run", "<u4"), ("event", "<i8"), ("half", "<f2"), ("in", [("x", "<f4"), ("n", "S5")]), ("v", "<i4", (2, 3)),
                  ("wide", "S17"), ("k1", "<u8"), ("k2", "<u8"), ("k3", "u1")])
events = np.frombuffer(rng.bytes(1000 * dtype.itemsize), dtype).copy()
events["run"] = rng.integers(0, 9, 1000)
np.save("events.npy", events)
np.save("short.npy", events[:999])
np.save("other.npy", events[["run", "event"]].astype([("run", "<u4"), ("event", "<i8")]))
np.save("keys.npy", rng.integers(0, 50, 1000).astype("<u8"))
np.save("same.npy", np.zeros(100, "<i4"))
np.save("big.npy", np.arange(10, dtype=">u4"))
np.save("flat.npy", rng.integers(0, 50, (100, 3)).astype("<i4"))
np.save("fortran.npy", np.asfortranarray(np.zeros((4, 3))))
np.save("cube.npy", np.zeros((4, 3, 2), "<f4"))
np.save("rows.npy", np.zeros((4, 2), [("x", "<f4")]))
np.save("long.npy", np.zeros((2, 65537), "u1"))
np.save("none.npy", np.zeros((4, 0), "u1"))
np.save("objects.npy", np.array([(1, None)], [("a", "<u4"), ("b", "O")]), allow_pickle=True)
np.save("texts.npy", np.array([b"pear", b"fig", b"apple"]))
np.save("times.npy", np.array([("2020-01-02",), ("NaT",), ("1969-01-01",)], [("t", "<M8[D]")]))
np.save("index.npy", rng.permutation(1000).astype("<i8"))
many = rng.integers(0, 1000, 5000)
np.save("many.npy", many)
many[4999] = 1000
np.save("late.npy", many)
np.save("few.npy", np.array([5, 999, 0], "<i8"))
np.save("beyond.npy", np.array([0, 1000, 3], "<i8"))
np.save("below.npy", np.array([0, -1], "<i8"))
np.save("huge.npy", np.array([1 << 63], "<u8"))
np.save("narrow.npy", np.zeros(3, "<u4"))
np.save("named.npy", np.zeros(3, [("\N{GREEK SMALL LETTER ALPHA}", "<u4"), ("b", "<f4")]))
PYTHON
    ok 2 gen -n 1000 --record 24 --key @4:u64 -o records.bin
    head -c 23999 records.bin >cut.bin
}

made()
{
    ok 1 gen -n 1000 --record 24 --key @4:u64 -o again.bin
    cmp -s records.bin again.bin || fail "gen of records depends on the ranks"
    ok 3 gen -n 1000 --record 24 --key '@4:u64>' -o turned.bin
    ok 1 sort turned.bin --record 24 --key '@4:u64>' --index a.npy
    ok 2 sort records.bin --record 24 --key @4:u64 --index b.npy
    cmp -s a.npy b.npy || fail "gen of big-endian keys"
    ok 2 gen -n 500 --record 9 --key @1:u64 -o part.%r.bin
    ok 1 gen -n 500 --record 9 --key @1:u64 -o whole.bin
    cat part.0.bin part.1.bin | cmp -s - whole.bin || fail "gen of a file of records per rank"
    refused 1 2 "--record and --key need each other" gen -n 5 --record 24 -o x
    refused 1 2 "--record and --key need each other" gen -n 5 --key @0:u64 -o x
    refused 3 2 "'@20:u64' ends behind the record, which has 24 bytes" gen -n 5 --record 24 --key @20:u64 -o x
    refused 3 2 "gen makes the numbers of one field" gen -n 5 --record 24 --key @0:bytes4 -o x
    refused 3 2 "gen makes the numbers of one field" gen -n 5 --record 24 --key @0:u64:desc -o x
    refused 3 2 "--dist: 'gaus'" gen -n 5 --record 24 --key @0:u64 --dist gaus -o x
    rm -f again.bin turned.bin part.?.bin whole.bin a.npy b.npy
}

# Order, payload and multiset, as check finds them; and reports.
checked()
{
    ok 3 sort events.npy -o out.npy --key run,event:desc --index i.npy --json
    json "r['type'] == 'record' and r['records'] == 1000 and r['key'] == 'run,event:desc' and r['verify']['stable']"
    json "list(r['parts']) == ['h2d', 'local_sort', 'exchange', 'merge', 'd2h', 'gather'] and r['parts']['gather'] > 0"
    json "[r[name] for name in ('output', 'index', 'values_output')] == ['out.npy', 'i.npy', None]"
    json "r['moved_bytes'] > 0 and r['moved_bytes'] == sum(p['moved_bytes'] for p in r['paths'].values())"
    ok 2 check out.npy --key run,event:desc --against events.npy --json
    json "r['sorted'] and r['against']['same_records'] and r['element_bytes'] == 81 and r['bytes'] == 81000 and r['first_disorder'] is None"
    ok 2 check out.npy --key run
    "$numpy" - <<'PYTHON'
with open("out.npy", "rb") as file:
    data = file.read()
begin = len(data) - 81 * 1000
def save(name, changed):
    with open(name, "wb") as file:
        file.write(changed)
first, second = data[begin + 81 * 400:begin + 81 * 401], data[begin + 81 * 600:begin + 81 * 601]
save("swapped.npy", data[:begin + 81 * 400] + second + data[begin + 81 * 401:begin + 81 * 600] + first + data[begin + 81 * 601:])
flipped = bytearray(data)
flipped[begin + 81 * 999 + 80] ^= 1
save("flipped.npy", flipped)
PYTHON
    local ranks
    for ranks in 1 2 3 5; do
        run "$ranks" check swapped.npy --key run,event:desc --against events.npy
        [ "$code" = 1 ] && grep -q 'swapped.npy: not in order by run,event:desc: record 401 belongs before record 400$' "$work.err" ||
            fail "two records swapped, on $ranks ranks"
        run "$ranks" check flipped.npy --key run,event:desc --against events.npy
        [ "$code" = 1 ] && grep -q 'flipped.npy: does not hold the records of events.npy$' "$work.err" ||
            fail "a byte flipped, on $ranks ranks"
    done
    run 2 check events.npy --key run --against short.npy --json
    [ "$code" = 1 ] && json "not r['sorted'] and r['first_disorder']['position'] > 0 and not r['against']['same_records']"
    refused 2 2 "other.npy: has records of 12 bytes, and out.npy of 81" check out.npy --key run --against other.npy
    ok 0 sort keys.npy -r -o x.npy --values events.npy -O v.npy --json
    json "[r[name] for name in ('output', 'index', 'values', 'values_output')] == ['x.npy', None, 'events.npy', 'v.npy']"
    json "r['order'] == 'descending' and r['element_bytes'] == 8 and r['value_bytes'] == 81"
    ok 3 gather events.npy --by few.npy -o x.npy --json
    json "r['elements'] == 3 and r['element_bytes'] == 81 and r['by'] == 'few.npy'"
    ok 3 sort events.npy --key half:desc -o half.npy
    ok 2 check half.npy --key half:desc --against events.npy
    ok 3 sort times.npy --key t --index i.npy
    "$numpy" -c 'import numpy as n; assert list(n.load("i.npy")) == [1, 2, 0]' || fail "NaT is not first"
    ok 3 sort texts.npy --key 0:desc -o t.npy
    "$numpy" -c 'import numpy as n; assert list(n.load("t.npy")) == [b"pear", b"fig", b"apple"]' || fail "strings"
    ok 2 sort named.npy --key 'α' -o n.npy
    "$numpy" -c 'import numpy as n; assert n.load("n.npy").dtype == n.load("named.npy").dtype' || fail "a name in UTF-8"
    ok 2 sort flat.npy -o flat.raw --key 2
    ok 2 check flat.raw --record 12 --key @8:i32
    ok 2 sort flat.raw --record 12 --key @8:i32 -o flat2.npy # bytes of which nothing is known
    "$numpy" -c 'import numpy as n; assert n.load("flat2.npy").dtype == n.dtype("V12")' || fail "raw records in a .npy file"
    rm -f swapped.npy flipped.npy half.npy out.npy x.npy v.npy i.npy t.npy n.npy flat.raw flat2.npy
}

# A library that is wrong (broken_elements.c) must be found out, and leave nothing behind; also where nobody looks it does its work.
verified()
{
    local HYPERSORT=$BUILD/tests/hypersort_broken damage words before
    before=$(contents)
    while read -r damage words; do
        # shellcheck disable=SC2086  # words
        BROKEN_ELEMENTS=$damage run 3 sort $words -o x.npy
        [ "$code" = 1 ] && grep -q ': the sorted .* are .*; nothing was written$' "$work.err" && [ "$(contents)" = "$before" ] ||
            fail "a sort that does '$damage': exit code $code"
        grep -q '^verified .*NOT' "$work.out" || fail "a sort that does '$damage': the report does not say so"
        # shellcheck disable=SC2086
        BROKEN_ELEMENTS=$damage ok 0 sort $words -o x.npy --no-verify
        rm -f x.npy i.npy v.npy
    done <<'DAMAGE'
swap events.npy --key run
lose events.npy --key run
flip events.npy --key run
values keys.npy --values events.npy -O v.npy
index keys.npy --index i.npy
index index.npy --index i.npy
ties same.npy --index i.npy
DAMAGE
}

# The same of gather, also where the index names elements more than once.
gather_verified()
{
    local HYPERSORT=$BUILD/tests/hypersort_broken damage entry before
    before=$(contents)
    ok 3 gather events.npy --by index.npy -o x.npy --json --verify=reread
    json "r['verify'] == {'elements_ok': True} and r['moved_bytes'] > 0 and r['readings'] == 1"
    ok 3 gather events.npy --by many.npy -o y.npy -S 1 --json --verify=reread
    json "r['verify'] == {'elements_ok': True} and r['readings'] == 4"
    "$numpy" -c 'import numpy as n; assert n.load("y.npy").tobytes() == n.load("events.npy")[n.load("many.npy")].tobytes()' || fail "a gather by parts"
    ok 3 gather events.npy --by many.npy -o y.npy -S 1
    grep -q '^readings  *4, because memory holds one part of the result at a time$' "$work.out" || fail "the report does not say why it reads again"
    run 3 gather events.npy --by many.npy -o y.npy -S 1 --progress
    grep -q '  gather 100 % of 395.51 KiB' "$work.err" && ! grep -q '  read ' "$work.err" ||
        fail "--progress of a gather by parts: $(cat "$work.err")"
    rm y.npy
    for damage in carry spoil; do
        BROKEN_ELEMENTS=$damage run 3 gather events.npy --by many.npy -o y.npy -S 1
        [ "$code" = 1 ] && [ ! -e y.npy ] && grep -q ' has not brought element [0-9]*; nothing was written$' "$work.err" ||
            fail "a gather by parts that does '$damage': exit code $code"
        entry=$([ $damage = carry ] && echo 666 || echo 999) # of those of the last rank the first, or the last
        BROKEN_ELEMENTS=$damage run 3 gather events.npy --by keys.npy -o y.npy
        [ "$code" = 1 ] && grep -q 'events.npy: entry [0-9]* of keys.npy has not brought element [0-9]*; nothing was written$' "$work.err" && grep -q " entry $entry of " "$work.err" &&
            [ ! -e y.npy ] || fail "a gather that does '$damage': exit code $code"
        grep -q '^verified .*NOT' "$work.out" || fail "a gather that does '$damage': the report does not say so"
        BROKEN_ELEMENTS=$damage ok 2 gather events.npy --by keys.npy -o y.npy --no-verify
        rm -f y.npy
    done
    rm -f x.npy
    [ "$(contents)" = "$before" ] || fail "gathers have left or changed files"
}

# A gather that would read its elements hundreds of times says which memory would do, and that memory does.
gather_read_too_often()
{
    local enough
    "$numpy" -c 'import numpy as n; n.save("backwards.npy", n.arange(600000)[::-1])'
    refused 0 5 "backwards.npy: with 65.53 kB of memory on each rank its elements would be read |times: -S | would do" \
        gather backwards.npy --by backwards.npy -o forwards.npy -S 1
    enough=$(sed -n 's/.*: -S \([0-9]*[KM]\) would do$/\1/p' "$work.err")
    ok 1 gather backwards.npy --by backwards.npy -o forwards.npy -S "$enough" --json
    json "200 < r['readings'] <= 256"
    "$numpy" -c 'import numpy as n; assert (n.load("forwards.npy") == n.arange(600000)).all()' || fail "a gather by as little memory as will do"
    rm backwards.npy forwards.npy
}

# --verify=reread: what the outputs have is not what was written to them, of each kind of sort, and of gather.
read_back()
{
    local HYPERSORT=$BUILD/tests/hypersort_broken words line before
    before=$(contents)
    while IFS='|' read -r words line; do
        # shellcheck disable=SC2086  # words
        BROKEN_SORT=reread run 3 $words -o x.npy --verify=reread
        [ "$code" = 1 ] && grep -q "^hypersort: .*$line" "$work.err" && [ "$(contents)" = "$before" ] ||
            fail "$words, and another byte is read back: exit code $code"
        grep -qE '^verified .*(NOT|OTHER)' "$work.out" || fail "$words, and another byte is read back: the report does not say so"
    done <<'WAYS'
sort keys.npy|keys.npy: the sorted keys are not those of the file; x.npy was not written$
sort keys.npy --values events.npy -O v.npy|x.npy: what is read back is not what was written$
sort keys.npy --index i.npy --runs 3|x.npy: what is read back is not what was written$
sort events.npy --key run --runs 3|events.npy: the sorted records are .*; nothing was written$
gather events.npy --by index.npy|x.npy: what is read back is not what was written$
gather events.npy --by many.npy -S 1|x.npy: what is read back is not what was written$
WAYS
    BROKEN_FILE=v.npy BROKEN_SORT=reread run 3 sort keys.npy -o x.npy --values events.npy -O v.npy --verify=reread
    [ "$code" = 1 ] && grep -q ': v.npy: what is read back is not what was written$' "$work.err" && [ "$(contents)" = "$before" ] ||
        fail "another byte of the second output is read back: exit code $code"
}

bad_keys()
{
    local none
    refused 0 2 "events.npy: has a structured dtype|--key" sort events.npy -o x
    refused 0 2 "events.npy: has no field 'none'; its fields are run, event, half, in, v, wide" sort events.npy -o x --key run,none
    refused 0 2 "has no field 'in.y'; those of in are x, n" sort events.npy -o x --key in.y
    refused 0 2 "field 'in' is a structure of x, n" sort events.npy -o x --key in
    refused 0 2 "field 'v' is an array" sort events.npy -o x --key v
    refused 3 2 "field 'v[1]' is an array" sort events.npy -o x --key 'v[1]'
    refused 0 2 "a number in brackets from 0 to 2" sort events.npy -o x --key 'v[1][3]'
    refused 0 2 "a number in brackets from 0 to 1" sort events.npy -o x --key 'v[x]'
    refused 0 2 "events.npy: field 'wide' has dtype '|S17', which is not a key" sort events.npy -o x --key wide
    refused 0 2 "the keys have 17 bytes together; at most 16 are allowed" sort events.npy -o x --key k1,k2,k3
    refused 3 2 "more than 8 keys" sort events.npy -o x --key k3,k3,k3,k3,k3,k3,k3,k3,k3
    refused 0 2 "a key is too long" sort events.npy -o x --key "$(printf %0256d 0)"
    for none in "" "run," ",run"; do
        [ -z "$none" ] || refused 1 2 "a key is empty" sort events.npy -o x --key "$none"
    done
    refused 0 2 "--key: '' cannot be KEY" sort events.npy -o x --key ""
    refused 0 2 "has no field 'run:down'; its fields are |; descending is NAME:desc" sort events.npy -o x --key run:down
    refused 0 2 "has no field '-event'; its fields are |; descending is NAME:desc" sort events.npy -o x --key run,-event
    { npy 1 "{'descr': [('t:desc', '<u4')], 'fortran_order': False, 'shape': (2,), }"; printf '\2\0\0\0\1\0\0\0'; } >names.npy
    refused 0 2 "has no field 't'|with an order behind it, as NAME:desc:asc" sort names.npy -o x --key t:desc
    ok 0 sort names.npy -o x.npy --key t:desc:asc
    [ "$(tail -c 8 x.npy | od -An -tu4 -w8 | tr -s ' ')" = " 1 2" ] || fail "a field that is called t:desc"
    rm names.npy x.npy
    refused 0 2 "keys.npy: has plain keys" sort keys.npy -o x --key 0
    refused 0 2 "big.npy: has plain keys" check big.npy --key 0
    refused 0 2 "flat.npy: --key: '3' is not a column; they are 0 to 2" sort flat.npy -o x --key 3
    refused 0 2 "flat.npy: --key: 'x' is not a column" sort flat.npy -o x --key x
    refused 0 2 "flat.npy: has 2 dimensions|--key COLUMN" sort flat.npy -o x
    refused 3 2 "fortran.npy: has 2 dimensions in Fortran order" sort fortran.npy -o x --key 0
    refused 0 2 "cube.npy: has 3 dimensions" sort cube.npy -o x --key 0
    refused 0 2 "cube.npy: has 3 dimensions" sort cube.npy -o x
    if grep -q -e --key "$work.err"; then fail "--key is said to sort rows of rows"; fi
    refused 0 2 "rows.npy: has structures in more than one dimension" sort rows.npy -o x --key x
    refused 0 2 "long.npy: has records of 65537 bytes" sort long.npy -o x --key 0
    refused 0 2 "none.npy: .npy header with elements of 0 bytes" sort none.npy -o x --key 0
    refused 0 2 "objects.npy: dtype '|O' has Python objects" sort objects.npy -o x --key a
    refused 3 2 "other.npy: has another dtype or shape than events.npy" sort events.npy other.npy -o x --key run
}

bad_raw()
{
    local key
    refused 0 2 "cut.bin: 23999 bytes are not a whole number of records of 24 bytes" sort cut.bin -o x --record 24 --key @0:u64
    refused 0 2 "records.bin: a raw file does not say how long its records are: add --record" sort records.bin -o x --key @0:u64
    refused 0 2 "events.npy: --record is of raw files" sort events.npy -o x --record 24 --key run
    refused 0 2 "--record and --key need each other" sort records.bin -o x --record 24
    refused 0 2 "--record: more than 65536 bytes" sort records.bin -o x --record 65537 --key @0:u64
    for key in 0:u64 @0 @x:u64 @0:u24 @0:bytes0 @0:bytes17 @0:bytes4\> @:u64 @-1:u64 run @0:u64:down; do
        refused 0 2 "records.bin: --key: '|is not a key of a raw record" sort records.bin -o x --record 24 --key "$key"
    done
    refused 0 2 "'@17:u64' ends behind the record, which has 24 bytes" sort records.bin -o x --record 24 --key @17:u64
    refused 0 2 "'@65536:u32' ends behind" sort records.bin -o x --record 24 --key @65536:u32
    refused 0 2 "-r is for bare keys: write KEY:desc" sort events.npy -o x --key run -r
    refused 0 2 "--type is for bare keys" sort events.npy -o x --key run --type u32
}

bad_outputs()
{
    refused 0 2 "short.npy: has 999 elements, and keys.npy has 1000" sort keys.npy -o x --values short.npy -O y
    refused 0 2 "keys.npy: has 1000 elements, and short.npy has 999" sort short.npy -o x --key run --values keys.npy -O y
    refused 0 2 "short.npy: has 999 elements, and keys.npy has 1000" plan keys.npy -n 2 --values short.npy
    refused 0 2 "--values and -O need each other" sort keys.npy -o x --values events.npy
    refused 0 2 "--values and -O need each other" sort keys.npy -o x -O y
    refused 0 2 "long.npy: has elements of 65537 bytes; 65536 can be moved" sort below.npy -o x --values long.npy -O y
    refused 0 2 "--value-bytes: more than 65536 bytes" sort keys.npy -o x --values records.bin -O y --value-bytes 65537
    refused 0 2 "--value-bytes without --values" sort keys.npy -o x --value-bytes 24
    refused 0 2 "records.bin: a raw file does not say how long its records are: add --value-bytes" \
        sort keys.npy -o x --values records.bin -O y
    refused 3 2 "events.npy: --value-bytes is of raw files" sort keys.npy -o x --values events.npy -O y --value-bytes 24
    refused 0 2 "-o FILE is missing" sort keys.npy
    refused 0 2 "x.npy: is named for two outputs" sort keys.npy -o x.npy --index ./x.npy
    refused 3 2 "rank 1 on |x.1: is named for two outputs" sort keys.npy -o x.%r --index x.1
    refused 3 2 "its outputs and those of another rank are to be one file" sort keys.npy -o x%r1 --index x0%r
    refused 2 2 "its outputs and those of another rank are to be one file" sort keys.npy -o x%r1 --index x0%r --runs 2
    refused 0 2 "keys.npy: is the input" sort keys.npy --index keys.npy
    refused 0 2 "events.npy: is the input" sort keys.npy --values events.npy -O events.npy
    refused 0 3 "none/i.npy: cannot create" sort keys.npy -o x.npy --index none/i.npy
    refused 0 2 "i.h5: '.h5' files are not known here" sort keys.npy --index i.h5
    refused 0 2 "beyond.npy: entry 1 is 1000, but events.npy has 1000 elements" gather events.npy --by beyond.npy -o x
    refused 3 2 "below.npy: entry 1 is -1, but" gather events.npy --by below.npy -o x
    refused 0 2 "huge.npy: entry 0 is 9223372036854775808, but" gather events.npy --by huge.npy -o x
    refused 0 2 "narrow.npy: holds u32; an index is of <i8 or <u8" gather events.npy --by narrow.npy -o x
    refused 3 2 "late.npy: entry 4999 is 1000, but events.npy has 1000 elements" gather events.npy --by late.npy -o x -S 1
    refused 0 2 "--memory: 'much' is not a size, such as 8G" gather events.npy --by index.npy -o x -S much
    refused 2 2 "flat.npy: has 2 dimensions; an index has one" gather events.npy --by flat.npy -o x
    refused 0 2 "events.npy: holds no numbers; an index is of <i8 or <u8" gather index.npy --by events.npy -o x
    refused 0 2 "flat.npy: has 2 dimensions" gather events.npy --by flat.npy -o x
    refused 0 2 "index.npy: is the input" gather events.npy --by index.npy -o index.npy
    refused 0 2 "--by INDEX is missing" gather events.npy -o x
    refused 0 2 "-o FILE is missing" gather events.npy --by index.npy
    refused 0 2 "long.npy: has elements of 65537 bytes" gather long.npy --by index.npy -o x
    if [ "${HAS_FAULTS:-OFF}" = ON ]; then
        local site rank
        for rank in 0 2; do
            for site in read write commit changed; do
                HYPERSORT_FAULT=$site:$rank refused 3 3 "rank $rank on " sort events.npy -o x.npy --key run --index y.npy
            done
            for site in read:$rank write:$rank commit:$rank changed:$rank changed:$rank:2; do # first the index, then the elements
                HYPERSORT_FAULT=$site refused 3 3 "rank $rank on " gather events.npy --by index.npy -o x.npy
            done
            HYPERSORT_FAULT=alloc:$rank:7 refused 3 5 "rank $rank on |events.npy: no memory for " gather events.npy --by index.npy -o x.npy
            for site in read:$rank:6 write:$rank:2 changed:$rank:6; do # in the second part
                HYPERSORT_FAULT=$site refused 3 3 "rank $rank on " gather events.npy --by many.npy -o x.npy -S 1
            done
            HYPERSORT_FAULT=changed:$rank refused 3 3 "rank $rank on |events.npy: was changed" check events.npy --key run
        done
        several_outputs
    fi
}

# A signal between two outputs leaves neither, nor does a name that cannot be given; what was there before is there again.
several_outputs()
{
    local before i
    before=$(contents)
    HYPERSORT_FAULT=term:0:2 patient run 3 sort events.npy -o x.npy --key run --index y.npy
    for ((i = 0; i < 1200; i++)); do # mpirun may be gone before the last of its processes: a minute is the guard
        compgen -G '*.part' >/dev/null || break
        sleep 0.05
    done
    [ "$code" != 0 ] && [ "$(contents)" = "$before" ] || fail "told to stop between two outputs: files were left or changed"
    HYPERSORT_FAULT=commit:0:4 refused 3 3 "y.npy: cannot be given its name" sort events.npy -o x.npy --key run --index y.npy
    echo old >x.npy
    HYPERSORT_FAULT=commit:0:4 refused 3 3 "y.npy: cannot be given its name" sort events.npy -o x.npy --key run --index y.npy
    rm -f x.npy
    HYPERSORT_FAULT=commit:2:4 refused 3 3 "y.2.npy: cannot be given its name" \
        sort events.npy -o x.%r.npy --key run --index y.%r.npy
    : >y.1.npy.hypersort-1-2.part
    run 3 sort events.npy -o x.%r.npy --key run --index y.%r.npy
    [ "$code" = 0 ] && grep -q 'y.1.npy.hypersort-1-2.part was left by a run that was killed' "$work.err" ||
        fail "what a killed run has left of the file of rank 1 is not named"
    : >y.2.npy.hypersort-1-2.part
    run 3 sort events.npy -o x.%r.npy --key run --index y.%r.npy
    [ "$code" = 0 ] && grep -q 'y.1.npy.hypersort-1-2.part, and 1 of other ranks, was left' "$work.err" ||
        fail "what a killed run has left of the files of two ranks is not named"
    rm -f x.?.npy y.?.npy y.?.npy.hypersort-1-2.part
}

make_inputs
run_parts made checked verified gather_verified gather_read_too_often read_back bad_keys bad_raw bad_outputs
rm -f ./*
drawn_ones
finish
