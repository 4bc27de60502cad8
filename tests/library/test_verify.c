/* The verifier is verified. It must refuse whatever a broken sort could hand out: two keys swapped inside a rank,
 * across the boundary of two ranks, across an empty rank; a key lost, a key doubled, all zeros, a single bit
 * flipped. It must accept a right result, and its answer may not depend on how keys are spread over ranks or
 * fed in chunks. An oracle that walks the whole array key by key says where the first key out of order is. */
#include "tests/support/ranks.h"
#include "tests/support/order.h"
#include "kernels/base/key_width.h"
#include "src/library/verify.h"

enum { KEYS = 600, MOST_RANKS = 64 };

static struct comm comm;
static struct engine *engine;

/* A whole array, the same on every rank, and which part of it each rank holds. */
struct array {
    hsort_type type;
    hsort_order order;
    int64_t count;
    int64_t counts[MOST_RANKS];
    _Alignas(16) unsigned char keys[KEYS * 16];
};

static unsigned char *key_of(struct array *array, int64_t position)
{
    return array->keys + (size_t)position * hsort_type_bytes(array->type);
}

static void swap_keys(struct array *array, int64_t a, int64_t b)
{
    unsigned char kept[16];
    const size_t width = hsort_type_bytes(array->type);
    memcpy(kept, key_of(array, a), width);
    memcpy(key_of(array, a), key_of(array, b), width);
    memcpy(key_of(array, b), kept, width);
}

static int64_t first_of(const struct array *array, int rank)
{
    int64_t before = 0;
    for (int lower = 0; lower < rank; lower++)
        before += array->counts[lower];
    return before;
}

/* Spread the keys at random; about one rank in three stays empty. */
static void spread(struct array *array, uint64_t *random)
{
    int64_t left = array->count;
    for (int rank = 0; rank < comm.size; rank++) {
        const bool empty = check_random(random) % 3 == 0;
        array->counts[rank] = empty ? 0 : (int64_t)(check_random(random) % (uint64_t)(left + 1));
        left -= array->counts[rank];
    }
    array->counts[check_random(random) % (uint64_t)comm.size] += left;
}

static void fill(struct array *array, hsort_type type, hsort_order order, int64_t count, uint64_t *random)
{
    array->type = type;
    array->order = order;
    array->count = count;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits[2] = {check_random(random), check_random(random)};
        memcpy(key_of(array, i), bits, hsort_type_bytes(type));
    }
    order_sort(type, order, array->keys, count);
    spread(array, random);
}

/* Fill the array with keys in order, no two of them equal, spread over all keys that there are; keys of one byte are few. */
static void fill_distinct(struct array *array, hsort_type type, hsort_order order, uint64_t *random)
{
    const struct keymap map = keymap_make(type, order);
    const int64_t count = map.key_bytes == 1 ? 200 : KEYS;
    fill(array, type, order, count, random);
    for (int64_t i = 0; i < count && KEY_IS_COUNTED(map.key_bytes); i++) {
        const key_code bits = keymap_decode(map, (key_code)i * (key_max(map.key_bytes) / (key_code)count));
        memcpy(key_of(array, i), &bits, (size_t)map.key_bytes);
    }
}

static hsort_check_result verify(struct array *array, int64_t chunk)
{
    struct verifier verifier;
    hsort_check_result result = {.count = -1};
    const int64_t first = first_of(array, comm.rank), count = array->counts[comm.rank];
    status_clear();
    verify_start(&verifier, keymap_make(array->type, array->order));
    hsort_status status = HSORT_OK;
    for (int64_t done = 0; done < count && status == HSORT_OK; done += chunk)
        status = verify_add(&verifier, engine, key_of(array, first + done),
                            chunk < count - done ? chunk : count - done);
    CHECK(status == HSORT_OK, "verify_add: %s", status_text());
    status = verify_finish(&verifier, &comm, &result);
    CHECK(status == HSORT_OK, "verify_finish: %s", status_text());
    return result;
}

