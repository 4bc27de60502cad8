#!/bin/bash
# Run the tests of one build: print how each one ended, line by line, then the summary (tests/summary.awk).
#
#   tests/ctest.sh BUILD-FOLDER closing|counts [ctest argument...]
#
# The second argument says which line comes last. The whole output is kept in BUILD-FOLDER.tests.log. SECONDS_LEFT in
# the environment ends the run after that many seconds; a test that has not ended by then counts as failed.
set -euo pipefail

build=$1 last=$2
log=$build.tests.log
status=0
# Most tests start processes and wait for them: two at a time take less than one after the other also on two cores. ctest counts
# a test of two ranks as two, and one of more as four: it has such a machine alone.
at_once=$(nproc)
if [ "$at_once" -lt 4 ]; then
    at_once=4
fi
${SECONDS_LEFT:+timeout "$SECONDS_LEFT"} \
    ctest --test-dir "$build" --no-tests=error -V -j "$at_once" "${@:3}" 2>&1 </dev/null |
    tee "$log" | grep --line-buffered -E '^ *[0-9]+/[0-9]+ Test +#[0-9]+: ' || status=${PIPESTATUS[0]}
awk -v last="$last" -v seconds="$SECONDS" -f "$(dirname "${BASH_SOURCE[0]}")/summary.awk" "$log"
exit "$status"
