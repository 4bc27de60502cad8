/* Stopping. Votes: ranks with very different numbers of pieces, some of which are asked to stop, or fail, all leave together
 * and say the same. The library: a sort that any rank ends between local sort and exchange loses no key, leaves what it
 * promises, and can be begun again.
 *
 *     test_stop            the host engine
 *     test_stop cuda       the library only, on GPUs, with keys in every kind of memory
 *     test_stop_ipc ipc    the host engine with memory that other ranks map; needs shared_engine.c */
#include "src/command/stop.h"
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include "tests/support/device_buffer.h"
#include "kernels/engine.h"
#include "tests/support/faults.h"
#include "hypersort.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 16, VOTES = 150, SORTS = 200, SECONDS_PER_CASE = 60 };

static struct comm comm;
static uint64_t shared;  /* random numbers that are the same on every rank */
static uint64_t private; /* and others */
static hsort_engine engine = HSORT_ENGINE_HOST;
static enum buffer_kind memory_kind = BUFFER_HOST; /* where the library finds the keys */

static int draw(int below)
{
    return (int)(check_random(&shared) % (uint64_t)below);
}

/* ---- Votes --------------------------------------------------------------------------------------------- */

/* What happens on one rank of a phase. */
struct part {
    int pieces;    /* INT_MAX: as many as it takes until the others make it leave */
    int signal_at; /* the piece before which it is asked to stop; -1: never. After the last: when it is done */
    int fail_at;   /* the piece that fails; -1: none */
};

static void draw_parts(struct part *parts)
{
    const bool asks = draw(3) > 0, fails = draw(3) == 0;
    const int asked = draw(comm.size), failing = draw(comm.size);
    bool ends = false; // something will make all leave
    for (int rank = 0; rank < comm.size; rank++) {
        parts[rank] = (struct part){draw(4) == 0 ? 0 : draw(draw(2) ? 3 : 40), -1, -1};
        if (asks && rank == asked)
            parts[rank].signal_at = draw(parts[rank].pieces + 1);
        if (fails && rank == failing && parts[rank].pieces > 0)
            parts[rank].fail_at = draw(parts[rank].pieces);
        ends |= parts[rank].fail_at >= 0 || parts[rank].signal_at >= 0;
    }
    const int endless = draw(comm.size);
    if (ends && draw(2) && parts[endless].fail_at < 0 && parts[endless].signal_at < 0)
        parts[endless].pieces = INT_MAX;
}

static volatile sig_atomic_t heard_before; /* signals that did what they did before stop_watch() */

static void hear_before(int signal_number)
{
    (void)signal_number;
    heard_before++;
}

