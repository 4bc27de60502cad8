#!/bin/bash
# Measure how fast one GPU sorts keys of any kind, beside CUB and, if the build has it, libcusort: from 2^8 to 2^30 keys, of every
# distribution that `hypersort bench` knows and of random mixtures.
#
#   jobs/keys.sh [SECONDS]      default 480, the build not counted; what does not fit is left out, and named
#   jobs/keys.sh --from CSV     only the tables of kernels/measured.md and README.md, from a CSV that is there
#
# Writes every row to jobs/results/MACHINE/keys.csv (results_of in setup.sh), and prints tables in Markdown. Every result is
# checked, and is equal to CUB's. Exits with 1 if one is wrong.
# In the environment: SEED=NUMBER, of the inputs; LIBCUSORT=HEADER, for the build.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --from ]; then
    python3 "$jobs/keys_table.py" "${2:?"a CSV has to follow"}" "$jobs/../kernels/measured.md"
    exec python3 "$jobs/first_table.py"
fi

seconds=${1:-480}
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
    echo "keys: $seconds is no number of seconds" >&2
    exit 2
fi
# shellcheck source=setup.sh
. "$jobs/setup.sh" build
seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
build release hypersort --preset release ${LIBCUSORT:+"-DHYPERSORT_LIBCUSORT=$LIBCUSORT"}
results=$(results_of keys 1)
status=0

# measure OPTION...: a part of the rows, if there is time left for it.
measure()
{
    local left=$((seconds - SECONDS)) code=0
    if [ "$left" -gt 0 ]; then
        timeout "$left" "$ROOT/build/release/hypersort" bench "$@" --memory device --form csv --seed "$seed" || code=$?
    else
        code=124
    fi
    if [ "$code" = 124 ]; then
        echo "# left out, all or in part, as the time is over: $*"
    elif [ "$code" != 0 ]; then
        status=$code
    fi
}

# What matters most comes first; the mixtures take the longest.
measure_all()
{
    local types=u64,u32,f64,f32
    local others=entropy:2,entropy:3,entropy:4,loguniform,clusters:1000,kmer:31,runs:1024,swapped:10,zipf:20,zipf:26,ids
    others+=,equal,sorted,reverse,gauss
    about_machine | sed 's/^/# /'
    measure -n 2^28 --types "$types" --inputs "uniform,$others" --repeats 3
    measure -n 2^28 --types "$types" --inputs mixtures:20 --repeats 3
    measure -n 2^29,2^30 --types u64,u32,f64 --inputs uniform --repeats 3
    measure -n 2^24 --types "$types" --inputs "uniform,$others,mixtures:200" --repeats 3
    measure -n 2^8,2^10,2^12,2^14,2^16 --types "$types" --inputs "uniform,entropy:3,zipf:20,mixtures:10" --repeats 1001
    measure -n 2^17,2^18,2^20,2^22 --types u64,u32 --inputs "uniform,$others,mixtures:20" --repeats 21
    measure -n 2^23,2^25,2^26 --types "$types" --inputs "uniform,$others,mixtures:20" --repeats 5
    measure -n 2^29,2^30 --types u64,u32,f64 --inputs "$others" --repeats 3
    return "$status"
}

SECONDS=0
measure_all | name_once >"$results" || status=$?
python3 "$jobs/keys_table.py" "$results"
grep '^# left out' "$results" || true
echo "every row: $results" >&2
exit "$status"
