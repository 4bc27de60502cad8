/* Merge of two runs on CPU cores, cut into equal parts by merge path.
 *
 * Draw run a downwards and run b to the right; merging walks from the upper left corner to the lower right
 * one, down where the next key is of a, right where it is of b. Diagonal k holds the walk's place after k
 * keys, and a binary search along it finds that place without walking. So all parts of the output have
 * equally many keys, whatever the keys are, and each part knows its own pieces of a and b:
 *
 *        b   2   3   3   9
 *      a   o
 *      1   |                 part   keys of a   keys of b   output
 *          +---o             0      1           2           1 2
 *      3       |             1      3           3           3 3    (a first)
 *              +---o---+     2      4           3           3 4
 *      4               |     3      8           9           8 9
 *                      o
 *      8               |
 *                      +---o       o: diagonals 0, 2, 4, 6, 8
 *
 * A thread cuts its part in two once more and merges the halves in step: finding the next key takes a chain
 * of loads and comparisons that depend on each other, and the core works on two such chains at a time.
 *
 * Source   Green, McColl, Bader, "GPU merge path: a GPU merging algorithm", 2012, section 3. */
#include <omp.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "kernels/host/host_engine.h"

/* The second cut of a part of `length` keys that begins at a_from. In sorted runs it is where it should be; in unsorted
 * runs it may lie anywhere, and is held between what is left of the part, of a and of b. */
static int64_t hold_cut(int64_t cut, int64_t a_from, int64_t length, int64_t a_count, int64_t least)
{
    return int64_clamp(cut, greater(least, a_from), lesser(a_from + length, a_count));
}

#define KEY_WIDTH_BODY "kernels/host/merge_body.h"
#include "kernels/host/for_key_widths.h"

int64_t merge_cut(int key_bytes, const void *a, int64_t a_count, const void *b, int64_t b_count, int64_t rank)
{
    KEY_RETURN(key_bytes, merge_path, a, a_count, b, b_count, rank);
}

/* Where a run begins. An empty run may be NULL, and not even 0 may be added to NULL: it begins where the keys go. */
static const void *run_begin(const void *run, int64_t count, const void *out)
{
    return count > 0 ? run : out;
}

void merge_alone(int key_bytes, const void *a, int64_t a_count, const void *b, int64_t b_count, void *out)
{
    a = run_begin(a, a_count, out);
    b = run_begin(b, b_count, out);
    KEY_CALL(key_bytes, merge_part, a, a_count, b, b_count, out);
}

void merge_runs(int threads, int key_bytes, const void *a, int64_t a_count, const void *b, int64_t b_count,
                void *out)
{
    if (a_count + b_count == 0) // `out` may be NULL, too
        return;
    a = run_begin(a, a_count, out);
    b = run_begin(b, b_count, out);
    KEY_CALL(key_bytes, merge_by_threads, a, a_count, b, b_count, out, threads);
}
