#!/bin/bash
# How fast the ranks of one machine sort together: every exchange and transport, from device memory and from host memory,
# on one GPU and on all; then several ranks per GPU, for correctness and traffic.
#
#   jobs/exchange.sh [KEYS]      keys in all, default 1G = 2^30: two buffers of the caller's and two of the context's must fit
#   jobs/exchange.sh --from CSV  only the tables, from a CSV that is there
#
# Writes every row to jobs/results/MACHINE/exchange.csv (results_of in setup.sh), prints a table in Markdown, and rewrites those of
# mpi/measured.md and README.md. A row is the median of five sorts, verified; time is the slowest rank's, of the whole call. Without
# a GPU the host engine runs on 2 to 7 ranks. Exits with 1 if a sort came out wrong.
# BENCH_SORT=PROGRAM in the environment: measure that one, without building; its rows go to build/results/.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The tables of the CSV $1.
draw()
{
    python3 "$jobs/exchange_table.py" "$1" "$jobs/../mpi/measured.md"
    python3 "$jobs/first_table.py"
}

if [ "${1:-}" = --from ]; then
    draw "${2:?"a CSV has to follow"}"
    exit
fi

# shellcheck source=setup.sh
. "$jobs/setup.sh" build
keys=${1:-1G}
bench=${BENCH_SORT:-$ROOT/build/release/tests/bench_sort}
if [ -z "${BENCH_SORT:-}" ]; then
    build release bench_sort --preset release
fi
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
if [ -n "${BENCH_SORT:-}" ]; then # of which commit is not known
    results=$ROOT/build/results/exchange.csv
    mkdir -p "$(dirname "$results")"
else
    results=$(results_of exchange)
fi
status=0

# measure RANKS OPTION...
measure()
{
    "${MPIRUN[@]}" -n "$1" "$bench" "${@:2}" --repeats 5 || status=$?
}

measure_all()
{
    local ranks others=zipf,equal,sorted,reverse
    about_machine | sed 's/^/# /'
    if [ "$gpus" -gt 1 ]; then
        measure 1 --keys "$keys" --types u32,u64 --exchanges auto,bitonic
        measure 1 --keys "$keys" --types u32,u64,f64 --inputs zipf
        measure 1 --keys "$keys" --types f64 --inputs uniform,gauss
        measure 1 --keys 512M --types u32,u64 # half of 2^30, for weak scaling
        measure "$gpus" --keys "$keys" --types u32,u64 --exchanges bitonic,direct,partition --transports ipc
        measure "$gpus" --keys "$keys" --types u64 --inputs "$others"
        measure "$gpus" --keys "$keys" --types u64 --inputs sorted,equal --memory inplace
        measure "$gpus" --keys "$keys" --types u32,f64 --inputs zipf
        measure "$gpus" --keys "$keys" --types f64,f32 --inputs uniform,gauss
        measure 1 --keys 256M --types u32,u64,f64
        measure "$gpus" --keys 256M --types u32,u64,f64 --exchanges bitonic,direct,partition --transports ipc
        measure "$gpus" --keys "$keys" --types u32,u64 --memory pinned,host
        measure "$gpus" --keys 64M --types u64 --exchanges bitonic,direct --transports staged,mpi
    fi
    if [ "$gpus" -gt 0 ]; then
        for ranks in 3 5 8 16; do
            measure "$ranks" --keys 64M --types u64 --inputs uniform,zipf --exchanges bitonic,direct,partition
        done
    else
        for ranks in 1 2 3 5 7; do
            measure "$ranks" --keys 64M --types u64 --inputs "uniform,$others" --exchanges bitonic,direct
        done
    fi
    return "$status"
}

# Each part writes the names of the columns; the first one's are enough. Rows are written as they come: some awks wait for more.
measure_all | while IFS= read -r row; do
    if [[ $row != ranks,* || -z ${named:-} ]]; then
        printf '%s\n' "$row"
    fi
    [[ $row != ranks,* ]] || named=1
done >"$results" || status=$?
python3 "$jobs/exchange_table.py" "$results"
grep '^# left out' "$results" || true
echo "every row: $results" >&2
if [ "$status" = 0 ] && [ "$gpus" -gt 1 ] && [[ $results = "$ROOT"/jobs/results/* ]]; then
    draw "$results"
fi
exit "$status"
