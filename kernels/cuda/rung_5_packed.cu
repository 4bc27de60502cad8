/* Rung 5: bitonic sort, passes packed with steps.
 *
 * Idea     A block can take any steps whose partners are all in its tile, and nothing says that a tile must be
 *          neighbours. Choose the bits in which the positions of a tile differ for the steps that come next: as
 *          many steps in a row as there are bits, and the end of a phase does not stop them.
 * Change   Against rung 4: one kind of pass for all strides, through shared memory, where a tile has 2^14 keys and
 *          not the 2^6 of a thread. So 2^28 keys of 4 bytes take 26 passes instead of 43. In a pass it is the same
 *          once more: threads hold keys that differ in any 5 bits of their place, take as many steps in registers,
 *          and exchange keys through shared memory.
 * Picture  The plan for 16 keys, and how mirrored steps fit in: rung_5_plan.h. For 2^28 keys, bits of the position
 *          from 27 on the left to 0, x: of the tile, in threads of 32 keys, m: mirrored step:
 *
 *            pass 0   ..............xxxxxxxxxxxxxx   phases 1 to 14
 *            pass 1   .............xxxxxxxxxx.xxxx   14m 13 12 11 10 | 9 8 7 6 5
 *            pass 2   ............xxxxxxxxx..xxxxx   load | 4 3 2 1 0 | 15m 14 13 12 11 | 10 9 8 7
 *            pass 3   ...........xxxxxxx...xxxxxxx   load | 6 5 4 3 2 | 1 0 16m 15 14 | 13 12 11 10
 *            pass 4   ..........xxxx....xxxxxxxxxx   9 8 7 6 5 | 4 3 2 1 0 | 17m 16 15 14
 *            ...                                     |: keys change hands
 *
 * Cost     Every pass reads and writes each key once, runs of 64 bytes together. A tile has a barrier per exchange,
 *          3 at most after pass 0, which has 20. Nothing beside the keys in device memory.
 * Limit    A block loads, compares and stores one after the other, and only two or so share a multiprocessor to
 *          fill each other's gaps; neither memory nor comparisons are at their limit. Below that lie the bytes of
 *          the passes, 26 times a copy, and the comparators, which every key takes part in log2(n) (log2(n) + 1) /
 *          2 times. A radix pass settles 8 bits of a key for ever.
 * Source   Our own. The steps in registers are those of Peters, Schulz-Hildebrandt, Luttenberger, "Fast in-place
 *          sorting with CUDA based on bitonic sort", section 3.2. */
#include "bitonic.cuh"
#include "rung_5_addresses.cuh"
#include "tuning.h"

/* log2 of the keys of a tile where shared memory suffices, of a thread, and of a run. */
template <typename K, typename V>
struct tuned {
    static constexpr int BYTES = element_bytes<K, V>;
    static constexpr int LOG_TILE = BYTES == 4   ? PACKED_LOG_TILE_4
                                    : BYTES == 8 ? PACKED_LOG_TILE_8
                                                 : PACKED_LOG_TILE_16;
    static constexpr int LOG_KEYS = BYTES == 4   ? PACKED_LOG_KEYS_4
                                    : BYTES == 8 ? PACKED_LOG_KEYS_8
                                                 : PACKED_LOG_KEYS_16;
    static constexpr int LOG_RUN = sizeof(K) == 4 ? PACKED_LOG_RUN_4 : PACKED_LOG_RUN_8;
    static constexpr int THREADS = 1 << (LOG_TILE - LOG_KEYS);
    static_assert(THREADS <= 1024, "a tile is one block's");
    // per multiprocessor: as many as leave a thread twice the registers that its keys take
    static constexpr int FITTING = (1 << 17) / (BYTES << LOG_TILE);
    static constexpr int BLOCKS = FITTING < 1 ? 1 : FITTING > 4 ? 4 : FITTING;
};

/* ---- a tile -------------------------------------------------------------------------------------------- */

/* The tile of this block among those of the pass. */
struct tile {
    int64_t first; /* position of place 0 */
    int64_t upper; /* added to positions in the upper half, to turn over the bits that are not the tile's */
    bool is_whole; /* has no position from count on */
};

