#!/bin/bash
# Two nodes on this machine, with a host name, a network and a /dev/shm of their own and a slow cable between them: keys that
# change nodes go by `partition`, packed. Every output is that of one rank, byte for byte. The reports say how many keys and how many
# bytes went between nodes; the kernel counts the same bytes on the cables. If ranks are killed while they send, nothing of them is
# left on either node.
#
#     node1   rank 0 [1 2]   eth0 --- bridge --- eth0   node2   rank 1 [3]        the rate is tc's, if the kernel has it
#
# By hand, on an idle machine, `test_two_nodes.sh times`: seconds of the exchange beside bytes / rate, for partition and direct; the
# median of nine sorts, the fastest and the slowest.
set -euo pipefail
mode=${1:-test} work=${TMPDIR:-/tmp} rate_mbit=200 network=10.1.2
PATH=$PATH:/usr/sbin:/sbin
namespaces=(--pid --fork --kill-child --mount --mount-proc --net --uts --ipc)

skip()
{
    echo "skipped: $1"
    exit 77
}

fail()
{
    echo "failed: $1"
    exit 1
}

if [ "${TWO_NODES_INSIDE:-}" = "" ]; then
    for program in ip nsenter unshare mpirun python3; do
        command -v $program >/dev/null || skip "there is no $program"
    done
    [ "$(id -u)" = 0 ] || skip "namespaces take root"
    unshare "${namespaces[@]}" bash -c 'ip link add cluster type bridge && ip link add node1 type veth' 2>/dev/null ||
        skip "this machine makes no namespaces with bridges and cables"
    folder=$(mktemp -d "$work/two_nodes.XXXXXX")
    trap 'rm -rf "$folder"' EXIT
    cd "$folder"
    TWO_NODES_INSIDE=$folder unshare "${namespaces[@]}" "$BASH" "$0" "$mode" && exit 0 || exit $?
fi

# ---- inside: the first process of all namespaces; what it starts ends with it ----

# node N: its first process, then its cable.
start_node()
{
    local pid
    unshare --net --uts --ipc --mount bash -c "hostname node$1; mount -t tmpfs tmpfs /dev/shm; ip link set lo up
        echo \$\$ >node$1.pid; exec sleep 3600" &
    until [ -s "node$1.pid" ]; do
        sleep 0.05
    done
    pid=$(cat "node$1.pid")
    ip link add "node$1" type veth peer name eth0 netns "$pid"
    ip link set "node$1" master cluster up
    nsenter -t "$pid" -n ip address add "$network.1$1/24" dev eth0
    nsenter -t "$pid" -n ip link set eth0 up
    nsenter -t "$pid" -n tc qdisc add dev eth0 root tbf rate ${rate_mbit}mbit burst 128k latency 200ms 2>/dev/null ||
        echo "no limit on the rate: there is no tc, or no tbf in the kernel"
}

# on HOSTS ARGUMENT...: hypersort on node1:R,node2:R.
on()
{
    timeout 200 mpirun --mca btl_tcp_if_include eth0 --host "$1" "$HYPERSORT" "${@:2}" 2>error || { cat error; fail "on $1: hypersort ${*:2}"; }
}

cd "$TWO_NODES_INSIDE"
hostname controller
ip link set lo up
ip link add cluster type bridge
ip address add $network.1/24 dev cluster
ip link set cluster up
printf '%s\n' "$network.11 node1" "$network.12 node2" "$network.1 controller" >hosts
mount --bind hosts /etc/hosts
start_node 1
start_node 2
printf '#!/bin/bash\nexec nsenter -t $(cat %s/$1.pid) -n -u -i -m bash -c "${*:2}"\n' "$PWD" >agent
chmod +x agent
unset "${!OMPI_MCA_@}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp
export OMPI_MCA_mpi_yield_when_idle=1 OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm_rsh_agent=$PWD/agent OMPI_MCA_plm_rsh_no_tree_spawn=1
export OMPI_MCA_oob_tcp_if_include=$network.0/24 TMPDIR=$PWD

if [ "$mode" = times ]; then
    for exchange in partition direct; do
        for type in u64 u32; do
            "$HYPERSORT" gen -n 8M --type $type -o times.npy >/dev/null
            for i in {1..9}; do
                on node1:1,node2:1 sort times.npy -o sorted.npy --exchange $exchange --engine host --json >report$i.json
            done
            EXCHANGE=$exchange TYPE=$type RATE=$rate_mbit python3 - <<'END'
