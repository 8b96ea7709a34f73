//! Arithmetic on Table 1 (`Split-C 5.1`): what its cells have in common beyond pairs, asked of our
//! own numbers.
//!
//! The rows are checks of the inventory, from G-293 on, and claims of the text about several
//! versions at once. What does not hold of our numbers is listed beside the report with the reason
//! (`docs/reproduce-splitc.md`).

use super::Evaluation;
use super::claims::Than::{About, Less, NotMore};
use super::claims::{Claim, FLOWS, Judge, LATENCIES, MEMORY};
use super::versions::VERSIONS;
use crate::reproduce::measure::Failure;

type Judged = Result<(bool, String), Failure>;

/// Versions whose programs carry out what is asked of them.
const PROC: [&str; 4] = ["CM5", "Meiko-Proc", "Paragon-Proc", "NOW-Proc"];

/// The claims, by their rows.
pub(super) static CLAIMS: [(&str, Judge); 31] = [
    ("G-182", fewest_hands),
    ("G-183", direct_injection),
    ("G-190", |m| {
        Claim::on(m)
            .is("lat.write.Meiko-NP", Less, 1.0, "lat.write.Meiko-Proc")?
            .judged()
    }),
    ("G-204", |m| {
        Claim::on(m)
            .is("lat.read.T3D", NotMore, 3.0, "gap.get.T3D")?
            .is("lat.write.T3D", NotMore, 3.0, "gap.put.T3D")?
            .is("gap.get.T3D", Less, 0.5, "lat.read.T3D")?
            .is("gap.put.T3D", Less, 0.5, "lat.write.T3D")?
            .judged()
    }),
    ("G-212", |m| {
        let mut claim = Claim::on(m);
        for strategy in ["NP", "Inject", "Receive"] {
            let cell = |operation| format!("gap.{operation}.Paragon-{strategy}");
            claim = claim.is(&cell("store"), Less, 1.0, &cell("put"))?;
        }
        claim.judged()
    }),
    ("G-215", |m| {
        Claim::on(m)
            .each(&LATENCIES, "lat.{}.NOW-NP", Less, 1.0, "lat.{}.NOW-Proc")?
            .each(&FLOWS, "gap.{}.NOW-Proc", Less, 1.0, "gap.{}.NOW-NP")?
            .judged()
    }),
    ("G-218", |m| {
        Claim::on(m)
            .is(
                "gap2.put.Paragon-Inject",
                Less,
                1.0,
                "gap.put.Paragon-Inject",
            )?
            .is(
                "gap2.get.Paragon-Receive",
                Less,
                1.0,
                "gap.get.Paragon-Receive",
            )?
            .is(
                "gap2.store.Paragon-Receive",
                Less,
                1.0,
                "gap.store.Paragon-Receive",
            )?
            .judged()
    }),
    ("G-220", |m| {
        Claim::on(m)
            .each(
                &["put", "store"],
                "gap2.{}.Meiko-NP",
                About(6.0),
                1.0,
                "gap.{}.Meiko-NP",
            )?
            .judged()
    }),
    ("G-221", |m| {
        Claim::on(m)
            .each(&MEMORY, "gap2.{}.NOW-NP", About(6.0), 1.0, "gap.{}.NOW-NP")?
            .judged()
    }),
    ("G-223", |m| {
        Claim::on(m)
            .each(
                &FLOWS,
                "gapx.{}.Paragon-Proc",
                About(10.0),
                2.0,
                "gap.{}.Paragon-Proc",
            )?
            .each(
                &MEMORY,
                "gapx.{}.Meiko-Proc",
                About(13.0),
                2.0,
                "gap.{}.Meiko-Proc",
            )?
            .judged()
    }),
    ("G-224", |m| {
        let mut claim = Claim::on(m);
        for version in ["Paragon-NP", "Paragon-Inject", "Meiko-NP", "NOW-NP"] {
            let (both, one) = (
                format!("gapx.{{}}.{version}"),
                format!("gap.{{}}.{version}"),
            );
            claim = claim.each(&FLOWS, &both, Less, 2.0, &one)?;
        }
        claim.judged()
    }),
    ("G-227", |m| {
        Claim::on(m)
            // Direct access, a fast network processor, a primitive of the hardware.
            .each(
                &LATENCIES,
                "lat.{}.Paragon-Inject",
                Less,
                1.0,
                "lat.{}.Paragon-NP",
            )?
            .each(
                &["read", "write"],
                "lat.{}.Paragon-NP",
                Less,
                1.0,
                "lat.{}.Paragon-Proc",
            )?
            .is("lat.write.Meiko-NP", Less, 1.0, "lat.write.Meiko-Proc")?
            // The translation in software.
            .is("gap.put.Paragon-NP", Less, 1.0, "gap.get.Paragon-NP")?
            .judged()
    }),
    ("G-293", |m| {
        let mut claim = Claim::on(m);
        for version in PROC {
            for operation in ["read", "write"] {
                let more = difference(
                    &claim,
                    &format!("lat.{operation}.{version}"),
                    &format!("lat.AM.{version}"),
                )?;
                claim = claim.compared((-0.01..=2.5).contains(&more), || {
                    format!("{operation} of {version} {more:.2}")
                });
            }
        }
        claim.judged()
    }),
    ("G-294", after_active_messages),
    ("G-295", |m| {
        let mut claim = Claim::on(m);
        let estimates = [
            ("lat.read.Paragon-NP", "lat.write.Paragon-NP"),
            ("lat.read.Paragon-Inject", "lat.write.Paragon-Inject"),
            ("gap.get.Paragon-NP", "gap.put.Paragon-NP"),
        ];
        for (one, other) in estimates {
            let translation = difference(&claim, one, other)?;
            claim = claim.compared((translation - 0.9).abs() <= 0.3, || {
                format!("{one} less {other}: {translation:.2}")
            });
        }
        claim.judged()
    }),
    ("G-296", |m| {
        let mut claim = Claim::on(m);
        for version in ["Paragon-Proc", "Paragon-Receive", "Meiko-Proc", "NOW-Proc"] {
            let (read, write) = (
                format!("lat.read.{version}"),
                format!("lat.write.{version}"),
            );
            let more = difference(&claim, &read, &write)?;
            claim = claim.compared(more.abs() <= 0.3, || {
                format!("{read} less {write}: {more:.2}")
            });
        }
        claim
            .is("lat.write.NOW-NP", Less, 1.0, "lat.read.NOW-NP")?
            .judged()
    }),
    ("G-297", |m| {
        let mut claim = Claim::on(m);
        let gain = |claim: &Claim<'_>, operation: &str| {
            let of = |strategy: &str| format!("lat.{operation}.Paragon-{strategy}");
            difference(claim, &of("NP"), &of("Inject"))
        };
        let of_message = gain(&claim, "AM")?;
        for operation in ["read", "write"] {
            let of_operation = gain(&claim, operation)?;
            claim = claim.compared(of_operation > 0.0 && of_operation < of_message, || {
                format!("{operation} gains {of_operation:.2}, AM {of_message:.2}")
            });
        }
        claim.judged()
    }),
    ("G-298", |m| {
        // The sending processor limits the CM-5 and the T3D, and no other version.
        let mut claim = Claim::on(m);
        for version in &VERSIONS {
            for operation in FLOWS {
                let (gap, overhead) = of_flow(&claim, operation, version.name)?;
                let ratio = gap / overhead;
                let limits = ["CM5", "T3D"].contains(&version.name);
                claim = claim.compared((ratio <= 1.05) == limits, || {
                    format!("{operation} of {} {ratio:.2}", version.name)
                });
            }
        }
        claim.judged()
    }),
    ("G-299", |m| {
        let mut claim = Claim::on(m);
        for version in &VERSIONS {
            for operation in FLOWS {
                let (gap, overhead) = of_flow(&claim, operation, version.name)?;
                claim = claim.compared(gap >= overhead - 0.15, || {
                    format!("{operation} of {}: {gap:.2}, {overhead:.2}", version.name)
                });
            }
        }
        claim.judged()
    }),
    ("G-300", |m| {
        let mut claim = Claim::on(m);
        for version in VERSIONS.iter().map(|version| version.name) {
            for (flow, blocking) in [("get", "read"), ("put", "write")] {
                let gap = claim.value(&format!("gap.{flow}.{version}"))?;
                let latency = claim.value(&format!("lat.{blocking}.{version}"))?;
                let is_exception = version == "Meiko-NP";
                claim = claim.compared((gap > latency) == is_exception, || {
                    format!("{flow} of {version}: {gap:.2}, {latency:.2}")
                });
            }
        }
        claim.judged()
    }),
    ("G-301", |m| {
        let mut claim = Claim::on(m);
        for version in &VERSIONS {
            let (one, both) = (
                format!("gap.{{}}.{}", version.name),
                format!("gapx.{{}}.{}", version.name),
            );
            claim = claim.each(&FLOWS, &one, NotMore, 1.0, &both)?;
        }
        claim.judged()
    }),
    ("G-304", |m| {
        let mut claim = Claim::on(m);
        for version in ["Paragon-Inject", "NOW-Proc"] {
            for operation in MEMORY {
                let source = claim.value(&format!("gap2.{operation}.{version}"))?;
                let target = claim.value(&format!("gap.{operation}.{version}"))?;
                let both = claim.value(&format!("gapx.{operation}.{version}"))?;
                claim = claim.compared(About(6.0).holds(both, source + target), || {
                    format!("{operation} of {version}: {source:.2} + {target:.2}, {both:.2}")
                });
            }
        }
        claim.judged()
    }),
    ("G-305", |m| {
        let claim = Claim::on(m);
        let source = claim.value("gap2.put.Paragon-Inject")?
            + difference(&claim, "gap.get.Paragon-NP", "gap.put.Paragon-NP")?;
        let target = claim.value("gap.get.Paragon-Inject")?;
        claim
            .compared(About(5.0).holds(source, target), || {
                format!("{source:.2}, {target:.2}")
            })
            .judged()
    }),
    ("G-306", |m| {
        let mut claim = Claim::on(m);
        for (flow, round_trip) in [("get", "AM"), ("put", "write"), ("get", "read")] {
            let both = 2.0 * claim.value(&format!("ovh.{flow}.CM5"))?;
            let all = claim.value(&format!("lat.{round_trip}.CM5"))?;
            claim = claim.compared((0.7..1.0).contains(&(both / all)), || {
                format!("{round_trip}: {both:.2} of {all:.2}")
            });
        }
        claim.judged()
    }),
    ("G-307", |m| {
        let mut claim = Claim::on(m);
        let shares = [
            (1.4..3.0, &["NOW-Proc", "CM5", "Meiko-Proc"][..]),
            (
                0.9..1.2,
                &[
                    "Paragon-Proc",
                    "Paragon-NP",
                    "Paragon-Inject",
                    "Paragon-Receive",
                    "NOW-NP",
                ],
            ),
            (0.0..0.2, &["T3D"]),
        ];
        for (share, versions) in shares {
            for version in versions {
                let get = claim.value(&format!("ovh.get.{version}"))?;
                let store = claim.value(&format!("ovh.store.{version}"))?;
                claim = claim.compared(share.contains(&(get / store)), || {
                    format!("{version}: {get:.2}, {store:.2}")
                });
            }
        }
        claim.judged()
    }),
    ("G-309", |m| {
        let claim = Claim::on(m);
        let way =
            claim.value("ovh.store.T3D")? + difference(&claim, "gapx.store.T3D", "gap.store.T3D")?;
        let both = claim.value("lat.AM.T3D")?;
        claim
            .compared(About(5.0).holds(2.0 * way, both), || {
                format!("{:.2}, {both:.2}", 2.0 * way)
            })
            .judged()
    }),
    ("G-310", best_without_t3d),
    ("G-311", t3d_is_best),
    ("G-312", worst_of_each_row),
    ("G-313", |m| {
        Claim::on(m)
            .is("gap.put.Meiko-Proc", Less, 1.0, "gap.put.Meiko-NP")?
            .is("gapx.put.Meiko-NP", Less, 1.0, "gapx.put.Meiko-Proc")?
            .each(&MEMORY, "gap.{}.NOW-Proc", Less, 1.0, "gap.{}.NOW-NP")?
            .each(&MEMORY, "gapx.{}.NOW-NP", Less, 1.0, "gapx.{}.NOW-Proc")?
            .is("gapx.store.Meiko-Proc", Less, 1.0, "gapx.store.Meiko-NP")?
            .is("gapx.store.NOW-Proc", Less, 1.0, "gapx.store.NOW-NP")?
            .is("gapx.get.Meiko-Proc", Less, 1.0, "gapx.get.Meiko-NP")?
            .judged()
    }),
    ("G-314", |m| {
        Claim::on(m)
            .is("lat.write.Meiko-NP", Less, 1.0, "lat.write.Meiko-Proc")?
            .is("gap.put.Meiko-Proc", Less, 1.0, "gap.put.Meiko-NP")?
            .each(
                &["read", "write"],
                "lat.{}.NOW-NP",
                Less,
                1.0,
                "lat.{}.NOW-Proc",
            )?
            .each(&MEMORY, "gap.{}.NOW-Proc", Less, 1.0, "gap.{}.NOW-NP")?
            .judged()
    }),
];

