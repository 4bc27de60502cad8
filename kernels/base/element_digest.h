/* The fingerprint of elements of any number of bytes. A leaf: every layer may include it, CUDA code too.
 *
 * An element is the set of its words of 8 bytes, each with its place. So its words can be looked at in any order, by several
 * lanes of a GPU at once. Its digest is the fingerprint that keytype.h gives keys of 16 bytes: each key is here (place, word).
 *
 *     element        abcdefghijk         11 bytes
 *     words          (0, "abcdefgh") (1, "ijk")        zeros behind the last byte
 *     digest         the sum of what each of the words adds
 *     with number    the same, and what (WORD_OF_NUMBER, number) adds
 *     of an array    the sum of the mixed digests: that of the multiset of its elements, in any order
 *
 * Rejected: a hash that goes from word to word, because one thread would have to follow it through 64 KiB. */
#ifndef ELEMENT_DIGEST_H
#define ELEMENT_DIGEST_H

#include <string.h>
#include "kernels/base/keytype.h"

#define WORD_OF_NUMBER UINT64_MAX /* the place of a number, which is no byte of the element */

KEYTYPE_FN void digest_add_word(uint64_t place, uint64_t word, uint64_t digest[2])
{
    fingerprint_add_u128((uint128)place << 64 | word, digest);
}

/* Add the words of the `bytes` at `from`, on the host; the first word has the place `place`. Returns the place after the last word. */
static inline uint64_t digest_add_bytes(const void *from, size_t bytes, uint64_t place, uint64_t digest[2])
{
    const char *at = (const char *)from;
    uint64_t word;
    for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        digest_add_word(place++, word, digest);
    }
    if (bytes > 0) {
        word = 0;
        memcpy(&word, at, bytes);
        digest_add_word(place++, word, digest);
    }
    return place;
}

/* One element's share of the fingerprint of an array. */
KEYTYPE_FN void digest_share(const uint64_t digest[2], uint64_t sum[2])
{
    uint64_t a[2] = {0, 0}, b[2] = {0, 0};
    fingerprint_add(digest[0], a);
    fingerprint_add(digest[1], b);
    sum[0] += a[0];
    sum[1] += b[1];
}

/* An element's shares of two fingerprints: of the elements alone, and of each with its number. */
KEYTYPE_FN void digest_shares(const uint64_t digest[2], int64_t number, uint64_t fingerprint[2],
                              uint64_t placed[2])
{
    uint64_t numbered[2] = {digest[0], digest[1]};
    digest_share(digest, fingerprint);
    digest_add_word(WORD_OF_NUMBER, (uint64_t)number, numbered);
    digest_share(numbered, placed);
}

#endif
