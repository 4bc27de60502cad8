/* How the keys of a segment are split into buckets: a function from keys to buckets that never falls as keys rise,
 * made from a sample of the segment so that every bucket gets about its share.
 *
 *     linear    the keys are spread evenly: the range of the sample in parts of equal width. A multiplication.
 *     tree      otherwise: every n-th key of the sorted sample is a splitter. The bucket of a key is found in a
 *               search tree, which lies in level order, so that node i has 2 i and 2 i + 1 below it.
 *               If 32 bits of each splitter tell the splitters apart, the tree has only these: half the reads.
 *
 *                   sample       1 2 2 | 4 5 6 | 6 6 6 | 6 8 9           4 buckets
 *                   splitters          4       6       6
 *                   one value    4, 6, 7: a value that fills a bucket gets one of its own, [6, 7)
 *                   tree         6; 4, 7                                 nodes 1; 2, 3
 *                   key 5        node 1: 5 < 6, go to 2. Node 2: 5 >= 4, go to 5. 5 less 4 leaves: bucket 1
 *
 * A bucket of one value needs no further look: its keys are not even moved, only counted, and written anew in the end. So equal keys
 * cost less than others.
 *
 * Rejected A sorted array of splitters: a binary search meets the same bank of shared memory in all lanes, and took
 *          twice as long. A table of cells of the key range, each cut by its share of the sample: one look-up, but keys
 *          that crowd in a cell stay crowded.
 * Source   Sanders, Winkel, "Super scalar sample sort", 2004; Axtmann, Witt, Ferizovic, Sanders, "In-place parallel
 *          super scalar samplesort", 2017 (buckets of equal keys). */
#ifndef SPLIT_CUH
#define SPLIT_CUH

#include "kernels/cuda/msd/block_sort.cuh"
#include "kernels/cuda/msd/launch.cuh"

enum {
    SPLIT_LOG = 10,
    SPLIT_BUCKETS = 1 << SPLIT_LOG, /* of a segment, at most */
    SPLIT_THREADS = 1024,
    SPLIT_DISTANCE_LOG = 24, /* bits of a key that tell where it lies in a linear range */
    SHORT_LOG = 31,          /* the same in a tree */
    SPLIT_GROUP = 8          /* buckets in a row that are judged together */
};

template <typename K>
constexpr int SAMPLE_MAX = sizeof(K) == 16 ? 8192 : 16384; /* keys, of any device */

/* Keys of a thread that go down a short tree together, so that their reads overlap. More would take too many registers. */
template <typename K>
constexpr int SHORT_TREE_KEYS = sizeof(K) == sizeof(uint64_t) ? 8 : 4;

/* What a kernel loads of a split before anything else. */
template <typename K>
struct split_head {
    int32_t is_linear;
    int32_t buckets;
    int32_t levels;             /* of the tree, two at least */
    int32_t is_short;           /* its nodes are distances */
    struct even_parts<K> parts; /* linear, short: how keys become distances */
    K lowest, highest;          /* the same: keys outside count as these */
};

template <typename K>
struct split : split_head<K> {
    K tree[SPLIT_BUCKETS];      /* from node 1 on; short: of 32 bits each, as node_below() takes them */
    K splitters[SPLIT_BUCKETS]; /* ascending; bucket b > 0 begins with splitters[b - 1] */
};

/* ---- the bucket of a key ------------------------------------------------------------------------------- */

/* Keys become distances of 32 bits from the lowest key of a split. */
template <typename K>
struct distances {
    static constexpr int UPPER = 8 * (int)sizeof(K) - 32; /* bits below the upper word of a key */
    even_parts<K> parts;
    K lowest, highest; /* shifted */

