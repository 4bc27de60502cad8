/* The numbers that speed depends on, and which rung is taken when none is asked for. Results do not depend on
 * any of them. tests/bench/bench_ladder.cu measures what a change is worth. */
#ifndef TUNING_H
#define TUNING_H

#include <stdint.h>

enum {
    UNREGISTERED_BYTES_MIN = 1 << 20, /* of a copy; below, the driver's own copy is as good */

#ifndef TUNING_SMALL
    /* rung 1 */
    BITONIC_GLOBAL_THREADS = 256,

    /* rung 2: keys per tile by bytes of key and value, up to 8 or up to 16; 48 KiB at most */
    BITONIC_SHARED_THREADS = 256,
    BITONIC_SHARED_LOG_TILE_8 = 12,
    BITONIC_SHARED_LOG_TILE_16 = 11,

    /* rung 3: keys per lane by bytes of key and value. A tile has 2^(LOG_LANES + 2 LOG_KEYS) keys, and 64 KiB at
     * most */
    BITONIC_WARP_LOG_LANES = 5,
    BITONIC_WARP_LOG_KEYS_8 = 4,
    BITONIC_WARP_LOG_KEYS_16 = 3,

    /* rung 4: most steps per pass, by bytes of the keys; a pass of degree d holds 2^d keys per thread */
    BITONIC_MULTISTEP_THREADS = 256,
    BITONIC_DEGREE_4 = 6,
    BITONIC_DEGREE_8 = 5,
    BITONIC_DEGREE_PAIRS = 4,

    /* rung 5, by bytes of key and value, up to 4, 8 or 16: keys per tile, where shared memory suffices, keys
     * per thread, and blocks per multiprocessor. By bytes of the keys: the least number of keys that lie together
     * in memory */
    PACKED_LOG_TILE_4 = 14,
    PACKED_LOG_TILE_8 = 13,
    PACKED_LOG_TILE_16 = 11,
    PACKED_LOG_KEYS_4 = 6,
    PACKED_LOG_KEYS_8 = 5,
    PACKED_LOG_KEYS_16 = 4,
    PACKED_LOG_RUN_4 = 4,
    PACKED_LOG_RUN_8 = 3,
    PACKED_BLOCKS_4 = 2,
    PACKED_BLOCKS_8 = 2,
    PACKED_BLOCKS_16 = 4,
    PACKED_NARROW_BITS = 31, /* larger positions are counted in 64 bits */
#else
    /* The same for the proof of tests/kernels/test_network.cu: so small that 16 keys pass through global
     * memory, shared memory, shuffles and registers. */
    BITONIC_GLOBAL_THREADS = 4,
    BITONIC_SHARED_THREADS = 256,
    BITONIC_SHARED_LOG_TILE_8 = 2,
    BITONIC_SHARED_LOG_TILE_16 = 3,
    BITONIC_WARP_LOG_LANES = 1,
    BITONIC_WARP_LOG_KEYS_8 = 1,
    BITONIC_WARP_LOG_KEYS_16 = 1,
    BITONIC_MULTISTEP_THREADS = 4,
    BITONIC_DEGREE_4 = 2,
    BITONIC_DEGREE_8 = 2,
    BITONIC_DEGREE_PAIRS = 2,
    PACKED_LOG_TILE_4 = 3,
    PACKED_LOG_TILE_8 = 3,
    PACKED_LOG_TILE_16 = 3,
    PACKED_LOG_KEYS_4 = 2,
    PACKED_LOG_KEYS_8 = 2,
    PACKED_LOG_KEYS_16 = 1,
    PACKED_LOG_RUN_4 = 1,
    PACKED_LOG_RUN_8 = 1,
    PACKED_BLOCKS_4 = 2,
    PACKED_BLOCKS_8 = 2,
    PACKED_BLOCKS_16 = 2,
    PACKED_NARROW_BITS = 3,
#endif

    /* rung 6: keys of a block; counts that one block scans */
    RADIX_4WAY_THREADS = 512,
    RADIX_4WAY_SCAN_TILE = 1024,

