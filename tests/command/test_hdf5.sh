#!/bin/bash
# HDF5 by the command: drawn groups and datasets against NumPy (hdf5_numpy.py), refusals, damaged files, full disks, and runs
# that fail, are stopped or killed. HYPERSORT_SEED gives the seed, HDF5_CASES another number of cases than 6.
# A build without HDF5 must refuse all of it.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
# shellcheck source=tests/support/held.sh
. "$SOURCE/tests/support/held.sh"

if "$HYPERSORT" version | grep -q ', no HDF5$'; then
    : >snap.h5
    refused 0 2 "snap.h5:/g: |without HDF5|-DHYPERSORT_HDF5=ON" sort snap.h5:/g -o out.h5:/g --key id
    refused 2 2 "snap.h5:/x: |without HDF5|-DHYPERSORT_HDF5=ON" check snap.h5:/x
    finish
    echo "skipped: the build has no HDF5, and says so; there is no parallel HDF5 of its MPI"
    exit 77
fi
need_h5py

drawn_groups()
{
    : >"$work.out" 2>"$work.err"
    # shellcheck disable=SC2086  # MPIRUN is words
    "$h5py" -W ignore "$SOURCE/tests/command/hdf5_numpy.py" "${HYPERSORT_SEED:-$RANDOM}" "${HDF5_CASES:-6}" "$HYPERSORT" \
        $MPIRUN --quiet -n RANKS || fail "the case above"
}

# What cannot be, in one line and before any work.
refusals()
{
    local key=(--key id) name
    ln -s snap.h5 link.h5
    refused 3 2 "snap.h5: is the input" sort snap.h5:/g -o snap.h5:/h "${key[@]}"
    refused 0 2 "link.h5: is the input" sort snap.h5:/g -o link.h5:/h "${key[@]}"
    rm link.h5
    refused 3 3 "gone.h5: cannot open: No such file" sort gone.h5:/g -o x.h5:/g "${key[@]}"
    refused 3 2 "none.h5: cannot be opened as an HDF5 file: |signature" sort none.h5:/g -o x.h5:/g "${key[@]}"
    refused 0 2 "empty.h5: cannot be opened as an HDF5 file" sort empty.h5:/g -o x.h5:/g "${key[@]}"
    refused 2 2 "cut.h5: cannot be opened as an HDF5 file: |truncated" check cut.h5:/g "${key[@]}"
    refused 2 3 "spoiled.h5:/g: dataset 'pos' cannot be read: HDF5: " sort spoiled.h5:/g -o x.h5:/g "${key[@]}"
    refused 3 3 "spoiled.h5:/g: dataset 'pos' cannot be read: HDF5: " check spoiled.h5:/g "${key[@]}"
    refused 0 2 "snap.h5:/h: there is no group or dataset" sort snap.h5:/h -o x.h5:/g "${key[@]}"
    refused 0 2 "snap.h5:/g: has no dataset 'nope', which --key names; it has |, sub/" sort snap.h5:/g -o x.h5:/g --key nope:desc
    refused 0 2 "snap.h5:/g: has no dataset with rows 'one'" sort snap.h5:/g -o x.h5:/g --key one
    for name in soft sub sub/nope sub/up/id; do
        refused 0 2 "snap.h5:/g: has no dataset '$name', which --key names" sort snap.h5:/g -o x.h5:/g --key $name
    done
    refused 0 2 "has no dataset with rows 'n', which --key names; none in it has rows" sort snap.h5:/Header -o x.h5:/g --key n
    refused 0 2 "snap.h5:/g: is a group: say by --key NAME|it has cube, " sort snap.h5:/g -o x.h5:/g
    refused 0 2 "snap.h5:/keys: has plain keys" sort snap.h5:/keys -o x.h5:/g --key 0
    for name in snap.h5:/g/kind other.h5:/twelve other.h5:/bf16; do
        refused 0 2 "$name: is not of plain numbers in one dimension: say by --key which" sort $name -o x.h5:/g
    done
    refused 0 2 "snap.h5:/scalar: has no dimension" sort snap.h5:/scalar -o x.h5:/g
    refused 0 2 "field 'pos' is an array: name one of it, as 'pos[0]'" sort snap.h5:/g -o x.h5:/g --key pos
    refused 0 2 "'pos[3]'|from 0 to 2" sort snap.h5:/g -o x.h5:/g --key 'pos[3]'
    refused 0 2 "field 'kind' is a structure of a, b" sort snap.h5:/g -o x.h5:/g --key kind
    refused 0 2 "19 bytes together; at most 16 are allowed" sort snap.h5:/g -o x.h5:/g --key 'id,pos[0],kind.b'
    refused 0 2 "'long' has numbers of a form that cannot be a key" sort snap.h5:/g -o x.h5:/g --key long
    refused 2 2 "dataset 'texts' has variable-length strings" sort snap.h5:/texts -o x.h5:/g --key 0
    refused 0 2 "dataset 'names' has variable-length strings, which cannot be moved" sort snap.h5:/bad -o x.h5:/g "${key[@]}"
    refused 0 2 "dataset 'to' has references, which cannot be moved" sort snap.h5:/refs -o x.h5:/g "${key[@]}"
    refused 0 2 "dataset 'row' has rows of 65537 bytes; 65536 can be moved" sort snap.h5:/wide -o x.h5:/g "${key[@]}"
    refused 0 2 "dataset 'v' is packed by scale-offset, which drops digits" sort snap.h5:/lossy -o x.h5:/g "${key[@]}"
    refused 0 2 "dataset 'v' is packed by filter 32000" sort snap.h5:/strange -o x.h5:/g "${key[@]}"
    refused 0 2 "other.h5:/g: dataset 'cube' cannot be opened" sort snap.h5:/g other.h5:/g -o x.h5:/g "${key[@]}"
    refused 0 2 "snap.h5:/g: dataset 'id' has another type or shape than in other.h5:/g" sort other.h5:/g snap.h5:/g -o x.h5:/g "${key[@]}"
    refused 2 2 "other.h5:/q: dataset 'x' has another type or shape than in other.h5:/p" sort other.h5:/p other.h5:/q -o x.h5:/g "${key[@]}"
    refused 0 2 "other.h5:/q: dataset 'x' has another type or shape than in other.h5:/p" check other.h5:/p "${key[@]}" --against other.h5:/q
    refused 0 2 "other.h5:/signed: dataset 'signed' has another type or shape" check other.h5:/g/id --against other.h5:/signed
    refused 0 2 "uneven.h5:/g: dataset 'pos' has 9 rows, and 'cube' 10" sort snap.h5:/g uneven.h5:/g -o x.h5:/g "${key[@]}"
    refused 2 2 "snap.h5:/g/id/x/y: '/g/id' exists and is not a group" sort other.h5:/p -o snap.h5:/g/id/x/y "${key[@]}"
    refused 0 2 "snap.h5:/g/soft/x: '/g/soft' exists and is not a group" sort other.h5:/signed -o snap.h5:/g/soft/x
    refused 2 2 "snap.h5:/: is the root group, not a dataset" sort other.h5:/signed -o snap.h5:/
    refused 0 2 "x.h5:/: is the root group, not a dataset" sort other.h5:/signed -o x.h5:/
    refused 0 2 "snap.h5:/keys: is a dataset, and the first one a group" sort snap.h5:/g snap.h5:/keys -o x.h5:/g "${key[@]}"
    refused 0 2 "snap.h5:/g: has dataset 'cube', and other.h5:/g has none" check snap.h5:/g "${key[@]}" --against other.h5:/g
}

