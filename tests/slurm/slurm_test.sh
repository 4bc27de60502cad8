# shellcheck shell=bash
# What the tests under Slurm share; sourced, first of all: the test is then run again beside a cluster of its own, in a folder that
# all nodes see and that is gone at the end. Jobs are the very scripts of jobs/; whatever else the test needs comes as sbatch's
# options and environment, as from a user.

if [ -z "${SLURM_WORK:-}" ]; then
    exec "$(dirname "${BASH_SOURCE[0]}")/slurm.sh" "$0" "$@"
fi
# shellcheck source=tests/support/draw.sh
. "$SOURCE/tests/support/draw.sh"
mkdir "$SLURM_WORK/test"
cd "$SLURM_WORK/test" || exit 1
failures=0 checks=0
patience=120 # seconds; everything here takes a few
# shellcheck disable=SC2034 # the tests use it
small=(--ntasks-per-node=2 --gpus-per-node=2 --cpus-per-task=1 --time=5) # as nodes here are
export HYPERSORT

# fail TEXT [FILE]: count a failure, and show the end of FILE.
fail()
{
    failures=$((failures + 1))
    echo "failed: $1"
    if [ -f "${2:-}" ]; then
        tail -n 20 "$2" | sed 's/^/    /'
    fi
}

# same WHAT GOT WANTED [FILE]
same()
{
    checks=$((checks + 1))
    if [ "$2" != "$3" ]; then
        fail "$1: '$2', not '$3'" "${4:-}"
    fi
}

# Where the processes of the command are, and what the ends of their connections hold: of a step that does not end, nothing else is known
# once the cluster is gone.
where_they_are()
{
    local process
    for process in $(processes hypersort); do
        echo "process $process: $(tr '\0' ' ' <"/proc/$process/cmdline")"
        ! command -v gdb >/dev/null || timeout 30 gdb -p "$process" -batch -ex 'backtrace 25' 2>/dev/null | grep '^#'
        ! command -v ss >/dev/null || nsenter --net="/proc/$process/ns/net" ss -tnp 2>/dev/null | grep -F "pid=$process,"
    done
}

# until_true COMMAND [NAME]...: wait until it succeeds; shows the log of job NAME where it does not, and what runs.
until_true()
{
    local end=$((SECONDS + patience))
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $end ]; then
            fail "waited $patience s for: $*" "${2:-}.log"
            where_they_are | sed 's/^/    /'
            return
        fi
        sleep 0.2
    done
}

# submit NAME SCRIPT OPTION...: a job of jobs/SCRIPT, its log in NAME.log, its number in job[NAME].
declare -A job
submit()
{
    job[$1]=$(sbatch --parsable --job-name="$1" --output="$1.log" "${@:3}" "$SOURCE/jobs/$2") || {
        fail "$1: sbatch took it not"
        job[$1]=0
    }
}

# of NAME FIELD: what scontrol says of a job.
of() { scontrol --oneliner show job "${job[$1]}" | sed -n "s/.* $2=\([^ ]*\).*/\1/p"; }

over() { [[ $(of "$1" JobState) =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]]; }
running() { [ "$(of "$1" JobState)" = RUNNING ]; }
says() { grep -qE -- "$2" "$1.log"; }

# ends NAME STATE EXIT-CODE: wait for a job's end.
ends()
{
    until_true over "$1"
    same "$1: state and exit code" "$(of "$1" JobState) $(of "$1" ExitCode)" "$2 $3" "$1.log"
}

# keys NAME COUNT SEED: a file of random keys, NAME.u64, and the same in order, NAME.sorted.
keys()
{
    "$HYPERSORT" gen -n "$2" --seed "$3" -o "$1.u64"
    order <"$1.u64" >"$1.sorted"
}

# In order by another program than the one under test: as decimal numbers, one per line.
numbers() { od -An -v -w8 -tu8 | tr -d ' '; }
order() { numbers | sort -n; }

# right NAME OF: file NAME holds the keys of OF.u64 in order.
right()
{
    checks=$((checks + 1))
    numbers 2>/dev/null <"$1" | cmp -s - "$2.sorted" || fail "$1 is not what $2.u64 is in order"
}

# No temporary, no checkpoint.
nothing_left()
{
    same "left in the folder" "$(find . -name '*.part' -o -name '*.checkpoint')" ""
}

# processes PROGRAM [JOB-NAME]: those of the program, of one job or of all. Other clusters' cannot be seen from here.
processes()
{
    local process
    for process in /proc/[0-9]*; do
        if [ "$(cat "$process/comm" 2>/dev/null)" = "$1" ] &&
            { [ $# = 1 ] || grep -qzx "SLURM_JOB_NAME=$2" "$process/environ" 2>/dev/null; }; then
            echo "${process#/proc/}"
        fi
    done
}
no_process() { [ -z "$(processes hypersort "$1")" ]; }

finish()
{
    echo "$checks checks, $failures failures, $SECONDS s"
    [ "$failures" = 0 ]
    exit
}
