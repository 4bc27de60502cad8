#!/bin/bash
# sort by way of the disk: options drawn at random give the output of the sort in memory (disk_draws.py; DRAW_SECONDS gives another
# time than 10 seconds, or "all"). A rank takes the memory that -S allows it, the disk takes as much as the input, and each byte is
# read and written twice. Every refusal is one line that says what can be done, and leaves nothing.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
# shellcheck source=tests/support/held.sh
. "$SOURCE/tests/support/held.sh"
draw_seed

draws()
{
    if [ -z "$python" ] || ! "$python" -c 'import numpy' 2>/dev/null; then
        echo "no python3 with NumPy: nothing is drawn"
        return
    fi
    mkdir drawn && cd drawn || exit 1
    python_cases "$python" disk_draws.py "$seed" "${DRAW_SECONDS:-10}"
    cd .. && rm -r drawn
}

# took RANKS ARGUMENT...: a run that must succeed; $most, $moved: resident bytes of the largest rank, bytes read and written by all.
took()
{
    local line facts
    rm -f "$work".took.*
    code=0
    # shellcheck disable=SC2086  # MPIRUN is words
    timeout 300 $MPIRUN --quiet -n "$1" "$python" "$SOURCE/tests/command/measured.py" "$work.took" "$HYPERSORT" "${@:2}" \
        >"$work.out" 2>"$work.err" </dev/null || code=$?
    [ "$code" = 0 ] || fail "${*:2} on $1 ranks: exit code $code"
    most=0 moved=0
    for line in "$work".took.*; do
        read -r -a facts <"$line"
        ((facts[0] > most)) && most=${facts[0]}
        moved=$((moved + facts[1] + facts[2]))
    done
    rm -f "$work".took.*
}

# watch_temporary DIRECTORY: from now on note the most bytes that are in it, until a file `over` is there.
watch_temporary()
{
    local bytes most=0
    while [ ! -e over ]; do
        bytes=$(du -sB1 --apparent-size "$1" 2>/dev/null | cut -f 1)
        ((${bytes:-0} > most)) && most=$bytes
        sleep 0.01
    done
    echo "$most" >peak
}

# limited BYTES SIZE PERMILLE WORDS: a sort of in.raw by 2 ranks with -S SIZE each: resident are SIZE and what `plan` says to be
# besides at most; in the temporary directory are BYTES and 64 MiB at most; at most PERMILLE of the input is read and
# written, and 48 KiB for each piece of a run that goes into a segment.
limited()
{
    local bytes=$1 limit=$2 permille=$3 words=$4 base base_moved runs
    # shellcheck disable=SC2086  # words
    took 2 sort few.raw $words -o out.raw --engine host --threads 1
    base=$most base_moved=$moved
    watch_temporary temporary &
    # shellcheck disable=SC2086  # words
    took 2 sort in.raw $words -o out.raw --engine host --threads 1 -S "$limit" -T temporary --json
    : >over
    wait
    moved=$((moved - base_moved))
    runs=$(sed -n 's/.*"passes": 2, "runs": \([0-9]*\).*/\1/p' "$work.out")
    echo "-S $limit, $words: ${runs:=0} runs; $((most >> 10)) KiB resident, $((base >> 10)) of them with few keys; moved" \
        "$((moved * 1000 / bytes)) / 1000 of the input, $(($(cat peak) * 1000 / bytes)) / 1000 of it in the temporary directory"
    ((runs >= bytes / limit)) || fail "$words: only $runs runs"
    ((most <= limit + fixed)) || fail "$words: $most bytes resident, -S $limit, and $fixed besides"
    ((moved <= bytes * permille / 1000 + runs * runs * (48 << 10))) || fail "$words: $moved bytes moved, of an input of $bytes"
    (($(cat peak) <= bytes + (64 << 20) && $(cat peak) > bytes / 2)) || fail "$words: $(cat peak) bytes in the temporary directory"
    [ -z "$(ls temporary)" ] || fail "$words: left in the temporary directory: $(ls temporary)"
    # shellcheck disable=SC2086  # words
    ok 2 check out.raw $words --against in.raw
    rm over peak out.raw
}

