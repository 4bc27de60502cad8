/* A library that says about itself what the test wants, put before the real one. The real one is its dependency, so everything else is
 * found behind it.
 *   FAKE_MPI       what its MPI_Get_library_version() says
 *   FAKE_VERSION   what its hsort_version() says */
#include <stdio.h>
#include <stdlib.h>

int MPI_Get_library_version(char *text, int *length);
int hsort_version(void);

int MPI_Get_library_version(char *text, int *length)
{
    const char *says = getenv("FAKE_MPI");
    *length = snprintf(text, 256, "%s", says ? says : "no MPI");
    return 0;
}

int hsort_version(void)
{
    const char *says = getenv("FAKE_VERSION");
    return says ? atoi(says) : 0;
}
