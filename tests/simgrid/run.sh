#!/bin/bash
# Sort on a simulated cluster of H200s: builds tests/simgrid/ if needed, and prints one row of a CSV, after the
# line that names its columns, if the keys came out in order.
#
#   tests/simgrid/run.sh RANKS bitonic|direct|partition KEYS [REAL [INPUT]]
#
#   KEYS   of one rank, 8 bytes each, as they are timed: 268435456 are 2 GiB
#   REAL   of one rank, that are really sorted; KEYS must be a multiple. Default: KEYS or, if that is less, 4096; for partition
#          2^20, which make as many batches as more keys would
#   INPUT  even (uniform, spread as evenly as in a large shard), smooth (the same, but packed they take as much as random ones),
#          uniform, squares (of smooth ones: more small than large), few (16 values), sorted, ragged (uniform, and each rank
#          begins with another count); default even
#
# The figures of the cluster are below; each can be changed in the environment. HYPERSORT_SEED repeats the keys of a
# run. Exits 77 if there is no SimGrid, after one line that says so; else 0, or 1 if anything was wrong.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${SIM_BUILD:-$here/../../build/simgrid}
if [ $# -lt 3 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2
    exit 2
fi
ranks=$1 exchange=$2 keys=$3
most=4096
[ "$exchange" != partition ] || most=1048576
real=${4:-$((keys < most ? keys : most))} input=${5:-even}

export SIM_RANKS=$ranks
export SIM_RANKS_PER_NODE=${SIM_RANKS_PER_NODE:-8}
# Links, each way: what one GPU reads from another through NVLink, and a card of 400 Gbit/s.
export SIM_NVLINK_BYTES_PER_S=${SIM_NVLINK_BYTES_PER_S:-365e9} SIM_NVLINK_S=${SIM_NVLINK_S:-3e-6}
export SIM_NETWORK_BYTES_PER_S=${SIM_NETWORK_BYTES_PER_S:-50e9} SIM_NETWORK_S=${SIM_NETWORK_S:-3e-6}
# An H200, keys of 8 bytes: kernels/measured.md, and the rows `merge` of jobs/results/h200x1/ladder.csv.
export SIM_SORT_KEYS_PER_S=${SIM_SORT_KEYS_PER_S:-40e9} SIM_MERGE_KEYS_PER_S=${SIM_MERGE_KEYS_PER_S:-147e9}
# Partition, of 2^29 keys: 1.0 ms to count them, 3.75 to scatter, 6.5 to sort what has come (mpi/measured.md, and README.md there).
export SIM_COUNT_KEYS_PER_S=${SIM_COUNT_KEYS_PER_S:-537e9} SIM_SCATTER_KEYS_PER_S=${SIM_SCATTER_KEYS_PER_S:-143e9}
export SIM_REGIONS_KEYS_PER_S=${SIM_REGIONS_KEYS_PER_S:-82.6e9} SIM_MAP_S=${SIM_MAP_S:-150e-6}
# A sort of 2^20 to 2^24 keys takes 60 us besides its rate: the rows `rung_8_msd` there. 10 of them are those of any call.
export SIM_GROUP_S=${SIM_GROUP_S:-50e-6}
export SIM_COPY_BYTES_PER_S=${SIM_COPY_BYTES_PER_S:-4.2e12} SIM_CALL_S=${SIM_CALL_S:-10e-6}

if ! command -v smpirun >/dev/null; then
    echo "skipped: no SimGrid (Debian: libsimgrid-dev)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! { cmake -S "$here" -B "$build" && cmake --build "$build" -j 2; } >"$work/build.log" 2>&1; then
    if ! grep -q "SIMGRID_" "$work/build.log"; then
        cat "$work/build.log" >&2
        exit 1
    fi
    echo "skipped: smpirun is there, but not the headers and the library of SimGrid (Debian: libsimgrid-dev)"
    exit 77
fi

HYPERSORT_SEED=${HYPERSORT_SEED:-$(date +%s%N)}
export HYPERSORT_SEED
echo "seed $HYPERSORT_SEED" >&2
seq 0 $((ranks - 1)) | sed 's/^/gpu/' >"$work/hosts"
# Links are what platform.cpp says, without SimGrid's corrections for TCP on Ethernet; time passes only where it is told to.
plain=(--cfg=smpi/bw-factor:0:1 --cfg=smpi/lat-factor:0:1 --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:0
    --cfg=network/weight-S:0 --cfg=smpi/simulate-computation:no --cfg=smpi/host-speed:1Gf --cfg=smpi/test:0)
# Collectives of log2 P steps, as an MPI library takes them for short messages: SMPI's choice of Open MPI's is rings, 2 P
# messages of each rank, for the largest of ours. A rank is no thread, and needs little stack.
mpi=(--cfg=smpi/coll-selector:ompi --cfg=smpi/allreduce:rdb --cfg=smpi/allgather:bruck --cfg=smpi/alltoall:bruck
    --cfg=smpi/barrier:ompi_bruck --cfg=smpi/bcast:binomial_tree
    --cfg=smpi/privatization:dlopen --cfg=contexts/stack-size:512)
quiet=(--log=xbt_cfg.thres:warning --log=smpi_config.thres:critical --log=root.thres:warning)
status=0
smpirun -np "$ranks" -platform "$build/platform.so" -hostfile "$work/hosts" "${quiet[@]}" "${plain[@]}" "${mpi[@]}" \
    "$build/simulate.so" "$exchange" "$keys" "$real" "$input" </dev/null >"$work/row" || status=$?
# A deadlock and MPI_Abort() end smpirun with 0 too.
if [ "$status" != 0 ] || ! grep -q "^$ranks,$SIM_RANKS_PER_NODE,$exchange," "$work/row"; then
    cat "$work/row" >&2
    echo "failed: $ranks ranks, $exchange, $keys keys, $real of them real, $input, seed $HYPERSORT_SEED" >&2
    exit 1
fi
cat "$work/row"
