/* Splits by themselves, of samples of many shapes and of ranges: keys must get the buckets that the splitters say. */
#ifndef MSD_SPLIT_TRIAL_CUH
#define MSD_SPLIT_TRIAL_CUH

#include "tests/kernels/msd_parts.cuh"

enum sample_shape {
    SAMPLE_UNIFORM,     /* must become linear, if it is not lumpy by chance */
    SAMPLE_EVEN_RANGE,  /* the same in a part of the type */
    SAMPLE_SKEWED,      /* must become a tree, of 32 bits */
    SAMPLE_UPPER_ALIKE, /* the upper bits of most are alike: must become a tree of whole keys */
    SAMPLE_FAR_ENDS,    /* the same except two keys, which are no splitters: keys of more than 4 bytes become a tree of 32 bits */
    SAMPLE_SCALES,      /* the others must become trees */
    SAMPLE_CLUSTERS,
    SAMPLE_HEAVY, /* five values have half of it */
    SAMPLE_ENDS,  /* around both ends of the type */
    SAMPLE_LARGEST, /* half of it is the largest value; no other repeats */
    SAMPLE_EQUAL,
    SAMPLE_FEW, /* the smallest numbers: may become either */
    SAMPLE_SHAPES
};

static const char *const sample_words[] = {
    "uniform",   "even in a range", "skewed", "upper bits alike", "far ends", "scales", "clusters",
    "heavy values", "both ends", "largest value", "equal", "few"};
static_assert(sizeof sample_words / sizeof *sample_words == SAMPLE_SHAPES, "a word for each shape");

template <typename K>
static std::vector<K> make_sample(int shape, int seen, uint64_t *state)
{
    const K base = random_key<K>(state), ends[] = {0, BEHIND_ALL<K>, base};
    const int cluster_bits = BITS<K> / 4;
    K values[5];
    std::vector<K> keys(seen);
    for (K &value : values)
        value = random_key<K>(state);
    for (int i = 0; i < 3; i++)
        values[i] = ends[i];
    for (K &key : keys) {
        const uint64_t pick = check_random(state);
        if (shape == SAMPLE_UNIFORM)
            key = random_key<K>(state);
        else if (shape == SAMPLE_EVEN_RANGE)
            key = random_near(state, base, 24);
        else if (shape == SAMPLE_SKEWED) // a product: small keys are crowded, but not very much
            key = (K)((random_key<K>(state) >> BITS<K> / 2) * (random_key<K>(state) >> BITS<K> / 2));
        else if (shape == SAMPLE_UPPER_ALIKE && pick % 4 == 0)
            key = ends[pick / 4 % 2];
        else if (shape == SAMPLE_UPPER_ALIKE || shape == SAMPLE_FAR_ENDS)
            key = random_near(state, base, sizeof(K) == 4 ? 5 : BITS<K> - 32);
        else if (shape == SAMPLE_SCALES)
            key = random_bits<K>(state, (int)(pick % (BITS<K> + 1)));
        else if (shape == SAMPLE_CLUSTERS)
            key = random_near(state, values[pick % 4], cluster_bits);
        else if (shape == SAMPLE_HEAVY)
            key = pick % 10 < 5 ? values[pick % 10] : random_key<K>(state);
        else if (shape == SAMPLE_LARGEST)
            key = pick % 2 ? BEHIND_ALL<K> : random_key<K>(state);
        else if (shape == SAMPLE_FEW)
            key = (K)(pick % 50);
        else if (shape == SAMPLE_ENDS)
            key = random_near(state, pick % 2 ? BEHIND_ALL<K> : (K)0, cluster_bits);
        else
            key = ends[seen % 3];
    }
    if (shape == SAMPLE_FAR_ENDS && seen > 2) { // so that the range is that of the type
        keys[1] = 0;
        keys[2] = BEHIND_ALL<K>;
    }
    return keys;
}

/* Make a split as make_splits_kernel() does. counts_out: how many keys of the sample are in each bucket. Runs as one block. */
template <typename S, typename K>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    sample_split_kernel(K *sample, int seen, bool in_order, int linear_buckets, int tree_buckets,
                        struct split<K> *split, uint32_t *counts_out)
{
    __shared__ struct split_work<K> work;
    if (threadIdx.x == 0)
        work.splitters = splitters_in_shared<S, K>();
    wait_for_kernels_before();
    __syncthreads();
    if (!split_evenly<S::KEYS, false>(sample, seen, linear_buckets, split, work)) {
        if (!in_order)
            sort_sample<S>(sample, seen, work.head);
        split_by_tree(sample, seen, tree_buckets, SPLIT_BUCKETS, split, work);
    }
    if ((int)threadIdx.x < work.head.buckets)
        counts_out[threadIdx.x] = work.counts[threadIdx.x];
}

