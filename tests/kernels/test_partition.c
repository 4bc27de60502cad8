/* Sorting by regions, an engine's part of it: `test_partition host [THREADS]` or `cuda`.
 *
 * A trial is a whole sort by several ranks, all in this process, each with buffers and a workspace of its own:
 *
 *     keys of all ranks    sample -> map     partition, rank by rank         pieces -> sorted regions
 *     rank 0  5 1 9 4      bounds 4 7        1 | 5 4 | 9                     1 2 | 4 5 6 | 8 9
 *     rank 1  8 6 2                          2 | 6 | 8                       the same as all sorted at once?
 *
 * The oracle is a sort of all keys by value (radix_order.h). All that is known about the map is that no region reaches into
 * another, on any rank: several ranks have the same values, so a map that differs between two calls is seen. A region of
 * one value must have all keys of that value, and no others; they are looked for in the input, because they do not move. */
#include "tests/kernels/partition_shard.h"
#include "tests/support/pretend.h"

enum {
    SPREAD_COUNT = 1 << 16, // uniform keys from which on regions must be of about one size
    SPREAD = 8,             // no region of such keys may exceed the mean so many times
    LARGE_SHARE = 16,       // a value with one in so many keys of the sample has a region of its own
#ifdef __SANITIZE_ADDRESS__
    MANY = 40013
#else
    MANY = 300009
#endif
};

/* ---- one trial, step by step ---- */

/* Take every rank's part of the sample, which must have the keys at the places that the contract names. */
static void take_sample(const struct trial *trial, struct keymap map, const void *keys,
                        const struct rank *ranks, uint64_t *codes)
{
    const int sample = 1 << trial->log, words = key_words(map.key_bytes);
    int first = 0, wrong = 0;
    memset(codes, POISON, (size_t)(sample * words) * sizeof *codes);
    for (int r = 0; r < trial->ranks; r++) {
        const struct raw_keys raw = {.map = map, .from = keys_of(&ranks[r])};
        int until = first;
        while (until < sample &&
               begin_of_part(until, trial->count, trial->log) < ranks[r].before + ranks[r].count)
            until++;
        const uint64_t next = until < sample ? codes[until * words] : 0;
        const struct sample_share share = {ranks[r].before, ranks[r].count, trial->count,
                                           trial->log,      first,          until - first};
        must(ops->partition->sample(engine, map.key_bytes, &raw, &share, scratch_of_sample(map.key_bytes),
                                    codes + first * words),
             trial->what);
        for (int i = 0; i < share.drawn; i++)
            wrong += words_load(map.key_bytes, codes, first + i) !=
                     keymap_encode(map, key_load(map.key_bytes, keys, sample_place(&share, i)));
        CHECK(until == sample || codes[until * words] == next, "%s: more codes than the sample has",
              trial->what);
        first = until;
    }
    CHECK(wrong == 0, "%s: %d keys of the sample are not those at its places", trial->what, wrong);
}

/* Make the map for a trial. */
static void make_map(const struct trial *trial, int key_bytes, uint64_t *codes, const struct rank *ranks,
                     struct engine_map *map, uint64_t *random)
{
    struct engine_map made;
    shuffle_codes(key_bytes, codes, 1 << trial->log, random); // any order will do
    memset(&made, POISON, sizeof made);
    must(ops->partition->make_map(engine, key_bytes, codes, trial->log, trial->count, false,
                                  ranks[0].workspace, scratch_of_sample(key_bytes), &made),
         trial->what);
    buffer_guards(&sample_scratch[key_bytes / 8], trial->what);
    *map = made; // a map is plain bytes, which can be sent
    memset(&made, POISON, sizeof made);
}

