/* Arrays that share one block of memory. The code that lays them out runs twice: first from NULL on, to learn how large the block must be,
 * then in the block. So size and layout cannot differ. With an alignment of 16:
 *
 *     from NULL     3 x 4 bytes at 0     2 x 8 at 16     5 x 1 at 32     48 in all
 *     from block    block                block + 16      block + 32
 *
 * A leaf: every layer may include it. */
#ifndef MEMORY_PARTS_H
#define MEMORY_PARTS_H

#include "kernels/base/lesser.h"

/* Take an array from the memory at *at, and move *at behind it. */
static inline void *take_aligned(char **at, int64_t count, size_t bytes, size_t alignment)
{
    void *part = *at;
    // By integers, because *at is NULL where only the size is wanted, and a pointer that is NULL takes no offset.
    *at = (char *)((uintptr_t)*at + bytes_rounded_up((size_t)count * bytes, alignment));
    return part;
}

/* The same in memory from malloc(). */
static inline void *take_table(char **at, int64_t count, size_t bytes)
{
    return take_aligned(at, count, bytes, _Alignof(max_align_t));
}

#endif
