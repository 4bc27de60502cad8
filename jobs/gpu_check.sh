#!/bin/bash
# On a machine with GPUs and without a network: build from source, then run every test with the label gpu: the engine's
# own, and those of several ranks, on all GPUs there are and with several ranks on one GPU, every transport with every exchange
# among them. Programs of several ranks share the GPUs there are, so it takes the longer the fewer these are.
#
#   jobs/gpu_check.sh [--sanitize]      --sanitize: also a small sort under compute-sanitizer
#
# In the environment: LIMIT=SECONDS, with the build; what has not ended by then counts as failed.
# Ends with one line, "N passed, N failed, N skipped"; exits 0 only if none failed and some passed.
set -euo pipefail

# shellcheck source=setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh" build
cd "$ROOT"

about_machine
build gpu all -DCMAKE_BUILD_TYPE=Release -DHYPERSORT_CUDA=ON -DHYPERSORT_FAULTS=ON
echo "built in $SECONDS s"

if [ "${1:-}" = --sanitize ]; then
    export HYPERSORT_SANITIZE=1
fi
if [ -n "${LIMIT:-}" ]; then
    export SECONDS_LEFT=$((LIMIT > SECONDS + 10 ? LIMIT - SECONDS - 5 : 5))
fi
tests/ctest.sh build/gpu counts -L gpu
