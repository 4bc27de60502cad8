/* Where the keys of a merge lie: which outputs a tile has, and where a block keeps its keys. Pure functions
 * of numbers, for host and device, so that a test can walk through all of it without a GPU.
 *
 * Memory is read and written by vectors of 16 bytes. A run may begin at any key, so a piece of a run begins
 * anywhere in a vector. It lies in shared memory at the same place in a vector, so whole vectors of global memory
 * are whole vectors there. Only the vectors at the ends are copied key by key. A gap behind each piece holds the
 * largest code.
 *
 *     4-byte keys, a tile of 9, pieces of 5 and 4     - - a a | a a a G | G G - b | b b b G | G      (a gap of 3)
 *                                                         '--- as in memory          '--- as in memory
 *
 * A tile's outputs begin with a whole vector too. So the first tile is shorter by the places in its first vector
 * that lie before the outputs: its lead. */
#ifndef MERGE_PLAN_H
#define MERGE_PLAN_H

#include <stdint.h>

#ifdef __CUDACC__
#define MERGE_PLAN static constexpr __host__ __device__
#else
#define MERGE_PLAN static inline
#endif

enum {
    MERGE_VECTOR_BYTES = 16,
    MERGE_GAP = 32 /* a thread takes fewer keys, so it ends inside the gap even if it takes nothing else */
};

/* Outputs of a tile: `count` from `first` on, kept from place `lead` on. */
struct merge_tile {
    int64_t first;
    int count, lead;
};

/* The output at which tile `number` begins and the tile before ends, held between 0 and `outputs`. `lead`: of
 * tile 0. */
MERGE_PLAN int64_t merge_border(int64_t number, int tile_keys, int lead, int64_t outputs)
{
    const int64_t at = number * tile_keys - lead;
    return at < 0 ? 0 : at < outputs ? at : outputs;
}

MERGE_PLAN struct merge_tile merge_tile_at(int64_t number, int tile_keys, int lead, int64_t outputs)
{
    const int64_t first = merge_border(number, tile_keys, lead, outputs);
    const int64_t end = merge_border(number + 1, tile_keys, lead, outputs);
    const struct merge_tile tile = {first, (int)(end - first), number == 0 ? lead : 0};
    return tile;
}

MERGE_PLAN int64_t merge_tiles(int tile_keys, int lead, int64_t outputs)
{
    return (outputs + lead + tile_keys - 1) / tile_keys;
}

/* How many keys the address lies behind the beginning of its vector. */
MERGE_PLAN int merge_skew(uintptr_t address, int key_bytes)
{
    return (int)(address % MERGE_VECTOR_BYTES) / key_bytes;
}

/* The whole vectors of a piece that begins `skew` keys behind the beginning of a vector: places whole .. tail - 1,
 * counted from that beginning. Before them are skew .. head_end - 1, behind them tail .. end - 1: each less than
 * a vector. */
struct merge_span {
    int head_end, whole, tail, end;
};

MERGE_PLAN struct merge_span merge_span_of(int skew, int count, int vector_keys)
{
    const int end = skew + count, whole = skew > 0 ? vector_keys : 0;
    const int last = end / vector_keys * vector_keys;
    const struct merge_span span = {whole < end ? whole : end, whole, last > whole ? last : whole, end};
    return span;
}

/* A cut of unsorted runs may be anything: make it one that the counts allow. The tile takes `count` outputs
 * up to output `end`, and keys of a from a_first on. */
MERGE_PLAN int64_t merge_hold_cut(int64_t cut, int64_t a_first, int64_t a_count, int64_t b_count, int64_t end,
                                  int count)
{
    const int64_t least = a_first > end - b_count ? a_first : end - b_count;
    const int64_t most = a_first + count < a_count ? a_first + count : a_count;
    cut = cut < most ? cut : most;
    return cut > least ? cut : least;
}

/* Where a piece that comes after `used` places is kept, given its skew: behind the gap of the piece before. */
MERGE_PLAN int merge_next_place(int used, int skew, int vector_keys)
{
    return (used + MERGE_GAP + vector_keys - 1) / vector_keys * vector_keys + skew;
}

/* The most places that a tile in `pieces` pieces takes with its gaps, whatever the skews. */
MERGE_PLAN int merge_room(int tile_keys, int pieces, int vector_keys)
{
    return tile_keys + pieces * (MERGE_GAP + 2 * vector_keys);
}

#endif
