/* What an engine does with elements that something travels with: their codes, moving them to their places, runs of equal
 * keys, inspecting elements, and sorts of numbered keys (numbered_trial.h). `test_elements host [THREADS]` or `cuda`. The oracles
 * do one element at a time. Outputs start as poison, between guards, so that a byte that is written by mistake, or not at all, is seen. */
#include "kernels/base/element_digest.h"
#include "kernels/base/key_field.h"
#include "tests/kernels/engine_test.h"
#include "tests/kernels/numbered_trial.h"

enum { FIELDS_MAX = 5, MANY = 70001, LARGE_BYTES = 4096, LARGE_MANY = 2003, LARGEST_BYTES = 131080,
       LARGEST_MANY = 33, RUNS_MANY = 5000001 };

/* Few, odd, and more than one thread or block takes. */
static const int64_t counts[] = {0, 1, 2, 3, 33, 257, 1001, 16383, 16385, MANY};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static void *random_bytes(size_t bytes, uint64_t *random)
{
    unsigned char *made = alloc_or_exit(bytes + sizeof(uint64_t));
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t word = check_random(random);
        memcpy(made + i, &word, sizeof word);
    }
    return made;
}

/* ---- codes of fields --------------------------------------------------------------------------------------------- */

static struct keymap draw_map(int bytes, uint64_t *random)
{
    static const int mantissas[] = {0, 3, 10, 0, 23, 0, 0, 0, 52};
    const hsort_order order = check_random(random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
    const enum key_kind kind = (enum key_kind)(check_random(random) % 3);
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
        return (struct keymap){.descending = order == HSORT_DESCENDING};
    return keymap_of_kind(kind, bytes, mantissas[bytes], order);
}

/* Draw fields that fit above the position, of elements of `stride` bytes at `from`. Returns how many. */
static int draw_fields(int code_bytes, int position_bits, const char *from, size_t stride,
                       struct key_field *fields, uint64_t *random)
{
    int top = 8 * code_bytes, made = 0;
    while (made < FIELDS_MAX && top - 8 >= position_bits && check_random(random) % 6) {
        const int room = (top - position_bits) / 8, most = room < (int)stride ? room : (int)stride;
        const int bytes = 1 + (int)below(most < 16 ? most : 16, random);
        top -= 8 * bytes;
        fields[made++] = (struct key_field){.from = from + below((int64_t)stride - bytes + 1, random),
                                            .stride = stride,
                                            .bytes = bytes,
                                            .big_endian = check_random(random) % 2,
                                            .map = draw_map(bytes, random),
                                            .shift = top};
    }
    return made;
}

static void check_make(int code_bytes, int64_t count, uint64_t *random)
{
    char what[128];
    struct key_field fields[FIELDS_MAX], on_host[FIELDS_MAX];
    const size_t stride = below(4, random) ? 1 + (size_t)below(40, random) : 8; // some are one field
    const int64_t first = below(4, random) ? below(INT64_C(1) << 20, random) : 0;
    const int position_bits = check_random(random) % 4 ? 21 + (int)below(20, random) : 0;
    void *elements = random_bytes((size_t)count * stride, random);
    struct buffer in = buffer_new(elements, (size_t)count * stride, (size_t)below(16, random));
    struct buffer out = buffer_new(NULL, (size_t)(count * code_bytes), (size_t)code_bytes * (size_t)below(8, random));
    const int made = draw_fields(code_bytes, position_bits, buffer_keys(&in), stride, fields, random);
    snprintf(what, sizeof what, "%s, %lld codes of %d bytes, %d fields, %d bits of position", ops->name,
             (long long)count, code_bytes, made, position_bits);
    for (int f = 0; f < made; f++) {
        on_host[f] = fields[f];
        on_host[f].from = (char *)elements + ((const char *)fields[f].from - (const char *)buffer_keys(&in));
    }
    must(ops->make_codes(engine, code_bytes, buffer_keys(&out), count, fields, made, position_bits, first),
         what);
    memset(fields, POISON, sizeof fields); // they are read in the call
    const void *codes = buffer_result(&out, what);
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        key_code expected = position_bits > 0 ? (key_code)(first + i) : 0;
        for (int f = 0; f < made; f++)
            expected += field_code(&on_host[f], i); // they do not overlap
        wrong += key_load(code_bytes, codes, i) != (code_bytes == 8 ? (uint64_t)expected : expected);
    }
    CHECK(wrong == 0, "%s: %lld are wrong", what, (long long)wrong);
    CHECK(first_difference(buffer_result(&in, what), elements, 1, (int64_t)(count * (int64_t)stride)) < 0,
          "%s: an element has changed", what);
    buffer_free(&in);
    buffer_free(&out);
    free(elements);
}

