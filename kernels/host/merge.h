/* Merge of two runs on CPU cores (merge.c says how it works). */
#ifndef MERGE_H
#define MERGE_H

#include <stdint.h>

/* Merge runs a [a_count] and b [b_count] of keys of `key_bytes` (4, 8 or 16) into out [a_count + b_count], which
 * overlaps neither. Equal keys: those of `a` first. */
void merge_runs(int threads, int key_bytes, const void *a, int64_t a_count, const void *b, int64_t b_count,
                void *out);

/* The same by the calling thread alone. */
void merge_alone(int key_bytes, const void *a, int64_t a_count, const void *b, int64_t b_count, void *out);

/* How many of the first `rank` keys of the merged whole are of a. */
int64_t merge_cut(int key_bytes, const void *a, int64_t a_count, const void *b, int64_t b_count, int64_t rank);

#endif
