/* Rung 7: radix sort, 8 bits per pass, each pass in one sweep over the keys.
 *
 * Idea     Sort by the lowest digit first, stably, then by the next. A pass must know where the keys of each
 *          digit value go: behind all smaller digits, and behind the equal digits of earlier tiles. The first
 *          part comes from one count of all digits before the first pass; the second is found while the pass
 *          runs, by looking back at what earlier tiles have published.
 * Change   Against a pass of rung 6 with its kernels for counting, scanning and moving: one kernel reads each
 *          key once and writes it once; 8 bits at a time; passes over digits that are the same in every key
 *          are left out.
 * Picture  Look-back: kernels/README.md, with 16 keys. Inside a tile, here 2 warps x 2 rows of 4 lanes,
 *          digits a to c:
 *
 *            keys, in order        c a c b | a a c c     b c a c | c b b a
 *            rank in its warp      0 0 1 0 | 1 2 2 3     0 0 0 1 | 2 1 2 1     by ballots
 *            keys of each warp     a 3  b 1  c 4         a 2  b 3  c 3
 *            first place           a 0  b 5  c 9         a 3  b 6  c 13        scan over digits, then warps
 *            place in the tile     9 0 10 5 | 1 2 11 12  6 13 3 14 | 15 7 8 4
 *
 *          The keys go to these places in shared memory and from there to global memory, where the runs of
 *          equal digits are long enough to be stored coalesced.
 * Cost     Every key is read once to count, and read and written once per varying digit: 9 moves of 4-byte
 *          keys, 17 of 8-byte ones. Six barriers per tile. Scratch for all keys; workspace 2 KiB per tile.
 *          The host waits once, for the eight flags that say which digits vary: they decide how many passes
 *          run and so which buffer ends with the result. A plan on the device would save that wait of some
 *          microseconds, but must launch the passes that are left out too, and copy the keys once more when
 *          their number turns out odd.
 * Limit    Instructions: the ranks cost 8 ballots per key and pass; memory could go faster. And every digit
 *          that varies costs a pass, however few bits of it matter.
 * Source   Adinets, Merrill, "Onesweep: A faster least significant digit radix sort for GPUs", 2022; Merrill,
 *          Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016. */
#include "ladder.h"
#include "tuning.h"
#include <cuda/atomic>

enum {
    DIGIT_BITS = 8,
    BINS = 1 << DIGIT_BITS,
    WARPS = ONESWEEP_THREADS / WARP,
    HISTOGRAM_TILE = ONESWEEP_THREADS * ONESWEEP_HISTOGRAM_KEYS,
    LOOK_BACK = 4,    /* descriptors read at a time */
    STATE_SHIFT = 56, /* a descriptor's state lies above its count */
    BIN_ALIGNMENT = 256
};

static_assert((int)ONESWEEP_THREADS >= (int)BINS, "a thread for each bin");
static_assert(ONESWEEP_THREADS <= 1024 && ONESWEEP_THREADS % WARP == 0, "a block of whole warps");

template <typename K>
__host__ __device__ constexpr int tile_size()
{
    return ONESWEEP_THREADS * (sizeof(K) == 4 ? ONESWEEP_KEYS_4 : ONESWEEP_KEYS_8);
}

/* The workspace: tables for all passes in one piece, so that one memset clears them. */
struct tables {
    /* [digit][bin]: keys with this digit value; after the scan: with a smaller one */
    uint64_t bins[sizeof(uint64_t)][BINS];
    /* [pass]: tiles begun */
    uint32_t tickets[sizeof(uint64_t)];
    /* [tile][bin], as many tiles as there are: see publish() */
    alignas(BIN_ALIGNMENT) uint64_t descriptors[1][BINS];
};

static size_t tables_bytes(int64_t tiles)
{
    return offsetof(struct tables, descriptors) + (size_t)tiles * sizeof(uint64_t[BINS]);
}

template <typename K>
static __device__ uint32_t digit_of(K key, int shift)
{
    return (uint32_t)(key >> shift) & (BINS - 1);
}

/* ---- before the passes --------------------------------------------------------------------------------- */

/* Count every digit of every key. The counters of a block are 32-bit: it meets fewer than 2^32 keys. */
template <typename K>
static __global__ void __launch_bounds__(ONESWEEP_THREADS)
    histogram_kernel(const K *__restrict__ keys, int64_t count, struct tables *tables)
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
                for (int digit = 0; digit < (int)sizeof(K); digit++)
                    atomicAdd(&counts[digit][digit_of(loaded[k], digit * DIGIT_BITS)], 1u);
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

