#!/bin/bash
# What the Python package is made of: the header's lists, structs and functions; errors of one rank; arrays that say they lie in
# GPU memory; how programs end; libraries that do not fit; the package as CMake and setuptools install it.
set -uo pipefail
# shellcheck source=tests/support/python.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/python.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" "$SOURCE/tests/python/python_abi.py" "$BUILD/include" mpicc || fail "python_abi.py"
for count in 1 3; do
    ranks "$count" python_errors.py || fail "python_errors.py on $count ranks"
    ranks "$count" python_interface.py || fail "python_interface.py on $count ranks"
done

# ends CODE RANKS HOW [WORD...]: python_ends.py ends with CODE, 0: and says nothing.
ends()
{
    local code=0 said
    # shellcheck disable=SC2086  # MPIRUN is words
    said=$(timeout 100 $MPIRUN --quiet -n "$2" "$python" $module "$SOURCE/tests/python/python_ends.py" "${@:3}" 2>&1 </dev/null) ||
        code=$?
    if [ "$code" != "$1" ] || { [ "$1" = 0 ] && [ -n "$said" ]; }; then
        fail "python_ends.py ${*:3} ended with $code, not $1: $said"
    fi
}
module=
ends 0 3 plain
ends 0 3 finalize
ends 0 1 before
ends 1 3 late
module="-m mpi4py"
ends 0 3 plain
ends 1 3 raises
module=

# README's example, each rank into a file of its own: mpirun mixes what ranks print.
# shellcheck disable=SC2016  # the backquotes are Markdown's, the variables the rank's
sed -n '/^```python$/,/^```$/p' "$SOURCE/README.md" | sed '/^```/d' >"$work/example.py"
# shellcheck disable=SC2086,SC2016  # MPIRUN is words
$MPIRUN --quiet -n 2 sh -c '"$0" "$1/example.py" >"$1/said.$OMPI_COMM_WORLD_RANK"' "$python" "$work" </dev/null
if [ "$(cat "$work"/said.*)" != "$(printf '%s\n' '-1.0 -1.0 0.0 0.0' '2.0 2.0 3.0 3.0')" ]; then
    fail "README's example printed $(cat "$work"/said.*)"
fi

# A library that lies about its version, one of another MPI, and one of a second copy of the same MPI.
"${CC:-cc}" -shared -fPIC -Wall -Werror "$SOURCE/tests/python/fake_library.c" -o "$work/fake.so" \
    -Wl,--no-as-needed "$library" -Wl,-rpath,"$BUILD" || fail "the fake library"
version=$("$python" -c 'import hypersort; a, b, c = hypersort.__version__.split("."); print(int(a) * 10000 + int(b) * 100 + int(c))')
same=$(PYTHONPATH='' "$python" -c 'import mpi4py; mpi4py.rc.initialize = False
from mpi4py import MPI; print(MPI.Get_library_version().strip("\0"))')
export HYPERSORT_LIBRARY=$work/fake.so
FAKE_VERSION=$((version + 100)) ends 0 2 refused ARGUMENT "this package is of hypersort"
FAKE_VERSION=$version FAKE_MPI="Other MPI 9.9" ends 0 2 refused MPI "fake.so uses Other MPI 9.9: both must use one MPI"
FAKE_VERSION=$version FAKE_MPI=$same ends 0 2 refused MPI "from another place"
HYPERSORT_LIBRARY=$work/none.so ends 0 2 refused IO "set HYPERSORT_LIBRARY"
HYPERSORT_LIBRARY=$(mpi_of "$library") ends 0 2 refused ARGUMENT "has no hsort_version()"
unset HYPERSORT_LIBRARY

# installed FOLDER: the package there says its version, and sorts.
installed()
{
    local said
    said=$(PYTHONPATH=$1 "$python" -c 'import hypersort
print(hypersort.__file__, hypersort.__version__, *hypersort.sort([3, 1, 2]))' 2>&1)
    if [ "$said" != "$1/hypersort/__init__.py $(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$BUILD/CMakeCache.txt") 1 2 3" ]; then
        fail "installed at $1: $said"
    fi
}
# Moved as a whole, it still finds the library; so does a program in the source tree that is told where it is.
cp -r "$BUILD/installed" "$work/prefix"
installed "$work/prefix/share/hypersort/python"
HYPERSORT_LIBRARY=$library installed "$SOURCE/src/python"
cd "$BUILD" || exit 1
HYPERSORT_LIBRARY=. installed "$SOURCE/src/python"
LD_LIBRARY_PATH=.:${LD_LIBRARY_PATH:-} installed "$SOURCE/src/python"
HYPERSORT_LIBRARY=${library##*/} installed "$SOURCE/src/python"
cd "$work" || exit 1
# In lib of Python's prefix, here a made-up one.
mkdir -p "$work/python/lib" && ln -s "$library" "$work/python/lib/$(readlink "$library")"
said=$(PYTHONPATH=$SOURCE/src/python "$python" -c "import sys; sys.prefix = '$work/python'
import hypersort; print(*hypersort.sort([3, 1, 2]))" 2>&1)
[ "$said" = "1 2 3" ] || fail "a library in Python's prefix: $said"
# licensed FOLDER: so is the package that pip installed there.
licensed()
{
    local found # with setuptools 77 and later in another folder than before
    found=$(find "$1"/hypersort-*.dist-info -name LICENSE)
    cmp "$found" "$SOURCE/LICENSE" || fail "installed at $1: no LICENSE"
}
pip_install()
{
    PYTHONPATH='' "$python" -m pip -v install --no-build-isolation --no-deps --no-index --no-compile --target "$1" "$2" \
        >"$work/log" 2>&1 || fail "pip install $2: $(cat "$work/log")"
    # What is deprecated is an error in some later version, which pip would fetch.
    ! grep -A 9 SetuptoolsDeprecationWarning "$work/log" || fail "pip install $2: setuptools deprecates something"
    licensed "$1"
}
# By pip, from the tree, with the library in HYPERSORT_LIBRARY or beside the package; and from a source archive.
if "$python" -c 'import setuptools, pip; assert int(setuptools.__version__.split(".")[0]) >= 62' 2>/dev/null; then
    mkdir -p "$work/tree/src" && cp "$SOURCE/LICENSE" "$work/tree" # pip builds in the tree
    cp -r "$SOURCE/src/python" "$SOURCE/src/hypersort.h" "$work/tree/src"
    pip_install "$work/pip" "$work/tree/src/python"
    [ ! -e "$work/tree/src/python/LICENSE" ] || fail "pip install leaves a LICENSE in the tree"
    (cd "$work/tree/src/python" && PYTHONPATH='' "$python" -c 'from setuptools import build_meta; build_meta.build_sdist("../..")') \
        >"$work/log" 2>&1 || fail "the source archive: $(cat "$work/log")"
    pip_install "$work/archive" "$work"/tree/hypersort-*.tar.gz
    HYPERSORT_LIBRARY=$library installed "$work/archive"
    HYPERSORT_LIBRARY=$library installed "$work/pip"
    ln -s "$library" "$work/pip/hypersort/$(readlink "$library")"
    installed "$work/pip"
else
    echo "left out: pip install, as $python has no pip, or no setuptools of 62 or later"
fi

echo "$failures failures"
[ "$failures" = 0 ]
