#include "src/command/record_scan.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/launch.h"

/* Two hashes of bytes, a word at a time: each step is one to one in the word. */
static void mix_bytes(const void *from, size_t bytes, uint64_t state[2])
{
    const unsigned char *at = from;
    for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
        uint64_t word = 0;
        if (bytes - done >= sizeof word)
            memcpy(&word, at + done, sizeof word);
        else
            memcpy(&word, at + done, bytes - done);
        state[0] = (state[0] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        state[0] ^= state[0] >> 32;
        state[1] = (state[1] ^ word) * UINT64_C(0xc2b2ae3d27d4eb4f);
        state[1] ^= state[1] >> 29;
    }
}

static int64_t number_of(const struct record_rows *rows, int64_t i)
{
    return rows->index ? rows->index[i] : rows->first + i;
}

/* Record i's share of the fingerprint. */
static void add_row(const struct record_rows *rows, int64_t i, uint64_t sum[2])
{
    uint64_t state[2] = {1, 2}, a[2] = {0, 0}, b[2] = {0, 0};
    if (rows->numbered) {
        const int64_t number = number_of(rows, i);
        mix_bytes(&number, sizeof number, state);
    }
    mix_bytes((const char *)rows->records + (size_t)i * rows->record_bytes, rows->record_bytes, state);
    if (rows->values)
        mix_bytes((const char *)rows->values + (size_t)i * rows->value_bytes, rows->value_bytes, state);
    fingerprint_add(state[0], a);
    fingerprint_add(state[1], b);
    sum[0] += a[0];
    sum[1] += b[1];
}

void record_scan_start(struct record_scan *scan, const struct record_keys *keys)
{
    *scan = (struct record_scan){.keys = keys, .disorder = INT64_MAX, .unstable = INT64_MAX};
}

static void keep_least(int64_t *least, int64_t place)
{
    *least = place < *least ? place : *least;
}

/* Two records that follow each other. */
static void compare(uint128 before, int64_t number_before, uint128 code, int64_t number, bool numbered,
                    int64_t place, struct record_scan *part)
{
    if (code < before)
        keep_least(&part->disorder, place);
    else if (numbered && code == before && number <= number_before)
        keep_least(&part->unstable, place);
}

/* Rows begin ... end - 1, of which the first has one before it unless begin is 0. */
static void add_range(const struct record_rows *rows, const struct key_field *fields, int field_count,
                      int64_t begin, int64_t end, struct record_scan *part)
{
    uint128 before = field_count > 0 && begin > 0 ? record_code(fields, field_count, begin - 1) : 0;
    for (int64_t i = begin; i < end; i++) {
        add_row(rows, i, part->sum);
        if (field_count == 0)
            continue;
        const uint128 code = record_code(fields, field_count, i);
        if (i > 0)
            compare(before, number_of(rows, i - 1), code, number_of(rows, i), rows->numbered, rows->first + i,
                    part);
        before = code;
    }
}

/* What the rows are like by themselves, by all threads. */
static void add_rows(struct record_scan *scan, const struct record_rows *rows, const struct key_field *fields,
                     int field_count)
{
#pragma omp parallel
    {
        struct record_scan part;
        record_scan_start(&part, scan->keys);
        const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        add_range(rows, fields, field_count, launch_share(rows->count, thread, threads),
                  launch_share(rows->count, thread + 1, threads), &part);
#pragma omp critical(record_scan)
        {
            scan->sum[0] += part.sum[0];
            scan->sum[1] += part.sum[1];
            keep_least(&scan->disorder, part.disorder);
            keep_least(&scan->unstable, part.unstable);
        }
    }
}

/* The ends of rows. */
static struct record_scan ends_of_rows(const struct record_keys *keys, const struct record_rows *rows,
                                       const struct key_field *fields, int field_count)
{
    struct record_scan ends;
    record_scan_start(&ends, keys);
    ends.any = true;
    ends.numbered = rows->numbered;
    ends.first = rows->first;
    ends.first_code = record_code(fields, field_count, 0);
    ends.first_number = number_of(rows, 0);
    ends.last_code = record_code(fields, field_count, rows->count - 1);
    ends.last_number = number_of(rows, rows->count - 1);
    ends.count = rows->count;
    return ends;
}

