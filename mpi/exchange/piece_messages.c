/* A rank that reads another rank's memory gets no messages from it. For all others:
 *
 * A message is a part of a piece that fits a buffer. Both sides of a pair of ranks go through its messages in one
 * order: by run, then along the piece; MPI delivers messages of a pair in the order of their sends.
 *
 *     sender      run's memory --Isend-->        all of a round at once: they need no buffer
 *     receiver    --Irecv--> buffer --copy on STREAM_IN--> slot
 *
 *     message     0     1     2     3     4     5     6         message i uses buffer i % PIECE_BUFFERS, and
 *                 done  done  copy  here  Irecv Irecv -         is posted when that one's last copy is done
 *
 * Receives wait for the sends of others, sends wait only for their receiver, and no receive waits for a send of its own
 * rank. So no ranks can wait for each other in a ring, however different their rounds are.
 *
 * Pieces that are read need no round: runs stay as they are until all ranks agree at the end of the last round.
 *
 * The transports are not used: sendrecv() takes one piece at a time and returns when it is there, but a round has a
 * piece of each run of each rank, and is to go on while the engine sorts. MPI_Alltoallv and derived types are not used
 * either: their counts are ints, and neither fills bounded buffers while earlier buffers are copied on. */
#include "mpi/exchange/piece_messages.h"
#include <limits.h>
#include <stdlib.h>
#include "mpi/comm/process_memory.h"

enum { TAG_PIECE = 6 };

/* Where the messages of a round that come to this rank stand: the next one is the rest of piece `run` of the rank
 * that is `step` ranks below this one. */
struct piece_cursor {
    int step;
    int64_t run;
    size_t done;  /* bytes of the piece */
    size_t place; /* of the piece in the slot */
    bool at_rank; /* place is among the pieces of the rank of `step` */
};

/* A buffer, and the message in it. */
struct piece_buffer {
    char *memory; /* [plan.buffer_bytes] */
    struct engine_event *copied;
    MPI_Request request;
    int from;
    size_t bytes, place;
};

/* A rank whose runs this one reads: what a transfer's move() is given. */
struct piece_owner {
    const struct piece_messages *messages;
    int rank;
};

struct piece_messages {
    struct piece_plan plan;
    int64_t own_runs, own_segments;
    int64_t *arrives;       /* for each rank r, from arrives_first[r] on: its cut_offset [(own_segments + 1) * runs_of[r]] */
    int64_t *arrives_first; /* [size + 1] */
    int *counts;            /* [4 * size] for their exchange */
    const int64_t *cut_offset;
    const char *const *run;
    uint64_t *address;      /* for each rank r, from runs_first[r] on: where its runs lie in its memory [runs_of[r]] */
    int64_t *runs_first;    /* [size + 1] */
    struct process_memory theirs;
    struct piece_owner *owners;      /* [size] */
    MPI_Request *sends;              /* [sends_most] of a round */
    int64_t sends_most, sends_begun; /* in this round */
    char *memory;                    /* of all buffers; pinned */
    struct piece_buffer buffer[PIECE_BUFFERS];

    int64_t round;
    struct piece_cursor cursor; /* the next message to post */
    bool all_posted;
    int64_t posted, taken; /* messages of this round */
    struct traffic sent, shown;
    double began; /* when the first round began; 0: not yet */
};

/* ---- tables -------------------------------------------------------------------------------------------- */

void piece_messages_close(struct piece_messages *m)
{
    if (!m)
        return;
    for (int i = 0; i < PIECE_BUFFERS; i++)
        m->plan.engine->ops->event_destroy(m->plan.engine, m->buffer[i].copied);
    m->plan.engine->ops->free_host(m->plan.engine, m->memory);
    process_memory_close(&m->theirs);
    free(m->address);
    free(m->runs_first);
    free(m->owners);
    free(m->arrives);
    free(m->arrives_first);
    free(m->counts);
    free(m->sends);
    free(m);
}

