/* Rung 5: where a thread's keys lie, in global and in shared memory, whatever bits the plan gave the thread. */
#ifndef RUNG_5_ADDRESSES_CUH
#define RUNG_5_ADDRESSES_CUH

#include "cuda_engine.h"
#include "rung_5_plan.h"

/* Where a thread's keys lie: key k at `first` plus step[i] for each bit i that is set in k. So moving all keys costs
 * an addition each, whatever the round. */
template <typename I, int LOG_KEYS>
struct addresses {
    I first, step[LOG_KEYS];

    /* visit(k, address) for every key */
    template <typename F>
    __device__ void each(F visit) const
    {
        I at[1 << LOG_KEYS];
#pragma unroll
        for (int k = 0; k < 1 << LOG_KEYS; k++) {
            at[k] = first;
#pragma unroll
            for (int i = LOG_KEYS - 1; i >= 0; i--) {
                if (k >> i & 1)
                    at[k] = at[k & ~(1 << i)] + step[i]; // in the end i is the lowest bit
            }
            visit(k, at[k]);
        }
    }
    __device__ void add_step(int bit, I distance)
    {
#pragma unroll
        for (int i = 0; i < LOG_KEYS; i++)
            step[i] += i == bit ? distance : 0;
    }
};

/* What a part of the thread's number adds to the addresses of its keys. */
template <typename I>
struct part {
    I first;
    I turn; // further where the thread's bits below the mirrored one are turned over
};

/* The addresses of all threads in one round, in shared memory: summing up the bits of its number in every round would
 * take a thread longer than the steps. */
template <typename I, int LOG_KEYS>
struct address_table {
    struct part<I> lanes[WARP], warps[WARP];
    I step[LOG_KEYS];

    /* Fill in entry i of 3 WARP; weight(bit) is the distance that a bit of the place makes. */
    template <typename F>
    __device__ void fill(int i, const struct packed_round &round, int log_tile, F weight)
    {
        const int number = i % WARP;
        const int first_bit = LOG_KEYS + i / WARP * PACKED_LANE_BITS;
        const int below = round.mirrored < 0 ? 0 : round.place_bits[LOG_KEYS - 1 - round.mirrored];
        struct part<I> sum = {
        };
        if (i >= 2 * WARP) {
            if (number < LOG_KEYS)
                step[number] = weight(round.place_bits[number]);
            return;
        }
        for (int b = 0; b < PACKED_LANE_BITS && first_bit + b < log_tile; b++) {
            const int bit = round.place_bits[first_bit + b];
            const I distance = weight(bit);
            const bool set = number >> b & 1;
            sum.first += set ? distance : 0;
            if (bit < below)
                sum.turn += set ? -distance : distance;
        }
        (i < WARP ? lanes : warps)[number] = sum;
    }

    /* Those of this thread. */
    __device__ addresses<I, LOG_KEYS> look_up(const struct packed_round &round) const
    {
        const struct part<I> lane = lanes[threadIdx.x % WARP], warp = warps[threadIdx.x / WARP];
        addresses<I, LOG_KEYS> a;
        a.first = lane.first + warp.first;
#pragma unroll
        for (int i = 0; i < LOG_KEYS; i++)
            a.step[i] = step[i];
        if (round.mirrored >= 0)
            a.add_step(LOG_KEYS - 1 - round.mirrored, lane.turn + warp.turn);
        return a;
    }
};

/* Places in shared memory have gaps, one in 32 and one more in 1024: then a bit moves a place by 2^(bit mod 5) banks,
 * and lanes whose bits have different remainders (packed_share_out()) meet different banks. */
static __host__ __device__ constexpr uint32_t with_gaps(uint32_t place)
{
    return place + place / 32 + place / 1024;
}

#endif
