//! Two associations and a bad network between them, in virtual time, and a checker that knows what
//! was offered.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test includes it and uses its part"
)]

pub mod checker;
pub mod directed;
pub mod message;
pub mod random;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{
    Association, CloseReason, Incoming, NackReason, Packets, ReceiveToken, Settings, Suspended,
    answer_not_resident,
};

use checker::Checker;
use message::{Message, message};
use random::Random;

/// What goes wrong, how often in a thousand, and what the two ends are like.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub settings: Settings,
    pub loss: u32,
    pub duplicates: u32,
    pub slow: u32,
    pub refusals: u32,
    pub nacks: u32,
    /// Frames whose packets are taken only later.
    pub late: u32,
    /// Events, and how often one is each of these.
    pub events: u32,
    pub cuts: u32,
    pub suspensions: u32,
    pub restarts: u32,
    pub ends: u32,
}

impl Plan {
    /// A plan of that seed: any mixture.
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5EED);
        let mut some = |most: u64| {
            let on = random.chance(600);
            if on { random.below(most) as u32 } else { 0 }
        };
        let (loss, duplicates, slow) = (some(201), some(150), some(300));
        let (refusals, nacks, late) = (some(200), some(200), some(300));
        let (cuts, suspensions, restarts, ends) = (some(40), some(40), some(10), some(4));
        let channels = [1, 2, 5, 64, 200][random.below(5) as usize];
        let frame_bytes = [256, 300, 700, 1_400][random.below(4) as usize];
        let settings = Settings {
            channels,
            frame_bytes,
            paths: [1, 1, 2, 4][random.below(4) as usize],
            buffer_bytes_max: Settings::one_buffer_bytes(frame_bytes)
                * (2 + random.below(100) as usize),
            ready_frames_max: 1 + random.below(20) as u16,
            eager_frames: 1 + random.below(6) as u16,
            acknowledge_frames: 1 + random.below(20) as u16,
            ..quick()
        };
        Self {
            seed,
            settings,
            loss,
            duplicates,
            slow,
            refusals,
            nacks,
            late,
            events: 150 + random.below(250) as u32,
            cuts,
            suspensions,
            restarts,
            ends,
        }
    }
}

/// Settings with which little time passes.
pub fn quick() -> Settings {
    Settings {
        no_answer_ns: 3_000_000_000,
        no_progress_ns: 20_000_000_000,
        resend_initial_ns: 2_000_000,
        resend_min_ns: 500_000,
        resend_max_ns: 20_000_000,
        not_ready_backoff_ns: 100_000,
        delay_target_ns: 100_000,
        ..Settings::default()
    }
}

/// A frame in flight.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Flying {
    at_ns: u64,
    number: u64,
    to: usize,
    path: u8,
    /// Which associations it belongs to: a carrier drops what belongs to another.
    incarnation: u64,
    bytes: Vec<u8>,
}

/// One end.
pub struct End {
    pub association: Option<Association>,
    saved: Option<(Suspended, u64)>,
    /// Frames that were given out, until when, with their bytes.
    token: Vec<(u64, ReceiveToken, Vec<u8>)>,
    wants_suspend: bool,
}

impl End {
    fn new(settings: Settings) -> Self {
        Self {
            association: Some(Association::new(settings).expect("good settings")),
            saved: None,
            token: Vec::new(),
            wants_suspend: false,
        }
    }
}

/// Both ends, and what is between them.
pub struct World {
    pub plan: Plan,
    pub now_ns: u64,
    pub ends: [End; 2],
    pub checker: Checker,
    pub random: Random,
    flying: BinaryHeap<Reverse<Flying>>,
    number: u64,
    incarnation: u64,
    /// Until when each path is cut, in each direction.
    cut_ns: BTreeMap<(usize, u8), u64>,
    next: u64,
    pub frames: u64,
    /// Associations that were unloaded, and of these, with frames that waited.
    pub suspended: (u64, u64),
    is_calm: bool,
}

/// Or the first thing that was wrong.
pub type Checked<T = ()> = Result<T, String>;

/// Steps after the last event in which everything must have come to an end.
const LAST_STEPS: u64 = 400_000;

