/* The `host` engine: kernels/engine.h on CPU cores, by OpenMP. It is the default where there is no GPU, and the
 * reference for the other engine. Every function has done its work when it returns, so streams have no queue and events
 * are always done. */
#include "kernels/host/host_engine.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "kernels/base/host_memory.h"
#include "kernels/base/lesser.h"
#include "kernels/base/size_text.h"
#include "kernels/in_place.h"
#include "kernels/numbered_keys.h"
#include "kernels/transfer_queue.h"

enum {
    RUNG_CHOSEN = -1,
    RUNG_BITONIC = 1,
    RUNG_RADIX = 7,
    HUGE_PAGE = 2 << 20,
    TOUCH_STRIDE = 4096, // bytes: the smallest page
    SWAP_KEYS = 512,     // that change places at a time, through the stack
    PARALLEL_SEARCHES = 256,
    PARALLEL_COPY_BYTES = 1 << 20, // from so many on, waking the threads pays
    MOVE_THREADS_MIN = 4           // threads wait for files, too, so there may be more than cores
};

struct engine_event {
    char nothing;
};

/* Memory that counts towards a limit. */
struct host_allocation {
    char *memory;
    size_t bytes;
    struct host_allocation *older;
};

static struct host_engine *host_engine_of(struct engine *engine)
{
    return (struct host_engine *)engine;
}

static void host_close(struct engine *engine)
{
    free(engine);
}

/* ---- memory ---- */

/* The system promises more memory than it has, and kills processes that use it. So the size is compared with what is
 * available, and every page is touched at once: the next call then sees what this one took, and no page fault falls
 * into a sort. */
static hsort_status host_alloc_pages(struct engine *engine, size_t bytes, void **memory)
{
    *memory = NULL;
    if (bytes == 0)
        return HSORT_OK;
    char wanted[SIZE_TEXT_BYTES], left[SIZE_TEXT_BYTES];
    const size_t available = host_memory_available();
    const size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : ENGINE_ALIGNMENT;
    char *pages = NULL;
    if (!fault_hit(FAULT_ALLOC) && bytes <= available)
        pages = aligned_alloc(alignment, bytes_rounded_up(bytes, alignment));
    if (!pages)
        return status_fail(
            HSORT_HOST_MEMORY, "cannot allocate %s of host memory, %s are available%s",
            size_text(bytes, wanted), size_text(available, left),
            bytes <= available ? ", but the system refuses: is there a limit, such as ulimit -v?" : "");
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE)
        (void)madvise(pages, bytes, MADV_HUGEPAGE); // a wish: small pages do as well
#endif
#pragma omp parallel for num_threads(host_threads(engine)) if (bytes >= PARALLEL_COPY_BYTES)
    for (size_t i = 0; i < bytes; i += TOUCH_STRIDE)
        pages[i] = 0;
    *memory = pages;
    return HSORT_OK;
}

static void host_free_pages(struct engine *engine, void *memory)
{
    (void)engine;
    free(memory);
}

/* Engine memory: the same, but counted if there is a limit. */
static hsort_status host_alloc(struct engine *engine, size_t bytes, void **memory)
{
    struct host_engine *host = host_engine_of(engine);
    char wanted[SIZE_TEXT_BYTES], used[SIZE_TEXT_BYTES], limit[SIZE_TEXT_BYTES];
    *memory = NULL;
    if (host->memory_limit == 0 || bytes == 0)
        return host_alloc_pages(engine, bytes, memory);
    if (bytes > host->memory_limit - host->bytes_in_use)
        return status_fail(HSORT_DEVICE_MEMORY,
                           "the host engine has no room for %s more: %s in use, limit %s",
                           size_text(bytes, wanted), size_text(host->bytes_in_use, used),
                           size_text(host->memory_limit, limit));
    struct host_allocation *allocation = malloc(sizeof *allocation);
    if (!allocation)
        return status_fail(HSORT_HOST_MEMORY, "no memory to note an allocation of %zu bytes", bytes);
    const hsort_status status = host_alloc_pages(engine, bytes, memory);
    if (status != HSORT_OK) {
        free(allocation);
        return status;
    }
    *allocation = (struct host_allocation){*memory, bytes, host->allocations};
    host->allocations = allocation;
    host->bytes_in_use += bytes;
    return HSORT_OK;
}

