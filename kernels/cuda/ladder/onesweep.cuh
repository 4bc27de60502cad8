/* One pass of a stable radix sort, in one sweep over the keys: what rungs 7 and 8 share. Sorts by a digit of
 * 8 bits, which a functor makes of a key.
 *
 * A pass must know where the keys of each digit value go: behind all smaller digits, which whoever calls has
 * counted, and behind the equal digits of earlier tiles. Those are found while the pass runs, by looking back
 * at what earlier tiles have published: kernels/README.md, "A look-back".
 *
 * Inside a tile, here 2 groups x 2 rows of 4 lanes (in truth groups of 16 lanes), digits a to c:
 *
 *     keys, in order        c a c b | a a c c     b c a c | c b b a
 *     rank in its group     0 0 1 0 | 1 2 2 3     0 0 0 1 | 2 1 2 1
 *     keys of each group    a 3  b 1  c 4         a 2  b 3  c 3
 *     first place           a 0  b 5  c 9         a 3  b 6  c 13        scan over digits, then groups
 *     place in the tile     9 0 10 5 | 1 2 11 12  6 13 3 14 | 15 7 8 4
 *
 * How the first row finds its ranks. A word of shared memory for each digit: the count so far, and a bit for
 * each lane, lane 0 at the right:
 *
 *     before the row        a 0 ....   b 0 ....   c 0 ....
 *     each sets its bit     a 0 ..1.   b 0 1...   c 0 .1.1
 *     each reads its word   rank = the count + the bits to the right of its own:    c 0  a 0  c 1  b 0
 *     the last one writes   a 1 ....   b 1 ....   c 2 ....
 *
 * The keys go to their places in shared memory and from there to global memory, where the runs of equal
 * digits are long enough to be stored coalesced. Values follow by the same two steps.
 *
 * The last tile may have fewer keys. It is filled up with keys x, all of one digit, here b, and last in the
 * order of the tile: so the ranks of the others are right. Only the count of the digit is too large; when
 * that is put right, so are all places, but those of the x, which stay where they stand:
 *
 *     keys, in order        c a c b | a a c c     b c x x | x x x x
 *     keys of each digit    a 3  b 8 - 6  c 5
 *     first place           a 0  b 3  c 5         a 3  b 4  c 9
 *     place in the tile     5 0 6 3 | 1 2 7 8     4 9 10 11 | 12 13 14 15
 *
 * An x of the largest digit would find these places by itself. But not every functor gives some key that
 * digit, and to give it to what is no key, each place that takes a digit would have to ask which is which.
 *
 * Source: Adinets, Merrill, "Onesweep: A faster least significant digit radix sort for GPUs", 2022. */
#ifndef ONESWEEP_CUH
#define ONESWEEP_CUH

#include "kernels/cuda/engine/scan.cuh"
#include "kernels/cuda/ladder/bitonic.cuh"
#include "kernels/cuda/ladder/look_back.cuh"
#include "kernels/cuda/ladder/tuning.h"

enum {
    GROUP = WARP / 2, /* lanes that rank their keys together */
    GROUPS = ONESWEEP_THREADS / GROUP,
    COUNT_SHIFT = 16,     /* a group's word for a bin: its count, above a bit per lane */
    TABLE = BINS + GROUP, /* words from one group's table to the next: other banks for the same bin */
    FEW_DIGITS = 8,       /* of a row, to be found by a match */
    MOST_PEERS = 6,       /* lanes of a row that may set their bits in one word; if more would, they vote */
    LOG_WARP = 5,         /* of WARP, the places after which spread_place() leaves one out */
    ONESWEEP_PASSES = 8,  /* at most, on one workspace */
    BIN_ALIGNMENT = 256
};

static_assert((int)ONESWEEP_THREADS >= (int)BINS, "a thread for each bin");
static_assert(ONESWEEP_THREADS <= 1024 && ONESWEEP_THREADS % WARP == 0, "a block of whole warps");

/* ---- what a pass gets ---------------------------------------------------------------------------------- */

