#!/bin/bash
# jobs/requeue.sbatch under a Slurm of this test's own (slurm.sh): stopped in each phase, at its time limit, or by hand, killed,
# or deprived of a node; each time the output is, in the end, that of an undisturbed run.
set -euo pipefail
if [ "${HAS_FAULTS:-OFF}" != ON ]; then
    echo "skipped: this build has no fault sites (HYPERSORT_FAULTS=OFF)"
    exit 77
fi
# shellcheck source=tests/slurm/slurm_test.sh
. "$(dirname "${BASH_SOURCE[0]}")/slurm_test.sh"

seed=${HYPERSORT_SEED:-$RANDOM}
echo "seed $seed"
export OPTIONS="--type u64 --engine host"

# A requeued job has the environment that it had before; this forgets the fault in the second turn.
cat >first_turn <<'END'
#!/bin/bash
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || unset HYPERSORT_FAULT
exec "$COMMAND" "$@"
END
chmod +x first_turn
export COMMAND=$HYPERSORT

# Ranks that are signalled before they watch for it: they lose the first signal, or with a fault "died" they die of it.
cat >early <<'END'
#!/bin/bash
if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
    [ "$HYPERSORT_FAULT" = died ] || trap ': >"$heard"' USR1
    heard=$SLURM_JOB_ID.$SLURM_PROCID.heard
    : >"$SLURM_JOB_ID.$SLURM_PROCID.began"
    until [ -e "$heard" ]; do sleep 0.1; done
    trap - USR1
fi
exec ./first_turn "$@"
END
chmod +x early

# turn NAME OUT FAULT OPTION...: a turn of the sort into OUT, held at FAULT (or at none) whenever it comes by. Some of its
# variables are the caller's: RESTARTS, LAUNCHER.
turn()
{
    submit "$1" requeue.sbatch "${small[@]}" --nodes=1 "--export=ALL,IN=many.u64,OUT=$2,HYPERSORT_FAULT=$3" "${@:4}"
}

# turns NAME FAULT OPTION...: the same, into NAME.out, held in the first turn only.
turns() { HYPERSORT=$PWD/first_turn turn "$1" "$1.out" "${@:2}"; }

held() { [ "$(grep -c '^hypersort: held ' "$1.log")" = "${2:-1}" ]; }

# stop NAME [TIMES]: as Slurm would before the job's time is over, once it is held, for the TIMES-th time.
stop()
{
    until_true held "$@"
    scancel --batch --signal=USR1 "${job[$1]}" || fail "$1 cannot be sent a signal" "$1.log"
}

# done_right NAME OUT RESTARTS: the last turn ended well; OUT is right, and nothing else is left.
done_right()
{
    ends "$1" COMPLETED 0:0
    same "$1: restarts" "$(of "$1" Restarts)" "$3" "$1.log"
    same "$1: the report's line" "$(sed -n 's/^job  *//p' "$1.log")" "${job[$1]}, slurm$([ "$3" = 0 ] || echo ", restarted 1 time")"
    right "$2" many
    cmp -s "$2" undisturbed.out || fail "$2 is not, byte for byte, what an undisturbed run writes"
    same "$1: left behind" "$(compgen -G "$2.*" || true)" ""
}

# went_on NAME [WORDS]: the report says so, and what was kept.
went_on()
{
    checks=$((checks + 1))
    says "$1" "^resumed  *with ${2:-}" || fail "$1: the report does not say that it went on, with ${2:-what it kept}" "$1.log"
}

# ---- A signal in each phase ------------------------------------------------------------------------------

declare -A phase=([holdread]="keys were read" [holdsort]="shards were sorted" [holdwrite]="keys were written")
declare -A kept=([holdread]="0 B" [holdsort]="0 B" [holdwrite]="[0-9.]* [kM]B")

each_phase()
{
    local site
    for site in "${!phase[@]}"; do
        turns "$site" "$site:1"
    done
    for site in "${!phase[@]}"; do
        stop "$site"
    done
    for site in "${!phase[@]}"; do
        done_right "$site" "$site.out" 1
        checks=$((checks + 1))
        says "$site" "^hypersort: stopped by SIGUSR1 while ${phase[$site]}; $site.out.checkpoint/manifest says" ||
            fail "$site: the log does not say when it was stopped" "$site.log"
        went_on "$site" "${kept[$site]}"
    done
}

# A signal that comes while ranks begin.
both_began() { [ -e "${job[$1]}.0.began" ] && [ -e "${job[$1]}.1.began" ]; }
as_they_begin()
{
    local name
    HYPERSORT=$PWD/early turn lost lost.out holdsort:0
    HYPERSORT=$PWD/early turn died died.out died
    for name in lost died; do
        until_true both_began $name
        scancel --batch --signal=USR1 "${job[$name]}" || fail "$name cannot be sent a signal" "$name.log"
    done
    for name in lost died; do
        done_right $name $name.out 1
    done
}

# Slurm's own signal. Its clock is coarse: it comes some time in the first 40 s, and the job's minute is not over yet.
time_limit_begins() { turns timed holdsort:0 --time=1 --signal=B:USR1@50; }
time_limit_ends()
{
    done_right timed timed.out 1
    went_on timed
}

# All nodes; and by mpirun, which hands the signal on.
all_nodes()
{
    turns nodes holdsort:5 --nodes=4
    LAUNCHER=mpirun turns by_mpirun holdsort:3 --nodes=4
    stop nodes
    stop by_mpirun
    done_right nodes nodes.out 1
    went_on nodes
    done_right by_mpirun by_mpirun.out 1
    went_on by_mpirun
}

