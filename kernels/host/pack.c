/* Keys as differences, on CPU cores; engine.h pictures what they are packed to. Threads take blocks: first their
 * widths, which tell where the words of each block begin; then the words. */
#include <omp.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "kernels/host/host_engine.h"

enum { WORD_BITS = 32, GROUP = 64 /* blocks that a thread takes at a time */ };

/* Packed keys: where their parts lie. */
struct packed_parts {
    int64_t blocks, words; /* words: that there is room for */
    bool to_smallest;
    char *first;
    uint32_t *ends, *word;
};

/* Bytes before the words. */
static int64_t head_bytes(int64_t count, int key_bytes)
{
    const int64_t blocks = divide_up(count, ENGINE_PACK_KEYS);
    return blocks * key_bytes + (blocks + 1) * (int64_t)sizeof(uint32_t);
}

/* packed [bytes] */
static struct packed_parts packed_parts_of(const struct engine_packing *packing, const void *packed,
                                           int64_t bytes, int key_bytes)
{
    const int64_t count = packing->count;
    struct packed_parts parts = {.blocks = divide_up(count, ENGINE_PACK_KEYS),
                                 .to_smallest = packing->to_smallest,
                                 .first = (char *)packed};
    parts.ends = (uint32_t *)(parts.first + parts.blocks * key_bytes);
    parts.word = parts.ends + parts.blocks + 1;
    parts.words = (bytes - head_bytes(count, key_bytes)) / (int64_t)sizeof(uint32_t);
    return parts;
}

static int keys_in_block(int64_t block, int64_t count)
{
    return (int)lesser(count - block * ENGINE_PACK_KEYS, ENGINE_PACK_KEYS);
}

static uint32_t words_for(int keys, int width)
{
    return (uint32_t)divide_up(keys * width, WORD_BITS);
}

#define KEY_WIDTH_BODY "kernels/host/pack_body.h"
#include "kernels/host/for_key_widths.h"

/* Turn `ends`, which holds the widths of blocks, into their ends. Returns how many words all blocks have. */
static int64_t place_words(const struct packed_parts *parts, int64_t count)
{
    int64_t words = 0;
    parts->ends[parts->blocks] = parts->ends[parts->blocks - 1];
    for (int64_t block = 0; block < parts->blocks; block++) {
        words += words_for(keys_in_block(block, count), (int)parts->ends[block]);
        parts->ends[block] = (uint32_t)words;
    }
    return words;
}

/* One packing after the other, each by all threads. A short packing may have too few blocks for all of them, but is soon done. */
static void pack_one(int threads, int key_bytes, const struct engine_packing *packing)
{
    const void *keys = packing->from;
    const int64_t count = packing->count, plain = count * key_bytes, head = head_bytes(count, key_bytes);
    *packing->bytes = plain;
    if (head < plain && plain / (int64_t)sizeof(uint32_t) <= UINT32_MAX) {
        const struct packed_parts parts = packed_parts_of(packing, packing->to, plain, key_bytes);
#pragma omp parallel for schedule(dynamic, GROUP) num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
        for (int64_t block = 0; block < parts.blocks; block++)
            KEY_CALL(key_bytes, measure_block, keys, block, count, &parts);
        const int64_t all = head + place_words(&parts, count) * (int64_t)sizeof(uint32_t);
        if (all < plain) {
            *packing->bytes = all;
#pragma omp parallel for schedule(dynamic, GROUP) num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
            for (int64_t block = 0; block < parts.blocks; block++)
                KEY_CALL(key_bytes, pack_block, keys, block, count, &parts);
        }
    }
    if (*packing->bytes == plain && count > 0)
        memcpy(packing->to, keys, (size_t)plain);
}

static hsort_status host_pack(struct engine *engine, int key_bytes, const struct engine_packing *packings, int number)
{
    TRY(kernel_takes("packing of keys", key_bytes));
    for (int i = 0; i < number; i++)
        pack_one(host_threads(engine), key_bytes, &packings[i]);
    return HSORT_OK;
}

static void unpack_one(int threads, int key_bytes, const struct engine_packing *packing)
{
    const int64_t count = packing->count, bytes = *packing->bytes, plain = count * key_bytes;
    if (bytes >= plain || bytes < head_bytes(count, key_bytes)) {
        if (count > 0 && bytes >= plain)
            memcpy(packing->to, packing->from, (size_t)plain);
        return;
    }
    const struct packed_parts parts = packed_parts_of(packing, packing->from, bytes, key_bytes);
#pragma omp parallel for schedule(dynamic, GROUP) num_threads(threads) if (threads > 1 && count >= PARALLEL_COUNT)
    for (int64_t block = 0; block < parts.blocks; block++)
        KEY_CALL(key_bytes, unpack_block, &parts, block, count, packing->to);
}

static hsort_status host_unpack(struct engine *engine, int key_bytes, const struct engine_packing *packings, int number)
{
    TRY(kernel_takes("unpacking of keys", key_bytes));
    for (int i = 0; i < number; i++)
        unpack_one(host_threads(engine), key_bytes, &packings[i]);
    return HSORT_OK;
}

const struct engine_pack_ops host_pack_ops = {.pack = host_pack, .unpack = host_unpack};
