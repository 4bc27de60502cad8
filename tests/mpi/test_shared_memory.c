/* Slots that the ranks of a node share: all see what each has written, and pairs agree on whether they share,
 * even if some rank may not share, or has no room. Nothing stays behind, not even from a rank that is killed while it
 * waits for others.
 *
 *     test_shared_memory         the host engine
 *     test_shared_memory cuda    the cuda engine; rank r of a node takes device r modulo the devices there */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "mpi/transport/shared_memory.h"
#include "tests/mpi/rank_engine.h"

enum { BYTES = 3 << 16 };

static bool finds_others; /* this rank: under the numbers of its peers there are segments of somebody else */

void *__real_shmat(int number, const void *at, int flags);
void *__wrap_shmat(int number, const void *at, int flags);
void *__wrap_shmat(int number, const void *at, int flags)
{
    struct shmid_ds facts;
    if (!finds_others || (shmctl(number, IPC_STAT, &facts) == 0 && facts.shm_cpid == getpid()))
        return __real_shmat(number, at, flags);
    const int other = __real_shmget(IPC_PRIVATE, BYTES, 0600);
    void *memory = __real_shmat(other, at, flags);
    shmctl(other, IPC_RMID, NULL);
    return memory;
}

static unsigned char slot_byte(int rank, size_t i)
{
    return (unsigned char)(i * 31 + (i >> 8) * 7 + (size_t)rank * 101);
}

/* Count the segments of this process: all, or those that stay when it is killed. */
static int segments_there(bool all)
{
    char line[512];
    int found = 0;
    FILE *list = fopen("/proc/sysvipc/shm", "r");
    CHECK(list != NULL, "this system does not list its segments");
    while (list && fgets(line, sizeof line, list)) {
        unsigned flags;
        long creator;
        if (sscanf(line, "%*d %*d %o %*u %ld", &flags, &creator) == 2 && creator == (long)getpid())
            found += all || !(flags & SHM_DEST);
    }
    if (list)
        fclose(list);
    return found;
}

int MPI_Allgather(const void *own, int count, MPI_Datatype type, void *all, int each, MPI_Datatype of,
                  MPI_Comm ranks)
{
    CHECK(segments_there(false) == 0, "a rank killed now leaves %d segments", segments_there(false));
    return PMPI_Allgather(own, count, type, all, each, of, ranks);
}

