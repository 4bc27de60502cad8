/* Sorting by regions on CPU cores: keys go to their region before they change ranks, and are sorted where they arrive.
 *
 * The map is a row of bounds: every (2^log / ENGINE_REGIONS)-th key of the sorted sample, except the first. A key's
 * region is the number of bounds that are not greater than its code. So equal keys share a region. A value that fills
 * several shares of the sample would be several bounds: all of these but the first become the value above it instead,
 * so that the value has a region of its own. Here with 4 regions and a sample of 12:
 *
 *     sample, sorted    1 2 2 | 4 5 6 | 6 6 6 | 6 8 9        bounds 4 6 7, not 4 6 6
 *     region of         3 -> 0     4 -> 1     5 -> 1     6 -> 2     9 -> 3          region 2: [6, 7), one value
 *
 * A step of the search for a region adds half of what is left to add, or nothing. Every key takes as many steps, and no
 * branch depends on a key, so skew costs nothing. But each step waits for the one before, so TOGETHER keys are searched
 * for in step. A table of leading bits would spare keys that are spread evenly some steps, but does not help keys that
 * lie close together.
 *
 *     half 2    bounds[1] <= key ?             then region += 2
 *     half 1    bounds[region + 0] <= key ?    then region += 1
 *
 * Partition and threads: as in radix.c, each thread counts and later moves one contiguous part of the keys; region by
 * region, and in a region thread by thread, the counts become the places to write to. They stay in the workspace in
 * between. The parts are those of a loop, not of the threads that OpenMP gives, because there may be fewer threads the
 * second time.
 *
 *     keys      7 1 5 | 3 9 6                     two parts, regions 3 0 1 | 0 3 2
 *     counts    of regions 0 1 2 3                1 1 0 1 | 1 0 1 1
 *     places                                      0 2 . 3 | 1 . . 4        none in region 2: its keys stay
 *     to        1 3 5 7 9
 *
 * Sorting: the pieces are copied to where their regions belong, and each region is sorted there by radix.c; for a
 * region of one value, the value is written there. Threads take regions; a region with more keys than a thread's share
 * of the call is sorted by all of them together.
 *
 * Source   Blelloch, Leiserson, Maggs, Plaxton, Smith, Zagha, "A comparison of sorting algorithms for the Connection
 *          Machine CM-2", 1991 (sample sort); Sanders, Winkel, "Super scalar sample sort", 2004 (search without
 *          branches, many keys in step). */
#include <omp.h>
#include <string.h>
#include "kernels/host/host_engine.h"
#include "kernels/numbered_keys.h"

enum {
    BOUNDS = ENGINE_REGIONS - 1,
    TOGETHER = 8,   // keys whose regions are searched for in step
    NOWHERE = -1,   // the place of keys that do not move
    ALIGNMENT = 128 // of what lies in the workspace
};
_Static_assert((ENGINE_REGIONS & BOUNDS) == 0, "a search halves the regions down to one");

/* The types of bounds of codes: one more than the largest code fits, or wraps round to 0. A map is aligned to words of
 * 64 bits. */
typedef uint64_t bound_u32, bound_u64;
typedef uint128 bound_u128 __attribute__((aligned(sizeof(uint64_t))));
_Static_assert(BOUNDS * sizeof(bound_u128) <= sizeof(struct engine_map), "the bounds fit a map");

/* One thread's part of the keys. The workspace begins with one for each thread. */
struct partition_part {
    // Place of its next key of a region, or NOWHERE; before that, the number of such keys.
    _Alignas(ALIGNMENT) int64_t next[ENGINE_REGIONS];
    bool descends;
};

/* The workspace behind the parts: [radix_workspace(threads)]. */
static void *radix_space(int threads, void *workspace)
{
    return (struct partition_part *)workspace + threads;
}

size_t host_split_workspace(int threads)
{
    return (size_t)threads * sizeof(struct partition_part);
}

static size_t host_partition_workspace(const struct engine *engine, int key_bytes)
{
    const int threads = host_threads(engine);
    (void)key_bytes;
    return host_split_workspace(threads) + radix_workspace(threads);
}

static size_t sample_words(int key_bytes, int log)
{
    return (size_t)key_words(key_bytes) << log;
}

/* Codes [2^log], twice. */
static size_t host_sample_scratch(const struct engine *engine, int key_bytes, int log)
{
    (void)engine;
    return 2 * sizeof(uint64_t) * sample_words(key_bytes, log);
}

