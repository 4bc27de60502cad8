#!/bin/bash
# HDF5 whose order is found by way of the disk, because memory does not hold the keys: the same rows come out as from memory, on any number
# of ranks. Such a sort is stopped in each phase and begun again on another number of ranks, it is killed, it fails, its disk has no room,
# its input is changed meanwhile.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
# shellcheck source=tests/support/held.sh
. "$SOURCE/tests/support/held.sh"
if "$HYPERSORT" version | grep -q ', no HDF5$'; then
    echo "skipped: the build has no HDF5"
    exit 77
fi
need_h5py
draw_seed

rows=50000
# Keys that are mostly equal, big-endian and packed; and a column of another dataset.
"$h5py" - $RANDOM $rows <<'PYTHON'
import sys
import h5py
import numpy as np
rng, rows = np.random.default_rng(int(sys.argv[1])), int(sys.argv[2])
for number in range(2):
    with h5py.File(f"in{number}.h5", "w") as file:
        file.create_dataset("g/id", data=rng.integers(-50, 50, rows).astype(">i4"), chunks=(900,), compression="gzip")
        file["g/sub/pos"] = rng.normal(size=(rows, 3)).astype("f4").round(1)
        file["g/mark"] = rng.integers(0, 1 << 60, rows)
PYTHON
more=(--key "id,sub/pos[1]:desc")
both=(sort in0.h5:/g in1.h5:/g -o out.h5:/g "${more[@]}")

# same_rows TEXT: out.h5 has what whole.h5 has; nothing else is left.
same_rows()
{
    "$h5py" -c 'import h5py
one, other = h5py.File("whole.h5")["g"], h5py.File("out.h5")["g"]
assert all((one[name][...] == other[name][...]).all() for name in ("id", "sub/pos", "mark"))' || fail "$1: other rows than in memory"
    rm -f out.h5
    nothing_else "$1"
}

# nothing_else TEXT: no file is left but inputs and outputs.
nothing_else()
{
    local left
    left=$(find . ! -name '.' ! -name 'in?.h5' ! -name '*whole.h5' ! -path './runs' -printf '%p ')
    [ -z "$left" ] || fail "$1: left are $left"
}

ok 2 sort in0.h5:/g in1.h5:/g -o whole.h5:/g "${more[@]}" --json
json "r['runs'] == 0"
mkdir runs

any_ranks()
{
    local ranks
    for ranks in 1 2 3 5 7 8; do
        ok $ranks "${both[@]}" -S $((7500000 / ranks)) --json
        json "r['runs'] > 1 and r['readings'] >= 1 and r['verify'] == {'sorted': True, 'stable': True, 'count_ok': True, 'fingerprint_ok': True}"
        same_rows "$ranks ranks"
    done
    ok 3 "${both[@]}" --runs 4 -T runs --temp-limit 12M --verify=reread
    [ "$(grep -c '^passes  *2, by way of the disk: 4 sorted runs' "$work.out")" = 1 ] || fail "the report does not name four runs"
    same_rows "runs elsewhere"
    ok 2 sort in0.h5:/g/mark -o out.h5:/m -r --runs 2
    "$h5py" -c 'import h5py, numpy as np
assert (np.sort(h5py.File("in0.h5")["g/mark"][...])[::-1] == h5py.File("out.h5")["m"][...]).all()' || fail "a dataset alone"
    rm out.h5
    nothing_else "a dataset alone"
}

refusals()
{
    refused 2 3 "--temp-limit is 102.4 kB: |K would do" "${both[@]}" --runs 2 --temp-limit 100K
    ok 2 "${both[@]}" --runs 2 --temp-limit "$(grep -oE '[0-9]+K would do' "$work.err" | grep -oE '^[0-9]+K')"
    rm out.h5
    nothing_else "too little room for runs"
    refused 2 3 "none/out.h5: cannot create" sort in0.h5:/g -o none/out.h5:/g "${more[@]}" --runs 2 -T runs
    nothing_else "no such directory"
    refused 2 5 "memory" "${both[@]}" -S 20K
    nothing_else "too little memory"
    echo kept >out.h5
    refused 2 2 "out.h5" "${both[@]}" --runs 2 --no-clobber
    rm out.h5
}

# stop SITE:RANK:NTH RANKS TEXT: a run that is held there and stopped.
stop()
{
    begin "$2" "$1" "${both[@]}" --runs 5
    kill -USR1 "$(rank_pid 0)"
    end
    if [ "$code" != 75 ] || [ "$(wc -l <"$work.err")" != 1 ] || ! grep -q "^hypersort: stopped by SIGUSR1 while $3; out.h5.hypersort-order.hypersort-runs/manifest says .*: the same command " "$work.err"; then
        fail "$1 on $2 ranks: exit code $code, or another line"
    fi
    [ ! -e out.h5 ] || fail "$1: there is an output"
    [ ! -e out.h5.hypersort-keys ] || fail "$1: the file of keys stays"
}

