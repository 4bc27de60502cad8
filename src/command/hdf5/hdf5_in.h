/* The input: the datasets of N rows in a group and in the groups in it, or one dataset, from one file or from several files one behind
 * the other. Every rank opens and reads them by itself, without MPI: damage is then an error of one rank, which tells the others, and no
 * rank waits inside HDF5 for another. */
#ifndef HDF5_IN_H
#define HDF5_IN_H

#include <hdf5.h>
#include "src/command/cli.h"
#include "src/command/hdf5/hdf5_dtype.h"
#include "src/command/record_keys.h"
#include "src/files/file.h"
#include "src/files/hdf5_place.h"

struct hdf5_column {
    char *name;     /* from the group on: x, sub/x; of a dataset alone the last part of its path; owned */
    hid_t type;     /* as in the file: rows are moved as they are */
    int dimensions; /* of a row; 0: a number or a structure */
    hsize_t extent[H5S_MAX_RANK];
    size_t row_bytes;   /* may be 0 */
    size_t offset;      /* in a row of all columns, one behind the other */
    int64_t chunk_rows; /* 0: not in chunks */
    int member;         /* its place among all datasets and groups, in the order of the walk */
    bool odd;           /* it has numbers that cannot be keys */
};

struct hdf5_group {
    char *name; /* from the group that is sorted on; owned */
    int member; /* as in a column */
};

struct hdf5_part {
    hid_t file, object; /* the group or the dataset */
    hid_t *dataset;     /* [columns] owned */
    int64_t first, count;
};

struct hdf5_in {
    struct file_in
        files; /* the same files as bytes: which they are, and whether they change; their texts are the places */
    bool opened;
    struct hdf5_place place; /* the first one */
    bool is_dataset;
    bool is_bare;               /* plain numbers in one dimension, which have no --key */
    struct hdf5_part *part;     /* [files.parts] owned */
    struct hdf5_column *column; /* [columns] owned, in the order of their names */
    int columns;
    struct hdf5_group *group; /* [groups] in it, outer ones first; owned */
    int groups;
    int members;            /* columns and groups */
    int64_t count;          /* rows of all files */
    size_t row_bytes;       /* of all columns */
    struct hdf5_text left;  /* what of the group does not come along, with commas, and why; empty: all comes along */
    struct hdf5_text descr; /* of a row */
};

/* Open the places `texts` [count]. hdf5_close_in() ends it, also after an error. Collective.
 *   key  --key: a group has as many rows as the dataset that --key names first; NULL: the places are datasets
 * Errors, agreed: file_open()'s; HSORT_FORMAT: not HDF5, damaged, no such place, elements that cannot be moved, a filter that
 * cannot be undone or done again, files that differ; HSORT_ARGUMENT: no such key. */
hsort_status hdf5_open_in(struct comm *comm, const char *const *texts, int count, const char *key,
                          struct hdf5_in *in);

void hdf5_close_in(struct hdf5_in *in);

/* Find which fields of a row are the keys, as --key says; key is NULL for bare numbers. Offsets are within a row of all columns. Not
 * collective. Errors HSORT_ARGUMENT. */
hsort_status hdf5_find_keys(const struct hdf5_in *in, const char *key, hsort_order order,
                            struct record_keys *keys);

/* rows [count * row_bytes] = the rows of a column from `first` on. Not collective. Errors HSORT_IO, HSORT_FORMAT (damaged). */
hsort_status hdf5_read_rows(const struct hdf5_in *in, int column, int64_t first, int64_t count, void *rows);

/* The same from another dataset: `name` is for texts. */
hsort_status hdf5_read_dataset(hid_t dataset, const struct hdf5_column *column, const char *path,
                               int64_t first, int64_t count, void *rows);

/* Rows of a column that are best read or written at a time, from a multiple of their number to the next: whole chunks, so that only those
 * at the ends of what is asked for are packed or unpacked twice. Pure. */
int64_t hdf5_piece_rows(const struct hdf5_column *column);

/* Make dataspaces of rows first .. first + count - 1, which may be none: in a dataset, and in memory. The caller closes both. */
void hdf5_select_rows(hid_t dataset, const struct hdf5_column *column, int64_t first, int64_t count,
                      hid_t *in_file, hid_t *in_memory);

#endif