/* Verify, and compare with a walk over the whole array. */
static hsort_check_result verify_and_walk(struct array *array, const char *what)
{
    int64_t disorder = -1;
    for (int64_t i = 1; i < array->count && disorder < 0; i++)
        if (order_compare(array->type, array->order, key_of(array, i - 1), key_of(array, i)) > 0)
            disorder = i;
    const hsort_check_result result = verify(array, KEYS);
    CHECK(result.count == array->count, "%s: %lld keys instead of %lld", what, (long long)result.count,
          (long long)array->count);
    CHECK(result.first_disorder == disorder, "%s, %s, order %d: first disorder at %lld instead of %lld", what,
          hsort_type_name(array->type), array->order, (long long)result.first_disorder, (long long)disorder);
    return result;
}

static bool same_keys(hsort_check_result a, hsort_check_result b)
{
    return a.count == b.count && a.fingerprint[0] == b.fingerprint[0] && a.fingerprint[1] == b.fingerprint[1];
}

/* ---- What must be accepted ----------------------------------------------------------------------------- */

static void test_spread(struct array *array, uint64_t *random)
{
    const hsort_check_result whole = verify_and_walk(array, "sorted");
    CHECK(whole.first_disorder == -1, "a sorted array was refused");
    for (int repeat = 0; repeat < 5; repeat++) {
        spread(array, random);
        const hsort_check_result spread_out = verify_and_walk(array, "spread out");
        CHECK(same_keys(whole, spread_out), "the fingerprint depends on how keys are spread");
        const hsort_check_result in_chunks = verify(array, 1 + (int64_t)(check_random(random) % 50));
        CHECK(same_keys(whole, in_chunks) && in_chunks.first_disorder == -1, "the result depends on chunks");
        for (int swaps = 0; swaps < 3 && array->count > 1; swaps++)
            swap_keys(array, (int64_t)(check_random(random) % (uint64_t)array->count),
                      (int64_t)(check_random(random) % (uint64_t)array->count));
        const hsort_check_result shuffled = verify_and_walk(array, "shuffled");
        CHECK(same_keys(whole, shuffled), "the fingerprint depends on the order");
        CHECK(verify(array, 7).first_disorder == shuffled.first_disorder, "the disorder depends on chunks");
        order_sort(array->type, array->order, array->keys, array->count);
    }
}

static void test_equal(hsort_type type, hsort_order order, uint64_t *random)
{
    struct array array;
    fill(&array, type, order, KEYS, random);
    for (int64_t i = 1; i < array.count; i++)
        memcpy(key_of(&array, i), key_of(&array, 0), hsort_type_bytes(type));
    const hsort_check_result result = verify_and_walk(&array, "all equal");
    CHECK(result.first_disorder == -1 && result.first_unstable == -1, "equal keys were refused");
    // Sums over n equal keys must still tell n: one key fewer is another multiset.
    array.count--;
    spread(&array, random);
    const hsort_check_result fewer = verify_and_walk(&array, "one equal key fewer");
    CHECK(fewer.fingerprint[0] != result.fingerprint[0], "a lost key of many equal ones was not seen");
}

/* Numbers and NaNs of both signs: whatever the order, a NaN is last, and in front of a number it is out of
 * order. */
static void test_nans(hsort_type type, hsort_order order, uint64_t *random)
{
    static const double values[8] = {-INFINITY, -1, -0.0, 0.0, 1e-310, 1, INFINITY, NAN};
    struct array array;
    fill(&array, type, order, KEYS, random);
    for (int64_t i = 0; i < array.count; i++) {
        double wide = values[check_random(random) % 8];
        wide = isnan(wide) && check_random(random) % 2 ? -wide : wide;
        const float narrow = (float)wide;
        memcpy(key_of(&array, i), type == HSORT_F32 ? (const void *)&narrow : (const void *)&wide,
               hsort_type_bytes(type));
    }
    order_sort(type, order, array.keys, array.count);
    CHECK(verify_and_walk(&array, "with NaNs").first_disorder == -1, "NaNs at the end were refused");
    CHECK(order_is_nan(type, key_of(&array, KEYS - 1)) && !order_is_nan(type, key_of(&array, 0)),
          "the test has no NaNs and numbers");
    swap_keys(&array, 0, KEYS - 1);
    CHECK(verify_and_walk(&array, "NaN first").first_disorder == 1, "a NaN in front was accepted");
}

