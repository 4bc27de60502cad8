#!/bin/bash
# hypersort plan: what it prints, alone and measured by several ranks; every option; every bad argument.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

# has WORDS: the last run printed them.
has() { grep -qF -- "$1" "$work.out" || fail "stdout lacks '$1'"; }

ok 1 gen -n 100K --type u64 -o in.npy
ok 1 gen -n 100K --type u32 -o in.raw
before=$(contents)

ok 1 plan in.npy -n 2
has "102400 u64 keys"
has "2 ranks, 8 to a node"
has "bitonic  *"
ok 1 plan in.npy -n 2 3 8 1K
has "1024 ranks, 8 to a node"
ok 1 plan -n 4 in.npy 8 --ranks 16 --json
json "sorted(p['ranks'] for p in r['plans']) == [4, 8, 16] and r['keys'] == 102400 and r['bytes'] == 819200"
json "r['engine'] == 'cuda' and r['link'] == 'ipc' and all(v['source'] == 'default' for v in r['rates'].values())"
json "r['rates']['link']['value'] == 365e9 and r['rates']['network_latency']['value'] == 3e-6"
json "r['rates']['sort_4']['value'] == 75e9 and r['rates']['sort_8']['value'] == 40e9 and r['rates']['merge']['value'] == 2.2e12"
json "[p['bytes_per_rank'] for p in r['plans'] if p['ranks'] == 16] == [51200]"
json "all(abs(p[e]['total_seconds'] - sum(p[e]['phases'].values())) < 1e-9 for p in r['plans'] for e in ('bitonic', 'direct'))"
json "all(p['exchange'] == min(('bitonic', 'direct'), key=lambda e: p[e]['total_seconds']) for p in r['plans'])"
json "all(('partition' in p) == (p['ranks'] <= 128) for p in r['plans'])"
json "all(2 * p['bytes_per_rank'] <= p['engine_bytes_per_rank'] for p in r['plans'])"
json "all(p['direct']['moved_bytes'] == 819200 * (1 - 1 / p['ranks']) for p in r['plans'])"

# Large shards, of which GPUs of one node read each other's and those of other nodes send theirs, and one alone, which has nobody to exchange keys with. The file is
# all holes: only its length is read.
truncate -s 8G holes.raw
ok 1 plan holes.raw --type u64 -n 1 2 8 16 64 256 --json
json "[p['exchange'] for p in r['plans']] == ['bitonic'] + 3 * ['partition'] + 2 * ['direct']"
json "all(('partition' in p) == (1 < p['ranks'] <= 128) for p in r['plans'])"
json "all(p[e]['messages'] == 0 and p[e]['moved_bytes'] == 0 for p in r['plans'] if p['ranks'] == 1 for e in ('bitonic', 'direct'))"
json "all(abs(p['partition']['moved_bytes'] - 2**33 * (1 - 1 / p['ranks']) * (1 + (p['ranks'] - 1) / 1024) * 33 / 32) < 100 for p in r['plans'] if 1 < p['ranks'] <= 8)"
json "all(p['partition']['moved_bytes'] < 0.9 * 2**33 * (1 - 1 / p['ranks']) for p in r['plans'] if 8 < p['ranks'] <= 128)"
json "all(p['partition']['total_seconds'] < min(p['direct']['total_seconds'], p['bitonic']['total_seconds']) for p in r['plans'] if 1 < p['ranks'] <= 8)"
json "all((p['engine_bytes_per_rank'] > 2.95 * p['bytes_per_rank']) == (1 < p['ranks'] <= 16) for p in r['plans'])"
json "all((p['bitonic']['bytes_per_crossed_key'] or 0) == (8 if p['ranks'] > 8 else 0) for p in r['plans'])"
# What direct sends to a rank is packed from 1 MiB on: not between 256 ranks.
json "[4 < (p['direct']['bytes_per_crossed_key'] or 0) < 6 for p in r['plans']] == 3 * [False] + 2 * [True] + [False]"
json "r['plans'][5]['direct']['bytes_per_crossed_key'] == 8"
json "all(abs(p['direct']['crossed_bytes'] - 2**33 * (1 - min(p['ranks'], 8) / p['ranks']) * (p['direct']['bytes_per_crossed_key'] or 0) / 8) < 100 for p in r['plans'])"
json "all(4 < p['partition']['bytes_per_crossed_key'] < 6 for p in r['plans'] if 8 < p['ranks'] <= 128)"
json "all(abs(p['partition']['crossed_bytes'] / p['direct']['crossed_bytes'] / (1 + (p['ranks'] - 1) / 1024) - 1) < 1e-6 for p in r['plans'] if 8 < p['ranks'] <= 128)"
truncate -s 64G holes.raw
ok 1 plan holes.raw --type u64 -n 7 --json
json "r['plans'][0]['bytes_per_rank'] == r['plans'][0]['caller_bytes_per_rank'] == 8 * -(-2**33 // 7)" # with all digits
ok 1 plan holes.raw --type u64 -n 16 --json
json "all(p['exchange'] == 'partition' and p['partition']['total_seconds'] < p['direct']['total_seconds'] - 0.01 for p in r['plans'])"
truncate -s 8G holes.raw
ok 1 plan holes.raw --type u64 -n 2 16
[ "$(grep -c '^  between nodes: bitonic .*; direct .*, [45].[0-9]* bytes per key; partition .* bytes per key$' "$work.out")" = 1 ] || fail "plan does not say what goes between nodes"
ok 1 plan holes.raw --type u64 -n 2 8 --transport staged --json
json "all(p['exchange'] == 'partition' for p in r['plans'])"
ok 1 plan holes.raw --type u64 -n 2
has "partition*"
# Two ranks by a path on which direct packs: so much that it pays, and not enough for partition. Without such a path bitonic does.
truncate -s 512M holes.raw
for way in "--ranks-per-node 1" "--transport staged"; do
    # shellcheck disable=SC2086 # two words
    ok 1 plan holes.raw --type u64 -n 2 $way --json
    json "all(p['exchange'] == 'direct' and p['direct']['total_seconds'] < p['bitonic']['total_seconds'] for p in r['plans'])"
