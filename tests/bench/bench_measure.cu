/* How things are timed, and what they are timed on. bench.h says what a row is. */
#include <algorithm>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include "tests/bench/bench.h"

enum {
    LEAST_REPEATS = 3, /* odd, like all numbers of repeats: the median is one of them */
    MOST_REPEATS = 7,
    REPEATING_SECONDS = 1, /* for a row, except what the fewest repeats take */
    ROWS_PER_LIMIT = 8     /* so that one slow row cannot take all the time */
};

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void bench_note(struct bench *b, const char *format, ...)
{
    va_list arguments;
    char text[320];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(b->csv, "# %s\n", text);
    fflush(b->csv);
    fprintf(stderr, "%s\n", text);
}

const char *bench_rung_name(int number)
{
    switch (number) {
#define X(number, name, ...) \
    case number:             \
        return "rung_" #number "_" #name;
        LADDER(X)
#undef X
    }
    return "";
}

struct bench_subject bench_rung(struct bench *b, int number)
{
    struct bench_subject subject = {bench_rung_name(number), "",     ladder_sort,
                                    ladder_workspace,        number, rung_order(number)};
    subject.bytes = bench_bytes(b, number);
    return subject;
}

/* ---- the data in hand ---------------------------------------------------------------------------------- */

static void unload(struct bench *b)
{
    void **const buffers[] = {&b->original, &b->args.keys, &b->args.scratch_keys, &b->args.values,
                              &b->args.scratch_values};
    for (void **buffer : buffers) {
        b->ops->free(&b->engine->base, *buffer);
        *buffer = NULL;
    }
    b->room = 0;
}

/* Collect the bits in which some key differs from the first. */
template <typename K>
static __global__ void varying_bits_kernel(const K *keys, int64_t count, unsigned long long *varying)
{
    K bits = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        bits |= keys[i] ^ keys[0];
    atomicOr(varying, (unsigned long long)bits);
}

static int count_varying_digits(struct bench *b)
{
    cudaStream_t stream = b->engine->streams[STREAM_WORK];
    unsigned long long *varying, bits;
    int digits = 0;
    MUST(b->ops->alloc(&b->engine->base, sizeof bits, (void **)&varying));
    MUST(cuda_check(cudaMemsetAsync(varying, 0, sizeof bits, stream), "clear"));
    if (b->type.key_bytes == 4)
        varying_bits_kernel<<<1024, 256, 0, stream>>>((const uint32_t *)b->original, b->count, varying);
    else
        varying_bits_kernel<<<1024, 256, 0, stream>>>((const uint64_t *)b->original, b->count, varying);
    MUST(cuda_check(cudaGetLastError(), "look for digits that vary"));
    MUST(b->ops->copy(&b->engine->base, STREAM_WORK, &bits, varying, sizeof bits));
    MUST(b->ops->stream_synchronize(&b->engine->base, STREAM_WORK));
    b->ops->free(&b->engine->base, varying);
    for (; bits != 0; bits >>= 8)
        digits += (bits & 0xff) != 0;
    return digits;
}

static bool make_room(struct bench *b, struct ladder_type type, int64_t count)
{
    const size_t keys = (size_t)count * type.key_bytes, values = (size_t)count * type.value_bytes;
    const struct {
        void **buffer;
        size_t bytes;
    } wanted[] = {{&b->original, keys},
                  {&b->args.keys, keys},
                  {&b->args.scratch_keys, keys},
                  {&b->args.values, values},
                  {&b->args.scratch_values, values}};
    if (b->room >= count && b->type.key_bytes == type.key_bytes && b->type.value_bytes == type.value_bytes)
        return true;
    unload(b);
    for (const auto &w : wanted) {
        if (b->ops->alloc(&b->engine->base, w.bytes, w.buffer) != HSORT_OK) {
            bench_note(b, "left out: %lld keys, %s: %s", (long long)count, type.word, status_text());
            unload(b);
            return false;
        }
    }
    b->room = count;
    return true;
}

