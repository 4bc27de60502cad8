/* Merge up to 16 runs in one pass.
 *
 * Each block makes an equal share of the output, and finds by a search where its share begins in every run.
 * From there on it needs no more searches in memory. The runs are cut into pages. The page that is due is fetched
 * next: the next page of the run whose last fetched key is the smallest, because the fetched keys of that run are
 * used up first (forecasting). When a tile's pages are there, that smallest last key is the pivot: all keys
 * up to it are there too. They are the tile's outputs. Of every run except the pivot's own, a part of one page is
 * left, and is fetched again with the next tile.
 *
 *     pages of 2, tiles of 4 pages
 *     run 0   1 4 | 5 9 | ...         last keys fetched   4 3 6     run 1 is due: 3 is the smallest
 *     run 1   2 3 | 7 8 | ...                             4 8 6     a fourth page: that is all. The pivot is 4
 *     run 2   4 6 | 8 8 | ...
 *     outputs 1 2 3, and the 4 of run 0. The 4 of run 2 is equal, but comes later: it stays
 *     next    7 8 and 4 6 once more, then run 0 is due with 5 9, and then run 2 with 8 8
 *
 * So a tile fetches fewer pages twice than there are runs, whatever the keys, and these pages lie in the L2 cache.
 * Which pages are due is known from their last keys alone. So a warp of its own plans tiles ahead, and the block
 * loads the next tile while it merges one, as in merge.cu. In shared memory the pieces of a tile are merged in
 * pairs:
 *
 *     1 4 | 2 3 | . | .       1 2 3 4 | .       1 2 3 4
 *
 * Equal keys come from the run with the lower number first. (As keys they are the same; the order makes the
 * cuts exact.)
 *
 * Rejected: merging pairs of runs, pass after pass, which reads and writes all keys log2(k) times; searching every
 * tile's cut in all runs, which takes longer than the tile's merge; sorting the tile, which would not use the order
 * that is there.
 *
 * Cost     each key is read once, up to k / MERGE_PAGES of the keys twice, and written once. In shared memory, it
 *          takes log2(k) times what a merge of two runs takes.
 * Source   Knuth, TAOCP vol. 3, 5.4.6 (forecasting); Varman et al., "Merging multiple lists on
 *          hierarchical-memory multiprocessors", 1991 (the search). */
#include "kernels/cuda/engine/block.cuh"
#include "kernels/cuda/merge/merge.cuh"
#include "kernels/cuda/merge/merge_many.h"

enum {
    PLANS = 4 /* tiles that a block knows at a time */
};

template <typename K>
struct many_runs {
    const K *run[MERGE_RUNS_MAX];
    int64_t count[MERGE_RUNS_MAX];
    int k;
    int64_t outputs;
    K *out; // [outputs]
};

/* The pages of a tile: keys from[r] .. to[r] - 1 of run r. All of these up to (pivot, pivot_run) are outputs; in the
 * last tile of the runs, all are. */
template <typename K>
struct tile_plan {
    int64_t from[MERGE_RUNS_MAX], to[MERGE_RUNS_MAX];
    int at[MERGE_RUNS_MAX]; // where they lie in shared memory
    int count;              // outputs, known when the tile is cut
    K pivot;
    int pivot_run;
    bool last;
};

/* A tile's pieces in shared memory. */
struct piece_places {
    int at[MERGE_RUNS_MAX], count[MERGE_RUNS_MAX];
};

template <typename K, int KEYS, int RUNS>
struct many_shared {
    static constexpr int PAGE =
        (MERGE_THREADS - RUNS / 2) * KEYS / MERGE_PAGES; // each pair may leave a thread unfilled
    static constexpr int ROOM = merge_room(MERGE_THREADS * KEYS, RUNS, vector_keys<K>);
    K halves[2][ROOM];
    K page_ends[MERGE_PAGES * RUNS]; // the last keys of each run's next pages
    struct tile_plan<K> plans[PLANS];
    struct piece_places places[2];
    int64_t low[RUNS], high[RUNS]; // of the search; afterwards `low` is the next output of each run
    int samples_in[RUNS], samples_out[RUNS];
};

/* ---- where the share begins ---------------------------------------------------------------------------- */

/* Samples of run r at positions low + step - 1, low + 2 step - 1, ... below high. */
static __device__ int samples_of(int64_t low, int64_t high, int64_t step)
{
    return (int)((high - low) / step);
}