/* Split codes that hold a key's code above a position; each output is asked for with and without the other one. */
static void check_split(int code_bytes, int key_bytes, int64_t count, uint64_t *random)
{
    char what[128];
    const struct keymap map = draw_map(key_bytes, random);
    const int room = 8 * (code_bytes - key_bytes), most = room < 62 ? room : 62;
    const int position_bits = most > 0 ? (int)below(most + 1, random) : 0;
    const uint64_t mask = position_bits > 0 ? UINT64_MAX >> (64 - position_bits) : 0;
    const int which = 1 + (int)below(3, random); // bit 0: positions, bit 1: keys
    const size_t code_space = (size_t)(count * code_bytes), key_space = (size_t)(count * key_bytes);
    int64_t *positions = alloc_or_exit((size_t)count * sizeof *positions + 1);
    unsigned char *keys = random_bytes(key_space, random), *codes = alloc_or_exit(code_space + 16);
    snprintf(what, sizeof what,
             "%s, %lld codes of %d bytes apart: keys of %d, %d bits of position, outputs %d", ops->name,
             (long long)count, code_bytes, key_bytes, position_bits, which);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, keys + i * key_bytes, (size_t)key_bytes); // little-endian
        positions[i] = (int64_t)(check_random(random) & mask);
        store(code_bytes, codes, i,
              (key_code)keymap_encode_narrow(map, bits) << position_bits | (key_code)positions[i]);
    }
    struct buffer in = buffer_new(codes, code_space, (size_t)code_bytes);
    struct buffer at = buffer_new(NULL, (size_t)count * sizeof *positions, 8 * (size_t)below(4, random));
    struct buffer out = buffer_new(NULL, key_space, (size_t)key_bytes * (size_t)below(8, random));
    must(ops->split_codes(engine, code_bytes, buffer_keys(&in), count, position_bits,
                          which & 1 ? buffer_keys(&at) : NULL, map, which & 2 ? buffer_keys(&out) : NULL),
         what);
    CHECK(!(which & 1) || first_difference(buffer_result(&at, what), positions, 8, count) < 0,
          "%s: a position", what);
    CHECK(!(which & 2) || first_difference(buffer_result(&out, what), keys, key_bytes, count) < 0,
          "%s: a key", what);
    CHECK(first_difference(buffer_result(&in, what), codes, code_bytes, count) < 0, "%s: a code has changed",
          what);
    buffer_free(&in);
    buffer_free(&at);
    buffer_free(&out);
    free(positions);
    free(keys);
    free(codes);
}

static void test_codes(uint64_t random)
{
    for (int code_bytes = 8; code_bytes <= 16; code_bytes += 8)
        for (int i = 0; i < COUNTS; i++)
            for (int turn = 0; turn < 12; turn++) {
                check_make(code_bytes, counts[i], &random);
                check_split(code_bytes, 1 << turn % 4, counts[i], &random);
            }
    status_clear();
    CHECK(ops->make_codes(engine, 4, NULL, 0, NULL, 0, 1, 0) == HSORT_INTERNAL && status_text()[0],
          "codes of 4 bytes");
    status_clear();
    CHECK(ops->split_codes(engine, 12, NULL, 0, 0, NULL, keymap_make(HSORT_U64, HSORT_ASCENDING), NULL) ==
              HSORT_INTERNAL,
          "codes of 12 bytes");
    status_clear();
}

/* ---- take, place ------------------------------------------------------------------------------------------------- */

/* `held` elements, whose positions count from `first` on, and positions [count] among them. */
struct move {
    size_t bytes; /* of an element */
    int64_t held, count, first, outside;
    int64_t *at; /* [count] on the host */
    char what[128];
};

