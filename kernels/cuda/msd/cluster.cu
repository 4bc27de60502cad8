/* An MSD sort of some 10^4 to 10^5 keys: a cluster of blocks, in one launch.
 *
 * Idea     Some 10^4 keys are too many for a block and too few to pay for the launches of a large sort. The blocks
 *          of a cluster write into each other's shared memory and meet at barriers, so one launch can do it all:
 *          splitters cut the keys into buckets, the keys move once, and each block sorts a bucket, or two.
 * Picture  2 blocks of 4 keys, 2 buckets, 2 samples for each:
 *
 *              block                  0               1
 *              keys              31 02 13 30     01 12 20 05        positions 0-3, 4-7
 *              sample            31    13        01    20           ranks 3 1 0 2; bucket 1 begins with rank 2:
 *              splitter                                             20, at position 6
 *              counts               2 | 2           3 | 1           of bucket 0, of bucket 1
 *              scattered         02 13 . 01 12 05  |  31 30 . 20    each bucket: of block 0, of block 1
 *              sorted            01 02 05 12 13    |  20 30 31
 *
 *          Equal keys are told apart by their positions, so they too are cut where the sample says. That makes every
 *          input alike: skewed keys, few distinct keys and all equal keys have buckets of the same sizes.
 * Barriers of the cluster, each with one trip between the blocks:
 *
 *              begun     the other blocks' shared memory is there; nobody waits, because the keys are still on their way
 *              told      the splitters are everywhere
 *              counted   the counts are everywhere; meanwhile a block puts its keys in order of their buckets
 *              scattered the keys are where their buckets begin
 *
 * Rejected Equal cuts of the keys' range instead of splitters. They need the extremes first, as many barriers, and
 *          thousands of counters, and still some keys crowd. A sample drawn by every block for itself has no trip of
 *          its own: it is loaded together with the keys.
 *          Scattering into the bucket's shared memory. Lone keys travel between blocks no better than to the L2 cache, so
 *          they would have to be put in order first all the same; and a block sort loads its keys from global memory.
 * Limit    Latency: loads, barriers, and the steps of a block sort.
 * Source   Frazer, McKellar, "Samplesort", 1970. */
#include <cooperative_groups.h>
#include "kernels/base/sample_place.h"
#include "kernels/cuda/msd/block_sort.cuh"
#include "kernels/cuda/msd/cluster.h"

enum {
    BLOCKS_MAX = 16, /* more than 8 need permission, which each kernel is given */
    BUCKETS_MAX = WARP,
    BUCKET_SAMPLES = WARP,
    WARPS = CLUSTER_THREADS / WARP
};
#if __CUDA_ARCH__ >= 900
enum { HAS_CLUSTERS = true };
#else
enum { HAS_CLUSTERS = false };
#endif

typedef block_size<CLUSTER_THREADS, CLUSTER_KEYS, 1> cluster_sort_size;
static_assert(BLOCKS_MAX <= WARPS, "warp b writes to block b");
static_assert(CLUSTER_COUNT_MAX_4 >= CLUSTER_COUNT_MAX_8, "the larger one is looked at");
static_assert(CLUSTER_COUNT_MAX_4 <= BUCKETS_MAX * CLUSTER_BUCKET_KEYS, "lane l knows about bucket l");
static_assert(CLUSTER_COUNT_MAX_4 <= BLOCKS_MAX * CLUSTER_THREADS * CLUSTER_OWN_KEYS &&
                  CLUSTER_BLOCK_KEYS <= CLUSTER_THREADS * CLUSTER_OWN_KEYS,
              "a thread loads CLUSTER_OWN_KEYS keys at most");

enum cluster_verdict {
    CLUSTER_UNKNOWN,
    CLUSTER_SPLIT, /* into buckets that fit */
    CLUSTER_CROWDED
};

