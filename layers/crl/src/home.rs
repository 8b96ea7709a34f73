//! The work of a region's home for all nodes. A state machine: no I/O.
//!
//! The home has valid bytes unless another node has the exclusive copy. Requests are served in
//! their order. One at a time waits for a node that holds the exclusive copy; bytes that are to be
//! written go straight from that node to the next one.

use std::collections::BTreeMap;

use crate::context::{Cx, Mode};
use crate::copy::{Copy, Pending};
use crate::directory::{Holder, Request, State};
use crate::id::NodeSet;
use crate::message::{Kind, Message, Outgoing};

impl Copy {
    /// A message for the directory.
    pub(crate) fn home_receive<O: Outgoing>(
        &mut self,
        from: u32,
        message: &Message,
        bytes: &[u8],
        cx: &mut Cx<'_, O>,
    ) {
        let number = message.number;
        let sender = Holder { node: from, number };
        let Some(directory) = &mut self.directory else {
            return;
        };
        match (message.kind, &mut directory.state) {
            (kind @ (Kind::Read | Kind::Write), _) => directory.enqueue(Request {
                node: from,
                mode: if kind == Kind::Read {
                    Mode::Shared
                } else {
                    Mode::Exclusive
                },
                number,
                held: message.other,
            }),
            (Kind::Back | Kind::Flush, _) => self.on_bytes(sender, message, bytes),
            (Kind::Drop, State::Home(sharers)) => {
                sharers.remove(&from);
            }
            (Kind::Have, State::Passing { to, .. }) if *to == sender => {
                directory.state = State::Held(sender);
                directory.queue.retain(|one| one.node != from);
            }
            (Kind::Gone, State::Recalling { from, lost }) if *from == sender => {
                directory.state = State::Lost(lost.unwrap_or(sender.node));
            }
            (Kind::Stuck, State::Passing { from, to })
                if *to == sender && cx.lost.contains(from.node) =>
            {
                directory.state = State::Lost(from.node);
            }
            _ => {}
        }
        self.advance(cx);
    }

    /// The exclusive copy comes home.
    fn on_bytes(&mut self, sender: Holder, message: &Message, bytes: &[u8]) {
        let Some(directory) = &self.directory else {
            return;
        };
        // A flush may cross a demand for the same copy, and is as good as obeying it.
        let remains = message.kind == Kind::Back;
        let is_expected = directory.holder() == Some(sender)
            && (!remains || matches!(directory.state, State::Fetching(_)));
        if is_expected
            && self.fill(message.other, bytes)
            && let Some(directory) = &mut self.directory
        {
            let sharer = remains.then_some((sender.node, sender.number));
            directory.state = State::Home(sharer.into_iter().collect());
        }
    }

    /// Serves requests, as far as it goes.
    pub(crate) fn advance_home<O: Outgoing>(&mut self, cx: &mut Cx<'_, O>) {
        if let Some(wanted) = self.wanted {
            self.want_at_home(wanted, cx.me);
        }
        while self.advance_once(cx) {}
    }

    /// The home's own operation begins at once, or waits in turn. One that reads beside another one
    /// need not, as a writer that is first may wait for that one.
    fn want_at_home(&mut self, mode: Mode, node: u32) {
        let Some(directory) = &mut self.directory else {
            return;
        };
        let is_at_once = match &directory.state {
            State::Home(_) if mode == Mode::Shared => {
                self.readers > 0 || directory.queue.is_empty()
            }
            State::Home(sharers) => sharers.is_empty() && directory.queue.is_empty(),
            _ => false,
        };
        let is_queued = |one: &Request| one.node == node && one.mode == mode;
        if is_at_once {
            self.open(mode);
        } else if !directory.queue.iter().any(is_queued) {
            let (number, held) = (0, 0);
            directory.enqueue(Request {
                node,
                mode,
                number,
                held,
            });
        }
    }

