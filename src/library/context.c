#include "src/library/context.h"
#include "kernels/base/host_cores.h"
#include "kernels/traced_engine.h"
#include "mpi/exchange/exchange.h"
#include "mpi/exchange/packed_paths.h"
#include "src/library/context_memory.h"
#include "src/library/element_call.h"
#include "src/library/struct_size.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t TRACE_SPANS_MAX = INT64_C(1) << 32;

static _Thread_local char create_error[CONTEXT_ERROR_BYTES];

hsort_status hsort_options_init(hsort_options *options, size_t struct_size)
{
    status_clear();
    if (!options || !STRUCT_SIZE_IS_KNOWN(hsort_options, struct_size))
        return status_fail(HSORT_ARGUMENT, "options of %zu bytes: this library knows %zu", struct_size,
                           sizeof *options);
    memset(options, 0, struct_size);
    options->struct_size = struct_size;
    options->local_rung = -1;
    return HSORT_OK;
}

/* ---- agreement ----------------------------------------------------------------------------------------- */

hsort_status context_enter(hsort_context *ctx)
{
    if (!ctx)
        return HSORT_ARGUMENT;
    status_clear();
    ctx->error[0] = ctx->comm.error[0] = '\0';
    const hsort_status status = comm_usable();
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}

hsort_status context_check_keys(const hsort_context *ctx, int key_bytes, const char *name, const void *keys,
                                int64_t count)
{
    const int width = key_bytes > 8 ? key_bytes : 8;
    const int alignment = KEY_IS_COUNTED(key_bytes) ? key_bytes : width; // 8 for keys of 4 bytes, as it has always been
    // No sum of counts, in bytes, may leave 63 bits.
    const int64_t most = INT64_MAX / width / ctx->comm.size;
    if (count < 0 || count > most)
        return status_fail(HSORT_ARGUMENT, "%s: a count of %lld keys; 0 to %lld are allowed", name,
                           (long long)count, (long long)most);
    if (count > 0 && !keys)
        return status_fail(HSORT_ARGUMENT, "%s is NULL, but its count is %lld", name, (long long)count);
    if (count > 0 && (uintptr_t)keys % (unsigned)alignment != 0)
        return status_fail(HSORT_ARGUMENT, "%s is not aligned to %d bytes", name, alignment);
    return HSORT_OK;
}

hsort_status context_check_in_and_out(const hsort_context *ctx, int key_bytes, const void *in,
                                      int64_t in_count, const void *out, int64_t out_count)
{
    const bool in_place = in == out && in_count == out_count; // hsort_sort() has one array, `keys`
    TRY(context_check_keys(ctx, key_bytes, in_place ? "keys" : "in", in, in_count));
    TRY(context_check_keys(ctx, key_bytes, "out", out, out_count));
    return in != out &&
                   element_overlap(in, (size_t)(in_count * key_bytes), out, (size_t)(out_count * key_bytes))
               ? status_fail(HSORT_ARGUMENT, "in and out overlap")
               : HSORT_OK;
}

hsort_status context_check_type(hsort_type type, hsort_order order)
{
    if (!hsort_type_name(type))
        return status_fail(HSORT_ARGUMENT, "no key type %d", (int)type);
    return order == HSORT_ASCENDING || order == HSORT_DESCENDING
               ? HSORT_OK
               : status_fail(HSORT_ARGUMENT, "no order %d", (int)order);
}

hsort_status context_agree_on_keys(hsort_context *ctx, hsort_type type, hsort_order order, hsort_status mine)
{
    keep_first_error(&mine, context_check_type(type, order));
    TRY(comm_agree(&ctx->comm, mine));
    int64_t smallest, largest;
    TRY(comm_range(&ctx->comm, (int64_t)type * 2 + (int64_t)order, &smallest, &largest));
    if (smallest == largest)
        return HSORT_OK;
    return comm_agree(&ctx->comm, status_fail(HSORT_ARGUMENT, "type or order differ between ranks"));
}

