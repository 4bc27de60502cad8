/* Rung 3: bitonic sort, tiles in registers; small strides by shuffles.
 *
 * Idea     Lanes of a warp can read each other's registers. So the keys of a tile live in registers, several
 *          per lane. A comparator that connects two registers of one lane is two instructions; for one that
 *          connects two lanes, a shuffle fetches the partner. Neither needs a barrier.
 * Change   Fewer barriers and less shared memory traffic than rung 2. A tile goes through shared memory only
 *          where a step must connect different warps: this takes two barriers for such a phase of the tile
 *          sort and one in the merge of a later phase, instead of one per step.
 * Picture  The bits of a position in the tile say where it sits. There are as many warps as registers per
 *          lane, so two layouts make every bit a register bit or a lane bit (here 16 registers, 32 lanes, 16
 *          warps):
 *
 *            position bit    12 11 10  9    8  7  6  5    4  3  2  1  0
 *            layout "chunk"    warp          register        lane           strides 2^8 .. 2^0
 *            layout "across"   register      warp            lane           strides 2^12 .. 2^9
 *
 *          Lane bits are the same in both, so a warp reads and writes 32 neighbours: no bank conflicts in
 *          shared memory, whole lines in global memory.
 *
 *          A mirrored step turns over the lane bits too. In "across", the registers above the middle are
 *          addressed mirrored. In "chunk", the warp reverses the lanes of these registers by a shuffle, and
 *          back afterwards. With 2 registers of 4 lanes, positions 0 to 7 sorted in halves, 2 5 6 8 and 1 3 4 7:
 *
 *                            lane 0 1 2 3    turned      compared    turned back   then strides 2, 1 in lanes
 *            register 0           2 5 6 8    2 5 6 8     2 4 3 1     2 4 3 1       2 1 3 4    1 2 3 4
 *            register 1           1 3 4 7    7 4 3 1     7 5 6 8     8 6 5 7       5 6 8 7    5 6 7 8
 *
 * Cost     Passes as in rung 2, with tiles of 2^13 keys of 4 or 8 bytes. Per key and phase of a tile: 5
 *          shuffles, and 2 reads and 2 writes of shared memory where warps mix, one of each in a merge.
 * Limit    Bytes again: at n = 2^28 the strides of a tile and more take 120 of the 136 passes over memory.
 * Source   "Bitonic sort with warp intrinsics" (rows of 32 keys by shuffles, the stand-alone form at the end
 *          of this file); registers as in Peters, Schulz-Hildebrandt, Luttenberger, section 3.2. */
#include "kernels/cuda/ladder/bitonic.cuh"
#include "kernels/cuda/ladder/tuning.h"

/* How a tile is spread. It has as many warps as registers per lane. A "warp" is 2^LOG_LANES threads. */
template <typename K, typename V>
struct warp_tile {
    static constexpr int LOG_LANES = BITONIC_WARP_LOG_LANES;
    static constexpr int LOG_KEYS =
        element_bytes<K, V> <= 8 ? BITONIC_WARP_LOG_KEYS_8 : BITONIC_WARP_LOG_KEYS_16;
    static constexpr int LOG_CHUNK = LOG_LANES + LOG_KEYS;
    static constexpr int LOG_TILE = LOG_CHUNK + LOG_KEYS;
    static constexpr int KEYS = 1 << LOG_KEYS;     /* per lane */
    static constexpr int THREADS = 1 << LOG_CHUNK; /* per block */
    /* blocks that share a multiprocessor: 64 registers per thread */
    static constexpr int BLOCKS = THREADS < 256 ? 1 : 1024 / THREADS;
    /* the lanes that exist */
    static constexpr unsigned LANES = ALL_LANES >> (THREADS < WARP ? WARP - THREADS : 0);
    static constexpr size_t SHARED_BYTES = element_bytes<K, V> << LOG_TILE;
};

/* ---- steps --------------------------------------------------------------------------------------------- */

template <typename K, typename V>
static __device__ element<K, V> shuffle_element(unsigned lanes, element<K, V> e, int flip)
{
    e.key = __shfl_xor_sync(lanes, e.key, flip);
    if constexpr (has_value<V>)
        e.value = __shfl_xor_sync(lanes, e.value, flip);
    return e;
}

