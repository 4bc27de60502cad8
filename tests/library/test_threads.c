/* Two threads of each rank sort at once, each with a context and a communicator of its own, by different exchanges and transports.
 * One of them makes mistakes, and the other must not notice. Every result is compared with qsort() of all keys.
 * `test_threads cuda`: on GPUs, where both threads share their rank's GPU, and have enough keys for several kernels. */
#include <pthread.h>
#include "hypersort.h"
#include "tests/support/ranks.h"

enum { SORTERS = 2, ROUNDS = 6, KEYS_MOST_HOST = 4000, KEYS_MOST_CUDA = 300000 };

/* One thread's work. wrong: what it finds wrong first; "": nothing. */
struct sorter {
    int number;
    bool cuda;
    MPI_Comm comm;
    uint64_t seed; /* the same on every rank */
    char wrong[512];
};

#define WANT(condition, ...)                                            \
    do {                                                                \
        if (!(condition) && sorter->wrong[0] == '\0')                   \
            snprintf(sorter->wrong, sizeof sorter->wrong, __VA_ARGS__); \
    } while (0)

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All ranks' keys in order, for free(). *offset: where this rank's part begins. */
static uint64_t *sorted_keys(struct sorter *sorter, const uint64_t *keys, int count, int *offset)
{
    int size, rank, total = 0;
    MPI_Comm_size(sorter->comm, &size);
    MPI_Comm_rank(sorter->comm, &rank);
    int *counts = malloc(2 * (size_t)size * sizeof *counts), *offsets = counts + size;
    MPI_Allgather(&count, 1, MPI_INT, counts, 1, MPI_INT, sorter->comm);
    for (int i = 0; i < size; i++) {
        offsets[i] = total;
        total += counts[i];
    }
    uint64_t *all = malloc((size_t)(total + 1) * sizeof *all);
    MPI_Allgatherv(keys, count, MPI_UINT64_T, all, counts, offsets, MPI_UINT64_T, sorter->comm);
    qsort(all, (size_t)total, sizeof *all, by_key);
    *offset = offsets[rank];
    free(counts);
    return all;
}

/* Make a mistake on every rank: the line must be this thread's. */
static void make_mistake(struct sorter *sorter, hsort_context *ctx, uint64_t *keys)
{
    hsort_options options;
    hsort_context *none = NULL;
    const hsort_status status = hsort_sort(ctx, (hsort_type)99, HSORT_ASCENDING, keys, 1, NULL);
    WANT(status == HSORT_ARGUMENT && strstr(hsort_last_error(ctx), "no key type 99"),
         "a wrong type: %d, '%s'", (int)status, hsort_last_error(ctx));
    WANT(hsort_options_init(&options, sizeof options) == HSORT_OK, "hsort_options_init");
    options.overwrite_input = 7;
    WANT(hsort_create(sorter->comm, &options, &none) == HSORT_ARGUMENT &&
             strstr(hsort_last_error(NULL), "overwrite_input is 7"),
         "a wrong option: '%s'", hsort_last_error(NULL));
}

static void sort_once(struct sorter *sorter, hsort_context *ctx, uint64_t *state)
{
    const int most = sorter->cuda ? KEYS_MOST_CUDA : KEYS_MOST_HOST;
    uint64_t *const keys = malloc(2 * (size_t)most * sizeof *keys), *const before = keys + most;
    int64_t *const index = malloc((size_t)most * sizeof *index);
    int rank, offset;
    MPI_Comm_rank(sorter->comm, &rank);
    const uint64_t range = check_random(state) % 2 ? 100 : UINT64_MAX; // of keys
    uint64_t own = check_random(state) + (uint64_t)rank;
    const int count = (int)(check_random(&own) % (uint64_t)most);
    for (int i = 0; i < count; i++)
        keys[i] = before[i] = check_random(&own) % range;
    uint64_t *const all = sorted_keys(sorter, keys, count, &offset);
    hsort_status status =
        hsort_argsort(ctx, HSORT_U64, HSORT_ASCENDING, before, count, index, NULL, count, NULL);
    WANT(status == HSORT_OK, "argsort: %s", hsort_last_error(ctx));
    status = hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, count, NULL);
    WANT(status == HSORT_OK, "sort: %s", hsort_last_error(ctx));
    for (int i = 0; i < count; i++)
        WANT(keys[i] == all[offset + i], "key %d of rank %d is %llu, not %llu", i, rank,
             (unsigned long long)keys[i], (unsigned long long)all[offset + i]);
    status = hsort_gather(ctx, before, count, sizeof *before, index, keys, count, NULL);
    WANT(status == HSORT_OK, "gather: %s", hsort_last_error(ctx));
    for (int i = 0; i < count; i++)
        WANT(keys[i] == all[offset + i], "key %d of rank %d by its index is %llu, not %llu", i, rank,
             (unsigned long long)keys[i], (unsigned long long)all[offset + i]);
    free(all);
    free(index);
    free(keys);
}

static void *run_sorter(void *user)
{
    static const hsort_exchange exchanges[] = {HSORT_EXCHANGE_AUTO, HSORT_EXCHANGE_BITONIC,
                                               HSORT_EXCHANGE_DIRECT, HSORT_EXCHANGE_PARTITION};
    struct sorter *sorter = user;
    uint64_t state = sorter->seed, keys[1] = {1};
    for (int round = 0; round < ROUNDS; round++) {
        hsort_options options;
        hsort_context *ctx = NULL;
        WANT(hsort_options_init(&options, sizeof options) == HSORT_OK, "hsort_options_init");
        options.engine = sorter->cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
        options.threads = 1;
        options.exchange = exchanges[check_random(&state) % 4];
        options.transport = check_random(&state) % 2 ? HSORT_TRANSPORT_AUTO : HSORT_TRANSPORT_STAGED;
        options.chunk_bytes = check_random(&state) % 2 ? 256 : 0;
        options.trace_spans = check_random(&state) % 2 ? 1000 : 0;
        const hsort_status status = hsort_create(sorter->comm, &options, &ctx);
        WANT(status == HSORT_OK, "create: %s", hsort_last_error(NULL));
        if (status != HSORT_OK)
            break;
        for (int i = 0; i < 4; i++) {
            if (sorter->number == 1)
                make_mistake(sorter, ctx, keys);
            sort_once(sorter, ctx, &state);
        }
        WANT(sorter->number == 1 || hsort_last_error(NULL)[0] == '\0', "a line of the other thread: %s",
             hsort_last_error(NULL));
        hsort_destroy(&ctx);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided < MPI_THREAD_MULTIPLE)
        return ranks_skip("this MPI has no MPI_THREAD_MULTIPLE");
    const bool cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
    char why[256] = "";
    if (cuda && cuda_device_count(why, sizeof why) == 0)
        return ranks_skip(why);
    const uint64_t seed = ranks_seed();
    struct sorter sorters[SORTERS];
    pthread_t threads[SORTERS];
    for (int i = 0; i < SORTERS; i++) {
        sorters[i] = (struct sorter){.number = i, .cuda = cuda, .seed = seed + (uint64_t)i * 77};
        MPI_Comm_dup(MPI_COMM_WORLD, &sorters[i].comm);
    }
    for (int i = 0; i < SORTERS; i++)
        CHECK(pthread_create(&threads[i], NULL, run_sorter, &sorters[i]) == 0, "pthread_create");
    for (int i = 0; i < SORTERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(sorters[i].wrong[0] == '\0', "rank %d, thread %d: %s", rank, i, sorters[i].wrong);
        MPI_Comm_free(&sorters[i].comm);
    }
    return ranks_finish();
}