    __device__ explicit distances(const struct split_head<K> &split)
        : parts(split.parts), lowest(split.lowest >> split.parts.shift),
          highest(split.highest >> split.parts.shift)
    {
    }
    /* Call use(k, the distance of keys[k]) for all keys. If the upper word of a key says it all, this takes half the instructions. */
    template <int KEYS, typename USE>
    __device__ void of(const K (&keys)[KEYS], const USE &use) const
    {
        if (parts.shift >= UPPER) {
            const uint32_t low = (uint32_t)lowest, high = (uint32_t)highest, shift = parts.shift - UPPER;
#pragma unroll
            for (int k = 0; k < KEYS; k++)
                use(k, min(max((uint32_t)(keys[k] >> UPPER) >> shift, low), high) - parts.low);
        } else {
#pragma unroll
            for (int k = 0; k < KEYS; k++)
                use(k, (uint32_t)smaller_key(larger_key((K)(keys[k] >> parts.shift), lowest), highest) -
                           parts.low);
        }
    }
};

template <typename K>
struct linear_split {
    static constexpr bool IS_CHEAP = true; /* to ask again, rather than to keep the answer */
    distances<K> distance;

    __device__ explicit linear_split(const struct split_head<K> &split) : distance(split)
    {
    }
    template <int KEYS>
    __device__ void operator()(const K (&keys)[KEYS], uint32_t (&buckets)[KEYS]) const
    {
        distance.of(keys, [&](int k, uint32_t far) { buckets[k] = __umulhi(far, distance.parts.scale); });
    }
};

/* The node below: 2 node, or one more if word >= splitter. inverse: 2^32 less the splitter, so that word + inverse then has a carry; 0
 * if there is no splitter. A level takes two instructions and a read; a comparison would take twice as many instructions. */
static __device__ uint32_t node_below(uint32_t node, uint32_t word, uint32_t inverse)
{
    uint32_t below;
    asm("{ .reg .u32 sum; add.cc.u32 sum, %1, %2; addc.u32 %0, %3, %3; }"
        : "=r"(below)
        : "r"(word), "r"(inverse), "r"(node));
    return below;
}

template <typename K>
struct tree_split {
    static constexpr bool IS_CHEAP = false;
    const K *tree; /* in shared memory */
    int levels, buckets;

    /* The nodes of the first two levels are read once for all keys: a read by all lanes takes a turn of shared memory, which is what the
     * search waits for most. */
    template <int KEYS>
    __device__ void operator()(const K (&keys)[KEYS], uint32_t (&found)[KEYS]) const
    {
        const K root = tree[1], left = tree[2], right = tree[3];
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            const bool is_right = root <= keys[k];
            found[k] = (is_right ? 6 : 4) + ((is_right ? right : left) <= keys[k] ? 1 : 0);
        }
#pragma unroll 1
        for (int level = 2; level < levels; level++) { // all keys together, so that their reads overlap
#pragma unroll
            for (int k = 0; k < KEYS; k++)
                found[k] = 2 * found[k] + (tree[found[k]] <= keys[k] ? 1 : 0);
        }
#pragma unroll
        for (int k = 0; k < KEYS; k++) // the largest key goes beyond nodes that do not exist
            found[k] = min(found[k] - (1u << levels), (uint32_t)buckets - 1);
    }
};

template <typename K>
struct short_tree_split {
    static constexpr bool IS_CHEAP = false;
    const uint32_t *tree; /* in shared memory */
    int levels;
    distances<K> distance;

    /* The first two levels are as in tree_split. A key is not below a splitter if its distance is above ~inverse. */
    template <int KEYS>
    __device__ void operator()(const K (&keys)[KEYS], uint32_t (&found)[KEYS]) const
    {
        constexpr int SOME = KEYS < SHORT_TREE_KEYS<K> ? KEYS : SHORT_TREE_KEYS<K>;
        const uint32_t before_root = ~tree[1], left = tree[2], right = tree[3];
        distance.of(keys, [&](int k, uint32_t far) { found[k] = far; });
#pragma unroll
        for (int first = 0; first < KEYS; first += SOME) {
            uint32_t node[SOME];
#pragma unroll
            for (int k = 0; k < SOME && first + k < KEYS; k++) {
                const bool is_right = found[first + k] > before_root;
                node[k] = node_below(is_right ? 3 : 2, found[first + k], is_right ? right : left);
            }
#pragma unroll 1
            for (int level = 2; level < levels; level++) {
#pragma unroll
                for (int k = 0; k < SOME && first + k < KEYS; k++)
                    node[k] = node_below(node[k], found[first + k], tree[node[k]]);
            }
#pragma unroll
            for (int k = 0; k < SOME && first + k < KEYS; k++)
                found[first + k] = node[k] - (1u << levels);
        }
    }
};

