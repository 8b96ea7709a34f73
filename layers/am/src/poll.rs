//! A poll: takes answers and requests, tells credits, and attends to the rest.

use std::time::Duration;

use hamlyn::engine::refusal::Refusal;
use hamlyn::{CompletionQueue, Host, Port, Session};

use crate::call::Call;
use crate::error::{Error, Reason};
use crate::peer::EndpointId;
use crate::port::EndpointState;
use crate::receive::{return_request, take_request};
use crate::replies::{take_reply, take_stashed};
use crate::residence::Residence;
use crate::state::State;

/// Answers that are taken in one go.
const ANSWERS_MAX: usize = 64;
/// Polls in a row that look at nothing but where messages were last, and attend to nothing else.
const STREAK_MAX: u32 = 16;
/// Looks in vain of which one looks at everything, as long as there are few of them.
const LOOKS_PER_TURN: u32 = 4;
/// Looks of a wait after which all do that. A session sleeps after sixteen at the earliest.
const EAGER_LOOKS: u32 = 15;
/// Polls in vain after which fences are asked for.
const LOOKS_BEFORE_FENCES: u32 = 8;
/// Time that an endpoint which was loaded stays, if nothing comes: longer than the pause of a
/// sender whose message was refused.
const STAY: Duration = Duration::from_millis(2);
/// A number that no bundle has.
const NO_BUNDLE: u32 = u32::MAX;
/// Fences that are under way at a time.
pub(crate) const FENCES_MAX: usize = 64;

/// The extent of a look.
#[derive(Clone, Copy, Default)]
struct Look {
    /// At all messages, not only where they were last.
    is_whole: bool,
    /// And at everything else.
    is_patient: bool,
    asks_fences: bool,
}

