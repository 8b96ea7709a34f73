//! A poll: takes answers and requests, tells credits, and attends to the rest.

use std::time::Duration;

use hamlyn::engine::memory::LinkId;
use hamlyn::error::FenceError;
use hamlyn::{CompletionError, CompletionQueue, Host, Port, PortSet, Session, Source};

use crate::error::Error;
use crate::peer::EndpointId;
use crate::receive::{return_request, take_request};
use crate::replies::{take_reply, take_stashed};
use crate::residence::{Pace, Residence};
use crate::state::{BundleState, State};
use crate::transfer::Stage;

/// Messages that a poll takes at most ([`Bundle::poll`](crate::Bundle::poll)): one that takes fewer
/// has taken all that were there.
pub const POLL_MESSAGES_MAX: usize = 64;
/// Polls in a row that attend to nothing but messages; each counts as so many more as it has taken
/// messages by this.
const STREAK_MAX: u32 = 16;
const MESSAGES_PER_POLL: u32 = 4;
/// Looks in vain of which one attends to everything, as long as there are few of them.
const LOOKS_PER_TURN: u32 = 4;
/// Looks of a wait after which all do that. A session sleeps after sixteen at the earliest.
const EAGER_LOOKS: u32 = 15;
/// Polls in vain after which fences are asked for.
const LOOKS_BEFORE_FENCES: u32 = 8;
/// A number that no bundle has.
const NO_BUNDLE: u32 = u32::MAX;
/// The number of the reply port in a set of ports: no endpoint has it.
const REPLIES: u64 = u64::MAX;
/// Fences that are under way at a time.
pub(crate) const FENCES_MAX: usize = 256;

/// A node, in the hands of one call.
pub(crate) struct NodeState {
    pub(crate) replies: Port,
    /// By bundle, the ports of its endpoints.
    pub(crate) sets: Vec<PortSet>,
    /// The bundle in whose set the reply port is: the one that was polled last.
    replies_in: u32,
    pub(crate) state: State,
    pub(crate) residence: Residence,
    pub(crate) pace: Pace,
    /// Ends of fences wake a sleeper that hears of refusals.
    fences: CompletionQueue,
    fences_under_way: usize,
    /// Polls since it was attended to the rest.
    unattended: u32,
    /// Polls since there was anything.
    looks: u32,
}

impl NodeState {
    pub(crate) fn new(
        replies: Port,
        fences: CompletionQueue,
        residence: Residence,
        state: State,
    ) -> Self {
        Self {
            replies,
            sets: Vec::new(),
            replies_in: NO_BUNDLE,
            state,
            residence,
            pace: Pace::default(),
            fences,
            fences_under_way: 0,
            unattended: 0,
            looks: 0,
        }
    }

