//! Datagrams of no link: messages of handshakes, which the host begins or answers. One that comes
//! causes no allocation, no blocking and no answer here.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::udp::batch::Datagram;
use crate::udp::handshake::MESSAGE_BYTES_MAX;
use crate::udp::packet_header::{Kind, PacketHeader};

/// Unassociated datagrams that wait for the host at most; more are dropped.
const UNASSOCIATED_MAX: usize = 64;

/// A handshake that the host has begun: peer, number, and channel for the answers. No answer in the
/// channel means that nobody listens there, which is a hint.
struct PendingHandshake {
    to: SocketAddr,
    number: u32,
    notify: SyncSender<Option<Vec<u8>>>,
    /// Reports, and messages from elsewhere, that may still be passed on: there must be room for
    /// answers.
    reports_left: usize,
    elsewhere_left: usize,
}

impl PendingHandshake {
    /// Whether a message from there may be passed on. A host with several addresses may answer
    /// from another one; whoever floods from elsewhere does not take the place of answers.
    fn admits(&mut self, from: SocketAddr) -> bool {
        let is_same = (from.ip().to_canonical(), from.port())
            == (self.to.ip().to_canonical(), self.to.port());
        if is_same {
            return true;
        }
        let left = self.elsewhere_left.checked_sub(1);
        self.elsewhere_left = left.unwrap_or(0);
        left.is_some()
    }
}

/// Answers for which there is room in any case.
const ANSWERS_MAX: usize = 4;
/// Reports of one handshake, and messages from elsewhere.
const REPORTS_MAX: usize = 2;
const ELSEWHERE_MAX: usize = 8;
/// All that waits for one handshake at most.
pub(super) const PASSED_ON_MAX: usize = ANSWERS_MAX + REPORTS_MAX + ELSEWHERE_MAX;

/// Unassociated datagrams (messages of handshakes) that wait for the host, in memory allocated at
/// the beginning.
struct Unassociated {
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl Unassociated {
    fn new() -> Self {
        let spare = (0..UNASSOCIATED_MAX).map(|_| Vec::with_capacity(MESSAGE_BYTES_MAX));
        Self {
            waiting: VecDeque::with_capacity(UNASSOCIATED_MAX),
            spare: spare.collect(),
        }
    }
}

/// See the module.
pub struct Handshakes {
    unassociated: Mutex<Unassociated>,
    pending: Mutex<Vec<PendingHandshake>>,
    /// Somebody has to look now.
    notify: Arc<dyn Fn() + Send + Sync>,
}

impl Handshakes {
    pub(super) fn new(notify: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self {
            unassociated: Mutex::new(Unassociated::new()),
            pending: Mutex::default(),
            notify,
        }
    }

    fn pending(&self) -> MutexGuard<'_, Vec<PendingHandshake>> {
        let pending = self.pending.lock();
        pending.unwrap_or_else(PoisonError::into_inner)
    }

    fn unassociated(&self) -> MutexGuard<'_, Unassociated> {
        let unassociated = self.unassociated.lock();
        unassociated.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether many unassociated datagrams wait.
    pub fn is_crowded(&self) -> bool {
        self.unassociated().waiting.len() > UNASSOCIATED_MAX / 2
    }

    /// A message of a handshake, and where it came from.
    pub fn next_message(&self, message: &mut Vec<u8>) -> Option<SocketAddr> {
        let mut unassociated = self.unassociated();
        let (from, mut bytes) = unassociated.waiting.pop_front()?;
        message.clear();
        message.extend_from_slice(&bytes);
        bytes.clear();
        unassociated.spare.push(bytes);
        Some(from)
    }

    /// The host begins a handshake with that address, by that number. The polling thread passes
    /// answers on until [`Handshakes::end`] with that number. Several threads may ask.
    pub fn begin(&self, to: SocketAddr, number: u32) -> Receiver<Option<Vec<u8>>> {
        let (notify, answers) = mpsc::sync_channel(PASSED_ON_MAX);
        self.pending().push(PendingHandshake {
            to,
            number,
            notify,
            reports_left: REPORTS_MAX,
            elsewhere_left: ELSEWHERE_MAX,
        });
        (self.notify)();
        answers
    }

    /// Whether the host asks, and waits for what others find.
    pub fn is_any_pending(&self) -> bool {
        !self.pending().is_empty()
    }

    /// The host does not ask any more by that number.
    pub fn end(&self, number: u32) {
        self.pending().retain(|pending| pending.number != number);
    }

    /// The system reports that nobody listens there.
    pub(super) fn report(&self, to: SocketAddr) {
        self.pass_on(|pending| pending.to == to, None);
    }

    /// Passes a message, or a report, on to the pending handshakes to which it belongs; whether
    /// there are any.
    fn pass_on(
        &self,
        concerns: impl Fn(&PendingHandshake) -> bool,
        message: Option<(SocketAddr, &[u8])>,
    ) -> bool {
        let mut is_any = false;
        for pending in self.pending().iter_mut() {
            if !concerns(pending) {
                continue;
            }
            is_any = true;
            let is_admitted = match message {
                Some((from, _)) => pending.admits(from),
                None => {
                    let left = pending.reports_left.checked_sub(1);
                    pending.reports_left = left.unwrap_or(0);
                    left.is_some()
                }
            };
            if is_admitted {
                let message = message.map(|(_, bytes)| bytes.to_vec());
                let _ = pending.notify.try_send(message);
            }
        }
        is_any
    }

    /// Keeps an unassociated datagram for the host, or passes it to its pending handshake.
    #[cold]
    pub(super) fn dispatch(&self, datagram: Option<Datagram<'_>>) {
        let Some(Datagram {
            source: Some(from),
            bytes,
            ..
        }) = datagram
        else {
            return;
        };
        let Some(packet_header) =
            PacketHeader::parse(bytes).filter(|_| bytes.len() <= MESSAGE_BYTES_MAX)
        else {
            return;
        };
        let is_answer = self.pass_on(
            |pending| pending.number == packet_header.association,
            Some((from, bytes)),
        );
        if is_answer || !matches!(packet_header.kind, Kind::Initiation | Kind::Payload) {
            return;
        }
        let mut unassociated = self.unassociated();
        if let Some(mut room) = unassociated.spare.pop() {
            room.extend_from_slice(bytes);
            unassociated.waiting.push_back((from, room));
            drop(unassociated);
            (self.notify)();
        }
    }
}