/* Draw positions that occur once, if that is possible; or any positions, some of them outside of the elements. */
static void draw_positions(struct move *m, bool once, uint64_t *random)
{
    const int64_t nowhere[] = {-1, m->held, INT64_MAX / 2, INT64_MIN / 2};
    m->outside = 0;
    for (int64_t i = 0; i < m->count; i++) {
        const bool lost = m->held == 0 || (!once && check_random(random) % 8 == 0);
        const int64_t at = lost ? nowhere[below(4, random)] : once ? i % m->held : below(m->held, random);
        m->at[i] = m->first + at;
        m->outside += lost;
    }
    for (int64_t i = m->count - 1; i > 0; i--) {
        const int64_t other = below(i + 1, random), kept = m->at[i];
        m->at[i] = m->at[other];
        m->at[other] = kept;
    }
}

static bool is_inside(const struct move *m, int64_t at)
{
    return at >= m->first && at < m->first + m->held;
}

/* Take elements from two arrays, of which the second lies behind the first or before it. */
static void check_take(const struct move *m, uint64_t *random)
{
    const size_t from_bytes = (size_t)m->held * m->bytes, to_bytes = (size_t)m->count * m->bytes;
    const int64_t first_count = below(m->held + 1, random);
    const size_t first_bytes = (size_t)first_count * m->bytes,
                 first_at = below(2, random) ? from_bytes - first_bytes : 0;
    char *from = random_bytes(from_bytes, random), *expected = alloc_or_exit(to_bytes + 1);
    struct buffer in = buffer_new(from, from_bytes, m->bytes * (size_t)below(4, random));
    struct buffer at = buffer_new(m->at, (size_t)m->count * sizeof *m->at, 8 * (size_t)below(4, random));
    struct buffer out = buffer_new(NULL, to_bytes, m->bytes * (size_t)below(4, random));
    int64_t outside = -1;
    memset(expected, POISON, to_bytes);
    for (int64_t i = 0; i < m->count; i++)
        if (is_inside(m, m->at[i]) && m->bytes > 0) // the arrays lie in a ring
            memcpy(expected + (size_t)i * m->bytes,
                   from + (first_at + (size_t)(m->at[i] - m->first) * m->bytes) % from_bytes, m->bytes);
    const char *base = m->bytes ? buffer_keys(&in) : NULL,
               *second = base && !first_at ? base + first_bytes : base;
    const struct engine_take take = {.element_bytes = m->bytes,
                                     .to = m->bytes ? buffer_keys(&out) : NULL,
                                     .from = {base ? base + first_at : base, second},
                                     .from_count = {first_count, m->held - first_count},
                                     .positions = buffer_keys(&at),
                                     .first = m->first,
                                     .count = m->count};
    must(ops->take(engine, &take, m->outside == 0 && below(2, random) ? NULL : &outside), m->what);
    CHECK(outside == m->outside || (outside == -1 && m->outside == 0),
          "take, %s: %lld positions outside, there are %lld", m->what, (long long)outside,
          (long long)m->outside);
    CHECK(memcmp(buffer_result(&out, m->what), expected, to_bytes) == 0, "take, %s: an element is wrong",
          m->what);
    CHECK(memcmp(buffer_result(&in, m->what), from, from_bytes) == 0, "take, %s: elements changed", m->what);
    buffer_free(&in);
    buffer_free(&at);
    buffer_free(&out);
    free(from);
    free(expected);
}

/* Does each byte of an element come from one of the elements that belong there, or is it poison if there is no such element? These
 * elements form a chain: it begins with `last`, and before [count] names the next element of the same place, -1 at the end. */
static bool is_placed(const struct move *m, const char *to, const char *from, int64_t last,
                      const int64_t *before)
{
    if (last >= 0 && memcmp(to, from + (size_t)last * m->bytes, m->bytes) == 0)
        return true;
    for (size_t byte = 0; byte < m->bytes; byte++) {
        bool found = last < 0 && (unsigned char)to[byte] == POISON;
        for (int64_t i = last; i >= 0 && !found; i = before[i])
            found = to[byte] == from[(size_t)i * m->bytes + byte];
        if (!found)
            return false;
    }
    return true;
}

