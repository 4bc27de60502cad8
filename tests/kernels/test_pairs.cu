/* Sorts of keys with a value each (engine_ops.pairs), by levels and as the engine chooses. Each value tells where its element came
 * from, so a result is right if it holds each element once, in the order of (key, position): the device looks at all of it.
 *
 *     test_pairs            drawn trials, of up to 2^25 elements
 *     test_pairs small      few of them, for sanitizers
 *     test_pairs large      up to 2^29 elements, where buckets are left for a third level */
#include "kernels/cuda/msd/pairs.cu"
#include "kernels/base/input_draw.h"
#include "tests/support/check.h"
#include "tests/support/pretend.h"

static struct engine *engine;
static const struct engine_ops *ops;

static void must(hsort_status status, const char *what)
{
    if (status == HSORT_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, hsort_strerror(status), status_text());
    exit(1);
}

/* ---- memory between guards ------------------------------------------------------------------------------- */

enum { GUARD = 512, POISON = 0xa5 };

/* [bytes] of engine memory that begin `shift` behind an aligned place; all poison. */
struct guarded {
    char *memory, *begin;
    size_t bytes, shift;
};

static struct guarded guarded_new(size_t bytes, size_t shift)
{
    struct guarded g = {NULL, NULL, bytes, shift};
    void *memory;
    must(ops->alloc(engine, 2 * GUARD + shift + bytes, &memory), "alloc");
    must(cuda_check(cudaMemset(memory, POISON, 2 * GUARD + shift + bytes), "cudaMemset"), "poison");
    must(cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"),
         "poison"); // the engine's streams do not wait for it
    g.memory = (char *)memory;
    g.begin = g.memory + GUARD + shift;
    return g;
}

static void guarded_free(struct guarded *g, const char *what)
{
    unsigned char guards[2][GUARD];
    size_t spoiled = 0;
    must(cuda_check(cudaMemcpy(guards[0], g->begin - GUARD, GUARD, cudaMemcpyDefault), "cudaMemcpy"), what);
    must(cuda_check(cudaMemcpy(guards[1], g->begin + g->bytes, GUARD, cudaMemcpyDefault), "cudaMemcpy"),
         what);
    for (int i = 0; i < 2 * GUARD; i++)
        spoiled += guards[i / GUARD][i % GUARD] != POISON;
    CHECK(spoiled == 0, "%s: %zu bytes around an array of %zu are overwritten", what, spoiled, g->bytes);
    ops->free(engine, g->memory);
    *g = {};
}

/* ---- elements -------------------------------------------------------------------------------------------- */

enum { KEYS_CLUMPS = INPUTS, KEYS_DECOYS, KEYS_LUMPS, KEY_SHAPES }; // shapes beyond the inputs of input_draw.h

struct trial {
    hsort_type type;
    hsort_order order;
    struct input input; /* distribution: of those, or one of the shapes above */
    int64_t count;
    int value_bytes; /* 0: positions */
    bool wants_keys, in_place, by_levels;
    uint64_t salt;
    char what[200];
};

static inline __host__ __device__ uint64_t mixed(uint64_t word)
{
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

/* The value of the element at a position, and back: an odd number has an inverse. */
template <typename V>
static __host__ __device__ V value_of(uint64_t position, uint64_t salt)
{
    return (V)(position * UINT64_C(0x9e3779b97f4a7c15)) ^ (V)salt;
}

template <typename V>
static __host__ __device__ uint64_t position_of(V value, uint64_t salt)
{
    V inverse = 1;
    for (int i = 0; i < 6; i++) // Newton: correct bits double each time
        inverse *= 2 - (V)UINT64_C(0x9e3779b97f4a7c15) * inverse;
    return (V)((V)(value ^ (V)salt) * inverse);
}

/* Lumps: values that repeat, some dozen to some thousand times; one value in eight is a neighbour of the value before it, in the same
 * bin. */
static __device__ uint64_t key_of_lump(uint64_t word, int64_t count, uint64_t salt)
{
    const uint64_t values = (uint64_t)count / 32 + 1, value = (word >> 8) % values >> word % 8;
    const uint64_t is_neighbour = value % 8 == 7;
    return mixed(value - is_neighbour + salt) + is_neighbour;
}

/* Clumps: each has a few near keys, and clumps are too far from each other for codes of 64 bits. Decoys: all keys are near each other. */
template <typename K>
static __global__ void shape_kernel(K *keys, int64_t count, int shape, uint64_t salt)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const uint64_t word = mixed((uint64_t)i + salt);
        keys[i] = shape == KEYS_CLUMPS
                      ? (K)((K)(word % 4096) << (8 * sizeof(K) - 12) | (K)(word >> 32 & 0xff))
                  : shape == KEYS_LUMPS ? (K)key_of_lump(word, count, salt)
                                        : (K)((K)(salt % 97) << (8 * sizeof(K) - 8) | (K)(word & 0xffffff));
    }
}

