/* Inputs made on the device, for the test and the benchmark of the ladder. */
#ifndef LADDER_INPUT_CUH
#define LADDER_INPUT_CUH

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "cuda/ladder.h"
#include "hypersort.h"

/* X(name, word): key i of `count`; r is a random number of its own */
#define LADDER_INPUTS(X)                                                                         \
    X(UNIFORM, "uniform") /* every bit pattern equally likely */                                 \
    X(EQUAL, "equal")     /* one value */                                                        \
    X(LARGEST, "largest") /* the largest key, which the radix rungs fill their last tile with */ \
    X(TWO, "two")         /* the smallest and the largest key */                                 \
    X(SORTED, "sorted")   /* ascending over the whole range */                                   \
    X(REVERSE, "reverse")                                                                        \
    X(LOW16, "low16")   /* uniform in the low 16 bits, 0 above */                                \
    X(DIGIT2, "digit2") /* only one 8-bit digit varies, so the number of radix passes is odd */  \
    X(STAIRS, "stairs") /* ascending, 64 values */

enum ladder_input {
#define X(name, word) name,
    LADDER_INPUTS(X)
#undef X
        LADDER_INPUT_COUNT
};

static const char *ladder_input_word(int input)
{
    static const char *const words[] = {
#define X(name, word) word,
        LADDER_INPUTS(X)
#undef X
    };
    return words[input];
}

/* Stop the program where the engine reports an error. */
#define MUST(call)                                                             \
    do {                                                                       \
        if ((call) != HSORT_OK) {                                              \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, status_text()); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

template <typename K>
static __device__ K make_key(int input, uint64_t seed, int64_t i, int64_t count)
{
    uint64_t r = (seed + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15);
    r = (r ^ (r >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    r = (r ^ (r >> 27)) * UINT64_C(0x94d049bb133111eb);
    r ^= r >> 31;
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
    case LOW16:
        return (K)(r & 0xffff);
    case DIGIT2:
        return (K)(0x11003322u | (uint32_t)(r & 0xff) << 16);
    default:
        return (K)(i * 64 / count) << (sizeof(K) * 8 - 7);
    }
}

template <typename K>
static __global__ void fill_kernel(K *keys, int64_t count, int input, uint64_t seed)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        keys[i] = make_key<K>(input, seed, i, count);
}

/* Fill keys [count] on LANE_WORK. */
static void fill_keys(struct cuda_engine *engine, int key_bytes, void *keys, int64_t count, int input,
                      uint64_t seed)
{
    device_scope scope(engine);
    cudaStream_t stream = engine->lanes[LANE_WORK];
    if (key_bytes == 4)
        fill_kernel<<<1024, 256, 0, stream>>>((uint32_t *)keys, count, input, seed);
    else
        fill_kernel<<<1024, 256, 0, stream>>>((uint64_t *)keys, count, input, seed);
    MUST(cuda_check(cudaGetLastError(), "fill"));
}

/* What inspect() finds in codes. */
static struct engine_inspection look_at(struct cuda_engine *engine, int key_bytes, const void *keys,
                                        int64_t count)
{
    struct engine_inspection found;
    MUST(engine->base.ops->inspect(&engine->base,
                                   keymap_make(key_bytes == 4 ? HSORT_U32 : HSORT_U64, HSORT_ASCENDING), keys,
                                   count, &found));
    return found;
}

/* Are these the keys of which `before` was taken, in order? */
static bool is_sorted_form(struct cuda_engine *engine, int key_bytes, const void *keys, int64_t count,
                           struct engine_inspection before)
{
    const struct engine_inspection found = look_at(engine, key_bytes, keys, count);
    return found.first_descent == count && found.fingerprint[0] == before.fingerprint[0] &&
           found.fingerprint[1] == before.fingerprint[1];
}

#endif
