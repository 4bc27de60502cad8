#!/bin/bash
# Real keys, sorted over odd numbers of ranks, must be what NumPy makes of them: the words of this machine's C library
# (skewed, full of repeats, as integers of both widths), and the world's coastline if the project's data lie beside
# the tree.
set -euo pipefail

# shellcheck source=jobs/find_python.sh
. "$SOURCE/jobs/find_python.sh"
if ! python=$(python_with numpy); then
    echo "skipped: no python3 with numpy"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# compare RANKS INPUT [TYPE DTYPE]: sort and hold against NumPy
compare()
{
    local sorted=$work/sorted.${2##*.}
    # shellcheck disable=SC2086 # MPIRUN holds options too
    $MPIRUN -n "$1" "$HYPERSORT" sort "$2" -o "$sorted" --verify ${3:+--type "$3"} </dev/null >"$work/report"
    "$python" "$SOURCE/tests/command/real_files.py" "$2" "$sorted" ${4:+"$4"}
    echo "$(basename "$2") ${3:-}: $(sed -n 's/^keys *//p' "$work/report") on $1 ranks, as NumPy sorts it"
}

library=$(ldd "$HYPERSORT" | sed -n 's/.*libc\.so[^ ]* => \([^ ]*\) .*/\1/p')
head -c "$(($(stat -Lc %s "$library") / 8 * 8))" "$library" >"$work/words.raw"
compare 3 "$work/words.raw" u64 u8
compare 5 "$work/words.raw" i32 i4

data=$SOURCE/../shared/data
if [ ! -d "$data" ]; then
    echo "without the coastline: its folder does not lie beside the tree"
    exit 0
fi
for file in coastline_morton_u64 coastline_latitude_f64 coastline_longitude_f32; do
    for ranks in 1 3 7; do
        compare "$ranks" "$data/$file.npy"
    done
done

# The same points as records.
"$python" "$SOURCE/tests/command/real_records.py" make "$data" "$work/points.npy"
for key in morton latitude:desc,longitude; do
    for ranks in 1 3 7; do
        # shellcheck disable=SC2086 # MPIRUN holds options too
        $MPIRUN -n "$ranks" "$HYPERSORT" sort "$work/points.npy" -o "$work/sorted.npy" --key "$key" --index "$work/index.npy" \
            </dev/null >"$work/report"
        "$python" "$SOURCE/tests/command/real_records.py" check "$work/points.npy" "$work/sorted.npy" "$work/index.npy" "$key"
        echo "coastline by $key: $(sed -n 's/^records *//p' "$work/report") on $ranks ranks, as NumPy sorts it"
    done
done
