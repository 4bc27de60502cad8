/* The simulated cluster: nodes of 8 GPUs. A host of SimGrid is a GPU, and takes one rank.
 *
 *     node 0   gpu0 ==nvlink==+==nvlink== gpu7       any two GPUs of a node: nvlink up, nvlink down
 *               |                          |
 *              nic                        nic        every GPU has its own network card
 *               |                          |
 *     ==========+===== switch =============+=======  two nodes: nic up, nic down. The switch holds up nobody
 *               |                          |
 *     node 1   gpu8                       gpu15
 *
 * Links carry as much in one direction while they carry the other. A fat tree without a taper behaves like one switch
 * here, where no two messages of a round end at one card. Half of a latency is on the way up and half on the way down. */
#include <simgrid/s4u.hpp>
#include <cstdlib>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

/* A number of the environment, which run.sh sets. */
static double setting(const char *name)
{
    const char *text = getenv(name);
    if (!text) {
        fprintf(stderr, "platform: no %s in the environment: start it by run.sh\n", name);
        exit(2);
    }
    return atof(text);
}

static sg4::Link *link_of(sg4::NetZone *zone, const std::string &name, double bytes_per_second,
                          double seconds)
{
    sg4::Link *link = zone->create_split_duplex_link(name, bytes_per_second);
    link->set_latency(seconds / 2);
    link->seal();
    return link;
}

static void add_node(sg4::NetZone *cluster, int first, int gpus)
{
    using Way = sg4::LinkInRoute;
    const std::string name = "node" + std::to_string(first);
    sg4::NetZone *node = sg4::create_full_zone(name);
    node->set_parent(cluster);
    auto *door = node->create_router(name + "-door");
    std::vector<sg4::Host *> hosts;
    std::vector<const sg4::Link *> nvlinks;
    for (int gpu = first; gpu < first + gpus; gpu++) {
        const std::string own = "gpu" + std::to_string(gpu);
        sg4::Host *host = node->create_host(own, 1e9);
        host->seal();
        const sg4::Link *nic =
            link_of(node, own + "-nic", setting("SIM_NETWORK_BYTES_PER_S"), setting("SIM_NETWORK_S"));
        const sg4::Link *nvlink =
            link_of(node, own + "-nvlink", setting("SIM_NVLINK_BYTES_PER_S"), setting("SIM_NVLINK_S"));
        node->add_route(host->get_netpoint(), door, nullptr, nullptr, {Way(nic, Way::Direction::UP)}, true);
        node->add_route(host->get_netpoint(), host->get_netpoint(), nullptr, nullptr,
                        {Way(nvlink, Way::Direction::UP)}, false);
        for (size_t i = 0; i < hosts.size(); i++)
            node->add_route(host->get_netpoint(), hosts[i]->get_netpoint(), nullptr, nullptr,
                            {Way(nvlink, Way::Direction::UP), Way(nvlinks[i], Way::Direction::DOWN)}, true);
        hosts.push_back(host);
        nvlinks.push_back(nvlink);
    }
    node->seal();
    // Everything that leaves the node has passed a card, and there is nothing between cards.
    cluster->add_route(node->get_netpoint(), nullptr, door, nullptr, std::vector<Way>(), true);
}

extern "C" void load_platform(const sg4::Engine &engine);
void load_platform(const sg4::Engine &)
{
    const int gpus = (int)setting("SIM_RANKS"), per_node = (int)setting("SIM_RANKS_PER_NODE");
    sg4::NetZone *cluster = sg4::create_star_zone("cluster");
    for (int first = 0; first < gpus; first += per_node)
        add_node(cluster, first, gpus - first < per_node ? gpus - first : per_node);
    cluster->seal();
}
