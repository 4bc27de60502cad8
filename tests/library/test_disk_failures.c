/* Sorts by way of a store (src/library/disk_passes.h) that end too early, or whose store is damaged.
 *
 *     test_disk_failures          stopped or failed at a drawn place, then again on other ranks: what is kept is not made again;
 *                                 damage between the passes, in kept runs, fences and facts: it is found, or does no harm
 *     test_disk_failures faults   each passage of each fault site, and each call of the store and the streams, failing on the
 *                                 first, a middle and the last rank
 *     test_disk_failures cuda     the same as without an argument, on the cuda engine */
#include "tests/library/disk_case.h"
#include "tests/support/order.h"

enum { SECONDS = 8, GROUPS = 5, MOST_PASSAGES = 3000, TRIES = 4 };

static int rank, size;
static hsort_engine engine;
static struct disk_group groups[GROUPS], all;
static int64_t trials, found, harmless;

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

/* Draw a small case, because each passage of a fault is a sort. Half of the cases have fences at every few elements. */
static struct disk_case draw_case(bool is_records, uint64_t *random)
{
    const uint64_t parts = 2 + check_random(random) % 14;
    struct disk_case c = {.is_records = is_records,
                          .parts = (int64_t)parts,
                          .total =
                              (int64_t)(parts * (1 + check_random(random) % 40) + check_random(random) % 3),
                          .memory_bytes = DISK_PLENTY,
                          .seed = check_random(random)};
    if (is_records) {
        c.bytes = 3 + check_random(random) % 40;
        c.fields[0] = (hsort_field){.bytes = 2, .offset = check_random(random) % (c.bytes - 1)};
        c.fields[1] = (hsort_field){.type = HSORT_I8, .order = HSORT_DESCENDING, .offset = 1};
        c.field_count = 2;
        c.different = (int)(check_random(random) % 4);
    } else {
        choose_distribution(&c.input, random);
        c.input.type = (hsort_type)(check_random(random) % (HSORT_U128 + 1));
        c.input.seed = c.seed;
        c.input.count = c.total;
        c.order = check_random(random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
        c.bytes = hsort_type_bytes(c.input.type);
    }
    if (check_random(random) % 2) {
        c.kept_part = (c.total + c.parts - 1) / c.parts;
        c.kept_fence = 1 + (int64_t)(check_random(random) % 4);
    }
    return c;
}

/* Open all groups at once, because contexts take long to make: all ranks, one rank, all in the other order, some. */
static void open_groups(uint64_t *random)
{
    groups[0] = disk_group_open(0, size, false, engine, 1);
    groups[1] = disk_group_open((int)(check_random(random) % (uint64_t)size), 1, false, engine, 2);
    groups[2] = disk_group_open(0, size, true, engine, 1);
    for (int i = 3; i < GROUPS; i++) {
        const int count = 1 + (int)(check_random(random) % (uint64_t)size);
        const int first = (int)(check_random(random) % (uint64_t)(size - count + 1));
        groups[i] = disk_group_open(first, count, check_random(random) % 2, engine, 1);
    }
    all = groups[0];
}

static const struct disk_group *draw_group(uint64_t *random)
{
    return &groups[check_random(random) % GROUPS];
}

/* ---- Again, on other ranks -------------------------------------------------------------------------------------- */

/* A call that may end early made no part again that was kept (disk_store.c looks), and what was kept is still kept. */
static void check_kept(const struct disk_made *before, const struct disk_made *after)
{
    CHECK(after->kept_runs == before->kept_runs + after->runs &&
              after->kept_segments == before->kept_segments + after->segments,
          "%lld runs and %lld segments were kept, %lld and %lld made, %lld and %lld are: %s",
          (long long)before->kept_runs, (long long)before->kept_segments, (long long)after->runs,
          (long long)after->segments, (long long)after->kept_runs, (long long)after->kept_segments,
          disk_text);
}

/* Make a call in which a drawn rank stops, or fails, at a drawn place; or does not, if that place is never reached. */
static void run_to_some_place(const struct disk_case *c, const struct disk_group *group, bool stops,
                              uint64_t *random)
{
    struct stream_check check;
    const uint64_t draw = check_random(random);
    const enum disk_op op = (enum disk_op)(stops ? DISK_SOURCE_STOP + draw % (DISK_OPS - DISK_SOURCE_STOP)
                                                 : draw % DISK_SOURCE_STOP);
    const int failing = (int)(check_random(random) % (uint64_t)size);
    const int nth = 1 + (int)(check_random(random) % 12);
    const struct disk_made before = disk_made_parts();
    disk_fail(op, rank == failing ? nth : 0);
    const hsort_status status = disk_sort(c, group, &check);
    int reached = rank == failing && !disk_fail_untouched(op);
    MPI_Bcast(&reached, 1, MPI_INT, failing, MPI_COMM_WORLD);
    const struct disk_made after = disk_made_parts();
    check_kept(&before, &after);
    disk_check_agreed(group, status);
    if (group->size > 0)
        CHECK(status == (!reached ? HSORT_OK
                         : stops  ? HSORT_STOPPED
                                  : HSORT_IO),
              "%s %d on rank %d, reached %d: status %d, %s: %s", disk_op_names[op], nth, failing, reached,
              (int)status, hsort_last_error(group->ctx), disk_text);
    if (reached && !stops && group->size > 0)
        CHECK(strstr(hsort_last_error(group->ctx), disk_op_names[op]),
              "%s on rank %d: '%s' has another cause", disk_op_names[op], failing,
              hsort_last_error(group->ctx));
}

static void test_again(bool is_records, uint64_t *random)
{
    struct stream_check check;
    const struct disk_case c = draw_case(is_records, random);
    disk_prepare(&c);
    const int tries = 1 + (int)(check_random(random) % TRIES);
    for (int i = 0; i < tries; i++) {
        const struct disk_group *group = draw_group(random);
        run_to_some_place(&c, group, check_random(random) % 2, random);
    }
    const struct disk_group *last = draw_group(random);
    for (int i = 0; i < 2; i++) { // the second time nothing is left to do
        const struct disk_made before = disk_made_parts();
        const hsort_status status = disk_sort(&c, last, &check);
        const struct disk_made after = disk_made_parts();
        CHECK(status == HSORT_OK, "%s: %s", last->ctx ? hsort_last_error(last->ctx) : "", disk_text);
        check_kept(&before, &after);
        CHECK(i == 0 || (after.runs == 0 && after.segments == 0), "made a second time: %s", disk_text);
        if (status == HSORT_OK)
            disk_check_whole(&c, last, &check);
    }
    trials++;
}

/* Parts that are longer than this call has memory for are refused by the store, and stay. */
static void test_less_memory(uint64_t *random)
{
    struct stream_check check;
    struct disk_case c = draw_case(false, random);
    c.total = c.input.count = 50000;
    c.parts = 2;
    c.kept_part = c.kept_fence = 0;
    disk_prepare(&c);
    const struct disk_group *one = &groups[1];
    disk_fail(DISK_SOURCE_STOP, one->size == 1);
    const hsort_status stopped = disk_sort(&c, one, &check);
    CHECK(one->size == 0 || stopped == HSORT_STOPPED, "status %d: %s", (int)stopped, disk_text);
    c.memory_bytes = 80000;
    const hsort_status status = disk_sort(&c, &all, &check);
    CHECK(status == HSORT_HOST_MEMORY && disk_made_parts().runs == 0, "status %d: %s", (int)status,
          disk_text);
    disk_check_agreed(&all, status);
    c.memory_bytes = DISK_PLENTY;
    CHECK(disk_sort(&c, &all, &check) == HSORT_OK, "%s: %s", hsort_last_error(all.ctx), disk_text);
    disk_check_whole(&c, &all, &check);
}

/* ---- Damage ----------------------------------------------------------------------------------------------------- */

enum damage {
    DAMAGE_BYTE,      /* of an element of a run */
    DAMAGE_SWAP,      /* two elements of a run change places */
    DAMAGE_TURN,      /* a run is reversed */
    DAMAGE_FENCES,    /* anything */
    DAMAGE_ONE_FENCE, /* a bit */
    DAMAGE_ZEROS,     /* a run and its fences, as after a power failure */
    DAMAGE_KINDS
};
static const char *const damage_names[DAMAGE_KINDS] = {"byte",   "swap",      "turn",
                                                       "fences", "one fence", "zeros"};

struct harm {
    enum damage kind;
    uint64_t random;
};

static void swap_elements(char *elements, size_t bytes, int64_t a, int64_t b)
{
    for (size_t i = 0; i < bytes; i++) {
        const char kept = elements[(size_t)a * bytes + i];
        elements[(size_t)a * bytes + i] = elements[(size_t)b * bytes + i];
        elements[(size_t)b * bytes + i] = kept;
    }
}

/* Damage a run between the passes; one rank calls this. */
static void do_harm(const struct disk_case *c, void *user)
{
    const struct harm *harm = user;
    uint64_t random = harm->random;
    int64_t count, fences;
    const int64_t run = (int64_t)(check_random(&random) % (uint64_t)disk_made_parts().parts);
    char *elements = disk_run(c, run, &count, &fences), *fence = elements + (size_t)count * c->bytes;
    const size_t at = check_random(&random) % ((size_t)count * c->bytes),
                 in_fences = check_random(&random) % ((size_t)fences * c->bytes);
    const int bit = 1 << check_random(&random) % 8;
    switch (harm->kind) {
    case DAMAGE_BYTE:
        elements[at] ^= (char)bit;
        break;
    case DAMAGE_SWAP:
        swap_elements(elements, c->bytes, (int64_t)(at / c->bytes),
                      (int64_t)(check_random(&random) % (uint64_t)count));
        break;
    case DAMAGE_TURN:
        for (int64_t i = 0; i < count / 2; i++)
            swap_elements(elements, c->bytes, i, count - 1 - i);
        break;
    case DAMAGE_FENCES:
        for (size_t i = 0; i < (size_t)fences * c->bytes; i++)
            fence[i] = (char)check_random(&random);
        break;
    case DAMAGE_ONE_FENCE:
        fence[in_fences] ^= (char)bit;
        break;
    default:
        memset(elements, 0, (size_t)(count + fences) * c->bytes);
    }
}

static bool is_found(hsort_status status, const struct stream_check *check)
{
    return status == HSORT_IO || check->after.first_disorder >= 0 ||
           check->after.count != check->before.count ||
           memcmp(check->after.fingerprint, check->before.fingerprint, sizeof check->before.fingerprint) != 0;
}

/* A caller that is told that all is well must have the right result. But if records exchange places, a check does not see which of two
 * with equal keys comes first. */
static void test_damage(enum damage kind, uint64_t *random)
{
    struct stream_check check;
    struct harm harm = {.kind = kind, .random = check_random(random)};
    const bool in_bytes = kind == DAMAGE_BYTE || kind == DAMAGE_FENCES || kind == DAMAGE_ONE_FENCE;
    const struct disk_case c = draw_case(in_bytes && check_random(random) % 2, random);
    disk_prepare(&c);
    disk_between(do_harm, &harm);
    const hsort_status status = disk_sort(&c, &all, &check);
    disk_check_agreed(&all, status);
    CHECK(status == HSORT_OK || status == HSORT_IO, "damage %s: status %d, %s: %s", damage_names[kind],
          (int)status, hsort_last_error(all.ctx), disk_text);
    const bool is_seen = is_found(status, &check), is_right = disk_is_right(&c);
    CHECK(is_seen || is_right, "damage %s is not found: %s", damage_names[kind], disk_text);
    CHECK(is_seen || kind != DAMAGE_BYTE, "a changed byte is not found: %s", disk_text);
    CHECK(is_seen || kind != DAMAGE_ONE_FENCE, "a changed fence is not found: %s", disk_text);
    found += is_seen;
    harmless += !is_seen;
}

/* All parts are made and kept; the facts of one part are wrong in one word. */
static void test_lies(uint64_t *random)
{
    struct stream_check check;
    const struct disk_case c = draw_case(check_random(random) % 2, random);
    const bool segment = check_random(random) % 2;
    const int word = (int)(check_random(random) % 4);
    disk_prepare(&c);
    if (disk_sort(&c, &all, &check) != HSORT_OK)
        CHECK(false, "%s: %s", hsort_last_error(all.ctx), disk_text);
    struct run_facts *facts =
        disk_facts(segment, (int64_t)(check_random(random) % (uint64_t)disk_made_parts().parts));
    const struct run_facts right = *facts;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        facts->count += word == 0;
        facts->fingerprint[0] += word == 1;
        facts->fingerprint[1] -= word == 2;
        facts->in_order = word == 3 ? 0 : facts->in_order;
    }
    const hsort_status status = disk_sort(&c, &all, &check);
    disk_check_agreed(&all, status);
    const bool matters = word < 3 || segment; // runs are made of elements in any order
    CHECK(is_found(status, &check) == matters, "word %d of facts is wrong, status %d: %s", word, (int)status,
          disk_text);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        *facts = right;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(disk_sort(&c, &all, &check) == HSORT_OK && !is_found(HSORT_OK, &check), "right facts: %s",
          disk_text);
}

