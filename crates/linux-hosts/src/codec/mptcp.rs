//! The option of multipath TCP, RFC 8684 §3. What is not of the shapes that are named here stays
//! bytes.

const CAPABLE: u8 = 0;
const JOIN: u8 = 1;
const DSS: u8 = 2;

// RFC 8684 §3.3, figure 9.
const HAS_ACK: u8 = 0x01;
const LONG_ACK: u8 = 0x02;
const HAS_MAPPING: u8 = 0x04;
const LONG_SEQUENCE: u8 = 0x08;
const DATA_FIN: u8 = 0x10;

/// A multipath option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mptcp {
    /// `MP_CAPABLE`: a connection may have several subflows.
    Capable(MpCapable),
    /// `MP_JOIN`: a subflow joins a connection.
    Join(MpJoin),
    /// DSS: which data of the connection this segment carries and acknowledges.
    Data {
        /// The next data sequence number that is expected.
        acknowledgement: Option<Sequence>,
        /// Where this segment's payload belongs.
        mapping: Option<Mapping>,
        /// No more data from the sender.
        fin: bool,
    },
    /// Any other: all that follows the option's length, whose first four bits are the subtype.
    Other(Vec<u8>),
}

/// Fields of `MP_CAPABLE` (§3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpCapable {
    /// The version, 4 bits.
    pub version: u8,
    /// The flags A to H.
    pub flags: u8,
    /// The sender's key, from the answer to the first SYN on.
    pub sender_key: Option<u64>,
    /// The receiver's key, from the third segment on.
    pub receiver_key: Option<u64>,
    /// Bytes of data, if the third segment has data, and their check sum if that is used.
    pub data: Option<(u16, Option<u16>)>,
}

/// Fields of `MP_JOIN` in the three segments of a handshake (§3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpJoin {
    /// In the SYN.
    Syn {
        /// To be used only if no other path works.
        backup: bool,
        /// The address's number.
        address: u8,
        /// The receiver's token.
        token: u32,
        /// The sender's random number.
        nonce: u32,
    },
    /// In the answer.
    SynAck {
        /// To be used only if no other path works.
        backup: bool,
        /// The address's number.
        address: u8,
        /// The first half of what proves the key.
        hmac: u64,
        /// The sender's random number.
        nonce: u32,
    },
    /// In the third segment: what proves the key.
    Ack {
        /// 160 bits.
        hmac: [u8; 20],
    },
}

/// A data sequence number, as it is in the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// Lower half of the sequence number.
    Short(u32),
    /// All of it.
    Long(u64),
}

/// Which data a segment carries (§3.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The first byte's data sequence number.
    pub sequence: Sequence,
    /// The first byte's sequence number in the subflow, counted from its beginning.
    pub subflow: u32,
    /// How many bytes.
    pub bytes: u16,
    /// Their check sum, if that is used.
    pub checksum: Option<u16>,
}

/// Takes numbers from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn sequence(&mut self, long: bool) -> Option<Sequence> {
        if long { self.u64().map(Sequence::Long) } else { self.u32().map(Sequence::Short) }
    }
}

impl Sequence {
    const fn is_long(self) -> bool {
        matches!(self, Self::Long(_))
    }

    fn encode(self, to: &mut Vec<u8>) {
        match self {
            Self::Short(number) => to.extend(number.to_be_bytes()),
            Self::Long(number) => to.extend(number.to_be_bytes()),
        }
    }
}

impl Mptcp {
    /// Decodes the bytes behind the option's length; `None` if there are none. A body that would
    /// not be encoded as it was stays bytes.
    pub(super) fn decode(body: &[u8]) -> Option<Self> {
        let typed = match body.first()? >> 4 {
            CAPABLE => capable(body).map(Self::Capable),
            JOIN => join(body).map(Self::Join),
            DSS => data(body),
            _ => None,
        };
        let exact = typed.filter(|option| option.encode() == body);
        Some(exact.unwrap_or_else(|| Self::Other(body.to_vec())))
    }

