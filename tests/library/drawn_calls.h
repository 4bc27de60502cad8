/* Calls of the public interface on keys and elements, of drawn types, fields, sizes, counts and kinds of memory, for tests that make
 * many of them. The oracle is a stable merge sort of all elements by one rank, which compares fields by value (order.h) and byte
 * strings by memcmp(), bit for bit. After a call that fails, what it may not write is looked at: inputs, and what lies behind outputs. */
#ifndef DRAWN_CALLS_H
#define DRAWN_CALLS_H

#include "tests/library/drawn_array.h"
#include "kernels/engine.h"
#include "tests/support/layout.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 64, FIELDS = HSORT_FIELDS_MAX, WIDER = 4 /* so many more bare keys */ };

enum call { SORT, RECORDS, PAIRS, ARGSORT, COLUMNS, GATHER, SCATTER, SELECT, UNIQUE, CALLS };
static const char *const call_names[CALLS] = {"sort",   "records", "pairs",  "argsort", "columns",
                                              "gather", "scatter", "select", "unique"};

struct trial {
    enum call call;
    hsort_field fields[FIELDS];
    int field_count;
    size_t record_bytes;
    int64_t total;
    int values; /* that a byte of a record can have; 1: all are equal, only for UNIQUE */
    int64_t in_counts[MOST_RANKS], out_counts[MOST_RANKS];
    bool in_place, repeats; /* repeats: most elements are one of four, because keys of many bytes would not be equal otherwise */
    uint64_t seed;
};

static int rank, size;
static hsort_context *ctx;
static bool overwrites_inputs; /* ctx does: options.overwrite_input */
static int trials[CALLS];

/* Like array_check(); if the bytes are not known, only the guard is compared. */
static void array_check_if(bool known, struct array *a, const char *name)
{
    if (!known)
        device_buffer_copy(a->image, a->memory, a->bytes);
    array_check(a, name);
}

/* ---- the oracle ----------------------------------------------------------------------------------------------------- */

static const unsigned char *element(const struct trial *t, const unsigned char *all, int64_t i)
{
    return all + (size_t)i * t->record_bytes;
}

/* order [total] = the indices in order: runs whose length doubles are merged, equal elements of the first run first. */
static void sort_slowly(const struct trial *t, const unsigned char *all, int64_t *order)
{
    int64_t *other = malloc((size_t)(t->total + 1) * sizeof *other);
    for (int64_t i = 0; i < t->total; i++)
        order[i] = i;
    for (int64_t width = 1; width < t->total; width *= 2) {
        for (int64_t begin = 0; begin < t->total; begin += 2 * width) {
            const int64_t middle = begin + width < t->total ? begin + width : t->total;
            const int64_t end = middle + width < t->total ? middle + width : t->total;
            for (int64_t i = begin, j = middle, to = begin; to < end; to++) {
                const bool second =
                    i == middle || (j < end && order_compare_fields(t->fields, t->field_count, element(t, all, order[j]),
                                                                    element(t, all, order[i])) < 0);
                other[to] = second ? order[j++] : order[i++];
            }
        }
        memcpy(order, other, (size_t)t->total * sizeof *order);
    }
    free(other);
}

/* to [count] = elements order[first ..]: their bytes from `offset` on. */
static unsigned char *pick(const struct trial *t, const unsigned char *all, const int64_t *order, int64_t first,
                           int64_t count, size_t offset, size_t bytes)
{
    unsigned char *to = malloc((size_t)count * bytes + 1);
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * bytes, element(t, all, order ? order[first + i] : first + i) + offset, bytes);
    return to;
}

/* ---- trials ----------------------------------------------------------------------------------------------------------- */

/* This rank's part of a trial. */
struct part {
    const struct trial *t;
    const unsigned char *all;
    const int64_t *order; /* of all */
    int64_t in_first, in_count, out_first, out_count;
};

/* Make an array of `bytes` from `offset` on of each element that comes in; expect_order(): of each one that goes out, in order. */
static struct array incoming(const struct part *p, size_t offset, size_t bytes)
{
    unsigned char *from = pick(p->t, p->all, NULL, p->in_first, p->in_count, offset, bytes);
    const struct array made = array_make(from, (size_t)p->in_count * bytes);
    free(from);
    return made;
}