/* One turn of the search: shrink [low, high] of every run around the cut behind the first `rank` keys, by
 * samples of all `left` keys between, a thread for each. At most k times 2 samples' distance is left, or
 * nothing.
 *
 * A sample and each sample before it stand for a step's keys each. In another run, up to a step less one further
 * keys may come behind the last such sample. So a sample is surely among the first `rank` keys if it is there even
 * with the most keys that may come before it, and surely not if it is not there even with the fewest. */
template <typename K, typename S>
static __device__ void block_narrow(const struct many_runs<K> &runs, S *shared, int64_t rank, int64_t left)
{
    const int thread = threadIdx.x, k = runs.k;
    K *samples = shared->halves[0];
    for (int r = 0; r < k; r++)
        rank -= shared->low[r];
    const int64_t step = (left + MERGE_THREADS - 1) / MERGE_THREADS;
    int run = -1, number = 0;
    for (int r = 0, end = 0; r < k; r++) {
        const int begin = end;
        end += samples_of(shared->low[r], shared->high[r], step);
        if (thread >= begin && thread < end) {
            run = r;
            number = thread - begin;
        }
    }
    const K key = run >= 0 ? runs.run[run][shared->low[run] + step * (number + 1) - 1] : 0;
    if (run >= 0)
        samples[thread] = key;
    if (thread < k)
        shared->samples_in[thread] = shared->samples_out[thread] = 0;
    __syncthreads();
    if (run >= 0) {
        int64_t fewest = 0, most = 0; // keys up to this one
        for (int r = 0, begin = 0; r < k; r++) {
            const int count = samples_of(shared->low[r], shared->high[r], step);
            int below = 0, above = count;
            if (r == run)
                below = above = number + 1;
            while (below < above) {
                const int middle = (below + above) / 2;
                const K other = samples[begin + middle];
                const bool before = other < key || (other == key && r < run);
                below = before ? middle + 1 : below;
                above = before ? above : middle;
            }
            fewest += below * step;
            most += r == run ? below * step : min(below * step + step - 1, shared->high[r] - shared->low[r]);
            begin += count;
        }
        if (most <= rank)
            atomicMax(&shared->samples_in[run], number + 1);
        else if (fewest > rank)
            atomicMax(&shared->samples_out[run],
                      samples_of(shared->low[run], shared->high[run], step) - number);
    }
    __syncthreads();
    if (thread < k) {
        const int64_t low = shared->low[thread], high = shared->high[thread];
        const int count = samples_of(low, high, step), out = shared->samples_out[thread];
        shared->low[thread] = low + step * shared->samples_in[thread];
        if (out > 0) // held: runs that are not sorted may contradict themselves
            shared->high[thread] = max(low + step * (count - out + 1) - 1, shared->low[thread]);
    }
    __syncthreads();
}

/* shared->low [RUNS] = keys of each run among the first `rank`. By the whole block. */
template <typename K, typename S>
static __device__ void block_find_cuts(const struct many_runs<K> &runs, S *shared, int64_t rank)
{
    if (threadIdx.x < sizeof shared->low / sizeof *shared->low) {
        shared->low[threadIdx.x] = 0;
        shared->high[threadIdx.x] = runs.count[threadIdx.x];
    }
    __syncthreads();
    for (int64_t before = INT64_MAX;;) {
        int64_t left = 0;
        for (int r = 0; r < runs.k; r++)
            left += shared->high[r] - shared->low[r];
        if (left == 0 || left >= before) // it shrinks with every turn, except for runs that are not sorted
            break;
        before = left;
        block_narrow(runs, shared, rank, left);
    }
}

/* ---- which pages are due ------------------------------------------------------------------------------- */

/* What the planning warp knows, each lane about the run of its number. Page p begins at key first + p * PAGE. */
template <typename K>
struct planner {
    const K *keys;
    int64_t first, count; // where this block begins, where the run ends
    int64_t planned;      // where the pages planned end
    int64_t pages, ends;  // pages planned; pages whose last keys were asked for
    K last;               // the last key planned
    bool carries;         // some keys of the last page may not be outputs of the tile before
};