    /* rung 7: threads per block, keys per thread by key bytes, blocks that share a multiprocessor (64
     * registers per thread). A block fits into 64 KiB of shared memory, the least that any supported device
     * has. The largest tiles have an odd number of keys per thread: sorted input may fill all bins of a tile alike, and
     * their first places are then multiples of a number that should share few factors with the number of banks. If
     * FEW_WAVES waves of the largest tiles or fewer are enough, tiles are smaller: from KEYS_LEAST on, in steps of
     * KEYS_STEP */
    ONESWEEP_THREADS = 512,
    ONESWEEP_KEYS_4 = 27,
    ONESWEEP_KEYS_4_PAIRS = 21, /* 4-byte keys with values */
    ONESWEEP_KEYS_8 = 15,
    ONESWEEP_KEYS_4_WIDE = 15, /* with values of 8 bytes */
    ONESWEEP_KEYS_LEAST = 8,
    ONESWEEP_KEYS_STEP = 4,
    ONESWEEP_FEW_WAVES = 2,
    ONESWEEP_LOADS_AT_ONCE = 12, /* keys, where a tile with values is stored; registers limit it */
    ONESWEEP_BLOCKS = 2,
    ONESWEEP_HISTOGRAM_KEYS = 8,   /* per thread and turn */
    ONESWEEP_HISTOGRAM_BLOCKS = 4, /* per multiprocessor */

    /* MSD sort; sizes that depend on the shared memory of a block stand below. COUNT_VECTORS: vectors of 16 bytes of keys
     * that a thread takes at a time. SCATTER_HOT_LANES: lanes of a row that must share a bucket to be counted by a vote.
     * SAMPLE_OF_BUCKET: keys of a sample for each bucket. FILL_KEYS: keys of an entry of a list of runs */
    COUNT_THREADS = 1024,
    COUNT_VECTORS = 4,
    SCATTER_THREADS = 512,
    SCATTER_BLOCKS = 2,
    SCATTER_HOT_LANES = 8,
    SAMPLE_OF_BUCKET = 32,
    SAMPLE_THREADS = 256,
    FILL_KEYS = 1 << 16,

    /* Levels. The first of two has at least REGIONS_MIN regions, and at least REGIONS_USUAL if each then has REGION_KEYS_LEAST keys:
     * one block makes the split of each region, and few blocks leave most multiprocessors waiting. REGIONS_NOTED: as many as a byte can
     * tell. REGION_KEYS: keys of a region of usual size. BATCH_SHARE_OF_KEYS: the share of all keys that is sorted at a time; if that is
     * more keys, as many as have their scratch in a share of the device's memory, BATCH_SHARE_OF_MEMORY.
     * A level that is the only one. ALONE_KEYS_LEAST: keys of a bucket, at least. ALONE_SAMPLE_OF_BUCKET: keys of a sample for each
     * bucket. Up to ALONE_SMALL_BUCKETS keys, buckets are small; beyond, they have ALONE_LARGE_KEYS keys. Up to ALONE_SMALL_TILES
     * keys, tiles are small, and a thread then has at most ALONE_SCATTER_KEYS keys. ALONE_RUN_KEYS: keys of an entry of a list of
     * runs */
    REGIONS_MIN = 64,
    REGIONS_USUAL = 128,
    REGION_KEYS_LEAST = 1 << 17,
    COUNTED_REGIONS = 1000, /* as many as a split has room for, except some for regions of one value beside them */
    REGIONS_NOTED = 240, /* with the regions of one value beside them there are no more than 2^8 */
    REGION_KEYS = 1 << 20,
    BATCH_SHARE_OF_KEYS = 8,
    BATCH_SHARE_OF_MEMORY = 64,
    ALONE_KEYS_LEAST = 512,
    ALONE_SAMPLE_OF_BUCKET = 24,
    ALONE_SMALL_BUCKETS = 9 << 18,
    ALONE_LARGE_KEYS = 4032,
    ALONE_SMALL_TILES = 5 << 18,
    ALONE_SCATTER_KEYS = 8,
    ALONE_RUN_KEYS = 1 << 14,

