/* What the yardsticks share: how each is called. */
#ifndef YARDSTICK_H
#define YARDSTICK_H

#include "kernels/cuda/engine/cuda_engine.h"

/* The keys to sort are in `keys`. The call sets `sorted` to whichever of `keys` and `scratch` holds the result; [count] each.
 * workspace NULL: nothing is sorted, and workspace_bytes is set. */
struct yardstick_args {
    hsort_type type;
    int64_t count;
    void *keys, *scratch, *sorted;
    void *workspace;
    size_t workspace_bytes;
};

/* Sort on STREAM_WORK; the device is current. */
hsort_status yardstick_cub(struct cuda_engine *engine, struct yardstick_args *args);
hsort_status yardstick_libcusort(struct cuda_engine *engine, struct yardstick_args *args);

/* Was this build given libcusort's header? */
bool yardstick_has_libcusort(void);

/* Call run(K()) with K the type of a key of 4 or 8 bytes, as C++ has it, and return its result. */
template <typename F>
static hsort_status with_number_type(hsort_type type, F run)
{
    switch (type) {
    case HSORT_U32:
        return run(uint32_t());
    case HSORT_I32:
        return run(int32_t());
    case HSORT_F32:
        return run(float());
    case HSORT_U64:
        return run(uint64_t());
    case HSORT_I64:
        return run(int64_t());
    case HSORT_F64:
        return run(double());
    default:
        return status_fail(HSORT_INTERNAL, "this library cannot sort keys of type %d", (int)type);
    }
}

/* The same for types that only some yardsticks sort, too. C++ has no types for the floats of 2 bytes. */
template <typename F>
static hsort_status with_any_number_type(hsort_type type, F run)
{
    switch (type) {
    case HSORT_U128:
        return run(uint128());
    case HSORT_U8:
        return run(uint8_t());
    case HSORT_I8:
        return run(int8_t());
    case HSORT_U16:
        return run(uint16_t());
    case HSORT_I16:
        return run(int16_t());
    default:
        return with_number_type(type, run);
    }
}

#endif
