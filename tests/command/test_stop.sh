#!/bin/bash
# Stopping and going on, by the command: in each phase a run is held (fault sites hold...), asked to stop, and started again on
# other numbers of ranks, until the output is byte for byte that of an undisturbed run. Runs are also killed, in
# each phase and while the manifest is written. A checkpoint refuses whatever it refuses before it changes anything.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
need_faults
# shellcheck source=tests/support/held.sh
. "$SOURCE/tests/support/held.sh"
draw_seed

sites=(holdread holdsort holdwrite)
declare -A said=([holdread]="keys were read" [holdsort]="shards were sorted" [holdwrite]="keys were written")

# stopped WORDS TEXT: the run ended as a stopped one does, with the output as it was.
stopped()
{
    if [ "$code" != 75 ] || [ "$(wc -l <"$work.err")" != 1 ] || [ -s "$work.out" ] ||
        ! grep -q "^hypersort: stopped by SIG[A-Z0-9]* while $1; ck/manifest says how far it got: the same command" "$work.err"; then
        fail "$2: exit code $code, or not one line that says 'while $1'"
    fi
    if [ "$(cat out 2>/dev/null)" != old ]; then
        fail "$2: the output was touched"
    fi
    # The line says whether the next start has anything to go on from.
    local next="begins anew, because nothing has been made yet"
    ! grep -q '^written ' ck/manifest || next="goes on from there"
    grep -q "the same command $next\$" "$work.err" || fail "$2: the line does not say that the same command $next"
    # A .part stays where the manifest names what is written of it, and only there.
    if [ "$(ls -A ck)" != manifest ] || [ "$(grep -c -m 1 '^written ' ck/manifest)" != "$(compgen -G '*.part' | wc -l)" ]; then
        fail "$2: left are $(find ck ./*.part 2>/dev/null | tr '\n' ' ')"
    fi
}

# finished TEXT: the last run sorted; the output is that of an undisturbed one, and nothing else is left.
finished()
{
    if [ "$code" != 0 ] || ! cmp -s out reference; then
        fail "$1: exit code $code, or another output than that of an undisturbed run"
    fi
    if [ -n "$(ls -A ck)" ] || compgen -G '*.part' >/dev/null; then
        fail "$1: files are left: $(find ck ./*.part 2>/dev/null | tr '\n' ' ')"
    fi
    echo old >out
}

