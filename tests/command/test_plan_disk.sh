#!/bin/bash
# What is said before a sort by way of the disk, against what such a sort then does: `plan` on drawn sizes, memory and ranks; runs,
# segments and bytes on disk, exactly; whether the disk is needed at all, or memory too little; a rank's resident memory. `info
# --disk` and `plan --disk`: how fast a disk is, on file systems of several kinds; nothing is left, not even after a signal.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
draw_seed

# value NAME: of that member in the last JSON, the last one of this name.
value() { grep -o "\"$1\": [^,}]*" "$work.out" | tail -n 1 | sed 's/.*: //'; }

# compare RANKS WHAT COUNT WORDS [BESIDE]: plan and sort say the same. WHAT: a type of keys, or records: BYTES:TYPE, or gensort. BESIDE:
# what else is asked for: some of values, index, unique, rank.
compare()
{
    local ranks=$1 words=$4 name of_plan line what made output="-o out.raw" beside=${5:-} sorted moved=
    local -A bytes=([u32]=4 [20:u64]=20 [f64]=8 [gensort]=100 [u128]=16 [64:bytes16]=64 [u64]=8)
    for name in $beside; do
        case $name in
            values) words+=" --values in.raw --value-bytes ${bytes[$2]}" moved="-O out.values" ;;
            index) words+=" --index out.index" ;;
            unique) words+=" --unique" ;;
            rank) output="-o out.%r.raw" ;;
        esac
    done
    words+=" $output"
    case $2 in
        gensort) what="--format gensort" made=$what ;;
        *:*) what="--record ${2%:*} --key @3:${2#*:}" made="--record ${2%:*} --key @3:u64" ;;
        *) what="--type $2" made="--type $2 --format raw" ;;
    esac
    # shellcheck disable=SC2086  # words
    ok 0 gen -n "$3" $made $([ "$2" = gensort ] || echo "-s $seed") -o in.raw
    # shellcheck disable=SC2086  # words
    ok 0 plan in.raw $what -n "$ranks" --engine host --threads 1 $words --json
    line=$(value lacks)
    if [ "$line" != null ]; then
        lacking=$((lacking + 1))
        # shellcheck disable=SC2086
        run "$ranks" sort in.raw $what --engine host --threads 1 $words $moved
        if [ "$code" != 5 ] || ! grep -qF " elements of " "$work.err"; then
            fail "$words, $3 $2 on $ranks ranks: plan says that memory lacks, the sort does not: $line"
        fi
        return
    fi
    sorted=$((bytes[$2]))
    [[ $beside != *values* ]] || sorted=$((2 * sorted))
    [[ $beside != *index* ]] || sorted=$((sorted + 8))
    if [ "$(value needed)" = true ] && [ -n "$beside" ]; then
        [ "$(value sorted_bytes_on_disk)" = $(($3 * sorted)) ] || fail "$words: plan deals out $(value sorted_bytes_on_disk) bytes"
    fi
    of_plan=$(for name in needed runs segments run_bytes_on_disk; do value $name; done | tr '\n' ' ')
    # shellcheck disable=SC2086
    ok "$ranks" sort in.raw $what --engine host --threads 1 $words --json $moved
    line=$(grep -o '"passes": [0-9]*' "$work.out" | sed 's/.*: 2/true/; s/.*: 1/false/')
    line="$line $(for name in runs segments run_bytes_on_disk; do value $name; done | tr '\n' ' ')"
    [ "$of_plan" = "$line" ] || fail "$words, $3 $2 on $ranks ranks: plan says $of_plan, the sort $line"
    case $line in true*) by_disk=$((by_disk + 1)) ;; *) in_memory=$((in_memory + 1)) ;; esac
}

