/* Keeping the first of several failures, where work goes on after one. A leaf: every layer may include it. */
#ifndef FIRST_ERROR_H
#define FIRST_ERROR_H

#include "kernels/base/status.h"

/* Keep `happened` in *first unless that has failed already. For steps that must be taken even after a
 * failure: those that other ranks wait for, and those that free something. */
static inline void keep_first_error(hsort_status *first, hsort_status happened)
{
    if (*first == HSORT_OK)
        *first = happened;
}

#endif
