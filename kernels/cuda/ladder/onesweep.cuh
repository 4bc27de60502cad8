/* One pass of a stable radix sort, in one sweep over the keys, by a digit of 8 bits.
 *
 * A pass must know where the keys of each digit value go: behind all smaller digits, which a kernel before it has
 * counted, and behind the equal digits of earlier tiles. The latter are counted while the pass runs, by looking back
 * at what earlier tiles have published: kernels/README.md, "A look-back".
 *
 * The keys of a tile go to their places in shared memory (radix_tile.cuh) and from there to global memory, where the runs of
 * equal digits are long enough to be stored coalesced. Values follow by the same two steps.
 *
 * Source: Adinets, Merrill, "Onesweep: A faster least significant digit radix sort for GPUs", 2022. */
#ifndef ONESWEEP_CUH
#define ONESWEEP_CUH

#include "kernels/cuda/ladder/radix_tile.cuh"
#include "kernels/cuda/msd/coding.cuh"
#include "kernels/cuda/msd/launch.cuh"

enum {
    ONESWEEP_PASSES = 8, /* at most */
    BIN_ALIGNMENT = 256
};

/* ---- what a sort works on ------------------------------------------------------------------------------ */

/* Keys and values [count] each; values NULL without values. */
template <typename K, typename V>
struct onesweep_elements {
    K *keys;
    V *values; /* NULL in `from`: the first pass makes positions instead */
};

/* What passes tell each other, and what the tiles of a pass tell each other. All zero before the sort. */
struct onesweep_tables {
    uint64_t ones, zeroes; /* bits that are set in some key; bits that are clear in some key */
    uint32_t tickets[ONESWEEP_PASSES]; /* tiles that each pass has begun */
    uint64_t bins[ONESWEEP_PASSES][BINS]; /* [digit][bin]: keys with this digit */
    alignas(BIN_ALIGNMENT) uint64_t words[1][BINS]; /* of tiles, then of the cohorts of each pass: look_back.cuh */
};

template <typename K, typename V>
struct onesweep_sort {
    struct onesweep_elements<K, V> from;       /* not changed, unless it is one of the others */
    struct onesweep_elements<K, V> out, spare; /* the result is in out */
    int64_t *positions;                        /* [count] or NULL: values end here instead, with 8 bytes each */
    int64_t count;
    struct coding coding; /* of keys in `from`, and in out */
    struct onesweep_tables *tables;
    int64_t tiles, cohorts; /* without cohorts, look_back.cuh goes by tiles alone */
};

/* What pass `number` publishes. */
template <typename K, typename V>
static __device__ struct look_back_words words_of_pass(const struct onesweep_sort<K, V> &sort, int number)
{
    uint64_t(*const tiles)[BINS] = sort.tables->words;
    return {tiles, sort.cohorts > 0 ? tiles + sort.tiles + number * sort.cohorts : NULL};
}

/* Keys of a thread in the largest tiles. */
template <typename K, typename V>
static __host__ __device__ constexpr int onesweep_keys()
{
    if (has_value<V> && sizeof(V) > sizeof(K))
        return ONESWEEP_KEYS_4_WIDE;
    return by_width<K>(has_value<V> ? ONESWEEP_KEYS_4_PAIRS : ONESWEEP_KEYS_4, ONESWEEP_KEYS_8);
}

/* ---- a tile -------------------------------------------------------------------------------------------- */

/* Store keys from their places in the tile to their bins' destinations: runs of equal digits, each coalesced.
 * Leave their bins in `bins`, by which the values follow. AT_ONCE: keys whose loads may be on their way together. Beside what
 * values need, the loads of all keys at once would take more registers than there are. */
