/* The map of regions that all ranks share: the split of a first level, from a sample of their keys. Also what partition.cu keeps in its
 * workspace. */
#ifndef PARTITION_MAP_CUH
#define PARTITION_MAP_CUH

#include "kernels/cuda/msd/ordered.cuh"
#include "kernels/cuda/msd/queue_level.cuh"

enum {
    REGIONS_WANTED_MIN = 256,
    EVEN_REGION = 2, /* times as many keys are in a region if keys are even: a tile then has longer runs */
    LEFT_OF_REGIONS = 4096 /* buckets that are left at a time, at most */
};
static_assert((int)ENGINE_REGIONS == (int)SPLIT_BUCKETS, "a region for each bucket of the first level");

/* A code of a sample as the host has it: in words of 64 bits. */
template <typename K>
using sampled = typename std::conditional<sizeof(K) == sizeof(uint128), uint128, uint64_t>::type;

/* The workspace. It begins with the split. */
template <typename K>
struct partition_memory {
    struct split<K> *split;
    struct level_tables<K> level, first;
    struct left_bucket *left[2];
    size_t bytes;
};

template <typename K>
static struct partition_memory<K> lay_out_partition(void *workspace) {
    struct partition_memory<K> memory = {
    };
    char *next = (char *)workspace;
    memory.split = take_array<struct split<K>>(&next, 1);
    memory.first = take_level<K>(&next, 1, 1, 0, FILL_KEYS);
    memory.first.splits = memory.split;
    memory.level = take_level<K>(&next, LEVEL_SEGMENTS, LEVEL_SEGMENTS, (int64_t)UINT32_MAX, FILL_KEYS);
    memory.level.left_room = LEFT_OF_REGIONS;
    for (int i = 0; i < 2; i++)
        memory.left[i] = take_array<struct left_bucket>(&next, LEFT_OF_REGIONS);
    memory.first.region_counts = take_array<struct region_counts>(&next, 1);
    memory.bytes = (size_t)(next - (char *)workspace);
    memory.level.next_left = memory.left[0];
    memory.level.left = memory.left[1];
    return memory;
}

/* ---- the sample ---------------------------------------------------------------------------------------- */

/* The scratch of a sample. */
template <typename K>
struct sample_memory {
    sampled<K> *codes;   /* [2^log] */
    K *narrow, *ordered; /* the same in their own width: as they are; and sorted, in place of the codes */
    K *room;             /* [scratch_keys(2^log)] of the level that sorts them; NULL if none does */
    size_t bytes;
};

/* Is the whole sample sorted, if the keys are not spread evenly? */
static bool is_sorted_whole(int log)
{
    return log > ENGINE_SAMPLE_LOG_USUAL;
}

template <typename K>
static struct sample_memory<K> lay_out_sample(void *scratch, int log) {
    struct sample_memory<K> memory = {
    };
    char *next = (char *)scratch;
    const int64_t keys = INT64_C(1) << log;
    memory.codes = take_array<sampled<K>>(&next, keys);
    memory.ordered = (K *)memory.codes;
    memory.narrow = take_array<K>(&next, keys);
    if (is_sorted_whole(log))
        memory.room = take_array<K>(&next, scratch_keys(keys));
    memory.bytes = (size_t)(next - (char *)scratch);
    return memory;
}

template <typename K, typename FIRST, typename S>
static __global__ void __launch_bounds__(SPLIT_THREADS)
    shard_sample_kernel(const __grid_constant__ FIRST coding, const S *__restrict__ keys,
                        const __grid_constant__ struct sample_share share, sampled<K> *codes)
{
    const int i = blockIdx.x * SPLIT_THREADS + threadIdx.x;
    if (i < share.drawn)
        codes[i] = load_code<K>(coding, keys + (sample_place(&share, i) - share.before));
}

template <typename K>
static __global__ void __launch_bounds__(SPLIT_THREADS) narrow_kernel(const sampled<K> *codes, K *narrow)
{
    const int i = blockIdx.x * SPLIT_THREADS + threadIdx.x;
    narrow[i] = (K)codes[i];
}

/* ---- the map ------------------------------------------------------------------------------------------- */

template <typename K>
static hsort_status fetch_split(struct cuda_engine *engine, const struct split<K> *split,
                                struct engine_map *map)
{
    static_assert(sizeof *split <= sizeof *map, "a map travels whole");
    cudaStream_t stream = engine->streams[STREAM_WORK];
    TRY_CUDA(cudaMemcpyAsync(map, split, sizeof *split, cudaMemcpyDefault, stream));
    return cuda_check(cudaStreamSynchronize(stream), "the map of regions");
}

