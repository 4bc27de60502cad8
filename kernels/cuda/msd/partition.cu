/* Sorting by regions: the functions of engine.h, and what they queue. partition.cuh has the kernels and pictures them. */
#include "kernels/cuda/msd/partition.cuh"
#include <stdlib.h>
#include <string.h>

template <typename K>
constexpr int pass_keys = by_width<K>(MSD_PASS_KEYS_4, MSD_PASS_KEYS_8);

static_assert(sizeof(struct window) <= sizeof(struct engine_map), "a map travels whole");
static_assert(offsetof(struct partition_work, window) == 0, "the map is what the workspace begins with");

static size_t cuda_partition_workspace(const struct engine *, int)
{
    return sizeof(struct partition_work);
}

/* Keys of the largest leaf that the device has room for. */
static int most_of_leaf(const struct cuda_engine *engine)
{
    return engine->block_bytes < MSD_HUGE_BYTES ? (int)wide_leaf<no_value>::CAPACITY
                                                : (int)huge_leaf<no_value>::CAPACITY;
}

/* ---- the sample and the map ---------------------------------------------------------------------------- */

static hsort_status cuda_partition_sample(struct engine *base, int key_bytes,
                                              const struct raw_keys *raw, int64_t before, int64_t total,
                                              int log, int64_t first, int sample, void *workspace,
                                              uint64_t *codes)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    struct partition_work *work = (struct partition_work *)workspace;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const unsigned blocks = (unsigned)divide_up(sample, SAMPLE_THREADS);
    uint64_t *taken = (uint64_t *)work->codes;
    TRY(kernel_takes("sample", key_bytes));
    if (sample == 0)
        return HSORT_OK;
    TRY(with_key_type(key_bytes, [&](auto key) {
        part_sample_kernel<<<blocks, SAMPLE_THREADS, 0, stream>>>(
            coding_of(raw), (const decltype(key) *)raw->from, before, total, log, first, sample, taken);
        TRY_LAUNCH("the sample of a partition");
        return HSORT_OK;
    }));
    TRY_CUDA(cudaMemcpyAsync(codes, taken, (size_t)sample * sizeof *codes, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    return HSORT_OK;
}

/* From codes of the sample, in the workspace, to a window there. */
template <typename K>
static hsort_status queue_map(struct cuda_engine *engine, int log, int64_t total, struct partition_work *work)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const int seen = 1 << log;
    K *keys = (K *)work->cursors; // not in use yet
    static_assert(sizeof(K) << ENGINE_SAMPLE_LOG_MAX <= sizeof(((struct partition_work *)0)->cursors),
                  "a sample");
    struct window_wish wish = {};
    wish.most_bits = 2 * PART_LOG;
    wish.upper_bits = PART_LOG;
    wish.linear_bits =
        max(bucket_bits(total, wish.most_bits), (int)PART_LOG); // few keys in many regions do no harm
    wish.table_bits = min(wish.linear_bits + 1, wish.most_bits);
    wish.target = (float)seen / (float)total * MSD_LEAF_KEYS;
    wish.answer_for_none = 0;
    wish.limit = (uint32_t)min(2.0f * (float)seen / (float)total * (float)huge_leaf<no_value>::CAPACITY + 8,
                               (float)(seen >> 3));
    wish.halves = work->halves;
    const int slices = CELLS * SLICES * 4;
    TRY_CUDA(cudaMemsetAsync(&work->sample, 0, sizeof work->sample, stream));
    const unsigned blocks = (unsigned)divide_up(seen, SAMPLE_PER_BLOCK);
    TRY_CUDA(cudaFuncSetAttribute(gap_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, slices));
    TRY_CUDA(cudaFuncSetAttribute(window_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, slices));
    part_narrow_kernel<<<seen / SAMPLE_THREADS, SAMPLE_THREADS, 0, stream>>>((const uint64_t *)work->codes,
                                                                             keys);
    sample_kernel<<<seen / SAMPLE_THREADS, SAMPLE_THREADS, 0, stream>>>(codes_only, (const K *)keys, seen,
                                                                        log, &work->sample, (K *)work->seen);
    gap_kernel<<<blocks, SAMPLE_THREADS, slices, stream>>>((const K *)work->seen, log, wish.most_bits,
                                                           &work->sample);
    window_kernel<<<blocks, SAMPLE_THREADS, slices, stream>>>((const K *)work->seen, log, wish, &work->sample,
                                                              &work->window, &engine->result->verdict);
    TRY_LAUNCH("the map of a partition");
    return HSORT_OK;
}

