/* Rung 2: bitonic sort, small strides in shared memory.
 *
 * Idea     A comparator of stride s connects positions inside one aligned tile of 2 s keys. So a block that
 *          holds a tile in shared memory can do all steps with strides below the tile size, one after the
 *          other, with a barrier between them, and go to global memory once at the start and once at the end.
 * Change   Fewer passes over memory than rung 1. The phases up to the tile size together become one launch. In
 *          each later phase, the steps below the tile size become one launch. Larger strides are steps of rung 1.
 * Picture  n = 16, tile 4. The strides of each phase; what stands in brackets is one launch:
 *
 *            phase 1    2      3         4
 *                  [1   2 1]   4 [2 1]   8 4 [2 1]         6 launches instead of 10
 *
 *          A block with 2 threads in the first launch, its tile before and after each step:
 *
 *            stride            1, mirrored     2, mirrored     1
 *            key 0   7    thread 0 |  3    thread 0  |  1    thread 0 |  0
 *            key 1   3             |  7    thread 1 ||  0             |  1
 *            key 2   0    thread 1 |  0             ||  7    thread 1 |  3
 *            key 3   1             |  1              |  3             |  7
 *
 *                              barrier         barrier         barrier
 *
 * Cost     With tiles of 2^t keys and n = 2^k: 1 + (k - t) launches for the tiles, (k - t) (k - t + 1) / 2
 *          for the larger strides. At n = 2^28 and t = 12 that is 17 + 136 instead of 406. Each step in a tile
 *          takes a barrier.
 * Limit    Barriers, and two reads and two writes of shared memory per comparator: a step moves more through
 *          shared memory than it computes. Half of the steps in tiles have strides below 32: their partners
 *          sit in one warp.
 * Source   The form that texts on bitonic sort in CUDA leave to the reader; Peters, Schulz-Hildebrandt,
 *          Luttenberger, "Fast in-place sorting with CUDA based on bitonic sort", section 3.2. */
#include "kernels/cuda/ladder/bitonic.cuh"
#include "kernels/cuda/ladder/tuning.h"

template <typename K, typename V>
__host__ __device__ constexpr int log_tile_size()
{
    return element_bytes<K, V> <= 8 ? BITONIC_SHARED_LOG_TILE_8 : BITONIC_SHARED_LOG_TILE_16;
}

/* Take the steps of phases `first_phase` to `last_phase` that stay inside a tile. Each block has a tile. */
template <int THREADS, typename K, typename V>
static __global__ void __launch_bounds__(THREADS)
    tile_kernel(columns<K, V> data, int64_t count, int first_phase, int last_phase)
{
    constexpr int LOG_TILE = log_tile_size<K, V>();
    constexpr int TILE = 1 << LOG_TILE;
    __shared__ K tile_keys[TILE];
    __shared__ V tile_values[has_value<V> ? TILE : 1];
    const columns<K, V> tile = {tile_keys, tile_values};
    const int64_t first = (int64_t)blockIdx.x * TILE;
    const int valid = (int)min((int64_t)TILE, count - first);

    for (int i = threadIdx.x; i < TILE; i += THREADS)
        tile.store(i, i < valid ? data.load(first + i) : largest<K, V>());

    for (int phase = first_phase; phase <= last_phase; phase++) {
        for (int log_stride = min(phase, LOG_TILE) - 1; log_stride >= 0; log_stride--) {
            __syncthreads();
            for (int t = threadIdx.x; t < TILE / 2; t += THREADS) {
                const comparator<int> at = comparator_at(t, log_stride, log_stride == phase - 1);
                element<K, V> a = tile.load(at.lower);
                element<K, V> b = tile.load(at.upper);
                compare_exchange(a, b);
                tile.store(at.lower, a);
                tile.store(at.upper, b);
            }
        }
    }
    __syncthreads();

    for (int i = threadIdx.x; i < valid; i += THREADS)
        data.store(first + i, tile.load(i));
}

template <int THREADS, typename K, typename V>
static hsort_status sort_bitonic_shared(struct cuda_engine *engine, const struct sort_args *args,
                                        columns<K, V> data)
{
    constexpr int LOG_TILE = log_tile_size<K, V>();
    const int phases = count_phases(args->count);
    const unsigned tiles = (unsigned)divide_up(args->count, 1 << LOG_TILE);
    cudaStream_t stream = engine->streams[STREAM_WORK];

    tile_kernel<THREADS, K, V><<<tiles, THREADS, 0, stream>>>(data, args->count, 1, LOG_TILE);
    for (int phase = LOG_TILE + 1; phase <= phases; phase++) {
        for (int log_stride = phase - 1; log_stride >= LOG_TILE; log_stride--)
            TRY(rung_1_step(engine, args, log_stride, log_stride == phase - 1));
        tile_kernel<THREADS, K, V><<<tiles, THREADS, 0, stream>>>(data, args->count, phase, phase);
    }
    TRY_LAUNCH("rung 2, a tile");
    return HSORT_OK;
}

extern "C" hsort_status rung_2_threads(struct cuda_engine *engine, struct sort_args *args, int threads)
{
    return with_columns(args, [&](auto data) {
        switch (threads) {
        case 256:
            return sort_bitonic_shared<256>(engine, args, data);
        case 512:
            return sort_bitonic_shared<512>(engine, args, data);
        case 1024:
            return sort_bitonic_shared<1024>(engine, args, data);
        }
        return status_fail(HSORT_ARGUMENT, "rung 2 has blocks of 256, 512 or 1024 threads, not %d", threads);
    });
}

extern "C" hsort_status rung_2_bitonic_shared(struct cuda_engine *engine, struct sort_args *args)
{
    return rung_2_threads(engine, args, BITONIC_SHARED_THREADS);
}
