#!/bin/bash
# Sorts by way of the disk whose result is dealt out to several files: values, an index, one of each key with counts, a file per rank.
# They are stopped in each phase or killed, and begun again on other numbers of ranks; other commands, and inputs that were changed
# meanwhile; each fault site; damage; refusals. disk_draws.py draws their options, disk_kills.py the moments. A part of the phases and
# passages is drawn; ALL=1 tries all.
set -uo pipefail
if [ "${HAS_FAULTS:-OFF}" != ON ]; then
    echo "skipped: this build has no fault sites (HYPERSORT_FAULTS=OFF)"
    exit 77
fi
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
# shellcheck source=tests/support/held.sh
. "$SOURCE/tests/support/held.sh"
seed=${HYPERSORT_SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"

# With so little memory a rank deals out in several blocks.
common=(sort in.raw --type u64 --engine host --threads 1 --runs 6 -S 3M)
values=(--values values.raw --value-bytes 12)
# choose() names these.
# shellcheck disable=SC2034
{
    beside=("${common[@]}" "${values[@]}" -o out -O vout --index index)
    unique=("${common[@]}" "${values[@]}" -o out -O vout --index index --unique --counts counts)
    by_rank=("${common[@]}" "${values[@]}" -o out.%r -O vout.%r --index index)
    keys=("${common[@]}" -o out.%r)
}
kinds=(beside unique by_rank keys)
declare -A files=([beside]="out vout index" [unique]="out vout index counts" [by_rank]="out.%r vout.%r index" [keys]="out.%r")
declare -A exits=([alloc]=5 [read]=3 [short]=3 [commit]=3 [changed]=3 [mpi]=6 [kernel]=70 [copy]=70)

# choose KIND [CHECKPOINT]: $command is its sort, $dir where its manifest is, $runs where its runs are. CHECKPOINT "": as it is drawn; "no".
choose()
{
    local -n words=$1
    kind=$1 command=("${words[@]}") runs=out.hypersort-runs
    [[ ${files[$1]} != out.* ]] || runs=out.0.hypersort-runs
    dir=$runs
    [ "${2:-}" != no ] && [ $((RANDOM % 3)) = 0 ] || return 0
    command+=(--checkpoint kept) dir=kept
}

# sorted: the file of sorted elements.
sorted() { if [ "$dir" = kept ]; then compgen -G "$runs-*-sorted"; else echo "$dir/sorted"; fi; }

# names RANKS: the outputs of $kind, of so many ranks.
names()
{
    local name rank
    for name in ${files[$kind]}; do
        [[ $name = *%r ]] || echo "$name"
        for ((rank = 0; rank < $1; rank++)); do
            [[ $name != *%r ]] || echo "${name/\%r/$rank}"
        done
    done
}

# afresh: old outputs, and nothing of an earlier run.
afresh()
{
    local name
    rm -rf ./*hypersort-* kept out* vout* index* counts*
    for name in $(names 2); do
        echo old >"$name"
    done
}

untouched() # TEXT
{
    local name
    for name in $(names 2); do
        cmp -s "$name" <(echo old) || fail "$1: $name was touched"
    done
}

# finished RANKS TEXT: the last run sorted, on so many ranks; all outputs are those of a sort in memory, and nothing else is left.
finished()
{
    local name rank place=wanted
    [ "$kind" != unique ] || place=wanted-unique
    if [ "$code" != 0 ] || [ -s "$work.err" ]; then
        fail "$kind, $2: exit code $code"
    fi
    for name in ${files[$kind]}; do
        if [[ $name = *%r ]]; then
            for ((rank = 0; rank < $1; rank++)); do cat "${name/\%r/$rank}"; done
        else
            cat "$name"
        fi | cmp -s - "$place/${name%.%r}" || fail "$kind, $2: $name is not that of a sort in memory"
    done
    nothing_left "$kind, $2"
    afresh
}

nothing_left() # TEXT
{
    local found
    found=$(find . -path "./*hypersort-*" -o -path "./kept/*")
    [ -z "$found" ] || fail "$1: files are left: ${found//$'\n'/ }"
}

# left TEXT [INSIDE]: of ours only names like these are there, in $dir and $runs and beside them.
left()
{
    local others parts="|(out|vout|index|counts)[.0-9]*\.hypersort-[0-9a-f]{16}-dealt\.part"
    others=$(find . -path './*hypersort-*' -o -path "./kept/*" |
        grep -Ev "^\./(($dir|$runs)(/(manifest|plan|sorted|journal-[0-9]+|run-[0-9]{6}${2:-}))?|$runs-[0-9a-f]{16}-sorted$parts)$")
    [ -z "$others" ] || fail "$kind, $1: left are $others"
    [ -e "$(sorted)" ] || fail "$kind, $1: what was sorted is gone"
}

# stop SITE:RANK:NTH RANKS WORDS: a run that is held there and stopped while WORDS.
stop()
{
    begin "$2" "$1" "${command[@]}"
    local held=${1#*:}
    if drawn 2; then kill -USR1 "$pid"; else kill -TERM "$(rank_pid "${held%%:*}")"; fi
    end
    if [ "$code" != 75 ] || [ "$(wc -l <"$work.err")" != 1 ] || [ -s "$work.out" ] ||
        ! grep -q "^hypersort: stopped by SIG[A-Z0-9]* while $3; $dir/manifest says how far it got" "$work.err"; then
        fail "$kind, $1 on $2 ranks: exit code $code, or not one line"
    fi
    untouched "$kind, $1 on $2 ranks"
    left "$1 on $2 ranks"
}

# drawn OUT-OF: true so often, or always.
drawn() { [ -n "${ALL:-}" ] || [ $((RANDOM % $1)) = 0 ]; }

made() { cat "$dir"/journal-* 2>/dev/null | grep -c "^$1 "; }

# In each phase, on each number of ranks; then on another number, where nothing that is made is made again.
each_phase()
{
    local ranks site words what
    local -A next=([1]=5 [2]=1 [3]=8 [5]=3 [7]=2 [8]=7)
    local -A said=([holdread]="[a-z]* were read" [holdwrite]="[a-z]* were written" [holddeal]="the result was dealt out")
    for what in "${kinds[@]}"; do
        choose "$what" && afresh
        for ranks in 1 2 3 5 7 8; do
            for site in holdread holdwrite holddeal; do
                drawn 6 || { [ $site = holddeal ] && drawn 2; } || continue
                words=${said[$site]}
                stop "$site:$((RANDOM % ranks)):1" "$ranks" "$words"
                kept="\"kept_runs\": $(made run), \"kept_segments\": $(made segment)"
                dealt="\"kept_dealt\": $(made dealt)"
                [ $site != holddeal ] || [ "$(made segment)" = "$(made run)" ] || fail "$kind: dealt out before all was sorted"
                run "${next[$ranks]}" "${command[@]}" --json
                if ! grep -qF "$kept" "$work.out" || ! grep -qF "$dealt" "$work.out"; then
                    fail "$kind, $site on $ranks ranks: the report does not say what was kept: $kept, $dealt"
                fi
                finished "${next[$ranks]}" "$site on $ranks ranks, then on ${next[$ranks]}"
            done
        done
    done
}

# Stopped while it deals out, later and later, until it is over; --verify=reread as well. What is counted and dealt out stays so; with a
# file per rank, on the same number of ranks.
while_dealing()
{
    local nth what ranks before after=0
    for what in "${kinds[@]}"; do
        choose "$what" && afresh
        for ((nth = 1; nth < 60; nth += 1 + RANDOM % 4)); do
            ranks=$([[ ${files[$kind]} = *%r* ]] && echo 2 || echo $((1 + RANDOM % 3)))
            before=$((3 * $(made counted) + $(made dealt))) # counted in blocks, dealt out in others
            begin "$ranks" "holddeal:0:$nth" "${command[@]}" --verify=reread
            grep -q '^hypersort: held ' "$work.err" || break
            kill -USR1 "$pid"
            end
            [ "$code" = 75 ] || fail "$kind, block $nth: exit code $code"
            untouched "$kind, block $nth"
            left "block $nth"
            after=$((3 * $(made counted) + $(made dealt)))
            [ $after -ge $before ] || fail "$kind, block $nth: less is noted than was"
            [ $nth -lt 4 ] || [ $after -gt 0 ] || fail "$kind, block $nth: nothing is noted"
        done
        end
        finished "$ranks" "after stops in blocks up to $nth"
    done
}

# What is dealt out is not dealt out again: the command, stopped when half is, would be held before a block that it has not.
nothing_twice()
{
    local what
    local -A half=([beside]=7 [unique]=19 [by_rank]=7 [keys]=4) # of six pieces, each of two blocks, or of one
    for what in "${kinds[@]}"; do
        choose "$what" && afresh
        stop "holddeal:0:${half[$what]}" 1 "the result was dealt out"
        [ "$(made dealt)" = 3 ] || fail "$kind: $(made dealt) pieces were dealt out, not 3"
        HYPERSORT_FAULT=holddeal:0:$((half[$what] % 12)),holdread:0,holdwrite:0 run 1 "${command[@]}"
        finished 1 "nothing twice"
    done
}

# Killed outright while it deals out, on more ranks than go on: files of ranks that are no more go, too.
kills()
{
    local ranks what pids
    for what in "${kinds[@]}"; do
        choose "$what" && afresh
        for ranks in 2 5 8; do
            drawn 2 || continue
            begin "$ranks" "holddeal:$((RANDOM % ranks)):$([ "$what" = unique ] && echo $((1 + RANDOM % 2)) || echo 1)" "${command[@]}"
            # shellcheck disable=SC2046  # words
            pids="$pid $(cat /proc/"$pid"/task/*/children)"
            # shellcheck disable=SC2086  # words
            kill -KILL $pids 2>/dev/null
            end
            # shellcheck disable=SC2086  # words
            gone $pids
            : >"$work.err"
            untouched "$kind, killed on $ranks ranks"
            left "killed on $ranks ranks" "|\.hypersort-lock"
            run 3 "${command[@]}"
            finished 3 "killed on $ranks ranks"
        done
    done
}

