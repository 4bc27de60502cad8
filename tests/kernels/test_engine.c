/* Everything in an engine except its sort and merge, against loops that do one key at a time: `test_engine host
 * [THREADS]` or `cuda`. Only the functions of kernels/engine.h are used, so both engines pass the same tests. */
#include <sys/resource.h>
#include <unistd.h>
#include "kernels/base/size_text.h"
#include "tests/kernels/engine_test.h"

/* ---- memory ---- */

static bool is_cuda(void)
{
    return ops->kind == HSORT_ENGINE_CUDA;
}

/* Ask for memory that cannot be had, and check the status, a text with the bytes asked for, no pointer, and no harm done. */
static void check_refused(hsort_status (*alloc)(struct engine *, size_t, void **), hsort_status expected,
                          size_t bytes)
{
    char number[SIZE_TEXT_BYTES];
    void *memory = number;
    size_text(bytes, number);
    status_clear();
    const hsort_status status = alloc(engine, bytes, &memory);
    CHECK(status == expected, "%zu bytes: %s", bytes, hsort_strerror(status));
    CHECK(strstr(status_text(), number), "the text names no %s: \"%s\"", number, status_text());
    CHECK(!memory, "a pointer to memory that could not be had");
    status_clear();
}

static hsort_status refusal(void)
{
    return is_cuda() ? HSORT_DEVICE_MEMORY : HSORT_HOST_MEMORY;
}

/* If the machine has memory, but this process may take no more of it, the text must say so. */
static void test_address_limit(void)
{
#ifdef __SANITIZE_ADDRESS__ // it ends the process if the system refuses memory
    printf("not tested: a limit of memory, under AddressSanitizer\n");
#else
    struct rlimit was, small;
    const size_t bytes = (size_t)64 << 20;
    unsigned long pages = 0;
    FILE *taken = fopen("/proc/self/statm", "r");
    CHECK(taken && fscanf(taken, "%lu", &pages) == 1 && fclose(taken) == 0, "/proc/self/statm");
    CHECK(getrlimit(RLIMIT_AS, &was) == 0, "getrlimit");
    small = was;
    small.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes / 8;
    CHECK(setrlimit(RLIMIT_AS, &small) == 0, "setrlimit");
    void *memory = &was;
    const hsort_status status = ops->alloc(engine, bytes, &memory);
    CHECK(setrlimit(RLIMIT_AS, &was) == 0, "setrlimit");
    CHECK(status == HSORT_HOST_MEMORY && !memory, "beyond the limit: %s", hsort_strerror(status));
    CHECK(strstr(status_text(), "ulimit -v"), "the text names no limit: \"%s\"", status_text());
    status_clear();
    CHECK(ops->alloc(engine, (size_t)1 << 50, &memory) == HSORT_HOST_MEMORY, "more than there is");
    CHECK(!strstr(status_text(), "ulimit"), "the text names a limit: \"%s\"", status_text());
    status_clear();
#endif
}

static void test_memory(void)
{
    const size_t sizes[] = {1, 255, 256, 257, 4096, (5 << 20) + 1}, absurd = (size_t)1 << 50;
    size_t available = 0;
    void *memory = &available;
    must(ops->alloc(engine, 0, &memory), "alloc of nothing");
    CHECK(!memory, "0 bytes are not NULL");
    for (int i = 0; i < (int)(sizeof sizes / sizeof sizes[0]); i++) {
        must(ops->alloc(engine, sizes[i], &memory), "alloc");
        CHECK(memory && (uintptr_t)memory % 256 == 0, "%zu bytes at %p", sizes[i], memory);
        ops->free(engine, memory);
        must(ops->alloc_host(engine, sizes[i], &memory), "alloc_host");
        memset(memory, POISON, sizes[i]);
        ops->free_host(engine, memory);
    }
    ops->free(engine, NULL);
    ops->free_host(engine, NULL);
    must(ops->memory_free(engine, &available), "memory_free");
    CHECK(available > (size_t)16 << 20 && available < absurd, "%zu bytes are free", available);
    check_refused(ops->alloc, refusal(), absurd);
    check_refused(ops->alloc, refusal(), SIZE_MAX);
    check_refused(ops->alloc_host, HSORT_HOST_MEMORY, absurd);
}

/* An export is of whole pages, because peers read these faster. A place inside is exported with the same allocation. The host engine
 * exports no memory. */
