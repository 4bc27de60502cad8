/* The parts of sorting by regions that know the key width: partition.c includes this once for each, with KEY
 * the key and NAMED(name) its name. */

/* bounds [BOUNDS] = every share-th key of a sample that is in order, or the value above it if the key was a bound
 * already. */
static void NAMED(make_bounds)(const NAMED(bound) * sample, int64_t share, NAMED(bound) * bounds)
{
    for (int i = 0; i < BOUNDS; i++) {
        const NAMED(bound) code = sample[share * (i + 1)];
        const bool repeats = i > 0 && code == sample[share * i] && code != ~(NAMED(bound))0;
        bounds[i] = repeats ? code + 1 : code;
    }
}

/* Is a region of one value? *least: its least code. The bound behind the last one would be one more than bounds reach:
 * it is 0, to which sums of codes wrap round, too. */
static bool NAMED(region_bounds)(const NAMED(bound) * bounds, int region, key_code *least)
{
    const NAMED(bound) from = region > 0 ? bounds[region - 1] : 0,
                       next = region < BOUNDS ? bounds[region] : 0;
    *least = from;
    return (NAMED(bound))(from + 1) == next;
}

/* Find the regions of codes [TOGETHER]. By a product, because gcc makes a branch of a conditional; unrolled, because
 * otherwise the chains of steps do not run side by side. */
static inline void NAMED(find_regions)(const NAMED(bound) * bounds, const NAMED(bound) * codes, int *regions)
{
    memset(regions, 0, TOGETHER * sizeof *regions);
#pragma GCC unroll 16
    for (int half = ENGINE_REGIONS / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < TOGETHER; i++)
            regions[i] += half * (bounds[regions[i] + half - 1] <= codes[i]);
}

static inline NAMED(bound) NAMED(code_at)(const struct raw_keys *raw, int64_t at)
{
    return is_numbered(raw) ? (NAMED(bound))numbered_code(raw, at)
                            : NAMED(keymap_encode)(raw->map, ((const KEY *)raw->from)[at]);
}

/* Find the codes of keys [at, until), of TOGETHER at most, and their regions. Returns how many they are; in place of
 * missing keys, the last one is searched for again. */
static inline int NAMED(next_codes)(const struct raw_keys *raw, int64_t at, int64_t until,
                                    const NAMED(bound) * bounds, NAMED(bound) * codes, int *regions)
{
    for (int i = 0; i < TOGETHER; i++)
        codes[i] = NAMED(code_at)(raw, at + i < until ? at + i : until - 1);
    NAMED(find_regions)(bounds, codes, regions);
    return until - at < TOGETHER ? (int)(until - at) : TOGETHER;
}

/* Count the keys [from, until) of each region into part->next. Each key is compared with the one before it, even if
 * that is another thread's: no step up or down falls between two parts. */
static void NAMED(count_part)(const struct raw_keys *raw, int64_t from, int64_t until,
                              const NAMED(bound) * bounds, struct partition_part *part)
{
    bool descends = false;
    memset(part->next, 0, sizeof part->next);
    NAMED(bound) before = until > from ? NAMED(code_at)(raw, from > 0 ? from - 1 : 0) : 0;
    for (int64_t i = from; i < until; i += TOGETHER) {
        NAMED(bound) codes[TOGETHER];
        int regions[TOGETHER];
        const int found = NAMED(next_codes)(raw, i, until, bounds, codes, regions);
        for (int j = 0; j < found; j++) {
            descends |= codes[j] < before;
            before = codes[j];
            part->next[regions[j]]++;
        }
    }
    part->descends = descends;
}

/* Write the codes of keys [from, until) to the places in `to` that part->next names for their regions, if any; values, unless NULL,
 * go with them. */
static void NAMED(move_part)(const struct raw_keys *raw, int64_t from, int64_t until,
                             const NAMED(bound) * bounds, struct partition_part *part, KEY *to,
                             const struct host_pair_values *values)
{
    for (int64_t i = from; i < until; i += TOGETHER) {
        NAMED(bound) codes[TOGETHER];
        int regions[TOGETHER];
        const int found = NAMED(next_codes)(raw, i, until, bounds, codes, regions);
        for (int j = 0; j < found; j++) {
            int64_t *place = &part->next[regions[j]];
            if (*place == NOWHERE)
                continue;
            if (values)
                move_value(values, i + j, *place);
            to[(*place)++] = (KEY)codes[j];
        }
    }
}
