/* Merge of many runs on CPU cores: memory is read once and written once, however many runs there are.
 *
 * The output is cut at exact positions into a part per thread, and a part is cut, as it goes, into tiles that fit a
 * cache. A tile takes from every run the keys up to one pivot: the smallest of the keys that end a window of each run.
 * So no run gives more than its window, and all windows together are a tile. The pieces of a tile are then merged in
 * pairs, to and fro between the tile's place in the output and a scratch of one tile, the last time into the output:
 *
 *     windows of 3       1 4 8 | 9        2 3 5 | 6       5 6 7 | 8       pivot 5, of the second run
 *     up to the pivot    1 4              2 3 5           .               equal keys: only of runs before it
 *     in pairs           1 2 3 4 5
 *     next windows       8 9              6               5 6 7           pivot 7
 *
 * Rejected: a tree of losers. It moves each key once, but finding the next key is one long chain of comparisons, while
 * merging in pairs has two short chains in step (merge.c), and that code exists already. More than MANY runs are merged
 * in groups first, and then the groups are merged.
 *
 * Source   Knuth, TAOCP vol. 3, 5.4.1 (trees of losers); Salzberg, "Merging sorted runs using large main
 *          memory", 1989 (windows). */
#include <omp.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "kernels/host/host_engine.h"

enum {
    MANY = 256,     // runs that are merged at once
    TILE = 1 << 14, // keys that stay in the cache while they are merged, and fit on a stack; half as many of 16 bytes
};
_Static_assert(TILE / 2 >= MANY, "every run has a window");

/* What is left of a run, or a piece of one: positions. */
struct run_part {
    int64_t begin, end;
};

#define KEY_WIDTH_BODY "kernels/host/merge_many_body.h"
#include "kernels/host/for_key_widths.h"

int64_t merge_find(int key_bytes, const void *keys, int64_t count, key_code code, bool or_equal)
{
    const struct run_part all = {0, count};
    if (code > key_max(key_bytes))
        return count;
    KEY_RETURN(key_bytes, find_in_run, keys, all, code, or_equal);
}

/* Merge up to MANY stretches of `stride` runs each, from run `first` on, to the same place in `out`. */
static void merge_group(int threads, int key_bytes, const void *runs, const int64_t *run_offset, int64_t k,
                        int64_t first, int64_t stride, void *out)
{
    struct run_part run[MANY];
    int count = 0;
    for (; count < MANY && first < k; count++, first += stride)
        run[count] = (struct run_part){run_offset[first], run_offset[lesser(first + stride, k)]};
    KEY_CALL(key_bytes, merge_all, threads, runs, run, count, out);
}

static bool is_one_run(const int64_t *run_offset, int k)
{
    int with_keys = 0;
    for (int i = 0; i < k; i++)
        with_keys += run_offset[i + 1] > run_offset[i];
    return with_keys <= 1;
}

void *merge_many(int threads, int key_bytes, void *runs, const int64_t *run_offset, int k, void *out)
{
    if (is_one_run(run_offset, k))
        return runs;
    // With each turn, MANY times as many of the given runs are merged into one.
    for (int64_t stride = 1; stride < k; stride *= MANY) {
        for (int64_t first = 0; first < k; first += stride * MANY)
            merge_group(threads, key_bytes, runs, run_offset, k, first, stride, out);
        void *merged = out;
        out = runs;
        runs = merged;
    }
    return runs;
}
