#include "src/checkpoint/run_notes.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/checksum.h"
#include "src/checkpoint/run_files_internal.h"
#include "src/files/file_internal.h"

const struct run_plan *run_files_plan(const struct run_files *files)
{
    return &files->plan;
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

/* Find the number of this set of outputs, and the seed that it makes. A set that is not the one that was there before gets a new
 * number, which is noted before anything is written to it. */
static hsort_status find_dealing(struct run_files *files, const char *text, size_t bytes, uint64_t outputs,
                                 bool kept)
{
    struct run_line line = {.kind = DEALING_LINE,
                            .number = run_journals_last(text, bytes, &files->seeds, DEALING_LINE)};
    if (!kept || line.number == 0) {
        line.number++;
        TRY(run_files_note(files, run_journal_add(&files->journal, &line, &files->seeds)));
    }
    const uint64_t words[] = {(uint64_t)line.number, outputs};
    files->seeds.dealt = checksum_add(files->seeds.counted, words, sizeof words);
    return HSORT_OK;
}

/* What is asked for, except where it is written. */
struct wanted_notes {
    enum run_line_kind kind;
    uint64_t outputs; /* what files the outputs are */
    bool kept;
};

/* Rank 0's part. */
static hsort_status read_notes(struct run_files *files, const struct wanted_notes *wanted,
                               struct run_note *notes, int64_t count)
{
    char *text;
    size_t bytes;
    TRY(run_journals_read(files->target.checkpoint->directory, &text, &bytes));
    const hsort_status status = wanted->kind == DEALT_LINE
                                    ? find_dealing(files, text, bytes, wanted->outputs, wanted->kept)
                                    : HSORT_OK;
    if (status == HSORT_OK)
        run_journals_notes(text, bytes, &files->seeds, wanted->kind, notes, count);
    free(text);
    return status;
}

/* Let rank 0 read the notes, and tell all ranks. Collective. */
static hsort_status share_notes(struct run_files *files, int cut, const struct wanted_notes *wanted,
                                struct run_note *notes, int64_t count)
{
    struct comm *comm = files->comm;
    enum { WORDS = sizeof *notes / sizeof(uint64_t), SEED_WORDS = sizeof files->seeds / sizeof(uint64_t) };
    const int64_t cuts = cut;
    memset(notes, 0, (size_t)count * sizeof *notes);
    files->seeds.counted = checksum_add(files->seeds.segments, &cuts, sizeof cuts);
    TRY(comm_agree(comm, comm->rank == 0 ? read_notes(files, wanted, notes, count) : HSORT_OK));
    const hsort_status status =
        run_files_share(comm, HSORT_OK, notes, WORDS * count, MPI_UINT64_T, sizeof(uint64_t));
    return comm_agree(
        comm, run_files_share(comm, status, &files->seeds, SEED_WORDS, MPI_UINT64_T, sizeof(uint64_t)));
}

hsort_status run_files_counted(struct run_files *files, int cut, struct run_note *notes, int64_t count)
{
    return share_notes(files, cut, &(struct wanted_notes){.kind = COUNTED_LINE}, notes, count);
}

/* *word = a word for the files that this rank has to describe: its own, and on rank 0 the common ones; 0 if there are none. */
static hsort_status describe_outputs(const struct comm *comm, const struct file_out *outs, int out_count,
                                     int64_t *word)
{
    uint64_t sum = checksum_add(CHECKSUM_START, &comm->rank, sizeof comm->rank);
    *word = 0;
    for (int i = 0; i < out_count; i++) {
        uint64_t words[RUN_OUTPUT_WORDS];
        if (!outs[i].own && comm->rank > 0)
            continue;
        TRY(run_files_identify(&outs[i], words));
        sum = checksum_add(sum, words, sizeof words);
        *word = (int64_t)sum;
    }
    return HSORT_OK;
}

hsort_status run_files_dealt(struct run_files *files, int cut, const struct file_out *outs, int out_count,
                             bool kept, struct run_note *notes, int64_t count)
{
    int64_t own, all;
    TRY(comm_agree(files->comm, describe_outputs(files->comm, outs, out_count, &own)));
    TRY(comm_sum(files->comm, own, &all));
    return share_notes(files, cut,
                       &(struct wanted_notes){.kind = DEALT_LINE, .outputs = (uint64_t)all, .kept = kept},
                       notes, count);
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