/* Ask of each region whether it is of one value. A value with a large part of the sample must have one. */
static void find_values(const struct trial *trial, int key_bytes, uint64_t *codes,
                        const struct engine_map *map, struct values *values)
{
    const int64_t sample = INT64_C(1) << trial->log;
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        uint64_t code[KEY_CODE_WORDS];
        values->is_one[region] = ops->partition->region_value(engine, key_bytes, map, region, code);
        values->code[region] = words_load(key_bytes, code, 0);
    }
    sort_on_host(8 * key_words(key_bytes), codes, sample);
    for (int64_t i = 0, end; i < sample; i = end) {
        int regions = 0;
        const key_code code = words_load(key_bytes, codes, i);
        for (end = i; end < sample && words_load(key_bytes, codes, end) == code; end++)
            continue;
        for (int region = 0; region < ENGINE_REGIONS && end - i >= sample / LARGE_SHARE; region++)
            regions += values->is_one[region] && values->code[region] == code;
        CHECK(regions == (end - i >= sample / LARGE_SHARE),
              "%s: value %llx, %lld of the sample, has %d regions", trial->what, (unsigned long long)code,
              (long long)(end - i), regions);
    }
}

/* Check that every shard's codes are there again, and that no region reaches into another one, on any rank. */
static void check_partition(const struct trial *trial, struct keymap map, const char *keys,
                            const struct values *values, struct rank *ranks)
{
    key_code low[ENGINE_REGIONS], high[ENGINE_REGIONS];
    int64_t held[ENGINE_REGIONS] = {0}, most = 0;
    for (int r = 0; r < trial->ranks; r++)
        check_shard(trial, map, keys + ranks[r].before * map.key_bytes, values, &ranks[r], low, high, held);
    int before = -1;
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        if (held[region] == 0)
            continue;
        CHECK(before < 0 || high[before] < low[region], "%s: region %d reaches into region %d", trial->what,
              before, region);
        before = region;
        most = held[region] > most ? held[region] : most;
    }
    if (trial->shape == UNIFORM && trial->count >= SPREAD_COUNT)
        CHECK(most <= SPREAD * trial->count / ENGINE_REGIONS, "%s: a region of %lld keys", trial->what,
              (long long)most);
}

/* Gather the pieces of regions [from, until), some cut in two, some empty; those of one value without keys. Returns how many. */
static int gather_pieces(const struct trial *trial, int key_bytes, const struct values *values,
                         const struct rank *ranks, int from, int until, struct engine_piece *pieces,
                         uint64_t *random)
{
    int count = 0;
    for (int region = from; region < until; region++)
        for (int r = 0; r < trial->ranks; r++) {
            const int64_t all = ranks[r].counts[region];
            const int64_t cut =
                check_random(random) % 4 ? all : (int64_t)(check_random(random) % (uint64_t)(all + 1));
            const bool moved = all > 0 && !values->is_one[region];
            const char *at = moved ? (const char *)buffer_keys(&ranks[r].to) : NULL;
            const int64_t start = moved ? ranks[r].starts[region] * key_bytes : 0;
            if (all > 0 || check_random(random) % 2)
                pieces[count++] = (struct engine_piece){moved ? at + start : NULL, cut, region};
            if (cut < all)
                pieces[count++] =
                    (struct engine_piece){moved ? at + start + cut * key_bytes : NULL, all - cut, region};
        }
    return count;
}

/* Return the keys of scratch that regions [from, until) need. */
static int64_t scratch_need(const struct trial *trial, const struct values *values, const struct rank *ranks,
                            int from, int until)
{
    int64_t need = 0;
    for (int region = from; region < until; region++) {
        int64_t keys = 0;
        if (values->is_one[region])
            continue;
        for (int r = 0; r < trial->ranks; r++)
            keys += ranks[r].counts[region];
        need += ops->partition->region_scratch(engine, keys);
    }
    return need;
}

/* Sort all regions, chunk by chunk in any order, so that what a chunk writes beside its place falls on finished keys.
 * The scratch of each chunk ends where the guard begins. */
