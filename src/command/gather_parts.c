#include "src/command/gather_parts.h"
#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/element_digest.h"
#include "kernels/base/lesser.h"
#include "kernels/base/size_text.h"
#include "mpi/comm/node_memory.h"
#include "src/command/launch.h"
#include "src/command/report.h"

/* Unless all fits, memory is divided into eighths: one for a piece, one for a call of the library, five for a part, one to spare. */
enum {
    EIGHTHS = 8,
    PIECE_EIGHTHS_MOST = 3,  /* if that is enough for all elements, or for a step; a part then has less */
    MEMORY_LEAST = 64 << 10, /* however little there is to be */
    PIECES_MOST = 1 << 12,   /* which have a count for each thread */
    LIST_BYTES = 40,         /* for each entry of a call, on several ranks, as hypersort.h says */
    SLICE_BYTES = 64 << 20,  /* of each of the two that elements go through, or less for fewer of them */
    READINGS_MOST = 256      /* the time grows with the square of the elements, which would surprise a user */
};

struct part_run {
    struct gather_parts *parts;
    int threads;
    int64_t most;    /* entries of a rank in a part */
    int64_t piece;   /* elements of all ranks in a piece */
    int64_t at_once; /* entries of a rank in a call of the library */
    int64_t pieces;  /* if 1, entries stay in their order, and come where they belong at once */
    int64_t held;    /* the piece that is in memory; -1: none yet */

    int64_t first, count; /* entries of this rank in this part */
    int64_t *index;       /* [most] what they name */
    char *result;         /* [most] elements */
    uint32_t *place;      /* [most] entries of this part, by pieces */
    int64_t *begin;       /* [pieces + 1] where each piece begins in `place` */
    int64_t *next;        /* [threads * pieces] where each thread's next entry of each piece goes */
    double *calls;        /* [2 * pieces] of this rank, and of the one that needs most, by comm_largest() */

    char *elements;  /* this rank's share of a piece */
    uint64_t *marks; /* of these */
    int64_t *wanted; /* [at_once] positions in the piece */
    char *brought;   /* [at_once] elements */
    uint64_t *found; /* [at_once] marks */
};

/* ---- Sizes ------------------------------------------------------------------------------------------------------ */

static int64_t share_most(const struct part_run *run, int64_t count)
{
    return divide_up(count, run->parts->comm->size);
}

static size_t mark_bytes(const struct part_run *run)
{
    return run->parts->checks ? sizeof *run->marks : 0;
}

static uint64_t share_bytes(const struct part_run *run, int64_t elements)
{
    return (uint64_t)elements * (run->parts->element_bytes + mark_bytes(run));
}

/* Of a call of the library, with its lists, and with its entries in the order of pieces. */
static uint64_t call_bytes(const struct part_run *run, int64_t entries)
{
    const uint64_t elements = (uint64_t)entries * run->parts->element_bytes,
                   slice = elements < SLICE_BYTES ? elements : SLICE_BYTES;
    const uint64_t lists = run->parts->comm->size > 1 ? (uint64_t)entries * LIST_BYTES + 2 * slice : 0;
    return elements + (uint64_t)entries * (mark_bytes(run) + sizeof *run->wanted) + lists;
}

/* Of all arrays, if everything is one part and one piece. */
static uint64_t whole_bytes(const struct part_run *run)
{
    return share_bytes(run, share_most(run, run->parts->total)) +
           call_bytes(run, share_most(run, run->parts->entries));
}

/* Elements of a rank in a piece: if they take no more than PIECE_EIGHTHS_MOST, all, or a whole step. */
static int64_t choose_share(const struct part_run *run, size_t eighth)
{
    const int64_t step = run->parts->step, all = greater(1, share_most(run, run->parts->total));
    const int64_t most = (int64_t)(PIECE_EIGHTHS_MOST * eighth / share_bytes(run, 1));
    const int64_t share = greater((int64_t)(eighth / share_bytes(run, 1)), divide_up(all, PIECES_MOST));
    if (all <= most)
        return all;
    if (step <= share)
        return share - share % step;
    return step <= most ? step : greater(1, share);
}