/* Take the steps of strides 2^top down to 1 between lanes, in each register. The first step is mirrored or not. */
template <int KEYS, typename K, typename V>
static __device__ void lane_steps(unsigned lanes, element<K, V> (&x)[KEYS], int top, bool mirrored)
{
#pragma unroll 1
    for (int bit = top; bit >= 0; bit--) {
        const int flip = mirrored && bit == top ? (2 << bit) - 1 : 1 << bit;
        const bool is_lower = (threadIdx.x >> bit & 1) == 0;
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            x[k] = keep_side(x[k], shuffle_element(lanes, x[k], flip), is_lower);
    }
}

/* FLIP is a template parameter, and so is DISTANCE below: registers have no addresses, so the partners must
 * be known when the code is compiled. */
template <int FLIP, int KEYS, typename K, typename V>
static __device__ void register_step(element<K, V> (&x)[KEYS])
{
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (k < (k ^ FLIP))
            compare_exchange(x[k], x[k ^ FLIP]);
    }
}

/* Take the steps of register bits `top` down to 0. The first step is mirrored or not. DISTANCE: of the largest step
 * that is possible. */
template <int DISTANCE, int KEYS, typename K, typename V>
static __device__ void register_steps(element<K, V> (&x)[KEYS], int top, bool mirrored)
{
    if constexpr (DISTANCE > 0) {
        if (mirrored && 1 << top == DISTANCE)
            register_step<2 * DISTANCE - 1>(x);
        else if (1 << top >= DISTANCE)
            register_step<DISTANCE>(x);
        register_steps<DISTANCE / 2>(x, top, mirrored);
    }
}

/* Reverse the lanes in the registers whose bit `top` is set. */
template <int KEYS, typename K, typename V>
static __device__ void reverse_lanes(unsigned lanes, element<K, V> (&x)[KEYS], int top)
{
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (k >> top & 1)
            x[k] = shuffle_element(lanes, x[k], (1 << BITONIC_WARP_LOG_LANES) - 1);
    }
}

/* ---- a chunk: the consecutive elements of a warp ------------------------------------------------------- */

template <typename K, typename V>
static __device__ void merge_warp_chunk(element<K, V> (&x)[warp_tile<K, V>::KEYS])
{
    using S = warp_tile<K, V>;
    register_steps<S::KEYS / 2>(x, S::LOG_KEYS - 1, false);
    lane_steps(S::LANES, x, S::LOG_LANES - 1, false);
}

template <typename K, typename V>
static __device__ void sort_warp_chunk(element<K, V> (&x)[warp_tile<K, V>::KEYS])
{
    using S = warp_tile<K, V>;
#pragma unroll 1
    for (int top = 0; top < S::LOG_LANES; top++)
        lane_steps(S::LANES, x, top, true);
#pragma unroll 1
    for (int top = 0; top < S::LOG_KEYS; top++) {
        reverse_lanes(S::LANES, x, top);
        register_steps<S::KEYS / 2>(x, top, true);
        reverse_lanes(S::LANES, x, top);
        lane_steps(S::LANES, x, S::LOG_LANES - 1, false);
    }
}

/* ---- a tile -------------------------------------------------------------------------------------------- */

/* Position in the tile of this thread's register k. */
template <typename K, typename V>
static __device__ int place_in_chunk(int k)
{
    using S = warp_tile<K, V>;
    const int lane = threadIdx.x & ((1 << S::LOG_LANES) - 1);
    const int warp = threadIdx.x >> S::LOG_LANES;
    return warp << S::LOG_CHUNK | k << S::LOG_LANES | lane;
}

template <typename K, typename V>
static __device__ int place_across(int k, bool mirrored)
{
    using S = warp_tile<K, V>;
    return k << S::LOG_CHUNK | (mirrored ? S::THREADS - 1 - threadIdx.x : threadIdx.x);
}

template <typename K, typename V>
static __device__ columns<K, V> shared_tile(void *memory)
{
    K *keys = (K *)memory;
    return {keys, (V *)(keys + (1 << warp_tile<K, V>::LOG_TILE))};
}

template <typename K, typename V>
static __global__ void __launch_bounds__(warp_tile<K, V>::THREADS, warp_tile<K, V>::BLOCKS)
    sort_tiles_kernel(columns<K, V> data, int64_t count)
{
    using S = warp_tile<K, V>;
    extern __shared__ uint64_t shared[]; // [SHARED_BYTES]
    const columns<K, V> tile = shared_tile<K, V>(shared);
    const int64_t first = (int64_t)blockIdx.x << S::LOG_TILE;
    const int valid = (int)min(INT64_C(1) << S::LOG_TILE, count - first);
    element<K, V> x[S::KEYS];

    // 1. load, and sort the chunk of each warp
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        const int place = place_in_chunk<K, V>(k);
        x[k] = place < valid ? data.load(first + place) : largest<K, V>();
    }
    sort_warp_chunk<K, V>(x);

    // 2. one phase per bit of the warp number: its large strides across warps, then the chunks again. Between
    // two barriers a thread reads and writes only places of its own