/* Wait for all streams: once a call has failed, nothing that is queued may read or write the caller's arrays, which are the
 * caller's again. */
static void end_streams(hsort_context *ctx)
{
    for (int stream = 0; ctx->engine && stream < ENGINE_STREAMS; stream++)
        (void)ctx->engine->ops->stream_synchronize(ctx->engine, (enum engine_stream)stream);
}

hsort_status context_fail(hsort_context *ctx, hsort_status status)
{
    if (ctx->comm.error[0] != '\0')
        snprintf(ctx->error, sizeof ctx->error, "%s", ctx->comm.error);
    else
        snprintf(ctx->error, sizeof ctx->error, "rank %d on %s: %s", ctx->comm.rank, ctx->comm.host,
                 status_text()[0] ? status_text() : hsort_strerror(status));
    end_streams(ctx);
    return status;
}

/* Give up mappings of other ranks' memory; an agreement must follow. */
static void forget(hsort_context *ctx, enum transport_forget what)
{
    if (ctx->transport && ctx->transport->ops->forget)
        ctx->transport->ops->forget(ctx->transport, what);
}

hsort_status context_agree(hsort_context *ctx, hsort_status mine)
{
    forget(ctx, FORGET_CALLERS);
    return comm_agree(&ctx->comm, mine);
}

hsort_status context_unmap(hsort_context *ctx, bool frees)
{
    return transport_unmap(ctx->transport, &ctx->comm, frees);
}

hsort_status context_wait_caller(hsort_context *ctx, void *stream, enum engine_space space)
{
    TRY(ctx->engine->ops->stream_wait_caller(ctx->engine, stream));
    return space == SPACE_HOST ? ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK) : HSORT_OK;
}

/* ---- making a context ---------------------------------------------------------------------------------- */

static hsort_status check_options(const hsort_options *o)
{
    if (!STRUCT_SIZE_IS_KNOWN(hsort_options, o->struct_size))
        return status_fail(HSORT_ARGUMENT, "options were not set by hsort_options_init()");
    if (!hsort_engine_name(o->engine))
        return status_fail(HSORT_ARGUMENT, "options: no engine %d", (int)o->engine);
    if (!hsort_exchange_name(o->exchange))
        return status_fail(HSORT_ARGUMENT, "options: no exchange %d", (int)o->exchange);
    if (!hsort_transport_name(o->transport))
        return status_fail(HSORT_ARGUMENT, "options: no transport %d", (int)o->transport);
    if (o->peer_memory >= HSORT_CHOICES || o->shared_memory >= HSORT_CHOICES ||
        o->mpi_device_pointers >= HSORT_CHOICES)
        return status_fail(HSORT_ARGUMENT, "options: a choice is not AUTO, OFF or ON");
    if (o->binding < HSORT_BINDING_AUTO || o->binding >= HSORT_BINDINGS)
        return status_fail(HSORT_ARGUMENT, "options: no binding %d", (int)o->binding);
    if (o->overwrite_input != 0 && o->overwrite_input != 1)
        return status_fail(HSORT_ARGUMENT, "options: overwrite_input is %d, not 0 or 1", o->overwrite_input);
    if (o->keep_host_memory != 0 && o->keep_host_memory != 1)
        return status_fail(HSORT_ARGUMENT, "options: keep_host_memory is %d, not 0 or 1",
                           o->keep_host_memory);
    if (o->trace_spans < 0 || o->trace_spans > TRACE_SPANS_MAX)
        return status_fail(HSORT_ARGUMENT, "options: a trace of %lld spans; at most 2^32 are allowed",
                           (long long)o->trace_spans);
    if (o->threads < 0 || o->threads > threads_max())
        return status_fail(HSORT_ARGUMENT, "options: %d threads; this machine allows at most %d", o->threads,
                           threads_max());
    return HSORT_OK;
}

