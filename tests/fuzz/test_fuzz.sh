#!/bin/bash
# The harnesses for some seconds each, fewer in a drawn run; and one of them with a planted bug, which it must find, or the harnesses
# find nothing.
set -euo pipefail

"$SOURCE/tests/fuzz/run.sh" "$([ -n "${HYPERSORT_SEED:-}" ] && [ -z "${ALL:-}" ] && echo 10 || echo 18)"

# It takes a header that is accepted and that no other test has. A search that has not found one soon seldom does later, so it begins
# anew, with another seed.
others=$BUILD/fuzz/others.a
planted=$BUILD/fuzz/planted.log
seed=${HYPERSORT_SEED:-$(date +%s)}
found=no
for try in 1 2 3 4 5 6 7 8; do
    rm -rf "$BUILD/planted"
    if ! HYPERSORT_SEED=$((seed + try)) OTHERS=$others BUILD=$BUILD/planted FLAGS=-DPLANTED_BUG "$SOURCE/tests/fuzz/run.sh" 40 npy \
        >"$planted"; then
        found=yes
        break
    fi
done
if [ $found = no ]; then
    echo "failed: the planted bug was not found:"
    cat "$planted"
    exit 1
fi
grep -q 'broken: !(read.swapped && read.count > 7 ' "$planted" || {
    echo "failed: not the planted bug was found:"
    cat "$planted"
    exit 1
}
echo "the planted bug was found"