# Words that do not go together; what other commands say.
usage()
{
    refused 0 2 "keys.npy: the others are HDF5|FILE:/PATH|.hdf5" sort keys.npy snap.h5:/keys -o x.h5:/g
    refused 0 2 "x.npy: the others are HDF5|FILE:/PATH" sort snap.h5:/keys -o x.npy
    refused 0 2 "keys.npy: the others are HDF5|FILE:/PATH" sort keys.npy -o x.h5:/g
    refused 0 2 "keys.npy: the others are HDF5|FILE:/PATH" check snap.h5:/keys --against keys.npy
    refused 0 2 "x.h5: name a group or a dataset of this HDF5 file, as x.h5:/NAME" sort snap.h5:/keys -o x.h5
    refused 0 2 "x.h5: name a group or a dataset of this HDF5 file, as x.h5:/NAME|--output-format raw" sort keys.npy -o x.h5
    refused 0 2 "x.%r.h5:/g: HDF5 is written to one file" sort snap.h5:/keys -o x.%r.h5:/g
    local words
    for words in "--index i.npy" "--unique" "--checkpoint c" "--type f64" "--format raw" "--output-format raw"; do
        # shellcheck disable=SC2086  # words
        refused 0 2 " is not for HDF5" sort snap.h5:/keys -o x.h5:/g $words
    done
    refused 0 2 "-r is for bare keys" sort snap.h5:/g -o x.h5:/g --key id -r
    refused 0 2 "snap.h5:/keys: only sort and check know HDF5" select snap.h5:/keys --at 0
    refused 0 2 "x.h5:/keys: only sort and check know HDF5" gen -n 5 -o x.h5:/keys
    refused 0 2 "snap.h5:/g/id: only sort and check know HDF5" sort keys.npy --values snap.h5:/g/id -O x.npy
    # A colon in other names is one of them.
    mkdir run:
    ok 0 gen -n 5 -o run:/keys.npy
    ok 0 sort run:/keys.npy -o run:/sorted.npy
    rm -r run:
}