static void lose_run(const struct disk_case *c, void *user)
{
    (void)c;
    disk_lose(*(int64_t *)user);
}

/* If a run is gone between the passes, nothing is written, and the next call makes this run again, and no other. */
static void test_lost(uint64_t *random)
{
    struct stream_check check;
    const struct disk_case c = draw_case(check_random(random) % 2, random);
    const int64_t parts = c.total < c.parts ? c.total : c.parts;
    int64_t run = (int64_t)(check_random(random) % (uint64_t)(parts / 2 + 1));
    disk_prepare(&c);
    disk_between(lose_run, &run);
    const hsort_status status = disk_sort(&c, &all, &check);
    struct disk_made made = disk_made_parts();
    disk_check_agreed(&all, status);
    CHECK(status == HSORT_IO && made.kept_runs == made.parts - 1 && made.kept_segments == 0,
          "run %lld of %lld is lost, status %d: %s", (long long)run, (long long)made.parts, (int)status,
          disk_text);
    CHECK(disk_sort(&c, &all, &check) == HSORT_OK, "%s: %s", hsort_last_error(all.ctx), disk_text);
    made = disk_made_parts();
    CHECK(made.runs == 1 && made.segments == made.parts, "%lld runs are made again: %s", (long long)made.runs,
          disk_text);
    disk_check_whole(&c, &all, &check);
}