static hsort_status make_buffers(struct piece_messages *m)
{
    struct engine *engine = m->plan.engine;
    TRY(engine->ops->alloc_host(engine, PIECE_BUFFERS * m->plan.buffer_bytes, (void **)&m->memory));
    for (int i = 0; i < PIECE_BUFFERS; i++) {
        m->buffer[i].memory = m->memory + (size_t)i * m->plan.buffer_bytes;
        m->buffer[i].request = MPI_REQUEST_NULL;
        TRY(engine->ops->event_create(engine, &m->buffer[i].copied));
        TRY(engine->ops->event_record(engine, m->buffer[i].copied, STREAM_IN));
    }
    return HSORT_OK;
}

/* Cuts and addresses are exchanged in messages whose counts and places are ints: are there few enough? */
static hsort_status check_cut_count(const struct piece_messages *m, int64_t runs)
{
    const int64_t segments = m->plan.first_segment[m->plan.comm->size];
    const int64_t leave = (segments + 1) * m->own_runs, come = (m->own_segments + 1) * runs;
    return leave <= INT_MAX && come <= INT_MAX
               ? HSORT_OK
               : status_fail(HSORT_HOST_MEMORY,
                             "%lld segments of %lld runs have more cuts than a message can count",
                             (long long)segments, (long long)runs);
}

static hsort_status make_piece_tables(struct piece_messages *m)
{
    const struct piece_plan *plan = &m->plan;
    const int size = plan->comm->size;
    const size_t ranks = (size_t)size;
    int64_t runs = 0;
    for (int rank = 0; rank < size; rank++)
        runs += plan->runs_of[rank];
    TRY(check_cut_count(m, runs));
    // One entry more each: none may have 0 bytes, for which some allocators return NULL.
    m->arrives = calloc((size_t)((m->own_segments + 1) * runs + 1), sizeof *m->arrives);
    m->address = calloc((size_t)runs + 1, sizeof *m->address);
    m->arrives_first = calloc(ranks + 1, sizeof *m->arrives_first);
    m->runs_first = calloc(ranks + 1, sizeof *m->runs_first);
    m->counts = calloc(4 * ranks, sizeof *m->counts);
    m->owners = calloc(ranks, sizeof *m->owners);
    if (!m->arrives || !m->address || !m->arrives_first || !m->runs_first || !m->counts || !m->owners || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the places of %lld pieces",
                           (long long)((m->own_segments + 1) * runs));
    for (int rank = 0; rank < size; rank++) {
        m->arrives_first[rank + 1] = m->arrives_first[rank] + (m->own_segments + 1) * plan->runs_of[rank];
        m->runs_first[rank + 1] = m->runs_first[rank] + plan->runs_of[rank];
        m->owners[rank] = (struct piece_owner){.messages = m, .rank = rank};
    }
    return process_memory_open(size, &m->theirs);
}

hsort_status piece_messages_open(const struct piece_plan *plan, struct piece_messages **messages)
{
    const int rank = plan->comm->rank;
    *messages = NULL;
    if (comm_is_alone(plan->comm))
        return HSORT_OK;
    struct piece_messages *m = calloc(1, sizeof *m);
    if (!m)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the messages of a sort");
    m->plan = *plan;
    m->own_runs = plan->runs_of[rank];
    m->own_segments = plan->first_segment[rank + 1] - plan->first_segment[rank];
    hsort_status status = make_piece_tables(m);
    if (status == HSORT_OK)
        status = make_buffers(m);
    if (status == HSORT_OK)
        *messages = m;
    else
        piece_messages_close(m);
    return status;
}

/* ---- places -------------------------------------------------------------------------------------------- */

/* Bytes of own run `run` in a segment of all ranks'. */
static size_t length_out(const struct piece_messages *m, int64_t segment, int64_t run)
{
    const int64_t *cut = m->cut_offset + segment * m->own_runs + run;
    return (size_t)(cut[m->own_runs] - cut[0]) * m->plan.element_bytes;
}

