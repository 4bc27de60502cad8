#include "kernels/cuda/ladder/ladder.h"

static hsort_status fail_rung(int rung)
{
#define X(number, name, ...) " " #number " (" #name ")"
    return status_fail(HSORT_ARGUMENT, "the cuda engine has no rung %d; it has" LADDER(X), rung);
#undef X
}

extern "C" hsort_status ladder_workspace(struct cuda_engine *engine, int rung, const struct rung_job *job,
                                         size_t *bytes)
{
    *bytes = 0;
    switch (rung) {
#define X(number, name, ...) \
    case number:             \
        return job->count > 1 ? rung_##number##_##name##_workspace(engine, job, bytes) : HSORT_OK;
        LADDER(X)
#undef X
    }
    return fail_rung(rung);
}

extern "C" hsort_status ladder_encode(struct cuda_engine *engine, const struct rung_job *job)
{
    const struct raw_keys *raw = job->raw;
    return raw && job->count > 0 ? keys_encode(engine, raw->map, job->keys, raw->from, job->count)
                                  : HSORT_OK;
}

extern "C" hsort_status ladder_decode(struct cuda_engine *engine, const struct rung_job *job,
                                      const void *sorted)
{
    return job->raw && job->raw->decode && job->count > 0
               ? keys_decode(engine, job->raw->map, job->keys, sorted, job->count)
               : HSORT_OK;
}

static hsort_status sort_nothing(struct cuda_engine *, struct rung_job *)
{
    return HSORT_OK;
}

extern "C" hsort_status ladder_sort_codes(struct cuda_engine *engine, struct rung_job *job,
                                          hsort_status (*rung)(struct cuda_engine *, struct rung_job *))
{
    struct rung_job codes = *job;
    codes.raw = NULL;
    TRY(ladder_encode(engine, job));
    TRY(rung(engine, &codes));
    TRY(ladder_decode(engine, job, codes.sorted_keys));
    job->sorted_keys = job->raw && job->raw->decode ? job->keys : codes.sorted_keys;
    job->sorted_values = codes.sorted_values;
    return HSORT_OK;
}

extern "C" hsort_status ladder_sort(struct cuda_engine *engine, int rung, struct rung_job *job)
{
    job->sorted_keys = job->keys;
    job->sorted_values = job->values;
    switch (rung) {
#define X(number, name, order, kind, takes, ...)                                  \
    case number:                                                                  \
        if (RUNG_##takes == RUNG_BITS && job->value_bytes == 0 && job->count > 1) \
            return rung_##number##_##name(engine, job);                           \
        return ladder_sort_codes(engine, job, job->count > 1 ? rung_##number##_##name : sort_nothing);
        LADDER(X)
#undef X
    }
    return fail_rung(rung);
}
