#include "src/library/sort_stream.h"
#include "kernels/base/lesser.h"

/* ---- looking at keys ----------------------------------------------------------------------------------- */

void stream_check_begin(struct sort *s)
{
    verify_start(&s->before, s->map);
    verify_start(&s->after, s->map);
}

hsort_status stream_check_add(const struct sort *s, struct verifier *verifier, const void *keys,
                              int64_t count)
{
    return s->check ? verify_add(verifier, s->ctx->engine, keys, count) : HSORT_OK;
}

hsort_status stream_check_end(struct sort *s)
{
    if (!s->check)
        return HSORT_OK;
    TRY(verify_finish(&s->before, &s->ctx->comm, &s->check->before));
    return verify_finish(&s->after, &s->ctx->comm, &s->check->after);
}

void sort_end_pass(struct sort *s, hsort_phase phase)
{
    const double now = MPI_Wtime();
    s->seconds[phase] += now - s->phase_began;
    s->phase_began = now;
}

/* ---- moving them --------------------------------------------------------------------------------------- */

struct engine_transfer stream_transfer(const struct key_stream *stream, int64_t element_bytes, int64_t first,
                                       int64_t count)
{
    const int64_t at = first * element_bytes;
    return (struct engine_transfer){.bytes = (size_t)(count * element_bytes),
                                    .move = stream->move,
                                    .user = stream->user,
                                    .at = at,
                                    .lead = stream->lead(stream->user, at)};
}

/* Move keys [count] between `keys`, in engine memory, and a stream, part by part, until the stream says no or
 * something fails; that is noted in s->status. Returns how many keys went. Not collective. */
static int64_t move_keys(struct sort *s, const struct key_stream *stream, char *keys, int64_t count, bool out)
{
    struct engine *engine = s->ctx->engine;
    const int64_t part = STREAM_PART_BYTES / s->map.key_bytes;
    int64_t done = 0;
    while (s->status == HSORT_OK && done < count && stream->next(stream->user, done, false)) {
        const int64_t more = lesser(count - done, part);
        struct engine_transfer transfer = stream_transfer(stream, s->map.key_bytes, done, more);
        transfer.memory = keys + done * s->map.key_bytes;
        s->status = engine->ops->transfer(engine, &transfer, !out, &transfer, out);
        done += s->status == HSORT_OK ? more : 0;
    }
    return done;
}

hsort_status sort_load_stream(struct sort *s)
{
    struct engine *engine = s->ctx->engine;
    stream_check_begin(s);
    s->source->begin(s->source->user);
    const int64_t done = move_keys(s, s->source, s->x.keys, s->x.count, false);
    keep_first_error(&s->status, engine->ops->stream_synchronize(engine, STREAM_IN));
    s->held = s->x.keys;
    TRY(context_agree(s->ctx, s->source->end(s->source->user, done, s->status)));
    s->status = stream_check_add(s, &s->before, s->held, s->x.count);
    return HSORT_OK;
}

hsort_status sort_store_stream(struct sort *s)
{
    const struct key_stream *sink = s->sink;
    const int64_t count = s->out_count;
    TRY(context_agree(s->ctx, s->status)); // so that nothing is written where a rank has failed
    s->status = stream_check_add(s, &s->after, s->held, count);
    sink->begin(sink->user);
    const int64_t done = move_keys(s, sink, (char *)s->held, count, true);
    TRY(context_agree(s->ctx, sink->end(sink->user, done, s->status)));
    return stream_check_end(s);
}
