/* How the keys of a tile find their places in the order of their digits of 8 bits, with equal digits in the order they came in. A
 * pass of rung 7 (onesweep.cuh) and the levels that keep the order (kernels/cuda/msd/ordered.cuh) share this.
 *
 * Here with 2 groups x 2 rows of 4 lanes (real groups have 16 lanes) and digits a to c:
 *
 *     keys, in order        c a c b | a a c c     b c a c | c b b a
 *     rank in its group     0 0 1 0 | 1 2 2 3     0 0 0 1 | 2 1 2 1
 *     keys of each group    a 3  b 1  c 4         a 2  b 3  c 3
 *     first place           a 0  b 5  c 9         a 3  b 6  c 13        scan over digits, then groups
 *     place in the tile     9 0 10 5 | 1 2 11 12  6 13 3 14 | 15 7 8 4
 *
 * How the first row finds its ranks. Each digit has a word of shared memory with the count so far, and a bit for
 * each lane, lane 0 at the right:
 *
 *     before the row        a 0 ....   b 0 ....   c 0 ....
 *     each sets its bit     a 0 ..1.   b 0 1...   c 0 .1.1
 *     each reads its word   rank = the count + the bits to the right of its own:    c 0  a 0  c 1  b 0
 *     the last one writes   a 1 ....   b 1 ....   c 2 ....
 *
 * The last tile may have fewer keys. It is filled up with keys of the largest digit. These are last in the order of the
 * tile, and so stay where they are; only the count of their digit is too large.
 *
 * Source: Adinets, Merrill, "Onesweep: A faster least significant digit radix sort for GPUs", 2022. */
#ifndef RADIX_TILE_CUH
#define RADIX_TILE_CUH

#include "kernels/cuda/engine/block.cuh"
#include "kernels/cuda/ladder/bitonic.cuh"
#include "kernels/cuda/ladder/look_back.cuh"
#include "kernels/cuda/ladder/tuning.h"

enum {
    GROUP = WARP / 2, /* lanes that rank their keys together */
    GROUPS = ONESWEEP_THREADS / GROUP,
    COUNT_SHIFT = 16,     /* a group's word for a bin: its count, above a bit per lane */
    TABLE = BINS + GROUP, /* words from one group's table to the next: other banks for the same bin, and room for its gaps */
    FEW_DIGITS = 8,       /* of a row, up to which a match finds equal ones */
    MOST_PEERS = 6,       /* lanes of a row that may set their bits in one word; if more would, they vote */
    LOG_WARP = 5          /* log2 of WARP, the number of places after which spread_place() leaves one out */
};

static_assert((int)ONESWEEP_THREADS >= (int)BINS, "a thread for each bin");
static_assert(ONESWEEP_THREADS <= 1024 && ONESWEEP_THREADS % WARP == 0, "a block of whole warps");

/* Where the word of a bin lies in a table. Digits may have low bits in common, such as those of multiples of 16. Without gaps,
 * their words would lie in one or two banks. */
static __device__ int word_of_bin(uint32_t bin)
{
    return spread_place((int)bin);
}

static_assert(spread_place(BINS - 1) < TABLE, "a word for each bin");

/* ---- ranks --------------------------------------------------------------------------------------------- */

/* N numbers, PARTS of them in a register. set() is to be called from the first to the last. For unrolled loops, in
 * which k is a constant. */
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
    /* Add to each number its quotient by 2^log. */
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

/* How the lanes of a row find the lanes with the same digit. */
enum peer_search {
    BY_BITS,  /* in the word of their bin, where each sets its bit */
    BY_VOTE,  /* the same, except for one digit that many lanes have: a ballot finds these */
    BY_MATCH, /* by a match, which takes longer the more digits there are */
    BY_ORDER  /* all of the warp's keys have one digit: no lane looks */
};

/* The way to search, for a warp. `common` is the digit to vote on. */
struct search_choice {
    enum peer_search way;
    uint32_t common;
};

/* Choose by a warp's first row. Lanes that set bits in the same word wait for each other, so they must not be
 * many. The other rows are taken to be like the first one. An input for which that is wrong is sorted too, only
 * not as fast. All rows are asked only if the first one has a single digit. */
template <int KEYS, typename BIN_OF>
static __device__ struct search_choice choose_search(const BIN_OF &bin_of)
{
    const uint32_t bin = bin_of(0);
    const uint32_t peers = __match_any_sync(ALL_LANES, bin);
    const bool is_last = peers >> threadIdx.x % WARP == 1;
    const uint32_t of_many = __ballot_sync(ALL_LANES, __popc(peers) > MOST_PEERS);
    const int digits = __popc(__ballot_sync(ALL_LANES, is_last));
    if (digits == 1) {
        bool alike = true;
#pragma unroll
        for (int k = 1; k < KEYS; k++)
            alike &= bin_of(k) == bin;
        if (__all_sync(ALL_LANES, alike))
            return {BY_ORDER, bin};
    }
    if (digits <= FEW_DIGITS)
        return {BY_MATCH, 0};
    if (of_many == 0)
        return {BY_BITS, 0};
    return {BY_VOTE, __shfl_sync(ALL_LANES, bin, __ffs((int)of_many) - 1)};
}

