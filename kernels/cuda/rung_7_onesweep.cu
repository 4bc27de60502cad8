/* Rung 7: radix sort, 8 bits per pass, each pass in one sweep over the keys.
 *
 * Idea     Sort by the lowest digit first, stably, then by the next. A pass must know where the keys of each
 *          digit value go: behind all smaller digits, and behind the equal digits of earlier tiles. The first
 *          part comes from one count of all digits before the first pass; the second is found while the pass
 *          runs, by looking back at what earlier tiles have published.
 * Change   Against a pass of rung 6 with its kernels for counting, scanning and moving: one kernel reads each
 *          key once and writes it once; 8 bits at a time; passes over digits that are the same in every key
 *          are left out.
 * Picture  Look-back: kernels/README.md, with 16 keys. Inside a tile, here 2 groups x 2 rows of 4 lanes (in
 *          truth groups of 16 lanes), digits a to c:
 *
 *            keys, in order        c a c b | a a c c     b c a c | c b b a
 *            rank in its group     0 0 1 0 | 1 2 2 3     0 0 0 1 | 2 1 2 1
 *            keys of each group    a 3  b 1  c 4         a 2  b 3  c 3
 *            first place           a 0  b 5  c 9         a 3  b 6  c 13        scan over digits, then groups
 *            place in the tile     9 0 10 5 | 1 2 11 12  6 13 3 14 | 15 7 8 4
 *
 *          How the first row finds its ranks. A word of shared memory for each digit: the count so far, and a
 *          bit for each lane, lane 0 at the right:
 *
 *            before the row        a 0 ....   b 0 ....   c 0 ....
 *            each sets its bit     a 0 ..1.   b 0 1...   c 0 .1.1
 *            each reads its word   rank = the count + the bits to the right of its own:    c 0  a 0  c 1  b 0
 *            the last one writes   a 1 ....   b 1 ....   c 2 ....
 *
 *          The keys go to their places in shared memory and from there to global memory, where the runs of
 *          equal digits are long enough to be stored coalesced. Values follow by the same two steps.
 * Cost     Every key is read once to count, and read and written once per varying digit: 9 moves of 4-byte
 *          keys, 17 of 8-byte ones; values are read and written with them. Six barriers per tile, two more
 *          with values, one more in the first pass over 4-byte keys alone. Scratch for all keys and values; workspace 2 KiB per tile. The host waits once, for
 *          the flags that say which digits vary: they decide how many passes run and so which buffer ends
 *          with the result. A plan on the device would save that wait of some microseconds, but must launch
 *          the passes that are left out too, and copy the keys once more when their number turns out odd.
 * Limit    Shared memory. For each key a pass sets a bit, reads and writes a word, reads a first place, and
 *          moves the key to its place and out again; all but the last at random addresses, where a row of 32
 *          keys takes three to four turns instead of one. A tile also clears, sums and scans the tables of
 *          its groups, the less per key the more keys a thread holds; registers end that. And every digit
 *          that varies costs a pass, however few bits of it matter.
 * Source   Adinets, Merrill, "Onesweep: A faster least significant digit radix sort for GPUs", 2022; Merrill,
 *          Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016. */
#include "ladder.h"
#include "look_back.cuh"
#include "tuning.h"
#include <type_traits>

enum {
    GROUP = WARP / 2, /* lanes that rank their keys together */
    GROUPS = ONESWEEP_THREADS / GROUP,
    COUNT_SHIFT = 16,     /* a group's word for a bin: its count, above a bit per lane */
    TABLE = BINS + GROUP, /* words from one group's table to the next: other banks for the same bin */
    HISTOGRAM_TILE = ONESWEEP_THREADS * ONESWEEP_HISTOGRAM_KEYS,
    FEW_DIGITS = 8, /* of a row, to be found by a match */
    MOST_PEERS = 6, /* lanes of a row that may set their bits in one word; if more would, they vote */
    LOG_WARP = 5,   /* of WARP, the places after which with_gaps() leaves one out */
    BIN_ALIGNMENT = 256
};

static_assert((int)ONESWEEP_THREADS >= (int)BINS, "a thread for each bin");
static_assert(ONESWEEP_THREADS <= 1024 && ONESWEEP_THREADS % WARP == 0, "a block of whole warps");

/* The value beside a key that has none. */
struct no_value {
};

template <typename V>
static constexpr bool HAS_VALUES = !std::is_empty<V>::value;

