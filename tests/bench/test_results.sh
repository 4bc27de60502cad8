#!/bin/bash
# Where a measurement writes (results_of in jobs/setup.sh), on a made-up machine of two GPUs: into jobs/results only for a clean tree
# and a build of its commit; and what the machine lacks to build for GPUs. And the tables of the pages are those that the results make.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}
failures=0 checks=0
for program in "$python" git; do
    if ! command -v "$program" >/dev/null; then
        echo "skipped: no $program"
        exit 77
    fi
done

# check WHAT FOUND WANTED
check()
{
    checks=$((checks + 1))
    if [ "$2" != "$3" ]; then
        echo "failed: $1: $2, wanted $3"
        failures=$((failures + 1))
    fi
}

mkdir -p "$work/bin" "$work/tree/jobs"
printf '#!/bin/bash\necho "NVIDIA H200"\necho "NVIDIA H200"\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
cp "$SOURCE"/jobs/{setup,find_python}.sh "$work/tree/jobs"
cd "$work/tree"
git init -q .
printf 'build/\n' >.gitignore
touch page.md source.c
git add .
git -c user.name=test -c user.email=test@example.org commit -qm test

# where TABLE [GPUS]: print below which folder the results go, and where there.
where()
{
    env -u COMMIT ${COMMIT:+COMMIT="$COMMIT"} PATH="$work/bin:$PATH" bash -c '. jobs/setup.sh build; results_of "$@"' bash "$@" 2>/dev/null |
        sed "s|^$work/tree/||"
}
built() { mkdir -p build/release/private; echo "#define BUILD_COMMIT \"$1\"" >build/release/private/build_info.h; }

named() { PATH="$1" bash -c '. jobs/setup.sh build; machine_name "${@:1}"' bash "${@:2}" 2>/dev/null </dev/null; }
check "a machine of two GPUs" "$(named "$work/bin:$PATH")" h200x2
check "one GPU of the two" "$(named "$work/bin:$PATH" 1)" h200x1

unset COMMIT
commit=$(git describe --always --abbrev=12)
check "no build" "$(where exchange)" build/results/h200x2/exchange.csv
built "$commit"
check "a clean tree" "$(where exchange)" jobs/results/h200x2/exchange.csv
check "one GPU of two" "$(where ladder 1)" jobs/results/h200x1/ladder.csv
echo row >jobs/results/h200x2/exchange.csv
echo table >>page.md
check "results and a page that an earlier measurement wrote" "$(where ladder)" jobs/results/h200x2/ladder.csv
echo code >>source.c
check "a source that differs" "$(where ladder)" build/results/h200x2/ladder.csv
git checkout -q source.c
touch new.c
check "a source that is new" "$(where ladder)" build/results/h200x2/ladder.csv
rm new.c
built 0123456789ab
check "a build of another commit" "$(where ladder)" build/results/h200x2/ladder.csv
mv .git "$work/git"
check "no history" "$(where ladder)" build/results/h200x2/ladder.csv
check "no history, the commit named" "$(COMMIT=0123456789ab where ladder)" jobs/results/h200x2/ladder.csv
check "no history, a tree that differed" "$(COMMIT=0123456789ab-dirty where ladder)" build/results/h200x2/ladder.csv
git init -q ..
git -C .. add tree
git -C .. -c user.name=test -c user.email=test@example.org commit -qm outer
built "$(git describe --always --abbrev=12)"
check "the history of a repository around it" "$(where ladder)" build/results/h200x2/ladder.csv
rm -rf ../.git

