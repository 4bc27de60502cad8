/* Every step that can fail is made to fail, one at a time, through the public interface: each fault site of the library on
 * the first, a middle and the last rank, at its first passage, its second, and so on until one is never reached. Each time
 * every rank gets the same status and the same line, which names the rank that failed; nobody waits forever; keys survive
 * what they are promised to survive; the context can be destroyed, and the next one sorts.
 *
 *     test_faults          the host engine
 *     test_faults cuda     the cuda engine
 *     test_faults_ipc ipc  the host engine with memory that other ranks map; needs shared_engine.c
 *     test_faults passes   the host engine with so little memory that keys are sorted in two passes
 *     test_faults element_passes  the same for records and for an index
 *     test_faults_nodes messages  partition between virtual nodes: while batches come by message, packed
 *     test_faults_mixed mixed     the same, with ipc inside nodes; some passages, drawn by a seed; empty shards and records, too
 *     test_faults types    keys of 2 bytes, which are counted, in pieces and not; and keys of 16, whose keys are carried along
 *     test_faults_ipc pairs       pairs and records that go with their keys, by partition; _nodes: by message, packed
 *     test_faults records  what travels with keys: pairs to other counts and in place, records in place in two rounds, a scatter, unique
 *
 * Under AddressSanitizer, and with a HYPERSORT_SEED, only some of the passages are tried, drawn by the seed. */
#include "kernels/engine.h"
#include "tests/support/faults.h"
#include "hypersort.h"
#include "tests/support/ranks.h"
#ifdef SHARED_ENGINE
#include "tests/support/shared_engine.h"
#endif

#ifdef HSORT_FAULTS
#ifdef VIRTUAL_NODES
enum { PARTITION_SCALE = 512 }; /* chunks of more than a block are packed */
#else
enum { PARTITION_SCALE = 64 };
#endif
enum { CHUNK_SCALE = 64, RUNG_NETWORK = 1, PASSES_SCALE = 8, ELEMENTS_SCALE = 4, MOST_KEYS = 128 * PARTITION_SCALE, MOST_PASSAGES = 1000, SECONDS_PER_CASE = 60 };

static int rank, size;
static hsort_engine engine;
static hsort_exchange exchange; /* of all contexts */
static size_t limit;            /* of engine memory, of all contexts; 0: none */
static hsort_choice shared;     /* memory of ranks of a node, of all contexts */
static hsort_type key_type = HSORT_U64; /* of sorts of bare keys; narrower ones lie in the first bytes of the arrays */
static int steps_most = 1;      /* from one passage that fails to the next; more than 1: drawn */
static uint64_t random_state;   /* of those draws, the same on all ranks */
static bool by_one_field;       /* records are sorted by one field, and go with it if partition is asked for */
static bool stops;              /* each sort is asked to stop, at its safe point */
static uint64_t values = 1000;  /* of the keys: if they are few, partition writes them anew */

/* What is done with a fault armed. */
enum deed { DEED_CREATE, DEED_CHECK, DEED_SORT, DEED_SORT_TO, DEED_RECORDS, DEED_PAIRS, DEED_SCATTER, DEED_UNIQUE,
             DEED_SELECT, DEED_INDEX, DEED_ARGSORT, DEED_CHECK_PAIRS, DEED_PAIRS_IN_PLACE, DEEDS };

static const char *const deed_names[DEEDS] = {"create",  "check", "sort",   "sort to other counts",
                                              "records", "pairs", "scatter", "unique", "select", "argsort",
                                              "argsort of u128", "check pairs", "pairs in place"};

struct fault {
    enum fault_site site;
    int failing; /* rank */
    int nth;     /* passage */
};

/* This rank's part of the input, and where results go. */
struct keys {
    int64_t count, out_count;
    _Alignas(16) uint64_t in[MOST_KEYS], kept[MOST_KEYS], out[MOST_KEYS];
};

/* Make even shards for a sort in place. For a sort to other counts, nearly all keys come from the first rank and go to the last, so
 * that keys are dealt out anew before and after the exchange. */
