/* The maps of kernels/base/keytype.h against the slow comparison of order.h, which compares values and flips no bits; and the
 * codes of fields (kernels/base/key_field.h) against numbers put together byte by byte. */
#include "tests/support/check.h"
#include "kernels/base/key_field.h"
#include "kernels/base/key_width.h"
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

/* Return -1, 0 or 1: a comes before, is, or comes after b in the documented order. */
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

/* Check the table at the head of kernels/base/keytype.h. */
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

/* ---- codes of 16 bytes ------------------------------------------------------------------------------------------- */

static key_code random_wide(uint64_t *random)
{
    const key_code upper = check_random(random);
    return upper << 64 | check_random(random);
}

static void test_wide(uint64_t seed)
{
    const struct keymap up = keymap_of_codes(16);
    struct keymap down = up;
    down.descending = true;
    down.identity = false;
    CHECK(key_max(16) == ~(key_code)0 && key_max(8) == UINT64_MAX && key_max(4) == UINT32_MAX &&
              key_max(12) == 0,
          "the largest codes");
    for (int i = 0; i < 100000; i++) {
        const key_code a = random_wide(&seed) >> (i % 128), b = i % 3 ? random_wide(&seed) : a + 1;
        CHECK(keymap_encode(up, a) == a && keymap_decode(up, a) == a, "a code of 16 bytes is not itself");
        CHECK((keymap_encode(down, a) < keymap_encode(down, b)) == (a > b), "descending codes of 16 bytes");
        CHECK(keymap_decode(down, keymap_encode(down, a)) == a, "a code of 16 bytes does not come back");
    }
}

/* ---- narrow keys ------------------------------------------------------------------------------------------------- */

/* Return a number as a double, which holds every number of two bytes. */
static double value_of(enum key_kind kind, int bytes, int mantissa, uint64_t bits)
{
    const int width = 8 * bytes;
    return kind == KEY_FLOAT ? order_float_value(width, mantissa, bits)
                             : (double)bits - (kind == KEY_SIGNED && bits >> (width - 1) ? ldexp(1, width) : 0);
}

static int compare_narrow(enum key_kind kind, int bytes, int mantissa, hsort_order order, uint64_t a,
                          uint64_t b)
{
    const double left = value_of(kind, bytes, mantissa, a), right = value_of(kind, bytes, mantissa, b);
    const int ascending =
        kind == KEY_FLOAT ? order_doubles(left, right, a, b) : (left > right) - (left < right);
    return order == HSORT_DESCENDING && !isnan(left) && !isnan(right) ? -ascending : ascending;
}

/* Every code of one or two bytes, upwards: each comes from one key, and the keys come in order. */
static void check_narrow(enum key_kind kind, int bytes, int mantissa, hsort_order order)
{
    const struct keymap map = keymap_of_kind(kind, bytes, mantissa, order);
    const uint64_t last = UINT64_MAX >> (64 - 8 * bytes);
    uint64_t before = 0;
    for (uint64_t code = 0; code <= last; code++) {
        const uint64_t bits = keymap_decode_narrow(map, code);
        CHECK(bits <= last && keymap_encode_narrow(map, bits) == code,
              "kind %d of %d bytes, mantissa %d: code %llx", kind, bytes, mantissa, (unsigned long long)code);
        CHECK(code == 0 || compare_narrow(kind, bytes, mantissa, order, before, bits) < 0,
              "kind %d of %d bytes, mantissa %d, order %d: code %llx does not follow the one before", kind,
              bytes, mantissa, order, (unsigned long long)code);
        CHECK(!map.identity || bits == code, "kind %d of %d bytes is no identity", kind, bytes);
        before = bits;
    }
}

static void test_narrow(uint64_t seed)
{
    for (int o = 0; o < ORDERS; o++) {
        for (int bytes = 1; bytes <= 2; bytes++) {
            check_narrow(KEY_UNSIGNED, bytes, 0, orders[o]);
            check_narrow(KEY_SIGNED, bytes, 0, orders[o]);
        }
        check_narrow(KEY_FLOAT, 1, 3, orders[o]);
        check_narrow(KEY_FLOAT, 2, 10, orders[o]); // half precision
        check_narrow(KEY_FLOAT, 2, 7, orders[o]);  // bfloat16
        for (int i = 0; i < 300000; i++) {         // of 4 and 8 bytes: like the maps of the types
            const struct keymap map = keymap_make(types[i % TYPES], orders[o]);
            const uint64_t bits = check_random(&seed) >> (64 - 8 * map.key_bytes) >> (i % 7 ? 0 : i % 32);
            CHECK(keymap_encode_narrow(map, bits) == encode(map, bits) &&
                      keymap_decode_narrow(map, bits) == decode(map, bits),
                  "%s, order %d: %llx", hsort_type_name(types[i % TYPES]), orders[o],
                  (unsigned long long)bits);
        }
    }
}

/* Check all codes of a type of 1 or 2 bytes against the order that is written down for types. */
static void check_counted(hsort_type type, hsort_order order)
{
    const struct keymap map = keymap_make(type, order);
    const uint64_t last = (uint64_t)key_max(map.key_bytes);
    uint64_t before = 0;
    CHECK(last == UINT64_MAX >> (64 - 8 * map.key_bytes), "%s: the largest code is %llx", hsort_type_name(type),
          (unsigned long long)last);
    for (uint64_t code = 0; code <= last; code++) {
        const uint64_t bits = (uint64_t)keymap_decode(map, code);
        CHECK(bits <= last && keymap_encode(map, bits) == code, "%s order %d: code %llx comes back as %llx",
              hsort_type_name(type), order, (unsigned long long)code, (unsigned long long)keymap_encode(map, bits));
        CHECK(code == 0 || order_compare(type, order, &before, &bits) < 0, // little-endian
              "%s order %d: the key of code %llx is not after the one before", hsort_type_name(type), order,
              (unsigned long long)code);
        before = bits;
    }
}

