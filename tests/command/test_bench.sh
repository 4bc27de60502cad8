#!/bin/bash
# hypersort bench, on the host engine: each form of its report, on one rank and on several; inputs that are made again; results
# that are wrong; and what it refuses. test_gpus.sh tests it with a GPU, beside other libraries.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

# csv PYTHON-EXPRESSION: the last run printed CSV, and the expression holds for its rows as `rows` and the lines with # as `notes`.
csv()
{
    if [ -n "$python" ] && ! "$python" -c "
import csv, sys
lines = sys.stdin.read().splitlines()
notes = [line for line in lines if line.startswith('#')]
rows = list(csv.DictReader([line for line in lines if not line.startswith('#')]))
sys.exit(not ($1))" <"$work.out"; then
        fail "--form csv: not so: $1"
    fi
}

host=(bench --engine host --repeats 3)

good_forms()
{
    local ranks
    for ranks in 1 3; do
        ok "$ranks" "${host[@]}" -n 1000,4K,2^13 --types u32,f64 --inputs uniform,kmer:31,mixtures:12 --form json -s 42
        json "r['schema_version'] == 1 and r['ranks'] == $ranks and r['engine'] == 'host' and r['seed'] == '42'"
        json "r['repeats'] == 3 and r['warm_up'] == 1 and len(r['rows']) == 2 * 3 * (2 + 12 + 1)"
        json "[(x['type'], x['keys']) for x in r['rows'][::15]] == [(t, n) for t in ('u32', 'f64') for n in (1000, 4096, 8192)]"
        json "[x['input'] for x in r['rows'][:15]] == ['uniform', 'kmer:31'] + [f'mixture:{i}' for i in range(12)] + ['mixtures:12']"
        json "all(x['memory'] == 'malloc' for x in r['rows'])"
        # Measured rows; no other library is there to compare with.
        json "all(x['right'] and x['ratio'] is None and x['yardsticks'] == {} for x in r['rows'] if 'right' in x)"
        json "all(0 < x['seconds']['min'] <= x['seconds']['median'] <= x['seconds']['max'] for x in r['rows'] if 'right' in x)"
        json "all((x['moved_bytes'] > 0) == ($ranks > 1) for x in r['rows'] if x['input'] == 'uniform')"
        json "any(x['seconds']['min'] < x['seconds']['median'] < x['seconds']['max'] for x in r['rows'] if 'right' in x)"
        json "all(abs(x['gkeys_per_s'] * 1e9 * x['seconds']['median'] / x['keys'] - 1) < 1e-6 for x in r['rows'] if 'right' in x)"
        # The summary is that of the twelve rows above it.
        json "all([x['mixtures'][k] for k in ('worst', 'tenth_percentile')] == sorted(y['gkeys_per_s'] for y in r['rows'][i - 12:i])[:2] for i, x in enumerate(r['rows']) if 'mixtures' in x)"
        json "all(abs(sum(sorted(y['gkeys_per_s'] for y in r['rows'][i - 12:i])[5:7]) / 2 - x['mixtures']['median']) < 1e-9 for i, x in enumerate(r['rows']) if 'mixtures' in x)"
        json "all(x['mixtures']['count'] == 12 and x['mixtures']['figure'] == 'gkeys_per_s' and x['mixtures']['wrong'] == 0 for x in r['rows'] if 'mixtures' in x)"
        json "all(min(r['rows'][i - 12:i], key=lambda y: y['gkeys_per_s'])['input'] == x['mixtures']['worst_input'] for i, x in enumerate(r['rows']) if 'mixtures' in x)"

        ok "$ranks" "${host[@]}" -n 1000,4K --types u64,i32 --inputs nan,mixtures:3 --form csv -s 42 --warm-up 0
        csv "len(rows) == 2 * 2 * 4 and len(notes) == 1 + 2 * 2 and notes[0] == '# seed:   42'"
        csv "all(x['ranks'] == '$ranks' and x['result'] == 'right' and x['repeats'] == '3' for x in rows)"
        csv "all((x['exchange'] == 'none') == (x['path'] == 'none') == ($ranks == 1) for x in rows)"
        csv "all(x['cub_ms'] == x['libcusort_ms'] == x['ratio'] == '' and None not in x for x in rows)"
        csv "all((x['moved_bytes'] != '0') == ($ranks > 1) for x in rows if x['input'] == 'nan')"
        csv "all(float(x['ms_min']) <= float(x['ms']) <= float(x['ms_max']) for x in rows)"
        csv "all(len(x) == 7 + 2 + 5 + 5 + 6 + 1 for x in rows) and [x['input'] for x in rows[:4]] == ['nan', 'mixture:0', 'mixture:1', 'mixture:2']"
        csv "all(f'worst {s[0]} (mixture:' in note and f'), 10th percentile {s[0]}, median {s[1]}, gkeys_per_s' in note for note, s in zip(notes[1:], (sorted(x['gkeys_per_s'] for x in rows[i + 1:i + 4]) for i in range(0, len(rows), 4))))"
        # What scripts take columns for, in their order.
        grep -q '^ranks,memory,exchange,path,type,input,keys,ms,gkeys_per_s,h2d_ms,local_sort_ms,exchange_ms,merge_ms,d2h_ms,moved_bytes,result,' "$work.out" ||
            fail "--form csv: the columns are others"

        ok "$ranks" "${host[@]}" -n 1000 --types u64 --inputs uniform,mixtures:3 --form markdown
        [ "$(grep -c '^|.*|$' "$work.out")" = 4 ] || fail "--form markdown: not four rows"
        [ "$(grep '^|' "$work.out" | head -n 3 | tr -cd '|\n' | sort -u | wc -l)" = 1 ] ||
            fail "--form markdown: rows differ in their columns"
        grep -qiE 'ratio|cub' "$work.out" && fail "--form markdown: a ratio without another library"

        ok "$ranks" "${host[@]}" -n 1000 --types u64 --inputs uniform,mixtures:3
        [ "$(grep -c '^malloc ' "$work.out")" = 2 ] || fail "--form table: not two rows"
        grep -qE '^malloc +u64 +mixtures:3 +1000 worst [0-9.]+ \(mixture:[0-2]\)' "$work.out" || fail "--form table: no summary"
        grep -qE '^seed: +[0-9]+$' "$work.out" || fail "--form table: no seed"
    done
    ok 0 bench -n 3 --engine host
    [ "$(grep -cE '^malloc +u(32|64) +uniform +3 .* right$' "$work.out")" = 2 ] || fail "the defaults"
    ok 0 "${host[@]}" -n 0 --types "$(printf 'u32,%.0s' {1..63})u64" --form csv
    csv "[x['type'] for x in rows] == ['u32'] * 63 + ['u64']"
    ok 3 "${host[@]}" -n 0,1,2 --types i64 --form csv
    csv "[x['keys'] for x in rows] == ['0', '1', '2'] and all(x['result'] == 'right' for x in rows)"
    # Of two calls the median lies halfway.
    ok 0 "${host[@]}" --repeats 2 -n 1000,4K --types u64 --form json
    json "all(abs(2 * t['median'] - t['min'] - t['max']) <= 1e-6 * t['max'] for t in (x['seconds'] for x in r['rows']))"
    ok 0 "${host[@]}" --repeats 2 -n 300K,1M --form csv
    csv "len(rows) == 4 and all(abs(2 * float(x['ms']) - float(x['ms_min']) - float(x['ms_max'])) < 3e-4 for x in rows)"
    csv "all(abs(float(x['gkeys_per_s']) - int(x['keys']) / float(x['ms']) / 1e6) < 2e-3 for x in rows)"
    ok 0 "${host[@]}" --repeats 2 -n 300K,1M
    awk '/^malloc / { rows++; wrong += (2 * $5 - $6 - $7) ^ 2 > 9e-8 || $6 > $7 || ($8 - $4 / $5 / 1e6) ^ 2 > 4e-6 }
        END { exit !(rows == 4 && wrong == 0) }' "$work.out" || fail "--form table: ms, min, max and Gkeys/s do not fit together"
    # A size that no machine has memory for is left out, and the next is measured.
    for ranks in 0 3; do
        ok "$ranks" "${host[@]}" -n 2^40,1000 --types u64 --form json
        json "len(r['rows']) == 2 and 'left_out' in r['rows'][0] and r['rows'][0]['keys'] == 2**40 and r['rows'][1]['right']"
    done
    ok 0 "${host[@]}" -n 2^40,1000 --types u64 --form csv
    csv "len(rows) == 1 and notes[1].startswith('# left out: malloc, u64, all inputs, 1099511627776 keys: ')"
    ok 0 "${host[@]}" -n 2^40,1000 --types u64
    grep -qE '^malloc +u64 +all inputs +1099511627776 left out: .*[a-zA-Z0-9]$' "$work.out" || fail "--form table: a size that is left out"
    ok 0 "${host[@]}" -n 2^40,1000 --types u64 --form markdown
    grep -qE '^\| malloc +\| u64 +\| all inputs +\| 1099511627776 \| left out: .*[a-zA-Z0-9] \|$' "$work.out" ||
        fail "--form markdown: a size that is left out"
    ok 2 "${host[@]}" -n 5K --exchange direct --local 7 --transport staged --threads 2 --form csv
    csv "all(x['exchange'] == 'direct' and x['path'] == 'staged' for x in rows)"
    # As sort does, a bench names no exchange where keys take two passes.
    ok 2 "${host[@]}" -n 256K --types u64 --threads 1 --device-memory 1M --exchange direct --form csv
    csv "all(x['exchange'] == 'none' and x['result'] == 'right' for x in rows)"
    # Sorts that may overwrite their input, which is then made anew.
    for ranks in 0 2; do
        ok "$ranks" "${host[@]}" -n 256K --types u64,f32 --inputs uniform,mixtures:2 --repeats 3 --threads 1 --device-memory 1M --overwrite-input \
            --form csv
        csv "len(rows) == 6 and all(x['result'] == 'right' for x in rows)"
    done
}

