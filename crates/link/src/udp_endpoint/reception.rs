//! Receiving from the endpoint's socket, for all links: what the polling thread does.

use std::sync::atomic::Ordering;

use super::{Reception, UdpEndpoint, lock, place_of};
use crate::udp::datagram_socket::DatagramSocket;
use crate::udp::packet_header::association_of;

/// Error reports of the system read in one poll at most.
const REPORTS_PER_POLL: usize = 4;
/// Receive calls in one poll at most.
const BATCHES_PER_POLL: usize = 4;
/// A frame may have waited in this host for so long before that counts as delay of the network: so
/// a host that receives less than its peers send slows them down before its socket is full.
const LATE_MAX_NS: u64 = 1_000_000;
/// What came was not there so long ago or less: then it counts from when it was read, and the
/// system is not asked when it came.
const JUST_NOW_NS: u64 = 20_000;

impl<S: DatagramSocket> Reception<S> {
    /// Learns of new links, and of those that ended.
    fn follow(&mut self, endpoint: &UdpEndpoint<S>) {
        let changes = endpoint.changes.load(Ordering::Acquire);
        if changes != self.seen {
            self.table.clone_from(&lock(&endpoint.connections).table);
            self.seen = changes;
            let lengths = self
                .table
                .iter()
                .flatten()
                .map(|connection| connection.datagram_bytes());
            self.socket.expect(lengths.max().unwrap_or(0));
        }
    }

    /// Receives datagrams, and stops once packets wait to be taken, as the polling thread will be
    /// back. Returns whether some wait.
    pub(super) fn take_in(&mut self, endpoint: &UdpEndpoint<S>, polled_ns: u64) -> bool {
        let mut came = false;
        // So that the socket knows how long datagrams may be before it tells them apart.
        self.follow(endpoint);
        let mut has_heard = self.has_reports;
        if has_heard {
            self.drain_reports(endpoint);
        }
        let away_ns = polled_ns.saturating_sub(self.polled_ns);
        (self.away_ns, self.polled_ns) = (self.away_ns.max(away_ns), polled_ns);
        let mut batches = 0;
        for _ in 0..2 * BATCHES_PER_POLL {
            if came || batches == BATCHES_PER_POLL {
                break;
            }
            let since_empty_ns = polled_ns.saturating_sub(self.empty_ns);
            let received = match since_empty_ns > JUST_NOW_NS {
                true => self.socket.receive_stamped(&mut self.inbox),
                false => self.socket.receive(&mut self.inbox),
            };
            match received {
                Ok(true) => batches += 1,
                Ok(false) => {
                    (self.empty_ns, self.away_ns) = (polled_ns, 0);
                    break;
                }
                // Some are heard in each look; others do not keep it from what has come.
                Err(_) if has_heard => {
                    self.has_reports = true;
                    continue;
                }
                Err(_) => {
                    has_heard = true;
                    self.drain_reports(endpoint);
                    continue;
                }
            }
            self.follow(endpoint);
            // It came after nothing was there; perhaps while this process was not running at all.
            let late_max_ns = (LATE_MAX_NS + self.away_ns).min(since_empty_ns);
            let late_ns = self.inbox.waited_ns().map_or(0, |waited_ns| {
                // Counted from this look, as everything that it finds.
                let looked_ns = endpoint.now_ns().saturating_sub(polled_ns);
                waited_ns.saturating_sub(looked_ns).min(late_max_ns)
            });
            while let Some(datagram) = self.inbox.peek() {
                let number = association_of(datagram);
                let connection = number.and_then(|number| self.table.get(place_of(number)));
                match connection {
                    Some(Some(connection)) if Some(connection.number()) == number => {
                        came |= connection.take_in(endpoint, polled_ns, late_ns, &mut self.inbox);
                    }
                    _ => endpoint.handshakes.dispatch(self.inbox.next()),
                }
            }
        }
        came
    }

    /// Hears at which peers' ports nobody listens.
    #[cold]
    fn drain_reports(&mut self, endpoint: &UdpEndpoint<S>) {
        for _ in 0..REPORTS_PER_POLL {
            let Some(report) = self.socket.next_report() else {
                self.has_reports = false;
                return;
            };
            let Some(peer) = report else { continue };
            endpoint.handshakes.report(peer);
            let connections = self.table.iter().flatten();
            for connection in connections.filter(|connection| connection.peer == Some(peer)) {
                connection.note_unreachable();
            }
        }
        self.has_reports = true;
        self.socket.put_off_reports();
    }
}
