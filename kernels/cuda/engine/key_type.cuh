/* From widths that are known at run time to the types that kernels are made for. The only place on this side
 * that asks for a width: one that it does not know is an error, and kernels for a new one are made by a line
 * here. */
#ifndef KEY_TYPE_CUH
#define KEY_TYPE_CUH

#include "kernels/base/key_width.h"

/* No value beside a key. */
struct no_value {
};

/* run(K()) with K the unsigned integer of `key_bytes`; what it returns. Errors HSORT_INTERNAL. */
template <typename F>
static hsort_status with_key_type(int key_bytes, F run)
{
    switch (key_bytes) {
#define X(bytes, suffix, type, unused) \
    case bytes:                        \
        return run(type());
        KEY_WIDTH_LIST(X, )
#undef X
    }
    return key_width_check(key_bytes);
}

/* The same for 16 bytes too: codes of two words, which only the MSD sort and CUB take. */
template <typename F>
static hsort_status with_wide_key_type(int key_bytes, F run)
{
    return key_bytes == 16 ? run((unsigned __int128)0) : with_key_type(key_bytes, run);
}

/* run(K(), V()) with the types of a key and of the value beside it: no_value for 0 bytes. Errors
 * HSORT_INTERNAL. */
template <typename F>
static hsort_status with_element_types(int key_bytes, int value_bytes, F run)
{
    switch (value_bytes) {
    case 0:
        return with_key_type(key_bytes, [&](auto key) { return run(key, no_value()); });
    case 4:
        return with_key_type(key_bytes, [&](auto key) { return run(key, uint32_t()); });
    case 8:
        if (key_bytes == 8)
            return run(uint64_t(), uint64_t());
    }
    return status_fail(HSORT_INTERNAL, "no kernels for keys of %d bytes with values of %d", key_bytes,
                       value_bytes);
}

/* A number that depends on the width of K, which must be one that there is a number for. */
template <typename K>
static __host__ __device__ constexpr int by_width(int of_4, int of_8)
{
    static_assert(sizeof(K) == 4 || sizeof(K) == 8, "there is a number for this width");
    return sizeof(K) == 4 ? of_4 : of_8;
}

#endif
