/* What the tests of run files share: a sort of made-up elements, whose runs and segments are written, read and counted. */
#ifndef RUNS_H
#define RUNS_H

#include "src/checkpoint/run_files.h"
#include "tests/checkpoint/checkpoints.h"

/* A call of the command: what it has open. */
struct call {
    struct comm *team;
    struct checkpoint checkpoint;
    struct file_out out;
    struct run_files *files;
    struct run_store *store;
    struct run_plan plan;
    bool kept;
};

/* How a call differs from the usual one. */
struct shape {
    int64_t elements, part_elements, fence_elements; /* elements of 8 bytes */
    const char *temporary[3];                        /* [temporary_count]; 0: the output's own directory */
    int temporary_count;
    int64_t temporary_limit;
    hsort_choice direct_io;
    bool loses_output; /* say that it was not kept */
};

static inline int64_t part_count(const struct run_plan *plan, int64_t part)
{
    const int64_t left = plan->elements - part * plan->part_elements;
    return left < plan->part_elements ? left : plan->part_elements;
}

/* Bytes of a run's file. */
static inline int64_t run_size(const struct run_plan *plan, int64_t run)
{
    const int64_t count = part_count(plan, run);
    return (count + (count + plan->fence_elements - 1) / plan->fence_elements) * (int64_t)plan->element_bytes;
}

/* Byte `at` of a run. */
static inline unsigned char run_byte(int64_t run, int64_t at)
{
    uint64_t state = (uint64_t)(run * 1000003 + at / 8);
    return (unsigned char)(check_random(&state) >> at % 8 * 8);
}

static inline void fill_run(int64_t run, int64_t at, size_t bytes, unsigned char *to)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = run_byte(run, at + (int64_t)i);
}

/* Facts that depend on all of the number, the part's size and what it is. */
static inline struct run_facts make_facts(const struct run_plan *plan, int64_t part, bool is_segment)
{
    uint64_t state = (uint64_t)(2 * part + is_segment);
    struct run_facts facts = {.is_made = 1, .count = (uint64_t)part_count(plan, part)};
    facts.fingerprint[0] = check_random(&state);
    facts.fingerprint[1] = check_random(&state);
    facts.in_order = check_random(&state) % 2;
    facts.fences = check_random(&state);
    facts.first = (key_code)check_random(&state) << 64 | check_random(&state);
    facts.last = part % 3 == 0 ? (key_code)part : ~(key_code)check_random(&state);
    return facts;
}

static inline bool same_facts(const struct run_facts *a, const struct run_facts *b)
{
    return memcmp(a, b, sizeof *a) == 0; // whole words
}

/* Open all but the store. Collective. */
static inline void begin_call(struct comm *team, const struct work *work, const struct shape *shape,
                              struct call *call)
{
    const struct file_target out = {.path = work->output,
                                    .format = FILE_RAW,
                                    .type = work->type,
                                    .count = shape->elements,
                                    .direct_io = shape->direct_io};
    *call = (struct call){.team = team};
    expect_team(team, HSORT_OK, open_work(team, work, &call->checkpoint), "opening the checkpoint");
    expect_team(team, HSORT_OK, file_resume(team, &out, call->checkpoint.part, &call->out, &call->kept),
                "output");
    static const char *const own[] = {NULL};
    const struct run_files_target target = {
        .temporary = shape->temporary_count > 0 ? shape->temporary : own,
        .temporary_count = shape->temporary_count > 0 ? shape->temporary_count : 1,
        .temporary_limit = shape->temporary_limit,
        .output = work->output,
        .direct_io = shape->direct_io,
        .checkpoint = &call->checkpoint,
        .out = &call->out,
        .kept = call->kept && !shape->loses_output,
    };
    expect_team(team, HSORT_OK, comm_agree(team, run_files_open(team, &target, &call->files)),
                "run_files_open");
    call->store = run_files_store(call->files);
    call->plan = (struct run_plan){.elements = shape->elements,
                                   .element_bytes = 8,
                                   .part_elements = shape->part_elements,
                                   .most_elements = shape->part_elements,
                                   .fence_elements = shape->fence_elements,
                                   .parts = -1};
}

