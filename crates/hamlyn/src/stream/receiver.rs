//! The receiving end of a stream.

mod delivering;
mod dialogue;
mod releasing;

use std::task::Waker;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::slot::SlotInfo;
use hamlyn_host::Host;

use super::control::Control;
use super::extent::{Extent, NotFastPath};
use super::keeping::{Delivered, Keeping};
use super::options::StreamOptions;
use super::wire::{CONTROL_ENTRIES, Credit, GrowRequest, StreamSeed};
use crate::core::Core;
use crate::error::{OpenError, ReceiveError};
use crate::interface::Interface;
use crate::manager::{Arrival, ClassId};
use crate::message::Target;
use crate::peer::LinkEnd;
use crate::peer::PeerLost;
use crate::remains::{LastWord, Leaving, Remains};
use crate::session::Session;
use crate::tasks::Interest;
use crate::wait::{Wait, Waiting};

/// Looks for a record, while polling, before what need not be done at once is done again.
const LOOKS_PER_IDLE: u32 = 16;

/// A piece with several records, of which some are still to be delivered.
#[derive(Clone, Copy, Debug)]
struct Packed {
    position: u64,
    /// Where the piece begins.
    offset: u64,
    length_bytes: usize,
    at: usize,
}

/// Looks of one wait for a record.
#[derive(Default)]
struct Looks {
    /// Whether there was one.
    is_repeated: bool,
    /// Those that found nothing.
    idle: u32,
    /// Nothing more could come when the last of these found nothing: what came with the end of the
    /// link may be there though it has ended since.
    is_drained: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Receiver {
    class: ClassId,
    options: StreamOptions,
    /// Where the sender speaks beside its records.
    control: Control,
    /// The oldest that still holds records first, the one being filled last.
    extents: Vec<Extent>,
    /// Serial number of the first of them.
    first: u64,
    /// Which of them is being delivered from.
    delivering: u64,
    packed: Option<Packed>,
    /// The record that was delivered last,
    latest: Delivered,
    /// unless it was a short one of the first extent, while nothing was kept: then so long.
    latest_short_bytes: Option<u32>,
    /// Where the extent before the newest ended, which may be gone.
    ended: Option<u64>,
    /// Where credit goes; known when the sender has presented itself.
    credit: Option<Target>,
    /// The link over which it did.
    greeted_by: Option<LinkId>,
    /// The sender was gone before its presentation was read.
    gone: Option<PeerLost>,
    reported: u64,
    /// Serial number of the newest extent that the sender was told of.
    announced: u64,
    /// A grow request that is not answered: the sender has not presented itself yet, or what is
    /// still held is in its way.
    grow_request: Option<GrowRequest>,
    /// Grow requests answered, modulo 2^16, and how many of the answers the sender was told of.
    answers: u16,
    answers_told: u16,
    /// The last answer was that there is no more memory.
    denied: bool,
    /// The sender waits for credit at this position, however little.
    needs_credit_at: Option<u64>,
    /// Where more memory was refused last: once is enough.
    refused: Option<u64>,
    closed: bool,
    /// What the sender had accepted was not all sent when it ended.
    is_given_up: bool,
    broken: Option<&'static str>,
    /// Whether there is one extent and it awaits its next piece, no record is kept, and nothing
    /// else is to be done before that.
    is_plain: bool,
    keeping: Keeping,
    /// Pieces released in the first extent from which on more is to be done than to count them.
    due: u64,
    leaving: Leaving,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let slots = self.extents.iter().map(Extent::slot_name);
        let word = Credit {
            closed: true,
            ..self.state()
        };
        self.leaving.leave(Remains {
            slots: slots.chain([self.control.slot_name()]).collect(),
            class: Some(self.class),
            last_word: self
                .credit
                .map(|target| LastWord::fast(target, word.to_word())),
            ..Remains::default()
        });
    }
}

