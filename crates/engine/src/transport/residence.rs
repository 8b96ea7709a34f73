//! Unloading an association and loading it again while traffic is in flight (4.4.4).
//!
//! It may be unloaded when each frame that was sent has its acknowledgement, or the NACK of its *latest* transmission:
//! then nothing that is still under way can tell it anything. Meanwhile
//! [`answer_not_resident`](super::answer_not_resident) answers for it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::association::{Association, Statistics};
use super::receive_table::ReceiveTable;
use super::send_table::ListId;
use super::settings::Settings;

/// A frame that was not acknowledged.
#[derive(Debug)]
struct SavedFrame {
    channel: u16,
    sequence: u32,
    stamp: u32,
    packets: u16,
    was_sent: bool,
    bytes: Box<[u8]>,
}

/// An association that is not resident: its numbers, and frames that wait.
#[derive(Debug)]
pub struct Saved {
    settings: Settings,
    receive: ReceiveTable,
    lap: u32,
    cursor: u16,
    frames: Vec<SavedFrame>,
    statistics: Statistics,
}

impl Association {
    /// Nothing fresh is sent from now on, nor what was put off, so that it soon may be unloaded. What may have been lost is
    /// sent again.
    pub fn wind_down(&mut self) {
        self.is_winding_down = true;
    }

    /// It is not to be unloaded after all.
    pub fn resume(&mut self) {
        self.is_winding_down = false;
    }

    /// Whether it may be unloaded: each frame that was sent was acknowledged, or got the NACK of its latest
    /// transmission; nothing is being taken; and whatever came back was fetched.
    pub fn may_unload(&self) -> bool {
        self.verdict.is_none()
            && self.under_way() == 0
            && self.send.count(ListId::LOST) == 0
            && self.receive.given() == 0
            && self.returns.is_empty()
    }

    /// Unloads it, if it [`may_unload`](Self::may_unload); otherwise it comes back as it is. Allocates.
    pub fn unload(mut self) -> Result<Saved, Box<Association>> {
        if !self.may_unload() {
            return Err(Box::new(self));
        }
        self.seal();
        let mut frames = Vec::new();
        for channel in self.send.oldest_first() {
            let entry = *self.send.entry(channel);
            let bytes = self.buffers.peek(entry.buffer);
            let bytes = bytes.get(..usize::from(entry.length_bytes));
            // One that was begun and has no packets yet is nothing.
            if entry.list() != ListId::NOWHERE {
                frames.push(SavedFrame {
                    channel,
                    sequence: entry.sequence,
                    stamp: entry.stamp,
                    packets: entry.packets,
                    was_sent: entry.list() == ListId::PUT_OFF,
                    bytes: bytes.unwrap_or_default().into(),
                });
            }
        }
        let (lap, cursor) = self.send.position();
        Ok(Saved {
            settings: self.settings,
            receive: self.receive,
            lap,
            cursor,
            frames,
            statistics: self.statistics,
        })
    }

    /// Loads what was unloaded. What was put off is sent again at once; windows and round trips are
    /// learned anew.
    pub fn load(saved: Saved, now_ns: u64) -> Association {
        let settings = saved.settings;
        let mut this = Self::with_checked(settings);
        this.receive = saved.receive;
        this.statistics = saved.statistics;
        this.progress_ns = now_ns;
        this.send.go_to(saved.lap, saved.cursor);
        for frame in saved.frames {
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
            entry.is_sent_again = frame.was_sent;
            entry.unanswered_ns = now_ns;
            let list = if frame.was_sent {
                ListId::PUT_OFF
            } else {
                ListId::READY
            };
            this.send.enlist(frame.channel, list);
        }
        this
    }
}

impl Saved {
    /// Bytes that its frames take.
    pub fn frame_bytes(&self) -> usize {
        self.frames.iter().map(|frame| frame.bytes.len()).sum()
    }
}
