/* hypersort bench: how long hsort_sort_to() takes, or hsort_sort() in place, on generated keys.
 *
 * For each kind of memory, type and size there is one set of buffers, in which every input is made once. Then
 * hypersort and, on one rank with a GPU, the sorts of other libraries take turns, so that whatever changes with
 * time changes for all of them:
 *
 *     in --hsort_sort_to()--> out      in --copy--> keys --CUB--> keys or scratch      in --copy--> keys --...
 *        |---- timed -----|                              |timed|
 *        checked                                         compared with out
 *
 * With --overwrite-input nothing of `in` is needed after a sort: it is made anew before the next one.
 *
 * Time is the wall-clock time of whole calls, including the wait for the result, from a barrier of all ranks to the
 * return on the slowest rank. Memory is allocated before. Every result is checked: its order, the fingerprint of
 * its keys, and, key by key, against the other libraries' results. */
#include "kernels/engine.h"
#include "mpi/comm/node_memory.h"
#include "src/command/bench.h"
#include "src/command/launch.h"
#include "src/command/report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What the sorts of one kind of memory, type and size work on, in this rank. */
struct bench_buffers {
    void *in, *out;                                      /* in host memory or in engine memory */
    void *keys, *scratch, *workspace[ENGINE_YARDSTICKS]; /* engine memory for yardsticks, or NULL */
    size_t workspace_bytes[ENGINE_YARDSTICKS];
};

/* The whole benchmark on this rank. */
struct bench {
    struct comm *comm;
    const struct bench_plan *plan;
    hsort_context *ctx;
    struct engine *engine; /* for device and pinned memory; NULL: the host engine */
    bool alone;
    bool overwrites; /* sorts from one array to another may leave anything in the first one */
    enum bench_memory memory;
    struct input input;   /* with the type and count of the buffers */
    int64_t first, count; /* this rank's keys */
    size_t bytes;
    struct bench_buffers buffers;
    hsort_check_result before;              /* of the input */
    double *seconds[1 + ENGINE_YARDSTICKS]; /* [repeats] of hypersort and each yardstick */
    struct bench_row *rows;                 /* [the most mixtures there are] */
    struct bench_report report;
    int wrong;
};

static bool is_out_of_memory(hsort_status status)
{
    return status == HSORT_DEVICE_MEMORY || status == HSORT_HOST_MEMORY;
}

static bool is_on_device(const struct bench *b)
{
    return b->memory == BENCH_DEVICE || b->memory == BENCH_INPLACE;
}

