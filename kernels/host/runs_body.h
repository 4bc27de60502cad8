/* Runs of equal keys for one key width: runs.c includes this once for each, with KEY the key and NAMED(name) its name. */

static inline bool NAMED(is_head)(const struct engine_runs *runs, int64_t i)
{
    const KEY *keys = runs->keys;
    return i > 0 ? keys[i] != keys[i - 1] : !runs->before || keys[0] != (KEY)*runs->before;
}

/* Count the heads among keys from .. until - 1; *first is the first of them, if there are any. */
static void NAMED(count_heads)(const struct engine_runs *runs, int64_t from, int64_t until, int64_t *heads,
                               int64_t *first)
{
    int64_t found = 0;
    for (int64_t i = until - 1; i >= from; i--)
        if (NAMED(is_head)(runs, i)) {
            found++;
            *first = i;
        }
    *heads = found;
}

/* Goes from the last key to the first: a run ends where the head that was seen before it is. */
static void NAMED(write_heads)(const struct engine_runs *runs, const struct runs_part *part)
{
    int64_t heads = part->heads, next = part->next;
    for (int64_t i = part->until - 1; i >= part->from; i--) {
        if (runs->ids)
            runs->ids[i] = runs->first_id + heads - 1;
        if (!NAMED(is_head)(runs, i))
            continue;
        heads--;
        if (runs->unique)
            ((KEY *)runs->unique)[heads] = ((const KEY *)runs->keys)[i];
        if (runs->first)
            runs->first[heads] = runs->position + i;
        if (runs->counts)
            runs->counts[heads] = next - (runs->position + i);
        next = runs->position + i;
    }
}
