//! Bulk messages that are longer than a medium one, and gets (`V 3.1`): their data go straight into
//! the segment, and one message runs the handler.

use hamlyn::engine::memory::LinkId;
use hamlyn::{Slot, Target};

use crate::error::Reason;
use crate::peer::EndpointId;
use crate::returned::{Operation, ToReturn};
use crate::spares::Spares;
use crate::translation::Translation;
use crate::wire::{Arguments, Category, Head, Kept, Place};
use crate::writing::Writing;

/// Transfers that a node has under way at a time.
const TRANSFERS_MAX: usize = 64;

/// Stage of a transfer.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Its first message is to be sent: a question for the receiver's segment, or that for data.
    Ask,
    /// That was sent. Its answer is the last of a get.
    Asked,
    /// The data are written; that goes to the slot with that proof.
    Write { proof: u64 },
    /// The message that runs the handler was sent.
    Last,
    /// It has ended, or failed.
    Over(Option<Reason>),
}

/// A transfer.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) translation: Translation,
    pub(crate) is_get: bool,
    pub(crate) handler: u8,
    pub(crate) arguments: Arguments,
    /// The place in the remote segment.
    pub(crate) place: Place,
    pub(crate) stage: Stage,
    /// The bytes of a bulk message, if they are kept here.
    pub(crate) data: Option<Vec<u8>>,
    /// The bytes are in the hands of a call that waits, and which sends them.
    pub(crate) is_lent: bool,
    /// The data on their way, the last ones if they were written twice.
    pub(crate) writing: Option<Writing>,
    /// The receiver's segment was asked for a second time.
    is_repeated: bool,
    /// A request of it has no answer yet.
    pub(crate) in_flight: bool,
    /// Of a get: its place in the own segment, the number of that, and the slot for the data.
    pub(crate) to: u64,
    pub(crate) segment: u64,
    pub(crate) slot: Option<Slot>,
}

impl Transfer {
    pub(crate) fn new(
        translation: Translation,
        is_get: bool,
        handler: u8,
        arguments: &[u32],
        place: Place,
    ) -> Self {
        Self {
            translation,
            is_get,
            handler,
            arguments: Arguments::new(arguments),
            place,
            stage: Stage::Ask,
            data: None,
            is_lent: false,
            writing: None,
            is_repeated: false,
            in_flight: false,
            to: 0,
            segment: 0,
            slot: None,
        }
    }

    /// Begins to write, to the slot with that proof.
    pub(crate) fn write(&mut self, target: &Target, proof: u64) {
        let Place {
            offset,
            length_bytes,
        } = self.place;
        self.writing = Some(Writing::new(*target, offset, length_bytes));
        self.stage = Stage::Write { proof };
    }

    /// It ends, for that reason if it failed; unless it has before.
    pub(crate) fn end(&mut self, failed: Option<Reason>) {
        if !matches!(self.stage, Stage::Over(Some(_))) {
            self.stage = Stage::Over(failed);
        }
    }

    /// The data did not find the segment that they were for: asks for it once more, if they are
    /// there still. False if not.
    fn repeat(&mut self) -> bool {
        let may = !self.is_repeated && (self.data.is_some() || self.is_lent);
        if may {
            self.is_repeated = true;
            self.stage = Stage::Ask;
        }
        may
    }

    /// True if it has nothing to do until its request is answered.
    pub(crate) fn rests(&self) -> bool {
        self.in_flight && !matches!(self.stage, Stage::Ask | Stage::Write { .. })
    }

    /// True if it must ask for the receiver's segment whatever is known of that.
    pub(crate) fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// A request of it was answered, or came back for that reason.
    pub(crate) fn request_ended(&mut self, failed: Option<Reason>) {
        self.in_flight = false;
        let is_last = matches!(self.stage, Stage::Last);
        if is_last && failed == Some(Reason::Moved) && self.repeat() {
            return;
        }
        match (&self.stage, failed) {
            (_, Some(reason)) => self.end(Some(reason)),
            (Stage::Last, None) => self.end(None),
            // Its slot is closed when the own segment is replaced.
            (Stage::Asked, None) if self.is_get => {
                let is_whole = self.slot.is_some() || self.place.length_bytes == 0;
                self.end((!is_whole).then_some(Reason::BadOffset));
            }
            // No answer to the question.
            (Stage::Asked, None) => self.end(Some(Reason::BadEndpoint)),
            _ => {}
        }
    }

