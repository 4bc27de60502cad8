/* One table says what every option is called, what it takes, where its value goes, and what --help says. */
#include "src/command/cli_rows.h"
#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "src/files/nearest.h"

enum {
    GEN = 1 << CLI_GEN,
    SORT = 1 << CLI_SORT,
    CHECK = 1 << CLI_CHECK,
    GATHER = 1 << CLI_GATHER,
    SELECT = 1 << CLI_SELECT,
    BENCH = 1 << CLI_BENCH,
    PLAN = 1 << CLI_PLAN,
    REPORT = 1 << CLI_REPORT,
    INFO = 1 << CLI_INFO
};

#define FIELD(name) offsetof(struct cli_options, name)
/* "this|that|other" from a list of the library, in the order of its enum. */
#define OR_NAME(name, short_name) "|" short_name
#define OR_TYPE(name, short_name, bytes) "|" short_name
#define WORDS(list_of_words) (&list_of_words[1]) /* without the first bar */
_Static_assert(sizeof(hsort_type) == sizeof(int) && sizeof(hsort_engine) == sizeof(int) &&
                   sizeof(enum file_format) == sizeof(int),
               "a WORD is stored as an int");

const struct option_row cli_rows[] = {
    {"sizes", 'n', BENCH, COMMON, TEXT, "LIST", FIELD(sizes),
     "numbers of keys on all ranks together, such as 1K,2^20,256M (64M)"},
    {"types", 0, BENCH, COMMON, TEXT, "LIST", FIELD(types), "types of the keys, such as u32,f64 (u32,u64)"},
    {"inputs", 0, BENCH, COMMON, TEXT, "LIST", FIELD(inputs),
     "distributions from the list below (uniform); mixtures:N are the\n"
     "first N random mixtures, of which the slowest counts"},
    {"memory", 0, BENCH, COMMON, TEXT, "LIST", FIELD(memory),
     "where the keys lie: device, pinned, malloc; inplace: device, sorted\n"
     "in place (device if ranks have GPUs, else malloc)"},
    {"repeats", 0, BENCH, COMMON, AT_LEAST_1, "N", FIELD(repeats), "timed calls of each sort (7)"},
    {"warm-up", 0, BENCH, COMMON, NUMBER, "N", FIELD(warm_up), "calls before the timed ones (1)"},
    {"alone", 0, BENCH, COMMON, FLAG, NULL, FIELD(alone),
     "do not measure other libraries as well; they take turns with\n"
     "hypersort if one rank sorts device memory"},
    {"form", 0, BENCH, COMMON, WORD, WORDS(BENCH_FORM_LIST(OR_NAME)), FIELD(form), "form of the report"},
    {"count", 'n', GEN, COMMON, COUNT, "COUNT", FIELD(count), "number of keys to make"},
    {"ranks", 'n', PLAN, COMMON, RANKS, "RANKS", FIELD(ranks),
     "how many ranks to plan for; more numbers may follow the first IN"},
    {"nodes", 0, PLAN, COMMON, AT_LEAST_1, "N", FIELD(nodes), "number of machines that share the ranks"},
    {"ranks-per-node", 0, PLAN, COMMON, AT_LEAST_1, "N", FIELD(ranks_per_node), "ranks on each machine (8)"},
    {"output", 'o', GEN | SORT | GATHER, COMMON, ONE_TEXT, "FILE", FIELD(output),
     "the file to write; it replaces a file of that name once it is whole;\n"
     "with %r, which is the rank, in the name: a file per rank"},
    {"output", 'o', PLAN, COMMON, ONE_TEXT, "FILE", FIELD(output),
     "the output to plan for; nothing is written. With %r: a file per rank"},
    {"output", 'o', REPORT, COMMON, ONE_TEXT, "FILE", FIELD(output), "the page to write (RUN, ending in .html)"},
    {"no-clobber", 0, GEN | SORT | GATHER | REPORT, COMMON, FLAG, NULL, FIELD(no_clobber),
     "replace no file: it is an error if an output exists already"},
    {"by", 0, GATHER, COMMON, ONE_TEXT, "INDEX", FIELD(by),
     "the index, <i8 or <u8: element I of the output is element INDEX[I]"},
    {"at", 0, SELECT, COMMON, ONE_TEXT, "PLACE[,PLACE ...]", FIELD(at),
     "which keys of the sorted whole: a position from 0 on, or from the end\n"
     "(-1 is the last key); or a quantile, such as 99.9%: of N keys the one\n"
     "at position floor(0.999 * (N - 1)), always one of them (nearest rank)"},
    {"key", 0, GEN | SORT | CHECK | SELECT | PLAN, COMMON, ONE_TEXT, "KEY[,KEY ...]", FIELD(key),
     "the fields by which records are ordered; see KEY below"},
    {"record", 0, GEN | SORT | CHECK | GATHER | SELECT | PLAN, COMMON, SIZE, "BYTES", FIELD(record_bytes),
     "length of each record of a raw file"},
    {"ascii", 'a', GEN, COMMON, FLAG, NULL, FIELD(ascii), "--format gensort: lines of printable characters"},
    {"skew", 0, GEN, COMMON, FLAG, NULL, FIELD(skewed), "--format gensort: many keys begin alike"},
    {"first", 0, GEN, COMMON, SEED, "N", FIELD(first),
     "--format gensort: the number of the first record (0)"},
    {"summary", 0, CHECK, COMMON, ONE_TEXT, "FILE", FIELD(summary),
     "--format gensort: write what valsort -o writes; valsort -s reads it. If\n"
     "there are no records the file is empty. Not together with --against"},
    {"unique", 0, SORT | PLAN, COMMON, FLAG, NULL, FIELD(unique),
     "keep one of each key: of equal keys, or of records with equal keys,\n"
     "the first"},
    {"unique", 0, CHECK, COMMON, FLAG, NULL, FIELD(unique), "no key may occur twice"},
    {"counts", 0, SORT | CHECK, COMMON, ONE_TEXT, "FILE", FIELD(counts),
     "with --unique: sort writes how many there were of each key, <i8; check\n"
     "reads that, for bare keys, not for records, with --against OTHER, which\n"
     "must hold each key as often as FILE says"},
    {"index", 0, SORT | PLAN, COMMON, ONE_TEXT, "FILE", FIELD(index),
     "write where each key of the output was in the input: <i8, from 0"},
    {"values", 0, SORT | PLAN, COMMON, ONE_TEXT, "FILE", FIELD(values),
     "a second file of as many elements, up to 65536 bytes each, which move\n"
     "along with the keys"},
    {"values-output", 'O', SORT, COMMON, ONE_TEXT, "FILE", FIELD(values_output),
     "the file to write the values to"},
    {"value-bytes", 0, SORT | PLAN, COMMON, SIZE, "BYTES", FIELD(value_bytes), "length of each value of a raw file"},
    {"type", 0, GEN, COMMON, WORD, WORDS(HSORT_TYPE_LIST(OR_TYPE)), FIELD(type),
     "type of the keys; NumPy's and C's names, too, if they mean one type\n"
     "(uint32, <u4, double; not int); u64 unless given"},
    {"type", 0, SORT | CHECK | SELECT | PLAN, COMMON, WORD, WORDS(HSORT_TYPE_LIST(OR_TYPE)), FIELD(type),
     "type of the keys; NumPy's and C's names, too, if they mean one type\n"
     "(uint32, <u4, double; not int); .npy files name it themselves"},
    {"dist", 0, GEN, COMMON, TEXT, "DIST", FIELD(distribution),
     "distribution from the list below (uniform)"},
    {"seed", 's', GEN, COMMON, SEED, "SEED", FIELD(seed), "seed of the random numbers (1)"},
    {"seed", 's', BENCH, COMMON, SEED, "SEED", FIELD(seed),
     "seed of the inputs (0: a new one); the report names it"},
    {"reverse", 'r', SORT | CHECK | SELECT, COMMON, FLAG, NULL, FIELD(reverse),
     "descending order of bare keys; NaNs stay last"},
    {"verify", 0, SORT | GATHER, COMMON, MAYBE_WORD, WORDS(CLI_VERIFY_LIST(OR_NAME)), FIELD(verify),
     "check order, count and keys, or what was gathered, before the output\n"
     "appears: as they pass (the default), or also as the output is read back"},
    {"no-verify", 0, SORT | GATHER, COMMON, FLAG, NULL, FIELD(no_verify), "do not check them"},
    {"against", 0, CHECK, COMMON, TEXTS, "OTHER", FIELD(against),
     "a file that must hold the same keys, in any order; with more than one\n"
     "--against, all of them together"},
    {"json", 0, SORT | CHECK | GATHER | SELECT | PLAN | INFO, COMMON, FLAG, NULL, FIELD(json),
     "print the report as one JSON object"},
    {"verbose", 'v', INFO, COMMON, FLAG, NULL, FIELD(verbose),
     "print tables of all pairs of ranks, even of more than 8"},
    {"quiet", 'q', GEN | SORT | CHECK | GATHER | REPORT, COMMON, FLAG, NULL, FIELD(quiet),
     "print no report: the exit code tells, and a failure prints its line"},
    {"progress", 0, GEN | SORT | CHECK | GATHER | SELECT, COMMON, MAYBE_WORD,
     WORDS(PROGRESS_CHOICE_LIST(OR_NAME)), FIELD(progress),
     "say on stderr how far the work is. on: a bar if rank 0's stderr is a\n"
     "terminal, which it is not under mpirun, otherwise lines; auto, unless\n"
     "--progress is given: a bar or nothing"},
    {"help", 'h', GEN | SORT | CHECK | GATHER | SELECT | BENCH | PLAN | REPORT | INFO, COMMON, FLAG, NULL, FIELD(help),
     "this text"},
    {"version", 'V', GEN | SORT | CHECK | GATHER | SELECT | BENCH | PLAN | REPORT | INFO, COMMON, FLAG, NULL,
     FIELD(version), "version and build"},

    {"format", 0, GEN | SORT | CHECK | GATHER | SELECT | PLAN, FILES, WORD, WORDS(FILE_FORMAT_LIST(OR_NAME)),
     FIELD(format),
     "format of the file (auto: npy if its name ends in .npy); gensort:\n"
     "records of 100 bytes with keys of 10, as in the sort benchmarks"},
    {"output-format", 0, SORT | GATHER, FILES, WORD, WORDS(FILE_FORMAT_LIST(OR_NAME)), FIELD(output_format),
     "format of the file to write (auto)"},
    {"direct-io", 0, GEN | SORT | CHECK | GATHER | SELECT | PLAN | INFO, FILES, WORD, WORDS(HSORT_CHOICE_LIST(OR_NAME)),
     FIELD(direct_io),
     "move keys between disk and memory past the page cache (auto: if the\n"
     "file system can, and an input is not in the cache already)"},
    {"checkpoint", 0, SORT, FILES, ONE_TEXT, "DIR", FIELD(checkpoint),
     "on SIGUSR1 or SIGTERM stop with exit code 75, and keep in DIR what\n"
     "the same command, started again, goes on from; only a sort of keys\n"
     "alone to one file then stays in memory, the others go by way of the\n"
     "disk"},
    {"trace", 0, GEN | SORT | CHECK | GATHER | SELECT, FILES, ONE_TEXT, "FILE", FIELD(trace),
     "write what each rank did when, for ui.perfetto.dev, even if the run\n"
     "fails; 'hypersort report' draws it beside the report of sort or gather"},
    {"trace", 0, REPORT, COMMON, ONE_TEXT, "FILE", FIELD(trace), "what --trace FILE wrote in the same run: draws a timeline"},
    {"memory", 'S', SORT | PLAN, FILES, TEXT, "SIZE|N%", FIELD(memory_size),
     "host memory that a rank may take, or the part of what its node allows\n"
     "that all its ranks may take together (80%); sorts that need more go\n"
     "by way of the disk, datasets of HDF5 by parts"},
    {"memory", 'S', SELECT, FILES, TEXT, "SIZE|N%", FIELD(memory_size),
     "host memory that a rank may take, or the part of what its node allows\n"
     "that all its ranks may take together (80%); if keys need more, the\n"
     "file is read several times"},
    {"memory", 'S', GATHER, FILES, TEXT, "SIZE|N%", FIELD(memory_size),
     "host memory that a rank may take, or the part of what its node allows\n"
     "that all its ranks may take together (80%); if elements and index need\n"
     "more, the elements are read several times"},
    {"temporary-directory", 'T', SORT | PLAN, FILES, TEXTS, "DIR", FIELD(temporary),
     "where the runs of such sorts lie (the directory of OUT); with more than\n"
     "one -T the directories take turns. All ranks must see them"},
    {"temp-limit", 0, SORT, FILES, SIZE, "SIZE", FIELD(temporary_limit),
     "bytes to take in these directories at most"},
    {"disk", 0, PLAN | INFO, FILES, TEXT, "DIR", FIELD(disk),
     "measure how fast all ranks at once read and write the disk of DIR, with\n"
     "a file of 1 GiB at most, which is gone afterwards"},

    {"engine", 0, SORT | GATHER | SELECT | BENCH | INFO, PLACEMENT, WORD,
     WORDS(HSORT_ENGINE_LIST(OR_NAME)), FIELD(sort.engine),
     "what sorts on a rank (auto: cuda if every rank has a GPU)"},
    {"engine", 0, PLAN, PLACEMENT, WORD, WORDS(HSORT_ENGINE_LIST(OR_NAME)), FIELD(sort.engine),
     "what is to sort on a rank (auto: cuda, even without a GPU here)"},
    {"threads", 0, GEN | SORT | CHECK | GATHER | SELECT | BENCH | PLAN | INFO, PLACEMENT, NUMBER, "N",
     FIELD(sort.threads), "threads of each rank (0: the cores it is bound to)"},
    {"bind", 0, SORT | GATHER | SELECT | BENCH | PLAN | INFO, PLACEMENT, WORD,
     WORDS(HSORT_BINDING_LIST(OR_NAME)), FIELD(sort.binding), "bind ranks to cores if the launcher has not"},
    {"device-memory", 0, SORT | GATHER | SELECT | BENCH | PLAN, PLACEMENT, SIZE, "SIZE",
     FIELD(sort.device_memory_limit),
     "bytes that a rank may take on its GPU, or with the host engine; keys\n"
     "that do not fit are sorted in two passes, through host memory"},
    {"keep-host-memory", 0, BENCH, PLACEMENT, FLAG, NULL, FIELD(keep_host_memory),
     "keep the memory of two passes from call to call"},
    {"overwrite-input", 0, BENCH, PLACEMENT, FLAG, NULL, FIELD(overwrite_input),
     "a sort may leave anything in its input, and two passes take no host\n"
     "memory then; without other libraries"},

    {"exchange", 0, SORT | BENCH, TUNING, WORD, WORDS(HSORT_EXCHANGE_LIST(OR_NAME)), FIELD(sort.exchange),
     "how keys move between ranks (auto: depends on ranks, keys and links)"},
    {"transport", 0, SORT | GATHER | BENCH | PLAN | INFO, TUNING, WORD, WORDS(HSORT_TRANSPORT_LIST(OR_NAME)),
     FIELD(sort.transport), "how bytes go between two ranks"},
    {"chunk", 0, SORT | GATHER | BENCH, TUNING, SIZE, "SIZE", FIELD(sort.chunk_bytes),
     "bytes of one message at most; in two passes more, if there would be too many"},
    {"runs", 0, SORT | PLAN, TUNING, AT_LEAST_1, "N", FIELD(runs),
     "sort by way of the disk, in N runs or more, whatever memory there is"},
    {"trace-spans", 0, GEN | SORT | CHECK | GATHER | SELECT, TUNING, COUNT, "N", FIELD(sort.trace_spans),
     "how many spans of time --trace keeps of each rank (64K)"},
    {"local", 0, SORT | SELECT | BENCH, TUNING, NUMBER, "RUNG", FIELD(sort.local_rung),
     "rung of the local sort (chosen by size and type)"},
    {"peer-memory", 0, SORT | GATHER | BENCH | INFO, TUNING, WORD, WORDS(HSORT_CHOICE_LIST(OR_NAME)),
     FIELD(sort.peer_memory),
     "ranks of a node map each other's GPU memory: transport ipc\n(auto: where it works)"},
    {"shared-memory", 0, SORT | GATHER | BENCH | INFO, TUNING, WORD, WORDS(HSORT_CHOICE_LIST(OR_NAME)),
     FIELD(sort.shared_memory), "transport staged uses shared memory inside a node, ipc takes turns by it,\nand two passes read other ranks' runs (auto: where it works)"},
    {"mpi-device-pointers", 0, SORT | GATHER | BENCH | INFO, TUNING, WORD, WORDS(HSORT_CHOICE_LIST(OR_NAME)),
     FIELD(sort.mpi_device_pointers), "hand GPU memory to MPI\n(auto: if MPI says that it takes it, and a try works)"},

    {"sort-gkeys", 0, PLAN, RATES, GIGA, "RATE", FIELD(rates[HSORT_RATE_SORT_4]),
     "local sort of a rank, 10^9 keys of the type per second"},
    {"merge-gbs", 0, PLAN, RATES, GIGA, "RATE", FIELD(rates[HSORT_RATE_MERGE]),
     "merge of a rank, GB/s read plus written"},
    {"copy-gbs", 0, PLAN, RATES, GIGA, "RATE", FIELD(rates[HSORT_RATE_HOST_COPY]),
     "between host memory and GPU, GB/s each way"},
    {"step-us", 0, PLAN, RATES, MICRO, "TIME", FIELD(rates[HSORT_RATE_STEP]),
     "a question to a GPU, and its answer"},
    {"message-us", 0, PLAN, RATES, MICRO, "TIME", FIELD(rates[HSORT_RATE_MESSAGE]),
     "a short message inside a node"},
    {"link-us", 0, PLAN, RATES, MICRO, "TIME", FIELD(rates[HSORT_RATE_LINK_LATENCY]),
     "latency of a transfer inside a node"},
    {"link-gbs", 0, PLAN, RATES, GIGA, "RATE", FIELD(rates[HSORT_RATE_LINK]),
     "from a rank to another one of its node, GB/s each way"},
    {"latency-us", 0, PLAN, RATES, MICRO, "TIME", FIELD(rates[HSORT_RATE_NETWORK_LATENCY]),
     "a message between nodes"},
    {"network-gbs", 0, PLAN, RATES, GIGA, "RATE", FIELD(rates[HSORT_RATE_NETWORK]),
     "from a rank to one of another node, GB/s each way"},
    {"disk-read-gbs", 0, PLAN, RATES, GIGA, "RATE", FIELD(disk_rates[0]),
     "all ranks together from the disk, GB/s (as --disk DIR measures it)"},
    {"disk-write-gbs", 0, PLAN, RATES, GIGA, "RATE", FIELD(disk_rates[1]), "the same to the disk"},
};
enum { ROWS = sizeof cli_rows / sizeof cli_rows[0], LONG_ONLY = 256 };
const int cli_row_count = ROWS;
_Static_assert(CLI_DIGESTS_BESIDE_OPTIONS + ROWS <= CLI_DIGESTS, "a digest for each option");

