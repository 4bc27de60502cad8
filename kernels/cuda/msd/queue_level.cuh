/* The MSD sort from the host: the functions that queue a level. For the local sort (msd.cu) and for the exchange `partition`
 * (partition.cu). */
#ifndef QUEUE_LEVEL_CUH
#define QUEUE_LEVEL_CUH

#include "kernels/cuda/msd/extents.cuh"
#include <stdlib.h>
#include <string.h>
#include <type_traits>

/* ---- sizes --------------------------------------------------------------------------------------------- */

/* The ways in which a level works: as one that has others beside it; by smaller tiles; into larger buckets. */
enum level_way { LEVEL_USUAL, LEVEL_SMALL_TILES, LEVEL_LARGE_BUCKETS };

/* Keys of a thread in a tile, for a level that works in this way. */
static constexpr int scatter_keys(int usual_keys, int way)
{
    return way == LEVEL_SMALL_TILES && usual_keys > ALONE_SCATTER_KEYS ? (int)ALONE_SCATTER_KEYS : usual_keys;
}

/* The sizes of tuning.h that have a number for each class: `of[class_of()][WIDTH_NUMBER]`. */
template <typename K>
constexpr int WIDTH_NUMBER = sizeof(K) / sizeof(uint64_t); // 0, 1, 2

/* The same sizes, as types and constants from which kernels are made. */
template <typename K, int CLASS>
struct class_sizes {
    static constexpr int WIDTH = WIDTH_NUMBER<K>, SCATTER_KEYS = MSD_SCATTER_KEYS[CLASS][WIDTH],
                         REGIONS = MSD_REGIONS_MOST[CLASS][WIDTH];
    template <const struct msd_block (&OF)[MSD_CLASSES][MSD_WIDTHS]>
    using block = block_size<OF[CLASS][WIDTH].threads, OF[CLASS][WIDTH].keys, OF[CLASS][WIDTH].blocks>;
    typedef block<MSD_USUAL> usual;
    typedef block<MSD_LARGE> large;
    typedef block<MSD_HUGE> huge;
    typedef block_size<SPLIT_THREADS, MSD_SAMPLE_ROWS[CLASS][WIDTH], 1, MSD_SAMPLE_VECTORS[CLASS][WIDTH]>
        sample;

    /* The block sort for most buckets of a level. */
    template <int WAY>
    using most = typename std::conditional<WAY == LEVEL_LARGE_BUCKETS, large, usual>::type;
};

/* The most bytes of shared memory that the variables of a kernel take beside a block sort, and beside the split of a sample. */
template <typename K>
constexpr int SORT_OWN_BYTES = by_width<K>(5 << 9, 5 << 9, 4 << 10);
template <typename K>
constexpr int SPLIT_OWN_BYTES = by_width<K>(8 << 10, 8 << 10, 9 << 10);

/* Do all these sizes fit into shared memory, beside the variables that kernels have there? */
template <typename K, int CLASS>
constexpr bool fits_class()
{
    typedef class_sizes<K, CLASS> sizes;
    constexpr int all[] = {(int)(sizeof(scatter_tile<K, sizes::SCATTER_KEYS>) + sizeof(scatter_words<K>) +
                                 sizeof(cut_regions<sizes::REGIONS>)),
                           block_sort_bytes<typename sizes::usual, K>() + SORT_OWN_BYTES<K>,
                           block_sort_bytes<typename sizes::large, K>() + SORT_OWN_BYTES<K>,
                           block_sort_bytes<typename sizes::huge, K>() + SORT_OWN_BYTES<K>,
                           block_sort_bytes<typename sizes::sample, K>() + SPLIT_OWN_BYTES<K>};
    for (int bytes : all) {
        if (bytes > MSD_BLOCK_BYTES[CLASS])
            return false;
    }
    return sizes::sample::CAPACITY <= SAMPLE_MAX<K>;
}
template <typename K>
constexpr bool fits_classes = fits_class<K, MSD_227>() && fits_class<K, MSD_163>() && fits_class<K, MSD_96>();
static_assert(fits_classes<uint32_t> && fits_classes<uint64_t> && fits_classes<uint128>,
              "what rung 8 asks a GPU for");

