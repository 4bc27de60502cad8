#!/bin/bash
# Feed made-up inputs to the code that parses foreign bytes, by clang's libFuzzer under AddressSanitizer and UBSan.
#
#   tests/fuzz/run.sh [SECONDS [HARNESS...]]     that long in all (60), shared by these (npy, manifest, journal, options, json)
#
# An input that breaks a promise is kept, and the last lines name the file; `build/fuzz/fuzz_HARNESS FILE` runs it again. The first
# inputs are those of other tests (corpus.py); an input that reaches more code is added to build/fuzz/corpus-HARNESS.
# HYPERSORT_SEED gives the seed, FLAGS more flags of the compiler, OTHERS the library of what else harnesses call, as another run has
# made it (fuzz/others.a). Exits 1 if a promise was broken, 77 if there is no clang with libFuzzer.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-60}
harnesses=("${@:2}")
[ $# -ge 2 ] || harnesses=(npy manifest journal options json)
# libFuzzer takes 32 bits, and 0 as none.
seed=$((${HYPERSORT_SEED:-$(date +%s)} % 4294967295 + 1))
folder=${BUILD:-$PWD/build}/fuzz
clang=${CLANG:-clang}

# What each harness feeds. Of the functions of `others` only those it calls are linked; the sanitizers' tables would keep all, so
# they go without. build_info.c takes a header that the build makes.
shopt -s extglob
declare -A parser=([npy]="src/files/npy.c src/files/npy_fields.c src/files/npy_text.c" [manifest]=src/checkpoint/manifest.c [journal]=src/checkpoint/run_journal.c [json]="src/command/json_read.c src/command/page.c src/command/page_run.c src/command/page_timeline.c src/command/report_units.c" [options]="src/command/cli_options.c src/command/cli_values.c src/command/cli_checks.c src/command/cli_memory.c src/command/cli_digest.c")
others=(kernels/base/*.c src/files/*.c src/library/!(build_info).c)
plain=(-std=c17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. -Ikernels/base -Isrc -g -O1 -w)
checked=("${plain[@]}" -fsanitize=address -fsanitize=undefined -fsanitize=fuzzer -fno-sanitize-recover=all -fno-omit-frame-pointer)

prepare()
{
    local file harness mpi library=${OTHERS:-$folder/others.a}
    read -ra mpi <<<"$(mpicc --showme:compile)"
    if [ -z "${OTHERS:-}" ]; then
        rm -f "$library"
        for file in "${others[@]}"; do
            "$clang" "${plain[@]}" -ffunction-sections -fdata-sections "${mpi[@]}" -c "$file" -o "$folder/other.o"
            ar qc "$library" "$folder/other.o"
        done
    fi
    for harness in "${harnesses[@]}"; do
        # shellcheck disable=SC2086 # FLAGS and parsers are words
        "$clang" "${checked[@]}" "${mpi[@]}" ${FLAGS:-} -o "$folder/fuzz_$harness" \
            "tests/fuzz/fuzz_$harness.c" ${parser[$harness]} "$library" -Wl,--gc-sections
        "${PYTHON:-python3}" tests/fuzz/corpus.py "$harness" "$folder/corpus-$harness"
        # Words of the parser's text are likely pieces of an input.
        # shellcheck disable=SC2086
        grep -ohE '"[A-Za-z0-9_:<>{}-]+"' ${parser[$harness]} | sort -u >"$folder/$harness.dict"
    done
}

# feed HARNESS SECONDS
feed()
{
    "$folder/fuzz_$1" -seed="$seed" -max_total_time="$2" -timeout=60 -max_len=4096 -dict="$folder/$1.dict" \
        -artifact_prefix="$folder/$1-" -verbosity=0 -print_final_stats=1 "$folder/corpus-$1" >"$folder/$1.log" 2>&1 || {
        tail -n 40 "$folder/$1.log"
        return 1
    }
    echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$1.log") inputs, seed $((seed - 1))"
}

mkdir -p "$folder"
if ! "$clang" "${checked[@]}" -o "$folder/probe" -x c - 2>/dev/null <<<'int LLVMFuzzerTestOneInput() { return 0; }'; then
    echo "skipped: there is no $clang with libFuzzer (Debian: clang, libclang-rt-dev)"
    exit 77
fi
prepare
failed=0
for harness in "${harnesses[@]}"; do
    feed "$harness" $(((seconds + ${#harnesses[@]} - 1) / ${#harnesses[@]})) || failed=1
done
exit $failed
