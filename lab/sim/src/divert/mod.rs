//! Diversion: what the kernel of a node with one input queue does with messages that their program
//! cannot take at once (T 4.1, T 4.2).
//!
//! A message waits at the head of the node's input queue for the program that runs, if it is of
//! that program's group and the program is not in *buffered mode*. Any other message the kernel takes
//! away: it inserts it at the end of the buffer of the group's process, or refuses it if the node
//! has none. A process is in buffered mode from its first inserted message until it has disposed of
//! the last one. Its buffer is virtual memory, whose pages are there from the first byte that is
//! written to them until the last is read. An empty buffer begins at its beginning again, and keeps
//! one page.
//!
//! The product has no such kernel: there each sender writes on into an overflow log
//! (`ring::overflow`). This is a pure state machine. It knows no time: the world charges what its
//! [`Step`]s take.

use std::collections::{BTreeMap, VecDeque};

/// The group that a message or a process belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gid(pub u32);

/// The two cases of delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// Out of the input queue.
    Direct,
    /// Out of the process's buffer.
    Buffered,
}

/// Sizes and limits of a node, in bytes and pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a page, at least 1.
    pub page_bytes: u64,
    /// A message in a buffer takes a multiple of so many bytes, at least 1.
    pub line_bytes: u64,
    /// Page frames of the node. A message that needs one more stays in the input queue.
    pub frames: u64,
    /// A process whose buffer has so many pages ought to be gang-scheduled.
    pub advise_pages: u64,
    /// A process whose buffer has so many pages ought to be suspended on all nodes.
    pub suspend_pages: u64,
}

/// The deeds of the kernel, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<M> {
    /// It has inserted a message into the buffer of that process, and so many pages for it.
    Inserted {
        /// The process's group.
        gid: Gid,
        /// The message.
        message: M,
        /// Pages that the buffer did not have before.
        pages: u64,
    },
    /// It has refused a message: no process of the node is of its group.
    Refused {
        /// The message's group.
        gid: Gid,
        /// The message.
        message: M,
    },
    /// There is no page frame for the message at the head of the input queue: it stays there, and
    /// with it all behind it.
    Stalled {
        /// The message's group.
        gid: Gid,
    },
    /// The buffer of that process has reached [`Limits::advise_pages`].
    AdviseGang {
        /// The process's group.
        gid: Gid,
    },
    /// The buffer of that process has reached [`Limits::suspend_pages`].
    Suspend {
        /// The process's group.
        gid: Gid,
    },
}

/// Nothing can be disposed of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no message is there for {gid:?}: look before disposing of one")]
pub struct BadDispose {
    /// The process that wanted to.
    pub gid: Gid,
}

/// The counts of a process.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Messages that it took out of the input queue.
    pub direct: u64,
    /// Messages that were inserted into its buffer.
    pub buffered: u64,
    /// Times that it entered buffered mode.
    pub episodes: u64,
    /// Pages of its buffer now.
    pub pages: u64,
    /// The most that it had at once.
    pub pages_max: u64,
}

/// A message, and what it takes in a buffer.
#[derive(Clone, Copy, Debug)]
struct Held<M> {
    gid: Gid,
    bytes: u64,
    message: M,
}

/// The buffer of a process.
#[derive(Debug)]
struct Buffer<M> {
    held: VecDeque<Held<M>>,
    read: u64,
    written: u64,
    /// It has been used, and keeps a page.
    has_page: bool,
    counts: Counts,
    is_advised: bool,
    is_suspended: bool,
}

impl<M> Buffer<M> {
    fn new() -> Self {
        Self {
            held: VecDeque::new(),
            read: 0,
            written: 0,
            has_page: false,
            counts: Counts::default(),
            is_advised: false,
            is_suspended: false,
        }
    }

    /// From the first page that is not read to its end, to the last that is written to.
    fn pages(&self, page_bytes: u64) -> u64 {
        let pages = self.written.div_ceil(page_bytes) - self.read / page_bytes;
        pages.max(self.has_page.into())
    }
}

/// See the module.
#[derive(Debug)]
pub struct Divert<M> {
    limits: Limits,
    running: Option<Gid>,
    input: VecDeque<Held<M>>,
    buffers: BTreeMap<Gid, Buffer<M>>,
    refused: u64,
}

