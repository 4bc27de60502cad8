/* Two walks over the same two lists: element_gather.h pictures them, mpi/README.md ("Elements") says how they are made, and why no rank
 * waits for another.
 *
 * There are P - 1 steps: in step s rank r sends to r + s and receives from r - s. Elements go in
 * slices, through two buffers; a slice of the sender and one of the receiver hold the same elements:
 *
 *     gather     owner    in  --take, at asked-->   slice --sendrecv--> in_slice  --place, at places-->  out
 *     scatter             in  --take, at places-->  slice --sendrecv--> in_slice  --place, at asked-->   out   the owner
 *     positions           wanted  ----copy------->  slice --sendrecv--> asked                                      the owner */
#include "mpi/exchange/element_gather.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"

enum { SLICE_BYTES = 64 << 20, CODE_BITS_NARROW = 64, ROOM_PARTS = 8 };

struct element_gather {
    struct comm *comm;
    struct spare_memory *spare; /* of the engine */
    struct engine *engine;
    struct gather_slice *slice; /* what goes to others */
    struct transport *transport;
    const int64_t *offset, *index;
    int64_t count;

    int64_t *tables;        /* host memory of the three below */
    int64_t *wanted_offset; /* [size + 1] which entries of wanted name elements of rank r: from [r] to [r + 1] - 1 */
    int64_t *asked_offset; /* [size + 1] the same for asked; none for this rank itself */
    int64_t *asks;         /* [size] how many of each rank's elements this one names */

    int64_t *wanted; /* [count] global positions, ascending */
    int64_t *places; /* [count] which entry of index each of them is */
    int64_t *asked;  /* [asked_offset[size]] global positions */

    int64_t most;      /* the most elements between this rank and any rank, itself included */
    size_t slices_fit; /* bytes of the elements that the slices have been made for; 0: there are none */
    char *in_slice;    /* what comes from others */
};

/* Positions that say which elements of an array [elements] are meant; the array's first element has position `first`. */
struct element_list {
    const int64_t *positions; /* [count] engine memory */
    int64_t count;
    int64_t first, elements;
};

/* One walk. */
struct element_walk {
    struct element_gather *gather;
    bool gathers; /* elements go to the rank that names them; otherwise from there to their owner */
    size_t element_bytes;
    int64_t slice; /* elements of a slice at most; a rank alone has none */
    const char *in;
    char *out;
    int64_t *moved_bytes;
};

/* ---- tables -------------------------------------------------------------------------------------------- */

static hsort_status make_gather(struct comm *comm, struct spare_memory *spare, struct gather_slice *slice,
                                struct element_gather **gather)
{
    const size_t size = (size_t)comm->size, entries = 3 * size + 2;
    struct element_gather *g = calloc(1, sizeof *g);
    int64_t *tables = calloc(entries, sizeof *tables);
    if (!g || !tables || fault_hit(FAULT_ALLOC)) {
        free(g);
        free(tables);
        return status_fail(HSORT_HOST_MEMORY, "no memory for the tables of elements of %d ranks", comm->size);
    }
    g->comm = comm;
    g->spare = spare;
    g->engine = spare->engine;
    g->slice = slice;
    g->tables = tables;
    g->wanted_offset = tables;
    g->asked_offset = tables + size + 1;
    g->asks = tables + 2 * (size + 1);
    *gather = g;
    return HSORT_OK;
}

void element_gather_close(struct element_gather *g)
{
    if (!g)
        return;
    void *const memory[] = {g->wanted, g->places, g->asked, g->in_slice};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        spare_give(g->spare, memory[i]);
    free(g->tables);
    free(g);
}

/* ---- slices -------------------------------------------------------------------------------------------- */

size_t gather_slice_room(size_t bytes)
{
    size_t step = 1;
    bytes = lesser_bytes(bytes, SLICE_BYTES);
    while (step <= bytes / (2 * ROOM_PARTS))
        step *= 2;
    return bytes_rounded_up(bytes, step);
}

/* Bytes that go at a time, unless one element has more. */
static size_t slice_bytes(const struct element_gather *g)
{
    return g->slice->most_bytes > 0 ? lesser_bytes(g->slice->most_bytes, SLICE_BYTES) : SLICE_BYTES;
}

