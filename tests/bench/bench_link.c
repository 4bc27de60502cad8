/* How fast the links between host memory and devices are: a sort in two passes is compared with this.
 *
 *     bench_link [DEVICES [MIB]]      the first device, or DEVICES at once; prints the rate of one of them in GB/s: in
 *                                     alone, out alone, and each way while both run
 *
 * Pinned memory, MIB (1024) each way and device, the median of seven. With fewer GPUs than that it exits with 77. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "kernels/engine.h"

enum { TIMES = 7, DEVICES_MAX = 16 };

/* A device, and memory of its engine: 0 comes in, 1 goes out. */
static struct link {
    struct engine *engine;
    void *host[2], *device[2];
} links[DEVICES_MAX];
static int devices = 1;
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

/* Copy, on all devices at once. */
static void copy_all(bool in, bool out)
{
    for (struct link *l = links; l < links + devices; l++) {
        if (in)
            must(l->engine->ops->copy(l->engine, STREAM_IN, l->device[0], l->host[0], bytes));
        if (out)
            must(l->engine->ops->copy(l->engine, STREAM_OUT, l->host[1], l->device[1], bytes));
    }
    for (struct link *l = links; l < links + devices; l++) {
        must(l->engine->ops->stream_synchronize(l->engine, STREAM_IN));
        must(l->engine->ops->stream_synchronize(l->engine, STREAM_OUT));
    }
}

/* Return the GB/s of one device, each way. */
static double measure(bool in, bool out)
{
    double seconds[TIMES];
    for (int i = 0; i < TIMES; i++) {
        const double start = now();
        copy_all(in, out);
        seconds[i] = now() - start;
    }
    qsort(seconds, TIMES, sizeof *seconds, by_size);
    return (double)bytes / seconds[TIMES / 2] / 1e9;
}

static void open_link(struct link *l)
{
    must(engine_open_cuda((int)(l - links), 0, &l->engine));
    for (int i = 0; i < 2; i++) {
        must(l->engine->ops->alloc(l->engine, bytes, &l->device[i]));
        must(l->engine->ops->alloc_host(l->engine, bytes, &l->host[i]));
    }
}

static void close_link(struct link *l)
{
    for (int i = 0; i < 2; i++) {
        l->engine->ops->free(l->engine, l->device[i]);
        l->engine->ops->free_host(l->engine, l->host[i]);
    }
    l->engine->ops->close(l->engine);
}

int main(int argc, char **argv)
{
    char why[256];
    devices = argc > 1 ? atoi(argv[1]) : 1;
    bytes = (size_t)(argc > 2 ? atoi(argv[2]) : 1024) << 20;
    const int there = cuda_device_count(why, sizeof why);
    if (devices < 1 || devices > DEVICES_MAX || there < devices) {
        fprintf(stderr, "bench_link: %d of %d GPUs. %s\n", there, devices, why);
        return 77;
    }
    for (struct link *l = links; l < links + devices; l++)
        open_link(l);
    const double in = measure(true, false), out = measure(false, true), both = measure(true, true);
    printf("in,out,both\n%.1f,%.1f,%.1f\n", in, out, both);
    for (struct link *l = links; l < links + devices; l++)
        close_link(l);
    return 0;
}
