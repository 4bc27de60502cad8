/* The header of a NumPy .npy file (numpy.lib.format, versions 1 to 3). Pure parsing of bytes: no file, no
 * MPI. */
#ifndef NPY_H
#define NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hypersort.h"

enum { NPY_HEAD_BYTES = 12, NPY_DICT_MAX = 65535 };

struct npy_header {
    hsort_type type;
    bool swapped;          /* '>' keys */
    int64_t count;         /* of the one dimension */
    int64_t data_offset;   /* from the start of the file */
};

/* Bytes of header, magic included, that the first `bytes` (up to NPY_HEAD_BYTES) of a file announce.
 * Errors   HSORT_FORMAT: not .npy, a version other than 1, 2, 3, cut off, or a dictionary beyond NPY_DICT_MAX. */
hsort_status npy_header_bytes(const char *path, const unsigned char *head, size_t bytes, size_t *header_bytes);

/* Parse a whole header [header_bytes]. `path` is for the error's text. Errors HSORT_FORMAT. */
hsort_status npy_parse(const char *path, const unsigned char *header, size_t header_bytes, struct npy_header *result);

/* Write a version 1.0 header for `count` little-endian keys, padded to a multiple of 64 bytes. bytes >= 128.
 * Returns its length. */
size_t npy_format(hsort_type type, int64_t count, unsigned char *header, size_t bytes);

#endif
