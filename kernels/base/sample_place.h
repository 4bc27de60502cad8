/* Where the keys of a sample are drawn from. Compiled by C and by nvcc.
 *
 * All positions are cut into 2^log parts, and a key is drawn somewhere in each, by a hash of the part's number: at 0, 0.88, 0.43, 0.03
 * and so on of a part. With several ranks, the rank that has the beginning of a part draws from what it has of that part. 20 keys of two
 * ranks, 4 parts:
 *
 *     rank 0    X . . . . | . . . . X | X        rank 1    . . . . | X . . . .
 *
 * Rejected The beginning of each part: if the keys are sorted runs, one after the other, whose length is a multiple of a part's, the
 *          sample sees each run at the same few places, and most values not at all. Multiples of the golden ratio: keys that others have
 *          made of their numbers are such multiples, too. */
#ifndef SAMPLE_PLACE_H
#define SAMPLE_PLACE_H

#include "kernels/base/input_word.h"

/* How far into part `part` its key is drawn, in units of 2^-64 of its width. */
KEYTYPE_FN uint64_t sample_jitter(uint64_t part)
{
    return input_mix(part * INPUT_GAMMA);
}

/* A rank's part of a sample. Kernels get it by value. */
struct sample_share {
    int64_t before, count; /* the rank's keys: how many are on the ranks before, and its own */
    int64_t total;         /* keys of all ranks, at least 2^log */
    int log;
    int first, drawn; /* this rank draws from parts first .. first + drawn - 1, which begin among its keys */
};

/* Where part `part` begins: floor(part * total / 2^log). The product itself may not fit. */
KEYTYPE_FN int64_t sample_part_begin(int64_t part, int64_t total, int log)
{
    const int64_t whole = total >> log, rest = total & ((INT64_C(1) << log) - 1);
    return part * whole + (part * rest >> log);
}

/* The global position of key i of a share. */
KEYTYPE_FN int64_t sample_place(const struct sample_share *share, int i)
{
    enum { BITS = 24 }; /* of the fraction: the part may have any width */
    const int64_t part = (int64_t)share->first + i, end = share->before + share->count;
    const int64_t begin = sample_part_begin(part, share->total, share->log);
    const int64_t width = sample_part_begin(part + 1, share->total, share->log) - begin;
    const int64_t fraction = (int64_t)(sample_jitter((uint64_t)part) >> (64 - BITS));
    const int64_t low = width & ((INT64_C(1) << BITS) - 1);
    const int64_t place = begin + (width >> BITS) * fraction + (low * fraction >> BITS);
    return place < end ? place : end - 1;
}

#endif
