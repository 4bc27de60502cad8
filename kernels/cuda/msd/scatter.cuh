/* A tile of keys is scattered to the buckets that a split gives them (split.cuh). Equal buckets need not keep the
 * order of their keys, so a key's rank in its tile is what a counter in shared memory returns, and a tile asks one
 * cursor per bucket for room.
 *
 *     tile, by bucket     b a c a b a        room asked for at once: a 3, b 2, c 1
 *     cursors             a 10  b 40  c 71   before;  a 13  b 42  c 72  after
 *     in shared memory    a a a b b c        runs, so that they leave together
 *     goals               10 11 12 40 41 71
 *
 * The run of a key tells where it goes. A split that is cheap to ask is asked for the bucket again; otherwise bits tell the run
 * (tile_runs.cuh).
 *
 * If the keys of a row are for one bucket, as in a sorted array, the counter of that bucket would make all lanes wait for each other. So
 * a warp looks at its first row: if many lanes share the bucket of lane 0, those lanes are counted by a vote. */
#ifndef SCATTER_CUH
#define SCATTER_CUH

#include "kernels/cuda/msd/split.cuh"
#include "kernels/cuda/msd/tile_runs.cuh"

/* The dynamic shared memory of a scatter: the keys of a tile, in one run for each bucket, and the rows that tell the runs. */
template <typename K, int KEYS>
struct scatter_tile {
    static constexpr int COUNT = SCATTER_THREADS * KEYS;
    K keys[spread_place(COUNT)];
    struct row_of_runs rows[rows_of_tile(COUNT)];
};

/* What else a scatter has in shared memory. It is little, because the L1 cache has what is left. The kernel declares it: arrays of a
 * function template take memory once for each form of the template that the kernel calls. */
template <typename K>
struct scatter_words {
    /* the tree until buckets have been found; then where the keys of each bucket go, if the split IS_CHEAP, or else those of each run,
     * less their first place in the tile; NULL: nowhere */
    union {
        K tree[SPLIT_BUCKETS];
        K *goals[SPLIT_BUCKETS];
    };
    uint32_t counts[SPLIT_BUCKETS]; /* the keys of a bucket; then runs and keys of the buckets before, as a sum */
    uint32_t sums[SCATTER_THREADS / WARP], so_far;
};
static_assert(SPLIT_BUCKETS % SCATTER_THREADS == 0, "each turn has a bucket for every thread");

/* The rank of a key among those of its bucket: what `counts` returns. Lanes with the bucket of lane 0 ask together. exists: does this
 * lane have a key? Whole warps call it. */
static __device__ uint32_t rank_by_vote(uint32_t bucket, bool exists, uint32_t *counts)
{
    const int lane = threadIdx.x % WARP;
    const uint32_t first = __shfl_sync(ALL_LANES, bucket, 0);
    const uint32_t alike = __ballot_sync(ALL_LANES, exists && bucket == first);
    const bool is_alike = alike >> lane & 1;
    uint32_t rank = 0;
    if (exists && (!is_alike || lane == 0))
        rank = atomicAdd(&counts[bucket], is_alike ? __popc(alike) : 1u);
    const uint32_t of_first = __shfl_sync(ALL_LANES, rank, 0);
    return is_alike ? of_first + __popc(alike & ((1u << lane) - 1)) : rank;
}

/* Rank a thread's keys. Each of buckets [KEYS] becomes a word of two halves: the key's bucket in the upper 16 bits, and below it the
 * key's rank among the tile's keys of that bucket. */
template <int KEYS, typename EXISTS>
static __device__ void rank_keys(uint32_t (&buckets)[KEYS], const EXISTS &exists, uint32_t *counts)
{
    if (is_hot(buckets[0], exists(0))) {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            buckets[k] = buckets[k] << 16 | rank_by_vote(buckets[k], exists(k), counts);
    } else {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            if (exists(k))
                buckets[k] = buckets[k] << 16 | atomicAdd(&counts[buckets[k]], 1u);
        }
    }
}

/* Scatter keys that a thread has loaded. turns: as many as it takes for each bucket to have a thread. FULL: the tile has KEYS keys for
 * each thread, and none is asked whether it exists. */
template <bool FULL, int KEYS, typename K, typename BUCKETS, typename GOALS>
static __device__ void scatter_loaded(const K (&keys)[KEYS], int valid, int turns,
                                      const BUCKETS &find_buckets, const GOALS &goals,
                                      struct scatter_words<K> &words)
{
    extern __shared__ uint4 scatter_memory[];
    scatter_tile<K, KEYS> &tile = *(scatter_tile<K, KEYS> *)scatter_memory;
    const auto exists = [&](int k) { return FULL || (int)threadIdx.x + k * SCATTER_THREADS < valid; };
    uint32_t ranks[KEYS];

    // 1. rank by counting
    __syncthreads();
    find_buckets(keys, ranks);
    rank_keys(ranks, exists, words.counts);
    __syncthreads();