plans()
{
    local i ranks keys type memory beside=("" unique "values index" rank "index" "unique values" "" "rank index") types=(u32 20:u64 f64 gensort u128 64:bytes16)
    by_disk=0 in_memory=0 lacking=0
    compare 1 u64 0 "-S 1M"
    compare 2 u16 1000 "-S 1M"
    compare 3 u64 100000 "-S 1000"
    compare 2 u64 100000 "-S 1G"
    compare 3 u64 300000 "-S 1M"
    compare 2 f64 200000 "-S 50% --runs 7"
    compare 2 gensort 20000 "-S 1G"
    compare 3 u64 60000 "-S 2M --runs 9" "values index unique rank"
    for i in $(seq "${DRAWS:-6}"); do
        ranks=$(((RANDOM % 5) + 1)) type=${types[i % 6]} keys=$((1 + (RANDOM << 15 | RANDOM) % 1000000))
        case $type in gensort | *:*) keys=$((keys / 8 + 1)) ;; esac
        memory=$((200000 + (RANDOM << 15 | RANDOM) % 4000000))
        [ $((RANDOM % 3)) != 0 ] || memory=$((memory * 10))
        compare "$ranks" "$type" "$keys" "-S $memory$([ $((RANDOM % 3)) = 0 ] && echo " --runs $((1 + RANDOM % 60))")" "${beside[(i + RANDOM) % 8]}"
    done
    echo "$by_disk by way of the disk, $in_memory in memory, $lacking with too little of it"
    if [ $((by_disk < 2 || in_memory < 3 || lacking < 1)) = 1 ]; then
        fail "cases of a kind are missing"
    fi
    rm -f in.raw out.*
}

