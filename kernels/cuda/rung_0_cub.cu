/* Rung 0: the radix sort of CUB, NVIDIA's library, as it comes with the toolkit.
 *
 * Idea     The yardstick: every number of the ladder is measured beside it, every result of the tests
 *          compared with it. Never chosen by itself.
 * Change   None of ours.
 * Cost     Per 8-bit digit one read and one write of each key, constant digits included, after one read that
 *          counts all digits. In the form used here the two buffers of the caller are enough.
 * Source   cub::DeviceRadixSort; Adinets, Merrill, "Onesweep: A faster least significant digit radix sort for
 *          GPUs", 2022. */
#include "ladder.h"
#include <cub/device/device_radix_sort.cuh>

template <typename K>
static hsort_status sort_cub(struct cuda_engine *engine, void *keys, void *scratch, int64_t count,
                             void *workspace, size_t *workspace_bytes, void **sorted)
{
    cub::DoubleBuffer<K> buffers((K *)keys, (K *)scratch);
    TRY_CUDA(cub::DeviceRadixSort::SortKeys(workspace, *workspace_bytes, buffers, count, 0,
                                            (int)sizeof(K) * 8, engine->lanes[LANE_WORK]));
    if (sorted)
        *sorted = buffers.Current();
    return HSORT_OK;
}

extern "C" hsort_status rung_0_cub_workspace(struct cuda_engine *engine, const struct rung_job *job,
                                             size_t *bytes)
{
    return job->key_bytes == 4 ? sort_cub<uint32_t>(engine, NULL, NULL, job->count, NULL, bytes, NULL)
                               : sort_cub<uint64_t>(engine, NULL, NULL, job->count, NULL, bytes, NULL);
}

extern "C" hsort_status rung_0_cub(struct cuda_engine *engine, struct rung_job *job)
{
    size_t bytes;
    TRY(rung_0_cub_workspace(engine, job, &bytes));
    return job->key_bytes == 4 ? sort_cub<uint32_t>(engine, job->keys, job->scratch_keys, job->count,
                                                    job->workspace, &bytes, &job->sorted_keys)
                               : sort_cub<uint64_t>(engine, job->keys, job->scratch_keys, job->count,
                                                    job->workspace, &bytes, &job->sorted_keys);
}