# Reports, --no-clobber, what is there already, few rows for many ranks.
reports()
{
    local words progress
    ok 3 sort snap.h5:/g -o x.h5:/g --key id,pos[1]:desc --json
    json "r['records'] == 1000 and r['key'] == 'id,pos[1]:desc' and r['element_bytes'] == 95"
    json "r['datasets'] == ['cube', 'id', 'kind', 'long', 'pos', 'sub/more']"
    json "r['left'] == 'five (5 rows), one (no rows), soft (a link), sub/few (3 rows), sub/soft (a link), sub/type (a type), \
sub/up (a group around it), DIMENSION_LIST of cube (references), REFERENCE_LIST of id (references), reference of id (references), \
inner of kind (references), to of sub (references)'"
    json "r['inputs'] == ['snap.h5:/g'] and r['output'] == 'x.h5:/g' and r['verify']['stable'] and 'HDF5 ' in r['build']"
    json "[one['rank'] for one in r['per_rank']] == [0, 1, 2] and sum(one['moved_bytes'] for one in r['per_rank']) == r['moved_bytes'] > 0"
    json "all(max(one['phases'][p] for one in r['per_rank']) == r['phases'][p] > 0 for p in ('read', 'write', 'verify'))"
    ok 0 check x.h5:/g --key 'id,pos[1]:desc' --against snap.h5:/g --json
    json "r['sorted'] and r['against']['same_records'] and r['records'] == 1000 and r['trace'] is None"
    ok 2 check x.h5:/g --key 'id,pos[1]:desc' --against snap.h5:/g --trace trace.json --json
    json "r['trace']['spans'] > 20 and r['trace']['file'] == 'trace.json'"
    grep -q '"name": "look at rows"' trace.json || fail "the trace of check has no look at rows"
    refused 2 2 "snap.h5: is the input" check x.h5:/g --key id --against snap.h5:/g --trace snap.h5
    ok 3 sort snap.h5:/g -o traced.h5:/g --key id --trace trace.json --json
    json "r['trace']['spans'] > 50 and r['trace']['file'] == 'trace.json'"
    for words in read "look at rows" write commit; do
        [ "$(grep -o "\"name\": \"$words\"" trace.json | wc -l)" -ge 3 ] || fail "the trace has no '$words' of each rank"
    done
    refused 2 2 "traced.h5: is named for two outputs" sort snap.h5:/g -o traced.h5:/g --key id --trace traced.h5
    refused 0 2 "snap.h5: is the input" sort snap.h5:/g -o traced.h5:/g --key id --trace snap.h5
    rm traced.h5 trace.json
    refused 2 2 "x.h5: is there already, and --no-clobber keeps it" sort snap.h5:/keys -o x.h5:/k --no-clobber
    refused 2 2 "x.h5: is there already" sort snap.h5:/none -o x.h5:/k --no-clobber # before the input is looked at
    # Into the file beside what it has; once more, in place of what it had.
    ok 2 sort snap.h5:/keys -o x.h5:/deep/down -r --json
    json "r['order'] == 'descending' and r['keys'] == 1000"
    ok 2 sort snap.h5:/g -o x.h5:/g --key id -q
    ok 1 check x.h5:/deep/down -r --against snap.h5:/keys
    ok 3 check x.h5:/g --key id --against snap.h5:/g
    run 2 check snap.h5:/g --key id
    [ "$code" = 1 ] && grep -q 'snap.h5:/g: not in order by id: row [0-9]* belongs before row ' "$work.err" || fail "check of no order"
    run 2 check x.h5:/g --key id --unique
    [ "$code" = 1 ] && grep -q 'x.h5:/g: row [0-9]* has the key of row [0-9]* again' "$work.err" || fail "check --unique"
    "$h5py" -c 'import h5py; h5py.File("border.h5", "w")["id"] = [1, 2, 2, 3]'
    run 2 check border.h5:/id -r
    [ "$code" = 1 ] && grep -q 'border.h5:/id: not in order by value:desc: row 1 belongs before row 0$' "$work.err" || fail "check of no order"
    run 2 check border.h5:/id --unique
    [ "$code" = 1 ] && grep -q 'border.h5:/id: row 2 has the key of row 1 again' "$work.err" ||
        fail "rows of equal keys on two ranks: exit code $code"
    ok 0 sort snap.h5:/bad/id -o once.h5:/id -q
    ok 7 sort once.h5:/id -o few.h5:/id -q --verify=reread
    # The same command makes the same file on any number of ranks.
    while IFS='|' read -r words progress; do
        rm -f one.h5 five.h5
        # shellcheck disable=SC2086  # words
        ok 1 sort $words -o one.h5:/k -q
        sleep 1 # no time is told
        # shellcheck disable=SC2086  # words
        run 5 sort $words -o five.h5:/k -q --progress
        grep -q "carry 100 % of $progress" "$work.err" || fail "--progress of $words"
        cmp -s one.h5 five.h5 || fail "$words: the file depends on the number of ranks"
        # shellcheck disable=SC2086  # words
        ok 2 sort $words -o one.h5:/k -q
        cmp -s one.h5 five.h5 || fail "$words: a file with nothing else grows when it is written again"
    done <<'SORTS'
snap.h5:/keys|7.81 KiB
snap.h5:/same --key number|1.17 KiB
SORTS
    # What the output's file has besides is copied first, which is part of what writing takes.
    "$h5py" -c 'import h5py, numpy; h5py.File("much.h5", "w")["much"] = numpy.ones(1 << 23)'
    run 3 sort snap.h5:/g -o much.h5:/g --key id --trace trace.json --progress --json
    [ "$code" = 0 ] && grep -q '  copy 100 % of 64.00 MiB' "$work.err" && grep -q '  local_sort: done' "$work.err" ||
        fail "--progress of an output that has more: exit code $code"
    json "(lambda spans: {name for name, dur in spans} == {'create', 'write', 'commit'} and
        sum(dur for name, dur in spans) / 1e6 <= r['per_rank'][0]['phases']['write'])([(e['name'], e['dur'])
        for e in json.load(open('trace.json'))['traceEvents'] if e['pid'] == 0 and e['name'] in ('create', 'write', 'commit')])"
    rm much.h5 trace.json
    "$h5py" -c 'import h5py; h5py.File("one.h5", "r+").attrs["kept"] = 5'
    ok 2 sort snap.h5:/same -o one.h5:/k --key number -q
    "$h5py" -c 'import h5py; assert h5py.File("one.h5").attrs["kept"] == 5' || fail "an attribute above what is replaced is gone"
    rm -f x.h5 once.h5 few.h5 one.h5 five.h5 border.h5
}

