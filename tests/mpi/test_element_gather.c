/* Elements are where an index names them, byte for byte, whichever ranks they lie on, and nothing else is written: in, index and
 * poison around every buffer stay unchanged. The oracle: every rank knows the whole index, and a function gives the bytes of the
 * element at any position. Bytes that cross between ranks are counted, too. One list of the index serves several runs, both ways, for
 * elements of sizes that grow and shrink, in slices of one element and more.
 *
 *     index      random, a permutation, one position only, reversed, few positions, all on one owner; empty on some ranks
 *     huge       one rank claims 2^61 elements, of which only the first exist: codes of 16 bytes on ranks with 4 entries or
 *                more, of 8 on the others
 *     outside    a position outside of the array, on one rank: the same error on all
 *     again      what other ranks map of the slice stays mapped from one list to the next
 *     faults     each passage of each site fails, on the first, a middle and the last rank: the same error on all, and the next
 *                gather is right
 *
 *     test_element_gather          the host engine, by staged and mpi, and one whose memory ranks map (shared_engine.h), by ipc
 *     test_element_gather cuda     the cuda engine, by the transport that is chosen, and by staged */
#include "mpi/exchange/element_gather.h"
#include "mpi/transport/transport.h"
#include "tests/mpi/gather_trial.h"
#include "tests/mpi/guarded_array.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_engine.h"

hsort_status __real_engine_open_host(int threads, size_t memory_limit,
                                     struct engine **opened); /* shared_engine.c wraps it */

static struct spare_memory spare;
static struct kept_memory slice_memory;
static struct gather_slice slice = {.kept = &slice_memory};
static struct transport *transport;

/* ---- arrays ------------------------------------------------------------------------------------------------------- */

/* Make this rank's index. */
static struct guarded_array make_own_index(const struct trial *t)
{
    const int64_t first = t->entry_first[comm.rank], count = t->entry_first[comm.rank + 1] - first;
    struct guarded_array index = array_make((size_t)count * sizeof(int64_t));
    memcpy(array_image(&index), t->position + first, index.bytes);
    array_put(&index);
    return index;
}

/* Make [count] elements with numbers first, first + 1, ...; or poison, to be written. */
static struct guarded_array make_elements(uint64_t seed, int64_t first, int64_t count, size_t bytes,
                                          bool poison)
{
    struct guarded_array a = array_make((size_t)count * bytes);
    for (int64_t i = 0; i < count && !poison; i++)
        make_element(seed, first + i, bytes, array_image(&a) + (size_t)i * bytes);
    array_put(&a);
    return a;
}

/* ---- what must come of it ----------------------------------------------------------------------------------------- */

static int64_t own_elements(const struct trial *t)
{
    return t->element_first[comm.rank + 1] - t->element_first[comm.rank];
}

static int64_t own_entries(const struct trial *t)
{
    return t->entry_first[comm.rank + 1] - t->entry_first[comm.rank];
}

/* Count the elements that this rank must send. */
static int64_t count_sent(const struct trial *t, bool gathers)
{
    int64_t sent = 0;
    for (int64_t i = 0; i < t->entries; i++) {
        const int owner = owner_of(t->offset, t->position[i]), names = owner_of(t->entry_first, i);
        sent += owner != names && comm.rank == (gathers ? owner : names);
    }
    return sent;
}

static void expect_gathered(const struct trial *t, size_t bytes, struct guarded_array *out)
{
    const int64_t first = t->entry_first[comm.rank];
    for (int64_t i = 0; i < own_entries(t); i++)
        make_element(t->seed, t->position[first + i], bytes, array_image(out) + (size_t)i * bytes);
}

/* If several entries name an element, each byte that is found there is right if it comes from one of these entries. */
static void expect_scattered(const struct trial *t, size_t bytes, struct guarded_array *out)
{
    unsigned char *element = malloc(bytes), *named = calloc((size_t)own_elements(t) + 1, 1);
    if (!element || !named)
        MPI_Abort(MPI_COMM_WORLD, 1);
    array_fetch(out);
    for (int64_t i = 0; i < t->entries; i++) {
        if (owner_of(t->offset, t->position[i]) != comm.rank)
            continue;
        const size_t at = (size_t)(t->position[i] - t->offset[comm.rank]);
        unsigned char *image = array_image(out) + at * bytes;
        const unsigned char *found = out->found + GUARD + at * bytes;
        make_element(~t->seed, i, bytes, element);
        for (size_t byte = 0; byte < bytes; byte++)
            if (!named[at] || element[byte] == found[byte])
                image[byte] = element[byte];
        named[at] = 1;
    }
    free(element);
    free(named);
}

