/* Elements that something travels with, on the host: their codes, and moving them to their places. */
#include <string.h>
#include "kernels/host/host_engine.h"

/* ---- codes --------------------------------------------------------------------------------------------- */

static hsort_status check_codes(int code_bytes, int field_count)
{
    if (code_bytes != 8 && code_bytes != 16)
        return status_fail(HSORT_INTERNAL, "no codes of elements of %d bytes", code_bytes);
    if (field_count < 0 || field_count > ENGINE_FIELDS_MAX)
        return status_fail(HSORT_INTERNAL, "no codes of %d fields", field_count);
    return kernel_passes("codes");
}

static void store_code(int code_bytes, void *codes, int64_t i, uint128 code)
{
    if (code_bytes == 8)
        ((uint64_t *)codes)[i] = (uint64_t)code;
    else
        ((uint128 *)codes)[i] = code;
}

hsort_status host_make_codes(struct engine *engine, int code_bytes, void *codes, int64_t count,
                             const struct key_field *fields, int field_count, int position_bits,
                             int64_t first)
{
    const int threads = host_threads(engine);
    TRY(check_codes(code_bytes, field_count));
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
    for (int64_t i = 0; i < count; i++) {
        uint128 code = position_bits > 0 ? (uint128)(first + i) : 0;
        for (int field = 0; field < field_count; field++)
            code |= field_code(&fields[field], i);
        store_code(code_bytes, codes, i, code);
    }
    return HSORT_OK;
}

static void store_key(struct keymap map, void *keys, int64_t i, uint64_t code)
{
    const uint64_t bits = keymap_decode_narrow(map, code);
    switch (map.key_bytes) {
    case 1:
        ((uint8_t *)keys)[i] = (uint8_t)bits;
        break;
    case 2:
        ((uint16_t *)keys)[i] = (uint16_t)bits;
        break;
    case 4:
        ((uint32_t *)keys)[i] = (uint32_t)bits;
        break;
    default:
        ((uint64_t *)keys)[i] = bits;
        break;
    }
}

hsort_status host_split_codes(struct engine *engine, int code_bytes, const void *codes, int64_t count,
                              int position_bits, int64_t *positions, struct keymap map, void *keys)
{
    const int threads = host_threads(engine);
    TRY(check_codes(code_bytes, 0));
    const uint64_t below = position_bits > 0 ? UINT64_MAX >> (64 - position_bits) : 0;
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
    for (int64_t i = 0; i < count; i++) {
        const uint128 code = key_load(code_bytes, codes, i);
        if (positions)
            positions[i] = (int64_t)((uint64_t)code & below);
        if (keys)
            store_key(map, keys, i, (uint64_t)(code >> position_bits));
    }
    return HSORT_OK;
}

/* ---- elements ------------------------------------------------------------------------------------------ */

static inline void copy_element(char *to, const char *from, size_t bytes)
{
    switch (bytes) { // of a constant length it is a move or two, not a call
    case 0:
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 16:
        memcpy(to, from, 16);
        break;
    default:
        memcpy(to, from, bytes);
        break;
    }
}

hsort_status host_take(struct engine *engine, size_t element_bytes, void *to, const void *from,
                       int64_t from_count, const int64_t *positions, int64_t first, int64_t count,
                       int64_t *outside)
{
    const int threads = host_threads(engine);
    int64_t wrong = 0;
    TRY(kernel_passes("take"));
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT) reduction(+ : wrong)
    for (int64_t i = 0; i < count; i++) {
        const uint64_t at =
            (uint64_t)positions[i] - (uint64_t)first; // one below the first is far beyond the last
        if (at < (uint64_t)from_count)
            copy_element((char *)to + (size_t)i * element_bytes, (const char *)from + at * element_bytes,
                         element_bytes);
        else
            wrong++;
    }
    *outside = wrong;
    return HSORT_OK;
}

hsort_status host_place(struct engine *engine, size_t element_bytes, void *to, int64_t to_count,
                        const void *from, const int64_t *positions, int64_t first, int64_t count,
                        int64_t *outside)
{
    const int threads = host_threads(engine);
    int64_t wrong = 0;
    TRY(kernel_passes("place"));
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT) reduction(+ : wrong)
    for (int64_t i = 0; i < count; i++) {
        const uint64_t at = (uint64_t)positions[i] - (uint64_t)first;
        if (at < (uint64_t)to_count)
            copy_element((char *)to + at * element_bytes, (const char *)from + (size_t)i * element_bytes,
                         element_bytes);
        else
            wrong++;
    }
    *outside = wrong;
    return HSORT_OK;
}
