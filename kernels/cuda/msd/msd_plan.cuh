/* The plan of rung 8: which buckets there are, how many keys each has, where they begin, and what is to be done with them.
 * Made on the device; the host waits once, for the answer. */
#ifndef MSD_PLAN_CUH
#define MSD_PLAN_CUH

#include "kernels/cuda/msd/count.cuh"
#include "kernels/cuda/msd/leaf.cuh"
#include "kernels/cuda/msd/window.cuh"

/* What becomes of the keys. */
enum msd_verdict {
    MSD_UNKNOWN, /* 0: not yet */
    MSD_SORTED,
    MSD_REVERSED,
    MSD_VALUES, /* a bucket for each value: their numbers say all */
    MSD_SPLIT,  /* into buckets that fit */
    MSD_CROWDED
};

enum { REGION_CURSOR = 16, BUCKET_CURSOR = 4 }; /* words from one to the next */

/* The workspace. What comes before the cursors is 0 at first. */
struct plan {
    struct sample sample;
    struct window window;
    int32_t verdict;
    uint32_t regions_done;
    uint32_t ascents, descents,
        outside; /* some key is followed by a larger one, by a smaller one; is not in the window */
    uint32_t fuller_count, giant_count;
    alignas(8) uint32_t counts[BUCKETS]; /* keys of the buckets */
    uint32_t fullest[REGIONS];           /* keys of a region's fullest bucket that must fit into a leaf */
    uint64_t region_keys[REGIONS];
    /* where the next tile's keys go; apart from each other, as many tiles ask at once */
    uint64_t region_cursors[REGIONS][REGION_CURSOR], bucket_cursors[BUCKETS][BUCKET_CURSOR];
    uint64_t region_begins[REGIONS + 1]; /* first positions */
    uint64_t begins[BUCKETS + 1];
    uint32_t region_tiles[REGIONS + 1]; /* tiles of pass 1 in the regions before */
    uint64_t lower_begins[REGIONS];     /* by the lower digit: elements with a smaller one */
    uint32_t fuller[BUCKETS]; /* the buckets that are too full for a usual leaf, fuller_count of them */
    uint32_t giants[BUCKETS]; /* those of one value that fit no leaf, giant_count of them */
    alignas(256) uint8_t seen[sizeof(uint64_t) << LOG_SAMPLE_MAX]; /* the sample's keys */
};

/* ---- the count ----------------------------------------------------------------------------------------- */

/* Add to a bucket's counter, 16 bits of a word in shared memory. Where values may repeat without end, what the upper half of
 * its range holds is carried over to the counter of all blocks in time: by the thread that passes the middle, and so only
 * once. */
template <map_kind KIND>
struct bucket_counters {
    uint32_t *halves, *counts;

    __device__ void add(uint32_t bucket, uint32_t keys) const
    {
        constexpr uint32_t MIDDLE = 1u << 15;
        const uint32_t above = bucket % 2 * 16;
        if (KIND == MAP_LINEAR) {
            atomicAdd(&halves[bucket / 2], keys << above);
            return;
        }
        const uint32_t before = atomicAdd(&halves[bucket / 2], keys << above) >> above & 0xffff;
        if (before < MIDDLE && before + keys >= MIDDLE) {
            atomicSub(&halves[bucket / 2], MIDDLE << above);
            atomicAdd(&counts[bucket], MIDDLE);
        }
    }
};

/* Count the keys of every bucket, in two halves of a word: 2^16 counters fit into shared memory like that. A counter that
 * runs over takes 2^16 or 2^16 - 1 from their sum, whatever half it is in, and nothing gives that back. So the sum of all
 * counters tells (sum_kernel()). */
