use std::borrow::Cow;
use std::path::PathBuf;

use pcap_file::pcapng::{Block, PcapNgReader};

use super::*;

/// A file of a test's own.
struct Room(PathBuf);

impl Room {
    fn new(test: &str) -> Self {
        let name = format!("hamlyn-trace-{test}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// The packets in the file, with their flags.
    fn packets(&self) -> Vec<(Vec<u8>, u32)> {
        let mut reader = PcapNgReader::new(File::open(&self.0).unwrap()).unwrap();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::EnhancedPacket(packet) => {
                    let Some(&EnhancedPacketOption::Flags(flags)) = packet.options.first() else {
                        panic!("a packet without a direction");
                    };
                    packets.push((Cow::into_owned(packet.data), flags));
                }
                Block::InterfaceDescription(interface) => {
                    assert_eq!(interface.linktype, DataLink::WIRESHARK_UPPER_PDU);
                }
                other => panic!("{other:?}"),
            }
        }
        packets
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const OF: TapSettings = TapSettings {
    own_association: 0x8123_000b,
    peer_association: 0x8000_0001,
    peer_interface: 0x0123_4567_89ab_cdef,
    peer_host: 7,
    peer_user: 1000,
    is_encrypted: true,
};

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn a_frame_is_written_with_its_direction_and_addresses() {
    let room = Room::new("one");
    let tap = Arc::new(Trace::open(&room.0).unwrap()).tap(OF);
    let (here, there) = (address("192.0.2.1:40000"), address("192.0.2.2:50000"));
    tap.sent(3, here, there, b"a frame");
    tap.came(
        0,
        address("[fd09::2]:1"),
        address("[fd09::1]:2"),
        b"another",
    );
    let packets = room.packets();
    let [(sent, 2), (came, 1)] = &packets[..] else {
        panic!("{packets:?}");
    };
    let tags = [
        &[0, 12, 0, 8][..],
        b"hamlyn\0\0",
        &[0, 20, 0, 4, 192, 0, 2, 1, 0, 21, 0, 4, 192, 0, 2, 2],
        &[0, 24, 0, 4, 0, 0, 0, 3],
        &[0, 25, 0, 4, 0, 0, 0x9c, 0x40, 0, 26, 0, 4, 0, 0, 0xc3, 0x50],
        &[0, 0, 0, 0],
    ]
    .concat();
    let (front, rest) = sent.split_at(tags.len());
    assert_eq!(front, tags);
    let (record, frame) = rest.split_at(RECORD_BYTES);
    assert_eq!(record[..4], [1, 0, SENT | SEALED, 3]);
    assert_eq!(record[4..8], std::process::id().to_le_bytes());
    assert_eq!(record[16..24], OF.peer_interface.to_le_bytes());
    assert_eq!(frame, b"a frame");
    assert!(came.ends_with(b"another"));
    assert!(came.windows(4).any(|tag| tag == [0, 22, 0, 16]));
}

#[test]
fn only_its_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::new("mode");
    let _trace = Trace::open(&room.0).unwrap();
    let mode = room.0.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn several_writers_of_one_file_tear_nothing_apart() {
    const WRITERS: u8 = 4;
    const FRAMES: usize = 200;
    let room = Room::new("many");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let path = &room.0;
            // Each with a file of its own, as processes have.
            scope.spawn(move || {
                let tap = Arc::new(Trace::open(path).unwrap()).tap(OF);
                let at = address("192.0.2.1:1");
                for frame in 0..FRAMES {
                    tap.sent(0, at, at, &vec![writer; 1 + frame * 7]);
                }
            });
        }
    });
    let packets = room.packets();
    for writer in 0..WRITERS {
        let of = |packet: &&(Vec<u8>, u32)| packet.0.last() == Some(&writer);
        let lengths: Vec<_> = packets
            .iter()
            .filter(of)
            .map(|(data, _)| data.len())
            .collect();
        assert_eq!(lengths.len(), FRAMES);
        assert!(lengths.windows(2).all(|pair| pair[0] + 7 == pair[1]));
    }
}

#[test]
fn what_is_no_trace_is_left_alone() {
    let room = Room::new("other");
    for other in [&b"mine"[..], &[0x0a; 4096]] {
        std::fs::write(&room.0, other).unwrap();
        assert!(Trace::open(&room.0).is_err());
        assert_eq!(std::fs::read(&room.0).unwrap(), other);
    }
    let link = Room::new("link");
    std::os::unix::fs::symlink(&room.0, &link.0).unwrap();
    assert!(Trace::open(&link.0).is_err(), "a link was followed");
    assert!(Trace::open(&std::env::temp_dir()).is_err());
    assert!(Trace::open("/dev/null".as_ref()).is_err());
}

#[test]
fn a_trace_that_cannot_be_written_ends_and_nothing_else_does() {
    let room = Room::new("full");
    let trace = Arc::new(Trace::open(&room.0).unwrap());
    // As if the disk were full: a descriptor that does not write.
    trace.output.lock().unwrap().file = File::open(&room.0).unwrap();
    let tap = trace.tap(OF);
    let at = address("192.0.2.1:1");
    tap.sent(0, at, at, b"a frame");
    assert!(trace.is_over.load(Ordering::Relaxed));
    tap.sent(0, at, at, b"a frame");
    assert!(room.packets().is_empty());
}