const struct command_words cli_commands[CLI_COMMANDS] = {
#define X(name, word, operand, required, text) {#word, operand, required, text},
    CLI_COMMAND_LIST(X)
#undef X
};

hsort_status cli_complain(const struct cli_options *options, const char *format, ...)
{
    char text[STATUS_TEXT_BYTES - 64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const bool known = options->command < CLI_COMMANDS;
    return status_fail(HSORT_ARGUMENT, "%s; see 'hypersort %s%s--help'", text,
                       known ? cli_commands[options->command].word : "", known ? " " : "");
}

/* ---- The command line ---------------------------------------------------------------------------------- */

/* Make the tables that getopt_long() wants, with the options of `command`. Long options return LONG_ONLY + row. */
static void make_getopt_tables(enum cli_command command, struct option *longs, char *letters)
{
    *letters++ = '-'; // options may follow operands, also where POSIXLY_CORRECT is set
    *letters++ = ':'; // tell a missing value from an unknown option
    for (int row = 0; row < ROWS; row++) {
        if (!(cli_rows[row].commands & 1u << command))
            continue;
        const enum value_kind kind = cli_rows[row].kind;
        *longs++ = (struct option){cli_rows[row].name,
                                   kind == FLAG         ? no_argument
                                   : kind == MAYBE_WORD ? optional_argument
                                                        : required_argument,
                                   NULL, LONG_ONLY + row};
        if (cli_rows[row].letter) {
            *letters++ = cli_rows[row].letter;
            if (cli_rows[row].kind != FLAG)
                *letters++ = ':';
        }
    }
    *longs = (struct option){0};
    *letters = '\0';
}

static const struct option_row *find_row(enum cli_command command, int found)
{
    for (int row = 0; row < ROWS; row++)
        if (cli_rows[row].commands & 1u << command &&
            (found == LONG_ONLY + row || (found < LONG_ONLY && found == cli_rows[row].letter)))
            return &cli_rows[row];
    return NULL;
}

/* Return a hint at the long option of the command that `word` may have been meant to be, or "". */
static const char *option_hint(const struct cli_options *options, const char *word, char *hint)
{
    struct nearest nearest;
    hint[0] = '\0';
    if (strncmp(word, "--", 2) != 0)
        return hint;
    if (strncmp(word, "--desc", 6) == 0 && find_row(options->command, 'r'))
        return ": -r is for bare keys, KEY:desc for records";
    nearest_begin(&nearest, word + 2, strcspn(word + 2, "="));
    for (int row = 0; row < ROWS; row++)
        if (cli_rows[row].commands & 1u << options->command)
            nearest_offer(&nearest, cli_rows[row].name, strlen(cli_rows[row].name));
    return nearest_hint(&nearest, "--", hint);
}

/* Return a hint at what the letter of an unknown option may have been meant to be, or "": the only long option of the command that
 * begins with it. */
static const char *letter_hint(const struct cli_options *options, char letter, char *hint)
{
    const char *name = NULL;
    int names = 0;
    hint[0] = '\0';
    if (letter == 'n')
        return ": mpirun takes the number of ranks, before 'hypersort'";
    for (int row = 0; row < ROWS; row++) {
        if (cli_rows[row].commands & 1u << options->command && cli_rows[row].name[0] == letter) {
            name = cli_rows[row].name;
            names++;
        }
    }
    if (names == 1)
        snprintf(hint, NEAREST_HINT, " (did you mean --%s?)", name);
    return hint;
}

/* Complain if several long options begin with `word`. */
static hsort_status refuse_ambiguous(const struct cli_options *options, const char *word)
{
    const char *first = NULL;
    const size_t length = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    for (int row = 0; row < ROWS && length > 0; row++) {
        if (!(cli_rows[row].commands & 1u << options->command) ||
            strncmp(cli_rows[row].name, word + 2, length) != 0)
            continue;
        if (first)
            return cli_complain(options, "option '%.128s' can be --%s or --%s", word, first, cli_rows[row].name);
        first = cli_rows[row].name;
    }
    return HSORT_OK;
}

/* getopt_long() returned '?' or ':': say what is wrong with which word. */
static hsort_status fail_option(const struct cli_options *options, int found, const char *word)
{
    char hint[NEAREST_HINT];
    const struct option_row *row = optopt ? find_row(options->command, optopt) : NULL;
    if (found == ':' && row)
        return cli_complain(options, "option '%.128s' lacks its %s", word, row->value);
    if (row)
        return cli_complain(options, "option '%.128s': --%s takes no value", word, row->name);
    if (optopt)
        return cli_complain(options, "unknown option '-%c'%s", optopt,
                            letter_hint(options, (char)optopt, hint));
    TRY(refuse_ambiguous(options, word));
    return cli_complain(options, "unknown option '%.128s'%s", word, option_hint(options, word, hint));
}

bool cli_is_given(const struct cli_options *options, const char *name)
{
    for (int row = 0; row < ROWS; row++)
        if (options->given[row] && strcmp(cli_rows[row].name, name) == 0)
            return true;
    return false;
}

/* Is this the value of the option before it, which takes a value only behind '='? A file of that name is ./on and so on. */
static hsort_status check_not_value(const struct cli_options *options, const struct option_row *before,
                                    const char *operand)
{
    if (!before || before->kind != MAYBE_WORD || cli_parse_word(operand, before->value) < 0)
        return HSORT_OK;
    return cli_complain(options, "'%s' behind --%s: write --%s=%s, or ./%s for a file of that name", operand,
                        before->name, before->name, operand, operand);
}

/* Take the value of an option. Behind a letter, = would be the beginning of a name. */
static hsort_status take_option_value(const struct option_row *row, bool by_letter, const char *value,
                                      struct cli_options *options)
{
    const bool is_text = row->kind == TEXT || row->kind == ONE_TEXT || row->kind == TEXTS;
    if (by_letter && is_text && value[0] == '=')
        return cli_complain(options, "-%c%.128s: write -%c %.128s or --%s%.128s", row->letter, value,
                            row->letter, value + 1, row->name, value);
    TRY(cli_store_value(row, value, options));
    options->given[row - cli_rows] = true;
    return HSORT_OK;
}

/* Take the options. The operands are moved to the front of argv, behind the command's name; *operands is their number. */
static hsort_status parse_options(int argc, char **argv, struct cli_options *options, int *operands)
{
    enum { OPERAND = 1 };
    struct option longs[ROWS + 1];
    char letters[2 * ROWS + 3];
    make_getopt_tables(options->command, longs, letters);
    *operands = 0;
    opterr = 0; // every rank would print
    optind = 0; // glibc: start anew
    int found;
    const struct option_row *bare = NULL; // the option before the next word, if it had no value
    while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (found == '?' || found == ':')
            return fail_option(options, found, argv[optind - 1]);
        if (found == OPERAND) {
            TRY(check_not_value(options, bare, optarg));
            bare = NULL;
            argv[1 + (*operands)++] = optarg;
            continue;
        }
        const struct option_row *row = find_row(options->command, found);
        bare = optarg ? NULL : row;
        TRY(take_option_value(row, found < LONG_ONLY, optarg, options));
    }
    while (optind < argc) // behind "--"
        argv[1 + (*operands)++] = argv[optind++];
    return HSORT_OK;
}

