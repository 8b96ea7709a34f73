//! The trace: writes the frames of this process' links to other hosts, in the clear, into a pcap-ng
//! file (decision 13).
//!
//! A reader of the file reads all messages, so only its owner can open it. Several processes may
//! write one file: each packet is one call of the system that appends, so nothing is torn apart,
//! and nothing is lost when a process is killed. What cannot be written ends the trace of this
//! process, and nothing else.
//!
//! A packet is an exported PDU of Wireshark (link type 252): tags that name the dissector and the
//! two addresses, then a record of [`RECORD_BYTES`] and the frame. The bytes of the record are in
//! `docs/protocol.md`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};

/// Bytes of the record before each frame.
pub const RECORD_BYTES: usize = 32;
/// The name of the dissector, in Wireshark.
const DISSECTOR: &[u8; 8] = b"hamlyn\0\0";
/// Format of the record.
const VERSION: u8 = 1;
/// The record's content: a frame of a link to another host.
const FRAME: u8 = 0;
/// The frame was sent by this side.
const SENT: u8 = 1;
/// It is encrypted in the network.
const SEALED: u8 = 2;
/// Timestamps are in nanoseconds: ten to the minus ninth seconds.
const NANOSECONDS: u8 = 9;

// Tags of exported PDUs, in the numbers of Wireshark; lengths and numbers are big endian.
const TAG_END: u16 = 0;
const TAG_DISSECTOR: u16 = 12;
const TAG_V4_FROM: u16 = 20;
const TAG_V4_TO: u16 = 21;
const TAG_V6_FROM: u16 = 22;
const TAG_V6_TO: u16 = 23;
const TAG_PORT_KIND: u16 = 24;
const TAG_PORT_FROM: u16 = 25;
const TAG_PORT_TO: u16 = 26;
const PORTS_OF_UDP: u32 = 3;

/// A file that frames are written to. See the module.
#[derive(Debug)]
pub struct Trace {
    output: Mutex<Output>,
    /// Nothing is written any more.
    is_over: AtomicBool,
}

struct Output {
    file: File,
    /// What is to be written next.
    blocks: PcapNgWriter<Vec<u8>>,
    /// Tags, record and frame of the packet at hand.
    packet: Vec<u8>,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Trace {
    /// Goes on with the trace in that file, or begins it: then the file is made for its owner
    /// alone. An error if it is something else, or cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::RDWR;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        if !FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).is_file() {
            return Err(invalid("it is no ordinary file"));
        }
        let mut file = File::from(file);
        let mut blocks = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little)
            .map_err(|error| invalid(&error.to_string()))?;
        let mut interface = InterfaceDescriptionBlock::new(DataLink::WIRESHARK_UPPER_PDU, 0);
        interface.options = vec![
            InterfaceDescriptionOption::IfName("hamlyn".into()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ];
        blocks
            .write_pcapng_block(interface)
            .map_err(|error| invalid(&error.to_string()))?;
        let begin = std::mem::take(blocks.get_mut());
        // Processes that begin at once agree who writes the beginning.
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        let mut found = vec![0; begin.len()];
        let has_begun = file.metadata()?.len() > 0;
        let checked = match has_begun {
            true => file.read_exact(&mut found),
            false => file.write_all(&begin),
        };
        rustix::fs::flock(&file, FlockOperation::Unlock)?;
        match checked {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ if has_begun && found != begin => {
                return Err(invalid("it is there, and is no trace of this version"));
            }
            _ => {}
        }
        Ok(Self {
            output: Mutex::new(Output {
                file,
                blocks,
                packet: Vec::new(),
            }),
            is_over: AtomicBool::new(false),
        })
    }

    /// Where the frames of one link go in.
    pub fn tap(self: &Arc<Self>, of: TapSettings) -> Tap {
        Tap {
            trace: Arc::clone(self),
            of,
        }
    }

    fn write(&self, tags_and_record: impl FnOnce(&mut Vec<u8>), flags: u32, frame: &[u8]) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        // A writer that panicked left a block that is cleared here.
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let output = &mut *output;
        output.packet.clear();
        tags_and_record(&mut output.packet);
        output.packet.extend_from_slice(frame);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: since.unwrap_or_default(),
            original_len: output.packet.len() as u32,
            data: output.packet.as_slice().into(),
            options: vec![EnhancedPacketOption::Flags(flags)],
        };
        output.blocks.get_mut().clear();
        let written = match output.blocks.write_block(&block.into_block()) {
            Ok(_) => output.file.write_all(output.blocks.get_ref()),
            Err(error) => Err(invalid(&error.to_string())),
        };
        if let Err(error) = written {
            self.is_over.store(true, Ordering::Relaxed);
            tracing::warn!(%error, "the trace ends here: it cannot be written");
        }
    }
}

