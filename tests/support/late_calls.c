/* Calls on keys and elements that are asynchronous on STREAM_WORK. Each is a struct of its arguments, which is queued, and a function
 * that makes the call with them. Data that engine.h says is read in the call is kept with the struct. */
#include <stdlib.h>
#include <string.h>
#include "tests/support/late_queue.h"

/* ---- keys ------------------------------------------------------------------------------------------------------- */

struct map_call {
    struct keymap map;
    void *to;
    const void *from;
    int64_t count;
};

static hsort_status run_encode(struct engine *engine, const void *call)
{
    const struct map_call *c = call;
    return late_own->encode(engine, c->map, c->to, c->from, c->count);
}

static hsort_status run_decode(struct engine *engine, const void *call)
{
    const struct map_call *c = call;
    return late_own->decode(engine, c->map, c->to, c->from, c->count);
}

static hsort_status add_map(struct engine *engine, const char *name, late_run run, struct map_call map)
{
    struct map_call *c = late_add(engine, STREAM_WORK, name, run, sizeof *c);
    *c = map;
    late_touch(c->to, c->count);
    late_touch(c->from, c->count);
    return HSORT_OK;
}

static hsort_status late_encode(struct engine *engine, struct keymap map, void *to, const void *from,
                                int64_t count)
{
    return add_map(engine, "encode", run_encode, (struct map_call){map, to, from, count});
}

static hsort_status late_decode(struct engine *engine, struct keymap map, void *to, const void *from,
                                int64_t count)
{
    return add_map(engine, "decode", run_decode, (struct map_call){map, to, from, count});
}

struct sort_call {
    int rung, key_bytes;
    void *keys, *scratch;
    int64_t scratch_count, count;
    void *workspace;
    const struct raw_keys *raw;
    void *sorted; /* where the caller was told that the result will be */
};

static hsort_status run_sort(struct engine *engine, const void *call)
{
    const struct sort_call *c = call;
    void *sorted;
    TRY(late_own->sort(engine, c->rung, c->key_bytes, c->keys, c->scratch, c->scratch_count, c->count,
                       c->workspace, c->raw, &sorted));
    if (sorted != c->sorted && c->count > 0)
        memcpy(c->sorted, sorted, (size_t)c->count * (size_t)c->key_bytes);
    return HSORT_OK;
}

/* Codes may end up in either of two places; other results have one place. */
static void *place_of_sorted(void *keys, void *scratch, int64_t scratch_count, int64_t count,
                             const struct raw_keys *raw)
{
    if (raw && raw->decode)
        return raw->position_bits > 0 && raw->positions ? raw->positions : keys;
    return scratch && scratch_count >= count && late_draw(2) ? scratch : keys;
}

static hsort_status late_sort(struct engine *engine, int rung, int key_bytes, void *keys, void *scratch,
                              int64_t scratch_count, int64_t count, void *workspace,
                              const struct raw_keys *raw, void **sorted)
{
    struct sort_call *c = late_add(engine, STREAM_WORK, "sort", run_sort, sizeof *c);
    *sorted = place_of_sorted(keys, scratch, scratch_count, count, raw);
    *c = (struct sort_call){rung,          key_bytes, keys,      scratch,
                            scratch_count, count,     workspace, raw ? late_keep(raw, sizeof *raw) : NULL,
                            *sorted};
    late_touch(keys, count);
    late_touch(scratch, scratch_count);
    late_touch(workspace, count);
    late_touch(raw ? raw->from : NULL, count);
    late_touch(*sorted, count);
    return HSORT_OK;
}

struct merge_call {
    int key_bytes;
    const void *a, *b;
    int64_t a_count, b_count;
    void *out;
};

static hsort_status run_merge(struct engine *engine, const void *call)
{
    const struct merge_call *c = call;
    return late_own->merge(engine, c->key_bytes, c->a, c->a_count, c->b, c->b_count, c->out);
}

static hsort_status late_merge(struct engine *engine, int key_bytes, const void *a, int64_t a_count,
                               const void *b, int64_t b_count, void *out)
{
    struct merge_call *c = late_add(engine, STREAM_WORK, "merge", run_merge, sizeof *c);
    *c = (struct merge_call){key_bytes, a, b, a_count, b_count, out};
    late_touch(a, a_count);
    late_touch(b, b_count);
    late_touch(out, a_count + b_count);
    return HSORT_OK;
}

struct runs_call {
    int key_bytes, k;
    void *runs, *out;
    const int64_t *run_offset;
    void *merged; /* where the caller was told that the result will be */
};

