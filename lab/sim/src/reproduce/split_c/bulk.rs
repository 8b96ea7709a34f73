//! Figure 6: the bandwidth of bulk gets and stores, by the length of the transfer (`Split-C 5.2`).

use super::Machines;
use super::end::{End, Primitive};
use super::table::Bench;
use super::versions::VERSIONS;
use crate::reproduce::measure::Failure;
use crate::reproduce::parallel::side_by_side;
use crate::reproduce::report::{Curve, Plot};
use crate::world;

/// Lengths of transfers, in bytes.
const LENGTHS: [u32; 7] = [64, 256, 1_024, 4_096, 16_384, 65_536, 262_144];
/// Of stores so many bytes are sent at least, of which the second half counts.
const STORED_BYTES: u32 = 1 << 21;
/// Versions whose files say at what rate they move long transfers; of the others the figure is
/// lost.
const WITH_RATE: std::ops::Range<usize> = 0..7;

/// A way to move many bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transfer {
    /// The data come.
    Get,
    /// They go, and nobody waits.
    Store,
}

/// How fast a version moves transfers of some lengths.
#[derive(Clone, PartialEq, Debug)]
struct Rates {
    transfer: Transfer,
    /// Its place in [`VERSIONS`].
    version: usize,
    /// Bytes, and MB/s.
    points: Vec<(u32, f64)>,
}

/// Bandwidths, in MB/s.
#[derive(Clone, PartialEq, Debug)]
pub struct Bandwidths(Vec<Rates>);

impl Bandwidths {
    /// Measures all versions that have a rate.
    pub fn all(machines: &Machines) -> Result<Self, Failure> {
        Self::of_lengths(machines, &LENGTHS, WITH_RATE)
    }

    /// Measures some transfers of a version.
    #[cfg(test)]
    pub(super) fn of_version(machines: &Machines, version: usize) -> Result<Self, Failure> {
        Self::of_lengths(machines, &[64, 1_024, 8_192], version..version + 1)
    }

    fn of_lengths(
        machines: &Machines,
        lengths: &[u32],
        versions: std::ops::Range<usize>,
    ) -> Result<Self, Failure> {
        let transfers = [Transfer::Get, Transfer::Store];
        let of: Vec<(Transfer, usize)> = transfers
            .into_iter()
            .flat_map(|transfer| versions.clone().map(move |version| (transfer, version)))
            .collect();
        let curves = side_by_side(&of, |&(transfer, at)| {
            let version = VERSIONS[at];
            let machine = &machines[version.machine];
            let bench = Bench { version, machine };
            let rate = |&bytes: &u32| Ok((bytes, bench.bandwidth(transfer, bytes)?));
            let points: Result<Vec<_>, Failure> = lengths.iter().map(rate).collect();
            let points = points?;
            Ok(Rates {
                transfer,
                version: at,
                points,
            })
        })?;
        Ok(Self(curves))
    }

    /// The bandwidth of the longest transfers of a version.
    pub fn peak(&self, transfer: Transfer, version: &str) -> Option<f64> {
        let mut all = self.0.iter();
        let of_it =
            |rates: &&Rates| rates.transfer == transfer && VERSIONS[rates.version].name == version;
        Some(all.find(of_it)?.points.last()?.1)
    }

    /// Figure 6.
    pub fn plots(&self) -> Vec<Plot> {
        let plot = |transfer, name: &str, title: &str| Plot {
            name: name.to_owned(),
            title: title.to_owned(),
            across: "bytes",
            unit: "MB/s",
            curves: self
                .0
                .iter()
                .filter(|rates| rates.transfer == transfer)
                .map(|rates| Curve {
                    label: VERSIONS[rates.version].name.to_owned(),
                    points: rates
                        .points
                        .iter()
                        .map(|&(x, y)| (f64::from(x), y))
                        .collect(),
                })
                .collect(),
            anchors: Vec::new(),
        };
        vec![
            plot(Transfer::Get, "splitc-bulk-get", "Bulk get (Figure 6)"),
            plot(
                Transfer::Store,
                "splitc-bulk-store",
                "Bulk store (Figure 6)",
            ),
        ]
    }
}

impl Bench<'_> {
    fn bandwidth(&self, transfer: Transfer, bytes: u32) -> Result<f64, Failure> {
        let (of, count): (fn(u32) -> Primitive, _) = match transfer {
            Transfer::Get => (Primitive::BulkGet, 4),
            Transfer::Store => (
                Primitive::BulkStore,
                (STORED_BYTES / bytes).clamp(16, 1_024),
            ),
        };
        let span = self.beside_targets(1, move |end: &mut End| {
            let mut middle = world::now();
            for number in 0..count {
                if number == count / 2 {
                    middle = world::now();
                }
                end.begin_bulk(of, bytes, 0);
                if transfer == Transfer::Get {
                    end.sync();
                }
            }
            world::now().since(middle)
        })?;
        Ok(f64::from(bytes) * f64::from(count / 2) / span.as_us_f64())
    }
}
