/* GPUs that a test does not have: before it opens an engine, it may have that take its device for one whose blocks can have less
 * shared memory (kernels/base/fault.h), with the other sizes of the MSD sort (kernels/cuda/ladder/tuning.h). */
#ifndef PRETEND_H
#define PRETEND_H

#include <stdint.h>
#include "kernels/base/fault.h"

/* Choose by the seed: half of all times the device is what it is. Returns what was chosen, in words. */
static inline const char *pretend_gpu(uint64_t seed)
{
#ifdef HSORT_FAULTS
    if (seed % 4 == 2) {
        fault_set(FAULT_BLOCKS_163, 1);
        return "with blocks of 163 KiB";
    }
    if (seed % 4 == 3) {
        fault_set(FAULT_BLOCKS_96, 1);
        return "with blocks of 96 KiB";
    }
#endif
    (void)seed;
    return "as it is";
}

#endif
