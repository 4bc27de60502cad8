/* A host engine that takes as long as a GPU would: it does the real work on the few real keys, and lets the time pass that
 * an H200 takes for as many keys as they stand for.
 *
 *     sort          keys / sort_keys_per_s
 *     merge, runs   keys / merge_keys_per_s; for runs the same for each pass over up to 16 of them
 *     copy          2 * bytes / copy_bytes_per_s; out of a peer's memory bytes / nvlink_bytes_per_s
 *     partition     keys / the rates of count, scatter and sort_regions; to codes: group_s more; a map takes map_s for 2^16
 *                   keys of the sample
 *     pack, unpack  3 and 2 times the keys' bytes / copy_bytes_per_s
 *     each call     call_s more; gather and search, which touch few keys, only that
 *
 * Streams have clocks: work is done in the call, but is over only when its stream has come to it. A call that waits for a stream, or
 * for an event in it, sleeps until then; STREAM_IN and STREAM_OUT run beside STREAM_WORK, and all beside messages:
 *
 *     called at 0    STREAM_IN    | copy 3 |                    event at 3
 *                    STREAM_WORK           | sort 4      |      waits for the event: over at 7
 *
 * Ranks are threads of one process, so a peer's memory is mapped as it is. Packed keys have the bytes that as many keys as they
 * stand for would take: `scale` times as many keys lie that much closer together. The real packed keys lie elsewhere, and the packed
 * bytes say where.
 *
 * Like the host engine, this one does not touch memory before it is used: a thousand ranks share one machine's.
 *
 * Linked with --wrap=engine_open_host, so that it is every engine of the program. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/engine.h"
#include "tests/simgrid/simulated.h"

enum {
    ALIGNMENT = 256,
    RUNS_IN_PASS = 16,
    WORKSPACE_PART = 28, /* of the keys */
    PEERS = 64,
    BLOCK_SAMPLE_LOG = 14, /* keys that a block sorts */
    REGIONS_MADE = 1000,
    EVEN_PARTS = 64        /* of a range, whose keys are counted */
};

struct modelled modelled = {.scale = 1};

hsort_status __real_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine);

/* The host engine's functions, and copies of them with some replaced. */
static const struct engine_ops *host;
static struct engine_ops ops;
static struct engine_partition_ops partition;

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* A point in a stream's work: when it is reached. */
struct engine_event {
    double at;
};

static double over_at[ENGINE_STREAMS]; /* when a stream has nothing left to do */

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* Queue work of one call. */
static void queue(enum engine_stream stream, double seconds)
{
    over_at[stream] = later(over_at[stream], simulated_now()) + modelled.call_s + seconds;
}

static hsort_status wait_for_stream(struct engine *engine, enum engine_stream stream)
{
    (void)engine;
    simulated_sleep_until(over_at[stream]);
    return HSORT_OK;
}

/* Work that the call waits for. */
static void spend(double seconds)
{
    queue(STREAM_WORK, seconds);
    simulated_sleep_until(over_at[STREAM_WORK]);
}

static hsort_status event_create(struct engine *engine, struct engine_event **event)
{
    (void)engine;
    *event = calloc(1, sizeof **event);
    return *event ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for an event");
}

static void event_destroy(struct engine *engine, struct engine_event *event)
{
    (void)engine;
    free(event);
}

static hsort_status event_record(struct engine *engine, struct engine_event *event, enum engine_stream stream)
{
    (void)engine;
    event->at = later(over_at[stream], simulated_now());
    return HSORT_OK;
}

static hsort_status event_done(struct engine *engine, struct engine_event *event, bool *done)
{
    (void)engine;
    *done = simulated_now() >= event->at;
    if (!*done)
        simulated_asked_for(event->at);
    return HSORT_OK;
}

static hsort_status stream_wait_event(struct engine *engine, enum engine_stream stream, struct engine_event *event)
{
    (void)engine;
    over_at[stream] = later(over_at[stream], event->at);
    return HSORT_OK;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static double passes(double keys, double keys_per_s)
{
    return keys * (double)modelled.scale / keys_per_s;
}

static hsort_status untouched_alloc(struct engine *engine, size_t bytes, void **memory)
{
    (void)engine;
    *memory = bytes > 0 ? aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT) : NULL;
    return *memory || bytes == 0 ? HSORT_OK
                                 : status_fail(HSORT_HOST_MEMORY, "no memory for %zu bytes", bytes);
}

static hsort_status timed_sort(struct engine *engine, int rung, int key_bytes, void *keys, void *scratch,
                               int64_t scratch_count, int64_t count, void *workspace,
                               const struct raw_keys *bits, void **sorted)
{
    queue(STREAM_WORK, passes((double)count, modelled.sort_keys_per_s));
    return host->sort(engine, rung, key_bytes, keys, scratch, scratch_count, count, workspace, bits, sorted);
}

