/* What the two halves of the tests' double share: disk_case.c has the cases and their results, disk_store.c the store and the
 * streams. */
#ifndef DISK_STORE_H
#define DISK_STORE_H

#include <stdatomic.h>
#include "mpi/comm/comm.h"
#include "tests/library/disk_case.h"

enum disk_state { DISK_NOT_BEGUN, DISK_BEGUN, DISK_KEPT };

/* What all ranks see. */
struct disk_shared {
    struct run_plan plan; /* its tables are of no use: they are addresses of another process */
    bool is_begun;
    struct run_facts facts[2][DISK_MOST_PARTS]; /* runs, segments */
    atomic_int state[2][DISK_MOST_PARTS];
    atomic_int owner[DISK_MOST_PARTS];      /* of a run that is begun: its rank in the world */
    atomic_llong bytes[2][DISK_MOST_PARTS]; /* written in this call */
    atomic_llong made[2];                   /* parts, in this call */
    _Alignas(64) char in[DISK_MOST_BYTES];  /* the input */
    char expected[DISK_MOST_BYTES];         /* the second opinion */
    char out[DISK_MOST_BYTES];              /* the result */
    char out_seen[DISK_MOST_BYTES];         /* 1: written in this call */
    char runs[2 *
              DISK_MOST_BYTES]; /* run r from 2 * r * part_elements on: fences may be as many as elements */
    char runs_seen[2 * DISK_MOST_BYTES];
};

/* A stream over `in` or `out`, as this rank counts. */
struct disk_stream {
    bool is_sink;
    int64_t first; /* byte of the array at which this rank begins */
    bool has_stopped;
};

extern struct disk_shared *disk_shared;

/* The call under way on this rank. */
struct disk_call {
    const struct disk_case *c;
    const struct disk_group *group;
    struct comm comm; /* of the store, which does not know the context's */
    bool has_reopened, is_damaged;
    struct run_facts *given; /* [2 * parts] owned */
    void (*between)(const struct disk_case *c, void *user);
    void *between_user;
};
extern struct disk_call disk_call;

/* Make the store, and a stream, as the sort sees them. `user` of a stream is a struct disk_stream. */
struct run_store disk_store_make(const struct disk_case *c);
struct key_stream disk_stream_make(struct disk_stream *user);

/* hsort_should_stop_fn; of sorts with a store only the cuts ask. */
int disk_should_stop(void *user);

/* The slow sort: to [count] = elements in order, stable. The second function: are elements in order? */
void disk_sort_slowly(const struct disk_case *c, const char *from, int64_t count, char *to);
bool disk_is_in_order(const struct disk_case *c, const char *elements, int64_t count);

int disk_store_failures(void); /* CHECKs of disk_store.c */
int disk_world_rank(void);
void *disk_memory(size_t bytes); /* or the test ends */

#endif
