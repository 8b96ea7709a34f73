//! A machine under the world's programs: the points that the library's code passes take time of the
//! task that passes them, and occupy what the machine's file says.
//!
//! A program's own task is the machine's `processor`; a task that the library began beside it, such
//! as its network processor, is the `interface`, if the file has one, and shares the processor
//! otherwise. So strategies run as they are.

use std::collections::BTreeMap;

use hamlyn_engine::point::Point;

use super::machine_file::Machine;
use crate::time::{Span, Time};

/// The way in which a message comes to a program on a node with one input queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Delivery {
    /// The program looks for it.
    Polled,
    /// It interrupts the program.
    Interrupt,
    /// It is in the program's buffer, wherever the program found it.
    Buffered,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Charges {
    pub(crate) machine: Machine,
    /// By node and resource: until when it is occupied.
    occupied: BTreeMap<(u32, usize), Time>,
}

impl Charges {
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            machine,
            occupied: BTreeMap::new(),
        }
    }

    /// Whether what is beside programs runs on a board.
    pub(crate) fn has_board(&self) -> bool {
        self.machine.has_actor("interface")
    }

    /// True if the point is one that this machine charges for, or that all machines are told.
    pub(crate) fn hears(&self, point: Point) -> bool {
        match point {
            Point::Port(_) => self.machine.has_ports(),
            Point::Udm(_) => self.machine.has_udm(),
            _ => true,
        }
    }

    /// What stands before each frame on the wire.
    pub(crate) fn frame_header_bytes(&self) -> usize {
        self.machine.link().header.0 as usize
    }

    /// What passing a point takes from `now` on, for a task of that node, waiting for others
    /// included.
    pub(crate) fn pass(&mut self, node: u32, is_beside: bool, point: Point, now: Time) -> Span {
        let actor = if is_beside && self.has_board() {
            "interface"
        } else {
            "processor"
        };
        self.pass_as(actor, node, point, now)
    }

    /// The same for what the program does with a message that came in that way: like all else, if
    /// the machine's file says nothing of that.
    pub(crate) fn pass_for(&mut self, way: Delivery, node: u32, point: Point, now: Time) -> Span {
        let actor = match way {
            Delivery::Polled => "processor",
            Delivery::Interrupt => "interrupt",
            Delivery::Buffered => "buffered",
        };
        match self.machine.says(actor, point) {
            true => self.pass_as(actor, node, point, now),
            false => self.pass_as("processor", node, point, now),
        }
    }

    fn pass_as(&mut self, actor: &str, node: u32, point: Point, now: Time) -> Span {
        let raw = self.machine.software("raw");
        let mut at = now;
        match point {
            Point::RequestWritten { pieces, data_bytes } => {
                at += raw.send() + self.machine.stores(pieces.into(), data_bytes.into());
            }
            Point::Taken => at += raw.receive(),
            // A board has no interrupts to take.
            Point::Woken if actor == "processor" => at += self.machine.wake_up(),
            _ => {}
        }
        for step in self.machine.steps(actor, point) {
            let free = self.occupied.entry((node, step.resource)).or_default();
            // Nothing to do occupies nothing.
            if step.span == Span::ZERO {
                continue;
            }
            let begun = at.max(*free);
            *free = begun + step.span;
            at = match step.behind {
                true => begun,
                false => *free + step.then,
            };
        }
        at.since(now)
    }
}
