#!/bin/bash
# A true cgroup with a memory limit, of version 1 or 2, where this process may make one: a sort that wants
# more ends with exit code 5 and one line, is not killed, and leaves nothing; one that wants less goes
# through.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

skip()
{
    echo "skipped: $1"
    exit 77
}

group=
end_group() { [ -z "$group" ] || rmdir "$group" 2>/dev/null; }
trap 'end_group; rm -rf "$work" "$work.out" "$work.err"' EXIT

# Below the cgroup of this process, or else beside it at the top.
make_group()
{
    local path top file
    path=$(sed -n 's/^[0-9]*:\([^:]*,\)*memory\(,[^:]*\)*:\(.*\)/\3/p' /proc/self/cgroup | head -n 1)
    if [ -n "$path" ]; then
        top=/sys/fs/cgroup/memory file=memory.limit_in_bytes
    else
        path=$(sed -n 's/^0:://p' /proc/self/cgroup) top=/sys/fs/cgroup file=memory.max
    fi
    for place in "$top$path" "$top"; do
        group=$place/hypersort-test-$$
        if mkdir "$group" 2>/dev/null; then
            limit=$group/$file
            [ -w "$limit" ] && echo max >"$limit" 2>/dev/null || [ -w "$limit" ] && return 0
            rmdir "$group"
        fi
    done
    group=
    return 1
}
make_group || skip "this process may not make a memory cgroup"

# limited RANKS MIB ARGUMENT...: a run in the cgroup.
limited()
{
    echo $(($2 << 20)) >"$limit" || skip "the limit of a memory cgroup cannot be set"
    code=0
    # shellcheck disable=SC2086  # MPIRUN holds options
    (
        echo "$BASHPID" >"$group/cgroup.procs" || exit 99
        exec timeout 120 $MPIRUN --quiet -n "$1" "$HYPERSORT" "${@:3}" >"$work.out" 2>"$work.err" </dev/null
    ) || code=$?
    [ "$code" != 99 ] || skip "no process can be put into a memory cgroup"
}

ok 1 gen -n 16M --type u64 -o in.npy # 128 MiB
echo old >out.npy
before=$(contents)
for ranks in 1 2 3; do
    # The keys themselves do not fit; the keys fit, the buffers of the sort do not, with which only one rank
    # alone could do.
    for mib in $((96 + 24 * ranks)) $((160 + 24 * ranks)); do
        [ $ranks = 1 ] && [ "$mib" -gt 128 ] && continue
        limited $ranks "$mib" sort in.npy -o out.npy
        if [ "$code" != 5 ] || [ "$(wc -l <"$work.err")" != 1 ] ||
            ! grep -q "rank [0-2] on .*host memory" "$work.err"; then
            fail "$ranks ranks with $mib MiB: exit code $code, not 5 with one line"
        fi
        [ "$(contents)" = "$before" ] || fail "$ranks ranks with $mib MiB: files were left or changed"
    done
    limited $ranks 1500 sort in.npy -o sorted.npy
    [ "$code" = 0 ] || fail "$ranks ranks with 1500 MiB: exit code $code"
    rm -f sorted.npy
done
# gen and check hold 64 MiB on each rank.
for words in "gen -n 64M --type u64 -o out.npy" "check in.npy"; do
    # shellcheck disable=SC2086 # words
    limited 2 120 $words
    if [ "$code" != 5 ] || [ "$(wc -l <"$work.err")" != 1 ]; then
        fail "$words: exit code $code, not 5 with one line"
    fi
    [ "$(contents)" = "$before" ] || fail "$words: files were left or changed"
done
finish