bool bench_load(struct bench *b, struct ladder_type type, int64_t count, int input)
{
    if (bench_now() > b->deadline || !make_room(b, type, count))
        return false;
    b->type = type;
    b->count = count;
    b->input = input;
    b->args.key_bytes = type.key_bytes;
    b->args.value_bytes = type.value_bytes;
    b->args.count = count;
    b->cub_ms = 0;
    b->map = keymap_make(type.key_bytes == 4 ? HSORT_U32 : HSORT_U64, HSORT_ASCENDING);
    fill_keys(b->engine, type.key_bytes, b->original, count, input, 1);
    b->before = look_at(b->engine, type.key_bytes, b->original, count);
    b->varying_digits = count_varying_digits(b);
    return true;
}

void bench_decode(struct bench *b, hsort_type type)
{
    b->map = keymap_make(type, HSORT_ASCENDING);
    MUST(b->ops->decode(&b->engine->base, b->map, b->original, b->original, b->count));
    MUST(b->ops->inspect(&b->engine->base, b->map, b->original, b->count, &b->before));
}

/* ---- timing -------------------------------------------------------------------------------------------- */

static int compare_ms(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Find the subject's pace with this type, whatever the count: time per key hardly falls as counts grow. */
static struct bench_pace *find_pace(struct bench *b, const struct bench_subject *subject)
{
    char name[sizeof b->paces[0].name];
    snprintf(name, sizeof name, "%s %s %s", subject->what, subject->variant, b->type.word);
    for (int i = 0; i < b->pace_count; i++) {
        if (strcmp(b->paces[i].name, name) == 0)
            return &b->paces[i];
    }
    struct bench_pace *pace = &b->paces[b->pace_count < BENCH_PACES ? b->pace_count++ : BENCH_PACES - 1];
    memcpy(pace->name, name, sizeof name);
    pace->seconds_per_key = 0;
    return pace;
}

static bool is_result_right(struct bench *b, const struct bench_subject *subject, const struct sort_args *args)
{
    struct engine_inspection found;
    MUST(b->ops->inspect(&b->engine->base, b->map, args->sorted_keys, b->count, &found));
    if (found.fingerprint[0] != b->before.fingerprint[0] || found.fingerprint[1] != b->before.fingerprint[1])
        return false;
    if (subject->is_partial)
        return true;
    return found.first_descent == b->count &&
           (b->type.value_bytes == 0 ||
            wrong_pairs(b->engine, b->type.key_bytes, b->type.value_bytes, b->original, args->sorted_keys,
                        args->sorted_values, b->count, subject->order) == 0);
}

/* Make one repeat: the data is restored before it, and the result is checked after it. */
static hsort_status run_once(struct bench *b, const struct bench_subject *subject, struct sort_args *args,
                             double *ms)
{
    cudaStream_t stream = b->engine->streams[STREAM_WORK];
    float elapsed;
    TRY(b->ops->copy(&b->engine->base, STREAM_WORK, args->keys, b->original,
                     (size_t)b->count * b->type.key_bytes));
    fill_values(b->engine, b->type.value_bytes, args->values, b->count);
    TRY_CUDA(cudaMemsetAsync(b->flush, 0, b->flush_bytes, stream));
    TRY(b->ops->stream_synchronize(&b->engine->base, STREAM_WORK));

    TRY_CUDA(cudaEventRecord(b->start, stream));
    TRY(subject->sort(b->engine, subject->number, args));
    TRY_CUDA(cudaEventRecord(b->stop, stream));

    TRY(b->ops->stream_synchronize(&b->engine->base, STREAM_WORK));
    TRY_CUDA(cudaEventElapsedTime(&elapsed, b->start, b->stop));
    *ms = elapsed;
    return is_result_right(b, subject, args) ? HSORT_OK : status_fail(HSORT_INTERNAL, "the result is wrong");
}

/* Return how often to repeat what takes so many seconds; 0 if there is no time for it. */
static int affordable_repeats(const struct bench *b, double seconds)
{
    if (LEAST_REPEATS * seconds > std::min(b->deadline - bench_now(), b->row_limit))
        return 0;
    const int wanted = (int)std::min(REPEATING_SECONDS / std::max(seconds, 1e-6), (double)MOST_REPEATS);
    return std::max(wanted, (int)LEAST_REPEATS) | 1;
}

static hsort_status time_repeats(struct bench *b, const struct bench_subject *subject, struct sort_args *args,
                                 struct bench_timing *timing, bool *is_timed)
{
    struct bench_pace *pace = find_pace(b, subject);
    double ms[MOST_REPEATS];
    *is_timed = affordable_repeats(b, pace->seconds_per_key * (double)b->count) > 0;
    if (!*is_timed)
        return HSORT_OK;
    const double began = bench_now();
    TRY(run_once(b, subject, args, &ms[0])); // warms up
    const double seconds = bench_now() - began;
    pace->seconds_per_key = seconds / (double)b->count;
    const int repeats = affordable_repeats(b, seconds);
    *is_timed = repeats > 0;
    for (int i = 0; i < repeats; i++)
        TRY(run_once(b, subject, args, &ms[i]));
    if (repeats > 0) {
        qsort(ms, repeats, sizeof ms[0], compare_ms);
        *timing = {ms[repeats / 2], ms[0], ms[repeats - 1]};
    }
    return HSORT_OK;
}

/* The subject in words, for notes. */
static const char *describe(const struct bench *b, const struct bench_subject *subject)
{
    static char text[200];
    snprintf(text, sizeof text, "%s%s%s, %s, %lld keys, %s", subject->what, *subject->variant ? " " : "",
             subject->variant, b->type.word, (long long)b->count, ladder_input_word(b->input));
    return text;
}

/* Time a subject, in a workspace of its own. False, with a note, if it was left out or its result was wrong. */
static bool time_subject(struct bench *b, const struct bench_subject *subject, struct bench_timing *timing)
{
    struct sort_args args = b->args;
    size_t bytes = 0;
    bool is_timed = false;
    hsort_status status = HSORT_OK;
    if (subject->workspace)
        status = subject->workspace(b->engine, subject->number, &args, &bytes);
    if (status == HSORT_OK)
        status = b->ops->alloc(&b->engine->base, bytes, &args.workspace);
    if (status == HSORT_DEVICE_MEMORY) {
        bench_note(b, "left out: %s: %s", describe(b, subject), status_text());
        return false;
    }
    if (status == HSORT_OK)
        status = time_repeats(b, subject, &args, timing, &is_timed);
    b->ops->free(&b->engine->base, args.workspace);
    if (status != HSORT_OK) {
        bench_note(b, "FAILED: %s: %s", describe(b, subject), status_text());
        b->failures++;
        return false;
    }
    if (!is_timed)
        bench_note(b, "left out: %s: would take too long", describe(b, subject));
    return is_timed;
}

double bench_row(struct bench *b, const struct bench_subject *subject)
{
    struct bench_timing timing;
    if (!time_subject(b, subject, &timing))
        return 0;
    if (subject->sort == ladder_sort && subject->number == 0)
        b->cub_ms = timing.ms;
    bench_write(b, subject->what, subject->variant, timing, subject->bytes);
    return timing.ms;
}

void bench_write(struct bench *b, const char *what, const char *variant, struct bench_timing timing,
                 double bytes)
{
    fprintf(b->csv, "%s,%s,%s,%s,%lld,%s,%.5f,%.5f,%.5f,%.4f,", b->experiment, what, variant, b->type.word,
            (long long)b->count, ladder_input_word(b->input), timing.ms, timing.least, timing.most,
            (double)b->count / timing.ms / 1e6);
    if (bytes > 0)
        fprintf(b->csv, "%.1f", 100 * bytes / timing.ms / b->copy_rate);
    fputc(',', b->csv);
    if (b->cub_ms > 0)
        fprintf(b->csv, "%.3f", b->cub_ms / timing.ms);
    fputc('\n', b->csv);
    fflush(b->csv);
}

/* ---- open and close ------------------------------------------------------------------------------------ */

/* Measure the rate of a copy so large that the caches do not matter: the ceiling of every pass. */
static void measure_copy(struct bench *b, size_t memory)
{
    const size_t bytes = std::min(memory / 16, (size_t)1 << 31);
    double ms[MOST_REPEATS];
    void *from, *to;
    MUST(b->ops->alloc(&b->engine->base, bytes, &from));
    MUST(b->ops->alloc(&b->engine->base, bytes, &to));
    fill_keys(b->engine, 8, from, (int64_t)(bytes / 8), UNIFORM, 1);
    for (int i = -1; i < MOST_REPEATS; i++) { // the first one warms up
        float elapsed;
        MUST(cuda_check(cudaEventRecord(b->start, b->engine->streams[STREAM_WORK]), "record"));
        MUST(b->ops->copy(&b->engine->base, STREAM_WORK, to, from, bytes));
        MUST(cuda_check(cudaEventRecord(b->stop, b->engine->streams[STREAM_WORK]), "record"));
        MUST(b->ops->stream_synchronize(&b->engine->base, STREAM_WORK));
        MUST(cuda_check(cudaEventElapsedTime(&elapsed, b->start, b->stop), "elapsed"));
        ms[i < 0 ? 0 : i] = elapsed;
    }
    qsort(ms, MOST_REPEATS, sizeof ms[0], compare_ms);
    b->copy_rate = 2 * (double)bytes / ms[MOST_REPEATS / 2];
    b->ops->free(&b->engine->base, from);
    b->ops->free(&b->engine->base, to);
}

void bench_open(struct bench *b, FILE *csv, double seconds)
{
    struct cuda_device device;
    struct engine *engine;
    cudaDeviceProp properties;
    int driver = 0;
    *b = {};
    MUST(cuda_device_get(0, &device));
    MUST(engine_open_cuda(0, 0, &engine));
    b->engine = (struct cuda_engine *)engine;
    b->ops = engine->ops;
    b->csv = csv;
    b->deadline = bench_now() + seconds;
    b->row_limit = seconds / ROWS_PER_LIMIT;
    // This sets the device for the whole program: the benchmark is alone, and calls the ladder without the engine.
    MUST(cuda_check(cudaSetDevice(0), "cudaSetDevice"));
    MUST(cuda_check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties"));
    MUST(cuda_check(cudaEventCreate(&b->start), "cudaEventCreate"));
    MUST(cuda_check(cudaEventCreate(&b->stop), "cudaEventCreate"));
    b->flush_bytes = 2 * (size_t)properties.l2CacheSize;
    MUST(b->ops->alloc(engine, b->flush_bytes, &b->flush));
    measure_copy(b, (size_t)device.bytes);
    MUST(cuda_check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion"));
    bench_note(b, "%s, compute %d.%d, driver for CUDA %d.%d; %s", device.name, device.compute / 10,
               device.compute % 10, driver / 1000, driver % 1000 / 10, hsort_build_info());
    bench_note(b, "copy: %.0f GB/s, read and written bytes both counted; L2 cache: %d MiB",
               b->copy_rate / 1e6, properties.l2CacheSize >> 20);
    fprintf(csv, "%s\n", BENCH_COLUMNS);
}

void bench_close(struct bench *b)
{
    unload(b);
    b->ops->free(&b->engine->base, b->flush);
    cudaEventDestroy(b->start);
    cudaEventDestroy(b->stop);
    b->ops->close(&b->engine->base);
}
