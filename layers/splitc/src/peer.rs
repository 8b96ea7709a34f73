//! Another processor, as this one knows it: where its memory is, and what of it is under way.

use std::collections::VecDeque;

use hamlyn::one_sided::{Initiator, InitiatorOptions, Operation};
use hamlyn::service::{Client, Pending};
use hamlyn::{DirectWindow, Host, Manager, Target, Ticket, Wait};

use crate::error::Error;
use crate::memory::{Description, Shared, Span};

/// Memory into which reads and gets of one stretch land before they are copied to their places.
pub(crate) const LANDING_BYTES: u64 = 256 * 1024;
/// Of it, the part where blocking reads land; the rest is for gets.
pub(crate) const READ_BYTES: u64 = 64 * 1024;
/// How long it may take to map the memory of a processor, whose control thread answers.
const MAPPED_WITHIN: Wait = Wait::millis(10_000);

/// See the module.
pub(crate) struct Peer<H: Host> {
    control: Initiator,
    pub(crate) segments: Vec<RemoteSegment>,
    /// Gets and puts, in the order in which they began.
    pub(crate) outstanding: VecDeque<Outstanding>,
    pub(crate) is_busy: bool,
    /// For atomic procedures; connected to when the first is asked for.
    pub(crate) client: Option<Client<H>>,
    /// Atomic procedures without a result.
    pub(crate) calls: VecDeque<Pending>,
    /// Atomic procedures that were asked for through memory; how many were served, as far as was
    /// seen; and the last of which was told that it failed.
    pub(crate) requests: u64,
    pub(crate) requests_served: u64,
    pub(crate) requests_failed: u64,
}

/// A stretch of its memory.
pub(crate) struct RemoteSegment {
    pub(crate) span: Span,
    pub(crate) initiator: Initiator,
    /// For stores, which the peer counts under the entry of this processor.
    pub(crate) stores: Target,
    /// Up to where places for landing are used by gets that are under way.
    pub(crate) landed_bytes: u64,
    pub(crate) gets: u32,
}

/// Something that was begun.
pub(crate) struct Outstanding {
    pub(crate) operation: Operation,
    pub(crate) place: u64,
    pub(crate) kind: Begun,
}

pub(crate) enum Begun {
    /// Of that segment, from that landing place to that place of this processor.
    Get {
        segment: usize,
        landing: u64,
        length_bytes: u64,
        to: u64,
    },
    Put {
        segment: usize,
    },
}

impl<H: Host> Peer<H> {
    pub(crate) fn open(
        manager: &Manager<H>,
        control: Target,
        description: &Description,
        proc: u32,
        is_direct: bool,
    ) -> Result<Self, Error> {
        let mut interface = manager.session();
        let shared = description.segments.iter().map(|(_, shared)| shared);
        for shared in shared.chain([&description.control]) {
            // Initiators on that memory operate in it.
            if let (true, Shared::Region(region)) = (is_direct, shared) {
                interface.attach(region, MAPPED_WITHIN)?;
            }
        }
        let mut segments = Vec::new();
        for &(span, shared) in &description.segments {
            let target = control
                .with_ticket(shared.ticket())
                .ok_or(Error::BadOperation {
                    what: "a processor shares memory of another interface",
                })?;
            let counted = Ticket {
                metadata_index: proc as u16,
                ..shared.ticket()
            };
            let stores = control.with_ticket(counted).unwrap_or(target);
            let options = InitiatorOptions {
                landing_bytes: LANDING_BYTES,
            };
            segments.push(RemoteSegment {
                span,
                initiator: interface.open_initiator(target, options)?,
                stores,
                landed_bytes: READ_BYTES,
                gets: 0,
            });
        }
        let options = InitiatorOptions { landing_bytes: 8 };
        Ok(Self {
            control: interface.open_initiator(control, options)?,
            segments,
            outstanding: VecDeque::new(),
            is_busy: false,
            client: None,
            calls: VecDeque::new(),
            requests: 0,
            requests_served: 0,
            requests_failed: 0,
        })
    }

    pub(crate) fn control_target(&self) -> Target {
        *self.control.target()
    }

    /// Its control area, if that is mapped.
    #[inline]
    pub(crate) fn control_window(&self) -> Option<&DirectWindow> {
        self.control.window()
    }

    pub(crate) fn control(&mut self) -> &mut Initiator {
        &mut self.control
    }

    /// In which of its segments those bytes lie, and where in it.
    #[inline]
    pub(crate) fn find(&self, place: u64, length_bytes: u64) -> Option<(usize, u64)> {
        let find = |(index, segment): (usize, &RemoteSegment)| {
            let offset = segment.span.offset(place, length_bytes)?;
            Some((index, offset))
        };
        self.segments.iter().enumerate().find_map(find)
    }

    pub(crate) fn initiator_of(&mut self, kind: &Begun) -> &mut Initiator {
        match kind {
            Begun::Get { segment, .. } | Begun::Put { segment } => {
                &mut self.segments[*segment].initiator
            }
        }
    }
}