/* What every block must know. All blocks write it into the shared memory of all. */
template <typename K>
struct cluster_board {
    K splitters[BUCKETS_MAX];                 // bucket l > 0 begins with this key
    int positions[BUCKETS_MAX];               // at this position, or with an equal key behind it
    uint32_t counts[BLOCKS_MAX][BUCKETS_MAX]; // of the keys that a block has loaded, by bucket
};

/* ---- the cluster --------------------------------------------------------------------------------------- */

/* A block that has arrived may go on until it must wait. What a thread wrote before it arrived, to any memory, the threads of all blocks
 * see once they have waited. */
static __device__ void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
    cooperative_groups::this_cluster().barrier_arrive();
#endif
}

/* Arrive when nothing has been written yet. cluster_arrive() would first wait for the memory. */
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

/* Where sample i of `samples`, a power of two, is drawn: somewhere in the i-th of as many equal parts (sample_place.h). */
static __device__ int cluster_sample_position(int i, int samples, int count)
{
    const uint32_t fraction = (uint32_t)(sample_jitter((uint64_t)i) >> 48);
    return (int)(((uint64_t)i << 16 | fraction) * (uint64_t)count >> (16 + __ffs(samples) - 1));
}

/* Rank the block's part of the sample against all of it, and tell every block those keys of the part that begin a bucket. The block has
 * one key of the sample for each lane of a warp, or two. Its warps compare these with different parts of the sample, and all lanes of a
 * warp read the same word. ranks [the block's part of the sample] are zero before. */
template <typename K>
static __device__ void choose_splitters(const K *sample, uint32_t *ranks, int buckets, int count,
                                        cluster_board<K> *board)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int samples = buckets * BUCKET_SAMPLES, part = samples / WARPS;
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
        if (ranks[i] % BUCKET_SAMPLES == 0 && warp < (int)gridDim.x) {
            const int bucket =
                (int)ranks[i] / BUCKET_SAMPLES; // bucket 0 is told, too, and never asked for
            cluster_board<K> *other = board_of(board, warp);
            other->splitters[bucket] = sample[first + i];
            other->positions[bucket] = cluster_sample_position(first + i, samples, count);
        }
    }
    cluster_arrive();
    cluster_wait();
}

/* Find the buckets of the thread's keys: all at once, step by step, so that their reads overlap. Positions are looked at
 * only if a key of the warp is equal to a splitter. */
template <typename K, int KEYS>
static __device__ void find_cluster_buckets(const K (&keys)[KEYS], int first, int buckets,
                                            const cluster_board<K> &board, int (&found)[KEYS])
{
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        found[k] = 0;
#pragma unroll 1
    for (int step = buckets / 2; step > 0; step /= 2) {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            found[k] += board.splitters[found[k] + step] < keys[k] ? step : 0;
    }
    bool is_equal = false; // to the splitter behind; if there is none, the last splitter is asked, which is smaller
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        is_equal |= board.splitters[min(found[k] + 1, buckets - 1)] == keys[k];
    if (!__any_sync(ALL_LANES, is_equal))
        return;
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        found[k] = 0;
#pragma unroll 1
    for (int step = buckets / 2; step > 0; step /= 2) {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            const K splitter = board.splitters[found[k] + step];
            const bool is_behind =
                board.positions[found[k] + step] <= first + (int)threadIdx.x + k * CLUSTER_THREADS;
            found[k] += splitter < keys[k] || (splitter == keys[k] && is_behind) ? step : 0;
        }
    }
}

/* ---- scattering ------------------------------------------------------------------------------------------- */

/* Rank each of the warp's keys among the warp's keys of the same bucket. Returns, in lane l, how many keys bucket l has. Lane l also
 * finds out which lanes of a row have a key of bucket l, and the other lanes ask it. So the time does not depend on the keys; counters
 * in shared memory would make the keys of one bucket wait for each other.
 *
 *     buckets of a row of 4     2 0 2 1
 *     lanes by bucket             .x.. ...x x.x. ....       lane 0 to 3; lane 2 is asked by lanes 0 and 2
 *     ranks                     0 0 1 0                   more in later rows: behind all of this one */