/* Call run() with the function that finds the buckets of keys, of whichever kind it is. Every thread of the block calls it.
 *   head         of the split, loaded early
 *   shared_tree  [SPLIT_BUCKETS] in shared memory: there after the next barrier */
template <typename K, typename RUN_IT>
static __device__ void with_split(const struct split_head<K> &head, const K *tree, K *shared_tree,
                                  const RUN_IT &run)
{
    if (head.is_linear)
        return run(linear_split<K>(head));
    if (head.is_short) {
        uint32_t *nodes = (uint32_t *)shared_tree;
        for (int i = threadIdx.x; i < 1 << head.levels; i += blockDim.x)
            nodes[i] = ((const uint32_t *)tree)[i];
        return run(short_tree_split<K>{nodes, head.levels, distances<K>(head)});
    }
    for (int i = threadIdx.x; i < 1 << head.levels; i += blockDim.x)
        shared_tree[i] = tree[i];
    run(tree_split<K>{shared_tree, head.levels, head.buckets});
}

/* Do many lanes have the bucket of lane 0? Whole warps call it. */
static __device__ bool is_hot(uint32_t bucket, bool exists)
{
    const uint32_t first = __shfl_sync(ALL_LANES, bucket, 0);
    return __popc(__ballot_sync(ALL_LANES, exists && bucket == first)) >= SCATTER_HOT_LANES;
}

/* ---- what is known of a bucket ------------------------------------------------------------------------- */

/* The splitters with which a bucket and the next one begin. The first bucket lacks the one and the last bucket the other: any value
 * stands there. */
template <typename K>
struct bucket_ends {
    K begin, next;
};

template <typename K>
static __host__ __device__ bucket_ends<K> ends_of_bucket(const K *splitters, int bucket)
{
    return {splitters[bucket > 0 ? bucket - 1 : 0], splitters[bucket]};
}

/* Is the bucket for one value only, which is then *value? */
template <typename K>
static __host__ __device__ bool is_one_value(const struct split_head<K> &split, int bucket,
                                             const bucket_ends<K> &ends, K *value)
{
    if (split.is_linear)
        return false;
    *value = bucket == 0 ? 0 : ends.begin;
    return *value == (bucket == split.buckets - 1 ? BEHIND_ALL<K> : (K)(ends.next - 1));
}

/* Bins for a block sort of the bucket; none if the range of the bucket says little. */
template <typename S, typename K>
static __device__ even_parts<K> known_parts(const struct split_head<K> &split, int bucket,
                                            const bucket_ends<K> &ends)
{
    if (bucket == 0 || bucket == split.buckets - 1) // these have the keys outside of the sample's range
        return {};
    if (split.is_linear)
        return split.parts;
    return parts_of_range<log2_of(S::BINS)>(ends.begin, (K)(ends.next - 1));
}

/* ---- from a sample to a split -------------------------------------------------------------------------- */

