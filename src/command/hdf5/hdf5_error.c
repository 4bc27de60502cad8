#include "src/command/hdf5/hdf5_error.h"
#include <hdf5.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include "src/command/records_hdf5.h"

/* The innermost cause that the first failed call gave; "" unless a call has failed. */
static char cause[STATUS_TEXT_BYTES / 2];

/* A file driver describes a failed request with its time, addresses and sizes. Keep what failed and what the system says.
 *
 *     file write failed: time = Mon Nov 30 13:55:05 2026, filename = 'out.h5', ..., error message = 'No space left on device', buf = ...
 *  -> file write failed: No space left on device */
static void keep_text(const char *text)
{
    static const char message_begins[] = "error message = '";
    const char *facts = strstr(text, ": time = "), *message = facts ? strstr(facts, message_begins) : NULL;
    const size_t length = facts ? (size_t)(facts - text) : strlen(text);
    message = message ? message + sizeof message_begins - 1 : "";
    snprintf(cause, sizeof cause, "%.*s%s%.*s", (int)length, text, *message ? ": " : "",
             (int)strcspn(message, "'"), message);
}

/* H5E_walk2_t: the first error is the innermost. */
static herr_t take_cause(unsigned n, const H5E_error2_t *error, void *user)
{
    (void)user;
    if (n == 0)
        keep_text(error->desc ? error->desc : "");
    return 0;
}

/* H5E_auto2_t: called when a call fails, because the next call would forget why. */
static herr_t keep_cause(hid_t stack, void *user)
{
    return cause[0] ? 0 : H5Ewalk2(stack, H5E_WALK_UPWARD, take_cause, user);
}

/* Called before MPI_Init(): otherwise HDF5 would, in MPI_Finalize(), close what a failed run has left open, and all ranks must do that
 * together. A file system without locks is no reason to refuse a file, unless the user's environment says so. */
void hdf5_start(void)
{
    setenv("HDF5_USE_FILE_LOCKING", "BEST_EFFORT", 0);
    H5dont_atexit();
    H5open();
    H5Eset_auto2(H5E_DEFAULT, keep_cause, NULL);
}

const char *hdf5_version(void)
{
    return H5_VERS_INFO + strlen("HDF5 library version: ");
}

void hdf5_forget(void)
{
    cause[0] = '\0';
}

const char *hdf5_cause_of_disk(int fd)
{
    struct statvfs disk;
    return fstatvfs(fd, &disk) == 0 && disk.f_blocks > 0 && disk.f_bavail == 0 ? ": No space left on device"
                                                                               : "";
}

hsort_status hdf5_fail(hsort_status status, const char *format, ...)
{
    char text[STATUS_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    status_fail(status, "%.300s%s%.200s", text, cause[0] ? ": HDF5: " : "", cause);
    hdf5_forget();
    return status;
}
