/* Structs of the public header grow at their end. A caller says how much of a struct it knows, by its
 * struct_size: any size that it has had since version 0.2.0 will do, and no byte behind it is read or written. */
#ifndef STRUCT_SIZE_H
#define STRUCT_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include "hypersort.h"

/* X(struct, the last member that it had in version 0.2.0) */
#define SIZED_STRUCT_LIST(X)                    \
    X(hsort_options, should_stop_user)          \
    X(hsort_rates, source)                      \
    X(hsort_plan_result, partition)             \
    X(hsort_check_result, fingerprint)          \
    X(hsort_stats, paths)                       \
    X(hsort_rank_info, bound_by_launcher)       \
    X(hsort_path_speed, latency)

/* first_size_of_STRUCT: its size in version 0.2.0, with the padding at its end. */
enum {
#define X(type, last)                                                                                      \
    first_size_of_##type = (offsetof(type, last) + sizeof(((type *)0)->last) + _Alignof(type) - 1) /       \
                           _Alignof(type) * _Alignof(type),
    SIZED_STRUCT_LIST(X)
#undef X
};

/* Is `size` one that a struct has had, from `first` in version 0.2.0 to `now`? */
bool struct_size_is_known(size_t size, size_t first, size_t now);

/* The same for the size of a struct or of a pointer's target: STRUCT_SIZE_IS_KNOWN(hsort_stats, size). */
#define STRUCT_SIZE_IS_KNOWN(type, size) struct_size_is_known(size, first_size_of_##type, sizeof(type))

/* Give a caller as much of a struct as it knows: copy what follows the struct_size, with which both begin.
 *   to  [to->struct_size], a size that is known */
void struct_size_copy(void *to, const void *from);

#endif
