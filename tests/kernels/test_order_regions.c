/* Regions ordered as far as possible: sort_regions() without raw keys. `test_order_regions host [THREADS]` or `cuda`. Some regions
 * of a shard are sorted, before and after others are ordered; then what is left of the sorted ones is settled. Every region has its
 * keys, and uniform regions are in order. settle_regions() sorts only sorted regions, not those that were ordered. */
#include "tests/kernels/partition_trial.h"
#include "tests/support/pretend.h"

enum { TRIALS = 60, MOST = 200003, LOG = ENGINE_SAMPLE_LOG_MIN, SETTLE_BYTES = 1 << 22, GROUP = 100 /* regions in a call */ };

struct shard {
    struct keymap map;
    int64_t count;
    struct buffer keys, to, workspace, sample, scratch, settle;
    struct engine_map regions;
    int64_t counts[ENGINE_REGIONS], starts[ENGINE_REGIONS + 1]; /* regions of one value have none */
};

/* Bring keys to regions. False: the device cannot. */
static bool scatter_keys(struct shard *s, const char *keys)
{
    static uint64_t codes[KEY_CODE_WORDS << LOG];
    const int width = s->map.key_bytes;
    const struct raw_keys raw = {.map = s->map, .from = buffer_keys(&s->keys)};
    void *workspace = buffer_keys(&s->workspace);
    bool down;
    uint64_t value[KEY_CODE_WORDS];
    if (!ops->partition->can(engine))
        return false;
    for (int64_t i = 0; i < 1 << LOG; i++)
        words_store(width, codes, i,
                    keymap_encode(s->map, key_load(width, keys, begin_of_part(i, s->count, LOG))));
    must(ops->partition->make_map(engine, width, codes, LOG, s->count, false, workspace,
                                  buffer_keys(&s->sample), &s->regions),
         "map");
    must(ops->partition->count(engine, width, &raw, s->count, &s->regions, workspace, s->counts, &down),
         "count");
    must(ops->partition->scatter(engine, width, &raw, s->count, &s->regions, workspace, buffer_keys(&s->to)), "scatter");
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        if (ops->partition->region_value(engine, width, &s->regions, region, value))
            s->counts[region] = 0;
        s->starts[region + 1] = s->starts[region] + s->counts[region];
    }
    return true;
}

/* Sort or order every `step`th region from `first` on, each to its own place in `out`, by one call for each run of places. */
static void treat_regions(struct shard *s, int first, int step, bool sort, const struct buffer *out)
{
    const int width = s->map.key_bytes;
    const struct raw_keys codes = {.map = keymap_of_codes(width)};
    for (int region = first; region < ENGINE_REGIONS; region += step) {
        struct engine_piece pieces[GROUP];
        int count = 0, end = region;
        for (; end < ENGINE_REGIONS && end < region + (step == 1 ? GROUP : 1); end++)
            if (s->counts[end] > 0)
                pieces[count++] = (struct engine_piece){(char *)buffer_keys(&s->to) + s->starts[end] * width, s->counts[end], end};
        char *to = (char *)buffer_keys(out) + s->starts[region] * width;
        if (count > 0)
            must(ops->partition->sort_regions(engine, width, &s->regions, pieces, count, sort ? &codes : NULL,
                                              buffer_keys(&s->workspace), buffer_keys(&s->scratch), to),
                 "regions");
        region = end - 1;
    }
}

/* Check that each region of `keys` has the keys of `from`. Returns how many are not in order. */
static int64_t check_regions(const struct shard *s, const char *from, const char *keys, int first, int step, const char *what)
{
    const int width = s->map.key_bytes;
    int64_t wrong = 0;
    for (int region = first; region < ENGINE_REGIONS; region += step) {
        uint64_t expected[2] = {0, 0}, found[2] = {0, 0};
        for (int64_t i = s->starts[region]; i < s->starts[region + 1]; i++) {
            key_fingerprint_add(width, key_load(width, from, i), expected);
            key_fingerprint_add(width, key_load(width, keys, i), found);
            wrong += i > s->starts[region] && key_load(width, keys, i) < key_load(width, keys, i - 1);
        }
        CHECK(memcmp(expected, found, sizeof found) == 0, "%s: region %d has other keys", what, region);
    }
    return wrong;
}

