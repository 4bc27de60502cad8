/* As many keys come to a rank as leave it, so the keys that come take the places of those that leave. First any two ranks swap the keys
 * that both have for each other, by way of scratch, a part at a time. What is left goes round in circles of ranks. Here twelve keys lie
 * on three ranks, and a digit is the rank that a key belongs to:
 *
 *               as cut           pairs have swapped     then a circle: 1 from rank 0 to 1, 2 from 1 to 2, 0 from 2 to 0
 *     rank 0    0 0 | 1 1        0 0 | 0 1              0 0 0 0
 *     rank 1    0 | 1 | 2 2      1 | 1 | 1 2            1 1 1 1
 *     rank 2    0 | 1 | 2 2      0 | 2 | 2 2            2 2 2 2
 *
 * As many keys come to a rank as leave it, so what is left always consists of such circles. All ranks see all counts, so all find the
 * same circles in the same order, and a rank takes part in those that it is in. Of random keys nearly all are swapped.
 *
 * The keys that have come are runs, one behind the other, and are merged where they lie (kernels/in_place.h).
 *
 * Rejected: the rounds of the network, with swaps. The network is right only if all ranks have room for the same number of keys, and each
 * key would move log(P) / 2 times. */
#include "mpi/exchange/swap_pieces.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/fault.h"
#include "kernels/base/lesser.h"
#include "kernels/in_place.h"

/* What each rank says, behind the numbers of keys that it has for each rank. */
enum { SAYS_SCRATCH, SAYS_FAILED, SAYS };

struct swap_tables {
    int64_t *rows;   /* [size][size + SAYS] of all ranks; what has moved is taken off */
    int64_t *place;  /* [size] where the own keys that are yet to go to each rank begin */
    int64_t *border; /* [most_borders] where runs begin and end among own keys, in any order */
    int64_t most_borders;
    int *column; /* [size] for each rank: it has nothing left for the ranks below this one */
    int *path;   /* [size] ranks, each of which has keys for the next one */
    int *at;     /* [size] where in the path a rank is; -1: it is not */
};

struct swapping {
    struct swap_tables *t;
    struct exchange *x;
    int size, rank;
    int64_t borders; /* those beyond the table are not kept */
    hsort_status status;
};

void swap_tables_close(struct swap_tables *tables)
{
    if (!tables)
        return;
    free(tables->rows);
    free(tables->column);
    free(tables);
}

hsort_status swap_tables_open(int size, int64_t most_borders, struct swap_tables **tables)
{
    const size_t entries = (size_t)size, words = entries * (entries + SAYS);
    struct swap_tables *t = *tables = fault_hit(FAULT_ALLOC) ? NULL : calloc(1, sizeof *t);
    if (t) {
        t->rows = calloc(words + entries + (size_t)most_borders, sizeof *t->rows);
        t->column = calloc(3 * entries, sizeof *t->column);
    }
    if (!t || !t->rows || !t->column) {
        swap_tables_close(t);
        *tables = NULL;
        return status_fail(HSORT_HOST_MEMORY, "no memory for what %d ranks swap", size);
    }
    t->place = t->rows + words;
    t->border = t->place + entries;
    t->most_borders = most_borders;
    t->path = t->column + entries;
    t->at = t->path + entries;
    return HSORT_OK;
}

static int64_t *row_of(const struct swapping *s, int rank)
{
    return s->t->rows + (size_t)rank * (size_t)(s->size + SAYS);
}

static char *own_key(const struct swapping *s, int64_t at)
{
    return (char *)s->x->keys + (size_t)at * (size_t)s->x->key_bytes;
}

/* Note where a run ends, or begins. */
static void note_border(struct swapping *s, int64_t at)
{
    if (s->borders < s->t->most_borders)
        s->t->border[s->borders] = at;
    s->borders++;
}

/* Learn what all ranks have for each other. May keys move? The same answer on every rank. Collective. */
static bool learn_counts(struct swapping *s, const int64_t *cut_offset)
{
    const struct exchange *x = s->x;
    int64_t *own = row_of(s, s->rank), failed = 0, wrong = 0;
    for (int to = 0; to < s->size; to++)
        own[to] = cut_offset[to + 1] - cut_offset[to];
    own[s->size + SAYS_SCRATCH] = x->scratch_keys;
    own[s->size + SAYS_FAILED] = s->status != HSORT_OK;
    keep_first_error(&s->status, comm_check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, s->t->rows,
                                                          s->size + SAYS, MPI_INT64_T, x->comm->world),
                                            "MPI_Allgather", true));
    for (int rank = 0; rank < s->size; rank++) {
        int64_t comes = 0;
        for (int from = 0; from < s->size; from++)
            comes += row_of(s, from)[rank];
        wrong += comes != x->target_offset[rank + 1] - x->target_offset[rank];
        failed += row_of(s, rank)[s->size + SAYS_FAILED];
    }
    if (failed == 0 && wrong > 0)
        keep_first_error(&s->status, status_fail(HSORT_INTERNAL, "the splitters give %lld ranks wrong counts",
                                                 (long long)wrong));
    return failed == 0 && wrong == 0;
}

/* Send keys to one rank, and receive as many from another rank, or the same one, to where the sent keys lay: through scratch, because
 * what comes must not overwrite what is still read. Collective over the ranks.
 *   part  keys at a time; all these ranks have room for so many */
