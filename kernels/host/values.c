/* Keys of few values on CPU cores: a table counts them, and the sorted keys are written from that.
 *
 * The table is a hash table with open addressing: a value lies at the place that its mixed code names, or at
 * the next free one behind. A place is free while its count is 0, and not by a code of its own, so every code
 * can be stored. Here 8 places, in which 7 and 2 both belong to place 1, and 9 to the last:
 *
 *     keys 7 2 7 9 7 2            place    0  1   2   3  4  5  6  7
 *                                 code     .  7   2   .  .  .  .  9
 *                                 keys     0  3   2   0  0  0  0  1
 *
 * In order, the values lie together at the front, and with each is the position behind its last key, so that
 * the first value whose end lies behind a position is the one of the key there:
 *
 *                                 code     2  7   9
 *                                 end      2  5   6         position 3: 7
 *
 * One place in four stays free, or a search for a value that is not there would pass over much of the table:
 * what does not fit then is left out, and the table says that something was.
 *
 * One thread counts. Threads with a table each would need as many times the memory, and one for all needs a
 * claim on each place; either is worth its code only where the host engine is to be fast at this, and it is
 * here so that there is something to compare a GPU's table with. */
#include <stdlib.h>
#include <string.h>
#include "kernels/host/host_engine.h"
#include "kernels/host/keys.h"

enum { ALIGNMENT = 256 };

struct place {
    uint64_t code;
    union {
        int64_t keys; // 0: the place is free
        int64_t end;  // in order: the position behind its last key
    };
};

/* All of the workspace. */
struct table {
    _Alignas(ALIGNMENT) int64_t values; // places that are not free
    bool full;                          // a value was left out
    _Alignas(ALIGNMENT) struct place places[];
};

static size_t host_values_workspace(const struct engine *engine, int log)
{
    (void)engine;
    return sizeof(struct table) + (sizeof(struct place) << log);
}

/* The finaliser of MurmurHash3 (Appleby, 2011): neighbours and multiples of powers of two spread as well as
 * any. */
static inline uint64_t mixed(uint64_t code)
{
    code = (code ^ code >> 33) * UINT64_C(0xff51afd7ed558ccd);
    code = (code ^ code >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return code ^ code >> 33;
}

/* `keys` more keys of the value `code`. False if the value is new and there is no place for it. */
static inline bool add(struct table *table, int log, uint64_t code, int64_t keys)
{
    const uint64_t last = (UINT64_C(1) << log) - 1;
    uint64_t at = mixed(code) & last;
    while (table->places[at].keys != 0 && table->places[at].code != code)
        at = (at + 1) & last;
    struct place *place = &table->places[at];
    if (place->keys == 0) {
        if (table->values == INT64_C(3) << (log - 2))
            return false;
        table->values++;
        place->code = code;
    }
    place->keys += keys;
    return true;
}

static hsort_status host_count_values(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                      int64_t count, uint64_t low, uint64_t high, int log, void *workspace,
                                      bool *fits)
{
    const struct keymap map = raw->map;
    struct table *table = workspace;
    (void)low, (void)high;
    *fits = false;
    TRY(kernel_takes("count of values", key_bytes));
    memset(table, 0, host_values_workspace(engine, log));
    for (int64_t i = 0; i < count && !table->full; i++)
        table->full = !add(table, log, keymap_encode(map, key_load(map.key_bytes, raw->from, i)), 1);
    *fits = !table->full;
    return HSORT_OK;
}

static hsort_status host_list_values(struct engine *engine, int log, void *workspace,
                                     struct engine_value *list, int64_t most, int64_t *values)
{
    const struct table *table = workspace;
    int64_t listed = 0;
    (void)engine;
    *values = -1;
    TRY(kernel_passes("list of values"));
    if (table->values > most)
        return HSORT_OK;
    for (int64_t at = 0; at < INT64_C(1) << log; at++)
        if (table->places[at].keys != 0)
            list[listed++] = (struct engine_value){table->places[at].code, table->places[at].keys};
    *values = listed;
    return HSORT_OK;
}

/* A value without keys, or with less than none, can only come from a rank that failed: a place must not take
 * it for one that is free. */
static hsort_status host_add_values(struct engine *engine, int log, void *workspace,
                                    const struct engine_value *list, int64_t values)
{
    struct table *table = workspace;
    (void)engine;
    TRY(kernel_passes("sum of values"));
    for (int64_t i = 0; i < values && !table->full; i++)
        if (list[i].keys > 0)
            table->full = !add(table, log, list[i].code, list[i].keys);
    return HSORT_OK;
}

static int compare_codes(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    return (left->code > right->code) - (left->code < right->code);
}

static hsort_status host_order_values(struct engine *engine, int log, void *workspace, bool *fits)
{
    struct table *table = workspace;
    int64_t found = 0, end = 0;
    (void)engine;
    *fits = false;
    TRY(kernel_passes("sort of values"));
    for (int64_t at = 0; at < INT64_C(1) << log; at++)
        if (table->places[at].keys != 0)
            table->places[found++] = table->places[at];
    qsort(table->places, (size_t)found, sizeof table->places[0], compare_codes);
    for (int64_t i = 0; i < found; i++) {
        end += table->places[i].keys;
        table->places[i].end = end;
    }
    *fits = !table->full;
    return HSORT_OK;
}

/* The value of the key at `position`: the first that ends behind it. */
static int64_t find_value(const struct table *table, int64_t position)
{
    int64_t low = 0, high = table->values;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (table->places[middle].end <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Each thread writes one contiguous part. */
static hsort_status host_write_values(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                      int log, void *workspace, int64_t from, int64_t until, void *out)
{
    const struct table *table = workspace;
    const int64_t count = until - from;
    const int parts = count >= PARALLEL_COUNT ? host_threads(engine) : 1;
    (void)log;
    TRY(kernel_takes("write of values", key_bytes));
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int part = 0; part < parts; part++) {
        int64_t next = count / parts * part;
        const int64_t stop = part == parts - 1 ? count : count / parts * (part + 1);
        for (int64_t i = find_value(table, from + next); i < table->values && next < stop; i++) {
            const int64_t end = table->places[i].end - from;
            const uint64_t code = table->places[i].code,
                           key = raw->decode ? keymap_decode(raw->map, code) : code;
            repeat_key(key_bytes, key, out, next, end < stop ? end : stop);
            next = end;
        }
    }
    return HSORT_OK;
}

const struct engine_counting_ops host_counting_ops = {
    .workspace = host_values_workspace,
    .count = host_count_values,
    .list = host_list_values,
    .add = host_add_values,
    .order = host_order_values,
    .write = host_write_values,
};
