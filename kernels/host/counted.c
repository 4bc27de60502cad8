/* Keys of 1 and 2 bytes: counting them, and writing them anew. Each thread has a part of the keys. */
#include <stdlib.h>
#include "kernels/base/lesser.h"
#include "kernels/host/host_engine.h"

static int64_t counted_values(int key_bytes)
{
    return INT64_C(1) << 8 * key_bytes;
}

/* ---- count --------------------------------------------------------------------------------------------- */

static void tally_part(int key_bytes, const void *keys, int64_t from, int64_t until, int64_t *counts)
{
    if (key_bytes == 1)
        for (int64_t i = from; i < until; i++)
            counts[((const uint8_t *)keys)[i]]++;
    else
        for (int64_t i = from; i < until; i++)
            counts[((const uint16_t *)keys)[i]]++;
}

/* counts += tables [threads][values]. */
static void add_tallies(int threads, const int64_t *tables, int64_t values, int64_t *counts)
{
#pragma omp parallel for num_threads(threads)
    for (int64_t value = 0; value < values; value++)
        for (int part = 0; part < threads; part++)
            counts[value] += tables[part * values + value];
}

/* As many threads as pay: each has a table of its own, which costs as much as some keys for every value. */
static int counting_threads(const struct engine *engine, int64_t count, int64_t values)
{
    enum { KEYS_PER_VALUE = 8 };
    const int64_t most = host_threads(engine), wanted = count / (KEYS_PER_VALUE * values);
    return count < PARALLEL_COUNT || wanted < 1 ? 1 : (int)(wanted < most ? wanted : most);
}

hsort_status host_count_keys(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                             int64_t *counts)
{
    TRY(counted_width_check(key_bytes));
    TRY(kernel_passes("count of keys"));
    const int64_t values = counted_values(key_bytes);
    const int threads = counting_threads(engine, count, values);
    if (threads == 1) {
        tally_part(key_bytes, keys, 0, count, counts);
        return HSORT_OK;
    }
    const size_t entries = (size_t)threads * (size_t)values;
    int64_t *tables = fault_hit(FAULT_ALLOC) ? NULL : calloc(entries, sizeof *tables);
    if (!tables)
        return status_fail(HSORT_HOST_MEMORY, "no memory for %d tables of %lld counts", threads,
                           (long long)values);
#pragma omp parallel for num_threads(threads)
    for (int part = 0; part < threads; part++)
        tally_part(key_bytes, keys, part_begin(count, part, threads), part_begin(count, part + 1, threads),
                   tables + part * values);
    add_tallies(threads, tables, values, counts);
    free(tables);
    return HSORT_OK;
}

/* ---- write --------------------------------------------------------------------------------------------- */

/* Write out[from] .. out[until - 1]; first: the position of out[0]. */
static void fill_part(int key_bytes, const struct engine_counted *counted, int64_t first, int64_t from,
                      int64_t until, void *out)
{
    int64_t value = first_above(counted->ends, counted->values, first + from);
    while (from < until && value < counted->values) {
        const int64_t end = counted->ends[value] - first < until ? counted->ends[value] - first : until;
        repeat_key(key_bytes, key_load(key_bytes, counted->keys, value), out, from, end);
        from = end;
        value++;
    }
}

hsort_status host_write_counted(struct engine *engine, int key_bytes, const struct engine_counted *counted,
                                int64_t first, int64_t count, void *out)
{
    TRY(counted_width_check(key_bytes));
    TRY(kernel_passes("write of counted keys"));
    const int parts = count < PARALLEL_COUNT ? 1 : host_threads(engine);
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int part = 0; part < parts; part++)
        fill_part(key_bytes, counted, first, part_begin(count, part, parts),
                  part_begin(count, part + 1, parts), out);
    return HSORT_OK;
}
