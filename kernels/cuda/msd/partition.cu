/* Sorting by regions, as engine_partition.h describes it. Between the first level of an MSD sort (first_level.cuh) and the other levels
 * (level.cuh) the keys of a region may change ranks. */
#include "kernels/cuda/msd/partition_map.cuh"
#include "kernels/cuda/msd/rooms.cuh"
#include "kernels/numbered_keys.h"
#include <string.h>

enum { FILL_BLOCKS = 8 /* on a multiprocessor, that write a value together */ };

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

/* Call run(a code's type, FIRST, the keys) with the FIRST that loads raw keys (coding.cuh). */
template <typename F>
static hsort_status with_first(int key_bytes, const struct raw_keys *raw, const F &run)
{
    if (is_numbered(raw))
        return run(uint64_t(), numbering_of<uint32_t>(raw), (const uint32_t *)raw->from);
    return with_key_type(
        key_bytes, [&](auto key) { return run(key, coding_of(raw), (const decltype(key) *)raw->from); });
}

/* Call run(LAST, the type of what is stored) with the LAST that stores codes K. Places in `out` are counted from address 0; codes that
 * wait for another level lie there, too. */
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

/* ---- sample and map ------------------------------------------------------------------------------------ */

static size_t cuda_sample_scratch(const struct engine *, int key_bytes, int log)
{
    size_t bytes = 0;
    with_key_type(key_bytes, [&](auto key) {
        bytes = lay_out_sample<decltype(key)>(NULL, log).bytes;
        return HSORT_OK;
    });
    return bytes;
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

static hsort_status cuda_partition_map(struct engine *base, int key_bytes, const uint64_t *codes, int log,
                                       int64_t total, bool of_pairs, void *workspace, void *scratch,
                                       struct engine_map *map)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(kernel_takes("map of regions", key_bytes));
    return with_key_type(key_bytes, [&](auto key) {
        return make_map<decltype(key)>(engine, codes, log, total, of_pairs, workspace, scratch, map);
    });
}

/* Is a region of one value, which is then *value? The map is a split. */
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

/* Make the first level ready for a count by a map that was made elsewhere. */
template <typename K>
static hsort_status begin_count(struct cuda_engine *engine, const struct engine_map *map,
                                const struct partition_memory<K> &memory)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    struct region_counts *regions = memory.first.region_counts;
    TRY_CUDA(cudaMemcpyAsync(memory.split, map, sizeof *memory.split, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaMemsetAsync(regions, 0, sizeof *regions, stream));
    TRY_CUDA(cudaMemsetAsync(memory.first.left_count, 0, sizeof *memory.first.left_count, stream));
    return cuda_check(cudaMemsetAsync(memory.level.left_count, 0, sizeof *memory.level.left_count, stream),
                      "count of regions");
}

/* Wait until a kernel has told how many keys each region has. */
static hsort_status fetch_counts(struct cuda_engine *engine, int64_t *counts)
{
    TRY_CUDA(cudaStreamSynchronize(engine->streams[STREAM_WORK]));
    for (int region = 0; region < ENGINE_REGIONS; region++)
        counts[region] = engine->result->less[region] >> 1;
    return HSORT_OK;
}

static hsort_status cuda_partition_count(struct engine *base, int key_bytes, const struct raw_keys *raw,
                                         int64_t count, const struct engine_map *map, void *workspace,
                                         int64_t *counts, bool *descends)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    memset(counts, 0, ENGINE_REGIONS * sizeof *counts);
    *descends = false;
    TRY(kernel_takes("count of regions", key_bytes));
    TRY(with_first(key_bytes, raw, [&](auto key, const auto &coding, const auto *keys) {
        typedef decltype(key) K;
        const struct partition_memory<K> memory = lay_out_partition<K>(workspace);
        TRY(begin_count(engine, map, memory));
        TRY(queue_count(engine, coding, keys, count, memory.first, NULL));
        return queue_places(engine, false, memory.first);
    }));
    TRY(fetch_counts(engine, counts));
    *descends = engine->result->verdict != FIRST_SORTED;
    return HSORT_OK;
}

/* Queue the scatter of keys [count] to regions that have their places. */
template <typename K, typename FIRST, typename S>
static hsort_status queue_all(struct cuda_engine *engine, const FIRST &coding, const S *keys, int64_t count,
                              const struct level_tables<K> &first, K *to)
{
    struct level_input input = {};
    add_segment(&input, count, 0, -1);
    add_piece(&input, keys, count, tile_keys<K>(engine));
    return queue_scatter(engine, coding, input, first, to);
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
        return queue_all(engine, coding, keys, count, lay_out_partition<K>(workspace).first, (K *)to);
    });
}