template <typename K, map_kind KIND>
static __device__ void count_buckets(const struct coding &coding, const K *__restrict__ keys, int64_t count,
                                     struct plan *plan)
{
    extern __shared__ struct cell cells[]; // [CELLS], and then halves [2^bits / 2]
    uint32_t *halves = (uint32_t *)(cells + CELLS);
    const bucket_map<K, KIND> map = load_map<K, KIND>(plan->window, cells);
    const int words = 1 << (plan->window.bits[0] + plan->window.bits[1]) >> 1;
    struct notice notice = {};
    for (int i = threadIdx.x; i < words; i += MSD_COUNT_THREADS)
        halves[i] = 0;
    __syncthreads();
    count_share(coding, keys, count, map, bucket_counters<KIND>{halves, plan->counts}, &notice);
    __syncthreads();
    notice.ascents = __syncthreads_or(notice.ascents);
    notice.descents = __syncthreads_or(notice.descents);
    notice.outside = __syncthreads_or(notice.outside);
    for (int i = threadIdx.x; i < words; i += MSD_COUNT_THREADS) {
        const uint64_t pair = halves[i]; // two counters side by side are a number of 64 bits
        if (pair != 0)
            atomicAdd((unsigned long long *)&plan->counts[2 * i],
                      (unsigned long long)(pair >> 16 << 32 | (pair & 0xffff)));
    }
    if (threadIdx.x == 0) {
        if (notice.ascents)
            plan->ascents = 1;
        if (notice.descents)
            plan->descents = 1;
        if (notice.outside)
            plan->outside = 1;
    }
}

