#!/bin/bash
# "hypersort in ten minutes", typed as it stands: every block of the page, in its order, with an installed hypersort in $HOME. Left
# out are the first block, which builds and installs, and blocks that need NumPy or mpi4py, if these are missing.
set -uo pipefail
# shellcheck source=installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/installed.sh"

page=$SOURCE/src/examples/ten_minutes.md
home=$work/home
mkdir "$home" "$work/typed"
mv "$prefix" "$home/hypersort"
# shellcheck source=jobs/find_python.sh
. "$SOURCE/jobs/find_python.sh"
python=$(python_with numpy || true)
has_mpi4py=
if [ -n "$python" ] && "$python" -c 'import mpi4py' 2>/dev/null; then has_mpi4py=yes; fi

# The script that somebody types, with the languages' blocks as files; `skipped N` lines are what cannot be typed here.
awk -v python="$python" -v has_mpi4py="$has_mpi4py" '
    /^```/ && !inside { inside = 1; kind = substr($0, 4); if (kind ~ /^python/ || kind == "c") {
                            file = kind == "c" ? "four.c" : kind == "python" ? "events.py" : substr(kind, 8)
                            print "cat >" file " <<\"END OF BLOCK\"" }; next }
    /^```/ { if (kind ~ /^python/ || kind == "c") print "END OF BLOCK"
             if (kind == "python" && python) print "python3 events.py"
             inside = 0; next }
    inside && kind == "sh build" { next }
    inside && kind == "sh python" && !has_mpi4py { next }
    inside && !python && /events|by_run/ { next }
    inside { print }' "$page" >"$work/typed/script"
blocks=$(grep -c '^```[a-z]' "$page")
[ "$blocks" -gt 10 ] || fail "the page has only $blocks blocks"

mkdir "$work/bin"
ln -s "$(command -v "$mpicc")" "$work/bin/mpicc"
if [ -n "$python" ]; then
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >"$work/bin/python3"
    chmod +x "$work/bin/python3"
fi
launch=$(command -v "${MPIRUN%% *}")${MPIRUN#"${MPIRUN%% *}"} # by its path: the name alone is that of the script
# shellcheck disable=SC2016  # for the script
printf '#!/bin/sh\nexec %s "$@"\n' "$launch" >"$work/bin/mpirun" # more ranks than cores, whatever the machine
chmod +x "$work/bin/mpirun"
cd "$work/typed" || exit 1
if ! HOME=$home PATH=$home/hypersort/bin:$work/bin:$PATH bash -euo pipefail script >log 2>&1 </dev/null; then
    tail -40 log
    fail "what the page says cannot be typed"
fi
grep -q '^2 2 3 3$' log || { tail -20 log; fail "the C program does not sort"; }
grep -q '<svg' run.html || fail "the page of a run has no figure"
for word in "stopped by SIGUSR1" resumed; do
    grep -q "$word" log || echo "the sort had ended before it was told to stop"
done
if [ -n "$has_mpi4py" ]; then
    grep -qF 'rank 1: [2. 2. 3. 3.]' log || { tail -20 log; fail "the Python program does not sort"; }
    echo "the page can be typed"
else
    echo "the page can be typed, but for Python, whose numpy and mpi4py are not both here"
fi