/* The sizes for so many bytes of memory on each rank. The same on every rank. */
static void choose_sizes(struct part_run *run, size_t memory)
{
    const struct gather_parts *parts = run->parts;
    const size_t eighth = memory / EIGHTHS;
    const int64_t all = greater(1, share_most(run, parts->total));
    run->most = run->at_once = greater(1, share_most(run, parts->entries));
    run->piece = all * parts->comm->size;
    run->pieces = 1;
    if (whole_bytes(run) <= memory)
        return;
    const int64_t share = choose_share(run, eighth);
    while (run->at_once > 1 && call_bytes(run, run->at_once) > eighth)
        run->at_once /= 2;
    run->piece = share * parts->comm->size;
    run->pieces = greater(1, divide_up(parts->total, run->piece));
    const size_t entry_bytes = sizeof *run->index + sizeof *run->place + parts->element_bytes;
    const size_t taken = 2 * eighth + greater_bytes(eighth, share_bytes(run, share));
    const int64_t most = taken < memory ? (int64_t)((memory - taken) / entry_bytes) : 0;
    run->most = greater(1, lesser(run->most, lesser(most, UINT32_MAX)));
    run->at_once = lesser(run->at_once, run->most);
}

static int64_t count_readings(const struct part_run *run)
{
    return run->pieces == 1 ? 1 : divide_up(share_most(run, run->parts->entries), run->most);
}

/* Choose all sizes, unless the elements would be read too often. The same on every rank. */
static hsort_status choose_parts(struct part_run *run)
{
    struct gather_parts *parts = run->parts;
    const size_t memory = greater_bytes(parts->memory_bytes, MEMORY_LEAST);
    choose_sizes(run, memory);
    parts->elements_ok = parts->checks;
    parts->whole = run->pieces == 1 && run->most >= share_most(run, parts->entries);
    parts->readings = count_readings(run);
    if (parts->readings <= READINGS_MOST)
        return HSORT_OK;
    size_t enough = memory;
    do
        choose_sizes(run, enough += enough / 8);
    while (count_readings(run) > READINGS_MOST);
    char has[SIZE_TEXT_BYTES], would_do[SIZE_TEXT_BYTES];
    return status_fail(
        HSORT_HOST_MEMORY,
        "%s: with %s of memory on each rank its elements would be read %" PRId64 " times: -S %s would do",
        parts->in_name, size_text(memory, has), parts->readings, size_option_text(enough, would_do));
}

/* Not collective. */
static hsort_status take_part_memory(struct part_run *run)
{
    const struct gather_parts *parts = run->parts;
    const size_t bytes = parts->element_bytes, marks = mark_bytes(run);
    const bool several = run->pieces > 1;
    const size_t most = (size_t)run->most, at_once = (size_t)run->at_once,
                 share = (size_t)share_most(run, run->piece);
    const size_t pieces = (size_t)run->pieces, threads = (size_t)run->threads;
    TRY(node_memory_check(parts->comm,
                          share_bytes(run, (int64_t)share) +
                              most * (sizeof *run->index + bytes + several * sizeof *run->place) +
                              at_once * (marks + several * (sizeof *run->wanted + bytes))));
    run->index = malloc(most * sizeof *run->index);
    run->result = malloc(most * bytes);
    run->elements = malloc(share * bytes);
    run->marks = malloc(share * marks + 1);
    run->found = malloc(at_once * marks + 1);
    run->place = malloc(several * most * sizeof *run->place + 1);
    run->wanted = malloc(several * at_once * sizeof *run->wanted + 1);
    run->brought = malloc(several * at_once * bytes + 1);
    run->begin = malloc((pieces + 1) * sizeof *run->begin);
    run->next = malloc(threads * pieces * sizeof *run->next);
    run->calls = malloc(2 * pieces * sizeof *run->calls);
    return run->index && run->result && run->elements && run->marks && run->found && run->place &&
                   run->wanted && run->brought && run->begin && run->next && run->calls &&
                   !fault_hit(FAULT_ALLOC)
               ? HSORT_OK
               : status_fail(HSORT_HOST_MEMORY, "%s: no memory for %zu elements of %zu bytes", parts->in_name,
                             most + share, bytes);
}

static void free_part_memory(struct part_run *run)
{
    void *const arrays[] = {run->index,  run->result,  run->elements, run->marks, run->found, run->place,
                            run->wanted, run->brought, run->begin,    run->next,  run->calls};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}

/* ---- Entries: not collective -------------------------------------------------------------------------------- */

/* Every entry must name an element. */
static hsort_status check_entries(const struct part_run *run)
{
    const struct gather_parts *parts = run->parts;
    int64_t wrong = INT64_MAX;
#pragma omp parallel for schedule(static) reduction(min : wrong)
    for (int64_t i = 0; i < run->count; i++)
        if (i < wrong && (uint64_t)run->index[i] >= (uint64_t)parts->total)
            wrong = i;
    if (wrong == INT64_MAX)
        return HSORT_OK;
    char text[REPORT_KEY_TEXT];
    return status_fail(HSORT_ARGUMENT, "%s: entry %" PRId64 " is %s, but %s has %" PRId64 " elements",
                       parts->by_name, run->first + wrong,
                       report_key_text(parts->index_type, (uint64_t)run->index[wrong], text), parts->in_name,
                       parts->total);
}