    PAIR_POSITIONS_MOST = 1 << 24, /* keys of 4 bytes up to which positions travel with them and do not make codes of 8 bytes */

    /* Lumps of keys. LUMP_SAMPLE: keys of the sample. LUMP_GAP_LOG: log2 of how much wider a gap is than the next one at an edge.
     * LUMP_EDGES: edges up to which codes are faster all the same. For smooth keys, the edges are on average
     * 2 / (2^LUMP_GAP_LOG + 1) of the sample, which is one */
    LUMP_SAMPLE = 1024,
    LUMP_GAP_LOG = 11,
    LUMP_EDGES = 30,

    /* pairs with keys of 8 bytes: the least and the most of them that levels sort; regions of the first level, at most; elements of
     * a bucket, in a linear split and in a tree; block sorts: threads, keys per thread, blocks per multiprocessor */
    PAIR_LEVELS_LEAST = 1 << 23,
    PAIR_LEVELS_MOST = 5 << 26,
    PAIR_REGIONS_MAX = 240,
    PAIR_LINEAR_KEYS = 5900,
    PAIR_TREE_KEYS = 5400,
    PAIR_SORT_THREADS = 512,
    PAIR_SORT_KEYS = 17,
    PAIR_SORT_BLOCKS = 2,

    /* few keys, which are sorted by their ranks: how many at most; threads of a block; keys of a sample that is sorted so, at most */
    FEW_KEYS = 1 << 13,
    RANK_THREADS = 256,
    RANKED_SAMPLE = 1 << 13,

    /* a cluster of blocks: keys at most, by bytes of the keys; threads of a block; keys that a thread sorts, at most, and keys
     * that it loads; keys of a block at most on average, as long as there are more blocks to be had; the same of a bucket */
    CLUSTER_COUNT_MAX_4 = 1 << 16,
    CLUSTER_COUNT_MAX_8 = 1 << 15,
    CLUSTER_THREADS = 512,
    CLUSTER_KEYS = 16,
    CLUSTER_OWN_KEYS = 8,
    CLUSTER_BLOCK_KEYS = 1024,
    CLUSTER_BUCKET_KEYS = 4096,

    /* writing keys anew */
    MSD_WRITE_THREADS = 256,

    /* merge: threads that merge; by bytes of the keys, keys of each thread, an odd number, so that the threads of a
     * warp start in different banks, and blocks per multiprocessor. A block has two tiles in shared memory. TIGHT: for
     * blocks that cannot have ROOMY_BYTES, but 64 KiB */
    MERGE_THREADS = 256,
    MERGE_KEYS_4 = 29,
    MERGE_KEYS_8 = 27,
    MERGE_KEYS_8_TIGHT = 15,
    MERGE_KEYS_16 = 13,
    MERGE_KEYS_16_TIGHT = 7,
    MERGE_BLOCKS_4 = 3,
    MERGE_BLOCKS_8 = 2,
    MERGE_BLOCKS_16 = 2,
    MERGE_ROOMY_BYTES = 112 << 10,
    /* merge of many runs: keys of a thread by bytes of the keys, and pages of a tile: with more pages, fewer keys
     * are fetched twice */
    MERGE_MANY_KEYS_4 = 27,
    MERGE_MANY_KEYS_8 = 21,
    MERGE_MANY_KEYS_16 = 9,
    MERGE_PAGES = 64,

    /* the network that sorts where there is no scratch at all; threads that look for a cut together */
    TUNING_IN_PLACE_RUNG = 5,
    CUT_THREADS = 1024,

    /* many searches in one run: each thread's loads depend on each other, so there are few threads to a block and
     * many blocks */
    SEARCH_THREADS = 32,

    /* encode, decode, inspect, swap: keys of a thread by bytes of the keys */
    PASS_THREADS = 256,
    PASS_KEYS = 8,
    PASS_KEYS_16 = 4,
    INSPECT_BLOCKS = 8, /* per multiprocessor */