static void make_keys(struct keys *keys, enum deed deed)
{
    uint64_t random = (uint64_t)rank + 1;
    const bool even = deed != DEED_SORT_TO && deed != DEED_PAIRS;
    const int passes_scale = deed == DEED_RECORDS || deed == DEED_INDEX ? ELEMENTS_SCALE : PASSES_SCALE;
    const int scale = exchange == HSORT_EXCHANGE_PARTITION ? PARTITION_SCALE : limit > 0 ? passes_scale : 1;
    const int uneven = limit > 0 ? 40 : 90; // each piece of two passes is a passage
    keys->count = scale * (even ? 24 : rank == 0 ? uneven : rank % 2);
    keys->out_count = scale * (even ? 24 : rank == size - 1 ? uneven + size / 2 : 0);
    for (int i = 0; i < MOST_KEYS; i++)
        keys->in[i] = keys->kept[i] = check_random(&random) % values;
}

static int ask_to_stop(void *user)
{
    (void)user;
    return 1;
}

static hsort_status create(hsort_transport transport, hsort_context **ctx)
{
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.transport = transport;
    options.exchange = exchange;
    options.threads = 1;
    options.device_memory_limit = limit;
    options.should_stop = stops ? ask_to_stop : NULL;
    options.shared_memory = shared;
    options.local_rung = limit > 0 ? RUNG_NETWORK : -1; // needs no workspace, which would be most of the limit
    options.chunk_bytes =
        exchange == HSORT_EXCHANGE_PARTITION ? 64 * CHUNK_SCALE : 64; // a swap takes several pieces
    return hsort_create(MPI_COMM_WORLD, &options, ctx);
}

static hsort_status sort_to(hsort_context *ctx, struct keys *keys)
{
    return hsort_sort_to(ctx, key_type, HSORT_DESCENDING, keys->in, keys->count, keys->out, keys->out_count,
                         NULL);
}

static hsort_status check_order(hsort_context *ctx, const uint64_t *keys, int64_t count, hsort_order order,
                                hsort_check_result *result)
{
    result->struct_size = sizeof *result;
    return hsort_check(ctx, key_type, order, keys, count, NULL, result);
}

/* Sort records of two keys, in place, by both keys: so long a key takes two rounds. In two passes, sort by the lower half of the
 * first key: the network, which needs no workspace, sorts only short codes. */
static hsort_status sort_records(hsort_context *ctx, struct keys *keys)
{
    const hsort_field fields[2] = {{.type = limit > 0 ? HSORT_U32 : HSORT_U64},
                                   {.type = HSORT_U64, .offset = 8, .order = HSORT_DESCENDING}};
    return hsort_sort_records(ctx, keys->in, 16, fields, limit > 0 || by_one_field ? 1 : 2, keys->count / 2, NULL);
}

/* Argsort keys of 4 bytes, each of which has 0 for a neighbour. The index names the zeros in their order. */
static hsort_status find_index(hsort_context *ctx, struct keys *keys)
{
    int64_t *index = (int64_t *)keys->out;
    const hsort_status status = hsort_argsort(ctx, HSORT_U32, HSORT_ASCENDING, keys->in, keys->count, index, NULL,
                                              keys->count, NULL);
    for (int64_t i = 1; status == HSORT_OK && i < keys->count; i++) {
        const bool zeros = index[i - 1] % 2 == 1 && index[i] % 2 == 1;
        CHECK(index[i] >= 0 && index[i] < size * keys->count && (!zeros || index[i] > index[i - 1]),
              "%s: entry %d is %lld", faults_case, (int)i, (long long)index[i]);
    }
    return status;
}

/* Sort pairs in which the keys themselves are their values. */
static hsort_status sort_pairs(hsort_context *ctx, struct keys *keys)
{
    return hsort_sort_pairs_to(ctx, HSORT_U64, HSORT_DESCENDING, keys->in, keys->in, 8, keys->count, NULL, keys->out,
                               keys->out_count, NULL);
}