/* The class of the device; the last class, if the device has too little shared memory even for that. */
static int class_of(const struct cuda_engine *engine)
{
    int number = 0;
    while (number < MSD_CLASSES - 1 && engine->block_bytes < MSD_BLOCK_BYTES[number])
        number++;
    return number;
}

static bool can_sort_by_levels(const struct cuda_engine *engine)
{
    return engine->block_bytes >= MSD_BLOCK_BYTES[MSD_CLASSES - 1];
}

/* The number for the device's class, among numbers of tuning.h. */
template <typename K>
static int own_size(const struct cuda_engine *engine, const int (&numbers)[MSD_CLASSES][MSD_WIDTHS])
{
    return numbers[class_of(engine)][WIDTH_NUMBER<K>];
}

/* Call run() with the class of the device as a number that the compiler knows: run(std::integral_constant<int, CLASS>()). */
template <typename F>
static auto with_class(const struct cuda_engine *engine, const F &run)
{
    switch (class_of(engine)) {
    case MSD_227:
        return run(std::integral_constant<int, MSD_227>());
    case MSD_163:
        return run(std::integral_constant<int, MSD_163>());
    default:
        return run(std::integral_constant<int, MSD_96>());
    }
}

/* Keys of the largest block sort: a fuller bucket is left for another level. */
template <typename K>
static int huge_keys(const struct cuda_engine *engine)
{
    const struct msd_block &huge = MSD_HUGE[class_of(engine)][WIDTH_NUMBER<K>];
    return huge.threads * huge.keys;
}

template <typename K>
static int tile_keys(const struct cuda_engine *engine, int way = LEVEL_USUAL)
{
    return SCATTER_THREADS * scatter_keys(own_size<K>(engine, MSD_SCATTER_KEYS), way);
}

/* ---- tables -------------------------------------------------------------------------------------------- */

template <typename T>
static T *take_array(char **next, int64_t count)
{
    T *taken = (T *)*next;
    *next += divide_up(count * (int64_t)sizeof(T), 256) * 256;
    return taken;
}

/* Take tables for `segments` segments that have `keys` keys together, from *next on, and move *next behind them. If *next begins as
 * NULL, the call serves only to learn how many bytes they take. at_a_time: segments of a launch. */
template <typename K>
static struct level_tables<K> take_level(char **next, int segments, int at_a_time, int64_t keys,
                                         int run_keys) {
    struct level_tables<K> level = {
    };
    const int64_t buckets = (int64_t)segments * SPLIT_BUCKETS,
                  buckets_at_a_time = (int64_t)at_a_time * SPLIT_BUCKETS;
    level.head = take_array<struct level_head>(next, 1);
    level.left_count = take_array<uint32_t>(next, 1);
    level.segments = take_array<struct segment>(next, segments);
    level.counts = take_array<int64_t>(next, segments);
    level.splits = take_array<struct split<K>>(next, segments);
    level.overflows = take_array<uint32_t>(next, segments);
    level.buckets = take_array<struct bucket_line>(next, buckets / BUCKETS_OF_LINE);
    level.usual = take_array<struct bucket_task<K>>(next, buckets_at_a_time);
    level.rest = take_array<struct rest_task>(next, buckets_at_a_time + keys / run_keys);
    level.samples = take_array<K>(next, (int64_t)at_a_time *SAMPLE_MAX<K>);
    level.sorted = take_array<K>(next, SAMPLE_MAX<K>);
    return level;
}

/* Take the extents of `keys` keys in up to `regions` regions, from *next on as take_level() does: their rows, and the extents for which
 * near_keys [keys], which the caller sets, has no room. Fewer keys and regions take no more memory. */
