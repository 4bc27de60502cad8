#include "ladder.h"

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

extern "C" hsort_status ladder_sort(struct cuda_engine *engine, int rung, struct rung_job *job)
{
    job->sorted_keys = job->keys;
    job->sorted_values = job->values;
    switch (rung) {
#define X(number, name, ...) \
    case number:             \
        return job->count > 1 ? rung_##number##_##name(engine, job) : HSORT_OK;
        LADDER(X)
#undef X
    }
    return fail_rung(rung);
}