static void let_signals_through(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

/* As if nobody had watched yet, and no signal had come. */
static void forget_signals(void)
{
    stop_unwatch();
    let_signals_through();
    heard_before = 0;
}

/* Work off one rank's part. *done: pieces. */
static hsort_status work(const struct part *part, struct stop_vote *vote, int *done)
{
    for (*done = 0; *done < part->pieces; ++*done) {
        const struct timespec nap = {.tv_nsec = (long)(check_random(&private) % 300000)};
        if (*done == part->signal_at)
            raise(check_random(&private) % 2 ? SIGUSR1 : SIGTERM);
        if (stop_vote_seen(vote))
            return HSORT_OK;
        if (*done == part->fail_at)
            return status_fail(HSORT_IO, "piece %d", *done);
        nanosleep(&nap, NULL);
    }
    if (part->signal_at == part->pieces)
        raise(SIGUSR1);
    return HSORT_OK;
}

static void check_vote(int number)
{
    struct part parts[MOST_RANKS];
    struct stop_vote vote;
    bool stopped = false, some_fail = false, some_undone = false;
    int done, asked = -1, all[3];
    draw_parts(parts);
    const struct part *part = &parts[comm.rank];
    snprintf(faults_case, sizeof faults_case, "vote %d", number);
    faults_watch(SECONDS_PER_CASE);
    forget_signals();
    stop_watch();
    status_clear();
    stop_vote_begin(&vote, &comm);
    const hsort_status mine = stop_vote_end(&vote, work(part, &vote, &done), &stopped);
    const uint64_t word =
        check_random(&shared); // of another message, which a vote too many or too few would meet
    uint64_t first = word;
    MPI_Bcast(&first, 1, MPI_UINT64_T, 0, comm.world);
    CHECK(first == word, "vote %d: ranks are apart", number);
    const hsort_status agreed = comm_agree(&comm, mine);

    // all: did any rank stop, did all, has any left something undone?
    const int own[3] = {stopped, !stopped, done < part->pieces};
    MPI_Allreduce(own, all, 3, MPI_INT, MPI_MAX, comm.world);
    CHECK(all[0] != all[1], "vote %d: not all ranks say that they were stopped, or not", number);
    for (int rank = 0; rank < comm.size; rank++) {
        some_fail |= parts[rank].fail_at >= 0;
        some_undone |= parts[rank].signal_at >= 0 && parts[rank].signal_at < parts[rank].pieces;
    }
    CHECK(agreed == HSORT_OK || agreed == HSORT_IO, "vote %d: status %d", number, agreed);
    CHECK(some_fail || agreed == HSORT_OK, "vote %d: nobody failed, but %s", number, comm.error);
    CHECK(stopped || agreed != HSORT_OK || !all[2], "vote %d: nobody stopped, but work is undone", number);
    CHECK(some_fail || stopped || !some_undone, "vote %d: asked with work to do, but not stopped", number);
    CHECK(stop_agree(&comm, &asked) == HSORT_OK && (asked != 0 || !stopped), "vote %d: who asked?", number);
    faults_watch(0);
}

/* One rank alone is asked to stop, while others do work that would never end: they hear of it. A rank that no longer looks lets the
 * signal through. */
static void check_hearing(int signal_number)
{
    for (int teller = 0; teller < comm.size; teller++) {
        struct stop_vote vote;
        bool stopped;
        int asked, done = 0;
        const struct part busy = {INT_MAX, -1, -1}, told = {5, 3, -1};
        snprintf(faults_case, sizeof faults_case, "rank %d is told", teller);
        faults_watch(SECONDS_PER_CASE);
        forget_signals();
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, signal_number);
        sigprocmask(SIG_BLOCK, &signals, NULL); // as a launcher may leave it
        stop_watch();
        stop_vote_begin(&vote, &comm);
        if (comm.rank == teller)
            raise(signal_number);
        const hsort_status mine =
            stop_vote_end(&vote, work(comm.rank == teller ? &told : &busy, &vote, &done), &stopped);
        CHECK(mine == HSORT_OK && stopped, "rank %d was told, rank %d did not hear", teller, comm.rank);
        CHECK(comm.rank != teller || done == 0, "rank %d went on for %d pieces", teller, done);
        CHECK(stop_agree(&comm, &asked) == HSORT_OK && asked == signal_number, "signal %d", asked);
        raise(signal_number == SIGUSR1 ? SIGTERM
                                       : SIGUSR1); // a second one changes nothing if there was a first
        CHECK(comm.rank != teller || stop_signal() == signal_number, "the second signal counts");
        CHECK(heard_before == 0, "a signal was not kept");
        stop_watch(); // goes on
        CHECK(stop_signal() != 0, "a signal that was kept is lost");
        stop_unwatch();
        let_signals_through();
        CHECK(heard_before == 1 && stop_signal() == 0, "%d signals were let through", (int)heard_before);
        faults_watch(0);
    }
    CHECK(strcmp(stop_signal_name(SIGUSR1), "SIGUSR1") == 0 &&
              strcmp(stop_signal_name(SIGTERM), "SIGTERM") == 0,
          "names of signals");
}

/* ---- The library --------------------------------------------------------------------------------------- */

/* hsort_should_stop_fn: counts how often it was asked. */
struct answer {
    int says, asked;
};

static int answer(void *user)
{
    struct answer *mine = user;
    mine->asked++;
    return mine->says;
}

static hsort_context *create(hsort_exchange exchange, hsort_transport transport, struct answer *mine)
{
    hsort_options options;
    hsort_context *ctx = NULL;
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.threads = 1;
    options.exchange = exchange;
    options.transport = transport;
    options.chunk_bytes = 256;
    options.should_stop = answer;
    options.should_stop_user = mine;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    return ctx;
}

/* How keys come and go. Counts of all ranks, drawn alike everywhere. */
struct shape {
    hsort_type type;
    hsort_order order;
    bool in_place;
    int64_t in[MOST_RANKS], out[MOST_RANKS], total;
    bool even; /* the promise of order on each rank holds */
};

