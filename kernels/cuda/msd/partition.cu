/* Sorting by regions: engine_partition_ops of engine.h. Between the first level of an MSD sort (first_level.cuh) and the
 * others (level.cuh) the keys of a region may change ranks. */
#include "kernels/cuda/msd/ordered.cuh"
#include "kernels/cuda/msd/queue_level.cuh"
#include "kernels/numbered_keys.h"
#include <string.h>

enum {
    REGIONS_WANTED_MIN = 256,
    REGIONS_WANTED_MAX = ENGINE_REGIONS - 24,
    LEFT_OF_REGIONS = 4096, /* buckets that are left at a time, at most */
    FILL_BLOCKS = 8         /* of a multiprocessor, that write a value together */
};
static_assert((int)ENGINE_REGIONS == (int)SPLIT_BUCKETS, "a region for each bucket of the first level");

/* A code of a sample on the host's side: of words of 64 bits. */
template <typename K>
using sampled = typename std::conditional<sizeof(K) == sizeof(uint128), uint128, uint64_t>::type;

/* The workspace. The split is what it begins with. */
template <typename K>
struct partition_memory {
    struct split<K> *split;
    struct level_tables<K> level, first;
    struct left_bucket *left[2];
    uint32_t *kept_count; /* of what is left */
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
    memory.kept_count = take_array<uint32_t>(&next, 1);
    memory.first.region_counts = take_array<struct region_counts>(&next, 1);
    memory.bytes = (size_t)(next - (char *)workspace);
    memory.level.next_left = memory.left[0];
    memory.level.left = memory.left[1];
    return memory;
}

static size_t
cuda_partition_workspace(const struct engine *, int key_bytes)
{
    size_t bytes = 0;
    with_key_type(key_bytes, [&](auto key) {
        bytes = lay_out_partition<decltype(key)>(NULL).bytes;
        return HSORT_OK;
    });
    return bytes;
}

/* ---- how keys are loaded, and stored --------------------------------------------------------------------- */

/* run(a code's type, FIRST, the keys) with what first loads raw keys (coding.cuh). */
template <typename F>
static hsort_status with_first(int key_bytes, const struct raw_keys *raw, const F &run)
{
    if (is_numbered(raw))
        return run(uint64_t(), numbering_of<uint32_t>(raw), (const uint32_t *)raw->from);
    return with_key_type(
        key_bytes, [&](auto key) { return run(key, coding_of(raw), (const decltype(key) *)raw->from); });
}

/* run(LAST, the type of what is stored) with what last stores codes K. Places in `out` are counted from address 0; codes that wait for
 * another level lie there, too. */
template <typename K, typename F>
static hsort_status with_last(const struct raw_keys *raw, const F &run)
{
    if constexpr (sizeof(K) == sizeof(uint64_t)) {
        if (wants_positions(raw))
            return run(positions_last<K>(raw, NULL), int64_t());
    }
    const struct coding decoding = {raw->map, false, !is_numbered(raw) && !raw->map.identity && raw->decode};
    return run(decoding, K());
}

/* ---- the sample ---------------------------------------------------------------------------------------- */

