/* Of each run there are fences, copies of every so manieth element (run_store.h). They are cut first, and say in which few
 * blocks of each run a cut must lie; only these are read.
 *
 *     fence_elements 4           0     4     8     12                       cut at position 10 of all
 *     run 0      0 1 2 3 | 4 5 6 7 | 8 9 9 9 |       fences  0 4 8
 *     run 1      2 2 5 5 | 6 6 7 7 | 8                       2 6 8          all fences, in order: 0 2 4 6 8 8
 *     lower      fence 10 / 4 = 2 of all is 4: fewer than 10 elements lie before it           run 0 from 0, run 1 from 0
 *     upper      fence 10 / 4 + 1 + 2 runs = 5 of all is the last 8: at least 10 lie before   run 0 to 12, run 1 to 8
 *
 * Why: before fence i of all there lie, of each run, at most the elements up to its next fence, so not more than 4 i in all;
 * and at least those up to its last fence before, so not fewer than 4 (i - runs). The order is that of (key, run, position), so
 * this holds for equal keys too, and a cut never has more than some blocks of each run.
 *
 * Each rank searches a contiguous share of the runs: then the order by (key, rank, run) of run_cuts.h is the order by run,
 * whichever ranks made them. */
#include "src/library/disk_cuts.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/first_error.h"
#include "mpi/exchange/run_cuts.h"
#include "src/library/pass_plan.h"

/* A part of a run in memory. */
struct window {
    int64_t begin;
    const char *elements; /* from there on */
};

struct disk_cuts {
    struct comm *comm;
    const struct pass_sort *sort;
    const struct run_store *store;
    const struct run_plan *plan;
    int64_t first, runs; /* this rank's share of the runs */
    int64_t borders;     /* between segments: one less than these */

    char *fences;          /* of all own runs; owned */
    const char **fence;    /* [runs] where each one's begin */
    int64_t *fence_count;  /* [runs] */
    int64_t *count;        /* [runs] elements */
    int64_t *position;     /* [2 * borders] in fences: lower ones, then upper ones */
    int64_t *fence_cut;    /* [2 * borders * runs] */
    int64_t *begin, *end;  /* [borders * runs] */
    int64_t *own;          /* [borders * runs] the cuts */
    struct window *window; /* [batch * runs] */
    char *elements;        /* of all windows of a batch; owned */
    size_t element_room;   /* bytes of them */
    int64_t batch, some;   /* borders that are searched for at a time at most, and now */
    int *lengths, *places; /* [size] of what ranks send each other */
    int64_t *gathered;     /* [borders * plan->parts] */
    struct run_cuts *tables;
};

int64_t plan_part_count(const struct run_plan *plan, int64_t part)
{
    const int64_t begin = part * plan->part_elements, left = plan->elements - begin;
    return left < plan->part_elements ? left : plan->part_elements;
}

int64_t plan_fences(const struct run_plan *plan, int64_t run)
{
    return pass_parts(plan_part_count(plan, run), plan->fence_elements);
}

/* The first run of a rank's share. */
static int64_t share_of_runs(const struct run_plan *plan, int rank, int size)
{
    return plan->parts / size * rank + (rank < plan->parts % size ? rank : plan->parts % size);
}

/* ---- tables -------------------------------------------------------------------------------------------- */

static void free_cuts(struct disk_cuts *c)
{
    free(c->fences);
    free(c->fence);
    free(c->fence_count);
    free(c->count);
    free(c->position);
    free(c->fence_cut);
    free(c->begin);
    free(c->end);
    free(c->own);
    free(c->window);
    free(c->elements);
    free(c->lengths);
    free(c->places);
    free(c->gathered);
    run_cuts_close(c->tables);
}

/* How many borders at a time: of one, all ranges together have the elements of two blocks for each run at most, and one. */
static int64_t borders_at_once(const struct disk_cuts *c, size_t bytes)
{
    const struct run_plan *plan = c->plan;
    const size_t one = (size_t)(2 * plan->parts + 3) * (size_t)plan->fence_elements * plan->element_bytes;
    const int64_t fit = (int64_t)(bytes / one);
    return fit < 1 ? 1 : fit < RUN_CUTS_AT_ONCE ? fit : RUN_CUTS_AT_ONCE;
}

