/* Whole numbers as options and names of distributions have them. No files, no MPI. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A whole number from 0 to `most`, in decimal digits. With `units` also 1e6, 2^30, and with K, M, G or T (or Ki, KiB ...)
 * behind it, powers of 1024, of which a part may be meant: 1.5M. False: it is none. Not collective. */
bool number_parse(const char *text, bool units, uint64_t most, uint64_t *number);

#ifdef __cplusplus
}
#endif

#endif
