/* Dealing out (disk_deal.h): each rank reads its share of the sorted elements in blocks, as many as the others, and writes each column
 * of them to its output. Between two blocks ranks agree whether all go on.
 *
 * With --unique it is read twice, since a rank must know how many elements those before it keep, and where the next run of equal
 * keys begins:
 *
 *     sorted     5 5 7 | 7 7 7 | 9         heads      0 2 | - | 6        where runs begin: known after the first reading
 *     kept       5 7   |       | 9         counts     2 4 | - | 1        the last one of a rank: up to the next head of any rank */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/key_width.h"
#include "src/command/disk_deal.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/records_unique.h"
#include "src/command/report.h"
#include "src/command/stop.h"

/* What else is in memory for each element of a block: codes, heads, counts. */
enum { BESIDE_BYTES = 16 + 8 + 8 };

struct deal_run {
    struct comm *comm;
    struct disk_deal *deal;
    const struct file_out *sorted;
    struct progress *progress;
    struct record_io io;
    bool looks, rereads, unique;
    int64_t first, count; /* of this rank, among the sorted elements */
    int64_t block;        /* elements at a time, the same on every rank */
    char *elements;       /* [block] owned, as the three below */
    char *packed;         /* [block] one column of them */
    struct verifier seen; /* all of them */
    struct verifier written[FILE_OUTPUTS];

    /* with --unique: */
    int code_bytes;
    char *codes;             /* [1 + block] the first is that of the run whose end is not known yet */
    int64_t *heads, *counts; /* [1 + block] each */
    bool has_before;
    key_code before;               /* of the element before the block */
    int64_t kept, kept_before;     /* of this rank, and of those before it */
    int64_t first_head, next_head; /* of this rank, or -1; of those behind it, or the end */
    int64_t open_head;             /* where the run begins whose end is not known yet, or -1 */
    int64_t dealt, counted;        /* of those kept */
    struct verifier strict;        /* what is kept */
    uint64_t sum[3];
};

/* ---- Memory -------------------------------------------------------------------------------------------- */