/* Every rank must have been given the same options; threads may differ, as cores do. Collective. */
static hsort_status compare_options(struct comm *comm, const hsort_options *o)
{
    const struct {
        const char *name;
        int64_t value;
    } options[] = {{"engine", o->engine},
                   {"local_rung", o->local_rung},
                   {"exchange", o->exchange},
                   {"transport", o->transport},
                   {"peer_memory", o->peer_memory},
                   {"shared_memory", o->shared_memory},
                   {"mpi_device_pointers", o->mpi_device_pointers},
                   {"chunk_bytes", (int64_t)o->chunk_bytes},
                   {"device_memory_limit", (int64_t)o->device_memory_limit},
                   {"binding", o->binding},
                   {"overwrite_input", o->overwrite_input},
                   {"keep_host_memory", o->keep_host_memory},
                   {"trace_spans", o->trace_spans}};
    hsort_status status = HSORT_OK;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        int64_t smallest, largest;
        TRY(comm_range(comm, options[i].value, &smallest, &largest));
        if (smallest != largest && status == HSORT_OK)
            status = status_fail(HSORT_ARGUMENT, "option %s differs between ranks", options[i].name);
    }
    return comm_agree(comm, status);
}

/* CUDA if every rank has a device and nobody asked for the host. Collective. */
static hsort_status choose_engine(hsort_context *ctx, int *devices)
{
    char why[256] = "";
    const hsort_engine wanted = ctx->options.engine;
    *devices = wanted == HSORT_ENGINE_HOST ? 0 : cuda_device_count(why, sizeof why);
    int64_t fewest;
    TRY(comm_range(&ctx->comm, *devices, &fewest, NULL));
    hsort_status status = HSORT_OK;
    if (wanted == HSORT_ENGINE_CUDA && *devices == 0)
        status = status_fail(HSORT_NO_DEVICE, "engine cuda asked for, but no usable GPU: %s", why);
    if (fewest == 0)
        *devices = 0;
    return comm_agree(&ctx->comm, status);
}

static hsort_status open_untraced(hsort_context *ctx, int devices)
{
    const hsort_options *o = &ctx->options;
    if (devices > 0)
        return engine_open_cuda(ctx->placement.device, o->device_memory_limit, &ctx->engine);
    return engine_open_host(ctx->comm.threads, o->device_memory_limit, &ctx->engine);
}

static hsort_status open_engine(hsort_context *ctx, int devices)
{
    struct trace *trace = ctx->comm.trace;
    struct trace_span *span = trace_begin(trace, "open engine");
    TRY(trace_end_with(span, open_untraced(ctx, devices)));
    return trace || TRACE_HAS_RANGES ? engine_trace(ctx->engine, trace) : HSORT_OK;
}

/* Begin to record on each rank, if that is wanted, and look at rank 0's clock. Collective. */
static hsort_status begin_trace(hsort_context *ctx)
{
    if (ctx->options.trace_spans == 0)
        return HSORT_OK;
    TRY(comm_agree(&ctx->comm, trace_open(ctx->options.trace_spans, &ctx->comm.trace)));
    return comm_agree(&ctx->comm, clock_look(&ctx->comm, &ctx->clock));
}

/* Does the engine have the rung? */
static hsort_status check_rung(const hsort_context *ctx)
{
    size_t bytes;
    return ctx->engine->ops->sort_workspace(ctx->engine, ctx->options.local_rung, 8, 1, 1, &bytes);
}

static hsort_status make_offset_tables(hsort_context *ctx)
{
    const size_t entries = (size_t)ctx->comm.size + 1;
    ctx->have_offset = calloc(entries, sizeof *ctx->have_offset);
    ctx->want_offset = calloc(entries, sizeof *ctx->want_offset);
    ctx->even_offset = calloc(entries, sizeof *ctx->even_offset);
    ctx->ends = calloc(entries, 3 * sizeof *ctx->ends);
    if (!ctx->have_offset || !ctx->want_offset || !ctx->even_offset || !ctx->ends)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the tables of %d ranks", ctx->comm.size);
    ctx->exchange = ctx->options.exchange;
    return HSORT_OK;
}

