#include "src/checkpoint/run_notes.h"
#include <stdlib.h>
#include <string.h>
#include "src/checkpoint/checksum.h"
#include "src/checkpoint/run_files_internal.h"
#include "src/files/file_internal.h"

const struct run_plan *run_files_plan(const struct run_files *files)
{
    return &files->plan;
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

/* The number of this set of outputs, and the seed that it makes. A set that is not the one that was there before has a new number,
 * noted before anything is written to it. */
static hsort_status find_dealing(struct run_files *files, const char *text, size_t bytes,
                                 const struct file_out *outs, int out_count, bool kept)
{
    struct run_line line = {.kind = DEALING_LINE,
                            .number = run_journals_last(text, bytes, &files->seeds, DEALING_LINE)};
    if (!kept || line.number == 0) {
        line.number++;
        TRY(run_files_note(files, run_journal_add(&files->journal, &line, &files->seeds)));
    }
    files->seeds.dealt = checksum_add(files->seeds.segments, &line.number, sizeof line.number);
    for (int i = 0; i < out_count; i++) {
        uint64_t words[RUN_OUTPUT_WORDS];
        TRY(run_files_identify(&outs[i], words));
        files->seeds.dealt = checksum_add(files->seeds.dealt, words, sizeof words);
    }
    return HSORT_OK;
}

/* Rank 0's part. */
static hsort_status read_notes(struct run_files *files, enum run_line_kind kind, const struct file_out *outs,
                               int out_count, bool kept, struct run_note *notes, int64_t count)
{
    char *text;
    size_t bytes;
    TRY(run_journals_read(files->target.checkpoint->directory, &text, &bytes));
    const hsort_status status =
        kind == DEALT_LINE ? find_dealing(files, text, bytes, outs, out_count, kept) : HSORT_OK;
    if (status == HSORT_OK)
        run_journals_notes(text, bytes, &files->seeds, kind, notes, count);
    free(text);
    return status;
}

/* Rank 0 reads, and tells all. Collective. */
static hsort_status share_notes(struct run_files *files, enum run_line_kind kind, const struct file_out *outs,
                                int out_count, bool kept, struct run_note *notes, int64_t count)
{
    struct comm *comm = files->comm;
    enum { WORDS = sizeof *notes / sizeof(uint64_t), SEED_WORDS = sizeof files->seeds / sizeof(uint64_t) };
    memset(notes, 0, (size_t)count * sizeof *notes);
    TRY(comm_agree(comm, comm->rank == 0 ? read_notes(files, kind, outs, out_count, kept, notes, count)
                                         : HSORT_OK));
    const hsort_status status =
        run_files_share(comm, HSORT_OK, notes, WORDS * count, MPI_UINT64_T, sizeof(uint64_t));
    return comm_agree(
        comm, run_files_share(comm, status, &files->seeds, SEED_WORDS, MPI_UINT64_T, sizeof(uint64_t)));
}

hsort_status run_files_counted(struct run_files *files, struct run_note *notes, int64_t count)
{
    return share_notes(files, COUNTED_LINE, NULL, 0, true, notes, count);
}

hsort_status run_files_dealt(struct run_files *files, const struct file_out *outs, int out_count, bool kept,
                             struct run_note *notes, int64_t count)
{
    return share_notes(files, DEALT_LINE, outs, out_count, kept, notes, count);
}

/* ---- Adding -------------------------------------------------------------------------------------------- */

static hsort_status add_note(struct run_files *files, enum run_line_kind kind, int64_t piece,
                             const struct run_note *note)
{
    const struct run_line line = {.kind = kind, .number = piece, .note = *note};
    return run_files_note(files, run_journal_add(&files->journal, &line, &files->seeds));
}

hsort_status run_files_keep_counted(struct run_files *files, int64_t piece, const struct run_note *note)
{
    return add_note(files, COUNTED_LINE, piece, note);
}

hsort_status run_files_keep_dealt(struct run_files *files, int64_t piece, const struct run_note *note,
                                  const struct file_out *outs, int out_count)
{
    for (int i = 0; i < out_count; i++)
        TRY(run_files_note(files, file_sync(outs[i].temporary, outs[i].fd)));
    return add_note(files, DEALT_LINE, piece, note);
}