template <typename K>
static __global__ void __launch_bounds__(MSD_COUNT_THREADS, 1)
    count_kernel(const __grid_constant__ struct coding coding, const K *__restrict__ keys, int64_t count,
                 struct plan *plan)
{
    switch (plan->window.kind) {
    case MAP_LINEAR:
        return count_buckets<K, MAP_LINEAR>(coding, keys, count, plan);
    case MAP_TABLE:
        return count_buckets<K, MAP_TABLE>(coding, keys, count, plan);
    case MAP_FINE:
        if constexpr (sizeof(K) == 8)
            return count_buckets<K, MAP_FINE>(coding, keys, count, plan);
    }
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

/* Has a bucket keys of one value only? */
static __device__ bool is_one_value(const struct plan *plan, uint32_t bucket)
{
    const struct window &window = plan->window;
    if (window.below > 0 || window.right > 0 || (plan->outside && (bucket == 0 || bucket == window.last)))
        return false;
    if (window.kind == MAP_LINEAR)
        return true;
    int cell = 0;
    for (int step = CELLS / 2; step > 0; step /= 2) { // the last one that begins at this bucket or before
        if (window.cells[cell + step].first <= bucket)
            cell += step;
    }
    return is_cut_to_values(window, cell);
}

/* What leaves can take. */
struct leaf_room {
    int most;                  /* keys */
    int usual, usual_of_cells; /* of most leaves, where the map is linear, and where it has cells */
    bool is_stable;            /* and so cannot turn descending keys round */
};

static __device__ enum msd_verdict decide(const struct plan *plan, int64_t count, bool is_all,
                                          uint32_t fullest, const struct leaf_room &room)
{
    if (plan->window.kind == MAP_NONE)
        return MSD_CROWDED;
    if (!plan->descents)
        return MSD_SORTED;
    if (!plan->ascents && !room.is_stable)
        return MSD_REVERSED;
    if (!is_all)
        return MSD_CROWDED;
    if (plan->window.is_each_value && !plan->outside)
        return MSD_VALUES;
    return fullest <= (uint32_t)room.most ? MSD_SPLIT : MSD_CROWDED;
}

/* What the host learns, in one word: wait_for_answer() takes it apart. */
static __device__ int32_t make_answer(const struct plan *plan, uint32_t fullest)
{
    const uint32_t has_giants = *(const volatile uint32_t *)&plan->giant_count > 0;
    return plan->verdict | plan->window.kind << 3 | (plan->window.bits[0] + plan->window.bits[1]) << 5 |
           (int32_t)(has_giants << 10 | fullest << 11);
}

/* Sum the keys of each region, a block for each; the last block to do so finds where the regions begin, and decides. A
 * bucket of one value may have any number of keys, as long as not all wait for its counter. `tile`: keys of a tile. */
static __global__ void __launch_bounds__(REGIONS)
    sum_kernel(int64_t count, struct leaf_room room, int tile, struct plan *plan, volatile int32_t *answer)
{
    __shared__ uint64_t sums[REGIONS / WARP];
    __shared__ uint32_t ticket, maxima[REGIONS / WARP];
    const int in_region = 1 << plan->window.bits[1], own = threadIdx.x;
    const uint32_t bucket = blockIdx.x << plan->window.bits[1] | threadIdx.x;
    const bool exists = own < in_region && bucket <= plan->window.last;
    const uint32_t keys = exists ? plan->counts[bucket] : 0;
    const uint32_t most = (uint32_t)room.most;
    const bool must_fit = keys <= most || keys > count / 8 || !is_one_value(plan, bucket);
    const uint32_t that_must_fit = must_fit ? keys : 0;
    if (!must_fit)
        plan->giants[atomicAdd(&plan->giant_count, 1u)] = bucket;
    const uint64_t before = block_sum_before((uint64_t)keys, sums);
    atomicMax(&plan->fullest[blockIdx.x], warp_max(that_must_fit));
    if (own == REGIONS - 1)
        plan->region_keys[blockIdx.x] = before + keys;
    __threadfence();
    __syncthreads();
    if (own == 0)
        ticket = atomicAdd(&plan->regions_done, 1u);
    __syncthreads();
    if (ticket != REGIONS - 1)
        return;

    const uint64_t of_region = *(volatile uint64_t *)&plan->region_keys[own];
    const uint64_t begin = block_sum_before(of_region, sums);
    plan->region_begins[own] = plan->region_cursors[own][0] = begin;
    if (own == REGIONS - 1)
        plan->region_begins[REGIONS] = begin + of_region;
    const bool is_all = __syncthreads_or(own == REGIONS - 1 && begin + of_region == (uint64_t)count);
    const uint32_t tiles = (uint32_t)((of_region + tile - 1) / tile);
    const uint32_t tiles_before = (uint32_t)block_sum_before((uint64_t)tiles, sums);
    plan->region_tiles[own] = tiles_before;
    if (own == REGIONS - 1)
        plan->region_tiles[REGIONS] = tiles_before + tiles;
    const uint32_t of_warp = warp_max(*(volatile uint32_t *)&plan->fullest[own]);
    if (own % WARP == 0)
        maxima[own / WARP] = of_warp;
    __syncthreads();
    const uint32_t fullest = warp_max(maxima[own % (REGIONS / WARP)]);
    if (own == 0) {
        plan->verdict = decide(plan, count, is_all, fullest, room);
        *answer = make_answer(plan, min(fullest, most));
    }
}

/* Where the buckets begin, a block for each region; and which have more keys than a usual leaf takes. */
static __global__ void __launch_bounds__(REGIONS)
    begins_kernel(int64_t count, struct leaf_room room, struct plan *plan)
{
    __shared__ uint64_t sums[REGIONS / WARP];
    const uint32_t bucket = blockIdx.x << plan->window.bits[1] | threadIdx.x;
    const bool exists = (int)threadIdx.x < 1 << plan->window.bits[1] && bucket <= plan->window.last;
    const uint64_t keys = exists ? plan->counts[bucket] : 0;
    const uint64_t begin = plan->region_begins[blockIdx.x] + block_sum_before(keys, sums);
    if (exists)
        plan->begins[bucket] = plan->bucket_cursors[bucket][0] = begin;
    if (keys > (uint64_t)(plan->window.kind == MAP_LINEAR ? room.usual : room.usual_of_cells))
        plan->fuller[atomicAdd(&plan->fuller_count, 1u)] = bucket;
    if (bucket == 0)
        plan->begins[plan->window.last + 1] = count;
}

/* ---- on the host --------------------------------------------------------------------------------------- */

/* The answer, taken apart. */
struct msd_answer {
    enum msd_verdict verdict;
    enum map_kind kind;
    int bits;        /* of a bucket's number */
    bool has_giants; /* there are buckets of one value that fit no leaf */
    int64_t fullest;
};

/* Logarithm of the keys to look at: enough that a bucket's share shows. */
static int log_sample(int64_t count)
{
    int log = 12;
    while (log < LOG_SAMPLE_MAX && count >> (log + 4) > 1)
        log++;
    return log;
}

/* Queue the kernels that make the plan. tile: keys of a tile of the passes. */
template <typename K>
static hsort_status queue_plan(struct cuda_engine *engine, const struct coding &coding, const K *keys,
                               int64_t count, struct leaf_room room, int tile, struct plan *plan)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const int log_seen = log_sample(count), seen = 1 << log_seen;
    struct window_wish wish = {};
    wish.most_bits = LOG_BUCKETS;
    wish.linear_bits = bucket_bits(count, wish.most_bits);
    wish.table_bits = min(wish.linear_bits + 1, wish.most_bits);
    wish.target = max((float)seen / count * MSD_LEAF_KEYS, 1.0f);
    wish.answer_for_none = MSD_CROWDED;
    wish.with_giants = true;
    wish.limit = (uint32_t)min(2.0f * seen / count * room.most + 8, 60000.0f);
    const int counters = (1 << wish.most_bits) * 2, cells = CELL_BYTES;
    const int64_t vectors =
        divide_up(count * sizeof(K), sizeof(uint4) * MSD_COUNT_THREADS * MSD_COUNT_VECTORS);
    const unsigned blocks = (unsigned)min(vectors, (int64_t)engine->multiprocessors);
    *(volatile int32_t *)&engine->result->verdict = MSD_UNKNOWN;
    TRY_CUDA(cudaMemsetAsync(plan, 0, offsetof(struct plan, region_cursors), stream));
    const int slices = max(counters, CELLS * SLICES * 4);
    TRY_CUDA(cudaFuncSetAttribute(window_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, slices));
    TRY_CUDA(
        cudaFuncSetAttribute(count_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, cells + counters));
    sample_kernel<<<seen / SAMPLE_THREADS, SAMPLE_THREADS, 0, stream>>>(coding, keys, count, log_seen,
                                                                        &plan->sample, (K *)plan->seen);
    const unsigned shares = (unsigned)divide_up(seen, SAMPLE_PER_BLOCK);
    const bool are_floats = coding.encodes && coding.map.fold != 0;
    // Floats of either sign leave a gap. To look for one takes as long as few keys take to be counted
    if (are_floats && count >= MSD_EARLY_COUNT) {
        TRY_CUDA(cudaFuncSetAttribute(gap_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, slices));
        gap_kernel<<<shares, SAMPLE_THREADS, slices, stream>>>((const K *)plan->seen, log_seen,
                                                               wish.most_bits, &plan->sample);
    }
    window_kernel<<<shares, SAMPLE_THREADS, slices, stream>>>(
        (const K *)plan->seen, log_seen, wish, &plan->sample, &plan->window, &engine->result->verdict);
    count_kernel<<<blocks, MSD_COUNT_THREADS, cells + counters, stream>>>(coding, keys, count, plan);
    sum_kernel<<<REGIONS, REGIONS, 0, stream>>>(count, room, tile, plan, &engine->result->verdict);
    begins_kernel<<<REGIONS, REGIONS, 0, stream>>>(count, room, plan);
    TRY_LAUNCH("rung 8, the plan");
    return HSORT_OK;
}

/* Wait for the answer. */
static hsort_status wait_for_answer(struct cuda_engine *engine, struct msd_answer *answer)
{
    const volatile int32_t *word = &engine->result->verdict;
    TRY(wait_for_word(engine->streams[STREAM_WORK], word, MSD_UNKNOWN));
    const uint32_t found = (uint32_t)*word;
    answer->verdict = (enum msd_verdict)(found & 7);
    answer->kind = (enum map_kind)(found >> 3 & 3);
    answer->bits = (int)(found >> 5 & 31);
    answer->has_giants = found >> 10 & 1;
    answer->fullest = found >> 11;
    return HSORT_OK;
}

#endif
