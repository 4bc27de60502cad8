/* Rung 1: bitonic sort in global memory, one step per launch.
 *
 * Idea     Batcher's bitonic network. Phase p makes sorted runs of 2^p keys from pairs of sorted runs of
 *          2^(p-1), in p steps. The comparators of a step touch every key at most once, so a step is one
 *          launch with a thread per comparator and no synchronisation except the end of the launch.
 * Change   The first rung: the sources' "trivial implementation", but in the all-ascending form. The first
 *          step of a phase compares mirrored positions, which reverses the second run, where the textbook
 *          sorts it descending. Each comparator then puts the smaller key at the smaller position, so keys of
 *          +infinity behind the end would never move. So comparators that reach beyond `count` are left out,
 *          and any count sorts without padding.
 * Picture  n = 8. A column is a launch. o and x are the two ends of a comparator; the smaller key goes to o.
 *
 *            phase      1     2           3
 *            stride     1     2     1     4       2     1
 *                             m           m                 m: mirrored step
 *            key 0  ----o-----o-----o-----o-------o-----o----
 *            key 1  ----x-----|o----x-----|o------|o----x----
 *            key 2  ----o-----|x----o-----||o-----x|----o----
 *            key 3  ----x-----x-----x-----|||o-----x----x----
 *            key 4  ----o-----o-----o-----|||x----o-----o----
 *            key 5  ----x-----|o----x-----||x-----|o----x----
 *            key 6  ----o-----|x----o-----|x------x|----o----
 *            key 7  ----x-----x-----x-----x--------x----x----
 *
 * Cost     log2(n) (log2(n) + 1) / 2 launches (phase 1 has one step, phase 20 twenty). Each launch reads every
 *          key once and writes the keys that change places; a value is read and written only where its key
 *          moves. No memory beside the keys.
 * Limit    Bytes. 2^20 keys pass through memory 210 times, although 174 of the 210 steps stay inside tiles of
 *          4096 keys, which one block could hold in shared memory.
 * Source   Batcher, "Sorting networks and their applications", 1968; Peters, Schulz-Hildebrandt,
 *          Luttenberger, "Fast in-place sorting with CUDA based on bitonic sort", sections 3.1 and 3.3
 *          (virtual padding). */
#include "kernels/cuda/ladder/bitonic.cuh"
#include "kernels/cuda/ladder/tuning.h"

template <typename K, typename V>
static __global__ void __launch_bounds__(BITONIC_GLOBAL_THREADS)
    step_kernel(columns<K, V> data, int64_t comparators, int log_stride, bool mirrored)
{
    const int64_t t = (int64_t)blockIdx.x * BITONIC_GLOBAL_THREADS + threadIdx.x;
    if (t >= comparators)
        return;
    const comparator<int64_t> at = comparator_at(t, log_stride, mirrored);
    const K a = data.keys[at.lower];
    const K b = data.keys[at.upper];
    if (b < a) {
        data.keys[at.lower] = b;
        data.keys[at.upper] = a;
        if constexpr (has_value<V>) { // values move with their keys, and are not read where the keys stay
            const V value = data.values[at.lower];
            data.values[at.lower] = data.values[at.upper];
            data.values[at.upper] = value;
        }
    }
}

extern "C" hsort_status rung_1_step(struct cuda_engine *engine, const struct sort_args *args, int log_stride,
                                    bool mirrored)
{
    const int64_t comparators = count_comparators(args->count, log_stride);
    const unsigned blocks = (unsigned)divide_up(comparators, BITONIC_GLOBAL_THREADS);
    return with_columns(args, [&](auto data) {
        step_kernel<<<blocks, BITONIC_GLOBAL_THREADS, 0, engine->streams[STREAM_WORK]>>>(data, comparators,
                                                                                     log_stride, mirrored);
        TRY_LAUNCH("rung 1, a step of the bitonic network");
        return HSORT_OK;
    });
}

extern "C" hsort_status rung_1_bitonic_global(struct cuda_engine *engine, struct sort_args *args)
{
    const int phases = count_phases(args->count);
    for (int phase = 1; phase <= phases; phase++) {
        for (int log_stride = phase - 1; log_stride >= 0; log_stride--)
            TRY(rung_1_step(engine, args, log_stride, log_stride == phase - 1));
    }
    return HSORT_OK;
}