    /// The transfer as it is returned.
    pub(crate) fn returned(self, reason: Reason) -> ToReturn {
        let (category, operation) = match self.is_get {
            true => (Category::Get, Operation::Get),
            false => (Category::Bulk, Operation::Transfer),
        };
        let mut message = Kept::new();
        let head = Head::new(category, self.handler);
        let (arguments, spares) = (self.arguments.as_slice(), &Spares::default());
        message.write(head, arguments, self.place, &[], None, spares);
        ToReturn {
            operation,
            reason,
            endpoint: self.translation.endpoint,
            translation: Some(self.translation.number),
            message,
            data: self.data,
            has_credit: false,
        }
    }
}

/// The transfers of a node, by number.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    places: Vec<Option<Box<Transfer>>>,
    /// A bit for each number that is taken.
    taken: u64,
    /// A bit for each that was touched since it was left to rest.
    due: u64,
}

const _: () = assert!(TRANSFERS_MAX == u64::BITS as usize, "a bit for each number");

impl Transfers {
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.taken != 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.taken == u64::MAX
    }

    /// The numbers of those that may have something to do.
    pub(crate) fn due(&self) -> impl Iterator<Item = u32> + use<> {
        let mut left = self.due & self.taken;
        std::iter::from_fn(move || {
            let number = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (number < u64::BITS).then_some(number)
        })
    }

    /// That one waits for an answer: nothing is due until it is touched.
    pub(crate) fn let_rest(&mut self, number: u32) {
        self.due &= !(1 << number);
    }

    /// Begins a transfer; its number. There must be room.
    pub(crate) fn insert(&mut self, transfer: Transfer) -> u32 {
        debug_assert!(
            !self.is_full(),
            "who asks for a transfer looks for room first"
        );
        let number = self.taken.trailing_ones();
        let at = number as usize;
        if at >= self.places.len() {
            self.places.resize_with(at + 1, || None);
        }
        self.places[at] = Some(Box::new(transfer));
        self.taken |= 1 << number;
        self.due |= 1 << number;
        number
    }

    /// That one, which is due from now on.
    pub(crate) fn get(&mut self, number: u32) -> Option<&mut Transfer> {
        let transfer = self.places.get_mut(number as usize)?.as_deref_mut()?;
        self.due |= 1 << number;
        Some(transfer)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Transfer> {
        self.due = self.taken;
        self.places
            .iter_mut()
            .flatten()
            .map(|transfer| &mut **transfer)
    }

    /// The number of those of an endpoint that have not ended, and for which no request is
    /// outstanding.
    pub(crate) fn waiting(&self, endpoint: EndpointId) -> u32 {
        let mut count = 0;
        for transfer in self.places.iter().flatten() {
            let is_over = matches!(transfer.stage, Stage::Over(None)) && !transfer.is_get;
            let is_its = transfer.translation.endpoint == endpoint;
            count += u32::from(is_its && !transfer.in_flight && !is_over);
        }
        count
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Box<Transfer>> {
        let transfer = self.places.get_mut(number as usize)?.take()?;
        self.taken &= !(1 << number);
        Some(transfer)
    }

    /// A slot has refused data: whatever is written there is so in vain. Who cannot write them anew
    /// hears of the reason by its last message. The translations of those transfers.
    pub(crate) fn refused_by(
        &mut self,
        link: LinkId,
        slot: u32,
    ) -> impl Iterator<Item = Translation> {
        self.iter_mut().filter_map(move |transfer| {
            let writing = transfer.writing.as_mut()?;
            if !writing.is_to(link, slot) || !matches!(transfer.stage, Stage::Write { .. }) {
                return None;
            }
            writing.give_up();
            transfer.repeat();
            Some(transfer.translation)
        })
    }
}
