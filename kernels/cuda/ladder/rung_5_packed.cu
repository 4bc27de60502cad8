/* Rung 5: bitonic sort, passes packed with steps.
 *
 * Idea     A block can take any steps whose partners are all in its tile, and the keys of a tile need not be
 *          neighbours. So choose the bits in which the positions of a tile differ to suit the next steps: as many
 *          steps in a row as there are bits for, and the end of a phase does not stop them.
 * Change   Rung 4 has passes through tiles and passes in registers; here one kind of pass serves all strides. It goes
 *          through shared memory, where a tile has 2^14 keys and not the 2^6 of a thread. Inside a pass the same is
 *          done once more: a thread holds keys whose places differ in a window of a few bits, takes as many steps in
 *          registers, and then keys change hands through shared memory.
 * Picture  rung_5_plan.h has the plan for 16 keys, and how mirrored steps fit in. For 2^28 keys, 64 to a thread, with
 *          bits of the position from 27 on the left to 0; x: a bit of the tile; m: mirrored step:
 *
 *            pass 0   ..............xxxxxxxxxxxxxx   phases 1 to 14
 *            pass 1   .............xxxxxxxxxx.xxxx   14m 13 12 11 10 9 | 8 7 6 5
 *            pass 2   ............xxxxxxxxx..xxxxx   4 | 3 2 1 0 | 15m 14 13 12 11 10 | 9 8 7
 *            pass 3   ...........xxxxxxx...xxxxxxx   6 5 4 | 3 2 1 0 | 16m 15 14 13 12 11 | 10
 *            pass 4   ..........xxxx....xxxxxxxxxx   9 8 7 6 5 4 | 3 2 1 0 | 17m 16 15 14
 *            ...                                     |: keys change hands
 *
 *          Between two rounds every thread puts its keys back where they were, for the threads that hold them next.
 *          Here with 4 keys per thread, places of 4 bits, thread t and key k: first bits 2 and 3 are the window, then
 *          bits 0 and 1.
 *
 *            window 2: place = k k t t   thread 1 holds 1 5 9 d     partners 8, then 4 places apart
 *            window 0: place = t t k k   thread 1 holds 4 5 6 7     partners 2, then 1 places apart
 *
 * Cost     Every pass reads and writes each key once, in runs of 64 bytes or more. A tile has a barrier per exchange:
 *          3 at most after pass 0, which has about 20. A key's way through shared memory costs one instruction to
 *          write and one to read, because the distances between a thread's keys are constants of the window; for
 *          that, there is a copy of the code for each window. No device memory beside the keys.
 * Limit    A block loads, compares and stores one after the other, and only two blocks share a multiprocessor to
 *          fill each other's gaps. Comparators, shared memory and device memory are each busy about half of the
 *          time. Below that lie the bytes of the passes, and the comparators, which every key takes part in
 *          log2(n) (log2(n) + 1) / 2 times. A radix pass, in contrast, settles 8 bits of a key for ever.
 *          Each block has one tile: if blocks go on to a next tile by themselves, all load at the same time and then
 *          all compare. kernels/README.md says what else did not help, and why a tile is not spread over a cluster of
 *          blocks.
 * Source   Our own. The steps in registers are those of Peters, Schulz-Hildebrandt, Luttenberger, "Fast in-place
 *          sorting with CUDA based on bitonic sort", section 3.2. */
#include "kernels/cuda/ladder/bitonic.cuh"
#include "kernels/cuda/ladder/rung_5_plan.h"
#include "kernels/cuda/ladder/tuning.h"

/* log2 of the keys of a tile where shared memory suffices, of a thread, and of a run; blocks per
 * multiprocessor, and their threads. A window begins at a bit of the place below WINDOWS. */
template <typename K, typename V>
struct tuned {
    static constexpr int BYTES = element_bytes<K, V>;
    static constexpr int LOG_TILE = BYTES == 4   ? PACKED_LOG_TILE_4
                                    : BYTES == 8 ? PACKED_LOG_TILE_8
                                                 : PACKED_LOG_TILE_16;
    static constexpr int LOG_KEYS = BYTES == 4   ? PACKED_LOG_KEYS_4
                                    : BYTES == 8 ? PACKED_LOG_KEYS_8
                                                 : PACKED_LOG_KEYS_16;
    static constexpr int LOG_RUN = by_width<K>(PACKED_LOG_RUN_4, PACKED_LOG_RUN_8);
    static constexpr int BLOCKS = BYTES == 4   ? PACKED_BLOCKS_4
                                  : BYTES == 8 ? PACKED_BLOCKS_8
                                               : PACKED_BLOCKS_16;
    static constexpr int WINDOWS = LOG_TILE - LOG_KEYS + 1;
    static constexpr int THREADS = 1 << (LOG_TILE - LOG_KEYS);
    static_assert(THREADS <= 1024, "a tile is one block's");
};

