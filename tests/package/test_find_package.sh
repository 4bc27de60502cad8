#!/bin/bash
# Other projects find the installed and moved hypersort by find_package(): a C project, with both libraries, and a project in C++ alone.
# The versions that fit are taken, others refused; without hwloc the shared library is still found, and the static one is not. A
# project with another MPI is warned.
set -euo pipefail
# shellcheck source=installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/installed.sh"

mkdir "$work/c" "$work/cxx" "$work/versions"
write_example "$work/c/example.c"
cp "$work/c/example.c" "$work/cxx/example.cpp"
version=$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' "$libraries/cmake/hypersort/hypersortConfigVersion.cmake")

cat >"$work/c/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES C)
find_package(hypersort $version CONFIG REQUIRED COMPONENTS static)
foreach(target hypersort shared static)
    add_executable(example_\${target} example.c)
    target_link_libraries(example_\${target} PRIVATE hypersort::\${target})
endforeach()
END
cat >"$work/cxx/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES CXX)
find_package(hypersort CONFIG REQUIRED)
foreach(target hypersort static)
    add_executable(example_\${target} example.cpp)
    target_link_libraries(example_\${target} PRIVATE hypersort::\${target})
endforeach()
END

project "$work/c" "C" -DCMAKE_C_COMPILER="$(cache CMAKE_C_COMPILER)"
for target in hypersort shared static; do
    sorts "C, hypersort::$target" "$work/c/build/example_$target"
done
takes_shared() { [[ "$(ldd "$1")" = *libhypersort.so* ]]; }
takes_shared "$work/c/build/example_hypersort" || fail "hypersort::hypersort is not the shared library"
if takes_shared "$work/c/build/example_static"; then fail "hypersort::static is not the static library"; fi
project "$work/cxx" "C++"
for target in hypersort static; do
    sorts "C++, hypersort::$target" "$work/cxx/build/example_$target"
done

# found LINES: whether hypersort is found in a project of C, by these lines.
found()
{
    cat >"$work/versions/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(versions LANGUAGES C)
$1
message("found: \${hypersort_FOUND}")
END
    cmake -S "$work/versions" -B "$work/versions/build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DMPI_C_COMPILER="$mpicc" >"$work/log" 2>&1
    grep -qx 'found: 1' "$work/log"
}
refused() { if found "$1"; then fail "$2"; fi; }
IFS=. read -r major minor _ <<<"$version"
found "find_package(hypersort $major.$minor CONFIG)" || fail "version $major.$minor is not found"
refused "find_package(hypersort $((major + 1)) CONFIG)" "the next major version is found"
if [ "$major" = 0 ]; then
    refused "find_package(hypersort 0.$((minor - 1)) CONFIG)" "before 1.0 a program of the minor version before is let in"
fi
no_hwloc='set(CMAKE_DISABLE_FIND_PACKAGE_PkgConfig ON)
set(HWLOC_LIBRARY HWLOC_LIBRARY-NOTFOUND)
set(CMAKE_FIND_LIBRARY_SUFFIXES .none)'
found "$no_hwloc
find_package(hypersort CONFIG)
if(TARGET hypersort::static OR NOT TARGET hypersort::hypersort)
    set(hypersort_FOUND wrong)
endif()" || { cat "$work/log"; fail "without hwloc the shared library is not found, or the static one is"; }
refused "$no_hwloc
find_package(hypersort CONFIG COMPONENTS static)" "without hwloc the static library is found"
grep -q 'hypersort::static needs hwloc' "$work/log" || fail "it is not said that the static library needs hwloc"

other_mpi='this project found'
found "find_package(hypersort CONFIG)" || fail "hypersort is not found"
if grep -q "$other_mpi" "$work/log"; then cat "$work/log"; fail "its own MPI is taken for another one"; fi
# As if it were built with another MPI than the one that the project finds.
sed -i 's,MATCHES "/[^"]*",MATCHES "/libothermpi.so.1",' "$libraries/cmake/hypersort/hypersortConfig.cmake"
found "find_package(hypersort CONFIG)" || fail "hypersort is not found beside another MPI"
grep -q "$other_mpi" "$work/log" || fail "another MPI is not warned of"
echo "projects in C and C++ found hypersort $version, and what does not fit was refused"
