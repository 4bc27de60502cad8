#include "kernels/base/lesser.h"
#include "src/library/disk_forecast.h"
#include "kernels/engine.h"
#include "src/library/context_memory.h"
#include "src/library/element_call.h"
#include "src/library/element_need.h"
#include "src/library/pass_sort.h"

/* The workspace of the local sort on a GPU is one part in so many of the keys' bytes. */
enum { GPU_WORKSPACE_PART = 28 };

/* What is to be sorted, and where: on the host engine, or on a GPU, which need not be here. */
struct planned_sort {
    const struct disk_question *question;
    struct engine *host; /* or NULL */
    int key_bits;        /* of elements; 0: bare keys */
};

/* element_workspace_fn: for a GPU, a part of the keys. */
static hsort_status workspace_of_planned(void *planned_sort, int rung, int key_bytes, int64_t keys,
                                         size_t *bytes)
{
    const struct planned_sort *sort = planned_sort;
    *bytes = (size_t)keys * (size_t)key_bytes / GPU_WORKSPACE_PART;
    return sort->host ? sort->host->ops->sort_workspace(sort->host, rung, key_bytes, keys, keys, bytes)
                      : HSORT_OK;
}

/* What is sorted in a slot: keys, or codes. */
static struct slot_codes codes_of(const struct planned_sort *sort, int64_t slot)
{
    return sort->key_bits > 0 ? pass_slot_codes(sort->key_bits, slot)
                              : (struct slot_codes){.bytes = sort->question->key_bytes};
}

/* pass_workspace_fn. */
static hsort_status slot_workspace(void *planned_sort, int64_t slot, size_t *bytes)
{
    const struct slot_codes codes = codes_of(planned_sort, slot);
    TRY(workspace_of_planned(planned_sort, -1, codes.bytes, slot, bytes));
    *bytes += 2 * codes.room;
    return HSORT_OK;
}

static size_t planned_engine_bytes(const struct disk_question *q)
{
    const double engine = q->rates->engine_bytes;
    return usable_bytes(engine > 0 && engine < 9e18 ? (size_t)engine : INT64_MAX);
}

/* ---- bare keys, and elements --------------------------------------------------------------------------- */

static hsort_status keys_need_disk(struct planned_sort *sort, bool *needs)
{
    const struct disk_question *q = sort->question;
    const size_t run_bytes = (size_t)q->plan->shard_capacity * (size_t)q->key_bytes;
    size_t workspace_bytes;
    *needs = false;
    if (KEY_IS_COUNTED(q->key_bytes))
        return HSORT_OK;
    TRY(workspace_of_planned(sort, -1, q->key_bytes, q->plan->shard_capacity, &workspace_bytes));
    *needs = q->wanted_parts > 0 || disk_plan_needs(sort->host != NULL, 2 * run_bytes + workspace_bytes,
                                                    q->plan->passes != 1, run_bytes, q->memory_bytes);
    return HSORT_OK;
}

/* As columns_need_store() says, for the rank that has most. */
static hsort_status elements_need_disk(struct planned_sort *sort, struct disk_forecast *forecast)
{
    const struct disk_question *q = sort->question;
    const int64_t capacity = divide_up(q->count, q->ranks);
    const size_t share = (size_t)capacity * q->out_bytes;
    const int bits = sort->key_bits + element_position_bits(q->count);
    const struct element_sizes sizes = {.ranks = q->ranks,
                                        .total = q->count,
                                        .count = capacity,
                                        .out_count = capacity,
                                        .code_bytes = element_code_bytes(bits),
                                        .rung = -1,
                                        .in_two_rounds = bits > ELEMENT_CODE_BITS,
                                        .carried_bytes = q->carried_bytes};
    struct element_need need;
    TRY(element_need_find(&sizes, workspace_of_planned, sort, &need));
    const size_t all = (size_t)capacity * (q->in_bytes + q->out_bytes) + element_need_bytes(&need);
    forecast->one_pass_bytes = all;
    forecast->two_passes = all > planned_engine_bytes(q);
    const size_t of_gpu =
        forecast->two_passes ? share : 2 * share; // host memory beside the GPU's: runs, or both files
    forecast->by_disk = q->wanted_parts > 0 || (sort->host ? all : of_gpu) > q->memory_bytes ||
                        (size_t)capacity * q->array_bytes > q->memory_bytes;
    return HSORT_OK;
}

static hsort_status count_key_bits(struct planned_sort *sort)
{
    const struct disk_question *q = sort->question;
    struct element_order order = {0};
    if (q->element_bytes == 0)
        return HSORT_OK;
    TRY(element_take_fields(&order, q->fields, q->field_count, q->element_bytes));
    sort->key_bits = element_place_fields(order.fields, order.field_count, 0);
    return HSORT_OK;
}

/* Add what the outputs take that are dealt out. */
static void add_deal(const struct disk_question *q, size_t element_bytes, struct disk_forecast *forecast)
{
    const double bytes = (double)q->count * (double)element_bytes;
    if (q->deal_reads == 0)
        return;
    forecast->sorted_bytes = q->count * (int64_t)element_bytes;
    if (forecast->cost.total_seconds <= 0)
        return;
    const double seconds = q->deal_reads * bytes / q->disk.read + bytes / q->disk.write;
    forecast->cost.seconds[HSORT_PHASE_MERGE] += seconds;
    forecast->cost.total_seconds += seconds;
}

/* ---- parts --------------------------------------------------------------------------------------------- */

static hsort_status forecast_parts(struct planned_sort *sort, struct disk_forecast *forecast)
{
    const struct disk_question *q = sort->question;
    const bool bare = sort->key_bits == 0;
    const struct disk_sizes sizes = {.elements = q->count,
                                     .element_bytes = bare ? (size_t)q->key_bytes : q->element_bytes,
                                     .ranks = q->ranks,
                                     .wanted_parts = q->wanted_parts,
                                     .memory_bytes = q->memory_bytes,
                                     .engine_bytes = planned_engine_bytes(q),
                                     .on_host = sort->host != NULL,
                                     .workspace = slot_workspace,
                                     .workspace_user = sort};
    struct run_plan plan;
    int64_t longest;
    if (q->count == 0)
        return HSORT_OK;
    TRY(bare ? keys_need_disk(sort, &forecast->by_disk) : elements_need_disk(sort, forecast));
    if (!forecast->by_disk)
        return HSORT_OK;
    TRY(disk_plan_longest(&sizes, &longest));
    disk_plan_parts(&sizes, longest, &plan);
    forecast->parts = plan.parts;
    forecast->part_elements = plan.part_elements;
    forecast->temporary_bytes = plan_bytes(&plan);
    if (q->disk.read > 0 && q->disk.write > 0)
        forecast->cost = cost_disk_passes(q->rates, &q->disk, &plan, q->ranks,
                                          codes_of(sort, plan.part_elements).bytes, !bare);
    add_deal(q, sizes.element_bytes, forecast);
    return HSORT_OK;
}

hsort_status disk_forecast_make(const struct disk_question *question, struct disk_forecast *forecast)
{
    const bool on_host = question->rates->engine == HSORT_ENGINE_HOST;
    struct planned_sort sort = {.question = question};
    *forecast =
        (struct disk_forecast){.fixed_bytes = on_host ? DISK_FIXED_BYTES_HOST : DISK_FIXED_BYTES_CUDA};
    TRY(count_key_bits(&sort));
    if (on_host)
        TRY(engine_open_host(question->threads, 0, &sort.host));
    const hsort_status status = forecast_parts(&sort, forecast);
    if (sort.host)
        sort.host->ops->close(sort.host);
    return status;
}
