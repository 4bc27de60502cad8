/* The merge of many runs for one key width: merge_many.c includes this once for each, with KEY the key and
 * NAMED(name) its name. */

enum { NAMED(TILE) = sizeof(KEY) > 8 ? TILE / 2 : TILE };

/* How many of the keys in a stretch are less than `code`, or, if or_equal, not greater. */
static int64_t NAMED(find_in_run)(const KEY *keys, struct run_part in, KEY code, bool or_equal)
{
    int64_t low = in.begin, high = in.end;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (keys[middle] < code || (or_equal && keys[middle] == code))
            low = middle + 1;
        else
            high = middle;
    }
    return low - in.begin;
}

/* Narrow the stretches of all runs down to where a cut at position `rank` of the merged whole lies, which is
 * cut[i].begin in the end. A turn halves the codes low .. high that the key at `rank` may have; the stretches hold the
 * keys of such codes. */
static void NAMED(narrow_cut)(const KEY *keys, struct run_part *cut, int k, int64_t rank)
{
    KEY low = 0, high = (KEY)-1;
    while (low < high) {
        const KEY middle = low + (high - low) / 2;
        int64_t not_greater = 0, found[MANY];
        for (int i = 0; i < k; i++) {
            found[i] = NAMED(find_in_run)(keys, cut[i], middle, true);
            not_greater += found[i];
        }
        const bool above = not_greater <= rank;
        rank -= above ? not_greater : 0; // it counts from where the stretches begin
        for (int i = 0; i < k; i++) {
            if (above)
                cut[i].begin += found[i];
            else
                cut[i].end = cut[i].begin + found[i];
        }
        if (above)
            low = middle + 1;
        else
            high = middle;
    }
    // Only keys equal to the code are left: those of the first runs come first.
    for (int i = 0; i < k; i++) {
        const int64_t equal = cut[i].end - cut[i].begin, taken = equal < rank ? equal : rank;
        cut[i].begin += taken;
        rank -= taken;
    }
}

/* cut_offset [k]: where each run is cut so that `rank` keys of the merged whole lie before. */
static void NAMED(cut_all)(const KEY *keys, const struct run_part *run, int k, int64_t rank,
                           int64_t *cut_offset)
{
    struct run_part cut[MANY];
    memcpy(cut, run, (size_t)k * sizeof *run);
    NAMED(narrow_cut)(keys, cut, k, rank);
    for (int i = 0; i < k; i++)
        cut_offset[i] = cut[i].begin;
}

/* Take the next tile off the runs: piece [k] is what each run gives, in order; together these are a tile at most. */
static void NAMED(take_tile)(const KEY *keys, struct run_part *left, int k, struct run_part *piece)
{
    const int64_t window = NAMED(TILE) / k;
    int pivot = -1;
    for (int i = 0; i < k; i++) {
        piece[i] = left[i];
        if (left[i].end - left[i].begin <= window)
            continue;
        piece[i].end = left[i].begin + window;
        if (pivot < 0 || keys[piece[i].end - 1] < keys[piece[pivot].end - 1])
            pivot = i;
    }
    for (int i = 0; i < k; i++) {
        if (pivot >= 0 && i != pivot)
            piece[i].end =
                piece[i].begin + NAMED(find_in_run)(keys, piece[i], keys[piece[pivot].end - 1], i < pivot);
        left[i].begin = piece[i].end;
    }
}

/* Merge the pieces of a tile, `count` keys, into out. */
static void NAMED(merge_tile)(const KEY *keys, const struct run_part *piece, int k, KEY *out, int64_t count)
{
    KEY scratch[NAMED(TILE)];
    const KEY *from[MANY];
    int64_t length[MANY];
    int pieces = 0, turns = 0;
    for (int i = 0; i < k; i++) {
        from[pieces] = keys + piece[i].begin;
        length[pieces] = piece[i].end - piece[i].begin;
        pieces += length[pieces] > 0;
    }
    if (pieces == 1)
        memcpy(out, from[0], (size_t)count * sizeof *out);
    while (1 << turns < pieces)
        turns++;
    for (; pieces > 1; turns--) {
        KEY *to = turns % 2 ? out : scratch; // the last turn ends in `out`
        int made = 0;
        for (int i = 0; i < pieces; i += 2, made++) {
            const int64_t second = i + 1 < pieces ? length[i + 1] : 0;
            merge_alone(sizeof(KEY), from[i], length[i], second ? from[i + 1] : NULL, second, to);
            length[made] = length[i] + second;
            from[made] = to;
            to += length[made];
        }
        pieces = made;
    }
}

static void NAMED(merge_all)(int threads, const KEY *keys, const struct run_part *run, int k, KEY *out)
{
    int64_t count = 0;
    for (int i = 0; i < k; i++)
        count += run[i].end - run[i].begin;
#pragma omp parallel num_threads(threads) if (threads > 1 && count >= PARALLEL_MERGE)
    {
        const int64_t me = omp_get_thread_num(), parts = omp_get_num_threads();
        struct run_part left[MANY], piece[MANY];
        int64_t from[MANY], until[MANY], at = 0, rest = 0;
        NAMED(cut_all)(keys, run, k, count * me / parts, from);
        NAMED(cut_all)(keys, run, k, count * (me + 1) / parts, until);
        for (int i = 0; i < k; i++) {
            // In unsorted runs the cuts may lie anywhere; but in no run may the second cut come before the first.
            left[i] = (struct run_part){from[i], until[i] > from[i] ? until[i] : from[i]};
            at += from[i] - run[i].begin;
            rest += left[i].end - left[i].begin;
        }
        KEY *to = out + run[0].begin + at; // at + rest <= count
        while (rest > 0) {
            int64_t taken = 0;
            NAMED(take_tile)(keys, left, k, piece);
            for (int i = 0; i < k; i++)
                taken += piece[i].end - piece[i].begin;
            NAMED(merge_tile)(keys, piece, k, to, taken);
            to += taken;
            rest -= taken;
        }
    }
}
