//! Operations of all processors together: barriers, and values that travel along trees
//! (`Split-C 2.4`). They are made of stores to words of another processor's control area and of
//! looking at one's own, whatever the strategy is.

use hamlyn::Host;

use crate::control::{CELLS, ENDING, Kind, Layout, cell_value, cell_words, mark};
use crate::error::Error;
use crate::runtime::{Program, Splitc};
use crate::waiting::Awaited;

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Returns when all processors have called this. Says nothing of gets, puts and stores that are
    /// under way.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.enter("barrier")?;
        self.barrier_rounds("the barrier")
    }

    /// The barrier at the start: it has the time of the start.
    pub(crate) fn start_barrier(&mut self) -> Result<(), Error> {
        let timeout = self.job.barrier_timeout;
        self.job.barrier_timeout = Some(self.job.start_timeout);
        let started = self.barrier();
        self.job.barrier_timeout = timeout;
        started
    }

    /// In each round a processor tells one that is twice as far away that it, and all of whom it
    /// has heard, are here. A word says how many barriers have come so far, so one that comes early
    /// is not lost.
    pub(crate) fn barrier_rounds(&mut self, what: &'static str) -> Result<(), Error> {
        self.barriers += 1;
        self.rounds(what, Layout::barrier, self.barriers)
    }

    /// The last barrier.
    pub(crate) fn end_barrier(&mut self) -> Result<(), Error> {
        self.enter("the end of the program")?;
        // The place of the layout lies in the area.
        let _ = self.control.store_u64(ENDING, self.entered);
        if self.is_direct {
            self.wake_sleepers();
        }
        self.is_finishing = true;
        self.rounds("the end of the program", Layout::end, 1)
    }

    fn rounds(
        &mut self,
        what: &'static str,
        word: fn(Layout, u32) -> u64,
        number: u64,
    ) -> Result<(), Error> {
        let (procs, proc) = (self.job.procs, self.job.proc);
        let (mut distance, mut round) = (1, 0);
        while distance < procs {
            let to = (proc + distance) % procs;
            let from = (proc + procs - distance) % procs;
            let place = word(self.layout, round);
            self.send_words(to, place, [number])?;
            let awaited = Awaited::of_all(what, from);
            self.wait_for(awaited, |runtime| {
                Ok((runtime.own_word(place) >= number).then_some(()))
            })?;
            distance *= 2;
            round += 1;
        }
        Ok(())
    }

    /// Sends a value to another processor, as the next of those that it will take of this one.
    pub(crate) fn send_value(&mut self, to: u32, kind: Kind, value: u64) -> Result<(), Error> {
        let number = self.values_sent[to as usize] + 1;
        let taken = self.layout.taken(to);
        let awaited = Awaited::of_all(kind.name(), to);
        self.wait_for(awaited, |runtime| {
            let is_room = number - runtime.own_word(taken).min(number) <= CELLS;
            Ok(is_room.then_some(()))
        })?;
        self.values_sent[to as usize] = number;
        let place = self.layout.cell(self.job.proc, number);
        self.send_words(to, place, cell_words(mark(number, kind), value))
    }

    /// Takes the next value that another processor sends to this one.
    pub(crate) fn take_value(&mut self, from: u32, kind: Kind) -> Result<u64, Error> {
        let number = self.values_taken[from as usize] + 1;
        let place = self.layout.cell(from, number);
        let awaited = Awaited::of_all(kind.name(), from);
        let (theirs, value) = self.wait_for(awaited, |runtime| {
            let words = [runtime.own_word(place), runtime.own_word(place + 8)];
            Ok(cell_value(words, number))
        })?;
        if theirs != kind as u8 {
            return Err(Error::Mismatch {
                proc: from,
                theirs: Kind::name_of(theirs),
                ours: kind.name(),
            });
        }
        self.values_taken[from as usize] = number;
        // Told half as often as there is room, so that the sender seldom waits.
        if number.is_multiple_of(CELLS / 2) {
            let taken = self.layout.taken(self.job.proc);
            self.send_words(from, taken, [number])?;
        }
        Ok(value)
    }

    /// Combines a value of each processor, in the order of their numbers, on processor 0; the
    /// others have a part of it. Along a binomial tree.
    pub(crate) fn reduce_to_first(
        &mut self,
        kind: Kind,
        mut value: u64,
        combine: &dyn Fn(u64, u64) -> u64,
    ) -> Result<u64, Error> {
        let (procs, proc) = (self.job.procs, self.job.proc);
        let mut distance = 1;
        while distance < procs {
            if proc & distance != 0 {
                self.send_value(proc - distance, kind, value)?;
                break;
            }
            if proc + distance < procs {
                let others = self.take_value(proc + distance, kind)?;
                value = combine(value, others);
            }
            distance *= 2;
        }
        Ok(value)
    }

    /// Gives a value of one processor to all. Along a binomial tree.
    pub(crate) fn spread_from(
        &mut self,
        kind: Kind,
        root: u32,
        mut value: u64,
    ) -> Result<u64, Error> {
        let (procs, proc) = (self.job.procs, self.job.proc);
        // As if the root were processor 0.
        let own = (proc + procs - root) % procs;
        let number = |of: u32| (of + root) % procs;
        // One more than the distance of the farthest that this one tells.
        let mut distance = match own {
            0 => procs.next_power_of_two(),
            _ => own & own.wrapping_neg(),
        };
        if own != 0 {
            value = self.take_value(number(own - distance), kind)?;
        }
        while distance > 1 {
            distance /= 2;
            if own + distance < procs {
                self.send_value(number(own + distance), kind, value)?;
            }
        }
        Ok(value)
    }

    /// Combines the values of this processor and of those before it.
    pub(crate) fn scan_values(
        &mut self,
        mut value: u64,
        combine: &dyn Fn(u64, u64) -> u64,
    ) -> Result<u64, Error> {
        let (procs, proc) = (self.job.procs, self.job.proc);
        let mut distance = 1;
        while distance < procs {
            if proc + distance < procs {
                self.send_value(proc + distance, Kind::Scan, value)?;
            }
            if proc >= distance {
                let before = self.take_value(proc - distance, Kind::Scan)?;
                value = combine(before, value);
            }
            distance *= 2;
        }
        Ok(value)
    }
}
