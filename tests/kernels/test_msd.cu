/* The parts of rung 8 by themselves, each with the keys that it has to fear, and the whole rung with samples that mislead it: decoys
 * stand at the places that are sampled, so that the split is made for keys of which there are few. */
#include "tests/kernels/msd_block_trial.cuh"
#include "tests/kernels/msd_ranks_trial.cuh"
#include "tests/kernels/msd_runs_trial.cuh"
#include "tests/kernels/msd_split_trial.cuh"
#include <cmath>

enum whole_shape {
    WHOLE_EVEN,   /* the sample says what is true */
    WHOLE_NARROW, /* all keys except the sample differ, in one small range */
    WHOLE_ONE,    /* they are one value */
    WHOLE_NESTED, /* half are one value; the others are near it on all scales: ranges in ranges */
    WHOLE_FEW,    /* without decoys: eight values, so that nothing has to move */
    WHOLE_NEARLY, /* the same, and here and there another value, which the sample hardly has */
    WHOLE_RISING, /* without decoys: nearly sorted, so that a tile is of one region, or of two */
    WHOLE_SHAPES
};

static const char *const whole_words[] = {"even", "narrow", "one value", "nested", "few", "nearly few", "rising"};

template <typename K>
static K whole_key(int shape, int64_t i, K base, uint64_t *state)
{
    const uint64_t pick = check_random(state);
    if (shape == WHOLE_EVEN)
        return random_key<K>(state);
    if (shape == WHOLE_NARROW) // a multiple of an odd number: no key comes twice within 2^24
        return (K)(base + ((K)((uint64_t)i * UINT64_C(0x9e3779b1) & 0xffffff) << (BITS<K> - 32)));
    if ((shape == WHOLE_NEARLY && pick % 1000003 == 0) || (shape == WHOLE_RISING && pick % 100 == 0))
        return random_key<K>(state);
    if (shape == WHOLE_RISING)
        return (K)((K)i << (BITS<K> - 25)); // of 2^25 keys at most
    if (shape >= WHOLE_FEW)
        return (K)(base + (K)(pick % 8) * 77);
    if (shape == WHOLE_ONE || pick % 2)
        return base;
    const K distance = random_bits<K>(state, (int)(pick / 4 % (BITS<K> - 7)));
    return pick / 2 % 2 ? (K)(base + distance) : (K)(base - distance);
}

/* Place decoys: the keys that the first level samples, in a sort of codes K, become uniform over their type. */
template <typename K, typename S>
static void place_decoys(std::vector<S> &keys, uint64_t *state)
{
    const int64_t count = (int64_t)keys.size();
    const bool is_alone = count <= own_size<K>(engine, MSD_ALONE_KEYS);
    const int seen =
        sample_size<K>(count, with_own_sample<K>(engine, is_alone ? plan_alone<K>(engine, count)
                                                                  : plan_of_first<K>(engine, count)));
    const S part = BEHIND_ALL<S> / (S)seen;
    for (int i = 0; i < seen; i++)
        keys[sample_position(i, seen, count)] = (S)(part * (S)i + random_up_to(state, (S)(part - 1)));
    keys[sample_position(0, seen, count)] = 0;
    keys[sample_position(seen - 1, seen, count)] = BEHIND_ALL<S>;
}

/* Sort keys [count] by CUB; the caller frees the result. */
static void *sort_with_cub(int key_bytes, const void *original, int64_t count)
{
    struct guarded_sort g;
    const struct ladder_type type = {"keys", key_bytes, 0};
    void *sorted;
    guarded_sort_make(&g, engine, true, 0, type, original, count);
    MUST(ladder_sort(engine, 0, &g.args));
    MUST(ops->alloc(&engine->base, (size_t)count * key_bytes, &sorted));
    MUST(ops->copy(&engine->base, STREAM_WORK, sorted, g.args.sorted_keys, (size_t)count * key_bytes));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    guarded_sort_free(&g, false);
    return sorted;
}

/* Levels that a sort of keys K may take, if a few keys leave it each time. Each part of an exact range has a little more than its share
 * of the range. With 1024 parts, keys of 8 bytes leave some 17 values after six levels; the next level parts these, and one more fills
 * in a single value. Keys of 4 bytes take three levels and these two. */
template <typename K>
static uint32_t most_levels(int64_t count)
{
    const uint32_t of_ranges =
        (uint32_t)std::ceil(BITS<K> / std::log2(parts_of_left(count, SPLIT_BUCKETS) - 1)) + 1;
    // If a region that no batch has room for is left, parts of it are left again. Each time all other regions make batches: of so many
    // segments, or of so many keys that two batches in a row have at least a share of all; and some are in out.
    const uint32_t of_each = 1 + SPLIT_BUCKETS / LEVEL_SEGMENTS + 3 * BATCH_SHARE_OF_KEYS;
    return count <= own_size<K>(engine, MSD_ALONE_KEYS) ? 1 + of_ranges : of_each * (1 + of_ranges);
}

