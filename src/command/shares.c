#include "src/command/shares.h"
#include "src/command/launch.h"
#include <stdlib.h>
#include <string.h>

static int64_t key_bytes(const struct share *share)
{
    return (int64_t)hsort_type_bytes(share->type);
}

static void show_progress(const struct share *share, const char *phase, int64_t done)
{
    if (done > 0)
        progress_bytes(share->progress, phase, done, share->count, share->total * key_bytes(share));
}

/* ---- both ends ----------------------------------------------------------------------------------------- */

static void begin_phase(struct share *share, const char *phase)
{
    share->phase = phase;
    share->began = MPI_Wtime();
    stop_vote_begin(&share->vote, share->comm);
}

/* Shall the next part be moved? If ranks ask together, they agree at each step, and no vote runs beside that, because the vote would be
 * a second collective call at the same time on some ranks. */
static bool ask(struct share *share, bool together)
{
    int asked = 0;
    if (!together)
        return !stop_vote_seen(&share->vote);
    if (stop_agree(share->comm, &asked) != HSORT_OK || asked)
        share->vote.left = true;
    return !share->vote.left;
}

/* End a phase that ranks may leave early. */
static hsort_status end_phase(struct share *share, double *seconds, hsort_status mine)
{
    bool stopped;
    struct trace_span *span = trace_begin(share->comm->trace, "wait for votes");
    mine = trace_end_with(span, stop_vote_end(&share->vote, mine, &stopped));
    *seconds = MPI_Wtime() - share->began;
    if (mine != HSORT_OK || !stopped)
        return mine;
    return status_fail(HSORT_STOPPED, "asked to stop while %s", share->phase);
}

/* ---- the source ---------------------------------------------------------------------------------------- */

static void begin_reading(void *user)
{
    begin_phase(user, "keys were read");
}

static bool read_next(void *user, int64_t done, bool together)
{
    struct share *share = user;
    show_progress(share, "read", done);
    stop_hold(FAULT_HOLD_READ, "before the next chunk is read", together ? NULL : &share->vote);
    return ask(share, together);
}

static hsort_status read_bytes(void *user, int64_t at, size_t bytes, void *host)
{
    const struct share *share = user;
    struct trace_span *span = trace_begin(share->comm->trace, "read file");
    trace_bytes(span, (int64_t)bytes);
    return trace_end_with(span, file_read_at(share->in, share->first * key_bytes(share) + at, bytes, host));
}

static size_t input_lead(void *user, int64_t at)
{
    const struct share *share = user;
    return file_in_lead(share->in, share->first * key_bytes(share) + at);
}

static hsort_status end_reading(void *user, int64_t done, hsort_status mine)
{
    struct share *share = user;
    show_progress(share, "read", done);
    if (mine == HSORT_OK)
        mine = file_check_unchanged(share->in);
    mine = end_phase(share, &share->read_seconds, mine);
    share->phase = mine == HSORT_OK ? "shards were sorted" : share->phase;
    return mine;
}

/* ---- the sink ------------------------------------------------------------------------------------------ */

static void begin_writing(void *user)
{
    begin_phase(user, "keys were written");
}

static bool write_next(void *user, int64_t done, bool together)
{
    struct share *share = user;
    show_progress(share, "write", done);
    stop_hold(FAULT_HOLD_WRITE, "before the next chunk is written", together ? NULL : &share->vote);
    return ask(share, together);
}

/* Does the output hold these bytes already? If there is no memory to read them back, they are written anew. */
static hsort_status are_there(const struct file_out *out, int64_t at, size_t bytes, const void *keys,
                              bool *there)
{
    void *found = malloc(bytes);
    *there = false;
    if (!found)
        return HSORT_OK;
    const hsort_status status = file_read_back_at(out, at, bytes, found);
    *there = status == HSORT_OK && memcmp(found, keys, bytes) == 0;
    free(found);
    return status;
}