    /* codes of elements, and elements that move: how many a thread takes at a time. If elements move word by word: words
     * of a thread at a time, bytes of a tile, and elements of a tile at most */
    ELEMENT_THREADS = 256,
    ELEMENT_BLOCKS = 32,  /* per multiprocessor, not all at a time, so that the last ones end together */
    ELEMENT_TOGETHER = 6, /* blocks that share a multiprocessor, where elements move */
    ELEMENT_CODES = 4,
    ELEMENT_MOVES = 4,
    ELEMENT_WORDS = 4,
    ELEMENT_TILE_BYTES = 1 << 15,
    ELEMENT_TILE_MOST = 1 << 10,

    /* runs of equal keys: keys of a thread at a time, by bytes of the keys, and blocks per multiprocessor; as many of these
     * as fit run at a time */
    RUN_THREADS = 256,
    RUN_KEYS = 8,
    RUN_KEYS_16 = 4,
    RUN_BLOCKS = 16,

    /* keys of 1 and 2 bytes: threads that count them, keys of a thread in a round, and blocks per multiprocessor by bytes
     * of the keys: with counters for all values of 2 bytes there is room for one block. Threads that write them, vectors of
     * a thread at a time, and blocks per multiprocessor */
    COUNTED_THREADS = 1024,
    COUNTED_KEYS = 32,
    COUNTED_BLOCKS_1 = 2,
    COUNTED_BLOCKS_2 = 1,
    COUNTED_WRITE_THREADS = 256,
    COUNTED_WRITE_VECTORS = 4,
    COUNTED_WRITE_BLOCKS = 16
};

/* Sizes of the MSD sort that depend on the shared memory that a block of the device can have. A class is named after the least KiB
 * of shared memory that it needs:
 *
 *     227    H100, H200, B200. These sizes were measured there; those of the other classes are reckoned
 *     163    A100. Two tiles share a multiprocessor, and so do three buckets of wide keys
 *     96     V100, and RTX 30, 40, 50 and L40S, which have 99. Only tiles of 4-byte keys may be as large as those of 227: where one is
 *            alone on a multiprocessor, the sizes of 163 do. Samples are sorted by half as many bins, to have more keys
 *
 * Regions are small where samples are small, so that a bucket has twenty keys of a sample or more. Classes with the same size share
 * one kernel. queue_level.cuh checks whether all sizes fit. */
enum msd_class { MSD_227, MSD_163, MSD_96, MSD_CLASSES };

enum { MSD_WIDTHS = 3 };

/* Threads of a block, keys of a thread, blocks that share a multiprocessor. */
struct msd_block {
    int threads, keys, blocks;
};

/* The least bytes of shared memory of each class. */
static constexpr int MSD_BLOCK_BYTES[MSD_CLASSES] = {227 << 10, 163 << 10, 96 << 10};

/* For each class, by bytes of the keys, 4, 8 and 16. Keys of a thread in a tile */
static constexpr int MSD_SCATTER_KEYS[MSD_CLASSES][MSD_WIDTHS] = {{24, 16, 8}, {20, 11, 5}, {24, 11, 5}};

/* block sorts: of most buckets; of the large buckets of a level alone; of fuller buckets */
static constexpr struct msd_block MSD_USUAL[MSD_CLASSES][MSD_WIDTHS] = {
    {{256, 17, 5}, {256, 17, 4}, {512, 9, 2}},
    {{256, 17, 5}, {256, 17, 4}, {256, 8, 3}},
    {{256, 17, 5}, {256, 17, 4}, {256, 8, 3}}};
static constexpr struct msd_block MSD_LARGE[MSD_CLASSES][MSD_WIDTHS] = {
    {{512, 17, 2}, {512, 17, 2}, {512, 17, 1}},
    {{512, 17, 2}, {512, 17, 2}, {256, 8, 3}},
    {{512, 17, 2}, {512, 17, 2}, {256, 8, 3}}};
