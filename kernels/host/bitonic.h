/* Bitonic sort on CPU cores: rung 1 of the host engine (bitonic.c says how it works). */
#ifndef BITONIC_H
#define BITONIC_H

#include <stdint.h>

/* Sort keys [count] of `key_bytes` (4, 8 or 16) ascending, in place. */
void bitonic_sort(int threads, int key_bytes, void *keys, int64_t count);

#endif
