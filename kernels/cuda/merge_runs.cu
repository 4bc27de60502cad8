/* What the exchange `direct` asks of the GPU: many searches in one run, and the merge of many runs. */
#include "cuda_engine.h"
#include "tuning.h"
#include <string.h>

/* ---- search -------------------------------------------------------------------------------------------- */

/* Keys of a run that are less than `code`, or, if or_equal, not greater; at least `low` are. */
template <typename K>
static __device__ int64_t thread_find(const K *keys, int64_t low, int64_t count, uint64_t code, bool or_equal)
{
    int64_t high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const uint64_t key = keys[middle];
        if (key < code || (or_equal && key == code))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A thread per probe. `result` is pinned host memory: probes come from there and counts go there without a
 * copy of their own. */
template <typename K>
static __global__ void __launch_bounds__(SEARCH_THREADS)
    search_kernel(const K *__restrict__ keys, int64_t count, int probe_count, struct cuda_result *result)
{
    const int i = blockIdx.x * SEARCH_THREADS + threadIdx.x;
    if (i >= probe_count)
        return;
    const uint64_t code = result->probes[i];
    const int64_t less = thread_find(keys, 0, count, code, false);
    result->less[i] = less;
    result->not_greater[i] = thread_find(keys, less, count, code, true);
}

extern "C" hsort_status keys_search(struct cuda_engine *engine, int key_bytes, const void *keys,
                                    int64_t count, const uint64_t *probes, int probe_count, int64_t *less,
                                    int64_t *not_greater)
{
    cudaStream_t stream = engine->lanes[LANE_WORK];
    const unsigned blocks = (unsigned)divide_up(probe_count, SEARCH_THREADS);
    memcpy(engine->result->probes, probes, (size_t)probe_count * sizeof *probes);
    if (key_bytes == 4)
        search_kernel<<<blocks, SEARCH_THREADS, 0, stream>>>((const uint32_t *)keys, count, probe_count,
                                                             engine->result);
    else
        search_kernel<<<blocks, SEARCH_THREADS, 0, stream>>>((const uint64_t *)keys, count, probe_count,
                                                             engine->result);
    TRY_LAUNCH("search");
    TRY_CUDA(cudaStreamSynchronize(stream));
    memcpy(less, engine->result->less, (size_t)probe_count * sizeof *less);
    memcpy(not_greater, engine->result->not_greater, (size_t)probe_count * sizeof *not_greater);
    return HSORT_OK;
}

/* ---- merge of runs ------------------------------------------------------------------------------------- */

/* The runs that came, seen as runs of `stride` of them each. */
struct runs_view {
    const int64_t *run_at; /* [k + 1] */
    int64_t k, stride;

    int64_t begin(int64_t run) const
    {
        const int64_t first = run * stride;
        return run_at[first < k ? first : k];
    }
    int64_t count(int64_t run) const
    {
        return begin(run + 1) - begin(run);
    }
};

/* Does any pair of runs hold keys in both? If not, the runs of twice the stride are in order as they lie. */
static bool any_pair(struct runs_view view)
{
    for (int64_t run = 0; run * view.stride < view.k; run += 2) {
        if (view.count(run) > 0 && view.count(run + 1) > 0)
            return true;
    }
    return false;
}

/* Merge the pairs 0 and 1, 2 and 3, ... from `runs` to the same places in `out`. */
static hsort_status merge_pairs(struct cuda_engine *engine, int key_bytes, const char *runs,
                                struct runs_view view, char *out)
{
    for (int64_t run = 0; run * view.stride < view.k; run += 2) {
        const int64_t a_count = view.count(run), b_count = view.count(run + 1);
        const int64_t a_at = view.begin(run) * key_bytes, b_at = view.begin(run + 1) * key_bytes;
        if (a_count > 0 && b_count > 0)
            TRY(keys_merge(engine, key_bytes, runs + a_at, a_count, runs + b_at, b_count, out + a_at));
        else if (a_count + b_count > 0)
            TRY_CUDA(cudaMemcpyAsync(out + a_at, runs + a_at, (size_t)(a_count + b_count) * key_bytes,
                                     cudaMemcpyDefault, engine->lanes[LANE_WORK]));
    }
    return HSORT_OK;
}

/* In pairs, to and fro between the two buffers: log2(k) passes.
 *
 *     runs   1 4 | 2 5 | 3 | 0 6 | 7        stride 1
 *     out    1 2 4 5 | 0 3 6 | 7            stride 2
 *     runs   0 1 2 3 4 5 6 | 7              stride 4
 *     out    0 1 2 3 4 5 6 7
 *
 * Many runs of keys alone could be sorted anew by a rung instead, whose passes do not grow with k; that wants
 * workspace, which a merge is not given. */
extern "C" hsort_status keys_merge_runs(struct cuda_engine *engine, int key_bytes, void *runs,
                                        const int64_t *run_at, int k, void *out, void **merged)
{
    struct runs_view view = {run_at, k, 1};
    *merged = runs;
    for (; view.stride < k; view.stride *= 2) {
        if (!any_pair(view))
            continue;
        TRY(merge_pairs(engine, key_bytes, (const char *)runs, view, (char *)out));
        *merged = out;
        out = runs;
        runs = *merged;
    }
    return HSORT_OK;
}
