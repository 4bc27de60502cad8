#!/bin/bash
# --trace FILE: the file of every kind of sort, of gather, select, check and gen, on several numbers of ranks, beside its report; a
# buffer that is too small; names that cannot be written; failures.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

if [ -z "$python" ]; then
    echo "skipped: no python3 to read traces with"
    exit 77
fi
check=$(dirname "${BASH_SOURCE[0]}")/trace_check.py
"$python" "$check" --self || fail "trace_check.py takes what is wrong for right"

# traced RANKS ARGUMENT...: a sort with a trace, which is then looked at.
traced()
{
    ok "$1" sort "${@:2}" --trace trace.json --json
    cp "$work.out" report.json
    "$python" "$check" trace.json report.json "$1" >"$work.out" || fail "the trace of ${*:2} on $1 ranks"
}

# has NAME [THREADS]: the trace has spans whose names match, in threads whose names match.
has()
{
    "$python" - "$1" "${2:-.*}" <<'END' || fail "the trace lacks spans '$1' in ${2:-any thread}"
import json, re, sys
events = json.load(open("trace.json"))["traceEvents"]
names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
found = [e for e in events if re.fullmatch(sys.argv[1], e["name"]) and re.fullmatch(sys.argv[2], names[e["pid"], e["tid"]])]
sys.exit(not found)
END
}

ok 0 gen -n 300K --type u64 -o keys.npy
ok 0 gen -n 100K --record 24 --key @0:u64 -o records.bin
printf 'no npy' >broken.npy
for ranks in 1 2 3 5 7 8; do
    traced "$ranks" keys.npy -o sorted.npy
    has "local sort"
    has "read file"
    has "write file"
    has commit
done
traced 3 keys.npy -o sorted.npy --exchange bitonic --transport staged --verify=reread
has "round of the network"
has "send and receive"
has "read output"
traced 3 records.bin -o sorted.bin --record 24 --key @0:u64
has "gather"
traced 2 keys.npy --index index.npy
has argsort
# The check of a gather gathers, too, and the report has none of that.
ok 3 gather keys.npy --by index.npy -o gathered.npy --no-verify --trace trace.json --json
cp "$work.out" report.json
"$python" "$check" trace.json report.json 3 >"$work.out" || fail "the trace of a gather on 3 ranks"
ok 2 gather keys.npy --by index.npy -o gathered.npy --verify=reread --trace trace.json
grep -qE '^trace +trace.json, [0-9]+ spans$' "$work.out" || fail "the report of gather does not name the trace"
for span in read "gather elements" "look at result" write "read output" commit; do has "$span"; done
refused 2 2 "index.npy|is the input" gather keys.npy --by index.npy -o gathered.npy --trace index.npy
refused 0 2 "gathered.npy|two outputs" gather keys.npy --by index.npy -o gathered.npy --trace gathered.npy
# A name as long as a file can have, and one that is longer.
long=$(head -c 255 /dev/zero | tr '\0' t)
ok 2 sort keys.npy -o sorted.npy --trace "$long"
[ -s "$long" ] || fail "no trace of a long name"
rm "$long"
refused 0 3 "t: cannot create: File name too long" sort keys.npy -o sorted.npy --trace "t$long"
ok 3 select keys.npy --at 0,50% --trace trace.json --json
json "r['trace']['spans'] > 20 and r['trace']['file'] == 'trace.json'"
for span in read "select keys" "local sort"; do has "$span"; done
refused 2 2 "keys.npy|is the input" select keys.npy --at 0 --trace keys.npy
ok 2 sort keys.npy -o distinct.npy --unique --counts counts.npy --trace trace.json
has "find equal keys"
# check and gen have no context but that which records.
for ranks in 1 2 3 5 7; do
    ok "$ranks" gen -n 300K --type u64 -o made.npy --trace trace.json
    "$python" "$check" trace.json /dev/null "$ranks" >"$work.out" || fail "the trace of gen on $ranks ranks"
    cmp -s made.npy keys.npy || fail "gen writes other keys with a trace"
    for span in "make keys" "write file" commit; do has "$span"; done
    ok "$ranks" check sorted.npy --against keys.npy --trace trace.json --json
    cp "$work.out" report.json
    "$python" "$check" trace.json report.json "$ranks" >"$work.out" || fail "the trace of check on $ranks ranks"
    for span in "read file" "look at keys"; do has "$span"; done
