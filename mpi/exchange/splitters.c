/* Exact splitters: for each boundary between two ranks the key at the boundary's global position, and from it
 * where every rank's run is cut. All boundaries are searched at once, in rounds of many probes:
 *
 *     1. offer    each rank offers keys of its own from where splitters may still be       gather, Allgather
 *     2. probe    the offers, some codes spread over each open interval, and two near where the splitter should be if keys
 *                 are spread evenly in it, are the probes; all ranks know all of them
 *     3. count    own keys less than and not greater than each probe, summed over ranks    search, Allreduce
 *     4. narrow   a splitter lies between the two probes whose sums enclose its position; it is found when a probe has
 *                 less <= position < not greater
 *
 *     rank 0   1 4 4 7     rank 1   0 2 4 9     boundary at position 4: which key is the fifth smallest?
 *     probes          2        4        7
 *     less            2        3        6       3 <= 4 < 6: it is 4
 *     not greater     3        6        7
 *     keys below 4    rank 0   1   rank 1   2   one 4 more is needed, and the lower rank gives it:
 *     cuts            rank 0   2   rank 1   2   1 4 | 4 7     0 2 | 4 9
 *
 * The spread codes are the guarantee: no input takes more than rounds_most(). Bisection by codes alone would take a round per bit of
 * every key; offers alone might never reach a splitter whose keys all lie on one busy rank.
 *
 * What a rank offers is chosen from where its own keys lie and needs no label: a probe is of use to the
 * interval it falls into. Message lengths follow from the number of ranks, the capacity and what all ranks
 * have received, so a rank that failed to read its keys still keeps to the schedule.
 *
 * Source   Siebert, Wolf, "Parallel sorting with minimal data", 2011 (exact splitting); Solomonik, Kale, "Highly
 *          scalable parallel sorting", 2010 (histogram sort: probes and counts for all splitters at once). */
#include "kernels/base/memory_parts.h"
#include "mpi/exchange/splitters.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    OFFERS = 4096,       // of all ranks together in a round, unless there are more ranks
    OFFERS_FEW = 16,     // the most of one rank, if the capacity is KEYS_PER_OFFER times as much or less;
    KEYS_PER_OFFER = 64, // beyond that, one offer for each so many keys
    SPREAD = 1024,       // codes spread over all open intervals together,
    SPREAD_MAX = 15,     // but at most so many over one interval, and at least one
    ESTIMATED = 64,      // keys in an interval from which on the splitter's code is estimated
    ROUNDS_MAX = 129     // of codes of any width: rounds_most()
};

struct splitter {
    int64_t position;           // of its key among all keys
    key_code low, high;         // its key is one of these; the same on every rank
    int64_t below, upto;        // keys less than low, and not greater than high, on all ranks
    bool found;                 // then its key is low
    int64_t less;               // when found: keys less than it, on all ranks
    int64_t own_begin, own_end; // own keys of low .. high
};

struct splitters {
    int size, open;
    struct splitter *splitter;           /* [size]; entry r is the boundary before rank r, entry 0 not used */
    int offers_max;                      /* of one rank in one round */
    key_code *offers;                    /* [1 + offers_max] how many, then the codes */
    key_code *gathered;                  /* [size * (1 + offers_max)] */
    int64_t *positions;                  /* [offers_max] */
    key_code *probes, *scratch;          /* [probes_max] */
    int64_t *own, *sums;                 /* [2 * probes_max] less of each probe, then not greater of each */
    int64_t *equal, *equal_before;       /* [size] own keys equal to each splitter; those of lower ranks */
};

/* As many rounds as a code has bits halve any interval of codes down to one code, and one more round finds it. */
static int rounds_most(int key_bytes)
{
    return 8 * key_bytes + 1;
}

/* How many keys one rank offers in one round. Of few keys few are offered: one more round costs less than counting
 * thousands of probes. */