/* If `mixed`, sort regions 0, 3, 6, ..., then order 1, 4, ..., then sort 2, 5, ...; otherwise order all in long calls. */
static void check_order(struct shard *s, bool mixed, bool uniform, const char *what)
{
    const size_t bytes = (size_t)(s->count * s->map.key_bytes);
    struct buffer sorted = buffer_new(NULL, bytes, 0), ordered = buffer_new(NULL, bytes, 0);
    const struct raw_keys codes = {.map = keymap_of_codes(s->map.key_bytes)};
    bool unsorted = true;
    if (mixed)
        treat_regions(s, 0, 3, true, &sorted);
    treat_regions(s, mixed, mixed ? 3 : 1, false, &ordered);
    if (mixed)
        treat_regions(s, 2, 3, true, &sorted);
    char *before = alloc_or_exit(bytes + 1);
    memcpy(before, buffer_result(&ordered, what), bytes);
    must(ops->partition->settle_regions(engine, s->map.key_bytes, &codes, buffer_keys(&s->workspace), buffer_keys(&s->settle),
                                        SETTLE_BYTES, &unsorted),
         what);
    CHECK(memcmp(before, buffer_result(&ordered, what), bytes) == 0, "%s: ordered keys were settled", what);
    const char *from = buffer_result(&s->to, what), *now = buffer_result(&ordered, what);
    const int64_t wrong = check_regions(s, from, now, mixed, mixed ? 3 : 1, what);
    CHECK(!uniform || wrong == 0, "%s: %lld keys in no order", what, (long long)wrong);
    for (int first = 0; mixed && first < 3; first += 2) {
        const int64_t left = check_regions(s, from, buffer_result(&sorted, what), first, 3, what);
        CHECK(unsorted || left == 0, "%s: %lld keys left unsorted", what, (long long)left);
    }
    CHECK(mixed || !unsorted, "%s: something is left", what);
    buffer_guards(&s->scratch, what);
    buffer_guards(&s->workspace, what);
    buffer_free(&sorted), buffer_free(&ordered);
    free(before);
}

static void run_trial(int number, uint64_t *random)
{
    static const int shapes[] = {UNIFORM, FAR_CLUSTERS, STRAGGLERS, ZIPF, SIGNED, LOW_16_BITS, MAGNITUDES};
    struct trial trial = {.shape = shapes[number % 7], .ranks = 1, .log = LOG, .kind = kind_of_width(4 << number % 3, number)};
    trial.count = 1 + (int64_t)(check_random(random) % (number % 2 ? MOST : 5000));
    snprintf(trial.what, sizeof trial.what, "%s, %lld keys %s %s", ops->name, (long long)trial.count,
             hsort_type_name((hsort_type)trial.kind), shape_name(trial.shape));
    struct shard s = {.map = keymap_make((hsort_type)trial.kind, HSORT_ASCENDING), .count = trial.count};
    const int width = s.map.key_bytes;
    const size_t bytes = (size_t)(s.count * width);
    int64_t need = 0;
    char *keys = trial_keys(&trial, s.map, random);
    s.keys = buffer_new(keys, bytes, 0);
    s.to = buffer_new(NULL, bytes, 0);
    s.workspace = buffer_new(NULL, ops->partition->workspace(engine, width), 0);
    s.sample = buffer_new(NULL, ops->partition->sample_scratch(engine, width, LOG), 0);
    if (scatter_keys(&s, keys)) {
        for (int region = 0; region < ENGINE_REGIONS; region++)
            need += s.counts[region] > 0 ? ops->partition->region_scratch(engine, s.counts[region]) : 0;
        s.scratch = buffer_new(NULL, (size_t)(need * width), (size_t)width);
        s.settle = buffer_new(NULL, SETTLE_BYTES, 0);
        check_order(&s, true, trial.shape == UNIFORM, trial.what);
        check_order(&s, false, trial.shape == UNIFORM, trial.what);
        buffer_free(&s.scratch), buffer_free(&s.settle);
    }
    buffer_free(&s.keys), buffer_free(&s.to), buffer_free(&s.workspace), buffer_free(&s.sample);
    free(keys);
}

/* Check pairs of the host engine, whose kernels for pairs have no other test here. Pairs are brought to regions, all to one region if
 * they are `together`, and sorted stably, with not a byte more of workspace than the engine asks for. */
