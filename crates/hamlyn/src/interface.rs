//! The lower layer (`Hamlyn 3.2`): an interface with its slots, termini and
//! queues, `send_msg` and `rcv`.
//!
//! An interface belongs to one thread at a time: it is `Send`, and every call
//! takes `&mut self`. A program with several threads opens one for each.

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::notification::{Notification, NotificationReader};
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_engine::receive::Receiver;
use hamlyn_engine::refusal::{Refusal, Refusals};
use hamlyn_engine::slot::{Mode, QueueId, Rights, SlotError, SlotInfo, SlotOptions};
use hamlyn_engine::terminus::{
    Completion, GatherPiece, PostError, SendHandle, SendTag, TerminusError, TerminusId,
    TerminusOptions,
};
use hamlyn_engine::transmit::{Borrowed, Message as EngineMessage, Transmitter};
use hamlyn_host::{
    Address, ConnectError, Connected, Destination, Event, Host, HostError, Peer, Supply,
};
use hamlyn_link::Link;
use hamlyn_ring::area::{Area, HandoverReader};

use crate::error::{OpenError, PeerLost, ReceiveError, SendError};
use crate::links::{LinkEnd, Links};
use crate::ticket::{OutsideTicket, Ticket};
use crate::wait::{Next, Patience, Wait};

/// Packets taken from one link before the next link has its turn, while packets keep coming.
const RECEIVE_BURST: usize = 32;
/// Polls in a row that must have found something before more than one packet is taken at a
/// time: a lone message is handed on at once, without a look for a second.
const BURST_AFTER: u32 = 2;
/// Packets of queued messages sent per poll.
const PUMP_BURST: usize = 64;
/// Losses remembered for end points that have not heard of them yet.
const LOSSES_KEPT: usize = 64;
/// Wrong keys from one peer before it is cut off, unless set otherwise.
const BAD_KEYS_MAX: u32 = 65_536;

/// A notification queue with its reading end.
#[derive(Debug)]
pub struct Queue {
    pub(crate) id: QueueId,
    pub(crate) reader: NotificationReader,
    /// Losses of peers that waits on this queue have reported.
    pub(crate) losses_seen: u64,
}

impl Queue {
    /// What slots are opened with in order to announce arrivals here.
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// Number of entries.
    pub fn capacity(&self) -> usize {
        self.reader.capacity()
    }

    /// Notifications lost to overrun so far.
    pub fn lost(&self) -> u64 {
        self.reader.lost()
    }
}

/// An open slot, in its owner's hands. Closed by [`Interface::close_slot`].
#[derive(Debug)]
pub struct Slot {
    pub(crate) name: SlotName,
    key: Key,
    length_bytes: u64,
    mode: Mode,
    counting: Counting,
    destination: Destination,
    metadata: Option<MetadataArea>,
}

/// A slot to be opened: by default the whole area, normal mode, write right,
/// no metadata entries, no queue.
#[derive(Clone, Debug)]
pub struct NewSlot {
    /// The message area.
    pub area: Area,
    /// Which part of it.
    pub range: std::ops::Range<u64>,
    /// What holders of the key may do.
    pub rights: Rights,
    /// Mode of operation.
    pub mode: Mode,
    /// Metadata entries; 0 for fast mode and silent messages only.
    pub entries: usize,
    /// Where arrivals are announced.
    pub queue: Option<QueueId>,
    /// Width of the accumulators.
    pub counting: Counting,
}

impl NewSlot {
    /// A slot over the whole of `area`, which others may have too.
    pub fn new(area: &Area) -> Self {
        Self::over(area.clone())
    }

    /// A slot over the whole of `area`, which becomes the slot's own. So it must be
    /// with a handover area, which only one slot can write.
    pub fn over(area: Area) -> Self {
        use hamlyn_engine::memory::Area as _;
        Self {
            range: 0..area.length_bytes(),
            area,
            rights: Rights::WRITE,
            mode: Mode::Normal,
            entries: 0,
            queue: None,
            counting: Counting::Bits32,
        }
    }

    /// Announces arrivals in `queue`.
    #[must_use]
    pub fn queue(mut self, queue: &Queue) -> Self {
        self.queue = Some(queue.id);
        self
    }

