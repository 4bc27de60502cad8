/* The same as for_key_widths.h, and before it the widths of keys that are counted: for code that only looks at keys
 * where they lie. KEY_CALL_ANY() chooses among the widths. */
#include "kernels/base/key_width.h"

#define KEY uint8_t
#define NAMED(name) name##_u8
#include KEY_WIDTH_BODY
#undef KEY
#undef NAMED

#define KEY uint16_t
#define NAMED(name) name##_u16
#include KEY_WIDTH_BODY
#undef KEY
#undef NAMED

#include "kernels/host/for_key_widths.h"