static hsort_status run_merge_runs(struct engine *engine, const void *call)
{
    const struct runs_call *c = call;
    void *merged;
    TRY(late_own->merge_runs(engine, c->key_bytes, c->runs, c->run_offset, c->k, c->out, &merged));
    if (merged != c->merged)
        memcpy(c->merged, merged, (size_t)c->run_offset[c->k] * (size_t)c->key_bytes);
    return HSORT_OK;
}

static hsort_status late_merge_runs(struct engine *engine, int key_bytes, void *runs,
                                    const int64_t *run_offset, int k, void *out, void **merged)
{
    int with_keys = 0;
    for (int i = 0; i < k; i++)
        with_keys += run_offset[i + 1] > run_offset[i];
    *merged = with_keys > 1 && late_draw(2) ? out : runs;
    struct runs_call *c = late_add(engine, STREAM_WORK, "merge of runs", run_merge_runs, sizeof *c);
    *c = (struct runs_call){
        key_bytes, k, runs, out, late_keep(run_offset, (size_t)(k + 1) * sizeof *run_offset), *merged};
    late_touch(runs, run_offset[k]);
    late_touch(out, run_offset[k]);
    return HSORT_OK;
}

struct swap_call {
    int key_bytes;
    void *a, *b;
    int64_t count;
};

static hsort_status run_swap(struct engine *engine, const void *call)
{
    const struct swap_call *c = call;
    return late_own->swap(engine, c->key_bytes, c->a, c->b, c->count);
}

static hsort_status late_swap(struct engine *engine, int key_bytes, void *a, void *b, int64_t count)
{
    struct swap_call *c = late_add(engine, STREAM_WORK, "swap", run_swap, sizeof *c);
    *c = (struct swap_call){key_bytes, a, b, count};
    late_touch(a, count);
    late_touch(b, count);
    return HSORT_OK;
}

/* ---- elements, and keys that are counted ------------------------------------------------------------------------ */

struct codes_call {
    int code_bytes;
    void *codes;
    int64_t count;
    const struct key_field *fields; /* of make_codes() */
    int field_count, position_bits;
    int64_t first;
    int64_t *positions; /* of split_codes(), as what follows */
    struct keymap map;
    void *keys;
};

static hsort_status run_make_codes(struct engine *engine, const void *call)
{
    const struct codes_call *c = call;
    return late_own->make_codes(engine, c->code_bytes, c->codes, c->count, c->fields, c->field_count,
                                c->position_bits, c->first);
}

static hsort_status late_make_codes(struct engine *engine, int code_bytes, void *codes, int64_t count,
                                    const struct key_field *fields, int field_count, int position_bits,
                                    int64_t first)
{
    struct codes_call *c = late_add(engine, STREAM_WORK, "make codes", run_make_codes, sizeof *c);
    *c = (struct codes_call){.code_bytes = code_bytes,
                             .codes = codes,
                             .count = count,
                             .fields = late_keep(fields, (size_t)field_count * sizeof *fields),
                             .field_count = field_count,
                             .position_bits = position_bits,
                             .first = first};
    late_touch(codes, count);
    for (int i = 0; i < field_count; i++)
        late_touch(fields[i].from, count);
    return HSORT_OK;
}

static hsort_status run_split_codes(struct engine *engine, const void *call)
{
    const struct codes_call *c = call;
    return late_own->split_codes(engine, c->code_bytes, c->codes, c->count, c->position_bits, c->positions,
                                 c->map, c->keys);
}

static hsort_status late_split_codes(struct engine *engine, int code_bytes, const void *codes, int64_t count,
                                     int position_bits, int64_t *positions, struct keymap map, void *keys)
{
    struct codes_call *c = late_add(engine, STREAM_WORK, "split codes", run_split_codes, sizeof *c);
    *c = (struct codes_call){.code_bytes = code_bytes,
                             .codes = (void *)(uintptr_t)codes,
                             .count = count,
                             .position_bits = position_bits,
                             .positions = positions,
                             .map = map,
                             .keys = keys};
    late_touch(codes, count);
    late_touch(positions, count);
    late_touch(keys, count);
    return HSORT_OK;
}

static hsort_status run_take(struct engine *engine, const void *call)
{
    return late_own->take(engine, call, NULL);
}

static hsort_status late_take(struct engine *engine, const struct engine_take *take, int64_t *outside)
{
    if (outside) {
        TRY(late_result());
        return late_own->take(engine, take, outside);
    }
    struct engine_take *c = late_add(engine, STREAM_WORK, "take", run_take, sizeof *c);
    *c = *take;
    late_touch(take->to, take->count);
    late_touch(take->positions, take->count);
    late_touch(take->from[0], take->from_count[0]);
    late_touch(take->from[1], take->from_count[1]);
    return HSORT_OK;
}

