/* Rung 8 a second time, for tests of its parts by themselves, and what these tests share: the engine, memory, random keys. */
#ifndef MSD_PARTS_CUH
#define MSD_PARTS_CUH

#define rung_8_msd tested_msd /* the library has the other */
#define rung_8_msd_workspace tested_msd_workspace
#include "kernels/cuda/msd/msd.cu"
#undef rung_8_msd
#undef rung_8_msd_workspace
#include <algorithm>
#include <vector>
#include "tests/kernels/ladder_guard.cuh"
#include "tests/support/pretend.h"

typedef unsigned __int128 u128;

static struct cuda_engine *engine;
static const struct engine_ops *ops;
static int cases;
static bool small_form; /* few cases, for compute-sanitizer */

/* Device memory that the tests of parts share: each waits until the one before is done. */
enum { BUFFER_BYTES = 1 << 20 };
static void *given_there, *result_there, *split_there, *counts_there;

/* Elements of poison on either side of the keys. Their number is odd, so that keys are aligned to no more than their size. */
enum { AROUND = 33 };

/* The case that is tested, in words, for messages. */
static char what[200];

static void to_device(void *there, const void *here, size_t bytes)
{
    MUST(ops->copy(&engine->base, STREAM_WORK, there, here, bytes));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
}

static void from_device(void *here, const void *there, size_t bytes)
{
    MUST(ops->copy(&engine->base, STREAM_WORK, here, there, bytes));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
}

static void poison(void *there, size_t bytes)
{
    MUST(cuda_check(cudaMemsetAsync(there, POISON, bytes, engine->streams[STREAM_WORK]), "poison"));
}

/* ---- random keys --------------------------------------------------------------------------------------- */

template <typename K>
constexpr int BITS = 8 * (int)sizeof(K);

/* Return a random number of `bits` bits; 0 if there are none. */
template <typename K>
static K random_bits(uint64_t *state, int bits)
{
    const uint64_t upper = check_random(state), lower = check_random(state);
    return bits > 0 ? (K)((K)((u128)upper << 64 | lower) >> (BITS<K> - bits)) : 0;
}

template <typename K>
static K random_key(uint64_t *state)
{
    return random_bits<K>(state, BITS<K>);
}

/* Return a random key in [0, most]. */
template <typename K>
static K random_up_to(uint64_t *state, K most)
{
    const K key = random_key<K>(state);
    return most == BEHIND_ALL<K> ? key : (K)(key % (most + 1));
}

/* Return `base` with other lower `bits` bits. */
template <typename K>
static K random_near(uint64_t *state, K base, int bits)
{
    return bits < BITS<K> ? (K)((base >> bits << bits) | random_bits<K>(state, bits)) : random_key<K>(state);
}

/* Return a random number; small ones are more likely. */
static int random_depth(uint64_t *state)
{
    return __builtin_ctzll(check_random(state) | UINT64_C(1) << 32);
}

#endif
