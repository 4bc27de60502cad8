/* Copies between the device and ordinary host memory. The driver's own copy of pageable memory goes through a
 * small pinned buffer with one core; here all cores of the rank fill or empty a few larger ones while others
 * are on the link:
 *
 *     cores   fill 0 | fill 1 | fill 2 | fill 3 | wait 0, fill 4 ...
 *     link             copy 0 | copy 1 | copy 2 | copy 3 ...
 *
 * Each direction has slots of its own. A copy to the device returns with its last slots on the link, and a copy to
 * the host that is called next uses the other direction meanwhile.
 *
 * Pinning the caller's memory instead would cost more than the copy and leave it pinned where the program
 * dies. */
#ifndef PAGEABLE_H
#define PAGEABLE_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PAGEABLE_SLOTS = 4, PAGEABLE_SLOT_BYTES = 8 << 20, PAGEABLE_THREADS_MAX = 16 };

struct pageable {
    void *slots; /* [PAGEABLE_SLOTS * PAGEABLE_SLOT_BYTES] pinned; NULL until first used */
    cudaEvent_t copied[PAGEABLE_SLOTS]; /* the last copy from or to the slot */
};

/* Copy [bytes] on `stream` between device memory and pageable host memory. To the device: the host memory may
 * be reused on return, the copy itself is asynchronous. To the host: complete on return. The device is
 * current. */
cudaError_t pageable_to_device(struct pageable *pageable, void *to, const void *from, size_t bytes,
                               cudaStream_t stream);
cudaError_t pageable_to_host(struct pageable *pageable, void *to, const void *from, size_t bytes,
                             cudaStream_t stream);

/* Free the slots. */
void pageable_close(struct pageable *pageable);

#ifdef __cplusplus
}
#endif

#endif