static void check_moved(const struct trial *t, bool gathers, size_t bytes, int64_t moved)
{
    const int64_t sent = count_sent(t, gathers) * (int64_t)bytes;
    CHECK(moved == 1000 + sent, "%s: rank %d: %lld bytes counted, %lld sent", faults_case, comm.rank,
          (long long)moved - 1000, (long long)sent);
}

/* Scatter elements back to where a permutation has taken them from. */
static void check_inverse(struct element_gather *gather, const struct trial *t, size_t bytes,
                          struct guarded_array *in, const struct guarded_array *gathered)
{
    struct guarded_array back = make_elements(0, 0, own_elements(t), bytes, true);
    int64_t moved = 0;
    const hsort_status status =
        element_gather_run(gather, true, bytes, array_at(gathered), array_at(&back), &moved);
    CHECK(status == HSORT_OK, "%s: %s", faults_case, comm.error);
    memcpy(back.image, in->image, in->bytes + 2 * GUARD);
    array_check(&back, "elements that went there and back");
    array_drop(&back);
}

static void check_gather(struct element_gather *gather, const struct trial *t, size_t bytes)
{
    struct guarded_array in = make_elements(t->seed, t->offset[comm.rank], own_elements(t), bytes, false);
    struct guarded_array out = make_elements(0, 0, own_entries(t), bytes, true);
    int64_t moved = 1000;
    const hsort_status status =
        element_gather_run(gather, false, bytes, array_at(&in), array_at(&out), &moved);
    CHECK(status == HSORT_OK, "%s: %s", faults_case, comm.error);
    check_moved(t, true, bytes, moved);
    expect_gathered(t, bytes, &out);
    array_check(&out, "what was gathered");
    array_check(&in, "what was gathered from");
    if (t->kind == KIND_PERMUTATION)
        check_inverse(gather, t, bytes, &in, &out);
    array_drop(&in);
    array_drop(&out);
}

static void check_scatter(struct element_gather *gather, const struct trial *t, size_t bytes)
{
    struct guarded_array in =
        make_elements(~t->seed, t->entry_first[comm.rank], own_entries(t), bytes, false);
    struct guarded_array out = make_elements(0, 0, own_elements(t), bytes, true);
    int64_t moved = 1000;
    const hsort_status status =
        element_gather_run(gather, true, bytes, array_at(&in), array_at(&out), &moved);
    CHECK(status == HSORT_OK, "%s: %s", faults_case, comm.error);
    check_moved(t, false, bytes, moved);
    expect_scattered(t, bytes, &out);
    array_check(&out, "what was scattered");
    array_check(&in, "what was scattered from");
    array_drop(&in);
    array_drop(&out);
}

static hsort_status open_gather(const struct trial *t, const struct guarded_array *index,
                                struct element_gather **gather)
{
    status_clear();
    comm.error[0] = '\0';
    spare.engine = engine;
    slice.most_bytes = t->slice_bytes;
    const hsort_status status = element_gather_open(&comm, &spare, comm_is_alone(&comm) ? NULL : &slice,
                                                    comm_is_alone(&comm) ? NULL : transport, t->offset,
                                                    array_at(index), own_entries(t), gather);
    CHECK((status == HSORT_OK) == (*gather != NULL), "%s: status %d", faults_case, status);
    return status;
}

/* Drop the slice as its contract wants it. Collective. */
static void drop_slice(void)
{
    CHECK(transport_unmap(transport, &comm, true) == HSORT_OK, "%s", comm.error);
    kept_drop(&slice_memory, engine);
}

static void check_trial(const struct trial *t)
{
    struct guarded_array index = make_own_index(t);
    struct element_gather *gather;
    faults_watch(60);
    const hsort_status status = open_gather(t, &index, &gather);
    CHECK(status == HSORT_OK, "%s: %s", faults_case, comm.error);
    for (int run = 0; status == HSORT_OK && run < RUNS; run++) {
        check_gather(gather, t, t->sizes[run]);
        check_scatter(gather, t, t->sizes[run]);
    }
    element_gather_close(gather);
    spare_drop(&spare); // which no rank maps
    array_check(&index, "index");
    array_drop(&index);
    faults_watch(0);
}

/* ---- mappings ----------------------------------------------------------------------------------------------------- */

