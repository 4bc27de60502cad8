/* A run of `sort` on HDF5: hdf5_sort.c has its steps, hdf5_order.c and hdf5_order_disk.c find the order of the rows. Private to them. */
#ifndef HDF5_RUN_H
#define HDF5_RUN_H

#include "src/command/hdf5/hdf5_out.h"
#include "src/command/record_io.h"
#include "src/command/records_report.h"

struct hdf5_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_context *ctx;
    struct progress progress;
    struct record_io io;
    struct hdf5_in in;
    struct hdf5_out out;
    struct record_keys keys;   /* in a row of all columns */
    struct record_keys packed; /* in a record of nothing else */
    int64_t first, count;      /* rows of this rank */
    bool by_disk;              /* the order is found by way of the disk, and lies in a file */
    int64_t *index;            /* [count] the order, if it is in memory; owned */
    bool order_begun;          /* and an earlier start of the command has left runs */
    struct file_in order;      /* else; open if order_is_open */
    bool order_is_open;
    int order_guard;          /* its place among the files that a signal removes, or -1 */
    size_t key_rows_bytes;    /* for rows from which keys are taken */
    size_t memory_bytes;      /* for the parts of a dataset; the same on every rank */
    int64_t carried;          /* bytes of all columns so far */
    int column;               /* that is carried now */
    struct verifier verifier; /* of what is written of it */
    /* [columns] what each is to hold, and where; owned; NULL unless the output is read back */
    hsort_check_result *written;
    double read_seconds, sort_seconds, write_seconds, verify_seconds; /* of this rank */
    struct records_report report;
};

/* array [count * row_bytes] = memory; the caller frees it. Not collective. Errors HSORT_HOST_MEMORY. */
hsort_status hdf5_take_rows(const struct hdf5_run *run, int64_t count, size_t row_bytes, void *array);

/* Rows of a column that are read at a time, if they may take so many bytes. Pure. */
int64_t hdf5_rows_at_a_time(const struct hdf5_column *column, size_t bytes);

/* hdf5_read_rows(), with time and trace. Not collective. */
hsort_status hdf5_read_column_rows(struct hdf5_run *run, int column, int64_t first, int64_t count,
                                   void *rows);

/* Show rows [count], of which the first is row `first`, to a verifier; keys: of records of keys, whose order is looked at, or NULL. Not
 * collective. */
hsort_status hdf5_verify_rows(struct hdf5_run *run, struct verifier *verifier, const struct record_keys *keys,
                              const void *rows, size_t row_bytes, int64_t first, int64_t count,
                              const int64_t *index);

/* Does `after` have the elements of `before`, each with its number? Pure. */
bool hdf5_same_places(const hsort_check_result *before, const hsort_check_result *after);

/* Choose how the order is found, and what memory is left for parts of datasets. Collective. Errors agreed: HSORT_HOST_MEMORY, HSORT_MPI. */
hsort_status hdf5_choose_order(struct hdf5_run *run);

/* Find the order of the rows. hdf5_end_order() ends it, also after an error. Collective. Errors agreed: the library's, the files',
 * HSORT_MISMATCH; by way of the disk also HSORT_STOPPED. */
hsort_status hdf5_find_order(struct hdf5_run *run);
void hdf5_end_order(struct hdf5_run *run);

/* index [count] = the rows that are rows first .. first + count - 1 of the output, which are this rank's. Not collective. Errors HSORT_IO. */
hsort_status hdf5_read_order(struct hdf5_run *run, int64_t first, int64_t count, int64_t *index);

/* records [count] = the keys of rows from `first` on. Not collective. Errors hdf5_read_rows()'s, HSORT_HOST_MEMORY. */
hsort_status hdf5_read_keys(struct hdf5_run *run, int64_t first, int64_t count, char *records);

/* The part of hdf5_order_disk.c. *begun = has a start of the same command left runs? Collective. */
hsort_status hdf5_disk_order_begun(struct hdf5_run *run, bool *begun);
hsort_status hdf5_find_order_on_disk(struct hdf5_run *run);
void hdf5_end_order_on_disk(struct hdf5_run *run);

#endif