/* As much as on an H200: an exchange works in it too. */
static hsort_status large_workspace(struct engine *engine, int rung, int key_bytes, int64_t count,
                                    int64_t scratch_count, size_t *bytes)
{
    TRY(host->sort_workspace(engine, rung, key_bytes, count, scratch_count, bytes));
    const size_t part = (size_t)count * (size_t)key_bytes / WORKSPACE_PART;
    *bytes = part > *bytes ? part : *bytes;
    return HSORT_OK;
}

static hsort_status timed_merge(struct engine *engine, int key_bytes, const void *a, int64_t a_count,
                                const void *b, int64_t b_count, void *out)
{
    queue(STREAM_WORK, passes((double)(a_count + b_count), modelled.merge_keys_per_s));
    return host->merge(engine, key_bytes, a, a_count, b, b_count, out);
}

static hsort_status timed_merge_runs(struct engine *engine, int key_bytes, void *runs, const int64_t *run_offset,
                                     int k, void *out, void **merged)
{
    int held = 0;
    for (int run = 0; run < k; run++)
        held += run_offset[run + 1] > run_offset[run];
    for (; held > 1; held = (held + RUNS_IN_PASS - 1) / RUNS_IN_PASS)
        queue(STREAM_WORK, passes((double)run_offset[k], modelled.merge_keys_per_s));
    return host->merge_runs(engine, key_bytes, runs, run_offset, k, out, merged);
}

static hsort_status timed_decode(struct engine *engine, struct keymap map, void *to, const void *from,
                                 int64_t count)
{
    if (to != from || !map.identity)
        queue(STREAM_WORK, passes(2 * (double)count * map.key_bytes, modelled.copy_bytes_per_s));
    return host->decode(engine, map, to, from, count);
}

static hsort_status timed_gather(struct engine *engine, int key_bytes, const void *keys,
                                 const int64_t *positions, int count, key_code *codes)
{
    spend(0);
    return host->gather(engine, key_bytes, keys, positions, count, codes);
}

static hsort_status timed_search(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                                 const key_code *probes, int probe_count, int64_t *less, int64_t *not_greater)
{
    spend(0);
    return host->search(engine, key_bytes, keys, count, probes, probe_count, less, not_greater);
}

/* ---- memory of peers --------------------------------------------------------------------------------------------- */

/* Where what peers show of their memory begins: copies out of it pass a link. */
static const char *shown[PEERS];

static hsort_status export_memory(struct engine *engine, const void *memory, struct engine_peer_handle *handle)
{
    (void)engine;
    *handle = (struct engine_peer_handle){.bytes = ENGINE_PEER_BYTES};
    memcpy(handle->allocation, &memory, sizeof memory);
    return HSORT_OK;
}

static hsort_status open_memory(struct engine *engine, const struct engine_peer_handle *handle, void **memory)
{
    int place = 0;
    (void)engine;
    memcpy(memory, handle->allocation, sizeof *memory);
    while (place < PEERS && shown[place])
        place++;
    if (place == PEERS)
        return status_fail(HSORT_CUDA, "more memory of peers than was thought of");
    shown[place] = *memory;
    return HSORT_OK;
}

static void close_memory(struct engine *engine, void *memory)
{
    (void)engine;
    for (int place = 0; memory && place < PEERS; place++)
        if (shown[place] == memory)
            shown[place] = NULL;
}

static const struct engine_peer_ops peers = {export_memory, open_memory, close_memory};

static bool is_of_peer(const char *from)
{
    bool is = false;
    for (int place = 0; place < PEERS; place++)
        is = is || (shown[place] && from >= shown[place] && from - shown[place] < modelled.shard_bytes);
    return is;
}

/* Copies on STREAM_IN come from peers, or with messages that are far slower; those on STREAM_OUT go with such. */
static hsort_status timed_copy(struct engine *engine, enum engine_stream stream, void *to, const void *from,
                               size_t bytes)
{
    if (stream == STREAM_IN && is_of_peer(from))
        queue(stream, passes((double)bytes, modelled.nvlink_bytes_per_s) + modelled.nvlink_s);
    else if (stream == STREAM_WORK)
        queue(stream, passes(2 * (double)bytes, modelled.copy_bytes_per_s));
    return host->copy(engine, stream, to, from, bytes);
}

/* ---- sorting by regions ------------------------------------------------------------------------------------------ */

