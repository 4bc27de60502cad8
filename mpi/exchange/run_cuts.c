/* Exact cuts of many runs in host memory. For each cut and each of its runs, a rank keeps the range in which the
 * cut may still be. All cuts are narrowed at once, in rounds:
 *
 *     1. offer    for each open cut the rank's weighted median of one key of each range: half of the keys
 *                 are in ranges with a smaller or equal one                                       Allgather
 *     2. probe    the same of all ranks' offers, by their weights: one probe for each cut, known to all
 *     3. count    keys of each range less than, and not greater than, the probe: summed over the rank's runs,
 *                 then over the ranks                                                             Allreduce
 *     4. narrow   all ranges to one side of the probe; or the probe is the key at the position: found
 *
 *     rank 0   1 4 4 7     rank 1   0 2 4 9     cut at position 4: which key is the fifth smallest?
 *              5 6
 *     offers   4 (of 4 and 6)       4           probe 4: 3 keys are less, 6 are not greater: 3 <= 4 < 6, it is 4
 *     cuts     1 4 | 4 7   | 5 6    0 2 | 4 9   one 4 more is needed, and the lowest run gives it
 *
 * Which key of a range is offered: first an estimate, as if the keys of all ranges lay alike. The cut then lies as far into each
 * range as into all of them, give or take a few times the square root of their number. The key that much beyond the cut, on the side
 * where most keys are, mostly shuts these keys out, and the next estimate shuts out those of the other side. So two rounds leave
 * about the root:
 *
 *     keys of all ranges   |---------------c----------------------------|      c: the cut
 *     first probe          |---------------c-x                                 all behind x is out
 *     second probe                       x-c-|                                 all before x is out
 *
 * If estimates have missed twice, which means that more than three quarters were left, a range's middle key is taken from then on.
 * The probe is then a median of medians, which has at least an eighth of the keys on either side, for any keys: half of the ranks'
 * keys lie with ranks that offer no greater key, half of these in ranges whose middle key is no greater, and half of such a range up
 * to its middle. So ROUNDS_MAX rounds find any cut. Rejected: middle keys only, which take as many rounds as the number of random
 * keys has bits.
 *
 * This is not the search of splitters.c. There a look at keys is a kernel's launch, so thousands of probes share a few
 * rounds, and an offer is a position in one run. Here a look is a load from memory, and each of so many probes would have
 * to be searched for in every run. Also, cuts of several runs have no single position to offer a key from.
 *
 * Source: run_cuts.h. */
#include "mpi/exchange/run_cuts.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/memory_parts.h"

enum {
    MISSES_MAX = 2,                // of estimates, after which a cut goes by middle keys
    ROUNDS_MAX = 340 + MISSES_MAX, // 63 bits of keys, an eighth less each time
    DEVIATIONS = 2,                // standard deviations, if keys lie alike, by which an estimate goes beyond the cut
    RANGES_OF_THREAD = 256         // that a thread searches at least: for fewer it does not pay to wake another one
};

/* A key to probe with, and the number of keys for which it speaks. */
struct cut_offer {
    key_code code;
    uint64_t weight, unused; // whole words of a message
};
enum { OFFER_WORDS = sizeof(struct cut_offer) / sizeof(uint64_t) };

/* Keys less than the probe, and not greater, of the ranges of one cut. */
struct cut_count {
    int64_t less, not_greater;
};

/* A range of one run in which a cut may be. less, not_greater: where its keys that are less than, or not greater than, the probe end. */
struct cut_range {
    int64_t begin, end, less, not_greater;
};

struct run_cuts {
    const struct comm *comm;
    int64_t runs;
    int at_once;
    struct cut_range *range;     /* [at_once * runs] */
    struct cut_offer *middle;    /* [at_once * runs] */
    struct cut_offer *offer;     /* [at_once] own; then all probes */
    struct cut_offer *gathered;  /* [size * at_once] */
    struct cut_offer *of_ranks;  /* [size] */
    struct cut_count *own, *sum; /* [at_once] */
    int64_t *rest;               /* [at_once] keys before the cut that lie in its ranges, all ranks */
    int64_t *inside;             /* [at_once] keys in its ranges, all ranks */
    int *missed;                 /* [at_once] estimates that have missed */
    bool *found;                 /* [at_once] the ranges hold equal keys only */
    int64_t *equal, *before;     /* [at_once] own keys in the ranges; those of lower ranks */
};

/* ---- tables -------------------------------------------------------------------------------------------- */

