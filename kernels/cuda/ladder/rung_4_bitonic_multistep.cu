/* Rung 4: bitonic sort, several steps of large strides per pass.
 *
 * Idea     Consecutive steps of a phase connect positions that differ in consecutive bits. So a thread that
 *          loads the 2^d keys whose positions differ only in d such bits can do d steps in registers before
 *          it writes them back: a pass of degree d.
 * Change   Fewer passes over memory than rung 3: for strides of a tile and more, d passes become one. The
 *          tiles are rung 3's.
 * Picture  A pass of degree 2 over strides 4 and 2, n = 8. Thread 0 holds positions 0 2 4 6, thread 1 holds 1
 *          3 5 7:
 *
 *            key 0  --o---o--     key 1  --o---o--
 *            key 2  --|o--x--     key 3  --|o--x--        o the smaller key, x the larger
 *            key 4  --x|--o--     key 5  --x|--o--
 *            key 6  ---x--x--     key 7  ---x--x--
 *
 *          At the start of phase 3 the first step is mirrored, 0-7 1-6 2-5 3-4. In that case a thread takes the
 *          positions of the upper half with the bits below the pass turned over: 0 2 and 5 7, 1 3 and 4 6. Both
 *          the mirrored step and the step of stride 2 stay inside these positions, so a mirrored step makes a
 *          pass of any degree no more expensive:
 *
 *            key 0  --o---o--     key 1  --o---o--
 *            key 2  --|o--x--     key 3  --|o--x--
 *            key 5  --|x--o--     key 4  --|x--o--        0-7 2-5    1-6 3-4
 *            key 7  --x---x--     key 6  --x---x--
 *
 * Cost     s steps take s / d passes, rounded up, each with one read and one write per key: at n = 2^28 with
 *          tiles of 2^13 keys and degree 6, 27 passes instead of 120. No barrier.
 * Limit    A warp needs 32 neighbours in each of its 2^d places, and a thread needs 2^d registers. So the degree
 *          ends at 6, and every phase still takes one pass through tiles as well. Tiles that are not of
 *          consecutive positions could take any steps, across the ends of phases too.
 * Source   Peters, Schulz-Hildebrandt, Luttenberger, "Fast in-place sorting with CUDA based on bitonic sort",
 *          section 3.2 (partitions of degree up to 4) and 3.3 (virtual padding). */
#include "kernels/cuda/ladder/bitonic.cuh"
#include "kernels/cuda/ladder/tuning.h"

template <typename K, typename V>
constexpr int largest_degree()
{
    return has_value<V> ? BITONIC_DEGREE_PAIRS : by_width<K>(BITONIC_DEGREE_4, BITONIC_DEGREE_8);
}

/* Take the steps of strides 2^(log_low + DEGREE - 1) down to 2^log_low. Thread t holds the positions whose other
 * bits are those of t. Only the first `groups` threads have any position below count. */
template <int DEGREE, bool MIRRORED, typename K, typename V>
static __global__ void __launch_bounds__(BITONIC_MULTISTEP_THREADS)
    multistep_kernel(columns<K, V> data, int64_t count, int64_t groups, int log_low)
{
    constexpr int KEYS = 1 << DEGREE;
    const int64_t t = (int64_t)blockIdx.x * BITONIC_MULTISTEP_THREADS + threadIdx.x;
    if (t >= groups)
        return;
    int64_t stride = INT64_C(1) << log_low;
    const int64_t offset = t & (stride - 1);
    const int64_t lower = ((t >> log_low) << (log_low + DEGREE)) + offset;
    const int64_t upper = lower - offset + stride * (KEYS / 2) + (MIRRORED ? stride - 1 - offset : offset);
    // how many of each half's positions are below count
    const int lower_valid = (int)min((int64_t)KEYS / 2, (count - lower + stride - 1) >> log_low);
    const int upper_valid = (int)min((int64_t)KEYS / 2, (count - upper + stride - 1) >> log_low);
    element<K, V> x[KEYS];

#pragma unroll
    for (int k = 0; k < KEYS / 2; k++) {
        x[k] = k < lower_valid ? data.load(lower + k * stride) : largest<K, V>();
        x[KEYS / 2 + k] = k < upper_valid ? data.load(upper + k * stride) : largest<K, V>();
    }
#pragma unroll
    for (int distance = KEYS / 2; distance > 0; distance /= 2) {
        const int flip = MIRRORED && distance == KEYS / 2 ? KEYS - 1 : distance;
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            if (k < (k ^ flip))
                compare_exchange(x[k], x[k ^ flip]);
        }
    }
    // Make the compiler compute the addresses again: kept from the loads, they take twice as many registers as
    // the keys
    asm volatile("" : "+l"(stride));
