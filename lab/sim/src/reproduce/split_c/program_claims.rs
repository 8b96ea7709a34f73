//! What the paper's text and figures conclude of programs (`Split-C 5.3` and `5.4`), asked of our
//! own numbers.
//!
//! What is said of a claim lists the numbers that it was judged by, or those that break it.

use super::Evaluation;
use super::claims::{Claim, Judge};
use super::polling::Attention;
use super::programs::{MACHINES, names};
use crate::reproduce::measure::Failure;

/// Strategies differ if their times do by more than this part, and are about equal otherwise.
const SIMILAR: f64 = 0.1;
/// Programs with bulk transfers, and those with small ones of which each has a counterpart with
/// bulk transfers.
const BULK: [&str; 3] = ["sampleb", "radixb", "fftb"];
const FINE: [(&str, &str); 3] = [("sample", "sampleb"), ("radix", "radixb"), ("fft", "fftb")];
/// NP's times of Table 2 as parts of Proc's that differ by more than a tenth: on which machine, and
/// whether NP wins.
const DIFFERENT: [(&str, &str, bool); 10] = [
    ("radix", "Meiko", false),
    ("sample", "Meiko", false),
    ("cannon", "Meiko", true),
    ("mm", "Meiko", true),
    ("fft", "Meiko", true),
    ("shell", "Meiko", true),
    ("wator", "Meiko", true),
    ("sample", "Paragon", true),
    ("fft", "Paragon", true),
    ("wator", "Paragon", true),
];

/// Numbers beside each other, and whether each is as claimed.
struct Verdict<'a> {
    measured: &'a Evaluation,
    shown: Vec<String>,
    broken: Vec<String>,
}

