#!/bin/bash
# jobs/scaling.sh: rehearsed with the host engine; and on made-up machines of 8 GPUs and of 1, with programs that make up
# what they measure: which sorts there are, what the tables say, the plot, a wrong result, and a time limit.
# shellcheck disable=SC2016 # conditions are awk's
set -euo pipefail

# shellcheck source=tests/support/draw.sh
. "$SOURCE/tests/support/draw.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0 checks=0
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3"
    exit 77
fi

# check WHAT FOUND WANTED
check()
{
    checks=$((checks + 1))
    if [ "$2" != "$3" ]; then
        echo "failed: $1: $2, wanted $3"
        failures=$((failures + 1))
    fi
}

# A copy, so that nothing is written to the tree.
mkdir -p "$work/mpi" "$work/bin" "$work/made/tests"
cp -r "$SOURCE/jobs" "$work"
page=$work/mpi/measured.md
cp "$SOURCE/mpi/measured.md" "$page"
csv=$work/build/results/scaling.csv # of the machines that are made up

# column NAME CONDITION: print a column of the rows of $csv for which the condition of awk holds; `at` finds columns by name.
column()
{
    awk -F, -v name="$1" '/^#/ { next }
        /^ranks,/ { for (i = 1; i <= NF; i++) at[$i] = i; next }
        '"$2"' { print $at[name] }' "$csv"
}
# count CONDITION: how many such rows there are.
count() { column ranks "$1" | wc -l; }

# ---- A rehearsal ---------------------------------------------------------------------------------------------

rehearsal()
{
    csv=$work/build/results/rehearsal/scaling.csv
    cp "$page" "$work/before.md"
    check "the rehearsal's code" "$(HYPERSORT=$BUILD/hypersort "$work/jobs/scaling.sh" --rehearse 2 >"$work/out" 2>"$work/error"; echo $?)" 0
    check "parts" "$(column part 1 | sort -u | xargs)" "device exchange inplace pinned shared"
    check "ranks with a GPU each" "$(column ranks '$at["part"] != "shared"' | sort -u | xargs)" "1 2"
    check "ranks that share" "$(column ranks '$at["part"] == "shared"' | sort -u | xargs)" "3 4 5 8"
    check "right" "$(column result 1 | sort -u)" right
    check "times of ranks that share" "$(column ms '$at["part"] == "shared"' | sort -u)" ""
    check "sorts without a time" "$(count '$at["part"] != "shared" && $at["ms"] <= 0')" 0
    check "sorts by two ranks without a link" "$(count '$at["ranks"] == 2 && $at["link_gbs"] <= 0')" 0
    check "uniform keys without a plan" "$(count '$at["part"] == "device" && $at["input"] == "uniform" && $at["plan_ms"] <= 0')" 0
    check "left out" "$(grep -E '^# (left out|ended)' "$csv" | head -1)" ""
    check "the page" "$(cmp "$page" "$work/before.md" 2>&1)" ""
    if [ "$failures" != 0 ]; then
        tail -20 "$work/error"
    fi
}

# ---- Machines that are made up -------------------------------------------------------------------------------

make_machine()
{
    cat >"$work/bin/nvidia-smi" <<'END'
#!/bin/bash
for ((i = 0; i < FAKE_GPUS; i++)); do
    case $1 in -L) echo "GPU $i: made up" ;; *) echo "NVIDIA H200" ;; esac
done
END
    cat >"$work/bin/mpirun" <<'END'
#!/bin/bash
if [ "$1" = --version ]; then
    echo "mpirun (Open MPI) 4.1.4"
    exit
fi
while [ "$1" != -n ]; do shift; done
RANKS=$2 exec "${@:3}"
END
    cat >"$work/made/tests/bench_pairs" <<'END'
#!/bin/bash
printf 'ranks,path,mib,least,median,most,all\n%s,ipc,256,350,360,370,%s\n' "$RANKS" $((360 - RANKS))
END
    # A sort of 2^30 keys of w bytes takes 3 w ms, divided by the ranks, and a quarter longer for each time their number doubles.
    cat >"$work/made/hypersort" <<'END'
#!/usr/bin/env -S python3 -S -E
import itertools, json, math, os, sys, time

words = iter(sys.argv[2:])
given = {word: [] for word in sys.argv[1:] if word.startswith("-")}
values = None
for word in words:
    if word in given:
        values = given[word]
    elif values is not None:
        values.append(word)

