/* The end of a sort by way of the disk whose result is not one file of what was sorted: a sort with values, with an index, with one
 * of each key (--unique), or to a file per rank (%r). The sort itself (disk_passes.h) knows nothing of that. It sorts elements that have
 * all columns side by side, and its segments go to a file of such elements, DIR/sorted. From there each rank deals its share out:
 *
 *     DIR/sorted     1a0 1c2 | 3b1 7d3        two ranks, elements of a key, a value and a position
 *     -o, -O         1 1, a c  | 3 7, b d
 *     --index        0 2     | 1 3
 *     --unique       1       | 3 7            what differs from the element before
 *     --counts       2       | 1 1
 *
 * So a sort that is stopped or killed goes on like any sort by way of the disk, on any number of ranks; with %r there are as many files
 * as ranks in the start that ends the sort. A part of the elements counts as dealt out when it is written to all outputs (run_notes.h), which
 * stay under temporary names. With %r that holds only while the number of ranks is the same: on another number other elements go to
 * each file, and all are dealt out again.
 *
 * Rejected: segments that go to their outputs at once. That saves a reading and a writing where there is no --unique, but all ranks
 * would need each rank's file, and the next start would need the files of other ranks.
 *
 * The elements that are dealt out are checked: they must be in order and have the fingerprint of those that were sorted. */
#ifndef DISK_DEAL_H
#define DISK_DEAL_H

#include "src/checkpoint/run_files.h"
#include "src/command/cli.h"
#include "src/command/progress.h"
#include "src/command/record_keys.h"
#include "src/files/file.h"

enum { DEAL_COLUMNS = 3 }; /* what is sorted, values, positions */

/* A part of an element, and the output that it goes to. */
struct deal_column {
    const struct file_in *in; /* borrowed; NULL: positions */
    size_t bytes;
    const char *path; /* NULL: not wanted */
    enum file_format format;
    hsort_type type;
    const struct npy_element *element; /* or NULL: keys of `type` */
};

struct disk_deal {
    const struct cli_options *options;
    const char *main_output; /* runs are named after it: -o, or the first output that is given */
    bool by_rank;            /* there is a file per rank */
    bool needed;             /* else the only column goes to its output without being dealt out */
    bool bare;               /* bare keys are sorted, not elements */
    struct record_keys keys; /* of an element */
    struct deal_column column[DEAL_COLUMNS];
    int columns;
    size_t element_bytes; /* of all columns */
    int64_t count;        /* of all ranks */
    size_t memory_bytes;  /* that a rank may take */
    int64_t bytes_beside; /* that the caller's own files take where runs lie: they count for --temp-limit */
    uint64_t tag;         /* of the outputs' temporary names */

    /* written: */
    struct file_out out[FILE_OUTPUTS]; /* open until disk_deal_end() */
    int column_of[FILE_OUTPUTS];       /* of each output; DEAL_COLUMNS: counts */
    int outs;
    bool kept;           /* all outputs were there, from an earlier call */
    int64_t kept_pieces; /* that an earlier call has dealt out */
    bool is_full;        /* a disk is full, on this rank */
    bool differs;        /* what was looked at is not what was sorted */
    bool unique_ok;
    int64_t distinct;
};

/* The output after which runs are named. Not collective. */
const char *disk_deal_main_output(const struct cli_options *options);

/* Fill in what `options` want from these inputs. Not collective.
 *   values   or NULL
 *   bare     keys alone are sorted as such, and not as elements; else `keys` are those of an element */
void disk_deal_describe(const struct cli_options *options, const struct file_in *in,
                        const struct file_in *values, const struct record_keys *keys, bool bare,
                        struct disk_deal *deal);

/* text [room] = what a manifest says, beside its output, about what is sorted and where it goes to; if nothing is dealt out, --key
 * alone, or "". Collective. Errors agreed: file_output_name()'s, checkpoint_sample()'s. */
hsort_status disk_deal_text(struct comm *comm, const struct disk_deal *deal, char *text, size_t room);

/* to = bytes at .. at + bytes - 1 of all elements of the input, which have all columns side by side. Any thread. Errors: file_read()'s,
 * HSORT_HOST_MEMORY. */
hsort_status disk_deal_join(const struct disk_deal *deal, int64_t at, size_t bytes, void *to);

/* Create the outputs, or find those of an earlier call, before the sort; not with --unique, because their sizes are not known then.
 * Collective. Errors agreed: file_resume()'s; HSORT_ARGUMENT: files of two ranks are one. */
hsort_status disk_deal_open(struct comm *comm, struct disk_deal *deal);

/* The same, for `total` elements, of which this rank has `mine` from `first` on. */
hsort_status disk_deal_create(struct comm *comm, struct disk_deal *deal, int64_t total, int64_t first,
                              int64_t mine);

/* Fill the outputs from `sorted`. Collective.
 *   files    where it is noted what is done
 *   wanted   what the sorted elements must be like; NULL: nobody looks
 * Memory   deal->memory_bytes at most.
 * Errors   agreed: the files'; HSORT_HOST_MEMORY; HSORT_MISMATCH; HSORT_STOPPED, without a line. */
hsort_status disk_deal_out(struct comm *comm, struct disk_deal *deal, const struct file_out *sorted,
                           struct run_files *files, const hsort_check_result *wanted,
                           struct progress *progress);

/* Could this rank not write for want of room? Not collective. */
bool disk_deal_is_full(const struct disk_deal *deal);

/* After work that ended with `status`: give the outputs their names; or leave them for the next call, if it `stays`; or remove them,
 * including those that an earlier call left. Collective. Errors `status`, file_commit()'s. */
hsort_status disk_deal_end(struct comm *comm, struct disk_deal *deal, hsort_status status, bool stays);

#endif
