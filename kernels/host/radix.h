/* Radix sort on CPU cores: rung 7 of the host engine (radix.c says how it works). */
#ifndef RADIX_H
#define RADIX_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of workspace that radix_sort() needs with `threads` threads. */
size_t radix_workspace(int threads);

/* Sort keys [count] of `key_bytes` (4, 8 or 16) ascending; the result is in keys. scratch [count] is
 * overwritten or not touched. workspace [radix_workspace(threads)] is aligned to 128 bytes. */
void radix_sort(int threads, int key_bytes, void *keys, void *scratch, int64_t count, void *workspace);

#endif
