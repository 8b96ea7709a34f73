//! A processor waits (`Split-C 4.2`): for packets, or for words that others change in memory.
//! Meanwhile it takes what has come and carries out the atomic procedures that it is asked for.
//!
//! Where memory is reached directly, a wait looks at words, offers the processor to others now and
//! then, and then sleeps. It says so in its word of attention; another processor that changes what
//! may be waited for looks there, and sends a message to a sleeper ([`crate::direct_procedure`]).
//!
//! Refused: to wait for a processor that is gone, that has come to its end, or for longer than the
//! job allows.

use std::time::Duration;

use hamlyn::host::ConnectError;
use hamlyn::{Event, Host, Wait};

use crate::control::{ASLEEP, ATTENTION, ENDING, ENTERED};
use crate::error::Error;
use crate::runtime::{Program, Splitc};
use hamlyn_job::Job;

/// How long one sleep lasts at most: what no packet announces is seen after it.
const SLICE: Duration = Duration::from_millis(100);
/// Where memory is reached directly: looks at words before the first sleep, and those after which
/// the processor is offered to others.
const SPINS: Spins = Spins {
    most: 4096,
    per_yield: 64,
};
/// The same where there are more processors of the job on a host than it has: the one that is
/// waited for may need this very one.
const SPINS_CROWDED: Spins = Spins {
    most: 64,
    per_yield: 8,
};
/// How long sleeps are where nobody announces what is waited for, each twice as long as the one
/// before.
const SLEEP_MIN: Duration = Duration::from_micros(50);
const SLEEP_MAX: Duration = Duration::from_millis(2);
/// Waits for all see whether a processor has come to its end: after so long, and again each time
/// after twice as long.
const ENDING_MIN_NS: u64 = 20_000_000;
const ENDING_MAX_NS: u64 = 1_000_000_000;

/// Looks at words before a wait sleeps.
#[derive(Clone, Copy)]
pub(crate) struct Spins {
    most: u32,
    /// Looks between two offers of the processor to others.
    per_yield: u32,
}

/// How far a wait has come.
#[derive(Default)]
struct Pauses {
    spins: u32,
    /// Others know that this processor sleeps, or is about to.
    is_asleep: bool,
    sleep: Duration,
    /// When to see whether a processor has come to its end.
    ending_due_ns: Option<u64>,
    ending_ns: u64,
    /// Since when the processor that is awaited cannot be reached.
    absent_since_ns: Option<u64>,
}

impl Pauses {
    /// True if it is time to see whether a processor has come to its end.
    fn is_ending_due(&mut self, now_ns: u64) -> bool {
        let due_ns = self.ending_due_ns.get_or_insert(now_ns + ENDING_MIN_NS);
        let is_due = now_ns >= *due_ns;
        if is_due {
            self.ending_ns = (self.ending_ns * 2).clamp(ENDING_MIN_NS, ENDING_MAX_NS);
            *due_ns = now_ns + self.ending_ns;
        }
        is_due
    }
}

/// What a wait is for.
#[derive(Clone, Copy)]
pub(crate) struct Awaited {
    pub(crate) what: &'static str,
    /// The processor that has to do something.
    pub(crate) of: Option<u32>,
    /// Whether all processors must come: then the wait has a limit, and fails if any is gone.
    pub(crate) is_collective: bool,
    /// Whether the processor that does it wakes this one.
    pub(crate) is_announced: bool,
}

impl Awaited {
    /// One processor, which wakes this one.
    pub(crate) fn one(what: &'static str, proc: u32) -> Self {
        Self {
            what,
            of: Some(proc),
            is_collective: false,
            is_announced: true,
        }
    }

    /// One processor, which takes part in an operation of all.
    pub(crate) fn of_all(what: &'static str, proc: u32) -> Self {
        Self {
            is_collective: true,
            ..Self::one(what, proc)
        }
    }

    /// The owner of an atomic procedure.
    pub(crate) fn procedure(proc: u32) -> Self {
        Self::one("an atomic procedure", proc)
    }
}

