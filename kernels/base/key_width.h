/* Calls for a key width that is known only at run time. A leaf.
 *
 * KEY_WIDTH_LIST (keytype.h) is the only list of widths. Functions that exist once for each width are called by
 * KEY_CALL() and KEY_RETURN(): if one is missing for a width of the list, the call does not compile. A width that
 * is not in the list is an error of key_width_check(), which both engines call before they do anything else. So
 * nothing behind this check meets such a width, and code without a case for it does nothing.
 *
 * Functions that only look at keys where they lie take the widths of KEY_COUNTED_LIST, too: they are called by
 * KEY_CALL_ANY(), and any_width_check() is their check. */
#ifndef KEY_WIDTH_H
#define KEY_WIDTH_H

#include <string.h>
#include "kernels/base/keytype.h"
#include "kernels/base/status.h"

/* Errors HSORT_INTERNAL, if there are no kernels for keys of `key_bytes`. */
static inline hsort_status key_width_check(int key_bytes)
{
    return KEY_WIDTH_KNOWN(key_bytes)
               ? HSORT_OK
               : status_fail(HSORT_INTERNAL, "no kernels for keys of %d bytes", key_bytes);
}

/* The same, but keys that are counted pass, too, and so the keys of every type. */
static inline hsort_status any_width_check(int key_bytes)
{
    return KEY_IS_COUNTED(key_bytes) ? HSORT_OK : key_width_check(key_bytes);
}

/* Are keys of this width counted? Errors HSORT_INTERNAL. */
static inline hsort_status counted_width_check(int key_bytes)
{
    return KEY_IS_COUNTED(key_bytes) ? HSORT_OK
                                     : status_fail(HSORT_INTERNAL, "keys of %d bytes are not counted", key_bytes);
}

#define KEY_CALL_CASE(bytes, suffix, type, function, arguments) \
    case bytes:                                                 \
        function##_##suffix arguments;                          \
        break;
#define KEY_RETURN_CASE(bytes, suffix, type, function, arguments) \
    case bytes:                                                   \
        return function##_##suffix arguments;

/* Call function_u32(...), function_u64(...) or function_u128(...), whichever is for keys of `key_bytes`. */
#define KEY_CALL(key_bytes, function, ...)                         \
    do {                                                           \
        switch (key_bytes) {                                       \
            KEY_WIDTH_LIST(KEY_CALL_CASE, function, (__VA_ARGS__)) \
        }                                                          \
    } while (0)

/* The same, or function_u8(...), function_u16(...). */
#define KEY_CALL_ANY(key_bytes, function, ...)                       \
    do {                                                             \
        switch (key_bytes) {                                         \
            KEY_COUNTED_LIST(KEY_CALL_CASE, function, (__VA_ARGS__)) \
            KEY_WIDTH_LIST(KEY_CALL_CASE, function, (__VA_ARGS__))   \
        }                                                            \
    } while (0)

/* Call function_uN(...), and return what it returns, a number; the last statement of a function. */
#define KEY_RETURN(key_bytes, function, ...)                     \
    switch (key_bytes) {                                         \
        KEY_WIDTH_LIST(KEY_RETURN_CASE, function, (__VA_ARGS__)) \
    }                                                            \
    return 0

/* The same for all widths that there are. */
#define KEY_RETURN_ANY(key_bytes, function, ...)                   \
    switch (key_bytes) {                                           \
        KEY_COUNTED_LIST(KEY_RETURN_CASE, function, (__VA_ARGS__)) \
        KEY_WIDTH_LIST(KEY_RETURN_CASE, function, (__VA_ARGS__))   \
    }                                                              \
    return 0

/* keys[i], a key or a code; 0 for a width that is in neither list, here and below. */
static inline key_code key_load(int key_bytes, const void *keys, int64_t i)
{
#define X(bytes, suffix, type, unused) \
    case bytes:                        \
        return ((const type *)keys)[i];
    switch (key_bytes) {
        KEY_COUNTED_LIST(X, )
        KEY_WIDTH_LIST(X, )
    }
#undef X
    return 0;
}

/* keys[i] = the lowest key_bytes of a key or a code; nothing is stored for a width that is in neither list. */
static inline void key_store(int key_bytes, void *keys, int64_t i, key_code key)
{
#define X(bytes, suffix, type, unused) \
    case bytes:                        \
        ((type *)keys)[i] = (type)key; \
        break;
    switch (key_bytes) {
        KEY_COUNTED_LIST(X, )
        KEY_WIDTH_LIST(X, )
    }
#undef X
}

/* Codes one after the other in words of 64 bits, as a message carries them: one word each, or two for keys of 16 bytes, in the
 * order that a uint128 has them in memory. */
static inline int key_words(int key_bytes)
{
    return key_bytes > (int)sizeof(uint64_t) ? KEY_CODE_WORDS : 1;
}

static inline void words_store(int key_bytes, uint64_t *words, int64_t i, key_code code)
{
    if (key_words(key_bytes) == 1)
        words[i] = (uint64_t)code;
    else
        memcpy(words + KEY_CODE_WORDS * i, &code, sizeof code);
}

/* The maps of keys of 1 and 2 bytes, which take whole registers in any case. */
KEYTYPE_FN uint8_t keymap_encode_u8(struct keymap map, uint8_t bits)
{
    return (uint8_t)keymap_encode_narrow(map, bits);
}

KEYTYPE_FN uint16_t keymap_encode_u16(struct keymap map, uint16_t bits)
{
    return (uint16_t)keymap_encode_narrow(map, bits);
}

KEYTYPE_FN uint8_t keymap_decode_u8(struct keymap map, uint8_t code)
{
    return (uint8_t)keymap_decode_narrow(map, code);
}

KEYTYPE_FN uint16_t keymap_decode_u16(struct keymap map, uint16_t code)
{
    return (uint16_t)keymap_decode_narrow(map, code);
}

/* The code of a key, and the key of a code. */
static inline key_code keymap_encode(struct keymap map, key_code bits)
{
    KEY_RETURN_ANY(map.key_bytes, keymap_encode, map, bits);
}

static inline key_code keymap_decode(struct keymap map, key_code code)
{
    KEY_RETURN_ANY(map.key_bytes, keymap_decode, map, code);
}

/* One key's share of the fingerprint, whatever its width. */
KEYTYPE_FN void key_fingerprint_add(int key_bytes, key_code bits, uint64_t sum[2])
{
    if (key_bytes == sizeof(uint128))
        fingerprint_add_u128(bits, sum);
    else
        fingerprint_add((uint64_t)bits, sum);
}

#endif