/* Take operands [argc], which are files. With plan, operands behind the first one that begin with a digit are further numbers of
 * ranks (a file of such a name is ./3.npy). The files are moved to the front. */
static hsort_status take_files(int argc, char **argv, struct cli_options *options)
{
    int files = 0;
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] == '\0')
            return cli_complain(options, "'' cannot be %s", cli_commands[options->command].operand);
        if (options->command == CLI_PLAN && i > 0 && isdigit((unsigned char)argv[i][0]))
            TRY(cli_add_ranks(argv[i], options));
        else
            argv[files++] = argv[i];
    }
    options->files = (const char *const *)argv;
    options->files_count = files;
    return HSORT_OK;
}

/* Take what is left of the command line after its options, and check what must not be missing from it. */
static hsort_status take_operands(int argc, char **argv, struct cli_options *options)
{
    const char *operand = cli_commands[options->command].operand;
    if (operand[0] == '\0' && argc > 0)
        return cli_complain(options, "unexpected argument '%.128s'", argv[0]);
    if (operand[0] != '\0' && argc == 0)
        return cli_complain(options, "%s is missing", operand);
    TRY(take_files(argc, argv, options));
    if (options->command == CLI_REPORT && options->files_count > 1)
        return cli_complain(options, "unexpected argument '%.128s'", options->files[1]);
    if (options->command == CLI_GEN && options->count < 0)
        return cli_complain(options, "-n COUNT is missing");
    if (options->command == CLI_PLAN && options->ranks_count == 0)
        return cli_complain(options, "-n RANKS is missing");
    if (options->command == CLI_SELECT && !options->at)
        return cli_complain(options, "--at PLACE is missing");
    if (options->nodes > 0 && options->ranks_per_node > 0)
        return cli_complain(options, "--nodes and --ranks-per-node: give only one of them");
    TRY(cli_check_together(options));
    const bool beside = options->index || options->values;
    const enum cli_command command = options->command;
    if ((command == CLI_GEN || command == CLI_SORT || command == CLI_GATHER) && !options->output && !beside)
        return cli_complain(options, "-o FILE is missing");
    return HSORT_OK;
}

