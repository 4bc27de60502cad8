/* Crowds: bins of a block sort with so many keys that rounds of comparing neighbours would take too long to settle them.
 *
 * A crowd is cut into as many finer bins as it has keys, over the range of those: the bits in which they differ. One of its
 * keys, the pivot, has a bin for itself and its like, so that a value which fills a crowd is done with. What is a crowd still
 * is cut again, until none is left.
 *
 *     places         3 5 | 84 81 89 84 84 85 | ..      say that 4 keys are a crowd; the pivot is its first
 *     they differ          in 4 bits                   84 ^ 81, 84 ^ 89 and so on
 *     finer bins           0 below 84, 1 below 84, is 84, 1 above 84, 2, 3
 *     places         3 5 | 81 | 84 84 84 | 85 | 89 | ..
 *
 * The highest bit in which keys differ is a border of finer bins, whose number is even. So each time the keys of a crowd
 * differ in fewer bits, and it ends after as many times as a key has bits; most often after one or two.
 *
 * Rejected To cut bins once, and to sort crowded windows by a network and merge them: somewhat slower (kernels/README.md), and
 *          equal keys among others crowd a window, too. */
#ifndef CROWDS_CUH
#define CROWDS_CUH

#include "kernels/cuda/msd/bins.cuh"
#include "kernels/cuda/msd/windows.cuh"

/* In shared memory. Crowds have numbers in the order of their places. */
template <typename S, typename K>
struct crowd_list {
    static constexpr int WORDS = S::CAPACITY / 32 + 1, MOST = S::CAPACITY / (CROWD + 1);
    uint32_t starts[WORDS]; /* a bit for each place: a crowd begins here */
    uint32_t before[WORDS]; /* crowds that begin in the words before */
    uint32_t alike[WORDS];  /* a bit for each finer bin: its keys are the pivot and its like */
    uint32_t extents[MOST]; /* first place of a crowd; above, the place behind its last one */
    uint32_t bits[MOST];    /* in which its keys differ */
    K pivots[MOST];
    static_assert(WORDS <= S::THREADS, "a word for each thread");

    /* The number of crowds that begin at `place` or before. */
    __device__ uint32_t crowds_up_to(uint32_t place) const
    {
        return before[place / 32] + __popc(starts[place / 32] << (31 - place % 32));
    }
};

enum { NO_CROWD = 0xffff };

/* The crowd that has a place. */
template <typename S, typename K>
static __device__ uint32_t crowd_of_place(const struct crowd_list<S, K> &crowds, uint32_t place)
{
    const uint32_t up_to = crowds.crowds_up_to(place);
    return up_to > 0 && place < crowds.extents[up_to - 1] >> 16 ? up_to - 1 : (uint32_t)NO_CROWD;
}

/* List the bins of more than `most` keys: each_bin(visit) calls visit(begin, end, is_alike) for each bin of this thread. Is
 * there one? Every thread calls it, after a barrier. */
template <typename S, typename K, typename EACH_BIN>
static __device__ bool list_crowds(const K *places, uint32_t most, struct crowd_list<S, K> &crowds,
                                   const EACH_BIN &each_bin)
{
    __shared__ uint32_t sums[S::WARPS];
    if (threadIdx.x < crowds.WORDS)
        crowds.starts[threadIdx.x] = 0;
    __syncthreads();
    bool any = false;
    each_bin([&](uint32_t begin, uint32_t end, const auto &is_alike) {
        if (end - begin > most && !is_alike()) {
            atomicOr(&crowds.starts[begin / 32], 1u << begin % 32);
            any = true;
        }
    });
    if (!__syncthreads_or(any))
        return false;
    const uint32_t own = threadIdx.x < crowds.WORDS ? __popc(crowds.starts[threadIdx.x]) : 0;
    const uint32_t before = block_sum_before(own, sums);
    if (threadIdx.x < crowds.WORDS)
        crowds.before[threadIdx.x] = before;
    __syncthreads();
    if (any) {
        each_bin([&](uint32_t begin, uint32_t end, const auto &is_alike) {
            if (end - begin > most && !is_alike()) {
                const uint32_t crowd = crowds.crowds_up_to(begin) - 1;
                crowds.extents[crowd] = begin | end << 16;
                crowds.bits[crowd] = 0;
                crowds.pivots[crowd] = places[with_gaps<K>((int)begin)];
            }
        });
    }
    __syncthreads();
    return true;
}