static void test_exported_pages(void)
{
    const size_t sizes[] = {ENGINE_PEER_BYTES, ENGINE_PEER_BYTES + 1, 3 * ENGINE_PEER_BYTES - 1};
    for (int i = 0; ops->peer && i < 3; i++) {
        struct engine_peer_handle handle;
        void *memory;
        must(ops->alloc(engine, sizes[i], &memory), "alloc");
        must(ops->peer->export_memory(engine, (char *)memory + 256, &handle), "export");
        CHECK(handle.bytes >= sizes[i] && handle.bytes % ENGINE_PEER_BYTES == 0 && handle.offset == 256 &&
                  handle.lasting,
              "%zu bytes: %llu at %llu, lasting %d", sizes[i], (unsigned long long)handle.bytes,
              (unsigned long long)handle.offset, handle.lasting);
        ops->free(engine, memory);
    }
}

static void check_space(const void *pointer, enum engine_space expected, const char *what)
{
    enum engine_space space;
    must(ops->space_of(engine, pointer, &space), "space_of");
    CHECK(space == expected, "%s is in space %d", what, space);
}

/* elsewhere: the space of memory that the engine has not handed out. */
static void test_space(enum engine_space elsewhere)
{
    void *memory;
    must(ops->alloc(engine, 1 << 20, &memory), "alloc");
    check_space(memory, SPACE_ENGINE, "engine memory");
    check_space((char *)memory + 4097, SPACE_ENGINE, "the inside of engine memory");
    check_space(NULL, SPACE_ENGINE, "NULL");
    check_space(&memory, elsewhere, "the stack");
    ops->free(engine, memory);
}

/* A limit counts memory that is in use: a second allocation may not pass the limit, but may do so once the first is given back. With a
 * limit, memory of the host engine is apart from all other memory. */
static void test_limit(void)
{
    const size_t mib = 1 << 20;
    struct engine *limited, *unlimited = engine;
    void *first, *second;
    size_t available;
    must(is_cuda() ? engine_open_cuda(0, 64 * mib, &limited) : engine_open_host(2, 64 * mib, &limited),
         "a limit");
    engine = limited;
    ops = limited->ops;
    must(ops->alloc(engine, 40 * mib, &first), "alloc within the limit");
    check_refused(ops->alloc, HSORT_DEVICE_MEMORY, 40 * mib);
    must(ops->memory_free(engine, &available), "memory_free");
    CHECK(available == 24 * mib, "%zu bytes of 64 MiB are free beside 40 MiB", available);
    must(ops->alloc(engine, 24 * mib, &second), "all that the limit leaves");
    ops->free(engine, first);
    test_space(is_cuda() ? SPACE_HOST : SPACE_PINNED);
    must(ops->alloc(engine, 40 * mib, &first), "alloc after a free");
    ops->free(engine, first);
    ops->free(engine, second);
    ops->close(limited);
    engine = unlimited;
    ops = unlimited->ops;
}

/* ---- streams ---- */

/* Wait for a mark by polling it, as the exchange does. */
static void poll(struct engine_event *mark)
{
    bool done = false;
    const time_t start = time(NULL);
    while (!done && time(NULL) < start + 20)
        must(ops->event_done(engine, mark, &done), "event_done");
    CHECK(done, "a mark is not done after 20 seconds");
}

/* Copy bytes from the host to the engine, across it and back, each copy on its own stream behind the mark of the copy
 * before. */
