#!/bin/bash
# The command when something goes wrong, for every kind of bad input and bad luck that needs no fault site: the exit code, one clear
# line, no output, no temporary, the input untouched, no hang.
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

# On three ranks, which take a second; in a drawn run three of four times on one.
RANDOM=$((${HYPERSORT_SEED:-0} % 32768))
refused_drawn()
{
    local ranks=3
    if [ -n "${HYPERSORT_SEED:-}" ] && ((RANDOM % 4 > 0)); then
        ranks=0
    fi
    refused "$ranks" "$@"
}

# ---- Usage ----------------------------------------------------------------------------------------

bad_usage()
{
    refused_everywhere 2 "no command|'hypersort --help'"
    refused_everywhere 2 "'sorf' is not a command (did you mean sort?)" sorf in -o out
    refused_everywhere 2 "unknown option '--bogus'; see 'hypersort sort --help'" sort in -o out --bogus
    refused_drawn 2 "'sorf' is not a command (did you mean sort?)" help sorf
    refused 0 2 "'verson' is not a command (did you mean version?)" verson
    refused 0 2 "unexpected argument 'now'" version now
    refused 0 2 "unexpected argument 'gen'" help sort gen
    refused 0 2 "unexpected argument 'gen'" help version gen
    refused 0 2 "option '--out=out' can be --output or --output-format; see" sort in --out=out
    refused 0 2 "unknown option '--thraeds=3' (did you mean --threads?)" sort in -o out --thraeds=3
    refused 0 2 "unknown option '--descending': -r is for bare keys, KEY:desc for records" sort in -o out --descending
    refused 0 2 "unknown option '--descending'; see" gather in -o out --descending
    refused 0 2 "'--json' is not a command; options stand behind the command" --json sort in -o out
    refused 0 2 "unknown option '-k' (did you mean --key?)" sort in -o out -k a
    refused_drawn 2 "unknown option '-n': mpirun takes the number of ranks" sort in -o out -n 4
    refused_drawn 2 "-o=out: write -o out or --output=out" sort in -o=out
    refused 0 2 "'reread' behind --verify: write --verify=reread, or ./reread" sort in -o out --verify reread
    refused 0 2 "'direkt' is not one of auto|(did you mean direct?)" sort in -o out --exchange direkt
    refused 0 2 "'gaus' is not a distribution (did you mean gauss?)" gen -n 1 --dist gaus -o out
    refused 0 2 "--types: 'U64' is not one of u32|(did you mean u64?)" bench --types U64
    refused 0 2 "--memory: 'devise' is not one of device|(did you mean device?)" bench -n 1 --memory devise
    refused 0 2 "--key is given twice, and takes one KEY[,KEY ...]" sort in -o out --key a --key b
    refused 0 2 "--at is given twice, and takes one PLACE[,PLACE ...]" select in --at 0 --type u64 --at 1
    refused 0 2 "--values is given twice" sort in -o out --values a -O b --values c -O d
    refused 0 2 "--values-output is given twice" sort in -o out --values a -O b -O d
    refused 0 2 "--output is given twice, and takes one FILE" sort in -o out --output out2
    refused 0 2 "--index is given twice" sort in -o out --index a --index b
    refused 0 2 "--counts is given twice" sort in -o out --unique --counts a --counts b
    refused 0 2 "--by is given twice" gather in --by a --by b -o out
    refused 0 2 "--checkpoint is given twice" sort in -o out --checkpoint a --checkpoint b
    refused 0 2 "--trace is given twice" sort in -o out --trace a --trace b
    refused 0 2 "--summary is given twice" check in --format gensort --summary a --summary b
    refused 0 2 "--quiet and --json" sort in -o out -q --json
    refused_drawn 2 "unknown option '-x'" check -x in
    refused_drawn 2 "unknown option '--verify'" check --verify in
    refused_drawn 2 "'--type' lacks its u32" sort in -o out --type
    refused_drawn 2 "'-o' lacks its FILE" sort in -o
    refused_drawn 2 "--no-verify takes no value" sort in -o out --no-verify=1
    refused_drawn 2 "--type: 'u24' is not one of u32|i32" sort in -o out --type u24
    refused 0 2 "--type: '>u8' is not one of u32|i32" sort in -o out --type '>u8'
    if grep -q 'did you mean' "$work.err"; then fail "a byte is offered for a number of 8 bytes"; fi
    refused 0 2 "--type: 'float' is float32 in C and float64 in NumPy: say which" sort in -o out --type float
    refused 0 2 "--type: 'int' is int32 in C and int64 in NumPy: say which" gen -n 1 -o out --type int
    refused 0 2 "--type: 'unsigned' is uint32 in C" gen -n 1 -o out --type unsigned
    refused 0 2 "--type: 'long' is int64 or int32" check in --type long
    refused 0 2 "--type: 'char' is int8 or uint8 in C" check in --type char
    refused_drawn 2 "--verify and --no-verify" sort in -o out --no-verify --verify=reread
    refused 0 2 "--verify and --no-verify" sort in -o out --verify --no-verify
    refused 0 2 "--temp-limit: 0 is not a size" sort in -o out --temp-limit 0
    local words
    for words in "sort in -o out" "gen -n 5 -o out --key @0:u8" "check in" "gather in --by by -o out" "plan in -n 2"; do
        # shellcheck disable=SC2086  # words
        refused 0 2 "--record: an element cannot have 0 bytes" $words --record 0
    done
    refused 0 2 "--format gensort: its records have 100 bytes" check in --format gensort --record 0
    refused 0 2 "--value-bytes: an element cannot have 0 bytes" sort in -o out --values v -O w --value-bytes 0
    refused 0 2 "--output-format gensort|--key" sort in --type u64 -o out --output-format gensort
    refused 0 2 "--dist and --seed|gensort" gen -n 1 -o out --format gensort --seed 1
    refused 0 2 "--dist and --seed|gensort" gen -n 1 -o out --format gensort --dist zipf
    refused 0 2 "--dist: 'narrow' needs a number: narrow:BITS" gen -n 1 -o out --dist narrow
    refused 0 2 "--counts is for bare keys" check in --unique --counts c --against d --key a
    refused_drawn 2 "--peer-memory: 'never' is not one of auto|off|on" sort in -o out --peer-memory never
    refused_drawn 2 "--direct-io: 'yes' is not one of auto|off|on" sort in -o out --direct-io yes
    refused_drawn 2 "--threads: '3x'" sort in -o out --threads 3x
    refused_drawn 2 "--threads: '-1'" sort in -o out --threads -1
    refused_drawn 2 "--threads: '1KB'|powers of 1024" sort in -o out --threads 1KB
    refused_drawn 2 "--chunk: '1P'|powers of 1024" sort in -o out --chunk 1P
    refused_drawn 2 "--chunk: '99999999999G'" sort in -o out --chunk 99999999999G
    refused_drawn 2 "--count: '1.5'" gen -n 1.5 -o out
    refused 0 2 "--count: '10GB'|1e6" gen -n 10GB -o out
    refused 0 2 "--count: '2^59' is too large; see" gen -n 2^59 -o out # with 16 bytes each they cannot be counted
    # shellcheck disable=SC2046  # words
    refused 0 2 "--against: more than 1024" check in --type u64 $(printf -- '--against in %.0s' {1..1025})
    refused 0 2 "--temp-limit: '16777216T'" sort in -o out --temp-limit 16777216T
    refused 0 2 "'1.5' is not a number of ranks" plan in.npy -n 1.5
    refused_drawn 2 "--seed: '18446744073709551616'" gen -n 1 -s 18446744073709551616 -o out
    refused_drawn 2 "--output: '' cannot be FILE" gen -n 1 -o ""
    refused_drawn 2 "--nodes: '0'" plan in.npy -n 4 --nodes 0
    refused 0 2 "--ranks-per-node: '0'" plan in.npy -n 4 --ranks-per-node 0
    refused_drawn 2 "-n COUNT is missing" gen -o out
    # What would be taken for raw keys, or for a file called -.
    local suffix
    for suffix in h5 hdf5 npz csv txt parquet fits bam gz zst H5; do
        refused 0 2 "out.$suffix|'.${suffix,,}' files|--format raw" gen -n 1 -o "out.$suffix"
        refused 0 2 "out.$suffix|--output-format raw" sort in.npy -o "out.$suffix"
        refused 0 2 "in.$suffix|--format raw" sort "in.$suffix" --type u64 -o out
        refused 0 2 "in.$suffix|--format raw" check in.npy --against "in.$suffix"
    done
    refused 0 2 "in.h5:g: name a group or a dataset of this HDF5 file, as in.h5:/g; see" sort in.h5:g -o out.h5:/g --key id
    refused 0 2 "out.h5:g: name a group or a dataset of this HDF5 file, as out.h5:/g|--output-format raw" sort in.npy -o out.h5:g
    refused 0 2 "in.h5:: name a group or a dataset of this HDF5 file, as in.h5:/NAME|--format raw" check in.npy --against in.h5:
    refused_drawn 2 "standard input|./-" sort - --type u64 -o out
    refused 0 2 "standard input or output|./-" sort in --type u64 -o -
    refused 0 2 "standard input or output|./-" gen -n 1 -o -
    refused 0 2 "standard input or output|./-" check in --type u64 --against -
    refused_drawn 2 "-o FILE is missing" sort in
    refused 0 2 "-o FILE is missing" sort in --runs 3
    refused_drawn 2 "IN is missing" sort -o out
    refused_drawn 2 "unexpected argument 'more'" gen -n 1 more -o out
    refused_drawn 2 "unexpected argument 'more'" info more
    refused_everywhere 2 "'gaus' is not a distribution|narrow:BITS" gen -n 1 --dist gaus -o out
    refused_drawn 2 "'narrow:65'|from 1 to 64" gen -n 1 --dist narrow:65 -o out
}