/* Cut low .. high into `buckets` parts of equal width, or fewer if there are fewer values. */
template <typename K>
static __device__ struct split_head<K> cut_evenly(K low, K high, int buckets) {
    const int shift = max(bits_of<K>(high - low) - SPLIT_DISTANCE_LOG, 0);
    const uint32_t distances = (uint32_t)(high >> shift) - (uint32_t)(low >> shift);
    const uint32_t parts = min((uint32_t)buckets, distances + 1);
    // the quotient has at most 42 bits, so a double holds all of them
    const double scale = floor((double)((uint64_t)parts << 32) / (double)(distances + 1));
    struct split_head<K> split = {
        true, (int32_t)parts, 0, false
    };
    split.parts.shift = shift;
    split.parts.low = (uint32_t)(low >> shift);
    // a part for each distance: a scale of 2^32 does not fit a word; 2^32 - 1 takes distance 1 to part 0, 2 to part 1
    if (parts == distances + 1) {
        split.parts.low--;
        split.parts.scale = ~0u;
    } else {
        split.parts.scale = (uint32_t)scale;
    }
    split.lowest = low;
    split.highest = high;
    return split;
}

/* Do the keys of a sample [seen] fit parts of equal width? counts [SPLIT_BUCKETS] in shared memory: keys of each part. Every thread of
 * the block calls it. */
template <typename K, int OWN>
static __device__ bool is_even(const struct split_head<K> &split, const K (&keys)[OWN], int own, int seen,
                               uint32_t *counts)
{
    __shared__ uint32_t squares;
    const linear_split<K> bucket_of(split);
    counts[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        squares = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        if (k * SPLIT_THREADS < seen) { // rows without keys take no time
            const K key[1] = {keys[k]};
            uint32_t found[1];
            bucket_of(key, found);
            if (k < own)
                atomicAdd(&counts[found[0]], 1u);
        }
    }
    __syncthreads();
    const float share = (float)seen / split.buckets,
                of_group = (float)seen / max(split.buckets / SPLIT_GROUP, 1);
    uint32_t sum = counts[threadIdx.x];
    const uint32_t of_warp = warp_total(sum * sum);
    if (threadIdx.x % WARP == 0)
        atomicAdd(&squares, of_warp);
    const bool is_more = sum > 1.5f * share + 6 * sqrtf(share) + 1;
    for (int flip = 1; flip < SPLIT_GROUP; flip *= 2)
        sum += __shfl_xor_sync(ALL_LANES, sum, flip);
    const bool is_more_of_group = sum > 1.25f * of_group + 4 * sqrtf(of_group) + 1;
    const bool any_is_more = __syncthreads_or(is_more || is_more_of_group);
    // chi-square: parts may all be somewhat off, and none by much
    const bool is_lumpy = squares / share - seen > split.buckets + 5 * sqrtf(2 * split.buckets);
    return !any_is_more && !is_lumpy;
}
static_assert(SAMPLE_MAX<uint32_t> < 1 << 16, "the square of all is a word");

/* How keys of a range become distances for a short tree. The range gets one step more on each side, if there is one, so that keys
 * outside of it are not taken for its extremes. */
template <typename K>
static __device__ struct split_head<K> reach_of_range(K low, K high) {
    struct split_head<K> head = {};
    head.parts.shift = max(bits_of<K>(high - low) - SHORT_LOG, 0);
    const K step = (K)1 << head.parts.shift;
    head.lowest = low < step ? 0 : low - step;
    head.highest = high > BEHIND_ALL<K> - step ? BEHIND_ALL<K> : high + step;
    head.parts.low = (uint32_t)(head.lowest >> head.parts.shift) - 1; // no distance is 0
    return head;
}

/* The place among all splitters of the one at `node`, in a tree with `levels` levels. */
static __device__ int splitter_of_node(int node, int levels)
{
    const int level = 31 - __clz(node);
    return ((2 * (node - (1 << level)) + 1) << (levels - 1 - level)) - 1;
}

