#include "src/library/disk_plan.h"
#include "kernels/base/lesser.h"
#include "kernels/base/size_text.h"
#include "src/library/disk_cuts.h"

enum {
    FENCE_BYTES = 8 << 10, /* from one fence to the next at least, */
    FENCE_ELEMENTS = 64,   /* and so many elements at least, because fences also lie on the disk, */
    FENCE_SHARE = 64,      /* and so many that all fences take at most this part of memory */
    WINDOW_SHARE = 16      /* the part of memory for what is read of runs to cut them */
};

bool disk_plan_needs(bool on_host, size_t sort_bytes, bool in_two_passes, size_t run_bytes,
                     size_t memory_bytes)
{
    return on_host ? sort_bytes > memory_bytes : in_two_passes && run_bytes > memory_bytes;
}

size_t disk_plan_window_bytes(size_t memory_bytes)
{
    return memory_bytes / WINDOW_SHARE;
}

/* ---- how long a part may be ---------------------------------------------------------------------------- */

/* Bytes for slots and workspace; with the host engine also for tables, which are in the same memory. */
static size_t bytes_for_slots(const struct disk_sizes *sizes)
{
    const size_t rest =
        sizes->memory_bytes - sizes->memory_bytes / FENCE_SHARE - disk_plan_window_bytes(sizes->memory_bytes);
    return sizes->on_host ? lesser_bytes(sizes->engine_bytes, rest) : sizes->engine_bytes;
}

/* Elements from one fence to the next, at least. */
static int64_t least_distance(size_t element_bytes)
{
    return greater(divide_up(FENCE_BYTES, (int64_t)element_bytes), FENCE_ELEMENTS);
}

/* Bytes that slots of so many elements take, with all that belongs to them. */
static hsort_status slot_bytes_of(const struct disk_sizes *sizes, int64_t elements, size_t *bytes)
{
    size_t workspace_bytes;
    TRY(sizes->workspace(sizes->workspace_user, elements, &workspace_bytes));
    *bytes = PASS_SLOTS * pass_slot_bytes(elements, sizes->element_bytes) + workspace_bytes;
    if (sizes->on_host)
        *bytes += disk_cuts_bytes(divide_up(sizes->elements, elements), sizes->ranks) +
                  (size_t)divide_up(elements, least_distance(sizes->element_bytes)) *
                      sizes->element_bytes; // fences of the run that goes out
    return HSORT_OK;
}

/* bytes: what would do for slots and all that belongs to them. */
static hsort_status fail_lacking(const struct disk_sizes *sizes, size_t bytes)
{
    char takes[SIZE_TEXT_BYTES], has[SIZE_TEXT_BYTES], enough[SIZE_TEXT_BYTES];
    const size_t have = bytes_for_slots(sizes),
                 all = bytes + bytes / 8; // with fences and windows, and some more
    if (!sizes->on_host || have == sizes->engine_bytes)
        return status_fail(HSORT_HOST_MEMORY,
                           "%lld elements of %zu bytes, in %d runs at most, take %s of engine memory on each "
                           "rank, but it may use %s: give more (--device-memory)",
                           (long long)sizes->elements, sizes->element_bytes, DISK_PARTS_MAX,
                           size_text(bytes, takes), size_text(have, has));
    return status_fail(HSORT_HOST_MEMORY,
                       "%lld elements of %zu bytes, in %d runs at most, take %s of memory on each rank, but "
                       "it may use %s: -S %s would do",
                       (long long)sizes->elements, sizes->element_bytes, DISK_PARTS_MAX,
                       size_text(all, takes), size_text(sizes->memory_bytes, has),
                       size_option_text(all, enough));
}

hsort_status disk_plan_longest(const struct disk_sizes *sizes, int64_t *elements)
{
    const int64_t least = divide_up(sizes->elements, DISK_PARTS_MAX);
    const size_t have = bytes_for_slots(sizes);
    size_t need, least_need = SIZE_MAX;
    // Few runs make long pieces. A slot may be longer than a rank's share, because parts of an earlier call, on fewer ranks, may be
    // longer. No formula says what a slot needs: the workspace grows with it, and tables grow as it shrinks.
    for (int64_t slot = sizes->elements; slot >= least; slot -= slot / 32 + 1) {
        TRY(slot_bytes_of(sizes, slot, &need));
        if (need <= have) {
            *elements = slot;
            return HSORT_OK;
        }
        least_need = lesser_bytes(least_need, need);
    }
    return fail_lacking(sizes, least_need);
}

/* ---- parts --------------------------------------------------------------------------------------------- */

/* Elements from one fence of a run to the next. */
static int64_t fence_distance(const struct disk_sizes *sizes, const struct run_plan *plan)
{
    const size_t most = sizes->memory_bytes / FENCE_SHARE, bytes = disk_cuts_fence_bytes(plan->element_bytes);
    const int64_t runs = divide_up(plan->parts, sizes->ranks);
    int64_t step = least_distance(plan->element_bytes);
    while (step < plan->part_elements && (size_t)(runs * divide_up(plan->part_elements, step)) * bytes > most)
        step *= 2;
    return step;
}

void disk_plan_parts(const struct disk_sizes *sizes, int64_t most_elements, struct run_plan *plan)
{
    const int64_t fewest = divide_up(divide_up(sizes->elements, most_elements), sizes->ranks) * sizes->ranks;
    const int64_t wanted = lesser(greater(sizes->wanted_parts, fewest), DISK_PARTS_MAX);
    *plan = (struct run_plan){
        .elements = sizes->elements, .element_bytes = sizes->element_bytes, .most_elements = most_elements};
    plan->part_elements = lesser(divide_up(plan->elements, wanted), most_elements);
    plan->parts = divide_up(plan->elements, plan->part_elements);
    plan->fence_elements = fence_distance(sizes, plan);
}

int64_t plan_part_count(const struct run_plan *plan, int64_t part)
{
    return lesser(plan->part_elements, plan->elements - part * plan->part_elements);
}

int64_t plan_fences(const struct run_plan *plan, int64_t run)
{
    return divide_up(plan_part_count(plan, run), plan->fence_elements);
}

int64_t plan_run_bytes(const struct run_plan *plan, int64_t run)
{
    return (plan_part_count(plan, run) + plan_fences(plan, run)) * (int64_t)plan->element_bytes;
}

int64_t plan_bytes(const struct run_plan *plan)
{
    int64_t bytes = 0;
    for (int64_t run = 0; run < plan->parts; run++)
        bytes += plan_run_bytes(plan, run);
    return bytes;
}
