/* Sorts of so few keys that each key finds its own rank (ranks.cuh), and of one key more: the whole rung, in place and not, with
 * codes and with keys of each type, against std::sort. */
#ifndef MSD_RANKS_TRIAL_CUH
#define MSD_RANKS_TRIAL_CUH

#include "tests/kernels/msd_parts.cuh"

enum few_shape {
    FEW_RANDOM,
    FEW_EQUAL,
    FEW_TWO,
    FEW_LARGEST, /* half of them have the largest code */
    FEW_NEAR,    /* to each other */
    FEW_ASCENDING,
    FEW_DESCENDING,
    FEW_SHAPES
};

static const char *const few_words[] = {"random", "equal",     "two values", "the largest",
                                        "near",   "ascending", "descending"};
static_assert(sizeof few_words / sizeof *few_words == FEW_SHAPES, "a word for each shape");

/* Where the keys come from, and what is wanted of them. */
enum few_way {
    FEW_CODES,    /* codes in place */
    FEW_RAW,      /* keys in place, and back */
    FEW_FROM,     /* keys from elsewhere, as codes */
    FEW_FROM_RAW, /* the same, and back */
    FEW_WAYS
};

static const char *const way_words[] = {"codes in place", "in place", "to codes", "from elsewhere"};
static_assert(sizeof way_words / sizeof *way_words == FEW_WAYS, "a word for each way");

/* Workspace, beside the buffers that all trials share; `split_there` is scratch here. */
static void *few_workspace;

template <typename K>
static void make_few_codes(std::vector<K> &codes, int shape, uint64_t *state)
{
    const K values[] = {random_key<K>(state), random_key<K>(state)};
    for (K &code : codes) {
        const uint64_t pick = check_random(state);
        code = shape == FEW_EQUAL                     ? values[0]
               : shape == FEW_TWO                     ? values[pick % 2]
               : shape == FEW_LARGEST && pick % 2 > 0 ? BEHIND_ALL<K>
               : shape == FEW_NEAR                    ? random_near(state, values[0], 7)
                                                      : random_key<K>(state);
    }
    if (shape == FEW_ASCENDING || shape == FEW_DESCENDING)
        std::sort(codes.begin(), codes.end());
    if (shape == FEW_DESCENDING)
        std::reverse(codes.begin(), codes.end());
}

/* Draw any type and order of keys K; keys of 16 bytes are codes. */
template <typename K>
static struct keymap any_keymap(uint64_t *state)
{
    static const hsort_type types[][3] = {{HSORT_U32, HSORT_I32, HSORT_F32},
                                          {HSORT_U64, HSORT_I64, HSORT_F64}};
    const uint64_t pick = check_random(state);
    if (sizeof(K) == 16)
        return keymap_make(HSORT_U64, HSORT_ASCENDING);
    return keymap_make(types[sizeof(K) == 8][pick % 3], pick / 3 % 2 ? HSORT_DESCENDING : HSORT_ASCENDING);
}

template <typename K>
static K few_key(const struct keymap &map, K code)
{
    return sizeof(K) == 4   ? (K)keymap_decode_u32(map, (uint32_t)code)
           : sizeof(K) == 8 ? (K)keymap_decode_u64(map, (uint64_t)code)
                            : code;
}

/* Return codes with poison on both sides, as keys of the map or as they are. */
template <typename K>
static std::vector<K> between_poison(const std::vector<K> &codes, const struct keymap &map, bool as_keys)
{
    std::vector<K> keys(codes.size() + 2 * AROUND);
    memset((void *)keys.data(), POISON, keys.size() * sizeof(K));
    for (size_t i = 0; i < codes.size(); i++)
        keys[AROUND + i] = as_keys ? few_key(map, codes[i]) : codes[i];
    return keys;
}

/* Check `there`, with poison around the keys. */
template <typename K>
static void check_few_keys(const void *there, const std::vector<K> &expected, const char *of_what)
{
    std::vector<K> found(expected.size());
    from_device(found.data(), there, found.size() * sizeof(K));
    const int64_t wrong = std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin();
    CHECK(wrong == (int64_t)found.size(), "%s: %s wrong from place %lld on", what, of_what,
          (long long)wrong - AROUND);
}

