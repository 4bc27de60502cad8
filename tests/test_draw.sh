#!/bin/bash
# What tests/run.sh draws: a part that has every program, by the seed alone; and each test is drawn at some time.
set -euo pipefail

draw() { awk -v seed="$1" "${@:2}" -f "$SOURCE/tests/draw.awk" "$names"; }

# programs: those of a list of tests.
programs() { sed 's/_[0-9]*$//' | sort -u; }

# fail TEXT
fail()
{
    echo "failed: $1"
    exit 1
}

names=$(mktemp)
trap 'rm -f "$names"' EXIT
printf '%s\n' many_{1,2,3,5,7,8} three_{1,2,3} two_host_{1,3} slow_{3,5,7} slow_three_{1,2,3} alone plain_7 >"$names"
drawn="" brief="" halves=""
for seed in {1..160}; do
    part=$(draw "$seed" -v slow="slow_3 slow_5 slow_7")
    [ "$part" = "$(draw "$seed" -v slow="slow_3 slow_5 slow_7")" ] || fail "seed $seed draws differently each time"
    [ "$(programs <<<"$part")" = "$(programs <"$names")" ] || fail "seed $seed leaves out a program"
    [ "$(grep -cE '^many_' <<<"$part")" = 2 ] || fail "seed $seed: not two of six"
    [ "$(grep -cE '^three_' <<<"$part")" = 1 ] || fail "seed $seed: not one of three"
    [ "$(grep -cE '^two_|^alone|^plain' <<<"$part")" = 3 ] || fail "seed $seed: not one of two, or of one"
    [ "$(grep -cE '^slow_[357]$' <<<"$part")" = 1 ] || fail "seed $seed: not one of the slow ones"
    briefly=$(draw "$seed" -v brief=1 -v slow="slow_3 slow_5 slow_7")
    [ "$(wc -l <<<"$briefly")" = "$(programs <<<"$briefly" | wc -l)" ] || fail "seed $seed, brief: several of a program"
    brief+=$briefly$'\n'
    drawn+=$part$'\n'
done
[ "$(sort -u <<<"$drawn" | sed '/^$/d')" = "$(sort "$names")" ] || fail "some tests are never drawn"
[ "$(sort -u <<<"$brief" | sed '/^$/d')" = "$(sort "$names")" ] || fail "brief: some tests are never drawn"
kept=$(sed '/^$/d' <<<"$brief" | wc -l) # of 160 times six programs, and a slow one
[ "$kept" -gt 210 ] && [ "$kept" -lt 330 ] || fail "brief: $kept programs in 160 draws"

# shellcheck source=tests/support/draw.sh
. "$SOURCE/tests/support/draw.sh"
words=(one two three four 5)
unset ALL
for HYPERSORT_SEED in {1..40}; do
    half=$(drawn_half "${words[@]}")
    [ "$half" = "$(drawn_half "${words[@]}")" ] || fail "seed $HYPERSORT_SEED draws other words each time"
    [ "$(wc -w <<<"$half")" = 3 ] || fail "seed $HYPERSORT_SEED: '$half' is not half of the words"
    [ "$(ALL=1 drawn_half "${words[@]}")" = "${words[*]}" ] || fail "ALL=1 leaves out words"
    [ "$(printf '%s\n' "${words[@]}" | grep -xF "$(tr ' ' '\n' <<<"$half")" | xargs)" = "$half" ] || fail "'$half' is not in order"
    halves+=$half$'\n'
done
unset HYPERSORT_SEED
[ "$(drawn_half "${words[@]}")" = "${words[*]}" ] || fail "without a seed words are left out"
for word in "${words[@]}"; do
    often=$(grep -cw "$word" <<<"$halves")
    [ "$often" -gt 10 ] && [ "$often" -lt 39 ] || fail "'$word' is in $often of 40 draws"
done
echo "drawn as it should be"
