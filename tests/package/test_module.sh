#!/bin/bash
# The modulefile of the installed and moved hypersort, with Lmod: the command, the library, the Python package and the completion for
# bash are there while it is loaded. And the recipes for Spack and EasyBuild are Python.
set -euo pipefail
# shellcheck source=installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/installed.sh"

# shellcheck source=jobs/find_python.sh
. "$SOURCE/jobs/find_python.sh"
if python=$(python_with sys); then
    for recipe in "$SOURCE"/jobs/packaging/*.py "$SOURCE"/jobs/packaging/*.eb; do
        quiet "$recipe is no Python" "$python" -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' "$recipe"
    done
fi

lmod=
for place in "${LMOD_PKG:-}" /usr/share/lmod/lmod /opt/apps/lmod/lmod; do
    if [ -f "$place/init/bash" ]; then lmod=$place; fi
done
[ -n "$lmod" ] || skip "there is no Lmod to load the module"

# In a shell of its own: Lmod does not go with -eu, and its settings should not stay.
write_example "$work/example.c"
python=:
if [ -n "$(cache HYPERSORT_PYTHON_DIR)" ]; then
    python=$(python_with numpy,mpi4py) || { echo "not tested: the package; there is no Python with NumPy and mpi4py"; python=:; }
fi
cat >"$work/shell" <<END
. "$lmod/init/bash"
module use "$prefix/share/hypersort/modulefiles"
module load hypersort || exit 1
[ "\$(command -v hypersort)" = "$prefix/bin/hypersort" ] || { echo "the command is not on PATH"; exit 1; }
[ "\$HYPERSORT_ROOT" = "$prefix" ] || { echo "HYPERSORT_ROOT is \$HYPERSORT_ROOT"; exit 1; }
hypersort --version || exit 1
"$mpicc" "$work/example.c" \$(pkg-config --cflags --libs hypersort) -o "$work/example" || exit 1
$MPIRUN -n 2 "$work/example" | sort >"$work/printed"
cd "$work" # away from other packages of that name
"$python" -c 'import hypersort; assert hypersort.__file__.startswith("$prefix/")' || { echo "the package is not on PYTHONPATH"; exit 1; }
[ -f "\${XDG_DATA_DIRS%%:*}/bash-completion/completions/hypersort" ] || { echo "XDG_DATA_DIRS is \$XDG_DATA_DIRS"; exit 1; }
[ "\${XDG_DATA_DIRS#*:}" = "\$others" ] || { echo "other folders of XDG_DATA_DIRS are not \$others: \$XDG_DATA_DIRS"; exit 1; }
module unload hypersort
[ -z "\$PYTHONPATH" ] || { echo "PYTHONPATH stays \$PYTHONPATH"; exit 1; }
[ "\$XDG_DATA_DIRS" = "\$others" ] || { echo "XDG_DATA_DIRS stays \$XDG_DATA_DIRS"; exit 1; }
if command -v hypersort; then echo "the command stays on PATH"; exit 1; fi
if "$work/example"; then echo "the library stays on the loader's path"; exit 1; fi
exit 0
END
# Where XDG_DATA_DIRS is not set, the folders that this means stay in it.
for others in /some/share:/other/share "" unset; do
    case $others in
        unset) given=(-u XDG_DATA_DIRS) ;;
        *) given=("XDG_DATA_DIRS=$others") ;;
    esac
    [[ $others == /* ]] || others=/usr/local/share:/usr/share
    quiet "the module is of no use" env -u HYPERSORT_ROOT -u PYTHONPATH "${given[@]}" others=$others bash --norc "$work/shell"
    [ "$(cat "$work/printed")" = "$(printf '%s\n' '-1 -1 0 0' '2 2 3 3')" ] || fail "the example printed $(cat "$work/printed")"
done
echo "Lmod loaded the module, and took it back"
