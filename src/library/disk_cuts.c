/* Each run has fences: copies of every n-th element (run_store.h). The fences are cut first, and say in which few blocks of
 * each run a cut must lie. Only these blocks are read.
 *
 *     fence_elements 4           0     4     8     12                       cut at position 10 of all
 *     run 0      0 1 2 3 | 4 5 6 7 | 8 9 9 9 |       fences  0 4 8
 *     run 1      2 2 5 5 | 6 6 7 7 | 8                       2 6 8          all fences, in order: 0 2 4 6 8 8
 *     lower      fence 10 / 4 = 2 of all is 4: fewer than 10 elements lie before it           run 0 from 0, run 1 from 0
 *     upper      fence 10 / 4 + 1 + 2 runs = 5 of all is the last 8: at least 10 lie before   run 0 to 12, run 1 to 8
 *
 * Why: of each run, the elements before fence i of all are at most those up to the run's next fence, so at most 4 i in all; and
 * at least those up to the run's last fence before that, so at least 4 (i - runs). The order is that of (key, run, position), so
 * this holds for equal keys too, and a cut never has more than some blocks of each run.
 *
 * There are two searches, because there are many fences, and ranges are far apart:
 *
 *     fences     each rank reads those of a share of the runs; all ranks cut them together, by messages (run_cuts.h)
 *     ranges     each rank is told those of a share of the cuts, in all runs; it reads them, and finds these cuts without a message
 *
 *     4 runs, 2 ranks, 3 cuts       run 0   run 1   run 2   run 3
 *     fences                        rank 0  rank 0  rank 1  rank 1
 *     ranges of cuts 0 and 1        rank 0  rank 0  rank 0  rank 0
 *     ranges of cut 2               rank 1  rank 1  rank 1  rank 1
 *
 * Shares are contiguous. Then the order by (key, rank, run) of run_cuts.h is the order by run, whichever ranks made the runs; and
 * what a rank reads of a run for one cut is often what it needs for the next one. So a rank has a window of each run, which moves
 * on; what lies in the window is not read again:
 *
 *     run 0      | . . . . | . . . . | . . . . | . . . . |
 *     cut 0            [range   ]
 *     cut 1                  [range    ]                       of which only the end is read
 *     cut 2                                [range  ]           read as a whole
 *
 * If memory does not hold the ranges of one cut, as with many runs or wide elements, they are narrowed first (disk_look.h). For each
 * cut about two blocks of each run are read. *Rejected:* each rank reads the ranges of a share of the runs, and ranks then find the cuts
 * together. Only as many cuts as have ranges that fit memory could then be searched for at a time, and each round of such a search takes
 * two messages. */
#include "src/library/disk_cuts.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/memory_parts.h"
#include "kernels/base/thread_failures.h"
#include "src/library/disk_look.h"
#include "src/library/disk_plan.h"

/* How many cuts are searched for together: an eighth of all, because each time takes messages, or must wake threads. */
enum {
    TIMES = 8,
    FENCE_CUTS_LEAST = 32, /* these are limits to that number, because tables grow with it */
    CUTS_LEAST = 8,
    CUTS_MOST = 32
};

enum { FENCE_BYTES_MOST = 64 }; /* for wider elements codes are kept */

/* A part of a run in memory. */
struct window {
    int64_t begin, end;
    char *elements; /* from `begin` on */
};

struct disk_cuts {
    struct comm *comm;
    struct comm alone; /* this rank alone, for the ranges */
    const hsort_options *options;
    const struct pass_sort *sort;
    const struct run_plan *plan;
    int64_t borders; /* between segments: one less than these */
    struct disk_look look; /* how they are read */
    char *memory;          /* of the arrays whose [lengths] are given below; owned */

    int64_t first, runs;  /* this rank's share of the runs */
    char *fences;         /* of these runs, or the fences' codes; owned */
    char **fence;         /* [runs] where the fences of each begin */
    int64_t *fence_count; /* [runs] */
    int64_t *position;    /* [2 * borders] in fences: lower ones, then upper ones */
    int64_t *fence_cut;   /* [2 * borders * runs] */
    struct run_cuts *fence_tables;

