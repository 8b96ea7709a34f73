//! How soon copied messages are as fast as they get: what a new link does after its first 4 MiB,
//! over what it does later.

use anyhow::Result;

use super::ours::{Placement, SendingEnd, Source};
use super::{Buffers, Effort, Pair, Report, median};

/// Sizes of which several fit what a link may take to settle.
pub(crate) const SIZES_BYTES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// What a link may take to settle, and what is timed after it.
const SETTLING_BYTES: usize = 4 << 20;
const TIMED_BYTES: usize = 8 << 20;
/// Links for each size; the median is reported.
const LINKS: usize = 5;

pub(super) fn measure(
    processor: usize,
    source: &[u8],
    effort: Effort,
    report: &mut Report,
) -> Result<()> {
    let links = effort.depth.pick(LINKS, LINKS, 1);
    for size_bytes in SIZES_BYTES {
        let buffers = Buffers {
            size_bytes,
            fresh: false,
        };
        let mut ratios = Vec::new();
        for _ in 0..links {
            // New interfaces, so that the link is new.
            let mut pair = Pair::start(processor)?;
            let mut end = SendingEnd::open(&mut pair, buffers, Placement::Copied)?;
            let mut first = 0;
            let mut pour = |bytes: usize| {
                let messages = (bytes / size_bytes) as u64;
                let rate = end.pour(&mut pair, Source::Bytes(source), first, messages);
                first += messages;
                rate
            };
            pour(SETTLING_BYTES)?;
            let soon = pour(TIMED_BYTES)?;
            pour(effort.bytes_per_run)?;
            let mut later = Vec::new();
            for _ in 0..links {
                later.push(pour(TIMED_BYTES)?);
            }
            ratios.push(soon / median(later));
            end.close(&mut pair)?;
            pair.finish()?;
        }
        report.settled.push((size_bytes, median(ratios)));
    }
    Ok(())
}