/* ---- places and positions ------------------------------------------------------------------------------ */

/* Where a place lies in shared memory. After every 2^log_keys places one is left out, so that the lanes of a
 * warp meet different banks, whichever bits of the place they have. The result is a sum over the bits of the
 * place, so a thread's part of it and a key's part can be added. */
static __host__ __device__ constexpr uint32_t packed_place(uint32_t place, int log_keys)
{
    return place + (place >> log_keys);
}

/* The places of a thread's keys in a round. Key k has k's bits in the window, and around it the bits of `lower`,
 * or of `upper` if the highest bit of k is set. The two differ in a round whose first step is mirrored. */
struct packed_places {
    uint32_t lower, upper;
};

template <int LOG_KEYS>
static __device__ struct packed_places find_places(int window, bool mirrored, uint32_t thread)
{
    const uint32_t below = (1u << window) - 1;
    const uint32_t place = (thread & below) | (thread & ~below) << LOG_KEYS;
    return {place, mirrored ? place ^ below : place};
}

/* A tile of the pass. P: the type of positions counted from the tile's first one; 64 bits cost twice the registers
 * and instructions. */
template <typename P>
struct packed_tile {
    int64_t first; /* position of place 0 */
    /* added to the position if the highest bit of the place is set: turns over the bits that are not the
     * tile's */
    P turn;
    P valid;       /* positions from here on do not exist */
    bool is_whole; /* all of its positions exist */
};

/* The position of a place, without the tile's first position and its turn. */
template <typename P>
static __device__ P position(const struct packed_pass &pass, uint32_t place)
{
    const P low = place & ((1u << pass.low_bits) - 1);
    return low + ((P)(place >> pass.low_bits) << pass.high_first);
}

template <typename P>
static __device__ packed_tile<P> find_packed_tile(const struct packed_pass &pass, int64_t number, int64_t count)
{
    const int middle_bits = pass.high_first - pass.low_bits;
    const int high_bits = pass.tile_bits - pass.low_bits;
    const int64_t middle_mask = ((INT64_C(1) << middle_bits) - 1) << pass.low_bits;
    const int64_t middle = number << pass.low_bits & middle_mask;
    const int64_t turn = pass.has_mirrored ? (middle ^ middle_mask) - middle : 0;
    struct packed_tile<P> tile;
    tile.first = (number >> middle_bits << (pass.high_first + high_bits)) + middle;
    tile.turn = (P)turn;
    tile.valid = (P)min(count - tile.first, (int64_t)((P) ~(P)0 >> 1));
    tile.is_whole = tile.first + turn + position<int64_t>(pass, (1u << pass.tile_bits) - 1) < count;
    return tile;
}

/* ---- global memory ------------------------------------------------------------------------------------- */

/* &array[position], by a multiplication by `bytes`, the size of an element. It is a single instruction together
 * with the addition. The compiler would take two, both for the unit that compares keys. */
template <typename T>
static __device__ T *element_at(T *array, uint32_t position, uint32_t bytes)
{
    uint64_t offset;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(offset) : "r"(position), "r"(bytes));
    return (T *)((char *)array + offset);
}

/* data at `position`. `one` is 1, but only the kernel's caller knows that: the compiler would turn a size that it
 * knows into a shift again. */
template <typename P, typename K, typename V>
static __device__ columns<K, V> data_at(columns<K, V> data, P position, uint32_t one)
{
    if constexpr (sizeof(P) == 4)
        return {element_at(data.keys, position, one * (uint32_t)sizeof(K)),
                has_value<V> ? element_at(data.values, position, one * (uint32_t)sizeof(V)) : NULL};
    else
        return {data.keys + position, has_value<V> ? data.values + position : NULL};
}

/* Call visit(k, position) for every key of a thread. A position is a sum over the bits of the place, so one addition
 * makes the position of a key from the position of another. */
template <int LOG_KEYS, typename P, typename F>
static __device__ void each_position(const struct packed_pass &pass, const struct packed_tile<P> &tile, int window,
                                     struct packed_places places, F visit)
{
    constexpr int KEYS = 1 << LOG_KEYS;
    const uint32_t upper = places.upper | 1u << (window + LOG_KEYS - 1);
    P at[KEYS], step[LOG_KEYS];
#pragma unroll
    for (int i = 0; i < LOG_KEYS; i++)
        step[i] = position<P>(pass, 1u << (window + i));
    at[0] = position<P>(pass, places.lower) + (places.lower >> (pass.tile_bits - 1) ? tile.turn : 0);
    at[KEYS / 2] = position<P>(pass, upper) + (upper >> (pass.tile_bits - 1) ? tile.turn : 0);
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
#pragma unroll
        for (int i = LOG_KEYS - 2; i >= 0; i--) {
            if (k >> i & 1)
                at[k] = at[k & ~(1 << i)] + step[i]; // the last time, i is the lowest bit that is set
        }
        visit(k, at[k]);
    }
}

