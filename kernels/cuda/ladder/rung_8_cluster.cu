/* Small sorts of rung 8: a cluster of blocks, in one launch.
 *
 * Idea     Some 10^4 keys are too many for a block and too few to pay for the launches of a large sort. The blocks
 *          of a cluster write into each other's shared memory and meet at barriers, so one launch can do it all:
 *          splitters cut the keys into leaves, the keys move once, and each block sorts a leaf, or two.
 * Picture  2 blocks of 4 keys, 2 leaves, 2 samples for each:
 *
 *              block                  0               1
 *              keys              31 02 13 30     01 12 20 05        positions 0-3, 4-7
 *              sample            31    13        01    20           ranks 3 1 0 2; leaf 1 begins with rank 2:
 *              splitter                                             20, at position 6
 *              counts               2 | 2           3 | 1           of leaf 0, of leaf 1
 *              dealt             02 13 . 01 12 05  |  31 30 . 20    each leaf: of block 0, of block 1
 *              sorted            01 02 05 12 13    |  20 30 31
 *
 *          Equal keys are told apart by their positions, so they too are cut where the sample says. That makes every
 *          input alike: skewed keys, few distinct ones, all equal ones have leaves of the same sizes.
 * Barriers of the cluster, each with one trip between the blocks:
 *
 *              begun     shared memory of the others is there; nobody waits, the keys are still on their way
 *              told      the splitters are everywhere
 *              counted   the counts are everywhere; meanwhile a block puts its keys in order of their leaves
 *              dealt     the keys are where their leaves begin
 *
 * Rejected Equal cuts of the keys' range instead of splitters. They need the extremes first, as many barriers, and
 *          thousands of counters, and still some keys crowd. A sample drawn by every block for itself has no trip of
 *          its own: it is loaded together with the keys.
 *          Dealing into the leaf's shared memory. Lone keys travel between blocks no better than to the L2 cache, so
 *          they would be put in order first just the same; and a leaf loads its keys from global memory.
 * Limit    Latency: loads, barriers, and the steps of a leaf.
 * Source   Frazer, McKellar, "Samplesort", 1970. */
#include <cooperative_groups.h>
#include "kernels/cuda/msd/leaf.cuh"
#include "kernels/cuda/ladder/rung_8_cluster.h"

enum {
    BLOCKS_MAX = 16, /* more than 8 need leave, given to each kernel */
    LEAVES_MAX = WARP,
    LEAF_SAMPLES = WARP,
    WARPS = LEAF_THREADS / WARP
};
#if __CUDA_ARCH__ >= 900
enum { HAS_CLUSTERS = true };
#else
enum { HAS_CLUSTERS = false };
#endif
static_assert(BLOCKS_MAX <= WARPS, "warp b writes to block b");
static_assert(CLUSTER_COUNT_MAX <= LEAVES_MAX * CLUSTER_LEAF_KEYS, "lane l knows about leaf l");
static_assert(CLUSTER_COUNT_MAX <= BLOCKS_MAX * LEAF_CAPACITY, "a thread has LEAF_KEYS keys at most");

enum cluster_verdict {
    CLUSTER_UNKNOWN,
    CLUSTER_SPLIT, /* into leaves that fit */
    CLUSTER_CROWDED
};

/* What every block must know, written by all of them into the shared memory of all. */
template <typename K>
struct cluster_board {
    K splitters[LEAVES_MAX];                 // leaf l > 0 begins with this key
    int positions[LEAVES_MAX];               // at this position, or with an equal one behind
    uint32_t counts[BLOCKS_MAX][LEAVES_MAX]; // of the keys that a block has loaded, by leaf
};

/* ---- the cluster --------------------------------------------------------------------------------------- */

/* A block that has arrived may go on until it must wait. What a thread wrote before it arrived, to any memory, those of
 * all blocks see once they have waited. */
static __device__ void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
    cooperative_groups::this_cluster().barrier_arrive();
#endif
}

/* To arrive when nothing has been written yet. The other way would first wait for the memory. */
static __device__ void cluster_begin()
{
#if __CUDA_ARCH__ >= 900
    __cluster_barrier_arrive_relaxed();
#endif
}

