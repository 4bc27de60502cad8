/* Which transport ranks choose: what they learn about MPI by messages, and what options rule out. The test runs on the host engine,
 * which stands for a GPU's engine when MPI is asked. */
#include "mpi/transport/transport.h"
#include "tests/mpi/rank_engine.h"
#include "tests/mpi/watched_messages.h"

/* Messages find out whether MPI takes memory of the GPU. If one rank cannot begin a message, or gets other bytes, no other rank waits
 * for it, and all ranks know it. Nodes may be of different sizes. */
static void test_probe(void)
{
    static const struct {
        hsort_choice choice;
        bool uneven, cannot_send, cannot_receive;
        int wrong_message; /* of four */
        bool takes;
    } cases[] = {
        {.choice = HSORT_CHOICE_ON, .uneven = true, .takes = true},
        {.choice = HSORT_CHOICE_ON, .wrong_message = 1},
        {.choice = HSORT_CHOICE_ON, .wrong_message = 4},
        {.choice = HSORT_CHOICE_AUTO, .takes = true}, // the library says so, by the environment
        {.choice = HSORT_CHOICE_OFF},
        // last, because messages are left that other cases might receive
        {.choice = HSORT_CHOICE_ON, .cannot_send = true},
        {.choice = HSORT_CHOICE_ON, .cannot_receive = true},
    };
    const struct engine_ops *ops = engine->ops;
    const int node_size = comm.node_size;
    const bool is_last = comm.rank == comm.size - 1;
    struct engine_ops probed = *ops;
    probed.kind = HSORT_ENGINE_CUDA;
    engine->ops = &probed;
    setenv("MPICH_GPU_SUPPORT_ENABLED", "1", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct transport_options options = {.mpi_device_pointers = cases[i].choice};
        struct transport *transport;
        int takes;
        comm.node_size = cases[i].uneven ? 1 + comm.rank % 2 : node_size;
        cannot_send = cases[i].cannot_send && is_last;
        cannot_receive = cases[i].cannot_receive && is_last;
        wrong_message = is_last ? cases[i].wrong_message : 0;
        const hsort_status status = transport_choose(&comm, engine, &options, &transport, &takes);
        cannot_send = cannot_receive = false;
        CHECK(status == HSORT_OK && takes == cases[i].takes, "case %zu: takes %d", i, takes);
        CHECK(wrong_message == 0, "case %zu: %d messages too few", i, wrong_message);
        if (status == HSORT_OK)
            transport->ops->close(transport);
    }
    unsetenv("MPICH_GPU_SUPPORT_ENABLED");
    engine->ops = ops;
}

/* Ranks of a node share memory, unless an option forbids it. */
static void test_shared_memory_off(void)
{
    for (int off = 0; off < 2; off++) {
        const struct transport_options options = {
            .transport = HSORT_TRANSPORT_STAGED, .shared_memory = off ? HSORT_CHOICE_OFF : HSORT_CHOICE_AUTO};
        struct transport *transport;
        shm_segments = 0;
        const hsort_status status = transport_choose(&comm, engine, &options, &transport, &(int){0});
        CHECK(status == HSORT_OK && shm_segments == !off, "off: %d, %d segments", off, shm_segments);
        if (status == HSORT_OK)
            transport->ops->close(transport);
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    if (!open_rank(false, engine_open_host))
        return ranks_finish();
    test_probe();
    test_shared_memory_off();
    engine->ops->close(engine);
    comm_close(&comm);
    return ranks_finish();
}
