#!/bin/bash
# Sorts of files with options drawn at random, for a while, against another sort: sort_draws.py. HYPERSORT_SEED gives the seed,
# DRAW_SECONDS another time than 30 seconds.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
if [ -z "$python" ]; then
    echo "skipped: no python3"
    exit 77
fi
python_cases "$python" sort_draws.py "${HYPERSORT_SEED:-$RANDOM}" "${DRAW_SECONDS:-30}"
finish