/* Turn the codes that a sort is given into descending keys. These keys are wanted back, or, `in_scratch`, their codes in scratch. */
template <typename K>
static struct raw_keys give_raw(struct sort_args *args, bool in_scratch)
{
    struct raw_keys raw = {};
    raw.map = keymap_make(sizeof(K) == 4 ? HSORT_U32 : HSORT_U64, HSORT_DESCENDING);
    raw.from = args->keys;
    raw.decode = !in_scratch;
    raw.in_scratch = in_scratch;
    MUST(ops->decode(&engine->base, raw.map, args->keys, args->keys, args->count));
    return raw;
}

/* Sort by rung 8: codes, keys that are encoded and decoded, or keys that are encoded on the way to scratch. Two times out of three the
 * device seems to have hardly any memory: a batch then has no more than its share. Returns how many levels the sort took; each batch
 * counts as one. */
template <typename K>
static uint32_t check_whole(int shape, int64_t count, uint64_t seed)
{
    static const char *const way_words[] = {"", "raw ", "scratch "};
    const int way = sizeof(K) <= sizeof(uint64_t) ? (int)(seed % 3) : 0;
    const bool is_raw = way > 0, in_scratch = way > 1;
    const size_t memory_bytes = engine->memory_bytes;
    uint64_t state = seed;
    std::vector<K> keys(count);
    const K base = (K)(BEHIND_ALL<K> / 4 + random_up_to(&state, (K)(BEHIND_ALL<K> / 2)));
    for (int64_t i = 0; i < count; i++)
        keys[i] = whole_key(shape, i, base, &state);
    if (shape < WHOLE_FEW)
        place_decoys<K>(keys, &state);
    device_scope scope(engine);
    struct guarded_sort g;
    const struct ladder_type type = {"keys", (int)sizeof(K), 0};
    void *original;
    MUST(ops->alloc(&engine->base, count * sizeof(K), &original));
    to_device(original, keys.data(), count * sizeof(K));
    void *expected = sort_with_cub(sizeof(K), original, count);
    engine->memory_bytes = seed / 3 % 3 ? 0 : memory_bytes;
    guarded_sort_make(&g, engine, false, 8, type, original, count);
    const struct raw_keys raw = is_raw ? give_raw<K>(&g.args, in_scratch) : raw_keys();
    g.args.raw = is_raw ? &raw : NULL;
    const uint32_t before = engine->levels;
    MUST(ladder_sort(engine, 8, &g.args));
    if (is_raw && !in_scratch)
        MUST(ops->encode(&engine->base, raw.map, g.args.sorted_keys, g.args.sorted_keys, count));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    engine->memory_bytes = memory_bytes;
    const uint32_t levels = engine->levels - before;
    const int word = std::min((int)sizeof(K), 8); // wide keys are compared by halves
    const unsigned long long differ =
        count_different(engine, word, g.args.sorted_keys, expected, count * (int)sizeof(K) / word);
    const unsigned long long spoilt = guarded_sort_free(&g, false);
    CHECK(differ == 0 && spoilt == 0 && levels <= most_levels<K>(count),
          "a whole sort, u%d, %lld %skeys, %s, seed %llu: %llu keys are wrong, %llu bytes overwritten, %u "
          "levels",
          BITS<K>, (long long)count, way_words[way], whole_words[shape], (unsigned long long)seed, differ,
          spoilt, levels);
    ops->free(&engine->base, original);
    ops->free(&engine->base, expected);
    cases++;
    return levels;
}

/* Sizes for one level; for two; for two, and a region that no batch has room for; for the same, when half of the keys are too many for a
 * batch, so that keys of one value are a region of their own only where its range is theirs alone. */
template <typename K>
static void check_wholes(uint64_t *seed)
{
    int took[4] = {}; // how many sorts took so many levels; in the last, or more
    uint32_t most = 0;
    for (int64_t least : {200000, 200000, 200000, 5000000, 10000000, 10000000, 20000000}) {
        for (int shape = 0; shape < WHOLE_SHAPES; shape++) {
            if (small_form && (least > 200000 || sizeof(K) == 16))
                continue;
            const int64_t count = least + (int64_t)(check_random(seed) % 1000);
            const uint32_t levels = check_whole<K>(shape, count, check_random(seed));
            took[std::min(levels, 3u)] += least == 200000; // in larger sorts batches count as levels, too
            most = std::max(most, levels);
        }
    }
    printf("u%d: %u levels at most; of sorts of one level, %d took one, %d two, %d more\n", BITS<K>, most,
           took[1], took[2], took[3]);
    CHECK(small_form || (took[1] > 0 && took[2] > 0 && took[3] > 0), "u%d: the decoys do not work", BITS<K>);
}

