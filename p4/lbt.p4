// LBT: three classes of flows, and two queue lengths that say when two of them move (Wang et al., JNCA 2023).
//
// A controller computes the thresholds from what the switch counted in a period (LBT §4.1): that takes square roots. It
// reads the counts, writes both thresholds, and moves on to the next period.

#include <core.p4>
#include <v1model.p4>
#include "include/world.p4"
#include "include/hash.p4"

#ifndef HASH_SEED
#define HASH_SEED 64w1
#endif
// A power of two.
#ifndef ENTRIES
#define ENTRIES 65536
#endif
// Bytes that a flow has sent when it is long.
#ifndef LONG_AFTER
#define LONG_AFTER 100000
#endif
// Periods of silence after which a flow is a new one.
#ifndef FORGET
#define FORGET 40
#endif

const bit<32> SHORT = 0;
const bit<32> LONG = 1;
const bit<32> BEST_EFFORT = 2;

// Of each flow: the period of its last packet, the bytes of data that it sent, one more than its port.
register<bit<32>>(ENTRIES) flow_period;
register<bit<32>>(ENTRIES) flow_bytes;
register<bit<16>>(ENTRIES) flow_port;

// What the controller writes: the number of the period, and the thresholds of long and of best-effort flows.
const bit<16> REGISTER_PERIOD = 1;
const bit<16> REGISTER_THRESHOLD = 2;
register<bit<32>>(1) period;
register<bit<64>>(2) thresholds;

// What the controller reads and clears: flows and bytes of this period, by class.
register<bit<32>>(3) load_flows;
register<bit<64>>(3) load_bytes;

// A data packet is counted to its class. A flow that became long in this period was counted as short before.
control Count(in bit<32> class, in bool is_first, in bool became_long, in bit<16> wire_bytes) {
    apply {
        bit<32> flows;
        bit<64> bytes;
        load_flows.read(flows, class);
        if (is_first || became_long) {
            load_flows.write(class, flows + 1);
        }
        if (became_long) {
            load_flows.read(flows, SHORT);
            load_flows.write(SHORT, flows |-| 1);
        }
        load_bytes.read(bytes, class);
        load_bytes.write(class, bytes + (bit<64>)wire_bytes);
    }
}

// The best port of a look over all next hops from a place on: the ports from `first` on come before those below it, so
// each half has a best one of its own.
struct look_over_t {
    bit<1>  found;
    bit<16> port;
    bit<64> bytes;
}

// The shortest queue; of equally short ones, the first from `first` on.
control Shortest(in hops_t hops, in bit<16> first, out bit<16> port) {
    apply {
        look_over_t above = { 0, 0, 0 };
        look_over_t below = { 0, 0, 0 };
        bit<64> bytes;
#define LOOK_FOR_SHORTEST(number) if (IS_NEXT_HOP(hops, number)) { queue_bytes.read(bytes, number); if (number >= first) { if (above.found == 0 || bytes < above.bytes) { above.found = 1; above.port = number; above.bytes = bytes; } } else { if (below.found == 0 || bytes < below.bytes) { below.found = 1; below.port = number; below.bytes = bytes; } } }
        EACH_PORT(LOOK_FOR_SHORTEST)
        port = above.port;
        if (above.found == 0 || (below.found == 1 && below.bytes < above.bytes)) {
            port = below.port;
        }
    }
}

