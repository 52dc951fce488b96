//! The Internet check sum, RFC 1071.

/// The sum of 16-bit words, not yet folded, of `bytes`; an odd last byte counts as if a zero
/// followed.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let mut words = bytes.chunks_exact(2);
    let whole: u32 = words.by_ref().map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    whole + words.remainder().first().map_or(0, |last| u32::from(*last) << 8)
}

/// The check sum of all words that were summed up.
pub(super) fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_comes_out() {
        // RFC 1071 §3: the sum of these is ddf2.
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), !0xddf2);
        assert_eq!(sum(&[1]), 0x100);
    }
}