/* The digit to sort by is a functor D, which the kernel gets by value:
 *
 *     static constexpr int SHARED_WORDS       words of shared memory that it wants in each block; may be 0
 *     void prepare(uint32_t *words)           fill words [SHARED_WORDS], aligned to 8 bytes, and keep the address.
 *                                             Every thread of a block calls it once, for a functor of its own, and
 *                                             passes a barrier before it asks for a digit
 *     uint32_t operator()(K key) const        the digit, below BINS; of every key, also of one that the input does
 *                                             not have
 *     D again() const                         the same functor, for the digits of the same keys a second time. If to
 *                                             make them again is cheap, it hides from the compiler that they are the
 *                                             same, which else would keep them in registers; if not, it is *this */

/* What tiles publish for each other. All zero before the first of the passes that share it. */
struct onesweep_workspace {
    /* [pass]: tiles begun */
    uint32_t tickets[ONESWEEP_PASSES];
    /* [tile][bin], as many tiles as there are: see publish_count() */
    alignas(BIN_ALIGNMENT) uint64_t descriptors[1][BINS];
};

/* What a pass works on: [count] each; values NULL without values. */
template <typename K, typename V, typename D>
struct pass {
    const K *from;
    K *to;
    const V *from_values;
    V *to_values;
    int64_t count;
    D digit;                      /* to sort by */
    const uint64_t *first_places; /* [BINS] of each digit: elements with a smaller one */
    struct onesweep_workspace *workspace;
    int number;   /* below ONESWEEP_PASSES, and another for every pass on the same workspace */
    bool may_mix; /* keys alone, and those of equal digits need not stay in their order */
};

/* Keys of a tile. */
template <typename K, typename V>
static __host__ __device__ constexpr int tile_size()
{
    return ONESWEEP_THREADS *
           by_width<K>(has_value<V> ? ONESWEEP_KEYS_4_PAIRS : ONESWEEP_KEYS_4, ONESWEEP_KEYS_8);
}

template <typename K, typename V>
static int64_t onesweep_tiles(int64_t count)
{
    return divide_up(count, tile_size<K, V>());
}

static inline size_t onesweep_workspace_bytes(int64_t tiles)
{
    return offsetof(struct onesweep_workspace, descriptors) + (size_t)tiles * sizeof(uint64_t[BINS]);
}