#pragma unroll
    for (int k = 0; k < KEYS / 2; k++) {
        if (k < lower_valid)
            data.store(lower + k * stride, x[k]);
        if (k < upper_valid)
            data.store(upper + k * stride, x[KEYS / 2 + k]);
    }
}

/* Launch a pass of `degree`, which is at most DEGREE. */
template <int DEGREE, typename K, typename V>
static hsort_status launch_pass(struct cuda_engine *engine, columns<K, V> data, int64_t count, int degree,
                                int log_low, bool mirrored)
{
    if constexpr (DEGREE > 1) {
        if (degree < DEGREE)
            return launch_pass<DEGREE - 1>(engine, data, count, degree, log_low, mirrored);
    }
    const int64_t stride = INT64_C(1) << log_low;
    const int64_t rest = count & ((stride << DEGREE) - 1);
    const int64_t groups = ((count >> (log_low + DEGREE)) << log_low) + (rest < stride ? rest : stride);
    const unsigned blocks = (unsigned)divide_up(groups, BITONIC_MULTISTEP_THREADS);
    const auto kernel =
        mirrored ? multistep_kernel<DEGREE, true, K, V> : multistep_kernel<DEGREE, false, K, V>;
    kernel<<<blocks, BITONIC_MULTISTEP_THREADS, 0, engine->streams[STREAM_WORK]>>>(data, count, groups, log_low);
    TRY_LAUNCH("rung 4, a pass");
    return HSORT_OK;
}

template <typename K, typename V>
static hsort_status sort_bitonic_multistep(struct cuda_engine *engine, struct sort_args *args, int most,
                                           columns<K, V> data)
{
    constexpr int LARGEST = largest_degree<K, V>();
    if (most < 1 || most > LARGEST)
        return status_fail(HSORT_ARGUMENT, "rung 4 has degrees of 1 to %d here, not %d", LARGEST, most);
    const int phases = count_phases(args->count);
    const int log_tile = rung_3_log_tile(args);
    TRY(rung_3_sort_tiles(engine, args));
    for (int phase = log_tile + 1; phase <= phases; phase++) {
        int steps = phase - log_tile;
        for (int passes = (int)divide_up(steps, most); passes > 0; passes--) {
            const int degree = (int)divide_up(steps, passes); // 7 steps are 4 + 3, not 6 + 1, which has fewer threads
            const bool mirrored = steps == phase - log_tile;
            steps -= degree;
            TRY(launch_pass<LARGEST>(engine, data, args->count, degree, log_tile + steps, mirrored));
        }
        TRY(rung_3_merge_tiles(engine, args));
    }
    return HSORT_OK;
}

extern "C" int rung_4_largest_degree(const struct sort_args *args)
{
    int degree = 0;
    with_element_types(args->key_bytes, args->value_bytes, [&](auto key, auto value) {
        degree = largest_degree<decltype(key), decltype(value)>();
        return HSORT_OK;
    });
    return degree;
}

extern "C" hsort_status rung_4_degree(struct cuda_engine *engine, struct sort_args *args, int degree)
{
    return with_columns(args, [&](auto data) { return sort_bitonic_multistep(engine, args, degree, data); });
}

extern "C" hsort_status rung_4_bitonic_multistep(struct cuda_engine *engine, struct sort_args *args)
{
    return rung_4_degree(engine, args, rung_4_largest_degree(args));
}
