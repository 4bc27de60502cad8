/* Rung 7: radix sort, 8 bits per pass, each pass in one sweep over the keys.
 *
 * Idea     Sort by the lowest digit first, stably, then by the next. A pass must know where the keys of each
 *          digit value go: behind all smaller digits, and behind the equal digits of earlier tiles. The first
 *          part comes from one count of all digits before the first pass; the second is found while the pass
 *          runs, by looking back at what earlier tiles have published.
 * Change   A pass of rung 6 has kernels for counting, scanning and moving; here one kernel reads each key once
 *          and writes it once. A pass takes 8 bits. Passes over digits that are the same in every key are left
 *          out.
 * Picture  Look-back: kernels/README.md, with 16 keys. Inside a tile: radix_tile.cuh.
 * Cost     Every key is read once to count, and read and written once per varying digit: 9 moves of 4-byte
 *          keys, 17 of 8-byte ones; values are read and written with them. Six barriers per tile, two more
 *          with values, one more in the first pass over bare 4-byte keys. Scratch for all keys and values;
 *          workspace of 2 KiB per tile and, if there are few tiles, 2 KiB per pass for every 16 of them. Only the
 *          device knows which digits vary. So as many passes are queued as keys have digits, and passes that are not
 *          needed end at once. If the number of passes would leave the result in the wrong buffer, there is one pass
 *          more (choose_digits()). The first pass turns keys into codes and makes positions; the last one turns codes
 *          into bits and makes positions wider. If there are few keys, tiles are small.
 * Rejected Waiting on the host for the flags of the digits, so as to queue no pass too many: the device is idle until
 *          the host has seen the flags and the first pass is sent.
 * Limit    Shared memory. For each key a pass sets a bit, reads and writes a word, reads a first place, and
 *          moves the key to its place and out again. All but the last access random addresses, where a row of 32
 *          keys takes three to four turns instead of one. A tile also clears, sums and scans the tables of
 *          its groups, which costs less per key the more keys a thread holds; registers limit their number. And
 *          every digit that varies costs a pass, however few bits of it matter.
 * Source   Adinets, Merrill, "Onesweep: A faster least significant digit radix sort for GPUs", 2022; Merrill,
 *          Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016. */
#include "kernels/cuda/ladder/onesweep.cuh"
#include "kernels/numbered_keys.h"
#include <type_traits>

enum { HISTOGRAM_TILE = ONESWEEP_THREADS * ONESWEEP_HISTOGRAM_KEYS };

/* ---- before the passes --------------------------------------------------------------------------------- */

/* Note which bits differ between the keys of a block. seen [2] in shared memory, zero before. */
template <typename K>
static __device__ void note_bits(K ones, K zeroes, unsigned long long *seen)
{
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        ones |= __shfl_xor_sync(ALL_LANES, ones, distance);
        zeroes |= __shfl_xor_sync(ALL_LANES, zeroes, distance);
    }
    if (threadIdx.x % WARP == 0) {
        atomicOr(&seen[0], (unsigned long long)ones);
        atomicOr(&seen[1], (unsigned long long)zeroes);
    }
}

/* Count every digit of every key, and note which bits differ. The counters of a block have 32 bits, because a block meets
 * fewer than 2^32 keys. */