/* With decoys, then spread the keys that the first level samples over all keys there can be. */
template <typename K>
static __global__ void decoy_kernel(K *keys, int64_t count, int seen)
{
    for (int i = threadIdx.x; i < seen; i += blockDim.x)
        keys[sample_position(i, seen, count)] = (K)(BEHIND_ALL<K> / (K)seen * (K)i);
}

template <typename V>
static __global__ void value_kernel(V *values, int64_t count, uint64_t salt)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        values[i] = value_of<V>((uint64_t)i, salt);
}

/* What a look at a result finds. */
struct look {
    unsigned long long wrong, first;
};

static __device__ void note_wrong(struct look *look, int64_t i)
{
    atomicAdd(&look->wrong, 1ull);
    atomicMin(&look->first, (unsigned long long)i);
}

/* keys_out NULL: keys are not looked at. seen: a bit for each position, all 0. */
template <typename K, typename V>
static __global__ void look_kernel(struct keymap map, const K *original, int64_t count, const K *keys_out,
                                   const V *values, bool are_positions, uint64_t salt, uint32_t *seen,
                                   struct look *look)
{
    const auto came_from = [&](int64_t i) {
        return are_positions ? (uint64_t)values[i] : position_of<V>(values[i], salt);
    };
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const uint64_t own = came_from(i), before = i > 0 ? came_from(i - 1) : 0;
        if (own >= (uint64_t)count || before >= (uint64_t)count) {
            note_wrong(look, i);
            continue;
        }
        const K code = encode(map, original[own]), code_before = encode(map, original[before]);
        const bool rises = i == 0 || code_before < code || (code_before == code && before < own);
        const bool twice = atomicOr(&seen[own / 32], 1u << own % 32) >> own % 32 & 1;
        if (!rises || twice || (keys_out && keys_out[i] != original[own]))
            note_wrong(look, i);
    }
}

/* ---- a trial --------------------------------------------------------------------------------------------- */

enum { BLOCKS = 1024, THREADS = 256 };

template <typename K>
static void make_keys(const struct trial &t, K *keys)
{
    cudaStream_t stream = ((struct cuda_engine *)engine)->streams[STREAM_WORK];
    if (t.input.distribution < INPUTS) {
        must(ops->yardstick->fill(engine, &t.input, 0, t.count, keys), "fill");
        return;
    }
    shape_kernel<<<BLOCKS, THREADS, 0, stream>>>(keys, t.count, t.input.distribution, t.salt);
    if (t.input.distribution == (int)KEYS_DECOYS) {
        struct level_plan plan = plan_of_regions(pairs_of_region(t.count), pairs_of_region(t.count), true);
        plan.most_buckets = ORDERED_BUCKETS;
        decoy_kernel<<<1, THREADS, 0, stream>>>(keys, t.count, sample_size<K>(t.count, plan));
    }
}

/* Sort as the engine chooses, or by levels whatever the engine would choose. */
template <typename K, typename V, typename T>
static void sort_trial(const struct trial &t, const struct engine_pairs *pairs)
{
    const bool by_levels = t.by_levels && has_levels<K>;
    size_t bytes = 0;
    if (!by_levels)
        must(ops->pairs->workspace(engine, pairs, &bytes), t.what);
    if constexpr (has_levels<K>) {
        if (by_levels)
            bytes = lay_out_pairs<K, V>(NULL, pairs).bytes;
    }
    struct guarded workspace = guarded_new(bytes, 0);
    if (!by_levels)
        must(ops->pairs->sort(engine, pairs, workspace.begin), t.what);
    if constexpr (has_levels<K>) {
        if (by_levels)
            must(sort_pairs_by_levels<K, V, T>((struct cuda_engine *)engine, pairs, workspace.begin), t.what);
    }
    must(ops->stream_synchronize(engine, STREAM_WORK), t.what);
    guarded_free(&workspace, t.what);
}

