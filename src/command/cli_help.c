/* --help, of the command and of each subcommand: printed from the tables that say what there is. */
#include "src/command/cli_rows.h"
#include "src/files/input.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *const cli_group_names[GROUPS] = {
#define X(name, heading) heading,
    CLI_GROUP_LIST(X)
#undef X
};

/* Continue a line that is `width` wide so far with a text; its lines stand in a column of their own. */
static void print_lines(int width, int column, const char *text)
{
    for (const char *line = text; *line; line += *line == '\n') {
        const int length = (int)strcspn(line, "\n");
        if (width >= column) // the text begins on the next line
            printf("\n  %*s", column, "");
        else
            printf("%*s", column - width, "");
        printf("%.*s", length, line);
        line += length;
        width = column;
    }
    printf("\n");
}

static void print_distributions(void)
{
    printf("\nDIST, the distribution:\n");
#define X(name, word, number, least, most, without, text) print_lines(printf("  " word number) - 2, 20, text);
    INPUT_LIST(X)
#undef X
}

static void print_exit_codes(void)
{
    enum { MOST = 127 };
    static const struct {
        int code;
        const char *message;
    } statuses[] = {
#define X(name, exit_code, message) {exit_code, message},
        HSORT_STATUS_LIST(X)
#undef X
    };
    printf("\nExit codes, the same on every rank:\n");
    for (int code = 0; code <= MOST; code++) {
        int found = 0;
        for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
            if (statuses[i].code != code)
                continue;
            if (found++ == 0)
                printf("  %-4d ", code);
            printf("%s%s", found > 1 ? ", " : "", statuses[i].message);
        }
        if (found > 0)
            printf("\n");
    }
}

static void print_environment(void)
{
    printf("\nEnvironment:\n");
#define X(name, text) print_lines(printf("  " name) - 2, 28, text);
    CLI_ENVIRONMENT_LIST(X)
#undef X
}

static void print_option(const struct option_row *row)
{
    char letter[8] = "    ";
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    const bool maybe = row->kind == MAYBE_WORD;
    const int width = printf("  %s--%s%s%s%s", letter, row->name,
                             maybe        ? "[="
                             : row->value ? " "
                                          : "",
                             row->value ? row->value : "", maybe ? "]" : "");
    print_lines(width - 2, 32, row->text);
}

static void print_group(enum cli_command command, enum cli_group group)
{
    bool any = false;
    for (int row = 0; row < cli_row_count; row++) {
        if (!(cli_rows[row].commands & 1u << command) || cli_rows[row].group != group)
            continue;
        if (!any)
            printf("\n%s:\n", cli_group_names[group]);
        any = true;
        print_option(&cli_rows[row]);
    }
}

static bool takes_option(enum cli_command command, const char *name)
{
    for (int row = 0; row < cli_row_count; row++)
        if (cli_rows[row].commands & 1u << command && strcmp(cli_rows[row].name, name) == 0)
            return true;
    return false;
}

static void print_key_words(void)
{
    printf("\nKEY, " CLI_KEY_TEXT ":\n");
#define X(name, text) print_lines(printf("  " name) - 2, 20, text);
    CLI_KEY_LIST(X)
#undef X
}

