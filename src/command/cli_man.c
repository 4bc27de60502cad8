/* The man page, from the tables that --help prints. */
#include <ctype.h>
#include <stdio.h>
#include "src/command/cli_rows.h"
#include "src/files/input.h"

/* Print `text` so that roff takes every character literally. `begins`: a line of the page begins with it. */
static void put_text(const char *text, bool begins)
{
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            printf("\\&");
        if (*text == '\\')
            printf("\\e");
        else if (*text == '^') // roff turns it and others like it into accents
            printf("\\(ha");
        else if (*text == '~')
            printf("\\(ti");
        else if (*text == '-')
            printf("\\-");
        else if (*text == '\'')
            printf("\\(aq");
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

/* Print a paragraph under a name. */
static void put_item(const char *name, const char *text)
{
    printf(".TP\n\\fB");
    put_text(name, false);
    printf("\\fP\n");
    put_text(text, true);
    printf("\n");
}

static void put_option(const struct option_row *row)
{
    printf(".TP\n");
    if (row->letter)
        printf("\\fB\\-%c\\fP, ", row->letter);
    printf("\\fB\\-\\-");
    put_text(row->name, false);
    printf("\\fP");
    if (row->value) {
        printf(row->kind == MAYBE_WORD ? "[=\\fI" : " \\fI");
        put_text(row->value, false);
        printf(row->kind == MAYBE_WORD ? "\\fP]" : "\\fP");
    }
    printf("\n");
    put_text(row->text, true);
    printf("\n");
}

static void put_usage(int command)
{
    printf("\\fBhypersort %s\\fP%s", cli_commands[command].word, cli_commands[command].operand[0] ? " " : "");
    put_text(cli_commands[command].operand, false);
    put_text(cli_commands[command].required, false);
    printf(" [OPTION ...]\n");
}

static void put_command(int command)
{
    const char *text = cli_commands[command].text, *notes = cli_notes[command];
    printf(".SS %s\n", cli_commands[command].word);
    put_usage(command);
    printf(".PP\n%c", toupper((unsigned char)text[0]));
    put_text(text + 1, false);
    printf(".\n");
    for (int group = 0; group < GROUPS; group++) {
        bool any = false;
        for (int row = 0; row < cli_row_count; row++) {
            if (!(cli_rows[row].commands & 1u << command) || cli_rows[row].group != (enum cli_group)group)
                continue;
            if (!any)
                printf(".PP\n%s:\n", cli_group_names[group]);
            any = true;
            put_option(&cli_rows[row]);
        }
    }
    printf(".PP\nFor example:\n.PP\n.nf\n  ");
    put_text(notes, false);
    printf(".fi\n");
}

static void put_lists(void)
{
    printf(".SH KEYS\nKEY: ");
    put_text(CLI_KEY_TEXT, false);
    printf(".\n");
#define X(name, text) put_item(name, text);
    CLI_KEY_LIST(X)
#undef X
    printf(".SH DISTRIBUTIONS\n");
#define X(name, word, number, least, most, without, text) put_item(word number, text);
    INPUT_LIST(X)
#undef X
}

static void put_ends(void)
{
    char code[8];
    printf(".SH EXIT STATUS\nThe same on every rank.\n");
#define X(name, exit_code, message)                      \
    snprintf(code, sizeof code, "%d", (int)(exit_code)); \
    put_item(code, message);
    HSORT_STATUS_LIST(X)
#undef X
    printf(".SH ENVIRONMENT\n");
#define X(name, text) put_item(name, text);
    CLI_ENVIRONMENT_LIST(X)
#undef X
    printf(".SH FILES\nBelow the prefix, such as /usr:\n");
    put_item("share/hypersort/jobs",
             "Slurm scripts to copy: for one node, several, arrays, sorts that are requeued");
    put_item("share/hypersort/examples", "programs in C, C++, Fortran and Python");
    put_item("share/doc/hypersort",
             "README.md; src/command/README.md: reports, stop and resume, troubleshooting; "
             "jobs/README.md: Slurm; src/examples/ten_minutes.md: to begin with");
    printf(".SH SEE ALSO\n.BR mpirun (1),\n.BR srun (1)\n");
}

void cli_print_man(void)
{
    printf(".\\\" Made by hypersort \\-\\-generate man\n.TH HYPERSORT 1 \"\" \"hypersort %d.%d.%d\" \"User "
           "Commands\"\n"
           ".nh\n.ad l\n",
           HSORT_VERSION_MAJOR, HSORT_VERSION_MINOR, HSORT_VERSION_PATCH);
    printf(".SH NAME\nhypersort \\- sort files of numbers over GPUs and hosts\n.SH SYNOPSIS\n");
    for (int command = 0; command < CLI_COMMANDS; command++) {
        if (command > 0)
            printf(".br\n");
        put_usage(command);
    }
    printf(".br\n\\fBhypersort help\\fP [COMMAND]\n.br\n\\fBhypersort version\\fP\n.SH DESCRIPTION\n");
    put_text(CLI_TEXT, false);
    printf("\nA run of several ranks is started by mpirun or srun:\n.PP\n.nf\n  mpirun \\-n 4 hypersort sort "
           "keys.npy "
           "\\-o sorted.npy\n.fi\n.PP\n");
    put_text(CLI_NUMBERS_TEXT, true);
    printf("\n.SH COMMANDS\n");
    for (int command = 0; command < CLI_COMMANDS; command++)
        put_command(command);
    put_lists();
    put_ends();
}
