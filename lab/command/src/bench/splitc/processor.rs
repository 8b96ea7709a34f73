//! A processor of a job that is measured.

use anyhow::{Context, Result};
use hamlyn::Area;
use hamlyn::host::process::ProcessHost;
use hamlyn::region::SharedOptions;
use hamlyn_splitc::{
    Error, GlobalAddress, GlobalPtr, Job, Placement, Program, Setup, SharedMemory, Splitc,
};

use super::{Figures, ORDER, Order, Part, operations, polling, updates};

pub(super) type Runtime = Splitc<ProcessHost, Memory>;

/// Where the memory of a processor begins, and how much there is.
pub(super) const START: u64 = 0x10_0000;
pub(super) const LENGTH: u64 = 16 << 20;
/// The word by which processor 0 tells another that it need not serve any more.
const DONE: u64 = START;
/// Where operations go, and where gets come.
pub(super) const TARGET: u64 = START + 4096;
pub(super) const LOCAL: u64 = START + LENGTH / 2;

/// The program: memory, and a procedure that does nothing.
pub(super) struct Memory {
    area: Area,
    length_bytes: u64,
}

impl Memory {
    /// Whether everything is zero from where operations go on.
    pub(super) fn is_as_it_was(&self) -> bool {
        let mut piece = [0; 4096];
        let mut place = TARGET - START;
        while place < self.length_bytes {
            // The rest of the memory is a whole number of pieces.
            if self.area.read_at(place, &mut piece).is_err() || piece.iter().any(|&byte| byte != 0)
            {
                return false;
            }
            place += piece.len() as u64;
        }
        true
    }
}

impl Program<ProcessHost> for Memory {
    fn deliver(&mut self, to: u64, bytes: &[u8]) {
        // The places of gets are those above.
        let _ = self.area.write_at(to - START, bytes);
    }

    fn procedure(_: &mut Runtime, _: u64, _: u64, _: &[u8], _: &mut [u8]) -> Result<(), String> {
        Ok(())
    }
}

pub(super) fn at(proc: u32, place: u64) -> GlobalAddress {
    GlobalAddress::new(proc, place)
}

pub(crate) fn run() -> Result<()> {
    let order =
        std::env::var(ORDER).context("no order: `hamlyn-lab bench --splitc` starts this")?;
    let order: Order = serde_json::from_str(&order).context("an order that is none")?;
    let job = Job::from_environment()?;
    let manager = hamlyn::open_with(job.host_options(), hamlyn_splitc::manager_options(&job))?;
    let length = match order.part {
        // Its part of the table, behind what the other measurements use.
        Part::Updates => TARGET - START + updates::TABLE_BYTES_MAX / u64::from(job.procs),
        Part::Pair | Part::Three | Part::Polling => LENGTH,
    };
    let area = match job.placement {
        Placement::Direct => Area::shared(SharedOptions::sparse(length))?,
        Placement::Copied => manager.session().allocate(length)?,
    };
    // Pages that are touched for the first time are not what is measured.
    area.fill(0, length, 0).context("touching the memory")?;
    let shared = SharedMemory {
        start: START,
        area: area.clone(),
        length_bytes: length,
    };
    let setup = Setup {
        job,
        memory: vec![shared],
        spread_places: 0..0,
        program: Memory {
            area,
            length_bytes: length,
        },
    };
    let mut runtime = Splitc::start(manager, setup)?;
    let mut figures = Figures::default();
    match order.part {
        Part::Pair => operations::measure_pair(&mut runtime, order.depth, &mut figures)?,
        Part::Three => operations::measure_three(&mut runtime, order.depth, &mut figures)?,
        Part::Polling => polling::measure(&mut runtime, order.depth, &mut figures)?,
        Part::Updates => updates::measure(&mut runtime, order.depth, &mut figures)?,
    }
    let proc = runtime.proc();
    runtime.finish()?;
    if proc == 0 {
        println!("{}", serde_json::to_string(&figures)?);
    }
    Ok(())
}

/// Processor 0 measures, while the others serve it attentively.
pub(super) fn served<R>(
    runtime: &mut Runtime,
    measure: impl FnOnce(&mut Runtime) -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    let done = |proc| GlobalPtr::<u64>::at(at(proc, DONE));
    let own = runtime.proc();
    runtime.write(done(own), 0)?;
    runtime.barrier()?;
    let measured = match own {
        0 => {
            let measured = measure(runtime)?;
            for proc in 1..runtime.procs() {
                runtime.write(done(proc), 1)?;
            }
            Some(measured)
        }
        _ => {
            while runtime.program().area.load_u64(DONE - START) == Ok(0) {
                runtime.poll()?;
            }
            None
        }
    };
    runtime.barrier()?;
    Ok(measured)
}
