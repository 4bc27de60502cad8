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