/* ---- Each failure ----------------------------------------------------------------------------------------------- */

#ifdef HSORT_FAULTS
/* Sort in memory, with the context in which another sort has failed. */
static void check_context(void)
{
    uint64_t keys[3] = {(uint64_t)rank + 7, 5, 9};
    CHECK(hsort_sort(all.ctx, HSORT_U64, HSORT_ASCENDING, keys, 3, NULL) == HSORT_OK && keys[0] <= keys[1] &&
              keys[1] <= keys[2],
          "%s: afterwards: %s", faults_case, hsort_last_error(all.ctx));
}

/* After a call with a failure on one rank, all ranks have the failure, and the same store and context finish the sort. */
static void check_after_failure(const struct disk_case *c, hsort_status status, bool reached, int failing,
                                const struct disk_made *before)
{
    char who[32];
    const struct disk_made after = disk_made_parts();
    struct stream_check check;
    snprintf(who, sizeof who, "rank %d on ", failing);
    check_kept(before, &after);
    disk_check_agreed(&all, status);
    CHECK((status != HSORT_OK) == reached, "%s: reached %d, status %d: %s", faults_case, reached, (int)status,
          hsort_last_error(all.ctx));
    if (status != HSORT_OK && status != HSORT_STOPPED) // all ranks have left the sort
        CHECK(strncmp(hsort_last_error(all.ctx), who, strlen(who)) == 0, "%s: '%s'", faults_case,
              hsort_last_error(all.ctx));
    check_context();
    CHECK(disk_sort(c, &all, &check) == HSORT_OK, "%s: again: %s", faults_case, hsort_last_error(all.ctx));
    disk_check_whole(c, &all, &check);
}

