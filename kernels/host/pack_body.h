/* The parts of packing that know the key width: pack.c includes this once for each, with KEY the key and NAMED(name)
 * its name. Differences wrap round, so for keys in no order they are of full width, and exact. */

/* Note what a block's differences begin at, and, in the place where its end will be, the width of its differences. */
static void NAMED(measure_block)(const KEY *keys, int64_t block, int64_t count, const struct packed_parts *parts)
{
    const KEY *first = keys + block * ENGINE_PACK_KEYS;
    const int number = keys_in_block(block, count);
    KEY all = 0, least = first[0], most = first[0];
    for (int i = 1; i < number; i++) {
        all |= (KEY)(first[i] - first[i - 1]);
        least = first[i] < least ? first[i] : least;
        most = first[i] > most ? first[i] : most;
    }
    ((KEY *)parts->first)[block] = parts->to_smallest ? least : first[0];
    parts->ends[block] = (uint32_t)bit_width(parts->to_smallest ? (KEY)(most - least) : all);
}

/* Bits wait in `pending` until they fill a word; a wide difference is taken a word at a time. */
static void NAMED(pack_block)(const KEY *keys, int64_t block, int64_t count, const struct packed_parts *parts)
{
    const KEY *first = keys + block * ENGINE_PACK_KEYS;
    const int number = keys_in_block(block, count);
    const uint32_t begin = block > 0 ? parts->ends[block - 1] : 0, words = parts->ends[block] - begin;
    const int width = block == parts->blocks - 1 ? (int)parts->ends[parts->blocks]
                                                 : (int)(words / (ENGINE_PACK_KEYS / WORD_BITS));
    uint32_t *word = parts->word + begin;
    const KEY base = ((const KEY *)parts->first)[block];
    uint64_t pending = 0;
    int waiting = 0;
    for (int i = 0; i < number; i++) {
        KEY rest = (KEY)(first[i] - (parts->to_smallest || i == 0 ? base : first[i - 1]));
        for (int left = width; left > 0;) {
            const int some = left < WORD_BITS ? left : WORD_BITS;
            pending |= (uint64_t)(uint32_t)rest << waiting;
            waiting += some;
            left -= some;
            if (left > 0)
                rest >>= some;
            if (waiting >= WORD_BITS) {
                *word++ = (uint32_t)pending;
                pending >>= WORD_BITS;
                waiting -= WORD_BITS;
            }
        }
    }
    if (waiting > 0)
        *word = (uint32_t)pending;
}

/* Whatever `ends` says, words are read only where there are some. */
static void NAMED(unpack_block)(const struct packed_parts *parts, int64_t block, int64_t count, KEY *keys)
{
    const int number = keys_in_block(block, count);
    const int64_t begin = block > 0 ? parts->ends[block - 1] : 0;
    int64_t width = block == parts->blocks - 1 ? parts->ends[parts->blocks]
                                               : (parts->ends[block] - begin) / (ENGINE_PACK_KEYS / WORD_BITS);
    width = width < 0 || width > (int64_t)(8 * sizeof(KEY)) ? 0 : width;
    const int64_t end = begin + words_for(number, (int)width);
    const uint32_t *word = parts->word + begin;
    uint64_t pending = 0;
    int waiting = 0;
    const KEY base = ((const KEY *)parts->first)[block];
    KEY before = base, *to = keys + block * ENGINE_PACK_KEYS;
    if (end > parts->words)
        width = 0;
    for (int i = 0; i < number; i++) {
        KEY difference = 0;
        for (int have = 0; have < width;) {
            const int some = width - have < WORD_BITS ? (int)width - have : WORD_BITS;
            if (waiting < some) {
                pending |= (uint64_t)*word++ << waiting;
                waiting += WORD_BITS;
            }
            const uint32_t bits = (uint32_t)(pending & ((UINT64_C(1) << some) - 1));
            difference |= (KEY)bits << have;
            pending >>= some;
            waiting -= some;
            have += some;
        }
        to[i] = (KEY)((parts->to_smallest ? base : before) + difference);
        before = to[i];
    }
}
