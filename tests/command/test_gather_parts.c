/* Elements that an index names, with memory for all of them or for few: elements and indices of many kinds and sizes on any number of ranks,
 * each byte of the result compared with what its entry names; pieces that nobody names; functions that fail, entries that name nothing. */
#include "src/command/gather_parts.h"
#include "src/command/launch.h"
#include "tests/support/ranks.h"

enum { DRAWN = 40, DRAWN_ON_GPU = 12, MOST_TOTAL = 60000 };
enum kind { ANY, NEAR, REVERSED, FEW, LAST, KINDS };
enum call { NO_CALL, READ, READ_INDEX, WRITE, CALLS };

struct made {
    enum kind kind;
    uint64_t seed;
    int64_t total, entries, bytes, step;
    int calls[CALLS];
    enum call fails; /* at its second call on this rank */
    bool names_none; /* an entry of this rank names no element */
    int64_t read;    /* elements, on this rank */
    int64_t written; /* entries, on this rank */
    int counted;     /* calls of the library */
};

static struct comm comm;
static hsort_context *ctx;

static int64_t entry_of(const struct made *m, int64_t entry)
{
    uint64_t random = m->seed + (uint64_t)entry;
    const int64_t drawn = (int64_t)(check_random(&random) >> 1);
    switch (m->kind) {
    case NEAR:
        return (entry * m->total / m->entries + drawn % 9) % m->total;
    case REVERSED:
        return m->total - 1 - entry % m->total;
    case FEW:
        return drawn % 3 * m->total / 3;
    case LAST:
        return m->total - 1;
    case ANY:
    case KINDS:
        break;
    }
    return drawn % m->total;
}

static void make_element(const struct made *m, int64_t element, char *to)
{
    uint64_t random = m->seed ^ (uint64_t)element * 31;
    for (int64_t i = 0; i < m->bytes; i++)
        to[i] = (char)check_random(&random);
}

/* Does a function fail in this call? */
static hsort_status call_made(struct made *m, enum call call)
{
    return ++m->calls[call] == 2 && m->fails == call ? status_fail(HSORT_IO, "call %d fails", (int)call)
                                                     : HSORT_OK;
}

static hsort_status read_made(void *user, int64_t first, int64_t count, void *elements)
{
    struct made *m = user;
    CHECK(first >= 0 && count >= 0 && first + count <= m->total, "%lld elements from %lld on are read",
          (long long)count, (long long)first);
    for (int64_t i = 0; i < count; i++)
        make_element(m, first + i, (char *)elements + i * m->bytes);
    m->read += count;
    return call_made(m, READ);
}

static hsort_status read_made_index(void *user, int64_t first, int64_t count, int64_t *index)
{
    struct made *m = user;
    for (int64_t i = 0; i < count; i++)
        index[i] = entry_of(m, first + i);
    if (m->names_none && m->calls[READ_INDEX] == 1 && count > 0)
        index[count / 2] = count % 2 ? m->total : -1;
    return call_made(m, READ_INDEX);
}

static hsort_status write_made(void *user, int64_t first, int64_t count, const void *elements)
{
    struct made *m = user;
    char element[256];
    const int64_t begin = launch_share(m->entries, comm.rank, comm.size) + m->written;
    CHECK(count == 0 || first == begin, "entry %lld is written, not %lld", (long long)first,
          (long long)begin);
    for (int64_t i = 0; i < count; i++) {
        make_element(m, entry_of(m, first + i), element);
        CHECK(memcmp(element, (const char *)elements + i * m->bytes, (size_t)m->bytes) == 0,
              "kind %d, %lld bytes, entry %lld", (int)m->kind, (long long)m->bytes, (long long)(first + i));
    }
    m->written += count;
    return comm_agree(&comm, call_made(m, WRITE));
}

static hsort_status count_made(void *user)
{
    struct made *m = user;
    m->counted++;
    return HSORT_OK;
}

static struct gather_parts parts_of(struct made *m, size_t memory_bytes, bool checks)
{
    return (struct gather_parts){.comm = &comm,
                                 .ctx = ctx,
                                 .in_name = "elements",
                                 .by_name = "index",
                                 .total = m->total,
                                 .element_bytes = (size_t)m->bytes,
                                 .entries = m->entries,
                                 .index_type = HSORT_I64,
                                 .memory_bytes = memory_bytes,
                                 .step = m->step,
                                 .checks = checks,
                                 .read = read_made,
                                 .read_index = read_made_index,
                                 .write = write_made,
                                 .count_call = count_made,
                                 .user = m};
}

