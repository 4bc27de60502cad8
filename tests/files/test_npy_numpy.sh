#!/bin/bash
# The command against NumPy: its files are read right or refused, and it reads ours.
set -uo pipefail

python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "skipped: $python has no numpy"
    exit 77
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" && "$python" "$here/npy_numpy.py"
