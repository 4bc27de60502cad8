/* A pass over keys alone that deals them out to buckets by a digit of up to 9 bits: what rung 8 and the partition share. The
 * keys of a digit need not keep their order, so a key's rank in its tile is what a counter in shared memory returns, and a
 * tile asks one cursor per digit for room.
 *
 *     tile, by digit      b a c a b a        two digits' worth of room asked for at once: a 3, b 2, c 1
 *     cursors             a 10  b 40  c 71   before;  a 13  b 42  c 72  after
 *     in shared memory    a a a b b c        runs, so that they leave together
 *     goals               10 11 12 40 41 71
 */
#ifndef DEAL_CUH
#define DEAL_CUH

#include "kernels/cuda/msd/leaf.cuh"
#include "kernels/cuda/msd/window.cuh"

/* The digit of a key that a pass deals by. */
template <typename K, map_kind KIND>
struct pass_digit {
    struct bucket_map<K, KIND> map;
    int shift;
    uint32_t mask;

    __device__ uint32_t operator()(K key) const
    {
        return map(key) >> shift & mask;
    }
    __device__ bool is_outside(K key) const
    {
        return map.is_outside(key);
    }
};

/* Take `keys` places from a cursor; the first of them. */
static __device__ uint64_t take_room(uint64_t *cursor, uint32_t keys)
{
    return atomicAdd((unsigned long long *)cursor, (unsigned long long)keys);
}

/* Where the key at `place` of a tile lies in shared memory: one in 32 places is left out, or keys of few digits would meet in
 * one bank. */
static __host__ __device__ constexpr int tile_place(int place)
{
    return place + place / WARP;
}

/* The shared memory for the keys of a tile. */
template <typename K, int KEYS>
static __host__ __device__ constexpr int pass_bytes()
{
    return (tile_place(MSD_PASS_THREADS * KEYS) * (int)sizeof(K) + 7) / 8 * 8;
}

/* What a pass has in shared memory beside the keys. The kernel declares it: arrays of a function template take memory once for
 * each form of it that the kernel calls, one for every kind of map, and then fewer blocks fit a multiprocessor. */
template <int DIGITS, typename K>
struct deal_words {
    K *goals[DIGITS];        /* where a digit's keys go, less its first place in the tile */
    uint32_t counts[DIGITS]; /* its keys, then that place */
    uint32_t sums[MSD_PASS_THREADS / WARP];
};

/* FULL: the tile has `KEYS` keys for each thread, and none is asked whether it exists. */
template <bool FULL, int DIGITS, int KEYS, typename K, typename DIGIT, typename GOALS>
static __device__ void deal_some(const struct coding &coding, const K *__restrict__ from, int valid,
                                 const DIGIT &digit_of, const GOALS &goal_of,
                                 struct deal_words<DIGITS, K> &words)
{
    extern __shared__ uint64_t shared[];
    K *places = (K *)shared; // [tile_place(THREADS * KEYS)]
    uint32_t *const counts = words.counts;
    K **const goals = words.goals;
    const auto exists = [&](int k) { return FULL || (int)threadIdx.x + k * MSD_PASS_THREADS < valid; };
    K keys[KEYS];
    uint32_t ranks[KEYS]; // below 16 bits, and the digit above

    // 1. load, and rank by counting
    if (threadIdx.x < DIGITS)
        counts[threadIdx.x] = 0;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k))
            keys[k] = from[threadIdx.x + k * MSD_PASS_THREADS];
    }
    encode_loaded(coding, keys);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k)) {
            const uint32_t digit = digit_of(keys[k]);
            ranks[k] = digit << 16 | atomicAdd(&counts[digit], 1u);
        }
    }
    __syncthreads();

    // 2. first places in the tile; and room among all keys, from the cursors
    const uint32_t own = threadIdx.x < DIGITS ? counts[threadIdx.x] : 0;
    const uint32_t first = block_sum_before(own, words.sums);
    if (threadIdx.x < DIGITS) {
        counts[threadIdx.x] = first;
        if (own > 0)
            goals[threadIdx.x] = goal_of(threadIdx.x, own) - first;
    }
    __syncthreads();

    // 3. order them in shared memory, so that runs leave and not single keys
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k))
            places[tile_place((int)(counts[ranks[k] >> 16] + (ranks[k] & 0xffff)))] = keys[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k)) {
            const K key = places[tile_place(threadIdx.x) + k * tile_place(MSD_PASS_THREADS)];
            goals[digit_of(key)][threadIdx.x + k * MSD_PASS_THREADS] = key;
        }
    }
}

/* Deal a tile's keys [valid] out to the buckets of their digits, below DIGITS. goal_of(digit, keys) is where the keys of a
 * digit go; it is called once for each digit that the tile has. */
template <int DIGITS, int KEYS, typename K, typename DIGIT, typename GOALS>
static __device__ void deal(const struct coding &coding, const K *from, int valid, const DIGIT &digit_of,
                            const GOALS &goal_of, struct deal_words<DIGITS, K> &words)
{
    static_assert(DIGITS <= MSD_PASS_THREADS, "a thread for each digit");
    if (valid == MSD_PASS_THREADS * KEYS)
        deal_some<true, DIGITS, KEYS>(coding, from, valid, digit_of, goal_of, words);
    else
        deal_some<false, DIGITS, KEYS>(coding, from, valid, digit_of, goal_of, words);
}

/* Room from a cursor for each digit, a position in `to`. */
template <typename K>
struct goals_of_cursors {
    K *to;
    uint64_t *cursors;
    int stride; /* words from one to the next: many tiles ask at once */

    __device__ K *operator()(int digit, uint32_t keys) const
    {
        return to + (int64_t)take_room(&cursors[digit * stride], keys);
    }
};

#endif
