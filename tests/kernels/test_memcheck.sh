#!/bin/bash
# A small sort over two ranks under compute-sanitizer's memcheck. Slow, so only where HYPERSORT_SANITIZE is set
# (jobs/gpu_check.sh --sanitize).
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
for type in u32 f64; do
    # shellcheck disable=SC2086 # MPIRUN holds options too
    $MPIRUN -n 2 "$HYPERSORT" gen -n 300001 --type "$type" --dist nan -s 1 -o "$work/in.npy" </dev/null
    # shellcheck disable=SC2086
    $MPIRUN -n 2 compute-sanitizer --tool memcheck --error-exitcode 9 "$HYPERSORT" sort "$work/in.npy" \
        -o "$work/out.npy" --engine cuda --verify </dev/null
done
