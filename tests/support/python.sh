# shellcheck shell=bash
# For tests of the Python package; sourced. Sets `python` to a python3 with numpy and mpi4py whose MPI is that of the library,
# or skips the test. PYTHONPATH leads to the installed package, which finds the library.

package=$BUILD/installed/share/hypersort/python
library=$BUILD/libhypersort.so
export PYTHONPATH=$package:$SOURCE/tests/python PYTHONDONTWRITEBYTECODE=1

skip()
{
    echo "skipped: $1"
    exit 77
}

# Print the libmpi that a library is linked with.
mpi_of() { ldd "$1" | sed -n 's/.*libmpi\.so[^ ]* => \([^ ]*\) .*/\1/p' | xargs -r readlink -f; }

if grep -q '^CMAKE_C_FLAGS.*-fsanitize' "$BUILD/CMakeCache.txt"; then
    skip "Python cannot load an instrumented library"
fi
[ -d "$package" ] || skip "no Python package is installed in $package"
# shellcheck source=jobs/find_python.sh
. "$SOURCE/jobs/find_python.sh"
if ! python=$(python_with numpy,mpi4py); then
    skip "no python3 with numpy and mpi4py"
fi
extension=$(PYTHONPATH='' "$python" -c 'import mpi4py; mpi4py.rc.initialize = False
from mpi4py import MPI; print(MPI.__file__)')
theirs=$(mpi_of "$extension") ours=$(mpi_of "$library")
if [ -n "$theirs" ] && [ "$theirs" != "$ours" ]; then
    skip "mpi4py of $python uses $theirs, and the library $ours"
fi

failures=0
fail()
{
    echo "failed: $1"
    failures=$((failures + 1))
}

# ranks RANKS PROGRAM ARGUMENT...: run a program of tests/python on that many ranks; if one ends by an exception, all end.
ranks()
{
    # shellcheck disable=SC2086  # MPIRUN is words
    timeout 280 $MPIRUN --quiet -n "$1" "$python" -m mpi4py "$SOURCE/tests/python/$2" "${@:3}" </dev/null
}
