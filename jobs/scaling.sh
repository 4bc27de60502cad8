#!/bin/bash
# Measure how the sort scales over the GPUs of one machine: on 1, 2, 4, ... of them, and on all. Strong scaling: 2^30, 2^31 and 2^32 keys
# in all. Weak scaling: 2^29 keys of u64 on each GPU. Beside them stand CUB on one GPU, what the links can do while all of them are busy
# (tests/bench/bench_pairs.c), and what `hypersort plan` says. Then follow numbers of ranks that divide nothing evenly, for correctness;
# with fewer than 8 GPUs several ranks share one, and their times are left out.
#
#   jobs/scaling.sh [SECONDS]             default 450, the build not counted; what does not fit is left out, and named
#   jobs/scaling.sh --rehearse [GPUS]     the same steps by the host engine, as if there were GPUS (8), with 2^-14 of the keys
#   jobs/scaling.sh --from CSV [png]      only the table and the plot, from a CSV that is there. png: the plot as PNG
#
# Writes every row to jobs/results/MACHINE/scaling.csv (results_of in setup.sh), prints the tables, rewrites those of mpi/measured.md, and
# draws build/plots/scaling.svg, if there is gnuplot. A row is the median of five sorts by `hypersort bench`, each verified. Exits
# with 1 if a sort is wrong; tables and plot then stay as they are. A rehearsal writes only below build/.
# In the environment: SEED=NUMBER, of the inputs, which decides what the mixture is like; HYPERSORT=PROGRAM, to measure that program
# without building, with the tests/bench_pairs beside it; its rows go to build/results/.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The plot of the CSV $1, as $2.
plot()
{
    local folder=$jobs/../build/plots
    if ! command -v gnuplot >/dev/null; then
        echo "no gnuplot, so no plot; with one: jobs/scaling.sh --from $1" >&2
        return
    fi
    mkdir -p "$folder"
    python3 "$jobs/scaling_table.py" --points "$1" >"$folder/scaling.csv"
    if ! grep -q '^strong' "$folder/scaling.csv"; then
        echo "no sorts on several GPUs, so no plot" >&2
        return
    fi
    gnuplot -c "$jobs/scaling.gnuplot" "$folder/scaling.csv" "$folder" "$2"
}

if [ "${1:-}" = --from ]; then
    plot "${2:?"a CSV has to follow"}" "${3:-svg}"
    exec python3 "$jobs/scaling_table.py" "$2" "$jobs/../mpi/measured.md"
fi

engine=cuda seconds=450 smaller=0 gpus=
if [ "${1:-}" = --rehearse ]; then
    engine=host smaller=14 gpus=${2:-8}
elif [ $# -gt 0 ]; then
    seconds=$1
fi
if ! [[ $seconds =~ ^[1-9][0-9]*$ && ${gpus:-1} =~ ^[1-9][0-9]?$ ]]; then
    echo "scaling: ${gpus:-$seconds} is no number of ${gpus:+GPUs}${gpus:-seconds}" >&2
    exit 2
fi
# shellcheck source=setup.sh
. "$jobs/setup.sh" build
seed=${SEED:-2718281828} # whose mixture 9 has values of all weights, half of them single ones
if [ "$engine" = cuda ]; then
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
    if [ "$gpus" = 0 ]; then
        echo "scaling: this machine has no GPU; without one: jobs/scaling.sh --rehearse" >&2
        exit 4
    fi
fi
hypersort=${HYPERSORT:-}
kind=release
if [ "$engine" = host ]; then kind=host; fi
if [ -z "$hypersort" ]; then
    hypersort=$ROOT/build/$kind/hypersort
    build "$kind" hypersort --preset "$kind"
    build "$kind" bench_pairs --preset "$kind"
fi
results=$ROOT/build/results/rehearsal/scaling.csv
if [ "$engine" = cuda ] && [ -n "${HYPERSORT:-}" ]; then
    results=$ROOT/build/results/scaling.csv # the program's commit is not known
elif [ "$engine" = cuda ]; then
    results=$(results_of scaling)
fi
mkdir -p "$(dirname "$results")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declare -A link # GB/s each way of a rank, by the number of ranks
status=0

# size LOG: 2^LOG keys, fewer in a rehearsal.
size() { echo $((1 << ($1 - smaller))); }

# memory WORDS: of `bench`; the host engine knows only one kind.
memory() { if [ "$engine" = host ]; then echo malloc; else echo "$1"; fi; }

# The numbers of ranks that have a GPU each and are measured.
measured()
{
    local n
    for ((n = 1; n < gpus; n *= 2)); do echo "$n"; done
    echo "$gpus"
}

# time_left WHAT: whether there is any; `left` are its seconds.
time_left()
{
    left=$((seconds - SECONDS))
    if [ "$left" -le 0 ]; then
        echo "# left out, as the time is over: $1"
        return 1
    fi
}

# measure_links RANKS: measure the links of all pairs of these ranks.
measure_links()
{
    local code=0
    time_left "links of $1 ranks" || return 0
    timeout -k 10 "$left" "${MPIRUN[@]}" -n "$1" "$(dirname "$hypersort")/tests/bench_pairs" "$engine" $((smaller ? 1 : 256)) \
        >"$work/link" || code=$?
    if [ "$code" = 124 ]; then
        echo "# left out, as the time is over: links of $1 ranks"
        return
    fi
    if [ "$code" != 0 ]; then
        echo "# ended with code $code: links of $1 ranks"
        status=$code
        return
    fi
    link[$1]=$(sed -n '2s/.*,//p' "$work/link")
    sed -n '2p' "$work/link" | awk -F, '{
        print "# links: " $1 " ranks, " $2 ", " $3 " MiB: least, median and most of pairs " $4 ", " $5 ", " $6 ", all at once " $7 \
            ", GB/s each way" }'
}