static hsort_status cuda_partition_map(struct engine *base, int key_bytes, const uint64_t *codes, int log,
                                           int64_t total, void *workspace, struct engine_map *map,
                                           enum engine_map_verdict *verdict)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    struct partition_work *work = (struct partition_work *)workspace;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    *verdict = ENGINE_MAP_REFUSED;
    TRY(kernel_takes("map of regions", key_bytes));
    if (engine->block_bytes < MSD_ROOMY_BYTES)
        return HSORT_OK;
    TRY_CUDA(cudaMemcpyAsync(work->codes, codes, sizeof *codes << log, cudaMemcpyDefault, stream));
    TRY(with_key_type(key_bytes,
                      [&](auto key) { return queue_map<decltype(key)>(engine, log, total, work); }));
    TRY_CUDA(cudaMemcpyAsync(map, &work->window, sizeof work->window, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    const struct window *window = (const struct window *)map;
    if (window->kind == MAP_NONE || window->is_each_value) {
        *verdict = ENGINE_MAP_REPEATS;
        return HSORT_OK;
    }
    if (total / ((int64_t)window->last + 1) >
        most_of_leaf(engine) / 8 * 7) // more keys than there are buckets for
        return HSORT_OK;
    // A table follows the sample, so there should be some keys of it for each bucket.
    const bool is_thin = total >> log > MSD_LEAF_KEYS / PART_SAMPLE_OF_LEAF && log < ENGINE_SAMPLE_LOG_MAX;
    *verdict = window->kind != MAP_LINEAR && is_thin ? ENGINE_MAP_WANTS_MORE : ENGINE_MAP_MADE;
    return HSORT_OK;
}

/* ---- the count and the partition ----------------------------------------------------------------------- */

template <typename K>
static hsort_status queue_count(struct cuda_engine *engine, const struct raw_keys *raw, int64_t count,
                                struct partition_work *work)
{
    const int64_t vectors =
        divide_up(count * sizeof(K), sizeof(uint4) * MSD_COUNT_THREADS * MSD_COUNT_VECTORS);
    const unsigned blocks = (unsigned)min(vectors, (int64_t)engine->multiprocessors);
    count_regions_kernel<<<blocks, MSD_COUNT_THREADS, CELL_BYTES, engine->streams[STREAM_WORK]>>>(
        coding_of(raw), (const K *)raw->from, count, work);
    TRY_LAUNCH("the count of regions");
    return HSORT_OK;
}

static hsort_status cuda_partition_count(struct engine *base, int key_bytes,
                                             const struct raw_keys *raw, int64_t count,
                                             const struct engine_map *map, void *workspace, int64_t *counts,
                                             bool *ascends, bool *descends)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    struct partition_work *work = (struct partition_work *)workspace;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    int64_t *found = engine->result->less, *flags = engine->result->not_greater;
    static_assert((int)ENGINE_SEARCH_MAX >= (int)ENGINE_REGIONS, "room for the counts");
    memset(counts, 0, ENGINE_REGIONS * sizeof *counts);
    *ascends = *descends = false;
    TRY(kernel_takes("count of regions", key_bytes));
    TRY_CUDA(cudaMemcpyAsync(&work->window, map, sizeof work->window, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaMemsetAsync(
        &work->ascents, 0,
        offsetof(struct partition_work, region_cursors) - offsetof(struct partition_work, ascents), stream));
    if (count > 0)
        TRY(with_key_type(key_bytes,
                          [&](auto key) { return queue_count<decltype(key)>(engine, raw, count, work); }));
    region_begins_kernel<<<1, ENGINE_REGIONS, 0, stream>>>(work, found, flags);
    TRY_LAUNCH("the begins of regions");
    TRY_CUDA(cudaStreamSynchronize(stream));
    memcpy(counts, found, ENGINE_REGIONS * sizeof *counts);
    *ascends = flags[0] != 0;
    *descends = flags[1] != 0;
    return HSORT_OK;
}

static bool is_linear(const struct engine_map *map)
{
    return ((const struct window *)map)->kind == MAP_LINEAR;
}

/* Bytes of shared memory of a pass. Linear maps have no cells. */
template <typename K, int KEYS>
static int pass_memory(const struct engine_map *map)
{
    return pass_bytes<K, KEYS>() + (is_linear(map) ? 0 : CELL_BYTES);
}

template <typename K, int KEYS>
static hsort_status queue_partition(struct cuda_engine *engine, const struct raw_keys *raw, int64_t count,
                                    const struct engine_map *map, struct partition_work *work, void *to)
{
    const int bytes = pass_memory<K, KEYS>(map);
    TRY_CUDA(
        cudaFuncSetAttribute(partition_kernel<K, KEYS>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    partition_kernel<K, KEYS>
        <<<(unsigned)divide_up(count, MSD_PASS_THREADS * KEYS), MSD_PASS_THREADS, bytes,
           engine->streams[STREAM_WORK]>>>(coding_of(raw), (const K *)raw->from, (K *)to, count, work);
    TRY_LAUNCH("a partition");
    return HSORT_OK;
}

static hsort_status cuda_partition_scatter(struct engine *base, int key_bytes, const struct raw_keys *raw,
                                       int64_t count, const struct engine_map *map, void *workspace, void *to)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    struct partition_work *work = (struct partition_work *)workspace;
    TRY(kernel_takes("partition", key_bytes));
    if (count == 0)
        return HSORT_OK;
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        return queue_partition<K, pass_keys<K>>(engine, raw, count, map, work, to);
    });
}