static int offers_of(int size, int64_t capacity)
{
    const int most = (int)int64_clamp(OFFERS / size, 1, ENGINE_GATHER_MAX);
    return (int)lesser(greater(capacity / KEYS_PER_OFFER, OFFERS_FEW), most);
}

/* ---- tables -------------------------------------------------------------------------------------------- */

_Static_assert(_Alignof(key_code) <= _Alignof(max_align_t),
               "tables of codes are aligned as take_table() does");

/* Lay out a search for the numbers in it: the struct first, then its tables. Returns the bytes of both. */
static size_t lay_out_splitters(struct splitters *s, void *memory)
{
    const int64_t ranks = s->size, offers = s->offers_max;
    // An interval gets SPREAD / open codes or, if there are many intervals, one; and two estimates.
    const int64_t most = ranks * offers + greater(ranks, SPREAD) + 2 * ranks;
    char *at = memory;
    take_table(&at, 1, sizeof *s);
    s->splitter = take_table(&at, ranks, sizeof *s->splitter);
    s->offers = take_table(&at, 1 + offers, sizeof *s->offers);
    s->gathered = take_table(&at, ranks * (1 + offers), sizeof *s->gathered);
    s->positions = take_table(&at, offers, sizeof *s->positions);
    s->probes = take_table(&at, most, sizeof *s->probes);
    s->scratch = take_table(&at, most, sizeof *s->scratch);
    s->own = take_table(&at, 2 * most, sizeof *s->own);
    s->sums = take_table(&at, 2 * most, sizeof *s->sums);
    s->equal = take_table(&at, ranks, sizeof *s->equal);
    s->equal_before = take_table(&at, ranks, sizeof *s->equal_before);
    return (size_t)(at - (char *)memory);
}

hsort_status splitters_open(int size, struct splitters **splitters)
{
    struct splitters s = {.size = size, .offers_max = offers_of(size, INT64_MAX)};
    *splitters = calloc(1, lay_out_splitters(&s, NULL));
    if (!*splitters)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the splitters of %d ranks", size);
    lay_out_splitters(&s, *splitters);
    **splitters = s;
    return HSORT_OK;
}

void splitters_close(struct splitters *s)
{
    free(s);
}

/* ---- intervals ----------------------------------------------------------------------------------------- */

static void start(struct splitters *s, const struct exchange *x, const int64_t *target_offset)
{
    const key_code greatest = key_max(x->key_bytes);
    const int64_t total = target_offset[s->size];
    s->open = 0;
    for (int rank = 1; rank < s->size; rank++) {
        const int64_t position = target_offset[rank];
        const bool inside = position > 0 && position < total;
        const int64_t edge =
            position > 0 ? x->count : 0; // of a boundary at either end all keys or none lie before
        s->splitter[rank] = (struct splitter){.position = position,
                                              .low = 0,
                                              .high = greatest,
                                              .upto = total,
                                              .found = !inside,
                                              .less = position,
                                              .own_begin = inside ? 0 : edge,
                                              .own_end = inside ? x->count : edge};
        s->open += inside;
    }
}

/* The first open splitter from `rank` on whose interval is not the one of the splitter before it, or `size`.
 * Intervals are the same or have no code in common: they lie between the same probes. */
static int next_interval(const struct splitters *s, int rank)
{
    for (; rank < s->size; rank++) {
        const struct splitter *here = &s->splitter[rank], *before = here - 1;
        if (!here->found && (rank == 1 || before->found || before->low != here->low))
            return rank;
    }
    return s->size;
}

/* ---- 1. offer ------------------------------------------------------------------------------------------ */

/* Choose the positions of own keys to offer, ascending: evenly spread over the open intervals laid end to end. Where in
 * its share an offer lies differs between ranks and rounds, because ranks with like keys would otherwise offer the same
 * ones. */
