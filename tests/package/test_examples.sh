#!/bin/bash
# The examples, installed and moved, copied from there and built as their page says: each prints what it sorted on two ranks.
set -euo pipefail
# shellcheck source=installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/installed.sh"

cp -r "$prefix/share/hypersort/examples" "$work/examples"

# prints WHAT PROGRAM TEXT: on two ranks, whose lines may come mixed.
prints()
{
    local got
    # shellcheck disable=SC2086 # MPIRUN holds options too
    got=$($MPIRUN -n 2 "$2" </dev/null | sort -s -t: -k1,1)
    [ "$got" = "$3" ] || fail "the $1 was to print
$3
but printed
$got"
}

ln -s "$prefix" "$work/a place" # with a blank in its name
quiet "the C example does not build" make -C "$work/examples/c" CC="$(cache CMAKE_C_COMPILER)" \
    PKG_CONFIG_PATH="$work/a place/${libraries#"$prefix"/}/pkgconfig:${PKG_CONFIG_PATH:-}"
prints "C example" "$work/examples/c/temperatures" "0: 10.5 at station 100
1:  7.5 at station 1
2:  6.5 at station 101
3:  3.5 at station 2
4:  2.5 at station 102
5:  0.5 at station 0"

project "$work/examples/cxx" "C++ example"
prints "C++ example" "$work/examples/cxx/build/events" "rank 0: run 0, energy 2, event 12
rank 0: run 0, energy 1, event 2
rank 0: run 0, energy 1, event 10
rank 0: run 0, energy 0, event 0
rank 1: run 1, energy 4, event 3
rank 1: run 1, energy 4, event 11
rank 1: run 1, energy 3, event 1
rank 1: run 1, energy 0, event 13"

left_out=
if command -v "$mpifort" >/dev/null; then
    project "$work/examples/fortran" "Fortran example"
    prints "Fortran example" "$work/examples/fortran/build/particles" "rank 0: cell 0, energy 0.0: cell 1, energy 0.2: cell 2, energy 1.0: cell 3, energy 1.2
rank 1: cell 5, energy 0.1: cell 6, energy 0.3: cell 7, energy 1.1: cell 8, energy 1.3"
else
    left_out+="; left out: Fortran, as there is no compiler of MPI for it"
fi

# shellcheck source=jobs/find_python.sh
. "$SOURCE/jobs/find_python.sh"
if python=$(python_with numpy,mpi4py); then
    # Each rank into a file of its own: what Python prints is mixed within lines.
    # shellcheck disable=SC2016  # for the shell of each rank
    printf '#!/bin/sh\nexec "%s" -m mpi4py "%s" >"%s/said.$OMPI_COMM_WORLD_RANK"\n' "$python" "$work/examples/python/galaxies.py" \
        "$work" >"$work/galaxies"
    chmod +x "$work/galaxies"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$prefix/share/hypersort/python prints "Python example" "$work/galaxies" ""
    [ "$(cat "$work"/said.*)" = "rank 0: group 0, mass 2, NGC 12
rank 0: group 0, mass 1, NGC 2
rank 0: group 0, mass 1, NGC 10
rank 0: group 0, mass 0, NGC 0
median mass: 1.5
rank 1: group 1, mass 4, NGC 3
rank 1: group 1, mass 4, NGC 11
rank 1: group 1, mass 3, NGC 1
rank 1: group 1, mass 0, NGC 13" ] || fail "the Python example printed $(cat "$work"/said.*)"
else
    left_out+="; left out: Python, as there is no python3 with numpy and mpi4py"
fi
echo "the examples sorted$left_out"