/* Sort pairs with values of a size that is gathered behind the sort of the keys. If memory lacks, values are as they were, too. */
static hsort_status sort_pairs_in_place(hsort_context *ctx, struct keys *keys)
{
    enum { VALUE_BYTES = 3 };
    unsigned char *own = (unsigned char *)keys->out;
    for (int64_t i = 0; i < VALUE_BYTES * keys->count; i++)
        own[i] = (unsigned char)(7 * i);
    const hsort_status status =
        hsort_sort_pairs(ctx, HSORT_U64, HSORT_ASCENDING, keys->in, own, VALUE_BYTES, keys->count, NULL);
    for (int64_t i = 0;
         (status == HSORT_HOST_MEMORY || status == HSORT_DEVICE_MEMORY) && i < VALUE_BYTES * keys->count; i++)
        CHECK(own[i] == (unsigned char)(7 * i), "%s: byte %d of the values was changed", faults_case, (int)i);
    return status;
}

/* Scatter every key to its place counted from the end. */
static hsort_status scatter_keys(hsort_context *ctx, struct keys *keys)
{
    int64_t index[MOST_KEYS];
    for (int64_t i = 0; i < keys->count; i++)
        index[i] = size * keys->count - 1 - (rank * keys->count + i);
    return hsort_scatter(ctx, keys->in, keys->count, 8, index, keys->out, keys->out_count, NULL);
}

/* Keep unique keys in place; keys are in no order, so that most runs have one key. */
static hsort_status keep_unique(hsort_context *ctx, struct keys *keys)
{
    int64_t kept = 0, counts[MOST_KEYS], first[MOST_KEYS], ids[MOST_KEYS];
    const hsort_status status = hsort_unique(ctx, HSORT_U64, keys->in, keys->count, keys->in, &kept, counts, first, ids,
                                             NULL);
    for (int64_t run = 0; status == HSORT_OK && run < kept; run++) {
        const int64_t at = first[run] - rank * keys->count;
        CHECK(at >= 0 && at < keys->count && keys->in[run] == keys->kept[at] && counts[run] > 0, "%s: run %d", faults_case,
              (int)run);
    }
    return status;
}

/* Check pairs in which the keys themselves are their values; under a limit of memory, piece by piece. */
static hsort_status check_pairs(hsort_context *ctx, struct keys *keys)
{
    hsort_check_result result = {.struct_size = sizeof result};
    const hsort_status status = hsort_check_pairs(ctx, HSORT_U64, HSORT_ASCENDING, keys->in, keys->in, 8,
                                                  keys->count, NULL, NULL, &result);
    CHECK(status != HSORT_OK || (result.count == size * keys->count && result.first_unstable == -1), "%s: %d keys",
          faults_case, (int)result.count);
    return status;
}

/* Select the least key and the greatest. */
static hsort_status select_ends(hsort_context *ctx, struct keys *keys)
{
    const int64_t positions[2] = {0, size * keys->count - 1};
    return hsort_select(ctx, key_type, HSORT_ASCENDING, keys->in, keys->count, positions, 2, keys->out, NULL);
}

/* Argsort keys of 16 bytes; one rank wants no keys back. */
static hsort_status argsort_wide(hsort_context *ctx, struct keys *keys)
{
    int64_t index[MOST_KEYS];
    const int64_t count = keys->count / 2;
    const hsort_status status = hsort_argsort(ctx, HSORT_U128, HSORT_ASCENDING, keys->in, count, index,
                                              rank == size / 2 ? NULL : keys->out, count, NULL);
    for (int64_t i = 1; status == HSORT_OK && rank != size / 2 && i < count; i++)
        CHECK(keys->out[2 * i - 1] <= keys->out[2 * i + 1], "%s: key %d", faults_case, (int)i); // the upper halves
    return status;
}

