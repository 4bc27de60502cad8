#!/bin/bash
# hypersort report: pages from reports and traces of real runs and of made-up runs of up to 300 ranks, with names that are no names;
# files that are neither report nor trace.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

if [ -z "$python" ]; then
    echo "skipped: no python3 to read pages with"
    exit 77
fi
pages=$(dirname "${BASH_SOURCE[0]}")/report_pages.py

# page RANKS RUN [TRACE]: a page of them, in page.html, which is then looked at.
page()
{
    ok "$1" report "$2" ${3:+--trace "$3"} -o page.html
    "$python" "$pages" look page.html "$2" ${3:+"$3"} >"$work.out" 2>&1 || fail "the page of $2 $* is wrong"
}

# sorted NAME RANKS ARGUMENT...: the report and the trace of a sort.
sorted()
{
    ok "$2" sort "${@:3}" --json --trace "$1.trace.json"
    cp "$work.out" "$1.json"
    page 0 "$1.json"
    page 0 "$1.json" "$1.trace.json"
}

for ranks in 1 2 64 300; do
    "$python" "$pages" make $ranks run.json trace.json
    page 0 run.json
    page 0 run.json trace.json
done
page 3 run.json trace.json
"$python" "$pages" make 2 run.json trace.json
page 0 run.json trace.json
"$python" "$pages" self page.html run.json trace.json || fail "a wrong page is taken for right"

ok 0 gen -n 100K --type u64 -o keys.npy
ok 0 gen -n 20K --record 24 --key @0:u64 -o records.bin
sorted alone 1 keys.npy -o sorted.npy
sorted three 3 keys.npy -o 'a <b> & "c".npy'
sorted disk 2 keys.npy -o sorted.npy --runs 3
sorted records 2 records.bin -o sorted.bin --record 24 --key @0:u64
sorted dealt 2 keys.npy -o 'sorted.%r.npy' --runs 3
sorted unique 2 keys.npy -o sorted.npy --unique
ok 0 sort keys.npy --index index.npy -o sorted.npy --json
cp "$work.out" index.json
page 0 index.json
ok 0 gather keys.npy --by index.npy -o gathered.npy --json
cp "$work.out" gather.json
page 0 gather.json
# A report of an earlier version has nothing of single ranks.
"$python" -c 'import json; r = json.load(open("three.json")); del r["per_rank"], r["command"], r["ended"]; json.dump(r, open("old.json", "w"))'
page 0 old.json

# A command of many words is told whole, as a shell has to be given it.
files=$(printf './empty.u64 %.0s' {1..2000})
touch empty.u64 'a b'
head -c 8000 records.bin >'~root'
# shellcheck disable=SC2086  # words
ok 2 sort $files '~root' 'a b' --type u64 -o long.npy --json
mv "$work.out" long.json
eval "words=($("$python" -c 'import json; print(json.load(open("long.json"))["command"])'))"
# shellcheck disable=SC2086  # words
[ "${words[*]}" = "$(echo hypersort sort $files '~root' 'a b' --type u64 -o long.npy --json)" ] && [ ${#words[@]} = 2009 ] ||
    fail "the command of a report: ${#words[@]} words, the last ones ${words[*]: -9}"
page 0 long.json
rm empty.u64 '~root' 'a b'

# Names of pages.
ok 0 report run.json
grep -q '^page  *run.html$' "$work.out" && [ -s run.html ] || fail "the page of run.json is not run.html"
cp run.json report
ok 0 report report -q
[ -s report.html ] && [ ! -s "$work.out" ] || fail "the page of report is not report.html"
refused 0 2 "run.html|no-clobber" report run.json --no-clobber
refused 0 2 "run.json|input" report run.json -o run.json
refused 0 2 "trace.json|input" report run.json --trace trace.json -o ./trace.json
refused 0 3 "none/page.html" report run.json -o none/page.html
# A page and a trace are one file of all ranks, whose name means itself.
cp run.json 'run%r%.json'
cp run.json 'run%r%%.json'
ok 2 report 'run%r%.json'
[ "$(echo run%*) $(echo run[0-9]*)" = "run%r%%.json run%r%.html run%r%.json run[0-9]*" ] || fail "the page of run%r%.json: $(echo run*)"
refused 0 2 "run%r%.html|no-clobber" report run.json -o 'run%r%.html' --no-clobber
rm 'run%r%%.json'
ok 0 report 'run%r%.json' -o 'run%r%%.json' -q
cmp -s run.json 'run%r%.json' || fail "a page is written over the report that it is of"
ok 2 sort keys.npy -o sorted.npy --trace 'run%r%%.trace' --json
mv "$work.out" two.json
page 0 two.json 'run%r%%.trace'
refused 0 2 "run%r%%.trace: is the trace of another run than three.json" report three.json --trace 'run%r%%.trace'
refused 0 2 "run%r%%.trace|no-clobber" sort keys.npy -o new.npy --trace 'run%r%%.trace' --no-clobber
rm run%*

# What is no report, and no trace.
: >empty.json
printf '{"ranks": 1,\n "phases": {}, }' >broken.json
printf '{"ranks": 1, "phases": {}}' >other.json
refused 0 3 "missing.json" report missing.json
refused 0 3 "regular file" report .
if [ "${HAS_FAULTS:-OFF}" = ON ]; then
    HYPERSORT_FAULT=short:0 refused 0 3 "run.json: ends at byte 0|cut short while it was read" report run.json -o none.html
fi
refused 0 2 "empty.json: is empty" report empty.json
refused 0 2 "broken.json: is not JSON, by line 2, byte 28" report broken.json
refused 0 2 "other.json: is not what sort --json" report other.json
ok 2 gen -n 100 -o some.npy
ok 2 select some.npy --at 0 --json
mv "$work.out" selected.json
refused 0 2 "selected.json: is not what sort --json" report selected.json
refused 3 2 "trace.json: is not what sort --json" report trace.json
refused 0 2 "run.json: is not what --trace has written" report run.json --trace run.json
refused 0 2 "RUN is missing" report
refused 0 2 "unexpected argument 'trace.json'" report run.json trace.json
finish