stops()
{
    stop holddeal:0:1 2 "the result was dealt out"
    ok 3 "${both[@]}" --runs 5 --json
    json "r['resumed'] == 'begun' and r['kept_runs'] == 5"
    same_rows "stopped while dealing out"
    stop holdwrite:1:2 3 "records were written"
    # Without --runs the order fits into memory; but the runs are there.
    ok 1 "${both[@]}" --json
    json "r['resumed'] == 'begun' and r['kept_runs'] == 5"
    same_rows "stopped while writing"
    stop holddeal:0:1 2 "the result was dealt out"
    refused 2 2 "is of a sort by /g id,sub/pos[1]:desc|not by /g id" sort in0.h5:/g in1.h5:/g -o out.h5:/g --key id --runs 5
    # An input that was changed and is not the newest one is noticed, too.
    cp -p in0.h5 kept.h5
    "$h5py" -c 'import h5py
h5py.File("in0.h5", "r+")["g/id"][7] = 5'
    touch -d "2001-01-01 00:00:01" in0.h5
    refused 2 2 "is of a sort by /g id,sub/pos[1]:desc of inputs |remove it" "${both[@]}" --runs 5
    mv kept.h5 in0.h5
    ok 2 "${both[@]}" --runs 5
    same_rows "the input as it was"
    # While keys are read nothing is made yet, or only by an earlier start.
    stop_early "begins anew, because nothing has been made yet"
    nothing_else "stopped while keys were read"
    stop holdwrite:1:2 3 "records were written"
    stop_early "reads them again, and goes on with the runs that are there"
    ok 2 "${both[@]}" --json
    json "r['kept_runs'] == 5"
    same_rows "stopped while keys were read"
}

# stop_early TEXT: stopped while keys are read: the line says what the same command does.
stop_early()
{
    begin 2 holdread:0:1 "${both[@]}" --runs 5 -S 1M # so that keys are read in several pieces
    [ "$(stat -c %a out.h5.hypersort-keys*.part)" = 600 ] || fail "others may read the file of keys"
    kill -USR1 "$(rank_pid 0)"
    end
    if [ "$code" != 75 ] || [ "$(cat "$work.err")" != "hypersort: stopped by SIGUSR1 while keys were read; the same command $1" ]; then
        fail "stopped while keys are read: exit code $code, or another line than '$1'"
    fi
}

# Files that the input leads to may not change either: external storage here.
led_to()
{
    "$h5py" -c 'import h5py, numpy as np
np.random.default_rng(1).integers(0, 1 << 60, 200000).tofile("ext.bin")
with h5py.File("led.h5", "w") as file:
    file.create_dataset("g/id", (200000,), "i8", external=[("ext.bin", 0, 1600000)])'
    begin 1 holddeal:0:1 sort led.h5:/g -o out.h5:/g --key id --runs 2
    kill -USR1 "$(rank_pid 0)"
    end
    [ "$code" = 75 ] || fail "external storage: exit code $code"
    printf x | dd of=ext.bin bs=1 seek=77 conv=notrunc status=none
    refused 1 2 "is of a sort by /g id of inputs " sort led.h5:/g -o out.h5:/g --key id --runs 2
    rm -r out.h5.hypersort-*
    (while [ -e led.h5 ]; do touch ext.bin; done) &
    refused 2 3 "ext.bin, to which led.h5:/g leads: was changed while it was read" sort led.h5:/g -o out.h5:/g --key id
    refused 2 3 "ext.bin, to which led.h5:/g leads: was changed while it was read" sort led.h5:/g -o out.h5:/g --key id --runs 2
    rm led.h5
    wait $!
    rm -rf out.h5* ext.bin
}

killed()
{
    begin 3 holdwrite:1:2 "${both[@]}" --runs 5
    kill -KILL "$(rank_pid 1)"
    end
    [ "$code" != 0 ] || fail "killed: exit code 0"
    ok 2 "${both[@]}" --runs 5 --json
    json "r['resumed'] == 'begun'"
    same_rows "killed"
}

# Each kind of fault, at some time on some rank: the right exit code and one line, and nothing but runs is left; or it is not met.
faults()
{
    local rank site nth
    local -A exits=([alloc]=5 [read]=3 [write]=3 [commit]=3 [short]=3 [mpi]=6)
    for site in "${!exits[@]}"; do
        rank=$((RANDOM % 3)) nth=$((1 + RANDOM % 12))
        HYPERSORT_FAULT=$site:$rank:$nth run 3 "${both[@]}" --runs 3
        if [ "$code" = 0 ]; then
            same_rows "$site:$rank:$nth"
        elif [ "$code" != "${exits[$site]}" ] || [ "$(grep -c '^hypersort: ' "$work.err")" != 1 ]; then
            fail "$site:$rank:$nth: exit code $code, or not one line"
        fi
        [ ! -e out.h5.hypersort-keys ] && [ ! -e out.h5.hypersort-order ] || [ "$site" = mpi ] || fail "$site:$rank:$nth: files are left"
        rm -rf out.h5*
    done
}

any_ranks
refusals
if [ "${HAS_FAULTS:-}" = ON ]; then
    stops
    led_to
    killed
    faults
fi
rm -rf in?.h5 whole.h5 runs
finish
