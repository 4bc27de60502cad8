#include "src/command/hdf5/hdf5_dtype.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/hdf5/hdf5_error.h"
#include "src/files/npy_fields.h"

/* ---- Text ------------------------------------------------------------------------------------------------ */

void hdf5_text_add(struct hdf5_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int bytes = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (text->length + (size_t)bytes + 1 > text->room) {
        const size_t room = 2 * text->room + (size_t)bytes + 256;
        char *more = realloc(text->text, room);
        text->failed = text->failed || !more;
        text->text = more ? more : text->text;
        text->room = more ? room : text->room;
    }
    if (!text->failed)
        text->length += (size_t)vsnprintf(text->text + text->length, text->room - text->length, format, args);
    va_end(args);
}

/* Add a name in quotes. A name that the text of a dtype cannot hold is left out: then no key can name it. */
static void add_name(struct hdf5_text *text, const char *name)
{
    const bool single = strchr(name, '\''), bad = strpbrk(name, "\\\n") || (single && strchr(name, '"'));
    const char quote = single ? '"' : '\'';
    hdf5_text_add(text, "%c%s%c", quote, bad ? "" : name, quote);
}

/* ---- Numbers --------------------------------------------------------------------------------------------- */

static bool is_ieee(hid_t type)
{
    static const struct {
        size_t bytes, sign, exponent, exponent_bits, mantissa_bits, bias;
    } forms[] = {{2, 15, 10, 5, 10, 15}, {4, 31, 23, 8, 23, 127}, {8, 63, 52, 11, 52, 1023}};
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0)
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (H5Tget_size(type) == forms[i].bytes)
            return sign == forms[i].sign && exponent == forms[i].exponent && mantissa == 0 &&
                   exponent_bits == forms[i].exponent_bits && mantissa_bits == forms[i].mantissa_bits &&
                   H5Tget_ebias(type) == forms[i].bias && H5Tget_norm(type) == H5T_NORM_IMPLIED;
    return false;
}

