// TR: a packet takes only ways on which it cannot overtake its flow's last packet (Zhang et al., J Cloud Comp 2021).
//
// One program for leaves and spines. The source leaf predicts for each uplink when a packet would be at the next leaf (TR
// eq. 1). Spines write their queue's length into the five upper bits of the TTL of acknowledgements.

#include <core.p4>
#include <v1model.p4>

// What is known of a packet when the switch looks at it again.
#define METADATA @field_list(1) bit<8> rounds;
#include "include/world.p4"
#include "include/hash.p4"

#ifndef HASH_SEED
#define HASH_SEED 64w1
#endif
// Entries of the flow table: a power of two.
#ifndef ENTRIES
#define ENTRIES 65536
#endif
// Whether the switch is a leaf, and its rack.
#ifndef IS_LEAF
#define IS_LEAF 1
#endif
#ifndef RACK
#define RACK 0
#endif
// At a spine: a bit for each port to a leaf.
#ifndef LEAF_PORTS
#define LEAF_PORTS 0xff
#endif
// A flow that has sent more than this is long (bytes).
#ifndef LONG_AFTER
#define LONG_AFTER 100000
#endif
// A flow without a packet for longer than this is inactive.
#ifndef RTT_PS
#define RTT_PS 200000000
#endif
// For how long a leaf believes what it heard of a spine's queue.
#ifndef BELIEVE_PS
#define BELIEVE_PS 200000000
#endif
// The buffer that the codes divide, in bytes.
#ifndef SPINE_BUFFER
#define SPINE_BUFFER 375000
#endif
// As many as five bits say.
#define CODES 32
// Ways: as many as racks times WAY_PORTS, by rack and port.
#ifndef WAY_PORTS
#define WAY_PORTS PORTS
#endif
#ifndef WAYS
#define WAYS 4096
#endif
// Entries of the list of short flows that may be active.
#ifndef LISTED
#define LISTED 65536
#endif

// Of each flow: when its last packet is at the next leaf, and when it passed here; bytes so far; one more than its port;
// bits of its mixed; whether it counts as an active short flow.
register<bit<64>>(ENTRIES) flow_tnl;
register<bit<64>>(ENTRIES) flow_seen;
register<bit<32>>(ENTRIES) flow_sent;
register<bit<16>>(ENTRIES) flow_port;
register<bit<8>>(ENTRIES) flow_tag;
register<bit<1>>(ENTRIES) flow_counted;

// By port, the active short flows (TR §Counting: ns).
register<bit<32>>(PORTS) active_shorts;
// Short flows in the order of their packets, oldest first: which one, and when. An entry of which the flow has had a later
// packet means nothing any more.
register<bit<32>>(LISTED) listed_flow;
register<bit<64>>(LISTED) listed_seen;
// Where the list begins and ends.
register<bit<32>>(1) list_head;
register<bit<32>>(1) list_tail;

// Where the next look over the uplinks begins.
register<bit<32>>(1) next_turn;

// What a controller writes of each way: the delay of both cables, their times a byte with 16 binary places, and the
// time of a step of the code.
const bit<16> REGISTER_DELAY = 1;
const bit<16> REGISTER_NEAR = 2;
const bit<16> REGISTER_FAR = 3;
const bit<16> REGISTER_STEP = 4;
register<bit<64>>(WAYS) way_delay_ps;
register<bit<64>>(WAYS) way_near_per_byte;
register<bit<64>>(WAYS) way_far_per_byte;
register<bit<64>>(WAYS) way_step_ps;
// What acknowledgements said: the spine's queue, and until when that is believed.
register<bit<64>>(WAYS) way_queue_ps;
register<bit<64>>(WAYS) way_until;

