/* What the harnesses share. libFuzzer calls LLVMFuzzerTestOneInput() with one made-up input after the other; a harness gives
 * it to a parser and holds what comes of it against what the parser's header promises. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Stop here, as a crash, unless `condition` holds: libFuzzer then keeps the input. */
#define PROMISE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

/* A copy of exactly so many bytes, so that the address sanitizer sees a byte read too far. The caller frees it. */
static inline void *fuzz_copy(const void *data, size_t bytes)
{
    void *copy = malloc(bytes > 0 ? bytes : 1);
    PROMISE(copy != NULL);
    if (bytes > 0)
        memcpy(copy, data, bytes);
    return copy;
}

#endif
