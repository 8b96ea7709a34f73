//! Large messages: bytes per second by size, beside what the machine itself can do, in one run.
//!
//! *Reused* buffers are sent from and landed in again and again, and stay in the cache if they fit
//! it. *Fresh* ones have not been touched since so much else was that no cache has them.

pub(crate) mod hand_off;
pub(crate) mod ours;

use anyhow::Result;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::pair::{Order, Pair};
use super::report::Report;
use super::{Effort, median};
use hamlyn_ring::caches::Caches;
use hand_off::{Field, Transfer};

/// Sizes at which large messages are measured.
pub(crate) const SIZES_BYTES: [usize; 5] = [4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20];
/// Memory that is gone round with fresh buffers; and the most that reused ones have.
pub(crate) const REGION_BYTES: usize = 256 << 20;
/// What the raw pipeline hands over at a time.
const CHUNK_BYTES: usize = 64 << 10;

const _: () = assert!(2 * SIZES_BYTES[SIZES_BYTES.len() - 1] <= REGION_BYTES);

/// Where messages of one size lie, on both sides.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Buffers {
    pub(crate) size_bytes: usize,
    pub(crate) fresh: bool,
}

impl Buffers {
    /// Messages that are on their way at a time: enough that nobody waits for an answer, for as many
    /// bytes as processors pass each other best.
    pub(crate) fn on_their_way(self) -> u64 {
        ((4 << 20) / self.size_bytes.max(1) as u64).clamp(2, 1024)
    }

    /// Different places: not so many that reused ones leave the cache.
    fn count(self) -> u64 {
        if self.fresh {
            (REGION_BYTES / self.size_bytes) as u64
        } else {
            ((1 << 20) / self.size_bytes.max(1) as u64).clamp(2, 64)
        }
    }

    /// Where the receiver wants that message.
    pub(crate) fn target_offset(self, message: u64) -> usize {
        (message % self.count()) as usize * self.size_bytes
    }

    /// Where the sender has it. One buffer is enough to be used again.
    pub(crate) fn source_offset(self, message: u64) -> usize {
        if self.fresh {
            self.target_offset(message)
        } else {
            0
        }
    }

    /// Memory that the receiver needs.
    pub(crate) fn target_bytes(self) -> usize {
        self.count() as usize * self.size_bytes
    }
}

/// Medians of what was measured at one size.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) buffers: Buffers,
    pub(crate) raw_put: f64,
    pub(crate) raw_two_copy: f64,
    pub(crate) memcpy: f64,
    pub(crate) copied: f64,
    pub(crate) direct: f64,
    /// Ours over the raw pipeline, run by run.
    pub(crate) copied_over_two_copy: f64,
    /// Ours over the raw put, run by run.
    pub(crate) direct_over_put: f64,
}

pub(crate) fn measure(
    pair: &mut Pair,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let field = Field::create()?;
    pair.actor
        .order(&Order::LargeField { path: field.path() })?;
    let () = pair.actor.answer()?;
    let source = vec![1_u8; REGION_BYTES];
    for size_bytes in SIZES_BYTES {
        for fresh in [false, true] {
            let buffers = Buffers { size_bytes, fresh };
            let figures = at_size(pair, &field, &source, buffers, effort)?;
            report.large.push(figures);
        }
        bar.inc(1);
    }
    pair.actor.order(&Order::LargeDone)?;
    let () = pair.actor.answer()?;
    Ok(())
}

/// All that is compared at one size, in turn, again and again: so a disturbance meets all alike.
fn at_size(
    pair: &mut Pair,
    field: &Field,
    source: &[u8],
    buffers: Buffers,
    effort: Effort,
) -> Result<Figures> {
    let messages = (effort.bytes_per_run / buffers.size_bytes).max(4) as u64;
    let two_copies = |copy_in, copy_out| Transfer::TwoCopies {
        window_bytes: Caches::here()
            .window_bytes()
            .min(hand_off::WINDOW_MAX_BYTES),
        chunk_bytes: CHUNK_BYTES,
        copy_in,
        copy_out,
    };
    use hand_off::Copy::{Past, Through};
    let mut copied_end = ours::SendingEnd::open(pair, buffers, ours::Placement::Copied)?;
    let mut direct_end = ours::SendingEnd::open(pair, buffers, ours::Placement::Direct)?;
    let mut figures: [Vec<f64>; 7] = Default::default();
    // The first run warms up.
    for run in 0..=effort.runs {
        let first = run as u64 * messages;
        let mut raw = |transfer| -> Result<f64> {
            pair.actor.order(&Order::LargeFollow {
                transfer,
                buffers,
                first,
                messages,
            })?;
            let () = pair.actor.answer()?;
            field.lead(transfer, buffers, source, first, messages)
        };
        // Which way of copying is best depends on where the two processors are; the best counts.
        let put = raw(Transfer::Put(Through))?.max(raw(Transfer::Put(Past))?);
        let two = raw(two_copies(Through, Through))?
            .max(raw(two_copies(Through, Past))?)
            .max(raw(two_copies(Past, Through))?)
            .max(raw(two_copies(Past, Past))?);
        let copied = copied_end.pour(pair, source, first, messages)?;
        let direct = direct_end.pour(pair, source, first, messages)?;
        let memcpy = super::raw::memcpy(buffers, source, first, messages);
        if run > 0 {
            for (figures, figure) in figures.iter_mut().zip([
                put,
                two,
                copied,
                direct,
                memcpy,
                copied / two,
                direct / put,
            ]) {
                figures.push(figure);
            }
        }
    }
    copied_end.close(pair)?;
    direct_end.close(pair)?;
    let [
        raw_put,
        raw_two_copy,
        copied,
        direct,
        memcpy,
        copied_over_two_copy,
        direct_over_put,
    ] = figures.map(median);
    Ok(Figures {
        buffers,
        raw_put,
        raw_two_copy,
        memcpy,
        copied,
        direct,
        copied_over_two_copy,
        direct_over_put,
    })
}
