/* A run of `sort` on records, or on keys with what travels with them: records.c has its steps, records_calls.c its calls of
 * the library. Private to them. */
#ifndef RECORDS_RUN_H
#define RECORDS_RUN_H

#include "src/command/record_io.h"
#include "src/command/records_report.h"
#include "src/command/records_unique.h"

/* An input, and this rank's part of it before and after. */
struct column {
    bool given;
    struct file_in in;
    size_t bytes;        /* of an element */
    void *read, *sorted; /* [count * bytes] owned; sorted is NULL if nobody wants it */
};

/* A file to write, and this rank's part of it. */
struct output {
    const char *path;
    struct file_out file;
    const void *memory; /* borrowed */
};

struct record_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_order order;
    hsort_context *ctx;
    struct progress progress;
    struct record_io io;
    struct column elements, values;
    struct record_keys keys;
    bool indexed;                            /* positions are found, for a file or to gather elements by */
    int64_t *index;                          /* [count] owned, or NULL */
    int64_t first, count;                    /* of this rank */
    struct unique_run unique;                /* with --unique */
    int64_t out_first, out_count, out_total; /* of what is written: with --unique what is kept */
    struct output outputs[FILE_OUTPUTS];
    int output_count;
    int64_t bytes_beside; /* disk_deal.bytes_beside, of a sort by way of the disk */
    bool streamed; /* records went from file to file: all is written already */
    double read_seconds, sort_seconds, write_seconds, verify_seconds; /* of this rank */
    struct records_report report;
};

/* array [count * bytes] = memory for this rank's elements, of `bytes` each; the caller frees it. Not collective. Errors
 * HSORT_HOST_MEMORY. */
hsort_status records_take(const struct record_run *run, size_t bytes, void *array);

/* Are positions found, for a file or to gather elements by? Pure. */
bool records_are_indexed(const struct cli_options *options);

/* Bytes of host memory that a rank takes for each of its elements, if all of them lie there. Pure. */
uint64_t records_bytes(const struct cli_options *options, const struct record_keys *keys, size_t element_bytes,
                       size_t value_bytes);

/* Note in the report what was seen before and after. Collective. Errors HSORT_MISMATCH, agreed. */
hsort_status records_compare(struct record_run *run, const hsort_check_result *before,
                             const hsort_check_result *after);

/* Sort what was read. Collective. Errors agreed: the library's. */
hsort_status records_call(struct record_run *run);

/* Sort records alone, and write and check them, if they do not fit into engine memory: run->streamed. Collective. Errors agreed:
 * the library's, the files', HSORT_MISMATCH. */
hsort_status records_stream(struct record_run *run);

/* Is everything to be sorted by way of the disk? Collective.
 *   memory_bytes  [1] written: host memory of a rank */
hsort_status records_choose_disk(struct record_run *run, size_t *memory_bytes, bool *on_disk);

/* Sort by way of the disk, from the inputs to the outputs, which then have their names. Collective. Errors agreed: the library's, the
 * files', HSORT_MISMATCH, HSORT_STOPPED. */
hsort_status records_by_disk(struct record_run *run, size_t memory_bytes);

/* After a call of the library: keep its error line, which is the same on every rank, or add what the call did to the report. Not
 * collective. */
hsort_status records_keep_line(struct record_run *run, hsort_status status);

/* Look at the records that the output holds. Collective. Errors HSORT_MISMATCH, HSORT_IO. */
hsort_status records_reread(struct record_run *run, const struct file_out *file,
                            const hsort_check_result *before);

#endif
