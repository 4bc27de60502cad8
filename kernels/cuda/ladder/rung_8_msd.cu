/* Rung 8: radix sort from the most significant digit, finished in shared memory.
 *
 * Idea     Three trips through memory are enough. Two of them deal keys out to buckets so small that the third can
 *          sort each of them in shared memory, where another 12 bits cost next to nothing.
 * Change   Against rung 7: a pass need not keep equal digits in their order, since the passes go from the top down and
 *          what is equal so far is sorted later. So a key's rank is what a counter in shared memory returns, and a tile
 *          asks one cursor per digit for room: no look-back. And the bits that no two keys of a bucket share are never
 *          looked at.
 * Picture  kernels/README.md, with 16 keys. A key's bucket, one of 2^16, comes from a map made for the keys at hand
 *          (window.cuh); its number is two digits:
 *
 *            keys     --- pass 0, by the upper digit: 256 regions --->   scratch
 *            scratch  --- pass 1, by the lower one: 256 buckets of each region --->   keys
 *            keys     --- leaves: each bucket (leaf.cuh) --->   keys
 *
 *          The regions and buckets begin where a count of all keys says (msd_plan.cuh), which also notices sorted and
 *          reversed keys, and keys of few values. Values travel by rung 7's stable pass, lower digit first, and with
 *          their keys through stable leaves. What fits into one block or one cluster takes one launch.
 * Cost     7 moves of a key whatever its width, where rung 7 takes 9 or 17; values 6. Scratch for all; workspace some
 *          MiB. The host waits once, for the plan.
 * Limit    Shared memory, at random addresses: a key meets it three times in a pass and three times in a leaf. Where
 *          buckets do not fit into leaves, because values repeat or crowd, rung 7 sorts instead.
 * Source   Stehle, Jacobsen, "A memory bandwidth-efficient hybrid radix sort on GPUs", 2017. */
#include "kernels/cuda/msd/deal.cuh"
#include "kernels/cuda/ladder/ladder.h"
#include "kernels/cuda/msd/msd_plan.cuh"
#include "kernels/cuda/msd/msd_shortcuts.cuh"
#include "kernels/cuda/ladder/onesweep.cuh"
#include "kernels/cuda/ladder/rung_8_cluster.h"

/* ---- a pass over keys alone ---------------------------------------------------------------------------- */

/* Keys that a pass takes per block: of one region in pass 1. */
struct tile {
    int64_t first;
    int valid;
    int region;
};

/* Tile `number` of pass 0 or, with the tiles of every region for themselves, of pass 1. */
static __device__ struct tile find_tile(const struct plan *plan, int pass, int size, int64_t number,
                                        int64_t count)
{
    if (pass == 0)
        return {number * size, (int)min((int64_t)size, count - number * size), 0};
    int region = 0;
    for (int step = REGIONS / 2; step > 0; step /= 2) { // the last one that begins at this tile or before
        if (plan->region_tiles[region + step] <= number)
            region += step;
    }
    const int64_t end = (int64_t)plan->region_begins[region + 1];
    const int64_t first = (int64_t)plan->region_begins[region] + (number - plan->region_tiles[region]) * size;
    return {first, (int)max(min((int64_t)size, end - first), INT64_C(0)), region};
}

template <int KEYS, typename K, map_kind KIND>
static __device__ void deal_tile(const struct coding &coding, const K *from, K *to, const struct tile &tile,
                                 int pass, struct plan *plan, struct deal_words<REGIONS, K> &words)
{
    extern __shared__ uint64_t shared[];
    struct cell *cells = (struct cell *)(shared + pass_bytes<K, KEYS>() / sizeof(uint64_t)); // [CELLS]
    const struct window &window = plan->window;
    const int lower = window.bits[1];
    const pass_digit<K, KIND> digit = {load_map<K, KIND>(window, cells), pass == 0 ? lower : 0,
                                       pass == 0 ? ~0u : (1u << lower) - 1};
    uint64_t *cursors = pass == 0 ? plan->region_cursors[0] : plan->bucket_cursors[tile.region << lower];
    const int stride = pass == 0 ? REGION_CURSOR : BUCKET_CURSOR;
    deal<REGIONS, KEYS>(coding, from + tile.first, tile.valid, digit,
                        goals_of_cursors<K>{to, cursors, stride}, words);
}

