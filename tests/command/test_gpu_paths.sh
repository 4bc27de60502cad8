#!/bin/bash
# Every transport, forced, with every exchange, on 2 and on 3 ranks over the GPUs of this machine; ranks share GPUs if there
# are fewer. Each sorted file is checked against its input, and the report must say that bytes went the way that was asked for.
set -euo pipefail

if ! nvidia-smi -L 2>/dev/null | grep '^GPU' >/dev/null; then
    echo "skipped: no GPU on this machine"
    exit 77
fi
if ! "$HYPERSORT" info 2>&1 | grep 'GPU-' >/dev/null; then
    echo "skipped: this build of hypersort sees no GPU"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# over RANKS ARGUMENT...: the command over so many ranks. MPIRUN holds options too.
# shellcheck disable=SC2086
over() { $MPIRUN -n "$1" "$HYPERSORT" "${@:2}" </dev/null; }

# fail TEXT: what was wrong, and what the last run said.
fail()
{
    echo "failed: $1"
    cat "$work/report" "$work/error"
    exit 1
}

# What the machine may lack: an MPI that takes device pointers, memory that processes can map. Anything else is a failure.
lacks='this MPI does not take device pointers|transport ipc: no two ranks map each other'

# sort_by TRANSPORT EXCHANGE RANKS: sort and check; 1 if the machine lacks that transport.
sort_by()
{
    local what="$1, $2, $3 ranks" code=0
    rm -f "$work/out.npy"
    over "$3" sort "$work/in.npy" -o "$work/out.npy" --engine cuda --transport "$1" --exchange "$2" --json \
        >"$work/report" 2>"$work/error" || code=$?
    if [ "$code" = 6 ] && grep -qE "$lacks" "$work/error"; then
        echo "not tried: $(grep -m 1 '^hypersort: ' "$work/error")"
        return 1
    fi
    [ "$code" = 0 ] || fail "$what: exit code $code"
    "$HYPERSORT" check "$work/out.npy" --against "$work/in.npy" >>"$work/report" 2>"$work/error" ||
        fail "$what: not sorted"
    grep -q "\"exchange\": \"$2\"" "$work/report" || fail "$what: another exchange"
    [ "$1" = auto ] || grep -qE "\"$1\": {\"pairs\": [1-9][0-9]*, \"moved_bytes\": [1-9]" "$work/report" ||
        fail "$what: nothing went by $1"
    echo "$what: in order, the same keys; $(grep -o '"paths": {.*}}' "$work/report")"
}

over 2 gen -n 1000003 --type f64 --dist nan -s 7 -o "$work/in.npy" >/dev/null
for ranks in 2 3; do
    for transport in staged mpi ipc auto; do
        if sort_by $transport bitonic $ranks; then
            sort_by $transport direct $ranks
        fi
    done
done
# Keys of which few are equal, or they are not partitioned.
over 2 gen -n 2000003 --type u64 -s 8 -o "$work/in.npy" >/dev/null
for ranks in 2 3; do
    sort_by ipc partition $ranks || break # it has said what is lacking
done
# GPUs of different sizes among them: the map of one is for all.
for sizes in blocks163:0 blocks96:0,blocks163:1 blocks96:1; do
    [ "${HAS_FAULTS:-}" = ON ] || break # only test builds can look so
    HYPERSORT_FAULT=$sizes sort_by ipc partition 2 || break
done
over 2 info | sed -n '/^paths/,$p'
