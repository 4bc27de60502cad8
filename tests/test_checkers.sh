#!/bin/bash
# Whatever looks at results finds what is wrong: the functions of support/cli.sh are shown runs that are not what they ask for, and the
# scripts that compare outputs are shown a command whose outputs are damaged.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/support/cli.sh"
wrong=0

# finds COMMAND...: it counts a failure.
finds()
{
    failures=0
    "$@" >/dev/null
    [ "$failures" != 0 ] || { echo "failed: nothing is found by: $*"; wrong=1; }
    failures=0
}

# takes COMMAND...: it counts none.
takes()
{
    failures=0
    "$@" || failures=1
    [ "$failures" = 0 ] || { echo "failed: something is found by: $*"; wrong=1; }
    failures=0
}

# A shell is the command: what it is given to do is what a run does.
functions()
{
    local HYPERSORT=$BASH line='echo hypersort: a file, and why >&2; exit 2' words='a file|why'
    takes ok 0 -c true
    finds ok 0 -c 'exit 1'
    finds ok 0 -c 'echo more >&2'
    takes refused 0 2 "$words" -c "$line"
    finds refused 0 3 "$words" -c "$line"
    finds refused 0 2 "$words|where" -c "$line"
    finds refused 0 2 "$words" -c "${line/hypersort:/}"
    finds refused 0 2 "$words" -c "echo more >&2; $line"
    finds refused 0 2 "$words" -c "echo more; $line"
    finds refused 0 2 "$words" -c "echo left >new; $line"
    finds refused 0 2 "$words" -c "echo other >new; $line"
    run 0 -c 'echo "{\"a\": 1}"'
    takes json "r['a'] == 1"
    [ -z "$python" ] || finds json "r['a'] == 2"
    finds fail "this"
    takes python_cases true "" 0
    finds python_cases false "" 0
    (failures=0 && finish) && ! (failures=1 && finish) >/dev/null || { echo "failed: a test with failures ends well"; wrong=1; }
}

# The command, of which rank 0 then turns a bit of the last byte of each file that has come, or changed.
make_damaging()
{
    cat >"$1" <<'SCRIPT'
#!/bin/bash
began=$(mktemp)
"$UNDAMAGED" "$@"
code=$?
if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}" = 0 ]; then
    find . -type f -size +128c -newer "$began" | while read -r file; do
        byte=$(tail -c 1 "$file" | od -An -tu1)
        printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 1)) conv=notrunc status=none
    done
fi
rm "$began"
exit "$code"
SCRIPT
    chmod +x "$1"
}

# compares PYTHON SCRIPT NUMBER WORDS: of some cases the outputs are damaged, which the script says by these words.
compares()
{
    local HYPERSORT=$work.damaging
    failures=0
    python_cases "$1" "$2" 1 "$3" >"$work.cases"
    [ "$failures" != 0 ] && grep -q "$4" "$work.cases" || { echo "failed: $2 takes outputs for right that are damaged"; wrong=1; }
    failures=0
    rm -rf ./*
}

functions
rm -f ./*
export UNDAMAGED=$HYPERSORT PYTHONDONTWRITEBYTECODE=1
make_damaging "$work.damaging"
[ -z "$python" ] || compares "$python" sort_draws.py 0 ': the output is another one$'
if numpy=$(python_with numpy); then
    compares "$numpy" records_numpy.py 4 ': other bytes'
fi
rm -f "$work.damaging" "$work.cases"
[ "$wrong" = 0 ] && echo "what is wrong is found"
exit "$wrong"
