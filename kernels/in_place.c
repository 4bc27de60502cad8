/* Sort with less scratch than keys: in chunks, each sorted by a rung that needs scratch of the chunk's size, and then
 * merged two and two where they lie. The code is written against engine.h, so it serves all engines.
 *
 * To merge two neighbouring runs, a and b: the cut that leaves as many keys on its left as a has tells which keys of a
 * must go right, and as many keys of b must go left. The keys of a move into scratch. The places where they were, and
 * then those where the keys of b were, can be merged into:
 *
 *                                                        scratch
 *     1 4 6 9 | 2 3 5 8      the lowest 4: 1 4 and 2 3     . .
 *     1 4 . .   2 3 5 8      6 9 go                        6 9
 *     1 2 3 4   . . 5 8      1 4 and 2 3, downwards        6 9
 *     1 2 3 4   5 6 8 9      5 8 and 6 9, upwards          . .
 *
 * Of random runs of equal length a quarter moves, so scratch for a quarter of both is enough; keys in order do not move
 * at all. If more keys must move than scratch holds, both parts change places, which needs no buffer, and each side is
 * again merged like two neighbours:
 *
 *     1 4 6 9 | 2 3 5 8  --->  1 4 | 2 3     6 9 | 5 8
 *
 * Such a merge has one run that moved away and one that rests in the place of the result. Between the keys already
 * merged and those of the resting run that are not yet read is a gap, as wide as what is left of the moved run. All
 * tiles of a launch run at once, so a launch may write no more than the gap: a window. The gap shrinks with each
 * window:
 *
 *     . . . . 2 3 5 8    moved 1 4 6 9     gap 4: a window of 4 takes 1 4 and 2 3
 *     1 2 3 4 . . 5 8    moved 6 9         gap 2: 5 and 6
 *     1 2 3 4 5 6 . 8    moved 9           gap 1: not worth a launch, so 8 goes aside, into scratch, and out of the way
 *     1 2 3 4 5 6 8 9
 *
 * Going aside costs a second copy of the resting keys, which a window in the gap does not. But without it, if one moved
 * key were above all resting ones, each of these would take a launch.
 *
 * Rejected: adding one chunk after the other to what is merged already. Whatever the keys, the smaller run then fits
 * into scratch, and no parts change places; but k chunks take k / 2 passes over all keys, instead of log2(k) and what
 * the swaps take. */
#include "kernels/in_place.h"
#include "kernels/base/lesser.h"

enum {
    WINDOWS = 16 /* a gap below this part of scratch is too small for a window */
};

struct in_place {
    struct engine *engine;
    int rung, key_bytes;
    char *scratch; /* [scratch_count] */
    int64_t scratch_count;
    void *workspace;
};

static char *key_place(const struct in_place *p, char *keys, int64_t i)
{
    return keys + i * p->key_bytes;
}

static hsort_status copy_keys(const struct in_place *p, char *to, const char *from, int64_t count)
{
    return p->engine->ops->copy(p->engine, STREAM_WORK, to, from, (size_t)count * (size_t)p->key_bytes);
}

/* ---- a moved run and a resting one --------------------------------------------------------------------- */

/* Merge what a window takes of both runs into out. If out would overwrite keys of the resting run before they are read,
 * they go through buffer [resting_count]; otherwise that is NULL. */
static hsort_status merge_window(const struct in_place *p, const char *moved, int64_t moved_count,
                                 const char *resting, int64_t resting_count, char *buffer, char *out)
{
    if (buffer) {
        TRY(copy_keys(p, buffer, resting, resting_count));
        resting = buffer;
    }
    return p->engine->ops->merge(p->engine, p->key_bytes, moved, moved_count, resting, resting_count, out);
}

/* Merge `moved` [moved_count], the last keys of scratch, with the run in the last places of out [moved_count +
 * resting_count]. Goes upwards: the gap lies below the resting run, and free scratch lies below `moved`. */
static hsort_status merge_up(const struct in_place *p, char *moved, int64_t moved_count,
                             int64_t resting_count, char *out)
{
    const struct engine_ops *ops = p->engine->ops;
    while (moved_count > 0) {
        char *resting = key_place(p, out, moved_count), *buffer = NULL;
        int64_t window = moved_count, of_moved;
        if (moved_count < p->scratch_count / WINDOWS) {
            buffer = p->scratch;
            window = lesser(p->scratch_count - moved_count, moved_count + resting_count);
        }
        TRY(ops->cut(p->engine, p->key_bytes, moved, moved_count, resting, resting_count, window, &of_moved));
        const int64_t of_resting = window - of_moved;
        TRY(merge_window(p, moved, of_moved, resting, of_resting, buffer, out));
        moved = key_place(p, moved, of_moved);
        moved_count -= of_moved;
        resting_count -= of_resting;
        out = key_place(p, out, window);
    }
    return HSORT_OK;
}

/* Merge the run in the first places of out [resting_count + moved_count] with `moved` [moved_count], which lies above.
 * Goes downwards, from the last keys of both. The last moved_count keys of scratch are taken: free places are below
 * them, or where keys of `moved` were that are merged already. */
