//! What an association is made with, and the bounds of that.

use super::frame::{ACKNOWLEDGE_ROOM_BYTES, HEADER_BYTES};
use super::packets::GENERAL_BYTES_MAX;
use super::send_table::buffer_bytes;
use crate::limits::{CHANNELS_MAX, FRAME_BYTES_MAX, FRAME_BYTES_MIN, PATHS_MAX};

/// What an association is made with. Both ends must have the same `channels` and `frame_bytes`; the
/// handshake of the carrier sees to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Frames that may be without acknowledgement at a time, 1 to [`CHANNELS_MAX`].
    pub channels: u16,
    /// The largest frame: what one datagram carries besides the wire's own, [`FRAME_BYTES_MIN`] to
    /// [`FRAME_BYTES_MAX`].
    pub frame_bytes: usize,
    /// Flows that frames are sprayed over, 1 to [`PATHS_MAX`].
    pub paths: u8,
    /// Bytes of buffers at most; at least two of [`Settings::one_buffer_bytes`]. They are allocated
    /// when they are needed first.
    pub buffer_bytes_max: usize,
    /// Full frames that may wait to be sent; more are not accepted, so that termini are served in
    /// turn. At least 1.
    pub ready_frames_max: u16,
    /// A frame that is not full goes at once while fewer than so many are in flight; at least 1.
    pub eager_frames: u16,
    /// Retries of a frame without an answer (4.4.2: 255).
    pub retries_max: u8,
    /// How long a frame goes without an answer before the association ends, however many retries
    /// there were.
    pub no_answer_ns: u64,
    /// With nothing in flight, how long the peer may be silent before a frame is asked of it, and
    /// then again and again, after an eighth of that; zero: it is never asked. Without an answer to
    /// that the association ends as above. A carrier that knows of deaths by itself need not ask.
    pub keep_alive_ns: u64,
    /// How long nothing is acknowledged before the association ends, though the peer answers.
    pub no_progress_ns: u64,
    /// Before the first round trip is measured, a frame is sent again after this.
    pub resend_initial_ns: u64,
    /// A frame is not sent again earlier, unless later ones were acknowledged.
    pub resend_min_ns: u64,
    /// Up to where the time doubles after which a frame is sent again.
    pub resend_max_ns: u64,
    /// After a NACK a frame is sent again after this, and after twice as long each time, up to 64
    /// times.
    pub not_ready_backoff_ns: u64,
    /// Frames that came, after which an acknowledgement is sent; at least 1.
    pub acknowledge_frames: u16,
    /// How long an acknowledgement waits for a frame that takes it along.
    pub acknowledge_ns: u64,
    /// Target delay: the round trip, less the time in the hosts, to which the window of a near path
    /// is controlled; the same for all who share a queue. On a path whose base is 0.2 ms or more it
    /// is that and a little more, if that is longer; far paths are controlled by loss. Less than
    /// 0.2 ms is for hosts that know all their paths to be shorter.
    pub delay_target_ns: u64,
    /// Window of a path at first, in frames; at least 1.
    pub window_initial_frames: u16,
    /// Window of a path at most, in frames; at least the initial one. No more than the peer's
    /// socket can hold.
    pub window_max_frames: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            channels: 4_096,
            frame_bytes: 1_400,
            paths: 1,
            buffer_bytes_max: 16 << 20,
            ready_frames_max: 64,
            eager_frames: 4,
            retries_max: 255,
            no_answer_ns: 5_000_000_000,
            keep_alive_ns: 0,
            no_progress_ns: 120_000_000_000,
            resend_initial_ns: 10_000_000,
            resend_min_ns: 2_000_000,
            resend_max_ns: 40_000_000,
            not_ready_backoff_ns: 500_000,
            acknowledge_frames: 16,
            acknowledge_ns: 20_000,
            delay_target_ns: 250_000,
            window_initial_frames: 16,
            window_max_frames: 4_096,
        }
    }
}

/// Settings that no association can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadSettings {
    /// The number of channels.
    #[error("an association has 1 to {CHANNELS_MAX} channels, not {0}")]
    Channels(u16),
    /// The size of frames.
    #[error("a frame has {FRAME_BYTES_MIN} to {FRAME_BYTES_MAX} bytes, not {0}")]
    FrameBytes(usize),
    /// The number of paths.
    #[error("an association has 1 to {PATHS_MAX} paths, not {0}")]
    Paths(u8),
    /// The memory for buffers.
    #[error("{0} bytes of buffers do not hold two frames")]
    BufferBytes(usize),
    /// One of the counts of frames is zero.
    #[error("ready, eager and acknowledged frames and the initial window are counted from 1")]
    Zero,
    /// The windows.
    #[error("the largest window is smaller than the initial one")]
    Window,
    /// Times that contradict each other, are zero, or are longer than timestamps can tell apart.
    #[error("a time is zero or longer than a minute, or a smallest one exceeds the largest")]
    Times,
}

/// The window of a near path at most, in frames and in bytes: its delay needs no more, and what is
/// in flight should fit the caches and sockets of the hosts.
const NEAR_FRAMES_MAX: u16 = 1_024;
const NEAR_BYTES_MAX: usize = 2 << 20;
const _: () = assert!(NEAR_FRAMES_MAX as usize <= CHANNELS_MAX);

