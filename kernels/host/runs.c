/* Runs of equal keys: each thread has a part of the keys, whose heads are counted first, so that it knows where to
 * write them. */
#include "kernels/host/host_engine.h"

/* Where a part starts in the results, and what follows it. */
struct runs_part {
    int64_t from, until; /* of the keys */
    int64_t heads;       /* in this part and all before it */
    int64_t next;        /* position of the next head behind it, or the end of the last run */
};

#define KEY_WIDTH_BODY "kernels/host/runs_body.h"
#include "kernels/host/for_any_key_width.h"

static int parts_of_runs(const struct engine *engine, int64_t count)
{
    const int threads = host_threads(engine), most = threads < ENGINE_RUN_PARTS ? threads : ENGINE_RUN_PARTS;
    return count < PARALLEL_COUNT ? 1 : most;
}

static void count_part(struct engine_runs *runs, int part, int parts)
{
    const int64_t from = part_begin(runs->count, part, parts),
                  until = part_begin(runs->count, part + 1, parts);
    KEY_CALL_ANY(runs->key_bytes, count_heads, runs, from, until, &runs->part_heads[part],
             &runs->part_first[part]);
}

hsort_status host_count_runs(struct engine *engine, struct engine_runs *runs)
{
    const int parts = parts_of_runs(engine, runs->count);
    TRY(kernel_looks("runs", runs->key_bytes));
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int part = 0; part < parts; part++)
        count_part(runs, part, parts);
    runs->found = 0;
    runs->first_head = runs->count;
    for (int part = parts - 1; part >= 0; part--) {
        runs->found += runs->part_heads[part];
        if (runs->part_heads[part] > 0)
            runs->first_head = runs->part_first[part];
    }
    return HSORT_OK;
}

static void write_part(const struct engine_runs *runs, int part, int parts)
{
    struct runs_part p = {.from = part_begin(runs->count, part, parts),
                         .until = part_begin(runs->count, part + 1, parts),
                         .next = runs->end};
    for (int i = 0; i <= part; i++)
        p.heads += runs->part_heads[i];
    for (int i = parts - 1; i > part; i--)
        if (runs->part_heads[i] > 0)
            p.next = runs->position + runs->part_first[i];
    KEY_CALL_ANY(runs->key_bytes, write_heads, runs, &p);
}

hsort_status host_write_runs(struct engine *engine, const struct engine_runs *runs)
{
    const int parts = parts_of_runs(engine, runs->count);
    TRY(kernel_looks("runs", runs->key_bytes));
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int part = 0; part < parts; part++)
        write_part(runs, part, parts);
    return HSORT_OK;
}
