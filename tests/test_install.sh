#!/bin/bash
# An installed hypersort works: the README's C example compiles against it alone, with the shared and with the static library,
# and sorts over two ranks. The static library shows no name but hsort_...: a program may have functions of all its other names. The
# pages lead to what is installed, and so does everything else that names a page.
set -euo pipefail
# shellcheck source=package/installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/package/installed.sh"

installed=$(find "$prefix/include" -type f -printf '%P\n' | sort | xargs)
[ "$installed" = "hypersort.h hypersort_types.h" ] ||
    fail "hypersort.h and hypersort_types.h are to be the only headers, but installed are: $installed"
"$prefix/bin/hypersort" info >/dev/null

# The links of all pages; and the pages that headers, the Python package, the job scripts and the man page name.
docs=$prefix/share/doc/hypersort links=0 named=0
while IFS=: read -r page target; do
    links=$((links + 1))
    target=${target%%#*}
    [ -e "$(dirname "$page")/$target" ] || fail "the installed ${page#"$prefix"/} leads to $target, which is not there"
done < <(grep -roE --include='*.md' '\]\([^)]+\)' "$prefix/share" | sed 's/](\(.*\))$/\1/' | grep -vE ':(#|https?:|mailto:)')
[ "$links" -gt 50 ] || fail "the pages lead to $links places only"
while read -r page; do
    named=$((named + 1))
    [ -e "$docs/$page" ] || fail "$page is named by what is installed, but is not in $docs"
done < <({
    find "$prefix/include" "$prefix/share/hypersort" -type f ! -name README.md -exec cat {} +
    find "$prefix/share" -name hypersort.1.gz -exec gunzip -c {} + | sed 's/\\-/-/g'
} | grep -owE '([a-z_]+/)*(README|[a-z_]+)\.md' | sort -u)
[ "$named" -gt 5 ] || fail "$named pages only are named"
if grep -rnE --include='*' '(^|[^a-z/])tests/' "$prefix/include" "$prefix/share/hypersort"; then fail "the tests are not installed"; fi

write_example "$work/example.c"

# A static library brings none of the libraries that it needs.
static_needs=("$(cache HWLOC_LIBRARY)" -fopenmp -lm)
cudart=$(cache CUDA_cudart_LIBRARY)
if [ -n "$cudart" ]; then
    static_needs+=("$cudart" "-Wl,-rpath,$(dirname "$cudart")" -lstdc++)
fi

names() { nm -g --defined-only "$1" | awk 'NF == 3 { print $3 }' | sort -u; }
shown=$(names "$libraries/libhypersort.a")
[ "$(grep -c '^hsort_' <<<"$shown")" -gt 10 ] || fail "the static library has no functions"
[ "$shown" = "$(grep '^hsort_' <<<"$shown")" ] || fail "the static library shows more than hsort_: $(grep -v '^hsort_' <<<"$shown" | xargs)"

# The names that the library's files share with each other, in a program: each ends it, if the library should come to call it.
inner=$(names "$BUILD/libhypersort_whole.a" | grep -E '^[a-z][a-z0-9_]*$' | grep -v '^hsort_')
[ "$(wc -l <<<"$inner")" -gt 100 ] || fail "the inner names of the library were not found"
awk '{ printf "void %s(void);\nvoid %s(void) { __builtin_trap(); }\n", $1, $1 }' <<<"$inner" >"$work/same_names.c"

compile() { "$mpicc" -std=c17 -Wall -Wextra -Werror -I"$prefix/include" "$work/example.c" "${@:2}" -o "$work/$1"; }
compile shared -L"$libraries" -lhypersort "-Wl,-rpath,$libraries"
# A program may have a macro X, such as the number of a coordinate: the headers neither define it anew nor take it away.
sed 's/^#include <hypersort.h>$/#define X 0\n&/; s/keys\[0\]/keys[X]/' "$work/example.c" >"$work/macro.c"
grep -q 'keys\[X\]' "$work/macro.c" || fail "the example has nothing that X could stand for"
"$mpicc" -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only "$work/macro.c"
compile static "$libraries/libhypersort.a" "${static_needs[@]}"
compile same_names "$work/same_names.c" -fno-builtin "$libraries/libhypersort.a" "${static_needs[@]}"
for kind in shared static same_names; do
    sorts "$kind" "$work/$kind"
done
echo "the example ran with the shared and with the static library, also beside $(wc -l <<<"$inner") functions of the library's inner names; \
of the pages $links links and $named names lead to what is installed"
