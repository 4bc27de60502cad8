/* Proof of the networks, rungs 1 to 5, by the 0-1 principle: a network that sorts every sequence of n zeros
 * and ones sorts every sequence of n keys. So for n = 1 .. 16, each of the 2^n sequences is sorted by itself.
 *
 * For larger n these are too many. But the last phase merges two runs that the phases before have sorted. If
 * those phases sort shorter sequences, the last phase meets nothing but zeros, ones | zeros, ones, and there are
 * few such sequences:
 *
 *     n = 20      0000000001111111 0011     17 x 5 sequences
 *
 * So all lengths up to 64 are proved, each from the lengths of its two runs; and some of those up to 128.
 *
 * The rungs are compiled once more for this test, with the small tiles and degrees of TUNING_SMALL
 * (kernels/cuda/ladder/tuning.h): 16 keys then pass through global memory, shared memory, shuffles and registers, and
 * 128 take every path that millions take otherwise. A one is the largest key, and so is the padding that is only
 * imagined behind the end. If padding could change places with a key, values would get lost.
 *
 * Source: Knuth, "The Art of Computer Programming", volume 3, section 5.3.4, theorem Z. */
#include "tests/support/check.h"
#include "tests/kernels/ladder_verify.cuh"

enum { LONGEST = 16, LONGEST_OF_OTHERS = 10, LONGEST_MERGED = 128 };

/* Is n one of the lengths above LONGEST that are proved? */
static bool is_merged(int n)
{
    return n <= LONGEST_MERGED / 2 || n == LONGEST_MERGED / 2 + 1 || n == 100 || n >= LONGEST_MERGED - 1;
}

static struct cuda_engine *engine;
static const struct engine_ops *ops;
static int cases;

/* The sequences of n zeros and ones to be sorted: all, or those of two sorted runs, the first of `run` keys. */
struct sequences {
    int n, run; /* run 0: all */
    int64_t count;

    /* Key i of sequence j. All: bit i of j. Runs: j counts the zeros of both. */
    __device__ bool is_one(int64_t j, int i) const
    {
        if (run == 0)
            return j >> i & 1;
        return i < run ? i >= j % (run + 1) : i - run >= j / (run + 1);
    }
};

static struct sequences all_sequences(int n)
{
    return {n, 0, INT64_C(1) << n};
}

static struct sequences merged_sequences(int n)
{
    int run = 1;
    while (2 * run < n)
        run *= 2;
    return {n, run, (int64_t)(run + 1) * (n - run + 1)};
}

/* Sequence j lies at keys + j n. */
template <typename K, typename V>
static __global__ void fill_sequences_kernel(K *keys, V *values, struct sequences s)
{
    const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= s.count)
        return;
    for (int i = 0; i < s.n; i++) {
        keys[j * s.n + i] = s.is_one(j, i) ? (K) ~(K)0 : 0;
        if (values)
            values[j * s.n + i] = make_value<V>(i);
    }
}

/* Count the sequences that are not sorted. A sorted sequence has as many zeros as before, then as many ones, and each
 * value once, beside its key. */
template <typename K, typename V>
static __global__ void check_sequences_kernel(const K *keys, const V *values, struct sequences s,
                                              unsigned long long *wrong)
{
    const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= s.count)
        return;
    int zeros = 0, distinct = 0;
    for (int i = 0; i < s.n; i++)
        zeros += !s.is_one(j, i);
    uint32_t seen[LONGEST_MERGED / 32] = {};
    bool good = true;
    for (int i = 0; i < s.n; i++) {
        const K key = i < zeros ? 0 : (K) ~(K)0;
        good = good && keys[j * s.n + i] == key;
        if (values) {
            const V value = values[j * s.n + i];
            const int64_t from = position_of(value);
            good = good && from < s.n && value == make_value<V>(from) && s.is_one(j, (int)from) == (key != 0);
            if (good) {
                distinct += !(seen[from / 32] >> from % 32 & 1);
                seen[from / 32] |= 1u << from % 32;
            }
        }
    }
    if (!good || (values && distinct != s.n))
        atomicAdd(wrong, 1ull);
}

