/* The runs of a tile (tile_runs.cuh): each place must be found in the run that has it, however long runs are. */
#ifndef MSD_RUNS_TRIAL_CUH
#define MSD_RUNS_TRIAL_CUH

#include "tests/kernels/msd_parts.cuh"

enum { TRIED_PLACES = 4096, TRIED_THREADS = 512 };

/* For each bucket that has keys one thread notes its run; then threads find the run of each place [all]. keys [TRIED_PLACES]: how
 * many keys each bucket has. */
static __global__ void __launch_bounds__(TRIED_THREADS)
    tile_runs_kernel(const uint32_t *keys, int all, uint32_t *run_of)
{
    __shared__ struct row_of_runs rows[rows_of_tile(TRIED_PLACES)];
    for (int i = threadIdx.x; i < rows_of_tile(TRIED_PLACES); i += TRIED_THREADS)
        rows[i] = {~0u, ~0u};
    __syncthreads();
    clear_rows<TRIED_THREADS>(rows);
    __syncthreads();
    for (int bucket = threadIdx.x; bucket < TRIED_PLACES; bucket += TRIED_THREADS) {
        uint32_t before = 0;
        for (int other = 0; other < bucket; other++)
            before += run_and_keys(keys[other]);
        if (keys[bucket] > 0)
            note_run(rows, runs_before(before), keys_before(before), keys_before(before) + keys[bucket]);
    }
    __syncthreads();
    for (int place = threadIdx.x; place < all; place += TRIED_THREADS)
        run_of[place] = run_of_place(rows, (uint32_t)place);
}

/* Check runs of `longest` keys at most, with `all` keys together; `empty` of 100 buckets have no keys. */
static void check_tile_runs(int all, int longest, int empty, uint64_t *state)
{
    std::vector<uint32_t> keys(TRIED_PLACES, 0), expected(all), found(all);
    uint32_t run = 0;
    int done = 0;
    for (int bucket = 0; bucket < TRIED_PLACES && done < all; bucket++) {
        if ((int)(check_random(state) % 100) < empty && TRIED_PLACES - bucket > all - done)
            continue;
        const int own = std::min(all - done, 1 + (int)(check_random(state) % longest));
        keys[bucket] = (uint32_t)own;
        std::fill_n(expected.begin() + done, own, run++);
        done += own;
    }
    snprintf(what, sizeof what, "runs of up to %d keys, %d in all, %d of 100 buckets empty", longest, all,
             empty);
    poison(result_there, BUFFER_BYTES);
    to_device(given_there, keys.data(), keys.size() * sizeof keys[0]);
    tile_runs_kernel<<<1, TRIED_THREADS, 0, engine->streams[STREAM_WORK]>>>((const uint32_t *)given_there,
                                                                            all, (uint32_t *)result_there);
    from_device(found.data(), result_there, found.size() * sizeof found[0]);
    for (int place = 0; place < all; place++)
        CHECK(found[place] == expected[place], "%s: place %d is in run %u, not %u", what, place, found[place],
              expected[place]);
    cases++;
}

static void check_all_tile_runs(uint64_t *seed)
{
    device_scope scope(engine);
    const std::vector<int> longest = {1, 2, WARP - 1, WARP, WARP + 1, 3 * WARP, TRIED_PLACES};
    for (int most : longest) {
        for (int empty = 0; empty <= 60; empty += 60) {
            const std::vector<int> counts = {1, WARP, WARP + 1, 1 + (int)(check_random(seed) % TRIED_PLACES),
                                             TRIED_PLACES};
            for (int all : counts)
                check_tile_runs(all, most, empty, seed);
        }
    }
}

#endif
