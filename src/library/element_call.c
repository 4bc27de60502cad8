#include "src/library/element_call.h"
#include "kernels/base/checksum.h"

hsort_status element_check_array(const hsort_context *ctx, const char *name, const void *array, int64_t count,
                                 size_t alignment)
{
    // No sum of counts, in bytes of the largest elements, may leave 63 bits.
    const int64_t most = INT64_MAX / (2 * ELEMENT_BYTES_MAX) / ctx->comm.size;
    if (count < 0 || count > most)
        return status_fail(HSORT_ARGUMENT, "%s: a count of %lld elements; 0 to %lld are allowed", name,
                           (long long)count, (long long)most);
    if (count > 0 && !array)
        return status_fail(HSORT_ARGUMENT, "%s is NULL, but its count is %lld", name, (long long)count);
    if (count > 0 && (uintptr_t)array % alignment != 0)
        return status_fail(HSORT_ARGUMENT, "%s is not aligned to %zu bytes", name, alignment);
    return HSORT_OK;
}

hsort_status element_check_bytes(size_t element_bytes)
{
    return element_bytes >= 1 && element_bytes <= ELEMENT_BYTES_MAX
               ? HSORT_OK
               : status_fail(HSORT_ARGUMENT, "elements of %zu bytes; 1 to %d are allowed", element_bytes,
                             ELEMENT_BYTES_MAX);
}

bool element_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

/* Is `out` the input that it may be? */
static bool is_in_place(const struct element_extent *arrays, const struct element_extent *out,
                        const struct element_extent *in)
{
    return out->in_place == in - arrays && out->array == in->array && out->bytes == in->bytes;
}

/* Is it written, or sorted in place? */
static bool changes(const struct element_extent *arrays, int count, const struct element_extent *one)
{
    bool written = one->written;
    for (int i = 0; i < count; i++)
        written = written || is_in_place(arrays, &arrays[i], one);
    return written;
}

hsort_status element_check_apart(const struct element_extent *arrays, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = 0; j < i; j++) {
            const struct element_extent *a = &arrays[j], *b = &arrays[i];
            if (element_overlap(a->array, a->bytes, b->array, b->bytes) && !is_in_place(arrays, b, a) &&
                (changes(arrays, count, a) || changes(arrays, count, b)))
                return status_fail(HSORT_ARGUMENT, "%s and %s overlap", a->name, b->name);
        }
    return HSORT_OK;
}

/* ---- fields -------------------------------------------------------------------------------------------- */

static hsort_status check_field(const hsort_field *field, int i, size_t record_bytes, size_t bytes)
{
    if (!hsort_type_name(field->type) && field->bytes == 0)
        return status_fail(HSORT_ARGUMENT, "field %d: no key type %d", i, (int)field->type);
    if (field->order != HSORT_ASCENDING && field->order != HSORT_DESCENDING)
        return status_fail(HSORT_ARGUMENT, "field %d: no order %d", i, (int)field->order);
    if (field->bytes < 0 || field->bytes > HSORT_KEY_BYTES_MAX)
        return status_fail(HSORT_ARGUMENT,
                           "field %d of %d bytes; 1 to %d are allowed, or 0 for a number of its type", i,
                           field->bytes, HSORT_KEY_BYTES_MAX);
    if (field->big_endian != 0 && field->big_endian != 1)
        return status_fail(HSORT_ARGUMENT, "field %d: big_endian is %d, not 0 or 1", i, field->big_endian);
    if (record_bytes == SIZE_MAX && field->offset != 0)
        return status_fail(HSORT_ARGUMENT, "field %d: offset %zu in a column", i, field->offset);
    if (field->offset > record_bytes || bytes > record_bytes - field->offset)
        return status_fail(HSORT_ARGUMENT, "field %d: %zu bytes at %zu of a record of %zu", i, bytes,
                           field->offset, record_bytes);
    return HSORT_OK;
}

static struct key_field key_field_of(const hsort_field *field, size_t bytes)
{
    struct key_field taken = {.bytes = (int)bytes, .big_endian = field->big_endian || field->bytes > 0};
    if (field->bytes == 0)
        taken.map = keymap_make(field->type, field->order);
    taken.map.descending = field->order == HSORT_DESCENDING;
    return taken;
}

hsort_status element_take_fields(struct element_order *order, const hsort_field *fields, int field_count,
                                 size_t record_bytes)
{
    int key_bytes = 0;
    if (field_count < 1 || field_count > HSORT_FIELDS_MAX || !fields)
        return status_fail(HSORT_ARGUMENT, "%d fields at %p; 1 to %d are allowed", field_count,
                           (const void *)fields, HSORT_FIELDS_MAX);
    for (int i = 0; i < field_count; i++) {
        const size_t bytes =
            fields[i].bytes != 0 ? (size_t)fields[i].bytes : hsort_type_bytes(fields[i].type);
        TRY(check_field(&fields[i], i, record_bytes, bytes));
        order->fields[i] = key_field_of(&fields[i], bytes);
        order->offsets[i] = fields[i].offset;
        key_bytes += (int)bytes;
    }
    if (key_bytes > HSORT_KEY_BYTES_MAX)
        return status_fail(HSORT_ARGUMENT, "fields of %d bytes together; at most %d are allowed", key_bytes,
                           HSORT_KEY_BYTES_MAX);
    order->field_count = field_count;
    return HSORT_OK;
}

hsort_status element_take_key(struct element_order *order, const hsort_field *key)
{
    TRY(context_check_type(key->type, key->order)); // here, because the caller knows of no field
    return element_take_fields(order, key, 1, SIZE_MAX);
}

uint64_t element_request(const struct element_order *order, size_t element_bytes)
{
    const uint64_t bytes = element_bytes;
    uint64_t hash = checksum_add(CHECKSUM_START, &bytes, sizeof bytes);
    for (int i = 0; i < order->field_count; i++) {
        const struct key_field *field = &order->fields[i];
        const uint64_t words[] = {(uint64_t)field->bytes, field->big_endian, field->map.descending,
                                  field->map.flip,        field->map.fold,   field->map.shift,
                                  order->offsets[i]};
        hash = checksum_add(hash, words, sizeof words);
    }
    return hash;
}