/// Times of retransmission beyond this are not tellable by timestamps.
const TIME_MAX_NS: u64 = 60_000_000_000;

impl Settings {
    /// Whether an association can have them.
    pub fn check(&self) -> Result<(), BadSettings> {
        if self.channels == 0 || usize::from(self.channels) > CHANNELS_MAX {
            return Err(BadSettings::Channels(self.channels));
        }
        if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&self.frame_bytes) {
            return Err(BadSettings::FrameBytes(self.frame_bytes));
        }
        if self.paths == 0 || usize::from(self.paths) > PATHS_MAX {
            return Err(BadSettings::Paths(self.paths));
        }
        if self.buffer_bytes_max / 2 < Self::one_buffer_bytes(self.frame_bytes) {
            return Err(BadSettings::BufferBytes(self.buffer_bytes_max));
        }
        let counts = [
            self.ready_frames_max,
            self.eager_frames,
            self.acknowledge_frames,
            self.window_initial_frames,
        ];
        if counts.contains(&0) {
            return Err(BadSettings::Zero);
        }
        if self.window_max_frames < self.window_initial_frames {
            return Err(BadSettings::Window);
        }
        let times = [
            self.resend_initial_ns,
            self.resend_min_ns,
            self.resend_max_ns,
            self.not_ready_backoff_ns,
            self.delay_target_ns,
        ];
        if times.iter().any(|time| !(1..=TIME_MAX_NS).contains(time))
            || self.acknowledge_ns > TIME_MAX_NS
            || self.keep_alive_ns > TIME_MAX_NS
            || self.resend_min_ns > self.resend_max_ns
            || self.no_progress_ns == 0
        {
            return Err(BadSettings::Times);
        }
        Ok(())
    }

    /// Bytes of a buffer for a frame of at most so many bytes, [`FRAME_BYTES_MIN`] at least.
    pub const fn one_buffer_bytes(frame_bytes: usize) -> usize {
        buffer_bytes(room_bytes(frame_bytes))
    }

    /// Largest window of a near path, in frames.
    pub(super) fn near_max_frames(&self) -> u16 {
        let buffers = NEAR_BYTES_MAX / Self::one_buffer_bytes(self.frame_bytes);
        let frames = buffers.clamp(2, usize::from(NEAR_FRAMES_MAX)) as u16;
        frames.clamp(1, self.window_max_frames)
    }

    /// Bytes of packets that a frame has room for.
    pub(super) const fn room_bytes(&self) -> usize {
        room_bytes(self.frame_bytes)
    }

    /// The largest payload (metadata and data) of a packet that fits one frame.
    pub const fn payload_max_bytes(&self) -> usize {
        payload_max_bytes(self.frame_bytes)
    }
}

/// Bytes of packets that a frame of so many bytes has room for.
pub(super) const fn room_bytes(frame_bytes: usize) -> usize {
    frame_bytes - HEADER_BYTES - ACKNOWLEDGE_ROOM_BYTES
}

/// The largest payload of a packet that fits a frame of so many bytes.
pub(super) const fn payload_max_bytes(frame_bytes: usize) -> usize {
    room_bytes(frame_bytes) - GENERAL_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_possible_and_hold_a_long_fat_pipe() {
        let settings = Settings::default();
        assert_eq!(settings.check(), Ok(()));
        // 100 Gbit/s for 100 microseconds.
        assert!(usize::from(settings.channels) * settings.frame_bytes >= 1_250_000);
        assert!(settings.buffer_bytes_max >= 1_250_000);
        // 400 Mbit/s for 100 milliseconds.
        let window_bytes = usize::from(settings.window_max_frames) * settings.frame_bytes;
        assert!(window_bytes >= 5_000_000 && settings.buffer_bytes_max >= 5_000_000);
    }

    #[test]
    fn impossible_settings_are_named() {
        let wrong = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().unwrap_err()
        };
        assert_eq!(wrong(|s| s.channels = 0), BadSettings::Channels(0));
        assert_eq!(wrong(|s| s.channels = 5_000), BadSettings::Channels(5_000));
        assert_eq!(wrong(|s| s.frame_bytes = 255), BadSettings::FrameBytes(255));
        assert_eq!(
            wrong(|s| s.frame_bytes = 65_536),
            BadSettings::FrameBytes(65_536)
        );
        assert_eq!(wrong(|s| s.paths = 0), BadSettings::Paths(0));
        assert_eq!(wrong(|s| s.paths = 17), BadSettings::Paths(17));
        assert_eq!(
            wrong(|s| s.buffer_bytes_max = 3_079),
            BadSettings::BufferBytes(3_079)
        );
        assert_eq!(wrong(|s| s.eager_frames = 0), BadSettings::Zero);
        assert_eq!(wrong(|s| s.window_max_frames = 15), BadSettings::Window);
        assert_eq!(wrong(|s| s.resend_min_ns = 50_000_000), BadSettings::Times);
        assert_eq!(wrong(|s| s.no_progress_ns = 0), BadSettings::Times);
        assert_eq!(wrong(|s| s.keep_alive_ns = u64::MAX), BadSettings::Times);
    }
}