static __device__ void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
    cooperative_groups::this_cluster().barrier_wait();
#endif
}

/* The board of another block. */
template <typename K>
static __device__ cluster_board<K> *board_of(cluster_board<K> *own, int block)
{
#if __CUDA_ARCH__ >= 900
    return cooperative_groups::this_cluster().map_shared_rank(own, block);
#else
    return own;
#endif
}

/* ---- splitters ----------------------------------------------------------------------------------------- */

/* Where sample i of `samples`, a power of two, is drawn: in the i-th of as many equal parts, somewhere, by multiples of
 * the golden ratio. The same place in each part could meet a period of the input. */
static __device__ int sample_position(int i, int samples, int count)
{
    const uint32_t fraction = (uint32_t)i * 2654435769u >> 16;
    return (int)(((uint64_t)i << 16 | fraction) * (uint64_t)count >> (16 + __ffs(samples) - 1));
}

/* Rank the block's part of the sample against all of it, and tell every block those that begin a leaf. The block has a
 * sample for each lane of a warp, or two; warps compare them with different parts, and all lanes read the same word.
 * ranks [the block's samples] are zero. */
template <typename K>
static __device__ void choose_splitters(const K *sample, uint32_t *ranks, int leaves, int count,
                                        cluster_board<K> *board)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int samples = leaves * LEAF_SAMPLES, part = samples / WARPS;
    const int own = samples / (int)gridDim.x, first = (int)blockIdx.x * own;
#pragma unroll 1
    for (int i = lane; i < own; i += WARP) {
        const K key = sample[first + i];
        uint32_t before = 0;
#pragma unroll 8
        for (int j = warp * part; j < (warp + 1) * part; j++)
            before += sample[j] < key || (sample[j] == key && j < first + i);
        atomicAdd(&ranks[i], before);
    }
    __syncthreads();
    cluster_wait(); // all blocks have begun
#pragma unroll 1
    for (int i = lane; i < own; i += WARP) {
        if (ranks[i] % LEAF_SAMPLES == 0 && warp < (int)gridDim.x) {
            const int leaf = (int)ranks[i] / LEAF_SAMPLES; // leaf 0 is told of, too, and never asked for
            cluster_board<K> *other = board_of(board, warp);
            other->splitters[leaf] = sample[first + i];
            other->positions[leaf] = sample_position(first + i, samples, count);
        }
    }
    cluster_arrive();
    cluster_wait();
}

/* Find the leaves of the thread's keys: all at once, step by step, so that their reads overlap. Positions are looked at
 * only if a key of the warp is equal to a splitter. */
template <typename K, int KEYS>
static __device__ void find_leaves(const K (&keys)[KEYS], int first, int leaves,
                                   const cluster_board<K> &board, int (&found)[KEYS])
{
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        found[k] = 0;
#pragma unroll 1
    for (int step = leaves / 2; step > 0; step /= 2) {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            found[k] += board.splitters[found[k] + step] < keys[k] ? step : 0;
    }
    bool is_equal = false; // to the splitter behind; the last one of all is smaller if there is none
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        is_equal |= board.splitters[min(found[k] + 1, leaves - 1)] == keys[k];
    if (!__any_sync(ALL_LANES, is_equal))
        return;
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        found[k] = 0;
#pragma unroll 1
    for (int step = leaves / 2; step > 0; step /= 2) {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            const K splitter = board.splitters[found[k] + step];
            const bool is_behind =
                board.positions[found[k] + step] <= first + (int)threadIdx.x + k * LEAF_THREADS;
            found[k] += splitter < keys[k] || (splitter == keys[k] && is_behind) ? step : 0;
        }
    }
}

/* ---- dealing ------------------------------------------------------------------------------------------- */

/* The sum of the values of the lanes before this one. */
static __device__ uint32_t warp_sum_before(uint32_t value)
{
    const int lane = threadIdx.x % WARP;
    uint32_t sum = value;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const uint32_t below = __shfl_up_sync(ALL_LANES, sum, distance);
        if (lane >= distance)
            sum += below;
    }
    return sum - value;
}

