/* Whole numbers, as in options and in names of distributions. No files, no MPI. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* *number = the whole number from 0 to `most` that `text` has in decimal digits. With `units`, also 1e6 and 2^30, and numbers
 * followed by K, M, G or T (or Ki, KiB ...), powers of 1024, which may have a fraction: 1.5M. False: it is no such number. Not
 * collective. */
bool number_parse(const char *text, bool units, uint64_t most, uint64_t *number);

#ifdef __cplusplus
}
#endif

#endif
