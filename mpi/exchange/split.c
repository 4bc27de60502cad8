/* The exact cut between two sorted runs that lie on two ranks, by probing: co-ranking (Siebert, Traeff 2012,
 * "Perfectly load-balanced, optimal, stable, parallel merge"; the merge path of Odeh et al. 2012), with many
 * probes per message.
 *
 * The lower rank holds run A, the higher run H. Together the lower rank is to keep the `low` smallest, where
 * `low` is the capacity or, if there are fewer, all keys. If it keeps the first c keys of A it takes the
 * first low - c of H, so A[i] is compared with its mirror image H[low - 1 - i]: A[i] stays exactly if it is
 * not greater. From i to i + 1 A rises and the mirror falls, so all that stay come first, and c is their
 * number.
 *
 *     capacity 4, low 4      A   1  4  6  9          i           0  1  2  3
 *                         H   2  3  5  7          A[i]        1  4  6  9
 *                                                 H[3 - i]    7  5  3  2
 *                                                 stays       y  y  n  n      c = 2: keep 1 4, take 2 3
 *
 * Both ranks send each other their keys at the same probes, so both compute the same cut, and PROBES probes
 * shrink the interval by PROBES + 1 at a time: at most four messages for any run that fits in memory.
 * Bisection with one probe would take one round trip per bit. The number of rounds follows from the lengths
 * alone, so that a rank that failed to read its keys still meets its partner. Nothing is gained by swapping
 * equal keys: "not greater" leaves them. */
#include <stdbool.h>
#include "kernels/base/lesser.h"
#include "mpi/exchange/place_span.h"
#include "mpi/exchange/split.h"

enum { PROBES = 255, TAG = 3 };

/* What each side says first. */
struct run_ends {
    key_code first, last;
    int64_t count, unused; // a message without padding
};

static hsort_status exchange_ends(const struct exchange *x, int partner, struct run_ends *own,
                                  struct run_ends *other)
{
    int64_t ends[2] = {0, x->count - 1};
    key_code codes[2] = {0, 0};
    hsort_status status = HSORT_OK;
    if (x->count > 0)
        status = x->engine->ops->gather(x->engine, x->key_bytes, x->keys, ends, 2, codes);
    *own = (struct run_ends){.first = codes[0], .last = codes[1], .count = x->count};
    *other = (struct run_ends){.count = 0};
    keep_first_error(&status, comm_sendrecv(x->comm, partner, own, other, sizeof *own, TAG));
    return status;
}

/* Probe number `probe` of `probes` in an interval: evenly spread, and every position if there are enough
 * probes. */
static int64_t probe_at(struct place_span in, int probe, int probes)
{
    int64_t length = in.end - in.first;
    if (length <= probes)
        return in.first + probe;
    // length * (probe + 1) / (probes + 1) without the overflow.
    int64_t step = length / (probes + 1), rest = length % (probes + 1);
    return in.first + step * (probe + 1) + rest * (probe + 1) / (probes + 1);
}

/* Narrow the interval in which the cut is known to lie: at *in's first place, at its end, or in between. */
static hsort_status narrow_cut(const struct exchange *x, int partner, int64_t low, struct place_span *in)
{
    const bool lower = x->comm->rank < partner;
    const int probes = (int)lesser(in->end - in->first, PROBES);
    int64_t positions[PROBES];
    key_code own[PROBES] = {0}, other[PROBES] = {0};
    for (int probe = 0; probe < probes; probe++) {
        int64_t at = probe_at(*in, probe, probes);
        positions[probe] = lower ? at : low - 1 - at;
    }
    hsort_status status = HSORT_OK;
    if (probes > 0)
        status = x->engine->ops->gather(x->engine, x->key_bytes, x->keys, positions, probes, own);
    keep_first_error(&status, comm_sendrecv(x->comm, partner, own, other, (size_t)probes * sizeof *own, TAG));
    const key_code *a = lower ? own : other, *h = lower ? other : own;
    int stay = 0;
    while (stay < probes && a[stay] <= h[stay])
        stay++;
    const struct place_span old = *in;
    if (stay > 0)
        in->first = probe_at(old, stay - 1, probes) + 1;
    if (stay < probes)
        in->end = probe_at(old, stay, probes);
    return status;
}

/* What may be left of an interval of `longest` after a message. */
static int64_t shorter(int64_t longest)
{
    return longest <= PROBES ? 0 : longest / (PROBES + 1) + 1;
}

int split_messages(int64_t length)
{
    int messages = 0;
    for (; length > 0; length = shorter(length))
        messages++;
    return messages;
}

hsort_status split_pair(struct exchange *x, int partner, int64_t *own_kept, int64_t *incoming)
{
    const bool lower = x->comm->rank < partner;
    struct run_ends own, other;
    hsort_status status = exchange_ends(x, partner, &own, &other);
    const struct run_ends *a = lower ? &own : &other, *h = lower ? &other : &own;
    const int64_t both = a->count + h->count;
    const int64_t low = lesser(both, x->capacity);
    struct place_span cut = {.first = greater(low - h->count, 0), .end = a->count};
    if (!place_span_is_empty(cut) && a->last <= h->first)
        cut.first = cut.end; // in order: all of A stays
    else if (!place_span_is_empty(cut) && a->first > h->last)
        cut.end = cut.first; // in reverse: as little of A stays as may be
    // An interval shrinks at least as fast as `longest`.
    for (int64_t longest = cut.end - cut.first; longest > 0; longest = shorter(longest))
        keep_first_error(&status, narrow_cut(x, partner, low, &cut));
    *own_kept = lower ? cut.first : h->count - (low - cut.first);
    *incoming = lower ? low - cut.first : a->count - cut.first;
    return status;
}