    int64_t first_border, own_borders; /* this rank's share of the borders */
    int *out_lengths, *out_places;     /* [size] of what ranks send each other */
    int *in_lengths, *in_places;       /* [size] */
    int64_t *received;                 /* [own_borders * parts] */
    int64_t *begin, *end;              /* [own_borders * parts] */
    int64_t *count;                    /* [parts] elements */
    struct window *window, *last;      /* [parts] now, and before */
    char *elements, *last_elements;    /* of all windows; owned */
    struct run_cuts *tables;
};

/* The first of a rank's share of so many. */
static int64_t share_of(int64_t all, int rank, int size)
{
    return all / size * rank + lesser(rank, all % size);
}

static int64_t share_count(int64_t all, int rank, int size)
{
    return share_of(all, rank + 1, size) - share_of(all, rank, size);
}

/* ---- tables -------------------------------------------------------------------------------------------- */

static void free_cuts(struct disk_cuts *c)
{
    free(c->memory);
    free(c->fences);
    free(c->elements);
    free(c->last_elements);
    run_cuts_close(c->fence_tables);
    run_cuts_close(c->tables);
}

/* Fences have two cuts for each border. */
static int fence_cuts_at_once(int64_t borders)
{
    return (int)int64_clamp(2 * borders / TIMES, FENCE_CUTS_LEAST, RUN_CUTS_AT_ONCE);
}

static int own_cuts_at_once(int64_t own_borders)
{
    return (int)int64_clamp(own_borders / TIMES, CUTS_LEAST, CUTS_MOST);
}

size_t disk_cuts_bytes(int64_t parts, int size)
{
    enum { OF_ALL = 1, OF_OWN = 5 };
    const int64_t own = divide_up(parts, size);
    return (size_t)(parts * (OF_ALL * parts + OF_OWN * own)) * sizeof(int64_t) +
           run_cuts_bytes(size, own, fence_cuts_at_once(parts - 1)) +
           run_cuts_bytes(1, parts, own_cuts_at_once(own));
}

/* What is sent and received: for each border, the lower or the upper fences of all runs. */
static void set_lengths(struct disk_cuts *c)
{
    const int size = c->comm->size;
    for (int rank = 0, out = 0, in = 0; rank < size; rank++) {
        c->out_lengths[rank] = (int)(share_count(c->borders, rank, size) * c->runs);
        c->in_lengths[rank] = (int)(c->own_borders * share_count(c->plan->parts, rank, size));
        c->out_places[rank] = out;
        c->in_places[rank] = in;
        out += c->out_lengths[rank];
        in += c->in_lengths[rank];
    }
}

/* Lay out the tables. Returns the bytes of all. */
static size_t lay_out_disk_cuts(struct disk_cuts *c, char *memory)
{
    const int64_t parts = c->plan->parts, own = c->own_borders * parts, size = c->comm->size;
    char *at = memory;
    c->fence = take_table(&at, c->runs, sizeof *c->fence);
    c->fence_count = take_table(&at, c->runs, sizeof *c->fence_count);
    c->position = take_table(&at, 2 * c->borders, sizeof *c->position);
    c->fence_cut = take_table(&at, 2 * c->borders * c->runs, sizeof *c->fence_cut);
    c->out_lengths = take_table(&at, size, sizeof *c->out_lengths);
    c->out_places = take_table(&at, size, sizeof *c->out_places);
    c->in_lengths = take_table(&at, size, sizeof *c->in_lengths);
    c->in_places = take_table(&at, size, sizeof *c->in_places);
    c->received = take_table(&at, own, sizeof *c->received);
    c->begin = take_table(&at, own, sizeof *c->begin);
    c->end = take_table(&at, own, sizeof *c->end);
    c->count = take_table(&at, parts, sizeof *c->count);
    c->window = take_table(&at, parts, sizeof *c->window);
    c->last = take_table(&at, parts, sizeof *c->last);
    return (size_t)(at - memory);
}

