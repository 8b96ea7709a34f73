//! Arbitrary bytes as a history of a receiving interface. For any bytes: no
//! panic, and memory changes exactly where a welcome packet names its place.
//!
//! Every history starts with four slots, one of each mode and one without
//! rights, of which the peer knows the keys. Then follow operations: a byte that says which,
//! and its operands. Where the bytes end, so does the history.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{Area, Denied, LinkId, NoWindow, Payload, copy_all};
use hamlyn_engine::metadata::{MetadataArea, Permission};
use hamlyn_engine::operation::{REQUEST_WORDS, leading_words};
use hamlyn_engine::packet::{Flags, Header, Kind, PortAddress, PortName, SlotName};
use hamlyn_engine::port::PortOptions;
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, QueueId, Rights, SlotOptions};

/// Bytes of the one area, on which all slots lie.
pub const AREA_BYTES: usize = 512;
/// Entries of the one metadata area.
pub const ENTRIES: u16 = 4;
/// Operations, and so meanings of the first byte of each, modulo this.
pub const OPERATIONS: u8 = 16;

const PEER: LinkId = LinkId {
    index: 0,
    generation: 1,
};

#[derive(Clone)]
struct Memory(Rc<RefCell<Vec<u8>>>);

impl Area for Memory {
    type Window = NoWindow;

    fn window(&self, _: u64, _: u64) -> NoWindow {
        NoWindow
    }

    fn length_bytes(&self) -> u64 {
        AREA_BYTES as u64
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), Denied> {
        // The engine checks; this area trusts it, so an engine that errs panics here.
        self.0.borrow_mut()[offset as usize..][..from.len()].copy_from_slice(from);
        Ok(())
    }

    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), Denied> {
        Err(Denied::OutOfArea)
    }

    fn message_complete(&self, low: u64, high: u64) {
        assert!(
            low <= high && high <= AREA_BYTES as u64,
            "{low}..{high} is not in the area"
        );
    }
}

#[derive(Clone)]
struct Bytes<'a>(&'a [u8]);

impl Payload<Memory> for Bytes<'_> {
    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        into[..length_bytes].fill(0xEE);
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        leading_words(self.0)
    }

    fn deposit(&self, area: &Memory, offset: u64) -> Result<(), Denied> {
        area.write(offset, self.0)
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        copy_all(self.0, into)
    }
}

/// What is left of the input.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn word(&mut self, bytes: usize) -> Option<u64> {
        (0..bytes).try_fold(0, |word, at| {
            Some(word | u64::from(self.byte()?) << (8 * at))
        })
    }

    /// A number that is mostly small, and sometimes at the other end.
    fn place(&mut self) -> Option<u64> {
        Some(match self.byte()? {
            byte @ 0..=0x7F => u64::from(byte) * 5,
            byte @ 0x80..=0xBF => u64::MAX - u64::from(byte - 0x80),
            0xC0..=0xDF => self.word(2)?,
            _ => self.word(8)?,
        })
    }
}

const HANDLERS: u16 = 4;
const PORT_QUEUE_BYTES: u32 = 256;

fn counted_bytes(message: &[u8]) -> usize {
    64 * message.len().div_ceil(64).max(1)
}

/// A slot, as somebody outside the engine remembers it.
#[derive(Clone, Copy)]
struct Known {
    name: SlotName,
    base: u64,
    length: u64,
    mode: Mode,
}

struct World {
    receiver: Receiver<Memory>,
    port: PortName,
    /// Those that wait at the port.
    messages: VecDeque<Vec<u8>>,
    memory: Memory,
    metadata: MetadataArea,
    queue: QueueId,
    slots: Vec<Known>,
    now_ns: u64,
}

impl World {
    fn open(&mut self, mode: Mode, rights: Rights, base: u64, length: u64, counting: Counting) {
        let opened = self.receiver.open_slot(SlotOptions {
            area: self.memory.clone(),
            base,
            length_bytes: length,
            key: Key::from_bits(1),
            rights,
            mode,
            metadata: Some(self.metadata.clone()),
            queue: Some(self.queue),
            counting,
        });
        let fits = base
            .checked_add(length)
            .is_some_and(|end| end <= AREA_BYTES as u64);
        assert_eq!(opened.is_ok(), fits, "{opened:?}");
        if let Ok(name) = opened {
            assert!(
                self.slots.iter().all(|slot| slot.name != name),
                "{name} twice"
            );
            self.slots.push(Known {
                name,
                base,
                length,
                mode,
            });
        }
    }

