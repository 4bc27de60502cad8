/* Which CUDA devices this process can see, and what they are. Nothing here needs a context, so that a rank can look at
 * every GPU of its node without taking memory on any. */
#include "kernels/cuda/engine/cuda_engine.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Why cudaGetDeviceCount() found nothing, on one line. */
static void explain_no_device(cudaError_t error, char *why, size_t bytes)
{
    int driver = 0;
    cudaDriverGetVersion(&driver); // 0 where no driver is installed
    if (driver == 0)
        snprintf(why, bytes, "no NVIDIA driver is installed");
    else if (error == cudaErrorInsufficientDriver)
        snprintf(why, bytes, "the NVIDIA driver is too old: it supports CUDA %d.%d, this build needs %d.%d",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else if (error == cudaSuccess || error == cudaErrorNoDevice)
        snprintf(why, bytes, "no GPU is visible to this process%s",
                 getenv("CUDA_VISIBLE_DEVICES") ? " (CUDA_VISIBLE_DEVICES is set)" : "");
    else
        snprintf(why, bytes, "%s", cudaGetErrorString(error));
}

extern "C" int cuda_device_count(char *why, size_t bytes)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (bytes > 0)
        why[0] = '\0';
    if (error == cudaSuccess && count > 0)
        return count;
    explain_no_device(error, why, bytes);
    return 0;
}

/* Write "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx". A MIG instance is known by its name, which ends in "MIG
 * 1g.10gb". */
static void format_uuid(const cudaDeviceProp *properties, char *text, size_t bytes)
{
    const unsigned char *u = (const unsigned char *)properties->uuid.bytes;
    snprintf(text, bytes, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             strstr(properties->name, " MIG ") ? "MIG" : "GPU", u[0], u[1], u[2], u[3], u[4], u[5], u[6],
             u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

extern "C" hsort_status cuda_device_get(int index, struct cuda_device *device)
{
    char why[STATUS_TEXT_BYTES / 2];
    memset(device, 0, sizeof *device);
    int count = cuda_device_count(why, sizeof why);
    if (index < 0 || index >= count)
        return count == 0 ? status_fail(HSORT_NO_DEVICE, "no GPU %d: %s", index, why)
                          : status_fail(HSORT_NO_DEVICE, "no GPU %d: this process sees %d", index, count);

    cudaDeviceProp properties;
    TRY_CUDA(cudaGetDeviceProperties(&properties, index));
    TRY_CUDA(cudaDeviceGetPCIBusId(device->pci, (int)sizeof device->pci, index));
    if (cudaDeviceGetAttribute(&device->numa_node, cudaDevAttrHostNumaId, index) != cudaSuccess) {
        cudaGetLastError(); // older drivers do not know of it
        device->numa_node = -1;
    }
    for (char *c = device->pci; *c; c++) // hwloc and Linux write bus ids in lower case
        *c = (char)tolower((unsigned char)*c);
    snprintf(device->name, sizeof device->name, "%.*s", (int)sizeof device->name - 1, properties.name);
    format_uuid(&properties, device->uuid, sizeof device->uuid);
    device->bytes = (int64_t)properties.totalGlobalMem;
    device->compute = properties.major * 10 + properties.minor;
    return HSORT_OK;
}

extern "C" int cuda_build_version(void)
{
    return CUDART_VERSION;
}
