/* Radix sort on CPU cores: most significant bits first down to the size of a cache, least significant digit
 * first in it.
 *
 * A sort of 2^26 keys by eight digits of 8 bits would carry every key through memory eight times. Here it
 * goes through memory once: all threads together partition the keys by their leading bits into bins that fit
 * a core's cache, then each thread takes bins and sorts them alone. In a bin only as many leading bits are
 * sorted as it takes to tell about `count` evenly spread keys apart; the few that still tie are then sorted
 * among themselves. Bits in which all keys agree cost nothing at any level, and a range that is in order
 * already is left as it is.
 *
 *   keys (octal)      7352 7011 7357 7063 7012 7350 7061 7013      survey: all agree in the first digit
 *   partition by      7011 7063 7012 7061 7013 | 7352 7357 7350    the next digit, whatever its place
 *   cached, digit 2   7011 7012 7013 7063 7061 | 7352 7357 7350    stable; then the ties in all sorted bits
 *   ties              7011 7012 7013 7061 7063 | 7350 7352 7357
 *
 * Partition and threads: the keys are cut into one contiguous part per thread. Each thread counts its part;
 * bin by bin, and in a bin thread by thread, the counts become the places to write to. So no two threads
 * write to one place, and the order of equal keys is kept. A thread gathers the keys of each bin in a line of
 * its own and writes whole cache lines past the cache: a plain store would first read the line it is about to
 * overwrite.
 *
 * A bin too heavy for one thread is partitioned again by all of them, one too large for a cache by its thread
 * alone: skew adds passes, but only over the keys of such bins, and each leaves fewer bits in which they differ.
 *
 * Source   McIlroy, Bostic, McIlroy, "Engineering radix sort", 1993 (most significant first); Satish, Kim,
 *          Chhugani, Nguyen, Lee, Kim, Dubey, "Fast sort on CPUs and GPUs: a case for bandwidth oblivious
 *          SIMD sort", 2010 (scatter through a buffer of lines in each thread).
 */
#include "radix.h"
#include <omp.h>
#include <stdbool.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    SMALL_COUNT = 32, // sorted by insertion
    CACHED_BITS = 16, // log2 of the keys that one thread sorts in its cache
    DIGIT_BITS = 8,   // of a pass in the cache
    SPARE_BITS = 3,   // sorted beyond log2(count): of evenly spread keys, about one in 2^SPARE_BITS ties
    DIGITS_MAX = 3,   // enough for CACHED_BITS + SPARE_BITS
    PARTITION_BITS_MIN = 6, // bins for every thread, also where they would fit the cache before
    PARTITION_BITS_MAX = 11,
    LINE_BYTES = 64 // of a cache line
};
_Static_assert(DIGITS_MAX *DIGIT_BITS >= CACHED_BITS + SPARE_BITS,
               "a cached sort counts DIGITS_MAX digits at once");

/* One thread's part of the workspace. */
struct radix_thread {
    unsigned char lines[1 << PARTITION_BITS_MAX][LINE_BYTES]; // keys of a bin on their way to memory
    int64_t first[1 << PARTITION_BITS_MAX];                   // place of this thread's first key of a bin
    int64_t next[1 << PARTITION_BITS_MAX];        // place of its next key; before that: their number
    uint32_t places[DIGITS_MAX][1 << DIGIT_BITS]; // of a cached sort
};
_Static_assert(sizeof(struct radix_thread) % LINE_BYTES == 0, "every thread's lines are aligned");

/* Bits up to the highest one set; 0 for 0. */
static int bit_width(uint64_t bits)
{
    return bits ? 64 - __builtin_clzll(bits) : 0;
}

/* Bits to partition `count` keys by that differ in their low `width` bits: bins should half fill the cache.
 * */
static int partition_bits(int64_t count, int width)
{
    int bits = bit_width((uint64_t)count - 1) - (CACHED_BITS - 1);
    if (bits < PARTITION_BITS_MIN)
        bits = PARTITION_BITS_MIN;
    if (bits > PARTITION_BITS_MAX)
        bits = PARTITION_BITS_MAX;
    return bits < width ? bits : width;
}

/* Write one cache line, past the caches where the machine can; both sides are aligned. lines_written() must
 * follow before another thread reads it. */
static inline void line_write(void *to, const void *line)
{
#ifdef __SSE2__
    for (int i = 0; i < LINE_BYTES / 16; i++)
        _mm_stream_si128((__m128i *)to + i, _mm_load_si128((const __m128i *)line + i));
#else
    memcpy(to, line, LINE_BYTES);
#endif
}

static inline void lines_written(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

#define KEY uint32_t
#define NAMED(name) name##_u32
#include "radix_body.h"
#undef KEY
#undef NAMED

#define KEY uint64_t
#define NAMED(name) name##_u64
#include "radix_body.h"
#undef KEY
#undef NAMED

size_t radix_workspace(int threads)
{
    return (size_t)threads * sizeof(struct radix_thread);
}

void radix_sort(int threads, int key_bytes, void *keys, void *scratch, int64_t count, void *workspace)
{
    if (key_bytes == 4)
        sort_range_u32(keys, scratch, keys, count, workspace, threads);
    else
        sort_range_u64(keys, scratch, keys, count, workspace, threads);
}