/// A node, in the hands of one call.
pub(crate) struct NodeState {
    pub(crate) replies: Port,
    pub(crate) state: State,
    pub(crate) residence: Residence,
    /// Ends of fences wake a sleeper that hears of refusals.
    fences: CompletionQueue,
    fences_under_way: usize,
    /// Answers came last, not requests.
    awaits_answers: bool,
    /// Polls that looked at only one of both.
    streak: u32,
    /// Polls since it was attended to the rest.
    unattended: u32,
    /// Polls since there was anything.
    looks: u32,
    /// Packets that were refused as an endpoint was not resident.
    knocks_seen: u64,
    /// When they are looked for again at the earliest.
    knocks_due_ns: u64,
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
            state,
            residence,
            fences,
            fences_under_way: 0,
            awaits_answers: false,
            streak: 0,
            unattended: 0,
            looks: 0,
            knocks_seen: 0,
            knocks_due_ns: 0,
        }
    }

    /// Takes messages for that bundle, each at most so many, and attends to what else there is; how
    /// many messages, returned ones included. Does not wait.
    #[inline]
    pub(crate) fn poll<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
    ) -> Result<usize, Error> {
        let asks_fences = self.looks >= LOOKS_BEFORE_FENCES;
        self.look(
            session,
            bundle,
            Look {
                is_whole: true,
                is_patient: false,
                asks_fences,
            },
        )
    }

    /// A look of a wait, of which there were so many before; how many messages. The first ones are
    /// mostly at nothing but where messages were last, so that the next one is seen soon. After
    /// those a sleep may follow, so each is at everything.
    #[inline]
    pub(crate) fn poll_in_wait<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
        looks_before: u32,
    ) -> Result<usize, Error> {
        if looks_before < EAGER_LOOKS {
            return self.look(session, bundle, Look::default());
        }
        let look = Look {
            is_whole: true,
            is_patient: true,
            asks_fences: true,
        };
        let count = self.look(session, bundle, look)?;
        if count > 0 {
            // A sleep may follow only a look that found nothing.
            session.look_within(Duration::ZERO);
        }
        Ok(count)
    }

    fn look<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
        look: Look,
    ) -> Result<usize, Error> {
        if self.state.traffic.dropped.is_any() || self.state.traffic.was_interrupted() {
            self.clean_up(session)?;
        }
        let is_turn = self.looks % LOOKS_PER_TURN == LOOKS_PER_TURN - 1;
        let is_due = self.unattended >= STREAK_MAX;
        let is_turn = look.is_patient || is_turn || is_due || self.state.has_to_do(bundle);
        let mut count = self.take(session, bundle, look.is_whole || is_turn)?;
        self.state.tell_credits(session);
        self.unattended += 1;
        if is_turn {
            self.unattended = 0;
            // A look that found messages is followed by another before a sleep.
            let asks_fences = look.asks_fences && count == 0;
            count += self.attend(session, bundle, asks_fences)?;
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

    /// Takes answers and requests, those first of which there were some last: what is next of all
    /// is read in place, and everything else from queues.
    fn take<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
        takes_all: bool,
    ) -> Result<usize, Error> {
        let first = match self.awaits_answers {
            true => self.take_answers(session, bundle)?,
            false => self.take_requests(session, bundle)?,
        };
        if !takes_all && self.streak < STREAK_MAX {
            self.streak += u32::from(first > 0);
            return Ok(first);
        }
        self.streak = 0;
        let second = match self.awaits_answers {
            true => self.take_requests(session, bundle)?,
            false => self.take_answers(session, bundle)?,
        };
        if second > 0 && first == 0 {
            self.awaits_answers = !self.awaits_answers;
        }
        Ok(first + second)
    }

    #[inline]
    fn take_answers<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
    ) -> Result<usize, Error> {
        let (port, state) = (&mut self.replies, &mut self.state);
        let terminus = session.terminus();
        Ok(
            session.drain_messages(port, terminus, ANSWERS_MAX, |message, _| {
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
            if taken < ANSWERS_MAX {
                return Ok(count);
            }
        }
    }

    #[inline]
    fn take_requests<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
    ) -> Result<usize, Error> {
        let State {
            endpoints,
            bundles,
            traffic,
            ..
        } = &mut self.state;
        let Some(bundle) = bundles.get_mut(bundle as usize) else {
            return Ok(0);
        };
        let terminus = session.terminus();
        let most = usize::from(traffic.options.visit);
        let mut count = 0;
        let mut first = bundle.first;
        for turn in 0..bundle.endpoints.len() {
            let mut at = bundle.first + turn;
            if at >= bundle.endpoints.len() {
                at -= bundle.endpoints.len();
            }
            let endpoint = bundle.endpoints.get(at).copied();
            let Some(endpoint) = endpoint.and_then(|index| endpoints.at(index)) else {
                continue;
            };
            if !endpoint.is_resident {
                continue;
            }
            let EndpointState {
                port,
                receiving,
                taken,
                is_shown,
                ..
            } = endpoint;
            // Also if a handler panics: then the message stays.
            *is_shown = true;
            let drained = session.drain_messages(port, terminus, most, |message, outbox| {
                take_request(receiving, traffic, message, outbox);
            })?;
            *is_shown = false;
            *taken = taken.saturating_add(drained as u32);
            if drained > 0 {
                first = at;
            }
            count += drained;
        }
        bundle.first = first;
        Ok(count)
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
        self.take_all_answers(session, NO_BUNDLE)?;
        self.looks = self.looks.saturating_add(1);
        self.attend(session, NO_BUNDLE, looks_before >= EAGER_LOOKS)?;
        let State {
            endpoints,
            bundles,
            transfers,
            ..
        } = &mut self.state;
        for number in transfers.numbers() {
            if let Some(transfer) = transfers.get(number)
                && transfer.is_get
                && transfer.is_whole()
                && let Some(endpoint) = endpoints.get(transfer.translation.endpoint)
                && endpoint.bundle == bundle
            {
                return Ok(true);
            }
        }
        let Some(bundle) = bundles.get_mut(bundle as usize) else {
            return Ok(false);
        };
        if !bundle.stashed.is_empty() || !bundle.to_return.is_empty() {
            return Ok(true);
        }
        for &index in &bundle.endpoints {
            if let Some(endpoint) = endpoints.at(index)
                && session.next_message(&mut endpoint.port)?.is_some()
            {
                endpoint.is_shown = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Attends to all but messages that come; how many handlers ran. It asks fences if it is said
    /// that a sleep may follow.
    #[inline(never)]
    fn attend<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bundle: u32,
        asks_fences: bool,
    ) -> Result<usize, Error> {
        while self.fences_under_way > 0 {
            let Some(_) = session.next_completion(&self.fences) else {
                break;
            };
            // Whatever it found is heard of next.
            self.fences_under_way -= 1;
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
            self.state.advance_transfers(session)?;
            count += self.end_gets(bundle);
            for endpoint in std::mem::take(&mut self.state.wants_frame) {
                self.fault_by_call(session, endpoint)?;
            }
        }
        self.load(session)?;
        count += self.state.run_returned(bundle)?;
        self.state.tell_credits(session);
        if asks_fences {
            self.ask_fences(session);
        }
        Ok(count)
    }

    /// Has peers tell what they refused, and wake us when they do.
    fn ask_fences<H: Host>(&mut self, session: &mut Session<'_, H>) {
        while let Some(link) = self.state.traffic.unfenced.pop() {
            let Some(peer) = self.state.traffic.peers.get(link) else {
                continue;
            };
            peer.is_unfenced = false;
            if session.track_fence(&self.fences, link, 0).is_ok() {
                self.fences_under_way += 1;
                continue;
            }
            if session.link_end(link).is_none() {
                // As many are under way as may be: when one ends, we look again.
                peer.is_unfenced = true;
                self.state.traffic.unfenced.push(link);
                return;
            }
        }
    }

    /// Runs the handlers of gets of that bundle whose data have come; how many.
    fn end_gets(&mut self, bundle: u32) -> usize {
        let mut count = 0;
        for number in self.state.transfers.numbers() {
            let State {
                endpoints,
                traffic,
                transfers,
                ..
            } = &mut self.state;
            let Some(transfer) = transfers.get(number) else {
                continue;
            };
            if !transfer.is_get || !transfer.is_whole() {
                continue;
            }
            let Some(endpoint) = endpoints.get(transfer.translation.endpoint) else {
                transfers.remove(number);
                continue;
            };
            if endpoint.bundle != bundle {
                continue;
            }
            let link = endpoint
                .translations
                .numbered(transfer.translation.number)
                .map(|mapped| mapped.link);
            let Some(transfer) = transfers.remove(number) else {
                continue;
            };
            let Some(peer) = link.and_then(|link| traffic.peers.get(link)) else {
                // The bytes are here, and nobody is whose they were.
                self.state.return_transfer(*transfer, Reason::Unreachable);
                continue;
            };
            let mapped = endpoint.translations.get(&transfer.translation);
            let mut call = Call {
                link: peer.link,
                source: u16::MAX,
                known: &peer.known,
                replier: mapped.map(|mapped| &mapped.name),
                answer: None,
            };
            let place = crate::wire::Place {
                offset: transfer.to,
                length_bytes: transfer.length_bytes,
            };
            let arguments = transfer.arguments;
            let receiving = &mut endpoint.receiving;
            count += 1;
            let ran = receiving.run_bulk(transfer.handler, &mut call, place, arguments.as_slice());
            match ran {
                Ok(Ok(())) => {}
                Ok(Err(failed)) => traffic.note_failure(failed),
                // It was cleared meanwhile.
                Err(_) => self.state.return_transfer(*transfer, Reason::BadHandler),
            }
        }
        count
    }

    /// Loads endpoints that want a frame.
    fn load<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), Error> {
        let knocks = session.refusals().count(Refusal::NotResident);
        if knocks != self.knocks_seen {
            let now_ns = session.host().now_ns();
            let pause_ns = self.knocks_due_ns.saturating_sub(now_ns);
            if pause_ns > 0 {
                session.look_within(Duration::from_nanos(pause_ns));
            } else {
                self.knocks_seen = knocks;
                self.hear_knocks(session)?;
                // A peer that knocks all the time has a fifth of it.
                let end_ns = session.host().now_ns();
                self.knocks_due_ns = end_ns + 4 * end_ns.saturating_sub(now_ns);
            }
        }
        if self.residence.is_wanting() {
            self.load_wanting(session)?;
        }
        Ok(())
    }

    fn load_wanting<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), Error> {
        let now_ns = session.host().now_ns();
        let visit = u32::from(self.state.traffic.options.visit);
        loop {
            let endpoints = &mut self.state.endpoints;
            let may_go = |index: u16| {
                endpoints
                    .at(index)
                    .is_none_or(|endpoint| may_go(session, endpoint, visit, now_ns))
            };
            let Some((loaded, gone)) = self.residence.next(may_go) else {
                break;
            };
            for (index, is_resident) in [(gone, false), (Some(loaded), true)] {
                let endpoint = index.and_then(|index| self.state.endpoints.at(index));
                let Some(endpoint) = endpoint else {
                    continue;
                };
                session.park_port(&endpoint.port, !is_resident)?;
                endpoint.is_resident = is_resident;
                endpoint.taken = 0;
                endpoint.loaded_ns = now_ns;
                self.state.traffic.statistics.unloaded += u64::from(!is_resident);
                let waiting = session.port_info(&endpoint.port)?.waiting;
                if !is_resident && (waiting > 0 || endpoint.is_shown) {
                    // It has had its turn, and wants another one.
                    self.residence.fault(endpoint.receiving.id.index);
                }
            }
        }
        if self.residence.is_wanting() {
            session.look_within(STAY);
        }
        Ok(())
    }

    /// Finds endpoints for which messages came though they are not resident (`V 3.2`).
    fn hear_knocks<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), Error> {
        for endpoint in self.state.endpoints.iter_mut() {
            if endpoint.is_resident {
                continue;
            }
            let mut has_knocked = false;
            while session.next_knock(&endpoint.port)?.is_some() {
                has_knocked = true;
            }
            if has_knocked && self.residence.fault(endpoint.receiving.id.index) {
                self.state.traffic.statistics.faults_by_message += 1;
            }
        }
        Ok(())
    }

    /// The application sends by an endpoint that is not resident: it faults.
    pub(crate) fn fault_by_call<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        endpoint: EndpointId,
    ) -> Result<(), Error> {
        if self.residence.fault(endpoint.index) {
            self.state.traffic.statistics.faults_by_call += 1;
        }
        self.load(session)
    }

    /// Cleans up after objects that were dropped, and a handler that panicked. The first error, when
    /// all is done.
    pub(crate) fn clean_up<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), Error> {
        let mut result = Ok(());
        for endpoint in self.state.clean_up() {
            self.residence.close(endpoint.index);
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
        let (terminus, traffic) = (session.terminus(), &mut self.state.traffic);
        let most = usize::MAX;
        session.drain_messages(&mut port, terminus, most, |message, outbox| {
            return_request(endpoint, traffic, message, outbox);
        })?;
        Ok(session.close_port(port)?)
    }
}

/// True if an endpoint may be unloaded: it has had its turn, or nothing to do. What it has
/// outstanding needs no frame, as answers come to the node. So no endpoint holds its frame while it
/// waits for another one.
fn may_go<H: Host>(
    session: &Session<'_, H>,
    endpoint: &EndpointState,
    visit: u32,
    now_ns: u64,
) -> bool {
    let stay_ns = STAY.as_nanos() as u64;
    if endpoint.taken >= visit || now_ns.saturating_sub(endpoint.loaded_ns) >= stay_ns {
        return true;
    }
    let info = session.port_info(&endpoint.port);
    endpoint.taken > 0 && !endpoint.is_shown && info.is_ok_and(|info| info.waiting == 0)
}