/* Of the modelled memory, which samples have as they are: timed_map() has its own. */
static size_t modelled_scratch(const struct engine *engine, int key_bytes, int log)
{
    return host->partition->sample_scratch(engine, key_bytes, log) / (size_t)modelled.scale;
}

static hsort_status timed_sample(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                 const struct sample_share *share, void *scratch, uint64_t *codes)
{
    spend(0);
    return host->partition->sample(engine, key_bytes, raw, share, scratch, codes);
}

/* Are codes [count] of low .. high spread evenly? */
static bool is_even(const uint64_t *codes, int64_t count, uint64_t low, uint64_t high)
{
    const uint64_t width = (high - low) / EVEN_PARTS + 1;
    int64_t in_part[EVEN_PARTS] = {0};
    bool even = true;
    for (int64_t i = 0; i < count; i++)
        in_part[(codes[i] - low) / width]++;
    for (int part = 0; part < EVEN_PARTS; part++)
        even = even && 4 * in_part[part] < 5 * count / EVEN_PARTS;
    return even;
}

/* Of a sample [2^log] what a GPU makes its regions of, for the host engine to cut: evenly spread keys have regions of equal width;
 * of others one block sorts a part, unless the sample is large. Returns the log of its number. */
static int cut_as_gpu(const uint64_t *codes, int log, uint64_t *cut)
{
    const int64_t count = INT64_C(1) << log;
    uint64_t low = UINT64_MAX, high = 0;
    for (int64_t i = 0; i < count; i++) {
        low = codes[i] < low ? codes[i] : low;
        high = codes[i] > high ? codes[i] : high;
    }
    const bool even = is_even(codes, count, low, high);
    const int kept = !even && log <= ENGINE_SAMPLE_LOG_USUAL && log > BLOCK_SAMPLE_LOG ? BLOCK_SAMPLE_LOG : log;
    const int64_t most = (INT64_C(1) << kept) / ENGINE_REGIONS * REGIONS_MADE;
    for (int64_t i = 0; i < INT64_C(1) << kept; i++)
        cut[i] = i >= most ? UINT64_MAX
                 : even    ? low + (high - low) / (uint64_t)most * (uint64_t)i
                           : codes[(i << (log - kept)) * ENGINE_REGIONS / REGIONS_MADE];
    return kept;
}

static hsort_status timed_map(struct engine *engine, int key_bytes, const uint64_t *codes, int log,
                              int64_t total, bool of_pairs, void *workspace, void *scratch,
                              struct engine_map *map)
{
    uint64_t *cut = malloc(sizeof *cut << log);
    void *own = malloc(host->partition->sample_scratch(engine, key_bytes, log));
    (void)scratch;
    if (!cut || !own)
        return status_fail(HSORT_HOST_MEMORY, "no memory for a sample");
    spend(modelled.map_s * (double)(1 << log) / (1 << ENGINE_SAMPLE_LOG_USUAL));
    const int kept = cut_as_gpu(codes, log, cut);
    const hsort_status status =
        host->partition->make_map(engine, key_bytes, cut, kept, total, of_pairs, workspace, own, map);
    free(cut);
    free(own);
    return status;
}

static hsort_status timed_count(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                int64_t count, const struct engine_map *map, void *workspace, int64_t *counts,
                                bool *descends)
{
    spend(passes((double)count, modelled.count_keys_per_s));
    return host->partition->count(engine, key_bytes, raw, count, map, workspace, counts, descends);
}

static hsort_status timed_scatter(struct engine *engine, int key_bytes, const struct raw_keys *raw, int64_t count,
                                  const struct engine_map *map, void *workspace, void *to)
{
    queue(STREAM_WORK, passes((double)count, modelled.scatter_keys_per_s));
    return host->partition->scatter(engine, key_bytes, raw, count, map, workspace, to);
}

/* An eighth of the keys is counted before, by a GPU. */
static hsort_status timed_rooms(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                int64_t count, const struct engine_map *map, void *workspace, void *to,
                                int64_t room, int64_t *counts, int64_t *begins, enum engine_scattered *done)
{
    spend(passes((double)count / 8, modelled.count_keys_per_s) +
          passes((double)count, modelled.scatter_keys_per_s));
    return host->partition->scatter_to_rooms(engine, key_bytes, raw, count, map, workspace, to, room, counts,
                                             begins, done);
}

/* Without raw: short regions of many chunks; what such a call takes besides its rate is known of short sorts. */
static hsort_status timed_regions(struct engine *engine, int key_bytes, const struct engine_map *map,
                                  const struct engine_piece *pieces, int count, const struct raw_keys *raw,
                                  void *workspace, void *scratch, void *out)
{
    double keys = 0;
    for (int i = 0; i < count; i++)
        keys += (double)pieces[i].count;
    queue(STREAM_WORK, (raw ? 0 : modelled.group_s) + passes(keys, modelled.regions_keys_per_s));
    return host->partition->sort_regions(engine, key_bytes, map, pieces, count, raw, workspace, scratch, out);
}