/* able: [size] which ranks share; has: this rank has slots. */
static void check_slots(struct shared_memory *shared, const bool *able, bool has, const char *what)
{
    CHECK((shared->own != NULL) == has, "%s: rank %d has %s slots", what, comm.rank,
          shared->own ? "got" : "no");
    unsigned char there[BYTES >> 12] = {0}; // a page has 4 KiB at least
    CHECK(!shared->own || mincore(shared->own, BYTES, there) == 0, "%s: no look at pages", what);
    CHECK(!shared->own || (there[0] & there[BYTES / sysconf(_SC_PAGESIZE) - 1] & 1),
          "%s: pages are not taken", what);
    for (size_t i = 0; shared->own && i < BYTES; i++)
        shared->own[i] = (char)slot_byte(comm.rank, i);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int peer = 0; peer < comm.size; peer++) {
        const bool wanted = peer != comm.rank && able[peer] && able[comm.rank];
        const char *of = shared_memory_pinned(shared, peer);
        CHECK((of != NULL) == wanted, "%s: rank %d %s with %d", what, comm.rank,
              of ? "shares" : "does not share", peer);
        size_t right = 0;
        while (of && right < BYTES && (unsigned char)of[right] == slot_byte(peer, right))
            right++;
        CHECK(!of || right == BYTES, "%s: byte %zu of rank %d, seen by %d", what, right, peer, comm.rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Open, check, close. unable: this rank must find that it cannot share; has: this rank has slots. */
static void check_sharing(const char *what, size_t bytes, bool unable, bool has)
{
    struct shared_memory shared;
    int64_t *unable_all = calloc((size_t)comm.size, sizeof *unable_all);
    bool *able = calloc((size_t)comm.size, sizeof *able);
    if (!unable_all || !able || comm_gather(&comm, unable, unable_all) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int peer = 0; peer < comm.size; peer++)
        able[peer] = !unable_all[peer];
    const int of_mpi = segments_there(true);
    CHECK(shared_memory_open(&comm, engine, bytes, &shared) == HSORT_OK, "%s: %s", what, status_text());
    CHECK(segments_there(true) == of_mpi + has, "%s: %d segments, %d of MPI", what, segments_there(true),
          of_mpi);
    check_slots(&shared, able, has, what);
    shared_memory_close(&shared);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(segments_there(true) == of_mpi, "%s: %d segments are left, %d of MPI", what, segments_there(true),
          of_mpi);
    free(unable_all);
    free(able);
}

static int pins; /* tried since it was 0 */

static bool refuse_pin(struct engine *refusing, void *memory, size_t bytes)
{
    (void)refusing, (void)memory, (void)bytes;
    pins++;
    return false;
}

static const struct engine_ops *counted_ops;
static int pinned; /* and not unpinned */

static bool count_pin(struct engine *counting, void *memory, size_t bytes)
{
    const bool done = counted_ops->pin(counting, memory, bytes);
    pinned += done;
    return done;
}

static void count_unpin(struct engine *counting, void *memory)
{
    counted_ops->unpin(counting, memory);
    pinned--;
}

/* All that is pinned is unpinned; what its owner cannot pin is not shared. */
static void test_pins(void)
{
    struct shared_memory shared;
    const struct engine_ops *ops = engine->ops;
    struct engine_ops counting = *ops;
    counted_ops = ops;
    counting.pin = count_pin;
    counting.unpin = count_unpin;
    engine->ops = &counting;
    CHECK(shared_memory_open(&comm, engine, BYTES, &shared) == HSORT_OK, "%s", status_text());
    for (int peer = 0; peer < comm.size; peer++)
        shared_memory_pinned(&shared, peer);
    CHECK(pinned == comm.size, "%d pins of %d ranks' slots", pinned, comm.size);
    MPI_Barrier(MPI_COMM_WORLD);
    shared_memory_close(&shared);
    CHECK(pinned == 0, "%d pins are left", pinned);
    if (comm.rank % 3 == 1)
        counting.pin = refuse_pin;
    check_sharing("some cannot pin", BYTES, comm.rank % 3 == 1, comm.rank % 3 != 1);
    engine->ops = ops;
}

/* What cannot be pinned is shared all the same, and pinning it is not tried for every message. */
static void test_refused_pins(void)
{
    struct shared_memory shared;
    const struct engine_ops *ops = engine->ops;
    struct engine_ops refusing = *ops;
    refusing.pin = count_pin;
    refusing.unpin = count_unpin;
    engine->ops = &refusing;
    CHECK(shared_memory_open(&comm, engine, BYTES, &shared) == HSORT_OK, "%s", status_text());
    refusing.pin = refuse_pin;
    pins = 0;
    for (int again = 0; again < 3; again++)
        for (int peer = 0; peer < comm.size; peer++)
            CHECK((shared_memory_pinned(&shared, peer) != NULL) == (peer != comm.rank), "of rank %d", peer);
    CHECK(pins == comm.size - 1, "%d pins are tried for %d peers", pins, comm.size - 1);
    MPI_Barrier(MPI_COMM_WORLD);
    shared_memory_close(&shared);
    CHECK(pinned == 0, "unpinned is what was not pinned");
    engine->ops = ops;
}

int main(int argc, char **argv)
{
    int rank, size;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    if (!open_rank(cuda, engine_open_host))
        return ranks_finish();
    for (int again = 0; again < 3; again++)
        check_sharing("all share", BYTES, false, true);
    has_no_shm = comm.rank % 3 == 1;
    check_sharing("some have no shared memory", BYTES, has_no_shm, !has_no_shm);
    has_no_shm = false;
    finds_others = comm.rank % 3 == 1;
    check_sharing("some find segments of others", BYTES, finds_others, true);
    finds_others = false;
    check_sharing("no room for that much", (size_t)1 << 50, true, false);
    test_pins();
    test_refused_pins();
    engine->ops->close(engine);
    comm_close(&comm);
    return ranks_finish();
}