static hsort_status do_deed(enum deed deed, hsort_context **ctx, hsort_transport transport, struct keys *keys)
{
    hsort_check_result result;
    if (deed == DEED_RECORDS)
        return sort_records(*ctx, keys);
    if (deed == DEED_PAIRS)
        return sort_pairs(*ctx, keys);
    if (deed == DEED_PAIRS_IN_PLACE)
        return sort_pairs_in_place(*ctx, keys);
    if (deed == DEED_SCATTER)
        return scatter_keys(*ctx, keys);
    if (deed == DEED_UNIQUE)
        return keep_unique(*ctx, keys);
    if (deed == DEED_CHECK_PAIRS)
        return check_pairs(*ctx, keys);
    if (deed == DEED_SELECT)
        return select_ends(*ctx, keys);
    if (deed == DEED_INDEX)
        return find_index(*ctx, keys);
    if (deed == DEED_ARGSORT)
        return argsort_wide(*ctx, keys);
    if (deed == DEED_CREATE)
        return create(transport, ctx);
    if (deed == DEED_CHECK)
        return check_order(*ctx, keys->in, keys->count, HSORT_ASCENDING, &result);
    return deed == DEED_SORT ? hsort_sort(*ctx, key_type, HSORT_ASCENDING, keys->in, keys->count, NULL)
                             : sort_to(*ctx, keys);
}