static void test_counted(void)
{
    int found = 0;
    for (int type = 0; type < ORDER_TYPES; type++) {
        if (!KEY_IS_COUNTED(hsort_type_bytes((hsort_type)type)))
            continue;
        found++;
        for (int o = 0; o < ORDERS; o++)
            check_counted((hsort_type)type, orders[o]);
    }
    CHECK(found == 6, "%d types of 1 and 2 bytes", found);
}

/* The map of u128 is the map of codes of 16 bytes, except for the order. */
static void test_u128(uint64_t seed)
{
    for (int o = 0; o < ORDERS; o++) {
        const struct keymap map = keymap_make(HSORT_U128, orders[o]);
        CHECK(map.key_bytes == 16 && map.identity == (orders[o] == HSORT_ASCENDING), "the map of u128");
        for (int i = 0; i < 100000; i++) {
            const key_code a = random_wide(&seed) >> (i % 128), b = i % 3 ? random_wide(&seed) : a + 1;
            const int found = (keymap_encode(map, a) > keymap_encode(map, b)) - (keymap_encode(map, a) < keymap_encode(map, b));
            CHECK(found == order_compare(HSORT_U128, orders[o], &a, &b), "order %d of u128", o);
            CHECK(keymap_decode(map, keymap_encode(map, a)) == a, "a u128 does not come back");
        }
    }
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* Compare the bytes of a with those of b: -1, 0 or 1. The most significant byte is the first, or the last. */
static int compare_bytes(const unsigned char *a, const unsigned char *b, int bytes, bool big_endian)
{
    for (int i = 0; i < bytes; i++) {
        const int at = big_endian ? i : bytes - 1 - i;
        if (a[at] != b[at])
            return a[at] < b[at] ? -1 : 1;
    }
    return 0;
}

/* A field of plain bytes: its codes are in the order of the bytes, and fill as many bits. */
static void check_bytes(int bytes, bool big_endian, bool descending, uint64_t *random)
{
    unsigned char elements[2][37];
    struct key_field field = {.from = elements[0] + 1 + check_random(random) % 20,
                              .stride = sizeof elements[0]};
    field.bytes = bytes;
    field.big_endian = big_endian;
    field.map.descending = descending;
    field.shift = (int)(check_random(random) % (uint64_t)(129 - 8 * bytes));
    for (size_t i = 0; i < sizeof elements; i++) // few values, so that first bytes are often the same
        ((unsigned char *)elements)[i] = (unsigned char)(check_random(random) % 3 * 127);
    const unsigned char *a = field.from, *b = a + field.stride;
    const key_code codes[2] = {field_code(&field, 0), field_code(&field, 1)};
    const int order = compare_bytes(a, b, bytes, big_endian),
              found = (codes[0] > codes[1]) - (codes[0] < codes[1]);
    CHECK(found == (descending ? -order : order), "%d bytes, big endian %d, descending %d: order %d", bytes,
          big_endian, descending, found);
    for (int i = 0; i < 2; i++) {
        const key_code code = codes[i] >> field.shift, rest = bytes < 16 ? code >> (8 * bytes) : 0;
        CHECK(rest == 0 && code << field.shift == codes[i], "%d bytes: bits outside of the code", bytes);
    }
}

/* A number in a field has the code of the number, whichever end comes first. */
static void check_number(int bytes, bool big_endian, uint64_t *random)
{
    const int mantissas[] = {0, 3, 10, 0, 23, 0, 0, 0, 52};
    unsigned char element[24];
    const struct keymap map = keymap_of_kind((enum key_kind)(check_random(random) % 3), bytes,
                                             mantissas[bytes], orders[check_random(random) % 2]);
    const uint64_t bits = check_random(random) >> (64 - 8 * bytes);
    const size_t offset = check_random(random) % 16;
    struct key_field field = {element + offset, 0, bytes, big_endian, map, (int)(check_random(random) % 65)};
    for (int i = 0; i < bytes; i++)
        element[offset + (size_t)(big_endian ? bytes - 1 - i : i)] = (unsigned char)(bits >> 8 * i);
    CHECK(field_code(&field, 0) == (key_code)keymap_encode_narrow(map, bits) << field.shift,
          "a number of %d bytes, big endian %d", bytes, big_endian);
}

static void test_fields(uint64_t seed)
{
    for (int turn = 0; turn < 2000; turn++)
        for (int bytes = 1; bytes <= 16; bytes++)
            for (int way = 0; way < 4; way++) {
                check_bytes(bytes, way & 1, way & 2, &seed);
                if (bytes <= 8 && (bytes & (bytes - 1)) == 0)
                    check_number(bytes, way & 1, &seed);
            }
}

int main(void)
{
    const uint64_t seed = check_seed();
    printf("test_keytype: seed %llu\n", (unsigned long long)seed);
    test_documented();
    test_wide(seed);
    test_narrow(seed);
    test_counted();
    test_u128(seed);
    test_fields(seed);
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
