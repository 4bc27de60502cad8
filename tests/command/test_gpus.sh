#!/bin/bash
# The command over all GPUs of this machine: one rank, one per GPU, two per GPU, and a count that spreads them unevenly.
# Every output must equal, byte for byte, what the host engine makes of the same file.
set -euo pipefail

gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
if [ "$gpus" = 0 ]; then
    echo "skipped: no GPU on this machine"
    exit 77
fi
if ! "$HYPERSORT" info 2>&1 | grep -q 'GPU-'; then
    echo "skipped: this build of hypersort sees no GPU"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# over RANKS ARGUMENT...: the command over so many ranks. MPIRUN holds options too.
# shellcheck disable=SC2086
over() { $MPIRUN -n "$1" "$HYPERSORT" "${@:2}" </dev/null; }

for input in 'u32 zipf' 'f64 nan' 'f16 nan'; do
    read -r type distribution <<<"$input"
    over 2 gen -n 5000011 --type "$type" --dist "$distribution" -s 7 -o "$work/in.npy" >/dev/null
    for order in '' -r; do
        over 3 sort "$work/in.npy" -o "$work/host.npy" --engine host $order >/dev/null
        for ranks in 1 "$gpus" $((2 * gpus)) $((3 * gpus + 1)); do
            over "$ranks" sort "$work/in.npy" -o "$work/cuda.npy" --engine cuda $order --verify >/dev/null
            cmp "$work/host.npy" "$work/cuda.npy"
            echo "$type ${order:-ascending}: $ranks ranks on $gpus GPUs give what the host engine gives"
        done
    done
done

# Beside CUB: every kind of memory, and results that are the same.
over 1 bench -n 1000,2M --types u32,f64 --inputs uniform,nan,mixtures:3 --memory device,inplace,pinned,malloc --repeats 3 \
    --form csv >"$work/bench.csv"
awk -F, '/^#/ { next }
    /^ranks/ { for (i = 1; i <= NF; i++) column[$i] = i; next }
    { rows++; measured += $column["cub_ms"] > 0 && $column["ratio"] > 0; right += $column["result"] == "right" }
    END { print rows " rows, " right " right, " measured " beside CUB"; exit !(rows == 80 && right == 80 && measured == 40) }' \
    "$work/bench.csv"
# The widest keys, and those that are counted; CUB is beside integers.
over 1 bench -n 1000,2M --types u128,i16,bf16 --inputs uniform,nan --memory device,malloc --repeats 2 --form csv >"$work/bench.csv"
awk -F, '/^# left out: device, bf16/ { left++ }
    /^#/ { next }
    /^ranks/ { for (i = 1; i <= NF; i++) column[$i] = i; next }
    { rows++; measured += $column["cub_ms"] > 0; right += $column["result"] == "right" }
    END { print rows " rows, " right " right, " measured " beside CUB, " left " without"
          exit !(rows == 24 && right == 24 && measured == 8 && left == 2) }' "$work/bench.csv"
over 2 bench -n 1000,2M --types u64 --repeats 2 --memory device,pinned --form csv >"$work/bench.csv"
awk -F, '/^2,/ { rows++; right += /,right,/; beside += $NF != "" } END { exit !(rows == 4 && right == 4 && beside == 0) }' "$work/bench.csv"

# Too little memory on the GPU: one line, code 5, no output.
code=0
over 2 sort "$work/in.npy" -o "$work/none.npy" --engine cuda --device-memory 1M >/dev/null 2>"$work/error" || code=$?
if [ "$code" != 5 ] || [ -e "$work/none.npy" ] || ! grep -q '^hypersort: rank .* has no room for' "$work/error"; then
    echo "--device-memory 1M ended with $code:"
    cat "$work/error"
    exit 1
fi
grep "^hypersort: " "$work/error"
