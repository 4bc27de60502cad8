/* Everything that travels with keys: argsort, columns, pairs, records, gather, scatter, select, and unique, drawn by drawn_calls.h.
 *
 *     test_records        the host engine; some of the trials under a limit of engine memory, so that it works on copies
 *     test_records cuda   the cuda engine, with arrays in all kinds of memory
 *
 * Gathers, scatters, selects and uniques also run when the engine has room for nothing, and the host does them (host_call.h). */
#include "tests/library/drawn_calls.h"

enum {
    SECONDS = 3,
    LITTLE = 3 << 20 /* bytes of a GPU: that several ranks can make a context */
};

static size_t engine_limit; /* in bytes; 0: none */
static int done_by_host;    /* trials, of the cuda engine */

/* ---- trials ----------------------------------------------------------------------------------------------------------- */

static void check_trial(const struct trial *t)
{
    const hsort_status status = run_trial(t);
    CHECK(status == HSORT_OK, "%s: %s", hsort_last_error(ctx), what);
    hsort_stats stats = {.struct_size = sizeof stats};
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK, "no statistics: %s", what);
    const bool by_host = stats.engine == HSORT_ENGINE_HOST,
               is_cuda = hsort_engine_in_use(ctx) == HSORT_ENGINE_CUDA;
    CHECK(stats.engine == hsort_engine_in_use(ctx) || (by_host && engine_limit > 0), "done by engine %d: %s",
          (int)stats.engine, what);
    CHECK(by_host || engine_limit != 1 || t->total <= 1, "done without memory: %s", what);
    done_by_host += by_host && is_cuda;
}

/* Is a trial still wanted that a GPU with little memory leaves to the host's cores? Few trials are of this kind, and a busy machine does
 * few trials. */
static bool is_host_wanted(int number)
{
    enum { MOST = 1000 };
    return done_by_host == 0 && engine_limit == LITTLE && number < MOST &&
           hsort_engine_in_use(ctx) == HSORT_ENGINE_CUDA;
}

