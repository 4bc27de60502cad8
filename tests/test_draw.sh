#!/bin/bash
# What tests/run.sh draws: a part, of every program, with the extremes; by the seed alone; and each test at some time.
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
drawn="" brief=""
for seed in {1..40}; do
    part=$(draw "$seed" -v slow="slow_3 slow_5 slow_7")
    [ "$part" = "$(draw "$seed" -v slow="slow_3 slow_5 slow_7")" ] || fail "seed $seed draws differently each time"
    [ "$(programs <<<"$part")" = "$(programs <"$names")" ] || fail "seed $seed leaves out a program"
    [ "$(grep -cE '^many_' <<<"$part")" = 4 ] || fail "seed $seed: not four of six"
    [ "$(grep -cE '^many_[18]$|^two_|^alone|^plain|^three_|^slow_three' <<<"$part")" = 12 ] || fail "seed $seed lacks what must stay"
    [ "$(grep -cE '^slow_[357]$' <<<"$part")" = 1 ] || fail "seed $seed: not one of the slow ones"
    [ "$(draw "$seed" -v brief=1 | programs | wc -l)" = 7 ] || fail "seed $seed, brief: not each program"
    [ "$(draw "$seed" -v brief=1 | wc -l)" = 7 ] || fail "seed $seed, brief: not one of each program"
    brief+=$(draw "$seed" -v brief=1 -v slow="slow_3 slow_5 slow_7" | grep -E '^slow_[357]$' || echo none)$'\n'
    drawn+=$part$'\n'
done
[ "$(sort -u <<<"$drawn" | sed '/^$/d')" = "$(sort "$names")" ] || fail "some tests are never drawn"
[ "$(sort -u <<<"$brief" | sed '/^$/d' | paste -sd' ')" = "none slow_3 slow_5 slow_7" ] || fail "brief: slow ones are drawn wrongly"
echo "drawn as it should be"
