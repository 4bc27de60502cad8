/* Loops over all keys on CPU cores. */
#ifndef KEYS_H
#define KEYS_H

#include "kernels/engine.h"

/* to[i] = the code of from[i]; decode: the key of the code from[i]. [count] each; `to` may be `from`. */
void map_keys(int threads, struct keymap map, bool decode, void *to, const void *from, int64_t count);

/* out[from] .. out[until - 1] = key. */
void repeat_key(int key_bytes, key_code key, void *out, int64_t from, int64_t until);

/* engine_ops.inspect(). */
void inspect_keys(int threads, struct keymap map, const void *keys, int64_t count,
                  struct engine_inspection *found);

#endif