template <typename K, typename T>
static void look_at_result(const struct trial &t, const K *original, const K *keys_out, const T *values)
{
    cudaStream_t stream = ((struct cuda_engine *)engine)->streams[STREAM_WORK];
    const size_t bytes = (size_t)(t.count / 32 + 1) * sizeof(uint32_t);
    struct look found = {0, ~0ull};
    void *seen, *look;
    must(ops->alloc(engine, bytes, &seen), "alloc");
    must(ops->alloc(engine, sizeof found, &look), "alloc");
    must(cuda_check(cudaMemsetAsync(seen, 0, bytes, stream), "cudaMemset"), "clear");
    must(cuda_check(cudaMemcpyAsync(look, &found, sizeof found, cudaMemcpyDefault, stream), "cudaMemcpy"),
         "clear");
    look_kernel<<<BLOCKS, THREADS, 0, stream>>>(keymap_make(t.type, t.order), original, t.count, keys_out,
                                                values, t.value_bytes == 0, t.salt, (uint32_t *)seen,
                                                (struct look *)look);
    must(cuda_check(cudaMemcpyAsync(&found, look, sizeof found, cudaMemcpyDefault, stream), "cudaMemcpy"),
         "look");
    must(ops->stream_synchronize(engine, STREAM_WORK), t.what);
    CHECK(found.wrong == 0, "%s: wrong at %llu places, first at %llu", t.what, found.wrong, found.first);
    ops->free(engine, seen);
    ops->free(engine, look);
}

/* Are two arrays of memory alike? */
template <typename K>
static __global__ void alike_kernel(const K *a, const K *b, int64_t count, struct look *look)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        if (a[i] != b[i])
            note_wrong(look, i);
    }
}

template <typename K>
static void check_unchanged(const struct trial &t, const K *a, const K *b)
{
    struct look found = {0, ~0ull};
    void *look;
    must(ops->alloc(engine, sizeof found, &look), "alloc");
    must(cuda_check(cudaMemcpy(look, &found, sizeof found, cudaMemcpyDefault), "cudaMemcpy"), "clear");
    alike_kernel<<<BLOCKS, THREADS>>>(a, b, t.count, (struct look *)look);
    must(cuda_check(cudaMemcpy(&found, look, sizeof found, cudaMemcpyDefault), "cudaMemcpy"), "look");
    CHECK(found.wrong == 0, "%s: %llu keys of the input have changed", t.what, found.wrong);
    ops->free(engine, look);
}

template <typename K, typename V, typename T>
static void run_trial(const struct trial &t, uint64_t *random)
{
    cudaStream_t stream = ((struct cuda_engine *)engine)->streams[STREAM_WORK];
    const size_t keys_bytes = (size_t)t.count * sizeof(K), values_bytes = (size_t)t.count * sizeof(T);
    const auto shift = [&](size_t size) { return (size_t)(check_random(random) % 4) * size; };
    struct guarded original = guarded_new(keys_bytes, 0), keys = guarded_new(keys_bytes, shift(sizeof(K))),
                   keys_out = guarded_new(keys_bytes, shift(sizeof(K))),
                   values = guarded_new(values_bytes, shift(sizeof(T))),
                   values_out = guarded_new(values_bytes, shift(sizeof(T)));
    make_keys(t, (K *)original.begin);
    must(ops->copy(engine, STREAM_WORK, keys.begin, original.begin, keys_bytes), "copy");
    if (t.value_bytes > 0)
        value_kernel<<<BLOCKS, THREADS, 0, stream>>>((T *)values.begin, t.count, t.salt);
    struct engine_pairs pairs = {};
    pairs.map = keymap_make(t.type, t.order);
    pairs.count = t.count;
    pairs.keys = keys.begin;
    pairs.values = t.value_bytes > 0 ? values.begin : NULL;
    pairs.value_bytes = t.value_bytes > 0 ? t.value_bytes : 8;
    pairs.keys_out = !t.wants_keys ? NULL : t.in_place ? keys.begin : keys_out.begin;
    pairs.values_out = t.in_place && t.value_bytes > 0 ? values.begin : values_out.begin;
    CHECK(ops->pairs->can_sort(engine, &pairs), "%s: has no kernels", t.what);
    sort_trial<K, V, T>(t, &pairs);
    look_at_result<K, T>(t, (const K *)original.begin, (const K *)pairs.keys_out,
                         (const T *)pairs.values_out);
    if (!t.in_place || !t.wants_keys)
        check_unchanged(t, (const K *)original.begin, (const K *)keys.begin);
    struct guarded *all[] = {&original, &keys, &keys_out, &values, &values_out};
    for (struct guarded *g : all)
        guarded_free(g, t.what);
}

