/* What becomes of the buckets of a level (level.cuh): the tasks that they become, and the kernels that do these tasks. */
#ifndef BUCKETS_CUH
#define BUCKETS_CUH

#include "kernels/cuda/msd/level.cuh"

/* ---- lists of tasks ------------------------------------------------------------------------------------ */

/* Begin the entry of a left bucket, of whose keys nothing is known yet. */
static __device__ void start_left(uint64_t first, uint64_t count, struct left_bucket *left)
{
    *left = {first, count, {~UINT64_C(0), ~UINT64_C(0)}, {0, 0}, 0};
}

/* List a long bucket as tasks of up to run_keys keys each. */
static __device__ void list_runs(struct rest_task *list, struct rest_task task, uint64_t keys, int run_keys)
{
    for (uint64_t left = keys; left > 0;
         left -= task.count, task.begin += task.count, task.goal += task.count) {
        task.count = (uint32_t)min(left, (uint64_t)run_keys);
        *list++ = task;
    }
}

/* Reserve room at the ends of the lists for the entries of all threads of a block. own: this thread's entries, counted as in
 * level_head::listed. Returns where they begin. Every thread of the block calls it; sums [WARP] in shared memory. */
static __device__ uint64_t append_tasks(uint64_t own, struct level_head *head, uint64_t *sums)
{
    __shared__ uint64_t begin;
    uint64_t all;
    const uint64_t before = block_sum_of_warps(own, sums, &all);
    if (gridDim.x == 1) { // nobody else appends
        if (threadIdx.x == 0)
            head->listed = all;
        return before;
    }
    if (threadIdx.x == 0)
        begin = atomicAdd(&head->listed, (unsigned long long)all);
    __syncthreads();
    return begin + before;
}

/* Find how many keys the buckets of each segment have, and what becomes of them: one block for each segment. Blocks sort up to `most`
 * keys. A bucket that is filled or copied is several tasks if it has more than run_keys keys. */
template <typename USUAL, typename K>
static __global__ void __launch_bounds__(SPLIT_BUCKETS)
    list_buckets_kernel(int most, int run_keys, struct level_tables<K> level)
{
    __shared__ uint64_t sums[3][SPLIT_BUCKETS / WARP];
    const int own = threadIdx.x, number = blockIdx.x * SPLIT_BUCKETS + own;
    const struct split<K> &split = level.splits[blockIdx.x];
    wait_for_kernels_before();
    // all of these are loaded together; nothing of a bucket that does not exist is used
    const struct segment segment = level.segments[blockIdx.x];
    const struct split_head<K> head = split;
    const struct bucket_ends<K> ends = ends_of_bucket(split.splitters, own);
    struct bucket bucket = get_bucket(level.buckets, number);
    const bool exists = own < head.buckets, overflows = level.overflows[blockIdx.x];
    K value;
    const bool is_one = exists && is_one_value(head, own, ends, &value);
    const uint64_t keys = exists ? bucket.cursor - bucket.begin : 0;
    uint64_t all;
    const uint64_t goal = segment.out_first + block_sum_of_warps(keys, sums[0], &all);
    if (overflows)
        bucket.begin = segment.scratch_first + block_sum_of_warps(is_one ? 0 : keys, sums[1], &all);
    if (overflows && exists) // scatter_again_kernel() starts from here
        set_bucket(level.buckets, number, {bucket.begin, bucket.begin, is_one ? 0 : bucket.begin + keys});

    const bool is_usual = !is_one && 0 < keys && keys <= (uint64_t)USUAL::CAPACITY,
               is_giant = !is_one && keys > (uint64_t)most;
    const uint64_t runs = is_one || is_giant ? (keys + run_keys - 1) / run_keys : !is_usual && keys > 0;
    const uint64_t place = append_tasks(runs << 32 | (is_usual ? 1 : 0), level.head, sums[2]);
    struct rest_task *rest = &level.rest[place >> 32];
    if (is_usual) {
        level.usual[(uint32_t)place] = {bucket.begin, goal, (uint32_t)keys,
                                        known_parts<USUAL>(head, own, ends)};
    } else if (is_one) {
        list_runs(rest, {0, goal, 0, REST_FILL, (uint32_t)number}, keys, run_keys);
    } else if (is_giant) {
        const uint32_t left = atomicAdd(level.left_count, 1u);
        list_runs(rest, {bucket.begin, goal, 0, REST_COPY, left}, keys, run_keys);
        if (left < level.left_room)
            start_left(goal, keys, &level.next_left[left]);
    } else if (keys > 0) {
        *rest = {bucket.begin, goal, (uint32_t)keys, REST_SORT, 0};
    }
}

/* ---- usual buckets ------------------------------------------------------------------------------------- */

/* Sort the usual buckets, one block for each. The first block tells the host, which waits for level `number`, how many buckets the levels
 * so far have left.
 *
 * Runs beside rest_kernel(), which is queued before it. This kernel is sent when all blocks of rest_kernel() have waited, so everything
 * queued before both is done. Whoever waits for this kernel waits for both, because its last block ends after rest_kernel(). */
