//! A node: regions of all nodes, and operations of all nodes together.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;
use std::time::Duration;

use hamlyn::Wait;

use crate::collective::Collectives;
use crate::context::{Cx, Mode};
use crate::courier::{Courier, Incoming};
use crate::error::CrlError;
use crate::guard::{Ends, ReadGuard, WriteGuard};
use crate::id::{NODES_MAX, RegionId};
use crate::machine::Machine;
use crate::memory::{Bytes, Memory};
use crate::message::{Kind, Message, Outgoing, WORDS_MAX};
use crate::regions::{RegionHandle, Regions};
use crate::udm::UdmCourier;

/// A wait consists of so many, as one may end early for no reason.
const LOOKS: u32 = 16;

/// Settings of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CrlOptions {
    /// The longest time without a message of any other node after which a wait for them fails, or
    /// none: an operation waits until it is granted, or a node is lost.
    pub patience: Option<Duration>,
    /// Regions of other nodes of which copies stay after they are unmapped.
    pub cached_regions_max: usize,
}

impl Default for CrlOptions {
    fn default() -> Self {
        Self {
            patience: None,
            cached_regions_max: 4096,
        }
    }
}

/// Messages that a node has sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statistics {
    sent: Vec<u64>,
}

impl Statistics {
    /// Of that kind. Each piece of a long one counts.
    pub fn sent(&self, kind: Kind) -> u64 {
        self.sent[kind as usize]
    }

    /// Of all kinds.
    pub fn total(&self) -> u64 {
        self.sent.iter().sum()
    }
}

/// A node of a program. It may be cloned, and stays in its thread.
///
/// A node answers others when it calls the library: when it begins an operation, in any call that
/// waits, and in [`serve`](Self::serve). Others need its regions and copies after its own last operation: a program
/// ends with [`finish`](Self::finish).
pub struct Crl<C: Courier = UdmCourier> {
    shared: Rc<Shared<C>>,
}

pub(crate) struct Shared<C> {
    state: RefCell<State<C>>,
    patience: Option<Duration>,
}

struct State<C> {
    courier: C,
    machine: Machine,
    collectives: Collectives,
    nodes: u32,
    /// The courier can carry nothing any more.
    failure: Option<CrlError>,
}

/// The courier as the state machines see it.
struct Post<'a, C> {
    courier: &'a mut C,
    failure: &'a mut Option<CrlError>,
}

impl<C: Courier> Outgoing for Post<'_, C> {
    fn piece_bytes(&self) -> usize {
        self.courier.piece_bytes()
    }

    fn send(&mut self, to: u32, message: &Message, bytes: &[u8]) {
        let (words, used) = message.words();
        let kind = message.kind as u8;
        if let Err(cause) = self.courier.send(to, kind, &words[..used], bytes) {
            self.failure.get_or_insert(CrlError::Messages { cause });
        }
    }
}

impl<C: Courier> State<C> {
    fn machine(&mut self) -> (&mut Machine, Post<'_, C>) {
        let post = Post {
            courier: &mut self.courier,
            failure: &mut self.failure,
        };
        (&mut self.machine, post)
    }

    fn collective<R>(
        &mut self,
        call: impl FnOnce(&mut Collectives, &mut Cx<'_, Post<'_, C>>) -> R,
    ) -> R {
        let mut post = Post {
            courier: &mut self.courier,
            failure: &mut self.failure,
        };
        call(&mut self.collectives, &mut self.machine.cx(&mut post))
    }

    /// Takes what has come, and waits for that at most so long. False if nothing has.
    fn serve(&mut self, mut wait: Wait) -> Result<bool, CrlError> {
        let mut has_come = false;
        loop {
            let received = self.courier.receive(wait);
            let received = received.map_err(|cause| CrlError::Messages { cause })?;
            match received {
                None => return self.failure.clone().map_or(Ok(has_come), Err),
                Some(Incoming::Lost { node }) => {
                    let (machine, mut post) = self.machine();
                    machine.on_lost(node, &mut post);
                }
                Some(Incoming::Message {
                    from,
                    kind,
                    words,
                    bytes,
                }) => self.receive(from, kind, &words, &bytes),
            }
            has_come = true;
            wait = Wait::Poll;
        }
    }