template <int LOG_KEYS, typename P, typename K, typename V>
static __device__ void load_tile(columns<K, V> own, const struct packed_pass &pass,
                                 const struct packed_tile<P> &tile, int window, struct packed_places places, uint32_t one,
                                 element<K, V> (&x)[1 << LOG_KEYS])
{
    if (tile.is_whole)
        each_position<LOG_KEYS>(pass, tile, window, places,
                                [&](int k, P at) { x[k] = data_at(own, at, one).load(0); });
    else
        each_position<LOG_KEYS>(pass, tile, window, places, [&](int k, P at) {
            x[k] = at < tile.valid ? data_at(own, at, one).load(0) : largest<K, V>();
        });
}

template <int LOG_KEYS, typename P, typename K, typename V>
static __device__ void store_tile(columns<K, V> own, const struct packed_pass &pass,
                                  const struct packed_tile<P> &tile, int window, struct packed_places places, uint32_t one,
                                  const element<K, V> (&x)[1 << LOG_KEYS])
{
    if (tile.is_whole)
        each_position<LOG_KEYS>(pass, tile, window, places,
                                [&](int k, P at) { data_at(own, at, one).store(0, x[k]); });
    else
        each_position<LOG_KEYS>(pass, tile, window, places, [&](int k, P at) {
            if (at < tile.valid)
                data_at(own, at, one).store(0, x[k]);
        });
}

/* ---- shared memory ------------------------------------------------------------------------------------- */

/* Call visit(k, offset of key k from the first key of its half) for every key of a thread. Each window has a copy of
 * this code and is known in it at compile time, so offsets are constants and cost no instruction. */
template <int LOG_KEYS, int WINDOWS, int WINDOW = 0, typename F>
static __device__ void each_offset(int window, F visit)
{
    if (window == WINDOW) {
#pragma unroll
        for (int k = 0; k < 1 << LOG_KEYS; k++)
            visit(k, (int)packed_place((uint32_t)k << WINDOW, LOG_KEYS));
    } else if constexpr (WINDOW + 1 < WINDOWS) {
        each_offset<LOG_KEYS, WINDOWS, WINDOW + 1>(window, visit);
    }
}

/* ---- steps --------------------------------------------------------------------------------------------- */

/* compare_exchange(), written by hand for bare 64-bit keys: from C the compiler makes two comparisons. */
template <typename K, typename V>
static __device__ void exchange_elements(element<K, V> &lower, element<K, V> &upper)
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

/* Take a step between keys whose numbers differ in the bits of `flip`, the highest of which is `bit`. */
template <int KEYS, typename K, typename V>
static __device__ void take_step(element<K, V> (&x)[KEYS], int bit, int flip)
{
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (!(k >> bit & 1))
            exchange_elements(x[k], x[k ^ flip]);
    }
}

/* Take phases 1 to LOG_KEYS, which sort all keys. */
template <int LOG_KEYS, typename K, typename V>
static __device__ void sort_packed(element<K, V> (&x)[1 << LOG_KEYS])
{
#pragma unroll
    for (int phase = 1; phase <= LOG_KEYS; phase++) {
#pragma unroll
        for (int bit = phase - 1; bit >= 0; bit--)
            take_step(x, bit, bit == phase - 1 ? (2 << bit) - 1 : 1 << bit);
    }
}

/* Take `steps` steps, at most STEPS, of bit FIRST and the bits below it; if FIRST is -1, those down to the lowest
 * bit. Each number of steps has a copy of the code: if each step were a branch of its own, keys would be copied from
 * register to register to be at the same place whether the step was taken or not. */
template <int FIRST, bool MIRRORED, int STEPS, int KEYS, typename K, typename V>
static __device__ void take_steps(int steps, element<K, V> (&x)[KEYS])
{
    if (steps == STEPS) {
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            const int bit = (FIRST < 0 ? STEPS - 1 : FIRST) - i;
            take_step(x, bit, MIRRORED && i == 0 ? KEYS - 1 : 1 << bit);
        }
    } else if constexpr (STEPS > 1) {
        take_steps<FIRST, MIRRORED, STEPS - 1>(steps, x);
    }
}

template <int LOG_KEYS, typename K, typename V>
static __device__ void take_round(const struct packed_round &round, element<K, V> (&x)[1 << LOG_KEYS])
{
    constexpr int HIGHEST = LOG_KEYS - 1;
    if (round.whole)
        sort_packed<LOG_KEYS>(x);
    else if (round.mirrored)
        take_steps<HIGHEST, true, LOG_KEYS>(round.steps, x);
    else if (round.first == HIGHEST)
        take_steps<HIGHEST, false, LOG_KEYS>(round.steps, x);
    else if constexpr (HIGHEST > 0)
        take_steps<-1, false, HIGHEST>(round.steps, x);
}

