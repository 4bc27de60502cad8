/* What a system call that fails leaves in errno: reports with that cause, and failures on purpose. Nothing here is collective. */
#ifndef IO_ERROR_H
#define IO_ERROR_H

#include <errno.h>
#include <string.h>
#include "kernels/base/fault.h"
#include "kernels/base/status.h"

/* Fail with the cause in errno, and leave it there: "PATH: WHAT: CAUSE". Errors HSORT_IO: always. */
static inline hsort_status io_fail(const char *path, const char *what)
{
    const int cause = errno;
    status_fail(HSORT_IO, "%s: %s: %s", path, what, strerror(cause));
    errno = cause;
    return HSORT_IO;
}

/* Count a passage of `site`. True where it must fail: errno is then `cause`, as after a call that has failed. */
static inline bool io_fault(enum fault_site site, int cause)
{
    if (!fault_hit(site))
        return false;
    errno = cause;
    return true;
}

#endif