static const char *shape_name(const struct trial &t)
{
    static const char *const words[] = {
#define X(name, word, ...) word,
        INPUT_LIST(X)
#undef X
            "clumps",
        "decoys", "lumps"};
    return words[t.input.distribution];
}

static void draw_trial(int64_t most, bool any_way, uint64_t *random)
{
    struct trial t = {};
    t.type = (hsort_type)(check_random(random) % (HSORT_F64 + 1));
    t.order = check_random(random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
    t.count = 1 + (int64_t)(check_random(random) % (uint64_t)(most >> check_random(random) % 8));
    t.salt = check_random(random);
    t.value_bytes = (int)(check_random(random) % 3) * 4;
    t.wants_keys = check_random(random) % 3 > 0;
    t.in_place = check_random(random) % 3 == 0;
    t.by_levels = any_way && check_random(random) % 4 > 0;
    t.input = {(enum input_distribution)(check_random(random) % KEY_SHAPES), 0, t.type, t.salt, t.count};
    if (check_random(random) % 4 == 0)
        t.input.distribution = (enum input_distribution)(KEYS_CLUMPS + check_random(random) % (KEY_SHAPES - KEYS_CLUMPS));
    const int small = 1 + (int)(check_random(random) % 4);
    t.input.parameter = t.input.distribution == INPUT_NARROW ? 5 * small
                        : t.input.distribution == INPUT_ZIPF ? 7 * small
                        : t.input.distribution == INPUT_RUNS || t.input.distribution == INPUT_CLUSTERS
                            ? 37 * small
                        : t.input.distribution == INPUT_KMER    ? 7 * small
                        : t.input.distribution == INPUT_MIXTURE ? (int)(check_random(random) % 100000)
                                                                : small;
    snprintf(t.what, sizeof t.what, "%lld %s %s:%d %s, %s, values of %d bytes, %s%s, salt %llu",
             (long long)t.count, hsort_type_name(t.type), shape_name(t), t.input.parameter,
             t.order == HSORT_DESCENDING ? "descending" : "ascending", t.by_levels ? "by levels" : "any way",
             t.value_bytes, t.wants_keys ? "keys" : "no keys", t.in_place ? ", in place" : "",
             (unsigned long long)t.salt);
    const bool is_wide = hsort_type_bytes(t.type) == 8;
    if (t.value_bytes == 0)
        is_wide ? run_trial<uint64_t, uint32_t, int64_t>(t, random)
                : run_trial<uint32_t, uint32_t, int64_t>(t, random);
    else if (t.value_bytes == 4)
        is_wide ? run_trial<uint64_t, uint32_t, uint32_t>(t, random)
                : run_trial<uint32_t, uint32_t, uint32_t>(t, random);
    else
        is_wide ? run_trial<uint64_t, uint64_t, uint64_t>(t, random)
                : run_trial<uint32_t, uint64_t, uint64_t>(t, random);
}

/* Does the engine find that positions of so many keys of 4 bytes beat codes? */
static bool positions_beat(hsort_type type, hsort_order order, enum input_distribution distribution, int parameter,
                           int64_t count, uint64_t salt)
{
    struct trial t = {};
    t.count = count;
    t.input = {distribution, parameter, type, salt, count};
    struct guarded keys = guarded_new((size_t)count * sizeof(uint32_t), 0);
    struct engine_pairs pairs = {};
    bool beat = false;
    make_keys(t, (uint32_t *)keys.begin);
    must(ops->stream_synchronize(engine, STREAM_WORK), "make keys");
    pairs.map = keymap_make(type, order);
    pairs.count = count;
    pairs.keys = keys.begin;
    pairs.value_bytes = 8;
    must(ops->pairs->beats_codes(engine, &pairs, &beat), "look at pairs");
    guarded_free(&keys, "look at pairs");
    return beat;
}

/* The engine must find whether keys of a sample lie in lumps; few keys go with their positions without a look. */
static void test_lumps(uint64_t *random)
{
    static const struct {
        hsort_type type;
        enum input_distribution distribution;
        int parameter;
        bool beat;
    } cases[] = {{HSORT_U32, INPUT_UNIFORM, 0, false}, {HSORT_F32, INPUT_UNIFORM, 0, false},
                 {HSORT_I32, INPUT_GAUSS, 0, false},   {HSORT_U32, INPUT_SORTED, 0, false},
                 {HSORT_U32, INPUT_EQUAL, 0, false},   {HSORT_U32, INPUT_RUNS, 1024, false},
                 {HSORT_U32, INPUT_ZIPF, 20, true},    {HSORT_I32, INPUT_ZIPF, 26, true},
                 {HSORT_U32, INPUT_CLUSTERS, 1000, true}, {HSORT_U32, INPUT_ENTROPY, 3, true}};
    for (const auto &c : cases) {
        const hsort_order order = check_random(random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
        const int64_t count = PAIR_POSITIONS_MOST + 1 + (int64_t)(check_random(random) % 100000);
        const bool beat = positions_beat(c.type, order, c.distribution, c.parameter, count, check_random(random));
        CHECK(beat == c.beat, "%lld %s of distribution %d:%d, order %d: positions %s codes", (long long)count,
              hsort_type_name(c.type), c.distribution, c.parameter, order, beat ? "beat" : "do not beat");
    }
    CHECK(positions_beat(HSORT_U32, HSORT_ASCENDING, INPUT_UNIFORM, 0, PAIR_POSITIONS_MOST, 1),
          "few keys do not go with their positions");
}

#ifdef HSORT_FAULTS
/* An armed site fails the next call, with a text, and only that one. */
static void test_fault(void)
{
    struct guarded keys = guarded_new(64, 0), values = guarded_new(64, 0),
                   workspace = guarded_new(1 << 20, 0);
    struct engine_pairs pairs = {};
    pairs.map = keymap_make(HSORT_U64, HSORT_ASCENDING);
    pairs.count = 8;
    pairs.keys = keys.begin;
    pairs.value_bytes = 8;
    pairs.values_out = values.begin;
    fault_set(FAULT_KERNEL, 1);
    CHECK(ops->pairs->sort(engine, &pairs, workspace.begin) != HSORT_OK && status_text()[0] != '\0',
          "a fault is passed");
    fault_set(FAULT_KERNEL, 0);
    status_clear();
    must(ops->pairs->sort(engine, &pairs, workspace.begin), "a call after a fault");
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
    guarded_free(&keys, "fault");
    guarded_free(&values, "fault");
    guarded_free(&workspace, "fault");
}
#endif

int main(int argc, char **argv)
{
    const char *size = argc > 1 ? argv[1] : "";
    uint64_t random = check_seed();
    char why[256];
    if (cuda_device_count(why, sizeof why) == 0) {
        printf("skipped: %s\n", why);
        return CHECK_SKIPPED;
    }
    printf("test_pairs: seed %llu, the GPU %s\n", (unsigned long long)random, pretend_gpu(random));
    must(engine_open_cuda(0, 0, &engine), "engine_open_cuda");
    ops = engine->ops;
    if (strcmp(size, "large") == 0) {
        for (int i = 0; i < 12; i++)
            draw_trial(INT64_C(1) << (26 + i % 4), false, &random);
    } else {
        const int small = strcmp(size, "small") == 0 ? 40 : 400, large = small == 40 ? 6 : 60;
        for (int i = 0; i < small; i++)
            draw_trial(i % 2 ? 3000 : 100000, true, &random);
        for (int i = 0; i < large; i++)
            draw_trial(small == 40 ? INT64_C(1) << 22 : INT64_C(1) << 25, true, &random);
        test_lumps(&random);
    }
#ifdef HSORT_FAULTS
    test_fault();
#endif
    printf("test_pairs: %d failures\n", check_failures);
    ops->close(engine);
    return check_failures > 0;
}
