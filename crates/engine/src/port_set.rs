//! Sets of ports: messages of several ports, taken together.
//!
//! A set lists its ports that have messages, so that a look costs the same however many ports it
//! has. Ports with messages take turns.

use alloc::collections::VecDeque;

use crate::packet::PortName;
use crate::slot::QueueId;
use crate::table::{Name, Table};

/// The name of a set of ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PortSetName(pub(crate) Name);

/// The queue that a caller of [`Receiver::receive`](crate::receive::Receiver::receive) waits for,
/// if it waits for messages of that set.
pub const fn queue_of_set(set: PortSetName) -> QueueId {
    // Neither a queue of notifications nor a port has such a name.
    QueueId::new(Name {
        index: 1 << 16 | set.0.index,
        generation: 1 << 31 | set.0.generation,
    })
}

/// The membership of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) set: Name,
    /// The number that its owner knows it by.
    pub(crate) number: u64,
    /// True if it is in the list of its set.
    pub(crate) is_listed: bool,
}

/// A set.
#[derive(Debug)]
pub(crate) struct PortSet {
    /// Ports with messages, each once. The first one has its turn.
    pub(crate) listed: VecDeque<PortName>,
    members: usize,
    /// Messages that a port may have taken in a turn, and those that were.
    turn: u16,
    taken: u16,
}

impl PortSet {
    pub(crate) fn new(turn: u16) -> Self {
        Self {
            listed: VecDeque::new(),
            members: 0,
            turn: turn.max(1),
            taken: 0,
        }
    }

    /// The port that has its turn gave a message. True if its turn is over: it comes again after
    /// the others, if it has more.
    pub(crate) fn took(&mut self, has_more: bool) -> bool {
        self.taken += 1;
        let is_over = !has_more || self.taken >= self.turn;
        if is_over {
            self.taken = 0;
            let name = self.listed.pop_front();
            self.listed.extend(name.filter(|_| has_more));
        }
        is_over
    }
}

/// The sets of an interface.
pub(crate) type Sets = Table<PortSet>;

/// Has its set list a port that has messages.
pub(crate) fn list(sets: &mut Sets, member: &mut Option<Member>, name: PortName) {
    if let Some(member) = member
        && !member.is_listed
        && let Some(set) = sets.get_mut(member.set)
    {
        member.is_listed = true;
        set.listed.push_back(name);
    }
}

/// A port enters a set, with no message yet. Nothing if there is no such set. Allocates as the set
/// grows.
pub(crate) fn enter(sets: &mut Sets, set: PortSetName, number: u64) -> Option<Member> {
    let entered = sets.get_mut(set.0)?;
    entered.members += 1;
    // So that a message that comes needs no memory.
    let most = entered.members.saturating_sub(entered.listed.len());
    entered.listed.reserve(most);
    Some(Member {
        set: set.0,
        number,
        is_listed: false,
    })
}

/// A port leaves its set, if it is in one.
pub(crate) fn leave(sets: &mut Sets, member: &mut Option<Member>, name: PortName) {
    if let Some(member) = member.take()
        && let Some(set) = sets.get_mut(member.set)
    {
        set.members -= 1;
        if member.is_listed {
            if set.listed.front() == Some(&name) {
                set.taken = 0;
            }
            set.listed.retain(|listed| *listed != name);
        }
    }
}

/// True if the next message of a member is the next one of its set, which is waited for.
pub(crate) fn is_awaited(sets: &Sets, member: Option<&Member>, waiting: Option<QueueId>) -> bool {
    member.is_some_and(|member| {
        let set = sets.get(member.set);
        waiting == Some(queue_of_set(PortSetName(member.set)))
            && set.is_some_and(|set| set.listed.is_empty())
    })
}
