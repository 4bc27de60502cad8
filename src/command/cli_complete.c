/* What bash and zsh complete, from the table of options. */
#include <stdio.h>
#include <string.h>
#include "src/command/cli_rows.h"
#include "src/files/input.h"

static bool knows(int command, int row)
{
    return cli_rows[row].commands & 1u << command;
}

/* Print "this|that" with blanks. */
static void put_words(const char *words)
{
    for (; *words; words++)
        putchar(*words == '|' ? ' ' : *words);
}

static void put_distributions(void)
{
#define X(name, word, number, least, most, without, text) printf(word "%s", number[0] == ':' ? ": " : " ");
    INPUT_LIST(X)
#undef X
}

static void put_commands(void)
{
    for (int command = 0; command < CLI_COMMANDS; command++)
        printf("%s ", cli_commands[command].word);
}

enum takes { NOTHING, WORDS_OF_LIST, DISTRIBUTIONS, SOME_FILE, DIRECTORY };

/* What can be offered as the value of the option. */
static enum takes takes_of(const struct option_row *row)
{
    if (row->kind == WORD || row->kind == MAYBE_WORD)
        return WORDS_OF_LIST;
    if (row->kind == FLAG)
        return NOTHING;
    if (strcmp(row->value, "DIST") == 0)
        return DISTRIBUTIONS;
    if (strcmp(row->value, "DIR") == 0)
        return DIRECTORY;
    const bool is_file = strcmp(row->value, "FILE") == 0 || strcmp(row->value, "INDEX") == 0 ||
                         strcmp(row->value, "OTHER") == 0;
    return is_file ? SOME_FILE : NOTHING;
}

/* ---- bash ---------------------------------------------------------------------------------------------- */

/* What follows an option: a branch of the case for each option that takes a value. */
static void put_bash_values(int command)
{
    for (int row = 0; row < cli_row_count; row++) {
        const struct option_row *option = &cli_rows[row];
        if (!knows(command, row) || option->kind == FLAG)
            continue;
        printf("        %s:--%s%s", cli_commands[command].word, option->name,
               option->kind == MAYBE_WORD ? "=" : "");
        if (option->letter)
            printf(" | %s:-%c", cli_commands[command].word, option->letter);
        printf(") ");
        switch (takes_of(option)) {
        case WORDS_OF_LIST:
            printf("words='");
            put_words(option->value);
            printf("'");
            break;
        case DISTRIBUTIONS:
            printf("words='");
            put_distributions();
            printf("'");
            break;
        case SOME_FILE:
            printf("files=-f");
            break;
        case DIRECTORY:
            printf("files=-d");
            break;
        case NOTHING:
            printf("files=");
            break;
        }
        printf(" ;;\n");
    }
}

static void put_bash_options(int command)
{
    printf("        %s) words='", cli_commands[command].word);
    for (int row = 0; row < cli_row_count; row++) {
        if (!knows(command, row))
            continue;
        printf("--%s ", cli_rows[row].name);
        if (cli_rows[row].letter)
            printf("-%c ", cli_rows[row].letter);
    }
    printf("' ;;\n");
}

