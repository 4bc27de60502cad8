#!/bin/bash
# What packagers say when they configure hypersort: folders given from the root on, run paths of their own, yes and no in any of
# CMake's words. A tree without its history, inside somebody else's repository, does not take that repository's commit; and a build of
# a tree with its history knows the commit that came after it was configured.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail()
{
    echo "failed: $1"
    exit 1
}
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$BUILD/CMakeCache.txt")

mkdir "$work/tree"
tar -C "$SOURCE" --exclude=./.git --exclude='./build*' --exclude='./.*' -cf - . | tar -xf - -C "$work/tree"
if command -v git >/dev/null; then
    git init -q "$work"
    git -C "$work" -c user.name=test -c user.email=test@example.org commit -q --allow-empty -m "of somebody else"
fi

# configure CMAKE-OPTION...: what CMake says is in $work/log.
configure()
{
    env -u COMMIT ${COMMIT:+COMMIT="$COMMIT"} cmake -S "$work/tree" -B "$work/build" -DHYPERSORT_TESTS=OFF -DCMAKE_C_COMPILER="$compiler" "$@" \
        >"$work/log" 2>&1
}
built_commit() { sed -n 's/^#define BUILD_COMMIT "\(.*\)"/\1/p' "$work/build/private/build_info.h"; }

# A library where no loader looks, in a folder that is no regular expression.
mkdir "$work/g++"
touch "$work/g++/libhwloc.so"
unset COMMIT
configure -DHWLOC_LIBRARY="$work/g++/libhwloc.so" -DHYPERSORT_CUDA=no -DHYPERSORT_HDF5=0 -DCMAKE_INSTALL_RPATH=/opt/run \
    -DCMAKE_INSTALL_PREFIX=/opt/h -DCMAKE_INSTALL_LIBDIR=/opt/h/lib/x \
    -DCMAKE_INSTALL_INCLUDEDIR=/opt/h/inc -DCMAKE_INSTALL_DATADIR=/opt/h/share-1.0 || fail "it is not configured: $(tail -5 "$work/log")"
for line in 'prefix=${pcfiledir}/../../..' 'includedir=${prefix}/inc' 'libdir=${prefix}/lib/x' \
    'fortran=${prefix}/share-1.0/hypersort/fortran/hypersort.f90'; do
    grep -qFx "$line" "$work/build/private/hypersort.pc" || fail "with absolute folders hypersort.pc lacks $line"
done
# In a pattern of Lua - and . are themselves only behind a %.
grep -qF 'gsub("/share%-1%.0/hypersort/modulefiles/hypersort/' "$work/build/private/hypersort.lua" || fail "with absolute folders hypersort.lua"
[ "$(grep -cF " RPATH \"/opt/run:$work/g++\"" "$work/build/cmake_install.cmake")" -ge 2 ] || fail "a run path is lost"
grep -qxF -- '-- CUDA engine: no (HYPERSORT_CUDA=OFF)' "$work/log" || fail "HYPERSORT_CUDA=no is not OFF"
grep -qxF -- '-- HDF5: no (HYPERSORT_HDF5=OFF)' "$work/log" || fail "HYPERSORT_HDF5=0 is not OFF"
[ "$(built_commit)" = unknown ] || fail "without its history its commit is $(built_commit)"
COMMIT=0123456789ab configure || fail "it is not configured once more: $(tail -5 "$work/log")"
[ "$(built_commit)" = 0123456789ab ] || fail "the commit is $(built_commit), where the environment names another one"

for nowhere in "" OFF no; do
    configure -DHYPERSORT_PYTHON_DIR="$nowhere" || fail "without the Python package it is not configured: $(tail -5 "$work/log")"
    grep -qF 'has_python = "" ~= ""' "$work/build/private/hypersort.lua" || fail "HYPERSORT_PYTHON_DIR=$nowhere: the module names its folder"
done

CUDACXX=$work/nvcc configure -DHYPERSORT_CUDA=AUTO || fail "without a CUDA compiler it is not configured: $(tail -5 "$work/log")"
grep -qF -- '-- CUDA engine: no (no CUDA compiler was found: set ' "$work/log" || fail "it is not said why there is no CUDA engine"
if configure -DHYPERSORT_CUDA=perhaps; then fail "HYPERSORT_CUDA=perhaps is taken"; fi
grep -q 'HYPERSORT_CUDA=perhaps: it is AUTO, ON or OFF' "$work/log" || fail "it is not said what HYPERSORT_CUDA can be"
if command -v make >/dev/null && command -v git >/dev/null; then
    in_tree() { git -C "$work/tree" -c user.name=test -c user.email=test@example.org "$@"; }
    in_tree init -q
    in_tree commit -q --allow-empty -m first
    rm -r "$work/build"
    configure -G "Unix Makefiles" || fail "with its history it is not configured: $(tail -5 "$work/log")"
    [ "$(built_commit)" = "$(in_tree describe --always --abbrev=12)" ] || fail "its commit is $(built_commit)"
    sleep 1 # files are compared by their times
    in_tree commit -q --allow-empty -m second
    make -C "$work/build" cmake_check_build_system >"$work/log" 2>&1 || fail "it is not configured anew: $(tail -5 "$work/log")"
    [ "$(built_commit)" = "$(in_tree describe --always --abbrev=12)" ] || fail "after another commit it is of $(built_commit)"
fi
echo "folders, run paths, yes and no are as packagers say"
