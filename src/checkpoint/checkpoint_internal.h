/* What opening a checkpoint (checkpoint_open.c) and working with it (checkpoint.c) share. Nothing here is
 * collective. */
#ifndef CHECKPOINT_INTERNAL_H
#define CHECKPOINT_INTERNAL_H

#include "src/checkpoint/checkpoint.h"

/* Names in DIR that nobody else gives a file, because DIR may be any directory of the user's. */
#define CHECKPOINT_LOCK ".hypersort-lock"
#define CHECKPOINT_NEW_MANIFEST ".hypersort-manifest"

enum { CHECKPOINT_NAME_ROOM = 64 }; /* for our longest name in DIR, and its slash */

/* path [PATH_MAX] = DIR/name; returns it. checkpoint_open() has made sure that there is room. */
const char *checkpoint_path(const struct checkpoint *checkpoint, const char *name, char *path);

/* Replace the manifest by that of `next`. Errors HSORT_IO, HSORT_HOST_MEMORY: the manifest is then the one before; or, if only
 * the directory could not be brought to disk, that of `next`. */
hsort_status checkpoint_put_manifest(const struct checkpoint *next);

/* *text = what a small file holds, [*bytes] and a 0; the caller frees it. *text is NULL if there is no file, and then *bytes is 0,
 * or if the file has more than `most` bytes. Errors HSORT_IO, HSORT_HOST_MEMORY. */
hsort_status checkpoint_read_text(const char *path, size_t most, char **text, size_t *bytes);

/* Remove the lock's file and release the lock, if it is held. */
void checkpoint_unlock(struct checkpoint *checkpoint);

#endif
