/* What the tests of kernels/engine.h share: the engine under test, buffers in its memory, and keys to fill
 * them with.
 *
 * A buffer lies between two guards of poison and may start at any multiple of the key size, as the interface
 * allows. */
#ifndef ENGINE_TEST_H
#define ENGINE_TEST_H

#include <malloc.h>
#include "tests/support/check.h"
#include "kernels/base/key_width.h"
#include "kernels/spare_memory.h"
#include "kernels/traced_engine.h"
#include "tests/support/radix_order.h"

enum {
    GUARD = 256, // bytes of poison on either side of a buffer
    POISON = 0xa5
};

static struct engine *engine;
static const struct engine_ops *ops;

/* Stop at once: what follows would make no sense. */
static inline void must(hsort_status status, const char *what)
{
    if (status == HSORT_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, hsort_strerror(status), status_text());
    exit(1);
}

/* ---- buffers ---- */

/* [bytes] of engine memory between guards, and its image on the host, where the test looks at it. */
struct buffer {
    size_t bytes, offset; // of the keys from the start of both
    char *memory, *image;
};

/* Memory that freed buffers gave back, kept for later buffers and grouped by the bit length of its size: a driver takes longer to
 * find memory than an engine takes to sort a few keys. Under a sanitizer buffers are exact: each has memory of its own, so that the
 * sanitizer sees an access beyond a guard. */
static struct spare_memory buffer_memory[64];
static bool buffers_are_exact;

static inline size_t buffer_size(const struct buffer *buffer)
{
    return buffer->offset + buffer->bytes + GUARD;
}

static inline struct spare_memory *memory_of(const struct buffer *buffer)
{
    struct spare_memory *memory = &buffer_memory[63 - __builtin_clzll(buffer_size(buffer))];
    memory->engine = engine;
    return memory;
}

static inline void *alloc_or_exit(size_t bytes)
{
    void *memory = malloc(bytes);
    must(memory ? HSORT_OK : HSORT_HOST_MEMORY, "malloc");
    return memory;
}

static inline void copy_now(void *to, const void *from, size_t bytes)
{
    must(ops->copy(engine, STREAM_WORK, to, from, bytes), "copy");
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
}

/* Return [bytes] of poison, good until the next call. */
static inline const char *poison_of(size_t bytes)
{
    static char *poison;
    static size_t room;
    if (room < bytes) {
        free(poison);
        poison = alloc_or_exit(bytes);
        memset(poison, POISON, bytes);
        room = bytes;
    }
    return poison;
}

/* Return a new buffer. It is all poison, except for `from` [bytes] unless that is NULL. It begins `shift` bytes off the alignment
 * of alloc(). */
static inline struct buffer buffer_new(const void *from, size_t bytes, size_t shift)
{
    struct buffer buffer = {bytes, GUARD + shift, NULL, NULL};
    const size_t size = buffer_size(&buffer);
    void *memory;
    must(spare_take(memory_of(&buffer), size, &memory), "alloc");
    buffer.memory = memory;
    buffer.image = alloc_or_exit(size);
    if (from) {
        memset(buffer.image, POISON, buffer.offset);
        memcpy(buffer.image + buffer.offset, from, bytes);
        memset(buffer.image + buffer.offset + bytes, POISON, GUARD);
    }
    copy_now(buffer.memory, from ? buffer.image : poison_of(size), size);
    return buffer;
}

static inline void *buffer_keys(const struct buffer *buffer)
{
    return buffer->memory + buffer->offset;
}

/* The guards in the image must be as they were. */
static inline void check_guards_in_image(const struct buffer *buffer, const char *what)
{
    const char *poison = poison_of(buffer->offset + GUARD);
    const bool front = memcmp(buffer->image, poison, buffer->offset) == 0;
    const bool back = memcmp(buffer->image + buffer->offset + buffer->bytes, poison, GUARD) == 0;
    CHECK(front && back, "%s: bytes %s a buffer of %zu are overwritten", what, front ? "behind" : "before",
          buffer->bytes);
}

/* Bring the image up to date and return the keys in it. The guards must be as they were. */
static inline const void *buffer_result(struct buffer *buffer, const char *what)
{
    copy_now(buffer->image, buffer->memory, buffer_size(buffer));
    check_guards_in_image(buffer, what);
    return buffer->image + buffer->offset;
}

/* Check a buffer of which only the guards matter: they alone are copied to the image. */
static inline void buffer_guards(struct buffer *buffer, const char *what)
{
    const size_t end = buffer->offset + buffer->bytes;
    copy_now(buffer->image, buffer->memory, buffer->offset);
    copy_now(buffer->image + end, buffer->memory + end, GUARD);
    check_guards_in_image(buffer, what);
}

