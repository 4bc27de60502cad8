/* What is written about the runs of a sort (run_files.h): a plan in each RUNS, and the lines of journals in DIR.
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
 * In a line stand the number of the run, its elements, both words of the fingerprint, 1 if it is in order, its first and its last
 * code. Its checksum begins with what the plan says and is then of the line before it. So a line that another sort has left, or
 * the same one when it was cut into other parts, is no line.
 *
 * A segment lies in the output; where that is another file than it was, the segment is gone. Its checksum begins with what file
 * the output is, as well: its inode and the time of its birth, if that is known, and how many outputs there were before.
 * "output 1" says that the first one was lost.
 *
 * Of a result that is dealt out to several files (run_notes.h) "dealing 1" says that a first set of them was begun; the checksums of
 * "counted 0" and "dealt 0" begin with what that of a segment does and with how the pieces are cut; that of the latter with the number
 * of the set and what files they are, as well. Their words are those of who deals out.
 *
 * A line ends at a newline or with the file. The next one that is added to a torn one begins with a newline. */
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
        [PATH_MAX]; /* the manifest's directory, from the root on; "": its name does not fit into a line */
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

/* What is noted of a piece that was counted or dealt out. Whole words, since it travels. */
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

/* The seeds of a plan; those of segments have what the output is, [count], too. Not collective. */
struct line_seeds line_seeds_make(const struct written_plan *plan, const uint64_t *output, int count);

/* text [RUN_LINE_ROOM] = the line, with a newline and a 0; returns its bytes. Not collective. */
size_t run_line_format(const struct run_line *line, const struct line_seeds *seeds, char *text);

/* Read text [bytes], a line without its newline. False: it is none, or damaged. Not collective. */
bool run_line_parse(const char *text, size_t bytes, const struct line_seeds *seeds, struct run_line *line);

/* ---- Journals ------------------------------------------------------------------------------------------ */

/* The journal of this rank, to which it adds. */
struct run_journal {
    char path[PATH_MAX];
    int fd;    /* or -1 */
    bool made; /* there was none, and it has no line */
    bool torn; /* its last line may lack its end */
};

/* Open the journal of `rank` in `directory`, or begin one. Not collective. Errors HSORT_IO, with the cause in errno; *journal then
 * needs a close all the same. */
hsort_status run_journal_open(const char *directory, int rank, struct run_journal *journal);

/* Add a line and bring it to disk. One thread at a time. Not collective. Errors HSORT_IO, with the cause in errno. */
hsort_status run_journal_add(struct run_journal *journal, const struct run_line *line,
                             const struct line_seeds *seeds);

void run_journal_close(struct run_journal *journal); /* not collective */

/* *text = the lines of all journals in `directory`, a newline behind each journal, [*bytes]; the caller frees it. Not collective.
 * Errors HSORT_IO, HSORT_HOST_MEMORY. */
hsort_status run_journals_read(const char *directory, char **text, size_t *bytes);

/* The number of the last line of this kind, OUTPUT_LINE or DEALING_LINE, in the text of journals; 0: there is none. Not collective. */
int64_t run_journals_last(const char *text, size_t bytes, const struct line_seeds *seeds,
                          enum run_line_kind kind);

/* Mark in runs and segments [plan->parts] what the journals say is made. Lines whose numbers do not fit the plan say nothing. Not
 * collective. */
void run_journals_apply(const char *text, size_t bytes, const struct line_seeds *seeds,
                        struct run_plan *plan);

/* notes [count] = what lines of this kind, COUNTED_LINE or DEALT_LINE, say of pieces; others stay. Not collective. */
void run_journals_notes(const char *text, size_t bytes, const struct line_seeds *seeds,
                        enum run_line_kind kind, struct run_note *notes, int64_t count);

/* Remove all journals. Failures are ignored. Not collective. */
void run_journals_remove(const char *directory);

/* Elements of part `part` of a plan. Not collective. */
int64_t run_part_count(const struct run_plan *plan, int64_t part);

#endif