done
ok 3 gen -n 100K --record 24 --key @0:u64 -o made.bin --trace trace.json
"$python" "$check" trace.json /dev/null 3 >"$work.out" || fail "the trace of gen of records"
for span in "make records" "write file" commit; do has "$span"; done
ok 2 check sorted.bin --record 24 --key @0:u64 --against records.bin --trace trace.json
grep -qE '^trace +trace.json, [0-9]+ spans$' "$work.out" || fail "the report of a check of records does not name the trace"
for span in "read file" "look at records"; do has "$span"; done
ok 2 gen -n 10000 --format gensort -o made.bin --trace trace.json
has "make records"
run 2 check made.bin --format gensort --trace trace.json # not in order
[ "$code" = 1 ] && grep -qE '^trace +trace.json, [0-9]+ spans$' "$work.out" || fail "a check that finds disorder: exit code $code"
for span in "read file" "look at records"; do has "$span"; done
ok 0 check sorted.npy --json
json "r['trace'] is None"
ok 3 check sorted.npy --trace trace.json --trace-spans 5 --json
json "r['trace']['spans'] == 15 and r['trace']['lost_spans'] > 0 and r['trace']['written']"
refused 2 2 "keys.npy|is the input" check sorted.npy --against keys.npy --trace keys.npy
refused 2 2 "counts.npy|is the input" check distinct.npy --unique --counts counts.npy --against keys.npy --trace counts.npy
refused 0 2 "sums|two outputs" check made.bin --format gensort --summary sums --trace sums
refused 3 2 "new.npy|two outputs" gen -n 5 -o new.npy --trace new.npy
refused 3 2 "new.2.npy|two outputs" gen -n 5 -o new.%r.npy --trace new.2.npy
refused 3 3 "none/trace.json: cannot create" gen -n 5 -o new.npy --trace none/trace.json
refused 2 2 "trace.json|no-clobber" gen -n 5 -o new.npy --trace trace.json --no-clobber
refused 2 2 "trace.json|no-clobber" gather keys.npy --by index.npy -o new.npy --trace trace.json --no-clobber
rm trace.json
refused 2 2 "--dist: " gen -n 5 -o new.npy --dist none --trace trace.json
refused 2 2 "broken.npy" check broken.npy --trace trace.json
# Two passes: the engine holds a part. By way of the disk: with a thread that sorts beside.
traced 3 keys.npy -o sorted.npy --device-memory 1500K
has "pass 2: segments"
has "(show|send) pieces" # as the system lets ranks read each other's memory, or not
traced 3 keys.npy -o sorted.npy --device-memory 1500K --shared-memory off
has "send pieces"
has "wait for pieces"
traced 2 keys.npy -o sorted.npy --runs 4
has "sort slot" sorter
has "write run"
has "read run" '(main|thread [0-9]+)'
traced 2 records.bin -o sorted.bin --record 24 --key @0:u64 --runs 4
has "cut runs"

