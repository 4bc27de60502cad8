#!/bin/bash
# Find what hypersort is built and run with, and install through apt-get what is missing.
#
#   jobs/setup.sh build|tests      alone: set up, nothing else; `tests` adds what only the tests need
#   . jobs/setup.sh build|tests    in a script: also sets ROOT, MPIRUN, CORES and PYTHON, and defines build(),
#                                  build_bench(), name_once(), machine_name(), results_in(), results_of(), about_machine() and commit()
#
# What is there already is left alone. If nothing is missing, apt-get is not called, so this works without a network.
# If something is missing and cannot be installed, it names one command to type and exits with 4.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CORES=$(nproc)
# shellcheck source=find_python.sh
. "$ROOT/jobs/find_python.sh"

have() { command -v "$1" >/dev/null; }
have_daemon() { PATH=$PATH:/usr/sbin:/sbin have "$1"; }

# Whether the C compiler finds header $1, also below CMAKE_PREFIX_PATH, where CMake will look for it.
have_header()
{
    local prefixes=${CMAKE_PREFIX_PATH:-}
    echo "#include <$1>" | CPATH=${prefixes:+${prefixes//:/\/include:}/include:}${CPATH:-} \
        "${CC:-gcc}" -fsyntax-only -x c - 2>/dev/null
}

# nvcc compiles C++ by gcc, and without that CMake takes it for no compiler.
have_nvcc() { have "${CUDACXX:-nvcc}" || [ -x /usr/local/cuda/bin/nvcc ]; }
compiles_cxx() { echo 'int main() { return 0; }' | "${CUDAHOSTCXX:-gcc}" -fsyntax-only -x c++ - 2>/dev/null; }

cmake_is_new() { printf '3.25\n%s\n' "$(cmake --version | sed -n '1s/.* //p')" | sort -CV; }

has_libfuzzer()
{
    echo 'int LLVMFuzzerTestOneInput() { return 0; }' | clang -fsanitize=fuzzer -o /dev/null -x c - 2>/dev/null
}

# The packages whose content is missing, by what is looked for and not by what dpkg thinks.
missing_packages()
{
    if ! { have "${CC:-gcc}" && have_header stdio.h; }; then echo gcc libc6-dev; fi
    if have_nvcc && ! compiles_cxx; then echo g++; fi
    if ! have make && ! have ninja; then echo make; fi
    if ! have cmake; then echo cmake; fi
    if ! have mpicc; then echo libopenmpi-dev; fi
    if ! have mpirun; then echo openmpi-bin; fi
    if ! have_header hwloc.h; then echo libhwloc-dev; fi
    if [ "$1" = tests ] && ! python_with numpy >/dev/null; then echo python3-numpy; fi
}

# give_up WHY [COMMAND]
give_up()
{
    echo "setup: $1${2:+. Type:}" >&2
    if [ $# -gt 1 ]; then
        echo "    $2" >&2
    fi
    exit 4
}

install_packages()
{
    local as_root=()
    if ! have apt-get; then
        give_up "missing, and there is no apt-get to install it: what Debian calls $*"
    fi
    if [ "$(id -u)" != 0 ]; then
        as_root=(sudo -n)
        if ! sudo -n true 2>/dev/null; then
            give_up "missing: $*" "sudo apt-get update && sudo apt-get install -y $*"
        fi
    fi
    echo "setup: installing $*" >&2
    # A list that cannot be fetched (a third party's, or no network) must not stop what the other lists can give.
    "${as_root[@]}" apt-get update -qq >&2 || true
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qqy --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >&2 ||
        give_up "apt-get could not install $*" "sudo apt-get update && sudo apt-get install -y $*"
}

# Install what only a few tests need, and not every distribution has: without it these tests are skipped.
install_for_some_tests()
{
    if ! have smpirun; then
        (install_packages libsimgrid-dev) </dev/null >/dev/null 2>&1 || echo "setup: no SimGrid to be had" >&2
    fi
    # For root only: the tests of Slurm need root, and on somebody's own machine these packages would start services.
    if [ "$(id -u)" = 0 ] && ! { have_daemon slurmctld && have_daemon slurmd && have_daemon munged && have_daemon ip; }; then
        (install_packages slurm-wlm munge iproute2) </dev/null >/dev/null 2>&1 || echo "setup: no Slurm to be had" >&2
    fi
    if ! python_with numpy,mpi4py >/dev/null; then
        (install_packages python3-mpi4py python3-numpy) </dev/null >/dev/null 2>&1 || echo "setup: no mpi4py to be had" >&2
    fi
    # If it is there, the build finds it.
    if ! have h5pcc; then
        (install_packages libhdf5-openmpi-dev) </dev/null >/dev/null 2>&1 || echo "setup: no parallel HDF5 to be had" >&2
    fi
    if have h5pcc && ! python_with numpy,h5py >/dev/null; then
        (install_packages python3-h5py python3-numpy) </dev/null >/dev/null 2>&1 || echo "setup: no h5py to be had" >&2
    fi
    # What the tests of packages and of Fortran need.
    if ! { mpifort --version && have lintian; } >/dev/null 2>&1; then
        (install_packages gfortran lintian) </dev/null >/dev/null 2>&1 || echo "setup: no gfortran or lintian to be had" >&2
    fi
    # What the tests of the man page, of completion in shells, and of the Python package by pip need.
    if ! { have man && have zsh && python_with numpy,setuptools,pip >/dev/null; }; then
        (install_packages man-db zsh python3-pip python3-setuptools) </dev/null >/dev/null 2>&1 ||
            echo "setup: no man, zsh or pip to be had" >&2
    fi
    # The tests of mpi/ are run with MPICH, too. Debian keeps both; mpicc and mpirun stay Open MPI's.
    if ! { have mpicc.mpich && have mpiexec.mpich; }; then
        (install_packages mpich libmpich-dev) </dev/null >/dev/null 2>&1 || echo "setup: no MPICH to be had" >&2
    fi
    # For root only: it changes the shells of everybody on the machine.
    if [ "$(id -u)" = 0 ] && [ ! -e /usr/share/lmod ]; then
        (install_packages lmod) </dev/null >/dev/null 2>&1 || echo "setup: no Lmod to be had" >&2
    fi
    if ! has_libfuzzer; then
        (install_packages clang libclang-rt-dev) </dev/null >/dev/null 2>&1 || echo "setup: no libFuzzer to be had" >&2
    fi
    hash -r
}

set_up()
{
    local missing
    # shellcheck disable=SC2046 # one word per package is what is wanted
    set -- "${1:-}" $(missing_packages "${1:-}")
    if [ $# -gt 1 ]; then
        install_packages "${@:2}" </dev/null
        hash -r
        missing=$(missing_packages "$1" | xargs)
        if [ -n "$missing" ]; then
            give_up "installed ${*:2}, but still cannot find what these hold: $missing"
        fi
    fi
    if [ "$1" = tests ]; then
        install_for_some_tests
    fi
    cmake_is_new || give_up "$(cmake --version | head -1) is too old, 3.25 is needed" \
        "python3 -m pip install --user 'cmake>=3.25'"
    mpirun --version 2>/dev/null | grep -q 'Open MPI' ||
        give_up "$(command -v mpirun) is not Open MPI's: put Open MPI's first on PATH"
}

# build DIRECTORY TARGETS CMAKE-OPTION...: configure build/DIRECTORY and build what the words of TARGETS name. The log is shown where it
# fails.
build()
{
    local directory=build/$1 targets
    read -ra targets <<<"$2"
    echo "building $directory, log in $directory.log" >&2
    mkdir -p "$ROOT/build"
    if ! (cd "$ROOT" && cmake -B "$directory" "${@:3}" && cmake --build "$directory" --target "${targets[@]}" -j "$CORES") \
        >"$ROOT/$directory.log" 2>&1; then
        tail -n 60 "$ROOT/$directory.log" >&2
        echo "building $directory failed; the whole log: $ROOT/$directory.log" >&2
        return 70
    fi
}

# What a measurement has to name, one "word: value" per line.
about_machine()
{
    local gpus
    gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null |
        sort | uniq -c | sed 's/^ *//' | paste -sd,) || true
    echo "date:   $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "gpus:   ${gpus:-none}"
    echo "driver: $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -1 || true)"
    echo "cuda:   $("${CUDACXX:-nvcc}" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p' || true)"
    echo "mpi:    $(mpirun --version | head -1)"
    echo "cpu:    $CORES x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
    echo "commit: $(commit)"
}

# Rows of several `hypersort bench --form csv`, each of which writes the seed and the names of the columns: the first one's are
# enough. Rows are written as they come: some awks wait for more.
name_once()
{
    local row named=
    while IFS= read -r row; do
        if [[ $row = '# seed:'* || $row = ranks,* ]]; then
            [[ $named != *"<$row>"* ]] || continue
            named+="<$row>"
        fi
        printf '%s\n' "$row"
    done
}

# Build the benchmark of the kernels, and set BENCH to it.
build_bench()
{
    build release bench_ladder --preset release
    BENCH=$ROOT/build/release/tests/bench_ladder
    if [ ! -x "$BENCH" ]; then
        give_up "this build has no bench_ladder; it takes the CUDA Toolkit"
    fi
}

# What differs from the commit, results and Markdown apart: an earlier measurement may have rewritten those.
changed_files() { git -C "$ROOT" status --porcelain -- . ':!jobs/results' ':!*.md'; }

# The commit of this tree; COMMIT in the environment names it where the tree came without its history.
commit()
{
    local name=
    # In a folder inside another repository, git would name the commit of that repository.
    if [ "$(git -C "$ROOT" rev-parse --show-prefix 2>/dev/null || echo none)" = "" ]; then
        name=$(git -C "$ROOT" describe --always --abbrev=12 2>/dev/null) || name=
    fi
    if [ -z "$name" ]; then
        echo "${COMMIT:-unknown}"
    elif [ -n "$(changed_files)" ]; then
        echo "$name-dirty"
    else
        echo "$name"
    fi
}

# why_no_result BUILD: why what build/BUILD measures is no result of a commit; nothing if it is one.
why_no_result()
{
    local built folder=build/$1
    built=$(sed -n 's/^#define BUILD_COMMIT "\(.*\)"/\1/p' "$ROOT/$folder/private/build_info.h" 2>/dev/null || true)
    case $(commit) in
    unknown) echo "the tree has no history, and COMMIT is not set" ;;
    *-dirty) echo "the tree differs from its commit: $(changed_files 2>/dev/null | xargs)" ;;
    "$built") ;;
    *) echo "the tree is of commit $(commit), $folder of ${built:-none}" ;;
    esac
}

