#!/bin/bash
# The Python package against NumPy: arrays of every dtype and records on 1, 2, 3 and 5 ranks, drawn by HYPERSORT_SEED.
set -uo pipefail
# shellcheck source=tests/support/python.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/python.sh"

seed=${HYPERSORT_SEED:-$RANDOM}
echo "seed $seed"
for count in 1 2 3 5; do
    ranks "$count" python_numpy.py "$seed" || fail "python_numpy.py $seed on $count ranks"
    ranks "$count" python_records.py "$seed" 15 || fail "python_records.py $seed 15 on $count ranks"
done
[ "$failures" = 0 ]
