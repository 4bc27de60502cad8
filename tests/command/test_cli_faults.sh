#!/bin/bash
# Every fault site of kernels/base/fault.h, on the first, a middle and the last of 3 ranks: the command ends on all of them
# with the agreed exit code and one line that names the rank; the output of an earlier run stays as it was, no temporary is
# left, nothing hangs. Sites at which nothing fails are tested elsewhere: `elsewhere` says where.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
need_faults

mapfile -t sites < <(sed -n 's/^ *X(FAULT_[A-Z0-9_]*, "\([^"]*\)").*/\1/p' "$SOURCE/kernels/base/fault.h")
# What `sort` by the host engine exits with; its kernels have no way to fail but a mistake in them.
declare -A exits=([alloc]=5 [read]=3 [short]=3 [write]=3 [commit]=3 [changed]=3 [mpi]=6 [kernel]=70 [copy]=70)
declare -A elsewhere=([term]=command/test_cli_faults.sh [kill]=command/test_cli_faults.sh [holdread]=command/test_stop.sh
    [holdsort]=command/test_stop.sh [holdwrite]=command/test_stop.sh [holddeal]=command/test_disk_deal.sh [direct]=files/test_block_io.c
    [pin]=kernels/test_transfer.c [left]=library/test_sort_codes.c [apart]=command/test_hdf5.sh [blocks163]=command/test_gpu_paths.sh
    [blocks96]=command/test_gpu_paths.sh [regions]=kernels/test_msd.cu)

# The list of sites, what this test knows of them, and the table of tests/README.md are the same.
lists_agree()
{
    local site listed
    listed=$(printf '%s\n' "${sites[@]}" | sort)
    [ "$listed" = "$(printf '%s\n' "${!exits[@]}" "${!elsewhere[@]}" | sort)" ] ||
        fail "this test knows other fault sites than kernels/base/fault.h"
    [ "$listed" = "$(sed -n '/^| site | what fails |$/,/^$/s/^| \([a-z0-9_, ]*\) |.*/\1/p' "$SOURCE/tests/README.md" |
        sed 1d | tr -s ', ' '\n' | sort)" ] || fail "the table of tests/README.md has other fault sites than kernels/base/fault.h"
    for site in "${!elsewhere[@]}"; do
        grep -q "$site" "$SOURCE/tests/${elsewhere[$site]}" || fail "${elsewhere[$site]} does not test fault site $site"
    done
}

# broken CODE SITES ARGUMENT...: the run fails at the first passage of each site on each rank.
broken()
{
    local expected=$1 words=$2 site rank
    shift 2
    for site in $words; do
        for rank in 0 1 2; do
            HYPERSORT_FAULT=$site:$rank refused 3 "$expected" "rank $rank on " "$@"
        done
    done
}

# broken_later CODE SITE RANK ARGUMENT...: the 2nd, 3rd, ... passage fails, until there is none and the run
# succeeds.
broken_later()
{
    local expected=$1 site=$2 rank=$3 nth old
    shift 3
    old=$(sha256sum out)
    for ((nth = 2; nth <= 40; nth++)); do
        HYPERSORT_FAULT=$site:$rank:$nth run 3 "$@"
        if [ "$code" = 0 ]; then
            break
        elif [ "$code" != "$expected" ] || ! grep -q "^hypersort: rank $rank on " "$work.err" ||
            [ "$(sha256sum out)" != "$old" ] || compgen -G '*.part' >/dev/null; then
            fail "$* with fault $site:$rank:$nth: exit code $code, not $expected, or files were left"
        fi
    done
    if [ "$code" != 0 ]; then
        fail "$* with fault $site:$rank: still broken after $nth passages"
    fi
    echo "$1 $site:$rank: $((nth - 1)) passages"
    rm out
    cp in.raw out
}

# Without the memory to measure paths with, info says so and all the rest.
info_without_memory()
{
    local nth said=0
    for ((nth = 1; nth <= 9; nth++)); do
        HYPERSORT_FAULT=alloc:1:$nth run 3 info --engine host
        if grep -q '^GB/s  *not measured: rank 1 on .* memory' "$work.out"; then
            said=$((said + 1))
            [ "$code" = 0 ] || fail "info without memory to measure paths: exit code $code"
            [ "$(grep -c '^rank [0-2] \|^paths ' "$work.out")" = 4 ] || fail "info without memory says too little"
            HYPERSORT_FAULT=alloc:1:$nth run 3 info --engine host --json
            grep -q '"path_speeds": null, "path_speeds_error": "rank 1 on .* memory' "$work.out" || fail "info --json without memory"
        fi
    done
    [ "$said" -gt 0 ] || fail "info found memory to measure paths with whatever failed"
}