# If there is an nvcc, but gcc knows only C, setup.sh lacks g++; nothing is installed here.
mkdir "$work/c_alone"
printf '#!/bin/sh\ncase " $* " in *" c++ "*) exit 1 ;; esac\nexec "%s" "$@"\n' "$(command -v gcc)" >"$work/c_alone/gcc"
printf '#!/bin/sh\nexit 0\n' | tee "$work/c_alone/nvcc" >"$work/c_alone/apt-get"
printf '#!/bin/sh\nexit 1\n' >"$work/c_alone/sudo"
chmod +x "$work/c_alone"/*
lacking() { env -u CC -u CUDACXX -u CUDAHOSTCXX PATH="$work/c_alone:$PATH" bash -c '. jobs/setup.sh build' 2>&1 </dev/null || true; }
check "a gcc of C alone, and an nvcc" "$(lacking | grep -o 'g++' | head -1)" g++

# A copy, so that the paths in the captions stay.
cp -r "$SOURCE/jobs" "$SOURCE/README.md" "$work"
mkdir "$work/kernels" "$work/mpi" "$work/src"
cp "$SOURCE/src/measured.md" "$work/src"
cp "$SOURCE/kernels/measured.md" "$work/kernels"
cp "$SOURCE/mpi/measured.md" "$work/mpi"
cd "$work"
"$python" jobs/ladder_table.py jobs/results/h200x1/ladder.csv kernels/measured.md
for keys in jobs/results/*/keys.csv; do
    "$python" jobs/keys_table.py "$keys" kernels/measured.md
done
# What a table says about mixtures is what `hypersort bench` has said about them. In older results its median is the upper of the two in
# the middle; in others it is their mean, of figures that were not rounded.
said=$(env PYTHONPATH=jobs "$python" - jobs/results/*/keys.csv <<'END'
import re, sys
from keys_table import is_mixture, mixture_ratios, ratio_of, read_rows, select
told = r"mixtures:\d+: \w+, (\w+), (\d+) keys: worst ([\d.]+) \(.*\), 10th percentile ([\d.]+), median ([\d.]+), ratio"
compared = wrong = 0
for path in sys.argv[1:]:
    notes, rows = read_rows(path)
    for kind, keys, *figures in re.findall(told, "\n".join(notes)):
        compared += 1
        worst, tenth, median = (float(figure) for figure in figures)
        of_kind = select(rows, type=kind, keys=int(keys))
        ratios = sorted(ratio_of(row) for row in of_kind if is_mixture(row))
        upper = ratios[len(ratios) // 2]
        mean = (ratios[(len(ratios) - 1) // 2] + upper) / 2
        shown = mixture_ratios(of_kind)
        wrong += shown[:2] != [worst, tenth] or shown[2] != mean or not (median == upper or abs(median - mean) <= 0.001)
print(f"{wrong} differ" if compared else "none compared")
END
)
check "mixtures in tables" "$said" "0 differ"
tuned=jobs/results/h200x1/tune.csv
[ ! -e "$tuned" ] || "$python" jobs/tune_table.py "$tuned" "$SOURCE/kernels/cuda/ladder/tuning.h" kernels/measured.md
for files in jobs/results/*/{files,passes}.csv; do
    "$python" jobs/files_table.py "$files" src/measured.md
done
for records in jobs/results/*/records.csv; do
    [ ! -e "$records" ] || "$python" jobs/records_table.py "$records" src/measured.md
done
for peers in jobs/results/*/peers.csv; do
    [ ! -e "$peers" ] || "$python" jobs/peers_table.py "$peers" src/measured.md
done
"$python" jobs/exchange_table.py jobs/results/h200x2/exchange.csv mpi/measured.md
sed '0,/,right,/s//,WRONG,/' jobs/results/h200x2/exchange.csv >wrong.csv
check "rows of a wrong result that say so" "$("$python" jobs/exchange_table.py wrong.csv | grep -c ' WRONG |')" 1
while read -r scaling; do
    "$python" jobs/scaling_table.py "mpi/$scaling" mpi/measured.md
done < <(sed -n '/<!-- scaling/,/<!-- .scaling/s/.*\[Rows\](\([^)]*\)).*/\1/p' mpi/measured.md)
"$python" jobs/simulate_table.py jobs/results/simulated/exchange.csv mpi/measured.md
"$python" jobs/first_table.py
for page in README.md kernels/measured.md mpi/measured.md src/measured.md; do
    check "$page" "$(diff "$SOURCE/$page" "$page" | grep -c '^[<>]' || true) lines differ" "0 lines differ"
done
echo "$checks checks, $failures failures"
[ "$failures" = 0 ]