/* Write bytes [bytes] of all keys from `at` on; an earlier run has written all of them (`before`) or none. */
static hsort_status write_range(struct share *share, int64_t at, size_t bytes, const void *keys, bool before)
{
    bool there = false;
    if (before)
        TRY(are_there(share->out, at, bytes, keys, &there));
    if (!there)
        return file_write_at(share->out, at, bytes, keys);
    atomic_fetch_add(&share->kept_bytes, (long long)bytes);
    return HSORT_OK;
}

/*      manifest     |  written  |          |  written |
 *      chunk               |-------------------|              write_range(): | there? | anew   | there? |         */
static hsort_status write_share_bytes(struct share *share, int64_t at, size_t bytes, void *host)
{
    const int64_t width = key_bytes(share), begin = share->first * width + at, end = begin + (int64_t)bytes;
    for (int64_t from = begin, to; from < end; from = to) {
        int64_t last = share->total;
        const bool before = share->before && checkpoint_has(share->before, from / width, &last);
        to = last < end / width ? last * width : end;
        TRY(write_range(share, from, (size_t)(to - from), (const char *)host + (from - begin), before));
    }
    return HSORT_OK;
}

static hsort_status write_bytes(void *user, int64_t at, size_t bytes, void *host)
{
    struct share *share = user;
    struct trace_span *span = trace_begin(share->comm->trace, "write file");
    trace_bytes(span, (int64_t)bytes);
    return trace_end_with(span, write_share_bytes(share, at, bytes, host));
}

static size_t output_lead(void *user, int64_t at)
{
    const struct share *share = user;
    return file_out_lead(share->out, share->first * key_bytes(share) + at);
}

static hsort_status end_writing(void *user, int64_t done, hsort_status mine)
{
    struct share *share = user;
    show_progress(share, "write", done);
    share->has_written = true;
    share->written = done;
    return end_phase(share, &share->write_seconds, mine);
}

/* ---- the output, read back ----------------------------------------------------------------------------- */

static void begin_reread(void *user)
{
    begin_phase(user, "keys were read back");
}

static bool reread_next(void *user, int64_t done, bool together)
{
    show_progress(user, "verify", done);
    return ask(user, together);
}

static hsort_status reread_bytes(void *user, int64_t at, size_t bytes, void *host)
{
    const struct share *share = user;
    struct trace_span *span = trace_begin(share->comm->trace, "read output");
    trace_bytes(span, (int64_t)bytes);
    return trace_end_with(span, file_read_back_at(share->out, share->first * key_bytes(share) + at, bytes, host));
}

static hsort_status end_reread(void *user, int64_t done, hsort_status mine)
{
    struct share *share = user;
    show_progress(share, "verify", done);
    return end_phase(share, &share->reread_seconds, mine);
}

/* ---- the share ----------------------------------------------------------------------------------------- */

void share_open(struct share *share, struct comm *comm, struct progress *progress, const struct file_in *in)
{
    *share = (struct share){.comm = comm,
                            .progress = progress,
                            .type = in->type,
                            .total = in->count,
                            .in = in,
                            .phase = "keys were read",
                            .source = {.user = share,
                                       .begin = begin_reading,
                                       .next = read_next,
                                       .move = read_bytes,
                                       .lead = input_lead,
                                       .end = end_reading},
                            .sink = {.user = share,
                                     .begin = begin_writing,
                                     .next = write_next,
                                     .move = write_bytes,
                                     .lead = output_lead,
                                     .end = end_writing},
                            .reread = {.user = share,
                                       .begin = begin_reread,
                                       .next = reread_next,
                                       .move = reread_bytes,
                                       .lead = output_lead,
                                       .end = end_reread}};
    share->first = launch_share(share->total, comm->rank, comm->size);
    share->count = launch_share(share->total, comm->rank + 1, comm->size) - share->first;
}

void share_set_output(struct share *share, const struct file_out *out, const struct checkpoint *before)
{
    share->out = out;
    share->before = before && before->ranges > 0 ? before : NULL;
}