impl<'a> Verdict<'a> {
    fn on(measured: &'a Evaluation) -> Self {
        Self {
            measured,
            shown: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// A program's times under Proc and under NP in seconds.
    fn times(&self, program: &str, machine: &str) -> Result<(f64, f64), Failure> {
        let times = self.measured.programs.of(program, machine);
        times.ok_or_else(|| Failure::Unmatched {
            id: format!("{program} on {machine}"),
        })
    }

    /// NP's time as a part of Proc's.
    fn ratio(&self, program: &str, machine: &str) -> Result<f64, Failure> {
        let (proc, np) = self.times(program, machine)?;
        Ok(np / proc)
    }

    /// A program's time under Proc in seconds.
    fn seconds(&self, program: &str, machine: &str) -> Result<f64, Failure> {
        Ok(self.times(program, machine)?.0)
    }

    fn note(&mut self, what: &str, value: f64, holds: bool) {
        let said = format!("{what} {value:.3}");
        match holds {
            true => self.shown.push(said),
            false => self.broken.push(said),
        }
    }

    /// Judges the ratios of programs on a machine.
    fn each(
        mut self,
        programs: &[&str],
        machine: &str,
        holds: impl Fn(f64) -> bool,
    ) -> Result<Self, Failure> {
        for program in programs {
            let ratio = self.ratio(program, machine)?;
            self.note(&format!("{program} {machine}"), ratio, holds(ratio));
        }
        Ok(self)
    }

    /// A cell of Table 1 under NP as a part of that under Proc.
    fn cells(&self, row: &str, machine: &str) -> Result<f64, Failure> {
        let table = Claim::on(self.measured);
        let cell = |strategy| table.value(&format!("{row}.{machine}-{strategy}"));
        Ok(cell("NP")? / cell("Proc")?)
    }

    /// Iterations by the length of a piece.
    fn curve(&self, machine: &str, attention: Attention) -> &'a [(f64, f64)] {
        self.measured.polling.of(machine, attention)
    }

    /// The iterations under Proc with that attention, each divided by NP's, with the length of a
    /// piece.
    fn beside_np(&self, machine: &str, attention: Attention) -> Vec<(f64, f64)> {
        let np = self.curve(machine, Attention::NetworkProcessor);
        let proc = self.curve(machine, attention);
        proc.iter()
            .zip(np)
            .map(|(&(grain, proc), &(_, np))| (grain, proc / np))
            .collect()
    }

    fn judged(self) -> Result<(bool, String), Failure> {
        Ok(match self.broken.is_empty() {
            true => (true, self.shown.join(", ")),
            false => (false, format!("not: {}", self.broken.join(", "))),
        })
    }
}

fn np_wins(ratio: f64) -> bool {
    ratio < 1.0 - SIMILAR
}

fn is_similar(ratio: f64) -> bool {
    (ratio - 1.0).abs() <= SIMILAR
}

/// The same strategy wins on a machine as in Table 2, wherever the paper's times differ by more
/// than a tenth.
fn same_winners(measured: &Evaluation, machine: &str) -> Result<(bool, String), Failure> {
    let mut verdict = Verdict::on(measured);
    for (program, _, np_wins) in DIFFERENT.iter().filter(|(_, on, _)| *on == machine) {
        verdict = verdict.each(&[program], machine, |ratio| (ratio < 1.0) == *np_wins)?;
    }
    verdict.judged()
}

/// The claims, by their rows.
pub(super) static CLAIMS: [(&str, Judge); 24] = [
    ("G-244", |m| {
        let mut verdict = Verdict::on(m);
        for (machine, procs, _) in MACHINES {
            for attention in [Attention::Never, Attention::Polls] {
                let rarest = verdict
                    .beside_np(machine, attention)
                    .last()
                    .map_or(0.0, |at| at.1);
                let what = format!("{machine}, {attention:?}, NP's time multiplied by");
                verdict.note(&what, rarest, rarest > procs as f64 / 2.0);
            }
        }
        verdict.judged()
    }),
    ("G-245", |m| {
        let mut verdict = Verdict::on(m);
        for (machine, ..) in MACHINES {
            let np = verdict.curve(machine, Attention::NetworkProcessor);
            let least = np.iter().map(|at| at.1).fold(f64::INFINITY, f64::min);
            let most = np.iter().map(|at| at.1).fold(0.0, f64::max);
            let what = format!("{machine}, most by least");
            verdict.note(&what, most / least, most <= least * 1.02);
        }
        verdict.judged()
    }),
    ("G-246", |m| {
        let mut verdict = Verdict::on(m);
        for (machine, ..) in MACHINES {
            let beside = verdict.beside_np(machine, Attention::Polls);
            let equal = || beside.iter().filter(|at| is_similar(at.1)).map(|at| at.0);
            let least = equal().fold(f64::INFINITY, f64::min);
            let most = equal().fold(0.0, f64::max);
            let what = format!("{machine}, from {least} µs on, the longest by the shortest piece");
            verdict.note(&what, most / least, most >= 10.0 * least);
        }
        verdict.judged()
    }),
    ("G-247", |m| {
        let mut verdict = Verdict::on(m);
        for (machine, ..) in MACHINES {
            let beside = verdict.beside_np(machine, Attention::Polls);
            let finest = beside.first().map_or(0.0, |at| at.1);
            let best = beside.iter().map(|at| at.1).fold(f64::INFINITY, f64::min);
            let what = format!("{machine}, finest");
            verdict.note(&what, finest, finest > 1.0 + SIMILAR);
            verdict.note(&format!("{machine}, best"), best, is_similar(best));
        }
        verdict.judged()
    }),
    ("G-250", |m| same_winners(m, "Meiko")),
    ("G-251", |m| same_winners(m, "Paragon")),
    ("G-261", |m| {
        Verdict::on(m)
            .each(&["radix", "sample"], "Meiko", |ratio| ratio > 1.0 + SIMILAR)?
            .judged()
    }),
    ("G-262", |m| {
        Verdict::on(m)
            .each(&["mm", "fft", "shell", "wator"], "Meiko", np_wins)?
            .judged()
    }),
    ("G-263", |m| {
        Verdict::on(m)
            .each(
                &["p-ray", "sampleb", "radixb", "bitonic", "fftb", "cannon"],
                "Meiko",
                is_similar,
            )?
            .judged()
    }),
    ("G-265", |m| {
        Verdict::on(m).each(&BULK, "Meiko", is_similar)?.judged()
    }),
    ("G-268", |m| {
        let mut verdict = Verdict::on(m);
        let wator = verdict.ratio("wator", "Meiko")?;
        for program in names().filter(|&program| program != "wator") {
            let other = verdict.ratio(program, "Meiko")?;
            if other < wator {
                verdict.note(program, other, false);
            }
        }
        verdict.note("wator Meiko", wator, wator < 0.25);
        verdict.judged()
    }),
    ("G-270", |m| {
        Verdict::on(m)
            .each(
                &[
                    "p-ray", "sampleb", "radixb", "bitonic", "fftb", "cannon", "mm", "shell",
                ],
                "Paragon",
                is_similar,
            )?
            .judged()
    }),
    ("G-271", |m| {
        Verdict::on(m)
            .each(&["radix", "sample", "fft"], "Paragon", |ratio| ratio < 0.95)?
            .judged()
    }),
    ("G-272", |m| {
        Verdict::on(m)
            .each(&["wator"], "Paragon", np_wins)?
            .judged()
    }),
    ("G-273", |m| {
        Verdict::on(m)
            .each(&BULK, "Paragon", |ratio| (ratio - 1.0).abs() <= 0.05)?
            .judged()
    }),
    ("G-274", |m| {
        Verdict::on(m)
            .each(&["radix", "sample"], "Meiko", |ratio| ratio > 1.0)?
            .each(&["radix", "sample"], "Paragon", |ratio| ratio < 1.0)?
            .judged()
    }),
    ("G-275", |m| {
        let mut verdict = Verdict::on(m);
        let (cs2, paragon) = (
            verdict.ratio("wator", "Meiko")?,
            verdict.ratio("wator", "Paragon")?,
        );
        verdict.note("wator Meiko by Paragon", cs2 / paragon, cs2 < 0.5 * paragon);
        verdict.judged()
    }),
    ("G-276", |m| {
        Verdict::on(m)
            .each(&["shell"], "Paragon", |ratio| (ratio - 1.0).abs() <= 0.05)?
            .each(&["shell"], "Meiko", np_wins)?
            .judged()
    }),
    ("G-319", |m| {
        let mut verdict = Verdict::on(m);
        let exceptions = ["fft", "sample", "wator", "radix"];
        let mut least: f64 = f64::INFINITY;
        for program in names().filter(|program| !exceptions.contains(program)) {
            least = least.min(verdict.ratio(program, "Paragon")?);
        }
        verdict = verdict.each(&exceptions, "Paragon", |ratio| ratio < least)?;
        verdict.judged()
    }),
    ("G-321", |m| {
        let mut verdict = Verdict::on(m);
        for (machine, ..) in MACHINES {
            let (store, radix) = (
                verdict.cells("gapx.store", machine)?,
                verdict.ratio("radix", machine)?,
            );
            let what = format!("{machine}, radix by stores in exchange");
            verdict.note(&what, radix / store, (radix / store - 1.0).abs() <= 0.15);
        }
        verdict.judged()
    }),
    ("G-322", |m| {
        let mut verdict = Verdict::on(m).each(&["fft"], "Meiko", |ratio| ratio < 1.0)?;
        let exchange = verdict.cells("gapx.put", "Meiko")?;
        let alone = verdict.cells("gap.put", "Meiko")?;
        verdict.note("puts in exchange", exchange, exchange < 1.0);
        verdict.note("puts alone", alone, alone > 1.0);
        verdict.judged()
    }),
    ("G-325", |m| {
        let mut verdict = Verdict::on(m);
        for (machine, ..) in MACHINES {
            for (fine, bulk) in &FINE[..2] {
                let gain = verdict.seconds(fine, machine)? / verdict.seconds(bulk, machine)?;
                verdict.note(&format!("{fine} by {bulk} {machine}"), gain, gain > 1.0);
            }
        }
        verdict.judged()
    }),
    ("G-326", |m| {
        let mut verdict = Verdict::on(m);
        for (machine, ..) in MACHINES {
            let narrows = verdict.ratio("fft", machine)? / verdict.ratio("fftb", machine)?;
            let what = format!("{machine}, distance under NP by that under Proc");
            verdict.note(&what, narrows, narrows < 1.0);
        }
        verdict.judged()
    }),
    ("G-329", |m| {
        let mut verdict = Verdict::on(m);
        for (machine, procs, _) in MACHINES {
            let never = verdict.beside_np(machine, Attention::Never);
            let most = never.iter().map(|at| at.1).fold(0.0, f64::max);
            let part = most / procs as f64;
            let what = format!("{machine}, part of {procs}");
            verdict.note(&what, part, (part - 1.0).abs() <= SIMILAR);
        }
        verdict.judged()
    }),
];