/* ---- finer bins ---------------------------------------------------------------------------------------- */

/* Add to counter i, of 16 bits; returns what it was. */
static __device__ uint32_t add_fine(uint32_t *fine, uint32_t i)
{
    const uint32_t above = i % 2 * 16;
    return atomicAdd(&fine[i / 2], 1u << above) >> above & 0xffff;
}

/* Turn counts into first places. Every thread calls it, after a barrier. */
template <typename S>
static __device__ void scan_fine(uint32_t *fine)
{
    __shared__ uint32_t sums[S::WARPS];
    uint32_t *own = fine + threadIdx.x * S::FINE_WORDS;
    uint32_t sum = 0;
#pragma unroll
    for (int w = 0; w < S::FINE_WORDS; w++)
        sum += (own[w] & 0xffff) + (own[w] >> 16);
    uint32_t before = block_sum_before(sum, sums);
#pragma unroll
    for (int w = 0; w < S::FINE_WORDS; w++) {
        const uint32_t word = own[w];
        own[w] = before | (before + (word & 0xffff)) << 16;
        before += (word & 0xffff) + (word >> 16);
    }
    __syncthreads();
}

/* Which of `bins` finer bins a key is for, of keys that differ in the lower `bits` bits. */
template <typename K>
static __device__ uint32_t finer_bin(K key, uint32_t bits, uint32_t bins)
{
    return __umulhi((uint32_t)((K)(key << (8 * sizeof(K) - bits)) >> (8 * sizeof(K) - 32)), bins);
}

/* Words of 16 bits, two to a register. */
template <int COUNT>
struct half_words {
    uint32_t pairs[(COUNT + 1) / 2] = {};

    __device__ uint32_t get(int i) const
    {
        return i % 2 ? pairs[i / 2] >> 16 : pairs[i / 2] & 0xffff;
    }
    __device__ void set(int i, uint32_t value)
    {
        pairs[i / 2] = i % 2 ? (pairs[i / 2] & 0xffff) | value << 16 : (pairs[i / 2] & 0xffff0000) | value;
    }
};

/* Cut each crowd once: fine then has where each of its finer bins ends; other places have a bin each. false: the keys of
 * each crowd are equal, and nothing has been done. Every thread calls it. */
template <typename S, typename K>
static __device__ bool cut_crowds(K *places, int count, struct crowd_list<S, K> &crowds, uint32_t *fine)
{
    K keys[S::KEYS];
    half_words<S::KEYS> goals; // first the crowd; then the finer bin, and whether the key moves
    const uint32_t moves = 1u << 15;
    static_assert(2 * S::FINE_WORDS * S::THREADS <= 1 << 16 && S::CAPACITY <= 1 << 15, "places fit below");
    const int left = count - (int)threadIdx.x;

    // 1. in how many bits its keys differ
    bool any = false;
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        uint32_t crowd = NO_CROWD;
        keys[k] = 0;
        if (k * S::THREADS < left)
            crowd = crowd_of_place(crowds, threadIdx.x + k * S::THREADS);
        if (crowd != NO_CROWD) {
            keys[k] = places[with_gaps<K>(threadIdx.x) + k * with_gaps<K>(S::THREADS)];
            const uint32_t bits = (uint32_t)bits_of<K>(keys[k] ^ crowds.pivots[crowd]);
            any |= bits > 0;
            if (bits > crowds.bits[crowd])
                atomicMax(&crowds.bits[crowd], bits);
        }
        goals.set(k, crowd);
    }