bool hdf5_is_number(hid_t type)
{
    const H5T_class_t class = H5Tget_class(type);
    const size_t bytes = H5Tget_size(type);
    if (class == H5T_ENUM) {
        const hid_t base = H5Tget_super(type);
        const bool number = hdf5_is_number(base);
        H5Tclose(base);
        return number;
    }
    if ((class != H5T_INTEGER && class != H5T_FLOAT) || H5Tget_precision(type) != 8 * bytes ||
        (bytes > 1 && H5Tget_order(type) != H5T_ORDER_LE && H5Tget_order(type) != H5T_ORDER_BE))
        return false;
    return class == H5T_FLOAT ? is_ieee(type) : bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static void add_number(struct hdf5_text *text, hid_t type)
{
    const H5T_class_t class = H5Tget_class(type);
    if (class == H5T_ENUM) {
        const hid_t base = H5Tget_super(type);
        add_number(text, base);
        H5Tclose(base);
        return;
    }
    const size_t bytes = H5Tget_size(type);
    const char order = bytes == 1 ? '|' : H5Tget_order(type) == H5T_ORDER_BE ? '>' : '<';
    const char kind = class == H5T_FLOAT ? 'f' : H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i';
    hdf5_text_add(text, "'%c%c%zu'", order, kind, bytes);
}

/* ---- Structures ------------------------------------------------------------------------------------------ */

static void add_dtype(struct hdf5_text *text, hid_t type, int depth, bool *odd);

static void add_entry(struct hdf5_text *text, const char *name, hid_t type, int dimensions,
                      const hsize_t *extent, int depth, bool *odd)
{
    struct hdf5_text shape = {0};
    hsize_t more[H5S_MAX_RANK];
    hid_t base = H5Tcopy(type);
    for (int i = 0; i < dimensions; i++)
        hdf5_text_add(&shape, "%llu,", (unsigned long long)extent[i]);
    while (H5Tget_class(base) == H5T_ARRAY) {
        const int count = H5Tget_array_dims2(base, more);
        const hid_t of = H5Tget_super(base);
        for (int i = 0; i < count; i++)
            hdf5_text_add(&shape, "%llu,", (unsigned long long)more[i]);
        dimensions += count;
        H5Tclose(base);
        base = of;
    }
    hdf5_text_add(text, "(");
    add_name(text, dimensions > NPY_DIMENSIONS ? "" : name);
    hdf5_text_add(text, ",");
    if (dimensions > NPY_DIMENSIONS)
        hdf5_text_add(text, "'|V%zu'", H5Tget_size(type));
    else
        add_dtype(text, base, depth, odd);
    if (dimensions > 0 && dimensions <= NPY_DIMENSIONS)
        hdf5_text_add(text, ",(%s)", shape.text ? shape.text : "");
    hdf5_text_add(text, "),");
    text->failed = text->failed || shape.failed;
    free(shape.text);
    H5Tclose(base);
}

/* order [count] = the members of a structure, in the order of their places. False: they overlap. */
static bool order_members(hid_t type, int count, int *order)
{
    size_t end = 0;
    for (int i = 0; i < count; i++) { // insertion, because mostly they are in order
        int at = i;
        for (; at > 0 &&
               H5Tget_member_offset(type, (unsigned)order[at - 1]) > H5Tget_member_offset(type, (unsigned)i);
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < count; i++) {
        const hid_t member = H5Tget_member_type(type, (unsigned)order[i]);
        const size_t offset = H5Tget_member_offset(type, (unsigned)order[i]);
        const bool apart = offset >= end;
        end = offset + H5Tget_size(member);
        H5Tclose(member);
        if (!apart)
            return false;
    }
    return true;
}

static void add_padding(struct hdf5_text *text, size_t bytes)
{
    if (bytes > 0)
        hdf5_text_add(text, "('','|V%zu'),", bytes);
}

static void add_structure(struct hdf5_text *text, hid_t type, const int *order, int count, int depth,
                          bool *odd)
{
    size_t end = 0;
    hdf5_text_add(text, "[");
    for (int i = 0; i < count; i++) {
        const hid_t member = H5Tget_member_type(type, (unsigned)order[i]);
        const size_t offset = H5Tget_member_offset(type, (unsigned)order[i]);
        char *name = H5Tget_member_name(type, (unsigned)order[i]);
        add_padding(text, offset - end);
        add_entry(text, name ? name : "", member, 0, NULL, depth + 1, odd);
        end = offset + H5Tget_size(member);
        H5free_memory(name);
        H5Tclose(member);
    }
    add_padding(text, H5Tget_size(type) - end);
    hdf5_text_add(text, "]");
}

static void add_dtype(struct hdf5_text *text, hid_t type, int depth, bool *odd)
{
    const H5T_class_t class = H5Tget_class(type);
    const int count = class == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
    int *order = count > 0 ? malloc((size_t)count * sizeof *order) : NULL;
    text->failed = text->failed || (count > 0 && !order);
    if (hdf5_is_number(type)) {
        add_number(text, type);
    } else if (class == H5T_STRING) {
        hdf5_text_add(text, "'|S%zu'", H5Tget_size(type));
    } else if (order && depth + 1 < NPY_DEPTH && order_members(type, count, order)) {
        add_structure(text, type, order, count, depth, odd);
    } else {
        *odd = *odd || class != H5T_OPAQUE;
        hdf5_text_add(text, "'|V%zu'", H5Tget_size(type));
    }
    free(order);
}

void hdf5_describe(struct hdf5_text *text, const char *name, hid_t type, int dimensions,
                   const hsize_t *extent, bool *odd)
{
    if (name)
        add_entry(text, name, type, dimensions, extent, 0, odd);
    else
        add_dtype(text, type, 0, odd);
}

/* ---- What cannot be moved -------------------------------------------------------------------------------- */

static bool has_addresses(hid_t type, const char **what)
{
    const H5T_class_t class = H5Tget_class(type);
    *what = class == H5T_STRING ? "variable-length strings"
            : class == H5T_VLEN ? "elements of variable length"
                                : "references";
    bool found =
        class == H5T_VLEN || class == H5T_REFERENCE || (class == H5T_STRING && H5Tis_variable_str(type) > 0);
    if (class == H5T_ARRAY) {
        const hid_t base = H5Tget_super(type);
        found = has_addresses(base, what);
        H5Tclose(base);
    }
    for (int i = 0; class == H5T_COMPOUND && i < H5Tget_nmembers(type) && !found; i++) {
        const hid_t member = H5Tget_member_type(type, (unsigned)i);
        found = has_addresses(member, what);
        H5Tclose(member);
    }
    return found;
}

hsort_status hdf5_check_type(const char *path, const char *name, hid_t type)
{
    const char *what;
    return has_addresses(type, &what)
               ? status_fail(HSORT_FORMAT, "%s: dataset '%.100s' has %s, which cannot be moved", path, name,
                             what)
               : HSORT_OK;
}