#pragma unroll 1
    for (int top = 0; top < S::LOG_KEYS; top++) {
#pragma unroll
        for (int k = 0; k < S::KEYS; k++)
            tile.store(place_in_chunk<K, V>(k), x[k]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < S::KEYS; k++)
            x[k] = tile.load(place_across<K, V>(k, k >> top & 1));
        register_steps<S::KEYS / 2>(x, top, true);
#pragma unroll
        for (int k = 0; k < S::KEYS; k++)
            tile.store(place_across<K, V>(k, k >> top & 1), x[k]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < S::KEYS; k++)
            x[k] = tile.load(place_in_chunk<K, V>(k));
        merge_warp_chunk<K, V>(x);
    }

    // 3. store
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        const int place = place_in_chunk<K, V>(k);
        if (place < valid)
            data.store(first + place, x[k]);
    }
}

template <typename K, typename V>
static __global__ void __launch_bounds__(warp_tile<K, V>::THREADS, warp_tile<K, V>::BLOCKS)
    merge_tiles_kernel(columns<K, V> data, int64_t count)
{
    using S = warp_tile<K, V>;
    extern __shared__ uint64_t shared[]; // [SHARED_BYTES]
    const columns<K, V> tile = shared_tile<K, V>(shared);
    const int64_t first = (int64_t)blockIdx.x << S::LOG_TILE;
    const int valid = (int)min(INT64_C(1) << S::LOG_TILE, count - first);
    element<K, V> x[S::KEYS];

#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        const int place = place_across<K, V>(k, false);
        x[k] = place < valid ? data.load(first + place) : largest<K, V>();
    }
    register_steps<S::KEYS / 2>(x, S::LOG_KEYS - 1, false);

#pragma unroll
    for (int k = 0; k < S::KEYS; k++)
        tile.store(place_across<K, V>(k, false), x[k]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < S::KEYS; k++)
        x[k] = tile.load(place_in_chunk<K, V>(k));
    merge_warp_chunk<K, V>(x);

#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        const int place = place_in_chunk<K, V>(k);
        if (place < valid)
            data.store(first + place, x[k]);
    }
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

/* Sort every tile, or merge within every tile. */
template <typename K, typename V>
static hsort_status launch_tiles(struct cuda_engine *engine, columns<K, V> data, int64_t count, bool merges)
{
    using S = warp_tile<K, V>;
    const unsigned tiles = (unsigned)divide_up(count, INT64_C(1) << S::LOG_TILE);
    void (*const kernel)(columns<K, V>, int64_t) = merges ? merge_tiles_kernel<K, V> : sort_tiles_kernel<K, V>;
    TRY(cuda_grant_shared(engine, (const void *)kernel, (int)S::SHARED_BYTES));
    kernel<<<tiles, S::THREADS, S::SHARED_BYTES, engine->streams[STREAM_WORK]>>>(data, count);
    TRY_LAUNCH("rung 3, tiles");
    return HSORT_OK;
}

extern "C" int rung_3_log_tile(const struct sort_args *args)
{
    int log_tile = 0;
    with_element_types(args->key_bytes, args->value_bytes, [&](auto key, auto value) {
        log_tile = warp_tile<decltype(key), decltype(value)>::LOG_TILE;
        return HSORT_OK;
    });
    return log_tile;
}

extern "C" hsort_status rung_3_sort_tiles(struct cuda_engine *engine, const struct sort_args *args)
{
    return with_columns(args, [&](auto data) { return launch_tiles(engine, data, args->count, false); });
}

extern "C" hsort_status rung_3_merge_tiles(struct cuda_engine *engine, const struct sort_args *args)
{
    return with_columns(args, [&](auto data) { return launch_tiles(engine, data, args->count, true); });
}

extern "C" hsort_status rung_3_bitonic_warp(struct cuda_engine *engine, struct sort_args *args)
{
    const int phases = count_phases(args->count);
    const int log_tile = rung_3_log_tile(args);
    TRY(rung_3_sort_tiles(engine, args));
    for (int phase = log_tile + 1; phase <= phases; phase++) {
        for (int log_stride = phase - 1; log_stride >= log_tile; log_stride--)
            TRY(rung_1_step(engine, args, log_stride, log_stride == phase - 1));
        TRY(rung_3_merge_tiles(engine, args));
    }
    return HSORT_OK;
}
