/* The oracle of the tests of sorts (tests/support/radix_order.h) against qsort by value (order.h), bit for bit: every type, both
 * orders, keys of few and of many values, with zeros, infinities and NaNs of either sign. */
#include "tests/kernels/engine_test.h"

enum { TRIALS = 40, MOST = 3000 };

/* Any bits; few values; or small changes of what is special: zero, the top bit, infinity, all ones. */
static key_code draw_bits(int key_bytes, int values, uint64_t *random)
{
    const int bits = 8 * key_bytes, exponent = bits == 32 ? 8 : 11;
    const key_code any = random_code(random) & key_max(key_bytes);
    const key_code infinity = (((key_code)1 << exponent) - 1) << (bits - 1 - exponent);
    const key_code special[] = {0, infinity, key_max(key_bytes), infinity - 1};
    if (values == 0)
        return any;
    const key_code sign = any & (key_max(key_bytes) ^ key_max(key_bytes) >> 1);
    return (special[any % 4] ^ sign) + any / 4 % (key_code)values;
}

static int compare_u128_down(const void *a, const void *b)
{
    return compare_u128(b, a);
}

/* By qsort: the oracle's oracle. */
static void sort_by_comparing(int kind, hsort_order order, int key_bytes, void *keys, int64_t count)
{
    if (kind <= HSORT_F64)
        order_sort((hsort_type)kind, order, keys, count);
    else
        qsort(keys, (size_t)count, (size_t)key_bytes,
              order == HSORT_DESCENDING ? compare_u128_down : compare_u128);
}

static void check_kind(int kind, hsort_order order, int64_t count, int values, uint64_t *random)
{
    const int key_bytes = map_of_kind(kind, order).key_bytes;
    const size_t bytes = (size_t)(count * key_bytes);
    char *keys = alloc_or_exit(bytes + 1), *expected = alloc_or_exit(bytes + 1);
    for (int64_t i = 0; i < count; i++)
        store(key_bytes, keys, i, draw_bits(key_bytes, values, random));
    memcpy(expected, keys, bytes);
    sort_by_comparing(kind, order, key_bytes, expected, count);
    sort_kind_on_host(kind, order, keys, count);
    const int64_t wrong = first_difference(keys, expected, key_bytes, count);
    CHECK(wrong < 0, "%lld keys of %s, order %d, about %d values: key %lld", (long long)count,
          kind_name(kind), order, values, (long long)wrong);
    free(keys);
    free(expected);
}

int main(void)
{
    static const int values[] = {0, 1, 3, 200};
    uint64_t random = check_seed();
    printf("test_radix_order: seed %llu\n", (unsigned long long)random);
    for (int kind = 0; kind < KEY_KINDS; kind++)
        for (int down = 0; down < 2; down++)
            for (int turn = 0; turn < TRIALS; turn++)
                check_kind(kind, down ? HSORT_DESCENDING : HSORT_ASCENDING,
                           turn < 4 ? turn : (int64_t)(check_random(&random) % MOST), values[turn % 4],
                           &random);
    return check_failures > 0;
}