template <typename K>
static struct extents<K> take_extents(char **next, int64_t keys, int regions, int tile) {
    struct extents<K> extents = {
    };
    const int64_t tiles = divide_up(keys, tile);
    while (tiles >> extents.log_tiles > EXTENTS_MOST)
        extents.log_tiles++;
    extents.tile = tile;
    extents.keys = (int64_t)tile << extents.log_tiles;
    extents.near_count = (uint32_t)(keys / extents.keys);
    extents.row_length = (uint32_t)(tiles >> extents.log_tiles) + 1;
    extents.row_count = (uint32_t)min(2 * regions, (int)SPLIT_BUCKETS); // a tree has more, of one value
    extents.taken = take_array<uint32_t>(next, 1 + (int64_t)extents.row_count * (EXTENTS_MOST + 1));
    extents.rows = extents.taken + 1;
    // each region may end with an extent that is not full
    extents.far_keys = take_array<K>(next, (regions + 1) * extents.keys);
    return extents;
}

/* The end of the memory that has to be zero before an extent is taken. */
template <typename K>
static char *end_of_rows(const struct extents<K> &extents)
{
    return (char *)(extents.rows + (size_t)extents.row_count * extents.row_length);
}

/* The tables of a level from segment `first` on. Tasks and samples are those of a launch. */
template <typename K>
static struct level_tables<K> tables_from(struct level_tables<K> level, int first) {
    level.segments += first;
    level.counts += first;
    level.splits += first;
    level.overflows += first;
    level.buckets += first * (SPLIT_BUCKETS / BUCKETS_OF_LINE);
    return level;
}

/* ---- plans --------------------------------------------------------------------------------------------- */

/* The plan of a level that has others beside it. */
template <typename K>
static struct level_plan plan_of_batch(const struct cuda_engine *engine)
{
    const int linear = own_size<K>(engine, MSD_LINEAR_KEYS), tree = own_size<K>(engine, MSD_TREE_KEYS);
    return {linear, tree, SAMPLE_OF_BUCKET, INT_MAX, FILL_KEYS, false, false, SPLIT_BUCKETS};
}

/* The plan of a first level, with so many keys in a region, in a linear split and in a tree. waits: the level waits for the split, so
 * that many blocks make it, from a smaller sample. */
static struct level_plan plan_of_regions(int64_t linear_keys, int64_t tree_keys, bool waits)
{
    return {(int)min(linear_keys, (int64_t)INT32_MAX), (int)min(tree_keys, (int64_t)INT32_MAX),
            SAMPLE_OF_BUCKET, waits ? (int)RANKED_SAMPLE : INT_MAX, FILL_KEYS, false, waits,
            SPLIT_BUCKETS};
}

/* Keys of the largest sample. */
template <typename K>
static int sample_keys(const struct cuda_engine *engine)
{
    return SPLIT_THREADS * own_size<K>(engine, MSD_SAMPLE_ROWS);
}

/* The plan, with a sample that a block of the device can sort. */
template <typename K>
static struct level_plan with_own_sample(const struct cuda_engine *engine, struct level_plan plan)
{
    plan.sample_most = min(plan.sample_most, sample_keys<K>(engine));
    return plan;
}

/* ---- a level ------------------------------------------------------------------------------------------- */

/* What a level is given: its segments so far. */
struct level_input {
    struct segments segments;
    struct pieces pieces;
    int64_t scratch, keys; /* of the segments so far */
    uint32_t tiles;
};

/* Is there room for another segment, of one piece? */
static inline bool has_room(const struct level_input *input, int most_segments, int64_t keys,
                            int64_t scratch_room)
{
    return input->segments.count < most_segments && input->pieces.count < LEVEL_PIECES &&
           input->scratch + scratch_keys(keys) <= scratch_room;
}

/* Add a segment of `keys` keys; its pieces follow. */
static void add_segment(struct level_input *input, int64_t keys, int64_t out_first, int left)
{
    input->segments.segment[input->segments.count++] = {(uint64_t)input->scratch, (uint64_t)out_first, left};
    input->scratch += scratch_keys(keys);
    input->keys += keys;
}

