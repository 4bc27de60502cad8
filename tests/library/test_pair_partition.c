/* What goes with keys on several ranks by the exchange `partition`: values, positions that an argsort gives, records. Types,
 * inputs, counts and kinds of memory are drawn; results are compared bit for bit with a stable sort of all of them on every rank.
 *
 *     values travel    the statistics have no gather; certain if keys are spread evenly, and never if there are too few of
 *                      them, on a rank alone, if some rank's values have no place to travel from, or if more pairs lie at
 *                      the edge of a rank's part than are sorted apart
 *
 *     test_pair_partition       the host engine
 *     test_pair_partition cuda  the cuda engine, with arrays in all kinds of memory, and more pairs
 *     test_pair_partition cuda small     few trials, and not many pairs: for tools under which everything takes long
 *     test_pair_partition cuda unmapped  the same, and no rank maps another one's memory
 *     test_pair_partition_nodes          as if some ranks were on other nodes: what goes there is packed */
#include "tests/library/drawn_array.h"
#include "hypersort.h"
#include "kernels/base/key_width.h"
#include "tests/support/distributions.h"
#include "tests/support/layout.h"
#ifdef SHARED_ENGINE
#include "tests/support/shared_engine.h"
#endif
#ifdef VIRTUAL_NODES
static const bool on_nodes = true;
#else
static const bool on_nodes = false;
#endif
static size_t message; /* bytes of the longest message; 0: more than any trial sends */

enum {
    MOST_RANKS = 64,
    SECONDS = 2,
    DIGIT = 16,
    LEAST = 1 << 12,           /* pairs of which a map is made */
    MANY = 1 << 18,            /* bytes that cross, of which packing leaves some out */
    HIDING = 2 * (1 << 13) - 1 /* pairs of which every other one is in the sample */
};

enum call { PAIRS, VALUES_ALONE, ARGSORT, RECORDS, CALLS }; /* records end with their keys */
static const char *const call_names[CALLS] = {"pairs", "values alone", "argsort", "records"};

struct trial {
    enum call call;
    struct input input;
    hsort_order order;
    size_t value_bytes; /* of a record, all */
    bool in_place;
    bool odd;   /* values of the last rank lie at an odd address */
    bool hides; /* pairs that the sample does not have lie between two keys of it, in the middle */
    int64_t in_counts[MOST_RANKS], out_counts[MOST_RANKS];
};

static int rank, size, travelled, others;
static hsort_context *ctx;

/* ---- the oracle ---------------------------------------------------------------------------------------- */

/* A key's code, and its position among all. */
struct place {
    uint64_t code;
    int64_t at;
};

/* Sort places [count] by their codes, digit by digit: equal codes keep their order. */
static struct place *sort_places(struct place *from, int64_t count)
{
    struct place *to = malloc((size_t)(count + 1) * sizeof *to);
    int64_t *next = malloc(sizeof *next << DIGIT);
    for (int shift = 0; shift < 64; shift += DIGIT) {
        memset(next, 0, sizeof *next << DIGIT);
        for (int64_t i = 0; i < count; i++)
            next[from[i].code >> shift & 0xffff]++;
        for (int64_t digit = 0, begin = 0; digit < 1 << DIGIT; digit++) {
            const int64_t own = next[digit];
            next[digit] = begin;
            begin += own;
        }
        for (int64_t i = 0; i < count; i++)
            to[next[from[i].code >> shift & 0xffff]++] = from[i];
        struct place *sorted = to;
        to = from;
        from = sorted;
    }
    free(to);
    free(next);
    return from;
}

/* The value of pair `at`. */
static uint64_t value_of(const struct trial *t, int64_t at)
{
    return input_hash(t->input.seed, (uint64_t)at);
}

/* Is pair `at` in the sample that is taken of HIDING pairs? */
static bool is_in_sample(const struct trial *t, int64_t at)
{
    struct sample_share share = {.total = HIDING};
    while (HIDING >> (share.log + 1) > 0)
        share.log++;
    share.first =
        (int)((((at + 1) << share.log) - 1) / HIDING); // the last part that begins at `at` or before
    for (int r = 0; r < size; r++, share.before += share.count) {
        share.count = t->in_counts[r];
        if (sample_part_begin(share.first, HIDING, share.log) < share.before + share.count)
            break;
    }
    return sample_place(&share, 0) == at;
}

/* The key of pair `at`. */
static uint64_t key_of(const struct trial *t, const struct input_source *source, int64_t at)
{
    enum { APART = 16 };
    const uint64_t middle = (HIDING / 2 | 1) << APART;
    return !t->hides             ? input_key(source, at)
           : is_in_sample(t, at) ? (uint64_t)at << APART
                                 : middle + (uint64_t)at;
}

