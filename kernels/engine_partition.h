/* Sorting by regions, in the middle of which keys may change ranks: a part of engine.h. */
#ifndef ENGINE_PARTITION_H
#define ENGINE_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/base/sample_place.h"
#include "kernels/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct engine;
struct engine_map;
struct raw_keys;

/* Keys of one region that lie together, in no order. The keys of a region of one value lie nowhere. */
struct engine_piece {
    const void *keys; /* [count] codes; engine memory. NULL: the region is of one value */
    int64_t count;
    int region;
};

/* What scatter_to_rooms() has done. Unless that is nothing, some key is followed by a smaller one. */
enum engine_scattered {
    SCATTER_NOTHING, /* keys may be in order, or there is not enough room: count() may tell */
    SCATTER_COUNTED, /* the estimate was wrong: scatter() is to write `to`, without gaps */
    SCATTER_MOVED
};

/* Sorting by regions: keys may change ranks between scatter() and sort_regions().
 *
 *     scatter()       keys, any order  ->  region 0 | region 1 | ...        each in no order
 *     sort_regions()  pieces of a few regions, from anywhere  ->  these regions, sorted, one behind the other
 *
 * A value that has a large part of the sample gets a region of its own. Equal keys are equal bits, so the keys of such
 * a region are counted, but not moved: where they are wanted, the value is written as many times. With 6 between two
 * others:
 *
 *     keys    6 9 6 1 6 3        count()         1, 3: 2 keys    6: 3 keys    9: 1 key
 *                                scatter()       1 3 | 9
 *     pieces  1 3, 3 keys, 9     sort_regions()  1 3 6 6 6 9 */
struct engine_partition_ops {
    /* Can this device sort by regions? If not, the other functions are not to be called. Pure. */
    bool (*can)(const struct engine *engine);

    /* Bytes of workspace for all of these functions, aligned to 256 bytes; all calls of a sort are given one and the
     * same workspace. */
    size_t (*workspace)(const struct engine *engine, int key_bytes);

    /* Bytes of scratch of sample() and make_map(), aligned to 256, for a sample of 2^log keys; the same on every rank.
     * Pure. */
    size_t (*sample_scratch)(const struct engine *engine, int key_bytes, int log);

    /* Draw a rank's part of a sample of all ranks: codes[i] is the code of the key at the global position
     * sample_place(share, i). Of raw, all but decode is read. codes [share->drawn] on the host, key_words() each
     * (key_width.h). Waits for the result. */
    hsort_status (*sample)(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                           const struct sample_share *share, void *scratch, uint64_t *codes);

    /* Make a map for `total` keys from a sample of them, codes [2^log] of key_words() on the host, in any order;
     * ENGINE_SAMPLE_LOG_MIN <= log <= .._MAX. of_pairs: it has no more regions than engine_pair_ops.split() takes. The
     * map is good on every rank. Waits for the result. */
    hsort_status (*make_map)(struct engine *engine, int key_bytes, const uint64_t *codes, int log,
                             int64_t total, bool of_pairs, void *workspace, void *scratch,
                             struct engine_map *map);

    /* Is a region of one value? code [key_words()] is then that value. Works on the host, from the map alone. Pure. */
    bool (*region_value)(const struct engine *engine, int key_bytes, const struct engine_map *map, int region,
                         uint64_t *code);

    /* Count the keys of each region; and is some key followed by a smaller one (*descends)? raw as for sample(); counts
     * [ENGINE_REGIONS] on the host. Waits for the result. */
    hsort_status (*count)(struct engine *engine, int key_bytes, const struct raw_keys *raw, int64_t count,
                          const struct engine_map *map, void *workspace, int64_t *counts, bool *descends);

    /* Put the codes of the keys at raw->from [count] into `to` [count], region by region, without gaps; those of
     * regions of one value go nowhere. Either count() or scatter_to_rooms() has just counted the keys, with the same
     * map and workspace. `to` does not overlap the keys. */
    hsort_status (*scatter)(struct engine *engine, int key_bytes, const struct raw_keys *raw, int64_t count,
                            const struct engine_map *map, void *workspace, void *to);

    /* As count() and scatter() at once, but regions may have gaps behind them, and few keys are read twice. raw and
     * `to` as for those, but `to` [room], room >= count; counts as for count(). Region r begins at to[begins[r]];
     * begins [ENGINE_REGIONS + 1] on the host, and the last one is where all regions end. A region of one value has no
     * room. *done: what has been done. Unless keys have moved, `to` and begins hold nothing of use; if nothing has been
     * done, counts holds nothing of use either. Waits for the result. */
    hsort_status (*scatter_to_rooms)(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                     int64_t count, const struct engine_map *map, void *workspace, void *to,
                                     int64_t room, int64_t *counts, int64_t *begins,
                                     enum engine_scattered *done);

    /* Keys of scratch that sort_regions() needs for a region of `count` keys; a region of one value needs none. Pure. */
    int64_t (*region_scratch)(const struct engine *engine, int64_t count);

    /* Sort whole regions: pieces [1 .. ENGINE_PIECES_MAX], in ascending order of region, read in the call. The regions'
     * keys, sorted, go to `out`, one region behind the other; out and scratch overlap neither each other nor the
     * pieces. In a region of one value, each piece stands for `count` keys of the value: as many as are wanted, not as
     * many as there are.
     *   scratch  [the sum of region_scratch() over the regions of several values]
     *   raw      all but from and first is read. decode: out gets the bits that the codes stand for; for numbered keys that
     *            want them, it gets the positions, int64_t. NULL: out gets the codes, in order as far as that goes
     * Keys that do not fit the kernels are left in `out` in no order, as codes, within the bounds of their region, for
     * settle_regions(), which does not know of them if raw is NULL. */
    hsort_status (*sort_regions)(struct engine *engine, int key_bytes, const struct engine_map *map,
                                 const struct engine_piece *pieces, int count, const struct raw_keys *raw,
                                 void *workspace, void *scratch, void *out);

    /* Sort what sort_regions() has left since the last call of this function, or since keys were scattered. It lies in
     * `out`, which must still be there. *unsorted: too much was left for that, and the caller has to sort all that
     * sort_regions() has written since. Keys in no order are then stored as sorted ones are: as bits with decode, else
     * as codes. raw as for sort_regions(); scratch [scratch_bytes] aligned to 256 bytes. Waits for STREAM_WORK. */
    hsort_status (*settle_regions)(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                   void *workspace, void *scratch, size_t scratch_bytes, bool *unsorted);
};

#ifdef __cplusplus
}
#endif
#endif
