/* The experiments of the sources, repeated on this GPU. The claims of the sources stand beside each experiment.
 *
 *   Peters   Peters, Schulz-Hildebrandt, Luttenberger, "Fast in-place sorting with CUDA based on bitonic
 *            sort"
 *   report   Disabato, "Report of Architecture and Platform For Artificial Intelligence", section 4
 *   blog     "Bitonic sort with warp intrinsics" */
#include <algorithm>
#include <string.h>
#include <thread>
#include "tests/bench/bench.h"
#include "kernels/cuda/ladder/bitonic.cuh"
#include "kernels/cuda/ladder/tuning.h"

enum { U32, U64, PAIR_4_4 }; /* of ladder_types */
enum { ROWS_THREADS = 256 };

/* Return a subject that is a rung, except for one number. */
static struct bench_subject variant_of(struct bench *b, int rung, const char *variant, int number,
                                       hsort_status (*sort)(struct cuda_engine *, int, struct sort_args *))
{
    struct bench_subject subject = bench_rung(b, rung);
    subject.variant = variant;
    subject.number = number;
    subject.sort = sort;
    subject.bytes = 0;
    return subject;
}

static hsort_status threads_of_2(struct cuda_engine *engine, int threads, struct sort_args *args)
{
    args->sorted_keys = args->keys;
    args->sorted_values = args->values;
    return rung_2_threads(engine, args, threads);
}

static hsort_status degree_of_4(struct cuda_engine *engine, int degree, struct sort_args *args)
{
    args->sorted_keys = args->keys;
    args->sorted_values = args->values;
    return rung_4_degree(engine, args, degree);
}

static hsort_status threads_of_6(struct cuda_engine *engine, int threads, struct sort_args *args)
{
    return rung_6_threads(engine, args, threads);
}

/* bench_subject.workspace is asked with the number of a rung, but `number` is something else here. */
static hsort_status workspace_of_6(struct cuda_engine *engine, int, const struct sort_args *args, size_t *bytes)
{
    return ladder_workspace(engine, 6, args, bytes);
}

static void time_all_rungs(struct bench *b)
{
    for (int rung : ladder_rungs) {
        const struct bench_subject subject = bench_rung(b, rung);
        bench_row(b, &subject);
    }
}

/* Peters, figure 4: sorting rate against n, 2^10 to 2^24, of integers and of (int, int) and (int, float)
 * pairs; a value is never looked at, so both kinds of pairs are one here. Bitonic sort is claimed to reach its best
 * rate at 2^19, to decline slowly from there, and to be beaten by radix sort from 2^16 on. */
static void peters_rate(struct bench *b)
{
    for (int size = 10; size <= 26; size++) {
        for (int type : {U32, PAIR_4_4}) {
            if (bench_load(b, ladder_types[type], INT64_C(1) << size, UNIFORM))
                time_all_rungs(b);
        }
    }
}

/* Peters, section 3.2: each degree divides the passes over memory; they went up to 4. Rung 1, the trivial
 * implementation, is timed beside the degrees. */
static void peters_degree(struct bench *b)
{
    static const char *const words[] = {"",         "degree 1", "degree 2", "degree 3",
                                        "degree 4", "degree 5", "degree 6"};
    for (int size = 14; size <= 28; size += 2) {
        for (int type : {U32, PAIR_4_4}) {
            if (!bench_load(b, ladder_types[type], INT64_C(1) << size, UNIFORM))
                continue;
            const struct bench_subject trivial = bench_rung(b, 1);
            bench_row(b, &trivial);
            for (int degree = 1; degree <= std::min(6, rung_4_largest_degree(&b->args)); degree++) {
                struct bench_subject subject = variant_of(b, 4, words[degree], degree, degree_of_4);
                subject.workspace = NULL;
                bench_row(b, &subject);
            }
        }
    }
}