/* ---- trials -------------------------------------------------------------------------------------------- */

/* keys, values [count] of pairs at[i], or first + i; either may be NULL. */
static void make_pairs(const struct trial *t, const struct input_source *source, const struct place *at,
                       int64_t first, int64_t count, unsigned char *keys, unsigned char *values)
{
    const size_t key_bytes = hsort_type_bytes(t->input.type);
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = at ? at[first + i].at : first + i;
        const uint64_t key = key_of(t, source, place);
        const uint64_t value = t->call == ARGSORT ? (uint64_t)place : value_of(t, place);
        unsigned char *to = values + (size_t)i * t->value_bytes;
        for (size_t byte = 0; byte < t->value_bytes; byte++)
            to[byte] = (unsigned char)(value >> byte % 8 * 8) ^ (unsigned char)(byte / 8);
        memcpy(t->call == RECORDS ? to + t->value_bytes - key_bytes : keys + (size_t)i * key_bytes, &key,
               key_bytes);
    }
}

/* Return the bytes before this rank's values. */
static size_t odd_bytes(const struct trial *t)
{
    return t->odd && rank == size - 1;
}

static hsort_status run_call(const struct trial *t, struct array *keys, struct array *values,
                             struct array *keys_out, struct array *values_out)
{
    const hsort_type type = t->input.type;
    const int64_t in = t->in_counts[rank], out = t->out_counts[rank];
    const hsort_field field = {
        .type = type, .order = t->order, .offset = t->value_bytes - hsort_type_bytes(type)};
    unsigned char *from = values->memory + odd_bytes(t), *to = values_out->memory + odd_bytes(t);
    if (t->call == RECORDS)
        return hsort_sort_records_to(ctx, values->memory, t->value_bytes, &field, 1, in, values_out->memory,
                                     out, NULL);
    if (t->call == ARGSORT)
        return hsort_argsort(ctx, type, t->order, keys->memory, in, (int64_t *)(void *)values_out->memory,
                             keys_out->memory, out, NULL);
    return hsort_sort_pairs_to(ctx, type, t->order, keys->memory, from, t->value_bytes, in,
                               t->call == VALUES_ALONE ? NULL : keys_out->memory, to, out, NULL);
}

/* Are keys that a rank sends to another one long enough to be packed? Values do not count: as many bytes as with them may cross where
 * parts of keys are too short. */
static bool long_parts(const struct trial *t)
{
    const size_t keys = (size_t)t->input.count * hsort_type_bytes(t->input.type);
    return message > 0 && keys / (size_t)size / (size_t)size >= message / 2;
}

/* Can values travel, if there are enough pairs? Values of 4 and 8 bytes go with keys that are one array of numbers, from and to
 * addresses at which they are aligned; other values also go with codes of keys, if nobody wants the keys back. */
static bool can_travel(const struct trial *t)
{
    const bool bare = hsort_type_bytes(t->input.type) >= 4;
    if (t->call != RECORDS && (t->value_bytes == 4 || t->value_bytes == 8))
        return bare && !t->odd;
    return bare || t->call != PAIRS;
}

/* Did values travel? An argsort gathers no values in either way. */
static void look_at_stats(const struct trial *t)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    const bool can = size > 1 && t->input.count >= LEAST && !t->hides && can_travel(t);
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK, "%s", hsort_last_error(ctx));
    if (size == 1 || t->call == ARGSORT)
        return;
    const bool travel = stats.seconds[HSORT_PHASE_GATHER] == 0;
    *(travel ? &travelled : &others) += 1;
    CHECK(can || !travel, "values travel: %s", what);
    CHECK(!can || hsort_type_bytes(t->input.type) < 4 || t->input.distribution != INPUT_UNIFORM ||
              t->input.count < 4 * LEAST || travel,
          "values do not travel: %s", what);
    CHECK(!travel || (stats.seconds[HSORT_PHASE_EXCHANGE] > 0 &&
                      hsort_exchange_in_use(ctx) == HSORT_EXCHANGE_PARTITION),
          "values travel by exchange %d in %g s: %s", (int)hsort_exchange_in_use(ctx),
          stats.seconds[HSORT_PHASE_EXCHANGE], what);
    CHECK(stats.crossed_bytes <= stats.crossed_plain_bytes, "more bytes cross than there are: %s", what);
    CHECK(!on_nodes || !travel || t->call == RECORDS || t->input.distribution != INPUT_UNIFORM ||
              !long_parts(t) || stats.crossed_plain_bytes < MANY ||
              stats.crossed_bytes < stats.crossed_plain_bytes,
          "nothing is packed: %s", what);
}