/* Check that the memory around scratch is poison, like the memory around the keys given. */
template <typename K>
static void check_around_scratch(const std::vector<K> &given)
{
    std::vector<K> found(given.size());
    from_device(found.data(), split_there, found.size() * sizeof(K));
    CHECK(std::equal(found.begin(), found.begin() + AROUND, given.begin()) &&
              std::equal(found.end() - AROUND, found.end(), given.end() - AROUND),
          "%s: something around its scratch was overwritten", what);
}

/* Sort codes that are given in one of the ways. */
template <typename K>
static void check_few_way(const std::vector<K> &codes, int way, uint64_t *state)
{
    const bool is_raw = way != FEW_CODES, decodes = is_raw && way != FEW_FROM;
    const struct keymap map = any_keymap<K>(state);
    std::vector<K> sorted = codes;
    std::sort(sorted.begin(), sorted.end());
    const std::vector<K> given = between_poison(codes, map, is_raw),
                         expected = between_poison(sorted, map, decodes);
    K *keys = (K *)result_there + AROUND, *scratch = (K *)split_there + AROUND;
    K *from = way == FEW_FROM || way == FEW_FROM_RAW ? (K *)given_there + AROUND : keys;
    poison(result_there, BUFFER_BYTES);
    poison(split_there, BUFFER_BYTES);
    to_device(from - AROUND, given.data(), given.size() * sizeof(K));
    struct raw_keys raw = {};
    raw.map = map;
    raw.from = from;
    raw.decode = decodes;
    struct sort_args args = {};
    args.key_bytes = sizeof(K);
    args.count = (int64_t)codes.size();
    args.keys = keys;
    args.scratch_keys = scratch;
    args.workspace = few_workspace;
    args.sorted_keys = keys; // as ladder_sort() begins
    args.raw = is_raw ? &raw : NULL;
    MUST(tested_msd(engine, &args));
    check_few_keys((K *)args.sorted_keys - AROUND, expected, "result");
    if (from != keys)
        check_few_keys(from - AROUND, given, "what it reads");
    check_around_scratch(given);
    cases++;
}

template <typename K>
static void check_few(int count, int shape, uint64_t seed)
{
    uint64_t state = seed;
    std::vector<K> codes(count);
    make_few_codes(codes, shape, &state);
    for (int way = 0; way < FEW_WAYS; way++) {
        snprintf(what, sizeof what, "few keys, u%d, %d keys, %s, %s, seed %llu", BITS<K>, count,
                 few_words[shape], way_words[way], (unsigned long long)seed);
        check_few_way(codes, way, &state);
    }
}

/* When few keys are sorted: how many of them lie in shared memory at a time. */
enum { RANK_KEYS = RANKS_AT_A_TIME * RANK_THREADS };

template <typename K>
static void check_fews(uint64_t *seed)
{
    std::vector<int> counts = {1, 2, RANKED - 1, RANKED, RANKED + 1, RANK_KEYS + 1, FEW_KEYS + 1};
    if (!small_form)
        counts.insert(counts.end(),
                      {3, 2 * RANKED, 2 * RANKED + 1, RANK_KEYS - 1, RANK_KEYS, RANK_KEYS + RANKED,
                       2 * RANK_KEYS + 1, FEW_KEYS - 1, FEW_KEYS, 1 + (int)(check_random(seed) % FEW_KEYS),
                       1 + (int)(check_random(seed) % FEW_KEYS)});
    device_scope scope(engine);
    struct sort_args most = {};
    size_t bytes;
    most.key_bytes = sizeof(K);
    most.count = FEW_KEYS + 1;
    MUST(tested_msd_workspace(engine, &most, &bytes));
    MUST(ops->alloc(&engine->base, bytes, &few_workspace));
    for (int count : counts) {
        for (int shape = 0; shape < FEW_SHAPES; shape++)
            check_few<K>(count, shape, check_random(seed));
    }
    ops->free(&engine->base, few_workspace);
}

#endif