    fn known(&self, choice: u8) -> Known {
        self.slots[usize::from(choice) % self.slots.len()]
    }
}

/// Plays a history; returns what became of its packets.
pub fn run(bytes: &[u8]) -> Vec<Result<Received, Refusal>> {
    let mut receiver = Receiver::new(Some(100));
    let (queue, mut reader) = receiver.open_queue(4).expect("a legal length");
    let port = receiver.open_port(PortOptions {
        key: Key::from_bits(1),
        group: 0,
        handlers: HANDLERS,
        queue_bytes: PORT_QUEUE_BYTES,
        peer_bytes: PORT_QUEUE_BYTES,
    });
    let mut world = World {
        receiver,
        port: port.expect("a legal port"),
        messages: VecDeque::new(),
        memory: Memory(Rc::new(RefCell::new(vec![0; AREA_BYTES]))),
        metadata: MetadataArea::new(ENTRIES.into()).expect("a legal number"),
        queue,
        slots: Vec::new(),
        now_ns: 0,
    };
    world.receiver.set_up(0);
    world.open(Mode::Normal, Rights::WRITE, 16, 200, Counting::Bits32);
    world.open(Mode::Paranoid, Rights::WRITE, 100, 300, Counting::Bits64);
    world.open(
        Mode::ParanoidOneShot,
        Rights::WRITE,
        300,
        200,
        Counting::Bits32,
    );
    world.open(
        Mode::Normal,
        Rights::NONE,
        0,
        AREA_BYTES as u64,
        Counting::Bits32,
    );
    let mut input = Input(bytes);
    let mut announced = 0_u64;
    let mut outcomes = Vec::new();
    while operation(&mut world, &mut input, &mut announced, &mut outcomes).is_some() {
        if input.0.first().is_some_and(|next| next % 4 == 2) {
            let mut bytes = Vec::new();
            let arrived = world.receiver.pop_message(world.port, &mut bytes);
            bytes.truncate(arrived.map_or(0, |arrived| arrived.length_bytes as usize));
            assert_eq!(arrived.map(|_| bytes), world.messages.pop_front());
        }
        if input.0.first().is_some_and(|next| next % 4 == 3) {
            match reader.pop() {
                Ok(Some(_)) => announced -= 1,
                Ok(None) => assert_eq!(announced, 0),
                Err(overrun) => announced -= overrun.lost,
            }
        }
    }
    outcomes
}

fn operation(
    world: &mut World,
    input: &mut Input<'_>,
    announced: &mut u64,
    outcomes: &mut Vec<Result<Received, Refusal>>,
) -> Option<()> {
    match input.byte()? % OPERATIONS {
        0 => {
            let mode = [Mode::Normal, Mode::Paranoid, Mode::ParanoidOneShot]
                [usize::from(input.byte()? % 3)];
            let (base, length) = (input.place()?, input.place()?);
            world.open(mode, Rights::WRITE, base, length, Counting::Bits32);
        }
        1 => {
            let name = world.known(input.byte()?).name;
            let _ = world.receiver.close_slot(name);
            assert!(world.receiver.slot_info(name).is_err());
        }
        2 => {
            let name = world.known(input.byte()?).name;
            let _ = world
                .receiver
                .rekey_slot(name, Key::from_bits(u64::from(input.byte()? % 2)));
        }
        3 => {
            let _ = world.receiver.revoke_slot(world.known(input.byte()?).name);
        }
        4 => {
            let entry = world
                .metadata
                .entry(u16::from(input.byte()?) % ENTRIES)
                .expect("in range");
            let key = Key::from_bits(u64::from(input.byte()? % 2));
            entry.permit(Permission {
                key,
                low: input.place()?,
                high: input.place()?,
            });
        }
        5 => world
            .metadata
            .entry(u16::from(input.byte()?) % ENTRIES)
            .expect("in range")
            .arm(),
        6 => world
            .metadata
            .entry(u16::from(input.byte()?) % ENTRIES)
            .expect("in range")
            .disarm(),
        7 => {
            world.now_ns += u64::from(input.byte()?);
            world.receiver.tick(world.now_ns);
        }
        8 => world.receiver.handshake(world.now_ns),
        _ => outcomes.push(packet(world, input, announced)?),
    }
    Some(())
}