static hsort_status make_cut_tables(struct disk_cuts *c)
{
    const struct run_plan *plan = c->plan;
    const size_t runs = (size_t)c->runs + 1, borders = (size_t)c->borders + 1, size = (size_t)c->comm->size;
    size_t fences = 0;
    for (int64_t run = 0; run < c->runs; run++)
        fences += (size_t)plan_fences(plan, c->first + run);
    c->fences = malloc(fences * plan->element_bytes + 1);
    c->fence = calloc(runs, sizeof *c->fence);
    c->fence_count = calloc(runs, sizeof *c->fence_count);
    c->count = calloc(runs, sizeof *c->count);
    c->position = calloc(2 * borders, sizeof *c->position);
    c->fence_cut = calloc(2 * borders * runs, sizeof *c->fence_cut);
    c->begin = calloc(borders * runs, sizeof *c->begin);
    c->end = calloc(borders * runs, sizeof *c->end);
    c->own = calloc(borders * runs, sizeof *c->own);
    c->window = calloc((size_t)c->batch * runs, sizeof *c->window);
    c->lengths = calloc(size, sizeof *c->lengths);
    c->places = calloc(size, sizeof *c->places);
    c->gathered = calloc(borders * (size_t)plan->parts, sizeof *c->gathered);
    if (!c->fences || !c->fence || !c->fence_count || !c->count || !c->position || !c->fence_cut ||
        !c->begin || !c->end || !c->own || !c->window || !c->lengths || !c->places || !c->gathered ||
        fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory to cut %lld runs of %lld", (long long)c->runs,
                           (long long)plan->parts);
    return run_cuts_open(c->comm, c->runs, &c->tables);
}

/* ---- fences -------------------------------------------------------------------------------------------- */

/* Several threads read; the first failure is kept with its text. */
struct reading {
    pthread_mutex_t lock;
    hsort_status status;
    char text[STATUS_TEXT_BYTES];
};

static void note_reading(struct reading *reading, hsort_status status)
{
    if (status == HSORT_OK)
        return;
    pthread_mutex_lock(&reading->lock); // no critical section, whose name the library would export
    if (reading->status == HSORT_OK) {
        reading->status = status;
        memcpy(reading->text, status_text(), sizeof reading->text);
    }
    pthread_mutex_unlock(&reading->lock);
    status_clear(); // the thread may live on, and fail for another cause
}

static hsort_status reading_status(struct reading *reading)
{
    pthread_mutex_destroy(&reading->lock);
    return reading->status == HSORT_OK ? HSORT_OK : status_fail(reading->status, "%s", reading->text);
}

static hsort_status read_run_elements(const struct disk_cuts *c, int64_t run, int64_t first, int64_t count,
                                      char *to)
{
    const size_t width = c->plan->element_bytes;
    return count == 0 ? HSORT_OK
                      : c->store->read_run(c->store->user, c->first + run, first * (int64_t)width,
                                           (size_t)count * width, to);
}

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

/* Where equal elements lie, fences decide which of them is first, and no check of the result would see them damaged. */
static hsort_status read_fences_of(const struct disk_cuts *c, int64_t run)
{
    const size_t bytes = (size_t)c->fence_count[run] * c->plan->element_bytes;
    TRY(read_run_elements(c, run, c->count[run], c->fence_count[run], (char *)c->fence[run]));
    if (fences_checksum(c->fence[run], bytes) == c->plan->runs[c->first + run].fences)
        return HSORT_OK;
    return status_fail(HSORT_IO, "the runs are not as they were made: the fences of run %lld are others",
                       (long long)(c->first + run));
}

