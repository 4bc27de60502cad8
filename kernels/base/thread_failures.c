#include "kernels/base/thread_failures.h"
#include <stdio.h>

void thread_failures_begin(struct thread_failures *failures)
{
    *failures = (struct thread_failures){.first = HSORT_OK};
    pthread_mutex_init(&failures->lock, NULL);
}

void thread_failures_note(struct thread_failures *failures, hsort_status status)
{
    if (status == HSORT_OK)
        return;
    pthread_mutex_lock(&failures->lock);
    if (failures->first == HSORT_OK) {
        failures->first = status;
        snprintf(failures->text, sizeof failures->text, "%s", status_text());
    }
    pthread_mutex_unlock(&failures->lock);
    status_clear();
}

bool thread_failures_any(struct thread_failures *failures)
{
    pthread_mutex_lock(&failures->lock);
    const bool any = failures->first != HSORT_OK;
    pthread_mutex_unlock(&failures->lock);
    return any;
}

hsort_status thread_failures_end(struct thread_failures *failures)
{
    pthread_mutex_destroy(&failures->lock);
    return failures->first == HSORT_OK ? HSORT_OK : status_fail(failures->first, "%s", failures->text);
}
