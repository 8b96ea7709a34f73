//! User Direct Messaging between the processes of a job (`hamlyn_udm`): each process throws dice and
//! tells the process that counts that sum. A count is kept by handlers, and read in a section.
//!
//! ```text
//! hamlyn run -n 4 target/debug/census 10000
//! ```

use hamlyn::{ManagerOptions, Wait};
use hamlyn_examples::Outcome;
use hamlyn_job::Job;
use hamlyn_udm::{Group, GroupOptions, Udm, UdmOptions};

const LONG: Wait = Wait::millis(20_000);
/// The handler of a throw: its word is the sum.
const THROW: u16 = 0;
/// The handler of a count, at process 0: its words are the sum and the count.
const COUNT: u16 = 1;
const SUMS: usize = 13;

fn main() -> Outcome {
    let throws: u32 = match std::env::args().nth(1) {
        Some(throws) => throws.parse()?,
        None => return Err("usage: hamlyn run -n PROCESSES census THROWS".into()),
    };
    let job = Job::from_environment()?;
    let manager = hamlyn::open_with(job.host_options(), ManagerOptions::default())?;
    let group = Group::new(manager, GroupOptions::of_job(&job))?;
    let mut udm = Udm::open(&group, "census", UdmOptions::default(), [0_u32; SUMS], LONG)?;
    udm.on(THROW, |arrival| {
        let mut call = arrival.extract();
        let sum = call.word(0) as usize;
        // Others may send anything.
        if let Some(count) = call.state().get_mut(sum) {
            *count += 1;
        }
        call
    })?;
    udm.on(COUNT, |arrival| {
        let mut call = arrival.extract();
        let (sum, count) = (call.word(0) as usize, call.word(1));
        if let Some(place) = call.state().get_mut(sum) {
            *place = count;
        }
        call
    })?;
    let mut dice = u64::from(job.proc) + 1;
    for _ in 0..throws {
        let sum = die(&mut dice) + die(&mut dice);
        udm.inject(sum % job.procs, THROW, &[sum])?;
    }
    // All throws have been counted at its end, on one host.
    udm.barrier(LONG)?;
    for sum in 2..SUMS as u32 {
        if sum % job.procs == job.proc {
            let count = udm.atomic()[sum as usize];
            udm.inject(0, COUNT, &[sum, count])?;
        }
    }
    udm.barrier(LONG)?;
    if job.proc == 0 {
        for (sum, count) in udm.state().iter().enumerate().skip(2) {
            println!("{sum:2}: {count}");
        }
    }
    udm.flush(LONG)?;
    Ok(())
}

/// A number of 1 to 6.
fn die(state: &mut u64) -> u32 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as u32 % 6 + 1
}
