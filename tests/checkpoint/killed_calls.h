/* What the tests that kill share: the calls of the system that change a file are caught by the linker (--wrap, CMakeLists.txt lists
 * them), and a process can be killed before its nth, or in the middle of a write. It is a child, forked from one rank that works on
 * MPI_COMM_SELF, where no communication leaves the process. */
#ifndef KILLED_CALLS_H
#define KILLED_CALLS_H

#include <stdarg.h>
#include "tests/checkpoint/checkpoints.h"

static struct comm self;
static struct work work;
static long calls_left; /* 0: nobody is killed */

/* What a test hears of calls before they are made; all or none. */
static struct {
    void (*changes)(int fd);           /* the file */
    void (*syncs)(int fd);             /* so that what was changed is on disk */
    void (*renames)(const char *path); /* or makes that name: its directory is changed */
} call_watch;

static bool dies_here(void)
{
    return calls_left > 0 && --calls_left == 0;
}

static void pass(void)
{
    if (dies_here())
        raise(SIGKILL);
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (flags & O_CREAT)
        pass();
    if (flags & O_CREAT && call_watch.renames)
        call_watch.renames(path);
    return __real_open64(path, flags, mode);
}

ssize_t __real_pwrite64(int fd, const void *bytes, size_t size, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t at)
{
    pass();
    if (dies_here()) {
        if (__real_pwrite64(fd, bytes, size / 2, at) >= 0)
            raise(SIGKILL);
    }
    if (call_watch.changes)
        call_watch.changes(fd);
    return __real_pwrite64(fd, bytes, size, at);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    pass();
    if (call_watch.syncs)
        call_watch.syncs(fd);
    return __real_fsync(fd);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    pass();
    if (call_watch.renames)
        call_watch.renames(to);
    return __real_rename(from, to);
}

#define CATCH(name, parameters, arguments) \
    int __real_##name parameters;          \
    int __wrap_##name parameters;          \
    int __wrap_##name parameters           \
    {                                      \
        pass();                            \
        return __real_##name arguments;    \
    }
CATCH(fallocate64, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes))
CATCH(ftruncate64, (int fd, off_t bytes), (fd, bytes))
CATCH(unlink, (const char *path), (path))
CATCH(mkdir, (const char *path, mode_t mode), (path, mode))

/* Wait for a child that was to be killed; false if it came through. */
static bool was_killed(pid_t child, const char *what)
{
    int ended = 0;
    CHECK(waitpid(child, &ended, 0) == child, "waitpid");
    const bool killed = WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL;
    CHECK(killed || (WIFEXITED(ended) && WEXITSTATUS(ended) == 0), "%s: ended with %d", what, ended);
    return killed;
}

#endif
