#!/bin/bash
# The command against NumPy: NumPy's files are read right or refused, and NumPy reads ours.
set -uo pipefail

# shellcheck source=jobs/find_python.sh
. "$SOURCE/jobs/find_python.sh"
if ! python=$(python_with numpy); then
    echo "skipped: no python3 with numpy"
    exit 77
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Files that are refused: as in support/cli.sh.
export OMPI_MCA_odls_base_sigkill_timeout=0 OMPI_MCA_ess_singleton_isolated=1
cd "$work" && "$python" "$here/npy_numpy.py"
