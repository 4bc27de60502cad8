#!/bin/bash
# Small sorts over two ranks under compute-sanitizer's memcheck: of keys, and of records with their index, by 8-byte and by
# 16-byte codes. It is slow, so it runs only if HYPERSORT_SANITIZE is set (jobs/gpu_check.sh --sanitize).
set -euo pipefail

skip()
{
    echo "skipped: $1"
    exit 77
}

if [ -z "${HYPERSORT_SANITIZE:-}" ]; then skip "asked for by HYPERSORT_SANITIZE=1 or jobs/gpu_check.sh --sanitize"; fi
if ! command -v compute-sanitizer >/dev/null; then skip "no compute-sanitizer on PATH"; fi
if ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then skip "no GPU on this machine"; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run PROGRAM...: run two ranks of it.
run()
{
    # shellcheck disable=SC2086 # MPIRUN holds options too
    $MPIRUN -n 2 "$@" </dev/null
}

memcheck=(compute-sanitizer --tool memcheck --error-exitcode 9)
for type in u32 f64; do
    run "$HYPERSORT" gen -n 300001 --type "$type" --dist nan -s 1 -o "$work/in.npy"
    run "${memcheck[@]}" "$HYPERSORT" sort "$work/in.npy" -o "$work/out.npy" --engine cuda --verify
done
for key in @4:u32 @4:u64; do
    words=(--record 36 --key "$key")
    run "$HYPERSORT" gen -n 100001 "${words[@]}" -o "$work/in.bin"
    run "${memcheck[@]}" "$HYPERSORT" sort "$work/in.bin" "${words[@]}" -o "$work/out.bin" --index "$work/index.npy" \
        --engine cuda
done
