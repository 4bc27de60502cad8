/* What is noted about pieces of the sorted elements, beside runs and segments (run_files.h), when these are dealt out to several files:
 * which pieces are counted, and which are written to all of the files. Both notes are lines of the journals, so they outlast this
 * call, and any rank may go on with the other pieces.
 *
 *     counted    counts as long as a segment does, and while the pieces are cut as they were
 *     dealt      counts while, in addition, all outputs are the files that they were. The outputs are brought to disk before this line
 *
 * If each rank has a file of its own, pieces are cut for a number of ranks, and are other pieces on another number. */
#ifndef RUN_NOTES_H
#define RUN_NOTES_H

#include "src/checkpoint/run_files.h"
#include "src/checkpoint/run_journal.h"

/* How the elements are cut into parts, after store.open(). Owned by files; not collective. */
const struct run_plan *run_files_plan(const struct run_files *files);

/* notes [count] = what earlier calls have counted; is_made is 0 for all other pieces. The same on every rank. Collective.
 *   cut   the number of ranks for which the pieces are cut; 0: for any number
 * Errors   agreed: HSORT_IO, HSORT_HOST_MEMORY. */
hsort_status run_files_counted(struct run_files *files, int cut, struct run_note *notes, int64_t count);

/* Once the outputs are there: notes [count] = what earlier calls have dealt out to them. Collective.
 *   outs  [out_count] common to all ranks, or each rank's own
 *   kept  file_resume() found each of them there
 * Errors   as above. */
hsort_status run_files_dealt(struct run_files *files, int cut, const struct file_out *outs, int out_count,
                             bool kept, struct run_note *notes, int64_t count);

/* Keep the note of a piece that this rank has counted, or dealt out to outs [out_count]. Not collective. Errors HSORT_IO. */
hsort_status run_files_keep_counted(struct run_files *files, int64_t piece, const struct run_note *note);
hsort_status run_files_keep_dealt(struct run_files *files, int64_t piece, const struct run_note *note,
                                  const struct file_out *outs, int out_count);

#endif
