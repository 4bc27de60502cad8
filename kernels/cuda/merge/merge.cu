/* Merge two runs in one pass: merge path.
 *
 * Each key of the merged run ends a step of a path through the grid of all (a, b): a step right takes the next
 * key of a, a step down the next key of b. Whatever the keys, the path crosses diagonal d at exactly one point, and
 * that point says how many of the first d merged keys are of a. So any two diagonals cut out an independent piece
 * of the merge, and pieces can be equal: blocks take tiles of equally many outputs, and their threads KEYS outputs
 * each.
 *
 *   a = 1 3 5 5, b = 2 3 4 8: a corner's number says how many outputs lie before it
 *
 *        a    1     3     5     5
 *     b    0-----1     .     .     .
 *     2          |
 *          .     2-----3     .     .       tile 0, outputs 0 to 3: 1 2 3 3
 *     3                |
 *          .     .     4     .     .       diagonal 4 is crossed after two keys of a, and so two of b
 *     4                |
 *          .     .     5-----6-----7       tile 1, outputs 4 to 7: merges {5 5} and {4 8}
 *     8                            |
 *          .     .     .     .     8
 *
 * The point on a diagonal is found by a search: a[i] belongs to the first d outputs iff a[i] <= b[d-1-i], and
 * that is true up to some i and false from there on. Equal keys of `a` come first because of the "<=".
 *
 * A block takes many tiles in a row, for two reasons. It loads the next tile while it merges one, so that
 * memory is never idle (one of the runs may lie in another GPU's memory, far away). And the next diagonal is
 * crossed at most a tile behind the last one. A warp of its own looks for that point meanwhile: with 32 probes at
 * a time it takes three loads one after the other, of keys that are about to be loaded anyway. If each tile
 * searched both its ends in the whole runs, its probes would fetch about as many bytes as the tile has. A kernel
 * of its own for all diagonals would need workspace, and one more launch.
 *
 *     searching warp    diagonal 3 | diagonal 4 | ...
 *     loads             tile 1     | tile 2     | ...        into the other half of shared memory
 *     merging threads   tile 0     | tile 1     | ...        search, merge into registers, write back, store
 *
 * Cost     every key is read and written once, by whole vectors of 16 bytes. A thread reads shared memory once per
 *          key that it merges, and twice per step of its search, which has 13 steps for KEYS keys. So KEYS is large.
 * Source   Green, McColl, Bader, "GPU merge path: a GPU merging algorithm", 2012. */
#include "kernels/cuda/merge/merge.cuh"

/* Places for what a block knows of its tiles: the one it merges, the one it loads, and the one it looks for. A power of two, by which
 * numbers of tiles are divided quickly. */
enum { PIECES = 4 };

template <typename K>
struct two_runs {
    const K *a, *b;
    int64_t a_count, b_count;
    K *out;        // [a_count + b_count]
    int64_t tiles; // of all blocks
    int lead;      // of tile 0
};

/* What a tile takes of both runs, where its keys lie in shared memory, and where its outputs go. */
template <typename K>
struct two_pieces {
    const K *a, *b;
    int64_t first; // output
    int from_a, from_b;
    int a_place, b_place, lead;
};

/* How many of the first `diagonal` merged keys are of a, at least `low` and at most `high`. By a whole warp; the
 * same in each of its lanes. Each turn cuts [low, high) into 32 pieces and looks at the last key of each piece. */
template <typename K>
static __device__ int64_t warp_find_cut(const K *__restrict__ a, const K *__restrict__ b, int64_t low,
                                        int64_t high, int64_t diagonal)
{
    const int lane = threadIdx.x % WARP;
    while (low < high) {
        const int64_t piece = (high - low + WARP - 1) / WARP;
        const int64_t i = low + piece * (lane + 1) - 1;
        const bool before = i < high && a[i] <= b[diagonal - 1 - i];
        low += piece * __popc(__ballot_sync(ALL_LANES, before));
        high = min(high, low + piece - 1);
    }
    return low;
}

/* The cut at the beginning of tile `number`, by a whole warp. It lies at most `range` keys behind key `least` of
 * a. */
template <int TILE, typename K>
static __device__ int64_t warp_find_border(const struct two_runs<K> &runs, int64_t number, int64_t least,
                                           int64_t range)
{
    const int64_t diagonal = merge_border(number, TILE, runs.lead, runs.a_count + runs.b_count);
    const int64_t low = max(diagonal - runs.b_count, least);
    const int64_t high = min(diagonal, min(runs.a_count, least + range));
    return warp_find_cut(runs.a, runs.b, low, high, diagonal);
}

/* The pieces of tile `number`, between the cuts at its beginning and its end. */
template <int TILE, typename K>
static __device__ struct two_pieces<K> pieces_of(const struct two_runs<K> &runs, int64_t number, int64_t cut,
                                                 int64_t end_cut) {
    const struct merge_tile tile = merge_tile_at(number, TILE, runs.lead, runs.a_count + runs.b_count);
    struct two_pieces<K> p;
    p.a = runs.a + cut;
    p.b = runs.b + tile.first - cut;
    p.first = tile.first;
    p.from_a =
        (int)(merge_hold_cut(end_cut, cut, runs.a_count, runs.b_count, tile.first + tile.count, tile.count) -
              cut);
    p.from_b = tile.count - p.from_a;
    p.a_place = merge_skew((uintptr_t)p.a, sizeof(K));
    p.b_place = merge_next_place(p.a_place + p.from_a, merge_skew((uintptr_t)p.b, sizeof(K)), vector_keys<K>);
    p.lead = tile.lead;
    return p;
}

