/* The dtype of a .npy file's elements: how long an element is, and where a field of it lies. This only parses bytes.
 *
 *      [('id', '<u8'), ('pos', '<f4', (3,)), ('in', [('x', '<i4'), ('', '|V4')])]
 *
 *      bytes 0 .. 7    8 .. 11  12 .. 15  16 .. 19  20 .. 23  24 .. 27
 *            id        pos[0]   pos[1]    pos[2]    in.x      padding, which has no name
 *
 * A header lists all bytes of an element in order, so a field begins where the one before it ends.
 *
 * Source: NumPy, numpy/lib/format.py (dtype_to_descr), and its "Array interface", typestr and descr. */
#ifndef NPY_FIELDS_H
#define NPY_FIELDS_H

#include "src/files/npy_text.h"

enum { NPY_DIMENSIONS = 8, NPY_DEPTH = 16, NPY_ELEMENT_MAX = 1 << 30, NPY_NAMES_ROOM = 192 };

/* A number or a string in an element. */
struct npy_field {
    size_t offset, bytes;
    char order;     /* '<' '>' '|' */
    char kind;      /* b i u f c m M S U V, as in NumPy */
    char dtype[32]; /* for texts */
};

/* Step over a dtype. bytes [1] = what one element takes: 0 .. NPY_ELEMENT_MAX.
 *   depth  how many structures are around it
 * Errors   HSORT_FORMAT: it is no dtype, Python objects, too deep, too large. */
hsort_status npy_take_dtype(struct npy_text *text, int depth, size_t *bytes);

/* Find the field called `name` (a.b: of a structure; a[2]: of a sub-array) in a dtype that npy_take_dtype() has taken.
 *   descr [descr_bytes]  the dtype, from its first character to its last
 * Errors   HSORT_ARGUMENT: there is no such field (the text lists the fields); it is an array or a structure. */
hsort_status npy_find_field(const char *path, const char *descr, size_t descr_bytes, const char *name,
                            struct npy_field *field);

/* The same for the dtype of an array of numbers or strings: the field is the whole element, its offset is 0. Errors
 * HSORT_ARGUMENT: a structure. */
hsort_status npy_find_scalar(const char *path, const char *descr, size_t descr_bytes,
                             struct npy_field *field);

#endif