/* ---- What must be refused ------------------------------------------------------------------------------ */

/* Swap the neighbours at the end of rank `rank` and the start of the next rank that has keys, and verify. */
static void break_border(struct array *array, int rank)
{
    const int64_t boundary = first_of(array, rank + 1);
    if (boundary == 0 || boundary == array->count)
        return;
    swap_keys(array, boundary - 1, boundary);
    const hsort_check_result broken = verify_and_walk(array, "swapped across a boundary");
    CHECK(broken.first_disorder >= 0, "a swap across the boundary at %lld was accepted", (long long)boundary);
    swap_keys(array, boundary - 1, boundary);
}

static void test_swaps(struct array *array, hsort_check_result right, uint64_t *random)
{
    for (int repeat = 0; repeat < 5; repeat++) {
        const int64_t at = (int64_t)(check_random(random) % (uint64_t)(array->count - 1));
        swap_keys(array, at, at + 1);
        const hsort_check_result broken = verify_and_walk(array, "swapped");
        CHECK(broken.first_disorder >= 0 && same_keys(right, broken), "a swap at %lld was accepted",
              (long long)at);
        swap_keys(array, at, at + 1);
    }
    for (int rank = 0; rank + 1 < comm.size; rank++)
        break_border(array, rank);
    if (comm.size < 3)
        return;
    for (int rank = 0; rank < comm.size; rank++) // keys on the first and the last rank only
        array->counts[rank] = rank == 0 ? array->count / 2 : rank == comm.size - 1 ? array->count - array->count / 2 : 0;
    break_border(array, 0);
}

static void test_wrong_keys(struct array *array, hsort_check_result right, uint64_t *random)
{
    const size_t width = hsort_type_bytes(array->type);
    const int64_t at = 1 + (int64_t)(check_random(random) % (uint64_t)(array->count - 1));
    struct array broken = *array;
    memcpy(key_of(&broken, at), key_of(&broken, at - 1), width);
    const hsort_check_result doubled = verify_and_walk(&broken, "one doubled, one lost");
    CHECK(doubled.first_disorder == -1 && !same_keys(right, doubled), "a doubled key was not seen");

    broken = *array;
    broken.count--;
    spread(&broken, random);
    CHECK(!same_keys(right, verify_and_walk(&broken, "one lost")), "a lost key was not seen");

    broken = *array;
    memset(broken.keys, 0, sizeof broken.keys);
    const hsort_check_result zeros = verify_and_walk(&broken, "zeros");
    CHECK(zeros.first_disorder == -1 && !same_keys(right, zeros), "zeros were not seen");

    for (size_t bit = 0; bit < 8 * width; bit++) {
        broken = *array;
        key_of(&broken, at)[bit / 8] ^= (unsigned char)(1u << bit % 8);
        CHECK(!same_keys(right, verify_and_walk(&broken, "a bit flipped")), "bit %zu flipped was not seen",
              bit);
    }
}

/* ---- Numbers of elements --------------------------------------------------------------------------------- */

/* Verify keys as elements, with these numbers; numbers NULL: all numbers are alike. A verifier of its own, which is then appended,
 * sees every other chunk. */