template <typename K>
static __global__ void even_split_kernel(K low, K high, int buckets, struct split<K> *split)
{
    wait_for_kernels_before();
    split->split_head<K>::operator=(cut_evenly(low, high, buckets));
}

/* Find the buckets of keys, of KEYS keys at a time, as a scatter does. */
template <int KEYS, typename K>
static __global__ void find_buckets_kernel(const struct split<K> *split, const K *keys, int count,
                                           uint32_t *found)
{
    __shared__ K tree[SPLIT_BUCKETS];
    wait_for_kernels_before();
    with_split(*split, split->tree, tree, [&](const auto &find_buckets) {
        const int first = (int)(blockIdx.x * blockDim.x + threadIdx.x) * KEYS;
        K own[KEYS];
        uint32_t buckets[KEYS];
        __syncthreads();
        for (int k = 0; k < KEYS; k++)
            own[k] = first + k < count ? keys[first + k] : 0;
        find_buckets(own, buckets);
        for (int k = 0; k < KEYS; k++) {
            if (first + k < count)
                found[first + k] = buckets[k];
        }
    });
}

/* Return the bucket of each key by the split on the device. */
template <typename K>
static std::vector<uint32_t> find_on_device(const std::vector<K> &keys)
{
    enum { THREADS = 256 };
    const int64_t each = tile_keys<K>(engine) / SCATTER_THREADS;
    const int64_t blocks = divide_up((int64_t)keys.size(), THREADS * each);
    std::vector<uint32_t> found(keys.size());
    if (keys.size() * sizeof(K) > BUFFER_BYTES) {
        CHECK(false, "%s: %zu keys are more than there is room for", what, keys.size());
        return found;
    }
    to_device(given_there, keys.data(), keys.size() * sizeof(K));
    MUST(with_class(engine, [&](auto number) {
        constexpr int KEYS = class_sizes<K, decltype(number)::value>::SCATTER_KEYS;
        return launch_behind(engine, "buckets of keys", find_buckets_kernel<KEYS, K>, (unsigned)blocks,
                             THREADS, 0, (const struct split<K> *)split_there, (const K *)given_there,
                             (int)keys.size(), (uint32_t *)result_there);
    }));
    from_device(found.data(), result_there, keys.size() * sizeof found[0]);
    return found;
}

/* Return probes, sorted, each once: the sample, its ends and their neighbours, the splitters or the borders of equal parts and their
 * neighbours, and any others. */
template <typename K>
static std::vector<K> make_probes(const std::vector<K> &sample, const struct split<K> &split, uint64_t *state)
{
    const K low = *std::min_element(sample.begin(), sample.end()),
            high = *std::max_element(sample.begin(), sample.end()), width = (high - low) / split.buckets;
    std::vector<K> probes = sample;
    const auto add_around = [&](K key) { // 0 and the largest key are neighbours here: both are probes anyway
        for (int i = -1; i <= 1; i++)
            probes.push_back((K)(key + (K)i));
    };
    for (K key : {(K)0, BEHIND_ALL<K>, low, high})
        add_around(key);
    for (int i = 0; i + 1 < split.buckets; i++)
        add_around(split.is_linear ? (K)(low + width * (K)(i + 1)) : split.splitters[i]);
    for (int i = 0; i < 1000; i++) {
        probes.push_back(random_key<K>(state));
        probes.push_back((K)(low + random_up_to(state, (K)(high - low))));
        probes.push_back(random_bits<K>(state, (int)(check_random(state) % BITS<K>)));
    }
    std::sort(probes.begin(), probes.end());
    probes.erase(std::unique(probes.begin(), probes.end()), probes.end());
    return probes;
}

/* Return the bucket of a probe. */
template <typename K>
static int bucket_of_probe(const std::vector<K> &probes, const std::vector<uint32_t> &found, K key)
{
    return (int)found[std::lower_bound(probes.begin(), probes.end(), key) - probes.begin()];
}

/* Do sorted probes have the buckets that the split says? */
template <typename K>
static void check_buckets(const struct split<K> &split, const std::vector<K> &probes,
                          const std::vector<uint32_t> &found)
{
    int beyond = 0, falls = 0, others = 0, strangers = 0;
    for (size_t i = 0; i < probes.size(); i++) {
        beyond += found[i] >= (uint32_t)split.buckets;
        falls += i > 0 && found[i] < found[i - 1];
        if (split.is_linear)
            continue;
        const K *begin = split.splitters, *end = begin + split.buckets - 1;
        others += (int)found[i] != std::upper_bound(begin, end, probes[i]) - begin;
    }
    for (size_t i = 0; i < probes.size() && beyond == 0; i++) {
        const int bucket = (int)found[i];
        K value;
        strangers += is_one_value(split, bucket, ends_of_bucket(split.splitters, bucket), &value) &&
                     probes[i] != value;
    }
    CHECK(beyond == 0 && falls == 0, "%s: of %zu keys %d are in buckets beyond %d, %d before lower ones",
          what, probes.size(), beyond, split.buckets, falls);
    CHECK(others == 0, "%s: %d keys are not in the buckets of the splitters", what, others);
    CHECK(strangers == 0, "%s: %d keys are in buckets of one other value", what, strangers);
}