    // 2. first places in the tile; and room among all keys, from the cursors, which answer while keys are ordered
    typename GOALS::answer answers[SPLIT_BUCKETS / SCATTER_THREADS];
    uint32_t before = 0; // runs and keys of the buckets in front of this turn
#pragma unroll
    for (int turn = 0; turn < SPLIT_BUCKETS / SCATTER_THREADS; turn++) {
        if (turn == turns)
            break;
        const int bucket = turn * SCATTER_THREADS + threadIdx.x;
        const uint32_t own = words.counts[bucket],
                       first = before + block_sum_before(run_and_keys(own), words.sums);
        words.counts[bucket] = first;
        if (own > 0)
            answers[turn] = goals.ask(bucket, own);
        if (turn + 1 < turns) {
            if (threadIdx.x == SCATTER_THREADS - 1)
                words.so_far = first + run_and_keys(own);
            __syncthreads();
            before = words.so_far;
        }
    }
    __syncthreads();

    // 3. order them in shared memory, so that runs leave rather than single keys
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k)) {
            const uint32_t bucket = ranks[k] >> 16,
                           place = keys_before(words.counts[bucket] + ranks[k]); // upper halves do not matter
            tile.keys[spread_place((int)place)] = keys[k];
        }
    }
#pragma unroll
    for (int turn = 0; turn < SPLIT_BUCKETS / SCATTER_THREADS; turn++) {
        if (turn == turns)
            break;
        const int bucket = turn * SCATTER_THREADS + threadIdx.x;
        const uint32_t run = runs_before(words.counts[bucket]), first = keys_before(words.counts[bucket]);
        const uint32_t next =
            bucket + 1 < turns * SCATTER_THREADS ? keys_before(words.counts[bucket + 1]) : (uint32_t)valid;
        if (first < next) {
            K *goal = goals.goal_of(bucket, next - first, answers[turn]);
            words.goals[BUCKETS::IS_CHEAP ? bucket : run] = goal ? goal - first : NULL;
            if constexpr (!BUCKETS::IS_CHEAP)
                note_run(tile.rows, run, first, next);
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k)) {
            const K key[1] = {tile.keys[spread_place(threadIdx.x) + k * spread_place(SCATTER_THREADS)]};
            uint32_t bucket[1];
            if constexpr (BUCKETS::IS_CHEAP)
                find_buckets(key, bucket);
            else
                bucket[0] = run_of_place(tile.rows, threadIdx.x + k * SCATTER_THREADS);
            K *goal = words.goals[bucket[0]];
            if (goal)
                goal[threadIdx.x + k * SCATTER_THREADS] = key[0];
        }
    }
}

/* The buckets that the count has noted: found [valid] of a tile. */
struct noted_buckets {
    static constexpr bool IS_CHEAP = false;
    const uint8_t *found;
    int valid;

    template <int KEYS, typename K>
    __device__ void operator()(const K (&)[KEYS], uint32_t (&buckets)[KEYS]) const
    {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            const int at = threadIdx.x + k * SCATTER_THREADS;
            buckets[k] = at < valid ? found[at] : 0;
        }
    }
};

template <bool FULL, int KEYS, typename K, typename FIRST, typename S, typename GOALS>
static __device__ void scatter_some(const FIRST &coding, const S *__restrict__ from, int valid,
                                    const struct split<K> &split, const uint8_t *found, const GOALS &goals,
                                    struct scatter_words<K> &words)
{
    extern __shared__ uint4 scatter_memory[];
    scatter_tile<K, KEYS> &tile = *(scatter_tile<K, KEYS> *)scatter_memory;
    const struct split_head<K> head = split;
    const int turns = (head.buckets + SCATTER_THREADS - 1) / SCATTER_THREADS;
    S loaded[KEYS];
    K keys[KEYS];
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        loaded[k] = FULL || (int)threadIdx.x + k * SCATTER_THREADS < valid
                        ? from[threadIdx.x + k * SCATTER_THREADS]
                        : 0;
    for (int turn = 0; turn < turns; turn++)
        words.counts[threadIdx.x + turn * SCATTER_THREADS] = 0;
    clear_rows<SCATTER_THREADS>(tile.rows);
    const auto far = [](int k) { return k * SCATTER_THREADS; };
    codes_of_loaded(coding, from + threadIdx.x, far, loaded, keys);
    if (found)
        scatter_loaded<FULL>(keys, valid, turns, noted_buckets{found, valid}, goals, words);
    else
        with_split(head, split.tree, words.tree, [&](const auto &find_buckets) {
            scatter_loaded<FULL>(keys, valid, turns, find_buckets, goals, words);
        });
}

/* Scatter a tile's keys [valid].
 *   found  [valid] their buckets; NULL: they are looked for
 *   goals  goals.ask(bucket, keys) asks for room, once for each bucket that the tile has. Later the same thread calls
 *          goals.goal_of(bucket, keys, answer), with what ask() has returned: where the bucket's keys go, NULL for nowhere */
template <int KEYS, typename K, typename FIRST, typename S, typename GOALS>
static __device__ void scatter(const FIRST &coding, const S *from, int valid, const struct split<K> &split,
                               const uint8_t *found, const GOALS &goals, struct scatter_words<K> &words)
{
    if (valid == SCATTER_THREADS * KEYS)
        scatter_some<true, KEYS>(coding, from, valid, split, found, goals, words);
    else
        scatter_some<false, KEYS>(coding, from, valid, split, found, goals, words);
}

#endif
