#!/bin/bash
# The Python package against NumPy: arrays, records and the page's recipe on 1, 2, 3 and 5 ranks, drawn by HYPERSORT_SEED; on 1 and 3
# ranks with every dtype, else with some.
set -uo pipefail
# shellcheck source=tests/support/python.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/python.sh"

seed=${HYPERSORT_SEED:-$RANDOM}
echo "seed $seed"
for count in 1 2 3 5; do
    dtypes=100
    [ "$count" = 1 ] || [ "$count" = 3 ] || dtypes=8
    ranks "$count" python_numpy.py "$seed" $dtypes || fail "python_numpy.py $seed $dtypes on $count ranks"
    ranks "$count" python_records.py "$seed" 15 || fail "python_records.py $seed 15 on $count ranks"
    ranks "$count" python_recipes.py "$seed" 15 || fail "python_recipes.py $seed 15 on $count ranks"
done
[ "$failures" = 0 ]
