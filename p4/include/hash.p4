// The finaliser of SplitMix64, as Weft's switches hash. A chip without multipliers takes a CRC of its own here.

#ifndef HASH_P4
#define HASH_P4

control Mix64(in bit<64> value, out bit<64> mixed) {
    apply {
        bit<64> z = value + 64w0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 64w0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 64w0x94d049bb133111eb;
        mixed = z ^ (z >> 31);
    }
}

// A draw, or the upper half of a hash, as a whole number below `bound`: Lemire's multiply-shift.
#define BELOW(draw, bound) ((bit<16>)((((draw) >> 32) * (bit<64>)(bound)) >> 32))

#endif