    fn receive(&mut self, from: u32, kind: u8, words: &[u32; WORDS_MAX], bytes: &[u8]) {
        // Others are none of this version: they have no effect.
        let kind = Kind::ALL.get(usize::from(kind));
        let read = |kind: &Kind| Message::of_words(*kind, words, self.nodes);
        let Some(message) = kind.and_then(read) else {
            return;
        };
        match message.kind {
            Kind::Barrier | Kind::Gather | Kind::Broadcast | Kind::Broken => {
                self.collective(|it, cx| it.receive(from, &message, bytes, cx));
            }
            _ => {
                let (machine, mut post) = self.machine();
                machine.receive(from, &message, bytes, &mut post);
            }
        }
    }
}

impl<C: Courier> Shared<C> {
    fn machine<R>(&self, call: impl FnOnce(&mut Machine, &mut Post<'_, C>) -> R) -> R {
        let mut state = self.state.borrow_mut();
        let (machine, mut post) = state.machine();
        call(machine, &mut post)
    }

    /// A name that no node has given is that of no region.
    fn check_home(&self, region: RegionId) -> Result<(), CrlError> {
        match region.home < self.state.borrow().nodes {
            true => Ok(()),
            false => Err(CrlError::NoRegion { region }),
        }
    }

    /// Serves others until there is a result.
    fn wait_for<T>(
        &self,
        what: &'static str,
        mut result: impl FnMut(&mut State<C>) -> Result<Option<T>, CrlError>,
    ) -> Result<T, CrlError> {
        let state = &mut *self.state.borrow_mut();
        let wait = match self.patience {
            None => Wait::Forever,
            Some(patience) => Wait::For(patience / LOOKS),
        };
        let mut vain_looks = 0;
        loop {
            if let Some(result) = result(state)? {
                return Ok(result);
            }
            vain_looks = if state.serve(wait)? {
                0
            } else {
                vain_looks + 1
            };
            if vain_looks >= LOOKS && self.patience.is_some() {
                return Err(CrlError::TimedOut { what });
            }
        }
    }

    pub(crate) fn start(
        &self,
        region: RegionId,
        mode: Mode,
        what: &'static str,
    ) -> Result<(), CrlError> {
        // Others get their turn also when this node has what it needs.
        self.state.borrow_mut().serve(Wait::Poll)?;
        self.machine(|machine, post| machine.start(region, mode, post))?;
        let granted = self.wait_for(what, |state| {
            Ok(state.machine.is_granted(region)?.then_some(()))
        });
        if granted.is_err() {
            self.machine(|machine, post| machine.cancel(region, post));
        }
        granted
    }

    pub(crate) fn end(&self, region: RegionId, mode: Mode) -> Result<(), CrlError> {
        self.machine(|machine, post| machine.end(region, mode, post))
    }
}

impl<C: Courier> Crl<C> {
    /// A node whose messages that courier carries. Allocates, and does not block.
    ///
    /// # Errors
    ///
    /// More nodes than [`NODES_MAX`], or none with the number of this one.
    pub fn open(courier: C, options: CrlOptions) -> Result<Self, CrlError> {
        let (me, nodes) = (courier.me(), courier.nodes());
        if nodes > NODES_MAX || me >= nodes {
            return Err(CrlError::Nodes { me, nodes });
        }
        let state = State {
            courier,
            machine: Machine::new(me, options.cached_regions_max),
            collectives: Collectives::new(me, nodes),
            nodes,
            failure: None,
        };
        Ok(Self {
            shared: Rc::new(Shared {
                state: RefCell::new(state),
                patience: options.patience,
            }),
        })
    }

    /// Answers other nodes, and waits for that at most so long. False if nothing has come.
    ///
    /// # Errors
    ///
    /// Messages cannot be carried any more.
    pub fn serve(&self, wait: Wait) -> Result<bool, CrlError> {
        self.shared.state.borrow_mut().serve(wait)
    }

    /// The last call of a program: waits until all nodes have made it, and all messages have left.
    /// False if they have not within that time.
    ///
    /// # Errors
    ///
    /// Those of a [`barrier`](Regions::barrier).
    pub fn finish(&self, wait: Wait) -> Result<bool, CrlError> {
        self.barrier()?;
        self.finish_alone(wait)
    }

    /// The last call of a node that ends before others: waits until all of its messages have left.
    /// False if they have not within that time. Its regions are lost.
    ///
    /// # Errors
    ///
    /// Messages cannot be carried any more.
    pub fn finish_alone(&self, wait: Wait) -> Result<bool, CrlError> {
        let flushed = self.shared.state.borrow_mut().courier.flush(wait);
        flushed.map_err(|cause| CrlError::Messages { cause })
    }