/* Exclusive sum over the first BINS threads of a block, one value of each; undefined in the others. Every
 * thread of the block calls it. */
template <typename T>
static __device__ T block_scan(T value)
{
    __shared__ T warp_sums[BINS / WARP];
    const int lane = threadIdx.x % WARP;
    const int warp = threadIdx.x / WARP;
    T sum = value;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const T below = __shfl_up_sync(ALL_LANES, sum, distance);
        if (lane >= distance)
            sum += below;
    }
    if (lane == WARP - 1 && warp < BINS / WARP)
        warp_sums[warp] = sum;
    __syncthreads();
    T before = sum - value;
#pragma unroll
    for (int other = 0; other < BINS / WARP; other++) {
        if (other < warp)
            before += warp_sums[other];
    }
    return before;
}

/* One block per digit: turn counts into first places, and tell the host whether the digit varies at all. */
static __global__ void __launch_bounds__(BINS)
    scan_kernel(struct tables *tables, int64_t count, int32_t *digit_varies)
{
    uint64_t *bin = &tables->bins[blockIdx.x][threadIdx.x];
    const uint64_t found = *bin;
    *bin = block_scan(found);
    const int varies = __syncthreads_or(found != 0 && found != (uint64_t)count);
    if (threadIdx.x == 0)
        digit_varies[blockIdx.x] = varies;
}

/* ---- look-back ----------------------------------------------------------------------------------------- */

/* What a tile tells later tiles about one bin, in one 64-bit word: a state and a count. The state names the
 * pass too, so what an earlier pass left counts as "nothing yet" and the descriptors need not be cleared in
 * between. The word is all that is communicated, so relaxed order is enough. */
enum tile_state {
    STATE_OWN, /* count: keys of this bin in this tile */
    STATE_SUM  /* count: keys of this bin in this tile and all before it */
};

static __device__ uint64_t state_word(int pass, enum tile_state state)
{
    return (uint64_t)(2 * pass + state + 1);
}

static __device__ void publish(uint64_t *descriptor, int pass, enum tile_state state, int64_t count)
{
    cuda::atomic_ref<uint64_t, cuda::thread_scope_device>(*descriptor)
        .store(state_word(pass, state) << STATE_SHIFT | (uint64_t)count, cuda::memory_order_relaxed);
}

static __device__ uint64_t observe(uint64_t *descriptor)
{
    return cuda::atomic_ref<uint64_t, cuda::thread_scope_device>(*descriptor)
        .load(cuda::memory_order_relaxed);
}

/* Keys of bin `bin` in all tiles before `tile`; then publish the sum that includes this tile's `own`, which
 * it has published as STATE_OWN already. Waits only for tiles with smaller tickets: they are running, and
 * publish their own counts before they wait themselves, so every wait ends.
 *
 * LOOK_BACK descriptors are read at a time, in the order from near to far, and used as far as they are there:
 * one by one, the latency of each read would add up faster than tiles finish. */
static __device__ int64_t look_back(uint64_t (*descriptors)[BINS], int bin, int64_t tile, int pass,
                                    uint32_t own)
{
    int64_t before = 0;
    int64_t next = tile - 1;
    while (next >= 0) {
        uint64_t window[LOOK_BACK];
#pragma unroll
        for (int i = 0; i < LOOK_BACK; i++)
            window[i] = observe(&descriptors[max(next - i, INT64_C(0))][bin]);
#pragma unroll
        for (int i = 0; i < LOOK_BACK; i++) {
            const uint64_t state = window[i] >> STATE_SHIFT;
            const bool is_sum = state == state_word(pass, STATE_SUM);
            if (next < 0 || (state != state_word(pass, STATE_OWN) && !is_sum))
                break;
            before += (int64_t)(window[i] & ((UINT64_C(1) << STATE_SHIFT) - 1));
            next = is_sum ? -1 : next - 1;
        }
    }
    if (tile > 0)
        publish(&descriptors[tile][bin], pass, STATE_SUM, before + own);
    return before;
}

/* ---- a pass -------------------------------------------------------------------------------------------- */

/* The lanes of this warp whose digit is the same as this lane's: a ballot on each bit of it. In C this
 * compiles to nearly twice the instructions, and instructions are what limits the pass. __match_any_sync() is
 * a single one, but one that takes longer the more digits differ. */
