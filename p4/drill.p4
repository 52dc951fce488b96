// DRILL(2, 1): each packet takes the shortest queue of two sampled ports and a remembered one (Ghorbani et al., SIGCOMM
// 2017).

#include <core.p4>
#include <v1model.p4>
#include "include/world.p4"
#include "include/hash.p4"

// Memories: one for the switch, or with IS_PER_RACK one for each rack.
#ifndef RACKS
#define RACKS 1024
#endif
#ifndef IS_PER_RACK
#define IS_PER_RACK 0
#endif

// One more than the port that was least loaded last time; zero before the first.
register<bit<16>>(RACKS) remembered;

control SchemeIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    World() world;
    Routes() routes;
    Member() first_member;
    Member() second_member;

    apply {
        world.apply(hdr, meta.world, std);
        routes.apply(hdr.ipv4.dst, meta.world.epoch, meta.hops);
        PASS_UNLESS_CHOICE

        // Two different places: a number among those that are left, moved up by one if it is not below the first.
        bit<16> first = BELOW(meta.world.draw0, meta.hops.count);
        bit<16> second = BELOW(meta.world.draw1, meta.hops.count - 1);
        if (first <= second) {
            second = second + 1;
        }
        bit<16> port;
        bit<64> load;
        bit<16> other;
        bit<64> other_load;

        // A remembered port wins over a sampled one that is as loaded, and the first sample over the second.
        first_member.apply(meta.hops.group, first, port);
        queue_bytes.read(load, (bit<32>)port);
        bit<32> memory = 0;
        if (IS_PER_RACK == 1) {
            memory = (bit<32>)meta.hops.rack;
        }
        bit<16> known;
        remembered.read(known, memory);
        if (known != 0 && IS_NEXT_HOP(meta.hops, known - 1)) {
            other = known - 1;
            queue_bytes.read(other_load, (bit<32>)other);
            if (other_load <= load) {
                port = other;
                load = other_load;
            }
        }
        second_member.apply(meta.hops.group, second, other);
        queue_bytes.read(other_load, (bit<32>)other);
        if (other_load < load) {
            port = other;
        }
        remembered.write(memory, port + 1);
        SEND(port)
    }
}

V1Switch(WorldParser(), NoChecksum(), SchemeIngress(), PlainEgress(), NoChecksum(), WorldDeparser()) main;