    /// With that many metadata entries.
    #[must_use]
    pub fn entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// In that mode.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Over that part of the area.
    #[must_use]
    pub fn range(mut self, range: std::ops::Range<u64>) -> Self {
        self.range = range;
        self
    }

    /// With accumulators of that width.
    #[must_use]
    pub fn counting(mut self, counting: Counting) -> Self {
        self.counting = counting;
        self
    }
}

impl Slot {
    /// Its name in packets.
    pub fn name(&self) -> SlotName {
        self.name
    }

    /// Bytes that it covers.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Its metadata entries.
    pub fn metadata(&self) -> Option<&MetadataArea> {
        self.metadata.as_ref()
    }

    /// A ticket for fast mode, for the part of the slot at `offset`.
    pub fn fast_ticket(&self, offset: u64, length_bytes: u64) -> Result<Ticket, OutsideTicket> {
        self.whole(FAST_INDEX, self.key).narrow(offset, length_bytes)
    }

    /// A ticket for the metadata entry of that index and the part of the slot at
    /// `offset`. In the paranoid modes it carries the entry's key, and its bounds must lie within the
    /// entry's limits.
    pub fn ticket(
        &self,
        index: u16,
        offset: u64,
        length_bytes: u64,
    ) -> Result<Ticket, OutsideTicket> {
        let outside = OutsideTicket { offset, length_bytes, ticket_bytes: 0 };
        let entry =
            self.metadata.as_ref().and_then(|area| area.entry(index)).ok_or(outside)?;
        if self.mode == Mode::Normal {
            return self.whole(index, self.key).narrow(offset, length_bytes);
        }
        let permission = entry.permission().ok_or(outside)?;
        let ticket = self.whole(index, permission.key).narrow(offset, length_bytes)?;
        if offset < permission.low || offset + length_bytes > permission.high {
            return Err(OutsideTicket {
                ticket_bytes: permission.high.saturating_sub(permission.low),
                ..outside
            });
        }
        Ok(ticket)
    }

    fn whole(&self, metadata_index: u16, key: Key) -> Ticket {
        Ticket {
            destination: self.destination,
            slot: self.name,
            metadata_index,
            key,
            base: 0,
            length_bytes: self.length_bytes,
            counting: self.counting,
        }
    }
}

/// A ticket that has been made usable here: its link is known.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub(crate) link: LinkId,
    ticket: Ticket,
}

impl Target {
    /// The ticket.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The same, for another metadata entry.
    #[inline]
    pub(crate) fn set_metadata_index(&mut self, index: u16) {
        self.ticket.metadata_index = index;
    }

    /// The link over which messages go.
    pub fn link(&self) -> LinkId {
        self.link
    }

    /// The same link, for another ticket to the same interface.
    pub fn with_ticket(&self, ticket: Ticket) -> Option<Target> {
        (ticket.destination == self.ticket.destination)
            .then_some(Target { link: self.link, ticket })
    }
}

/// A message for the lower layer.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Where in the ticket's place the data go.
    pub offset: u64,
    /// The data.
    pub data: &'a [u8],
    /// Up to 60 bytes of metadata; none in fast mode.
    pub metadata: &'a [u8],
    /// The word of a fast-mode message; meaningless otherwise.
    pub word: u64,
    /// How it is counted.
    pub share: Option<Share>,
    /// Lands unannounced.
    pub silent: bool,
}

impl<'a> Message<'a> {
    /// A message of that data at the beginning of the ticket's place.
    pub fn new(data: &'a [u8]) -> Self {
        Self { offset: 0, data, metadata: &[], word: 0, share: None, silent: false }
    }

    /// At that offset in the ticket's place.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// With metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: &'a [u8]) -> Self {
        self.metadata = metadata;
        self
    }

    /// With the one word of fast mode.
    #[must_use]
    pub fn word(mut self, word: u64) -> Self {
        self.word = word;
        self
    }

    /// Counted as a part of a group.
    #[must_use]
    pub fn share(mut self, share: Share) -> Self {
        self.share = Some(share);
        self
    }

    /// Lands unannounced.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }
}