static void check_pairs(int width, bool together, int64_t count, uint64_t *random)
{
    static uint64_t codes[1 << LOG];
    static int64_t counts[ENGINE_REGIONS];
    const struct keymap map = keymap_make(width == 4 ? HSORT_U32 : HSORT_U64, HSORT_ASCENDING);
    const size_t bytes = (size_t)(count * width), words = (size_t)count * sizeof(uint64_t);
    struct engine_map bounds;
    char *keys = alloc_or_exit(bytes), what[64];
    snprintf(what, sizeof what, "%lld pairs of u%d, together %d", (long long)count, 8 * width, together);
    for (int64_t i = 0; i < count; i++)
        store(width, keys, i,
              together ? check_random(random) % 50000 : check_random(random) >> (64 - 8 * width));
    for (uint64_t i = 0; i < 1 << LOG; i++)
        codes[i] = i << (8 * width - LOG);
    struct buffer from = buffer_new(keys, bytes, 0), half = buffer_new(NULL, bytes, 0),
                  to = buffer_new(NULL, bytes, 0);
    struct buffer carried = buffer_new(NULL, words / 2, 0), values = buffer_new(NULL, words, 0);
    struct buffer sample = buffer_new(NULL, ops->partition->sample_scratch(engine, width, LOG), 0);
    struct buffer space = buffer_new(NULL, ops->partition->workspace(engine, width), 0);
    struct engine_pair_regions regions = {.pairs = {.map = map,
                                                    .count = count,
                                                    .keys = buffer_keys(&from),
                                                    .value_bytes = 8,
                                                    .keys_out = buffer_keys(&to),
                                                    .values_out = buffer_keys(&values)},
                                          .most = count,
                                          .keys = buffer_keys(&half),
                                          .values = buffer_keys(&carried)};
    struct buffer workspace = buffer_new(NULL, ops->pairs->region_workspace(engine, &regions), 0);
    regions.workspace = buffer_keys(&workspace);
    must(ops->partition->make_map(engine, width, codes, LOG, count, true, buffer_keys(&space),
                                  buffer_keys(&sample), &bounds),
         what);
    must(ops->pairs->split(engine, &regions, 0, &bounds, counts), what);
    int64_t at = 0;
    for (int region = 0; region < ENGINE_REGIONS;) {
        struct engine_pair_piece pieces[GROUP];
        const int64_t out_first = at;
        int number = 0;
        for (; region < ENGINE_REGIONS && number < GROUP; at += counts[region++])
            if (counts[region] > 0)
                pieces[number++] = (struct engine_pair_piece){at, counts[region], region};
        CHECK(!together || number <= 1, "%s: %d regions", what, number);
        if (number > 0)
            must(ops->pairs->sort_regions(engine, &regions, pieces, number, out_first, out_first == 0), what);
    }
    must(ops->pairs->settle_regions(engine, &regions), what);
    const char *sorted = buffer_result(&to, what);
    const uint64_t *position = buffer_result(&values, what);
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        const key_code key = key_load(width, sorted, i), before = i > 0 ? key_load(width, sorted, i - 1) : 0;
        wrong += position[i] >= (uint64_t)count || key_load(width, keys, (int64_t)position[i]) != key ||
                 (i > 0 && (key < before || (key == before && position[i] <= position[i - 1])));
    }
    CHECK(at == count && wrong == 0, "%s: %lld in regions, %lld wrong", what, (long long)at,
          (long long)wrong);
    struct buffer *const all[] = {&half, &carried, &workspace, &space, &sample, &from, &to, &values};
    for (int i = 0; i < 8; i++) {
        buffer_guards(all[i], what);
        buffer_free(all[i]);
    }
    free(keys);
}

int main(int argc, char **argv)
{
    uint64_t random = check_seed();
    const char *gpu = pretend_gpu(random);
    open_engine(argc, argv);
    printf("test_order_regions %s: seed %llu, GPU %s\n", ops->name, (unsigned long long)random, gpu);
    for (int number = 0; number < TRIALS && check_failures < 5; number++)
        run_trial(number, &random);
    for (int number = 0; number < 12 && ops->kind == HSORT_ENGINE_HOST; number++)
        check_pairs(4 << number % 2, number & 2, (int64_t[]){1, 1000, MOST}[number / 4], &random);
    close_engine();
    return check_failures > 0;
}
