# shellcheck shell=bash
# Runs of the command in the background, held by the fault sites hold..., for scripts that stop or kill them; sourced after cli.sh.

# begin RANKS FAULTS ARGUMENT...: start a run in the background and wait until it is held or has ended; $pid is mpirun's, or
# that of the only rank, which needs no mpirun.
begin()
{
    local launcher="$MPIRUN --quiet -n $1"
    # A rank alone runs as users start it. Its daemon ends some time after it, and removes a folder that the next run may be about to use.
    [ "$1" = 1 ] && launcher="env -u OMPI_MCA_ess_singleton_isolated OMPI_MCA_orte_tmpdir_base=$(mktemp -d "$work.alone.XXXXXX")"
    : >"$work.err"
    # shellcheck disable=SC2086  # words
    HYPERSORT_FAULT=$2 $launcher "$HYPERSORT" "${@:3}" >"$work.out" 2>"$work.err" </dev/null &
    pid=$!
    local i
    for ((i = 0; i < 6000; i++)); do
        if grep -q '^hypersort: held ' "$work.err" || ! kill -0 "$pid" 2>/dev/null; then
            return
        fi
        sleep 0.01
    done
    fail "${*:3} on $1 ranks with $2: neither held nor over"
}

# end: wait for that run; $code is its exit code.
end()
{
    local i
    code=0
    for ((i = 0; i < 6000; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.01
    done
    kill -KILL "$pid" 2>/dev/null && fail "a run does not end"
    wait "$pid" 2>/dev/null || code=$?
    sed -i '/^hypersort: held /d' "$work.err"
    without_warnings "$work.err"
}

# rank_pid RANK: print the process id of that rank of the run.
rank_pid()
{
    local child
    if [ "$(cat "/proc/$pid/comm")" = "$(basename "$HYPERSORT")" ]; then
        echo "$pid"
        return
    fi
    # shellcheck disable=SC2013  # words
    for child in $(cat /proc/"$pid"/task/*/children 2>/dev/null); do
        if grep -qzx "OMPI_COMM_WORLD_RANK=$1" "/proc/$child/environ" 2>/dev/null; then # no pipe, whose first part grep -q could kill
            echo "$child"
            return
        fi
    done
    echo "no process of rank $1" >&2
}

# gone PID...: wait until these processes are gone, or wait only for somebody to reap them.
gone()
{
    local i process left
    for ((i = 0; i < 6000; i++)); do
        left=0
        for process in "$@"; do
            if [ -d "/proc/$process" ] && ! grep -q '^State:.Z' "/proc/$process/status" 2>/dev/null; then
                left=1
            fi
        done
        [ "$left" = 0 ] && return
        sleep 0.01
    done
    fail "processes are left: $*"
}
