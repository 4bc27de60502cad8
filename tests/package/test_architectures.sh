#!/bin/bash
# What the preset `package` compiles for: the GPUs 80, 90, 100 and 120 as far as the toolkit knows them, whatever this machine has,
# and code that later GPUs can take. One kernel is compiled so, and also the code that names spans to NVIDIA's profilers.
set -euo pipefail

nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if [ ! -x "$nvcc" ] || ! command -v make >/dev/null; then
    echo "skipped: there is no nvcc to compile for GPUs, or no make"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail()
{
    cat "$work/log"
    echo "failed: $1"
    exit 1
}

# A machine's own GPU, here of a made-up one that is in no package, must not be among them.
mkdir "$work/bin"
printf '#!/bin/sh\necho 8.6\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
# CMAKE_CUDA_COMPILER: as an earlier run has left it that found no compiler.
PATH=$work/bin:$PATH CUDACXX=$nvcc cmake -S "$SOURCE" --preset package -B "$work/build" -G "Unix Makefiles" -DHYPERSORT_CUDA=Yes \
    -DCMAKE_CUDA_COMPILER=NOTFOUND -DHYPERSORT_NVTX=ON -DHYPERSORT_HDF5=OFF -DHYPERSORT_WERROR=ON >"$work/log" 2>&1 ||
    fail "the preset is not configured"
wanted=
for architecture in 80 90 100 120; do
    if "$nvcc" --list-gpu-arch | grep -qx "compute_$architecture"; then
        wanted+="$architecture-real;"
        newest=$architecture-virtual
    fi
done
grep -qx -- "-- CUDA engine: yes, for architectures $wanted$newest" "$work/log" || fail "not for $wanted$newest"

objects=CMakeFiles/hypersort_kernels.dir
make -C "$work/build" -f $objects/build.make $objects/kernels/cuda/engine/look.cu.o $objects/kernels/base/trace.c.o >"$work/log" 2>&1 ||
    fail "a kernel, or the spans with NVTX, do not compile"
echo "compiled for $wanted$newest"
