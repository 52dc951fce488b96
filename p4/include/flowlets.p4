// A table of flowlets: of fixed size, indexed by a hash, without the five-tuple. Flows that meet in an entry share it.

#ifndef FLOWLETS_P4
#define FLOWLETS_P4

#include "hash.p4"

#ifndef HASH_SEED
#define HASH_SEED 64w1
#endif
// A power of two.
#ifndef ENTRIES
#define ENTRIES 65536
#endif
// The longest pause inside a flowlet, in ticks of 1,024 ps: 500 us.
#ifndef PAUSE_LIMIT
#define PAUSE_LIMIT 488282
#endif

// The time of the entry's last packet in ticks, above; one more than its port in the low 16 bits. Zero was never used.
register<bit<64>>(ENTRIES) flowlets;

struct flowlet_t {
    bit<32> place;
    bit<48> stamp;
    // One more than the port of the flowlet that goes on; zero if none does.
    bit<16> current;
}

// The entry of a packet that passes now.
control FindFlowlet(in bit<64> now_ps, in bit<32> entropy, out flowlet_t flowlet) {
    Mix64() mix;
    apply {
        bit<64> mixed;
        mix.apply(HASH_SEED ^ (bit<64>)entropy, mixed);
        flowlet.place = (bit<32>)(mixed & (ENTRIES - 1));
        flowlet.stamp = (bit<48>)(now_ps >> 10);
        bit<64> entry;
        flowlets.read(entry, flowlet.place);
        flowlet.current = (bit<16>)entry;
        if (flowlet.stamp - (bit<48>)(entry >> 16) > PAUSE_LIMIT) {
            flowlet.current = 0;
        }
    }
}

// The packet of this entry takes `port`.
control PassFlowlet(in flowlet_t flowlet, in bit<16> port) {
    apply {
        flowlets.write(flowlet.place, flowlet.stamp ++ (port + 1));
    }
}

#endif