static void check_copy(size_t bytes, bool by_alloc_host, uint64_t *random)
{
    char *keys = keys_new(UNIFORM, 8, (int64_t)(bytes / 8 + 1), random), *out, *memory;
    struct buffer first = buffer_new(NULL, bytes, bytes % 7), second = buffer_new(NULL, bytes, bytes % 5);
    struct engine_event *in_mark, *work_mark, *out_mark;
    void *host = alloc_or_exit(2 * bytes + 1), *pinned = NULL;
    if (by_alloc_host)
        must(ops->alloc_host(engine, 2 * bytes, &pinned), "alloc_host");
    memory = by_alloc_host ? pinned : host;
    out = memory ? memory + bytes : NULL;
    if (bytes > 0)
        memcpy(memory, keys, bytes);
    must(ops->event_create(engine, &in_mark), "event_create");
    must(ops->event_create(engine, &work_mark), "event_create");
    must(ops->event_create(engine, &out_mark), "event_create");
    must(ops->copy(engine, STREAM_IN, buffer_keys(&first), memory, bytes), "copy in");
    must(ops->event_record(engine, in_mark, STREAM_IN), "event_record");
    must(ops->stream_wait_event(engine, STREAM_WORK, in_mark), "stream_wait_event");
    must(ops->copy(engine, STREAM_WORK, buffer_keys(&second), buffer_keys(&first), bytes), "copy across");
    must(ops->event_record(engine, work_mark, STREAM_WORK), "event_record");
    must(ops->stream_wait_event(engine, STREAM_OUT, work_mark), "stream_wait_event");
    must(ops->copy(engine, STREAM_OUT, out, buffer_keys(&second), bytes), "copy out");
    must(ops->event_record(engine, out_mark, STREAM_OUT), "event_record");
    poll(out_mark);
    CHECK(bytes == 0 || memcmp(out, keys, bytes) == 0, "%zu bytes come back changed", bytes);
    poll(in_mark);
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        must(ops->stream_synchronize(engine, (enum engine_stream)stream), "wait");
    buffer_result(&first, "copy in");
    buffer_result(&second, "copy across");
    ops->event_destroy(engine, in_mark);
    ops->event_destroy(engine, work_mark);
    ops->event_destroy(engine, out_mark);
    ops->free_host(engine, pinned);
    free(host);
    buffer_free(&first);
    buffer_free(&second);
    free(keys);
}

static void test_lanes(uint64_t random)
{
    static const size_t sizes[] = {0, 1, 7, 256, 4097, (1 << 20) - 1, 1 << 20, (3 << 20) + 5, 50000003};
    for (int i = 0; i < (int)(sizeof sizes / sizeof sizes[0]); i++)
        for (int by_alloc_host = 0; by_alloc_host < 2; by_alloc_host++)
            check_copy(sizes[i], by_alloc_host, &random);
    ops->event_destroy(engine, NULL);
    must(ops->stream_wait_caller(engine, NULL), "follow"); // the default stream
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
}

/* ---- gather, encode, decode ---- */

static void test_gather(uint64_t random)
{
    enum { COUNT = 100003 };
    for (int key_bytes = 1; key_bytes <= 16; key_bytes *= 2) {
        char *keys = keys_new(UNIFORM, key_bytes, COUNT, &random);
        struct buffer in = buffer_new(keys, (size_t)COUNT * (size_t)key_bytes, (size_t)key_bytes);
        int64_t positions[ENGINE_GATHER_MAX];
        key_code codes[ENGINE_GATHER_MAX + 1], poison;
        memset(&poison, POISON, sizeof poison);
        for (int i = 0; i < ENGINE_GATHER_MAX; i++)
            positions[i] = (int64_t)(check_random(&random) % COUNT);
        positions[0] = positions[5] = 0;
        positions[1] = positions[ENGINE_GATHER_MAX - 1] = COUNT - 1;
        for (int count = 0; count <= ENGINE_GATHER_MAX; count += count < 3 ? 1 : ENGINE_GATHER_MAX - 3) {
            memset(codes, POISON, sizeof codes);
            must(ops->gather(engine, key_bytes, buffer_keys(&in), positions, count, codes), "gather");
            for (int i = 0; i < count; i++) {
                key_code expected = 0;
                memcpy(&expected, keys + positions[i] * key_bytes, (size_t)key_bytes);
                CHECK(codes[i] == expected, "gather of u%d, %d positions: code %d", 8 * key_bytes, count, i);
            }
            CHECK(codes[count] == poison, "gather wrote more than %d codes", count);
        }
        buffer_free(&in);
        free(keys);
    }
}

static key_code code_of(struct keymap map, const void *keys, int64_t i)
{
    return keymap_encode(map, key_load(map.key_bytes, keys, i));
}

