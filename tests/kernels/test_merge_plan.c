/* The plan of the CUDA merges, on the CPU: tiles take every output once and begin with whole vectors, pieces are
 * loaded key for key into places that nothing else has, and a cut of unsorted runs stays within what the counts allow. */
#include "tests/support/check.h"
#include "kernels/cuda/merge/merge_plan.h"
#include <string.h>

enum { LONGEST = 200, MOST_PIECES = 16, MOST_PLACES = LONGEST + MOST_PIECES * (MERGE_GAP + 8) };

static void check_tiles(int tile_keys, int vector_keys)
{
    for (int64_t outputs = 1; outputs <= LONGEST; outputs++) {
        for (int lead = 0; lead < vector_keys; lead++) {
            const int64_t tiles = merge_tiles(tile_keys, lead, outputs);
            int64_t next = 0;
            for (int64_t number = 0; number < tiles; number++) {
                const struct merge_tile tile = merge_tile_at(number, tile_keys, lead, outputs);
                CHECK(tile.first == next && tile.count > 0 && tile.lead + tile.count <= tile_keys,
                      "tile %lld of %d keys, %lld outputs, lead %d: %d from %lld on", (long long)number,
                      tile_keys, (long long)outputs, lead, tile.count, (long long)tile.first);
                CHECK((tile.first + lead - tile.lead) % vector_keys == 0,
                      "tile %lld, lead %d: begins in a vector", (long long)number, lead);
                next += tile.count;
            }
            CHECK(next == outputs, "%lld outputs, tiles of %d, lead %d: %lld are in tiles",
                  (long long)outputs, tile_keys, lead, (long long)next);
        }
    }
}

/* Count the keys that the copies of a piece bring: whole vectors, and those at its ends. */
static void check_span(int skew, int count, int vector_keys)
{
    const struct merge_span span = merge_span_of(skew, count, vector_keys);
    int brought[LONGEST + 8] = {0};
    for (int at = span.whole; at < span.tail; at += vector_keys) {
        for (int i = 0; i < vector_keys; i++)
            brought[at + i]++;
    }
    for (int at = skew; at < span.head_end; at++)
        brought[at]++;
    for (int at = span.tail; at < span.end; at++)
        brought[at]++;
    int wrong = 0;
    for (int at = 0; at < LONGEST + 8; at++)
        wrong += brought[at] != (at >= skew && at < skew + count);
    CHECK(wrong == 0 && span.whole % vector_keys == 0 && span.head_end - skew < vector_keys &&
              span.end - span.tail < vector_keys,
          "%d keys %d behind a vector of %d: %d places are wrong", count, skew, vector_keys, wrong);
}

/* Pieces of random lengths, laid as merge_many.cu does, with gaps: no place is taken twice or lies outside the room. */
static void check_places(int pieces, int vector_keys, uint64_t *seed)
{
    char taken[MOST_PLACES] = {0};
    int left = LONGEST, used = 0, tile_keys = 0;
    for (int piece = 0; piece < pieces; piece++) {
        const int skew = (int)(check_random(seed) % (uint64_t)vector_keys);
        const int count = (int)(check_random(seed) % (uint64_t)(left + 1));
        const int at = piece == 0 ? skew : merge_next_place(used, skew, vector_keys);
        CHECK(at % vector_keys == skew, "piece %d: %d places behind a vector instead of %d", piece,
              at % vector_keys, skew);
        for (int i = at; i < at + count + MERGE_GAP && i < MOST_PLACES; i++)
            CHECK(!taken[i]++, "piece %d of %d: place %d is taken", piece, pieces, i);
        used = at + count;
        left -= count;
        tile_keys += count;
    }
    CHECK(used + MERGE_GAP <= merge_room(tile_keys, pieces, vector_keys), "%d pieces of %d keys end at %d",
          pieces, tile_keys, used + MERGE_GAP);
}

/* Whatever a search in unsorted runs has found, the cut must give pieces that are there in both runs, and that make a tile together. */
static void check_hold(uint64_t *seed)
{
    const int64_t a_count = (int64_t)(check_random(seed) % 50), b_count = (int64_t)(check_random(seed) % 50);
    const int64_t first = (int64_t)(check_random(seed) % (uint64_t)(a_count + b_count + 1));
    const int count = (int)(check_random(seed) % (uint64_t)(a_count + b_count - first + 1));
    const int64_t least = first > b_count ? first - b_count : 0, most = first < a_count ? first : a_count;
    const int64_t a_first = least + (int64_t)(check_random(seed) % (uint64_t)(most - least + 1));
    const int64_t found = (int64_t)(check_random(seed) % 120) - 10;
    const int64_t cut = merge_hold_cut(found, a_first, a_count, b_count, first + count, count);
    const int64_t from_a = cut - a_first, from_b = count - from_a, b_first = first - a_first;
    CHECK(from_a >= 0 && from_b >= 0 && cut <= a_count && b_first + from_b <= b_count,
          "%lld and %lld keys, outputs %lld + %d, cut %lld held at %lld", (long long)a_count,
          (long long)b_count, (long long)first, count, (long long)found, (long long)cut);
    const int64_t low = a_first > first + count - b_count ? a_first : first + count - b_count;
    const int64_t high = a_first + count < a_count ? a_first + count : a_count;
    CHECK(found < low || found > high || cut == found, "cut %lld was possible, but held at %lld",
          (long long)found, (long long)cut);
}

int main(void)
{
    uint64_t seed = check_seed();
    printf("HYPERSORT_SEED=%llu\n", (unsigned long long)seed);
    for (int vector_keys = 2; vector_keys <= 4; vector_keys += 2) {
        for (int tile_keys = vector_keys; tile_keys <= 64; tile_keys += vector_keys)
            check_tiles(tile_keys, vector_keys);
        for (int skew = 0; skew < vector_keys; skew++) {
            for (int count = 0; count <= LONGEST; count++)
                check_span(skew, count, vector_keys);
        }
        for (int draw = 0; draw < 5000; draw++)
            check_places(1 + draw % MOST_PIECES, vector_keys, &seed);
    }
    for (int draw = 0; draw < 100000; draw++)
        check_hold(&seed);
    return check_failures > 0;
}
