/* The plan of rung 5: which steps of the bitonic network a pass over memory takes, and in which rounds. Pure
 * functions of sizes, without CUDA, so that a test can walk through every plan.
 *
 * A step compares keys whose positions differ in bit `stride`; the first step of a phase is mirrored: its
 * partners differ in all lower bits too. A pass holds a tile: the keys whose positions agree in all but
 * tile_bits bits. Any steps in a row fit into one pass while the bits they use, and the few lowest that keep
 * memory accesses long, are no more than that; also across the end of a phase, where strides start again at
 * the top. Inside a pass the same once more: a thread holds the keys that agree in all but register_bits bits
 * of their place in the tile, and takes a round of steps in a row before keys change hands.
 *
 * 16 keys in tiles of 8 (3 bits), 4 keys in a thread (2 bits), runs of 2 keys (bit 0 is always the tile's).
 * m: mirrored step.
 *
 *     phase      1    2       3           4
 *     stride     0m   1m  0   2m  1   0   3m  2   1   0
 *     pass       '-------- 0 ---------'   '- 1 -'  '- 2 -'
 *     its bits            2 1 0           3 2   0   2 1 0      bit 0 in pass 1 and bit 2 in pass 2 only fill up
 *     rounds     '--------'   '---'  '-'  '-----'  '-----'     one more to load or store where runs need it
 *
 * A tile of pass 1 is 4 runs of 2 keys. Its first step is mirrored, and bit 1 is not the tile's. Partners
 * differ in that bit too; so the upper half of a tile, with bit 3 set, has bit 1 the other way round, and in the
 * tile the step is an ordinary mirrored one:
 *
 *     position   0 1 2 3 4 5 6 7 8 9 a b c d e f
 *     tile 0     * *     * *         * *     * *       3m: 0-f 1-e 4-b 5-a    2: 0-4 1-5 a-e b-f
 *     tile 1         * *     * * * *     * *           3m: 2-d 3-c 6-9 7-8    2: 2-6 3-7 8-c 9-d */
#ifndef RUNG_5_PLAN_H
#define RUNG_5_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PACKED_PLACE_BITS = 18, /* at most, of a place in a tile */
    PACKED_ROUNDS = 32,     /* at most, of a pass */
    PACKED_STEPS = PACKED_PLACE_BITS * (PACKED_PLACE_BITS + 1) / 2,
    PACKED_LANE_BITS = 5 /* of a warp's lanes, and of shared memory's banks */
};

/* log2 of the keys of a tile, of a thread, and of those that lie together in memory at least. */
struct packed_shape {
    int tile_bits, register_bits, run_bits;
};

/* A step of the network. Behind the last one, phase is log_count + 1. */
struct packed_step {
    int phase, stride;
};

/* Steps that a thread takes on the keys it holds.
 *
 * The thread's number and the number of a key among the thread's own together are a place in the tile:
 * place_bits says which bit of the place each of their bits is. First come the register_bits of the key's number,
 * then those of the thread's, both from the lowest. */
struct packed_round {
    int8_t
        steps; /* the first compares keys whose numbers differ in the highest bit, the next ones in lower */
    int8_t
        mirrored; /* which of the steps is mirrored: those partners differ in all bits of the key's number, and
                        in all lower bits of the place; -1: none */
    bool whole;   /* instead of steps, phases 1 to register_bits: sorts the thread's keys */
    uint8_t place_bits[PACKED_PLACE_BITS];
};

/* Rounds between a load and a store of each key. A place in the tile has tile_bits bits: the low_bits lowest are
 * the same ones of the position; the others are the position's from high_first on. */
struct packed_pass {
    int8_t low_bits, high_first;
    int8_t mirror; /* in places with this bit set, the lower bits of the position that are not the tile's are
                      the other way round; -1: nowhere */
    int8_t round_count;
    struct packed_round rounds[PACKED_ROUNDS];
};

static inline bool packed_mirrored(struct packed_step step)
{
    return step.stride == step.phase - 1;
}

static inline struct packed_step packed_next(struct packed_step step)
{
    const struct packed_step same_phase = {step.phase, step.stride - 1};
    const struct packed_step next_phase = {step.phase + 1, step.phase};
    return step.stride > 0 ? same_phase : next_phase;
}

