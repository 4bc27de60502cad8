/* The tests' store of runs and their streams, which watch how they are called. */
#include "tests/library/disk_store.h"

const char *const disk_op_names[DISK_OPS] = {
    "open",        "begin_run",  "write_run", "end_run",  "reopen",      "read_run",  "end_segment",
    "source move", "source end", "sink move", "sink end", "source stop", "sink stop", "cuts stop"};

static atomic_int calls_left[DISK_OPS];

int disk_store_failures(void)
{
    return check_failures;
}

/* ---- Failures --------------------------------------------------------------------------------------------------- */

void disk_fail(enum disk_op op, int nth)
{
    atomic_store(&calls_left[op], nth);
}

bool disk_fail_untouched(enum disk_op op)
{
    return atomic_exchange(&calls_left[op], 0) > 0;
}

static bool fails_now(enum disk_op op)
{
    return atomic_load(&calls_left[op]) > 0 && atomic_fetch_sub(&calls_left[op], 1) == 1;
}

int disk_should_stop(void *user)
{
    (void)user;
    return fails_now(DISK_CUTS_STOP);
}

static hsort_status fail_or_not(enum disk_op op)
{
    return fails_now(op) ? status_fail(HSORT_IO, "%s of the test fails", disk_op_names[op]) : HSORT_OK;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

static int64_t count_of(int64_t part)
{
    const struct run_plan *plan = &disk_shared->plan;
    const int64_t left = plan->elements - part * plan->part_elements;
    return left < plan->part_elements ? left : plan->part_elements;
}

static int64_t fences_of(int64_t part)
{
    const int64_t step = disk_shared->plan.fence_elements;
    return (count_of(part) + step - 1) / step;
}

static int64_t run_bytes_of(int64_t run)
{
    return (count_of(run) + fences_of(run)) * (int64_t)disk_shared->plan.element_bytes;
}

static size_t run_begin(int64_t run)
{
    return 2 * (size_t)run * (size_t)disk_shared->plan.part_elements * disk_shared->plan.element_bytes;
}

static size_t part_begin(int64_t part)
{
    return (size_t)part * (size_t)disk_shared->plan.part_elements * disk_shared->plan.element_bytes;
}

char *disk_run(const struct disk_case *c, int64_t run, int64_t *count, int64_t *fences)
{
    (void)c;
    *count = count_of(run);
    *fences = fences_of(run);
    return disk_shared->runs + run_begin(run);
}

struct run_facts *disk_facts(bool segment, int64_t part)
{
    return &disk_shared->facts[segment][part];
}

void disk_lose(int64_t run)
{
    disk_shared->facts[0][run] = (struct run_facts){0};
    disk_shared->state[0][run] = DISK_NOT_BEGUN;
}

struct disk_made disk_made_parts(void)
{
    struct disk_made made = {
        .runs = disk_shared->made[0], .segments = disk_shared->made[1], .parts = disk_shared->plan.parts};
    for (int64_t part = 0; part < disk_shared->plan.parts; part++) {
        made.kept_runs += disk_shared->state[0][part] == DISK_KEPT;
        made.kept_segments += disk_shared->state[1][part] == DISK_KEPT;
    }
    return made;
}

/* Check that each byte is written once: all bytes are written, and no more than there are. */
static void check_each_once(bool segment, int64_t part, const char *seen, int64_t bytes)
{
    const char *missing = memchr(seen, 0, (size_t)bytes);
    CHECK(!missing && disk_shared->bytes[segment][part] == bytes,
          "%s %lld: %lld bytes written of %lld, first missing %lld: %s", segment ? "segment" : "run",
          (long long)part, (long long)disk_shared->bytes[segment][part], (long long)bytes,
          missing ? (long long)(missing - seen) : -1LL, disk_text);
}

static void check_part_facts(bool segment, int64_t part, const struct run_facts *facts)
{
    const char *looked_at =
        segment ? disk_shared->expected : disk_shared->in; // the facts of a run are about what it is made of
    const bool in_order = disk_is_in_order(disk_call.c, looked_at + part_begin(part), count_of(part));
    CHECK(facts->is_made == 1 && facts->count == (uint64_t)count_of(part) &&
              facts->in_order == (uint64_t)in_order,
          "%s %lld: made %llu, %llu elements, in order %llu: %s", segment ? "segment" : "run",
          (long long)part, (unsigned long long)facts->is_made, (unsigned long long)facts->count,
          (unsigned long long)facts->in_order, disk_text);
}

static void keep_facts(bool segment, int64_t part, const struct run_facts *facts)
{
    CHECK(disk_shared->state[segment][part] != DISK_KEPT, "%s %lld was kept, and is made again: %s",
          segment ? "segment" : "run", (long long)part, disk_text);
    disk_shared->facts[segment][part] = *facts;
    disk_shared->state[segment][part] = DISK_KEPT;
    atomic_fetch_add(&disk_shared->made[segment], 1);
}

/* ---- The store -------------------------------------------------------------------------------------------------- */

static int64_t parts_up(int64_t count, int64_t part)
{
    return (count + part - 1) / part;
}

/* Check that this plan fits the sizes, the memory and the wishes of the case. */
static void check_plan(const struct run_plan *plan)
{
    const int64_t wanted =
        disk_call.c->parts > disk_call.group->size ? disk_call.c->parts : disk_call.group->size;
    CHECK(plan->elements == disk_call.c->total && plan->element_bytes == disk_call.c->bytes &&
              plan->part_elements >= 1 && plan->part_elements <= plan->most_elements &&
              plan->parts == parts_up(plan->elements, plan->part_elements) && plan->parts <= DISK_MOST_PARTS,
          "%lld elements in %lld parts of %lld, %lld at most: %s", (long long)plan->elements,
          (long long)plan->parts, (long long)plan->part_elements, (long long)plan->most_elements, disk_text);
    CHECK(disk_call.c->memory_bytes < DISK_PLENTY ||
              plan->part_elements == parts_up(disk_call.c->total, wanted),
          "parts of %lld: %s", (long long)plan->part_elements, disk_text);
    CHECK(4 * (size_t)plan->most_elements * disk_call.c->bytes <= disk_call.c->memory_bytes,
          "slots of %lld elements: %s", (long long)plan->most_elements, disk_text);
    const int64_t own = parts_up(plan->parts, disk_call.group->size),
                  fences = parts_up(plan->part_elements, plan->fence_elements);
    CHECK(plan->fence_elements >= 1 &&
              (plan->fence_elements >= plan->part_elements ||
               (size_t)(own * fences) * disk_call.c->bytes <= disk_call.c->memory_bytes / 16),
          "%lld runs of a rank have %lld fences each: %s", (long long)own, (long long)fences, disk_text);
}

/* Begin a call: a run that was not ended counts as not begun; what is kept stays. */
static void begin_call(const struct run_plan *plan)
{
    if (!disk_shared->is_begun)
        disk_shared->plan = *plan;
    disk_shared->is_begun = true;
    disk_shared->plan.most_elements = plan->most_elements;
    for (int64_t part = 0; part < disk_shared->plan.parts; part++) {
        if (disk_shared->state[0][part] == DISK_BEGUN)
            disk_shared->state[0][part] = DISK_NOT_BEGUN;
        disk_shared->bytes[0][part] = disk_shared->bytes[1][part] = 0;
    }
    memset(disk_shared->out_seen, 0, (size_t)disk_call.c->total * disk_call.c->bytes);
}

/* run_store.open. Collective over the group. */
static hsort_status open_store(void *user, struct run_plan *plan)
{
    (void)user;
    struct run_plan first = *plan;
    check_plan(plan);
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, disk_call.group->comm);
    CHECK(first.part_elements == plan->part_elements && first.parts == plan->parts &&
              first.fence_elements == plan->fence_elements && first.most_elements == plan->most_elements,
          "rank %d has another plan: %s", disk_call.group->rank, disk_text);
    if (disk_call.group->rank == 0)
        begin_call(plan);
    disk_call.has_reopened = false;
    MPI_Barrier(disk_call.group->comm);
    hsort_status status = fail_or_not(DISK_OPEN);
    if (status == HSORT_OK && disk_shared->plan.part_elements > plan->most_elements)
        status = status_fail(HSORT_HOST_MEMORY, "parts of %lld elements, but %lld at most",
                             (long long)disk_shared->plan.part_elements, (long long)plan->most_elements);
    status = comm_agree(&disk_call.comm, status);
    const size_t parts = (size_t)disk_shared->plan.parts;
    plan->part_elements = disk_shared->plan.part_elements;
    plan->fence_elements = disk_shared->plan.fence_elements;
    plan->parts = disk_shared->plan.parts;
    plan->runs = disk_call.given = disk_memory(2 * parts * sizeof *disk_call.given);
    plan->segments = plan->runs + parts;
    memcpy(plan->runs, disk_shared->facts[0], parts * sizeof *disk_call.given);
    memcpy(plan->segments, disk_shared->facts[1], parts * sizeof *disk_call.given);
    return status;
}

