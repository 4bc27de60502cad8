#!/bin/bash
# A true cgroup with a memory limit, of version 1 or 2, if this process may make one: a sort that wants more
# goes by way of the disk and is not killed. A sort that has no such way, or was told of more memory than there is, ends with exit
# code 5 and one line, and leaves nothing. A sort that wants less goes through in memory.
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
trap 'end_group; rm -rf "$work" "$work".*' EXIT

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
    without_warnings "$work.err"
    [ "$code" != 99 ] || skip "no process can be put into a memory cgroup"
}

# too_much RANKS MIB ARGUMENT...: a run that lacks memory.
too_much()
{
    limited "$@"
    if [ "$code" != 5 ] || [ "$(wc -l <"$work.err")" != 1 ] || ! grep -q "rank [0-2] on .*memory" "$work.err"; then
        fail "${*:3}, $1 ranks with $2 MiB: exit code $code, not 5 with one line"
    fi
    [ "$(contents)" = "$before" ] || fail "${*:3}, $1 ranks with $2 MiB: files were left or changed"
}

ok 1 gen -n 16M --type u64 -o in.npy # 128 MiB
ok 1 sort in.npy -o wanted.npy
ok 1 sort in.npy --index wanted-index.npy
ok 1 sort in.npy -o wanted-unique.npy --unique
echo old >out.npy
before=$(contents)
for ranks in $(drawn_half 1 2 3); do
    # The keys themselves do not fit; the keys fit, the buffers of the sort do not, with which only one rank
    # alone could do.
    for mib in $(drawn_half $((96 + 24 * ranks)) $((160 + 24 * ranks))); do
        [ $ranks = 1 ] && [ "$mib" -gt 128 ] && continue
        limited $ranks "$mib" sort in.npy -o sorted.npy --json
        if [ "$code" != 0 ] || [ -s "$work.err" ] || ! cmp -s wanted.npy sorted.npy; then
            fail "$ranks ranks with $mib MiB: exit code $code, or another output"
        fi
        json "r['passes'] == 2 and r['runs'] > $ranks"
        rm -f sorted.npy
        too_much $ranks "$mib" sort in.npy -o out.npy -S 8G
        for words in "--index index.npy" "-o unique.npy --unique"; do
            # shellcheck disable=SC2086  # words
            limited $ranks "$mib" sort in.npy $words
            name=$(cut -d " " -f 2 <<<"$words")
            if [ "$code" != 0 ] || [ -s "$work.err" ] || ! cmp -s "wanted-$name" "$name"; then
                fail "$words, $ranks ranks with $mib MiB: exit code $code, or another output"
            fi
            rm -f "$name"
        done
    done
    limited $ranks 1500 sort in.npy -o sorted.npy --json
    [ "$code" = 0 ] || fail "$ranks ranks with 1500 MiB: exit code $code"
    json "r['passes'] == 1"
    rm -f sorted.npy
done
# Without -S, keys that do not fit are read several times.
ok 1 select in.npy --at 0,50%,-1
median=$(cat "$work.out")
limited 2 144 select in.npy --at 0,50%,-1
[ "$code" = 0 ] && [ "$(cat "$work.out")" = "$median" ] || fail "select with 144 MiB: exit code $code, or other keys"
too_much 2 144 select in.npy --at 50% -S 8G
# Elements that are gathered are, too.
limited 2 300 gather in.npy --by wanted-index.npy -o parts.npy --json
[ "$code" = 0 ] && cmp -s wanted.npy parts.npy || fail "gather with 300 MiB: exit code $code, or other elements"
json "r['readings'] > 1"
rm -f parts.npy
too_much 2 300 gather in.npy --by wanted-index.npy -o parts.npy -S 8G
# gen and check hold 64 MiB on each rank.
too_much 2 120 gen -n 64M --type u64 -o out.npy
too_much 2 120 check in.npy
finish
