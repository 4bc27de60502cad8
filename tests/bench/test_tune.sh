#!/bin/bash
# jobs/tune_table.py, which writes into tuning.h which rung sorts by default: from measurements that are made up here.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    echo "skipped: no python3"
    exit 77
fi

# row RUNG TYPE LOG_KEYS INPUT RATIO
row() { echo "ladder,rung_$1_x,,$2,$((1 << $3)),$4,1,1,1,1,1,$5"; }

make_csv()
{
    echo "# made up"
    echo "experiment,what,variant,type,keys,input,ms,ms_min,ms_max,gkeys_per_s,copy_percent,ratio_to_cub"
    local type
    for type in u32 u64; do
        row 0 $type 10 uniform 1; row 0 $type 10 zipf 1 # CUB is never chosen
        row 4 $type 10 uniform 2; row 4 $type 10 zipf 2
        row 8 $type 10 uniform 9; row 8 $type 10 zipf 0.5 # fast, but not on every input
        row 8 $type 12 uniform 3; row 8 $type 12 zipf 0.9
        row 7 $type 12 uniform 1.2; row 7 $type 12 zipf 1.1
        row 7 $type 14 uniform 0.8; row 7 $type 14 zipf 0.7
        row 8 $type 14 uniform 3; row 8 $type 14 zipf 0.5 # neither is safe: 7 is the lesser evil
        row 4 $type 14 uniform 99                         # not measured on all inputs
        row 8 $type 16 uniform 9                          # a size with one input says nothing
    done
}

check()
{
    if [ "$1" != "$2" ]; then
        echo "failed: $3: wanted"
        echo "$2"
        echo "got"
        echo "$1"
        exit 1
    fi
}

make_csv >"$work/tune.csv"
cp "$SOURCE/kernels/cuda/ladder/tuning.h" "$work/tuning.h"
"$python" "$SOURCE/jobs/tune_table.py" "$work/tune.csv" "$work/tuning.h" >"$work/rows"
wanted=$(for bytes in 4 8; do
    echo "    {$bytes, 1 << 10, 4},"
    echo "    {$bytes, 1 << 12, 8},"
    echo "    {$bytes, INT64_MAX, 7},"
done)
check "$(cat "$work/rows")" "$wanted" "the rows"
check "$(sed -n '/clang-format off/,/clang-format on/p' "$work/tuning.h" | sed '1d;$d')" "$wanted" "the rows in the header"
check "$(diff "$SOURCE/kernels/cuda/ladder/tuning.h" "$work/tuning.h" | grep -c '^[<>] *[^ {]' || true)" 0 "lines beside the rows that changed"

# Without rows of a type nothing may change.
grep -v u64 "$work/tune.csv" >"$work/half.csv"
cp "$work/tuning.h" "$work/before"
if "$python" "$SOURCE/jobs/tune_table.py" "$work/half.csv" "$work/tuning.h" 2>"$work/error"; then
    echo "failed: it was content without u64"
    exit 1
fi
grep -q "keys of type u64" "$work/error"
cmp "$work/tuning.h" "$work/before"
echo "4 checks, 0 failures"
