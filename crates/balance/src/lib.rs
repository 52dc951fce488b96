//! Load balancers, one file a scheme, written against a small vocabulary and no simulator.