    /// Encodes the bytes behind the option's length.
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Capable(capable) => capable.encode(),
            Self::Join(join) => join.encode(),
            Self::Data { acknowledgement, mapping, fin } => encode_data(*acknowledgement, *mapping, *fin),
            Self::Other(bytes) => bytes.clone(),
        }
    }
}

fn capable(body: &[u8]) -> Option<MpCapable> {
    let mut reader = Reader(body);
    let (first, flags) = (reader.u8()?, reader.u8()?);
    let (sender_key, receiver_key) = (reader.u64(), reader.u64());
    let data = reader.u16().map(|bytes| (bytes, reader.u16()));
    Some(MpCapable { version: first & 15, flags, sender_key, receiver_key, data })
}

impl MpCapable {
    fn encode(&self) -> Vec<u8> {
        let mut to = vec![CAPABLE << 4 | self.version & 15, self.flags];
        for key in [self.sender_key, self.receiver_key].into_iter().flatten() {
            to.extend(key.to_be_bytes());
        }
        if let Some((bytes, checksum)) = self.data {
            to.extend(bytes.to_be_bytes());
            to.extend(checksum.into_iter().flat_map(u16::to_be_bytes));
        }
        to
    }
}

fn join(body: &[u8]) -> Option<MpJoin> {
    let mut reader = Reader(body);
    let (first, address) = (reader.u8()?, reader.u8()?);
    let backup = first & 1 != 0;
    match body.len() {
        10 => Some(MpJoin::Syn { backup, address, token: reader.u32()?, nonce: reader.u32()? }),
        14 => Some(MpJoin::SynAck { backup, address, hmac: reader.u64()?, nonce: reader.u32()? }),
        22 => Some(MpJoin::Ack { hmac: reader.take()? }),
        _ => None,
    }
}

impl MpJoin {
    fn encode(&self) -> Vec<u8> {
        let first = |backup: bool| JOIN << 4 | u8::from(backup);
        match *self {
            Self::Syn { backup, address, token, nonce } => {
                [&[first(backup), address][..], &token.to_be_bytes(), &nonce.to_be_bytes()].concat()
            }
            Self::SynAck { backup, address, hmac, nonce } => {
                [&[first(backup), address][..], &hmac.to_be_bytes(), &nonce.to_be_bytes()].concat()
            }
            Self::Ack { hmac } => [&[first(false), 0][..], &hmac].concat(),
        }
    }
}

fn data(body: &[u8]) -> Option<Mptcp> {
    let mut reader = Reader(body);
    let (_, flags) = (reader.u8()?, reader.u8()?);
    let has = |flag| flags & flag != 0;
    let acknowledgement = if has(HAS_ACK) { Some(reader.sequence(has(LONG_ACK))?) } else { None };
    let mapping = if has(HAS_MAPPING) {
        let (sequence, subflow, bytes) = (reader.sequence(has(LONG_SEQUENCE))?, reader.u32()?, reader.u16()?);
        Some(Mapping { sequence, subflow, bytes, checksum: reader.u16() })
    } else {
        None
    };
    Some(Mptcp::Data { acknowledgement, mapping, fin: has(DATA_FIN) })
}

fn encode_data(acknowledgement: Option<Sequence>, mapping: Option<Mapping>, fin: bool) -> Vec<u8> {
    let mut flags = if fin { DATA_FIN } else { 0 };
    if let Some(sequence) = acknowledgement {
        flags |= HAS_ACK | if sequence.is_long() { LONG_ACK } else { 0 };
    }
    if let Some(mapping) = mapping {
        flags |= HAS_MAPPING | if mapping.sequence.is_long() { LONG_SEQUENCE } else { 0 };
    }
    let mut to = vec![DSS << 4, flags];
    if let Some(sequence) = acknowledgement {
        sequence.encode(&mut to);
    }
    if let Some(Mapping { sequence, subflow, bytes, checksum }) = mapping {
        sequence.encode(&mut to);
        to.extend(subflow.to_be_bytes());
        to.extend(bytes.to_be_bytes());
        to.extend(checksum.into_iter().flat_map(u16::to_be_bytes));
    }
    to
}
