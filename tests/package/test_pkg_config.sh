#!/bin/bash
# Compilers that know nothing about MPI use the installed and moved hypersort by pkg-config: the shared library, the static one, from C
# and from C++.
set -euo pipefail
# shellcheck source=installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/installed.sh"

command -v pkg-config >/dev/null || skip "there is no pkg-config"
export PKG_CONFIG_PATH=$libraries/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
of() { pkg-config "$@" hypersort; }
command_version=$("$prefix/bin/hypersort" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
[ "$(of --modversion)" = "$command_version" ] || fail "the version is $(of --modversion), not the command's"
if [[ "$(of --libs)" = *-lgomp* ]]; then fail "the shared library brings what only the static one needs"; fi

write_example "$work/example.c"
cp "$work/example.c" "$work/example.cpp"
read -ra flags <<<"$(of --cflags)"
read -ra shared <<<"$(of --libs) -Wl,-rpath,$libraries"
# The file's name says that of all libraries hypersort alone is linked statically.
static=$(of --static --libs)
read -ra static <<<"${static/-lhypersort /-l:libhypersort.a }"
build_with() { "$1" -Wall -Wextra -Werror "${flags[@]}" "$work/$2" -o "$work/$3" "${@:4}"; }
compiler=$(cache CMAKE_C_COMPILER)
build_with "$compiler" example.c shared "${shared[@]}"
build_with "$compiler" example.c static "${static[@]}"
# The library's header leaves out the C++ bindings of Open MPI 4, which no library of these flags has.
build_with c++ example.cpp cxx "${shared[@]}"
# A program may say so itself, and not as the header does.
sed '1i #define OMPI_SKIP_MPICXX\n#define MPICH_SKIP_MPICXX' "$work/example.cpp" >"$work/says_so.cpp"
build_with c++ says_so.cpp says_so "${shared[@]}"
for program in shared static cxx; do
    sorts "$program" "$work/$program"
done
if [[ "$(ldd "$work/static")" = *libhypersort.so* ]]; then fail "the static program takes the shared library"; fi
echo "pkg-config's flags made programs of C and C++, with the shared and the static library"
