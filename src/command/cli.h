/* The command `hypersort`: its subcommands, its options, and what the subcommands share.
 *
 *     cli.c            main: MPI, one subcommand, the one error line, the agreed exit code
 *     cli_options.c    the table of options, and parsing; cli_help.c prints it, cli_digest.c compares ranks by it
 *     cli_values.c     numbers, words and types that options take
 *     cli_man.c        the man page from the same tables, cli_complete.c what bash and zsh complete
 *     cli_gen.c ...    one file per subcommand
 *     bench_plan.c     bench: what is to be measured; bench_report.c: its rows
 *     shares.c         sort: each rank's keys, from files to memory and back
 *     records.c        sort: records, values and indices, which lie in memory as a whole
 *     record_keys.c    --key: which fields of a record are its keys
 *     disk_sort.c      sort: what lies on disk while keys or records are sorted that memory does not hold
 *     stop.c           sort: SIGUSR1 and SIGTERM, and how all ranks hear of them
 *     checkpoint.c     sort: what a stopped run leaves for the next one
 *     report.c         results on stdout, as text and as JSON
 *     progress.c       progress on stderr
 *     launch.c         the ranks: started together, still together, each one's share
 *
 * Every subcommand is collective and returns the same status on every rank, with the error line in
 * comm->error. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "mpi/comm/comm.h"
#include "src/command/progress.h"
#include "src/files/file.h"
#include "hypersort.h"

/* X(name, word and function, operand, what must be given, what it does) */
#define CLI_COMMAND_LIST(X)                                                                              \
    X(CLI_GEN, gen, "", " -n COUNT -o FILE", "write a file of generated keys")                           \
    X(CLI_SORT, sort, "IN", " [IN ...] -o OUT", "sort files into another file")                          \
    X(CLI_CHECK, check, "FILE", " [FILE ...]", "check that a file is in order, and which keys it holds") \
    X(CLI_GATHER, gather, "FILE", " [FILE ...] --by INDEX -o OUT",                                       \
      "bring the elements of a file into the order of an index")                                         \
    X(CLI_SELECT, select, "FILE", " [FILE ...] --at PLACE[,PLACE ...]",                                  \
      "print keys by their positions in the sorted whole, without sorting the file")                     \
    X(CLI_BENCH, bench, "", "", "measure how fast generated keys are sorted")                            \
    X(CLI_PLAN, plan, "IN", " [IN ...] -n RANKS [RANKS ...]",                                            \
      "say what sorting a file would take on other numbers of ranks, without sorting it")                \
    X(CLI_REPORT, report, "RUN", "", "draw what sort or gather --json has printed as a page for browsers") \
    X(CLI_INFO, info, "", "", "say what the ranks run on, how they reach each other, and how fast")

enum { CLI_RANKS_MAX = 32, CLI_TEXTS_MAX = 1024 };

/* Numbers by which ranks compare their command lines: one for each option, and some more. */
enum { CLI_DIGESTS = 96, CLI_DIGESTS_BESIDE_OPTIONS = 2, CLI_DIGEST_NAME = 64 };

enum cli_command {
#define X(name, word, operand, required, text) name,
    CLI_COMMAND_LIST(X)
#undef X
        CLI_COMMANDS
};

/* The forms in which bench says what it has measured. X(name, word) */
#define BENCH_FORM_LIST(X)  \
    X(BENCH_TABLE, "table") \
    X(BENCH_CSV, "csv")     \
    X(BENCH_JSON, "json")   \
    X(BENCH_MARKDOWN, "markdown")

enum bench_form {
#define X(name, word) name,
    BENCH_FORM_LIST(X)
#undef X
};

/* What --generate PAGE prints, for the build to install. X(name, word) */
#define CLI_PAGE_LIST(X) X(CLI_MAN, "man") X(CLI_BASH, "bash") X(CLI_ZSH, "zsh")

enum cli_page {
    CLI_NO_PAGE,
#define X(name, word) name,
    CLI_PAGE_LIST(X)
#undef X
};

/* How sort checks keys. X(name, word) */
#define CLI_VERIFY_LIST(X)                                                                       \
    X(CLI_VERIFY_PASSING, "passing") /* as they were read, and as they are about to be written */ \
    X(CLI_VERIFY_REREAD, "reread")   /* and as the output then has them */

enum cli_verify {
#define X(name, word) name,
    CLI_VERIFY_LIST(X)
#undef X
};

