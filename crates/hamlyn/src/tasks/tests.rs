use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;

use hamlyn_engine::notification::{Notification, NotificationReader, NotificationWriter, queue};
use hamlyn_engine::packet::SlotName;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task, and a queue that it may wait for.
struct Party {
    waiter: Waiter,
    count: Arc<Count>,
    writer: NotificationWriter,
    reader: NotificationReader,
}

impl Party {
    fn new() -> Self {
        let (writer, reader) = queue(4).unwrap();
        Self {
            waiter: Waiter::new(),
            count: Arc::default(),
            writer,
            reader,
        }
    }

    fn waits(&self, tasks: &mut Tasks, interest: Interest) {
        let waker = Waker::from(Arc::clone(&self.count));
        let registered = tasks.register(&self.waiter, interest, &waker);
        assert!(matches!(registered, Ok(Registered::Waits(_))));
    }

    /// It has found nothing.
    fn waits_for_messages(&self, tasks: &mut Tasks) {
        tasks.wait_for(&self.waiter, Interest::Messages(self.reader.unread(), None));
    }

    fn receives(&mut self) {
        self.writer.push(Notification {
            slot: SlotName::from_bits(0),
            metadata_index: 0,
            word: 0,
            from: hamlyn_engine::memory::LinkId::from_bits(0),
        });
    }

    fn woken(&self) -> u64 {
        self.count.0.load(Ordering::Relaxed)
    }
}

fn is_ready(interest: &Interest) -> bool {
    match interest {
        Interest::Anything => true,
        Interest::Messages(unread, _) => unread.is_any(),
        other => panic!("{other:?}"),
    }
}

fn wake_ready(tasks: &mut Tasks) {
    let mut woken = Woken::default();
    tasks.take_ready(&mut woken, is_ready);
    woken.wake();
}

#[test]
fn a_waiter_has_one_task_and_each_is_woken_once() {
    let mut tasks = Tasks::default();
    let [first, second, third] = [(); 3].map(|()| Party::new());
    let woken = || [&first, &second, &third].map(Party::woken);
    first.waits(&mut tasks, Interest::Anything);
    second.waits(&mut tasks, Interest::Anything);
    // Another task goes on with what the first one waited for.
    let waker = Waker::from(Arc::clone(&third.count));
    let again = tasks.register(&first.waiter, Interest::Anything, &waker);
    assert!(matches!(again, Ok(Registered::Waits(Some(_)))));
    wake_ready(&mut tasks);
    assert_eq!(woken(), [0, 1, 1]);
    wake_ready(&mut tasks);
    assert_eq!(woken(), [0, 1, 1]);
    // Where a task waited before, another one may wait by now.
    second.waits(&mut tasks, Interest::Anything);
    first.waits(&mut tasks, Interest::Anything);
    tasks.take_all(&mut Woken::default());
    assert!(tasks.is_empty());
}

#[test]
fn there_is_a_limit_and_a_failure_is_told() {
    let mut tasks = Tasks::default();
    let waiters: Vec<_> = (0..=TASKS_MAX).map(|_| Waiter::new()).collect();
    let register = |tasks: &mut Tasks, index: usize| {
        let waiter: &Waiter = &waiters[index];
        tasks.register(waiter, Interest::Anything, Waker::noop())
    };
    for index in 0..TASKS_MAX {
        assert!(matches!(
            register(&mut tasks, index),
            Ok(Registered::Waits(None))
        ));
    }
    assert!(matches!(
        register(&mut tasks, TASKS_MAX),
        Ok(Registered::Full(_))
    ));
    assert!(tasks.is_empty());
    assert!(matches!(
        register(&mut tasks, TASKS_MAX),
        Ok(Registered::Waits(None))
    ));
    tasks.fail(&HostError::Forked);
    assert!(matches!(register(&mut tasks, 0), Err(HostError::Forked)));
}

const PARTIES: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    /// It begins to look, and waits for anything meanwhile.
    WaitForAnything(usize),
    /// It has looked, and waits for messages unless it was woken before.
    WaitForMessages(usize),
    Receive(usize),
    TakeMessages(usize),
    /// It has what it waited for, without having been woken.
    Found(usize),
    Abandon(usize),
    News,
}

fn step() -> impl Strategy<Value = Step> {
    let party = || 0..PARTIES;
    prop_oneof![
        4 => party().prop_map(Step::WaitForAnything),
        4 => party().prop_map(Step::WaitForMessages),
        3 => party().prop_map(Step::Receive),
        2 => party().prop_map(Step::TakeMessages),
        1 => party().prop_map(Step::Found),
        1 => party().prop_map(Step::Abandon),
        4 => Just(Step::News),
    ]
}

/// The thing that a party's task waits for, in the model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    NotAtAll,
    ForMessages,
    ForAnything,
}

proptest! {
    /// Every task is woken by the news of what it waits for, and by no other.
    #[test]
    fn tasks_are_woken_for_what_they_wait_for(steps in vec(step(), 1..200)) {
        let mut tasks = Tasks::default();
        let mut parties: Vec<_> = (0..PARTIES).map(|_| Party::new()).collect();
        // True if there are messages that it had not taken when it began to wait.
        let mut waits = [(Waits::NotAtAll, false); PARTIES];
        let mut expected = [0; PARTIES];
        for step in steps {
            match step {
                Step::WaitForMessages(of) => {
                    parties[of].waits_for_messages(&mut tasks);
                    if waits[of].0 != Waits::NotAtAll {
                        waits[of] = (Waits::ForMessages, parties[of].reader.is_pending());
                    }
                }
                Step::WaitForAnything(of) => {
                    parties[of].waits(&mut tasks, Interest::Anything);
                    waits[of] = (Waits::ForAnything, false);
                }
                Step::Receive(of) => {
                    parties[of].receives();
                    waits[of].1 = true;
                }
                Step::TakeMessages(of) => {
                    while !matches!(parties[of].reader.pop(), Ok(None)) {}
                }
                Step::Found(of) => {
                    let waker = tasks.take_of(&parties[of].waiter);
                    prop_assert_eq!(waker.is_some(), waits[of].0 != Waits::NotAtAll);
                    waits[of].0 = Waits::NotAtAll;
                }
                Step::Abandon(of) => {
                    if let Some(at) = parties[of].waiter.waits_at() {
                        tasks.abandon(at);
                    }
                    if waits[of].0 == Waits::ForMessages {
                        waits[of].0 = Waits::ForAnything;
                    }
                }
                Step::News => {
                    wake_ready(&mut tasks);
                    for (of, (waits, has_come)) in waits.iter_mut().enumerate() {
                        let is_woken = match waits {
                            Waits::NotAtAll => false,
                            Waits::ForMessages => *has_come,
                            Waits::ForAnything => true,
                        };
                        if is_woken {
                            expected[of] += 1;
                            *waits = Waits::NotAtAll;
                        }
                    }
                }
            }
            let woken: Vec<_> = parties.iter().map(Party::woken).collect();
            prop_assert_eq!(&woken[..], &expected[..]);
            let waiting = waits.iter().filter(|(waits, _)| *waits != Waits::NotAtAll).count();
            prop_assert_eq!(tasks.waiting(), waiting);
            let selective = waits.iter().filter(|(waits, _)| *waits == Waits::ForMessages).count();
            prop_assert_eq!(tasks.selective, selective);
        }
    }
}
