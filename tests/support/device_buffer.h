/* Buffers as a user of the library has them: host memory and, if the build has CUDA, pinned, managed and device memory.
 * They have a file of their own, so that no other test includes CUDA. Nothing here is collective. */
#ifndef DEVICE_BUFFER_H
#define DEVICE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

enum buffer_kind { BUFFER_HOST, BUFFER_PINNED, BUFFER_MANAGED, BUFFER_DEVICE, BUFFER_KINDS };

/* Kinds that can be had, counted from BUFFER_HOST, after making `device` this thread's; 1 for a device of -1. */
int device_buffer_kinds(int device);

/* [bytes], aligned to 16, or NULL. */
void *device_buffer_alloc(enum buffer_kind kind, size_t bytes);
void device_buffer_free(enum buffer_kind kind, void *memory);

/* Copy between buffers of any kind, complete on return. */
bool device_buffer_copy(void *to, const void *from, size_t bytes);

/* Copy into memory so late that only a reader that waits for *stream will see it: the stream of the copy first
 * sleeps. `by_default`: *stream is the default stream, which waits for the stream of the copy, but has no work itself. */
bool device_buffer_copy_late(void *to, const void *from, size_t bytes, bool by_default, void **stream);

#endif
