#include "src/library/disk_forecast.h"
#include "kernels/engine.h"
#include "src/library/sort_memory.h"

/* Of the keys, that the local sort takes on a GPU. */
enum { GPU_WORKSPACE_PART = 28 };

/* What a slot's workspace follows from: the host engine, or of a GPU, which need not be here, a part of the keys. */
struct planned_sort {
    struct engine *host; /* or NULL */
    int key_bytes;
};

/* Of a sort of so many keys with as much scratch. */
static hsort_status workspace_of(const struct planned_sort *sort, int64_t keys, size_t *bytes)
{
    *bytes = (size_t)keys * (size_t)sort->key_bytes / GPU_WORKSPACE_PART;
    return sort->host ? sort->host->ops->sort_workspace(sort->host, -1, sort->key_bytes, keys, keys, bytes)
                      : HSORT_OK;
}

/* pass_workspace_fn. */
static hsort_status slot_workspace(void *planned_sort, int64_t keys, size_t *bytes)
{
    return workspace_of(planned_sort, keys, bytes);
}

static hsort_status goes_by_disk(const struct disk_question *q, struct planned_sort *sort, bool *by_disk)
{
    const hsort_plan_result *plan = q->plan;
    const size_t run_bytes = (size_t)plan->shard_capacity * (size_t)q->key_bytes;
    size_t workspace_bytes;
    *by_disk = false;
    if (q->count == 0 || KEY_IS_COUNTED(q->key_bytes))
        return HSORT_OK;
    TRY(workspace_of(sort, plan->shard_capacity, &workspace_bytes));
    *by_disk = q->wanted_parts > 0 || disk_plan_needs(sort->host != NULL, 2 * run_bytes + workspace_bytes,
                                                      plan->passes != 1, run_bytes, q->memory_bytes);
    return HSORT_OK;
}

static hsort_status forecast_parts(const struct disk_question *q, struct planned_sort *sort,
                                   struct disk_forecast *forecast)
{
    const double engine = q->rates->engine_bytes;
    const size_t limit = engine > 0 && engine < 9e18 ? (size_t)engine : INT64_MAX;
    const struct disk_sizes sizes = {.elements = q->count,
                                     .element_bytes = (size_t)q->key_bytes,
                                     .ranks = q->ranks,
                                     .wanted_parts = q->wanted_parts,
                                     .memory_bytes = q->memory_bytes,
                                     .engine_bytes = usable_bytes(limit),
                                     .on_host = sort->host != NULL,
                                     .workspace = slot_workspace,
                                     .workspace_user = sort};
    struct run_plan plan;
    int64_t longest;
    TRY(goes_by_disk(q, sort, &forecast->by_disk));
    if (!forecast->by_disk)
        return HSORT_OK;
    TRY(disk_plan_longest(&sizes, &longest));
    disk_plan_parts(&sizes, longest, &plan);
    forecast->parts = plan.parts;
    forecast->part_elements = plan.part_elements;
    forecast->temporary_bytes = plan_bytes(&plan);
    if (q->disk.read > 0 && q->disk.write > 0)
        forecast->cost = cost_disk_passes(q->rates, &q->disk, &plan, q->ranks);
    return HSORT_OK;
}

hsort_status disk_forecast_make(const struct disk_question *question, struct disk_forecast *forecast)
{
    const bool on_host = question->rates->engine == HSORT_ENGINE_HOST;
    struct planned_sort sort = {.key_bytes = question->key_bytes};
    *forecast =
        (struct disk_forecast){.fixed_bytes = on_host ? DISK_FIXED_BYTES_HOST : DISK_FIXED_BYTES_CUDA};
    if (on_host)
        TRY(engine_open_host(question->threads, 0, &sort.host));
    const hsort_status status = forecast_parts(question, &sort, forecast);
    if (sort.host)
        sort.host->ops->close(sort.host);
    return status;
}
