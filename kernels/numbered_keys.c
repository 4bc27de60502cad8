#include "kernels/numbered_keys.h"

hsort_status numbered_keys_encode(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                  void *codes, int64_t count)
{
    const struct key_field field = {.from = raw->from,
                                    .stride = (size_t)raw->map.key_bytes,
                                    .bytes = raw->map.key_bytes,
                                    .map = raw->map,
                                    .shift = raw->position_bits};
    return engine->ops->make_codes(engine, key_bytes, codes, count, &field, 1, raw->position_bits,
                                   raw->first);
}

hsort_status numbered_keys_decode(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                  int64_t count, void **sorted)
{
    const void *codes = *sorted;
    if (!wants_positions(raw))
        return HSORT_OK;
    *sorted = raw->positions;
    return engine->ops->split_codes(engine, key_bytes, codes, count, raw->position_bits, raw->positions,
                                    raw->map, NULL);
}
