//! Paging (`V 3.2`, `V 4.1`): endpoints that want a frame are loaded, and others go for them.

use hamlyn::{Host, Session};

use crate::error::{Blocked, Error};
use crate::peer::EndpointId;
use crate::poll::NodeState;
use crate::residence::Stay;
use crate::send::{Attempt, Request};
use crate::state::State;
use crate::translation::Translation;

/// Links that are told that an endpoint is loaded.
const KNOCKERS_MAX: usize = 64;

impl NodeState {
    /// Sends a request, if nothing stands in its way; loads the endpoint, if that stands there.
    pub(crate) fn attempt<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        over: &Translation,
        request: &Request<'_>,
    ) -> Attempt {
        let attempted = self.state.try_request(session, over, request)?;
        if attempted == Err(Blocked::Frame) {
            self.fault_by_call(session, over.endpoint)?;
            return self.state.try_request(session, over, request);
        }
        Ok(attempted)
    }

    /// Loads endpoints that want a frame.
    pub(crate) fn load<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), Error> {
        self.hear_knocks(session);
        if self.residence.is_wanting() {
            self.load_wanting(session)?;
        }
        Ok(())
    }

    fn load_wanting<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), Error> {
        let visit = u32::from(self.state.traffic.options.visit);
        let mut now_ns = session.host().now_ns();
        while self.pace.may_load(now_ns) {
            let (endpoints, pace) = (&mut self.state.endpoints, &mut self.pace);
            let may_go = |index: u16| {
                let endpoint = endpoints.at(index);
                endpoint.is_none_or(|endpoint| pace.may_go(&mut endpoint.stay, visit, now_ns))
            };
            let Some((loaded, gone)) = self.residence.next(may_go) else {
                break;
            };
            let State {
                endpoints,
                peers,
                traffic,
                ..
            } = &mut self.state;
            if let Some(endpoint) = gone.and_then(|gone| endpoints.at(gone)) {
                session.park_port(&endpoint.port, true)?;
                endpoint.is_resident = false;
                traffic.statistics.unloaded += 1;
            }
            let begun_ns = now_ns;
            if let Some(endpoint) = endpoints.at(loaded) {
                session.park_port(&endpoint.port, false)?;
                endpoint.is_resident = true;
                now_ns = session.host().now_ns();
                endpoint.stay = Stay::since(now_ns);
                for link in std::mem::take(&mut endpoint.knockers) {
                    if let Some(peer) = peers.get(link) {
                        peer.has_room(endpoint.port.name().to_bits());
                        traffic.hints.push(link);
                    }
                }
            }
            self.pace.loaded_in(now_ns.saturating_sub(begun_ns), now_ns);
        }
        if self.residence.is_wanting() {
            session.look_within(self.pace.patience(now_ns));
        }
        Ok(())
    }

    /// Finds endpoints for which messages came though they are not resident (`V 3.2`).
    fn hear_knocks<H: Host>(&mut self, session: &mut Session<'_, H>) {
        while let Some(knock) = session.next_knock() {
            if let Some(peer) = self.state.peers.get(knock.from) {
                // It has sent since it was told, and perhaps too late.
                peer.is_hinted = false;
            }
            let id = EndpointId::of_member(knock.member);
            let Some(endpoint) = self.state.endpoints.get(id) else {
                continue;
            };
            let knockers = &mut endpoint.knockers;
            if knockers.len() < KNOCKERS_MAX && !knockers.contains(&knock.from) {
                knockers.push(knock.from);
            }
            if self.residence.fault(id.index) {
                self.state.traffic.statistics.faults_by_message += 1;
            }
        }
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
}