static hsort_check_result verify_numbers(struct array *array, const int64_t *numbers, int64_t chunk)
{
    struct verifier verifier, next;
    hsort_check_result result;
    const int64_t first = first_of(array, comm.rank), count = array->counts[comm.rank];
    const size_t width = hsort_type_bytes(array->type);
    hsort_status status = HSORT_OK;
    verify_start(&verifier, keymap_make(array->type, array->order));
    for (int64_t done = 0; done < count && status == HSORT_OK; done += chunk) {
        const void *keys = key_of(array, first + done);
        const struct engine_elements elements = {.count = chunk < count - done ? chunk : count - done,
                                                 .part = {keys},
                                                 .part_bytes = {width},
                                                 .field = {{.from = keys,
                                                            .stride = width,
                                                            .bytes = (int)width,
                                                            .map = keymap_make(array->type, array->order)}},
                                                 .field_count = 1,
                                                 .index = numbers ? numbers + first + done : NULL};
        verify_start(&next, verifier.map);
        status = verify_add_elements(done / chunk % 2 ? &next : &verifier, engine, &elements);
        verify_append(&verifier, &next);
    }
    CHECK(status == HSORT_OK, "verify_add_elements: %s", status_text());
    CHECK(verify_finish(&verifier, &comm, &result) == HSORT_OK, "verify_finish: %s", status_text());
    return result;
}

/* Numbers rise between equal keys, except at one place, which may be any border of chunks and of ranks. */
static void test_numbers(struct array *array, uint64_t *random)
{
    int64_t numbers[KEYS];
    char kept[16];
    const size_t width = hsort_type_bytes(array->type);
    for (int64_t i = 0; i < array->count; i++) { // runs of a few equal keys
        memcpy(key_of(array, i), key_of(array, i / 5 * 5), width);
        numbers[i] = i;
    }
    for (int repeat = 0; repeat < 40; repeat++) {
        const int64_t place = (int64_t)(check_random(random) % (uint64_t)(array->count / 5)) * 5 + 1;
        const int64_t chunk = 1 + (int64_t)(check_random(random) % 7),
                      less = (int64_t)(check_random(random) % 3);
        spread(array, random);
        hsort_check_result found = verify_numbers(array, numbers, chunk);
        CHECK(found.first_unstable == -1 && found.first_disorder == -1, "rising numbers: unstable at %lld",
              (long long)found.first_unstable);
        numbers[place] = numbers[place - 1] - less;
        found = verify_numbers(array, numbers, chunk);
        CHECK(found.first_unstable == place, "unstable at %lld, not at %lld, in chunks of %lld",
              (long long)found.first_unstable, (long long)place, (long long)chunk);
        numbers[place] = place;
        memcpy(kept, key_of(array, place), width);
        memcpy(key_of(array, place), key_of(array, 0), width);
        const int64_t disorder = verify_numbers(array, numbers, chunk).first_disorder;
        CHECK(disorder == (place < 5 ? -1 : place), "disorder at %lld, not at %lld, in chunks of %lld",
              (long long)disorder, (long long)place, (long long)chunk);
        memcpy(key_of(array, place), kept, width);
        CHECK(verify_numbers(array, NULL, chunk).first_unstable == 1, "equal keys of equal numbers");
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    uint64_t random = ranks_seed();
    hsort_status status = comm_open(MPI_COMM_WORLD, &comm);
    if (status == HSORT_OK)
        status = engine_open_host(1, 0, &engine);
    CHECK(status == HSORT_OK, "%s", status_text());
    if (status != HSORT_OK)
        return ranks_finish();
    for (int type = 0; type < ORDER_TYPES; type++)
        for (int order = HSORT_ASCENDING; order <= HSORT_DESCENDING; order++) {
            struct array array;
            for (int64_t count = 0; count < 3; count++) {
                fill(&array, (hsort_type)type, (hsort_order)order, count, &random);
                test_spread(&array, &random);
            }
            fill_distinct(&array, (hsort_type)type, (hsort_order)order, &random);
            test_spread(&array, &random);
            const hsort_check_result right = verify_and_walk(&array, "sorted");
            test_swaps(&array, right, &random);
            test_wrong_keys(&array, right, &random);
            test_equal((hsort_type)type, (hsort_order)order, &random);
            test_numbers(&array, &random);
            if (type == HSORT_F32 || type == HSORT_F64)
                test_nans((hsort_type)type, (hsort_order)order, &random);
        }
    engine->ops->close(engine);
    comm_close(&comm);
    return ranks_finish();
}