/* bash takes '=' as a word of its own. `option` gets the '=' back, so that words that may only stand behind '=' are offered there. */
static void print_bash(void)
{
    printf("# bash completion of hypersort, made by hypersort --generate bash\n"
           "_hypersort()\n{\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} "
           "command=${COMP_WORDS[1]}\n"
           "    local words= files=none\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" = 1 ] || [ \"$COMP_CWORD:$command\" = 2:help ]; then\n"
           "        words='");
    put_commands();
    printf("'\n"
           "        [ \"$COMP_CWORD\" = 1 ] && words+='help version --help --version'\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
           "        return\n"
           "    fi\n"
           "    if [ \"$current\" = = ]; then\n"
           "        current= option+==\n"
           "    elif [ \"$option\" = = ]; then\n"
           "        option=${COMP_WORDS[COMP_CWORD - 2]}=\n"
           "    fi\n"
           "    # --engine=cuda is --engine cuda, but for the options that take a value in no other way.\n"
           "    case $command:$option in\n");
    for (int command = 0; command < CLI_COMMANDS; command++)
        for (int row = 0; row < cli_row_count; row++)
            if (knows(command, row) && cli_rows[row].kind == MAYBE_WORD)
                printf("        %s:--%s=) ;;\n", cli_commands[command].word, cli_rows[row].name);
    printf("        *) option=${option%%=} ;;\n"
           "    esac\n"
           "    case $command:$option in\n");
    for (int command = 0; command < CLI_COMMANDS; command++)
        put_bash_values(command);
    printf("    esac\n"
           "    if [ \"$words\" ]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
           "    elif [ \"$files\" != none ]; then\n"
           "        [ \"$files\" ] && mapfile -t COMPREPLY < <(compgen \"$files\" -- \"$current\")\n"
           "    elif [[ $current = -* ]]; then\n"
           "        case $command in\n");
    for (int command = 0; command < CLI_COMMANDS; command++) {
        printf("    ");
        put_bash_options(command);
    }
    printf("        esac\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
           "    else\n"
           "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _hypersort hypersort\n");
}

/* ---- zsh ----------------------------------------------------------------------------------------------- */

/* Print the first line of a text, inside '...[ ]'. */
static void put_zsh_text(const char *text)
{
    for (; *text && *text != '\n'; text++)
        if (*text == '\'')
            printf("'\\''");
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
}

static void put_zsh_value(const struct option_row *option)
{
    if (option->kind == FLAG)
        return;
    printf("%s:value:", option->kind == MAYBE_WORD ? ":" : "");
    switch (takes_of(option)) {
    case WORDS_OF_LIST:
        printf("(");
        put_words(option->value);
        printf(")");
        break;
    case DISTRIBUTIONS:
        printf("(");
        put_distributions();
        printf(")");
        break;
    case SOME_FILE:
        printf("_files");
        break;
    case DIRECTORY:
        printf("_files -/");
        break;
    case NOTHING:
        printf(" ");
        break;
    }
}

/* Print a word of _arguments for each name of an option; an option that may come again has a star. */
static void put_zsh_option(const struct option_row *option)
{
    const char *star = option->kind == TEXTS || option->kind == RANKS ? "*" : "";
    const char *glue = option->kind == MAYBE_WORD ? "=-" : option->kind == FLAG ? "" : "=";
    printf("                '%s--%s%s[", star, option->name, glue);
    put_zsh_text(option->text);
    printf("]");
    put_zsh_value(option);
    printf("' \\\n");
    if (!option->letter)
        return;
    printf("                '%s-%c%s[", star, option->letter, option->kind == FLAG ? "" : "+");
    put_zsh_text(option->text);
    printf("]");
    put_zsh_value(option);
    printf("' \\\n");
}

static void print_zsh(void)
{
    printf("#compdef hypersort\n# zsh completion of hypersort, made by hypersort --generate zsh\n"
           "_hypersort()\n{\n"
           "    local context state state_descr line\n"
           "    typeset -A opt_args\n"
           "    _arguments -C '1:command:(");
    put_commands();
    printf("help version)' '*::argument:->arguments'\n"
           "    [[ $state = arguments ]] || return\n"
           "    case $words[1] in\n"
           "        help)\n            _arguments '1:command:(");
    put_commands();
    printf(")' ;;\n");
    for (int command = 0; command < CLI_COMMANDS; command++) {
        printf("        %s)\n            _arguments -s -S \\\n", cli_commands[command].word);
        for (int row = 0; row < cli_row_count; row++)
            if (knows(command, row))
                put_zsh_option(&cli_rows[row]);
        printf("                '*:file:_files' ;;\n");
    }
    printf("    esac\n}\n_hypersort \"$@\"\n");
}

void cli_print_page(enum cli_page page)
{
    if (page == CLI_MAN)
        cli_print_man();
    else if (page == CLI_BASH)
        print_bash();
    else
        print_zsh();
}