static void check_encode(struct keymap map, int64_t count, bool in_place, uint64_t *random)
{
    char what[96];
    snprintf(what, sizeof what, "%s, %lld keys of %d bytes%s%s", ops->name, (long long)count, map.key_bytes,
             map.descending ? ", descending" : "", in_place ? ", in place" : "");
    const size_t bytes = (size_t)count * (size_t)map.key_bytes,
                 shift = (size_t)map.key_bytes * (size_t)(count % 5);
    char *keys = keys_new(UNIFORM, map.key_bytes, count, random), *expected = alloc_or_exit(bytes + 1);
    for (int64_t i = 0; i < count; i++) {
        const key_code code = code_of(map, keys, i);
        memcpy(expected + i * map.key_bytes, &code, (size_t)map.key_bytes);
    }
    struct buffer from = buffer_new(keys, bytes, shift), other = buffer_new(NULL, bytes, 0);
    struct buffer *to = in_place ? &from : &other;
    must(ops->encode(engine, map, buffer_keys(to), buffer_keys(&from), count), what);
    int64_t wrong = first_difference(buffer_result(to, what), expected, map.key_bytes, count);
    CHECK(wrong < 0, "%s: code %lld is wrong", what, (long long)wrong);
    wrong = first_difference(buffer_result(&from, what), in_place ? expected : keys, map.key_bytes, count);
    CHECK(wrong < 0, "%s: encoding changed key %lld of its input", what, (long long)wrong);
    must(ops->decode(engine, map, buffer_keys(&from), buffer_keys(to), count), what);
    wrong = first_difference(buffer_result(&from, what), keys, map.key_bytes, count);
    CHECK(wrong < 0, "%s: key %lld does not come back", what, (long long)wrong);
    buffer_free(&from);
    buffer_free(&other);
    free(keys);
    free(expected);
}

static void test_encode(uint64_t random)
{
    static const int64_t counts[] = {0, 1, 2, 31, 255, 256, 257, 4097, 300007};
    for (int kind = 0; kind < KEY_KINDS; kind++)
        for (int order = HSORT_ASCENDING; order <= HSORT_DESCENDING; order++)
            for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++)
                for (int in_place = 0; in_place < 2; in_place++)
                    check_encode(keymap_make((hsort_type)kind, (hsort_order)order), counts[i], in_place, &random);
}

/* ---- inspect ---- */

static struct engine_inspection inspect(struct keymap map, const struct buffer *keys, int64_t count)
{
    struct engine_inspection result;
    memset(&result, POISON, sizeof result);
    must(ops->inspect(engine, map, buffer_keys(keys), count, &result), "inspect");
    return result;
}

/* The oracle: one key at a time. */
static struct engine_inspection inspect_slowly(struct keymap map, const void *keys, int64_t count)
{
    struct engine_inspection result = {.first_descent = count};
    for (int64_t i = 0; i < count; i++) {
        key_fingerprint_add(map.key_bytes, key_load(map.key_bytes, keys, i), result.fingerprint);
        if (i > 0 && i < result.first_descent && code_of(map, keys, i) < code_of(map, keys, i - 1))
            result.first_descent = i;
    }
    if (count > 0) {
        result.first = code_of(map, keys, 0);
        result.last = code_of(map, keys, count - 1);
    }
    return result;
}

static bool same_fingerprint(const struct engine_inspection *a, const struct engine_inspection *b)
{
    return a->fingerprint[0] == b->fingerprint[0] && a->fingerprint[1] == b->fingerprint[1];
}

/* Exchange keys `at - 1` and `at` in engine memory. In ascending keys without repeats this plants one
 * descent, at `at`. */
static void swap_neighbours(const struct buffer *keys, int key_bytes, int64_t at)
{
    char pair[2 * sizeof(uint128)], turned[2 * sizeof(uint128)],
        *place = (char *)buffer_keys(keys) + (at - 1) * key_bytes;
    copy_now(pair, place, (size_t)key_bytes * 2);
    memcpy(turned, pair + key_bytes, (size_t)key_bytes);
    memcpy(turned + key_bytes, pair, (size_t)key_bytes);
    copy_now(place, turned, (size_t)key_bytes * 2);
}

