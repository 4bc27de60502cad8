#!/bin/bash
# Sorts of keys and records with their index on 13 ranks against NumPy (ranks_numpy.py): some, drawn by HYPERSORT_SEED;
# RANK_CASES gives another number than 4, and 0 is all there are.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
numpy=
for candidate in "${PYTHON:-python3}" python3 /usr/bin/python3; do
    if [ -z "$numpy" ] && "$candidate" -c 'import numpy' 2>/dev/null; then numpy=$candidate; fi
done
if [ -z "$numpy" ]; then
    echo "skipped: no python3 with numpy"
    exit 77
fi
: >"$work.out" 2>"$work.err"
# shellcheck disable=SC2086  # MPIRUN is words
"$numpy" "$SOURCE/tests/command/ranks_numpy.py" "${HYPERSORT_SEED:-$RANDOM}" "${RANK_CASES:-4}" 13 "$HYPERSORT" \
    $MPIRUN --quiet -n RANKS || fail "cases above"
finish
