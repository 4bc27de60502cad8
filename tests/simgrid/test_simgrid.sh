#!/bin/bash
# The library on a simulated cluster, small: up to 64 ranks in one process (tests/simgrid/README.md). Every run checks its keys;
# this test checks the times: against the plan, and of keys that stand for many against as many real keys.
set -euo pipefail

# shellcheck source=tests/support/draw.sh
. "$SOURCE/tests/support/draw.sh"
run=$SOURCE/tests/simgrid/run.sh
export SIM_BUILD=${SIM_BUILD:-$BUILD/simgrid}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0

# simulate NAME ARGUMENT...: run, and keep the row as NAME.
simulate()
{
    local status=0
    "$run" "${@:2}" >"$work/$1" 2>"$work/error" || status=$?
    if [ "$status" = 77 ]; then
        cat "$work/$1"
        exit 77
    elif [ "$status" != 0 ]; then
        cat "$work/error"
        exit 1
    fi
    checks=$((checks + 1))
}

# value NAME COLUMN...: their sum.
value()
{
    awk -F, -v columns="${*:2}" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        NR == 2 { for (i = split(columns, name, " "); i > 0; i--) sum += $at[name[i]]; print sum }' "$work/$1"
}

# agree WHAT A B PERCENT: A and B differ by at most PERCENT of B.
agree()
{
    checks=$((checks + 1))
    if ! awk -v a="$2" -v b="$3" -v percent="$4" \
        'BEGIN { exit !(a + 0 > 0 && b + 0 > 0 && (a > b ? a - b : b - a) <= percent / 100 * b) }'; then
        echo "failed: $1: $2 against $3, more than $4 % apart; $(head -1 "$work/error")"
        exit 1
    fi
}

# A network card, NVLink and both kinds of exchange; counts that are no powers of two, and half empty nodes. Of many keys direct packs
# what crosses, so as many are real as save what would be saved; their pieces are not all of one length, and some take a message more.
for exchange in $(drawn_half bitonic direct); do
    for keys in $(drawn_half 268435456 4096); do
        real=4096 input=even pieces=1 more=0
        if [ "$exchange $keys" = "direct 268435456" ]; then
            real=262144 input=smooth pieces=8 more=13
        fi
        simulate plain 64 "$exchange" "$keys" $real $input
        agree "$exchange, $keys keys, moved per key" "$(value plain moved)" "$(value plain formula_moved)" 2
        for phase in sort_s exchange_s merge_s; do
            agree "$exchange, $keys keys, $phase" "$(value plain "$phase")" "$(value plain "formula_$phase")" 25
        done
        # Of 64 ranks each sends to all others.
        [ "$exchange" != direct ] || agree "messages of keys" "$(value plain key_messages)" $((63 * pieces)) $more
    done
    for ranks in $(drawn_half 3 13 60); do
        simulate odd "$ranks" "$exchange" 1048576 4096 uniform
        simulate odd "$ranks" "$exchange" 777 777 ragged
    done
    simulate few 24 "$exchange" 2048 2048 few
    simulate sorted 24 "$exchange" 2048 2048 sorted
    agree "$exchange of sorted keys, and 1" "$(awk -v moved="$(value sorted moved)" 'BEGIN { print 1 + moved }')" 1 0

    # One real key for 1024 must take as long as 1024 real keys, but for probes and splitters, which find shorter runs sooner.
    SIM_RANKS_PER_NODE=2 simulate real 4 "$exchange" 4194304 4194304
    SIM_RANKS_PER_NODE=2 simulate scaled 4 "$exchange" 4194304 4096
    for column in sort_s exchange_s merge_s total_s; do
        agree "$exchange, $column of scaled and of real keys" "$(value scaled $column)" "$(value real $column)" 10
    done
done
# By partition: shards that differ and are redistributed first, by mapped memory on a node; few values, of which none moves; and keys in
# order, which another exchange finds to be so.
for ranks in $(drawn_half 2 8 13); do
    for input in $(drawn_half ragged few sorted); do
        simulate odd "$ranks" partition 65536 65536 "$input"
    done
done
# By direct, packed between nodes: even, uneven and small ones.
for layout in $(drawn_half 16/8 13/4 3/2 4/1); do
    IFS=/ read -r ranks per_node <<<"$layout"
    SIM_RANKS_PER_NODE=$per_node simulate nodes "$ranks" direct 536870912 262144 smooth
    agree "direct, $layout, moved per key" "$(value nodes moved)" "$(value nodes formula_moved)" 2
    agree "direct, $layout, exchange" "$(value nodes exchange_s)" "$(value nodes formula_exchange_s)" 10
    agree "direct, $layout, bytes per key" "$(value nodes crossed_key_bytes)" "$(value nodes formula_crossed_key_bytes)" 2
done
# By partition, packed between nodes, while ranks of a node map each other's memory: 2 to 8 nodes of 8, uneven and small ones.
# Of keys for which packing saves what it would save.
for layout in $(drawn_half 16/8 32/8 13/4 3/2 4/1 8/8) 64/8; do
    IFS=/ read -r ranks per_node <<<"$layout"
    SIM_RANKS_PER_NODE=$per_node simulate nodes "$ranks" partition 536870912 1048576 smooth
    agree "partition, $layout, moved per key" "$(value nodes moved)" "$(value nodes formula_moved)" 2
    agree "partition, $layout, sort and exchange" "$(value nodes sort_s exchange_s)" "$(value nodes formula_sort_s formula_exchange_s)" \
        $((ranks > per_node ? 10 : 25)) # on one node as the other exchanges
    [ "$ranks" -le "$per_node" ] ||
        agree "partition, $layout, bytes per key" "$(value nodes crossed_key_bytes)" "$(value nodes formula_crossed_key_bytes)" 2
done
# Of 64 ranks each has few regions: those of keys that are not uniform must be even, too, or all wait for the largest.
simulate uneven 64 partition 536870912 1048576 squares
agree "partition, squares and uniform keys" "$(value uneven sort_s exchange_s)" "$(value nodes sort_s exchange_s)" 15
echo "$checks checks, 0 failures"