struct place_call {
    size_t element_bytes;
    void *to;
    int64_t to_count;
    const void *from;
    const int64_t *positions;
    int64_t first, count;
};

static hsort_status run_place(struct engine *engine, const void *call)
{
    const struct place_call *c = call;
    return late_own->place(engine, c->element_bytes, c->to, c->to_count, c->from, c->positions, c->first,
                           c->count, NULL);
}

static hsort_status late_place(struct engine *engine, size_t element_bytes, void *to, int64_t to_count,
                               const void *from, const int64_t *positions, int64_t first, int64_t count,
                               int64_t *outside)
{
    if (outside) {
        TRY(late_result());
        return late_own->place(engine, element_bytes, to, to_count, from, positions, first, count, outside);
    }
    struct place_call *c = late_add(engine, STREAM_WORK, "place", run_place, sizeof *c);
    *c = (struct place_call){element_bytes, to, to_count, from, positions, first, count};
    late_touch(to, to_count);
    late_touch(from, count);
    late_touch(positions, count);
    return HSORT_OK;
}

struct count_call {
    int key_bytes;
    const void *keys;
    int64_t count;
    int64_t *counts;
};

static hsort_status run_count_keys(struct engine *engine, const void *call)
{
    const struct count_call *c = call;
    return late_own->count_keys(engine, c->key_bytes, c->keys, c->count, c->counts);
}

static hsort_status late_count_keys(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                                    int64_t *counts)
{
    struct count_call *c = late_add(engine, STREAM_WORK, "count keys", run_count_keys, sizeof *c);
    *c = (struct count_call){key_bytes, keys, count, counts};
    late_touch(keys, count);
    late_touch(counts, count);
    return HSORT_OK;
}

struct counted_call {
    int key_bytes;
    struct engine_counted counted;
    int64_t first, count;
    void *out;
};

static hsort_status run_write_counted(struct engine *engine, const void *call)
{
    const struct counted_call *c = call;
    return late_own->write_counted(engine, c->key_bytes, &c->counted, c->first, c->count, c->out);
}