/* Elements of a slice at most: the same on every rank. */
static int64_t slice_elements(const struct element_gather *g, size_t element_bytes)
{
    return (int64_t)greater_bytes(slice_bytes(g) / element_bytes, 1);
}

/* Elements of the slice of a list of `count` that begins at `at`; 0 behind its end. */
static int64_t slice_length(int64_t count, int64_t at, int64_t most)
{
    return int64_clamp(count - at, 0, most);
}

/* Make slices for elements of element_bytes, unless there are slices for elements of this or a larger size, which all ranks decide
 * alike. Slices for larger elements suit smaller ones: they hold as many elements as there are, or slice_bytes(), or one element.
 * Collective; errors are agreed. */
static hsort_status make_slices(struct element_gather *g, size_t element_bytes)
{
    const size_t full = greater_bytes(slice_bytes(g), element_bytes);
    const size_t room = gather_slice_room(lesser_bytes((size_t)g->most * element_bytes, full));
    if (element_bytes <= g->slices_fit)
        return HSORT_OK;
    TRY(transport_unmap(g->transport, g->comm, g->slice->kept->bytes < room));
    g->slices_fit = 0;
    spare_give(g->spare, g->in_slice);
    g->in_slice = NULL;
    hsort_status status = kept_reserve(g->slice->kept, g->spare, room);
    if (status == HSORT_OK)
        status = spare_take(g->spare, room, (void **)&g->in_slice);
    status = comm_agree(g->comm, status);
    if (status == HSORT_OK)
        g->slices_fit = element_bytes;
    return status;
}

/* ---- which elements are wanted ------------------------------------------------------------------------- */

static hsort_status check_inside(int64_t outside, int64_t count, int64_t elements)
{
    if (outside == 0)
        return HSORT_OK;
    return status_fail(HSORT_ARGUMENT, "%lld of %lld positions lie outside of the array of %lld elements",
                       (long long)outside, (long long)count, (long long)elements);
}

static hsort_status check_index(const struct element_gather *g)
{
    const int64_t elements = g->offset[g->comm->size];
    int64_t outside = 0;
    if (g->count > 0)
        TRY(g->engine->ops->take(
            g->engine,
            &(struct engine_take){.from_count = {elements}, .positions = g->index, .count = g->count},
            &outside));
    return check_inside(outside, g->count, elements);
}

/* The codes of an index. */
struct index_codes {
    int code_bytes, place_bits;
    void *buffer[2]; /* [count] codes each; sort() wants a second one */
    void *workspace;
    void *sorted; /* the buffer that holds the sorted codes */
};

static void drop_codes(struct spare_memory *spare, struct index_codes *c)
{
    spare_give(spare, c->buffer[0]);
    spare_give(spare, c->buffer[1]);
    spare_give(spare, c->workspace);
    *c = (struct index_codes){0};
}

static hsort_status sort_codes_of_index(const struct element_gather *g, struct index_codes *c)
{
    struct engine *engine = g->engine;
    const struct engine_ops *ops = engine->ops;
    const struct key_field field = {.from = g->index,
                                    .stride = sizeof *g->index,
                                    .bytes = sizeof *g->index,
                                    .map = keymap_of_codes(sizeof *g->index),
                                    .shift = c->place_bits};
    const size_t bytes = (size_t)g->count * (size_t)c->code_bytes;
    size_t workspace_bytes = 0;
    TRY(spare_take(g->spare, bytes, &c->buffer[0]));
    TRY(spare_take(g->spare, bytes, &c->buffer[1]));
    TRY(ops->sort_workspace(engine, -1, c->code_bytes, g->count, g->count, &workspace_bytes));
    TRY(spare_take(g->spare, workspace_bytes, &c->workspace));
    TRY(ops->make_codes(engine, c->code_bytes, c->buffer[0], g->count, &field, 1, c->place_bits, 0));
    TRY(ops->sort(engine, -1, c->code_bytes, c->buffer[0], c->buffer[1], g->count, g->count, c->workspace,
                  NULL, &c->sorted));
    return ops->stream_synchronize(engine, STREAM_WORK);
}

