/* The radix sort for one key width: radix.c includes this once for each, with KEY the key and NAMED(name) its
 * name. */

/* Compare keys [from, until), from >= 1, with the ones before them: *differ gathers the bits in which they
 * differ from keys[0], *descents becomes non-zero if any is less than the one before it. */
static void NAMED(survey_part)(const KEY *keys, int64_t from, int64_t until, KEY *differ, KEY *descents)
{
    KEY bits = 0, found = 0;
    for (int64_t i = from; i < until; i++) {
        bits |= keys[i] ^ keys[0];
        found |= keys[i] < keys[i - 1];
    }
    *differ |= bits;
    *descents |= found;
}

/* The bits in which keys [count >= 1] differ; 0 too if they are in order already. */
static KEY NAMED(survey)(const KEY *keys, int64_t count, int threads)
{
    KEY differ = 0, descents = 0;
    if (threads == 1) {
        NAMED(survey_part)(keys, 1, count, &differ, &descents);
    } else {
#pragma omp parallel num_threads(threads) reduction(| : differ, descents)
        {
            const int64_t me = omp_get_thread_num(), parts = omp_get_num_threads(), pairs = count - 1;
            const int64_t from = 1 + pairs * me / parts, until = 1 + pairs * (me + 1) / parts;
            NAMED(survey_part)(keys, from, until, &differ, &descents);
        }
    }
    return descents ? differ : 0;
}

static void NAMED(insert)(KEY *keys, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const KEY key = keys[i];
        int64_t place = i;
        for (; place > 0 && keys[place - 1] > key; place--)
            keys[place] = keys[place - 1];
        keys[place] = key;
    }
}

/* Count all digits of keys [count] above `shift` in one pass and make the counts places. */
static void NAMED(count_digits)(const KEY *keys, int64_t count, int shift, int digits,
                                uint32_t places[][1 << DIGIT_BITS])
{
    memset(places, 0, (size_t)digits * sizeof *places);
    for (int64_t i = 0; i < count; i++)
        for (int digit = 0; digit < digits; digit++)
            places[digit][(keys[i] >> (shift + digit * DIGIT_BITS)) & ((1 << DIGIT_BITS) - 1)]++;
    for (int digit = 0; digit < digits; digit++) {
        uint32_t place = 0;
        for (int value = 0; value < 1 << DIGIT_BITS; value++) {
            const uint32_t keys_here = places[digit][value];
            places[digit][value] = place;
            place += keys_here;
        }
    }
}

/* Sort keys [1 <= count <= 2^CACHED_BITS] by one thread; the result is in `to`, which is keys or scratch. */
static void NAMED(sort_cached)(KEY *keys, KEY *scratch, KEY *to, int64_t count, struct radix_thread *thread)
{
    KEY differ = 0;
    if (count <= SMALL_COUNT)
        NAMED(insert)(keys, count);
    else
        differ = NAMED(survey)(keys, count, 1);
    const int width = bit_width(differ), enough = bit_width((uint64_t)count - 1) + SPARE_BITS;
    const int digits = ((width < enough ? width : enough) + DIGIT_BITS - 1) / DIGIT_BITS;
    const int shift = width > digits * DIGIT_BITS ? width - digits * DIGIT_BITS : 0;
    NAMED(count_digits)(keys, count, shift, digits, thread->places);

    KEY *from = keys, *other = scratch;
    for (int digit = 0; digit < digits; digit++) {
        uint32_t *places = thread->places[digit];
        const int digit_shift = shift + digit * DIGIT_BITS;
        if (((differ >> digit_shift) & ((1 << DIGIT_BITS) - 1)) == 0)
            continue;
        for (int64_t i = 0; i < count; i++)
            other[places[(from[i] >> digit_shift) & ((1 << DIGIT_BITS) - 1)]++] = from[i];
        KEY *swapped = from;
        from = other;
        other = swapped;
    }
    if (from != to) {
        memcpy(to, from, (size_t)count * sizeof *to);
        other = from;
    }
    if (shift == 0)
        return;

    // Keys that agree in all bits sorted so far lie side by side now.
    for (int64_t start = 0, end = 1; start < count; start = end++) {
        while (end < count && (to[end] ^ to[start]) >> shift == 0)
            end++;
        if (end - start > 1)
            NAMED(sort_cached)(to + start, other + start, to + start, end - start, thread);
    }
}

/* Write keys [from, until) of a bin, which lie in its line, to their places in `to`. */
static void NAMED(write_part)(KEY *to, const KEY *line, int64_t from, int64_t until, int64_t lead)
{
    const int64_t slot = (from + lead) % (int64_t)(LINE_BYTES / sizeof(KEY));
    memcpy(to + from, line + slot, (size_t)(until - from) * sizeof *to);
}

