/* What is known of the keys of a bucket before they are looked at, and the bins into which a leaf cuts their range. */
#ifndef BINS_CUH
#define BINS_CUH

#include "kernels/cuda/msd/block.cuh"

/* What a leaf knows of its keys: none is smaller than `lowest`, and none differs from it by 2^bits or more. With bits -1
 * nothing is known. */
template <typename K>
struct leaf_range {
    K lowest;
    int bits;

    __device__ bool is_known() const
    {
        return bits >= 0;
    }
    __device__ bool is_value() const
    {
        return bits == 0;
    }
};

/* Bins as wide as a power of two: half of them may be left empty, and what is known of the range can only be that. */
template <typename S, typename K>
struct shifted_bins {
    K lowest;
    int shift;

    __device__ shifted_bins(const leaf_range<K> &range)
        : lowest(range.lowest), shift(max(range.bits - log2_of(S::BINS), 0))
    {
    }
    __device__ shifted_bins(K low, K high) : shifted_bins(leaf_range<K>{low, bits_of<K>(high - low)})
    {
    }
    __device__ uint32_t operator()(K key) const
    {
        return (uint32_t)((K)(key - lowest) >> shift);
    }
    __device__ bool are_values() const
    {
        return shift == 0;
    }
};

/* A range of keys cut into parts of equal width, any width: where a key lies is a product of 64 bits, of which the upper half
 * is the part, and the lower half says where in the part. */
template <typename K>
struct even_parts {
    uint32_t low, scale; /* scale 0: there are none */
    int shift;

    __device__ bool is_known() const
    {
        return scale > 0;
    }
    __device__ bool is_value() const
    {
        return false;
    }
    /* Bits of a key that tell it from others of the range, less those of the lowest one. */
    __device__ uint32_t distance(K key) const
    {
        return (uint32_t)(key >> shift) - low;
    }
    __device__ uint32_t operator()(K key) const
    {
        return __umulhi(distance(key), scale);
    }
};

/* Bins as wide as makes use of all of them: of one of those parts, or of any range. A multiplication for each key. */
template <typename S, typename K>
struct scaled_bins {
    static constexpr int BELOW = 32 - log2_of(S::BINS);
    even_parts<K> parts;

    __device__ scaled_bins(const even_parts<K> &parts) : parts(parts)
    {
    }
    __device__ scaled_bins(K low, K high)
    {
        parts.shift =
            max(bits_of<K>(high - low) - (log2_of(S::BINS) + 8), 0); // a bin's width then errs by 1/2^8
        parts.low = (uint32_t)(low >> parts.shift);
        parts.scale = ~0u / max(parts.distance(high), 1u);
    }
    __device__ uint32_t operator()(K key) const
    {
        return parts.distance(key) * parts.scale >> BELOW;
    }
    __device__ bool are_values() const
    {
        return parts.shift == 0 && parts.scale >> BELOW > 0;
    }
};

/* The kind of bins for what is known. */
template <typename S, typename K>
static __device__ shifted_bins<S, K> bins_of(const leaf_range<K> &range)
{
    return {range};
}

template <typename S, typename K>
static __device__ scaled_bins<S, K> bins_of(const even_parts<K> &parts)
{
    return {parts};
}

#endif
