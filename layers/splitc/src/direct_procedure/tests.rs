use hamlyn::Area;
use hamlyn::host::process::ProcessHost;
use hamlyn::region::SharedOptions;

use super::*;
use crate::memory::SharedMemory;
use crate::runtime::Setup;
use hamlyn_job::Job;

const START: u64 = 0x10_0000;
const LENGTH: u64 = 4096;
/// Polls within which what was sent has come: far more than it takes.
const POLLS: u32 = 100_000_000;

/// A program without procedures.
struct Nothing;

type Runtime = Splitc<ProcessHost, Nothing>;

impl Program<ProcessHost> for Nothing {
    fn deliver(&mut self, _: u64, _: &[u8]) {}

    fn procedure(_: &mut Runtime, _: u64, _: u64, _: &[u8], _: &mut [u8]) -> Result<(), String> {
        Err("there is no procedure".to_owned())
    }
}

/// Two processors that reach each other's memory directly, as threads.
fn two(name: &str, role: impl Fn(&mut Runtime) -> Result<(), Error> + Sync) {
    let play = |proc| -> Result<(), Error> {
        let mut job = Job::alone(&format!("{name}-{}", std::process::id()));
        (job.proc, job.procs) = (proc, 2);
        let manager = hamlyn::open_with(job.host_options(), crate::manager_options(&job))?;
        let area = Area::shared(SharedOptions::sparse(LENGTH))?;
        let shared = SharedMemory {
            start: START,
            area,
            length_bytes: LENGTH,
        };
        let setup = Setup {
            job,
            memory: vec![shared],
            spread_places: 0..0,
            program: Nothing,
        };
        let mut runtime = Splitc::start(manager, setup)?;
        assert!(runtime.is_all_direct);
        role(&mut runtime)?;
        runtime.finish().map(drop)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| play(1));
        play(0).unwrap();
        other.join().unwrap().unwrap();
    });
}

#[test]
fn a_header_says_which_request_lies_in_a_line() {
    for number in [1, 63, 64, 65, u64::from(u32::MAX), 1 << 32, (1 << 32) + 1] {
        let header = Header::new(number, 40, 8);
        assert!(header.is(number));
        assert!(!header.is(number + REQUESTS));
        assert!(Header(header.0 | Header::ANSWERED | Header::FAILED).is(number));
        assert_eq!((header.argument_bytes(), header.result_bytes()), (40, 8));
    }
    // A line that nothing was written to.
    assert!(!Header(0).is(1));
}

#[test]
fn a_processor_that_sleeps_is_woken_by_what_it_waits_for() {
    two("woken", |runtime| {
        if runtime.proc() == 0 {
            // The other one spins, and then says that it sleeps.
            let is_asleep = |runtime: &Runtime| {
                let window = runtime.control_window(1).unwrap();
                window.load_u64(ATTENTION).unwrap() & ASLEEP != 0
            };
            while !is_asleep(runtime) {
                std::thread::yield_now();
            }
        }
        runtime.barrier()?;
        if runtime.proc() == 1 {
            // It may have woken by itself at that very moment, but the message was sent, or its
            // sleep was over.
            assert_eq!(runtime.own_word(ATTENTION) & ASLEEP, 0);
        }
        runtime.barrier()
    });
}

#[test]
fn a_sleeper_is_sent_one_message() {
    two("message", |runtime| {
        if runtime.proc() == 1 {
            runtime.announce_sleep();
            runtime.barrier()?;
            let is_woken = |runtime: &mut Runtime| {
                runtime.manager.session().poll();
                runtime.own_word(WOKEN) != 0
            };
            assert!((0..POLLS).any(|_| is_woken(runtime)));
            assert_eq!(runtime.own_word(ATTENTION) & ASLEEP, 0);
        } else {
            while runtime
                .control_window(1)
                .unwrap()
                .load_u64(ATTENTION)
                .unwrap()
                & ASLEEP
                == 0
            {
                std::thread::yield_now();
            }
            runtime.wake_sleepers();
            runtime.barrier()?;
        }
        runtime.barrier()
    });
}

#[test]
fn a_damaged_request_is_answered_as_one_that_failed() {
    two("damaged", |runtime| {
        if runtime.proc() == 0 {
            // As `ask_directly` writes it, with more arguments than fit.
            let line = runtime.layout.request(0, 1);
            let window = runtime.control_window(1).unwrap();
            window.store_u64(line, Header::new(1, 200, 8).0).unwrap();
            runtime.call_attention(1, called_by(0));
            let failed = runtime.await_result(1, line, &mut [0; 8]);
            let message = failed.unwrap_err().to_string();
            assert!(message.contains("the request is damaged"), "{message}");
            if let Some(peer) = &mut runtime.peers[1] {
                peer.requests = 1;
            }
        }
        runtime.sync()?;
        runtime.barrier()
    });
}