// A queue's length in steps of the spine's buffer, rounded down (TR §TNL calculation). Switches do not divide: a table
// has a range of bytes for each code.
control CodeOf(in bit<64> queued, out bit<5> code) {
    bit<32> bytes;
    action is_code(bit<5> value) { code = value; }
#define BEGIN_OF(code) ((32w##code * SPINE_BUFFER + CODES - 1) / CODES)
#define RANGE(code, next) BEGIN_OF(code) .. BEGIN_OF(next) - 1 : is_code(code);
    table codes {
        key = { bytes: range; }
        actions = { is_code; }
        // What the buffer does not hold.
        const default_action = is_code(CODES - 1);
        const entries = {
            RANGE(0, 1) RANGE(1, 2) RANGE(2, 3) RANGE(3, 4) RANGE(4, 5) RANGE(5, 6) RANGE(6, 7) RANGE(7, 8)
            RANGE(8, 9) RANGE(9, 10) RANGE(10, 11) RANGE(11, 12) RANGE(12, 13) RANGE(13, 14) RANGE(14, 15) RANGE(15, 16)
            RANGE(16, 17) RANGE(17, 18) RANGE(18, 19) RANGE(19, 20) RANGE(20, 21) RANGE(21, 22) RANGE(22, 23)
            RANGE(23, 24) RANGE(24, 25) RANGE(25, 26) RANGE(26, 27) RANGE(27, 28) RANGE(28, 29) RANGE(29, 30)
            RANGE(30, 31)
        }
    }
    apply {
        bytes = 0xffffffff;
        if (queued < 0xffffffff) {
            bytes = (bit<32>)queued;
        }
        codes.apply();
    }
}

// The place in a group of `count` whose turn it is: the remainder of a counter, without a division, by a multiplication
// with a reciprocal of 64 bits that a table has for each count (Lemire et al., 2019).
control TurnOf(in bit<32> turn, in bit<16> count, out bit<16> place) {
    bit<64> reciprocal;
    action is_part(bit<64> value) { reciprocal = value; }
#define PART(number) number + 1 : is_part(64w0xffffffffffffffff / (number + 1) + 1);
    table reciprocals {
        key = { count: exact; }
        actions = { is_part; }
        const default_action = is_part(0);
        const entries = {
            EACH_PORT(PART)
        }
    }
    apply {
        reciprocals.apply();
        bit<64> part = reciprocal * (bit<64>)turn;
        place = (bit<16>)(((bit<128>)part * (bit<128>)count) >> 64);
    }
}

// The rack of a host.
control RackOf(in bit<32> host, out bit<16> rack) {
    action is_in(bit<16> number) { rack = number; }
    action is_nowhere() { rack = 0xffff; }
    table racks {
        key = { host: lpm; }
        actions = { is_in; is_nowhere; }
        size = 65536;
        const default_action = is_nowhere;
#ifdef WITH_ENTRIES
        const entries = {
#include "racks.entries"
        }
#endif
    }
    apply { racks.apply(); }
}

// The flow counts on its port no more.
control StopCounting(in bit<32> entry) {
    apply {
        bit<1> counted;
        flow_counted.read(counted, entry);
        if (counted == 1) {
            flow_counted.write(entry, 0);
            bit<16> port;
            bit<32> shorts;
            flow_port.read(port, entry);
            active_shorts.read(shorts, (bit<32>)(port - 1));
            active_shorts.write((bit<32>)(port - 1), shorts - 1);
        }
    }
}

// The oldest entry of the list leaves it, if its time is over. `is_over` says whether it was.
control RetireOldest(in bit<64> now_ps, out bool is_over) {
    StopCounting() stop;
    apply {
        bit<32> head;
        bit<32> tail;
        list_head.read(head, 0);
        list_tail.read(tail, 0);
        is_over = false;
        if (head != tail) {
            bit<64> listed;
            listed_seen.read(listed, head & (LISTED - 1));
            if (now_ps > listed + RTT_PS) {
                is_over = true;
                list_head.write(0, head + 1);
                bit<32> entry;
                bit<64> seen;
                listed_flow.read(entry, head & (LISTED - 1));
                flow_seen.read(seen, entry);
                if (seen == listed) {
                    stop.apply(entry);
                }
            }
        }
    }
}

struct found_t {
    bit<1>  is_found;
    bit<16> port;
    bit<32> shorts;
    bit<64> takes;
}