/* Plant descents around every power of two, where tiles end, and at the borders between 2 to 8 threads. */
static void check_descents(struct keymap map, struct buffer *keys, int64_t count, const char *what)
{
    const struct engine_inspection sorted = inspect(map, keys, count);
    CHECK(sorted.first_descent == count, "%s: first descent at %lld in sorted keys", what,
          (long long)sorted.first_descent);
    int64_t places[256];
    int places_count = 0;
    for (int64_t power = 1; power < count; power *= 2)
        for (int64_t at = power - 1; at <= power + 1; at++)
            places[places_count++] = at;
    for (int64_t parts = 2; parts <= 8; parts++)
        for (int64_t part = 1; part <= parts; part++)
            for (int64_t at = count * part / parts - 1; at <= count * part / parts + 1; at++)
                places[places_count++] = at;
    for (int i = 0; i < places_count; i++) {
        if (places[i] < 1 || places[i] >= count)
            continue;
        swap_neighbours(keys, map.key_bytes, places[i]);
        struct engine_inspection found = inspect(map, keys, count);
        CHECK(found.first_descent == places[i], "%s: descent at %lld found at %lld", what,
              (long long)places[i], (long long)found.first_descent);
        CHECK(same_fingerprint(&found, &sorted), "%s: the fingerprint depends on the order", what);
        if (places[i] + 2 < count) {
            swap_neighbours(keys, map.key_bytes, count - 1);
            found = inspect(map, keys, count);
            CHECK(found.first_descent == places[i],
                  "%s: of descents at %lld and %lld the one at %lld is found first", what,
                  (long long)places[i], (long long)(count - 1), (long long)found.first_descent);
            swap_neighbours(keys, map.key_bytes, count - 1);
        }
        swap_neighbours(keys, map.key_bytes, places[i]);
    }
}

/* Overwrite a key by its neighbour: one key is lost and one is doubled, and the fingerprint must change. */
static void check_fingerprint(struct keymap map, struct buffer *keys, int64_t count, const char *what)
{
    const struct engine_inspection before = inspect(map, keys, count);
    const int64_t places[] = {1, count / 2, count - 1};
    for (int i = 0; i < 3; i++) {
        char pair[2 * sizeof(uint128)], *place = (char *)buffer_keys(keys) + (places[i] - 1) * map.key_bytes;
        copy_now(pair, place, (size_t)map.key_bytes * 2);
        copy_now(place + map.key_bytes, pair, (size_t)map.key_bytes);
        const struct engine_inspection after = inspect(map, keys, count);
        CHECK(after.fingerprint[0] != before.fingerprint[0] && after.fingerprint[1] != before.fingerprint[1],
              "%s: key %lld was lost and another doubled, but a fingerprint stays", what,
              (long long)places[i]);
        copy_now(place, pair, (size_t)map.key_bytes * 2);
    }
}

static void test_inspect(uint64_t random)
{
    static const int64_t counts[] = {0, 1, 2, 3, 33, 256, 1023, 4096, 4097, 20000, 131073};
    for (int kind = 0; kind < ORDER_TYPES; kind++) {
        for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++) {
            const struct keymap map = keymap_make((hsort_type)kind, (hsort_order)(i % 2));
            const int64_t count = counts[i];
            char what[96];
            snprintf(what, sizeof what, "%s, inspect %lld keys, %s", ops->name, (long long)count,
                     hsort_type_name((hsort_type)kind));
            char *keys = keys_new(UNIFORM, map.key_bytes, count, &random);
            struct buffer buffer =
                buffer_new(keys, (size_t)count * (size_t)map.key_bytes, (size_t)map.key_bytes);
            const struct engine_inspection found = inspect(map, &buffer, count);
            const struct engine_inspection expected = inspect_slowly(map, keys, count);
            CHECK(found.first_descent == expected.first_descent && same_fingerprint(&found, &expected), "%s",
                  what);
            CHECK(count == 0 || (found.first == expected.first && found.last == expected.last), "%s: ends",
                  what);
            buffer_free(&buffer);
            // Codes are one apart, so that keys ascend without a repeat; of 16 bytes, some have another upper half.
            const key_code first = map.key_bytes < 4    ? 0
                                   : map.key_bytes == 4 ? 0x7f7f0000u
                                   : map.key_bytes == 8 ? UINT64_C(0x7fef000000000000)
                                                        : ((key_code)5 << 64) - (key_code)(count / 2);
            if (count - 1 > (int64_t)(key_max(map.key_bytes) >> 64 ? INT64_MAX : key_max(map.key_bytes) >> 1)) {
                free(keys); // the type has not so many
                continue;
            }
            for (int64_t k = 0; k < count; k++) {
                const key_code key = keymap_decode(map, first + (key_code)k);
                memcpy(keys + k * map.key_bytes, &key, (size_t)map.key_bytes);
            }
            buffer = buffer_new(keys, (size_t)count * (size_t)map.key_bytes, (size_t)map.key_bytes);
            check_descents(map, &buffer, count, what);
            if (count >= 2)
                check_fingerprint(map, &buffer, count, what);
            buffer_free(&buffer);
            free(keys);
        }
    }
}