template <int KEYS>
static __device__ uint32_t rank_in_warp(const int (&found)[KEYS], int count, int buckets,
                                        uint32_t (&ranks)[KEYS])
{
    const int lane = threadIdx.x % WARP;
    uint32_t members[KEYS], of_bucket = 0;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const uint32_t all = __ballot_sync(ALL_LANES, (int)threadIdx.x + k * CLUSTER_THREADS < count);
        members[k] = lane < buckets ? all : 0;
    }
#pragma unroll 1
    for (int bit = 1; bit < buckets; bit *= 2) {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            const uint32_t has_bit = __ballot_sync(ALL_LANES, found[k] & bit);
            members[k] &= lane & bit ? has_bit : ~has_bit;
        }
    }
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const uint32_t peers = __shfl_sync(ALL_LANES, members[k], found[k]);
        ranks[k] = __shfl_sync(ALL_LANES, of_bucket, found[k]) + __popc(peers & ((1u << lane) - 1));
        of_bucket += __popc(members[k]);
    }
    return of_bucket;
}

/* Put the block's keys in the order of their buckets, by way of `staged` in shared memory, and tell every block how many keys each
 * bucket has. Key k of the thread is then the one at place threadIdx.x + k CLUSTER_THREADS, and found[k] is its bucket. Returns, in lane
 * l, the first place of bucket l. The block has then arrived at the cluster's barrier, and has not waited. */
template <typename K, int KEYS>
static __device__ uint32_t order_by_bucket(K (&keys)[KEYS], int (&found)[KEYS], int count, int buckets,
                                           K *staged, cluster_board<K> *board)
{
    __shared__ uint32_t warp_counts[WARPS][BUCKETS_MAX];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint32_t ranks[KEYS];
    warp_counts[warp][lane] = rank_in_warp(found, count, buckets, ranks);
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

    const uint32_t first_place = warp_sum_through(of_block) - of_block;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const uint32_t place = __shfl_sync(ALL_LANES, first_place + before, found[k]) + ranks[k];
        if ((int)threadIdx.x + k * CLUSTER_THREADS < count)
            staged[place] = keys[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int place = (int)threadIdx.x + k * CLUSTER_THREADS;
        found[k] = 0;
        if (place < count)
            keys[k] = staged[place];
    }
#pragma unroll 1
    for (int step = buckets / 2; step > 0; step /= 2) {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            const uint32_t place = threadIdx.x + k * CLUSTER_THREADS;
            found[k] += __shfl_sync(ALL_LANES, first_place, found[k] + step) <= place ? step : 0;
        }
    }
    return first_place;
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */

/* Sort the keys of a bucket, which lie where they belong. */
template <typename K>
static __device__ void sort_bucket(const struct coding &coding, K *keys, int count, int bucket, int buckets,
                                   const cluster_board<K> &board)
{
    even_parts<K> known = {}; // nothing is known before the first splitter and behind the last
    if (bucket > 0 && bucket + 1 < buckets) {
        const K low = board.splitters[bucket], high = board.splitters[bucket + 1];
        if (low == high) { // all are equal
            if (coding.decodes)
                copy_in_order<K>(coding, coding, keys, keys, count, threadIdx.x, CLUSTER_THREADS);
            return;
        }
        known = parts_of_range<log2_of(cluster_sort_size::BINS)>(low, high);
    }
    if (count > 0)
        block_sort<cluster_sort_size>(coding, keys, keys, count, known);
}

/* Sort keys [count]. One cluster is the whole grid. Dynamic shared memory: the sample [buckets BUCKET_SAMPLES], then the
 * block's keys, then what a block sort takes. */
