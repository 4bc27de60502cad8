# shellcheck shell=bash
# How a test script takes a part of what it could try; sourced.

# drawn_half WORD...: print half of the words, rounded up, in their order, if a drawn run (tests/run.sh) has set HYPERSORT_SEED. The seed,
# the script's name and the words decide which. Without a seed, or with ALL=1, print all words. It is called in $( ), so the script's
# RANDOM stays as it is.
drawn_half()
{
    local word left=$# wanted=$((($# + 1) / 2)) drawn_words=()
    if [ -z "${HYPERSORT_SEED:-}" ] || [ -n "${ALL:-}" ]; then
        echo "$*"
        return
    fi
    RANDOM=$(cksum <<<"$HYPERSORT_SEED ${0##*/} $*" | cut -d ' ' -f 1)
    for word in "$@"; do
        if ((RANDOM % left < wanted)); then
            drawn_words+=("$word")
            wanted=$((wanted - 1))
        fi
        left=$((left - 1))
    done
    echo "${drawn_words[*]}"
}
