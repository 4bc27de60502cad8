/* Keys at positions among more keys than memory holds: codes of many distributions, any number of ranks, threads and positions, with room
 * for no code, for some, and for all of them, against qsort(); sources that fail, and sources that change. */
#include "src/command/select_ranges.h"
#include "tests/support/ranks.h"

enum { MOST_CODES = 4000, MOST_RANKS = 16, MOST_WANTED = 1024, DRAWN = 60 };
enum kind { UNIFORM, FEW, EQUAL, CROWDED, ENDS, KINDS };

struct made_codes {
    enum kind kind;
    int code_bytes;
    uint64_t seed;
    int64_t count[MOST_RANKS];
    int readings, fails, changes; /* which reading fails, or has other codes; 0: none */
};

static struct comm comm;

static key_code code_of_draw(const struct made_codes *m, uint64_t *random)
{
    const key_code all = key_max(m->code_bytes),
                   drawn = (key_code)check_random(random) << 64 | check_random(random);
    switch (m->kind) {
    case FEW:
        return drawn % 5;
    case EQUAL:
        return all - 3;
    case CROWDED: // all but the lowest bits are the same
        return (all / 3) ^ (drawn & 0xffff);
    case ENDS:
        return drawn % 3 == 0 ? all - drawn % 7 : drawn % 9;
    case UNIFORM:
    case KINDS:
        break;
    }
    return drawn & all;
}

/* codes [count[rank]] of any rank, the same wherever they are made. */
static void make_codes_of(const struct made_codes *m, int rank, char *codes)
{
    uint64_t random = m->seed + 77 * (uint64_t)rank;
    for (int64_t i = 0; i < m->count[rank]; i++) {
        const key_code code = code_of_draw(m, &random);
        memcpy(codes + i * m->code_bytes, &code, (size_t)m->code_bytes);
    }
}

/* code_reader.read, in parts of odd sizes. */
static hsort_status read_made(void *user, void (*see)(void *seer, const void *codes, int64_t count),
                              void *seer)
{
    struct made_codes *m = user;
    static _Alignas(16) char codes[MOST_CODES * sizeof(key_code)];
    const int64_t count = m->count[comm.rank];
    make_codes_of(m, comm.rank, codes);
    if (++m->readings == m->fails)
        return status_fail(HSORT_IO, "reading %d fails", m->readings);
    if (m->readings == m->changes && count > 0)
        memset(codes, m->readings % 2 ? 0 : 0xff, (size_t)count * (size_t)m->code_bytes);
    for (int64_t at = 0, part; at < count; at += part) {
        part = count - at < 999 ? count - at : 999;
        see(seer, codes + at * m->code_bytes, part);
    }
    return HSORT_OK;
}

static int compare_wide(const void *a, const void *b)
{
    const key_code one = *(const key_code *)a, other = *(const key_code *)b;
    return (one > other) - (one < other);
}

/* wide [their number] = codes of all ranks, in order. */
static int64_t sort_all(const struct made_codes *m, key_code *wide)
{
    static char codes[MOST_CODES * sizeof(key_code)];
    int64_t total = 0;
    for (int rank = 0; rank < comm.size; rank++) {
        make_codes_of(m, rank, codes);
        for (int64_t i = 0; i < m->count[rank]; i++, total++) {
            wide[total] = 0;
            memcpy(&wide[total], codes + i * m->code_bytes, (size_t)m->code_bytes);
        }
    }
    qsort(wide, (size_t)total, sizeof *wide, compare_wide);
    return total;
}

/* wide = the kept codes of all ranks, in order; returns their number. */
static int64_t sort_kept(const struct code_selection *s, int code_bytes, key_code *wide)
{
    int own = (int)s->count * code_bytes, bytes[MOST_RANKS], begin[MOST_RANKS], all = 0;
    MPI_Allgather(&own, 1, MPI_INT, bytes, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < comm.size; rank++) {
        begin[rank] = all;
        all += bytes[rank];
    }
    char *codes = malloc((size_t)all + 1);
    if (!codes)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Allgatherv(s->codes, own, MPI_BYTE, codes, bytes, begin, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < all / code_bytes; i++) {
        wide[i] = 0;
        memcpy(&wide[i], codes + (size_t)i * (size_t)code_bytes, (size_t)code_bytes);
    }
    free(codes);
    qsort(wide, (size_t)(all / code_bytes), sizeof *wide, compare_wide);
    return all / code_bytes;
}

