#!/bin/bash
# HYPERSORT_NVTX: spans are NVTX ranges, which a profiler of our own receives, here without a GPU; without CUDA the option is refused.
set -euo pipefail

header=
for toolkit in "${CUDA_HOME:-}" "$(dirname "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")/.."; do
    [ -e "$toolkit/include/nvtx3/nvToolsExt.h" ] && header=$toolkit/include
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail()
{
    echo "failed: $1"
    exit 1
}

if cmake -S "$SOURCE" -B "$work/build" -DHYPERSORT_CUDA=OFF -DHYPERSORT_NVTX=ON -DHYPERSORT_TESTS=OFF >"$work/log" 2>&1; then
    fail "a build without CUDA takes HYPERSORT_NVTX=ON"
fi
grep -q 'HYPERSORT_NVTX=ON needs the CUDA Toolkit' "$work/log" || fail "the error does not say what is missing"
if [ -z "$header" ]; then
    echo "skipped: there is no CUDA Toolkit with nvtx3; what is refused without it was tried"
    exit 77
fi

base=$SOURCE/kernels/base
flags=(-std=gnu17 -Wall -Wextra -Werror -fopenmp -I "$SOURCE" -I "$base" -isystem "$header")
gcc "${flags[@]}" -DHSORT_NVTX "$SOURCE/tests/kernels/nvtx_ranges.c" "$base/trace.c" "$base/status.c" -o "$work/program" -ldl
gcc "${flags[@]}" -DAS_PROFILER -fPIC -shared "$SOURCE/tests/kernels/nvtx_ranges.c" -o "$work/profiler.so"
"$work/program" >"$work/alone"
[ ! -s "$work/alone" ] || fail "ranges are told where nobody listens"
NVTX_INJECTION64_PATH=$work/profiler.so "$work/program" >"$work/heard"
printf '1 local sort\n2 merge\n2 ends\n1 ends\n' | diff - "$work/heard" || fail "> are the ranges that were heard"
gcc "${flags[@]}" "$SOURCE/tests/kernels/nvtx_ranges.c" "$base/trace.c" "$base/status.c" -o "$work/program"
if nm "$work/program" | grep -qi nvtx; then
    fail "a build without HYPERSORT_NVTX has some of it"
fi
echo "2 ranges, one in the other"