/* Find where in the sorted codes those of each rank's elements begin. */
static hsort_status find_owners(struct element_gather *g, const struct index_codes *c)
{
    const int borders = g->comm->size + 1;
    const size_t most = lesser_bytes((size_t)borders, ENGINE_SEARCH_MAX);
    key_code *probes = calloc(most, sizeof *probes);
    int64_t *not_greater = calloc(most, sizeof *not_greater);
    hsort_status status = HSORT_OK;
    if (!probes || !not_greater || fault_hit(FAULT_ALLOC))
        status = status_fail(HSORT_HOST_MEMORY, "no memory to search the owners of elements");
    for (int done = 0; status == HSORT_OK && done < borders;) {
        const int some = (int)lesser(borders - done, ENGINE_SEARCH_MAX);
        for (int i = 0; i < some; i++)
            probes[i] = (key_code)g->offset[done + i] << c->place_bits;
        status = g->engine->ops->search(g->engine, c->code_bytes, c->sorted, g->count, probes, some,
                                        g->wanted_offset + done, not_greater);
        done += some;
    }
    free(probes);
    free(not_greater);
    return status;
}

/* Sorted codes -> wanted and places. */
static hsort_status split_index(struct element_gather *g, struct index_codes *c)
{
    struct engine *engine = g->engine;
    const size_t bytes = (size_t)g->count * sizeof(int64_t);
    // Everything except the sorted codes goes back: the lists take its room.
    void **unsorted = &c->buffer[c->sorted == c->buffer[0]];
    spare_give(g->spare, *unsorted);
    spare_give(g->spare, c->workspace);
    *unsorted = c->workspace = NULL;
    TRY(spare_take(g->spare, bytes, (void **)&g->wanted));
    TRY(spare_take(g->spare, bytes, (void **)&g->places));
    TRY(engine->ops->split_codes(engine, c->code_bytes, c->sorted, g->count, c->place_bits, g->places,
                                 keymap_of_codes(sizeof *g->wanted), g->wanted));
    return engine->ops->stream_synchronize(engine, STREAM_WORK);
}

/* Make wanted, places and wanted_offset. */
static hsort_status sort_index(struct element_gather *g)
{
    if (g->count == 0)
        return HSORT_OK;
    struct index_codes codes = {.place_bits = depth_of(g->count + 1)};
    const int bits = codes.place_bits + depth_of(g->offset[g->comm->size] + 1);
    codes.code_bytes = bits <= CODE_BITS_NARROW ? 8 : 16;
    hsort_status status = sort_codes_of_index(g, &codes);
    if (status == HSORT_OK)
        status = find_owners(g, &codes);
    if (status == HSORT_OK)
        status = split_index(g, &codes);
    drop_codes(g->spare, &codes);
    if (status != HSORT_OK) // other ranks must not be told anything wrong, and fail because of it
        memset(g->wanted_offset, 0, ((size_t)g->comm->size + 1) * sizeof *g->wanted_offset);
    return status;
}

/* ---- which elements are asked for ---------------------------------------------------------------------- */

/* Tell every rank how many of its elements this one names. Collective. */
static hsort_status tell_counts(struct element_gather *g)
{
    const int rank = g->comm->rank, size = g->comm->size;
    for (int owner = 0; owner < size; owner++)
        g->asks[owner] = g->wanted_offset[owner + 1] - g->wanted_offset[owner];
    int64_t *asked = g->asked_offset + 1;
    const hsort_status status = comm_check(
        MPI_Alltoall(g->asks, 1, MPI_INT64_T, asked, 1, MPI_INT64_T, g->comm->world), "MPI_Alltoall", true);
    asked[rank] = 0; // they are in wanted
    for (int peer = 0; peer < size; peer++) {
        g->most = greater(g->most, greater(asked[peer], g->asks[peer]));
        asked[peer] += g->asked_offset[peer];
    }
    return status;
}