/* The command line, parsed. Texts are borrowed from argv. */
struct cli_options {
    enum cli_command command; /* CLI_COMMANDS: none, with help or version */
    bool help, version;
    enum cli_page page;       /* with help: this in place of it */
    const char *const *files; /* [files_count] the operands: IN, FILE */
    int files_count;
    const char *output;
    const char *checkpoint;  /* sort: the directory, or NULL */
    const char *trace;       /* the file: report reads it, other commands write it; or NULL */
    const char *memory_size; /* sort: "8G", "50%", or NULL */
    struct cli_texts {
        const char *text[CLI_TEXTS_MAX];
        int count;
    } temporary;              /* sort: directories for runs; none: the output's */
    struct cli_texts against; /* check: the other files, as one */
    size_t temporary_limit; /* bytes in all temporary directories at most; 0: no limit */
    const char *disk;       /* plan, info: a directory whose disk is to be measured, or NULL */
    int runs;               /* sort: at least this many runs on disk; 0: memory decides */
    const char *key;        /* of records, or NULL: bare keys */
    size_t record_bytes;    /* of raw files of records; 0: not given */
    bool gensort;           /* the records are of the sort benchmarks: what --format gensort stands for */
    bool ascii, skewed;     /* gen: which kind of these */
    uint64_t first;         /* gen: the number of the first of these */
    const char *summary;    /* check: a file to write, or NULL */
    const char *index, *values, *values_output; /* sort: or NULL */
    bool unique;                                /* sort: keep one of each key; check: no key occurs twice */
    const char *counts;                         /* the file of how many there were of each key, or NULL */
    size_t value_bytes;                         /* of a raw file of values; 0: not given */
    const char *by;                             /* gather: the index */
    const char *at;                             /* select: the places, or NULL */
    const char *distribution;
    int64_t count; /* -1: not given */
    uint64_t seed;
    hsort_type type;
    bool type_given;
    bool given[CLI_DIGESTS]; /* by row of the table: the command line has this option */
    bool reverse, json, quiet, verbose, no_clobber;
    enum progress_choice progress;
    bool no_verify;
    enum cli_verify verify; /* unless no_verify */
    enum file_format format, output_format;
    hsort_choice direct_io;
    hsort_options sort;
    int ranks[CLI_RANKS_MAX]; /* plan: how many to plan for */
    int ranks_count;
    int nodes, ranks_per_node;                   /* 0: not given */
    double rates[HSORT_RATES];                   /* plan: 0: not given */
    double disk_rates[2];                        /* plan: of reads and of writes; 0: not given */
    const char *sizes, *types, *inputs, *memory; /* bench: lists of words; memory: or NULL */
    int repeats, warm_up;
    bool alone, keep_host_memory, overwrite_input;
    enum bench_form form;
};

/* Is the option of this name on the command line? Pure. */
bool cli_is_given(const struct cli_options *options, const char *name);

/* Bytes of a record or a value, at most: the library's limit. */
enum { CLI_RECORD_MOST = 65536 };

/* Keys are read, written and checked in chunks of this size. */
enum { CLI_CHUNK_BYTES = 64 << 20 };

/* Parse the command line. The words of argv change their order. Ranks may have been given different command lines:
 * launch_agree() compares them. Not collective.
 * Errors   HSORT_ARGUMENT: the text names the word that is wrong and where to read on. */
hsort_status cli_parse(int argc, char **argv, struct cli_options *options);

/* Find a type of keys by its short name, or by NumPy's or C's name. False: there is no such type. Not collective. */
bool cli_parse_type(const char *word, hsort_type *type);

/* Bytes of host memory that this rank is to take at most: the size that --memory gives, or this rank's share of the part, in percent, of
 * what its node allows: 80 % unless --memory gives another part. Not collective.
 * Errors   HSORT_ARGUMENT: --memory gives neither. */
hsort_status cli_memory(const struct comm *comm, const struct cli_options *options, size_t *bytes);

/* digest [CLI_DIGESTS] = numbers that are equal on two ranks that were given the same command; the numbers of
 * options that may differ are 0. name [CLI_DIGEST_NAME] = what the number at `place` stands for, such as "--seed".
 * Not collective. */
void cli_digest(const struct cli_options *options, uint64_t *digest);
const char *cli_digest_name(const struct cli_options *options, int place, char *name);

/* Print --help of the command, or of the subcommand that `options` names, on stdout. Not collective. */
void cli_print_help(const struct cli_options *options);

/* The subcommands. Each is collective. */
#define X(name, word, operand, required, text) \
    hsort_status cli_##word(struct comm *comm, const struct cli_options *options);
CLI_COMMAND_LIST(X)
#undef X

#endif
