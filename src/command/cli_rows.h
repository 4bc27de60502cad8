/* The table of options, for the parser (cli_options.c) and for the help (cli_help.c). */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "src/command/cli.h"
#include "src/command/record_keys.h"

/* The kind of an option's value, and so the type of the field it goes to. Whole numbers are read by number_parse(), with units. */
enum value_kind {
    FLAG,     /* bool: no value */
    TEXT,     /* const char * */
    ONE_TEXT, /* the same; a second one, which may be meant as one more, is refused */
    TEXTS,    /* one more of a struct cli_texts */
    WORD,     /* int or enum: the place of the value in "this|that|other", which is also what --help shows */
    MAYBE_WORD, /* the same, or the first word if there is no value; the value is written behind '=' */
    NUMBER,     /* int, 0 or greater */
    AT_LEAST_1, /* int */
    SIZE,       /* size_t */
    COUNT,      /* int64_t */
    RANKS,      /* one more of cli_options.ranks */
    GIGA,       /* double, in units of 10^9; greater than 0 */
    MICRO,      /* double, seconds given in microseconds; greater than 0 */
    SEED        /* uint64_t */
};

/* Under which of its headings --help lists an option. X(name, heading) */
#define CLI_GROUP_LIST(X)     \
    X(COMMON, "Common")       \
    X(FILES, "Files")         \
    X(PLACEMENT, "Placement") \
    X(TUNING, "Tuning")       \
    X(RATES, "Rates, to replace the defaults")

enum cli_group {
#define X(name, heading) name,
    CLI_GROUP_LIST(X)
#undef X
        GROUPS
};

/* The environment variables that also decide how a command runs. X(name, what it says) */
#define CLI_ENVIRONMENT_LIST(X)                                                            \
    X("OMP_NUM_THREADS", "threads of each rank, unless --threads is given")                 \
    X("CUDA_VISIBLE_DEVICES", "the GPUs that a rank may take; launchers and Slurm set it") \
    X("MPICH_GPU_SUPPORT_ENABLED", "1: Cray MPICH and its relatives can take GPU memory")           \
    X("TERM", "dumb: --progress draws no bar")                                             \
    X("OMPI_..., PMI_..., PMIX_..., SLURM_...",                                            \
      "set by launchers; without them, help and usage errors start\n"                       \
      "no MPI")

/* How whole numbers may be written, for --help. */
#define CLI_NUMBERS_TEXT                                                                                    \
    "Counts, sizes, seeds and the numbers of distributions are whole: 1500, 1e6, 2^30, 1.5M. K, M, G and\n" \
    "T, as well as Ki or KiB and so on, in capitals or not, are powers of 1024."

/* What --key takes. X(name, text) */
#define CLI_KEY_TEXT "a key of a record; the first key decides first. At most 8 keys, of at most 16 bytes together"
#define CLI_KEY_LIST(X)                                                                         \
    X("NAME", "a field of a structured .npy file; sort and check also know a dataset of an\n"   \
              "HDF5 group, g/a of a group in it. a.b of a structure, a[2] of an array in\n"     \
              "it. u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 in both byte orders; M8 m8 (NaT first);\n"  \
              "b1, S1 to S16, V1 to V16, by their bytes")                                       \
    X("NUMBER", "a column of a .npy array of two dimensions, from 0: its rows are the records") \
    X("@OFFSET:TYPE", "of a raw record (--record):" RECORD_KEY_TYPES ",\n"                      \
                      "with > behind it big-endian; bytes1 to bytes16, compared as such")       \
    X("KEY:desc", "descending; NaNs stay last, and equal records in their order")

/* What the command is. */
#define CLI_TEXT "Sort files of numbers with all ranks of an MPI run, one GPU or some CPU cores each."

struct option_row {
    const char *name;
    char letter;       /* or 0 */
    unsigned commands; /* a bit for each command that knows the option */
    enum cli_group group;
    enum value_kind kind;
    const char *value; /* as --help shows it */
    size_t field;      /* offset in struct cli_options */
    const char *text;  /* one or more lines, which stand below each other */
};

struct command_words {
    const char *word, *operand, *required, *text;
};

extern const struct option_row cli_rows[];
extern const int cli_row_count;
extern const struct command_words cli_commands[CLI_COMMANDS];
extern const char *const cli_group_names[GROUPS];
extern const char
    *const cli_notes[CLI_COMMANDS]; /* examples, and behind an empty line more notes */

/* Print a page that the build installs, from the tables. */
void cli_print_page(enum cli_page page);

/* One of them: the man page. */
void cli_print_man(void);

/* Fail with HSORT_ARGUMENT and a text that ends with where to read on. */
__attribute__((format(printf, 2, 3))) hsort_status cli_complain(const struct cli_options *options,
                                                                const char *format, ...);

/* The place of `text` in "this|that|other", or -1. */
int cli_parse_word(const char *text, const char *words);

/* Put the value of one option into its field; NULL: the option has no value. Errors HSORT_ARGUMENT. */
hsort_status cli_store_value(const struct option_row *row, const char *value, struct cli_options *options);

/* Add a number of ranks to plan for. Errors HSORT_ARGUMENT. */
hsort_status cli_add_ranks(const char *text, struct cli_options *options);

/* Do the options go together? Also fills in what --format gensort stands for. Errors HSORT_ARGUMENT. */
hsort_status cli_check_together(struct cli_options *options);

/* May the files, by their names, be of a format that is known here? Errors HSORT_ARGUMENT. */
hsort_status cli_check_names(const struct cli_options *options);

#endif