def ms(keys, width, ranks):
    return keys / ranks / 2**30 * 3 * width * (1 + 0.25 * math.log2(ranks))

def several(option, otherwise):
    return given[option][0].split(",") if option in given else otherwise

WIDTH = {"u32": 4, "u64": 8, "f64": 8}
if sys.argv[1] == "plan":
    kind, plans = given["--type"][0], []
    keys = os.path.getsize(sys.argv[2]) // WIDTH[kind]
    for ranks in map(int, given["-n"]):
        sort, exchange = 0.4e-3 * ms(keys, WIDTH[kind], ranks), 0.5e-3 * ms(keys, WIDTH[kind], ranks)
        phases = {"h2d": 9.0, "local_sort": sort, "exchange": exchange, "merge": 0.0, "d2h": 9.0}
        plans.append({"ranks": ranks, "exchange": "partition", "partition": {"phases": phases}})
    print(json.dumps({"type": kind, "keys": keys, "plans": plans}))
    sys.exit()
time.sleep(float(os.environ.get("FAKE_SLEEP", 0)))
ranks, wrong = int(os.environ["RANKS"]), False
print("# seed:   " + given["--seed"][0])
print("ranks,memory,exchange,path,type,input,keys,ms,gkeys_per_s,h2d_ms,local_sort_ms,exchange_ms,merge_ms,d2h_ms,moved_bytes,result,"
      "repeats,ms_min,ms_max,cub_ms,cub_ms_min,cub_ms_max,libcusort_ms,libcusort_ms_min,libcusort_ms_max,ratio")
for memory, kind, keys, word in itertools.product(given["--memory"][0].split(","), given["--types"][0].split(","),
                                                  map(int, given["-n"][0].split(",")), several("--inputs", ["uniform"])):
    exchange = several("--exchange", ["partition"])[0]
    took = ms(keys, WIDTH[kind], ranks) * (8 if memory == "pinned" else 1) * (1.5 if exchange == "direct" else 1)
    took *= {"narrow:8": 0.5, "mixture:9": 1.25}.get(word, 1)
    moved = 0 if word == "narrow:8" else keys * WIDTH[kind] * (ranks - 1) // ranks
    cub = 3 * took if ranks == 1 and memory == "device" else ""
    is_wrong = os.environ.get("FAKE_WRONG") == f"{exchange}{ranks}{word}"
    wrong = wrong or is_wrong
    print(ranks, memory, exchange, "ipc", kind, word, keys, f"{took:.4f}", f"{keys / took / 1e6:.3f}", "0,0,0,0,0", moved,
          "WRONG" if is_wrong else "right", 5, f"{took:.4f}", f"{took:.4f}", cub, ",,,,", "", sep=",")
