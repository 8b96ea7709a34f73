//! Ports join and leave sets, from which their messages are taken.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::packet::PortName;
use crate::port::{Arrived, InPlace, Port, PortError, PortTable, place};
use crate::port_set::{Member, PortSet, PortSetName, list};

impl PortTable {
    pub(crate) fn open_set(&mut self, turn: u16) -> Result<PortSetName, PortError> {
        let set = PortSet {
            listed: VecDeque::new(),
            members: 0,
            turn: turn.max(1),
            taken: 0,
        };
        let name = self.sets.insert(set).ok_or(PortError::TooMany)?;
        Ok(PortSetName(name))
    }

    /// Closes a set. Its ports are in none from now on.
    pub(crate) fn close_set(&mut self, set: PortSetName) {
        // Members notice by the name, which no other set will have.
        self.sets.remove(set.0);
    }

    /// Puts a port into a set, under a number, or into none. It leaves the one in which it was.
    pub(crate) fn join(
        &mut self,
        name: PortName,
        into: Option<(PortSetName, u64)>,
    ) -> Result<(), PortError> {
        let port = self.ports.get_mut(place(name));
        let port = port.ok_or(PortError::NotOpen(name))?;
        if let Some(before) = port.member.take() {
            self.left(name, before);
        }
        let Some((set, number)) = into else {
            return Ok(());
        };
        let joined = self.sets.get_mut(set.0).ok_or(PortError::NoSuchSet)?;
        joined.members += 1;
        // So that a message that comes needs no memory.
        let most = joined.members.saturating_sub(joined.listed.len());
        joined.listed.reserve(most);
        let port = self.ports.get_mut(place(name));
        let port = port.ok_or(PortError::NotOpen(name))?;
        port.member = Some(Member {
            set: set.0,
            number,
            is_listed: false,
        });
        if !port.queue.waiting.is_empty() {
            list(&mut self.sets, &mut port.member, name);
        }
        Ok(())
    }

    /// A port is no member any more.
    pub(crate) fn left(&mut self, name: PortName, member: Member) {
        let Some(set) = self.sets.get_mut(member.set) else {
            return;
        };
        set.members -= 1;
        if member.is_listed {
            if set.listed.front() == Some(&name) {
                set.taken = 0;
            }
            set.listed.retain(|listed| *listed != name);
        }
    }

    /// True if no message waits at a port of the set.
    #[inline]
    pub(crate) fn is_set_empty(&self, set: PortSetName) -> bool {
        self.sets.get(set.0).is_none_or(|set| set.listed.is_empty())
    }

    /// The number of the member for which that message may be read where it lies: it is the next one
    /// of the set.
    #[inline(always)]
    pub(crate) fn set_takes_in_place(
        &self,
        set: PortSetName,
        message: &InPlace<'_>,
    ) -> Option<u64> {
        let port = self.ports.stamped(u64::from(message.to.port.to_bits()))?;
        let member = port.member.as_ref().filter(|member| member.set == set.0)?;
        (port.takes(message) && self.is_set_empty(set)).then_some(member.number)
    }

    /// Takes out the next message that waits, with the number of its port, its bytes to the
    /// beginning of `buffer`.
    pub(crate) fn pop_of_set(
        &mut self,
        set: PortSetName,
        buffer: &mut Vec<u8>,
    ) -> Option<(PortName, u64, Arrived)> {
        loop {
            let listed = self.sets.get_mut(set.0)?;
            let name = *listed.listed.front()?;
            let arrived = self.pop(name, buffer);
            let port = self.ports.get_mut(place(name));
            let listed = self.sets.get_mut(set.0)?;
            let Some(Port { member, queue, .. }) = port else {
                listed.end_turn(false);
                continue;
            };
            let (Some(member), has_more) = (member, !queue.waiting.is_empty()) else {
                listed.end_turn(false);
                continue;
            };
            listed.taken += 1;
            if !has_more || listed.taken >= listed.turn {
                member.is_listed = has_more;
                listed.end_turn(has_more);
            }
            // Empty, if its owner took all by another call.
            if let Some(arrived) = arrived {
                return Some((name, member.number, arrived));
            }
        }
    }
}
