//! What the paper's text concludes from Table 1 (`Split-C 5.1`), asked of our own numbers.
//!
//! A claim compares cells. It holds if each comparison holds; what is said of it names those that
//! do not.

use super::table::Cell;
use super::{Evaluation, Transfer, arithmetic, program_claims};
use crate::reproduce::measure::Failure;

/// Judges a claim of the paper.
pub(super) type Judge = fn(&Evaluation) -> Result<(bool, String), Failure>;

/// How two numbers are to compare.
#[derive(Clone, Copy)]
pub(super) enum Than {
    /// The first is less.
    Less,
    /// The first is not more, or by 2 % at most.
    NotMore,
    /// They differ by so much at most, in percent of the second.
    About(f64),
}
use Than::{About, Less, NotMore};

impl Than {
    pub(super) fn holds(self, one: f64, other: f64) -> bool {
        match self {
            Less => one < other,
            NotMore => one <= other * 1.02,
            About(percent) => (one - other).abs() <= other * percent / 100.0,
        }
    }
}

/// Compares cells, by names such as `gap.get.CM5`; the second number is taken so many times.
pub(super) struct Claim<'a> {
    measured: &'a Evaluation,
    count: usize,
    broken: Vec<String>,
}

impl<'a> Claim<'a> {
    pub(super) fn on(measured: &'a Evaluation) -> Self {
        Self {
            measured,
            count: 0,
            broken: Vec::new(),
        }
    }

    /// A number: a cell's, or the bandwidth of long stores or gets of a version.
    pub(super) fn value(&self, name: &str) -> Result<f64, Failure> {
        let peak = |transfer, version| {
            let id = name.to_owned();
            let peak = self.measured.bulk.peak(transfer, version);
            peak.ok_or(Failure::Unmatched { id })
        };
        if let Some(version) = name.strip_prefix("bw.store.") {
            return peak(Transfer::Store, version);
        }
        if let Some(version) = name.strip_prefix("bw.get.") {
            return peak(Transfer::Get, version);
        }
        let id = format!("G-TAB1.{name}");
        let cell = Cell::named(&id).ok_or(Failure::Unmatched { id })?;
        Ok(self.measured.table.of(cell))
    }

    pub(super) fn is(
        self,
        one: &str,
        than: Than,
        times: f64,
        other: &str,
    ) -> Result<Self, Failure> {
        let (of_one, of_other) = (self.value(one)?, self.value(other)?);
        let holds = than.holds(of_one, of_other * times);
        Ok(self.compared(holds, || {
            format!("{one} {of_one:.2}, {other} {of_other:.2}")
        }))
    }

    /// One more comparison, and what to say if it does not hold.
    pub(super) fn compared(mut self, holds: bool, broken: impl FnOnce() -> String) -> Self {
        self.count += 1;
        if !holds {
            self.broken.push(broken());
        }
        self
    }

    /// The same of several operations: `{}` in the names is replaced.
    pub(super) fn each(
        mut self,
        operations: &[&str],
        one: &str,
        than: Than,
        times: f64,
        other: &str,
    ) -> Result<Self, Failure> {
        for operation in operations {
            let (one, other) = (one.replace("{}", operation), other.replace("{}", operation));
            self = self.is(&one, than, times, &other)?;
        }
        Ok(self)
    }

    pub(super) fn judged(self) -> Result<(bool, String), Failure> {
        let count = self.count;
        Ok(match self.broken.is_empty() {
            true => (true, format!("{count} comparisons")),
            false => (false, format!("not: {}", self.broken.join("; "))),
        })
    }
}

pub(super) const LATENCIES: [&str; 3] = ["AM", "read", "write"];
pub(super) const FLOWS: [&str; 3] = ["get", "put", "store"];
pub(super) const MEMORY: [&str; 2] = ["get", "put"];