static void draw_codes(struct made_codes *m, uint64_t *random)
{
    *m = (struct made_codes){.kind = (enum kind)(check_random(random) % KINDS),
                             .code_bytes = check_random(random) % 2 ? 16 : 8,
                             .seed = check_random(random)};
    for (int rank = 0; rank < comm.size; rank++)
        m->count[rank] = check_random(random) % 4 ? (int64_t)(check_random(random) % MOST_CODES) : 0;
    if (m->count[comm.size - 1] == 0)
        m->count[comm.size - 1] = 1;
}

static void draw_positions(uint64_t *random, int64_t total, int wanted, int64_t *positions)
{
    for (int i = 0; i < wanted; i++)
        positions[i] = (int64_t)(check_random(random) % (uint64_t)total);
    for (int i = 1; i < wanted; i++) // insertion, because there are few
        for (int j = i; j > 0 && positions[j] < positions[j - 1]; j--) {
            const int64_t swap = positions[j];
            positions[j] = positions[j - 1];
            positions[j - 1] = swap;
        }
}

static struct code_reader source_of(struct made_codes *m, int64_t total, int threads)
{
    return (struct code_reader){.read = read_made,
                                .user = m,
                                .name = "codes",
                                .threads = threads,
                                .code_bytes = m->code_bytes,
                                .own = m->count[comm.rank],
                                .total = total};
}

static void run_drawn(uint64_t *random)
{
    static key_code all[MOST_CODES * MOST_RANKS], kept[MOST_CODES * MOST_RANKS];
    static int64_t positions[MOST_WANTED];
    struct made_codes m;
    struct code_selection s;
    draw_codes(&m, random);
    const int64_t total = sort_all(&m, all),
                  most = (int64_t)(check_random(random) % (MOST_CODES + 1)) >> check_random(random) % 14;
    const int wanted = 1 + (int)(check_random(random) % (MOST_WANTED >> check_random(random) % 10));
    draw_positions(random, total, wanted, positions);
    const struct code_reader source = source_of(&m, total, 1 + (int)(check_random(random) % 3));
    const hsort_status status = select_ranges_find(&comm, &source, positions, wanted, most, &s);
    CHECK(status == HSORT_OK, "kind %d: %s", (int)m.kind, comm.error);
    if (status != HSORT_OK)
        return;
    CHECK(s.count <= most && s.readings <= 1 + (8 * m.code_bytes - 16 + 6) / 7 && s.readings == m.readings,
          "%lld codes are kept of %lld, after %d readings", (long long)s.count, (long long)most, s.readings);
    const int64_t kept_count = sort_kept(&s, m.code_bytes, kept);
    for (int i = 0; i < wanted; i++) {
        int64_t place;
        const int in = select_ranges_place(&s, positions[i], &place);
        const bool has = in >= 0 && place < kept_count;
        CHECK(has && (place < 0 ? s.range[in].first : kept[place]) == all[positions[i]],
              "kind %d, %d bytes: another code at position %lld of %lld, range %d, place %lld of %lld",
              (int)m.kind, m.code_bytes, (long long)positions[i], (long long)total, in, (long long)place,
              (long long)kept_count);
    }
    select_ranges_free(&s);
}

/* Some rank fails in some reading, or finds other codes there than before: all return that. */
static void run_failing(uint64_t *random)
{
    static key_code all[MOST_CODES * MOST_RANKS];
    struct made_codes m;
    struct code_selection s;
    draw_codes(&m, random);
    m.kind = CROWDED; // so that all keys are in the range at the second reading
    for (int rank = 0; rank < comm.size; rank++)
        m.count[rank] = MOST_CODES;
    const int64_t total = sort_all(&m, all), position = total / 2;
    for (int failing = 0; failing < comm.size; failing++)
        for (int reading = 1; reading <= 2; reading++)
            for (int changes = reading == 1 ? 0 : 1; changes >= 0;
                 changes--) { // nothing is known before the first
                m.readings = 0;
                m.fails = comm.rank == failing && !changes ? reading : 0;
                m.changes = comm.rank == failing && changes ? reading : 0;
                const struct code_reader source = source_of(&m, total, 2);
                const hsort_status status = select_ranges_find(&comm, &source, &position, 1, 10, &s);
                CHECK(status == HSORT_IO && strstr(comm.error, changes ? "codes: was changed" : "fails"),
                      "rank %d, reading %d, changes %d: status %d, %s", failing, reading, changes,
                      (int)status, comm.error);
                select_ranges_free(&s);
                status_clear();
            }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK && comm.size <= MOST_RANKS, "%s", status_text());
    uint64_t random = ranks_seed();
    for (int i = 0; i < DRAWN; i++)
        run_drawn(&random);
    run_failing(&random);
    comm_close(&comm);
    return ranks_finish();
}