# Memory, disk and what is moved. The last one has few runs, long enough that their pieces hardly count.
limits()
{
    if [ -z "$python" ] || [ ! -r /proc/self/io ]; then
        echo "no python3, or /proc does not say what processes read: nothing is measured"
        return
    fi
    mkdir temporary
    ok 0 gen -n 1000 --type u64 -o few.raw
    ok 0 plan few.raw --type u64 -n 2 --engine host -S 1M --json
    fixed=$(sed -n 's/.*"fixed_bytes_per_rank": \([0-9]*\).*/\1/p' "$work.out")
    ok 2 gen -n 8M --type u64 -s "$seed" -o in.raw
    limited $((8 << 23)) $((5 << 20)) 4010 "--type u64"
    limited $((8 << 23)) $((6 << 20)) 4010 "--record 16 --key @0:u64"
    ok 2 gen -n 24M --type u64 -s "$seed" -o in.raw
    limited $((24 << 23)) $((96 << 20)) 4010 "--type u64"
    rm -r in.raw few.raw temporary
}

# Wide records, in so many runs that what lies between fences is many times the memory: that is what a sort of few takes, -S, and
# some MiB. Fences take a 64th of the disk at most.
wide()
{
    local base limit=$((6 << 20)) words="--record 4096 --key @2048:u64"
    if [ -z "$python" ] || [ ! -r /proc/self/io ]; then
        echo "memory of wide records is not compared: there is no Python, or no /proc/self/io"
        return
    fi
    # shellcheck disable=SC2086  # words
    ok 0 gen -n 10 $words -o few.raw && ok 0 gen -n 12800 $words -s "$seed" -o in.raw
    # shellcheck disable=SC2086
    took 1 sort few.raw $words -o out.raw --engine host --threads 1
    base=$most
    # shellcheck disable=SC2086
    took 1 sort in.raw $words -o out.raw --engine host --threads 1 -S $limit --json
    json "r['passes'] == 2 and r['runs'] > 30 and r['run_bytes_on_disk'] <= 12800 * 4096 * 1.03"
    echo "-S $limit, $words: $((most >> 10)) KiB resident, $((base >> 10)) of them with few records"
    ((most <= base + limit + (6 << 20))) || fail "wide records: $most bytes resident, $base of them with few, -S $limit"
    # shellcheck disable=SC2086
    ok 0 check out.raw $words --against in.raw
    rm few.raw in.raw out.raw
}