sys.exit(wrong)
END
    chmod +x "$work"/bin/* "$work"/made/hypersort "$work"/made/tests/bench_pairs
}

# scaling GPUS ARGUMENT...: the script on such a machine; prints its code.
scaling()
{
    FAKE_GPUS=$1 HYPERSORT=$work/made/hypersort PATH=$work/bin:$PATH "$work/jobs/scaling.sh" "${@:2}" >"$work/out" 2>"$work/error" && echo 0 ||
        echo $?
}

# line TEXT: how often the tables have a line that begins with it.
line() { grep -cF -- "$1" "${2:-$work/out}" || true; }

eight_gpus()
{
    check "the code with 8 GPUs" "$(scaling 8)" 0
    check "ranks that are measured" "$(column ranks '$at["part"] == "device"' | sort -u | xargs)" "1 2 4 8"
    check "ranks for correctness" "$(column ranks '$at["part"] == "uneven"' | sort -u | xargs)" "3 5 6 7"
    check "rows" "$(count 1)" $((4 * 2 * 2 * 3 + 2 * 3 + 4 * 3 * 2 * 3 * 6 + 4 * 2 * 3 + 3 * 2 * 2 + 4 * 2))
    check "2^32 keys of u64 in place, and 2^29 on each of 8" "$(count '$at["keys"] == 2^32 && $at["type"] == "u64"')" $((4 * 3 + 3))
    # 24 ms by one GPU, 5.25 by 8: 4.57 times as fast, 57 %. The link, 352 GB/s, takes 8 GiB * 7 / 8 / 8 = 2.67 ms of them.
    check "strong scaling" "$(line '| u64 | uniform | 2^30 | 72.00 | 24.00 | 15.00 | 9.00 | 5.25 | 4.57 | 57 % | 51 % |')" 1
    check "in place" "$(line '| u32 | narrow:8 | 2^32, in place |  | 24.00 | 15.00 | 9.00 | 5.25 | 4.57 | 57 % | 0 % |')" 1
    # The plan says nine tenths.
    check "weak scaling, 1 GPU" "$(line '| u64 | uniform | 2^29 | 1 | 12.00 | 44.7 | 100 % |  |  |  | 10.80 | +11 % |')" 1
    check "weak scaling, 8 GPUs" "$(line '| u64 | uniform | 2^29 | 8 | 21.00 | 204.5 | 57 % | 352 | 10.68 | 51 % | 18.90 | +11 % |')" 1
    check "weak scaling of few values" "$(line '| u64 | narrow:8 | 2^29 | 4 | 9.00 | 238.6 | 67 % | 356 | 0.00 | 0 % |  |  |')" 1
    check "an exchange" "$(line '| by direct | u64 | 2^30 |  | 22.50 | 13.50 | 7.88 |')" 1
    check "pinned memory" "$(line '| from and to pinned memory | u32 | 2^30 | 96.00 | 60.00 | 36.00 | 21.00 |')" 1
    check "correctness" "$(line 'Right are 432 of 432 sorts by 3, 5, 6, 7 ranks with a GPU each.')" 1
    if command -v gnuplot >/dev/null; then
        check "the plot" "$(grep -c '<title>' "$work/build/plots/scaling.svg")" $((1 + 6 + 4 + 9 + 9))
    fi
    check "the page, of which no commit is known" "$(cmp "$page" "$SOURCE/mpi/measured.md" 2>&1)" ""
    mkdir -p "$work/jobs/results/h200x8"
    cp "$csv" "$work/jobs/results/h200x8"
    printf '<!-- scaling h200x8 -->\n<!-- /scaling h200x8 -->\n' >>"$page"
    "$work/jobs/scaling.sh" --from "$work/jobs/results/h200x8/scaling.csv" >"$work/out" 2>&1
    check "the page" "$(line '| u64 | uniform | 2^30 | 72.00 | 24.00 | 15.00 | 9.00 | 5.25 | 4.57 | 57 % | 51 % |' "$page")" 1
    check "its other tables" "$(sed '/<!-- scaling h200x8/,$d' "$page" | cmp - "$SOURCE/mpi/measured.md" 2>&1)" ""
}

other_machines()
{
    check "the code with 1 GPU" "$(scaling 1)" 0
    check "ranks on 1 GPU" "$(column ranks '$at["part"] == "shared"' | sort -u | xargs)" "2 3 4 5 8"
    check "times of ranks that share" "$(column ms '$at["part"] == "shared"' | sort -u)" ""
    check "correctness on 1 GPU" "$(line 'by 2, 3, 4, 5, 8 ranks that share 1 GPU.')" 1
    check "the code with 6 GPUs" "$(scaling 6)" 0
    check "ranks on 6 GPUs" "$(column ranks '$at["part"] == "device"' | sort -u | xargs)" "1 2 4 6"
    check "2^29 keys on each of 6" "$(count '$at["ranks"] == 6 && $at["keys"] == 6 * 2^29')" 3
    check "the code without GPUs" "$(scaling 0)" 4
    check "no time" "$(scaling 2 0)" 2
}

# A wrong result ends the script with 1, and changes nothing; a sort that takes too long is left out.
bad_ends()
{
    cp "$page" "$work/before.md"
    check "the code of a wrong result" "$(FAKE_WRONG=direct3equal scaling 2)" 1
    check "rows that are wrong" "$(count '$at["result"] == "WRONG"')" 6
    check "what the tables say of it" "$(line 'Right are 213 of 216 sorts')" 0
    check "the page beside it" "$(cmp "$page" "$work/before.md" 2>&1)" ""
    check "the code of sorts that take too long" "$(FAKE_SLEEP=3 scaling 2 1)" 0
    check "sorts that took too long" "$(count 1)" 0
    # The links, which do not wait, may still fit the second, or not.
    check "lines that say so" "$(grep -c '^# left out.*: [a-z]* by ' "$csv")" $((3 + 4 * 3 + 2 + 2 + 2))
}

make_machine
for part in $(drawn_half eight_gpus other_machines bad_ends rehearsal); do
    $part
done
echo "$checks checks, $failures failures"
[ "$failures" = 0 ]