/* Rank the warp's keys among its keys of the same leaf. Returns, in lane l, how many leaf l has. Lane l also finds out
 * which lanes of a row are in leaf l, and the others ask it: so the time does not depend on the keys, where counters in
 * shared memory would make those of one leaf wait for each other.
 *
 *     leaves of a row of 4      2 0 2 1
 *     lanes by leaf             .x.. ...x x.x. ....       lane 0 to 3; lane 2 is asked by lanes 0 and 2
 *     ranks                     0 0 1 0                   more in later rows: behind all of this one */
template <int KEYS>
static __device__ uint32_t rank_in_warp(const int (&found)[KEYS], int count, int leaves,
                                        uint32_t (&ranks)[KEYS])
{
    const int lane = threadIdx.x % WARP;
    uint32_t members[KEYS], of_leaf = 0;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const uint32_t all = __ballot_sync(ALL_LANES, (int)threadIdx.x + k * LEAF_THREADS < count);
        members[k] = lane < leaves ? all : 0;
    }
#pragma unroll 1
    for (int bit = 1; bit < leaves; bit *= 2) {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            const uint32_t has_bit = __ballot_sync(ALL_LANES, found[k] & bit);
            members[k] &= lane & bit ? has_bit : ~has_bit;
        }
    }
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const uint32_t peers = __shfl_sync(ALL_LANES, members[k], found[k]);
        ranks[k] = __shfl_sync(ALL_LANES, of_leaf, found[k]) + __popc(peers & ((1u << lane) - 1));
        of_leaf += __popc(members[k]);
    }
    return of_leaf;
}

/* Put the block's keys in order of their leaves, by way of `staged` in shared memory, and tell every block how many each
 * leaf has. Key k of the thread is then the one at place threadIdx.x + k LEAF_THREADS, and found[k] is its leaf. Returns,
 * in lane l, the first place of leaf l. The cluster has been arrived at and not been waited for. */
template <typename K, int KEYS>
static __device__ uint32_t order_by_leaf(K (&keys)[KEYS], int (&found)[KEYS], int count, int leaves,
                                         K *staged, cluster_board<K> *board)
{
    __shared__ uint32_t warp_counts[WARPS][LEAVES_MAX];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint32_t ranks[KEYS];
    warp_counts[warp][lane] = rank_in_warp(found, count, leaves, ranks);
    __syncthreads();
    uint32_t before = 0, of_block = 0;
#pragma unroll
    for (int other = 0; other < WARPS; other++) {
        before += other < warp ? warp_counts[other][lane] : 0;
        of_block += warp_counts[other][lane];
    }
    if (warp < (int)gridDim.x)
        board_of(board, warp)->counts[blockIdx.x][lane] = of_block;
    cluster_arrive();

    const uint32_t first_place = warp_sum_before(of_block);
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const uint32_t place = __shfl_sync(ALL_LANES, first_place + before, found[k]) + ranks[k];
        if ((int)threadIdx.x + k * LEAF_THREADS < count)
            staged[place] = keys[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int place = (int)threadIdx.x + k * LEAF_THREADS;
        found[k] = 0;
        if (place < count)
            keys[k] = staged[place];
    }
#pragma unroll 1
    for (int step = leaves / 2; step > 0; step /= 2) {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            const uint32_t place = threadIdx.x + k * LEAF_THREADS;
            found[k] += __shfl_sync(ALL_LANES, first_place, found[k] + step) <= place ? step : 0;
        }
    }
    return first_place;
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */

/* Sort the keys of a leaf, which lie where they belong. */
template <typename K>
static __device__ void sort_leaf(const struct coding &coding, K *keys, int count, int leaf, int leaves,
                                 const cluster_board<K> &board)
{
    const columns<K, no_value> column = {keys, NULL};
    leaf_range<K> range = {0, -1}; // not known before the first splitter, nor behind the last
    if (leaf > 0 && leaf + 1 < leaves) {
        const K width = board.splitters[leaf + 1] - board.splitters[leaf];
        if (width == 0) { // all are equal
            if (coding.decodes)
                copy_elements(coding, column, column, count, threadIdx.x, LEAF_THREADS);
            return;
        }
        range = {board.splitters[leaf], 64 - __clzll((long long)width)};
    }
    if (count > 0)
        leaf_sort(coding, column, column, count, range);
}

