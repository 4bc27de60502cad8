/* What the exchange `direct` asks of the GPU: many searches in one run, and the merge of many runs. */
#include "kernels/cuda/merge/merge_many.h"
#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/ladder/tuning.h"
#include <string.h>
#include <type_traits>

/* ---- search -------------------------------------------------------------------------------------------- */

/* A code that need not be the code of a key K. */
template <typename K>
using probe = typename std::conditional<sizeof(K) == sizeof(uint128), uint128, uint64_t>::type;

/* How many keys of a run are less than `code`, or, if or_equal, not greater; at least `low` are. */
template <typename K>
static __device__ int64_t thread_find(const K *keys, int64_t low, int64_t count, probe<K> code, bool or_equal)
{
    int64_t high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const probe<K> key = keys[middle];
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
    const key_code wide = result->probes[i];
    const probe<K> code = (probe<K>)wide;
    const int64_t least = code == wide ? 0 : count; // a wider code is beyond all keys
    const int64_t less = thread_find(keys, least, count, code, false);
    result->less[i] = less;
    result->not_greater[i] = thread_find(keys, less, count, code, true);
}

extern "C" hsort_status keys_search(struct engine *base, int key_bytes, const void *keys, int64_t count,
                                    const key_code *probes, int probe_count, int64_t *less,
                                    int64_t *not_greater)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const unsigned blocks = (unsigned)divide_up(probe_count, SEARCH_THREADS);
    device_scope scope(engine);
    TRY(kernel_takes("search", key_bytes));
    if (probe_count == 0)
        return HSORT_OK;
    memcpy(engine->result->probes, probes, (size_t)probe_count * sizeof *probes);
    TRY(with_key_type(key_bytes, [&](auto key) {
        search_kernel<<<blocks, SEARCH_THREADS, 0, stream>>>((const decltype(key) *)keys, count, probe_count,
                                                             engine->result);
        TRY_LAUNCH("search");
        return HSORT_OK;
    }));
    TRY_CUDA(cudaStreamSynchronize(stream));
    memcpy(less, engine->result->less, (size_t)probe_count * sizeof *less);
    memcpy(not_greater, engine->result->not_greater, (size_t)probe_count * sizeof *not_greater);
    return HSORT_OK;
}

/* ---- merge of runs ------------------------------------------------------------------------------------- */

/* The given runs, seen as larger runs that consist of `stride` of them each. `ways` larger runs at a time become one. */
struct runs_view {
    const int64_t *run_offset; /* [k + 1] */
    int64_t k, stride, ways;

    int64_t begin(int64_t run) const
    {
        const int64_t first = run * stride;
        return run_offset[first < k ? first : k];
    }
    int64_t count(int64_t run) const
    {
        return begin(run + 1) - begin(run);
    }
};

/* The runs of the group from run `first` on that hold keys. */
struct runs_group {
    const void *run[MERGE_RUNS_MAX];
    int64_t count[MERGE_RUNS_MAX];
    int k;
};

static struct runs_group group_of(struct runs_view view, int64_t first, int key_bytes, const char *runs)
{
    struct runs_group group = {};
    for (int64_t run = first; run < first + view.ways; run++) {
        if (view.count(run) > 0) {
            group.run[group.k] = runs + view.begin(run) * key_bytes;
            group.count[group.k++] = view.count(run);
        }
    }
    return group;
}

/* Does any group have keys in more than one of its runs? If none does, all groups are in order as they lie. */
static bool any_group(struct runs_view view)
{
    for (int64_t run = 0; run * view.stride < view.k; run += view.ways) {
        if (group_of(view, run, 0, NULL).k > 1)
            return true;
    }
    return false;
}

/* Merge each group from `runs` to the same place in `out`. */
static hsort_status merge_groups(struct cuda_engine *engine, int key_bytes, const char *runs,
                                 struct runs_view view, char *out)
{
    for (int64_t run = 0; run * view.stride < view.k; run += view.ways) {
        const struct runs_group group = group_of(view, run, key_bytes, runs);
        char *to = out + view.begin(run) * key_bytes;
        if (group.k > 2)
            TRY(keys_merge_many(engine, key_bytes, group.run, group.count, group.k, to));
        else if (group.k == 2)
            TRY(keys_merge(engine, key_bytes, group.run[0], group.count[0], group.run[1], group.count[1],
                           to));
        else if (group.k == 1)
            TRY_CUDA(cudaMemcpyAsync(to, group.run[0], (size_t)group.count[0] * key_bytes, cudaMemcpyDefault,
                                     engine->streams[STREAM_WORK]));
    }
    return HSORT_OK;
}

/* Merge in groups of up to 16 runs, or of 2 if a block has too little shared memory for that, back and forth between
 * the two buffers. Up to 16 runs take one pass, up to 256 two. With groups of 2:
 *
 *     runs   1 4 | 2 5 | 3 | 0 6 | 7        stride 1
 *     out    1 2 4 5 | 0 3 6 | 7            stride 2
 *     runs   0 1 2 3 4 5 6 | 7              stride 4
 *     out    0 1 2 3 4 5 6 7
 *
 * Many runs of bare keys could be sorted anew by a rung instead, whose passes do not grow with k. But a rung needs
 * workspace, which a merge is not given. */
extern "C" hsort_status keys_merge_runs(struct engine *base, int key_bytes, void *runs,
                                        const int64_t *run_offset, int k, void *out, void **merged)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    *merged = runs;
    TRY(kernel_takes("merge of runs", key_bytes));
    const int64_t ways = keys_merge_many_fits(engine, key_bytes) ? MERGE_RUNS_MAX : 2;
    struct runs_view view = {run_offset, k, 1, ways};
    for (; view.stride < k; view.stride *= ways) {
        if (!any_group(view))
            continue;
        TRY(merge_groups(engine, key_bytes, (const char *)runs, view, (char *)out));
        *merged = out;
        out = runs;
        runs = *merged;
    }
    return HSORT_OK;
}
