/* A host engine whose memory other processes can map, as they can map a GPU's, so that the transport ipc and
 * everything above it run without a GPU. It counts who maps what, and ends the test (MPI_Abort) if memory
 * is freed while a peer still maps it. */
#ifndef SHARED_ENGINE_H
#define SHARED_ENGINE_H

#include <stdbool.h>
#include "kernels/engine.h"

/* May the process of rank `reader` map memory of rank `owner`? NULL: all may. */
extern bool (*shared_may_map)(int owner, int reader);

/* Such a rule: some pairs may, and both ranks of a pair alike. */
bool shared_some_may(int owner, int reader);

/* The nth next open() of another process's memory by this process fails; 0: none. */
extern int shared_open_fails;

/* The nth next memory_free() of this process, and every later one, finds next to nothing; 0: all find what there is. */
extern int shared_fills_up;

/* Can the device of this process sort by regions? Asked in hsort_create(). */
extern bool shared_can_partition;

/* Engines that are opened while this is set share nothing: their limits of memory hold. */
extern bool shared_is_off;

/* Two of three calls of sort_regions() on raw keys leave the two end keys of each region exchanged; every second
 * settle_regions() then says that this is too much to be settled, as an engine may. */
extern bool shared_leaves_regions;

/* Keys of regions of one value that sort_regions() of this process has written. */
extern int64_t shared_written;

/* How often this process has mapped an allocation, and how many it maps now. */
extern int shared_opened, shared_mapped;

/* Open the engine with one thread. MPI must be initialised. Not collective. */
hsort_status shared_engine_open(struct engine **engine);

/* Memory of the caller's, which the engine did not hand out, but can export. Not collective. */
void *shared_alloc(size_t bytes);
void shared_free(void *memory); /* NULL is fine */

#endif
