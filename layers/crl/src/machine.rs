//! All regions of a node: created, mapped, cached, destroyed. A state machine: no I/O.

use std::collections::{BTreeMap, HashMap};

use crate::context::{Cx, Mode};
use crate::copy::{self, Copy};
use crate::directory::{Destroying, Directory};
use crate::error::CrlError;
use crate::id::{NodeSet, RegionId};
use crate::memory::{Bytes, Memory};
use crate::message::{Kind, Message, Outgoing};

/// A question to a region's home, which is its node's last one.
#[derive(Debug)]
struct Call {
    kind: Kind,
    region: RegionId,
    number: u32,
    answer: Option<Result<(), CrlError>>,
}

#[derive(Debug)]
pub(crate) struct Machine {
    me: u32,
    pub(crate) lost: NodeSet,
    copies: HashMap<RegionId, Copy>,
    next_index: u32,
    numbers: u32,
    call: Option<Call>,
    /// Copies that are not mapped, by when that was.
    cached: BTreeMap<u64, RegionId>,
    cached_max: usize,
    unmaps: u64,
    pub(crate) sent: Vec<u64>,
}

/// Calls a method of a copy with its context.
macro_rules! with_copy {
    ($machine:ident, $region:expr, $out:expr, |$copy:ident, $cx:ident| $body:expr) => {{
        let $cx = &mut Cx {
            me: $machine.me,
            lost: $machine.lost,
            out: $out,
            sent: &mut $machine.sent,
            numbers: &mut $machine.numbers,
        };
        let region = $region;
        match $machine.copies.get_mut(&region) {
            Some($copy) => $body,
            None => Err(CrlError::NoRegion { region }),
        }
    }};
}

impl Machine {
    pub(crate) fn new(me: u32, cached_max: usize) -> Self {
        Self {
            me,
            lost: NodeSet::default(),
            copies: HashMap::new(),
            next_index: 0,
            numbers: 0,
            call: None,
            cached: BTreeMap::new(),
            cached_max,
            unmaps: 0,
            sent: vec![0; Kind::ALL.len()],
        }
    }

    pub(crate) fn cx<'a, O>(&'a mut self, out: &'a mut O) -> Cx<'a, O> {
        Cx {
            me: self.me,
            lost: self.lost,
            out,
            sent: &mut self.sent,
            numbers: &mut self.numbers,
        }
    }

    /// A new region of zeros, whose home is this node.
    pub(crate) fn create(&mut self, bytes: usize) -> Result<RegionId, CrlError> {
        let memory = Bytes::new(bytes)?;
        let region = RegionId {
            home: self.me,
            index: self.next_index,
        };
        self.next_index += 1;
        let copy = Copy::new(region, memory, Some(Directory::new()));
        self.copies.insert(region, copy);
        Ok(region)
    }

    /// Maps a region, or begins to ask its home: [`answer`](Self::answer) tells.
    pub(crate) fn map(&mut self, region: RegionId, out: &mut impl Outgoing) {
        let is_lost = self.lost.contains(region.home);
        match self.copies.get_mut(&region) {
            Some(copy) if !copy.asks_home && !is_lost => {
                copy.mapped += 1;
                self.cached.remove(&copy.unmapped_at);
                self.call = None;
            }
            _ => self.ask(Kind::Map, region, out),
        }
    }

    /// Begins to destroy a region, as [`map`](Self::map) begins to map it.
    pub(crate) fn destroy(&mut self, region: RegionId, out: &mut impl Outgoing) {
        self.ask(Kind::Destroy, region, out);
    }

    fn ask(&mut self, kind: Kind, region: RegionId, out: &mut impl Outgoing) {
        let number = self.cx(out).number();
        let node = region.home;
        self.call = Some(Call {
            kind,
            region,
            number,
            answer: (self.lost.contains(node)).then_some(Err(CrlError::Lost { region, node })),
        });
        let message = Message::new(kind, region, number);
        if node != self.me {
            self.cx(out).send(node, message);
        } else if kind == Kind::Destroy && self.copies.contains_key(&region) {
            self.begin_to_destroy(self.me, &message, out);
        } else {
            self.answer_call(number, Err(CrlError::NoRegion { region }));
        }
    }

    /// The answer to the last question, if it is there. None was asked if none was needed.
    pub(crate) fn answer(&mut self) -> Option<Result<(), CrlError>> {
        match &self.call {
            None => Some(Ok(())),
            Some(call) => call.answer.clone(),
        }
    }

    fn answer_call(&mut self, number: u32, answer: Result<(), CrlError>) {
        if let Some(call) = &mut self.call
            && call.number == number
            && call.answer.is_none()
        {
            call.answer = Some(answer);
        }
    }

    /// The memory of a mapped region, the number of its bytes, and the first of them.
    pub(crate) fn memory(&self, region: RegionId) -> Option<(Memory, usize, *mut u8)> {
        let copy = self.copies.get(&region)?;
        Some((copy.memory.clone(), copy.bytes, copy.start))
    }

