#!/bin/bash
# Measure how long an argsort of u64 takes on two ranks of this machine without a GPU, beside our own sort of the same keys and beside
# two packages of PyPI that sort over MPI with an index: virgodc and mpsort (jobs/peers.py).
#
#   jobs/peers.sh [--python PYTHON] [KEYS]   default 2^24 = 16777216; PYTHON has numpy and mpi4py, and the two if they are to be measured
#   jobs/peers.sh --from CSV                 only the table of src/measured.md, from a CSV that is there
#
# To get a Python for it, outside of the tree, if pip finds the packages:
#   python3 -m venv PLACE && PLACE/bin/pip install numpy mpi4py virgodc mpsort
#
# Writes every row to jobs/results/host/peers.csv, or to build/results/host/peers.csv if the tree differs from its commit. In the
# environment: RANKS, the number of ranks (2). Exits with 1 if a result is wrong.
set -euo pipefail

jobs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --from ]; then
    exec python3 "$jobs/peers_table.py" "${2:?"a CSV has to follow"}" "$jobs/../src/measured.md"
fi
python=
if [ "${1:-}" = --python ]; then
    python=${2:?"a Python has to follow"}
    shift 2
fi

# shellcheck source=setup.sh
. "$jobs/setup.sh" build
python=${python:-$PYTHON}
if ! "$python" -c 'import numpy, mpi4py' 2>/dev/null; then
    give_up "$python cannot import numpy and mpi4py" "python3 -m venv PLACE && PLACE/bin/pip install numpy mpi4py virgodc mpsort"
fi
build host hypersort_shared --preset host
results=$(results_in host peers host)
status=0
{
    about_machine | sed 's/^/# /'
    "$python" - <<'PYTHON'
from importlib.metadata import PackageNotFoundError, version
names = []
for name in ("numpy", "mpi4py", "virgodc", "mpsort"):
    try:
        names.append(f"{name} {version(name)}")
    except PackageNotFoundError:
        pass
print("# python:", ", ".join(names))
PYTHON
    "${MPIRUN[@]}" -n "${RANKS:-2}" "$python" "$jobs/peers.py" "$ROOT/build/host/libhypersort.so" "${1:-16777216}" 5 \
        uniform,few,sorted || status=1
} >"$results"
if [[ $results = "$ROOT"/jobs/results/* ]]; then
    python3 "$jobs/peers_table.py" "$results" "$ROOT/src/measured.md"
fi
echo "every row: $results" >&2
exit "$status"
