/* Dealing out (disk_deal.h): each rank reads its pieces of the sorted elements (disk_deal_run.h) in blocks and writes each of their
 * columns to its output. Between two blocks ranks agree whether all go on. A piece that is written to all outputs is noted.
 *
 * With --unique everything is read twice, because a rank must know how many elements the pieces before its own keep, and where the next
 * run of equal keys begins:
 *
 *     sorted     5 5 7 | 7 7 7 | 9         heads      0 2 | - | 6        where runs begin: known after the first reading
 *     kept       5 7   |       | 9         counts     2 4 | - | 1        the last run of a piece ends at the next head of any piece */
#include <stdlib.h>
#include <string.h>
#include "kernels/base/key_width.h"
#include "src/command/disk_deal_run.h"
#include "src/command/records_unique.h"
#include "src/command/report.h"
#include "src/command/stop.h"

/* What else is in memory for each element of a block: codes, heads, counts. */
enum { BESIDE_BYTES = 16 + 8 + 8 };

/* What is done with each piece: at its beginning, with each block, at its end. */
struct deal_work {
    const char *phase;
    void (*begin)(struct deal_run *run);
    hsort_status (*block)(struct deal_run *run, int64_t first, int64_t count);
    hsort_status (*end)(struct deal_run *run, int64_t piece);
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
    return deal_pieces_open(run);
}

static void free_deal_run(struct deal_run *run)
{
    record_io_close(&run->io);
    deal_pieces_close(run);
    free(run->elements);
    free(run->packed);
    free(run->codes);
    free(run->heads);
    free(run->counts);
}

/* ---- Columns of a block -------------------------------------------------------------------------------- */

/* packed [count * bytes] = a column of elements [count], which begins at byte `base` of each element. */
static void pack_column(const struct deal_run *run, size_t base, size_t bytes, int64_t count)
{
    const size_t width = run->deal->element_bytes;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        memcpy(run->packed + (size_t)i * bytes, run->elements + (size_t)i * width + base, bytes);
}

/* Write elements of an output, from `first` of all on; or compare them with what it holds. */
static hsort_status write_dealt(struct deal_run *run, int out, int64_t first, int64_t count, const void *part)
{
    const struct file_out *file = &run->deal->out[out];
    bool same;
    if (!run->compares)
        return record_io_write(&run->io, file, first, count, part);
    TRY(record_io_compare(&run->io, file, first, count, part, &same));
    return same ? HSORT_OK
                : status_fail(HSORT_MISMATCH, "%s: what is read back is not what was written", file->path);
}

/* Write elements [count] at run->elements to all outputs except that of counts. */
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

static void begin_piece(struct deal_run *run)
{
    const hsort_field *key = &run->deal->keys.fields[0];
    verify_start(&run->seen, run->deal->bare ? keymap_make(key->type, key->order) : (struct keymap){0});
    verify_start(&run->strict, keymap_of_codes(run->code_bytes));
    memset(run->sum, 0, sizeof run->sum);
}

/* A piece is written: note what it is like. */
static hsort_status end_piece(struct deal_run *run, int64_t piece)
{
    const struct verifier *seen = &run->seen, *strict = &run->strict;
    const struct dealt_piece dealt = {.looked = run->looks,
                                      .in_order = seen->first_descent < 0 && seen->first_unstable < 0,
                                      .strict = strict->first_descent < 0 && strict->first_unstable < 0,
                                      .sum = {run->sum[0], run->sum[1], run->sum[2]},
                                      .fingerprint = {seen->fingerprint[0], seen->fingerprint[1]},
                                      .first_number = seen->first_number,
                                      .last_number = seen->last_number,
                                      .first = seen->first,
                                      .last = seen->last};
    struct run_note *note = &run->dealt[piece];
    if (run->compares)
        return HSORT_OK;
    note->is_made = 1;
    memcpy(note->word, &dealt, sizeof dealt);
    return run_files_keep_dealt(run->files, piece, note, run->deal->out, run->deal->outs);
}

static const struct deal_work deal_all = {"deal", begin_piece, deal_block, end_piece};

/* ---- Of each key one ----------------------------------------------------------------------------------- */

static char *code_at(const struct deal_run *run, int64_t i)
{
    return run->codes + (size_t)i * (size_t)run->code_bytes;
}

/* Make codes of elements [count], from run->codes[1] on. */
static hsort_status make_block_codes(struct deal_run *run, int64_t count)
{
    struct key_field fields[HSORT_FIELDS_MAX];
    record_keys_point(&run->deal->keys, run->elements, run->deal->element_bytes, fields);
    return run->io.engine->ops->make_codes(run->io.engine, run->code_bytes, code_at(run, 1), count, fields,
                                           run->deal->keys.count, 0, 0);
}