static bool is_part(int64_t part)
{
    const bool is = part >= 0 && part < disk_shared->plan.parts;
    CHECK(is, "part %lld of %lld: %s", (long long)part, (long long)disk_shared->plan.parts, disk_text);
    return is;
}

static hsort_status begin_run(void *user, int64_t run)
{
    (void)user;
    int none = DISK_NOT_BEGUN;
    if (!is_part(run))
        return status_fail(HSORT_INTERNAL, "no run %lld", (long long)run);
    CHECK(atomic_compare_exchange_strong(&disk_shared->state[0][run], &none, DISK_BEGUN),
          "rank %d begins run %lld, which is %s: %s", disk_call.group->rank, (long long)run,
          none == DISK_KEPT ? "kept" : "begun", disk_text);
    disk_shared->owner[run] = disk_world_rank();
    disk_shared->bytes[0][run] = 0;
    memset(disk_shared->runs_seen + run_begin(run), 0, (size_t)run_bytes_of(run));
    return fail_or_not(DISK_BEGIN_RUN);
}

static hsort_status write_run(void *user, int64_t run, int64_t at, size_t bytes, const void *from)
{
    (void)user;
    TRY(fail_or_not(DISK_WRITE_RUN));
    const bool fits = is_part(run) && at >= 0 && at + (int64_t)bytes <= run_bytes_of(run);
    CHECK(fits && disk_shared->state[0][run] == DISK_BEGUN && disk_shared->owner[run] == disk_world_rank(),
          "rank %d writes %zu bytes at %lld of run %lld: %s", disk_call.group->rank, bytes, (long long)at,
          (long long)run, disk_text);
    if (!fits)
        return status_fail(HSORT_INTERNAL, "run %lld has no such bytes", (long long)run);
    memcpy(disk_shared->runs + run_begin(run) + at, from, bytes);
    memset(disk_shared->runs_seen + run_begin(run) + at, 1, bytes);
    atomic_fetch_add(&disk_shared->bytes[0][run], (long long)bytes);
    return HSORT_OK;
}

