/* What the tests of sorts by way of the disk share (src/library/disk_passes.h): arrays and a store of runs in memory that all ranks
 * of this machine see, streams over these arrays, a second opinion of the result, and ways to let each of them fail.
 *
 *     disk_prepare()                     input, expected result; the store is empty
 *     disk_sort() ... disk_sort()        any number of calls, on any groups of ranks: the store keeps what they have made
 *     disk_check_whole()                 after a call that has gone well
 *
 * The store watches how it is called: who makes what, that each byte is written once, fences, runs and segments against the second
 * opinion, and that nothing is made that it keeps already. */
#ifndef DISK_CASE_H
#define DISK_CASE_H

#include "hypersort.h"
#include "src/library/element_columns.h"
#include "tests/support/distributions.h"
#include "tests/support/faults.h"
#include "tests/support/layout.h"
#include "tests/support/ranks.h"

enum { DISK_MOST_BYTES = 6 << 20, DISK_MOST_PARTS = 2048, DISK_MOST_RANKS = 64, DISK_PLENTY = 1 << 29 };

/* One sort. The same on every rank. */
struct disk_case {
    bool is_records;
    struct input input; /* keys: what they are drawn from */
    hsort_order order;
    hsort_field fields[HSORT_FIELDS_MAX]; /* records */
    int field_count;
    int different; /* records: how many different keys; 0: any */
    size_t bytes;  /* of an element */
    int64_t total;
    int64_t parts;       /* that the store wants */
    size_t memory_bytes; /* that it has */
    int64_t kept_part,
        kept_fence; /* sizes that an earlier call has chosen, without making anything; 0: there was none */
    bool is_spread; /* records: counts of ranks differ at will */
    uint64_t seed;
};

/* The ranks that sort. */
struct disk_group {
    MPI_Comm comm;
    int rank, size; /* in it; -1 and 0: this rank is not */
    hsort_context *ctx;
};

/* What the store and the streams are asked for, and can fail at. */
enum disk_op {
    DISK_OPEN,
    DISK_BEGIN_RUN,
    DISK_WRITE_RUN,
    DISK_END_RUN,
    DISK_REOPEN,
    DISK_READ_RUN,
    DISK_END_SEGMENT,
    DISK_SOURCE_MOVE,
    DISK_SOURCE_END,
    DISK_SINK_MOVE,
    DISK_SINK_END,
    DISK_SOURCE_STOP, /* next() says no; no failure */
    DISK_SINK_STOP,
    DISK_CUTS_STOP, /* should_stop() says yes */
    DISK_OPS
};
extern const char *const disk_op_names[DISK_OPS];

/* The case at hand, for messages. */
extern char disk_text[400];

/* Take memory for all of this until disk_end(), which returns how many checks have failed here: each source file has its own count.
 * Collective over MPI_COMM_WORLD. */
void disk_begin(void);
int disk_end(void);

/* Open a group of `count` ranks from `first` on, in this order or, `turned`, in the other one, and their context. The other ranks are
 * not in it. Collective over MPI_COMM_WORLD. */
struct disk_group disk_group_open(int first, int count, bool turned, hsort_engine engine, int threads);
void disk_group_close(struct disk_group *group);

/* Make the input and the expected result of a case, and empty the store. Collective over MPI_COMM_WORLD. */
void disk_prepare(const struct disk_case *c);

/* Set what one of the ranks does with the store between the passes of the next call only, once; NULL: nothing. */
void disk_between(void (*hook)(const struct disk_case *c, void *user), void *user);

/* Sort. Collective over MPI_COMM_WORLD; ranks outside of the group return HSORT_OK.
 *   check  [1] written, if all goes well */
hsort_status disk_sort(const struct disk_case *c, const struct disk_group *group, struct stream_check *check);

/* After a sort that went well, check every byte of the result, the checks, the statistics, and that each part was made once.
 * Collective over the group. */
void disk_check_whole(const struct disk_case *c, const struct disk_group *group,
                      const struct stream_check *check);

/* Is the result that of the second opinion? */
bool disk_is_right(const struct disk_case *c);

/* Let the nth next call of an operation on this rank fail; 0: none. The second function: was it never reached? Disarms it. */
void disk_fail(enum disk_op op, int nth);
bool disk_fail_untouched(enum disk_op op);

/* Parts that the store keeps, and parts made in the last call, by all ranks. */
struct disk_made {
    int64_t kept_runs, kept_segments, runs, segments, parts;
};
struct disk_made disk_made_parts(void);

/* The store's memory, to be damaged: the bytes of a run, which are followed by its fences; the facts of a part. */
char *disk_run(const struct disk_case *c, int64_t run, int64_t *count, int64_t *fences);
struct run_facts *disk_facts(bool segment, int64_t part);

/* Let the store lose a run. */
void disk_lose(int64_t run);

/* Check that a group's ranks all have `status` and the same line. Collective over the group. */
void disk_check_agreed(const struct disk_group *group, hsort_status status);

#endif
