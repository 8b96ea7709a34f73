//! Tasks whose wake-ups are counted, of an interface that a test drives itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Look, ManagerOptions, Strategy, Wait, Waiting, datagram};

use super::{namespace, until};

pub(crate) type Manager = hamlyn::Manager<ProcessHost>;

#[derive(Default)]
pub(crate) struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) struct Task<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    woken: Arc<Woken>,
}

impl<T> Task<T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'static) -> Self {
        Self {
            future: Box::pin(future),
            woken: Arc::default(),
        }
    }

    pub(crate) fn poll(&mut self) -> Option<T> {
        let waker = Waker::from(Arc::clone(&self.woken));
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    /// How often it was woken since this was last called.
    pub(crate) fn take_woken(&self) -> u64 {
        self.woken.0.swap(0, Ordering::Relaxed)
    }
}

/// An interface whose tasks are counted, and a peer that does as the test says.
pub(crate) struct Scene {
    pub(crate) here: Manager,
    pub(crate) there: Manager,
    driver: Manager,
    pub(crate) namespace: String,
}

impl Scene {
    pub(crate) fn open(strategy: Strategy) -> Self {
        let namespace = namespace();
        let mut options = Options::named("here").in_namespace(&namespace);
        options.spin_ns = Some(0);
        let driven = ManagerOptions {
            strategy,
            ..ManagerOptions::default()
        };
        let here = hamlyn::open_with(options, driven).unwrap();
        let there = Self::open_peer(&namespace, "there");
        Self {
            driver: here.clone(),
            here,
            there,
            namespace,
        }
    }

    pub(crate) fn open_peer(namespace: &str, name: &str) -> Manager {
        let options = Options::named(name).in_namespace(namespace);
        hamlyn::open_with(options, ManagerOptions::default()).unwrap()
    }

    /// Drives the interface until it would sleep.
    pub(crate) fn drive(&mut self) {
        let mut waiting = Waiting::new(Wait::Forever);
        loop {
            match self.driver.look(&mut waiting).unwrap() {
                Look::Again => {}
                Look::Ready => waiting = Waiting::new(Wait::Forever),
                Look::Sleep(_) => return,
            }
        }
    }

    /// Drives it until that task was woken.
    pub(crate) fn await_woken<T>(&mut self, what: &str, task: &Task<T>) {
        until(what, || {
            self.drive();
            (task.take_woken() > 0).then_some(())
        });
    }

    /// Drives it until that task is done, which looks only when it was woken.
    pub(crate) fn finish<T>(&mut self, what: &str, task: &mut Task<T>) -> T {
        until(what, || {
            self.drive();
            (task.take_woken() > 0).then(|| task.poll()).flatten()
        })
    }

    /// The same of a task that waits for that peer, which looks meanwhile.
    pub(crate) fn fenced<T>(&mut self, peer: &Manager, task: &mut Task<T>) -> T {
        until("an answer", || {
            peer.session().poll();
            self.drive();
            (task.take_woken() > 0).then(|| task.poll()).flatten()
        })
    }

    /// Lets all tasks begin to wait, and take in what came before.
    pub(crate) fn begin<T>(&mut self, tasks: &mut [Task<T>]) {
        self.here.session().poll();
        for task in tasks.iter_mut() {
            assert!(task.poll().is_none());
        }
        loop {
            self.drive();
            let mut woken = tasks.iter_mut().filter(|task| task.take_woken() > 0);
            if woken.by_ref().next().is_none() {
                return;
            }
            for task in tasks.iter_mut() {
                assert!(task.poll().is_none());
            }
        }
    }

    /// A task that waits for something else, so that it matters what there is news of.
    pub(crate) fn bystander(&mut self) -> Task<()> {
        let mut inbox = datagram::Receiver::new(&self.here, 64).unwrap();
        inbox.ready();
        let mut task = Task::new(async move {
            inbox.recv_async().await.unwrap();
        });
        assert!(task.poll().is_none());
        task
    }
}

/// Counts those that were woken though nothing came for them. Every few seconds all look again, so a
/// few times of all of them say nothing.
pub(crate) struct Bystanders {
    woken: u64,
    most: u64,
}

impl Bystanders {
    /// Times that all of them may look again for themselves.
    const LOOKS: u64 = 3;

    pub(crate) fn of<T>(tasks: &[Task<T>]) -> Self {
        Self {
            woken: 0,
            most: Self::LOOKS * tasks.len() as u64,
        }
    }

    /// None of these has anything to wake for.
    pub(crate) fn count<T>(&mut self, tasks: &mut [Task<T>]) {
        for task in tasks {
            let woken = task.take_woken();
            if woken > 0 {
                self.woken += woken;
                assert!(task.poll().is_none());
            }
        }
        assert!(
            self.woken <= self.most,
            "{} tasks that nothing came for",
            self.woken
        );
    }
}
