//! Counts, events, lost nodes, and the case of delivery.

use std::ffi::{c_char, c_int, c_void};

use hamlyn::Direction;
use hamlyn_udm::{Event, Mode};

use crate::boundary::{object, outside, put, put_if_wanted};
use crate::node::Outside;
use crate::status::{Code, Failure};

/// `udm_statistics`.
#[repr(C)]
#[derive(Debug)]
pub struct CStatistics {
    sent: u64,
    received: u64,
    upcalls: u64,
    extended: u64,
    unhandled: u64,
    strangers: u64,
    wrong: u64,
}

/// `udm_get_statistics`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_get_statistics(
    udm: *mut c_void,
    statistics: *mut CStatistics,
) -> c_int {
    outside(udm, |udm| {
        let counts = udm.statistics();
        put(
            statistics,
            CStatistics {
                sent: counts.sent,
                received: counts.received,
                upcalls: counts.upcalls,
                extended: counts.extended,
                unhandled: counts.unhandled,
                strangers: counts.strangers,
                wrong: counts.wrong,
            },
        )
    })
}

fn check_node(udm: &mut dyn Outside, node: u32) -> Result<(), Failure> {
    let nodes = udm.nodes();
    match node < nodes {
        true => Ok(()),
        false => Err(Failure::of(
            Code::BadNode,
            &format!("there is no node {node} in a group of {nodes}: they are numbered from 0 on"),
        )),
    }
}

/// `udm_lost`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_udm_lost(udm: *mut c_void, node: u32) -> c_int {
    outside(udm, |udm| {
        check_node(udm, node)?;
        match udm.lost(node) {
            None => Ok(()),
            Some(end) => Err(Failure::of(
                Code::Lost,
                &format!("node {node} is gone ({end}): go on without it, or end the job"),
            )),
        }
    })
}

/// `udm_mode`: 0 if messages to that node are delivered direct, 1 if they are buffered, and then
/// their bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_mode(
    udm: *mut c_void,
    node: u32,
    mode: *mut c_int,
    waiting_bytes: *mut u64,
) -> c_int {
    outside(udm, |udm| {
        check_node(udm, node)?;
        let (number, bytes) = match udm.mode(node) {
            Mode::Direct => (0, 0),
            Mode::Buffered { bytes } => (1, bytes),
        };
        put(mode, number)?;
        put_if_wanted(waiting_bytes, bytes)
    })
}

const REASON_BYTES: usize = 96;

/// `udm_event`.
#[repr(C)]
#[derive(Debug)]
pub struct CEvent {
    kind: c_int,
    node: u32,
    count: u64,
    waiting_bytes: u64,
    limit_bytes: u64,
    reason: [c_char; REASON_BYTES],
}

impl CEvent {
    fn new(kind: c_int, node: u32, reason: &dyn std::fmt::Display) -> Self {
        let mut place = [0; REASON_BYTES];
        let text = reason.to_string();
        // The last one stays zero.
        for (to, from) in place[..REASON_BYTES - 1].iter_mut().zip(text.bytes()) {
            *to = from as c_char;
        }
        Self {
            kind,
            node,
            count: 0,
            waiting_bytes: 0,
            limit_bytes: 0,
            reason: place,
        }
    }

    fn of(event: Option<Event>) -> Self {
        match event {
            None => Self::new(0, 0, &""),
            Some(Event::Lost { node, end }) => Self::new(1, node, &end),
            Some(Event::Refused { node, reason }) => Self::new(2, node, &reason),
            Some(Event::Buffering {
                node,
                direction,
                waiting_bytes,
                limit_bytes,
            }) => {
                let event = match direction {
                    Direction::Outgoing => Self::new(3, node, &"the node takes nothing"),
                    Direction::Incoming => Self::new(7, node, &"messages of the node wait here"),
                };
                Self {
                    waiting_bytes,
                    limit_bytes,
                    ..event
                }
            }
            Some(Event::Drained { node, direction }) => match direction {
                Direction::Outgoing => Self::new(4, node, &"the node has taken all"),
                Direction::Incoming => Self::new(8, node, &"all of the node's messages are taken"),
            },
            Some(Event::Missed { count }) => Self {
                count,
                ..Self::new(5, 0, &"events were not asked for in time")
            },
            // Of a later version of the layer.
            Some(_) => Self::new(6, 0, &"an event that this version does not know"),
        }
    }
}

/// `udm_next_event`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_next_event(udm: *mut c_void, event: *mut CEvent) -> c_int {
    object(udm, |object| {
        if event.is_null() {
            return Err(Failure::bad("the place for the event is null"));
        }
        put(event, CEvent::of(object.group.next_event()))
    })
}