    /// A handle is gone. The copy stays, as long as there are not too many.
    pub(crate) fn unmap(&mut self, region: RegionId, out: &mut impl Outgoing) {
        let Some(copy) = self.copies.get_mut(&region) else {
            return;
        };
        copy.mapped = copy.mapped.saturating_sub(1);
        if copy.mapped > 0 || copy.directory.is_some() {
            return;
        }
        self.unmaps += 1;
        copy.unmapped_at = self.unmaps;
        self.cached.insert(self.unmaps, region);
        while self.cached.len() > self.cached_max
            && let Some((_, oldest)) = self.cached.pop_first()
        {
            // Bytes that are under way there would come to a copy that is not there.
            let flushed = with_copy!(self, oldest, out, |copy, cx| copy.flush(cx));
            if flushed.is_ok() {
                self.copies.remove(&oldest);
            }
        }
    }

    pub(crate) fn start(
        &mut self,
        region: RegionId,
        mode: Mode,
        out: &mut impl Outgoing,
    ) -> Result<(), CrlError> {
        with_copy!(self, region, out, |copy, cx| copy.start(mode, cx))
    }

    pub(crate) fn is_granted(&mut self, region: RegionId) -> Result<bool, CrlError> {
        let copy = self.copies.get_mut(&region);
        copy.ok_or(CrlError::NoRegion { region })?.is_granted()
    }

    pub(crate) fn cancel(&mut self, region: RegionId, out: &mut impl Outgoing) {
        // A region that is gone has nothing to cancel.
        let _ = with_copy!(self, region, out, |copy, cx| {
            copy.cancel(cx);
            Ok(())
        });
    }

    pub(crate) fn end(
        &mut self,
        region: RegionId,
        mode: Mode,
        out: &mut impl Outgoing,
    ) -> Result<(), CrlError> {
        with_copy!(self, region, out, |copy, cx| copy.end(mode, cx))
    }

    pub(crate) fn flush(
        &mut self,
        region: RegionId,
        out: &mut impl Outgoing,
    ) -> Result<(), CrlError> {
        with_copy!(self, region, out, |copy, cx| copy.flush(cx))
    }

    /// A message of another node.
    pub(crate) fn receive(
        &mut self,
        from: u32,
        message: &Message,
        bytes: &[u8],
        out: &mut impl Outgoing,
    ) {
        if self.lost.contains(from) {
            return;
        }
        let region = message.region;
        let number = message.number;
        let is_home = region.home == self.me;
        let is_from_home = region.home == from;
        match message.kind {
            Kind::Map if is_home => self.on_map(from, message, out),
            Kind::Destroy if is_home && self.copies.contains_key(&region) => {
                self.begin_to_destroy(from, message, out);
            }
            Kind::IsMapped | Kind::IsUnmapped if is_home => {
                if let Some(destroying) = self.destroying(region) {
                    destroying.awaited.remove(from);
                    if message.kind == Kind::IsMapped {
                        destroying.user.get_or_insert(from);
                    }
                    self.try_to_destroy(region, out);
                }
            }
            Kind::Mapped if is_from_home => self.on_mapped(message, out),
            Kind::Destroyed if is_from_home => self.answer_call(number, Ok(())),
            Kind::InUse if is_from_home => {
                let node = message.node;
                self.answer_call(number, Err(CrlError::Mapped { region, node }));
            }
            Kind::AskMapped if is_from_home => self.on_ask_mapped(region, out),
            Kind::Forget if is_from_home => {
                if (self.copies.get(&region)).is_some_and(|copy| copy.mapped == 0) {
                    self.forget(region);
                }
            }
            Kind::Read
            | Kind::Write
            | Kind::Back
            | Kind::Flush
            | Kind::Drop
            | Kind::Have
            | Kind::Gone
            | Kind::Stuck
            | Kind::Destroy
                if is_home =>
            {
                let known = with_copy!(self, region, out, |copy, cx| {
                    copy.home_receive(from, message, bytes, cx);
                    Ok(())
                });
                let is_request = matches!(message.kind, Kind::Read | Kind::Write | Kind::Destroy);
                if known.is_err() && is_request {
                    let none = Message::new(Kind::NoRegion, region, number);
                    self.cx(out).send(from, none);
                }
            }
            kind => {
                if kind == Kind::NoRegion && is_from_home {
                    self.answer_call(number, Err(CrlError::NoRegion { region }));
                }
                let known = with_copy!(self, region, out, |copy, cx| {
                    copy.receive(from, message, bytes, cx);
                    Ok(())
                });
                if known.is_err() && is_from_home {
                    copy::refuse(message, &mut self.cx(out));
                }
            }
        }
    }

    fn on_map(&mut self, from: u32, message: &Message, out: &mut impl Outgoing) {
        let region = message.region;
        let answer = match self.copies.get_mut(&region) {
            Some(copy) => {
                let bytes = copy.bytes;
                if let Some(directory) = &mut copy.directory {
                    directory.known.insert(from);
                    if let Some(destroying) = &mut directory.destroying {
                        destroying.user.get_or_insert(from);
                    }
                }
                Message::new(Kind::Mapped, region, message.number).at(bytes)
            }
            None => Message::new(Kind::NoRegion, region, message.number),
        };
        self.cx(out).send(from, answer);
    }

