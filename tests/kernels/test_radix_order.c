/* The oracle of the sort tests (tests/support/radix_order.h) against qsort by value (order.h), bit for bit: every type, both
 * orders, keys of few and of many values, with zeros, infinities and NaNs of either sign. */
#include "tests/kernels/engine_test.h"

enum { TRIALS = 40, MOST = 3000 };

/* Return the number of bits in a float's exponent; for an integer, any number. */
static int exponent_bits(hsort_type type)
{
    return type == HSORT_F64 ? 11 : type == HSORT_F16 ? 5 : hsort_type_bytes(type) == 1 ? 3 : 8;
}

/* Draw any bits; or, of few values, small changes of what is special: zero, the top bit, infinity, all ones. */
static key_code draw_bits(hsort_type type, int values, uint64_t *random)
{
    const int bits = 8 * (int)hsort_type_bytes(type), exponent = exponent_bits(type);
    const key_code all = ~(key_code)0 >> (128 - bits), any = random_code(random) & all;
    const key_code infinity = (((key_code)1 << exponent) - 1) << (bits - 1 - exponent);
    const key_code special[] = {0, infinity, all, infinity - 1};
    if (values == 0)
        return any;
    return ((special[any % 4] ^ (any & (all ^ all >> 1))) + any / 4 % (key_code)values) & all;
}

static void check_type(hsort_type type, hsort_order order, int64_t count, int values, uint64_t *random)
{
    const int key_bytes = (int)hsort_type_bytes(type);
    const size_t bytes = (size_t)(count * key_bytes);
    char *keys = alloc_or_exit(bytes + 1), *expected = alloc_or_exit(bytes + 1);
    for (int64_t i = 0; i < count; i++)
        store(key_bytes, keys, i, draw_bits(type, values, random));
    memcpy(expected, keys, bytes);
    order_sort(type, order, expected, count);
    radix_order_sort(type, order, keys, count);
    const int64_t wrong = first_difference(keys, expected, key_bytes, count);
    CHECK(wrong < 0, "%lld keys of %s, order %d, about %d values: key %lld", (long long)count,
          hsort_type_name(type), order, values, (long long)wrong);
    free(keys);
    free(expected);
}

int main(void)
{
    static const int values[] = {0, 1, 3, 200};
    uint64_t random = check_seed();
    printf("test_radix_order: seed %llu\n", (unsigned long long)random);
    for (hsort_type type = 0; hsort_type_name(type); type++)
        for (int down = 0; down < 2; down++)
            for (int turn = 0; turn < TRIALS; turn++)
                check_type(type, down ? HSORT_DESCENDING : HSORT_ASCENDING,
                           turn < 4 ? turn : (int64_t)(check_random(&random) % MOST), values[turn % 4],
                           &random);
    CHECK(first_difference("abcd", "abxd", 2, 2) == 1, "a difference is not seen");
    return check_failures > 0;
}
