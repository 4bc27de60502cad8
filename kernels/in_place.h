/* Sorting with scratch for a part of the keys only: in chunks that fit it, merged in place (in_place.c says
 * how). Both engines sort like this when sort() is given less scratch than keys; nobody else calls it. */
#ifndef IN_PLACE_H
#define IN_PLACE_H

#include "kernels/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keys of the largest chunk when count > 0 keys are cut evenly into as few as fit scratch of `scratch_count`;
 * 0 if that takes more than ENGINE_CHUNKS_MAX. */
int64_t in_place_chunk(int64_t count, int64_t scratch_count);

/* Sort codes [count] ascending; the result is in keys. On STREAM_WORK, but waits for it now and then.
 *   scratch    [scratch_count < count] engine memory; in_place_chunk() is not 0
 *   workspace  as sort_workspace() says for `rung` and a chunk with scratch of its own size
 * Errors   those of the engine's own sort, merge, cut, swap and copy. */
hsort_status in_place_sort(struct engine *engine, int rung, int key_bytes, void *keys, int64_t count,
                           void *scratch, int64_t scratch_count, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
