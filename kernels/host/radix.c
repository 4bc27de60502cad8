/* Radix sort on CPU cores: most significant bits first down to the size of a cache, least significant digit first in
 * it.
 *
 * A sort of 2^26 keys by eight digits of 8 bits would carry every key through memory eight times. Here each key goes
 * through memory once: all threads together partition the keys by their leading bits into bins that fit a core's cache,
 * then each thread takes bins and sorts them alone, by two digits: from the bin to a buffer that stays in the cache,
 * and from there to the place where the keys belong. In a bin only as many leading bits are sorted as it takes to
 * separate about `count` evenly spread keys; keys that still tie, and are not in order by chance, are then sorted among
 * themselves.
 *
 *   keys (octal)      7352 7011 7357 7063 7012 7350 7061 7013      all agree in the first digit
 *   partition by      7011 7063 7012 7061 7013 | 7352 7357 7350    the next digit, whatever its place
 *   cached, digit 2   7011 7012 7013 7063 7061 | 7352 7357 7350    stable; then the ties in all sorted bits
 *   ties              7011 7012 7013 7061 7063 | 7350 7352 7357    7352 7357 were in order, 7350 was not
 *
 * Which bits differ is not asked first, in a pass of its own, but found while the keys are counted: a count by bits
 * that turn out to be the same in all keys is made once more. At every level, keys in order, up or down, are only
 * copied or reversed; that other keys are not in order is seen after the first few.
 *
 * Partition and threads: the keys are cut into one contiguous part per thread. Each thread counts its part; bin by bin,
 * and in a bin thread by thread, the counts become the places to write to. So no two threads write to one place. A
 * thread gathers the keys of each bin in a line of its own and writes whole lines past the cache: a plain store would
 * first read the line it is about to overwrite.
 *
 * A bin too heavy for one thread is partitioned again by all threads; a bin too large for a cache is partitioned again
 * by its thread alone. So skew adds passes, but only over the keys of such bins, and each pass leaves fewer bits in
 * which these keys differ. Many small numbers of all lengths (or, as codes, small negative ones) would nearly fill the
 * first (last) bin at each of these levels. So they are cut by length, as floating point numbers are: into one bin for
 * each place of the highest bit and each value of the bits that follow it. Here with one such bit:
 *
 *   key           0  1  2  3  4  5  6  7  8 .. 11  12 .. 15  16 .. 23  24 .. 31
 *   in binary     0  1 10 11 100 .   110 .  10xx   11xx      10xxx     11xxx
 *   even, 8 bins  0  0  0  0  1  1  1  1  2  2     3  3      4  5      6  7
 *   by length     0  1  2  3  4  4  5  5  6        7         8         9
 *
 * Source   McIlroy, Bostic, McIlroy, "Engineering radix sort", 1993 (most significant first); Satish, Kim,
 *          Chhugani, Nguyen, Lee, Kim, Dubey, "Fast sort on CPUs and GPUs: a case for bandwidth oblivious
 *          SIMD sort", 2010 (scatter through a buffer of lines in each thread). */
#include <omp.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "kernels/base/stream_store.h"
#include "kernels/host/host_engine.h"

enum {
    SMALL_COUNT = 32, // sorted by insertion
    ORDER_CHUNK = 64, // keys looked at together for whether they are in order
    CACHED_BITS = 16, // log2 of the keys that one thread sorts in its cache, at most: cached_bits()
    DIGITS_MAX = 2,   // of a sort in the cache: there and back
    DIGIT_BITS_MAX = 9,
    SPARE_BITS = 2, // sorted beyond log2(count): of evenly spread keys, about one in 2^SPARE_BITS ties
    PARTITION_BITS_MIN = 6, // bins for every thread, even if fewer bins would fit the cache
    PARTITION_BITS_MAX = 11,
    SKEWED_SHARE = 8, // a first or last bin with more than 1 / SKEWED_SHARE of the keys: perhaps cut by length
    SAMPLE_COUNT = 1024,      // keys that decide it
    WIDTH_SAMPLE_COUNT = 256, // codes of 16 bytes that say how many bits differ, until all have been counted
    LENGTH_BITS = 5,          // of a key cut by length that follow its highest one, at most: length_bits()
    FETCH_BYTES = 64,         // of a cache line
    LINE_BYTES = 128 // of memory written together: two cache lines, so that only half as many keys end a line
};
_Static_assert(DIGITS_MAX *DIGIT_BITS_MAX >= CACHED_BITS + SPARE_BITS,
               "two digits are enough for a cached sort");

/* A cache holds half as many keys of 16 bytes. */
static inline int cached_bits(size_t key_bytes)
{
    return key_bytes > sizeof(uint64_t) ? CACHED_BITS - 1 : CACHED_BITS;
}

/* Twice as many lengths leave each length a bit less. */
static inline int length_bits(size_t key_bytes)
{
    return key_bytes > sizeof(uint64_t) ? LENGTH_BITS - 1 : LENGTH_BITS;
}
_Static_assert((64 - LENGTH_BITS + 1) << LENGTH_BITS <= 1 << PARTITION_BITS_MAX &&
                   (128 - LENGTH_BITS + 2) << (LENGTH_BITS - 1) <= 1 << PARTITION_BITS_MAX,
               "bins by length fit");