/* Values that move with keys. */
struct host_pair_values {
    const void *from; /* NULL: `first` and those above */
    int64_t first;
    void *to;
    int bytes; /* where they go: 4 or 8 */
};

static inline void move_value(const struct host_pair_values *values, int64_t i, int64_t place)
{
    key_store(values->bytes, values->to, place,
              values->from ? key_load(values->bytes, values->from, i) : (key_code)(values->first + i));
}

/* The code of numbered key `at`. */
static key_code numbered_code(const struct raw_keys *raw, int64_t at)
{
    const key_code key = keymap_encode(raw->map, key_load(raw->map.key_bytes, raw->from, at));
    return key << raw->position_bits | (key_code)(raw->first + at);
}

#define KEY_WIDTH_BODY "kernels/host/partition_body.h"
#include "kernels/host/for_key_widths.h"

/* ---- sample and map ---- */

static hsort_status host_partition_sample(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                          const struct sample_share *share, void *scratch, uint64_t *codes)
{
    const int threads = host_threads(engine);
    (void)scratch;
    TRY(kernel_takes("sample of keys", key_bytes));
#pragma omp parallel for num_threads(threads) if (threads > 1 && share->drawn >= PARALLEL_COUNT)
    for (int i = 0; i < share->drawn; i++) {
        const int64_t at = sample_place(share, i) - share->before;
        words_store(key_bytes, codes, i,
                    is_numbered(raw) ? numbered_code(raw, at)
                                     : keymap_encode(raw->map, key_load(key_bytes, raw->from, at)));
    }
    return HSORT_OK;
}

static hsort_status host_partition_map(struct engine *engine, int key_bytes, const uint64_t *codes, int log,
                                       int64_t total, bool of_pairs, void *workspace, void *scratch,
                                       struct engine_map *map)
{
    const int threads = host_threads(engine);
    uint64_t *sorted = scratch;
    const int64_t sample = INT64_C(1) << log;
    const int code_bytes = key_words(key_bytes) * (int)sizeof *codes;
    (void)total, (void)of_pairs;
    TRY(kernel_takes("map of regions", key_bytes));
    memcpy(sorted, codes, (size_t)(sample * code_bytes));
    radix_sort(threads, code_bytes, sorted, sorted + sample_words(key_bytes, log), sample,
               radix_space(threads, workspace));
    memset(map, 0, sizeof *map); // all of its bytes travel
    KEY_CALL(key_bytes, make_bounds, (const void *)sorted, sample / ENGINE_REGIONS, (void *)map->bytes);
    return HSORT_OK;
}

/* Is a region of one value? *code: the least code of the region. */
static bool region_starts(int key_bytes, const struct engine_map *map, int region, key_code *code)
{
    KEY_RETURN(key_bytes, region_bounds, (const void *)map->bytes, region, code);
}

static bool host_region_value(const struct engine *engine, int key_bytes, const struct engine_map *map,
                              int region, uint64_t *code)
{
    key_code least = 0;
    (void)engine;
    const bool is_one = region_starts(key_bytes, map, region, &least);
    words_store(key_bytes, code, 0, least);
    return is_one;
}

/* ---- partition ---- */

/* Turn the parts' counts into places; counts [ENGINE_REGIONS] = keys of each region, begins [ENGINE_REGIONS + 1] =
 * where they begin. all_move: keys of regions of one value move, too. gap: places that stay free behind each region. */
static void place_parts(int key_bytes, const struct engine_map *map, bool all_move, int64_t gap,
                        struct partition_part *parts, int number, int64_t *counts, int64_t *begins)
{
    begins[0] = 0;
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        key_code code;
        const bool moves = all_move || !region_starts(key_bytes, map, region, &code);
        counts[region] = 0;
        for (int part = 0; part < number; part++) {
            const int64_t keys_here = parts[part].next[region];
            parts[part].next[region] = moves ? begins[region] + counts[region] : NOWHERE;
            counts[region] += keys_here;
        }
        begins[region + 1] = begins[region] + (moves ? counts[region] + gap : 0);
    }
}

/* Count keys by region, a part for each thread, and turn the counts into places. Other arguments as for place_parts().
 * Returns whether some key is followed by a smaller one. */