/// An interface. See the module.
pub struct Interface<H: Host> {
    host: H,
    receiver: Receiver<Area>,
    transmitter: Transmitter<Area>,
    links: Links<H::Link>,
    losses: std::collections::VecDeque<PeerLost>,
    loss_count: u64,
    bad_keys_max: u32,
    /// Polls in a row that found something.
    streak: u32,
    /// See [`Interface::activity`].
    activity: u64,
}

impl<H: Host> Interface<H> {
    /// An interface on that host, ready for packets.
    pub fn new(host: H) -> Self {
        let mut receiver = Receiver::new(None);
        receiver.set_up(host.now_ns());
        Self {
            host,
            receiver,
            transmitter: Transmitter::new(),
            links: Links::new(),
            losses: std::collections::VecDeque::with_capacity(LOSSES_KEPT),
            loss_count: 0,
            bad_keys_max: BAD_KEYS_MAX,
            streak: 0,
            activity: 0,
        }
    }

    /// Where tickets of this interface point.
    pub fn identity(&self) -> Destination {
        self.host.identity()
    }

    /// The host.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// The host.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// How many packets with a wrong key a peer may send before it is cut off.
    pub fn set_bad_keys_max(&mut self, packets: u32) {
        self.bad_keys_max = packets;
    }

    // Memory, slots, queues: the owner's calls (Hamlyn 3.1).

    /// Memory for a message area or send-buffer area, zeroed and reserved.
    pub fn allocate(&mut self, length_bytes: u64) -> Result<Area, HostError> {
        self.host.allocate(length_bytes)
    }

    /// Memory in pieces that change hands; see [`HandoverReader`].
    pub fn allocate_handover(
        &mut self,
        pieces: u32,
        piece_bytes: u32,
    ) -> Result<(Area, HandoverReader), HostError> {
        self.host.allocate_handover(pieces, piece_bytes)
    }

    /// A key that nobody can guess.
    pub fn new_key(&mut self) -> Result<Key, HostError> {
        Ok(Key::from_bits(self.host.random_bits()?))
    }

    /// Opens a notification queue.
    pub fn open_queue(&mut self, entries: usize) -> Result<Queue, OpenError> {
        let (id, reader) = self.receiver.open_queue(entries)?;
        Ok(Queue { id, reader, losses_seen: self.loss_count })
    }

    /// Closes a notification queue; close its slots first.
    pub fn close_queue(&mut self, queue: Queue) {
        self.receiver.close_queue(queue.id);
    }

    /// Opens a slot with a fresh key.
    pub fn open_slot(&mut self, new: NewSlot) -> Result<Slot, OpenError> {
        let key = self.new_key()?;
        let metadata = match new.entries {
            0 => None,
            entries => Some(MetadataArea::new(entries)?),
        };
        let length_bytes = new.range.end.saturating_sub(new.range.start);
        let name = self.receiver.open_slot(SlotOptions {
            area: new.area,
            base: new.range.start,
            length_bytes,
            key,
            rights: new.rights,
            mode: new.mode,
            metadata: metadata.clone(),
            queue: new.queue,
            counting: new.counting,
        })?;
        Ok(Slot {
            name,
            key,
            length_bytes,
            mode: new.mode,
            counting: new.counting,
            destination: self.host.identity(),
            metadata,
        })
    }

    /// Closes a slot. Its tickets are worthless from now on.
    pub fn close_slot(&mut self, slot: Slot) -> Result<(), SlotError> {
        self.receiver.close_slot(slot.name)
    }

    /// Gives the slot a fresh key: tickets made before are worthless, in normal mode.
    /// Also lifts a revocation.
    pub fn rekey_slot(&mut self, slot: &mut Slot) -> Result<(), OpenError> {
        let key = self.new_key()?;
        self.receiver.rekey_slot(slot.name, key)?;
        slot.key = key;
        Ok(())
    }

    /// Shuts everybody out until the slot is re-keyed.
    pub fn revoke_slot(&mut self, slot: &Slot) -> Result<(), SlotError> {
        self.receiver.revoke_slot(slot.name)
    }

