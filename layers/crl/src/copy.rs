//! A region as one node has it: its copy, the operations that are open, and the one that waits.
//! A state machine: no I/O.

use crate::context::{Cx, Mode};
use crate::directory::Directory;
use crate::error::CrlError;
use crate::id::{NodeSet, RegionId};
use crate::memory::Memory;
use crate::message::{Kind, Message, Outgoing};

/// A request for a copy.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) mode: Mode,
    pub(crate) number: u32,
    /// The copy is here.
    has_copy: bool,
    /// Nodes that still have to acknowledge that their copies have ended. Some may do so before
    /// the copy is here.
    awaited: NodeSet,
    acknowledged: NodeSet,
    /// The node that was to pass its copy, if the home says that it is lost.
    suspect: Option<u32>,
}

impl Pending {
    /// Of a node that has the bytes, and waits for the end of other copies.
    pub(crate) fn for_acknowledgements(number: u32, awaited: NodeSet) -> Self {
        Self {
            has_copy: true,
            awaited,
            ..Self::new(Mode::Exclusive, number)
        }
    }

    fn new(mode: Mode, number: u32) -> Self {
        Self {
            mode,
            number,
            has_copy: false,
            awaited: NodeSet::default(),
            acknowledged: NodeSet::default(),
            suspect: None,
        }
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.has_copy && self.awaited.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) id: RegionId,
    pub(crate) memory: Memory,
    /// The number of its bytes, which may be asked while the program has them.
    pub(crate) bytes: usize,
    /// The first of them: they stay where they are.
    pub(crate) start: *mut u8,
    /// Handles of the program.
    pub(crate) mapped: u32,
    /// A number that grows with each of a node's regions that is mapped no more; zero before that.
    pub(crate) unmapped_at: u64,
    /// The home asked, and was told that it is not mapped: it is asked before it is mapped again.
    pub(crate) asks_home: bool,
    /// Operations that are open.
    pub(crate) readers: u32,
    pub(crate) is_writing: bool,
    /// The operation that the program waits for.
    pub(crate) wanted: Option<Mode>,
    /// Why the last one that it waited for failed.
    failure: Option<CrlError>,
    /// The valid copy, with its number. Of the home, the directory says so instead.
    held: Option<(Mode, u32)>,
    pub(crate) pending: Option<Pending>,
    /// A demand of the home that is obeyed when no operation is in its way.
    deferred: Option<Message>,
    /// Bytes that have come of a copy that comes in pieces.
    filled: usize,
    /// At the home.
    pub(crate) directory: Option<Directory>,
}

impl Copy {
    pub(crate) fn new(id: RegionId, memory: Memory, directory: Option<Directory>) -> Self {
        let mut place = memory.borrow_mut();
        let (bytes, start) = (place.as_slice().len(), place.as_mut_slice().as_mut_ptr());
        drop(place);
        Self {
            id,
            memory,
            bytes,
            start,
            mapped: 0,
            unmapped_at: 0,
            asks_home: false,
            readers: 0,
            is_writing: false,
            wanted: None,
            failure: None,
            held: None,
            pending: None,
            deferred: None,
            filled: 0,
            directory,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_writing || self.readers > 0
    }

    /// True if no other node has its bytes.
    #[cfg(test)]
    pub(crate) fn has_exclusive(&self) -> bool {
        let is_coming = |it: &Pending| it.mode == Mode::Exclusive && it.has_copy;
        let holds = self.held.is_some_and(|(mode, _)| mode == Mode::Exclusive);
        self.directory.is_none() && (holds || self.pending.as_ref().is_some_and(is_coming))
    }

    /// Nothing is open or under way here.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_open() && self.pending.is_none()
    }

    /// Begins an operation, or a wait for it: [`is_granted`](Self::is_granted) tells.
    pub(crate) fn start<O: Outgoing>(
        &mut self,
        mode: Mode,
        cx: &mut Cx<'_, O>,
    ) -> Result<(), CrlError> {
        let region = self.id;
        if self.is_writing || (mode == Mode::Exclusive && self.readers > 0) {
            return Err(CrlError::Open { region });
        }
        let node = region.home;
        if cx.lost.contains(node) {
            return Err(CrlError::Lost { region, node });
        }
        self.failure = None;
        self.wanted = Some(mode);
        self.advance(cx);
        Ok(())
    }

