/* Stores past the caches, if the machine has such stores: a plain store to memory that is not cached first reads the line
 * that it is about to overwrite. For much memory that is not read soon. A leaf.
 *
 *     plain store         read the line, write it in a cache, write it back later       two passes over memory
 *     past the caches     write it                                                      one */
#ifndef STREAM_STORE_H
#define STREAM_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { STREAM_STORE_ALIGNMENT = 16 };

/* Store `bytes`, a multiple of STREAM_STORE_ALIGNMENT, to `to`, which is aligned to it. stream_stores_end() must follow before
 * another thread reads them. */
static inline void stream_store(void *to, const void *from, size_t bytes)
{
#ifdef __SSE2__
    for (size_t i = 0; i < bytes / STREAM_STORE_ALIGNMENT; i++)
        _mm_stream_si128((__m128i *)to + i, _mm_loadu_si128((const __m128i *)from + i));
#else
    memcpy(to, from, bytes);
#endif
}

static inline void stream_stores_end(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/* memcpy() by such stores, for any number of bytes at any place. All threads see them as they see those of memcpy(). */
static inline void stream_copy(void *to, const void *from, size_t bytes)
{
    const size_t unaligned = (size_t)(-(uintptr_t)to % STREAM_STORE_ALIGNMENT),
                 head = unaligned < bytes ? unaligned : bytes,
                 body = (bytes - head) / STREAM_STORE_ALIGNMENT * STREAM_STORE_ALIGNMENT;
    memcpy(to, from, head);
    stream_store((char *)to + head, (const char *)from + head, body);
    memcpy((char *)to + head + body, (const char *)from + head + body, bytes - head - body);
    stream_stores_end();
}

#endif