static void host_free(struct engine *engine, void *memory)
{
    struct host_engine *host = host_engine_of(engine);
    struct host_allocation **link = &host->allocations;
    while (*link && (*link)->memory != memory)
        link = &(*link)->older;
    struct host_allocation *allocation = *link;
    if (allocation) { // there are none without a limit
        *link = allocation->older;
        host->bytes_in_use -= allocation->bytes;
        free(allocation);
    }
    free(memory);
}

static bool host_pin(struct engine *engine, void *memory, size_t bytes)
{
    (void)engine;
    (void)memory;
    (void)bytes;
    return true; // copies run in the call, whatever the memory
}

static void host_unpin(struct engine *engine, void *memory)
{
    (void)engine;
    (void)memory;
}

static hsort_status host_memory_free(struct engine *engine, size_t *bytes)
{
    const struct host_engine *host = host_engine_of(engine);
    *bytes = host_memory_available();
    if (host->memory_limit > 0)
        *bytes = lesser_bytes(*bytes, host->memory_limit - host->bytes_in_use);
    return HSORT_OK;
}

static hsort_status host_space_of(struct engine *engine, const void *pointer, enum engine_space *space)
{
    const struct host_engine *host = host_engine_of(engine);
    const uintptr_t at = (uintptr_t)pointer;
    *space = host->memory_limit == 0 || !pointer ? SPACE_ENGINE : SPACE_PINNED;
    for (const struct host_allocation *own = host->allocations; own && *space != SPACE_ENGINE; own = own->older)
        if (at >= (uintptr_t)own->memory && at - (uintptr_t)own->memory < own->bytes)
            *space = SPACE_ENGINE;
    return HSORT_OK;
}

/* ---- streams ---- */

static void copy_bytes(int threads, void *to, const void *from, size_t bytes)
{
    if (threads == 1 || bytes < PARALLEL_COPY_BYTES) {
        if (bytes > 0)
            memcpy(to, from, bytes);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        const int part = omp_get_thread_num(), parts = omp_get_num_threads();
        const int64_t begin = part_begin((int64_t)bytes, part, parts),
                      end = part_begin((int64_t)bytes, part + 1, parts);
        memcpy((char *)to + begin, (const char *)from + begin, (size_t)(end - begin));
    }
}

static hsort_status host_copy(struct engine *engine, enum engine_stream stream, void *to, const void *from,
                              size_t bytes)
{
    (void)stream;
    if (fault_hit(FAULT_COPY))
        return status_fail(HSORT_INTERNAL, "copy of %zu bytes in host memory failed", bytes);
    copy_bytes(host_threads(engine), to, from, bytes);
    return HSORT_OK;
}

static hsort_status host_transfer(struct engine *engine, const struct engine_transfer *in, int in_count,
                                  const struct engine_transfer *out, int out_count)
{
    const int threads = (int)greater(host_threads(engine), MOVE_THREADS_MIN);
    struct transfer_queue queue;
    if (fault_hit(FAULT_COPY))
        return status_fail(HSORT_INTERNAL, "a transfer in host memory failed");
    transfer_begin(&queue, in, in_count, out, out_count);
#pragma omp parallel num_threads(threads)
    for (struct transfer_chunk chunk; transfer_next(&queue, &chunk);)
        transfer_note(&queue, transfer_move(&chunk, chunk.transfer->memory + chunk.at));
    return transfer_end(&queue);
}

static hsort_status host_event_create(struct engine *engine, struct engine_event **event)
{
    static struct engine_event always_done;
    (void)engine;
    *event = &always_done;
    return HSORT_OK;
}

static void host_event_destroy(struct engine *engine, struct engine_event *event)
{
    (void)engine, (void)event;
}

static hsort_status host_event_record(struct engine *engine, struct engine_event *event,
                                      enum engine_stream stream)
{
    (void)engine, (void)event, (void)stream;
    return HSORT_OK;
}

static hsort_status host_event_done(struct engine *engine, struct engine_event *event, bool *done)
{
    (void)engine, (void)event;
    *done = true;
    return HSORT_OK;
}

static hsort_status host_stream_wait_event(struct engine *engine, enum engine_stream stream,
                                           struct engine_event *event)
{
    (void)engine, (void)stream, (void)event;
    return HSORT_OK;
}

static hsort_status host_stream_wait_caller(struct engine *engine, void *stream)
{
    (void)engine, (void)stream;
    return HSORT_OK;
}

static hsort_status host_stream_synchronize(struct engine *engine, enum engine_stream stream)
{
    (void)engine, (void)stream;
    return HSORT_OK;
}

/* ---- work on keys ---- */