static hsort_status make_cut_tables(struct disk_cuts *c)
{
    const struct run_plan *plan = c->plan;
    size_t fences = 0;
    for (int64_t run = 0; run < c->runs; run++)
        fences += (size_t)plan_fences(plan, c->first + run);
    c->fences = malloc(fences * disk_cuts_fence_bytes(plan->element_bytes) + 1);
    c->memory = calloc(1, lay_out_disk_cuts(c, NULL));
    if (!c->fences || !c->memory || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory to cut %lld of %lld runs", (long long)c->runs,
                           (long long)plan->parts);
    lay_out_disk_cuts(c, c->memory);
    set_lengths(c);
    TRY(run_cuts_open(c->comm, c->runs, fence_cuts_at_once(c->borders), &c->fence_tables));
    return run_cuts_open(&c->alone, plan->parts, own_cuts_at_once(divide_up(plan->parts, c->comm->size)),
                         &c->tables);
}

/* ---- fences -------------------------------------------------------------------------------------------- */

uint64_t fences_checksum(const char *fences, size_t bytes)
{
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15), word;
    for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, fences + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, fences + bytes / sizeof word * sizeof word, bytes % sizeof word);
    return (hash ^ word ^ bytes << 56) * UINT64_C(0xff51afd7ed558ccd);
}

size_t disk_cuts_fence_bytes(size_t element_bytes)
{
    return element_bytes > FENCE_BYTES_MOST ? sizeof(key_code) : element_bytes;
}

static bool keeps_codes(const struct disk_cuts *c)
{
    return disk_cuts_fence_bytes(c->plan->element_bytes) != c->plan->element_bytes;
}

/* Read the fences of a run, and compare their checksum. Fences decide which of several equal elements is first, and no check of the result
 * would see that they are damaged. */
static hsort_status load_fences(const struct disk_cuts *c, int64_t run, char *to)
{
    const int64_t number = c->first + run;
    TRY(disk_look_read(&c->look, number, c->count[number], c->fence_count[run], to));
    if (fences_checksum(to, (size_t)c->fence_count[run] * c->plan->element_bytes) ==
        c->plan->runs[number].fences)
        return HSORT_OK;
    return status_fail(HSORT_IO, "the runs are not as they were made: the fences of run %lld have changed",
                       (long long)number);
}

/* Have the fences of a run, or, if elements are wide, the codes of the fences. */
static hsort_status read_fences_of(const struct disk_cuts *c, int64_t run)
{
    if (!keeps_codes(c))
        return load_fences(c, run, c->fence[run]);
    char *fences =
        fault_hit(FAULT_ALLOC) ? NULL : malloc((size_t)c->fence_count[run] * c->plan->element_bytes + 1);
    if (!fences)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the fences of run %lld",
                           (long long)(c->first + run));
    const hsort_status status = load_fences(c, run, fences);
    for (int64_t i = 0; i < c->fence_count[run] && status == HSORT_OK; i++)
        ((key_code *)c->fence[run])[i] = pass_code_at(c->sort, fences, i);
    free(fences);
    return status;
}

static hsort_status read_fences(struct disk_cuts *c)
{
    const struct run_plan *plan = c->plan;
    struct thread_failures failures;
    char *at = c->fences;
    for (int64_t run = 0; run < plan->parts; run++)
        c->count[run] = plan_part_count(plan, run);
    for (int64_t run = 0; run < c->runs; run++) {
        c->fence_count[run] = plan_fences(plan, c->first + run);
        c->fence[run] = at;
        at += (size_t)c->fence_count[run] * disk_cuts_fence_bytes(plan->element_bytes);
    }
    const size_t own = keeps_codes(c) ? (size_t)plan_fences(plan, 0) * plan->element_bytes : 0;
    thread_failures_begin(&failures);
#pragma omp parallel for schedule(dynamic) num_threads(disk_look_threads(&c->look, own))
    for (int64_t run = 0; run < c->runs; run++)
        thread_failures_note(&failures, read_fences_of(c, run));
    return thread_failures_end(&failures);
}

static key_code code_of_fence(const void *cuts, int64_t cut, int64_t run, int64_t fence)
{
    (void)cut;
    const struct disk_cuts *c = cuts;
    return keeps_codes(c) ? ((const key_code *)c->fence[run])[fence]
                          : pass_code_at(c->sort, c->fence[run], fence);
}

