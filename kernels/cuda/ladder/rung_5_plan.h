/* The plan of rung 5: which steps of the bitonic network a pass over memory takes, and in which rounds. Pure
 * functions of sizes, without CUDA, so that a test can walk through every plan.
 *
 * A step compares keys whose positions differ in bit `stride`. The first step of a phase is mirrored: its
 * partners differ in all lower bits too. A pass holds a tile: the keys whose positions agree in all but
 * tile_bits bits. Steps in a row fit into one pass as long as the bits they use, together with the few lowest
 * bits that keep memory accesses long, are no more than tile_bits. They may go on across the end of a phase,
 * where strides start again at the top. Inside a pass the same is done once more: a thread holds the keys whose
 * places in the tile agree in all but register_bits bits in a row, its window, and takes a round of steps
 * before keys change hands.
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
 * A tile of pass 1 is 4 runs of 2 keys. Its first step is mirrored, and bit 1 is not one of the tile's bits.
 * Partners differ in that bit too. So the upper half of a tile, with bit 3 set, has bit 1 the other way round,
 * and in the tile the step is an ordinary mirrored step:
 *
 *     position   0 1 2 3 4 5 6 7 8 9 a b c d e f
 *     tile 0     * *     * *         * *     * *       3m: 0-f 1-e 4-b 5-a    2: 0-4 1-5 a-e b-f
 *     tile 1         * *     * * * *     * *           3m: 2-d 3-c 6-9 7-8    2: 2-6 3-7 8-c 9-d */
#ifndef RUNG_5_PLAN_H
#define RUNG_5_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PACKED_TILE_BITS = 18, /* at most */
    PACKED_ROUNDS = 64,    /* at most, of a pass */
    PACKED_STEPS = PACKED_TILE_BITS * (PACKED_TILE_BITS + 1) / 2
};

/* log2 of the keys of a tile, of the keys of a thread, and of the least number of keys that lie together in memory, a
 * run. A tile has room for a thread's keys and a run: register_bits + run_bits <= tile_bits. */
struct packed_shape {
    int tile_bits, register_bits, run_bits;
};

/* A step of the network. Behind the last one, phase is log_count + 1. */
struct packed_step {
    int phase, stride;
};

/* Steps that a thread takes on keys that it holds: those whose places differ in bits window .. window +
 * register_bits - 1, which are bits 0 .. register_bits - 1 of a key's number. */
struct packed_round {
    int8_t window;
    /* `steps` steps, of bit `first` of the key's number and the bits below it. Unless they begin with its highest
     * bit, they end with the lowest. */
    int8_t first, steps;
    /* The first step is mirrored. It is then of the highest bit, and partners differ in all lower bits of the
     * place, also in the bits below the window. */
    bool mirrored;
    /* Instead of these steps take phases 1 to register_bits, which sort the thread's keys. */
    bool whole;
};

/* Rounds between a load and a store of each key. A place in the tile has tile_bits bits. Its low_bits lowest bits are
 * the lowest bits of the position; its other bits are the position's bits from high_first on. */
struct packed_pass {
    int8_t tile_bits, low_bits, high_first;
    /* One of its steps is mirrored. In places with the highest bit set, the lower bits of the position that
     * are not the tile's are the other way round. */
    bool has_mirrored;
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

/* Choose the steps of a pass from *next on, and with them the bits of its tile. Write them to steps [PACKED_STEPS],
 * and return how many there are. *next becomes the step after them. */
static inline int packed_take(struct packed_shape shape, int log_count, struct packed_step *next,
                              struct packed_pass *pass, struct packed_step *steps)
{
    uint64_t used = (UINT64_C(1) << shape.run_bits) - 1;
    int count = 0;
    pass->tile_bits = (int8_t)shape.tile_bits;
    pass->has_mirrored = false;
    while (next->phase <= log_count &&
           packed_count_bits(used | UINT64_C(1) << next->stride) <= shape.tile_bits) {
        used |= UINT64_C(1) << next->stride;
        pass->has_mirrored = pass->has_mirrored || packed_mirrored(*next);
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
    return count;
}

/* Can this round load or store runs? It can if its threads do not hold the lowest bits. */
static inline bool packed_moves_runs(struct packed_shape shape, const struct packed_round *round)
{
    return round->window >= shape.run_bits;
}

static inline struct packed_round *packed_add_round(struct packed_pass *pass)
{
    const struct packed_round nothing = {0, 0, 0, false, false};
    struct packed_round *round = &pass->rounds[pass->round_count++];
    *round = nothing;
    return round;
}

/* Add a round without steps that loads or stores runs. */
static inline void packed_move(struct packed_shape shape, struct packed_pass *pass)
{
    packed_add_round(pass)->window = (int8_t)(shape.tile_bits - shape.register_bits);
}

/* Add a round with as many of steps [count] as fit into it, and return how many. The window is as high as it can be,
 * so that the round may load or store. The first round of a pass leaves the bits of a run to the next round. */
static inline int packed_add_steps(struct packed_shape shape, const struct packed_step *steps, int count,
                                   struct packed_pass *pass)
{
    const int highest = shape.tile_bits - shape.register_bits;
    const int top = packed_place_bit(pass, steps[0].stride);
    const int bottom = top < shape.register_bits ? 0 : top - shape.register_bits + 1;
    const int lowest = pass->round_count == 0 && bottom < shape.run_bits ? shape.run_bits : bottom;
    struct packed_round *round = packed_add_round(pass);
    int taken = 1;
    while (taken < count && !packed_mirrored(steps[taken]) &&
           packed_place_bit(pass, steps[taken].stride) >= lowest)
        taken++;
    const int last = packed_place_bit(pass, steps[taken - 1].stride);
    round->mirrored = packed_mirrored(steps[0]);
    round->window = (int8_t)(round->mirrored ? bottom : last < highest ? last : highest);
    round->first = (int8_t)(top - round->window);
    round->steps = (int8_t)taken;
    return taken;
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
    const bool is_first = next->phase == 1;
    if (next->phase > log_count)
        return false;
    const int count = packed_take(shape, log_count, next, pass, steps);
    int done = 0;
    pass->round_count = 0;
    if (is_first || packed_place_bit(pass, steps[0].stride) < shape.run_bits)
        packed_move(shape, pass);
    if (is_first) {
        packed_add_round(pass)->whole = true;
        done = shape.register_bits * (shape.register_bits + 1) / 2;
    }
    while (done < count)
        done += packed_add_steps(shape, steps + done, count - done, pass);
    if (!packed_moves_runs(shape, &pass->rounds[pass->round_count - 1]))
        packed_move(shape, pass);
    return true;
}

#endif