static void sort_all(const struct trial *trial, struct keymap map, const struct engine_map *regions,
                     const struct values *values, const struct rank *ranks, const int64_t *starts,
                     const struct buffer *out, uint64_t *random)
{
    const struct raw_keys raw = {.map = map, .decode = trial->decode};
    int chunk_at[ENGINE_REGIONS + 1];
    int64_t most = 0, needs[ENGINE_REGIONS];
    uint64_t order[ENGINE_REGIONS];
    const int chunks = draw_chunks(trial, chunk_at, random);
    for (int i = 0; i < chunks; i++) {
        order[i] = (uint64_t)i;
        needs[i] = scratch_need(trial, values, ranks, chunk_at[i], chunk_at[i + 1]);
        most = needs[i] > most ? needs[i] : most;
    }
    shuffle(order, chunks, random);
    struct buffer scratch =
        buffer_new(NULL, (size_t)(most * map.key_bytes), (size_t)map.key_bytes * (check_random(random) % 16));
    for (int i = 0; i < chunks; i++) {
        struct engine_piece pieces[ENGINE_PIECES_MAX];
        const int chunk = (int)order[i], from = chunk_at[chunk];
        const int count =
            gather_pieces(trial, map.key_bytes, values, ranks, from, chunk_at[chunk + 1], pieces, random);
        if (count == 0)
            continue;
        must(ops->partition->sort_regions(
                 engine, map.key_bytes, regions, pieces, count, &raw, ranks[i % trial->ranks].workspace,
                 (char *)buffer_keys(&scratch) + (most - needs[chunk]) * map.key_bytes,
                 (char *)buffer_keys(out) + starts[from] * map.key_bytes),
             trial->what);
        memset(pieces, POISON, sizeof pieces); // they are read in the call
    }
    buffer_guards(&scratch, trial->what);
    buffer_free(&scratch);
}

static bool any_left(const struct trial *trial, const struct raw_keys *raw, const struct rank *ranks)
{
    bool left = false;
    for (int r = 0; r < trial->ranks; r++)
        left |= settle(trial, raw, ranks[r].workspace);
    CHECK(!left || trial->shape != UNIFORM, "%s: uniform keys are left unsorted", trial->what);
    return left;
}

/* Do what sort_regions() may leave undone: keys of a region may be in no order. */
static void finish_regions(const struct trial *trial, int key_bytes, char *keys, const int64_t *starts)
{
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        char *from = keys + starts[region] * key_bytes;
        const int64_t count = starts[region + 1] - starts[region];
        if (trial->decode)
            order_sort((hsort_type)trial->kind, trial->order, from, count);
        else
            sort_on_host(key_bytes, from, count);
    }
}

static void check_sorted(const struct trial *trial, struct keymap map, const char *keys,
                         const int64_t *starts, bool left, struct buffer *out)
{
    const size_t bytes = (size_t)(trial->count * map.key_bytes);
    char *sorted = alloc_or_exit(bytes), *expected = alloc_or_exit(bytes);
    memcpy(sorted, buffer_result(out, trial->what), bytes);
    memcpy(expected, keys, bytes);
    radix_order_sort((hsort_type)trial->kind, trial->order, expected, trial->count);
#pragma omp parallel for if (trial->count > DRAW_PART)
    for (int64_t i = 0; i < (trial->decode ? 0 : trial->count); i++)
        store(map.key_bytes, expected, i, keymap_encode(map, key_load(map.key_bytes, expected, i)));
    if (left)
        finish_regions(trial, map.key_bytes, sorted, starts);
    const int64_t wrong = first_difference(sorted, expected, map.key_bytes, trial->count);
    CHECK(wrong < 0, "%s%s: key %lld is wrong", trial->what, left ? ", some left unsorted" : "",
          (long long)wrong);
    free(sorted);
    free(expected);
}