static const char *name_of(bool is_site, int what)
{
    return is_site ? fault_word((enum fault_site)what) : disk_op_names[what];
}

/* Return the status that a failure of a site, or of a call, must have; `status` if it may be any. */
static hsort_status status_of(bool is_site, int what, hsort_status status)
{
    if (!is_site)
        return what < DISK_SOURCE_STOP ? HSORT_IO : HSORT_STOPPED;
    return what == FAULT_MPI ? HSORT_MPI : what == FAULT_ALLOC ? HSORT_HOST_MEMORY : status;
}

/* Fail one passage of a fault site, or one call of the double. Returns, on every rank, whether it was reached. */
static bool fail_once(const struct disk_case *c, bool is_site, int what, int failing, int nth)
{
    struct stream_check check;
    disk_prepare(c);
    snprintf(faults_case, sizeof faults_case, "%s, passage %d on rank %d of %d", name_of(is_site, what), nth,
             failing, size);
    const struct disk_made before = disk_made_parts();
    if (is_site)
        fault_set((enum fault_site)what, rank == failing ? nth : 0);
    else
        disk_fail((enum disk_op)what, rank == failing ? nth : 0);
    const hsort_status status = disk_sort(c, &all, &check);
    int reached = rank == failing && !(is_site ? fault_untouched((enum fault_site)what, nth)
                                               : disk_fail_untouched((enum disk_op)what));
    MPI_Bcast(&reached, 1, MPI_INT, failing, MPI_COMM_WORLD);
    CHECK(!reached || status == status_of(is_site, what, status), "%s: status %d", faults_case, (int)status);
    check_after_failure(c, status, reached, failing, &before);
    return reached;
}