static void check_place(const struct move *m, uint64_t *random)
{
    const size_t from_bytes = (size_t)m->count * m->bytes, to_bytes = (size_t)m->held * m->bytes;
    char *from = random_bytes(from_bytes, random);
    int64_t *last = alloc_or_exit((size_t)m->held * sizeof *last + 1), outside = -1, wrong = 0;
    int64_t *before = alloc_or_exit((size_t)m->count * sizeof *before + 1);
    struct buffer in = buffer_new(from, from_bytes, m->bytes * (size_t)below(4, random));
    struct buffer at = buffer_new(m->at, (size_t)m->count * sizeof *m->at, 8 * (size_t)below(4, random));
    struct buffer out = buffer_new(NULL, to_bytes, m->bytes * (size_t)below(4, random));
    for (int64_t place = 0; place < m->held; place++)
        last[place] = -1;
    for (int64_t i = 0; i < m->count; i++)
        if (is_inside(m, m->at[i])) {
            before[i] = last[m->at[i] - m->first];
            last[m->at[i] - m->first] = i;
        }
    must(ops->place(engine, m->bytes, m->bytes ? buffer_keys(&out) : NULL, m->held,
                    m->bytes ? buffer_keys(&in) : NULL, buffer_keys(&at), m->first, m->count, &outside),
         m->what);
    const char *to = buffer_result(&out, m->what);
    CHECK(outside == m->outside, "place, %s: %lld positions outside, there are %lld", m->what,
          (long long)outside, (long long)m->outside);
#pragma omp parallel for reduction(+ : wrong) if (m->held > DRAW_PART)
    for (int64_t place = 0; place < m->held; place++)
        wrong += !is_placed(m, to + (size_t)place * m->bytes, from, last[place], before);
    CHECK(wrong == 0, "place, %s: %lld elements are wrong", m->what, (long long)wrong);
    CHECK(memcmp(buffer_result(&in, m->what), from, from_bytes) == 0, "place, %s: an element has changed",
          m->what);
    buffer_free(&in);
    buffer_free(&at);
    buffer_free(&out);
    free(from);
    free(last);
    free(before);
}

