//! A processor of a test: a segment at a made-up place, and procedures that change words of it.

use std::cell::Cell;

use hamlyn::region::SharedOptions;
use hamlyn::{Area, Manager};
use hamlyn_splitc::{Error, GlobalPtr, Job, Placement, Program, Setup, SharedMemory, Splitc};

use crate::Host;

/// Where the segments begin, and how long they are.
pub(crate) const START: u64 = 0x10_0000;
pub(crate) const LENGTH: u64 = 0x10_0000;
/// The first part is for tests, the rest for spread arrays.
pub(crate) const SPREAD: u64 = START + LENGTH / 2;

pub(crate) type Runtime = Splitc<Host, Test>;
/// What every processor of a test does.
pub(crate) type Role<'a> = dyn Fn(&mut Runtime) -> Result<(), Error> + Sync + 'a;

pub(crate) struct Test {
    pub(crate) area: Area,
    pub(crate) procedures_run: Cell<u64>,
    is_running: Cell<bool>,
}

/// Adds its argument to the word, and returns what it was.
pub(crate) const ADD: u64 = 1;
/// As [`ADD`], in two steps, with a read of another processor between.
pub(crate) const ADD_SLOWLY: u64 = 2;
/// Fails.
pub(crate) const FAIL: u64 = 3;
/// Adds one to the word, if that is what the argument says; fails otherwise.
pub(crate) const COUNT: u64 = 5;
/// Calls a barrier.
pub(crate) const MISBEHAVE: u64 = 4;

impl Test {
    pub(crate) fn word(&self, place: u64) -> u64 {
        self.area.load_u64(place - START).unwrap()
    }

    pub(crate) fn set_word(&self, place: u64, value: u64) {
        self.area.store_u64(place - START, value).unwrap();
    }
}

impl Program<Host> for Test {
    fn deliver(&mut self, to: u64, bytes: &[u8]) {
        self.area.write_at(to - START, bytes).unwrap();
    }

    fn procedure(
        runtime: &mut Runtime,
        procedure: u64,
        place: u64,
        arguments: &[u8],
        result: &mut [u8],
    ) -> Result<(), String> {
        let argument = arguments.first_chunk().copied();
        let argument = argument.map(u64::from_le_bytes).unwrap_or(0);
        let program = runtime.program();
        let was_running = program.is_running.replace(true);
        assert!(!was_running, "two procedures at a time");
        program.procedures_run.set(program.procedures_run.get() + 1);
        let before = program.word(place);
        let ran = match procedure {
            ADD => Ok(()),
            ADD_SLOWLY => {
                let next = (runtime.proc() + 1) % runtime.procs();
                let read = runtime.read(GlobalPtr::<u64>::at(
                    runtime.pointer::<u64>(next, START).address(),
                ));
                read.map(drop).map_err(|error| error.to_string())
            }
            MISBEHAVE => runtime.barrier().map_err(|error| error.to_string()),
            COUNT if before == argument => {
                let program = runtime.program();
                program.is_running.set(false);
                program.set_word(place, before + 1);
                let length = result.len();
                result.copy_from_slice(&before.to_le_bytes()[..length]);
                return Ok(());
            }
            COUNT => Err(format!("number {argument} comes after {before}")),
            _ => Err("this procedure always fails".to_owned()),
        };
        let program = runtime.program();
        if ran.is_ok() {
            program.set_word(place, before + argument);
            let length = result.len();
            result.copy_from_slice(&before.to_le_bytes()[..length]);
        }
        program.is_running.set(false);
        ran
    }
}

/// Starts a processor, lets it do its part, and ends it.
pub(crate) fn play(manager: Manager<Host>, job: Job, role: &Role<'_>) -> Result<(), Error> {
    let area = match job.placement {
        Placement::Direct => Area::shared(SharedOptions::sparse(LENGTH))?,
        Placement::Copied => manager.session().allocate(LENGTH)?,
    };
    let program = Test {
        area: area.clone(),
        procedures_run: Cell::new(0),
        is_running: Cell::new(false),
    };
    let setup = Setup {
        job,
        memory: vec![SharedMemory {
            start: START,
            area,
            length_bytes: LENGTH,
        }],
        spread_places: SPREAD..START + LENGTH,
        program,
    };
    let mut runtime = Splitc::start(manager, setup)?;
    role(&mut runtime)?;
    runtime.finish()?;
    Ok(())
}