static hsort_status read_fences(struct disk_cuts *c)
{
    const struct run_plan *plan = c->plan;
    struct reading reading = {.lock = PTHREAD_MUTEX_INITIALIZER, .status = HSORT_OK};
    char *at = c->fences;
    for (int64_t run = 0; run < c->runs; run++) {
        c->count[run] = plan_part_count(plan, c->first + run);
        c->fence_count[run] = plan_fences(plan, c->first + run);
        c->fence[run] = at;
        at += (size_t)c->fence_count[run] * plan->element_bytes;
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t run = 0; run < c->runs; run++)
        note_reading(&reading, read_fences_of(c, run));
    return reading_status(&reading);
}

static key_code code_of_fence(const void *cuts, int64_t cut, int64_t run, int64_t fence)
{
    (void)cut;
    const struct disk_cuts *c = cuts;
    return pass_code_at(c->sort, c->fence[run], fence);
}

/* Which fences lie before the ranges of each border, and before their ends. Collective. */
static hsort_status cut_fences(struct disk_cuts *c)
{
    const struct run_plan *plan = c->plan;
    const struct run_set set = {
        .runs = c->runs, .count = c->fence_count, .code_at = code_of_fence, .state = c};
    int64_t all = 0;
    for (int64_t run = 0; run < plan->parts; run++)
        all += plan_fences(plan, run);
    for (int64_t border = 0; border < c->borders; border++) {
        const int64_t at = (border + 1) * plan->part_elements;
        const int64_t upper = pass_parts(at, plan->fence_elements) + plan->parts;
        c->position[border] = at / plan->fence_elements < all ? at / plan->fence_elements : all;
        c->position[c->borders + border] = upper < all ? upper : all;
    }
    return run_cuts_find(c->tables, &set, all, c->position, 2 * c->borders, c->fence_cut);
}

/* The ranges of all borders, in elements. */
static void set_ranges(struct disk_cuts *c)
{
    const int64_t step = c->plan->fence_elements, upper = c->borders * c->runs;
    for (int64_t i = 0; i < upper; i++) {
        const int64_t run = i % c->runs, before = c->fence_cut[i], up_to = c->fence_cut[upper + i];
        c->begin[i] = before > 0 ? (before - 1) * step : 0;
        c->end[i] = up_to < c->fence_count[run] ? up_to * step : c->count[run];
        if (c->end[i] < c->begin[i]) // of damaged fences: check_cuts() says so
            c->end[i] = c->begin[i];
    }
}

/* ---- ranges -------------------------------------------------------------------------------------------- */

/* Read the ranges of this rank's runs for borders first .. first + some - 1. */
static hsort_status read_windows(struct disk_cuts *c, int64_t first)
{
    const int64_t *begin = c->begin + first * c->runs, *end = c->end + first * c->runs;
    const int64_t windows = c->some * c->runs;
    struct reading reading = {.lock = PTHREAD_MUTEX_INITIALIZER, .status = HSORT_OK};
    size_t bytes = 0, at = 0;
    for (int64_t i = 0; i < windows; i++)
        bytes += (size_t)(end[i] - begin[i]) * c->plan->element_bytes;
    if (bytes > c->element_room) {
        free(c->elements);
        c->elements = fault_hit(FAULT_ALLOC) ? NULL : malloc(bytes);
        c->element_room = c->elements ? bytes : 0;
    }
    if (bytes > c->element_room)
        return status_fail(HSORT_HOST_MEMORY, "no memory for %zu bytes of runs", bytes);
    for (int64_t i = 0; i < windows; i++) {
        c->window[i] = (struct window){begin[i], c->elements + at};
        at += (size_t)(end[i] - begin[i]) * c->plan->element_bytes;
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < windows; i++)
        note_reading(&reading, read_run_elements(c, i % c->runs, begin[i], end[i] - begin[i],
                                                 (char *)c->window[i].elements));
    return reading_status(&reading);
}

static key_code code_in_window(const void *cuts, int64_t cut, int64_t run, int64_t position)
{
    const struct disk_cuts *c = cuts;
    const struct window *window = &c->window[cut * c->runs + run];
    return pass_code_at(c->sort, window->elements, position - window->begin);
}