# What plan prints, with rates and without.
texts()
{
    ok 0 gen -n 1000000 --type u64 -o in.raw --format raw
    ok 0 plan in.raw --type u64 -n 1 2 --engine host --threads 1 -S 2M -T . --disk-read-gbs 1 --disk-write-gbs 0.5
    for line in "  reads      1 GB/s of all ranks together, given" "  writes     500 MB/s of all ranks together, given" \
        "temporary    \.: .* free" "  memory     at most 2.00 MiB of the host for each rank, and .* besides" \
        "  the disk   takes [0-9]* runs, .* MiB; [0-9]* segments" "             runs .* s, cuts .* s, segments .* s: .* s in all" \
        "             the other rows assume enough memory"; do
        grep -q "^$line\$" "$work.out" || fail "plan lacks the line '$line'"
    done
    ok 0 plan in.raw --type u64 -n 2 --engine host --threads 1 -S 2M --disk-read-gbs 1 --disk-write-gbs 0.5 --json
    json "r['disk_rates']['read'] == {'value': 1e9, 'unit': 'bytes/s', 'source': 'given'} and r['disk_rates']['write']['value'] == 5e8"
    json "r['plans'][0]['passes'] == 2 and r['plans'][0]['exchange'] == 'none' and 'two_passes' not in r['plans'][0]"
    # Twice all bytes each way at least; and the phases are all of it.
    json "r['plans'][0]['by_disk']['total_seconds'] >= 2 * 8e6 * (1 / 1e9 + 1 / 5e8)"
    json "abs(sum(r['plans'][0]['by_disk']['phases'].values()) - r['plans'][0]['by_disk']['total_seconds']) < 1e-9"
    # Of each key one: what was sorted is read twice more, and what is kept is written.
    ok 0 plan in.raw --type u64 --unique -n 2 --engine host --threads 1 -S 2M --disk-read-gbs 1 --disk-write-gbs 0.5 --json
    json "r['plans'][0]['by_disk']['total_seconds'] >= 8e6 * (4 / 1e9 + 3 / 5e8)"
    # Nothing is said of time without rates; a GPU's memory decides there.
    ok 0 plan in.raw --type u64 -n 2 --engine host --threads 1 -S 2M --json
    json "r['disk_rates'] == {'read': None, 'write': None} and r['plans'][0]['by_disk']['total_seconds'] is None"
    ok 0 plan in.raw --type u64 -n 2 --engine cuda -S 1M --json
    json "not r['plans'][0]['by_disk']['needed'] and r['plans'][0]['passes'] == 1"
    ok 0 plan in.raw --type u64 -n 2 --engine cuda -S 1M
    grep -q -- "--device-memory says what it has" "$work.out" || fail "plan does not say that a GPU's memory is not known"
    ok 0 plan in.raw --type u64 -n 2 --engine cuda -S 1M --device-memory 2M --json
    json "r['plans'][0]['by_disk']['needed'] and r['plans'][0]['by_disk']['runs'] > 2"
    ok 0 plan in.raw --type u64 -n 2 --engine cuda -S 64M --device-memory 2M --json
    json "not r['plans'][0]['by_disk']['needed'] and r['plans'][0]['passes'] == 2 and r['plans'][0]['runs_per_rank'] > 1"
    ok 0 plan in.raw --type u64 -n 2 --json
    json "r['plans'][0]['by_disk'] is None and r['disk'] is None"
    # Of records: with memory, and the way by the disk, which takes longer as they are moved after their codes are sorted.
    ok 0 plan in.raw --record 16 --key @8:u64 -n 1 2 --engine host --threads 1 -S 4M --disk-read-gbs 1 --disk-write-gbs 0.5
    for line in "input        in.raw: 500000 records of 16 bytes, keys of 8, 7.63 MiB" \
        "  each       250000 records, 3.81 MiB; in memory they take .* of the engine" "  the disk   takes [0-9]* runs, .*"; do
        grep -q "^$line\$" "$work.out" || fail "plan of records lacks the line '$line'"
    done
    ok 0 plan in.raw --record 16 --key @8:u64 -n 2 --engine host -S 1G --json
    json "r['records'] == 500000 and r['key_bytes'] == 8 and r['element_bytes'] == 16 and not r['plans'][0]['by_disk']['needed']"
    json "r['plans'][0]['engine_bytes_per_rank'] > 2 * r['plans'][0]['bytes_per_rank'] == 2 * 4e6"
    # What that takes, where it does not go by way of the disk, nor in two passes: of codes, and of records behind them.
    json "r['plans'][0]['one_pass']['exchange'] == 'bitonic' and r['plans'][0]['one_pass']['sorted_bytes'] == 16"
    json "not r['plans'][0]['one_pass']['with_keys'] and r['plans'][0]['one_pass']['phases']['gather'] > 0"
    json "abs(sum(r['plans'][0]['one_pass']['phases'].values()) - r['plans'][0]['one_pass']['total_seconds']) < 1e-9"
    # Half of all codes and records change ranks, and a position with each record.
    json "abs(r['plans'][0]['one_pass']['moved_bytes'] - 250e3 * (16 + 16 + 8)) < 1e3"
    ok 0 plan in.raw --record 16 --key @8:u64 -n 2 --engine host -S 4M --json
    json "r['plans'][0]['by_disk']['needed'] and r['plans'][0]['one_pass'] is None"
    ok 0 plan in.raw --record 16 --key @8:u64 -n 2 --engine cuda --device-memory 4M --json
    json "not r['plans'][0]['by_disk']['needed'] and r['plans'][0]['one_pass'] is None"
    ok 0 plan in.raw --record 16 --key @8:u64 -n 1 2 --engine cuda --device-memory 46M
    [ "$(grep -c '^  two passes through the engine, which has less than that$' "$work.out")" = 1 ] || fail "plan does not say that one rank takes two passes, and two one"
    ok 0 plan in.raw --record 16 --key @8:u64 -n 2 --engine host
    grep -q "^  sorts      codes of 16 bytes, by bitonic; a rank sends 4.77 MiB, all 9.54 MiB\$" "$work.out" || fail "plan does not say what is sorted"
    grep -q "^  takes      h2d 0, local_sort .*, in all 0.[0-9]* s\$" "$work.out" || fail "plan does not say what records take"
    # Values travel with bare keys on GPUs, on several from 16 MiB on a rank on; one of each key sorts the keys alone; by positions values
    # are gathered.
    truncate -s 1G holes.raw
    ok 0 plan holes.raw --type u64 --values holes.raw --value-bytes 8 -n 1 2 256 --engine cuda --json
    json "[p['one_pass']['with_keys'] for p in r['plans']] == [p['one_pass']['phases']['gather'] == 0 for p in r['plans']] == [True, True, False]"
    json "[p['one_pass']['exchange'] for p in r['plans']] == ['bitonic', 'partition', 'direct']"
    rm holes.raw
    ok 0 plan in.raw --type u64 --values in.raw --value-bytes 8 --index at.npy -n 2 --engine host
    grep -q "^input        in.raw: 1000000 records of 24 bytes with what travels with them, keys of 8, 22.89 MiB\$" "$work.out" ||
        fail "plan does not say that values and positions are counted"
    ok 0 plan in.raw --type u64 --unique -n 2 --engine cuda --json
    json "r['plans'][0]['one_pass']['sorted_bytes'] == 8 and r['plans'][0]['one_pass']['phases']['gather'] == 0"
    # In memory they take what keys alone do, and two passes where that is more than there is.
    ok 0 plan in.raw --type u64 --unique -n 2 --engine host --device-memory 16M --json
    json "r['plans'][0]['one_pass'] and r['plans'][0]['engine_bytes_per_rank'] == 8e6"
    ok 2 sort in.raw --type u64 --unique -o out.raw --engine host --threads 1 --device-memory 16M --json
    [ "$(value passes)" = 1 ] || fail "--unique takes two passes where plan says one"
    ok 0 plan in.raw --type u64 --unique -n 2 --engine host --device-memory 6M --json
    json "r['plans'][0]['one_pass'] is None and not r['plans'][0]['by_disk']['needed']"
    ok 0 plan in.raw --type u64 --unique -n 2 --engine host --device-memory 6M
    grep -q '^  two passes through the engine' "$work.out" || fail "plan does not say that keys alone take two passes"
    ok 2 sort in.raw --type u64 --unique -o out.raw --engine host --threads 1 --device-memory 6M --json
    [ "$(value passes)" = 2 ] || fail "--unique takes one pass where plan says two"
    # Records of which one pass takes all of the memory take two: a 64th of it is left free.
    ok 0 plan in.raw --record 16 --key @8:u64 -n 1 --engine host --threads 1 --json
    limit=$(value engine_bytes_per_rank)
    for limit in "$limit" $((limit + limit / 63 + 1)); do
        ok 0 plan in.raw --record 16 --key @8:u64 -n 1 --engine host --threads 1 --device-memory "$limit" --json
        passes=$(grep -q '"one_pass": null' "$work.out" && echo 2 || echo 1)
        ok 0 sort in.raw --record 16 --key @8:u64 -o out.raw --engine host --threads 1 --device-memory "$limit" --json
        [ "$(value passes)" = "$passes" ] || fail "records, $limit bytes: plan says $passes passes, the sort takes $(value passes)"
    done
    rm out.raw
    # Of a rank's records memory has two copies, codes of all and of those that are kept, where each run begins and how long it is.
    truncate -s 16M holes.raw
    ok 0 plan holes.raw --record 16 --key @0:bytes16 --unique -n 1 --engine cuda -S 79M --json
    json "r['plans'][0]['by_disk']['needed']"
    ok 0 plan holes.raw --record 16 --key @0:bytes16 --unique -n 1 --engine cuda -S 80M --json
    json "not r['plans'][0]['by_disk']['needed']"
    rm holes.raw
    ok 0 plan in.raw --type u8 --unique -n 2 --engine host
    grep -q '^  sorts      keys of 1 bytes, counted; a rank sends 0 bytes, all 0 bytes$' "$work.out" || fail "plan of keys that are counted"
    ok 0 plan in.raw --type u64 --values in.raw --value-bytes 8 --index at.npy -n 2 --engine host --json
    json "r['plans'][0]['one_pass']['phases']['gather'] > 0 and not r['plans'][0]['one_pass']['with_keys']"
    refused 0 2 "the keys have 24 bytes together; at most 16 are allowed" plan in.raw --record 32 --key @0:bytes16,@16:u64 -n 2
    refused 0 2 "--memory: '0'" plan in.raw --type u64 -n 2 -S 0
    refused 3 2 "in.raw: --runs: keys of 1 or 2 bytes are counted" plan in.raw --type u8 -n 2 --runs 3
    refused 0 2 "in.raw: --runs: keys of 1 or 2 bytes are counted" plan in.raw --type u16 -n 2 --runs 3 -o out.%r.raw
    ok 0 plan in.raw --type u8 -n 2 --runs 3 --index at.npy
    refused 0 2 "--disk-read-gbs: '0'" plan in.raw --type u64 -n 2 --disk-read-gbs 0
    rm in.raw
}

