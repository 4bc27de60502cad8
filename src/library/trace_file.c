/* A trace as a file in the Trace Event Format, which browsers show: chrome://tracing, ui.perfetto.dev.
 *
 *     {"displayTimeUnit": "ms", "otherData": {what the file is, and of each rank how far its clock may be off, and what is lost},
 *      "traceEvents": [
 *      {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "rank 1, node7, GPU 0"}},
 *      {"ph": "M", "name": "thread_name", "pid": 1, "tid": 0, "args": {"name": "main"}}, ...
 *      {"ph": "X", "name": "local sort", "pid": 1, "tid": 0, "ts": 12.345, "dur": 6.789, "args": {"keys": 100}}, ...]}
 *
 * Each rank writes its own events as text, because names are pointers, and sends them piece by piece to rank 0, which writes them to
 * the file. So no rank holds more than its own events, and rank 0 one piece of another rank's.
 *
 *     rank 0     own pieces -> file | receive, write, receive, write ... of rank 1 | of rank 2 | ...
 *     rank r     wait for rank 0 in the first send ........ | piece, piece, an empty one                                          */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/traced_engine.h"
#include "src/library/context.h"
#include "src/library/trace_file.h"

enum { PIECE_BYTES = 1 << 20, LINE_BYTES = 1024, TAG_TRACE = 8 };

/* What a rank says of its trace; ranks send it. */
struct trace_facts {
    int64_t spans, lost, offset_ns, error_ns, stream_error_ns;
};

/* The text of a rank, on its way to the file. */
struct trace_text {
    struct comm *comm;
    int file;    /* on rank 0 */
    char *piece; /* [PIECE_BYTES] */
    size_t length;
    hsort_status status;
};

struct trace_writer {
    hsort_context *ctx;
    struct trace_text text;
    const char *path;
    char temporary[PATH_MAX], target[PATH_MAX];
    struct clock_offset clock; /* now */
    struct trace_span **spans; /* [facts.spans] in the order in which they are written */
    struct trace_facts facts;
    struct trace_facts *all; /* [size] */
    int64_t origin_ns;       /* of rank 0's clock: when the first span of any rank began */
};

struct trace *context_trace(const hsort_context *ctx)
{
    return ctx ? ctx->comm.trace : NULL;
}