impl<M: Copy> Divert<M> {
    /// The kernel of a node on which nothing runs.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: Limits {
                page_bytes: limits.page_bytes.max(1),
                line_bytes: limits.line_bytes.max(1),
                ..limits
            },
            running: None,
            input: VecDeque::new(),
            buffers: BTreeMap::new(),
            refused: 0,
        }
    }

    /// A process of that group is on the node from now on.
    pub fn enter(&mut self, gid: Gid) {
        self.buffers.entry(gid).or_insert_with(Buffer::new);
    }

    /// The process of that group runs from now on, or none of any group. Messages for the process
    /// that ran are taken out of its way.
    pub fn schedule(&mut self, gid: Option<Gid>, steps: &mut Vec<Step<M>>) {
        self.running = gid;
        self.clear_the_way(steps);
    }

    /// A message comes to the node, of so many bytes.
    pub fn arrive(&mut self, gid: Gid, bytes: u64, message: M, steps: &mut Vec<Step<M>>) {
        let bytes = bytes.max(1).next_multiple_of(self.limits.line_bytes);
        self.input.push_back(Held {
            gid,
            bytes,
            message,
        });
        self.clear_the_way(steps);
    }

    /// The process that runs has held the input queue for too long: what waits for it there is
    /// inserted into its buffer (T 4.1, revocable interrupt disable).
    pub fn revoke(&mut self, steps: &mut Vec<Step<M>>) {
        if let Some(head) = self.input.front().copied()
            && self.running == Some(head.gid)
            && self.insert(head, steps)
        {
            self.clear_the_way(steps);
        }
    }

    /// The message that the process of that group reads next, if one is there for it.
    pub fn head(&self, gid: Gid) -> Option<(M, Case)> {
        if let Some(held) = self.buffers.get(&gid)?.held.front() {
            return Some((held.message, Case::Buffered));
        }
        let head = self.input.front()?;
        let is_its_own = head.gid == gid && self.running == Some(gid);
        is_its_own.then_some((head.message, Case::Direct))
    }

    /// The process of that group disposes of the message at its head: the next one shows. The
    /// message, and the case that it came by.
    pub fn dispose(&mut self, gid: Gid, steps: &mut Vec<Step<M>>) -> Result<(M, Case), BadDispose> {
        let (message, case) = self.head(gid).ok_or(BadDispose { gid })?;
        if let Some(buffer) = self.buffers.get_mut(&gid) {
            match case {
                Case::Direct => {
                    self.input.pop_front();
                    buffer.counts.direct += 1;
                }
                Case::Buffered => {
                    let held = buffer.held.pop_front();
                    buffer.read += held.map_or(0, |held| held.bytes);
                    if buffer.held.is_empty() {
                        (buffer.read, buffer.written) = (0, 0);
                        (buffer.is_advised, buffer.is_suspended) = (false, false);
                    }
                }
            }
        }
        self.clear_the_way(steps);
        Ok((message, case))
    }

    /// True if the process is in buffered mode.
    pub fn is_buffered(&self, gid: Gid) -> bool {
        let buffer = self.buffers.get(&gid);
        buffer.is_some_and(|buffer| !buffer.held.is_empty())
    }

    /// The counts of a process.
    pub fn counts(&self, gid: Gid) -> Counts {
        let Some(buffer) = self.buffers.get(&gid) else {
            return Counts::default();
        };
        Counts {
            pages: buffer.pages(self.limits.page_bytes),
            ..buffer.counts
        }
    }

    /// Messages that no process of the node was of the group of.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Messages in the input queue.
    pub fn waiting(&self) -> usize {
        self.input.len()
    }

    /// Page frames that buffers have.
    pub fn frames_in_use(&self) -> u64 {
        let buffers = self.buffers.values();
        buffers
            .map(|buffer| buffer.pages(self.limits.page_bytes))
            .sum()
    }

    /// Takes messages away from the head of the input queue as long as they are not for the process
    /// that runs, or that is in buffered mode.
    fn clear_the_way(&mut self, steps: &mut Vec<Step<M>>) {
        while let Some(head) = self.input.front().copied() {
            if self.running == Some(head.gid) && !self.is_buffered(head.gid) {
                return;
            }
            if !self.insert(head, steps) {
                return;
            }
        }
    }

    /// Inserts the head of the input queue into its process's buffer, or refuses it. False if it
    /// stays where it is.
    fn insert(&mut self, head: Held<M>, steps: &mut Vec<Step<M>>) -> bool {
        let Held { gid, message, .. } = head;
        let in_use = self.frames_in_use();
        let Limits {
            page_bytes,
            frames,
            advise_pages,
            suspend_pages,
            ..
        } = self.limits;
        let Some(buffer) = self.buffers.get_mut(&gid) else {
            self.input.pop_front();
            self.refused += 1;
            steps.push(Step::Refused { gid, message });
            return true;
        };
        let (before, begun, had_page) = (buffer.pages(page_bytes), buffer.written, buffer.has_page);
        buffer.written += head.bytes;
        buffer.has_page = true;
        let now = buffer.pages(page_bytes);
        let pages = now - before;
        if in_use + pages > frames {
            (buffer.written, buffer.has_page) = (begun, had_page);
            steps.push(Step::Stalled { gid });
            return false;
        }
        self.input.pop_front();
        buffer.counts.buffered += 1;
        buffer.counts.episodes += u64::from(buffer.held.is_empty());
        buffer.held.push_back(head);
        buffer.counts.pages_max = buffer.counts.pages_max.max(now);
        steps.push(Step::Inserted {
            gid,
            message,
            pages,
        });
        if now >= advise_pages && !std::mem::replace(&mut buffer.is_advised, true) {
            steps.push(Step::AdviseGang { gid });
        }
        if now >= suspend_pages && !std::mem::replace(&mut buffer.is_suspended, true) {
            steps.push(Step::Suspend { gid });
        }
        true
    }
}

#[cfg(test)]
mod tests;
