/* Ranges are narrowed by samples: every n-th element of each range, of which the code of its key is kept. Samples say of a range
 * what fences say of a run (disk_cuts.c). The next samples lie closer together, until all elements are samples or little enough is
 * left:
 *
 *     range of run 0     | . . . . . . . . . . . . . . . . |     cut in it, by fences
 *     samples            0       4       8       12              as many as memory has codes for
 *     narrowed                   | . . . . . . . |               two steps or so
 *     samples                    0 1 2 3 4 5 6 7                 each element: they give the cut itself
 *
 * Samples that lie close together are read with all that is between them, in large pieces. Others are read one by one, and of each no
 * more than its keys. A read of one key takes as long as a read of many KiB, so ranges of some size have few samples and more rounds. */
#include "src/library/disk_look.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "kernels/base/thread_failures.h"

enum {
    LEAST_SAMPLES = 64,       /* of each run, for which there is memory in any case */
    LONE_SAMPLES = 16,        /* of each run in a round, if they are read one by one; they leave a seventh */
    PIECE_BYTES = 64 << 10,   /* read at once; samples that are further apart are read one by one, */
    STREAM_BYTES = 512 << 10, /* and so are samples of ranges that have more on average */
    READERS_LEAST = 4         /* threads at least, because they wait for the disk, too */
};

/* ---- reading ------------------------------------------------------------------------------------------- */

int disk_look_threads(const struct disk_look *look, size_t bytes)
{
    const int64_t fit = (int64_t)(look->bytes / 2 / (bytes + 1));
    return (int)int64_clamp(fit, 1, greater(look->threads, READERS_LEAST));
}

hsort_status disk_look_read(const struct disk_look *look, int64_t run, int64_t first, int64_t count, void *to)
{
    const size_t width = look->plan->element_bytes;
    return count == 0 ? HSORT_OK
                      : look->store->read_run(look->store->user, run, first * (int64_t)width,
                                              (size_t)count * width, to);
}

/* ---- keys alone ---------------------------------------------------------------------------------------- */

/* The part of an element that has all of its keys. */
struct key_part {
    struct pass_elements elements; /* as if elements were that part */
    struct pass_sort sort;
    size_t at, bytes;
};

static void find_key_part(const struct pass_sort *sort, struct key_part *part)
{
    size_t begin = SIZE_MAX, end = 0;
    *part = (struct key_part){.sort = *sort, .bytes = pass_element_bytes(sort)};
    if (!sort->elements)
        return;
    part->elements = *sort->elements;
    part->sort.elements = &part->elements;
    for (int i = 0; i < part->elements.field_count; i++) {
        const size_t at = part->elements.offsets[i], up_to = at + (size_t)part->elements.fields[i].bytes;
        begin = lesser_bytes(begin, at);
        end = greater_bytes(end, up_to);
    }
    for (int i = 0; i < part->elements.field_count; i++)
        part->elements.offsets[i] -= begin;
    part->at = begin;
    part->bytes = part->elements.bytes = end - begin;
}

/* ---- samples ------------------------------------------------------------------------------------------- */

struct samples {
    const struct disk_look *look;
    struct key_part keys;
    int64_t *begin, *end; /* [parts] the ranges */
    int64_t step;         /* from one sample to the next */
    bool alone;           /* each is read by itself */
    int64_t *count;       /* [2 * parts] of each run, for each of two cuts */
    int64_t *none;        /* [2 * parts] zeros */
    int64_t *cut;         /* [2 * parts] in samples */
    int64_t *first;       /* [parts] of each run, in code */
    key_code *code;       /* of all samples */
};

static int64_t count_ranges(const struct samples *s)
{
    int64_t count = 0;
    for (int64_t run = 0; run < s->look->plan->parts; run++)
        count += s->end[run] - s->begin[run];
    return count;
}

/* Choose how far samples are apart, and how they are read. All of them fit memory, with one more for each range. */
static void choose_step(struct samples *s, int64_t elements)
{
    const int64_t parts = s->look->plan->parts, width = (int64_t)s->look->plan->element_bytes;
    const int64_t fit = (int64_t)(s->look->bytes / 2 / sizeof *s->code), least = LEAST_SAMPLES * parts;
    const int64_t most = greater(fit, least) - parts, few = (LONE_SAMPLES - 1) * parts;
    s->step = divide_up(elements, most);
    s->alone = s->step > PIECE_BYTES / width || elements / parts > STREAM_BYTES / width;
    if (s->alone)
        s->step = greater(s->step, divide_up(elements, few));
}