/* For each border, count the fences of each run before its range and before the range's end. Collective. */
static hsort_status cut_fences(struct disk_cuts *c)
{
    const struct run_plan *plan = c->plan;
    const struct run_set set = {.count = c->fence_count, .code_at = code_of_fence, .state = c};
    int64_t all = 0;
    for (int64_t run = 0; run < plan->parts; run++)
        all += plan_fences(plan, run);
    for (int64_t border = 0; border < c->borders; border++) {
        const int64_t at = (border + 1) * plan->part_elements;
        const int64_t upper = divide_up(at, plan->fence_elements) + plan->parts;
        c->position[border] = lesser(at / plan->fence_elements, all);
        c->position[c->borders + border] = lesser(upper, all);
    }
    return run_cuts_find(c->fence_tables, &set, all, c->position, 2 * c->borders, c->fence_cut);
}

/* ---- ranges -------------------------------------------------------------------------------------------- */

/* to [own_borders * parts] = for each own border and each run, what the rank with the run's fences has found: rows of fence_cut.
 * Collective. */
static hsort_status tell_cuts(struct disk_cuts *c, const int64_t *found, int64_t *to)
{
    const struct run_plan *plan = c->plan;
    const int size = c->comm->size;
    if (comm_is_alone(c->comm)) {
        memcpy(to, found, (size_t)(c->borders * c->runs) * sizeof *to);
        return HSORT_OK;
    }
    const hsort_status status =
        comm_check(MPI_Alltoallv(found, c->out_lengths, c->out_places, MPI_INT64_T, c->received,
                                 c->in_lengths, c->in_places, MPI_INT64_T, c->comm->world),
                   "MPI_Alltoallv", true);
    for (int rank = 0; rank < size; rank++) {
        const int64_t first = share_of(plan->parts, rank, size), runs = share_count(plan->parts, rank, size);
        for (int64_t border = 0; border < c->own_borders; border++)
            memcpy(to + border * plan->parts + first, c->received + c->in_places[rank] + border * runs,
                   (size_t)runs * sizeof *to);
    }
    return status;
}

/* The ranges of this rank's borders, in elements. Collective. */
static hsort_status set_ranges(struct disk_cuts *c)
{
    const struct run_plan *plan = c->plan;
    const int64_t step = plan->fence_elements;
    hsort_status status = tell_cuts(c, c->fence_cut, c->begin);
    keep_first_error(&status, tell_cuts(c, c->fence_cut + c->borders * c->runs, c->end));
    for (int64_t i = 0; i < c->own_borders * plan->parts; i++) {
        const int64_t run = i % plan->parts, before = c->begin[i], up_to = c->end[i];
        c->begin[i] = before > 0 ? (before - 1) * step : 0;
        c->end[i] = up_to < plan_fences(plan, run) ? up_to * step : c->count[run];
        if (c->end[i] < c->begin[i]) // fences are damaged: check_cuts() says so
            c->end[i] = c->begin[i];
    }
    return status;
}

/* The part of a run that has the ranges of borders first .. first + some - 1. */
static struct window join_ranges(const struct disk_cuts *c, int64_t run, int64_t first, int64_t some)
{
    struct window all = {.begin = INT64_MAX};
    for (int64_t i = first * c->plan->parts + run; some > 0; some--, i += c->plan->parts) {
        if (c->end[i] == c->begin[i]) // nothing is looked at there
            continue;
        all.begin = lesser(all.begin, c->begin[i]);
        all.end = greater(all.end, c->end[i]);
    }
    all.begin = lesser(all.begin, all.end);
    return all;
}

/* Elements of the windows of borders first .. first + some - 1. */
static int64_t count_joined(const struct disk_cuts *c, int64_t first, int64_t some)
{
    int64_t count = 0;
    for (int64_t run = 0; run < c->plan->parts; run++) {
        const struct window window = join_ranges(c, run, first, some);
        count += window.end - window.begin;
    }
    return count;
}

/* Elements that all windows may have. Memory holds the windows before, and those now. */
static int64_t window_elements(const struct disk_cuts *c)
{
    return (int64_t)(c->look.bytes / 2 / c->plan->element_bytes);
}