/* Peters, figure 3: absolute runtime at any n. Virtual padding is claimed to cost little: no jump behind a
 * power of two beyond that of the phase that is added. */
static void peters_size(struct bench *b)
{
    const int64_t step = INT64_C(1) << 19, power = INT64_C(1) << 23;
    for (int64_t count = power / 2; count <= 2 * power; count += step) {
        if (bench_load(b, ladder_types[U32], count, UNIFORM))
            time_all_rungs(b);
        if (count == power && bench_load(b, ladder_types[U32], count + 1, UNIFORM))
            time_all_rungs(b);
    }
}

/* Report, figures 4 and 5: bitonic sort with blocks of 256, 512 and 1024 threads, claimed to differ little,
 * 1024 being best; radix sort with 512 and 1024, 1024 being best. */
static void threads(struct bench *b)
{
    for (int size = 10; size <= 27; size++) {
        if (!bench_load(b, ladder_types[U32], INT64_C(1) << size, UNIFORM))
            continue;
        struct bench_subject bitonic[] = {variant_of(b, 2, "256 threads", 256, threads_of_2),
                                          variant_of(b, 2, "512 threads", 512, threads_of_2),
                                          variant_of(b, 2, "1024 threads", 1024, threads_of_2)};
        struct bench_subject radix[] = {variant_of(b, 6, "512 threads", 512, threads_of_6),
                                        variant_of(b, 6, "1024 threads", 1024, threads_of_6)};
        for (struct bench_subject &subject : bitonic) {
            subject.workspace = NULL;
            bench_row(b, &subject);
        }
        for (struct bench_subject &subject : radix) {
            subject.workspace = workspace_of_6;
            bench_row(b, &subject);
        }
    }
}

/* Sort each row of 32 keys, `repeats` times over without going back to global memory: the repeats change nothing, but let the row
 * decide the time. Each key has a lane; lanes exchange keys by shuffles. */
template <typename K>
static __global__ void __launch_bounds__(ROWS_THREADS)
    sort_rows_kernel(K *keys, int64_t rows, int repeats)
{
    const int64_t i = (int64_t)blockIdx.x * ROWS_THREADS + threadIdx.x;
    if (i / WARP >= rows)
        return;
    element<K, no_value> x = {keys[i]};
    for (int repeat = 0; repeat < repeats; repeat++) {
#pragma unroll
        for (int size = 2; size <= WARP; size *= 2) {
#pragma unroll
            for (int stride = size / 2; stride > 0; stride /= 2) {
                const int flip = stride == size / 2 ? size - 1 : stride;
                const element<K, no_value> other = {of_lane(x.key, (int)(threadIdx.x % WARP) ^ flip)};
                x = keep_side(x, other, (threadIdx.x & stride) == 0);
            }
        }
    }
    keys[i] = x.key;
}

/* The same steps; the partner's key is found in shared memory. The warp waits twice per step: until all have
 * read before anyone overwrites, and until all have written before anyone reads. */
template <typename K>
static __global__ void __launch_bounds__(ROWS_THREADS)
    sort_rows_shared_kernel(K *keys, int64_t rows, int repeats)
{
    __shared__ K shared[ROWS_THREADS];
    const int64_t i = (int64_t)blockIdx.x * ROWS_THREADS + threadIdx.x;
    if (i / WARP >= rows)
        return;
    element<K, no_value> x = {keys[i]};
    shared[threadIdx.x] = x.key;
    __syncwarp();
    for (int repeat = 0; repeat < repeats; repeat++) {
#pragma unroll
        for (int size = 2; size <= WARP; size *= 2) {
#pragma unroll
            for (int stride = size / 2; stride > 0; stride /= 2) {
                const int flip = stride == size / 2 ? size - 1 : stride;
                const element<K, no_value> other = {shared[threadIdx.x ^ flip]};
                __syncwarp();
                x = keep_side(x, other, (threadIdx.x & stride) == 0);
                shared[threadIdx.x] = x.key;
                __syncwarp();
            }
        }
    }
    keys[i] = x.key;
}

