/* The texts about the runs of a sort (run_files.h): a plan in each RUNS, and the lines of journals in DIR.
 *
 *     plan                                               journal-3
 *     hypersort runs 1                                   hypersort journal 1
 *     id 0f3c5a7e91b2d468                                run 7 250000 00ff00ff00ff00ff 0123456789abcdef 1 FENCES FIRST LAST CHECKSUM
 *     elements 1000000                                   segment 0 250000 ...
 *     element_bytes 8                                    output 1 CHECKSUM
 *     part_elements 250000                               dealing 1 CHECKSUM
 *     fence_elements 4096                                counted 0 WORDS CHECKSUM
 *     checkpoint /data/kept                              dealt 0 WORDS CHECKSUM
 *     checksum 89abcdef01234567
 *
 * A line of a run has the number of the run, its elements, both words of the fingerprint, 1 if it is in order, the checksum of its
 * fences, its first and its last code. The checksum at its end covers first what the plan says, and then the line up to there. So a
 * line that another sort has left, or the same sort when it was cut into other parts, is no line.
 *
 * A segment lies in the output; if the output is another file than it was, the segment is gone. So the checksum of its line also
 * covers what file the output is: its inode and the time of its birth, if that is known, and how many outputs there were before.
 * "output 1" says that the first output was lost.
 *
 * If the result is dealt out to several files (run_notes.h), "dealing 1" says that a first set of them was begun. The checksums of
 * "counted 0" and "dealt 0" cover what that of a segment does, and how the pieces are cut; the checksum of "dealt 0" also covers the
 * number of the set and what files they are. The caller that deals out decides what their words mean.
 *
 * A line ends at a newline or with the file. A line that is added after a torn one begins with a newline. */
#ifndef RUN_JOURNAL_H
#define RUN_JOURNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/base/status.h"
#include "src/library/run_store.h"

/* ---- Plans --------------------------------------------------------------------------------------------- */

struct written_plan {
    uint64_t id; /* of the manifest */
    int64_t elements, element_bytes, part_elements, fence_elements;
    char checkpoint
        [PATH_MAX]; /* the manifest's directory, from the root on; "": its name does not fit on a line */
};

enum { WRITTEN_PLAN_ROOM = PATH_MAX + 512 };

/* text [WRITTEN_PLAN_ROOM] = the plan, and a 0; returns its bytes. Not collective. */
size_t written_plan_format(const struct written_plan *plan, char *text);

/* Read text [bytes]; false: it is damaged, or no plan. Not collective. */
bool written_plan_parse(const char *text, size_t bytes, struct written_plan *plan);

/* ---- Lines --------------------------------------------------------------------------------------------- */

enum run_line_kind {
    RUN_LINE,
    SEGMENT_LINE,
    OUTPUT_LINE,
    DEALING_LINE,
    COUNTED_LINE,
    DEALT_LINE,
    RUN_LINE_KINDS
};

enum { RUN_NOTE_WORDS = 14 };

/* What is noted about a piece that was counted or dealt out. It has whole words only, because ranks send it. */
struct run_note {
    uint64_t is_made; /* 1; else the rest is 0 */
    uint64_t word[RUN_NOTE_WORDS];
};

struct run_line {
    enum run_line_kind kind;
    int64_t number;
    struct run_facts facts; /* of runs and segments */
    struct run_note note;   /* of pieces */
};

/* What the checksums of lines begin with. */
struct line_seeds {
    uint64_t runs, segments, counted, dealt;
};

enum { RUN_LINE_ROOM = 384 };

/* The seeds of a plan; those of segments also cover `output` [count], what file the output is. Not collective. */
struct line_seeds line_seeds_make(const struct written_plan *plan, const uint64_t *output, int count);

/* text [RUN_LINE_ROOM] = the line, with a newline and a 0; returns its bytes. Not collective. */
size_t run_line_format(const struct run_line *line, const struct line_seeds *seeds, char *text);

/* Read text [bytes], a line without its newline. False: it is no line, or damaged. Not collective. */
bool run_line_parse(const char *text, size_t bytes, const struct line_seeds *seeds, struct run_line *line);

/* ---- Journals ------------------------------------------------------------------------------------------ */

/* The journal of this rank, to which it adds. */
struct run_journal {
    char path[PATH_MAX];
    int fd;    /* or -1 */
    bool made; /* it was not there before, and has no line yet */
    bool torn; /* its last line may lack its end */
};

/* Open the journal of `rank` in `directory`, or begin one. Not collective. Errors HSORT_IO, with the cause in errno; *journal must
 * be closed even then. */
hsort_status run_journal_open(const char *directory, int rank, struct run_journal *journal);

/* Add a line and bring it to disk. One thread at a time. Not collective. Errors HSORT_IO, with the cause in errno. */
hsort_status run_journal_add(struct run_journal *journal, const struct run_line *line,
                             const struct line_seeds *seeds);

void run_journal_close(struct run_journal *journal); /* not collective */

/* *text [*bytes] = the lines of all journals in `directory`, with a newline after each journal; the caller frees it. Not collective.
 * Errors HSORT_IO, HSORT_HOST_MEMORY. */
hsort_status run_journals_read(const char *directory, char **text, size_t *bytes);

/* The number of the last line of this kind, OUTPUT_LINE or DEALING_LINE, in the text of journals; 0: there is none. Not collective. */
int64_t run_journals_last(const char *text, size_t bytes, const struct line_seeds *seeds,
                          enum run_line_kind kind);

/* Set runs and segments [plan->parts] to what the journals say is made. Lines whose numbers do not fit the plan are ignored. Not
 * collective. */
void run_journals_apply(const char *text, size_t bytes, const struct line_seeds *seeds,
                        struct run_plan *plan);

/* notes [count] = what lines of this kind, COUNTED_LINE or DEALT_LINE, say about pieces; the notes of other pieces stay as they are.
 * Not collective. */
void run_journals_notes(const char *text, size_t bytes, const struct line_seeds *seeds,
                        enum run_line_kind kind, struct run_note *notes, int64_t count);

/* Remove all journals. Failures are ignored. Not collective. */
void run_journals_remove(const char *directory);

#endif
