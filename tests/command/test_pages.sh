#!/bin/bash
# What is installed beside the command, made from its table of options: the man page, which groff formats without a warning, and
# the completions for bash and zsh. Each option of each command occurs in all three.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"

commands=(gen sort check gather select bench plan report info)

# The options of a command as --help lists them, long ones and letters.
options() { "$HYPERSORT" "$1" --help | sed -nE 's/^  (-.), (--[a-z-]+).*/\1 \2/p; s/^      (--[a-z-]+).*/\1/p' | tr ' ' '\n' | sort; }

good_pages()
{
    local kind
    for kind in man bash zsh; do
        ok 0 --generate $kind
        mv "$work.out" page.$kind
        SLURM_PROCID=0 PMIX_RANK=0 OMPI_MCA_pml=none ok 0 --generate $kind # a build may run in a job, without MPI
        cmp -s "$work.out" page.$kind || fail "--generate $kind starts MPI, or is another one each time"
    done
    refused 0 2 "'html' is not a page" --generate html
    refused 0 2 "'' is not a page" --generate
    "$HYPERSORT" help | grep -qe --generate && fail "help names --generate"
}

good_man()
{
    local command
    for command in "${commands[@]}"; do
        comm -23 <(options "$command") <(sed -n "/^\.SS $command$/,/^\.S[SH] /p" page.man | sed 's/\\-/-/g' |
            grep -E '^\\fB-' | sed -E 's/\\f[BIP]/ /g' | grep -oE -e '(^| )--?[a-zA-Z][a-z-]*' | tr -d ' ' | sort) >missing
        [ -s missing ] && fail "the man page lacks of $command: $(xargs <missing)"
    done
    if ! command -v man >/dev/null || ! command -v groff >/dev/null; then
        echo "not tested: the man page is well made (there is no man or groff)"
        return
    fi
    LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z page.man >formatted 2>"$work.err"
    [ -s "$work.err" ] && fail "the man page"
    LC_ALL=C.UTF-8 MANWIDTH=80 man -E UTF-8 -l page.man 2>/dev/null | grep -q '2^30' || fail "the man page has lost its 2^30"
}

# offered WORD...: what bash offers for the last one of these, which '=' are among as bash has them; to stdout, in one line, sorted.
offered()
{
    (
        # shellcheck source=/dev/null
        . ./page.bash
        COMP_WORDS=(hypersort "$@")
        COMP_CWORD=$#
        _hypersort
        printf '%s\n' "${COMPREPLY[@]}" | sort | xargs
    )
}

# offers EXPECTED WORD...
offers() { [ "$(offered "${@:2}")" = "$1" ] || fail "bash offers '$(offered "${@:2}")' for '${*:2}', not '$1'"; }

good_bash()
{
    local command
    bash -n page.bash || fail "bash cannot read it"
    touch one.npy two.raw
    mkdir folder
    offers "bench" b
    offers "--help --version" --
    offers "gather gen" help g
    offers "version" v
    offers "" help v
    for command in "${commands[@]}"; do
        [ "$(offered "$command" - | tr ' ' '\n')" = "$(options "$command" | sort -u)" ] ||
            fail "bash offers other options of $command: $(offered "$command" -)"
    done
    offers "auto cuda host" sort --engine ""
    offers "cuda" sort in.npy --engine c
    offers "cuda" sort in.npy --engine = c
    offers "auto off on" sort --progress =
    offers "off on" sort --progress = o
    offers "one.npy" sort --progress on # a file, as a value can only stand behind '='
    offers "reread" sort --verify = r
    offers "lognormal loguniform" gen --dist log
    offers "nan narrow: nearly:" gen --dist n
    offers "folder" sort in.npy --checkpoint ""
    offers "folder" sort in.npy -T f
    offers "one.npy" sort in.npy -o on
    offers "one.npy" gather in.npy --by on
    offers "two.raw" check in.npy --against t
    offers "two.raw" sort t
    offers "" sort in.npy --threads t
}

# zsh_given COMMAND: the words that _arguments, zsh's own, gets for a command, a line each.
zsh_given()
{
    zsh -fc '_arguments() { if [[ $1 = -C ]] { state=arguments } else { print -rl -- "$@" } }
        words=('"$1"'); . ./page.zsh'
}

# zsh_knows COMMAND WORD...: it gets these words, [] for what is said of an option.
zsh_knows()
{
    local word
    for word in "${@:2}"; do
        zsh_given "$1" | sed -E 's/\[([^][\\]|\\.)*\]/[]/' | grep -qxF -- "$word" || fail "zsh does not know of $1: $word"
    done
}

good_zsh()
{
    local command
    if ! command -v zsh >/dev/null; then
        echo "not tested: what zsh completes (there is no zsh)"
        return
    fi
    zsh -n page.zsh || fail "zsh cannot read it"
    for command in "${commands[@]}"; do
        zsh_given "$command" | sed -nE 's/^\*?(--?[a-zA-Z-]+[a-z]|-[a-zA-Z])[=+-]*\[.*/\1/p' | sort >given
        [ "$(cat given)" = "$(options "$command")" ] || fail "zsh knows other options of $command: $(xargs <given)"
    done
    # What follows an option: a star, where it may come again; =- where its value is written behind '=' alone, and may lack.
    zsh_knows sort '--quiet[]' '-q[]' '--engine=[]:value:(auto host cuda)' '--progress=-[]::value:(on auto off)' '--threads=[]:value: ' \
        '--output=[]:value:_files' '-o+[]:value:_files' '*--temporary-directory=[]:value:_files -/' '*-T+[]:value:_files -/' '*:file:_files'
    zsh_knows gather '--by=[]:value:_files'
    zsh_knows check '*--against=[]:value:_files'
    zsh_knows plan '*--ranks=[]:value: ' '*-n+[]:value: '
    zsh_given gen | grep -qE '^--dist=\[.*\]:value:\(uniform .* narrow: nearly: .* nan \)$' || fail "zsh does not know the distributions"
    zsh_given help | grep -qxF "1:command:(${commands[*]} )" || fail "zsh does not know what there is help for"
}

# Installed, they are where man and the shells look, and of use there.
good_install()
{
    local share page kind name
    share=$(dirname "$(dirname "$HYPERSORT")")/share
    for page in man:man/man1/hypersort.1.gz bash:bash-completion/completions/hypersort zsh:zsh/site-functions/_hypersort; do
        IFS=: read -r kind name <<<"$page"
        gzip -cdf "$share/$name" | cmp "page.$kind" - || fail "$share/$name is another page"
    done
    if command -v man >/dev/null; then
        MANPATH=$share/man LC_ALL=C.UTF-8 man -P cat hypersort 2>&1 | grep -q 'hypersort sort IN' || fail "man finds no page of hypersort"
    fi
    # As bash-completion loads it, by the command's name.
    bash --norc -c '. "$1/bash-completion/completions/hypersort" && complete -p hypersort' - "$share" | grep -q -- '-F _hypersort hypersort' ||
        fail "bash does not complete for hypersort"
    if command -v zsh >/dev/null; then
        zsh -fc 'fpath=("$1/zsh/site-functions" $fpath); autoload -U compinit; compinit -D; print $_comps[hypersort]' - "$share" |
            grep -qx _hypersort || fail "zsh does not complete for hypersort"
    fi
}

good_pages
good_man
good_bash
good_zsh
good_install
finish
