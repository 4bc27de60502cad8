#include "build_info.h"
#include "kernels/engine.h"
#include "hypersort.h"
#include <stdio.h>

// "Open MPI 4.1.4", "MPICH 4.0.2"; for another MPI, the version of the standard.
#define TEXT(x) #x
#define VERSION_TEXT(major, minor, release) TEXT(major) "." TEXT(minor) "." TEXT(release)
#if defined(OMPI_MAJOR_VERSION)
#define MPI_LIBRARY "Open MPI " VERSION_TEXT(OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)
#elif defined(MPICH_VERSION)
#define MPI_LIBRARY "MPICH " MPICH_VERSION
#else
#define MPI_LIBRARY "MPI " VERSION_TEXT(MPI_VERSION, MPI_SUBVERSION, 0)
#endif

int hsort_version(void)
{
    return HSORT_VERSION_MAJOR * 10000 + HSORT_VERSION_MINOR * 100 + HSORT_VERSION_PATCH;
}

const char *hsort_build_info(void)
{
    static _Thread_local char line[256];
    int cuda = cuda_build_version();
    char cuda_text[32] = "no CUDA";
    if (cuda > 0)
        snprintf(cuda_text, sizeof cuda_text, "CUDA %d.%d", cuda / 1000, cuda % 1000 / 10);
    snprintf(line, sizeof line, "hypersort %d.%d.%d, commit %s, %s, gcc %s, %s, %s", HSORT_VERSION_MAJOR,
             HSORT_VERSION_MINOR, HSORT_VERSION_PATCH, BUILD_COMMIT, BUILD_TYPE, __VERSION__, cuda_text,
             MPI_LIBRARY);
    return line;
}
