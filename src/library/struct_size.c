#include "src/library/struct_size.h"
#include <string.h>

_Static_assert((int)HSORT_PHASES <= (int)HSORT_PHASES_MAX &&
                   (int)HSORT_TRANSPORTS <= (int)HSORT_TRANSPORTS_MAX &&
                   (int)HSORT_RATES <= (int)HSORT_RATES_MAX,
               "arrays in public structs hold their lists");

bool struct_size_is_known(size_t size, size_t first, size_t now)
{
    // Each begins with a size_t, so every size that one has had is a multiple of that.
    return size >= first && size <= now && size % sizeof size == 0;
}

void struct_size_copy(void *to, const void *from)
{
    size_t size;
    memcpy(&size, to, sizeof size);
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size, size - sizeof size);
}