static __device__ struct tile find_tile(const struct packed_pass &pass, int log_tile, int64_t number,
                                        int64_t count)
{
    const int middle_bits = pass.high_first - pass.low_bits;
    const int high_bits = log_tile - pass.low_bits;
    const int64_t middle_mask = ((INT64_C(1) << middle_bits) - 1) << pass.low_bits;
    const int64_t middle = number << pass.low_bits & middle_mask;
    struct tile tile;
    tile.first = (number >> middle_bits << (pass.high_first + high_bits)) + middle;
    tile.upper = pass.mirror >= pass.low_bits ? (middle ^ middle_mask) - middle : 0;
    const int64_t span =
        (((INT64_C(1) << high_bits) - 1) << pass.high_first) + (INT64_C(1) << pass.low_bits) - 1;
    tile.is_whole = tile.first + tile.upper + span < count;
    return tile;
}

/* ---- a pass -------------------------------------------------------------------------------------------- */

/* &array[position], by a multiplication with `bytes`, the size of an element: a single instruction with the addition.
 * The compiler would take two, both of the unit that compares keys. */
template <typename T>
static __device__ T *element_at(T *array, uint32_t position, uint32_t bytes)
{
    uint64_t offset;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(offset) : "r"(position), "r"(bytes));
    return (T *)((char *)array + offset);
}

/* data at `position`. `one` is 1, but only the kernel's caller knows: a size known here becomes a shift again. */
template <typename P, typename K, typename V>
static __device__ columns<K, V> data_at(columns<K, V> data, P position, uint32_t one)
{
    if constexpr (sizeof(P) == 4)
        return {element_at(data.keys, position, one * (uint32_t)sizeof(K)),
                has_value<V> ? element_at(data.values, position, one * (uint32_t)sizeof(V)) : NULL};
    else
        return {data.keys + position, has_value<V> ? data.values + position : NULL};
}

/* Positions below `valid` exist. */
template <int LOG_KEYS, typename P, typename K, typename V>
static __device__ void load_tile(columns<K, V> data, P valid, bool is_whole, uint32_t one,
                                 const addresses<P, LOG_KEYS> &a, element<K, V> (&x)[1 << LOG_KEYS])
{
    if (is_whole)
        a.each([&](int k, P at) { x[k] = data_at(data, at, one).load(0); });
    else
        a.each([&](int k, P at) { x[k] = at < valid ? data_at(data, at, one).load(0) : largest<K, V>(); });
}

template <int LOG_KEYS, typename P, typename K, typename V>
static __device__ void store_tile(columns<K, V> data, P valid, bool is_whole, uint32_t one,
                                  const addresses<P, LOG_KEYS> &a, const element<K, V> (&x)[1 << LOG_KEYS])
{
    if (is_whole)
        a.each([&](int k, P at) { data_at(data, at, one).store(0, x[k]); });
    else
        a.each([&](int k, P at) {
            if (at < valid)
                data_at(data, at, one).store(0, x[k]);
        });
}

/* compare_exchange(), for 64-bit keys alone by hand: from C the compiler makes two comparisons of it. */
template <typename K, typename V>
static __device__ void exchange(element<K, V> &lower, element<K, V> &upper)
{
    if constexpr (sizeof(K) == 8 && !has_value<V>) {
        const K a = lower.key, b = upper.key;
        asm("{\n\t"
            ".reg .pred swap;\n\t"
            ".reg .b32 a_low, a_high, b_low, b_high, low, high;\n\t"
            "setp.lt.u64 swap, %3, %2;\n\t"
            "mov.b64 {a_low, a_high}, %2;\n\t"
            "mov.b64 {b_low, b_high}, %3;\n\t"
            "selp.b32 low, b_low, a_low, swap;\n\t"
            "selp.b32 high, b_high, a_high, swap;\n\t"
            "mov.b64 %0, {low, high};\n\t"
            "selp.b32 low, a_low, b_low, swap;\n\t"
            "selp.b32 high, a_high, b_high, swap;\n\t"
            "mov.b64 %1, {low, high};\n\t"
            "}"
            : "=&l"(lower.key), "=l"(upper.key)
            : "l"(a), "l"(b));
    } else {
        compare_exchange(lower, upper);
    }
}

