/* Codes of elements, a block at a time. */
#ifndef CODES_H
#define CODES_H

#include "kernels/base/key_field.h"

enum { CODE_BLOCK = 256 }; // elements whose codes are made together: all stays in the nearest cache

/* What make_codes() of engine.h is asked for. */
struct code_source {
    const struct key_field *fields;
    int field_count;
    int position_bits; // 0: none
    int64_t first;     // position of element 0
};

/* codes [count <= CODE_BLOCK] of code_bytes, 8 or 16, = those of elements begin .. begin + count - 1. */
void make_code_block(const struct code_source *source, int code_bytes, void *codes, int64_t begin, int count);

#endif
