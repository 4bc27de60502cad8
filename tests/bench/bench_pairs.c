/* How fast keys go between the ranks of one node while all of them send and receive: sorts over several GPUs are compared with this.
 *
 *     mpirun -n RANKS bench_pairs [host|cuda [MIB]]      by default the engine that a sort takes, and 256 MiB at a time
 *
 * By the transport of a sort, in engine memory. In step k each rank sends to the rank k places on, and receives from the rank k places
 * back, so every pair is measured while all others are busy; then all steps follow each other, as in an exchange:
 *
 *     step        1              2              3
 *             0 -> 1 -> 2    0 -> 2 -> 0    0 -> 3 -> 2         4 ranks
 *
 * Prints the rates of a rank, each way: the least, the median and the greatest of all pairs, and that of all steps, of the slowest
 * rank. Medians of seven. Exits with 77 on one rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/library/context.h"

enum { TIMES = 7, MIB = 256 };

static hsort_context *ctx;
static void *sent, *received;
static size_t bytes;

static void must(hsort_status status)
{
    if (status == HSORT_OK)
        return;
    fprintf(stderr, "bench_pairs: %s\n", status_text()[0] ? status_text() : hsort_last_error(ctx));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Return the seconds of steps first .. last on this rank: the median of several times, each begun on all ranks at once. */
static double time_steps(int first, int last)
{
    const int rank = ctx->comm.rank, size = ctx->comm.size;
    double seconds[TIMES];
    int64_t moved = 0;
    for (int i = -1; i < TIMES; i++) { // the first time maps memory
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (int step = first; step <= last; step++)
            must(ctx->transport->ops->sendrecv(ctx->transport, (rank + step) % size, sent, bytes,
                                               (rank - step + size) % size, received, bytes, &moved));
        if (i >= 0)
            seconds[i] = MPI_Wtime() - start;
    }
    qsort(seconds, TIMES, sizeof *seconds, by_size);
    return seconds[TIMES / 2];
}

/* Measure all steps; rank 0 prints the line. */
static void measure(void)
{
    const int size = ctx->comm.size, pairs = size * (size - 1);
    double *rates = malloc((size_t)(size - 1) * sizeof *rates), *all = malloc((size_t)pairs * sizeof *all),
           slowest;
    if (!rates || !all)
        must(status_fail(HSORT_HOST_MEMORY, "no memory for the rates of %d ranks", size));
    for (int step = 1; step < size; step++)
        rates[step - 1] = (double)bytes / time_steps(step, step) / 1e9;
    const double seconds = time_steps(1, size - 1);
    MPI_Gather(rates, size - 1, MPI_DOUBLE, all, size - 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (ctx->comm.rank == 0) {
        qsort(all, (size_t)pairs, sizeof *all, by_size);
        printf("ranks,path,mib,least,median,most,all\n%d,%s,%zu,%.4g,%.4g,%.4g,%.4g\n", size,
               hsort_transport_name(hsort_path(ctx, 1)), bytes >> 20, all[0], all[(pairs - 1) / 2],
               all[pairs - 1], (size - 1) * (double)bytes / slowest / 1e9);
    }
    free(rates);
    free(all);
}

int main(int argc, char **argv)
{
    hsort_options options;
    MPI_Init(&argc, &argv);
    must(hsort_options_init(&options, sizeof options));
    if (argc > 1)
        options.engine = strcmp(argv[1], "host") == 0 ? HSORT_ENGINE_HOST : HSORT_ENGINE_CUDA;
    bytes = (size_t)(argc > 2 ? atoi(argv[2]) : MIB) << 20;
    must(hsort_create(MPI_COMM_WORLD, &options, &ctx));
    const int ranks = ctx->comm.size;
    if (ranks > 1) {
        must(ctx->engine->ops->alloc(ctx->engine, bytes, &sent));
        must(ctx->engine->ops->alloc(ctx->engine, bytes, &received));
        measure();
        if (ctx->transport->ops->forget) // before peers' memory is freed
            ctx->transport->ops->forget(ctx->transport, FORGET_ALL);
        MPI_Barrier(MPI_COMM_WORLD);
        ctx->engine->ops->free(ctx->engine, sent);
        ctx->engine->ops->free(ctx->engine, received);
    } else {
        fprintf(stderr, "bench_pairs: one rank has nobody to send to\n");
    }
    hsort_destroy(&ctx);
    MPI_Finalize();
    return ranks > 1 ? 0 : 77;
}