# Killed at any moment, by disk_kills.py: KILLS times (1) in each phase of two kinds, or of KINDS.
random_kills()
{
    local drawn
    if [ -z "$python" ]; then
        echo "no python3: nothing is killed at random"
        return
    fi
    drawn=$(printf '%s\n' index values unique counts rank | shuf -n "$([ -n "${ALL:-}" ] && echo 5 || echo 2)" --random-source=<(yes "$seed") | paste -sd ,)
    mkdir killed && cd killed || exit 1
    # shellcheck disable=SC2086  # MPIRUN is words
    "$python" "$SOURCE/tests/command/disk_kills.py" "$seed" "${KILLS:-1}" "${KINDS:-$drawn}" "$HYPERSORT" $MPIRUN --quiet -n RANKS ||
        fail "kills above"
    cd .. && rm -r killed
}

# flip FILE AT: turn a bit of that byte.
flip()
{
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059  # the format is the byte
    printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# copy_element FROM TO AT TO-AT: one element of what was sorted with values and an index.
copy_element() { dd if="$1" of="$2" bs=28 count=1 skip="$3" seek="$4" conv=notrunc status=none; }

# Sorted elements that change places have the fingerprint that they had, but are not in order: of equal keys, of others, of two pieces.
# Where nobody looks, each piece must still keep as many keys as were counted.
misplaced()
{
    local places
    for places in "30 31" "59998 59999" "49999 50000"; do
        choose beside no && afresh
        stop holddeal:0:1 2 "the result was dealt out"
        copy_element "$(sorted)" "$work.key" "${places% *}" 0
        copy_element "$(sorted)" "$(sorted)" "${places#* }" "${places% *}"
        copy_element "$work.key" "$(sorted)" 0 "${places#* }"
        run 3 "${command[@]}"
        [ "$code" = 1 ] && grep -q "sorted: what was sorted is not what is read back; nothing was written" "$work.err" ||
            fail "elements $places have changed places: exit code $code"
        untouched "elements $places have changed places"
        nothing_left "elements $places have changed places"
    done
    for places in "59999 1" "59998 59999"; do # one key more, and one fewer
        choose unique no && afresh
        stop holddeal:0:13 1 "the result was dealt out" # all is counted
        copy_element "$(sorted)" "$(sorted)" "${places% *}" "${places#* }"
        run 1 "${command[@]}" --no-verify
        [ "$code" = 1 ] && grep -q "sorted: is not what it was when its keys were counted; nothing was written" "$work.err" ||
            fail "keys other than were counted, $places: exit code $code"
        untouched "keys other than were counted, $places"
        nothing_left "keys other than were counted, $places"
    done
}

# Other commands on what was stopped, and inputs and files that were changed meanwhile.
others()
{
    local what
    choose beside no && afresh
    stop holddeal:0:1 2 "the result was dealt out"
    refused 2 2 "$dir/manifest: is of a sort by u64 --values --index to |not by bare keys|remove it" "${common[@]}" -o out
    refused 0 2 "$dir/manifest: is of a sort by u64 --values --index to |not by u64 --unique --values --index" \
        "${command[@]}" --unique
    local -r changed="$dir/manifest: is of a sort by u64 --values --index, but its --values file was changed since, or other outputs were given; "
    refused 3 2 "$changed|remove it" "${command[@]/#index/other}"
    refused 2 2 "$changed|remove it" "${command[@]/#vout/vout.%r}"
    touch values.raw
    refused 2 2 "$changed|remove it" "${command[@]}"
    touch -d "2002-02-03" values.raw
    mv values.raw real # other values of the same size and time
    ok 0 gen -n 180000 -s $((seed + 1)) --type u32 -o values.raw
    touch -d "2002-02-03" values.raw
    refused 2 2 "$changed|remove it" "${command[@]}"
    mv real values.raw
    run 3 sort in.raw --type u64 --engine host "${values[@]}" -o out -O vout --index index # without --runs, too
    finished 3 "others, then without --runs"
    choose beside no && afresh # what is dealt out and not looked at is dealt out again
    command+=(--no-verify)
    stop holddeal:0:7 1 "the result was dealt out"
    choose beside no
    run 1 "${command[@]}"
    finished 1 "others, after --no-verify"
    choose unique no && afresh # outputs of before go, also if this run fails before it has opened them
    stop holddeal:0:19 1 "the result was dealt out"
    HYPERSORT_FAULT=changed:0 run 1 "${command[@]}"
    [ "$code" = 3 ] || fail "others, a run that fails before its outputs are there: exit code $code"
    nothing_left "others, a run that fails before its outputs are there"
    choose keys no && afresh
    command+=(--index index)
    stop holdwrite:0:1 2 "[a-z]* were written"
    refused 2 2 "$dir/manifest: is of a sort by u64 --index %r, but other outputs were given; " "${command[@]/#index/other}"
    refused 2 2 "$dir/manifest: is of a sort by u64 --index %r to |remove it" "${common[@]}" -o out.0
    run 5 "${command[@]}"
    finished 5 "others, by rank"
    for what in "${kinds[@]}"; do # the file of sorted elements is gone, or changed
        choose "$what" && afresh
        stop holddeal:0:1 2 "the result was dealt out"
        rm "$(sorted)"
        run 3 "${command[@]}"
        finished 3 "what was sorted is gone"
        stop holddeal:0:1 2 "the result was dealt out"
        flip "$(sorted)" $((RANDOM + RANDOM))
        run 3 "${command[@]}" --json
        [ "$code" = 1 ] || fail "$kind, damaged: exit code $code"
        grep -q "sorted: what was sorted is not what is read back; nothing was written" "$work.err" || fail "$kind, damaged: the line"
        json "not r['verify']['fingerprint_ok']"
        untouched "$kind, damaged"
        nothing_left "$kind, damaged"
        afresh
    done
}

# With --checkpoint memory would do for, but what cannot go on in memory goes by way of the disk.
with_checkpoint()
{
    local words
    choose keys no && afresh
    for words in "--type u64 -o out.%r" "--type u64 -o out --index index" "--type u64 -o out --unique" "--record 8 --key @0:u64 -o out"; do
        # shellcheck disable=SC2086  # words
        ok 2 sort in.raw $words --engine host --checkpoint kept --json
        json "r['passes'] == 2 and r['resumed'] is None"
        nothing_left "with a checkpoint, $words"
    done
    ok 2 sort in.raw --type u64 -o out --engine host --checkpoint kept --json
    json "r['passes'] == 1"
    : >empty.raw
    ok 2 sort empty.raw --type u64 -o out.%r --checkpoint kept
    nothing_left "with a checkpoint, no keys"
    rm empty.raw
    afresh
}

# Each fault site at drawn passages: one line and nothing is left, but of a full disk, after which the same command goes on.
faults()
{
    local site rank nth what ranks
    for what in "${kinds[@]}"; do
        choose "$what" && afresh
        for site in "${!exits[@]}" write; do
            drawn 2 || continue
            rank=$((RANDOM % 3))
            for ((nth = 1; nth < 400; nth += ${ALL:+-20} + 21 + RANDOM % (${ALL:+-20} + 21))); do
                HYPERSORT_FAULT=$site:$rank:$nth run 3 "${command[@]}" --verify=reread
                [ "$code" != 0 ] || break
                untouched "$kind, $site:$rank:$nth"
                if [ "$site" = write ]; then
                    if [ "$code" != 3 ] || [ "$(wc -l <"$work.err")" != 1 ]; then
                        fail "$kind, $site:$rank:$nth: exit code $code, or not one line"
                    fi
                    if compgen -G '*hypersort-*' >/dev/null; then
                        grep -q "bytes of runs stay in $runs: the same command goes on when there is room" "$work.err" ||
                            fail "$kind, $site:$rank:$nth: the line does not say what stays"
                    fi
                    ranks=$((1 + RANDOM % 3))
                    run $ranks "${command[@]}"
                    finished $ranks "after $site:$rank:$nth"
                elif [ "$code" != "${exits[$site]}" ] || [ "$(wc -l <"$work.err")" != 1 ] || compgen -G '*hypersort-*' >/dev/null; then
                    fail "$kind, $site:$rank:$nth: exit code $code, not ${exits[$site]}, or not one line, or files are left"
                    afresh
                fi
            done
            [ "$nth" -lt 400 ] || fail "$kind, $site:$rank: still broken at passage $nth"
            echo "$kind, $site:$rank: fewer than $nth passages"
            [ "$site" = write ] || finished 3 "$site:$rank:$nth"
        done
    done
}

# What no rank of this run is to write may be anything.
foreign_names()
{
    choose keys no && afresh
    mkdir out.5
    ln -s nowhere out.7
    run 2 "${command[@]}"
    [ "$code" = 0 ] || fail "names of ranks that there are not: exit code $code"
    rm out.7 && rmdir out.5
    cat out.0 out.1 | cmp -s - wanted/out || fail "names of ranks that there are not: another output"
    rm -f out.0 out.1
}

# Refused before anything is sorted.
refusals()
{
    choose beside no && afresh
    refused 2 3 "there/index: cannot create" "${common[@]}" "${values[@]}" -o out -O vout --index there/index
    refused 2 2 "is named for two outputs" "${common[@]}" "${values[@]}" -o out -O vout --index out
    refused 2 2 "vout: is there already, and --no-clobber keeps it" "${common[@]}" "${values[@]}" -o new -O vout --no-clobber
    refused 2 2 "in.raw: --checkpoint: a sort of keys of 1 or 2 bytes to a file per rank cannot be resumed" \
        sort in.raw --type u16 -o new.%r --checkpoint kept
    refused 2 3 "the runs of this sort, and what else it keeps there, take |--temp-limit is 3 MB: |K would do" "${command[@]}" --temp-limit 3000000
    run 2 "${common[@]}" "${values[@]}" --unique -o values.raw -O vout --progress=on
    if [ "$code" != 2 ] || [ "$(wc -l <"$work.err")" != 1 ] || ! grep -q "values.raw: is the input" "$work.err"; then
        fail "an output that is the values' input: exit code $code, or not one line, before a key was read"
    fi
    refused 2 2 "values.raw: has |in.raw has " "${common[@]}" --values values.raw --value-bytes 24 -o out -O vout
    untouched "refusals"
    HYPERSORT_FAULT=changed:1:2 refused 3 3 "rank 1 on |values.raw: was changed" "${command[@]}"
    : >real
    ln -s real link.0 && ln -s real link.1
    refused 2 2 "real: is the output of rank 0, too" "${common[@]}" -o link.%r
    rm real link.?
}

ok 0 gen -n 60000 -s "$seed" --type u64 --dist zipf -o in.raw
ok 0 gen -n 180000 -s "$seed" --type u32 -o values.raw
touch -d "2002-02-03" in.raw values.raw
mkdir wanted wanted-unique
ok 0 sort in.raw --type u64 "${values[@]}" -o wanted/out -O wanted/vout --index wanted/index
ok 0 sort in.raw --type u64 "${values[@]}" -o wanted-unique/out -O wanted-unique/vout --index wanted-unique/index --unique \
    --counts wanted-unique/counts
kind=beside # for afresh() before the first part chooses one
run_parts each_phase while_dealing nothing_twice kills random_kills misplaced others with_checkpoint foreign_names faults refusals
finish