/// By how much one number is more than another.
fn difference(claim: &Claim<'_>, one: &str, other: &str) -> Result<f64, Failure> {
    Ok(claim.value(one)? - claim.value(other)?)
}

/// Gap and overhead.
fn of_flow(claim: &Claim<'_>, operation: &str, version: &str) -> Result<(f64, f64), Failure> {
    let gap = claim.value(&format!("gap.{operation}.{version}"))?;
    Ok((gap, claim.value(&format!("ovh.{operation}.{version}"))?))
}

fn fewest_hands(measured: &Evaluation) -> Judged {
    Claim::on(measured)
        .each(
            &LATENCIES,
            "lat.{}.Paragon-Inject",
            Less,
            1.0,
            "lat.{}.Paragon-NP",
        )?
        .is("lat.write.Meiko-NP", Less, 1.0, "lat.write.Meiko-Proc")?
        .each(
            &["read", "write"],
            "lat.{}.T3D",
            Less,
            1.0,
            "lat.{}.Paragon-Receive",
        )?
        .judged()
}

fn direct_injection(measured: &Evaluation) -> Judged {
    let mut claim = Claim::on(measured);
    for slower in [
        "Meiko-Proc",
        "Meiko-NP",
        "NOW-Proc",
        "NOW-NP",
        "Paragon-Proc",
        "Paragon-NP",
        "Paragon-Inject",
    ] {
        claim = claim.is("lat.AM.CM5", Less, 1.0, &format!("lat.AM.{slower}"))?;
    }
    claim
        .is("lat.AM.Paragon-Inject", Less, 1.0, "lat.AM.Paragon-NP")?
        .judged()
}