/* All borders, some at a time. Collective: a rank that cannot read keeps to the schedule, with empty ranges. */
static hsort_status cut_windows(struct disk_cuts *c)
{
    const struct run_set set = {.runs = c->runs, .count = c->count, .code_at = code_in_window, .state = c};
    hsort_status status = HSORT_OK;
    for (int64_t first = 0; first < c->borders; first += c->batch) {
        int64_t position[RUN_CUTS_AT_ONCE], *begin = c->begin + first * c->runs,
                                            *end = c->end + first * c->runs;
        c->some = c->borders - first < c->batch ? c->borders - first : c->batch;
        if (status == HSORT_OK)
            status = read_windows(c, first);
        if (status != HSORT_OK)
            memcpy(end, begin, (size_t)(c->some * c->runs) * sizeof *end);
        for (int64_t i = 0; i < c->some; i++)
            position[i] = (first + i + 1) * c->plan->part_elements;
        keep_first_error(&status, run_cuts_find_within(c->tables, &set, position, (int)c->some, begin, end,
                                                       c->own + first * c->runs));
    }
    return status;
}

/* ---- what all ranks have found ------------------------------------------------------------------------- */

/* Do the cuts say that each segment has as many elements as it should? Not where a run is not in order, or was not read. */
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
static hsort_status gather_cuts(struct disk_cuts *c, int64_t *cuts)
{
    const struct run_plan *plan = c->plan;
    const int size = c->comm->size;
    for (int rank = 0, at = 0; rank < size; rank++) {
        const int64_t runs = share_of_runs(plan, rank + 1, size) - share_of_runs(plan, rank, size);
        c->lengths[rank] = (int)(runs * c->borders);
        c->places[rank] = at;
        at += c->lengths[rank];
    }
    TRY(comm_check(MPI_Allgatherv(c->own, c->lengths[c->comm->rank], MPI_INT64_T, c->gathered, c->lengths,
                                  c->places, MPI_INT64_T, c->comm->world),
                   "MPI_Allgatherv", true));
    memset(cuts, 0, (size_t)plan->parts * sizeof *cuts);
    for (int rank = 0; rank < size; rank++) {
        const int64_t first = share_of_runs(plan, rank, size),
                      runs = share_of_runs(plan, rank + 1, size) - first;
        for (int64_t i = 0; i < runs * c->borders; i++)
            cuts[(i / runs + 1) * plan->parts + first + i % runs] = c->gathered[c->places[rank] + i];
    }
    for (int64_t run = 0; run < plan->parts; run++)
        cuts[plan->parts * plan->parts + run] = plan_part_count(plan, run);
    return check_cuts(plan, cuts);
}

static hsort_status find_cuts(struct disk_cuts *c, int64_t *cuts)
{
    struct comm *comm = c->comm;
    TRY(comm_agree(comm, make_cut_tables(c)));
    TRY(comm_agree(comm, read_fences(c)));
    TRY(comm_agree(comm, cut_fences(c)));
    set_ranges(c);
    TRY(comm_agree(comm, cut_windows(c)));
    return comm_agree(comm, gather_cuts(c, cuts));
}

hsort_status disk_cuts_find(struct comm *comm, const struct pass_sort *sort, const struct run_store *store,
                            const struct run_plan *plan, size_t bytes, int64_t *cuts)
{
    struct disk_cuts c = {.comm = comm,
                          .sort = sort,
                          .store = store,
                          .plan = plan,
                          .first = share_of_runs(plan, comm->rank, comm->size),
                          .borders = plan->parts - 1};
    c.runs = share_of_runs(plan, comm->rank + 1, comm->size) - c.first;
    c.batch = borders_at_once(&c, bytes);
    hsort_status status = find_cuts(&c, cuts);
    if (status == HSORT_INTERNAL) // no fault of ours: what lies on a disk can be changed
        status = status_fail(HSORT_IO, "the runs are not as they were made: some are not in order");
    free_cuts(&c);
    return status;
}
