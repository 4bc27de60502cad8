#!/bin/bash
# Measure how fast sorts of what travels with keys (an index, values, records) are in device memory, beside CUB's sorts of pairs and
# beside copies: on one GPU, and on all GPUs.
#
#   jobs/records.sh [KEYS [RECORDS]]   default 2^28 = 268435456 keys of indices and pairs, 10^8 records of 100 bytes: 40 GB of GPU
#                                      memory and about a minute of GPU time. Records of 32 and 64 bytes are 2^26
#   jobs/records.sh --from CSV         only the table of src/measured.md, from a CSV that is there
#
# Writes every row to jobs/results/MACHINE/records.csv (results_of in setup.sh). A time is the median of five calls on the slowest rank.
# Every result is compared (tests/bench/bench_records.cu). Exits with 1 if a result is wrong.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --from ]; then
    exec python3 "$jobs/records_table.py" "${2:?"a CSV has to follow"}" "$jobs/../src/measured.md"
fi

# shellcheck source=setup.sh
. "$jobs/setup.sh" build
keys=${1:-268435456}
records=${2:-100000000}
build release bench_records --preset release
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
results=$(results_of records)
status=0

measure_all()
{
    local ranks
    about_machine | sed 's/^/# /'
    for ranks in 1 $((gpus > 1 ? gpus : 0)); do
        if [ "$ranks" -gt 0 ]; then
            "${MPIRUN[@]}" -n "$ranks" "$ROOT/build/release/tests/bench_records" "$keys" \
                uniform,zipf:20,zipf:26,kmer:31,entropy:2,sorted,equal,mixture:0,mixture:1 \
                "$records" uniform,zipf:20,kmer:31,equal || status=1
        fi
    done
    return "$status"
}

measure_all | name_once >"$results" || status=$?
if [[ $results = "$ROOT"/jobs/results/* ]]; then
    python3 "$jobs/records_table.py" "$results" "$ROOT/src/measured.md"
fi
echo "every row: $results" >&2
exit "$status"