/* Where the piece of run `run` of rank `from` for this rank's segment of `round` begins in the run, in elements. */
static const int64_t *cut_in(const struct piece_messages *m, int from, int64_t round, int64_t run)
{
    return &m->arrives[m->arrives_first[from] + round * m->plan.runs_of[from] + run];
}

/* Bytes of that piece. */
static size_t length_in(const struct piece_messages *m, int from, int64_t round, int64_t run)
{
    const int64_t *cut = cut_in(m, from, round, run);
    return (size_t)(cut[m->plan.runs_of[from]] - cut[0]) * m->plan.element_bytes;
}

/* The same for all runs of that rank. */
static size_t rank_length_in(const struct piece_messages *m, int from, int64_t round)
{
    size_t bytes = 0;
    for (int64_t run = 0; run < m->plan.runs_of[from]; run++)
        bytes += length_in(m, from, round, run);
    return bytes;
}

/* Where in the slot the pieces of rank `from` begin. */
static size_t rank_place(const struct piece_messages *m, int from, int64_t round)
{
    size_t place = 0;
    for (int rank = 0; rank < from; rank++)
        place += rank_length_in(m, rank, round);
    return place;
}

/* Rank `to`'s segment of `round` among those of all, or -1. */
static int64_t segment_of(const struct piece_messages *m, int to, int64_t round)
{
    const int64_t segment = m->plan.first_segment[to] + round;
    return segment < m->plan.first_segment[to + 1] ? segment : -1;
}

static int64_t message_count(const struct piece_messages *m, size_t bytes)
{
    return divide_up((int64_t)bytes, (int64_t)m->plan.buffer_bytes);
}

/* Messages that this rank sends in a round. */
static int64_t sends_of_round(const struct piece_messages *m, int64_t round)
{
    int64_t sends = 0;
    for (int to = 0; to < m->plan.comm->size; to++) {
        const int64_t segment = to == m->plan.comm->rank || m->theirs.is_read[to] ? -1 : segment_of(m, to, round);
        for (int64_t run = 0; run < m->own_runs && segment >= 0; run++)
            sends += message_count(m, length_out(m, segment, run));
    }
    return sends;
}

/* Send each rank the cuts around its segments. The cuts of two consecutive ranks overlap by a row. Collective. */
static hsort_status exchange_cuts(struct piece_messages *m)
{
    const struct piece_plan *plan = &m->plan;
    const int size = plan->comm->size;
    int *sends = m->counts, *send_at = sends + size, *receives = send_at + size,
        *receive_at = receives + size;
    for (int rank = 0; rank < size; rank++) {
        const int64_t segments = plan->first_segment[rank + 1] - plan->first_segment[rank];
        sends[rank] = (int)((segments + 1) * m->own_runs);
        send_at[rank] = (int)(plan->first_segment[rank] * m->own_runs);
        receives[rank] = (int)(m->arrives_first[rank + 1] - m->arrives_first[rank]);
        receive_at[rank] = (int)m->arrives_first[rank];
    }
    return comm_check(MPI_Alltoallv(m->cut_offset, sends, send_at, MPI_INT64_T, m->arrives, receives, receive_at,
                                    MPI_INT64_T, plan->comm->world),
                      "MPI_Alltoallv", true);
}

/* Learn where all ranks' runs lie. Collective. */
static hsort_status exchange_addresses(struct piece_messages *m)
{
    const struct piece_plan *plan = &m->plan;
    const int size = plan->comm->size, own = plan->comm->rank;
    int *counts = m->counts, *at = counts + size;
    for (int rank = 0; rank < size; rank++) {
        counts[rank] = (int)plan->runs_of[rank];
        at[rank] = (int)m->runs_first[rank];
    }
    for (int64_t run = 0; run < m->own_runs; run++)
        m->address[m->runs_first[own] + run] = (uint64_t)(uintptr_t)m->run[run];
    return comm_check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, m->address, counts, at, MPI_UINT64_T,
                                     plan->comm->world),
                      "MPI_Allgatherv", true);
}