template <typename S, typename K, typename LAST, typename T>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    usual_kernel(const __grid_constant__ LAST coding, const K *scratch, T *out, struct level_tables<K> level,
                 volatile uint64_t *told, uint32_t number)
{
    let_next_be_sent();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *told = (uint64_t)number << 32 | *level.left_count;
    if (blockIdx.x < level.head->usual_count()) {
        const struct bucket_task<K> task = level.usual[blockIdx.x];
        block_sort<S>(coding, scratch + task.begin, out + task.goal, (int)task.count, task.known);
    }
    if (blockIdx.x == gridDim.x - 1)
        wait_for_kernels_before();
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

/* Write `value` to keys [count], 16 bytes at a time. Every thread of the block calls it. */
template <typename K>
static __device__ void fill_keys(K *keys, uint32_t count, K value)
{
    constexpr int PER = sizeof(uint4) / sizeof(K);
    const uint32_t front = min(count, (uint32_t)(-(uintptr_t)keys % sizeof(uint4) / sizeof(K)));
    const uint32_t vectors = (count - front) / PER;
    key_vector<K> vector;
#pragma unroll
    for (int k = 0; k < PER; k++)
        vector.keys[k] = value;
    for (uint32_t i = threadIdx.x; i < vectors; i += blockDim.x)
        ((uint4 *)(keys + front))[i] = vector.whole;
    if (threadIdx.x < front)
        keys[threadIdx.x] = value;
    if (threadIdx.x < count - front - vectors * PER)
        keys[front + vectors * PER + threadIdx.x] = value;
}

template <typename K>
static __device__ void set_words(K key, volatile uint64_t *words)
{
    words[0] = (uint64_t)key;
    words[1] = 0;
    if constexpr (sizeof(K) > sizeof(uint64_t))
        words[1] = (uint64_t)(key >> 64);
}

/* Widen the range of a left bucket. One thread of a block calls it. */
template <typename K>
static __device__ void note_extremes(K low, K high, struct left_bucket *left)
{
    volatile struct left_bucket *v = left;
    while (atomicCAS(&left->lock, 0u, 1u) != 0)
        continue;
    __threadfence();
    const uint64_t lowest[2] = {v->lowest[0], v->lowest[1]}, highest[2] = {v->highest[0], v->highest[1]};
    set_words(smaller_key(low, key_of_words<K>(lowest)), v->lowest);
    set_words(larger_key(high, key_of_words<K>(highest)), v->highest);
    __threadfence();
    atomicExch(&left->lock, 0u);
}

/* Copy keys of a giant as they are, as codes, and widen the range of `left`: another level will sort them. Every thread of a block of
 * WARPS warps calls it. */
template <int WARPS, typename K>
static __device__ void copy_giant(const K *from, K *to, uint32_t count, struct left_bucket *left)
{
    __shared__ K lows[WARPS], highs[WARPS];
    K low = BEHIND_ALL<K>, high = 0;
    for (uint32_t k = threadIdx.x; k < count; k += blockDim.x) {
        const K code = from[k];
        low = smaller_key(low, code);
        high = larger_key(high, code);
        to[k] = code;
    }
    extremes_to_first_warp<WARPS>(low, high, lows, highs);
    if (threadIdx.x == 0 && left)
        note_extremes(low, high, left);
}

/* Put a region that is left, with places from `goal` on, on the list, and tell the host as usual_kernel() does. */
template <typename K>
static __global__ void list_region_kernel(uint64_t goal, uint64_t count, struct level_tables<K> level,
                                          volatile uint64_t *told, uint32_t number)
{
    wait_for_kernels_before();
    const uint32_t left = (*level.left_count)++;
    if (left < level.left_room)
        start_left(goal, count, &level.next_left[left]);
    *told = (uint64_t)number << 32 | *level.left_count;
}

/* Copy the keys of the region that was listed last, which are one piece, to their places, tile by tile. They may lie there already. */
template <typename K>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    leave_region_kernel(const __grid_constant__ struct piece from, int tile, K *to,
                        struct level_tables<K> level)
{
    wait_for_kernels_before();
    const uint32_t left = *level.left_count - 1;
    for (uint32_t i = blockIdx.x; (int64_t)i * tile < from.count; i += gridDim.x) {
        const int64_t first = (int64_t)i * tile;
        copy_giant<MSD_WRITE_THREADS / WARP>(tile_of_piece<K>(from, i, tile, level.extents), to + first,
                                             (uint32_t)min((int64_t)tile, from.count - first),
                                             left < level.left_room ? &level.next_left[left] : NULL);
        __syncthreads(); // before the next one takes the memory
    }
}

/* Do all other tasks, and the usual ones from `first` on. What is known of a usual bucket is not used, because it is for another number
 * of bins. */
template <typename S, typename K, typename LAST, typename T>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    rest_kernel(const __grid_constant__ LAST coding, const K *scratch, T *out, uint32_t first,
                struct level_tables<K> level)
{
    wait_for_kernels_before();
    const uint32_t rest = level.head->rest_count(), usual = level.head->usual_count();
    const uint32_t listed = rest + (usual > first ? usual - first : 0);
    for (uint32_t i = blockIdx.x; i < listed; i += gridDim.x) {
        struct rest_task task;
        if (i < rest) {
            task = level.rest[i];
        } else {
            const struct bucket_task<K> &late = level.usual[first + i - rest];
            task = {late.begin, late.goal, late.count, REST_SORT, 0};
        }
        if (task.kind == REST_SORT) {
            block_sort<S>(coding, scratch + task.begin, out + task.goal, (int)task.count, even_parts<K>());
        } else if (task.kind == REST_FILL) {
            const struct split<K> &split = level.splits[task.number / SPLIT_BUCKETS];
            const int bucket = task.number % SPLIT_BUCKETS;
            K value;
            is_one_value(split, bucket, ends_of_bucket(split.splitters, bucket), &value);
            fill_keys(out + task.goal, task.count, stored_key(coding, value));
        } else if (task.number < level.left_room) {
            copy_giant<S::WARPS>(scratch + task.begin, place_of_waiting(coding, out) + task.goal, task.count,
                                 &level.next_left[task.number]);
        } else { // it is on no list, so nobody comes back for it
            for (uint32_t k = threadIdx.x; k < task.count; k += blockDim.x)
                out[task.goal + k] = stored_key(coding, scratch[task.begin + k]);
        }
        __syncthreads(); // before the next one takes the memory
    }
}

#endif
