//! A processor of a job: its start and its end.

use hamlyn::engine::slot::Rights;
use hamlyn::host::{Address, ConnectError, Supply};
use hamlyn::region::SharedOptions;
use hamlyn::service::{Service, ServiceOptions};
use hamlyn::{Access, Area, Holders, Host, Manager, ManagerOptions, Message, NewSlot, Slot, Wait};

use crate::control::{self, ENTERED, Layout};
use crate::error::Error;
use crate::memory::{Description, OwnSegment, SEGMENTS_MAX, Shared, SharedMemory, Span};
use crate::peer::Peer;
use crate::procedure::{ATOMIC_ITEM, REPLY_BYTES_MAX, REQUEST_BYTES_MAX};
use crate::symmetric_heap::SymmetricHeap;
use crate::waiting::Spins;
use hamlyn_job::{Job, Placement};

/// The item under which a processor offers its description.
pub(crate) const DESCRIPTION_ITEM: &str = "splitc";
/// Atomic procedures that a processor may have asked another for without an answer.
pub(crate) const CALLS_MAX: u16 = 8;
/// Of so many polls, one looks for packets where all memory is reached directly: they bring the
/// losses of processors.
const DIRECT_POLLS_PER_LOOK: u32 = 64;
/// Jobs of so many processors connect all of them at the start, larger ones as needed.
const CONNECTED_AT_START_MAX: u32 = 64;

/// What the runtime asks of its program.
pub trait Program<H: Host>: Sized {
    /// Stores the bytes of a completed get at that place of the program's own memory, which the get
    /// named.
    fn deliver(&mut self, to: u64, bytes: &[u8]);

    /// Carries out an atomic procedure on the value at `place` of this processor, and fills
    /// `result`. May read, write, put and store; nothing that waits for others. An error is told to
    /// the processor that asked.
    fn procedure(
        runtime: &mut Splitc<H, Self>,
        procedure: u64,
        place: u64,
        arguments: &[u8],
        result: &mut [u8],
    ) -> Result<(), String>;
}

/// With what a processor starts.
#[derive(Debug)]
pub struct Setup<P> {
    /// Its part in the job.
    pub job: Job,
    /// What it shares, 1 to 4 stretches that do not overlap.
    pub memory: Vec<SharedMemory>,
    /// Where in it spread arrays lie: the same places on all processors.
    pub spread_places: std::ops::Range<u64>,
    /// The program.
    pub program: P,
}

/// A processor of a job, as its program has it. It belongs to one thread.
pub struct Splitc<H: Host, P: Program<H>> {
    pub(crate) manager: Manager<H>,
    pub(crate) job: Job,
    pub(crate) program: P,
    pub(crate) segments: Vec<OwnSegment>,
    pub(crate) control: Area,
    /// Open as long as the runtime is there.
    _control_slot: Slot,
    pub(crate) layout: Layout,
    pub(crate) peers: Vec<Option<Box<Peer<H>>>>,
    /// Those that have operations under way; each once.
    pub(crate) busy: Vec<u32>,
    /// Atomic procedures that others ask for; taken out while one runs.
    pub(crate) service: Option<Service<H>>,
    pub(crate) request: Vec<u8>,
    pub(crate) result: Vec<u8>,
    pub(crate) is_in_procedure: bool,
    /// Collective operations entered.
    pub(crate) entered: u64,
    pub(crate) barriers: u64,
    /// Values of collective operations that were sent to each processor, and taken of it.
    pub(crate) values_sent: Vec<u64>,
    pub(crate) values_taken: Vec<u64>,
    /// Bytes stored here that a wait for stores has accounted for.
    pub(crate) stores_consumed_bytes: u64,
    /// Bytes of stores that were sent in packets.
    pub(crate) stores_sent_bytes: u64,
    pub(crate) spread_heap: SymmetricHeap,
    /// On processor 0: arrays that one processor allocates for all.
    pub(crate) lone_heap: SymmetricHeap,
    pub(crate) spread_room_bytes: u64,
    /// The processors that were lost, and why.
    pub(crate) lost: Vec<(u32, String)>,
    pub(crate) is_finishing: bool,
    pub(crate) accesses: u32,
    polls: u32,
    /// Whether processors of this host reach each other's memory directly.
    pub(crate) is_direct: bool,
    /// Whether that is so of all processors of the job.
    pub(crate) is_all_direct: bool,
    /// Requests of each other processor that were served through memory.
    pub(crate) rings_served: Vec<u64>,
    pub(crate) spins: Spins,
}