/* The scratch of a sample. */
template <typename K>
struct sample_memory {
    sampled<K> *codes;   /* [2^log] */
    K *narrow, *ordered; /* the same in their own width, as they are and sorted: instead of the codes */
    K *room;             /* [scratch_keys(2^log)] of the level that sorts them; NULL where none does */
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

static size_t cuda_sample_scratch(const struct engine *, int key_bytes, int log)
{
    size_t bytes = 0;
    with_key_type(key_bytes, [&](auto key) {
        bytes = lay_out_sample<decltype(key)>(NULL, log).bytes;
        return HSORT_OK;
    });
    return bytes;
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

static hsort_status cuda_partition_sample(struct engine *base, int key_bytes, const struct raw_keys *raw,
                                          const struct sample_share *share, void *scratch, uint64_t *codes)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    TRY(kernel_takes("sample", key_bytes));
    if (share->drawn == 0)
        return HSORT_OK;
    return with_first(key_bytes, raw, [&](auto key, const auto &coding, const auto *keys) {
        typedef decltype(key) K;
        sampled<K> *taken = lay_out_sample<K>(scratch, share->log).codes;
        shard_sample_kernel<K>
            <<<(unsigned)divide_up(share->drawn, SPLIT_THREADS), SPLIT_THREADS, 0, stream>>>(coding, keys,
                                                                                             *share, taken);
        TRY_LAUNCH("the sample of a shard");
        TRY_CUDA(
            cudaMemcpyAsync(codes, taken, (size_t)share->drawn * sizeof *taken, cudaMemcpyDefault, stream));
        return cuda_check(cudaStreamSynchronize(stream), "the sample of a shard");
    });
}

/* ---- the map ------------------------------------------------------------------------------------------- */

template <typename K>
static hsort_status fetch_split(struct cuda_engine *engine, const struct split<K> *split, struct engine_map *map)
{
    static_assert(sizeof *split <= sizeof *map, "a map travels whole");
    cudaStream_t stream = engine->streams[STREAM_WORK];
    TRY_CUDA(cudaMemcpyAsync(map, split, sizeof *split, cudaMemcpyDefault, stream));
    return cuda_check(cudaStreamSynchronize(stream), "the map of regions");
}

/* A tree of a sample [seen] that is in order, in global memory. One block. */
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
static_assert((INT64_C(2) << ENGINE_SAMPLE_LOG_MAX) * REGIONS_WANTED_MAX <= INT32_MAX, "products of grow_tree()");

/* Sort all of a sample by a level, and cut it: a part of it, as one block sorts, has a dozen keys for each region, and these
 * would differ by a quarter. What a level leaves is rare: the map that there is will do then. */
template <typename K>
static hsort_status cut_whole_sample(struct cuda_engine *engine, const struct level_input &input, int wanted,
                                     const struct partition_memory<K> &memory, const struct sample_memory<K> &sample,
                                     struct engine_map *map)
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

template <typename K>
static hsort_status make_map(struct cuda_engine *engine, const uint64_t *codes, int log, int64_t total,
                             bool of_pairs, void *workspace, void *scratch, struct engine_map *map)
{
    struct partition_memory<K> memory = lay_out_partition<K>(workspace);
    const struct sample_memory<K> sample = lay_out_sample<K>(scratch, log);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const int64_t seen = INT64_C(1) << log;
    const int64_t wanted =
        of_pairs ? (int64_t)PAIR_REGIONS_MAX
                 : min(max(total / own_size<K>(engine, MSD_REGION_KEYS), (int64_t)REGIONS_WANTED_MIN),
                       (int64_t)REGIONS_WANTED_MAX);
    struct level_input input = {};
    struct level_plan plan = plan_of_regions(divide_up(seen, wanted), divide_up(seen, wanted), false);
    if (of_pairs)
        plan.most_buckets = ORDERED_BUCKETS;
    TRY_CUDA(cudaMemcpyAsync(sample.codes, codes, sizeof *sample.codes << log, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaMemsetAsync(memory.split, 0, sizeof *memory.split, stream)); // all of its bytes travel
    narrow_kernel<K><<<(unsigned)(seen / SPLIT_THREADS), SPLIT_THREADS, 0, stream>>>(sample.codes,
                                                                                     sample.narrow);
    TRY_LAUNCH("the sample in keys of its own width");
    add_segment(&input, seen, 0, -1);
    add_piece(&input, sample.narrow, seen, tile_keys<K>(engine));
    TRY(queue_splits(engine, codes_only, input, plan, memory.first));
    TRY(fetch_split(engine, memory.split, map));
    if (!is_sorted_whole(log) || of_pairs || ((const struct split<K> *)map)->is_linear)
        return HSORT_OK;
    return cut_whole_sample(engine, input, (int)wanted, memory, sample, map);
}

static hsort_status cuda_partition_map(struct engine *base, int key_bytes, const uint64_t *codes, int log,
                                       int64_t total, bool of_pairs, void *workspace, void *scratch,
                                       struct engine_map *map, bool *made)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    *made = false;
    TRY(kernel_takes("map of regions", key_bytes));
    if (!can_sort_by_levels(engine))
        return HSORT_OK;
    TRY(with_key_type(key_bytes, [&](auto key) {
        return make_map<decltype(key)>(engine, codes, log, total, of_pairs, workspace, scratch, map);
    }));
    *made = true;
    return HSORT_OK;
}

/* The map is a split. */
template <typename K>
static bool region_value(const struct engine_map *map, int region, K *value)
{
    const struct split<K> *own = (const struct split<K> *)map;
    return region < own->buckets && is_one_value(*own, region, ends_of_bucket(own->splitters, region), value);
}

static bool cuda_region_value(const struct engine *, int key_bytes, const struct engine_map *map, int region,
                              uint64_t *code)
{
    bool is_one = false;
    with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        K value = 0;
        is_one = region_value(map, region, &value);
        const sampled<K> word = value;
        memcpy(code, &word, sizeof word);
        return HSORT_OK;
    });
    return is_one;
}

