//! Transports as state machines without I/O, one file a transport.
