#!/bin/bash
# hypersort inside another CMake project, by add_subdirectory() and by FetchContent: it builds with a compiler that warns of more
# than ours, in the build type of the project, without pkg-config, and where the project joins its own sources; the project's programs
# link and run. Both ways lead to the same files, so with add_subdirectory() it is only configured, which shows whether the targets are
# there.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache() { sed -n "s/^$1:[A-Z]*=//p" "$2/CMakeCache.txt"; }
fail()
{
    echo "failed: $1"
    exit 1
}

mkdir "$work/project"
# shellcheck disable=SC2016 # the backquotes are Markdown's
sed -n '/^```c$/,/^```$/p' "$SOURCE/README.md" | sed '/^```/d' >"$work/project/example.c"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES C)
# What a compiler that is not ours could find: every file of hypersort has some of these.
set(CMAKE_C_FLAGS "\${CMAKE_C_FLAGS} -Wconversion -Wtraditional")
set(HYPERSORT_CUDA OFF)
set(with_cuda ON) # a variable of the project's own
set(CMAKE_UNITY_BUILD ON)
if(FETCH)
    include(FetchContent)
    FetchContent_Declare(hypersort SOURCE_DIR $SOURCE OVERRIDE_FIND_PACKAGE)
    find_package(hypersort REQUIRED)
else()
    add_subdirectory($SOURCE hypersort)
endif()
foreach(target hypersort shared static)
    add_executable(example_\${target} example.c)
    target_link_libraries(example_\${target} PRIVATE hypersort::\${target})
endforeach()
END

configure()
{
    cmake -S "$work/project" -B "$work/$1" -DCMAKE_C_COMPILER="$(cache CMAKE_C_COMPILER "$BUILD")" "${@:2}" \
        >"$work/log" 2>&1 || { cat "$work/log"; fail "the project $1 is not configured"; }
}

configure with_pkg_config
[ -z "$(cache CMAKE_BUILD_TYPE "$work/with_pkg_config")" ] || fail "a build type is forced upon the project"
configure without -DFETCH=ON -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON
hwloc=$(cache HWLOC_LIBRARY "$work/without")
[ -e "$hwloc" ] || fail "hwloc is not found without pkg-config"
[ "$hwloc" = "$(cache HWLOC_LIBRARY "$work/with_pkg_config")" ] || fail "hwloc is another one without pkg-config"

# Several configurations at once, of which one has another name for the library.
if command -v ninja >/dev/null; then
    configure configurations -G "Ninja Multi-Config" -DCMAKE_DEBUG_POSTFIX=d
fi

cmake --build "$work/without" --target example_hypersort example_static -j2 >"$work/log" 2>&1 || { tail "$work/log"; fail "it does not build"; }
grep -q 'warning: ' "$work/log" || fail "the compiler was to warn"
for folder in without/_deps/hypersort-build with_pkg_config/hypersort; do
    [ -e "$work/$folder/include/hypersort.h" ] || fail "the project does not hold hypersort in $folder"
    [ ! -e "$work/$folder/tests" ] || fail "the project builds hypersort's tests"
done
expected=$(printf '%s\n' '-1 -1 0 0' '2 2 3 3')
for target in hypersort static; do
    # shellcheck disable=SC2086 # MPIRUN holds options too
    [ "$($MPIRUN -n 2 "$work/without/example_$target" </dev/null | sort)" = "$expected" ] || fail "the program does not sort"
done
echo "a project that includes hypersort builds and sorts"