/// Whose frames a tap sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TapSettings {
    /// The number of this side's association.
    pub own_association: u32,
    /// That of the peer's.
    pub peer_association: u32,
    /// The peer's interface.
    pub peer_interface: u64,
    /// The number of its host.
    pub peer_host: u32,
    /// The user that it says it is.
    pub peer_user: u32,
    /// Whether frames are encrypted in the network.
    pub is_encrypted: bool,
}

/// Where the frames of one link go into a trace.
#[derive(Clone, Debug)]
pub struct Tap {
    trace: Arc<Trace>,
    of: TapSettings,
}

impl Tap {
    /// A frame is about to be protected and sent.
    #[cold]
    pub fn sent(&self, path: u8, from: SocketAddr, to: SocketAddr, frame: &[u8]) {
        const OUTBOUND: u32 = 2;
        self.write(true, OUTBOUND, path, from, to, frame);
    }

    /// An authentic frame came.
    #[cold]
    pub fn came(&self, path: u8, from: SocketAddr, to: SocketAddr, frame: &[u8]) {
        const INBOUND: u32 = 1;
        self.write(false, INBOUND, path, from, to, frame);
    }

    fn write(
        &self,
        is_sent: bool,
        flags: u32,
        path: u8,
        from: SocketAddr,
        to: SocketAddr,
        frame: &[u8],
    ) {
        let front = |into: &mut Vec<u8>| {
            tags(from, to, into);
            let process = std::process::id();
            into.extend_from_slice(&self.of.record(is_sent, path, process));
        };
        self.trace.write(front, flags, frame);
    }
}

impl TapSettings {
    /// The record before a frame of that path of that process.
    pub fn record(&self, is_sent: bool, path: u8, process: u32) -> [u8; RECORD_BYTES] {
        let direction = if is_sent { SENT } else { 0 };
        let sealed = if self.is_encrypted { SEALED } else { 0 };
        let mut record = [0; RECORD_BYTES];
        record[..4].copy_from_slice(&[VERSION, FRAME, direction | sealed, path]);
        record[4..8].copy_from_slice(&process.to_le_bytes());
        record[8..12].copy_from_slice(&self.own_association.to_le_bytes());
        record[12..16].copy_from_slice(&self.peer_association.to_le_bytes());
        record[16..24].copy_from_slice(&self.peer_interface.to_le_bytes());
        record[24..28].copy_from_slice(&self.peer_host.to_le_bytes());
        record[28..32].copy_from_slice(&self.peer_user.to_le_bytes());
        record
    }
}

/// Writes the tags of a packet between these addresses.
fn tags(from: SocketAddr, to: SocketAddr, into: &mut Vec<u8>) {
    let mut tag = |number: u16, value: &[u8]| {
        // All of our values are multiples of four bytes long, as they must be.
        into.extend_from_slice(&number.to_be_bytes());
        into.extend_from_slice(&(value.len() as u16).to_be_bytes());
        into.extend_from_slice(value);
    };
    tag(TAG_DISSECTOR, DISSECTOR);
    match from.ip() {
        IpAddr::V4(ip) => tag(TAG_V4_FROM, &ip.octets()),
        IpAddr::V6(ip) => tag(TAG_V6_FROM, &ip.octets()),
    }
    match to.ip() {
        IpAddr::V4(ip) => tag(TAG_V4_TO, &ip.octets()),
        IpAddr::V6(ip) => tag(TAG_V6_TO, &ip.octets()),
    }
    tag(TAG_PORT_KIND, &PORTS_OF_UDP.to_be_bytes());
    tag(TAG_PORT_FROM, &u32::from(from.port()).to_be_bytes());
    tag(TAG_PORT_TO, &u32::from(to.port()).to_be_bytes());
    tag(TAG_END, &[]);
}

#[cfg(test)]
mod tests;
