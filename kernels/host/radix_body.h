/* The radix sort for one key width: radix.c includes this once for each, with KEY the key and NAMED(name) its
 * name. */

/* ---- keys in order already ---- */

/* Do keys [from, until), from >= 1, ascend (or, if `down`, descend) from the ones before them? A chunk at a
 * time without a branch per key, so that random keys are recognised after the first chunk and keys in order
 * as fast as they can be read. */
static inline bool NAMED(part_in_order)(const KEY *keys, int64_t from, int64_t until, const bool down)
{
    while (from < until) {
        const int64_t end = until - from < ORDER_CHUNK ? until : from + ORDER_CHUNK;
        KEY wrong = 0;
        for (; from < end; from++)
            wrong |= down ? keys[from] > keys[from - 1] : keys[from] < keys[from - 1];
        if (wrong)
            return false;
    }
    return true;
}

static bool NAMED(is_in_order)(const KEY *keys, int64_t count, const bool down, int threads)
{
    if (threads == 1)
        return down ? NAMED(part_in_order)(keys, 1, count, true)
                    : NAMED(part_in_order)(keys, 1, count, false);
    bool all = true;
#pragma omp parallel num_threads(threads) reduction(&& : all)
    {
        const int64_t me = omp_get_thread_num(), parts = omp_get_num_threads(), pairs = count - 1;
        const int64_t from = 1 + pairs * me / parts, until = 1 + pairs * (me + 1) / parts;
        all = down ? NAMED(part_in_order)(keys, from, until, true)
                   : NAMED(part_in_order)(keys, from, until, false);
    }
    return all;
}

/* Write keys [count] to `to` backwards; `to` is keys or apart from them. */
static void NAMED(reverse_keys)(const KEY *keys, KEY *to, int64_t count, int threads)
{
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count / 2; i++) {
        const KEY low = keys[i], high = keys[count - 1 - i];
        to[i] = high;
        to[count - 1 - i] = low;
    }
    if (count % 2)
        to[count / 2] = keys[count / 2];
}

/* If keys [count >= 1] are in order, up or down, put them into `to` in ascending order and return true. */
static bool NAMED(take_in_order)(const KEY *keys, KEY *to, int64_t count, int threads)
{
    if (NAMED(is_in_order)(keys, count, false, threads)) {
        if (to != keys)
            memcpy(to, keys, (size_t)count * sizeof *to);
    } else if (NAMED(is_in_order)(keys, count, true, threads)) {
        NAMED(reverse_keys)(keys, to, count, threads);
    } else {
        return false;
    }
    return true;
}

/* The bits of a key above its lowest `shift`, at least 57 of them if it has so many. For keys of 16 bytes they are
 * loaded from where they lie, because shifting two words takes several times as long. */
static inline uint64_t NAMED(bits_above)(const KEY *key, int shift)
{
    if (sizeof *key <= sizeof(uint64_t))
        return (uint64_t)(*key >> shift);
    const int byte = shift < 64 ? shift / 8 : 8;
    uint64_t word;
    memcpy(&word, (const char *)key + byte, sizeof word);
    return word >> (shift - 8 * byte);
}

/* ---- in a core's cache ---- */

/* Sort keys [count] into `to`, which is keys or apart from them. */
static void NAMED(insertion_sort)(const KEY *keys, KEY *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const KEY key = keys[i];
        int64_t place = i;
        for (; place > 0 && to[place - 1] > key; place--)
            to[place] = to[place - 1];
        to[place] = key;
    }
}

/* Count both digits of keys [count] in one pass and turn the counts into places. Returns the bits in which the keys
 * differ. */
static KEY NAMED(count_cached_digits)(const KEY *keys, int64_t count, struct digits digits,
                                      uint32_t places[DIGITS_MAX][1 << DIGIT_BITS_MAX])
{
    const size_t mask = ((size_t)1 << digits.bits) - 1;
    const KEY first = keys[0];
    const int low_shift = digits.shift, high_shift = digits.shift + (digits.number - 1) * digits.bits;
    uint32_t *low = places[0], *high = places[1];
    KEY differ = 0;
    memset(low, 0, sizeof *low << digits.bits);
    memset(high, 0, sizeof *high << digits.bits);
    for (int64_t i = 0; i < count; i++) {
        differ |= keys[i] ^ first;
        low[NAMED(bits_above)(&keys[i], low_shift) & mask]++;
        high[NAMED(bits_above)(&keys[i], high_shift) & mask]++;
    }
    uint32_t low_place = 0, high_place = 0;
    for (size_t value = 0; value <= mask; value++) {
        const uint32_t low_keys = low[value], high_keys = high[value];
        low[value] = low_place;
        high[value] = high_place;
        low_place += low_keys;
        high_place += high_keys;
    }
    return differ;
}

