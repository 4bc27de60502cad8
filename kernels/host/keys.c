#include <string.h>
#include "kernels/host/host_engine.h"

#define KEY_WIDTH_BODY "kernels/host/keys_body.h"
#include "kernels/host/for_any_key_width.h"

void map_keys(int threads, struct keymap map, bool decode, void *to, const void *from, int64_t count)
{
    KEY_CALL_ANY(map.key_bytes, map_each, threads, map, decode, to, from, count);
}

void repeat_key(int key_bytes, key_code key, void *out, int64_t from, int64_t until)
{
    KEY_CALL_ANY(key_bytes, repeat, key, out, from, until);
}

void inspect_keys(int threads, struct keymap map, const void *keys, int64_t count,
                  struct engine_inspection *found)
{
    KEY_CALL_ANY(map.key_bytes, inspect_each, threads, map, keys, count, found);
}