    /// What is known of a slot, its refusals included.
    pub fn slot_info(&self, slot: &Slot) -> Result<SlotInfo, SlotError> {
        self.receiver.slot_info(slot.name)
    }

    /// Number of slots open.
    pub fn slots_open(&self) -> usize {
        self.receiver.slots_open()
    }

    /// Packets refused by this interface, by reason.
    pub fn refusals(&self) -> &Refusals {
        self.receiver.refusals()
    }

    /// Opens a send terminus. Allocates its work queue.
    pub fn open_terminus(&mut self, options: TerminusOptions) -> Result<TerminusId, TerminusError> {
        self.transmitter.open_terminus(options)
    }

    /// Closes a send terminus; queued messages are dropped.
    pub fn close_terminus(&mut self, terminus: TerminusId) -> Result<(), TerminusError> {
        self.transmitter.close_terminus(terminus)
    }

    /// Makes a part of an area a send-buffer area of a terminus.
    pub fn bind_area(
        &mut self,
        terminus: TerminusId,
        area: &Area,
        range: std::ops::Range<u64>,
    ) -> Result<SendTag, TerminusError> {
        let length_bytes = range.end.saturating_sub(range.start);
        self.transmitter.bind_area(terminus, area.clone(), range.start, length_bytes)
    }

    /// Undoes [`Interface::bind_area`].
    pub fn unbind_area(&mut self, terminus: TerminusId, tag: SendTag) -> Result<(), TerminusError> {
        self.transmitter.unbind_area(terminus, tag)
    }

    /// The completion word of a terminus, to be looked at from any thread.
    pub fn completions(
        &self,
        terminus: TerminusId,
    ) -> Result<std::sync::Arc<hamlyn_engine::terminus::CompletionWord>, TerminusError> {
        self.transmitter.completions(terminus)
    }

    /// What became of a message: whether its buffers may be used again (`Hamlyn 6.2`).
    pub fn completion(&self, handle: SendHandle) -> Result<Completion, TerminusError> {
        Ok(self.transmitter.completions(handle.terminus)?.completion(handle.sequence))
    }

    // Peers.

    /// Makes a ticket usable: finds the link to its interface, connecting if there is none.
    /// Blocks for as long as `wait` says, if it must connect.
    pub fn target(&mut self, ticket: &Ticket, wait: Wait) -> Result<Target, ConnectError> {
        self.attend_if_asked();
        let link = match self.links.to(&ticket.destination) {
            Some(link) => link,
            None => self.connect(Address::Destination(ticket.destination), wait)?,
        };
        Ok(Target { link, ticket: *ticket })
    }

    /// A target over a link that is there already, if only for what a lost peer sent;
    /// never connects.
    pub(crate) fn target_linked(&mut self, ticket: &Ticket) -> Option<Target> {
        self.attend_if_asked();
        let link = self.links.to_or_from(&ticket.destination)?;
        Some(Target { link, ticket: *ticket })
    }

    /// Connects to another interface by name, or to this one.
    pub fn connect(&mut self, to: Address<'_>, wait: Wait) -> Result<LinkId, ConnectError> {
        let deadline_ns = Patience::deadline_ns(wait, self.host.now_ns());
        match self.host.connect(to, deadline_ns)? {
            Connected::New(peer, link) => Ok(self.links.insert(peer, link)),
            Connected::Already { token } => {
                self.attend();
                if let Some(live) = self.links.by_token(token) {
                    let destination = live.peer.destination;
                    if let Some(link) = self.links.to(&destination) {
                        return Ok(link);
                    }
                }
                Err(ConnectError::Gone { to: describe(to) })
            }
        }
    }

    /// Ends the link to a peer. What was sent to it stays sent; what is queued for it fails.
    pub fn disconnect(&mut self, link: LinkId) {
        if self.links.get(link).is_some() {
            self.remove_link(link.index as usize, LinkEnd::ClosedHere);
        }
    }

    /// The peers that are linked.
    pub fn peers(&self) -> impl Iterator<Item = (LinkId, &Peer)> {
        self.links.iter().map(|(id, live)| (id, &live.peer))
    }

    /// Why a link is not up, or nothing if it is.
    pub fn link_end(&self, link: LinkId) -> Option<LinkEnd> {
        self.links.end_of(link)
    }