static void test_moves(uint64_t random)
{
    static const size_t sizes[] = {0, 1, 3, 4, 8, 12, 16, 100, LARGE_BYTES, LARGEST_BYTES};
    for (int s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s++)
        for (int i = 0; i < COUNTS && (sizes[s] < LARGEST_BYTES || counts[i] <= LARGEST_MANY); i++)
            for (int turn = 0; turn < 4; turn++) {
                const bool once = turn < 2;
                const int64_t count =
                    sizes[s] < LARGE_BYTES || counts[i] < LARGE_MANY ? counts[i] : LARGE_MANY;
                const int64_t held = turn == 0   ? count
                                     : turn == 1 ? 2 * count + 5
                                                 : below(count + 2, &random);
                struct move m = {.bytes = sizes[s], .held = held, .count = count};
                m.first = check_random(&random) % 2 ? (int64_t)(check_random(&random) >> 3) : 0;
                m.at = alloc_or_exit((size_t)count * sizeof *m.at + 1);
                draw_positions(&m, once, &random);
                snprintf(m.what, sizeof m.what, "%s, elements of %zu bytes, %lld of %lld from %lld on, %s",
                         ops->name, m.bytes, (long long)count, (long long)held, (long long)m.first,
                         once ? "once" : "any");
                check_take(&m, &random);
                check_place(&m, &random);
                free(m.at);
            }
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Keys in runs, and what is to be found. */
struct runs_trial {
    int key_bytes, outputs; /* bits: unique, first, counts, ids */
    int64_t count, found, position, first_id, end;
    void *keys, *unique;
    int64_t *first, *counts, *ids;
    key_code before;
    bool has_before;
    char what[128];
};

/* Return a key that differs from `other` in any one bit. */
static key_code other_key(key_code other, int key_bytes, uint64_t *random)
{
    return other ^ (key_code)1 << below(8 * key_bytes, random);
}

/* Draw keys of which `stay` in 16 are like the key before: runs have one key, some, many or all. */
static void draw_runs(struct runs_trial *t, int stay, uint64_t *random)
{
    key_code key = below(3, random) ? random_code(random) & key_max(t->key_bytes) : 0;
    const int how = (int)below(3, random); // what is before: nothing, the same, another key
    t->has_before = how > 0;
    t->before = how == 1 ? key : other_key(key, t->key_bytes, random);
    t->position = below(INT64_C(1) << 40, random);
    t->first_id = below(INT64_C(1) << 40, random);
    t->end = t->position + t->count + below(100, random);
    t->found = 0;
    for (int64_t i = 0; i < t->count; i++) {
        const bool moves = i > 0 && below(16, random) >= stay && (stay < 15 || below(64, random) == 0);
        key = moves ? other_key(key, t->key_bytes, random) : key;
        store(t->key_bytes, t->keys, i, key);
        if (moves || (i == 0 && how != 1)) {
            store(t->key_bytes, t->unique, t->found, key);
            t->first[t->found++] = t->position + i;
        }
        t->ids[i] = t->first_id + t->found - 1;
    }
    for (int64_t r = 0; r < t->found; r++)
        t->counts[r] = (r + 1 < t->found ? t->first[r + 1] : t->end) - t->first[r];
}

/* Compare an output that may not have been asked for, and free it. */
static void check_output(const struct runs_trial *t, struct buffer *out, int bit, const char *name,
                         const void *expected, size_t bytes)
{
    const unsigned char *result = buffer_result(out, t->what);
    const size_t written = t->outputs >> bit & 1 ? bytes : 0, rest = out->bytes - written;
    CHECK(memcmp(result, expected, written) == 0, "%s: %s", t->what, name);
    CHECK(is_poison(result + written, rest), "%s: %s: bytes behind are overwritten", t->what, name);
    buffer_free(out);
}

static void check_runs(const struct runs_trial *t, uint64_t *random)
{
    const size_t words = (size_t)t->count * sizeof(int64_t), bytes = (size_t)(t->count * t->key_bytes);
    const size_t found = (size_t)t->found, found_words = found * sizeof(int64_t);
    struct buffer in = buffer_new(t->keys, bytes, (size_t)t->key_bytes * (size_t)below(8, random));
    struct buffer unique = buffer_new(NULL, bytes, (size_t)t->key_bytes * (size_t)below(8, random));
    struct buffer first = buffer_new(NULL, words, 8), many = buffer_new(NULL, words, 0),
                  ids = buffer_new(NULL, words, 24);
    struct engine_runs runs = {.key_bytes = t->key_bytes,
                               .keys = buffer_keys(&in),
                               .count = t->count,
                               .before = t->has_before ? &t->before : NULL,
                               .found = -1,
                               .first_head = -1};
    must(ops->count_runs(engine, &runs), t->what);
    const int64_t first_head = t->found > 0 ? t->first[0] - t->position : t->count;
    CHECK(runs.found == t->found && runs.first_head == first_head,
          "%s: found %lld, the first at %lld, not %lld", t->what, (long long)runs.found,
          (long long)runs.first_head, (long long)first_head);
    runs.position = t->position;
    runs.end = t->end;
    runs.first_id = t->first_id;
    runs.unique = t->outputs & 1 ? buffer_keys(&unique) : NULL;
    runs.first = t->outputs & 2 ? buffer_keys(&first) : NULL;
    runs.counts = t->outputs & 4 ? buffer_keys(&many) : NULL;
    runs.ids = t->outputs & 8 ? buffer_keys(&ids) : NULL;
    must(ops->write_runs(engine, &runs), t->what);
    check_output(t, &unique, 0, "unique", t->unique, found * (size_t)t->key_bytes);
    check_output(t, &first, 1, "first", t->first, found_words);
    check_output(t, &many, 2, "counts", t->counts, found_words);
    check_output(t, &ids, 3, "ids", t->ids, words);
    CHECK(memcmp(buffer_result(&in, t->what), t->keys, bytes) == 0, "%s: a key has changed", t->what);
    buffer_free(&in);
}

static void runs_trial(int key_bytes, int64_t count, int stay, int outputs, uint64_t *random)
{
    struct runs_trial t = {.key_bytes = key_bytes, .outputs = outputs, .count = count};
    const size_t words = (size_t)count * sizeof(int64_t) + 1;
    t.keys = alloc_or_exit((size_t)(count * key_bytes) + 1);
    t.unique = alloc_or_exit((size_t)(count * key_bytes) + 1);
    t.first = alloc_or_exit(words);
    t.counts = alloc_or_exit(words);
    t.ids = alloc_or_exit(words);
    draw_runs(&t, stay, random);
    snprintf(t.what, sizeof t.what, "%s, %lld runs of %lld keys of %d bytes, before %d, outputs %d",
             ops->name, (long long)t.found, (long long)count, key_bytes, t.has_before, outputs);
    check_runs(&t, random);
    free(t.keys);
    free(t.unique);
    free(t.first);
    free(t.counts);
    free(t.ids);
}

static void test_runs(uint64_t random)
{
    static const int stays[] = {0, 8, 15, 16};
    enum { ALL = 15 };
    for (int key_bytes = 1; key_bytes <= 16; key_bytes *= 2) {
        for (int i = 0; i < COUNTS; i++)
            for (int turn = 0; turn < 16; turn++)
                runs_trial(key_bytes, counts[i], stays[turn % 4], turn < 8 ? ALL : (int)below(16, &random),
                           &random);
        for (int turn = 0; turn < 3; turn++)
            runs_trial(key_bytes, RUNS_MANY, stays[turn], ALL, &random); // several tiles a block
    }
    status_clear();
    CHECK(ops->count_runs(engine, &(struct engine_runs){.key_bytes = 3}) == HSORT_INTERNAL,
          "runs of keys of 3 bytes");
    status_clear();
}

/* ---- what elements are like --------------------------------------------------------------------------------------- */

/* The oracle: words are put together byte by byte. */
static void walk_elements(const struct engine_elements *e, struct engine_inspection *expected)
{
    key_code before = 0;
    int64_t number_before = 0;
    *expected = (struct engine_inspection){.first_descent = e->count, .first_unstable = e->count};
    for (int64_t i = 0; i < e->count; i++) {
        const int64_t number = e->index ? e->index[i] : e->first + i * e->step;
        uint64_t digest[2] = {0, 0}, place = 0;
        key_code code = 0;
        for (int p = 0; p < ENGINE_ELEMENT_PARTS; p++)
            for (size_t at = 0; at < e->part_bytes[p]; at += 8, place++) {
                uint64_t word = 0;
                for (size_t b = at; b < e->part_bytes[p] && b < at + 8; b++)
                    word |= (uint64_t)((const unsigned char *)e->part[p])[(size_t)i * e->part_bytes[p] + b]
                            << 8 * (b - at);
                digest_add_word(place, word, digest);
            }
        digest_shares(digest, number, expected->fingerprint, expected->placed);
        for (int f = 0; f < e->field_count; f++)
            code += field_code(&e->field[f], i); // they do not overlap
        if (i > 0 && e->field_count > 0 && code < before && i < expected->first_descent)
            expected->first_descent = i;
        if (i > 0 && e->field_count > 0 && code == before && number <= number_before &&
            i < expected->first_unstable)
            expected->first_unstable = i;
        if (i == 0)
            expected->first = code, expected->first_number = number;
        expected->last = before = code;
        expected->last_number = number_before = number;
    }
}

/* Look at elements whose bytes have `values` values; sorted: equal fields with rising numbers, so that what there is to find comes late. */
static void look_trial(int64_t count, size_t bytes, size_t more_bytes, int values, bool sorted,
                       uint64_t *random)
{
    char what[160];
    unsigned char *parts[] = {random_bytes((size_t)count * bytes, random),
                              random_bytes((size_t)count * more_bytes, random)};
    int64_t *index = alloc_or_exit((size_t)count * sizeof *index + 1);
    const bool has_index = check_random(random) % 2;
    for (int64_t i = 0; i < count; i++)
        index[i] = sorted ? i : below(count, random);
    for (size_t i = 0; i < (size_t)count * bytes; i++)
        parts[0][i] = (unsigned char)(sorted ? 0 : parts[0][i] % values);
    struct buffer part[] = {buffer_new(parts[0], (size_t)count * bytes, (size_t)below(16, random)),
                            buffer_new(parts[1], (size_t)count * more_bytes, (size_t)below(16, random))};
    struct buffer at = buffer_new(index, (size_t)count * sizeof *index, 8 * (size_t)below(3, random));
    struct engine_elements e = {.count = count,
                                .part = {buffer_keys(&part[0]), buffer_keys(&part[1])},
                                .part_bytes = {bytes, more_bytes},
                                .index = has_index ? buffer_keys(&at) : NULL,
                                .first = below(1000, random),
                                .step = (int64_t)(check_random(random) % 4 > 0)};
    e.field_count = draw_fields(16, 0, e.part[0], bytes, e.field, random);
    snprintf(what, sizeof what,
             "%s, %lld elements of %zu and %zu bytes, %d fields, %d values, index %d, step %d", ops->name,
             (long long)count, bytes, more_bytes, e.field_count, values, has_index, (int)e.step);
    struct engine_inspection found, expected;
    memset(&found, POISON, sizeof found);
    must(ops->inspect_elements(engine, &e, &found), what);
    for (int f = 0; f < e.field_count; f++)
        e.field[f].from = (char *)parts[0] + ((const char *)e.field[f].from - (const char *)e.part[0]);
    for (int p = 0; p < ENGINE_ELEMENT_PARTS; p++)
        e.part[p] = parts[p];
    e.index = has_index ? index : NULL;
    walk_elements(&e, &expected);
    CHECK(found.first_descent == expected.first_descent && found.first_unstable == expected.first_unstable,
          "%s: descent %lld, unstable %lld; not %lld, %lld", what, (long long)found.first_descent,
          (long long)found.first_unstable, (long long)expected.first_descent,
          (long long)expected.first_unstable);
    CHECK(found.first == expected.first && found.last == expected.last &&
              found.first_number == expected.first_number && found.last_number == expected.last_number,
          "%s: an end", what);
    CHECK(memcmp(found.fingerprint, expected.fingerprint, sizeof found.fingerprint) == 0 &&
              memcmp(found.placed, expected.placed, sizeof found.placed) == 0,
          "%s: a fingerprint", what);
    for (int p = 0; p < ENGINE_ELEMENT_PARTS; p++) {
        buffer_free(&part[p]);
        free(parts[p]);
    }
    buffer_free(&at);
    free(index);
}

static void test_looks(uint64_t random)
{
    static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 31, 100, 256, 1000};
    for (int i = 0; i < COUNTS; i++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            if (counts[i] * (int64_t)sizes[s] < 2000000)
                look_trial(counts[i], sizes[s], s % 2 ? sizes[check_random(&random) % 9] : 0,
                           1 + (int)below(4, &random), check_random(&random) % 3 == 0, &random);
    look_trial(5, 65536, 65535, 256, false, &random);
    struct engine_inspection found;
    status_clear();
    CHECK(ops->inspect_elements(engine, &(struct engine_elements){.field_count = ENGINE_FIELDS_MAX + 1},
                                &found) == HSORT_INTERNAL,
          "too many fields");
    status_clear();
}

#ifdef HSORT_FAULTS
static hsort_status call(int which, void *a, void *b, void *positions)
{
    const struct keymap map = keymap_make(HSORT_U64, HSORT_ASCENDING);
    const struct key_field field = {.from = a, .stride = 1, .bytes = 1, .shift = 8};
    struct engine_runs runs = {.key_bytes = 8, .keys = a, .count = 1, .part_heads = {1}, .unique = b};
    const struct engine_elements elements = {.count = 1, .part = {a}, .part_bytes = {8}};
    struct engine_inspection found;
    int64_t outside;
    switch (which) {
    case 0:
        return ops->make_codes(engine, 8, b, 1, &field, 1, 8, 0);
    case 1:
        return ops->split_codes(engine, 8, a, 1, 0, NULL, map, b);
    case 2:
        return ops->take(engine, &(struct engine_take){8, b, {a}, {1}, positions, 0, 1}, &outside);
    case 3:
        return ops->count_runs(engine, &runs);
    case 4:
        return ops->write_runs(engine, &runs);
    case 5:
        return ops->inspect_elements(engine, &elements, &found);
    default:
        return ops->place(engine, 8, b, 1, a, positions, 0, 1, &outside);
    }
}

/* An armed site fails the next call, with a text, and only that one. */
static void test_faults(void)
{
    const int64_t zeros[2] = {0, 0};
    struct buffer a = buffer_new(zeros, 16, 0), b = buffer_new(zeros, 16, 0), at = buffer_new(zeros, 16, 0);
    for (int which = 0; which < 7; which++) {
        fault_set(FAULT_KERNEL, 1);
        const hsort_status status = call(which, buffer_keys(&a), buffer_keys(&b), buffer_keys(&at));
        CHECK(status != HSORT_OK && status_text()[0] != '\0', "call %d passes a fault, text \"%s\"", which,
              status_text());
        fault_set(FAULT_KERNEL, 0);
        status_clear();
        must(call(which, buffer_keys(&a), buffer_keys(&b), buffer_keys(&at)), "a call after a fault");
        must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
    }
    buffer_free(&a);
    buffer_free(&b);
    buffer_free(&at);
}
#endif

int main(int argc, char **argv)
{
    const uint64_t seed = check_seed();
    open_engine(argc, argv);
    printf("test_elements %s: seed %llu\n", ops->name, (unsigned long long)seed);
    test_codes(seed);
    test_moves(seed);
    test_numbered(seed);
    test_runs(seed);
    test_looks(seed);
#ifdef HSORT_FAULTS
    test_faults();
#endif
    close_engine();
    return check_failures > 0;
}