# measured RANKS DIRECTORY: info --disk measures it, and leaves nothing there.
measured()
{
    ok "$1" info --disk "$2" --engine host --threads 2 --json
    json "r['disk']['directory'] == '$2' and r['disk']['ranks'] == $1 and r['disk']['threads'] == 2 and r['disk']['file_system']"
    json "r['disk']['read_gb_per_s'] > 0 and r['disk']['write_gb_per_s'] > 0 and r['host_link'] is None"
    json "0 < r['disk']['read_bytes'] <= r['disk']['written_bytes'] <= min(1 << 30, r['disk']['free_bytes'] / 16)"
    [ -z "$(ls -A "$2")" ] || fail "info --disk $2 leaves $(ls -A "$2")"
}

disks()
{
    local shared small=
    mkdir there
    if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=256M none small 2>/dev/null; then
        small=small # a small disk, so that this takes no seconds
        measured 3 small
        grep -q '"file_system": "tmpfs", "direct_io": false' "$work.out" || fail "tmpfs is said to be another file system"
        head -c 250M /dev/zero >small/full
        refused 2 3 "small: too full to be measured" info --disk small --engine host
        rm small/full
        ok 0 info --disk small --engine host
        grep -q '^disk         small: tmpfs, through the page cache; .* free$' "$work.out" || fail "info does not say how it was read"
        grep -q '^             reads .* writes .*: 1 rank, [0-9]* threads\? each$' "$work.out" || fail "info lacks the rates of a disk"
        ok 0 gen -n 1000 --type u64 -o in.raw --format raw
        ok 2 plan in.raw --type u64 -n 4 --engine host --runs 3 --disk small --disk-write-gbs 7 --json
        json "r['disk']['ranks'] == 2 and r['disk_rates']['read']['source'] == 'measured' and r['disk_rates']['write']['value'] == 7e9"
        json "r['plans'][0]['by_disk']['total_seconds'] > 0"
    fi
    # A signal while it measures: that, too, leaves nothing. Where it has ended by then, the case says nothing.
    "$HYPERSORT" info --disk there --engine host --threads 1 >"$work.out" 2>"$work.err" &
    for _ in $(seq 200); do
        shared=$(find /proc/$!/fd -lname '*/there/*(deleted)' 2>/dev/null | wc -l)
        [ "$shared" = 0 ] && kill -0 $! 2>/dev/null && sleep 0.01 && continue
        break
    done
    kill -TERM $! 2>/dev/null
    wait $!
    code=$?
    [ "$shared" != 0 ] || echo "the file was not seen"
    [ -z "$(ls -A there)" ] || fail "a signal leaves $(ls -A there), exit code $code"
    refused 2 3 "rank 0 on |none: no file can be made there: No such file" info --disk none --engine host
    : >file
    refused 0 3 "file: no file can be made there: Not a directory" info --disk file --engine host
    refused 0 2 "unknown option '--disk'" sort file -o out --disk .
    code=0
    (ulimit -f 16384 && exec "$HYPERSORT" info --disk there --engine host) >"$work.out" 2>"$work.err" || code=$?
    if [ "$code" != 3 ] || ! grep -q 'there: cannot reserve .* bytes: File too large$' "$work.err" || [ -n "$(ls -A there)" ]; then
        fail "files that may not be so long: exit code $code"
    fi
    [ -z "$small" ] || umount small
}

for part in plans texts disks; do
    $part
    echo "$part: done after $SECONDS s"
done
finish