static void expect_order(const struct part *p, struct array *a, size_t offset, size_t bytes)
{
    unsigned char *sorted = pick(p->t, p->all, p->order, p->out_first, p->out_count, offset, bytes);
    expect(a, sorted);
    free(sorted);
}

/* Sort bare keys. */
static hsort_status run_sort(const struct part *p)
{
    const struct trial *t = p->t;
    const hsort_field *field = &t->fields[0];
    const size_t bytes = order_field_bytes(field);
    struct array in = incoming(p, field->offset, bytes), out = array_make(NULL, (size_t)p->out_count * bytes);
    const hsort_status status =
        t->in_place ? hsort_sort(ctx, field->type, field->order, in.memory, p->in_count, NULL)
                    : hsort_sort_to(ctx, field->type, field->order, in.memory, p->in_count, out.memory,
                                    p->out_count, NULL);
    expect_order(p, t->in_place ? &in : &out, field->offset, bytes);
    array_check_if(t->in_place ? status == HSORT_OK : !overwrites_inputs, &in, "in");
    array_check_if(t->in_place || status == HSORT_OK, &out, "out");
    return status;
}

static hsort_status run_records(const struct part *p)
{
    const struct trial *t = p->t;
    struct array in = incoming(p, 0, t->record_bytes), out = {0};
    hsort_status status;
    if (t->in_place) {
        status = hsort_sort_records(ctx, in.memory, t->record_bytes, t->fields, t->field_count, p->in_count, NULL);
        expect_order(p, &in, 0, t->record_bytes);
    } else {
        out = array_make(NULL, (size_t)p->out_count * t->record_bytes);
        status = hsort_sort_records_to(ctx, in.memory, t->record_bytes, t->fields, t->field_count, p->in_count,
                                       out.memory, p->out_count, NULL);
        expect_order(p, &out, 0, t->record_bytes);
        array_check_if(status == HSORT_OK, &out, "out");
    }
    array_check_if(t->in_place ? status == HSORT_OK : !overwrites_inputs, &in, "in");
    return status;
}

static hsort_status run_pairs(const struct part *p)
{
    const struct trial *t = p->t;
    const size_t offset = t->fields[0].offset, key_bytes = order_field_bytes(&t->fields[0]);
    struct array keys = incoming(p, offset, key_bytes), values = incoming(p, 0, t->record_bytes);
    hsort_status status;
    if (t->in_place) {
        status = hsort_sort_pairs(ctx, t->fields[0].type, t->fields[0].order, keys.memory, values.memory,
                                  t->record_bytes, p->in_count, NULL);
        expect_order(p, &keys, offset, key_bytes);
        expect_order(p, &values, 0, t->record_bytes);
    } else {
        const bool wants_keys = draw(3) > 0;
        struct array keys_out = array_make(NULL, (size_t)p->out_count * key_bytes);
        struct array values_out = array_make(NULL, (size_t)p->out_count * t->record_bytes);
        status = hsort_sort_pairs_to(ctx, t->fields[0].type, t->fields[0].order, keys.memory, values.memory,
                                     t->record_bytes, p->in_count, wants_keys ? keys_out.memory : NULL,
                                     values_out.memory, p->out_count, NULL);
        if (wants_keys)
            expect_order(p, &keys_out, offset, key_bytes);
        expect_order(p, &values_out, 0, t->record_bytes);
        array_check_if(status == HSORT_OK, &keys_out, "keys_out");
        array_check_if(status == HSORT_OK, &values_out, "values_out");
    }
    array_check_if(!t->in_place || status == HSORT_OK, &keys, "keys");
    array_check_if(!t->in_place || status == HSORT_OK, &values, "values");
    return status;
}

static hsort_status run_argsort(const struct part *p)
{
    const hsort_field *field = &p->t->fields[0];
    struct array keys = incoming(p, field->offset, order_field_bytes(field));
    struct array index = array_make(NULL, (size_t)p->out_count * sizeof(int64_t));
    struct array keys_out = array_make(NULL, (size_t)p->out_count * order_field_bytes(field));
    const bool in_place = p->t->in_place, wants_keys = draw(2) == 0;
    const hsort_status status =
        hsort_argsort(ctx, field->type, field->order, keys.memory, p->in_count, (int64_t *)index.memory,
                      !wants_keys ? NULL : in_place ? keys.memory : keys_out.memory, p->out_count, NULL);
    expect(&index, p->order + p->out_first);
    if (wants_keys)
        expect_order(p, in_place ? &keys : &keys_out, field->offset, order_field_bytes(field));
    array_check_if(!in_place || status == HSORT_OK, &keys, "keys");
    array_check_if(status == HSORT_OK, &keys_out, "keys_out");
    array_check_if(status == HSORT_OK, &index, "index");
    return status;
}

