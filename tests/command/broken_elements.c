/* The calls on what travels with keys, in a hypersort that is wrong where BROKEN_ELEMENTS says so (broken_sort.c). The last rank
 * damages what the call has written, or, for records in two passes from file to file, what goes to the file first.
 *     swap   its first and last records change places      lose    its last record becomes the one before it
 *     flip   a bit of the last byte of its last record     values  its first and last values change places, and no keys
 *     index  its first and last positions change places    ties    its first two positions do, which are of equal keys
 *     count  the last key is counted once too often        head    another than the first of the last key is kept
 *     least  the last key is not kept                                                              (of hsort_unique())
 *     carry  the first and the last element that came, of more than 8 bytes, change places
 *     spoil  a bit of the last one of them is flipped                                              (of hsort_gather())
 *     reread a bit of the first row that is read back of an HDF5 file is flipped */
#include <stdlib.h>
#include <string.h>
#include "hypersort.h"
#include "src/library/element_columns.h"

hsort_status __real_hsort_sort_records_to(hsort_context *ctx, const void *records, size_t record_bytes,
                                          const hsort_field *fields, int field_count, int64_t count,
                                          void *out, int64_t out_count, void *stream);
hsort_status __wrap_hsort_sort_records_to(hsort_context *ctx, const void *records, size_t record_bytes,
                                          const hsort_field *fields, int field_count, int64_t count,
                                          void *out, int64_t out_count, void *stream);
hsort_status __real_hsort_sort_pairs_to(hsort_context *ctx, hsort_type type, hsort_order order,
                                        const void *keys, const void *values, size_t value_bytes,
                                        int64_t count, void *keys_out, void *values_out, int64_t out_count,
                                        void *stream);
hsort_status __wrap_hsort_sort_pairs_to(hsort_context *ctx, hsort_type type, hsort_order order,
                                        const void *keys, const void *values, size_t value_bytes,
                                        int64_t count, void *keys_out, void *values_out, int64_t out_count,
                                        void *stream);
hsort_status __real_hsort_argsort(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                                  int64_t count, int64_t *index, void *keys_out, int64_t out_count,
                                  void *stream);
hsort_status __wrap_hsort_argsort(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                                  int64_t count, int64_t *index, void *keys_out, int64_t out_count,
                                  void *stream);

hsort_status __real_hsort_gather(hsort_context *ctx, const void *in, int64_t count, size_t element_bytes,
                                 const int64_t *index, void *out, int64_t out_count, void *stream);
hsort_status __wrap_hsort_gather(hsort_context *ctx, const void *in, int64_t count, size_t element_bytes,
                                 const int64_t *index, void *out, int64_t out_count, void *stream);
hsort_status __real_hsort_unique(hsort_context *ctx, hsort_type type, const void *keys, int64_t count,
                                 void *keys_out, int64_t *kept, int64_t *counts, int64_t *first, int64_t *ids,
                                 void *stream);
hsort_status __wrap_hsort_unique(hsort_context *ctx, hsort_type type, const void *keys, int64_t count,
                                 void *keys_out, int64_t *kept, int64_t *counts, int64_t *first, int64_t *ids,
                                 void *stream);

/* Is this damage asked for, on this rank? */
static int is_asked(const char *word, int64_t count)
{
    const char *damage = getenv("BROKEN_ELEMENTS");
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return damage && strcmp(damage, word) == 0 && rank == size - 1 && count >= 2;
}

static void swap_elements(void *elements, size_t bytes, int64_t a, int64_t b)
{
    char kept[65536];
    char *first = (char *)elements + (size_t)a * bytes, *second = (char *)elements + (size_t)b * bytes;
    memcpy(kept, first, bytes);
    memcpy(first, second, bytes);
    memcpy(second, kept, bytes);
}

hsort_status __wrap_hsort_sort_records_to(hsort_context *ctx, const void *records, size_t record_bytes,
                                          const hsort_field *fields, int field_count, int64_t count,
                                          void *out, int64_t out_count, void *stream)
{
    const hsort_status status = __real_hsort_sort_records_to(ctx, records, record_bytes, fields, field_count,
                                                             count, out, out_count, stream);
    char *end = (char *)out + (size_t)out_count * record_bytes;
    if (is_asked("swap", out_count))
        swap_elements(out, record_bytes, 0, out_count - 1);
    if (is_asked("lose", out_count))
        memcpy(end - record_bytes, end - 2 * record_bytes, record_bytes);
    if (is_asked("flip", out_count))
        end[-1] ^= 1;
    return status;
}

hsort_status __wrap_hsort_sort_pairs_to(hsort_context *ctx, hsort_type type, hsort_order order,
                                        const void *keys, const void *values, size_t value_bytes,
                                        int64_t count, void *keys_out, void *values_out, int64_t out_count,
                                        void *stream)
{
    const hsort_status status = __real_hsort_sort_pairs_to(ctx, type, order, keys, values, value_bytes, count,
                                                           keys_out, values_out, out_count, stream);
    if (is_asked("values", out_count))
        swap_elements(values_out, value_bytes, 0, out_count - 1);
    return status;
}