/* How many borders from `first` on are searched for together: as many as there is memory for, or one. */
static int64_t choose_some(const struct disk_cuts *c, int64_t first)
{
    int64_t some = lesser(c->own_borders - first, own_cuts_at_once(c->own_borders));
    while (some > 1 && count_joined(c, first, some) > window_elements(c))
        some /= 2;
    return some;
}

static void drop_windows(struct disk_cuts *c)
{
    free(c->elements);
    free(c->last_elements);
    c->elements = c->last_elements = NULL;
    memset(c->window, 0, (size_t)c->plan->parts * sizeof *c->window);
}

/* Make the windows of one border fit memory: if they do not, its ranges are narrowed first, in the memory of the windows. */
static hsort_status narrow_border(struct disk_cuts *c, int64_t border)
{
    const int64_t at = border * c->plan->parts, most = window_elements(c);
    if (count_joined(c, border, 1) <= most)
        return HSORT_OK;
    drop_windows(c);
    return disk_look_narrow(&c->look, c->tables, (c->first_border + border + 1) * c->plan->part_elements,
                            most, c->begin + at, c->end + at);
}

/* Fill the window of a run: by what lay in the one before, and by what is read. */
static hsort_status fill_window(const struct disk_cuts *c, int64_t run)
{
    const struct window *now = &c->window[run], *before = &c->last[run];
    const size_t width = c->plan->element_bytes;
    int64_t from = now->begin;
    if (before->begin <= from && from < before->end) {
        const int64_t up_to = lesser(before->end, now->end);
        memcpy(now->elements, before->elements + (size_t)(from - before->begin) * width,
               (size_t)(up_to - from) * width);
        from = up_to;
    }
    return disk_look_read(&c->look, run, from, now->end - from,
                          now->elements + (size_t)(from - now->begin) * width);
}

/* Have the windows of borders first .. first + some - 1 in memory. */
static hsort_status move_windows(struct disk_cuts *c, int64_t first, int64_t some)
{
    const struct run_plan *plan = c->plan;
    const size_t bytes = (size_t)count_joined(c, first, some) * plan->element_bytes;
    struct thread_failures failures;
    struct window *const before = c->last;
    c->last = c->window;
    c->window = before;
    free(c->last_elements);
    c->last_elements = c->elements;
    c->elements = fault_hit(FAULT_ALLOC) ? NULL : malloc(bytes + 1);
    if (!c->elements)
        return status_fail(HSORT_HOST_MEMORY, "no memory for %zu bytes of runs", bytes);
    size_t at = 0;
    for (int64_t run = 0; run < plan->parts; run++) {
        c->window[run] = join_ranges(c, run, first, some);
        c->window[run].elements = c->elements + at;
        at += (size_t)(c->window[run].end - c->window[run].begin) * plan->element_bytes;
    }
    thread_failures_begin(&failures);
#pragma omp parallel for schedule(dynamic) num_threads(disk_look_threads(&c->look, 0))
    for (int64_t run = 0; run < plan->parts; run++)
        thread_failures_note(&failures, fill_window(c, run));
    return thread_failures_end(&failures);
}

static key_code code_in_window(const void *cuts, int64_t cut, int64_t run, int64_t position)
{
    (void)cut; // all of a batch look into the same windows
    const struct disk_cuts *c = cuts;
    return pass_code_at(c->sort, c->window[run].elements, position - c->window[run].begin);
}

/* Is this rank to leave its share of the cuts? Without a message, so the others hear of it when they have theirs. */
static hsort_status go_on_or_stop(const struct disk_cuts *c)
{
    const hsort_options *o = c->options;
    return o->should_stop && o->should_stop(o->should_stop_user)
               ? status_fail(HSORT_STOPPED, "asked to stop while runs were cut")
               : HSORT_OK;
}

/* Find the cuts at this rank's borders, some at a time. found [own_borders * parts]. Not collective. */
static hsort_status cut_windows(struct disk_cuts *c, int64_t *found)
{
    const int64_t parts = c->plan->parts;
    const struct run_set set = {.count = c->count, .code_at = code_in_window, .state = c};
    for (int64_t first = 0, some; first < c->own_borders; first += some) {
        int64_t position[CUTS_MOST];
        TRY(go_on_or_stop(c));
        TRY(narrow_border(c, first));
        some = choose_some(c, first);
        for (int64_t i = 0; i < some; i++)
            position[i] = (c->first_border + first + i + 1) * c->plan->part_elements;
        TRY(move_windows(c, first, some));
        TRY(run_cuts_find_within(c->tables, &set, position, (int)some, c->begin + first * parts,
                                 c->end + first * parts, found + first * parts));
    }
    return HSORT_OK;
}

