//! The ends of a stream played by hand, from the bytes of its messages: for what no correct end
//! says, or not in that order.

use hamlyn::engine::key::Key;
use hamlyn::engine::metadata::Permission;
use hamlyn::engine::packet::SlotName;
use hamlyn::engine::slot::Mode;
use hamlyn::host::process::ProcessHost;
use hamlyn::stream::{StreamOptions, StreamSeed};
use hamlyn::{Manager, Message, NewSlot, Queue, Slot, Target, Ticket, Wait};

use super::{LONG, until};

/// The control entries of a stream.
pub(crate) const HELLO: u16 = 0;
pub(crate) const CLOSE: u16 = 1;
pub(crate) const ENLARGE: u16 = 2;

/// Whether it could be sent.
pub(crate) fn raw(manager: &Manager<ProcessHost>, target: &Target, message: &Message<'_>) -> bool {
    let terminus = manager.terminus();
    manager
        .session()
        .send_msg(terminus, target, message, Wait::millis(1_000))
        .is_ok()
}

/// A receiving end that says what a test wants it to say.
pub(crate) struct HandReceiver {
    /// Where records come; it is only kept.
    _pieces: Slot,
    control: Slot,
    queue: Queue,
    pub(crate) seed: StreamSeed,
}

/// With the check sum that is right for them.
pub(crate) fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = bytes.iter().fold(0x811c_9dc5_u32, |sum, &byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// A seed in the form in which it travels.
fn seed_bytes(ticket: &Ticket, pieces: u32, piece_bytes: u32, control: &Ticket) -> Vec<u8> {
    let limit_bytes = u64::from(pieces) * u64::from(piece_bytes);
    let exponent = u64::from(piece_bytes.trailing_zeros());
    let shape = u64::from(pieces) | exponent << 16 | limit_bytes << 24;
    summed(
        [
            &ticket.to_bytes()[..],
            &shape.to_le_bytes(),
            &control.slot.to_bits().to_le_bytes(),
            &control.key.to_bits().to_le_bytes(),
        ]
        .concat(),
    )
}

impl HandReceiver {
    pub(crate) fn new(manager: &Manager<ProcessHost>, options: StreamOptions) -> Self {
        let length = u64::from(options.pieces) * u64::from(options.piece_bytes);
        let queue = manager.session().open_queue(64).unwrap();
        let open = |length: u64, entries: u16| {
            let area = manager.session().allocate(length).unwrap();
            let new = NewSlot::new(&area)
                .mode(Mode::Paranoid)
                .entries(entries.into())
                .queue(&queue);
            let slot = manager.session().open_slot(new).unwrap();
            let key = manager.session().new_key().unwrap();
            for index in 0..entries {
                let entry = slot.metadata().unwrap().entry(index).unwrap();
                entry.permit(Permission {
                    key,
                    low: 0,
                    high: length,
                });
            }
            let ticket = slot.ticket(0, 0, length).unwrap();
            (slot, ticket)
        };
        let (pieces, ticket) = open(length, options.pieces as u16);
        let (control, control_ticket) = open(0, 3);
        let bytes = seed_bytes(
            &ticket,
            options.pieces,
            options.piece_bytes,
            &control_ticket,
        );
        Self {
            _pieces: pieces,
            control,
            queue,
            seed: StreamSeed::from_bytes(&bytes).unwrap(),
        }
    }

    /// Where the sender wants its credit.
    pub(crate) fn credit(&mut self, manager: &Manager<ProcessHost>) -> Ticket {
        until("the sender's hello", || {
            let came = manager
                .session()
                .rcv_block(&mut self.queue, LONG)
                .unwrap()?;
            (came.slot == self.control.name() && came.metadata_index == HELLO).then_some(())
        });
        let mut metadata = [0; 60];
        let length = self
            .control
            .metadata()
            .unwrap()
            .entry(HELLO)
            .unwrap()
            .metadata(&mut metadata);
        Ticket::from_bytes(&metadata[..length]).unwrap()
    }
}

/// The ticket for its first piece.
pub(crate) fn seed_ticket(seed: &StreamSeed) -> Ticket {
    Ticket::from_bytes(&seed.to_bytes()[..52]).unwrap()
}

/// The ticket for a control entry.
pub(crate) fn control_ticket(seed: &StreamSeed, which: u16) -> Ticket {
    let bytes = seed.to_bytes();
    Ticket {
        slot: SlotName::from_bits(u32::from_le_bytes(bytes[60..64].try_into().unwrap())),
        key: Key::from_bits(u64::from_le_bytes(bytes[64..72].try_into().unwrap())),
        metadata_index: which,
        length_bytes: 0,
        ..seed_ticket(seed)
    }
}

/// A sending end that says what a test wants it to say.
pub(crate) struct HandSender {
    manager: Manager<ProcessHost>,
    target: Target,
    seed: StreamSeed,
    slot: Slot,
    queue: Queue,
}

/// What the receiver said.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// A word: the extent, how many grow requests are answered, and whether the last of them by a
    /// refusal.
    Credit(u64, u64, bool),
    /// An extent: its serial number, its pieces, and the answers.
    Extent(u64, u32, u16),
}