/* The first of sorted keys [count] that is not below `key`; or, with ABOVE, that is above it. */
template <bool ABOVE, typename K>
static __device__ int find_key(const K *keys, int count, K key)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (keys[middle] < key || (ABOVE && keys[middle] == key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Make the tree of splitters [count], which lie in shared memory. It is a short one if that can tell them apart; they are then rounded
 * down to the step of its distances. Splitters around one value may not be rounded: with these, the tree is not short unless the step is
 * 1. Returns the number of buckets. Every thread of the block calls it, behind a barrier. */
template <typename K>
static __device__ int write_tree(struct split_head<K> head, int count, K *splitters, struct split<K> *split)
{
    const int i = threadIdx.x, shift = head.parts.shift;
    const auto distance = [&](int number) { return (uint32_t)(splitters[number] >> shift) - head.parts.low; };
    const bool is_alike = 0 < i && i < count && distance(i - 1) == distance(i);
    const bool ends_value = // and may not be rounded
        i < count && shift > 0 &&
        (splitters[i] == BEHIND_ALL<K> || (i > 0 && splitters[i] == splitters[i - 1] + 1));
    head.is_short = !__syncthreads_or(is_alike || ends_value);
    head.buckets = count + 1;
    head.levels = max(32 - __clz(count), 2);
    if (head.is_short && i < count)
        splitters[i] = splitters[i] >> shift << shift;
    __syncthreads();
    if (i < 1 << head.levels) {
        const int place = i > 0 ? splitter_of_node(i, head.levels) : count; // node 0 does not exist, but is copied
        if (head.is_short)
            ((uint32_t *)split->tree)[i] = place < count ? 0 - distance(place) : 0;
        else
            split->tree[i] = place < count ? splitters[place] : BEHIND_ALL<K>;
    }
    if (i < count)
        split->splitters[i] = splitters[i];
    if (i == 0)
        split->split_head<K>::operator=(head);
    return head.buckets;
}

/* Where the keys that are not below `key` begin in a sample that is in order. They begin at `at` or before, and most often at `at`. */
template <typename K>
static __device__ int first_from(const K *sample, int at, K key)
{
    return at == 0 || sample[at - 1] < key ? at : find_key<false>(sample, at, key);
}

/* Make a tree for `wanted` < `most` buckets from the sorted sample [seen]. A value that fills half a bucket or more has a bucket of its
 * own, with a splitter at its beginning and one at its end. If that makes more than `most` buckets, only values at which two splitters or
 * more would lie have one. Writes, in shared memory, splitters [SPLIT_BUCKETS] and begins [SPLIT_BUCKETS]: where in the sample the
 * bucket behind each splitter begins, or a little later if the tree is short. Returns the number of buckets. Every thread of the block
 * calls it. */
template <typename K>
static __device__ int grow_tree(const K *sample, int seen, int wanted, int most, K *splitters, uint32_t *begins,
                                struct split<K> *split)
{
    __shared__ uint32_t sums[SPLIT_THREADS / WARP];
    __shared__ int found;
    const int i = threadIdx.x;
    const auto place = [&](int number) { return (int)((uint32_t)(number * seen) / (uint32_t)wanted); };
    uint32_t own = 0, before;
    int begin = 0, end = 0; // of the value in the sample
    K key = 0;
    if (0 < i && i < wanted) {
        key = sample[place(i)];
        if (i == 1 || sample[place(i - 1)] != key) {
            begin = first_from(sample, place(i), key);
            end = place(i) + 1;
            if (end < seen && sample[end] == key)
                end = find_key<true>(sample, seen, key);
            own = 2 * (end - begin) * wanted >= seen && key != BEHIND_ALL<K> ? 2 : 1;
        }
    }
    for (;;) {
        before = block_sum_before(own, sums);
        if (i == SPLIT_THREADS - 1)
            found = (int)(before + own);
        __syncthreads();
        if (found < most)
            break;
        if (own == 2 && (i + 1 == wanted || sample[place(i + 1)] != key))
            own = 1;
        __syncthreads();
    }
    if (own > 0) {
        splitters[before] = key;
        begins[before] = begin;
    }
    if (own > 1) { // which may be a splitter anyway: two equal ones have an empty bucket between them
        splitters[before + 1] = key + 1;
        begins[before + 1] = end;
    }
    __syncthreads();
    // keys beyond the first and the last splitter need not be told apart
    return write_tree(found > 0 ? reach_of_range(splitters[0], splitters[found - 1]) : reach_of_range(key, key), found,
                      splitters, split);
}

#endif
