#!/bin/bash
# The command with the MPI that it was built with, whichever that is: that MPI is the one that runs, the launcher belongs to it, and
# sorts of each kind give the same bytes on any number of ranks.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

right_library()
{
    local built loaded
    # "..., Open MPI 4.1.4, ..." of the headers, and of the library "Open MPI v4.1.4, ..." or "MPICH Version: 4.0.2"
    built=$("$HYPERSORT" --version | grep -oE '(Open MPI|MPICH) [0-9][0-9.]*' | tr -d ' ')
    ok 3 info --engine host --json
    json "len(r['ranks']) == 3"
    loaded=$(grep -o '"mpi_library": *"[^,"]*' "$work.out" | sed 's/.*"//; s/\\u0009//; s/ v\([0-9]\)/\1/; s/ Version: *//' | tr -cd 'A-Za-z0-9.')
    [ "${built:-unknown}" = "$loaded" ] || fail "built with $built, running with $loaded"
    [ "$(ldd "$HYPERSORT" | grep -cE '^[[:space:]]*libmpi(ch)?\.so')" = 1 ] || fail "not one MPI library: $(ldd "$HYPERSORT")"
}

# same FILE: what this number of ranks made is what the first one did.
same()
{
    if [ -e "first.$1" ]; then
        cmp -s "first.$1" "$1" || fail "$1: other bytes on $ranks ranks"
        rm "$1"
    else
        mv "$1" "first.$1"
    fi
}

sorts()
{
    local ranks
    ok 2 gen -n 300001 --type f64 --dist zipf -s 5 -o keys.npy
    ok 3 gen -n 20011 --record 24 --key @8:u32 -s 5 -o records.bin
    for ranks in 1 2 3; do
        ok $ranks sort keys.npy -o sorted.npy --engine host --verify
        ok $ranks check sorted.npy --against keys.npy
        same sorted.npy
        ok $ranks sort keys.npy -o falling.npy -r --engine host --exchange direct --transport staged --shared-memory off
        same falling.npy
        ok $ranks sort keys.npy -o disk.npy --engine host --threads 1 -S 2M
        cmp -s disk.npy first.sorted.npy || fail "other bytes by way of the disk on $ranks ranks"
        rm disk.npy
        ok $ranks sort records.bin -o records.sorted --record 24 --key @8:u32 --index index.npy --engine host
        same records.sorted
        same index.npy
        run $ranks sort none.npy -o never.npy
        [ "$code" = 3 ] || fail "no input on $ranks ranks: exit code $code"
        [ ! -e never.npy ] || fail "no input on $ranks ranks: there is an output"
    done
}

right_library
sorts
finish
