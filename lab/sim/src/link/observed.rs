//! What connections between nodes do, told to the model of the transport
//! ([`crate::reference::transport`], decision 0029).
//!
//! Three places tell it: the ends of a link what the interface hands over and gets, the endpoint
//! each frame and each packet that comes back. Nothing here changes what a world does.

use std::cell::Cell;
use std::collections::BTreeMap;

use hamlyn_engine::memory::Part;
use hamlyn_engine::packet::{Header, Short};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{self, Packets, Return, Settings};
use hamlyn_link::udp::datagram_socket::ConnectionStep;
use hamlyn_ring::area::Area;
use smallvec::SmallVec;

use super::channel_link::gathered;
use crate::reference::Violation;
use crate::reference::transport::{Limits, Sent, Transport};
use crate::world::kernel::{self, Kernel};

thread_local! {
    /// The interface whose endpoint is being used, and the time there.
    static USED: Cell<(u32, u64)> = const { Cell::new((u32::MAX, 0)) };
}

/// The endpoint of that interface is about to be used.
pub(super) fn enter(interface: u32, now_ns: u64) {
    USED.set((interface, now_ns));
}

/// Interface and number of a connection.
type Name = (u32, u32);

/// All connections of a world, and their judge.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    transport: Transport,
    ends: BTreeMap<Name, u32>,
}

impl Observed {
    fn opened(&mut self, names: [Name; 2], settings: &Settings) {
        let first = self.ends.len() as u32;
        let ends = [first, first + 1];
        self.ends.extend(names.into_iter().zip(ends));
        let limits = Limits {
            first_ns: settings.resend_initial_ns,
            least_ns: settings.resend_min_ns,
            answer_ns: 2 * settings.acknowledge_ns,
        };
        self.transport.opened(ends, limits);
    }

    fn step(&mut self, end: u32, now_ns: u64, step: ConnectionStep<'_>) -> Result<(), Violation> {
        match step {
            ConnectionStep::Sent { path, frame } => {
                self.transport.sent(end, (now_ns, path), frame, packets_of)
            }
            ConnectionStep::Came(frame) => {
                self.transport.came(end, now_ns, frame);
                Ok(())
            }
            ConnectionStep::Queued { channel, sequence } => {
                self.transport.given(end, channel, sequence)
            }
            ConnectionStep::Ended(reason) => {
                self.transport.ended(end, reason);
                Ok(())
            }
            ConnectionStep::Returned(returned) => {
                let packet = Sent {
                    header: returned.header,
                    bytes: [returned.metadata(), returned.data].concat(),
                };
                let reason = returned.reason;
                self.transport
                    .returned(end, &packet, reason, returned.was_never_sent)
            }
        }
    }
}

/// A connection of the endpoint that is being used does that.
pub(super) fn observe(number: u32, step: ConnectionStep<'_>) {
    let (interface, now_ns) = USED.get();
    tell((interface, number), |observed, end| {
        observed.step(end, now_ns, step)
    });
}

fn tell<R: Into<Told>>(name: Name, act: impl FnOnce(&mut Observed, u32) -> R) {
    kernel::with_if_any(|kernel| {
        if let Some(&end) = kernel.observed.ends.get(&name) {
            let Told(judged) = act(&mut kernel.observed, end).into();
            kernel.judge(judged);
            if kernel.observed.transport.has_begun_anew() {
                kernel.saw_often("numbers of frames that begin anew");
            }
        }
    });
}

/// What the judge says, if it says something.
struct Told(Result<(), Violation>);

impl From<()> for Told {
    fn from((): ()) -> Self {
        Self(Ok(()))
    }
}

impl From<Result<(), Violation>> for Told {
    fn from(judged: Result<(), Violation>) -> Self {
        Self(judged)
    }
}

impl Kernel {
    /// A link was made by these connections.
    pub(super) fn observe_link(&mut self, names: [Name; 2], settings: &Settings) {
        self.observed.opened(names, settings);
    }
}

/// One end of a link, as its interface uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedEnd(pub(super) Name);

impl ObservedEnd {
    /// The interface offers a packet, which may leave before the call returns.
    pub(super) fn offer(self, packet: Sent) {
        tell(self.0, |observed, end| {
            observed.transport.offered(end, packet);
        });
    }

    /// The packet that was offered last was not accepted.
    pub(super) fn take_back_offer(self) {
        tell(self.0, |observed, end| observed.transport.not_accepted(end));
    }

    /// The interface looks at a packet that came.
    pub(super) fn receive(self, packet: Sent) {
        tell(self.0, |observed, end| {
            observed.transport.received(end, &packet)
        });
    }

    /// It has done so, and perhaps refused it.
    pub(super) fn received(self, refusal: Option<Refusal>) {
        tell(self.0, |observed, end| {
            observed.transport.taken(end, refusal);
        });
    }

    /// The interface is told of a packet that came back.
    pub(super) fn told(self, header: &Header, why: Return) {
        tell(self.0, |observed, end| {
            observed.transport.told(end, header, why)
        });
    }

    pub(super) fn fenced(self, mark: u64) {
        tell(self.0, |observed, end| observed.transport.fenced(end, mark));
    }

    pub(super) fn fence_answered(self, mark: u64) {
        tell(self.0, |observed, end| {
            observed.transport.fence_answered(end, mark)
        });
    }
}

/// What is handed over in parts.
pub(super) fn offered(header: &Header, metadata: &[u8], parts: &[Part<'_, Area>]) -> Sent {
    // The engine has checked that all lies inside.
    let bytes = gathered(metadata, parts).map_or_else(|_| Vec::new(), SmallVec::into_vec);
    let header = Header {
        length_bytes: (bytes.len() - metadata.len()) as u32,
        metadata_length_bytes: metadata.len() as u8,
        ..*header
    };
    Sent { header, bytes }
}

/// A short packet.
pub(super) fn offered_short(short: &Short) -> Sent {
    let word = short.word.to_le_bytes();
    let metadata = if short.has_metadata { &word[..] } else { &[] };
    offered(&short.header(), metadata, &[Part::Bytes(&short.bytes())])
}

/// The packets in these bytes of a frame.
fn packets_of(bytes: &[u8]) -> Vec<Sent> {
    let sent_of = |packet: transport::Packet<'_>| match packet {
        transport::Packet::Short(short) => offered_short(&short),
        transport::Packet::General {
            header,
            metadata,
            data,
        } => Sent {
            header,
            bytes: [metadata, data].concat(),
        },
    };
    Packets::new(bytes).map(sent_of).collect()
}