impl World {
    pub fn new(plan: Plan) -> Self {
        let settings = plan.settings;
        Self {
            now_ns: 1 + plan.seed % 7 * 40_000_000_000,
            ends: [End::new(settings), End::new(settings)],
            checker: Checker::default(),
            random: Random::new(plan.seed),
            flying: BinaryHeap::new(),
            number: 0,
            incarnation: 0,
            cut_ns: BTreeMap::new(),
            next: 0,
            frames: 0,
            suspended: (0, 0),
            is_calm: false,
            plan,
        }
    }

    /// Plays the plan to its end.
    pub fn run(plan: Plan) -> Checked<World> {
        let mut world = World::new(plan);
        for _ in 0..world.plan.events {
            world.event()?;
            let steps = world.random.below(12);
            for _ in 0..steps {
                world.step()?;
            }
        }
        world.calm_down()?;
        Ok(world)
    }

    /// Plays the plan, and then nothing arrives any more, for ever.
    pub fn run_into_silence(plan: Plan) -> Checked<World> {
        let mut world = World::new(plan);
        for _ in 0..world.plan.events {
            world.event()?;
            let steps = world.random.below(12);
            for _ in 0..steps {
                world.step()?;
            }
        }
        world.finish(u64::MAX)?;
        Ok(world)
    }

    /// Nothing goes wrong any more, and everything must come to an end.
    pub fn calm_down(&mut self) -> Checked {
        self.finish(0)
    }

    fn finish(&mut self, cut_ns: u64) -> Checked {
        self.is_calm = true;
        for path in 0..self.plan.settings.paths {
            self.cut_ns.insert((0, path), cut_ns);
            self.cut_ns.insert((1, path), cut_ns);
        }
        for at in 0..2 {
            self.ends[at].wants_suspend = false;
            self.load(at);
            if let Some(association) = &mut self.ends[at].association {
                association.cancel_suspend();
                association.flush();
            }
        }
        for _ in 0..LAST_STEPS {
            self.step()?;
            if self.is_over() {
                return self.checker.end();
            }
        }
        Err(format!("no end at {} ns: {}", self.now_ns, self.describe()))
    }

    fn describe(&self) -> String {
        let of = |end: &End| {
            end.association.as_ref().map(|association| {
                format!(
                    "outstanding {} idle {} close reason {:?} deadline {:?} {:?}",
                    association.outstanding(),
                    association.is_idle(),
                    association.close_reason(),
                    association.deadline_ns(),
                    association.statistics()
                )
            })
        };
        format!("{:?} | {:?}", of(&self.ends[0]), of(&self.ends[1]))
    }

    fn is_over(&self) -> bool {
        let is_over = |end: &End| {
            end.token.is_empty()
                && end.association.as_ref().is_some_and(|association| {
                    association.is_idle() || association.close_reason().is_some()
                })
        };
        self.ends.iter().all(is_over) && self.flying.is_empty()
    }

    fn event(&mut self) -> Checked {
        let at = self.random.below(2) as usize;
        let draw = self.random.below(1000) as u32;
        let plan = &self.plan;
        let (cuts, suspensions, restarts, ends) =
            (plan.cuts, plan.suspensions, plan.restarts, plan.ends);
        if draw < cuts {
            let path = self.random.below(u64::from(self.plan.settings.paths)) as u8;
            let for_ns = self.random.long([16, 22, 28]);
            let is_all = self.random.chance(300);
            for other in 0..self.plan.settings.paths {
                if is_all || other == path {
                    self.cut_ns.insert((at, other), self.now_ns + for_ns);
                    if self.random.chance(700) {
                        self.cut_ns.insert((1 - at, other), self.now_ns + for_ns);
                    }
                }
            }
        } else if draw < cuts + suspensions {
            if self.ends[at].saved.is_some() {
                self.load(at);
            } else if let Some(association) = &mut self.ends[at].association {
                association.prepare_suspend();
                self.ends[at].wants_suspend = true;
            }
        } else if draw < cuts + suspensions + restarts {
            self.restart(at)?;
        } else if draw < cuts + suspensions + restarts + ends {
            self.end(at)?;
        } else {
            self.burst(at);
        }
        self.pump(at)
    }

    fn burst(&mut self, at: usize) {
        let Some(association) = &mut self.ends[at].association else {
            return;
        };
        let most = 1 << self.random.below(9);
        for _ in 0..=self.random.below(most) {
            let message = message(self.next, association.payload_max_bytes());
            if message.offer(association, self.random.next()).is_err() {
                break;
            }
            self.checker.offered(self.next, at, message);
            self.next += 1;
        }
        if self.random.chance(500) {
            association.flush();
        }
    }

