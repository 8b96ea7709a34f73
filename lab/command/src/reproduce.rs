//! `hamlyn-lab reproduce`: a paper's measurements, on the simulator's model of the paper's machine,
//! and what lies beyond them.

mod am2;
mod beyond;
pub(crate) mod live;
mod narrow;
pub(crate) mod plot;
mod udm;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use hamlyn_sim::machine::Machine;
use hamlyn_sim::reproduce::{Entry, FigureVerdict, Plot, Report, hamlyn, split_c};

use hamlyn_cli::terminal::table;
use words::{VERDICTS, amount, judgement, set_width, verdict, with_unit};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What.
    what: What,
    /// With `beyond`: 8 and 64 hosts only, at fewer loads. With `am2`: up to 16 clients and nodes.
    /// With `udm`: a tenth of each program, once. With `splitc`: of the programs those with bulk
    /// transfers.
    #[arg(long)]
    quick: bool,
    /// With `udm`: the programs in processes of this host, which are stopped by turns, in and out of
    /// step; their figures are of this processor, and no predictions. Takes some minutes.
    #[arg(long)]
    live: bool,
    /// With `--live`: so many processes, by default one for each processor, 2 to 8.
    #[arg(long, value_name = "NUMBER", requires = "live", value_parser = clap::value_parser!(u32).range(i64::from(live::PROCS_MIN)..=i64::from(live::PROCS_MAX)))]
    procs: Option<u32>,
    /// Print one JSON object instead of the tables.
    #[arg(long)]
    json: bool,
    /// Also write that object to this file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Also draw figures, as SVG files in this directory.
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// The paper: An implementation of the Hamlyn sender-managed interface architecture, 1996.
    Hamlyn,
    /// The paper: Evaluation of architectural support for global address-based communication, 1996:
    /// Table 1 on its five machines, polling granularity and the programs of Table 2 on two of
    /// them, and what its text concludes.
    Splitc,
    /// The paper: Virtual network transport protocols for Myrinet, 1997: Figures 5 to 11 and Table
    /// 1, by the layer of Active Messages on its cluster of 100 hosts. Takes some minutes.
    Am2,
    /// The paper: Exploiting two-case delivery for fast protected messaging, 1998: Tables 4 to 6 and
    /// Figures 7 to 10, by programs of User Direct Messaging on its machine. Takes a minute or two.
    Udm,
    /// The same experiments on an assumed host pair of today, and the saturation of networks with
    /// 8, 64 and 1,024 hosts.
    Beyond,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match arguments.what {
        What::Udm if arguments.live => {
            let measured = live::measure(arguments.quick, arguments.procs)?;
            print(arguments, &measured, &measured.plots, live::show)?;
        }
        _ if arguments.live => {
            bail!("--live is for `udm`: the others are about machines that we have not")
        }
        What::Hamlyn if arguments.quick => {
            bail!("--quick is for the others: `hamlyn` takes some seconds at most")
        }
        What::Hamlyn => {
            let report = hamlyn::report(&Machine::hamlyn())?;
            print(arguments, &report, &report.plots, show)?;
        }
        What::Splitc => {
            let report = split_c::report(arguments.quick)?;
            print(arguments, &report, &report.plots, show_split_c)?;
            if let Some(directory) = &arguments.plot {
                plot::write_bars(&report.bars, directory)?;
            }
        }
        What::Am2 => {
            let reproduced = am2::measure(arguments.quick)?;
            print(arguments, &reproduced, &reproduced.report.plots, am2::show)?;
        }
        What::Udm => {
            let reproduced = udm::measure(arguments.quick)?;
            print(arguments, &reproduced, &reproduced.report.plots, udm::show)?;
        }
        What::Beyond => {
            let beyond = beyond::measure(arguments.quick)?;
            print(arguments, &beyond, &beyond.plots, beyond::show)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// In the form that is wanted, and as plots if they are.
fn print<R: serde::Serialize>(
    arguments: &Arguments,
    report: &R,
    plots: &[Plot],
    show: fn(&R),
) -> Result<()> {
    if let Some(directory) = &arguments.plot {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("making {}", directory.display()))?;
        plot::write(plots, directory)?;
    }
    if let Some(file) = &arguments.save {
        let object = serde_json::to_string_pretty(report)? + "\n";
        std::fs::write(file, object).with_context(|| format!("writing {}", file.display()))?;
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        show(report);
        if let Some(directory) = &arguments.plot {
            println!("Plots are in {}.", directory.display());
        }
    }
    Ok(())
}

fn show(report: &Report) {
    let mut times = table(&["Table 4, µs", "raw: paper", "ours", "tagged: paper", "ours"]);
    for row in &report.table4 {
        times.add_row([
            row.component.to_owned(),
            amount(row.paper_us.0),
            amount(row.ours_us.0),
            amount(row.paper_us.1),
            amount(row.ours_us.1),
        ]);
    }
    println!("{times}\n");

    show_numbers(report);
    show_claims(report);
    remarks(&report.entries);
    readings(report);
    summary(report);
}

/// What is no number.
fn show_claims(report: &Report) {
    let mut rest = table(&["id", "source", "the paper", "verdict", "why"]);
    for entry in report
        .entries
        .iter()
        .filter(|entry| entry.figures.is_empty())
    {
        rest.add_row([
            entry.id.clone(),
            entry.source.clone(),
            entry.says.clone(),
            verdict(entry.verdict).to_owned(),
            entry.remark.clone(),
        ]);
    }
    set_width(&mut rest, 2);
    set_width(&mut rest, 4);
    println!("{rest}\n");
}

/// Table 1: a column for each version, the paper's number beside ours; what the text concludes;
/// what it all comes to.
fn show_split_c(report: &Report) {
    let columns = split_c::VERSIONS.iter().map(|version| version.name);
    let mut shown = table(
        &std::iter::once("Table 1, µs: paper, ours")
            .chain(columns)
            .collect::<Vec<_>>(),
    );
    let of_first = format!(".{}", split_c::VERSIONS[0].name);
    for entry in &report.entries {
        let Some(row) = entry.id.strip_suffix(&of_first) else {
            continue;
        };
        let cells = split_c::VERSIONS.iter().map(|version| {
            let entry = report.entry(&format!("{row}.{}", version.name));
            entry
                .and_then(|entry| entry.figures.first())
                .map_or_else(String::new, |figure| {
                    let mark = match figure.verdict {
                        FigureVerdict::Calibrated => " =",
                        FigureVerdict::PredictedMissed => " !",
                        _ => "",
                    };
                    format!("{} {}{mark}", amount(figure.paper), amount(figure.ours))
                })
        });
        let name = row.strip_prefix("G-TAB1.").unwrap_or(row).to_owned();
        shown.add_row(std::iter::once(name).chain(cells));
    }
    println!("{shown}");
    println!(
        "=: a number of the machine was chosen by it; !: predicted, and off by more than {} %.\n",
        report.within_percent
    );
    show_programs(report);
    show_claims(report);
    remarks(&report.entries);
    summary(report);
    if let Some(median) = report.headline.median_deviation_predicted {
        println!("Half of the predictions deviate by {median:.1} % or less.");
    }
}

/// Table 2: the time under Proc, and NP's as a part of it, the paper's number beside ours.
fn show_programs(report: &Report) {
    let mut shown = table(&[
        "Table 2: paper, ours",
        "Meiko Proc, s",
        "NP / Proc",
        "Paragon Proc, s",
        "NP / Proc",
    ]);
    let first = |entry: &Entry| {
        let program = entry
            .id
            .strip_prefix("G-TAB2.")?
            .strip_suffix(".Meiko.Proc")?;
        Some(program.to_owned())
    };
    for program in report.entries.iter().filter_map(first) {
        let cells = ["Meiko.Proc", "Meiko.NP", "Paragon.Proc", "Paragon.NP"].map(|cell| {
            let entry = report.entry(&format!("G-TAB2.{program}.{cell}"));
            cell_of(entry, if cell.ends_with("NP") { 3 } else { 1 })
        });
        shown.add_row(std::iter::once(program).chain(cells));
    }
    println!("{shown}\n");
}

/// The paper's number and ours with so many digits, and what became of ours.
fn cell_of(entry: Option<&Entry>, digits: usize) -> String {
    let figure = entry.and_then(|entry| entry.figures.first());
    figure.map_or_else(String::new, |figure| {
        let mark = match figure.verdict {
            FigureVerdict::Calibrated => " =",
            FigureVerdict::PredictedMissed => " !",
            _ => "",
        };
        format!("{} {:.digits$}{mark}", figure.paper, figure.ours)
    })
}

fn show_numbers(report: &Report) {
    let mut numbers = table(&["id", "what", "paper", "ours", "deviation", "verdict"]);
    for entry in &report.entries {
        for (at, figure) in entry.figures.iter().enumerate() {
            numbers.add_row([
                if at == 0 {
                    entry.id.clone()
                } else {
                    String::new()
                },
                if at == 0 {
                    format!("{}: {}", entry.says, figure.what)
                } else {
                    figure.what.clone()
                },
                with_unit(figure.paper, &figure.unit),
                with_unit(figure.ours, &figure.unit),
                format!("{:+.2} %", figure.deviation_percent),
                judgement(figure).to_owned(),
            ]);
        }
    }
    set_width(&mut numbers, 1);
    println!("{numbers}\n");
}

/// What must be said of numbers.
fn remarks(entries: &[Entry]) {
    println!("Remarks on numbers:");
    for entry in entries {
        if !entry.figures.is_empty() && !entry.remark.is_empty() {
            println!("  {}: {}", entry.id, entry.remark);
        }
    }
    println!();
}

fn readings(report: &Report) {
    let mut shown = table(&["where", "the paper", "followed here", "rows"]);
    for reading in &report.readings {
        shown.add_row([
            &reading.place,
            &reading.says,
            &reading.follows,
            &reading.rows,
        ]);
    }
    set_width(&mut shown, 1);
    set_width(&mut shown, 2);
    println!("Where the paper contradicts itself or is silent:\n{shown}\n");
}

fn summary(report: &Report) {
    let headline = &report.headline;
    println!(
        "Of the predictions {} are within {} %, {} are not. The machine has {} numbers that the paper gives (and {} more of the paper's follow from them), {} calibrated on {} rows of the paper, and {} assumed.",
        headline.predicted_hit,
        report.within_percent,
        headline.predicted_missed,
        headline.given,
        headline.inputs,
        headline.calibrated,
        headline.independent,
        headline.assumed,
    );
    println!(
        "{} numbers of the paper are calibrated or sums of such, {} repeat another row's experiment.",
        headline.calibrated_figures, headline.repeated,
    );
    for defect in &headline.defects {
        println!("DEFECT: {defect}.");
    }
    let counts: Vec<String> = VERDICTS
        .iter()
        .map(|&(one, name)| format!("{name}: {}", report.count(one)))
        .collect();
    println!("{} entries. {}.", report.entries.len(), counts.join(", "));
}
