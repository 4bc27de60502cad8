#!/bin/bash
# Sort on simulated clusters of 8 to 1024 H200s, and put the times into the tables of mpi/measured.md, between their markers. This needs
# SimGrid (Debian: libsimgrid-dev), but no GPU and no cluster; tests/simgrid/README.md says what is simulated.
#
#   jobs/simulate.sh [RANKS...]           default 8 64 256 1000 1024: some 10 minutes, 2 GB of memory
#   jobs/simulate.sh nodes                the other table: between nodes, by partition and direct; some 5 minutes, 8 GB of memory
#   jobs/simulate.sh --from CSV [png]     only the table and the plot, from a CSV that is there. png: the plot as PNG
#
# The CSV is jobs/results/simulated/exchange.csv, or nodes.csv; it is in build/results/ instead if the tree differs from its commit. The
# plot is build/plots/simulated.svg, if there is gnuplot. Exits with 1 if keys came out wrong anywhere.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Table and plot of the CSV $1, the plot as $2.
draw()
{
    python3 "$jobs/simulate_table.py" "$1" "$jobs/../mpi/measured.md"
    [[ $1 != */nodes.csv ]] || return 0
    if ! command -v gnuplot >/dev/null; then
        echo "no gnuplot, so no plot; with one: jobs/simulate.sh --from $1" >&2
        return
    fi
    mkdir -p "$jobs/../build/plots"
    gnuplot -c "$jobs/simulate.gnuplot" "$1" "$jobs/../build/plots" "$2"
}

if [ "${1:-}" = --from ]; then
    draw "${2:?"a CSV has to follow"}" "${3:-svg}"
    exit
fi

shard=268435456 # keys of 8 bytes: 2 GiB
small=4096
large=536870912 # on each rank of several nodes
table=exchange
[ "${1:-}" != nodes ] || table=nodes
# shellcheck source=setup.sh
. "$jobs/setup.sh" build
commit=$(commit)
case $commit in
unknown | *-dirty) results=$ROOT/build/results/simulated/$table.csv ;;
*) results=$ROOT/jobs/results/simulated/$table.csv ;;
esac
mkdir -p "$(dirname "$results")"
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

# simulate ARGUMENT...: a row of tests/simgrid/run.sh, with the seconds that it took on this machine as the last column.
simulate()
{
    local start=$SECONDS output
    output=$("$jobs/../tests/simgrid/run.sh" "$@") || return
    sed "1s/\$/,wall_s/; 2s/\$/,$((SECONDS - start))/" <<<"$output"
}

{
    echo "# date:   $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "# commit: $commit"
    echo "# simulated by: SimGrid $(smpirun --version 2>/dev/null | grep -o '[0-9][0-9.]*[0-9]' | head -1), settings of tests/simgrid/run.sh"
} >"$rows"
if [ $table = nodes ]; then
    shift
    for ranks in 16 32 64 128; do # more cannot partition
        for input in smooth squares; do
            simulate "$ranks" partition $large 1048576 $input | tee -a "$rows" | tail -1 >&2
        done
        simulate "$ranks" direct $large 262144 smooth | tee -a "$rows" | tail -1 >&2
    done
    simulate 1024 direct $large 65536 smooth | tee -a "$rows" | tail -1 >&2
elif [ $# = 0 ]; then
    set -- 8 64 256 1000 1024
fi
for ranks in "$@"; do
    for exchange in bitonic direct; do
        for keys in $shard $small; do
            settings=()
            # Direct packs, so some keys must be real for each message.
            [ "$exchange $keys" != "direct $shard" ] || settings=($((ranks > 256 ? 65536 : 262144)) smooth)
            simulate "$ranks" "$exchange" "$keys" "${settings[@]}" | tee -a "$rows" | tail -1 >&2
        done
    done
done
# Each run names the columns; once is enough.
awk '!/^ranks,/ || !named++' "$rows" >"$results"
echo "every run: $results" >&2
if [[ $results = "$ROOT"/jobs/results/* ]]; then
    draw "$results" svg
fi
