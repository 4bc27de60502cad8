/* Elements, which are keys that something travels with, on the host: moving them to their places, and inspecting them. */
#include <omp.h>
#include <string.h>
#include "kernels/base/element_digest.h"
#include "kernels/host/host_engine.h"

/* ---- elements ------------------------------------------------------------------------------------------ */

static inline void copy_element(char *to, const char *from, size_t bytes)
{
    switch (bytes) { // with a constant length, a copy is a move or two, not a call
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

/* Where an array of elements begins. Elements of 0 bytes have none, and not even 0 may be added to NULL. */
static char *array_begin(const void *array)
{
    static char none;
    return array ? (char *)array : &none;
}

hsort_status host_take(struct engine *engine, const struct engine_take *take, int64_t *outside)
{
    const int threads = host_threads(engine);
    const uint64_t before = (uint64_t)take->from_count[0], all = before + (uint64_t)take->from_count[1];
    const size_t bytes = take->element_bytes;
    const char *const from[] = {array_begin(take->from[0]), array_begin(take->from[1])};
    char *const to = array_begin(take->to);
    int64_t wrong = 0;
    TRY(kernel_passes("take"));
#pragma omp parallel for num_threads(threads) if (threads > 1 && take->count >= PARALLEL_COUNT) reduction(+ : wrong)
    for (int64_t i = 0; i < take->count; i++) {
        // A position below the first is far beyond the last.
        const uint64_t at = (uint64_t)take->positions[i] - (uint64_t)take->first;
        if (at >= all)
            wrong++;
        else
            copy_element(to + (uint64_t)i * bytes,
                         at < before ? from[0] + at * bytes : from[1] + (at - before) * bytes, bytes);
    }
    if (outside)
        *outside = wrong;
    return HSORT_OK;
}

hsort_status host_place(struct engine *engine, size_t element_bytes, void *to, int64_t to_count,
                        const void *from, const int64_t *positions, int64_t first, int64_t count,
                        int64_t *outside)
{
    const int threads = host_threads(engine);
    char *const out = array_begin(to);
    const char *const in = array_begin(from);
    int64_t wrong = 0;
    TRY(kernel_passes("place"));
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT) reduction(+ : wrong)
    for (int64_t i = 0; i < count; i++) {
        const uint64_t at = (uint64_t)positions[i] - (uint64_t)first;
        if (at >= (uint64_t)to_count)
            wrong++;
        else
            copy_element(out + at * element_bytes, in + (uint64_t)i * element_bytes, element_bytes);
    }
    *outside = wrong;
    return HSORT_OK;
}

/* ---- inspecting them ----------------------------------------------------------------------------------- */

static int64_t element_number(const struct engine_elements *elements, int64_t i)
{
    return elements->index ? elements->index[i] : elements->first + i * elements->step;
}

static void add_element(const struct engine_elements *elements, int64_t i, struct engine_inspection *found)
{
    uint64_t digest[2] = {0, 0}, place = 0;
    for (int part = 0; part < ENGINE_ELEMENT_PARTS; part++) {
        const size_t bytes = elements->part_bytes[part];
        if (bytes > 0)
            place = digest_add_bytes((const char *)elements->part[part] + (size_t)i * bytes, bytes, place,
                                     digest);
    }
    digest_shares(digest, element_number(elements, i), found->fingerprint, found->placed);
}

static uint128 element_code(const struct engine_elements *elements, int64_t i)
{
    uint128 code = 0;
    for (int field = 0; field < elements->field_count; field++)
        code |= field_code(&elements->field[field], i);
    return code;
}

/* Look at elements begin ... end - 1. The first of these is compared with the one before it, even if that is another
 * thread's. */
static void look_at_range(const struct engine_elements *elements, int64_t begin, int64_t end,
                          struct engine_inspection *found)
{
    const bool compares = elements->field_count > 0;
    uint128 before = begin > 0 ? element_code(elements, begin - 1) : 0;
    for (int64_t i = begin; i < end; i++) {
        const uint128 code = element_code(elements, i);
        add_element(elements, i, found);
        if (compares && i > 0 && code < before && i < found->first_descent)
            found->first_descent = i;
        if (compares && i > 0 && code == before && i < found->first_unstable &&
            element_number(elements, i) <= element_number(elements, i - 1))
            found->first_unstable = i;
        before = code;
    }
}

static void join_inspections(const struct engine_inspection *part, struct engine_inspection *found)
{
    for (int word = 0; word < 2; word++) {
        found->fingerprint[word] += part->fingerprint[word];
        found->placed[word] += part->placed[word];
    }
    if (part->first_descent < found->first_descent)
        found->first_descent = part->first_descent;
    if (part->first_unstable < found->first_unstable)
        found->first_unstable = part->first_unstable;
}

/* There is no critical section, because all of those without a name are one, and the caller may be in it. A thread does
 * not begin with a copy of omp_orig either, because another thread may have joined its part already. */
#pragma omp declare reduction(join : struct engine_inspection : join_inspections(&omp_in, &omp_out)) \
    initializer(omp_priv = (struct engine_inspection){.first_descent = INT64_MAX, .first_unstable = INT64_MAX})

hsort_status host_inspect_elements(struct engine *engine, const struct engine_elements *elements,
                                   struct engine_inspection *result)
{
    const int threads = host_threads(engine);
    const int64_t count = elements->count, last = count - 1;
    const int64_t words = 1 + (int64_t)(elements->part_bytes[0] + elements->part_bytes[1]) / 8;
    struct engine_inspection found = {.first_descent = count, .first_unstable = count};
    TRY(host_check_codes(sizeof(uint128), elements->field_count));
    *result = found;
    if (count == 0)
        return HSORT_OK;
#pragma omp parallel num_threads(threads) if (threads > 1 && count * words >= PARALLEL_COUNT) \
    reduction(join : found)
    {
        const int part = omp_get_thread_num(), parts = omp_get_num_threads();
        look_at_range(elements, part_begin(count, part, parts), part_begin(count, part + 1, parts), &found);
    }
    *result = found;
    result->first = element_code(elements, 0);
    result->last = element_code(elements, last);
    result->first_number = element_number(elements, 0);
    result->last_number = element_number(elements, last);
    return HSORT_OK;
}
