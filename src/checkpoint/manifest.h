/* The manifest of a checkpoint as text, for people and for the next start. It has one line per word, in this order,
 * and each number can be written in one way only:
 *
 *     hypersort checkpoint 2                             the version of this format
 *     id 0f3c5a7e91b2d468
 *     type u64                                           of records: type record, and then also:
 *     key @0:bytes10                                     of records only
 *     order ascending
 *     keys 1000
 *     input_bytes 8128
 *     input_time 1700000000.123456789                    when it was last changed, in seconds since 1970
 *     input /data/in.npy                                 a path is the last word of its line: it may hold blanks
 *     inputs 3 00ff00ff00ff00ff                          only of several inputs: how many, and a digest of their names, sizes, times
 *     sample 0123456789abcdef                            a digest of blocks of the input; older manifests have none
 *     output_format npy
 *     output /data/out.npy
 *     written 0 250                                      the first key of a range of the output, and how many
 *     checksum 89abcdef01234567                          of all bytes before this line (checksum.h) */
#ifndef MANIFEST_H
#define MANIFEST_H

#include <stddef.h>
#include "src/checkpoint/checkpoint.h"

/* No manifest has more bytes: the manifest of a million ranks has half as many. */
enum { MANIFEST_BYTES_MOST = 64 << 20 };

/* The first bytes of a manifest, in which its id stands. */
enum { MANIFEST_HEAD_BYTES = 256 };

/* *text = the manifest of `checkpoint`, [*bytes] and a 0; the caller frees it. Not collective.
 * Errors   HSORT_HOST_MEMORY. */
hsort_status manifest_format(const struct checkpoint *checkpoint, char **text, size_t *bytes);

/* Read a manifest. Not collective.
 *   path        for the text of an error
 *   text        [bytes] and a 0
 *   checkpoint  [1] what the manifest says is written to it: `written` is new, and the temporary name is set, too; directory
 *               and lock stay. After an error nothing in it is changed.
 * Errors   HSORT_FORMAT: another version, or damaged; HSORT_HOST_MEMORY; HSORT_IO: the output's path is too long. */
hsort_status manifest_parse(const char *path, const char *text, size_t bytes, struct checkpoint *checkpoint);

/* checkpoint->part = the temporary name of the output, which contains the checkpoint's id. Not collective. Errors
 * HSORT_IO: too long. */
hsort_status manifest_name_part(struct checkpoint *checkpoint);

/* What to do about a manifest that is refused: the end of the line that says so. */
#define MANIFEST_REMEDY "remove it to start from the beginning"

/* "ascending", "descending". Not collective. Static. */
const char *manifest_order_name(hsort_order order);

#endif