/* Turn counts of each thread's entries in each piece into the places where they go: by pieces, in a piece by threads. */
static void place_threads(struct part_run *run)
{
    int64_t sum = 0;
    for (int64_t p = 0; p < run->pieces; p++) {
        run->begin[p] = sum;
        for (int t = 0; t < run->threads; t++) {
            int64_t *next = &run->next[t * run->pieces + p];
            const int64_t count = *next;
            *next = sum;
            sum += count;
        }
    }
    run->begin[run->pieces] = sum;
}

/* List the entries of this part by pieces, in a piece in their order. */
static void order_entries(struct part_run *run)
{
    memset(run->next, 0, (size_t)run->threads * (size_t)run->pieces * sizeof *run->next);
#pragma omp parallel num_threads(run->threads)
    {
        // A team may have fewer threads than it was asked for.
        const int64_t me = omp_get_thread_num(), team = omp_get_num_threads();
        const int64_t end = (me + 1) * run->count / team;
        int64_t *next = run->next + me * run->pieces;
        for (int64_t i = me * run->count / team; i < end; i++)
            next[run->index[i] / run->piece]++;
#pragma omp barrier
#pragma omp single
        place_threads(run);
        for (int64_t i = me * run->count / team; i < end; i++)
            run->place[next[run->index[i] / run->piece]++] = (uint32_t)i;
    }
}

static hsort_status read_part_index(struct part_run *run)
{
    const struct gather_parts *parts = run->parts;
    TRY(parts->read_index(parts->user, run->first, run->count, run->index));
    TRY(check_entries(run));
    if (run->pieces > 1)
        order_entries(run);
    run->begin[0] = 0;
    run->begin[run->pieces] = run->count;
    return HSORT_OK;
}

/* ---- A call of the library ------------------------------------------------------------------------------------ */

/* A word that an element and its position share with practically no other element and position. */
static uint64_t mark_of(const void *element, size_t bytes, int64_t position)
{
    uint64_t digest[2] = {0, 0};
    digest_add_bytes(element, bytes, 0, digest);
    digest_add_word(WORD_OF_NUMBER, (uint64_t)position, digest);
    return digest[0];
}

/* The entry of this part that is at `at` in the order of pieces. */
static int64_t entry_at(const struct part_run *run, int64_t at)
{
    return run->pieces > 1 ? run->place[at] : at;
}

/* Compare the marks of entries from .. from + count - 1, in the order of pieces. Not collective. */
static hsort_status compare_marks(const struct part_run *run, int64_t from, int64_t count)
{
    const struct gather_parts *parts = run->parts;
    const size_t bytes = parts->element_bytes;
    int64_t wrong = INT64_MAX;
#pragma omp parallel for schedule(static) reduction(min : wrong)
    for (int64_t i = 0; i < count; i++) {
        const int64_t entry = entry_at(run, from + i);
        if (i < wrong &&
            run->found[i] != mark_of(run->result + (size_t)entry * bytes, bytes, run->index[entry]))
            wrong = i;
    }
    if (wrong == INT64_MAX)
        return HSORT_OK;
    const int64_t entry = entry_at(run, from + wrong);
    return status_fail(HSORT_MISMATCH,
                       "%s: entry %" PRId64 " of %s has not brought element %" PRId64 "; nothing was written",
                       parts->in_name, run->first + entry, parts->by_name, run->index[entry]);
}

/* Call the library. Collective. */
static hsort_status gather_once(struct part_run *run, int64_t held, const void *from, size_t bytes,
                                const int64_t *wanted, void *to, int64_t count)
{
    struct gather_parts *parts = run->parts;
    const hsort_status status = hsort_gather(parts->ctx, from, held, bytes, wanted, to, count, NULL);
    if (status != HSORT_OK)
        return report_fail(parts->comm, status, "%s", hsort_last_error(parts->ctx));
    status_clear();
    return HSORT_OK;
}

/* Check what was gathered. Collective. */
static hsort_status look_at_entries(struct part_run *run, int64_t held, const int64_t *wanted, int64_t from,
                                    int64_t count)
{
    struct gather_parts *parts = run->parts;
    TRY(gather_once(run, held, run->marks, sizeof *run->marks, wanted, run->found, count));
    const hsort_status same = comm_agree(parts->comm, compare_marks(run, from, count));
    parts->elements_ok = same == HSORT_OK;
    return same;
}

/* wanted = where in a piece the elements of entries from .. from + count - 1 lie. Not collective. */
static void find_wanted(struct part_run *run, int64_t piece, int64_t from, int64_t count)
{
    const int64_t base = piece * run->piece;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        run->wanted[i] = run->index[run->place[from + i]] - base;
}

