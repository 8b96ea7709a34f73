//! Something that serves one at a time: the interface processor, the I/O bus, a link.

use std::collections::VecDeque;

use crate::time::{Span, Time};

/// Who waits, and for how long it wants to have the resource.
#[derive(Clone, Debug)]
struct Wish<T> {
    who: T,
    span: Span,
    since: Time,
}

/// The resource was given to somebody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant<T> {
    /// To whom.
    pub who: T,
    /// Until when; [`Resource::release`] is to be called then.
    pub until: Time,
    /// How long it had to wait.
    pub waited: Span,
}

/// A resource that serves one at a time, the urgent before the others, otherwise in order. It is
/// told the time, which must not go back.
#[derive(Clone, Debug)]
pub struct Resource<T> {
    taken: bool,
    urgent: VecDeque<Wish<T>>,
    others: VecDeque<Wish<T>>,
    busy: Span,
}

impl<T> Default for Resource<T> {
    fn default() -> Self {
        Self {
            taken: false,
            urgent: VecDeque::new(),
            others: VecDeque::new(),
            busy: Span::ZERO,
        }
    }
}

impl<T> Resource<T> {
    /// Asks for the resource for so long. Given at once if it is free, otherwise by a later
    /// [`Resource::release`]: its holder is never interrupted.
    pub fn request(&mut self, now: Time, who: T, span: Span, urgent: bool) -> Option<Grant<T>> {
        let wish = Wish {
            who,
            span,
            since: now,
        };
        if self.taken {
            let queue = if urgent {
                &mut self.urgent
            } else {
                &mut self.others
            };
            queue.push_back(wish);
            return None;
        }
        Some(self.give(now, wish))
    }

    /// The holder is done. Returns the next one.
    pub fn release(&mut self, now: Time) -> Option<Grant<T>> {
        self.taken = false;
        let next = self
            .urgent
            .pop_front()
            .or_else(|| self.others.pop_front())?;
        Some(self.give(now, next))
    }

    /// How long it was given away so far, all together.
    pub fn busy(&self) -> Span {
        self.busy
    }

    fn give(&mut self, now: Time, wish: Wish<T>) -> Grant<T> {
        self.taken = true;
        self.busy += wish.span;
        Grant {
            who: wish.who,
            until: now + wish.span,
            waited: now.since(wish.since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_the_urgent_first_and_nobody_is_interrupted() {
        let mut resource = Resource::default();
        let at = Time::from_ns;
        let span = Span::from_ns(10);
        let first = resource.request(at(0), 'a', span, false).unwrap();
        assert_eq!((first.until, first.waited), (at(10), Span::ZERO));
        assert_eq!(resource.request(at(1), 'b', span, false), None);
        assert_eq!(resource.request(at(2), 'c', span, true), None);
        let second = resource.release(at(10)).unwrap();
        assert_eq!((second.who, second.until), ('c', at(20)));
        assert_eq!(second.waited, Span::from_ns(8));
        let third = resource.release(at(20)).unwrap();
        assert_eq!((third.who, third.waited), ('b', Span::from_ns(19)));
        assert_eq!(resource.release(at(30)), None);
        assert!(resource.request(at(31), 'd', span, false).is_some());
        assert_eq!(resource.busy(), Span::from_ns(40));
    }
}
