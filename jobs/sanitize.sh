#!/bin/bash
# Run a small sort of every type and input with each rung of the ladder under the tools of compute-sanitizer: memcheck,
# racecheck, initcheck, synccheck. Rung 0 is CUB's own sort, so it is left out. `pairs`: what goes with keys on two ranks.
#
#   jobs/sanitize.sh [RUNG|pairs...]
#
# One line per rung and tool; the logs are build/sanitize/RUNG.TOOL.log. Ends with "N passed, N failed, N skipped" and
# exits 0 only if none failed and some passed.
set -euo pipefail

# shellcheck source=setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh" build
cd "$ROOT"
tools=(memcheck racecheck initcheck synccheck)
logs=build/sanitize
test=build/release/tests/test_ladder
limit=300 # seconds that one tool may take for one rung

# The rungs of the ladder but 0, by their numbers.
rungs() { sed -n 's/^ *X(\([1-9][0-9]*\), .*/\1/p' kernels/cuda/ladder/ladder.h; }

# check RUNG TOOL: the verdict is the exit status; 77 is skipped.
check()
{
    local memory=small
    if [ "$1" = pairs ]; then
        [ "$2" = initcheck ] && memory=unmapped # it does not see what another process has written
        timeout "$limit" "${MPIRUN[@]}" -n 2 compute-sanitizer --tool "$2" --error-exitcode 9 \
            build/release/tests/test_pair_partition cuda "$memory" >"$logs/$1.$2.log" 2>&1 </dev/null
        return
    fi
    timeout "$limit" compute-sanitizer --tool "$2" --error-exitcode 9 "$test" small "$1" \
        >"$logs/$1.$2.log" 2>&1 </dev/null
}

if [ $# -eq 0 ]; then
    mapfile -t wanted < <(rungs && echo pairs)
else
    wanted=("$@")
fi
total=$((${#wanted[@]} * ${#tools[@]}))
if ! have compute-sanitizer; then
    echo "no compute-sanitizer on PATH"
    echo "0 passed, 0 failed, $total skipped"
    exit 1
fi
build release test_ladder --preset release
build release test_pair_partition --preset release
mkdir -p "$logs"

passed=0 failed=0 skipped=0
for rung in "${wanted[@]}"; do
    pids=()
    for tool in "${tools[@]}"; do
        check "$rung" "$tool" &
        pids+=($!)
    done
    for i in "${!tools[@]}"; do
        status=0
        wait "${pids[i]}" || status=$?
        log=$logs/$rung.${tools[i]}.log
        case $status in
        0)
            passed=$((passed + 1))
            verdict="clean: $(tail -n 1 "$log" | tr -d =)"
            ;;
        77)
            skipped=$((skipped + 1))
            verdict=$(grep -m 1 '^skipped' "$log" || echo skipped)
            ;;
        124)
            failed=$((failed + 1))
            verdict="FAILED: not done after $limit s"
            ;;
        *)
            failed=$((failed + 1))
            verdict="FAILED ($status): $(tail -n 1 "$log" | tr -d =)"
            ;;
        esac
        printf '%-10s  %-9s  %s\n' "$rung" "${tools[i]}" "$verdict"
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