# A rank that is killed outright ends the run; the others, told to stop, remove the temporary.
killed()
{
    local rank before i
    before=$(contents)
    for rank in 0 1 2; do
        HYPERSORT_FAULT=kill:$rank patient run 3 sort in.raw --type u64 -o out
        if [ "$code" = 0 ] || [ "$code" = 124 ]; then
            fail "rank $rank killed: exit code $code"
        fi
        for ((i = 0; i < 1200; i++)); do # mpirun may be gone before the last of its processes: a minute is the guard
            compgen -G '*.part' >/dev/null || break
            sleep 0.05
        done
        if [ "$(contents)" != "$before" ]; then
            fail "rank $rank killed: files were left or changed"
        fi
    done
}

# Shared memory that nobody has attached, of processes that are gone.
left_in_memory()
{
    local pid
    awk 'NR > 1 && $7 == 0 { print $5 }' /proc/sysvipc/shm | while read -r pid; do
        kill -0 "$pid" 2>/dev/null || echo "$pid"
    done
}

# The same while messages of partition are under way: each rank sends more than 30.
killed_sending()
{
    local rank nth before memory i
    before=$(contents)
    memory=$(left_in_memory)
    for rank in 0 2 4; do
        for nth in 1 13 30; do
            HYPERSORT_FAULT=kill:$rank:$nth patient run 5 sort in.raw --type u64 -o out --engine host --exchange partition --transport staged
            [ "$code" != 0 ] && [ "$code" != 124 ] || fail "rank $rank killed at message $nth: exit code $code"
            for ((i = 0; i < 120; i++)); do
                compgen -G '*.part' >/dev/null || break
                sleep 0.5
            done
            [ "$(contents)" = "$before" ] && [ "$(left_in_memory)" = "$memory" ] || fail "rank $rank killed at message $nth: files were left or changed"
            [ "$(grep -c '^hypersort: ' "$work.err")" -le 1 ] || fail "rank $rank killed at message $nth: more than one line"
        done
    done
    HYPERSORT_FAULT=kill:4:99 ok 5 sort in.raw --type u64 -o sent --engine host --exchange partition --transport staged
    rm -f sent
}

# SIGTERM just after the temporary was made, before anything else could be done about it.
terminated()
{
    local before command
    before=$(contents)
    for command in "gen -n 1000" "sort in.raw --type u64"; do
        # shellcheck disable=SC2086  # two words and more
        HYPERSORT_FAULT=term:0 patient run 3 $command -o out
        if [ "$code" = 0 ] || [ "$code" = 124 ] || [ "$(contents)" != "$before" ]; then
            fail "$command, told to stop when its output was made: exit code $code, or files were left"
        fi
    done
}

# First passages: of a sort, and of the other commands.
sort_broken()
{
    local site
    for site in $(drawn_half "${!exits[@]}"); do
        broken "${exits[$site]}" "$site" "${sort[@]}"
    done
    if "$HYPERSORT" info | grep -q '^ *GPU [0-9]'; then
        broken 6 "kernel copy" sort in.raw --type u64 -o out --engine cuda
        broken 5 alloc sort in.raw --type u64 -o out --engine cuda
    fi
}

others_broken()
{
    broken 3 "read short changed" check in.raw --type u64
    broken 5 alloc check in.raw --type u64
    broken 5 alloc gen -n 30000 -o out
    broken 3 "write commit" gen -n 30000 -o out
    broken 6 mpi info --engine host
}

# Later passages of a sort, one by one.
alloc_later() { broken_later 5 alloc 1 "${sort[@]}" --verify; }
kernel_later() { broken_later 70 kernel 2 "${sort[@]}" --verify; }
mpi_later() { broken_later 6 mpi 0 "${sort[@]}"; }
commit_later() { broken_later 3 commit 0 "${sort[@]}"; }

ok 1 gen -n 30000 -o in.raw
cp in.raw out
sort=(sort in.raw --type u64 -o out --engine host)
lists_agree
sort_broken
run_parts others_broken alloc_later kernel_later mpi_later commit_later info_without_memory killed killed_sending terminated
finish
