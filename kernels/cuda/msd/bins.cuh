/* The bins into which a block sort cuts the range of its keys. */
#ifndef BINS_CUH
#define BINS_CUH

#include "kernels/cuda/msd/block.cuh"

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
    /* Bits of a key that tell it from others of the range, less those of the lowest one. */
    __device__ uint32_t distance(K key) const
    {
        return (uint32_t)(key >> shift) - low;
    }
};

/* All keys from low to high as one part. A bin, one of 2^LOG_BINS in it, errs in its width by 1 / 2^8. */
template <int LOG_BINS, typename K>
static __device__ even_parts<K> parts_of_range(K low, K high)
{
    even_parts<K> parts;
    parts.shift = max(bits_of<K>(high - low) - (LOG_BINS + 8), 0);
    parts.low = (uint32_t)(low >> parts.shift);
    parts.scale = ~0u / max(parts.distance(high), 1u);
    return parts;
}

/* Bins as wide as makes use of all of them: of one of those parts, or of any range. A multiplication for each key. */
template <typename S, typename K>
struct scaled_bins {
    static constexpr int BELOW = 32 - log2_of(S::BINS);
    even_parts<K> parts;

    __device__ scaled_bins(const even_parts<K> &parts) : parts(parts)
    {
    }
    __device__ scaled_bins(K low, K high) : parts(parts_of_range<log2_of(S::BINS)>(low, high))
    {
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

#endif