static void walk(const struct disk_case *c, bool is_site, int what)
{
    const int failing[] = {0, size / 2, size - 1};
    for (int f = 0; f < 3; f++) {
        int nth = 1;
        if (f > 0 && failing[f] == failing[f - 1])
            continue;
        while (nth < MOST_PASSAGES && fail_once(c, is_site, what, failing[f], nth))
            nth++;
        CHECK(nth < MOST_PASSAGES, "%s: still reached", faults_case);
        CHECK(!is_site || what != FAULT_MPI || (nth > 1) == (size > 1), "%d calls of MPI by rank %d of %d",
              nth - 1, failing[f], size);
        if (rank == 0)
            printf("%s: %d passages of %s on rank %d\n", c->is_records ? "records" : "keys", nth - 1,
                   name_of(is_site, what), failing[f]);
    }
}

static void walk_all(uint64_t seed)
{
    static const enum fault_site sites[] = {FAULT_ALLOC, FAULT_MPI, FAULT_KERNEL, FAULT_COPY};
    for (int is_records = 0; is_records < 2; is_records++) {
        struct disk_case c = draw_case(is_records, &seed);
        c.parts = 2 * size + 1;
        c.total = c.input.count = 5 * c.parts - 2;
        c.kept_part = 5;
        c.kept_fence = 2;
        for (size_t site = 0; site < sizeof sites / sizeof sites[0]; site++)
            walk(&c, true, sites[site]);
        for (int op = 0; op < DISK_OPS; op++)
            walk(&c, false, op);
    }
}
#else
static void walk_all(uint64_t seed)
{
    (void)seed;
    if (rank == 0)
        printf("no fault sites are built in\n");
}
#endif

static void run_drawn(uint64_t seed)
{
    const double begin = MPI_Wtime();
    int go_on = 1;
    for (uint64_t number = 0; go_on; number++) {
        uint64_t random = seed + number * 7919;
        test_again(number % 2, &random);
        test_damage((enum damage)(number % DAMAGE_KINDS), &random);
        test_lies(&random);
        test_lost(&random);
        go_on = MPI_Wtime() - begin < SECONDS;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%lld sorts begun anew, damage found in %lld and harmless in %lld, on %d ranks\n",
               (long long)trials, (long long)found, (long long)harmless, size);
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t seed = ranks_seed();
    engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    disk_begin();
    open_groups(&seed);
    if (argc > 1 && strcmp(argv[1], "faults") == 0) {
        walk_all(seed);
    } else {
        if (!cuda) // slots of a GPU lie in its own memory
            test_less_memory(&seed);
        run_drawn(seed);
    }
    for (int i = 0; i < GROUPS; i++)
        disk_group_close(&groups[i]);
    check_failures += disk_end();
    return ranks_finish();
}
