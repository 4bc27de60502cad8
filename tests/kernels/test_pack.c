/* Packed keys: against an oracle that writes them bit by bit, and unpacked again; odd counts, equal keys, gaps of every width, keys
 * in no order; none, one and many in a call; never more bytes than the keys have. Also bytes that nobody has packed, as a failed rank
 * sends them: nothing outside is touched.
 *
 *     test_pack host [threads]       test_pack cuda */
#include "tests/kernels/engine_test.h"

enum { TRIALS = 160, LARGE = 300001, PACKINGS = 200 /* more than a launch takes */ };

/* Keys of any width as bytes, lowest first. */
static void draw_keys(int width, int64_t count, unsigned char *keys, uint64_t *random)
{
    const int shape = (int)(check_random(random) % 6), bits = (int)(check_random(random) % (uint64_t)(8 * width)) + 1;
    const key_code most = bits == 128 ? ~(key_code)0 : ((key_code)1 << bits) - 1;
    key_code key = check_random(random);
    for (int64_t i = 0; i < count; i++) {
        const key_code draw = (key_code)check_random(random) << 64 | check_random(random);
        switch (shape) {
        case 0: // gaps of up to so many bits, which may wrap round
            key += draw & most;
            break;
        case 1: // equal keys, and a jump here and there
            key += draw % 300 == 0 ? draw >> 7 & most : 0;
            break;
        case 2: // any order
            key = draw;
            break;
        case 3: // the largest and the smallest
            key = i < count / 2 ? 0 : ~(key_code)0;
            break;
        case 4: // dense
            key += draw % 3;
            break;
        default: // blocks of different widths
            key += i / ENGINE_PACK_KEYS % 3 == 0 ? draw & most : draw % 2;
            break;
        }
        memcpy(keys + i * width, &key, (size_t)width); // little-endian
    }
}

static key_code key_at(int width, const unsigned char *keys, int64_t i)
{
    key_code key = 0;
    memcpy(&key, keys + i * width, (size_t)width);
    return key;
}

/* The smallest of keys first .. end - 1. */
static key_code smallest(int width, const unsigned char *keys, int64_t first, int64_t end)
{
    key_code least = key_at(width, keys, first);
    for (int64_t i = first + 1; i < end; i++)
        least = key_at(width, keys, i) < least ? key_at(width, keys, i) : least;
    return least;
}

/* Pack bit by bit into `to` [count * width + 64]. Returns how many bytes. */
static int64_t pack_slowly(int width, const unsigned char *keys, int64_t count, bool to_smallest,
                           unsigned char *to)
{
    const int64_t blocks = (count + ENGINE_PACK_KEYS - 1) / ENGINE_PACK_KEYS, plain = count * width;
    const key_code mask = width == 16 ? ~(key_code)0 : ((key_code)1 << 8 * width) - 1;
    const int64_t head = blocks * width + (blocks + 1) * 4;
    uint32_t words = 0, last = 0;
    unsigned char *packed = calloc(1, (size_t)(head + plain + blocks * 4 + 64));
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t first = block * ENGINE_PACK_KEYS;
        const int64_t end = first + ENGINE_PACK_KEYS < count ? first + ENGINE_PACK_KEYS : count;
        const key_code base = to_smallest ? smallest(width, keys, first, end) : key_at(width, keys, first);
        key_code gaps[ENGINE_PACK_KEYS];
        int bits = 0;
        for (int64_t i = first; i < end; i++) {
            const key_code before = to_smallest || i == first ? base : key_at(width, keys, i - 1);
            gaps[i - first] = (key_at(width, keys, i) - before) & mask;
            while (bits < 128 && gaps[i - first] >> bits != 0)
                bits++;
        }
        for (int64_t i = first; i < end; i++)
            for (int bit = 0; bit < bits; bit++) {
                const int64_t at = 32 * (int64_t)words + (i - first) * bits + bit;
                packed[head + at / 8] |= (unsigned char)((gaps[i - first] >> bit & 1) << at % 8);
            }
        memcpy(packed + block * width, &base, (size_t)width); // little-endian
        words += (uint32_t)(((end - first) * bits + 31) / 32);
        memcpy(packed + blocks * width + block * 4, &words, 4);
        last = (uint32_t)bits;
    }
    if (blocks > 0)
        memcpy(packed + blocks * width + blocks * 4, &last, 4);
    const int64_t all = head + 4 * (int64_t)words;
    memcpy(to, all < plain ? packed : keys, (size_t)(all < plain ? all : plain));
    free(packed);
    return all < plain ? all : plain;
}

/* One of the packings of a call. */
struct trial {
    int64_t count, wanted;
    bool to_smallest;
    unsigned char *keys, *expected;
    struct buffer from, to, back;
};

static void trial_make(struct trial *trial, int width, int64_t count, uint64_t *random)
{
    const size_t plain = (size_t)(count * width);
    trial->count = count;
    trial->to_smallest = check_random(random) % 2;
    trial->keys = alloc_or_exit(plain + 1);
    trial->expected = alloc_or_exit(plain + 64);
    draw_keys(width, count, trial->keys, random);
    trial->wanted = pack_slowly(width, trial->keys, count, trial->to_smallest, trial->expected);
    trial->from = buffer_new(trial->keys, plain, check_random(random) % 5 * (size_t)width);
    trial->to = buffer_new(NULL, plain, check_random(random) % 5 * (size_t)width);
    trial->back = buffer_new(NULL, plain, check_random(random) % 5 * (size_t)width);
}

