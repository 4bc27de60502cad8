/* Was a directory synced to disk? The linker puts __wrap_fsync() in the place of fsync() (--wrap=fsync). Included once in a program. */
#ifndef WATCHED_FSYNC_H
#define WATCHED_FSYNC_H

#include <stdbool.h>
#include <sys/stat.h>

int __real_fsync(int fd);
int __wrap_fsync(int fd);

static struct stat watched; /* the directory */
static bool watched_is_synced;

/* Watch this directory from now on. False: it cannot be looked at. */
static inline bool watch_fsync(const char *path)
{
    watched_is_synced = false;
    return stat(path, &watched) == 0;
}

int __wrap_fsync(int fd)
{
    struct stat facts;
    if (fstat(fd, &facts) == 0 && facts.st_dev == watched.st_dev && facts.st_ino == watched.st_ino)
        watched_is_synced = true;
    return __real_fsync(fd);
}

#endif