static hsort_status merge_down(const struct in_place *p, char *moved, int64_t moved_count,
                               int64_t resting_count, char *out)
{
    const struct engine_ops *ops = p->engine->ops;
    const int64_t all_moved = moved_count, free_count = p->scratch_count - moved_count;
    while (moved_count > 0) {
        char *buffer = NULL;
        int64_t window = moved_count, kept;
        if (moved_count < p->scratch_count / WINDOWS) {
            const int64_t merged = all_moved - moved_count;
            buffer = free_count > merged ? p->scratch : key_place(p, moved, moved_count);
            window = lesser(greater(free_count, merged), moved_count + resting_count);
        }
        const int64_t below = resting_count + moved_count - window;
        TRY(ops->cut(p->engine, p->key_bytes, out, resting_count, moved, moved_count, below, &kept));
        const int64_t moved_kept = below - kept;
        TRY(merge_window(p, key_place(p, moved, moved_kept), moved_count - moved_kept,
                         key_place(p, out, kept), resting_count - kept, buffer, key_place(p, out, below)));
        moved_count = moved_kept;
        resting_count = kept;
    }
    return HSORT_OK;
}

/* ---- neighbours ---------------------------------------------------------------------------------------- */

/* Merge the run keys [a_count] and the run [b_count] right behind it. */
static hsort_status merge_neighbours(const struct in_place *p, char *keys, int64_t a_count, int64_t b_count)
{
    const struct engine_ops *ops = p->engine->ops;
    char *b = key_place(p, keys, a_count);
    int64_t stay;
    if (a_count == 0 || b_count == 0)
        return HSORT_OK;
    TRY(ops->cut(p->engine, p->key_bytes, keys, a_count, b, b_count, a_count, &stay));
    const int64_t change = a_count - stay; // so many keys of a must go right, and of b left
    char *going = key_place(p, keys, stay);
    if (change == 0)
        return HSORT_OK;
    if (change > p->scratch_count) {
        TRY(ops->swap(p->engine, p->key_bytes, going, b, change));
        TRY(merge_neighbours(p, keys, stay, change));
        return merge_neighbours(p, b, change, b_count - change);
    }
    char *moved = key_place(p, p->scratch, p->scratch_count - change);
    TRY(copy_keys(p, moved, going, change));
    TRY(merge_down(p, b, change, stay, keys));
    return merge_up(p, moved, change, b_count - change, b);
}

/* Merge the runs that end at border[1] .. border[runs]. */
static hsort_status merge_between(const struct in_place *p, char *keys, const int64_t *border, int64_t runs)
{
    const int64_t half = runs / 2;
    if (runs < 2)
        return HSORT_OK;
    TRY(merge_between(p, keys, border, half));
    TRY(merge_between(p, keys, border + half, runs - half));
    return merge_neighbours(p, key_place(p, keys, border[0]), border[half] - border[0],
                            border[runs] - border[half]);
}

hsort_status in_place_merge(struct engine *engine, int key_bytes, void *keys, const int64_t *border,
                            int64_t runs, void *scratch, int64_t scratch_count)
{
    const struct in_place p = {
        .engine = engine, .key_bytes = key_bytes, .scratch = scratch, .scratch_count = scratch_count};
    return merge_between(&p, keys, border, runs);
}

/* ---- chunks -------------------------------------------------------------------------------------------- */

static hsort_status sort_one_chunk(const struct in_place *p, char *keys, int64_t count)
{
    void *sorted;
    TRY(p->engine->ops->sort(p->engine, p->rung, p->key_bytes, keys, p->scratch, count, count, p->workspace,
                             NULL, &sorted));
    return sorted == keys ? HSORT_OK : copy_keys(p, keys, sorted, count);
}

/* Sort keys [count] as `chunks` chunks, whose sizes differ by one key at most. */
static hsort_status sort_chunks(const struct in_place *p, char *keys, int64_t count, int64_t chunks)
{
    if (chunks == 1)
        return sort_one_chunk(p, keys, count);
    const int64_t a_chunks = (chunks + 1) / 2, longer = count % chunks; // so many chunks have one key more
    const int64_t a_count = count / chunks * a_chunks + lesser(longer, a_chunks);
    TRY(sort_chunks(p, keys, a_count, a_chunks));
    TRY(sort_chunks(p, key_place(p, keys, a_count), count - a_count, chunks - a_chunks));
    return merge_neighbours(p, keys, a_count, count - a_count);
}

int64_t in_place_chunk(int64_t count, int64_t scratch_count)
{
    const int64_t chunks = scratch_count > 0 ? divide_up(count, scratch_count) : INT64_MAX;
    return chunks <= ENGINE_CHUNKS_MAX ? divide_up(count, chunks) : 0;
}

hsort_status in_place_sort(struct engine *engine, int rung, int key_bytes, void *keys, int64_t count,
                           void *scratch, int64_t scratch_count, void *workspace)
{
    const struct in_place p = {engine, rung, key_bytes, scratch, scratch_count, workspace};
    return sort_chunks(&p, keys, count, divide_up(count, scratch_count));
}
