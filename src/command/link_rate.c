#include "src/command/link_rate.h"
#include <math.h>
#include <stdio.h>
#include "kernels/engine.h"

enum { LINK_BYTES = 64 << 20, TIMES = 5, WAYS = 2 };

/* This rank's GPU; way 0 goes in, way 1 goes out. */
struct link {
    struct engine *engine;
    void *host[WAYS], *device[WAYS];
};

static hsort_status open_link(int gpu, struct link *link)
{
    TRY(engine_open_cuda(gpu, 0, &link->engine));
    for (int way = 0; way < WAYS; way++) {
        TRY(link->engine->ops->alloc(link->engine, LINK_BYTES, &link->device[way]));
        TRY(link->engine->ops->alloc_host(link->engine, LINK_BYTES, &link->host[way]));
    }
    return HSORT_OK;
}

static void close_link(struct link *link)
{
    if (!link->engine)
        return;
    for (int way = 0; way < WAYS; way++) {
        link->engine->ops->free(link->engine, link->device[way]);
        link->engine->ops->free_host(link->engine, link->host[way]);
    }
    link->engine->ops->close(link->engine);
}

static hsort_status copy_once(const struct link *link, bool in, bool out)
{
    const struct engine_ops *ops = link->engine->ops;
    hsort_status status = HSORT_OK;
    if (in)
        status = ops->copy(link->engine, STREAM_IN, link->device[0], link->host[0], LINK_BYTES);
    if (out)
        keep_first_error(&status,
                         ops->copy(link->engine, STREAM_OUT, link->host[1], link->device[1], LINK_BYTES));
    keep_first_error(&status, ops->stream_synchronize(link->engine, STREAM_IN));
    keep_first_error(&status, ops->stream_synchronize(link->engine, STREAM_OUT));
    return status;
}

/* *rate = the rate of the slowest rank; the fastest of several times counts on each rank. Collective. */
static hsort_status measure_link_way(struct comm *comm, const struct link *link, bool in, bool out,
                                     double *rate)
{
    hsort_status status = HSORT_OK;
    double best = INFINITY, most;
    for (int time = 0; time < TIMES; time++) {
        TRY_MPI(MPI_Barrier(comm->world));
        const double begin = MPI_Wtime();
        keep_first_error(&status, copy_once(link, in, out));
        best = fmin(best, MPI_Wtime() - begin);
    }
    TRY(comm_agree(comm, status));
    TRY(comm_largest(comm, &best, 1, &most));
    *rate = LINK_BYTES / most;
    return HSORT_OK;
}

hsort_status link_rate_measure(struct comm *comm, int gpu, struct link_rate *rate)
{
    struct link link = {.engine = NULL};
    *rate = (struct link_rate){.in = 0};
    if (gpu < 0)
        return HSORT_OK;
    hsort_status status = comm_agree(comm, open_link(gpu, &link));
    if (status == HSORT_OK)
        status = measure_link_way(comm, &link, true, false, &rate->in);
    if (status == HSORT_OK)
        status = measure_link_way(comm, &link, false, true, &rate->out);
    if (status == HSORT_OK)
        status = measure_link_way(comm, &link, true, true, &rate->both);
    close_link(&link);
    return status;
}

void link_rate_print(const struct link_rate *rate)
{
    if (rate->both > 0)
        printf("link         of a rank's GPU, pinned memory: %.4g GB/s in, %.4g GB/s out, both at once %.4g "
               "GB/s each way\n",
               rate->in / 1e9, rate->out / 1e9, rate->both / 1e9);
}

void link_rate_json(struct json *json, const struct link_rate *rate)
{
    if (!json_known(json, "host_link", rate->both != 0))
        return;
    json_open(json, "host_link", '{');
    json_real(json, "in_gb_per_s", rate->in / 1e9);
    json_real(json, "out_gb_per_s", rate->out / 1e9);
    json_real(json, "both_gb_per_s_each_way", rate->both / 1e9);
    json_close(json, '}');
}
