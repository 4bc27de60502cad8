/* The first failure of several threads that work side by side, with its text: status.h keeps a text for each thread. */
#ifndef THREAD_FAILURES_H
#define THREAD_FAILURES_H

#include <pthread.h>
#include <stdbool.h>
#include "kernels/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct thread_failures {
    pthread_mutex_t lock; /* of the two below. Not a critical section: the library would export its name */
    hsort_status first;
    char text[STATUS_TEXT_BYTES];
};

/* Begin without a failure. */
void thread_failures_begin(struct thread_failures *failures);

/* If `status` is a failure of this thread, take it over with its text, which the thread then forgets: the thread may
 * live on, and fail for another cause. Any thread. */
void thread_failures_note(struct thread_failures *failures, hsort_status status);

/* Has any thread failed so far? Any thread. */
bool thread_failures_any(struct thread_failures *failures);

/* When all threads are done: the first failure, with its text, as one of the thread that calls. */
hsort_status thread_failures_end(struct thread_failures *failures);

#ifdef __cplusplus
}
#endif

#endif