template <typename K>
static __device__ void block_load_pieces(const struct two_pieces<K> p, K *keys)
{
    threads_load_piece<MERGE_THREADS>(threadIdx.x, keys + p.a_place, p.a, p.from_a);
    threads_load_piece<MERGE_THREADS>(threadIdx.x, keys + p.b_place, p.b, p.from_b);
}

/* Merge the pieces in `keys` and store them. By the merging threads. */
template <int KEYS, typename K>
static __device__ void block_merge_tile(const struct two_pieces<K> p, K *keys, K *out)
{
    const int diagonal = (int)threadIdx.x * KEYS, count = p.from_a + p.from_b;
    K merged[KEYS];
    if (diagonal < count) {
        const K *a = keys + p.a_place, *b = keys + p.b_place;
        const int cut = thread_find_cut(a, p.from_a, b, p.from_b, diagonal);
        thread_merge(a + cut, b + diagonal - cut, merged);
    }
    merging_threads_wait();
    if (diagonal < count) {
        K *to = keys + p.lead + diagonal;
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            to[k] = merged[k];
    }
    merging_threads_wait();
    block_store_tile<MERGE_THREADS * KEYS>(out + p.first, keys, p.lead, count);
}

template <int KEYS, int BLOCKS, typename K>
static __global__ void __launch_bounds__(MERGE_THREADS + WARP, BLOCKS)
    merge_kernel(const __grid_constant__ struct two_runs<K> runs)
{
    constexpr int TILE = MERGE_THREADS * KEYS;
    constexpr int ROOM = merge_room(TILE, 2, vector_keys<K>);
    extern __shared__ uint4 halves[]; // of ROOM keys each
    __shared__ int64_t cuts[3];
    __shared__ struct two_pieces<K> pieces[PIECES];
    K *keys = (K *)halves, *next_keys = keys + ROOM;
    const int64_t begin = runs.tiles * blockIdx.x / gridDim.x;
    const int64_t end = runs.tiles * (blockIdx.x + 1) / gridDim.x;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const bool merges = threadIdx.x < MERGE_THREADS;

    // Before the first tile nothing is known: three warps look for three cuts at the same time.
    if (warp < 3 && begin + warp <= end) {
        const int64_t cut = warp_find_border<TILE>(runs, begin + warp, 0, runs.a_count);
        if (lane == 0)
            cuts[warp] = cut;
    }
    __syncthreads();
    if (warp < 2 && lane == 0 && begin + warp < end)
        pieces[(begin + warp) % PIECES] = pieces_of<TILE>(runs, begin + warp, cuts[warp], cuts[warp + 1]);
    int64_t cut =
        cuts[2]; // the last cut that the searching warp knows, at the beginning of tile number + 2
    __syncthreads();
    if (merges)
        block_load_pieces(pieces[begin % PIECES], keys);
    thread_wait_loaded();
    __syncthreads();

    for (int64_t number = begin; number < end; number++) {
        if (merges) {
            if (number + 1 < end)
                block_load_pieces(pieces[(number + 1) % PIECES], next_keys);
            block_merge_tile<KEYS>(pieces[number % PIECES], keys, runs.out);
        } else if (number + 2 < end) {
            const int64_t end_cut = warp_find_border<TILE>(runs, number + 3, cut, TILE);
            if (lane == 0)
                pieces[(number + 2) % PIECES] = pieces_of<TILE>(runs, number + 2, cut, end_cut);
            cut = end_cut;
        }
        thread_wait_loaded();
        __syncthreads();
        K *free_keys = keys;
        keys = next_keys;
        next_keys = free_keys;
    }
}

template <int KEYS, int BLOCKS, typename K>
static hsort_status merge_by(struct cuda_engine *engine, struct two_runs<K> runs)
{
    static_assert(KEYS < MERGE_GAP && KEYS % 2 == 1, "the gap is longer than what a thread takes");
    constexpr int TILE = MERGE_THREADS * KEYS;
    constexpr int bytes = 2 * merge_room(TILE, 2, vector_keys<K>) * (int)sizeof(K);
    const auto kernel = merge_kernel<KEYS, BLOCKS, K>;
    runs.lead = merge_skew((uintptr_t)runs.out, sizeof(K));
    runs.tiles = merge_tiles(TILE, runs.lead, runs.a_count + runs.b_count);
    const int64_t blocks = min(runs.tiles, (int64_t)engine->multiprocessors * BLOCKS);
    TRY(cuda_grant_shared(engine, (const void *)kernel, bytes));
    kernel<<<(unsigned)blocks, MERGE_THREADS + WARP, bytes, engine->streams[STREAM_WORK]>>>(runs);
    TRY_LAUNCH("merge");
    return HSORT_OK;
}

extern "C" hsort_status keys_merge(struct cuda_engine *engine, int key_bytes, const void *a, int64_t a_count,
                                   const void *b, int64_t b_count, void *out)
{
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        const struct two_runs<K> runs = {(const K *)a, (const K *)b, a_count, b_count, (K *)out, 0, 0};
        constexpr int KEYS = by_width<K>(MERGE_KEYS_4, MERGE_KEYS_8, MERGE_KEYS_16);
        constexpr int TIGHT = by_width<K>(MERGE_KEYS_4, MERGE_KEYS_8_TIGHT, MERGE_KEYS_16_TIGHT);
        constexpr int BLOCKS = by_width<K>(MERGE_BLOCKS_4, MERGE_BLOCKS_8, MERGE_BLOCKS_16);
        if constexpr (TIGHT != KEYS)
            if (engine->block_bytes < MERGE_ROOMY_BYTES)
                return merge_by<TIGHT, BLOCKS>(engine, runs);
        return merge_by<KEYS, BLOCKS>(engine, runs);
    });
}
