# shellcheck shell=bash
# What the tests of the installed hypersort share; sourced. It is installed into one prefix and moved to another, so nothing that
# is used knows where it was installed: $prefix is where it lies, $libraries has its libraries. $work is removed at the end.
# shellcheck disable=SC2034 # for those who source this

cache() { sed -n "s/^$1:[A-Z]*=//p" "${2:-$BUILD}/CMakeCache.txt"; }
skip()
{
    echo "skipped: $1"
    exit 77
}
fail()
{
    echo "failed: $1"
    exit 1
}

# quiet WHAT COMMAND...: run it; if it fails, its output is shown, and WHAT is said to have failed.
quiet()
{
    "${@:2}" >"$work/log" 2>&1 </dev/null || { cat "$work/log"; fail "$1"; }
}

# The README's example, which sorts four keys on each rank.
write_example()
{
    # shellcheck disable=SC2016 # the backquotes are Markdown's
    sed -n '/^```c$/,/^```$/p' "$SOURCE/README.md" | sed '/^```/d' >"$1"
}

# sorts WHAT PROGRAM...: the example prints its keys in order over two ranks.
sorts()
{
    local got expected
    expected=$(printf '%s\n' '-1 -1 0 0' '2 2 3 3')
    # shellcheck disable=SC2086 # MPIRUN holds options too
    got=$($MPIRUN -n 2 "${@:2}" </dev/null | sort)
    [ "$got" = "$expected" ] || fail "$1: the example was to write
$expected
but wrote
$got"
}

# project FOLDER WHAT [CMAKE-OPTION...]: configure and build a CMake project that finds hypersort in $prefix, in FOLDER/build.
project()
{
    quiet "$2: the project is not configured" cmake -S "$1" -B "$1/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
        -DMPI_C_COMPILER="$mpicc" -DMPI_CXX_COMPILER="$mpicxx" -DMPI_Fortran_COMPILER="$mpifort" "${@:3}"
    quiet "$2: the project does not build" cmake --build "$1/build"
}

if [[ "$(cache CMAKE_C_FLAGS)" == *-fsanitize* ]]; then
    skip "an instrumented build is not one to install"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quiet "hypersort is not installed" cmake --install "$BUILD" --prefix "$work/first"
# Those of the MPI that the library was built with.
mpicc=$(cache MPI_C_COMPILER)
mpicxx=${mpicc/%mpicc*/mpicxx${mpicc##*mpicc}} mpifort=${mpicc/%mpicc*/mpifort${mpicc##*mpicc}}
prefix=$work/second/place
mkdir "$work/second"
mv "$work/first" "$prefix"
libraries=$(dirname "$(find "$prefix" -name libhypersort.so)")