/* Partition and sort by a map, and look at all of it. */
static void sort_by_map(const struct trial *trial, struct keymap map, const char *keys,
                        const struct engine_map *regions, const struct values *values, struct rank *ranks,
                        uint64_t *random)
{
    int64_t starts[ENGINE_REGIONS + 1] = {0}, written = 0;
    for (int r = 0; r < trial->ranks; r++)
        partition_shard(trial, map, keys, regions, values, &ranks[r]);
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        starts[region + 1] = starts[region];
        for (int r = 0; r < trial->ranks; r++)
            starts[region + 1] += ranks[r].counts[region];
        written += values->is_one[region] ? starts[region + 1] - starts[region] : 0;
    }
    seen.written += written > 0;
    struct buffer out = buffer_new(NULL, (size_t)(trial->count * map.key_bytes),
                                   (size_t)map.key_bytes * (check_random(random) % 16));
    sort_all(trial, map, regions, values, ranks, starts, &out, random);
    const struct raw_keys sorted_bits = {.map = map, .decode = trial->decode};
    const bool left = any_left(trial, &sorted_bits, ranks);
    seen.left += left;
    check_partition(trial, map, keys, values, ranks); // after the sort, which must not change the pieces
    check_sorted(trial, map, keys, starts, left, &out);
    buffer_free(&out);
}

static void run_trial(struct trial *trial, uint64_t *random)
{
    const struct keymap map = keymap_make((hsort_type)trial->kind, trial->order);
    static uint64_t codes[KEY_CODE_WORDS * SAMPLE_MAX];
    struct rank ranks[RANKS_MAX];
    struct engine_map regions;
    struct values values;
    snprintf(trial->what, sizeof trial->what, "%s, %lld keys %s %s, %s, %d ranks, sample 2^%d%s%s%s%s",
             ops->name, (long long)trial->count, hsort_type_name((hsort_type)trial->kind),
             trial->order == HSORT_ASCENDING ? "ascending" : "descending", shape_name(trial->shape),
             trial->ranks, trial->log, trial->foreign ? ", foreign map" : "",
             trial->decode ? ", and back" : "", trial->late ? ", without a wait" : "",
             trial->rooms ? ", in rooms" : "");
    char *keys = trial_keys(trial, map, random);
    share_out_keys(trial, map.key_bytes, keys, ranks, random);

    take_sample(trial, map, keys, ranks, codes);
    for (int i = 0; i < 1 << trial->log && trial->foreign; i++)
        words_store(map.key_bytes, codes, i, uniform_codes[i]);
    const bool able = ops->partition->can(engine);
    CHECK(able || ops->kind == HSORT_ENGINE_CUDA, "%s: no map", trial->what);
    if (able) {
        make_map(trial, map.key_bytes, codes, ranks, &regions, random);
        find_values(trial, map.key_bytes, codes, &regions, &values);
        sort_by_map(trial, map, keys, &regions, &values, ranks, random);
    }
    seen.trials++;
    seen.refused += !able;
    for (int r = 0; r < trial->ranks; r++) {
        buffer_free(&ranks[r].keys);
        buffer_free(&ranks[r].to);
    }
    free(keys);
}

/* ---- all trials ---- */

/* Run a trial whose other properties are drawn. Keys that divide badly are also sorted by the map of other keys. */
static void try_count(int64_t count, int kind, int shape, uint64_t *random)
{
    static const int rank_counts[] = {1, 2, 3, 5, 7, 8};
    const uint64_t draw = check_random(random);
    struct trial trial = {.kind = kind,
                          .order = draw & 1 ? HSORT_DESCENDING : HSORT_ASCENDING,
                          .shape = shape,
                          .ranks = rank_counts[(draw >> 8) % 6],
                          .log = draw_sample_log(draw >> 16),
                          .count = count,
                          .settle_bytes = SETTLE_BYTES,
                          .decode = draw & 4,
                          .late = draw & 8,
                          .rooms = draw & 64};
    trial.foreign = shape == NEIGHBOURS || (draw & 48) == 0;
    run_trial(&trial, random);
}

/* Make more buckets than a list has room for, none of which a block can sort, or fewer buckets and no scratch for any of them: keys that
 * are left in no order must be stored like sorted ones. Two ranks have even keys, in regions of the most buckets that a level makes. */
static void test_left(uint64_t random)
{
    static struct trial trials[] = {{HSORT_I32, HSORT_ASCENDING, FULL_REGIONS, 2, ENGINE_SAMPLE_LOG_MIN,
                                     120000007, 5, SETTLE_BYTES, true, true, true, false, ""},
                                    {HSORT_F32, HSORT_DESCENDING, FULL_REGIONS, 2, ENGINE_SAMPLE_LOG_MIN,
                                     48000011, 2, SETTLE_BYTES / 64, true, true, true, false, ""}};
    for (int i = 0; i < 2; i++) {
        const int left = seen.left;
        run_trial(&trials[i], &random);
        CHECK(seen.left > left, "%s: all is sorted: there was nothing to see", trials[i].what);
    }
}

