#!/bin/bash
# Run a command beside a Slurm cluster of its own: a controller and four nodes of two cores and two GPUs, on this machine.
#
#   tests/slurm/slurm.sh COMMAND ARGUMENT...
#   tests/slurm/slurm.sh bash                   to look around: sinfo, sbatch, srun
#
# Exits with the command's exit code; with 1 if a process outlived its job; with 77, after one line that says why, if
# Slurm cannot run.
#
#     this machine
#     '- namespaces: processes, ports, mounts, host name
#        |- slurm.sh, the first process, and COMMAND        SLURM_WORK: a folder that all nodes see; SLURM_CONF lies there
#        |- munged, slurmctld
#        |- node1: slurmd, its tasks                        host name, address and /dev/shm of its own, like a machine
#        '- node2, node3, node4
#
# When the first process ends, however it ends, the kernel ends the others and takes back mounts and ports. So a test that
# runs out of time leaves nothing behind, tests side by side do not meet, and they do not meet a Slurm that this machine
# has. Free ports and a list of process ids would need no namespaces, but whoever keeps the list can be killed.
#
# A GPU is a device file that nobody opens: Slurm counts, hands out and numbers it like a real one.
set -euo pipefail

nodes=4 cpus=2 gpus=2 network=10.1.1
namespaces=(--pid --fork --kill-child --mount --mount-proc --net --uts --ipc)
PATH=$PATH:/usr/sbin:/sbin # where daemons lie
failures=0

skip()
{
    echo "skipped: $1"
    exit 77
}

check_machine()
{
    local program
    for program in slurmctld slurmd sbatch srun munged ip; do
        command -v "$program" >/dev/null || skip "Slurm is not installed: no $program (Debian: slurm-wlm, munge, iproute2)"
    done
    [ "$(id -u)" = 0 ] || skip "Slurm's daemons take root"
    unshare "${namespaces[@]}" true 2>/dev/null || skip "this machine does not allow unshare, so Slurm would not be alone on it"
    unshare "${namespaces[@]}" bash -c 'ip link add cluster type bridge && ip link add node1 type veth' 2>/dev/null ||
        skip "this machine makes no bridges and cables (ip link add), and Slurm's nodes need a network"
}

# until_true SECONDS COMMAND...: wait until COMMAND succeeds.
until_true()
{
    local end=$((SECONDS + $1))
    until "${@:2}" >/dev/null 2>&1; do
        if [ $SECONDS -ge $end ]; then
            echo "slurm: waited $1 s for: ${*:2}" >&2
            return 1
        fi
        sleep 0.1
    done
}

# A network that is this cluster's alone. What Open MPI was told before is for ranks of one machine. More ranks than cores: one
# that waits must give its core away. Slurm's fence by a tree, its default, lets ranks of four busy nodes out of MPI_Init()
# before all are in, and those that are late die of the first message; the ring does not.
network_up()
{
    ip link set lo up
    ip link add cluster type bridge
    ip address add $network.1/24 dev cluster
    ip link set cluster up
    unset "${!OMPI_MCA_@}"
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_mpi_yield_when_idle=1 OMP_WAIT_POLICY=passive
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SLURM_PMIX_FENCE=ring
}

# node N, as the first process of its namespaces: a cable to the others, then slurmd.
node()
{
    hostname "node$1"
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs tmpfs /sys/fs/cgroup # nothing here needs cgroups, but slurmd wants to see some; version 2 takes a systemd
    ip link set lo up
    ip link add eth0 type veth peer name "node$1" netns 1
    ip address add "$network.1$1/24" dev eth0
    ip link set eth0 up
    nsenter --net=/proc/1/ns/net ip link set "node$1" master cluster up
    exec slurmd -D -N "node$1"
}