# No trace, no spans; a report says so.
ok 0 sort keys.npy -o sorted.npy --json
json "r['trace'] is None and len(r['per_rank']) == 1 and r['command'].startswith('hypersort sort keys.npy -o')"
ok 0 sort keys.npy -o 'a name'\''s.npy' --json
json "__import__('shlex').split(r['command']) == ['hypersort', 'sort', 'keys.npy', '-o', r['output'], '--json']"
ok 0 sort keys.npy -o sorted.npy --trace trace.json
grep -qE '^trace +trace.json, [0-9]+ spans$' "$work.out" || fail "the report does not name the trace"
# Too little room: what begins first stays, the rest is counted.
ok 3 sort keys.npy -o sorted.npy --trace trace.json --trace-spans 20 --json
json "r['trace']['spans'] == 60 and r['trace']['lost_spans'] > 0 and r['trace']['written']"
ok 0 sort keys.npy -o sorted.npy --trace trace.json --trace-spans 20
grep -q 'LOST' "$work.out" || fail "the report does not say that spans were lost"

# What cannot be: nothing is sorted, and nothing is left.
mkdir folder
rm -f sorted.npy
for name in folder none/trace.json keys.npy sorted.npy ./folder/../sorted.npy; do
    code_of=3
    [[ $name = *.npy ]] && code_of=2
    refused 0 $code_of "$(basename "$name")" sort keys.npy -o sorted.npy --trace "$name"
done
refused 0 3 "/dev/null|regular file" sort keys.npy -o sorted.npy --trace /dev/null
refused 3 2 "trace.json|no-clobber" sort keys.npy -o sorted.npy --trace trace.json --no-clobber
refused 0 2 "--trace-spans without --trace" sort keys.npy -o sorted.npy --trace-spans 100
refused 3 2 "sorted.2.npy|two outputs" sort keys.npy -o sorted.%r.npy --trace sorted.2.npy
rm trace.json
refused 0 2 "broken.npy" sort broken.npy -o sorted.npy --trace trace.json

if [ "$HAS_FAULTS" = ON ]; then
    # A sort that fails has a trace, of all ranks, and its own line and code.
    export HYPERSORT_FAULT=kernel:1:1
    run 3 sort keys.npy -o sorted.npy --trace trace.json
    unset HYPERSORT_FAULT
    if [ "$code" = 0 ] || [ -e sorted.npy ] || [ ! -e trace.json ] || [ "$(wc -l <"$work.err")" != 1 ]; then
        fail "a sort with a failed kernel ends with $code, trace: $(ls)"
    fi
    has agree
    rm trace.json
    # So has one that was sorted, but whose trace cannot be written: then the output is there.
    export HYPERSORT_FAULT=write:0:1
    run 0 sort keys.npy -o sorted.npy --trace trace.json --no-verify --direct-io off
    unset HYPERSORT_FAULT
    [ "$code" = 3 ] && [ -e trace.json ] && [ ! -e sorted.npy ] || fail "a full disk ends with $code: $(ls)"
    rm -f trace.json
    for write in 2 3 4 5 6 7 8; do
        export HYPERSORT_FAULT=write:0:$write
        run 0 sort keys.npy -o sorted.npy --trace trace.json --no-verify --direct-io off
        unset HYPERSORT_FAULT
        [ "$code" = 3 ] && [ ! -e trace.json ] && [ -e sorted.npy ] && break
        [ "$code" = 0 ] && fail "no write of the trace failed" && break
        rm -f trace.json
    done
    grep -q 'trace.json: cannot write the trace: No space left' "$work.err" || fail "a trace that cannot be written has no line"
    grep -q 'NOT WRITTEN' "$work.out" || fail "the report does not say that the trace was not written"
    # gen and check that fail have one, too, and their own line.
    for command in "gen -n 300K -o new.npy --direct-io off" "check sorted.npy"; do
        [ "${command%% *}" = gen ] && site=write || site=read
        # shellcheck disable=SC2086  # words
        HYPERSORT_FAULT=$site:1:1 run 3 $command --trace trace.json
        [ "$code" = 3 ] && [ ! -e new.npy ] && [ "$(wc -l <"$work.err")" = 1 ] && [ -e trace.json ] ||
            fail "$command with a failing $site ends with $code: $(ls)"
        has agree
        rm -f trace.json
    done
fi
ls | grep -q 'part$' && fail "a temporary was left: $(ls)"
finish