template <typename K, typename V>
static __host__ __device__ constexpr int tile_size()
{
    return ONESWEEP_THREADS * (sizeof(K) == 8  ? ONESWEEP_KEYS_8
                               : HAS_VALUES<V> ? ONESWEEP_KEYS_4_PAIRS
                                               : ONESWEEP_KEYS_4);
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

/* The digit that begins `shift` bits up. */
template <typename K>
static __device__ uint32_t digit_of(K key, int shift)
{
    if (sizeof(K) == 4) // one instruction; the mask only says so to the compiler
        return __byte_perm((uint32_t)key, 0, 0x4440 + shift / DIGIT_BITS) & (BINS - 1);
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

/* ---- a pass -------------------------------------------------------------------------------------------- */

/* N numbers, PARTS of them in a register; set() from the first to the last. For unrolled loops, in which k is
 * a constant. */
template <int N, int PARTS>
struct packed {
    static constexpr int BITS = 32 / PARTS;
    uint32_t words[(N + PARTS - 1) / PARTS];

    __device__ void set(int k, uint32_t number)
    {
        words[k / PARTS] = k % PARTS == 0 ? number : words[k / PARTS] | number << k % PARTS * BITS;
    }
    __device__ void add(int k, uint32_t number)
    {
        words[k / PARTS] += number << k % PARTS * BITS;
    }
    /* Add to each its quotient by 2^log. */
    __device__ void add_quotients(int log)
    {
        constexpr uint32_t ONES = PARTS == 1 ? 1 : PARTS == 2 ? 0x10001 : 0x1010101;
#pragma unroll
        for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++)
            words[i] += words[i] >> log & ONES * ((1u << (BITS - log)) - 1);
    }
    __device__ uint32_t get(int k) const
    {
        return words[k / PARTS] >> k % PARTS * BITS & ((1u << BITS) - 1);
    }
};

/* How the lanes of a row find those with the same digit. */
enum peer_search {
    BY_BITS, /* in the word of their bin, where each sets its bit */
    BY_VOTE, /* so too, but for one digit that many have: a ballot finds its lanes */
    BY_MATCH /* by a match, which takes the longer the more digits there are */
};

/* The way to search, for a warp. `common` is the digit to vote on. */
struct search_choice {
    enum peer_search way;
    uint32_t common;
};

/* Choose by a warp's first row. Lanes that set bits in the same word wait for each other, so they must not be
 * many. The other rows are taken to be like the first one: an input that is not so is sorted as well, only not
 * as fast. */
static __device__ struct search_choice choose_search(uint32_t bin)
{
    const uint32_t peers = __match_any_sync(ALL_LANES, bin);
    const bool is_last = peers >> threadIdx.x % WARP == 1;
    const uint32_t of_many = __ballot_sync(ALL_LANES, __popc(peers) > MOST_PEERS);
    if (__popc(__ballot_sync(ALL_LANES, is_last)) <= FEW_DIGITS)
        return {BY_MATCH, 0};
    if (of_many == 0)
        return {BY_BITS, 0};
    return {BY_VOTE, __shfl_sync(ALL_LANES, bin, __ffs((int)of_many) - 1)};
}

/* Rank each key among the keys of its group with the same digit, in the order row by row, lane by lane;
 * leaves the group's counts in table [BINS], above COUNT_SHIFT. The table is clear before.
 *
 * The lanes of a row find each other in the word of their bin: each sets its bit there, and then sees who has
 * done the same. A ballot on each bit of the digit finds them too, with three times the instructions. Groups
 * of 16, because then the count so far fits into the same word: it is read and written together with the
 * bits. */
template <enum peer_search WAY, typename K, int KEYS>
static __device__ void group_rank(const K (&keys)[KEYS], int shift, uint32_t common, uint32_t *table,
                                  packed<KEYS, 2> &ranks)
{
    const int lane = threadIdx.x % GROUP;
    const int group_shift = threadIdx.x % WARP - lane;
    const uint32_t bit = 1u << lane;
    const uint32_t earlier = bit - 1;
    const uint32_t later = (1u << COUNT_SHIFT) - 2 * bit;
    __syncwarp(); // the table is clear
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const uint32_t bin = digit_of(keys[k], shift);
        uint32_t peers = 0;
        if (WAY == BY_MATCH)
            peers = __match_any_sync(ALL_LANES, bin) >> group_shift & ((1u << COUNT_SHIFT) - 1);
        if (WAY == BY_VOTE)
            peers = __ballot_sync(ALL_LANES, bin == common) >> group_shift & ((1u << COUNT_SHIFT) - 1);
        if (WAY == BY_VOTE && bin != common)
            peers = 0;
        if (WAY == BY_BITS || (WAY == BY_VOTE && bin != common))
            atomicOr(&table[bin], bit);
        __syncwarp(); // every lane has set its bit
        peers |= table[bin];
        const uint32_t rank = (peers >> COUNT_SHIFT) + __popc(peers & earlier);
        ranks.set(k, rank);
        __syncwarp(); // and seen those of the others
        if ((peers & later) == 0)
            table[bin] = (rank + 1) << COUNT_SHIFT; // the last of its peers; clears the bits
        __syncwarp();                               // before the next row sets them
    }
}

