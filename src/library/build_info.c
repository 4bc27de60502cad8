#include "build_info.h"
#include "kernels/engine.h"
#include "hypersort.h"
#include <stdio.h>

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
    snprintf(line, sizeof line, "hypersort %d.%d.%d, commit %s, %s, gcc %s, %s, Open MPI %d.%d.%d",
             HSORT_VERSION_MAJOR, HSORT_VERSION_MINOR, HSORT_VERSION_PATCH, BUILD_COMMIT, BUILD_TYPE,
             __VERSION__, cuda_text, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
    return line;
}
