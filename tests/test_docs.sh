#!/bin/bash
# The Markdown of the tree: every relative link leads to a file, and if it names a heading, to that heading. And the results: a page
# names each file of jobs/results, each file that a page names is there, and each file names the commit that it was measured at.
set -euo pipefail

cd "$SOURCE"
failures=0
fail()
{
    echo "failed: $1"
    failures=$((failures + 1))
}

mapfile -t pages < <(find . -name '*.md' -not -path './build*' -not -path './.*/*' | sort)
if [ ${#pages[@]} -lt 5 ]; then
    fail "the pages were not found in $SOURCE"
fi

# The anchors of a page's headings, as GitHub makes them.
anchors() { sed -n 's/^#\{1,6\} //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'; }

links=0
while IFS=: read -r page target; do
    links=$((links + 1))
    file=${target%%#*} anchor=
    if [[ $target = *#* ]]; then
        anchor=${target#*#}
    fi
    file=${file:+$(dirname "$page")/$file}
    file=${file:-$page}
    if [ ! -e "$file" ]; then
        fail "$page links to $target, which is not there"
    elif [ -n "$anchor" ] && ! anchors "$file" | grep -qxF -- "$anchor"; then
        fail "$page links to $target, but there is no such heading"
    fi
done < <(grep -oE '\]\([^)]+\)' "${pages[@]}" | sed 's/](\(.*\))$/\1/' | grep -vE ':(https?|mailto):')

results=0
for file in $(git ls-files jobs/results 2>/dev/null || find jobs/results -type f); do
    results=$((results + 1))
    if ! grep -qF "${file#jobs/}" "${pages[@]}"; then
        fail "$file is named by no page"
    fi
    if ! grep -qE '^# commit: +[0-9a-f]{7,}$' "$file"; then
        fail "$file does not say at which commit it was measured, or the tree differed from it"
    fi
done
while read -r file; do
    if [ ! -e "jobs/$file" ]; then
        fail "jobs/$file is named by a page, but is not there"
    fi
done < <(grep -ohE 'results/[a-z0-9-]+/[a-z_]+\.csv' "${pages[@]}" | sort -u)
echo "$links links, $results results, $failures failures"
[ "$failures" = 0 ] && [ "$links" -gt 0 ]
