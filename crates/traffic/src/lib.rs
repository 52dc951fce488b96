//! Flow sizes, arrivals, pairs, incast and traces: which bytes are to go where, and when.
