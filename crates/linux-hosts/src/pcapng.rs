//! Traces of IP packets, to be opened in Wireshark: files of the form pcapng,
//! draft-ietf-opsawg-pcapng. It matters not what kind of host or link a packet comes from, as long
//! as it has bytes.
//!
//! ```
//! use weft_linux_hosts::pcapng::{Direction, Trace};
//! use weft_units::Time;
//!
//! let mut trace = Trace::new(Vec::new())?;
//! let host = trace.interface("host 3", None)?;
//! trace.packet(host, Time::from_ps(1_500_000), Direction::Out, &[0x45, 0, 0, 20])?;
//! let file = trace.finish()?;
//! assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, Write};

use weft_units::Time;

// §4.1 to §4.3: types of blocks.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;

/// Magic number by which a reader finds the byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Packets begin with the IP header (`LINKTYPE_RAW`).
const RAW_IP: u16 = 101;
/// The length of a section that is not said beforehand.
const UNKNOWN_LENGTH: u64 = u64::MAX;

// Codes of options (§3.5, §4.1 to §4.3).
const END: u16 = 0;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// Bytes of an interface's name, at most.
const MAX_NAME: usize = 1_000;

/// Which way a packet went, as its interface sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It came in.
    In,
    /// It went out.
    Out,
}

/// An interface of a trace: a host or a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interface {
    number: u32,
    snap_bytes: u32,
}

/// A trace that is being written.
#[derive(Debug)]
pub struct Trace<W> {
    to: W,
    interfaces: u32,
    block: Vec<u8>,
}

impl<W: Write> Trace<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(to: W) -> io::Result<Self> {
        let mut trace = Self { to, interfaces: 0, block: Vec::new() };
        trace.block.extend(BYTE_ORDER.to_le_bytes());
        trace.block.extend([1, 0, 0, 0]); // version 1.0
        trace.block.extend(UNKNOWN_LENGTH.to_le_bytes());
        trace.option(USER_APPLICATION, b"Weft");
        trace.option(END, &[]);
        trace.write_block(SECTION)?;
        Ok(trace)
    }

    /// Adds an interface. Of its packets the first `snap_bytes` are kept, or all.
    ///
    /// # Errors
    /// It cannot be written, or its name has more than 1,000 bytes.
    pub fn interface(&mut self, name: &str, snap_bytes: Option<u32>) -> io::Result<Interface> {
        if name.len() > MAX_NAME {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name of an interface is too long"));
        }
        self.block.extend(RAW_IP.to_le_bytes());
        self.block.extend([0; 2]);
        self.block.extend(snap_bytes.unwrap_or(0).to_le_bytes());
        self.option(INTERFACE_NAME, name.as_bytes());
        self.option(TIME_RESOLUTION, &[9]); // 10^-9 s
        self.option(END, &[]);
        self.write_block(INTERFACE)?;
        let interface = Interface { number: self.interfaces, snap_bytes: snap_bytes.unwrap_or(u32::MAX) };
        self.interfaces += 1;
        Ok(interface)
    }

    /// Adds an IP packet. Its time is told in whole nanoseconds, rounded down. A reader may expect
    /// the packets of a trace in order of time.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn packet(
        &mut self,
        interface: Interface,
        at: Time,
        direction: Direction,
        packet: &[u8],
    ) -> io::Result<()> {
        self.head(interface, at, direction, packet, packet.len())
    }

    /// Writes the head of a packet of `length` bytes of which only the first are at hand.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn head(
        &mut self,
        interface: Interface,
        at: Time,
        direction: Direction,
        head: &[u8],
        length: usize,
    ) -> io::Result<()> {
        let ns = at.as_ps() / 1_000;
        let kept = &head[..head.len().min(interface.snap_bytes as usize)];
        for field in [interface.number, (ns >> 32) as u32, ns as u32, kept.len() as u32, length as u32] {
            self.block.extend(field.to_le_bytes());
        }
        self.block.extend(kept);
        self.pad();
        let flags = match direction {
            Direction::In => 1_u32,
            Direction::Out => 2,
        };
        self.option(PACKET_FLAGS, &flags.to_le_bytes());
        self.option(END, &[]);
        self.write_block(PACKET)
    }

    /// Writes all that is left, and gives back where it was written to.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// A block is its type, its length, what is in it, and its length again (§3.1).
    fn write_block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.to.write_all(&kind.to_le_bytes())?;
        self.to.write_all(&length)?;
        self.to.write_all(&self.block)?;
        self.to.write_all(&length)?;
        self.block.clear();
        Ok(())
    }
}

#[cfg(test)]
#[path = "pcapng_tests.rs"]
mod tests;