/* One thread's part of the workspace. */
struct radix_thread {
    union {
        unsigned char lines[1 << PARTITION_BITS_MAX]
                           [LINE_BYTES]; // partition: keys of a bin on their way to memory
        uint64_t cache[1 << CACHED_BITS]; // cached sort: keys between its two passes
    };
    int64_t first[1 << PARTITION_BITS_MAX];           // place of this thread's first key of a bin
    int64_t next[1 << PARTITION_BITS_MAX];            // place of its next key; before that: their number
    uint32_t places[DIGITS_MAX][1 << DIGIT_BITS_MAX]; // of a cached sort
    uint128 differ;                                   // bits in which its keys differ from the first of all
    unsigned char unused[LINE_BYTES - sizeof(uint128)];
};
_Static_assert(sizeof(struct radix_thread) % LINE_BYTES == 0, "every thread's lines are aligned");

/* The bits that a cached sort goes by: `number` digits of `bits` each, those above the lowest `shift`. */
struct digits {
    int number, bits, shift;
};

/* The digits that separate about `count` keys that differ in their low `width` bits. */
static struct digits digits_for(int64_t count, int width)
{
    const int sorted = (int)lesser(width, bit_width((uint64_t)count - 1) + SPARE_BITS);
    struct digits digits = {.number = sorted > DIGIT_BITS_MAX ? 2 : 1};
    digits.bits = (int)divide_up(sorted, digits.number);
    digits.shift = (int)greater(width - digits.number * digits.bits, 0);
    return digits;
}

/* How keys that agree in all but their low `width` bits are cut into bins. */
struct cut {
    int width, bins;
    bool by_length;
    int bits, shift; // not by length: bin = the `bits` above the lowest `shift`
    bool flip;       // by length: of the inverted bits
    int length_bits; // by length
};

/* Cut by the leading bits: bins should half fill the cache. */
static struct cut cut_evenly(size_t key_bytes, int64_t count, int width)
{
    const int fitting = bit_width((uint64_t)count - 1) - (cached_bits(key_bytes) - 1);
    const int bits = (int)lesser(int64_clamp(fitting, PARTITION_BITS_MIN, PARTITION_BITS_MAX), width);
    return (struct cut){.width = width, .bins = 1 << bits, .bits = bits, .shift = width - bits};
}

/* Cut by the length of what follows the bits that all keys share, and by the length_bits() below its highest one. */
static struct cut cut_by_length(size_t key_bytes, int width, bool flip)
{
    const int bits = length_bits(key_bytes);
    return (struct cut){.width = width,
                        .bins = (width - bits + 1) << bits,
                        .by_length = true,
                        .flip = flip,
                        .length_bits = bits};
}

/* How many bits of `rest` lie below those that its bin is known by, which are the highest one and `bits` more. */
static inline int length_shift(uint128 rest, int bits)
{
    return bit_width(rest | 1U << bits) - 1 - bits;
}

/* Low bits in which the keys of a bin may still differ. */
static int cut_rest(struct cut cut, int bin)
{
    if (!cut.by_length)
        return cut.shift;
    const int length = (cut.flip ? cut.bins - 1 - bin : bin) >> cut.length_bits;
    return length > 1 ? length - 1 : 0;
}

/* What a cut leaves to do: the keys of each bin times the bits that number them. keys_of [cut.bins]. */
static int64_t cut_work(struct cut cut, const int64_t *keys_of)
{
    int64_t work = 0;
    for (int bin = 0; bin < cut.bins; bin++)
        work += keys_of[bin] * bit_width((uint64_t)keys_of[bin]);
    return work;
}

/* The bits in which keys differ, as the `parts` threads of a team have found. */
static uint128 team_differ(const struct radix_thread *team, int parts)
{
    uint128 differ = 0;
    for (int part = 0; part < parts; part++)
        differ |= team[part].differ;
    return differ;
}

/* The keys that a team has counted in a bin. */
static int64_t team_keys(const struct radix_thread *team, int parts, int bin)
{
    int64_t keys = 0;
    for (int part = 0; part < parts; part++)
        keys += team[part].next[bin];
    return keys;
}

/* Turn a team's counts into places; ends [bins] = where each bin ends. */
static void team_place(struct radix_thread *team, int parts, int bins, int64_t *ends)
{
    int64_t place = 0;
    for (int bin = 0; bin < bins; bin++) {
        for (int part = 0; part < parts; part++) {
            const int64_t keys_here = team[part].next[bin];
            team[part].next[bin] = place;
            place += keys_here;
        }
        ends[bin] = place;
    }
}

#define KEY_WIDTH_BODY "kernels/host/radix_body.h"
#include "kernels/host/for_key_widths.h"

size_t radix_workspace(int threads)
{
    return (size_t)threads * sizeof(struct radix_thread);
}

void radix_sort(int threads, int key_bytes, void *keys, void *scratch, int64_t count, void *workspace)
{
    KEY_CALL(key_bytes, sort_range, keys, scratch, keys, count, 8 * key_bytes, workspace, threads);
}