static void draw_shape(struct shape *shape)
{
    static const int sizes[] = {1, 2, 3, 7, 64, 200, 1500};
    const int kind = draw(5), most = sizes[draw(7)];
    *shape =
        (struct shape){.type = (hsort_type)draw(ORDER_TYPES), .order = draw(2) ? HSORT_DESCENDING : HSORT_ASCENDING};
    shape->in_place = draw(2);
    const int64_t even_total = draw(most * comm.size + 1);
    const int chosen = draw(comm.size);
    for (int rank = 0; rank < comm.size; rank++) {
        const int64_t share = even_total * (rank + 1) / comm.size - even_total * rank / comm.size;
        const int64_t kinds[] = {most, share, draw(most + 1), rank == chosen ? most : 0, draw(2) ? 0 : most};
        shape->in[rank] = kinds[kind];
        shape->total += kinds[kind];
    }
    int64_t left = shape->total;
    for (int rank = 0; rank < comm.size; rank++) {
        const bool last = rank == comm.size - 1;
        shape->out[rank] = shape->in_place || kind < 2 ? shape->in[rank] : last ? left : draw((int)left + 1);
        left -= shape->out[rank];
    }
    const int64_t capacity = shape->total / comm.size + (shape->total % comm.size != 0);
    shape->even = true;
    for (int rank = 0; rank < comm.size; rank++)
        shape->even &= shape->in[rank] == shape->out[rank] && shape->in[rank] <= capacity;
}

/* All ranks' keys, on every rank; the caller frees them. */
static unsigned char *gather(const struct shape *shape, const int64_t *counts, const void *keys)
{
    const int width = (int)hsort_type_bytes(shape->type);
    int bytes[MOST_RANKS], at[MOST_RANKS], next = 0;
    for (int rank = 0; rank < comm.size; rank++) {
        at[rank] = next;
        bytes[rank] = (int)counts[rank] * width;
        next += bytes[rank];
    }
    unsigned char *all = malloc((size_t)next + 1);
    MPI_Allgatherv(keys, bytes[comm.rank], MPI_BYTE, all, bytes, at, MPI_BYTE, comm.world);
    return all;
}

static bool ascends(const struct shape *shape, const unsigned char *keys, int64_t count)
{
    const size_t width = hsort_type_bytes(shape->type);
    for (int64_t i = 1; i < count; i++)
        if (order_compare(shape->type, shape->order, keys + (size_t)(i - 1) * width,
                          keys + (size_t)i * width) > 0)
            return false;
    return true;
}

/* Sort from `in` to `out`, or in place if they are one, with the keys in memory of kind memory_kind. */
static hsort_status sort_there(hsort_context *ctx, const struct shape *shape, void *in, int64_t count,
                               void *out, int64_t out_count)
{
    const size_t width = hsort_type_bytes(shape->type);
    const size_t bytes = (size_t)count * width, out_bytes = (size_t)out_count * width;
    void *from = memory_kind == BUFFER_HOST ? in : device_buffer_alloc(memory_kind, bytes + 16);
    void *to = memory_kind == BUFFER_HOST ? out
               : in == out                ? from
                                          : device_buffer_alloc(memory_kind, out_bytes + 16);
    CHECK(from && to && (memory_kind == BUFFER_HOST || device_buffer_copy(from, in, bytes)), "no memory");
    if (!from || !to)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const hsort_status status =
        in == out ? hsort_sort(ctx, shape->type, shape->order, from, count, NULL)
                  : hsort_sort_to(ctx, shape->type, shape->order, from, count, to, out_count, NULL);
    if (memory_kind == BUFFER_HOST)
        return status;
    CHECK(device_buffer_copy(in, from, bytes) && device_buffer_copy(out, to, out_bytes), "copy back");
    device_buffer_free(memory_kind, from);
    if (in != out)
        device_buffer_free(memory_kind, to);
    return status;
}