static hsort_status timed_settle(struct engine *engine, int key_bytes, const struct raw_keys *raw, void *workspace,
                                 void *scratch, size_t scratch_bytes, bool *unsorted)
{
    spend(0);
    return host->partition->settle_regions(engine, key_bytes, raw, workspace, scratch, scratch_bytes, unsorted);
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* What packed bytes begin with: the real keys. They stay there for the rest of the run, as several ranks may unpack them. */
struct packed_aside {
    void *keys;
    int64_t count;
};

static hsort_status pack_aside(struct engine *engine, int key_bytes, const struct engine_packing *one)
{
    const int64_t plain = one->count * key_bytes;
    struct packed_aside aside = {.keys = malloc((size_t)plain + 1), .count = one->count};
    if (!aside.keys)
        return status_fail(HSORT_HOST_MEMORY, "no memory for packed keys");
    TRY(host->packing->pack(engine, key_bytes, one, 1));
    const int64_t closer = (int64_t)((double)one->count * log2((double)modelled.scale) / 8), least = (int64_t)sizeof aside;
    *one->bytes = *one->bytes - closer > least ? *one->bytes - closer : least;
    if (*one->bytes >= plain) {
        free(aside.keys);
        *one->bytes = plain;
        memcpy(one->to, one->from, (size_t)plain);
        return HSORT_OK;
    }
    memcpy(aside.keys, one->from, (size_t)plain);
    memcpy(one->to, &aside, sizeof aside);
    return HSORT_OK;
}

static double packed_bytes(int key_bytes, const struct engine_packing *packings, int number)
{
    double keys = 0;
    for (int i = 0; i < number; i++)
        keys += (double)packings[i].count;
    return keys * key_bytes;
}

static hsort_status timed_pack(struct engine *engine, int key_bytes, const struct engine_packing *packings, int number)
{
    queue(STREAM_WORK, passes(3 * packed_bytes(key_bytes, packings, number), modelled.copy_bytes_per_s));
    for (int i = 0; i < number; i++)
        TRY(pack_aside(engine, key_bytes, &packings[i]));
    return HSORT_OK;
}

static hsort_status unpack_aside(int key_bytes, const struct engine_packing *one)
{
    struct packed_aside aside;
    memcpy(&aside, one->from, sizeof aside);
    if (aside.count != one->count)
        return status_fail(HSORT_INTERNAL, "%lld keys were packed, not %lld", (long long)aside.count, (long long)one->count);
    memcpy(one->to, aside.keys, (size_t)(one->count * key_bytes));
    return HSORT_OK;
}

static hsort_status timed_unpack(struct engine *engine, int key_bytes, const struct engine_packing *packings, int number)
{
    (void)engine;
    queue(STREAM_WORK, passes(2 * packed_bytes(key_bytes, packings, number), modelled.copy_bytes_per_s));
    for (int i = 0; i < number; i++)
        TRY(unpack_aside(key_bytes, &packings[i]));
    return HSORT_OK;
}

static const struct engine_pack_ops packing = {timed_pack, timed_unpack};

/* ---- the engine -------------------------------------------------------------------------------------------------- */

static void replace_partition(void)
{
    partition = *host->partition;
    partition.sample_scratch = modelled_scratch;
    partition.sample = timed_sample;
    partition.make_map = timed_map;
    partition.count = timed_count;
    partition.scatter = timed_scatter;
    partition.scatter_to_rooms = timed_rooms;
    partition.sort_regions = timed_regions;
    partition.settle_regions = timed_settle;
    ops.partition = &partition;
    ops.packing = &packing;
    ops.peer = &peers;
}

hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine)
{
    TRY(__real_engine_open_host(threads, memory_limit, engine));
    host = (*engine)->ops;
    ops = *host;
    replace_partition();
    ops.alloc = ops.alloc_host = untouched_alloc;
    ops.event_create = event_create;
    ops.event_destroy = event_destroy;
    ops.event_record = event_record;
    ops.event_done = event_done;
    ops.stream_wait_event = stream_wait_event;
    ops.stream_synchronize = wait_for_stream;
    ops.sort_workspace = large_workspace;
    ops.sort = timed_sort;
    ops.merge = timed_merge;
    ops.merge_runs = timed_merge_runs;
    ops.copy = timed_copy;
    ops.decode = timed_decode;
    ops.gather = timed_gather;
    ops.search = timed_search;
    (*engine)->ops = &ops;
    return HSORT_OK;
}
