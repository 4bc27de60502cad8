#!/bin/bash
# A sort by way of the disk, stopped by a signal in each phase or killed, and started again on other numbers of ranks: the output is
# byte for byte that of an undisturbed run, what was made is not made again, and nothing is left. Between both starts runs
# are cut, changed, removed; other commands, and inputs that were changed, are refused. disk_kills.py kills, KILLS times (2) in each
# phase. A part of the phases and damages is drawn; ALL=1 tries all.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
need_faults
# shellcheck source=tests/support/held.sh
. "$SOURCE/tests/support/held.sh"
draw_seed

runs=12
keys=(sort in.raw --type u64 -o out --engine host --threads 1 --runs "$runs")
records=(sort in.raw --record 24 --key @3:u32 -o out --engine host --threads 1 --runs "$runs")
dir=out.hypersort-runs
declare -A said=([holdread]="keys were read" [holdwrite]="keys were written")

# made KIND: how many lines of that kind are in the journals.
made() { cat "$dir"/journal-* 2>/dev/null | grep -c "^$1 "; }

# note_kept BYTES: what the next start has of this one, of elements of so many bytes, as its report must say it.
note_kept()
{
    local bytes
    bytes=$(cat "$dir"/journal-* | awk -v bytes="$1" '/^segment / { all += $3 * bytes } END { print all + 0 }')
    kept_json="\"resumed\": \"begun\", \"kept_bytes\": $bytes, \"kept_runs\": $(made run), \"kept_segments\": $(made segment)"
    kept_json+=", \"kept_run_bytes\": $(cat /dev/null $dir/run-* 2>/dev/null | wc -c)"
    kept_text="resumed      with $(made run) of $runs runs kept, .*B, and $(made segment) of $runs segments, "
}

# next_start: what the line of a stop must say that the same command does.
next_start()
{
    if [ "$(made run)" != 0 ]; then echo "goes on from there"; else echo "begins anew, because nothing has been made yet"; fi
}