/* Put what was brought where these entries are. Not collective. */
static void place_brought(struct part_run *run, int64_t from, int64_t count)
{
    const size_t bytes = run->parts->element_bytes;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        memcpy(run->result + (size_t)run->place[from + i] * bytes, run->brought + (size_t)i * bytes, bytes);
}

/* Bring what is in a piece, of which this rank holds `held` elements, to entries from .. from + count - 1 in the order of pieces.
 * Collective. */
static hsort_status bring_entries(struct part_run *run, int64_t piece, int64_t held, int64_t from,
                                  int64_t count)
{
    struct gather_parts *parts = run->parts;
    const size_t bytes = parts->element_bytes;
    const bool apart = run->pieces > 1;
    const int64_t *wanted = apart ? run->wanted : run->index + from;
    char *brought = apart ? run->brought : run->result + (size_t)from * bytes;
    double start = MPI_Wtime();
    if (apart)
        find_wanted(run, piece, from, count);
    TRY(gather_once(run, held, run->elements, bytes, wanted, brought, count));
    TRY(parts->count_call(parts->user));
    if (apart)
        place_brought(run, from, count);
    parts->gather_seconds += MPI_Wtime() - start;
    if (!parts->checks)
        return HSORT_OK;
    start = MPI_Wtime();
    struct trace_span *span = trace_begin(parts->comm->trace, "look at result");
    const hsort_status status = trace_end_with(span, look_at_entries(run, held, wanted, from, count));
    parts->check_seconds += MPI_Wtime() - start;
    return status;
}

/* ---- Parts and pieces: collective --------------------------------------------------------------------------- */

static void mark_elements(struct part_run *run, int64_t first, int64_t count)
{
    const size_t bytes = run->parts->element_bytes;
    const double start = MPI_Wtime();
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        run->marks[i] = mark_of(run->elements + (size_t)i * bytes, bytes, first + i);
    run->parts->check_seconds += MPI_Wtime() - start;
}

/* Bring what is in a piece, in so many calls. */
static hsort_status gather_piece(struct part_run *run, int64_t piece, int64_t calls)
{
    struct gather_parts *parts = run->parts;
    const int64_t share = run->piece / parts->comm->size;
    const int64_t first = lesser(piece * run->piece + parts->comm->rank * share, parts->total);
    const int64_t count = lesser(share, parts->total - first);
    if (piece != run->held) { // an only piece is read once, for all parts
        TRY(comm_agree(parts->comm, parts->read(parts->user, first, count, run->elements)));
        if (parts->checks)
            mark_elements(run, first, count);
        run->held = piece;
    }
    for (int64_t c = 0; c < calls; c++) {
        const int64_t from = lesser(run->begin[piece] + c * run->at_once, run->begin[piece + 1]);
        TRY(bring_entries(run, piece, count, from, lesser(run->at_once, run->begin[piece + 1] - from)));
    }
    return HSORT_OK;
}

/* Bring one part of the entries. */
static hsort_status gather_part(struct part_run *run)
{
    struct gather_parts *parts = run->parts;
    TRY(comm_agree(parts->comm, read_part_index(run)));
    double *const most = run->calls + run->pieces;
    for (int64_t p = 0; p < run->pieces; p++)
        run->calls[p] = (double)divide_up(run->begin[p + 1] - run->begin[p], run->at_once);
    TRY(comm_largest(parts->comm, run->calls, (int)run->pieces, most));
    for (int64_t p = 0; p < run->pieces; p++)
        if (most[p] > 0 || run->pieces == 1) // an index of nothing is gathered by, too
            TRY(gather_piece(run, p, greater(1, (int64_t)most[p])));
    return parts->write(parts->user, run->first, run->count, run->result);
}

static hsort_status gather_all_parts(struct part_run *run)
{
    const struct gather_parts *parts = run->parts;
    const struct comm *comm = parts->comm;
    const int64_t first = launch_share(parts->entries, comm->rank, comm->size),
                  end = launch_share(parts->entries, comm->rank + 1, comm->size);
    const int64_t all = greater(1, divide_up(share_most(run, parts->entries), run->most));
    TRY(comm_agree(parts->comm, take_part_memory(run)));
    for (int64_t part = 0; part < all; part++) {
        run->first = lesser(first + part * run->most, end);
        run->count = lesser(run->most, end - run->first);
        TRY(gather_part(run));
    }
    return HSORT_OK;
}

hsort_status gather_in_parts(struct gather_parts *parts)
{
    struct part_run run = {.parts = parts, .threads = omp_get_max_threads(), .held = -1};
    hsort_status status = comm_agree(parts->comm, choose_parts(&run));
    if (status == HSORT_OK)
        status = gather_all_parts(&run);
    free_part_memory(&run);
    return status;
}