/* Lay out a search for the numbers in it: the struct first, then its tables. Returns the bytes of both. */
static size_t lay_out_cuts(struct run_cuts *c, int ranks, void *memory)
{
    const int64_t cuts = c->at_once, ranges = cuts * c->runs;
    char *at = memory;
    take_table(&at, 1, sizeof *c);
    c->range = take_table(&at, ranges, sizeof *c->range);
    c->middle = take_table(&at, ranges, sizeof *c->middle);
    c->offer = take_table(&at, cuts, sizeof *c->offer);
    c->gathered = take_table(&at, ranks * cuts, sizeof *c->gathered);
    c->of_ranks = take_table(&at, ranks, sizeof *c->of_ranks);
    c->own = take_table(&at, cuts, sizeof *c->own);
    c->sum = take_table(&at, cuts, sizeof *c->sum);
    c->rest = take_table(&at, cuts, sizeof *c->rest);
    c->inside = take_table(&at, cuts, sizeof *c->inside);
    c->missed = take_table(&at, cuts, sizeof *c->missed);
    c->found = take_table(&at, cuts, sizeof *c->found);
    c->equal = take_table(&at, cuts, sizeof *c->equal);
    c->before = take_table(&at, cuts, sizeof *c->before);
    return (size_t)(at - (char *)memory);
}

size_t run_cuts_bytes(int ranks, int64_t runs, int at_once)
{
    struct run_cuts c = {.runs = runs, .at_once = at_once};
    return lay_out_cuts(&c, ranks, NULL);
}

hsort_status run_cuts_open(const struct comm *comm, int64_t runs, int at_once, struct run_cuts **cuts)
{
    struct run_cuts c = {.comm = comm, .runs = runs, .at_once = at_once};
    *cuts = fault_hit(FAULT_ALLOC) ? NULL : calloc(1, run_cuts_bytes(comm->size, runs, at_once));
    if (!*cuts)
        return status_fail(HSORT_HOST_MEMORY, "no memory to cut %lld runs", (long long)runs);
    lay_out_cuts(&c, comm->size, *cuts);
    **cuts = c;
    return HSORT_OK;
}

void run_cuts_close(struct run_cuts *c)
{
    free(c);
}

/* ---- 1. offer ------------------------------------------------------------------------------------------ */

static int compare_offers(const void *a, const void *b)
{
    const key_code left = ((const struct cut_offer *)a)->code, right = ((const struct cut_offer *)b)->code;
    return (left > right) - (left < right);
}

/* The offer up to which half of the weight lies; it speaks for all of the weight. Weight 0 if there is none. Sorts
 * offers. */
static struct cut_offer weighted_median(struct cut_offer *offers, int64_t count)
{
    uint64_t all = 0, up_to = 0;
    qsort(offers, (size_t)count, sizeof *offers, compare_offers);
    for (int64_t i = 0; i < count; i++)
        all += offers[i].weight;
    for (int64_t i = 0; i < count; i++) {
        up_to += offers[i].weight;
        if (offers[i].weight > 0 && up_to >= all - up_to)
            return (struct cut_offer){.code = offers[i].code, .weight = all};
    }
    return (struct cut_offer){.weight = 0};
}

static bool is_estimated(const struct run_cuts *c, int64_t cut)
{
    return c->missed[cut] < MISSES_MAX;
}

/* How far into each range lies the key to offer, as a part of the range. */
static double offered_part(const struct run_cuts *c, int64_t cut)
{
    const double all = (double)c->inside[cut], before = (double)c->rest[cut] + 0.5;
    if (!is_estimated(c, cut) || c->rest[cut] < 0 || c->rest[cut] >= c->inside[cut])
        return 0.5; // in the last two cases some run is not sorted
    const double beyond = DEVIATIONS * sqrt(before * (all - before) / all);
    return (2 * before < all ? before + beyond : before - beyond) / all;
}

/* This rank's offer for one cut. */
static struct cut_offer offer_for_cut(const struct run_cuts *c, const struct run_set *set, int64_t cut)
{
    const struct cut_range *range = c->range + cut * c->runs;
    struct cut_offer *middle = c->middle + cut * c->runs;
    const double part = offered_part(c, cut);
    int64_t count = 0;
    for (int64_t run = 0; run < c->runs && !c->found[cut]; run++) {
        const int64_t begin = range[run].begin, keys = range[run].end - begin;
        const int64_t at = int64_clamp((int64_t)(part * (double)keys), 0, keys - 1);
        if (keys > 0)
            middle[count++] = (struct cut_offer){.code = set->code_at(set->state, cut, run, begin + at),
                                                 .weight = (uint64_t)keys};
    }
    return weighted_median(middle, count);
}

/* ---- 2. probe ------------------------------------------------------------------------------------------ */

/* Make the offers of all ranks one probe for each cut, in c->offer. Collective. */
static hsort_status agree_on_probes(struct run_cuts *c, int count)
{
    const int size = c->comm->size, words = OFFER_WORDS * count;
    const hsort_status status = comm_check(
        MPI_Allgather(c->offer, words, MPI_UINT64_T, c->gathered, words, MPI_UINT64_T, c->comm->world),
        "MPI_Allgather", true);
    for (int cut = 0; cut < count; cut++) {
        for (int rank = 0; rank < size; rank++)
            c->of_ranks[rank] = c->gathered[(int64_t)rank * count + cut];
        c->offer[cut] = weighted_median(c->of_ranks, size);
    }
    return status;
}

