/* Inputs made on the device, for the tests and the benchmark of the ladder: keys by pattern, and values that
 * say where they came from. */
#ifndef LADDER_INPUT_CUH
#define LADDER_INPUT_CUH

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "kernels/base/input_draw.h"
#include "kernels/base/keytype.h"
#include "kernels/cuda/ladder/ladder.h"
#include "hypersort.h"

/* X(name, word, distribution, its number, floats): codes of a distribution's keys, unsigned or floats. INPUTS in place of a
 * distribution: keys that only a sort by digits and tiles has to fear, see special_key() */
#define LADDER_INPUTS(X)                                       \
    X(UNIFORM, "uniform", INPUT_UNIFORM, 0, false)             \
    X(EQUAL, "equal", INPUT_EQUAL, 0, false)                   \
    X(LARGEST, "largest", INPUTS, 0, false)                    \
    X(TWO, "two", INPUTS, 0, false)                            \
    X(SORTED, "sorted", INPUT_SORTED, 0, false)                \
    X(REVERSE, "reverse", INPUT_REVERSE, 0, false)             \
    X(NARROW, "narrow:16", INPUT_NARROW, 16, false)            \
    X(DIGIT2, "digit2", INPUTS, 0, false)                      \
    X(STAIRS, "stairs", INPUT_STAIRCASE, 0, false)             \
    X(ZIPF, "zipf", INPUT_ZIPF, 0, false)                      \
    X(ENTROPY2, "entropy2", INPUT_ENTROPY, 2, false)           \
    X(ENTROPY3, "entropy3", INPUT_ENTROPY, 3, false)           \
    X(FLOATS, "floats", INPUT_UNIFORM, 0, true)                \
    X(STRIDED, "strided", INPUTS, 0, false)                    \
    X(ZIPF26, "zipf:26", INPUT_ZIPF, 26, false)                \
    X(LOGUNIFORM, "loguniform", INPUT_LOGUNIFORM, 0, false)    \
    X(CLUSTERED, "clusters:1000", INPUT_CLUSTERS, 1000, false) \
    X(KMERS, "kmer:31", INPUT_KMER, 31, false)                 \
    X(RUNS, "runs:1024", INPUT_RUNS, 1024, false)              \
    X(SWAPPED, "swapped:10", INPUT_SWAPPED, 10, false)         \
    X(IDS, "ids", INPUT_IDS, 0, false)                         \
    X(LOGNORMAL, "lognormal", INPUT_LOGNORMAL, 0, true)        \
    X(EXPONENTIAL, "exponential", INPUT_EXPONENTIAL, 0, true)  \
    X(MIXTURE, "mixture:0", INPUT_MIXTURE, 0, false)           \
    X(FLOAT_MIXTURE, "float-mixture:0", INPUT_MIXTURE, 0, true)

enum ladder_input {
#define X(name, ...) name,
    LADDER_INPUTS(X)
#undef X
        LADDER_INPUT_COUNT
};

static inline const char *ladder_input_word(int input)
{
    static const char *const words[] = {
#define X(name, word, ...) word,
        LADDER_INPUTS(X)
#undef X
    };
    return words[input];
}

/* Return what the keys of an input are drawn from. */
static inline struct input_source ladder_source(int input, int key_bytes, int64_t count, uint64_t seed)
{
    static const struct {
        enum input_distribution distribution;
        int number;
        bool floats;
    } inputs[] = {
#define X(name, word, distribution, number, floats) {distribution, number, floats},
        LADDER_INPUTS(X)
#undef X
    };
    static const hsort_type types[2][2] = {{HSORT_U32, HSORT_F32}, {HSORT_U64, HSORT_F64}};
    struct input drawn = {};
    drawn.distribution = inputs[input].distribution;
    drawn.parameter = inputs[input].number;
    drawn.type = types[key_bytes == 8][inputs[input].floats];
    drawn.seed = seed;
    drawn.count = count;
    return input_source_make(&drawn);
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

/* Stop the program if the engine reports an error. */
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

/* Keys of inputs that are no distribution. */
template <typename K>
static __device__ K special_key(int input, uint64_t seed, int64_t i)
{
    const uint64_t r = random_word(seed, i, 0);
    const K largest = (K) ~(K)0; // rungs fill up their last tile with it
    switch (input) {
    case LARGEST:
        return largest;
    case TWO: // the smallest and the largest key
        return r & 1 ? largest : 0;
    case DIGIT2: // only one 8-bit digit varies, so the number of radix passes is odd
        return (K)(0x11003322u | (uint32_t)(r & 0xff) << 16);
    default: // STRIDED: multiples of a power of two; a digit is 0, 16, .. 240, so its bins are in few banks
        return (K)i << (sizeof(K) * 8 - 28);
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
static __global__ void fill_kernel(K *keys, struct input_source source, struct keymap map, int input)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < source.input.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        if (source.input.distribution == INPUTS)
            keys[i] = special_key<K>(input, source.input.seed, i);
        else if (sizeof(K) == 4)
            keys[i] = keymap_encode_u32(map, (uint32_t)input_key(&source, i));
        else
            keys[i] = (K)keymap_encode_u64(map, input_key(&source, i));
    }
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
    const struct input_source source = ladder_source(input, key_bytes, count, seed);
    const struct keymap map = keymap_make(source.input.type, HSORT_ASCENDING);
    if (key_bytes == 4)
        fill_kernel<<<1024, 256, 0, stream>>>((uint32_t *)keys, source, map, input);
    else
        fill_kernel<<<1024, 256, 0, stream>>>((uint64_t *)keys, source, map, input);
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