/// Options of the manager of a processor of that job.
pub fn manager_options(job: &Job) -> ManagerOptions {
    // Each other processor has a lane of calls here, and this one a lane at each.
    let lanes = 2 * (usize::from(CALLS_MAX) + 2) * job.procs as usize;
    ManagerOptions {
        queue_entries: (lanes + 64).next_power_of_two().clamp(4096, 1 << 20),
        strategy: job.strategy,
        ..ManagerOptions::default()
    }
}

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Starts this processor, whose manager was opened with [`manager_options`] and the name
    /// [`Job::interface_name`] says. Returns when all processors have started.
    pub fn start(manager: Manager<H>, setup: Setup<P>) -> Result<Self, Error> {
        let Setup {
            job,
            memory,
            spread_places,
            program,
        } = setup;
        if memory.is_empty() || memory.len() > SEGMENTS_MAX {
            return Err(Error::BadOperation {
                what: "a processor shares 1 to 4 stretches of memory",
            });
        }
        let is_direct = job.placement == Placement::Direct && job.has_near_peers();
        let layout = Layout::new(job.procs, is_direct);
        let mut interface = manager.session();
        let control = match is_direct {
            true => Area::shared(SharedOptions::sparse(layout.length_bytes()))?,
            false => interface.allocate(layout.length_bytes())?,
        };
        let control_slot = interface.open_slot(NewSlot::new(&control).rights(Rights::ALL))?;
        let mut segments = Vec::new();
        for shared in memory {
            let span = Span {
                start: shared.start,
                length_bytes: shared.length_bytes,
            };
            let new = NewSlot::new(&shared.area).range(0..shared.length_bytes);
            let entries = usize::try_from(job.procs).unwrap_or(1);
            let new = new.rights(Rights::ALL).counting_stores(entries);
            let slot = interface.open_slot(new)?;
            let area = shared.area;
            segments.push(OwnSegment { span, area, slot });
        }
        drop(interface);
        let service = manager.bind_service(
            ATOMIC_ITEM,
            ServiceOptions {
                request_bytes: REQUEST_BYTES_MAX as u32,
                reply_bytes: REPLY_BYTES_MAX as u32,
                outstanding: CALLS_MAX,
                clients: u16::try_from(job.procs).unwrap_or(u16::MAX),
            },
        )?;
        let procs = job.procs as usize;
        let (spread_heap, lone_heap) = crate::allocation::heaps(&spread_places);
        let mut runtime = Self {
            manager,
            program,
            segments,
            control,
            _control_slot: control_slot,
            layout,
            peers: (0..procs).map(|_| None).collect(),
            busy: Vec::new(),
            service: Some(service),
            request: Vec::new(),
            result: Vec::new(),
            is_in_procedure: false,
            entered: 0,
            barriers: 0,
            values_sent: vec![0; procs],
            values_taken: vec![0; procs],
            stores_consumed_bytes: 0,
            stores_sent_bytes: 0,
            spread_heap,
            lone_heap,
            spread_room_bytes: spread_places.end.saturating_sub(spread_places.start),
            lost: Vec::new(),
            is_finishing: false,
            accesses: 0,
            polls: 0,
            is_direct,
            is_all_direct: is_direct && (0..job.procs).all(|proc| job.is_near(proc)),
            rings_served: vec![0; procs],
            spins: Spins::of(&job),
            job,
        };
        runtime.publish()?;
        if runtime.job.procs <= CONNECTED_AT_START_MAX {
            for step in 1..runtime.job.procs {
                // Not all to one at the same time.
                let proc = (runtime.job.proc + step) % runtime.job.procs;
                runtime.peer(proc)?;
            }
        }
        runtime.start_barrier()?;
        Ok(runtime)
    }

    /// Tells the others what this processor shares. Only now do they find it, when everything is
    /// ready.
    fn publish(&mut self) -> Result<(), Error> {
        let mut interface = self.manager.session();
        let is_direct = self.is_direct;
        let mut share = |slot: &Slot| -> Result<Shared, Error> {
            Ok(match is_direct {
                // It lasts as long as the slot, which is never closed.
                true => {
                    let all = 0..slot.length_bytes();
                    let region = interface.share(slot, all, Access::Writable, Holders::Linked);
                    Shared::Region(region?.ticket())
                }
                false => {
                    let ticket = slot.fast_ticket(0, slot.length_bytes());
                    Shared::Sent(ticket.map_err(hamlyn::SendError::from)?)
                }
            })
        };
        let mut segments = Vec::new();
        for segment in &self.segments {
            segments.push((segment.span, share(&segment.slot)?));
        }
        let description = Description {
            procs: self.job.procs,
            control: share(&self._control_slot)?,
            segments,
        };
        interface.offer(DESCRIPTION_ITEM, Supply::Always, &description.to_bytes())?;
        Ok(())
    }

    /// Ends this processor's part, when all others have come to their end, and closes its
    /// interface.
    pub fn finish(mut self) -> Result<P, Error> {
        self.end()?;
        Ok(self.program)
    }

    /// The same, but leaves everything open: for programs whose stack lies in the memory that they
    /// share. Nothing else may be called afterwards.
    pub fn end(&mut self) -> Result<(), Error> {
        self.sync()?;
        self.end_barrier()?;
        // What this processor sent last may be what another waits for.
        self.manager.flush(Wait::millis(1000))?;
        let is_between_hosts = {
            let session = self.manager.session();
            let node = session.identity().node;
            session
                .peers()
                .any(|(_, peer)| peer.destination.node != node)
        };
        if is_between_hosts {
            // There it may be lost with this process. Those who have it may be gone already.
            let _ = self.manager.fence(Wait::millis(1000));
        }
        Ok(())
    }

    /// Which processor this is (`MYPROC`).
    pub fn proc(&self) -> u32 {
        self.job.proc
    }

    /// How many there are (`PROCS`).
    pub fn procs(&self) -> u32 {
        self.job.procs
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The program.
    pub fn program(&mut self) -> &mut P {
        &mut self.program
    }

    /// The manager, for what a program does beside.
    pub fn manager(&self) -> &Manager<H> {
        &self.manager
    }

    /// Time since an arbitrary start (`get_seconds`).
    pub fn seconds(&self) -> f64 {
        self.now_ns() as f64 / 1e9
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.manager.session().host().now_ns()
    }

    /// Takes what has come, and carries out the atomic procedures that others asked for. Does not
    /// block.
    pub fn poll(&mut self) -> Result<(), Error> {
        self.polls = self.polls.wrapping_add(1);
        if self.is_all_direct && !self.polls.is_multiple_of(DIRECT_POLLS_PER_LOOK) {
            // Others call attention to what they ask for. Packets bring nothing else that a program
            // polls for.
            return self.attend_called();
        }
        self.manager.session().poll();
        self.attend()
    }

    /// Carries out the atomic procedures that others ask for through memory, which the word of
    /// attention tells of. False if nobody asks that way, and this processor must poll.
    #[inline]
    pub fn poll_called(&mut self) -> Result<bool, Error> {
        self.attend_called()?;
        Ok(self.is_direct)
    }

    /// The processor of that number, connected to if it was not.
    pub(crate) fn peer(&mut self, proc: u32) -> Result<&mut Peer<H>, Error> {
        if self.peers[proc as usize].is_none() {
            self.connect(proc)?;
        }
        match &mut self.peers[proc as usize] {
            Some(peer) => Ok(peer),
            None => Err(Error::BadOperation {
                what: "a processor was connected to while it was connected to",
            }),
        }
    }

    #[cold]
    fn connect(&mut self, proc: u32) -> Result<(), Error> {
        let start_timeout = self.job.start_timeout;
        let until_ns = self
            .now_ns()
            .saturating_add(start_timeout.as_nanos() as u64);
        while self.peers[proc as usize].is_none()
            && let Err(why) = self.try_connect(proc)?
        {
            self.attend()?;
            if self.now_ns() >= until_ns {
                return Err(Error::NotStarted {
                    proc,
                    procs: self.job.procs,
                    within: start_timeout,
                    why: why.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Asks a processor for what it shares, and connects to it; why it cannot be reached at
    /// present.
    pub(crate) fn try_connect(&mut self, proc: u32) -> Result<Result<(), ConnectError>, Error> {
        let name = self.job.interface_address(proc);
        let mut interface = self.manager.session();
        let asked = interface.ask(Address::Name(&name), DESCRIPTION_ITEM, Wait::millis(50));
        let bytes = match asked {
            Ok(bytes) => bytes,
            Err(why) => return Ok(Err(why)),
        };
        let description = Description::from_bytes(&bytes)
            .map_err(|bad| Error::OtherProgram { proc, what: bad.0 })?;
        let ticket = description.control.ticket();
        let target = match interface.target(&ticket, Wait::millis(1000)) {
            Ok(target) => target,
            Err(why) => return Ok(Err(why)),
        };
        drop(interface);
        let what = "it is a processor of a job of another size";
        if description.procs != self.job.procs {
            return Err(Error::OtherProgram { proc, what });
        }
        let theirs = description.segments.iter().map(|(span, _)| *span);
        if !theirs.eq(self.segments.iter().map(|segment| segment.span)) {
            let what = "its memory lies at other addresses: link the program with -no-pie, \
                and give all processors as much memory";
            return Err(Error::OtherProgram { proc, what });
        }
        let is_direct = self.is_direct && self.job.is_near(proc);
        let me = self.job.proc;
        let peer = Peer::open(&self.manager, target, &description, me, is_direct)?;
        self.peers[proc as usize] = Some(Box::new(peer));
        Ok(Ok(()))
    }

    /// Stores words, two at most, at a place of another processor's control area, or of this one's.
    pub(crate) fn send_words<const WORDS: usize>(
        &mut self,
        to: u32,
        place: u64,
        words: [u64; WORDS],
    ) -> Result<(), Error> {
        const { assert!(WORDS <= 2, "deposits of 16 bytes are not torn") };
        if to == self.job.proc {
            for (index, word) in words.into_iter().enumerate() {
                // The places of the layout lie in the area.
                let _ = self.control.store_u64(place + 8 * index as u64, word);
            }
            return Ok(());
        }
        if let Some(window) = self.peer(to)?.control().window() {
            // Words appear in order.
            for (index, word) in words.into_iter().enumerate() {
                let stored = window.store_u64(place + 8 * index as u64, word);
                debug_assert!(stored.is_ok(), "the places of the layout lie in the area");
            }
            self.wake_if_asleep(to);
            return Ok(());
        }
        let target = self.peer(to)?.control_target();
        let mut bytes = [0; 16];
        for (into, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *into = word.to_le_bytes();
        }
        let message = Message::new(&bytes[..8 * WORDS]).at(place);
        let terminus = self.manager.terminus();
        loop {
            let sent =
                self.manager
                    .session()
                    .send_msg(terminus, &target, &message, Wait::millis(10));
            match sent {
                Ok(_) => return Ok(()),
                Err(hamlyn::SendError::WouldBlock { .. }) => self.attend()?,
                Err(hamlyn::SendError::PeerLost(lost)) => {
                    return Err(Error::Gone {
                        proc: to,
                        why: lost.end.to_string(),
                        what: "a message to it",
                    });
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[inline]
    pub(crate) fn own_word(&self, place: u64) -> u64 {
        control::load(&self.control, place)
    }

    /// This processor enters a collective operation.
    pub(crate) fn enter(&mut self, what: &'static str) -> Result<(), Error> {
        if self.is_in_procedure {
            return Err(Error::InProcedure { what });
        }
        self.entered += 1;
        // The place of the layout lies in the area.
        let _ = self.control.store_u64(ENTERED, self.entered);
        Ok(())
    }
}