/* Is a result (codes of numbered keys, or only their positions) in order, and does it have all keys [count]? Both are true if every
 * position is a key's and the codes rise. */
template <typename S, typename K>
static bool are_numbered_in_order(const std::vector<S> &keys, const struct raw_keys &raw, const void *sorted)
{
    const uint64_t below = UINT64_MAX >> (64 - raw.position_bits);
    K before = 0;
    for (size_t i = 0; i < keys.size(); i++) {
        const K found = raw.decode ? (K)((const uint64_t *)sorted)[i] : ((const K *)sorted)[i];
        const uint64_t position = (uint64_t)found & below, at = position - (uint64_t)raw.first;
        if (at >= keys.size() || (raw.decode && found != position))
            return false;
        const K code = (K)keymap_encode_narrow(raw.map, keys[at]) << raw.position_bits | position;
        if ((!raw.decode && code != found) || (i > 0 && code <= before))
            return false;
        before = code;
    }
    return true;
}

/* Sort numbered keys S by codes K: to positions, and to codes. With decoys, so that the keys that wait for another level are seen. */
template <typename S, typename K>
static void check_whole_numbered(int shape, int64_t count, uint64_t seed)
{
    uint64_t state = seed;
    std::vector<S> keys(count);
    const S base = (S)(BEHIND_ALL<S> / 4 + random_up_to(&state, (S)(BEHIND_ALL<S> / 2)));
    struct raw_keys raw = {};
    raw.map = any_keymap<S>(&state);
    raw.position_bits = sizeof(K) == 8 ? 32 : 33 + (int)(check_random(&state) % 31);
    raw.first = (int64_t)(check_random(&state) % (UINT64_C(1) << 31));
    for (int64_t i = 0; i < count; i++)
        keys[i] = whole_key(shape, i, base, &state);
    if (shape < WHOLE_FEW)
        place_decoys<K>(keys, &state);
    for (S &key : keys)
        key = few_key(raw.map, key);
    device_scope scope(engine);
    const size_t memory_bytes = engine->memory_bytes;
    engine->memory_bytes = seed % 2 ? 0 : memory_bytes;
    struct sort_args args = {};
    args.key_bytes = sizeof(K);
    args.count = count;
    args.raw = &raw;
    size_t bytes;
    void *from;
    MUST(ladder_workspace(engine, 8, &args, &bytes));
    MUST(ops->alloc(&engine->base, bytes, &args.workspace));
    MUST(ops->alloc(&engine->base, count * sizeof(S), &from));
    MUST(ops->alloc(&engine->base, count * sizeof(K), &args.keys));
    MUST(ops->alloc(&engine->base, count * sizeof(K), &args.scratch_keys));
    MUST(ops->alloc(&engine->base, count * sizeof(int64_t), (void **)&raw.positions));
    to_device(from, keys.data(), count * sizeof(S));
    raw.from = from;
    for (int way = 0; way < 2; way++) {
        raw.decode = way == 0;
        raw.in_scratch = check_random(&state) % 2;
        poison(raw.positions, count * sizeof(int64_t));
        MUST(ladder_sort(engine, 8, &args));
        std::vector<K> found(count);
        from_device(found.data(), args.sorted_keys, count * (raw.decode ? sizeof(int64_t) : sizeof(K)));
        CHECK((are_numbered_in_order<S, K>(keys, raw, found.data())),
              "a whole sort of numbered keys, u%d by u%d, %lld keys, %s, seed %llu: wrong %s", BITS<S>,
              BITS<K>, (long long)count, whole_words[shape], (unsigned long long)seed,
              way ? "codes" : "positions");
        cases++;
    }
    engine->memory_bytes = memory_bytes;
    for (void *memory : {args.workspace, from, args.keys, args.scratch_keys, (void *)raw.positions})
        ops->free(&engine->base, memory);
}

/* Sizes for two levels; for two, and a region that no batch has room for. */
template <typename S, typename K>
static void check_wholes_numbered(uint64_t *seed)
{
    for (int64_t least : {5000000, 10000000}) {
        for (int shape = 0; shape < WHOLE_SHAPES && !small_form; shape++)
            check_whole_numbered<S, K>(shape, least + (int64_t)(check_random(seed) % 1000),
                                       check_random(seed));
    }
}

