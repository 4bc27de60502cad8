/* Time the rungs of the ladder, the merge, and a copy as their ceiling, on the first GPU. CSV on stdout.
 *
 * A time is the median of REPEATS runs between two CUDA events, after one that is not counted; the input is
 * restored before each run, outside the timed part. Every timed sort and merge is checked for order and
 * fingerprint; a result that fails ends the program with 1. `ratio_to_cub` is rung 0's time of the same run
 * over this one's: above 1 is faster than CUB. `gbytes_per_s` counts each key once read and once written, in
 * units of 1e9 bytes; it is given for copy and merge, which do just that. */
#include "cuda/tuning.h"
#include "ladder_input.cuh"

enum { REPEATS = 5, SLOW_RUNG = 1 };

struct bench {
    struct cuda_engine *engine;
    const struct engine_ops *ops;
    cudaEvent_t start, stop;
    int key_bytes;
    int64_t count;
    const char *input;
    void *original, *keys, *scratch, *workspace;
    struct engine_inspection before;
};

static int compare_ms(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median milliseconds of run(bench, what), which says where its result lies. Ends the program if it is not
 * sorted, unless nothing `is_sorting`. */
static float time_runs(struct bench *b, void *(*run)(struct bench *b, int what), int what, bool is_sorting)
{
    float ms[REPEATS + 1];
    for (int i = 0; i <= REPEATS; i++) {
        MUST(
            b->ops->copy(&b->engine->base, LANE_WORK, b->keys, b->original, (size_t)b->count * b->key_bytes));
        MUST(b->ops->wait(&b->engine->base, LANE_WORK));
        MUST(cuda_check(cudaEventRecord(b->start, b->engine->lanes[LANE_WORK]), "record"));
        const void *result = run(b, what);
        MUST(cuda_check(cudaEventRecord(b->stop, b->engine->lanes[LANE_WORK]), "record"));
        MUST(b->ops->wait(&b->engine->base, LANE_WORK));
        MUST(cuda_check(cudaEventElapsedTime(&ms[i], b->start, b->stop), "elapsed"));
        if (is_sorting && !is_sorted_form(b->engine, b->key_bytes, result, b->count, b->before)) {
            fprintf(stderr, "wrong result: %d, u%d, %lld keys, %s\n", what, b->key_bytes * 8,
                    (long long)b->count, b->input);
            exit(1);
        }
    }
    qsort(ms + 1, REPEATS, sizeof ms[0], compare_ms); // the first one warms up
    return ms[1 + REPEATS / 2];
}

static void print_row(const struct bench *b, const char *what, float ms, double gbytes, double ratio)
{
    printf("%s,u%d,%lld,%s,%.4f,%.3f,", what, b->key_bytes * 8, (long long)b->count, b->input, ms,
           (double)b->count / ms / 1e6);
    gbytes > 0 ? printf("%.0f,", gbytes / ms * 1e3) : printf(",");
    ratio > 0 ? printf("%.3f\n", ratio) : printf("\n");
    fflush(stdout);
}

static void *run_rung(struct bench *b, int rung)
{
    void *sorted;
    MUST(b->ops->sort(&b->engine->base, rung, b->key_bytes, b->keys, b->scratch, b->count, b->workspace,
                      &sorted));
    return sorted;
}

static void *run_copy(struct bench *b, int)
{
    MUST(b->ops->copy(&b->engine->base, LANE_WORK, b->scratch, b->keys, (size_t)b->count * b->key_bytes));
    return b->scratch;
}

static void *run_merge(struct bench *b, int)
{
    const int64_t half = b->count / 2;
    MUST(b->ops->merge(&b->engine->base, b->key_bytes, b->keys, half, (char *)b->keys + half * b->key_bytes,
                       b->count - half, b->scratch));
    return b->scratch;
}

/* Sort both halves of b->original, so that the merge can be timed. */
static void sort_halves(struct bench *b)
{
    const int64_t half = b->count / 2;
    for (int i = 0; i < 2; i++) {
        char *part = (char *)b->original + i * half * b->key_bytes;
        const int64_t count = i == 0 ? half : b->count - half;
        void *sorted;
        MUST(b->ops->copy(&b->engine->base, LANE_WORK, b->keys, part, (size_t)count * b->key_bytes));
        MUST(b->ops->sort(&b->engine->base, 0, b->key_bytes, b->keys, b->scratch, count, b->workspace,
                          &sorted));
        MUST(b->ops->copy(&b->engine->base, LANE_WORK, part, sorted, (size_t)count * b->key_bytes));
    }
    MUST(b->ops->wait(&b->engine->base, LANE_WORK));
}

/* All rows for one width, size and input. */
static void bench_case(struct bench *b, int log_count, int input)
{
    static const struct {
        int number;
        const char *name;
    } rungs[] = {
#define X(number, name, change) {number, "rung_" #number "_" #name},
        LADDER(X)
#undef X
    };
    b->count = INT64_C(1) << log_count;
    b->input = ladder_input_word(input);
    fill_keys(b->engine, b->key_bytes, b->original, b->count, input, 1);
    b->before = look_at(b->engine, b->key_bytes, b->original, b->count);
    const double moved = 2e-9 * (double)b->count * b->key_bytes;
    float cub = 0;
    for (size_t i = 0; i < sizeof rungs / sizeof rungs[0]; i++) {
        if (rungs[i].number == SLOW_RUNG && log_count > 24)
            continue;
        const float ms = time_runs(b, run_rung, rungs[i].number, true);
        cub = rungs[i].number == 0 ? ms : cub;
        print_row(b, rungs[i].name, ms, 0, cub / ms);
    }
    if (input == UNIFORM) {
        print_row(b, "copy", time_runs(b, run_copy, 0, false), moved, 0);
        sort_halves(b);
        print_row(b, "merge", time_runs(b, run_merge, 0, true), moved, 0);
    }
}

/* Memory for 2^log_count keys and the largest workspace of any rung. */
static void make_buffers(struct bench *b, int log_count)
{
    size_t most = 0, bytes;
#define X(number, name, change)                                                                            \
    MUST(b->ops->sort_workspace(&b->engine->base, number, b->key_bytes, INT64_C(1) << log_count, &bytes)); \
    most = bytes > most ? bytes : most;
    LADDER(X)
#undef X
    void **const buffers[] = {&b->original, &b->keys, &b->scratch};
    for (void **buffer : buffers)
        MUST(b->ops->alloc(&b->engine->base, (size_t)b->key_bytes << log_count, buffer));
    MUST(b->ops->alloc(&b->engine->base, most, &b->workspace));
}

static void free_buffers(struct bench *b)
{
    void *const buffers[] = {b->original, b->keys, b->scratch, b->workspace};
    for (void *buffer : buffers)
        b->ops->free(&b->engine->base, buffer);
}

static void bench_all(struct bench *b)
{
    const int sizes[] = {16, 20, 24, 28};
    const int skewed[] = {SORTED, EQUAL, LOW16};
    device_scope scope(b->engine);
    MUST(cuda_check(cudaEventCreate(&b->start), "create"));
    MUST(cuda_check(cudaEventCreate(&b->stop), "create"));
    printf("what,type,keys,input,ms,gkeys_per_s,gbytes_per_s,ratio_to_cub\n");
    for (b->key_bytes = 4; b->key_bytes <= 8; b->key_bytes += 4) {
        make_buffers(b, 28);
        for (int log_count : sizes)
            bench_case(b, log_count, UNIFORM);
        for (int input : skewed)
            bench_case(b, 28, input);
        free_buffers(b);
    }
    cudaEventDestroy(b->start);
    cudaEventDestroy(b->stop);
}

int main(void)
{
    char why[256];
    struct cuda_device device;
    struct engine *engine;
    struct bench b = {};
    if (cuda_device_count(why, sizeof why) == 0) {
        fprintf(stderr, "no benchmark: %s\n", why);
        return hsort_exit_code(HSORT_NO_DEVICE);
    }
    MUST(cuda_device_get(0, &device));
    MUST(engine_open_cuda(0, 0, &engine));
    int driver = 0;
    cudaDriverGetVersion(&driver);
    printf("# %s, compute %d.%d, driver for CUDA %d.%d; %s\n", device.name, device.compute / 10,
           device.compute % 10, driver / 1000, driver % 1000 / 10, hsort_build_info());
    b.engine = (struct cuda_engine *)engine;
    b.ops = engine->ops;
    bench_all(&b);
    engine->ops->close(engine);
    return 0;
}