/* May have been queued before it was known whether it is wanted. */
template <typename K, int KEYS>
static __global__ void __launch_bounds__(MSD_PASS_THREADS, MSD_PASS_BLOCKS)
    deal_kernel(const __grid_constant__ struct coding coding, const K *__restrict__ from, K *__restrict__ to,
                int64_t count, int pass, struct plan *plan)
{
    __shared__ struct deal_words<REGIONS, K> words;
    if (plan->verdict != MSD_SPLIT || plan->window.bits[pass] == 0)
        return;
    const struct tile tile = find_tile(plan, pass, MSD_PASS_THREADS * KEYS, blockIdx.x, count);
    if (tile.valid <= 0)
        return;
    switch (plan->window.kind) {
    case MAP_LINEAR:
        return deal_tile<KEYS, K, MAP_LINEAR>(coding, from, to, tile, pass, plan, words);
    case MAP_TABLE:
        return deal_tile<KEYS, K, MAP_TABLE>(coding, from, to, tile, pass, plan, words);
    case MAP_FINE:
        if constexpr (sizeof(K) == 8)
            return deal_tile<KEYS, K, MAP_FINE>(coding, from, to, tile, pass, plan, words);
    }
}

/* ---- leaves -------------------------------------------------------------------------------------------- */

/* Keys that a bucket may have. */
static int leaf_capacity(const struct cuda_engine *engine, bool with_values)
{
    if (engine->block_bytes < MSD_HUGE_BYTES)
        return largest_leaf::CAPACITY;
    return with_values ? (int)huge_leaf<uint64_t>::CAPACITY : (int)huge_leaf<no_value>::CAPACITY;
}

/* What is known of the keys in a bucket, without looking at them, where the map is linear; and where it has cells: nothing. */
template <typename K>
static __device__ void know_bucket(const struct plan *plan, uint32_t bucket, leaf_range<K> &known)
{
    const struct window &window = plan->window;
    known = {0, -1};
    if (window.kind != MAP_LINEAR || bucket == 0 || bucket == window.last) // the ends have the keys outside
        return;
    const int bits = window.right + window.below;
    known = {(K)(window.lowest + ((uint64_t)bucket << bits)), bits};
}

template <typename K>
static __device__ void know_bucket(const struct plan *, uint32_t, even_parts<K> &known)
{
    known = {};
}

template <typename S, typename KNOWN, typename K, typename V>
static __device__ void sort_bucket(const struct coding &coding, uint32_t bucket, columns<K, V> from,
                                   columns<K, V> to, int count, const struct plan *plan)
{
    KNOWN known;
    know_bucket(plan, bucket, known);
    leaf_sort<S>(coding, from, to, count, known);
}

/* Each bucket that fits, by a block. */
template <typename S, typename KNOWN, typename K, typename V>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    leaves_kernel(const __grid_constant__ struct coding coding, columns<K, V> from, columns<K, V> to,
                  const struct plan *plan)
{
    if (blockIdx.x > plan->window.last)
        return;
    const int64_t first = (int64_t)plan->begins[blockIdx.x];
    const int64_t count = (int64_t)plan->begins[blockIdx.x + 1] - first;
    if (0 < count && count <= S::CAPACITY)
        sort_bucket<S, KNOWN>(coding, blockIdx.x, from.at(first), to.at(first), (int)count, plan);
}

/* The buckets of one value that fit no leaf are in order as they are, but may have to go elsewhere or be decoded. Column y of
 * the grid takes every gridDim.y-th of them, with all of its blocks: one of them may have an eighth of all keys. */