done
ok 1 plan holes.raw --type u64 -n 2 --json
json "r['plans'][0]['exchange'] == 'bitonic'"
truncate -s 128M holes.raw
ok 1 plan holes.raw --type u64 -n 2 --ranks-per-node 1 --json
json "r['plans'][0]['exchange'] == 'bitonic'"
rm holes.raw

# Each rate, as it is given.
ok 1 plan in.raw --type u32 -n 8 --json --sort-gkeys 1.5 --merge-gbs 2e1 --copy-gbs 3 --step-us 4 --message-us .5 \
    --link-us 6 --link-gbs 7 --latency-us 8 --network-gbs 9 --engine host --transport staged --nodes 3
json "[round(v['value'], 12) for v in r['rates'].values()] == [1.5e9, 1.5e9, 2e10, 3e9, 4e-6, 5e-7, 6e-6, 7e9, 8e-6, 9e9]"
json "all(v['source'] == 'given' for v in r['rates'].values()) and r['type'] == 'u32'"
json "r['engine'] == 'host' and r['link'] == 'staged' and r['plans'][0]['ranks_per_node'] == 3"
ok 1 plan in.raw --type u32 --format raw -n 8 --ranks-per-node 2 --json
json "r['plans'][0]['ranks_per_node'] == 2"

# Several ranks say what one says: nothing is measured.
for ranks in 2 3; do
    ok "$ranks" plan in.npy -n 2 64 --engine host --json --link-gbs 5
    json "r['rates']['link'] == {'value': 5e9, 'unit': 'bytes/s', 'source': 'given'} and r['rates']['merge']['source'] == 'default'"
done
ok 1 plan --help
has "--ranks-per-node"
[ "$(contents)" = "$before" ] || fail "plan changed files"

# The text has what JSON has.
ok 1 plan in.npy -n 8
read -r _ one all _ <<<"$(grep '^  direct ' "$work.out" | tr -d '*')"
seconds=$(awk '/^  direct /{ print $NF }' "$work.out")
ok 1 plan in.npy -n 8 --json
json "['%.0f' % r['plans'][0]['direct'][key] for key in ('messages_per_rank', 'messages')] == ['$one', '$all']"
json "abs(r['plans'][0]['direct']['total_seconds'] / $seconds - 1) < 0.01"