    /// True if the operation that the program waits for is open by now.
    pub(crate) fn is_granted(&mut self) -> Result<bool, CrlError> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.wanted.is_none()),
        }
    }

    pub(crate) fn end<O: Outgoing>(
        &mut self,
        mode: Mode,
        cx: &mut Cx<'_, O>,
    ) -> Result<(), CrlError> {
        let region = self.id;
        match mode {
            Mode::Shared if self.readers > 0 => self.readers -= 1,
            Mode::Exclusive if self.is_writing => self.is_writing = false,
            _ => return Err(CrlError::NotOpen { region }),
        }
        self.advance(cx);
        Ok(())
    }

    /// The program waits no longer. The copy may still come.
    pub(crate) fn cancel<O: Outgoing>(&mut self, cx: &mut Cx<'_, O>) {
        self.wanted = None;
        self.advance(cx);
    }

    pub(crate) fn open(&mut self, mode: Mode) {
        self.wanted = None;
        match mode {
            Mode::Shared => self.readers += 1,
            Mode::Exclusive => self.is_writing = true,
        }
    }

    pub(crate) fn fail(&mut self, node: u32) {
        self.pending = None;
        self.filled = 0;
        if self.wanted.take().is_some() {
            let region = self.id;
            self.failure = Some(CrlError::Lost { region, node });
        }
    }

    /// The home says that it knows no such region.
    pub(crate) fn on_no_region(&mut self, number: u32) {
        if self.is_pending(number) && self.wanted.is_some() {
            let region = self.id;
            self.fail(region.home);
            self.failure = Some(CrlError::NoRegion { region });
        }
    }

    /// Does all that can be done by now.
    pub(crate) fn advance<O: Outgoing>(&mut self, cx: &mut Cx<'_, O>) {
        if self.directory.is_some() {
            return self.advance_home(cx);
        }
        if self.pending.as_ref().is_some_and(Pending::is_granted)
            && let Some(granted) = self.pending.take()
        {
            self.held = Some((granted.mode, granted.number));
        }
        if self.pending.is_some() {
            return;
        }
        if let (Some(mode), Some((held, _))) = (self.wanted, self.held)
            && held >= mode
        {
            self.open(mode);
        }
        self.obey(cx);
        if let Some(mode) = self.wanted {
            self.request(mode, cx);
        }
    }

    fn request<O: Outgoing>(&mut self, mode: Mode, cx: &mut Cx<'_, O>) {
        let (kind, held) = match mode {
            Mode::Shared => (Kind::Read, 0),
            Mode::Exclusive => (Kind::Write, self.held.map_or(0, |(_, number)| number)),
        };
        let number = cx.number();
        self.pending = Some(Pending::new(mode, number));
        let message = Message::new(kind, self.id, number).of(0, held);
        cx.send(self.id.home, message);
    }

    fn is_pending(&self, number: u32) -> bool {
        (self.pending.as_ref()).is_some_and(|it| it.number == number && !it.has_copy)
    }

    /// Puts a piece in its place. True if it is the last one.
    pub(crate) fn fill(&mut self, offset: u32, bytes: &[u8]) -> bool {
        let Ok(mut memory) = self.memory.try_borrow_mut() else {
            return false;
        };
        let memory = memory.as_mut_slice();
        let end = self.filled + bytes.len();
        if self.filled != offset as usize || end > memory.len() {
            return false;
        }
        memory[self.filled..end].copy_from_slice(bytes);
        self.filled = if end == memory.len() { 0 } else { end };
        self.filled == 0
    }

    /// A message of the home, or of the node that passes its copy or acknowledges.
    pub(crate) fn receive<O: Outgoing>(
        &mut self,
        from: u32,
        message: &Message,
        bytes: &[u8],
        cx: &mut Cx<'_, O>,
    ) {
        let is_home = from == self.id.home;
        match message.kind {
            Kind::Acknowledge => {
                if let Some(pending) = &mut self.pending
                    && pending.number == message.number
                {
                    pending.acknowledged.insert(from);
                    pending.awaited.remove(from);
                }
            }
            Kind::Shared | Kind::Exclusive => self.on_copy(from, message, bytes, cx),
            Kind::Grant if is_home && self.is_pending(message.number) && self.held.is_some() => {
                self.has_come(message.nodes, cx.lost);
            }
            Kind::Fail if is_home && self.is_pending(message.number) => self.fail(message.node),
            Kind::NoRegion if is_home => self.on_no_region(message.number),
            Kind::Check if is_home && self.is_pending(message.number) => {
                if let Some(pending) = &mut self.pending {
                    pending.suspect = Some(message.node);
                    self.report_stuck(cx);
                }
            }
            Kind::Invalidate | Kind::Fetch | Kind::Pass | Kind::Recall if is_home => {
                self.demand(*message, cx);
            }
            _ => {}
        }
        self.advance(cx);
    }

    fn on_copy<O: Outgoing>(
        &mut self,
        from: u32,
        message: &Message,
        bytes: &[u8],
        cx: &mut Cx<'_, O>,
    ) {
        let is_home = from == self.id.home;
        let mode = match message.kind {
            Kind::Exclusive => Mode::Exclusive,
            _ => Mode::Shared,
        };
        let is_due = self.is_pending(message.number) && !self.is_open();
        let is_mode = (self.pending.as_ref()).is_some_and(|pending| pending.mode == mode);
        if !is_due || !is_mode || (mode == Mode::Shared && !is_home) {
            return;
        }
        self.held = None;
        if self.fill(message.other, bytes) {
            self.has_come(message.nodes, cx.lost);
            if !is_home {
                cx.send(
                    self.id.home,
                    Message::new(Kind::Have, self.id, message.number),
                );
            }
        }
    }

    fn has_come(&mut self, others: NodeSet, lost: NodeSet) {
        if let Some(pending) = &mut self.pending {
            pending.has_copy = true;
            pending.awaited = others.without(pending.acknowledged).without(lost);
        }
    }

    /// Tells the home that a copy will not come, once nothing more can come from that node.
    fn report_stuck<O: Outgoing>(&mut self, cx: &mut Cx<'_, O>) {
        if let Some(pending) = &self.pending
            && !pending.has_copy
            && pending.suspect.is_some_and(|node| cx.lost.contains(node))
        {
            cx.send(
                self.id.home,
                Message::new(Kind::Stuck, self.id, pending.number),
            );
        }
    }

    fn demand<O: Outgoing>(&mut self, demand: Message, cx: &mut Cx<'_, O>) {
        let is_held = self.held.is_some_and(|(_, held)| held == demand.number);
        let is_coming = (self.pending.as_ref()).is_some_and(|it| it.number == demand.number);
        if is_held || is_coming {
            self.deferred = Some(demand);
            self.obey(cx);
        } else {
            refuse(&demand, cx);
        }
    }

    /// Obeys the demand of the home, if no operation is in its way.
    fn obey<O: Outgoing>(&mut self, cx: &mut Cx<'_, O>) {
        let (Some(demand), Some((_, number))) = (self.deferred, self.held) else {
            return;
        };
        let is_blocked = self.is_writing || (self.readers > 0 && demand.kind != Kind::Fetch);
        if demand.number != number || is_blocked {
            return;
        }
        self.deferred = None;
        self.held = None;
        match demand.kind {
            Kind::Fetch => {
                self.held = Some((Mode::Shared, number));
                self.give_back(Kind::Back, number, cx);
            }
            Kind::Pass if !cx.lost.contains(demand.node) => {
                let copy = Message::new(Kind::Exclusive, self.id, demand.other);
                cx.send_copy(demand.node, copy, &self.memory);
            }
            Kind::Pass | Kind::Recall => self.give_back(Kind::Flush, number, cx),
            _ => refuse(&demand, cx),
        }
    }

    fn give_back<O: Outgoing>(&self, kind: Kind, number: u32, cx: &mut Cx<'_, O>) {
        let message = Message::new(kind, self.id, number);
        cx.send_copy(self.id.home, message, &self.memory);
    }

    /// Gives the copy up: its bytes go home, if they may differ there.
    pub(crate) fn flush<O: Outgoing>(&mut self, cx: &mut Cx<'_, O>) -> Result<(), CrlError> {
        if !self.is_idle() {
            let region = self.id;
            return Err(CrlError::Open { region });
        }
        match self.held.take() {
            Some((Mode::Exclusive, number)) => self.give_back(Kind::Flush, number, cx),
            Some((Mode::Shared, number)) => {
                cx.send(self.id.home, Message::new(Kind::Drop, self.id, number));
            }
            None => {}
        }
        Ok(())
    }

    /// A node is lost; it is in the set already.
    pub(crate) fn on_lost<O: Outgoing>(&mut self, node: u32, cx: &mut Cx<'_, O>) {
        if let Some(pending) = &mut self.pending {
            pending.awaited.remove(node);
        }
        if self.directory.is_some() {
            self.home_on_lost(node, cx);
        } else if self.id.home == node {
            self.fail(node);
            self.deferred = None;
        } else {
            self.report_stuck(cx);
        }
        self.advance(cx);
    }
}

/// Answers a demand for a copy that is not here (any more).
pub(crate) fn refuse<O: Outgoing>(demand: &Message, cx: &mut Cx<'_, O>) {
    let region = demand.region;
    match demand.kind {
        Kind::Invalidate => {
            let message = Message::new(Kind::Acknowledge, region, demand.other);
            cx.send(demand.node, message);
        }
        Kind::Recall => cx.send(region.home, Message::new(Kind::Gone, region, demand.number)),
        _ => {}
    }
}