/* Grow a tree from a sample [seen] that is in order, in global memory. One block. */
template <typename K>
static __global__ void __launch_bounds__(SPLIT_THREADS)
    grow_kernel(const K *in_order, int seen, int wanted, struct split<K> *split)
{
    __shared__ K splitters[SPLIT_BUCKETS];
    __shared__ uint32_t begins[SPLIT_BUCKETS];
    wait_for_kernels_before();
    split->splitters[threadIdx.x] = 0;
    grow_tree(in_order, seen, wanted, SPLIT_BUCKETS, splitters, begins, split);
}
static_assert((INT64_C(2) << ENGINE_SAMPLE_LOG_MAX) * COUNTED_REGIONS <= INT32_MAX,
              "products of grow_tree()");

/* Sort all of a sample by a level, and cut it. A part of the sample that one block can sort has only a dozen keys or so for each region,
 * so that regions would differ by a quarter. The level rarely leaves anything. If it does, the map that exists already will do. */
template <typename K>
static hsort_status cut_whole_sample(struct cuda_engine *engine, const struct level_input &input, int wanted,
                                     const struct partition_memory<K> &memory,
                                     const struct sample_memory<K> &sample, struct engine_map *map)
{
    const struct level_tables<K> &level = memory.level;
    uint32_t left;
    TRY_CUDA(cudaMemsetAsync(level.left_count, 0, sizeof *level.left_count, engine->streams[STREAM_WORK]));
    TRY(queue_level(engine, codes_only, codes_only, input, plan_of_batch<K>(engine), level, sample.room,
                    sample.ordered));
    TRY(copy_left_count(engine, level.left_count, &left));
    if (left > 0)
        return HSORT_OK;
    TRY(launch_behind(engine, "regions of a sample", grow_kernel<K>, 1, SPLIT_THREADS, 0, sample.ordered,
                      (int)input.keys, wanted, memory.split));
    return fetch_split(engine, memory.split, map);
}

/* How many regions are wanted, each with `times` times the usual number of keys. */
template <typename K>
static int64_t regions_wanted(const struct cuda_engine *engine, int64_t total, bool of_pairs, int times)
{
    const int64_t wanted = total / times / own_size<K>(engine, MSD_REGION_KEYS);
    return of_pairs ? (int64_t)PAIR_REGIONS_MAX
                    : min(max(wanted, (int64_t)REGIONS_WANTED_MIN), (int64_t)COUNTED_REGIONS);
}

template <typename K>
static hsort_status make_map(struct cuda_engine *engine, const uint64_t *codes, int log, int64_t total,
                             bool of_pairs, void *workspace, void *scratch, struct engine_map *map)
{
    struct partition_memory<K> memory = lay_out_partition<K>(workspace);
    const struct sample_memory<K> sample = lay_out_sample<K>(scratch, log);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const int64_t seen = INT64_C(1) << log;
    const int64_t wanted = regions_wanted<K>(engine, total, of_pairs, 1),
                  wanted_even = regions_wanted<K>(engine, total, of_pairs, EVEN_REGION);
    struct level_input input = {};
    struct level_plan plan = plan_of_regions(divide_up(seen, wanted_even), divide_up(seen, wanted), false);
    if (of_pairs)
        plan.most_buckets = ORDERED_BUCKETS;
    TRY_CUDA(cudaMemcpyAsync(sample.codes, codes, sizeof *sample.codes << log, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaMemsetAsync(memory.split, 0, sizeof *memory.split, stream)); // all of its bytes travel
    narrow_kernel<K>
        <<<(unsigned)(seen / SPLIT_THREADS), SPLIT_THREADS, 0, stream>>>(sample.codes, sample.narrow);
    TRY_LAUNCH("the sample in keys of its own width");
    add_segment(&input, seen, 0, -1);
    add_piece(&input, sample.narrow, seen, tile_keys<K>(engine));
    TRY(queue_splits(engine, codes_only, input, plan, memory.first));
    TRY(fetch_split(engine, memory.split, map));
    if (!is_sorted_whole(log) || of_pairs || ((const struct split<K> *)map)->is_linear)
        return HSORT_OK;
    return cut_whole_sample(engine, input, (int)wanted, memory, sample, map);
}

#endif