import glob, json, os
reports = [json.load(open(name)) for name in glob.glob('report?.json')]
took = sorted(r['phases']['exchange'] for r in reports)
moved, keys = reports[0]['moved_bytes'], reports[0]['keys']
floor = moved / 2 / (float(os.environ['RATE']) * 125000)
print('| %s | %s | %.2f | %.3f | %.3f | %.2f | %.3f, %.3f |' %
      (os.environ['EXCHANGE'], os.environ['TYPE'], moved / (keys / 2), floor, took[len(took) // 2], took[len(took) // 2] / floor,
       took[0], took[-1]))
END
        done
    done
    exit 0
fi

# sent: bytes that both nodes' cables have carried away, as the kernel counts them.
sent()
{
    cat <(nsenter -t "$(cat node1.pid)" -n cat /proc/net/dev) <(nsenter -t "$(cat node2.pid)" -n cat /proc/net/dev) |
        awk '$1 == "eth0:" { sum += $10 } END { printf "%d\n", sum }'
}

# check_bytes TYPE BYTES: the last report beside how many keys change nodes, and beside what the cables have carried meanwhile.
# There are also packets' heads, short messages, and mpirun's own ones: some 300 kB for 4 ranks.
check_bytes()
{
    TYPE=$1 SENT=$2 python3 - <<'END'
import json, os
r = json.load(open('report.json'))
width = int(os.environ['TYPE'][1:]) // 8
ranks, sent, names = r['ranks'], int(os.environ['SENT']), ['in.raw', 'expected.raw']
data, out = ([f[at:at + width] for at in range(0, len(f), width)] for f in (open(name, 'rb').read() for name in names))
share = -(-len(data) // ranks)
first = {1: 1, 3: 3}[ranks - 1]  # ranks of node 1; the other has one
place = {}
for at, key in enumerate(out):
    place.setdefault(key, (at // share) < first)
crossing = sum(place[key] != (at // share < first) for at, key in enumerate(data))
crossed, plain, each = r['crossed_bytes'], r['crossed_plain_bytes'], r['bytes_per_crossed_key']
print('%d keys on %d ranks by %s: %d of them cross, %.2f bytes each; cables carried %d bytes beside the keys' %
      (r['keys'], ranks, r['exchange'], plain // width, each, sent - crossed))
assert r['exchange'] in ('partition', 'direct')
assert crossed == sum(path['crossed_bytes'] for path in r['paths'].values()) <= r['moved_bytes']
assert abs(each - crossed / plain * width) < 1e-6
most = 0.02 if r['exchange'] == 'partition' else 0.0005  # a region across a boundary goes to both; keys that are there twice
assert abs(plain / width - crossing) <= most * crossing, (plain / width, crossing)
assert r['exchange'] != 'direct' or crossed == plain
assert r['exchange'] != 'partition' or each < {4: 2.4, 8: 6.5, 16: 14.5}[width]  # all bits but 18 - 3, and heads of blocks
assert crossed <= sent < crossed * 1.1 + 400000, (crossed, sent)
END
}

# sorted_by HOSTS TYPE EXCHANGE: sort in.raw there; the output is what one rank makes of it.
sorted_by()
{
    local before
    before=$(sent)
    on "$1" sort in.raw --type "$2" -o out.raw --exchange "$3" --engine host --json >report.json
    check_bytes "$2" $(($(sent) - before))
    cmp out.raw expected.raw || fail "$2 on $1: not what one rank sorts"
}

# killed RANK NTH: that rank of 3 + 1 is killed at its NTH message. mpirun ends, and so do all ranks; but for the earlier output
# and mpirun's own session, nothing is there afterwards.
killed()
{
    local code=0 i node
    timeout 100 mpirun --quiet --mca btl_tcp_if_include eth0 -x HYPERSORT_FAULT=kill:$1:$2 --host node1:3,node2:1 "$HYPERSORT" \
        sort in.raw --type u64 -o killed.raw --exchange partition --engine host >/dev/null 2>error || code=$?
    [ $code != 0 ] && [ $code != 124 ] || { cat error; fail "rank $1 killed at message $2: exit code $code"; }
    for ((i = 0; i < 200; i++)); do # ranks that are told to stop may end after mpirun
        pgrep -f "$HYPERSORT sort" >/dev/null || break
        sleep 0.1
    done
    pgrep -f "$HYPERSORT sort" && fail "rank $1 killed at message $2: ranks go on"
    [ "$(grep -c '^hypersort: ' error)" -le 1 ] || { cat error; fail "rank $1 killed at message $2: more than one line"; }
    for node in 1 2; do
        [ -z "$(nsenter -t "$(cat node$node.pid)" -i tail -n +2 /proc/sysvipc/shm)" ] || fail "rank $1 killed at message $2: memory is left on node $node"
    done
    [ -z "$(ls | grep '^killed')" ] || fail "rank $1 killed at message $2: $(ls | grep '^killed') is left"
}

for type in u64 u32 u128; do
    "$HYPERSORT" gen -n 512K --type $type -o in.raw >/dev/null
    "$HYPERSORT" sort in.raw --type $type -o expected.raw >/dev/null
    sorted_by node1:1,node2:1 $type partition
    sorted_by node1:3,node2:1 $type partition
    [ $type != u64 ] || sorted_by node1:3,node2:1 u64 direct
    [ $type != u64 ] || [ "${HAS_FAULTS:-OFF}" != ON ] || { killed 0 2 && killed 1 9 && killed 3 20; }
done
# Records of 16 bytes, whose keys are sorted as codes and whose bytes follow; the last rank has the last few.
"$HYPERSORT" gen -n 100001 --record 16 --key @0:u64 -o in.raw >/dev/null
"$HYPERSORT" sort in.raw --record 16 --key @0:u64 -o expected.raw >/dev/null
on node1:3,node2:1 sort in.raw --record 16 --key @0:u64 -o out.raw --exchange partition --engine host --json >report.json
cmp out.raw expected.raw || fail "records: not what one rank sorts"
echo "two nodes: all as one rank sorts it"
