# Draw a part of the tests by a seed. A test program stands in the list once for each number of ranks (or threads): NAME_1,
# NAME_2, ... in growing order. A third of them stay, rounded up; of a program of the list `slow` one alone. So every program stays.
# With -v brief=1 about every fourth program stays, of slow ones every sixth, each on one of its numbers. What stays is printed, a name
# a line.
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

# Print `wanted` of its tests.
function keep(program, wanted,    i, last)
{
    last = tests[program]
    for (i = 1; i <= last; i++)
        if (random(last - i + 1) < wanted) {
            print member[program, i]
            wanted--
        }
}

END {
    for (p = 1; p <= all; p++) {
        program = programs[p]
        if (brief && random(slow_one[program] ? 6 : 4) > 0)
            continue
        keep(program, brief || slow_one[program] ? 1 : int((tests[program] + 2) / 3))
    }
}