/* Sort keys [count]. One cluster is the whole grid. Dynamic shared memory: the sample [leaves LEAF_SAMPLES], then the
 * block's keys, then what a leaf takes. */
template <typename K, int KEYS>
static __device__ void sort_keys(const struct coding &coding, const K *from, K *keys, int count, int leaves,
                                 volatile int32_t *verdict)
{
    extern __shared__ uint64_t shared[];
    __shared__ cluster_board<K> board;
    __shared__ uint32_t ranks[LEAVES_MAX / BLOCKS_MAX * LEAF_SAMPLES];
    const int lane = threadIdx.x % WARP, block = (int)blockIdx.x, blocks = (int)gridDim.x;
    const bool speaks = block == 0 && threadIdx.x == 0;
    cluster_begin();

    // 1. load, and a sample of all keys
    const int size = (count + blocks - 1) / blocks;
    const int first = block * size, own = max(min(size, count - first), 0);
    K loaded[KEYS], *sample = (K *)shared;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int i = (int)threadIdx.x + k * LEAF_THREADS;
        loaded[k] = i < own ? from[first + i] : 0;
    }
    encode_loaded(coding, loaded);
#pragma unroll 1
    for (int i = threadIdx.x; i < leaves * LEAF_SAMPLES; i += LEAF_THREADS)
        sample[i] = loaded_code(coding, from[sample_position(i, leaves * LEAF_SAMPLES, count)]);
    if (threadIdx.x < sizeof ranks / sizeof *ranks)
        ranks[threadIdx.x] = 0;
    __syncthreads();

    // 2. to which leaf does each key go?
    int found[KEYS];
    choose_splitters(sample, ranks, leaves, count, &board);
    find_leaves(loaded, first, leaves, board, found);
    const uint32_t first_place = order_by_leaf(loaded, found, own, leaves, (K *)shared, &board);
    cluster_wait();

    // 3. lane l: how large is leaf l, where does it begin, and how many of its keys do earlier blocks have?
    uint32_t leaf_size = 0, earlier = 0;
#pragma unroll
    for (int other = 0; other < BLOCKS_MAX; other++) {
        const uint32_t of_other = other < blocks ? board.counts[other][lane] : 0;
        earlier += other < block ? of_other : 0;
        leaf_size += of_other;
    }
    const uint32_t leaf_begin = warp_sum_before(leaf_size);
    if (__any_sync(ALL_LANES, leaf_size > LEAF_CAPACITY)) { // the same in all warps of all blocks
        if (speaks)
            *verdict = CLUSTER_CROWDED;
        return;
    }

    // 4. deal. All keys have been loaded by all blocks, so they go where the leaves shall lie
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int place = (int)threadIdx.x + k * LEAF_THREADS;
        const uint32_t goal = __shfl_sync(ALL_LANES, leaf_begin + earlier - first_place, found[k]);
        if (place < own)
            keys[goal + (uint32_t)place] = loaded[k];
    }
    cluster_arrive();
    if (speaks) // not sooner: arriving would wait until this, too, has reached the host
        *verdict = CLUSTER_SPLIT;
    cluster_wait();

    // 5. sort
    const struct coding last = {coding.map, false, coding.decodes};
    const int each = leaves / blocks;
    for (int leaf = block * each; leaf < (block + 1) * each; leaf++) {
        K *begin = keys + __shfl_sync(ALL_LANES, leaf_begin, leaf);
        sort_leaf(last, begin, (int)__shfl_sync(ALL_LANES, leaf_size, leaf), leaf, leaves, board);
        __syncthreads(); // the next one takes the same shared memory
    }
}