/* ---- the first level ----------------------------------------------------------------------------------- */

static hsort_status cuda_partition_count(struct engine *base, int key_bytes, const struct raw_keys *raw,
                                         int64_t count, const struct engine_map *map, void *workspace,
                                         int64_t *counts, bool *ascends, bool *descends)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const struct cuda_result *result = engine->result;
    memset(counts, 0, ENGINE_REGIONS * sizeof *counts);
    *ascends = *descends = false;
    TRY(kernel_takes("count of regions", key_bytes));
    TRY(with_first(key_bytes, raw, [&](auto key, const auto &coding, const auto *keys) {
        typedef decltype(key) K;
        const struct partition_memory<K> memory = lay_out_partition<K>(workspace);
        TRY_CUDA(cudaMemcpyAsync(memory.split, map, sizeof *memory.split, cudaMemcpyDefault, stream));
        struct region_counts *regions = memory.first.region_counts;
        TRY_CUDA(cudaMemsetAsync(regions, 0, sizeof *regions, stream)); // the split was made elsewhere
        TRY_CUDA(cudaMemsetAsync(memory.level.left_count, 0, sizeof *memory.level.left_count, stream));
        TRY(queue_count(engine, coding, keys, count, memory.first, NULL));
        return queue_places(engine, false, memory.first);
    }));
    TRY_CUDA(cudaStreamSynchronize(stream));
    for (int region = 0; region < ENGINE_REGIONS; region++)
        counts[region] = result->less[region] >> 1;
    *ascends = result->not_greater[0] != 0;
    *descends = result->not_greater[1] != 0;
    return HSORT_OK;
}

static hsort_status cuda_partition_scatter(struct engine *base, int key_bytes, const struct raw_keys *raw,
                                           int64_t count, const struct engine_map *, void *workspace,
                                           void *to)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(kernel_takes("scatter", key_bytes));
    if (count == 0)
        return HSORT_OK;
    return with_first(key_bytes, raw, [&](auto key, const auto &coding, const auto *keys) {
        typedef decltype(key) K;
        struct level_input input = {};
        add_segment(&input, count, 0, -1);
        add_piece(&input, keys, count, tile_keys<K>(engine));
        return queue_scatter(engine, coding, input, lay_out_partition<K>(workspace).first, (K *)to);
    });
}

/* ---- the other levels ---------------------------------------------------------------------------------- */

static int64_t cuda_region_scratch(const struct engine *, int64_t count)
{
    return scratch_keys(count);
}

/* Places in `out` are counted from address 0: what is left is looked for in any of the arrays. */
template <typename K>
static hsort_status queue_regions(struct cuda_engine *engine, const struct level_input &input,
                                  const struct raw_keys *raw, const struct level_tables<K> &level, K *scratch)
{
    return with_last<K>(raw, [&](const auto &last, auto stored) {
        return queue_level(engine, codes_only, last, input, plan_of_batch<K>(engine), level, scratch,
                           (decltype(stored) *)NULL);
    });
}