/* A step between keys whose numbers differ in `flip`, of which `bit` is the highest. */
template <int KEYS, typename K, typename V>
static __device__ void take_step(element<K, V> (&x)[KEYS], int bit, int flip)
{
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (!(k >> bit & 1))
            exchange(x[k], x[k ^ flip]);
    }
}

template <int LOG_KEYS, typename K, typename V>
static __device__ void take_round(const struct packed_round &round, element<K, V> (&x)[1 << LOG_KEYS])
{
    if (round.whole) {
#pragma unroll
        for (int phase = 1; phase <= LOG_KEYS; phase++) {
#pragma unroll
            for (int bit = phase - 1; bit >= 0; bit--)
                take_step(x, bit, bit == phase - 1 ? (2 << bit) - 1 : 1 << bit);
        }
        return;
    }
#pragma unroll
    for (int step = 0; step < LOG_KEYS; step++) {
        const int bit = LOG_KEYS - 1 - step;
        if (step >= round.steps)
            return;
        if (step == round.mirrored)
            take_step(x, bit, (1 << LOG_KEYS) - 1);
        else
            take_step(x, bit, 1 << bit);
    }
}

/* Is bit `bit` of the place set in all keys that this thread has in the round? */
static __device__ bool thread_has(const struct packed_round &round, int log_keys, int log_tile, int bit)
{
    bool has = false;
    for (int i = log_keys; i < log_tile; i++)
        has = has || (round.place_bits[i] == bit && (threadIdx.x >> (i - log_keys) & 1));
    return has;
}

/* One pass over `tiles` tiles of 2^log_tile keys. P: of positions, counted from the first of a tile; 64 bits cost
 * twice the registers and instructions. one: 1, see data_at(). */
