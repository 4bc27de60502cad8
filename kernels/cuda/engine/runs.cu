/* Runs of equal keys. Each block has a part of the keys. One pass counts the heads of each part, the host adds the counts up,
 * and a second pass writes. Two parts of two tiles each:
 *
 *     keys         1 1 2 | 2 3 4     4 4 4 | 5 5 6
 *     heads        4 in the part     2 in the part
 *     first head   0                 9
 *     then told    heads up to its end 4, next head 9     6, the end of the last run
 *
 * Both passes are bound by the bytes that they read and write. A block goes through its part from the last tile to the first,
 * so that it knows where each run ends when it meets the run's head. */
#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/engine/block.cuh"
#include "kernels/cuda/ladder/tuning.h"

#define NO_HEAD INT64_MAX

template <typename K>
constexpr int run_keys = by_width<K>(RUN_KEYS, RUN_KEYS, RUN_KEYS_16);

template <typename K>
constexpr int run_tile = RUN_THREADS *run_keys<K>;

/* Keys, passed to kernels by value. */
template <typename K>
struct run_keys_of {
    const K *keys; /* [count] */
    int64_t count;
    K before; /* the key before keys[0], if there is one */
    bool has_before;
    int64_t part_tiles; /* tiles in the part of each block */
};

/* Load this thread's keys of a tile: key `first`, and every RUN_THREADS-th key behind it. Return which of them are heads, a
 * bit each. */
template <typename K>
static __device__ uint32_t load_heads(const run_keys_of<K> &of, int64_t first, K *here)
{
    K left[run_keys<K>];
    uint32_t heads = 0;
#pragma unroll
    for (int k = 0; k < run_keys<K>; k++) {
        const int64_t i = first + k * RUN_THREADS;
        here[k] = i < of.count ? of.keys[i] : 0;
        left[k] = i >= of.count ? here[k] : i > 0 ? of.keys[i - 1] : of.before; // a neighbour reads it too
    }
#pragma unroll
    for (int k = 0; k < run_keys<K>; k++)
        heads |= (uint32_t)(here[k] != left[k]) << k;
    return first == 0 && !of.has_before ? heads | 1 : heads;
}

/* ---- count --------------------------------------------------------------------------------------------- */

/* Tell the host the sum of all threads' `heads` and the least `first`. Every thread calls it. */
static __device__ void tell_part(uint64_t heads, int64_t first, int64_t *part_heads, int64_t *part_first)
{
    __shared__ uint64_t sums[RUN_THREADS / WARP];
    __shared__ int64_t firsts[RUN_THREADS / WARP];
    const int64_t of_warp = (int64_t)warp_min((uint64_t)first);
    if (threadIdx.x % WARP == 0)
        firsts[threadIdx.x / WARP] = of_warp;
    const uint64_t before = block_sum_before(heads, sums); // contains a barrier
    if (threadIdx.x == RUN_THREADS - 1) {
        int64_t least = NO_HEAD;
        for (int warp = 0; warp < RUN_THREADS / WARP; warp++)
            least = min(least, firsts[warp]);
        part_heads[blockIdx.x] = (int64_t)(before + heads);
        part_first[blockIdx.x] = least;
    }
}

/* part_heads, part_first [blocks] pinned. */
template <typename K>
static __global__ void __launch_bounds__(RUN_THREADS)
    count_runs_kernel(const __grid_constant__ run_keys_of<K> of, int64_t *part_heads, int64_t *part_first)
{
    uint64_t found = 0;
    int64_t least = NO_HEAD;
    const int64_t tile_first = blockIdx.x * of.part_tiles;
    for (int64_t tile = tile_first + of.part_tiles - 1; tile >= tile_first; tile--) {
        const int64_t first = tile * run_tile<K> + threadIdx.x;
        K here[run_keys<K>];
        const uint32_t heads = load_heads(of, first, here);
        found += __popc(heads);
        if (heads != 0)
            least = first + (__ffs(heads) - 1) * RUN_THREADS;
    }
    tell_part(found, least, part_heads, part_first);
}

/* ---- write --------------------------------------------------------------------------------------------- */