static __device__ uint32_t warp_peers(uint32_t digit)
{
    uint32_t peers = ALL_LANES;
#pragma unroll
    for (int bit = 0; bit < DIGIT_BITS; bit++) {
        uint32_t agree; // the lanes whose bit is the same as this lane's
        asm volatile("{\n\t"
                     ".reg .pred is_set;\n\t"
                     "and.b32 %0, %1, %2;\n\t"
                     "setp.ne.b32 is_set, %0, 0;\n\t"
                     "vote.sync.ballot.b32 %0, is_set, 0xffffffff;\n\t"
                     "@!is_set not.b32 %0, %0;\n\t"
                     "}"
                     : "=&r"(agree)
                     : "r"(digit), "r"(1u << bit));
        peers &= agree;
    }
    return peers;
}

/* Rank each key among the keys of its warp with the same digit, in the order row by row, lane by lane; leaves
 * the warp's digit counts in counts [BINS]. */
template <typename K, int KEYS>
static __device__ void warp_rank(const K (&keys)[KEYS], int shift, uint32_t *counts, uint32_t (&ranks)[KEYS])
{
    const int lane = threadIdx.x % WARP;
    for (int bin = lane; bin < BINS; bin += WARP)
        counts[bin] = 0;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const uint32_t digit = digit_of(keys[k], shift);
        const uint32_t peers = warp_peers(digit);
        const uint32_t rank = counts[digit] + __popc(peers & ((1u << lane) - 1));
        ranks[k] = rank;
        __syncwarp(); // every lane has read its count
        if (peers >> lane == 1)
            counts[digit] = rank + 1; // the last of its peers
        __syncwarp();                 // and the next row sees it
    }
}

/* Load a tile's keys, `valid` of them: a warp's are contiguous, KEYS rows of 32. A full tile needs no
 * comparisons. Behind the last key a tile is filled up with the largest one: such keys are ranked behind all
 * others, and not stored. */
template <typename K, int KEYS>
static __device__ void load_rows(const K *__restrict__ tile, int valid, K (&keys)[KEYS])
{
    const int first = threadIdx.x / WARP * WARP * KEYS + threadIdx.x % WARP;
    if (valid == ONESWEEP_THREADS * KEYS) {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            keys[k] = tile[first + k * WARP];
    } else {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            keys[k] = first + k * WARP < valid ? tile[first + k * WARP] : (K) ~(K)0;
    }
}

/* Store keys from their places in the tile to their bins' goals: runs of equal digits, each coalesced. */
template <typename K>
static __device__ void store_places(const K *places, int valid, int shift, const int64_t *goals,
                                    K *__restrict__ to)
{
    constexpr int TILE = tile_size<K>();
    if (valid == TILE) {
        K *row = to + threadIdx.x;
#pragma unroll
        for (int k = 0; k < TILE / ONESWEEP_THREADS; k++) {
            const K key = places[threadIdx.x + k * ONESWEEP_THREADS];
            row[goals[digit_of(key, shift)] + k * ONESWEEP_THREADS] = key;
        }
    } else {
        for (int place = threadIdx.x; place < valid; place += ONESWEEP_THREADS)
            to[goals[digit_of(places[place], shift)] + place] = places[place];
    }
}

/* Turn the warps' counts of one bin into first places in the tile, warp by warp from `first` on. */
static __device__ void scan_warps(uint32_t (*counts)[BINS], int bin, uint32_t first)
{
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++) {
        const uint32_t of_warp = counts[warp][bin];
        counts[warp][bin] = first;
        first += of_warp;
    }
}

/* Move the keys of one tile to where `digit` wants them. */
template <typename K>
static __global__ void __launch_bounds__(ONESWEEP_THREADS, 2)
    pass_kernel(const K *__restrict__ from, K *__restrict__ to, int64_t count, int digit, int pass,
                struct tables *tables)
{
    constexpr int TILE = tile_size<K>();
    constexpr int KEYS = TILE / ONESWEEP_THREADS;
    extern __shared__ uint64_t shared[];                 // first the warps' counts, then the tile's keys
    uint32_t(*counts)[BINS] = (uint32_t(*)[BINS])shared; // [WARPS]
    K *places = (K *)shared;                             // [TILE]
    __shared__ int64_t goals[BINS]; // where a bin's keys go, less their place in the tile
    __shared__ uint32_t ticket;
    uint64_t(*descriptors)[BINS] = tables->descriptors;
    const int warp = threadIdx.x / WARP;
    const int bin = threadIdx.x; // of the threads below BINS
    const int shift = digit * DIGIT_BITS;

