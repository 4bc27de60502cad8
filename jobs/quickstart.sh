#!/bin/bash
# From a fresh clone to a real file, sorted by four MPI ranks and checked.
#
#   jobs/quickstart.sh [FILE [TYPE]]
#
# FILE is .npy, or raw little-endian keys of TYPE (u32, f64 ...). Without FILE: the Morton keys of the world's
# coastline if the project's data folder lies beside the tree, otherwise the words of this machine's largest library.
set -euo pipefail

input=${1:+$(realpath -m -- "$1")} # before anything changes the folder
type=${2:-}
# shellcheck source=setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh" build

out=$ROOT/build/quickstart
mkdir -p "$out"

# The 8-byte words of the largest shared library: every Linux machine has some, and they are real keys: skewed, full of
# repeats, with long sorted stretches.
library_words()
{
    local library
    # find fails if one of the folders does not exist, or on a broken link.
    library=$({ find -L /usr/lib /usr/lib64 -type f -name 'lib*.so*' -printf '%s\t%p\n' 2>/dev/null || true; } |
        sort -rn | sed -n '1s/^[0-9]*\t//p')
    head -c "$(($(stat -Lc %s "$library") / 8 * 8))" "$library" >"$out/library_words.u64"
    echo "input: the 8-byte words of $library" >&2
}

if [ -z "$input" ]; then
    input=$ROOT/../shared/data/coastline_morton_u64.npy
    if [ ! -f "$input" ]; then
        input=$out/library_words.u64
        type=u64
        library_words
    fi
fi
sorted=$out/sorted_$(basename "$input")
type_option=(${type:+--type "$type"})

build release hypersort --preset release
hypersort=("${MPIRUN[@]}" -n 4 "$ROOT/build/release/hypersort")
"${hypersort[@]}" sort "$input" -o "$sorted" "${type_option[@]}" --verify
"${hypersort[@]}" check "$sorted" --against "$input" "${type_option[@]}"
echo "Proved: $sorted holds the keys of $input, in order, none lost, added or changed (count and 128-bit fingerprint)."
