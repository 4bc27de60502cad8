/* The cases, the second opinion, and what a sort has made. */
#include "tests/library/disk_store.h"
#include <fcntl.h>
#include <sys/mman.h>
#include "src/files/input.h"
#include "tests/support/order.h"

char disk_text[400];
struct disk_shared *disk_shared;
struct disk_call disk_call;

enum { SECONDS_PER_CASE = 120 };

int disk_world_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

void *disk_memory(size_t bytes)
{
    void *memory = malloc(bytes + 1);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

void disk_begin(void)
{
    char name[64];
    int rank, fd = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "/hypersort-disk-test-%ld", (long)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (rank == 0 && (fd < 0 || ftruncate(fd, sizeof *disk_shared) != 0))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0)
        fd = shm_open(name, O_RDWR, 0600);
    disk_shared =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *disk_shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (disk_shared == MAP_FAILED) {
        fprintf(stderr, "rank %d: no shared memory: ranks must be on one machine\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        shm_unlink(name);
}

int disk_end(void)
{
    munmap(disk_shared, sizeof *disk_shared);
    return check_failures + disk_store_failures();
}

struct disk_group disk_group_open(int first, int count, bool turned, hsort_engine engine, int threads)
{
    struct disk_group group = {.rank = -1};
    hsort_options options;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const bool mine = rank >= first && rank < first + count;
    MPI_Comm_split(MPI_COMM_WORLD, mine ? 0 : MPI_UNDEFINED, turned ? -rank : rank, &group.comm);
    if (!mine)
        return group;
    MPI_Comm_rank(group.comm, &group.rank);
    MPI_Comm_size(group.comm, &group.size);
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.transport = HSORT_TRANSPORT_STAGED;
    options.shared_memory = HSORT_CHOICE_OFF;
    options.threads = threads;
    options.should_stop = disk_should_stop;
    const hsort_status status = hsort_create(group.comm, &options, &group.ctx);
    CHECK(status == HSORT_OK, "%d ranks: %s", count, hsort_last_error(NULL));
    if (status != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return group;
}

void disk_group_close(struct disk_group *group)
{
    hsort_destroy(&group->ctx);
    if (group->comm != MPI_COMM_NULL)
        MPI_Comm_free(&group->comm);
}

/* ---- The second opinion ----------------------------------------------------------------------------------------- */

static const struct disk_case *compared; /* by the functions for qsort() */
static const char *compared_from;

static int compare_places(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    const size_t bytes = compared->bytes;
    const int found = order_compare_fields(compared->fields, compared->field_count, compared_from + (size_t)left * bytes,
                                           compared_from + (size_t)right * bytes);
    return found ? found : (left > right) - (left < right);
}

/* to [count] = elements in order, stable. */
void disk_sort_slowly(const struct disk_case *c, const char *from, int64_t count, char *to)
{
    if (!c->is_records) {
        memcpy(to, from, (size_t)count * c->bytes);
        order_sort(c->input.type, c->order, to, count);
        return;
    }
    int64_t *places = disk_memory((size_t)count * sizeof *places);
    for (int64_t i = 0; i < count; i++)
        places[i] = i;
    compared = c;
    compared_from = from;
    qsort(places, (size_t)count, sizeof *places, compare_places);
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * c->bytes, from + (size_t)places[i] * c->bytes, c->bytes);
    free(places);
}

static int compare_elements(const struct disk_case *c, const char *a, const char *b)
{
    return c->is_records ? order_compare_fields(c->fields, c->field_count, a, b) : order_compare(c->input.type, c->order, a, b);
}

bool disk_is_in_order(const struct disk_case *c, const char *elements, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        if (compare_elements(c, elements + (size_t)(i - 1) * c->bytes, elements + (size_t)i * c->bytes) > 0)
            return false;
    return true;
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

static void draw_records(const struct disk_case *c)
{
    uint64_t random = c->seed;
    const size_t all = (size_t)c->total * c->bytes;
    for (size_t i = 0; i < all; i += 8) {
        const uint64_t word = check_random(&random);
        memcpy(disk_shared->in + i, &word, all - i < 8 ? all - i : 8);
    }
    for (int64_t i = c->different; i < c->total && c->different > 0; i++) {
        const char *from = disk_shared->in + c->bytes * (check_random(&random) % (uint64_t)c->different);
        char *to = disk_shared->in + c->bytes * (size_t)i;
        for (int f = 0; f < c->field_count; f++)
            memcpy(to + c->fields[f].offset, from + c->fields[f].offset, order_field_bytes(&c->fields[f]));
    }
}

static void empty_store(const struct disk_case *c)
{
    memset(disk_shared->facts, 0, sizeof disk_shared->facts);
    for (int part = 0; part < DISK_MOST_PARTS; part++)
        disk_shared->state[0][part] = disk_shared->state[1][part] = DISK_NOT_BEGUN;
    disk_shared->is_begun = c->kept_part > 0;
    disk_shared->plan = (struct run_plan){.elements = c->total,
                                          .element_bytes = c->bytes,
                                          .part_elements = c->kept_part,
                                          .fence_elements = c->kept_fence};
    if (disk_shared->is_begun)
        disk_shared->plan.parts = (c->total + c->kept_part - 1) / c->kept_part;
}

void disk_prepare(const struct disk_case *c)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if ((size_t)c->total * c->bytes > DISK_MOST_BYTES)
        MPI_Abort(MPI_COMM_WORLD, 1);
    snprintf(disk_text, sizeof disk_text,
             "%lld %s%s:%d order %d of %zu bytes, %d fields, %d different, %lld parts, %zu bytes of memory, "
             "parts of %lld and "
             "fences of %lld kept, seed %llu",
             (long long)c->total, c->is_records ? "records " : hsort_type_name(c->input.type),
             c->is_records ? "" : distribution_word(c->input.distribution), c->input.parameter, c->order,
             c->bytes, c->field_count, c->different, (long long)c->parts, c->memory_bytes,
             (long long)c->kept_part, (long long)c->kept_fence, (unsigned long long)c->seed);
    snprintf(faults_case, sizeof faults_case, "%.120s", disk_text);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        if (c->is_records)
            draw_records(c);
        else
            input_fill(&c->input, 0, c->total, disk_shared->in);
        disk_sort_slowly(c, disk_shared->in, c->total, disk_shared->expected);
        memset(disk_shared->out, 0xa5, (size_t)c->total * c->bytes);
        CHECK((size_t)c->total * c->bytes < 16 || !disk_is_right(c), "right before anything is sorted: %s",
              disk_text);
        empty_store(c);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

bool disk_is_right(const struct disk_case *c)
{
    return memcmp(disk_shared->out, disk_shared->expected, (size_t)c->total * c->bytes) == 0;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

/* Find the counts of the group's ranks, before or after the sort. Returns how many elements come before this rank's. */
static int64_t deal_out(const struct disk_case *c, const struct disk_group *group, bool after, int64_t *count)
{
    int64_t counts[DISK_MOST_RANKS], first = 0;
    uint64_t random = c->seed + 17 * (uint64_t)group->size + after;
    const int turn = (int)(check_random(&random) % (uint64_t)group->size);
    const enum layout layout =
        c->is_spread ? (enum layout)(check_random(&random) % LAYOUTS) : LAYOUT_BALANCED;
    for (int r = 0; r < group->size; r++)
        counts[r] = c->total / group->size + ((r + turn) % group->size < c->total % group->size);
    if (layout != LAYOUT_BALANCED)
        layout_counts(layout, c->total, group->size, random, counts);
    for (int r = 0; r < group->rank; r++)
        first += counts[r];
    *count = counts[group->rank];
    return first;
}

static hsort_status call_sort(const struct disk_case *c, const struct disk_group *group,
                              struct stream_check *check)
{
    int64_t count, out_count;
    struct disk_stream in = {.first = deal_out(c, group, false, &count) * (int64_t)c->bytes};
    struct disk_stream out = {.is_sink = true,
                              .first = deal_out(c, group, true, &out_count) * (int64_t)c->bytes};
    const struct key_stream source = disk_stream_make(&in), sink = disk_stream_make(&out);
    const struct run_store store = disk_store_make(c);
    struct element_columns columns = {.source = &source,
                                      .sink = &sink,
                                      .store = &store,
                                      .check = check,
                                      .column = {{.bytes = c->bytes}},
                                      .count = 1};
    bool done = true;
    if (!c->is_records)
        return sort_streams(group->ctx, c->input.type, c->order, &source, count, &sink, out_count, check,
                            &store);
    const hsort_status status =
        sort_columns_in_passes(group->ctx, c->fields, c->field_count, &columns, count, out_count, &done);
    CHECK(status != HSORT_OK || done, "not in two passes: %s", disk_text);
    return status;
}

void disk_between(void (*hook)(const struct disk_case *c, void *user), void *user)
{
    disk_call.between = hook;
    disk_call.between_user = user;
    disk_call.is_damaged = hook != NULL;
}

hsort_status disk_sort(const struct disk_case *c, const struct disk_group *group, struct stream_check *check)
{
    hsort_status status = HSORT_OK;
    disk_call.c = c;
    disk_call.group = group;
    faults_watch(SECONDS_PER_CASE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (disk_world_rank() == 0)
        disk_shared->made[0] = disk_shared->made[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (group->size > 0) {
        if (comm_open(group->comm, &disk_call.comm) != HSORT_OK)
            MPI_Abort(MPI_COMM_WORLD, 1);
        status = call_sort(c, group, check);
        comm_close(&disk_call.comm);
        free(disk_call.given);
        disk_call.given = NULL;
    }
    disk_between(NULL, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    faults_watch(0);
    return status;
}

/* ---- What has come of it ---------------------------------------------------------------------------------------- */

/* Call hsort_check() on the group's shares of an array. Collective over the group. */
static hsort_check_result look_at(const struct disk_case *c, const struct disk_group *group,
                                  const char *array)
{
    hsort_check_result result = {.struct_size = sizeof result};
    int64_t count;
    const int64_t first = deal_out(c, group, false, &count);
    char *own = disk_memory((size_t)count * c->bytes + 16);
    memcpy(own, array + (size_t)first * c->bytes, (size_t)count * c->bytes);
    const hsort_status status =
        c->is_records ? hsort_check_records(group->ctx, own, c->bytes, c->fields, c->field_count, count, NULL,
                                            NULL, &result)
                      : hsort_check(group->ctx, c->input.type, c->order, own, count, NULL, &result);
    CHECK(status == HSORT_OK, "%s: %s", hsort_last_error(group->ctx), disk_text);
    free(own);
    return result;
}

static void check_same(const hsort_check_result *found, const hsort_check_result *array, const char *which)
{
    CHECK(found->count == array->count &&
              memcmp(found->fingerprint, array->fingerprint, sizeof found->fingerprint) == 0,
          "%s: %lld elements, not the array's %lld, or another fingerprint: %s", which,
          (long long)found->count, (long long)array->count, disk_text);
}

void disk_check_whole(const struct disk_case *c, const struct disk_group *group,
                      const struct stream_check *check)
{
    const struct disk_made made = disk_made_parts();
    hsort_stats stats = {.struct_size = sizeof stats};
    if (group->size == 0)
        return;
    CHECK(disk_is_right(c), "rank %d: not the expected result: %s", group->rank, disk_text);
    CHECK(made.kept_runs == made.parts && made.kept_segments == made.parts,
          "%lld runs and %lld segments of %lld: %s", (long long)made.kept_runs, (long long)made.kept_segments,
          (long long)made.parts, disk_text);
    CHECK(hsort_get_stats(group->ctx, &stats) == HSORT_OK && stats.passes == 2 && stats.keys == c->total &&
              stats.runs == made.parts && stats.segments == made.parts,
          "%d passes, %lld runs: %s", (int)stats.passes, (long long)stats.runs, disk_text);
    const hsort_check_result before = look_at(c, group, disk_shared->in),
                             after = look_at(c, group, disk_shared->out);
    check_same(&check->before, &before, "before");
    check_same(&check->after, &after, "after");
    CHECK(check->after.first_disorder == -1 && after.first_disorder == -1, "disorder at %lld: %s",
          (long long)check->after.first_disorder, disk_text);
}

void disk_check_agreed(const struct disk_group *group, hsort_status status)
{
    int statuses[2] = {(int)status, -(int)status};
    char line[1024], first[1024];
    if (group->size == 0)
        return;
    snprintf(line, sizeof line, "%s", hsort_last_error(group->ctx));
    memcpy(first, line, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, group->comm);
    MPI_Allreduce(MPI_IN_PLACE, statuses, 2, MPI_INT, MPI_MAX, group->comm);
    CHECK(statuses[0] == -statuses[1], "%s: rank %d got %d, another %d: %s", faults_case, group->rank,
          (int)status, statuses[0], disk_text);
    CHECK(strcmp(first, line) == 0, "%s: rank %d has '%s', rank 0 '%s': %s", faults_case, group->rank, line,
          first, disk_text);
}
