#!/bin/bash
# An installed hypersort is of use: the README's C example compiles against it alone, with the shared and with the
# static library, and sorts over two ranks.
set -euo pipefail

prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cache() { sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt"; }

if [[ "$(cache CMAKE_C_FLAGS)" == *-fsanitize* ]]; then
    echo "skipped: an instrumented build is not one to install"
    exit 77
fi

cmake --install "$BUILD" --prefix "$prefix" >/dev/null
libraries=$(dirname "$(find "$prefix" -name libhypersort.so)")
installed=$(find "$prefix/include" -type f -printf '%P\n' | sort | xargs)
if [ "$installed" != "hypersort.h hypersort_types.h" ]; then
    echo "failed: hypersort.h and hypersort_types.h are to be the only headers, but installed are: $installed"
    exit 1
fi
"$prefix/bin/hypersort" info >/dev/null

# shellcheck disable=SC2016 # the backquotes are Markdown's
sed -n '/^```c$/,/^```$/p' "$SOURCE/README.md" | sed '/^```/d' >"$prefix/example.c"

# A static library brings none of the libraries that it needs.
static_needs=("$(cache HWLOC_LIBRARY)" -fopenmp -lm)
cudart=$(cache CUDA_cudart_LIBRARY)
if [ -n "$cudart" ]; then
    static_needs+=("$cudart" "-Wl,-rpath,$(dirname "$cudart")" -lstdc++)
fi

compile() { mpicc -std=c17 -Wall -Wextra -Werror -I"$prefix/include" "$prefix/example.c" "${@:2}" -o "$prefix/$1"; }
compile shared -L"$libraries" -lhypersort "-Wl,-rpath,$libraries"
compile static "$libraries/libhypersort.a" "${static_needs[@]}"

expected=$(printf '%s\n' '-1 -1 0 0' '2 2 3 3')
for kind in shared static; do
    # shellcheck disable=SC2086 # MPIRUN holds options too
    got=$($MPIRUN -n 2 "$prefix/$kind" </dev/null | sort)
    if [ "$got" != "$expected" ]; then
        echo "failed: the $kind example was to write"
        echo "$expected"
        echo "but wrote"
        echo "$got"
        exit 1
    fi
done
echo "the example ran with the shared and with the static library"
