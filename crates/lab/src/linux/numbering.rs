//! Sequence numbers of TCP, 32 bits, as bytes of a stream, counted from 0.

/// The numbers of one direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// The sequence number of the first byte; none before the SYN.
    first: Option<u32>,
    /// The highest byte seen so far, sent or acknowledged: what the 32 bits are counted from.
    near: u64,
}

impl Numbering {
    /// The first byte has this number.
    pub fn begin(&mut self, first: u32) {
        self.first = Some(first);
    }

    /// The number of the first byte, if it is known.
    pub const fn first(&self) -> Option<u32> {
        self.first
    }

    /// Whether the number of the first byte is known.
    pub const fn has_begun(&self) -> bool {
        self.first.is_some()
    }

    /// The byte with this number.
    pub fn byte(&mut self, sequence: u32) -> Option<u64> {
        let offset = sequence.wrapping_sub(self.first?);
        let ahead = i64::from(offset.wrapping_sub(self.near as u32).cast_signed());
        let byte = self.near.checked_add_signed(ahead)?;
        self.near = self.near.max(byte);
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_on_beyond_thirty_two_bits() {
        let mut numbers = Numbering::default();
        assert_eq!(numbers.byte(7), None);
        numbers.begin(u32::MAX - 9);
        let mut expected = 0u64;
        for _ in 0..20 {
            let sequence = (u32::MAX - 9).wrapping_add(expected as u32);
            assert_eq!(numbers.byte(sequence), Some(expected));
            assert_eq!(numbers.byte(sequence.wrapping_sub(5)), expected.checked_sub(5), "sent again");
            expected += 1 << 30;
        }
    }
}
