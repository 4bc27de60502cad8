/* One sort on a simulated cluster: hsort_sort() on many ranks, with the time that their GPUs and links would take.
 *
 *   simulate EXCHANGE KEYS REAL INPUT      run.sh starts it, and says what the arguments are
 *
 * The output is checked twice: by hsort_check(), and, if it is small enough to lie on one rank, against qsort(). Rank 0
 * prints a row of a CSV, after the names of its columns, only if both checks pass. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include "tests/support/check.h"
#include "hypersort.h"
#include "tests/simgrid/simulated.h"
#include <mpi.h>

enum { ORACLE_KEYS = 1 << 22, LARGEST_PIECE = 1 << 30, USUAL_PIECE = 4 << 20, KEY_BYTES = 8, SMOOTH_KEYS = 64 };

struct run {
    int rank, size;
    hsort_exchange exchange;
    const char *exchange_name, *input;
    int64_t keys, real; /* of one rank: as modelled, and there */
    int64_t count;      /* on this rank */
    uint64_t seed, *key;
};

/* What is said of a run: the same on every rank. */
struct outcome {
    hsort_stats stats;
    int64_t key_messages, short_messages, collectives, rounds; /* of the busiest rank */
    int64_t most_key_bytes, all_key_bytes, delivered;
};

static double environment(const char *name)
{
    const char *text = getenv(name);
    CHECK(text, "no %s in the environment: start it by run.sh", name);
    return text ? atof(text) : 1;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* How many keys of the array rank `rank` begins with. `ragged`: from none to all it may have. */
static int64_t count_of(const struct run *run, int rank)
{
    uint64_t state = run->seed + (uint64_t)rank;
    return strcmp(run->input, "ragged") == 0 ? (int64_t)(check_random(&state) % (uint64_t)(run->real + 1))
                                             : run->real;
}

/* Uniform, but in long stretches as many as a large shard would have there, in short ones as random: about SMOOTH_KEYS in each
 * stretch where that many are expected. Multiples of the golden ratio, moved by less. */
static uint64_t smooth_key(const struct run *run, int rank, int64_t i, uint64_t random)
{
    uint64_t state = run->seed + (uint64_t)rank;
    return (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) + check_random(&state) +
           random % (UINT64_MAX / (uint64_t)run->real * SMOOTH_KEYS);
}

/* Key `i` of rank `rank`. `even`: uniform, but as many in each of `real` equal stretches as a large shard would have there.
 * `squares`: of smooth_key(). `few`: 16 values. */
static uint64_t key_of(const struct run *run, int rank, int64_t i)
{
    uint64_t state = (run->seed ^ (uint64_t)rank << 32) + (uint64_t)i * UINT64_C(0xd1342543de82ef95);
    const uint64_t random = check_random(&state), stretch = UINT64_MAX / (uint64_t)run->real;
    if (strcmp(run->input, "even") == 0)
        return stretch * (uint64_t)((i * 7919 + rank) % run->real) + random % stretch;
    if (strcmp(run->input, "smooth") == 0 || strcmp(run->input, "squares") == 0) {
        const uint64_t key = smooth_key(run, rank, i, random);
        return run->input[1] == 'm' ? key : (uint64_t)((unsigned __int128)key * key >> 64);
    }
    if (strcmp(run->input, "few") == 0)
        return random % 16;
    return strcmp(run->input, "sorted") == 0 ? (uint64_t)rank << 40 | (uint64_t)i : random;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All keys on rank 0, against a sort of all that was put in.                                            Collective. */
static void compare_with_qsort(const struct run *run)
{
    int64_t total = 0;
    int *counts = malloc((size_t)run->size * sizeof *counts), *at = malloc((size_t)run->size * sizeof *at);
    for (int rank = 0; rank < run->size; rank++) {
        at[rank] = (int)total;
        counts[rank] = (int)count_of(run, rank);
        total += counts[rank];
        if (total > ORACLE_KEYS)
            break;
    }
    if (total <= ORACLE_KEYS) {
        const size_t bytes = (size_t)(run->rank == 0 ? total + 1 : 1) * sizeof(uint64_t);
        uint64_t *sorted = malloc(bytes), *wanted = malloc(bytes), *next = wanted;
        MPI_Gatherv(run->key, (int)run->count, MPI_UINT64_T, sorted, counts, at, MPI_UINT64_T, 0,
                    MPI_COMM_WORLD);
        for (int rank = 0; run->rank == 0 && rank < run->size; rank++)
            for (int64_t i = 0; i < counts[rank]; i++)
                *next++ = key_of(run, rank, i);
        if (run->rank == 0)
            qsort(wanted, (size_t)total, sizeof *wanted, compare);
        CHECK(run->rank != 0 || memcmp(sorted, wanted, (size_t)total * sizeof *wanted) == 0,
              "qsort() gives other keys");
        free(sorted);
        free(wanted);
    }
    free(counts);
    free(at);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static bool partitions(const struct run *run)
{
    return run->exchange == HSORT_EXCHANGE_PARTITION;
}

static hsort_context *open_context(const struct run *run)
{
    hsort_context *ctx = NULL;
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.exchange = run->exchange;
    options.threads = 1;
    options.shared_memory = HSORT_CHOICE_OFF; // there are no turns: who waits for one would do so in no time
    options.peer_memory = partitions(run) ? HSORT_CHOICE_AUTO : HSORT_CHOICE_OFF;
    // Bitonic: as few pieces as an int allows, as a message more per pair and round is minutes more for a thousand ranks. The others: of
    // the library's size, as they are packed piece by piece, or sent while others are sorted.
    const int64_t shard = run->real * KEY_BYTES,
                  largest = run->exchange == HSORT_EXCHANGE_BITONIC ? LARGEST_PIECE : USUAL_PIECE,
                  piece = largest / modelled.scale / KEY_BYTES * KEY_BYTES;
    options.chunk_bytes = (size_t)(piece < KEY_BYTES ? KEY_BYTES : piece < shard ? piece : shard);
    const hsort_status status = hsort_create(MPI_COMM_WORLD, &options, &ctx);
    CHECK(status == HSORT_OK, "hsort_create: %s", hsort_last_error(NULL));
    return ctx;
}

static int64_t all_delivered(void)
{
    int64_t all;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&messages_delivered, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void collect(const struct run *run, hsort_context *ctx, const struct traffic *own, struct outcome *o)
{
    // Keys in order stay, and so do few values by partition.
    const bool sent = strcmp(run->input, "sorted") != 0 && run->size > 1 && !(partitions(run) && strcmp(run->input, "few") == 0);
    o->stats.struct_size = sizeof o->stats;
    CHECK(hsort_get_stats(ctx, &o->stats) == HSORT_OK, "no statistics");
    int64_t most[5] = {own->key_messages, own->short_messages, own->collectives, o->stats.rounds,
                       own->key_bytes};
    MPI_Allreduce(MPI_IN_PLACE, most, 5, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&own->key_bytes, &o->all_key_bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    o->key_messages = most[0];
    o->short_messages = most[1];
    o->collectives = most[2];
    o->rounds = most[3];
    o->most_key_bytes = most[4];
    // What the library says that it has sent is what SMPI was given.
    const int64_t mapped = o->stats.paths[HSORT_TRANSPORT_IPC].moved_bytes;
    CHECK((o->stats.moved_bytes - mapped) * modelled.scale == o->all_key_bytes,
          "%" PRId64 " bytes moved, but %" PRId64 " sent", (o->stats.moved_bytes - mapped) * modelled.scale,
          o->all_key_bytes);
    CHECK(!sent || hsort_exchange_in_use(ctx) == run->exchange, "another exchange: %d", hsort_exchange_in_use(ctx));
    CHECK(mapped > 0 || !sent || !partitions(run) || modelled.per_node < 2, "no memory was mapped");
    o->all_key_bytes += mapped * modelled.scale;
    CHECK((o->all_key_bytes > 0) == sent || run->size < 3, "%" PRId64 " bytes sent", o->all_key_bytes);
}

static void sort_once(struct run *run, struct outcome *o)
{
    hsort_check_result before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    for (int64_t i = 0; i < run->count; i++)
        run->key[i] = key_of(run, run->rank, i);
    hsort_context *ctx = open_context(run);
    if (!ctx)
        return;
    CHECK(hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, run->key, run->count, NULL, &before) == HSORT_OK,
          "check");
    simulated_copy_start();
    all_delivered(); // what ranks sent before all of them had the same hook
    const int64_t first = all_delivered(), start = all_delivered();
    traffic = (struct traffic){0};
    const hsort_status status = hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, run->key, run->count, NULL);
    const struct traffic own = traffic;
    const int64_t end = all_delivered();
    o->delivered = end - start - (start - first); // less what counting takes
    CHECK(status == HSORT_OK, "hsort_sort: %s", hsort_last_error(ctx));
    if (status == HSORT_OK)
        collect(run, ctx, &own, o);
    CHECK(hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, run->key, run->count, NULL, &after) == HSORT_OK,
          "check");
    CHECK(after.first_disorder == -1, "key %" PRId64 " is less than the one before", after.first_disorder);
    CHECK(after.count == before.count && after.fingerprint[0] == before.fingerprint[0] &&
              after.fingerprint[1] == before.fingerprint[1],
          "not the same keys");
    compare_with_qsort(run);
    hsort_destroy(&ctx);
}

static void print_row(const struct run *run, const struct outcome *o)
{
    const double *s = o->stats.seconds, shard = (double)run->keys * KEY_BYTES;
    const double all = (double)o->stats.keys * (double)modelled.scale * KEY_BYTES;
    struct formula f;
    if (!formula_of(run->size, (int)run->exchange, run->keys, &f))
        return;
    const double plain = (double)o->stats.crossed_plain_bytes;
    printf("ranks,per_node,exchange,input,keys,real_keys,rounds,key_messages,short_messages,collectives,"
           "delivered,"
           "moved,moved_most,sort_s,exchange_s,merge_s,d2h_s,total_s,"
           "formula_moved,formula_messages,formula_sort_s,formula_exchange_s,formula_merge_s,"
           "crossed_key_bytes,crossed_keys,formula_crossed_key_bytes\n");
    printf("%d,%d,%s,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
           run->size, modelled.per_node, run->exchange_name, run->input, run->keys, run->real, o->rounds,
           o->key_messages, o->short_messages, o->collectives, o->delivered);
    printf(",%.4f,%.4f,%.9f,%.9f,%.9f,%.9f,%.9f", (double)o->all_key_bytes / all,
           (double)o->most_key_bytes / shard, s[HSORT_PHASE_LOCAL_SORT], s[HSORT_PHASE_EXCHANGE],
           s[HSORT_PHASE_MERGE], s[HSORT_PHASE_D2H], o->stats.total_seconds);
    printf(",%.4f,%.0f,%.9f,%.9f,%.9f", f.moved, f.messages, f.sort_s, f.exchange_s, f.merge_s);
    printf(",%.3f,%.4f,%.3f\n", plain > 0 ? (double)o->stats.crossed_bytes / plain * KEY_BYTES : 0,
           plain / ((double)o->stats.keys * KEY_BYTES), f.crossed_key_bytes);
}

static void read_settings(struct run *run, char **argument)
{
    run->exchange_name = argument[1];
    while (run->exchange < HSORT_EXCHANGES && strcmp(argument[1], hsort_exchange_name(run->exchange)) != 0)
        run->exchange++;
    CHECK(run->exchange < HSORT_EXCHANGES, "no exchange %s", argument[1]);
    run->keys = atoll(argument[2]);
    run->real = atoll(argument[3]);
    run->input = argument[4];
    CHECK(run->real > 0 && run->keys % run->real == 0, "keys must be a multiple of the real ones");
    modelled = (struct modelled){
        .scale = run->real > 0 ? run->keys / run->real : 1,
        .sort_keys_per_s = environment("SIM_SORT_KEYS_PER_S"),
        .merge_keys_per_s = environment("SIM_MERGE_KEYS_PER_S"),
        .copy_bytes_per_s = environment("SIM_COPY_BYTES_PER_S"),
        .count_keys_per_s = environment("SIM_COUNT_KEYS_PER_S"),
        .scatter_keys_per_s = environment("SIM_SCATTER_KEYS_PER_S"),
        .regions_keys_per_s = environment("SIM_REGIONS_KEYS_PER_S"),
        .map_s = environment("SIM_MAP_S"),
        .group_s = environment("SIM_GROUP_S"),
        .call_s = environment("SIM_CALL_S"),
        .nvlink_bytes_per_s = environment("SIM_NVLINK_BYTES_PER_S"),
        .nvlink_s = environment("SIM_NVLINK_S"),
        .network_bytes_per_s = environment("SIM_NETWORK_BYTES_PER_S"),
        .network_s = environment("SIM_NETWORK_S"),
        .per_node = (int)environment("SIM_RANKS_PER_NODE"),
        .shard_bytes = run->real * KEY_BYTES,
    };
}

int main(int argc, char **argv)
{
    struct run run = {0};
    struct outcome outcome = {0};
    int failures;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.size);
    run.seed = strtoull(getenv("HYPERSORT_SEED"), NULL, 0);
    read_settings(&run, argv);
    run.count = count_of(&run, run.rank);
    run.key = malloc((size_t)(run.count + 1) * sizeof *run.key);
    CHECK(run.key, "no memory for keys");
    if (check_failures == 0)
        sort_once(&run, &outcome);
    MPI_Allreduce(&check_failures, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (failures == 0 && run.rank == 0)
        print_row(&run, &outcome);
    free(run.key);
    MPI_Finalize();
    return failures > 0;
}
