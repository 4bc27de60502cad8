/* Generated keys by the name of their distribution, many at once. kernels/base/input_draw.h says what key i of an input is. */
#ifndef INPUT_H
#define INPUT_H

#include <stdint.h>
#include "kernels/base/input_draw.h"
#include "hypersort.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parse "uniform", "narrow:16", ... into input->distribution and ->parameter. Not collective.
 * Errors   HSORT_ARGUMENT: unknown word; number missing, not wanted or out of range. The text lists the words. */
hsort_status input_parse(const char *text, struct input *input);

/* The same; the text of an error begins with the option that has this value. */
hsort_status input_parse_option(const char *option, const char *text, struct input *input);

/* keys [count] = keys first .. first + count - 1 of the input, in the type's own bits. Not collective; uses
 * OpenMP. */
void input_fill(const struct input *input, int64_t first, int64_t count, void *keys);

#ifdef __cplusplus
}
#endif

#endif
