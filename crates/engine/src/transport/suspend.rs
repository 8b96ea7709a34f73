//! Suspending an association and resuming it while traffic is in flight (4.4.4).
//!
//! An association can be suspended when each frame that it sent has its acknowledgement, or the
//! NACK of its *latest* transmission: no frame that is still in flight can then change its state.
//! While it is suspended, [`answer_not_resident`](super::answer_not_resident) answers the peer.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::association::{Association, Statistics};
use super::receive_table::ReceiveTable;
use super::send_table::ListId;
use super::settings::Settings;

/// A frame that was not acknowledged.
#[derive(Debug)]
struct SuspendedFrame {
    channel: u16,
    sequence: u32,
    stamp: u32,
    packets: u16,
    was_sent: bool,
    bytes: Box<[u8]>,
}

/// A suspended association: its sequence numbers, and the frames that wait to be sent.
#[derive(Debug)]
pub struct Suspended {
    settings: Settings,
    receive: ReceiveTable,
    round: u32,
    next_channel: u16,
    frames: Vec<SuspendedFrame>,
    statistics: Statistics,
}

impl Association {
    /// Stops new frames and frames whose receiver was not ready, so that the association can soon
    /// be suspended. Lost frames are sent again.
    pub fn prepare_suspend(&mut self) {
        self.is_suspending = true;
    }

    /// Cancels [`prepare_suspend`](Self::prepare_suspend).
    pub fn cancel_suspend(&mut self) {
        self.is_suspending = false;
    }

    /// Whether the association can be suspended: each frame that was sent was acknowledged, or got
    /// the NACK of its latest transmission; nothing is being taken; and whatever came back was
    /// fetched.
    pub fn can_suspend(&self) -> bool {
        self.close_reason.is_none()
            && self.in_flight() == 0
            && self.send.count(ListId::LOST) == 0
            && self.receive.delivering_count() == 0
            && self.returns.is_empty()
    }

    /// Suspends the association, if it [`can_suspend`](Self::can_suspend); otherwise it comes back
    /// as it is. Allocates.
    pub fn suspend(mut self) -> Result<Suspended, Box<Association>> {
        if !self.can_suspend() {
            return Err(Box::new(self));
        }
        self.complete_frame();
        let mut frames = Vec::new();
        for channel in self.send.oldest_first() {
            let entry = *self.send.entry(channel);
            let bytes = self.buffers.peek(entry.buffer);
            let bytes = bytes.get(..usize::from(entry.length_bytes));
            // One that was begun and has no packets yet is nothing.
            if entry.list() != ListId::NOWHERE {
                frames.push(SuspendedFrame {
                    channel,
                    sequence: entry.sequence,
                    stamp: entry.stamp,
                    packets: entry.packets,
                    was_sent: entry.list() == ListId::NOT_READY,
                    bytes: bytes.unwrap_or_default().into(),
                });
            }
        }
        let (round, next_channel) = self.send.position();
        Ok(Suspended {
            settings: self.settings,
            receive: self.receive,
            round,
            next_channel,
            frames,
            statistics: self.statistics,
        })
    }

    /// Resumes a suspended association. Frames whose receiver was not ready are sent again at once;
    /// windows and round trips are learned anew.
    pub fn resume(suspended: Suspended, now_ns: u64) -> Association {
        let settings = suspended.settings;
        let mut this = Self::with_checked(settings);
        this.receive = suspended.receive;
        this.statistics = suspended.statistics;
        this.progress_ns = now_ns;
        this.send.go_to(suspended.round, suspended.next_channel);
        for frame in suspended.frames {
            // As many as there were; they had buffers and channels before.
            let Some(buffer) = this.buffers.take() else {
                break;
            };
            let bytes = this.buffers.bytes(buffer);
            if let Some(place) = bytes.get_mut(..frame.bytes.len()) {
                place.copy_from_slice(&frame.bytes);
            }
            this.send.occupy(frame.channel, frame.sequence, buffer);
            let entry = this.send.entry(frame.channel);
            entry.length_bytes = frame.bytes.len() as u16;
            entry.packets = frame.packets;
            entry.stamp = frame.stamp;
            entry.is_retransmitted = frame.was_sent;
            entry.unanswered_ns = now_ns;
            let list = if frame.was_sent {
                ListId::NOT_READY
            } else {
                ListId::READY
            };
            this.send.enlist(frame.channel, list);
        }
        this
    }
}

impl Suspended {
    /// Bytes that its frames take.
    pub fn frame_bytes(&self) -> usize {
        self.frames.iter().map(|frame| frame.bytes.len()).sum()
    }
}