/* heads [returned] = which elements of the block have another key than the element before. */
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

static void begin_counting(struct deal_run *run)
{
    run->has_before = false;
    run->found = (struct counted_piece){.first_head = -1};
}

static hsort_status count_block(struct deal_run *run, int64_t first, int64_t count)
{
    const bool begins =
        !run->has_before; // its first element is a head here, but really is one only if the piece before ends with another key
    TRY(read_block(run, first, count));
    TRY(make_block_codes(run, count));
    const int64_t found = find_heads(run, count) - begins;
    if (begins)
        run->found.first = key_load(run->code_bytes, code_at(run, 1), 0);
    if (run->found.first_head < 0 && found > 0)
        run->found.first_head = first + run->heads[begins];
    run->found.heads += (uint64_t)found;
    run->found.last = run->before;
    return HSORT_OK;
}

static hsort_status end_counting(struct deal_run *run, int64_t piece)
{
    run->counted[piece].is_made = 1;
    memcpy(run->counted[piece].word, &run->found, sizeof run->found);
    return run_files_keep_counted(run->files, piece, &run->counted[piece]);
}

static const struct deal_work count_all = {"count", begin_counting, count_block, end_counting};

/* Weigh and count runs [count] that have ended; their codes begin at run->codes[from]. */
static hsort_status end_runs(struct deal_run *run, int64_t from, int64_t count)
{
    if (run->looks)
        unique_weigh(run->code_bytes, code_at(run, from), run->counts, count, run->sum);
    for (int out = 0; out < run->deal->outs && count > 0; out++)
        if (run->deal->column_of[out] == DEAL_COLUMNS)
            TRY(write_dealt(run, out, run->at->kept_before + run->ended, count, run->counts));
    run->ended += count;
    return HSORT_OK;
}

/* Heads [found] of the block that begins at `first` end the runs before them. */
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

/* Subtract all keys of the block from the sum, to which the kept keys with their counts are added. */
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

/* Keep only the heads [found], of elements and of codes. */
static hsort_status keep_heads(struct deal_run *run, int64_t found)
{
    const size_t width = run->deal->element_bytes;
    for (int64_t k = 0; k < found; k++) {
        memmove(run->elements + (size_t)k * width, run->elements + (size_t)run->heads[k] * width, width);
        memmove(code_at(run, k + 1), code_at(run, run->heads[k] + 1), (size_t)run->code_bytes);
    }
    const struct engine_elements rows = record_keys_strict(&run->deal->keys, run->elements, width, found);
    return run->looks && found > 0 ? verify_add_elements(&run->strict, run->io.engine, &rows) : HSORT_OK;
}

/* Begin a piece; what is before it is known. */
static void begin_unique(struct deal_run *run)
{
    struct counted_piece counted;
    memcpy(&counted, run->counted[run->at - run->piece].word, sizeof counted);
    begin_piece(run);
    run->has_before = !run->at->first_is_head;
    run->before = counted.first;
    run->open_head = -1;
    run->kept = run->ended = 0;
}

/* Fail because a piece has more heads, or fewer, than were counted. */
static hsort_status fail_with_heads(struct deal_run *run)
{
    return status_fail(HSORT_MISMATCH,
                       "%s: is not what it was when its keys were counted; nothing was written",
                       run->sorted->temporary);
}

static hsort_status deal_unique_block(struct deal_run *run, int64_t first, int64_t count)
{
    TRY(read_block(run, first, count));
    TRY(look_at_block(run, first, count));
    TRY(make_block_codes(run, count));
    TRY(weigh_block(run, count));
    const int64_t found = find_heads(run, count);
    if (found > run->at->kept - run->kept)
        return fail_with_heads(run);
    TRY(keep_heads(run, found));
    TRY(write_columns(run, run->at->kept_before + run->kept, found));
    run->kept += found;
    return end_runs_of_block(run, first, found);
}

static hsort_status end_unique(struct deal_run *run, int64_t piece)
{
    if (run->kept != run->at->kept)
        return fail_with_heads(run);
    run->counts[0] = run->at->next_head - run->open_head;
    TRY(run->open_head >= 0 ? end_runs(run, 0, 1) : HSORT_OK);
    return end_piece(run, piece);
}

static const struct deal_work deal_kept = {"deal", begin_unique, deal_unique_block, end_unique};

/* ---- All pieces: collective ---------------------------------------------------------------------------- */

