/* Loops over all keys for one key width: keys.c includes this once for each, with KEY the key and NAMED(name)
 * its name. */

static void NAMED(map_each)(int threads, struct keymap map, bool decode, KEY *to, const KEY *from,
                            int64_t count)
{
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
    for (int64_t i = 0; i < count; i++)
        to[i] = decode ? NAMED(keymap_decode)(map, from[i]) : NAMED(keymap_encode)(map, from[i]);
}

static void NAMED(repeat)(KEY key, KEY *out, int64_t from, int64_t until)
{
    for (int64_t i = from; i < until; i++)
        out[i] = key;
}

/* Each key is compared with the one before it, even if that is another thread's: no descent falls between two threads. */
static void NAMED(inspect_each)(int threads, struct keymap map, const KEY *keys, int64_t count,
                                struct engine_inspection *found)
{
    uint64_t sum[2] = {0, 0};
    int64_t descent = count;
#pragma omp parallel for num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT) \
    reduction(+ : sum) reduction(min : descent)
    for (int64_t i = 0; i < count; i++) {
        key_fingerprint_add(sizeof(KEY), keys[i], sum);
        if (i > 0 && i < descent &&
            NAMED(keymap_encode)(map, keys[i]) < NAMED(keymap_encode)(map, keys[i - 1]))
            descent = i;
    }
    found->first_descent = descent;
    found->first = count > 0 ? NAMED(keymap_encode)(map, keys[0]) : 0;
    found->last = count > 0 ? NAMED(keymap_encode)(map, keys[count - 1]) : 0;
    memcpy(found->fingerprint, sum, sizeof sum);
}