static void map_or_copy(struct engine *engine, struct keymap map, bool decode, void *to, const void *from,
                        int64_t count)
{
    const int threads = host_threads(engine);
    if (!map.identity)
        map_keys(threads, map, decode, to, from, count);
    else if (to != from)
        copy_bytes(threads, to, from, (size_t)count * (size_t)map.key_bytes);
}

static hsort_status host_encode(struct engine *engine, struct keymap map, void *to, const void *from,
                                int64_t count)
{
    TRY(kernel_takes("encode", map.key_bytes));
    map_or_copy(engine, map, false, to, from, count);
    return HSORT_OK;
}

static hsort_status host_decode(struct engine *engine, struct keymap map, void *to, const void *from,
                                int64_t count)
{
    TRY(kernel_takes("decode", map.key_bytes));
    map_or_copy(engine, map, true, to, from, count);
    return HSORT_OK;
}

/* The rung to sort with: the one asked for, or, for RUNG_CHOSEN, the radix sort if there is scratch for it. */
static hsort_status choose_rung(int rung, int64_t count, int64_t scratch_count, int *chosen)
{
    const bool scratch_lacks =
        scratch_count < count && count > 1 && in_place_chunk(count, scratch_count) == 0;
    *chosen = rung != RUNG_CHOSEN ? rung : scratch_lacks ? RUNG_BITONIC : RUNG_RADIX;
    if (*chosen != RUNG_BITONIC && *chosen != RUNG_RADIX)
        return status_fail(HSORT_ARGUMENT,
                           "the host engine has no rung %d: it has %d (bitonic) and %d (radix)", rung,
                           RUNG_BITONIC, RUNG_RADIX);
    if (*chosen == RUNG_RADIX && scratch_lacks)
        return status_fail(HSORT_ARGUMENT, "rung %d cannot sort %lld keys with scratch for %lld", rung,
                           (long long)count, (long long)scratch_count);
    return HSORT_OK;
}

static hsort_status host_sort_workspace(struct engine *engine, int rung, int key_bytes, int64_t count,
                                        int64_t scratch_count, size_t *bytes)
{
    int chosen;
    *bytes = 0;
    TRY(key_width_check(key_bytes));
    TRY(choose_rung(rung, count, scratch_count, &chosen));
    *bytes = chosen == RUNG_RADIX ? radix_workspace(host_threads(engine)) : 0;
    return HSORT_OK;
}

static hsort_status sort_by_rung(struct engine *engine, int chosen, int key_bytes, void *keys, void *scratch,
                                 int64_t scratch_count, int64_t count, void *workspace)
{
    TRY(kernel_takes("sort", key_bytes));
    if (chosen == RUNG_BITONIC)
        bitonic_sort(host_threads(engine), key_bytes, keys, count);
    else if (scratch_count < count && count > 1)
        return in_place_sort(engine, chosen, key_bytes, keys, count, scratch, scratch_count, workspace);
    else
        radix_sort(host_threads(engine), key_bytes, keys, scratch, count, workspace);
    return HSORT_OK;
}

static hsort_status host_sort(struct engine *engine, int rung, int key_bytes, void *keys, void *scratch,
                              int64_t scratch_count, int64_t count, void *workspace,
                              const struct raw_keys *raw, void **sorted)
{
    int chosen;
    *sorted = keys;
    TRY(choose_rung(rung, count, scratch_count, &chosen));
    if (is_numbered(raw))
        TRY(numbered_keys_encode(engine, key_bytes, raw, keys, count));
    else if (raw)
        TRY(host_encode(engine, raw->map, keys, raw->from, count));
    TRY(sort_by_rung(engine, chosen, key_bytes, keys, scratch, scratch_count, count, workspace));
    if (is_numbered(raw))
        return numbered_keys_decode(engine, key_bytes, raw, count, sorted);
    return raw && raw->decode ? host_decode(engine, raw->map, keys, keys, count) : HSORT_OK;
}

static hsort_status host_merge(struct engine *engine, int key_bytes, const void *a, int64_t a_count,
                               const void *b, int64_t b_count, void *out)
{
    TRY(kernel_takes("merge", key_bytes));
    merge_runs(host_threads(engine), key_bytes, a, a_count, b, b_count, out);
    return HSORT_OK;
}

static hsort_status host_merge_runs(struct engine *engine, int key_bytes, void *runs, const int64_t *run_offset,
                                    int k, void *out, void **merged)
{
    *merged = runs;
    TRY(kernel_takes("merge of runs", key_bytes));
    *merged = merge_many(host_threads(engine), key_bytes, runs, run_offset, k, out);
    return HSORT_OK;
}