fn packet(
    world: &mut World,
    input: &mut Input<'_>,
    announced: &mut u64,
) -> Option<Result<Received, Refusal>> {
    let choice = input.byte()?;
    let known = world.known(choice);
    let wild = choice >= 0xF0;
    let header = Header {
        slot: if wild {
            SlotName::from_bits(input.word(4)? as u32)
        } else {
            known.name
        },
        metadata_index: match input.byte()? {
            byte @ 0..=0x7F => u16::from(byte) % (ENTRIES + 1),
            0x80..=0xBF => u16::MAX,
            _ => input.word(2)? as u16,
        },
        key: Key::from_bits(u64::from(input.byte()? % 8 != 0)),
        offset: input.place()?,
        length_bytes: if wild {
            input.word(4)? as u32
        } else {
            u32::from(input.byte()?)
        },
        word: input.place()?,
        metadata_length_bytes: input.byte()? % 64,
        flags: Flags(input.byte()? & if wild { 0xFF } else { 1 }),
        kind: Kind(if wild { input.byte()? } else { 0 }),
    };
    // A link makes sure of as many bytes as the header says; longer ones than the area is do not
    // fit anyway.
    let data = vec![choice | 1; (header.length_bytes as usize).min(AREA_BYTES + 1)];
    let mut expected = world.memory.0.borrow().clone();
    let refused = world.receiver.refusals().total();
    let outcome = world.receiver.receive(PEER, &header, &Bytes(&data), None);
    match outcome {
        Ok(received) if header.kind == Kind::MESSAGE => {
            let to = PortAddress::of(&header);
            let is_ours = (to.port, to.key, to.group) == (world.port, Key::from_bits(1), 0);
            assert!(is_ours && header.word < u64::from(HANDLERS));
            assert_eq!(received, Received::Queued);
            world.messages.push_back(data);
            let waiting: usize = world
                .messages
                .iter()
                .map(|message| counted_bytes(message))
                .sum();
            assert!(waiting <= PORT_QUEUE_BYTES as usize);
        }
        Ok(received) => {
            let slot = world
                .slots
                .iter()
                .find(|slot| slot.name == header.slot)
                .expect("a name that was given");
            let end = header
                .offset
                .checked_add(header.length_bytes.into())
                .expect("no overflow");
            assert!(end <= slot.length, "beyond the slot");
            assert!(header.kind == Kind::WRITE && header.metadata_length_bytes <= 60);
            let at = (slot.base + header.offset) as usize;
            expected[at..][..data.len()].copy_from_slice(&data);
            if slot.mode != Mode::Normal {
                let entry = world
                    .metadata
                    .entry(header.metadata_index)
                    .expect("an entry of the slot");
                let permission = entry.permission().expect("nobody is changing it");
                assert!(
                    header.key == permission.key
                        && header.offset >= permission.low
                        && end <= permission.high
                );
                let spent = slot.mode == Mode::ParanoidOneShot && received == Received::Complete;
                assert!(
                    !spent || !entry.is_armed(),
                    "a one-shot entry is still armed"
                );
            }
            if received == Received::Complete && !header.flags.is_silent() {
                *announced += 1;
            }
            assert_eq!(world.receiver.refusals().total(), refused);
        }
        Err(reason) => {
            assert_ne!(reason, Refusal::PlaceInUse);
            assert_eq!(world.receiver.refusals().total(), refused + 1);
        }
    }
    assert!(
        *world.memory.0.borrow() == expected,
        "memory changed outside the packet's place"
    );
    Some(outcome)
}