void record_scan_join(struct record_scan *scan, const struct record_scan *next)
{
    if (!next->any)
        return;
    if (scan->any)
        compare(scan->last_code, scan->last_number, next->first_code, next->first_number, next->numbered,
                next->first, scan);
    else
        scan->first = next->first, scan->first_code = next->first_code,
        scan->first_number = next->first_number;
    scan->any = true;
    scan->numbered = next->numbered;
    scan->count += next->count;
    scan->last_code = next->last_code;
    scan->last_number = next->last_number;
    scan->sum[0] += next->sum[0];
    scan->sum[1] += next->sum[1];
    keep_least(&scan->disorder, next->disorder);
    keep_least(&scan->unstable, next->unstable);
}

static void add_rows_to(struct record_scan *scan, const struct record_rows *rows, bool alone)
{
    struct key_field fields[HSORT_FIELDS_MAX];
    const int field_count = scan->keys ? scan->keys->count : 0;
    if (rows->count == 0)
        return;
    if (scan->keys)
        record_keys_point(scan->keys, rows->records, rows->record_bytes, fields);
    struct record_scan seen = ends_of_rows(scan->keys, rows, fields, field_count);
    if (alone)
        add_range(rows, fields, field_count, 0, rows->count, &seen);
    else
        add_rows(&seen, rows, fields, field_count);
    record_scan_join(scan, &seen);
}

void record_scan_add(struct record_scan *scan, const struct record_rows *rows)
{
    add_rows_to(scan, rows, false);
}

void record_scan_add_alone(struct record_scan *scan, const struct record_rows *rows)
{
    add_rows_to(scan, rows, true);
}

/* What the ranks know of each other's borders: words of each. */
enum border {
    ANY,
    FIRST,
    FIRST_UPPER,
    FIRST_LOWER,
    FIRST_NUMBER,
    LAST_UPPER,
    LAST_LOWER,
    LAST_NUMBER,
    NUMBERED,
    BORDERS
};

/* Compare the last record of each rank with the first one of the next that has any; all [size * BORDERS]. */
static void compare_borders(const uint64_t *all, int size, struct record_scan *scan)
{
    const uint64_t *before = NULL;
    for (int rank = 0; rank < size; rank++) {
        const uint64_t *own = all + (size_t)rank * BORDERS;
        if (!own[ANY])
            continue;
        if (before)
            compare((uint128)before[LAST_UPPER] << 64 | before[LAST_LOWER], (int64_t)before[LAST_NUMBER],
                    (uint128)own[FIRST_UPPER] << 64 | own[FIRST_LOWER], (int64_t)own[FIRST_NUMBER],
                    own[NUMBERED], (int64_t)own[FIRST], scan);
        before = own;
    }
}

hsort_status record_scan_finish(struct record_scan *scan, struct comm *comm, struct record_result *result)
{
    const uint64_t own[BORDERS] = {scan->any,
                                   (uint64_t)scan->first,
                                   (uint64_t)(scan->first_code >> 64),
                                   (uint64_t)scan->first_code,
                                   (uint64_t)scan->first_number,
                                   (uint64_t)(scan->last_code >> 64),
                                   (uint64_t)scan->last_code,
                                   (uint64_t)scan->last_number,
                                   scan->numbered};
    int64_t unused;
    uint64_t *all = malloc((size_t)comm->size * sizeof own);
    hsort_status status = comm_agree(
        comm, all ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for the borders of ranks"));
    if (status == HSORT_OK)
        status = comm_gather_words(comm, own, BORDERS, all);
    if (status == HSORT_OK && scan->keys)
        compare_borders(all, comm->size, scan);
    free(all);
    TRY(status);
    TRY(comm_range(comm, scan->disorder, &result->first_disorder, &unused));
    TRY(comm_range(comm, scan->unstable, &result->first_unstable, &unused));
    TRY(comm_sum(comm, scan->count, &result->count));
    result->first_disorder = result->first_disorder == INT64_MAX ? -1 : result->first_disorder;
    result->first_unstable = result->first_unstable == INT64_MAX ? -1 : result->first_unstable;
    TRY_MPI(MPI_Allreduce(scan->sum, result->fingerprint, 2, MPI_UINT64_T, MPI_SUM, comm->world));
    return HSORT_OK;
}