static inline void buffer_free(struct buffer *buffer)
{
    spare_give(memory_of(buffer), buffer->memory);
    free(buffer->image);
    if (buffers_are_exact)
        spare_drop(memory_of(buffer));
}

/* ---- keys ---- */

/* X(name): what keys are like */
#define PATTERN_LIST(X)                                                                                     \
    X(UNIFORM)                                                                                              \
    X(SORTED)                                                                                               \
    X(REVERSE)                                                                                              \
    X(REVERSE_STEPS)   /* never ascends, many equal */                                                      \
    X(REVERSE_BUT_ONE) /* one ascent, at the very end */                                                    \
    X(ROTATED)         /* one descent, where the second of three threads starts */                          \
    X(EQUAL)                                                                                                \
    X(TWO_VALUES)                                                                                           \
    X(HALVES)      /* by the top bit, evenly: of 2^17 keys each half just fits a cache */                   \
    X(SPARSE_BITS) /* differ in one bit of each byte alone */                                               \
    X(LOW_16_BITS)                                                                                          \
    X(HIGH_BITS)                                                                                            \
    X(ALL_ONES)          /* the greatest key, which a sort may be tempted to pad with */                    \
    X(MAGNITUDES)        /* evenly many of every bit length: one bin holds most of them, again and again */ \
    X(MAGNITUDES_DOWN)   /* the same below the greatest key: the last bin */                                \
    X(MAGNITUDES_AROUND) /* small integers of either sign, as codes: both bins in the middle */             \
    X(OUTLIER)           /* one key has a high bit, and one of three threads sees it */                     \
    X(HALF_ZERO)         /* as many in the first bin, but no use to look at bit lengths */                  \
    X(CLUSTERS) /* 16 high parts with the same low halves: bins of middling size, many ties in leading bits */

enum pattern {
#define X(name) name,
    PATTERN_LIST(X)
#undef X
        PATTERNS
};

static const char *const pattern_names[] = {
#define X(name) #name,
    PATTERN_LIST(X)
#undef X
};

/* The patterns that matter where runs are cut and moved; the others are for sorts by digits. */
static const enum pattern few_patterns[] = {UNIFORM,    SORTED,     REVERSE,  ROTATED,    EQUAL,
                                            TWO_VALUES, MAGNITUDES, CLUSTERS, LOW_16_BITS};
enum { FEW_PATTERNS = sizeof few_patterns / sizeof few_patterns[0] };

/* Any code of 128 bits. */
static inline key_code random_code(uint64_t *random)
{
    const key_code upper = check_random(random);
    return upper << 64 | check_random(random);
}

static inline key_code key_of(enum pattern pattern, int bits, int64_t i, int64_t count, uint64_t *random)
{
    const key_code all = key_max(bits / 8);
    const key_code any = random_code(random) & all;
    switch (pattern) {
    case SORTED:
        return (key_code)i * 3;
    case REVERSE:
        return (key_code)(count - i) * 3;
    case REVERSE_STEPS:
        return (uint64_t)(count - i) / 100;
    case REVERSE_BUT_ONE:
        return i == count - 1 ? all : (key_code)(count - i) * 3;
    case ROTATED:
        return (uint64_t)(i < 1 + (count - 1) / 3 ? count + i : i);
    case EQUAL:
        return 42;
    case TWO_VALUES:
        return any & 1 ? all - 7 : 7;
    case HALVES:
        return (any & 0xff) | (i % 2 ? all ^ (all >> 1) : 0);
    case SPARSE_BITS:
        return any & (all / 255 << 7);
    case LOW_16_BITS:
        return any & 0xffff;
    case HIGH_BITS:
        return any & ~(all >> 12);
    case ALL_ONES:
        return all;
    case MAGNITUDES:
        return any >> (check_random(random) % (uint64_t)bits);
    case MAGNITUDES_DOWN:
        return all ^ any >> (check_random(random) % (uint64_t)bits);
    case MAGNITUDES_AROUND:
        return (all >> 1) +
               ((any & 1) ? 1 : all) * (any >> 1 >> (check_random(random) % (uint64_t)(bits - 1)));
    case OUTLIER:
        return (any & 0xffff) | (i == count / 2 ? all ^ (all >> 1) : 0);
    case HALF_ZERO:
        return i % 2 ? any : 0;
    case CLUSTERS:
        return any & ~(all >> 4 & ~(all >> bits / 2));
    default:
        return any;
    }
}

/* The keys of a part are drawn one after the other. Parts are drawn at the same time, each from a seed of its own, so that the keys
 * do not depend on the number of threads. */
