// Where a packet may go: what routing knows. A group of next hops is a map of ports, a bit each; the one at a place of
// the group is found in a second table. A controller writes the entries; with WITH_ENTRIES they are in files beside the
// program.

#ifndef ROUTES_P4
#define ROUTES_P4

#include "repeat.p4"

#ifndef ROUTES
#define ROUTES 4096
#endif
#ifndef MEMBERS
#define MEMBERS 4096
#endif

struct hops_t {
    // The group's number, and how many next hops it has.
    bit<16> group;
    bit<16> count;
    // A bit for each port.
    bit<PORTS> ports;
    // The port, if there is one only.
    bit<16> only;
    // The rack that the packet goes to.
    bit<16> rack;
}

// Whether a port is one of the next hops.
#define IS_NEXT_HOP(hops, port) (((hops.ports >> (bit<8>)(port)) & 1) != 0)

// The group of a destination. A controller that replaces routes writes those of the next epoch first and then moves on to
// it, so that no packet sees half of them.
control Routes(in bit<32> dst, in bit<16> epoch, out hops_t hops) {
    action to_group(bit<16> group, bit<16> count, bit<PORTS> ports, bit<16> rack) {
        hops.group = group;
        hops.count = count;
        hops.ports = ports;
        hops.only = 0;
        hops.rack = rack;
    }
    action to_port(bit<16> port) {
        hops.group = 0;
        hops.count = 1;
        hops.ports = 0;
        hops.only = port;
        hops.rack = 0;
    }
    action nowhere() {
        hops.group = 0;
        hops.count = 0;
        hops.ports = 0;
        hops.only = 0;
        hops.rack = 0;
    }
    table routes {
        key = {
            epoch: exact;
            dst: lpm;
        }
        actions = { to_group; to_port; nowhere; }
        size = ROUTES;
        const default_action = nowhere;
#ifdef WITH_ENTRIES
        const entries = {
#include "routes.entries"
        }
#endif
    }
    apply { routes.apply(); }
}

// The port at a place of a group. A program that needs several has as many of these tables.
control Member(in bit<16> group, in bit<16> place, out bit<16> port) {
    action by(bit<16> member) { port = member; }
    action by_none() { port = 0; }
    table members {
        key = {
            group: exact;
            place: exact;
        }
        actions = { by; by_none; }
        size = MEMBERS;
        const default_action = by_none;
#ifdef WITH_ENTRIES
        const entries = {
#include "members.entries"
        }
#endif
    }
    apply { members.apply(); }
}

#endif
