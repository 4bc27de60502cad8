/* Samples and maps of the sort by regions: `test_partition_map host [THREADS]` or `cuda`. This tests what test_partition cannot see:
 * samples of more keys than there is memory for, and how even the regions of a large sample are. */
#include "tests/kernels/partition_trial.h"
#include "tests/support/pretend.h"

enum { WIDTHS = 3 }; // 4, 8 and 16 bytes
static struct buffer workspaces[WIDTHS], scratches[WIDTHS];

static void *workspace_of(int key_bytes)
{
    return buffer_keys(&workspaces[key_bytes / 8]);
}

static void *scratch_of(int key_bytes)
{
    return buffer_keys(&scratches[key_bytes / 8]);
}

/* Return where the one key of a part lies; the place must be in the part and on the rank. */
static int64_t place_in_part(const struct sample_share *share)
{
    const int64_t begin = begin_of_part(share->first, share->total, share->log),
                  until = begin_of_part(share->first + 1, share->total, share->log),
                  end = share->before + share->count, place = sample_place(share, 0);
    CHECK(begin <= place && place < until && share->before <= place && place < end,
          "sample %d of 2^%d of %lld keys is at %lld, not among %lld .. %lld, %lld of a rank from %lld on",
          share->first, share->log, (long long)share->total, (long long)place, (long long)begin,
          (long long)until, (long long)share->count, (long long)share->before);
    return place;
}

/* Sample a few keys of very many: products of their positions do not fit 64 bits. */
static void test_far_samples(uint64_t random)
{
    for (int turn = 0; turn < 400; turn++) {
        const int kind = turn % KEY_KINDS, log = draw_sample_log(check_random(&random));
        const int64_t total = (int64_t)(check_random(&random) >> (1 + check_random(&random) % 30)) | 1 << 20;
        const int64_t first = (int64_t)(check_random(&random) % (1u << log)),
                      begin = begin_of_part(first, total, log);
        int64_t count = 1 + (int64_t)(check_random(&random) % 1000),
                before = begin - (int64_t)(check_random(&random) % (uint64_t)count);
        before = before < 0 ? 0 : before;
        count = count < total - before ? count : total - before;
        const struct keymap map = keymap_make((hsort_type)kind, turn % 4 < 2 ? HSORT_ASCENDING : HSORT_DESCENDING);
        const int key_bytes = map.key_bytes;
        char *keys = keys_new(UNIFORM, key_bytes, count, &random);
        struct buffer from = buffer_new(keys, (size_t)(count * key_bytes), (size_t)key_bytes);
        const struct raw_keys raw = {.map = map, .from = buffer_keys(&from)};
        uint64_t code[KEY_CODE_WORDS] = {0};
        const struct sample_share share = {before, count, total, log, (int)first, 1};
        const int64_t at = place_in_part(&share) - before;
        must(ops->partition->sample(engine, key_bytes, &raw, &share, scratch_of(key_bytes), code), "sample");
        CHECK(words_load(key_bytes, code, 0) == keymap_encode(map, key_load(key_bytes, keys, at)),
              "%s: sample %lld of 2^%d of %lld keys is wrong", ops->name, (long long)first, log,
              (long long)total);
        buffer_free(&from);
        free(keys);
    }
}

/* Runs in order, one behind the other, each as long as several parts of the sample. The sample must see most places of a run, not the
 * same few places of each run. */
static void test_runs(void)
{
    enum { LOG = ENGINE_SAMPLE_LOG_MIN, RUN_LOG = 12, PART_LOG = 9, TOTAL = 1 << (LOG + PART_LOG) };
    static uint64_t codes[1 << LOG];
    static bool seen[1 << RUN_LOG];
    uint64_t *keys = alloc_or_exit(TOTAL * sizeof *keys);
    int places = 0;
    for (int i = 0; i < TOTAL; i++)
        keys[i] = (uint64_t)i % (1 << RUN_LOG);
    struct buffer from = buffer_new(keys, TOTAL * sizeof *keys, sizeof *keys);
    const struct raw_keys raw = {.map = keymap_make(HSORT_U64, HSORT_ASCENDING), .from = buffer_keys(&from)};
    const struct sample_share share = {0, TOTAL, TOTAL, LOG, 0, 1 << LOG};
    must(ops->partition->sample(engine, sizeof *keys, &raw, &share, scratch_of(sizeof *keys), codes),
         "sample");
    for (int i = 0; i < 1 << LOG; i++) {
        places += !seen[codes[i]];
        seen[codes[i]] = true;
    }
    CHECK(places > (1 << LOG) / 2, "%s: a sample of 2^%d keys sees %d places of a run", ops->name, LOG,
          places);
    buffer_free(&from);
    free(keys);
}