/* Rank each key among the keys of its group with the same digit, in the order row by row, lane by lane. Leave
 * the group's counts in table [TABLE], above COUNT_SHIFT. The table is clear before. bin_of(k): the digit of
 * this thread's key k.
 *
 * The lanes of a row find each other in the word of their bin: each sets its bit there, and then sees which other
 * lanes have done the same. A ballot on each bit of the digit finds them too, with three times the instructions. A
 * group has 16 lanes, because then the count so far fits into the same word and is read and written together with
 * the bits. */
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
        uint32_t *word = &table[word_of_bin(bin)];
        uint32_t peers = 0;
        if (WAY == BY_MATCH)
            peers = __match_any_sync(ALL_LANES, bin) >> group_shift & ((1u << COUNT_SHIFT) - 1);
        if (WAY == BY_VOTE)
            peers = __ballot_sync(ALL_LANES, bin == common) >> group_shift & ((1u << COUNT_SHIFT) - 1);
        if (WAY == BY_VOTE && bin != common)
            peers = 0;
        if (WAY == BY_BITS || (WAY == BY_VOTE && bin != common))
            atomicOr(word, bit);
        __syncwarp(); // every lane has set its bit
        peers |= *word;
        const uint32_t rank = (peers >> COUNT_SHIFT) + __popc(peers & earlier);
        ranks.set(k, rank);
        __syncwarp(); // and has seen the bits of the others
        if ((peers & later) == 0)
            *word = (rank + 1) << COUNT_SHIFT; // the last of its peers; clears the bits
        __syncwarp();                          // before the next row sets them
    }
}

/* The same for keys that all have digit `bin`. */
template <int KEYS>
static __device__ void group_rank_in_order(uint32_t bin, uint32_t *table, packed<KEYS, 2> &ranks)
{
    const int lane = threadIdx.x % GROUP;
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        ranks.set(k, (uint32_t)(k * GROUP + lane));
    __syncwarp(); // the table is clear
    if (lane == 0)
        table[word_of_bin(bin)] = (uint32_t)(KEYS * GROUP) << COUNT_SHIFT;
}

/* Rank each key among the keys of the block with the same digit, in no particular order. Leave the counts in
 * table [TABLE]. */
template <int KEYS, typename BIN_OF>
static __device__ void block_rank(const BIN_OF &bin_of, uint32_t *table, packed<KEYS, 2> &ranks)
{
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        ranks.set(k, atomicAdd(&table[word_of_bin(bin_of(k))], 1u));
}

/* Rank a tile's keys in their groups; or, if they `may_mix` and so lose their order, all in group_tables[0],
 * which is quicker unless many keys meet in one counter. Return whether the latter was done. */
template <int KEYS, typename BIN_OF>
static __device__ bool tile_rank(const BIN_OF &bin_of, bool may_mix, uint32_t (*group_tables)[TABLE],
                                 packed<KEYS, 2> &ranks)
{
    uint32_t *table = group_tables[threadIdx.x / GROUP];
    for (int word = threadIdx.x % GROUP; word < TABLE; word += GROUP)
        table[word] = 0;
    const struct search_choice choice = choose_search<KEYS>(bin_of);
    if (may_mix && !__syncthreads_or(choice.way != BY_BITS)) {
        block_rank(bin_of, group_tables[0], ranks);
        return true;
    }
    if (choice.way == BY_ORDER)
        group_rank_in_order(choice.common, table, ranks);
    else if (choice.way == BY_MATCH)
        group_rank<BY_MATCH>(bin_of, 0, table, ranks);
    else if (choice.way == BY_VOTE)
        group_rank<BY_VOTE>(bin_of, choice.common, table, ranks);
    else
        group_rank<BY_BITS>(bin_of, 0, table, ranks);
    return false;
}

/* ---- a tile -------------------------------------------------------------------------------------------- */

/* What fills up a tile that is not full. */
template <typename T>
static constexpr T filling = (T) ~(T)0;

/* The place of a thread's first element in a tile; its next one is GROUP places behind. A group's elements are
 * contiguous, in rows of 16. */
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

/* ---- counts of the groups ------------------------------------------------------------------------------ */

/* The sum of the values of the threads before this one, for the first BINS threads; undefined in the others. */
template <typename T>
static __device__ T sum_of_bins_before(T value)
{
    T total;
    return block_scan<BINS / WARP, false>(value, &total);
}

/* How many keys all groups have in one bin. */
static __device__ uint32_t sum_groups(const uint32_t (*group_tables)[TABLE], int bin)
{
    uint32_t sum = 0;
#pragma unroll 16 // with all groups at once, registers would be spilled
    for (int group = 0; group < GROUPS; group++)
        sum += group_tables[group][word_of_bin(bin)];
    return sum >> COUNT_SHIFT;
}

/* Turn the groups' counts of one bin into first places in the tile, group by group from `first` on. */
static __device__ void scan_groups(uint32_t (*group_tables)[TABLE], int bin, uint32_t first)
{
#pragma unroll
    for (int group = 0; group < GROUPS; group++) {
        uint32_t *word = &group_tables[group][word_of_bin(bin)];
        const uint32_t of_group = *word >> COUNT_SHIFT;
        *word = first;
        first += of_group;
    }
}

#endif