/* ---- 3. count ------------------------------------------------------------------------------------------ */

/* The first position of begin .. end of a run whose key is not less than `code`, or is greater than it. */
static int64_t search_run(const struct run_set *set, int64_t cut, int64_t run, int64_t begin, int64_t end,
                          key_code code, bool greater)
{
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        const key_code key = set->code_at(set->state, cut, run, middle);
        if (key < code || (greater && key == code))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static struct cut_count count_for_cut(const struct run_cuts *c, const struct run_set *set, int64_t cut)
{
    const key_code probe = c->offer[cut].code;
    struct cut_count own = {0, 0};
    for (int64_t run = 0; run < c->runs && !c->found[cut]; run++) {
        struct cut_range *range = &c->range[cut * c->runs + run];
        range->less = search_run(set, cut, run, range->begin, range->end, probe, false);
        range->not_greater = range->less; // mostly: the probe is a key of one run
        if (range->less < range->end && set->code_at(set->state, cut, run, range->less) == probe)
            range->not_greater = search_run(set, cut, run, range->less, range->end, probe, true);
        own.less += range->less - range->begin;
        own.not_greater += range->not_greater - range->begin;
    }
    return own;
}

/* Sum what all ranks have counted. Collective. */
static hsort_status sum_counts(struct run_cuts *c, int count)
{
    if (comm_is_alone(c->comm)) {
        memcpy(c->sum, c->own, (size_t)count * sizeof *c->sum);
        return HSORT_OK;
    }
    return comm_check(MPI_Allreduce(c->own, c->sum, 2 * count, MPI_INT64_T, MPI_SUM, c->comm->world),
                      "MPI_Allreduce", true);
}

/* ---- 4. narrow ----------------------------------------------------------------------------------------- */

/* Narrow one cut. What is found follows from sums and probes, so it is the same on every rank. */
static void narrow_run_cut(struct run_cuts *c, int64_t cut)
{
    const struct cut_count sum = c->sum[cut];
    const bool lower = c->rest[cut] < sum.less, higher = c->rest[cut] >= sum.not_greater;
    const int64_t left = lower    ? sum.less
                         : higher ? c->inside[cut] - sum.not_greater
                                  : sum.not_greater - sum.less;
    if (c->found[cut])
        return;
    if (is_estimated(c, cut) && left > c->inside[cut] - c->inside[cut] / 4)
        c->missed[cut]++;
    c->inside[cut] = left;
    // Without a key in any range, the cut is where the empty ranges are.
    c->found[cut] = (!lower && !higher) || c->offer[cut].weight == 0;
    for (int64_t run = 0; run < c->runs && c->offer[cut].weight > 0; run++) {
        struct cut_range *range = &c->range[cut * c->runs + run];
        range->begin = higher ? range->not_greater : lower ? range->begin : range->less;
        range->end = lower ? range->less : higher ? range->end : range->not_greater;
    }
    c->rest[cut] -= higher ? sum.not_greater : lower ? 0 : sum.less;
}

/* ---- the cuts ------------------------------------------------------------------------------------------ */

static void start_cuts(struct run_cuts *c, const struct run_set *set, const int64_t *positions, int64_t total,
                       int count)
{
    for (int64_t cut = 0; cut < count; cut++) {
        // At either end of all keys the ranges are empty at once.
        const bool searched = positions[cut] > 0 && positions[cut] < total;
        c->rest[cut] = searched ? positions[cut] : 0;
        c->inside[cut] = searched ? total : 0;
        c->missed[cut] = 0;
        c->found[cut] = !searched;
        for (int64_t run = 0; run < c->runs; run++) {
            const int64_t end = searched || positions[cut] > 0 ? set->count[run] : 0;
            c->range[cut * c->runs + run] = (struct cut_range){.begin = searched ? 0 : end, .end = end};
        }
    }
}

static int search_threads(const struct run_cuts *c, int count)
{
    return (int)int64_clamp(count * c->runs / RANGES_OF_THREAD, 1, c->comm->threads);
}

/* All rounds of a rank alone: nobody has to be asked, so each cut is found by one thread, which waits for no other. */
static void narrow_alone(struct run_cuts *c, const struct run_set *set, int count)
{
#pragma omp parallel for schedule(dynamic) num_threads(search_threads(c, count))
    for (int64_t cut = 0; cut < count; cut++)
        for (int round = 0; !c->found[cut] && round < ROUNDS_MAX; round++) {
            c->offer[cut] = offer_for_cut(c, set, cut);
            c->sum[cut] = count_for_cut(c, set, cut);
            narrow_run_cut(c, cut);
        }
}

/* One round. Collective. */
static hsort_status narrow_cuts(struct run_cuts *c, const struct run_set *set, int count)
{
    const int threads = search_threads(c, count);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t cut = 0; cut < count; cut++)
        c->offer[cut] = offer_for_cut(c, set, cut);
    hsort_status status = agree_on_probes(c, count);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t cut = 0; cut < count; cut++)
        c->own[cut] = count_for_cut(c, set, cut);
    keep_first_error(&status, sum_counts(c, count));
    for (int64_t cut = 0; cut < count; cut++)
        narrow_run_cut(c, cut);
    return status;
}