/* Sort all these sequences. Returns how many come out wrong. */
template <typename K, typename V>
static unsigned long long sort_sequences(int rung, bool with_values, struct sequences s,
                                         const struct sort_args *buffers, unsigned long long *wrong_on_device)
{
    const unsigned blocks = (unsigned)divide_up(s.count, 256);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    K *keys = (K *)buffers->keys;
    V *values = with_values ? (V *)buffers->values : NULL;
    unsigned long long wrong;
    device_scope scope(engine);
    MUST(cuda_check(cudaMemsetAsync(wrong_on_device, 0, sizeof wrong, stream), "clear"));
    fill_sequences_kernel<<<blocks, 256, 0, stream>>>(keys, values, s);
    for (int64_t j = 0; j < s.count; j++) {
        struct sort_args args = *buffers;
        args.count = s.n;
        args.keys = keys + j * s.n;
        args.values = with_values ? values + j * s.n : NULL;
        MUST(ladder_sort(engine, rung, &args));
        if (args.sorted_keys != args.keys || args.sorted_values != args.values)
            return 1;
    }
    check_sequences_kernel<<<blocks, 256, 0, stream>>>(keys, values, s, wrong_on_device);
    MUST(cuda_check(cudaGetLastError(), "check"));
    MUST(ops->copy(&engine->base, STREAM_WORK, &wrong, wrong_on_device, sizeof wrong));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    return wrong;
}

/* Return the bytes of workspace that do for every sequence. */
static size_t longest_workspace(int rung, struct sort_args args)
{
    size_t most = 0, bytes;
    for (args.count = 2; args.count <= LONGEST_MERGED; args.count++) {
        MUST(ladder_workspace(engine, rung, &args, &bytes));
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void prove_sequences(int rung, struct ladder_type type, struct sequences s, const struct sort_args *args,
                            unsigned long long *wrong_on_device)
{
    const bool values = type.value_bytes > 0;
    const unsigned long long wrong =
        type.key_bytes == 4    ? sort_sequences<uint32_t, uint32_t>(rung, values, s, args, wrong_on_device)
        : type.value_bytes < 8 ? sort_sequences<uint64_t, uint32_t>(rung, values, s, args, wrong_on_device)
                               : sort_sequences<uint64_t, uint64_t>(rung, values, s, args, wrong_on_device);
    CHECK(wrong == 0, "rung %d, %s: of the %lld sequences of %d zeros and ones, %llu come out wrong", rung,
          type.word, (long long)s.count, s.n, wrong);
    cases++;
}

/* Prove all sequences of up to `longest` keys; if that is LONGEST, also the longer sequences of two runs. */
static void prove(int rung, struct ladder_type type, int longest)
{
    const size_t elements = (size_t)LONGEST << LONGEST; // more than the longest sequences of two runs take
    struct sort_args args = {};
    unsigned long long *wrong_on_device;
    args.key_bytes = type.key_bytes;
    args.value_bytes = type.value_bytes;
    MUST(ops->alloc(&engine->base, sizeof *wrong_on_device, (void **)&wrong_on_device));
    MUST(ops->alloc(&engine->base, longest_workspace(rung, args), &args.workspace));
    MUST(ops->alloc(&engine->base, elements * type.key_bytes, &args.keys));
    MUST(ops->alloc(&engine->base, elements * type.value_bytes, &args.values));
    MUST(ops->alloc(&engine->base, (size_t)LONGEST_MERGED * type.key_bytes, &args.scratch_keys));
    MUST(ops->alloc(&engine->base, (size_t)LONGEST_MERGED * type.value_bytes, &args.scratch_values));
    for (int n = 1; n <= longest; n++)
        prove_sequences(rung, type, all_sequences(n), &args, wrong_on_device);
    for (int n = LONGEST + 1; longest == LONGEST && n <= LONGEST_MERGED; n++) {
        if (is_merged(n))
            prove_sequences(rung, type, merged_sequences(n), &args, wrong_on_device);
    }
    void *const buffers[] = {wrong_on_device, args.workspace,    args.keys,
                             args.values,      args.scratch_keys, args.scratch_values};
    for (void *buffer : buffers)
        ops->free(&engine->base, buffer);
}

int main(void)
{
    struct cuda_device device;
    if (!open_first_gpu(&engine, &device))
        return CHECK_SKIPPED;
    ops = engine->base.ops;
    for (int rung : ladder_rungs) {
        if (!rung_is_network(rung))
            continue;
        // The comparators do not depend on the type: the narrowest and the widest go all the way.
        for (int i = 0; i < LADDER_TYPES; i++)
            prove(rung, ladder_types[i], i == 0 || i == LADDER_TYPES - 1 ? LONGEST : LONGEST_OF_OTHERS);
    }
    ops->close(&engine->base);
    printf("%d lengths on %s, %d failures\n", cases, device.name, check_failures);
    return check_failures > 0;
}