template <typename P, typename K, typename V>
static __global__ void __launch_bounds__(tuned<K, V>::THREADS, tuned<K, V>::BLOCKS)
    pass_kernel(columns<K, V> data, int64_t count, int tiles, int log_tile, uint32_t one,
                const __grid_constant__ struct packed_pass pass)
{
    constexpr int LOG_KEYS = tuned<K, V>::LOG_KEYS;
    extern __shared__ uint64_t shared[];
    __shared__ struct address_table<uint32_t, LOG_KEYS> inside[PACKED_ROUNDS];
    __shared__ struct address_table<P, LOG_KEYS> outside[2]; // of the first round and of the last
    const columns<K, V> places = {(K *)shared, (V *)((K *)shared + with_gaps(1u << log_tile))};
    const int last = pass.round_count - 1;

    // 1. where keys lie, the same for all tiles. A block takes many, so that it does so once for them all
    for (int i = threadIdx.x; i < 6 * WARP; i += blockDim.x) {
        outside[i / (3 * WARP)].fill(
            i % (3 * WARP), pass.rounds[i < 3 * WARP ? 0 : last], log_tile, [&](int bit) {
                return (P)1 << (bit < pass.low_bits ? bit : bit - pass.low_bits + pass.high_first);
            });
    }
    for (int i = threadIdx.x; i < pass.round_count * 3 * WARP; i += blockDim.x) {
        const int r = i / (3 * WARP);
        inside[r].fill(i % (3 * WARP), pass.rounds[r], log_tile,
                       [](int bit) { return with_gaps(1u << bit); });
    }
    const bool loads_upper = thread_has(pass.rounds[0], LOG_KEYS, log_tile, pass.mirror);
    const bool stores_upper = thread_has(pass.rounds[last], LOG_KEYS, log_tile, pass.mirror);
    __syncthreads();

    for (int number = blockIdx.x; number < tiles; number += gridDim.x) {
        const struct tile tile = find_tile(pass, log_tile, number, count);
        const P valid = (P)min(count - tile.first, (int64_t)((P) ~(P)0 >> 1));
        const columns<K, V> own = {data.keys + tile.first, has_value<V> ? data.values + tile.first : NULL};
        const auto look_up_outside = [&](int i, const struct packed_round &round, bool is_upper) {
            auto a = outside[i].look_up(round);
            if (tile.upper != 0) {
                a.first += is_upper ? (P)tile.upper : 0;
#pragma unroll
                for (int bit = 0; bit < LOG_KEYS; bit++)
                    a.step[bit] += round.place_bits[bit] == pass.mirror ? (P)tile.upper : 0;
            }
            return a;
        };
        element<K, V> x[1 << LOG_KEYS];

        // 2. load, take rounds with exchanges in between, store
#pragma unroll 1
        for (int r = 0; r <= last; r++) {
            const struct packed_round &round = pass.rounds[r];
            if (r == 0)
                load_tile(own, valid, tile.is_whole, one, look_up_outside(0, round, loads_upper), x);
            else
                inside[r].look_up(round).each([&](int k, uint32_t at) { x[k] = places.load(at); });
            take_round<LOG_KEYS>(round, x);
            if (r == last) {
                store_tile(own, valid, tile.is_whole, one, look_up_outside(1, round, stores_upper), x);
            } else {
                if (r == 0)
                    __syncthreads(); // the last round of the tile before has been read
                // the compiler shall look up again: addresses kept from the loads would take the keys' registers
                asm volatile("" ::: "memory");
                inside[r].look_up(round).each([&](int k, uint32_t at) { places.store(at, x[k]); });
                __syncthreads();
            }
        }
    }
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

static size_t tile_bytes(int log_tile, size_t element_bytes)
{
    return with_gaps(1u << log_tile) * element_bytes;
}

/* Tiles that have a position below count: the first ones. */
static int64_t count_tiles(const struct packed_pass *pass, int log_tile, int64_t count)
{
    const int64_t last = count - 1;
    const int high_end = pass->high_first + log_tile - pass->low_bits;
    const int64_t middle_mask = (INT64_C(1) << (pass->high_first - pass->low_bits)) - 1;
    const bool reaches_high = (last & ((INT64_C(1) << high_end) - 1)) >> pass->high_first != 0;
    const int64_t middle = reaches_high ? middle_mask : last >> pass->low_bits & middle_mask;
    return (last >> high_end << (pass->high_first - pass->low_bits)) + middle + 1;
}

template <typename P, typename K, typename V>
static hsort_status sort_packed(struct cuda_engine *engine, columns<K, V> data, int64_t count, int phases)
{
    struct packed_shape shape = {tuned<K, V>::LOG_TILE, tuned<K, V>::LOG_KEYS, tuned<K, V>::LOG_RUN};
    struct packed_step next = packed_begin();
    struct packed_pass pass;
    struct cudaFuncAttributes kernel;
    int most_bytes;

    TRY_CUDA(cudaFuncGetAttributes(&kernel, pass_kernel<P, K, V>));
    TRY_CUDA(cudaDeviceGetAttribute(&most_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, engine->device));
    while (kernel.sharedSizeBytes + tile_bytes(shape.tile_bits, element_bytes<K, V>) > (size_t)most_bytes)
        shape.tile_bits--;
    const int bytes = (int)tile_bytes(shape.tile_bits, element_bytes<K, V>);
    TRY_CUDA(cudaFuncSetAttribute(pass_kernel<P, K, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));

    while (packed_plan(shape, max(phases, shape.register_bits), &next, &pass)) {
        const int64_t tiles = count_tiles(&pass, shape.tile_bits, count);
        const int64_t blocks = min(tiles, (int64_t)engine->multiprocessors * tuned<K, V>::BLOCKS);
        pass_kernel<P><<<(unsigned)blocks, 1u << (shape.tile_bits - shape.register_bits), bytes,
                         engine->lanes[LANE_WORK]>>>(data, count, (int)tiles, shape.tile_bits, 1, pass);
        TRY_LAUNCH("rung 5, a pass");
    }
    return HSORT_OK;
}

extern "C" hsort_status rung_5_packed_workspace(struct cuda_engine *, const struct rung_job *, size_t *bytes)
{
    *bytes = 0;
    return HSORT_OK;
}

extern "C" hsort_status rung_5_packed(struct cuda_engine *engine, struct rung_job *job)
{
    return with_columns(job, [&](auto data) {
        const int phases = count_phases(job->count);
        return phases <= PACKED_NARROW_BITS ? sort_packed<uint32_t>(engine, data, job->count, phases)
                                            : sort_packed<uint64_t>(engine, data, job->count, phases);
    });
}