static hsort_status run_columns(const struct part *p)
{
    const struct trial *t = p->t;
    struct array columns[FIELDS], index = array_make(NULL, (size_t)p->out_count * sizeof(int64_t));
    const void *memory[FIELDS];
    hsort_field fields[FIELDS];
    for (int i = 0; i < t->field_count; i++) {
        columns[i] = incoming(p, t->fields[i].offset, order_field_bytes(&t->fields[i]));
        memory[i] = columns[i].memory;
        fields[i] = t->fields[i];
        fields[i].offset = 0;
    }
    const hsort_status status = hsort_argsort_columns(ctx, memory, fields, t->field_count, p->in_count,
                                                      (int64_t *)index.memory, p->out_count, NULL);
    expect(&index, p->order + p->out_first);
    array_check_if(status == HSORT_OK, &index, "index");
    for (int i = 0; i < t->field_count; i++)
        array_check(&columns[i], "a column");
    return status;
}

/* Gather by indices that may repeat. */
static hsort_status run_gather(const struct part *p)
{
    const struct trial *t = p->t;
    int64_t *wanted = malloc((size_t)(p->out_count + 1) * sizeof *wanted);
    for (int64_t i = 0; i < p->out_count; i++)
        wanted[i] = t->values == 2 ? (int64_t)draw((uint64_t)t->total) : p->order[p->out_first + i];
    struct array in = incoming(p, 0, t->record_bytes);
    struct array index = array_make(wanted, (size_t)p->out_count * sizeof *wanted);
    struct array out = array_make(NULL, (size_t)p->out_count * t->record_bytes);
    const hsort_status status = hsort_gather(ctx, in.memory, p->in_count, t->record_bytes,
                                             (int64_t *)index.memory, out.memory, p->out_count, NULL);
    unsigned char *expected = pick(t, p->all, wanted, 0, p->out_count, 0, t->record_bytes);
    expect(&out, expected);
    array_check(&in, "in");
    array_check(&index, "index");
    array_check_if(status == HSORT_OK, &out, "out");
    free(expected);
    free(wanted);
    return status;
}

/* Scatter elements, which are in order, back to where they came from; every fifth place is named by no entry. */
static hsort_status run_scatter(const struct part *p)
{
    const struct trial *t = p->t;
    const size_t bytes = t->record_bytes;
    unsigned char *sorted = pick(t, p->all, p->order, p->in_first, p->in_count, 0, bytes);
    int64_t *places = malloc((size_t)(p->in_count + 1) * sizeof *places), kept = 0;
    for (int64_t i = 0; i < p->in_count; i++)
        if (p->order[p->in_first + i] % 5 != 0) {
            memmove(sorted + (size_t)kept * bytes, sorted + (size_t)i * bytes, bytes);
            places[kept++] = p->order[p->in_first + i];
        }
    struct array in = array_make(sorted, (size_t)kept * bytes), index = array_make(places, (size_t)kept * sizeof *places);
    struct array out = array_make(NULL, (size_t)p->out_count * bytes);
    const hsort_status status = hsort_scatter(ctx, in.memory, kept, bytes, (int64_t *)index.memory, out.memory,
                                              p->out_count, NULL);
    for (int64_t i = 0; i < p->out_count; i++)
        if ((p->out_first + i) % 5 != 0)
            memcpy(out.image + (size_t)i * bytes, element(t, p->all, p->out_first + i), bytes);
    array_check(&in, "in");
    array_check(&index, "index");
    array_check_if(status == HSORT_OK, &out, "out");
    free(places);
    free(sorted);
    return status;
}