    /// Puts an endpoint into the set of its bundle, where its messages are taken.
    pub(crate) fn place<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        id: EndpointId,
    ) -> Result<(), Error> {
        if let Some(endpoint) = self.state.endpoints.get(id)
            && let Some(set) = self.sets.get(endpoint.bundle as usize)
        {
            session.join_port_set(&endpoint.port, set, id.member())?;
        }
        Ok(())
    }

    /// Puts the reply port where that bundle takes messages; or apart.
    #[inline]
    fn place_replies<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
    ) -> Result<(), Error> {
        if self.replies_in != bundle {
            match self.sets.get(bundle as usize) {
                Some(set) => session.join_port_set(&self.replies, set, REPLIES)?,
                None => session.leave_port_set(&self.replies)?,
            }
            self.replies_in = bundle;
        }
        Ok(())
    }

    /// Takes messages for that bundle, and attends to what else there is; how many messages,
    /// returned ones included. Does not wait.
    #[inline]
    pub(crate) fn poll<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
    ) -> Result<usize, Error> {
        let asks_fences = self.looks >= LOOKS_BEFORE_FENCES;
        self.look(session, bundle, false, asks_fences)
    }

    /// A look of a wait, of which there were so many before; how many messages. The first ones are
    /// mostly at nothing but messages, so that the next one is seen soon. After those a sleep may
    /// follow, so each is at everything.
    #[inline]
    pub(crate) fn poll_in_wait<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
        looks_before: u32,
    ) -> Result<usize, Error> {
        if looks_before < EAGER_LOOKS {
            return self.look(session, bundle, false, false);
        }
        let count = self.look(session, bundle, true, true)?;
        if count > 0 {
            // A sleep may follow only a look that found nothing.
            session.look_within(Duration::ZERO);
        }
        Ok(count)
    }

    #[inline]
    fn look<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
        is_patient: bool,
        asks_fences: bool,
    ) -> Result<usize, Error> {
        if self.state.traffic.dropped.is_any() || self.state.traffic.was_interrupted() {
            self.clean_up(session)?;
        }
        let is_turn = self.looks % LOOKS_PER_TURN == LOOKS_PER_TURN - 1;
        let is_due = self.unattended >= STREAK_MAX;
        let is_turn = is_patient || is_turn || is_due || self.state.has_to_do(bundle);
        let mut count = self.take(session, bundle)?;
        self.state.tell_credits(session);
        self.unattended += 1 + count as u32 / MESSAGES_PER_POLL;
        if is_turn {
            self.unattended = 0;
            // A look that found messages is followed by another before a sleep.
            let asks_fences = asks_fences && count == 0;
            count += self.attend(session, bundle, asks_fences, count == POLL_MESSAGES_MAX)?;
        }
        self.looks = match count {
            0 => self.looks.saturating_add(1),
            _ => 0,
        };
        match self.state.traffic.failure.take() {
            None => Ok(count),
            Some(failed) => Err(failed.into()),
        }
    }

    /// Takes answers and requests: that which is next of all is read in place, and everything else
    /// from queues.
    #[inline]
    fn take<H: Host>(&mut self, session: &mut Session<'_, H>, bundle: u32) -> Result<usize, Error> {
        self.place_replies(session, bundle)?;
        let Some(set) = self.sets.get_mut(bundle as usize) else {
            return Ok(0);
        };
        let state = &mut self.state;
        let terminus = session.terminus();
        let drained =
            session.drain_messages(set, terminus, POLL_MESSAGES_MAX, |message, outbox| {
                if message.member() == REPLIES {
                    return take_reply(state, bundle, message);
                }
                let id = EndpointId::of_member(message.member());
                let of_all = (&mut state.peers, &mut state.traffic);
                match state.endpoints.get(id) {
                    Some(endpoint) => {
                        endpoint.stay.taken = endpoint.stay.taken.saturating_add(1);
                        take_request(&mut endpoint.receiving, of_all, message, outbox);
                    }
                    // It was shown before a handler panicked, and its endpoint is gone since.
                    None => return_request(id, of_all, message, outbox),
                }
            })?;
        Ok(drained)
    }

    fn take_answers<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
    ) -> Result<usize, Error> {
        let (port, state) = (&mut self.replies, &mut self.state);
        let terminus = session.terminus();
        Ok(
            session.drain_messages(port, terminus, POLL_MESSAGES_MAX, |message, _| {
                take_reply(state, bundle, message);
            })?,
        )
    }

    /// Takes answers until there are none.
    fn take_all_answers<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
    ) -> Result<usize, Error> {
        let mut count = 0;
        loop {
            let taken = self.take_answers(session, bundle)?;
            count += taken;
            if taken < POLL_MESSAGES_MAX {
                return Ok(count);
            }
        }
    }

    /// True if a message is there for an endpoint of that bundle. Runs no handlers, and does all
    /// else that a poll does.
    pub(crate) fn has_messages<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
        looks_before: u32,
    ) -> Result<bool, Error> {
        if self.state.traffic.dropped.is_any() || self.state.traffic.was_interrupted() {
            self.clean_up(session)?;
        }
        // Replies wait until their bundle is polled, as this is none.
        self.place_replies(session, NO_BUNDLE)?;
        self.take_all_answers(session, NO_BUNDLE)?;
        self.looks = self.looks.saturating_add(1);
        self.attend(session, NO_BUNDLE, looks_before >= EAGER_LOOKS, false)?;
        let State {
            endpoints,
            bundles,
            transfers,
            ..
        } = &mut self.state;
        for number in transfers.due() {
            if let Some(transfer) = transfers.get(number)
                && transfer.is_get
                && matches!(transfer.stage, Stage::Over(None))
                && let Some(endpoint) = endpoints.get(transfer.translation.endpoint)
                && endpoint.bundle == bundle
            {
                return Ok(true);
            }
        }
        let waits = bundles
            .get(bundle as usize)
            .is_some_and(BundleState::is_waiting);
        let set = self.sets.get(bundle as usize);
        Ok(waits || set.is_some_and(|set| session.is_ready(Source::PortSet(set))))
    }

    /// Attends to all but messages that come; how many handlers ran. It asks fences if it is said
    /// that a sleep may follow. `is_full`: more messages may be there than this look took.
    #[inline(never)]
    fn attend<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
        asks_fences: bool,
        is_full: bool,
    ) -> Result<usize, Error> {
        while self.fences_under_way > 0 {
            let Some(completion) = session.next_completion(&self.fences) else {
                break;
            };
            // Whatever it found is heard of next.
            self.fences_under_way -= 1;
            let link = LinkId::from_bits(completion.context);
            if let Some(peer) = self.state.peers.get(link) {
                let is_gone = matches!(
                    completion.result,
                    Err(CompletionError::Fence(FenceError::PeerLost(_)))
                );
                peer.delivery.answered(is_gone);
                self.state.traffic.fence_if_wanted(peer);
            }
        }
        let mut count = 0;
        if self.state.hear_events(session) {
            // Answers that came before the end of their link are answers.
            count += self.take_all_answers(session, bundle)?;
            self.state.end_lost(session);
        }
        if let Some(due_ns) = self.state.send_due(session) {
            session.look_within(Duration::from_nanos(due_ns));
        }
        while let Some(stashed) = self
            .state
            .bundle(bundle)
            .and_then(|bundle| bundle.stashed.pop_front())
        {
            take_stashed(&mut self.state, &stashed);
            count += 1;
        }
        if self.state.transfers.is_any() {
            self.state.advance_transfers(session);
            count += self.end_gets(bundle);
            for endpoint in std::mem::take(&mut self.state.wants_frame) {
                // It may be dropped meanwhile, and its number another's.
                if self.state.endpoints.get(endpoint).is_some() {
                    self.fault_by_call(session, endpoint)?;
                }
            }
        }
        if !self.state.traffic.asked.is_empty() {
            self.state.serve_asked(session);
            self.state.send_due(session);
        }
        self.load(session)?;
        count += self.state.run_returned(bundle, is_full);
        if self.state.returns_to(bundle) {
            session.look_within(Duration::ZERO);
        }
        self.state.tell_credits(session);
        self.state.tell_room(session);
        let awaited = std::mem::take(&mut self.state.traffic.awaited);
        self.ask_fences(session, awaited);
        if asks_fences {
            let unfenced = std::mem::take(&mut self.state.traffic.unfenced);
            self.ask_fences(session, unfenced);
        }
        Ok(count)
    }

    /// Has peers tell what they took and refused, and wake us when they do. A link has one fence
    /// under way: when that ends, we look again.
    fn ask_fences<H: Host>(&mut self, session: &mut Session<'_, H>, links: Vec<LinkId>) {
        let State { peers, traffic, .. } = &mut self.state;
        for link in links {
            let Some(peer) = peers.get(link) else {
                continue;
            };
            let was_unfenced = std::mem::take(&mut peer.is_unfenced);
            if !peer.delivery.is_asked() {
                let context = link.to_bits();
                if session.track_fence(&self.fences, link, context).is_ok() {
                    self.fences_under_way += 1;
                    peer.delivery.ask();
                    continue;
                }
            }
            if session.link_end(link).is_some() {
                continue;
            }
            // As many are under way as may be, or one of this link.
            if was_unfenced {
                traffic.fence_after(peer);
            }
            traffic.fence_if_wanted(peer);
        }
    }

    /// Cleans up after objects that were dropped, and a handler that panicked. The first error, when
    /// all is done.
    pub(crate) fn clean_up<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), Error> {
        let mut result = Ok(());
        for region in self.state.traffic.dropped.take_regions() {
            session.detach(&region);
        }
        for endpoint in self.state.clean_up() {
            self.residence.close(endpoint.index);
            self.state.end_own_slots(session, endpoint);
            if let Some(segment) = self.state.segment_of(endpoint) {
                // Pages that cannot be taken back are nobody's but the area's holders'.
                let _ = segment.close(session);
                segment.end(session);
            }
            if let Some(port) = self.state.remove_endpoint(endpoint) {
                result = result.and(self.close(session, endpoint, port));
            }
        }
        result
    }

    /// Closes a port. Requests that wait there come back, as those that come later do.
    fn close<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        endpoint: EndpointId,
        mut port: Port,
    ) -> Result<(), Error> {
        session.park_port(&port, true)?;
        let (terminus, state) = (session.terminus(), &mut self.state);
        let most = usize::MAX;
        session.drain_messages(&mut port, terminus, most, |message, outbox| {
            let of_all = (&mut state.peers, &mut state.traffic);
            return_request(endpoint, of_all, message, outbox);
        })?;
        Ok(session.close_port(port)?)
    }
}
