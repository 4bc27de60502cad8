/* Block sorts by themselves: buckets with crowds of every size, against std::sort. */
#ifndef MSD_BLOCK_TRIAL_CUH
#define MSD_BLOCK_TRIAL_CUH

#include "tests/kernels/msd_parts.cuh"

enum block_shape {
    BLOCK_UNIFORM,
    BLOCK_EQUAL,
    BLOCK_NEIGHBOURS,
    BLOCK_ONE_AND_NEAR,
    BLOCK_SCALES,
    BLOCK_LARGE_CROWDS,
    BLOCK_EQUAL_CROWDS,
    BLOCK_NESTED,
    BLOCK_ASCENDING,
    BLOCK_DESCENDING,
    BLOCK_SHAPES /* from here on: one crowd, of crowd_sizes */
};

static const char *const block_words[] = {
    "uniform",   "equal",        "neighbours",           "one value and near it",
    "scales",    "large crowds", "crowds of equal keys", "nested",
    "ascending", "descending"};
static_assert(sizeof block_words / sizeof *block_words == BLOCK_SHAPES, "a word for each shape");

/* Sizes around those at which a crowd is sorted in another way. */
static const int crowd_sizes[] = {15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300};
enum { CROWD_SIZES = sizeof crowd_sizes / sizeof *crowd_sizes };

/* Make keys that lie in one bin if the bins cover the whole type; perhaps they are all equal. */
template <typename K>
static void make_crowd(K *keys, int count, K base, uint64_t *state)
{
    const int bits = (int)(check_random(state) % (BITS<K> - 14)); // there are 2^13 bins at most
    for (int i = 0; i < count; i++)
        keys[i] = random_near(state, base, bits);
}

/* Make several crowds beside about as many uniform keys as one crowd has. If `alike`, every other crowd is of equal keys, and all
 * crowds are near each other. */
template <typename K>
static void make_crowds(K *keys, int count, bool alike, uint64_t *state)
{
    const int many = 2 + (int)(check_random(state) % 5);
    const K base = random_key<K>(state);
    for (int c = 0; c < many; c++) {
        const int begin = count * c / (many + 1), end = count * (c + 1) / (many + 1);
        const K own = alike ? random_near(state, base, BITS<K> - 10) : random_key<K>(state);
        if (alike && c % 2 == 0)
            std::fill(keys + begin, keys + end, own);
        else
            make_crowd(keys + begin, end - begin, own, state);
    }
}

template <typename K>
static void make_block_keys(K *keys, int count, int shape, uint64_t *state)
{
    const K any = random_key<K>(state), extremes[] = {0, BEHIND_ALL<K>, any};
    const K base = extremes[check_random(state) % 3], lower = base == BEHIND_ALL<K> ? (K)(base - 1) : base;
    for (int i = 0; i < count; i++) {
        switch (shape) {
        case BLOCK_EQUAL:
            keys[i] = base;
            break;
        case BLOCK_NEIGHBOURS:
            keys[i] = lower + (K)(check_random(state) % 2);
            break;
        case BLOCK_ONE_AND_NEAR:
            keys[i] = check_random(state) % 64 ? base : random_near(state, base, 6);
            break;
        case BLOCK_SCALES:
            keys[i] = random_bits<K>(state, (int)(check_random(state) % (BITS<K> + 1)));
            break;
        case BLOCK_NESTED: // again and again half of the remaining keys lie in a 2^12th of the range
            keys[i] = random_near(state, base, std::max(BITS<K> - 12 * random_depth(state), 0));
            break;
        default:
            keys[i] = random_key<K>(state);
        }
    }
    if (shape == BLOCK_LARGE_CROWDS || shape == BLOCK_EQUAL_CROWDS)
        make_crowds(keys, count, shape == BLOCK_EQUAL_CROWDS, state);
    if (shape >= BLOCK_SHAPES) {
        const int crowd = crowd_sizes[shape - BLOCK_SHAPES];
        if (count >= crowd + 2) { // with these two keys the bins cover the whole type
            keys[0] = 0;
            keys[1] = BEHIND_ALL<K>;
        }
        make_crowd(keys + count - crowd, crowd, any, state);
    }
    if (shape == BLOCK_ASCENDING || shape == BLOCK_DESCENDING)
        std::sort(keys, keys + count);
    if (shape == BLOCK_DESCENDING)
        std::reverse(keys, keys + count);
    for (int i = count - 1; i > 0 && shape != BLOCK_ASCENDING && shape != BLOCK_DESCENDING; i--)
        std::swap(keys[i], keys[check_random(state) % (uint64_t)(i + 1)]);
}

