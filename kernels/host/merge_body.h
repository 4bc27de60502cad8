/* The merge for one key width: merge.c includes this once for each, with KEY the key and NAMED(name) its
 * name. */

/* What is left to merge of a piece of each run, and where it goes. */
struct NAMED(pieces) {
    const KEY *a, *a_end, *b, *b_end;
    KEY *out;
};

/* How many of the first `rank` keys of the merged whole are of a. */
static int64_t NAMED(merge_path)(const KEY *a, int64_t a_count, const KEY *b, int64_t b_count, int64_t rank)
{
    int64_t low = rank > b_count ? rank - b_count : 0, high = rank < a_count ? rank : a_count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a[middle] <= b[rank - middle - 1])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Keys that may be merged without looking for the end of either piece. */
static int64_t NAMED(safe_steps)(const struct NAMED(pieces) * pieces)
{
    const int64_t a_left = pieces->a_end - pieces->a, b_left = pieces->b_end - pieces->b;
    return a_left < b_left ? a_left : b_left;
}

/* Merge one key, without a branch: on random keys every other branch would be mispredicted. */
static inline void NAMED(merge_step)(struct NAMED(pieces) * pieces)
{
    const KEY a = *pieces->a, b = *pieces->b;
    const int of_b = b < a;
    *pieces->out++ = of_b ? b : a;
    pieces->b += of_b;
    pieces->a += 1 - of_b;
}

/* Merge all that is left. */
static void NAMED(merge_rest)(struct NAMED(pieces) pieces)
{
    for (int64_t steps; (steps = NAMED(safe_steps)(&pieces)) > 0;)
        for (; steps > 0; steps--)
            NAMED(merge_step)(&pieces);
    const KEY *rest = pieces.a < pieces.a_end ? pieces.a : pieces.b;
    const KEY *end = pieces.a < pieces.a_end ? pieces.a_end : pieces.b_end;
    if (rest < end) // an empty run may be NULL, which memcpy() may not be given
        memcpy(pieces.out, rest, (size_t)(end - rest) * sizeof *rest);
}

/* Merge by one thread, the lower and the upper half of the output in step. */
static void NAMED(merge_part)(const KEY *a, int64_t a_count, const KEY *b, int64_t b_count, KEY *out)
{
    const int64_t half = (a_count + b_count) / 2, a_cut = NAMED(merge_path)(a, a_count, b, b_count, half),
                  b_cut = half - a_cut;
    struct NAMED(pieces) lower = {a, a + a_cut, b, b + b_cut, out};
    struct NAMED(pieces) upper = {a + a_cut, a + a_count, b + b_cut, b + b_count, out + half};
    for (;;) {
        const int64_t lower_steps = NAMED(safe_steps)(&lower), upper_steps = NAMED(safe_steps)(&upper);
        int64_t steps = lower_steps < upper_steps ? lower_steps : upper_steps;
        if (steps == 0)
            break;
        for (; steps > 0; steps--) {
            NAMED(merge_step)(&lower);
            NAMED(merge_step)(&upper);
        }
    }
    NAMED(merge_rest)(lower);
    NAMED(merge_rest)(upper);
}

static void NAMED(merge_by_threads)(const KEY *a, int64_t a_count, const KEY *b, int64_t b_count, KEY *out,
                                    int threads)
{
    const int64_t count = a_count + b_count;
#pragma omp parallel num_threads(threads) if (threads > 1 && count >= PARALLEL_MERGE)
    {
        const int64_t me = omp_get_thread_num(), parts = omp_get_num_threads();
        const int64_t from = count * me / parts, until = count * (me + 1) / parts;
        const int64_t a_from = NAMED(merge_path)(a, a_count, b, b_count, from);
        const int64_t a_until = hold_cut(NAMED(merge_path)(a, a_count, b, b_count, until), a_from,
                                         until - from, a_count, until - b_count);
        const int64_t a_part = a_until - a_from, b_from = from - a_from, b_part = until - from - a_part;
        NAMED(merge_part)(a + a_from, a_part, b + b_from, b_part, out + from);
    }
}