/* See whether the pieces that rank `from` has for this rank can be read: in each run, from the first piece to the end of the last. */
static void try_runs_of(struct piece_messages *m, int from)
{
    for (int64_t run = 0; run < m->plan.runs_of[from]; run++) {
        const int64_t first = *cut_in(m, from, 0, run), end = *cut_in(m, from, m->own_segments, run);
        process_memory_try(&m->theirs, from,
                           m->address[m->runs_first[from] + run] + (uint64_t)first * m->plan.element_bytes,
                           (size_t)(end - first) * m->plan.element_bytes);
    }
}

/* Learn where all runs lie, and which pieces this rank and the others read. A rank with an error reads nothing. Collective. */
static hsort_status agree_on_reads(struct piece_messages *m, hsort_status status)
{
    struct comm *comm = m->plan.comm;
    keep_first_error(&status, exchange_addresses(m));
    keep_first_error(&status, process_memory_find(comm, m->plan.reads, &m->theirs));
    for (int from = 0; from < comm->size; from++) {
        m->theirs.reads[from] = m->theirs.reads[from] && status == HSORT_OK;
        if (m->theirs.reads[from])
            try_runs_of(m, from);
    }
    keep_first_error(&status, process_memory_tell(comm, &m->theirs));
    return status;
}

hsort_status piece_messages_plan(struct piece_messages *m, const int64_t *cut_offset, const char *const *run)
{
    if (!m)
        return HSORT_OK;
    m->cut_offset = cut_offset;
    m->run = run;
    hsort_status status = agree_on_reads(m, exchange_cuts(m));
    for (int64_t round = 0; round < m->plan.rounds; round++)
        m->sends_most = greater(m->sends_most, sends_of_round(m, round));
    if (!fault_hit(FAULT_ALLOC))
        m->sends = calloc((size_t)m->sends_most + 1, sizeof *m->sends);
    if (!m->sends)
        keep_first_error(&status, status_fail(HSORT_HOST_MEMORY, "no memory for %lld messages of a round",
                                              (long long)m->sends_most));
    return status;
}

int64_t piece_messages_before(const struct piece_messages *m, int64_t round)
{
    if (!m || round >= m->own_segments)
        return 0;
    return (int64_t)(rank_place(m, m->plan.comm->rank, round) / m->plan.element_bytes);
}

/* ---- what this rank reads ------------------------------------------------------------------------------ */

/* engine_transfer.move(): from an address in the owner's memory on. */
static hsort_status read_from_owner(void *owner, int64_t at, size_t bytes, void *host)
{
    const struct piece_owner *from = owner;
    return process_memory_read(&from->messages->theirs, from->rank, (uint64_t)at, bytes, host);
}

/* List the reads from one rank, the first at `place`. */
static int reads_of_rank(struct piece_messages *m, int from, int64_t round, size_t place, struct engine_transfer *transfers,
                         size_t *places)
{
    int found = 0;
    for (int64_t run = 0; run < m->plan.runs_of[from]; run++) {
        const size_t bytes = length_in(m, from, round, run),
                     at = (size_t)*cut_in(m, from, round, run) * m->plan.element_bytes;
        if (bytes == 0)
            continue;
        places[found] = place;
        transfers[found++] =
            (struct engine_transfer){.bytes = bytes,
                                     .move = read_from_owner,
                                     .user = &m->owners[from],
                                     .at = (int64_t)(m->address[m->runs_first[from] + run] + at),
                                     .joins = true};
        place += bytes;
    }
    return found;
}

int piece_messages_reads(struct piece_messages *m, int64_t round, struct engine_transfer *transfers, size_t *places)
{
    int found = 0;
    for (int from = 0; m && from < m->plan.comm->size && round < m->own_segments; from++)
        if (m->theirs.reads[from])
            found += reads_of_rank(m, from, round, rank_place(m, from, round), transfers + found, places + found);
    return found;
}