/* Bring keys of any range into a range that is narrower by `bits` bits, in the same order. */
template <typename K>
static void make_narrow(K *keys, int count, int bits, uint64_t *state)
{
    const K upper = random_key<K>(state);
    for (int i = 0; i < count && bits > 0; i++)
        keys[i] = (K)(upper >> (BITS<K> - bits) << (BITS<K> - bits)) | (K)(keys[i] >> bits);
}

/* known: a range that has all keys is known, from low to high. */
template <typename S, typename K>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    sort_bucket_kernel(const __grid_constant__ struct coding coding, const K *from, K *to, int count,
                       bool known, K low, K high)
{
    wait_for_kernels_before();
    block_sort<S>(coding, from, to, count,
                  known ? parts_of_range<log2_of(S::BINS)>(low, high) : even_parts<K>());
}

/* Sort keys as they lie in `given`, in place or not, with a known range or not; expected: what the result must be. */
template <typename S, typename K>
static void check_bucket(const std::vector<K> &given, const std::vector<K> &expected, bool known,
                         bool in_place, uint64_t *state)
{
    const size_t bytes = given.size() * sizeof(K);
    const int count = (int)given.size() - 2 * AROUND;
    K low = expected[AROUND], high = expected[AROUND + count - 1];
    if (check_random(state) % 2) { // a range wider than the keys
        low -= random_up_to(state, low);
        high += random_up_to(state, (K)(BEHIND_ALL<K> - high));
    }
    device_scope scope(engine);
    K *from = (K *)given_there, *to = in_place ? from : (K *)result_there;
    to_device(from, given.data(), bytes);
    if (!in_place)
        poison(to, bytes);
    MUST(launch_behind(engine, "a block sort", sort_bucket_kernel<S, K>, 1, S::THREADS,
                       block_sort_bytes<S, K>(), codes_only, from + AROUND, to + AROUND, count, known, low,
                       high));
    std::vector<K> found(given.size()), left(given.size());
    from_device(found.data(), to, bytes);
    from_device(left.data(), from, bytes);
    const int64_t wrong = std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin();
    CHECK(wrong == (int64_t)found.size(), "%s%s%s: wrong from place %lld on", what,
          known ? ", known range" : "", in_place ? ", in place" : "", (long long)wrong - AROUND);
    CHECK(in_place || left == given, "%s%s: what it reads was changed", what, known ? ", known range" : "");
    cases++;
}

template <typename S, typename K>
static void check_block(int shape, int count, bool narrow, uint64_t seed)
{
    uint64_t state = seed;
    std::vector<K> given(count + 2 * AROUND);
    memset((void *)given.data(), POISON, given.size() * sizeof(K));
    const int bits = narrow ? (int)(check_random(&state) % BITS<K>) : 0;
    make_block_keys(given.data() + AROUND, count, shape, &state);
    make_narrow(given.data() + AROUND, count, bits, &state);
    std::vector<K> expected = given;
    std::sort(expected.begin() + AROUND, expected.end() - AROUND);
    char crowd[24] = "";
    if (shape >= BLOCK_SHAPES)
        snprintf(crowd, sizeof crowd, "a crowd of %d", crowd_sizes[shape - BLOCK_SHAPES]);
    snprintf(what, sizeof what, "a block of %d, u%d, %d keys, %s, narrower by %d bits, seed %llu", S::CAPACITY,
             BITS<K>, count, shape < BLOCK_SHAPES ? block_words[shape] : crowd, bits, (unsigned long long)seed);
    for (int way = 0; way < 4; way++)
        check_bucket<S>(given, expected, way & 1, way & 2, &state);
}

template <typename S, typename K>
static void check_blocks(uint64_t *seed)
{
    const int usual[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 255, 256, 257, 319, 511, 512, 1025, 6144, 6145};
    std::vector<int> counts = {S::CAPACITY - 1, S::CAPACITY};
    for (int count : usual) {
        if (count < S::CAPACITY - 1)
            counts.push_back(count);
    }
    for (int i = 0; i < 3; i++)
        counts.push_back(1 + (int)(check_random(seed) % S::CAPACITY));
    if (small_form)
        counts = {S::CAPACITY};
    for (int shape = 0; shape < BLOCK_SHAPES + CROWD_SIZES; shape++) {
        for (int count : counts) {
            if (shape < BLOCK_SHAPES || count >= crowd_sizes[shape - BLOCK_SHAPES]) {
                check_block<S, K>(shape, count, false, check_random(seed));
                if (!small_form)
                    check_block<S, K>(shape, count, true, check_random(seed));
            }
        }
    }
}

#endif
