//! The transmit half of an interface that threads share. It has a lock of its own, so a thread
//! sends while another one has the manager, to receive or for anything else (decision 51).

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_engine::terminus::{SendHandle, TerminusId};
use hamlyn_host::Host;
use hamlyn_link::Link;

use crate::half::HandoffLock;
use crate::message::{Message, Target};
use crate::outbound::Outbound;

/// How often a message that finds no room is tried. Others receive meanwhile, and room may come.
const TRIES: u32 = 128;

type OutboundOf<H> = Outbound<<<H as Host>::Link as Link>::Transmit, <H as Host>::SendObserver>;

/// See the module. Those who have the manager may wait for this lock; those who have this one never
/// wait for the manager.
pub(crate) struct SendingHalf<H: Host> {
    outbound: Arc<HandoffLock<OutboundOf<H>>>,
    /// Set when the interface has something to hear of: the manager sends then.
    attention: Arc<AtomicBool>,
    terminus: TerminusId,
}

impl<H: Host> SendingHalf<H> {
    pub(crate) fn new(
        outbound: Arc<HandoffLock<OutboundOf<H>>>,
        attention: Arc<AtomicBool>,
        terminus: TerminusId,
    ) -> Self {
        Self {
            outbound,
            attention,
            terminus,
        }
    }

    /// Sends a message, if nothing stands in its way. Otherwise the manager does.
    #[inline]
    pub(crate) fn send(&self, target: &Target, message: &Message<'_>) -> Option<SendHandle> {
        let send = |outbound: &mut OutboundOf<H>| match outbound.may_place(message.data.len()) {
            true => None,
            false => outbound.send_at_once(self.terminus, target, message),
        };
        self.soon(send, |outbound| outbound.may_go_at_once(target, message))
    }

    /// The same of a message to a port, for a handler.
    #[inline]
    pub(crate) fn send_message(
        &self,
        target: &Target,
        handler: u16,
        data: &[u8],
    ) -> Option<SendHandle> {
        let to = target.port_for(data.len())?;
        let link = target.link;
        let send = |outbound: &mut OutboundOf<H>| {
            outbound.send_message_at_once(self.terminus, link, &to, handler, data)
        };
        self.soon(send, |outbound| outbound.may_go_in_cells(link, data.len()))
    }

    /// Tries to send until there is room, a fixed number of times, if it may go then.
    #[inline(always)]
    fn soon(
        &self,
        send: impl Fn(&mut OutboundOf<H>) -> Option<SendHandle>,
        may_go: impl Fn(&OutboundOf<H>) -> bool,
    ) -> Option<SendHandle> {
        for _ in 0..TRIES {
            if self.attention.load(Ordering::Relaxed) {
                break;
            }
            let mut outbound = self.outbound.enter_soon();
            let sent = send(&mut outbound);
            if sent.is_some() {
                return sent;
            }
            if !may_go(&outbound) {
                break;
            }
            drop(outbound);
            spin_loop();
        }
        None
    }
}