template <typename K>
static __device__ void sort_keys(const struct coding &coding, const K *from, K *keys, int count, int buckets,
                                 volatile int32_t *verdict)
{
    extern __shared__ uint64_t shared[];
    __shared__ cluster_board<K> board;
    __shared__ uint32_t ranks[BUCKETS_MAX / BLOCKS_MAX * BUCKET_SAMPLES];
    const int lane = threadIdx.x % WARP, block = (int)blockIdx.x, blocks = (int)gridDim.x;
    const bool speaks = block == 0 && threadIdx.x == 0;
    cluster_begin();

    // 1. load, and a sample of all keys
    const int size = (count + blocks - 1) / blocks;
    const int first = block * size, own = max(min(size, count - first), 0);
    K loaded[CLUSTER_OWN_KEYS], *sample = (K *)shared;
#pragma unroll
    for (int k = 0; k < CLUSTER_OWN_KEYS; k++) {
        const int i = (int)threadIdx.x + k * CLUSTER_THREADS;
        loaded[k] = i < own ? from[first + i] : 0;
    }
    encode_loaded(coding, loaded);
#pragma unroll 1
    for (int i = threadIdx.x; i < buckets * BUCKET_SAMPLES; i += CLUSTER_THREADS)
        sample[i] = loaded_code(coding, from[cluster_sample_position(i, buckets * BUCKET_SAMPLES, count)]);
    if (threadIdx.x < sizeof ranks / sizeof *ranks)
        ranks[threadIdx.x] = 0;
    __syncthreads();

    // 2. to which bucket does each key go?
    int found[CLUSTER_OWN_KEYS];
    choose_splitters(sample, ranks, buckets, count, &board);
    find_cluster_buckets(loaded, first, buckets, board, found);
    const uint32_t first_place = order_by_bucket(loaded, found, own, buckets, (K *)shared, &board);
    cluster_wait();

    // 3. lane l: how large is bucket l, where does it begin, and how many of its keys do earlier blocks have?
    uint32_t bucket_size = 0, earlier = 0;
#pragma unroll
    for (int other = 0; other < BLOCKS_MAX; other++) {
        const uint32_t of_other = other < blocks ? board.counts[other][lane] : 0;
        earlier += other < block ? of_other : 0;
        bucket_size += of_other;
    }
    const uint32_t bucket_begin = warp_sum_through(bucket_size) - bucket_size;
    if (__any_sync(ALL_LANES,
                   bucket_size > cluster_sort_size::CAPACITY)) { // the same in all warps of all blocks
        if (speaks)
            *verdict = CLUSTER_CROWDED;
        return;
    }

    // 4. scatter. All blocks have loaded all their keys, so keys go straight to where the buckets are to lie
#pragma unroll
    for (int k = 0; k < CLUSTER_OWN_KEYS; k++) {
        const int place = (int)threadIdx.x + k * CLUSTER_THREADS;
        const uint32_t goal = __shfl_sync(ALL_LANES, bucket_begin + earlier - first_place, found[k]);
        if (place < own)
            keys[goal + (uint32_t)place] = loaded[k];
    }
    cluster_arrive();
    if (speaks) // not sooner: arriving would wait until this, too, has reached the host
        *verdict = CLUSTER_SPLIT;
    cluster_wait();

    // 5. sort
    const struct coding last = {coding.map, false, coding.decodes};
    const int each = buckets / blocks;
    for (int bucket = block * each; bucket < (block + 1) * each; bucket++) {
        K *begin = keys + __shfl_sync(ALL_LANES, bucket_begin, bucket);
        sort_bucket(last, begin, (int)__shfl_sync(ALL_LANES, bucket_size, bucket), bucket, buckets, board);
        __syncthreads(); // the next one takes the same shared memory
    }
}