/* Regions of one value, and how often it is written. By value, to a kernel. */
template <typename K>
struct value_fills {
    static constexpr int MOST = sizeof(K) == sizeof(uint128) ? ENGINE_PIECES_MAX / 2 : ENGINE_PIECES_MAX;
    int count;
    int64_t most; /* keys of one */
    struct {
        uint64_t first, keys; /* place in `out`, as above */
        sampled<K> code;
    } fill[MOST];
};
static_assert(sizeof(struct value_fills<uint64_t>) <= 3600 && sizeof(struct value_fills<uint128>) <= 3600,
              "parameters of a kernel");

/* Row y of the grid writes value y, its blocks a run of FILL_KEYS at a time. */
template <typename K, typename LAST>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    fill_regions_kernel(const __grid_constant__ LAST last,
                        const __grid_constant__ struct value_fills<K> fills)
{
    const auto &fill = fills.fill[blockIdx.y];
    K *out = (K *)(uintptr_t)(fill.first * sizeof(K));
    wait_for_kernels_before();
    const K key = (K)stored_key(last, (K)fill.code);
    for (uint64_t at = (uint64_t)blockIdx.x * FILL_KEYS; at < fill.keys;
         at += (uint64_t)gridDim.x * FILL_KEYS)
        fill_keys(out + at, (uint32_t)min(fill.keys - at, (uint64_t)FILL_KEYS), key);
}

template <typename K>
static hsort_status queue_fills(struct cuda_engine *engine, const struct raw_keys *raw,
                                const struct value_fills<K> &fills)
{
    const int64_t blocks =
        min(divide_up(fills.most, FILL_KEYS), (int64_t)engine->multiprocessors * FILL_BLOCKS);
    if (fills.most == 0)
        return HSORT_OK;
    return with_last<K>(raw, [&](const auto &last, auto) {
        typedef typename std::remove_const<typename std::remove_reference<decltype(last)>::type>::type LAST;
        return launch_behind(engine, "regions of one value", fill_regions_kernel<K, LAST>,
                             dim3((unsigned)blocks, (unsigned)fills.count), MSD_WRITE_THREADS, 0, last, fills);
    });
}

/* Add a value; before, queue those so far if there are as many as a launch takes. */
template <typename K>
static hsort_status add_fill(struct cuda_engine *engine, const struct raw_keys *raw, uint64_t first, int64_t keys,
                             K value, struct value_fills<K> *fills)
{
    if (fills->count == value_fills<K>::MOST) {
        TRY(queue_fills(engine, raw, *fills));
        *fills = {};
    }
    fills->fill[fills->count++] = {first, (uint64_t)keys, value};
    fills->most = max(fills->most, keys);
    return HSORT_OK;
}

static hsort_status cuda_sort_regions(struct engine *base, int key_bytes, const struct engine_map *map,
                                      const struct engine_piece *pieces, int count,
                                      const struct raw_keys *raw, void *workspace, void *scratch, void *out)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(kernel_takes("sort of regions", key_bytes));
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        struct level_input input = {};
        struct value_fills<K> fills = {};
        const struct level_tables<K> level = lay_out_partition<K>(workspace).level;
        int64_t scratch_used = 0, place = (int64_t)((uintptr_t)out / sizeof(K)), keys;
        for (int i = 0, end; i < count; i = end, place += keys) {
            K value;
            for (keys = 0, end = i; end < count && pieces[end].region == pieces[i].region; end++)
                keys += pieces[end].count;
            if (region_value(map, pieces[i].region, &value)) {
                TRY(add_fill(engine, raw, (uint64_t)place, keys, value, &fills));
                continue;
            }
            if (input.segments.count == LEVEL_SEGMENTS) {
                TRY(queue_regions(engine, input, raw, level, (K *)scratch + scratch_used));
                scratch_used += input.scratch;
                input = {};
            }
            add_segment(&input, keys, place, -1);
            for (int piece = i; piece < end; piece++)
                add_piece(&input, pieces[piece].keys, pieces[piece].count, tile_keys<K>(engine));
        }
        TRY(queue_fills(engine, raw, fills));
        return queue_regions(engine, input, raw, level, (K *)scratch + scratch_used);
    });
}

