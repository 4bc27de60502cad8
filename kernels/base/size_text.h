/* Sizes in error texts, made of whole numbers because the caller's locale may have a decimal comma. A leaf: every layer may include it. */
#ifndef SIZE_TEXT_H
#define SIZE_TEXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SIZE_TEXT_BYTES = 48 };

/* Bytes in powers of 1000, as reports have them, cut off after four digits: "2.272 MB". text is [SIZE_TEXT_BYTES].
 * Returns text. Not collective. */
const char *size_text(uint64_t bytes, char *text);

/* The same in powers of 1024, as an option takes it, rounded up by less than a tenth if it is 10K or more: "2220K". */
const char *size_option_text(uint64_t bytes, char *text);

#ifdef __cplusplus
}
#endif

#endif
