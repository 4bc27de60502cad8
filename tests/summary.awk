# The end of a test run, from the output of `ctest -V`: what the failed tests wrote, one line with its reason for each
# skipped test, the counts, and ctest's own closing line. -v last=counts puts the counts last.
#
#     7: skipped: this machine has no GPU                           what test 7 wrote
#     3/40 Test  #7: sort_gpu_2 ............***Skipped   0.02 sec   how it ended

BEGIN { keep = 60 } # lines of each test's output

# Between these two lines stand the test's environment variables.
/^[0-9]+: Environment variables:/ { preamble[$1] = 1; next }
/^[0-9]+: Test timeout computed/  { preamble[$1] = 0; next }
/^[0-9]+: (Test command|Working Directory):/ || preamble[$1] { next }

/^[0-9]+: / {
    number = $1
    line = substr($0, length(number) + 2)
    lines[number]++
    text[number, lines[number] % keep] = line
    if (reason[number] == "" || (reason[number] !~ /[Ss]kip/ && line ~ /[Ss]kip/))
        reason[number] = line
    next
}

/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
    ended++
    split($1, place, "/")
    planned = place[2]
    match($0, /#[0-9]+: /)
    number = substr($0, RSTART + 1, RLENGTH - 2)
    name = substr($0, RSTART + RLENGTH)
    sub(/ .*/, "", name)
    if ($0 ~ / Passed +[0-9.]+ sec/) {
        passed++
    } else if ($0 ~ /\*\*\*Skipped/) {
        skipped++
        sub(/^[Ss]kip(ped|ping)?[:,]? +/, "", reason[number])
        skips = skips sprintf("skipped %s: %s\n", name, reason[number])
    } else {
        failed++
        failures[failed] = number
        names[failed] = name
    }
}

/tests passed, [0-9]+ tests failed out of/ { closing = $0 }

END {
    for (i = 1; i <= failed; i++) {
        number = failures[i]
        printf "---- %s failed; the last of its output:\n", names[i]
        first = lines[number] > keep ? lines[number] - keep + 1 : 1
        for (j = first; j <= lines[number]; j++)
            print text[number, j % keep]
    }
    printf "%s", skips
    if (planned > ended) {
        printf "%d tests did not end in the time given\n", planned - ended
        failed += planned - ended
    }
    printf "%d passed, %d failed, %d skipped", passed, failed, skipped
    if (last == "counts") {
        print ""
    } else {
        printf " in %d s\n", seconds
        print closing
    }
}
