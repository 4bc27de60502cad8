/* One sort under way, and the memory for it. Private to sort.c and sort_memory.c. */
#ifndef SORT_MEMORY_H
#define SORT_MEMORY_H

#include "src/library/context.h"
#include "mpi/exchange/exchange.h"

/* One sort under way: sort.c has the words. */
struct sort {
    hsort_context *ctx;
    hsort_type type;
    hsort_order order;
    struct keymap map;
    const void *in;
    void *out;
    int64_t in_count, out_count;
    void *stream;
    enum engine_space in_space, out_space;
    int64_t total, capacity;
    const int64_t *current_offset;    /* [size + 1] where each rank's first key is at present */
    const int64_t *target_offset; /* [size + 1] where the exchange leaves it */
    bool even;                /* no rank holds more than the capacity at the door */
    bool partitions;          /* exchange_partition() is to be tried; the same on every rank */
    const int64_t *scattered_offset;  /* [size + 1] where that leaves each rank's first key */
    bool decoded;             /* x.keys holds bits again, not codes */
    bool stored;              /* out has its keys already */
    int64_t scratch_keys;          /* keys that x.scratch has room for: the capacity, or less on a rank that is alone */
    struct exchange x;        /* x.keys is always where this rank's keys are */
    hsort_status status;      /* the first failure on this rank */
    double entered, phase_began;
    double seconds[HSORT_PHASES];
};


/* Does a buffer make way for a larger one? Other ranks may have it mapped. Not collective. */
bool sort_outgrows(const struct sort *s);

/* Two buffers of the capacity each, and workspace; a rank that is alone may take less for the second one. The caller's output
 * serves as the first if it is large enough. Fills s->x and s->scratch_keys. Not collective. */
hsort_status sort_reserve(struct sort *s);

/* Memory for exchange_partition(), beside that of any sort: if not every rank has it, none tries.      Collective. */
hsort_status sort_reserve_partition(struct sort *s);

#endif