/* Check that the run is that of the second opinion, and that fences are copies of its elements. */
static void check_run(int64_t run)
{
    const size_t bytes = disk_call.c->bytes;
    const int64_t count = count_of(run);
    const char *elements = disk_shared->runs + run_begin(run), *fences = elements + (size_t)count * bytes;
    char *expected = disk_memory((size_t)count * bytes);
    disk_sort_slowly(disk_call.c, disk_shared->in + part_begin(run), count, expected);
    CHECK(memcmp(elements, expected, (size_t)count * bytes) == 0, "run %lld is not in order: %s",
          (long long)run, disk_text);
    for (int64_t fence = 0; fence < fences_of(run); fence++)
        CHECK(memcmp(fences + (size_t)fence * bytes,
                     expected + (size_t)(fence * disk_shared->plan.fence_elements) * bytes, bytes) == 0,
              "fence %lld of run %lld is no copy: %s", (long long)fence, (long long)run, disk_text);
    free(expected);
}

static hsort_status end_run(void *user, int64_t run, const struct run_facts *facts)
{
    (void)user;
    TRY(fail_or_not(DISK_END_RUN));
    if (!is_part(run))
        return status_fail(HSORT_INTERNAL, "no run %lld", (long long)run);
    CHECK(disk_shared->state[0][run] == DISK_BEGUN && disk_shared->owner[run] == disk_world_rank(),
          "rank %d ends run %lld: %s", disk_call.group->rank, (long long)run, disk_text);
    check_each_once(false, run, disk_shared->runs_seen + run_begin(run), run_bytes_of(run));
    check_run(run);
    check_part_facts(false, run, facts);
    keep_facts(false, run, facts);
    return HSORT_OK;
}

static hsort_status reopen_store(void *user)
{
    (void)user;
    hsort_status status = fail_or_not(DISK_REOPEN);
    MPI_Barrier(disk_call.group->comm);
    if (disk_call.between && disk_call.group->rank == 0)
        disk_call.between(disk_call.c, disk_call.between_user);
    MPI_Barrier(disk_call.group->comm);
    for (int64_t run = 0; run < disk_shared->plan.parts && status == HSORT_OK; run++)
        if (disk_shared->state[0][run] != DISK_KEPT)
            status = status_fail(HSORT_IO, "run %lld is not there", (long long)run);
    disk_call.has_reopened = true;
    return comm_agree(&disk_call.comm, status);
}

static hsort_status read_run(void *user, int64_t run, int64_t at, size_t bytes, void *to)
{
    (void)user;
    TRY(fail_or_not(DISK_READ_RUN));
    const bool fits = is_part(run) && at >= 0 && at + (int64_t)bytes <= run_bytes_of(run);
    CHECK(fits && disk_call.has_reopened && disk_shared->state[0][run] == DISK_KEPT,
          "rank %d reads %zu bytes at %lld of run %lld: %s", disk_call.group->rank, bytes, (long long)at,
          (long long)run, disk_text);
    if (!fits)
        return status_fail(HSORT_IO, "run %lld has no such bytes", (long long)run);
    memcpy(to, disk_shared->runs + run_begin(run) + at, bytes);
    return HSORT_OK;
}