/* Open more lists of the same sizes: what is sent lies where it lay, and nobody maps it anew. */
static void test_again(uint64_t seed)
{
    const bool all_map = engine->ops->kind == HSORT_ENGINE_HOST && transport->ops->forget && !shared_may_map;
    static struct trial t;
    drop_slice();
    for (int again = 0; again < 3; again++) {
        const int before = shared_opened;
        t = (struct trial){.kind = KIND_RANDOM, .sizes = {4, 12, 3}, .slice_bytes = 40};
        make_even_trial(&t, seed);
        snprintf(faults_case, sizeof faults_case, "the same sizes, %d before", again);
        check_trial(&t);
        CHECK(again > 0 ? shared_opened == before : shared_opened > before || !all_map,
              "%s: rank %d: %d mappings opened", faults_case, comm.rank, shared_opened - before);
    }
}

/* The memory of a slice must be enough, little more than enough, never beyond that of the largest slice, and the same for sizes close
 * to each other. */
static void test_slice_room(uint64_t *random)
{
    const size_t largest = gather_slice_room(SIZE_MAX);
    CHECK(largest == 64 << 20 && gather_slice_room(largest - 1) == largest && gather_slice_room(0) == 0,
          "%zu", largest);
    for (int i = 0; i < 1000; i++) {
        const size_t bytes = 1 + (size_t)(check_random(random) >> (38 + i % 26)),
                     room = gather_slice_room(bytes);
        CHECK(room >= bytes && room - bytes <= bytes / 8 && gather_slice_room(room) == room,
              "%zu bytes: room for %zu", bytes, room);
    }
}

/* ---- errors ------------------------------------------------------------------------------------------------------- */

