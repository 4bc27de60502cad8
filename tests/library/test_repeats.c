/* Sorts of keys whose values repeat, by the exchange `partition`: a value that has a region of its own does not move, but is
 * written anew. The test checks that this happens where it should, that other inputs go another way, and that all results are
 * right. The oracle is qsort of all keys on rank 0, by the order of order.h, compared bit for bit.
 *
 *     shape     keys                                                 by partition?   moved
 *     two       two values                                           yes             none
 *     small     integers 0 .. 6                                      yes             none
 *     wide      five values of any bits                              yes             none
 *     ends      the smallest and the largest code, and two between   yes             none
 *     odd       NaNs of both signs, infinities, zeros; extremes      yes             none
 *     hundreds  300 values                                           yes             perhaps some
 *     skewed    value k as often as 1 / k^2                          yes             some
 *     many      a third are one value, no two others are equal       yes             the others
 *     middle    half are one value, between others                   yes             the others
 *     sorted    few values, in order                                 no: nothing has to be done
 *     shards    few values, each rank's in order                     no: they may be in order
 *     uniform   all different                                        yes             all
 *     any       on a rank that is alone                              no: it has nobody to exchange keys with
 *
 *     test_repeats_ipc   the host engine, whose memory ranks map (shared_engine.h), all or some: it counts the keys that are
 *                        written anew
 *     test_repeats_nodes the same on several virtual nodes, to which keys go in fewer bytes
 *     test_repeats cuda  the cuda engine: the exchange that ran shows it, for enough keys that their memory can be mapped */
#include "mpi/exchange/batch_plan.h"
#include "tests/support/device_buffer.h"
#include "kernels/base/key_width.h"
#include "kernels/engine.h"
#include "tests/support/layout.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"
#ifdef SHARED_ENGINE
#include "tests/support/shared_engine.h"
#endif

enum { REPEATED = 1 << 22 }; /* of MIDDLE */
enum { MOST_RANKS = 64, GUARD = 64, CANARY = 0xc5, SECONDS = 2, MAPPED_KEYS = ENGINE_PEER_BYTES / 4 };

/* Up to ODD each value has a region of its own, up to MIDDLE one value has. */
enum shape { TWO, SMALL, WIDE, ENDS, ODD, HUNDREDS, SKEWED, MANY, MIDDLE, SORTED, SHARDS, UNIFORM, SHAPES };

static const char *const shape_names[SHAPES] = {"two",    "small", "wide",   "ends",   "odd",    "hundreds",
                                                "skewed", "many",  "middle", "sorted", "shards", "uniform"};

struct trial {
    enum shape shape;
    hsort_type type;
    hsort_order order;
    int64_t count; /* of all ranks */
    enum layout in_layout, out_layout;
    enum buffer_kind kind; /* of the memory that keys lie in */
    bool in_place;
    bool unmapped; /* a rank cannot map another one's keys */
    uint64_t seed;
};

/* Keys in memory of some kind, between canaries. */
struct shard {
    unsigned char *memory, *image; /* [bytes] image: what memory must hold, or held */
    size_t at, bytes;              /* at: where the keys begin */
};

static int rank, size, buffer_kinds = 1;
static hsort_context *ctx;
static char what[200];
static int written_trials, trials;

/* ---- keys --------------------------------------------------------------------------------------------------------- */

static uint64_t number_at(const struct trial *t, uint64_t place)
{
    uint64_t random = t->seed + place * UINT64_C(0x9e3779b97f4a7c15);
    return check_random(&random);
}

/* The key that has the value `number`. */
static uint64_t bits_of(hsort_type type, uint64_t number)
{
    const float narrow = (float)number;
    const double wide = (double)number;
    uint64_t bits = number;
    if (type == HSORT_F32)
        memcpy(&bits, &narrow, sizeof narrow);
    if (type == HSORT_F64)
        memcpy(&bits, &wide, sizeof wide);
    return bits;
}

static uint64_t odd_bits(hsort_type type, uint64_t choice)
{
    static const uint64_t odd[2][8] = {
        {0, UINT64_C(1) << 63, 1, UINT64_C(0x7ff) << 52, UINT64_C(0xfff) << 52, UINT64_C(0x7ff8000000000001),
         UINT64_MAX, UINT64_C(0xfff0000000000001)},
        {0, 0x80000000, 1, 0x7f800000, 0xff800000, 0x7fc00001, UINT32_MAX, 0xff800001}};
    return odd[hsort_type_bytes(type) == 4][choice % 8];
}

