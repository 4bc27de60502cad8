/* Statuses inside the library: how an error gets its text and travels up. A leaf: every layer may include it.
 *
 * A function that fails calls status_fail() once, where the cause is known, and returns its result. The text
 * is kept per thread until comm_agree() (mpi/comm/comm.h) brings it to every rank. A cause is recorded once:
 * the first text since the last status_clear() stays, so that a follow-up failure does not hide it. Only a
 * failure of MPI takes the place of another: memory that lacks is tried again, which is not for ranks that may
 * not be together any more. */
#ifndef STATUS_H
#define STATUS_H

#include <stddef.h>
#include "kernels/base/hypersort_types.h"

enum { STATUS_TEXT_BYTES = 512 };

#ifdef __cplusplus
extern "C" {
#endif

/* Record one line of text (printf style, no newline) and return `status`. Not collective. */
hsort_status status_fail(hsort_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text of the failure that is kept since status_clear(), "" if there was none. Owned by this thread. */
const char *status_text(void);

/* Forget the recorded text. Called at the entry of each public function. */
void status_clear(void);

#ifdef __cplusplus
}
#endif

/* Pass a failure up at once. Only for local work: never between two communication steps (mpi/README.md). */
#define TRY(call)                                                                                             \
    do {                                                                                                      \
        hsort_status try_status_ = (call);                                                                    \
        if (try_status_ != HSORT_OK)                                                                          \
            return try_status_;                                                                               \
    } while (0)

/* Keep `happened` in *first unless that has failed already; HSORT_MPI is always kept. For steps that must be taken even after a
 * failure: those that other ranks wait for, and those that free something. */
static inline void keep_first_error(hsort_status *first, hsort_status happened)
{
    if (*first == HSORT_OK || happened == HSORT_MPI)
        *first = happened;
}

#endif