    /// Offers one packet; whether it was accepted.
    pub fn offer(&mut self, at: usize) -> bool {
        let Some(association) = &mut self.ends[at].association else {
            return false;
        };
        let message = message(self.next, association.payload_max_bytes());
        let is_accepted = message.offer(association, self.next).is_ok();
        if is_accepted {
            self.checker.offered(self.next, at, message);
            self.next += 1;
        }
        is_accepted
    }

    /// An end forgets everything: its carrier shakes hands anew, and the other end hears of it.
    fn restart(&mut self, at: usize) -> Checked {
        self.incarnation += 1;
        self.checker.forgotten(at);
        self.ends[at] = End::new(self.plan.settings);
        let other = 1 - at;
        self.load(other);
        self.ends[other].token.clear();
        if let Some(association) = &mut self.ends[other].association {
            association.fail(CloseReason::PeerRestarted);
        }
        self.fetch(other)?;
        self.ends[other] = End::new(self.plan.settings);
        Ok(())
    }

    /// One end closes, or its carrier gives up; then both begin anew.
    fn end(&mut self, at: usize) -> Checked {
        self.load(at);
        let is_closed = self.random.chance(500);
        if let Some(association) = &mut self.ends[at].association {
            if is_closed {
                association.close();
            } else {
                association.fail(CloseReason::PeerDead);
            }
        }
        self.pump(at)?;
        for _ in 0..self.random.below(30) {
            self.step()?;
        }
        self.fetch(at)?;
        self.restart(1 - at)
    }

    fn load(&mut self, at: usize) {
        let end = &mut self.ends[at];
        if let Some((saved, _)) = end.saved.take() {
            end.association = Some(Association::resume(saved, self.now_ns));
        }
    }

    /// Lets time pass to whatever is next.
    pub fn step(&mut self) -> Checked {
        let flying = self.flying.peek().map(|Reverse(flying)| flying.at_ns);
        let of_end = |end: &End| {
            let deadline = end.association.as_ref().and_then(Association::deadline_ns);
            let token = end.token.iter().map(|(at_ns, ..)| *at_ns).min();
            let load = end.saved.as_ref().map(|(_, at_ns)| *at_ns);
            [deadline, token, load].into_iter().flatten().min()
        };
        let deadlines = self.ends.iter().filter_map(of_end).min();
        let Some(next_ns) = flying.into_iter().chain(deadlines).min() else {
            return Ok(());
        };
        self.now_ns = self.now_ns.max(next_ns);
        while let Some(Reverse(flying)) = self.flying.peek()
            && flying.at_ns <= self.now_ns
        {
            if let Some(Reverse(flying)) = self.flying.pop() {
                self.arrive(flying)?;
            }
        }
        for at in 0..2 {
            let now_ns = self.now_ns;
            let is_due = |at_ns: u64| at_ns <= now_ns;
            if self.ends[at]
                .saved
                .as_ref()
                .is_some_and(|(_, at_ns)| is_due(*at_ns))
            {
                self.load(at);
            }
            while let Some(place) = self.ends[at].token.iter().position(|one| is_due(one.0)) {
                let (_, token, bytes) = self.ends[at].token.swap_remove(place);
                self.take(at, token, &bytes)?;
            }
            self.pump(at)?;
        }
        Ok(())
    }

    fn arrive(&mut self, flying: Flying) -> Checked {
        if flying.incarnation != self.incarnation {
            return Ok(());
        }
        let end = &mut self.ends[flying.to];
        let Some(association) = &mut end.association else {
            let mut answer = [0; 64];
            if let Some(length) = answer_not_resident(self.now_ns, &flying.bytes, &mut answer) {
                let answer = answer[..length].to_vec();
                self.send(flying.to, flying.path, answer);
            }
            return Ok(());
        };
        match association.take_frame(self.now_ns, flying.path, &flying.bytes) {
            Incoming::Nothing => {}
            Incoming::Packets(token) => {
                if !self.is_calm && self.random.chance(self.plan.nacks) {
                    association.nack(self.now_ns, token, NackReason::NoRoom);
                } else if !self.is_calm && self.random.chance(self.plan.late) {
                    let late_ns = self.random.long([14, 20, 24]);
                    end.token.push((self.now_ns + late_ns, token, flying.bytes));
                } else {
                    self.take(flying.to, token, &flying.bytes)?;
                }
            }
        }
        self.pump(flying.to)
    }