# Where memory does for the keys the disk is not used, whatever -S says besides; a part of the node's memory is an amount, too.
in_memory()
{
    local size
    for size in 64M 1G 50% 100%; do
        ok 2 sort in.raw --type u64 -o out.raw --engine host -S $size --json
        json "r['passes'] == 1 and r['runs'] == 0 and r['segments'] == 0"
    done
    # So it is of what goes with keys, and of files of ranks.
    ok 2 sort in.raw --type u64 -o out.raw --index index.npy --engine host -S 64M --json
    json "r['passes'] == 1"
    ok 2 sort in.raw --type u64 -o out.raw --unique --engine host -S 64M --json
    json "r['passes'] == 1"
    ok 2 sort in.raw --type u64 -o out.%r.raw --engine host -S 64M --json
    json "r['passes'] == 1"
    # Where it lacks they take the disk.
    ok 2 sort in.raw --type u64 -o out.raw --index index.npy --engine host -S 1500K --json
    json "r['passes'] == 2 and r['run_bytes_on_disk'] > 16 * 300000"
    ok 2 sort in.raw --type u64 -o out.raw --unique --engine host -S 1500K --json
    json "r['passes'] == 2 and r['verify']['unique_ok']"
    ok 2 sort in.raw --type u64 -o out.%r.raw --engine host -S 1500K --json
    json "r['passes'] == 2"
    ok 2 sort in.raw --type u64 -o out.raw --values in.raw --value-bytes 8 -O values.raw --engine host -S 1500K --json
    json "r['passes'] == 2"
    cmp -s out.raw values.raw || fail "values of -S are not those of their keys"
    cat out.0.raw out.1.raw | cmp -s - out.raw || fail "files of ranks of -S are not the output"
    # More is joined at once than is read of a column.
    ok 1 sort in.raw --type u64 -o out.raw --values in.raw --value-bytes 8 -O values.raw --engine host --runs 2
    ok 1 check out.raw --type u64 --against in.raw
    cmp -s out.raw values.raw || fail "values of --runs are not those of their keys"
    # Keys of 1 and 2 bytes are counted, and no keys are none.
    ok 2 gen -n 1M --type u16 -o short.npy
    refused 2 2 "--runs: keys of 1 or 2 bytes are counted" sort short.npy -o out.npy -S 600K --runs 5
    ok 2 sort short.npy -o out.npy -S 600K --json
    json "r['passes'] == 1"
    : >none.raw
    ok 2 sort none.raw --type u32 -o out.raw --runs 5 -S 600K
    rm out*.raw out.npy short.npy none.raw index.npy values.raw
}

# least WORDS...: the amount of memory that the last line says would do.
least() { sed -n 's/.* of memory on each rank, but it may use .*: -S \([0-9]*[KMGT]\) would do$/\1/p' "$work.err"; }