# The time limits and intervals that matter here are those that make a cluster of people wait: a requeued job starts once
# its old credential has expired, and the scheduler looks around seldom. TmpFS: MPI's files of two nodes must not meet.
write_configuration()
{
    local i
    mkdir "$SLURM_WORK"/{state,spool,tmp,log,gpus}
    for ((i = 0; i < gpus; i++)); do
        mknod "$SLURM_WORK/gpus/nvidia$i" c 1 3
    done
    cat >"$SLURM_CONF" <<END
ClusterName=hypersort
SlurmctldHost=$HOSTNAME($network.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$SLURM_WORK/munge/socket,cred_expire=5
StateSaveLocation=$SLURM_WORK/state
SlurmdSpoolDir=$SLURM_WORK/spool/%n
TmpFS=$SLURM_WORK/tmp/%n
SlurmctldPidFile=$SLURM_WORK/slurmctld.pid
SlurmdPidFile=$SLURM_WORK/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SlurmdParameters=config_overrides
MpiDefault=none
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
ReturnToService=1
KillWait=10
CompleteWait=0
MinJobAge=3600
TreeWidth=65533
PartitionName=all Nodes=node[1-$nodes] Default=YES
END
    for ((i = 1; i <= nodes; i++)); do
        echo "NodeName=node$i NodeHostname=node$i NodeAddr=$network.1$i CPUs=$cpus CoresPerSocket=$cpus" \
            "RealMemory=1000 Gres=gpu:$gpus" >>"$SLURM_CONF"
    done
    echo "CgroupPlugin=cgroup/v1" >"$SLURM_WORK/cgroup.conf"
    echo "NodeName=node[1-$nodes] Name=gpu File=$SLURM_WORK/gpus/nvidia[0-$((gpus - 1))]" >"$SLURM_WORK/gres.conf"
}

# daemon NAME COMMAND...: start COMMAND; its output goes to log/NAME.
daemons=()
daemon()
{
    "${@:2}" >"$SLURM_WORK/log/$1" 2>&1 </dev/null &
    daemons+=($!)
}

all_nodes_idle() { [ "$(sinfo -h -t idle -o %D)" = "$nodes" ]; }

start()
{
    local i munge=$SLURM_WORK/munge
    hostname controller
    HOSTNAME=controller
    network_up
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs -o mode=755 tmpfs "$SLURM_WORK"
    export TMPDIR=$SLURM_WORK/tmp # MPI's files bear a host's name and a process's number, which are those of other clusters, too
    export SLURM_CONF=$SLURM_WORK/slurm.conf
    write_configuration
    mkdir "$munge"
    head -c 1024 /dev/urandom >"$munge/key"
    chmod 400 "$munge/key"
    daemon munged munged --foreground --force --key-file="$munge/key" --socket="$munge/socket" \
        --pid-file="$munge/pid" --log-file="$munge/log" --seed-file="$munge/seed"
    until_true 30 munge -S "$munge/socket" -n
    daemon slurmctld slurmctld -D -c
    for ((i = 1; i <= nodes; i++)); do
        mkdir "$SLURM_WORK/spool/node$i" "$SLURM_WORK/tmp/node$i"
        daemon "node$i" unshare --mount --uts --net "${BASH_SOURCE[0]}" --node "$i"
    done
    until_true 60 all_nodes_idle
}

no_jobs() { [ -z "$(squeue -h)" ]; }

# Processes besides this one: what is left to be seen once everything was told to end. Sets `left`.
others()
{
    local process words
    left=()
    for process in /proc/[0-9]*; do
        if [ "$process" != "/proc/$$" ] && { mapfile -d '' -t words <"$process/cmdline"; } 2>/dev/null &&
            [ ${#words[@]} != 0 ]; then # a zombie has none
            left+=("${process#/proc/}: ${words[*]}")
        fi
    done
}
nobody_else()
{
    others
    [ ${#left[@]} = 0 ]
}

# What runs on is a failure, and named; it ends with this process all the same.
stop()
{
    local left=()
    scancel --user=root
    until_true 60 no_jobs || failures=1
    kill "${daemons[@]}"
    wait "${daemons[@]}" || true
    if ! until_true 20 nobody_else; then
        printf 'slurm: still there: %s\n' "${left[@]}" >&2
        failures=1
    fi
}

remove_folder()
{
    cd /
    umount --lazy "$SLURM_WORK" 2>/dev/null || true
    rmdir "$SLURM_WORK"
}

# inside COMMAND ARGUMENT...: as the first process of the namespaces.
inside()
{
    local code=0
    trap remove_folder EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    start || {
        echo "slurm: the cluster did not start; the end of what it says:" >&2
        tail -n 5 "$SLURM_WORK"/log/* >&2
        exit 1
    }
    "$@" || code=$?
    stop
    [ "$code" != 0 ] || code=$failures
    exit "$code"
}

case ${1:-} in
--inside)
    export SLURM_WORK=$2
    inside "${@:3}"
    ;;
--node)
    node "$2"
    ;;
*)
    check_machine
    SLURM_WORK=$(mktemp -d)
    exec unshare "${namespaces[@]}" "${BASH_SOURCE[0]}" --inside "$SLURM_WORK" "$@"
    ;;
esac