/* Move keys [count] to their places in `to` by one digit, stable. Meanwhile fetch the lines of `soon`
 * [count], unless it is NULL: the next pass writes them in an order that no prefetcher of the machine can
 * foresee. */
static void NAMED(digit_pass)(const KEY *keys, KEY *to, int64_t count, int shift, int bits, uint32_t *places,
                              const KEY *soon)
{
    const size_t mask = ((size_t)1 << bits) - 1;
    const int64_t stride = FETCH_BYTES / sizeof(KEY);
    for (int64_t i = 0; i < count;) {
        const int64_t end = count - i < stride ? count : i + stride;
        if (soon)
            __builtin_prefetch(soon + i, 1);
        for (; i < end; i++)
            to[places[NAMED(bits_above)(&keys[i], shift) & mask]++] = keys[i];
    }
}

static void NAMED(sort_cached)(const KEY *keys, KEY *to, int64_t count, int width,
                               struct radix_thread *thread);

/* Sort keys [count], which are in order except for their low `shift` bits, by those bits: where a key is less than the
 * one before, all keys that agree with it in the bits sorted so far lie side by side. */
static void NAMED(sort_ties)(KEY *keys, int64_t count, int shift, struct radix_thread *thread)
{
    for (int64_t i = 1; i < count; i++) {
        if (keys[i] >= keys[i - 1])
            continue;
        const KEY high = keys[i] >> shift;
        int64_t start = i - 1, end = i + 1;
        while (start > 0 && keys[start - 1] >> shift == high)
            start--;
        while (end < count && keys[end] >> shift == high)
            end++;
        NAMED(sort_cached)(keys + start, keys + start, end - start, shift, thread);
        i = end;
    }
}

/* Sort keys [count <= 2^cached_bits()], which agree in all but their low `width` bits, by one thread into
 * `to`, which is keys or apart from them. */
static void NAMED(sort_cached)(const KEY *keys, KEY *to, int64_t count, int width,
                               struct radix_thread *thread)
{
    if (count <= SMALL_COUNT) {
        NAMED(insertion_sort)(keys, to, count);
        return;
    }
    if (NAMED(take_in_order)(keys, to, count, 1))
        return;
    struct digits digits = digits_for(count, width);
    KEY differ = NAMED(count_cached_digits)(keys, count, digits, thread->places);
    // Leading bits that are the same in all keys would waste a digit that does not reach down to the last bit.
    if (digits.shift > 0 && bit_width(differ) < width) {
        digits = digits_for(count, bit_width(differ));
        NAMED(count_cached_digits)(keys, count, digits, thread->places);
    }

    KEY *cache = (KEY *)thread->cache;
    const int high_shift = digits.shift + digits.bits;
    const bool low_differs = (differ >> digits.shift & (((KEY)1 << digits.bits) - 1)) != 0;
    const bool high_differs = digits.number == 2 && differ >> high_shift != 0;
    if (low_differs && high_differs) {
        NAMED(digit_pass)(keys, cache, count, digits.shift, digits.bits, thread->places[0], to);
        NAMED(digit_pass)(cache, to, count, high_shift, digits.bits, thread->places[1], NULL);
    } else {
        const int digit = high_differs;
        if (keys == to)
            keys = memcpy(cache, keys, (size_t)count * sizeof *keys);
        NAMED(digit_pass)
        (keys, to, count, digit ? high_shift : digits.shift, digits.bits, thread->places[digit], NULL);
    }
    if (digits.shift > 0)
        NAMED(sort_ties)(to, count, digits.shift, thread);
}

/* ---- through memory ---- */

/* The bin of a key. By length: s is how many bits the key has beyond length_bits() + 1; bins go on from s to s + 1
 * without a gap. */
static inline size_t NAMED(bin_of)(const KEY *key, struct cut cut, const bool by_length)
{
    if (!by_length)
        return (size_t)NAMED(bits_above)(key, cut.shift) & (((size_t)1 << cut.bits) - 1);
    const KEY flip = cut.flip ? (KEY)-1 : 0,
              sorted = (KEY)-1 >> (8 * (int)sizeof(KEY) - cut.width); // never 0 bits
    const KEY rest = (*key ^ flip) & sorted;
    const int bits = length_bits(sizeof(KEY)), s = length_shift(rest, bits);
    const size_t bin = ((size_t)s << bits) + (size_t)(rest >> s);
    return cut.flip ? (size_t)cut.bins - 1 - bin : bin;
}

