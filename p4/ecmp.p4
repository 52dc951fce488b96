// ECMP: a flow stays on the path that a hash of its five-tuple picks (RFC 2992).

#include <core.p4>
#include <v1model.p4>
#include "include/world.p4"
#include "include/hash.p4"

#ifndef HASH_SEED
#define HASH_SEED 64w1
#endif

control SchemeIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    World() world;
    Routes() routes;
    Mix64() mix;
    Member() member;

    apply {
        world.apply(hdr, meta.world, std);
        routes.apply(hdr.ipv4.dst, meta.world.epoch, meta.hops);
        PASS_UNLESS_CHOICE
        bit<64> mixed;
        mix.apply(HASH_SEED ^ (bit<64>)meta.world.entropy, mixed);
        bit<16> place = BELOW(mixed, meta.hops.count);
        bit<16> port;
        member.apply(meta.hops.group, place, port);
        SEND(port)
    }
}

V1Switch(WorldParser(), NoChecksum(), SchemeIngress(), NoEgress(), NoChecksum(), WorldDeparser()) main;