static bool count_regions(int threads, int key_bytes, const struct raw_keys *raw, int64_t count,
                          const struct engine_map *map, bool all_move, int64_t gap,
                          struct partition_part *parts, int64_t *counts, int64_t *begins)
{
    bool descends = false;
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
    for (int part = 0; part < threads; part++)
        KEY_CALL(key_bytes, count_part, raw, part_begin(count, part, threads),
                 part_begin(count, part + 1, threads), (const void *)map->bytes, &parts[part]);
    for (int part = 0; part < threads; part++)
        descends |= parts[part].descends;
    place_parts(key_bytes, map, all_move, gap, parts, threads, counts, begins);
    return descends;
}

/* Move keys [count], and values with them unless `values` is NULL, to the places that the parts have. */
static void move_parts(int threads, int key_bytes, const struct raw_keys *raw, int64_t count,
                       const struct engine_map *map, struct partition_part *parts, void *to,
                       const struct host_pair_values *values)
{
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
    for (int part = 0; part < threads; part++)
        KEY_CALL(key_bytes, move_part, raw, part_begin(count, part, threads),
                 part_begin(count, part + 1, threads), (const void *)map->bytes, &parts[part], to, values);
}

static hsort_status host_partition_count(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                         int64_t count, const struct engine_map *map, void *workspace,
                                         int64_t *counts, bool *descends)
{
    int64_t begins[ENGINE_REGIONS + 1];
    TRY(kernel_takes("count of regions", key_bytes));
    *descends =
        count_regions(host_threads(engine), key_bytes, raw, count, map, false, 0, workspace, counts, begins);
    return HSORT_OK;
}

/* The workspace still holds where each thread's keys go. */
static hsort_status host_partition_scatter(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                           int64_t count, const struct engine_map *map, void *workspace,
                                           void *to)
{
    TRY(kernel_takes("partition", key_bytes));
    move_parts(host_threads(engine), key_bytes, raw, count, map, workspace, to, NULL);
    return HSORT_OK;
}

/* Each thread needs places of its own, so all keys are counted. The gaps are such as another engine may leave, so that
 * whoever reads regions is held to the same contract. */
static hsort_status host_scatter_to_rooms(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                          int64_t count, const struct engine_map *map, void *workspace,
                                          void *to, int64_t room, int64_t *counts, int64_t *begins,
                                          enum engine_scattered *done)
{
    *done = SCATTER_NOTHING;
    TRY(kernel_takes("scatter to rooms", key_bytes));
    if (!count_regions(host_threads(engine), key_bytes, raw, count, map, false,
                       (room - count) / ENGINE_REGIONS, workspace, counts, begins))
        return HSORT_OK;
    TRY(host_partition_scatter(engine, key_bytes, raw, count, map, workspace, to));
    *done = SCATTER_MOVED;
    return HSORT_OK;
}

hsort_status host_split_pairs(struct engine *engine, const struct engine_pair_regions *regions, int64_t first,
                              const struct engine_map *map, int64_t *counts)
{
    const struct engine_pairs *pairs = &regions->pairs;
    const int threads = host_threads(engine), width = pairs->map.key_bytes;
    const struct raw_keys raw = {.map = pairs->map, .from = pairs->keys};
    const struct host_pair_values values = {
        .from = pairs->values, .first = first, .to = regions->values, .bytes = pair_carried_bytes(regions)};
    int64_t begins[ENGINE_REGIONS + 1];
    TRY(kernel_takes("split of pairs", width));
    count_regions(threads, width, &raw, pairs->count, map, true, 0, regions->workspace, counts, begins);
    move_parts(threads, width, &raw, pairs->count, map, regions->workspace, regions->keys, &values);
    return HSORT_OK;
}

/* ---- sorting ---- */

/* Where a region lies in `out`, and what it has of the scratch. */
struct region_place {
    int64_t start, keys, scratch;
    bool is_one_value;
    key_code code; /* of one value */
};

/* Copy pieces [count] to `out`, one behind the other, and find the regions they make. Returns how many regions there
 * are. */
static int copy_pieces(int threads, int key_bytes, const struct engine_map *map,
                       const struct engine_piece *pieces, int count, char *out, struct region_place *regions)
{
    int found = 0;
    int64_t start[ENGINE_PIECES_MAX], place = 0, scratch = 0;
    for (int i = 0; i < count; i++) {
        if (i == 0 || pieces[i].region != pieces[i - 1].region) {
            struct region_place *region = &regions[found++];
            *region = (struct region_place){place, 0, scratch, false, 0};
            region->is_one_value = region_starts(key_bytes, map, pieces[i].region, &region->code);
        }
        regions[found - 1].keys += pieces[i].count;
        start[i] = place;
        place += pieces[i].count;
        scratch += regions[found - 1].is_one_value ? 0 : pieces[i].count;
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1 && place >= PARALLEL_COUNT)
    for (int i = 0; i < count; i++)
        if (pieces[i].count > 0 && pieces[i].keys)
            memcpy(out + start[i] * key_bytes, pieces[i].keys, (size_t)(pieces[i].count * key_bytes));
    return found;
}