/* ---- faults ---- */

#ifdef HSORT_FAULTS
enum { FAULT_KEYS = 96 }; // with a guard after them the workspace is aligned

/* Call function number `which` of those that have a fault site. */
static hsort_status call(int which, void *keys, void *other)
{
    const struct keymap map = keymap_make(HSORT_F64, HSORT_DESCENDING);
    struct engine_inspection inspection;
    const int64_t position = 3;
    int64_t from_keys;
    key_code code;
    void *sorted;
    switch (which) {
    case 0:
        return ops->encode(engine, map, keys, keys, FAULT_KEYS);
    case 1:
        return ops->decode(engine, map, keys, keys, FAULT_KEYS);
    case 2:
        return ops->sort(engine, -1, 8, keys, other, FAULT_KEYS, FAULT_KEYS,
                         (char *)other + FAULT_KEYS * 8 + GUARD, NULL, &sorted);
    case 3:
        return ops->merge(engine, 8, keys, FAULT_KEYS / 2, (char *)keys + FAULT_KEYS * 4, FAULT_KEYS / 2,
                          other);
    case 4:
        return ops->gather(engine, 8, keys, &position, 1, &code);
    case 5:
        return ops->inspect(engine, map, keys, FAULT_KEYS, &inspection);
    case 6:
        return ops->cut(engine, 8, keys, FAULT_KEYS, other, FAULT_KEYS, FAULT_KEYS, &from_keys);
    case 7:
        return ops->swap(engine, 8, keys, other, FAULT_KEYS);
    case 8:
        return ops->count_keys(engine, 1, keys, FAULT_KEYS, other);
    case 9:
        return ops->write_counted(engine, 1, &(struct engine_counted){.keys = keys, .ends = keys}, 0, 0, other);
    default:
        return ops->copy(engine, STREAM_WORK, other, keys, FAULT_KEYS * 8);
    }
}

/* An armed site fails the next call, with a text, and only that one. */
static void test_faults(void)
{
    size_t workspace;
    must(ops->sort_workspace(engine, -1, 8, FAULT_KEYS, FAULT_KEYS, &workspace), "sort_workspace");
    struct buffer keys = buffer_new(NULL, FAULT_KEYS * 8, 0),
                  other = buffer_new(NULL, FAULT_KEYS * 8 + 256 * sizeof(int64_t) + GUARD + workspace, 0);
    for (int which = 0; which <= 10; which++) {
        fault_set(which < 10 ? FAULT_KERNEL : FAULT_COPY, 1);
        hsort_status status = call(which, buffer_keys(&keys), buffer_keys(&other));
        CHECK(status != HSORT_OK && status_text()[0] != '\0', "call %d passes a fault, text \"%s\"", which,
              status_text());
        fault_set(FAULT_KERNEL, 0);
        fault_set(FAULT_COPY, 0);
        status_clear();
        must(call(which, buffer_keys(&keys), buffer_keys(&other)), "a call after a fault");
        must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
    }
    fault_set(FAULT_ALLOC, 1);
    check_refused(ops->alloc, refusal(), 4242);
    fault_set(FAULT_ALLOC, 1);
    check_refused(ops->alloc_host, HSORT_HOST_MEMORY, 4242);
    buffer_free(&keys);
    buffer_free(&other);
}
#endif

/* ---- keys of a width that there are no kernels for ---- */

enum { STRANGE_BYTES = 32, STRANGE_COUNT = 64 };