static inline int packed_count_bits(uint64_t bits)
{
    int count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

/* The bit of a place that is bit `stride` of the position. */
static inline int packed_place_bit(const struct packed_pass *pass, int stride)
{
    return stride < pass->low_bits ? stride : stride - pass->high_first + pass->low_bits;
}

/* Divide the bits of a place into those in `held`, of the key's number, already in place_bits, and those of the
 * thread's number. The lanes of a warp shall meet different banks: bank = place mod 32, with the digits above added
 * (rung_5_packed.cu), so they take a bit of each remainder mod 5, the lowest that is free. */
static inline void packed_share_out(struct packed_shape shape, uint64_t held, struct packed_round *round)
{
    uint64_t free_bits = ((UINT64_C(1) << shape.tile_bits) - 1) & ~held;
    int next = shape.register_bits;
    for (int lane_bit = 0; lane_bit < PACKED_LANE_BITS; lane_bit++) {
        for (int bit = lane_bit; bit < shape.tile_bits; bit += PACKED_LANE_BITS) {
            if (free_bits >> bit & 1) {
                round->place_bits[next++] = (uint8_t)bit;
                free_bits &= ~(UINT64_C(1) << bit);
                break;
            }
        }
    }
    for (int bit = 0; bit < shape.tile_bits; bit++) {
        if (free_bits >> bit & 1)
            round->place_bits[next++] = (uint8_t)bit;
    }
}

/* A round without steps in which the lanes of a warp have the lowest bits: loads and stores whole runs. */
static inline void packed_move(struct packed_shape shape, struct packed_pass *pass)
{
    struct packed_round *round = &pass->rounds[pass->round_count++];
    uint64_t held = 0;
    round->steps = 0;
    round->mirrored = -1;
    round->whole = false;
    for (int i = 0; i < shape.register_bits; i++) {
        round->place_bits[i] = (uint8_t)(shape.tile_bits - shape.register_bits + i);
        held |= UINT64_C(1) << round->place_bits[i];
    }
    packed_share_out(shape, held, round);
}

/* The first round of the first pass: the lowest bits. */
static inline void packed_whole(struct packed_shape shape, struct packed_pass *pass)
{
    struct packed_round *round = &pass->rounds[pass->round_count++];
    round->steps = 0;
    round->mirrored = -1;
    round->whole = true;
    for (int i = 0; i < shape.register_bits; i++)
        round->place_bits[i] = (uint8_t)i;
    packed_share_out(shape, (UINT64_C(1) << shape.register_bits) - 1, round);
}

/* As many of steps [count] as fit into a round; returns how many. */
static inline int packed_round_of(struct packed_shape shape, const struct packed_step *steps, int count,
                                  struct packed_pass *pass)
{
    struct packed_round *round = &pass->rounds[pass->round_count++];
    uint64_t held = 0;
    int fill = shape.tile_bits;
    int taken = 0;
    round->mirrored = -1;
    round->whole = false;
    for (; taken < count && taken < shape.register_bits; taken++) {
        const int bit = packed_place_bit(pass, steps[taken].stride);
        if (packed_mirrored(steps[taken]))
            round->mirrored = (int8_t)taken;
        round->place_bits[shape.register_bits - 1 - taken] = (uint8_t)bit;
        held |= UINT64_C(1) << bit;
    }
    round->steps = (int8_t)taken;
    for (int i = taken; i < shape.register_bits; i++) {
        do // from the top: then it can move runs. A mirrored step in such a round has the highest bit of all, as
            // it must: its partners differ in the bits that fill up
            fill--;
        while (held >> fill & 1);
        round->place_bits[shape.register_bits - 1 - i] = (uint8_t)fill;
        held |= UINT64_C(1) << fill;
    }
    packed_share_out(shape, held, round);
    return taken;
}

/* Can this round load or store runs: do its threads not hold the lowest bits? */
static inline bool packed_moves_runs(struct packed_shape shape, const struct packed_round *round)
{
    for (int i = 0; i < shape.register_bits; i++) {
        if (round->place_bits[i] < shape.run_bits)
            return false;
    }
    return true;
}

/* Choose the steps of a pass from *next on, and with them the bits of its tile. Returns how many, in steps
 * [PACKED_STEPS]; *next is the one after them. */
static inline int packed_take(struct packed_shape shape, int log_count, struct packed_step *next,
                              struct packed_pass *pass, struct packed_step *steps)
{
    uint64_t used = (UINT64_C(1) << shape.run_bits) - 1;
    int count = 0;
    pass->mirror = -1;
    while (next->phase <= log_count &&
           packed_count_bits(used | UINT64_C(1) << next->stride) <= shape.tile_bits) {
        used |= UINT64_C(1) << next->stride;
        steps[count++] = *next;
        *next = packed_next(*next);
    }
    while (packed_count_bits(used) < shape.tile_bits)
        used |= used + 1; // the lowest bit that is free: longer runs
    pass->low_bits = 0;
    while (used >> pass->low_bits & 1)
        pass->low_bits++;
    pass->high_first = pass->low_bits;
    while (used >> pass->high_first != 0 && !(used >> pass->high_first & 1))
        pass->high_first++;
    for (int i = 0; i < count; i++) {
        if (packed_mirrored(steps[i]))
            pass->mirror = (int8_t)packed_place_bit(pass, steps[i].stride);
    }
    return count;
}

/* The first step, before any pass. The network has log_count phases, no fewer than register_bits. */
static inline struct packed_step packed_begin(void)
{
    const struct packed_step first = {1, 0};
    return first;
}

/* Plan the pass that begins with step *next, and move *next behind it. False if there are no more steps. */
static inline bool packed_plan(struct packed_shape shape, int log_count, struct packed_step *next,
                               struct packed_pass *pass)
{
    struct packed_step steps[PACKED_STEPS];
    const bool first = next->phase == 1;
    if (next->phase > log_count)
        return false;
    const int count = packed_take(shape, log_count, next, pass, steps);
    int done = 0;
    pass->round_count = 0;
    if (first) {
        packed_whole(shape, pass);
        done = shape.register_bits * (shape.register_bits + 1) / 2;
    } else {
        done = packed_round_of(shape, steps, count, pass);
    }
    if (!packed_moves_runs(shape, &pass->rounds[0])) {
        pass->round_count = 0;
        pass->rounds[1] = pass->rounds[0];
        packed_move(shape, pass);
        pass->round_count++;
    }
    while (done < count)
        done += packed_round_of(shape, steps + done, count - done, pass);
    if (!packed_moves_runs(shape, &pass->rounds[pass->round_count - 1]))
        packed_move(shape, pass);
    return true;
}

#endif