/* Somewhere in most transfers there is a border between chunks, as in a file whose elements begin anywhere. */
static size_t lead_from(uint64_t salt, int64_t at)
{
    uint64_t random = disk_call.c->seed + salt;
    const uint64_t most = (uint64_t)disk_call.c->total * disk_call.c->bytes,
                   border = check_random(&random) % (check_random(&random) % 2 ? most + 1 : 1 + most / 16);
    return (size_t)(((uint64_t)at + ENGINE_MOVE_BYTES - border) % ENGINE_MOVE_BYTES);
}

static size_t lead_of_run(void *user, int64_t at)
{
    (void)user;
    return lead_from(1, at);
}

static hsort_status end_segment(void *user, int64_t segment, const struct run_facts *facts)
{
    (void)user;
    TRY(fail_or_not(DISK_END_SEGMENT));
    if (!is_part(segment))
        return status_fail(HSORT_INTERNAL, "no segment %lld", (long long)segment);
    const int64_t bytes = count_of(segment) * (int64_t)disk_call.c->bytes;
    check_each_once(true, segment, disk_shared->out_seen + part_begin(segment), bytes);
    if (!disk_call.is_damaged)
        check_part_facts(true, segment, facts);
    keep_facts(true, segment, facts);
    return HSORT_OK;
}

struct run_store disk_store_make(const struct disk_case *c)
{
    return (struct run_store){.memory_bytes = c->memory_bytes,
                              .parts = c->parts,
                              .open = open_store,
                              .begin_run = begin_run,
                              .write_run = write_run,
                              .end_run = end_run,
                              .read_run = read_run,
                              .lead = lead_of_run,
                              .reopen = reopen_store,
                              .end_segment = end_segment};
}

/* ---- Streams ---------------------------------------------------------------------------------------------------- */

static void begin_stream(void *user)
{
    ((struct disk_stream *)user)->has_stopped = false;
    MPI_Barrier(disk_call.group->comm);
}

static bool next_of_stream(void *user, int64_t done, bool together)
{
    struct disk_stream *stream = user;
    CHECK(!together && done >= 0 && done <= disk_call.c->total, "together %d, %lld done: %s", together,
          (long long)done, disk_text);
    stream->has_stopped =
        stream->has_stopped || fails_now(stream->is_sink ? DISK_SINK_STOP : DISK_SOURCE_STOP);
    return !stream->has_stopped;
}

static hsort_status move_stream(void *user, int64_t at, size_t bytes, void *host)
{
    const struct disk_stream *stream = user;
    const int64_t from = stream->first + at, all = disk_call.c->total * (int64_t)disk_call.c->bytes;
    TRY(fail_or_not(stream->is_sink ? DISK_SINK_MOVE : DISK_SOURCE_MOVE));
    const bool fits = from >= 0 && from + (int64_t)bytes <= all;
    CHECK(fits, "rank %d moves %zu bytes at %lld of %lld: %s", disk_call.group->rank, bytes, (long long)from,
          (long long)all, disk_text);
    if (!fits)
        return status_fail(HSORT_INTERNAL, "no such bytes");
    if (!stream->is_sink) {
        memcpy(host, disk_shared->in + from, bytes);
        return HSORT_OK;
    }
    const int64_t part = from / (disk_shared->plan.part_elements * (int64_t)disk_call.c->bytes);
    memcpy(disk_shared->out + from, host, bytes);
    memset(disk_shared->out_seen + from, 1, bytes);
    atomic_fetch_add(&disk_shared->bytes[1][part], (long long)bytes);
    return HSORT_OK;
}

static size_t lead_of_stream(void *user, int64_t at)
{
    const struct disk_stream *stream = user;
    CHECK(stream->first + at >= 0, "a lead of %lld: %s", (long long)(stream->first + at), disk_text);
    return lead_from(stream->is_sink ? 2 : 3, stream->first + at);
}

static hsort_status end_stream(void *user, int64_t done, hsort_status mine)
{
    (void)done;
    const struct disk_stream *stream = user;
    int stopped = stream->has_stopped;
    MPI_Allreduce(MPI_IN_PLACE, &stopped, 1, MPI_INT, MPI_MAX, disk_call.group->comm);
    const hsort_status failed = fail_or_not(stream->is_sink ? DISK_SINK_END : DISK_SOURCE_END);
    if (mine != HSORT_OK || failed != HSORT_OK)
        return mine != HSORT_OK ? mine : failed;
    return stopped ? status_fail(HSORT_STOPPED, "asked to stop") : HSORT_OK;
}

struct key_stream disk_stream_make(struct disk_stream *user)
{
    return (struct key_stream){.user = user,
                               .begin = begin_stream,
                               .next = next_of_stream,
                               .move = move_stream,
                               .lead = lead_of_stream,
                               .end = end_stream};
}