    /// Messages sent so far.
    pub fn statistics(&self) -> Statistics {
        let sent = self.shared.state.borrow().machine.sent.clone();
        Statistics { sent }
    }

    fn meet_if_due(&self) -> Result<(), CrlError> {
        let is_due = self.shared.state.borrow().collectives.is_barrier_due();
        if is_due { self.barrier() } else { Ok(()) }
    }

    /// The values of all nodes, by node.
    fn gather(&self, value: f64) -> Result<Vec<f64>, CrlError> {
        let mut state = self.shared.state.borrow_mut();
        state.collective(|it, cx| it.begin_gather(value, cx))?;
        drop(state);
        self.shared.wait_for("a reduction", |state| {
            state.collective(|it, cx| it.gathered(cx))
        })
    }
}

impl<C: Courier> Regions for Crl<C> {
    type Region = Region<C>;

    /// The number of this node.
    fn me(&self) -> u32 {
        self.shared.state.borrow().courier.me()
    }

    /// The number of nodes.
    fn nodes(&self) -> u32 {
        self.shared.state.borrow().nodes
    }

    /// Creates a region of zeros, whose home is this node. Sends nothing. Allocates its bytes.
    ///
    /// # Errors
    ///
    /// More than [`REGION_BYTES_MAX`](crate::REGION_BYTES_MAX), or no memory.
    fn create(&self, bytes: usize) -> Result<RegionId, CrlError> {
        self.shared.machine(|machine, _| machine.create(bytes))
    }

    /// Destroys a region, from any node. Blocks until its home and all nodes that have had it
    /// mapped have answered.
    ///
    /// # Errors
    ///
    /// It does not exist, a node has it mapped, its home is lost, or not in time.
    fn destroy(&self, region: RegionId) -> Result<(), CrlError> {
        self.shared.check_home(region)?;
        self.shared
            .machine(|machine, post| machine.destroy(region, post));
        self.shared
            .wait_for("destroying", |state| state.machine.answer().transpose())
    }

    /// Maps a region. A region that is mapped already, or was before and is cached, takes no
    /// message; another one is allocated, and blocks until its home has answered.
    ///
    /// # Errors
    ///
    /// It does not exist, its home is lost, no memory, or not in time.
    fn map(&self, region: RegionId) -> Result<Region<C>, CrlError> {
        let shared = &self.shared;
        shared.check_home(region)?;
        shared.machine(|machine, post| machine.map(region, post));
        shared.wait_for("mapping", |state| state.machine.answer().transpose())?;
        let memory = shared.state.borrow().machine.memory(region);
        let (memory, bytes, start) = memory.ok_or(CrlError::NoRegion { region })?;
        Ok(Region {
            shared: Rc::clone(shared),
            id: region,
            bytes,
            memory,
            start,
        })
    }

    /// Blocks until all nodes have called this.
    ///
    /// # Errors
    ///
    /// A node is lost, or not in time, after which no other operation of all nodes is possible.
    fn barrier(&self) -> Result<(), CrlError> {
        let shared = &self.shared;
        let mut state = shared.state.borrow_mut();
        state.collective(|it, cx| it.begin_barrier(cx))?;
        drop(state);
        shared.wait_for("a barrier", |state| {
            let is_past = state.collective(|it, cx| it.is_past_barrier(cx))?;
            Ok(is_past.then_some(()))
        })
    }

    /// Sends bytes to all other nodes, which receive them as their next broadcast. Blocks only now
    /// and then, until the others have received earlier ones.
    ///
    /// # Errors
    ///
    /// More than [`REGION_BYTES_MAX`](crate::REGION_BYTES_MAX); otherwise like
    /// [`barrier`](Regions::barrier).
    fn broadcast(&self, bytes: &[u8]) -> Result<(), CrlError> {
        let mut state = self.shared.state.borrow_mut();
        state.collective(|it, cx| it.broadcast(bytes, cx))?;
        drop(state);
        self.meet_if_due()
    }

