/* What kernels on elements share: how many blocks they have, and how they load fields of elements, which may lie anywhere. */
#ifndef FIELDS_CUH
#define FIELDS_CUH

#include "kernels/cuda/engine/cuda_engine.h"
#include "kernels/cuda/ladder/tuning.h"

/* How many blocks a kernel has for a number of tiles. Each block takes one tile after the other, so that the number of blocks has a
 * bound. There are at most ENGINE_SEARCH_MAX, because each block has a word for its answer. */
static unsigned element_blocks(const struct cuda_engine *engine, int64_t tiles)
{
    const int64_t most = min((int64_t)engine->multiprocessors * ELEMENT_BLOCKS, (int64_t)ENGINE_SEARCH_MAX);
    return (unsigned)min(tiles, most);
}

/* Fields, passed to a kernel by value. Each is read in words of 1, 2, 4 or 8 bytes, as its alignment allows. */
struct field_list {
    int count;
    struct key_field field[ENGINE_FIELDS_MAX];
    int word[ENGINE_FIELDS_MAX];
};
static_assert(sizeof(struct field_list) <= 3600, "parameters of a kernel");

static __device__ uint64_t load_word(const unsigned char *from, int word)
{
    switch (word) {
    case 1:
        return *from;
    case 2:
        return *(const uint16_t *)from;
    case 4:
        return *(const uint32_t *)from;
    default:
        return *(const uint64_t *)from;
    }
}

static __device__ uint64_t reversed(uint64_t bytes)
{
    const uint32_t upper = __byte_perm((uint32_t)bytes, 0, 0x0123);
    return (uint64_t)upper << 32 | __byte_perm((uint32_t)(bytes >> 32), 0, 0x0123);
}

/* Load what field_bits() returns on the host. */
static __device__ uint128 load_field(const struct key_field &field, int word, int64_t i)
{
    const unsigned char *from = (const unsigned char *)field.from + (size_t)i * field.stride;
    uint64_t lower = 0, upper = 0;
    for (int at = 0; at < field.bytes; at += word) { // no word lies across both halves
        const uint64_t part = load_word(from + at, word) << 8 * (at % 8);
        lower |= at < 8 ? part : 0;
        upper |= at < 8 ? 0 : part;
    }
    return field.big_endian ? ((uint128)reversed(lower) << 64 | reversed(upper)) >> (128 - 8 * field.bytes)
                            : (uint128)upper << 64 | lower;
}

/* The largest power of two up to `most` that divides a number. */
static int unit_of(uint64_t number, int most)
{
    int unit = most;
    while (number % (unsigned)unit != 0)
        unit /= 2;
    return unit;
}

static struct field_list list_fields(const struct key_field *fields, int field_count)
{
    struct field_list list = {};
    list.count = field_count;
    for (int f = 0; f < field_count; f++) {
        list.field[f] = fields[f];
        list.word[f] = unit_of((uintptr_t)fields[f].from | fields[f].stride | (size_t)fields[f].bytes, 8);
    }
    return list;
}

#endif