/* Key i of all. */
static uint64_t key_at(const struct trial *t, int64_t i)
{
    const uint64_t draw = number_at(t, (uint64_t)i);
    const uint64_t fixed = number_at(t, UINT64_MAX - draw % (t->shape == TWO ? 2 : 5));
    switch (t->shape) {
    case TWO:
    case WIDE:
        return fixed;
    case SMALL:
        return bits_of(t->type, draw % 7);
    case ENDS:
        return keymap_decode(keymap_make(t->type, t->order),
                             (const uint64_t[]){0, UINT64_MAX, 1, UINT64_MAX - 1}[draw % 4]);
    case ODD:
        return odd_bits(t->type, draw);
    case HUNDREDS:
        return bits_of(t->type, draw % 300 * 1000);
    case SKEWED: // at least k: 1 / k of all draws
        return bits_of(t->type, UINT32_MAX / ((draw >> 32) + 4096));
    case MANY:
        return draw % 3 == 0 ? bits_of(t->type, 1) : bits_of(t->type, 2 + (uint64_t)i);
    case MIDDLE:
        return bits_of(t->type, draw % 2 == 0 ? REPEATED : (draw >> 8) % (2 * REPEATED));
    case SORTED:
        return bits_of(t->type, (uint64_t)(i * 5 / t->count));
    case SHARDS:
        return bits_of(t->type, (uint64_t)((i * size) % t->count * 5 / t->count));
    case UNIFORM:
    case SHAPES:
        break;
    }
    return bits_of(t->type,
                   (uint64_t)i * 7919 % (1 << 20)); // no two of so few are equal, because the factor is odd
}

/* Keys [first, first + count). */
static void fill(const struct trial *t, int64_t first, int64_t count, unsigned char *keys)
{
    const size_t width = hsort_type_bytes(t->type);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = key_at(t, first + i);
        memcpy(keys + (size_t)i * width, &bits, width); // little-endian
    }
}

/* ---- the oracle ----------------------------------------------------------------------------------------------------- */

/* Compare all ranks' keys with what qsort makes of the input. */
static void compare(const struct trial *t, const unsigned char *own, const int64_t *counts)
{
    const int width = (int)hsort_type_bytes(t->type);
    const size_t all = (size_t)t->count * (size_t)width;
    int bytes[MOST_RANKS], at[MOST_RANKS + 1] = {0};
    unsigned char *expected = malloc(rank == 0 ? all : 1), *found = malloc(rank == 0 ? all : 1);
    if (!expected || !found)
        abort();
    for (int r = 0; r < size; r++) {
        bytes[r] = (int)counts[r] * width;
        at[r + 1] = at[r] + bytes[r];
    }
    MPI_Gatherv(own, bytes[rank], MPI_BYTE, found, bytes, at, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        fill(t, 0, t->count, expected);
        order_sort(t->type, t->order, expected, t->count);
        CHECK(memcmp(found, expected, all) == 0, "%s: not what qsort makes of it", what);
    }
    free(expected);
    free(found);
}

/* ---- one trial ------------------------------------------------------------------------------------------------------ */

static struct shard shard_make(const struct trial *t, int64_t count)
{
    struct shard shard = {.at = GUARD + 8 * (t->seed % 2)};
    shard.bytes = 2 * GUARD + (size_t)count * hsort_type_bytes(t->type);
    shard.memory = device_buffer_alloc(t->kind, shard.bytes);
    shard.image = malloc(shard.bytes);
    if (!shard.memory || !shard.image)
        abort();
    memset(shard.image, CANARY, shard.bytes);
    return shard;
}

static void shard_load(const struct shard *shard)
{
    CHECK(device_buffer_copy(shard->memory, shard->image, shard->bytes), "%s: cannot copy", what);
}

