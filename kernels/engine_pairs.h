/* How engines sort keys that have a value each: a part of engine.h. All arrays lie in engine memory; keys are aligned
 * to their size, values to theirs. Equal keys stay in the order of the input. */
#ifndef ENGINE_PAIRS_H
#define ENGINE_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/base/keytype.h"
#include "kernels/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct engine;
struct engine_map;

/* The pairs of a rank. */
struct engine_pairs {
    struct keymap map; /* of the keys, 4 or 8 bytes each */
    int64_t count;
    const void *keys;   /* [count] not changed, unless this is keys_out */
    const void *values; /* [count] the same; NULL: the value of key i is its position, i on a rank alone */
    int value_bytes;    /* 4 or 8; 8 where values is NULL */
    void *keys_out;     /* [count] the keys in order; NULL: nobody wants them */
    void *values_out;   /* [count] their values. Arrays do not overlap, except that an output may be its input */
};

/* Pairs of several ranks, some of which change ranks between the two levels of their sort:
 *
 *     split()          pairs as they came   ->  region 0 | region 1 | ...      each in the order of its pairs
 *     sort_regions()   regions, with their pieces in the order of the ranks    ->  each region in order
 *
 *     pairs           7a 2b 9c 2d           regions up to 4, and above
 *     split           2b 2d | 7a 9c  1x 8y  behind it the pairs of another rank: 1x | 8y
 *     sort_regions    of the pieces 2b 2d and 1x: 1x 2b 2d
 *
 * keys and values hold the pairs of both ranks. From there, regions go to the second half and are sorted there. What no
 * kernel sorts at once waits for settle_regions(), which goes to and fro between the second half and the spare one. */
struct engine_pair_regions {
    /* map, value_bytes; for split() keys, values and count; the outputs */
    struct engine_pairs pairs;
    /* No pair has a value: the values of this rank's pairs become the positions that the pairs had, and those of other
     * ranks' pairs become their places in the first half, which are behind this rank's. Values have 8 bytes, in
     * values_out too. */
    bool places;
    int64_t most; /* the most pairs that split() is given, or sort_regions() in all */

    /* The first half, [most, or more]: codes, and values as they are on the way. */
    void *keys, *values;
    /* The second half, [pairs that go out]; pairs.keys_out and values_out will do if values are as wide there. */
    void *other_keys, *other_values;
    /* The spare half, the same; the first half will do if it can be overwritten. */
    void *spare_keys, *spare_values;

    void *workspace; /* [region_workspace()] aligned to 256 bytes */
};

/* Bytes of a value before it is stored in the end: positions are shorter while they travel. */
static inline int pair_carried_bytes(const struct engine_pair_regions *regions)
{
    return regions->pairs.values ? regions->pairs.value_bytes : regions->places ? 8 : 4;
}

/* A part of a region: pairs first .. first + count - 1 of the first half. */
struct engine_pair_piece {
    int64_t first, count;
    int region;
};

/* A stable sort of keys with their values. */
struct engine_pair_ops {
    /* Are there kernels for these types and counts, on a rank alone? If not, codes do it: make_codes(). Pure. An engine
     * that has no such kernels, such as `host`, lacks the three functions below. */
    bool (*can_sort)(const struct engine *engine, const struct engine_pairs *pairs);

    /* If can_sort(): is sort() faster than a sort of codes of 8 bytes, of key and position, would be? It may look at
     * some of the keys, and wait for STREAM_WORK. */
    hsort_status (*beats_codes)(struct engine *engine, const struct engine_pairs *pairs, bool *beats);

    /* Bytes of workspace of sort(). They depend on all members except the addresses, and on which addresses are NULL. */
    hsort_status (*workspace)(struct engine *engine, const struct engine_pairs *pairs, size_t *bytes);

    /* Sort; workspace aligned to 256 bytes. Waits for some of the work on STREAM_WORK, but not for the end. */
    hsort_status (*sort)(struct engine *engine, const struct engine_pairs *pairs, void *workspace);

    /* Are there kernels for these pairs of several ranks? Depends on `most`, `places` and the widths. Pure. */
    bool (*can_split)(const struct engine *engine, const struct engine_pair_regions *regions);

    /* Bytes of regions->workspace. Depends on `most` and the widths. Pure. */
    size_t (*region_workspace)(const struct engine *engine, const struct engine_pair_regions *regions);

    /* Bring the codes and values of regions->pairs, region by region, to keys and values [count] of the first half.
     *   first   the value of pair 0, if pairs.values is NULL
     *   map     of make_map(), with of_pairs; the same on all ranks
     *   counts  [ENGINE_REGIONS] on the host: pairs of each region. Waits for these */
    hsort_status (*split)(struct engine *engine, const struct engine_pair_regions *regions, int64_t first,
                          const struct engine_map *map, int64_t *counts);

    /* Sort whole regions, or parts of regions of one value, to the outputs from out_first on, one behind the other.
     *   pieces  [1 .. ENGINE_PIECES_MAX], ascending by region, and by rank in a region; some pairs; read in the call
     *   begins  this is the first call before settle_regions() */
    hsort_status (*sort_regions)(struct engine *engine, const struct engine_pair_regions *regions,
                                 const struct engine_pair_piece *pieces, int count, int64_t out_first,
                                 bool begins);

    /* Sort what calls of sort_regions() have left. Nobody reads the spare half any more. Waits for STREAM_WORK. */
    hsort_status (*settle_regions)(struct engine *engine, const struct engine_pair_regions *regions);
};

#ifdef __cplusplus
}
#endif

#endif
