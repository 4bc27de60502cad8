/* The shards of a trial of test_partition: how they are cut, scattered to regions, and looked at. */
#ifndef PARTITION_SHARD_H
#define PARTITION_SHARD_H

#include "tests/kernels/partition_trial.h"

enum { SETTLE_BYTES = 1 << 21, RANKS_MAX = 8 };

struct rank {
    int64_t before, count, room;
    bool twice; // scattered twice, because rooms did not suffice
    struct buffer keys, to;
    void *workspace;
    int64_t counts[ENGINE_REGIONS], starts[ENGINE_REGIONS + 1];
};

/* What the map says of its regions. */
struct values {
    bool is_one[ENGINE_REGIONS];
    key_code code[ENGINE_REGIONS];
};

static struct {
    int trials, refused, left, written, rooms[SCATTER_MOVED + 1];
} seen;
enum { WIDTHS = 3 };                                // 4, 8 and 16 bytes
static struct buffer workspaces[WIDTHS][RANKS_MAX]; // never cleaned between trials
static struct buffer sample_scratch[WIDTHS];        // for the largest sample
static struct buffer settle_scratch;                // [SETTLE_BYTES]

static void *workspace_of(int key_bytes, int rank)
{
    return buffer_keys(&workspaces[key_bytes / 8][rank]);
}

static void *scratch_of_sample(int key_bytes)
{
    return buffer_keys(&sample_scratch[key_bytes / 8]);
}

/* Cut the keys into shards of any size, some of them perhaps empty, and bring them to the engine. */
static void share_out_keys(const struct trial *trial, int key_bytes, const char *keys, struct rank *ranks,
                           uint64_t *random)
{
    int64_t before = 0;
    for (int r = 0; r < trial->ranks; r++) {
        const int64_t left = trial->count - before;
        const int64_t most = left < 2 * trial->count / trial->ranks ? left : 2 * trial->count / trial->ranks;
        const int64_t some =
            check_random(random) % 5 == 0 ? 0 : (int64_t)(check_random(random) % (uint64_t)(most + 1));
        const size_t shift = (size_t)key_bytes * (check_random(random) % 16);
        struct rank *rank = &ranks[r];
        rank->before = before;
        rank->count = r == trial->ranks - 1 ? left : some;
        rank->keys = buffer_new(keys + before * key_bytes, (size_t)(rank->count * key_bytes), shift);
        rank->room = rank->count +
                     (trial->rooms ? (int64_t)(check_random(random) % (uint64_t)(2 * rank->count + 1)) : 0);
        rank->to = buffer_new(NULL, (size_t)(rank->room * key_bytes),
                              (size_t)key_bytes * (check_random(random) % 16));
        rank->workspace = workspace_of(key_bytes, r);
        before += rank->count;
    }
}

static const void *keys_of(const struct rank *rank)
{
    return rank->count > 0 ? buffer_keys(&rank->keys) : NULL;
}

/* Is some key followed by a smaller one, by value? */
static bool find_descents(const struct trial *trial, int key_bytes, const char *keys, int64_t count)
{
    bool down = false;
#pragma omp parallel for reduction(|| : down) if (count > DRAW_PART)
    for (int64_t i = 1; i < count; i++)
        down = down || order_compare((hsort_type)trial->kind, trial->order, keys + (i - 1) * key_bytes,
                                     keys + i * key_bytes) > 0;
    return down;
}

/* Settle regions. Returns whether keys are left unsorted: there is little scratch, and the engine may say that it is too little. */
static bool settle(const struct trial *trial, const struct raw_keys *raw, void *workspace)
{
    bool unsorted = true;
    must(ops->partition->settle_regions(engine, raw->map.key_bytes, raw, workspace,
                                        buffer_keys(&settle_scratch), trial->settle_bytes, &unsorted),
         trial->what);
    buffer_guards(&settle_scratch, trial->what);
    return unsorted;
}

/* Check that the regions together are as large as all keys and lie in `to` one behind the other; without gaps if scatter() has put
 * them there. */
static void check_places(const struct trial *trial, const struct values *values, enum engine_scattered done,
                         struct rank *rank)
{
    int64_t end = 0, all = 0;
    int region = 0;
    for (bool fits = true; fits && region < ENGINE_REGIONS; region += fits) {
        const int64_t moved = values->is_one[region] ? 0 : rank->counts[region];
        if (done != SCATTER_MOVED)
            rank->starts[region] = end;
        fits = rank->counts[region] >= 0 && rank->starts[region] >= end;
        end = rank->starts[region] + moved;
        all += rank->counts[region];
    }
    if (done != SCATTER_MOVED)
        rank->starts[ENGINE_REGIONS] = end;
    const bool good = region == ENGINE_REGIONS && all == rank->count && end <= rank->starts[ENGINE_REGIONS] &&
                      rank->starts[ENGINE_REGIONS] <= rank->room;
    CHECK(good, "%s: the regions hold %lld of %lld keys, up to %lld of %lld", trial->what, (long long)all,
          (long long)rank->count, (long long)rank->starts[ENGINE_REGIONS], (long long)rank->room);
    if (!good)
        exit(1); // pieces would lie outside of the buffers
}

