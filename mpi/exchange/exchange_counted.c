/* The exchange of keys of few values: no key moves. Every rank counts how many of its keys have each value,
 * the ranks read each other's counts, and each writes its part of the sorted keys anew: equal keys are the
 * same bits, and nobody can tell one from the other.
 *
 *              keys          counted           listed in x->scratch     all lists added, in order      positions wanted
 *     rank 0   7 3 7 3 3     7 (2)  3 (3)      read by rank 1         3 (4)  7 (4)  9 (2)            0 .. 4   3 3 3 3 7
 *     rank 1   9 7 3 9 7     9 (2)  7 (2)      read by rank 0         3 (4)  7 (4)  9 (2)            5 .. 9   7 7 7 9 9
 *                            3 (1)
 *
 * Every rank adds up all lists by itself, rather than a part of each that would then have to be put together:
 * that would be one more round of messages, to save what is little beside one pass over the keys.
 *
 * It needs no memory of its own: the table takes all of x->memory, as nothing is partitioned, and the list
 * lies in the scratch buffer. Up to the last agreement keys are only read. So wherever values turn out to be
 * too many, of a rank or of all, the caller can still go another way. */
#include "mpi/exchange/exchange_partition.h"

/* That a rank's part goes to the host in: what is written first need not wait for the rest. */
enum { OUT_PIECES = 8 };

/* What ranks gather of each other, in p->found. */
enum { GATHERED_VALUES, GATHERED_FAILED, GATHERED };

/* The table of values that a rank counts in. */
struct counting {
    int log;                   /* of the table of values; 0: there is no memory for one */
    void *workspace;           /* of the table */
    struct engine_value *list; /* [most] for the peers to read */
    int64_t most;
};

/* As large a table as the memory allows, as one value too many means that counting has failed. */
static struct counting plan_counting(const struct exchange *x)
{
    enum { ALIGNMENT = sizeof(struct engine_value) };
    const struct engine_ops *ops = x->engine->ops;
    const size_t available = exchange_partition.memory_bytes(x->engine, x->key_bytes, x->capacity);
    // Once keys have been spread anew x->scratch may be the caller's memory, which has the alignment of a
    // key.
    const size_t skipped = -(uintptr_t)x->scratch % ALIGNMENT;
    const int64_t left = x->capacity * x->key_bytes - (int64_t)skipped;
    struct counting t = {.log = ops->counting ? ENGINE_VALUES_LOG_MAX : 0,
                         .workspace = x->memory,
                         .list = (struct engine_value *)((char *)x->scratch + skipped),
                         .most = left > 0 ? left / (int64_t)sizeof *t.list : 0};
    while (t.log >= ENGINE_VALUES_LOG_MIN && ops->counting->workspace(x->engine, t.log) > available)
        t.log--;
    if (t.log < ENGINE_VALUES_LOG_MIN)
        t.log = 0;
    return t;
}

/* Between which codes this rank's keys lie, as its part of the sample has it. */
static void sample_range(const struct exchange *x, uint64_t *low, uint64_t *high)
{
    const struct partition_tables *p = x->tables;
    const int rank = x->comm->rank;
    const uint64_t *own = p->sample + p->offsets[rank];
    *low = *high = p->counts[rank] > 0 ? own[0] : 0;
    for (int i = 1; i < p->counts[rank]; i++) {
        *low = own[i] < *low ? own[i] : *low;
        *high = own[i] > *high ? own[i] : *high;
    }
}

/* Count this rank's keys, and list their values if there is anybody to read that. *values: in the list; -1:
 * there are too many. */
static hsort_status count_values(struct exchange *x, int64_t count, const struct counting *t, int64_t *values)
{
    const struct engine_ops *ops = x->engine->ops;
    uint64_t low, high;
    bool fits;
    *values = -1;
    if (t->log == 0)
        return HSORT_OK;
    sample_range(x, &low, &high);
    TRY(ops->counting->count(x->engine, x->key_bytes, x->raw, count, low, high, t->log, t->workspace, &fits));
    if (!fits)
        return HSORT_OK;
    if (x->comm->size > 1)
        return ops->counting->list(x->engine, t->log, t->workspace, t->list, t->most, values);
    *values = 0;
    return HSORT_OK;
}

/* Tell all ranks how many values this one has listed, and whether it has failed. True if all have listed
 * theirs: the same answer on every rank. Collective. */
static bool gather_list_sizes(struct exchange *x, int64_t values, hsort_status *status)
{
    int64_t *found = partition_of(x)->found;
    const int64_t own[GATHERED] = {[GATHERED_VALUES] = values, [GATHERED_FAILED] = *status != HSORT_OK};
    keep_first_error(status, comm_check(MPI_Allgather(own, GATHERED, MPI_INT64_T, found, GATHERED,
                                                      MPI_INT64_T, x->comm->world),
                                        "MPI_Allgather", true));
    bool all = true;
    for (int r = 0; r < x->comm->size; r++)
        all = all && found[r * GATHERED + GATHERED_VALUES] >= 0 && !found[r * GATHERED + GATHERED_FAILED];
    return all;
}

