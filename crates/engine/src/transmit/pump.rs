//! What waits is sent as its links have room: links take turns, and on each link termini.

use crate::backlog::Offered;
use crate::limits::{BACKLOG_BURST, BACKLOGS_BLOCKED_MAX, PUMPS_PER_TRIAL};
use crate::memory::{Area, TxLinks, Unsent};
use crate::send_observer::{SendEvent, SendObserver};

use super::streaming::{SendProgress, StreamingSend};
use super::{Pumped, Transmitter};

impl<A: Area, S: SendObserver<A>> Transmitter<A, S> {
    /// Offers queued packets to the links, at most `packets_max`. Links take turns, of
    /// [`BACKLOG_BURST`] packets; on each, termini take turns, each of as many packets as its
    /// priority says: so a message waits at most for one turn of every other terminus that sends to
    /// its link, and never for what is sent to another. Each link that may have room is served; of
    /// those that turn out to have none, a few are offered a packet.
    pub fn pump<O: TxLinks<A>>(&mut self, tx_links: &mut O, packets_max: usize) -> Pumped {
        self.pumps = self.pumps.wrapping_add(1);
        let mut packets = 0;
        let mut blocked = 0;
        // Once around without a packet is enough: nothing changes meanwhile.
        let mut left = self.listed.len();
        while packets < packets_max
            && blocked < BACKLOGS_BLOCKED_MAX
            && left > 0
            && let Some(index) = self.listed.pop_front()
        {
            left -= 1;
            if self.rests(index, tx_links) {
                self.listed.push_back(index);
                continue;
            }
            let sent = self.serve(
                index,
                BACKLOG_BURST.min(packets_max - packets),
                None,
                tx_links,
            );
            packets += sent;
            if let Some(backlog) = self.backlogs.get_mut(index as usize) {
                backlog.is_listed = backlog.waiting() != 0;
                if backlog.is_listed {
                    self.listed.push_back(index);
                    if sent == 0 {
                        blocked += 1;
                    } else {
                        left = self.listed.len();
                    }
                }
            }
        }
        Pumped {
            packets,
            waiting: self.waiting != 0,
        }
    }

    /// Whether nothing has changed since that link was found full. Now and then a packet is offered
    /// all the same: want of room may have had another cause.
    fn rests<O: TxLinks<A>>(&self, index: u32, tx_links: &O) -> bool {
        let backlog = self.backlogs.get(index as usize);
        !self.pumps.is_multiple_of(PUMPS_PER_TRIAL)
            && backlog
                .is_some_and(|backlog| backlog.waiting() != 0 && !tx_links.may_take(backlog.link))
    }

    /// Sends packets to one link, in order of turns, until it takes no more; how many.
    pub(super) fn serve<O: TxLinks<A>>(
        &mut self,
        index: u32,
        packets_max: usize,
        mut streaming_send: Option<&mut StreamingSend<'_>>,
        tx_links: &mut O,
    ) -> usize {
        let Some(backlog) = self.backlogs.get_mut(index as usize) else {
            return 0;
        };
        let link = backlog.link;
        let mut packets = 0;
        while packets < packets_max {
            let guest_id = streaming_send
                .as_ref()
                .map(|streaming_send| streaming_send.id);
            let Some(place) = backlog.turn(guest_id) else {
                break;
            };
            let Some(lane) = backlog.lane(place) else {
                break;
            };
            let Some(terminus) = self.termini.get(lane.terminus.name()) else {
                break;
            };
            if let Some(streaming_send) = &mut streaming_send
                && streaming_send.id == lane.terminus
            {
                let offered = Offered::new(lane.terminus, link, terminus, &mut self.observer);
                let taken = streaming_send.send_one(offered, tx_links);
                if taken {
                    packets += 1;
                    backlog.sent(place, None);
                }
                if !taken || streaming_send.state != SendProgress::Full {
                    break;
                }
                continue;
            }
            let Some(work) = lane.queue.front() else {
                break;
            };
            let Some(payload_max_bytes) = tx_links.payload_max_bytes(link) else {
                self.waiting -= backlog.fail_all();
                self.tell(|| SendEvent::LinkEnded(link));
                break;
            };
            if !work.segmenter.fits(payload_max_bytes) {
                let terminus = lane.terminus;
                backlog.fail_first(place);
                self.waiting -= 1;
                if S::LISTENS {
                    let failed = SendEvent::FirstFailed { terminus, link };
                    self.observer.observe(failed);
                }
                continue;
            }
            let segment = work.segmenter.next(payload_max_bytes);
            let offered = Offered::new(lane.terminus, link, terminus, &mut self.observer);
            match work.offer(offered, tx_links, &segment) {
                Ok(()) => {
                    packets += 1;
                    self.waiting -= usize::from(segment.last);
                    backlog.sent(place, Some(&segment));
                }
                Err(Unsent::Full) => break,
                Err(Unsent::Gone) => {
                    self.waiting -= backlog.fail_all();
                    self.tell(|| SendEvent::LinkEnded(link));
                    break;
                }
            }
        }
        packets
    }
}