/* ---- sends --------------------------------------------------------------------------------------------- */

/* is_last: no further piece goes to that rank by message in this round. */
static hsort_status send_piece(struct piece_messages *m, int to, const char *from, size_t bytes, bool is_last)
{
    hsort_status status = HSORT_OK;
    for (size_t done = 0; done < bytes;) {
        const size_t some = lesser_bytes(bytes - done, m->plan.buffer_bytes);
        MPI_Request *request = &m->sends[m->sends_begun++];
        *request = MPI_REQUEST_NULL;
        const bool waits = is_last && done + some == bytes;
        keep_first_error(&status, waits
                                      ? comm_issend(m->plan.comm, from + done, some, to, TAG_PIECE, request)
                                      : comm_isend(m->plan.comm, from + done, some, to, TAG_PIECE, request));
        done += some;
    }
    traffic_add(&m->sent, m->plan.comm, to, bytes, bytes);
    return status;
}

/* Rank `to` gets a piece: by message, unless it reads this rank's memory. */
static hsort_status give_piece(struct piece_messages *m, int to, const char *from, size_t bytes, bool is_last)
{
    if (!m->theirs.is_read[to])
        return send_piece(m, to, from, bytes, is_last);
    traffic_add(&m->shown, m->plan.comm, to, bytes, bytes);
    return HSORT_OK;
}

/* The last own run that has elements of a segment; -1: none has. */
static int64_t last_run_out(const struct piece_messages *m, int64_t segment)
{
    int64_t run = m->own_runs - 1;
    while (run >= 0 && length_out(m, segment, run) == 0)
        run--;
    return run;
}

/* Begin all sends of the round, first to the next rank, so that not all ranks begin with rank 0. */
static hsort_status send_round(struct piece_messages *m)
{
    const int rank = m->plan.comm->rank, size = m->plan.comm->size;
    hsort_status status = HSORT_OK;
    m->sends_begun = 0;
    for (int step = 1; step < size; step++) {
        const int to = (rank + step) % size;
        const int64_t segment = segment_of(m, to, m->round), before = m->sent.bytes + m->shown.bytes,
                      last = segment >= 0 ? last_run_out(m, segment) : -1;
        struct trace_span *span = trace_begin(m->plan.comm->trace, m->theirs.is_read[to] ? "show pieces" : "send pieces");
        for (int64_t run = 0; run <= last; run++) {
            const size_t at = (size_t)m->cut_offset[segment * m->own_runs + run] * m->plan.element_bytes;
            keep_first_error(&status,
                             give_piece(m, to, m->run[run] + at, length_out(m, segment, run), run == last));
        }
        trace_sent(span, to, m->sent.bytes + m->shown.bytes - before);
        trace_end(span);
    }
    return status;
}

/* ---- receives ------------------------------------------------------------------------------------------ */

static int source_of(const struct piece_messages *m, int step)
{
    const int size = m->plan.comm->size;
    return (m->plan.comm->rank - step + size) % size;
}

/* Find the next message of the round to receive: its source, bytes and place. False: there is no further message. */
static bool next_message(struct piece_messages *m, int *from, size_t *bytes, size_t *place)
{
    struct piece_cursor *c = &m->cursor;
    for (; c->step < m->plan.comm->size; c->step++, c->run = 0, c->at_rank = false) {
        *from = source_of(m, c->step);
        if (m->theirs.reads[*from])
            continue;
        if (!c->at_rank)
            c->place = rank_place(m, *from, m->round);
        c->at_rank = true;
        for (; c->run < m->plan.runs_of[*from]; c->run++, c->done = 0) {
            const size_t rest = length_in(m, *from, m->round, c->run) - c->done;
            if (rest == 0)
                continue;
            *bytes = lesser_bytes(rest, m->plan.buffer_bytes);
            *place = c->place;
            c->done += *bytes;
            c->place += *bytes;
            return true;
        }
    }
    return false;
}