static void add_piece(struct level_input *input, const void *keys, int64_t count, int tile)
{
    input->pieces.piece[input->pieces.count++] = {keys, count, input->segments.count - 1, input->tiles};
    input->tiles += (uint32_t)divide_up(count, tile);
}

/* Queue the scatter of all pieces. */
template <typename K, int WAY = LEVEL_USUAL, typename FIRST>
static hsort_status queue_scatter(struct cuda_engine *engine, const FIRST &coding,
                                  const struct level_input &input, const struct level_tables<K> &level,
                                  K *scratch, bool beside = false)
{
    return with_class(engine, [&](auto number) {
        constexpr int KEYS = scatter_keys(class_sizes<K, decltype(number)::value>::SCATTER_KEYS, WAY);
        return launch_behind(engine, "scatter", scatter_kernel<K, KEYS, FIRST>, input.tiles, SCATTER_THREADS,
                             sizeof(scatter_tile<K, KEYS>), coding, input.pieces, scratch, level, beside);
    });
}

/* Queue the choice of each segment's split. */
template <typename K, typename FIRST>
static hsort_status queue_splits(struct cuda_engine *engine, const FIRST &coding,
                                 const struct level_input &input, const struct level_plan &wanted,
                                 const struct level_tables<K> &level)
{
    const struct level_plan plan = with_own_sample<K>(engine, wanted);
    const int most = sample_size<K>(input.keys, plan); // of any segment
    const dim3 blocks((unsigned)divide_up(max(most, 1), SAMPLE_THREADS), (unsigned)input.segments.count);
    TRY(launch_behind(engine, "samples", take_samples_kernel<K, FIRST>, blocks, SAMPLE_THREADS, 0, coding,
                      input.pieces, plan, level));
    // the first block does something else. One wave: a multiprocessor has room for one block
    const unsigned rankers =
        plan.has_one_segment ? 1 + (unsigned)min((int)divide_up(most, RANKED), engine->multiprocessors - 1)
                             : 1;
    return with_class(engine, [&](auto number) {
        typedef typename class_sizes<K, decltype(number)::value>::sample S;
        return launch_behind(engine, "splits", make_splits_kernel<S, K>,
                             dim3((unsigned)input.segments.count, rankers), S::THREADS,
                             block_sort_bytes<S, K>(), input.segments, plan, input.keys, level);
    });
}

/* Queue the tasks that are not usual, and usual ones from `first` on. */
template <typename K, typename LAST, typename T>
static hsort_status queue_rest(struct cuda_engine *engine, const LAST &last,
                               const struct level_tables<K> &level, uint32_t first, K *scratch, T *out)
{
    return with_class(engine, [&](auto number) {
        typedef typename class_sizes<K, decltype(number)::value>::huge S;
        return launch_behind(engine, "rest of the buckets", rest_kernel<S, K, LAST, T>,
                             engine->multiprocessors, S::THREADS, block_sort_bytes<S, K>(), last, scratch,
                             out, first, level);
    });
}

/* Queue the list of what becomes of the buckets, and the second scatter. */
template <typename K, int WAY>
static hsort_status queue_list(struct cuda_engine *engine, const struct coding &first,
                               const struct level_input &input, const struct level_plan &plan,
                               const struct level_tables<K> &level, K *scratch)
{
    return with_class(engine, [&](auto number) {
        typedef class_sizes<K, decltype(number)::value> sizes;
        typedef typename sizes::template most<WAY> usual;
        constexpr int KEYS = scatter_keys(sizes::SCATTER_KEYS, WAY), MOST = sizes::huge::CAPACITY;
        static_assert(usual::CAPACITY <= MOST, "a bucket is usual, or goes to a larger block, or is a giant");
        TRY(launch_behind(engine, "list of the buckets", list_buckets_kernel<usual, K>, input.segments.count,
                          SPLIT_BUCKETS, 0, MOST, plan.run_keys, level));
        return launch_behind(engine, "second scatter", scatter_again_kernel<K, KEYS>,
                             engine->multiprocessors * SCATTER_BLOCKS, SCATTER_THREADS,
                             sizeof(scatter_tile<K, KEYS>), first, input.pieces, input.tiles, scratch, level);
    });
}

