/* Runs of a sort as files: what ranks write is what all read, and what a call has made the next one finds, on other ranks. */
#include "tests/checkpoint/runs.h"

/* Which rank makes a part: drawn, the same on all ranks. */
static int drawn_rank(const struct comm *team, uint64_t part, uint64_t salt)
{
    uint64_t state = seed + part * 7919 + salt;
    return (int)(check_random(&state) % (uint64_t)team->size);
}

static hsort_status make_runs(struct call *call, int64_t from, int64_t to)
{
    uint64_t random = seed + (uint64_t)call->team->rank;
    hsort_status status = HSORT_OK;
    for (int64_t run = from; run < to && status == HSORT_OK; run++)
        if (drawn_rank(call->team, (uint64_t)run, 1) == call->team->rank)
            status = make_run(call, run, &random);
    return comm_agree(call->team, status);
}

static hsort_status make_segments(struct call *call, int64_t from, int64_t to)
{
    hsort_status status = HSORT_OK;
    for (int64_t segment = from; segment < to && status == HSORT_OK; segment++)
        if (drawn_rank(call->team, (uint64_t)segment, 2) == call->team->rank)
            status = make_segment(call, segment);
    return comm_agree(call->team, status);
}

/* Runs [0, runs) and segments [0, segments) are made, and no others. */
static void check_found(const struct call *call, int64_t runs, int64_t segments, const char *what)
{
    const struct run_plan *plan = &call->plan;
    const struct run_facts none = {.is_made = 0};
    int64_t bytes = 0;
    for (int64_t i = 0; i < plan->parts; i++) {
        const struct run_facts run = make_facts(plan, i, false), segment = make_facts(plan, i, true);
        CHECK(same_facts(&plan->runs[i], i < runs ? &run : &none), "%s: run %lld", what, (long long)i);
        CHECK(same_facts(&plan->segments[i], i < segments ? &segment : &none), "%s: segment %lld", what,
              (long long)i);
        bytes += i < runs ? run_size(plan, i) : 0;
    }
    CHECK(run_files_bytes(call->files) == bytes, "%s: %lld bytes, not %lld", what,
          (long long)run_files_bytes(call->files), (long long)bytes);
}

static void read_everywhere(struct call *call)
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
static void expect_end(const struct work *work)
{
    MPI_Barrier(comm.world);
    CHECK(count_names(directory) == 3 && count_names(work->directory) == 0, "%d and %d names stay",
          count_names(directory), count_names(work->directory));
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || unlink(work->output) == 0, "unlink");
}

static struct shape usual_shape(void)
{
    return (struct shape){.elements = 10007, .part_elements = 1500, .fence_elements = 64};
}

/* One call makes all. */
static void test_whole(hsort_choice direct)
{
    const struct work work = make_work(HSORT_U64);
    struct shape shape = usual_shape();
    struct call call;
    shape.direct_io = direct;
    put_input(&work, shape.elements);
    begin_call(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_OK, open_store(&call), "open");
    CHECK(call.plan.parts == 7, "%lld parts", (long long)call.plan.parts);
    check_found(&call, 0, 0, "at first");
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 7), "runs");
    read_everywhere(&call);
    CHECK(run_files_bytes(call.files) == (10007 + 6 * 24 + 16) * 8, "%lld bytes",
          (long long)run_files_bytes(call.files));
    expect_team(&comm, HSORT_OK, make_segments(&call, 0, 7), "segments");
    CHECK(!run_files_disk_is_full(call.files), "full");
    finish_call(&call);
    expect_end(&work);
}

/* Several calls, each on other ranks, each goes on where the one before has ended. */
static void test_resume(void)
{
    const struct work work = make_work(HSORT_U64);
    const struct shape shape = usual_shape();
    struct call call;
    struct comm team;
    MPI_Comm few;
    put_input(&work, shape.elements);
    for (int step = 0; step < 4; step++) {
        const int ranks = step % 2 == 0 ? comm.size : (comm.size + 1) / 2;
        MPI_Barrier(comm.world);
        MPI_Comm_split(comm.world, comm.rank < ranks ? 0 : MPI_UNDEFINED, comm.rank, &few);
        if (few == MPI_COMM_NULL)
            continue;
        CHECK(comm_open(few, &team) == HSORT_OK, "comm_open");
        begin_call(&team, &work, &shape, &call);
        call.plan.part_elements += step; // more memory changes nothing
        expect_team(&team, HSORT_OK, open_store(&call), "open");
        CHECK(call.plan.part_elements == 1500 && call.plan.parts == 7, "the parts are others");
        check_found(&call, 2 * step, step, "later");
        expect_team(&team, HSORT_OK, make_runs(&call, 2 * step, step == 3 ? 7 : 2 * step + 2), "runs");
        expect_team(&team, HSORT_OK, make_segments(&call, step, step + 1), "segments");
        if (step == 3) {
            read_everywhere(&call);
            finish_call(&call);
        } else {
            end_call(&call);
        }
        comm_close(&team);
        MPI_Comm_free(&few);
    }
    expect_end(&work);
}

static void test_all(void)
{
    draw_seed();
    test_whole(HSORT_CHOICE_AUTO);
    test_whole(HSORT_CHOICE_OFF);
    test_resume();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
