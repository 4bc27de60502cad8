#!/bin/bash
# Measure how fast the ranks of one machine sort together: every exchange and transport, from device memory and from host memory,
# on one GPU and on all GPUs; then several ranks per GPU, for correctness and traffic.
#
#   jobs/exchange.sh [KEYS]      keys in all, default 1G = 2^30: two buffers of the caller's and two of the context's must fit
#   jobs/exchange.sh --from CSV  only the tables, from a CSV that is there
#
# Writes every row to jobs/results/MACHINE/exchange.csv (results_of in setup.sh), prints a table in Markdown, and rewrites the tables of
# mpi/measured.md and README.md. A row is the median of five sorts by `hypersort bench`, each verified; a time is that of the whole call
# on the slowest rank. Without a GPU the host engine runs on 2 to 7 ranks. Exits with 1 if a sort came out wrong.
# In the environment: SEED=NUMBER, of the inputs; HYPERSORT=PROGRAM, to measure that program, without building; its rows go to
# build/results/.
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
seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
given=${HYPERSORT:-}
hypersort=${given:-$ROOT/build/release/hypersort}
if [ -z "$given" ]; then
    build release hypersort --preset release
fi
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
if [ -n "$given" ]; then # its commit is not known
    results=$ROOT/build/results/exchange.csv
    mkdir -p "$(dirname "$results")"
else
    results=$(results_of exchange)
fi
status=0

# measure RANKS OPTION...: leaves out what is not possible here: code 2, or code 6 of an MPI that takes no device pointers.
measure()
{
    local code=0
    "${MPIRUN[@]}" -n "$1" "$hypersort" bench "${@:2}" --repeats 5 --alone --form csv --seed "$seed" || code=$?
    if [ "$code" = 2 ] || [[ $code = 6 && " $* " = *" --transport mpi "* ]]; then
        echo "# left out: ${*:2}, on $1 ranks"
    elif [ "$code" != 0 ]; then
        status=$code
    fi
}

# measure_each EXCHANGES RANKS OPTION...: by each of these exchanges.
measure_each()
{
    local exchange
    for exchange in $1; do
        measure "${@:2}" --exchange "$exchange"
    done
}

measure_all()
{
    local ranks transport others=zipf,equal,sorted,reverse
    about_machine | sed 's/^/# /'
    if [ "$gpus" -gt 1 ]; then
        measure_each "auto bitonic" 1 -n "$keys" --types u32,u64
        measure 1 -n "$keys" --types u32,u64,f64 --inputs zipf
        measure 1 -n "$keys" --types f64 --inputs uniform,gauss
        measure_each "bitonic direct partition" "$gpus" -n "$keys" --types u32,u64 --transport ipc
        measure "$gpus" -n "$keys" --types u64 --inputs "$others,entropy:3,clusters:1000,kmer:31,mixtures:3"
        measure "$gpus" -n "$keys" --types u64 --inputs sorted,equal --memory inplace
        measure "$gpus" -n "$keys" --types u32,f64 --inputs zipf
        measure "$gpus" -n "$keys" --types f64,f32 --inputs uniform,gauss
        measure 1 -n 256M --types u32,u64,f64
        measure_each "bitonic direct partition" "$gpus" -n 256M --types u32,u64,f64 --transport ipc
        measure "$gpus" -n "$keys" --types u32,u64 --memory pinned,malloc
        for transport in staged mpi; do
            measure_each "bitonic direct partition" "$gpus" -n 64M --types u64 --transport "$transport"
        done
    fi
    if [ "$gpus" -gt 0 ]; then
        for ranks in 3 5 8 16; do
            measure_each "bitonic direct partition" "$ranks" -n 64M --types u64 --inputs uniform,zipf
        done
    else
        for ranks in 1 2 3 5 7; do
            measure_each "bitonic direct" "$ranks" -n 64M --types u64 --inputs "uniform,$others"
        done
    fi
    return "$status"
}

measure_all | name_once >"$results" || status=$?
python3 "$jobs/exchange_table.py" "$results"
grep '^# left out' "$results" || true
echo "every row: $results" >&2
if [ "$status" = 0 ] && [ "$gpus" -gt 1 ] && [[ $results = "$ROOT"/jobs/results/* ]]; then
    draw "$results"
fi
exit "$status"