static void trade(struct swapping *s, int to, int from, int64_t count, int64_t part)
{
    struct exchange *x = s->x;
    const struct engine_ops *ops = x->engine->ops;
    for (int64_t done = 0; done < count; done += part) {
        const size_t bytes = (size_t)lesser(part, count - done) * (size_t)x->key_bytes;
        char *at = own_key(s, s->t->place[to] + done);
        keep_first_error(&s->status, x->transport->ops->sendrecv(x->transport, to, at, bytes, from,
                                                                 x->scratch, bytes, &x->moved_bytes));
        keep_first_error(&s->status, ops->copy(x->engine, STREAM_WORK, at, x->scratch, bytes));
        keep_first_error(&s->status, ops->stream_synchronize(x->engine, STREAM_WORK));
    }
    s->t->place[to] += count;
    note_border(s, s->t->place[to]);
    x->rounds_moved++;
}

/* Let any two ranks swap what both have for each other: in each step, the ranks whose numbers add up to that of the step, modulo the
 * number of ranks. Collective. */
static void swap_in_pairs(struct swapping *s)
{
    for (int step = 0; step < s->size; step++) {
        const int peer = (step - s->rank + s->size) % s->size;
        const int64_t *own = row_of(s, s->rank), *other = row_of(s, peer),
                      count = lesser(own[peer], other[s->rank]);
        if (peer != s->rank && count > 0)
            trade(s, peer, peer, count, lesser(own[s->size + SAYS_SCRATCH], other[s->size + SAYS_SCRATCH]));
        if (s->x->progress)
            s->x->progress(s->x->progress_user, step + 1, s->size);
    }
    for (int a = 0; a < s->size; a++) {
        row_of(s, a)[a] = 0; // that stays
        for (int b = 0; b < a; b++) {
            const int64_t swapped = lesser(row_of(s, a)[b], row_of(s, b)[a]);
            row_of(s, a)[b] -= swapped;
            row_of(s, b)[a] -= swapped;
        }
    }
}

/* The lowest rank that a rank still has keys for; or `size`. */
static int next_of(struct swapping *s, int rank)
{
    while (s->t->column[rank] < s->size && row_of(s, rank)[s->t->column[rank]] == 0)
        s->t->column[rank]++;
    return s->t->column[rank];
}

/* Let keys go round path[first] .. path[length - 1], as many as each of these has for the next. Collective. */
static void go_round(struct swapping *s, int first, int length)
{
    int64_t count = INT64_MAX, part = INT64_MAX;
    for (int i = first; i < length; i++) {
        const int64_t *row = row_of(s, s->t->path[i]);
        count = lesser(count, row[s->t->column[s->t->path[i]]]);
        part = lesser(part, row[s->size + SAYS_SCRATCH]);
    }
    for (int i = first; i < length; i++)
        row_of(s, s->t->path[i])[s->t->column[s->t->path[i]]] -= count;
    const int own = s->t->at[s->rank];
    if (own >= first)
        trade(s, s->t->path[own + 1 < length ? own + 1 : first],
              s->t->path[own > first ? own - 1 : length - 1], count, part);
}

/* Let what is left go round. A path from rank to rank ends where it meets itself. There is always a next rank, because no fewer keys are
 * to leave a rank than to come to it. Collective. */
static void go_round_in_circles(struct swapping *s)
{
    for (int rank = 0; rank < s->size; rank++) {
        s->t->column[rank] = 0;
        s->t->at[rank] = -1;
    }
    for (int start = 0, length = 0; start < s->size;) {
        if (length == 0) {
            s->t->path[length++] = start;
            s->t->at[start] = 0;
        }
        const int next = next_of(s, s->t->path[length - 1]);
        if (next == s->size) { // only of a path of one rank
            s->t->at[start++] = -1;
            length = 0;
        } else if (s->t->at[next] < 0) {
            s->t->at[next] = length;
            s->t->path[length++] = next;
        } else {
            go_round(s, s->t->at[next], length);
            while (length > s->t->at[next] + 1)
                s->t->at[s->t->path[--length]] = -1;
        }
    }
}

static int compare_places(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Merge the runs that the own keys consist of. If there are more runs than could be noted, sort the keys again, which takes fewer
 * passes. */
static hsort_status finish_runs(const struct swapping *s)
{
    const struct exchange *x = s->x;
    const struct engine_ops *ops = x->engine->ops;
    void *sorted = x->keys;
    if (s->borders <= s->t->most_borders) {
        qsort(s->t->border, (size_t)s->borders, sizeof *s->t->border, compare_places);
        TRY(in_place_merge(x->engine, x->key_bytes, x->keys, s->t->border, s->borders - 1, x->scratch,
                           x->scratch_keys));
    } else {
        TRY(ops->sort(x->engine, x->rung, x->key_bytes, x->keys, x->scratch, x->scratch_keys, x->count,
                      x->workspace, NULL, &sorted));
    }
    if (sorted != x->keys)
        TRY(ops->copy(x->engine, STREAM_WORK, x->keys, sorted, (size_t)x->count * (size_t)x->key_bytes));
    return ops->stream_synchronize(x->engine, STREAM_WORK);
}

hsort_status swap_pieces(struct swap_tables *tables, struct exchange *x, const int64_t *cut_offset,
                         hsort_status mine)
{
    struct swapping s = {.t = tables, .x = x, .size = x->comm->size, .rank = x->comm->rank, .status = mine};
    if (!learn_counts(&s, cut_offset))
        return s.status;
    for (int rank = 0; rank <= s.size; rank++)
        note_border(&s, cut_offset[rank]);
    memcpy(tables->place, cut_offset, (size_t)s.size * sizeof *cut_offset);
    swap_in_pairs(&s);
    go_round_in_circles(&s);
    const double start = MPI_Wtime();
    if (s.status == HSORT_OK && x->count > 0)
        s.status = finish_runs(&s);
    x->merge_seconds += MPI_Wtime() - start;
    return s.status;
}