/* Sort rows by one of the two kernels. */
template <typename K>
static hsort_status sort_rows(struct cuda_engine *engine, void (*kernel)(K *, int64_t, int), struct sort_args *args,
                              int repeats)
{
    const int64_t rows = args->count / WARP;
    const unsigned blocks = (unsigned)divide_up(rows * WARP, ROWS_THREADS);
    args->sorted_keys = args->keys;
    kernel<<<blocks, ROWS_THREADS, 0, engine->streams[STREAM_WORK]>>>((K *)args->keys, rows, repeats);
    TRY_LAUNCH("rows");
    return HSORT_OK;
}

static hsort_status rows_by_shuffles(struct cuda_engine *engine, int repeats, struct sort_args *args)
{
    return with_narrow_key_type(args->key_bytes, [&](auto key) {
        return sort_rows(engine, sort_rows_kernel<decltype(key)>, args, repeats);
    });
}

static hsort_status rows_through_shared(struct cuda_engine *engine, int repeats, struct sort_args *args)
{
    return with_narrow_key_type(args->key_bytes, [&](auto key) {
        return sort_rows(engine, sort_rows_shared_kernel<decltype(key)>, args, repeats);
    });
}

/* Blog: rows of 32 keys, sorted over and over to hide global memory, are 1.3 to 1.4 times as fast by shuffles
 * as through shared memory (on an RTX 3090). Rows are also sorted only once, as a sort would do it. */
static void shuffle_experiment(struct bench *b)
{
    for (int type : {U32, U64}) {
        if (!bench_load(b, ladder_types[type], INT64_C(1) << 24, UNIFORM))
            continue;
        for (int repeats : {1, 100}) {
            struct bench_subject subject = {
                "rows of 32",     repeats == 1 ? "shuffle once" : "shuffle 100 times",
                rows_by_shuffles, NULL,
                repeats,          RUNG_UNSTABLE};
            subject.is_partial = true;
            bench_row(b, &subject);
            subject.variant = repeats == 1 ? "shared once" : "shared 100 times";
            subject.sort = rows_through_shared;
            bench_row(b, &subject);
        }
    }
}

/* ---- CPU and GPU --------------------------------------------------------------------------------------- */

enum { CPU_REPEATS = 5, CPU_COUNTS = 32, CPU_REPEATING_SECONDS = 1, CPU_SECONDS_MAX = 8 };

/* The host engine, and what both sides sort. */
struct contest {
    struct engine *host;
    void *original, *keys, *scratch, *workspace; /* on the host */
};

static void *host_memory(struct contest *c, size_t bytes)
{
    void *memory;
    MUST(c->host->ops->alloc(c->host, bytes, &memory));
    return memory;
}

/* Return the median, in ms, of run(), or what the first run takes if that is long; before each run the keys are
 * restored. */
template <typename F>
static double wall_ms(struct bench *b, const struct contest *c, F run)
{
    const size_t bytes = (size_t)b->count * b->type.key_bytes;
    double ms[CPU_REPEATS];
    for (int i = -1; i < CPU_REPEATS; i++) { // the first one warms up
        memcpy(c->keys, c->original, bytes);
        MUST(b->ops->copy(&b->engine->base, STREAM_WORK, b->args.keys, b->original, bytes));
        MUST(b->ops->stream_synchronize(&b->engine->base, STREAM_WORK));
        const double began = bench_now();
        run();
        ms[std::max(i, 0)] = 1e3 * (bench_now() - began);
        if (i < 0 && ms[0] * CPU_REPEATS > 1e3 * CPU_REPEATING_SECONDS)
            return ms[0];
    }
    std::sort(ms, ms + CPU_REPEATS);
    return ms[CPU_REPEATS / 2];
}

