/* A level that keeps the order of equal keys, for keys that have a value each: keys and values [count] are scattered to the buckets of
 * their segments, and the elements of a bucket stay in the order they came in.
 *
 * So a cursor in memory cannot say where an element goes, as it does in scatter.cuh. Instead each block has a tile of a segment, and all
 * tiles are counted first:
 *
 *     tile                   0: a b a    1: b b c    2: a c a
 *     rows, counted          2 1 0       0 2 1       2 0 1           a row for each tile, a column for each bucket
 *     before it, by columns  0 0 0       2 1 0       2 3 1           totals 4 3 2, so a begins at 0, b at 4, c at 7
 *     places                 0 4 1       5 6 7       2 8 3
 *
 * Inside of a tile keys are ranked as in rung 7 (radix_tile.cuh). Buckets are full to the last place: nothing overflows, and scratch for
 * all has as many places as there are elements.
 *
 * Rejected A look-back instead of rows: it finds places among keys of one bucket, but where the bucket begins has to be counted
 *          all the same; and blocks wait for each other. Positions that travel along, and a scatter that keeps no order: four or
 *          eight more bytes for each element in each pass, which cost more than ranking in order. */
#ifndef ORDERED_CUH
#define ORDERED_CUH

#include "kernels/cuda/ladder/radix_tile.cuh"
#include "kernels/cuda/msd/buckets.cuh"
#include "kernels/cuda/msd/first_level.cuh"

enum {
    ORDERED_BUCKETS = BINS,                         /* of a segment, at most */
    ORDERED_KEYS = ONESWEEP_KEYS_8,                 /* of a thread */
    ORDERED_TILE = ONESWEEP_THREADS * ORDERED_KEYS, /* elements */
    ROW_THREADS = 512,
    COLUMN_THREADS = 1024
};

/* Elements in memory. */
template <typename K, typename V>
struct pair_array {
    K *keys;
    V *values; /* NULL, in what is loaded: the value of each element is its place in the array */
};

/* The tables of a level beside those of level_tables.cuh. */
struct ordered_tables {
    uint32_t
        *rows; /* [tiles][ORDERED_BUCKETS] the counts of a tile; then those of all tiles before it in its segment */
    uint32_t *totals; /* [segments][ORDERED_BUCKETS] */
    uint32_t *begins; /* [segments][ORDERED_BUCKETS] where each bucket begins */
    uint8_t *found;   /* [tiles][FOUND_OF_TILE] the bucket of each key, where it took a tree to find it */
};

/* Bytes for the notes of a tile, such that the notes of each tile begin aligned (count.cuh). */
static constexpr int64_t FOUND_OF_TILE = ORDERED_TILE + 2 * FOUND_ROOM;

/* ---- count --------------------------------------------------------------------------------------------- */

/* The tile of a block. */
struct tile_place {
    int32_t segment, count; /* of its elements */
    int64_t first;          /* in the array */
};

template <typename K>
static __device__ struct tile_place tile_of_block(const struct pieces &pieces, const K *keys)
{
    const struct piece &piece = piece_of_tile(pieces, blockIdx.x);
    const int64_t in_piece = (int64_t)(blockIdx.x - piece.first_tile) * ORDERED_TILE;
    return {piece.segment, (int32_t)min((int64_t)ORDERED_TILE, piece.count - in_piece),
            (const K *)piece.keys - keys + in_piece};
}

/* Count the row of each tile. keys [all]: those of the array. */
template <typename K>
static __global__ void __launch_bounds__(ROW_THREADS, 2)
    count_rows_kernel(const __grid_constant__ struct coding coding,
                      const __grid_constant__ struct pieces pieces, const K *keys, int64_t all,
                      struct level_tables<K> level, struct ordered_tables ordered)
{
    __shared__ uint32_t counts[COUNT_COPIES][ORDERED_BUCKETS];
    __shared__ K tree[ORDERED_BUCKETS];
    struct notice notice = {true, level.region_counts == NULL};
    for (int i = threadIdx.x; i < COUNT_COPIES * ORDERED_BUCKETS; i += ROW_THREADS)
        (&counts[0][0])[i] = 0;
    wait_for_kernels_before();
    const struct tile_place own = tile_of_block(pieces, keys);
    const struct split<K> &split = level.splits[own.segment];
    const struct split_head<K> head = split;
    uint8_t *found = head.is_linear ? NULL : ordered.found + blockIdx.x * FOUND_OF_TILE;
    const int64_t reach = level.region_counts ? all - own.first : own.count; // nobody asks for the order of codes
    with_split(head, split.tree, tree, [&](const auto &find_buckets) {
        __syncthreads();
        count_share<ALL_GROUPS, ROW_THREADS, K>(coding, keys + own.first, own.count, reach, 0, 1,
                                                find_buckets, counts[threadIdx.x / WARP % COUNT_COPIES],
                                                found, &notice);
    });
    if (__syncthreads_or(notice.descents) && threadIdx.x == 0 && level.region_counts)
        level.region_counts->descents = 1;
    for (int i = threadIdx.x; i < ORDERED_BUCKETS; i += ROW_THREADS) {
        uint32_t sum = 0;
        for (int copy = 0; copy < COUNT_COPIES; copy++)
            sum += counts[copy][i];
        ordered.rows[(int64_t)blockIdx.x * ORDERED_BUCKETS + i] = sum;
    }
}