static void run_trial(const struct trial *t)
{
    const struct input_source source = input_source_make(&t->input);
    const struct keymap map = keymap_make(t->input.type, t->order);
    const size_t key_bytes = hsort_type_bytes(t->input.type);
    const int64_t in = t->in_counts[rank], out = t->out_counts[rank];
    struct place *order = malloc((size_t)(t->input.count + 1) * sizeof *order);
    for (int64_t i = 0; i < t->input.count; i++) {
        const uint64_t key = key_of(t, &source, i);
        order[i] = (struct place){(uint64_t)keymap_encode(map, key), i};
    }
    order = sort_places(order, t->input.count);
    snprintf(what, sizeof what,
             "%s %s of %lld %s:%d, order %d, values of %zu, seed %llu, rank %d of %d: %lld to %lld%s%s",
             call_names[t->call], hsort_type_name(t->input.type), (long long)t->input.count,
             distribution_word(t->input.distribution), t->input.parameter, (int)t->order, t->value_bytes,
             (unsigned long long)t->input.seed, rank, size, (long long)in, (long long)out,
             t->in_place ? ", in place" : "", t->odd ? ", at an odd address" : "");

    const size_t odd = odd_bytes(t);
    unsigned char *made[2] = {malloc((size_t)(in + out + 1) * key_bytes),
                              malloc((size_t)(in + out + 1) * t->value_bytes)};
    made[1][0] = POISON; // what lies before values at an odd address
    make_pairs(t, &source, NULL, layout_before(t->in_counts, rank), in, made[0], made[1] + odd);
    struct array keys = array_make(made[0], (size_t)in * key_bytes),
                 values = array_make(made[1], odd + (size_t)in * t->value_bytes), keys_out = {0},
                 values_out = {0};
    if (!t->in_place) {
        keys_out = array_make(NULL, (size_t)out * key_bytes);
        values_out = array_make(NULL, odd + (size_t)out * t->value_bytes);
    }
    struct array *to_keys = t->in_place ? &keys : &keys_out, *to_values = t->in_place ? &values : &values_out;
    CHECK(hsort_sort(ctx, HSORT_U8, HSORT_ASCENDING, NULL, 0, NULL) == HSORT_OK &&
              hsort_exchange_in_use(ctx) == HSORT_EXCHANGE_AUTO,
          "no keys are sorted by exchange %d: %s", (int)hsort_exchange_in_use(ctx), hsort_last_error(ctx));
    const hsort_status status = run_call(t, &keys, &values, to_keys, to_values);
    CHECK(status == HSORT_OK, "%s: %s", hsort_last_error(ctx), what);
    made[1][0] = POISON;
    make_pairs(t, &source, order, layout_before(t->out_counts, rank), out, made[0], made[1] + odd);
    if (t->call == PAIRS || t->call == ARGSORT)
        expect(to_keys, made[0]);
    expect(to_values, made[1]);
    if (status == HSORT_OK)
        look_at_stats(t);
    free(made[0]);
    free(made[1]);
    array_check(&keys, "keys");
    array_check(&values, "values");
    if (!t->in_place) {
        array_check(&keys_out, "keys that come out");
        array_check(&values_out, "values that come out");
    }
    free(order);
}

static struct trial draw_trial(uint64_t seed, int log)
{
    static const hsort_type types[] = {HSORT_U32, HSORT_I32, HSORT_F32, HSORT_U64, HSORT_I64, HSORT_F64};
    static const size_t sizes[] = {1, 3, 12, 24, 92};
    struct trial t = {.call = (enum call)(seed % CALLS)};
    uint64_t random = seed;
    random_state = seed;
    choose_distribution(&t.input, &random);
    if (draw(4) == 0)
        t.input.distribution = INPUT_UNIFORM;
    t.input.seed = seed;
    t.input.type = types[draw(sizeof types / sizeof *types)];
    t.input.count = (int64_t)draw(UINT64_C(1) << log);
    t.order = draw(3) == 0 ? HSORT_DESCENDING : HSORT_ASCENDING;
    t.value_bytes = t.call == ARGSORT || draw(2) ? 8 : 4;
    if (t.call == RECORDS || (t.call != ARGSORT && draw(3) == 0))
        t.value_bytes = sizes[draw(sizeof sizes / sizeof *sizes)] +
                        (t.call == RECORDS ? hsort_type_bytes(t.input.type) : 0);
    t.in_place = (t.call == PAIRS || t.call == RECORDS) && draw(2);
    layout_counts(draw(2) ? LAYOUT_BALANCED : (enum layout)draw(LAYOUTS), t.input.count, size,
                  check_random(&random), t.in_counts);
    layout_counts(draw(2) ? LAYOUT_BALANCED : (enum layout)draw(LAYOUTS), t.input.count, size,
                  check_random(&random), t.out_counts);
    if (t.in_place)
        memcpy(t.out_counts, t.in_counts, sizeof t.out_counts);
    return t;
}

