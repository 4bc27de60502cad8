#!/bin/bash
# Run the tests of one build: how each one ended, line by line, then the summary (tests/summary.awk).
#
#   tests/ctest.sh BUILD-FOLDER closing|counts [ctest argument...]
#
# The second argument says which line comes last. The whole output is kept in BUILD-FOLDER.tests.log. SECONDS_LEFT in
# the environment ends the run after so many seconds; a test that has not ended by then counts as failed.
set -euo pipefail

build=$1 last=$2
log=$build.tests.log
status=0
${SECONDS_LEFT:+timeout "$SECONDS_LEFT"} \
    ctest --test-dir "$build" --no-tests=error -V -j "$(nproc)" "${@:3}" 2>&1 </dev/null |
    tee "$log" | grep --line-buffered -E '^ *[0-9]+/[0-9]+ Test +#[0-9]+: ' || status=${PIPESTATUS[0]}
awk -v last="$last" -v seconds="$SECONDS" -f "$(dirname "${BASH_SOURCE[0]}")/summary.awk" "$log"
exit "$status"
