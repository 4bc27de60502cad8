/* What `plan` says of sorts by way of the disk: for keys if an option is about such sorts, and for records always. */
#ifndef PLAN_DISK_H
#define PLAN_DISK_H

#include "src/command/cli.h"
#include "src/command/disk_rate.h"
#include "src/library/disk_forecast.h"

/* The disk, and what each number of ranks would take, in their order. */
struct plan_disk {
    bool asked;                        /* else nothing is said of it */
    int threads;                       /* of a rank */
    struct cost_disk rates;            /* 0: not known */
    bool measured[2];                  /* rates of reads, of writes: measured by --disk; else given */
    struct disk_rate rate;             /* with --disk */
    const struct cli_options *options; /* borrowed */
    int count;
    struct plan_disk_ranks {
        size_t memory_bytes; /* of each rank */
        bool any_memory; /* of a GPU: nobody has said how much there is */
        struct disk_forecast forecast;
        char lacks[STATUS_TEXT_BYTES]; /* if memory does not suffice, the line of the sort; or "" */
    } of[CLI_RANKS_MAX];
};

/* Take the rates, and measure those that are not given, with --disk. Collective. Errors agreed: disk_rate_measure()'s. */
hsort_status plan_disk_open(struct plan_disk *disk, struct comm *comm, const struct cli_options *options);

/* Add what the next number of ranks would take. Not collective.
 *   question  what is to be sorted, by how many ranks, and the engine's rates; the disk, memory and threads are filled in here
 *   by_disk   [1] written
 * Errors disk_forecast_make()'s, except lack of memory, which is reported in `lacks`. */
hsort_status plan_disk_add(struct plan_disk *disk, struct disk_question question, int ranks_per_node,
                           bool *by_disk);

/* Print lines, or put members of objects: for the disk, and for the i-th number of ranks. Nothing, or null, if nobody has asked. */
void plan_disk_print_rates(const struct plan_disk *disk);
void plan_disk_rates_json(struct json *json, const struct plan_disk *disk);
void plan_disk_print(const struct plan_disk *disk, int i);
void plan_disk_json(struct json *json, const struct plan_disk *disk, int i);

#endif