# A line "TYPE KEYS RANKS MS" of what `plan` says of uniform keys in engine memory, for all sizes.
make_plans()
{
    local type log keys ranks
    local -A bytes=([u32]=4 [u64]=8)
    ranks=$(measured | xargs)
    for type in u32 u64; do
        for log in 29 30 31 32; do
            keys=$(size "$log")
            truncate -s $((keys * bytes[$type])) "$work/keys.raw"
            # shellcheck disable=SC2086 # a word for each number
            "$hypersort" plan "$work/keys.raw" --type "$type" --engine "$engine" -n $ranks --ranks-per-node "$gpus" --json
        done
    done | python3 "$jobs/scaling_table.py" --plans
    rm "$work/keys.raw"
}

# Complete rows of `bench`: blank their times if ranks share a GPU, and add to each row the part that it belongs to, the number of GPUs,
# what the model says in ms, and GB/s of the link.
complete_rows()
{
    awk -F, -v OFS=, -v part="$1" -v gpus="$2" -v link="${link[$2]:-}" -v plans="$work/plans" '
        BEGIN { while ((getline line < plans) > 0) { split(line, word, " "); plan[word[1], word[2], word[3]] = word[4] } }
        /^#/ { print; next }
        /^ranks,/ {
            for (i = 1; i <= NF; i++) { column[$i] = i; is_time[i] = $i ~ /(^|_)ms(_|$)|^gkeys/ }
            print $0, "part", "gpus", "plan_ms", "link_gbs"
            next
        }
        {
            predicted = ""
            if ($column["input"] == "uniform" && (part == "device" || part == "inplace"))
                predicted = plan[$column["type"], $column["keys"], $column["ranks"]]
            for (i = 1; i <= NF; i++) if (part == "shared" && is_time[i]) $i = ""
            print $0, part, gpus, predicted, link
        }'
}

# measure PART RANKS OPTION...: a part of the rows, if there is time left for it.
measure()
{
    local code=0
    time_left "$1 by $2 ranks: ${*:3}" || return 0
    timeout -k 10 "$left" "${MPIRUN[@]}" -n "$2" "$hypersort" bench --engine "$engine" "${@:3}" --form csv --seed "$seed" \
        >"$work/rows" || code=$?
    complete_rows "$1" $(($2 < gpus ? $2 : gpus)) <"$work/rows"
    if [ "$code" = 124 ]; then
        echo "# left out, all or in part, as the time is over: $1 by $2 ranks: ${*:3}"
    elif [ "$code" != 0 ]; then
        echo "# ended with code $code: $1 by $2 ranks: ${*:3}"
        status=$code
    fi
}

# Does any of the parts that are measured have as many keys?
is_strong() { [ "$1" = "$(size 30)" ] || [ "$1" = "$(size 31)" ]; }

# For correctness: ranks that are no power of two, and those that are more than GPUs.
check_ranks()
{
    local ranks exchange part
    for ranks in 2 3 4 5 6 7 8; do
        part=shared
        if [ "$ranks" -le "$gpus" ]; then
            part=uneven
        fi
        # Where ranks share GPUs, 6 and 7 find no more than the others.
        if measured | grep -qx "$ranks" || [ "$part$ranks" = shared6 ] || [ "$part$ranks" = shared7 ]; then
            continue
        fi
        for exchange in bitonic direct partition; do
            measure "$part" "$ranks" -n $(($(size 26) + 12345)) --types u32,u64,f64 --memory "$(memory device,inplace)" \
                --inputs "$inputs,sorted,reverse,equal" --exchange "$exchange" --repeats 1 --warm-up 0
        done
    done
}

# What matters most comes first.
measure_all()
{
    local ranks exchange inputs=uniform,mixture:9,narrow:8
    about_machine | sed 's/^/# /'
    for ranks in $(measured); do
        if [ "$ranks" -gt 1 ]; then measure_links "$ranks"; fi
    done
    make_plans >"$work/plans"
    for ranks in $(measured); do
        measure device "$ranks" -n "$(size 30),$(size 31)" --types u64,u32 --inputs "$inputs" --memory "$(memory device)" --repeats 5
        if ! is_strong $((ranks * $(size 29))); then
            measure device "$ranks" -n $((ranks * $(size 29))) --types u64 --inputs "$inputs" --memory "$(memory device)" --repeats 5
        fi
    done
    check_ranks
    for ranks in $(measured); do
        measure inplace "$ranks" -n "$(size 32)" --types u64,u32 --inputs "$inputs" --memory "$(memory inplace)" --repeats 5
    done
    for ranks in $(measured); do
        for exchange in bitonic direct; do
            if [ "$ranks" -gt 1 ]; then
                measure exchange "$ranks" -n "$(size 30)" --types u64,u32 --memory "$(memory device)" --exchange "$exchange" --repeats 5
            fi
        done
    done
    for ranks in $(measured); do
        measure pinned "$ranks" -n "$(size 30)" --types u64,u32 --memory "$(memory pinned)" --repeats 3
    done
    return "$status"
}

SECONDS=0
measure_all | name_once >"$results" || status=$?
python3 "$jobs/scaling_table.py" "$results"
grep -E '^# (left out|ended)' "$results" || true
echo "every row: $results, in $SECONDS s" >&2
if [ "$status" != 0 ]; then
    exit "$status"
fi
if [ "$gpus" -gt 1 ]; then
    plot "$results" svg
    if [[ $results = "$ROOT"/jobs/results/* ]]; then
        python3 "$jobs/scaling_table.py" "$results" "$ROOT/mpi/measured.md" ||
            echo "put these two lines where the table is to stand, then: jobs/scaling.sh --from $results" >&2
    fi
fi
