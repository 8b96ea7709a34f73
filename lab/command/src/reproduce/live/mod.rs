//! `hamlyn-lab reproduce udm --live`: programs of User Direct Messaging in processes of this host,
//! which are stopped by turns, in and out of step (`T 5.1`; decision 0064).
//!
//! Nothing here is a model of anything, and nothing is compared with the paper as a prediction: the
//! processor, its kernel and whatever else runs decide.

mod figures;
mod logs;
pub(crate) mod process;
mod program;
mod regions;
mod show;
mod tempo;

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use hamlyn_cli::actor::this_program;
use hamlyn_cli::processors::allowed;
use hamlyn_cli::terminal::steps_bar;
use hamlyn_sim::reproduce::udm::bench::{GROUPS, SKEWS, TRIALS};

use crate::bench::report::{load, processor};
use figures::{Live, OfProgram, Run, Setting, Turns, of_program};
use process::{Account, ORDER, Order};
use program::{Program, Values};
use regions::Problem;
use tempo::CYCLE_NS;

pub(super) use show::show;

/// Nodes: the paper has eight.
pub(super) const PROCS_MAX: u32 = 8;
pub(super) const PROCS_MIN: u32 = 2;
/// Milliseconds of a quantum: 500,000 cycles (`T 5.1`).
const QUANTUM_MS: u32 = 10;
/// Cells of rings that hold next to nothing, as the queue of a node of FUGU.
const FEW_CELLS: u32 = 2;
/// Bytes of a message of up to 14 words in the log.
const LINE_BYTES: f64 = 64.0;
const PAGE_BYTES: u64 = 4096;
/// In the line of `hamlyn run --gang --verbose`.
const TURNS_KEPT: &str = "the job took turns with null";
/// Requests of a node of synth-N.
const REQUESTS: u32 = 20_000;

/// The extent of the experiment.
#[derive(Clone, Debug)]
struct Extent {
    programs: Vec<Program>,
    skews: Vec<u32>,
    trials: Vec<u64>,
}

impl Extent {
    fn new(is_quick: bool) -> Self {
        let part = if is_quick { 10 } else { 1 };
        let synth = GROUPS.map(|group| Program::Synth(group, (REQUESTS / part / group).max(1)));
        let mut programs = vec![Program::Barrier(40_000 / part)];
        programs.extend(match is_quick {
            true => [
                Program::Enum(7),
                Program::Regions(Problem::Lu(300)),
                Program::Regions(Problem::Water(4, 2)),
                Program::Regions(Problem::Barnes(256, 1)),
            ],
            false => [
                Program::Enum(9),
                Program::Regions(Problem::Lu(1_200)),
                Program::Regions(Problem::Water(8, 5)),
                Program::Regions(Problem::Barnes(2_048, 3)),
            ],
        });
        programs.extend(synth);
        Self {
            programs,
            skews: match is_quick {
                true => vec![0, 500],
                false => SKEWS.to_vec(),
            },
            trials: if is_quick { &TRIALS[..1] } else { &TRIALS }.to_vec(),
        }
    }

    /// The schedules of each program.
    fn settings(&self) -> Vec<Setting> {
        let of = |turns, has_few_cells| Setting {
            turns,
            has_few_cells,
        };
        let skewed = self
            .skews
            .iter()
            .map(|skew| of(Turns::Skewed(*skew), false));
        let mut settings = vec![of(Turns::Alone, false)];
        settings.extend(skewed);
        let ends = [self.skews.first(), self.skews.last()];
        let few = ends.into_iter().flatten();
        settings.extend(few.map(|skew| of(Turns::Skewed(*skew), true)));
        settings
    }
}