/* Send a rank the positions of its elements that this one names, and receive another one's, slice by slice. Collective. */
static hsort_status tell_step(struct element_gather *g, int to, int from)
{
    const int64_t slice = slice_elements(g, sizeof *g->wanted), send = g->asks[to],
                  receive = g->asked_offset[from + 1] - g->asked_offset[from];
    hsort_status status = HSORT_OK;
    int64_t moved_bytes = 0;
    for (int64_t at = 0; at < send || at < receive; at += slice) {
        const size_t out_bytes = (size_t)slice_length(send, at, slice) * sizeof *g->wanted;
        const size_t in_bytes = (size_t)slice_length(receive, at, slice) * sizeof *g->asked;
        int64_t *in = in_bytes > 0 ? g->asked + g->asked_offset[from] + at : NULL;
        if (out_bytes > 0)
            keep_first_error(&status, g->engine->ops->copy(g->engine, STREAM_WORK, g->slice->kept->memory,
                                                           g->wanted + g->wanted_offset[to] + at, out_bytes));
        keep_first_error(&status, g->transport->ops->sendrecv(g->transport, to, g->slice->kept->memory,
                                                              out_bytes, from, in, in_bytes, &moved_bytes));
    }
    return status;
}

/* Collective. */
static hsort_status tell_positions(struct element_gather *g)
{
    const int rank = g->comm->rank, size = g->comm->size;
    hsort_status status = HSORT_OK;
    for (int step = 1; step < size; step++)
        keep_first_error(&status, tell_step(g, (rank + step) % size, (rank - step + size) % size));
    return status;
}

/* Make the lists of all ranks. Collective; errors are agreed. */
static hsort_status make_lists(struct element_gather *g)
{
    hsort_status status = sort_index(g);
    keep_first_error(&status, tell_counts(g));
    if (status == HSORT_OK)
        status = spare_take(g->spare, (size_t)g->asked_offset[g->comm->size] * sizeof *g->asked,
                            (void **)&g->asked);
    TRY(comm_agree(g->comm, status));
    TRY(make_slices(g, sizeof *g->wanted));
    return comm_agree(g->comm, tell_positions(g));
}

hsort_status element_gather_open(struct comm *comm, struct spare_memory *spare, struct gather_slice *slice,
                                 struct transport *transport, const int64_t *offset, const int64_t *index,
                                 int64_t count, struct element_gather **gather)
{
    struct element_gather *g = NULL;
    *gather = NULL;
    hsort_status status = make_gather(comm, spare, slice, &g);
    if (status == HSORT_OK) {
        g->transport = transport;
        g->offset = offset;
        g->index = index;
        g->count = count;
        status = comm_is_alone(comm) ? HSORT_OK : check_index(g);
    }
    status = comm_agree(comm, status);
    if (status == HSORT_OK && !comm_is_alone(comm))
        status = make_lists(g);
    if (status == HSORT_OK)
        *gather = g;
    else
        element_gather_close(g);
    return status;
}

/* ---- elements move ------------------------------------------------------------------------------------- */

/* The elements of this rank's part of the array that `peer` names. */
static struct element_list list_of_owner(const struct element_gather *g, int peer)
{
    const int rank = g->comm->rank;
    struct element_list list = {.first = g->offset[rank], .elements = g->offset[rank + 1] - g->offset[rank]};
    list.count = peer == rank ? g->asks[rank] : g->asked_offset[peer + 1] - g->asked_offset[peer];
    if (list.count > 0)
        list.positions = peer == rank ? g->wanted + g->wanted_offset[rank] : g->asked + g->asked_offset[peer];
    return list;
}

/* The entries of this rank's index that name elements of `peer`. */
static struct element_list list_of_places(const struct element_gather *g, int peer)
{
    return (struct element_list){.positions = g->asks[peer] > 0 ? g->places + g->wanted_offset[peer] : NULL,
                                 .count = g->asks[peer],
                                 .elements = g->count};
}

static struct element_list sends_to(const struct element_walk *w, int peer)
{
    return w->gathers ? list_of_owner(w->gather, peer) : list_of_places(w->gather, peer);
}

static struct element_list receives_from(const struct element_walk *w, int peer)
{
    return w->gathers ? list_of_places(w->gather, peer) : list_of_owner(w->gather, peer);
}

/* A slice of in -> slice. */
static hsort_status take_slice(const struct element_walk *w, const struct element_list *list, int64_t at,
                               void *slice)
{
    struct engine *engine = w->gather->engine;
    const int64_t some = slice_length(list->count, at, w->slice);
    int64_t outside = 0;
    if (some > 0)
        TRY(engine->ops->take(engine,
                              &(struct engine_take){.element_bytes = w->element_bytes,
                                                    .to = slice,
                                                    .from = {w->in},
                                                    .from_count = {list->elements},
                                                    .positions = list->positions + at,
                                                    .first = list->first,
                                                    .count = some},
                              &outside));
    return check_inside(outside, some, list->elements);
}