    /// Receives the next broadcast. Blocks until it is there.
    ///
    /// # Errors
    ///
    /// It has another length; otherwise like [`barrier`](Regions::barrier).
    fn receive_broadcast(&self, bytes: &mut [u8]) -> Result<(), CrlError> {
        let received = self.shared.wait_for("a broadcast", |state| {
            state.collective(|it, cx| it.broadcast_received(cx))
        })?;
        self.meet_if_due()?;
        if received.len() != bytes.len() {
            return Err(CrlError::BroadcastLength {
                bytes: received.len(),
                expected_bytes: bytes.len(),
            });
        }
        bytes.copy_from_slice(&received);
        Ok(())
    }

    /// The sum of a value of each node, the same bits on each: added in the order of nodes. Blocks
    /// like [`barrier`](Regions::barrier), and has its errors.
    fn reduce_add(&self, value: f64) -> Result<f64, CrlError> {
        let values = self.gather(value)?;
        Ok(values.into_iter().fold(-0.0, |sum, value| sum + value))
    }

    /// The least of a value of each node. A value that is not a number is passed over. Blocks like
    /// [`barrier`](Regions::barrier), and has its errors.
    fn reduce_min(&self, value: f64) -> Result<f64, CrlError> {
        let values = self.gather(value)?;
        Ok(values.into_iter().fold(f64::NAN, f64::min))
    }

    /// The greatest of a value of each node; see [`reduce_min`](Regions::reduce_min).
    fn reduce_max(&self, value: f64) -> Result<f64, CrlError> {
        let values = self.gather(value)?;
        Ok(values.into_iter().fold(f64::NAN, f64::max))
    }
}

impl<C: Courier> Clone for Crl<C> {
    fn clone(&self) -> Self {
        let shared = Rc::clone(&self.shared);
        Self { shared }
    }
}

impl<C: Courier> std::fmt::Debug for Crl<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crl").finish_non_exhaustive()
    }
}

/// A mapped region. Its drop unmaps it; this node's copy stays cached.
///
/// Whole operations are sequentially consistent: all nodes see all of them in one order, in which
/// those of each node have their own order.
pub struct Region<C: Courier = UdmCourier> {
    pub(crate) shared: Rc<Shared<C>>,
    pub(crate) id: RegionId,
    bytes: usize,
    memory: Memory,
    pub(crate) start: *mut u8,
}

impl<C: Courier> RegionHandle for Region<C> {
    /// Its name.
    fn id(&self) -> RegionId {
        self.id
    }

    /// The number of its bytes.
    fn bytes(&self) -> usize {
        self.bytes
    }

    /// Begins a reading operation. Any number of them are open at a time. Without a valid copy it
    /// blocks until one has come.
    ///
    /// # Errors
    ///
    /// This node is writing; the region was lost with a node; or not in time.
    fn read(&self) -> Result<ReadGuard<'_, Self>, CrlError> {
        self.shared.start(self.id, Mode::Shared, "reading")?;
        let bytes: Ref<'_, Bytes> = self.memory.borrow();
        Ok(ReadGuard::new(bytes, self))
    }

    /// Begins a writing operation, beside which no other one is open on any node. Without an
    /// exclusive copy it blocks until one has come and all others have ended.
    ///
    /// # Errors
    ///
    /// This node is reading or writing; the region was lost with a node; or not in time.
    fn write(&self) -> Result<WriteGuard<'_, Self>, CrlError> {
        self.shared.start(self.id, Mode::Exclusive, "writing")?;
        let bytes: RefMut<'_, Bytes> = self.memory.borrow_mut();
        Ok(WriteGuard::new(bytes, self))
    }

    /// Gives this node's copy up, and sends it home if it is the only one: others need not ask for
    /// it any more. Does not block.
    ///
    /// # Errors
    ///
    /// An operation is open on this node, or under way as it was not granted in time.
    fn flush(&self) -> Result<(), CrlError> {
        self.shared
            .machine(|machine, post| machine.flush(self.id, post))
    }
}

impl<C: Courier> Ends for Region<C> {
    fn end_read(&self) {
        // A guard ends what it began.
        let _ = self.shared.end(self.id, Mode::Shared);
    }

    fn end_write(&self) {
        let _ = self.shared.end(self.id, Mode::Exclusive);
    }
}

impl<C: Courier> std::fmt::Debug for Region<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut region = f.debug_struct("Region");
        region.field("id", &self.id).field("bytes", &self.bytes);
        region.finish_non_exhaustive()
    }
}

impl<C: Courier> Drop for Region<C> {
    fn drop(&mut self) {
        self.shared
            .machine(|machine, post| machine.unmap(self.id, post));
    }
}
