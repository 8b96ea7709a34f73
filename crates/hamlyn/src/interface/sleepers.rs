//! Threads and event loops that sleep at an interface's descriptor while the interface is used, by
//! other threads or by other tasks of the same one.
//!
//! The first of them announces the sleep to the peers; others that come while the announcement
//! stands join it, and the last to leave ends it. A peer rings once for an announcement, and the
//! descriptor stays readable until the next one. So there is no next one before all have returned
//! that slept by the last: a ring that one of them has not seen yet is never taken away.

/// See the module.
#[derive(Default)]
pub(crate) struct Sleepers {
    pub(super) count: u32,
    /// The interface's activity when they were last told of it.
    pub(super) told: u64,
    /// How often a link had run out of room when they announced themselves.
    pub(super) credit_waits: u64,
    /// They were woken: no thread joins them.
    pub(super) is_over: bool,
    /// Wakes them; from the first time on.
    pub(super) waker: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Sleepers {
    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        self.count > 0
    }
}

/// What a thread does that wanted to sleep.
pub(crate) enum Joined {
    /// It sleeps, until then at the latest.
    Asleep(Option<u64>),
    /// There may be something to look at.
    Ready,
    /// Others were woken and have not returned: to be tried again when they have, or soon.
    Crowded,
}
