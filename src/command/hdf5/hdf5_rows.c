/* Rows of the input, and which parts of them are keys. */
#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "src/command/hdf5/hdf5_error.h"
#include "src/command/hdf5/hdf5_in.h"

/* ---- Keys -------------------------------------------------------------------------------------------------- */

/* Find the keys of a dataset of numbers that is sorted alone: a structure of one field, for code that knows structures. */
static hsort_status find_bare(const struct hdf5_in *in, hsort_order order, struct record_keys *keys)
{
    struct hdf5_text descr = {0};
    struct file_in file = {.path = in->files.path, .element = {.bytes = in->row_bytes, .dimensions = 1}};
    bool odd = false;
    hdf5_text_add(&descr, "[");
    hdf5_describe(&descr, "x", in->column[0].type, 0, NULL, &odd);
    hdf5_text_add(&descr, "]");
    file.element.descr = descr.text;
    file.element.descr_bytes = descr.length;
    const hsort_status status =
        descr.failed ? status_fail(HSORT_HOST_MEMORY, "%s: no memory for its dtype", file.path)
                     : record_keys_parse(order == HSORT_DESCENDING ? "x:desc" : "x", &file, keys);
    free(descr.text);
    return status;
}

hsort_status hdf5_find_keys(const struct hdf5_in *in, const char *key, hsort_order order,
                            struct record_keys *keys)
{
    const struct hdf5_column *first = &in->column[0];
    struct file_in file = {.path = in->files.path,
                           .is_key = in->is_bare,
                           // A row of a group may have any length, because only rows of one dataset are moved.
                           .element = {.bytes = in->is_dataset ? in->row_bytes : 1,
                                       .descr = in->descr.text,
                                       .descr_bytes = in->descr.length,
                                       .dimensions = in->is_dataset ? first->dimensions + 1 : 1}};
    if (!key)
        return in->is_bare ? find_bare(in, order, keys)
                           : status_fail(HSORT_ARGUMENT,
                                         "%s: is not of plain numbers in one dimension: say by --key which",
                                         file.path);
    TRY(record_keys_parse(key, &file, keys));
    for (int k = 0; k < keys->count; k++)
        for (int c = 0; c < in->columns; c++) {
            const struct hdf5_column *column = &in->column[c];
            const size_t offset = keys->fields[k].offset;
            if (column->odd && offset >= column->offset && offset < column->offset + column->row_bytes)
                return status_fail(HSORT_ARGUMENT,
                                   "%s: dataset '%.100s' has numbers of a form that cannot be a key",
                                   file.path, column->name);
        }
    return HSORT_OK;
}

/* ---- Rows -------------------------------------------------------------------------------------------------- */

void hdf5_select_rows(hid_t dataset, const struct hdf5_column *column, int64_t first, int64_t count,
                      hid_t *in_file, hid_t *in_memory)
{
    hsize_t begin[H5S_MAX_RANK] = {(hsize_t)first}, extent[H5S_MAX_RANK] = {(hsize_t)count};
    memcpy(extent + 1, column->extent, (size_t)column->dimensions * sizeof *extent);
    *in_file = H5Dget_space(dataset);
    *in_memory = H5Screate_simple(column->dimensions + 1, extent, NULL);
    if (count > 0)
        H5Sselect_hyperslab(*in_file, H5S_SELECT_SET, begin, NULL, extent, NULL);
    else
        H5Sselect_none(*in_file), H5Sselect_none(*in_memory);
}

int64_t hdf5_piece_rows(const struct hdf5_column *column)
{
    const int64_t rows = CLI_CHUNK_BYTES / (int64_t)column->row_bytes,
                  chunk = column->chunk_rows > 0 ? column->chunk_rows : 1;
    return divide_up(rows, chunk) * chunk;
}

hsort_status hdf5_read_dataset(hid_t dataset, const struct hdf5_column *column, const char *path,
                               int64_t first, int64_t count, void *rows)
{
    hid_t in_file, in_memory;
    if (count == 0 || column->row_bytes == 0)
        return HSORT_OK;
    if (fault_hit(FAULT_READ))
        return status_fail(HSORT_IO, "%s: dataset '%.100s' cannot be read: simulated", path, column->name);
    hdf5_select_rows(dataset, column, first, count, &in_file, &in_memory);
    const hsort_status status =
        H5Dread(dataset, column->type, in_memory, in_file, H5P_DEFAULT, rows) < 0
            ? hdf5_fail(HSORT_IO, "%s: dataset '%.100s' cannot be read", path, column->name)
            : HSORT_OK;
    H5Sclose(in_file);
    H5Sclose(in_memory);
    return status;
}

hsort_status hdf5_read_rows(const struct hdf5_in *in, int column, int64_t first, int64_t count, void *rows)
{
    const struct hdf5_column *wanted = &in->column[column];
    for (int i = 0; i < in->files.parts && count > 0; i++) {
        const struct hdf5_part *part = &in->part[i];
        const int64_t at = first - part->first, there = part->count - at,
                      taken = there < count ? there : count;
        if (at < 0 || there <= 0)
            continue;
        TRY(hdf5_read_dataset(part->dataset[column], wanted, in->files.part[i].path, at, taken, rows));
        rows = (char *)rows + (size_t)taken * wanted->row_bytes;
        first += taken;
        count -= taken;
    }
    return HSORT_OK;
}
