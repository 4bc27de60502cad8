# Draw a part of the tests by a seed. A test program stands in the list once for each number of ranks (or threads): NAME_1,
# NAME_2, ... in growing order. The first and the last stay, and a third of the others, rounded up; of a program of the list
# `slow` one alone. So every program stays. With -v brief=1 about every second program stays, of slow ones every third, each on one
# of its numbers. What stays is printed, a name a line.
#
#   awk -v seed=SEED -v slow='NAME NAME ...' [-v brief=1] -f draw.awk NAMES
#
# Its own random numbers: those of awk differ between awks.

function random(below)
{
    state = state * 16807 % 2147483647
    return int(state / 2147483647 * below)
}

BEGIN {
    state = seed % 2147483646 + 1
    for (i = 0; i < 9; i++) { # neighbours would draw alike: exchange high and low bits
        random(1)
        state = state % 32768 * 65536 + int(state / 32768)
    }
    count = split(slow, names)
    for (i = 1; i <= count; i++)
        is_slow[names[i]] = 1
}

{
    program = $1
    sub(/_[0-9]+$/, "", program)
    if (!(program in tests))
        programs[++all] = program
    member[program, ++tests[program]] = $1
    slow_one[program] = slow_one[program] || ($1 in is_slow)
}

# Print `wanted` of members first .. last.
function keep(program, first, last, wanted,    i)
{
    for (i = first; i <= last; i++)
        if (random(last - i + 1) < wanted) {
            print member[program, i]
            wanted--
        }
}

END {
    for (p = 1; p <= all; p++) {
        program = programs[p]
        last = tests[program]
        if (brief && random(slow_one[program] ? 3 : 2) > 0)
            continue
        if (brief || slow_one[program] || last < 3) {
            keep(program, 1, last, brief || slow_one[program] ? 1 : last)
        } else {
            print member[program, 1]
            keep(program, 2, last - 1, int(last / 3))
            print member[program, last]
        }
    }
}