/* Make each call from `first` on some times, then any call for some seconds. */
static void run_all(enum call first, uint64_t seed)
{
    const int calls = CALLS - (int)first;
    const double begin = MPI_Wtime();
    int go_on = 1;
    for (int number = 0; go_on; number++) {
        const bool fixed = number < 4 * calls;
        const uint64_t own = seed + (uint64_t)number * 1000003;
        const struct trial t = draw_trial((enum call)((int)first + number % calls), own);
        random_state = own + (uint64_t)rank; // kinds of memory differ between ranks
        check_trial(&t);
        go_on = fixed || MPI_Wtime() - begin < SECONDS || is_host_wanted(number);
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

/* ---- refusals ----------------------------------------------------------------------------------------------------------- */

/* Check that an argument is refused, on every rank in the same words, some of which are known. Collective. */
static void refused(hsort_status status, const char *line)
{
    char first[1024];
    snprintf(first, sizeof first, "%s", hsort_last_error(ctx));
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK(strcmp(first, hsort_last_error(ctx)) == 0, "rank %d: \"%s\", rank 0: \"%s\"", rank,
          hsort_last_error(ctx), first);
    CHECK(status == HSORT_ARGUMENT, "%d: %s", (int)status, line);
    CHECK(strstr(hsort_last_error(ctx), line), "\"%s\" says nothing of \"%s\"", hsort_last_error(ctx), line);
}

static void run_refusals(void)
{
    uint32_t keys[4] = {4, 3, 2, 1};
    unsigned char records[4 * 24] = {1}, values[16] = {1}, other[16];
    int64_t index[4] = {0, 1, 2, 3};
    const hsort_field good = {.type = HSORT_U32};
    hsort_field fields[9] = {good, good, good, good, good, good, good, good, good};
    refused(hsort_sort_records(ctx, records, 0, &good, 1, 4, NULL), "elements of 0 bytes");
    refused(hsort_sort_records(ctx, records, 65537, &good, 1, 4, NULL), "elements of 65537 bytes");
    refused(hsort_sort_records(ctx, records, 24, fields, 9, 4, NULL), "9 fields");
    refused(hsort_sort_records(ctx, records, 24, fields, 0, 4, NULL), "0 fields");
    refused(hsort_sort_records(ctx, records, 24, fields, 5, 4, NULL), "fields of 20 bytes together");
    refused(hsort_sort_records(ctx, records, 24, &(hsort_field){.type = HSORT_U64, .offset = 17}, 1, 4, NULL),
            "8 bytes at 17 of a record of 24");
    refused(hsort_sort_records(ctx, records, 24, &(hsort_field){.offset = SIZE_MAX}, 1, 4, NULL),
            "of a record of 24");
    refused(hsort_sort_records(ctx, records, 24,
                               (hsort_field[]){{.type = HSORT_U128}, {.type = HSORT_U8, .offset = 16}}, 2, 4,
                               NULL),
            "fields of 17 bytes together");
    refused(hsort_sort_records(ctx, records, 24, &(hsort_field){.bytes = 17}, 1, 4, NULL), "field 0 of 17 bytes");
    const void *const column = keys;
    refused(hsort_argsort_columns(ctx, &column, &(hsort_field){.bytes = -1}, 1, 4, index, 4, NULL),
            "field 0 of -1 bytes");
    refused(hsort_argsort_columns(ctx, &column, &(hsort_field){.offset = 4}, 1, 4, index, 4, NULL),
            "offset 4 in a column");
    refused(hsort_argsort(ctx, HSORT_U32, HSORT_ASCENDING, keys, INT64_MAX / 131072 / size + 1, index, NULL,
                          4, NULL),
            "keys: a count of");
    refused(hsort_sort_records(ctx, records, 24, &(hsort_field){.big_endian = 2}, 1, 4, NULL), "big_endian is 2");
    refused(hsort_sort_records(ctx, records, 24, &(hsort_field){.type = (hsort_type)99}, 1, 4, NULL), "no key type 99");
    refused(hsort_sort_records(ctx, NULL, 24, &good, 1, 4, NULL), "is NULL");
    refused(hsort_sort_records(ctx, records, 24, &good, 1, -1, NULL), "a count of -1");
    refused(hsort_sort_records(ctx, records, rank == 0 ? 24 : 20, rank == 0 && size == 1 ? NULL : &good, 1, 4, NULL),
            size == 1 ? "1 fields" : "differs between ranks");
    refused(hsort_sort_records_to(ctx, records, 24, &good, 1, 3, records + 24, 3, NULL),
            "records and out overlap");
    refused(hsort_sort_records_to(ctx, records, 24, &good, 1, 4, records, 3, NULL),
            "records and out overlap");
    refused(hsort_sort_pairs(ctx, HSORT_U32, HSORT_ASCENDING, NULL, values, 4, 4, NULL), "keys is NULL");
    refused(hsort_sort_pairs_to(ctx, HSORT_U32, HSORT_ASCENDING, keys, values, 4, 4, NULL, other, 3, NULL), "asked for");
    refused(hsort_argsort(ctx, HSORT_U32, (hsort_order)7, keys, 4, index, NULL, 4, NULL), "no order 7");
    refused(hsort_argsort(ctx, HSORT_U32, HSORT_ASCENDING, keys, 4, NULL, NULL, 4, NULL), "index is NULL");
    refused(hsort_gather(ctx, values, 4, 4, (int64_t *)((char *)index + 4), other, 3, NULL), "not aligned");
    refused(hsort_gather(ctx, values, 4, 4, index, values + 4, 3, NULL), "in and out overlap");
    refused(hsort_gather(ctx, values, 4, 4, index, index, 4, NULL), "index and out overlap");
    refused(hsort_scatter(ctx, values, 4, 4, index, index, 4, NULL), "index and out overlap");
    if (size > 1) {
        const char *const differs = "differs between ranks";
        refused(hsort_argsort(ctx, rank == 0 ? HSORT_U32 : HSORT_I32, HSORT_ASCENDING, keys, 4, index, NULL,
                              4, NULL),
                differs);
        refused(
            hsort_select(ctx, HSORT_U32, HSORT_ASCENDING, keys, 4, (int64_t[]){rank == 0}, 1, other, NULL),
            differs);
        refused(
            hsort_select(ctx, HSORT_U32, HSORT_ASCENDING, keys, 4, (int64_t[]){0}, rank == 0, other, NULL),
            differs);
        refused(hsort_gather(ctx, values, 4, rank == 0 ? 4 : 2, index, other, 4, NULL), differs);
        refused((rank == 0 ? hsort_gather : hsort_scatter)(ctx, values, 4, 4, index, other, 4, NULL),
                differs);
    }
    index[2] = rank == size - 1 ? 4 * size : 0;
    refused(hsort_gather(ctx, values, 4, 4, index, other, 4, NULL), "outside");
    refused(hsort_select(ctx, HSORT_U32, HSORT_ASCENDING, keys, 4, (int64_t[]){4 * size}, 1, other, NULL), "no position");
    refused(hsort_select(ctx, HSORT_U32, HSORT_ASCENDING, keys, 4, (int64_t[]){-1}, 1, other, NULL),
            "position -1");
    refused(hsort_select(ctx, HSORT_U32, HSORT_ASCENDING, keys, 4, NULL, 1, other, NULL), "positions is NULL");
    refused(hsort_select(ctx, HSORT_U32, HSORT_ASCENDING, keys, 4, index, 1, NULL, NULL), "selected is NULL");
    refused(hsort_select(ctx, HSORT_U32, HSORT_ASCENDING, keys, 4, index, 2, keys + 2, NULL),
            "keys and selected overlap");
    refused(hsort_select(ctx, HSORT_U32, HSORT_ASCENDING, keys, 4, index, 2, index + 1, NULL),
            "positions and selected overlap");
    refused(hsort_unique(ctx, HSORT_U32, keys, 4, NULL, NULL, NULL, NULL, NULL, NULL), "kept is NULL");
    refused(hsort_unique(ctx, HSORT_U32, keys, 3, keys + 1, index, NULL, NULL, NULL, NULL), "keys_out and keys overlap");
    refused(hsort_unique(ctx, HSORT_U32, keys, 4, NULL, index, index, NULL, index, NULL), "ids and counts overlap");
    refused(hsort_unique(ctx, (hsort_type)99, keys, 4, NULL, index, NULL, NULL, NULL, NULL), "no key type 99");
    refused(hsort_unique(ctx, HSORT_U32, NULL, 4, NULL, index, NULL, NULL, NULL, NULL), "keys is NULL");
    index[2] = rank == size / 2 ? -1 : 0;
    refused(hsort_scatter(ctx, values, 4, 4, index, other, 4, NULL), "outside");
    CHECK(keys[0] == 4 && keys[3] == 1 && records[0] == 1, "a refused call has changed an array");
}

/* A type or an order that does not exist is refused by every call on keys in the words of hsort_sort(): its caller gave no field. */
static void refuse_types(void)
{
    uint32_t keys[4] = {4, 3, 2, 1}, values[4] = {1, 2, 3, 4};
    int64_t index[4] = {0}, kept;
    hsort_check_result result = {.struct_size = sizeof result};
    for (int wrong = 0; wrong < 2; wrong++) {
        const hsort_type type = wrong == 0 ? (hsort_type)99 : HSORT_U32;
        const hsort_order order = wrong == 0 ? HSORT_ASCENDING : (hsort_order)7;
        char line[1024];
        refused(hsort_sort(ctx, type, order, keys, 4, NULL),
                wrong == 0 ? ": no key type 99" : ": no order 7");
        snprintf(line, sizeof line, "%s", hsort_last_error(ctx));
        refused(hsort_argsort(ctx, type, order, keys, 4, index, NULL, 4, NULL), line);
        refused(hsort_sort_pairs(ctx, type, order, keys, values, 4, 4, NULL), line);
        refused(hsort_select(ctx, type, order, keys, 4, index, 1, values, NULL), line);
        refused(hsort_check(ctx, type, order, keys, 4, NULL, &result), line);
        refused(hsort_check_pairs(ctx, type, order, keys, values, 4, 4, NULL, NULL, &result), line);
        if (wrong == 0) // it has no order
            refused(hsort_unique(ctx, type, keys, 4, NULL, &kept, NULL, NULL, NULL, NULL), line);
    }
}

/* Each array of a call is refused if it is not there, or not where its elements can lie. */
static void refuse_arrays(void)
{
    uint64_t keys[4] = {4, 3, 2, 1}, far[6] = {0};
    int64_t index[6] = {3, 2, 1, 0}, kept;
    const hsort_type u64 = HSORT_U64;
    const hsort_order up = HSORT_ASCENDING;
    const hsort_field fields[2] = {{.type = HSORT_U64}, {.type = HSORT_U64}};
    const void *const columns[2] = {keys, NULL};
    void *const odd = (char *)far + 4, *const odd_index = (char *)index + 4;
    refused(hsort_gather(ctx, NULL, 4, 8, index, far, 4, NULL), "in is NULL");
    refused(hsort_gather(ctx, keys, 4, 8, NULL, far, 4, NULL), "index is NULL");
    refused(hsort_gather(ctx, keys, 4, 8, index, NULL, 4, NULL), "out is NULL");
    refused(hsort_scatter(ctx, NULL, 4, 8, index, far, 4, NULL), "in is NULL");
    refused(hsort_scatter(ctx, keys, 4, 8, NULL, far, 4, NULL), "index is NULL");
    refused(hsort_scatter(ctx, keys, 4, 8, index, NULL, 4, NULL), "out is NULL");
    refused(hsort_argsort(ctx, u64, up, NULL, 4, index, NULL, 4, NULL), "keys is NULL");
    refused(hsort_argsort(ctx, u64, up, odd, 4, index, NULL, 4, NULL), "keys is not aligned to 8");
    refused(hsort_argsort(ctx, u64, up, keys, 4, odd_index, NULL, 4, NULL), "index is not aligned to 8");
    refused(hsort_argsort(ctx, u64, up, keys, 4, index, odd, 4, NULL), "keys_out is not aligned to 8");
    refused(hsort_argsort(ctx, u64, up, keys, 4, index, NULL, 3, NULL), "asked for");
    refused(hsort_argsort_columns(ctx, NULL, fields, 2, 4, index, 4, NULL), "columns is NULL");
    refused(hsort_argsort_columns(ctx, columns, fields, 2, 4, index, 4, NULL), "a column is NULL");
    refused(hsort_argsort_columns(ctx, columns, fields, 1, 4, NULL, 4, NULL), "index is NULL");
    refused(hsort_argsort_columns(ctx, columns, fields, 1, 4, odd_index, 4, NULL),
            "index is not aligned to 8");
    refused(hsort_select(ctx, u64, up, odd, 4, index, 2, far, NULL), "keys is not aligned to 8");
    refused(hsort_select(ctx, u64, up, keys, 4, odd_index, 2, far, NULL), "positions is not aligned to 8");
    refused(hsort_unique(ctx, u64, odd, 4, NULL, &kept, NULL, NULL, NULL, NULL), "keys is not aligned to 8");
    refused(hsort_unique(ctx, u64, keys, 4, odd, &kept, NULL, NULL, NULL, NULL),
            "keys_out is not aligned to 8");
    refused(hsort_unique(ctx, u64, keys, 4, NULL, &kept, odd_index, NULL, NULL, NULL),
            "counts is not aligned to 8");
    refused(hsort_unique(ctx, u64, keys, 4, NULL, &kept, NULL, odd_index, NULL, NULL),
            "first is not aligned to 8");
    refused(hsort_unique(ctx, u64, keys, 4, NULL, &kept, NULL, NULL, odd_index, NULL),
            "ids is not aligned to 8");
}

/* Arrays of one call may not share bytes if one of them is written. Arrays that are only read may. */
static void run_overlaps(void)
{
    union {
        uint64_t words[16];
        int64_t index[16];
    } a = {{4, 3, 2, 1, 8, 7, 6, 5}}, b = {{0}}, kept = a;
    uint64_t *k = a.words, *v = k + 4, *far = b.words;
    const hsort_type u64 = HSORT_U64;
    const hsort_order up = HSORT_ASCENDING;
    const hsort_field fields[2] = {{.type = HSORT_U64}, {.type = HSORT_U64}};
    refused(hsort_sort_pairs(ctx, u64, up, k, k, 8, 4, NULL), "keys and values overlap");
    refused(hsort_sort_pairs(ctx, u64, up, k, k + 3, 8, 4, NULL), "keys and values overlap");
    refused(hsort_sort_pairs_to(ctx, u64, up, k, v, 8, 4, k, k, 4, NULL), "keys and values_out overlap");
    refused(hsort_sort_pairs_to(ctx, u64, up, k, v, 8, 4, v, far, 4, NULL), "values and keys_out overlap");
    refused(hsort_sort_pairs_to(ctx, u64, up, k, v, 8, 4, k + 1, far, 3, NULL), "keys and keys_out overlap");
    refused(hsort_sort_pairs_to(ctx, u64, up, k, v, 8, 4, k, far, 3, NULL), "keys and keys_out overlap");
    refused(hsort_sort_pairs_to(ctx, u64, up, k, v, 8, 4, NULL, v + 2, 4, NULL),
            "values and values_out overlap");
    refused(hsort_sort_pairs_to(ctx, u64, up, k, v, 8, 4, far, far + 3, 4, NULL),
            "keys_out and values_out overlap");
    refused(hsort_argsort(ctx, u64, up, k, 4, a.index + 3, NULL, 4, NULL), "keys and index overlap");
    refused(hsort_argsort(ctx, u64, up, k, 4, b.index, far + 3, 4, NULL), "index and keys_out overlap");
    refused(hsort_argsort(ctx, u64, up, k, 4, b.index, k + 1, 4, NULL), "keys and keys_out overlap");
    refused(hsort_unique(ctx, u64, k, 4, NULL, b.index, a.index, NULL, NULL, NULL),
            "counts and keys overlap");
    refused(hsort_argsort_columns(ctx, (const void *[]){k, v}, fields, 2, 4, a.index + 7, 4, NULL),
            "a column and index overlap");
    if (rank == size - 1) // an error of one rank alone is an error of all
        refused(hsort_sort_pairs(ctx, u64, up, k, k, 8, 4, NULL), "keys and values overlap");
    else
        refused(hsort_sort_pairs(ctx, u64, up, k, v, 8, 4, NULL), "keys and values overlap");
    CHECK(memcmp(&a, &kept, sizeof a) == 0 && far[0] == 0 && far[7] == 0,
          "a refused call has changed an array");
    if (engine_limit > 0 && engine_limit <= LITTLE)
        return;
    CHECK(hsort_sort_pairs_to(ctx, u64, up, k, k, 8, 4, far, far + 4, 4, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    CHECK(memcmp(far, far + 4, 4 * sizeof *far) == 0,
          "keys that are their own values are not what they were");
}

/* Arrays that share only their last and first elements. */
static void run_narrow_overlaps(void)
{
    int64_t index[8] = {0}, far[8] = {0}, kept = 0;
    uint64_t words[8] = {0};
    const hsort_type u64 = HSORT_U64;
    const hsort_order up = HSORT_ASCENDING;
    refused(hsort_gather(ctx, far, 4, 8, index, index + 3, 4, NULL), "index and out overlap");
    refused(hsort_gather(ctx, far, 4, 8, index + 3, index, 4, NULL), "index and out overlap");
    refused(hsort_scatter(ctx, far, 4, 8, index, index + 3, 4, NULL), "index and out overlap");
    refused(hsort_scatter(ctx, words, 4, 8, index, words + 3, 4, NULL), "in and out overlap");
    refused(hsort_scatter(ctx, words + 3, 4, 8, index, words, 4, NULL), "in and out overlap");
    refused(hsort_argsort(ctx, u64, up, index + 3, 4, index, NULL, 4, NULL), "keys and index overlap");
    refused(hsort_select(ctx, u64, up, index, 4, far, 4, index + 3, NULL), "keys and selected overlap");
    refused(hsort_select(ctx, u64, up, index + 3, 4, far, 4, index, NULL), "keys and selected overlap");
    refused(hsort_select(ctx, u64, up, words, 4, index, 4, index + 3, NULL),
            "positions and selected overlap");
    refused(hsort_unique(ctx, u64, index, 4, NULL, &kept, index + 3, NULL, NULL, NULL),
            "counts and keys overlap");
    refused(hsort_unique(ctx, u64, words, 4, index, &kept, NULL, index + 3, NULL, NULL),
            "first and keys_out overlap");
    refused(hsort_unique(ctx, u64, words, 4, NULL, &kept, index + 3, index, NULL, NULL),
            "counts and first overlap");
}

/* Select more positions than the engine searches, or ranks sum, at a time; key i of all is at position i. */
static void select_many(void)
{
    enum { MANY = ENGINE_SEARCH_MAX + 5 };
    static uint32_t keys[MANY], selected[MANY];
    static int64_t positions[MANY];
    for (int i = 0; i < MANY; i++) {
        keys[i] = (uint32_t)(rank * MANY + i);
        positions[i] = (int64_t)(MANY - 1 - i) * size;
    }
    CHECK(hsort_select(ctx, HSORT_U32, HSORT_ASCENDING, keys, MANY, positions, MANY, selected, NULL) ==
              HSORT_OK,
          "%s", hsort_last_error(ctx));
    for (int i = 0; i < MANY; i++)
        CHECK(selected[i] == positions[i], "position %lld: key %u", (long long)positions[i], selected[i]);
}

/* Sort keys of 4 bytes, equally many on each rank, of which a sort makes codes itself. One rank wants them back, and has
 * them at an odd place when they are records. They come in reverse. */
static void sort_even(void)
{
    enum { EACH = 1 << 14 };
    static uint32_t keys[EACH], keys_out[EACH];
    static int64_t index[EACH];
    static unsigned char memory[sizeof keys + 1];
    unsigned char *records = memory + (rank == 0);
    const hsort_field field = {.type = HSORT_U32};
    for (int i = 0; i < EACH; i++)
        keys[i] = (uint32_t)((size - rank) * EACH - 1 - i);
    memcpy(records, keys, sizeof keys);
    CHECK(hsort_argsort(ctx, HSORT_U32, HSORT_ASCENDING, keys, EACH, index, rank == 0 ? keys_out : NULL, EACH,
                        NULL) == HSORT_OK,
          "%s", hsort_last_error(ctx));
    CHECK(hsort_sort_records(ctx, records, sizeof *keys, &field, 1, EACH, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    memcpy(keys, records, sizeof keys);
    for (int i = 0; i < EACH; i++) {
        const int64_t at = (int64_t)rank * EACH + i;
        CHECK(index[i] == (int64_t)size * EACH - 1 - at && keys[i] == at && (rank > 0 || keys_out[i] == at),
              "position %lld: index %lld, key %u", (long long)at, (long long)index[i], keys[i]);
    }
}

struct column_entry {
    uint64_t code;
    int64_t at;
};

static int compare_column_entries(const void *a, const void *b)
{
    const struct column_entry *x = a, *y = b;
    return x->code != y->code ? (x->code < y->code ? -1 : 1) : (x->at > y->at) - (x->at < y->at);
}

/* Argsort what lies like an array of keys of 4 bytes, but is ordered in another way: by a second column, or by the bytes from the first
 * one on. */
static void argsort_like_keys(void)
{
    enum { EACH = 3000, TWO_COLUMNS = 0, BIG_ENDIAN_NUMBERS, BYTE_STRINGS, KINDS };
    static uint32_t first[EACH];
    static unsigned char second[EACH];
    static int64_t index[EACH];
    static struct column_entry all[EACH * MOST_RANKS];
    static const hsort_field fields[KINDS][2] = {
        [TWO_COLUMNS] = {{.type = HSORT_U32}, {.type = HSORT_U8}},
        [BIG_ENDIAN_NUMBERS] = {{.type = HSORT_U32, .big_endian = 1}},
        [BYTE_STRINGS] = {{.bytes = 4}}};
    for (int kind = 0; kind < KINDS; kind++) {
        for (int64_t at = 0; at < (int64_t)size * EACH; at++) {
            const uint32_t low = (uint32_t)(at * 7919 % 300);
            const unsigned char high = (unsigned char)(at * 104729 % 251);
            all[at] = (struct column_entry){
                kind == TWO_COLUMNS ? (uint64_t)low << 8 | high : __builtin_bswap32(low), at};
            if (at / EACH == rank)
                first[at % EACH] = low, second[at % EACH] = high;
        }
        qsort(all, (size_t)size * EACH, sizeof *all, compare_column_entries);
        CHECK(hsort_argsort_columns(ctx, (const void *[]){first, second}, fields[kind],
                                    kind == TWO_COLUMNS ? 2 : 1, EACH, index, EACH, NULL) == HSORT_OK,
              "%s", hsort_last_error(ctx));
        for (int i = 0; i < EACH; i++) {
            const int64_t wanted = all[(int64_t)rank * EACH + i].at;
            CHECK(index[i] == wanted, "kind %d, place %d: index %lld, not %lld", kind, i, (long long)index[i],
                  (long long)wanted);
        }
    }
}

static bool create(hsort_engine engine, hsort_exchange exchange, size_t limit)
{
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.exchange = exchange;
    options.device_memory_limit = limit;
    options.threads = 2;
    const hsort_status status = hsort_create(MPI_COMM_WORLD, &options, &ctx);
    CHECK(status == HSORT_OK, "%s", hsort_last_error(NULL));
    return status == HSORT_OK;
}

static void run_context(hsort_engine engine, hsort_exchange exchange, size_t limit, uint64_t seed)
{
    if (!create(engine, exchange, limit))
        return;
    engine_limit = limit;
    run_all(limit == 0 || limit > LITTLE ? RECORDS : GATHER, seed);
    run_refusals();
    refuse_types();
    refuse_arrays();
    run_overlaps();
    run_narrow_overlaps();
    select_many();
    hsort_destroy(&ctx);
}

/* The host's cores cannot work on an array in device memory: a call that lacks memory is refused then, on all ranks. */
static void refuse_device_memory(void)
{
    enum { COUNT = 128, BYTES = 65536 };
    static const int64_t index[COUNT];
    const enum buffer_kind kind = rank == size - 1 ? BUFFER_DEVICE : BUFFER_HOST;
    unsigned char *in = device_buffer_alloc(kind, (size_t)COUNT * BYTES),
                  *out = malloc((size_t)COUNT * BYTES);
    memset(out, POISON, (size_t)COUNT * BYTES);
    if (!create(HSORT_ENGINE_CUDA, HSORT_EXCHANGE_AUTO, LITTLE))
        return;
    const hsort_status status = hsort_gather(ctx, in, COUNT, BYTES, index, out, COUNT, NULL);
    CHECK(status == HSORT_DEVICE_MEMORY, "a gather from device memory without room: %d, %s", (int)status,
          hsort_last_error(ctx));
    for (int i = 0; i < COUNT * BYTES; i++)
        CHECK(out[i] == POISON, "rank %d: a refused gather has written byte %d", rank, i);
    hsort_destroy(&ctx);
    device_buffer_free(kind, in);
    free(out);
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const uint64_t seed = ranks_seed();
    const hsort_engine engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    if (cuda && create(engine, HSORT_EXCHANGE_AUTO, 0)) {
        hsort_rank_info infos[MOST_RANKS];
        CHECK(hsort_topology(ctx, infos, sizeof *infos) == HSORT_OK, "%s", hsort_last_error(ctx));
        buffer_kinds = device_buffer_kinds(infos[rank].gpu_index);
        hsort_destroy(&ctx);
    }
    for (int i = 0; i < 2; i++)
        if (create(engine, i == 0 ? HSORT_EXCHANGE_AUTO : HSORT_EXCHANGE_PARTITION, 0)) {
            sort_even();
            argsort_like_keys();
            hsort_destroy(&ctx);
        }
    run_context(engine, HSORT_EXCHANGE_AUTO, 0, seed);
    run_context(engine, HSORT_EXCHANGE_DIRECT, cuda ? 0 : 512 << 20, seed + 1);
    run_context(engine, seed % 2 ? HSORT_EXCHANGE_BITONIC : HSORT_EXCHANGE_PARTITION, 0, seed + 2);
    if (buffer_kinds > BUFFER_DEVICE)
        refuse_device_memory();
    buffer_kinds = cuda ? BUFFER_PINNED + 1 : 1;
    run_context(engine, HSORT_EXCHANGE_AUTO, cuda && size > 1 ? LITTLE : 1, seed + 3);
    CHECK(!cuda || done_by_host > 0, "no trial was done by the host");
    if (rank == 0)
        for (int call = RECORDS; call < CALLS; call++)
            printf("%d trials of %s\n", trials[call], call_names[call]);
    return ranks_finish();
}