static int choose_offers(struct splitters *s, int rank, int round, int offers_max)
{
    int64_t open_keys = 0, before = 0;
    for (int i = next_interval(s, 1); i < s->size; i = next_interval(s, i + 1))
        open_keys += s->splitter[i].own_end - s->splitter[i].own_begin;
    const int offers = (int)lesser(open_keys, offers_max);
    if (offers == 0)
        return 0;
    const int64_t share = open_keys / offers, rest = open_keys % offers;
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15); // multiples of it spread evenly
    const int64_t rotation = (int64_t)((golden * (uint64_t)(rank + 1 + 7 * round) >> 32) % (uint64_t)share);
    int offer = 0;
    for (int i = next_interval(s, 1); i < s->size; i = next_interval(s, i + 1)) {
        const struct splitter *here = &s->splitter[i];
        const int64_t length = here->own_end - here->own_begin;
        for (int64_t at; offer < offers; offer++) {
            at = offer * share + offer * rest / offers + rotation;
            if (at >= before + length)
                break;
            s->positions[offer] = here->own_begin + at - before;
        }
        before += length;
    }
    return offers;
}

/* Fill gathered with the offers of all ranks, 1 + offers_max codes of each. Collective. */
static hsort_status offer(struct splitters *s, const struct exchange *x, int round, int offers_max)
{
    const int offers = choose_offers(s, x->comm->rank, round, offers_max);
    const int words = KEY_CODE_WORDS * (1 + offers_max);
    hsort_status status = HSORT_OK;
    memset(s->offers, 0, (1 + (size_t)offers_max) * sizeof *s->offers);
    if (offers > 0)
        status =
            x->engine->ops->gather(x->engine, x->key_bytes, x->keys, s->positions, offers, s->offers + 1);
    s->offers[0] = (key_code)offers;
    keep_first_error(&status, comm_check(MPI_Allgather(s->offers, words, MPI_UINT64_T, s->gathered, words,
                                                       MPI_UINT64_T, x->comm->world),
                                         "MPI_Allgather", true));
    return status;
}

/* ---- 2. probe ------------------------------------------------------------------------------------------ */

/* Where the ascending stretch that begins at `from` ends. */
static int stretch_end(const key_code *codes, int from, int count)
{
    int end = from + 1;
    while (end < count && codes[end - 1] <= codes[end])
        end++;
    return end < count ? end : count;
}

/* Sort codes by merging the ascending stretches they consist of: one per rank, so far fewer steps than
 * qsort() takes. */
static void sort_probes(key_code *codes, key_code *scratch, int count)
{
    while (stretch_end(codes, 0, count) < count) {
        int made = 0;
        for (int begin = 0; begin < count;) {
            const int middle = stretch_end(codes, begin, count);
            const int end = middle < count ? stretch_end(codes, middle, count) : count;
            int a = begin, b = middle;
            while (a < middle || b < end)
                scratch[made++] = b == end || (a < middle && codes[a] <= codes[b]) ? codes[a++] : codes[b++];
            begin = end;
        }
        memcpy(codes, scratch, (size_t)count * sizeof *codes);
    }
}

/* Codes spread evenly over low .. high: all of them, if they are few. Returns how many. */
static int spread_codes(key_code low, key_code high, int most, key_code *codes)
{
    const key_code width = high - low; // one less than there are codes
    const key_code parts = (key_code)most + 1, step = width / parts, rest = width % parts;
    if (width < (key_code)most) {
        for (key_code i = 0; i <= width; i++)
            codes[i] = low + i;
        return (int)width + 1;
    }
    for (key_code i = 1; i < parts; i++)
        codes[i - 1] = low + step * i + rest * i / parts;
    return most;
}

/* A power of 2, one to two times the square root of `keys`. */
static int64_t about_root(int64_t keys)
{
    int64_t root = 1;
    while (root < keys / root)
        root *= 2;
    return root;
}

/* The code below which `keys` of the interval's keys lie, if they are spread evenly over it. */
static key_code estimate(const struct splitter *here, int64_t keys)
{
    const key_code width = here->high - here->low;
    const int64_t all = here->upto - here->below;
    keys = int64_clamp(keys, 0, all);
    // width * keys / all: the one product is at most the width, the other less than all * all, which has 126 bits.
    return here->low + width / (key_code)all * (key_code)keys +
           width % (key_code)all * (key_code)keys / (key_code)all;
}

