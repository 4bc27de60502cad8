/* Inputs made on the device, for the tests and the benchmark of the ladder: keys by pattern, and values that
 * say where they came from. */
#ifndef LADDER_INPUT_CUH
#define LADDER_INPUT_CUH

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "kernels/cuda/ladder/ladder.h"
#include "hypersort.h"

/* X(name, word): what key i of `count` is */
#define LADDER_INPUTS(X)                                                                               \
    X(UNIFORM, "uniform") /* every bit pattern equally likely */                                       \
    X(EQUAL, "equal")     /* one value */                                                              \
    X(LARGEST, "largest") /* the largest key, with which rungs fill up their last tile */              \
    X(TWO, "two")         /* the smallest and the largest key */                                       \
    X(SORTED, "sorted")   /* ascending over the whole range */                                         \
    X(REVERSE, "reverse")                                                                              \
    X(NARROW, "narrow:16")  /* uniform in the low 16 bits, 0 above */                                  \
    X(DIGIT2, "digit2")     /* only one 8-bit digit varies, so the number of radix passes is odd */    \
    X(STAIRS, "stairs")     /* ascending, 64 values */                                                 \
    X(ZIPF, "zipf")         /* k with a probability of about 1/k, k = 1 .. 2^20 */                     \
    X(ENTROPY2, "entropy2") /* each bit set with probability 1/4: 2 uniform words, ANDed */            \
    X(ENTROPY3, "entropy3") /* 1/8: 3 words. CUB's benchmarks grade entropy so; 1 word is "uniform" */ \
    X(FLOATS, "floats")     /* codes of floats uniform in [-1, 1) */                                   \
    X(STRIDED, "strided")   /* i times a power of two: a digit is 0, 16, .. 240, bins in few banks */

enum ladder_input {
#define X(name, word) name,
    LADDER_INPUTS(X)
#undef X
        LADDER_INPUT_COUNT
};

static inline const char *ladder_input_word(int input)
{
    static const char *const words[] = {
#define X(name, word) word,
        LADDER_INPUTS(X)
#undef X
    };
    return words[input];
}

/* What is sorted: keys of `key_bytes`, each with a value of `value_bytes` or none. */
struct ladder_type {
    const char *word;
    int key_bytes, value_bytes;
};

static const struct ladder_type ladder_types[] = {
    {"u32", 4, 0}, {"u64", 8, 0}, {"4+4", 4, 4}, {"8+4", 8, 4}, {"8+8", 8, 8},
};
enum { LADDER_TYPES = sizeof ladder_types / sizeof ladder_types[0] };

/* Stop the program where the engine reports an error. */
#define MUST(call)                                                             \
    do {                                                                       \
        if ((call) != HSORT_OK) {                                              \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, status_text()); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

/* Word `number` of the random sequence that belongs to (seed, i). */
static inline __host__ __device__ uint64_t random_word(uint64_t seed, int64_t i, int number)
{
    uint64_t r =
        (seed + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)number * UINT64_C(0xd1b54a32d192ed03);
    r = (r ^ (r >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    r = (r ^ (r >> 27)) * UINT64_C(0x94d049bb133111eb);
    return r ^ (r >> 31);
}

/* The bits of a float, turned round so that they order as it does: what the radix rungs see of floats. */
template <typename K>
static __device__ K make_float_code(uint64_t r)
{
    const double number = (double)(r >> 11) * 0x1p-52 - 1;
    const K bits = sizeof(K) == 4 ? (K)__float_as_uint((float)number) : (K)__double_as_longlong(number);
    const K sign = (K)1 << (sizeof(K) * 8 - 1);
    return bits & sign ? (K)~bits : bits | sign;
}

template <typename K>
static __device__ K make_key(int input, uint64_t seed, int64_t i, int64_t count)
{
    const uint64_t r = random_word(seed, i, 0);
    const K largest = (K) ~(K)0;
    const K step = (K)(largest / (uint64_t)count) | 1;
    switch (input) {
    case UNIFORM:
        return (K)r;
    case EQUAL:
        return 42;
    case LARGEST:
        return largest;
    case TWO:
        return r & 1 ? largest : 0;
    case SORTED:
        return (K)i * step;
    case REVERSE:
        return (K)(largest - (K)i * step);
    case NARROW:
        return (K)(r & 0xffff);
    case DIGIT2:
        return (K)(0x11003322u | (uint32_t)(r & 0xff) << 16);
    case ZIPF:
        return (K)exp2f(20 * (float)(r >> 40) * 0x1p-24f); // the logarithm is uniform
    case ENTROPY2:
        return (K)(r & random_word(seed, i, 1));
    case ENTROPY3:
        return (K)(r & random_word(seed, i, 1) & random_word(seed, i, 2));
    case FLOATS:
        return make_float_code<K>(r);
    case STRIDED:
        return (K)i << (sizeof(K) * 8 - 28);
    default: // STAIRS
        return (K)(i * 64 / count) << (sizeof(K) * 8 - 7);
    }
}

/* The value of the key at `position`: the position itself, and above it, where there is room, bits that only
 * this position has, so that a value that was torn apart is noticed. */
enum { POSITION_BITS = 40 };

template <typename V>
static __device__ V make_value(int64_t position)
{
    if (sizeof(V) == 4)
        return (V)position;
    return (V)((uint64_t)position | random_word(0, position, 0) << POSITION_BITS);
}

template <typename V>
static __device__ int64_t position_of(V value)
{
    return (int64_t)((uint64_t)value & ((UINT64_C(1) << POSITION_BITS) - 1));
}

template <typename K>
static __global__ void fill_kernel(K *keys, int64_t count, int input, uint64_t seed)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        keys[i] = make_key<K>(input, seed, i, count);
}

template <typename V>
static __global__ void fill_values_kernel(V *values, int64_t count)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        values[i] = make_value<V>(i);
}

/* Fill keys [count] on STREAM_WORK. */
static inline void fill_keys(struct cuda_engine *engine, int key_bytes, void *keys, int64_t count, int input,
                             uint64_t seed)
{
    device_scope scope(engine);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    if (key_bytes == 4)
        fill_kernel<<<1024, 256, 0, stream>>>((uint32_t *)keys, count, input, seed);
    else
        fill_kernel<<<1024, 256, 0, stream>>>((uint64_t *)keys, count, input, seed);
    MUST(cuda_check(cudaGetLastError(), "fill"));
}

/* Give each of `count` keys a value that names its position, on STREAM_WORK; value_bytes 0: nothing. */
static inline void fill_values(struct cuda_engine *engine, int value_bytes, void *values, int64_t count)
{
    device_scope scope(engine);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    if (value_bytes == 4)
        fill_values_kernel<<<1024, 256, 0, stream>>>((uint32_t *)values, count);
    else if (value_bytes == 8)
        fill_values_kernel<<<1024, 256, 0, stream>>>((uint64_t *)values, count);
    MUST(cuda_check(cudaGetLastError(), "fill"));
}

#endif