/* How many tiles a segment has, whose first piece is `piece`. */
static __device__ int64_t tiles_of_segment(const struct pieces &pieces, int segment, int piece)
{
    int64_t tiles = 0;
    for (; piece < pieces.count && pieces.piece[piece].segment == segment; piece++)
        tiles += (pieces.piece[piece].count + ORDERED_TILE - 1) / ORDERED_TILE;
    return tiles;
}

/* Sum up the rows of a segment, column by column. A block has COLUMNS columns, each of which it cuts into parts. Row y of the grid is
 * for segment y. */
template <int COLUMNS>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    sum_rows_kernel(const __grid_constant__ struct pieces pieces, struct ordered_tables ordered)
{
    constexpr int PARTS = COLUMN_THREADS / COLUMNS;
    __shared__ uint32_t sums[PARTS][COLUMNS];
    const int own = threadIdx.x % COLUMNS, part = threadIdx.x / COLUMNS;
    const int piece = first_piece_of(pieces, blockIdx.y);
    const int64_t rows = tiles_of_segment(pieces, blockIdx.y, piece), each = (rows + PARTS - 1) / PARTS;
    const int64_t begin = min(part * each, rows), end = min(begin + each, rows);
    uint32_t *column =
        ordered.rows + (int64_t)pieces.piece[piece].first_tile * ORDERED_BUCKETS + blockIdx.x * COLUMNS + own;
    uint32_t sum = 0, before = 0, all = 0;
    wait_for_kernels_before();
#pragma unroll 8
    for (int64_t row = begin; row < end; row++)
        sum += column[row * ORDERED_BUCKETS];
    sums[part][own] = sum;
    __syncthreads();
    for (int other = 0; other < PARTS; other++) {
        before += other < part ? sums[other][own] : 0;
        all += sums[other][own];
    }
#pragma unroll 8
    for (int64_t row = begin; row < end; row++) {
        const uint32_t counted = column[row * ORDERED_BUCKETS];
        column[row * ORDERED_BUCKETS] = before;
        before += counted;
    }
    if (part == 0)
        ordered.totals[blockIdx.y * ORDERED_BUCKETS + blockIdx.x * COLUMNS + own] = all;
}

/* ---- buckets ------------------------------------------------------------------------------------------- */

/* Find where the buckets of each segment begin, and what becomes of them: one block for each segment. Usual blocks sort up to `usual`
 * elements, larger ones up to `most`; a bucket of one value is copied.
 *   told   not NULL: the level is the first of several. The host is told of each bucket, and sorts buckets of several values by another
 *          level
 *   leave  buckets of one value, too, wait for another level, because all buckets may change ranks */
template <typename K>
static __global__ void __launch_bounds__(SPLIT_BUCKETS)
    list_pairs_kernel(int usual, int most, bool leave, struct level_tables<K> level,
                      struct ordered_tables ordered, volatile int64_t *told, volatile int32_t *verdict)
{
    __shared__ uint64_t sums[2][SPLIT_BUCKETS / WARP];
    const int own = threadIdx.x, number = blockIdx.x * ORDERED_BUCKETS + own;
    const struct split<K> &split = level.splits[blockIdx.x];
    wait_for_kernels_before();
    const struct segment segment = level.segments[blockIdx.x];
    const struct split_head<K> head = split;
    const struct bucket_ends<K> ends = ends_of_bucket(split.splitters, own);
    const bool exists = own < head.buckets, stays = told && !leave && !level.region_counts->descents;
    K value;
    const bool is_one = exists && is_one_value(head, own, ends, &value);
    const uint64_t keys = exists ? ordered.totals[number] : 0;
    uint64_t all;
    const uint64_t begin = segment.out_first + block_sum_of_warps(keys, sums[0], &all);
    if (own < ORDERED_BUCKETS)
        ordered.begins[number] = (uint32_t)begin;

