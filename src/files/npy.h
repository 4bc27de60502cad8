/* The header of a NumPy .npy file (numpy.lib.format, versions 1 to 3). This only parses bytes: no file, no MPI. */
#ifndef NPY_H
#define NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hypersort.h"
#include "src/files/npy_fields.h"

/* NPY_DICT_MAX: the longest text. It is far beyond what tens of thousands of fields take, and still read quickly. */
enum { NPY_HEAD_BYTES = 12, NPY_DICT_MAX = 16 << 20, NPY_HEADER_ROOM = 512 };

/* What a header says about the elements, besides their number: enough to write it again. */
struct npy_element {
    size_t bytes;      /* of all that has the same first index: 1 .. NPY_ELEMENT_MAX */
    const char *descr; /* [descr_bytes] the dtype's text, borrowed; NULL: bytes of which nothing is known */
    size_t descr_bytes;
    int major;                      /* of the version; 3: the text came as UTF-8 */
    int dimensions;                 /* 0 means 1 */
    int64_t extent[NPY_DIMENSIONS]; /* from extent[1] on; the first extent is the count */
};

struct npy_header {
    bool is_key; /* plain keys of `type` in one dimension */
    hsort_type type;
    bool swapped;               /* '>' keys */
    int64_t count;              /* of the first dimension */
    int64_t data_offset;        /* from the start of the file */
    struct npy_element element; /* its descr: from npy_parse_any() only, and lies in the header */
};

/* *header_bytes = the bytes of header, magic included, that the first `bytes` (up to NPY_HEAD_BYTES) of a file announce.
 * Errors   HSORT_FORMAT: not .npy, a version other than 1, 2, 3, cut off, or a dictionary beyond NPY_DICT_MAX. */
hsort_status npy_header_bytes(const char *path, const unsigned char *head, size_t bytes,
                              size_t *header_bytes);

/* Parse a whole header [header_bytes] of plain keys. `path` is for the error's text. Errors HSORT_FORMAT. */
hsort_status npy_parse(const char *path, const unsigned char *header, size_t header_bytes,
                       struct npy_header *result);

/* The same for elements of any dtype and of more dimensions, in C order. */
hsort_status npy_parse_any(const char *path, const unsigned char *header, size_t header_bytes,
                           struct npy_header *result);

/* Copy the dtype's text of a parsed header as UTF-8, whatever encoding the file has: npy_find_field(), comparisons and
 * npy_format_any() want UTF-8. Returns [*bytes], for the caller to free; NULL: no memory. */
char *npy_copy_descr(const struct npy_element *element, size_t *bytes);

/* Does NumPy have a dtype for keys of a type? It has none for u128 and bf16. Pure. */
bool npy_has_dtype(hsort_type type);

/* Write a version 1.0 header for `count` little-endian keys of a type that has a dtype, padded to a multiple of 64 bytes.
 * bytes >= 128. Returns its length. */
size_t npy_format(hsort_type type, int64_t count, unsigned char *header, size_t bytes);

/* The same for elements of any dtype, whose text is UTF-8. The version is the least that has room for the text, or 3.0 if the
 * text came in 3.0 or needs it. bytes >= element->descr_bytes + NPY_HEADER_ROOM. */
size_t npy_format_any(const struct npy_element *element, int64_t count, unsigned char *header, size_t bytes);

#endif
