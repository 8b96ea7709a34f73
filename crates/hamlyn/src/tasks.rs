//! Tasks that wait for a manager: what an executor runs again when anything has happened (decision
//! 0021).

use std::task::Waker;

use hamlyn_host::HostError;

/// Tasks that wait at a time. If there are more, all are woken and look for themselves.
const TASKS_MAX: usize = 1 << 16;

/// A task that waits.
struct Task {
    /// The handle of the manager, or the end point, that it waits with.
    handle: u64,
    waker: Waker,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Tasks {
    waiting: Vec<Task>,
    /// Why nothing will happen any more.
    failure: Option<HostError>,
}

/// Tasks to be woken, without the manager in hand: they may want it.
#[derive(Default)]
pub(crate) struct Woken(Vec<Task>);

impl Tasks {
    /// A task waits with that handle, instead of the one before. `place` is what this returned last
    /// for the handle, and where to look first. Nothing if there are too many.
    pub(crate) fn register(
        &mut self,
        handle: u64,
        place: usize,
        waker: &Waker,
    ) -> Result<Option<usize>, HostError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if let Some(task) = self.waiting.get_mut(place)
            && task.handle == handle
        {
            task.waker.clone_from(waker);
            return Ok(Some(place));
        }
        if self.waiting.len() >= TASKS_MAX {
            return Ok(None);
        }
        let waker = waker.clone();
        self.waiting.push(Task { handle, waker });
        Ok(Some(self.waiting.len() - 1))
    }

    /// Nothing will happen any more, and every task that waits is to hear of it.
    pub(crate) fn fail(&mut self, failure: &HostError) {
        self.failure.get_or_insert_with(|| failure.clone());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes all that wait. What `woken` has room for is kept.
    pub(crate) fn take(&mut self, woken: &mut Woken) {
        std::mem::swap(&mut self.waiting, &mut woken.0);
    }
}

impl Woken {
    pub(crate) fn wake(&mut self) {
        for task in self.0.drain(..) {
            task.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_handle_has_one_task_and_each_is_woken_once() {
        let (mut tasks, mut woken) = (Tasks::default(), Woken::default());
        let counts = [const { AtomicU32::new(0) }; 3].map(Count).map(Arc::new);
        let wakers = counts.clone().map(Waker::from);
        let first = tasks.register(1, 0, &wakers[0]).unwrap().unwrap();
        let second = tasks.register(2, 0, &wakers[1]).unwrap().unwrap();
        // Another task goes on with what the first one waited for.
        assert_eq!(tasks.register(1, first, &wakers[2]), Ok(Some(first)));
        let wake_all = |tasks: &mut Tasks, woken: &mut Woken| {
            tasks.take(woken);
            woken.wake();
            counts.clone().map(|count| count.0.load(Ordering::Relaxed))
        };
        assert_eq!(wake_all(&mut tasks, &mut woken), [0, 1, 1]);
        assert_eq!(wake_all(&mut tasks, &mut woken), [0, 1, 1]);
        // Where a handle was before, another one may be by now.
        assert_eq!(tasks.register(2, second, &wakers[1]), Ok(Some(0)));
        assert_eq!(tasks.register(1, first, &wakers[0]), Ok(Some(1)));
        assert_eq!(wake_all(&mut tasks, &mut woken), [1, 2, 1]);
    }

    #[test]
    fn there_is_a_limit_and_a_failure_is_told() {
        let (mut tasks, mut woken) = (Tasks::default(), Woken::default());
        for handle in 0..TASKS_MAX as u64 {
            let place = tasks.register(handle, 0, Waker::noop()).unwrap();
            assert!(place.is_some());
        }
        assert_eq!(tasks.register(u64::MAX, 0, Waker::noop()), Ok(None));
        tasks.take(&mut woken);
        woken.wake();
        assert!(
            tasks
                .register(u64::MAX, 0, Waker::noop())
                .unwrap()
                .is_some()
        );
        tasks.fail(&HostError::Forked);
        let refused = tasks.register(1, 0, Waker::noop());
        assert_eq!(refused, Err(HostError::Forked));
    }
}