static hsort_status host_cut(struct engine *engine, int key_bytes, const void *a, int64_t a_count,
                             const void *b, int64_t b_count, int64_t outputs, int64_t *from_a)
{
    (void)engine;
    *from_a = 0;
    TRY(kernel_takes("cut", key_bytes));
    *from_a = merge_cut(key_bytes, a, a_count, b, b_count, outputs);
    return HSORT_OK;
}

static hsort_status host_swap(struct engine *engine, int key_bytes, void *a, void *b, int64_t count)
{
    const int64_t pieces = divide_up(count, SWAP_KEYS);
    TRY(kernel_takes("swap", key_bytes));
#pragma omp parallel for num_threads(host_threads(engine)) if (count >= PARALLEL_COUNT)
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int64_t first = piece * SWAP_KEYS;
        const size_t bytes = (size_t)lesser(count - first, SWAP_KEYS) * (size_t)key_bytes;
        char *from = (char *)a + first * key_bytes, *to = (char *)b + first * key_bytes;
        uint128 kept[SWAP_KEYS];
        memcpy(kept, from, bytes);
        memcpy(from, to, bytes);
        memcpy(to, kept, bytes);
    }
    return HSORT_OK;
}

static hsort_status host_gather(struct engine *engine, int key_bytes, const void *keys,
                                const int64_t *positions, int count, key_code *codes)
{
    (void)engine;
    TRY(kernel_looks("gather", key_bytes));
    for (int i = 0; i < count; i++)
        codes[i] = key_load(key_bytes, keys, positions[i]);
    return HSORT_OK;
}

static hsort_status host_search(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                                const key_code *probes, int probe_count, int64_t *less, int64_t *not_greater)
{
    TRY(kernel_takes("search", key_bytes));
#pragma omp parallel for num_threads(host_threads(engine)) if (probe_count >= PARALLEL_SEARCHES)
    for (int i = 0; i < probe_count; i++) {
        less[i] = merge_find(key_bytes, keys, count, probes[i], false);
        not_greater[i] = merge_find(key_bytes, keys, count, probes[i], true);
    }
    return HSORT_OK;
}

static hsort_status host_inspect(struct engine *engine, struct keymap map, const void *keys, int64_t count,
                                 struct engine_inspection *result)
{
    TRY(kernel_looks("inspect", map.key_bytes));
    inspect_keys(host_threads(engine), map, keys, count, result);
    return HSORT_OK;
}

static const struct engine_ops host_ops = {
    .name = "host",
    .kind = HSORT_ENGINE_HOST,
    .partition = &host_partition_ops,
    .packing = &host_pack_ops,
    .pairs = &host_pair_ops,
    .close = host_close,
    .alloc = host_alloc,
    .free = host_free,
    .alloc_host = host_alloc_pages,
    .free_host = host_free_pages,
    .pin = host_pin,
    .unpin = host_unpin,
    .memory_free = host_memory_free,
    .space_of = host_space_of,
    .copy = host_copy,
    .transfer = host_transfer,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_done = host_event_done,
    .stream_wait_event = host_stream_wait_event,
    .stream_wait_caller = host_stream_wait_caller,
    .stream_synchronize = host_stream_synchronize,
    .encode = host_encode,
    .decode = host_decode,
    .sort_workspace = host_sort_workspace,
    .sort = host_sort,
    .merge = host_merge,
    .merge_runs = host_merge_runs,
    .cut = host_cut,
    .swap = host_swap,
    .gather = host_gather,
    .search = host_search,
    .inspect = host_inspect,
    .inspect_elements = host_inspect_elements,
    .make_codes = host_make_codes,
    .split_codes = host_split_codes,
    .take = host_take,
    .place = host_place,
    .count_runs = host_count_runs,
    .write_runs = host_write_runs,
    .count_keys = host_count_keys,
    .write_counted = host_write_counted,
};

hsort_status engine_open_host(int threads, size_t memory_limit, struct engine **engine)
{
    struct host_engine *host = malloc(sizeof *host);
    *engine = NULL;
    if (!host)
        return status_fail(HSORT_HOST_MEMORY, "cannot allocate %zu bytes for the host engine", sizeof *host);
    *host = (struct host_engine){.base.ops = &host_ops, .threads = threads, .memory_limit = memory_limit};
    *engine = &host->base;
    return HSORT_OK;
}
