#!/bin/bash
# Sorts of files with options drawn at random, for a while, against another sort: sort_draws.py. HYPERSORT_SEED gives the seed,
# DRAW_SECONDS another while than 30.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
if [ -z "$python" ]; then
    echo "skipped: no python3"
    exit 77
fi
: >"$work.out" 2>"$work.err"
# shellcheck disable=SC2086  # MPIRUN is words
"$python" "$SOURCE/tests/command/sort_draws.py" "${HYPERSORT_SEED:-$RANDOM}" "${DRAW_SECONDS:-30}" "$HYPERSORT" \
    $MPIRUN --quiet -n RANKS || fail "cases above"
finish