/* Can a sort of this context ever take this exchange? A rank that is alone sorts its keys, and has nobody to
 * exchange them with. */
static bool is_candidate(const hsort_context *ctx, const struct exchange_ops *ops)
{
    const hsort_exchange wanted = ctx->options.exchange;
    const int64_t most_keys = INT64_MAX / 16;
    if (comm_is_alone(&ctx->comm) && ops->input == EXCHANGE_TAKES_RAW)
        return false;
    if (ops->kind == wanted)
        return true;
    // Where keys cannot be partitioned, an exchange of sorted shards stands in.
    const bool is_open = wanted == HSORT_EXCHANGE_AUTO ||
                         (wanted == HSORT_EXCHANGE_PARTITION && ops->input == EXCHANGE_TAKES_SORTED);
    const bool in_place =
        ops->kind == HSORT_EXCHANGE_DIRECT && wanted == HSORT_EXCHANGE_AUTO; // where memory is full
    return is_open && (in_place || !ops->pays ||
                       ops->pays(hsort_engine_in_use(ctx), ctx->comm.size,
                                 any_path_packs(&ctx->comm, ctx->engine, ctx->transport), most_keys, 8));
}

/* Find the exchanges that can run between these ranks, and make their tables. A rank that is alone gets the
 * name of one, which never runs. Collective. */
static hsort_status open_exchanges(hsort_context *ctx)
{
    for (int i = 0; i < EXCHANGES; i++) {
        const struct exchange_ops *ops = exchange_table[i];
        bool all = true;
        if (!is_candidate(ctx, ops)) // the same on every rank
            continue;
        if (ops->can)
            TRY(comm_all(&ctx->comm, ops->can(&ctx->comm, ctx->engine), &all));
        if (!all)
            continue;
        if (ops->open && !comm_is_alone(&ctx->comm))
            TRY(comm_agree(&ctx->comm,
                           ops->open(ctx->comm.size, ctx->engine, &ctx->exchange_tables[ops->kind])));
        ctx->usable_exchanges |= 1u << ops->kind;
    }
    return HSORT_OK;
}

static hsort_status open_transport(hsort_context *ctx)
{
    const hsort_options *o = &ctx->options;
    // A limited host engine counts as a device whose memory MPI does not take, so that transports need none of it.
    const bool is_device = hsort_engine_in_use(ctx) == HSORT_ENGINE_HOST && o->device_memory_limit > 0;
    const struct transport_options wanted = {.transport = is_device && o->transport == HSORT_TRANSPORT_AUTO
                                                              ? HSORT_TRANSPORT_STAGED
                                                              : o->transport,
                                             .chunk_bytes = o->chunk_bytes,
                                             .peer_memory = o->peer_memory,
                                             .shared_memory = o->shared_memory,
                                             .mpi_device_pointers = o->mpi_device_pointers};
    return transport_choose(&ctx->comm, ctx->engine, &wanted, &ctx->transport,
                            &ctx->mpi_takes_device_pointers);
}

/* How many ranks take memory from what the engine of each says is left? */
static int memory_sharers(const hsort_context *ctx)
{
    if (ctx->options.device_memory_limit > 0) // each rank has a limit of its own
        return 1;
    return hsort_engine_in_use(ctx) == HSORT_ENGINE_HOST ? ctx->comm.node_size : ctx->info.gpu_sharers;
}