static void trial_check(struct trial *trial, int width, int64_t bytes)
{
    CHECK(bytes == trial->wanted, "%lld keys of %d bytes: %lld bytes, not %lld", (long long)trial->count, width,
          (long long)bytes, (long long)trial->wanted);
    CHECK(memcmp(buffer_result(&trial->to, "pack"), trial->expected, (size_t)trial->wanted) == 0,
          "%lld keys of %d bytes: other bytes", (long long)trial->count, width);
    CHECK(memcmp(buffer_result(&trial->back, "unpack"), trial->keys, (size_t)(trial->count * width)) == 0,
          "%lld keys of %d bytes: other keys", (long long)trial->count, width);
    buffer_free(&trial->from), buffer_free(&trial->to), buffer_free(&trial->back);
    free(trial->keys);
    free(trial->expected);
}

static int64_t draw_count(uint64_t *random, bool large)
{
    const int64_t near = (int64_t)(check_random(random) % 5) * ENGINE_PACK_KEYS,
                  counts[4] = {(int64_t)(check_random(random) % 40), near + (int64_t)(check_random(random) % 3),
                               (int64_t)(check_random(random) % 5000), large ? LARGE : (int64_t)(check_random(random) % 300)};
    return counts[check_random(random) % 4];
}

/* Pack keys of all lengths in one call, and unpack them in another. */
static void check_call(int width, int number, bool large, int64_t *bytes, uint64_t *random)
{
    static struct trial trials[PACKINGS];
    static struct engine_packing packings[PACKINGS];
    for (int i = 0; i < number; i++) {
        trial_make(&trials[i], width, draw_count(random, large), random);
        bytes[i] = -1;
        packings[i] = (struct engine_packing){buffer_keys(&trials[i].from), buffer_keys(&trials[i].to),
                                              trials[i].count, &bytes[i], trials[i].to_smallest};
    }
    must(ops->packing->pack(engine, width, packings, number), "pack");
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
    for (int i = 0; i < number; i++) {
        packings[i].from = packings[i].to;
        packings[i].to = buffer_keys(&trials[i].back);
    }
    must(ops->packing->unpack(engine, width, packings, number), "unpack");
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
    for (int i = 0; i < number; i++)
        trial_check(&trials[i], width, bytes[i]);
}

/* Unpack any bytes, fewer than the keys have, and some that begin like packed ones. */
static void check_nonsense(int width, int64_t count, uint64_t *random)
{
    const size_t plain = (size_t)(count * width);
    unsigned char *keys = alloc_or_exit(plain + 64);
    draw_keys(width, count, keys, random);
    const bool to_smallest = check_random(random) % 2;
    const int64_t packed = pack_slowly(width, keys, count, to_smallest, keys);
    for (int i = 0; i < 20 && packed > 0; i++)
        keys[check_random(random) % (uint64_t)packed] = (unsigned char)check_random(random);
    const int64_t blocks = (count + ENGINE_PACK_KEYS - 1) / ENGINE_PACK_KEYS, ends = blocks * width;
    // An end so far off that the bits of its block overflow an int.
    if (packed > ends + 4 * blocks && check_random(random) % 2)
        keys[ends + 4 * (int64_t)(check_random(random) % (uint64_t)blocks) + 3] =
            (unsigned char)(check_random(random) % 32 * 8);
    const size_t some = check_random(random) % 3 ? (size_t)packed : check_random(random) % (plain + 1);
    struct buffer from = buffer_new(keys, some, 0), back = buffer_new(NULL, plain, (size_t)width);
    int64_t bytes = (int64_t)some;
    const struct engine_packing packing = {buffer_keys(&from), buffer_keys(&back), count, &bytes,
                                           to_smallest};
    must(ops->packing->unpack(engine, width, &packing, 1), "unpack");
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
    // What lies behind these bytes must not matter either.
    memset(keys + some, ~POISON, 64);
    struct buffer longer = buffer_new(keys, some + 64, 0), again = buffer_new(NULL, plain, (size_t)width);
    const struct engine_packing other = {buffer_keys(&longer), buffer_keys(&again), count, &bytes,
                                         to_smallest};
    must(ops->packing->unpack(engine, width, &other, 1), "unpack");
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
    CHECK(memcmp(buffer_result(&back, "unpack of nonsense"), buffer_result(&again, "unpack of nonsense"),
                 plain) == 0,
          "%lld keys of %d bytes: bytes behind %zu packed ones are read", (long long)count, width, some);
    buffer_free(&from), buffer_free(&back), buffer_free(&longer), buffer_free(&again);
    free(keys);
}

int main(int argc, char **argv)
{
    uint64_t random = check_seed();
    void *bytes;
    open_engine(argc, argv);
    printf("test_pack %s: seed %llu\n", ops->name, (unsigned long long)random);
    must(ops->alloc_host(engine, PACKINGS * sizeof(int64_t), &bytes), "memory");
    for (int trial = 0; trial < TRIALS && check_failures < 5; trial++) {
        const int width = 4 << check_random(&random) % 3, number = trial % 20 == 7 ? PACKINGS : (int)(check_random(&random) % 6);
        check_call(width, number, trial % 40 == 3, bytes, &random);
        check_nonsense(width, draw_count(&random, false), &random);
    }
    ops->free_host(engine, bytes);
    close_engine();
    return check_failures > 0;
}
