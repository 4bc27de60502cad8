#!/bin/bash
# The Slurm example of the installed tree, under a Slurm of this test's own (slurm.sh): the C example on two nodes of two tasks.
set -euo pipefail
# shellcheck source=tests/slurm/slurm_test.sh
. "$(dirname "${BASH_SOURCE[0]}")/slurm_test.sh"
# shellcheck source=../package/installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/../package/installed.sh"

command -v pkg-config >/dev/null || skip "there is no pkg-config"
cp -r "$prefix/share/hypersort/examples" .
quiet "the C example does not build" make -C examples/c PKG_CONFIG_PATH="$libraries/pkgconfig:${PKG_CONFIG_PATH:-}"
quiet "the job failed" sbatch --wait "${small[@]}" --output=log --export=ALL,PROGRAM="$PWD/examples/c/temperatures" \
    examples/slurm/temperatures.sbatch
[ "$(grep -c 'at station' log)" = 12 ] || { cat log; fail "the job was to print twelve readings"; }
sort -n log | grep -m 1 -qx '0: 10.5 at station [0-9]*' || { cat log; fail "the hottest reading is not the first"; }
echo "the job printed the twelve readings of four tasks"