/* Code for GPUs without clusters may be translated for one that has them: it says no. */
template <typename K, int KEYS>
static __global__ void __launch_bounds__(LEAF_THREADS, 1)
    cluster_kernel(const __grid_constant__ struct coding coding, const K *from, K *keys, int count,
                   int leaves, volatile int32_t *verdict)
{
    if (HAS_CLUSTERS)
        sort_keys<K, KEYS>(coding, from, keys, count, leaves, verdict);
    else if (blockIdx.x == 0 && threadIdx.x == 0)
        *verdict = CLUSTER_CROWDED;
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

/* The shared memory of a block: its keys, or a leaf. The sample is smaller. */
template <typename K, int KEYS>
static constexpr int cluster_bytes()
{
    constexpr int staged = LEAF_THREADS * KEYS * (int)sizeof(K);
    constexpr int sample = LEAVES_MAX * LEAF_SAMPLES * (int)sizeof(K);
    constexpr int leaf = leaf_bytes<largest_leaf, K, no_value>();
    static_assert(sample <= leaf, "a leaf has the most");
    return staged > leaf ? staged : leaf;
}

/* Launch the kernel; whether the device takes it. */
template <typename K, int KEYS>
static hsort_status launch_cluster(struct cuda_engine *engine, const struct source<K> &source, K *keys,
                                   int count, int blocks, int leaves, bool *taken)
{
    constexpr int bytes = cluster_bytes<K, KEYS>();
    TRY_CUDA(
        cudaFuncSetAttribute(cluster_kernel<K, KEYS>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    TRY_CUDA(
        cudaFuncSetAttribute(cluster_kernel<K, KEYS>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)blocks;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(LEAF_THREADS);
    config.dynamicSmemBytes = bytes;
    config.stream = engine->streams[STREAM_WORK];
    config.attrs = &cluster;
    config.numAttrs = 1;
    volatile int32_t *verdict = &engine->result->verdict;
    const cudaError_t launched = cudaLaunchKernelEx(&config, cluster_kernel<K, KEYS>, source.coding,
                                                    source.keys, keys, count, leaves, verdict);
    *taken = launched == cudaSuccess;
    if (launched == cudaErrorInvalidClusterSize || launched == cudaErrorLaunchOutOfResources) {
        cudaGetLastError(); // no group of multiprocessors is large enough: not an error of the sort
        return HSORT_OK;
    }
    return cuda_check(launched, "launch of rung 8, a cluster");
}

template <typename K>
static hsort_status sort_by_cluster(struct cuda_engine *engine, struct sort_args *args, bool *done)
{
    const int count = (int)args->count;
    int blocks = 2;
    while (blocks < BLOCKS_MAX && count > blocks * CLUSTER_BLOCK_KEYS)
        blocks *= 2;
    int leaves = blocks;
    while (count > leaves * CLUSTER_LEAF_KEYS)
        leaves *= 2;
    K *keys = (K *)args->keys;
    volatile int32_t *verdict = &engine->result->verdict;
    *verdict = CLUSTER_UNKNOWN;
    constexpr int FEW = LEAF_KEYS / 2; // keys of a thread suffice for most
    if (count <= blocks * FEW * LEAF_THREADS)
        TRY((launch_cluster<K, FEW>(engine, source_of<K>(args), keys, count, blocks, leaves, done)));
    else
        TRY((launch_cluster<K, LEAF_KEYS>(engine, source_of<K>(args), keys, count, blocks, leaves, done)));
    if (!*done)
        return HSORT_OK;
    TRY(wait_for_word(engine->streams[STREAM_WORK], verdict, CLUSTER_UNKNOWN));
    *done = *verdict == CLUSTER_SPLIT;
    return HSORT_OK;
}

extern "C" bool rung_8_cluster_fits(const struct cuda_engine *engine, const struct sort_args *args)
{
    constexpr int bytes = cluster_bytes<uint64_t, LEAF_KEYS>();
    int has_clusters = 0;
    if (engine->block_bytes < bytes || args->value_bytes > 0 || args->count <= LEAF_CAPACITY ||
        args->count > CLUSTER_COUNT_MAX)
        return false;
    // the runtime knows this without asking the device
    return cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, engine->device) == cudaSuccess &&
           has_clusters;
}

extern "C" hsort_status rung_8_cluster(struct cuda_engine *engine, struct sort_args *args, bool *done)
{
    return with_key_type(args->key_bytes,
                         [&](auto key) { return sort_by_cluster<decltype(key)>(engine, args, done); });
}