/* Check that all ranks have the same status and the same line, which names the rank that failed. */
static void check_failure(const struct fault *fault, hsort_status status, const char *line)
{
    char first[1024], who[32];
    int statuses[2] = {(int)status, -(int)status}, greatest[2];
    snprintf(first, sizeof first, "%s", line);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Allreduce(statuses, greatest, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(greatest[0] == -greatest[1], "%s: rank %d got %d, another %d", faults_case, rank, status,
          greatest[0]);
    CHECK(strcmp(first, line) == 0, "%s: rank %d has '%s', rank 0 '%s'", faults_case, rank, line, first);
    snprintf(who, sizeof who, "rank %d on ", fault->failing);
    CHECK(strncmp(line, who, strlen(who)) == 0, "%s: '%s' names another rank", faults_case, line);
    CHECK(status != HSORT_OK && status != HSORT_ARGUMENT, "%s: status %d", faults_case, status);
    CHECK(fault->site != FAULT_MPI || status == HSORT_MPI, "%s: status %d", faults_case, status);
    CHECK(fault->site != FAULT_ALLOC || status == HSORT_HOST_MEMORY || status == HSORT_DEVICE_MEMORY,
          "%s: status %d", faults_case, status);
}

/* After a lack of memory the keys are untouched and the context can be used again. */
static void check_recovery(enum deed deed, hsort_context *ctx, struct keys *keys)
{
    hsort_check_result result = {.count = 0};
    CHECK(memcmp(keys->in, keys->kept, sizeof keys->in) == 0, "%s: keys were changed", faults_case);
    const hsort_status status = do_deed(deed, &ctx, HSORT_TRANSPORT_AUTO, keys);
    CHECK(status == HSORT_OK, "%s: again: %s", faults_case, hsort_last_error(ctx));
    if (deed == DEED_SORT)
        CHECK(check_order(ctx, keys->in, keys->count, HSORT_ASCENDING, &result) == HSORT_OK &&
                  result.first_disorder == -1,
              "%s: again: not sorted", faults_case);
}

/* If the fault was never reached, the sort must be right. */
static void check_success(enum deed deed, hsort_context *ctx, const struct keys *keys)
{
    hsort_check_result before, after = {.count = 0};
    if (deed == DEED_RECORDS) {
        for (int64_t i = 2; i < keys->count; i += 2)
            CHECK(keys->in[i - 2] < keys->in[i] ||
                      (keys->in[i - 2] == keys->in[i] && (limit > 0 || by_one_field || keys->in[i - 1] >= keys->in[i + 1])),
                  "%s: record %d is not in order", faults_case, (int)i / 2);
        return;
    }
    if (deed != DEED_SORT && deed != DEED_SORT_TO && deed != DEED_PAIRS)
        return;
    const bool in_place = deed == DEED_SORT;
    CHECK(check_order(ctx, keys->kept, keys->count, HSORT_ASCENDING, &before) == HSORT_OK, "%s", faults_case);
    CHECK(check_order(ctx, in_place ? keys->in : keys->out, keys->out_count,
                      in_place ? HSORT_ASCENDING : HSORT_DESCENDING, &after) == HSORT_OK,
          "%s", faults_case);
    CHECK(after.first_disorder == -1 && after.count == before.count &&
              memcmp(after.fingerprint, before.fingerprint, sizeof after.fingerprint) == 0,
          "%s: not sorted", faults_case);
}

/* Do one deed with one fault. Returns, on every rank, whether the fault was never reached. */
static bool run_case(enum deed deed, hsort_transport transport, const struct fault *fault)
{
    struct keys keys;
    hsort_context *ctx = NULL;
    make_keys(&keys, deed);
    if (deed != DEED_CREATE) {
        const hsort_status created = create(transport, &ctx);
        CHECK(created == HSORT_OK, "%s: a new context: %s", faults_case, hsort_last_error(NULL));
        if (created != HSORT_OK)
            return true;
    }
    fault_set(fault->site, rank == fault->failing ? fault->nth : 0);
    const hsort_status status = do_deed(deed, &ctx, transport, &keys);
    int untouched = rank == fault->failing && fault_untouched(fault->site, fault->nth);
    MPI_Bcast(&untouched, 1, MPI_INT, fault->failing, MPI_COMM_WORLD);

    if (untouched) {
        CHECK(status == HSORT_OK, "%s: not reached, but status %d", faults_case, status);
        if (status == HSORT_OK)
            check_success(deed, ctx, &keys);
    } else {
        check_failure(fault, status, hsort_last_error(deed == DEED_CREATE ? NULL : ctx));
        CHECK(deed != DEED_CREATE || ctx == NULL, "%s: a context in spite of it", faults_case);
        if (ctx && (status == HSORT_HOST_MEMORY || status == HSORT_DEVICE_MEMORY))
            check_recovery(deed, ctx, &keys);
    }
    hsort_destroy(&ctx);
    CHECK(ctx == NULL, "%s: not destroyed", faults_case);
    return untouched != 0;
}

/* Fail all passages of one site on one rank, or some of them. Returns the last. */
static int walk(enum deed deed, hsort_transport transport, enum fault_site site, int failing)
{
    struct fault fault = {.site = site, .failing = failing};
    bool untouched = false;
    while (!untouched && fault.nth < MOST_PASSAGES) {
        fault.nth += fault.nth == 0 ? 1 : 1 + (int)(check_random(&random_state) % (uint64_t)steps_most);
        snprintf(faults_case, sizeof faults_case,
                 "%s, transport %d, exchange %d, %lld values, %s fault %d on rank %d of %d", deed_names[deed],
                 transport, exchange, (long long)values, fault_word(site), fault.nth, failing, size);
        faults_watch(SECONDS_PER_CASE);
        untouched = run_case(deed, transport, &fault);
    }
    faults_watch(0);
    CHECK(untouched, "%s: still reached", faults_case);
    return untouched && steps_most == 1 ? fault.nth - 1 : fault.nth;
}

static void walk_all(enum deed deed, hsort_transport transport)
{
    static const enum fault_site sites[] = {FAULT_ALLOC, FAULT_MPI, FAULT_KERNEL, FAULT_COPY};
    const int failing[] = {0, size / 2, size - 1};
    for (size_t s = 0; s < sizeof sites / sizeof sites[0]; s++)
        for (int f = 0; f < 3; f++)
            if (f == 0 || failing[f] != failing[f - 1]) {
                const int passages = walk(deed, transport, sites[s], failing[f]);
                if (rank == 0)
                    printf("%s, transport %d, exchange %d, %lld values: %s%d passages of %s on rank %d\n",
                           deed_names[deed], transport, exchange, (long long)values,
                           steps_most > 1 ? "some of less than " : "", passages, fault_word(sites[s]),
                           failing[f]);
            }
}

/* A sort that is asked to stop either stops with all keys or fails, also if something goes wrong behind its safe point. */
static void walk_stopped(enum fault_site site)
{
    int untouched = 0;
    stops = true;
    for (int nth = 1; !untouched && nth < MOST_PASSAGES; nth++) {
        hsort_context *ctx;
        hsort_check_result before = {.count = 0}, after = {.count = 0};
        struct keys keys;
        make_keys(&keys, DEED_SORT_TO);
        snprintf(faults_case, sizeof faults_case, "asked to stop, %s fault %d of %d ranks", fault_word(site),
                 nth, size);
        CHECK(create(HSORT_TRANSPORT_AUTO, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
        faults_watch(SECONDS_PER_CASE);
        fault_set(site, rank == 0 ? nth : 0);
        const hsort_status status = sort_to(ctx, &keys);
        untouched = rank == 0 && fault_untouched(site, nth);
        MPI_Bcast(&untouched, 1, MPI_INT, 0, MPI_COMM_WORLD);
        fault_set(site, 0);
        CHECK(status == HSORT_STOPPED || (!untouched && status != HSORT_OK), "%s: status %d", faults_case,
              status);
        CHECK(status != HSORT_STOPPED ||
                  (check_order(ctx, keys.kept, keys.count, HSORT_ASCENDING, &before) == HSORT_OK &&
                   check_order(ctx, keys.out, keys.out_count, HSORT_ASCENDING, &after) == HSORT_OK &&
                   after.count == before.count &&
                   memcmp(after.fingerprint, before.fingerprint, sizeof after.fingerprint) == 0),
              "%s: stopped, but not all keys are there", faults_case);
        hsort_destroy(&ctx);
    }
    faults_watch(0);
    CHECK(untouched, "%s: still reached", faults_case);
    stops = false;
}

/* Sort keys that partition does not move, because each value has a region of its own. */
static void walk_few_values(void)
{
    values = 3;
    walk_all(DEED_SORT, HSORT_TRANSPORT_IPC);
    walk_all(DEED_SORT_TO, HSORT_TRANSPORT_IPC);
#ifdef SHARED_ENGINE
    CHECK(shared_written > 0, "no keys of few values were written anew");
#endif
    values = 1000;
}

/* Do keys move by partition? */
static void check_partition(hsort_transport transport)
{
    hsort_context *ctx;
    hsort_stats stats = {.struct_size = sizeof stats};
    struct keys keys;
    make_keys(&keys, DEED_SORT);
    CHECK(create(transport, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    CHECK(do_deed(DEED_SORT, &ctx, transport, &keys) == HSORT_OK && hsort_get_stats(ctx, &stats) == HSORT_OK &&
              hsort_exchange_in_use(ctx) == HSORT_EXCHANGE_PARTITION && stats.paths[transport].moved_bytes > 0 &&
              stats.paths[transport].moved_bytes < 8 * keys.count * (size - 1) * 9 / 10,
          "exchange %d, %lld bytes: %s", hsort_exchange_in_use(ctx), (long long)stats.moved_bytes,
          hsort_last_error(ctx));
    hsort_destroy(&ctx);
}

/* Fail some passages of a sort whose keys go by ipc and by message, of a sort for which most ranks have no keys, and of a sort of
 * records. */
static void walk_mixed(void)
{
    hsort_context *ctx;
    hsort_stats stats = {.struct_size = sizeof stats};
    struct keys keys;
    exchange = HSORT_EXCHANGE_PARTITION;
    values = UINT64_C(1) << 40;
    steps_most = 40;
    random_state = ranks_seed();
    make_keys(&keys, DEED_SORT);
    CHECK(create(HSORT_TRANSPORT_IPC, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    CHECK(do_deed(DEED_SORT, &ctx, HSORT_TRANSPORT_IPC, &keys) == HSORT_OK && hsort_get_stats(ctx, &stats) == HSORT_OK &&
              hsort_exchange_in_use(ctx) == HSORT_EXCHANGE_PARTITION && stats.paths[HSORT_TRANSPORT_IPC].moved_bytes > 0 &&
              stats.paths[HSORT_TRANSPORT_IPC].moved_bytes < stats.moved_bytes,
          "not by both: %s", hsort_last_error(ctx));
    hsort_destroy(&ctx);
    walk_all(DEED_SORT, HSORT_TRANSPORT_IPC);
    walk_all(DEED_SORT_TO, HSORT_TRANSPORT_IPC);
    walk_all(DEED_RECORDS, HSORT_TRANSPORT_IPC);
}

/* Does a sort under this limit take two passes? */
static void check_passes(enum deed deed)
{
    hsort_context *ctx;
    hsort_stats stats = {.struct_size = sizeof stats};
    struct keys keys;
    make_keys(&keys, deed);
    CHECK(create(HSORT_TRANSPORT_STAGED, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    CHECK(do_deed(deed, &ctx, HSORT_TRANSPORT_STAGED, &keys) == HSORT_OK &&
              hsort_get_stats(ctx, &stats) == HSORT_OK && stats.passes == 2 && stats.runs > 2 * size,
          "%d passes, %d runs: %s", (int)stats.passes, (int)stats.runs, hsort_last_error(ctx));
    hsort_destroy(&ctx);
}

static void walk_records(void)
{
    const hsort_transport transport = HSORT_TRANSPORT_AUTO;
    walk_all(DEED_RECORDS, transport);
    walk_all(DEED_PAIRS, transport);
    walk(DEED_PAIRS_IN_PLACE, transport, FAULT_ALLOC, size / 2);
    walk_all(DEED_SCATTER, transport);
    walk_all(DEED_UNIQUE, transport);
    walk_all(DEED_CHECK_PAIRS, transport);
    limit = 1 << 20; // arrays are copied then
    walk(DEED_SCATTER, transport, FAULT_COPY, size / 2);
    walk(DEED_UNIQUE, transport, FAULT_COPY, size / 2);
    limit = 0;
}

static void walk_two_passes(void)
{
    enum { SLOTS = 4, SLOT_BYTES = 256 };
    limit = SLOTS * SLOT_BYTES * 64 / 63 + 1;
    check_passes(DEED_SORT);
    check_passes(DEED_SORT_TO);
    walk_all(DEED_SORT, HSORT_TRANSPORT_STAGED);
    walk_all(DEED_SORT_TO, HSORT_TRANSPORT_STAGED);
    walk_all(DEED_CHECK, HSORT_TRANSPORT_STAGED);
    walk_all(DEED_CHECK_PAIRS, HSORT_TRANSPORT_STAGED);
    shared = HSORT_CHOICE_OFF; // pieces of runs then come by message
    walk_all(DEED_SORT_TO, HSORT_TRANSPORT_STAGED);
    shared = HSORT_CHOICE_AUTO;
}

static void walk_types(void)
{
    enum { TABLE_BYTES = 655360, PIECE_BYTES = 64 };
    key_type = HSORT_I16;
    walk_all(DEED_SORT, HSORT_TRANSPORT_AUTO);
    limit = TABLE_BYTES + PIECE_BYTES;
    walk_all(DEED_SORT_TO, HSORT_TRANSPORT_STAGED);
    walk_all(DEED_SELECT, HSORT_TRANSPORT_STAGED);
    limit = 0;
    key_type = HSORT_U64;
    walk(DEED_ARGSORT, HSORT_TRANSPORT_AUTO, FAULT_ALLOC, size - 1);
    walk(DEED_ARGSORT, HSORT_TRANSPORT_AUTO, FAULT_MPI, size / 2);
}

/* Leave memory for four slots of elements, codes of 8 bytes and scratch for these; each begins at a multiple of 256 bytes. */
static void walk_element_passes(void)
{
    enum { SLOTS = 4, CODES = 2, SLOT_BYTES = 256 };
    limit = (SLOTS + CODES) * SLOT_BYTES * 64 / 63 + 1;
    check_passes(DEED_RECORDS);
    check_passes(DEED_INDEX);
    walk_all(DEED_RECORDS, HSORT_TRANSPORT_STAGED);
    walk_all(DEED_INDEX, HSORT_TRANSPORT_STAGED);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*walk)(void);
    } modes[] = {{"mixed", walk_mixed},
                 {"passes", walk_two_passes},
                 {"element_passes", walk_element_passes},
                 {"types", walk_types},
                 {"records", walk_records}};
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    exchange = HSORT_EXCHANGE_BITONIC;
#ifdef __SANITIZE_ADDRESS__ // it makes each passage take longer
    if (getenv("HYPERSORT_SEED")) {
        steps_most = 5;
        random_state = ranks_seed();
    }
#endif
    if (argc > 1 && strcmp(argv[1], "ipc") == 0) {
        walk(DEED_CREATE, HSORT_TRANSPORT_IPC, FAULT_ALLOC, size - 1);
        walk_all(DEED_SORT, HSORT_TRANSPORT_IPC);
        walk_all(DEED_SORT_TO, HSORT_TRANSPORT_IPC);
        exchange = HSORT_EXCHANGE_DIRECT;
        walk_all(DEED_SORT_TO, HSORT_TRANSPORT_IPC);
        exchange = HSORT_EXCHANGE_PARTITION;
        walk_all(DEED_SORT, HSORT_TRANSPORT_IPC);
        walk_all(DEED_SORT_TO, HSORT_TRANSPORT_IPC);
        walk_few_values();
        return ranks_finish();
    }
    if (argc > 1 && strcmp(argv[1], "messages") == 0) {
        exchange = HSORT_EXCHANGE_PARTITION;
        values = UINT64_C(1) << 40; // few of which repeat, so that keys move
        check_partition(HSORT_TRANSPORT_STAGED);
        walk_all(DEED_SORT, HSORT_TRANSPORT_STAGED);
        for (int failing = 0; failing < size; failing += size / 2)
            walk(DEED_SORT, HSORT_TRANSPORT_MPI, FAULT_MPI, failing);
        return ranks_finish();
    }
    if (argc > 1 && strcmp(argv[1], "pairs") == 0) {
        exchange = HSORT_EXCHANGE_PARTITION;
        by_one_field = true;
        walk_all(DEED_PAIRS, HSORT_TRANSPORT_AUTO);
        walk_all(DEED_RECORDS, HSORT_TRANSPORT_AUTO);
        return ranks_finish();
    }
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(argv[1], modes[i].name) == 0) {
            modes[i].walk();
            return ranks_finish();
        }
    walk_all(DEED_CREATE, HSORT_TRANSPORT_STAGED);
    walk_all(DEED_CHECK, HSORT_TRANSPORT_STAGED);
    walk_all(DEED_SORT_TO, HSORT_TRANSPORT_STAGED);
    if (!cuda) { // a context with a GPU takes long to make, and the last walk has passed all these places
        walk_all(DEED_SORT, HSORT_TRANSPORT_STAGED);
        walk_all(DEED_SORT, HSORT_TRANSPORT_MPI);
    }
    exchange = HSORT_EXCHANGE_DIRECT;
    walk_all(DEED_SORT_TO, HSORT_TRANSPORT_STAGED);
    if (!cuda)
        walk_all(DEED_SORT, HSORT_TRANSPORT_STAGED);
    walk_stopped(FAULT_KERNEL);
    if (!cuda) {
        walk_stopped(FAULT_COPY);
        walk_stopped(FAULT_MPI);
    }
    return ranks_finish();
}
#else
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    return ranks_skip("faults are not built in: configure with -DHYPERSORT_FAULTS=ON");
}
#endif