refusals()
{
    local size word
    for size in 0 x 200% 0% -1 1.0000000001K % 10GB 1e 2^63; do
        refused 0 2 "--memory: |$size|such as 8G|see 'hypersort sort --help'" sort in.raw --type u64 -o out.raw "--memory=$size"
    done
    refused 0 2 "--runs: '0' is too small; see" sort in.raw --type u64 -o out.raw --runs 0
    refused 0 2 "--temporary-directory: '' cannot be DIR" sort in.raw --type u64 -o out.raw -T ""
    # Memory that does not do, and what would.
    for word in "--type u64" "--record 8 --key @0:u64"; do
        # shellcheck disable=SC2086  # words
        refused 2 5 "rank 0 on |may use 1 kB: -S " sort in.raw $word -o out.raw -S 1000 --engine host --threads 1
        size=$(least)
        # shellcheck disable=SC2086  # words
        refused 2 5 "rank 0 on |-S $size would do" sort in.raw $word -o out.raw -S $((${size%K} / 2))K --engine host --threads 1
        if [ "${HAS_FAULTS:-OFF}" = ON ]; then # so much lets it begin
            # shellcheck disable=SC2086  # words
            begin 2 holdread:0 sort in.raw $word -o out.raw -S "$size" --engine host --threads 1
            kill -USR1 "$pid"
            end
            [ "$code" = 75 ] || fail "$word: -S $size does not do, as the line said: exit code $code"
            rm -rf out.raw.hypersort-*
        fi
    done
    # Temporary directories.
    : >file
    mkdir closed
    refused 2 3 "none/out.raw.|.hypersort-runs: cannot be made: No such file or directory" sort in.raw --type u64 -o out.raw --runs 3 -T none
    refused 3 3 "file/out.raw.|.hypersort-runs: cannot be made: Not a directory" sort in.raw --type u64 -o out.raw --runs 3 -T file
    refused 2 3 "none/out.raw.|.hypersort-runs: cannot be made: No such file or directory" \
        sort in.raw --type u64 -o out.raw --runs 3 -T closed -T none
    refused 2 3 "there/out.raw: cannot create" sort in.raw --type u64 -o there/out.raw --runs 3 -T closed
    refused 2 3 "--temp-limit is 100 kB: |take " sort in.raw --type u64 -o out.raw --runs 3 -T closed --temp-limit 100000
    size=$(sed -n 's/.*--temp-limit is .*: \([0-9]*[KMGT]\) would do$/\1/p' "$work.err")
    ok 2 sort in.raw --type u64 -o out.raw --runs 3 -T closed --temp-limit "$size"
    rm out.raw
    : >"closed/$(runs_of out.raw)"
    refused 2 3 "closed/$(runs_of out.raw)/" sort in.raw --type u64 -o out.raw --runs 3 -T closed
    rm closed/*
    # Nothing is refused without need: --temp-limit and -T that are not used.
    ok 2 sort in.raw --type u64 -o out.raw -T none --temp-limit 1
    rm out.raw
    [ -z "$(ls closed)" ] || fail "left: $(ls closed)"
    if [ "$(id -u)" != 0 ]; then
        chmod 500 closed
        refused 2 3 "closed/$(runs_of out.raw): cannot be made: Permission denied" sort in.raw --type u64 -o out.raw --runs 3 -T closed
        refused 2 3 "closed/out.raw" sort in.raw --type u64 -o closed/out.raw --runs 3
        chmod 700 closed
    fi
    rm -r file closed
}

# Runs and checkpoints in directories of another user, begun by that user or not. Root becomes another user here.
others()
{
    local plain=$MPIRUN another="setpriv --reuid=65534 --regid=65534 --clear-groups" sort="sort in.raw --type u64"
    chmod 755 .
    # shellcheck disable=SC2086  # words
    if [ "$(id -u)" != 0 ] || ! { $another "$HYPERSORT" --version && $another ls "$work"; } >"$work.out" 2>"$work.err"; then
        echo "not tested: directories of others (this is not root, or others cannot run the command here)"
        return
    fi
    mkdir -m 1777 tmp shared
    mkdir -m 755 theirs
    mkdir -m 700 closed
    chmod 644 in.raw
    local MPIRUN="env TMPDIR=$work/tmp OMPI_MCA_orte_tmpdir_base=$work/tmp HOME=$work/tmp $another $plain" words
    # shellcheck disable=SC2086  # words
    {
        refused 3 3 "theirs/out.raw.hypersort-runs: cannot be made: Permission denied" $sort -o theirs/out.raw --runs 3
        refused 3 3 "closed/out.raw: cannot create: Permission denied" $sort -o closed/out.raw --runs 3
        refused 3 3 "theirs/out.raw.|.hypersort-runs: cannot be made: Permission denied" $sort -o shared/out.raw --runs 3 -T theirs
        refused 3 3 "theirs/.hypersort-lock: cannot create: Permission denied" $sort -o shared/out.raw --checkpoint theirs
        refused 3 3 "closed/kept: cannot be made: Permission denied" $sort -o shared/out.raw --checkpoint closed/kept
        refused 3 3 "theirs: no file can be made there: Permission denied" plan in.raw --type u64 -n 2 --disk theirs
        mkdir -m 755 shared/out.raw.hypersort-runs
        mkdir -m 777 shared/kept
        install -m 600 in.raw shared/kept/manifest
        install -m 600 in.raw shared/out.raw.hypersort-runs/plan
        refused 3 3 "shared/kept/manifest: cannot open: Permission denied" $sort -o shared/out.raw --checkpoint shared/kept
        for words in "" "--runs 3"; do
            refused 3 3 "out.raw.hypersort-runs/.hypersort-lock: cannot create: Permission denied" $sort -o shared/out.raw $words
        done
    }
    rm -r tmp shared theirs closed
    chmod 700 .
}

draws
echo "drawn: done after $SECONDS s"
limits
wide
ok 0 gen -n 300000 --type u64 -s "$seed" -o in.raw
for part in in_memory refusals others; do
    $part
    echo "$part: done after $SECONDS s"
done
finish
