#!/bin/bash
# What the installed tree has for Slurm, under a Slurm of this test's own (slurm.sh): the C example on two nodes of two tasks, and a
# script of jobs/, which finds the command on PATH.
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

seed=${HYPERSORT_SEED:-$RANDOM}
echo "seed $seed"
keys some 12345 "$seed"
quiet "the script of jobs/ failed" env -u HYPERSORT PATH="$prefix/bin:$PATH" OPTIONS="--type u64 --engine host" sbatch --wait \
    "${small[@]}" --output=log --export=ALL,IN=some.u64,OUT=some.out "$prefix/share/hypersort/jobs/single-node.sbatch"
numbers <some.out | cmp - some.sorted || { cat log; fail "the script of jobs/ did not sort"; }
echo "the job printed the twelve readings of four tasks, and a script of jobs/ sorted"