/* Call the nth function among all that take keys; HSORT_OK behind the last. */
static hsort_status call_strangely(int nth, void *keys, void *other, const char **name)
{
    static struct engine_map regions;
    static int64_t counts[ENGINE_REGIONS];
    struct keymap map = keymap_make(HSORT_I64, HSORT_ASCENDING);
    map.key_bytes = STRANGE_BYTES;
    const struct raw_keys raw = {.map = map, .from = keys};
    const struct engine_piece piece = {.keys = keys, .count = STRANGE_COUNT};
    const int64_t positions[] = {0}, run_offset[] = {0, STRANGE_COUNT / 2, STRANGE_COUNT};
    struct engine_inspection found;
    uint64_t words[1 << ENGINE_SAMPLE_LOG_MIN] = {0};
    key_code code = 0;
    int64_t number, other_number;
    size_t bytes;
    bool flag;
    void *result;
    int i = 0;
#define CALL(group, function, ...)                       \
    if (i++ == nth) {                                    \
        *name = #function;                               \
        return ops->group function(engine, __VA_ARGS__); \
    }
    CALL(, encode, map, other, keys, STRANGE_COUNT)
    CALL(, decode, map, other, keys, STRANGE_COUNT)
    CALL(, sort_workspace, -1, STRANGE_BYTES, STRANGE_COUNT, STRANGE_COUNT, &bytes)
    CALL(, sort, -1, STRANGE_BYTES, keys, other, STRANGE_COUNT, STRANGE_COUNT, NULL, NULL, &result)
    CALL(, merge, STRANGE_BYTES, keys, STRANGE_COUNT / 2, keys, STRANGE_COUNT / 2, other)
    CALL(, merge_runs, STRANGE_BYTES, keys, run_offset, 2, other, &result)
    CALL(, cut, STRANGE_BYTES, keys, STRANGE_COUNT, other, STRANGE_COUNT, 1, &number)
    CALL(, swap, STRANGE_BYTES, keys, other, STRANGE_COUNT)
    CALL(, gather, STRANGE_BYTES, keys, positions, 1, &code)
    CALL(, search, STRANGE_BYTES, keys, STRANGE_COUNT, &code, 1, &number, &other_number)
    CALL(, inspect, map, keys, STRANGE_COUNT, &found)
    CALL(, count_keys, STRANGE_BYTES, keys, STRANGE_COUNT, other)
    CALL(, write_counted, STRANGE_BYTES, &(struct engine_counted){.keys = keys, .ends = keys}, 0, STRANGE_COUNT, other)
    CALL(partition->, sample, STRANGE_BYTES, &raw,
         &(struct sample_share){0, STRANGE_COUNT, STRANGE_COUNT, ENGINE_SAMPLE_LOG_MIN, 0, 1}, other, words)
    CALL(partition->, make_map, STRANGE_BYTES, words, ENGINE_SAMPLE_LOG_MIN, STRANGE_COUNT, false, other,
         other, &regions)
    CALL(partition->, count, STRANGE_BYTES, &raw, STRANGE_COUNT, &regions, other, counts, &flag)
    CALL(partition->, scatter, STRANGE_BYTES, &raw, STRANGE_COUNT, &regions, other, other)
    CALL(partition->, sort_regions, STRANGE_BYTES, &regions, &piece, 1, &raw, other, other, other)
#undef CALL
    *name = NULL;
    return HSORT_OK;
}

/* Keys of such a width are refused, and the kernels of another width read and write nothing. */
static void test_strange_width(void)
{
    struct buffer keys = buffer_new(NULL, STRANGE_BYTES * STRANGE_COUNT, 0),
                  other = buffer_new(NULL, STRANGE_BYTES * STRANGE_COUNT, 0);
    for (int nth = 0;; nth++) {
        const char *name;
        status_clear();
        const hsort_status status = call_strangely(nth, buffer_keys(&keys), buffer_keys(&other), &name);
        if (!name)
            break;
        CHECK(status == HSORT_INTERNAL, "%s: %s", name, hsort_strerror(status));
        CHECK(strstr(status_text(), "keys of 32 bytes"), "%s: \"%s\"", name, status_text());
    }
    status_clear();
    buffer_result(&keys, "strange width");
    buffer_result(&other, "strange width");
    buffer_free(&keys);
    buffer_free(&other);
}

int main(int argc, char **argv)
{
    const uint64_t seed = check_seed();
    open_engine(argc, argv);
    printf("test_engine %s: seed %llu\n", ops->name, (unsigned long long)seed);
    test_memory();
    if (!is_cuda())
        test_address_limit();
    test_exported_pages();
    test_space(is_cuda() ? SPACE_HOST : SPACE_ENGINE);
    test_limit();
    test_lanes(seed);
    test_gather(seed);
    test_encode(seed);
    test_inspect(seed);
    test_strange_width();
#ifdef HSORT_FAULTS
    test_faults();
#endif
    close_engine();
    return check_failures > 0;
}
