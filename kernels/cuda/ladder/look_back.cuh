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
    LOOK_BACK = 4,   /* descriptors read at a time */
    STATE_SHIFT = 56 /* a descriptor's state lies above its count */
};

/* What a tile tells later tiles about one bin, in one 64-bit word: a state and a count. The state names the
 * pass too, so what an earlier pass left counts as "nothing yet" and the descriptors need not be cleared in
 * between. The word is all that is communicated, so relaxed order is enough. */
enum tile_state {
    STATE_OWN, /* count: keys of this bin in this tile */
    STATE_SUM  /* count: keys of this bin in this tile and all before it */
};

static __device__ uint64_t state_word(int pass, enum tile_state state)
{
    return (uint64_t)(2 * pass + state + 1);
}

static __device__ void publish_count(uint64_t *descriptor, int pass, enum tile_state state, int64_t count)
{
    cuda::atomic_ref<uint64_t, cuda::thread_scope_device>(*descriptor)
        .store(state_word(pass, state) << STATE_SHIFT | (uint64_t)count, cuda::memory_order_relaxed);
}

static __device__ uint64_t observe(uint64_t *descriptor)
{
    return cuda::atomic_ref<uint64_t, cuda::thread_scope_device>(*descriptor)
        .load(cuda::memory_order_relaxed);
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

/* Keys of bin `bin` in all tiles before `tile`; then publish the sum that includes this tile's `own`, which
 * it has published as STATE_OWN already. Waits only for tiles with smaller tickets: they are running, and
 * publish their own counts before they wait themselves, so every wait ends.
 *
 * LOOK_BACK descriptors are read at a time, in the order from near to far, and used as far as they are there:
 * one by one, the latency of each read would add up faster than tiles finish. */
static __device__ int64_t look_back(uint64_t (*descriptors)[BINS], int bin, int64_t tile, int pass,
                                    uint32_t own)
{
    int64_t before = 0;
    int64_t next = tile - 1;
    while (next >= 0) {
        uint64_t window[LOOK_BACK];
#pragma unroll
        for (int i = 0; i < LOOK_BACK; i++)
            window[i] = observe(&descriptors[max(next - i, INT64_C(0))][bin]);
#pragma unroll
        for (int i = 0; i < LOOK_BACK; i++) {
            const uint64_t state = window[i] >> STATE_SHIFT;
            const bool is_sum = state == state_word(pass, STATE_SUM);
            if (next < 0 || (state != state_word(pass, STATE_OWN) && !is_sum))
                break;
            before += (int64_t)(window[i] & ((UINT64_C(1) << STATE_SHIFT) - 1));
            next = is_sum ? -1 : next - 1;
        }
    }
    stall(tile, STATE_SUM);
    if (tile > 0)
        publish_count(&descriptors[tile][bin], pass, STATE_SUM, before + own);
    return before;
}

#endif