/* Select the first, the last, and some positions between. */
static hsort_status run_select(const struct part *p)
{
    enum { WANTED = 20 };
    const struct trial *t = p->t;
    const hsort_field *field = &t->fields[0];
    const size_t key_bytes = order_field_bytes(field);
    const int64_t wanted = t->total > 0 ? WANTED : 0;
    int64_t positions[WANTED] = {0};
    unsigned char selected[WANTED * 16], expected[WANTED * 16];
    uint64_t random = t->seed; // the same on every rank
    struct array keys = incoming(p, field->offset, key_bytes);
    for (int i = 1; i < wanted; i++)
        positions[i] = i == 1 ? t->total - 1 : (int64_t)(check_random(&random) % (uint64_t)t->total);
    const hsort_status status = hsort_select(ctx, field->type, field->order, keys.memory, p->in_count, positions,
                                             wanted, selected, NULL);
    for (int i = 0; i < wanted; i++)
        memcpy(expected + (size_t)i * key_bytes, element(t, p->all, p->order[positions[i]]) + field->offset,
               key_bytes);
    CHECK(status != HSORT_OK || memcmp(selected, expected, (size_t)wanted * key_bytes) == 0, "rank %d: selected: %s", rank, what);
    array_check(&keys, "keys");
    return status;
}

/* Write what hsort_unique() is to find in keys [total] into the images of the outputs that are wanted: their memory is not NULL.
 * Returns how many keys hsort_unique() keeps on this rank. */
static int64_t find_runs_slowly(const struct part *p, const unsigned char *keys, size_t bytes, void *const *memory,
                                struct array *const *out)
{
    int64_t runs = 0, kept = 0;
    for (int64_t begin = 0, end; begin < p->t->total; begin = end, runs++) {
        const unsigned char *key = keys + (size_t)begin * bytes;
        for (end = begin; end < p->t->total && memcmp(key, keys + (size_t)end * bytes, bytes) == 0; end++)
            if (memory[3] && end >= p->in_first && end < p->in_first + p->in_count)
                ((int64_t *)out[3]->image)[end - p->in_first] = runs;
        if (begin < p->in_first || begin >= p->in_first + p->in_count)
            continue;
        if (memory[0])
            memcpy(out[0]->image + (size_t)kept * bytes, key, bytes);
        if (memory[1])
            ((int64_t *)out[1]->image)[kept] = end - begin;
        if (memory[2])
            ((int64_t *)out[2]->image)[kept] = begin;
        kept++;
    }
    return kept;
}

/* Keep unique keys, of as many keys on each rank as come in; mostly they are in order. */
static hsort_status run_unique(const struct part *p)
{
    static const char *const names[] = {"keys_out", "counts", "first", "ids"};
    const struct trial *t = p->t;
    const hsort_field *field = &t->fields[0];
    const size_t bytes = order_field_bytes(field), words = (size_t)p->in_count * sizeof(int64_t);
    unsigned char *all = pick(t, p->all, t->seed % 4 ? p->order : NULL, 0, t->total, field->offset, bytes);
    struct array keys = array_make(all + (size_t)p->in_first * bytes, (size_t)p->in_count * bytes);
    struct array made[4], *out[4];
    void *memory[4];
    int64_t kept = -1;
    for (int i = 0; i < 4; i++) {
        made[i] = array_make(NULL, i == 0 ? keys.bytes : words);
        out[i] = i == 0 && t->in_place ? &keys : &made[i];
        memory[i] = draw(4) > 0 ? out[i]->memory : NULL;
    }
    const int64_t expected = find_runs_slowly(p, all, bytes, memory, out);
    const hsort_status status = hsort_unique(ctx, field->type, keys.memory, p->in_count, memory[0], &kept, memory[1],
                                             memory[2], memory[3], NULL);
    CHECK(status != HSORT_OK || kept == expected, "rank %d: kept %lld, not %lld: %s", rank, (long long)kept, (long long)expected, what);
    array_check_if(!t->in_place || status == HSORT_OK, &keys, "keys");
    for (int i = 0; i < 4; i++)
        array_check_if(status == HSORT_OK, &made[i], names[i]);
    free(all);
    return status;
}