void context_own_stats(const hsort_context *ctx, double *seconds, int64_t *moved_bytes)
{
    memcpy(seconds, ctx->own_seconds, sizeof ctx->own_seconds);
    *moved_bytes = ctx->own_moved_bytes;
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static void write_piece_of_trace(struct trace_text *text, const char *bytes, size_t length)
{
    while (length > 0 && text->status == HSORT_OK) {
        const ssize_t done = fault_hit(FAULT_WRITE) ? (errno = ENOSPC, -1) : write(text->file, bytes, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            text->status = status_fail(HSORT_IO, "%s", strerror(done < 0 ? errno : ENOSPC));
        bytes += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
}

/* Send the text that there is on its way. */
static void flush_trace(struct trace_text *text)
{
    if (text->length > 0 && text->comm->rank == 0)
        write_piece_of_trace(text, text->piece, text->length);
    else if (text->length > 0)
        keep_first_error(&text->status, comm_check(MPI_Send(text->piece, (int)text->length, MPI_CHAR, 0,
                                                            TAG_TRACE, text->comm->world),
                                                   "MPI_Send", true));
    text->length = 0;
}

/* Add a line, printf style, of LINE_BYTES at most. */
static void __attribute__((format(printf, 2, 3))) add_line(struct trace_text *text, const char *format, ...)
{
    va_list args;
    if (PIECE_BYTES - text->length < LINE_BYTES)
        flush_trace(text);
    va_start(args, format);
    const int length = vsnprintf(text->piece + text->length, LINE_BYTES, format, args);
    va_end(args);
    text->length += length < LINE_BYTES ? (size_t)length : LINE_BYTES - 1;
}

/* to [bytes] = a text inside of quotes; what is not printable ASCII becomes '?'. */
static const char *quoted(const char *from, char *to, size_t bytes)
{
    size_t length = 0;
    for (; *from && length + 2 < bytes; from++) {
        if (*from == '"' || *from == '\\')
            to[length++] = '\\';
        to[length++] = *from >= ' ' && *from < 127 ? *from : '?';
    }
    to[length] = '\0';
    return to;
}

/* ---- spans --------------------------------------------------------------------------------------------- */

/* By track, then by time; of two that begin at once the longer one is around the other. */
static int compare_spans(const void *a, const void *b)
{
    const struct trace_span *left = *(struct trace_span *const *)a, *right = *(struct trace_span *const *)b;
    if (left->track != right->track)
        return left->track < right->track ? -1 : 1;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    if (left->end != right->end)
        return left->end > right->end ? -1 : 1;
    return left < right ? -1 : left > right;
}

/* Make the spans of a stream nest: their times are rounded, and two threads may have begun them. A span that ends after the one
 * around it ends with that one instead. */
static void nest_spans(struct trace_span **spans, int64_t count)
{
    enum { DEPTH = 64 };
    const struct trace_span *around[DEPTH];
    int depth = 0;
    for (int64_t i = 0; i < count; i++) {
        struct trace_span *span = spans[i];
        while (depth > 0 &&
               (around[depth - 1]->track != span->track || around[depth - 1]->end <= span->begin))
            depth--;
        if (depth > 0 && span->end > around[depth - 1]->end)
            span->end = around[depth - 1]->end;
        if (depth < DEPTH)
            around[depth++] = span;
    }
}

static bool is_of_stream(const struct trace_span *span)
{
    return span->track >= TRACE_STREAMS && span->track < TRACE_STREAMS + ENGINE_STREAMS;
}

/* Bring the spans into order. Spans that have not ended end now; spans of streams whose times are not known are lost. */
static hsort_status order_spans(struct trace_writer *w)
{
    int64_t count, kept = 0;
    struct trace_span *spans = trace_spans(w->ctx->comm.trace, &count, &w->facts.lost);
    w->spans = fault_hit(FAULT_ALLOC) ? NULL : malloc((size_t)(count + 1) * sizeof *w->spans);
    w->text.piece = malloc(PIECE_BYTES);
    w->all = calloc((size_t)w->ctx->comm.size, sizeof *w->all);
    if (!w->spans || !w->text.piece || !w->all)
        return status_fail(HSORT_HOST_MEMORY, "no memory to write a trace of %" PRId64 " spans", count);
    for (int64_t i = 0; i < count; i++) {
        if (is_of_stream(&spans[i]) && (spans[i].begin == 0 || spans[i].end == 0))
            continue;
        if (spans[i].end < spans[i].begin)
            spans[i].end = spans[i].end == 0 ? w->clock.at_ns : spans[i].begin;
        w->spans[kept++] = &spans[i];
    }
    w->facts.lost += count - kept;
    w->facts.spans = kept;
    if (kept > 0)
        qsort(w->spans, (size_t)kept, sizeof *w->spans, compare_spans);
    nest_spans(w->spans, kept);
    return HSORT_OK;
}

/* ---- events -------------------------------------------------------------------------------------------- */

struct micros {
    char text[32];
};

/* Not by %f, which takes the decimal sign of the caller's locale. */
static struct micros micros(int64_t ns)
{
    const int64_t size = ns < 0 ? -ns : ns;
    struct micros us;
    snprintf(us.text, sizeof us.text, "%s%" PRId64 ".%03d", ns < 0 ? "-" : "", size / 1000,
             (int)(size % 1000));
    return us;
}

static const char *track_name(int track, char *name, size_t bytes)
{
    static const char *const streams[ENGINE_STREAMS] = {"stream work", "stream out", "stream in"};
    if (track >= TRACE_STREAMS && track < TRACE_STREAMS + ENGINE_STREAMS)
        return streams[track - TRACE_STREAMS];
    if (track < TRACE_WORKERS)
        return track == TRACE_MAIN ? "main" : "sorter";
    snprintf(name, bytes, "thread %d", track - TRACE_WORKERS + 1);
    return name;
}

/* Names of this rank and of its tracks, which follow each other in w->spans. */
static void add_thread_names(struct trace_writer *w)
{
    const hsort_context *ctx = w->ctx;
    const int rank = ctx->comm.rank;
    char host[2 * sizeof ctx->comm.host], name[32], device[32] = "host engine";
    if (ctx->engine && ctx->engine->ops->kind == HSORT_ENGINE_CUDA)
        snprintf(device, sizeof device, "GPU %d", ctx->info.gpu_index);
    add_line(&w->text,
             "%s\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"tid\": 0, \"args\": {\"name\": "
             "\"rank %d, %s, %s\"}}",
             rank == 0 ? "" : ",", rank, rank, quoted(ctx->comm.host, host, sizeof host), device);
    add_line(&w->text,
             ",\n{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": %d, \"tid\": 0, \"args\": "
             "{\"sort_index\": %d}}",
             rank, rank);
    for (int64_t i = 0; i < w->facts.spans; i++) {
        const int track = w->spans[i]->track;
        if (i > 0 && w->spans[i - 1]->track == track)
            continue;
        add_line(
            &w->text,
            ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": "
            "\"%s\"}}",
            rank, track, track_name(track, name, sizeof name));
        add_line(&w->text,
                 ",\n{\"ph\": \"M\", \"name\": \"thread_sort_index\", \"pid\": %d, \"tid\": %d, \"args\": "
                 "{\"sort_index\": %d}}",
                 rank, track, track);
    }
}

/* args [bytes] = what a span says, as members of an object. */
static const char *span_args(const struct trace_span *span, char *args, size_t bytes)
{
    const struct {
        const char *name;
        int64_t value;
    } all[] = {{"to", span->to},     {"from", span->from}, {"bytes", span->bytes},
               {"keys", span->keys}, {"sent", span->sent}, {"received", span->received}};
    size_t length = 0;
    args[0] = '\0';
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value >= 0)
            length += (size_t)snprintf(args + length, bytes - length, "%s\"%s\": %" PRId64,
                                       length > 0 ? ", " : "", all[i].name, all[i].value);
    return args;
}

/* ns from when the first span of any rank began. */
static int64_t in_common_time(const struct trace_writer *w, int64_t at)
{
    return clock_of_rank_0(&w->ctx->clock, &w->clock, at) - w->origin_ns;
}

static void add_events(struct trace_writer *w)
{
    char args[LINE_BYTES / 2];
    add_thread_names(w);
    for (int64_t i = 0; i < w->facts.spans; i++) {
        const struct trace_span *span = w->spans[i];
        const int64_t begin = in_common_time(w, span->begin), end = in_common_time(w, span->end);
        add_line(&w->text,
                 ",\n{\"ph\": \"X\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %s, \"dur\": %s, "
                 "\"args\": {%s}}",
                 span->name, w->ctx->comm.rank, span->track, micros(begin).text, micros(end - begin).text,
                 span_args(span, args, sizeof args));
    }
    flush_trace(&w->text);
}

/* What stands before the events. */
static void add_head(struct trace_writer *w)
{
    char build[LINE_BYTES / 2];
    add_line(&w->text,
             "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"schema_version\": 1, \"build\": \"%s\", "
             "\"ranks\": [",
             quoted(hsort_build_info(), build, sizeof build));
    for (int rank = 0; rank < w->ctx->comm.size; rank++) {
        const struct trace_facts *facts = &w->all[rank];
        add_line(&w->text,
                 "%s\n{\"rank\": %d, \"spans\": %" PRId64 ", \"lost_spans\": %" PRId64
                 ", \"clock_offset_us\": %s, \"clock_error_us\": %s, \"stream_error_us\": %s}",
                 rank == 0 ? "" : ",", rank, facts->spans, facts->lost, micros(facts->offset_ns).text,
                 micros(facts->error_ns).text, micros(facts->stream_error_ns).text);
    }
    add_line(&w->text, "]},\n\"traceEvents\": [");
}

/* ---- the file ------------------------------------------------------------------------------------------ */

/* Rank 0: the pieces of another rank, until an empty one. */
static void receive_events(struct trace_writer *w, int rank)
{
    struct trace_text *text = &w->text;
    MPI_Status got;
    int length = 1;
    while (length > 0) {
        keep_first_error(&text->status, comm_check(MPI_Recv(text->piece, PIECE_BYTES, MPI_CHAR, rank,
                                                            TAG_TRACE, text->comm->world, &got),
                                                   "MPI_Recv", false));
        if (text->status == HSORT_MPI || MPI_Get_count(&got, MPI_CHAR, &length) != MPI_SUCCESS)
            return;
        write_piece_of_trace(text, text->piece, (size_t)length);
    }
}

static void write_events(struct trace_writer *w)
{
    struct trace_text *text = &w->text;
    if (text->comm->rank == 0)
        add_head(w);
    add_events(w);
    for (int rank = 1; rank < text->comm->size && text->comm->rank == 0; rank++)
        receive_events(w, rank);
    if (text->comm->rank == 0) {
        add_line(text, "]}\n");
        flush_trace(text);
    } else {
        keep_first_error(&text->status,
                         comm_check(MPI_Send(text->piece, 0, MPI_CHAR, 0, TAG_TRACE, text->comm->world),
                                    "MPI_Send", true));
    }
}

bool trace_temporary(const char *path, char *name, size_t bytes)
{
    char end[64];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t room = NAME_MAX - (size_t)snprintf(end, sizeof end, ".hypersort-%ld.part", (long)getpid());
    const size_t length = strlen(base), kept = length < room ? length : room;
    return length <= NAME_MAX &&
           (size_t)snprintf(name, bytes, "%.*s%s", (int)(base - path + (long)kept), path, end) < bytes;
}

static hsort_status open_trace_file(struct trace_writer *w)
{
    if (realpath(w->path, w->target)) // a link stays one: the file that it leads to is replaced
        w->path = w->target;
    if (!trace_temporary(w->path, w->temporary, sizeof w->temporary))
        return status_fail(HSORT_IO, "%s: cannot create: %s", w->path, strerror(ENAMETOOLONG));
    struct stat there;
    if (stat(w->path, &there) == 0 &&
        !S_ISREG(there.st_mode)) // a rename would replace /dev/null, for example
        return status_fail(HSORT_IO, "%s: is not a regular file", w->path);
    w->text.file = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->text.file < 0 && errno == EEXIST) { // left by a process of this number that was killed
        unlink(w->temporary);
        w->text.file = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return w->text.file >= 0
               ? HSORT_OK
               : status_fail(HSORT_IO, "%s: cannot create %s: %s", w->path, w->temporary, strerror(errno));
}

/* Give the file its name if it is whole; else remove it. */
static hsort_status close_trace_file(struct trace_writer *w, hsort_status status)
{
    char cause[STATUS_TEXT_BYTES];
    if (w->text.file < 0)
        return status;
    const bool closed = fsync(w->text.file) == 0 || errno == EINVAL;
    if ((close(w->text.file) != 0 || !closed) && status == HSORT_OK)
        status = status_fail(HSORT_IO, "%s", strerror(errno));
    if (status == HSORT_OK && rename(w->temporary, w->path) != 0)
        status = status_fail(HSORT_IO, "%s", strerror(errno));
    if (status == HSORT_OK)
        return HSORT_OK;
    unlink(w->temporary);
    if (status != HSORT_IO)
        return status;
    snprintf(cause, sizeof cause, "%s", status_text());
    status_clear();
    return status_fail(HSORT_IO, "%.300s: cannot write the trace: %.180s", w->path, cause);
}

/* ---- all ranks ----------------------------------------------------------------------------------------- */

static hsort_status check_trace(const struct trace_writer *w)
{
    if (!w->ctx->comm.trace)
        return status_fail(HSORT_ARGUMENT,
                           "hsort_write_trace: options.trace_spans was 0, so nothing was recorded");
    if (!w->path && w->ctx->comm.rank == 0)
        return status_fail(HSORT_ARGUMENT, "hsort_write_trace: path is NULL");
    return HSORT_OK;
}

/* Give the spans of streams their times; a trace without them is still of use. Not collective. */
static void resolve_streams(struct trace_writer *w)
{
    if (engine_trace_resolve(w->ctx->engine, &w->facts.stream_error_ns) != HSORT_OK)
        status_clear();
}

/* Learn what all ranks have, and when the first span began. Collective. */
static hsort_status share_trace_facts(struct trace_writer *w)
{
    struct comm *comm = &w->ctx->comm;
    const int words = (int)(sizeof w->facts / sizeof(int64_t));
    int64_t first = INT64_MAX;
    w->facts.offset_ns = w->clock.offset_ns;
    w->facts.error_ns = w->clock.error_ns;
    for (int64_t i = 0; i < w->facts.spans; i++) {
        const int64_t begin = clock_of_rank_0(&w->ctx->clock, &w->clock, w->spans[i]->begin);
        const int64_t error = clock_error_at(&w->ctx->clock, &w->clock, w->spans[i]->begin);
        first = begin < first ? begin : first;
        w->facts.error_ns = error > w->facts.error_ns ? error : w->facts.error_ns;
    }
    TRY(comm_range(comm, first, &w->origin_ns, NULL));
    return comm_gather_words(comm, (const uint64_t *)&w->facts, words, (uint64_t *)w->all);
}

/* Collective. */
static hsort_status write_trace(struct trace_writer *w)
{
    struct comm *comm = &w->ctx->comm;
    TRY(comm_agree(comm, check_trace(w)));
    resolve_streams(w);
    hsort_status status = clock_look(comm, &w->clock);
    if (status == HSORT_OK)
        status = order_spans(w);
    TRY(comm_agree(comm, status));
    TRY(comm_agree(comm, share_trace_facts(w)));
    TRY(comm_agree(comm, comm->rank == 0 ? open_trace_file(w) : HSORT_OK));
    write_events(w);
    // The others first: where one has failed there is no whole file.
    status = comm_agree(comm, comm->rank == 0 ? HSORT_OK : w->text.status);
    keep_first_error(&w->text.status, status);
    const hsort_status mine = comm->rank == 0 ? close_trace_file(w, w->text.status) : HSORT_OK;
    const hsort_status closed = comm_agree(comm, status == HSORT_OK ? mine : HSORT_OK);
    return status == HSORT_OK ? closed : status;
}

hsort_status hsort_write_trace(hsort_context *ctx, const char *path, int64_t *spans, int64_t *lost)
{
    TRY(context_enter(ctx));
    struct trace_writer w = {.ctx = ctx, .path = path, .text = {.comm = &ctx->comm, .file = -1}};
    int64_t kept = 0, gone = 0;
    const hsort_status status = write_trace(&w);
    for (int rank = 0; rank < ctx->comm.size && status == HSORT_OK; rank++) {
        kept += w.all[rank].spans;
        gone += w.all[rank].lost;
    }
    free(w.spans);
    free(w.text.piece);
    free(w.all);
    if (status != HSORT_OK)
        return context_fail(ctx, status);
    trace_clear(ctx->comm.trace);
    engine_trace_clear(ctx->engine);
    ctx->clock = w.clock;
    if (spans)
        *spans = kept;
    if (lost)
        *lost = gone;
    return HSORT_OK;
}
