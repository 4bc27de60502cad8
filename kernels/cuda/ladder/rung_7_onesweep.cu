/* Rung 7: radix sort, 8 bits per pass, each pass in one sweep over the keys.
 *
 * Idea     Sort by the lowest digit first, stably, then by the next. A pass must know where the keys of each
 *          digit value go: behind all smaller digits, and behind the equal digits of earlier tiles. The first
 *          part comes from one count of all digits before the first pass; the second is found while the pass
 *          runs, by looking back at what earlier tiles have published.
 * Change   Against a pass of rung 6 with its kernels for counting, scanning and moving: one kernel reads each
 *          key once and writes it once; 8 bits at a time; passes over digits that are the same in every key
 *          are left out.
 * Picture  Look-back: kernels/README.md, with 16 keys. Inside a tile: onesweep.cuh, which has the pass.
 * Cost     Every key is read once to count, and read and written once per varying digit: 9 moves of 4-byte
 *          keys, 17 of 8-byte ones; values are read and written with them. Six barriers per tile, two more
 *          with values, one more in the first pass over 4-byte keys alone. Scratch for all keys and values;
 *          workspace 2 KiB per tile. The host waits once, for the flags that say which digits vary: they decide
 *          how many passes run and so which buffer ends with the result. A plan on the device would save that
 *          wait of some microseconds, but must launch the passes that are left out too, and copy the keys once
 *          more when their number turns out odd.
 * Limit    Shared memory. For each key a pass sets a bit, reads and writes a word, reads a first place, and
 *          moves the key to its place and out again; all but the last at random addresses, where a row of 32
 *          keys takes three to four turns instead of one. A tile also clears, sums and scans the tables of
 *          its groups, the less per key the more keys a thread holds; registers end that. And every digit
 *          that varies costs a pass, however few bits of it matter.
 * Source   Adinets, Merrill, "Onesweep: A faster least significant digit radix sort for GPUs", 2022; Merrill,
 *          Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016. */
#include "kernels/cuda/ladder/onesweep.cuh"

enum { HISTOGRAM_TILE = ONESWEEP_THREADS * ONESWEEP_HISTOGRAM_KEYS };

/* The workspace: tables for all passes in one piece, so that one memset clears them. */
struct onesweep_tables {
    /* [digit][bin]: keys with this digit value; after the scan: with a smaller one */
    uint64_t bins[sizeof(uint64_t)][BINS];
    /* longer than it says: onesweep_workspace_bytes() */
    struct onesweep_workspace passes;
};

static size_t tables_bytes(int64_t tiles)
{
    return offsetof(struct onesweep_tables, passes) + onesweep_workspace_bytes(tiles);
}

/* The digit of a key that begins `shift` bits up. */
template <typename K>
struct key_digit {
    static constexpr int SHARED_WORDS = 0;
    uint32_t shift;

    __device__ void prepare(uint32_t *)
    {
    }
    __device__ uint32_t operator()(K key) const
    {
        if (sizeof(K) == 4) // one instruction; the mask only says so to the compiler
            return __byte_perm((uint32_t)key, 0, 0x4440 + shift / DIGIT_BITS) & (BINS - 1);
        return (uint32_t)(key >> shift) & (BINS - 1);
    }
    /* Hides a multiple of the shift, not the shift: asm hides it from the compiler alone, and the assembler
     * would know it again. But a multiple may have overflowed, for all that the assembler knows. Keys of 8
     * bytes are fewer, and leave registers for as many digits as it likes to keep. */
    __device__ key_digit again() const
    {
        key_digit same = *this;
        if (sizeof(K) == 4) {
            same.shift *= DIGIT_BITS;
            asm volatile("" : "+r"(same.shift));
            same.shift /= DIGIT_BITS;
        }
        return same;
    }
};

/* ---- before the passes --------------------------------------------------------------------------------- */

/* Count every digit of every key. The counters of a block are 32-bit: it meets fewer than 2^32 keys. */
template <typename K>
static __global__ void __launch_bounds__(ONESWEEP_THREADS)
    histogram_kernel(const K *__restrict__ keys, int64_t count, struct onesweep_tables *tables)
{
    __shared__ uint32_t counts[sizeof(K)][BINS];
    for (int i = threadIdx.x; i < (int)sizeof(K) * BINS; i += ONESWEEP_THREADS)
        counts[i / BINS][i % BINS] = 0;
    __syncthreads();

    for (int64_t tile = blockIdx.x; tile * HISTOGRAM_TILE < count; tile += gridDim.x) {
        const int64_t first = tile * HISTOGRAM_TILE + threadIdx.x;
        K loaded[ONESWEEP_HISTOGRAM_KEYS];
#pragma unroll
        for (int k = 0; k < ONESWEEP_HISTOGRAM_KEYS; k++) {
            const int64_t i = first + k * ONESWEEP_THREADS;
            loaded[k] = i < count ? keys[i] : 0;
        }
#pragma unroll
        for (int k = 0; k < ONESWEEP_HISTOGRAM_KEYS; k++) {
            if (first + k * ONESWEEP_THREADS < count) {
#pragma unroll
                for (uint32_t digit = 0; digit < sizeof(K); digit++) {
                    const key_digit<K> digit_of = {digit * DIGIT_BITS};
                    atomicAdd(&counts[digit][digit_of(loaded[k])], 1u);
                }
            }
        }
    }
    __syncthreads();

    for (int i = threadIdx.x; i < (int)sizeof(K) * BINS; i += ONESWEEP_THREADS) {
        const uint32_t found = counts[i / BINS][i % BINS];
        if (found > 0)
            atomicAdd((unsigned long long *)&tables->bins[i / BINS][i % BINS], (unsigned long long)found);
    }
}

