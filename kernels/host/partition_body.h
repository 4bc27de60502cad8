/* The parts of sorting by regions that know the key width: partition.c includes this once for each, with KEY
 * the key and NAMED(name) its name. */

/* The codes of keys [at, until), but of TOGETHER at most, and their regions. How many they are; in the place
 * of those that lack the last one is searched for again. */
static inline int NAMED(next_codes)(struct keymap map, const KEY *keys, int64_t at, int64_t until,
                                    const uint64_t *bounds, uint64_t *codes, int *regions)
{
    for (int i = 0; i < TOGETHER; i++)
        codes[i] = NAMED(keymap_encode)(map, keys[at + i < until ? at + i : until - 1]);
    find_regions(bounds, codes, regions);
    return until - at < TOGETHER ? (int)(until - at) : TOGETHER;
}

/* Count the keys [from, until) of each region into part->next. Each looks at the one before it, also if that
 * is another thread's: no step up or down falls between two parts. */
static void NAMED(count_part)(struct keymap map, const KEY *keys, int64_t from, int64_t until,
                              const uint64_t *bounds, struct partition_part *part)
{
    bool ascends = false, descends = false;
    memset(part->next, 0, sizeof part->next);
    uint64_t before = until > from ? NAMED(keymap_encode)(map, keys[from > 0 ? from - 1 : 0]) : 0;
    for (int64_t i = from; i < until; i += TOGETHER) {
        uint64_t codes[TOGETHER];
        int regions[TOGETHER];
        const int found = NAMED(next_codes)(map, keys, i, until, bounds, codes, regions);
        for (int j = 0; j < found; j++) {
            ascends |= codes[j] > before;
            descends |= codes[j] < before;
            before = codes[j];
            part->next[regions[j]]++;
        }
    }
    part->ascends = ascends;
    part->descends = descends;
}

/* Write the codes of keys [from, until) to the places in `to` that part->next names for their regions, if any. */
static void NAMED(move_part)(struct keymap map, const KEY *keys, int64_t from, int64_t until,
                             const uint64_t *bounds, struct partition_part *part, KEY *to)
{
    for (int64_t i = from; i < until; i += TOGETHER) {
        uint64_t codes[TOGETHER];
        int regions[TOGETHER];
        const int found = NAMED(next_codes)(map, keys, i, until, bounds, codes, regions);
        for (int j = 0; j < found; j++) {
            int64_t *place = &part->next[regions[j]];
            if (*place != NOWHERE)
                to[(*place)++] = (KEY)codes[j];
        }
    }
}