/* Nothing but bytes [from, until) of the shard may have changed; bring them back. */
static void shard_fetch(struct shard *shard, size_t from, size_t until)
{
    unsigned char *found = malloc(shard->bytes);
    if (!found)
        abort();
    CHECK(device_buffer_copy(found, shard->memory, shard->bytes), "%s: cannot copy", what);
    CHECK(memcmp(found, shard->image, from) == 0 &&
              memcmp(found + until, shard->image + until, shard->bytes - until) == 0,
          "%s: rank %d: what is no output was changed", what, rank);
    memcpy(shard->image + from, found + from, until - from);
    free(found);
}

static void shard_drop(struct shard *shard, enum buffer_kind kind)
{
    device_buffer_free(kind, shard->memory);
    free(shard->image);
}

#ifdef SHARED_ENGINE
/* Count the keys of MANY and MIDDLE that have the value which repeats. */
static int64_t repeated_keys(const struct trial *t)
{
    const uint64_t value = bits_of(t->type, t->shape == MANY ? 1 : REPEATED);
    int64_t keys = 0;
    for (int64_t i = 0; i < t->count; i++)
        keys += key_at(t, i) == value;
    return keys;
}

/* written: keys that this rank has written anew. */
static void check_way(const struct trial *t, int64_t written)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK, "%s: %s", what, hsort_last_error(ctx));
    MPI_Allreduce(MPI_IN_PLACE, &written, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    const bool by_partition = hsort_exchange_in_use(ctx) == HSORT_EXCHANGE_PARTITION;
    const bool stays =
        t->in_layout == LAYOUT_BALANCED; // else a rank may get keys before they are partitioned
    const bool balanced = stays && (t->in_place || t->out_layout == LAYOUT_BALANCED);
    const bool is_ordered = t->shape == SORTED || t->shape == SHARDS;
    trials++;
    written_trials += written > 0;
    CHECK(by_partition == (size > 1 && !is_ordered) || (t->shape == SHARDS && !stays),
          "%s: exchange %d", what, (int)hsort_exchange_in_use(ctx));
    CHECK(t->shape != SORTED || !balanced || stats.moved_bytes == 0, "%s: %lld bytes moved", what,
          (long long)stats.moved_bytes);
    for (int i = 0; i < HSORT_TRANSPORTS; i++)
        CHECK(stats.paths[i].moved_bytes == 0 || stats.paths[i].seconds > 0,
              "%s: nobody has ended a move by path %d", what, i);
    if (!by_partition) {
        CHECK(written == 0, "%s: %lld keys written anew", what, (long long)written);
        return;
    }
    CHECK(t->shape > ODD || written == t->count, "%s: %lld keys written anew", what, (long long)written);
    CHECK(t->shape > ODD || !balanced || stats.moved_bytes == 0, "%s: %lld bytes moved", what,
          (long long)stats.moved_bytes);
    CHECK((t->shape != MANY && t->shape != MIDDLE) || written >= repeated_keys(t),
          "%s: %lld keys written anew", what, (long long)written);
    // what moves goes to a rank, or to several if it lies across their boundary; so do gaps between regions in rooms
    const int64_t gaps = size * batch_spare_keys(false, (t->count + size - 1) / size);
    const int64_t others = (t->count - written + gaps) * (int64_t)hsort_type_bytes(t->type);
    CHECK(!balanced || stats.moved_bytes <= others * (size - 1), "%s: %lld bytes moved", what,
          (long long)stats.moved_bytes);
}
#endif