    fn on_mapped(&mut self, message: &Message, out: &mut impl Outgoing) {
        let region = message.region;
        let is_asked = (self.call.as_ref()).is_some_and(|call| {
            call.kind == Kind::Map && call.number == message.number && call.answer.is_none()
        });
        if !is_asked {
            return;
        }
        if let Some(copy) = self.copies.get_mut(&region) {
            copy.asks_home = false;
            self.map(region, out);
            return;
        }
        let mapped = Bytes::new(message.other as usize).map(|memory| {
            let mut copy = Copy::new(region, memory, None);
            copy.mapped = 1;
            self.copies.insert(region, copy);
        });
        self.answer_call(message.number, mapped);
    }

    fn on_ask_mapped(&mut self, region: RegionId, out: &mut impl Outgoing) {
        let kind = match self.copies.get_mut(&region) {
            Some(copy) if copy.mapped > 0 => Kind::IsMapped,
            Some(copy) => {
                copy.asks_home = true;
                Kind::IsUnmapped
            }
            None => Kind::IsUnmapped,
        };
        self.cx(out)
            .send(region.home, Message::new(kind, region, 0));
    }

    fn forget(&mut self, region: RegionId) {
        if let Some(copy) = self.copies.remove(&region) {
            self.cached.remove(&copy.unmapped_at);
        }
    }

    fn destroying(&mut self, region: RegionId) -> Option<&mut Destroying> {
        let copy = self.copies.get_mut(&region)?;
        copy.directory.as_mut()?.destroying.as_mut()
    }

    /// Asks all nodes that may have it mapped.
    fn begin_to_destroy(&mut self, asker: u32, message: &Message, out: &mut impl Outgoing) {
        let region = message.region;
        let asker = (asker, message.number);
        let Some(copy) = self.copies.get_mut(&region) else {
            return;
        };
        let user = (copy.mapped > 0).then_some(self.me);
        let Some(directory) = &mut copy.directory else {
            return;
        };
        if let Some(destroying) = &mut directory.destroying {
            destroying.askers.retain(|(node, _)| *node != asker.0);
            destroying.askers.push(asker);
            return;
        }
        let awaited = directory.known;
        directory.destroying = Some(Destroying {
            awaited,
            askers: vec![asker],
            user,
        });
        for node in awaited.iter() {
            let message = Message::new(Kind::AskMapped, region, 0);
            self.cx(out).send(node, message);
        }
        self.try_to_destroy(region, out);
    }

    fn try_to_destroy(&mut self, region: RegionId, out: &mut impl Outgoing) {
        let Some(copy) = self.copies.get_mut(&region) else {
            return;
        };
        let user = (copy.mapped > 0).then_some(self.me);
        let Some(directory) = &mut copy.directory else {
            return;
        };
        let known = directory.known;
        let is_answered = |one: &mut Destroying| one.awaited.is_empty();
        let Some(ended) = directory.destroying.take_if(is_answered) else {
            return;
        };
        let user = user.or(ended.user);
        if user.is_none() {
            for node in known.iter() {
                self.cx(out)
                    .send(node, Message::new(Kind::Forget, region, 0));
            }
            self.forget(region);
        }
        for (asker, number) in ended.askers {
            if asker == self.me {
                let answer = user.map_or(Ok(()), |node| Err(CrlError::Mapped { region, node }));
                self.answer_call(number, answer);
                continue;
            }
            let message = match user {
                Some(node) => Message::new(Kind::InUse, region, number).of(node, 0),
                None => Message::new(Kind::Destroyed, region, number),
            };
            self.cx(out).send(asker, message);
        }
    }

    /// A node is lost, and no message of it will come any more.
    pub(crate) fn on_lost(&mut self, node: u32, out: &mut impl Outgoing) {
        if node == self.me || self.lost.contains(node) {
            return;
        }
        self.lost.insert(node);
        if let Some(call) = &mut self.call
            && call.region.home == node
            && call.answer.is_none()
        {
            let region = call.region;
            call.answer = Some(Err(CrlError::Lost { region, node }));
        }
        // In one order, so that one history follows from the same events.
        let mut regions: Vec<RegionId> = self.copies.keys().copied().collect();
        regions.sort();
        for region in regions {
            let _ = with_copy!(self, region, out, |copy, cx| {
                copy.on_lost(node, cx);
                Ok(())
            });
            if let Some(destroying) = self.destroying(region) {
                destroying.awaited.remove(node);
                self.try_to_destroy(region, out);
            }
            // Nothing can be done with it any more.
            let is_cached = |copy: &Copy| copy.mapped == 0;
            if region.home == node && self.copies.get(&region).is_some_and(is_cached) {
                self.forget(region);
            }
        }
    }
}

#[cfg(test)]
mod tests;