/* Each step is agreed on before the next, so that no rank waits for one that has given up. Collective. */
static hsort_status set_up_context(hsort_context *ctx)
{
    struct comm *comm = &ctx->comm;
    int devices;
    TRY(comm_agree(comm, check_options(&ctx->options)));
    TRY(compare_options(comm, &ctx->options));
    TRY(begin_trace(ctx));
    TRY(choose_engine(ctx, &devices));
    struct trace_span *span = trace_begin(comm->trace, "find a place");
    TRY(comm_agree(comm, trace_end_with(span, placement_here(comm, devices, ctx->options.binding,
                                                             &ctx->placement, &ctx->info))));
    comm->threads = ctx->options.threads > 0 ? ctx->options.threads : ctx->placement.cores;
    TRY(comm_agree(comm, open_engine(ctx, devices)));
    ctx->spare.engine = ctx->engine;
    ctx->spare.sharers = memory_sharers(ctx);
    TRY(comm_agree(comm, check_rung(ctx)));
    TRY(comm_agree(comm, make_offset_tables(ctx)));
    span = trace_begin(comm->trace, "open transport");
    TRY(trace_end_with(span, open_transport(ctx)));
    return open_exchanges(ctx);
}

/* Refuse what cannot be agreed on, because there is no communicator to agree on; and what would make MPI_Comm_dup()
 * call the error handler of the caller's communicator, which aborts by default. */
