#!/bin/bash
# The Python package on a GPU: CuPy, PyTorch and Numba, if they are installed, and device memory without any of them.
set -uo pipefail
# shellcheck source=tests/support/python.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/python.sh"

seed=${HYPERSORT_SEED:-$RANDOM}
echo "seed $seed"
for count in 1 2 3; do
    code=0
    ranks "$count" python_gpu.py "$seed" || code=$?
    if [ "$code" = 77 ]; then
        exit 77
    fi
    [ "$code" = 0 ] || fail "python_gpu.py $seed on $count ranks"
done
[ "$failures" = 0 ]
