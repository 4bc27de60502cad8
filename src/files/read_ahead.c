#include "src/files/read_ahead.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/lesser.h"
#include "src/files/file_internal.h"

enum {
    STEP_BYTES = 2 << 20, /* of one call: Linux cuts what is longer into as much itself */
    UNDER_WAY = 32, /* steps that may not have come yet: a disk needs many, a file server must not get all */
    FILES_MOST = 64 /* whose sizes every rank asks for, to find its share */
};

static struct {
    pthread_t thread;
    bool begun; /* the thread has begun, and is not joined */
    int fd;     /* owned */
    dev_t device;
    ino_t inode;
    int64_t first, limit;     /* the range at most */
    atomic_int_least64_t end; /* of what is asked for */
    atomic_bool stopped;
} ahead;

/* Wait until the step that begins at `place` has come, or cannot. */
static void wait_for(int64_t place)
{
    char byte;
    if (pread(ahead.fd, &byte, 1, place) < 1)
        read_ahead_stop();
}

static void *ask_in_steps(void *unused)
{
    const int64_t lag = (int64_t)UNDER_WAY * STEP_BYTES;
    for (int64_t at = ahead.first; at < ahead.limit && !atomic_load(&ahead.stopped); at += STEP_BYTES) {
        const int64_t bytes = lesser(STEP_BYTES, ahead.limit - at);
        if (posix_fadvise(ahead.fd, at, bytes, POSIX_FADV_WILLNEED) != 0)
            break;
        atomic_store(&ahead.end, at + bytes);
        if (at - lag >= ahead.first)
            wait_for(at - lag);
    }
    return unused;
}

/* Open the file in which the share begins, and set its range. False: there is none. */
static bool find_range(const char *const *paths, int count, int rank, int ranks, int64_t bytes_max)
{
    struct stat facts;
    int64_t all = 0, before = 0;
    if (count > FILES_MOST)
        return false;
    for (int i = 0; i < count; i++) {
        if (stat(paths[i], &facts) != 0)
            return false;
        all += facts.st_size;
    }
    const int64_t share = all / ranks, first = share * rank; // near enough: the headers are small
    for (int i = 0; i < count && share > 0; i++) {
        if (stat(paths[i], &facts) != 0)
            return false;
        if (first < before + facts.st_size) {
            if (file_open_regular(paths[i], true, &ahead.fd, &facts) != HSORT_OK) {
                status_clear(); // whoever wants to read it will say so
                return false;
            }
            ahead.device = facts.st_dev;
            ahead.inode = facts.st_ino;
            ahead.first = first - before;
            ahead.limit = ahead.first + lesser(bytes_max, lesser(share, facts.st_size - ahead.first));
            return true;
        }
        before += facts.st_size;
    }
    return false;
}

void read_ahead_start(const char *const *paths, int count, int rank, int ranks, int64_t bytes_max)
{
    sigset_t all, before;
    if (ahead.begun || rank < 0 || rank >= ranks || !find_range(paths, count, rank, ranks, bytes_max))
        return;
    atomic_store(&ahead.end, ahead.first);
    atomic_store(&ahead.stopped, false);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    ahead.begun = pthread_create(&ahead.thread, NULL, ask_in_steps, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!ahead.begun)
        close(ahead.fd);
}

bool read_ahead_is_of(int fd)
{
    struct stat facts;
    return ahead.begun && fstat(fd, &facts) == 0 && facts.st_dev == ahead.device &&
           facts.st_ino == ahead.inode;
}

void read_ahead_stop(void)
{
    atomic_store(&ahead.stopped, true);
}

int64_t read_ahead_at(int64_t offset)
{
    const int64_t end = ahead.begun ? atomic_load(&ahead.end) : 0;
    return offset >= ahead.first && offset < end ? end - offset : 0;
}

void read_ahead_end(void)
{
    if (!ahead.begun)
        return;
    read_ahead_stop();
    pthread_join(ahead.thread, NULL);
    close(ahead.fd);
    ahead.begun = false;
}