/* Check the sizes of block sorts that keys K have on this device. */
template <typename K>
static void check_sizes(uint64_t *seed)
{
    with_class(engine, [&](auto number) {
        typedef class_sizes<K, decltype(number)::value> sizes;
        check_blocks<typename sizes::usual, K>(seed);
        check_blocks<typename sizes::huge, K>(seed);
        check_blocks<typename sizes::sample, K>(seed);
        return 0;
    });
}

/* A block must not get more shared memory than there is, or than there is said to be. */
static void check_limit()
{
    typedef class_sizes<uint64_t, MSD_227>::huge S;
    const int own = engine->block_bytes, needed = block_sort_bytes<S, uint64_t>();
    const bool apart = engine->launches_apart;
    cuda_pretend(engine, needed, apart); // with its variables the block needs more
    device_scope scope(engine);
    const hsort_status status = launch_behind(engine, "too large a block", sort_bucket_kernel<S, uint64_t>, 1,
                                              S::THREADS, needed, codes_only, (const uint64_t *)given_there,
                                              (uint64_t *)result_there, 1, false, UINT64_C(0), UINT64_C(0));
    CHECK(status == HSORT_INTERNAL, "a block gets %d bytes of shared memory and more, where %d are all",
          needed, needed);
    status_clear();
    cuda_pretend(engine, own, apart);
    cases++;
}

/* The variables of kernels must take no more shared memory than fits_class() leaves for them. */
template <typename K>
static void check_own_bytes()
{
    typedef class_sizes<K, MSD_227> sizes;
    cudaFuncAttributes sort, split;
    device_scope scope(engine);
    MUST(cuda_check(cudaFuncGetAttributes(&sort, rest_kernel<typename sizes::huge, K, struct coding, K>),
                    "a block sort"));
    MUST(cuda_check(cudaFuncGetAttributes(&split, make_splits_kernel<typename sizes::sample, K>), "a split"));
    CHECK(sort.sharedSizeBytes <= (size_t)SORT_OWN_BYTES<K>,
          "keys of %d bytes: variables beside a block sort take %zu bytes, not %d", (int)sizeof(K),
          sort.sharedSizeBytes, SORT_OWN_BYTES<K>);
    CHECK(split.sharedSizeBytes <= (size_t)SPLIT_OWN_BYTES<K>,
          "keys of %d bytes: variables beside a split take %zu bytes, not %d", (int)sizeof(K),
          split.sharedSizeBytes, SPLIT_OWN_BYTES<K>);
    cases++;
}

int main(int argc, char **argv)
{
    struct cuda_device device;
    small_form = argc == 2 && strcmp(argv[1], "small") == 0;
    if (argc > 1 && !small_form) {
        fprintf(stderr, "usage: test_msd [small]\n");
        return 1;
    }
    uint64_t seed = check_seed();
    const char *gpu = pretend_gpu(seed); // fault sites blocks163, blocks96, regions
    if (!open_first_gpu(&engine, &device))
        return CHECK_SKIPPED;
    ops = engine->base.ops;
    if (!can_sort_by_levels(engine)) {
        printf("skipped: %s has no room for rung 8\n", device.name);
        ops->close(&engine->base);
        return CHECK_SKIPPED;
    }
    printf("HYPERSORT_SEED=%llu, the GPU %s\n", (unsigned long long)seed, gpu);
    fflush(stdout);
    for (void **there : {&given_there, &result_there, &split_there, &counts_there})
        MUST(ops->alloc(&engine->base, BUFFER_BYTES, there));
    check_limit();
    check_own_bytes<uint32_t>();
    check_own_bytes<uint64_t>();
    check_own_bytes<uint128>();
    check_all_tile_runs(&seed);
    check_sizes<uint32_t>(&seed);
    check_sizes<uint64_t>(&seed);
    check_sizes<u128>(&seed);
    check_fews<uint32_t>(&seed);
    check_fews<uint64_t>(&seed);
    check_fews<u128>(&seed);
    if (!small_form) {
        check_evens<uint32_t>(&seed);
        check_evens<uint64_t>(&seed);
        check_evens<u128>(&seed);
    }
    check_splits<uint32_t>(&seed);
    check_splits<uint64_t>(&seed);
    check_splits<u128>(&seed);
    check_wholes<uint32_t>(&seed);
    check_wholes<uint64_t>(&seed);
    check_wholes<u128>(&seed);
    check_wholes_numbered<uint32_t, uint64_t>(&seed);
    check_wholes_numbered<uint32_t, u128>(&seed);
    check_wholes_numbered<uint64_t, u128>(&seed);
    for (void *there : {given_there, result_there, split_there, counts_there})
        ops->free(&engine->base, there);
    ops->close(&engine->base);
    printf("%d cases on %s, %d failures\n", cases, device.name, check_failures);
    return check_failures > 0;
}