/* Of an index that a call has found. */
static void break_index(int64_t *index, int64_t count)
{
    if (is_asked("index", count))
        swap_elements(index, sizeof *index, 0, count - 1);
    if (is_asked("ties", count))
        swap_elements(index, sizeof *index, 0, 1);
}

hsort_status __wrap_hsort_argsort(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                                  int64_t count, int64_t *index, void *keys_out, int64_t out_count,
                                  void *stream)
{
    const hsort_status status =
        __real_hsort_argsort(ctx, type, order, keys, count, index, keys_out, out_count, stream);
    break_index(index, out_count);
    return status;
}

hsort_status __real_hsort_argsort_columns(hsort_context *ctx, const void *const *columns, const hsort_field *fields,
                                          int field_count, int64_t count, int64_t *index, int64_t out_count,
                                          void *stream);
hsort_status __wrap_hsort_argsort_columns(hsort_context *ctx, const void *const *columns, const hsort_field *fields,
                                          int field_count, int64_t count, int64_t *index, int64_t out_count,
                                          void *stream);

hsort_status __wrap_hsort_argsort_columns(hsort_context *ctx, const void *const *columns, const hsort_field *fields,
                                          int field_count, int64_t count, int64_t *index, int64_t out_count,
                                          void *stream)
{
    const hsort_status status =
        __real_hsort_argsort_columns(ctx, columns, fields, field_count, count, index, out_count, stream);
    break_index(index, out_count);
    return status;
}

hsort_status __real_sort_columns_in_passes(hsort_context *ctx, const hsort_field *fields, int field_count,
                                           struct element_columns *columns, int64_t count, int64_t out_count,
                                           bool *done);
hsort_status __wrap_sort_columns_in_passes(hsort_context *ctx, const hsort_field *fields, int field_count,
                                           struct element_columns *columns, int64_t count, int64_t out_count,
                                           bool *done);

static const struct key_stream *true_sink;
static size_t sink_bytes; /* of a record */

/* key_stream.move of a sink that damages what goes first. */
static hsort_status write_damaged(void *user, int64_t at, size_t bytes, void *host)
{
    const int64_t records = (int64_t)(bytes / sink_bytes);
    if (at == 0 && is_asked("swap", records))
        swap_elements(host, sink_bytes, 0, records - 1);
    if (at == 0 && is_asked("lose", records))
        memcpy(host, (char *)host + sink_bytes, sink_bytes);
    if (at == 0 && is_asked("flip", records))
        ((char *)host)[bytes - 1] ^= 1;
    return true_sink->move(user, at, bytes, host);
}

hsort_status __wrap_sort_columns_in_passes(hsort_context *ctx, const hsort_field *fields, int field_count,
                                           struct element_columns *columns, int64_t count, int64_t out_count,
                                           bool *done)
{
    struct key_stream damaged;
    if (columns->sink) {
        true_sink = columns->sink;
        sink_bytes = columns->column[0].bytes;
        damaged = *true_sink;
        damaged.move = write_damaged;
        columns->sink = &damaged;
    }
    return __real_sort_columns_in_passes(ctx, fields, field_count, columns, count, out_count, done);
}

hsort_status __wrap_hsort_unique(hsort_context *ctx, hsort_type type, const void *keys, int64_t count,
                                 void *keys_out, int64_t *kept, int64_t *counts, int64_t *first, int64_t *ids,
                                 void *stream)
{
    const hsort_status status =
        __real_hsort_unique(ctx, type, keys, count, keys_out, kept, counts, first, ids, stream);
    if (is_asked("count", *kept))
        counts[*kept - 1]++;
    if (is_asked("head", *kept))
        first[*kept - 1]++;
    if (is_asked("least", *kept))
        --*kept;
    return status;
}

hsort_status __wrap_hsort_gather(hsort_context *ctx, const void *in, int64_t count, size_t element_bytes,
                                 const int64_t *index, void *out, int64_t out_count, void *stream)
{
    const hsort_status status =
        __real_hsort_gather(ctx, in, count, element_bytes, index, out, out_count, stream);
    if (element_bytes > 8 && is_asked("carry", out_count))
        swap_elements(out, element_bytes, 0, out_count - 1);
    if (element_bytes > 8 && is_asked("spoil", out_count))
        ((char *)out)[(size_t)out_count * element_bytes - 1] ^= 1;
    return status;
}

/* Not there in a build without HDF5, nor called then. */
struct hdf5_out;
__attribute__((weak)) hsort_status __real_hdf5_read_back(const struct hdf5_out *out, int column,
                                                         int64_t first, int64_t count, void *rows);
hsort_status __wrap_hdf5_read_back(const struct hdf5_out *out, int column, int64_t first, int64_t count,
                                   void *rows);

hsort_status __wrap_hdf5_read_back(const struct hdf5_out *out, int column, int64_t first, int64_t count,
                                   void *rows)
{
    const hsort_status status = __real_hdf5_read_back(out, column, first, count, rows);
    if (is_asked("reread", count))
        *(char *)rows ^= 1;
    return status;
}