/// The claims of the text, by their rows.
pub(super) static CLAIMS: [(&str, Judge); 34] = [
    ("G-184", |m| {
        Claim::on(m)
            .each(
                &LATENCIES,
                "lat.{}.Paragon-NP",
                NotMore,
                1.0,
                "lat.{}.Paragon-Proc",
            )?
            .each(
                &LATENCIES,
                "lat.{}.Paragon-Inject",
                NotMore,
                1.0,
                "lat.{}.Paragon-NP",
            )?
            .each(
                &LATENCIES,
                "lat.{}.Paragon-Receive",
                NotMore,
                1.0,
                "lat.{}.Paragon-Inject",
            )?
            .judged()
    }),
    ("G-185", |m| {
        Claim::on(m)
            .each(
                &["read", "write"],
                "lat.{}.Paragon-NP",
                Less,
                1.0,
                "lat.{}.Paragon-Proc",
            )?
            .judged()
    }),
    ("G-186", |m| {
        Claim::on(m)
            .each(
                &LATENCIES,
                "lat.{}.Paragon-Inject",
                Less,
                1.0,
                "lat.{}.Paragon-NP",
            )?
            .judged()
    }),
    ("G-187", |m| {
        Claim::on(m)
            .each(&LATENCIES, "lat.{}.NOW-NP", Less, 1.0, "lat.{}.NOW-Proc")?
            .judged()
    }),
    ("G-188", |m| {
        Claim::on(m)
            .each(
                &["AM", "read"],
                "lat.{}.Meiko-Proc",
                Less,
                1.0,
                "lat.{}.Meiko-NP",
            )?
            .judged()
    }),
    ("G-189", |m| {
        Claim::on(m)
            .is("lat.write.Meiko-NP", Less, 0.6, "lat.read.Meiko-NP")?
            .judged()
    }),
    ("G-191", |m| {
        Claim::on(m)
            .each(&["read", "write"], "lat.{}.T3D", Less, 0.25, "lat.AM.T3D")?
            .judged()
    }),
    ("G-192", |m| {
        let mut claim = Claim::on(m);
        for version in ["CM5", "Meiko-Proc", "Paragon-Proc", "NOW-Proc"] {
            for operation in ["read", "write"] {
                let one = format!("lat.{operation}.{version}");
                claim = claim.is(&one, About(20.0), 1.0, &format!("lat.AM.{version}"))?;
                claim = claim.is(&format!("lat.AM.{version}"), NotMore, 1.0, &one)?;
            }
        }
        claim.judged()
    }),
    ("G-193", |m| {
        Claim::on(m)
            .is("lat.AM.Paragon-NP", About(1.0), 1.0, "lat.AM.Paragon-Proc")?
            .judged()
    }),
    ("G-194", |m| {
        Claim::on(m)
            .is("lat.write.Paragon-NP", Less, 1.0, "lat.read.Paragon-NP")?
            .is(
                "lat.write.Paragon-Inject",
                Less,
                1.0,
                "lat.read.Paragon-Inject",
            )?
            .judged()
    }),
    ("G-195", |m| {
        Claim::on(m)
            .is(
                "lat.write.Paragon-Receive",
                About(6.0),
                1.0,
                "lat.read.Paragon-Receive",
            )?
            .judged()
    }),
    ("G-196", |m| {
        Claim::on(m)
            .each(
                &FLOWS,
                "ovh.{}.Paragon-NP",
                About(15.0),
                1.0,
                "ovh.{}.Paragon-Inject",
            )?
            .judged()
    }),
    ("G-197", |m| {
        Claim::on(m)
            .each(
                &FLOWS,
                "ovh.{}.Paragon-NP",
                Less,
                0.6,
                "ovh.{}.Paragon-Proc",
            )?
            .judged()
    }),
    ("G-198", |m| {
        Claim::on(m)
            .each(&MEMORY, "ovh.{}.NOW-NP", Less, 0.5, "ovh.{}.NOW-Proc")?
            .is("ovh.store.NOW-NP", Less, 1.0, "ovh.store.NOW-Proc")?
            .judged()
    }),
    ("G-199", |m| {
        Claim::on(m)
            .each(&FLOWS, "ovh.{}.Meiko-Proc", Less, 1.0, "ovh.{}.Meiko-NP")?
            .judged()
    }),
    ("G-201", |m| {
        Claim::on(m)
            .is("lat.AM.CM5", Less, 2.5, "ovh.get.CM5")?
            .is("ovh.get.Paragon-NP", Less, 0.2, "lat.read.Paragon-NP")?
            .judged()
    }),
    ("G-202", |m| {
        Claim::on(m)
            .each(&MEMORY, "ovh.{}.CM5", About(15.0), 2.0, "ovh.store.CM5")?
            .judged()
    }),
    ("G-203", |m| {
        Claim::on(m)
            .is("ovh.get.T3D", NotMore, 0.5, "lat.read.T3D")?
            .is("ovh.put.T3D", NotMore, 0.5, "lat.write.T3D")?
            .judged()
    }),
    ("G-205", |m| {
        Claim::on(m)
            .each(&MEMORY, "ovh.{}.T3D", Less, 0.2, "ovh.store.T3D")?
            .judged()
    }),
    ("G-206", |m| {
        let mut claim = Claim::on(m);
        for version in ["CM5", "T3D"] {
            let (gap, overhead) = (format!("gap.{{}}.{version}"), format!("ovh.{{}}.{version}"));
            claim = claim.each(&FLOWS, &gap, About(5.0), 1.0, &overhead)?;
        }
        claim.judged()
    }),
    ("G-207", |m| {
        Claim::on(m)
            .each(&FLOWS, "gap.{}.Meiko-Proc", Less, 1.0, "gap.{}.Meiko-NP")?
            .judged()
    }),
    ("G-208", |m| {
        Claim::on(m)
            .each(&FLOWS, "gap.{}.NOW-Proc", Less, 1.0, "gap.{}.NOW-NP")?
            .judged()
    }),
    ("G-209", |m| {
        Claim::on(m)
            .is("gap.put.Paragon-NP", Less, 1.0, "gap.get.Paragon-NP")?
            .judged()
    }),
    ("G-210", |m| {
        Claim::on(m)
            .is(
                "gap.put.Paragon-Inject",
                About(5.0),
                1.0,
                "gap.get.Paragon-Inject",
            )?
            .judged()
    }),
    ("G-211", |m| {
        Claim::on(m)
            .each(
                &FLOWS,
                "gap.{}.Paragon-NP",
                About(20.0),
                1.0,
                "gap.{}.Paragon-Proc",
            )?
            .judged()
    }),
    ("G-216", |m| {
        let mut claim = Claim::on(m);
        for version in ["CM5", "T3D"] {
            let (two, one) = (
                format!("gap2.{{}}.{version}"),
                format!("gap.{{}}.{version}"),
            );
            claim = claim.each(&FLOWS, &two, About(5.0), 1.0, &one)?;
        }
        claim.judged()
    }),
    ("G-217", |m| {
        Claim::on(m)
            .each(
                &FLOWS,
                "gap2.{}.Paragon-NP",
                About(6.0),
                1.0,
                "gap.{}.Paragon-NP",
            )?
            .judged()
    }),
    ("G-219", |m| {
        Claim::on(m)
            .is("gap2.get.Meiko-NP", Less, 0.9, "gap.get.Meiko-NP")?
            .judged()
    }),
    ("G-222", |m| {
        Claim::on(m)
            .is("gap2.store.NOW-NP", Less, 0.9, "gap.store.NOW-NP")?
            .judged()
    }),
    ("G-225", |m| {
        Claim::on(m)
            .each(
                &MEMORY,
                "gapx.{}.Paragon-Receive",
                Less,
                1.0,
                "gapx.{}.Paragon-Inject",
            )?
            .each(
                &MEMORY,
                "gapx.{}.Paragon-Receive",
                Less,
                1.0,
                "gapx.{}.Paragon-NP",
            )?
            .judged()
    }),
    ("G-226", |m| {
        Claim::on(m)
            .is(
                "ovh.get.Paragon-Inject",
                Less,
                1.0,
                "ovh.get.Paragon-Receive",
            )?
            .is(
                "gap.get.Paragon-Inject",
                Less,
                1.0,
                "gap.get.Paragon-Receive",
            )?
            .is(
                "gapx.get.Paragon-Receive",
                Less,
                1.0,
                "gapx.get.Paragon-Inject",
            )?
            .judged()
    }),
    ("G-232", |m| {
        Claim::on(m)
            .is("bw.store.Meiko-Proc", Less, 1.0, "bw.store.Meiko-NP")?
            .judged()
    }),
    ("G-234", |m| {
        let mut claim = Claim::on(m);
        for strategy in ["NP", "Inject", "Receive"] {
            for transfer in ["get", "store"] {
                let one = format!("bw.{transfer}.Paragon-{strategy}");
                claim = claim.is(
                    &one,
                    About(12.0),
                    1.0,
                    &format!("bw.{transfer}.Paragon-Proc"),
                )?;
            }
        }
        claim.judged()
    }),
    ("G-238", |m| {
        Claim::on(m)
            .is("bw.store.CM5", Less, 1.0, "bw.store.Meiko-Proc")?
            .is("bw.store.Meiko-Proc", Less, 1.0, "bw.store.Meiko-NP")?
            .is("bw.store.Meiko-NP", Less, 1.0, "bw.store.Paragon-Proc")?
            .judged()
    }),
];

/// All claims, of whatever part of the paper.
pub(super) fn all() -> impl Iterator<Item = &'static (&'static str, Judge)> {
    let of_programs = program_claims::CLAIMS.iter();
    CLAIMS.iter().chain(&arithmetic::CLAIMS).chain(of_programs)
}

/// How the claim of that row is judged.
pub(super) fn of(id: &str) -> Option<Judge> {
    let found = all().find(|(row, _)| *row == id);
    found.map(|&(_, judge)| judge)
}