static hsort_status late_write_counted(struct engine *engine, int key_bytes,
                                       const struct engine_counted *counted, int64_t first, int64_t count,
                                       void *out)
{
    struct counted_call *c =
        late_add(engine, STREAM_WORK, "write counted keys", run_write_counted, sizeof *c);
    *c = (struct counted_call){key_bytes, *counted, first, count, out};
    late_touch(counted->keys, counted->values);
    late_touch(counted->ends, counted->values);
    late_touch(out, count);
    return HSORT_OK;
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

struct regions_call {
    int key_bytes;
    const struct engine_map *map;
    const struct raw_keys *raw;
    void *workspace, *scratch, *out;
    const struct engine_piece *pieces;
    int count;
    int64_t keys; /* of scatter() */
};

static hsort_status run_scatter(struct engine *engine, const void *call)
{
    const struct regions_call *c = call;
    return late_own->partition->scatter(engine, c->key_bytes, c->raw, c->keys, c->map, c->workspace, c->out);
}

static hsort_status late_scatter(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                 int64_t count, const struct engine_map *map, void *workspace, void *to)
{
    struct regions_call *c = late_add(engine, STREAM_WORK, "scatter", run_scatter, sizeof *c);
    *c = (struct regions_call){.key_bytes = key_bytes,
                               .map = map,
                               .raw = late_keep(raw, sizeof *raw),
                               .workspace = workspace,
                               .out = to,
                               .keys = count};
    late_touch(raw->from, count);
    late_touch(workspace, count);
    late_touch(to, count);
    return HSORT_OK;
}

static hsort_status run_regions(struct engine *engine, const void *call)
{
    const struct regions_call *c = call;
    return late_own->partition->sort_regions(engine, c->key_bytes, c->map, c->pieces, c->count, c->raw,
                                             c->workspace, c->scratch, c->out);
}

static hsort_status late_sort_regions(struct engine *engine, int key_bytes, const struct engine_map *map,
                                      const struct engine_piece *pieces, int count,
                                      const struct raw_keys *raw, void *workspace, void *scratch, void *out)
{
    struct regions_call *c = late_add(engine, STREAM_WORK, "sort of regions", run_regions, sizeof *c);
    *c = (struct regions_call){.key_bytes = key_bytes,
                               .map = map,
                               .raw = raw ? late_keep(raw, sizeof *raw) : NULL,
                               .workspace = workspace,
                               .scratch = scratch,
                               .out = out,
                               .pieces = late_keep(pieces, (size_t)count * sizeof *pieces),
                               .count = count};
    late_touch(workspace, count);
    late_touch(scratch, count);
    late_touch(out, count);
    for (int i = 0; i < count; i++)
        late_touch(pieces[i].keys, pieces[i].count);
    return HSORT_OK;
}

struct pairs_call {
    struct engine_pair_regions regions;
    const struct engine_pair_piece *pieces;
    int count;
    int64_t out_first;
    bool begins;
};

static hsort_status run_sort_pairs(struct engine *engine, const void *call)
{
    const struct pairs_call *c = call;
    return late_own->pairs->sort_regions(engine, &c->regions, c->pieces, c->count, c->out_first, c->begins);
}

static hsort_status late_sort_pairs(struct engine *engine, const struct engine_pair_regions *regions,
                                    const struct engine_pair_piece *pieces, int count, int64_t out_first,
                                    bool begins)
{
    struct pairs_call *c =
        late_add(engine, STREAM_WORK, "sort of regions of pairs", run_sort_pairs, sizeof *c);
    *c = (struct pairs_call){*regions, late_keep(pieces, (size_t)count * sizeof *pieces), count, out_first,
                             begins};
    const void *const arrays[] = {regions->keys,         regions->values,         regions->other_keys,
                                  regions->other_values, regions->spare_keys,     regions->spare_values,
                                  regions->workspace,    regions->pairs.keys_out, regions->pairs.values_out};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        late_touch(arrays[i], count);
    return HSORT_OK;
}

/* ---- packed keys ------------------------------------------------------------------------------------------------ */

int late_pack_fails;

struct pack_call {
    int key_bytes, number;
    struct engine_packing *packings;
};

static hsort_status run_pack(struct engine *engine, const void *call)
{
    const struct pack_call *c = call;
    if (late_pack_fails > 0 && --late_pack_fails == 0)
        return status_fail(HSORT_INTERNAL, "a pack has failed");
    return late_own->packing->pack(engine, c->key_bytes, c->packings, c->number);
}

static hsort_status run_unpack(struct engine *engine, const void *call)
{
    const struct pack_call *c = call;
    return late_own->packing->unpack(engine, c->key_bytes, c->packings, c->number);
}

static struct pack_call *add_packings(struct engine *engine, const char *name, late_run run, int key_bytes,
                                      const struct engine_packing *packings, int number)
{
    struct pack_call *c = late_add(engine, STREAM_WORK, name, run, sizeof *c);
    *c = (struct pack_call){key_bytes, number, late_keep(packings, (size_t)number * sizeof *packings)};
    for (int i = 0; i < number; i++) {
        late_touch(packings[i].from, packings[i].count);
        late_touch(packings[i].to, packings[i].count);
    }
    return c;
}

static const int64_t ANY_BYTES = INT64_C(1) << 40;

/* Nobody knows the number of bytes before the work is done, or if it fails. */
static hsort_status late_pack(struct engine *engine, int key_bytes, const struct engine_packing *packings,
                              int number)
{
    add_packings(engine, "pack", run_pack, key_bytes, packings, number);
    for (int i = 0; i < number; i++) {
        *packings[i].bytes = ANY_BYTES;
        late_touch(packings[i].bytes, 1);
    }
    return HSORT_OK;
}

static hsort_status late_unpack(struct engine *engine, int key_bytes, const struct engine_packing *packings,
                                int number)
{
    struct pack_call *c = add_packings(engine, "unpack", run_unpack, key_bytes, packings, number);
    int64_t *bytes = late_memory((size_t)number * sizeof *bytes);
    for (int i = 0; i < number; i++)
        bytes[i] = *packings[i].bytes;
    int64_t *kept = late_keep(bytes, (size_t)number * sizeof *bytes);
    for (int i = 0; i < number; i++)
        c->packings[i].bytes = &kept[i];
    free(bytes);
    return HSORT_OK;
}

void late_put_calls(struct late_tables *tables)
{
    struct engine_ops *ops = &tables->ops;
    ops->encode = late_encode;
    ops->decode = late_decode;
    ops->sort = late_sort;
    ops->merge = late_merge;
    ops->merge_runs = late_merge_runs;
    ops->swap = late_swap;
    ops->make_codes = late_make_codes;
    ops->split_codes = late_split_codes;
    ops->take = late_take;
    ops->place = late_place;
    ops->count_keys = late_count_keys;
    ops->write_counted = late_write_counted;
    tables->partition.scatter = late_scatter;
    tables->partition.sort_regions = late_sort_regions;
    tables->pairs.sort_regions = late_sort_pairs;
    tables->packing.pack = late_pack;
    tables->packing.unpack = late_unpack;
}