/* Does each bucket have as many keys of the sample as were counted, and does each value that would fill three buckets have a bucket
 * of its own? */
template <typename K>
static void check_shares(std::vector<K> sample, int wanted, const struct split<K> &split,
                         const std::vector<uint32_t> &counts, const std::vector<K> &probes,
                         const std::vector<uint32_t> &found)
{
    std::vector<uint32_t> tally(SPLIT_BUCKETS);
    int not_alone = 0;
    std::sort(sample.begin(), sample.end());
    for (size_t i = 0, next; i < sample.size(); i = next) {
        const int bucket = bucket_of_probe(probes, found, sample[i]) % SPLIT_BUCKETS;
        next = std::upper_bound(sample.begin() + i, sample.end(), sample[i]) - sample.begin();
        tally[bucket] += (uint32_t)(next - i);
        K value;
        if (!split.is_linear && (next - i) * wanted >= 3 * (sample.size() + wanted))
            not_alone += !is_one_value(split, bucket, ends_of_bucket(split.splitters, bucket), &value);
    }
    CHECK(std::equal(tally.begin(), tally.begin() + split.buckets, counts.begin()),
          "%s: the sample's shares of the buckets are wrong", what);
    CHECK(not_alone == 0, "%s: %d values that fill buckets have none of their own", what, not_alone);
}

/* Are parts of equal width too lumpy by chi-square, as one uniform sample in many thousands is? This computes chi-square by its
 * definition, with as many parts as is_even() has. A few keys may lie in other parts than in is_even(), which rounds. */
template <typename K>
static bool is_lumpy_by_chance(const std::vector<K> &sample, int parts)
{
    const K low = *std::min_element(sample.begin(), sample.end()),
            high = *std::max_element(sample.begin(), sample.end());
    const long double width = (long double)(K)(high - low) + 1, share = (long double)sample.size() / parts;
    std::vector<long double> counts((size_t)parts);
    long double chi_square = 0;
    for (K key : sample)
        counts[std::min((size_t)((long double)(K)(key - low) * parts / width), (size_t)parts - 1)] += 1;
    for (long double count : counts)
        chi_square += (count - share) * (count - share) / share;
    return chi_square > (parts + 5 * sqrtl(2 * (long double)parts)) * 0.97L;
}

/* Check a split that is made for `wanted` buckets if it is a tree. */
template <typename K>
static void check_split(int shape, int seen, int wanted, uint64_t seed)
{
    uint64_t state = seed;
    std::vector<uint32_t> counts(SPLIT_BUCKETS);
    const bool in_order = seed % 2;
    const int parts = std::max(wanted * 2 / 3, 1); // the buckets of a linear split
    std::vector<K> sample = make_sample<K>(shape, seen, &state);
    if (in_order)
        std::sort(sample.begin(), sample.end());
    snprintf(what, sizeof what, "a split, u%d, a sample of %d, %s, for %d buckets, seed %llu", BITS<K>, seen,
             sample_words[shape], wanted, (unsigned long long)seed);
    device_scope scope(engine);
    struct split<K> made;
    to_device(given_there, sample.data(), sample.size() * sizeof(K));
    poison(split_there, sizeof made);
    poison(counts_there, SPLIT_BUCKETS * sizeof counts[0]);
    MUST(with_class(engine, [&](auto number) {
        typedef typename class_sizes<K, decltype(number)::value>::sample S;
        return launch_behind(engine, "a split", sample_split_kernel<S, K>, 1, S::THREADS,
                             block_sort_bytes<S, K>(), (K *)given_there, seen, in_order,
                             parts, wanted, (struct split<K> *)split_there,
                             (uint32_t *)counts_there);
    }));
    from_device(&made, split_there, sizeof made);
    from_device(counts.data(), counts_there, SPLIT_BUCKETS * sizeof counts[0]);
    cases++;
    CHECK(made.buckets > 0 && made.buckets <= SPLIT_BUCKETS, "%s: %d buckets", what, made.buckets);
    if (made.buckets <= 0 || made.buckets > SPLIT_BUCKETS)
        return;
    // a few buckets may be even enough for a linear split, or 32 bits may tell their splitters apart
    if (shape > SAMPLE_EVEN_RANGE && shape < SAMPLE_FEW && wanted >= 40)
        CHECK(!made.is_linear, "%s: linear", what);
    if (shape <= SAMPLE_EVEN_RANGE)
        CHECK(made.is_linear || is_lumpy_by_chance(sample, parts), "%s: not linear", what);
    const bool far_ends = shape == SAMPLE_FAR_ENDS && sizeof(K) > 4; // 4 bytes have few values here: a splitter may be there twice
    if ((shape == SAMPLE_SKEWED || shape == SAMPLE_UPPER_ALIKE || far_ends) && wanted >= 40)
        CHECK(!made.is_short == (shape == SAMPLE_UPPER_ALIKE), "%s: short: %d", what, made.is_short);
    const std::vector<K> probes = make_probes(sample, made, &state);
    const std::vector<uint32_t> found = find_on_device(probes);
    check_buckets(made, probes, found);
    check_shares(sample, wanted, made, counts, probes, found);
}