/* Take the command of that name. */
static hsort_status take_command(const char *word, struct cli_options *options)
{
    struct nearest nearest;
    char hint[NEAREST_HINT];
    int command = 0;
    while (command < CLI_COMMANDS && strcmp(word, cli_commands[command].word) != 0)
        command++;
    options->command = (enum cli_command)command;
    if (command < CLI_COMMANDS)
        return HSORT_OK;
    nearest_begin(&nearest, word, strlen(word));
    for (command = 0; command < CLI_COMMANDS; command++)
        nearest_offer(&nearest, cli_commands[command].word, strlen(cli_commands[command].word));
    nearest_offer(&nearest, "help", 4);
    nearest_offer(&nearest, "version", 7);
    return cli_complain(options, "'%.128s' is not a command%s%s", word, nearest_hint(&nearest, "", hint),
                        word[0] == '-' ? "; options stand behind the command" : "");
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* Take --generate PAGE, which no help names, because it is for the build. */
static hsort_status take_page(const char *word, struct cli_options *options)
{
#define X(name, page_word)            \
    if (strcmp(word, page_word) == 0) \
        options->page = name;
    CLI_PAGE_LIST(X)
#undef X
    options->help = options->page != CLI_NO_PAGE;
    return options->help ? HSORT_OK : cli_complain(options, "--generate: '%.128s' is not a page", word);
}

/* Take help and version, which stand in place of a command, or before the name of one. */
static hsort_status take_text(int argc, char **argv, struct cli_options *options)
{
    const char *word = argv[1];
    if (strcmp(word, "--generate") == 0)
        return take_page(argc == 3 ? argv[2] : "", options);
    options->help = is_one_of(word, "help", "--help", "-h");
    options->version = is_one_of(word, "version", "--version", "-V");
    if (strcmp(word, "help") == 0 && argc > 2 && !is_one_of(argv[2], "help", "version", "version"))
        TRY(take_command(argv[2], options));
    const int taken = options->help && argc > 2 ? 3 : 2;
    if (is_one_of(word, "help", "version", "") && argc > taken)
        return cli_complain(options, "unexpected argument '%.128s'", argv[taken]);
    return HSORT_OK;
}

hsort_status cli_parse(int argc, char **argv, struct cli_options *options)
{
    *options = (struct cli_options){.command = CLI_COMMANDS,
                                    .distribution = "uniform",
                                    .count = -1,
                                    .type = (hsort_type)-1,
                                    .sizes = "64M",
                                    .types = "u32,u64",
                                    .inputs = "uniform",
                                    .repeats = 7,
                                    .progress = PROGRESS_AUTO,
                                    .warm_up = 1};
    TRY(hsort_options_init(&options->sort, sizeof options->sort));
    if (argc < 2)
        return cli_complain(options, "no command given");
    TRY(take_text(argc, argv, options));
    if (options->help || options->version)
        return HSORT_OK;

    TRY(take_command(argv[1], options));
    options->seed = options->command != CLI_BENCH;
    int operands;
    TRY(parse_options(argc - 1, argv + 1, options, &operands));
    if (options->help || options->version)
        return HSORT_OK;
    options->type_given = (int)options->type >= 0;
    TRY(take_operands(operands, argv + 2, options));
    return cli_check_names(options);
}
