/* SMPI's hook where a message is delivered: the only place that sees every message, and the one that decides how many bytes
 * are really copied. In C++ because SMPI has its own copy function only there. */
#include <smpi/smpi.h>
#include "tests/simgrid/simulated.h"

int64_t messages_delivered;

static void deliver(smx_activity_t activity, void *from, size_t bytes)
{
    messages_delivered++;
    smpi_comm_copy_buffer_callback(reinterpret_cast<simgrid::kernel::activity::CommImpl *>(activity), from,
                                   real_bytes(bytes));
}

extern "C" void simulated_copy_start(void)
{
    // One hook for all ranks: that of the last rank stays.
    smpi_comm_set_copy_data_callback(deliver);
}