/* Keep the error line of a call of the library. Its status is the same on all ranks. */
static hsort_status bench_status(struct bench *b, hsort_status status)
{
    return status == HSORT_OK ? HSORT_OK : report_fail(b->comm, status, "%s", hsort_last_error(b->ctx));
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

static hsort_status take_memory_for_keys(struct bench *b, void **memory)
{
    if (b->memory != BENCH_MALLOC)
        return is_on_device(b) ? b->engine->ops->alloc(b->engine, b->bytes, memory)
                               : b->engine->ops->alloc_host(b->engine, b->bytes, memory);
    *memory = fault_hit(FAULT_ALLOC) ? NULL : malloc(b->bytes + 1);
    if (!*memory)
        return status_fail(HSORT_HOST_MEMORY, "cannot allocate %zu bytes", b->bytes);
    memset(*memory, 0, b->bytes);
    return HSORT_OK;
}

static void give_memory_back(struct bench *b, void *memory)
{
    if (b->memory == BENCH_MALLOC)
        free(memory);
    else if (is_on_device(b))
        b->engine->ops->free(b->engine, memory);
    else
        b->engine->ops->free_host(b->engine, memory);
}

/* Are keys of this kind measured beside other libraries? */
static bool may_have_yardsticks(const struct bench *b)
{
    return is_on_device(b) && !b->alone && b->comm->size == 1 && b->engine->ops->yardstick;
}

/* Does the input have an array beside the one that is sorted? In place only if other libraries sort it, too; otherwise the input is made
 * anew for each sort, so that the keys may fill the memory. */
static bool keeps_input(const struct bench *b)
{
    return b->memory != BENCH_INPLACE || may_have_yardsticks(b);
}

/* Allocate `in`, if it is kept, and `out`. Collective over the node; the caller agrees on the status. */
static hsort_status take_bench_buffers(struct bench *b)
{
    if (!is_on_device(b))
        TRY(node_memory_check(b->comm, 2 * (uint64_t)b->bytes));
    if (keeps_input(b))
        TRY(take_memory_for_keys(b, &b->buffers.in));
    return take_memory_for_keys(b, &b->buffers.out);
}

static hsort_status take_yardstick(struct bench *b, enum engine_yardstick which)
{
    const struct engine_ops *ops = b->engine->ops;
    size_t *bytes = &b->buffers.workspace_bytes[which];
    TRY(ops->yardstick->workspace(b->engine, which, b->input.type, b->count, bytes));
    return ops->alloc(b->engine, *bytes, &b->buffers.workspace[which]);
}

static bool has_any_yardstick(const struct bench *b)
{
    bool has = false;
    for (int which = 0; which < ENGINE_YARDSTICKS; which++)
        has = has || b->engine->ops->yardstick->has((enum engine_yardstick)which, b->input.type);
    return has;
}

/* Allocate what yardsticks need, if they are measured. */
static hsort_status take_yardsticks(struct bench *b)
{
    if (!may_have_yardsticks(b))
        return HSORT_OK;
    TRY(b->engine->ops->alloc(b->engine, b->bytes, &b->buffers.keys));
    TRY(b->engine->ops->alloc(b->engine, b->bytes, &b->buffers.scratch));
    for (int which = 0; which < ENGINE_YARDSTICKS; which++)
        if (b->engine->ops->yardstick->has((enum engine_yardstick)which, b->input.type))
            TRY(take_yardstick(b, (enum engine_yardstick)which));
    return HSORT_OK;
}

static void give_yardsticks_back(struct bench *b)
{
    struct bench_buffers *buffers = &b->buffers;
    if (!b->engine)
        return;
    b->engine->ops->free(b->engine, buffers->keys);
    b->engine->ops->free(b->engine, buffers->scratch);
    buffers->keys = buffers->scratch = NULL;
    for (int which = 0; which < ENGINE_YARDSTICKS; which++) {
        b->engine->ops->free(b->engine, buffers->workspace[which]);
        buffers->workspace[which] = NULL;
    }
}

static void give_buffers_back(struct bench *b)
{
    give_yardsticks_back(b);
    if (b->buffers.in)
        give_memory_back(b, b->buffers.in);
    if (b->buffers.out)
        give_memory_back(b, b->buffers.out);
    b->buffers.in = b->buffers.out = NULL;
}

/* Copy within the device's memory, or host memory, and wait. */
static hsort_status copy_and_wait(struct bench *b, void *to, const void *from, size_t bytes)
{
    if (!is_on_device(b)) {
        memcpy(to, from, bytes);
        return HSORT_OK;
    }
    TRY(b->engine->ops->copy(b->engine, STREAM_WORK, to, from, bytes));
    return b->engine->ops->stream_synchronize(b->engine, STREAM_WORK);
}

/* ---- One call ------------------------------------------------------------------------------------------ */

/* Where the input is, before the first sort. */
static void *input_of(const struct bench *b)
{
    return b->buffers.in ? b->buffers.in : b->buffers.out;
}

/* Make this rank's part of the input. */
static hsort_status make_input(struct bench *b, void *to)
{
    if (!is_on_device(b)) {
        input_fill(&b->input, b->first, b->count, to);
        return HSORT_OK;
    }
    const struct engine_ops *ops = b->engine->ops;
    if (!ops->yardstick)
        return status_fail(HSORT_INTERNAL, "the engine %s cannot make keys", ops->name);
    TRY(ops->yardstick->fill(b->engine, &b->input, b->first, b->count, to));
    return ops->stream_synchronize(b->engine, STREAM_WORK);
}

/* In place, put the input where it is sorted. Otherwise put some of it over the result of the previous call, which must not be
 * taken for the next result; if that call may have overwritten the input, make it first. */
static hsort_status prepare_out(struct bench *b)
{
    const size_t piece = b->bytes < 1 << 20 ? b->bytes : 1 << 20;
    char *const out = b->buffers.out;
    if (b->memory == BENCH_INPLACE)
        return b->buffers.in ? copy_and_wait(b, out, b->buffers.in, b->bytes) : make_input(b, out);
    if (b->overwrites)
        TRY(make_input(b, b->buffers.in));
    TRY(copy_and_wait(b, out, b->buffers.in, piece));
    TRY(copy_and_wait(b, out + (b->bytes - piece) / 2, b->buffers.in, piece));
    return copy_and_wait(b, out + b->bytes - piece, b->buffers.in, piece);
}

/* *seconds = the time of one call, on the slowest rank. Collective. */
static hsort_status time_sort(struct bench *b, double *seconds)
{
    const struct bench_buffers *buffers = &b->buffers;
    TRY(comm_agree(b->comm, prepare_out(b)));
    TRY_MPI(MPI_Barrier(b->comm->world));
    const double begun = MPI_Wtime();
    const hsort_status status =
        b->memory == BENCH_INPLACE
            ? hsort_sort(b->ctx, b->input.type, HSORT_ASCENDING, buffers->out, b->count, NULL)
            : hsort_sort_to(b->ctx, b->input.type, HSORT_ASCENDING, buffers->in, b->count, buffers->out,
                            b->count, NULL);
    const double mine = MPI_Wtime() - begun;
    TRY(bench_status(b, status));
    TRY_MPI(MPI_Allreduce(&mine, seconds, 1, MPI_DOUBLE, MPI_MAX, b->comm->world));
    return HSORT_OK;
}

static hsort_status inspect(struct bench *b, const void *keys, hsort_check_result *found)
{
    *found = (hsort_check_result){.struct_size = sizeof *found};
    return bench_status(b, hsort_check(b->ctx, b->input.type, HSORT_ASCENDING, keys, b->count, NULL, found));
}

/* *right becomes false if the result is not the input in order. Collective. */
static hsort_status check_result(struct bench *b, bool *right)
{
    hsort_check_result after;
    TRY(inspect(b, b->buffers.out, &after));
    if (after.first_disorder >= 0 || after.count != b->before.count ||
        memcmp(after.fingerprint, b->before.fingerprint, sizeof after.fingerprint) != 0)
        *right = false;
    return HSORT_OK;
}

/* Time a yardstick's sort, and compare its result with hypersort's. Results with NaNs, which a yardstick orders in its own way, are
 * not compared. */
static hsort_status time_yardstick(struct bench *b, enum engine_yardstick which, double *seconds, bool *right)
{
    const struct engine_yardstick_ops *ops = b->engine->ops->yardstick;
    struct bench_buffers *buffers = &b->buffers;
    void *sorted;
    int64_t different = 0;
    TRY(copy_and_wait(b, buffers->keys, buffers->in, b->bytes));
    const double begun = MPI_Wtime();
    TRY(ops->sort(b->engine, which, b->input.type, buffers->keys, buffers->scratch, b->count,
                  buffers->workspace[which], buffers->workspace_bytes[which], &sorted));
    *seconds = MPI_Wtime() - begun;
    if (!input_has_nans(&b->input))
        TRY(ops->compare(b->engine, b->input.type, sorted, buffers->out, b->count, &different));
    *right = *right && different == 0;
    return HSORT_OK;
}

/* ---- One row ------------------------------------------------------------------------------------------- */

/* Run all sorts once, one after the other; the times go to entry `repeat`, unless that is negative. Collective. */
static hsort_status take_turns(struct bench *b, int repeat, bool *right)
{
    double seconds;
    TRY(time_sort(b, &seconds));
    TRY(check_result(b, right));
    if (repeat >= 0)
        b->seconds[0][repeat] = seconds;
    for (int which = 0; which < ENGINE_YARDSTICKS; which++) {
        if (!b->buffers.workspace[which])
            continue;
        TRY(comm_agree(b->comm, time_yardstick(b, (enum engine_yardstick)which, &seconds, right)));
        if (repeat >= 0)
            b->seconds[1 + which][repeat] = seconds;
    }
    return HSORT_OK;
}

/* The path to the next rank stands for all. */
static const char *path_word(const struct bench *b)
{
    const int size = b->comm->size;
    return size > 1 ? hsort_transport_name(hsort_path(b->ctx, (b->comm->rank + 1) % size)) : "none";
}

/* What a row says before anything is measured. */
static struct bench_row start_row(const struct bench *b, const char *input)
{
    struct bench_row row = {.ranks = b->comm->size,
                            .memory = b->memory,
                            .type = b->input.type,
                            .keys = b->input.count,
                            .right = true};
    snprintf(row.input, sizeof row.input, "%s", input);
    return row;
}

/* Measure the input in hand. Collective. */
static hsort_status measure(struct bench *b, struct bench_row *row)
{
    TRY(comm_agree(b->comm, make_input(b, input_of(b))));
    TRY(inspect(b, input_of(b), &b->before));
    for (int repeat = -b->plan->warm_up; repeat < b->plan->repeats; repeat++)
        TRY(take_turns(b, repeat, &row->right));
    row->path = path_word(b);
    row->time = bench_time_of(b->seconds[0], b->plan->repeats);
    for (int which = 0; which < ENGINE_YARDSTICKS; which++)
        if (b->buffers.workspace[which])
            row->yardsticks[which] = bench_time_of(b->seconds[1 + which], b->plan->repeats);
    row->stats.struct_size = sizeof row->stats;
    b->wrong += !row->right;
    TRY(bench_status(b, hsort_get_stats(b->ctx, &row->stats)));
    row->exchange = b->comm->size > 1 ? report_exchange(b->ctx) : "none";
    return HSORT_OK;
}

/* Leave out a row for which memory does not suffice; other errors end the run. `status` is the same on all ranks. */
static hsort_status leave_out(struct bench *b, const struct bench_row *row, hsort_status status)
{
    if (!is_out_of_memory(status))
        return status;
    if (b->comm->rank == 0)
        bench_report_left_out(&b->report, row, b->comm->error);
    status_clear();
    return HSORT_OK;
}

/* Measure an input, or each of its mixtures, and report it. Collective. */
static hsort_status measure_input(struct bench *b, const struct bench_input *input)
{
    const int count = input->mixtures > 0 ? input->mixtures : 1;
    b->input.distribution = input->input.distribution;
    b->input.parameter = input->input.parameter;
    for (int i = 0; i < count; i++) {
        struct bench_row *row = &b->rows[i];
        *row = start_row(b, input->word);
        if (input->mixtures > 0) {
            b->input.parameter = i;
            snprintf(row->input, sizeof row->input, "mixture:%d", i);
        }
        const hsort_status status = measure(b, row);
        if (status != HSORT_OK)
            return leave_out(b, row, status);
        if (b->comm->rank == 0)
            bench_report_row(&b->report, row, input->mixtures > 0);
    }
    if (input->mixtures > 0 && b->comm->rank == 0) {
        const struct bench_mixtures mixtures = bench_mixtures_of(input, b->rows);
        bench_report_mixtures(&b->report, &mixtures);
    }
    return HSORT_OK;
}

/* Let the context take the memory that it wants before yardsticks take theirs: with less it would sort in another way. Collective. */
static hsort_status settle_context(struct bench *b)
{
    double seconds;
    b->input.distribution = INPUT_UNIFORM;
    TRY(comm_agree(b->comm, make_input(b, input_of(b))));
    return time_sort(b, &seconds);
}

/* Prepare the yardsticks, or, if memory does not suffice for them, measure without them. Collective. */
static hsort_status add_yardsticks(struct bench *b)
{
    const struct bench_row row = start_row(b, "other libraries");
    if (may_have_yardsticks(b) && !has_any_yardstick(b)) {
        bench_report_left_out(&b->report, &row, "none that is built in sorts keys of this type");
        return HSORT_OK;
    }
    const hsort_status status = comm_agree(b->comm, take_yardsticks(b));
    if (status != HSORT_OK)
        give_yardsticks_back(b);
    return status == HSORT_OK ? HSORT_OK : leave_out(b, &row, status);
}

/* Measure all inputs with the memory, type and size in hand. Collective. */
static hsort_status measure_size(struct bench *b)
{
    const struct bench_row row = start_row(b, "all inputs");
    b->first = launch_share(b->input.count, b->comm->rank, b->comm->size);
    b->count = launch_share(b->input.count, b->comm->rank + 1, b->comm->size) - b->first;
    b->bytes = (size_t)b->count * hsort_type_bytes(b->input.type);
    hsort_status status = comm_agree(b->comm, take_bench_buffers(b));
    if (status == HSORT_OK)
        status = settle_context(b);
    if (status != HSORT_OK) {
        status = leave_out(b, &row, status);
    } else {
        status = add_yardsticks(b);
        for (int i = 0; i < b->plan->input_count && status == HSORT_OK; i++)
            status = measure_input(b, &b->plan->inputs[i]);
    }
    if (!launch_lost(b->comm, status))
        give_buffers_back(b);
    return status;
}

/* ---- The command --------------------------------------------------------------------------------------- */

static hsort_status measure_all(struct bench *b)
{
    const struct bench_plan *plan = b->plan;
    for (int m = 0; m < plan->memory_count; m++)
        for (int t = 0; t < plan->type_count; t++)
            for (int s = 0; s < plan->size_count; s++) {
                b->memory = plan->memories[m];
                b->input.type = plan->types[t];
                b->input.count = plan->sizes[s];
                TRY(measure_size(b));
            }
    return HSORT_OK;
}

/* Open an engine on this rank's GPU, for device memory, pinned memory and yardsticks. Collective. */
static hsort_status open_gpu(struct bench *b)
{
    hsort_rank_info *infos = calloc((size_t)b->comm->size, sizeof *infos);
    hsort_status status = comm_agree(
        b->comm, infos ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for %d ranks", b->comm->size));
    if (status == HSORT_OK)
        status = bench_status(b, hsort_topology(b->ctx, infos, sizeof *infos));
    if (status == HSORT_OK)
        status = comm_agree(b->comm, engine_open_cuda(infos[b->comm->rank].gpu_index, 0, &b->engine));
    free(infos);
    return status;
}

/* Refuse kinds of memory that the engine does not have; the default is the memory that it works in. */
static hsort_status choose_memory(struct bench *b, struct bench_plan *plan)
{
    const bool on_gpu = hsort_engine_in_use(b->ctx) == HSORT_ENGINE_CUDA;
    if (plan->memory_count == 0) {
        plan->memory_count = 1;
        plan->memories[0] = on_gpu ? BENCH_DEVICE : BENCH_MALLOC;
    }
    for (int i = 0; i < plan->memory_count && !on_gpu; i++)
        if (plan->memories[i] != BENCH_MALLOC)
            return report_fail(b->comm, HSORT_NO_DEVICE,
                               "--memory %s: the engine host sorts ordinary memory only",
                               bench_memory_word(plan->memories[i]));
    return on_gpu ? open_gpu(b) : HSORT_OK;
}

/* Allocate room for times and rows. */
static hsort_status take_tables(struct bench *b)
{
    int rows = 1;
    for (int i = 0; i < b->plan->input_count; i++)
        rows = b->plan->inputs[i].mixtures > rows ? b->plan->inputs[i].mixtures : rows;
    b->rows = calloc((size_t)rows, sizeof *b->rows);
    bool has_all = b->rows != NULL;
    for (int i = 0; i < 1 + ENGINE_YARDSTICKS; i++) {
        b->seconds[i] = calloc((size_t)b->plan->repeats, sizeof *b->seconds[i]);
        has_all = has_all && b->seconds[i];
    }
    return has_all ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for %d rows", rows);
}

static void start_report(struct bench *b, const struct cli_options *options)
{
    struct bench_report *report = &b->report;
    report->form = options->form;
    report->ranks = b->comm->size;
    report->engine = hsort_engine_name(hsort_engine_in_use(b->ctx));
    report->seed = b->input.seed;
    report->repeats = b->plan->repeats;
    report->warm_up = b->plan->warm_up;
    for (int which = 0; which < ENGINE_YARDSTICKS; which++)
        report->yardsticks[which] = !b->alone && b->comm->size == 1 && b->engine &&
                                    b->engine->ops->yardstick &&
                                    b->engine->ops->yardstick->has((enum engine_yardstick)which, HSORT_U64);
}

/* With a context at hand, measure and report. Collective. */
static hsort_status run_bench(struct bench *b, struct bench_plan *plan, const struct cli_options *options)
{
    TRY(choose_memory(b, plan));
    TRY(comm_agree(b->comm, take_tables(b)));
    if (b->comm->rank == 0)
        start_report(b, options);
    const hsort_status status = measure_all(b);
    if (launch_lost(b->comm, status))
        return status;
    char error[sizeof b->comm->error];
    memcpy(error, b->comm->error, sizeof error);
    const hsort_status ended =
        comm_agree(b->comm, b->comm->rank == 0 ? bench_report_end(&b->report) : HSORT_OK);
    if (status != HSORT_OK)
        return report_fail(b->comm, status, "%s", error);
    TRY(ended);
    return b->wrong == 0 ? HSORT_OK
                         : report_fail(b->comm, HSORT_MISMATCH, "%d of the inputs came out wrong", b->wrong);
}

/* Draw a seed that no other run has, from rank 0's time and process. Collective. */
static hsort_status draw_seed(struct comm *comm, uint64_t *seed)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *seed =
        input_mix((uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec + ((uint64_t)getpid() << 40));
    TRY_MPI(MPI_Bcast(seed, 1, MPI_UINT64_T, 0, comm->world));
    return HSORT_OK;
}

hsort_status cli_bench(struct comm *comm, const struct cli_options *options)
{
    struct bench_plan plan;
    struct bench b = {.comm = comm, .plan = &plan, .input.seed = options->seed};
    hsort_options sort = options->sort;
    int threads;
    sort.keep_host_memory = options->keep_host_memory;
    sort.overwrite_input = b.overwrites = options->overwrite_input;
    b.alone = options->alone || b.overwrites;
    if (bench_plan_make(options, &plan) != HSORT_OK)
        return report_fail(comm, HSORT_ARGUMENT, "%s", status_text());
    TRY(comm_agree(comm, launch_threads(comm, options->sort.threads, &threads)));
    if (b.input.seed == 0)
        TRY(draw_seed(comm, &b.input.seed));
    hsort_status status = hsort_create(comm->world, &sort, &b.ctx);
    if (status != HSORT_OK)
        return report_fail(comm, status, "%s", hsort_last_error(NULL));
    status_clear();
    status = run_bench(&b, &plan, options);
    free(b.rows);
    for (int i = 0; i < 1 + ENGINE_YARDSTICKS; i++)
        free(b.seconds[i]);
    if (launch_lost(comm, status))
        return status;
    hsort_destroy(&b.ctx);
    if (b.engine)
        b.engine->ops->close(b.engine);
    return status;
}
