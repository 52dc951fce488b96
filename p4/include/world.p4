// What a program may ask of the switch that it runs on: the time, the packet, random numbers, the queues of its ports.
//
// There are two switches. The first is a real one, as far as v1model is: what it cannot know, it approximates, and the
// comment there says so. The second, with REPLAY, takes every answer from a header that Weft wrote, so that a program can
// be asked to decide again what a scheme of Weft decided, from the same knowledge. A program is the same on both.
//
// Before it includes this file, a program may define METADATA, fields of its own that travel with a packet.

#ifndef WORLD_P4
#define WORLD_P4

#include "headers.p4"
#include "repeat.p4"
#include "routes.p4"

#ifndef METADATA
#define METADATA
#endif

// Kinds of packets, as schemes tell them apart.
const bit<8> KIND_DATA = 0;
const bit<8> KIND_ACK = 1;
const bit<8> KIND_SYN = 2;
const bit<8> KIND_SYNACK = 3;

// What the application says of a flow: RFC 8622's code point for packets that everyone else goes before.
const bit<6> DSCP_BEST_EFFORT = 1;

const bit<8> TCP_SYN = 0x02;
const bit<8> TCP_ACK = 0x10;

struct world_t {
    // The time, in picoseconds.
    bit<64> now_ps;
    // The hash of the five-tuple.
    bit<32> entropy;
    // Bytes on a link.
    bit<16> wire_bytes;
    bit<16> in_port;
    bit<8>  kind;
    bit<1>  is_best_effort;
    // 64 random bits each.
    bit<64> draw0;
    bit<64> draw1;
    // Which routes are in force.
    bit<16> epoch;
}

struct metadata {
    world_t world;
    hops_t  hops;
    bit<8>  looks;
    METADATA
}

// The queues of all ports: bytes, and the time that they take. Without REPLAY, packets that leave write what they leave
// behind; ingress reads what was true then. Both pipelines use one array, which BMv2 allows and chips do not.
register<bit<64>>(PORTS) queue_bytes;
register<bit<64>>(PORTS) queue_drain_ps;

parser WorldParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
#ifdef REPLAY
            ETHERTYPE_REPLAY: replay;
#endif
            default: accept;
        }
    }
#ifdef REPLAY
    state replay {
        packet.extract(hdr.replay);
        meta.looks = hdr.replay.looks;
        transition select(hdr.replay.looks) {
            0: ipv4;
            default: look;
        }
    }
    state look {
        packet.extract(hdr.looks.next);
        meta.looks = meta.looks - 1;
        transition select(meta.looks) {
            0: ipv4;
            default: look;
        }
    }
#endif
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_TCP: tcp;
            default: accept;
        }
    }
    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
}

// What is known where a packet comes in.
control World(inout headers hdr, inout world_t world, inout standard_metadata_t std) {
    apply {
        world.kind = KIND_DATA;
        if ((hdr.tcp.flags & TCP_SYN) != 0) {
            world.kind = KIND_SYN;
            if ((hdr.tcp.flags & TCP_ACK) != 0) {
                world.kind = KIND_SYNACK;
            }
        } else if (hdr.ipv4.total_len == ((bit<16>)hdr.ipv4.ihl << 2) + ((bit<16>)hdr.tcp.data_offset << 2)) {
            // No payload.
            world.kind = KIND_ACK;
        }
        world.is_best_effort = 0;
        if (hdr.ipv4.dscp == DSCP_BEST_EFFORT) {
            world.is_best_effort = 1;
        }
#ifdef REPLAY
        world.now_ps = hdr.replay.now_ps;
        world.entropy = hdr.replay.entropy;
        world.wire_bytes = hdr.replay.wire_bytes;
        world.in_port = hdr.replay.port;
        world.draw0 = hdr.replay.draw0;
        world.draw1 = hdr.replay.draw1;
        world.epoch = hdr.replay.epoch;
#define TAKE_LOOK(place) if (hdr.looks[place].isValid()) { queue_bytes.write((bit<32>)hdr.looks[place].port, hdr.looks[place].bytes); queue_drain_ps.write((bit<32>)hdr.looks[place].port, hdr.looks[place].drain_ps); }
        EACH_PORT(TAKE_LOOK)
#else
        // BMv2's clock counts microseconds.
        world.now_ps = (bit<64>)std.ingress_global_timestamp * 1000000;
        hash(world.entropy, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.tcp.src_port, hdr.tcp.dst_port }, 64w0x100000000);
        world.wire_bytes = (bit<16>)std.packet_length;
        world.in_port = (bit<16>)std.ingress_port;
        bit<32> upper;
        bit<32> lower;
        random(upper, 0, 0xffffffff);
        random(lower, 0, 0xffffffff);
        world.draw0 = upper ++ lower;
        random(upper, 0, 0xffffffff);
        random(lower, 0, 0xffffffff);
        world.draw1 = upper ++ lower;
        world.epoch = 0;
#endif
    }
}

#ifndef BYTES_A_PACKET
#define BYTES_A_PACKET 1500
#endif
#ifndef PS_A_BYTE
// 10 Gbit/s.
#define PS_A_BYTE 800
#endif

// What a packet that leaves has left behind, for decisions that come later; so the last one leaves a zero. v1model counts
// packets: each is taken to be of full size.
control NoteQueue(inout standard_metadata_t std) {
    apply {
#ifndef REPLAY
        bit<64> queued = (bit<64>)std.deq_qdepth * BYTES_A_PACKET;
        queue_bytes.write((bit<32>)std.egress_port, queued);
        queue_drain_ps.write((bit<32>)std.egress_port, queued * PS_A_BYTE);
#endif
    }
}

// The packet goes by this port.
#define SEND(port) { std.egress_spec = (bit<9>)(port); }
// A packet without several next hops is none to decide about: no scheme hears of it.
#define PASS_UNLESS_CHOICE if (meta.hops.count == 0) { mark_to_drop(std); exit; } if (meta.hops.count == 1) { SEND(meta.hops.only) exit; }

#ifdef REPLAY
// Where the replay collects what is no packet of a host.
#define COLLECT std.egress_spec = PORTS;
#endif

control NoChecksum(inout headers hdr, inout metadata meta) {
    apply { }
}

control WorldDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.ethernet);
#ifdef REPLAY
        packet.emit(hdr.replay);
#endif
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
    }
}

// An egress pipeline that does nothing, and one that only notes what packets leave behind.
control NoEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply { }
}

control PlainEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    NoteQueue() note;
    apply { note.apply(std); }
}

#endif
