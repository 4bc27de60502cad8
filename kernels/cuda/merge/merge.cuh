/* What the merges of merge.cu and merge_many.cu share: pieces of runs on their way into shared memory, the
 * merge of two pieces there by all threads of a block, and the way out. merge_plan.h says what lies where. */
#ifndef MERGE_CUH
#define MERGE_CUH

#include "kernels/cuda/engine/cuda_engine.h"
#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/merge/merge_plan.h"
#include "kernels/cuda/ladder/tuning.h"
#include <cuda_pipeline_primitives.h>

template <typename K>
static constexpr int vector_keys = MERGE_VECTOR_BYTES / (int)sizeof(K);

/* Begin to copy BYTES from global to shared memory, asynchronously if the device can. thread_wait_loaded() waits
 * for it. */
template <int BYTES>
static __device__ void thread_load(void *to, const void *from)
{
    __pipeline_memcpy_async(to, from, BYTES);
}

static __device__ void thread_wait_loaded(void)
{
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

/* A barrier of the MERGE_THREADS merging threads alone. */
static __device__ void merging_threads_wait(void)
{
    asm volatile("bar.sync 1, %0;" ::"n"((int)MERGE_THREADS) : "memory");
}

/* Begin to load keys [count] to `piece`, which lies as far behind the beginning of a vector as they do, and put
 * the gap behind them. By THREADS threads; this one is number `thread`. Other places keep what they hold. */
template <int THREADS, typename K>
static __device__ void threads_load_piece(int thread, K *piece, const K *keys, int count)
{
    static_assert(THREADS >= MERGE_GAP || MERGE_GAP % THREADS == 0, "a gap is filled evenly");
    constexpr int VECTOR = vector_keys<K>;
    const int skew = merge_skew((uintptr_t)keys, sizeof(K));
    const struct merge_span span = merge_span_of(skew, count, VECTOR);
    K *to = piece - skew;
    const K *from = keys - skew;
#pragma unroll 4
    for (int at = span.whole + thread * VECTOR; at < span.tail; at += THREADS * VECTOR)
        thread_load<MERGE_VECTOR_BYTES>(to + at, from + at);
    if (skew + thread < span.head_end)
        thread_load<sizeof(K)>(to + skew + thread, from + skew + thread);
    if (span.tail + thread < span.end)
        thread_load<sizeof(K)>(to + span.tail + thread, from + span.tail + thread);
    if constexpr (THREADS >= MERGE_GAP) {
        if (thread < MERGE_GAP)
            piece[count + thread] = (K) ~(K)0;
    } else {
#pragma unroll
        for (int i = 0; i < MERGE_GAP; i += THREADS)
            piece[count + i + thread] = (K) ~(K)0;
    }
}

/* A place in shared memory as 32 bits, which takes half the instructions of a pointer. */
static __device__ uint32_t shared_address(const void *place)
{
    return (uint32_t)__cvta_generic_to_shared(place);
}

template <typename K>
static __device__ K thread_read(uint32_t address)
{
    K key;
    if constexpr (sizeof(K) == 4) {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(key) : "r"(address) : "memory");
    } else if constexpr (sizeof(K) == 8) {
        asm volatile("ld.shared.u64 %0, [%1];" : "=l"(key) : "r"(address) : "memory");
    } else {
        uint64_t lower, upper;
        asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];" : "=l"(lower), "=l"(upper) : "r"(address) : "memory");
        key = (K)upper << 64 | lower;
    }
    return key;
}

/* How many of the first `diagonal` merged keys are of a, in shared memory. */
template <typename K>
static __device__ int thread_find_cut(const K *a, int a_count, const K *b, int b_count, int diagonal)
{
    const uint32_t first_of_a = shared_address(a);
    const uint32_t last_of_b = shared_address(b + diagonal) - (uint32_t)sizeof(K);
    uint32_t low = max(diagonal - b_count, 0);
    uint32_t high = min(diagonal, a_count);
    while (low < high) {
        const uint32_t middle = (low + high) / 2, bytes = middle * (uint32_t)sizeof(K);
        const bool before = thread_read<K>(first_of_a + bytes) <= thread_read<K>(last_of_b - bytes);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return (int)low;
}

/* Merge KEYS keys from the places `taken` and `other` on. A thread does not look for the ends of pieces: behind a
 * piece that is used up comes its gap, whose keys are as large as any, so they may as well be taken. It does not ask
 * which of the places is a's either: it goes on in the run that it took from last unless the other's key is smaller.
 *
 *     1 4 G G     2 3 G G
 *     ^           ^           taken 1, other 2: 1 is next, and 4 is read
 *       ^         ^           taken 4, other 2: change sides; 2 is next, and 3 is read
 *       ^           ^         taken 3, other 4: 3 is next, and G is read
 *
 * The larger of two keys is what is left of both when the smaller is taken out (^). A maximum would compare
 * them once more. */
template <int KEYS, typename K>
static __device__ void thread_merge(const K *taken_place, const K *other_place, K (&merged)[KEYS])
{
    uint32_t taken = shared_address(taken_place), other = shared_address(other_place);
    K key = thread_read<K>(taken), waiting = thread_read<K>(other);
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const bool stays = key <= waiting;
        merged[k] = stays ? key : waiting;
        waiting ^= key ^ merged[k];
        const uint32_t next = stays ? taken : other;
        other = stays ? other : taken;
        taken = next + (uint32_t)sizeof(K);
        if (k + 1 < KEYS)
            key = thread_read<K>(taken);
    }
}

/* Store the keys that lie in `tile` from place `lead` on to out [count], which begins as far behind the beginning
 * of a vector. By MERGE_THREADS threads. */
template <int TILE, typename K>
static __device__ void block_store_tile(K *out, const K *tile, int lead, int count)
{
    constexpr int VECTOR = vector_keys<K>;
    const int thread = threadIdx.x;
    const struct merge_span span = merge_span_of(lead, count, VECTOR);
    K *to = out - lead;
#pragma unroll
    for (int k = 0; k < (TILE / VECTOR + MERGE_THREADS - 1) / MERGE_THREADS; k++) {
        const int at = span.whole + (thread + k * MERGE_THREADS) * VECTOR;
        if (at < span.tail)
            *(uint4 *)(to + at) = *(const uint4 *)(tile + at);
    }
    if (lead + thread < span.head_end)
        to[lead + thread] = tile[lead + thread];
    if (span.tail + thread < span.end)
        to[span.tail + thread] = tile[span.tail + thread];
}

#endif
