// QALL: egress ports at random, in proportion to how idle their own queues say they are (Liu et al., IEEE TNSM 2024).
//
// A port's queue behaviour is measured where packets leave the queue, in the egress pipeline. Decisions are taken in the
// ingress pipeline. From one to the other goes a clone of a packet, recirculated, at most one in T_b for a port.

#include <core.p4>
#include <v1model.p4>

// What a clone carries (QALL Fig. 6): the occupancy in parts of 1,024 of a full queue, the dequeue interval in ticks, whether
// the queue grew, and the port.
#define METADATA @field_list(1) bit<16> clone_occupancy; @field_list(1) bit<48> clone_ticks; @field_list(1) bit<8> clone_rising; @field_list(1) bit<8> clone_port;
#include "include/world.p4"
#include "include/hash.p4"
#include "include/flowlets.p4"

// Whether every flowlet is chosen for, or every packet.
#ifndef IS_BY_FLOWLET
#define IS_BY_FLOWLET 0
#endif
// T_b.
#ifndef UPDATE_PS
#define UPDATE_PS 1000000000
#endif
// The unit of intervals, and tau in this unit.
#ifndef TICK_PS
#define TICK_PS 1000000
#endif
#ifndef TIME_CONSTANT_TICKS
#define TIME_CONSTANT_TICKS 10000
#endif
// V of a queue that grows, and of one that shrinks.
#ifndef RISING
#define RISING 2
#endif
#ifndef FALLING
#define FALLING 1
#endif
// C_max: a full queue, no interval and a rising trend. The smallest weight.
#ifndef MOST
#define MOST 20480000
#endif
#ifndef FLOOR
#define FLOOR 0
#endif
// A full queue, in bytes.
#ifndef FULL
#define FULL 375000
#endif

// The session of the clones, which a controller sets up.
const bit<32> CLONE_SESSION = 1;
// Of BMv2.
const bit<32> INSTANCE_EGRESS_CLONE = 2;
const bit<32> INSTANCE_RECIRCULATED = 4;

// Of each port, at the decision: C, from the last clone that came. Zero, as registers begin: no congestion.
register<bit<64>>(PORTS) congestion;

// Of each port, at the queue: when the last packet left and when one was last cloned, what the last one found queued, and
// whether that was more than before.
register<bit<64>>(PORTS) last_leaves;
register<bit<64>>(PORTS) last_clone;
register<bit<64>>(PORTS) last_backlog;
register<bit<8>>(PORTS) is_rising;

// QALL Alg. 1 lines 1 to 3, and QALL eqs. 4 and 5: what a clone brought.
control TakeClone(inout metadata meta) {
    apply {
        bit<64> left = 0;
        if (meta.clone_ticks < TIME_CONSTANT_TICKS) {
            left = TIME_CONSTANT_TICKS - (bit<64>)meta.clone_ticks;
        }
        bit<64> trend = FALLING;
        if (meta.clone_rising == 1) {
            trend = RISING;
        }
        congestion.write((bit<32>)meta.clone_port, (bit<64>)meta.clone_occupancy * left * trend);
    }
}

// QALL Alg. 2 lines 1 to 5: the grid of weights, and a draw in it.
control Draw(in hops_t hops, in bit<64> draw, out bit<16> port) {
    Member() member;
    apply {
        bit<64> total = 0;
        bit<64> c;
        // QALL eq. 6: W = C_max - C.
#define ADD_WEIGHT(number) bit<64> weight_##number = 0; if (IS_NEXT_HOP(hops, number)) { congestion.read(c, number); weight_##number = MOST - c; if (weight_##number < FLOOR) { weight_##number = FLOOR; } total = total + weight_##number; }
        EACH_PORT(ADD_WEIGHT)
        port = 0;
        if (total == 0) {
            // Every port is as congested as can be: no grid is left to draw from.
            member.apply(hops.group, BELOW(draw, hops.count), port);
        } else {
            bit<64> grid = (bit<64>)(((bit<128>)draw * (bit<128>)total) >> 64);
            bit<1> found = 0;
#define WALK_GRID(number) if (found == 0 && IS_NEXT_HOP(hops, number)) { if (grid < weight_##number) { found = 1; port = number; } else { grid = grid - weight_##number; } }
            EACH_PORT(WALK_GRID)
        }
    }
}

control SchemeIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    World() world;
    Routes() routes;
    FindFlowlet() find;
    PassFlowlet() pass;
    TakeClone() take_clone;
    Draw() draw;

    apply {
#ifdef REPLAY
        if (hdr.replay.event == EVENT_CLONE) {
            meta.clone_occupancy = (bit<16>)hdr.replay.word[63:49];
            meta.clone_ticks = hdr.replay.word[47:0];
            meta.clone_rising = (bit<8>)hdr.replay.word[48:48];
            meta.clone_port = (bit<8>)hdr.replay.port;
            take_clone.apply(meta);
            COLLECT
            exit;
        }
        if (hdr.replay.event == EVENT_LEAVING) {
            SEND(hdr.replay.port)
            exit;
        }
#else
        if (std.instance_type == INSTANCE_RECIRCULATED) {
            take_clone.apply(meta);
            mark_to_drop(std);
            exit;
        }
#endif
        world.apply(hdr, meta.world, std);
        routes.apply(hdr.ipv4.dst, meta.world.epoch, meta.hops);
        PASS_UNLESS_CHOICE
        bit<16> port;
        if (IS_BY_FLOWLET == 1) {
            // QALL Alg. 1 lines 11 to 20.
            flowlet_t flowlet;
            find.apply(meta.world.now_ps, meta.world.entropy, flowlet);
            port = flowlet.current - 1;
            if (flowlet.current == 0 || !IS_NEXT_HOP(meta.hops, port)) {
                draw.apply(meta.hops, meta.world.draw0, port);
            }
            pass.apply(flowlet, port);
        } else {
            draw.apply(meta.hops, meta.world.draw0, port);
        }
        SEND(port)
    }
}

// QALL Alg. 3: a packet has left the queue.
control SchemeEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        bit<64> now_ps;
        bit<64> found;
#ifdef REPLAY
        if (hdr.replay.event != EVENT_LEAVING) {
            exit;
        }
        now_ps = hdr.replay.now_ps;
        found = hdr.replay.value;
#else
        if (std.instance_type == INSTANCE_EGRESS_CLONE) {
            recirculate_preserving_field_list(1);
            exit;
        }
        now_ps = (bit<64>)std.egress_global_timestamp * 1000000;
        found = (bit<64>)std.enq_qdepth * BYTES_A_PACKET;
#endif
        bit<32> port = (bit<32>)std.egress_port;
        // V is what made the occupancy what it is: while nothing changes, the last change.
        bit<64> before;
        bit<8> rising;
        last_backlog.read(before, port);
        is_rising.read(rising, port);
        if (found > before) {
            rising = 1;
        } else if (found < before) {
            rising = 0;
        }
        last_backlog.write(port, found);
        is_rising.write(port, rising);
        bit<64> left;
        last_leaves.read(left, port);
        last_leaves.write(port, now_ps);
        // QALL Alg. 3 lines 3 to 8.
        bit<64> cloned;
        last_clone.read(cloned, port);
        if (now_ps - cloned > UPDATE_PS) {
            last_clone.write(port, now_ps);
            // Switches do not divide. Multiplications with reciprocals are exact here for lengths below 2^32 and intervals
            // below 2^64 ps.
            bit<128> occupancy = ((bit<128>)found * (((128w1 << 74) + FULL - 1) / FULL)) >> 64;
            if (occupancy > 1024) {
                occupancy = 1024;
            }
            meta.clone_port = (bit<8>)port;
            meta.clone_occupancy = (bit<16>)occupancy;
            meta.clone_ticks = (bit<48>)(((bit<192>)(now_ps - left) * (((192w1 << 104) + TICK_PS - 1) / TICK_PS)) >> 104);
            meta.clone_rising = rising;
#ifdef REPLAY
            // The replay brings it back when recirculation would have.
            hdr.replay.answer = 1;
            hdr.replay.word = meta.clone_occupancy[14:0] ++ rising[0:0] ++ meta.clone_ticks;
#else
            clone_preserving_field_list(CloneType.E2E, CLONE_SESSION, 1);
#endif
        }
    }
}

V1Switch(WorldParser(), NoChecksum(), SchemeIngress(), SchemeEgress(), NoChecksum(), WorldDeparser()) main;
