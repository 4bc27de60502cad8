/* Keys that are sorted by regions, among which they may change ranks: a part of engine.h. */
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

/* Keys of one region, in no order, that lie together. Of a region of one value they lie nowhere. */
struct engine_piece {
    const void *keys; /* [count] codes; engine memory. NULL: the region is of one value */
    int64_t count;
    int region;
};

/* What scatter_to_rooms() has done. Unless it is nothing, some key is followed by a smaller one. */
enum engine_scattered {
    SCATTER_NOTHING, /* keys may be in order, or there is not enough room: count() may tell */
    SCATTER_COUNTED, /* what was likely was wrong: `to` is to be written by scatter(), without gaps */
    SCATTER_MOVED
};

/* Sorting by regions: keys may change ranks between scatter() and sort_regions().
 *
 *     scatter()       keys, any order  ->  region 0 | region 1 | ...        each in no order
 *     sort_regions()  pieces of a few regions, from anywhere  ->  these regions, sorted, one behind the other
 *
 * A value that has a large part of the sample gets a region of its own. Equal keys are equal bits, so the keys of such a
 * region are counted, but not moved: where they are wanted, the value is written as often. With 6 between two others:
 *
 *     keys    6 9 6 1 6 3        count()         1, 3: 2 keys    6: 3 keys    9: 1 key
 *                                scatter()       1 3 | 9
 *     pieces  1 3, 3 keys, 9     sort_regions()  1 3 6 6 6 9 */
struct engine_partition_ops {
    /* Can this device do it? If not, the others are not to be called. Pure. */
    bool (*can)(const struct engine *engine);

    /* Bytes of workspace for all of them, aligned to 256 bytes; it is one and the same in all calls of a sort. */
    size_t (*workspace)(const struct engine *engine, int key_bytes);

    /* Bytes of scratch, aligned to 256, of sample() and make_map(), for a sample of 2^log keys; the same on every rank. Pure. */
    size_t (*sample_scratch)(const struct engine *engine, int key_bytes, int log);

    /* A rank's part of a sample of all ranks: codes[i] is the code of the key at sample_place(share, i), counted from this rank's first
     * one on. Of raw all but decode is read. codes [share->drawn] on the host, key_words() each (key_width.h). Waits for the result. */
    hsort_status (*sample)(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                           const struct sample_share *share, void *scratch, uint64_t *codes);

    /* Make a map for `total` keys from a sample of theirs, codes [2^log] of key_words() on the host, in any order;
     * ENGINE_SAMPLE_LOG_MIN <= log <= .._MAX. of_pairs: of no more regions than engine_pair_ops.split() takes. The map is good on
     * every rank. Waits for the result. */
    hsort_status (*make_map)(struct engine *engine, int key_bytes, const uint64_t *codes, int log,
                             int64_t total, bool of_pairs, void *workspace, void *scratch,
                             struct engine_map *map);

    /* Is a region of one value? It is then the code [key_words()]. On the host, from the map alone. Pure. */
    bool (*region_value)(const struct engine *engine, int key_bytes, const struct engine_map *map, int region,
                         uint64_t *code);

    /* Keys of each region; and is some key followed by a smaller one (*descends)? raw as for sample(); counts [ENGINE_REGIONS] on the
     * host. Waits for the result. */
    hsort_status (*count)(struct engine *engine, int key_bytes, const struct raw_keys *raw, int64_t count,
                          const struct engine_map *map, void *workspace, int64_t *counts, bool *descends);

    /* Put the codes of the keys at raw->from [count] into `to` [count], region by region, without gaps; but
     * those of regions of one value nowhere. count() has just counted them, or scatter_to_rooms(), with the same map and workspace.
     * `to` does not overlap the keys. */
    hsort_status (*scatter)(struct engine *engine, int key_bytes, const struct raw_keys *raw, int64_t count,
                            const struct engine_map *map, void *workspace, void *to);

    /* As count() and scatter() at once, but regions may have gaps behind them, and few keys are read twice. raw and `to` as for those,
     * but `to` [room], room >= count; counts as for count(); region r begins at to[begins[r]], begins [ENGINE_REGIONS + 1] on the host,
     * the last one where all end. Of one value it has no room. *done: what has been done; unless keys have moved, `to` and begins hold
     * nothing of use, and if nothing has, counts neither. Waits for the result. */
    hsort_status (*scatter_to_rooms)(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                     int64_t count, const struct engine_map *map, void *workspace, void *to,
                                     int64_t room, int64_t *counts, int64_t *begins,
                                     enum engine_scattered *done);

    /* Keys of scratch that sort_regions() needs for a region of `count` keys; of one value: none. Pure. */
    int64_t (*region_scratch)(const struct engine *engine, int64_t count);

    /* Sort whole regions: pieces [1 .. ENGINE_PIECES_MAX], in ascending order of region, read in the call.
     * The regions' keys, sorted, go to `out` one region behind the other; out and scratch overlap neither
     * each other nor the pieces. In a region of one value each piece stands for `count` keys of it: so many as
     * are wanted, not so many as there are.
     *   scratch  [the sum of region_scratch() over the regions of several values]
     *   raw      all but from and first is read: decode: out gets the bits that the codes stand for; of numbered keys that
     *            want them the positions, int64_t. NULL: out gets the codes, in order as far as that goes
     * What does not fit the kernels is left in `out` in no order, as codes, within the bounds of its region, for
     * settle_regions(); which does not know of it if raw is NULL. */
    hsort_status (*sort_regions)(struct engine *engine, int key_bytes, const struct engine_map *map,
                                 const struct engine_piece *pieces, int count, const struct raw_keys *raw,
                                 void *workspace, void *scratch, void *out);

    /* Sort what sort_regions() has left since the last call of this, or since keys were scattered, where it lies in
     * `out`, which must still be there. *unsorted: it was too much for that, and somebody has to sort all of it. What is in no order
     * is then stored as what is sorted: as bits with decode, else as codes.
     * raw as for sort_regions(); scratch [scratch_bytes] aligned to 256 bytes. Waits for STREAM_WORK. */
    hsort_status (*settle_regions)(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                   void *workspace, void *scratch, size_t scratch_bytes, bool *unsorted);
};

#ifdef __cplusplus
}
#endif
#endif