/* Is the last copy from the buffer done? Waits for it if told to. */
static bool buffer_is_free(struct piece_messages *m, const struct piece_buffer *buffer, bool wait,
                           hsort_status *status)
{
    struct engine *engine = m->plan.engine;
    bool done = true;
    do
        keep_first_error(status, engine->ops->event_done(engine, buffer->copied, &done));
    while (!done && wait && *status == HSORT_OK);
    return done || *status != HSORT_OK;
}

/* Post receives for the buffers that are free; for one at least, if none is posted. */
static hsort_status post_receives(struct piece_messages *m)
{
    hsort_status status = HSORT_OK;
    while (!m->all_posted && m->posted - m->taken < PIECE_BUFFERS) {
        struct piece_buffer *buffer = &m->buffer[m->posted % PIECE_BUFFERS];
        if (!buffer_is_free(m, buffer, m->posted == m->taken, &status))
            break;
        m->all_posted = !next_message(m, &buffer->from, &buffer->bytes, &buffer->place);
        if (m->all_posted)
            break;
        keep_first_error(&status, comm_irecv(m->plan.comm, buffer->memory, buffer->bytes, buffer->from,
                                             TAG_PIECE, &buffer->request));
        m->posted++;
    }
    return status;
}

/* Wait for the oldest message, and begin its copy to the slot. */
static hsort_status take_message(struct piece_messages *m, char *slot)
{
    struct engine *engine = m->plan.engine;
    struct piece_buffer *buffer = &m->buffer[m->taken % PIECE_BUFFERS];
    struct trace_span *span = trace_begin(m->plan.comm->trace, "wait for pieces");
    trace_received(span, buffer->from, (int64_t)buffer->bytes);
    hsort_status status = comm_check(MPI_Wait(&buffer->request, MPI_STATUS_IGNORE), "MPI_Wait", false);
    trace_end(span);
    keep_first_error(
        &status, engine->ops->copy(engine, STREAM_IN, slot + buffer->place, buffer->memory, buffer->bytes));
    keep_first_error(&status, engine->ops->event_record(engine, buffer->copied, STREAM_IN));
    m->taken++;
    return status;
}

/* ---- a round ------------------------------------------------------------------------------------------- */

hsort_status piece_messages_begin(struct piece_messages *m, int64_t round)
{
    if (!m)
        return HSORT_OK;
    const double began = MPI_Wtime();
    m->began = m->began > 0 ? m->began : began;
    m->round = round;
    m->cursor = (struct piece_cursor){.step = 1};
    m->posted = m->taken = 0;
    m->all_posted = round >= m->own_segments;
    hsort_status status = post_receives(m);
    keep_first_error(&status, send_round(m));
    m->sent.seconds += MPI_Wtime() - began;
    return status;
}

hsort_status piece_messages_finish(struct piece_messages *m, char *slot)
{
    if (!m)
        return HSORT_OK;
    const double began = MPI_Wtime();
    hsort_status status = HSORT_OK;
    while (m->taken < m->posted || !m->all_posted) {
        keep_first_error(&status, post_receives(m));
        if (m->taken < m->posted)
            keep_first_error(&status, take_message(m, slot));
    }
    keep_first_error(
        &status, comm_check(MPI_Waitall((int)m->sends_begun, m->sends, MPI_STATUSES_IGNORE), "MPI_Waitall", true));
    m->sent.seconds += MPI_Wtime() - began;
    return status;
}

struct traffic piece_messages_sent(const struct piece_messages *m)
{
    return m ? m->sent : (struct traffic){0};
}

struct traffic piece_messages_shown(const struct piece_messages *m)
{
    struct traffic shown = m ? m->shown : (struct traffic){0};
    shown.seconds = shown.bytes > 0 ? MPI_Wtime() - m->began : 0;
    return shown;
}