/* ---- regions to order ---------------------------------------------------------------------------------- */

static int64_t cuda_region_scratch(const struct engine *, int64_t count)
{
    return count + count / 2 + PART_BUCKETS * 16;
}

/* What the kernels are told of the regions and their pieces. */
struct part_tables {
    struct part_slots slots;
    struct part_pieces pieces;
    int64_t scratch, out; /* keys of the slots so far */
    uint32_t tiles;
};

static void make_tables(const struct engine_piece *pieces, int count, int log_buckets, int tile,
                        struct part_tables *tables)
{
    memset(tables, 0, sizeof *tables);
    for (int i = 0; i < count;) {
        const int region = pieces[i].region, number = tables->slots.count++;
        int64_t keys = 0;
        for (; i < count && pieces[i].region == region; i++) {
            tables->pieces.piece[i] = {pieces[i].keys, pieces[i].count, number, tables->tiles};
            tables->tiles += (uint32_t)divide_up(pieces[i].count, tile);
            keys += pieces[i].count;
        }
        const int64_t room = min(cuda_region_scratch(NULL, keys) >> log_buckets, (int64_t)UINT32_MAX);
        tables->slots.slot[number] = {(uint64_t)tables->scratch, (uint64_t)tables->out, (uint32_t)room,
                                      region};
        tables->scratch += cuda_region_scratch(NULL, keys);
        tables->out += keys;
    }
    tables->pieces.count = count;
}

