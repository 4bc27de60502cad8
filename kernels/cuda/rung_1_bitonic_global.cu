/* Rung 1: bitonic sort in global memory, one step per launch.
 *
 * Idea     Batcher's bitonic network. In phase p runs of 2^p keys become sorted out of pairs of runs of
 *          2^(p-1), in p steps; the comparators of a step touch every key at most once, so a step is one
 *          launch with a thread per comparator and no synchronisation but the end of the launch.
 * Change   The first rung; the sources' "trivial implementation", but in the all-ascending form: the first
 *          step of a phase compares mirrored positions, which turns the second run round where the textbook
 *          sorts it descending. Each comparator then puts the smaller key at the smaller position, so keys of
 *          +infinity behind the end would never move: comparators that reach beyond `count` are left out, and
 *          any count sorts without padding.
 * Picture  n = 8. A column is a launch; o and x are the two ends of a comparator, the smaller key goes to o.
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
 * Cost     log2(n) (log2(n) + 1) / 2 launches (phase 1 has one step, phase 20 twenty); each reads every key
 *          once and writes those that change places. No memory beside the keys.
 * Limit    Bytes. 2^20 keys pass through memory 210 times, although 174 of the 210 steps stay inside tiles of
 *          4096 keys, which one block could hold in shared memory.
 * Source   Batcher, "Sorting networks and their applications", 1968; Peters, Schulz-Hildebrandt,
 *          Luttenberger, "Fast in-place sorting with CUDA based on bitonic sort", sections 3.1 and 3.3
 *          (virtual padding). */
#include "ladder.h"
#include "tuning.h"

/* One step of stride 2^log_stride. Comparator t ends at the t-th position whose bit log_stride is set; it
 * begins at the position with that bit cleared, and with the lower bits turned round too where `mirrored`.
 * Ends ascend with t, so the comparators that exist are the first `comparators`. */
template <typename K>
static __global__ void __launch_bounds__(BITONIC_GLOBAL_THREADS)
    step_kernel(K *keys, int64_t comparators, int log_stride, bool mirrored)
{
    const int64_t t = (int64_t)blockIdx.x * BITONIC_GLOBAL_THREADS + threadIdx.x;
    if (t >= comparators)
        return;
    const int64_t stride = INT64_C(1) << log_stride;
    const int64_t offset = t & (stride - 1);
    const int64_t middle = ((t >> log_stride) << (log_stride + 1)) + stride;
    const int64_t lower = mirrored ? middle - 1 - offset : middle - stride + offset;
    const int64_t upper = middle + offset;
    const K a = keys[lower];
    const K b = keys[upper];
    if (b < a) {
        keys[lower] = b;
        keys[upper] = a;
    }
}

/* Positions below `count` whose bit log_stride is set. */
static int64_t count_comparators(int64_t count, int log_stride)
{
    const int64_t stride = INT64_C(1) << log_stride;
    const int64_t rest = count & (2 * stride - 1);
    return (count >> (log_stride + 1)) * stride + (rest > stride ? rest - stride : 0);
}

template <typename K>
static hsort_status sort_bitonic_global(struct cuda_engine *engine, K *keys, int64_t count)
{
    for (int phase = 1; phase < 64 && INT64_C(1) << (phase - 1) < count; phase++) {
        for (int log_stride = phase - 1; log_stride >= 0; log_stride--) {
            const int64_t comparators = count_comparators(count, log_stride);
            step_kernel<<<(unsigned)divide_up(comparators, BITONIC_GLOBAL_THREADS), BITONIC_GLOBAL_THREADS, 0,
                          engine->lanes[LANE_WORK]>>>(keys, comparators, log_stride, log_stride == phase - 1);
        }
        TRY_LAUNCH("rung 1, a phase of the bitonic network");
    }
    return HSORT_OK;
}

extern "C" hsort_status rung_1_bitonic_global_workspace(struct cuda_engine *, const struct rung_job *,
                                                        size_t *bytes)
{
    *bytes = 0;
    return HSORT_OK;
}

extern "C" hsort_status rung_1_bitonic_global(struct cuda_engine *engine, struct rung_job *job)
{
    return job->key_bytes == 4 ? sort_bitonic_global(engine, (uint32_t *)job->keys, job->count)
                               : sort_bitonic_global(engine, (uint64_t *)job->keys, job->count);
}