# Two runs draw other seeds; a seed says everything about the input.
good_seeds()
{
    local first
    ok 2 "${host[@]}" -n 10 --form json
    first=$(cat "$work.out")
    ok 2 "${host[@]}" -n 10 --form json
    if [ -n "$python" ] && "$python" -c "import json, sys; sys.exit(json.loads(sys.argv[1])['seed'] != json.loads(sys.argv[2])['seed'])" \
        "$first" "$(cat "$work.out")"; then
        fail "two runs have one seed"
    fi
    ok 0 gen -n 1000 -s 77 --dist mixture:5 -o drawn.raw
    ok 0 gen -n 1000 -s 77 --dist mixture:5 -o again.raw
    cmp -s drawn.raw again.raw || fail "gen: a mixture is not made again"
    rm drawn.raw again.raw
}

# A sort that sorts wrongly, or not at all, must be found out, on any rank.
wrong_sorts()
{
    local HYPERSORT=$BUILD/tests/hypersort_broken damage ranks form
    for damage in swap lose idle; do
        for ranks in 0 3; do
            BROKEN_SORT=$damage run "$ranks" "${host[@]}" -n 1000 --types u64 --inputs uniform,mixtures:4 --form json -s 1
            if [ "$code" != 1 ] || [ "$(grep -c 'came out wrong' "$work.err")" != 1 ]; then
                fail "a sort that does $damage, on $ranks ranks: exit code $code"
            fi
            json "not r['rows'][0]['right'] and r['rows'][-1]['mixtures']['wrong'] > 0"
            json "sum(not x['right'] for x in r['rows'] if 'right' in x) == $(sed -n 's/^hypersort: \([0-9]*\) of the inputs came out wrong$/\1/p' "$work.err")"
        done
    done
    for form in table csv markdown; do
        BROKEN_SORT=swap run 0 "${host[@]}" -n 1000 --types u64 --form "$form"
        if [ "$code" != 1 ] || ! grep -q WRONG "$work.out"; then
            fail "a sort that swaps: exit code $code, --form $form does not say WRONG"
        fi
    done
    ok 0 "${host[@]}" -n 1000 # not damaged: the same program is right
}

