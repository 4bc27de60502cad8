/* A host engine that takes as long as a GPU would: it does the real work on the few real keys, and lets the time pass that
 * an H200 takes for as many keys as they stand for.
 *
 *     sort       keys / sort_keys_per_s                          streams: work is done, and its time is over, in the call.
 *     merge      keys / merge_keys_per_s                         Copies on STREAM_IN and STREAM_OUT take none: they run beside
 *     runs       the same for each pass over up to 16 runs       messages, which are far slower.
 *     copy       2 * bytes / copy_bytes_per_s, on STREAM_WORK
 *     each call  call_s more; gather and search, which touch few keys, only that
 *
 * Memory is not touched before it is used, as the host engine does: a thousand ranks share one machine's.
 *
 * Linked with --wrap=engine_open_host, so that it is every engine of the program. */
#include <smpi/smpi.h>
#include <stdlib.h>
#include "kernels/engine.h"
#include "tests/simgrid/simulated.h"

enum { ALIGNMENT = 256, RUNS_IN_PASS = 16, WORKSPACE_PART = 28 /* of the keys */ };

struct modelled modelled = {.scale = 1};

hsort_status __real_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine);

/* The host engine's functions, and a copy of them with some replaced. */
static const struct engine_ops *host;
static struct engine_ops ops;

/* Let the time of one call pass. */
static void spend(double seconds)
{
    smpi_execute_benched(modelled.call_s + seconds);
}

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
    spend(passes((double)count, modelled.sort_keys_per_s));
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
    spend(passes((double)(a_count + b_count), modelled.merge_keys_per_s));
    return host->merge(engine, key_bytes, a, a_count, b, b_count, out);
}

static hsort_status timed_merge_runs(struct engine *engine, int key_bytes, void *runs, const int64_t *run_offset,
                                     int k, void *out, void **merged)
{
    int held = 0;
    for (int run = 0; run < k; run++)
        held += run_offset[run + 1] > run_offset[run];
    for (; held > 1; held = (held + RUNS_IN_PASS - 1) / RUNS_IN_PASS)
        spend(passes((double)run_offset[k], modelled.merge_keys_per_s));
    return host->merge_runs(engine, key_bytes, runs, run_offset, k, out, merged);
}

static hsort_status timed_copy(struct engine *engine, enum engine_stream stream, void *to, const void *from,
                               size_t bytes)
{
    if (stream == STREAM_WORK)
        spend(passes(2 * (double)bytes, modelled.copy_bytes_per_s));
    return host->copy(engine, stream, to, from, bytes);
}

static hsort_status timed_decode(struct engine *engine, struct keymap map, void *to, const void *from,
                                 int64_t count)
{
    if (to != from || !map.identity)
        spend(passes(2 * (double)count * map.key_bytes, modelled.copy_bytes_per_s));
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

hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine)
{
    TRY(__real_engine_open_host(threads, memory_limit, engine));
    host = (*engine)->ops;
    ops = *host;
    ops.alloc = ops.alloc_host = untouched_alloc;
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
