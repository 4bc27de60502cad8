#!/bin/bash
# The modulefile of the installed and moved hypersort, with Lmod: the command and the library are there while it is loaded. And the
# recipes for Spack and EasyBuild are Python.
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
cat >"$work/shell" <<END
. "$lmod/init/bash"
module use "$prefix/share/hypersort/modulefiles"
module load hypersort || exit 1
[ "\$(command -v hypersort)" = "$prefix/bin/hypersort" ] || { echo "the command is not on PATH"; exit 1; }
[ "\$HYPERSORT_ROOT" = "$prefix" ] || { echo "HYPERSORT_ROOT is \$HYPERSORT_ROOT"; exit 1; }
hypersort --version || exit 1
"$mpicc" "$work/example.c" \$(pkg-config --cflags --libs hypersort) -o "$work/example" || exit 1
$MPIRUN -n 2 "$work/example" | sort >"$work/printed"
module unload hypersort
if command -v hypersort; then echo "the command stays on PATH"; exit 1; fi
if "$work/example"; then echo "the library stays on the loader's path"; exit 1; fi
exit 0
END
quiet "the module is of no use" env -u HYPERSORT_ROOT bash --norc "$work/shell"
[ "$(cat "$work/printed")" = "$(printf '%s\n' '-1 -1 0 0' '2 2 3 3')" ] || fail "the example printed $(cat "$work/printed")"
echo "Lmod loaded the module, and took it back"
