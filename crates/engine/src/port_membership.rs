//! Ports join and leave sets, from which their messages are taken.

use alloc::vec::Vec;

use crate::packet::PortName;
use crate::port::{Arrived, InPlace, PortError, PortTable, named, place};
use crate::port_set::{PortSet, PortSetName, enter, leave, list};

impl PortTable {
    pub(crate) fn open_set(&mut self, turn: u16) -> Result<PortSetName, PortError> {
        let name = self.sets.insert(PortSet::new(turn));
        name.map(PortSetName).ok_or(PortError::TooMany)
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
        let port = named(&mut self.ports, name)?;
        leave(&mut self.sets, &mut port.member, name);
        if let Some((set, number)) = into {
            let member = enter(&mut self.sets, set, number);
            port.member = Some(member.ok_or(PortError::NoSuchSet)?);
        }
        if !port.queue.waiting.is_empty() {
            list(&mut self.sets, &mut port.member, name);
        }
        Ok(())
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
            let name = *self.sets.get(set.0)?.listed.front()?;
            let arrived = self.pop(name, buffer);
            let port = self.ports.get_mut(place(name))?;
            let (member, has_more) = (port.member.as_mut()?, !port.queue.waiting.is_empty());
            if self.sets.get_mut(set.0)?.took(has_more) {
                member.is_listed = has_more;
            }
            // None, if its owner took all by another call.
            if let Some(arrived) = arrived {
                return Some((name, member.number, arrived));
            }
        }
    }
}
