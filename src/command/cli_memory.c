/* How much host memory a rank of `sort` takes: --memory. */
#include <string.h>
#include "kernels/base/host_memory.h"
#include "src/command/cli.h"

enum { USUAL_PERCENT = 80 };

/* A part of what the ranks of this node may still take together, for each of them. */
static size_t part_of_node(const struct comm *comm, uint64_t percent)
{
    return host_memory_available() / 100 * percent / (size_t)comm->node_size;
}

hsort_status cli_memory(const struct comm *comm, const struct cli_options *options, size_t *bytes)
{
    const char *text = options->memory_size;
    const size_t length = text ? strlen(text) : 0;
    char digits[8] = "";
    uint64_t number;
    if (!text) {
        *bytes = part_of_node(comm, USUAL_PERCENT);
        return HSORT_OK;
    }
    if (length > 1 && length < sizeof digits && text[length - 1] == '%') {
        memcpy(digits, text, length - 1);
        if (!cli_parse_number(digits, false, 100, &number) || number == 0)
            return status_fail(HSORT_ARGUMENT, "--memory: '%s' is no part", text);
        *bytes = part_of_node(comm, number);
        return HSORT_OK;
    }
    if (!cli_parse_number(text, true, SIZE_MAX, &number) || number == 0)
        return status_fail(HSORT_ARGUMENT, "--memory: '%s' is no size", text);
    *bytes = (size_t)number;
    return HSORT_OK;
}
