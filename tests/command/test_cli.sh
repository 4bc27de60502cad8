#!/bin/bash
# The command as its user sees it: what works, on several rank counts. test_cli_refusals.sh has what does not.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

# ---- Good paths
# ---------------------------------------------------------------------------------------------

# The numbers of a raw file, one per line, by od and not by what is tested.
numbers() { od -An -v -w"${1#?}" -t "$1" "$2"; }

good_gen()
{
    local type dist ranks
    for type in u32 f64; do
        for dist in uniform zipf gauss nearly:20 nan kmer:31 mixture:3; do
            for ranks in 1 2 5; do
                ok "$ranks" gen -n 10007 --type "$type" --dist "$dist" -s 7 -o "gen.$ranks"
            done
            if ! cmp -s gen.1 gen.2 || ! cmp -s gen.1 gen.5; then
                fail "gen --type $type --dist $dist: the file depends on the ranks"
            fi
        done
    done
    ok 2 gen -n 2K -o default.bin
    ok 1 gen -n 2048 --type u64 --dist uniform -s 1 -o explicit.bin
    local name
    for name in u64 uint64 uint64_t '<u8'; do
        ok 0 gen -n 2048 --type "$name" -o named.bin
        cmp -s default.bin named.bin || fail "gen: --type $name is not u64"
    done
    for name in f32:float32 f64:double i32:int32 'i64:<i8' 'u8:|u1' 'i8:<i1' i16:int16 f16:half; do
        ok 0 gen -n 100 --type "${name#*:}" --dist sorted -o named.npy
        ok 0 check named.npy --type "${name%:*}"
    done
    cmp -s default.bin explicit.bin || fail "gen: the defaults are not u64, uniform, seed 1"
    rm gen.? default.bin explicit.bin named.bin named.npy
}

