/* Numbered keys: a sort of struct raw_keys with position_bits sorts codes of 8 or 16 bytes, each made of a narrower key
 * and, below it, its position. So any rung's result is that of a stable sort, and tells where each key was:
 *
 *     keys         7 3 7      first 4, 3 bits of position
 *     codes        7:4 3:5 7:6
 *     sorted       3:5 7:4 7:6
 *     positions    5 4 6
 *
 * The general way, here, is a pass before the sort and one after it. Two sorts of keys of 4 bytes need neither pass:
 * rung 8 of the cuda engine, from MSD_ALONE_KEYS on, and a sort by regions (engine_partition_ops). There, codes of 8
 * bytes are made where keys are first loaded, and positions are stored where codes are last stored
 * (cuda/msd/coding.cuh). */
#ifndef NUMBERED_KEYS_H
#define NUMBERED_KEYS_H

#include "kernels/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool is_numbered(const struct raw_keys *raw)
{
    return raw && raw->position_bits > 0;
}

/* Are the positions all that is wanted? */
static inline bool wants_positions(const struct raw_keys *raw)
{
    return is_numbered(raw) && raw->decode && raw->positions;
}

/* Make codes [count] of key_bytes each from numbered keys. Errors those of make_codes(). */
hsort_status numbered_keys_encode(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                  void *codes, int64_t count);

/* Take the positions from sorted codes, if they are wanted. *sorted: the codes; the positions, if the codes have become
 * these. Errors those of split_codes(). */
hsort_status numbered_keys_decode(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                  int64_t count, void **sorted);

#ifdef __cplusplus
}
#endif

#endif
