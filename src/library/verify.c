#include "src/library/verify.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void verify_start(struct verifier *verifier, struct keymap map)
{
    memset(verifier, 0, sizeof *verifier);
    verifier->map = map;
    verifier->first_descent = verifier->first_unstable = -1;
}

/* A place in the next chunk, as a place among all keys; -1: there is no such place. */
static int64_t place_among_all(const struct verifier *verifier, int64_t place, int64_t count)
{
    return place < count ? verifier->count + place : -1;
}

static void add_chunk(struct verifier *verifier, const struct engine_inspection *found, int64_t count)
{
    if (verifier->first_descent < 0)
        verifier->first_descent = verifier->count > 0 && found->first < verifier->last
                                      ? verifier->count
                                      : place_among_all(verifier, found->first_descent, count);
    if (verifier->count == 0)
        verifier->first = found->first;
    verifier->last = found->last;
    verifier->count += count;
    for (int word = 0; word < 2; word++)
        verifier->fingerprint[word] += found->fingerprint[word];
}

/* Add what elements have besides; this comes before add_chunk(). */
static void add_numbers(struct verifier *verifier, const struct engine_inspection *found, int64_t count,
                        bool compares)
{
    const bool meets_equal = compares && verifier->count > 0 && found->first == verifier->last &&
                             found->first_number <= verifier->last_number;
    if (verifier->first_unstable < 0)
        verifier->first_unstable =
            meets_equal ? verifier->count : place_among_all(verifier, found->first_unstable, count);
    if (verifier->count == 0)
        verifier->first_number = found->first_number;
    verifier->last_number = found->last_number;
    verifier->numbered = compares;
    for (int word = 0; word < 2; word++)
        verifier->placed[word] += found->placed[word];
}

hsort_status verify_add(struct verifier *verifier, struct engine *engine, const void *keys, int64_t count)
{
    struct engine_inspection found;
    if (count == 0)
        return HSORT_OK;
    TRY(engine->ops->inspect(engine, verifier->map, keys, count, &found));
    add_chunk(verifier, &found, count);
    return HSORT_OK;
}

hsort_status verify_add_elements(struct verifier *verifier, struct engine *engine,
                                 const struct engine_elements *elements)
{
    struct engine_inspection found;
    if (elements->count == 0)
        return HSORT_OK;
    TRY(engine->ops->inspect_elements(engine, elements, &found));
    add_numbers(verifier, &found, elements->count, elements->field_count > 0);
    add_chunk(verifier, &found, elements->count);
    return HSORT_OK;
}

void verify_append(struct verifier *verifier, const struct verifier *next)
{
    const int64_t count = next->count;
    const struct engine_inspection found = {
        .first_descent = next->first_descent < 0 ? count : next->first_descent,
        .first = next->first,
        .last = next->last,
        .fingerprint = {next->fingerprint[0], next->fingerprint[1]},
        .first_unstable = next->first_unstable < 0 ? count : next->first_unstable,
        .first_number = next->first_number,
        .last_number = next->last_number,
        .placed = {next->placed[0], next->placed[1]}};
    if (count == 0)
        return;
    add_numbers(verifier, &found, count, next->numbered);
    add_chunk(verifier, &found, count);
}

/* The first place that is not -1: one found before, the border, or one inside of the part that begins at `begin`. */
static int64_t first_place(int64_t before, bool at_border, int64_t begin, int64_t inside)
{
    return before >= 0 ? before : at_border ? begin : inside >= 0 ? begin + inside : -1;
}

static void join_parts(const struct verifier *parts, int size, hsort_check_result *result)
{
    const struct verifier *before = NULL; // the last rank so far that has keys
    *result = (hsort_check_result){.first_disorder = -1, .first_unstable = -1};
    for (int rank = 0; rank < size; rank++) {
        const struct verifier *part = &parts[rank];
        if (part->count == 0)
            continue;
        result->first_disorder = first_place(result->first_disorder, before && part->first < before->last,
                                             result->count, part->first_descent);
        result->first_unstable = first_place(result->first_unstable,
                                             before && part->numbered && part->first == before->last &&
                                                 part->first_number <= before->last_number,
                                             result->count, part->first_unstable);
        result->count += part->count;
        for (int word = 0; word < 2; word++) {
            result->fingerprint[word] += part->fingerprint[word];
            result->placed_fingerprint[word] += part->placed[word];
        }
        before = part;
    }
}

hsort_status verify_finish(const struct verifier *verifier, struct comm *comm, hsort_check_result *result)
{
    static_assert(sizeof *verifier % sizeof(uint64_t) == 0, "it is sent as whole words");
    struct verifier *parts = malloc((size_t)comm->size * sizeof *parts);
    hsort_status status =
        parts ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for the checks of %d ranks", comm->size);
    status = comm_agree(comm, status);
    if (status == HSORT_OK)
        status = comm_gather_words(comm, (const uint64_t *)verifier, sizeof *verifier / sizeof(uint64_t),
                                   (uint64_t *)parts);
    if (status == HSORT_OK)
        join_parts(parts, comm->size, result);
    free(parts);
    return status;
}