impl Receiver {
    /// Opens the receiving end, with all the memory it starts with.
    pub(crate) fn new<H: Host>(
        session: &mut Session<'_, H>,
        options: StreamOptions,
    ) -> Result<Self, OpenError> {
        options.check()?;
        session.core.reap();
        let options = options.with_first_pieces(session.core.room());
        let entries = options.pieces as usize + usize::from(CONTROL_ENTRIES);
        let class = session.core.register_queued(entries)?;
        let opened = Control::open(session, class).and_then(|control| {
            match Extent::open(session, class, &options) {
                Ok(extent) => Ok((control, extent)),
                Err(error) => {
                    control.close(session)?;
                    Err(error)
                }
            }
        });
        match opened {
            Ok((control, extent)) => Ok(Self {
                class,
                options,
                control,
                extents: vec![extent],
                first: 0,
                delivering: 0,
                packed: None,
                latest: Delivered::default(),
                latest_short_bytes: None,
                ended: None,
                credit: None,
                greeted_by: None,
                gone: None,
                reported: 0,
                announced: 0,
                grow_request: None,
                answers: 0,
                answers_told: 0,
                denied: false,
                needs_credit_at: None,
                refused: None,
                closed: false,
                is_given_up: false,
                broken: None,
                is_plain: false,
                keeping: Keeping::default(),
                due: 0,
                leaving: session.leaving.clone(),
            }),
            Err(error) => {
                session.core.unregister(class);
                Err(error)
            }
        }
    }

    /// What the sending end grows from (`Hamlyn 3.3`). For one sender.
    pub(crate) fn make_seed(&self) -> StreamSeed {
        match self.extents.last() {
            Some(extent) => extent.seed(&self.control, self.limit_bytes()),
            None => unreachable!("a stream always has an extent"),
        }
    }

    /// The next record. Nothing if none came in time. [`ReceiveError::Closed`] when the sender has
    /// closed and all is received, and [`ReceiveError::PeerLost`] when the sender is gone. Before a
    /// sender has presented itself, none is bound to the stream; [`crate::Manager::next_event`]
    /// tells losses until then. Gives back what was kept, and delivers the next record, if it is a
    /// short one that another look finds.
    #[inline(never)]
    pub(crate) fn look_for_short<H: Host>(&mut self, session: &mut Session<'_, H>) -> bool {
        self.reclaim(session);
        session.look_again() && self.deliver_short(&mut session.core)
            || self.deliver_in_cells(&mut session.core)
    }