/// Where reads and writes are not built on active messages they are faster; where they are, slower.
fn after_active_messages(measured: &Evaluation) -> Judged {
    let mut claim = Claim::on(measured);
    for version in ["Meiko-NP", "Paragon-NP", "Paragon-Inject", "T3D"] {
        let message = format!("lat.AM.{version}");
        for operation in ["read", "write"] {
            claim = claim.is(&format!("lat.{operation}.{version}"), Less, 1.0, &message)?;
        }
    }
    for operation in ["read", "write"] {
        claim = claim.is(
            "lat.AM.NOW-NP",
            Less,
            1.0,
            &format!("lat.{operation}.NOW-NP"),
        )?;
    }
    claim.judged()
}

/// The rows of the table.
fn rows() -> impl Iterator<Item = String> {
    let latencies = LATENCIES.iter().map(|operation| format!("lat.{operation}"));
    let flows = ["ovh", "gap", "gap2", "gapx"].into_iter();
    latencies
        .chain(flows.flat_map(|measure| FLOWS.map(|operation| format!("{measure}.{operation}"))))
}

/// Versions, but those, whose numbers of a row are its least or its greatest; half of the last
/// printed digit counts as nothing.
fn extreme(
    claim: &Claim<'_>,
    row: &str,
    is_least: bool,
    but: &str,
) -> Result<Vec<&'static str>, Failure> {
    let sign = if is_least { 1.0 } else { -1.0 };
    let names = VERSIONS
        .iter()
        .map(|version| version.name)
        .filter(|name| *name != but);
    let numbers = names
        .map(|name| Ok((name, sign * claim.value(&format!("{row}.{name}"))?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let best = numbers
        .iter()
        .fold(f64::INFINITY, |best, (_, number)| best.min(*number));
    let at_it = numbers.iter().filter(|(_, number)| *number <= best + 0.05);
    Ok(at_it.map(|(name, _)| *name).collect())
}

/// Asks of each row which version is its extreme, but for one; the paper's are listed by the
/// beginnings of the rows' names.
fn extremes(
    measured: &Evaluation,
    is_least: bool,
    but: &str,
    printed: impl Fn(&str) -> &'static [&'static str],
) -> Judged {
    let mut claim = Claim::on(measured);
    for row in rows() {
        let ours = extreme(&claim, &row, is_least, but)?;
        let theirs = printed(&row);
        claim = claim.compared(ours.iter().any(|version| theirs.contains(version)), || {
            format!("{row}: {}", ours.join(", "))
        });
    }
    claim.judged()
}

fn best_without_t3d(measured: &Evaluation) -> Judged {
    extremes(measured, true, "T3D", |row| match row {
        "lat.AM" | "lat.read" => &["Paragon-Receive"],
        "lat.write" => &["Paragon-Inject", "Paragon-Receive"],
        "ovh.get" | "ovh.put" => &["NOW-NP"],
        "ovh.store" => &["Meiko-Proc"],
        "gap.store" | "gap2.put" | "gap2.store" => &["Paragon-Inject"],
        _ => &["CM5"],
    })
}

fn t3d_is_best(measured: &Evaluation) -> Judged {
    let mut claim = Claim::on(measured);
    for row in rows() {
        let ours = extreme(&claim, &row, true, "")?;
        let is_exception = ["ovh.store", "gap.store", "gap2.store"].contains(&&*row);
        claim = claim.compared(is_exception || ours == ["T3D"], || {
            format!("{row}: {}", ours.join(", "))
        });
    }
    claim.judged()
}

fn worst_of_each_row(measured: &Evaluation) -> Judged {
    extremes(measured, false, "", |row| match row {
        "lat.write" | "ovh.put" => &["NOW-Proc"],
        "ovh.get" => &["Meiko-NP", "NOW-Proc"],
        "gapx.put" => &["Meiko-Proc"],
        _ => &["Meiko-NP"],
    })
}
