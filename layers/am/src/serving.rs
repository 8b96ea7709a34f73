//! Questions of peers for a segment, and for data of it, are answered ([`crate::bulk`]).

use hamlyn::engine::memory::LinkId;
use hamlyn::{Host, Session};

use crate::error::Reason;
use crate::peer::{EndpointId, ServedState};
use crate::state::State;
use crate::traffic::{Again, Asked};
use crate::wire::{Category, Head, Place, Stamp};
use crate::writing::{Progress, ROOM, Source, Writing};

impl State {
    /// Serves questions of peers, as far as there is room.
    pub(crate) fn serve_asked<H: Host>(&mut self, session: &mut Session<'_, H>) {
        for mut asked in std::mem::take(&mut self.traffic.asked) {
            if !self.serve(session, &mut asked) {
                self.traffic.asked.push(asked);
            }
        }
    }

    /// Serves one. True if it has its answer, or its asker is gone.
    fn serve<H: Host>(&mut self, session: &mut Session<'_, H>, asked: &mut Asked) -> bool {
        let Asked {
            link,
            stamp,
            endpoint,
            ref mut data,
        } = *asked;
        let endpoint = self.endpoints.get(endpoint);
        let segment = endpoint.and_then(|endpoint| endpoint.receiving.segment.as_mut());
        let served = self.peers.request(link, stamp);
        if served.is_none_or(|served| served.state != ServedState::Open) {
            return true;
        }
        let Some((writing, from, number)) = data else {
            let tickets = segment.map(|segment| segment.tickets(session));
            let answered = match tickets {
                Some(Ok(bytes)) => Ok(bytes),
                // All slots are taken, say.
                Some(Err(_)) => Err(Reason::Congestion),
                None => Err(Reason::BadOffset),
            };
            let answer = answered.as_deref().map_err(|reason| *reason);
            self.answer_asked(link, stamp, answer);
            return true;
        };
        let Some(segment) = segment.filter(|segment| segment.number == *number) else {
            self.answer_asked(link, stamp, Err(Reason::BadOffset));
            return true;
        };
        let Some(peer) = self.peers.get(link) else {
            return true;
        };
        let mut scratch = std::mem::take(&mut self.traffic.scratch);
        let mut source = Source::Area(&segment.area, *from, &mut scratch);
        let advanced = writing.advance(session, &mut peer.delivery, &mut source);
        self.traffic.scratch = scratch;
        self.traffic.fence_if_wanted(peer);
        match advanced {
            Ok(Progress::Done) => self.traffic.answer_empty(peer, stamp),
            Ok(Progress::Waits) => {
                session.look_within(ROOM);
                return false;
            }
            Ok(Progress::Sent) => return false,
            // Nobody waits for the answer.
            Ok(Progress::Gone) => {}
            Err(_) => self.answer_asked(link, stamp, Err(Reason::BadLength)),
        }
        true
    }

    /// Returns the questions to that endpoint which have no answer yet.
    pub(crate) fn return_asked(&mut self, endpoint: EndpointId, reason: Reason) {
        for asked in std::mem::take(&mut self.traffic.asked) {
            if asked.endpoint == endpoint {
                self.answer_asked(asked.link, asked.stamp, Err(reason));
            } else {
                self.traffic.asked.push(asked);
            }
        }
    }

    /// Answers a question by the tickets of a segment, or returns it.
    fn answer_asked(&mut self, link: LinkId, stamp: Stamp, answer: Result<&[u8], Reason>) {
        let served = self.peers.request(link, stamp);
        let Some(served) = served.filter(|served| served.state == ServedState::Open) else {
            return;
        };
        match answer {
            Ok(bytes) => {
                let head = Head::new(Category::Tickets, 0);
                let place = Place::default();
                served
                    .answer
                    .write(head, &[], place, bytes, None, &self.traffic.spares);
            }
            Err(reason) => {
                let head = Head::new(Category::Return, 0).for_reason(reason.code());
                served.answer.write_short(head, &[]);
            }
        }
        served.state = ServedState::Unsent;
        self.traffic.again(link, Again::Answer(stamp), 0);
    }

    /// A slot of a peer has refused data: the question that they answer has no use for more.
    pub(crate) fn refused_by(&mut self, link: LinkId, slot: u32) {
        let mut over = Vec::new();
        self.traffic.asked.retain(|asked| {
            let is_it = |(writing, ..): &(Writing, u64, u64)| writing.is_to(link, slot);
            let is_over = asked.data.as_ref().is_some_and(is_it);
            over.extend(is_over.then_some(asked.stamp));
            !is_over
        });
        for stamp in over {
            self.answer_empty(link, stamp);
        }
    }
}
