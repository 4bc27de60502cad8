/* What opening a checkpoint (checkpoint_open.c) and working with it (checkpoint.c) share. Nothing here is
 * collective. */
#ifndef CHECKPOINT_INTERNAL_H
#define CHECKPOINT_INTERNAL_H

#include "src/checkpoint/checkpoint.h"

/* Names in DIR that nobody else gives a file: DIR may be any directory of the user's. */
#define CHECKPOINT_LOCK ".hypersort-lock"
#define CHECKPOINT_NEW_MANIFEST ".hypersort-manifest"

enum { CHECKPOINT_NAME_ROOM = 64 }; /* for the longest name of ours in DIR, and its slash */

/* path [PATH_MAX] = DIR/name; returns it. checkpoint_open() has seen to it that there is room. */
const char *checkpoint_path(const struct checkpoint *checkpoint, const char *name, char *path);

/* Replace the manifest by that of `next`. Errors HSORT_IO, HSORT_HOST_MEMORY: it is the one before; or, if only
 * the directory could not be brought to disk, that of `next`. */
hsort_status checkpoint_put_manifest(const struct checkpoint *next);

/* *text = what a small file holds, [*bytes] and a 0; the caller frees it. NULL: there is none, and *bytes is 0, or it has more than
 * `most`. Errors HSORT_IO, HSORT_HOST_MEMORY. */
hsort_status checkpoint_read_text(const char *path, size_t most, char **text, size_t *bytes);

/* Remove the lock, if it is held, and let go of it. */
void checkpoint_unlock(struct checkpoint *checkpoint);

#endif