bad_lists()
{
    refused 3 2 "--sizes: '1x' is not a number" bench -n 1K,1x
    refused 0 2 "--sizes: '2^99' is not a number" bench -n 2^99
    refused 0 2 "--sizes: '2^59' is not a number" bench -n 2^59 # bytes of keys are counted, too
    refused 0 2 "--sizes: ''|'hypersort bench --help'" bench -n ""
    refused 0 2 "--sizes: '1K,'" bench -n 1K,
    refused 0 2 "--sizes: more than 64 words" bench -n "$(seq -s, 65)"
    refused 0 2 "--types: more than 64 words" bench --types "$(printf 'u32,%.0s' {1..64})u32"
    refused 0 2 "--inputs: '|words of at most 31 letters" bench --inputs "uniform,$(printf %0100d 0)"
    refused 0 2 "--types: '|words of at most 31 letters" bench --types "$(printf %032d 0)"
    refused 3 2 "--types: 'u24' is not one of u32|(did you mean u64?)" bench --types u32,u24
    refused 3 2 "--inputs: 'gaus' is not a distribution|mixture:N" bench --inputs uniform,gaus
    refused 0 2 "'mixtures:0'" bench --inputs mixtures:0
    refused 0 2 "'mixtures:x'" bench --inputs mixtures:x
    refused 0 2 "'mixtures:1000001'" bench --inputs mixtures:1000001
    refused 0 2 "--inputs: 'narrow:65'|from 1 to 64" bench --inputs narrow:65
    refused 3 2 "--memory: 'host' is not one of device" bench --memory host
    refused 0 2 "--memory: 'mallok' is not one of |(did you mean malloc?)" bench --memory mallok
    refused 3 4 "--memory device: the engine host" bench --engine host --memory malloc,device
    refused 0 4 "--memory pinned: the engine host" bench --engine host --memory pinned
    refused 0 2 "--repeats: '0'" bench --repeats 0
    refused 0 2 "--repeats: at most" bench --repeats 100001
    refused 0 2 "--form: 'xml' is not one of table|csv|json|markdown" bench --form xml
    refused 0 2 "unexpected argument 'uniform'" bench uniform
    refused 0 2 "unknown option '--verify'" bench --verify
    refused 0 2 "has no rung 0" bench -n 1K --engine host --local 0
    refused 3 2 "has no rung 0" bench -n 1K --engine host --local 0 --form json
}

good_forms
good_seeds
wrong_sorts
bad_lists
finish