# afresh: as if nothing had ever been stopped.
afresh()
{
    rm -rf ck ./*.part
    echo old >out
}

sort=(sort in.raw --type u64 -o out --engine host --checkpoint ck)

# Each phase, on each number of ranks, by either signal, to all ranks or to one; then on another number of ranks.
each_phase()
{
    local site ranks i other
    local -A next=([1]=5 [2]=1 [3]=8 [5]=3 [8]=2)
    for ranks in 1 2 3 5 8; do
        for i in 0 1 2; do
            ((ranks < 5 || i == ranks / 4)) || continue # more of them take longer
            site=${sites[i]}
            begin "$ranks" "$site:$((ranks / 2))" "${sort[@]}" --verify
            if (((ranks + i) % 2)); then
                kill -USR1 "$pid" # mpirun hands it on to all ranks
            else
                # Another rank than the held one where that votes while it is held.
                other=$((i != 1 ? ranks - 1 : ranks / 2))
                kill -TERM "$(rank_pid "$other")"
            fi
            end
            stopped "${said[$site]}" "$site on $ranks ranks"
            if [ "$site" != holdwrite ] && compgen -G '*.part' >/dev/null; then
                fail "$site on $ranks ranks: the output is kept, and nothing is written of it"
            fi
            run "${next[$ranks]}" "${sort[@]}" --json --verify
            grep -q '"resumed": "begun"' "$work.out" || fail "$site on $ranks ranks: the report does not say that it was stopped"
            finished "$site on $ranks ranks, then on ${next[$ranks]}"
        done
    done
}

# Stopped again and again on the way, on changing numbers of ranks. What is written stays so.
again_and_again()
{
    local site ranks written
    for step in holdread:3: holdsort:5: holdwrite:3:yes holdread:2:yes holdsort:3:yes holdwrite:2:yes; do
        IFS=: read -r site ranks written <<<"$step"
        begin "$ranks" "$site:$((ranks - 1))" "${sort[@]}"
        kill -USR1 "$(rank_pid $((ranks - 1)))" # the others write their shares
        end
        stopped "${said[$site]}" "again: $step"
        [ -z "$written" ] || grep -q '^written ' ck/manifest || fail "again: $step: nothing is written"
    done
    run 3 "${sort[@]}" --json
    grep -q '"resumed": "begun", "kept_bytes": [1-9]' "$work.out" || fail "again: the report does not say what was kept"
    finished "again and again"
}

# A launcher that blocks the signals hands that down.
blocked()
{
    local HYPERSORT_ITSELF=$HYPERSORT HYPERSORT=$work.blocked
    if ! env --block-signal=USR1 true 2>/dev/null; then
        echo "not tested: blocked signals (this env has no --block-signal)"
        return
    fi
    printf '#!/bin/sh\nexec env --block-signal=USR1 --block-signal=TERM %q "$@"\n' "$HYPERSORT_ITSELF" >"$HYPERSORT"
    chmod +x "$HYPERSORT"
    begin 1 holdread:0 "${sort[@]}"
    kill -USR1 "$pid"
    end
    rm "$HYPERSORT"
    stopped "${said[holdread]}" "with blocked signals"
}

# Without --checkpoint a signal ends the run, and nothing is left.
without_checkpoint()
{
    local site
    for site in "${sites[@]}"; do
        patient begin 2 "$site:1" sort in.raw --type u64 -o out --engine host
        kill -"$([ "$site" = holdread ] && echo USR1 || echo TERM)" "$pid"
        end
        if [ "$code" = 0 ] || [ "$code" = 75 ]; then
            fail "without --checkpoint, $site: exit code $code"
        fi
        if compgen -G '*.part' >/dev/null || [ "$(cat out)" != old ]; then
            fail "without --checkpoint, $site: files were left or changed"
        fi
    done
}

# partly_written: a run on 2 ranks was stopped while keys were written, and rank 0 has written its own.
partly_written()
{
    begin 2 holdwrite:1 "${sort[@]}"
    kill -USR1 "$(rank_pid 1)"
    end
    stopped "${said[holdwrite]}" "before: ${FUNCNAME[1]}"
    grep -q '^written 0 ' ck/manifest || fail "before: ${FUNCNAME[1]}: nothing is written"
}

# SIGKILL, to a rank or to all of them and mpirun, in each phase: from the beginning, and where a run was stopped before.
killed()
{
    local site before children i=0
    for before in : partly_written; do
        for site in "${sites[@]}"; do
            $before
            patient begin 3 "$site:1" "${sort[@]}"
            children=$(cat /proc/"$pid"/task/*/children)
            if ((i++ % 2)); then
                kill -KILL "$(rank_pid $((RANDOM % 3)))"
            else
                # shellcheck disable=SC2086  # a list
                kill -KILL "$pid" $children
            fi
            end
            # shellcheck disable=SC2086
            gone $children
            [ "$code" != 0 ] || fail "killed, $site: exit code 0"
            [ "$(cat out)" = old ] || fail "killed, $site: the output was touched"
            run $((1 + i % 4)) "${sort[@]}" --json
            [ "$before" = : ] || grep -q '"kept_bytes": [1-9]' "$work.out" || fail "killed, $site: nothing was kept"
            finished "killed, $site, then started again"
        done
    done
}