const char *const cli_notes[CLI_COMMANDS] = {
    [CLI_GEN] = "hypersort gen -n 64M --type f64 -o keys.npy\n"
                "  hypersort gen -n 1M --record 24 --key @0:u64 -o records.bin\n"
                "\nRecords have one KEY, @OFFSET:TYPE of numbers, which follow DIST; their other bytes are a hash of their\n"
                "positions. (With --format gensort they are those of the sort benchmarks, and have neither KEY nor DIST.)\n",
    [CLI_SORT] =
        "mpirun -n 4 hypersort sort keys.npy -o sorted.npy --verify\n"
        "  mpirun -n 8 hypersort sort keys.bin --type u32 -r -o sorted.bin\n"
        "  srun --mpi=pmix hypersort sort keys.npy -o sorted.npy --checkpoint kept\n"
        "  mpirun -n 4 hypersort sort events.npy -o out.npy --key run,event:desc\n"
        "  hypersort sort data.bin -o out.bin --record 100 --key @0:bytes10\n"
        "  mpirun -n 4 hypersort sort snap.h5:/PartType1 -o out.h5:/PartType1 --key ParticleIDs\n"
        "  hypersort sort keys.npy --index index.npy\n"
        "  hypersort sort keys.npy -o sorted.npy --values v.npy -O v.sorted.npy\n"
        "\nIN is a .npy file if its name says so, otherwise raw little-endian keys of the type in --type.\n"
        "Several files of one type are sorted as one array, in their order.\n"
        "FILE.h5:/PATH (also .hdf5, .hdf, .he5, .nc) is a group or a dataset of an HDF5 file. Of a group, and\n"
        "of groups in it, all datasets with as many rows as the dataset of the first KEY are sorted. They are\n"
        "written as they were stored, with their attributes and those of the groups. Other members, which\n"
        "the report names, and the rest of the file are not copied. What else the file of OUT has stays.\n"
        "Until the output is whole it is called FILE.hypersort-....part; if a killed run leaves such a file,\n"
        "remove it yourself. If FILE is a symbolic link, the file that it leads to is replaced; a link that\n"
        "leads to nothing is refused.\n",
    [CLI_CHECK] = "mpirun -n 4 hypersort check sorted.npy --against keys.npy\n"
                  "  hypersort check out.npy --key run,event:desc --against events.npy\n"
                  "  hypersort check out.h5:/PartType1 --key ParticleIDs --against snap.h5:/PartType1\n",
    [CLI_GATHER] = "mpirun -n 4 hypersort gather v.npy --by index.npy -o out.npy\n",
    [CLI_SELECT] =
        "mpirun -n 4 hypersort select keys.npy --at 0,50%,99.9%,-1\n"
        "  hypersort select events.npy --key energy:desc,run --at 0,1%\n"
        "\nPrints a line for each PLACE: the position, and the key that is there in ascending order, or with -r\n"
        "in descending order. For records it prints the fields of the key; bytes as text, with \\xNN for what\n"
        "is not printable, a blank or a backslash. All keys lie in engine memory, twice, or in host memory if\n"
        "there is no room.\n",
    [CLI_BENCH] =
        "hypersort bench -n 1M,256M --inputs uniform,zipf:26,mixtures:20 --seed 7\n"
        "  mpirun -n 2 hypersort bench -n 1G --memory device,pinned --form csv\n"
        "\nA time runs from when all ranks are there to the return of the slowest; each result is checked.\n"
        "A ratio is the time of the fastest other library over hypersort's: above 1 hypersort is faster.\n",
    [CLI_PLAN] = "hypersort plan keys.npy -n 8 64 512 --ranks-per-node 8\n"
                 "  hypersort plan keys.npy -n 2 4 --engine host -S 8G -T /scratch --disk /scratch\n"
                 "\nAfter the first IN, a word that begins with a digit is a number of ranks: write ./3.npy for "
                 "a file.\n",
    [CLI_REPORT] = "mpirun -n 4 hypersort sort keys.npy -o sorted.npy --json --trace trace.json >run.json\n"
                   "  hypersort report run.json --trace trace.json\n"
                   "\nThe page needs nothing from elsewhere: no network, no scripts.\n",
    [CLI_INFO] = "mpirun -n 4 hypersort info\n"
                 "  mpirun -n 4 hypersort info --disk /scratch\n",
};

static void print_command_help(enum cli_command command)
{
    printf("usage: [mpirun -n RANKS] hypersort %s%s%s%s [OPTION ...]\n", cli_commands[command].word,
           cli_commands[command].operand[0] ? " " : "", cli_commands[command].operand,
           cli_commands[command].required);
    printf("\n%c%s.\n", toupper((unsigned char)cli_commands[command].text[0]),
           cli_commands[command].text + 1);
    for (int group = 0; group < GROUPS; group++)
        print_group(command, (enum cli_group)group);
    printf("\n" CLI_NUMBERS_TEXT "\n");
    if (takes_option(command, "key"))
        print_key_words();
    if (command == CLI_GEN || command == CLI_BENCH)
        print_distributions();
    printf("\nFor example:\n  %s", cli_notes[command]);
    printf("\n'hypersort help' lists exit codes and the environment.\n");
}

void cli_print_help(const struct cli_options *options)
{
    if (options->page != CLI_NO_PAGE) {
        cli_print_page(options->page);
        return;
    }
    if (options->command < CLI_COMMANDS) {
        print_command_help(options->command);
        return;
    }
    printf("usage: [mpirun -n RANKS] hypersort COMMAND [OPTION ...]\n\n" CLI_TEXT "\n\nCommands:\n");
    for (int command = 0; command < CLI_COMMANDS; command++)
        printf("  %-8s %s\n", cli_commands[command].word, cli_commands[command].text);
    printf("  %-8s %s\n", "help",
           "this text, or 'help COMMAND': the options of a command, like COMMAND --help");
    printf("  %-8s %s\n", "version", "the version and the build");
    printf("\nFor example:\n"
           "  hypersort gen -n 64M --type f64 -o keys.npy\n"
           "  mpirun -n 4 hypersort sort keys.npy -o sorted.npy\n"
           "  mpirun -n 4 hypersort check sorted.npy --against keys.npy\n");
    print_exit_codes();
    print_environment();
}
