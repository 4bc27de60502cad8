/* What a level of an MSD sort (level.cuh) is given, and what its kernels tell each other. */
#ifndef LEVEL_TABLES_CUH
#define LEVEL_TABLES_CUH

#include "kernels/cuda/msd/count.cuh"

enum {
    LEVEL_SEGMENTS = 128,             /* at a time, at most */
    LEVEL_ALONE_SEGMENTS = 16,        /* the same after the only level of a small sort */
    LEVEL_PIECES = ENGINE_PIECES_MAX, /* of all of them */
    ALONE_MORE_ROOM = 2 << 20,        /* keys of scratch beyond three for each key, at most */
    LEFT_KEYS_OF_PART = 256,          /* in a part of a segment that was left, on average */
    LEFT_PARTS_MIN = 64               /* parts at least, which bounds the number of levels */
};

struct segment {
    uint64_t scratch_first, out_first; /* its first place in both */
    int64_t left; /* its number among the buckets that a level before has left; -1: it is none of them */
};

struct piece {
    const void *keys;
    int64_t count;
    int32_t segment;
    uint32_t first_tile;
};

/* Passed to kernels by value: every driver takes 4 KiB of parameters. */
struct segments {
    int count;
    struct segment segment[LEVEL_SEGMENTS];
};

struct pieces {
    int count;
    struct piece piece[LEVEL_PIECES];
};
static_assert(sizeof(struct segments) <= 3600 && sizeof(struct pieces) <= 3600, "parameters of a kernel");

/* A bucket. If limit is 0, the bucket is of one value, and its keys go nowhere. */
struct bucket {
    uint64_t cursor, begin, limit; /* places in scratch */
};

/* How buckets are kept. Tiles that start together all ask the cursors of the same buckets, so the L2 cache should have few sectors to
 * change, and these in many places: the cursors of neighbouring buckets share a sector, and a line has no other cursors.
 *
 *     line 0     cursors 0 1 2 3 | begins 0 1 2 3 | limits 0 1 2 3 | extents 0 1 2 3
 *     line 1     cursors 4 5 6 7 | ... */
enum { BUCKETS_OF_LINE = 4 };

struct alignas(128) bucket_line {
    uint64_t cursors[BUCKETS_OF_LINE], begins[BUCKETS_OF_LINE], limits[BUCKETS_OF_LINE];
    uint64_t extents[BUCKETS_OF_LINE]; /* of regions: an extent that each has begun of late (extents.cuh) */
};

static __device__ void set_bucket(struct bucket_line *lines, int number, const struct bucket &bucket)
{
    struct bucket_line &line = lines[number / BUCKETS_OF_LINE];
    const int at = number % BUCKETS_OF_LINE;
    line.cursors[at] = bucket.cursor;
    line.begins[at] = bucket.begin;
    line.limits[at] = bucket.limit;
    line.extents[at] = 0;
}

static __device__ struct bucket get_bucket(const struct bucket_line *lines, int number)
{
    const struct bucket_line &line = lines[number / BUCKETS_OF_LINE];
    const int at = number % BUCKETS_OF_LINE;
    return {line.cursors[at], line.begins[at], line.limits[at]};
}

/* What a block sort is given. */
template <typename K>
struct bucket_task {
    uint64_t begin, goal; /* in scratch, in out */
    uint32_t count;
    even_parts<K> known;
};

/* What is done with other buckets: a large block sort, writing a value anew, or copying a giant. */
enum rest_kind : uint32_t { REST_SORT, REST_FILL, REST_COPY };

/* A task for one of these. A long bucket that is filled or copied has several. */
struct rest_task {
    uint64_t begin, goal; /* in scratch, in out */
    uint32_t count;
    enum rest_kind kind;
    uint32_t number; /* filled: that of its bucket; copied: its place among the buckets left */
};

/* A giant that is left. */
struct left_bucket {
    uint64_t first, count;          /* in out */
    uint64_t lowest[2], highest[2]; /* of its keys; lower word first */
    uint32_t lock;
};

/* The memory in which regions lie (extents.cuh): `near`, then `far`, cut into extents. A row has the extents of a region in order, each
 * as one more than its number; 0 if it is not taken yet. */
template <typename K>
struct extents {
    K *near_keys, *far_keys;
    uint32_t near_count; /* extents there */
    int tile, log_tiles; /* keys of a tile, and the logarithm of the tiles of an extent */
    int64_t keys;        /* of an extent */
    uint32_t row_count, row_length;
    uint32_t *rows;  /* [row_count][row_length]; NULL: there are no extents */
    uint32_t *taken; /* how many are taken */
};

template <typename K>
static __device__ K *begin_of_extent(const struct extents<K> &extents, uint32_t number)
{
    return number < extents.near_count ? extents.near_keys + number * extents.keys
                                       : extents.far_keys + (number - extents.near_count) * extents.keys;
}

/* What a level counts. */
struct level_head {
    uint32_t is_done;  /* after the count of a first level: nothing is to be scattered */
    uint32_t is_mixed; /* the sample of a first level goes up and down, and some of it has to move */
    uint32_t any_overflow;
    uint32_t arrived;          /* blocks of an only segment's split */
    unsigned long long listed; /* usual tasks below, others above */

    __device__ uint32_t usual_count() const
    {
        return (uint32_t)listed;
    }
    __device__ uint32_t rest_count() const
    {
        return (uint32_t)(listed >> 32);
    }
};

/* The tables of a level, in the workspace. */
template <typename K>
struct level_tables {
    struct level_head *head;
    struct region_counts *region_counts; /* of a first level: zeroed for its count; or NULL */
    uint8_t *found;                      /* of a first level: the region of each key (count.cuh); or NULL */
    const struct left_bucket *left;      /* by levels before */
    struct left_bucket *next_left;       /* [left_room] for levels behind */
    uint32_t *left_count;                /* of all levels since what they left was last settled */
    uint32_t left_room;                  /* buckets beyond it are only counted */
    bool zeroes_left_count;              /* the level is the first one of a sort */
    struct segment *segments;            /* [segments] */
    int64_t *counts;                     /* [segments] keys */
    struct split<K> *splits;             /* [segments] */
    uint32_t *overflows;                 /* [segments] a bucket has asked for more than its room */
    struct bucket_line *buckets;         /* [segments][SPLIT_BUCKETS / BUCKETS_OF_LINE] */
    struct bucket_task<K> *usual;        /* [segments * SPLIT_BUCKETS] */
    struct rest_task *rest;              /* [one for each bucket, and one for run_keys of its keys] */
    struct extents<K> extents; /* of a first level, and of the level behind it, whose pieces are their rows */
    K *samples;                          /* [segments][SAMPLE_MAX] */
    K *sorted;                           /* [SAMPLE_MAX] the sample of an only segment, sorted */
};

template <typename K>
static __device__ struct bucket_line *buckets_of_segment(const struct level_tables<K> &level, int segment)
{
    return &level.buckets[segment * (SPLIT_BUCKETS / BUCKETS_OF_LINE)];
}

/* How the segments of a level are split. */
struct level_plan {
    int linear_keys, tree_keys; /* of a bucket, on average: of a linear split, of a tree */
    int sample_of_bucket;       /* keys */
    int sample_most;            /* keys of a sample at most; of an only segment no more than RANKED_SAMPLE */
    int run_keys;               /* of a bucket that is filled or copied, in one task */
    bool is_alone;              /* there is no other level, and as much scratch as it likes */
    bool has_one_segment;       /* many blocks sort its sample (ranks.cuh), because all others wait for it */
    int most_buckets;           /* of a segment */
};

#endif
