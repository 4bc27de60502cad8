/* Codes of elements on the host: made field by field for a block of them, in loops without a branch for each element.
 *
 *     words       7   3   7       a field of each element as it lies there, then its code
 *     lower       4   5   6       words of the codes, positions first; each field is or'ed to them at its shift
 *     upper       7   3   7
 *     codes      7|4 3|5 7|6      the words of each code put together */
#include <string.h>
#include "kernels/base/lesser.h"
#include "kernels/host/host_engine.h"

enum { CODE_BLOCK = 256 }; // elements whose codes are made together: all stays in the nearest cache

/* Half of a code of 16 bytes. gcc makes vectors of such words, but not of numbers of 16 bytes. */
typedef uint64_t code_word __attribute__((may_alias));

/* ---- a block ------------------------------------------------------------------------------------------- */

static inline void load_words(const struct key_field *field, int64_t begin, int count, const int bytes,
                              const bool big_endian, uint64_t *words)
{
    const unsigned char *from = (const unsigned char *)field->from + (size_t)begin * field->stride;
    for (int i = 0; i < count; i++, from += field->stride)
        words[i] = field_word(from, bytes, big_endian);
}

/* words [count] = the codes of a field of at most 8 bytes, as field_code() makes them, at shift 0. */
static void encode_words(const struct key_field *field, int64_t begin, int count, uint64_t *words)
{
    const struct keymap map = field->map;
    const bool mapped = map.key_bytes == field->bytes;
    if (field->bytes == 8 && field->stride == 8 && !field->big_endian)
        memcpy(words, (const char *)field->from + 8 * begin, (size_t)count * sizeof *words);
    else if (field->bytes == 8 && !field->big_endian)
        load_words(field, begin, count, 8, false, words);
    else if (field->bytes == 4 && !field->big_endian)
        load_words(field, begin, count, 4, false, words);
    else
        load_words(field, begin, count, field->bytes, field->big_endian, words);
    if (mapped && map.fold != 0) {
        for (int i = 0; i < count; i++)
            words[i] = keymap_encode_narrow(map, words[i]);
        return;
    }
    // All other maps flip the same bits in each word: those of the code of 0.
    const uint64_t flip = mapped           ? keymap_encode_narrow(map, 0)
                          : map.descending ? UINT64_MAX >> (64 - 8 * field->bytes)
                                           : 0;
    for (int i = 0; i < count && flip != 0; i++)
        words[i] ^= flip;
}

/* The words of a block of codes; only codes of 16 bytes have upper ones. */
struct code_block {
    uint64_t lower[CODE_BLOCK], upper[CODE_BLOCK];
};

static void add_field(const struct key_field *field, int64_t begin, int count, int code_bytes,
                      struct code_block *block)
{
    uint64_t words[CODE_BLOCK];
    const int shift = field->shift;
    if (field->bytes > (int)sizeof *words) {
        for (int i = 0; i < count; i++) {
            const uint128 code = field_code(field, begin + i);
            block->lower[i] |= (uint64_t)code;
            block->upper[i] |= (uint64_t)(code >> 64);
        }
        return;
    }
    encode_words(field, begin, count, words);
    if (shift >= 64) {
        for (int i = 0; i < count; i++)
            block->upper[i] |= words[i] << (shift - 64);
        return;
    }
    for (int i = 0; i < count; i++)
        block->lower[i] |= words[i] << shift;
    if (code_bytes == 16)
        for (int i = 0; i < count; i++)
            block->upper[i] |= words[i] >> 1 >> (63 - shift); // 0 for a shift of 0
}

/* What make_codes() of engine.h is asked for. */
struct code_source {
    const struct key_field *fields;
    int field_count;
    int position_bits; // 0: none
    int64_t first;     // position of element 0
};

/* codes [count <= CODE_BLOCK] of code_bytes, 8 or 16, = those of elements begin .. begin + count - 1. */
static void make_code_block(const struct code_source *source, int code_bytes, void *codes, int64_t begin,
                            int count)
{
    struct code_block block;
    code_word *to = codes;
    if (source->position_bits > 0)
        for (int i = 0; i < count; i++)
            block.lower[i] = (uint64_t)(source->first + begin) + (uint64_t)i;
    else
        memset(block.lower, 0, (size_t)count * sizeof *block.lower);
    memset(block.upper, 0, (size_t)count * sizeof *block.upper);
    for (int field = 0; field < source->field_count; field++)
        add_field(&source->fields[field], begin, count, code_bytes, &block);
    if (code_bytes == 8) {
        memcpy(codes, block.lower, (size_t)count * sizeof *block.lower);
        return;
    }
    for (int i = 0; i < count; i++) {
        to[2 * i] = block.lower[i];
        to[2 * i + 1] = block.upper[i];
    }
}

/* ---- operations of the engine --------------------------------------------------------------------------- */

hsort_status host_check_codes(int code_bytes, int field_count)
{
    if (code_bytes != 8 && code_bytes != 16)
        return status_fail(HSORT_INTERNAL, "codes of elements cannot have %d bytes", code_bytes);
    if (field_count < 0 || field_count > ENGINE_FIELDS_MAX)
        return status_fail(HSORT_INTERNAL, "codes cannot have %d fields", field_count);
    return kernel_passes("codes");
}

hsort_status host_make_codes(struct engine *engine, int code_bytes, void *codes, int64_t count,
                             const struct key_field *fields, int field_count, int position_bits,
                             int64_t first)
{
    const int threads = host_threads(engine);
    const struct code_source source = {fields, field_count, position_bits, first};
    TRY(host_check_codes(code_bytes, field_count));
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
    for (int64_t begin = 0; begin < count; begin += CODE_BLOCK)
        make_code_block(&source, code_bytes, (char *)codes + begin * code_bytes, begin,
                        (int)lesser(count - begin, CODE_BLOCK));
    return HSORT_OK;
}

hsort_status host_split_codes(struct engine *engine, int code_bytes, const void *codes, int64_t count,
                              int position_bits, int64_t *positions, struct keymap map, void *keys)
{
    const int threads = host_threads(engine);
    TRY(host_check_codes(code_bytes, 0));
    const uint64_t below = position_bits > 0 ? UINT64_MAX >> (64 - position_bits) : 0;
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
    for (int64_t i = 0; i < count; i++) {
        const uint128 code = key_load(code_bytes, codes, i);
        if (positions)
            positions[i] = (int64_t)((uint64_t)code & below);
        if (keys)
            key_store(map.key_bytes, keys, i, keymap_decode_narrow(map, (uint64_t)(code >> position_bits)));
    }
    return HSORT_OK;
}
