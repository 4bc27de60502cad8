#!/bin/bash
# The binary interface is the one that tests/library/abi.txt lists: soname, exported names, sizes of structs, numbers behind
# names. If you change it on purpose, write the list anew with `test_abi.sh --update`, and say so in CHANGELOG.md.
set -euo pipefail

list=$SOURCE/tests/library/abi.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$BUILD/tests/test_abi" >"$work/program"
{
    echo "# The binary interface: see tests/library/test_abi.sh."
    objdump -p "$BUILD/libhypersort.so" | awk '$1 == "SONAME" { print "soname", $2 }'
    nm -D --defined-only "$BUILD/libhypersort.so" | awk '$3 ~ /^hsort_/ { print "function", $3 }' | sort
    cat "$work/program"
} >"$work/abi.txt"

if [ "${1:-}" = --update ]; then
    cp "$work/abi.txt" "$list"
elif ! diff "$list" "$work/abi.txt"; then
    echo "failed: < is tests/library/abi.txt, > is this build. A released list only grows, until MINOR or MAJOR changes."
    exit 1
fi
echo "the binary interface is as listed"