/* Ask for the last keys of the next MERGE_PAGES pages. They are there after thread_wait_loaded(). */
template <int PAGE, int RUNS, typename K>
static __device__ void lane_ask_ends(struct planner<K> &my, K *page_ends)
{
    const int lane = threadIdx.x % WARP;
    for (; my.ends < my.pages + MERGE_PAGES && my.first + my.ends * PAGE < my.count; my.ends++) {
        const int64_t end = min(my.first + (my.ends + 1) * PAGE, my.count);
        thread_load<sizeof(K)>(page_ends + my.ends % MERGE_PAGES * RUNS + lane, my.keys + end - 1);
    }
}

template <int PAGE, int RUNS, typename K>
static __device__ void lane_plan_page(struct planner<K> &my, const K *page_ends)
{
    my.last = page_ends[my.pages % MERGE_PAGES * RUNS + threadIdx.x % WARP];
    my.pages++;
    my.planned = min(my.first + my.pages * PAGE, my.count);
}

/* Plan a tile, by the planning warp. */
template <int PAGE, int RUNS, typename K>
static __device__ void warp_plan_tile(struct planner<K> &my, const K *page_ends, struct tile_plan<K> *plan)
{
    const int lane = threadIdx.x % WARP;
    const int64_t from = my.carries ? my.first + (my.pages - 1) * PAGE : my.planned;
    // Every run must have a page planned before it is known which run is due.
    const bool begins = my.pages == 0 && my.planned < my.count;
    if (begins)
        lane_plan_page<PAGE, RUNS>(my, page_ends);
    int room = MERGE_PAGES - __popc(__ballot_sync(ALL_LANES, my.carries || begins));
    int due; // among the runs that go on, the one with the smallest last key, or -1
    for (;;) {
        const bool goes_on = my.planned < my.count;
        const K least = warp_min(goes_on ? my.last : (K) ~(K)0);
        due = __ffs(__ballot_sync(ALL_LANES, goes_on && my.last == least)) - 1;
        if (due < 0 || room-- == 0)
            break;
        if (lane == due)
            lane_plan_page<PAGE, RUNS>(my, page_ends);
    }
    const K pivot = of_lane(my.last, max(due, 0));
    my.carries = due >= 0 && my.pages > 0 && (my.last > pivot || (my.last == pivot && lane > due));

    const int skew = lane < RUNS ? merge_skew((uintptr_t)(my.keys + from), sizeof(K)) : 0;
    const int count = (int)(my.planned - from);
    const int places = lane < RUNS ? merge_next_place(skew + count, 0, vector_keys<K>) : 0;
    const int end = warp_sum_through<RUNS>(places);
    if (lane < RUNS) {
        plan->from[lane] = from;
        plan->to[lane] = my.planned;
        plan->at[lane] = end - places + skew;
    }
    if (lane == 0) {
        plan->pivot = pivot;
        plan->pivot_run = due;
        plan->last = due < 0;
    }
}

/* ---- a tile -------------------------------------------------------------------------------------------- */

/* Begin to load a tile's pages; each run is loaded by the same number of threads. */
template <int RUNS, typename K>
static __device__ void block_load_pages(const struct many_runs<K> &runs, const struct tile_plan<K> &plan,
                                        K *keys)
{
    constexpr int THREADS = MERGE_THREADS / RUNS;
    const int r = threadIdx.x / THREADS;
    threads_load_piece<THREADS>(threadIdx.x % THREADS, keys + plan.at[r], runs.run[r] + plan.from[r],
                                (int)(plan.to[r] - plan.from[r]));
}

/* Find which keys of its pages are a tile's outputs, a thread for each run. next_output [RUNS]: where the
 * outputs of the tiles before end. */
template <int RUNS, typename K>
static __device__ void block_cut_tile(const struct tile_plan<K> &plan, const K *keys, int64_t *next_output,
                                      struct piece_places *pieces)
{
    const int r = threadIdx.x;
    if (r >= RUNS)
        return;
    const K *page = keys + plan.at[r];
    const int count = (int)(plan.to[r] - plan.from[r]);
    const int begin = (int)max(next_output[r] - plan.from[r], INT64_C(0)); // runs not sorted: keys are lost
    int low = plan.last ? count : begin, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        const bool before = page[middle] < plan.pivot || (page[middle] == plan.pivot && r <= plan.pivot_run);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    pieces->at[r] = plan.at[r] + begin;
    pieces->count[r] = low - begin;
    next_output[r] = plan.from[r] + low;
}