# ---- By hand, on another number of ranks, and too often ------------------------------------------------------

by_hand()
{
    CHECKPOINT=own RESTARTS=0 turn hand_1 hand.out holdsort:0 --nodes=2
    RESTARTS=1 turn often often.out holdread:0 --nodes=1
    stop hand_1
    stop often
    ends hand_1 FAILED 75:0
    same "hand_1: restarts" "$(of hand_1 Restarts)" 0
    CHECKPOINT=own turn hand_2 hand.out "" --nodes=3 --ntasks-per-node=1
    done_right hand_2 hand.out 0
    went_on hand_2
    same "the folder of hand_2" "$(find own)" own # the user's, who named it
    stop often 2
    ends often FAILED 75:0
    same "often: restarts" "$(of often Restarts)" 1
}

# More than memory holds: stopped while runs are made and while the result is, each time going on with other ranks.
on_disk()
{
    local OPTIONS="$OPTIONS --runs 9"
    export OPTIONS
    RESTARTS=0 turn disk_1 disk.out holdread:1 --nodes=2
    stop disk_1
    ends disk_1 FAILED 75:0
    RESTARTS=0 turn disk_2 disk.out holdwrite:1 --nodes=3 --ntasks-per-node=1
    stop disk_2
    ends disk_2 FAILED 75:0
    turn disk_3 disk.out "" --nodes=1
    done_right disk_3 disk.out 0
    checks=$((checks + 1))
    says disk_3 "^resumed  *with [0-9]* of [0-9]* runs kept, .*, and [0-9]* of [0-9]* segments, " || fail "disk_3 does not say that it went on" disk_3.log
    same "disk: left behind" "$(compgen -G "disk.out.hypersort*" || true)" ""
}

# When a job is cancelled, its tasks hear of it by SIGTERM, and keep what is needed while Slurm has patience.
cancelled()
{
    turn cancel_1 cancel.out holdwrite:1 --nodes=2
    until_true held cancel_1
    scancel "${job[cancel_1]}"
    ends cancel_1 CANCELLED 0:15
    until_true no_process cancel_1
    turn cancel_2 cancel.out "" --nodes=1
    done_right cancel_2 cancel.out 0
    went_on cancel_2 "[1-9]"
}

# ---- Killed ------------------------------------------------------------------------------------------------

# A rank is killed while it writes the rest of what a stopped run left, and Slurm kills the others, as it does when one is lost:
# the next turn goes on from there once more.
killed_rank()
{
    local ranks
    RESTARTS=0 turn kill_1 kill.out holdwrite:0 --nodes=2
    stop kill_1
    ends kill_1 FAILED 75:0
    turn kill_2 kill.out holdwrite:1 --nodes=1
    until_true held kill_2
    mapfile -t ranks < <(processes hypersort kill_2)
    same "ranks to kill one of" ${#ranks[@]} 2
    kill -KILL "${ranks[0]:-}"
    ends kill_2 FAILED 137:0
    until_true no_process kill_2
    same "output of a killed run" "$(compgen -G kill.out || true)" ""
    turn kill_3 kill.out "" --nodes=3 --ntasks-per-node=1
    done_right kill_3 kill.out 0
    went_on kill_3 "[1-9]"
}

killed_mpirun()
{
    LAUNCHER=mpirun turn mpirun_1 mpirun.out holdsort:1 --nodes=2
    until_true held mpirun_1
    kill -KILL "$(processes mpirun)"
    ends mpirun_1 FAILED 137:0
    until_true no_process mpirun_1
    same "output of a killed run" "$(compgen -G mpirun.out || true)" ""
    turn mpirun_2 mpirun.out "" --nodes=1
    done_right mpirun_2 mpirun.out 0
}

# Slurm requeues a job whose node is gone, by itself.
node_down()
{
    local node
    turns down holdsort:0 --nodes=2
    until_true held down
    node=$(scontrol show hostnames "$(of down NodeList)" | tail -n 1)
    scontrol update nodename="$node" state=down reason=test
    done_right down down.out 1
    scontrol update nodename="$node" state=resume
    until_true all_idle
}
all_idle() { [ "$(sinfo -h -t idle -o %D)" = 4 ]; }

# ---- A checkpoint that cannot be used ---------------------------------------------------------------------

damaged()
{
    RESTARTS=0 turn damage_1 damage.out holdwrite:0
    stop damage_1
    ends damage_1 FAILED 75:0
    sed -i 's/^keys .*/keys 5/' damage.out.checkpoint/manifest
    turn damage_2 damage.out ""
    ends damage_2 FAILED 2:0
    same "lines about a damaged manifest" "$(grep -c '^hypersort: .*damage.out.checkpoint/manifest' damage_2.log)" 1 damage_2.log
    same "output from a damaged manifest" "$(compgen -G damage.out || true)" ""
    rm -r damage.out.checkpoint damage.out.*part
}

keys many 234567 "$seed"
time_limit_begins
turn undisturbed undisturbed.out "" --nodes=1
ends undisturbed COMPLETED 0:0
right undisturbed.out many
for part in $(drawn_half each_phase as_they_begin by_hand on_disk cancelled killed_rank killed_mpirun node_down damaged all_nodes); do
    $part
done
time_limit_ends
same "processes of the command at the end" "$(processes hypersort)" ""
finish