/* Check that every rank has this status, and the same line, which names `rank` and has `cause` in it. */
static void check_agreed(hsort_status status, hsort_status wanted, int rank, const char *cause)
{
    char first[sizeof comm.error], begin[32];
    int least = status;
    memcpy(first, comm.error, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Bcast(&least, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(begin, sizeof begin, "rank %d on ", rank);
    CHECK((int)status == least && (wanted == HSORT_OK || status == wanted), "%s: status %d", faults_case,
          status);
    CHECK(strcmp(first, comm.error) == 0, "%s: \"%s\", rank 0 has \"%s\"", faults_case, comm.error, first);
    CHECK(strncmp(first, begin, strlen(begin)) == 0 && strstr(first, cause) && !strchr(first, '\n'),
          "%s: \"%s\"", faults_case, first);
}

/* A rank that is alone finds what is outside only as it walks the index, and then scatters nothing. */
static hsort_status walk_outside(struct element_gather *gather, const struct trial *t)
{
    struct guarded_array entries = make_elements(t->seed, 0, own_entries(t), 8, false);
    struct guarded_array elements = make_elements(t->seed, 0, own_elements(t), 8, true);
    int64_t moved = 0;
    const hsort_status scattered =
        element_gather_run(gather, true, 8, array_at(&entries), array_at(&elements), &moved);
    array_check(&elements, "what was to be scattered to");
    status_clear();
    comm.error[0] = '\0';
    const hsort_status gathered =
        element_gather_run(gather, false, 8, array_at(&elements), array_at(&entries), &moved);
    CHECK(comm_is_alone(&comm) && scattered == gathered, "%s: %d by a scatter, %d by a gather", faults_case,
          scattered, gathered);
    element_gather_close(gather);
    array_drop(&entries);
    array_drop(&elements);
    return gathered;
}

/* Put `position` in place of some entry of rank `bad`; the other ranks' entries are fine, or there are none. */
static void check_outside(int bad, int64_t position, uint64_t seed)
{
    struct trial t = {.kind = KIND_RANDOM};
    struct element_gather *gather;
    char cause[128];
    make_trial(&t, 50, 0, false, seed);
    for (int rank = 0; rank < comm.size; rank++)
        t.entry_first[rank + 1] = t.entry_first[rank] + (rank == bad ? 7 : rank % 3);
    t.entries = t.entry_first[comm.size];
    make_index(&t, &seed);
    const int64_t count = t.entry_first[bad + 1] - t.entry_first[bad];
    t.position[t.entry_first[bad] + (int64_t)(seed % (uint64_t)count)] = position;
    snprintf(faults_case, sizeof faults_case, "position %lld on rank %d", (long long)position, bad);
    snprintf(cause, sizeof cause, ": 1 of %lld positions lie outside of the array of 50 elements",
             (long long)count);
    struct guarded_array index = make_own_index(&t);
    faults_watch(60);
    hsort_status status = open_gather(&t, &index, &gather);
    if (status == HSORT_OK)
        status = walk_outside(gather, &t);
    check_agreed(status, HSORT_ARGUMENT, bad, cause);
    array_check(&index, "index");
    array_drop(&index);
    faults_watch(0);
}

static void test_outside(uint64_t seed)
{
    const int64_t positions[] = {-1, 50, INT64_MIN, INT64_MAX};
    for (int i = 0; i < 12; i++)
        check_outside(i % 3 == 0   ? 0
                      : i % 3 == 1 ? comm.size / 2
                                   : comm.size - 1,
                      positions[i / 3], check_random(&seed));
}

#ifdef HSORT_FAULTS
static const struct {
    enum fault_site site;
    const char *name;
} sites[] = {{FAULT_ALLOC, "alloc"}, {FAULT_KERNEL, "kernel"}, {FAULT_COPY, "copy"}, {FAULT_MPI, "mpi"}};

/* Open, gather, then scatter larger elements, until something fails. */
static hsort_status run_failing(const struct trial *t, const struct guarded_array *index,
                                enum fault_site site)
{
    struct guarded_array elements = make_elements(1, 0, own_elements(t), t->sizes[1], false);
    struct guarded_array entries = make_elements(1, 0, own_entries(t), t->sizes[1], true);
    struct element_gather *gather;
    int64_t moved = 0;
    if (site == FAULT_ALLOC) { // so that all memory that is taken is allocated; for other sites that would only take time
        spare_drop(&spare);
        drop_slice();
    }
    fault_pause(false);
    hsort_status status = open_gather(t, index, &gather);
    if (status == HSORT_OK)
        status =
            element_gather_run(gather, false, t->sizes[0], array_at(&elements), array_at(&entries), &moved);
    if (status == HSORT_OK)
        status =
            element_gather_run(gather, true, t->sizes[1], array_at(&entries), array_at(&elements), &moved);
    fault_pause(true);
    element_gather_close(gather);
    array_drop(&elements);
    array_drop(&entries);
    return status;
}

/* Returns whether the nth passage was reached. */
static bool check_failing(const struct trial *t, int site, int failing, int nth)
{
    struct guarded_array index = make_own_index(t);
    snprintf(faults_case, sizeof faults_case, "passage %d of %s on rank %d fails", nth, sites[site].name,
             failing);
    faults_watch(60);
    fault_set(sites[site].site, comm.rank == failing ? nth : 0);
    const hsort_status status = run_failing(t, &index, sites[site].site);
    fault_pause(false);
    int reached = comm.rank == failing && !fault_untouched(sites[site].site, nth);
    fault_pause(true);
    MPI_Bcast(&reached, 1, MPI_INT, failing, MPI_COMM_WORLD);
    CHECK((status != HSORT_OK) == (reached != 0), "%s: rank %d: status %d", faults_case, comm.rank, status);
    if (reached)
        check_agreed(status, HSORT_OK, failing, ": ");
    faults_watch(0);
    array_drop(&index);
    return reached != 0;
}

/* The nth piece of memory lacks, and the rank's next message fails: that is what is said, and not that memory lacks, after which a
 * caller would begin anew. Returns whether that piece was asked for; *both counts the times when the message was reached, too. */
static bool check_failing_twice(const struct trial *t, int failing, int nth, int *both)
{
    struct guarded_array index = make_own_index(t);
    snprintf(faults_case, sizeof faults_case, "passage %d of alloc and the next message of rank %d fail", nth,
             failing);
    faults_watch(60);
    fault_set(FAULT_ALLOC, comm.rank == failing ? nth : 0);
    fault_set(FAULT_MPI, comm.rank == failing);
    const hsort_status status = run_failing(t, &index, FAULT_ALLOC);
    fault_pause(false);
    int reached[2] = {comm.rank == failing && !fault_untouched(FAULT_ALLOC, nth),
                      comm.rank == failing && !fault_untouched(FAULT_MPI, 1)};
    fault_pause(true);
    MPI_Bcast(reached, 2, MPI_INT, failing, MPI_COMM_WORLD);
    if (reached[1])
        check_agreed(status, HSORT_MPI, failing, "injected fault");
    *both += reached[0] && reached[1];
    faults_watch(0);
    array_drop(&index);
    return reached[0] != 0;
}

static void test_failure(uint64_t seed)
{
    const int ranks[] = {0, comm.size / 2, comm.size - 1};
    struct trial t = {.kind = KIND_RANDOM, .sizes = {8, 12, 4}, .slice_bytes = 36};
    make_even_trial(&t, seed);
    fault_pause(true);
    for (int site = 0; site < (int)(sizeof sites / sizeof sites[0]); site++)
        for (int i = 0; i < 3; i++) {
            int nth = 1;
            if (i > 0 && ranks[i] == ranks[i - 1])
                continue;
            while (check_failing(&t, site, ranks[i], nth))
                nth++;
            snprintf(faults_case, sizeof faults_case, "after %d failures of %s", nth - 1, sites[site].name);
            check_trial(&t);
            CHECK(nth > 1 || sites[site].site == FAULT_COPY || comm_is_alone(&comm), "%s", faults_case);
        }
    int both = 0, nth = 1;
    while (check_failing_twice(&t, comm.size - 1, nth, &both))
        nth++;
    CHECK(both > 0 || comm_is_alone(&comm), "no message failed after memory had lacked");
    fault_pause(false);
}
#endif

/* ---- engines and transports --------------------------------------------------------------------------------------- */

static void test_over(const char *name, hsort_status opened, uint64_t seed)
{
    CHECK(opened == HSORT_OK, "%s: %s", name, status_text());
    if (comm_agree(&comm, opened) != HSORT_OK)
        return;
    for (int i = 0; i < TRIALS; i++) {
        static struct trial t;
        draw_trial(&t, i, check_random(&seed));
        check_trial(&t);
    }
    test_again(check_random(&seed));
    test_outside(check_random(&seed));
#ifdef HSORT_FAULTS
    test_failure(check_random(&seed));
#endif
    if (comm.rank == 0)
        printf("%s: %d trials\n", name, TRIALS);
    drop_slice();
    transport->ops->close(transport);
    transport = NULL;
}

/* Call it after the last transport. */
static void close_engine(void)
{
    spare_drop(&spare);
    spare_drop(&array_memory);
    engine->ops->close(engine);
}

/* Open ipc on top of staged; if no two ranks map, staged alone. */
static hsort_status open_mapping(void)
{
    struct transport *staged = NULL;
    char why[256];
    TRY(comm_agree(&comm, transport_open_staged(&comm, engine, 64, true, &staged)));
    const hsort_status status = transport_open_ipc(&comm, engine, staged, true, &transport, why, sizeof why);
    if (!transport)
        transport = staged;
    return status;
}

static void test_host(uint64_t seed)
{
    CHECK(__real_engine_open_host(1, 0, &engine) == HSORT_OK, "%s", status_text());
    test_over("staged", transport_open_staged(&comm, engine, 64, true, &transport), check_random(&seed));
    test_over("mpi", transport_open_mpi(&comm, engine, 1024, &transport), check_random(&seed));
    close_engine();
    CHECK(shared_engine_open(&engine) == HSORT_OK, "%s", status_text());
    test_over("ipc", open_mapping(), check_random(&seed));
    shared_may_map = shared_some_may;
    test_over("ipc of some", open_mapping(), check_random(&seed));
    CHECK(shared_mapped == 0, "%d allocations are still mapped", shared_mapped);
    close_engine();
}

static void test_cuda(uint64_t seed)
{
    const size_t chunk_bytes =
        4096; // each chunk is a copy to or from a GPU: a large element would be a thousand chunks of 64 bytes
    const struct transport_options options = {.transport = HSORT_TRANSPORT_AUTO};
    int takes;
    const hsort_status status = open_cuda_engine();
    CHECK(status == HSORT_OK, "%s", status_text());
    if (comm_agree(&comm, status) != HSORT_OK)
        return;
    test_over("chosen", transport_choose(&comm, engine, &options, &transport, &takes), check_random(&seed));
    test_over("staged", transport_open_staged(&comm, engine, chunk_bytes, true, &transport),
              check_random(&seed));
    close_engine();
}

int main(int argc, char **argv)
{
    int rank, size;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const uint64_t seed = ranks_seed();
    uint64_t random = seed;
    test_slice_room(&random);
    if (comm_open(MPI_COMM_WORLD, &comm) != HSORT_OK || size > MOST_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    (cuda ? test_cuda : test_host)(seed);
    comm_close(&comm);
    return ranks_finish();
}