    const bool is_sorted_here = !told && !is_one && 0 < keys && keys <= (uint64_t)most,
               is_usual = is_sorted_here && keys <= (uint64_t)usual,
               is_left = !told && !is_one && keys > (uint64_t)most;
    const bool is_copied = is_one && !stays && !leave;
    const uint64_t runs = is_copied ? (keys + FILL_KEYS - 1) / FILL_KEYS : is_sorted_here && !is_usual;
    const uint64_t place = append_tasks(runs << 32 | (is_usual ? 1 : 0), level.head, sums[1]);
    struct rest_task *rest = &level.rest[place >> 32];
    if (is_usual) {
        level.usual[(uint32_t)place] = {begin, begin, (uint32_t)keys, {}};
    } else if (is_copied) {
        list_runs(rest, {begin, begin, 0, REST_COPY, 0}, keys, FILL_KEYS);
    } else if (is_left) {
        const uint32_t left = atomicAdd(level.left_count, 1u);
        if (left < level.left_room)
            start_left(begin, keys, &level.next_left[left]);
    } else if (is_sorted_here) {
        *rest = {begin, begin, (uint32_t)keys, REST_SORT, 0};
    }
    if (!told)
        return;
    told[own] = (int64_t)(keys << 1 | (is_one ? 1 : 0));
    __threadfence_system();
    __syncthreads();
    if (own > 0)
        return;
    level.head->is_done = stays;
    *verdict = stays ? FIRST_SORTED : FIRST_SPLIT;
}

/* Find the extremes of the buckets [count] of `keys` that levels have left, so that these can be split into parts of their exact range.
 * The blocks of row y have bucket y and every gridDim.y-th bucket behind it. */
template <typename K>
static __global__ void __launch_bounds__(COLUMN_THREADS)
    extremes_of_left_kernel(const K *keys, struct left_bucket *left, uint32_t count)
{
    __shared__ K lows[WARP], highs[WARP];
    wait_for_kernels_before();
    for (uint32_t i = blockIdx.y; i < count; i += gridDim.y) {
        const K *of_bucket = keys + left[i].first;
        K low = BEHIND_ALL<K>, high = 0;
        for (uint64_t k = (uint64_t)blockIdx.x * COLUMN_THREADS + threadIdx.x; k < left[i].count;
             k += (uint64_t)gridDim.x * COLUMN_THREADS) {
            low = smaller_key(low, of_bucket[k]);
            high = larger_key(high, of_bucket[k]);
        }
        extremes_to_first_warp(low, high, lows, highs);
        if (threadIdx.x == 0)
            note_extremes(low, high, &left[i]);
        __syncthreads();
    }
}

/* ---- scatter ------------------------------------------------------------------------------------------- */

/* The dynamic shared memory of a scatter in order: the tables of the groups, then keys, then values, in the same memory; and the bucket
 * of each place. */
template <typename K, typename V>
struct ordered_tile {
    union {
        uint32_t group_tables[GROUPS][TABLE];
        K keys[spread_place(ORDERED_TILE)];
        V values[spread_place(ORDERED_TILE)];
    };
    uint8_t buckets[ORDERED_TILE];
};

/* The buckets of keys that a thread has loaded by rows of a tile: as the count has noted them, or by a product. Keys that do not exist
 * have the last bucket, so that they stay behind the others. noted: the notes of the tile, or NULL. */
template <int KEYS, typename K>
static __device__ packed<KEYS, 4> buckets_of_tile(const struct split_head<K> &split, const K (&codes)[KEYS],
                                                  const uint8_t *noted, int valid)
{
    packed<KEYS, 4> buckets;
    const int first = first_of_thread<KEYS>();
    if (!noted) {
        const linear_split<K> linear(split);
        linear.distance.of(
            codes, [&](int k, uint32_t far) { buckets.set(k, __umulhi(far, linear.distance.parts.scale)); });
    } else {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            buckets.set(k, first + k * GROUP < valid ? noted[first + k * GROUP] : BINS - 1);
    }
    if (valid < ONESWEEP_THREADS * KEYS) {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            if (first + k * GROUP >= valid)
                buckets.replace(k, BINS - 1);
        }
    }
    return buckets;
}

/* Rank a tile's keys in the order of their buckets: ranks become places in the tile. goals: where the first key of each bucket goes; the
 * bucket's first place in the tile is subtracted from it. Every thread of the block calls it. */