/* ---- ranks --------------------------------------------------------------------------------------------- */

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
    __device__ void replace(int k, uint32_t number)
    {
        words[k / PARTS] += (number - get(k)) << k % PARTS * BITS;
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
 * many. The other rows are taken to be like the first one: an input that is not so is sorted as well, only
 * not as fast. */
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
 * leaves the group's counts in table [BINS], above COUNT_SHIFT. The table is clear before. bin_of(k): the digit of
 * this thread's key k.
 *
 * The lanes of a row find each other in the word of their bin: each sets its bit there, and then sees who has
 * done the same. A ballot on each bit of the digit finds them too, with three times the instructions. Groups
 * of 16, because then the count so far fits into the same word: it is read and written together with the
 * bits. */
template <enum peer_search WAY, int KEYS, typename BIN_OF>
static __device__ void group_rank(const BIN_OF &bin_of, uint32_t common, uint32_t *table,
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
        const uint32_t bin = bin_of(k);
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
template <int KEYS, typename BIN_OF>
static __device__ void block_rank(const BIN_OF &bin_of, uint32_t *table, packed<KEYS, 2> &ranks)
{
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        ranks.set(k, atomicAdd(&table[bin_of(k)], 1u));
}

/* Rank a tile's keys in their groups; or, if they `may_mix` and so lose their order, all in group_tables[0],
 * which is quicker unless many meet in one counter. Is that what was done? */
template <int KEYS, typename BIN_OF>
static __device__ bool tile_rank(const BIN_OF &bin_of, bool may_mix, uint32_t (*group_tables)[TABLE],
                                 packed<KEYS, 2> &ranks)
{
    uint32_t *table = group_tables[threadIdx.x / GROUP];
    for (int bin = threadIdx.x % GROUP; bin < BINS; bin += GROUP)
        table[bin] = 0;
    const struct search_choice choice = choose_search(bin_of(0));
    if (may_mix && !__syncthreads_or(choice.way != BY_BITS)) {
        block_rank(bin_of, group_tables[0], ranks);
        return true;
    }
    if (choice.way == BY_MATCH)
        group_rank<BY_MATCH>(bin_of, 0, table, ranks);
    else if (choice.way == BY_VOTE)
        group_rank<BY_VOTE>(bin_of, choice.common, table, ranks);
    else
        group_rank<BY_BITS>(bin_of, 0, table, ranks);
    return false;
}

/* ---- a tile -------------------------------------------------------------------------------------------- */

/* Where the element at `place` of a tile lies in shared memory: one in 32 places is left out. Keys that
 * differ by powers of two may have few bins, all of one size, and without the gaps a row of them would meet
 * in one bank. */
static __host__ __device__ constexpr int spread_place(int place)
{
    return place + place / WARP;
}

/* What fills up a tile that is not full: x in the picture. */
template <typename T>
static constexpr T filling = (T) ~(T)0;

/* A thread's first element in a tile: a group's are contiguous, in rows of 16. The next one is GROUP behind
 * it. */
template <int KEYS>
static __device__ int first_of_thread()
{
    return threadIdx.x / GROUP * GROUP * KEYS + threadIdx.x % GROUP;
}

/* Load a tile's keys or values, `valid` of them. A full tile needs no comparisons. */
template <typename T, int KEYS>
static __device__ void load_rows(const T *__restrict__ tile, int valid, T (&loaded)[KEYS])
{
    const int first = first_of_thread<KEYS>();
    if (valid == ONESWEEP_THREADS * KEYS) {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            loaded[k] = tile[first + k * GROUP];
    } else {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            loaded[k] = first + k * GROUP < valid ? tile[first + k * GROUP] : filling<T>;
    }
}

/* Of a tile that is not full: what fills it up, behind the `valid` elements, has the place where it stands.
 * */
template <int KEYS>
static __device__ void keep_filling(int valid, packed<KEYS, 2> &places)
{
    const int first = first_of_thread<KEYS>();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (first + k * GROUP >= valid)
            places.replace(k, first + k * GROUP);
    }
}

/* Store keys from their places in the tile to their bins' destinations: runs of equal digits, each coalesced.
 * Leaves their bins, by which the values follow. */
template <typename K, int KEYS, typename D>
static __device__ void store_tile_keys(const K *places, int valid, const D &digit, const int64_t *destinations,
                                  K *__restrict__ to, packed<KEYS, 4> &bins)
{
    const K *own = places + spread_place(threadIdx.x);
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int place = threadIdx.x + k * ONESWEEP_THREADS;
        const K key = own[k * spread_place(ONESWEEP_THREADS)];
        const uint32_t bin = digit(key);
        bins.set(k, bin);
        if (valid == ONESWEEP_THREADS * KEYS || place < valid)
            to[destinations[bin] + place] = key;
    }
}

/* Move a tile's values as its keys have been: to their slots in places [spread_place(TILE)], which the keys
 * have left, and on from there by the bins of those. */
template <typename V, int KEYS>
static __device__ void move_values(const V *__restrict__ tile, int valid, const packed<KEYS, 2> &slots,
                                   const packed<KEYS, 4> &bins, const int64_t *destinations, V *places,
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
            to[destinations[bins.get(k)] + place] = places[spread_place(threadIdx.x) + k * spread_place(ONESWEEP_THREADS)];
    }
}

/* The sum of the values of the threads before this one, among the first BINS; undefined in the others. */
template <typename T>
static __device__ T sum_of_bins_before(T value)
{
    T total;
    return block_scan<BINS / WARP, false>(value, &total);
}

