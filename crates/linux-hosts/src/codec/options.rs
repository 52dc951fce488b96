//! TCP options: RFC 9293 §3.2, RFC 7323 (window scale, time stamps), RFC 2018 (SACK), RFC 8684
//! (MPTCP).

use super::error::CodecError;
use super::mptcp::Mptcp;

const LONGEST: usize = 40;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
pub(super) const MPTCP: u8 = 30;

/// One option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpOption {
    /// The end of the options, and what pads the header after it.
    End(Vec<u8>),
    /// One byte that means nothing.
    NoOperation,
    /// The largest payload that the sender takes, in bytes.
    MaximumSegment(u16),
    /// How far the windows that the sender announces are to be shifted.
    WindowScale(u8),
    /// The sender understands SACK.
    SackPermitted,
    /// One to four blocks that have arrived, each from its first sequence number to the one after
    /// its last.
    Sack(Vec<(u32, u32)>),
    /// Time stamps.
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// Time stamp of the other end's clock.
        echo: u32,
    },
    /// Multipath TCP.
    Mptcp(Mptcp),
    /// Any other option: its kind and what follows its length, 0 to 38 bytes.
    Other {
        /// Kind of the option.
        kind: u8,
        /// Contents of the option.
        bytes: Vec<u8>,
    },
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads all options of a header.
pub(super) fn decode_options(mut rest: &[u8]) -> Result<Vec<TcpOption>, CodecError> {
    let mut options = Vec::new();
    while let Some((&kind, after)) = rest.split_first() {
        if kind == END {
            options.push(TcpOption::End(after.to_vec()));
            break;
        }
        if kind == NO_OPERATION {
            options.push(TcpOption::NoOperation);
            rest = after;
            continue;
        }
        let length = usize::from(*after.first().ok_or(CodecError::Option { kind, bytes: 1 })?);
        if length < 2 || length > rest.len() {
            return Err(CodecError::Option { kind, bytes: length });
        }
        let (option, after) = rest.split_at(length);
        options.push(decode_option(kind, &option[2..])?);
        rest = after;
    }
    Ok(options)
}

fn decode_option(kind: u8, body: &[u8]) -> Result<TcpOption, CodecError> {
    let option = match (kind, body.len()) {
        (MAXIMUM_SEGMENT, 2) => TcpOption::MaximumSegment(u16::from_be_bytes([body[0], body[1]])),
        (WINDOW_SCALE, 1) => TcpOption::WindowScale(body[0]),
        (SACK_PERMITTED, 0) => TcpOption::SackPermitted,
        (SACK, 8 | 16 | 24 | 32) => {
            TcpOption::Sack(body.chunks_exact(8).map(|block| (u32_at(block, 0), u32_at(block, 4))).collect())
        }
        (TIMESTAMPS, 8) => TcpOption::Timestamps { value: u32_at(body, 0), echo: u32_at(body, 4) },
        (MAXIMUM_SEGMENT | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS, _) => {
            return Err(CodecError::Option { kind, bytes: body.len() + 2 });
        }
        (MPTCP, _) => {
            TcpOption::Mptcp(Mptcp::decode(body).ok_or(CodecError::Option { kind, bytes: body.len() + 2 })?)
        }
        _ => TcpOption::Other { kind, bytes: body.to_vec() },
    };
    Ok(option)
}

/// Writes all options of a header; they are whole words.
pub(super) fn encode_options(options: &[TcpOption]) -> Result<Vec<u8>, CodecError> {
    let mut to = Vec::with_capacity(LONGEST);
    for (number, option) in options.iter().enumerate() {
        let last = number + 1 == options.len();
        encode_option(option, last, &mut to)?;
    }
    if to.len() > LONGEST || !to.len().is_multiple_of(4) {
        return Err(CodecError::OptionsLength(to.len()));
    }
    Ok(to)
}

fn encode_option(option: &TcpOption, last: bool, to: &mut Vec<u8>) -> Result<(), CodecError> {
    let mut put = |kind: u8, body: &[u8]| {
        to.extend([kind, (body.len() + 2) as u8]);
        to.extend(body);
    };
    match option {
        TcpOption::End(padding) if last && padding.len() < LONGEST => {
            to.push(END);
            to.extend(padding);
        }
        // What follows the end is no option.
        TcpOption::End(padding) => return Err(CodecError::Option { kind: END, bytes: padding.len() + 1 }),
        TcpOption::NoOperation => to.push(NO_OPERATION),
        TcpOption::MaximumSegment(bytes) => put(MAXIMUM_SEGMENT, &bytes.to_be_bytes()),
        TcpOption::WindowScale(shift) => put(WINDOW_SCALE, &[*shift]),
        TcpOption::SackPermitted => put(SACK_PERMITTED, &[]),
        TcpOption::Sack(blocks) if (1..=4).contains(&blocks.len()) => {
            let words = blocks.iter().flat_map(|(from, to)| [from, to]);
            put(SACK, &words.flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>());
        }
        TcpOption::Sack(blocks) => {
            return Err(CodecError::Option { kind: SACK, bytes: blocks.len() * 8 + 2 });
        }
        TcpOption::Timestamps { value, echo } => {
            put(TIMESTAMPS, &[value.to_be_bytes(), echo.to_be_bytes()].concat());
        }
        TcpOption::Mptcp(mptcp) => {
            let body = mptcp.encode();
            if body.len() > LONGEST - 2 || Mptcp::decode(&body).as_ref() != Some(mptcp) {
                return Err(CodecError::Option { kind: MPTCP, bytes: body.len() + 2 });
            }
            put(MPTCP, &body);
        }
        TcpOption::Other { kind, bytes } => {
            let known =
                [END, NO_OPERATION, MAXIMUM_SEGMENT, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS, MPTCP];
            if known.contains(kind) || bytes.len() > LONGEST - 2 {
                return Err(CodecError::Option { kind: *kind, bytes: bytes.len() + 2 });
            }
            put(*kind, bytes);
        }
    }
    Ok(())
}