bad() { refused 1 2 "$@"; }

# Files of holes with so many bytes that figures of a plan might overflow. Few file systems have such files; tmpfs does.
if ! huge=$(mktemp -d /dev/shm/hypersort.XXXXXX 2>/dev/null) || ! truncate -s 7E "$huge/7E" 2>/dev/null; then
    echo "not tested: files of 2^60 bytes and more (no tmpfs in /dev/shm)"
else
    truncate -s 1E "$huge/1E"
    truncate -s 16P "$huge/16P"
    bad "7E: has 8070450532247928832 elements of 1 bytes; plan reckons with up to 2^54 elements and 2^60 bytes" plan "$huge/7E" --type u8 -n 2
    bad "7E: has 123145302310912 elements of 65536 bytes; plan" plan "$huge/7E" --record 65536 --key @0:u64 -n 2
    bad "1E: has 17592186044416 elements of 65544 bytes, with what travels with them; plan" \
        plan "$huge/1E" --record 65536 --key @0:u64 -n 2 --index at.npy
    for words in "1E --record 65536 --key @0:u64" "16P --type u8 --index at.npy --unique" "16P --record 1 --key @0:u8"; do
        # shellcheck disable=SC2086  # words
        ok 1 plan "$huge/"$words -n 1 3 1G -S 1T --device-memory 80G --disk-read-gbs 1 --disk-write-gbs 1 --json
        json "all(p['by_disk']['lacks'] or p['by_disk']['run_bytes_on_disk'] >= r['bytes'] for p in r['plans'] if p['by_disk']['needed'])"
        json "all(p['bytes_per_rank'] == -(-r['records'] // p['ranks']) * r['element_bytes'] <= p['engine_bytes_per_rank'] for p in r['plans'])"
        json "r['plans'][0]['by_disk']['needed'] and (r['plans'][0]['by_disk']['total_seconds'] or 1) > 0"
    done
fi
[ -z "${huge:-}" ] || rm -r "$huge"
bad "-n RANKS is missing" plan in.npy
bad "IN is missing" plan -n 4
bad "'3x' is not a number of ranks" plan in.npy -n 2 3x
bad "'' cannot be IN" plan in.npy -n 2 ""
bad "'0' is not a number of ranks" plan in.npy -n 0
bad "not a number of ranks" plan in.npy -n 2G
bad "not a number of ranks" plan in.npy -n=-3
mapfile -t many < <(seq 2 40)
bad "more than 32" plan in.npy -n 1 "${many[@]}"
bad "give only one of them" plan in.npy -n 2 --nodes 1 --ranks-per-node 2
bad "--nodes" plan in.npy -n 2 --nodes -1
for value in 0 -1 nan inf 1x "" 1e999 0x10; do
    bad "--link-gbs: '$value'" plan in.npy -n 2 "--link-gbs=$value"
done
# Rates of which no machine has any would make seconds without end, or none.
for value in 1e-10 1e-317 1.1e15; do
    bad "--link-gbs: '$value'" plan in.npy -n 2 "--link-gbs=$value"
    bad "--latency-us: '$value'" plan in.npy -n 2 "--latency-us=$value"
done
ok 1 plan in.npy -n 2 --link-gbs 1e-9 --network-gbs 1e15 --latency-us 1e15 --json
json "all(0 < p[e]['total_seconds'] < 1e20 for p in r['plans'] for e in ('bitonic', 'direct'))"
for rate in sort-gkeys merge-gbs copy-gbs step-us message-us link-us latency-us network-gbs; do
    bad "--$rate: '0'" plan in.npy -n 2 "--$rate=0"
done
bad "is not one of" plan in.npy -n 2 --engine gpu
bad "unknown option" plan in.npy -n 2 --reverse
bad "unknown option" check in.npy --link-gbs 3
bad "unknown option" sort in.npy -o out.npy --link-gbs 3
bad "does not say what type" plan in.raw -n 2
refused 1 3 "missing.npy" plan missing.npy -n 2
refused 3 2 "-n RANKS is missing" plan in.npy
finish