/* Rank each key among the keys of the block with the same digit, in no promised order; leaves the counts in
 * table [BINS]. */
template <typename K, int KEYS>
static __device__ void block_rank(const K (&keys)[KEYS], int shift, uint32_t *table, packed<KEYS, 2> &ranks)
{
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        ranks.set(k, atomicAdd(&table[digit_of(keys[k], shift)], 1u));
}

/* Rank a tile's keys in their groups; or, if they `may_mix` and so lose their order, all in group_tables[0],
 * which is quicker unless many meet in one counter. Is that what was done? */
template <typename K, int KEYS>
static __device__ bool tile_rank(const K (&keys)[KEYS], int shift, bool may_mix,
                                 uint32_t (*group_tables)[TABLE], packed<KEYS, 2> &ranks)
{
    uint32_t *table = group_tables[threadIdx.x / GROUP];
    for (int bin = threadIdx.x % GROUP; bin < BINS; bin += GROUP)
        table[bin] = 0;
    const struct search_choice choice = choose_search(digit_of(keys[0], shift));
    if (may_mix && !__syncthreads_or(choice.way != BY_BITS)) {
        block_rank(keys, shift, group_tables[0], ranks);
        return true;
    }
    if (choice.way == BY_MATCH)
        group_rank<BY_MATCH>(keys, shift, 0, table, ranks);
    else if (choice.way == BY_VOTE)
        group_rank<BY_VOTE>(keys, shift, choice.common, table, ranks);
    else
        group_rank<BY_BITS>(keys, shift, 0, table, ranks);
    return false;
}

/* Where the element at `place` of a tile lies in shared memory: one in 32 places is left out. Keys that differ by powers
 * of two may have few bins, all of one size, and without the gaps a row of them would meet in one bank. */
static __host__ __device__ constexpr int with_gaps(int place)
{
    return place + place / WARP;
}

/* Load a tile's keys or values, `valid` of them: a group's are contiguous, in rows of 16. A full tile needs
 * no comparisons. Behind the last element a tile is filled up with ones: such keys are ranked behind all
 * others, and not stored. */
template <typename T, int KEYS>
static __device__ void load_rows(const T *__restrict__ tile, int valid, T (&loaded)[KEYS])
{
    const int first = threadIdx.x / GROUP * GROUP * KEYS + threadIdx.x % GROUP;
    if (valid == ONESWEEP_THREADS * KEYS) {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            loaded[k] = tile[first + k * GROUP];
    } else {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            loaded[k] = first + k * GROUP < valid ? tile[first + k * GROUP] : (T) ~(T)0;
    }
}

/* Store keys from their places in the tile to their bins' goals: runs of equal digits, each coalesced. Leaves
 * their bins, by which the values follow. */
template <typename K, int KEYS>
static __device__ void store_keys(const K *places, int valid, int shift, const int64_t *goals,
                                  K *__restrict__ to, packed<KEYS, 4> &bins)
{
    const K *own = places + with_gaps(threadIdx.x);
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int place = threadIdx.x + k * ONESWEEP_THREADS;
        const K key = own[k * with_gaps(ONESWEEP_THREADS)];
        const uint32_t bin = digit_of(key, shift);
        bins.set(k, bin);
        if (valid == ONESWEEP_THREADS * KEYS || place < valid)
            to[goals[bin] + place] = key;
    }
}

/* Move a tile's values as its keys have been: to their slots, ranks with gaps, in places [with_gaps(TILE)],
 * which the keys have left, and on from there by the bins of those. */
template <typename V, int KEYS>
static __device__ void move_values(const V *__restrict__ tile, int valid, const packed<KEYS, 2> &slots,
                                   const packed<KEYS, 4> &bins, const int64_t *goals, V *places,
                                   V *__restrict__ to)
{
    V values[KEYS];
    load_rows(tile, valid, values);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        places[slots.get(k)] = values[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int place = threadIdx.x + k * ONESWEEP_THREADS;
        if (valid == ONESWEEP_THREADS * KEYS || place < valid)
            to[goals[bins.get(k)] + place] = places[with_gaps(threadIdx.x) + k * with_gaps(ONESWEEP_THREADS)];
    }
}

