/* What test_element_gather tries: a distributed array and the index of all ranks, the same on every rank. A function gives the bytes of the
 * element at any position. */
#ifndef GATHER_TRIAL_H
#define GATHER_TRIAL_H

#include "tests/mpi/rank_engine.h"
#include "tests/support/faults.h"
#include "tests/support/layout.h"

enum { MOST_RANKS = 32, MOST_ENTRIES = 400, RUNS = 3, TRIALS = 60 };

static const int64_t claimed = INT64_C(1) << 61;

enum kind { KIND_RANDOM, KIND_PERMUTATION, KIND_SAME, KIND_REVERSED, KIND_FEW, KIND_OWNER, KINDS };

static const char *const kind_names[KINDS] = {"random",   "permutation",   "one position",
                                              "reversed", "few positions", "one owner"};

struct trial {
    enum kind kind;
    uint64_t seed;
    int64_t elements, entries; /* of all ranks, those that exist */
    int64_t element_first[MOST_RANKS + 1], entry_first[MOST_RANKS + 1];
    int64_t offset[MOST_RANKS + 1];     /* as the ranks claim */
    int64_t position[MOST_ENTRIES + 1]; /* the whole index */
    size_t sizes[RUNS];                 /* of elements */
    size_t slice_bytes;                 /* 0: not limited */
};

/* Make element number i as it lies in memory. */
static void make_element(uint64_t seed, int64_t i, size_t bytes, unsigned char *to)
{
    uint64_t state = seed ^ (uint64_t)i * UINT64_C(0xd6e8feb86659fd93);
    for (size_t at = 0; at < bytes; at += 8) {
        const uint64_t word = check_random(&state);
        memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
}

static int owner_of(const int64_t *first, int64_t at)
{
    int rank = 0;
    while (at >= first[rank + 1])
        rank++;
    return rank;
}

/* Draw which element entry `i` names, counted among the elements that exist. */
static int64_t draw_named(const struct trial *t, int64_t i, uint64_t *random)
{
    const uint64_t draw = check_random(random);
    const int owner = (int)(t->seed % (uint64_t)comm.size);
    const int64_t begin = t->element_first[owner], has = t->element_first[owner + 1] - begin;
    switch (t->kind) {
    case KIND_SAME:
        return (int64_t)(t->seed % (uint64_t)t->elements);
    case KIND_REVERSED:
        return t->elements - 1 - i % t->elements;
    case KIND_FEW:
        return (int64_t)((t->seed + draw % 3) % (uint64_t)t->elements);
    case KIND_OWNER:
        if (has > 0)
            return begin + (int64_t)(draw % (uint64_t)has);
        break;
    case KIND_PERMUTATION:
        return i;
    case KIND_RANDOM:
    case KINDS:
        break;
    }
    return (int64_t)(draw % (uint64_t)t->elements);
}

static void make_index(struct trial *t, uint64_t *random)
{
    for (int64_t i = 0; i < t->entries; i++) {
        const int64_t named = draw_named(t, i, random);
        const int owner = owner_of(t->element_first, named);
        t->position[i] = t->offset[owner] + named - t->element_first[owner];
    }
    for (int64_t i = t->entries - 1; t->kind == KIND_PERMUTATION && i > 0; i--) {
        const int64_t other = (int64_t)(check_random(random) % (uint64_t)(i + 1)), kept = t->position[i];
        t->position[i] = t->position[other];
        t->position[other] = kept;
    }
}

static void deal(int64_t total, uint64_t *random, int64_t *first)
{
    int64_t counts[MOST_RANKS];
    const enum layout layout = (enum layout)(check_random(random) % LAYOUTS);
    layout_counts(layout, total, comm.size, check_random(random), counts);
    first[0] = 0;
    for (int rank = 0; rank < comm.size; rank++)
        first[rank + 1] = first[rank] + counts[rank];
}

/* Make a trial of these sizes, the same on every rank. */
static void make_trial(struct trial *t, int64_t elements, int64_t entries, bool huge, uint64_t seed)
{
    uint64_t random = seed;
    const int claims = (int)(check_random(&random) % (uint64_t)comm.size);
    t->seed = seed;
    t->elements = elements;
    t->entries = t->kind == KIND_PERMUTATION ? elements : elements > 0 ? entries : 0;
    deal(t->elements, &random, t->element_first);
    deal(t->entries, &random, t->entry_first);
    for (int rank = 0; rank <= comm.size; rank++)
        t->offset[rank] = t->element_first[rank] + (huge && rank > claims ? claimed : 0);
    make_index(t, &random);
}

static void draw_trial(struct trial *t, int number, uint64_t seed)
{
    static const size_t sizes[] = {1, 3, 4, 8, 12, 100, 4096, 65536};
    static const size_t slices[] = {0, 1, 64, 1000, 100000};
    // Slices so large that the cuda engine lets peers map them (ENGINE_PEER_BYTES), on the few ranks that have a GPU.
    const bool mapped = comm.size <= 3 && (number == 31 || number == 35);
    uint64_t random = seed;
    size_t largest = 0;
    *t = (struct trial){.kind = (enum kind)(number % KINDS)};
    for (int run = 0; run < RUNS; run++) {
        t->sizes[run] = sizes[check_random(&random) % (sizeof sizes / sizeof sizes[0])];
        largest = t->sizes[run] > largest ? t->sizes[run] : largest;
    }
    t->slice_bytes = slices[check_random(&random) % (sizeof slices / sizeof slices[0])];
    if (mapped) {
        t->sizes[RUNS - 1] = 65536;
        t->slice_bytes = 0;
    }
    const uint64_t most = largest > 4096 ? 24 : t->slice_bytes == 1 || largest > 100 ? 80 : MOST_ENTRIES;
    int64_t elements = (int64_t)(check_random(&random) % (most + 1));
    int64_t entries = (int64_t)(check_random(&random) % (most + 1));
    if (mapped)
        elements = entries = 40 * comm.size * comm.size;
    const bool huge = check_random(&random) % 3 == 0;
    make_trial(t, elements, entries, huge, check_random(&random));
    snprintf(faults_case, sizeof faults_case, "trial %d: %s%s, %lld elements, %lld entries, slices of %zu",
             number, kind_names[t->kind], huge ? ", huge" : "", (long long)t->elements, (long long)t->entries,
             t->slice_bytes);
}

/* Make a trial in which every rank has elements, and entries that name elements of any rank. */
static void make_even_trial(struct trial *t, uint64_t seed)
{
    make_trial(t, 5 * comm.size, 6 * comm.size, true, seed);
    for (int rank = 0; rank <= comm.size; rank++) {
        t->offset[rank] += 5 * rank - t->element_first[rank];
        t->element_first[rank] = 5 * rank;
        t->entry_first[rank] = 6 * rank;
    }
    make_index(t, &seed);
}

#endif
