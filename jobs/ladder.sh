#!/bin/bash
# Measure the ladder of kernels on the first GPU: every rung x type x size x input, and the experiments of the sources.
# Builds, measures for at most SECONDS, writes jobs/results/MACHINE/ladder.csv (results_of in setup.sh), rewrites the tables of
# kernels/measured.md and README.md between their markers, and draws the plots.
#
#   jobs/ladder.sh [SECONDS]         default 420, the build not counted: an H200 needs no more
#   jobs/ladder.sh --from CSV [png]  only tables and plots, from a CSV that is there, without a GPU. png: plots as PNG
#
# Plots lie in build/plots/; without gnuplot there are none: make them with --from elsewhere. Exits with 1 if a sort came out
# wrong; tables and plots then stay as they are.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Tables and plots of the CSV $1, plots as $2.
draw()
{
    python3 "$jobs/ladder_table.py" "$1" "$jobs/../kernels/measured.md"
    python3 "$jobs/first_table.py"
    if ! command -v gnuplot >/dev/null; then
        echo "no gnuplot, so no plots; with one: jobs/ladder.sh --from $1" >&2
        return
    fi
    mkdir -p "$jobs/../build/plots"
    gnuplot -c "$jobs/ladder.gnuplot" "$1" "$jobs/../build/plots" "$2"
}

if [ "${1:-}" = --from ]; then
    draw "${2:?"a CSV has to follow"}" "${3:-svg}"
    exit
fi

seconds=${1:-420}
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
    echo "ladder: $seconds is no number of seconds" >&2
    exit 2
fi
# shellcheck source=setup.sh
. "$jobs/setup.sh" build
build_bench
results=$(results_of ladder 1)
status=0

# measure PERCENT OPTION...: run a part of the benchmark, which ends when PERCENT of the time is over. Time that a part does
# not use is left for the next ones.
measure()
{
    local left=$((seconds * $1 / 100 - SECONDS))
    if [ "$left" -le 0 ]; then
        echo "# left out: ${*:2}: the time is over"
        return
    fi
    "$BENCH" --seconds "$left" "${@:2}" || status=$?
    if [ "$status" -gt 1 ]; then
        exit "$status"
    fi
}

# What matters most comes first.
measure_all()
{
    local others=equal,largest,two,sorted,reverse,narrow:16,digit2,stairs,zipf,entropy2,entropy3,floats,strided
    about_machine | sed 's/^/# /'
    measure 20 --inputs uniform --types u32,u64
    measure 32 --inputs uniform --types 4+4,8+4,8+8 --sizes 28
    measure 60 --inputs "$others" --sizes 28 --rungs 0,5,7,8
    measure 75 --experiment shuffle --experiment merge --experiment threads --experiment peters-degree \
        --experiment peters-size --experiment peters-rate
    measure 85 --experiment cpu
    measure 87 --experiment types --experiment less-scratch
    measure 92 --inputs uniform --types 4+4,8+4,8+8 --sizes 10,12,14,16,18,20,22,24,26
    measure 100 --inputs "$others" --types u32 --sizes 28 --rungs 0-4,6
    measure 100 --inputs uniform --types 4+4,8+4,8+8 --sizes 30
    return "$status"
}

SECONDS=0
# Each part writes the names of the columns; the first one's are enough.
measure_all | awk '!/^experiment,/ || !named++ { print; fflush() }' >"$results" || status=$?
if ! grep -qv '^#' "$results"; then # nothing was measured
    rm "$results"
    exit "$status"
fi
echo "every row: $results" >&2
if [ "$status" = 0 ] && [[ $results = "$ROOT"/jobs/results/* ]]; then
    draw "$results" svg
fi
exit "$status"