static hsort_status read_samples_of(const struct samples *s, int64_t run)
{
    const struct disk_look *look = s->look;
    const int64_t width = (int64_t)look->plan->element_bytes, begin = s->begin[run];
    const int64_t piece = s->alone ? 1 : PIECE_BYTES / width;
    key_code *code = s->code + s->first[run];
    if (s->count[run] == 0)
        return HSORT_OK;
    char *buffer = fault_hit(FAULT_ALLOC) ? NULL : malloc(s->alone ? s->keys.bytes : (size_t)(piece * width));
    hsort_status status =
        buffer ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory to look at run %lld", (long long)run);
    for (int64_t i = 0; i < s->count[run] && status == HSORT_OK;) {
        const int64_t at = begin + i * s->step, left = s->end[run] - at;
        if (s->alone) {
            status = look->store->read_run(look->store->user, run, at * width + (int64_t)s->keys.at,
                                           s->keys.bytes, buffer);
            code[i++] = status == HSORT_OK ? pass_code_at(&s->keys.sort, buffer, 0) : 0;
            continue;
        }
        const int64_t some = lesser(piece, left);
        status = disk_look_read(look, run, at, some, buffer);
        for (int64_t in = 0; in < some && status == HSORT_OK; in += s->step)
            code[i++] = pass_code_at(look->sort, buffer, in);
    }
    free(buffer);
    return status;
}

static hsort_status read_samples(struct samples *s)
{
    const int64_t parts = s->look->plan->parts;
    struct thread_failures failures;
    int64_t all = 0;
    for (int64_t run = 0; run < parts; run++) {
        s->first[run] = all;
        s->count[run] = s->count[parts + run] = divide_up(s->end[run] - s->begin[run], s->step);
        all += s->count[run];
    }
    s->code = fault_hit(FAULT_ALLOC) ? NULL : malloc((size_t)(all + 1) * sizeof *s->code);
    if (!s->code)
        return status_fail(HSORT_HOST_MEMORY, "no memory for %lld keys of runs", (long long)all);
    const int threads = disk_look_threads(s->look, s->alone ? s->keys.bytes : PIECE_BYTES);
    thread_failures_begin(&failures);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t run = 0; run < parts; run++)
        thread_failures_note(&failures, read_samples_of(s, run));
    return thread_failures_end(&failures);
}

static key_code code_of_sample(const void *samples, int64_t cut, int64_t run, int64_t i)
{
    (void)cut;
    const struct samples *s = samples;
    return s->code[s->first[run] + i];
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

/* Narrow ranges by their samples, as runs are by their fences. rest: elements in the ranges before the cut. */
static hsort_status narrow_by_samples(struct samples *s, struct run_cuts *tables, int64_t rest)
{
    const struct run_set set = {.count = s->count, .code_at = code_of_sample, .state = s};
    const int64_t parts = s->look->plan->parts, step = s->step;
    int64_t all = 0;
    for (int64_t run = 0; run < parts; run++)
        all += s->count[run];
    const int64_t position[] = {int64_clamp(rest / step, 0, all),
                                int64_clamp(divide_up(rest, step) + (step > 1 ? parts : 0), 0, all)};
    TRY(run_cuts_find_within(tables, &set, position, 2, s->none, s->count, s->cut));
    for (int64_t run = 0; run < parts; run++) {
        const int64_t begin = s->begin[run], end = s->end[run], before = s->cut[run],
                      up_to = s->cut[parts + run];
        s->begin[run] = step == 1 ? begin + before : before > 0 ? begin + (before - 1) * step : begin;
        s->end[run] = up_to < s->count[run] || step == 1 ? begin + up_to * step : end;
        if (s->end[run] < s->begin[run]) // runs are not in order: the check of the cuts says so
            s->end[run] = s->begin[run];
    }
    return HSORT_OK;
}

static hsort_status narrow_once(struct samples *s, struct run_cuts *tables, int64_t position)
{
    const int64_t elements = count_ranges(s);
    int64_t rest = position;
    for (int64_t run = 0; run < s->look->plan->parts; run++)
        rest -= s->begin[run];
    choose_step(s, elements);
    hsort_status status = read_samples(s);
    if (status == HSORT_OK)
        status = narrow_by_samples(s, tables, int64_clamp(rest, 0, elements));
    free(s->code);
    s->code = NULL;
    if (status == HSORT_OK && count_ranges(s) >= elements)
        return status_fail(HSORT_INTERNAL, "samples of runs do not narrow their cuts");
    return status;
}

hsort_status disk_look_narrow(const struct disk_look *look, struct run_cuts *tables, int64_t position,
                              int64_t most, int64_t *begin, int64_t *end)
{
    enum { TABLES = 7 };
    const int64_t parts = look->plan->parts;
    struct samples s = {.look = look, .begin = begin, .end = end};
    int64_t *table = fault_hit(FAULT_ALLOC) ? NULL : calloc((size_t)(TABLES * parts), sizeof *table);
    if (!table)
        return status_fail(HSORT_HOST_MEMORY, "no memory to look at %lld runs", (long long)parts);
    find_key_part(look->sort, &s.keys);
    s.count = table;
    s.none = table + 2 * parts;
    s.cut = table + 4 * parts;
    s.first = table + 6 * parts;
    hsort_status status = HSORT_OK;
    while (status == HSORT_OK && count_ranges(&s) > most)
        status = narrow_once(&s, tables, position);
    free(table);
    return status;
}