/// Measures all of it.
pub(super) fn measure(is_quick: bool, procs: Option<u32>) -> Result<Live> {
    let processors = allowed()?.len();
    let most = u32::try_from(processors).unwrap_or(PROCS_MAX);
    let procs = procs.unwrap_or(most.clamp(PROCS_MIN, PROCS_MAX));
    let extent = Extent::new(is_quick);
    let settings = extent.settings();
    let load_before = load();
    let steps = extent.trials.len() * extent.programs.len() * settings.len();
    let bar = steps_bar(steps as u64, "jobs", false);
    let programs = extent.programs.iter();
    let with_values = programs.map(|&program| Ok((program, program.expected(procs)?)));
    let programs: Vec<(Program, Values)> = with_values.collect::<Result<_>>()?;
    let mut runs = Vec::new();
    // Trial by trial, so that a change of the machine meets all settings.
    for &seed in &extent.trials {
        for &(program, expected) in &programs {
            for &setting in &settings {
                let job = || format!("{}, {setting:?}", program.name());
                let (run, values) = run_job(program, setting, procs, seed).with_context(job)?;
                ensure!(
                    values == expected,
                    "{}: {procs} nodes brought {values:?}, and not {expected:?}",
                    job()
                );
                runs.push((program, setting, run));
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    let programs: Vec<OfProgram> = programs
        .iter()
        .map(|(program, _)| of_program(*program, &settings, &runs))
        .collect::<Result<_>>()?;
    Ok(Live {
        figures_of: "processes of this host",
        processor: processor(),
        processors,
        procs,
        quantum_ms: QUANTUM_MS,
        cycle_ns: CYCLE_NS,
        cells_few: FEW_CELLS,
        trials: extent.trials.len(),
        load_before,
        plots: show::plots(&programs),
        programs,
        runs: runs.into_iter().map(|(_, _, run)| run).collect(),
    })
}

/// Runs a job to its end; the values that its nodes brought together.
fn run_job(program: Program, setting: Setting, procs: u32, seed: u64) -> Result<(Run, Values)> {
    let order = Order {
        program,
        cells: setting.has_few_cells.then_some(FEW_CELLS),
    };
    let own = this_program()?;
    let mut command = Command::new(&own);
    command.args(["run", "-n", &procs.to_string()]);
    let mut skew_percent = None;
    if let Turns::Skewed(skew) = setting.turns {
        let skew = f64::from(skew) / 1e3;
        let turns = format!("{QUANTUM_MS}ms,skew={skew},seed={seed},null");
        command.args(["--gang", &turns, "--verbose"]);
        skew_percent = Some(100.0 * skew);
    }
    command
        .arg(&own)
        .args(["actor", "live"])
        .env(ORDER, serde_json::to_string(&order)?);
    let output = command.output().context("starting a job")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the job failed: {errors}");
    // Anything but the account of the turns says that the run was another one.
    let (turns, others): (Vec<_>, Vec<_>) =
        errors.lines().partition(|line| line.contains(TURNS_KEPT));
    ensure!(others.is_empty(), "the job said: {errors}");
    let lines = std::str::from_utf8(&output.stdout)?.lines();
    let accounts: Vec<Account> = lines
        .map(|line| serde_json::from_str(line).context("reading the account of a process"))
        .collect::<Result<_>>()?;
    if accounts.len() != procs as usize {
        bail!("{} of {procs} processes gave an account", accounts.len());
    }
    let mut values = Values::default();
    accounts
        .iter()
        .for_each(|account| values.add(account.values));
    let sum = |figure: fn(&Account) -> u64| accounts.iter().map(figure).sum::<u64>();
    let begun_ns = accounts.iter().map(|account| account.begun_ns).min();
    let ended_ns = accounts.iter().map(|account| account.end.at_ns).max();
    let span_ns = ended_ns.zip(begun_ns).map_or(0, |(end, begin)| end - begin);
    let messages = sum(|account| account.end.handled);
    let percent = |part: f64| 100.0 * part / messages.max(1) as f64;
    let most_bytes = accounts.iter().map(|account| account.logs.most_bytes).max();
    let run = Run {
        program: program.name(),
        skew_percent,
        has_few_cells: setting.has_few_cells,
        seed,
        turns: turns.first().map(|line| (*line).to_owned()),
        run_time_ms: span_ns as f64 / 1e6,
        messages,
        after_stop_percent: percent(sum(|account| account.end.after_stop) as f64),
        logged_percent: percent(sum(|account| account.logs.spilled_bytes) as f64 / LINE_BYTES),
        stops: sum(|account| account.end.stops),
        episodes: sum(|account| account.logs.episodes),
        pages_most: most_bytes.unwrap_or(0).div_ceil(PAGE_BYTES),
    };
    Ok((run, values))
}