template <int AT_ONCE, typename K, int KEYS, typename D>
static __device__ void store_tile_keys(const struct coding &coding, const K *places, int valid, const D &digit,
                                       const int64_t *destinations, K *__restrict__ to, packed<KEYS, 4> &bins)
{
    const K *own = places + spread_place(threadIdx.x);
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int place = threadIdx.x + k * ONESWEEP_THREADS;
        const K key = own[k * spread_place(ONESWEEP_THREADS)];
        const uint32_t bin = digit(key);
        bins.set(k, bin);
        if (valid == ONESWEEP_THREADS * KEYS || place < valid)
            to[destinations[bin] + place] = stored_key(coding, key);
        if (k % AT_ONCE == AT_ONCE - 1) // the compiler moves no load across this
            asm volatile("" ::: "memory");
    }
}

/* Move a tile's values as its keys have been moved: to their slots in places [spread_place(TILE)], which the keys
 * have left, and on from there by the keys' bins. from [all], or NULL: the values are positions. first: the tile's first
 * position. They go to `wide` instead of `to`, if it is not NULL. */
template <typename V, int KEYS>
static __device__ void move_values(const V *from, int64_t first, int valid, const packed<KEYS, 2> &slots,
                                   const packed<KEYS, 4> &bins, const int64_t *destinations, V *places, V *to,
                                   int64_t *wide)
{
    V values[KEYS];
    if (from) {
        load_rows(from + first, valid, values);
    } else {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            values[k] = (V)(first + first_of_thread<KEYS>() + k * GROUP);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        places[slots.get(k)] = values[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int place = threadIdx.x + k * ONESWEEP_THREADS;
        if (valid < ONESWEEP_THREADS * KEYS && place >= valid)
            continue;
        const V value = places[spread_place(threadIdx.x) + k * spread_place(ONESWEEP_THREADS)];
        if (sizeof(V) < sizeof(int64_t) && wide)
            wide[destinations[bins.get(k)] + place] = (int64_t)value;
        else
            to[destinations[bins.get(k)] + place] = value;
    }
}

/* ---- a pass -------------------------------------------------------------------------------------------- */

/* What a pass does. */
struct onesweep_pass {
    uint32_t digit; /* from the lowest one */
    bool runs, is_first, is_last, to_out;
};

/* Tell the compiler that an address chosen at run time is in global memory. It does not see that, and would ask at each access. */
template <typename T>
static __device__ T *in_global_memory(T *address)
{
    return (T *)__cvta_global_to_generic(__cvta_generic_to_global(address));
}

template <typename K, typename V>
static __device__ struct onesweep_elements<K, V> pass_from(const struct onesweep_sort<K, V> &sort,
                                                           const struct onesweep_pass &pass)
{
    const struct onesweep_elements<K, V> &from = pass.is_first ? sort.from : pass.to_out ? sort.spare : sort.out;
    return {in_global_memory(from.keys), in_global_memory(from.values)};
}

template <typename K, typename V>
static __device__ struct onesweep_elements<K, V> pass_to(const struct onesweep_sort<K, V> &sort,
                                                         const struct onesweep_pass &pass)
{
    const struct onesweep_elements<K, V> &to = pass.to_out ? sort.out : sort.spare;
    return {in_global_memory(to.keys), in_global_memory(to.values)};
}

/* Which digits have a pass, a bit each. Elements go back and forth between out and spare and end in out. If the first
 * pass would then write to what it reads, one more pass puts that right, by a digit that is the same in all keys. And
 * at least one pass is needed unless out holds the result already.
 *
 *     digits     passes, `from` elsewhere             `from` is out
 *     1          from -> out                          from -> spare -> out
 *     2          from -> spare -> out                 the same
 *     3          from -> out -> spare -> out          from -> spare -> out -> spare -> out */
template <typename K, typename V>
static __device__ uint32_t choose_digits(const struct onesweep_sort<K, V> &sort)
{
    const uint64_t varying = __ldcg(&sort.tables->ones) & __ldcg(&sort.tables->zeroes);
    const bool stays = sort.from.keys == sort.out.keys && sort.from.values == sort.out.values &&
                       sort.coding.encodes == sort.coding.decodes;
    uint32_t digits = 0;
    for (int i = 0; i < (int)sizeof(K); i++)
        digits |= (varying >> i * DIGIT_BITS & (BINS - 1)) != 0 ? 1u << i : 0;
    if (digits == 0 && !stays)
        digits = 1;
    const struct onesweep_elements<K, V> &to = __popc(digits) % 2 == 1 ? sort.out : sort.spare;
    if (digits != 0 && (sort.from.keys == to.keys || (has_value<V> && sort.from.values == to.values)))
        digits |= digits + 1; // the lowest bit that is not set
    return digits;
}

/* Plan pass `number`, counted from 0. It does not run if all passes are done before it. */
template <typename K, typename V>
static __device__ struct onesweep_pass plan_pass(const struct onesweep_sort<K, V> &sort, int number)
{
    uint32_t digits = choose_digits(sort);
    const int passes = __popc(digits);
    struct onesweep_pass pass = {};
    pass.runs = number < passes;
    for (int i = 0; i < number; i++)
        digits &= digits - 1;
    pass.digit = (uint32_t)__ffs((int)digits) - 1;
    pass.to_out = (passes - number) % 2 == 1;
    pass.is_first = number == 0;
    pass.is_last = number == passes - 1;
    return pass;
}

/* The digit that begins at bit `shift` of a key. */
template <typename K>
struct key_digit {
    uint32_t shift;

    __device__ uint32_t operator()(K key) const
    {
        if (sizeof(K) == 4) // one instruction; the mask only tells the compiler that it is a digit
            return __byte_perm((uint32_t)key, 0, 0x4440 + shift / DIGIT_BITS) & (BINS - 1);
        return (uint32_t)(key >> shift) & (BINS - 1);
    }
};

/* Load a tile's keys, as codes. */
template <typename K, int KEYS>
static __device__ void load_codes(const struct coding &coding, const K *tile, int valid, K (&codes)[KEYS])
{
    load_rows(tile, valid, codes);
    if (!coding.encodes)
        return;
    encode_loaded(coding, codes);
    const int first = first_of_thread<KEYS>();
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        codes[k] = first + k * GROUP < valid ? codes[k] : filling<K>;
}

/* Shared memory for a tile: the groups' tables, then keys, then values. */
template <typename K, typename V, int KEYS>
static __host__ __device__ constexpr size_t tile_bytes()
{
    constexpr size_t wider = has_value<V> && sizeof(V) > sizeof(K) ? sizeof(V) : sizeof(K);
    constexpr size_t keys_bytes = spread_place(ONESWEEP_THREADS * KEYS) * wider;
    constexpr size_t groups_bytes = GROUPS * TABLE * sizeof(uint32_t);
    return keys_bytes > groups_bytes ? keys_bytes : groups_bytes;
}

/* Where a bin begins, in the tile and among all keys, is two sums in one word: the tile's in the lowest bits. */
enum { TILE_BITS = 16 };

/* What a block works on, in shared memory. It is read anew behind each barrier, which leaves registers free for keys. */
template <typename K>
struct onesweep_block {
    struct onesweep_pass pass;
    uint32_t tile;
    int valid;                  /* keys of the tile */
    int64_t destinations[BINS]; /* where a bin's keys go, minus their place in the tile */

    __device__ key_digit<K> digit() const
    {
        return {pass.digit * DIGIT_BITS};
    }
};

/* Move the keys of one tile, and their values, to where the digit wants them. */
template <typename K, typename V, int KEYS>
static __global__ void __launch_bounds__(ONESWEEP_THREADS, ONESWEEP_BLOCKS)
    onesweep_kernel(const __grid_constant__ struct onesweep_sort<K, V> sort, int number)
{
    constexpr int TILE = ONESWEEP_THREADS * KEYS;
    static_assert(TILE < 1 << TILE_BITS, "a sum over the bins of a tile");
    static_assert(tile_bytes<K, V, KEYS>() + sizeof(struct onesweep_block<K>) + BINS / WARP * sizeof(uint64_t) <= 64 << 10,
                  "what a block of any supported device can have");
    extern __shared__ uint64_t shared[];                         // [tile_bytes()]
    uint32_t(*group_tables)[TABLE] = (uint32_t(*)[TABLE])shared; // [GROUPS]
    K *places = (K *)shared;                                     // [spread_place(TILE)]
    __shared__ struct onesweep_block<K> block;
    const struct look_back_words words = words_of_pass(sort, number);
    const int bin = threadIdx.x; // of the threads below BINS

    // 1. take a tile, by ticket and not by block number, because blocks may not start in order. The counts are there before the
    // second pass can be sent, because the first pass has waited for them. So later passes read them first, and then wait for the
    // pass before
    if (number == 0)
        wait_for_kernels_before();
    if (threadIdx.x == 0) {
        block.tile = atomicAdd(&sort.tables->tickets[number], 1u);
        block.pass = plan_pass(sort, number);
        block.valid = (int)min((int64_t)TILE, sort.count - (int64_t)block.tile * TILE);
    }
    __syncthreads();
    if (bin < BINS && block.pass.runs)
        block.destinations[bin] = (int64_t)__ldcg(&sort.tables->bins[block.pass.digit][bin]);
    if (number > 0)
        wait_for_kernels_before();
    if (!block.pass.runs)
        return;

    // 2. load
    K keys[KEYS];
    load_codes({sort.coding.map, number == 0 && sort.coding.encodes, false},
               pass_from(sort, block.pass).keys + (int64_t)block.tile * TILE, block.valid, keys);

    // 3. rank; count the tile's bins and publish the counts. In the first pass over bare keys there is no order to keep. For
    // 8-byte keys, making use of that gains nothing and takes registers
    packed<KEYS, 2> ranks;
    const key_digit<K> digit = block.digit();
    const bool may_mix = sizeof(K) == 4 && !has_value<V> && number == 0 && block.valid == TILE;
    const bool is_mixed = tile_rank([&](int k) { return digit(keys[k]); }, may_mix, group_tables, ranks);
    __syncthreads();
    uint32_t own = 0;
    if (bin < BINS) {
        own = is_mixed ? group_tables[0][word_of_bin(bin)] : sum_groups(group_tables, bin);
        if (bin == BINS - 1)
            own -= TILE - block.valid;
        publish_own(words, bin, block.tile, number, own);
    }

    // 4. places in the tile
    const uint64_t of_all = bin < BINS ? (uint64_t)block.destinations[bin] : 0; // each thread reads what it has written
    const uint64_t firsts = sum_of_bins_before(of_all << TILE_BITS | own);
    const uint32_t first = (uint32_t)firsts & ((1u << TILE_BITS) - 1);
    if (bin < BINS) {
        block.destinations[bin] = (int64_t)(firsts >> TILE_BITS) - first;
        if (is_mixed)
            group_tables[0][word_of_bin(bin)] = first;
        else
            scan_groups(group_tables, bin, first);
    }
    __syncthreads();
    const uint32_t *table = group_tables[is_mixed ? 0 : threadIdx.x / GROUP];
    const key_digit<K> same_digit = block.digit(); // making digits again is cheaper than keeping them
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        ranks.add(k, table[word_of_bin(same_digit(keys[k]))]);
    ranks.add_quotients(LOG_WARP); // spread_place() of each
    __syncthreads();               // the keys take the tables' memory
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        places[ranks.get(k)] = keys[k];

    // 5. places among all keys; by now earlier tiles have had time to publish
    if (bin < BINS)
        block.destinations[bin] += look_back(words, bin, block.tile, number, own);
    __syncthreads();

    // 6. store; the values by way of the same places
    packed<KEYS, 4> bins;
    store_tile_keys<has_value<V> ? ONESWEEP_LOADS_AT_ONCE : KEYS>({sort.coding.map, false, block.pass.is_last && sort.coding.decodes}, places,
                                              block.valid, block.digit(), block.destinations,
                                              pass_to(sort, block.pass).keys, bins);
    if constexpr (has_value<V>)
        move_values(pass_from(sort, block.pass).values, (int64_t)block.tile * TILE, block.valid, ranks, bins,
                    block.destinations, (V *)shared, pass_to(sort, block.pass).values,
                    block.pass.is_last ? in_global_memory(sort.positions) : NULL);
}

#endif
