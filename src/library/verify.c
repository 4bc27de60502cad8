#include "src/library/verify.h"
#include <stdlib.h>
#include <string.h>

void verify_start(struct verifier *verifier, struct keymap map)
{
    memset(verifier, 0, sizeof *verifier);
    verifier->map = map;
    verifier->first_descent = -1;
}

hsort_status verify_add(struct verifier *verifier, struct engine *engine, const void *keys, int64_t count)
{
    if (count == 0)
        return HSORT_OK;
    struct engine_inspection found;
    TRY(engine->ops->inspect(engine, verifier->map, keys, count, &found));
    if (verifier->first_descent < 0) {
        if (verifier->count > 0 && found.first < verifier->last)
            verifier->first_descent = verifier->count;
        else if (found.first_descent < count)
            verifier->first_descent = verifier->count + found.first_descent;
    }
    if (verifier->count == 0)
        verifier->first = found.first;
    verifier->last = found.last;
    verifier->count += count;
    verifier->fingerprint[0] += found.fingerprint[0];
    verifier->fingerprint[1] += found.fingerprint[1];
    return HSORT_OK;
}

/* What a rank sends to the others; only 64-bit numbers, so that it is sent as such. */
struct verified_part {
    key_code first, last;
    int64_t count, first_descent;
    uint64_t fingerprint[2];
};

static void join_parts(const struct verified_part *parts, int size, hsort_check_result *result)
{
    const struct verified_part *before = NULL; // the last rank so far that has keys
    result->count = 0;
    result->first_disorder = -1;
    result->fingerprint[0] = result->fingerprint[1] = 0;
    for (int rank = 0; rank < size; rank++) {
        const struct verified_part *part = &parts[rank];
        if (part->count == 0)
            continue;
        if (result->first_disorder < 0) {
            if (before && part->first < before->last)
                result->first_disorder = result->count;
            else if (part->first_descent >= 0)
                result->first_disorder = result->count + part->first_descent;
        }
        result->count += part->count;
        result->fingerprint[0] += part->fingerprint[0];
        result->fingerprint[1] += part->fingerprint[1];
        before = part;
    }
}

hsort_status verify_finish(const struct verifier *verifier, struct comm *comm, hsort_check_result *result)
{
    struct verified_part own = {.first = verifier->first,
                                .last = verifier->last,
                                .count = verifier->count,
                                .first_descent = verifier->first_descent,
                                .fingerprint = {verifier->fingerprint[0], verifier->fingerprint[1]}};
    struct verified_part *parts = malloc((size_t)comm->size * sizeof *parts);
    hsort_status status =
        parts ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for the checks of %d ranks", comm->size);
    TRY(comm_agree(comm, status));
    status =
        comm_gather_words(comm, (const uint64_t *)&own, sizeof own / sizeof(uint64_t), (uint64_t *)parts);
    if (status == HSORT_OK)
        join_parts(parts, comm->size, result);
    free(parts);
    return status;
}