template <int KEYS, typename TILE_MEMORY>
static __device__ void rank_tile_in_order(const packed<KEYS, 4> &buckets, int valid, TILE_MEMORY &tile,
                                          uint32_t *goals, packed<KEYS, 2> &ranks)
{
    const int bin = threadIdx.x; // of the threads below BINS
    tile_rank([&](int k) { return buckets.get(k); }, false, tile.group_tables, ranks);
    __syncthreads();
    uint32_t own = 0;
    if (bin < BINS) {
        own = sum_groups(tile.group_tables, bin);
        if (bin == BINS - 1)
            own -= ONESWEEP_THREADS * KEYS - valid; // without what fills the tile up
    }
    const uint32_t first = sum_of_bins_before(own);
    if (bin < BINS) {
        scan_groups(tile.group_tables, bin, first);
        goals[bin] -= first;
    }
    __syncthreads();
    const uint32_t *table = tile.group_tables[threadIdx.x / GROUP];
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        ranks.add(k, table[word_of_bin(buckets.get(k))]);
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        tile.buckets[ranks.get(k)] = (uint8_t)buckets.get(k);
    ranks.add_quotients(LOG_WARP); // spread_place() of each
    __syncthreads();               // keys take the tables' memory
}

/* Store what lies in a tile in the order of its buckets. Keeping the places of the keys for the values would take registers, which cost
 * more than looking the buckets up again. */
template <int KEYS, typename T>
static __device__ void store_tile_in_order(const T *in_tile, const uint8_t *buckets, int valid,
                                           const uint32_t *goals, T *__restrict__ to)
{
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int at = threadIdx.x + k * ONESWEEP_THREADS;
        if (valid == ONESWEEP_THREADS * KEYS || at < valid)
            to[(uint32_t)(goals[buckets[at]] + at)] =
                in_tile[spread_place(threadIdx.x) + k * spread_place(ONESWEEP_THREADS)];
    }
}

/* Load a tile's values by rows, from `first` of the array on. If values is NULL, they are the places of the tile's elements in the
 * array, counted from `number` on. */
template <typename V, int KEYS>
static __device__ void load_values(const V *values, int64_t first, int64_t number, int valid, V (&loaded)[KEYS])
{
    if (values) {
        load_rows(values + first, valid, loaded);
        return;
    }
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        loaded[k] = (V)(number + first + first_of_thread<KEYS>() + k * GROUP);
}

/* Scatter the elements, one tile for each block. The values of elements from place `unvalued` on, or of all if there are none in memory,
 * are their places in the array, counted from `number` on. */
template <typename K, typename V>
static __global__ void __launch_bounds__(ONESWEEP_THREADS, ONESWEEP_BLOCKS)
    scatter_in_order_kernel(const __grid_constant__ struct coding coding,
                            const __grid_constant__ struct pieces pieces,
                            struct pair_array<const K, const V> from, int64_t unvalued, int64_t number,
                            struct pair_array<K, V> to,
                            struct level_tables<K> level, struct ordered_tables ordered)
{
    constexpr int KEYS = ORDERED_KEYS;
    extern __shared__ uint4 ordered_memory[];
    struct ordered_tile<K, V> &tile = *(struct ordered_tile<K, V> *)ordered_memory;
    __shared__ uint32_t goals[ORDERED_BUCKETS];
    wait_for_kernels_before();
    if (level.region_counts && level.head->is_done)
        return;
    const struct tile_place own = tile_of_block(pieces, from.keys);
    const struct split_head<K> split = level.splits[own.segment];
    const int valid = own.count;
    const uint8_t *noted = split.is_linear ? NULL
                                           : found_at(ordered.found + blockIdx.x * FOUND_OF_TILE,
                                                      from.keys + own.first, valid, 0);
    packed<KEYS, 2> ranks;
    K keys[KEYS];
    V values[KEYS];
    load_rows(from.keys + own.first, valid, keys);
    if (threadIdx.x < ORDERED_BUCKETS)
        goals[threadIdx.x] = ordered.begins[own.segment * ORDERED_BUCKETS + threadIdx.x] +
                             ordered.rows[(int64_t)blockIdx.x * ORDERED_BUCKETS + threadIdx.x];
    encode_loaded(coding, keys);
    rank_tile_in_order(buckets_of_tile(split, keys, noted, valid), valid, tile, goals, ranks);
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        tile.keys[ranks.get(k)] = keys[k];
    __syncthreads();
    load_values(own.first < unvalued ? from.values : NULL, own.first, number, valid, values);
    store_tile_in_order<KEYS>(tile.keys, tile.buckets, valid, goals, to.keys);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        tile.values[ranks.get(k)] = values[k];
    __syncthreads();
    store_tile_in_order<KEYS>(tile.values, tile.buckets, valid, goals, to.values);
}

#endif
