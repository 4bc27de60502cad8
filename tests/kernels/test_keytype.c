/* The maps of kernels/base/keytype.h against the slow comparison of order.h, which compares values and flips no bits.
 * */
#include "tests/support/check.h"
#include "kernels/base/keytype.h"
#include "tests/support/order.h"

enum { CODE_STRIDE = 251 }; // a prime: the 2^32 codes of narrow types are walked in steps of it

static const hsort_type types[] = {HSORT_U32, HSORT_I32, HSORT_F32, HSORT_U64, HSORT_I64, HSORT_F64};
static const hsort_order orders[] = {HSORT_ASCENDING, HSORT_DESCENDING};
enum { TYPES = sizeof types / sizeof types[0], ORDERS = sizeof orders / sizeof orders[0] };

static const uint32_t specials32[] = {
    0x00000000, 0x00000001, 0x00000002, 0x007fffff, // +0.0, denormals up to the largest
    0x00800000, 0x3f7fffff, 0x3f800000, 0x3f800001, // smallest normal, below 1, 1, above 1
    0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fbfffff, // largest, +inf, signalling NaNs
    0x7fc00000, 0x7fc00001, 0x7ffffffe, 0x7fffffff, // quiet NaNs; INT32_MAX
    0x80000000, 0x80000001, 0x80000002, 0x807fffff, // -0.0 and INT32_MIN, negative denormals
    0x80800000, 0xbf7fffff, 0xbf800000, 0xbf800001, // the same below zero
    0xff7fffff, 0xff800000, 0xff800001, 0xffbfffff, // -inf, negative NaNs
    0xffc00000, 0xffc00001, 0xfffffffe, 0xffffffff,
};

static const uint64_t specials64[] = {
    0x0000000000000000, 0x0000000000000001, 0x0000000000000002, 0x000fffffffffffff, 0x0010000000000000,
    0x3fefffffffffffff, 0x3ff0000000000000, 0x3ff0000000000001, 0x7fefffffffffffff, 0x7ff0000000000000,
    0x7ff0000000000001, 0x7ff7ffffffffffff, 0x7ff8000000000000, 0x7ff8000000000001, 0x7ffffffffffffffe,
    0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0x8000000000000002, 0x800fffffffffffff,
    0x8010000000000000, 0xbfefffffffffffff, 0xbff0000000000000, 0xbff0000000000001, 0xffefffffffffffff,
    0xfff0000000000000, 0xfff0000000000001, 0xfff7ffffffffffff, 0xfff8000000000000, 0xfff8000000000001,
    0xfffffffffffffffe, 0xffffffffffffffff, 0x00000000ffffffff, 0x0000000100000000, 0x00000000ff800000,
    0xffffffff00000000, // narrow patterns in wide keys
};

static bool is_wide(hsort_type type)
{
    return type == HSORT_U64 || type == HSORT_I64 || type == HSORT_F64;
}

static uint64_t encode(struct keymap map, uint64_t bits)
{
    return map.key_bytes == 8 ? keymap_encode_u64(map, bits) : keymap_encode_u32(map, (uint32_t)bits);
}

static uint64_t decode(struct keymap map, uint64_t code)
{
    return map.key_bytes == 8 ? keymap_decode_u64(map, code) : keymap_decode_u32(map, (uint32_t)code);
}

/* -1, 0, 1 as a comes before, is, comes after b in the documented order. */
static int compare(hsort_type type, hsort_order order, uint64_t a, uint64_t b)
{
    const uint32_t narrow_a = (uint32_t)a, narrow_b = (uint32_t)b;
    return is_wide(type) ? order_compare(type, order, &a, &b)
                         : order_compare(type, order, &narrow_a, &narrow_b);
}