/* Queue a level whose splits have been queued: sort the segments' keys into out. beside: as scatter_kernel() says. */
template <typename K, int WAY = LEVEL_USUAL, typename LAST, typename T>
static hsort_status queue_sorts(struct cuda_engine *engine, const struct coding &first, const LAST &last,
                                const struct level_input &input, const struct level_plan &plan,
                                const struct level_tables<K> &level, K *scratch, T *out, bool beside = false)
{
    const int segments = input.segments.count;
    TRY((queue_scatter<K, WAY>(engine, first, input, level, scratch, beside)));
    TRY((queue_list<K, WAY>(engine, first, input, plan, level, scratch)));
    // more than a split has, except the splits of what was left; rest_kernel() takes those beyond
    const int64_t buckets =
        min(input.keys / plan.tree_keys + 8 * segments, (int64_t)segments * SPLIT_BUCKETS);
    TRY(queue_rest(engine, last, level, (uint32_t)buckets, scratch, out));
    return with_class(engine, [&](auto number) {
        typedef typename class_sizes<K, decltype(number)::value>::template most<WAY> S;
        return launch_behind(engine, "block sorts", usual_kernel<S, K, LAST, T>, (unsigned)buckets,
                             S::THREADS, block_sort_bytes<S, K>(), last, scratch, out, level,
                             &engine->result->left, ++engine->levels);
    });
}

/* Queue all of a level: sort the segments' keys into out. first: how they are loaded; last: how they are stored (coding.cuh). The pieces
 * are cut into tiles of tile_keys(), of the same WAY. */
template <typename K, int WAY = LEVEL_USUAL, typename LAST, typename T>
static hsort_status queue_level(struct cuda_engine *engine, const struct coding &first, const LAST &last,
                                const struct level_input &input, const struct level_plan &plan,
                                const struct level_tables<K> &level, K *scratch, T *out)
{
    if (input.tiles == 0)
        return HSORT_OK;
    TRY(queue_splits(engine, first, input, plan, level));
    return queue_sorts<K, WAY>(engine, first, last, input, plan, level, scratch, out);
}

/* ---- the first level ------------------------------------------------------------------------------------- */

static_assert((int)SPLIT_BUCKETS <= (int)ENGINE_SEARCH_MAX,
              "place_regions_kernel() tells the host of each region");

/* Queue the count of keys [count], or of a part of them, by the split of the first level, whose counts are zero. mixed: as
 * count_kernel() says. */
template <int EVERY = ALL_GROUPS, typename K, typename FIRST, typename S>
static hsort_status queue_count(struct cuda_engine *engine, const FIRST &coding, const S *keys, int64_t count,
                                const struct level_tables<K> &level, const uint32_t *mixed)
{
    const int64_t vectors = divide_up(divide_up(count, EVERY) * (int64_t)sizeof(S),
                                      (int64_t)sizeof(uint4) * COUNT_THREADS * COUNT_VECTORS);
    if (count == 0)
        return HSORT_OK;
    return launch_behind(engine, "count of regions", count_kernel<EVERY, K, FIRST, S>,
                         (unsigned)min(vectors, (int64_t)engine->multiprocessors), COUNT_THREADS, 0, coding,
                         keys, count, level.splits, level.region_counts, level.found, mixed);
}

/* Queue the kernel that finds where regions begin, once they have been counted. */
template <typename K>
static hsort_status queue_places(struct cuda_engine *engine, bool fills, const struct level_tables<K> &level)
{
    struct cuda_result *result = engine->result;
    *(volatile int32_t *)&result->verdict = FIRST_UNKNOWN;
    return launch_behind(engine, "places of regions", place_regions_kernel<K>, 1, SPLIT_BUCKETS, 0, fills,
                         level, result->less, &result->verdict);
}