/* Rows of equal keys are counted whole or not at all, so regions have more keys than a count of a part of them suggests: most often more
 * than there is room for, but not always. So rows are drawn again until some have lacked room. */
static void test_rows(uint64_t random)
{
    enum { DRAWS_MOST = 20 };
    for (int draw = 0; draw < DRAWS_MOST && (draw == 0 || seen.rooms[SCATTER_COUNTED] == 0); draw++)
        for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2) {
            struct trial trial = {.kind = kind_of_width(key_bytes, 0),
                                  .order = HSORT_ASCENDING,
                                  .shape = ROWS,
                                  .ranks = 2,
                                  .log = ENGINE_SAMPLE_LOG_USUAL,
                                  .count = 8000009,
                                  .settle_bytes = SETTLE_BYTES,
                                  .decode = true,
                                  .rooms = true};
            run_trial(&trial, &random);
        }
    CHECK(seen.rooms[SCATTER_COUNTED] > 0, "rows of equal keys have found room: there was nothing to see");
}

static void test_trials(bool small, uint64_t random)
{
    static const int64_t counts[] = {1, 2, 3, 33, 511, 512, 1026, 4097, 30012, MANY};
    static const int shapes[] = {UNIFORM,         SORTED,     REVERSE,    REVERSE_STEPS, ROTATED,
                                 EQUAL,           TWO_VALUES, CLUSTERS,   LOW_16_BITS,   ALL_ONES,
                                 OUTLIER,         HALF_ZERO,  ZIPF,       FAR_CLUSTERS,  MAGNITUDES,
                                 MAGNITUDES_DOWN, MEASURED,   NEIGHBOURS, SIGNED,        STRAGGLERS};
    for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++)
        for (int kind = 0; kind < KEY_KINDS && (!small || counts[i] == 4097); kind++)
            for (int s = small ? kind : 0; s < (int)(sizeof shapes / sizeof shapes[0]); s += small ? 6 : 1)
                try_count(counts[i], kind, shapes[s], &random);
    if (ops->kind != HSORT_ENGINE_CUDA || small)
        return;
    static const int large_shapes[] = {UNIFORM, SORTED,   ZIPF,    FAR_CLUSTERS, STRAGGLERS,
                                       SIGNED,  CLUSTERS, ROTATED, MEASURED};
    for (int s = 0; s < (int)(sizeof large_shapes / sizeof large_shapes[0]); s++)
        for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2)
            try_count(2000003 + 1000003 * s, kind_of_width(key_bytes, s), large_shapes[s], &random);
    test_rows(random);
    test_left(random);
}

#ifdef HSORT_FAULTS
/* Call operation number `which` of those that have a fault site. */
static hsort_status call(int which, const struct buffer *keys, const struct buffer *to, void *workspace)
{
    static struct engine_map regions;
    static int64_t counts[ENGINE_REGIONS], starts[ENGINE_REGIONS + 1];
    static uint64_t codes[1 << ENGINE_SAMPLE_LOG_MIN];
    const struct raw_keys raw = {.map = keymap_make(HSORT_U64, HSORT_ASCENDING), .from = buffer_keys(keys)};
    const int64_t count = (int64_t)(keys->bytes / 8);
    const struct engine_piece piece = {buffer_keys(to), counts[0], 0};
    const struct sample_share share = {0, count, count, ENGINE_SAMPLE_LOG_MIN, 0, 1 << ENGINE_SAMPLE_LOG_MIN};
    char *spare = (char *)buffer_keys(to) + keys->bytes;
    enum engine_scattered done;
    bool flag;
    switch (which) {
    case 0:
        return ops->partition->sample(engine, 8, &raw, &share, scratch_of_sample(8), codes);
    case 1:
        return ops->partition->make_map(engine, 8, codes, ENGINE_SAMPLE_LOG_MIN, count, false, workspace,
                                        scratch_of_sample(8), &regions);
    case 2:
        return ops->partition->count(engine, 8, &raw, count, &regions, workspace, counts, &flag);
    case 3:
        return ops->partition->scatter(engine, 8, &raw, count, &regions, workspace, buffer_keys(to));
    case 4:
        return ops->partition->scatter_to_rooms(engine, 8, &raw, count, &regions, workspace, buffer_keys(to),
                                                2 * count, counts, starts, &done);
    default:
        return ops->partition->sort_regions(engine, 8, &regions, &piece, 1, &raw, workspace, spare,
                                            spare + keys->bytes);
    }
}

