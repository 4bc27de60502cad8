#!/bin/bash
# Sorts of keys, and of records with their index, on 13 ranks against NumPy (ranks_numpy.py): some cases, drawn by HYPERSORT_SEED;
# RANK_CASES gives another number than 4, and 0 means all there are.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
need_numpy
python_cases "$numpy" ranks_numpy.py "${HYPERSORT_SEED:-$RANDOM}" "${RANK_CASES:-4}" 13
finish