# Groups in groups, of names that could be taken for others.
groups()
{
    local ranks
    "$h5py" - <<'PYTHON'
import h5py
import numpy as np
rng = np.random.default_rng(8)
with h5py.File("nested.h5", "w", libver="latest") as file:
    group = file.create_group("g")
    # Of a structure the members that are told last may lie first.
    kind = np.dtype({"names": ["b/c", "d"], "formats": ["<i4", "<i4"], "offsets": [8, 0], "itemsize": 12})
    group["a"] = np.array([(i, -i) for i in range(501)], kind)
    group["a.b/c"] = rng.integers(0, 50, 501)
    group["x/z"] = rng.random(501)
    group["x.y"] = rng.random(501)
    for number in range(20): # so many links that HDF5 keeps them in another way
        group[f"x/in/{number}"] = rng.integers(0, 1 << number, 501).astype(">u4")
    group["again"] = group["x/in"]
    group.create_group("x/in/none/at all").attrs["why"] = "empty"
    file["few"] = np.arange(3)
    above = file.create_group("above/g")
    above["id"] = np.arange(9)
    above["up"] = file["above"]
    file["above/beside"] = np.arange(9)
    deep = file.create_group("deep")
    deep["id"] = np.arange(9)
    deep.create_group("/".join(["d"] * 33))
    file.create_group("bound/" + "/".join(["d"] * 31))["v"] = np.arange(9)
    file["bound/id"] = np.arange(9)
    many = file.create_group("many")
    many["id"] = np.arange(9)
    for number in range(11): # each has two names in the one before
        inner = many.create_group("0")
        many["1"] = inner
        many = inner
    file["long/id"] = np.arange(9)
    file["long/" + "n" * 2000 + "/" + "n" * 2100] = np.arange(9)
PYTHON
    for ranks in 1 2 3 5; do
        ok "$ranks" sort nested.h5:/g -o x.h5:/g --key a.b/c,again/7:desc -q
        ok "$ranks" check x.h5:/g --key a.b/c,x/in/7:desc --against nested.h5:/g
        "$h5py" - <<'PYTHON' || fail "groups in groups on $ranks ranks"
import h5py
import numpy as np
with h5py.File("nested.h5") as given, h5py.File("x.h5") as found:
    order = np.lexsort([~given["g/x/in/7"][...], given["g/a.b/c"][...]])
    numbers = [str(number) for number in range(20)]
    names = ["a", "a.b/c", "x/z", "x.y"] + ["x/in/" + n for n in numbers] + ["again/" + n for n in numbers]
    for name in names:
        assert np.array_equal(given["g"][name][...][order], found["g"][name][...]), name
    members = []
    found["g"].visit(members.append)
    groups = ["a.b", "x", "x/in", "x/in/none", "x/in/none/at all", "again", "again/none", "again/none/at all"]
    assert sorted(members) == sorted(names + groups), members
    assert found["g/x/in/none/at all"].attrs["why"] == "empty"
PYTHON
    done
    ok 2 sort nested.h5:/above/g -o x.h5:/g --key up/beside --json
    json "r['datasets'] == ['id', 'up/beside'] and r['left'] == 'up/g (a group around it)'"
    ok 2 sort nested.h5:/above -o x.h5:/h --key g/id --json
    json "r['datasets'] == ['beside', 'g/id'] and r['left'] == 'g/up (a group around it)'"
    ok 2 sort nested.h5:/bound -o x.h5:/g --key id --json
    json "len(r['datasets']) == 2 and r['left'] is None"
    refused 0 2 "nested.h5:/deep: 'd/d/|/d' is more than 32 groups deep" sort nested.h5:/deep -o y.h5:/g --key id
    refused 0 2 "nested.h5:/many: '|': more than 1024 names lead to groups that have several names" \
        sort nested.h5:/many -o y.h5:/g --key id
    refused 0 2 "nested.h5:/long: 'nnn|...' is too long a name" sort nested.h5:/long -o y.h5:/g --key id
    refused 2 2 "snap.h5:/g: dataset 'a' cannot be opened" sort nested.h5:/g snap.h5:/g -o y.h5:/g --key a.d
    ok 2 sort nested.h5:/g -o y.h5:/g --key a.d -q
    "$h5py" -c 'import h5py
with h5py.File("y.h5", "r+") as file:
    assert list(file["g/a"]["d"]) == list(range(-500, 1))
    del file["g/x/z"]' || fail "a structure whose members lie in another order"
    refused 0 2 "nested.h5:/g: has dataset 'x/z', and y.h5:/g has none of that name" \
        check nested.h5:/g --key a.d --against y.h5:/g
    rm nested.h5 x.h5 y.h5
}