/* ---- a pass -------------------------------------------------------------------------------------------- */

/* A tile of one pass. one: 1, see data_at(). */
template <typename P, typename K, typename V>
static __global__ void __launch_bounds__(tuned<K, V>::THREADS, tuned<K, V>::BLOCKS)
    pass_kernel(columns<K, V> data, int64_t count, uint32_t one,
                const __grid_constant__ struct packed_pass pass)
{
    constexpr int LOG_KEYS = tuned<K, V>::LOG_KEYS;
    constexpr int UPPER = 1 << (LOG_KEYS - 1);
    constexpr int WINDOWS = tuned<K, V>::WINDOWS;
    extern __shared__ uint64_t shared[];
    const columns<K, V> kept = {(K *)shared, (V *)((K *)shared + packed_place(1u << pass.tile_bits, LOG_KEYS))};
    const int last = pass.round_count - 1;
    const struct packed_tile<P> tile = find_packed_tile<P>(pass, blockIdx.x, count);
    const columns<K, V> own = data.at(tile.first);
#pragma unroll 1
    for (int r = 0; r <= last; r++) {
        const struct packed_round round = pass.rounds[r];
        const struct packed_places places = find_places<LOG_KEYS>(round.window, round.mirrored, threadIdx.x);
        const columns<K, V> lower = kept.at(packed_place(places.lower, LOG_KEYS));
        const columns<K, V> upper = kept.at(packed_place(places.upper, LOG_KEYS));
        element<K, V> x[1 << LOG_KEYS];
        if (r == 0)
            load_tile<LOG_KEYS>(own, pass, tile, round.window, places, one, x);
        else
            each_offset<LOG_KEYS, WINDOWS>(
                round.window, [&](int k, int at) { x[k] = (k & UPPER ? upper : lower).load(at); });
        take_round<LOG_KEYS>(round, x);
        if (r == last)
            store_tile<LOG_KEYS>(own, pass, tile, round.window, places, one, x);
        else
            each_offset<LOG_KEYS, WINDOWS>(
                round.window, [&](int k, int at) { (k & UPPER ? upper : lower).store(at, x[k]); });
        if (r < last)
            __syncthreads();
    }
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

/* How many tiles have a position below count. They are the first tiles. */
static int64_t count_tiles(const struct packed_pass *pass, int64_t count)
{
    const int64_t last = count - 1;
    const int high_end = pass->high_first + pass->tile_bits - pass->low_bits;
    const int64_t middle_mask = (INT64_C(1) << (pass->high_first - pass->low_bits)) - 1;
    const bool reaches_high = (last & ((INT64_C(1) << high_end) - 1)) >> pass->high_first != 0;
    const int64_t middle = reaches_high ? middle_mask : last >> pass->low_bits & middle_mask;
    return (last >> high_end << (pass->high_first - pass->low_bits)) + middle + 1;
}

template <typename P, typename K, typename V>
static hsort_status sort_packed(struct cuda_engine *engine, columns<K, V> data, int64_t count, int phases)
{
    constexpr int LOG_KEYS = tuned<K, V>::LOG_KEYS;
    struct packed_shape shape = {tuned<K, V>::LOG_TILE, LOG_KEYS, tuned<K, V>::LOG_RUN};
    struct packed_step next = packed_begin();
    struct packed_pass pass;

    const auto tile_bytes = [&] { return packed_place(1u << shape.tile_bits, LOG_KEYS) * element_bytes<K, V>; };
    while (tile_bytes() > (size_t)engine->block_bytes)
        shape.tile_bits--;
    TRY(cuda_grant_shared(engine, (const void *)pass_kernel<P, K, V>, (int)tile_bytes()));

    const unsigned threads = 1u << (shape.tile_bits - shape.register_bits);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    while (packed_plan(shape, max(phases, shape.register_bits), &next, &pass)) {
        const unsigned tiles = (unsigned)count_tiles(&pass, count);
        pass_kernel<P><<<tiles, threads, tile_bytes(), stream>>>(data, count, 1, pass);
        TRY_LAUNCH("rung 5, a pass");
    }
    return HSORT_OK;
}

extern "C" hsort_status rung_5_packed(struct cuda_engine *engine, struct sort_args *args)
{
    return with_columns(args, [&](auto data) {
        const int phases = count_phases(args->count);
        return phases <= PACKED_NARROW_BITS ? sort_packed<uint32_t>(engine, data, args->count, phases)
                                            : sort_packed<uint64_t>(engine, data, args->count, phases);
    });
}