static hsort_status take_deal_memory(struct deal_run *run)
{
    const struct disk_deal *deal = run->deal;
    const size_t each = 2 * deal->element_bytes + BESIDE_BYTES;
    const size_t most = deal->memory_bytes / 4 / each, usual = CLI_CHUNK_BYTES / deal->element_bytes;
    run->block = (int64_t)(most < usual ? most : usual);
    run->block = run->block > 0 ? run->block : 1;
    const size_t count = (size_t)run->block + 1;
    run->elements = malloc(count * deal->element_bytes);
    run->packed = malloc(count * deal->element_bytes);
    run->codes = run->unique ? malloc(count * (size_t)run->code_bytes) : NULL;
    run->heads = run->unique ? malloc(count * sizeof *run->heads) : NULL;
    run->counts = run->unique ? malloc(count * sizeof *run->counts) : NULL;
    const bool lacks = run->unique && (!run->codes || !run->heads || !run->counts);
    if (!run->elements || !run->packed || lacks || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory to deal out %s", deal->main_output);
    return HSORT_OK;
}

static void free_deal_run(struct deal_run *run)
{
    record_io_close(&run->io);
    free(run->elements);
    free(run->packed);
    free(run->codes);
    free(run->heads);
    free(run->counts);
}

/* ---- Columns of a block -------------------------------------------------------------------------------- */

/* packed [count * bytes] = a column of elements [count], which begins at byte `base` of each. */
static void pack_column(const struct deal_run *run, size_t base, size_t bytes, int64_t count)
{
    const size_t width = run->deal->element_bytes;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        memcpy(run->packed + (size_t)i * bytes, run->elements + (size_t)i * width + base, bytes);
}

/* Elements of an output from `first` of all on. */
static hsort_status write_dealt(struct deal_run *run, int out, int64_t first, int64_t count, const void *part)
{
    const struct file_out *file = &run->deal->out[out];
    const struct engine_elements rows = record_keys_elements(NULL, part, file->key_bytes, first, count);
    if (run->rereads)
        TRY(verify_add_elements(&run->written[out], run->io.engine, &rows));
    return record_io_write(&run->io, file, first, count, part);
}

/* Elements [count] at run->elements to all outputs but that of counts. */
static hsort_status write_columns(struct deal_run *run, int64_t first, int64_t count)
{
    const struct disk_deal *deal = run->deal;
    size_t base[DEAL_COLUMNS] = {0};
    for (int c = 1; c < deal->columns; c++)
        base[c] = base[c - 1] + deal->column[c - 1].bytes;
    for (int out = 0; out < deal->outs && count > 0; out++) {
        const int c = deal->column_of[out];
        if (c == DEAL_COLUMNS)
            continue;
        if (deal->columns > 1)
            pack_column(run, base[c], deal->column[c].bytes, count);
        TRY(write_dealt(run, out, first, count, deal->columns > 1 ? run->packed : run->elements));
    }
    return HSORT_OK;
}

static hsort_status look_at_block(struct deal_run *run, int64_t first, int64_t count)
{
    if (!run->looks)
        return HSORT_OK;
    if (run->deal->bare)
        return verify_add(&run->seen, run->io.engine, run->elements, count);
    struct engine_elements rows =
        record_keys_elements(&run->deal->keys, run->elements, run->deal->element_bytes, first, count);
    if (run->deal->options->index) { // the last column: positions rise where keys are equal
        pack_column(run, run->deal->element_bytes - sizeof(int64_t), sizeof(int64_t), count);
        rows.index = (const int64_t *)(const void *)run->packed;
    }
    return verify_add_elements(&run->seen, run->io.engine, &rows);
}

static hsort_status read_block(struct deal_run *run, int64_t first, int64_t count)
{
    struct trace_span *span = trace_begin(run->comm->trace, "read sorted");
    trace_bytes(span, count * (int64_t)run->deal->element_bytes);
    return trace_end_with(span, record_io_read_back(&run->io, run->sorted, first, count, run->elements));
}

static hsort_status deal_block(struct deal_run *run, int64_t first, int64_t count)
{
    TRY(read_block(run, first, count));
    TRY(look_at_block(run, first, count));
    return write_columns(run, first, count);
}

/* ---- Of each key one ----------------------------------------------------------------------------------- */

static char *code_at(const struct deal_run *run, int64_t i)
{
    return run->codes + (size_t)i * (size_t)run->code_bytes;
}

/* Codes of elements [count], from run->codes[1] on. */
static hsort_status make_block_codes(struct deal_run *run, int64_t count)
{
    struct key_field fields[HSORT_FIELDS_MAX];
    record_keys_point(&run->deal->keys, run->elements, run->deal->element_bytes, fields);
    return run->io.engine->ops->make_codes(run->io.engine, run->code_bytes, code_at(run, 1), count, fields,
                                           run->deal->keys.count, 0, 0);
}

/* heads [returned] = which elements of the block differ from the one before. */
static int64_t find_heads(struct deal_run *run, int64_t count)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        const key_code code = key_load(run->code_bytes, code_at(run, 1), i);
        if (!run->has_before || code != run->before)
            run->heads[found++] = i;
        run->before = code;
        run->has_before = true;
    }
    return found;
}

/* A share is about to be read: what lies before it? */
static hsort_status look_before(struct deal_run *run)
{
    run->has_before = false;
    run->open_head = -1;
    if (run->first == 0 || run->count == 0)
        return HSORT_OK;
    TRY(record_io_read_back(&run->io, run->sorted, run->first - 1, 1, run->elements));
    TRY(make_block_codes(run, 1));
    (void)find_heads(run, 1);
    return HSORT_OK;
}

static hsort_status count_block(struct deal_run *run, int64_t first, int64_t count)
{
    TRY(read_block(run, first, count));
    TRY(make_block_codes(run, count));
    const int64_t found = find_heads(run, count);
    if (run->first_head < 0 && found > 0)
        run->first_head = first + run->heads[0];
    run->kept += found;
    return HSORT_OK;
}

/* Runs [count] that have ended, whose codes begin at run->codes[from]. */
static hsort_status end_runs(struct deal_run *run, int64_t from, int64_t count)
{
    if (run->looks)
        unique_weigh(run->code_bytes, code_at(run, from), run->counts, count, run->sum);
    for (int out = 0; out < run->deal->outs && count > 0; out++)
        if (run->deal->column_of[out] == DEAL_COLUMNS)
            TRY(write_dealt(run, out, run->kept_before + run->counted, count, run->counts));
    run->counted += count;
    return HSORT_OK;
}

/* Of the block that begins at `first`, heads [found] end the runs before them. */
static hsort_status end_runs_of_block(struct deal_run *run, int64_t first, int64_t found)
{
    const bool was_open = run->open_head >= 0;
    int64_t ended = 0;
    for (int64_t k = 0; k < found; k++) {
        const int64_t head = first + run->heads[k];
        if (run->open_head >= 0)
            run->counts[ended++] = head - run->open_head;
        run->open_head = head;
    }
    TRY(end_runs(run, was_open ? 0 : 1, ended));
    if (found > 0)
        memcpy(run->codes, code_at(run, found), (size_t)run->code_bytes);
    return HSORT_OK;
}

