#!/bin/bash
# Check a machine that has GPUs and no network: build from source, then run every test with the label gpu. These are the engine's
# own tests, and tests of several ranks, on all GPUs of the machine and with several ranks on one GPU, which include every transport
# with every exchange. Programs of several ranks share the GPUs, so the check takes longer the fewer GPUs there are.
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