/* Make one sort that `stoppers` (a bit for each rank) stop, and again without them. may_finish: there may be no safe point. */
static void check_sort(hsort_context *ctx, struct answer *mine, unsigned stoppers, bool may_finish,
                       int number)
{
    struct shape shape;
    draw_shape(&shape);
    const int64_t count = shape.in[comm.rank], out_count = shape.out[comm.rank];
    const size_t width = hsort_type_bytes(shape.type), all_bytes = (size_t)shape.total * width;
    uint64_t *in = malloc((size_t)count * width + 8), *other = malloc((size_t)out_count * width + 8);
    for (int64_t i = 0; i < (count * (int64_t)width + 7) / 8; i++)
        in[i] = check_random(&private) & (number % 3 ? UINT64_MAX : 0x0000000300000003u);
    unsigned char *before = gather(&shape, shape.in, in), *wanted = gather(&shape, shape.in, in);
    order_sort(shape.type, shape.order, wanted, shape.total);
    void *out = shape.in_place ? in : other;

    *mine = (struct answer){.says = (int)(stoppers >> comm.rank & 1)};
    const hsort_status status = sort_there(ctx, &shape, in, count, out, out_count);
    // Shards that come in order may be left alone before anybody is asked; keys of 1 and 2 bytes always are.
    const bool is_counted = width < 4, may_pass = may_finish || is_counted || ascends(&shape, before, shape.total);
    int fewest;
    MPI_Allreduce(&mine->asked, &fewest, 1, MPI_INT, MPI_MIN, comm.world);
    CHECK(fewest == mine->asked && mine->asked <= 1 && (mine->asked == 1 || may_pass),
          "sort %d: asked %d times", number, mine->asked);
    CHECK(!is_counted || mine->asked == 0, "sort %d: keys that are counted have a safe point", number);
    CHECK(status == (mine->asked && stoppers ? HSORT_STOPPED : HSORT_OK), "sort %d: %d, %s", number, status,
          hsort_last_error(ctx));
    CHECK(status == HSORT_OK || strstr(hsort_last_error(ctx), "asked to stop"), "sort %d: '%s'", number,
          hsort_last_error(ctx));

    unsigned char *got = gather(&shape, shape.out, out), *sorted = gather(&shape, shape.out, out);
    order_sort(shape.type, shape.order, sorted, shape.total);
    CHECK(memcmp(sorted, wanted, all_bytes) == 0, "sort %d: not the same keys", number);
    CHECK(status != HSORT_OK || memcmp(got, wanted, all_bytes) == 0, "sort %d: not sorted", number);
    CHECK(!shape.even || ascends(&shape, out, out_count), "sort %d: not in order on rank %d", number,
          comm.rank);
    if (!shape.in_place) {
        unsigned char *kept = gather(&shape, shape.in, in);
        CHECK(memcmp(kept, before, all_bytes) == 0, "sort %d: the input was changed", number);
        free(kept);
    }
    mine->says = 0;
    CHECK(sort_there(ctx, &shape, out, out_count, out, out_count) == HSORT_OK, "sort %d again: %s", number,
          hsort_last_error(ctx));
    free(got);
    got = gather(&shape, shape.out, out);
    CHECK(memcmp(got, wanted, all_bytes) == 0, "sort %d again: not sorted", number);
    free(before), free(wanted), free(got), free(sorted), free(in), free(other);
}

static void check_sorts(hsort_exchange exchange, hsort_transport transport, int sorts)
{
    struct answer mine = {0};
    hsort_context *ctx = create(exchange, transport, &mine);
    for (int number = 0; ctx && number < sorts; number++) {
        const unsigned one = 1u << draw(comm.size), some = (unsigned)draw(1 << comm.size);
        snprintf(faults_case, sizeof faults_case, "exchange %d, sort %d", exchange, number);
        faults_watch(SECONDS_PER_CASE);
        check_sort(ctx, &mine, number % 4 ? one : some, exchange == HSORT_EXCHANGE_PARTITION, number);
    }
    faults_watch(0);
    hsort_destroy(&ctx);
}

/* Sorts inside calls on elements are not asked to stop, because nobody could begin them again. Keys of two columns take two of them. */
static void check_elements(hsort_exchange exchange)
{
    enum { EACH = 64 };
    const hsort_field fields[2] = {{.type = HSORT_U64}, {.type = HSORT_U64}};
    struct answer mine = {.says = 1};
    uint64_t keys[EACH], equal[EACH] = {0};
    int64_t index[EACH];
    hsort_context *ctx = create(exchange, HSORT_TRANSPORT_AUTO, &mine);
    for (int i = 0; i < EACH; i++)
        keys[i] = (uint64_t)(comm.size * EACH - 1 - (comm.rank * EACH + i));
    const hsort_status status =
        hsort_argsort_columns(ctx, (const void *[]){equal, keys}, fields, 2, EACH, index, EACH, NULL);
    CHECK(status == HSORT_OK && mine.asked == 0, "an argsort: status %d, asked %d times: %s", status,
          mine.asked, hsort_last_error(ctx));
    for (int i = 0; i < EACH; i++)
        CHECK(index[i] == comm.size * EACH - 1 - (comm.rank * EACH + i), "entry %d is %lld", i,
              (long long)index[i]);
    hsort_destroy(&ctx);
}

