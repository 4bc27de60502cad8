#!/bin/bash
# The command as its user sees it: what works, on several rank counts; and for every kind of bad input and bad
# luck that needs no fault site: the exit code, one clear line, no output, no temporary, the input untouched,
# no hang.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

refused_everywhere()
{
    local ranks
    for ranks in 1 3 4; do
        refused "$ranks" "$@"
    done
}

# ---- Good paths
# ---------------------------------------------------------------------------------------------

# The numbers of a raw file, one per line, by od and not by what is tested.
numbers() { od -An -v -w"${1#?}" -t "$1" "$2"; }

good_gen()
{
    local type dist ranks
    for type in u32 f64; do
        for dist in uniform zipf gauss nearly:20 nan; do
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
    cmp -s default.bin explicit.bin || fail "gen: the defaults are not u64, uniform, seed 1"
    rm gen.? default.bin explicit.bin
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
    rm ./*
}

# json PYTHON-EXPRESSION: the last run printed one JSON object, and the expression holds for it as `r`.
json()
{
    if [ -z "$python" ]; then
        [ "$(wc -l <"$work.out")" = 1 ] || fail "--json: not one line"
    elif ! "$python" -c "import json, sys; r = json.load(sys.stdin); sys.exit(not ($1))" <"$work.out"; then
        fail "--json: not so: $1"
    fi
}

good_json()
{
    local exchange name=$'a "quote", a \\, a \t, a \xff and \xc3\xa9.raw' phases
    phases="['read', 'h2d', 'local_sort', 'exchange', 'merge', 'd2h', 'write', 'verify']"
    ok 1 gen -n 3000 --type f32 -o "$name"
    ok 3 sort "$name" --type f32 -o out.raw --json
    json "r['schema_version'] == 1 and r['keys'] == 3000 and r['bytes'] == 12000 and r['type'] == 'f32'"
    json "r['ranks'] == 3 and r['order'] == 'ascending' and r['verify'] is None"
    json "r['build'].startswith('hypersort ') and r['engine'] in ('host', 'cuda')"
    json "list(r['phases']) == $phases and r['moved_bytes'] > 0 and r['gkeys_per_s'] > 0"
    json "r['input'] == 'a \"quote\", a \\\\, a \\t, a \\ufffd and \\u00e9.raw' and r['output'] == 'out.raw'"
    ok 3 sort "$name" --type f32 -o out.raw --json --verify --transport staged
    json "list(r['paths']) == ['staged'] and r['paths']['staged']['pairs'] == 3"
    json "0 < r['paths']['staged']['moved_bytes_largest'] <= r['paths']['staged']['moved_bytes'] == r['moved_bytes']"
    json "r['paths']['staged']['seconds'] > 0 and r['paths']['staged']['gb_per_s'] > 0"
    json "r['verify'] == {'sorted': True, 'count_ok': True, 'fingerprint_ok': True}"
    json "r['transport'] == 'staged'"
    for exchange in bitonic direct; do
        ok 3 sort "$name" --type f32 -o out.raw --json --exchange $exchange
        json "r['exchange'] == '$exchange' and 0 < r['moved_bytes'] < (1 if '$exchange' == 'direct' else 2) * r['bytes']"
    done
    ok 2 sort "$name" --type f32 -o out.raw --json
    json "r['exchange'] == 'bitonic'"
    ok 2 check out.raw --type f32 --json --against "$name"
    json "r['sorted'] and r['first_disorder'] is None"
    json "r['against']['same_keys'] and len(r['fingerprint']) == 32"
    run 2 check "$name" --type f32 --json
    json "not r['sorted'] and r['first_disorder']['position'] >= 1 and float(r['first_disorder']['key']) < 1"
    ok 1 sort "$name" --type f32 -o out.raw --json
    json "r['paths'] == {} and r['moved_bytes'] == 0"
    ok 1 info --json
    json "r['reach'] == [] and r['reach_error'] is None"
    ok 3 info --json
    json "[p['ranks'] for p in r['reach']] == [[0, 1], [0, 2], [1, 2]] and r['reach_error'] is None"
    json "all(p['gb_per_s'] > 0 and p['latency_s'] > 0 and p['path'] == r['paths'][0][1] for p in r['reach'])"
    json "len(r['ranks']) == 3 and [len(p) for p in r['paths']] == [3, 3, 3] and r['paths'][1][1] is None"
    rm ./*
}

good_texts()
{
    local command
    for command in gen sort check info; do
        ok 3 "$command" --help
        [ "$(grep -c '^usage: .*hypersort '"$command" "$work.out")" = 1 ] || fail "$command --help"
    done
    ok 3 --help
    [ "$(grep -c '^usage: ' "$work.out")" = 1 ] || fail "--help"
    ok 3 --version
    [ "$(cat "$work.out")" = "$(grep '^hypersort [0-9.]*, commit' "$work.out")" ] || fail "--version"
    ok 3 info
    [ "$(grep -c '^rank [0-2] \|^paths ' "$work.out")" = 4 ] || fail "info"
    [ "$(grep -c '^GB/s \|^latency \|^  *[0-2]\( .*\) \.\( \|$\)' "$work.out")" = 8 ] || fail "info: the tables of paths"
    ok 18 info --engine host --threads 1 # neighbours in a ring of 18, and 9 pairs across it
    [ "$(grep -c '^ *[0-9]*-[0-9]* .* GB/s .* us, ' "$work.out")" = 27 ] || fail "info: the list of paths"
    ok 2 gen -n 10000 -o in.raw
    ok 3 sort in.raw --type u64 -o out.raw --transport staged
    [ "$(grep -c '^  by staged   3 pairs, .* GB of one rank in .* s, .* GB/s$' "$work.out")" = 1 ] || fail "sort: what moved by staged"
    ok 3 sort in.raw --type u64 -o out.raw --peer-memory off --shared-memory off --mpi-device-pointers off --verify
    run 3 sort in.raw --type u64 -o out.raw --progress
    begin='^hypersort: (job [^ ]+ )?[0-2][0-9]:[0-5][0-9]:[0-6][0-9] [0-9]+ s  '
    if [ "$code" != 0 ] || ! grep -qE "${begin}read 100 % of 78.12 KiB$" "$work.err" ||
        ! grep -qE "${begin}write 100 %" "$work.err" || grep -q $'\r' "$work.err" ||
        grep -qvE "${begin}[a-z0-9_]+ ([0-9]+ % of 78.12 KiB|of 78.12 KiB: (done|step [0-9]+ of [0-9]+))$" "$work.err"; then
        fail "sort --progress"
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

# ---- Usage
# --------------------------------------------------------------------------------------------------

bad_usage()
{
    refused_everywhere 2 "no command|'hypersort --help'"
    refused_everywhere 2 "'sorf' is no command" sorf in -o out
    refused_everywhere 2 "unknown option '--bogus'|'hypersort sort --help'" sort in -o out --bogus
    refused 3 2 "unknown option '-x'" check -x in
    refused 3 2 "unknown option '--verify'" check --verify in
    refused 3 2 "'--type' lacks its u32" sort in -o out --type
    refused 3 2 "'-o' lacks its FILE" sort in -o
    refused 3 2 "--verify takes no value" sort in -o out --verify=1
    refused 3 2 "--type: 'u16' is none of u32|i32" sort in -o out --type u16
    refused 3 2 "--peer-memory: 'never' is none of auto|off|on" sort in -o out --peer-memory never
    refused 3 2 "--threads: '3x'" sort in -o out --threads 3x
    refused 3 2 "--threads: '-1'" sort in -o out --threads -1
    refused 3 2 "--threads: '1K'" sort in -o out --threads 1K
    refused 3 2 "--piece: '1T'" sort in -o out --piece 1T
    refused 3 2 "--piece: '99999999999G'" sort in -o out --piece 99999999999G
    refused 3 2 "--count: '1.5'" gen -n 1.5 -o out
    refused 3 2 "--seed: '18446744073709551616'" gen -n 1 -s 18446744073709551616 -o out
    refused 3 2 "--output: '' is no FILE" gen -n 1 -o ""
    refused 3 2 "--nodes: '0'" plan in.npy -n 4 --nodes 0
    refused 0 2 "--ranks-per-node: '0'" plan in.npy -n 4 --ranks-per-node 0
    refused 3 2 "-n COUNT is missing" gen -o out
    # What would be taken for raw keys, or for a file called -.
    local suffix
    for suffix in h5 hdf5 npz csv txt parquet fits bam gz zst H5; do
        refused 0 2 "out.$suffix|'.${suffix,,}' files|--format raw" gen -n 1 -o "out.$suffix"
        refused 0 2 "out.$suffix|--output-format raw" sort in.npy -o "out.$suffix"
        refused 0 2 "in.$suffix|--format raw" sort "in.$suffix" --type u64 -o out
        refused 0 2 "in.$suffix|--format raw" check in.npy --against "in.$suffix"
    done
    refused 3 2 "standard input|./-" sort - --type u64 -o out
    refused 0 2 "standard input or output|./-" sort in --type u64 -o -
    refused 0 2 "standard input or output|./-" gen -n 1 -o -
    refused 0 2 "standard input or output|./-" check in --type u64 --against -
    refused 3 2 "-o FILE is missing" sort in
    refused 3 2 "IN is missing" sort -o out
    refused 3 2 "unexpected argument 'more'" sort in more -o out
    refused 3 2 "unexpected argument 'more'" info more
    refused_everywhere 2 "'gaus' is no distribution|narrow:BITS" gen -n 1 --dist gaus -o out
    refused 3 2 "'narrow:65'|from 1 to 64" gen -n 1 --dist narrow:65 -o out
}

# What the refusals above say helps; options may stand anywhere; files with names that are options or hold control characters.
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
    ok 0 gen -n 100 --dist sorted -o $'a\n\033[2Jb.raw'
    ok 0 check $'a\n\033[2Jb.raw' --type u64 --against $'a\n\033[2Jb.raw'
    grep -q 'against      a??\[2Jb.raw, 100 keys: the same keys' "$work.out" || fail "control characters in a report of check"
    ok 0 plan $'a\n\033[2Jb.raw' --type u64 -n 2
    grep -q 'input        a??\[2Jb.raw: 100 u64 keys' "$work.out" || fail "control characters in a plan"
    rm -- ./*
}

# ---- Bad input
# ----------------------------------------------------------------------------------------------

bad_input()
{
    local f=False three="'shape': (3,), }" keys='123456789012'
    ok 1 gen -n 1000 --type f64 -o good.npy
    ok 1 gen -n 1000 --type u64 -o good.raw
    head -c 7999 good.raw >odd.raw
    mkdir folder
    refused_everywhere 3 "missing.raw|No such file" sort missing.raw --type u64 -o out
    refused_everywhere 3 "folder" sort folder --type u64 -o out
    refused_everywhere 2 "odd.raw|7999|8" sort odd.raw --type u64 -o out
    refused_everywhere 2 "odd.raw" check odd.raw --type u64
    refused_everywhere 2 "good.raw" sort good.raw -o out
    refused_everywhere 2 "good.npy|f64|u64" sort good.npy --type u64 -o out
    refused_everywhere 2 "good.npy|f64|u64" check good.raw --type u64 --against good.npy
    refused 3 3 "missing.raw" check good.raw --type u64 --against missing.raw

    local start
    for start in 'PK\3\4' '\x89HDF\r\n\x1a\n' 'PAR1PAR1' '\x1f\x8b\b\0' '\x28\xb5\x2f\xfd' '\x93NUMPY\1\0'; do
        # shellcheck disable=SC2059  # bytes
        { printf "$start"; head -c 64 good.raw; } | head -c 64 >other.raw
        refused 0 2 "other.raw: begins as a .|say --format raw" sort other.raw --type u64 -o out
        refused 0 2 "other.raw: begins as a .|say --format raw" check good.raw --type u64 --against other.raw
        ok 0 sort other.raw --format raw --type u64 -o out
        rm out
    done
    rm other.raw
    : >empty.npy
    head -c 40 good.npy >cut.npy
    head -c 1000 good.npy >short.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': $f, 'shape': (3, 1), }"; printf %s "$keys"; } >flat.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': True, 'shape': (1, 3), }"; printf %s "$keys"; } >fortran.npy
    { npy 1 "{'descr': '<c8', 'fortran_order': $f, $three"; printf %s "$keys$keys"; } >complex.npy
    { npy 1 "{'descr': '<u2', 'fortran_order': $f, $three"; printf %s "123456"; } >u16.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': $f, 'shape': (4,), }"; printf %s "$keys"; } >lie.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': $f, 'shape': (99999999999999999999,), }"; echo; } >huge.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': $f, 'shape': (-3,), }"; printf %s "$keys"; } >negative.npy
    { npy 9 "{'descr': '<u4', 'fortran_order': $f, $three"; printf %s "$keys"; } >version.npy
    { printf '\x93NUMPY\x02\x00\xff\xff\xff\xff'; printf "{'descr': '<u4'"; } >header.npy
    printf 'not at all an array of numbers' >text.npy
    local name
    for name in empty cut short flat fortran complex u16 lie huge negative version header text; do
        refused 1 2 "$name.npy" check "$name.npy"
        refused 3 2 "$name.npy" sort "$name.npy" -o out
    done
    rm -r ./*
}

# ---- Bad output, bad luck
# -----------------------------------------------------------------------------------

bad_output()
{
    ok 1 gen -n 1000 -o in.raw
    ok 1 gen -n 5 -o old.raw
    mkdir folder
    ln -s in.raw link
    ln in.raw hard
    refused_everywhere 3 "nowhere/out|No such file" sort in.raw --type u64 -o nowhere/out
    refused_everywhere 3 "folder|directory" sort in.raw --type u64 -o folder
    refused_everywhere 2 "in.raw|is the input" sort in.raw --type u64 -o in.raw
    refused_everywhere 2 "link|is the input" sort in.raw --type u64 -o link
    refused 4 2 "hard|is the input" sort in.raw --type u64 -o hard
    refused 3 2 "is the input" sort hard --type u64 -o ./folder/../in.raw
    refused 3 3 "nowhere/out|No such file" gen -n 10 -o nowhere/out
    refused 3 2 "rung" sort in.raw --type u64 -o old.raw --local 99
    if [ "$(id -u)" != 0 ]; then
        chmod a-w folder
        refused_everywhere 3 "folder/out|Permission denied" sort in.raw --type u64 -o folder/out
        chmod a-r in.raw
        refused_everywhere 3 "in.raw|Permission denied" sort in.raw --type u64 -o out
        chmod a+r in.raw
        chmod a+w folder
    fi
    rm -r ./*
}

# What a killed run left is named and stays.
stale_part()
{
    local stale=$'out\n.hypersort-1-000000002.part'
    ok 1 gen -n 100 -o in.raw
    echo left >"$stale"
    for command in "gen -n 10" "sort in.raw --type u64"; do
        # shellcheck disable=SC2086  # two words and more
        run 3 $command -o $'out\n'
        if [ "$code" != 0 ] || [ "$(wc -l <"$work.err")" != 1 ] || [ "$(cat "$stale")" != left ] ||
            ! grep -q '^hypersort: out?.hypersort-1-000000002.part was left by a run that was killed' "$work.err"; then
            fail "$command beside a temporary that was left: exit code $code"
        fi
    done
    rm ./*
}

bad_disk()
{
    mkdir disk
    if [ "$(id -u)" != 0 ] || ! mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null; then
        echo "not tested: a full disk (a tmpfs cannot be mounted here)"
        return
    fi
    ok 1 gen -n 100000 --type u32 -o in.raw
    echo old >disk/out
    refused_everywhere 3 "disk/out|No space left" sort in.raw --type u32 -o disk/out
    refused_everywhere 3 "disk/new|No space left" gen -n 100000 -o disk/new
    umount disk
    rm -r ./*
}

bad_device()
{
    ok 1 gen -n 100000 -o in.raw
    run 1 info --engine auto
    if grep -q '^ *GPU [0-9]' "$work.out"; then
        refused_everywhere 5 "memory" sort in.raw --type u64 -o out --engine cuda --device-memory 64K
    else
        refused_everywhere 4 "rank 0|GPU" sort in.raw --type u64 -o out --engine cuda
    fi
    rm ./*
}

# A world of one that was started as several tasks; started without mpirun, as a foreign launcher does it.
alone()
{
    code=0
    env -u OMPI_COMM_WORLD_SIZE -u PMI_SIZE -u SLURM_STEP_NUM_TASKS "$@" >"$work.out" 2>"$work.err" || code=$?
}

bad_launch()
{
    local setting sort=("$HYPERSORT" sort in.raw --type u64 -o out)
    ok 1 gen -n 100 -o in.raw
    for setting in OMPI_COMM_WORLD_SIZE=4 PMI_SIZE=4 SLURM_STEP_NUM_TASKS=4; do
        alone "$setting" "${sort[@]}"
        if [ "$code" != 4 ] || [ -e out ] || ! grep -q 'hypersort: started as 4 tasks' "$work.err"; then
            fail "a lone rank under $setting: exit code $code"
        fi
    done
    alone PMI_SIZE=4 PMI_RANK=1 "${sort[@]}"
    if [ "$code" != 4 ] || [ -e out ] || [ -s "$work.err" ]; then
        fail "the second of 4 lone ranks repeats the line"
    fi
    alone SLURM_NTASKS=4 OMPI_COMM_WORLD_SIZE=1 SLURM_STEP_NUM_TASKS=2 "${sort[@]}"
    if [ "$code" != 0 ] || [ ! -e out ]; then
        fail "a single task in a batch script of 4: exit code $code"
    fi
    rm ./*
}

# pair RANKS WORDS FIRST SECOND: rank 0 is given the words of FIRST, RANKS others those of SECOND: one line, exit code 2, no
# hang, nothing changed.
pair()
{
    local before
    before=$(contents)
    code=0
    # shellcheck disable=SC2086  # options and words
    timeout 30 $MPIRUN --quiet -n 1 "$HYPERSORT" $3 : -n "$1" "$HYPERSORT" $4 >"$work.out" 2>"$work.err" </dev/null || code=$?
    if [ "$code" != 2 ] || [ "$(wc -l <"$work.err")" != 1 ] || [ -s "$work.out" ] ||
        ! grep -q "^hypersort: $2" "$work.err" || [ "$(contents)" != "$before" ]; then
        fail "'$3' on rank 0, '$4' on $1 others: exit code $code, not 2, or not one line with '$2'"
    fi
}

bad_pairs()
{
    ok 1 gen -n 1000 -o a.raw
    ok 1 gen -n 1000 -s 2 -o b.raw
    local sort="sort a.raw --type u64 -o out"
    pair 1 "rank 1 on .*: unknown option '--nonsense'" "$sort" "$sort --nonsense"
    pair 2 "rank 0 on .*: unknown option '--nonsense'" "$sort --nonsense" "$sort"
    pair 2 "rank 0 on .*: unknown option '--this'" "$sort --this" "$sort --that"
    pair 2 "rank 1 on .*: -o FILE is missing" "$sort" "sort a.raw --type u64"
    pair 1 "rank 1 on .*: no command given" "$sort" ""
    pair 1 "rank 1 on .*: --help is not that of rank 0" "info" "info --help"
    pair 2 "rank 1 on .*: the command is not that of rank 0" "sort --help" "--help"
    pair 1 "rank 1 on .*: the command is not that of rank 0" "check a.raw --type u64" "$sort"
    pair 2 "rank 1 on .*: the command is not that of rank 0" "$sort" "--version"
    pair 2 "rank 1 on .*: --verify is not that" "$sort" "$sort --verify"
    pair 1 "rank 1 on .*: --verify is not that" "$sort --verify" "$sort"
    pair 1 "rank 1 on .*: --checkpoint is not that" "$sort --checkpoint ck" "$sort"
    pair 1 "rank 1 on .*: --checkpoint is not that" "$sort" "$sort --checkpoint ck"
    pair 2 "rank 1 on .*: --against is not that" "check a.raw --type u64" "check a.raw --type u64 --against b.raw"
    pair 2 "rank 1 on .*: IN is not that of rank 0" "$sort" "sort b.raw --type u64 -o out"
    pair 1 "rank 1 on .*: --output is not that" "$sort" "sort a.raw --type u64 -o out2"
    pair 1 "rank 1 on .*: --seed is not that" "gen -n 10 -o out" "gen -n 10 -o out -s 2"
    pair 2 "rank 1 on .*: --count is not that" "gen -n 10 -o out" "gen -n 11 -o out"
    pair 1 "rank 1 on .*: --type is not that" "gen -n 10 -o out" "gen -n 10 -o out --type u32"
    pair 1 "rank 1 on .*: --ranks is not that" "plan a.raw --type u64 -n 2" "plan a.raw --type u64 -n 2 3"
    # Different words that say the same; and the number of threads is each rank's own.
    # shellcheck disable=SC2086  # options
    $MPIRUN --quiet -n 1 "$HYPERSORT" gen -n 1K --threads 1 -o out : -n 2 "$HYPERSORT" gen --out=out --count 1024 --threads 2 \
        >"$work.out" 2>"$work.err" </dev/null || fail "two spellings of one command"
    cmp -s -n 8000 out a.raw || fail "two spellings of one command wrote another file"
    rm ./*
}

# Texts and wrong command lines need no MPI where no launcher speaks of several ranks.
without_mpi()
{
    local words
    for words in 0:--help 0:--version "0:sort --help" 2:sorf "2:sort in --nonsense" "2:gen -n 5"; do
        code=0
        # shellcheck disable=SC2086  # words
        alone -u PMIX_RANK -u PMI_RANK -u SLURM_PROCID OMPI_MCA_pml=none "$HYPERSORT" ${words#*:}
        if [ "$code" != "${words%%:*}" ] || [ "$(cat "$work.out" "$work.err" | wc -l)" = 0 ]; then
            fail "'${words#*:}' where MPI cannot start: exit code $code"
        fi
    done
}

# Standard files that are closed: no other file takes their numbers.
closed_files()
{
    "$HYPERSORT" gen -n 1000 -o closed.raw 0<&- 1>&- 2>&-
    code=$?
    "$HYPERSORT" sort closed.raw --type u64 -o out.raw --progress 0<&- 1>&- 2>&- || code=$?
    "$HYPERSORT" check out.raw --type u64 --against closed.raw >"$work.out" 2>"$work.err" 0<&- || code=$?
    [ "$code" = 0 ] || fail "closed standard files: exit code $code"
    if [ "$HAS_FAULTS" = ON ]; then # a run that waits shows its descriptors
        HYPERSORT_FAULT=holdread:0 "$HYPERSORT" sort closed.raw --type u64 -o out.raw --checkpoint ck 0<&- 1>&- 2>&- &
        local pid=$! fd naps
        for ((naps = 0; naps < 300; naps++)); do
            compgen -G 'out.raw.*.part' >/dev/null && break
            sleep 0.1
        done
        for fd in 0 1 2; do
            [ "$(readlink "/proc/$pid/fd/$fd")" = /dev/null ] ||
                fail "descriptor $fd, which was closed, is $(readlink "/proc/$pid/fd/$fd")"
        done
        kill -USR1 $pid
        wait $pid
        rm -r ck
    fi
    rm -f ./*
}

bad_stdout()
{
    code=0
    "$HYPERSORT" info >/dev/full 2>"$work.err" || code=$?
    : >"$work.out"
    if [ "$code" != 3 ] || ! grep -q 'standard output: No space' "$work.err"; then
        fail "info on a full disk: exit code $code"
    fi
    { sleep 0.5; "$HYPERSORT" --help; echo $? >"$work.out"; } 2>"$work.err" | true
    if [ "$(cat "$work.out")" != 3 ] || ! grep -q 'standard output: Broken pipe' "$work.err"; then
        fail "--help into a closed pipe"
    fi
}

# A sort that sorts wrongly, to see that --verify notices: tests/command/broken_sort.c says how it breaks them.
bad_sort()
{
    local HYPERSORT=$BUILD/tests/hypersort_broken damage words before
    ok 1 gen -n 1000 -o in.raw
    before=$(contents)
    for damage in swap:sorted lose:fingerprint_ok; do
        for ranks in 1 3; do
            BROKEN_SORT=${damage%:*} run "$ranks" sort in.raw --type u64 -o out --verify --json
            words=${damage#*:}
            if [ "$code" != 1 ] || [ "$(grep -c 'in.raw: the sorted keys are not' "$work.err")" != 1 ] ||
                [ "$(contents)" != "$before" ]; then
                fail "--verify of a sort that does $damage, on $ranks ranks: exit code $code"
            fi
            json "not r['verify']['$words'] and r['verify']['count_ok']"
        done
    done
    rm ./*
}

good_gen
good_sort
good_formats
good_check
good_json
good_texts
bad_usage
odd_names
bad_input
bad_output
stale_part
bad_disk
bad_device
bad_launch
bad_pairs
without_mpi
closed_files
bad_stdout
bad_sort
finish