/* Merge 2 * PAIRS pieces in pairs. A thread merges keys of one pair only, so the last thread of each pair may be
 * left with fewer keys. It goes on with what lies behind the pieces, which is no smaller. Behind that comes a gap,
 * as behind the pieces that came. The last piece of all is put `lead` places further on.
 *
 *     pairs of 5 and 4 keys, threads of 3      a a a | a a G | gap | b b b | b G G | gap */
template <int KEYS, int PAIRS, typename K>
static __device__ void block_merge_pairs(K *keys, const struct piece_places &pieces, struct piece_places *made, int lead)
{
    const int thread = threadIdx.x;
    int pair = -1, diagonal = 0, place = 0;
#pragma unroll
    for (int p = 0, first = 0; p < PAIRS; p++) {
        const int count = pieces.count[2 * p] + pieces.count[2 * p + 1];
        const int threads = (count + KEYS - 1) / KEYS, at = first * KEYS + p * MERGE_GAP + lead;
        if (thread >= first && thread < first + threads) {
            pair = p;
            diagonal = (thread - first) * KEYS;
            place = at + diagonal;
        }
        if (thread == 0) {
            made->at[p] = at;
            made->count[p] = count;
        }
        first += threads;
    }
    K merged[KEYS];
    if (pair >= 0) {
        const K *a = keys + pieces.at[2 * pair], *b = keys + pieces.at[2 * pair + 1];
        const int cut = thread_find_cut(a, pieces.count[2 * pair], b, pieces.count[2 * pair + 1], diagonal);
        thread_merge(a + cut, b + diagonal - cut, merged);
    }
    merging_threads_wait();
    if (pair >= 0) {
#pragma unroll
        for (int i = 0; i < KEYS; i++)
            keys[place + i] = merged[i];
    }
    for (int i = thread; PAIRS > 1 && i < PAIRS * MERGE_GAP; i += MERGE_THREADS) {
        const int p = i / MERGE_GAP, threads = (made->count[p] + KEYS - 1) / KEYS;
        keys[made->at[p] + threads * KEYS + i % MERGE_GAP] = (K) ~(K)0;
    }
    merging_threads_wait();
}

/* Cut, merge and store a tile: its first `wanted` outputs at most, to `out`. By the merging threads. */
template <int KEYS, int RUNS, typename K, typename S>
static __device__ void block_merge_pages(S *shared, struct tile_plan<K> *plan, K *keys, K *out,
                                         int64_t wanted)
{
    const int lead = merge_skew((uintptr_t)out, sizeof(K));
    block_cut_tile<RUNS>(*plan, keys, shared->low, &shared->places[0]);
    merging_threads_wait();
    if constexpr (RUNS == 16)
        block_merge_pairs<KEYS, 8>(keys, shared->places[0], &shared->places[1], 0);
    if constexpr (RUNS >= 8)
        block_merge_pairs<KEYS, 4>(keys, shared->places[RUNS == 16], &shared->places[RUNS != 16], 0);
    block_merge_pairs<KEYS, 2>(keys, shared->places[RUNS == 8], &shared->places[RUNS != 8], 0);
    block_merge_pairs<KEYS, 1>(keys, shared->places[RUNS != 8], &shared->places[RUNS == 8], lead);
    const int count = shared->places[RUNS == 8].count[0];
    if (threadIdx.x == 0)
        plan->count = count;
    block_store_tile<MERGE_THREADS * KEYS>(out, keys, lead, (int)min((int64_t)count, wanted));
}