template <typename K, typename V>
static __global__ void __launch_bounds__(MSD_GIANT_THREADS)
    giants_kernel(const __grid_constant__ struct coding coding, columns<K, V> from, columns<K, V> to,
                  const struct plan *plan)
{
    for (uint32_t i = blockIdx.y; i < plan->giant_count; i += gridDim.y) {
        const uint32_t bucket = plan->giants[i];
        const int64_t first = (int64_t)plan->begins[bucket];
        const int64_t count = (int64_t)plan->begins[bucket + 1] - first;
        copy_elements(coding, from.at(first), to.at(first), count,
                      (int64_t)blockIdx.x * MSD_GIANT_THREADS + threadIdx.x,
                      (int64_t)gridDim.x * MSD_GIANT_THREADS);
    }
}

/* The buckets of more than `above` keys, from the list of the fuller ones. */
template <typename S, typename KNOWN, typename K, typename V>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    fuller_leaves_kernel(const __grid_constant__ struct coding coding, columns<K, V> from, columns<K, V> to,
                         int above, const struct plan *plan)
{
    for (uint32_t i = blockIdx.x; i < plan->fuller_count; i += gridDim.x) {
        const uint32_t bucket = plan->fuller[i];
        const int64_t first = (int64_t)plan->begins[bucket];
        const int64_t count = (int64_t)plan->begins[bucket + 1] - first;
        if (above < count && count <= S::CAPACITY) {
            sort_bucket<S, KNOWN>(coding, bucket, from.at(first), to.at(first), (int)count, plan);
            __syncthreads(); // before the next one takes the memory
        }
    }
}