template <typename K, typename V>
static __global__ void __launch_bounds__(ONESWEEP_THREADS)
    histogram_kernel(const __grid_constant__ struct onesweep_sort<K, V> sort)
{
    __shared__ uint32_t counts[sizeof(K)][TABLE];
    __shared__ unsigned long long seen[2];
    K ones = 0, zeroes = 0;
    wait_for_kernels_before();
    for (int i = threadIdx.x; i < (int)sizeof(K) * TABLE; i += ONESWEEP_THREADS)
        counts[i / TABLE][i % TABLE] = 0;
    if (threadIdx.x < 2)
        seen[threadIdx.x] = 0;
    __syncthreads();

    for (int64_t tile = blockIdx.x; tile * HISTOGRAM_TILE < sort.count; tile += gridDim.x) {
        const int64_t first = tile * HISTOGRAM_TILE + threadIdx.x;
        K loaded[ONESWEEP_HISTOGRAM_KEYS];
#pragma unroll
        for (int k = 0; k < ONESWEEP_HISTOGRAM_KEYS; k++) {
            const int64_t i = first + k * ONESWEEP_THREADS;
            loaded[k] = i < sort.count ? sort.from.keys[i] : 0;
        }
        encode_loaded(sort.coding, loaded);
#pragma unroll
        for (int k = 0; k < ONESWEEP_HISTOGRAM_KEYS; k++) {
            if (first + k * ONESWEEP_THREADS < sort.count) {
                ones |= loaded[k];
                zeroes |= (K)~loaded[k];
#pragma unroll
                for (uint32_t digit = 0; digit < sizeof(K); digit++) {
                    const key_digit<K> digit_of = {digit * DIGIT_BITS};
                    atomicAdd(&counts[digit][word_of_bin(digit_of(loaded[k]))], 1u);
                }
            }
        }
    }
    note_bits(ones, zeroes, seen);
    __syncthreads();

    for (int i = threadIdx.x; i < (int)sizeof(K) * BINS; i += ONESWEEP_THREADS) {
        const uint32_t found = counts[i / BINS][word_of_bin((uint32_t)i % BINS)];
        if (found > 0)
            atomicAdd((unsigned long long *)&sort.tables->bins[i / BINS][i % BINS], (unsigned long long)found);
    }
    if (threadIdx.x < 2)
        atomicOr((unsigned long long *)(threadIdx.x == 0 ? &sort.tables->ones : &sort.tables->zeroes), seen[threadIdx.x]);
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

static size_t tables_bytes(int64_t tiles, int64_t cohorts, int passes)
{
    return offsetof(struct onesweep_tables, words) + (size_t)(tiles + passes * cohorts) * sizeof(uint64_t[BINS]);
}

static int64_t tiles_of(int64_t count, int keys_of_thread)
{
    return divide_up(count, ONESWEEP_THREADS * keys_of_thread);
}

/* How many tiles run at a time. */
static int64_t tiles_at_once(const struct cuda_engine *engine)
{
    return (int64_t)engine->multiprocessors * ONESWEEP_BLOCKS;
}

/* Are there so few keys that the whole pass waits for its last tiles? If so, the size of tiles depends on the number of keys, and
 * tiles have cohorts. */
template <typename K, typename V>
static bool has_few_tiles(const struct cuda_engine *engine, int64_t count)
{
    return tiles_of(count, onesweep_keys<K, V>()) <= ONESWEEP_FEW_WAVES * tiles_at_once(engine);
}

/* Bytes for the tables of `count` keys or fewer. Fewer keys may have more tiles, because their tiles are smaller. */
template <typename K, typename V>
static size_t tables_bytes_at_most(const struct cuda_engine *engine, int64_t count)
{
    const int64_t few = min(tiles_of(count, ONESWEEP_KEYS_LEAST), ONESWEEP_FEW_WAVES * tiles_at_once(engine));
    const size_t of_few = tables_bytes(few, divide_up(few, COHORT), sizeof(K)),
                 of_many = tables_bytes(tiles_of(count, onesweep_keys<K, V>()), 0, sizeof(K));
    return of_few > of_many ? of_few : of_many;
}

/* Call run(std::integral_constant<int, N>()), where N is the keys of a thread in a tile, KEYS or more, and return its result. If
 * there are few tiles, they are as small as they can be without making more waves than the largest tiles would. */
template <int KEYS, typename K, typename V, typename F>
static hsort_status with_tile_size(const struct cuda_engine *engine, int64_t count, const F &run)
{
    constexpr int MOST = onesweep_keys<K, V>();
    if constexpr (KEYS < MOST) {
        const int64_t at_once = tiles_at_once(engine);
        if (!has_few_tiles<K, V>(engine, count) ||
            divide_up(tiles_of(count, KEYS), at_once) > divide_up(tiles_of(count, MOST), at_once))
            return with_tile_size<(KEYS + ONESWEEP_KEYS_STEP < MOST ? KEYS + ONESWEEP_KEYS_STEP : MOST), K, V>(engine, count, run);
    }
    return run(std::integral_constant<int, KEYS>());
}

/* Queue as many passes as there may be. Passes for which no digit is left end at once. So the host waits for nothing. */
template <int KEYS, typename K, typename V>
static hsort_status queue_passes(struct cuda_engine *engine, const struct onesweep_sort<K, V> &sort)
{
    for (int number = 0; number < (int)sizeof(K); number++)
        TRY(launch_behind(engine, "launch of a pass of rung 7", onesweep_kernel<K, V, KEYS>, (unsigned)sort.tiles, ONESWEEP_THREADS,
                          (int)tile_bytes<K, V, KEYS>(), sort, number));
    return HSORT_OK;
}

/* The sort that args ask for. */
template <typename K, typename V>
static struct onesweep_sort<K, V> onesweep_of(struct sort_args *args) {
    const struct source<K> source = source_of<K>(args);
    const bool in_scratch = args->raw && args->raw->in_scratch && !args->raw->decode && source.keys != args->keys;
    const struct onesweep_elements<K, V> keys = {(K *)args->keys, (V *)args->values};
    const struct onesweep_elements<K, V> scratch = {(K *)args->scratch_keys, (V *)args->scratch_values};
    struct onesweep_sort<K, V> sort = {};
    sort.out = in_scratch ? scratch : keys;
    sort.spare = in_scratch ? keys : scratch;
    sort.from = {(K *)source.keys, (V *)(args->first_values ? args->first_values : args->values)};
    if (args->positions)
        sort.from.values = NULL;
    sort.positions = args->positions;
    sort.count = args->count;
    sort.coding = source.coding;
    sort.tables = (struct onesweep_tables *)args->workspace;
    args->sorted_keys = sort.out.keys;
    args->sorted_values = args->positions ? (void *)args->positions : sort.out.values;
    return sort;
}

template <typename K, typename V>
static hsort_status sort_onesweep(struct cuda_engine *engine, struct sort_args *args)
{
    struct onesweep_sort<K, V> sort = onesweep_of<K, V>(args);
    const int64_t blocks =
        min(divide_up(sort.count, HISTOGRAM_TILE), (int64_t)engine->multiprocessors * ONESWEEP_HISTOGRAM_BLOCKS);
    return with_tile_size<ONESWEEP_KEYS_LEAST, K, V>(engine, sort.count, [&](auto keys) {
        sort.tiles = tiles_of(sort.count, keys);
        sort.cohorts = has_few_tiles<K, V>(engine, sort.count) ? divide_up(sort.tiles, COHORT) : 0;
        TRY_CUDA(cudaMemsetAsync(sort.tables, 0, tables_bytes(sort.tiles, sort.cohorts, sizeof(K)),
                                 engine->streams[STREAM_WORK]));
        TRY(launch_behind(engine, "launch of the count of rung 7", histogram_kernel<K, V>, (unsigned)blocks,
                          ONESWEEP_THREADS, 0, sort));
        return queue_passes<decltype(keys)::value>(engine, sort);
    });
}

/* No other rung sorts values of 8 bytes beside keys of 4. */
template <typename F>
static hsort_status with_onesweep_types(const struct sort_args *args, F run)
{
    if (args->key_bytes == 4 && args->value_bytes == 8)
        return run(uint32_t(), uint64_t());
    return with_element_types(args->key_bytes, args->value_bytes, run);
}

extern "C" hsort_status rung_7_onesweep_workspace(struct cuda_engine *engine, const struct sort_args *args,
                                                  size_t *bytes)
{
    return with_onesweep_types(args, [&](auto key, auto value) {
        *bytes = tables_bytes_at_most<decltype(key), decltype(value)>(engine, args->count);
        return HSORT_OK;
    });
}

extern "C" hsort_status rung_7_onesweep(struct cuda_engine *engine, struct sort_args *args)
{
    if (is_numbered(args->raw))
        return ladder_sort_codes(engine, args, rung_7_onesweep);
    return with_onesweep_types(args, [&](auto key, auto value) {
        return sort_onesweep<decltype(key), decltype(value)>(engine, args);
    });
}