# same_rows FILE KEY [PYTHON-STATEMENT]: /g of x.h5 has the datasets of /g in FILE in the stable order of KEY, and the statement holds.
same_rows()
{
    "$h5py" - "$@" <<'PYTHON' || fail "the rows of $1, by $2"
import sys
import h5py
import numpy as np
with h5py.File(sys.argv[1]) as given, h5py.File("x.h5") as found:
    order = np.argsort(given["g"][sys.argv[2]][...], kind="stable")
    assert sorted(found["g"]) == sorted(given["g"])
    for name in given["g"]:
        assert np.array_equal(given["g"][name][...][order], found["g"][name][...]), name
    exec(__import__("textwrap").dedent("".join(sys.argv[3:])))
PYTHON
}

# Rows that are written in several pieces, of which ranks have different numbers; in chunks that no border respects.
pieces()
{
    "$h5py" - <<'PYTHON'
import h5py
import numpy as np
rng = np.random.default_rng(6)
with h5py.File("wide.h5", "w") as file:
    file["g/id"] = rng.permutation(1201).astype("<u2")
    rows = np.zeros((1201, 60000), "u1")
    rows[:, [0, 30000, -1]] = rng.integers(0, 256, (1201, 3))
    file["g/plain"] = rows
    file.create_dataset("g/packed", data=rows, chunks=(13, 20000), compression="gzip", compression_opts=1)
    file.create_dataset("g/whole", data=rows, chunks=(1201, 60000)) # a chunk is more than a piece
PYTHON
    ok 3 sort wide.h5:/g -o x.h5:/g --key id -q --verify=reread
    same_rows wide.h5 id
    rm wide.h5 x.h5
}

# A group of so many datasets that the newer form of HDF5 keeps its links elsewhere in the file; in the order of their making.
many_datasets()
{
    "$h5py" - <<'PYTHON'
import h5py
import numpy as np
rng = np.random.default_rng(9)
with h5py.File("many.h5", "w", libver="latest") as file:
    group = file.create_group("g", track_order=True)
    for number in range(20):
        group[f"{number}"] = rng.integers(0, 1 << number, 501)
PYTHON
    ok 3 sort many.h5:/g -o x.h5:/g --key 7 -q
    same_rows many.h5 7 '
    lists = [file["g"].id.get_create_plist() for file in (given, found)]
    assert lists[0].get_link_creation_order() == lists[1].get_link_creation_order() != 0'
    rm many.h5 x.h5
}

# Rows that lie in other files: of a virtual dataset, and of one with its data outside. What is written has them itself.
elsewhere()
{
    "$h5py" - <<'PYTHON'
import h5py
import numpy as np
rng = np.random.default_rng(7)
layout = h5py.VirtualLayout((60,), "<u8")
for part in range(2):
    with h5py.File(f"part{part}.h5", "w") as file:
        file["id"] = rng.integers(0, 50, 30).astype("<u8")
    layout[30 * part:30 * part + 30] = h5py.VirtualSource(f"part{part}.h5", "id", (30,))
with h5py.File("all.h5", "w") as file:
    group = file.create_group("g")
    group.create_virtual_dataset("id", layout, fillvalue=7)
    group.create_dataset("out", data=np.arange(60.0), fillvalue=2.5, external=[("outside.bin", 0, 480)])
PYTHON
    local before
    refused 2 2 "part1.h5: is the input; the output must be another file" sort all.h5:/g -o part1.h5:/P --key id
    before=$(sha256sum outside.bin part?.h5)
    ok 2 sort all.h5:/g -o x.h5:/g --key id -q
    [ "$(sha256sum outside.bin part?.h5)" = "$before" ] || fail "data outside of the input's file have changed"
    same_rows all.h5 id 'assert not any(found["g"][name].is_virtual or found["g"][name].external for name in ("id", "out"))
assert found["g/id"].fillvalue == 7 and found["g/out"].fillvalue == 2.5'
    rm all.h5 x.h5 part?.h5 outside.bin
}

