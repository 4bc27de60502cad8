/* Sorting with scratch for only a part of the keys: in chunks that fit it, merged in place (in_place.c says how). Both
 * engines sort like this when sort() is given less scratch than keys. Runs that have come from other ranks are merged
 * like this, too. */
#ifndef IN_PLACE_H
#define IN_PLACE_H

#include "kernels/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keys of the largest chunk if count > 0 keys are cut evenly into the fewest chunks that fit scratch of
 * `scratch_count`; 0 if that takes more than ENGINE_CHUNKS_MAX. */
int64_t in_place_chunk(int64_t count, int64_t scratch_count);

/* Sort codes [count] ascending; the result is in keys. On STREAM_WORK, but waits for it now and then.
 *   scratch    [scratch_count < count] engine memory; in_place_chunk() is not 0
 *   workspace  as sort_workspace() says for `rung` and a chunk with scratch of its own size
 * Errors   those of the engine's own sort, merge, cut, swap and copy. */
hsort_status in_place_sort(struct engine *engine, int rung, int key_bytes, void *keys, int64_t count,
                           void *scratch, int64_t scratch_count, void *workspace);

/* Merge runs that lie one behind the other. On STREAM_WORK, as above.
 *   keys     codes of key_bytes each; engine memory
 *   border   [runs + 1] ascending, on the host: run i is keys border[i] .. border[i + 1] - 1. Runs may be empty
 *   scratch  [scratch_count > 0] engine memory
 * Errors   those of the engine's own merge, cut, swap and copy. */
hsort_status in_place_merge(struct engine *engine, int key_bytes, void *keys, const int64_t *border,
                            int64_t runs, void *scratch, int64_t scratch_count);

#ifdef __cplusplus
}
#endif

#endif