static inline hsort_status open_store(struct call *call)
{
    return call->store->open(call->store->user, &call->plan);
}

/* Both of these. Collective. */
static inline void begin_and_open(struct comm *team, const struct work *work, const struct shape *shape,
                                  struct call *call)
{
    begin_call(team, work, shape, call);
    expect_team(team, HSORT_OK, open_store(call), "opening the store");
}

/* End it as a stop does; what is on disk stays. Collective. */
static inline void end_call(struct call *call)
{
    MPI_Barrier(call->team->world);
    run_files_close(call->files);
    file_leave(call->team, &call->out);
    checkpoint_close(&call->checkpoint);
    MPI_Barrier(call->team->world);
}

/* End it as a sort does that is done: nothing stays but DIR. Collective. */
static inline void finish_call(struct call *call)
{
    MPI_Barrier(call->team->world);
    run_files_remove(call->team, call->files);
    run_files_close(call->files);
    checkpoint_remove(call->team, &call->checkpoint);
    checkpoint_close(&call->checkpoint);
    expect_team(call->team, HSORT_OK, file_commit(call->team, &call->out, HSORT_OK), "committing");
}

/* Write the bytes of a run in pieces of odd sizes, out of order, up to an error. */
static inline hsort_status write_pieces(struct call *call, int64_t run, uint64_t *random)
{
    const int64_t bytes = run_size(&call->plan, run);
    unsigned char *all = malloc((size_t)bytes + 1);
    fill_run(run, 0, (size_t)bytes, all);
    const int64_t middle = (int64_t)(check_random(random) % (uint64_t)(bytes + 1));
    const int64_t borders[2][2] = {{middle, bytes}, {0, middle}};
    hsort_status status = HSORT_OK;
    for (int half = 0; half < 2 && status == HSORT_OK; half++)
        status =
            call->store->write_run(call->store->user, run, borders[half][0],
                                   (size_t)(borders[half][1] - borders[half][0]), all + borders[half][0]);
    free(all);
    return status;
}

static inline hsort_status make_run(struct call *call, int64_t run, uint64_t *random)
{
    const struct run_facts facts = make_facts(&call->plan, run, false);
    hsort_status status = call->store->begin_run(call->store->user, run);
    if (status == HSORT_OK)
        status = write_pieces(call, run, random);
    return status == HSORT_OK ? call->store->end_run(call->store->user, run, &facts) : status;
}

static inline hsort_status make_segment(struct call *call, int64_t segment)
{
    const struct run_facts facts = make_facts(&call->plan, segment, true);
    return call->store->end_segment(call->store->user, segment, &facts);
}

/* Read a piece of a run: is it as it was written? */
static inline bool read_piece(struct call *call, int64_t run, int64_t at, size_t bytes)
{
    unsigned char *found = malloc(bytes + 1), *wanted = malloc(bytes + 1);
    fill_run(run, at, bytes, wanted);
    const hsort_status status = call->store->read_run(call->store->user, run, at, bytes, found);
    CHECK(status == HSORT_OK, "run %lld: %s", (long long)run, status_text());
    const bool same = status == HSORT_OK && memcmp(found, wanted, bytes) == 0;
    free(found);
    free(wanted);
    return same;
}

/* Which rank makes a part: drawn, the same on all ranks. */
static inline int drawn_rank(const struct comm *team, uint64_t part, uint64_t salt)
{
    uint64_t state = seed + part * 7919 + salt;
    return (int)(check_random(&state) % (uint64_t)team->size);
}

static inline hsort_status make_runs(struct call *call, int64_t from, int64_t to)
{
    uint64_t random = seed + (uint64_t)call->team->rank;
    hsort_status status = HSORT_OK;
    for (int64_t run = from; run < to && status == HSORT_OK; run++)
        if (drawn_rank(call->team, (uint64_t)run, 1) == call->team->rank)
            status = make_run(call, run, &random);
    return comm_agree(call->team, status);
}