/* Take from the sum what is there, against which the kept keys with their counts are held. */
static hsort_status weigh_block(struct deal_run *run, int64_t count)
{
    struct engine_inspection all;
    if (!run->looks)
        return HSORT_OK;
    TRY(run->io.engine->ops->inspect(run->io.engine, keymap_of_codes(run->code_bytes), code_at(run, 1), count,
                                     &all));
    run->sum[0] -= all.fingerprint[0];
    run->sum[1] -= all.fingerprint[1];
    run->sum[2] -= (uint64_t)count;
    return HSORT_OK;
}

/* Keep the heads [found] alone, of elements and of codes. */
static hsort_status keep_heads(struct deal_run *run, int64_t found)
{
    const size_t width = run->deal->element_bytes;
    for (int64_t k = 0; k < found; k++) {
        memmove(run->elements + (size_t)k * width, run->elements + (size_t)run->heads[k] * width, width);
        memmove(code_at(run, k + 1), code_at(run, run->heads[k] + 1), (size_t)run->code_bytes);
    }
    struct engine_elements rows =
        record_keys_elements(&run->deal->keys, run->elements, width, run->kept_before + run->dealt, found);
    rows.step = 0; // equal ones are found
    return run->looks && found > 0 ? verify_add_elements(&run->strict, run->io.engine, &rows) : HSORT_OK;
}

static hsort_status deal_unique_block(struct deal_run *run, int64_t first, int64_t count)
{
    TRY(read_block(run, first, count));
    TRY(look_at_block(run, first, count));
    TRY(make_block_codes(run, count));
    TRY(weigh_block(run, count));
    const int64_t found = find_heads(run, count);
    TRY(keep_heads(run, found));
    TRY(write_columns(run, run->kept_before + run->dealt, found));
    run->dealt += found;
    return end_runs_of_block(run, first, found);
}

/* ---- All blocks: collective ---------------------------------------------------------------------------- */

static hsort_status go_through(struct deal_run *run, const char *phase,
                               hsort_status (*work)(struct deal_run *run, int64_t first, int64_t count))
{
    const int64_t total = run->deal->count, most = (total + run->comm->size - 1) / run->comm->size;
    for (int64_t done = 0; done < most; done += run->block) {
        int64_t part = run->count - done < run->block ? run->count - done : run->block;
        int asked;
        stop_hold(FAULT_HOLD_DEAL, "before the next elements are dealt out", NULL);
        TRY(stop_agree(run->comm, &asked));
        if (asked)
            return HSORT_STOPPED;
        TRY(comm_agree(run->comm, part > 0 ? work(run, run->first + done, part) : HSORT_OK));
        if (part > 0)
            progress_bytes(run->progress, phase, done + part, run->count,
                           total * (int64_t)run->deal->element_bytes);
    }
    return HSORT_OK;
}

