//! Large messages: bytes per second by size, beside what the machine itself can do, in one run.
//!
//! *Reused* buffers are sent from and landed in again and again, and stay in the cache if they fit
//! it. *Fresh* ones have not been touched since so much else was that no cache has them.
//!
//! The machine's own figure is that of the best way to copy: of several that take turns in each
//! round, the one with the highest median. So it depends on the size and on where the two
//! processors are, and not on a lucky round.

pub(crate) mod hand_off;
pub(crate) mod ours;
mod settling;

use anyhow::Result;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::pair::{Order, Pair};
use super::report::Report;
use super::{Effort, median};
use hamlyn::engine::terminus::SendTag;
use hamlyn_ring::caches::Caches;
use hand_off::{Field, Transfer};
use ours::{Placement, Source};

/// Sizes at which large messages are measured.
pub(crate) const SIZES_BYTES: [usize; 6] =
    [4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// Memory that is gone round with fresh buffers; and the most that reused ones have.
pub(crate) const REGION_BYTES: usize = 256 << 20;
/// Memory that reused buffers of up to half that size have together: so little that it stays in the
/// sender's own cache, as with a program that sends from one buffer into two.
const REUSED_BYTES: usize = 256 << 10;
/// What the raw pipeline hands over at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// The narrower of two buffers of the raw pipeline.
const NARROW_BYTES: usize = 512 << 10;

const _: () = assert!(2 * SIZES_BYTES[SIZES_BYTES.len() - 1] <= REGION_BYTES);

/// Where messages of one size lie, on both sides.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Buffers {
    pub(crate) size_bytes: usize,
    pub(crate) fresh: bool,
}

impl Buffers {
    /// Messages that are on their way at a time: enough that nobody waits for an answer, for as
    /// many bytes as processors pass each other best. What the sender stores itself is never stored
    /// over a message that was not taken.
    pub(crate) fn on_their_way(self, placement: Placement) -> u64 {
        let many = ((4 << 20) / self.size_bytes.max(1) as u64).clamp(2, 1024);
        match placement {
            Placement::Copied => many,
            Placement::Direct => many.min(self.count()),
        }
    }

