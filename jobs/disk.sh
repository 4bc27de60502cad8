#!/bin/bash
# Measure how fast files are sorted by way of the disk, with less memory than they take. The times stand beside: the time in which the
# same bytes are read twice and written twice with nothing else going on, two copies of the same file by the same cores (which read and
# write at the same time), GNU sort and, if they are installed, STXXL (libstxxl-dev, and g++) and DuckDB (in a Python).
#
#   jobs/disk.sh [--python PYTHON] [SIZE [MEMORY [DIR]]]   default 8G of u64 and of records, 1G for each of two ranks, build/
#   jobs/disk.sh --from CSV                                only the table of src/measured.md, from a CSV that is there
#
# DIR must have room for three times SIZE. To get a Python with DuckDB, outside of the tree, if pip finds DuckDB:
#   python3 -m venv PLACE && PLACE/bin/pip install duckdb
#
# Everything starts with its input out of the page cache, and ends with its output on disk. In the environment: RANKS, the number of
# ranks (2); INPUTS, the distributions; REPEATS, how often each is timed (1): the fastest counts. Writes every row to
# jobs/results/MACHINE/disk.csv, or to build/results/... if the tree differs from its commit; MACHINE is `host` without a GPU. Exits with
# 1 if a result is wrong: sorts check themselves.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --from ]; then
    exec python3 "$jobs/disk_table.py" "${2:?"a CSV has to follow"}" "$jobs/../src/measured.md"
fi
python=
if [ "${1:-}" = --python ]; then
    python=${2:?"a Python has to follow"}
    shift 2
fi

# shellcheck source=setup.sh
. "$jobs/setup.sh" build
size=${1:-8G}
memory=${2:-1G}
ranks=${RANKS:-2}
inputs=${INPUTS:-uniform zipf:20 ascending equal}
bytes=$(numfmt --from=iec "$size")
name=$(machine_name)
kind=release
if [ "$name" = host ]; then
    kind=host
fi
for target in hypersort bench_copy; do
    build "$kind" "$target" --preset "$kind"
done
hypersort=$ROOT/build/$kind/hypersort
copies=$ROOT/build/$kind/tests/bench_copy
results=$(results_in "$name" disk "$kind")
mkdir -p "${3:-$ROOT/build}"
work=$(mktemp -d "${3:-$ROOT/build}/hypersort-disk.XXXXXX")
trap 'rm -rf "$work"' EXIT
status=0

# STXXL need not be there.
stxxl=$work/disk_stxxl
if ! why=$(g++ -std=c++14 -O3 -fopenmp -D_GLIBCXX_PARALLEL "$jobs/disk_stxxl.cc" -o "$stxxl" -lstxxl 2>&1); then
    echo "not measured: STXXL (libstxxl-dev and g++): $(head -n 1 <<<"$why")" >&2
    stxxl=
fi

run() { "${MPIRUN[@]}" -n "$ranks" "$hypersort" "$@"; }

# timed COMMAND...: with the input out of the cache and the output brought to disk; prints the seconds of the fastest of REPEATS.
timed()
{
    local begin best='' took
    for _ in $(seq "${REPEATS:-1}"); do
        "$copies" drop "$work/in"
        begin=$(date +%s%N)
        "$@" >&2 || return 1
        sync -f "$work"
        took=$((($(date +%s%N) - begin) / 1000000))
        if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
        rm -f "$work"/out*
    done
    echo "$((best / 1000)).$(printf %03d $((best % 1000)))"
}

# row WHAT INPUT SECONDS
row() { echo "$1,$2,$ranks,$keys,$bytes,$memory,$3"; }

# fastest FUNCTION: prints the seconds in which FUNCTION moves the whole file, in the fastest number of parts side by side. FUNCTION gets
# the first block of a part, and the number of blocks; no page is in the cache before, and none stays there.
fastest()
{
    local begin best='' took parts part
    for parts in 1 2 4 8; do
        "$copies" drop "$work/in" && rm -f "$work/copy"
        begin=$(date +%s%N)
        for ((part = 0; part < parts; part++)); do
            "$1" "$((part * (bytes / parts >> 24)))" "$((bytes / parts >> 24))" &
        done
        wait
        took=$((($(date +%s%N) - begin) / 1000000))
        if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
    done
    rm -f "$work/copy"
    echo "$((best / 1000)).$(printf %03d $((best % 1000)))"
}
read_part() { dd if="$work/in" of=/dev/null bs=16M iflag=direct skip="$1" count="$2" status=none; }
write_part() { dd if=/dev/zero of="$work/copy" bs=16M oflag=direct conv=notrunc,fsync seek="$1" count="$2" status=none; }

