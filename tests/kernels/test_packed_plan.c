/* The plans of rung 5, walked through on the CPU: every step of the network comes once and in order, and each pass uses only
 * keys that its tile and its threads hold. Small plans sort all sequences of zeros and ones of up to 12 keys (the
 * 0-1 principle) and longer random ones. Of the plans that a GPU gets, only the bits are checked. */
#include "tests/support/check.h"
#include "kernels/cuda/ladder/rung_5_plan.h"

enum { LONGEST = 300, LONGEST_PROVED = 12, SMALL_PLACES = 1 << 9, MOST_REGISTER_BITS = 4 };

/* Return the position of a place in tile `number`, as the plan's comments define it. */
static int64_t position_of(const struct packed_pass *pass, int64_t number, int64_t place)
{
    const int middle_bits = pass->high_first - pass->low_bits;
    const int high_end = pass->high_first + pass->tile_bits - pass->low_bits;
    const int64_t middle_mask = ((INT64_C(1) << middle_bits) - 1) << pass->low_bits;
    int64_t others = (number << pass->low_bits & middle_mask) | (number >> middle_bits << high_end);
    if (pass->has_mirrored && place >> (pass->tile_bits - 1) & 1)
        others ^= middle_mask;
    return others | (place & ((INT64_C(1) << pass->low_bits) - 1)) |
           place >> pass->low_bits << pass->high_first;
}

/* Return the place of key `key` of thread `thread`: the key's bits are in the window, the thread's around them. */
static int64_t place_of(struct packed_shape shape, const struct packed_round *round, int thread, int key)
{
    const int below = (1 << round->window) - 1;
    const int highest = shape.register_bits - 1;
    int64_t place = (thread & below) | key << round->window | (thread & ~below) << shape.register_bits;
    if (round->mirrored && key >> highest & 1)
        place ^= below;
    return place;
}

static void compare_exchange(uint32_t *tile, const int64_t *places, int lower, int upper)
{
    const uint32_t a = tile[places[lower]], b = tile[places[upper]];
    tile[places[lower]] = a < b ? a : b;
    tile[places[upper]] = a < b ? b : a;
}

/* Take one step of the keys at places [2^register_bits]: compare those whose numbers differ in `flip`, whose highest bit is `bit`. */
static void take_step(uint32_t *tile, const int64_t *places, int keys, int bit, int flip)
{
    for (int key = 0; key < keys; key++) {
        if (!(key >> bit & 1))
            compare_exchange(tile, places, key, key ^ flip);
    }
}

static void take_round(struct packed_shape shape, const struct packed_round *round, uint32_t *tile)
{
    const int keys = 1 << shape.register_bits;
    int64_t places[1 << MOST_REGISTER_BITS];
    for (int thread = 0; thread < 1 << (shape.tile_bits - shape.register_bits); thread++) {
        for (int key = 0; key < keys; key++)
            places[key] = place_of(shape, round, thread, key);
        for (int phase = 1; round->whole && phase <= shape.register_bits; phase++) {
            for (int bit = phase - 1; bit >= 0; bit--)
                take_step(tile, places, keys, bit, bit == phase - 1 ? (2 << bit) - 1 : 1 << bit);
        }
        for (int step = 0; step < round->steps; step++) {
            const int bit = round->first - step;
            take_step(tile, places, keys, bit, step == 0 && round->mirrored ? keys - 1 : 1 << bit);
        }
    }
}

static int phases_of(struct packed_shape shape, int64_t count)
{
    int phases = shape.register_bits;
    while (INT64_C(1) << phases < count)
        phases++;
    return phases;
}

/* Sort keys [count]; the largest key takes the places behind them. */
static void sort(struct packed_shape shape, uint32_t *keys, int64_t count)
{
    const int phases = phases_of(shape, count);
    const int tiles = phases > shape.tile_bits ? 1 << (phases - shape.tile_bits) : 1;
    struct packed_step next = packed_begin();
    struct packed_pass pass;
    uint32_t tile[SMALL_PLACES];
    while (packed_plan(shape, phases, &next, &pass)) {
        for (int number = 0; number < tiles; number++) {
            for (int place = 0; place < 1 << shape.tile_bits; place++) {
                const int64_t position = position_of(&pass, number, place);
                tile[place] = position < count ? keys[position] : UINT32_MAX;
            }
            for (int r = 0; r < pass.round_count; r++)
                take_round(shape, &pass.rounds[r], tile);
            for (int place = 0; place < 1 << shape.tile_bits; place++) {
                const int64_t position = position_of(&pass, number, place);
                if (position < count)
                    keys[position] = tile[place];
            }
        }
    }
}

static bool is_sorted(const uint32_t *keys, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        if (keys[i - 1] > keys[i])
            return false;
    }
    return true;
}

