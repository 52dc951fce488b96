//! Fabrics, links, switches, hosts, failures, and the event core that moves packets through them.
