/* Includes the file KEY_WIDTH_BODY once for each width of KEY_WIDTH_LIST, with KEY the key and NAMED(name) its name:
 * NAMED(sort) becomes sort_u32(), sort_u64() and sort_u128(), from which KEY_CALL() and KEY_RETURN() choose. A width
 * that is missing here does not compile there. No include guard: every file that has such a body includes this. */
#include "kernels/base/key_width.h"

#define KEY uint32_t
#define NAMED(name) name##_u32
#include KEY_WIDTH_BODY
#undef KEY
#undef NAMED

#define KEY uint64_t
#define NAMED(name) name##_u64
#include KEY_WIDTH_BODY
#undef KEY
#undef NAMED

#define KEY uint128
#define NAMED(name) name##_u128
#include KEY_WIDTH_BODY
#undef KEY
#undef NAMED

#undef KEY_WIDTH_BODY