impl Spins {
    /// For that job: whether its host has as many processors as the job has there, as far as this
    /// process may use them.
    pub(crate) fn of(job: &Job) -> Self {
        let near = (0..job.procs).filter(|&proc| job.is_near(proc)).count();
        let is_crowded = std::thread::available_parallelism().is_ok_and(|there| there.get() < near);
        match is_crowded {
            true => SPINS_CROWDED,
            false => SPINS,
        }
    }
}

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Waits until `look` finds what it looks for. Meanwhile packets are taken, and atomic
    /// procedures carried out.
    #[inline]
    pub(crate) fn wait_for<T>(
        &mut self,
        awaited: Awaited,
        mut look: impl FnMut(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        if let Some(found) = look(self)? {
            return Ok(found);
        }
        let mut pauses = Pauses::default();
        let found = self.wait_longer(awaited, &mut pauses, look);
        if pauses.is_asleep {
            self.end_sleep();
        }
        found
    }

    fn wait_longer<T>(
        &mut self,
        awaited: Awaited,
        pauses: &mut Pauses,
        mut look: impl FnMut(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let mut deadline_ns = None;
        let mut rounds = 0_u32;
        loop {
            if self.is_direct && pauses.spins < self.spins.most {
                // Words may change without a packet.
                pauses.spins += 1;
                self.attend_called()?;
                let yields = pauses.spins.is_multiple_of(self.spins.per_yield);
                if pauses.spins == self.spins.per_yield {
                    // A wait that lasts may be for a processor that waits for what this one has
                    // stored.
                    self.wake_sleepers();
                }
                self.manager.session().host_mut().relax(yields);
                if let Some(found) = look(self)? {
                    return Ok(found);
                }
                if !yields {
                    continue;
                }
            }
            self.attend()?;
            // A procedure that ran may have stored what is waited for.
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            rounds = rounds.saturating_add(1);
            if rounds > 1 {
                self.note_losses()?;
                if let Some((proc, why)) = self.relevant_loss(&awaited) {
                    return self.look_last(proc, why, awaited.what, look);
                }
                if awaited.is_collective && pauses.is_ending_due(self.now_ns()) {
                    self.meet_awaited(&awaited, pauses);
                    if !self.is_finishing {
                        self.see_who_has_ended(awaited.what)?;
                    }
                }
                if let (true, Some(timeout)) = (awaited.is_collective, self.job.barrier_timeout) {
                    let now_ns = self.now_ns();
                    let timeout_ns = timeout.as_nanos() as u64;
                    let until_ns = *deadline_ns.get_or_insert(now_ns.saturating_add(timeout_ns));
                    if now_ns >= until_ns {
                        return Err(self.who_is_missing(awaited.what, timeout));
                    }
                }
            }
            self.pause(&awaited, pauses)?;
            if let Some(found) = look(self)? {
                return Ok(found);
            }
        }
    }

    /// Sleeps until a packet comes, or a while has passed after which words are looked at again.
    fn pause(&mut self, awaited: &Awaited, pauses: &mut Pauses) -> Result<(), Error> {
        let slice = self.job.barrier_timeout.map_or(SLICE, |it| it.min(SLICE));
        if !self.is_direct {
            return Ok(self.manager.wait(Wait::For(slice))?);
        }
        if pauses.spins < self.spins.most {
            self.manager.session().poll();
            return Ok(());
        }
        if self.own_word(ATTENTION) & ASLEEP == 0 {
            // What was stored before others could know of it is seen by one more look. Nothing else
            // clears the bit but another processor that wakes this one, and waits in atomic
            // procedures that ran meanwhile.
            pauses.is_asleep = true;
            self.announce_sleep();
            return Ok(());
        }
        let slice = match awaited.is_announced {
            true => slice,
            false => {
                pauses.sleep = (pauses.sleep * 2).clamp(SLEEP_MIN, SLEEP_MAX);
                pauses.sleep.min(slice)
            }
        };
        let slept = self.manager.wait(Wait::For(slice));
        self.end_sleep();
        pauses.is_asleep = false;
        Ok(slept?)
    }

    /// A processor is gone; what it sent before may still be on its way to us, until its link is
    /// drained.
    fn look_last<T>(
        &mut self,
        proc: u32,
        why: String,
        what: &'static str,
        mut look: impl FnMut(&mut Self) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let mut is_drained = false;
        while !is_drained {
            let mut interface = self.manager.session();
            is_drained = interface
                .peers()
                .all(|(link, _)| interface.link_end(link).is_none());
            interface.poll();
            interface.host_mut().relax(true);
            drop(interface);
            if let Some(found) = look(self)? {
                return Ok(found);
            }
        }
        Err(Error::Gone { proc, why, what })
    }

    fn relevant_loss(&self, awaited: &Awaited) -> Option<(u32, String)> {
        // At the end of the job a processor goes when it has all that it needs; others may still
        // wait for each other.
        let is_any = awaited.is_collective && !self.is_finishing;
        let mut lost = self.lost.iter();
        let found = lost.find(|(proc, _)| is_any || awaited.of == Some(*proc));
        found.cloned()
    }

    /// Hears which processors are gone: those whose links have ended. Events of links tell when to
    /// look, and not of all that there is: they may be missed.
    fn note_losses(&mut self) -> Result<(), Error> {
        let mut may_be_lost = false;
        while let Some(event) = self.manager.next_event(Wait::Poll)? {
            may_be_lost |= matches!(event, Event::PeerLeft { .. } | Event::Missed { .. });
        }
        if !may_be_lost {
            return Ok(());
        }
        let interface = self.manager.session();
        for (proc, peer) in (0..).zip(&self.peers) {
            if let Some(peer) = peer
                && let Some(end) = interface.link_end(peer.control_target().link())
                && self.lost.iter().all(|(lost, _)| *lost != proc)
            {
                self.lost.push((proc, end.to_string()));
            }
        }
        Ok(())
    }

    /// Connects to the processor that is awaited, so that its end is heard of. In a large job this
    /// one may have sent it nothing.
    fn meet_awaited(&mut self, awaited: &Awaited, pauses: &mut Pauses) {
        // At the start it may not be there yet, and the wait has a limit.
        let Some(proc) = awaited.of.filter(|_| self.entered > 1) else {
            return;
        };
        if self.peers[proc as usize].is_some() {
            return;
        }
        let (why, is_absent) = match self.try_connect(proc) {
            Ok(Ok(())) => return,
            Ok(Err(why)) => {
                // The kernel says so; a network is silent.
                let is_absent =
                    matches!(why, ConnectError::Absent { .. } | ConnectError::Gone { .. });
                (why.to_string(), is_absent && self.job.is_near(proc))
            }
            // It may have ended meanwhile, and what is awaited is here.
            Err(error) => (error.to_string(), false),
        };
        let now_ns = self.now_ns();
        let since_ns = *pauses.absent_since_ns.get_or_insert(now_ns);
        if is_absent || u128::from(now_ns - since_ns) >= self.job.start_timeout.as_nanos() {
            self.lost.push((proc, why));
        }
    }

    /// Fails if a processor has come to its end in place of the operation in which this one waits
    /// for all. One that took part in that operation, and has come to its end since, is no failure:
    /// the others may still hear of its part.
    fn see_who_has_ended(&mut self, what: &'static str) -> Result<(), Error> {
        for proc in 0..self.job.procs {
            if proc == self.job.proc {
                continue;
            }
            let ended_at = self.read_control(proc, ENDING, Wait::millis(50));
            if ended_at.is_ok_and(|number| number != 0 && number <= self.entered) {
                let why = "it has come to its end, by exit or by returning from its main function";
                return Err(Error::Gone {
                    proc,
                    why: why.to_owned(),
                    what,
                });
            }
        }
        Ok(())
    }

    /// Asks every processor how far it has come.
    fn who_is_missing(&mut self, what: &'static str, timeout: Duration) -> Error {
        let mut missing = Vec::new();
        for proc in 0..self.job.procs {
            if proc == self.job.proc {
                continue;
            }
            match self.read_control(proc, ENTERED, Wait::millis(200)) {
                Ok(entered) if entered >= self.entered => {}
                Ok(_) => missing.push(format!("{proc}")),
                Err(_) => missing.push(format!("{proc} (which does not answer)")),
            }
        }
        Error::Missing {
            what,
            within: timeout,
            missing: match missing.len() {
                0 => "a processor that has come by now".to_owned(),
                1 => format!("processor {}", missing[0]),
                _ => format!("processors {}", missing.join(", ")),
            },
        }
    }
}