template <typename K, int KEYS>
static hsort_status queue_deal(struct cuda_engine *engine, const struct part_tables &tables,
                               const struct engine_map *map, struct partition_work *work, K *scratch)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const int bytes = pass_memory<K, KEYS>(map), slots = tables.slots.count;
    TRY_CUDA(cudaFuncSetAttribute(deal_pieces_kernel<K, KEYS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  bytes));
    TRY_CUDA(
        cudaFuncSetAttribute(deal_again_kernel<K, KEYS>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    slots_kernel<<<slots, PART_BUCKETS, 0, stream>>>(tables.slots, work);
    if (!is_linear(map))
        region_parts_kernel<K><<<slots, PART_BUCKETS, 0, stream>>>(tables.pieces, work);
    deal_pieces_kernel<K, KEYS>
        <<<tables.tiles, MSD_PASS_THREADS, bytes, stream>>>(tables.pieces, scratch, work);
    const int usual = is_linear(map) ? (int)leaf_for<leaf_range<K>, K, no_value>::CAPACITY
                                     : (int)leaf_for<even_parts<K>, K, no_value>::CAPACITY;
    buckets_kernel<<<slots, PART_BUCKETS, 0, stream>>>(usual, most_of_leaf(engine), work);
    deal_again_kernel<K, KEYS>
        <<<(unsigned)engine->multiprocessors * MSD_PASS_BLOCKS, MSD_PASS_THREADS, bytes, stream>>>(
            tables.pieces, tables.tiles, scratch, work);
    TRY_LAUNCH("a deal of regions");
    return HSORT_OK;
}

template <typename S, typename KNOWN, typename K>
static hsort_status queue_fuller(struct cuda_engine *engine, const struct coding &coding, K *scratch, K *out,
                                 int above, struct partition_work *work)
{
    constexpr int bytes = leaf_bytes<S, K, no_value>();
    TRY_CUDA(cudaFuncSetAttribute(part_fuller_kernel<S, KNOWN, K>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    part_fuller_kernel<S, KNOWN>
        <<<(unsigned)engine->multiprocessors * S::BLOCKS, S::THREADS, bytes, engine->streams[STREAM_WORK]>>>(
            coding, scratch, out, (uint32_t)above, work);
    TRY_LAUNCH("the fuller leaves of regions");
    return HSORT_OK;
}

template <typename KNOWN, typename K>
static hsort_status queue_leaves_of(struct cuda_engine *engine, const struct coding &coding, int slots,
                                    int log_buckets, struct partition_work *work, K *scratch, K *out)
{
    typedef leaf_for<KNOWN, K, no_value> S;
    typedef wide_leaf<no_value> wide;
    constexpr int bytes = leaf_bytes<S, K, no_value>();
    const dim3 giants((unsigned)engine->multiprocessors * 2, MSD_GIANTS_AT_ONCE);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    TRY_CUDA(cudaFuncSetAttribute(part_leaves_kernel<S, KNOWN, K>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    part_leaves_kernel<S, KNOWN><<<(unsigned)slots << log_buckets, S::THREADS, bytes, stream>>>(
        coding, scratch, out, log_buckets, work);
    part_giants_kernel<<<giants, MSD_GIANT_THREADS, 0, stream>>>(coding, (const K *)scratch, out, work);
    TRY_LAUNCH("the leaves of regions");
    TRY((queue_fuller<wide, KNOWN>(engine, coding, scratch, out, S::CAPACITY, work)));
    if (most_of_leaf(engine) > wide::CAPACITY)
        TRY((queue_fuller<huge_leaf<no_value>, KNOWN>(engine, coding, scratch, out, wide::CAPACITY, work)));
    return HSORT_OK;
}

template <typename K, int KEYS>
static hsort_status
queue_regions(struct cuda_engine *engine, const struct engine_map *map, const struct engine_piece *pieces,
              int count, const struct raw_keys *raw, struct partition_work *work, K *scratch, K *out)
{
    const int log_buckets = ((const struct window *)map)->bits[1];
    const struct coding last = {raw->map, false, !raw->map.identity && raw->decode};
    struct part_tables tables;
    make_tables(pieces, count, log_buckets, MSD_PASS_THREADS * KEYS, &tables);
    if (tables.tiles == 0)
        return HSORT_OK;
    TRY((queue_deal<K, KEYS>(engine, tables, map, work, scratch)));
    if (is_linear(map))
        return queue_leaves_of<leaf_range<K>>(engine, last, tables.slots.count, log_buckets, work, scratch,
                                              out);
    return queue_leaves_of<even_parts<K>>(engine, last, tables.slots.count, log_buckets, work, scratch, out);
}

static hsort_status cuda_sort_regions(struct engine *base, int key_bytes, const struct engine_map *map,
                                          const struct engine_piece *pieces, int count,
                                          const struct raw_keys *raw, void *workspace, void *scratch,
                                          void *out)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    struct partition_work *work = (struct partition_work *)workspace;
    TRY(kernel_takes("sort of regions", key_bytes));
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        return queue_regions<K, pass_keys<K>>(engine, map, pieces, count, raw, work, (K *)scratch, (K *)out);
    });
}

/* Sort one bucket that was left. *fits: there was room for that. */
static hsort_status sort_left(struct cuda_engine *engine, int key_bytes, const struct raw_keys *raw,
                              const struct part_left *left, char *scratch, size_t scratch_bytes, bool *fits)
{
    const struct raw_keys again = {raw->map, left->keys, true, false};
    const size_t key_space = divide_up((int64_t)left->count * key_bytes, 256) * 256;
    const int rung = tuning_rung(key_bytes, (int64_t)left->count);
    size_t workspace_bytes;
    struct sort_args args = {};
    args.key_bytes = key_bytes;
    args.count = (int64_t)left->count;
    args.keys = left->keys;
    args.scratch_keys = scratch;
    args.raw = raw->decode ? &again : NULL;
    args.workspace = scratch + key_space;
    TRY(ladder_workspace(engine, rung, &args, &workspace_bytes));
    *fits = key_space + workspace_bytes <= scratch_bytes;
    if (!*fits)
        return HSORT_OK;
    TRY(ladder_sort(engine, rung, &args));
    if (args.sorted_keys != args.keys)
        TRY_CUDA(cudaMemcpyAsync(args.keys, args.sorted_keys, (size_t)args.count * key_bytes, cudaMemcpyDefault,
                                 engine->streams[STREAM_WORK]));
    return HSORT_OK;
}

static hsort_status cuda_settle_regions(struct engine *base, int key_bytes,
                                            const struct raw_keys *raw, void *workspace, void *scratch,
                                            size_t scratch_bytes, bool *unsorted)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    struct partition_work *work = (struct partition_work *)workspace;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    struct part_left left[PART_LEFT];
    uint32_t *word = (uint32_t *)&engine->result->cut;
    *unsorted = true;
    TRY(kernel_takes("rest of regions", key_bytes));
    TRY_CUDA(cudaMemcpyAsync(word, &work->left_count, sizeof *word, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    const uint32_t count = *word;
    *unsorted = count > PART_LEFT;
    if (count == 0)
        return HSORT_OK;
    TRY_CUDA(cudaMemcpyAsync(left, work->left, sizeof left, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaMemsetAsync(&work->left_count, 0, sizeof work->left_count, stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    for (uint32_t i = 0; i < count && !*unsorted; i++) {
        bool fits;
        TRY(sort_left(engine, key_bytes, raw, &left[i], (char *)scratch, scratch_bytes, &fits));
        *unsorted = !fits;
    }
    TRY_CUDA(cudaStreamSynchronize(stream));
    return HSORT_OK;
}

const struct engine_partition_ops cuda_partition_ops = {
    .workspace = cuda_partition_workspace,
    .sample = cuda_partition_sample,
    .make_map = cuda_partition_map,
    .count = cuda_partition_count,
    .scatter = cuda_partition_scatter,
    .region_scratch = cuda_region_scratch,
    .sort_regions = cuda_sort_regions,
    .settle_regions = cuda_settle_regions,
};