good_sort()
{
    local type ranks order
    for type in u32 i32 u64 i64; do
        ok 3 gen -n 12345 --type "$type" -s 3 -o in.raw
        local od_type=${type/i/d}
        od_type=${od_type/32/4} od_type=${od_type/64/8}
        for ranks in 1 2 3 5; do
            for order in "" -r; do
                ok "$ranks" sort in.raw -o out.raw --type "$type" $order --verify ${order:+--exchange bitonic}
                numbers "$od_type" out.raw | cmp -s - <(numbers "$od_type" in.raw | sort -n $order) ||
                    fail "sort $order of $type on $ranks ranks differs from sort -n"
                ok "$ranks" check out.raw --type "$type" $order --against in.raw
            done
        done
    done
    for type in f32 f64; do
        ok 2 gen -n 5003 --type "$type" --dist nan -o in.npy
        ok 1 sort in.npy -o one.npy
        for ranks in 2 5; do
            ok "$ranks" sort in.npy -o out.npy --verify
            cmp -s one.npy out.npy || fail "sort of $type: $ranks ranks differ from one"
            ok "$ranks" check out.npy --against in.npy
        done
    done
    rm ./*
}

good_formats()
{
    local count ranks
    for count in 0 1 2 100; do
        for ranks in 1 3 4; do
            ok "$ranks" gen -n "$count" --type i32 --dist reverse -o "an input.npy"
            ok "$ranks" sort "an input.npy" -o "an output.raw"
            ok "$ranks" check --type i32 "an output.raw" --against "an input.npy"
            ok "$ranks" sort "an output.raw" --type i32 -r -o "named.bin" --output-format npy --verify
            ok "$ranks" check --format npy named.bin -r --against "an input.npy"
            if [ "$(stat -c %s "an output.raw")" != $((4 * count)) ]; then
                fail "$count keys on $ranks ranks: the raw file has another size"
            fi
        done
    done
    npy 2 "{'descr': '>u4', 'fortran_order': False, 'shape': (3,), }" >big.npy
    printf '\0\0\0\3\0\0\0\1\0\0\0\2' >>big.npy
    ok 2 sort big.npy -o big.raw
    [ "$(numbers u4 big.raw | tr -d ' \n')" = 123 ] || fail "keys of '>u4' were not turned"
    rm ./*
}

good_check()
{
    local ranks
    ok 1 gen -n 1000 --dist sorted -o sorted.raw
    ok 1 gen -n 1000 --dist sorted -o last.raw
    printf '\0\0\0\0\0\0\0\0' | dd of=last.raw bs=8 seek=999 conv=notrunc status=none
    ok 1 gen -n 999 --dist sorted -o fewer.raw
    for ranks in 1 3 4; do
        run "$ranks" check last.raw --type u64
        if [ "$code" != 1 ] || ! grep -q "key 999 is 0 after 18409850585562132512" "$work.out" ||
            ! grep -q "last.raw: not in ascending order: key 999 (0) is less than key 998 (18409850585562132512)$" "$work.err" ||
            [ "$(wc -l <"$work.err")" != 1 ]; then
            fail "check of a file whose last key is out of order, on $ranks ranks"
        fi
        run "$ranks" check sorted.raw --type u64 -r
        if [ "$code" != 1 ] || ! grep -q "key 1 is 18446744073709551 after 0" "$work.out" ||
            ! grep -q "not in descending order: key 1 (18446744073709551) is greater than key 0 (0)$" "$work.err"; then
            fail "check -r of ascending keys, on $ranks ranks"
        fi
        run "$ranks" check sorted.raw --type u64 -r --against fewer.raw
        grep -q "than key 0 (0); nor does it hold the keys of fewer.raw$" "$work.err" || fail "two faults of one file"
        for other in last.raw fewer.raw; do
            run "$ranks" check sorted.raw --type u64 --against "$other"
            if [ "$code" != 1 ] || ! grep -q "NOT THE SAME KEYS" "$work.out"; then
                fail "check --against $other, on $ranks ranks"
            fi
        done
    done
    # It is a key that is there twice; records with it need not be the same.
    printf 'a1b2b3c4' >twice.raw
    printf 'a1b2c3d4' >once.raw
    local words file says
    while IFS='|' read -r words file says; do
        # shellcheck disable=SC2086  # words
        run 2 check $file --unique $words
        grep -q "^unique       $says$" "$work.out" || fail "check --unique $words of $file"
    done <<'CHECKS'
--key @0:u8 --record 2|twice.raw|NOT: record 2 has the key of record 1 again
--key @0:u8 --record 2|once.raw|no key is there twice
--key @0:u8:desc --record 2|once.raw|not known: equal keys may be no neighbours
--type u8|sorted.raw|NOT: key 1 is that of key 0 again
--type u64|sorted.raw|no key is there twice
--type u64 -r|sorted.raw|not known: equal keys may be no neighbours
CHECKS
    rm ./*
}

# Two keys, the greater one first: TYPE BYTES TEXT TEXT. They are named by digits that name no other key.
named()
{
    # shellcheck disable=SC2059  # bytes
    printf "$2" >two.raw
    run 2 check two.raw --type "$1"
    [ "$code" = 1 ] && grep -qF "key 1 ($4) is less than key 0 ($3)" "$work.err" || fail "keys of $1: $(cat "$work.err")"
    rm two.raw
}

good_names()
{
    local ones='\xff\xff\xff\xff' zeros='\0\0\0\0'
    named u128 "$ones$ones$ones$ones$zeros$zeros$zeros$zeros" 340282366920938463463374607431768211455 0
    named u128 "$zeros$zeros$ones$zeros$ones$ones$zeros$zeros" 79228162495817593519834398720 18446744073709551615
    named u8 '\xff\x01' 255 1
    named i8 '\x00\xff' 0 -1
    named i16 '\xff\x7f\x00\x80' 32767 -32768
    named f16 '\x01\x3c\x00\x3c' 1.001 1
    named f16 '\x00\x00\x01\x80' 0 -5.9605e-08
    printf '\0\0\xc0\x7f\0\0\x80\x3f' >two.raw
    run 2 check two.raw --type f32
    grep -qF 'key 1 (1) belongs before key 0 (nan(0x7fc00000))' "$work.err" || fail "a number behind a NaN: $(cat "$work.err")"
    named bf16 '\x81\x3f\x80\xbf' 1.008 -1
}

good_json()
{
    local exchange name=$'a "quote", a \\, a \t, a \xff and \xc3\xa9.raw' phases
    phases="['read', 'h2d', 'local_sort', 'exchange', 'merge', 'd2h', 'gather', 'write', 'verify']"
    ok 1 gen -n 3000 --type f32 -o "$name"
    ok 3 sort "$name" --type f32 -o out.raw --json --no-verify
    json "r['schema_version'] == 1 and r['keys'] == 3000 and r['bytes'] == 12000 and r['type'] == 'f32'"
    json "r['ranks'] == 3 and r['order'] == 'ascending' and r['verify'] is None"
    json "r['build'].startswith('hypersort ') and r['engine'] in ('host', 'cuda')"
    json "list(r['phases']) == $phases and r['moved_bytes'] > 0 and r['gkeys_per_s'] > 0"
    json "r['input'] == 'a \"quote\", a \\\\, a \\t, a \\ufffd and \\u00e9.raw' and r['output'] == 'out.raw'"
    ok 3 sort "$name" --type f32 -o out.raw --json --verify --transport staged
    json "list(r['paths']) == ['staged'] and r['paths']['staged']['pairs'] == 3"
    json "0 < r['paths']['staged']['moved_bytes_largest'] <= r['paths']['staged']['moved_bytes'] == r['moved_bytes']"
    json "r['paths']['staged']['moved_bytes_largest'] == max(one['moved_bytes'] for one in r['per_rank'])"
    json "all(p['seconds'] > 0 and abs(p['gb_per_s'] * 1e9 * p['seconds'] / p['moved_bytes_largest'] - 1) < 1e-6 for p in r['paths'].values())"
    # The time of the whole sort is that of the phases, more or less: the unit is what is looked at.
    json "0.001 < r['gkeys_per_s'] * 1e9 * sum(v for k, v in r['phases'].items() if k not in ('read', 'write', 'verify')) / r['keys'] < 10"
    # What the text says of the rate, and the page of the report: reading is part of its time.
    json "r['keys'] / (r['gkeys_per_s'] * 1e9) > r['phases']['read']"
    json "r['verify'] == {'sorted': True, 'count_ok': True, 'fingerprint_ok': True}"
    json "r['transport'] == 'staged'"
    ok 1 sort "$name" --type f32 -o out.raw
    grep -q '^rate .*, with reading and writing$' "$work.out" || fail "the rate of a sort: $(grep '^rate' "$work.out")"
    for exchange in bitonic direct; do
        ok 3 sort "$name" --type f32 -o out.raw --json --exchange $exchange
        json "r['exchange'] == '$exchange' and 0 < r['moved_bytes'] < (1 if '$exchange' == 'direct' else 2) * r['bytes']"
    done
    ok 2 sort "$name" --type f32 -o out.raw --json
    json "r['exchange'] == 'bitonic'"
    ok 2 check out.raw --type f32 --json --against "$name"
    json "r['sorted'] and r['first_disorder'] is None"
    json "r['against']['same_keys'] and len(r['fingerprint']) == 32 and (r['keys'], r['bytes']) == (3000, 12000)"
    run 2 check "$name" --type f32 --json
    json "not r['sorted'] and r['first_disorder']['position'] >= 1 and float(r['first_disorder']['key']) < 1"
    ok 1 sort "$name" --type f32 -o out.raw --json
    json "r['paths'] == {} and r['moved_bytes'] == 0"
    TZ=XYZ-9 SLURM_JOB_ID=4711 SLURM_RESTART_COUNT=2 ok 0 sort "$name" --type f32 -r -o out.raw --json
    json "r['order'] == 'descending' and r['job'] == {'scheduler': 'slurm', 'id': '4711', 'restarts': 2}"
    json "abs(__import__('calendar').timegm(__import__('time').strptime(r['ended'], '%Y-%m-%dT%H:%M:%SZ')) - __import__('time').time()) < 3600"
    ok 1 info --json
    json "r['path_speeds'] == [] and r['path_speeds_error'] is None"
    ok 3 info --json
    json "[p['ranks'] for p in r['path_speeds']] == [[0, 1], [0, 2], [1, 2]] and r['path_speeds_error'] is None"
    json "all(p['gb_per_s'] > 0 and p['latency_s'] > 0 and p['path'] == r['paths'][0][1] for p in r['path_speeds'])"
    json "len(r['ranks']) == 3 and [len(p) for p in r['paths']] == [3, 3, 3] and r['paths'][1][1] is None"
    rm ./*
}

good_texts()
{
    local command words
    for command in gen sort check gather select bench plan report info; do
        ok 3 "$command" --help
        if grep -q 'see KEY below' "$work.out" && ! grep -q '^KEY, ' "$work.out"; then
            fail "$command --help does not say what KEY is"
        fi
        [ "$(grep -c '^usage: .*hypersort '"$command" "$work.out")" = 1 ] || fail "$command --help"
    done
    ok 0 gen --help
    grep -q '^Records have one KEY, @OFFSET:TYPE of numbers' "$work.out" || fail "gen --help does not say which KEY it takes"
    ok 3 --help
    [ "$(grep -c '^usage: ' "$work.out")" = 1 ] || fail "--help"
    local help
    help=$(cat "$work.out")
    for words in Environment 'Exit codes' 'For example'; do
        [[ $help = *"$words"* ]] || fail "--help lacks $words"
    done
    ok 2 help
    [ "$(cat "$work.out")" = "$help" ] || fail "help is not --help"
    for words in help version; do
        ok 0 help "$words"
        [ "$(cat "$work.out")" = "$help" ] || fail "help $words is not --help"
    done
    ok 0 sort -h
    help=$(cat "$work.out")
    ok 2 help sort
    [ "$(cat "$work.out")" = "$help" ] || fail "help sort is not sort --help"
    for words in version -V --version "sort -V" "info --version"; do
        # shellcheck disable=SC2086  # words
        ok 0 $words
        [ "$(cat "$work.out")" = "$("$HYPERSORT" --version)" ] || fail "$words is not --version"
    done
    ok 3 --version
    [ "$(cat "$work.out")" = "$(grep '^hypersort [0-9.]*, commit' "$work.out")" ] || fail "--version"
    ok 3 info
    [ "$(grep -c '^rank [0-2] \|^paths ' "$work.out")" = 4 ] || fail "info"
    [ "$(grep -c '^GB/s \|^latency \|^  *[0-2]\( .*\) \.\( \|$\)' "$work.out")" = 8 ] || fail "info: the tables of paths"
    ok 9 info --engine host --threads 1
    if [ "$(awk 'length > 110' "$work.out" | wc -l)" != 0 ] || [ "$(grep -cE '^  [a-z]+ +in a node +36 pairs( +[0-9.e+-]+){3} GB/s( +[0-9.e+-]+){3} us$' "$work.out")" != 1 ] ||
        ! awk '/^  [a-z]* .* pairs /{ exit !($7 <= $8 && $8 <= $9 && $11 <= $12 && $12 <= $13 && $7 > 0 && $11 > 0) }' "$work.out"; then
        fail "info: the summary of 9 ranks"
    fi
    ok 9 info --engine host --threads 1 -v
    [ "$(grep -c '^GB/s \|^latency \|^  *[0-8]\( .*\) \.\( \|$\)' "$work.out")" = 20 ] || fail "info -v: the tables of 9 ranks"
    ok 18 info --engine host --threads 1 # of 153 pairs 27 are measured
    grep -qE '^  [a-z]+ +in a node +153 pairs .* us$' "$work.out" || fail "info: the summary of 18 ranks"
    ok 18 info --engine host --threads 1 --verbose # neighbours in a ring of 18, and 9 pairs across it
    [ "$(grep -c '^ *[0-9]*-[0-9]* .* GB/s .* us, ' "$work.out")" = 27 ] || fail "info: the list of paths"
    ok 2 gen -n 10000 -o in.raw
    ok 3 sort in.raw --type u64 -o out.raw --transport staged
    [ "$(grep -cE '^  by staged   3 pairs, [0-9.]+ kB; [0-9.]+ kB of one rank in [0-9.]+ [mu]?s, [0-9.]+ [kMG]?B/s$' "$work.out")" = 1 ] ||
        fail "sort: what moved by staged"
    grep -q '^keys         10000 u64, ascending, 80 kB$' "$work.out" && grep -qE '^rate         [0-9.]+ [kMG]keys/s, ' "$work.out" ||
        fail "sort: the units of its report"
    ok 0 sort in.raw --type u64 -o out.raw
    grep -qE '^(exchange|merge|gather|verify|moved)|, (exchange|transport) | 0 [a-zA-Z]*s$| 0\.0000' "$work.out" && fail "sort: a report of what did not run"
    grep -qE '^local_sort +[0-9.]+ [mu]?s$' "$work.out" || fail "sort: a report without its local sort"
    ok 0 sort in.raw --type u64 --index index.npy
    grep -qE '^(exchange|moved)|, exchange |^  (exchange|merge) ' "$work.out" && fail "sort --index: a report of what did not run"
    ok 3 sort in.raw --type u64 -o out.raw --peer-memory off --shared-memory off --mpi-device-pointers off --verify
    run 3 sort in.raw --type u64 -o out.raw --progress
    begin='^hypersort: (job [^ ]+ )?[0-2][0-9]:[0-5][0-9]:[0-6][0-9] [0-9]+ s  '
    if [ "$code" != 0 ] || ! grep -qE "${begin}read 100 % of 78.12 KiB$" "$work.err" ||
        ! grep -qE "${begin}write 100 %" "$work.err" || grep -q $'\r' "$work.err" ||
        grep -qvE "${begin}[a-z0-9_]+ ([0-9]+ % of 78.12 KiB|of 78.12 KiB: (done|step [0-9]+ of [0-9]+))$" "$work.err"; then
        fail "sort --progress"
    fi
    run 2 sort in.raw --type u64 -o out.raw --progress --runs 7
    # Two phases by turns would begin anew at each step, and no line would ever be due.
    if [ "$code" != 0 ] || ! grep -qE "${begin}read 100 %" "$work.err" || ! grep -qE "${begin}write 100 %" "$work.err" ||
        grep -qE 'runs|segments' "$work.err"; then
        fail "sort --progress by way of the disk"
    fi
    ok 0 sort in.raw --type u64 -o out.raw --progress=off
    if command -v script >/dev/null; then # on a terminal; short phases draw no bar
        TERM=xterm script -qec "$HYPERSORT sort in.raw --type u64 -o out.raw" script.log >/dev/null </dev/null
        if ! tr -d '\r' <script.log | sed 's/^.*\x1b\[K//' | grep -q '^rate ' || grep -q ' s  read 100 %' script.log; then
            fail "sort on a terminal: $(cat script.log)"
        fi
        TERM=dumb script -qec "$HYPERSORT sort in.raw --type u64 -o out.raw --progress" script.log >/dev/null </dev/null
        grep -q ' s  read 100 %' script.log || fail "sort --progress on a terminal without bars"
    else
        echo "not tested: a terminal (there is no script)"
    fi
    SLURM_JOB_ID=4714 SLURM_ARRAY_JOB_ID=4711 SLURM_ARRAY_TASK_ID=3 SLURM_RESTART_COUNT=1 \
        run 2 sort in.raw --type u64 -o out.raw --progress
    if [ "$code" != 0 ] || grep -qv '^hypersort: job 4711_3 ..:..:.. ' "$work.err" ||
        ! grep -q '^job          4711_3, slurm, restarted 1 time$' "$work.out" ||
        [ "$(grep '^hosts ' "$work.out")" != "hosts        1: $(hostname)" ]; then
        fail "sort, and its progress, in a job"
    fi
    rm ./*
}

# Numbers with units, and no report.
good_words()
{
    local number
    for number in 1500000 1.5e6 1500K; do
        ok 0 gen -n "$number" --type u8 -o "$number"
    done
    [ "$(stat -c %s 1500000 1.5e6 1500K | xargs)" = "1500000 1500000 1536000" ] || fail "gen -n 1500000, 1.5e6 or 1500K"
    ok 2 sort 1.5e6 --type uint8 -o out --chunk 0.5MiB --device-memory 2^30 --quiet
    [ -s "$work.out" ] && fail "sort --quiet says something"
    ok 2 check out --type uint8 --against 1500000 -q
    [ -s "$work.out" ] && fail "check -q says something"
    run 2 check 1500000 --type u8 -q
    [ "$code" = 1 ] && [ ! -s "$work.out" ] && [ "$(wc -l <"$work.err")" = 1 ] || fail "check -q of keys out of order"
    ok 0 bench -n 1e3,2^10 --types uint8,'<f4' --form csv --engine host
    [ "$(grep -cE '^1,.*,(u8|f32),uniform,10(00|24),' "$work.out")" = 4 ] || fail "bench: sizes and types"
    ok 0 gen -n 100 --record 16 --key @8:float64 -o records
    ok 2 sort records -o sorted --record 16 --key '@8:<f8'
    ok 0 check sorted --record 16 --key @8:f64
    rm ./*
}

# Names that need --format; options may stand anywhere; files with names that are options or hold control characters.
odd_names()
{
    ok 0 gen -n 100 --format raw -o keys.h5
    ok 2 sort --format raw keys.h5 --type u64 -o out.csv --output-format raw
    ok 0 check out.csv --format raw --type u64 --against keys.h5
    ok 0 gen -n 100 -o keys.NPY
    ok 0 sort keys.NPY -o ./-
    ok 0 check ./- --type u64 --against keys.NPY
    POSIXLY_CORRECT=1 ok 2 sort keys.NPY -o out --output-format npy --verify
    POSIXLY_CORRECT=1 ok 0 sort -o --out -- keys.NPY
    cmp -s ./- ./--out || fail "operands behind --"
    cp keys.NPY reread
    ok 0 sort --verify ./reread --format npy -o ./=out --output-format raw
    cmp -s ./- ./=out || fail "a file that is named as a value of the option before it"
    ok 0 gen -n 100 --dist sorted -o $'a\n\033[2Jb.raw'
    ok 0 check $'a\n\033[2Jb.raw' --type u64 --against $'a\n\033[2Jb.raw'
    grep -q 'against      a??\[2Jb.raw, 100 keys: the same keys' "$work.out" || fail "control characters in a report of check"
    ok 0 plan $'a\n\033[2Jb.raw' --type u64 -n 2
    grep -q 'input        a??\[2Jb.raw: 100 u64 keys' "$work.out" || fail "control characters in a plan"
    rm -- ./*
}

# The same bytes past the page cache and through it. Where the file system refuses O_DIRECT, `on` is an error that says so.
direct_io()
{
    local ways way ranks
    ok 2 gen -n 300001 --dist zipf -o in.npy --direct-io off
    ok 1 sort in.npy -o one.npy --direct-io off
    run 2 gen -n 300001 --dist zipf -o direct.npy --direct-io on
    if [ "$code" = 3 ] && grep -q '^hypersort: rank 0 on .*direct.npy: its file system refuses O_DIRECT: ' "$work.err"; then
        echo "skipped --direct-io on: this file system refuses it"
        ways="auto off"
    else
        [ "$code" = 0 ] && cmp -s in.npy direct.npy || fail "gen --direct-io on"
        ways="auto on off"
    fi
    for way in $ways; do
        for ranks in 1 2 3 5; do
            ok "$ranks" sort in.npy -o out.npy --direct-io "$way"
            cmp -s one.npy out.npy || fail "sort --direct-io $way on $ranks ranks: other bytes"
        done
        ok 3 check out.npy --against in.npy --direct-io "$way"
    done
    rm ./*
}

run_parts good_gen good_sort good_formats good_check good_names good_json good_texts good_words odd_names direct_io
finish