template <int KEYS, int BLOCKS, int RUNS, typename K>
static __global__ void __launch_bounds__(MERGE_THREADS + WARP, BLOCKS)
    merge_many_kernel(const __grid_constant__ struct many_runs<K> runs)
{
    typedef struct many_shared<K, KEYS, RUNS> S;
    extern __shared__ uint4 many_memory[];
    S *shared = (S *)many_memory;
    const int64_t begin =
        runs.outputs / gridDim.x * blockIdx.x + min((int64_t)blockIdx.x, runs.outputs % gridDim.x);
    const int64_t end = begin + runs.outputs / gridDim.x + (blockIdx.x < runs.outputs % gridDim.x);
    const int thread = threadIdx.x;
    const bool merges = thread < MERGE_THREADS;

    block_find_cuts(runs, shared, begin);

    // The planning warp is a tile ahead of the loads, and the loads are a tile ahead of the merge.
    struct planner<K> my = {
    };
    if (!merges) {
        const int lane = thread % WARP;
        if (lane < RUNS) {
            my.keys = runs.run[lane];
            my.first = my.planned = shared->low[lane];
            my.count = runs.count[lane];
        }
        for (int number = 0; number < 2; number++) {
            lane_ask_ends<S::PAGE, RUNS>(my, shared->page_ends);
            thread_wait_loaded();
            warp_plan_tile<S::PAGE, RUNS>(my, shared->page_ends, &shared->plans[number]);
        }
        lane_ask_ends<S::PAGE, RUNS>(my, shared->page_ends);
    }
    __syncthreads();
    if (merges)
        block_load_pages<RUNS>(runs, shared->plans[0], shared->halves[0]);
    thread_wait_loaded();
    __syncthreads();

    bool last = false;
    int64_t done = begin;
    for (int number = 0; done < end && !last; number++) {
        struct tile_plan<K> *plan = &shared->plans[number % PLANS];
        if (merges) {
            block_load_pages<RUNS>(runs, shared->plans[(number + 1) % PLANS],
                                   shared->halves[(number + 1) % 2]);
            block_merge_pages<KEYS, RUNS>(shared, plan, shared->halves[number % 2], runs.out + done,
                                          end - done);
        } else {
            warp_plan_tile<S::PAGE, RUNS>(my, shared->page_ends, &shared->plans[(number + 2) % PLANS]);
            lane_ask_ends<S::PAGE, RUNS>(my, shared->page_ends);
        }
        thread_wait_loaded();
        __syncthreads();
        done += plan->count;
        last = plan->last;
    }
}

template <int KEYS, int BLOCKS, int RUNS, typename K>
static hsort_status merge_many(struct cuda_engine *engine, const struct many_runs<K> &runs)
{
    typedef struct many_shared<K, KEYS, RUNS> S;
    static_assert(KEYS < MERGE_GAP && MERGE_PAGES > 2 * RUNS && sizeof(S) % MERGE_VECTOR_BYTES == 0,
                  "a tile has room");
    const auto kernel = merge_many_kernel<KEYS, BLOCKS, RUNS, K>;
    const int bytes = (int)sizeof(S);
    const int64_t tiles = divide_up(runs.outputs, S::PAGE * MERGE_PAGES);
    const int64_t blocks = min(tiles, (int64_t)engine->multiprocessors * BLOCKS);
    TRY(cuda_grant_shared(engine, (const void *)kernel, bytes));
    kernel<<<(unsigned)blocks, MERGE_THREADS + WARP, bytes, engine->streams[STREAM_WORK]>>>(runs);
    TRY_LAUNCH("merge of many runs");
    return HSORT_OK;
}

template <int KEYS, int BLOCKS, typename K>
static hsort_status merge_any(struct cuda_engine *engine, const void *const *run, const int64_t *count, int k,
                              K *out)
{
    struct many_runs<K> runs = {
    };
    runs.k = k;
    runs.out = out;
    for (int r = 0; r < MERGE_RUNS_MAX; r++) {
        runs.run[r] = r < k ? (const K *)run[r] : out;
        runs.count[r] = r < k ? count[r] : 0;
        runs.outputs += runs.count[r];
    }
    if (k <= 4)
        return merge_many<KEYS, BLOCKS, 4>(engine, runs);
    return k <= 8 ? merge_many<KEYS, BLOCKS, 8>(engine, runs) : merge_many<KEYS, BLOCKS, 16>(engine, runs);
}

template <typename K>
constexpr int many_keys = by_width<K>(MERGE_MANY_KEYS_4, MERGE_MANY_KEYS_8, MERGE_MANY_KEYS_16);

extern "C" bool keys_merge_many_fits(const struct cuda_engine *engine, int key_bytes)
{
    size_t most = SIZE_MAX;
    with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        most = sizeof(struct many_shared<K, many_keys<K>, MERGE_RUNS_MAX>);
        return HSORT_OK;
    });
    return (size_t)engine->block_bytes >= most;
}

extern "C" hsort_status keys_merge_many(struct cuda_engine *engine, int key_bytes, const void *const *runs,
                                        const int64_t *counts, int k, void *out)
{
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        constexpr int BLOCKS = by_width<K>(MERGE_BLOCKS_4, MERGE_BLOCKS_8, MERGE_BLOCKS_16);
        return merge_any<many_keys<K>, BLOCKS>(engine, runs, counts, k, (K *)out);
    });
}
