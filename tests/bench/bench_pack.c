/* How fast keys are made ready to be sent in fewer bytes, and made keys again: sort_regions(), pack() and unpack() of engine.h, as
 * packed_chunks.c calls them, for groups of chunks of several lengths.
 *
 *     bench_pack host|cuda [THREADS [KEYS]]       THREADS of host; 8-byte keys, uniform, default 2^26
 *
 * Prints a line for each length: regions in a call, chunks in a call, keys in all, ms of each of the three for all keys, bytes of a
 * packed key. Medians of seven; each result is compared with the keys. Exits with 1 if one is wrong, with 77 without the engine. */
#include <time.h>
#include "tests/kernels/partition_trial.h"

enum { WIDTH = 8, LOG = ENGINE_SAMPLE_LOG_MIN, TIMES = 7 };

struct shard {
    int64_t count;
    void *keys, *to, *ordered, *packed, *back, *workspace, *scratch;
    struct engine_map map;
    int64_t at[ENGINE_REGIONS + 1];
    int64_t *bytes; /* [ENGINE_REGIONS] by the first region of a chunk */
};

static double seconds_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *memory_of_engine(size_t bytes)
{
    void *memory;
    must(ops->alloc(engine, bytes, &memory), "memory");
    return memory;
}

static void make_shard(struct shard *s, int64_t count)
{
    static uint64_t codes[1 << LOG];
    const struct keymap map = keymap_make(HSORT_U64, HSORT_ASCENDING);
    const size_t bytes = (size_t)count * WIDTH;
    uint64_t random = check_seed(), *keys = alloc_or_exit(bytes);
    int64_t counts[ENGINE_REGIONS];
    bool down;
    s->count = count;
    s->keys = memory_of_engine(bytes), s->to = memory_of_engine(bytes), s->ordered = memory_of_engine(bytes);
    s->packed = memory_of_engine(bytes), s->back = memory_of_engine(bytes), s->scratch = memory_of_engine(3 * bytes);
    s->workspace = memory_of_engine(ops->partition->workspace(engine, WIDTH));
    must(ops->alloc_host(engine, ENGINE_REGIONS * sizeof *s->bytes, (void **)&s->bytes), "memory");
    for (int64_t i = 0; i < count; i++)
        keys[i] = check_random(&random);
    for (int64_t i = 0; i < 1 << LOG; i++)
        codes[i] = keys[begin_of_part(i, count, LOG)];
    copy_now(s->keys, keys, bytes);
    free(keys);
    const struct raw_keys raw = {.map = map, .from = s->keys};
    must(ops->partition->make_map(engine, WIDTH, codes, LOG, count, false, s->workspace, s->scratch, &s->map),
         "map");
    must(ops->partition->count(engine, WIDTH, &raw, count, &s->map, s->workspace, counts, &down), "count");
    must(ops->partition->scatter(engine, WIDTH, &raw, count, &s->map, s->workspace, s->to), "scatter");
    for (int region = 0; region < ENGINE_REGIONS; region++)
        s->at[region + 1] = s->at[region] + counts[region];
}

/* Call what `step` says for all keys: groups of `regions` regions, chunks of `chunk` regions. */
static void run_step(struct shard *s, int step, int regions, int chunk)
{
    for (int first = 0; first < ENGINE_REGIONS; first += regions) {
        struct engine_piece pieces[ENGINE_PIECES_MAX];
        struct engine_packing packings[ENGINE_PIECES_MAX];
        int count = 0, number = 0;
        for (int region = first; region < first + regions && region < ENGINE_REGIONS; region++) {
            const int64_t at = s->at[region] * WIDTH;
            if (s->at[region + 1] > s->at[region])
                pieces[count++] = (struct engine_piece){(char *)s->to + at, s->at[region + 1] - s->at[region], region};
            const int end = region + chunk < ENGINE_REGIONS ? region + chunk : ENGINE_REGIONS;
            if ((region - first) % chunk == 0 && s->at[end] > s->at[region])
                packings[number++] = (struct engine_packing){(char *)(step == 1 ? s->ordered : s->packed) + at,
                                                             (char *)(step == 1 ? s->packed : s->back) + at,
                                                             s->at[end] - s->at[region], &s->bytes[region], false};
        }
        if (step == 0 && count > 0)
            must(ops->partition->sort_regions(engine, WIDTH, &s->map, pieces, count, NULL, s->workspace,
                                              s->scratch, (char *)s->ordered + s->at[first] * WIDTH),
                 "order");
        else if (step > 0 && number > 0)
            must(step == 1 ? ops->packing->pack(engine, WIDTH, packings, number)
                           : ops->packing->unpack(engine, WIDTH, packings, number),
                 "pack");
    }
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
}

/* Are the keys that come back those that were packed, in the same order, which ascends? */
static bool is_right(const struct shard *s)
{
    const size_t bytes = (size_t)s->count * WIDTH;
    uint64_t *ordered = alloc_or_exit(bytes), *back = alloc_or_exit(bytes);
    copy_now(ordered, s->ordered, bytes);
    copy_now(back, s->back, bytes);
    bool right = memcmp(ordered, back, bytes) == 0;
    for (int64_t i = 1; i < s->count && right; i++)
        right = back[i] >= back[i - 1];
    free(ordered);
    free(back);
    return right;
}

static void measure(struct shard *s, int regions, int chunk)
{
    double ms[3][TIMES], bytes = 0;
    for (int time = -1; time < TIMES; time++)
        for (int step = 0; step < 3; step++) {
            const double start = seconds_now();
            run_step(s, step, regions, chunk);
            if (time >= 0)
                ms[step][time] = 1e3 * (seconds_now() - start);
        }
    for (int step = 0; step < 3; step++)
        qsort(ms[step], TIMES, sizeof(double), by_size);
    for (int region = 0; region < ENGINE_REGIONS; region += chunk)
        bytes += (double)s->bytes[region];
    const bool right = is_right(s);
    CHECK(right, "groups of %d regions, chunks of %d: wrong keys", regions, chunk);
    printf("%d,%d,%lld,%.3f,%.3f,%.3f,%.3f,%s\n", regions, regions / chunk, (long long)s->count, ms[0][TIMES / 2], ms[1][TIMES / 2],
           ms[2][TIMES / 2], bytes / (double)s->count, right ? "right" : "wrong");
}

int main(int argc, char **argv)
{
    static struct shard s;
    open_engine(argc, argv);
    make_shard(&s, argc > 3 ? atoll(argv[3]) : INT64_C(1) << 26);
    printf("regions,chunks,keys,order_ms,pack_ms,unpack_ms,bytes_per_key,result\n");
    static const int regions[] = {8, 32, 128, 128, 128, 128}, chunks[] = {8, 8, 32, 8, 2, 1};
    for (int i = 0; i < 6; i++)
        measure(&s, regions[i], chunks[i]);
    return check_failures > 0;
}