    /// Different places: not so many that reused ones leave the cache.
    pub(crate) fn count(self) -> u64 {
        if self.fresh {
            (REGION_BYTES / self.size_bytes) as u64
        } else {
            (REUSED_BYTES / self.size_bytes.max(1)).clamp(2, 64) as u64
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

/// What the sender has at that place of its memory, so that the receiver can tell.
pub(crate) fn word_at(offset: usize) -> u64 {
    (offset as u64 / 8 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
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
    /// Stored by the sender from a send-buffer area.
    pub(crate) gathered: f64,
    /// Ours over the raw pipeline, run by run.
    pub(crate) copied_over_two_copy: f64,
    /// Ours over the raw put, run by run.
    pub(crate) direct_over_put: f64,
    pub(crate) gathered_over_put: f64,
}

pub(crate) fn measure(
    pair: &mut Pair,
    processor: usize,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let mut field = Field::create()?;
    pair.actor
        .order(&Order::LargeField { path: field.path() })?;
    let () = pair.actor.answer()?;
    let mut source = vec![0_u8; REGION_BYTES];
    for (number, word) in source.as_chunks_mut().0.iter_mut().enumerate() {
        *word = word_at(8 * number).to_le_bytes();
    }
    let gathered = ours::send_area(pair, &source)?;
    for size_bytes in SIZES_BYTES {
        for fresh in [false, true] {
            let buffers = Buffers { size_bytes, fresh };
            let figures = at_size(pair, &mut field, &source, gathered, buffers, effort)?;
            report.large.push(figures);
        }
        bar.inc(1);
    }
    ours::give_up(pair, gathered)?;
    pair.actor.order(&Order::LargeDone)?;
    let () = pair.actor.answer()?;
    settling::measure(processor, &source, effort, report)?;
    bar.inc(1);
    Ok(())
}

/// Ways to put, and to copy twice.
fn ways() -> ([Transfer; 2], [Transfer; 5]) {
    use hand_off::Copy::{Past, Through};
    let wide_bytes = Caches::here()
        .window_bytes()
        .min(hand_off::WINDOW_MAX_BYTES);
    let two_copies = |window_bytes, copy_in, copy_out| Transfer::TwoCopies {
        window_bytes,
        chunk_bytes: CHUNK_BYTES,
        copy_in,
        copy_out,
    };
    (
        [Transfer::Put(Through), Transfer::Put(Past)],
        [
            two_copies(wide_bytes, Through, Through),
            two_copies(NARROW_BYTES, Through, Through),
            two_copies(wide_bytes, Through, Past),
            two_copies(wide_bytes, Past, Through),
            two_copies(wide_bytes, Past, Past),
        ],
    )
}

/// Of several ways, the rates of the one that is best by its median.
fn best(ways: &[Vec<f64>]) -> &[f64] {
    let by_median = |one: &&Vec<f64>, other: &&Vec<f64>| {
        median(one.to_vec()).total_cmp(&median(other.to_vec()))
    };
    ways.iter().max_by(by_median).map_or(&[], Vec::as_slice)
}

/// All that is compared at one size, in turn, again and again: so a disturbance meets all alike.
fn at_size(
    pair: &mut Pair,
    field: &mut Field,
    source: &[u8],
    gathered: SendTag,
    buffers: Buffers,
    effort: Effort,
) -> Result<Figures> {
    let messages = (effort.bytes_per_run / buffers.size_bytes).max(4) as u64;
    let (put_ways, two_copy_ways) = ways();
    let mut copied_end = ours::SendingEnd::open(pair, buffers, Placement::Copied)?;
    let mut direct_end = ours::SendingEnd::open(pair, buffers, Placement::Direct)?;
    let mut puts = put_ways.map(|_| Vec::new());
    let mut two_copies = two_copy_ways.map(|_| Vec::new());
    let (mut copied, mut direct, mut memcpy) = (Vec::new(), Vec::new(), Vec::new());
    let mut gathered_direct = Vec::new();
    // The first run warms up, and what the raw programs bring is compared with what they should.
    for run in 0..=effort.runs {
        let first = run as u64 * messages;
        let mut raw = |transfer| -> Result<f64> {
            pair.actor.order(&Order::LargeFollow {
                transfer,
                buffers,
                first,
                messages,
                is_checked: run == 0,
            })?;
            let () = pair.actor.answer()?;
            let rate = field.lead(transfer, buffers, source, first, messages)?;
            let () = pair.actor.answer()?;
            Ok(rate)
        };
        let mut put_rates = [0.0; 2];
        for (rate, &way) in put_rates.iter_mut().zip(&put_ways) {
            *rate = raw(way)?;
        }
        let mut two_copy_rates = [0.0; 5];
        for (rate, &way) in two_copy_rates.iter_mut().zip(&two_copy_ways) {
            *rate = raw(way)?;
        }
        let bytes = Source::Bytes(source);
        let copied_rate = copied_end.pour(pair, bytes, first, messages)?;
        let direct_rate = direct_end.pour(pair, bytes, first, messages)?;
        let gathered_rate = direct_end.pour(pair, Source::Area(gathered), first, messages)?;
        if run == 0 {
            continue;
        }
        for (rates, rate) in puts.iter_mut().zip(put_rates) {
            rates.push(rate);
        }
        for (rates, rate) in two_copies.iter_mut().zip(two_copy_rates) {
            rates.push(rate);
        }
        copied.push(copied_rate);
        direct.push(direct_rate);
        gathered_direct.push(gathered_rate);
        memcpy.push(super::raw::memcpy(buffers, source, first, messages));
    }
    copied_end.close(pair)?;
    direct_end.close(pair)?;
    let over = |ours: &[f64], raw: &[f64]| -> f64 {
        median(ours.iter().zip(raw).map(|(ours, raw)| ours / raw).collect())
    };
    let (put, two) = (best(&puts), best(&two_copies));
    Ok(Figures {
        buffers,
        raw_put: median(put.to_vec()),
        raw_two_copy: median(two.to_vec()),
        copied_over_two_copy: over(&copied, two),
        direct_over_put: over(&direct, put),
        gathered_over_put: over(&gathered_direct, put),
        gathered: median(gathered_direct),
        copied: median(copied),
        direct: median(direct),
        memcpy: median(memcpy),
    })
}

#[cfg(test)]
mod tests;