    // 1. take a tile. By ticket, not by block number: nothing says that blocks start in order
    if (threadIdx.x == 0)
        ticket = atomicAdd(&tables->tickets[pass], 1u);
    __syncthreads();
    const int64_t tile = ticket;
    const int valid = (int)min((int64_t)TILE, count - tile * TILE);

    // 2. load
    K keys[KEYS];
    load_rows(from + tile * TILE, valid, keys);

    // 3. rank in the warps; count the tile's bins and publish the counts
    uint32_t ranks[KEYS];
    warp_rank(keys, shift, counts[warp], ranks);
    __syncthreads();
    uint32_t own = 0;
    if (bin < BINS) {
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            own += counts[w][bin];
        publish(&descriptors[tile][bin], pass, tile == 0 ? STATE_SUM : STATE_OWN, own);
    }

    // 4. places in the tile
    const uint32_t first = block_scan(own);
    if (bin < BINS)
        scan_warps(counts, bin, first);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        ranks[k] += counts[warp][digit_of(keys[k], shift)];
    __syncthreads(); // the keys take the counts' memory
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        places[ranks[k]] = keys[k];

    // 5. places among all keys; by now earlier tiles have had time to publish
    if (bin < BINS)
        goals[bin] = (int64_t)tables->bins[digit][bin] + look_back(descriptors, bin, tile, pass, own) - first;
    __syncthreads();

    // 6. store
    store_places(places, valid, shift, goals, to);
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

/* Count all digits; sets engine->result->digit_varies [sizeof(K)] and waits for it. */
template <typename K>
static hsort_status count_digits(struct cuda_engine *engine, const K *keys, int64_t count,
                                 struct tables *tables)
{
    cudaStream_t stream = engine->lanes[LANE_WORK];
    const int64_t blocks =
        min(divide_up(count, HISTOGRAM_TILE), (int64_t)engine->multiprocessors * ONESWEEP_HISTOGRAM_BLOCKS);
    TRY_CUDA(cudaMemsetAsync(tables, 0, tables_bytes(divide_up(count, tile_size<K>())), stream));
    histogram_kernel<<<(unsigned)blocks, ONESWEEP_THREADS, 0, stream>>>(keys, count, tables);
    scan_kernel<<<sizeof(K), BINS, 0, stream>>>(tables, count, engine->result->digit_varies);
    TRY_LAUNCH("rung 7, the count of digits");
    TRY_CUDA(cudaStreamSynchronize(stream));
    return HSORT_OK;
}

template <typename K>
static hsort_status sort_onesweep(struct cuda_engine *engine, K *keys, K *scratch, int64_t count,
                                  struct tables *tables, void **sorted)
{
    constexpr size_t keys_bytes = tile_size<K>() * sizeof(K);
    constexpr size_t counts_bytes = WARPS * BINS * sizeof(uint32_t);
    constexpr size_t shared_bytes = keys_bytes > counts_bytes ? keys_bytes : counts_bytes;
    TRY_CUDA(
        cudaFuncSetAttribute(pass_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes));
    TRY(count_digits(engine, keys, count, tables));

    const unsigned tiles = (unsigned)divide_up(count, tile_size<K>());
    int pass = 0;
    for (int digit = 0; digit < (int)sizeof(K); digit++) {
        if (!engine->result->digit_varies[digit])
            continue;
        pass_kernel<<<tiles, ONESWEEP_THREADS, shared_bytes, engine->lanes[LANE_WORK]>>>(
            keys, scratch, count, digit, pass++, tables);
        TRY_LAUNCH("rung 7, a pass");
        K *moved = scratch;
        scratch = keys;
        keys = moved;
    }
    *sorted = keys;
    return HSORT_OK;
}

extern "C" hsort_status rung_7_onesweep_workspace(struct cuda_engine *, const struct rung_job *job,
                                                  size_t *bytes)
{
    *bytes = tables_bytes(
        divide_up(job->count, job->key_bytes == 4 ? tile_size<uint32_t>() : tile_size<uint64_t>()));
    return HSORT_OK;
}

extern "C" hsort_status rung_7_onesweep(struct cuda_engine *engine, struct rung_job *job)
{
    struct tables *tables = (struct tables *)job->workspace;
    return job->key_bytes == 4 ? sort_onesweep(engine, (uint32_t *)job->keys, (uint32_t *)job->scratch_keys,
                                               job->count, tables, &job->sorted_keys)
                               : sort_onesweep(engine, (uint64_t *)job->keys, (uint64_t *)job->scratch_keys,
                                               job->count, tables, &job->sorted_keys);
}