static hsort_status cuda_scatter_to_rooms(struct engine *base, int key_bytes, const struct raw_keys *raw,
                                          int64_t count, const struct engine_map *map, void *workspace,
                                          void *to, int64_t room, int64_t *counts, int64_t *begins,
                                          enum engine_scattered *done)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    const struct cuda_result *result = engine->result;
    *done = SCATTER_NOTHING;
    TRY(kernel_takes("scatter to rooms", key_bytes));
    if (count == 0)
        return HSORT_OK;
    TRY(with_first(key_bytes, raw, [&](auto key, const auto &coding, const auto *keys) {
        typedef decltype(key) K;
        const struct partition_memory<K> memory = lay_out_partition<K>(workspace);
        TRY(begin_count(engine, map, memory));
        TRY((queue_count<ROOM_EVERY>(engine, coding, keys, count, memory.first, NULL)));
        TRY(launch_behind(engine, "rooms of regions", place_rooms_kernel<K>, 1, SPLIT_BUCKETS, 0, count, room,
                          memory.first));
        TRY(queue_all(engine, coding, keys, count, memory.first, (K *)to));
        return launch_behind(engine, "regions in rooms", tell_rooms_kernel<K>, 1, SPLIT_BUCKETS, 0,
                             memory.first, engine->result->less, engine->result->not_greater,
                             &engine->result->verdict);
    }));
    TRY(fetch_counts(engine, counts));
    const int last = ENGINE_REGIONS - 1;
    memcpy(begins, result->not_greater, ENGINE_REGIONS * sizeof *begins);
    begins[ENGINE_REGIONS] = begins[last] + (result->less[last] & 1 ? 0 : counts[last]);
    *done = (enum engine_scattered)result->verdict;
    return HSORT_OK;
}

/* ---- the other levels ---------------------------------------------------------------------------------- */

static int64_t cuda_region_scratch(const struct engine *, int64_t count)
{
    return scratch_keys(count);
}

/* Queue a level. Places in `out` are counted from address 0, because what is left is looked for in any of the arrays. */
template <typename K>
static hsort_status queue_regions(struct cuda_engine *engine, const struct level_input &input,
                                  const struct raw_keys *raw, const struct level_tables<K> &level, K *scratch)
{
    return with_last<K>(raw, [&](const auto &last, auto stored) {
        return queue_level(engine, codes_only, last, input, plan_of_batch<K>(engine), level, scratch,
                           (decltype(stored) *)NULL);
    });
}

/* Regions of one value, and how often each value is written. Passed to a kernel by value. */
template <typename K>
struct value_fills {
    static constexpr int MOST = sizeof(K) == sizeof(uint128) ? ENGINE_PIECES_MAX / 2 : ENGINE_PIECES_MAX;
    int count;
    int64_t most; /* keys of one, at most */
    struct {
        uint64_t first, keys; /* place in `out`, as above */
        sampled<K> code;
    } fill[MOST];
};
static_assert(sizeof(struct value_fills<uint64_t>) <= 3600 && sizeof(struct value_fills<uint128>) <= 3600,
              "parameters of a kernel");

/* Row y of the grid writes value y. Each of its blocks writes a run of FILL_KEYS keys at a time. */
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

/* Add a value. If there are already as many as a launch takes, queue those first. */
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

/* The tables of levels for the pieces of a call. settled: what the levels leave is sorted later. Otherwise it is forgotten, and counted
 * where nobody looks. */
template <typename K>
static struct level_tables<K> tables_of_pieces(void *workspace, bool settled) {
    const struct partition_memory<K> memory = lay_out_partition<K>(workspace);
    struct level_tables<K> level = memory.level;
    if (!settled) {
        level.left_count = memory.first.left_count;
        level.left_room = 0;
    }
    return level;
}

static hsort_status cuda_sort_regions(struct engine *base, int key_bytes, const struct engine_map *map,
                                      const struct engine_piece *pieces, int count,
                                      const struct raw_keys *raw, void *workspace, void *scratch, void *out)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    const bool settled = raw != NULL;
    struct raw_keys codes = {};
    device_scope scope(engine);
    TRY(kernel_takes("sort of regions", key_bytes));
    codes.map = keymap_of_codes(key_bytes);
    raw = settled ? raw : &codes;
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        struct level_input input = {};
        struct value_fills<K> fills = {};
        const struct level_tables<K> level = tables_of_pieces<K>(workspace, settled);
        int64_t place = (int64_t)((uintptr_t)out / sizeof(K)), keys;
        for (int i = 0, end; i < count; i = end, place += keys) {
            K value;
            for (keys = 0, end = i; end < count && pieces[end].region == pieces[i].region; end++)
                keys += pieces[end].count;
            if (region_value(map, pieces[i].region, &value)) {
                TRY(add_fill(engine, raw, (uint64_t)place, keys, value, &fills));
                continue;
            }
            add_segment(&input, keys, place, -1);
            for (int piece = i; piece < end; piece++)
                add_piece(&input, pieces[piece].keys, pieces[piece].count, tile_keys<K>(engine));
        }
        static_assert((int)ENGINE_PIECES_MAX <= (int)LEVEL_SEGMENTS, "all pieces are a level");
        TRY(queue_fills(engine, raw, fills));
        return queue_regions(engine, input, raw, level, (K *)scratch);
    });
}

/* Queue another level, whose segments are the buckets of a list for which scratch [room] suffices. The other buckets are stored as they
 * are, in no order; so are those that are on no list, which rest_kernel() stores. *all: there are no other buckets. */
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
    .scatter_to_rooms = cuda_scatter_to_rooms,
    .region_scratch = cuda_region_scratch,
    .sort_regions = cuda_sort_regions,
    .settle_regions = cuda_settle_regions,
};