/* Queue the scatter of keys [count] to extents, by the split of the first level, and the kernel that tells the host of its regions. */
template <typename K, typename FIRST, typename S>
static hsort_status queue_extents(struct cuda_engine *engine, const FIRST &coding, const S *keys,
                                  int64_t count, const struct level_tables<K> &level)
{
    struct cuda_result *result = engine->result;
    *(volatile int32_t *)&result->verdict = FIRST_UNKNOWN;
    TRY(with_class(engine, [&](auto number) {
        constexpr int CLASS = decltype(number)::value, KEYS = class_sizes<K, CLASS>::SCATTER_KEYS;
        return launch_behind(engine, "scatter to extents",
                             scatter_to_extents_kernel<K, KEYS, class_sizes<K, CLASS>::REGIONS, FIRST, S>,
                             (unsigned)divide_up(count, (int64_t)level.extents.tile), SCATTER_THREADS,
                             sizeof(scatter_tile<K, KEYS>), coding, keys, count, level);
    }));
    return launch_behind(engine, "regions in extents", tell_extents_kernel<K>, 1, SPLIT_BUCKETS, 0, level,
                         result->less, &result->verdict);
}

/* ---- what is left --------------------------------------------------------------------------------------- */

/* Buckets that levels have left for another level. */
struct left_list {
    struct left_bucket *entries; /* [count] on the host; for free() */
    uint32_t count;
};

/* Queue a region to be left. Its keys, `from` [count] or in the extents of the row `from`, go to their places in out, from `first` on,
 * and wait there as codes. The kernel that tells the host of it counts as a level. */
template <typename K>
static hsort_status leave_region(struct cuda_engine *engine, const struct level_tables<K> &level,
                                 const void *from, K *out, int64_t first, int64_t count)
{
    const struct piece piece = {from, count, 0, 0};
    TRY(launch_behind(engine, "list of a region", list_region_kernel<K>, 1, 1, 0, (uint64_t)first,
                      (uint64_t)count, level, &engine->result->left, ++engine->levels));
    return launch_behind(engine, "a region for another level", leave_region_kernel<K>,
                         engine->multiprocessors * 8, MSD_WRITE_THREADS, 0, piece, tile_keys<K>(engine),
                         out + first, level);
}

/* Find how many buckets levels have left. Levels may have been queued with other workspaces since, so what the last level told need not
 * be about this workspace. */
static inline hsort_status copy_left_count(struct cuda_engine *engine, const uint32_t *left_count, uint32_t *left)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    int64_t *copied = &engine->result->cut;
    TRY_CUDA(cudaMemcpyAsync(copied, left_count, sizeof *left_count, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    memcpy(left, copied, sizeof *left);
    return HSORT_OK;
}

/* Fetch the list of what the levels so far have left, `count` buckets, and begin another list: level->left is then the fetched list, and
 * level->next_left an empty one; lists [2] are their two places. Buckets beyond level->left_room are in the count only. Waits for
 * STREAM_WORK if there are any buckets. */
template <typename K>
static hsort_status fetch_left(struct cuda_engine *engine, struct left_bucket *const *lists,
                               struct level_tables<K> *level, uint32_t count, struct left_list *list)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    *list = {NULL, count};
    if (count == 0)
        return HSORT_OK;
    const size_t bytes = min(count, level->left_room) * sizeof *list->entries;
    list->entries = (struct left_bucket *)malloc(bytes);
    if (!list->entries)
        return status_fail(HSORT_HOST_MEMORY, "no memory for a list of %u buckets", count);
    level->left = level->next_left;
    level->next_left = level->left == lists[0] ? lists[1] : lists[0];
    TRY_CUDA(cudaMemcpyAsync(list->entries, level->left, bytes, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaMemsetAsync(level->left_count, 0, sizeof *level->left_count, stream));
    return cuda_check(cudaStreamSynchronize(stream), "copy of a list of buckets");
}

#endif
