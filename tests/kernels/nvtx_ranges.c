/* Two programs from one text, for test_nvtx.sh. As a library to which NVTX_INJECTION64_PATH leads NVTX, as it would lead to a
 * profiler's, it says on stdout which ranges begin and end. As a program it has two spans, one inside the other, and no trace. */
#include <stdio.h>
#ifdef AS_PROFILER
#include <nvtx3/nvToolsExt.h>

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

static int depth;

static int NVTX_API push_range(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    (void)domain;
    printf("%d %s\n", ++depth, range->message.ascii);
    return depth;
}

static int NVTX_API pop_range(nvtxDomainHandle_t domain)
{
    (void)domain;
    printf("%d ends\n", depth--);
    return depth;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable functions = NULL;
    unsigned count = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &count))
        return 0;
    *functions[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push_range;
    *functions[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop_range;
    return 1;
}
#else
#include "kernels/base/trace.h"

int main(void)
{
    struct trace_span *outer = trace_begin(NULL, "local sort"), *inner = trace_begin(NULL, "merge");
    trace_end(inner);
    trace_end(outer);
    return 0;
}
#endif