/* Elements that all ranks have read since the last time. Collective. */
static int64_t read_by_all(struct made *m)
{
    int64_t all;
    MPI_Allreduce(&m->read, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    m->read = 0;
    return all;
}

static void run_drawn(uint64_t *random)
{
    struct made m = {.kind = (enum kind)(check_random(random) % KINDS),
                     .seed = check_random(random),
                     .step = check_random(random) % 2 ? 1 : 1 + (int64_t)(check_random(random) % 3000)};
    m.total = (int64_t)(check_random(random) % MOST_TOTAL) >> check_random(random) % 12;
    m.total += m.total == 0;
    m.entries = (int64_t)(check_random(random) % MOST_TOTAL) >> check_random(random) % 12;
    m.bytes = 1 + (int64_t)(check_random(random) % 200) / (check_random(random) % 2 ? 8 : 1);
    // From twice of what everything takes to a twelfth of it, so that there are some hundred calls of the library at most.
    const size_t whole = (size_t)(m.total * (m.bytes + 8) + m.entries * (m.bytes + 64)) / (size_t)comm.size;
    const size_t memory = 2 * whole / (1 + check_random(random) % 24);
    struct gather_parts parts = parts_of(&m, memory, check_random(random) % 4 > 0);
    const hsort_status status = gather_in_parts(&parts);
    const int64_t own =
        launch_share(m.entries, comm.rank + 1, comm.size) - launch_share(m.entries, comm.rank, comm.size);
    CHECK(status == HSORT_OK, "%s", comm.error);
    CHECK(m.written == own && parts.elements_ok == parts.checks && parts.readings <= m.calls[WRITE] &&
              (parts.readings == m.calls[WRITE] || parts.readings <= 1) &&
              (!parts.whole || (m.calls[WRITE] == 1 && m.calls[READ] == 1)),
          "%lld entries of %lld, in %d calls and %lld readings", (long long)m.written, (long long)own,
          m.calls[WRITE], (long long)parts.readings);
    CHECK(m.counted > 0 || m.entries == 0, "no call of the library is counted");
    const int64_t read = read_by_all(&m);
    CHECK(m.calls[READ_INDEX] == m.calls[WRITE] && read <= parts.readings * m.total,
          "%lld of %lld elements are read in %lld readings", (long long)read, (long long)m.total,
          (long long)parts.readings);
}

/* Elements that nobody names are not read, but for those of their piece; memory that suffices is used. */
static void run_far_apart(uint64_t *random)
{
    struct made m = {.kind = LAST,
                     .step = 1,
                     .seed = check_random(random),
                     .total = MOST_TOTAL,
                     .entries = 100 * comm.size,
                     .bytes = 100};
    struct gather_parts few = parts_of(&m, 1 << 16, true), all = parts_of(&m, 1 << 26, true);
    CHECK(gather_in_parts(&few) == HSORT_OK, "%s", comm.error);
    int64_t read = read_by_all(&m);
    CHECK(read > 0 && read < MOST_TOTAL / 10, "%lld elements are read", (long long)read);
    m.written = 0;
    CHECK(gather_in_parts(&all) == HSORT_OK && all.whole, "%s", comm.error);
    read = read_by_all(&m);
    CHECK(read == MOST_TOTAL && all.readings == 1, "%lld elements are read in %lld readings", (long long)read,
          (long long)all.readings);
    // A few elements, which all fit, and more entries than fit.
    m = (struct made){.seed = m.seed, .step = 1, .total = 100, .entries = MOST_TOTAL, .bytes = 100};
    few = parts_of(&m, 1 << 16, true);
    CHECK(gather_in_parts(&few) == HSORT_OK, "%s", comm.error);
    read = read_by_all(&m);
    CHECK(read == 100 && few.readings == 1 && m.calls[WRITE] > 1,
          "%lld elements are read, %d parts are written", (long long)read, m.calls[WRITE]);
}

/* A function fails on some rank, or an entry names nothing: all ranks return that, and nothing goes on. */
static void run_failing(uint64_t *random)
{
    for (int failing = 0; failing < comm.size; failing++)
        for (int call = READ; call <= CALLS; call++) {
            struct made m = {.seed = check_random(random),
                             .step = 1,
                             .total = MOST_TOTAL,
                             .entries = MOST_TOTAL,
                             .bytes = 40};
            m.fails = comm.rank == failing ? (enum call)call : NO_CALL;
            m.names_none = comm.rank == failing && call == CALLS;
            struct gather_parts parts = parts_of(&m, 500000, true);
            const hsort_status status = gather_in_parts(&parts);
            CHECK(status == (call == CALLS ? HSORT_ARGUMENT : HSORT_IO) &&
                      strstr(comm.error, call == CALLS ? ", but elements has 60000 elements" : "fails"),
                  "rank %d, call %d: status %d, %s", failing, call, (int)status, comm.error);
            CHECK(m.calls[WRITE] <= 2 && m.calls[READ_INDEX] <= 2, "it goes on after call %d", call);
            status_clear();
        }
}

int main(int argc, char **argv)
{
    int rank, size;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK, "%s", status_text());
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    uint64_t random = ranks_seed();
    for (int i = 0; i < (cuda ? DRAWN_ON_GPU : DRAWN); i++)
        run_drawn(&random);
    run_far_apart(&random);
    run_failing(&random);
    hsort_destroy(&ctx);
    comm_close(&comm);
    return ranks_finish();
}