    /// Whether everything that a lost peer had sent has been taken.
    pub(crate) fn is_drained(&self, link: LinkId) -> bool {
        self.links.get(link).is_none()
    }

    /// The loss of that peer, if it is not long ago.
    pub(crate) fn recent_loss(&self, peer: &Destination) -> Option<PeerLost> {
        self.losses.iter().rev().find(|lost| lost.peer == *peer).copied()
    }

    /// Losses of peers so far; compare to learn of new ones.
    pub(crate) fn loss_count(&self) -> u64 {
        self.loss_count
    }

    /// The next loss that the caller has not seen; `seen` counts on.
    pub(crate) fn next_loss(&self, seen: &mut u64) -> Option<PeerLost> {
        if *seen == self.loss_count {
            return None;
        }
        let kept = self.losses.len() as u64;
        *seen = (*seen).max(self.loss_count - kept);
        let index = (*seen + kept - self.loss_count) as usize;
        *seen += 1;
        self.losses.get(index).copied()
    }

    pub(crate) fn lost(&self, target: &Target) -> PeerLost {
        PeerLost {
            peer: target.ticket.destination,
            end: self.links.end_of(target.link).unwrap_or(LinkEnd::ClosedHere),
        }
    }

    /// Offers 1 to 1024 bytes, the ticket of a well-known slot or a seed say, to whoever asks for
    /// `item`, so that a program that knows only a name can make contact (`Hamlyn 6.3`).
    ///
    /// With [`Supply::Once`] one asker gets it, and several of the same name queue up; a ticket that
    /// only one peer is to have is offered so. With [`Supply::Always`] everybody
    /// gets it, and it takes the place of all that was offered under the name before.
    /// Who may be linked to this interface may ask. Answers are given while this program computes.
    pub fn offer(&mut self, item: &str, supply: Supply, bytes: &[u8]) -> Result<(), HostError> {
        self.host.offer(item, supply, bytes)
    }

    /// Takes back all that is offered under `item`. Who was given it before has it.
    pub fn withdraw(&mut self, item: &str) {
        self.host.withdraw(item);
    }

    /// Asks another interface, or this one, for what it offers under `item`. Needs no link
    /// and makes none. Blocks for as long as `wait` says while nobody has the name or nothing is
    /// offered; nothing is received meanwhile. [`Wait::Poll`] leaves no time for others to answer.
    pub fn ask(
        &mut self,
        to: Address<'_>,
        item: &str,
        wait: Wait,
    ) -> Result<Vec<u8>, ConnectError> {
        let deadline_ns = Patience::deadline_ns(wait, self.host.now_ns());
        self.host.ask(to, item, deadline_ns)
    }

    // Sending.

    /// Sends a message (`h_send_msg`, `Hamlyn 3.2`). Short ones are queued if the link has no room;
    /// longer ones are sent from where they are, so the call lasts until all of it is handed to the link.
    /// Meanwhile arriving packets are taken in. Blocks for as long as `wait` says;
    /// with [`Wait::Poll`] it sends nothing rather than wait.
    #[inline]
    pub fn send_msg(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.attend_if_asked();
        let posting = compose(target, message, message.data.len() as u64)?;
        match self.transmitter.post(
            terminus,
            &posting,
            message.metadata,
            message.data,
            &mut self.links,
        ) {
            Ok(posted) => Ok(posted.handle),
            Err(error) => self.send_slowly(terminus, target, &posting, message, wait, error),
        }
    }

    #[cold]
    #[inline(never)]
    fn send_slowly(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        posting: &EngineMessage,
        message: &Message<'_>,
        wait: Wait,
        mut error: PostError,
    ) -> Result<SendHandle, SendError> {
        let would_block = SendError::WouldBlock { peer: target.ticket.destination };
        let mut patience = Patience::new(wait);
        loop {
            match error {
                PostError::LinkGone => return Err(self.lost(target).into()),
                PostError::TooLongToQueue { .. } if wait != Wait::Poll => {
                    match self.send_borrowed(terminus, target, posting, message, &mut patience)? {
                        Some(handle) => return Ok(handle),
                        None => return Err(would_block),
                    }
                }
                PostError::QueueFull | PostError::TooLongToQueue { .. } => {
                    self.poll();
                    if !self.pause(&mut patience)? {
                        return Err(would_block);
                    }
                }
                other => return Err(other.into()),
            }
            match self.transmitter.post(
                terminus,
                posting,
                message.metadata,
                message.data,
                &mut self.links,
            ) {
                Ok(posted) => return Ok(posted.handle),
                Err(again) => error = again,
            }
        }
    }