# What leads to other files: an output through such a link would change one of them, and none may be replaced from which rows come.
other_files()
{
    mkdir in
    "$h5py" "$SOURCE/tests/command/hdf5_files.py" others || fail "its files"
    local input key=(--key id)
    refused 3 2 "ext.h5:/e/P: leads to another file, by an external link" sort cor.h5:/P -o ext.h5:/e/P "${key[@]}"
    for input in e/P/id e/new/P soft/P self/P gone/P; do
        refused 0 2 "ext.h5:/$input: leads to another file" sort cor.h5:/P -o "ext.h5:/$input" "${key[@]}"
    done
    refused 2 2 "only.h5:/e/P: leads to another file" sort cor.h5:/P -o only.h5:/e/P "${key[@]}"
    for input in ext.h5:/e/P ext.h5:/soft/P in/of_victim.h5:/P of_virtual.h5:/P of_link.h5:/P of_own.h5:/P of_moved.h5:/P; do
        refused 0 2 "victim.h5: is the input; the output must be another file" sort "$input" -o victim.h5:/P "${key[@]}"
    done
    refused 0 2 "victim.h5: is the input; the output must be another file" sort ext.h5:/e/P/id -o victim.h5:/P
    refused 3 2 "victim.h5: is the input; the output must be another file" sort cor.h5:/P ext.h5:/e/P -o victim.h5:/P "${key[@]}"
    refused 0 2 "raw.h5: is the input; the output must be another file" sort in/of_bytes.h5:/P -o raw.h5:/P "${key[@]}"
    refused 0 2 "block2.h5: is the input; the output must be another file" sort of_blocks.h5:/P -o block2.h5:/P "${key[@]}"
    refused 0 2 "50%.h5: is the input; the output must be another file" sort of_percent.h5:/P -o 50%.h5:/P "${key[@]}"
    refused 2 2 "of_itself.h5:/P: a virtual dataset leads to itself" sort of_itself.h5:/P -o x.h5:/P "${key[@]}"
    # What is itself a link is replaced, not what it leads to.
    local before
    before=$(sha256sum victim.h5)
    ok 2 sort cor.h5:/P -o ext.h5:/e "${key[@]}" -q
    ok 2 sort cor.h5:/P -o ext.h5:/new/P "${key[@]}" -q
    [ "$(sha256sum victim.h5)" = "$before" ] || fail "a file that a link led to has changed"
    ok 0 check ext.h5:/e "${key[@]}" --against cor.h5:/P
    ok 0 check ext.h5:/new/P "${key[@]}" --against cor.h5:/P
    # What cannot be read may be replaced, but not what else it has kept. Root, who reads all, becomes another user.
    mkdir -m 777 open && chmod 755 . && cp victim.h5 open && chmod 200 open/victim.h5
    local another=(env TMPDIR="$work/open" HOME="$work/open" OMPI_MCA_orte_tmpdir_base="$work/open") old=open/victim.h5
    [ "$(id -u)" != 0 ] || another=(setpriv --reuid=65534 --regid=65534 --clear-groups "${another[@]}")
    if "${another[@]}" "$HYPERSORT" --version >"$work.out" 2>&1; then
        MPIRUN="${another[*]} $MPIRUN" refused 2 3 "$old: is there and has more|Permission denied" sort cor.h5:/P -o "$old:/P" "${key[@]}"
    else
        echo "skipped, an output that cannot be read: another user cannot run $HYPERSORT"
    fi
    chmod 700 . && rm -r open in cor.h5 victim.h5 50%.h5 ext.h5 only.h5 of_*.h5 raw.h5 block?.h5
}