static hsort_status refuse_communicator(MPI_Comm comm)
{
    int inter = 0;
    TRY(comm_usable());
    if (comm == MPI_COMM_NULL)
        return status_fail(HSORT_ARGUMENT, "hsort_create: the communicator is MPI_COMM_NULL");
    if (MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return status_fail(
            HSORT_ARGUMENT,
            "hsort_create: the communicator is an intercommunicator, not an intracommunicator");
    return HSORT_OK;
}

/* Memory for a context, if there is a place to write it to. Not collective. */
static hsort_status make_context(hsort_context **ctx, hsort_context **made)
{
    *made = NULL;
    if (!ctx)
        return status_fail(HSORT_ARGUMENT, "hsort_create: ctx is NULL");
    if (!fault_hit(FAULT_ALLOC))
        *made = calloc(1, sizeof **made);
    return *made ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for a context");
}

/* A context with a communicator of its own, on all ranks or on none. Collective. */
static hsort_status open_duplicate(MPI_Comm user, hsort_context **ctx, hsort_context **made, char *error)
{
    struct comm comm;
    hsort_status status = comm_open(user, &comm);
    if (status != HSORT_OK) {
        snprintf(error, CONTEXT_ERROR_BYTES, "%s", status_text());
        return status;
    }
    status = comm_agree(&comm, make_context(ctx, made));
    if (status == HSORT_OK) {
        (*made)->comm = comm;
        return HSORT_OK;
    }
    memcpy(error, comm.error, CONTEXT_ERROR_BYTES);
    comm_close(&comm);
    free(*made);
    return status;
}

hsort_status context_create(MPI_Comm comm, const hsort_options *options, hsort_context **ctx, char *error)
{
    hsort_context *made;
    status_clear();
    error[0] = '\0';
    if (ctx)
        *ctx = NULL;
    hsort_status status = refuse_communicator(comm);
    if (status != HSORT_OK) {
        snprintf(error, CONTEXT_ERROR_BYTES, "%s", status_text());
        return status;
    }
    if ((status = open_duplicate(comm, ctx, &made, error)) != HSORT_OK)
        return status;
    if (options) // options of an unknown size are refused when all ranks are together
        memcpy(&made->options, options,
               STRUCT_SIZE_IS_KNOWN(hsort_options, options->struct_size) ? options->struct_size
                                                                         : sizeof options->struct_size);
    else
        hsort_options_init(&made->options, sizeof made->options);
    status = set_up_context(made);
    if (status != HSORT_OK) {
        context_fail(made, status);
        memcpy(error, made->error, CONTEXT_ERROR_BYTES);
        hsort_destroy(&made);
    }
    *ctx = made;
    return status;
}

hsort_status hsort_create(MPI_Comm comm, const hsort_options *options, hsort_context **ctx)
{
    return context_create(comm, options, ctx, create_error);
}

hsort_status hsort_create_f(MPI_Fint comm, const hsort_options *options, hsort_context **ctx)
{
    const bool usable = comm_usable() == HSORT_OK; // else MPI_Comm_f2c() ends the process
    return hsort_create(usable ? MPI_Comm_f2c(comm) : MPI_COMM_NULL, options, ctx);
}

void hsort_destroy(hsort_context **ctx)
{
    hsort_context *c = ctx ? *ctx : NULL;
    if (!c)
        return;
    hsort_destroy(&c->on_host);
    if (c->transport) {
        if (comm_usable() == HSORT_OK)
            (void)context_unmap(c, true); // if MPI fails here, nobody can be waited for
        else
            forget(c, FORGET_ALL);
        c->transport->ops->close(c->transport);
    }
    run_memory_drop(&c->runs);
    if (c->engine) {
        for (int i = 0; i < EXCHANGES; i++)
            if (exchange_table[i]->close)
                exchange_table[i]->close(c->exchange_tables[exchange_table[i]->kind], c->engine);
        context_drop_all(c);
        spare_drop(&c->spare);
        c->engine->ops->close(c->engine);
    }
    placement_release(&c->placement);
    free(c->have_offset);
    free(c->want_offset);
    free(c->even_offset);
    free(c->ends);
    trace_close(c->comm.trace);
    comm_close(&c->comm);
    free(c);
    *ctx = NULL;
}

/* ---- asking a context ---------------------------------------------------------------------------------- */

const char *hsort_last_error(const hsort_context *ctx)
{
    return ctx ? ctx->error : create_error;
}

/* Gather what all ranks run on, and hand the caller as much of each as it knows. */
static hsort_status gather_infos(hsort_context *ctx, hsort_rank_info *all, hsort_rank_info *infos,
                                 size_t info_size)
{
    const int bytes = sizeof *all;
    TRY_MPI(MPI_Allgather(&ctx->info, bytes, MPI_BYTE, all, bytes, MPI_BYTE, ctx->comm.world));
    for (int rank = 0; rank < ctx->comm.size; rank++)
        memcpy((char *)infos + (size_t)rank * info_size, &all[rank], info_size);
    return HSORT_OK;
}

hsort_status hsort_topology(hsort_context *ctx, hsort_rank_info *infos, size_t info_size)
{
    TRY(context_enter(ctx));
    hsort_status status = HSORT_OK;
    hsort_rank_info *all = malloc((size_t)ctx->comm.size * sizeof *all);
    if (!infos || !STRUCT_SIZE_IS_KNOWN(hsort_rank_info, info_size))
        status = status_fail(HSORT_ARGUMENT, "hsort_topology: infos at %p, of %zu bytes each", (void *)infos,
                             info_size);
    else if (!all)
        status = status_fail(HSORT_HOST_MEMORY, "no memory to describe %d ranks", ctx->comm.size);
    status = comm_agree(&ctx->comm, status);
    if (status == HSORT_OK)
        status = gather_infos(ctx, all, infos, info_size);
    free(all);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}

hsort_engine hsort_engine_in_use(const hsort_context *ctx)
{
    return ctx ? ctx->engine->ops->kind : HSORT_ENGINE_AUTO;
}

hsort_exchange hsort_exchange_in_use(const hsort_context *ctx)
{
    return ctx ? ctx->exchange : HSORT_EXCHANGE_AUTO;
}

hsort_transport hsort_path(const hsort_context *ctx, int peer)
{
    if (!ctx || peer < 0 || peer >= ctx->comm.size || peer == ctx->comm.rank)
        return HSORT_TRANSPORT_AUTO;
    return transport_path(ctx->transport, peer);
}

int hsort_mpi_takes_device_pointers(const hsort_context *ctx)
{
    return ctx ? ctx->mpi_takes_device_pointers : -1;
}
