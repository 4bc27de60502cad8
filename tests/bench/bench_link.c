/* How fast the link between host memory and a rank's device is: what a sort in two passes is measured beside.
 *
 *     bench_link [MIB]        prints rates in GB/s: in alone, out alone, and each way while both run
 *
 * Pinned memory, MIB (1024) each way, the median of seven. On a machine without a GPU it exits with 77. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "kernels/engine.h"

enum { TIMES = 7 };

static struct engine *engine;
static void *host[2], *device[2];
static size_t bytes;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(hsort_status status)
{
    if (status == HSORT_OK)
        return;
    fprintf(stderr, "bench_link: %s\n", status_text());
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* GB/s each way. */
static double measure(bool in, bool out)
{
    double seconds[TIMES];
    for (int i = 0; i < TIMES; i++) {
        const double start = now();
        if (in)
            must(engine->ops->copy(engine, STREAM_IN, device[0], host[0], bytes));
        if (out)
            must(engine->ops->copy(engine, STREAM_OUT, host[1], device[1], bytes));
        must(engine->ops->stream_synchronize(engine, STREAM_IN));
        must(engine->ops->stream_synchronize(engine, STREAM_OUT));
        seconds[i] = now() - start;
    }
    qsort(seconds, TIMES, sizeof *seconds, by_size);
    return (double)bytes / seconds[TIMES / 2] / 1e9;
}

int main(int argc, char **argv)
{
    char why[256];
    bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 1024) << 20;
    if (cuda_device_count(why, sizeof why) == 0) {
        fprintf(stderr, "bench_link: %s\n", why);
        return 77;
    }
    must(engine_open_cuda(0, 0, &engine));
    for (int i = 0; i < 2; i++) {
        must(engine->ops->alloc(engine, bytes, &device[i]));
        must(engine->ops->alloc_host(engine, bytes, &host[i]));
    }
    const double in = measure(true, false), out = measure(false, true), both = measure(true, true);
    printf("in,out,both\n%.1f,%.1f,%.1f\n", in, out, both);
    for (int i = 0; i < 2; i++) {
        engine->ops->free(engine, device[i]);
        engine->ops->free_host(engine, host[i]);
    }
    engine->ops->close(engine);
    return 0;
}