static void partition_shard(const struct trial *trial, struct keymap map, const char *keys,
                            const struct engine_map *regions, const struct values *values, struct rank *rank)
{
    const struct raw_keys raw = {.map = map, .from = keys_of(rank)};
    void *to = rank->room > 0 ? buffer_keys(&rank->to) : NULL;
    bool descends;
    enum engine_scattered done = SCATTER_NOTHING;
    memset(rank->counts, POISON, sizeof rank->counts);
    memset(rank->starts, POISON, sizeof rank->starts);
    const bool true_descends =
        find_descents(trial, map.key_bytes, keys + rank->before * map.key_bytes, rank->count);
    if (trial->rooms)
        must(ops->partition->scatter_to_rooms(engine, map.key_bytes, &raw, rank->count, regions,
                                              rank->workspace, to, rank->room, rank->counts, rank->starts,
                                              &done),
             trial->what);
    CHECK(done == SCATTER_NOTHING || true_descends, "%s: keys in order are scattered", trial->what);
    seen.rooms[done] += trial->rooms;
    rank->twice = done == SCATTER_COUNTED;
    if (done == SCATTER_NOTHING) {
        must(ops->partition->count(engine, map.key_bytes, &raw, rank->count, regions, rank->workspace,
                                   rank->counts, &descends),
             trial->what);
        CHECK(descends == true_descends, "%s: steps down: %d, should be %d", trial->what, descends,
              true_descends);
    }
    if (done != SCATTER_MOVED)
        must(ops->partition->scatter(engine, map.key_bytes, &raw, rank->count, regions, rank->workspace, to),
             trial->what);
    if (!trial->late) {
        const bool unsorted = settle(trial, &raw, rank->workspace);
        CHECK(!unsorted, "%s: keys are left unsorted before any were sorted", trial->what);
    }
    check_places(trial, values, done, rank);
}

/* Note a key of a region. */
static void hold(int region, key_code code, key_code *low, key_code *high, int64_t *held)
{
    low[region] = held[region] == 0 || code < low[region] ? code : low[region];
    high[region] = held[region] == 0 || code > high[region] ? code : high[region];
    held[region]++;
}

/* Check that every code of a shard is there again, where a region of one value stands for as many codes as were counted, and that
 * nothing is written behind the keys of a region. Add the keys of the shard's regions to low, high and held. */
static void check_shard(const struct trial *trial, struct keymap map, const char *shard,
                        const struct values *values, struct rank *rank, key_code *low, key_code *high,
                        int64_t *held)
{
    const char *to = buffer_result(&rank->to, trial->what), *from = buffer_result(&rank->keys, trial->what);
    uint64_t expected[2] = {0, 0}, found[2] = {0, 0};
    CHECK(first_difference(from, shard, map.key_bytes, rank->count) < 0, "%s: the keys have changed",
          trial->what);
#pragma omp parallel for reduction(+ : expected[:2]) if (rank->count > DRAW_PART)
    for (int64_t i = 0; i < rank->count; i++)
        key_fingerprint_add(map.key_bytes, keymap_encode(map, key_load(map.key_bytes, shard, i)), expected);
#pragma omp parallel for schedule(dynamic) reduction(+ : found[:2]) if (rank->count > DRAW_PART)
    for (int region = 0; region < ENGINE_REGIONS; region++)
        for (int64_t i = 0; i < rank->counts[region]; i++) {
            const key_code code = values->is_one[region]
                                      ? values->code[region]
                                      : key_load(map.key_bytes, to, rank->starts[region] + i);
            key_fingerprint_add(map.key_bytes, code, found);
            hold(region, code, low, high, held);
        }
    CHECK(memcmp(expected, found, sizeof found) == 0, "%s: scatter() loses keys", trial->what);
    for (int region = 0; region <= ENGINE_REGIONS && !rank->twice; region++) {
        const bool last = region == ENGINE_REGIONS;
        const int64_t moved = last || values->is_one[region] ? 0 : rank->counts[region],
                      from_key = rank->starts[region] + moved;
        const size_t left =
            (size_t)(((last ? rank->room : rank->starts[region + 1]) - from_key) * map.key_bytes);
        CHECK(memcmp(to + from_key * map.key_bytes, poison_of(left), left) == 0,
              "%s: a key is behind those of region %d, of one value: %d", trial->what, region,
              !last && values->is_one[region]);
    }
}

#endif