/* Count the keys [count] of each bin into thread->next, and gather in thread->differ the bits in which they differ from
 * `first`. Every other key is counted in a second table: in one table, if a key follows another of its bin, its
 * addition would have to wait for the one before. */
static inline void NAMED(count_part_bins)(const KEY *keys, int64_t count, KEY first, struct cut cut,
                                          const bool by_length, struct radix_thread *thread)
{
    int64_t *even = thread->next, *odd = thread->first;
    KEY differ = 0;
    int64_t i = 0;
    memset(even, 0, (size_t)cut.bins * sizeof *even);
    memset(odd, 0, (size_t)cut.bins * sizeof *odd);
    for (; i + 1 < count; i += 2) {
        differ |= (keys[i] ^ first) | (keys[i + 1] ^ first);
        even[NAMED(bin_of)(&keys[i], cut, by_length)]++;
        odd[NAMED(bin_of)(&keys[i + 1], cut, by_length)]++;
    }
    if (i < count) {
        differ |= keys[i] ^ first;
        even[NAMED(bin_of)(&keys[i], cut, by_length)]++;
    }
    for (int bin = 0; bin < cut.bins; bin++)
        even[bin] += odd[bin];
    thread->differ = differ;
}

/* Guess the low bits, `width` at most, in which keys [count] differ. Codes of 16 bytes seldom use their leading bits: a
 * sample says so before a count by those bits. For other keys, and for a bin, it would be wrong more often than useful. */
static int NAMED(guess_width)(const KEY *keys, int64_t count, int width)
{
    if (sizeof *keys <= sizeof(uint64_t) || width < 8 * (int)sizeof *keys)
        return width;
    const int64_t stride = count / WIDTH_SAMPLE_COUNT;
    KEY differ = 0;
    for (int i = 1; i < WIDTH_SAMPLE_COUNT; i++)
        differ |= keys[i * stride] ^ keys[0];
    return differ ? bit_width(differ) : 1;
}

/* Does a cut by length leave less to do? A sample of the keys [count] decides. keys_of is overwritten. */
static bool NAMED(length_wins)(const KEY *keys, int64_t count, struct cut even, struct cut by_length,
                               int64_t *keys_of)
{
    const int64_t stride = count / SAMPLE_COUNT;
    memset(keys_of, 0, (size_t)even.bins * sizeof *keys_of);
    for (int i = 0; i < SAMPLE_COUNT; i++)
        keys_of[NAMED(bin_of)(&keys[i * stride], even, false)]++;
    const int64_t even_work = cut_work(even, keys_of);
    memset(keys_of, 0, (size_t)by_length.bins * sizeof *keys_of);
    for (int i = 0; i < SAMPLE_COUNT; i++)
        keys_of[NAMED(bin_of)(&keys[i * stride], by_length, true)]++;
    return cut_work(by_length, keys_of) < even_work;
}

/* A team has counted keys [count] by *cut. True: *cut becomes a better cut, by which the team should count again.
 * `spare` [1 << PARTITION_BITS_MAX] is overwritten. */
static bool NAMED(improve_cut)(const KEY *keys, int64_t count, struct cut *cut,
                               const struct radix_thread *team, int parts, int64_t *spare)
{
    const int width = bit_width(team_differ(team, parts));
    if (width != cut->width) {
        *cut = cut_evenly(sizeof(KEY), count, width);
        return true;
    }
    if (cut->by_length || cut->shift == 0)
        return false;
    const int64_t low = team_keys(team, parts, 0), high = team_keys(team, parts, cut->bins - 1);
    const struct cut by_length = cut_by_length(sizeof(KEY), width, high > low);
    if (greater(high, low) <= count / SKEWED_SHARE ||
        !NAMED(length_wins)(keys, count, *cut, by_length, spare))
        return false;
    *cut = by_length;
    return true;
}

/* Write keys [from, until) of a bin, which lie in its line, to their places in `to`. */
static void NAMED(write_line_part)(KEY *to, const KEY *line, int64_t from, int64_t until, int64_t lead)
{
    const int64_t slot = (from + lead) % (int64_t)(LINE_BYTES / sizeof(KEY));
    memcpy(to + from, line + slot, (size_t)(until - from) * sizeof *to);
}

