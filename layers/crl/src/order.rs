//! The order of the messages from one node to another, where they may overtake each other and may
//! come back: numbers, a window, and a place for those that come before their turn. No I/O.

use std::collections::VecDeque;

/// A message is sent when fewer than this are not acknowledged, so fewer come before their turn.
const WINDOW: u32 = 128;
/// One of so many is acknowledged, with all before it.
const STEP: u32 = 32;

/// True if the message of that number is to be acknowledged once all before it had their turn.
pub(crate) fn is_acknowledged(number: u32) -> bool {
    number % STEP == STEP - 1
}

/// The messages to a node.
#[derive(Debug)]
pub(crate) struct Sending<T> {
    /// Those that are to be sent, with their numbers. Those that came back are first.
    queue: VecDeque<(u32, T)>,
    /// The number of the next one.
    next: u32,
    /// All before this number are acknowledged.
    acknowledged: u32,
}

impl<T> Default for Sending<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            next: 0,
            acknowledged: 0,
        }
    }
}

impl<T> Sending<T> {
    pub(crate) fn push(&mut self, message: T) {
        self.queue.push_back((self.next, message));
        self.next = self.next.wrapping_add(1);
    }

    /// The next one to be sent, with its number, if the window has it.
    pub(crate) fn take(&mut self) -> Option<(u32, T)> {
        let (number, _) = self.queue.front()?;
        let is_in_window = number.wrapping_sub(self.acknowledged) < WINDOW;
        is_in_window.then(|| self.queue.pop_front())?
    }

    /// It was not sent, or came back. One that is acknowledged has come.
    pub(crate) fn put_back(&mut self, number: u32, message: T) {
        if number.wrapping_sub(self.acknowledged) < WINDOW {
            self.queue.push_front((number, message));
        }
    }

    /// All before that number have had their turn. One that was not sent is a receiver's lie.
    pub(crate) fn acknowledge(&mut self, number: u32) {
        let sent = self.next.wrapping_sub(self.acknowledged);
        if number.wrapping_sub(self.acknowledged) <= sent {
            self.acknowledged = number;
        }
    }

    /// Messages that are to be sent.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }
}

/// The messages from a node.
#[derive(Debug)]
pub(crate) struct Order<T> {
    /// The number of the message whose turn it is.
    next: u32,
    /// From that one on, those that have come.
    early: VecDeque<Option<T>>,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self {
            next: 0,
            early: VecDeque::new(),
        }
    }
}

impl<T> Order<T> {
    /// A message came with that number. False if its sender breaks the rules: it came before, or is
    /// outside of the window.
    pub(crate) fn came(&mut self, number: u32, message: T) -> bool {
        let ahead = number.wrapping_sub(self.next);
        if ahead >= WINDOW {
            return false;
        }
        let at = ahead as usize;
        if self.early.len() <= at {
            self.early.resize_with(at + 1, || None);
        }
        let is_new = self.early[at].is_none();
        if is_new {
            self.early[at] = Some(message);
        }
        is_new
    }

    /// The message whose turn it is, if it has come.
    pub(crate) fn take(&mut self) -> Option<T> {
        let message = self.early.front_mut()?.take()?;
        self.early.pop_front();
        self.next = self.next.wrapping_add(1);
        Some(message)
    }

    /// The number of the message whose turn it is.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    pub(crate) fn clear(&mut self) {
        self.early.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Messages that are delivered or come back in any order have their turns in that in which
        /// they were sent, each once; and no honest sender is taken for another one.
        #[test]
        fn any_network_keeps_the_order(
            begin in prop_oneof![Just(0), Just(u32::MAX - 70)],
            credits in 1..25_usize,
            steps in prop::collection::vec((0..8_u8, any::<prop::sample::Index>()), 1..3_000),
        ) {
            let mut sending = Sending { next: begin, acknowledged: begin, ..Sending::default() };
            let mut order = Order { next: begin, ..Order::default() };
            // Those under way, and acknowledgements that are.
            let (mut network, mut answers) = (Vec::new(), Vec::new());
            let (mut sent, mut had) = (0_u32, 0);
            let mut step = |kind: u8, index: prop::sample::Index| {
                match kind {
                    0..=2 if sent < 1_000 => {
                        sending.push(sent);
                        sent += 1;
                    }
                    3 if !network.is_empty() => {
                        let (number, message) = network.swap_remove(index.index(network.len()));
                        sending.put_back(number, message);
                    }
                    4 if !answers.is_empty() => {
                        sending.acknowledge(answers.swap_remove(index.index(answers.len())));
                    }
                    _ if !network.is_empty() => {
                        let (number, message) = network.swap_remove(index.index(network.len()));
                        prop_assert!(order.came(number, message));
                        while let Some(message) = order.take() {
                            prop_assert_eq!(message, had);
                            had += 1;
                            if is_acknowledged(order.next().wrapping_sub(1)) {
                                answers.push(order.next());
                            }
                        }
                        prop_assert!(order.early.len() <= WINDOW as usize);
                    }
                    _ => {}
                }
                while network.len() < credits && let Some(next) = sending.take() {
                    network.push(next);
                }
                Ok(had == sent)
            };
            for (kind, index) in &steps {
                step(*kind, *index)?;
            }
            let first = steps[0].1;
            for _ in 0..3_000 {
                step(4, first)?;
                if step(7, first)? {
                    return Ok(());
                }
            }
            prop_assert!(false, "not all had their turn");
        }

        /// Numbers of a liar: each message has its turn once at most, and few wait.
        #[test]
        fn any_numbers_are_bounded(numbers in prop::collection::vec(0..400_u32, 0..600)) {
            let mut order = Order::default();
            let mut had = 0;
            for number in numbers {
                let may_come = (had..had + WINDOW).contains(&number);
                prop_assert!(!order.came(number, number) || may_come);
                while let Some(message) = order.take() {
                    prop_assert_eq!(message, had);
                    had += 1;
                }
                prop_assert!(order.early.len() <= WINDOW as usize);
            }
        }
    }

    #[test]
    fn a_receiver_that_lies_is_not_believed() {
        let mut sending = Sending::default();
        (0..200).for_each(|message| sending.push(message));
        let all = std::iter::from_fn(|| sending.take()).count();
        assert_eq!(all, WINDOW as usize);
        for number in [201, u32::MAX, 1 << 31] {
            sending.acknowledge(number);
            assert_eq!(sending.acknowledged, 0);
        }
        sending.acknowledge(64);
        sending.acknowledge(32);
        assert_eq!(sending.acknowledged, 64);
        sending.put_back(40, 40);
        assert_eq!(sending.take(), Some((128, 128)), "it has come");
    }
}