/* The heads of a tile. A row is the keys that a warp holds from one load. */
template <typename K>
struct run_tile_heads {
    static constexpr int ROWS = run_tile<K> / WARP;
    int before[ROWS]; /* heads in the rows before */
    int total;
    int head[run_tile<K>]; /* [total] where in the tile each of them is */
};

/* Set `before` and `total`. `before` holds the number of heads of each row at first. Every thread calls it; a barrier must follow. */
template <typename K>
static __device__ void scan_rows(run_tile_heads<K> &tile)
{
    constexpr int EACH = run_tile_heads<K>::ROWS / WARP;
    static_assert(run_tile_heads<K>::ROWS % WARP == 0, "each lane scans as many rows");
    if (threadIdx.x >= WARP)
        return;
    int heads[EACH], sum = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        heads[e] = tile.before[threadIdx.x * EACH + e];
        sum += heads[e];
    }
    const int through = warp_sum_through(sum);
    int before = through - sum;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        tile.before[threadIdx.x * EACH + e] = before;
        before += heads[e];
    }
    if (threadIdx.x == WARP - 1)
        tile.total = through;
}

/* Put the heads of a tile into `tile`, given those of this thread in `mine`. before [keys] becomes how many heads of the tile lie
 * before each key of this thread. Every thread calls it; a barrier must follow. */
template <typename K>
static __device__ void rank_heads(uint32_t mine, run_tile_heads<K> &tile, int *before)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint32_t row[run_keys<K>];
#pragma unroll
    for (int k = 0; k < run_keys<K>; k++) {
        row[k] = __ballot_sync(ALL_LANES, mine >> k & 1);
        if (lane == 0)
            tile.before[k * (RUN_THREADS / WARP) + warp] = __popc(row[k]);
    }
    __syncthreads();
    scan_rows(tile);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < run_keys<K>; k++) {
        before[k] = tile.before[k * (RUN_THREADS / WARP) + warp] + __popc(row[k] & ((1u << lane) - 1));
        if (mine >> k & 1)
            tile.head[before[k]] = k * RUN_THREADS + threadIdx.x;
    }
}

/* The members of struct engine_runs that say where results go; the whole is too large for the parameters of a kernel. */
template <typename K>
struct run_results {
    int64_t position, first_id;
    K *unique;
    int64_t *first, *counts, *ids;
};

/* Write what a thread holds: heads, and numbers of runs. rank0: how many heads all keys before the tile have. */
template <typename K>
static __device__ void write_keys(const run_keys_of<K> &of, const run_results<K> &to, int64_t first,
                                  const K *here, uint32_t mine, const int *before, int64_t rank0)
{
#pragma unroll
    for (int k = 0; k < run_keys<K>; k++) {
        const int64_t i = first + k * RUN_THREADS, rank = rank0 + before[k];
        const bool is_head = mine >> k & 1;
        if (to.unique && is_head)
            to.unique[rank] = here[k];
        if (to.ids && i < of.count)
            to.ids[i] = to.first_id + rank - (is_head ? 0 : 1);
    }
}

/* part_heads: the heads of each part and all parts before it; part_next: the position of the next head behind the part.
 * [blocks] pinned. */
template <typename K>
static __global__ void __launch_bounds__(RUN_THREADS)
    write_runs_kernel(const __grid_constant__ run_keys_of<K> of, const __grid_constant__ run_results<K> to,
                      const int64_t *part_heads, const int64_t *part_next)
{
    __shared__ run_tile_heads<K> heads;
    int64_t rank = part_heads[blockIdx.x], next = part_next[blockIdx.x];
    const int64_t tile_first = blockIdx.x * of.part_tiles;
    for (int64_t tile = tile_first + of.part_tiles - 1; tile >= tile_first; tile--) {
        const int64_t first = tile * run_tile<K>, position = to.position + first;
        K here[run_keys<K>];
        int before[run_keys<K>];
        const uint32_t mine = load_heads(of, first + threadIdx.x, here);
        rank_heads(mine, heads, before);
        __syncthreads();
        const int total = heads.total;
        rank -= total;
        write_keys(of, to, first + threadIdx.x, here, mine, before, rank);
        for (int h = threadIdx.x; h < total; h += RUN_THREADS) {
            const int64_t at = position + heads.head[h];
            if (to.first)
                to.first[rank + h] = at;
            if (to.counts)
                to.counts[rank + h] = (h + 1 < total ? position + heads.head[h + 1] : next) - at;
        }
        if (total > 0)
            next = position + heads.head[0]; // the next tile's heads are written two barriers later
    }
}