/* Codes on both sides of the splitter, if it has the interval to itself: the root of the number of keys away, if these
 * are spread as random keys are. Of n keys a root of n is then left. Offers leave fewer keys only if few boundaries share
 * the offers:
 *
 *     1024 ranks: 4 offers in each interval, 2^26 keys after the first round     offers    2^25 2^24 ... 2^6
 *                                                                                estimates 2^15 2^9 2^6
 *
 * Returns how many. */
static int estimated_codes(const struct splitters *s, int rank, key_code *codes)
{
    const struct splitter *here = &s->splitter[rank];
    const bool shared = rank + 1 < s->size && !here[1].found && here[1].low == here->low;
    const int64_t keys = here->upto - here->below, before = here->position - here->below;
    if (shared || keys < ESTIMATED)
        return 0;
    codes[0] = estimate(here, before - about_root(keys));
    codes[1] = estimate(here, before + about_root(keys));
    return 2;
}

/* Fill probes from what was gathered. Returns how many, the same on every rank: ascending, each once. */
static int choose_probes(struct splitters *s, int offers_max)
{
    int count = 0, distinct = 0, intervals = 0;
    for (int rank = 0; rank < s->size; rank++) {
        const key_code *from = s->gathered + (size_t)rank * (1 + (size_t)offers_max);
        memcpy(s->probes + count, from + 1, (size_t)from[0] * sizeof *from);
        count += (int)from[0];
    }
    for (int i = next_interval(s, 1); i < s->size; i = next_interval(s, i + 1))
        intervals++;
    const int each = (int)int64_clamp(SPREAD / intervals, 1, SPREAD_MAX);
    for (int i = next_interval(s, 1); i < s->size; i = next_interval(s, i + 1)) {
        count += spread_codes(s->splitter[i].low, s->splitter[i].high, each, s->probes + count);
        count += estimated_codes(s, i, s->probes + count);
    }
    sort_probes(s->probes, s->scratch, count);
    for (int i = 0; i < count; i++)
        if (distinct == 0 || s->probes[i] != s->probes[distinct - 1])
            s->probes[distinct++] = s->probes[i];
    return distinct;
}

/* ---- 3. count ------------------------------------------------------------------------------------------ */

static hsort_status count_below_probes(struct splitters *s, const struct exchange *x, int probes)
{
    int64_t *less = s->own, *not_greater = s->own + probes;
    hsort_status status = HSORT_OK;
    memset(s->own, 0, 2 * (size_t)probes * sizeof *s->own);
    for (int first = 0; first < probes && x->count > 0; first += ENGINE_SEARCH_MAX) {
        const int some = (int)lesser(probes - first, ENGINE_SEARCH_MAX);
        keep_first_error(&status,
                         x->engine->ops->search(x->engine, x->key_bytes, x->keys, x->count, s->probes + first,
                                                some, less + first, not_greater + first));
    }
    return status;
}

/* Fill sums. Collective. */
static hsort_status count(struct splitters *s, const struct exchange *x, int probes)
{
    hsort_status status = count_below_probes(s, x, probes);
    keep_first_error(
        &status, comm_check(MPI_Allreduce(s->own, s->sums, 2 * probes, MPI_INT64_T, MPI_SUM, x->comm->world),
                            "MPI_Allreduce", true));
    return status;
}

/* ---- 4. narrow ----------------------------------------------------------------------------------------- */

