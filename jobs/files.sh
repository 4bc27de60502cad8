#!/bin/bash
# Measure how fast files are sorted, beside copies of them by the same cores; and how fast keys in host memory are sorted, which fit on
# the GPUs or take two passes, beside the rate of the links: on one GPU and on all GPUs.
#
#   jobs/files.sh [KEYS [DIR ...]]   u64 keys, default 1G = 2^30 (8.6 GB); DIR: where the files are, default /dev/shm and build/
#   jobs/files.sh --from CSV         only the table of src/measured.md, from a CSV that is there
#
# Files are in the page cache when they are sorted and copied; if the file system can drop them from it, they are also measured on disk
# alone: "cold". In the environment: PASSES=KEYS, the number of keys in host memory, default as many as in the file; PARTS="passes files",
# or one of them. Writes every row to passes.csv and files.csv in jobs/results/MACHINE (results_of in setup.sh). A time is the median of
# five runs; for copies it is the best time of the best way (tests/bench/bench_copy.c). Sorted files are verified, and so are sorted keys
# in host memory (`hypersort bench`). Exits with 1 if a result came out wrong.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --from ]; then
    exec python3 "$jobs/files_table.py" "${2:?"a CSV has to follow"}" "$jobs/../src/measured.md"
fi

# shellcheck source=setup.sh
. "$jobs/setup.sh" build
keys=${1:-1G}
in_memory=${PASSES:-$keys}
directories=("${@:2}")
if [ ${#directories[@]} = 0 ]; then
    directories=(/dev/shm "$ROOT/build")
fi
for target in hypersort bench_copy bench_link; do
    build release "$target" --preset release
done
hypersort=$ROOT/build/release/hypersort
tools=$ROOT/build/release/tests
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
status=0

# median < NUMBERS, one a line
median() { sort -n | sed -n '3p'; }

# The seconds of phases $1 in the JSON reports on standard input, one a line; the median of five.
seconds_of()
{
    python3 -c 'import json, sys
for line in sys.stdin: print(sum(json.loads(line)["phases"][p] for p in sys.argv[1].split(",")))' "$1" | median
}

# sort_file NAME WORK RANKS [cold]: sorts the file five times; prints the median seconds of the whole command, of reading, of writing, and
# from the beginning of reading to the end of writing. Returns another status than 0 if a sort failed.
sort_file()
{
    local name=$1 work=$2 ranks=$3 cold=${4:-} begin whole read write between
    : >"$work/reports"
    : >"$work/wholes"
    for _ in 1 2 3 4 5; do
        if [ -n "$cold" ]; then
            "$tools/bench_copy" drop "$work/$name" || return 1
        fi
        begin=$(date +%s%N)
        "${MPIRUN[@]}" -n "$ranks" "$hypersort" sort "$work/$name" --type u64 -o "$work/out.raw" --json |
            tr -d '\n' >>"$work/reports" || return 1
        echo >>"$work/reports"
        echo "$((($(date +%s%N) - begin) / 1000000))" >>"$work/wholes"
        rm -f "$work/out.raw"
    done
    whole=$(median <"$work/wholes" | sed 's/...$/.&/; s/^\./0./') && read=$(seconds_of read <"$work/reports") &&
        write=$(seconds_of write <"$work/reports") &&
        between=$(seconds_of read,local_sort,exchange,merge,write <"$work/reports") && echo "$whole,$read,$write,$between"
}

# file_rows WORK SYSTEM [cold]: the copy, and the sorts.
file_rows()
{
    local work=$1 system=$2 cold=${3:-} copy ranks row
    copy=$("$tools/bench_copy" "$work/in.raw" "$work/copy.raw" 30 $cold | sed -n 's/^best,,//p')
    system+=${cold:+ $cold}
    echo "copy,$system,0,$keys,$copy,,,"
    for ranks in 1 $((gpus > 1 ? gpus : 2)); do
        if row=$(sort_file few.raw "$work" "$ranks"); then echo "start,$system,$ranks,1K,$row"; else status=1; fi
        if row=$(sort_file in.raw "$work" "$ranks" $cold); then echo "sort,$system,$ranks,$keys,$row"; else status=1; fi
    done
}

measure_directory()
{
    local work system
    work=$(mktemp -d "$1/hypersort-files.XXXXXX")
    system=$(stat -f -c %T "$1")
    "${MPIRUN[@]}" -n 1 "$hypersort" gen -n "$keys" --type u64 -o "$work/in.raw"
    "${MPIRUN[@]}" -n 1 "$hypersort" gen -n 1K --type u64 -o "$work/few.raw"
    file_rows "$work" "$system"
    if "$tools/bench_copy" drop "$work/in.raw"; then
        file_rows "$work" "$system" cold
    fi
    rm -r "$work"
}

# memory_rows KIND GPUS LIMIT OPTION...: keys in host memory; in two passes with a limit of bytes for each GPU, "none" without one.
memory_rows()
{
    local kind=$1 some=$2 limit=$3
    if [ "$limit" != none ]; then
        set -- "$@" --device-memory "$limit"
    fi
    "${MPIRUN[@]}" -n "$some" "$hypersort" bench --alone -n "$in_memory" --types u64 --memory pinned,malloc --repeats 5 --form csv \
        "${@:4}" | sed -n "/^$some,/p" | sed "s/^/$kind,$limit,/" || status=1
}

# Without a limit; with one for some 32 runs, and for 64 and more, with new memory for runs, with that of the sort before, and with that of
# the input.
measure_passes()
{
    local some bytes limit
    bytes=$(($(numfmt --from=iec "$in_memory") * 8))
    for some in 1 $((gpus > 1 ? gpus : 0)); do
        if [ "$some" -gt 0 ]; then
            echo "link,$some,$("$tools/bench_link" "$some" | tail -1)"
            memory_rows passes "$some" none
            for limit in $((bytes / some * 7 / 10)) $((bytes / some / 17)); do
                memory_rows passes "$some" "$limit"
                memory_rows kept "$some" "$limit" --keep-host-memory
                memory_rows overwritten "$some" "$limit" --overwrite-input
            done
        fi
    done
}

measure_files()
{
    local directory
    echo "# $CORES cores; columns of sort: kind, file system, ranks, keys, whole command, read, write, read to write; s"
    for directory in "${directories[@]}"; do
        measure_directory "$directory"
    done
}

# measure PART: all rows of it, and the table.
measure()
{
    local results
    results=$(results_of "$1")
    {
        about_machine | sed 's/^/# /'
        "measure_$1"
    } >"$results"
    if [ "$status" = 0 ] && [[ $results = "$ROOT"/jobs/results/* ]]; then
        python3 "$jobs/files_table.py" "$results" "$ROOT/src/measured.md"
    fi
    echo "every row: $results" >&2
}

for part in ${PARTS:-passes files}; do
    case $part in
    passes)
        if [ "$gpus" = 0 ]; then
            echo "files: there is no GPU, so keys in host memory are left out" >&2
        else
            measure passes
        fi
        ;;
    files) measure files ;;
    *)
        echo "files: PARTS are passes and files, not $part" >&2
        exit 2
        ;;
    esac
done
exit "$status"