/* Is some cut not found? The same on every rank. */
static bool are_open(const struct run_cuts *c, int count)
{
    bool open = false;
    for (int cut = 0; cut < count; cut++)
        open = open || !c->found[cut];
    return open;
}

/* Deal out the equal keys that are left in the ranges: those of lower ranks, then those of lower runs, go before the cut
 * first. Collective. */
static hsort_status deal_equal(struct run_cuts *c, int count, int64_t *cut_offset)
{
    hsort_status status = HSORT_OK;
    memset(c->equal, 0, (size_t)count * sizeof *c->equal);
    memset(c->before, 0, (size_t)count * sizeof *c->before);
    for (int64_t i = 0; i < count * c->runs; i++)
        c->equal[i / c->runs] += c->range[i].end - c->range[i].begin;
    if (!comm_is_alone(c->comm))
        status = comm_check(MPI_Exscan(c->equal, c->before, count, MPI_INT64_T, MPI_SUM, c->comm->world),
                            "MPI_Exscan", true);
    if (c->comm->rank == 0) // MPI leaves it undefined there
        memset(c->before, 0, (size_t)count * sizeof *c->before);
    for (int64_t cut = 0; cut < count; cut++) {
        int64_t wanted = c->rest[cut] - c->before[cut];
        for (int64_t run = 0; run < c->runs; run++) {
            const struct cut_range *range = &c->range[cut * c->runs + run];
            const int64_t taken = int64_clamp(wanted, 0, range->end - range->begin);
            cut_offset[cut * c->runs + run] = range->begin + taken;
            wanted -= taken;
        }
    }
    return status;
}

/* Begin with the ranges that the caller knows: what lies below them is before the cuts, on all ranks. Collective. */
static hsort_status start_within(struct run_cuts *c, const int64_t *positions, int count,
                                 const int64_t *begin, const int64_t *end)
{
    memset(c->own, 0, (size_t)count * sizeof *c->own);
    for (int64_t i = 0; i < count * c->runs; i++) {
        c->range[i] = (struct cut_range){.begin = begin[i], .end = end[i]};
        c->own[i / c->runs].less += begin[i];
        c->own[i / c->runs].not_greater += end[i];
    }
    const hsort_status status = sum_counts(c, count);
    for (int cut = 0; cut < count; cut++) {
        c->rest[cut] = positions[cut] - c->sum[cut].less;
        c->inside[cut] = c->sum[cut].not_greater - c->sum[cut].less;
        c->missed[cut] = 0;
        c->found[cut] = false;
    }
    return status;
}

/* Narrow the ranges of at_once cuts at most until they are found. Collective. */
static hsort_status search(struct run_cuts *c, const struct run_set *set, int count, int64_t *cut_offset)
{
    hsort_status status = HSORT_OK;
    if (comm_is_alone(c->comm))
        narrow_alone(c, set, count);
    else
        for (int round = 0; round < ROUNDS_MAX && are_open(c, count); round++)
            keep_first_error(&status, narrow_cuts(c, set, count));
    keep_first_error(&status, deal_equal(c, count, cut_offset));
    if (are_open(c, count))
        keep_first_error(&status, status_fail(HSORT_INTERNAL, "%lld runs cannot be cut: some are not sorted",
                                              (long long)c->runs));
    return status;
}

hsort_status run_cuts_find(struct run_cuts *c, const struct run_set *set, int64_t total,
                           const int64_t *positions, int64_t count, int64_t *cut_offset)
{
    hsort_status status = HSORT_OK;
    for (int64_t first = 0; first < count; first += c->at_once) {
        const int some = (int)lesser(count - first, c->at_once);
        start_cuts(c, set, positions + first, total, some);
        keep_first_error(&status, search(c, set, some, cut_offset + first * c->runs));
    }
    return status;
}

hsort_status run_cuts_find_within(struct run_cuts *c, const struct run_set *set, const int64_t *positions,
                                  int count, const int64_t *begin, const int64_t *end, int64_t *cut_offset)
{
    hsort_status status = start_within(c, positions, count, begin, end);
    keep_first_error(&status, search(c, set, count, cut_offset));
    return status;
}