impl HandSender {
    /// Connects, and says nothing.
    pub(crate) fn new(manager: &Manager<ProcessHost>, seed: StreamSeed) -> Self {
        let target = manager.session().target(&seed_ticket(&seed), LONG).unwrap();
        let area = manager.session().allocate(16).unwrap();
        let queue = manager.session().open_queue(64).unwrap();
        let new = NewSlot::new(&area).queue(&queue).entries(1);
        let slot = manager.session().open_slot(new).unwrap();
        Self {
            manager: manager.clone(),
            target,
            seed,
            slot,
            queue,
        }
    }

    fn say(&self, which: u16, metadata: &[u8]) {
        let target = self.target.with_ticket(control_ticket(&self.seed, which));
        let message = Message::new(&[]).metadata(metadata);
        assert!(raw(&self.manager, &target.unwrap(), &message));
    }

    /// Presents itself.
    pub(crate) fn hello(&self) {
        let ticket = self.slot.fast_ticket(0, 16).unwrap();
        self.say(HELLO, &ticket.to_bytes());
    }

    /// Says that nothing comes after that position of that extent.
    pub(crate) fn close(&self, extent: u64, position: u64) {
        let place = [extent, position].map(u64::to_le_bytes).concat();
        self.say(CLOSE, &place);
    }

    /// Says that it cannot go on there, with a record so long.
    pub(crate) fn request_growth(&self, extent: u64, position: u64, record_bytes: u64) {
        let request = [extent, position, record_bytes].map(u64::to_le_bytes);
        self.say(ENLARGE, &request.concat());
    }

    /// Fills a piece of the first extent with one record.
    pub(crate) fn fill(&self, index: u16, record: &[u8]) {
        self.put(index, record, 1, record.len() as u32);
    }

    /// Fills a piece of the first extent, and says of what kind it is and how long.
    pub(crate) fn put(&self, index: u16, bytes: &[u8], kind: u32, length_bytes: u32) {
        let ticket = seed_ticket(&self.seed);
        let seed = self.seed.to_bytes();
        let piece_bytes = 1_u32 << seed[54];
        let target = self.target.with_ticket(Ticket {
            metadata_index: index,
            ..ticket
        });
        let word = (u64::from(length_bytes) | u64::from(kind) << 32).to_le_bytes();
        let message = Message::new(bytes)
            .at(u64::from(index) * u64::from(piece_bytes))
            .metadata(&word);
        assert!(raw(&self.manager, &target.unwrap(), &message));
    }

    /// The next thing that the receiver says.
    pub(crate) fn hear(&mut self) -> Heard {
        let came = until("an answer", || {
            self.manager.session().rcv(&mut self.queue).unwrap()
        });
        if came.is_fast() {
            let word = came.word;
            return Heard::Credit(
                word >> 32 & 0x3FFF,
                word >> 46 & 0xFFFF,
                word >> 62 & 1 != 0,
            );
        }
        let mut note = [0; 60];
        let entry = self.slot.metadata().unwrap().entry(0).unwrap();
        assert_eq!(entry.metadata(&mut note), 30);
        assert_eq!(summed(note[..26].to_vec()), note[..30]);
        Heard::Extent(
            u64::from_le_bytes(note[..8].try_into().unwrap()),
            u16::from_le_bytes(note[20..22].try_into().unwrap()).into(),
            u16::from_le_bytes(note[24..26].try_into().unwrap()),
        )
    }
}
