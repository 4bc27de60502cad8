/* The cuts of runs that lie in a store (src/library/disk_cuts.h): exact in the order by (key, run, position), against a sort of all
 * keys; and what they cost. Costs are counted, not timed: messages by functions that stand before MPI's own (PMPI), reads by the
 * store, which is memory that every rank has in full.
 *
 *     messages   as many as the fences take, however many cuts there are and however little memory the ranges may have
 *     bytes      each fence once; for each cut two blocks of each run, and at most three, by all ranks together
 *     memory     what the search was allowed, however much lies between fences: as malloc() counts it at each read
 *
 *     test_disk_cuts             drawn cases, and one of 300 runs
 *     test_disk_cuts RUNS        one case with RUNS runs; prints its counts and seconds */
#include "src/library/disk_cuts.h"
#include "src/library/disk_plan.h"
#include "src/library/element_order.h"
#include <malloc.h>
#include <stdatomic.h>
#include <string.h>
#include "tests/support/faults.h"
#include "tests/support/ranks.h"

enum { CASES = 60, MOST_RUNS = 40, RUNS = 300, PART = 1024, FENCE = 16, MESSAGES_OF_FENCES = 300 };

/* Where wide elements have the halves of their keys. */
enum { UPPER_AT = 20, LOWER_AT = 5, KEY_END = UPPER_AT + 4 };

/* The runs of a case, as a store. */
struct memory_store {
    struct run_plan plan;
    uint64_t *keys;            /* [elements] run by run, each sorted */
    atomic_llong reads, bytes; /* of this rank */
    int64_t fails_at;          /* the read of this number fails; 0: none */
    atomic_llong memory;       /* of this rank, at most, at any read */
};

static struct comm comm;
static atomic_llong messages; /* collective calls of this rank */

/* ---- MPI's functions, counted ---------------------------------------------------------------------------------------- */

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm world)
{
    messages++;
    return PMPI_Allreduce(from, to, count, type, op, world);
}

int MPI_Allgather(const void *from, int count, MPI_Datatype type, void *to, int to_count,
                  MPI_Datatype to_type, MPI_Comm world)
{
    messages++;
    return PMPI_Allgather(from, count, type, to, to_count, to_type, world);
}

int MPI_Allgatherv(const void *from, int count, MPI_Datatype type, void *to, const int *counts,
                   const int *places, MPI_Datatype to_type, MPI_Comm world)
{
    messages++;
    return PMPI_Allgatherv(from, count, type, to, counts, places, to_type, world);
}

int MPI_Alltoallv(const void *from, const int *counts, const int *places, MPI_Datatype type, void *to,
                  const int *to_counts, const int *to_places, MPI_Datatype to_type, MPI_Comm world)
{
    messages++;
    return PMPI_Alltoallv(from, counts, places, type, to, to_counts, to_places, to_type, world);
}

int MPI_Exscan(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm world)
{
    messages++;
    return PMPI_Exscan(from, to, count, type, op, world);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm world)
{
    messages++;
    return PMPI_Bcast(buffer, count, type, root, world);
}

/* ---- The store ------------------------------------------------------------------------------------------------------- */

/* AddressSanitizer's; not every compiler has the header. */
size_t __sanitizer_get_current_allocated_bytes(void);

/* As malloc() counts it. */
static int64_t memory_in_use(void)
{
#ifdef __SANITIZE_ADDRESS__ // mallinfo2() knows nothing of its malloc()
    return (int64_t)__sanitizer_get_current_allocated_bytes();
#else
    const struct mallinfo2 facts = mallinfo2();
    return (int64_t)(facts.uordblks + facts.hblkhd);
#endif
}

/* element [width] = an element with that key: the bare key, or the halves of the key among zeros. */
static void put_element(uint64_t key, size_t width, char *element)
{
    const uint32_t upper = (uint32_t)(key >> 32), lower = (uint32_t)key;
    memset(element, 0, width);
    if (width == sizeof key) {
        memcpy(element, &key, sizeof key);
        return;
    }
    memcpy(element + UPPER_AT, &upper, sizeof upper);
    memcpy(element + LOWER_AT, &lower, sizeof lower);
}