#ifdef HSORT_FAULTS
/* If all ranks want to stop and one fails, all ranks hear about the failure, and no statement about their keys. */
static void check_failure_wins(void)
{
    struct answer mine = {.says = 1};
    for (int failing = 0; failing < comm.size; failing++) {
        uint64_t keys[64];
        hsort_context *ctx = create(HSORT_EXCHANGE_BITONIC, HSORT_TRANSPORT_STAGED, &mine);
        for (int i = 0; i < 64; i++)
            keys[i] = check_random(&private);
        fault_set(FAULT_KERNEL, comm.rank == failing);
        const hsort_status status = hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, 64, NULL);
        fault_set(FAULT_KERNEL, 0);
        CHECK(status == HSORT_INTERNAL, "rank %d failed, and all got %d", failing, status);
        char who[32];
        snprintf(who, sizeof who, "rank %d on ", failing);
        CHECK(strncmp(hsort_last_error(ctx), who, strlen(who)) == 0, "%s", hsort_last_error(ctx));
        hsort_destroy(&ctx);
    }
}
#else
static void check_failure_wins(void)
{
}
#endif

/* Sort on GPUs, from and to every kind of memory; device memory is of the GPU that the library takes for this rank. */
static void check_gpus(void)
{
    struct answer mine = {0};
    hsort_rank_info infos[MOST_RANKS];
    engine = HSORT_ENGINE_CUDA;
    hsort_context *ctx = create(HSORT_EXCHANGE_BITONIC, HSORT_TRANSPORT_AUTO, &mine);
    if (!ctx)
        return;
    CHECK(hsort_topology(ctx, infos, sizeof *infos) == HSORT_OK, "%s", hsort_last_error(ctx));
    const int kinds = device_buffer_kinds(infos[comm.rank].gpu_index);
    hsort_destroy(&ctx);
    for (int k = 0; k < kinds; k++) {
        memory_kind = (enum buffer_kind)k;
        check_sorts(HSORT_EXCHANGE_BITONIC, HSORT_TRANSPORT_AUTO, SORTS / 4);
        check_sorts(HSORT_EXCHANGE_DIRECT, HSORT_TRANSPORT_AUTO, SORTS / 4);
        check_sorts(HSORT_EXCHANGE_BITONIC, HSORT_TRANSPORT_STAGED, SORTS / 4);
    }
}

int main(int argc, char **argv)
{
    char why[256] = "";
    const bool cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
    MPI_Init(&argc, &argv);
    if (cuda && cuda_device_count(why, sizeof why) == 0)
        return ranks_skip(why);
    signal(SIGUSR1, hear_before);
    signal(SIGTERM, hear_before);
    shared = ranks_seed();
    if (comm_open(MPI_COMM_WORLD, &comm) != HSORT_OK || comm.size > MOST_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    private = shared + (uint64_t)comm.rank * 77777 + 1;
    if (cuda) {
        check_gpus();
    } else if (argc > 1 && strcmp(argv[1], "ipc") == 0) {
        check_sorts(HSORT_EXCHANGE_BITONIC, HSORT_TRANSPORT_IPC, SORTS / 2);
        check_sorts(HSORT_EXCHANGE_DIRECT, HSORT_TRANSPORT_IPC, SORTS / 2);
        check_sorts(HSORT_EXCHANGE_PARTITION, HSORT_TRANSPORT_IPC, SORTS / 2);
    } else {
        for (int number = 0; number < VOTES; number++)
            check_vote(number);
        check_hearing(SIGUSR1);
        check_hearing(SIGTERM);
        check_sorts(HSORT_EXCHANGE_AUTO, HSORT_TRANSPORT_AUTO, SORTS);
        check_sorts(HSORT_EXCHANGE_BITONIC, HSORT_TRANSPORT_STAGED, SORTS);
        check_sorts(HSORT_EXCHANGE_DIRECT, HSORT_TRANSPORT_MPI, SORTS);
        check_sorts(HSORT_EXCHANGE_PARTITION, HSORT_TRANSPORT_STAGED, SORTS / 2);
        check_elements(HSORT_EXCHANGE_BITONIC);
        check_elements(HSORT_EXCHANGE_PARTITION);
        check_failure_wins();
    }
    comm_close(&comm);
    return ranks_finish();
}