/* An armed site fails the next call, with a text, and only that one. */
static void test_faults(uint64_t random)
{
    const int64_t count = 5000;
    char *keys = keys_new(UNIFORM, 8, count, &random);
    struct buffer from = buffer_new(keys, (size_t)count * 8, 0), to = buffer_new(NULL, (size_t)count * 32, 0);
    for (int which = 0; which < 6; which++) {
        void *workspace = workspace_of(8, 0);
        fault_set(FAULT_KERNEL, 1);
        const hsort_status status = call(which, &from, &to, workspace);
        CHECK(status != HSORT_OK && status_text()[0] != '\0', "%s, call %d passes a fault, text \"%s\"",
              ops->name, which, status_text());
        fault_set(FAULT_KERNEL, 0);
        status_clear();
        must(call(which, &from, &to, workspace), "a call after a fault");
    }
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
    buffer_free(&from);
    buffer_free(&to);
    free(keys);
}
#endif

int main(int argc, char **argv)
{
    const uint64_t seed = check_seed();
    const char *gpu = pretend_gpu(seed);
    open_engine(argc, argv);
    if (!ops->partition) {
        printf("skipped: the engine %s does not sort by regions\n", ops->name);
        close_engine();
        return CHECK_SKIPPED;
    }
    printf("test_partition %s: seed %llu", ops->name, (unsigned long long)seed);
    printf(ops->kind == HSORT_ENGINE_CUDA ? ", the GPU %s\n" : "\n", gpu);
    fflush(stdout);
    for (int i = 0; i < WIDTHS * RANKS_MAX; i++)
        workspaces[i / RANKS_MAX][i % RANKS_MAX] =
            buffer_new(NULL, ops->partition->workspace(engine, 4 << i / RANKS_MAX), 0);
    for (int i = 0; i < WIDTHS; i++)
        sample_scratch[i] =
            buffer_new(NULL, ops->partition->sample_scratch(engine, 4 << i, ENGINE_SAMPLE_LOG_MAX), 0);
    settle_scratch = buffer_new(NULL, SETTLE_BYTES, 0);
    test_trials(argc > 2 && strcmp(argv[2], "small") == 0, seed); // for compute-sanitizer
#ifdef HSORT_FAULTS
    test_faults(seed);
#endif
    for (int i = 0; i < WIDTHS * RANKS_MAX; i++) {
        buffer_result(&workspaces[i / RANKS_MAX][i % RANKS_MAX], "workspace");
        buffer_free(&workspaces[i / RANKS_MAX][i % RANKS_MAX]);
    }
    for (int i = 0; i < WIDTHS; i++)
        buffer_free(&sample_scratch[i]);
    buffer_free(&settle_scratch);
    printf("%d trials: %d without regions, in %d keys were left unsorted, in %d some were written anew; of "
           "shards with rooms %d were in "
           "order or lacked room, %d did not fit, %d did\n",
           seen.trials, seen.refused, seen.left, seen.written, seen.rooms[SCATTER_NOTHING],
           seen.rooms[SCATTER_COUNTED], seen.rooms[SCATTER_MOVED]);
    CHECK(seen.rooms[SCATTER_MOVED] > 0, "%s: no shard was scattered to rooms", ops->name);
    close_engine();
    return check_failures > 0;
}
