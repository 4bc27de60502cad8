/* A sort of keys or elements for which neither the engine nor the host has memory: two passes like those of two_passes.c, but
 * the runs lie in a store (run_store.h), and what an earlier call has made of the same sort is not made again.
 * src/library/README.md pictures it. */
#ifndef DISK_PASSES_H
#define DISK_PASSES_H

#include "src/library/sort_memory.h"

/* Sort what s->source gives into s->sink on all ranks, with runs in s->store. Counts are agreed on, and positions are in the
 * context. Streams are asked for positions of any rank's keys, counted from this rank's first.
 * Collective.
 * After    s->form is FORM_DELIVERED; s->check, unless NULL, says what the runs and the segments are like, those made
 *          before included; s->runs, s->segments and s->seconds are written.
 * Memory   store->memory_bytes at most, and 1 KiB for each run: four slots and the sort's workspace in engine memory, fences, and
 *          what is read of runs to cut them. With a GPU this bounds host memory alone.
 * Errors   same on every rank: the streams', the store's, the engine's; HSORT_STOPPED; HSORT_HOST_MEMORY, HSORT_DEVICE_MEMORY:
 *          the line says how much would do.
 * Source   Rahn, Sanders, Singler, "Scalable distributed-memory external sorting", 2010 (runs, exact selection, exact
 *          output); here one rank makes each run, without an exchange, instead of global runs. */
hsort_status disk_passes_run(struct sort *s);

#endif