/* ---- the engine's operations --------------------------------------------------------------------------- */

/* Return the tiles in a part, such that no part is empty. *parts: how many parts there are. */
template <typename K>
static int64_t cut_into_parts(const struct cuda_engine *engine, int64_t count, unsigned *parts)
{
    const int64_t tiles = divide_up(count, run_tile<K>);
    const int64_t most = min((int64_t)engine->multiprocessors * RUN_BLOCKS, (int64_t)ENGINE_RUN_PARTS);
    const int64_t part_tiles = divide_up(tiles, most);
    *parts = (unsigned)divide_up(tiles, part_tiles);
    return part_tiles;
}

template <typename K>
static run_keys_of<K> keys_of(const struct cuda_engine *engine, const struct engine_runs *runs,
                              unsigned *parts)
{
    run_keys_of<K> of = {};
    of.keys = (const K *)runs->keys;
    of.count = runs->count;
    of.has_before = runs->before != NULL;
    of.before = of.has_before ? (K)*runs->before : (K)0;
    of.part_tiles = cut_into_parts<K>(engine, runs->count, parts);
    return of;
}

/* The parts use pinned memory of the engine. A kernel reads or writes it until it is done, so both operations wait for the kernel. */
static_assert(ENGINE_RUN_PARTS <= ENGINE_SEARCH_MAX, "parts have their room there");

extern "C" hsort_status runs_count(struct engine *base, struct engine_runs *runs)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    const struct cuda_result *result = engine->result;
    device_scope scope(engine);
    unsigned parts = 0;
    TRY(kernel_looks("runs", runs->key_bytes));
    runs->found = 0;
    runs->first_head = runs->count;
    if (runs->count == 0)
        return HSORT_OK;
    TRY(with_any_key_type(runs->key_bytes, [&](auto key) {
        const run_keys_of<decltype(key)> of = keys_of<decltype(key)>(engine, runs, &parts);
        count_runs_kernel<<<parts, RUN_THREADS, 0, engine->streams[STREAM_WORK]>>>(
            of, engine->result->less, engine->result->not_greater);
        TRY_LAUNCH("count of runs");
        return HSORT_OK;
    }));
    TRY_CUDA(cudaStreamSynchronize(engine->streams[STREAM_WORK]));
    for (unsigned part = 0; part < parts; part++) {
        runs->part_heads[part] = result->less[part];
        runs->part_first[part] = result->not_greater[part];
        runs->found += result->less[part];
        runs->first_head = min(runs->first_head, runs->part_first[part]);
    }
    return HSORT_OK;
}

/* Write to `result` what each part has to know of the others. */
static void tell_parts(const struct engine_runs *runs, unsigned parts, struct cuda_result *result)
{
    int64_t heads = runs->found, next = runs->end;
    for (unsigned part = parts; part-- > 0;) {
        result->less[part] = heads;
        result->not_greater[part] = next;
        heads -= runs->part_heads[part];
        if (runs->part_heads[part] > 0)
            next = runs->position + runs->part_first[part];
    }
}

extern "C" hsort_status runs_write(struct engine *base, const struct engine_runs *runs)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(kernel_looks("runs", runs->key_bytes));
    if (runs->count == 0)
        return HSORT_OK;
    TRY(with_any_key_type(runs->key_bytes, [&](auto key) {
        typedef decltype(key) K;
        unsigned parts;
        const run_keys_of<K> of = keys_of<K>(engine, runs, &parts);
        const run_results<K> to = {runs->position, runs->first_id, (K *)runs->unique,
                                   runs->first,    runs->counts,   runs->ids};
        tell_parts(runs, parts, engine->result);
        write_runs_kernel<<<parts, RUN_THREADS, 0, engine->streams[STREAM_WORK]>>>(
            of, to, engine->result->less, engine->result->not_greater);
        TRY_LAUNCH("runs");
        return HSORT_OK;
    }));
    TRY_CUDA(cudaStreamSynchronize(engine->streams[STREAM_WORK]));
    return HSORT_OK;
}