/* What a code is stored as. */
static key_code stored_code(const struct raw_keys *raw, key_code code)
{
    if (wants_positions(raw))
        return code & (((key_code)1 << raw->position_bits) - 1);
    return raw->decode && !is_numbered(raw) ? keymap_decode(raw->map, code) : code;
}

/* Write the value of a region as often as it is wanted. */
static void write_value(int threads, int width, const struct region_place *region, const struct raw_keys *raw,
                        char *out)
{
    const key_code key = stored_code(raw, region->code);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int part = 0; part < threads; part++)
        repeat_key(width, key, out, region->start + part_begin(region->keys, part, threads),
                   region->start + part_begin(region->keys, part + 1, threads));
}

/* Turn codes of 8 bytes into their positions. */
static void leave_positions(int threads, const struct raw_keys *raw, uint64_t *codes, int64_t count)
{
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++)
        codes[i] = (uint64_t)stored_code(raw, codes[i]);
}

/* Sort one region where it lies. radix [radix_workspace(threads)]. */
static void sort_region(int threads, int width, const struct region_place *region, const struct raw_keys *raw,
                        void *radix, char *scratch, char *out)
{
    char *keys = out + region->start * width;
    if (region->is_one_value) {
        write_value(threads, width, region, raw, out);
        return;
    }
    radix_sort(threads, width, keys, scratch + region->scratch * width, region->keys, radix);
    if (wants_positions(raw))
        leave_positions(threads, raw, (uint64_t *)keys, region->keys);
    else if (raw->decode && !is_numbered(raw) && !raw->map.identity)
        map_keys(threads, raw->map, true, keys, keys, region->keys);
}

static int64_t host_region_scratch(const struct engine *engine, int64_t count)
{
    (void)engine;
    return count;
}

/* The radix sort takes a region of any size. */
static hsort_status host_sort_regions(struct engine *engine, int key_bytes, const struct engine_map *map,
                                      const struct engine_piece *pieces, int count,
                                      const struct raw_keys *raw, void *workspace, void *scratch, void *out)
{
    const int threads = host_threads(engine);
    char *radix = radix_space(threads, workspace);
    struct region_place regions[ENGINE_PIECES_MAX];
    TRY(kernel_takes("sort of regions", key_bytes));
    const struct raw_keys codes = {.map = keymap_of_codes(key_bytes)};
    raw = raw ? raw : &codes;
    const int found = copy_pieces(threads, key_bytes, map, pieces, count, out, regions);
    const int64_t all = regions[found - 1].start + regions[found - 1].keys;
    const int team = all < PARALLEL_COUNT ? 1 : threads;
    for (int i = 0; i < found; i++)
        if (regions[i].keys > all / team)
            sort_region(team, key_bytes, &regions[i], raw, radix, scratch, out);
#pragma omp parallel for schedule(dynamic) num_threads(team) if (team > 1)
    for (int i = 0; i < found; i++)
        if (regions[i].keys <= all / team)
            sort_region(1, key_bytes, &regions[i], raw,
                        radix + (size_t)omp_get_thread_num() * radix_workspace(1), scratch, out);
    return HSORT_OK;
}

static hsort_status host_settle_regions(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                        void *workspace, void *scratch, size_t scratch_bytes, bool *unsorted)
{
    (void)engine, (void)key_bytes, (void)raw, (void)workspace, (void)scratch, (void)scratch_bytes;
    *unsorted = fault_hit(FAULT_LEFT); // nothing has been left
    return HSORT_OK;
}

static bool host_can_partition(const struct engine *engine)
{
    (void)engine;
    return true;
}

const struct engine_partition_ops host_partition_ops = {
    .can = host_can_partition,
    .workspace = host_partition_workspace,
    .sample_scratch = host_sample_scratch,
    .sample = host_partition_sample,
    .make_map = host_partition_map,
    .region_value = host_region_value,
    .count = host_partition_count,
    .scatter = host_partition_scatter,
    .scatter_to_rooms = host_scatter_to_rooms,
    .region_scratch = host_region_scratch,
    .sort_regions = host_sort_regions,
    .settle_regions = host_settle_regions,
};
