#!/bin/bash
# Measure the ladder of kernels on the first GPU: every rung x type x size x input, and the experiments of the sources.
# Builds, measures for at most SECONDS, writes the CSV, rewrites the tables of kernels/README.md between their markers,
# and draws the plots.
#
#   jobs/ladder.sh [SECONDS]         default 540, the build not counted
#   jobs/ladder.sh --from CSV [png]  only tables and plots, from a CSV that is there; no GPU is needed. png: plots as PNG
#
# The CSV is jobs/results/<date>_<gpu>_<commit>_ladder.csv, the plots lie in jobs/results/plots/. Without gnuplot there
# are no plots; make them with --from elsewhere. Exits with 1 if a sort came out wrong.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Tables and plots of the CSV $1, plots as $2.
draw()
{
    python3 "$jobs/ladder_table.py" "$1" "$jobs/../kernels/README.md"
    if ! command -v gnuplot >/dev/null; then
        echo "no gnuplot, so no plots; with one: jobs/ladder.sh --from $1" >&2
        return
    fi
    mkdir -p "$jobs/results/plots"
    gnuplot -c "$jobs/ladder.gnuplot" "$1" "$jobs/results/plots" "$2"
}

if [ "${1:-}" = --from ]; then
    draw "${2:?"a CSV has to follow"}" "${3:-svg}"
    exit
fi

seconds=${1:-540}
# shellcheck source=setup.sh
. "$jobs/setup.sh" build
build release bench_ladder --preset release
bench=$ROOT/build/release/tests/bench_ladder
if [ ! -x "$bench" ]; then
    echo "ladder: this build has no bench_ladder; it takes the CUDA Toolkit" >&2
    exit 4
fi
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1 | tr ' /' '--' || true)
results=$ROOT/jobs/results/$(date -u +%Y-%m-%d)_${gpu:-none}_$(commit)_ladder.csv
status=0

# measure PERCENT OPTION...: run the benchmark for that part of the time.
measure()
{
    "$bench" --seconds "$((seconds * $1 / 100))" "${@:2}" || status=$?
    if [ "$status" -gt 1 ]; then
        exit "$status"
    fi
}

measure_all()
{
    about_machine | sed 's/^/# /'
    measure 40 --inputs uniform
    measure 20 --inputs sorted,reverse,equal,zipf,narrow:16,entropy2,entropy3,floats --types u32,u64,8+8 --sizes 20,28
    measure 10 --experiment peters-rate
    measure 6 --experiment peters-degree
    measure 6 --experiment peters-size
    measure 6 --experiment threads
    measure 2 --experiment shuffle --experiment merge
    measure 10 --experiment cpu
    return "$status"
}

mkdir -p "$(dirname "$results")"
# Each part writes the names of the columns; the first one's are enough.
measure_all | awk '!/^experiment,/ || !named++ { print; fflush() }' >"$results" || status=$?
draw "$results" svg
echo "every row: $results" >&2
exit "$status"
