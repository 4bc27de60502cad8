/* Each function of an engine with a span around it. A function that is missing here is called as ever, and leaves no
 * span. */
#include "kernels/traced_calls.h"

/* Begin a call on STREAM_WORK, for keys. */
static struct traced_call begin_work(struct engine *engine, const char *name, int64_t keys)
{
    return traced_begin(engine, STREAM_WORK, name, keys, -1);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static hsort_status traced_alloc(struct engine *engine, size_t bytes, void **memory)
{
    const struct traced_call call = traced_begin(engine, NO_STREAM, "allocate", -1, (int64_t)bytes);
    return traced_end(&call, call.own->alloc(engine, bytes, memory));
}

static void traced_free(struct engine *engine, void *memory)
{
    if (!memory)
        return;
    const struct traced_call call = traced_begin(engine, NO_STREAM, "free", -1, -1);
    call.own->free(engine, memory);
    traced_end(&call, HSORT_OK);
}

static hsort_status traced_alloc_host(struct engine *engine, size_t bytes, void **memory)
{
    const struct traced_call call =
        traced_begin(engine, NO_STREAM, "allocate host memory", -1, (int64_t)bytes);
    return traced_end(&call, call.own->alloc_host(engine, bytes, memory));
}

static bool traced_pin(struct engine *engine, void *memory, size_t bytes)
{
    const struct traced_call call = traced_begin(engine, NO_STREAM, "pin", -1, (int64_t)bytes);
    const bool pinned = call.own->pin(engine, memory, bytes);
    traced_end(&call, HSORT_OK);
    return pinned;
}

static hsort_status traced_peer_open(struct engine *engine, const struct engine_peer_handle *handle,
                                     void **memory)
{
    const struct traced_call call =
        traced_begin(engine, NO_STREAM, "map peer memory", -1, (int64_t)handle->bytes);
    return traced_end(&call, call.own->peer->open(engine, handle, memory));
}

/* ---- streams ------------------------------------------------------------------------------------------- */

static hsort_status traced_copy(struct engine *engine, enum engine_stream stream, void *to, const void *from,
                                size_t bytes)
{
    const struct traced_call call = traced_begin(engine, (int)stream, "copy", -1, (int64_t)bytes);
    return traced_end(&call, call.own->copy(engine, stream, to, from, bytes));
}

static hsort_status traced_transfer(struct engine *engine, const struct engine_transfer *in, int in_count,
                                    const struct engine_transfer *out, int out_count)
{
    int64_t bytes = 0;
    for (int i = 0; i < in_count; i++)
        bytes += (int64_t)in[i].bytes;
    for (int i = 0; i < out_count; i++)
        bytes += (int64_t)out[i].bytes;
    const int stream = in_count > 0 && out_count > 0 ? BOTH_COPIES : in_count > 0 ? STREAM_IN : STREAM_OUT;
    const struct traced_call call =
        traced_begin(engine, in_count + out_count == 0 ? NO_STREAM : stream, "transfer", -1, bytes);
    return traced_end(&call, call.own->transfer(engine, in, in_count, out, out_count));
}

static hsort_status traced_stream_synchronize(struct engine *engine, enum engine_stream stream)
{
    static const char *const names[ENGINE_STREAMS] = {"wait for stream work", "wait for stream out",
                                                      "wait for stream in"};
    const struct traced_call call = traced_begin(engine, NO_STREAM, names[stream], -1, -1);
    return traced_end(&call, call.own->stream_synchronize(engine, stream));
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

static hsort_status traced_encode(struct engine *engine, struct keymap map, void *to, const void *from,
                                  int64_t count)
{
    const struct traced_call call = begin_work(engine, "encode", count);
    return traced_end(&call, call.own->encode(engine, map, to, from, count));
}

static hsort_status traced_decode(struct engine *engine, struct keymap map, void *to, const void *from,
                                  int64_t count)
{
    const struct traced_call call = begin_work(engine, "decode", count);
    return traced_end(&call, call.own->decode(engine, map, to, from, count));
}

static hsort_status traced_sort(struct engine *engine, int rung, int key_bytes, void *keys, void *scratch,
                                int64_t scratch_count, int64_t count, void *workspace,
                                const struct raw_keys *raw, void **sorted)
{
    const struct traced_call call = begin_work(engine, "sort", count);
    return traced_end(&call, call.own->sort(engine, rung, key_bytes, keys, scratch, scratch_count, count,
                                            workspace, raw, sorted));
}

static hsort_status traced_merge(struct engine *engine, int key_bytes, const void *a, int64_t a_count,
                                 const void *b, int64_t b_count, void *out)
{
    const struct traced_call call = begin_work(engine, "merge", a_count + b_count);
    return traced_end(&call, call.own->merge(engine, key_bytes, a, a_count, b, b_count, out));
}

static hsort_status traced_merge_runs(struct engine *engine, int key_bytes, void *runs,
                                      const int64_t *run_offset, int k, void *out, void **merged)
{
    const struct traced_call call = begin_work(engine, "merge runs", run_offset[k]);
    return traced_end(&call, call.own->merge_runs(engine, key_bytes, runs, run_offset, k, out, merged));
}

static hsort_status traced_cut(struct engine *engine, int key_bytes, const void *a, int64_t a_count,
                               const void *b, int64_t b_count, int64_t outputs, int64_t *from_a)
{
    const struct traced_call call = begin_work(engine, "cut", a_count + b_count);
    return traced_end(&call, call.own->cut(engine, key_bytes, a, a_count, b, b_count, outputs, from_a));
}

static hsort_status traced_swap(struct engine *engine, int key_bytes, void *a, void *b, int64_t count)
{
    const struct traced_call call = begin_work(engine, "swap", count);
    return traced_end(&call, call.own->swap(engine, key_bytes, a, b, count));
}

static hsort_status traced_gather(struct engine *engine, int key_bytes, const void *keys,
                                  const int64_t *positions, int count, key_code *codes)
{
    const struct traced_call call = begin_work(engine, "look up keys", count);
    return traced_end(&call, call.own->gather(engine, key_bytes, keys, positions, count, codes));
}

static hsort_status traced_search(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                                  const key_code *probes, int probe_count, int64_t *less,
                                  int64_t *not_greater)
{
    const struct traced_call call = begin_work(engine, "search", count);
    return traced_end(
        &call, call.own->search(engine, key_bytes, keys, count, probes, probe_count, less, not_greater));
}

static hsort_status traced_inspect(struct engine *engine, struct keymap map, const void *keys, int64_t count,
                                   struct engine_inspection *result)
{
    const struct traced_call call = begin_work(engine, "inspect", count);
    return traced_end(&call, call.own->inspect(engine, map, keys, count, result));
}

/* ---- elements, and keys that are counted --------------------------------------------------------------- */

static hsort_status traced_make_codes(struct engine *engine, int code_bytes, void *codes, int64_t count,
                                      const struct key_field *fields, int field_count, int position_bits,
                                      int64_t first)
{
    const struct traced_call call = begin_work(engine, "make codes", count);
    return traced_end(&call, call.own->make_codes(engine, code_bytes, codes, count, fields, field_count,
                                                  position_bits, first));
}

static hsort_status traced_split_codes(struct engine *engine, int code_bytes, const void *codes,
                                       int64_t count, int position_bits, int64_t *positions,
                                       struct keymap map, void *keys)
{
    const struct traced_call call = begin_work(engine, "split codes", count);
    return traced_end(
        &call, call.own->split_codes(engine, code_bytes, codes, count, position_bits, positions, map, keys));
}

static hsort_status traced_take(struct engine *engine, const struct engine_take *take, int64_t *outside)
{
    const struct traced_call call = begin_work(engine, "take", take->count);
    return traced_end(&call, call.own->take(engine, take, outside));
}

static hsort_status traced_place(struct engine *engine, size_t element_bytes, void *to, int64_t to_count,
                                 const void *from, const int64_t *positions, int64_t first, int64_t count,
                                 int64_t *outside)
{
    const struct traced_call call = begin_work(engine, "place", count);
    return traced_end(
        &call, call.own->place(engine, element_bytes, to, to_count, from, positions, first, count, outside));
}

static hsort_status traced_count_runs(struct engine *engine, struct engine_runs *runs)
{
    const struct traced_call call = begin_work(engine, "count runs", runs->count);
    return traced_end(&call, call.own->count_runs(engine, runs));
}

static hsort_status traced_write_runs(struct engine *engine, const struct engine_runs *runs)
{
    const struct traced_call call = begin_work(engine, "write runs", runs->count);
    return traced_end(&call, call.own->write_runs(engine, runs));
}

static hsort_status traced_inspect_elements(struct engine *engine, const struct engine_elements *elements,
                                            struct engine_inspection *result)
{
    const struct traced_call call = begin_work(engine, "inspect", elements->count);
    return traced_end(&call, call.own->inspect_elements(engine, elements, result));
}

static hsort_status traced_count_keys(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                                      int64_t *counts)
{
    const struct traced_call call = begin_work(engine, "count keys", count);
    return traced_end(&call, call.own->count_keys(engine, key_bytes, keys, count, counts));
}

static hsort_status traced_write_counted(struct engine *engine, int key_bytes,
                                         const struct engine_counted *counted, int64_t first, int64_t count,
                                         void *out)
{
    const struct traced_call call = begin_work(engine, "write counted keys", count);
    return traced_end(&call, call.own->write_counted(engine, key_bytes, counted, first, count, out));
}

static hsort_status traced_beats_codes(struct engine *engine, const struct engine_pairs *pairs, bool *beats)
{
    const struct traced_call call = begin_work(engine, "look at pairs", pairs->count);
    return traced_end(&call, call.own->pairs->beats_codes(engine, pairs, beats));
}

static hsort_status traced_sort_pairs(struct engine *engine, const struct engine_pairs *pairs,
                                      void *workspace)
{
    const struct traced_call call = begin_work(engine, "sort pairs", pairs->count);
    return traced_end(&call, call.own->pairs->sort(engine, pairs, workspace));
}

static hsort_status traced_split_pairs(struct engine *engine, const struct engine_pair_regions *regions,
                                       int64_t first, const struct engine_map *map, int64_t *counts)
{
    const struct traced_call call = begin_work(engine, "split pairs", regions->pairs.count);
    return traced_end(&call, call.own->pairs->split(engine, regions, first, map, counts));
}

static hsort_status traced_sort_pair_regions(struct engine *engine, const struct engine_pair_regions *regions,
                                             const struct engine_pair_piece *pieces, int count, int64_t out_first,
                                             bool begins)
{
    int64_t keys = 0;
    for (int i = 0; i < count; i++)
        keys += pieces[i].count;
    const struct traced_call call = begin_work(engine, "sort regions of pairs", keys);
    return traced_end(&call, call.own->pairs->sort_regions(engine, regions, pieces, count, out_first, begins));
}

static hsort_status traced_settle_pairs(struct engine *engine, const struct engine_pair_regions *regions)
{
    const struct traced_call call = begin_work(engine, "settle pairs", regions->most);
    return traced_end(&call, call.own->pairs->settle_regions(engine, regions));
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static hsort_status traced_sample(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                  const struct sample_share *share, void *scratch, uint64_t *codes)
{
    const struct traced_call call = begin_work(engine, "sample", share->drawn);
    return traced_end(&call, call.own->partition->sample(engine, key_bytes, raw, share, scratch, codes));
}

static hsort_status traced_make_map(struct engine *engine, int key_bytes, const uint64_t *codes, int log,
                                    int64_t total, bool of_pairs, void *workspace, void *scratch,
                                    struct engine_map *map)
{
    const struct traced_call call = begin_work(engine, "make map", (int64_t)1 << log);
    return traced_end(&call, call.own->partition->make_map(engine, key_bytes, codes, log, total, of_pairs,
                                                           workspace, scratch, map));
}

static hsort_status traced_count_regions(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                         int64_t count, const struct engine_map *map, void *workspace,
                                         int64_t *counts, bool *descends)
{
    const struct traced_call call = begin_work(engine, "count regions", count);
    return traced_end(
        &call, call.own->partition->count(engine, key_bytes, raw, count, map, workspace, counts, descends));
}

static hsort_status traced_scatter(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                   int64_t count, const struct engine_map *map, void *workspace, void *to)
{
    const struct traced_call call = begin_work(engine, "scatter", count);
    return traced_end(&call, call.own->partition->scatter(engine, key_bytes, raw, count, map, workspace, to));
}

static hsort_status traced_scatter_to_rooms(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                            int64_t count, const struct engine_map *map, void *workspace,
                                            void *to, int64_t room, int64_t *counts, int64_t *begins,
                                            enum engine_scattered *done)
{
    const struct traced_call call = begin_work(engine, "scatter to rooms", count);
    return traced_end(&call,
                      call.own->partition->scatter_to_rooms(engine, key_bytes, raw, count, map, workspace, to,
                                                            room, counts, begins, done));
}

static int64_t piece_keys(const struct engine_piece *pieces, int count)
{
    int64_t keys = 0;
    for (int i = 0; i < count; i++)
        keys += pieces[i].count;
    return keys;
}

static hsort_status traced_sort_regions(struct engine *engine, int key_bytes, const struct engine_map *map,
                                        const struct engine_piece *pieces, int count,
                                        const struct raw_keys *raw, void *workspace, void *scratch, void *out)
{
    const struct traced_call call =
        begin_work(engine, raw ? "sort regions" : "order regions", piece_keys(pieces, count));
    return traced_end(&call, call.own->partition->sort_regions(engine, key_bytes, map, pieces, count, raw,
                                                               workspace, scratch, out));
}

static hsort_status traced_settle_regions(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                          void *workspace, void *scratch, size_t scratch_bytes,
                                          bool *unsorted)
{
    const struct traced_call call = begin_work(engine, "settle regions", -1);
    return traced_end(&call, call.own->partition->settle_regions(engine, key_bytes, raw, workspace, scratch,
                                                                 scratch_bytes, unsorted));
}

static int64_t packed_keys(const struct engine_packing *packings, int number)
{
    int64_t keys = 0;
    for (int i = 0; i < number; i++)
        keys += packings[i].count;
    return keys;
}

static hsort_status traced_pack(struct engine *engine, int key_bytes, const struct engine_packing *packings, int number)
{
    const struct traced_call call = begin_work(engine, "pack", packed_keys(packings, number));
    return traced_end(&call, call.own->packing->pack(engine, key_bytes, packings, number));
}

static hsort_status traced_unpack(struct engine *engine, int key_bytes, const struct engine_packing *packings, int number)
{
    const struct traced_call call = begin_work(engine, "unpack", packed_keys(packings, number));
    return traced_end(&call, call.own->packing->unpack(engine, key_bytes, packings, number));
}

/* ---- the table ----------------------------------------------------------------------------------------- */

/* Wrap the groups of functions that not every engine has. */
static void wrap_groups(struct traced_tables *t, const struct engine_ops *own)
{
    if (own->peer) {
        t->peer = *own->peer;
        t->peer.open = traced_peer_open;
        t->ops.peer = &t->peer;
    }
    if (own->partition) {
        t->partition = *own->partition;
        t->partition.sample = traced_sample;
        t->partition.make_map = traced_make_map;
        t->partition.count = traced_count_regions;
        t->partition.scatter = traced_scatter;
        t->partition.scatter_to_rooms = traced_scatter_to_rooms;
        t->partition.sort_regions = traced_sort_regions;
        t->partition.settle_regions = traced_settle_regions;
        t->ops.partition = &t->partition;
    }
    if (own->pairs) {
        t->pairs = *own->pairs;
        t->pairs.beats_codes = traced_beats_codes;
        t->pairs.sort = traced_sort_pairs;
        t->pairs.split = traced_split_pairs;
        t->pairs.sort_regions = traced_sort_pair_regions;
        t->pairs.settle_regions = traced_settle_pairs;
        t->ops.pairs = &t->pairs;
    }
    if (own->packing) {
        t->packing = (struct engine_pack_ops){.pack = traced_pack, .unpack = traced_unpack};
        t->ops.packing = &t->packing;
    }
}

void traced_wrap(struct traced_tables *t, const struct engine_ops *own)
{
    t->ops = *own;
    t->ops.alloc = traced_alloc;
    t->ops.free = traced_free;
    t->ops.alloc_host = traced_alloc_host;
    t->ops.pin = traced_pin;
    t->ops.copy = traced_copy;
    t->ops.transfer = traced_transfer;
    if (own->timing) // otherwise there is nothing to wait for
        t->ops.stream_synchronize = traced_stream_synchronize;
    t->ops.encode = traced_encode;
    t->ops.decode = traced_decode;
    t->ops.sort = traced_sort;
    t->ops.merge = traced_merge;
    t->ops.merge_runs = traced_merge_runs;
    t->ops.cut = traced_cut;
    t->ops.swap = traced_swap;
    t->ops.gather = traced_gather;
    t->ops.search = traced_search;
    t->ops.make_codes = traced_make_codes;
    t->ops.split_codes = traced_split_codes;
    t->ops.take = traced_take;
    t->ops.place = traced_place;
    t->ops.count_runs = traced_count_runs;
    t->ops.write_runs = traced_write_runs;
    t->ops.count_keys = traced_count_keys;
    t->ops.write_counted = traced_write_counted;
    t->ops.inspect = traced_inspect;
    t->ops.inspect_elements = traced_inspect_elements;
    wrap_groups(t, own);
}