    /// Serves the first request, or asks the holder for its copy. False if there is nothing to do.
    fn advance_once<O: Outgoing>(&mut self, cx: &mut Cx<'_, O>) -> bool {
        let Some(directory) = &mut self.directory else {
            return false;
        };
        let Some(&first) = directory.queue.front() else {
            return false;
        };
        let is_own = first.node == cx.me;
        match &mut directory.state {
            State::Collecting => {
                let awaits = |pending: &Pending| !pending.is_granted();
                if self.pending.as_ref().is_some_and(awaits) {
                    return false;
                }
                self.pending = None;
                directory.state = State::Home(BTreeMap::new());
                return true;
            }
            State::Fetching(_) | State::Passing { .. } | State::Recalling { .. } => return false,
            State::Lost(node) => {
                let node = *node;
                if is_own {
                    self.fail(node);
                } else {
                    let message = Message::new(Kind::Fail, self.id, first.number);
                    cx.send(first.node, message.of(node, 0));
                }
            }
            // A holder that asks for what it holds breaks the rules.
            State::Held(holder) if holder.node == first.node => {}
            State::Held(holder) => {
                let from = *holder;
                let demand = |kind| Message::new(kind, self.id, from.number);
                let (message, state) = match first.mode {
                    Mode::Shared => (demand(Kind::Fetch), State::Fetching(from)),
                    Mode::Exclusive if is_own => {
                        let state = State::Recalling { from, lost: None };
                        (demand(Kind::Recall), state)
                    }
                    Mode::Exclusive => {
                        let Request { node, number, .. } = first;
                        let to = Holder { node, number };
                        let message = demand(Kind::Pass).of(node, number);
                        (message, State::Passing { from, to })
                    }
                };
                directory.state = state;
                cx.send(from.node, message);
                return false;
            }
            State::Home(_) if is_own && self.wanted != Some(first.mode) => {}
            State::Home(_) if first.mode == Mode::Shared && is_own => self.open(Mode::Shared),
            State::Home(_) if self.is_writing => return false,
            State::Home(sharers) if first.mode == Mode::Shared => {
                sharers.insert(first.node, first.number);
                let message = Message::new(Kind::Shared, self.id, first.number);
                cx.send_copy(first.node, message, &self.memory);
            }
            State::Home(sharers) if is_own && sharers.is_empty() => self.open(Mode::Exclusive),
            State::Home(_) if self.readers > 0 => return false,
            State::Home(sharers) => {
                let sharers = std::mem::take(sharers);
                return self.give_exclusive(first, &sharers, cx);
            }
        }
        if let Some(directory) = &mut self.directory {
            directory.queue.pop_front();
        }
        true
    }

    /// Ends all other copies, which acknowledge that to the node that is to write.
    fn give_exclusive<O: Outgoing>(
        &mut self,
        to: Request,
        sharers: &BTreeMap<u32, u32>,
        cx: &mut Cx<'_, O>,
    ) -> bool {
        let is_own = to.node == cx.me;
        let number = if is_own { cx.number() } else { to.number };
        let mut others = NodeSet::default();
        for (&sharer, &held) in sharers.iter().filter(|(sharer, _)| **sharer != to.node) {
            others.insert(sharer);
            let message = Message::new(Kind::Invalidate, self.id, held).of(to.node, number);
            cx.send(sharer, message);
        }
        let Some(directory) = &mut self.directory else {
            return false;
        };
        if is_own {
            directory.state = State::Collecting;
            self.pending = Some(Pending::for_acknowledgements(number, others));
            return false;
        }
        let node = to.node;
        directory.state = State::Held(Holder { node, number });
        directory.queue.pop_front();
        let is_held = sharers.get(&node).is_some_and(|held| *held == to.held);
        let kind = if is_held {
            Kind::Grant
        } else {
            Kind::Exclusive
        };
        let mut message = Message::new(kind, self.id, number);
        message.nodes = others;
        if is_held {
            cx.send(node, message);
        } else {
            cx.send_copy(node, message, &self.memory);
        }
        true
    }

    /// A node is lost; it is in the set already.
    pub(crate) fn home_on_lost<O: Outgoing>(&mut self, node: u32, cx: &mut Cx<'_, O>) {
        let Some(directory) = &mut self.directory else {
            return;
        };
        directory.queue.retain(|one| one.node != node);
        directory.known.remove(node);
        match &mut directory.state {
            State::Home(sharers) => {
                sharers.remove(&node);
            }
            State::Held(holder) | State::Fetching(holder) if holder.node == node => {
                directory.state = State::Lost(node);
            }
            State::Recalling { from, .. } if from.node == node => {
                directory.state = State::Lost(node);
            }
            State::Passing { from, to } if to.node == node => {
                let from = *from;
                directory.state = if cx.lost.contains(from.node) {
                    State::Lost(from.node)
                } else {
                    let lost = Some(node);
                    State::Recalling { from, lost }
                };
                cx.send(from.node, Message::new(Kind::Recall, self.id, from.number));
            }
            // The copy may have been passed before that.
            State::Passing { from, to } if from.node == node => {
                let message = Message::new(Kind::Check, self.id, to.number).of(node, 0);
                cx.send(to.node, message);
            }
            _ => {}
        }
    }
}
