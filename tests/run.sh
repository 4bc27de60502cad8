#!/bin/bash
# Set up, build, and run the tests that this machine can run; say which were skipped, and why.
#
#   tests/run.sh                       a part drawn by a seed: some tests under AddressSanitizer and UBSan, some of the test build;
#                                      and, if MPICH is installed, tests of mpi/ with MPICH
#   tests/run.sh --all                 all of them
#   tests/run.sh CTEST-ARGUMENT...     only those tests of the test build, e.g. -R hypercube or -L cpu
#
# Every test program is in every part, on other numbers of ranks (draw.awk says how many). HYPERSORT_SEED repeats a part, and
# everything that its tests draw themselves. Exits 0 only if nothing failed. The last line is ctest's own, of the test build.
set -euo pipefail

# shellcheck source=../jobs/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../jobs/setup.sh" tests
cd "$ROOT"

# timed_build DIRECTORY TARGETS CMAKE-OPTION...
timed_build()
{
    local start=$SECONDS
    build "$@" || return
    echo "built build/$1 in $((SECONDS - start)) s"
}

# names BUILD CTEST-ARGUMENT...: the tests that these choose.
names() { ctest --test-dir "build/$1" -N "${@:2}" | sed -n 's/^ *Test *#[0-9]*: //p'; }

# choose BUILD BRIEF CTEST-ARGUMENT...: set `chosen` to what chooses these tests or, where the run is drawn, a part of them by
# draw.awk, a brief one if BRIEF is 1.
choose()
{
    local all part slow
    chosen=("${@:3}")
    if [ "$drawn" = yes ]; then
        all=$(names "$1" "${chosen[@]}")
        slow=$(names "$1" -L slow | paste -sd' ')
        part=$(awk -v seed="$HYPERSORT_SEED" -v slow="$slow" -v brief="$2" -f tests/draw.awk <<<"$all")
        chosen=(-R "^($(paste -sd'|' <<<"$part"))\$")
        echo "build/$1: $(wc -l <<<"$part") of $(wc -l <<<"$all") tests, drawn by HYPERSORT_SEED=$HYPERSORT_SEED; --all runs all"
    fi
}

# programs BUILD CTEST-ARGUMENT...: those that these tests run, in a line.
programs() { ctest --test-dir "build/$1" -N -V "${@:2}" | grep -o "/build/$1/tests/[a-z0-9_]*" | sed 's,.*/,,' | sort -u | paste -sd' '; }

# The programs on one rank, and on three: an odd count, where the hypercube lacks a partner; engines with three threads, as few keys
# go by one of them. Only those that are drawn are built. Leaks are told apart from Open MPI's own by their stacks, so those must be
# unwound through code without frame pointers.
sanitized_tests()
{
    # The preset, but optimised a little: the sanitizers then take half the time.
    local options=(--preset debug "-DCMAKE_C_FLAGS_DEBUG=-O1 -g")
    timed_build sanitized hypersort_command "${options[@]}" || return
    choose sanitized 1 -R '_[13]$' -E '_host_1$' -LE gpu
    timed_build sanitized "$(programs sanitized "${chosen[@]}")" "${options[@]}" || return
    ASAN_OPTIONS=fast_unwind_on_malloc=0 LSAN_OPTIONS="suppressions='$ROOT/tests/lsan.supp':print_suppressions=0" \
        UBSAN_OPTIONS=print_stacktrace=1 tests/ctest.sh build/sanitized closing "${chosen[@]}"
}

# The tests of mpi/ and sorts of the command with MPICH, where Debian's stands beside Open MPI: on up to three ranks, and nothing else
# at the time, as its ranks spin while they wait. Where the run is drawn, each program on one number of ranks;
# two, of which three ranks wait for each other all the time, on two at most.
mpich_tests()
{
    if ! { have mpicc.mpich && have mpiexec.mpich; }; then
        echo "skipped with MPICH: there is no mpicc.mpich and mpiexec.mpich (Debian: mpich, libmpich-dev)"
        return
    fi
    timed_build mpich any_mpi --preset test -DHYPERSORT_CUDA=OFF -DCMAKE_C_FLAGS_RELEASE=-O1 -DMPI_C_COMPILER=mpicc.mpich \
        -DMPIEXEC_EXECUTABLE="$(command -v mpiexec.mpich)" || return
    choose mpich 1 -L any-mpi -LE gpu -R '(_[123]|_library)$' -E '_(splitters|element_gather)_3$'
    tests/ctest.sh build/mpich closing "${chosen[@]}"
}

drawn=no
all=no
case ${1:-} in
    "") drawn=yes all=yes HYPERSORT_SEED=${HYPERSORT_SEED:-$(date +%s)}; export HYPERSORT_SEED ;;
    --all) all=yes; shift ;;
esac
sanitizers=passed mpich=passed
if [ "$all" = yes ]; then
    sanitized_tests || sanitizers=failed
    mpich_tests || mpich=failed
fi
# Kernels that no GPU here can run are compiled to PTX alone where the run is drawn, and not optimised: that they compile is all that
# can be tested, and optimised machine code takes many times as long.
target=()
if [ "$drawn" = yes ] && ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    target=(-DCMAKE_CUDA_ARCHITECTURES=90-virtual "-DCMAKE_CUDA_FLAGS=-Xcicc -O0")
elif [ "$all" = yes ] && grep -qs '^CMAKE_CUDA_ARCHITECTURES:.*=90-virtual$' build/test/CMakeCache.txt; then
    target=(-UCMAKE_CUDA_ARCHITECTURES -UCMAKE_CUDA_FLAGS)
fi
timed_build test all --preset test "${target[@]}"
choose test 0 "$@"
tests/ctest.sh build/test closing "${chosen[@]}"
if [ "$sanitizers" = failed ]; then
    echo "but tests failed under the sanitizers, see above"
    exit 1
fi
if [ "$mpich" = failed ]; then
    echo "but tests failed with MPICH, see above"
    exit 1
fi