/* Keys of one bin in all groups. */
static __device__ uint32_t sum_groups(const uint32_t (*group_tables)[TABLE], int bin)
{
    uint32_t sum = 0;
#pragma unroll 16 // of all at once, registers would be spilled
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

/* ---- a pass -------------------------------------------------------------------------------------------- */

/* Shared memory for a tile: the groups' tables, then keys, then values. The functor's words lie behind it. */
template <typename K, typename V>
static __host__ __device__ constexpr size_t tile_bytes()
{
    static_assert(!has_value<V> || sizeof(V) <= sizeof(K), "the values fit where the keys have been");
    constexpr size_t keys_bytes = spread_place(tile_size<K, V>()) * sizeof(K);
    constexpr size_t groups_bytes = GROUPS * TABLE * sizeof(uint32_t);
    return keys_bytes > groups_bytes ? keys_bytes : groups_bytes;
}

/* Move the keys of one tile, and their values, to where the digit wants them. */
template <typename K, typename V, typename D>
static __global__ void __launch_bounds__(ONESWEEP_THREADS, ONESWEEP_BLOCKS)
    onesweep_kernel(const __grid_constant__ struct pass<K, V, D> pass)
{
    constexpr int TILE = tile_size<K, V>();
    constexpr int KEYS = TILE / ONESWEEP_THREADS;
    extern __shared__ uint64_t shared[];                         // [tile_bytes()], and the functor's words
    uint32_t(*group_tables)[TABLE] = (uint32_t(*)[TABLE])shared; // [GROUPS]
    K *places = (K *)shared;                                     // [spread_place(TILE)]
    __shared__ int64_t destinations[BINS]; // where a bin's keys go, less their place in the tile
    __shared__ uint32_t ticket;
    uint64_t(*descriptors)[BINS] = pass.workspace->descriptors;
    const int bin = threadIdx.x; // of the threads below BINS

    // 1. take a tile. By ticket, not by block number: nothing says that blocks start in order
    if (threadIdx.x == 0)
        ticket = atomicAdd(&pass.workspace->tickets[pass.number], 1u);
    D digit = pass.digit;
    static_assert(tile_bytes<K, V>() % sizeof(uint64_t) == 0, "what lies behind is aligned");
    digit.prepare((uint32_t *)shared + tile_bytes<K, V>() / sizeof(uint32_t));
    __syncthreads();
    const int64_t tile = ticket;
    const int valid = (int)min((int64_t)TILE, pass.count - tile * TILE);

    // 2. load
    K keys[KEYS];
    load_rows(pass.from + tile * TILE, valid, keys);

    // 3. rank; count the tile's bins and publish the counts. Only 4-byte keys alone are ever mixed: of 8-byte
    // keys that gains nothing, and takes registers
    packed<KEYS, 2> ranks;
    const bool may_mix = sizeof(K) == 4 && !has_value<V> && pass.may_mix && valid == TILE;
    const bool is_mixed = tile_rank([&](int k) { return digit(keys[k]); }, may_mix, group_tables, ranks);
    __syncthreads();
    uint32_t own = 0;
    if (bin < BINS) {
        own = is_mixed ? group_tables[0][bin] : sum_groups(group_tables, bin);
        if (valid < TILE && bin == (int)digit(filling<K>))
            own -= TILE - valid;
        stall(tile, STATE_OWN);
        publish_count(&descriptors[tile][bin], pass.number, tile == 0 ? STATE_SUM : STATE_OWN, own);
    }

    // 4. places in the tile
    const uint32_t first = sum_of_bins_before(own);
    if (bin < BINS) {
        if (is_mixed)
            group_tables[0][bin] = first;
        else
            scan_groups(group_tables, bin, first);
    }
    __syncthreads();
    const uint32_t *table = group_tables[is_mixed ? 0 : threadIdx.x / GROUP];
    const D same_digit = digit.again();
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        ranks.add(k, table[same_digit(keys[k])]);
    if (valid < TILE)
        keep_filling(valid, ranks);
    ranks.add_quotients(LOG_WARP); // spread_place() of each
    __syncthreads();               // the keys take the tables' memory
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        places[ranks.get(k)] = keys[k];

    // 5. places among all keys; by now earlier tiles have had time to publish
    if (bin < BINS) {
        const int64_t before = look_back(descriptors, bin, tile, pass.number, own);
        destinations[bin] = (int64_t)pass.first_places[bin] + before - first;
    }
    __syncthreads();

    // 6. store; the values by way of the same places
    packed<KEYS, 4> bins;
    store_tile_keys(places, valid, digit, destinations, pass.to, bins);
    if constexpr (has_value<V>)
        move_values(pass.from_values + tile * TILE, valid, ranks, bins, destinations, (V *)shared, pass.to_values);
}

/* Queue a pass on STREAM_WORK. */
template <typename K, typename V, typename D>
static hsort_status onesweep_pass(struct cuda_engine *engine, const struct pass<K, V, D> &pass)
{
    constexpr size_t bytes = tile_bytes<K, V>() + D::SHARED_WORDS * sizeof(uint32_t);
    const unsigned tiles = (unsigned)onesweep_tiles<K, V>(pass.count);
    TRY_CUDA(cudaFuncSetAttribute(onesweep_kernel<K, V, D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)bytes));
    onesweep_kernel<<<tiles, ONESWEEP_THREADS, bytes, engine->streams[STREAM_WORK]>>>(pass);
    TRY_LAUNCH("a onesweep pass");
    return HSORT_OK;
}

#endif