# Several files, of which a later one has datasets that the first one lacks.
later_files()
{
    "$h5py" - <<'PYTHON'
import h5py
import numpy as np
def make(name, rows, **members):
    with h5py.File(name, "w") as file:
        file["P/id"] = np.arange(rows)
        for member, values in members.items():
            file["P/" + member.replace("_", "/")] = values
make("first.h5", 9, few=np.arange(5))
make("more.h5", 7, only=np.arange(7))
make("inner.h5", 7, G_z=np.arange(7))
make("length.h5", 5, few=np.arange(5), other=np.arange(4))
make("groups.h5", 5)
with h5py.File("groups.h5", "a") as file:
    file.create_group("P/none/in_it").attrs["lost"] = 1
PYTHON
    refused 3 2 "more.h5:/P: has dataset 'only', and first.h5:/P has none of that name" \
        sort first.h5:/P more.h5:/P -o x.h5:/P --key id
    refused 0 2 "inner.h5:/P: has dataset 'G/z', and first.h5:/P has none of that name" \
        check first.h5:/P length.h5:/P inner.h5:/P --key id
    # What the first one has in another length is left, and named.
    ok 2 sort first.h5:/P length.h5:/P -o x.h5:/P --key id --json
    json "r['datasets'] == ['id'] and r['left'] == 'few (5 rows)' and r['records'] == 14"
    ok 3 check x.h5:/P --key id --against first.h5:/P --against length.h5:/P --json
    json "r['against']['same_records'] and r['against']['files'] == ['first.h5:/P', 'length.h5:/P']"
    refused 2 2 "more.h5:/P/id: is a dataset, and the first one a group" \
        check x.h5:/P --key id --against first.h5:/P --against more.h5:/P/id
    run 2 check x.h5:/P --key id --against first.h5:/P --against first.h5:/P
    [ "$code" = 1 ] && grep -qF 'x.h5:/P: does not hold the rows of first.h5:/P and 1 more' "$work.err" ||
        fail "check of HDF5 --against two others: exit code $code"
    ok 3 sort first.h5:/P length.h5:/P groups.h5:/P -o x.h5:/P --key id --json
    json "r['left'] == 'few (5 rows), none (a group that the first file lacks), none/in_it (a group that the first file lacks)'"
    rm first.h5 more.h5 inner.h5 length.h5 groups.h5 x.h5
}

# Members and attributes in the order of their making, where that is kept, and attributes of long names.
order_of_making()
{
    "$h5py" - <<'PYTHON'
import h5py
import numpy as np
names = [f"{number * 7 % 20}" for number in range(20)]
with h5py.File("made.h5", "w", libver="latest", track_order=True) as file:
    kept = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
    kept.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED) # without an index
    kept.set_attr_creation_order(h5py.h5p.CRT_ORDER_TRACKED)
    h5py.h5g.create(file.id, b"g", gcpl=kept)
    group = file["g"]
    for name in names:
        if int(name) % 3 == 0:
            group.create_group(name, track_order=True)["b"] = np.arange(9)
            group[name]["a"] = np.arange(9)
        else:
            group.create_dataset(name, data=np.arange(9), track_order=True)
        for attribute in names[:12]:
            group[name].attrs[attribute] = 1
    for attribute in names:
        group.attrs[attribute] = 2
    for length in (511, 512, 5000):
        group.attrs["n" * length] = length
    group["none"] = np.arange(9)
    group["none"].attrs["n" * 600] = "text"
    for name in "second", "first":
        file[name] = np.arange(9)
PYTHON
    ok 3 sort made.h5:/g -o x.h5:/g --key 7:desc --json
    json "r['left'] is None and r['datasets'] == sorted(r['datasets'])"
    ok 2 sort made.h5:/ -o y.h5:/ --key g/7 -q
    "$h5py" - <<'PYTHON' || fail "the order of making, or a long name"
import h5py
for name, place in ("x.h5", "g"), ("y.h5", "/"):
    with h5py.File("made.h5") as given, h5py.File(name) as found:
        members = []
        given[place].visit(members.append)
        for member in [".", *members]:
            one, other = given[place][member], found[place][member]
            assert list(other.attrs.items()) == list(one.attrs.items()), member
            assert isinstance(one, h5py.Dataset) or list(one) == list(other), member
PYTHON
    rm made.h5 x.h5 y.h5
}

# A library that is wrong must be found out.
wrong_library()
{
    local HYPERSORT=$BUILD/tests/hypersort_broken damage words before
    before=$(contents)
    while IFS='|' read -r damage group words; do
        BROKEN_ELEMENTS=$damage run 3 sort "snap.h5:/$group" -o x.h5:/g --key id --verify=reread
        [ "$code" = 1 ] && grep -q "snap.h5:/$group: $words; nothing was written" "$work.err" && [ "$(contents)" = "$before" ] ||
            fail "a sort that does '$damage': exit code $code"
        grep -q '^verified .*NOT' "$work.out" || fail "a sort that does '$damage': the report does not say so"
        BROKEN_ELEMENTS=$damage ok 0 sort "snap.h5:/$group" -o x.h5:/g --key id --no-verify
        run 0 check x.h5:/g --key id --against "snap.h5:/$group"
        [ "$code" = 1 ] || [[ $damage = ties || $damage = reread ]] || fail "check after '$damage': exit code $code" # which file cannot tell
        rm -f x.h5
    done <<'DAMAGE'
carry|g|dataset 'cube': entry 666 of the order has not brought element [0-9]*
spoil|g|dataset 'cube': entry 999 of the order has not brought element [0-9]*
index|g|the sorted keys are not in order
reread|g|dataset 'cube': the output does not have what was written to it
ties|same|the sorted keys are not in the order of the input where they are equal
DAMAGE
}

