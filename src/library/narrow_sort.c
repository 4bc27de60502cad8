/* Two ranks with keys 0 .. 3, of which the caller wants other counts afterwards:
 *
 *                rank 0        rank 1        all
 *     keys       3 1 1 0 3     1 3 0
 *     counts     1 2 0 2       1 1 0 1       2 3 0 3       one message, of a number for each value
 *     ends                                   2 5 5 8       value 0 is at positions 0 .. 1, 1 at 2 .. 4, 3 at 5 .. 7
 *     wanted     4 keys        4 keys
 *     written    0 0 1 1       1 3 3 3                     positions 0 .. 3 and 4 .. 7
 *
 * Rejected: sorting the keys as codes of 4 bytes, which moves eight and more times as many bytes, needs buffers for them, and
 * gives the same result, because equal keys have equal bits. */
#include "src/library/narrow_sort.h"
#include <string.h>
#include "kernels/base/lesser.h"
#include "src/library/narrow_counts.h"
#include "src/library/sort_stream.h"

struct narrow_sort {
    struct sort *s;
    struct narrow_counts counts;
    struct narrow_keys in, out;
    struct engine_counted counted; /* of this rank's part of the result */
    int64_t written;
};

/* Does the engine reach the keys only piece by piece? */
static bool has_pieces(const struct narrow_keys *keys)
{
    return keys->count > 0 && (keys->stream || keys->space != SPACE_ENGINE);
}

/* Bytes of a piece that holds all keys. */
static size_t piece_bytes(const struct narrow_sort *n)
{
    const int64_t in = has_pieces(&n->in) ? n->in.count : 0, out = has_pieces(&n->out) ? n->out.count : 0;
    return (size_t)greater(in, out) * (size_t)n->s->map.key_bytes;
}

/* ---- count --------------------------------------------------------------------------------------------- */

/* What the keys are like, from their counts. */
static void note_before(struct narrow_sort *n, int64_t count)
{
    struct verifier *before = &n->s->before;
    before->count = count;
    for (int64_t bits = 0; bits < n->counts.values; bits++) {
        uint64_t share[2] = {0, 0};
        fingerprint_add((uint64_t)bits, share);
        for (int word = 0; word < 2; word++)
            before->fingerprint[word] += share[word] * (uint64_t)n->counts.own[bits];
    }
}

/* Count the keys of all ranks. Collective. */
static hsort_status count_narrow_keys(struct narrow_sort *n)
{
    struct sort *s = n->s;
    int64_t done = 0;
    stream_check_begin(s);
    hsort_status status = context_wait_caller(s->ctx, s->stream, SPACE_HOST); // the host itself may read keys
    if (s->source)
        s->source->begin(s->source->user);
    if (status == HSORT_OK)
        status = narrow_count(&n->counts, &n->in, &done);
    TRY(context_agree(s->ctx, s->source ? s->source->end(s->source->user, done, status) : status));
    note_before(n, done);
    s->seconds[HSORT_PHASE_H2D] = n->counts.copy_seconds;
    s->seconds[HSORT_PHASE_LOCAL_SORT] = n->counts.count_seconds;
    sort_report_phase(s, "local_sort");
    const double began = MPI_Wtime();
    const hsort_status status_of_sum = narrow_sum(&n->counts);
    s->seconds[HSORT_PHASE_EXCHANGE] = MPI_Wtime() - began;
    return status_of_sum;
}

/* ---- write --------------------------------------------------------------------------------------------- */