/* One block per digit: turn counts into first places, and write for the host whether the digit varies at all.
 * */
static __global__ void __launch_bounds__(BINS)
    first_places_kernel(struct onesweep_tables *tables, int64_t count, int32_t *digit_varies)
{
    uint64_t *bin = &tables->bins[blockIdx.x][threadIdx.x];
    const uint64_t found = *bin;
    *bin = sum_of_bins_before(found);
    const int varies = __syncthreads_or(found != 0 && found != (uint64_t)count);
    if (threadIdx.x == 0)
        digit_varies[blockIdx.x] = varies;
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

/* Count all digits; sets engine->result->digit_varies [sizeof(K)] and waits for it. */
template <typename K>
static hsort_status count_all_digits(struct cuda_engine *engine, const K *keys, int64_t count, int64_t tiles,
                                 struct onesweep_tables *tables)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const int64_t blocks =
        min(divide_up(count, HISTOGRAM_TILE), (int64_t)engine->multiprocessors * ONESWEEP_HISTOGRAM_BLOCKS);
    memset(engine->result->digit_varies, -1, sizeof engine->result->digit_varies);
    TRY_CUDA(cudaMemsetAsync(tables, 0, tables_bytes(tiles), stream));
    histogram_kernel<<<(unsigned)blocks, ONESWEEP_THREADS, 0, stream>>>(keys, count, tables);
    first_places_kernel<<<sizeof(K), BINS, 0, stream>>>(tables, count, engine->result->digit_varies);
    TRY_LAUNCH("rung 7, the count of digits");
    for (size_t digit = 0; digit < sizeof(K); digit++)
        TRY(wait_for_word(stream, &engine->result->digit_varies[digit], -1));
    return HSORT_OK;
}

template <typename K, typename V>
static hsort_status sort_onesweep(struct cuda_engine *engine, struct sort_args *args)
{
    struct onesweep_tables *tables = (struct onesweep_tables *)args->workspace;
    pass<K, V, key_digit<K>> pass = {};
    pass.from = (const K *)(args->first_keys ? args->first_keys : args->keys);
    pass.to = (K *)args->scratch_keys;
    pass.from_values = (const V *)(args->first_values ? args->first_values : args->values);
    pass.to_values = (V *)args->scratch_values;
    pass.count = args->count;
    pass.workspace = &tables->passes;
    TRY(count_all_digits(engine, pass.from, pass.count, onesweep_tiles<K, V>(pass.count), tables));
    for (uint32_t digit = 0; digit < sizeof(K); digit++) {
        if (!engine->result->digit_varies[digit])
            continue;
        pass.digit.shift = digit * DIGIT_BITS;
        pass.first_places = tables->bins[digit];
        pass.may_mix = !has_value<V> && pass.number == 0; // there is no order yet to keep
        TRY(onesweep_pass(engine, pass));
        pass.number++;
        pass.from = pass.to;
        pass.from_values = pass.to_values;
        pass.to = (K *)(pass.to == args->keys ? args->scratch_keys : args->keys);
        pass.to_values = (V *)(pass.to_values == args->values ? args->scratch_values : args->values);
    }
    args->sorted_keys = (void *)pass.from;
    args->sorted_values = (void *)pass.from_values;
    return HSORT_OK;
}

extern "C" hsort_status rung_7_onesweep_workspace(struct cuda_engine *, const struct sort_args *args,
                                                  size_t *bytes)
{
    return with_element_types(args->key_bytes, args->value_bytes, [&](auto key, auto value) {
        *bytes = tables_bytes(onesweep_tiles<decltype(key), decltype(value)>(args->count));
        return HSORT_OK;
    });
}

extern "C" hsort_status rung_7_onesweep(struct cuda_engine *engine, struct sort_args *args)
{
    return with_element_types(args->key_bytes, args->value_bytes, [&](auto key, auto value) {
        return sort_onesweep<decltype(key), decltype(value)>(engine, args);
    });
}
