/* The checksum of what a checkpoint writes, and of what ranks compare: FNV-1a of 64 bits (Fowler, Noll, Vo). For each byte,
 * hash = (hash XOR byte) * an odd constant. For a given byte each of the two steps maps hashes one to one, so a single damaged byte is
 * always seen; other damage goes unseen with a chance of 2^-64. It is meant against bad disks and half-copied files, not against
 * forgery. */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#define CHECKSUM_START UINT64_C(0xcbf29ce484222325)

/* Continue the checksum `hash` with these bytes. Not collective. */
static inline uint64_t checksum_add(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