/* Count the codes of a sample [2^log] by the regions that are made of it. False: the device cannot. */
static bool count_sample(int key_bytes, const uint64_t *codes, int log, int64_t *counts)
{
    enum { TOTAL_LOG = 40 }; // so many keys have as many regions as there can be
    const int sample = 1 << log;
    if (!ops->partition->can(engine))
        return false;
    char *keys = alloc_or_exit((size_t)(sample * key_bytes));
    for (int i = 0; i < sample; i++)
        store(key_bytes, keys, i, words_load(key_bytes, codes, i));
    struct buffer from = buffer_new(keys, (size_t)(sample * key_bytes), 0);
    const struct raw_keys raw = {.map = keymap_of_codes(key_bytes), .from = buffer_keys(&from)};
    struct engine_map regions;
    bool down;
    must(ops->partition->make_map(engine, key_bytes, codes, log, INT64_C(1) << TOTAL_LOG, false,
                                  workspace_of(key_bytes), scratch_of(key_bytes), &regions),
         "map");
    must(ops->partition->count(engine, key_bytes, &raw, sample, &regions, workspace_of(key_bytes), counts,
                               &down),
         "count");
    buffer_free(&from);
    free(keys);
    return true;
}

/* Regions must have equally many keys of a large sample, here of keys that lie closer together towards 0. */
static void test_even_regions(uint64_t random)
{
    static uint64_t codes[KEY_CODE_WORDS * SAMPLE_MAX];
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2)
        for (int log = ENGINE_SAMPLE_LOG_USUAL + 1; log <= ENGINE_SAMPLE_LOG_MAX; log++) {
            int64_t counts[ENGINE_REGIONS], most = 0, held = 0;
            for (int i = 0; i < 1 << log; i++) {
                const key_code root = random_code(&random) >> 64;
                words_store(key_bytes, codes, i, root * root >> (128 - 8 * key_bytes));
            }
            if (!count_sample(key_bytes, codes, log, counts))
                return;
            for (int region = 0; region < ENGINE_REGIONS; region++) {
                most = counts[region] > most ? counts[region] : most;
                held += counts[region] > 0;
            }
            CHECK(held > ENGINE_REGIONS * 9 / 10 && most * held <= (1 << log) + (1 << log) / 8,
                  "%s, %d bytes: of a sample of 2^%d, %lld regions have keys, one has %lld", ops->name, key_bytes,
                  log, (long long)held, (long long)most);
        }
}

int main(int argc, char **argv)
{
    const uint64_t seed = check_seed();
    const char *gpu = pretend_gpu(seed);
    open_engine(argc, argv);
    printf("test_partition_map %s: seed %llu, GPU %s\n", ops->name, (unsigned long long)seed, gpu);
    for (int i = 0; i < WIDTHS; i++) {
        workspaces[i] = buffer_new(NULL, ops->partition->workspace(engine, 4 << i), 0);
        scratches[i] = buffer_new(NULL, ops->partition->sample_scratch(engine, 4 << i, ENGINE_SAMPLE_LOG_MAX), 0);
    }
    test_far_samples(seed);
    test_runs();
    test_even_regions(seed);
    for (int i = 0; i < WIDTHS; i++) {
        buffer_guards(&workspaces[i], "workspace");
        buffer_guards(&scratches[i], "scratch");
        buffer_free(&workspaces[i]);
        buffer_free(&scratches[i]);
    }
    close_engine();
    return check_failures > 0;
}