    /// Gives the packets of a frame to the interface.
    fn take(&mut self, at: usize, token: ReceiveToken, bytes: &[u8]) -> Checked {
        let Some(association) = &mut self.ends[at].association else {
            return Err("a frame was given out by an association that is not resident".into());
        };
        let mut count = 0;
        for packet in Packets::new(&bytes[token.range()]) {
            let message = checker::seen(&packet);
            if self.random.chance(self.plan.refusals) {
                let why = Refusal::ALL[self.random.below(3) as usize];
                self.checker.refused(1 - at, &message, why)?;
                association.refused(&token, count, why);
            } else {
                self.checker.delivered(1 - at, &message)?;
            }
            count += 1;
        }
        if count != token.count() {
            return Err(format!("{count} packets in a frame of {}", token.count()));
        }
        association.taken(self.now_ns, token);
        Ok(())
    }

    /// Sends whatever an end has to send, and fetches what comes back.
    pub fn pump(&mut self, at: usize) -> Checked {
        let mut bytes = vec![0; self.plan.settings.frame_bytes];
        let now_ns = self.now_ns;
        let mut sent = 0;
        while let Some(association) = &mut self.ends[at].association {
            let may_go = association.may_go_now(now_ns);
            let Some(outgoing) = association.next_frame(now_ns, &mut bytes) else {
                break;
            };
            if !may_go {
                return Err(format!("{outgoing:?}, though nothing was due"));
            }
            sent += 1;
            if sent > 5_000 {
                return Err("frames without end at one time".into());
            }
            let frame = bytes[..outgoing.length_bytes].to_vec();
            self.send(at, outgoing.path, frame);
        }
        self.fetch(at)?;
        let end = &mut self.ends[at];
        if let Some(association) = &mut end.association {
            if let Some(deadline_ns) = association.deadline_ns()
                && deadline_ns <= now_ns
            {
                return Err(format!(
                    "a deadline {deadline_ns} before {now_ns} with nothing to send: {}",
                    self.describe()
                ));
            }
            if end.wants_suspend && association.can_suspend() {
                end.wants_suspend = false;
                if let Some(association) = end.association.take() {
                    let saved = association
                        .suspend()
                        .map_err(|_| "it may not be suspended")?;
                    let for_ns = self.random.below(1 << 24);
                    self.suspended.0 += 1;
                    self.suspended.1 += u64::from(saved.frame_bytes() > 0);
                    end.saved = Some((saved, now_ns + for_ns));
                }
            }
        }
        Ok(())
    }

    fn fetch(&mut self, at: usize) -> Checked {
        if let Some(association) = &mut self.ends[at].association {
            while let Some(returned) = association.next_return() {
                self.checker.returned(at, &returned)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, from: usize, path: u8, bytes: Vec<u8>) {
        self.frames += 1;
        let is_cut = self.cut_ns.get(&(from, path));
        if is_cut.is_some_and(|&until_ns| self.now_ns < until_ns) {
            return;
        }
        let mut bytes = bytes;
        // Frames of a batch are made equally long; and one that is malformed at its end is none.
        if self.random.chance(300) {
            let padding = self.random.below(40) as usize;
            let length = (bytes.len() + padding).min(self.plan.settings.frame_bytes);
            bytes.resize(length, 0);
        } else if !self.is_calm && self.random.chance(10) {
            bytes.extend([0x80; 3]);
        }
        let copies = 1 + usize::from(!self.is_calm && self.random.chance(self.plan.duplicates));
        for _ in 0..copies {
            if !self.is_calm && self.random.chance(self.plan.loss) {
                continue;
            }
            let mut delay_ns = 10_000 + self.random.below(3_000) + u64::from(path) * 2_000;
            if !self.is_calm && self.random.chance(self.plan.slow) {
                delay_ns += self.random.long([16, 20, 26]);
            }
            self.number += 1;
            self.flying.push(Reverse(Flying {
                at_ns: self.now_ns + delay_ns,
                number: self.number,
                to: 1 - from,
                path,
                incarnation: self.incarnation,
                bytes: bytes.clone(),
            }));
        }
    }
}

/// A message that is not one of ours.
pub fn number(message: &Message) -> Checked<u64> {
    Message::number(&message.data).ok_or_else(|| "a packet without a number".into())
}