# stopped SITE TEXT: the run ended as a stopped one does, with the output as it was and what is needed to go on.
stopped()
{
    if [ "$code" != 75 ] || [ "$(wc -l <"$work.err")" != 1 ] || [ -s "$work.out" ] ||
        ! grep -q "^hypersort: stopped by SIG[A-Z0-9]* while .*; $dir/manifest says how far it got: the same command $(next_start)\$" "$work.err"; then
        fail "$2: exit code $code, or not one line that says that the same command $(next_start)"
    fi
    if ! grep -q "while \(${said[$1]}\|${said[$1]/keys/records}\);" "$work.err"; then
        fail "$2: the line names another phase than '${said[$1]}'"
    fi
    cmp -s out <(echo old) || fail "$2: the output was touched"
    if [ ! -e $dir/manifest ] || [ ! -e $dir/plan ] || [ "$(compgen -G 'out.hypersort-*.part' | wc -l)" != 1 ] ||
        find $dir -mindepth 1 | grep -qv "/\(manifest\|plan\|journal-[0-9]*\|run-[0-9]\{6\}\)$"; then
        fail "$2: left are $(find . -name '*hypersort-*' -o -path "./$dir/*" | tr '\n' ' ')"
    fi
}

# finished TEXT: the last run sorted; the output is that of an undisturbed one, and nothing else is left.
finished()
{
    if [ "$code" != 0 ] || [ -s "$work.err" ] || ! cmp -s out wanted; then
        fail "$1: exit code $code, or another output than that of an undisturbed run"
    fi
    if compgen -G '*hypersort-*' >/dev/null; then
        fail "$1: files are left: $(find . -name '*hypersort-*' | tr '\n' ' ')"
    fi
    afresh
}

afresh()
{
    rm -rf $dir out.hypersort-*.part
    echo old >out
}

# stop SITE:RANK:NTH RANKS SIGNAL ARGUMENT...: a run that is held there and stopped.
stop()
{
    begin "$2" "$1" "${@:4}"
    if [ "$3" = USR1 ]; then
        kill -USR1 "$pid" # mpirun hands it on to all ranks
    else
        kill -TERM "$(rank_pid $(($2 - 1)))"
    fi
    end
    stopped "${1%%:*}" "$1 on $2 ranks"
}

# drawn OUT-OF: true so often, or always.
drawn() { [ -n "${ALL:-}" ] || [ $((RANDOM % $1)) = 0 ]; }

# early ARGUMENT...: a run on two ranks; rank 0 is told to stop while it waits in MPI_Init() for the other, which comes later.
early()
{
    local i
    : >"$work.err"
    # shellcheck disable=SC2016,SC2086  # a shell's own variables; words
    $MPIRUN --quiet -n 1 "$HYPERSORT" "$@" : -n 1 bash -c 'until [ -e go ]; do sleep 0.05; done; exec "$0" "$@"' "$HYPERSORT" "$@" \
        >"$work.out" 2>"$work.err" </dev/null &
    pid=$!
    for ((i = 0; i < 100; i++)); do # until it keeps SIGUSR1, which one that never does need not
        grep -q '^SigCgt:.*[2367abef]..$' "/proc/$(rank_pid 0 2>/dev/null)/status" 2>/dev/null && break
        sleep 0.05
    done
    kill -USR1 "$(rank_pid 0)"
    touch go
    end
    rm go
}

# A signal before MPI is there stops what is asked to go by way of the disk; what then sorts in memory ends by it, as it always does.
before_mpi()
{
    early "${keys[@]}"
    stopped holdread "before MPI"
    run 2 "${keys[@]}"
    finished "before MPI"
    early "${records[@]}"
    stopped holdread "records, before MPI"
    afresh
    ok 0 gen -n 400000 -o large.raw
    early sort large.raw --type u64 -o out -S 1500K
    stopped holdread "-S, before MPI"
    rm large.raw
    afresh
    for words in "--type u64" "--record 24 --key @3:u32"; do
        # shellcheck disable=SC2086  # words
        early sort in.raw $words -o out -S 1G
        if [ "$code" = 0 ] || [ "$code" = 75 ] || ! cmp -s out <(echo old) || compgen -G '*hypersort-*' >/dev/null; then
            fail "in memory with -S 1G, $words, told to stop before MPI: exit code $code"
        fi
        afresh
    done
}

# In each phase, on each number of ranks; then on another number. No run and no segment that is made is made again.
each_phase()
{
    local ranks site before
    local -A next=([1]=5 [2]=1 [3]=8 [5]=3 [8]=2)
    for ranks in 1 2 3 5 8; do
        for site in holdread holdwrite; do
            ((ranks < 3)) || drawn 2 || continue
            stop "$site:$((RANDOM % ranks)):1" "$ranks" "$([ $((RANDOM % 2)) = 0 ] && echo USR1 || echo TERM)" "${keys[@]}"
            before="$(made run) $(made segment)"
            echo "$site on $ranks ranks: $before runs and segments were made"
            [ $site = holdread ] || [ "$(made run)" = $runs ] || fail "$site on $ranks ranks: only $before were made"
            note_kept 8
            run "${next[$ranks]}" "${keys[@]}" --json
            grep -qF "$kept_json" "$work.out" || fail "$site on $ranks ranks: the report does not say what was kept: $kept_json"
            finished "$site on $ranks ranks, then on ${next[$ranks]}"
        done
    done
}

# What is made is kept as it is: the files of runs are the same files, and with all runs made none is read from the input, with all
# segments none is written.
nothing_twice()
{
    local inodes
    stop holdread:0:3 2 USR1 "${keys[@]}"
    inodes=$(stat -c '%n %i %y' $dir/run-*)
    [ -n "$inodes" ] || fail "no run was made before the stop"
    stop holdwrite:1:2 3 TERM "${keys[@]}"
    [ "$(stat -c '%n %i %y' $dir/run-* | grep -cFx "$inodes")" = "$(wc -l <<<"$inodes")" ] || fail "runs were made again"
    [ "$(made run)" = $runs ] || fail "there are lines of $(made run) runs, not of $runs"
    [ "$(made segment)" -gt 0 ] || fail "no segment was made before the stop"
    HYPERSORT_FAULT=holdread:0,holdwrite:0:$((runs - $(made segment) + 1)) run 1 "${keys[@]}"
    finished "nothing twice: on one rank, which would be held"
}

# Stopped again and again, on changing numbers of ranks, by a signal to one rank only.
again_and_again()
{
    local step site ranks nth
    for step in holdread:3:1 holdread:1:2 holdread:5:1 holdwrite:2:1 holdwrite:3:2 holdwrite:1:1; do
        IFS=: read -r site ranks nth <<<"$step"
        begin "$ranks" "$site:0:$nth" "${keys[@]}" # the first rank has something to do as long as any has
        kill -USR1 "$(rank_pid 0)"
        end
        stopped "$site" "again: $step"
    done
    note_kept 8
    run 8 "${keys[@]}"
    grep -q "^$kept_text" "$work.out" || fail "again and again: the report lacks '$kept_text'"
    finished "again and again"
}

records_too()
{
    local site
    for site in holdread:1:2 holdwrite:0:2; do
        drawn 2 || continue
        ok 0 sort in.raw --record 24 --key @3:u32 -o wanted
        stop "$site" 3 USR1 "${records[@]}"
        refused 2 2 "is of a sort by @3:u32, not by @4:u32|remove it" "${records[@]/@3/@4}"
        note_kept 24
        if drawn 2; then
            run 2 "${records[@]}" --json
            grep -qF "$kept_json" "$work.out" || fail "records, $site: the report does not say what was kept: $kept_json"
        else
            run 2 "${records[@]}"
            grep -q "^$kept_text" "$work.out" || fail "records, $site: the report lacks '$kept_text'"
        fi
        finished "records, $site"
    done
    ok 0 sort in.raw --type u64 -o wanted
}

# The runs are gone, and what is left is sorted in memory: nothing stays in DIR of --checkpoint.
runs_lost()
{
    mkdir kept
    begin 2 holdread:0:2 "${keys[@]}" --checkpoint kept
    kill -USR1 "$pid"
    end
    [ -e kept/journal-0 ] || fail "runs lost: the first run has left no journal"
    rm -r $dir
    run 2 sort in.raw --type u64 -o out --engine host --checkpoint kept
    rmdir kept || fail "runs lost: kept has $(find kept -mindepth 1 | tr '\n' ' ')"
    finished "runs lost"
}

# A .npy file whose names of fields are long: its output goes on, too.
long_header()
{
    local sorts=(sort in.npy --key k --output-format npy --engine host --threads 1 --runs "$runs") header
    header="{'descr': [('k', '<u4'), ('$(printf 'n%.0s' {1..900})', '|S20')], 'fortran_order': False, 'shape': (20000,), }"
    header=$(printf '%-1013s.' "$header") # with what ends it, and 10 bytes before, 1024
    # shellcheck disable=SC2059  # the length is bytes
    { printf '\x93NUMPY\x01\x00\xf6\x03%s\n' "${header%.}" && cat in.raw; } >in.npy
    ok 0 "${sorts[@]}" -o wanted
    stop holdwrite:0:2 3 USR1 "${sorts[@]}" -o out
    note_kept 24
    [ "$(made segment)" -gt 0 ] || fail "long header: no segment was made before the stop"
    run 2 "${sorts[@]}" -o out --json
    grep -qF "$kept_json" "$work.out" || fail "long header: the report does not say what was kept: $kept_json"
    finished "long header"
    rm in.npy
    ok 0 sort in.raw --type u64 -o wanted
}

# A run of records that is changed is found at the end, too.
records_damaged()
{
    stop holdwrite:0:1 1 USR1 "${records[@]}" # on one rank no segment is made: all runs are read
    flip $dir/run-000004 4001
    run 3 "${records[@]}"
    [ "$code" = 1 ] && grep -q '^hypersort: in.raw: the sorted records are not .*; nothing was written$' "$work.err" ||
        fail "records of a changed run: exit code $code"
    ! compgen -G '*hypersort-*' >/dev/null && cmp -s out <(echo old) || fail "records of a changed run: files were left or changed"
    afresh
}

# Other commands on the same output, and the same one beside a run that lives.
refusals()
{
    begin 2 holdwrite:1 "${keys[@]}"
    code=0
    HYPERSORT_FAULT='' timeout 300 "$HYPERSORT" "${keys[@]}" >"$work.out" 2>"$work.second" || code=$?
    if [ "$code" != 3 ] || [ "$(wc -l <"$work.second")" != 1 ] || ! grep -q "$dir.* another command" "$work.second"; then
        fail "a second command at the same time: exit code $code: $(cat "$work.second")"
    fi
    rm "$work.second"
    kill -USR1 "$pid"
    end
    stopped holdwrite "with a second command beside it"
    refused 0 2 "$dir/manifest: |not descending|remove it" "${keys[@]}" -r
    refused 0 2 "$dir/manifest: |not f64|remove it" "${keys[@]/u64/f64}"
    refused 0 2 "$dir/manifest: |bytes|remove it" sort wanted in.raw --type u64 -o out
    refused 0 2 "$dir/manifest: |format" "${keys[@]}" --output-format npy
    touch in.raw
    refused 2 2 "$dir/manifest: |in.raw was changed since|remove it" "${keys[@]}"
    touch -d "2002-02-03" in.raw
    # What cannot begin leaves all there, as its line says how to go on.
    refused 0 3 "--temp-limit is 1 B: " "${keys[@]}" --temp-limit 1
    refused 2 5 " of engine memory on each rank, but it may use |give more (--device-memory)" "${keys[@]}" -S 16M --device-memory 1
    # Without --runs, too, this is the same sort, which goes on.
    run 3 sort in.raw --type u64 -o out --engine host --json
    grep -q '"passes": 2' "$work.out" || fail "without --runs it began anew"
    grep -q '"resumed": "begun", "kept_bytes": [0-9]*, "kept_runs": [1-9]' "$work.out" || fail "after refusals it began anew"
    finished "refusals, then without --runs"
    # As the lines say: without the manifest it begins anew. The output that it knew is nobody's then.
    stop holdwrite:0:2 2 USR1 "${keys[@]}"
    rm $dir/manifest out.hypersort-*.part
    run 3 "${keys[@]}" -r
    [ "$code" = 0 ] || fail "after the manifest was removed: exit code $code"
    ok 2 check out -r --type u64 --against in.raw
    afresh
    # Another output of this name in another directory shares a temporary directory with this one, also while this one is stopped; the
    # same output with another checkpoint does not.
    mkdir there other
    begin 2 holdread:0:2 "${keys[@]}" -T other
    kill -USR1 "$pid"
    end
    [ "$code" = 75 ] || fail "-T other: exit code $code"
    run 2 sort in.raw --type u64 -o there/out --runs 3 -T other
    [ "$code" = 0 ] || fail "two outputs of one name, with one -T: exit code $code"
    cmp -s there/out wanted || fail "two outputs of one name, with one -T: the second has other bytes"
    run 2 "${keys[@]}" -T other --checkpoint kept # which also names the half output of the first
    if [ "$code" != 3 ] || ! grep -q "other/$(runs_of out): has the runs of another sort, .* (-T)$" "$work.err"; then
        fail "one output with two checkpoints and one -T: exit code $code"
    fi
    run 3 "${keys[@]}" -T other --json
    grep -q '"resumed": "begun", "kept_bytes": 0, "kept_runs": [1-9]' "$work.out" || fail "two outputs of one name: the first began anew"
    cmp -s out wanted || fail "two outputs of one name, with one -T: the first has other bytes"
    rm there/out
    rmdir there other
    afresh
}

# flip FILE AT: turn a bit of that byte.
flip()
{
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059  # the format is the byte
    printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# A run that is gone or cut is made again. A changed one has the right size, so that is found at the end, by the check: exit code 1,
# and then all of it goes. Changed fences name wrong places: never a wrong output. Segments of an output
# that is gone, or another file, are written again.
damage()
{
    local how file=$dir/run-000004 ranks expected
    for how in gone cut long key fence link directory journal plan output copy; do
        drawn 2 || continue
        ranks=$([[ $how =~ ^(key|fence)$ ]] && echo 1 || echo 2) # on one rank no segment is made: this run is read
        stop holdwrite:0:1 "$ranks" USR1 "${keys[@]}"
        expected=0
        case $how in
            gone) rm "$file" ;;
            cut) truncate -s -8 "$file" ;;
            long) truncate -s +8 "$file" ;;
            key) flip "$file" 4001 && expected=1 ;;
            fence) flip "$file" $(($(stat -c %s "$file") - 6)) && expected=any ;;
            link) mv "$file" real && ln -s ../real "$file" ;;
            directory) rm "$file" && mkdir "$file" && touch "$file"/foreign && expected=3 ;;
            journal) rm $dir/journal-1 ;;
            plan) truncate -s 30 $dir/plan ;;
            output) rm out.hypersort-*.part ;;
            copy) # zeros, with the name and the size of what segments were written to
                truncate -s "$(stat -c %s in.raw)" zeros && chmod 600 zeros && mv zeros out.hypersort-*.part ;;
        esac
        run 3 "${keys[@]}"
        if [ "$expected" = any ]; then
            if [ "$code" = 0 ]; then cmp -s out wanted || fail "damage, $how: a wrong output"; fi
            [ "$code" = 0 ] || [ "$(wc -l <"$work.err")" = 1 ] || fail "damage, $how: exit code $code, and not one line"
        elif [ "$code" != "$expected" ]; then
            fail "damage, $how: exit code $code, not $expected"
        fi
        [ $how != key ] || grep -q "what an earlier command had kept of them may have been damaged, and is removed; out was" "$work.err" ||
            fail "damage, $how: the input alone is blamed"
        echo "damage, $how: exit code $code: $(head -n 1 "$work.err" | cut -c 1-120)"
        if [ "$code" != 0 ]; then
            cmp -s out <(echo old) || fail "damage, $how: the output was touched"
            [ $how = directory ] || [ "$(compgen -G '*hypersort-*')" = "" ] || fail "damage, $how: something stays"
            rm -rf "$file"
            run 2 "${keys[@]}"
        fi
        sed -i '/was left by a run that was killed/d' "$work.err"
        rm -f real
        finished "damage, $how"
    done
}

kills()
{
    if [ -z "$python" ]; then
        echo "no python3: nothing is killed"
        return
    fi
    mkdir killed && cd killed || exit 1
    # shellcheck disable=SC2086  # MPIRUN is words
    "$python" "$SOURCE/tests/command/disk_kills.py" "$seed" "${KILLS:-2}" keys "$HYPERSORT" $MPIRUN --quiet -n RANKS || fail "kills above"
    cd .. && rm -r killed
}

ok 0 gen -n 60000 -s "$seed" --dist zipf -o in.raw
touch -d "2002-02-03" in.raw # an input is known by its size and time
ok 0 sort in.raw --type u64 -o wanted
run_parts before_mpi each_phase nothing_twice again_and_again records_too records_damaged runs_lost long_header refusals damage kills
finish