/* Run a trial, and check what the call wrote. Returns the call's status. */
static hsort_status run_trial(const struct trial *t)
{
    static hsort_status (*const runs[CALLS])(const struct part *) = {
        run_sort,   run_records, run_pairs,  run_argsort, run_columns,
        run_gather, run_scatter, run_select, run_unique};
    unsigned char *all = malloc((size_t)t->total * t->record_bytes + 1);
    int64_t *order = malloc((size_t)(t->total + 1) * sizeof *order);
    uint64_t random = t->seed;
    for (size_t i = 0; i < (size_t)t->total * t->record_bytes; i++)
        all[i] = (unsigned char)(check_random(&random) % (uint64_t)t->values * 255 / (uint64_t)(t->values > 1 ? t->values - 1 : 1));
    for (int64_t i = 4; t->repeats && i < t->total; i++)
        if (check_random(&random) % 8 > 0)
            memcpy(all + (size_t)i * t->record_bytes, all + check_random(&random) % 4 * t->record_bytes, t->record_bytes);
    if (rank == 0)
        sort_slowly(t, all, order);
    MPI_Bcast(order, (int)t->total, MPI_INT64_T, 0, MPI_COMM_WORLD);
    const struct part p = {.t = t,
                           .all = all,
                           .order = order,
                           .in_first = layout_before(t->in_counts, rank),
                           .in_count = t->in_counts[rank],
                           .out_first = layout_before(t->out_counts, rank),
                           .out_count = t->out_counts[rank]};
    snprintf(what, sizeof what, "%s of %lld elements of %zu bytes, %d fields, first of type %d at %zu of %d bytes, "
             "%d values of a byte, in place %d, repeats %d", call_names[t->call], (long long)t->total, t->record_bytes,
             t->field_count, (int)t->fields[0].type, t->fields[0].offset, t->fields[0].bytes, t->values, t->in_place, t->repeats);
    const hsort_status status = runs[t->call](&p);
    trials[t->call]++;
    free(order);
    free(all);
    return status;
}

/* ---- draws ------------------------------------------------------------------------------------------------------------ */

/* A field of at most `most` bytes. */
static hsort_field draw_field(const struct trial *t, size_t most, bool number)
{
    hsort_field field = {.order = draw(2) ? HSORT_DESCENDING : HSORT_ASCENDING};
    do
        field.type = number && most >= 16 && draw(4) == 0 ? HSORT_U128 : (hsort_type)draw(ORDER_TYPES);
    while (hsort_type_bytes(field.type) > most);
    if (!number && draw(2))
        field.bytes = 1 + (int)draw(most < 16 ? most : 16);
    else
        field.big_endian = !number && draw(3) == 0;
    field.offset = draw(t->record_bytes - order_field_bytes(&field) + 1);
    return field;
}

static bool takes_bare_keys(enum call call)
{
    return call == SORT || call == PAIRS || call == ARGSORT || call == SELECT || call == UNIQUE;
}

static void draw_fields(struct trial *t)
{
    const bool one = takes_bare_keys(t->call);
    const int wanted = one ? 1 : 1 + (int)draw(FIELDS);
    size_t left = HSORT_KEY_BYTES_MAX;
    for (t->field_count = 0; t->field_count < wanted && left > 0; t->field_count++) {
        const size_t most = left < t->record_bytes ? left : t->record_bytes;
        t->fields[t->field_count] = draw_field(t, most, one);
        left -= order_field_bytes(&t->fields[t->field_count]);
    }
}

/* Draw a trial, the same on every rank. */
static struct trial draw_trial(enum call call, uint64_t seed)
{
    static const size_t sizes[] = {1, 3, 4, 8, 12, 13, 16, 24, 100, 1000};
    static const int64_t counts[] = {0, 1, 2, 10, 255, 1000, 20000};
    uint64_t random = seed;
    struct trial t = {.call = call, .seed = seed};
    random_state = seed;
    t.record_bytes = sizes[draw(sizeof sizes / sizeof *sizes)];
    if (takes_bare_keys(call) && t.record_bytes < 8)
        t.record_bytes = 8;
    t.total = draw(10) == 0 ? 0 : 1 + (int64_t)draw((uint64_t)counts[1 + draw(6)]);
    if (call == SORT)
        t.record_bytes = draw(3) ? 8 : 16, t.total *= 1 + (int64_t)draw(WIDER);
    if (t.record_bytes > 100 && t.total > 300)
        t.total = 300;
    t.values = call == UNIQUE && draw(4) == 0 ? 1 : draw(2) ? 2 : 256;
    t.in_place = draw(2), t.repeats = draw(3) == 0;
    draw_fields(&t);
    layout_counts((enum layout)draw(LAYOUTS), t.total, size, check_random(&random), t.in_counts);
    layout_counts((enum layout)draw(LAYOUTS), t.total, size, check_random(&random), t.out_counts);
    if (t.in_place)
        memcpy(t.out_counts, t.in_counts, sizeof t.out_counts);
    return t;
}

#endif
