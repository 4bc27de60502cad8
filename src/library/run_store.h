/* The store for the runs of a sort for which neither the engine nor the host has memory: files, for the command. The sort itself
 * is disk_passes.c. A run is a sorted copy of a part of the input, and a segment is a part of the result. Both are parts of
 * `part_elements` elements, and the last part has what is left:
 *
 *     input     | run 0 | run 1 | run 2 | r 3 |       part r: elements r * part_elements ... of all ranks' together
 *     result    | seg 0 | seg 1 | seg 2 | s 3 |
 *
 * Parts do not depend on ranks: any rank makes any of them, and any rank reads any run. So what an earlier call has made,
 * on other ranks, is of use to this one. The store knows what that is; the sort makes the rest.
 *
 *     in the store    elements of a run | fences            fence i: a copy of the element i * fence_elements, to find
 *                     0 1 2 3 4 5 6 7 8 | 0 4 8             places in a run without reading all of it */
#ifndef RUN_STORE_H
#define RUN_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/base/keytype.h"
#include "kernels/base/status.h"

/* What a run or a segment is like. It has whole words, because ranks send it. */
struct run_facts {
    uint64_t is_made; /* 1; else the rest is 0 */
    uint64_t count;   /* elements */
    uint64_t fingerprint[2];
    uint64_t in_order; /* 1: its own elements are */
    uint64_t fences;   /* of a run: a checksum of its fences */
    key_code first, last; /* of its elements, as codes */
};

enum { RUN_FACTS_WORDS = sizeof(struct run_facts) / sizeof(uint64_t) };

/* How a sort is cut into parts. */
struct run_plan {
    int64_t elements; /* of all ranks */
    size_t element_bytes;
    int64_t part_elements;  /* of each run and each segment but the last */
    int64_t most_elements;  /* that a part may have in the memory of this call */
    int64_t fence_elements; /* from one fence to the next */
    int64_t parts;
    struct run_facts *runs, *segments; /* [parts] each */
};

/* Elements of part i; bytes of a run with its fences (disk_plan.c). Pure. */
int64_t plan_part_count(const struct run_plan *plan, int64_t part);
int64_t plan_run_bytes(const struct run_plan *plan, int64_t run);

struct run_store {
    void *user;
    size_t memory_bytes; /* host memory that this rank takes at most */
    int64_t parts;       /* so many runs, if that memory allows; 0: as few as it allows */

    /* The sort is about to begin as `plan` says, with nothing made. If an earlier call has begun it, part_elements,
     * fence_elements and parts become those of that call, and `runs` and `segments` say what that call has made. This function
     * allocates these two in any case, and the store frees them. Then it asks whether there is room for what is not made.
     * Collective.
     * Errors   agreed: HSORT_IO; HSORT_HOST_MEMORY: an earlier call's parts have more than plan->most_elements. */
    hsort_status (*open)(void *user, struct run_plan *plan);

    /* Make room for a run, write bytes of it (elements and then fences, by any number of threads, each byte once), and keep
     * it: on return of end_run() it outlasts a crash, with its facts. Several runs of a rank may be between begin and end. Not
     * collective. Errors HSORT_IO, HSORT_HOST_MEMORY. */
    hsort_status (*begin_run)(void *user, int64_t run);
    hsort_status (*write_run)(void *user, int64_t run, int64_t at, size_t bytes, const void *from);
    hsort_status (*end_run)(void *user, int64_t run, const struct run_facts *facts);

    /* Read bytes of a run that is kept, by whichever rank, from reopen() on. Any thread. Not collective. Errors HSORT_IO: also
     * a run that has been cut short; HSORT_HOST_MEMORY. */
    hsort_status (*read_run)(void *user, int64_t run, int64_t at, size_t bytes, void *to);

    /* Where byte `at` of a run lies in its file, as key_stream.lead() says it. Pure. */
    size_t (*lead)(void *user, int64_t at);

    /* All runs are made: from here on they are read, by all ranks. Collective. Errors HSORT_IO, agreed: a rank does not see
     * a run, or finds it of another size. */
    hsort_status (*reopen)(void *user);

    /* A segment has gone where it belongs: keep its facts, once what was written outlasts a crash. Not collective. Errors
     * HSORT_IO. */
    hsort_status (*end_segment)(void *user, int64_t segment, const struct run_facts *facts);
};

#endif