template <typename S, typename KNOWN, typename K, typename V>
static hsort_status queue_fuller_leaves(struct cuda_engine *engine, const struct coding &coding,
                                        columns<K, V> from, columns<K, V> to, int above,
                                        const struct msd_answer &answer, const struct plan *plan)
{
    constexpr int bytes = leaf_bytes<S, K, V>();
    if (answer.fullest <= above)
        return HSORT_OK;
    TRY_CUDA(cudaFuncSetAttribute(fuller_leaves_kernel<S, KNOWN, K, V>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    fuller_leaves_kernel<S, KNOWN>
        <<<(unsigned)engine->multiprocessors * S::BLOCKS, S::THREADS, bytes, engine->streams[STREAM_WORK]>>>(
            coding, from, to, above, plan);
    TRY_LAUNCH("rung 8, the fuller leaves");
    return HSORT_OK;
}

/* By size: room for more keys than there are costs more than another launch. */
template <typename KNOWN, typename K, typename V>
static hsort_status queue_leaves(struct cuda_engine *engine, const struct coding &coding, columns<K, V> from,
                                 columns<K, V> to, const struct msd_answer &answer, const struct plan *plan)
{
    typedef leaf_for<KNOWN, K, V> S;
    constexpr int bytes = leaf_bytes<S, K, V>();
    TRY_CUDA(cudaFuncSetAttribute(leaves_kernel<S, KNOWN, K, V>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  bytes));
    leaves_kernel<S, KNOWN>
        <<<1u << answer.bits, S::THREADS, bytes, engine->streams[STREAM_WORK]>>>(coding, from, to, plan);
    TRY_LAUNCH("rung 8, the leaves");
    if (answer.has_giants && (from.keys != to.keys || coding.decodes)) {
        const dim3 blocks((unsigned)engine->multiprocessors * 2, MSD_GIANTS_AT_ONCE);
        giants_kernel<<<blocks, MSD_GIANT_THREADS, 0, engine->streams[STREAM_WORK]>>>(coding, from, to, plan);
        TRY_LAUNCH("rung 8, the giants");
    }
    TRY((queue_fuller_leaves<wide_leaf<V>, KNOWN>(engine, coding, from, to, S::CAPACITY, answer, plan)));
    return queue_fuller_leaves<huge_leaf<V>, KNOWN>(engine, coding, from, to, wide_leaf<V>::CAPACITY, answer,
                                                    plan);
}

/* All keys by one block. */
template <typename S, typename K, typename V>
static __global__ void __launch_bounds__(S::THREADS)
    leaf_kernel(const __grid_constant__ struct coding coding, columns<K, V> from, columns<K, V> to, int count)
{
    leaf_sort<S>(coding, from, to, count, leaf_range<K>{0, -1});
}

template <typename S, typename K, typename V>
static hsort_status launch_leaf(struct cuda_engine *engine, columns<K, V> data, struct sort_args *args)
{
    constexpr int bytes = leaf_bytes<S, K, V>();
    const struct source<K> source = source_of<K>(args);
    TRY_CUDA(cudaFuncSetAttribute(leaf_kernel<S, K, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    leaf_kernel<S><<<1, S::THREADS, bytes, engine->streams[STREAM_WORK]>>>(
        source.coding, columns<K, V>{(K *)source.keys, data.values}, data, (int)args->count);
    TRY_LAUNCH("rung 8, a leaf");
    return HSORT_OK;
}

/* With as few keys for a thread as will do: where many share a bin, the time to merge grows with that. */
template <typename K, typename V>
static hsort_status sort_as_leaf(struct cuda_engine *engine, columns<K, V> data, struct sort_args *args)
{
    typedef leaf_size<LEAF_THREADS, LEAF_KEYS / 4, 1> quarter_leaf;
    typedef leaf_size<LEAF_THREADS * 2, LEAF_KEYS / 4, 1> half_leaf;
    typedef leaf_size<LEAF_THREADS * 2, LEAF_KEYS / 2, 1> whole_leaf;
    static_assert((int)whole_leaf::CAPACITY == (int)LEAF_CAPACITY, "what one block is given");
    if (leaf_bytes<largest_leaf, K, V>() + LEAF_OWN_BYTES > engine->block_bytes)
        return ladder_sort_codes(engine, args, rung_7_onesweep);
    if (args->count <= quarter_leaf::CAPACITY)
        return launch_leaf<quarter_leaf>(engine, data, args);
    if (args->count <= half_leaf::CAPACITY)
        return launch_leaf<half_leaf>(engine, data, args);
    if (leaf_bytes<whole_leaf, K, V>() + LEAF_OWN_BYTES <= engine->block_bytes)
        return launch_leaf<whole_leaf>(engine, data, args);
    return launch_leaf<largest_leaf>(engine, data, args); // with fewer bins
}

/* ---- keys alone ---------------------------------------------------------------------------------------- */

/* Queue the passes; with_cells: the map may have some, and they take shared memory. */
template <typename K, int KEYS>
static hsort_status queue_passes(struct cuda_engine *engine, const struct source<K> &source,
                                 struct sort_args *args, bool with_cells, struct plan *plan)
{
    constexpr int TILE = MSD_PASS_THREADS * KEYS;
    const int bytes = pass_bytes<K, KEYS>() + (with_cells ? CELL_BYTES : 0);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    K *keys = (K *)args->keys, *scratch = (K *)args->scratch_keys;
    const unsigned tiles = (unsigned)divide_up(args->count, TILE);
    TRY_CUDA(cudaFuncSetAttribute(deal_kernel<K, KEYS>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    deal_kernel<K, KEYS><<<tiles, MSD_PASS_THREADS, bytes, stream>>>(source.coding, source.keys, scratch,
                                                                     args->count, 0, plan);
    deal_kernel<K, KEYS> // each region ends with a tile that is not full
        <<<tiles + REGIONS, MSD_PASS_THREADS, bytes, stream>>>(codes_only, scratch, keys, args->count, 1,
                                                               plan);
    TRY_LAUNCH("rung 8, the passes");
    return HSORT_OK;
}

template <typename K, int KEYS>
static hsort_status sort_keys(struct cuda_engine *engine, struct sort_args *args)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    struct plan *plan = (struct plan *)args->workspace;
    K *keys = (K *)args->keys, *goal = goal_of<K>(args);
    const struct source<K> source = source_of<K>(args);
    const struct coding last = {source.coding.map, false, source.coding.decodes};
    struct msd_answer answer;
    TRY(queue_plan(
        engine, source.coding, source.keys, args->count,
        {leaf_capacity(engine, false), usual_leaf<K, no_value>::CAPACITY, roomy_leaf<K>::CAPACITY, false},
        MSD_PASS_THREADS * KEYS, plan));
    // Few keys do not wait for the answer, but for passes with nothing to do, if that is what it says
    const bool is_early = args->count < MSD_EARLY_COUNT;
    if (is_early)
        TRY((queue_passes<K, KEYS>(engine, source, args, true, plan)));
    TRY(wait_for_answer(engine, &answer));
    if (!is_early && answer.verdict == MSD_SPLIT)
        TRY((queue_passes<K, KEYS>(engine, source, args, answer.kind != MAP_LINEAR, plan)));
    const columns<K, no_value> sorted = {goal, NULL};
    const columns<K, no_value> dealt = {answer.bits > REGION_BITS ? keys : (K *)args->scratch_keys, NULL};
    args->sorted_keys = goal;
    switch (answer.verdict) {
    case MSD_SPLIT:
        return answer.kind == MAP_LINEAR
                   ? queue_leaves<leaf_range<K>>(engine, last, dealt, sorted, answer, plan)
                   : queue_leaves<even_parts<K>>(engine, last, dealt, sorted, answer, plan);
    case MSD_VALUES:
        write_values_kernel<<<(unsigned)divide_up(args->count, MSD_WRITE_THREADS * MSD_WRITE_KEYS),
                              MSD_WRITE_THREADS, 0, stream>>>(last, goal, args->count, plan);
        break;
    case MSD_REVERSED:
        reverse_kernel<<<(unsigned)divide_up(args->count - args->count / 2, MSD_WRITE_THREADS),
                         MSD_WRITE_THREADS, 0, stream>>>(source.coding, source.keys, goal, args->count);
        break;
    case MSD_CROWDED:
        return ladder_sort_codes(engine, args, rung_7_onesweep);
    default:
        return leave_sorted(engine, source, args);
    }
    TRY_LAUNCH("rung 8, a shortcut");
    return HSORT_OK;
}

/* ---- keys with values ---------------------------------------------------------------------------------- */

/* A digit of a key's bucket number, for the stable pass of rung 7. */
template <typename K, map_kind KIND>
struct bucket_digit {
    static constexpr int SHARED_WORDS = KIND == MAP_LINEAR ? 0 : CELL_BYTES / sizeof(uint32_t);
    const struct window *map_window;
    bool is_upper;
    pass_digit<K, KIND> digit; // made by prepare()

    __device__ void prepare(uint32_t *words)
    {
        const int lower = map_window->bits[1];
        digit.map = load_map<K, KIND>(*map_window, (struct cell *)words);
        digit.shift = is_upper ? lower : 0;
        digit.mask = is_upper ? ~0u : (1u << lower) - 1;
    }
    __device__ uint32_t operator()(K key) const
    {
        return digit(key);
    }
    __device__ bucket_digit again() const
    {
        return *this;
    }
};

/* Where the keys of each lower digit begin, once they are in the order of that. */
static __global__ void __launch_bounds__(REGIONS) lower_digits_kernel(struct plan *plan)
{
    __shared__ uint64_t sums[REGIONS / WARP];
    const struct window &window = plan->window;
    uint64_t keys = 0;
    for (uint32_t region = 0; region < REGIONS && (int)threadIdx.x < 1 << window.bits[1]; region++) {
        const uint32_t bucket = region << window.bits[1] | threadIdx.x;
        if (bucket <= window.last)
            keys += plan->counts[bucket];
    }
    plan->lower_begins[threadIdx.x] = block_sum_before(keys, sums);
}

/* By the lower digit, then by the upper one: two stable passes, as the other way round the second one would have to know
 * the regions' borders. Then the leaves. */
template <typename K, typename V, map_kind KIND>
static hsort_status split_pairs(struct cuda_engine *engine, struct sort_args *args,
                                const struct msd_answer &answer, struct plan *plan)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const columns<K, V> data = columns_of<K, V>(args);
    const columns<K, V> scratch = {(K *)args->scratch_keys, (V *)args->scratch_values};
    pass<K, V, bucket_digit<K, KIND>> pass = {};
    pass.from = data.keys, pass.to = scratch.keys;
    pass.from_values = data.values, pass.to_values = scratch.values;
    pass.count = args->count;
    pass.digit.map_window = &plan->window;
    pass.workspace = (struct onesweep_workspace *)(plan + 1);
    TRY_CUDA(cudaMemsetAsync(pass.workspace, 0, onesweep_workspace_bytes(onesweep_tiles<K, V>(args->count)),
                             stream));
    if (answer.bits > REGION_BITS) {
        lower_digits_kernel<<<1, REGIONS, 0, stream>>>(plan);
        pass.first_places = plan->lower_begins;
        TRY(onesweep_pass(engine, pass));
        pass.from = scratch.keys, pass.to = data.keys;
        pass.from_values = scratch.values, pass.to_values = data.values;
        pass.number = 1;
    }
    pass.digit.is_upper = true;
    pass.first_places = plan->region_begins;
    TRY(onesweep_pass(engine, pass));
    const columns<K, V> dealt = pass.number == 1 ? data : scratch;
    if (answer.verdict == MSD_VALUES && pass.number == 1)
        return HSORT_OK;
    return queue_leaves<leaf_range<K>>(engine, codes_only, dealt, data, answer, plan);
}

template <typename K, typename V>
static hsort_status sort_pairs(struct cuda_engine *engine, struct sort_args *args)
{
    struct plan *plan = (struct plan *)args->workspace;
    struct msd_answer answer;
    TRY(queue_plan(
        engine, codes_only, (const K *)args->keys, args->count,
        {leaf_capacity(engine, true), usual_leaf<K, V>::CAPACITY, usual_leaf<K, V>::CAPACITY, true}, 1,
        plan));
    TRY(wait_for_answer(engine, &answer));
    if (answer.verdict == MSD_SORTED)
        return HSORT_OK;
    if (answer.verdict != MSD_SPLIT && answer.verdict != MSD_VALUES)
        return rung_7_onesweep(engine, args);
    switch (answer.kind) {
    case MAP_LINEAR:
        return split_pairs<K, V, MAP_LINEAR>(engine, args, answer, plan);
    case MAP_TABLE:
        return split_pairs<K, V, MAP_TABLE>(engine, args, answer, plan);
    default:
        if constexpr (sizeof(K) == 8)
            return split_pairs<K, V, MAP_FINE>(engine, args, answer, plan);
        return HSORT_INTERNAL;
    }
}

/* ---- the rung ------------------------------------------------------------------------------------------ */

extern "C" hsort_status rung_8_msd_workspace(struct cuda_engine *engine, const struct sort_args *args,
                                             size_t *bytes)
{
    TRY(rung_7_onesweep_workspace(engine, args, bytes)); // which may have to take over
    if (args->count <= LEAF_CAPACITY)
        return HSORT_OK;
    if (args->value_bytes > 0)
        *bytes += sizeof(struct plan); // in front of what the stable passes want
    else if (*bytes < sizeof(struct plan))
        *bytes = sizeof(struct plan);
    return HSORT_OK;
}

extern "C" hsort_status rung_8_msd(struct cuda_engine *engine, struct sort_args *args)
{
    if (args->count <= LEAF_CAPACITY)
        return with_columns(args, [&](auto data) { return sort_as_leaf(engine, data, args); });
    bool done = false;
    if (rung_8_cluster_fits(engine, args))
        TRY(rung_8_cluster(engine, args, &done));
    if (done)
        return HSORT_OK;
    const int capacity = leaf_capacity(engine, args->value_bytes > 0);
    if (engine->block_bytes < MSD_ROOMY_BYTES || args->count / BUCKETS > capacity - capacity / 16)
        return ladder_sort_codes(engine, args, rung_7_onesweep);
    return with_element_types(args->key_bytes, args->value_bytes, [&](auto key, auto value) {
        typedef decltype(key) K;
        typedef decltype(value) V;
        if constexpr (!has_value<V>)
            return sort_keys<K, by_width<K>(MSD_PASS_KEYS_4, MSD_PASS_KEYS_8)>(engine, args);
        else if constexpr (sizeof(K) == 4)
            return rung_7_onesweep(engine, args); // its passes are few
        else
            return sort_pairs<K, V>(engine, args);
    });
}