/* Do a block of the piece own[*at], of which *done elements are done. */
static hsort_status take_step(struct deal_run *run, const struct deal_work *work, int64_t *at, int64_t *done)
{
    const int64_t piece = run->own[*at], left = run->piece[piece].count - *done,
                  count = left < run->block ? left : run->block, first = run->piece[piece].first + *done;
    run->at = &run->piece[piece];
    if (*done == 0)
        work->begin(run);
    TRY(work->block(run, first, count));
    *done += count;
    if (count < left)
        return HSORT_OK;
    *done = 0;
    ++*at;
    return work->end(run, piece);
}

/* Let all ranks together go through the pieces that are not noted. */
static hsort_status go_through(struct deal_run *run, const struct run_note *notes,
                               const struct deal_work *work)
{
    const int64_t steps = deal_pieces_take(run, notes),
                  total = run->deal->count * (int64_t)run->deal->element_bytes;
    int64_t at = 0, done = 0, most;
    TRY(comm_range(run->comm, steps, NULL, &most));
    for (int64_t step = 0; step < most; step++) {
        int asked;
        stop_hold(FAULT_HOLD_DEAL, "before the next elements are dealt out", NULL);
        TRY(stop_agree(run->comm, &asked));
        if (asked)
            return HSORT_STOPPED;
        const hsort_status status =
            comm_agree(run->comm, step < steps ? take_step(run, work, &at, &done) : HSORT_OK);
        run->deal->differs = run->deal->differs || status == HSORT_MISMATCH; // on any rank
        TRY(status);
        if (step < steps)
            progress_bytes(run->progress, work->phase, step + 1, steps, total);
    }
    return HSORT_OK;
}

/* How many ranks the pieces are cut for; 0: any number. */
static int ranks_of_cut(const struct deal_run *run)
{
    return run->deal->by_rank ? run->comm->size : 0;
}

/* Count what each piece keeps, and create outputs of that size. */
static hsort_status count_and_create(struct deal_run *run)
{
    int64_t first, mine;
    TRY(run_files_counted(run->files, ranks_of_cut(run), run->counted, run->pieces));
    TRY(go_through(run, run->counted, &count_all));
    TRY(deal_pieces_join(run, run->counted));
    deal_pieces_place(run);
    deal_pieces_share(run, &first, &mine);
    return disk_deal_create(run->comm, run->deal, run->deal->distinct, first, mine);
}

/* Find what earlier calls have dealt out. It is kept, unless this call wants pieces looked at and the earlier call did not look. */
static hsort_status find_dealt(struct deal_run *run)
{
    const struct disk_deal *deal = run->deal;
    TRY(run_files_dealt(run->files, ranks_of_cut(run), deal->out, deal->outs, deal->kept, run->dealt,
                        run->pieces));
    for (int64_t i = 0; i < run->pieces; i++) {
        struct dealt_piece dealt;
        memcpy(&dealt, run->dealt[i].word, sizeof dealt);
        if (run->looks && !dealt.looked)
            run->dealt[i] = (struct run_note){.is_made = 0};
        run->deal->kept_pieces += run->dealt[i].is_made != 0;
    }
    return HSORT_OK;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

static hsort_status deal_and_check(struct deal_run *run, const hsort_check_result *wanted)
{
    const struct deal_work *work = run->unique ? &deal_kept : &deal_all;
    hsort_status status = record_io_open(run->comm, run->deal->options->sort.threads, NULL, &run->io);
    if (status == HSORT_OK)
        status = take_deal_memory(run);
    TRY(comm_agree(run->comm, status));
    if (run->unique)
        TRY(count_and_create(run));
    TRY(find_dealt(run));
    TRY(go_through(run, run->dealt, work));
    TRY(deal_pieces_join(run, run->dealt));
    if (!run->looks)
        return HSORT_OK;
    TRY(deal_pieces_check(run, wanted));
    if (run->deal->options->verify != CLI_VERIFY_REREAD)
        return HSORT_OK;
    run->compares = true;
    run->looks = false;
    return go_through(run, NULL, work);
}

hsort_status disk_deal_out(struct comm *comm, struct disk_deal *deal, const struct file_out *sorted,
                           struct run_files *files, const hsort_check_result *wanted,
                           struct progress *progress)
{
    struct deal_run run = {.comm = comm,
                           .deal = deal,
                           .sorted = sorted,
                           .files = files,
                           .progress = progress,
                           .looks = wanted != NULL,
                           .unique = deal->options->unique,
                           .code_bytes = deal->keys.key_bytes <= 8 ? 8 : 16};
    const hsort_status status = deal_and_check(&run, wanted);
    free_deal_run(&run);
    return status;
}
