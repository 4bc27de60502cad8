#include "kernels/cuda/ladder/ladder.h"
#include "kernels/numbered_keys.h"

static hsort_status fail_rung(int rung)
{
#define X(number, name, ...) " " #number " (" #name ")"
    return status_fail(HSORT_ARGUMENT, "the cuda engine has no rung %d; it has" LADDER(X), rung);
#undef X
}

/* Does an existing rung have kernels for keys of this width? */
static hsort_status check_width(int rung, int key_bytes)
{
    return key_bytes <= (int)sizeof(uint64_t) || rung_is_wide(rung)
               ? HSORT_OK
               : status_fail(HSORT_ARGUMENT, "rung %d has no kernels for keys of %d bytes", rung, key_bytes);
}

extern "C" hsort_status ladder_workspace(struct cuda_engine *engine, int rung, const struct sort_args *args,
                                         size_t *bytes)
{
    *bytes = 0;
    switch (rung) {
#define X(number, name, order, kind, ...)                                       \
    case number:                                                                \
        TRY(check_width(number, args->key_bytes));                              \
        if constexpr (RUNG_##kind == RUNG_RADIX)                                \
            if (args->count > 1)                                                \
                return rung_##number##_##name##_workspace(engine, args, bytes); \
        return HSORT_OK;
        LADDER(X)
#undef X
    }
    return fail_rung(rung);
}

extern "C" hsort_status ladder_encode(struct cuda_engine *engine, const struct sort_args *args)
{
    const struct raw_keys *raw = args->raw;
    if (!raw || args->count == 0)
        return HSORT_OK;
    return is_numbered(raw)
               ? numbered_keys_encode(&engine->base, args->key_bytes, raw, args->keys, args->count)
               : keys_map(engine, raw->map, true, args->keys, raw->from, args->count);
}

extern "C" hsort_status ladder_decode(struct cuda_engine *engine, const struct sort_args *args, void **sorted)
{
    const struct raw_keys *raw = args->raw;
    const void *codes = *sorted;
    if (is_numbered(raw))
        return numbered_keys_decode(&engine->base, args->key_bytes, raw, args->count, sorted);
    if (!raw || !raw->decode)
        return HSORT_OK;
    *sorted = args->keys;
    return args->count > 0 ? keys_map(engine, raw->map, false, args->keys, codes, args->count) : HSORT_OK;
}

static hsort_status sort_nothing(struct cuda_engine *, struct sort_args *)
{
    return HSORT_OK;
}

extern "C" hsort_status ladder_sort_codes(struct cuda_engine *engine, struct sort_args *args,
                                          hsort_status (*rung)(struct cuda_engine *, struct sort_args *))
{
    struct sort_args codes = *args;
    codes.raw = NULL;
    TRY(ladder_encode(engine, args));
    TRY(rung(engine, &codes));
    args->sorted_keys = codes.sorted_keys;
    args->sorted_values = codes.sorted_values;
    return ladder_decode(engine, args, &args->sorted_keys);
}

extern "C" hsort_status ladder_sort(struct cuda_engine *engine, int rung, struct sort_args *args)
{
    args->sorted_keys = args->keys;
    args->sorted_values = args->values;
    switch (rung) {
#define X(number, name, order, kind, takes, ...)                                  \
    case number:                                                                  \
        TRY(check_width(number, args->key_bytes));                                \
        if (RUNG_##takes == RUNG_BITS && args->value_bytes == 0 && args->count > 1) \
            return rung_##number##_##name(engine, args);                           \
        return ladder_sort_codes(engine, args, args->count > 1 ? rung_##number##_##name : sort_nothing);
        LADDER(X)
#undef X
    }
    return fail_rung(rung);
}