/* Move keys [count] to the places in `to` that thread->next names for their bins. A key's slot in the line of
 * its bin is that of its place in a cache line of memory, so that a full line goes out whole; the first and
 * the last line of a bin may be shared with another thread and are written in part. */
static void NAMED(scatter)(const KEY *keys, int64_t count, KEY *to, int shift, int bins,
                           struct radix_thread *thread)
{
    const int64_t line_keys = LINE_BYTES / sizeof(KEY);
    const int64_t lead = (int64_t)((uintptr_t)to % LINE_BYTES / sizeof(KEY)); // of `to` into its cache line
    memcpy(thread->first, thread->next, (size_t)bins * sizeof *thread->first);
    for (int64_t i = 0; i < count; i++) {
        const KEY key = keys[i];
        const size_t bin = (key >> shift) & (KEY)(bins - 1);
        const int64_t place = thread->next[bin]++;
        const int64_t slot = (place + lead) & (line_keys - 1);
        KEY *line = (KEY *)thread->lines[bin];
        line[slot] = key;
        if (slot < line_keys - 1)
            continue;
        if (place - slot >= thread->first[bin])
            line_write(to + place - slot, line);
        else
            NAMED(write_part)(to, line, thread->first[bin], place + 1, lead);
    }
    for (int bin = 0; bin < bins; bin++) {
        const int64_t until = thread->next[bin], start = until - ((until + lead) & (line_keys - 1));
        const int64_t from = start > thread->first[bin] ? start : thread->first[bin];
        NAMED(write_part)(to, (const KEY *)thread->lines[bin], from, until, lead);
    }
    lines_written();
}

/* Partition keys [count] into `to` by the bits [shift, shift + log2(bins)), stable; ends [bins] = where each
 * bin ends. */
static void NAMED(partition)(const KEY *keys, KEY *to, int64_t count, int shift, int bins, int64_t *ends,
                             struct radix_thread *team, int threads)
{
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const int me = omp_get_thread_num(), parts = omp_get_num_threads();
        const int64_t from = count * me / parts, until = count * (me + 1) / parts;
        struct radix_thread *mine = &team[me];
        memset(mine->next, 0, (size_t)bins * sizeof *mine->next);
        for (int64_t i = from; i < until; i++)
            mine->next[(keys[i] >> shift) & (KEY)(bins - 1)]++;
#pragma omp barrier
#pragma omp single
        {
            int64_t place = 0;
            for (int bin = 0; bin < bins; bin++) {
                for (int part = 0; part < parts; part++) {
                    const int64_t keys_here = team[part].next[bin];
                    team[part].next[bin] = place;
                    place += keys_here;
                }
                ends[bin] = place;
            }
        }
        NAMED(scatter)(keys + from, until - from, to, shift, bins, mine);
    }
}

/* Sort keys [count] by a team of threads; the result is in `to`, which is keys or scratch. */
static void NAMED(sort_range)(KEY *keys, KEY *scratch, KEY *to, int64_t count, struct radix_thread *team,
                              int threads)
{
    if (count == 0)
        return;
    if (count <= 1 << CACHED_BITS) {
        NAMED(sort_cached)(keys, scratch, to, count, team);
        return;
    }
    const int width = bit_width(NAMED(survey)(keys, count, threads));
    if (width == 0) {
        if (to != keys)
            memcpy(to, keys, (size_t)count * sizeof *to);
        return;
    }
    const int bits = partition_bits(count, width), bins = 1 << bits;
    int64_t ends[1 << PARTITION_BITS_MAX];
    NAMED(partition)(keys, scratch, count, width - bits, bins, ends, team, threads);

    // A bin with more keys than `heavy` would leave the other threads waiting for the one that sorts it.
    int64_t heavy = threads > 1 ? count / threads / 4 : count;
    if (heavy < 1 << CACHED_BITS)
        heavy = 1 << CACHED_BITS;
    for (int bin = 0; bin < bins; bin++) {
        const int64_t start = bin ? ends[bin - 1] : 0, size = ends[bin] - start;
        if (size > heavy)
            NAMED(sort_range)(scratch + start, keys + start, to + start, size, team, threads);
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int bin = 0; bin < bins; bin++) {
        const int64_t start = bin ? ends[bin - 1] : 0, size = ends[bin] - start;
        struct radix_thread *mine = &team[omp_get_thread_num()];
        if (size <= heavy)
            NAMED(sort_range)(scratch + start, keys + start, to + start, size, mine, 1);
    }
}
