/* The merge of a rank's kept keys with those that lie in its partner's memory, if the two map each
 * other's memory. Copies bring the partner's keys a piece at a time into slots, ahead of the merges that read
 * them there:
 *
 *     theirs       2 3 | 8 9 | c d          pieces p, whose last keys are 3 9 d
 *     kept         1 | 4 5 | a b            not greater than 3, than 9; the last piece takes all that is left
 *
 *     STREAM_IN      2 3 -> A     8 9 -> B             c d -> A               once A has been merged
 *     STREAM_WORK                 1 with A -> 1 2 3    4 5 with B -> 4 5 8 9  a b with A -> a b c d
 *
 * So the link is never idle, and the merges hide behind it. Where kept keys must be cut is known before the
 * first copy: the last keys of all pieces are read in one go and looked up in one more. A merge that reads
 * the partner's memory itself is one pass without slots, but its searches wait for the link at every step, so it
 * is slower, and is left for where there is no room for slots. */
#include <string.h>
#include "mpi/exchange/merge_from_peer.h"

enum {
    SLOTS = 3,
    PIECE_BYTES = 16 << 20,    // at most
    PIECE_BYTES_MIN = 1 << 20, // or a launch for each takes longer than the link
    PIECES_MAX = ENGINE_GATHER_MAX
};

struct fetching {
    struct exchange *x;
    const char *kept, *theirs;
    int64_t kept_count, their_count, piece_keys;
    int pieces;
    char *out;
    struct engine_event *fetched[SLOTS], *merged[SLOTS];
    int64_t kept_end[PIECES_MAX]; /* kept keys that are merged with the pieces up to this one */
    hsort_status status;
};

/* Keys of a piece, a third of the room at most; 0 if there is too little room, or there would be too many
 * pieces. */
static int64_t keys_of_piece(const struct exchange *x, int64_t their_count)
{
    const size_t most = x->workspace_bytes / SLOTS;
    size_t bytes = x->chunk_bytes;
    if (bytes == 0)
        bytes = most < PIECE_BYTES ? most : PIECE_BYTES;
    if (bytes > most || (x->chunk_bytes == 0 && bytes < PIECE_BYTES_MIN))
        return 0;
    const int64_t keys = (int64_t)(bytes / (size_t)x->key_bytes);
    return keys > 0 && their_count / keys < PIECES_MAX ? keys : 0;
}

/* Find where the kept keys are cut. The keys of a rank that failed need not be sorted: the cuts ascend all the
 * same. */
static void cut_kept(struct fetching *f)
{
    const struct engine_ops *ops = f->x->engine->ops;
    int64_t last[PIECES_MAX], less[PIECES_MAX];
    key_code codes[PIECES_MAX] = {0};
    for (int piece = 0; piece < f->pieces; piece++) {
        const int64_t end = (piece + 1) * f->piece_keys;
        last[piece] = (end < f->their_count ? end : f->their_count) - 1;
        f->kept_end[piece] = 0;
    }
    keep_first_error(&f->status,
                     ops->gather(f->x->engine, f->x->key_bytes, f->theirs, last, f->pieces, codes));
    keep_first_error(&f->status, ops->search(f->x->engine, f->x->key_bytes, f->kept, f->kept_count, codes,
                                             f->pieces, less, f->kept_end));
    for (int piece = 1; piece < f->pieces; piece++) {
        if (f->kept_end[piece] < f->kept_end[piece - 1])
            f->kept_end[piece] = f->kept_end[piece - 1];
    }
    f->kept_end[f->pieces - 1] = f->kept_count;
}

/* Queue the copy of a piece and its merge. */
static void queue_piece(struct fetching *f, int piece)
{
    struct engine *engine = f->x->engine;
    const struct engine_ops *ops = engine->ops;
    const int slot = piece % SLOTS;
    const int64_t width = f->x->key_bytes, first = piece * f->piece_keys;
    const int64_t rest = f->their_count - first, keys = rest < f->piece_keys ? rest : f->piece_keys;
    const int64_t kept_first = piece > 0 ? f->kept_end[piece - 1] : 0;
    char *fetched = (char *)f->x->workspace + slot * f->piece_keys * width;
    if (piece >= SLOTS)
        keep_first_error(&f->status, ops->stream_wait_event(engine, STREAM_IN, f->merged[slot]));
    keep_first_error(
        &f->status, ops->copy(engine, STREAM_IN, fetched, f->theirs + first * width, (size_t)(keys * width)));
    keep_first_error(&f->status, ops->event_record(engine, f->fetched[slot], STREAM_IN));
    keep_first_error(&f->status, ops->stream_wait_event(engine, STREAM_WORK, f->fetched[slot]));
    keep_first_error(&f->status, ops->merge(engine, (int)width, f->kept + kept_first * width,
                                            f->kept_end[piece] - kept_first, fetched, keys,
                                            f->out + (kept_first + first) * width));
    keep_first_error(&f->status, ops->event_record(engine, f->merged[slot], STREAM_WORK));
}

static void fetch_and_merge(struct fetching *f)
{
    const struct engine_ops *ops = f->x->engine->ops;
    for (int slot = 0; slot < SLOTS; slot++) {
        keep_first_error(&f->status, ops->event_create(f->x->engine, &f->fetched[slot]));
        keep_first_error(&f->status, ops->event_create(f->x->engine, &f->merged[slot]));
    }
    if (f->status == HSORT_OK)
        cut_kept(f);
    for (int piece = 0; piece < f->pieces && f->status == HSORT_OK; piece++)
        queue_piece(f, piece);
    keep_first_error(&f->status, ops->stream_synchronize(f->x->engine, STREAM_IN));
    keep_first_error(&f->status, ops->stream_synchronize(f->x->engine, STREAM_WORK));
    for (int slot = 0; slot < SLOTS; slot++) {
        ops->event_destroy(f->x->engine, f->fetched[slot]);
        ops->event_destroy(f->x->engine, f->merged[slot]);
    }
}

hsort_status merge_from_peer(struct exchange *x, const void *kept, int64_t kept_count, const void *theirs,
                             int64_t their_count, void *out)
{
    const struct engine_ops *ops = x->engine->ops;
    struct fetching f = {.x = x,
                         .kept = kept,
                         .theirs = theirs,
                         .kept_count = kept_count,
                         .their_count = their_count,
                         .out = out};
    if (kept_count == 0 && their_count > 0) {
        keep_first_error(&f.status, ops->copy(x->engine, STREAM_IN, out, theirs,
                                              (size_t)their_count * (size_t)x->key_bytes));
        keep_first_error(&f.status, ops->stream_synchronize(x->engine, STREAM_IN));
        return f.status;
    }
    f.piece_keys = their_count > 0 ? keys_of_piece(x, their_count) : 0;
    if (f.piece_keys > 0) {
        f.pieces = (int)((their_count - 1) / f.piece_keys + 1);
        fetch_and_merge(&f);
        return f.status;
    }
    keep_first_error(&f.status,
                     ops->merge(x->engine, x->key_bytes, kept, kept_count, theirs, their_count, out));
    keep_first_error(&f.status, ops->stream_synchronize(x->engine, STREAM_WORK));
    return f.status;
}
