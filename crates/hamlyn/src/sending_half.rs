//! The transmit half of an interface that threads share. It has a lock of its own, so a thread
//! sends while another one has the manager, to receive or for anything else (decision 51).

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_engine::memory::TxLinks as _;
use hamlyn_engine::terminus::{SendHandle, TerminusId};
use hamlyn_host::Host;

use crate::half::HandoffLock;
use crate::interface::TransmitEndOf;
use crate::message::{Message, Target};
use crate::outbound::Outbound;
use crate::region::PLACED_BYTES_MIN;

/// How often a message that finds no room is tried. Others receive meanwhile, and room may come.
const TRIES: u32 = 128;

type OutboundOf<H> = Outbound<TransmitEndOf<H>, <H as Host>::SendObserver>;

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

    /// Sends a message that is one packet, if nothing stands in its way. Otherwise the manager does.
    #[inline]
    pub(crate) fn send(&self, target: &Target, message: &Message<'_>) -> Option<SendHandle> {
        let may_be_placed = message.data.len() as u64 >= PLACED_BYTES_MIN;
        let payload_bytes = message.data.len() + message.metadata.len();
        self.soon(|outbound| {
            if may_be_placed {
                let most = outbound.tx_links.payload_max_bytes(target.link);
                if outbound.has_regions || most.is_none_or(|most| payload_bytes > most) {
                    return Err(Never);
                }
            }
            Ok(outbound.send_at_once(self.terminus, target, message))
        })
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
        self.soon(|outbound| {
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            let link = target.link;
            let sent = transmitter.post_message(self.terminus, link, &to, handler, data, tx_links);
            Ok(sent)
        })
    }

    /// Tries to send until there is room, a fixed number of times.
    #[inline(always)]
    fn soon(
        &self,
        send: impl Fn(&mut OutboundOf<H>) -> Result<Option<SendHandle>, Never>,
    ) -> Option<SendHandle> {
        for _ in 0..TRIES {
            if self.attention.load(Ordering::Relaxed) {
                break;
            }
            match send(&mut self.outbound.enter_soon()) {
                Ok(None) => spin_loop(),
                Ok(sent) => return sent,
                Err(Never) => break,
            }
        }
        None
    }
}

/// It will not be sent so, though there be room.
struct Never;