/* What the ranks have found in the first reading. */
static hsort_status join_heads(struct deal_run *run)
{
    const int size = run->comm->size;
    const int64_t mine[2] = {run->kept, run->first_head};
    int64_t *all = malloc(2 * (size_t)size * sizeof *all);
    TRY(comm_agree(run->comm,
                   all ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for %d ranks", size)));
    const hsort_status status = comm_agree(
        run->comm, comm_check(MPI_Allgather(mine, 2, MPI_INT64_T, all, 2, MPI_INT64_T, run->comm->world),
                              "MPI_Allgather", true));
    run->next_head = run->deal->count;
    run->kept_before = run->deal->distinct = 0;
    for (int rank = size - 1; rank >= 0 && status == HSORT_OK; rank--) {
        if (rank > run->comm->rank && all[2 * rank] > 0)
            run->next_head = all[2 * rank + 1];
        run->kept_before += rank < run->comm->rank ? all[2 * rank] : 0;
        run->deal->distinct += all[2 * rank];
    }
    free(all);
    return status;
}

static hsort_status deal_unique(struct deal_run *run)
{
    run->first_head = -1;
    TRY(comm_agree(run->comm, look_before(run)));
    TRY(go_through(run, "count", count_block));
    TRY(join_heads(run));
    TRY(disk_deal_create(run->comm, run->deal, run->deal->distinct, run->kept_before, run->kept));
    TRY(comm_agree(run->comm, look_before(run)));
    TRY(go_through(run, "deal", deal_unique_block));
    run->counts[0] = run->next_head - run->open_head;
    return comm_agree(run->comm, run->open_head >= 0 ? end_runs(run, 0, 1) : HSORT_OK);
}

/* ---- Checks: collective -------------------------------------------------------------------------------- */

static hsort_status check_seen(struct deal_run *run, const hsort_check_result *wanted)
{
    hsort_check_result found;
    TRY(verify_finish(&run->seen, run->comm, &found));
    if (found.first_disorder < 0 && found.first_unstable < 0 && found.count == wanted->count &&
        memcmp(found.fingerprint, wanted->fingerprint, sizeof found.fingerprint) == 0)
        return HSORT_OK;
    run->deal->differs = true;
    return report_fail(run->comm, HSORT_MISMATCH,
                       "%s: what was sorted is not what is read back; nothing was written",
                       run->sorted->temporary);
}

/* As unique_check(): keys rise and none is there twice; with their counts they are the keys that were sorted. */
static hsort_status check_kept_keys(struct deal_run *run)
{
    hsort_check_result found;
    uint64_t all[3];
    TRY(verify_finish(&run->strict, run->comm, &found));
    TRY_MPI(MPI_Allreduce(run->sum, all, 3, MPI_UINT64_T, MPI_SUM, run->comm->world));
    run->deal->unique_ok = found.first_disorder < 0 && found.first_unstable < 0 &&
                           found.count == run->deal->distinct && all[0] == 0 && all[1] == 0 && all[2] == 0;
    return run->deal->unique_ok ? HSORT_OK
                                : report_fail(run->comm, HSORT_MISMATCH,
                                              "%s: what is kept is not one of each key; nothing was written",
                                              run->deal->main_output);
}

/* Look at what an output has, against what was written to it. */
static hsort_status reread_output(struct deal_run *run, int out)
{
    const struct file_out *file = &run->deal->out[out];
    const int64_t first = run->unique ? run->kept_before : run->first,
                  count = run->unique ? run->kept : run->count;
    struct verifier verifier;
    hsort_check_result written, found;
    verify_start(&verifier, (struct keymap){0});
    TRY(comm_agree(run->comm, record_io_verify_back(&run->io, file, first, count, NULL, &verifier)));
    TRY(verify_finish(&verifier, run->comm, &found));
    TRY(verify_finish(&run->written[out], run->comm, &written));
    return memcmp(found.placed_fingerprint, written.placed_fingerprint, sizeof found.placed_fingerprint) == 0
               ? HSORT_OK
               : report_fail(run->comm, HSORT_MISMATCH, "%s: what is read back is not what was written",
                             file->path);
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

static hsort_status deal_and_check(struct deal_run *run, const hsort_check_result *wanted)
{
    hsort_status status = record_io_open(run->comm, run->deal->options->sort.threads, NULL, &run->io);
    if (status == HSORT_OK)
        status = take_deal_memory(run);
    TRY(comm_agree(run->comm, status));
    TRY(run->unique ? deal_unique(run) : go_through(run, "deal", deal_block));
    if (run->looks)
        TRY(check_seen(run, wanted));
    if (run->looks && run->unique)
        TRY(check_kept_keys(run));
    for (int out = 0; out < run->deal->outs && run->rereads; out++)
        TRY(reread_output(run, out));
    return HSORT_OK;
}

hsort_status disk_deal_out(struct comm *comm, struct disk_deal *deal, const struct file_out *sorted,
                           const hsort_check_result *wanted, struct progress *progress)
{
    const hsort_field *key = &deal->keys.fields[0];
    struct deal_run run = {.comm = comm,
                           .deal = deal,
                           .sorted = sorted,
                           .progress = progress,
                           .looks = wanted != NULL,
                           .rereads = wanted && deal->options->verify == CLI_VERIFY_REREAD,
                           .unique = deal->options->unique,
                           .first = launch_share(deal->count, comm->rank, comm->size),
                           .code_bytes = deal->keys.key_bytes <= 8 ? 8 : 16};
    run.count = launch_share(deal->count, comm->rank + 1, comm->size) - run.first;
    verify_start(&run.seen, deal->bare ? keymap_make(key->type, key->order) : (struct keymap){0});
    verify_start(&run.strict, keymap_of_codes(run.code_bytes));
    for (int out = 0; out < FILE_OUTPUTS; out++)
        verify_start(&run.written[out], (struct keymap){0});
    const hsort_status status = deal_and_check(&run, wanted);
    free_deal_run(&run);
    return status;
}