// TR Alg. 1: the uplink of a packet whose sender hangs here. Of equal ones, the first from `first` on. `takes_ps` is how
// long the packet takes to the next leaf, the last of its flow not overtaken.
control Uplink(in world_t world, in hops_t hops, in bit<16> first, in bit<64> tnl, in bit<16> last_port, in bool is_long, out bit<16> port, out bit<64> takes_ps) {
    apply {
        found_t above = { 0, 0, 0, 0 };
        found_t below = { 0, 0, 0, 0 };
        // For where every uplink would overtake: the one that does so by least.
        found_t late_above = { 0, 0, 0, 0 };
        found_t late_below = { 0, 0, 0, 0 };
        bit<64> takes;
        bit<64> part;
        bit<64> until;
        bit<32> shorts;
        bool overtakes;
        bit<32> way;
#define ADD_UPLINK(number) \
        if (IS_NEXT_HOP(hops, number)) { \
            way = (bit<32>)hops.rack * WAY_PORTS + number; \
            queue_drain_ps.read(takes, number); \
            way_delay_ps.read(part, way); takes = takes + part; \
            way_near_per_byte.read(part, way); takes = takes + (((bit<64>)world.wire_bytes * part + 65535) >> 16); \
            way_far_per_byte.read(part, way); takes = takes + (((bit<64>)world.wire_bytes * part + 65535) >> 16); \
            way_until.read(until, way); \
            if (until >= world.now_ps) { way_queue_ps.read(part, way); takes = takes + part; } \
            if (number >= first) { if (late_above.is_found == 0 || takes > late_above.takes) { late_above = { 1, number, 0, takes }; } } \
            else { if (late_below.is_found == 0 || takes > late_below.takes) { late_below = { 1, number, 0, takes }; } } \
            overtakes = world.now_ps + takes <= tnl; \
            if (overtakes && last_port == number + 1) { overtakes = false; takes = tnl - world.now_ps; } \
            shorts = 0; \
            if (is_long) { active_shorts.read(shorts, number); } \
            if (!overtakes) { \
                if (number >= first) { if (above.is_found == 0 || shorts < above.shorts || (shorts == above.shorts && takes < above.takes)) { above = { 1, number, shorts, takes }; } } \
                else { if (below.is_found == 0 || shorts < below.shorts || (shorts == below.shorts && takes < below.takes)) { below = { 1, number, shorts, takes }; } } \
            } \
        }
        EACH_PORT(ADD_UPLINK)
        if (below.is_found == 1 && (above.is_found == 0 || below.shorts < above.shorts || (below.shorts == above.shorts && below.takes < above.takes))) {
            above = below;
        }
        if (above.is_found == 0) {
            above = late_above;
            if (late_below.is_found == 1 && (late_above.is_found == 0 || late_below.takes > late_above.takes)) {
                above = late_below;
            }
        }
        port = above.port;
        takes_ps = above.takes;
    }
}

control SchemeIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    World() world;
    Routes() routes;
    RackOf() source;
    RackOf() destination;
    Mix64() mix;
    Member() member;
    Member() turn_member;
    RetireOldest() retire_first;
    RetireOldest() retire_second;
    StopCounting() stop_of_entry;
    StopCounting() stop_of_long;
    StopCounting() stop_of_last;
    CodeOf() code_of;
    TurnOf() turn_of;
    Uplink() uplink;

    apply {
#ifdef REPLAY
        if (hdr.replay.event == EVENT_REGISTER) {
            if (hdr.replay.name == REGISTER_DELAY) {
                way_delay_ps.write(hdr.replay.place, hdr.replay.value);
            } else if (hdr.replay.name == REGISTER_NEAR) {
                way_near_per_byte.write(hdr.replay.place, hdr.replay.value);
            } else if (hdr.replay.name == REGISTER_FAR) {
                way_far_per_byte.write(hdr.replay.place, hdr.replay.value);
            } else {
                way_step_ps.write(hdr.replay.place, hdr.replay.value);
            }
            COLLECT
            exit;
        }
#endif
        world.apply(hdr, meta.world, std);
        bit<16> from;
        bit<16> to;
        source.apply(hdr.ipv4.src, from);
        destination.apply(hdr.ipv4.dst, to);
        bool is_answer = meta.world.kind == KIND_ACK || meta.world.kind == KIND_SYNACK;

#ifdef REPLAY
        bool arrives = hdr.replay.event == EVENT_ARRIVING;
#else
        bool arrives = meta.rounds == 0;
#endif
        if (arrives && is_answer) {
            if (IS_LEAF == 0) {
                if ((((bit<32>)LEAF_PORTS >> (bit<8>)meta.world.in_port) & 1) == 1) {
                    bit<64> queued;
                    queue_bytes.read(queued, (bit<32>)meta.world.in_port);
                    bit<5> code;
                    code_of.apply(queued, code);
                    hdr.ipv4.ttl[7:3] = code;
                }
            } else if (to == RACK) {
                bit<32> way = (bit<32>)from * WAY_PORTS + (bit<32>)meta.world.in_port;
                bit<64> step;
                way_step_ps.read(step, way);
                way_queue_ps.write(way, step * (bit<64>)hdr.ipv4.ttl[7:3]);
                way_until.write(way, meta.world.now_ps + BELIEVE_PS);
                hdr.ipv4.ttl[7:3] = 0;
            }
        }
#ifdef REPLAY
        if (arrives) {
            hdr.replay.word = (bit<64>)hdr.ipv4.ttl[7:3];
            COLLECT
            exit;
        }
#endif
        routes.apply(hdr.ipv4.dst, meta.world.epoch, meta.hops);
        PASS_UNLESS_CHOICE
        bit<64> mixed;
        mix.apply(HASH_SEED ^ (bit<64>)meta.world.entropy, mixed);
        bit<16> port;
        if (IS_LEAF == 0 || from != RACK) {
            // As ECMP.
            member.apply(meta.hops.group, BELOW(mixed, meta.hops.count), port);
            SEND(port)
            exit;
        }

        // Flows without a packet for longer than an RTT stop counting. There may be more of them than one pass has time
        // for: then the packet comes again.
        bool is_over;
        retire_first.apply(meta.world.now_ps, is_over);
        if (is_over) {
            retire_second.apply(meta.world.now_ps, is_over);
            if (is_over) {
                meta.rounds = 1;
                resubmit_preserving_field_list(1);
                exit;
            }
        }

        bit<32> entry = (bit<32>)(mixed & (ENTRIES - 1));
        bit<8> tag = mixed[63:56];
        bit<16> last_port;
        bit<8> last_tag;
        bit<64> seen;
        flow_port.read(last_port, entry);
        flow_tag.read(last_tag, entry);
        flow_seen.read(seen, entry);
        if (last_port == 0 || last_tag != tag || meta.world.kind == KIND_SYN) {
            // Another flow that is still active shares the entry; else a flow begins.
            if (last_port == 0 || last_tag == tag || meta.world.now_ps - seen > RTT_PS) {
                stop_of_entry.apply(entry);
                last_port = 0;
                flow_port.write(entry, 0);
                flow_tag.write(entry, tag);
                flow_sent.write(entry, 0);
                flow_tnl.write(entry, 0);
            }
        }
        // Acknowledgements are routed as packets of a short flow, and are no data sent.
        bool is_long = false;
        if (!is_answer) {
            bit<32> sent;
            flow_sent.read(sent, entry);
            sent = sent |+| (bit<32>)meta.world.wire_bytes;
            flow_sent.write(entry, sent);
            is_long = sent > LONG_AFTER;
            if (is_long) {
                stop_of_long.apply(entry);
            }
        }

        bit<64> tnl;
        flow_tnl.read(tnl, entry);
        bit<32> turn;
        next_turn.read(turn, 0);
        next_turn.write(0, turn + 1);
        bit<16> first;
        bit<16> place;
        turn_of.apply(turn, meta.hops.count, place);
        turn_member.apply(meta.hops.group, place, first);
        bit<64> takes_ps;
        uplink.apply(meta.world, meta.hops, first, tnl, last_port, is_long, port, takes_ps);

        bit<1> counted;
        flow_counted.read(counted, entry);
        stop_of_last.apply(entry);
        flow_tnl.write(entry, meta.world.now_ps + takes_ps);
        flow_seen.write(entry, meta.world.now_ps);
        flow_port.write(entry, port + 1);
        if (counted == 1 || (!is_answer && !is_long)) {
            flow_counted.write(entry, 1);
            bit<32> shorts;
            active_shorts.read(shorts, (bit<32>)port);
            active_shorts.write((bit<32>)port, shorts + 1);
            bit<32> tail;
            list_tail.read(tail, 0);
            listed_flow.write(tail & (LISTED - 1), entry);
            listed_seen.write(tail & (LISTED - 1), meta.world.now_ps);
            list_tail.write(0, tail + 1);
        }
        SEND(port)
    }
}

// The code is in the header that IPv4 sums up.
control Checksum(inout headers hdr, inout metadata meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

V1Switch(WorldParser(), NoChecksum(), SchemeIngress(), PlainEgress(), Checksum(), WorldDeparser()) main;