    /// Sends a long message from the caller's slice. Nothing if there was no
    /// room within the wait even for its first packet.
    fn send_borrowed(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        posting: &EngineMessage,
        message: &Message<'_>,
        patience: &mut Patience,
    ) -> Result<Option<SendHandle>, SendError> {
        let mut segmenter = loop {
            match self.transmitter.begin_borrowed(
                terminus,
                posting,
                message.metadata,
                message.data.len() as u64,
                &self.links,
            ) {
                Ok(segmenter) => break segmenter,
                Err(PostError::QueueFull) => {
                    self.poll();
                    if !self.pause(patience)? {
                        return Ok(None);
                    }
                }
                Err(PostError::LinkGone) => return Err(self.lost(target).into()),
                Err(other) => return Err(other.into()),
            }
        };
        loop {
            let state = self.transmitter.continue_borrowed(
                terminus,
                target.link,
                &mut segmenter,
                message.metadata,
                message.data,
                &mut self.links,
            )?;
            match state {
                Borrowed::Sent => return Ok(Some(self.transmitter.finish_borrowed(terminus)?)),
                Borrowed::Gone => return Err(self.lost(target).into()),
                Borrowed::More => {
                    // Reception never waits for transmission, nor do other termini.
                    self.poll();
                }
                Borrowed::Full => {
                    self.poll();
                    if !self.pause(patience)? {
                        return if segmenter.is_started() {
                            Err(SendError::Cut {
                                peer: target.ticket.destination,
                                sent_bytes: segmenter.sent_bytes(),
                            })
                        } else {
                            Ok(None)
                        };
                    }
                }
            }
        }
    }

