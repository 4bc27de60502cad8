#include "src/command/records_unique.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/key_width.h"
#include "src/command/report.h"
#include "src/library/unique_codes.h"
#include "src/library/verify.h"

static int unique_code_bytes(const struct record_keys *keys, bool bare)
{
    return bare ? keys->key_bytes : keys->key_bytes <= 8 ? 8 : 16;
}

size_t unique_bytes(const struct record_keys *keys, bool bare, bool checks)
{
    const size_t codes = bare ? 0 : checks ? 2 : 1; // of all elements, and of those that are kept
    return codes * (size_t)unique_code_bytes(keys, bare) + 2 * sizeof(int64_t);
}

/* ---- Finding: the runs --------------------------------------------------------------------------------- */

/* codes [count] = the codes of elements. */
static hsort_status make_unique_codes(const struct unique_run *run, const void *elements, int64_t count,
                                      void *codes)
{
    struct key_field fields[HSORT_FIELDS_MAX];
    record_keys_point(run->keys, elements, run->bytes, fields);
    return run->engine->ops->make_codes(run->engine, run->code_bytes, codes, count, fields, run->keys->count,
                                        0, 0);
}

static hsort_status take_unique_codes(struct unique_run *run)
{
    const size_t entries = (size_t)run->count + 1;
    run->code_bytes = unique_code_bytes(run->keys, run->bare);
    run->first = malloc(entries * sizeof *run->first);
    run->counts = malloc(entries * sizeof *run->counts);
    run->codes = run->bare ? NULL : malloc(entries * (size_t)run->code_bytes);
    if (!run->first || !run->counts || (!run->bare && !run->codes))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the runs of equal keys");
    return run->bare ? HSORT_OK : make_unique_codes(run, run->sorted, run->count, run->codes);
}

hsort_status unique_find(struct unique_run *run)
{
    int64_t through;
    TRY(comm_agree(run->comm, take_unique_codes(run)));
    const hsort_status status =
        run->bare ? hsort_unique(run->ctx, run->keys->fields[0].type, run->sorted, run->count, NULL,
                                 &run->kept, run->counts, run->first, NULL, NULL)
                  : unique_codes(run->ctx, run->code_bytes, run->codes, run->count, &run->kept, run->counts,
                                 run->first);
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
    TRY_MPI(MPI_Scan(&run->kept, &through, 1, MPI_INT64_T, MPI_SUM, run->comm->world));
    run->kept_before = through - run->kept;
    return comm_sum(run->comm, run->kept, &run->kept_total);
}

hsort_status unique_keep(const struct unique_run *run, const void *column, size_t bytes, void *to)
{
    int64_t outside;
    TRY(run->engine->ops->take(run->engine,
                               &(struct engine_take){.element_bytes = bytes,
                                                     .to = to,
                                                     .from = {column},
                                                     .from_count = {run->count},
                                                     .positions = run->first,
                                                     .first = run->position,
                                                     .count = run->kept},
                               &outside));
    return outside == 0 ? HSORT_OK
                        : status_fail(HSORT_INTERNAL, "%lld runs begin on another rank", (long long)outside);
}

/* ---- Checks -------------------------------------------------------------------------------------------- */

/* Is each kept element the one where its run begins, and does the element before that have another key? */
static bool heads_are_right(const struct unique_run *run, const void *codes, const char *kept)
{
    const size_t bytes = run->bytes;
    bool right = true;
#pragma omp parallel for schedule(static) reduction(&& : right)
    for (int64_t k = 0; k < run->kept; k++) {
        const int64_t at = run->first[k] - run->position;
        right =
            right && at >= 0 && at < run->count &&
            memcmp(kept + (size_t)k * bytes, (const char *)run->sorted + (size_t)at * bytes, bytes) == 0 &&
            (at == 0 || key_load(run->code_bytes, codes, at) != key_load(run->code_bytes, codes, at - 1));
    }
    return right;
}

void unique_weigh(int code_bytes, const void *codes, const int64_t *counts, int64_t count, uint64_t sum[3])
{
    uint64_t a = 0, b = 0, all = 0;
#pragma omp parallel for schedule(static) reduction(+ : a, b, all)
    for (int64_t k = 0; k < count; k++) {
        const uint64_t times = (uint64_t)counts[k];
        uint64_t share[2] = {0, 0};
        key_fingerprint_add(code_bytes, key_load(code_bytes, codes, k), share);
        a += times * share[0];
        b += times * share[1];
        all += times;
    }
    sum[0] += a, sum[1] += b, sum[2] += all;
}

/* Look at what there is on this rank: *right; sum [3], zeros before, as unique_weigh() adds it up, minus the same of the sorted keys. */
static hsort_status look_at_kept(const struct unique_run *run, const char *kept, void *kept_codes,
                                 struct verifier *strict, bool *right, uint64_t sum[3])
{
    struct engine_inspection sorted;
    struct engine_elements rows = {
        .count = run->kept, .part = {kept}, .part_bytes = {run->bytes}, .field_count = run->keys->count};
    const void *codes = run->bare ? run->sorted : run->codes;
    record_keys_point(run->keys, kept, run->bytes, rows.field);
    TRY(verify_add_elements(strict, run->engine, &rows)); // with step 0, so equal keys are found
    if (!run->bare)
        TRY(make_unique_codes(run, kept, run->kept, kept_codes));
    TRY(run->engine->ops->inspect(run->engine, keymap_of_codes(run->code_bytes), codes, run->count, &sorted));
    *right = heads_are_right(run, codes, kept);
    unique_weigh(run->code_bytes, run->bare ? kept : kept_codes, run->counts, run->kept, sum);
    sum[0] -= sorted.fingerprint[0];
    sum[1] -= sorted.fingerprint[1];
    sum[2] -= (uint64_t)run->count;
    return HSORT_OK;
}

hsort_status unique_check(const struct unique_run *run, const void *kept, bool *right)
{
    struct verifier strict;
    hsort_check_result found;
    uint64_t sum[4] = {0}, all[4];
    void *kept_codes = run->bare ? NULL : malloc((size_t)(run->kept + 1) * (size_t)run->code_bytes);
    hsort_status status =
        run->bare || kept_codes ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for codes");
    verify_start(&strict, keymap_of_codes(sizeof(uint128)));
    if (status == HSORT_OK)
        status = look_at_kept(run, kept, kept_codes, &strict, right, sum);
    free(kept_codes);
    TRY(comm_agree(run->comm, status));
    TRY(verify_finish(&strict, run->comm, &found));
    sum[3] = !*right;
    TRY_MPI(MPI_Allreduce(sum, all, 4, MPI_UINT64_T, MPI_SUM, run->comm->world));
    *right = found.first_disorder < 0 && found.first_unstable < 0 && all[0] == 0 && all[1] == 0 &&
             all[2] == 0 && all[3] == 0;
    return HSORT_OK;
}

void unique_free(struct unique_run *run)
{
    free(run->codes);
    free(run->first);
    free(run->counts);
    run->codes = NULL;
    run->first = run->counts = NULL;
}