/* Time one rung's forms on the data in hand: on the host; on the GPU with keys that are there; and with keys that
 * come from host memory and go back. */
static void time_contest(struct bench *b, struct contest *c, int rung, double (&ms)[3])
{
    const size_t bytes = (size_t)b->count * b->type.key_bytes;
    struct sort_args args = b->args;
    size_t workspace_bytes;
    void *sorted;
    MUST(ladder_workspace(b->engine, rung, &args, &workspace_bytes));
    MUST(b->ops->alloc(&b->engine->base, workspace_bytes, &args.workspace));
    ms[0] = wall_ms(b, c, [&] {
        MUST(c->host->ops->sort(c->host, rung, b->type.key_bytes, c->keys, c->scratch, b->count, b->count,
                                c->workspace, NULL, &sorted));
    });
    ms[1] = wall_ms(b, c, [&] {
        MUST(ladder_sort(b->engine, rung, &args));
        MUST(b->ops->stream_synchronize(&b->engine->base, STREAM_WORK));
    });
    ms[2] = wall_ms(b, c, [&] {
        MUST(b->ops->copy(&b->engine->base, STREAM_WORK, args.keys, c->keys, bytes));
        MUST(ladder_sort(b->engine, rung, &args));
        MUST(b->ops->copy(&b->engine->base, STREAM_WORK, c->keys, args.sorted_keys, bytes));
        MUST(b->ops->stream_synchronize(&b->engine->base, STREAM_WORK));
    });
    if (!is_sorted_form(b->engine, b->type.key_bytes, args.sorted_keys, b->count, b->before) ||
        !std::is_sorted((uint32_t *)c->keys, (uint32_t *)c->keys + b->count) ||
        !std::is_sorted((uint32_t *)sorted, (uint32_t *)sorted + b->count)) {
        bench_note(b, "FAILED: cpu, rung %d, %lld keys: not sorted", rung, (long long)b->count);
        b->failures++;
    }
    b->ops->free(&b->engine->base, args.workspace);
}

/* Return the least of counts [n] from which on form `gpu` is faster than the host's; 0 if there is none. */
static int64_t crossover(const int64_t *counts, const double (*ms)[3], int n, int gpu)
{
    int i = n;
    while (i > 0 && ms[i - 1][gpu] < ms[i - 1][0])
        i--;
    return i < n ? counts[i] : 0;
}

/* Run the contest for one rung at all of counts [n], which ascend. */
static void contest_of_rung(struct bench *b, struct contest *c, int rung, const int64_t *counts, int n)
{
    static const char *const variants[] = {"host", "gpu", "gpu from and to host memory"};
    double ms[CPU_COUNTS][3];
    int done = 0;
    while (done < n) {
        double(&forms)[3] = ms[done];
        if (done > 0 && ms[done - 1][0] * counts[done] / counts[done - 1] > 1e3 * CPU_SECONDS_MAX) {
            bench_note(b, "left out: cpu, rung %d, from %lld keys: would take too long", rung,
                       (long long)counts[done]);
            break;
        }
        if (!bench_load(b, ladder_types[U32], counts[done], UNIFORM))
            break;
        MUST(b->ops->copy(&b->engine->base, STREAM_WORK, c->original, b->original, (size_t)b->count * 4));
        MUST(b->ops->stream_synchronize(&b->engine->base, STREAM_WORK));
        time_contest(b, c, rung, forms);
        for (int i = 0; i < 3; i++)
            bench_write(b, bench_rung_name(rung), variants[i], {forms[i], forms[i], forms[i]}, 0);
        done++;
    }
    for (int gpu = 1; gpu <= 2; gpu++) {
        const int64_t from = crossover(counts, ms, done, gpu);
        if (from > 0)
            bench_note(b, "crossover: rung %d, %s: faster than on the host from %lld keys on", rung,
                       variants[gpu], (long long)from);
        else
            bench_note(b, "crossover: rung %d, %s: never faster than on the host", rung, variants[gpu]);
    }
}