# What is refused, and changes nothing.
refusals()
{
    begin 2 holdwrite:1 "${sort[@]}"
    code=0
    HYPERSORT_FAULT='' timeout 300 "$HYPERSORT" "${sort[@]}" >"$work.out" 2>"$work.second" || code=$?
    if [ "$code" != 3 ] || [ "$(wc -l <"$work.second")" != 1 ]; then
        fail "a second command in the same directory: exit code $code"
    fi
    rm "$work.second"
    kill -USR1 "$(rank_pid 1)"
    end
    stopped "${said[holdwrite]}" "with a second command beside it"
    refused 2 2 "ck" "${sort[@]}" -r
    refused 3 2 "ck" "${sort[@]/u64/f64}"
    refused 1 2 "ck" sort in.raw --type u64 -o other --engine host --checkpoint ck
    refused 2 2 "ck" sort reference --type u64 -o out --engine host --checkpoint ck
    touch in.raw
    refused 2 2 "ck" "${sort[@]}"
    touch -d "2002-02-03" in.raw
    cp -a ck ck.whole
    sed -i 's/^keys .*/keys 5/' ck/manifest
    refused 1 2 "ck/manifest" "${sort[@]}"
    sed -i 's/^hypersort checkpoint .*/hypersort checkpoint 1/' ck/manifest
    refused 2 2 "is of version 1|remove it and any run-*.keys beside it" "${sort[@]}"
    rm ck/manifest && mkdir ck/manifest
    refused 2 3 "rank 0 on |ck/manifest: cannot read: Is a directory" "${sort[@]}"
    rmdir ck/manifest && mkfifo ck/manifest # which nobody writes to
    refused 2 3 "rank 0 on |ck/manifest: cannot read: not a regular file" "${sort[@]}"
    rm -r ck && mv ck.whole ck
    rm ck/manifest # as the lines say; the output that it knew is nobody's then
    rm ./*.part
    run 3 "${sort[@]}"
    finished "after the manifest was removed"
    # A run that fails on its own leaves nothing that it began.
    afresh
    refused 2 2 "rung" "${sort[@]}" --local 9999
    refused 1 3 "cannot" sort in.raw --type u64 -o nowhere/out --checkpoint ck
    refused 1 2 "lacks its DIR" sort in.raw --type u64 -o out --checkpoint
    mkdir "(null)" && echo foreign >"(null)/manifest" # where a name that is not there would be looked for
    refused 1 3 "nowhere" sort in.raw --type u64 -o out --checkpoint nowhere/ck
    refused 2 2 "./one/: is both the output and the directory of the checkpoint" sort in.raw --type u64 -o one --checkpoint ./one/
    [ ! -e one ] || fail "a checkpoint that would be the output leaves a directory"
    mkdir one
    refused 2 2 "one/manifest: is both the output and the manifest of the checkpoint" sort in.raw --type u64 -o one/manifest --checkpoint one
    rmdir one || fail "a manifest that would be the output leaves something"
    rm "(null)/manifest" || fail "a checkpoint that was not opened was removed"
    rmdir "(null)"
}

# names: what lies there, and what all of it holds but the output that is not whole.
names()
{
    compgen -G '*.part'
    contents | grep -v '\.part$'
}

# No room while the manifest or keys are written: exit code 3, and what was there before is there still. NTH walks the places
# where a rank writes, until none is left that it passes, and the stop goes well.
full_disk()
{
    local before fault failing nth from
    for from in nothing something; do
        [ "$from" = nothing ] || partly_written
        mkdir -p ck saved
        cp -a ck saved/ && cp -a ./*.part saved/ 2>/dev/null
        for fault in write:0 write:1 commit:0; do
            for ((nth = 1; nth < 20; nth++)); do
                rm -rf ck ./*.part
                cp -a saved/. .
                before=$(names)
                failing=${fault#*:} # the last of the ranks; the first one is held
                begin $((failing + 1)) "holdwrite:0,$fault:$nth" "${sort[@]}"
                kill -USR1 "$pid" 2>/dev/null
                end
                [ "$code" = 75 ] && break
                if [ "$code" != 3 ] || [ "$(wc -l <"$work.err")" != 1 ]; then
                    fail "from $from, $fault:$nth: exit code $code, or not one line"
                elif [ "$(names)" != "$before" ] &&
                    ! grep -q 'directory cannot be synced to disk' "$work.err"; then # then it may be the new state
                    fail "from $from, $fault:$nth: another state"
                    diff <(echo "$before") <(names)
                fi
            done
            [ "$code" = 75 ] || fail "from $from, $fault: still broken at passage $nth"
            echo "from $from, $fault: fewer than $nth passages"
            run 3 "${sort[@]}"
            finished "from $from, after $fault"
        done
        rm -r saved
        afresh
    done
}

# More than one chunk of 64 MiB on a rank.
chunks()
{
    local written kept part
    ok 2 gen -n 20000003 --dist zipf -o in.raw
    ok 2 sort in.raw --type u64 -o reference --engine host
    begin 2 holdread:1:2 "${sort[@]}"
    kill -USR1 "$pid"
    end
    stopped "${said[holdread]}" "second chunk of reading"
    begin 2 holdwrite:0:2 "${sort[@]}"
    kill -TERM "$(rank_pid 1)"
    end
    stopped "${said[holdwrite]}" "second chunk of writing"
    written=$(awk '$1 == "written" { n += $3 } END { print n + 0 }' ck/manifest)
    grep -q '^written 0 8388608$' ck/manifest || fail "rank 0 wrote one chunk, and the manifest does not say so"
    # One of these chunks is not what it was.
    part=$(compgen -G '*.part')
    head -c 100 /dev/urandom | dd of="$part" bs=1 seek=40000000 conv=notrunc status=none
    run 3 "${sort[@]}" --json
    kept=$(grep -o '"kept_bytes": [0-9]*' "$work.out" | grep -o '[0-9]*$')
    if [ "$kept" = 0 ] || [ "$kept" -ge $((written * 8)) ]; then
        fail "$((written * 8)) bytes were written, one chunk of them was damaged, and $kept were kept"
    fi
    finished "several chunks"
}

# Keys that go through two passes: stopped between chunks, and between segments, of which all ranks have done as many.
two_passes()
{
    local ranks limited=("${sort[@]}" --device-memory 4M --threads 1)
    ok 2 gen -n 1000003 --dist zipf -o in.raw
    ok 2 sort in.raw --type u64 -o reference --engine host
    for ranks in 1 3; do
        begin "$ranks" "holdread:$((ranks - 1)):2" "${limited[@]}"
        kill -USR1 "$pid"
        end
        stopped "${said[holdread]}" "a chunk of pass 1 on $ranks ranks"
        begin "$ranks" "holdwrite:$((ranks / 2)):3" "${limited[@]}"
        kill -USR1 "$pid"
        end
        stopped "${said[holdwrite]}" "a segment of pass 2 on $ranks ranks"
        [ "$(grep -c '^written ' ck/manifest)" = "$ranks" ] || fail "pass 2 on $ranks ranks: the manifest does not name $ranks ranges"
        run 2 "${limited[@]}" --json
        grep -q '"kept_bytes": [1-9]' "$work.out" || fail "pass 2 on $ranks ranks: nothing was kept"
        grep -q '"passes": 2' "$work.out" || fail "the keys fitted into 4 MiB"
        finished "two passes on $ranks ranks, then on 2"
    done
    ok 1 gen -n 30011 -s "$seed" --dist zipf -o in.raw
    ok 1 sort in.raw --type u64 -o reference
}

# Signals and SIGKILL around the moment when the manifest is written.
marking()
{
    local i children
    for ((i = 0; i < ${MOMENTS:-8}; i++)); do
        begin 3 "holdwrite:$((i % 3))" "${sort[@]}"
        children=$(cat /proc/"$pid"/task/*/children)
        kill -USR1 "$(rank_pid $((i % 3)))"
        sleep "0.$(printf %03d $((RANDOM % 60)))"
        if ((i % 2)); then # a second signal, and a third. Not to mpirun, which ends of one when its ranks have ended
            # shellcheck disable=SC2086  # a list
            kill -TERM $children 2>/dev/null
            # shellcheck disable=SC2086  # a list
            kill -USR1 $children 2>/dev/null
            end
            stopped "${said[holdwrite]}" "signals while the manifest is written"
        else
            # shellcheck disable=SC2086
            kill -KILL "$pid" $children 2>/dev/null
            end
            # shellcheck disable=SC2086
            gone $children
            echo "killed while the manifest is written: $(grep -c '^written' ck/manifest) ranges, $(find ck -type f | wc -l) files"
        fi
        ((i % 3)) || run $((1 + i % 4)) "${sort[@]}"
        ((i % 3)) || finished "started again after $i"
    done
}

ok 1 gen -n 30011 -s "$seed" --dist zipf -o in.raw
ok 1 sort in.raw --type u64 -o reference
touch -d "2002-02-03" in.raw # an input is known by its size and time
echo old >out
run_parts each_phase again_and_again blocked without_checkpoint killed refusals full_disk two_passes chunks marking
finish