/* Cut a range evenly. Each value must get a bucket of its own, if there are enough buckets; a split for giants, into SPLIT_BUCKETS
 * buckets, must have no bucket wider than 1 / 512 of the range. */
template <typename K>
static void check_even(K low, K high, int buckets, uint64_t *state)
{
    device_scope scope(engine);
    snprintf(what, sizeof what, "an even split, u%d, from %llx on, %llx above it, for %d buckets", BITS<K>,
             (unsigned long long)low, (unsigned long long)(high - low), buckets);
    struct split<K> made;
    MUST(launch_behind(engine, "an even split", even_split_kernel<K>, 1, 1, 0, low, high, buckets,
                       (struct split<K> *)split_there));
    from_device(&made, split_there, sizeof made);
    CHECK(made.is_linear && made.buckets > 0 && made.buckets <= buckets, "%s: %d buckets", what,
          made.buckets);
    if (made.buckets <= 0)
        return;
    std::vector<K> values = {low, high};
    const bool is_tiny = high - low < 2048;
    for (int i = 0; is_tiny && i <= (int)(high - low); i++)
        values.push_back((K)(low + (K)i));
    const std::vector<K> probes = make_probes(values, made, state);
    const std::vector<uint32_t> found = find_on_device(probes);
    check_buckets(made, probes, found);
    const bool is_exact = is_tiny && high - low < (K)buckets;
    int shared = 0, wide = 0;
    size_t begin = 0; // the first probe of the bucket
    for (size_t i = 0; i < probes.size(); i++) {
        if (probes[i] < low || probes[i] > high)
            continue;
        if (probes[begin] < low || found[begin] != found[i])
            begin = i;
        shared += begin < i;
        wide += probes[i] - probes[begin] > (high - low) / (SPLIT_BUCKETS / 2);
    }
    CHECK(!is_exact || (shared == 0 && made.buckets == (int)(high - low) + 1),
          "%s: %d buckets, %d values share one", what, made.buckets, shared);
    CHECK(buckets < SPLIT_BUCKETS || wide == 0, "%s: buckets are too wide for %d keys", what, wide);
    cases++;
}

template <typename K>
static void check_evens(uint64_t *seed)
{
    for (int buckets : {1, 2, 3, 5, 64, 1000, 1023, 1024}) {
        for (int width :
             {0, 1, 2, 3, 4, 5, buckets - 2, buckets - 1, buckets, buckets + 1, 2 * buckets + 1}) {
            if (width < 0)
                continue;
            check_even<K>(0, (K)width, buckets, seed);
            check_even<K>(BEHIND_ALL<K> - (K)width, BEHIND_ALL<K>, buckets, seed);
            const K low = random_up_to(seed, (K)(BEHIND_ALL<K> - (K)width));
            check_even<K>(low, (K)(low + (K)width), buckets, seed);
        }
    }
    for (int bits = 1; bits <= BITS<K>; bits++) {
        const K width = random_near(seed, (K)1 << (bits - 1), bits - 1);
        const K low = random_up_to(seed, (K)(BEHIND_ALL<K> - width));
        check_even<K>(low, (K)(low + width), SPLIT_BUCKETS, seed);
    }
    check_even<K>(0, BEHIND_ALL<K>, SPLIT_BUCKETS, seed);
}

template <typename K>
static void check_splits(uint64_t *seed)
{
    const int largest = sample_keys<K>(engine);
    const int some = 1025 + (int)(check_random(seed) % (uint64_t)(largest - 1025));
    for (int shape = 0; shape < SAMPLE_SHAPES; shape++) {
        for (int seen : {1, 2, 7, 100, 1024, some, largest}) {
            if (small_form && seen != some)
                continue;
            const int most = std::min(std::max(seen / 8, 1), (int)SPLIT_BUCKETS - 1);
            const int any = 1 + (int)(check_random(seed) % (uint64_t)most);
            for (int wanted : {1, 2, 5, 40, any, most}) {
                if (wanted <= most)
                    check_split<K>(shape, seen, wanted, check_random(seed));
            }
        }
    }
}

#endif
