/* Merge two runs in one pass: merge path.
 *
 * Each key of the merged run ends a step of a path through the grid of all (a, b): right takes the next key
 * of a, down the next of b. Whatever the keys, the path crosses diagonal d at exactly one point, and that
 * point says how many keys of a are among the first d merged ones. So any two diagonals cut out an
 * independent piece of the merge, equal pieces at that: blocks take TILE outputs each, their threads KEYS
 * each.
 *
 *   a = 1 3 5 5, b = 2 3 4 8: a corner's number says how many outputs lie before it
 *
 *        a    1     3     5     5
 *     b    0-----1     .     .     .
 *     2          |
 *          .     2-----3     .     .       tile 0, outputs 0 to 3: 1 2 3 3
 *     3                |
 *          .     .     4     .     .       diagonal 4 is crossed after two keys of a, and so two of b
 *     4                |
 *          .     .     5-----6-----7       tile 1, outputs 4 to 7: merges {5 5} and {4 8}
 *     8                            |
 *          .     .     .     .     8
 *
 * The point on a diagonal is found by binary search: a[i] belongs to the first d outputs iff a[i] <=
 * b[d-1-i], and that is true up to some i and false from there on. Equal keys of `a` come first by the "<=".
 *
 *   in global memory   by a warp, 32 probes at once: 6 dependent loads instead of 28 for 2^28 keys. A
 *                      kernel of its own for all diagonals would need workspace, and a launch more.
 *   in shared memory   by each thread for its own diagonal
 *
 * Cost     every key is read and written once, coalesced; two barriers per tile.
 * Source   Green, McColl, Bader, "GPU merge path: a GPU merging algorithm", 2012. */
#include "cuda_engine.h"
#include "tuning.h"

template <typename K>
__host__ __device__ constexpr int merge_keys()
{
    return sizeof(K) == 4 ? MERGE_KEYS_4 : MERGE_KEYS_8;
}

/* Keys of a among the first `diagonal` merged ones; by a whole warp, the same in each of its lanes. The
 * answer is in [low, high]; each turn cuts [low, high) into 32 pieces and looks at the last key of each. */
template <typename K>
static __device__ int64_t warp_find_cut(const K *a, int64_t a_count, const K *b, int64_t b_count,
                                        int64_t diagonal)
{
    const int lane = threadIdx.x % WARP;
    int64_t low = max(diagonal - b_count, INT64_C(0));
    int64_t high = min(diagonal, a_count);
    while (low < high) {
        const int64_t piece = (high - low + WARP - 1) / WARP;
        const int64_t i = low + piece * (lane + 1) - 1;
        const bool before = i < high && a[i] <= b[diagonal - 1 - i];
        low += piece * __popc(__ballot_sync(ALL_LANES, before));
        high = min(high, low + piece - 1);
    }
    return low;
}

/* The same for one thread, over a tile's keys in shared memory. */
template <typename K>
static __device__ int thread_find_cut(const K *a, int a_count, const K *b, int b_count, int diagonal)
{
    int low = max(diagonal - b_count, 0);
    int high = min(diagonal, a_count);
    while (low < high) {
        const int i = (low + high) / 2;
        if (a[i] <= b[diagonal - 1 - i])
            low = i + 1;
        else
            high = i;
    }
    return low;
}

template <typename K>
static __global__ void __launch_bounds__(MERGE_THREADS, 4)
    merge_kernel(const K *__restrict__ a, int64_t a_count, const K *__restrict__ b, int64_t b_count,
                 K *__restrict__ out)
{
    constexpr int KEYS = merge_keys<K>();
    constexpr int TILE = MERGE_THREADS * KEYS;
    __shared__ K
        tile[TILE + KEYS]; // its keys of a, then those of b, and room to read on; later the merged ones
    __shared__ int64_t cuts[2];

    // 1. where the path enters and leaves this tile
    const int64_t first = (int64_t)blockIdx.x * TILE;
    const int count = (int)min((int64_t)TILE, a_count + b_count - first);
    const int warp = threadIdx.x / WARP;
    if (warp < 2) {
        const int64_t cut = warp_find_cut(a, a_count, b, b_count, warp == 0 ? first : first + count);
        if (threadIdx.x % WARP == 0)
            cuts[warp] = cut;
    }
    __syncthreads();

    // 2. load both pieces
    const int64_t a_first = cuts[0];
    const int64_t b_first = first - a_first;
    // Of unsorted runs the second cut may lie anywhere: held between what is left of this tile, of a and of b.
    const int64_t a_end =
        max(min(cuts[1], min(a_first + count, a_count)), max(a_first, first + count - b_count));
    const int from_a = (int)(a_end - a_first);
    const int from_b = count - from_a;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int at = threadIdx.x + k * MERGE_THREADS;
        if (at < count)
            tile[at] = at < from_a ? a[a_first + at] : b[b_first + at - from_a];
    }
    __syncthreads();

    // 3. each thread merges KEYS outputs into registers; behind the last output it merges what nobody stores
    const int diagonal = min((int)threadIdx.x * KEYS, count);
    int next_a = thread_find_cut(tile, from_a, tile + from_a, from_b, diagonal);
    int next_b = from_a + diagonal - next_a;
    K key_a = tile[next_a];
    K key_b = tile[next_b];
    K merged[KEYS];
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const bool take_a = next_b >= count || (next_a < from_a && key_a <= key_b);
        merged[k] = take_a ? key_a : key_b;
        const K next = tile[take_a ? ++next_a : ++next_b];
        key_a = take_a ? next : key_a;
        key_b = take_a ? key_b : next;
    }
    __syncthreads();

    // 4. through shared memory, so that the stores are coalesced
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (diagonal + k < count)
            tile[diagonal + k] = merged[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const int at = threadIdx.x + k * MERGE_THREADS;
        if (at < count)
            out[first + at] = tile[at];
    }
}

template <typename K>
static hsort_status merge_runs(struct cuda_engine *engine, const K *a, int64_t a_count, const K *b,
                               int64_t b_count, K *out)
{
    const int64_t tiles = divide_up(a_count + b_count, MERGE_THREADS * merge_keys<K>());
    merge_kernel<<<(unsigned)tiles, MERGE_THREADS, 0, engine->lanes[LANE_WORK]>>>(a, a_count, b, b_count,
                                                                                  out);
    TRY_LAUNCH("merge");
    return HSORT_OK;
}

extern "C" hsort_status keys_merge(struct cuda_engine *engine, int key_bytes, const void *a, int64_t a_count,
                                   const void *b, int64_t b_count, void *out)
{
    return key_bytes == 4 ? merge_runs(engine, (const uint32_t *)a, a_count, (const uint32_t *)b, b_count,
                                       (uint32_t *)out)
                          : merge_runs(engine, (const uint64_t *)a, a_count, (const uint64_t *)b, b_count,
                                       (uint64_t *)out);
}
