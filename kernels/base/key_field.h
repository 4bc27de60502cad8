/* Keys inside of elements, and the codes of such keys. A leaf: every layer may include it, CUDA code too.
 *
 * A code of 8 or 16 bytes holds the codes of an element's fields, the first one highest, and below them its global
 * position. So no two codes are equal, and any sort of them as bare keys is a stable sort of the elements:
 *
 *     element     fields           code, of bits      87654321 87654321        here 8 + 4 + 4 bits
 *     2 of all    a = 7, b = 1                        00000111 0001 0010
 *     5 of all    a = 7, b = 1                        00000111 0001 0101       the same key: behind the one before it
 */
#ifndef KEY_FIELD_H
#define KEY_FIELD_H

#include <stddef.h>
#include <string.h>
#include "kernels/base/keytype.h"

/* A part of the keys of elements: for element i the bytes at from + i * stride, which need no alignment. */
struct key_field {
    const void *from; /* engine memory */
    size_t stride;
    int bytes;         /* 1 .. 16 */
    bool big_endian;   /* the first byte is the most significant one: byte strings, and numbers stored so */
    struct keymap map; /* for 1, 2, 4 or 8 bytes: keymap_of_kind(). For other fields only `descending` counts */
    int shift;         /* of its code in the element's */
};

/* The number that 1 .. 8 bytes stand for. If the length is a constant, it is one load. */
static inline uint64_t field_word(const unsigned char *from, int bytes, bool big_endian)
{
    uint64_t word = 0;
    switch (bytes) {
    case 4:
        memcpy(&word, from, 4);
        break;
    case 8:
        memcpy(&word, from, 8);
        break;
    default:
        for (int at = 0; at < bytes; at++)
            word |= (uint64_t)from[at] << 8 * at;
        break;
    }
    return big_endian ? __builtin_bswap64(word) >> (64 - 8 * bytes) : word;
}

/* The bits of the field of element i, on the host. A GPU loads them as wide as their place allows (load_field()). */
static inline uint128 field_bits(const struct key_field *field, int64_t i)
{
    const unsigned char *bytes = (const unsigned char *)field->from + (size_t)i * field->stride;
    const int upper = field->bytes - 8; // bytes of the upper word; they come first if the most significant do
    const bool big_endian = field->big_endian;
    if (upper <= 0)
        return field_word(bytes, field->bytes, big_endian);
    return (uint128)field_word(bytes + (big_endian ? 0 : 8), upper, big_endian) << 64 |
           field_word(bytes + (big_endian ? upper : 0), 8, big_endian);
}

/* The code of a field with these bits, shifted to its place. field_code(): that of the field of element i, on the host. */
KEYTYPE_FN uint128 field_code_of_bits(const struct key_field *field, uint128 bits)
{
    const bool mapped = field->map.key_bytes == field->bytes && field->bytes <= (int)sizeof(uint64_t);
    const uint128 all = ~(uint128)0 >> (128 - 8 * field->bytes);
    const uint128 code = mapped                   ? keymap_encode_narrow(field->map, (uint64_t)bits)
                         : field->map.descending ? all ^ bits
                                                  : bits;
    return code << field->shift;
}

static inline uint128 field_code(const struct key_field *field, int64_t i)
{
    return field_code_of_bits(field, field_bits(field, i));
}

#endif