/* Expose the whole list to every peer. `status` and *all as for partition_all_exposed(). Collective. */
static hsort_status expose_list(struct exchange *x, const struct counting *t, hsort_status status, bool *all)
{
    const int64_t bytes =
        partition_of(x)->found[x->comm->rank * GATHERED + GATHERED_VALUES] * (int64_t)sizeof *t->list;
    for (int peer = 0; peer < x->comm->size; peer++)
        if (peer != x->comm->rank)
            keep_first_error(&status, partition_expose(x, peer, t->list, bytes));
    return partition_all_exposed(x, status, all);
}

/* Add the peers' lists to the table. Each rank begins with another peer, or all would read the same list at
 * first. */
static hsort_status add_lists(struct exchange *x, const struct counting *t)
{
    const struct partition_tables *p = x->tables;
    for (int step = 1; step < x->comm->size; step++) {
        const int peer = (x->comm->rank + step) % x->comm->size;
        const int64_t values = p->found[peer * GATHERED + GATHERED_VALUES];
        if (values > 0)
            TRY(x->engine->ops->counting->add(x->engine, t->log, t->workspace, p->peer_scratch[peer],
                                              values));
    }
    return HSORT_OK;
}

/* Make one table of all ranks' keys, on each. *all: it has them all, on every rank, and none has failed; the
 * same on every rank. The lists are exposed, and no longer needed afterwards. Collective. */
static hsort_status merge_tables(struct exchange *x, const struct counting *t, bool *all)
{
    bool fits = false;
    int64_t each, any;
    hsort_status status = add_lists(x, t);
    keep_first_error(&status, partition_conceal(x)); // which waits for the reading
    if (status == HSORT_OK)
        status = x->engine->ops->counting->order(x->engine, t->log, t->workspace, &fits);
    const hsort_status agreed = comm_range(x->comm, fits && status == HSORT_OK, &each, &any);
    keep_first_error(&status, agreed);
    *all = agreed == HSORT_OK && each;
    return status;
}

/* Write this rank's part, the positions [from, until) of all keys, and take it to the host if it is wanted
 * there. */
static hsort_status write_part(struct exchange *x, struct keymap map, const struct counting *t, int64_t from,
                               int64_t until)
{
    const struct engine_ops *ops = x->engine->ops;
    const struct raw_keys raw = {.map = map, .decode = true};
    const int64_t most = x->host_out ? (until - from) / OUT_PIECES + 1 : until - from;
    hsort_status status = HSORT_OK;
    int number = 0;
    for (int64_t at = from; at < until && status == HSORT_OK; at += most) {
        const int64_t end = until - at > most ? at + most : until;
        struct engine_event *written = partition_of(x)->sorted[number++ % SLOTS];
        keep_first_error(&status,
                         ops->counting->write(x->engine, x->key_bytes, &raw, t->log, t->workspace, at, end,
                                              (char *)x->keys + (at - from) * x->key_bytes));
        keep_first_error(&status, ops->event_record(x->engine, written, STREAM_WORK));
        keep_first_error(&status, partition_copy_out(x, at - from, end - from, written));
    }
    keep_first_error(&status, ops->stream_synchronize(x->engine, STREAM_WORK));
    keep_first_error(&status, ops->stream_synchronize(x->engine, STREAM_OUT));
    return status;
}

/* Ranks that have read this one's list, or whose list this one has read. */
static int list_partners(const struct exchange *x)
{
    const int64_t *found = partition_of(x)->found;
    const bool listed = found[x->comm->rank * GATHERED + GATHERED_VALUES] > 0;
    int partners = 0;
    for (int peer = 0; peer < x->comm->size; peer++)
        partners += peer != x->comm->rank && (listed || found[peer * GATHERED + GATHERED_VALUES] > 0);
    return partners;
}

hsort_status exchange_counted(struct exchange *x, hsort_status status, bool *done)
{
    const struct counting t = plan_counting(x);
    const int rank = x->comm->rank;
    const double began = MPI_Wtime();
    int64_t values = -1;
    bool all;
    *done = false;
    if (status == HSORT_OK)
        status = count_values(x, x->current_offset[rank + 1] - x->current_offset[rank], &t, &values);
    if (!gather_list_sizes(x, values, &status))
        return status;
    x->local_seconds += MPI_Wtime() - began;
    status = expose_list(x, &t, status, &all);
    if (!all) {
        keep_first_error(&status, partition_conceal(x));
        return status;
    }
    keep_first_error(&status, merge_tables(x, &t, &all));
    if (!all)
        return status;
    keep_first_error(&status,
                     write_part(x, x->raw->map, &t, x->target_offset[rank], x->target_offset[rank + 1]));
    x->rounds_moved += list_partners(x);
    x->count = x->target_offset[rank + 1] - x->target_offset[rank];
    if (x->progress)
        x->progress(x->progress_user, 1, 1);
    *done = true;
    return status;
}