/* run_store.read_run: elements, then fences; any bytes of them. */
static hsort_status read_run(void *user, int64_t run, int64_t at, size_t bytes, void *to)
{
    struct memory_store *store = user;
    const int64_t count = plan_part_count(&store->plan, run), step = store->plan.fence_elements;
    const int64_t width = (int64_t)store->plan.element_bytes, end = at + (int64_t)bytes;
    const uint64_t *keys = store->keys + run * store->plan.part_elements;
    const int64_t number = atomic_fetch_add(&store->reads, 1) + 1;
    const long long memory = memory_in_use();
    long long most = store->memory;
    while (memory > most && !atomic_compare_exchange_weak(&store->memory, &most, memory))
        ;
    atomic_fetch_add(&store->bytes, (long long)bytes);
    CHECK(at >= 0 && end <= plan_run_bytes(&store->plan, run), "run %lld is read beyond its end",
          (long long)run);
    char *element = malloc((size_t)width);
    for (int64_t i = at / width; i * width < end; i++) {
        const int64_t begin = i * width > at ? i * width : at,
                      up_to = (i + 1) * width < end ? (i + 1) * width : end;
        put_element(i < count ? keys[i] : keys[(i - count) * step], (size_t)width, element);
        memcpy((char *)to + (begin - at), element + (begin - i * width), (size_t)(up_to - begin));
    }
    free(element);
    return number == store->fails_at ? status_fail(HSORT_IO, "the disk of the test fails") : HSORT_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Make runs, the same on every rank. `different`: how many different keys; 0: any. follow: runs follow each other. */
static void make_runs(struct memory_store *store, size_t width, int64_t parts, int64_t part, int64_t last,
                      int64_t fence, uint64_t different, bool follow, uint64_t seed)
{
    uint64_t random = seed;
    *store = (struct memory_store){.plan = {.elements = (parts - 1) * part + last,
                                            .element_bytes = width,
                                            .part_elements = part,
                                            .fence_elements = fence,
                                            .parts = parts}};
    store->keys = malloc((size_t)(parts * part) * sizeof *store->keys);
    store->plan.runs = calloc((size_t)parts, sizeof *store->plan.runs);
    char *fences = malloc((size_t)(part / fence + 1) * width);
    for (int64_t run = 0; run < parts; run++) {
        uint64_t *keys = store->keys + run * part;
        const int64_t count = plan_part_count(&store->plan, run), many = plan_fences(&store->plan, run);
        for (int64_t i = 0; i < count; i++) {
            const uint64_t drawn = check_random(&random);
            keys[i] = (different > 0 ? drawn % different : drawn >> 16) + (follow ? (uint64_t)run << 48 : 0);
        }
        qsort(keys, (size_t)count, sizeof *keys, compare_keys);
        for (int64_t i = 0; i < many; i++)
            put_element(keys[i * fence], width, fences + (size_t)i * width);
        store->plan.runs[run] =
            (struct run_facts){.is_made = 1, .fences = fences_checksum(fences, (size_t)many * width)};
    }
    free(fences);
}

static void free_runs(struct memory_store *store)
{
    free(store->keys);
    free(store->plan.runs);
}

static struct run_store store_of(struct memory_store *store)
{
    return (struct run_store){.user = store, .read_run = read_run};
}

/* Whom the search asks to stop: the question of this number is answered so; 0: none. */
struct stop_at {
    int64_t number, asked;
};

/* hsort_should_stop_fn. */
static int stop_now(void *user)
{
    struct stop_at *at = user;
    return ++at->asked == at->number;
}

static hsort_status find_or_stop(struct memory_store *store, size_t bytes, struct stop_at *at, int64_t *cuts)
{
    const struct run_store as_store = store_of(store);
    const struct keymap half = keymap_make(HSORT_U32, HSORT_ASCENDING);
    struct pass_elements wide = {.bytes = store->plan.element_bytes,
                                 .field_count = 2,
                                 .fields = {{.bytes = 4, .map = half}, {.bytes = 4, .map = half}},
                                 .offsets = {UPPER_AT, LOWER_AT}};
    wide.key_bits = element_place_fields(wide.fields, wide.field_count, 0);
    const bool bare = store->plan.element_bytes == sizeof(uint64_t);
    const struct pass_sort sort = {.map = keymap_make(HSORT_U64, HSORT_ASCENDING),
                                   .elements = bare ? NULL : &wide};
    const hsort_options options = {.should_stop = at ? stop_now : NULL, .should_stop_user = at};
    store->reads = store->bytes = store->memory = 0;
    messages = 0;
    comm.error[0] = '\0';
    status_clear();
    return disk_cuts_find(&comm, &sort, &as_store, &store->plan, &options, bytes, cuts);
}

static hsort_status find(struct memory_store *store, size_t bytes, int64_t *cuts)
{
    return find_or_stop(store, bytes, NULL, cuts);
}

/* ---- The second opinion ------------------------------------------------------------------------------------------------ */

struct place {
    uint64_t key;
    int64_t run, position;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    if (left->run != right->run)
        return left->run < right->run ? -1 : 1;
    return (left->position > right->position) - (left->position < right->position);
}

/* Are the cuts those of all keys in order? */
static bool are_right(const struct memory_store *store, const int64_t *cuts)
{
    const struct run_plan *plan = &store->plan;
    struct place *all = malloc((size_t)plan->elements * sizeof *all);
    int64_t *before = calloc((size_t)plan->parts, sizeof *before), next = 0;
    bool right = true;
    for (int64_t run = 0, i = 0; run < plan->parts; run++)
        for (int64_t at = 0; at < plan_part_count(plan, run); at++)
            all[i++] = (struct place){store->keys[run * plan->part_elements + at], run, at};
    qsort(all, (size_t)plan->elements, sizeof *all, compare_places);
    for (int64_t segment = 0; segment <= plan->parts; segment++) {
        const int64_t end = segment < plan->parts ? segment * plan->part_elements : plan->elements;
        for (; next < end; next++)
            before[all[next].run]++;
        right =
            right && memcmp(before, cuts + segment * plan->parts, (size_t)plan->parts * sizeof *before) == 0;
    }
    free(all);
    free(before);
    return right;
}

/* ---- Cases --------------------------------------------------------------------------------------------------------------- */

/* All ranks together must not have read more than the cuts need; a rank must not have sent more messages than its fences need. */
static void check_cost(const struct memory_store *store, const char *text)
{
    const struct run_plan *plan = &store->plan;
    const int64_t fences = plan->parts * (plan->part_elements / plan->fence_elements + 1);
    const int64_t blocks = (plan->parts - 1) * (2 * plan->parts + 3) * plan->fence_elements;
    int64_t bytes = 0, most = 0, least;
    comm_sum(&comm, store->bytes, &bytes);
    comm_range(&comm, messages, &least, &most);
    CHECK(bytes <= (fences + blocks) * (int64_t)plan->element_bytes, "%s: %lld bytes are read", text,
          (long long)bytes);
    CHECK(most <= MESSAGES_OF_FENCES * (1 + 2 * plan->parts / 256), "%s: %lld messages", text,
          (long long)most);
    if (comm.rank == 0)
        printf("%s on %d ranks: %lld messages, %lld reads of rank 0, %lld bytes of all\n", text, comm.size,
               (long long)most, (long long)store->reads, (long long)bytes);
}

static void run_many(int64_t parts, uint64_t seed)
{
    struct memory_store store;
    char text[64];
    int64_t *cuts = calloc((size_t)((parts + 1) * parts), sizeof *cuts);
    snprintf(text, sizeof text, "%lld runs", (long long)parts);
    make_runs(&store, sizeof(uint64_t), parts, PART, PART - 1, FENCE, 0, false, seed);
    const double begin = MPI_Wtime();
    const hsort_status status = find(&store, 1, cuts); // the ranges of one cut at a time
    const double seconds = MPI_Wtime() - begin;
    CHECK(status == HSORT_OK, "%s: %s", text, comm.error);
    check_cost(&store, text);
    if (comm.rank == 0)
        printf("%.3f s\n", seconds);
    if (parts <= RUNS)
        CHECK(are_right(&store, cuts), "%s: the cuts are others", text);
    free_runs(&store);
    free(cuts);
}

static void run_drawn(uint64_t seed)
{
    static const uint64_t kinds[] = {0, 1, 2, 20};
    static const size_t widths[] = {sizeof(uint64_t), KEY_END, 900, 30000, 70000};
    for (int number = 0; number < CASES; number++) {
        uint64_t random = seed + (uint64_t)number;
        struct memory_store store;
        const int64_t parts = 1 + (int64_t)(check_random(&random) % MOST_RUNS);
        const int64_t part = 1 + (int64_t)(check_random(&random) % 200),
                      fence = 1 + (int64_t)(check_random(&random) % 40);
        const int64_t last = 1 + (int64_t)(check_random(&random) % (uint64_t)part);
        const size_t bytes = check_random(&random) % 2 ? 1 : 1 << 20, width = widths[number % 5];
        int64_t *cuts = calloc((size_t)((parts + 1) * parts), sizeof *cuts);
        make_runs(&store, width, parts, part, last, fence, kinds[number % 4], check_random(&random) % 3 == 0,
                  random);
        const hsort_status status = find(&store, bytes, cuts);
        CHECK(status == HSORT_OK && are_right(&store, cuts),
              "case %d: %lld runs of %lld, %zu bytes each, fences of %lld: %s", number, (long long)parts,
              (long long)part, width, (long long)fence, status == HSORT_OK ? "other cuts" : comm.error);
        free_runs(&store);
        free(cuts);
    }
}

/* Search ranges that hold many times the memory. What each thread reads at once comes on top, and so do tables. */
static void run_large(size_t width, int64_t parts, int64_t part, int64_t fence, uint64_t seed)
{
    enum { BYTES = 1 << 20, PIECE = 64 << 10, OF_RUN = 1 << 10, READERS = 4 };
    struct memory_store store;
    int64_t *cuts = calloc((size_t)((parts + 1) * parts), sizeof *cuts);
    make_runs(&store, width, parts, part, part, fence, 0, false, seed);
    const int64_t ranges = 2 * parts * fence * (int64_t)width;
    const int64_t fences = parts * (part / fence) * (int64_t)disk_cuts_fence_bytes(width);
    const int64_t readers = comm.threads > READERS ? comm.threads : READERS;
    const int64_t allowed = BYTES + parts * OF_RUN + fences + (int64_t)disk_cuts_bytes(parts, comm.size) +
                            readers * (PIECE + 2 * (int64_t)width) + PIECE;
    const int64_t before = memory_in_use();
    const hsort_status status = find(&store, BYTES, cuts);
    CHECK(status == HSORT_OK && are_right(&store, cuts), "elements of %zu bytes: %s", width,
          status == HSORT_OK ? "other cuts" : comm.error);
    CHECK(store.memory - before >= parts / comm.size * (fences / parts),
          "%lld bytes are counted, and the fences alone take more", (long long)store.memory - before);
    CHECK(store.memory - before <= allowed && allowed < ranges / 2,
          "elements of %zu bytes: %lld bytes are taken, %lld are allowed, of ranges of %lld", width,
          (long long)store.memory - before, (long long)allowed, (long long)ranges);
    free_runs(&store);
    free(cuts);
}

/* If a read fails on one rank, all ranks have the error and its line, and none waits. */
static void run_failing(uint64_t seed)
{
    struct memory_store store;
    int64_t cuts[18 * 17];
    make_runs(&store, sizeof(uint64_t), 17, 100, 40, 8, 0, false, seed);
    CHECK(find(&store, 1, cuts) == HSORT_OK, "%s", comm.error);
    const int64_t reads = store.reads;
    for (int failing = 0; failing < comm.size; failing++)
        for (int64_t number = 1; number <= 9; number += 2) {
            int64_t at = 1 + (reads - 1) * (number - 1) / 8;
            store.fails_at = comm.rank == failing ? at : 0;
            int64_t some, least, fails = comm.rank == failing && reads > 0;
            const hsort_status status = find(&store, 1, cuts);
            comm_range(&comm, fails, &least, &some);
            CHECK(!some || (status == HSORT_IO && strstr(comm.error, "the disk of the test fails")),
                  "read %lld of rank %d: status %d, %s", (long long)at, failing, (int)status, comm.error);
        }
    free_runs(&store);
}

/* If one rank is asked to stop, before its first cuts or later, it reads no more, and all ranks return that. */
static void run_stopped(uint64_t seed)
{
    struct memory_store store;
    int64_t cuts[41 * 40], asked = 0, reads = 0;
    make_runs(&store, sizeof(uint64_t), 40, 100, 40, 8, 0, false, seed);
    for (int stopping = 0; stopping < comm.size; stopping++)
        for (int try = 0; try < 3; try++) { // undisturbed, at the last question, at the first one
            struct stop_at at = {.number = comm.rank != stopping || try == 0 ? 0 : try == 1 ? asked : 1};
            const hsort_status status = find_or_stop(&store, 1, &at, cuts);
            CHECK(try == 0
                      ? status == HSORT_OK && at.asked > 1
                      : status == HSORT_STOPPED && strstr(comm.error, "asked to stop while runs were cut"),
                  "try %d of rank %d: status %d after %lld questions, %s", try, stopping, (int)status,
                  (long long)at.asked, comm.error);
            CHECK(at.number == 0 || (at.asked == at.number && store.reads < reads),
                  "%lld reads, %lld undisturbed", (long long)store.reads, (long long)reads);
            reads = try == 0 ? store.reads : reads;
            asked = try == 0 ? at.asked : asked;
        }
    free_runs(&store);
}

int main(int argc, char **argv)
{
    int rank, size;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const uint64_t seed = ranks_seed();
    if (comm_open(MPI_COMM_WORLD, &comm) != HSORT_OK)
        return 1;
    const int64_t wanted = argc > 1 ? atoll(argv[argc - 1]) : 0;
    if (wanted > 0) {
        run_many(wanted, seed);
    } else {
        run_drawn(seed);
        run_failing(seed);
        run_stopped(seed);
        run_many(RUNS, seed);
        run_large(20000, 30, 600, 60, seed);
        run_large(900, 60, 5000, 500, seed);
        run_large(sizeof(uint64_t), 100, 20000, 8000, seed);
    }
    comm_close(&comm);
    return ranks_finish();
}