/* slice -> a slice of out. */
static hsort_status place_slice(const struct element_walk *w, const struct element_list *list, int64_t at,
                                const void *slice)
{
    struct engine *engine = w->gather->engine;
    const int64_t some = slice_length(list->count, at, w->slice);
    int64_t outside = 0;
    if (some > 0)
        TRY(engine->ops->place(engine, w->element_bytes, w->out, list->elements, slice, list->positions + at,
                               list->first, some, &outside));
    return check_inside(outside, some, list->elements);
}

/* Move the own elements that this rank names. */
static hsort_status move_own(const struct element_walk *w)
{
    const struct element_gather *g = w->gather;
    const struct element_list from = sends_to(w, g->comm->rank), to = receives_from(w, g->comm->rank);
    for (int64_t at = 0; at < from.count; at += w->slice) {
        TRY(take_slice(w, &from, at, g->slice->kept->memory));
        TRY(place_slice(w, &to, at, g->slice->kept->memory));
    }
    return HSORT_OK;
}

/* Send to one rank and receive from another, slice by slice. Collective. */
static hsort_status move_step(const struct element_walk *w, int to, int from)
{
    const struct element_gather *g = w->gather;
    const struct element_list sends = sends_to(w, to), receives = receives_from(w, from);
    hsort_status status = HSORT_OK;
    for (int64_t at = 0; at < sends.count || at < receives.count; at += w->slice) {
        const size_t send_bytes = (size_t)slice_length(sends.count, at, w->slice) * w->element_bytes;
        const size_t receive_bytes = (size_t)slice_length(receives.count, at, w->slice) * w->element_bytes;
        keep_first_error(&status, take_slice(w, &sends, at, g->slice->kept->memory));
        keep_first_error(&status,
                         g->transport->ops->sendrecv(g->transport, to, g->slice->kept->memory, send_bytes,
                                                     from, g->in_slice, receive_bytes, w->moved_bytes));
        keep_first_error(&status, place_slice(w, &receives, at, g->in_slice));
    }
    return status;
}

/* A rank alone has no lists: its index serves as one, and has not been checked. A gather finds positions outside as it goes. A scatter
 * must not change `out` if there are any, so it checks first. */
static hsort_status move_alone(const struct element_walk *w)
{
    const struct element_gather *g = w->gather;
    struct engine *engine = g->engine;
    int64_t outside = 0;
    if (g->count > 0 && w->gathers)
        TRY(engine->ops->take(engine,
                              &(struct engine_take){.element_bytes = w->element_bytes,
                                                    .to = w->out,
                                                    .from = {w->in},
                                                    .from_count = {g->offset[1]},
                                                    .positions = g->index,
                                                    .count = g->count},
                              &outside));
    if (!w->gathers)
        TRY(check_index(g));
    if (g->count > 0 && !w->gathers)
        TRY(engine->ops->place(engine, w->element_bytes, w->out, g->offset[1], w->in, g->index, 0, g->count,
                               &outside));
    return check_inside(outside, g->count, g->offset[1]);
}

/* Collective. */
static hsort_status walk_elements(const struct element_walk *w)
{
    const struct element_gather *g = w->gather;
    const int rank = g->comm->rank, size = g->comm->size;
    hsort_status status = comm_is_alone(g->comm) ? move_alone(w) : move_own(w);
    for (int step = 1; step < size; step++)
        keep_first_error(&status, move_step(w, (rank + step) % size, (rank - step + size) % size));
    keep_first_error(&status, g->engine->ops->stream_synchronize(g->engine, STREAM_WORK));
    return comm_agree(g->comm, status);
}

hsort_status element_gather_run(struct element_gather *g, bool scatters, size_t element_bytes, const void *in,
                                void *out, int64_t *moved_bytes)
{
    struct element_walk walk = {.gather = g,
                                .gathers = !scatters,
                                .element_bytes = element_bytes,
                                .in = in,
                                .out = out,
                                .moved_bytes = moved_bytes};
    if (!comm_is_alone(g->comm)) {
        walk.slice = slice_elements(g, element_bytes);
        TRY(make_slices(g, element_bytes));
    }
    return walk_elements(&walk);
}
