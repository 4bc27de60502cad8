/* What the parts of the ladder's benchmark share: the data in hand, how one thing is timed, and the rows of
 * the CSV.
 *
 * A row is the median of several repeats between two CUDA events, with the shortest and the longest; slow
 * things are repeated less. Before each one, outside the timed part, the input is restored, more memory than
 * the L2 cache holds is overwritten, and the device becomes idle; one more, the first, warms up and does not
 * count. Every result is checked: order, fingerprint, and with values each value at its key. A row is left
 * out, and a "# left out" line says so, if memory or the time limit does not suffice. */
#ifndef BENCH_H
#define BENCH_H

#include "tests/kernels/ladder_verify.cuh"

/* The columns, in order. copy_percent: of the rate of a device-to-device copy, at the bytes that
 * bench_bytes() says this sort moves. ratio_to_cub: rung 0's time of the same run over this one's; above 1 is
 * faster than CUB. */
#define BENCH_COLUMNS \
    "experiment,what,variant,type,keys,input,ms,ms_min,ms_max,gkeys_per_s,copy_percent,ratio_to_cub"

enum { BENCH_PACES = 512 };

/* What one repeat of something took per key, restoring and checking included; a larger one takes about as much. */
struct bench_pace {
    char name[96];
    double seconds_per_key;
};

struct bench {
    struct cuda_engine *engine;
    const struct engine_ops *ops;
    FILE *csv;
    const char *experiment;
    double deadline;  /* on the clock of bench_now() */
    double row_limit; /* seconds that one row may take */
    double copy_rate; /* bytes per ms, read and written ones both counted */
    cudaEvent_t start, stop;
    void *flush;
    size_t flush_bytes;
    struct bench_pace paces[BENCH_PACES];
    int pace_count;
    int failures;

    /* the data in hand: see bench_load() */
    struct ladder_type type;
    int64_t count, room;
    int input;
    struct keymap map; /* of the keys; these are codes, unless an experiment makes other keys of them */
    void *original;
    struct sort_args args;
    struct engine_inspection before;
    int varying_digits; /* 8-bit digits that are not the same in all keys */
    double cub_ms;      /* of rung 0 on this data; 0: not timed */
};

/* What is timed: sort(engine, number, args), with the workspace that workspace(engine, number, args) wants. */
struct bench_subject {
    const char *what, *variant;
    hsort_status (*sort)(struct cuda_engine *engine, int number, struct sort_args *args);
    hsort_status (*workspace)(struct cuda_engine *engine, int number, const struct sort_args *args,
                              size_t *bytes);
    int number;
    enum rung_order order;
    double bytes = 0;        /* that it moves; 0: not known */
    bool is_partial = false; /* leaves no sorted keys: only the fingerprint is checked */
};

struct bench_timing {
    double ms, least, most; /* ms: the median */
};

/* Return the seconds since some moment. */
double bench_now(void);

/* Open the first GPU, measure its copy rate, and write the head of `csv`. `seconds` is the time limit. */
void bench_open(struct bench *b, FILE *csv, double seconds);
void bench_close(struct bench *b);

/* Put `count` keys of this type and input into b->original, and take memory for the sort. False if time is over,
 * or, with a note, if the GPU has too little memory. */
bool bench_load(struct bench *b, struct ladder_type type, int64_t count, int input);

/* Take the codes of the data in hand for those of keys of this type, and put such keys in their place. */
void bench_decode(struct bench *b, hsort_type type);

/* Time a subject on the data in hand and write the row; or a note, if it was left out or its result was wrong.
 * Returns its ms, or 0. */
double bench_row(struct bench *b, const struct bench_subject *subject);

/* Rung `number` as a subject, on the data in hand. */
struct bench_subject bench_rung(struct bench *b, int number);

/* Write a row for something timed otherwise. bytes 0: not known. */
void bench_write(struct bench *b, const char *what, const char *variant, struct bench_timing timing,
                 double bytes);

/* Write a "# ..." line to the CSV, and to stderr. */
void bench_note(struct bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The name of a rung, "rung_N_NAME". */
const char *bench_rung_name(int number);

/* Bytes that a rung reads and writes in device memory on the data in hand, by the passes it makes. */
double bench_bytes(struct bench *b, int rung);

/* Sorts of CUB that are no rung, in bench_cub.cu, as subjects have them: its merge sort, in place; its radix sort of keys of a type
 * instead of codes, NaNs by their bits. */
hsort_status cub_merge_sort_workspace(struct cuda_engine *engine, int, const struct sort_args *args, size_t *bytes);
hsort_status cub_merge_sort(struct cuda_engine *engine, int, struct sort_args *args);
hsort_status cub_sort_typed_workspace(struct cuda_engine *engine, int type, const struct sort_args *args, size_t *bytes);
hsort_status cub_sort_typed(struct cuda_engine *engine, int type, struct sort_args *args);

/* Run one of the experiments, by name; false if there is none of this name. */
bool bench_experiment(struct bench *b, const char *name);

/* Three of them, in bench_engine.cu: keys of all types, with less scratch than keys, and of 16 bytes. */
void bench_types(struct bench *b);
void bench_less_scratch(struct bench *b);
void bench_wide(struct bench *b);
extern const char bench_experiment_names[];

#endif
