#!/bin/bash
# What can go wrong with a sort by way of the disk: each fault site on the first, a middle and the last of 3 ranks; a disk that is
# full from the beginning or becomes so, one that is read-only; limits of descriptors and of files; no direct I/O; two commands at
# once. One line, the agreed exit code, and nothing is left, unless a disk is full: then the runs stay, and the same command goes on.
# Later passages of sites are drawn; ALL=1 walks all of them.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
need_faults
draw_seed

dir=out.hypersort-runs
keys=(sort in.raw --type u64 -o out --engine host --threads 1 --runs 5)
records=(sort in.raw --record 24 --key @3:u32 -o out --engine host --threads 1 --runs 5)
declare -A exits=([alloc]=5 [read]=3 [short]=3 [commit]=3 [changed]=3 [mpi]=6 [kernel]=70 [copy]=70)

# finished WANTED TEXT: the last run sorted, and nothing is left.
finished()
{
    if [ "$code" != 0 ] || [ -s "$work.err" ] || ! cmp -s out "$1"; then
        fail "$2: exit code $code, or another output"
    fi
    if compgen -G '*hypersort-*' >/dev/null; then
        fail "$2: left are $(find . -name '*hypersort-*' | tr '\n' ' ')"
        rm -rf ./*hypersort-*
    fi
    echo old >out
}

# stays TEXT: the last run found a full disk, said so, and left the output alone; what it made is there, or it had made nothing.
stays()
{
    if [ "$code" != 3 ] || [ "$(wc -l <"$work.err")" != 1 ] || [ -s "$work.out" ] || ! cmp -s out <(echo old); then
        fail "$1: exit code $code, or not one line, or the output was touched"
    elif compgen -G '*hypersort-*' >/dev/null; then
        grep -q "bytes of runs stay in .*hypersort-runs: the same command goes on when there is room; to give up, remove that and" "$work.err" ||
            fail "$1: the line does not say what stays"
    elif grep -q "bytes of runs stay in " "$work.err"; then
        fail "$1: the line says that runs stay, and none do"
    fi
}

# full WANTED FAULT ARGUMENT...: no space is left there; the same command goes on. $code is that of the first run.
full()
{
    local failed
    HYPERSORT_FAULT=$2 run 3 "${@:3}"
    failed=$code
    [ "$code" = 0 ] || stays "${*:3} with $2"
    [ "$code" = 0 ] || run $((1 + RANDOM % 3)) "${@:3}"
    finished "$1" "${*:3} after $2"
    code=$failed
}

sites()
{
    local site rank nth
    for site in "${!exits[@]}"; do
        for rank in 0 1 2; do
            HYPERSORT_FAULT=$site:$rank refused 3 "${exits[$site]}" "rank $rank on " "${keys[@]}"
        done
    done
    for rank in 0 1 2; do
        full wanted "write:$rank" "${keys[@]}"
    done
    # What is opened before the first run, one by one: what only one rank has is for none to end together.
    for nth in 2 3 4 5 6 7; do
        HYPERSORT_FAULT=alloc:1:$nth refused 3 5 "rank 1 on " "${keys[@]}"
    done
}

# The 2nd, 3rd, ... passage, until there is none and the run succeeds.
later_sites()
{
    local site rank nth
    for site in read write commit alloc copy short mpi; do
        rank=$((RANDOM % 3))
        for ((nth = 2; nth < 400; nth += ${ALL:+-8} + 9 + RANDOM % (${ALL:+-8} + 9))); do
            if [ $site = write ]; then
                full wanted-records "$site:$rank:$nth" "${records[@]}"
                [ "$code" != 0 ] || break
                continue
            fi
            HYPERSORT_FAULT=$site:$rank:$nth run 3 "${records[@]}"
            [ "$code" != 0 ] || break
            if [ "$code" != "${exits[$site]}" ] || [ "$(wc -l <"$work.err")" != 1 ] || ! cmp -s out <(echo old) ||
                compgen -G '*hypersort-*' >/dev/null; then
                fail "$site:$rank:$nth: exit code $code, not ${exits[$site]}, or not one line, or files were left or changed"
                rm -rf ./*hypersort-*
                echo old >out
            fi
        done
        [ "$nth" -lt 400 ] || fail "$site:$rank: still broken at passage $nth"
        [ $site = write ] || finished wanted-records "$site:$rank:$nth"
        echo "$site:$rank: fewer than $nth passages"
    done
}

# Direct I/O that is refused, at once or later, is done without.
direct()
{
    local fault
    for fault in direct:0 direct:1:3 direct:2:9; do
        HYPERSORT_FAULT=$fault run 3 "${keys[@]}" --direct-io auto
        finished wanted "$fault"
    done
}

# few WORDS ARGUMENT...: a run on one rank, without a launcher, after these words of the shell.
few()
{
    code=0
    timeout 300 bash -c "$1"' && exec "$@"' few "$HYPERSORT" "${@:2}" >"$work.out" 2>"$work.err" || code=$?
    sed -i '/^(null): Forwarding signal /d' "$work.err"
}

# Few descriptors do for many runs. Files that may not be long enough are a failure like a full disk, but more room does not help: a
# run with its fences is longer than the output.
limits()
{
    local count=2000000
    few "ulimit -n 64" "${keys[@]/5/200}"
    finished wanted "200 runs with 64 descriptors"
    ok 0 gen -n $count -o large.raw
    few "ulimit -f $((count * 8 / 1024 + 1))" sort large.raw --type u64 -o out --threads 1 --runs 1
    if [ "$code" != 3 ] || [ "$(wc -l <"$work.err")" != 1 ] || ! grep -q "$dir/run-000000.*: File too large" "$work.err"; then
        fail "runs that are too long files: exit code $code, or not one line"
    fi
    if compgen -G '*hypersort-*' >/dev/null || ! cmp -s out <(echo old); then
        fail "runs that are too long files: files were left or changed"
        rm -rf ./*hypersort-*
    fi
    rm large.raw
}

# Two commands that begin at once: one or both sort, the other one is refused, and nothing is left.
at_once()
{
    local i first second
    for ((i = 0; i < 3; i++)); do
        # shellcheck disable=SC2086  # MPIRUN is words
        apart timeout 300 $MPIRUN --quiet -n 2 "$HYPERSORT" "${keys[@]}" >"$work.out" 2>first.err &
        code=0 first=0 second=0
        timeout 300 "$HYPERSORT" "${keys[@]}" >"$work.out" 2>second.err || second=$?
        wait $! || first=$?
        without_warnings first.err second.err
        if [ "$first:$second" != 0:0 ] && [ "$first:$second" != 3:0 ] && [ "$first:$second" != 0:3 ]; then
            fail "two at once: exit codes $first and $second: $(cat first.err second.err)"
        fi
        [ "$(cat first.err second.err | wc -l)" = $(((first + second) / 3)) ] || fail "two at once: $(cat first.err second.err)"
        : >"$work.err"
        rm first.err second.err
        finished wanted "two at once"
    done
}

unmount() { umount "$work/disk" 2>/dev/null; }

# A disk of 24 MiB for 16 MiB of runs.
full_disk()
{
    local i seen=0 there sort=(sort large.raw --type u64 -o out --engine host --threads 1 --runs 64 -T disk)
    if [ "$(id -u)" != 0 ] || ! mkdir disk || ! mount -t tmpfs -o size=24m,mode=700 none disk 2>/dev/null; then
        echo "no tmpfs can be mounted: no disk is filled"
        return
    fi
    there=$(runs_of out)
    trap 'unmount; rm -rf "$work" "$work".*' EXIT
    ok 0 gen -n 2M -s "$seed" -o large.raw
    ok 0 sort large.raw --type u64 -o wanted-large
    # From the beginning.
    head -c 12M /dev/zero >disk/other
    refused 2 3 "rank 0 on |disk/$there: |bytes more there, of which |(-T)" "${sort[@]}"
    rm disk/other
    # In the middle: as soon as runs are there, something else takes the rest.
    for ((i = 0; i < 5 && seen == 0; i++)); do
        while ! compgen -G "disk/$there/run-*" >/dev/null; do sleep 0.001; done && cat /dev/zero >disk/other 2>/dev/null &
        run 2 "${sort[@]}"
        kill $! 2>/dev/null
        wait $!
        [ "$code" = 0 ] || seen=1
        [ "$code" = 0 ] || stays "a disk that becomes full"
        [ "$code" = 0 ] || compgen -G "disk/$there/run-*" >/dev/null || fail "a disk that becomes full: no run stays"
        [ "$seen" = 0 ] || echo "full disk: $(cut -c 1-200 "$work.err")"
        if ((seen)); then # it is full still, unless the first run let go of what it needed
            run 0 "${sort[@]}"
            # If some is free it may not even begin, and leaves all there as well.
            [ "$code" = 0 ] || grep -q "bytes more there, of which .*(-T)" "$work.err" || stays "a disk that still is full"
        fi
        rm -f disk/other
        [ "$seen" = 0 ] || run 3 "${sort[@]}"
        finished wanted-large "a disk that was full"
        [ -z "$(ls -A disk)" ] || fail "left on the disk: $(ls -A disk)"
    done
    [ "$seen" = 1 ] || fail "the disk never was full"
    # As the output's disk: nothing can be begun, and there is nothing to go on from.
    head -c 12M /dev/zero >disk/other
    refused 2 3 "disk/out" sort large.raw --type u64 -o disk/out --runs 3
    rm disk/other
    # No O_DIRECT there, or it works: both will do.
    for i in on off; do
        run 2 "${sort[@]}" --direct-io $i
        [ "$code" = 0 ] && finished wanted-large "--direct-io $i"
        [ "$code" = 0 ] || [ "$(wc -l <"$work.err")" = 1 ] || fail "--direct-io $i: exit code $code"
        echo "--direct-io $i: exit code $code: $(head -n 1 "$work.err" | cut -c 1-120)"
    done
    mount -o remount,ro disk
    refused 2 3 "disk/$there: cannot be made: Read-only file system" "${sort[@]}"
    refused 2 3 "disk/out|Read-only file system" sort large.raw --type u64 -o disk/out --runs 3
    unmount
    rm -r disk large.raw wanted-large
}

ok 0 gen -n 60000 -s "$seed" --dist zipf -o in.raw
ok 0 sort in.raw --type u64 -o wanted
ok 0 sort in.raw --record 24 --key @3:u32 -o wanted-records
echo old >out
run_parts sites later_sites direct limits at_once full_disk
finish