/* Report, figure 6: both sorts on CPU and GPU, 8 keys to 10^8. For few keys the CPU is claimed to be faster.
 * Here wall time is measured, of whole calls; the CPU sorts with all its cores. */
static void cpu(struct bench *b)
{
    int64_t counts[CPU_COUNTS];
    int n = 0;
    for (int size = 3; size <= 26; size++)
        counts[n++] = INT64_C(1) << size;
    counts[n++] = 100000000;
    counts[n++] = INT64_C(1) << 28;
    const size_t most = (size_t)counts[n - 1] * 4;
    struct contest c;
    size_t workspace_bytes;
    MUST(engine_open_host((int)std::max(1u, std::thread::hardware_concurrency()), 0, &c.host));
    MUST(c.host->ops->sort_workspace(c.host, 7, 4, counts[n - 1], counts[n - 1], &workspace_bytes));
    c.original = host_memory(&c, most);
    c.scratch = host_memory(&c, most);
    c.workspace = host_memory(&c, workspace_bytes);
    MUST(b->ops->alloc_host(&b->engine->base, most, &c.keys)); // pinned, for the copies
    for (int rung : {1, 7})
        contest_of_rung(b, &c, rung, counts, n);
    b->ops->free_host(&b->engine->base, c.keys);
    void *const buffers[] = {c.original, c.scratch, c.workspace};
    for (void *buffer : buffers)
        c.host->ops->free(c.host, buffer);
    c.host->ops->close(c.host);
}

/* ---- the merge ----------------------------------------------------------------------------------------- */

/* Merge the two halves, which merge() has sorted. */
static hsort_status merge_halves(struct cuda_engine *engine, int, struct sort_args *args)
{
    const int64_t half = args->count / 2;
    args->sorted_keys = args->scratch_keys;
    return keys_merge(engine, args->key_bytes, args->keys, half, (char *)args->keys + half * args->key_bytes,
                      args->count - half, args->scratch_keys);
}

/* Of no source: which part of the rate of a copy a merge reaches. */
static void merge(struct bench *b)
{
    for (int type : {U32, U64}) {
        for (int size = 16; size <= 28; size += 4) {
            // Ascending keys twice over, with as many equal pairs: the halves are two sorted runs.
            if (!bench_load(b, ladder_types[type], INT64_C(1) << size, SORTED))
                continue;
            const size_t half_bytes = (size_t)b->count / 2 * b->type.key_bytes;
            fill_keys(b->engine, b->type.key_bytes, b->original, b->count / 2, SORTED, 1);
            MUST(b->ops->copy(&b->engine->base, STREAM_WORK, (char *)b->original + half_bytes, b->original,
                              half_bytes));
            b->before = look_at(b->engine, b->type.key_bytes, b->original, b->count);
            struct bench_subject subject = {"merge", "two halves", merge_halves, NULL, 0, RUNG_STABLE};
            subject.bytes = 2 * (double)b->count * b->type.key_bytes;
            bench_row(b, &subject);
        }
    }
}

/* ---- by name ------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct bench *b);
} experiments[] = {{"peters-rate", peters_rate},
                   {"peters-degree", peters_degree},
                   {"peters-size", peters_size},
                   {"threads", threads},
                   {"shuffle", shuffle_experiment},
                   {"cpu", cpu},
                   {"merge", merge},
                   {"types", bench_types},
                   {"less-scratch", bench_less_scratch},
                   {"wide", bench_wide}};

const char bench_experiment_names[] =
    "peters-rate peters-degree peters-size threads shuffle cpu merge types less-scratch wide";

bool bench_experiment(struct bench *b, const char *name)
{
    for (const auto &experiment : experiments) {
        if (strcmp(experiment.name, name) == 0) {
            b->experiment = experiment.name;
            experiment.run(b);
            return true;
        }
    }
    return false;
}
