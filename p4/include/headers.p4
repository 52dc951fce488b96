// Headers that all programs read: Ethernet, IPv4 and TCP, and in a replay what Weft knew of the packet.

#ifndef HEADERS_P4
#define HEADERS_P4

#include "repeat.p4"

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    // The class that the application gave the flow: the class selectors of RFC 4594 for standard and low-priority data.
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq;
    bit<32> ack;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

#ifdef REPLAY
// For local experiments (IEEE 802).
const bit<16> ETHERTYPE_REPLAY = 0x88b5;
// What a packet of a replay is.
const bit<8> EVENT_CHOOSE = 0;
const bit<8> EVENT_ARRIVING = 1;
const bit<8> EVENT_LEAVING = 2;
const bit<8> EVENT_CLONE = 3;
const bit<8> EVENT_REGISTER = 4;

// What Weft knew when the packet passed, and below what the program makes of it.
header replay_t {
    bit<8>  event;
    bit<8>  looks;
    bit<16> port;
    bit<32> number;
    bit<64> now_ps;
    bit<32> entropy;
    bit<16> wire_bytes;
    bit<16> epoch;
    bit<64> draw0;
    bit<64> draw1;
    // Of a register: which, its place, its value. Of a packet that leaves: the bytes that it found queued.
    bit<16> name;
    bit<32> place;
    bit<64> value;
    // The program's answer: the port, and a word (header bits, or whether to clone).
    bit<16> answer;
    bit<64> word;
    bit<16> ether_type;
}

// The queue of a port, as Weft saw it for this packet.
header look_t {
    bit<16> port;
    bit<64> bytes;
    bit<64> drain_ps;
}
#endif

struct headers {
    ethernet_t ethernet;
#ifdef REPLAY
    replay_t replay;
    look_t[PORTS] looks;
#endif
    ipv4_t ipv4;
    tcp_t tcp;
}

#endif
