/* How the tiles of a radix pass learn what lies before them while all of them run: kernels/README.md, "A
 * look-back".
 *
 * Source: Merrill, Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016. */
#ifndef LOOK_BACK_CUH
#define LOOK_BACK_CUH

#include <cuda/atomic>
#include <stdint.h>

enum {
    DIGIT_BITS = 8, /* of a radix pass */
    BINS = 1 << DIGIT_BITS,
    COHORT = 16,     /* tiles in a row that are summed up together too */
    LOOK_BACK = 4,   /* tiles, or cohorts, read at a time */
    STATE_SHIFT = 56 /* above a word's count lies its state, or how many tiles it counts */
};

/* What tiles tell later tiles about each bin, in words of 64 bits. A word is all that is communicated, so relaxed order is
 * enough. */
struct look_back_words {
    uint64_t (*tiles)[BINS];   /* [tile] a state and a count */
    uint64_t (*cohorts)[BINS]; /* [cohort] of this pass: how many of its tiles have counted, and their sum; zero before. NULL: none */
};

/* A state names the pass, too. So what an earlier pass left counts as "nothing yet", and the words of tiles need not be cleared
 * in between. */
enum tile_state {
    STATE_OWN, /* count: keys of this bin in this tile */
    STATE_SUM  /* count: keys of this bin in this tile and all before it */
};

static __device__ uint64_t state_word(int pass, enum tile_state state)
{
    return (uint64_t)(2 * pass + state + 1);
}

static __device__ int64_t count_of_word(uint64_t word)
{
    return (int64_t)(word & ((UINT64_C(1) << STATE_SHIFT) - 1));
}

static __device__ cuda::atomic_ref<uint64_t, cuda::thread_scope_device> atomic_word(uint64_t &word)
{
    return cuda::atomic_ref<uint64_t, cuda::thread_scope_device>(word);
}

static __device__ uint64_t observe(uint64_t &word)
{
    return atomic_word(word).load(cuda::memory_order_relaxed);
}

static __device__ void publish_count(uint64_t &word, int pass, enum tile_state state, int64_t count)
{
    atomic_word(word).store(state_word(pass, state) << STATE_SHIFT | (uint64_t)count,
                            cuda::memory_order_relaxed);
}

/* For tests/kernels/test_radix_stall.cu: compiled with TUNING_STALL, some tiles wait that many nanoseconds
 * before they publish `state`, so that others find every mixture of what may be there. */
static __device__ void stall(int64_t tile, enum tile_state state)
{
#ifdef TUNING_STALL
    if (tile % 7 == (state == STATE_OWN ? 3 : 5) || (state == STATE_SUM && tile % 16 > 4))
        __nanosleep(TUNING_STALL);
#else
    (void)tile;
    (void)state;
#endif
}

/* Publish that tile `tile` itself has `own` keys of bin `bin`. */
static __device__ void publish_own(const struct look_back_words &words, int bin, int64_t tile, int pass,
                                   uint32_t own)
{
    stall(tile, STATE_OWN);
    publish_count(words.tiles[tile][bin], pass, STATE_OWN, own);
    if (words.cohorts)
        atomic_word(words.cohorts[tile / COHORT][bin])
            .fetch_add(UINT64_C(1) << STATE_SHIFT | own, cuda::memory_order_relaxed);
}

/* How many keys of bin `bin` all cohorts before `cohort` have. It adds up the cohorts' own words, each once all of its tiles have
 * counted, back to a cohort whose last tile has published a sum. */
static __device__ int64_t count_in_cohorts_before(const struct look_back_words &words, int bin, int64_t cohort,
                                                  int pass)
{
    int64_t before = 0;
    int64_t next = cohort - 1;
    while (next >= 0) {
        uint64_t own[LOOK_BACK], last[LOOK_BACK];
#pragma unroll
        for (int i = 0; i < LOOK_BACK; i++) {
            if (next >= i) {
                own[i] = observe(words.cohorts[next - i][bin]);
                last[i] = observe(words.tiles[(next - i) * COHORT + COHORT - 1][bin]);
            }
        }
#pragma unroll
        for (int i = 0; i < LOOK_BACK; i++) {
            if (next < 0)
                break;
            const bool is_sum = last[i] >> STATE_SHIFT == state_word(pass, STATE_SUM);
            if (!is_sum && own[i] >> STATE_SHIFT != COHORT)
                break;
            before += count_of_word(is_sum ? last[i] : own[i]);
            next = is_sum ? -1 : next - 1;
        }
    }
    return before;
}

/* Return how many keys of bin `bin` all tiles before `tile` have, and publish the sum that includes this tile's `own`, which
 * publish_own() has published before. It waits only for tiles with smaller tickets. These are running, and publish their own counts
 * before they wait themselves, so every wait ends.
 *
 * LOOK_BACK words are read at a time, in the order from near to far, and used as far as they are there. Read one by one, their
 * latencies would add up faster than tiles finish. */
static __device__ int64_t look_back(const struct look_back_words &words, int bin, int64_t tile, int pass,
                                    uint32_t own)
{
    const int64_t first = words.cohorts ? tile / COHORT * COHORT : 0;
    int64_t before = 0;
    int64_t next = tile - 1;
    bool is_known = false;
    while (next >= first) {
        uint64_t window[LOOK_BACK];
#pragma unroll
        for (int i = 0; i < LOOK_BACK; i++)
            window[i] = observe(words.tiles[max(next - i, INT64_C(0))][bin]);
#pragma unroll
        for (int i = 0; i < LOOK_BACK; i++) {
            const uint64_t state = window[i] >> STATE_SHIFT;
            const bool is_sum = state == state_word(pass, STATE_SUM);
            if (next < first || (state != state_word(pass, STATE_OWN) && !is_sum))
                break;
            before += count_of_word(window[i]);
            is_known |= is_sum;
            next = is_sum ? -1 : next - 1;
        }
    }
    if (words.cohorts && !is_known)
        before += count_in_cohorts_before(words, bin, tile / COHORT, pass);
    stall(tile, STATE_SUM);
    publish_count(words.tiles[tile][bin], pass, STATE_SUM, before + own);
    return before;
}

#endif