/* Keys of one bin in all groups. */
static __device__ uint32_t sum_groups(const uint32_t (*group_tables)[TABLE], int bin)
{
    uint32_t sum = 0;
#pragma unroll
    for (int group = 0; group < GROUPS; group++)
        sum += group_tables[group][bin];
    return sum >> COUNT_SHIFT;
}

/* Turn the groups' counts of one bin into first places in the tile, group by group from `first` on. */
static __device__ void scan_groups(uint32_t (*group_tables)[TABLE], int bin, uint32_t first)
{
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        const uint32_t of_group = group_tables[group][bin] >> COUNT_SHIFT;
        group_tables[group][bin] = first;
        first += of_group;
    }
}

/* What a pass works on: [count] each; values NULL without values. */
template <typename K, typename V>
struct pass {
    const K *from;
    K *to;
    const V *from_values;
    V *to_values;
    int64_t count;
    int digit;  /* to sort by */
    int number; /* of the pass, counting from 0 */
    struct tables *tables;
};

/* Move the keys of one tile, and their values, to where the digit wants them. */
template <typename K, typename V>
static __global__ void __launch_bounds__(ONESWEEP_THREADS, ONESWEEP_BLOCKS)
    pass_kernel(const __grid_constant__ struct pass<K, V> pass)
{
    constexpr int TILE = tile_size<K, V>();
    constexpr int KEYS = TILE / ONESWEEP_THREADS;
    extern __shared__ uint64_t shared[];                         // the groups' tables, then keys, then values
    uint32_t(*group_tables)[TABLE] = (uint32_t(*)[TABLE])shared; // [GROUPS]
    K *places = (K *)shared;                                     // [TILE]
    __shared__ int64_t goals[BINS]; // where a bin's keys go, less their place in the tile
    __shared__ uint32_t ticket;
    uint64_t(*descriptors)[BINS] = pass.tables->descriptors;
    const int bin = threadIdx.x; // of the threads below BINS
    const int shift = pass.digit * DIGIT_BITS;

    // 1. take a tile. By ticket, not by block number: nothing says that blocks start in order
    if (threadIdx.x == 0)
        ticket = atomicAdd(&pass.tables->tickets[pass.number], 1u);
    __syncthreads();
    const int64_t tile = ticket;
    const int valid = (int)min((int64_t)TILE, pass.count - tile * TILE);

    // 2. load
    K keys[KEYS];
    load_rows(pass.from + tile * TILE, valid, keys);

    // 3. rank; count the tile's bins and publish the counts. The first pass of keys alone has no order to
    // keep; of 8-byte keys that gains nothing, and takes registers
    packed<KEYS, 2> ranks;
    const bool may_mix = sizeof(K) == 4 && !HAS_VALUES<V> && pass.number == 0 && valid == TILE;
    const bool is_mixed = tile_rank(keys, shift, may_mix, group_tables, ranks);
    __syncthreads();
    uint32_t own = 0;
    if (bin < BINS) {
        own = is_mixed ? group_tables[0][bin] : sum_groups(group_tables, bin);
        stall(tile, STATE_OWN);
        publish(&descriptors[tile][bin], pass.number, tile == 0 ? STATE_SUM : STATE_OWN, own);
    }

    // 4. places in the tile
    const uint32_t first = block_scan(own);
    if (bin < BINS) {
        if (is_mixed)
            group_tables[0][bin] = first;
        else
            scan_groups(group_tables, bin, first);
    }
    __syncthreads();
    const uint32_t *table = group_tables[is_mixed ? 0 : threadIdx.x / GROUP];
    int same_shift = shift;
    asm volatile("" : "+r"(same_shift)); // unseen by the compiler, which would keep 3.'s bins in registers
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        ranks.add(k, table[digit_of(keys[k], same_shift)]);
    ranks.add_quotients(LOG_WARP); // with_gaps() of each
    __syncthreads();               // the keys take the tables' memory
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        places[ranks.get(k)] = keys[k];

    // 5. places among all keys; by now earlier tiles have had time to publish
    if (bin < BINS) {
        const int64_t before = look_back(descriptors, bin, tile, pass.number, own);
        goals[bin] = (int64_t)pass.tables->bins[pass.digit][bin] + before - first;
    }
    __syncthreads();

    // 6. store; the values by way of the same places
    packed<KEYS, 4> bins;
    store_keys(places, valid, shift, goals, pass.to, bins);
    if constexpr (HAS_VALUES<V>)
        move_values(pass.from_values + tile * TILE, valid, ranks, bins, goals, (V *)shared, pass.to_values);
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

/* Wait until the kernels on `stream` have set varies [digits], which is -1 before. The host watches the flags itself:
 * to be woken takes longer than to count the digits of some thousand keys. */
static hsort_status wait_for_digits(cudaStream_t stream, const volatile int32_t *varies, int digits)
{
    for (int digit = 0; digit < digits; digit++) {
        while (varies[digit] < 0) {
            const cudaError_t state = cudaStreamQuery(stream);
            if (state != cudaErrorNotReady)
                TRY_CUDA(state);
        }
    }
    return HSORT_OK;
}

/* Count all digits; sets engine->result->digit_varies [sizeof(K)] and waits for it. */
template <typename K>
static hsort_status count_digits(struct cuda_engine *engine, const K *keys, int64_t count, int64_t tiles,
                                 struct tables *tables)
{
    cudaStream_t stream = engine->lanes[LANE_WORK];
    const int64_t blocks =
        min(divide_up(count, HISTOGRAM_TILE), (int64_t)engine->multiprocessors * ONESWEEP_HISTOGRAM_BLOCKS);
    memset(engine->result->digit_varies, -1, sizeof engine->result->digit_varies);
    TRY_CUDA(cudaMemsetAsync(tables, 0, tables_bytes(tiles), stream));
    histogram_kernel<<<(unsigned)blocks, ONESWEEP_THREADS, 0, stream>>>(keys, count, tables);
    scan_kernel<<<sizeof(K), BINS, 0, stream>>>(tables, count, engine->result->digit_varies);
    TRY_LAUNCH("rung 7, the count of digits");
    return wait_for_digits(stream, engine->result->digit_varies, sizeof(K));
}

template <typename T>
static void swap(const T **from, T **to)
{
    T *moved = *to;
    *to = (T *)*from;
    *from = moved;
}

template <typename K, typename V>
static hsort_status sort_onesweep(struct cuda_engine *engine, struct rung_job *job)
{
    constexpr size_t keys_bytes = with_gaps(tile_size<K, V>()) * sizeof(K);
    constexpr size_t groups_bytes = GROUPS * TABLE * sizeof(uint32_t);
    constexpr size_t shared_bytes = keys_bytes > groups_bytes ? keys_bytes : groups_bytes;
    static_assert(sizeof(V) <= sizeof(K), "the values fit where the keys have been");
    struct pass<K, V> pass = {
        (K *)job->keys, (K *)job->scratch_keys, (V *)job->values, (V *)job->scratch_values, job->count, 0, 0,
            (struct tables *)job->workspace
    };
    TRY_CUDA(cudaFuncSetAttribute(pass_kernel<K, V>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)shared_bytes));
    const int64_t tiles = divide_up(job->count, tile_size<K, V>());
    TRY(count_digits(engine, pass.from, pass.count, tiles, pass.tables));
    for (pass.digit = 0; pass.digit < (int)sizeof(K); pass.digit++) {
        if (!engine->result->digit_varies[pass.digit])
            continue;
        pass_kernel<<<(unsigned)tiles, ONESWEEP_THREADS, shared_bytes, engine->lanes[LANE_WORK]>>>(pass);
        TRY_LAUNCH("rung 7, a pass");
        pass.number++;
        swap(&pass.from, &pass.to);
        swap(&pass.from_values, &pass.to_values);
    }
    job->sorted_keys = (void *)pass.from;
    job->sorted_values = (void *)pass.from_values;
    return HSORT_OK;
}

extern "C" hsort_status rung_7_onesweep_workspace(struct cuda_engine *, const struct rung_job *job,
                                                  size_t *bytes)
{
    const int tile = job->key_bytes == 8     ? tile_size<uint64_t, uint64_t>()
                     : job->value_bytes == 0 ? tile_size<uint32_t, no_value>()
                                             : tile_size<uint32_t, uint32_t>();
    *bytes = tables_bytes(divide_up(job->count, tile));
    return HSORT_OK;
}

extern "C" hsort_status rung_7_onesweep(struct cuda_engine *engine, struct rung_job *job)
{
    if (job->key_bytes == 4)
        return job->value_bytes == 0 ? sort_onesweep<uint32_t, no_value>(engine, job)
                                     : sort_onesweep<uint32_t, uint32_t>(engine, job);
    switch (job->value_bytes) {
    case 0:
        return sort_onesweep<uint64_t, no_value>(engine, job);
    case 4:
        return sort_onesweep<uint64_t, uint32_t>(engine, job);
    default:
        return sort_onesweep<uint64_t, uint64_t>(engine, job);
    }
}
