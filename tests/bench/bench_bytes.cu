/* How many bytes a rung moves through device memory. The part of a copy's rate that the rung reaches then says
 * whether bytes limit it. */
#include "tests/bench/bench.h"

/* Count the kernels that a sort of the data in hand launches; 0 if the sort cannot be recorded. Kernels are
 * recorded, not run. */
static int count_launches(struct bench *b, int rung)
{
    cudaStream_t stream = b->engine->streams[STREAM_WORK];
    struct sort_args args = b->args;
    cudaGraph_t graph;
    size_t count = 0;
    MUST(cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin to record"));
    const hsort_status status = ladder_sort(b->engine, rung, &args);
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    MUST(cuda_check(cudaGraphGetNodes(graph, NULL, &count), "count what was recorded"));
    cudaGraphDestroy(graph);
    return status == HSORT_OK ? (int)count : 0;
}

double bench_bytes(struct bench *b, int rung)
{
    const double keys = (double)b->count * b->type.key_bytes;
    const double pass =
        2 * (double)b->count * (b->type.key_bytes + b->type.value_bytes); // one read, one write
    if (rung_is_network(rung))
        return count_launches(b, rung) * pass; // each launch is a pass, as if it wrote every key
    switch (rung) {
    case 0: // counts, then a pass per 8-bit digit
        return keys + b->type.key_bytes * pass;
    case 6: // a local sort and a shuffle per 2-bit digit
        return 2 * 4 * b->type.key_bytes * pass;
    case 8: // two passes, the leaves; with values counts, too; if it leaves the keys to rung 7, that rung takes more
        if (b->type.value_bytes == 0)
            return 3 * pass;
        return b->type.key_bytes == 8 ? keys + 3 * pass : bench_bytes(b, 7);
    case 7: // as 0, but without the digits that are the same in all keys
        return keys + b->varying_digits * pass;
    }
    return 0;
}
