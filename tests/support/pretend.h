/* GPUs that a test does not have. Before a test opens an engine, it may make the engine take its device for one whose blocks can have
 * less shared memory (kernels/base/fault.h), with the other sizes of the MSD sort (kernels/cuda/ladder/tuning.h), and its keys for
 * more than they are. */
#ifndef PRETEND_H
#define PRETEND_H

#include <stdint.h>
#include "kernels/base/fault.h"

/* Choose by the seed: half of the time the device is taken as it is, and so are the keys two times in three. Returns what was chosen,
 * in words. */
static inline const char *pretend_gpu(uint64_t seed)
{
#ifdef HSORT_FAULTS
    static const char *const words[2][3] = {
        {"as it is", "with blocks of 163 KiB", "with blocks of 96 KiB"},
        {"counting regions", "counting regions, with blocks of 163 KiB", "counting regions, with blocks of 96 KiB"}};
    const int blocks = seed % 4 < 2 ? 0 : (int)(seed % 4) - 1;
    const bool counts = seed / 4 % 3 == 0;
    if (blocks > 0)
        fault_set(blocks == 1 ? FAULT_BLOCKS_163 : FAULT_BLOCKS_96, 1);
    if (counts)
        fault_set(FAULT_REGIONS, 1);
    return words[counts][blocks];
#else
    (void)seed;
    return "as it is";
#endif
}

#endif