// The longest queue below the threshold, else the longest of all (LBT Alg. 1). Of equally long ones, the port where the
// flow is, then the first from `first` on.
control Longest(in hops_t hops, in bit<16> first, in bit<64> threshold, in bool has_current, in bit<16> current, out bit<16> port) {
    apply {
        look_over_t above = { 0, 0, 0 };
        look_over_t below = { 0, 0, 0 };
        look_over_t any_above = { 0, 0, 0 };
        look_over_t any_below = { 0, 0, 0 };
        bit<64> bytes;
#define LOOK_FOR_LONGEST(number) if (IS_NEXT_HOP(hops, number)) { queue_bytes.read(bytes, number); if (number >= first) { if (bytes < threshold && (above.found == 0 || bytes > above.bytes)) { above.found = 1; above.port = number; above.bytes = bytes; } if (any_above.found == 0 || bytes > any_above.bytes) { any_above.found = 1; any_above.port = number; any_above.bytes = bytes; } } else { if (bytes < threshold && (below.found == 0 || bytes > below.bytes)) { below.found = 1; below.port = number; below.bytes = bytes; } if (any_below.found == 0 || bytes > any_below.bytes) { any_below.found = 1; any_below.port = number; any_below.bytes = bytes; } } }
        EACH_PORT(LOOK_FOR_LONGEST)
        if (below.found == 1 && (above.found == 0 || below.bytes > above.bytes)) {
            above = below;
        }
        if (above.found == 0) {
            above = any_above;
            if (any_below.found == 1 && (any_above.found == 0 || any_below.bytes > any_above.bytes)) {
                above = any_below;
            }
            // The flow's own queue is not below the threshold, so it counts here alone.
            if (has_current) {
                queue_bytes.read(bytes, (bit<32>)current);
                if (bytes == above.bytes) {
                    above.port = current;
                }
            }
        }
        port = above.port;
    }
}

control SchemeIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    World() world;
    Routes() routes;
    Mix64() mix;
    Member() member;
    Count() count;
    Shortest() shortest;
    Longest() longest;

    apply {
#ifdef REPLAY
        if (hdr.replay.event == EVENT_REGISTER) {
            if (hdr.replay.name == REGISTER_PERIOD) {
                period.write(0, (bit<32>)hdr.replay.value);
            } else {
                thresholds.write(hdr.replay.place, hdr.replay.value);
            }
            COLLECT
            exit;
        }
#endif
        world.apply(hdr, meta.world, std);
        routes.apply(hdr.ipv4.dst, meta.world.epoch, meta.hops);
        PASS_UNLESS_CHOICE

        bit<32> now;
        period.read(now, 0);
        bit<64> mixed;
        mix.apply(HASH_SEED ^ (bit<64>)meta.world.entropy, mixed);
        bit<32> entry = (bit<32>)(mixed & (ENTRIES - 1));
        bit<32> last;
        bit<32> before;
        bit<16> known;
        flow_period.read(last, entry);
        flow_bytes.read(before, entry);
        flow_port.read(known, entry);
        // Silent for too long: a new flow.
        if (known == 0 || now - last > FORGET) {
            last = now;
            before = 0;
            known = 0;
        }

        // Best effort is known beforehand; long is what has sent more than LONG_AFTER (LBT §5).
        bit<32> class = SHORT;
        bit<32> sent = before;
        if (meta.world.kind == KIND_DATA) {
            sent = before |+| (bit<32>)meta.world.wire_bytes;
            if (sent > LONG_AFTER) {
                class = LONG;
            }
            if (meta.world.is_best_effort == 1) {
                class = BEST_EFFORT;
            }
            bool is_first = before == 0 || last != now;
            bool became_long = !is_first && class == LONG && before <= LONG_AFTER;
            count.apply(class, is_first, became_long, meta.world.wire_bytes);
        }

        bit<16> current = known - 1;
        bool has_current = known != 0 && IS_NEXT_HOP(meta.hops, current);
        bit<16> port = current;
        bit<64> threshold = 0;
        bool stays = has_current;
        if (class != SHORT) {
            thresholds.read(threshold, class - LONG);
            if (has_current) {
                bit<64> queued;
                queue_bytes.read(queued, (bit<32>)current);
                stays = queued < threshold;
            }
        }
        if (!stays) {
            bit<16> first;
            member.apply(meta.hops.group, BELOW(meta.world.draw0, meta.hops.count), first);
            if (class == SHORT) {
                shortest.apply(meta.hops, first, port);
            } else {
                longest.apply(meta.hops, first, threshold, has_current, current, port);
            }
        }
        flow_period.write(entry, now);
        flow_bytes.write(entry, sent);
        flow_port.write(entry, port + 1);
        SEND(port)
    }
}

V1Switch(WorldParser(), NoChecksum(), SchemeIngress(), PlainEgress(), NoChecksum(), WorldDeparser()) main;
