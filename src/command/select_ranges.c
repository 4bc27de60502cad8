#include "src/command/select_ranges.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/fault.h"
#include "kernels/base/lesser.h"
#include "mpi/comm/node_memory.h"

enum { BINS_LOG = 17, BINS_OF_RANGE_LOG = 16 }; /* at most: of all ranges, of one */

/* ---- Ranges: not collective ---------------------------------------------------------------------------- */

static bool has_one_code(const struct code_range *range)
{
    return range->first == range->last;
}

static key_code shown_code(const void *codes, int code_bytes, int64_t i)
{
    key_code code = 0;
    memcpy(&code, (const char *)codes + i * code_bytes, (size_t)code_bytes); // little-endian
    return code;
}

/* The last range that begins at `code` or before it; -1: none does. */
static int range_before(const struct code_selection *s, key_code code)
{
    int low = 0, high = s->ranges;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (s->range[middle].first <= code)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* The range of several codes that has this one, or -1. */
static int range_with(const struct code_selection *s, key_code code)
{
    const int at = range_before(s, code);
    return at >= 0 && code <= s->range[at].last && !has_one_code(&s->range[at]) ? at : -1;
}

static int64_t own_in_ranges(const struct code_selection *s)
{
    int64_t own = 0;
    for (int i = 0; i < s->ranges; i++)
        own += has_one_code(&s->range[i]) ? 0 : s->range[i].own;
    return own;
}

int select_ranges_place(const struct code_selection *s, int64_t position, int64_t *among_kept)
{
    int64_t kept = 0;
    for (int i = 0; i < s->ranges; i++) {
        const struct code_range *range = &s->range[i];
        if (position < range->below + range->count) {
            *among_kept = has_one_code(range) ? -1 : kept + (position - range->below);
            return i;
        }
        kept += has_one_code(range) ? 0 : range->count;
    }
    *among_kept = -1;
    return -1;
}

/* ---- A reading that counts ----------------------------------------------------------------------------- */

/* Bins of all ranges, one range behind the other: code c of range r is in bin[begin[r] + ((c - first) >> shift[r])]. */
struct code_bins {
    const struct code_selection *s;
    int code_bytes, threads;
    int64_t *own;       /* [threads * begin[ranges]] keys that each thread has seen; owned */
    int64_t *all;       /* [begin[ranges]] keys of all ranks; owned */
    int *begin, *shift; /* [ranges + 1], [ranges]; owned */
};

static int bits_of_width(key_code number)
{
    int bits = 0;
    for (; number > 0; number >>= 1)
        bits++;
    return bits;
}

static void free_bins(struct code_bins *b)
{
    free(b->own);
    free(b->all);
    free(b->begin);
    free(b->shift);
}

static hsort_status make_bins(struct code_bins *b)
{
    const int ranges = b->s->ranges, most = (int)lesser(BINS_OF_RANGE_LOG, BINS_LOG - depth_of(ranges));
    b->begin = calloc((size_t)ranges + 1, sizeof *b->begin);
    b->shift = calloc((size_t)ranges, sizeof *b->shift);
    if (!b->begin || !b->shift || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory to count keys in %d ranges", ranges);
    for (int i = 0; i < ranges; i++) {
        const key_code width = b->s->range[i].last - b->s->range[i].first;
        b->shift[i] = (int)greater(0, bits_of_width(width) - most);
        b->begin[i + 1] = b->begin[i] + (int)(width >> b->shift[i]) + 1;
    }
    const size_t bins = (size_t)b->begin[ranges];
    b->own = calloc(bins * (size_t)b->threads, sizeof *b->own);
    b->all = calloc(bins, sizeof *b->all);
    return b->own && b->all ? HSORT_OK
                            : status_fail(HSORT_HOST_MEMORY, "no memory to count keys in %zu bins", bins);
}

/* code_reader.see: each thread counts in bins of its own, because keys that repeat would make threads wait for one bin. */
static void count_codes(void *bins, const void *codes, int64_t count)
{
    const struct code_bins *b = bins;
#pragma omp parallel num_threads(b->threads)
    {
        int64_t *own = b->own + (int64_t)omp_get_thread_num() * b->begin[b->s->ranges];
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++) {
            const key_code code = shown_code(codes, b->code_bytes, i);
            const int in = range_with(b->s, code);
            if (in >= 0)
                own[b->begin[in] + (int)((code - b->s->range[in].first) >> b->shift[in])]++;
        }
    }
}

/* own [begin[ranges]] = what all threads have seen. */
static void join_threads(struct code_bins *b)
{
    const int bins = b->begin[b->s->ranges];
    for (int thread = 1; thread < b->threads; thread++)
        for (int bin = 0; bin < bins; bin++)
            b->own[bin] += b->own[(int64_t)thread * bins + bin];
}

/* Are there as many keys in each range as a reading before has found? */
static hsort_status check_counts(const struct code_bins *b, const char *name)
{
    for (int i = 0; i < b->s->ranges; i++) {
        int64_t count = 0;
        for (int bin = b->begin[i]; bin < b->begin[i + 1]; bin++)
            count += b->all[bin];
        if (count != b->s->range[i].count && !has_one_code(&b->s->range[i]))
            return status_fail(HSORT_IO, "%s: was changed while it was read", name);
    }
    return HSORT_OK;
}

/* The part of range `in` that has `position`. */
static struct code_range bin_of(const struct code_bins *b, int in, int64_t position)
{
    const struct code_range *range = &b->s->range[in];
    struct code_range part = {.below = range->below};
    int bin = b->begin[in];
    for (; position >= part.below + b->all[bin]; bin++)
        part.below += b->all[bin];
    part.first = range->first + ((key_code)(bin - b->begin[in]) << b->shift[in]);
    part.last = part.first + (((key_code)1 << b->shift[in]) - 1);
    if (part.last > range->last)
        part.last = range->last;
    part.count = b->all[bin];
    part.own = b->own[bin];
    return part;
}

/* Replace the ranges by those of their bins that have a position. `made` [wanted] is room for them. */
static void take_bins(struct code_selection *s, const struct code_bins *b, const int64_t *positions,
                      int wanted, struct code_range *made)
{
    int ranges = 0;
    for (int i = 0; i < wanted; i++) {
        int64_t kept;
        if (ranges > 0 && positions[i] < made[ranges - 1].below + made[ranges - 1].count)
            continue;
        const int in = select_ranges_place(s, positions[i], &kept);
        made[ranges++] = has_one_code(&s->range[in]) ? s->range[in] : bin_of(b, in, positions[i]);
    }
    memcpy(s->range, made, (size_t)ranges * sizeof *made);
    s->ranges = ranges;
}

/* Read all codes once, and count them. Collective. */
static hsort_status fill_bins(struct comm *comm, const struct code_reader *reader, struct code_bins *b)
{
    TRY(comm_agree(comm, make_bins(b)));
    TRY(comm_agree(comm, reader->read(reader->user, count_codes, b)));
    join_threads(b);
    TRY(comm_agree(comm, comm_sums(comm, b->own, b->begin[b->s->ranges], b->all)));
    return comm_agree(comm, check_counts(b, reader->name));
}

/* Make the ranges smaller. Collective. */
static hsort_status narrow_ranges(struct comm *comm, const struct code_reader *reader,
                                  const int64_t *positions, int wanted, struct code_selection *s)
{
    struct code_bins bins = {.s = s, .code_bytes = reader->code_bytes, .threads = reader->threads};
    struct code_range *made = calloc((size_t)wanted, sizeof *made);
    hsort_status status =
        comm_agree(comm, made ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for %d ranges", wanted));
    if (status == HSORT_OK)
        status = fill_bins(comm, reader, &bins);
    if (status == HSORT_OK)
        take_bins(s, &bins, positions, wanted, made);
    s->readings++;
    free_bins(&bins);
    free(made);
    return status;
}

/* ---- The reading that keeps ---------------------------------------------------------------------------- */

struct code_keeper {
    struct code_selection *s;
    int code_bytes, threads;
    int64_t room;
};

static bool is_kept(const struct code_keeper *k, const void *codes, int64_t i)
{
    return range_with(k->s, shown_code(codes, k->code_bytes, i)) >= 0;
}

/* Keep codes begin .. end - 1 that lie in ranges, by one thread of several: it takes a place for all of them at once. */
static void keep_codes_of(const struct code_keeper *k, const void *codes, int64_t begin, int64_t end)
{
    int64_t own = 0, place;
    for (int64_t i = begin; i < end; i++)
        own += is_kept(k, codes, i);
#pragma omp atomic capture
    {
        place = k->s->count;
        k->s->count += own;
    }
    if (place + own > k->room) // the file has changed, which is looked at afterwards
        return;
    for (int64_t i = begin; i < end; i++)
        if (is_kept(k, codes, i))
            memcpy((char *)k->s->codes + place++ * k->code_bytes, (const char *)codes + i * k->code_bytes,
                   (size_t)k->code_bytes);
}

/* code_reader.see */
static void keep_codes(void *keeper, const void *codes, int64_t count)
{
    const struct code_keeper *k = keeper;
#pragma omp parallel for num_threads(k->threads)
    for (int part = 0; part < k->threads; part++)
        keep_codes_of(k, codes, count * part / k->threads, count * (part + 1) / k->threads);
}

/* Collective. */
static hsort_status keep_ranges(struct comm *comm, const struct code_reader *reader, struct code_selection *s)
{
    struct code_keeper keeper = {s, reader->code_bytes, reader->threads, own_in_ranges(s)};
    const size_t bytes = (size_t)keeper.room * (size_t)reader->code_bytes;
    hsort_status status = node_memory_check(comm, bytes + reader->bytes);
    s->codes = status == HSORT_OK && !fault_hit(FAULT_ALLOC) ? malloc(bytes + 1) : NULL;
    if (status == HSORT_OK && !s->codes)
        status = status_fail(HSORT_HOST_MEMORY, "no memory for %lld keys", (long long)keeper.room);
    int64_t open;
    TRY(comm_agree(comm, status));
    TRY(comm_agree(comm, comm_sum(comm, keeper.room, &open)));
    if (open == 0)
        return HSORT_OK;
    status = reader->read(reader->user, keep_codes, &keeper);
    s->readings++;
    if (status == HSORT_OK && s->count != keeper.room)
        status = status_fail(HSORT_IO, "%s: was changed while it was read", reader->name);
    return comm_agree(comm, status);
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

hsort_status select_ranges_find(struct comm *comm, const struct code_reader *reader, const int64_t *positions,
                                int wanted, int64_t most, struct code_selection *s)
{
    *s = (struct code_selection){.range = calloc((size_t)wanted, sizeof *s->range), .ranges = 1};
    TRY(comm_agree(comm,
                   s->range ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for %d ranges", wanted)));
    s->range[0] =
        (struct code_range){.last = key_max(reader->code_bytes), .count = reader->total, .own = reader->own};
    for (;;) {
        bool fit;
        TRY(comm_all(comm, own_in_ranges(s) <= most, &fit));
        if (fit)
            return keep_ranges(comm, reader, s);
        TRY(narrow_ranges(comm, reader, positions, wanted, s));
    }
}

void select_ranges_free(struct code_selection *s)
{
    free(s->range);
    free(s->codes);
    *s = (struct code_selection){0};
}