#pragma unroll
    for (int w = 0; w < S::FINE_WORDS; w++)
        fine[threadIdx.x + w * S::THREADS] = 0;
    if (threadIdx.x < crowds.WORDS)
        crowds.alike[threadIdx.x] = 0;
    if (!__syncthreads_or(any))
        return false;

    // 2. count the finer bins
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        const uint32_t crowd = goals.get(k), place = threadIdx.x + k * S::THREADS;
        uint32_t goal = place;
        if (crowd != NO_CROWD && crowds.bits[crowd] > 0) {
            const uint32_t extent = crowds.extents[crowd], bits = crowds.bits[crowd];
            const uint32_t begin = extent & 0xffff, bins = ((extent >> 16) - begin - 2) & ~1u;
            const K pivot = crowds.pivots[crowd];
            goal = begin + finer_bin(keys[k], bits, bins) + (keys[k] >= pivot) + (keys[k] > pivot);
            if (place == begin) // the pivot itself
                atomicOr(&crowds.alike[goal / 32], 1u << goal % 32);
            goal |= moves;
        }
        if (k * S::THREADS < left)
            add_fine(fine, goal & ~moves);
        goals.set(k, goal);
    }
    __syncthreads();
    scan_fine<S>(fine);

    // 3. put the keys there
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left) {
            const uint32_t goal = goals.get(k), place = add_fine(fine, goal & ~moves);
            if (goal & moves)
                places[with_gaps<K>((int)place)] = keys[k];
        }
    }
    __syncthreads();
    return true;
}

/* Cut bins of more than CROWD keys; then, again and again, those of more than LATER_CROWD, until only equal keys are so
 * many. bins: where each bin ends; they are lost. Every thread calls it, after a barrier. */
template <typename S, typename K>
static __device__ __noinline__ void settle_crowds(K *places, int count, uint32_t *bins, uint32_t *fine)
{
    static_assert(sizeof(struct crowd_list<S, K>) <= S::COUNTERS * sizeof(uint32_t),
                  "they take the place of the bins");
    struct crowd_list<S, K> &crowds = *(struct crowd_list<S, K> *)bins;
    const uint32_t *own = fine + threadIdx.x * S::FINE_WORDS;
    uint4 ends[S::VECTORS];
    uint32_t begins[S::VECTORS];
#pragma unroll
    for (int v = 0; v < S::VECTORS; v++) {
        const int vector = v * S::THREADS + threadIdx.x;
        ends[v] = ((uint4 *)bins)[vector];
        begins[v] = vector > 0 ? bins[4 * vector - 1] : 0;
    }
    __syncthreads();
    bool found = list_crowds<S>(places, CROWD, crowds, [&](const auto &visit) {
        const auto never = [] { return false; };
#pragma unroll
        for (int v = 0; v < S::VECTORS; v++) {
            visit(begins[v], ends[v].x, never);
            visit(ends[v].x, ends[v].y, never);
            visit(ends[v].y, ends[v].z, never);
            visit(ends[v].z, ends[v].w, never);
        }
    });
    while (found && cut_crowds<S>(places, count, crowds, fine)) {
        found = list_crowds<S>(places, LATER_CROWD, crowds, [&](const auto &visit) {
            uint32_t begin = threadIdx.x > 0 ? own[-1] >> 16 : 0, bin = 2 * threadIdx.x * S::FINE_WORDS;
            const auto is_alike = [&] { return (crowds.alike[bin / 32] >> bin % 32 & 1) != 0; };
#pragma unroll 1
            for (int w = 0; w < S::FINE_WORDS; w++) {
                const uint32_t word = own[w];
                visit(begin, word & 0xffff, is_alike);
                bin++;
                visit(word & 0xffff, word >> 16, is_alike);
                bin++;
                begin = word >> 16;
            }
        });
    }
}

#endif