# fails CODE FAULTS WORDS: a sort on three ranks that fails so leaves nothing, and the old output.
fails()
{
    HYPERSORT_FAULT=$2 refused 3 "$1" "$3" sort snap.h5:/g -o old.h5:/g --key id
}

failures_of_ranks()
{
    if [ "${HAS_FAULTS:-}" != ON ]; then
        echo "no fault sites: no failures"
        return
    fi
    ok 0 sort snap.h5:/keys -o old.h5:/k -q
    fails 3 read:1 "rank 1 on |snap.h5:/g: dataset 'id' cannot be read"
    fails 3 read:2:4 "rank 2 on |snap.h5:/g: dataset 'kind' cannot be read"
    fails 3 write:0 "rank 0 on |old.h5: dataset 'cube' cannot be written: No space left on device"
    fails 3 write:2:5 "rank 2 on |old.h5: dataset 'pos' cannot be written: No space left on device"
    fails 3 commit:1 "rank 1 on |old.h5: cannot be synced to disk"
    fails 3 changed:2 "rank 2 on |snap.h5:/g: was changed while it was read"
    HYPERSORT_FAULT=changed:1 refused 3 3 "rank 1 on |snap.h5:/g: was changed while it was read" check snap.h5:/g --key id
    fails 5 alloc:1:4 "rank 1 on "
    # A rank for which the others wait inside of HDF5 ends the run by itself.
    patient fails 3 apart:1:3 "old.h5: dataset 'kind' cannot be written"
    rm old.h5
}

# Stopped and killed while it writes; while it reads.
stopped()
{
    local before signal site
    [ "${HAS_FAULTS:-}" = ON ] || return
    before=$(contents)
    while read -r signal site; do
        patient begin 3 "$site" sort snap.h5:/g -o x.h5:/g --key id
        case $signal in
            KILL) kill -KILL "$(rank_pid 1)" ;;
            *) kill -"$signal" "$pid" ;;
        esac
        end
        [ "$code" != 0 ] || fail "a sort that got $signal at $site: exit code 0"
        [ "$(contents)" = "$before" ] || fail "a sort that got $signal at $site has left or changed files: $(ls)"
    done <<'SIGNALS'
TERM holdwrite:1:3
KILL holdwrite:2:2
INT holdread:0:2
SIGNALS
}

unmount() { umount "$work/disk" 2>/dev/null; }

# A disk of 2 MiB: chunks are packed to a size that nobody knows before; others are reserved.
full_disk()
{
    if [ "$(id -u)" != 0 ] || ! mkdir disk || ! mount -t tmpfs -o size=2m,mode=700 none disk 2>/dev/null; then
        echo "no tmpfs can be mounted: no disk is filled"
        return
    fi
    trap 'unmount; rm -rf "$work" "$work".*' EXIT
    "$h5py" - <<'PYTHON'
import h5py
import numpy as np
noise = np.frombuffer(np.random.default_rng(3).bytes(2400000), "<u8")
with h5py.File("noise.h5", "w") as file:
    file["plain/id"] = noise
    file.create_dataset("packed/id", data=noise, chunks=(10000,), compression="gzip")
    file["some/id"] = noise[:9]
PYTHON
    local ranks
    for ranks in 1 3; do
        cat /dev/zero >disk/all 2>/dev/null
        refused "$ranks" 3 "rank 0 on |disk/x.h5: cannot be made|HDF5: file write failed: No space left on device" \
            sort noise.h5:/some/id -o disk/x.h5:/g
        ! grep -q "time = " "$work.err" || fail "a full disk, of which HDF5 says too much"
        rm disk/all
        refused "$ranks" 3 "rank 0 on |disk/x.h5: cannot reserve |No space left" sort noise.h5:/plain/id -o disk/x.h5:/g
        run "$ranks" sort noise.h5:/packed/id -o disk/x.h5:/g
        # Open MPI says a word of its own.
        [ "$code" = 3 ] && [ "$(grep -c '^hypersort: ' "$work.err")" = 1 ] && grep -q 'disk/x.h5: .*cannot be written: No space left on device' "$work.err" ||
            fail "a full disk on $ranks ranks: exit code $code"
        [ -z "$(ls disk)" ] || fail "on a full disk stays $(ls disk)"
    done
    unmount
    rm -r disk noise.h5
}

[ -n "${PARTS:-}" ] || drawn_groups
"$h5py" -W ignore "$SOURCE/tests/command/hdf5_files.py" first || exit 1
run_parts refusals usage reports groups pieces many_datasets elsewhere other_files later_files order_of_making wrong_library failures_of_ranks stopped full_disk
finish