# ---- Bad input ------------------------------------------------------------------------------------

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
    refused 3 2 "out.npy: records of gensort have 100 bytes, and these 10" \
        sort good.raw --record 10 --key @0:u16 -o out.npy --output-format gensort
    refused 3 2 "out.npy: NumPy has no dtype for u128 keys|--output-format raw" sort good.raw --type u128 -o out.npy
    refused 2 2 "out.npy: NumPy has no dtype for bf16 keys|or --format raw" gen -n 10 --type bf16 -o out.npy

    local start
    for start in 'PK\3\4' '\x89HDF\r\n\x1a\n' 'PAR1PAR1' '\x1f\x8b\b\0' '\x28\xb5\x2f\xfd' '\x93NUMPY\1\0' 'SIMPLE  ='; do
        # shellcheck disable=SC2059  # bytes
        { printf "$start"; head -c 64 good.raw; } | head -c 64 >other.raw
        refused 0 2 "other.raw: begins like a .|say --format raw" sort other.raw --type u64 -o out
        refused 0 2 "other.raw: begins like a .|say --format raw" check good.raw --type u64 --against other.raw
        ok 0 sort other.raw --format raw --type u64 -o out
        rm out
    done
    printf 'SIMPLE  ' >other.raw # which ends before it is one
    ok 0 sort other.raw --type u64 -o out
    rm out other.raw
    : >empty.npy
    head -c 40 good.npy >cut.npy
    head -c 1000 good.npy >short.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': $f, 'shape': (3, 1), }"; printf %s "$keys"; } >flat.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': True, 'shape': (1, 3), }"; printf %s "$keys"; } >fortran.npy
    { npy 1 "{'descr': '<c8', 'fortran_order': $f, $three"; printf %s "$keys$keys"; } >complex.npy
    { npy 1 "{'descr': '<b2', 'fortran_order': $f, $three"; printf %s "123456"; } >bf16.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': $f, 'shape': (4,), }"; printf %s "$keys"; } >lie.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': $f, 'shape': (99999999999999999999,), }"; echo; } >huge.npy
    { npy 1 "{'descr': '<u4', 'fortran_order': $f, 'shape': (-3,), }"; printf %s "$keys"; } >negative.npy
    { npy 9 "{'descr': '<u4', 'fortran_order': $f, $three"; printf %s "$keys"; } >version.npy
    { printf '\x93NUMPY\x02\x00\xff\xff\xff\xff'; printf "{'descr': '<u4'"; } >header.npy
    printf 'not at all an array of numbers' >text.npy
    local name
    for name in empty cut short flat fortran complex bf16 lie huge negative version header text; do
        refused 1 2 "$name.npy" check "$name.npy"
        refused 3 2 "$name.npy" sort "$name.npy" -o out
    done
    rm -r ./*
}

# Raw values, an index and counts may begin as a file of another format does; keys of 1 byte.
raw_that_seems_other()
{
    ok 1 gen -n 128 -o keys.raw
    { printf 'PK\3\4' && head -c 508 keys.raw; } >values.raw
    ok 2 sort keys.raw --type u64 -o out --values values.raw --value-bytes 4 -O moved
    refused 2 2 "values.raw: begins like a .npz file; if its keys are raw, say --value-bytes BYTES" \
        sort keys.raw --type u64 -o out --values values.raw -O moved
    head -c 559904 /dev/zero >many.raw
    { printf '\x1f\x8b\x08\0\0\0\0\0' && printf '\0%.0s' {1..8}; } >index.raw # entries 559903 and 0
    ok 2 gather many.raw --record 1 --by index.raw -o out
    head -c 559903 many.raw >fewer.raw
    ok 2 sort fewer.raw --type u8 -o out --unique --counts counts.raw
    cmp -s counts.raw <(head -c 8 index.raw) || fail "the counts do not begin as a .gz file does"
    ok 2 check out --type u8 --unique --counts counts.raw --against fewer.raw
    refused 2 2 "many.raw: --runs: keys of 1 or 2 bytes" sort many.raw --type u8 -o out --runs 3
    rm ./*
}

# What is no key type and sorted all the same, by the only column: the line says so, and so it is.
sorted_by_column()
{
    local dtype bytes
    for dtype in '<M8[ns]' '>m8[s]' '|b1' '|S1' '|S16' '|V3' '|V16'; do
        bytes=${dtype//[^0-9]/}
        { npy 1 "{'descr': '$dtype', 'fortran_order': False, 'shape': (3,), }"; printf "%$((3 * bytes))s" "" | tr ' ' '\1'; } >column.npy
        refused 0 2 "dtype '$dtype' is not a key type|; --key 0 sorts it" sort column.npy -o out.npy
        ok 0 sort column.npy -o out.npy --key 0
        ok 0 check out.npy --key 0 --against column.npy
        rm ./*
    done
    for dtype in '|S17' '|V17' '<U1' '<c8'; do
        bytes=${dtype//[^0-9]/}
        [ "$dtype" = '<U1' ] && bytes=4
        { npy 1 "{'descr': '$dtype', 'fortran_order': False, 'shape': (3,), }"; printf "%$((3 * bytes))s" "" | tr ' ' '\1'; } >column.npy
        refused 0 2 "forms are" sort column.npy -o out.npy
        if grep -q -e '--key 0' "$work.err"; then fail "$dtype is said to be sorted by --key 0"; fi
        refused 0 2 "which is not a key" sort column.npy -o out.npy --key 0
        rm ./*
    done
}

# More threads than OpenMP can make end the process, in the middle of the work or before it.
bad_threads()
{
    local command
    ok 1 gen -n 1000 -o in.raw
    for command in "gen -n 1000 -o out" "sort in.raw --type u64 -o out" "check in.raw --type u64" "info"; do
        # shellcheck disable=SC2086  # words
        refused 2 2 "threads; this machine allows at most" $command --threads 100000
        # shellcheck disable=SC2086  # words
        refused 0 2 "2147483647 threads; this machine allows at most" $command --threads 2147483647
    done
    OMP_NUM_THREADS=100000 refused 1 2 "OMP_NUM_THREADS: 100000 threads" gen -n 1000 -o out
    OMP_NUM_THREADS=100000 refused 1 2 "OMP_NUM_THREADS: 100000 threads" check in.raw --type u64
    OMP_NUM_THREADS=100000 ok 1 sort in.raw --type u64 -o out # takes the cores it may use
    rm ./*
}

# ---- Bad output, bad luck -------------------------------------------------------------------------

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

# A file of another user in a sticky directory cannot be replaced: said before any work, and on every rank. Root, who may replace it,
# becomes another user here.
sticky()
{
    local words plain=$MPIRUN another="setpriv --reuid=65534 --regid=65534 --clear-groups"
    chmod 755 .
    # shellcheck disable=SC2086  # words
    if [ "$(id -u)" != 0 ] || ! { $another "$HYPERSORT" --version && $another ls "$work"; } >"$work.out" 2>"$work.err"; then
        echo "not tested: sticky directories (this is not root, or others cannot run the command here)"
        return
    fi
    mkdir -m 1777 tmp shared
    local MPIRUN="env TMPDIR=$work/tmp OMPI_MCA_orte_tmpdir_base=$work/tmp HOME=$work/tmp $another $plain"
    for words in "gen -n 10 -o" "sort in.raw --type u64 -o" "sort in.raw --type u64 --runs 3 -o" "sort in.raw --type u64 --unique -o" \
        "sort in.raw --type u64 -o shared/new --index" "gather in.raw --record 8 --by index.npy -o"; do
        MPIRUN=$plain ok 1 gen -n 1000 -o in.raw
        MPIRUN=$plain ok 1 sort in.raw --type u64 --index index.npy
        chmod 644 in.raw index.npy
        echo old >shared/out
        echo old >shared/out.0
        # shellcheck disable=SC2086  # words
        refused 3 3 "shared/out: cannot replace: Operation not permitted" $words shared/out
        # shellcheck disable=SC2086  # words
        refused 3 3 "rank 0 on |shared/out.0: cannot replace: Operation not permitted" $words shared/out.%r
        # shellcheck disable=SC2086  # words
        refused 3 2 "shared/out: is there already" $words shared/out --no-clobber
        chown 65534 shared/out
        # shellcheck disable=SC2086  # words
        ok 3 $words shared/out
        # shellcheck disable=SC2086  # words
        MPIRUN=$plain ok 3 $words shared/out
        rm shared/*
    done
    rm -r ./*
    chmod 700 .
}

same_outputs()
{
    if ! cmp -s "$1.a.npy" wanted.npy || ! cmp -s "$1.b.npy" wanted.i.npy; then fail "$2: other outputs"; fi
}

# Outputs whose names are alike but for their ends, and too long to have more behind them.
long_names()
{
    local length name
    ok 1 gen -n 1000 -o in.raw
    ok 1 sort in.raw --type u64 -o wanted.npy --index wanted.i.npy
    for length in 200 218 230 240 247; do
        name=$(printf "%${length}s" "" | tr ' ' x)
        ok 3 sort in.raw --type u64 -o "$name.%r.npy"
        ok 3 sort in.raw --type u64 -o "$name.%r.npy" # replaces what is there
        ok 0 check "$name".[0-2].npy --against in.raw --type u64
        ok 3 sort in.raw --type u64 -o "$name.a.npy" --index "$name.b.npy"
        same_outputs "$name" "names of $length"
        rm "$name".?.npy
        [ "$length" -gt 234 ] && continue # no directory of runs can have such a name
        ok 3 sort in.raw --type u64 -o "$name.%r.npy" --runs 3
        ok 0 check "$name".[0-2].npy --against in.raw --type u64
        ok 3 sort in.raw --type u64 -o "$name.a.npy" --index "$name.b.npy" --runs 3
        same_outputs "$name" "names of $length, by the disk"
        rm "$name".?.npy
    done
    name=$(printf "%255s" "" | tr ' ' x)
    ok 3 sort in.raw --type u64 -o "$name" --output-format npy
    cmp -s "$name" wanted.npy || fail "a name of 255 characters: another output"
    rm ./*
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
            ! grep -q '^hypersort: out?.hypersort-1-000000002.part was left by a run that was killed or stopped, .*: remove it if none is to go on with it$' "$work.err"; then
            fail "$command beside a temporary that was left: exit code $code"
        fi
    done
    rm ./*
}

# Files that are there stay, and nothing is begun; the same of each kind of output.
clobbered()
{
    local words
    ok 1 gen -n 1000 -o in.raw
    ok 1 gen -n 5 -o old
    ln -s old link
    cp old own.1
    ok 0 sort in.raw --type u64 --index index.npy
    for words in "gen -n 10 -o old" "gen -n 10 --record 24 --key @0:u64 -o link" "sort in.raw --type u64 -o old" \
        "sort in.raw --type u64 -o old --runs 3" "sort in.raw --type u64 -o out --index old" \
        "sort in.raw --type u64 -o out --values in.raw --value-bytes 8 -O old" "sort in.raw --type u64 -o old --checkpoint ck" \
        "sort in.raw --type u64 -o out --unique --counts old" "gather in.raw --record 8 --by index.npy -o old"; do
        # shellcheck disable=SC2086  # words
        refused 0 2 "old: is there already" $words --no-clobber
    done
    refused 3 2 "rank 0 on |old: is there already" sort in.raw --type u64 -o old --no-clobber
    refused 3 2 "rank 1 on |own.1: is there already" sort in.raw --type u64 -o own.%r --no-clobber
    ok 3 sort in.raw --type u64 -o new --no-clobber --index new.npy
    ok 3 sort in.raw --type u64 -o new.%r --no-clobber
    ok 3 gather in.raw --record 8 --by index.npy -o gathered --no-clobber
    cmp -s new gathered || fail "--no-clobber: another result"
    # Of two that begin together one has the name, whichever it is.
    for words in "gen -n 1M" "sort in.raw --type u64" "gather in.raw --record 8 --by index.npy"; do
        # shellcheck disable=SC2086  # words
        apart $MPIRUN --quiet -n 2 "$HYPERSORT" $words -o twin --no-clobber >/dev/null 2>&1 &
        # shellcheck disable=SC2086  # words
        run 2 $words -o twin --no-clobber
        wait $!
        [ "$((code + $?))" = 2 ] && [ -e twin ] || fail "$words: two runs at once with --no-clobber"
        rm twin
    done
    rm -r ./*
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
    timeout 120 $MPIRUN --quiet -n 1 "$HYPERSORT" $3 : -n "$1" "$HYPERSORT" $4 >"$work.out" 2>"$work.err" </dev/null || code=$?
    if [ "$code" != 2 ] || [ "$(wc -l <"$work.err")" != 1 ] || [ -s "$work.out" ] ||
        ! grep -q "^hypersort: $2" "$work.err" || [ "$(contents)" != "$before" ]; then
        fail "'$3' on rank 0, '$4' on $1 others: exit code $code, not 2, or not one line with '$2'"
    fi
}

bad_pairs()
{
    ok 1 gen -n 1000 -o a.raw
    ok 1 gen -n 1000 -s 2 -o b.raw
    local command="sort a.raw --type u64 -o out"
    pair 1 "rank 1 on .*: unknown option '--nonsense'" "$command" "$command --nonsense"
    pair 2 "rank 0 on .*: unknown option '--nonsense'" "$command --nonsense" "$command"
    pair 2 "rank 0 on .*: unknown option '--this'" "$command --this" "$command --that"
    pair 2 "rank 1 on .*: -o FILE is missing" "$command" "sort a.raw --type u64"
    pair 1 "rank 1 on .*: no command given" "$command" ""
    pair 1 "rank 1 on .*: --help is not that of rank 0" "info" "info --help"
    pair 2 "rank 1 on .*: the command is not that of rank 0" "sort --help" "--help"
    pair 1 "rank 1 on .*: the command is not that of rank 0" "check a.raw --type u64" "$command"
    pair 2 "rank 1 on .*: the command is not that of rank 0" "$command" "--version"
    pair 2 "rank 1 on .*: --no-verify is not that" "$command" "$command --no-verify"
    pair 1 "rank 1 on .*: --no-verify is not that" "$command --no-verify" "$command"
    pair 1 "rank 1 on .*: --checkpoint is not that" "$command --checkpoint ck" "$command"
    pair 1 "rank 1 on .*: --checkpoint is not that" "$command" "$command --checkpoint ck"
    pair 2 "rank 1 on .*: --against is not that" "check a.raw --type u64" "check a.raw --type u64 --against b.raw"
    pair 2 "rank 1 on .*: IN is not that of rank 0" "$command" "sort b.raw --type u64 -o out"
    pair 1 "rank 1 on .*: --output is not that" "$command" "sort a.raw --type u64 -o out2"
    pair 1 "rank 1 on .*: --seed is not that" "gen -n 10 -o out" "gen -n 10 -o out -s 2"
    pair 2 "rank 1 on .*: --count is not that" "gen -n 10 -o out" "gen -n 11 -o out"
    pair 1 "rank 1 on .*: --type is not that" "gen -n 10 -o out" "gen -n 10 -o out --type u32"
    pair 1 "rank 1 on .*: --ranks is not that" "plan a.raw --type u64 -n 2" "plan a.raw --type u64 -n 2 3"
    # Another build: of the same size, and with another word in what it says of itself.
    LC_ALL=C sed 's/, commit %s/, commis %s/' "$HYPERSORT" >other && chmod +x other
    code=0
    # shellcheck disable=SC2086  # words
    timeout 120 $MPIRUN --quiet -n 1 "$HYPERSORT" $command : -n 1 ./other $command >"$work.out" 2>"$work.err" </dev/null || code=$?
    [ "$code" = 2 ] && [ ! -e out ] && grep -q '^hypersort: rank 1 on .*: runs another build of hypersort than rank 0$' "$work.err" ||
        fail "two builds in one run: exit code $code"
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
    for words in 0:--help 0:-h 0:help "0:help sort" 0:version 0:--version 0:-V "0:sort -V" "0:sort --help" 2:sorf "2:sort in --nonsense" "2:gen -n 5"; do
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
    "$HYPERSORT" sort closed.raw --type u64 -o out.raw --progress --quiet 0<&- 1>&- 2>&- || code=$?
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
            [ "$(readlink "/proc/$pid/fd/$fd")" = /dev/$([ $fd = 1 ] && echo full || echo null) ] ||
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
    local words
    "$HYPERSORT" gen -n 100 -o some.raw
    for words in --help version info "check some.raw --type u64" "sort some.raw --type u64 -o sorted.raw"; do
        code=0
        # shellcheck disable=SC2086  # words
        "$HYPERSORT" $words >&- 2>"$work.err" || code=$?
        if [ "$code" != 3 ] || ! grep -q 'standard output: No space' "$work.err"; then
            fail "$words, with a closed standard output: exit code $code"
        fi
    done
    rm some.raw sorted.raw
    { sleep 0.5; "$HYPERSORT" --help; echo $? >"$work.out"; } 2>"$work.err" | true
    if [ "$(cat "$work.out")" != 3 ] || ! grep -q 'standard output: Broken pipe' "$work.err"; then
        fail "--help into a closed pipe"
    fi
    # A shell that may write files of 2 KiB: less than this text takes.
    code=0
    (ulimit -f 2 && exec "$HYPERSORT" sort --help) >help.txt 2>/dev/null || code=$?
    [ "$code" = 3 ] || fail "--help into a file that may not be so long: exit code $code"
    rm help.txt
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

run_parts bad_usage bad_input raw_that_seems_other sorted_by_column bad_threads bad_output sticky long_names stale_part clobbered \
    bad_disk bad_device bad_launch bad_pairs without_mpi closed_files bad_stdout bad_sort
finish
