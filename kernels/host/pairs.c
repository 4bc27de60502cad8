/* Pairs of several ranks on CPU cores. They are split as bare keys are (partition.c). Regions are sorted as unique
 * codes, each of a key and, below it, the place of its pair in the call; all regions of a call are sorted at once.
 * Values are then taken from those places:
 *
 *     pieces      2b 2d | 1x       codes  2|0 2|1 1|2      sorted  1|2 2|0 2|1      values x b d
 *
 * A rank alone has no such sort here: codes with positions are as fast (kernels/numbered_keys.h). */
#include "kernels/base/lesser.h"
#include "kernels/host/host_engine.h"

enum { ALIGNMENT = 128 }; // of what lies in the workspace

static bool host_can_sort_pairs(const struct engine *engine, const struct engine_pairs *pairs)
{
    (void)engine, (void)pairs;
    return false;
}

static bool host_can_split(const struct engine *engine, const struct engine_pair_regions *regions)
{
    const int bytes = regions->pairs.map.key_bytes;
    (void)engine;
    return (bytes == 4 || bytes == 8) && regions->most <= UINT32_MAX;
}

/* ---- memory: the parts of the split | the radix sort's | codes, twice ------------------------------------ */

static int code_bytes_of(const struct engine_pair_regions *regions)
{
    return 2 * regions->pairs.map.key_bytes;
}

static size_t aligned(size_t bytes)
{
    return bytes_rounded_up(bytes, ALIGNMENT);
}

static size_t host_region_workspace(const struct engine *engine, const struct engine_pair_regions *regions)
{
    const int threads = host_threads(engine);
    return aligned(host_split_workspace(threads)) + aligned(radix_workspace(threads)) +
           2 * aligned((size_t)regions->most * (size_t)code_bytes_of(regions));
}

/* ---- the sort -------------------------------------------------------------------------------------------- */

/* The pieces of a call: pair i of it lies in the last piece that begins at i or before. */
struct call_pieces {
    const struct engine_pair_piece *pieces;
    int count;
    int64_t begin[ENGINE_PIECES_MAX + 1];
};

static int64_t place_of_pair(const struct call_pieces *call, int64_t i)
{
    int low = 0, high = call->count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        *(call->begin[middle] <= i ? &low : &high) = middle;
    }
    return call->pieces[low].first + (i - call->begin[low]);
}

/* Make the codes of a piece's pairs. */
static void make_pair_codes(const struct engine_pair_regions *regions, const struct call_pieces *call,
                            int piece, void *codes)
{
    const int width = regions->pairs.map.key_bytes;
    const struct engine_pair_piece *own = &call->pieces[piece];
    const int64_t begin = call->begin[piece];
    for (int64_t i = 0; i < own->count; i++) {
        const key_code code =
            key_load(width, regions->keys, own->first + i) << (8 * width) | (key_code)(begin + i);
        key_store(code_bytes_of(regions), codes, begin + i, code);
    }
}

/* Bring the pairs from .. to - 1 of sorted codes to the outputs. */
static void store_pairs(const struct engine_pair_regions *regions, const struct call_pieces *call,
                        const void *codes, int64_t from, int64_t to, int64_t out_first)
{
    const struct engine_pairs *pairs = &regions->pairs;
    const int width = pairs->map.key_bytes;
    const int carried = pair_carried_bytes(regions);
    for (int64_t i = from; i < to; i++) {
        const key_code code = key_load(code_bytes_of(regions), codes, i);
        const int64_t place = place_of_pair(call, (int64_t)(uint32_t)code), out = out_first + i;
        const key_code key = keymap_decode(pairs->map, code >> (8 * width));
        const bool is_place = regions->places && place >= pairs->count;
        if (pairs->keys_out)
            key_store(width, pairs->keys_out, out, key);
        key_store(pairs->value_bytes, pairs->values_out, out,
                  is_place ? (key_code)place : key_load(carried, regions->values, place));
    }
}

static hsort_status host_sort_pair_regions(struct engine *engine, const struct engine_pair_regions *regions,
                                           const struct engine_pair_piece *pieces, int count,
                                           int64_t out_first, bool begins)
{
    const int threads = host_threads(engine), code_bytes = code_bytes_of(regions);
    char *radix = (char *)regions->workspace + aligned(host_split_workspace(threads));
    char *codes = radix + aligned(radix_workspace(threads));
    char *scratch = codes + aligned((size_t)regions->most * (size_t)code_bytes);
    struct call_pieces call = {.pieces = pieces, .count = count};
    (void)begins;
    TRY(kernel_takes("sort of regions", regions->pairs.map.key_bytes));
    for (int i = 0; i < count; i++)
        call.begin[i + 1] = call.begin[i] + pieces[i].count;
    const int64_t all = call.begin[count];
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1 && all >= PARALLEL_COUNT)
    for (int i = 0; i < count; i++)
        make_pair_codes(regions, &call, i, codes);
    radix_sort(threads, code_bytes, codes, scratch, all, radix);
#pragma omp parallel for num_threads(threads) if (threads > 1 && all >= PARALLEL_COUNT)
    for (int part = 0; part < threads; part++)
        store_pairs(regions, &call, codes, part_begin(all, part, threads), part_begin(all, part + 1, threads),
                    out_first);
    return HSORT_OK;
}

static hsort_status host_settle_pairs(struct engine *engine, const struct engine_pair_regions *regions)
{
    (void)engine, (void)regions;
    return HSORT_OK;
}

const struct engine_pair_ops host_pair_ops = {
    .can_sort = host_can_sort_pairs,
    .can_split = host_can_split,
    .region_workspace = host_region_workspace,
    .split = host_split_pairs,
    .sort_regions = host_sort_pair_regions,
    .settle_regions = host_settle_pairs,
};