static void check_pair(hsort_type type, hsort_order order, struct keymap map, uint64_t a, uint64_t b)
{
    const uint64_t a_code = encode(map, a), b_code = encode(map, b);
    CHECK(compare(type, order, a, b) == (a_code > b_code) - (a_code < b_code),
          "%s order %d: %016llx has code %016llx, %016llx has %016llx", hsort_type_name(type), order,
          (unsigned long long)a, (unsigned long long)a_code, (unsigned long long)b,
          (unsigned long long)b_code);
    CHECK(decode(map, a_code) == a, "%s order %d: %016llx comes back as %016llx", hsort_type_name(type),
          order, (unsigned long long)a, (unsigned long long)decode(map, a_code));
    CHECK(!map.identity || a_code == a, "%s order %d: the map is no identity", hsort_type_name(type), order);
}

static void test_specials(hsort_type type, hsort_order order, struct keymap map)
{
    const int narrow = sizeof specials32 / sizeof specials32[0],
              wide = sizeof specials64 / sizeof specials64[0];
    const int count = is_wide(type) ? wide : narrow;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            check_pair(type, order, map, is_wide(type) ? specials64[i] : specials32[i],
                       is_wide(type) ? specials64[j] : specials32[j]);
}

static void test_random(hsort_type type, hsort_order order, struct keymap map, uint64_t seed)
{
    const uint64_t mask = is_wide(type) ? UINT64_MAX : UINT32_MAX;
    for (int i = 0; i < 300000; i++) {
        const uint64_t a = check_random(&seed) & mask, b = check_random(&seed) & mask;
        check_pair(type, order, map, a, b);
        check_pair(type, order, map, b >> (a % 64), a); // small numbers and denormals too
        check_pair(type, order, map, a, (a + 1) & mask);
        check_pair(type, order, map, a, a ^ map.sign);
    }
}

/* Walk the codes upwards: each must come from one key alone, and the keys must come in order. */
static void test_codes(hsort_type type, hsort_order order, struct keymap map)
{
    const uint64_t last = is_wide(type) ? UINT64_MAX : UINT32_MAX;
    const uint64_t stride = is_wide(type) ? last / (UINT32_MAX / CODE_STRIDE) : CODE_STRIDE;
    uint64_t before = decode(map, 0);
    for (uint64_t code = stride; code >= stride && code <= last; code += stride) {
        const uint64_t bits = decode(map, code);
        CHECK(bits <= last && encode(map, bits) == code, "%s order %d: code %016llx comes back as %016llx",
              hsort_type_name(type), order, (unsigned long long)code, (unsigned long long)encode(map, bits));
        CHECK(compare(type, order, before, bits) < 0,
              "%s order %d: key of code %016llx is not after the last", hsort_type_name(type), order,
              (unsigned long long)code);
        before = bits;
    }
}

/* The table at the head of kernels/base/keytype.h. */
static void test_documented(void)
{
    static const uint32_t rows[][3] = {
        {0xff800000, 0x00000000, 0xff000001}, {0x80000000, 0x7f800000, 0x7f800001},
        {0x00000000, 0x7f800001, 0x7f800000}, {0x7f800000, 0xff000001, 0x00000000},
        {0x7fc00000, 0xff400001, 0xff400001}, {0xffffffff, 0xff800001, 0xff800001},
    };
    const struct keymap up = keymap_make(HSORT_F32, HSORT_ASCENDING),
                        down = keymap_make(HSORT_F32, HSORT_DESCENDING);
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        CHECK(keymap_encode_u32(up, rows[i][0]) == rows[i][1], "%08x is %08x", rows[i][0],
              keymap_encode_u32(up, rows[i][0]));
        CHECK(keymap_encode_u32(down, rows[i][0]) == rows[i][2], "%08x is %08x", rows[i][0],
              keymap_encode_u32(down, rows[i][0]));
    }
}

int main(void)
{
    const uint64_t seed = check_seed();
    printf("test_keytype: seed %llu\n", (unsigned long long)seed);
    test_documented();
    for (int t = 0; t < TYPES; t++) {
        for (int o = 0; o < ORDERS; o++) {
            const struct keymap map = keymap_make(types[t], orders[o]);
            test_specials(types[t], orders[o], map);
            test_random(types[t], orders[o], map, seed);
            test_codes(types[t], orders[o], map);
        }
    }
    return check_failures > 0;
}
