/* Arrays in ordinary host memory to which the caller's stream still writes when a call begins. Each call waits for them, even if
 * it does without the engine in the end (host_call.h). Its results are those of arrays that were there from the start.
 *
 *     test_late_keys        the host engine, whose table of functions plays a GPU: arrays are there once the call has waited for
 *                           STREAM_WORK, to which the caller's stream was handed
 *     test_late_keys cuda   the cuda engine, and a stream that sleeps before it writes */
#include "src/library/context.h"
#include "tests/support/device_buffer.h"
#include "tests/support/ranks.h"

enum { COUNT = 200000, LITTLE_BYTES = 200000 /* of engine memory: no array fits */ };

/* All that a call gives. */
struct results {
    int64_t keys[COUNT], index[COUNT], found;
    hsort_check_result check;
};

typedef hsort_status (*late_call)(hsort_context *ctx, int64_t *in, void *stream, struct results *results);

static int rank, size;
static bool cuda;
static int64_t made[COUNT], late[COUNT], values[COUNT], positions[COUNT];

/* ---- A stream -------------------------------------------------------------------------------------------------- */

static const struct engine_ops *true_ops;
static enum { NONE_LATE, LATE, HANDED_OVER } stream_state;

static hsort_status wait_for_stream(struct engine *engine, void *stream)
{
    stream_state = stream_state == LATE ? HANDED_OVER : stream_state;
    return true_ops->stream_wait_caller(engine, stream);
}

static hsort_status end_stream_work(struct engine *engine, enum engine_stream stream)
{
    if (stream == STREAM_WORK && stream_state == HANDED_OVER) {
        memcpy(late, made, sizeof late);
        stream_state = NONE_LATE;
    }
    return true_ops->stream_synchronize(engine, stream);
}

/* Memory that a GPU's engine does not reach is ordinary memory. */
static hsort_status see_ordinary_memory(struct engine *engine, const void *pointer, enum engine_space *space)
{
    const hsort_status status = true_ops->space_of(engine, pointer, space);
    *space = *space == SPACE_PINNED ? SPACE_HOST : *space;
    return status;
}

