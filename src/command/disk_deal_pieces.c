#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "src/command/disk_deal_run.h"
#include "src/command/launch.h"
#include "src/command/report.h"

_Static_assert(sizeof(struct counted_piece) <= sizeof((struct run_note *)0)->word, "it is noted");
_Static_assert(sizeof(struct dealt_piece) <= sizeof((struct run_note *)0)->word, "it is noted");

/* ---- Cutting ------------------------------------------------------------------------------------------- */

/* Where the piece ends that begins at `at`; *rank goes on to the first rank whose file begins behind `at`. */
static int64_t piece_end(const struct deal_run *run, int64_t at, int *rank)
{
    const int64_t count = run->deal->count, part = run_files_plan(run->files)->part_elements;
    int64_t end = count - at < part - at % part ? count : at + part - at % part;
    while (run->deal->by_rank && launch_share(count, *rank, run->comm->size) <= at && *rank < run->comm->size)
        ++*rank;
    if (run->deal->by_rank) {
        const int64_t next = launch_share(count, *rank, run->comm->size);
        end = next < end ? next : end;
    }
    return end;
}

hsort_status deal_pieces_open(struct deal_run *run)
{
    const size_t most = (size_t)(run_files_plan(run->files)->parts + run->comm->size);
    int rank = 0;
    run->piece = calloc(most, sizeof *run->piece);
    run->counted = calloc(most, sizeof *run->counted);
    run->dealt = calloc(most, sizeof *run->dealt);
    run->own = calloc(most, sizeof *run->own);
    if (!run->piece || !run->counted || !run->dealt || !run->own)
        return status_fail(HSORT_HOST_MEMORY, "no memory to deal out %zu pieces", most);
    for (int64_t at = 0; at < run->deal->count; at += run->piece[run->pieces++].count)
        run->piece[run->pieces] = (struct deal_piece){.first = at, .count = piece_end(run, at, &rank) - at};
    return HSORT_OK;
}

void deal_pieces_close(struct deal_run *run)
{
    free(run->piece);
    free(run->counted);
    free(run->dealt);
    free(run->own);
}

/* ---- Sharing ------------------------------------------------------------------------------------------- */

static bool is_in_share(const struct deal_run *run, const struct deal_piece *piece)
{
    const struct comm *comm = run->comm;
    return piece->first >= launch_share(run->deal->count, comm->rank, comm->size) &&
           piece->first < launch_share(run->deal->count, comm->rank + 1, comm->size);
}

int64_t deal_pieces_take(struct deal_run *run, const struct run_note *notes)
{
    int64_t open = 0, own = 0, blocks = 0;
    for (int64_t i = 0; i < run->pieces; i++) {
        if (notes && notes[i].is_made)
            continue;
        const bool turn = open++ % run->comm->size == run->comm->rank;
        if (!(run->deal->by_rank ? is_in_share(run, &run->piece[i]) : turn))
            continue;
        run->own[own++] = i;
        blocks += divide_up(run->piece[i].count, run->block);
    }
    return blocks;
}

hsort_status deal_pieces_join(struct deal_run *run, struct run_note *notes)
{
    // Each note is made by one rank, or is the same on all.
    return comm_agree(
        run->comm, comm_check(MPI_Allreduce(MPI_IN_PLACE, notes,
                                            (int)(run->pieces * (int64_t)(sizeof *notes / sizeof(uint64_t))),
                                            MPI_UINT64_T, MPI_BOR, run->comm->world),
                              "MPI_Allreduce", true));
}

/* ---- Of each key one ----------------------------------------------------------------------------------- */

static struct counted_piece counted_of(const struct deal_run *run, int64_t piece)
{
    struct counted_piece counted;
    memcpy(&counted, run->counted[piece].word, sizeof counted);
    return counted;
}

void deal_pieces_place(struct deal_run *run)
{
    int64_t kept = 0, next = run->deal->count;
    for (int64_t i = 0; i < run->pieces; i++) {
        struct deal_piece *piece = &run->piece[i];
        const struct counted_piece counted = counted_of(run, i);
        piece->first_is_head = i == 0 || counted.first != counted_of(run, i - 1).last;
        piece->kept_before = kept;
        piece->kept = (int64_t)counted.heads + piece->first_is_head;
        kept += piece->kept;
    }
    for (int64_t i = run->pieces - 1; i >= 0; i--) {
        const struct counted_piece counted = counted_of(run, i);
        run->piece[i].next_head = next;
        if (run->piece[i].first_is_head)
            next = run->piece[i].first;
        else if (counted.first_head >= 0)
            next = counted.first_head;
    }
    run->deal->distinct = kept;
}

void deal_pieces_share(const struct deal_run *run, int64_t *first, int64_t *count)
{
    *first = -1;
    *count = 0;
    for (int64_t i = 0; i < run->pieces; i++) {
        const struct deal_piece *piece = &run->piece[i];
        if (!is_in_share(run, piece))
            continue;
        *first = *first < 0 ? piece->kept_before : *first;
        *count += piece->kept;
    }
    *first = *first < 0 ? 0 : *first;
}

/* ---- Checks -------------------------------------------------------------------------------------------- */

static struct dealt_piece dealt_of(const struct deal_run *run, int64_t piece)
{
    struct dealt_piece dealt;
    memcpy(&dealt, run->dealt[piece].word, sizeof dealt);
    return dealt;
}

/* Is the beginning of a piece in order behind the end of the piece before? */
static bool follows(const struct deal_run *run, const struct dealt_piece *before,
                    const struct dealt_piece *next)
{
    if (next->first != before->last || run->deal->bare)
        return next->first >= before->last;
    return next->first_number > before->last_number;
}

hsort_status deal_pieces_check(struct deal_run *run, const hsort_check_result *wanted)
{
    uint64_t fingerprint[2] = {0, 0}, sum[3] = {0, 0, 0};
    bool right = true, strict = true;
    struct dealt_piece before = {.looked = 0};
    for (int64_t i = 0; i < run->pieces; i++) {
        const struct dealt_piece dealt = dealt_of(run, i);
        right = right && run->dealt[i].is_made && dealt.looked && dealt.in_order &&
                (i == 0 || follows(run, &before, &dealt));
        strict = strict && dealt.strict;
        for (int word = 0; word < 2; word++)
            fingerprint[word] += dealt.fingerprint[word];
        for (int word = 0; word < 3; word++)
            sum[word] += dealt.sum[word];
        before = dealt;
    }
    if (!right || memcmp(fingerprint, wanted->fingerprint, sizeof fingerprint) != 0) {
        run->deal->differs = true;
        return report_fail(run->comm, HSORT_MISMATCH,
                           "%s: what was sorted is not what is read back; nothing was written",
                           run->sorted->temporary);
    }
    if (!run->unique)
        return HSORT_OK;
    // As in unique_check(): keys rise and none occurs twice; with their counts they are the keys that were sorted.
    run->deal->unique_ok = strict && sum[0] == 0 && sum[1] == 0 && sum[2] == 0;
    return run->deal->unique_ok ? HSORT_OK
                                : report_fail(run->comm, HSORT_MISMATCH,
                                              "%s: what is kept is not one of each key; nothing was written",
                                              run->deal->main_output);
}