static constexpr struct msd_block MSD_HUGE[MSD_CLASSES][MSD_WIDTHS] = {
    {{1024, 18, 1}, {1024, 18, 1}, {1024, 10, 1}},
    {{1024, 18, 1}, {512, 17, 1}, {512, 8, 1}},
    {{512, 17, 1}, {512, 17, 1}, {512, 8, 1}}};

/* samples: keys of each thread that sorts one, and how many times four bins each thread has */
static constexpr int MSD_SAMPLE_ROWS[MSD_CLASSES][MSD_WIDTHS] = {{16, 16, 8}, {16, 14, 7}, {16, 8, 3}};
static constexpr int MSD_SAMPLE_VECTORS[MSD_CLASSES][MSD_WIDTHS] = {{2, 2, 2}, {2, 2, 1}, {1, 1, 1}};

/* keys of a bucket on average, in a linear split and in a tree; the same of a level alone, at most */
static constexpr int MSD_LINEAR_KEYS[MSD_CLASSES][MSD_WIDTHS] = {
    {4032, 4032, 4032}, {4032, 4032, 1820}, {4032, 4032, 1820}};
static constexpr int MSD_TREE_KEYS[MSD_CLASSES][MSD_WIDTHS] = {
    {2800, 2800, 2800}, {2800, 2800, 1300}, {2800, 2800, 1300}};
static constexpr int MSD_ALONE_LINEAR_KEYS[MSD_CLASSES][MSD_WIDTHS] = {
    {2048, 2048, 2048}, {2048, 2048, 1024}, {2048, 2048, 1024}};
static constexpr int MSD_ALONE_TREE_KEYS[MSD_CLASSES][MSD_WIDTHS] = {
    {1664, 1664, 1664}, {1664, 1664, 832}, {1664, 1664, 832}};

/* keys of a level alone, at most; keys of a region of the first of two levels, and how many regions it has, at most */
static constexpr int MSD_ALONE_KEYS[MSD_CLASSES][MSD_WIDTHS] = {
    {1 << 22, 1 << 22, 1 << 22}, {1 << 22, 1 << 22, 1 << 19}, {1 << 22, 1 << 22, 1 << 19}};
static constexpr int MSD_REGION_KEYS[MSD_CLASSES][MSD_WIDTHS] = {
    {1 << 20, 1 << 20, 1 << 20}, {1 << 20, 1 << 20, 7 << 16}, {1 << 20, 1 << 19, 3 << 16}};
static constexpr int MSD_REGIONS_MOST[MSD_CLASSES][MSD_WIDTHS] = {
    {512, 512, 512}, {512, 512, 960}, {512, 960, 960}};

/* Which rung is taken for how many keys. jobs/tune.sh can measure and write the rows. */
static const struct tuning_row {
    int key_bytes;
    int64_t up_to;
    int rung;
} tuning_rows[] = {
    // clang-format off
    {4, 1 << 16, 8},
    {4, 1 << 24, 7},
    {4, INT64_MAX, 8},
    {8, INT64_MAX, 8},
    // clang-format on
    {16, INT64_MAX, 8}, // no other rung of ours takes them
};

enum { TUNING_ROWS = sizeof tuning_rows / sizeof tuning_rows[0] };

/* The rung for `count` keys of `key_bytes`, from the first row that covers them; -1, which is no rung, if no row
 * is for that width. */
static inline int tuning_rung(int key_bytes, int64_t count)
{
    for (size_t row = 0; row < TUNING_ROWS; row++)
        if (tuning_rows[row].key_bytes == key_bytes && count <= tuning_rows[row].up_to)
            return tuning_rows[row].rung;
    return -1;
}

/* The largest number of keys below `count` at which a row for this width ends; 0: there is none. */
static inline int64_t tuning_border_below(int key_bytes, int64_t count)
{
    int64_t border = 0;
    for (size_t row = 0; row < TUNING_ROWS; row++)
        if (tuning_rows[row].key_bytes == key_bytes && tuning_rows[row].up_to < count && tuning_rows[row].up_to > border)
            border = tuning_rows[row].up_to;
    return border;
}

#endif
