/* Memory that the system lets only its owner read, whoever else may read the process: like device memory, but without a device. */
#ifndef SECRET_MEMORY_H
#define SECRET_MEMORY_H

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NULL: there is none, because the system is too old, forbids it, or limits it. */
static inline void *secret_memory_take(size_t bytes)
{
    void *memory = MAP_FAILED;
#ifdef SYS_memfd_secret
    const int fd = (int)syscall(SYS_memfd_secret, 0);
    if (fd < 0)
        return NULL;
    if (ftruncate(fd, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
#else
    (void)bytes;
#endif
    return memory == MAP_FAILED ? NULL : memory;
}

static inline void secret_memory_give(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

#endif