/* Move keys [count] to the places in `to` that thread->next names for their bins. A key's slot in the line of
 * its bin is that of its place in a line of memory, so that a full line goes out whole; the first and
 * the last line of a bin may be shared with another thread and are written in part. */
static inline void NAMED(scatter_part)(const KEY *keys, int64_t count, KEY *to, struct cut cut,
                                       const bool by_length, struct radix_thread *thread)
{
    const int64_t line_keys = LINE_BYTES / sizeof(KEY);
    const int64_t lead = (int64_t)((uintptr_t)to % LINE_BYTES / sizeof(KEY)); // of `to` into its line
    memcpy(thread->first, thread->next, (size_t)cut.bins * sizeof *thread->first);
    for (int64_t i = 0; i < count; i++) {
        const size_t bin = NAMED(bin_of)(&keys[i], cut, by_length);
        const int64_t place = thread->next[bin]++;
        const int64_t slot = (place + lead) & (line_keys - 1);
        KEY *line = (KEY *)thread->lines[bin];
        line[slot] = keys[i];
        if (slot < line_keys - 1)
            continue;
        if (place - slot >= thread->first[bin])
            stream_store(to + place - slot, line, LINE_BYTES);
        else
            NAMED(write_line_part)(to, line, thread->first[bin], place + 1, lead);
    }
    for (int bin = 0; bin < cut.bins; bin++) {
        const int64_t until = thread->next[bin], start = until - ((until + lead) & (line_keys - 1));
        const int64_t from = greater(start, thread->first[bin]);
        NAMED(write_line_part)(to, (const KEY *)thread->lines[bin], from, until, lead);
    }
    stream_stores_end();
}

/* Partition keys [count], which are not all equal, into `to`, stably; ends [bins] = where each bin ends. The keys agree
 * in all but their low `width` bits. Returns how they were cut. */
static struct cut NAMED(partition)(const KEY *keys, KEY *to, int64_t count, int width, int64_t *ends,
                                   struct radix_thread *team, int threads)
{
    struct cut cut = cut_evenly(sizeof(KEY), count, NAMED(guess_width)(keys, count, width));
    bool settled = false;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const int me = omp_get_thread_num(), parts = omp_get_num_threads();
        const int64_t from = count * me / parts, until = count * (me + 1) / parts;
        struct radix_thread *mine = &team[me];
        do {
            if (cut.by_length)
                NAMED(count_part_bins)(keys + from, until - from, keys[0], cut, true, mine);
            else
                NAMED(count_part_bins)(keys + from, until - from, keys[0], cut, false, mine);
#pragma omp barrier
#pragma omp single
            {
                settled = !NAMED(improve_cut)(keys, count, &cut, team, parts, ends);
                if (settled)
                    team_place(team, parts, cut.bins, ends);
            }
        } while (!settled);
        if (cut.by_length)
            NAMED(scatter_part)(keys + from, until - from, to, cut, true, mine);
        else
            NAMED(scatter_part)(keys + from, until - from, to, cut, false, mine);
    }
    return cut;
}

/* Sort keys [count], which agree in all but their low `width` bits, by a team of threads; the result is in
 * `to`, which is keys or scratch. */
static void NAMED(sort_range)(KEY *keys, KEY *scratch, KEY *to, int64_t count, int width,
                              struct radix_thread *team, int threads)
{
    if (count <= 1 << cached_bits(sizeof(KEY))) {
        NAMED(sort_cached)(keys, to, count, width, team);
        return;
    }
    if (NAMED(take_in_order)(keys, to, count, threads))
        return;
    int64_t ends[1 << PARTITION_BITS_MAX];
    const struct cut cut = NAMED(partition)(keys, scratch, count, width, ends, team, threads);

    // A bin with more keys than `heavy` would leave the other threads waiting for the one that sorts it.
    const int64_t heavy = greater(threads > 1 ? count / threads / 4 : count, 1 << cached_bits(sizeof(KEY)));
    for (int bin = 0; bin < cut.bins; bin++) {
        const int64_t start = bin ? ends[bin - 1] : 0, size = ends[bin] - start;
        if (size > heavy)
            NAMED(sort_range)
        (scratch + start, keys + start, to + start, size, cut_rest(cut, bin), team, threads);
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int bin = 0; bin < cut.bins; bin++) {
        const int64_t start = bin ? ends[bin - 1] : 0, size = ends[bin] - start;
        struct radix_thread *mine = &team[omp_get_thread_num()];
        if (size <= heavy)
            NAMED(sort_range)(scratch + start, keys + start, to + start, size, cut_rest(cut, bin), mine, 1);
    }
}
