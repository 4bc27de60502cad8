#!/bin/bash
# The harnesses for some seconds each, fewer in a drawn run; and one of them with a planted bug, which must be found, or they find
# nothing.
set -euo pipefail

"$SOURCE/tests/fuzz/run.sh" "$([ -n "${HYPERSORT_SEED:-}" ] && [ -z "${ALL:-}" ] && echo 10 || echo 18)"

# It takes a header that is accepted and that no other test has.
others=$BUILD/fuzz/others.a
planted=$BUILD/fuzz/planted.log
if OTHERS=$others BUILD=$BUILD/planted FLAGS=-DPLANTED_BUG "$SOURCE/tests/fuzz/run.sh" 300 npy >"$planted"; then
    echo "failed: the planted bug was not found:"
    cat "$planted"
    exit 1
fi
grep -q 'broken: !(read.swapped && read.count > 12 ' "$planted" || {
    echo "failed: not the planted bug was found:"
    cat "$planted"
    exit 1
}
echo "the planted bug was found"