    /// Sends a message gathered from send-buffer areas (`Hamlyn 2.3`): pulled by
    /// the interface, packet by packet, as the link has room. The buffers must stay as they are until its
    /// [`Completion`]. `message.data` is not used. Never blocks.
    pub fn send_gather(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        pieces: &[GatherPiece],
    ) -> Result<SendHandle, SendError> {
        self.attend_if_asked();
        let mut length_bytes = 0_u64;
        for piece in pieces {
            length_bytes =
                length_bytes.checked_add(piece.length_bytes).ok_or(PostError::TooLong)?;
        }
        let posting = compose(target, message, length_bytes)?;
        match self.transmitter.post_gather(
            terminus,
            &posting,
            message.metadata,
            pieces,
            &mut self.links,
        ) {
            Ok(posted) => Ok(posted.handle),
            Err(PostError::LinkGone) => Err(self.lost(target).into()),
            Err(PostError::QueueFull) => {
                Err(SendError::WouldBlock { peer: target.ticket.destination })
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Copies up to 60 bytes of metadata out of a send-buffer area.
    pub fn gather_metadata(
        &self,
        terminus: TerminusId,
        piece: &GatherPiece,
        into: &mut [u8; hamlyn_engine::limits::USER_METADATA_BYTES],
    ) -> Result<usize, PostError> {
        self.transmitter.gather_metadata(terminus, piece, into)
    }

    /// Waits until everything queued at the terminus up to `handle` is handed to its links.
    pub fn drain(&mut self, handle: SendHandle, wait: Wait) -> Result<Completion, SendError> {
        let word =
            self.transmitter.completions(handle.terminus).map_err(|_| SendError::Finished)?;
        let mut patience = Patience::new(wait);
        loop {
            let completion = word.completion(handle.sequence);
            if completion != Completion::Pending {
                return Ok(completion);
            }
            self.poll();
            if word.completion(handle.sequence) == Completion::Pending
                && !self.pause(&mut patience)?
            {
                return Ok(Completion::Pending);
            }
        }
    }

    /// Waits until nothing is queued any more: every message that was accepted is handed to its
    /// link, or has failed with it. False if the time was over first.
    ///
    /// Here the application's own calls move its messages, so a program that sends and then does
    /// something else for long, or ends, calls this in between.
    pub fn flush(&mut self, wait: Wait) -> Result<bool, HostError> {
        let mut patience = Patience::new(wait);
        loop {
            self.poll();
            if !self.transmitter.is_waiting() {
                return Ok(true);
            }
            if !self.pause(&mut patience)? {
                return Ok(false);
            }
        }
    }

    // Receiving.

    /// Looks for a message (`h_rcv`, `Hamlyn 3.2`). Does not block.
    #[inline]
    pub fn rcv(&mut self, queue: &mut Queue) -> Result<Option<Notification>, ReceiveError> {
        if let Some(notification) = queue.reader.pop()? {
            return Ok(Some(notification));
        }
        self.poll();
        Ok(queue.reader.pop()?)
    }

    /// Waits for a message (`h_rcv_block`). Nothing if none came in time. The loss of a peer
    /// interrupts the wait, once per loss.
    pub fn rcv_block(
        &mut self,
        queue: &mut Queue,
        wait: Wait,
    ) -> Result<Option<Notification>, ReceiveError> {
        let mut patience = Patience::new(wait);
        loop {
            if let Some(notification) = self.rcv(queue)? {
                return Ok(Some(notification));
            }
            if let Some(lost) = self.next_loss(&mut queue.losses_seen) {
                return Err(lost.into());
            }
            if !self.pause(&mut patience)? {
                return Ok(None);
            }
        }
    }

    /// Moves packets: takes what has come, sends what is queued, learns of
    /// connections and losses. Returns the number of packets taken. Does not block.
    #[inline]
    pub fn poll(&mut self) -> usize {
        self.attend_if_asked();
        let burst = if self.streak >= BURST_AFTER { RECEIVE_BURST } else { 1 };
        let mut packets = 0;
        for index in 0..self.links.places() {
            packets += self.poll_link(index, burst);
        }
        self.streak = if packets == 0 { 0 } else { self.streak.saturating_add(1) };
        self.activity += packets as u64;
        if self.transmitter.is_waiting() {
            self.activity += self.transmitter.pump(&mut self.links, PUMP_BURST).packets as u64;
        }
        packets
    }

    #[inline(always)]
    fn poll_link(&mut self, index: usize, burst: usize) -> usize {
        let Some(live) = self.links.at(index) else { return 0 };
        let receiver = &mut self.receiver;
        let mut packets = 0;
        let end = loop {
            match live.link.receive(|header, payload| receiver.receive(header, payload)) {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(refusal))) => {
                    if matches!(refusal, Refusal::BadKey | Refusal::BadEntryKey) {
                        live.bad_keys += 1;
                        if live.bad_keys > self.bad_keys_max {
                            break LinkEnd::BadKeys;
                        }
                    }
                }
                Ok(None) => {
                    // Not while there is something to do for the application.
                    if packets == 0 {
                        live.link.settle();
                    }
                    match live.lost {
                        None => return packets,
                        Some(cause) => break LinkEnd::Lost(cause),
                    }
                }
                Err(fault) => break LinkEnd::Fault(fault),
            }
            packets += 1;
            if packets == burst {
                return packets;
            }
        };
        self.remove_link(index, end);
        packets
    }

    #[cold]
    fn remove_link(&mut self, index: usize, end: LinkEnd) {
        let Some(live) = self.links.remove_at(index, end) else { return };
        self.activity += 1;
        if !matches!(end, LinkEnd::Lost(_)) {
            tracing::debug!(peer = ?live.peer.destination, %end, "link closed");
            self.host.disconnect(live.peer.token);
            self.note_loss(PeerLost { peer: live.peer.destination, end });
        }
    }

    fn note_loss(&mut self, lost: PeerLost) {
        if self.losses.len() == LOSSES_KEPT {
            self.losses.pop_front();
        }
        self.losses.push_back(lost);
        self.loss_count += 1;
    }

    #[inline]
    fn attend_if_asked(&mut self) {
        if self.host.attention() {
            self.attend();
        }
    }

    #[cold]
    #[inline(never)]
    fn attend(&mut self) {
        while let Some(event) = self.host.next_event() {
            self.activity += 1;
            match event {
                Event::Linked(peer, link) => {
                    self.links.insert(peer, link);
                }
                Event::Lost { token, cause } => {
                    let Some(live) = self.links.by_token(token) else { continue };
                    if live.lost.is_none() {
                        live.lost = Some(cause);
                        let peer = live.peer.destination;
                        self.note_loss(PeerLost { peer, end: LinkEnd::Lost(cause) });
                    }
                }
            }
        }
    }

    // Waiting.

    /// One step of a wait: false when its time is over.
    #[inline]
    pub(crate) fn pause(&mut self, patience: &mut Patience) -> Result<bool, HostError> {
        match patience.next(self.host.spin_ns(), || self.host.now_ns()) {
            Next::Stop => Ok(false),
            Next::Spin => {
                if !patience.is_eager() {
                    self.host.relax();
                }
                Ok(true)
            }
            Next::Sleep(deadline_ns) => {
                // Only if nothing at all changed while the caller looked: what it looked at
                // first may have changed by what it did last.
                if patience.is_news(self.activity) {
                    return Ok(true);
                }
                self.sleep(deadline_ns).map(|()| true)
            }
        }
    }

    #[cold]
    fn sleep(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        let before = self.activity;
        self.prepare_wait();
        // Whoever saw us awake has sent by now: look once more. Whatever that look changes,
        // the caller has not seen yet.
        self.poll();
        let result = if self.activity == before
            && !self.host.attention()
            && !self.links.starving().any(|live| live.link.credit_came())
        {
            self.host.sleep(deadline_ns)
        } else {
            Ok(())
        };
        self.end_wait();
        result
    }

    /// Counts what happens here: packets taken and sent from queues, connections, losses. An event
    /// loop compares it to know that nothing came since it last looked at its queues.
    pub fn activity(&self) -> u64 {
        self.activity
    }

    /// For event loops of others: announces that this program is about to wait on
    /// [`Interface::descriptor`]. In order: note [`Interface::activity`]; look at your queues and
    /// end points; call this; [`Interface::poll`]; wait only if the activity is still the same; and
    /// call [`Interface::end_wait`] in any case.
    pub fn prepare_wait(&mut self) {
        for live in self.links.starving() {
            live.link.await_credit();
        }
        self.host.prepare_sleep();
    }

    /// Ends what [`Interface::prepare_wait`] began.
    pub fn end_wait(&mut self) {
        self.host.end_sleep();
        for live in self.links.starving() {
            live.starving = false;
        }
    }

    /// A descriptor that becomes readable when there may be something to do,
    /// between [`Interface::prepare_wait`] and [`Interface::end_wait`].
    pub fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.host.descriptor()
    }
}

impl<H: Host> std::fmt::Debug for Interface<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interface")
            .field("identity", &self.host.identity())
            .field("slots", &self.receiver.slots_open())
            .field("links", &self.links.iter().count())
            .finish_non_exhaustive()
    }
}

/// The engine's view of a message to that target.
#[inline]
fn compose(
    target: &Target,
    message: &Message<'_>,
    length_bytes: u64,
) -> Result<EngineMessage, OutsideTicket> {
    let ticket = &target.ticket;
    let offset = ticket.place(message.offset, length_bytes)?;
    Ok(EngineMessage {
        link: target.link,
        header: Header {
            slot: ticket.slot,
            metadata_index: ticket.metadata_index,
            key: ticket.key,
            offset,
            length_bytes: 0,
            word: message.word,
            metadata_length_bytes: 0,
            flags: if message.silent { Flags::SILENT } else { Flags::NONE },
            kind: Kind::WRITE,
        },
        share: message.share.unwrap_or(Share::whole(ticket.counting)),
    })
}

fn describe(to: Address<'_>) -> String {
    match to {
        Address::Name(name) => format!("{name:?}"),
        Address::Destination(destination) => crate::error::PeerName(destination).to_string(),
    }
}
