#include "kernels/base/threads.h"
#include <unistd.h>

enum { THREADS_PER_UNIT = 4, THREADS_ANYWHERE = 64 };

int threads_max(void)
{
    const long units = sysconf(_SC_NPROCESSORS_CONF);
    return units * THREADS_PER_UNIT > THREADS_ANYWHERE ? (int)units * THREADS_PER_UNIT : THREADS_ANYWHERE;
}