# Each byte read twice and written twice.
floor_row()
{
    local reads writes
    reads=$(fastest read_part)
    writes=$(fastest write_part)
    row "2 reads + 2 writes" "$1" "$(awk -v r="$reads" -v w="$writes" 'BEGIN { print 2 * r + 2 * w }')"
}

copy_row() { row "two copies" "$1" "$("$copies" "$work/in" "$work/copy" 60 cold | sed -n 's/^best,,//p' | awk '{ print 2 * $1 }')"; }

sort_keys() { run sort "$work/in" --type u64 -o "$work/out" -S "$memory"; }
sort_records() { run sort "$work/in" --format gensort -o "$work/out" -S "$memory"; }
sort_lines() { LC_ALL=C sort --parallel="$CORES" -S "$((ranks * $(numfmt --from=iec "$memory")))b" -T "$work" -o "$work/out" "$work/in"; }

# The same memory, in all; DuckDB keeps its own format, and the time to make that is not counted.
duckdb_row()
{
    local seconds
    if [ -n "$python" ] && "$python" -c 'import duckdb' 2>/dev/null; then
        if seconds=$("$python" "$jobs/disk_duckdb.py" "$work" "$keys" "$((ranks * $(numfmt --from=iec "$memory")))" "$CORES"); then
            row DuckDB uniform "$seconds"
        fi
    fi
}

# The same memory, in all, and the same keys, in a vector of STXXL's own; the time to make that is not counted. In parallel, as far as
# STXXL does that, by all cores.
stxxl_row()
{
    local seconds
    if [ -z "$stxxl" ]; then
        return
    fi
    "$copies" drop "$work/in"
    if seconds=$(STXXLLOGFILE=$work/out.log STXXLERRLOGFILE=$work/out.log OMP_NUM_THREADS=$CORES "$stxxl" "$work" "$work/in" \
        "$((ranks * $(numfmt --from=iec "$memory")))" | tail -n 1); then
        row STXXL "$1" "$seconds"
    else
        status=1
    fi
    rm -f "$work"/out*
}

measure_keys()
{
    local input seconds
    keys=$((bytes / 8))
    for input in $inputs; do
        run gen -n "$keys" --type u64 --dist "$input" --format raw -o "$work/in"
        if [ "$input" = uniform ]; then
            floor_row "$input"
            copy_row "$input"
        fi
        if seconds=$(timed sort_keys); then row "hypersort sort" "$input" "$seconds"; else status=1; fi
        if [ "$input" = uniform ]; then
            stxxl_row "$input"
            duckdb_row
        fi
    done
}

measure_records()
{
    local input seconds
    keys=$((bytes / 100))
    for input in "gensort -a" "gensort -a -s"; do
        # shellcheck disable=SC2046  # nothing, or a word
        run gen -n "$keys" --format gensort -a $([[ $input = *-s ]] && echo --skew) -o "$work/in"
        if [ "$input" = "gensort -a" ]; then
            floor_row "$input"
            copy_row "$input"
        fi
        if seconds=$(timed sort_records); then row "hypersort sort" "$input" "$seconds"; else status=1; fi
        if [ "$input" = "gensort -a" ] && seconds=$(timed sort_lines); then row "GNU sort" "$input" "$seconds"; fi
    done
}

measure_all()
{
    about_machine | sed 's/^/# /'
    echo "# system: $(stat -f -c %T "$work")"
    echo "what,input,ranks,keys,bytes,memory,seconds"
    measure_keys
    measure_records
    return "$status"
}

measure_all >"$results" || status=$?
if [[ $results = "$ROOT"/jobs/results/* ]]; then
    python3 "$jobs/disk_table.py" "$results" "$ROOT/src/measured.md"
fi
echo "every row: $results" >&2
exit "$status"