/* Code made for GPUs without clusters may be translated for a GPU that has them. It then says no. */
template <typename K>
static __global__ void __launch_bounds__(CLUSTER_THREADS, 1)
    cluster_kernel(const __grid_constant__ struct coding coding, const K *from, K *keys, int count,
                   int buckets, volatile int32_t *verdict)
{
    if (HAS_CLUSTERS)
        sort_keys(coding, from, keys, count, buckets, verdict);
    else if (blockIdx.x == 0 && threadIdx.x == 0)
        *verdict = CLUSTER_CROWDED;
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

/* The shared memory of a block: its keys, or a bucket. The sample is smaller. */
template <typename K>
static constexpr int cluster_bytes()
{
    constexpr int staged = CLUSTER_THREADS * CLUSTER_OWN_KEYS * (int)sizeof(K);
    constexpr int sample = BUCKETS_MAX * BUCKET_SAMPLES * (int)sizeof(K);
    constexpr int bucket = block_sort_bytes<cluster_sort_size, K>();
    static_assert(sample <= bucket, "a bucket has the most");
    return staged > bucket ? staged : bucket;
}

/* Launch the kernel. *taken: does the device take it? */
template <typename K>
static hsort_status launch_cluster(struct cuda_engine *engine, const struct source<K> &source, K *keys,
                                   int count, int blocks, int buckets, bool *taken)
{
    constexpr int bytes = cluster_bytes<K>();
    TRY(cuda_grant_shared(engine, (const void *)cluster_kernel<K>, bytes));
    TRY_CUDA(
        cudaFuncSetAttribute(cluster_kernel<K>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = (unsigned)blocks;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3(CLUSTER_THREADS);
    config.dynamicSmemBytes = bytes;
    config.stream = engine->streams[STREAM_WORK];
    config.attrs = &cluster;
    config.numAttrs = 1;
    volatile int32_t *verdict = &engine->result->verdict;
    const cudaError_t launched = cudaLaunchKernelEx(&config, cluster_kernel<K>, source.coding,
                                                    source.keys, keys, count, buckets, verdict);
    *taken = launched == cudaSuccess;
    if (launched == cudaErrorInvalidClusterSize || launched == cudaErrorLaunchOutOfResources) {
        cudaGetLastError(); // no group of multiprocessors is large enough: not an error of the sort
        return HSORT_OK;
    }
    return cuda_check(launched, "launch of a cluster");
}

template <typename K>
static hsort_status sort_by_cluster(struct cuda_engine *engine, struct sort_args *args, bool *done)
{
    const int count = (int)args->count;
    int blocks = 2;
    while (blocks < BLOCKS_MAX && count > blocks * CLUSTER_BLOCK_KEYS)
        blocks *= 2;
    int buckets = blocks;
    while (count > buckets * CLUSTER_BUCKET_KEYS)
        buckets *= 2;
    K *keys = (K *)args->keys;
    volatile int32_t *verdict = &engine->result->verdict;
    *verdict = CLUSTER_UNKNOWN;
    TRY(launch_cluster<K>(engine, source_of<K>(args), keys, count, blocks, buckets, done));
    if (!*done)
        return HSORT_OK;
    TRY(wait_for_word(engine->streams[STREAM_WORK], verdict, CLUSTER_UNKNOWN));
    *done = *verdict == CLUSTER_SPLIT;
    return HSORT_OK;
}

/* Only GPUs whose blocks have as much shared memory as Hopper's have clusters of so many blocks. Other GPUs that have clusters at all,
 * such as RTX 50, stop at eight. */
extern "C" bool msd_cluster_fits(const struct cuda_engine *engine, const struct sort_args *args)
{
    constexpr int least = MSD_BLOCK_BYTES[MSD_227];
    static_assert(cluster_bytes<uint64_t>() <= least, "shared memory of a block");
    const int64_t most = args->key_bytes == 4 ? CLUSTER_COUNT_MAX_4 : CLUSTER_COUNT_MAX_8;
    int has_clusters = 0;
    if (engine->block_bytes < least || args->value_bytes > 0 || args->key_bytes > (int)sizeof(uint64_t) ||
        args->count <= FEW_KEYS || args->count > most)
        return false;
    // the runtime knows this without asking the device
    if (cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, engine->device) == cudaSuccess)
        return has_clusters;
    cudaGetLastError(); // or a later launch would report this
    return false;
}

extern "C" hsort_status msd_cluster_sort(struct cuda_engine *engine, struct sort_args *args, bool *done)
{
    return with_narrow_key_type(
        args->key_bytes, [&](auto key) { return sort_by_cluster<decltype(key)>(engine, args, done); });
}
