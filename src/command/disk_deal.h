/* The end of a sort by way of the disk whose result is not one file of what was sorted: with values, with an index, of each key one
 * (--unique), a file per rank (%r). The sort itself (disk_passes.h) knows nothing of that: what it sorts is one element of all
 * columns, and its segments go to a file of those, DIR/sorted. From there each rank deals its share out:
 *
 *     DIR/sorted     1a0 1c2 | 3b1 7d3        two ranks, elements of a key, a value and a position
 *     -o, -O         1 1, a c  | 3 7, b d
 *     --index        0 2     | 1 3
 *     --unique       1       | 3 7            what differs from the element before
 *     --counts       2       | 1 1
 *
 * So what is stopped or killed goes on as any sort by way of the disk, on any number of ranks, which is then that of the files of
 * %r. A part of the elements counts as dealt out when it is written to all outputs (run_notes.h), which stay under temporary names.
 * With %r only as long as the number of ranks is the same: on another one what goes to which file is another, and it is dealt out again.
 *
 * Rejected: segments that go to their outputs at once, which saves a reading and a writing where there is no --unique; but all ranks
 * would need each rank's file, and the next start the files of other ranks.
 *
 * The elements that are dealt out are looked at: they are in order and have the fingerprint of those that were sorted. */
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
    const char *path; /* NULL: nobody wants it */
    enum file_format format;
    hsort_type type;
    const struct npy_element *element; /* or NULL: keys of `type` */
};

struct disk_deal {
    const struct cli_options *options;
    const char *main_output; /* after which runs are named: -o, or the first that is there */
    bool by_rank;            /* there is a file per rank */
    bool needed;             /* else the only column goes to its output without being dealt out */
    bool bare;               /* what was sorted are bare keys, not elements */
    struct record_keys keys; /* of an element */
    struct deal_column column[DEAL_COLUMNS];
    int columns;
    size_t element_bytes; /* of all columns */
    int64_t count;        /* of all ranks */
    size_t memory_bytes;  /* that a rank may take */
    uint64_t tag;         /* of the outputs' temporary names */

    /* written: */
    struct file_out out[FILE_OUTPUTS]; /* open until disk_deal_end() */
    int column_of[FILE_OUTPUTS];       /* of each; DEAL_COLUMNS: counts */
    int outs;
    bool kept;           /* all were there, of an earlier call */
    int64_t kept_pieces; /* which it has dealt out */
    bool is_full;        /* a disk is, on this rank */
    bool differs;        /* what was looked at, from what was sorted */
    bool unique_ok;
    int64_t distinct;
};

/* The output after which runs are named. Not collective. */
const char *disk_deal_main_output(const struct cli_options *options);

/* What `options` want of these inputs. Not collective.
 *   values   or NULL
 *   bare     keys alone are sorted as such, and not as elements; else `keys` are those of an element */
void disk_deal_describe(const struct cli_options *options, const struct file_in *in,
                        const struct file_in *values, const struct record_keys *keys, bool bare,
                        struct disk_deal *deal);

/* What a manifest says that is sorted and where it goes to, beside its output: text [room]; --key alone where nothing is dealt out,
 * or "". Collective. Errors agreed: file_output_name()'s, checkpoint_sample()'s. */
hsort_status disk_deal_text(struct comm *comm, const struct disk_deal *deal, char *text, size_t room);

/* Bytes at .. at + bytes - 1 of all elements as they come, of all columns side by side. Any thread. Errors: file_read()'s,
 * HSORT_HOST_MEMORY. */
hsort_status disk_deal_join(const struct disk_deal *deal, int64_t at, size_t bytes, void *to);

/* Create the outputs, or find those of an earlier call, before the sort; but with --unique, whose sizes are not known then.
 * Collective. Errors agreed: file_resume()'s; HSORT_ARGUMENT: files of two ranks are one. */
hsort_status disk_deal_open(struct comm *comm, struct disk_deal *deal);

/* The same of so many elements, of which this rank has `mine` from `first` on. */
hsort_status disk_deal_create(struct comm *comm, struct disk_deal *deal, int64_t total, int64_t first,
                              int64_t mine);

/* Fill them from `sorted`. Collective.
 *   files    in which is noted what is done
 *   wanted   what those elements are like; NULL: nobody looks
 * Memory   deal->memory_bytes at most.
 * Errors   agreed: the files'; HSORT_HOST_MEMORY; HSORT_MISMATCH; HSORT_STOPPED, without a line. */
hsort_status disk_deal_out(struct comm *comm, struct disk_deal *deal, const struct file_out *sorted,
                           struct run_files *files, const hsort_check_result *wanted,
                           struct progress *progress);

/* Could this rank not write for want of room? Not collective. */
bool disk_deal_is_full(const struct disk_deal *deal);

/* Give the outputs their names, after work that ended with `status`; or leave them, where the next call is to go on; or remove them, also
 * those that an earlier call left. Collective. Errors `status`, file_commit()'s. */
hsort_status disk_deal_end(struct comm *comm, struct disk_deal *deal, hsort_status status, bool stays);

#endif