static void prove(struct packed_shape shape)
{
    uint32_t keys[LONGEST_PROVED];
    for (int count = 1; count <= LONGEST_PROVED; count++) {
        for (uint32_t sequence = 0; sequence < 1u << count; sequence++) {
            int ones = 0, sorted_ones = 0;
            for (int i = 0; i < count; i++)
                ones += keys[i] = sequence >> i & 1;
            sort(shape, keys, count);
            for (int i = 0; i < count; i++)
                sorted_ones += keys[i] == 1;
            CHECK(is_sorted(keys, count) && ones == sorted_ones, "tile %d, thread %d, run %d: %d keys, %x",
                  shape.tile_bits, shape.register_bits, shape.run_bits, count, sequence);
        }
    }
}

static void check_random_keys(struct packed_shape shape, uint64_t *seed)
{
    uint32_t keys[LONGEST];
    for (int count = 1; count <= LONGEST; count++) {
        uint32_t sum = 0;
        for (int i = 0; i < count; i++)
            sum += keys[i] = (uint32_t)check_random(seed);
        sort(shape, keys, count);
        for (int i = 0; i < count; i++)
            sum -= keys[i];
        CHECK(is_sorted(keys, count) && sum == 0, "tile %d, thread %d, run %d: %d keys", shape.tile_bits,
              shape.register_bits, shape.run_bits, count);
    }
}

/* Check what the kernel relies on in a round: its window lies in the tile, and its steps are of one of the few kinds that
 * the kernel has code for. */
static void check_round(struct packed_shape shape, const struct packed_round *round, int pass, int number)
{
    const int highest = shape.register_bits - 1;
    const int last = round->first - round->steps + 1;
    CHECK(round->window >= 0 && round->window + shape.register_bits <= shape.tile_bits,
          "pass %d, round %d: window %d", pass, number, round->window);
    CHECK(round->steps == 0 || (round->first <= highest && last >= 0), "pass %d, round %d: steps %d to %d",
          pass, number, round->first, last);
    CHECK(round->steps == 0 || round->first == highest || last == 0, "pass %d, round %d: steps %d to %d",
          pass, number, round->first, last);
    CHECK(!round->mirrored || (round->first == highest && round->steps > 0),
          "pass %d, round %d: a mirrored step, but not of the highest bit", pass, number);
    CHECK(!round->whole || (round->window == 0 && round->steps == 0 && pass == 0), "pass %d, round %d: whole",
          pass, number);
}

/* Check a plan of full size: it takes every step once and in order, the rounds of a pass fit into their table, and the
 * first and the last of them load and store runs. Returns the passes. */
static int check_plan(struct packed_shape shape, int phases)
{
    struct packed_step next = packed_begin();
    struct packed_pass pass;
    int passes = 0, steps = shape.register_bits * (shape.register_bits + 1) / 2;
    for (; packed_plan(shape, phases, &next, &pass); passes++) {
        CHECK(pass.round_count <= PACKED_ROUNDS, "pass %d has %d rounds", passes, pass.round_count);
        CHECK(pass.low_bits >= shape.run_bits && packed_moves_runs(shape, &pass.rounds[0]) &&
                  packed_moves_runs(shape, &pass.rounds[pass.round_count - 1]),
              "pass %d does not move runs", passes);
        for (int r = 0; r < pass.round_count; r++) {
            check_round(shape, &pass.rounds[r], passes, r);
            steps += pass.rounds[r].steps;
        }
    }
    CHECK(steps == phases * (phases + 1) / 2, "%d phases have %d steps", phases, steps);
    CHECK(next.phase == phases + 1, "%d phases planned, not %d", next.phase - 1, phases);
    return passes;
}

int main(void)
{
    static const struct packed_shape small[] = {{3, 2, 1}, {3, 1, 1}, {3, 2, 0}, {4, 1, 1}, {4, 2, 2},
                                                {5, 3, 2}, {6, 2, 1}, {7, 3, 3}, {9, 4, 2}};
    static const struct packed_shape large[] = {{15, 6, 4}, {14, 6, 4}, {13, 6, 4}, {14, 5, 3}, {13, 5, 4},
                                                {13, 5, 3}, {12, 5, 3}, {14, 4, 3}, {12, 4, 4}, {11, 4, 3}};
    uint64_t seed = check_seed();
    printf("HYPERSORT_SEED=%llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        prove(small[i]);
        check_random_keys(small[i], &seed);
    }
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        for (int phases = large[i].register_bits; phases <= 36; phases++)
            check_plan(large[i], phases);
    }
    const struct packed_shape of_4_bytes = {14, 6, 4};
    CHECK(check_plan(of_4_bytes, 28) == 26, "%d passes", check_plan(of_4_bytes, 28));
    return check_failures > 0;
}
