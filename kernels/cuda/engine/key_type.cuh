/* From widths that are known at run time to the types that kernels are made for. Only this file asks for the width of
 * keys on the CUDA side. A width that it does not know is an error. A line in KEY_WIDTH_LIST makes kernels for a new
 * width. */
#ifndef KEY_TYPE_CUH
#define KEY_TYPE_CUH

#include <type_traits>
#include "kernels/base/key_width.h"
#include "kernels/cuda/engine/cuda_engine.h"

/* No value beside a key. */
struct no_value {
};

template <typename V>
constexpr bool has_value = !std::is_same<V, no_value>::value;

/* 16 bytes, and the keys in them. All indices into it are known at compile time, so that it is held in registers. */
template <typename K>
union key_vector {
    uint4 whole;
    K keys[sizeof(uint4) / sizeof(K)];
};

/* Call run(K()) with K the unsigned integer of `key_bytes`, and return its result. Errors HSORT_INTERNAL. */
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

/* The same for keys that are counted. */
template <typename F>
static hsort_status with_counted_type(int key_bytes, F run)
{
    switch (key_bytes) {
#define X(bytes, suffix, type, unused) \
    case bytes:                        \
        return run(type());
        KEY_COUNTED_LIST(X, )
#undef X
    }
    return counted_width_check(key_bytes);
}

/* The same for keys of every width, where they are only looked at. */
template <typename F>
static hsort_status with_any_key_type(int key_bytes, F run)
{
    return KEY_IS_COUNTED(key_bytes) ? with_counted_type(key_bytes, run) : with_key_type(key_bytes, run);
}

/* The same for keys of one word: most rungs have no kernels for keys of 16 bytes, which are two words. */
template <typename F>
static hsort_status with_narrow_key_type(int key_bytes, F run)
{
    switch (key_bytes) {
    case 4:
        return run(uint32_t());
    case 8:
        return run(uint64_t());
    }
    return status_fail(HSORT_INTERNAL, "no kernels of this kind for keys of %d bytes", key_bytes);
}

/* Call run(K(), V()) with the types of a key of one word and of the value beside it, no_value for 0 bytes, and return its
 * result. Errors HSORT_INTERNAL. */
template <typename F>
static hsort_status with_element_types(int key_bytes, int value_bytes, F run)
{
    switch (value_bytes) {
    case 0:
        return with_narrow_key_type(key_bytes, [&](auto key) { return run(key, no_value()); });
    case 4:
        return with_narrow_key_type(key_bytes, [&](auto key) { return run(key, uint32_t()); });
    case 8:
        if (key_bytes == 8)
            return run(uint64_t(), uint64_t());
    }
    return status_fail(HSORT_INTERNAL, "no kernels for keys of %d bytes with values of %d", key_bytes,
                       value_bytes);
}

/* A number that depends on the width of K. A width that no number is given for does not compile. */
template <typename K>
static __host__ __device__ constexpr int by_width(int of_4, int of_8)
{
    static_assert(sizeof(K) == 4 || sizeof(K) == 8, "there is a number for this width");
    return sizeof(K) == 4 ? of_4 : of_8;
}

template <typename K>
static __host__ __device__ constexpr int by_width(int of_4, int of_8, int of_16)
{
    static_assert(sizeof(K) <= 4 || sizeof(K) == 8 || sizeof(K) == 16, "there is a number for this width");
    return sizeof(K) <= 4 ? of_4 : sizeof(K) == 8 ? of_8 : of_16; // narrower keys are as those of 4 bytes
}

/* The key of another lane. The types of keys have no shuffle in common. Whole warps call it. */
template <typename K>
static __device__ K of_lane(K key, int lane)
{
    if constexpr (sizeof(K) <= sizeof(uint64_t)) {
        return __shfl_sync(ALL_LANES, key, lane);
    } else {
        const uint64_t lower = __shfl_sync(ALL_LANES, (uint64_t)key, lane),
                       upper = __shfl_sync(ALL_LANES, (uint64_t)(key >> 64), lane);
        return (K)upper << 64 | lower;
    }
}

/* The key of the lane `distance` lanes below; undefined in lanes that have no such lane. Whole warps call it. */
template <typename K>
static __device__ K of_lane_below(K key, int distance)
{
    if constexpr (sizeof(K) <= sizeof(uint64_t))
        return __shfl_up_sync(ALL_LANES, key, distance);
    else
        return of_lane(key, max((int)threadIdx.x % WARP - distance, 0));
}

#endif
