#!/bin/bash
# Set up, build, and run every test that this machine can run; say which were skipped, and why.
#
#   tests/run.sh                       some tests under AddressSanitizer and UBSan, then every test of the test build
#   tests/run.sh CTEST-ARGUMENT...     only those tests of the test build, e.g. -R hypercube or -L cpu
#
# Exits 0 only if nothing failed. The last line is ctest's own, of the test build.
set -euo pipefail

# shellcheck source=../jobs/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../jobs/setup.sh" tests
cd "$ROOT"

timed_build()
{
    local start=$SECONDS
    build "$1" all "${@:2}"
    echo "built build/$1 in $((SECONDS - start)) s"
}

# The programs on one rank, and on three: an odd count, where the hypercube lacks a partner; engines with three threads, as few keys
# go by one of them. Leaks are told apart from Open MPI's own by their stacks, so those must be unwound through code without frame
# pointers.
sanitized_tests()
{
    ASAN_OPTIONS=fast_unwind_on_malloc=0 LSAN_OPTIONS="suppressions='$ROOT/tests/lsan.supp':print_suppressions=0" \
        UBSAN_OPTIONS=print_stacktrace=1 tests/ctest.sh build/sanitized closing -R '_[13]$' -E '_host_1$' -LE gpu
}

sanitizers=passed
if [ $# = 0 ]; then
    # The preset, but optimised a little: the sanitizers then take half the time.
    timed_build sanitized --preset debug -DCMAKE_C_FLAGS_DEBUG='-O1 -g'
    sanitized_tests || sanitizers=failed
fi
timed_build test --preset test
tests/ctest.sh build/test closing "$@"
if [ "$sanitizers" = failed ]; then
    echo "but tests failed under the sanitizers, see above"
    exit 1
fi
