// LetFlow: a flow may change its path after a pause, and then takes any (Vanini et al., NSDI 2017).

#include <core.p4>
#include <v1model.p4>
#include "include/world.p4"
#include "include/flowlets.p4"

control SchemeIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    World() world;
    Routes() routes;
    FindFlowlet() find;
    Member() member;
    PassFlowlet() pass;

    apply {
        world.apply(hdr, meta.world, std);
        routes.apply(hdr.ipv4.dst, meta.world.epoch, meta.hops);
        PASS_UNLESS_CHOICE
        flowlet_t flowlet;
        find.apply(meta.world.now_ps, meta.world.entropy, flowlet);
        bit<16> port = flowlet.current - 1;
        if (flowlet.current == 0 || !IS_NEXT_HOP(meta.hops, port)) {
            member.apply(meta.hops.group, BELOW(meta.world.draw0, meta.hops.count), port);
        }
        pass.apply(flowlet, port);
        SEND(port)
    }
}

V1Switch(WorldParser(), NoChecksum(), SchemeIngress(), NoEgress(), NoChecksum(), WorldDeparser()) main;
