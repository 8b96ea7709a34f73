//! Answers to one-sided operations of others: what both halves of an interface do together.

use hamlyn_engine::memory::TxLinks as _;
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::send_observer::SendObserver;
use hamlyn_link::{ReceiveEnd, Shortcut, TransmitEnd};
use hamlyn_ring::area::Area;

use crate::inbound::{Inbound, Polled};
use crate::outbound::Outbound;

/// Sends what is to be answered, as far as there is room; how many packets.
pub(crate) fn answer<R: ReceiveEnd, T: TransmitEnd, O, S>(
    inbound: &mut Inbound<R, O>,
    outbound: &mut Outbound<T, S>,
) -> usize
where
    O: ReceiveObserver<Area>,
    S: SendObserver<Area>,
{
    let sent = inbound.receiver.answer(&mut outbound.tx_links);
    outbound.tx_links.hand_over();
    sent
}

/// The fast path for a request in the duplex line of the link whose turn it is, if one short packet
/// answers it: takes it, and sends the answer. Nothing if there is none; and now and then when
/// there is one ([`hamlyn_ring::duplex`]), so that other links have their turn.
#[inline(always)]
pub(crate) fn serve_at_once<R: ReceiveEnd, T: TransmitEnd, O, S>(
    inbound: &mut Inbound<R, O>,
    outbound: &mut Outbound<T, S>,
) -> Option<Polled>
where
    O: ReceiveObserver<Area>,
    S: SendObserver<Area>,
{
    let (rx_link, receiver) = inbound.current_and_receiver()?;
    let from = rx_link.id;
    let way = rx_link.end.shortcut()?;
    let answer = receiver.serve_short(&way.peek_request()?)?;
    // The line is ours for the answer when the request is taken.
    way.request_done();
    if !outbound.tx_links.offer_short(from, answer) {
        receiver.answer_later(from, &answer);
    }
    Some(Polled {
        packets: 1,
        handed: None,
        has_ended: inbound.has_ended(),
    })
}