static hsort_context *open_context(size_t limit, struct engine_ops *played)
{
    hsort_options options;
    hsort_context *ctx;
    hsort_options_init(&options, sizeof options);
    options.engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    options.device_memory_limit = limit;
    options.threads = 1;
    if (hsort_create(MPI_COMM_WORLD, &options, &ctx) != HSORT_OK) {
        fprintf(stderr, "%s\n", hsort_last_error(NULL));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (cuda) {
        device_buffer_kinds(ctx->placement.device); // the streams are this device's
    } else {
        true_ops = ctx->engine->ops;
        *played = *true_ops;
        played->stream_wait_caller = wait_for_stream;
        played->stream_synchronize = end_stream_work;
        played->space_of = see_ordinary_memory;
        ctx->engine->ops = played;
    }
    return ctx;
}

static void close_context(hsort_context **ctx)
{
    if (!cuda)
        (*ctx)->engine->ops = true_ops;
    hsort_destroy(ctx);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static const hsort_field field = {.type = HSORT_I64};

static hsort_status call_sort_to(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_sort_to(ctx, HSORT_I64, HSORT_ASCENDING, in, COUNT, r->keys, COUNT, stream);
}

/* Keys of 2 bytes are counted where they are. */
static hsort_status call_sort_counted(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_sort_to(ctx, HSORT_U16, HSORT_ASCENDING, in, 4 * COUNT, r->keys, 4 * COUNT, stream);
}

static hsort_status call_argsort(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_argsort(ctx, HSORT_I64, HSORT_DESCENDING, in, COUNT, r->index, NULL, COUNT, stream);
}

static hsort_status call_pairs(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_sort_pairs_to(ctx, HSORT_I64, HSORT_ASCENDING, in, values, 8, COUNT, r->keys, r->index,
                               COUNT, stream);
}

static hsort_status call_records(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_sort_records_to(ctx, in, sizeof *in, &field, 1, COUNT, r->keys, COUNT, stream);
}

static hsort_status call_select(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    const int64_t position = COUNT / 3;
    return hsort_select(ctx, HSORT_I64, HSORT_ASCENDING, in, COUNT, &position, 1, &r->found, stream);
}

/* Select positions around those of the zeros: the upper bytes of all keys are zeros. */
static hsort_status call_select_counted(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    const int64_t all = 4 * (int64_t)size * COUNT, at[] = {all / 2, all * 5 / 6, all * 6 / 7, all - 1};
    return hsort_select(ctx, HSORT_U16, HSORT_ASCENDING, in, 4 * COUNT, at, 4, r->keys, stream);
}

static hsort_status call_unique(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_unique(ctx, HSORT_I64, in, COUNT, r->keys, &r->found, NULL, r->index, NULL, stream);
}

static hsort_status call_gather(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_gather(ctx, in, COUNT, sizeof *in, positions, r->keys, COUNT, stream);
}

static hsort_status call_scatter(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_scatter(ctx, in, COUNT, sizeof *in, positions, r->keys, COUNT, stream);
}

static hsort_status call_check(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_check(ctx, HSORT_I64, HSORT_ASCENDING, in, COUNT, stream, &r->check);
}

static hsort_status call_check_pairs(hsort_context *ctx, int64_t *in, void *stream, struct results *r)
{
    return hsort_check_pairs(ctx, HSORT_I64, HSORT_ASCENDING, in, values, 8, COUNT, NULL, stream, &r->check);
}

static const struct {
    const char *name;
    late_call call;
    bool does_with_little; /* by the host's cores */
} calls[] = {{"sort", call_sort_to, false},
             {"argsort", call_argsort, false},
             {"pairs", call_pairs, false},
             {"records", call_records, false},
             {"select", call_select, true},
             {"unique", call_unique, true},
             {"gather", call_gather, true},
             {"scatter", call_scatter, true},
             {"sort of short keys", call_sort_counted, false},
             {"select of short keys", call_select_counted, true},
             {"check", call_check, false},
             {"check pairs", call_check_pairs, false}};

static struct results *take_results(void)
{
    struct results *r = calloc(1, sizeof *r);
    if (!r)
        MPI_Abort(MPI_COMM_WORLD, 1);
    r->check.struct_size = sizeof r->check;
    return r;
}

static void run_calls(hsort_context *ctx, bool little)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (little && !calls[i].does_with_little)
            continue;
        struct results *there = take_results(), *was_late = take_results();
        void *stream = NULL;
        hsort_status status = calls[i].call(ctx, made, NULL, there);
        CHECK(status == HSORT_OK, "%s: %s", calls[i].name, hsort_last_error(ctx));
        memset(late, 0, sizeof late);
        stream_state = LATE;
        if (cuda)
            CHECK(device_buffer_copy_late(late, made, sizeof late, i % 2, &stream), "no stream");
        status = calls[i].call(ctx, late, stream, was_late);
        CHECK(status == HSORT_OK, "%s of late keys: %s", calls[i].name, hsort_last_error(ctx));
        CHECK(memcmp(there, was_late, sizeof *there) == 0, "%s%s took keys that were not there yet",
              calls[i].name, little ? " by the host" : "");
        free(there);
        free(was_late);
    }
}

int main(int argc, char **argv)
{
    struct engine_ops played;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed() + (uint64_t)rank;
    for (int64_t i = 0; i < COUNT; i++) {
        made[i] = (int64_t)(check_random(&random) % (4 * COUNT)) + 1;
        values[i] = i;
        positions[i] = (int64_t)(size - 1 - rank) * COUNT + i;
    }
    hsort_context *ctx = open_context(cuda ? 0 : (size_t)1 << 30, &played);
    run_calls(ctx, false);
    close_context(&ctx);
    if (!cuda) { // the cuda engine takes more memory than these arrays
        ctx = open_context(LITTLE_BYTES, &played);
        run_calls(ctx, true);
        close_context(&ctx);
    }
    return ranks_finish();
}
