#!/bin/bash
# Measure which rung should sort by default on the first GPU, by the type of keys and their number. Write that into
# kernels/cuda/ladder/tuning.h, and how it compares with CUB into kernels/measured.md. The rows go to
# jobs/results/MACHINE/tune.csv (results_of in setup.sh). Build again afterwards.
#
#   jobs/tune.sh [SECONDS]     default 120, the build not counted
#   jobs/tune.sh --from CSV    only write both tables, from a CSV that is there, without a GPU
#   jobs/tune.sh --compare CSV only that of kernels/measured.md, for the rungs that tuning.h names
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

tuning=$jobs/../kernels/cuda/ladder/tuning.h
compare() { python3 "$jobs/tune_table.py" "$1" "$tuning" "$jobs/../kernels/measured.md"; }
write_rows() { python3 "$jobs/tune_table.py" "$1" "$tuning"; }

case ${1:-} in
--from)
    write_rows "${2:?"a CSV has to follow"}"
    compare "$2"
    exit
    ;;
--compare)
    compare "${2:?"a CSV has to follow"}"
    exit
    ;;
esac

seconds=${1:-120}
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
    echo "tune: $seconds is no number of seconds" >&2
    exit 2
fi
# shellcheck source=setup.sh
. "$jobs/setup.sh" build
build_bench
results=$(results_of tune 1)
measured=$(mktemp)
trap 'rm -f "$measured"' EXIT
about_machine | sed 's/^/# /' >"$measured"
# Inputs that rungs differ on. Rows come by input, so time that is too short leaves out whole inputs.
"$BENCH" --seconds "$seconds" --rungs 0,4,5,7,8 --types u32,u64 --sizes 10-28 \
    --inputs uniform,floats,zipf,sorted,two,entropy3 >>"$measured"
cp "$measured" "$results"
echo "every row: $results" >&2
write_rows "$results"
if [[ $results = "$ROOT"/jobs/results/* ]]; then
    compare "$results"
fi