    #[inline(never)]
    pub(crate) fn receive_slowly<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
    ) -> Result<bool, ReceiveError> {
        let result = self.await_record(session, wait);
        self.note_ways();
        result
    }

    /// Delivers the next record, if it is a short one and what comes next at all.
    #[inline(always)]
    pub(crate) fn deliver_short<H: Host>(&mut self, core: &mut Core<H>) -> bool {
        self.deliver_plain::<H, false>(core)
    }

    /// The same, if it takes several cells.
    #[inline(never)]
    fn deliver_in_cells<H: Host>(&mut self, core: &mut Core<H>) -> bool {
        self.deliver_plain::<H, true>(core)
    }

    #[inline(always)]
    fn deliver_plain<H: Host, const IN_CELLS: bool>(&mut self, core: &mut Core<H>) -> bool {
        if !self.is_plain {
            return false;
        }
        let Some(extent) = self.extents.first_mut() else {
            return false;
        };
        match extent.deliver_short::<H, IN_CELLS>(core) {
            Ok(delivered) => {
                self.latest_short_bytes = delivered;
                delivered.is_some()
            }
            Err(NotFastPath) => {
                extent.note_next();
                self.is_plain = false;
                false
            }
        }
    }

    /// Gives all that a sender may write to new keys: the seed that was given out is worth nothing
    /// any more. False if there is no memory for that.
    pub(crate) fn renew<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<bool, OpenError> {
        let options = self.options;
        let Some(extent) = self.open_extent(session, &options) else {
            return Ok(false);
        };
        let control = match Control::open(session, self.class) {
            Ok(control) => control,
            Err(error) => {
                extent.close(session, self.class)?;
                return Err(error);
            }
        };
        std::mem::replace(&mut self.control, control).close(session)?;
        for old in std::mem::replace(&mut self.extents, vec![extent]) {
            old.close(session, self.class)?;
        }
        self.note_ways();
        Ok(true)
    }

    fn await_record<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
    ) -> Result<bool, ReceiveError> {
        if self.deliver_next()? {
            return Ok(true);
        }
        let mut waiting = Waiting::new(wait);
        let mut looks = Looks::default();
        let delivered = session.wait_within(&mut waiting, |session, waiting| {
            self.look(session, &mut looks, !waiting.polls())
        })?;
        if delivered.is_none() && looks.idle < LOOKS_PER_IDLE {
            self.when_idle(session, looks.is_drained)?;
        }
        Ok(delivered.is_some())
    }

    /// The step of a wait for a record: delivers it, if it has come. Tells the sender what it is to
    /// know, at every look if the wait `sleeps` between them.
    fn look<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        looks: &mut Looks,
        sleeps: bool,
    ) -> Result<Option<()>, ReceiveError> {
        // A record that comes while we wait should be seen soon, so the fast path is tried first.
        if std::mem::replace(&mut looks.is_repeated, true) {
            self.note_ways();
            let core = &mut session.core;
            if self.deliver_short(core)
                || self.deliver_in_cells(core)
                || !self.is_plain && self.deliver_next()?
            {
                return Ok(Some(()));
            }
        }
        // A sender that sends no records must not keep us for longer than we would wait.
        let pieces: u32 = self.extents.iter().map(Extent::pieces).sum();
        let most = pieces + u32::from(CONTROL_ENTRIES);
        for _ in 0..=most {
            let Some(arrival) = session.core.next_arrival(self.class) else {
                looks.idle += 1;
                let is_drained = |target: &Target| session.is_drained(target.link());
                looks.is_drained = self.credit.as_ref().is_some_and(is_drained);
                if sleeps || looks.idle.is_multiple_of(LOOKS_PER_IDLE) {
                    self.when_idle(session, looks.is_drained)?;
                }
                break;
            };
            self.take(session, arrival)?;
            if self.deliver_next()? {
                return Ok(Some(()));
            }
        }
        Ok(None)
    }

    /// A task waits for a record: its sender may wait for the memory of one that is kept.
    pub(crate) fn will_wake_when_released(&self, waker: &Waker) {
        self.keeping.will_wake_when_released(waker);
    }

    /// The interest of a task that found no record.
    pub(crate) fn interest(&self) -> Interest {
        // There may be room for credit without news.
        match self.owes_credit() {
            true => Interest::Anything,
            false => Interest::Arrivals(self.class, None),
        }
    }

    /// Delivers the next record, whatever it is, if it has come.
    fn deliver_next(&mut self) -> Result<bool, ReceiveError> {
        let record = self.next_record()?;
        if let Some(record) = record {
            self.latest = record;
            self.latest_short_bytes = None;
        }
        Ok(record.is_some())
    }

    /// To be called when anything changed but what the fast paths change themselves.
    fn note_ways(&mut self) {
        let only = match self.extents.as_slice() {
            [only] if self.broken.is_none() => Some(only),
            _ => None,
        };
        self.is_plain = self.packed.is_none()
            && self.keeping.is_empty()
            && only.is_some_and(Extent::awaits_next);
        self.due = match only {
            Some(extent) => self.reported.saturating_add(self.report_after(extent)),
            None => 0,
        };
    }

    /// The bytes of a record. Nothing if it was released.
    #[inline]
    pub(crate) fn bytes(&self, record: &Delivered) -> Option<&[u8]> {
        let extent = self
            .extents
            .get(usize::try_from(record.extent.checked_sub(self.first)?).ok()?)?;
        // Its pieces may hold another record by now.
        if record.position < extent.released {
            return None;
        }
        if record.length_bytes == 0 {
            return Some(&[]);
        }
        extent.view(record.offset, record.length_bytes)
    }

    /// Gives back the memory of the record that was delivered last. True if that is all there is to
    /// be done; otherwise [`Receiver::release_slowly`] is.
    #[inline(always)]
    pub(crate) fn release_at_once(&mut self) -> bool {
        if self.latest_short_bytes.is_some()
            && let Some(extent) = self.extents.first_mut()
        {
            extent.release_to(extent.next);
            return extent.released < self.due;
        }
        false
    }

    /// The sender's end of the connection, once it has presented itself.
    pub(crate) fn sender(&self) -> Option<hamlyn_host::Destination> {
        let linked = self
            .credit
            .as_ref()
            .map(|target| target.ticket().destination);
        linked.or(self.gone.map(|lost| lost.peer))
    }

    /// The link over which the sender presented itself.
    pub(crate) fn sender_link(&self) -> Option<LinkId> {
        self.greeted_by
    }

    /// Bytes of memory that the stream has at present.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.extents.iter().map(Extent::length_bytes).sum()
    }

    /// Packets refused at this stream's present memory, by reason, and more.
    pub(crate) fn info<H: Host>(
        &self,
        interface: &Interface<H>,
    ) -> Result<Option<SlotInfo>, OpenError> {
        match self.extents.last() {
            Some(extent) => Ok(Some(interface.slot_info(extent.slot())?)),
            None => Ok(None),
        }
    }

    fn delivering_extent(&mut self) -> Option<&mut Extent> {
        let index = usize::try_from(self.delivering - self.first).ok()?;
        self.extents.get_mut(index)
    }

    /// Serial number of the extent that is being filled.
    fn newest(&self) -> u64 {
        self.first + self.extents.len() as u64 - 1
    }

    fn move_on(&mut self) {
        self.delivering += 1;
        self.reported = 0;
    }

    fn drop_first_extent<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if !self.extents.is_empty() {
            let extent = self.extents.remove(0);
            self.first += 1;
            if let Err(error) = extent.close(session, self.class) {
                tracing::debug!(%error, "closing an extent");
            }
        }
    }

    /// Takes in one arrival.
    #[inline]
    fn take<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        arrival: Arrival,
    ) -> Result<(), ReceiveError> {
        let of_slot = |extent: &&mut Extent| extent.slot_name() == arrival.slot;
        if let Some(extent) = self.extents.iter_mut().rfind(of_slot) {
            extent.note_arrival(u32::from(arrival.metadata_index));
            return Ok(());
        }
        if self.control.slot_name() == arrival.slot {
            return self.take_control(session, arrival);
        }
        // An extent that is gone.
        Ok(())
    }

    /// Nothing came: memory may be short, the sender may be dead. Nothing more can come of it if it
    /// was drained before.
    fn when_idle<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        is_drained: bool,
    ) -> Result<(), ReceiveError> {
        self.reclaim(session);
        // All of an extent may have been given back before the stream moved on from it.
        while self.first < self.delivering
            && self.extents.first().is_some_and(Extent::is_given_back)
        {
            self.drop_first_extent(session);
        }
        self.flush_credit(session);
        self.report(session);
        if let Some(request) = self.grow_request
            && self.is_drained_at(request.place.position)
        {
            self.answer_grow_request(session)?;
        }
        if self.delivering == self.newest()
            && !self.closed
            && self.extents.last().is_some_and(Extent::is_held_whole)
        {
            let position = self.extents.last().map_or(0, |extent| extent.next);
            // One attempt: if the limit is reached, the application must release first.
            if self.memory_bytes() < self.options.limit_bytes
                && self.credit.is_some()
                && self.refused != Some(position)
            {
                self.enlarge(session, position, 1);
                self.flush_credit(session);
            }
        }
        if let Some(lost) = self.gone {
            return Err(lost.into());
        }
        match &self.credit {
            Some(target) if is_drained => {
                let end = session
                    .link_end(target.link())
                    .unwrap_or(LinkEnd::ClosedHere);
                Err(PeerLost {
                    peer: target.ticket().destination,
                    end,
                }
                .into())
            }
            _ => Ok(()),
        }
    }
}

fn malformed(what: &'static str) -> ReceiveError {
    ReceiveError::Malformed {
        protocol: "stream",
        what,
    }
}