/* Let the engine know which keys are this rank's, from the first position that it wants on. */
static hsort_status load_counted(struct narrow_sort *n)
{
    struct sort *s = n->s;
    struct narrow_counts *counts = &n->counts;
    struct engine *engine = s->ctx->engine;
    const int64_t *want = s->ctx->want_offset + s->ctx->comm.rank;
    const int key_bytes = s->map.key_bytes;
    int64_t *ends = counts->own; // its counts have been added up
    char *keys = (char *)counts->all, *engine_keys = (char *)(counts->table + counts->values);
    int64_t begin = 0, values = 0;
    for (int64_t code = 0; code < counts->values; begin = counts->ends[code++]) {
        const int64_t end = counts->ends[code];
        const key_code bits = keymap_decode(s->map, (key_code)code);
        if (end == begin || end <= want[0] || begin >= want[1])
            continue;
        memcpy(keys + values * key_bytes, &bits, (size_t)key_bytes); // little-endian
        ends[values++] = end - want[0];
    }
    n->counted = (struct engine_counted){.keys = engine_keys, .ends = counts->table, .values = values};
    TRY(engine->ops->copy(engine, STREAM_WORK, counts->table, ends, (size_t)values * sizeof *ends));
    TRY(engine->ops->copy(engine, STREAM_WORK, engine_keys, keys, (size_t)(values * key_bytes)));
    return engine->ops->stream_synchronize(engine, STREAM_WORK);
}

/* Write keys from n->written on, where the caller wants them. */
static hsort_status write_piece(struct narrow_sort *n, int64_t count)
{
    struct sort *s = n->s;
    struct engine *engine = s->ctx->engine;
    const bool moves = has_pieces(&n->out);
    void *to = moves ? s->ctx->kept[KEPT_SCRATCH].memory : s->out;
    const double began = MPI_Wtime();
    TRY(engine->ops->write_counted(engine, s->map.key_bytes, &n->counted, n->written, count, to));
    TRY(engine->ops->stream_synchronize(engine, STREAM_WORK));
    const double wrote = MPI_Wtime();
    s->seconds[HSORT_PHASE_MERGE] += wrote - began;
    if (s->sink)
        TRY(stream_check_add(s, &s->after, to, count));
    if (moves) {
        const struct engine_transfer transfer = narrow_transfer(&n->counts, &n->out, n->written, count);
        TRY(engine->ops->transfer(engine, NULL, 0, &transfer, 1));
        s->seconds[HSORT_PHASE_D2H] += s->sink ? 0 : MPI_Wtime() - wrote;
    }
    n->written += count;
    return HSORT_OK;
}

static hsort_status write_pieces(struct narrow_sort *n)
{
    const struct key_stream *sink = n->out.stream;
    const int64_t most = narrow_piece(&n->counts, &n->out);
    while (n->written < n->out.count && (!sink || sink->next(sink->user, n->written, false)))
        TRY(write_piece(n, lesser(n->out.count - n->written, most)));
    return HSORT_OK;
}

/* Collective. */
static hsort_status write_narrow_keys(struct narrow_sort *n)
{
    struct sort *s = n->s;
    TRY(context_agree(s->ctx, load_counted(n))); // so that nothing is written where a rank has failed
    if (s->sink)
        s->sink->begin(s->sink->user);
    const hsort_status status = write_pieces(n);
    TRY(context_agree(s->ctx, s->sink ? s->sink->end(s->sink->user, n->written, status) : status));
    sort_report_phase(s, "d2h");
    return s->sink ? stream_check_end(s) : HSORT_OK;
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

static hsort_status run_narrow_sort(struct narrow_sort *n)
{
    struct trace *trace = n->s->ctx->comm.trace;
    TRY(narrow_open(&n->counts, piece_bytes(n)));
    struct trace_span *span = trace_begin(trace, "count");
    TRY(trace_end_with(span, count_narrow_keys(n)));
    span = trace_begin(trace, "write");
    TRY(trace_end_with(span, write_narrow_keys(n)));
    n->s->form = FORM_DELIVERED;
    return HSORT_OK;
}

hsort_status narrow_sort_run(struct sort *s)
{
    struct narrow_sort n = {
        .s = s,
        .counts = {.ctx = s->ctx, .map = s->map},
        .in = {.stream = s->source, .memory = s->in, .space = s->in_space, .count = s->in_count},
        .out = {.stream = s->sink, .memory = s->out, .space = s->out_space, .count = s->out_count}};
    const hsort_status status = run_narrow_sort(&n);
    narrow_close(&n.counts);
    return status;
}