/* Put more pairs at the edge of a rank's part than are sorted apart, which nobody could know beforehand. */
static void run_hidden(uint64_t seed)
{
    struct trial t = {.call = PAIRS,
                      .input = {.type = HSORT_U64, .count = HIDING, .seed = seed},
                      .value_bytes = 8,
                      .hides = true};
    layout_counts(LAYOUT_BALANCED, HIDING, size, seed, t.in_counts);
    layout_counts(LAYOUT_BALANCED, HIDING, size, seed, t.out_counts);
    run_trial(&t);
}

/* Sort values that cannot travel: one rank's values lie at an odd address, or keys have no code of their own and are wanted back. */
static void run_staying(uint64_t seed)
{
    struct trial t = {.input = {.distribution = INPUT_UNIFORM, .count = 4 * LEAST, .seed = seed}};
    layout_counts(LAYOUT_BALANCED, t.input.count, size, seed, t.in_counts);
    layout_counts(LAYOUT_BALANCED, t.input.count, size, seed, t.out_counts);
    for (int call = PAIRS; call <= VALUES_ALONE; call++) {
        t.call = (enum call)call;
        t.input.type = HSORT_U64, t.value_bytes = 8, t.odd = true;
        run_trial(&t);
        t.input.type = HSORT_U16, t.value_bytes = 12, t.odd = false;
        run_trial(&t);
    }
}

/* Run trials for some seconds; log: of the most pairs of a trial. */
static void run_all(uint64_t seed, int log, int least, double seconds)
{
    const double begin = MPI_Wtime();
    int go_on = 1;
    for (int number = 0; go_on; number++) {
        const uint64_t own = seed + (uint64_t)number * 1000003;
        const struct trial t = draw_trial(own, log);
        random_state = own + (uint64_t)rank; // kinds of memory differ between ranks
        run_trial(&t);
        go_on = number < least || MPI_Wtime() - begin < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

/* Create a context. Some seeds send short messages, and some send by a path on which keys are packed. */
static bool create(hsort_engine engine, bool unmapped, uint64_t seed)
{
    static const size_t chunks[] = {0, 4096, 65536};
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.exchange = HSORT_EXCHANGE_PARTITION;
    options.threads = 2;
    options.peer_memory = unmapped ? HSORT_CHOICE_OFF : options.peer_memory;
    options.chunk_bytes = chunks[seed % 3];
    message = options.chunk_bytes;
    if (!unmapped && engine == HSORT_ENGINE_HOST && seed / 3 % 2)
        options.transport = HSORT_TRANSPORT_STAGED;
    const hsort_status status = hsort_create(MPI_COMM_WORLD, &options, &ctx);
    CHECK(status == HSORT_OK, "%s", hsort_last_error(NULL));
    return status == HSORT_OK;
}

int main(int argc, char **argv)
{
    enum { LOG = 17, LARGE_LOG = 24, SMALL_LOG = 15 };
    const bool unmapped = argc > 2 && strcmp(argv[2], "unmapped") == 0;
    const bool small = unmapped || (argc > 2 && strcmp(argv[2], "small") == 0);
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const uint64_t seed = ranks_seed();
#ifdef SHARED_ENGINE
    shared_may_map = seed % 2 ? shared_some_may : shared_may_map;
#endif
    if (create(cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST, unmapped, seed)) {
        hsort_rank_info infos[MOST_RANKS];
        CHECK(hsort_topology(ctx, infos, sizeof *infos) == HSORT_OK, "%s", hsort_last_error(ctx));
        buffer_kinds = device_buffer_kinds(cuda ? infos[rank].gpu_index : -1);
        if (!cuda) // this says nothing about the other engine's map
            run_hidden(seed);
        run_staying(seed);
        if (small)
            run_all(seed, SMALL_LOG, CALLS, 0);
        else
            run_all(seed, LOG, 3 * CALLS, SECONDS);
        if (cuda && !small)
            run_all(seed + 1, LARGE_LOG, 2 * CALLS, SECONDS);
        hsort_destroy(&ctx);
    }
    CHECK(size == 1 || travelled > 0, "no values travel");
    if (rank == 0)
        printf("values travel in %d trials, in %d not\n", travelled, others);
    return ranks_finish();
}