/* ---- what all ranks have found ------------------------------------------------------------------------- */

/* Do the cuts say that each segment has as many elements as it should? They do not if a run is not in order, or was not read. */
static hsort_status check_cuts(const struct run_plan *plan, const int64_t *cuts)
{
    for (int64_t part = 0; part < plan->parts; part++) {
        int64_t count = 0;
        bool rises = true;
        for (int64_t run = 0; run < plan->parts; run++) {
            const int64_t *cut = cuts + part * plan->parts + run;
            rises = rises && cut[plan->parts] >= cut[0];
            count += cut[plan->parts] - cut[0];
        }
        if (!rises || count != plan_part_count(plan, part))
            return status_fail(HSORT_IO,
                               "the runs are not as they were made: segment %lld would have %lld elements",
                               (long long)part, (long long)count);
    }
    return HSORT_OK;
}

/* Bring the cuts of all ranks' shares together, for every rank. Collective. */
static hsort_status gather_cuts(struct disk_cuts *c, const int64_t *found, int64_t *cuts)
{
    const struct run_plan *plan = c->plan;
    const int size = c->comm->size;
    int64_t *const of_borders = cuts + plan->parts;
    for (int rank = 0, at = 0; rank < size; rank++) {
        c->in_lengths[rank] = (int)(share_count(c->borders, rank, size) * plan->parts);
        c->in_places[rank] = at;
        at += c->in_lengths[rank];
    }
    memset(cuts, 0, (size_t)plan->parts * sizeof *cuts);
    memcpy(of_borders + plan->parts * plan->parts - plan->parts, c->count,
           (size_t)plan->parts * sizeof *cuts);
    if (comm_is_alone(c->comm))
        memcpy(of_borders, found, (size_t)(c->borders * plan->parts) * sizeof *cuts);
    else
        TRY(comm_check(MPI_Allgatherv(found, c->in_lengths[c->comm->rank], MPI_INT64_T, of_borders,
                                      c->in_lengths, c->in_places, MPI_INT64_T, c->comm->world),
                       "MPI_Allgatherv", true));
    return check_cuts(plan, cuts);
}

static hsort_status find_cuts(struct disk_cuts *c, int64_t *cuts)
{
    struct comm *comm = c->comm;
    TRY(comm_agree(comm, make_cut_tables(c)));
    TRY(comm_agree(comm, read_fences(c)));
    TRY(comm_agree(comm, cut_fences(c)));
    TRY(comm_agree(comm, set_ranges(c)));
    int64_t *const found = c->received; // free: the ranges that came lie in `begin` and `end` by now
    TRY(comm_agree(comm, cut_windows(c, found)));
    return comm_agree(comm, gather_cuts(c, found, cuts));
}

hsort_status disk_cuts_find(struct comm *comm, const struct pass_sort *sort, const struct run_store *store,
                            const struct run_plan *plan, const hsort_options *options, size_t bytes,
                            int64_t *cuts)
{
    struct disk_cuts c = {
        .comm = comm,
        .options = options,
        .alone = {.size = 1, .node_size = 1, .threads = comm->threads},
        .sort = sort,
        .plan = plan,
        .borders = plan->parts - 1,
        .look = {.sort = sort, .store = store, .plan = plan, .bytes = bytes, .threads = comm->threads}};
    c.first = share_of(plan->parts, comm->rank, comm->size);
    c.runs = share_count(plan->parts, comm->rank, comm->size);
    c.first_border = share_of(c.borders, comm->rank, comm->size);
    c.own_borders = share_count(c.borders, comm->rank, comm->size);
    hsort_status status = find_cuts(&c, cuts);
    if (status == HSORT_INTERNAL) // not a fault of the library: what lies on a disk can be changed
        status = status_fail(HSORT_IO, "the runs are not as they were made: some are not in order");
    free_cuts(&c);
    return status;
}
