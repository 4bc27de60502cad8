/* How much host memory a rank of `sort` takes: --memory. */
#include <string.h>
#include "kernels/base/host_memory.h"
#include "src/command/cli.h"
#include "src/files/number.h"

/* Without --memory a rank leaves at least SPARED_BYTES, or half of its share if that is less: requests of threads, tables and parts of
 * columns take some MiB, however little memory there is. */
enum { USUAL_PERCENT = 80, SPARED_BYTES = 16 << 20 };

/* Each rank's share of a part of what the ranks of this node may still take together. */
static size_t part_of_node(const struct comm *comm, uint64_t percent)
{
    return host_memory_available() / 100 * percent / (size_t)comm->node_size;
}

/* The share if --memory is not given. */
static size_t usual_part(const struct comm *comm)
{
    const size_t usual = part_of_node(comm, USUAL_PERCENT), all = part_of_node(comm, 100);
    const size_t less = all > 2 * SPARED_BYTES ? all - SPARED_BYTES : all / 2;
    return less < usual ? less : usual;
}

hsort_status cli_memory(const struct comm *comm, const struct cli_options *options, size_t *bytes)
{
    const char *text = options->memory_size;
    const size_t length = text ? strlen(text) : 0;
    char digits[8] = "";
    uint64_t number;
    if (!text) {
        *bytes = usual_part(comm);
        return HSORT_OK;
    }
    if (length > 1 && length < sizeof digits && text[length - 1] == '%') {
        memcpy(digits, text, length - 1);
        if (!number_parse(digits, false, 100, &number) || number == 0)
            return status_fail(HSORT_ARGUMENT, "--memory: '%s' is not a part", text);
        *bytes = part_of_node(comm, number);
        return HSORT_OK;
    }
    if (!number_parse(text, true, INT64_MAX, &number) || number == 0) // reports count in int64_t
        return status_fail(HSORT_ARGUMENT, "--memory: '%s' is not a size", text);
    *bytes = (size_t)number;
    return HSORT_OK;
}
