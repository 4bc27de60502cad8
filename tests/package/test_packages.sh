#!/bin/bash
# The packages of CPack. The .tar.gz works where it is unpacked. The .deb names what it needs, and works in a root of its
# own; as root, and if no hypersort is installed, it is also installed for real, used by programs that look in the usual places, and
# removed without a trace.
set -euo pipefail
# shellcheck source=installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/installed.sh"

command -v dpkg-shlibdeps >/dev/null || skip "there is no dpkg-dev to make a .deb"
# One at a time on a machine: another tree's test may be installing its own.
exec 9>"${TMPDIR:-/tmp}/hypersort-test-packages.lock"
flock 9

packages=$work/packages
quiet "no packages are made" cpack -G "DEB;TGZ" --config "$BUILD/CPackConfig.cmake" -B "$packages"
deb=$(echo "$packages"/*.deb)
write_example "$work/example.c"

# uses WHAT PREFIX: the command and the library in PREFIX are of use.
uses()
{
    local lib
    lib=$(dirname "$(find "$2" -name libhypersort.so)")
    "$2/bin/hypersort" --version >/dev/null || fail "$1: the command does not run"
    "$mpicc" -I"$2/include" "$work/example.c" -L"$lib" -lhypersort "-Wl,-rpath,$lib" -o "$work/uses"
    sorts "$1" "$work/uses"
}

mkdir "$work/unpacked"
tar -xzf "$packages"/*.tar.gz -C "$work/unpacked" --strip-components=1
uses ".tar.gz" "$work/unpacked"

depends=$(dpkg-deb -f "$deb" Depends)
for package in libc6 libgomp1 libhwloc; do
    [[ "$depends" = *"$package"* ]] || fail "the .deb depends on $depends, but not on $package"
done
contents=$(dpkg-deb -c "$deb")
for file in copyright changelog.gz changelog.Debian.gz; do
    grep -qE "^-rw-r--r-- root/root .* \./usr/share/doc/hypersort/$file\$" <<<"$contents" || fail "the .deb has no $file"
done
dpkg-deb -x "$deb" "$work/root"
uses ".deb" "$work/root/usr"

# What the description says of Python is so, where NumPy and mpi4py, which the .deb suggests, are there.
python=
if [ -n "$(cache HYPERSORT_PYTHON_DIR)" ]; then
    [[ "$(dpkg-deb -f "$deb" Suggests)" = *python3-mpi4py*python3-numpy* ]] || fail "the .deb suggests $(dpkg-deb -f "$deb" Suggests)"
    if /usr/bin/python3 -c 'import numpy, mpi4py' 2>/dev/null; then
        python=/usr/bin/python3
    else
        echo "not tested: the package of the .deb; /usr/bin/python3 has not both NumPy and mpi4py"
    fi
fi
# imports ROOT: Python imports the package where the description says that it lies, below ROOT.
imports()
{
    local place
    place=$1$(dpkg-deb -f "$deb" Description | sed -n 's/^ *PYTHONPATH=\(.*\)\.$/\1/p')
    [ -z "$python" ] || env -u HYPERSORT_LIBRARY PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$place" "$python" -c "
import hypersort, numpy
from mpi4py import MPI
assert hypersort.__file__.startswith('$place/'), hypersort.__file__
assert hypersort.sort(numpy.array([3, 1, 2]), MPI.COMM_WORLD).tolist() == [1, 2, 3]" || fail "the package in '$place' is of no use"
}
imports "$work/root"

# dpkg COMMAND: apt may be at work as well, and keeps the lock for a while.
dpkg_now()
{
    local tries
    for tries in $(seq 60); do
        if dpkg "$@" >"$work/log" 2>&1; then return; fi
        grep -qi 'lock' "$work/log" || break
        sleep 1
    done
    cat "$work/log"
    fail "dpkg $1 failed, after $tries tries"
}
in_usual_places()
{
    hash -r
    [ "$(command -v hypersort)" = /usr/bin/hypersort ] || fail "hypersort is not on PATH"
    hypersort --version >/dev/null
    read -ra flags <<<"$(pkg-config --cflags --libs hypersort)"
    gcc "$work/example.c" "${flags[@]}" -o "$work/usual"
    sorts "the installed .deb" "$work/usual"
    imports ""
}
if [ "$(id -u)" != 0 ]; then
    echo "the .tar.gz and the .deb are of use; only root can install"
elif [ -e /usr/bin/hypersort ] || dpkg -s hypersort >/dev/null 2>&1; then
    echo "the .tar.gz and the .deb are of use; a hypersort that is installed here was left alone"
else
    trap 'dpkg --purge hypersort >/dev/null 2>&1; rm -rf "$work"' EXIT
    dpkg_now -i "$deb"
    mapfile -t files < <(dpkg -L hypersort | grep hypersort)
    [ ${#files[@]} -gt 10 ] || fail "the .deb installed ${files[*]} only"
    in_usual_places
    dpkg_now --purge hypersort
    for file in "${files[@]}"; do
        [ ! -e "$file" ] || fail "$file stays when the .deb is removed"
    done
    if [[ "$(/sbin/ldconfig -p)" = *libhypersort* ]]; then fail "the loader still knows libhypersort"; fi
    echo "the .tar.gz and the .deb are of use; the .deb was installed, used and removed"
fi
