// Flows of a connection matrix over DCTCP and per-flow ECMP in htsim: that has both, but no program with both. See compare.sh.
//
// When all flows have ended it prints the packet-hops and the CPU seconds of the event loop.
#include <ctime>
#include <fstream>
#include <iostream>
#include <vector>

#include "config.h"
#include "connection_matrix.h"
#include "dctcp.h"
#include "eventlist.h"
#include "fat_tree_topology.h"
#include "main.h"
#include "network.h"
#include "pipe.h"

EventList eventlist;
uint32_t RTT = 1; // some of htsim's objects want it

namespace {

constexpr int PACKET_BYTES = 1500;
constexpr int QUEUE_PACKETS = 250;
// htsim's retransmission timers are no events: this looks at all of them.
constexpr double TIMER_SCAN_MS = 10;

// The links of a route: elements are queue, pipe, queue, pipe, ..., and the end.
uint64_t links_of(const Route& route) {
    uint64_t links = 0;
    for (size_t i = 0; i < route.size(); i++) links += dynamic_cast<Pipe*>(route.at(i)) != nullptr;
    return links;
}

struct Flow {
    const DCTCPSrc* source;
    const TcpSink* sink;
    uint64_t bytes;
    // Links that a packet of data takes, and its acknowledgement.
    uint64_t links;

    bool is_over() const { return source->_last_acked >= bytes; }
};

// CPU seconds of this process.
double cpu_s() { return double(clock()) / CLOCKS_PER_SEC; }

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: dctcp TOPOLOGY MATRIX\n";
        return 2;
    }
    srand(1);
    srandom(1);
    // What htsim says of each flow is of no interest.
    std::ofstream nowhere;
    auto* console = std::cout.rdbuf(nowhere.rdbuf());
    Packet::set_packet_size(PACKET_BYTES);
    eventlist.setEndtime(timeFromSec(100));
    auto* fabric = FatTreeTopology::load(argv[1], nullptr, eventlist, memFromPkt(QUEUE_PACKETS), ECN, FAIR_PRIO);
    ConnectionMatrix matrix(fabric->no_of_nodes());
    if (!matrix.load(argv[2])) return 2;
    TcpRtxTimerScanner timers(timeFromMs(TIMER_SCAN_MS), eventlist);

    std::vector<Flow> flows;
    for (const connection* wanted : *matrix.getAllConnections()) {
        // A flow takes one path at random, as a hash of its five-tuple gives it.
        const auto* paths = fabric->get_bidir_paths(wanted->src, wanted->dst, false);
        const auto* back = fabric->get_bidir_paths(wanted->dst, wanted->src, false);
        auto* source = new DCTCPSrc(nullptr, nullptr, eventlist);
        auto* sink = new TcpSink();
        auto* out = new Route(*paths->at(random() % paths->size()));
        auto* answers = new Route(*back->at(random() % back->size()));
        const uint64_t links = links_of(*out) + links_of(*answers);
        out->push_back(sink);
        answers->push_back(source);
        source->set_flowsize(wanted->size);
        source->connect(*out, *answers, *sink, wanted->start);
        timers.registerTcp(*source);
        flows.push_back({source, sink, uint64_t(wanted->size), links});
    }

    const double begin = cpu_s();
    size_t ended = 0;
    while (ended < flows.size() && eventlist.doNextEvent()) {
        // Flows end in any order: the run is over with the last one.
        while (ended < flows.size() && flows[ended].is_over()) ended++;
    }
    const double used = cpu_s() - begin;

    uint64_t hops = 0;
    // Every packet of data that arrives is acknowledged. Of those that were dropped, the links before are not counted.
    for (const Flow& flow : flows) hops += flow.sink->_packets / PACKET_BYTES * flow.links;
    std::cout.rdbuf(console);
    std::cout << hops << " " << used << "\n";
    return ended == flows.size() ? 0 : 1;
}
