# Print a page as it is installed. A link to a file that is installed as well leads there; of any other link only the words are left.
#
#     awk -v page=jobs/README.md -f installed_page.awk PLACES jobs/README.md
#
# PLACES has lines "FILE PLACE": a file of the tree, and where it is installed, seen from the folder of all pages. Below that folder the
# pages lie as in the tree.

# Return `path` without "." and "..".
function plain(path, parts, kept, count, i, n)
{
    count = split(path, parts, "/")
    for (i = 1; i <= count; i++)
        if (parts[i] == "..")
            n--
        else if (parts[i] != ".")
            kept[++n] = parts[i]
    path = kept[1]
    for (i = 2; i <= n; i++)
        path = path "/" kept[i]
    return path
}

# Return "[words](target)" as it is installed.
function installed_link(link, words, target, anchor, file)
{
    words = link
    sub(/\]\([^()]*\)$/, "", words)
    target = substr(link, length(words) + 3, length(link) - length(words) - 3)
    if (target ~ /^#/ || target ~ /^[a-z]+:/)
        return link
    anchor = target ~ /#/ ? substr(target, index(target, "#")) : ""
    sub(/#.*/, "", target)
    file = plain(folder target)
    if (!(file in places))
        return substr(words, 2)
    return places[file] == file ? link : words "](" up places[file] anchor ")"
}

BEGIN {
    folder = up = page
    sub(/[^\/]*$/, "", folder)
    up = folder
    gsub(/[^\/]+\//, "../", up)
}
NR == FNR { places[$1] = $2; next }
{ text = text $0 "\n" }
END {
    while (match(text, /\[[^][]*\]\([^()]*\)/)) {
        printf "%s%s", substr(text, 1, RSTART - 1), installed_link(substr(text, RSTART, RLENGTH))
        text = substr(text, RSTART + RLENGTH)
    }
    printf "%s", text
}