static void run_trial(const struct trial *t)
{
    const size_t width = hsort_type_bytes(t->type);
    int64_t counts[MOST_RANKS], out_counts[MOST_RANKS];
    layout_counts(t->in_layout, t->count, size, t->seed, counts);
    layout_counts(t->out_layout, t->count, size, t->seed + 1, out_counts);
    if (t->in_place)
        memcpy(out_counts, counts, sizeof counts);
    const int64_t first = layout_before(counts, rank);
    snprintf(what, sizeof what, "%s, %lld %s, order %d, layout %d -> %d%s, memory %d, seed %llu",
             shape_names[t->shape], (long long)t->count, hsort_type_name(t->type), t->order, t->in_layout,
             t->out_layout, t->in_place ? " in place" : "", t->kind, (unsigned long long)t->seed);
    struct shard in = shard_make(t, counts[rank]), out = shard_make(t, out_counts[rank]);
    struct shard *result = t->in_place ? &in : &out;
    fill(t, first, counts[rank], in.image + in.at);
    shard_load(&in);
    shard_load(&out);
#ifdef SHARED_ENGINE
    const int64_t written = shared_written;
    shared_open_fails = t->unmapped && rank == size / 2;
#endif
    const hsort_status status = hsort_sort_to(ctx, t->type, t->order, in.memory + in.at, counts[rank],
                                              result->memory + result->at, out_counts[rank], NULL);
    CHECK(status == HSORT_OK, "%s: %s", what, hsort_last_error(ctx));
    if (!t->in_place)
        shard_fetch(&in, in.bytes, in.bytes);
    shard_fetch(result, result->at, result->at + (size_t)out_counts[rank] * width);
    compare(t, result->image + result->at, out_counts);
#ifdef SHARED_ENGINE
    shared_open_fails = 0;
    check_way(t, shared_written - written);
#else
    const bool certain = t->shape <= MIDDLE && size > 1 && t->count / size >= MAPPED_KEYS;
    CHECK(!certain || hsort_exchange_in_use(ctx) == HSORT_EXCHANGE_PARTITION, "%s: exchange %d", what,
          (int)hsort_exchange_in_use(ctx));
#endif
    shard_drop(&in, t->kind);
    shard_drop(&out, t->kind);
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

/* Draw a trial of that shape and type, whatever else it is drawn with. */
static struct trial draw(enum shape shape, hsort_type type, uint64_t seed)
{
    uint64_t random = seed;
    struct trial t = {.shape = shape, .type = type, .seed = check_random(&random)};
    t.order = check_random(&random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
    t.count = 10007 * size + (int64_t)(check_random(&random) % 10007);
    t.in_layout =
        (enum layout)(check_random(&random) % 2 ? LAYOUT_BALANCED : check_random(&random) % LAYOUTS);
    t.out_layout =
        (enum layout)(check_random(&random) % 2 ? LAYOUT_BALANCED : check_random(&random) % LAYOUTS);
    t.kind = (enum buffer_kind)(check_random(&random) % (uint64_t)buffer_kinds);
    t.in_place = check_random(&random) % 3 == 0;
    if (shape == SORTED || shape == SHARDS)
        t.order = HSORT_ASCENDING;
    if (shape == SHARDS)
        t.count -= t.count % size;
    return t;
}

/* Each shape with each type, then any with any for some seconds. */
static void run_all(uint64_t seed)
{
    const double begin = MPI_Wtime();
    int go_on = 1;
    for (int number = 0; go_on; number++) {
        uint64_t random = seed + (uint64_t)number * 1000003;
        const bool fixed = number < SHAPES * (HSORT_F64 + 1);
        const uint64_t choice = fixed ? (uint64_t)number : check_random(&random);
        const struct trial t =
            draw((enum shape)(choice % SHAPES), (hsort_type)(choice / SHAPES % (HSORT_F64 + 1)), random);
        run_trial(&t);
        go_on = fixed || MPI_Wtime() - begin < SECONDS;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

/* Sort so many keys that engines of any kind map each other's memory, and that a value has more keys than a batch. */
static void run_mapped(uint64_t seed)
{
    for (enum shape shape = TWO; shape <= MIDDLE; shape++) {
        struct trial t = draw(shape, (hsort_type)((seed + shape) % (HSORT_F64 + 1)), seed + shape);
        t.in_layout = t.out_layout =
            LAYOUT_BALANCED; // keys that are dealt out first may lie in memory that is not mapped
        t.count = (MAPPED_KEYS + (int64_t)(t.seed % 1000)) * size;
        run_trial(&t);
    }
}

static bool create(hsort_engine engine, hsort_transport transport)
{
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.transport = transport;
    options.exchange = HSORT_EXCHANGE_PARTITION;
    options.threads = 1;
    const hsort_status status = hsort_create(MPI_COMM_WORLD, &options, &ctx);
    CHECK(status == HSORT_OK, "%s", hsort_last_error(NULL));
    return status == HSORT_OK;
}

/* Sort many keys. All keys that go from node to node, or through host memory, take fewer bytes than they have, because neighbours in
 * the order of all keys of a rank differ by only some bits. most: the bytes that may move at most, as a part of all that would. */
static void run_packed(hsort_engine engine, hsort_transport transport, double most, uint64_t seed)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    if (size == 1 || !create(engine, transport))
        return;
    for (hsort_type type = HSORT_U32; type <= HSORT_F64; type++) {
        struct trial t = draw(UNIFORM, type, seed + type);
        t.in_layout = t.out_layout = LAYOUT_BALANCED;
        t.count = (int64_t)size << 16;
        t.kind = BUFFER_HOST;
        run_trial(&t);
        const double plain = (double)t.count * (double)hsort_type_bytes(type) * (size - 1) / size;
        CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK && hsort_exchange_in_use(ctx) == HSORT_EXCHANGE_PARTITION &&
                  (double)stats.moved_bytes < plain * most,
              "%s: %lld bytes of %g moved", what, (long long)stats.moved_bytes, plain);
    }
    hsort_destroy(&ctx);
}

#ifdef SHARED_ENGINE
/* If one rank cannot map another one's keys, that pair sends messages; the next sort is as usual. */
static void run_unmapped(uint64_t seed)
{
    if (size == 1 || !create(HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO))
        return;
    struct trial t = draw(UNIFORM, HSORT_U64, seed); // every rank wants keys of others
    t.in_layout = t.out_layout = LAYOUT_BALANCED;
    t.kind = BUFFER_HOST;
    t.unmapped = true;
    run_trial(&t);
    t.unmapped = false;
    run_trial(&t);
    hsort_destroy(&ctx);
}

/* If the device of the last rank does not sort by regions, like a GPU of another kind, nobody does. */
static void run_unlike(uint64_t seed)
{
    shared_can_partition = rank != size - 1;
    if (size > 1 && create(HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO)) {
        const int64_t count = 10007;
        uint64_t *keys = malloc((size_t)count * sizeof *keys), random = seed + (uint64_t)rank;
        hsort_check_result before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
        for (int64_t i = 0; i < count; i++)
            keys[i] = check_random(&random);
        CHECK(hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, keys, count, NULL, &before) == HSORT_OK &&
                  hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, count, NULL) == HSORT_OK &&
                  hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, keys, count, NULL, &after) == HSORT_OK,
              "unlike devices: %s", hsort_last_error(ctx));
        CHECK(after.first_disorder < 0 &&
                  memcmp(before.fingerprint, after.fingerprint, sizeof after.fingerprint) == 0,
              "unlike devices: not the keys in order");
        CHECK(hsort_exchange_in_use(ctx) != HSORT_EXCHANGE_PARTITION, "a device that cannot has partitioned");
        free(keys);
        hsort_destroy(&ctx);
    }
    shared_can_partition = true;
}

