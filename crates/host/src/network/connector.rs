//! The connector: shakes hands with an interface of another host and sends it one request, in the caller's thread.
//!
//! The request leaves from the endpoint's port, so that one port is enough for a firewall. The polling thread receives the answer, from any
//! address: a host with several addresses may answer from another one, and the authentic message is the answer. If nobody
//! answers for long, all begins anew from another port: a network, or a host whose port several processes serve, may lead it elsewhere.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use hamlyn_link::udp::handshake::{Answered, Initiator, MESSAGE_BYTES_MAX, Taken};
use hamlyn_link::udp_endpoint::UdpEndpoint;

use super::resolver::Unanswered;
use crate::HostError;
use crate::process::clock::now_ns;

/// Asks there until there is an answer, or that instant.
pub(super) fn connect(
    endpoint: &UdpEndpoint,
    mut initiator: Initiator,
    own: SocketAddr,
    to: SocketAddr,
    deadline_ns: u64,
) -> Result<Answered, Unanswered> {
    let answers = endpoint.begin_handshake(to, initiator.association());
    let mut elsewhere: Option<UdpSocket> = None;
    let mut begun_anew = initiator.begun_anew();
    // The system reports that nobody listens: believed if nobody answers either, as such reports can be forged.
    let mut is_refused = false;
    let mut room = [0; MESSAGE_BYTES_MAX + 1];
    loop {
        let now_ns = now_ns();
        if let Some(bytes) = initiator.poll(now_ns).map(<[u8]>::to_vec) {
            if is_refused {
                return Err(Unanswered::Absent);
            }
            let begins_anew = initiator.begun_anew() != begun_anew;
            if begins_anew || elsewhere.is_none() && endpoint.answer(to, &bytes).is_err() {
                begun_anew = initiator.begun_anew();
                let bound = UdpSocket::bind(own);
                elsewhere = Some(bound.map_err(|error| HostError::io("bind", 1, &error))?);
            }
            if let Some(socket) = &elsewhere {
                match socket.send_to(&bytes, to) {
                    Err(error) if error.kind() == ErrorKind::NetworkUnreachable => {
                        return Err(HostError::io("sendto", 0, &error).into());
                    }
                    // What cannot be sent now is said again.
                    _ => {}
                }
            }
        }
        if now_ns >= deadline_ns {
            return Err(match is_refused {
                true => Unanswered::Absent,
                false => Unanswered::Late,
            });
        }
        let again_ns = initiator.deadline_ns().unwrap_or(deadline_ns);
        let span_ns = again_ns.min(deadline_ns).saturating_sub(now_ns);
        let span = Duration::from_nanos(span_ns.max(1_000));
        let message = match &elsewhere {
            None => {
                let answer = answers.recv_timeout(span).ok();
                is_refused |= answer == Some(None);
                answer.flatten()
            }
            Some(socket) => {
                let waits = socket.set_read_timeout(Some(span));
                waits.map_err(|error| HostError::io("setsockopt", 0, &error))?;
                let came = socket.recv(&mut room);
                came.ok().map(|length| room[..length].to_vec())
            }
        };
        // An invalid answer changes nothing.
        match message.map(|message| initiator.take(now_ns, &message)) {
            Some(Ok(Taken::Answered(answered))) => return Ok(*answered),
            Some(Ok(Taken::Again)) => is_refused = false,
            Some(Err(_)) | None => {}
        }
    }
}