static inline hsort_status make_segments(struct call *call, int64_t from, int64_t to)
{
    hsort_status status = HSORT_OK;
    for (int64_t segment = from; segment < to && status == HSORT_OK; segment++)
        if (drawn_rank(call->team, (uint64_t)segment, 2) == call->team->rank)
            status = make_segment(call, segment);
    return comm_agree(call->team, status);
}

/* The first parts, as a set of numbers: bit i stands for part i. */
#define FIRST(count) ((UINT64_C(1) << (count)) - 1)

/* These runs and segments are made, and no others. */
static inline void check_found(const struct call *call, uint64_t runs, uint64_t segments, const char *what)
{
    const struct run_plan *plan = &call->plan;
    const struct run_facts none = {.is_made = 0};
    int64_t bytes = 0;
    for (int64_t i = 0; i < plan->parts; i++) {
        const struct run_facts run = make_facts(plan, i, false), segment = make_facts(plan, i, true);
        CHECK(same_facts(&plan->runs[i], runs >> i & 1 ? &run : &none), "%s: run %lld is%s made", what,
              (long long)i, plan->runs[i].is_made ? "" : " not");
        CHECK(same_facts(&plan->segments[i], segments >> i & 1 ? &segment : &none),
              "%s: segment %lld is%s made", what, (long long)i, plan->segments[i].is_made ? "" : " not");
        bytes += runs >> i & 1 ? run_size(plan, i) : 0;
    }
    CHECK(run_files_bytes(call->files) == bytes, "%s: %lld bytes, not %lld", what,
          (long long)run_files_bytes(call->files), (long long)bytes);
}

static inline void read_everywhere(struct call *call)
{
    uint64_t random = seed + 99 + (uint64_t)call->team->rank;
    expect_team(call->team, HSORT_OK, call->store->reopen(call->store->user), "reopen");
    for (int64_t run = 0; run < call->plan.parts; run++)
        for (int i = 0; i < 4; i++) {
            const int64_t bytes = run_size(&call->plan, run),
                          at = (int64_t)(check_random(&random) % (uint64_t)bytes);
            const size_t many =
                i == 0 ? (size_t)(bytes - at) : (size_t)(check_random(&random) % (uint64_t)(bytes - at + 1));
            CHECK(read_piece(call, run, at, many), "run %lld at %lld", (long long)run, (long long)at);
        }
}

/* Nothing is left but the input, the output, and DIR, which is empty. The output goes. Collective. */
static inline void expect_end(const struct work *work)
{
    MPI_Barrier(comm.world);
    CHECK(count_names(directory) == 3 && count_names(work->directory) == 0, "%d and %d names stay",
          count_names(directory), count_names(work->directory));
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || unlink(work->output) == 0, "unlink");
}

/* A name in RUNS of out.bin, or with "" RUNS: in that directory of this test; NULL: beside out.bin. In one of 16 buffers that take turns. */
static inline const char *in_runs(const char *temporary, const char *name)
{
    static char path[16][PATH_MAX];
    static int next;
    char *found = path[next++ % 16], where[PATH_MAX] = "";
    if (temporary)
        snprintf(where, sizeof where, "%s", in_dir(temporary));
    CHECK(run_files_name(temporary ? where : NULL, in_dir("out.bin"), found) == HSORT_OK, "%s",
          status_text());
    snprintf(found + strlen(found), PATH_MAX - strlen(found), "%s%s", name[0] ? "/" : "", name);
    return found;
}

/* What stands in error lines of RUNS, from its directory's last name on. */
static inline const char *runs_text(const char *temporary, const char *text)
{
    static char line[PATH_MAX + 128];
    snprintf(line, sizeof line, "%s%s", in_runs(temporary, ""), text);
    return line + strlen(directory) + 1;
}

static inline struct shape usual_shape(void)
{
    return (struct shape){.elements = 10007, .part_elements = 1500, .fence_elements = 64};
}

#endif