static void narrow_brackets(struct splitters *s, struct splitter *here, int probes)
{
    const int64_t *less = s->sums, *not_greater = less + probes;
    const int64_t *own_less = s->own, *own_not_greater = own_less + probes;
    // So many of the probes have no more keys below them than the splitter.
    const int above = (int)first_above(s->sums, probes, here->position), below = above - 1;
    if (below >= 0 && s->probes[below] >= here->low) {
        if (not_greater[below] > here->position) {
            here->low = here->high = s->probes[below];
            here->less = less[below];
            here->own_begin = own_less[below];
            here->own_end = own_not_greater[below];
            here->found = true;
        } else if (s->probes[below] < here->high) {
            here->low = s->probes[below] + 1;
            here->below = not_greater[below];
            here->own_begin = own_not_greater[below];
        }
    }
    if (!here->found && above < probes && s->probes[above] <= here->high && s->probes[above] > here->low) {
        here->high = s->probes[above] - 1;
        here->upto = less[above];
        here->own_end = own_less[above];
    }
    // Only a rank that failed sends counts that do not ascend.
    here->own_end = greater(here->own_end, here->own_begin);
    s->open -= here->found;
}

/* ---- the cuts ------------------------------------------------------------------------------------------ */

/* Of the keys equal to a splitter those of lower ranks go before it first. Collective. */
static hsort_status spread_equal(struct splitters *s, const struct exchange *x, int64_t *cut_offset)
{
    for (int rank = 0; rank < s->size; rank++) {
        const struct splitter *here = &s->splitter[rank];
        s->equal[rank] = rank > 0 ? here->own_end - here->own_begin : 0;
    }
    hsort_status status =
        comm_check(MPI_Exscan(s->equal, s->equal_before, s->size, MPI_INT64_T, MPI_SUM, x->comm->world),
                   "MPI_Exscan", true);
    if (x->comm->rank == 0) // MPI leaves it undefined there
        memset(s->equal_before, 0, (size_t)s->size * sizeof *s->equal_before);
    cut_offset[0] = 0;
    for (int rank = 1; rank < s->size; rank++) {
        const struct splitter *here = &s->splitter[rank];
        const int64_t wanted = here->position - here->less - s->equal_before[rank];
        const int64_t cut = here->own_begin + int64_clamp(wanted, 0, s->equal[rank]);
        cut_offset[rank] = int64_clamp(cut, cut_offset[rank - 1], x->count);
    }
    cut_offset[s->size] = x->count;
    return status;
}

int splitters_rounds(int size, int64_t total, int64_t capacity, int *probes)
{
    const int64_t offers = (int64_t)offers_of(size, capacity) * size;
    const int64_t intervals = greater(size - 1, 1);
    *probes = (int)int64_clamp(offers + intervals * (int64_clamp(SPREAD / intervals, 1, SPREAD_MAX) + 2), 0,
                               INT_MAX);
    if (size == 1 || total == 0)
        return 0;
    // What all ranks offer is not spread evenly: the gap that a splitter falls into is some two times as wide
    // as most.
    int rounds = 1;
    for (int64_t open = total; open > offers && rounds < ROUNDS_MAX; rounds++) {
        const int64_t gap = open / offers + 1, each = open / intervals;
        const bool estimated = rounds > 1 && each >= ESTIMATED;
        open = gap < open / (2 * intervals) ? 2 * gap * intervals : open / 2;
        if (estimated)
            open = lesser(open, 2 * about_root(each) * intervals);
    }
    return rounds;
}

hsort_status splitters_find(struct splitters *s, const struct exchange *x, const int64_t *target_offset,
                            int64_t *cut_offset)
{
    hsort_status status = HSORT_OK;
    const int offers_max = offers_of(s->size, x->capacity);
    start(s, x, target_offset);
    for (int round = 0; s->open > 0 && round < rounds_most(x->key_bytes); round++) {
        keep_first_error(&status, offer(s, x, round, offers_max));
        const int probes = choose_probes(s, offers_max);
        keep_first_error(&status, count(s, x, probes));
        for (int rank = 1; rank < s->size; rank++)
            if (!s->splitter[rank].found)
                narrow_brackets(s, &s->splitter[rank], probes);
    }
    keep_first_error(&status, spread_equal(s, x, cut_offset));
    return status;
}