/* Some pairs exchange keys by ipc, as on a node, the others by message, as between nodes. */
static void run_mixed(uint64_t seed)
{
    shared_may_map = shared_some_may;
    if (size > 1 && create(HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO)) {
        for (enum shape shape = TWO; shape < SHAPES; shape++) {
            const struct trial t = draw(shape, (hsort_type)((seed + shape) % (HSORT_F64 + 1)), seed + shape);
            run_trial(&t);
        }
        run_mapped(seed);
        hsort_destroy(&ctx);
    }
    shared_may_map = NULL;
}
#endif

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const uint64_t seed = ranks_seed();
    const hsort_engine engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    if (create(engine, HSORT_TRANSPORT_AUTO)) {
        hsort_rank_info infos[MOST_RANKS];
        CHECK(hsort_topology(ctx, infos, sizeof *infos) == HSORT_OK, "%s", hsort_last_error(ctx));
        buffer_kinds = device_buffer_kinds(cuda ? infos[rank].gpu_index : 0);
        run_all(seed);
        run_mapped(seed);
        hsort_destroy(&ctx);
    }
    run_packed(engine, HSORT_TRANSPORT_STAGED, 0.7, seed);
#ifdef SHARED_ENGINE
    run_unmapped(seed);
    run_unlike(seed);
    run_mixed(seed);
#ifdef VIRTUAL_NODES // of two ranks; half of what goes between the ranks of one node is not packed
    run_packed(engine, HSORT_TRANSPORT_AUTO, size > 2 ? 0.85 : 0.7, seed);
#endif
#endif
    if (rank == 0 && trials > 0)
        printf("%d trials on %d ranks, %d of them with keys written anew\n", trials, size, written_trials);
    return ranks_finish();
}