# The folder of this machine's results: machine_name [GPUS], by default all of them; `host` without one.
machine_name()
{
    local names
    names=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null || true)
    if [ -z "$names" ]; then
        echo host
        return
    fi
    echo "$(head -1 <<<"$names" | sed 's/^NVIDIA //' | tr 'A-Z /' 'a-z--')x${1:-$(wc -l <<<"$names")}"
}

# The file for the rows of a table that build/BUILD measures: results_in MACHINE TABLE BUILD. It is jobs/results/MACHINE/TABLE.csv, and
# replaces what was measured there before. If the rows are of no commit, it is build/results/MACHINE/TABLE.csv, and stderr says why.
results_in()
{
    local why folder=$ROOT/jobs/results
    why=$(why_no_result "$3")
    if [ -n "$why" ]; then
        echo "no result for jobs/results: $why" >&2
        folder=$ROOT/build/results
    fi
    mkdir -p "$folder/$1"
    echo "$folder/$1/$2.csv"
}

# The same for what build/release measures on this machine's GPUs: results_of TABLE [GPUS], by default all GPUs. Without a GPU it is
# build/results/host/TABLE.csv.
results_of()
{
    local machine
    machine=$(machine_name "${2:-}")
    if [ "$machine" != host ]; then
        results_in "$machine" "$1" release
    else
        mkdir -p "$ROOT/build/results/host"
        echo "$ROOT/build/results/host/$1.csv"
    fi
}

set_up "${1:-}"
PYTHON=$(python_with numpy || echo python3)
MPIRUN=(mpirun --oversubscribe --bind-to none) # more ranks than cores are welcome; hypersort chooses the cores itself
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
if ! have ssh && ! have rsh; then
    export OMPI_MCA_plm=isolated # Open MPI wants a remote shell even where it will not use one
fi
if ! have nvcc && [ -x /usr/local/cuda/bin/nvcc ]; then
    export CUDACXX=/usr/local/cuda/bin/nvcc # where NVIDIA's packages put it without adding it to PATH
fi
if ! have make; then
    export CMAKE_GENERATOR=Ninja
fi
export ROOT CORES MPIRUN PYTHON
