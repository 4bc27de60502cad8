#!/bin/bash
# How fast one machine sorts a file on 1, 2, 4, ... of its GPUs, one rank per GPU. Without a GPU: with the
# host engine on 1, 2, 4, ... ranks.
#
#   jobs/bench.sh [KEYS]      keys in all, default 256M = 2^28
#
# Prints the table and writes every run to build/results/bench.csv. A row of the table is the median of three runs; a rate counts from keys in host memory to sorted keys in host memory, and every run is verified.
set -euo pipefail

# shellcheck source=setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh" build
keys=${1:-256M}
work=$(mktemp -d "${TMPDIR:-/tmp}/hypersort-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT

build release all --preset release
hypersort=$ROOT/build/release/hypersort
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
results=$ROOT/build/results/bench.csv
mkdir -p "$(dirname "$results")"

# 1, 2, 4, ... and the number itself.
rank_counts()
{
    local n
    for ((n = 1; n < $1; n *= 2)); do
        echo "$n"
    done
    echo "$1"
}

# The number that JSON text $1 holds under name $2.
number() { sed -n "s/.*\"$2\": *\([0-9.eE+-]*\).*/\1/p" <<<"$1" | head -1; }

# Sort the file once over $1 ranks; one line of the CSV.
measure()
{
    local ranks=$1 type=$2 distribution=$3 json column
    json=$("${MPIRUN[@]}" -n "$ranks" "$hypersort" sort "$work/in.npy" -o "$work/out.npy" --verify --json | tr -d '\n')
    printf '%s,%s,%s' "$ranks" "$type" "$distribution"
    for column in keys h2d local_sort exchange merge d2h moved_bytes gkeys_per_s; do
        printf ',%s' "$(number "$json" "$column")"
    done
    echo
}

about_machine | sed 's/^/# /' | tee "$results"
echo "ranks,type,distribution,keys,h2d_s,local_sort_s,exchange_s,merge_s,d2h_s,moved_bytes,gkeys_per_s" >>"$results"
echo "| ranks | type | distribution | keys | Gkeys/s | local sort, s | exchange, s | merge, s | moved, GB |"
echo "|---|---|---|---|---|---|---|---|---|"
for type in u32 u64; do
    for distribution in uniform zipf; do
        "${MPIRUN[@]}" -n 1 "$hypersort" gen -n "$keys" --type "$type" --dist "$distribution" -s 1 -o "$work/in.npy"
        for ranks in $(rank_counts "$((gpus > 0 ? gpus : CORES))"); do
            for _ in 1 2 3; do
                measure "$ranks" "$type" "$distribution"
            done | tee -a "$results" | sort -t, -g -k11 |
                awk -F, 'NR == 2 { printf "| %d | %s | %s | %d | %.2f | %.4f | %.4f | %.4f | %.2f |\n",
                                          $1, $2, $3, $4, $11, $6, $7, $8, $10 / 1e9 }'
        done
    done
done

echo "every run: $results" >&2
