/* hypersort bench: what is to be measured (bench_plan.c), and what was measured (bench_report.c). */
#ifndef COMMAND_BENCH_H
#define COMMAND_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include "kernels/engine.h"
#include "src/command/cli.h"
#include "src/command/json.h"
#include "src/files/input.h"
#include "hypersort.h"

/* ---- What is to be measured ---------------------------------------------------------------------------- */

/* Where the keys lie. X(name, word) */
#define BENCH_MEMORY_LIST(X)                                                        \
    X(BENCH_DEVICE, "device")   /* on the device, sorted into other memory there */ \
    X(BENCH_INPLACE, "inplace") /* on the device, sorted in place */                \
    X(BENCH_PINNED, "pinned")   /* host memory that the device reads and writes */  \
    X(BENCH_MALLOC, "malloc")   /* ordinary host memory */

enum bench_memory {
#define X(name, word) name,
    BENCH_MEMORY_LIST(X)
#undef X
        BENCH_MEMORIES
};

const char *bench_memory_word(enum bench_memory memory);

enum { BENCH_WORDS_MAX = 64, BENCH_WORD_BYTES = 32, BENCH_REPEATS_MAX = 100000 };

/* A distribution, or the first `mixtures` random mixtures. */
struct bench_input {
    char word[BENCH_WORD_BYTES]; /* as given */
    struct input input;          /* except type, count and seed */
    int mixtures;                /* 0: the input alone */
};

struct bench_plan {
    int64_t sizes[BENCH_WORDS_MAX];
    hsort_type types[BENCH_WORDS_MAX];
    struct bench_input inputs[BENCH_WORDS_MAX];
    enum bench_memory memories[BENCH_WORDS_MAX];
    int size_count, type_count, input_count;
    int memory_count; /* 0: not given */
    int repeats, warm_up;
};

/* Read the lists of the command line. Not collective. Errors HSORT_ARGUMENT. */
hsort_status bench_plan_make(const struct cli_options *options, struct bench_plan *plan);

/* ---- What was measured --------------------------------------------------------------------------------- */

/* The times of repeated calls; repeats 0: there were none. */
struct bench_time {
    int repeats;
    double median, least, most; /* seconds */
};

struct bench_row {
    int ranks;
    enum bench_memory memory;
    hsort_type type;
    int64_t keys;
    char input[BENCH_WORD_BYTES]; /* the word that gen takes */
    const char *exchange, *path;
    struct bench_time time;
    struct bench_time yardsticks[ENGINE_YARDSTICKS];
    hsort_stats stats; /* of the last call */
    bool right;
};

/* What the report says of N mixtures together. */
struct bench_mixtures {
    struct bench_row row; /* the worst */
    const char *word;     /* mixtures:N */
    int count, wrong;
    bool by_ratio;               /* the figures are ratios; otherwise Gkeys/s */
    double worst, tenth, median; /* the lowest, the 10th percentile */
};

/* The report on rank 0, printed line by line as there is something to say. */
struct bench_report {
    enum bench_form form;
    int ranks;
    const char *engine;
    uint64_t seed;
    int repeats, warm_up;
    bool yardsticks[ENGINE_YARDSTICKS]; /* those that rows may have */
    bool begun;                         /* nothing is printed before there is a row */
    struct json json;
};

/* Report a row. of_many: it is one of N mixtures; of these, tables show only the summary and the rows that went wrong. */
void bench_report_row(struct bench_report *report, const struct bench_row *row, bool of_many);
void bench_report_mixtures(struct bench_report *report, const struct bench_mixtures *mixtures);
/* Say that rows of this memory, type and size are missing, and why. */
void bench_report_left_out(struct bench_report *report, const struct bench_row *row, const char *why);
/* Errors HSORT_IO. */
hsort_status bench_report_end(struct bench_report *report);

/* ---- Figures ------------------------------------------------------------------------------------------- */

/* The figures of `seconds` [repeats], which it puts in order. */
struct bench_time bench_time_of(double *seconds, int repeats);

/* The fastest yardstick's time over hypersort's; 0: no yardstick was measured. */
double bench_ratio(const struct bench_row *row);

/* Sum up `rows` [input->mixtures], which are of one memory, type and size. Puts them in order. */
struct bench_mixtures bench_mixtures_of(const struct bench_input *input, struct bench_row *rows);

#endif