/* What the level leaves goes behind what was left before, and is forgotten: the number is put back. */
static hsort_status cuda_order_regions(struct engine *base, int key_bytes, const struct engine_map *map,
                                       const struct engine_piece *pieces, int count, void *workspace, void *scratch, void *out)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    struct raw_keys codes = {};
    uint32_t *left_count = NULL, *kept = NULL;
    codes.map = keymap_of_codes(key_bytes);
    TRY(with_key_type(key_bytes, [&](auto key) {
        const struct partition_memory<decltype(key)> memory = lay_out_partition<decltype(key)>(workspace);
        left_count = memory.level.left_count;
        kept = memory.kept_count;
        return HSORT_OK;
    }));
    {
        device_scope scope(engine);
        TRY_CUDA(cudaMemcpyAsync(kept, left_count, sizeof *kept, cudaMemcpyDefault, stream));
    }
    TRY(cuda_sort_regions(base, key_bytes, map, pieces, count, &codes, workspace, scratch, out));
    device_scope scope(engine);
    return cuda_check(cudaMemcpyAsync(left_count, kept, sizeof *kept, cudaMemcpyDefault, stream), "regions in order");
}

/* Another level for those of a list for which scratch [room] suffices, as its segments. The others are stored as they are, in no
 * order; also those that are on no list, by rest_kernel(). *all: there are no others. */
template <typename K>
static hsort_status settle_once(struct cuda_engine *engine, const struct raw_keys *raw,
                                const struct level_tables<K> &level, const struct left_list *list, K *scratch,
                                int64_t room, bool *all)
{
    struct level_input input = {};
    const uint32_t listed = min(list->count, level.left_room);
    *all = listed == list->count;
    for (uint32_t i = 0; i < listed; i++) {
        const int64_t first = (int64_t)list->entries[i].first, keys = (int64_t)list->entries[i].count;
        K *const codes = (K *)((uintptr_t)first * sizeof(K));
        if (scratch_keys(keys) > room) {
            *all = false;
            if (raw->decode && !is_numbered(raw))
                TRY(keys_map(engine, raw->map, false, codes, codes, keys));
            continue;
        }
        if (!has_room(&input, LEVEL_SEGMENTS, keys, room)) {
            TRY(queue_regions(engine, input, raw, level, scratch));
            input = {};
        }
        add_segment(&input, keys, first, (int)i);
        add_piece(&input, codes, keys, tile_keys<K>(engine));
    }
    return queue_regions(engine, input, raw, level, scratch);
}

static hsort_status cuda_settle_regions(struct engine *base, int key_bytes, const struct raw_keys *raw,
                                        void *workspace, void *scratch, size_t scratch_bytes, bool *unsorted)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    *unsorted = true;
    TRY(kernel_takes("rest of regions", key_bytes));
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        struct partition_memory<K> memory = lay_out_partition<K>(workspace);
        for (bool all_settled = true;;) {
            struct left_list list = {};
            bool all = true;
            uint32_t left;
            TRY(copy_left_count(engine, memory.level.left_count, &left));
            if (left == 0) {
                *unsorted = !all_settled || fault_hit(FAULT_LEFT);
                return HSORT_OK;
            }
            hsort_status status = fetch_left(engine, memory.left, &memory.level, left, &list);
            if (status == HSORT_OK)
                status = settle_once(engine, raw, memory.level, &list, (K *)scratch,
                                     (int64_t)(scratch_bytes / sizeof(K)), &all);
            free(list.entries);
            TRY(status);
            all_settled = all_settled && all;
        }
    });
}

static bool cuda_can_partition(const struct engine *engine)
{
    return can_sort_by_levels((const struct cuda_engine *)engine);
}

const struct engine_partition_ops cuda_partition_ops = {
    .can = cuda_can_partition,
    .workspace = cuda_partition_workspace,
    .sample_scratch = cuda_sample_scratch,
    .sample = cuda_partition_sample,
    .make_map = cuda_partition_map,
    .region_value = cuda_region_value,
    .count = cuda_partition_count,
    .scatter = cuda_partition_scatter,
    .region_scratch = cuda_region_scratch,
    .sort_regions = cuda_sort_regions,
    .order_regions = cuda_order_regions,
    .settle_regions = cuda_settle_regions,
};