enum { DRAW_PART = 1 << 14 };

static inline uint64_t draw_part_seed(uint64_t seed, int64_t part)
{
    uint64_t state = seed + (uint64_t)part;
    return check_random(&state);
}

static inline int64_t draw_part_end(int64_t begin, int64_t count)
{
    return begin + DRAW_PART < count ? begin + DRAW_PART : count;
}

static inline void *keys_new(enum pattern pattern, int key_bytes, int64_t count, uint64_t *random)
{
    char *keys = alloc_or_exit((size_t)count * (size_t)key_bytes + 1);
    const uint64_t seed = check_random(random);
#pragma omp parallel for if (count > DRAW_PART)
    for (int64_t begin = 0; begin < count; begin += DRAW_PART) {
        uint64_t own = draw_part_seed(seed, begin);
        for (int64_t i = begin; i < draw_part_end(begin, count); i++) {
            const key_code key = key_of(pattern, 8 * key_bytes, i, count, &own);
            memcpy(keys + i * key_bytes, &key, (size_t)key_bytes); // little-endian
        }
    }
    return keys;
}

static inline hsort_type unsigned_type(int key_bytes)
{
    return key_bytes == 4 ? HSORT_U32 : key_bytes == 8 ? HSORT_U64 : HSORT_U128;
}

static inline void sort_on_host(int key_bytes, void *keys, int64_t count)
{
    radix_sort_bits((size_t)key_bytes, keys, count);
}

/* The types of keys that are sorted: those before the first one that is counted. */
enum { KEY_KINDS = HSORT_U128 + 1 };

/* Where a result [count] first differs from what was expected; -1 if nowhere. */
static inline int64_t first_difference(const void *result, const void *expected, int key_bytes, int64_t count)
{
    const char *left = result, *right = expected;
    if (count <= 0 || memcmp(left, right, (size_t)(count * key_bytes)) == 0)
        return -1;
    for (int64_t i = 0; i < count; i++)
        if (memcmp(left + i * key_bytes, right + i * key_bytes, (size_t)key_bytes) != 0)
            return i;
    return -1;
}

static inline void store(int key_bytes, void *keys, int64_t i, key_code bits)
{
    const size_t bytes = key_bytes < (int)sizeof bits ? (size_t)key_bytes : sizeof bits; // so that a compiler sees the bound
    memcpy((char *)keys + i * key_bytes, &bits, bytes); // little-endian
}

static inline void shuffle(uint64_t *items, int count, uint64_t *random)
{
    for (int i = count - 1; i > 0; i--) {
        const int other = (int)(check_random(random) % (uint64_t)(i + 1));
        const uint64_t kept = items[i];
        items[i] = items[other];
        items[other] = kept;
    }
}

/* ---- the engine under test ---- */

/* Does a sanitizer look on? The build says whether ASan does; HYPERSORT_SANITIZE or "small" says that compute-sanitizer does. */
static inline bool is_sanitized(int argc, char **argv)
{
#ifdef __SANITIZE_ADDRESS__
    return true;
#endif
    return getenv("HYPERSORT_SANITIZE") || (argc > 2 && strcmp(argv[2], "small") == 0);
}

/* Open the engine that the arguments name: `host [THREADS]` or `cuda`. Exits with CHECK_SKIPPED without a
 * GPU. */
static inline void open_engine(int argc, char **argv)
{
    char why[256];
    const char *name = argc > 1 ? argv[1] : "";
    // Large images come and go all the time: keep their pages in the process instead of having them made anew each time.
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    buffers_are_exact = is_sanitized(argc, argv);
    status_clear();
    if (strcmp(name, "host") == 0) {
        const int threads = argc > 2 ? atoi(argv[2]) : 2;
        must(engine_open_host(threads, 0, &engine), "engine_open_host");
        // Call the engine through the functions that a trace has for each of the engine's functions: they must do the same.
        if (threads > 1)
            must(engine_trace(engine, NULL), "engine_trace");
    } else if (strcmp(name, "cuda") != 0) {
        fprintf(stderr, "usage: %s host [THREADS] | cuda\n", argv[0]);
        exit(1);
    } else if (cuda_device_count(why, sizeof why) == 0) {
        printf("skipped: %s\n", why);
        exit(CHECK_SKIPPED);
    } else {
        must(engine_open_cuda(0, 0, &engine), "engine_open_cuda");
    }
    ops = engine->ops;
}

/* Call it after the last buffer is freed. */
static inline void close_engine(void)
{
    for (int bits = 0; bits < 64; bits++)
        spare_drop(&buffer_memory[bits]);
    engine->ops->close(engine);
}

#endif
