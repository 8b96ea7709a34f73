//! What the tests of this crate have in common.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::process::id;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::{Manager, ManagerOptions, Strategy, Wait};
use hamlyn_tokio::spawn;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
pub(crate) const LONG: Wait = Wait::For(TIMEOUT);

pub(crate) type Shared = Manager<ProcessHost<AnyThread>>;

/// A manager with a name, and one without, both driven; in every strategy, for programs of several
/// threads.
pub(crate) fn in_every_strategy<F: Future<Output = ()>>(program: impl Fn(Shared, Shared) -> F) {
    for strategy in Strategy::ALL {
        in_strategy(strategy, &program);
    }
}

/// The same in one strategy.
pub(crate) fn in_strategy<F: Future<Output = ()>>(
    strategy: Strategy,
    program: impl Fn(Shared, Shared) -> F,
) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let namespace = format!("ends{}-{number}", id());
    let options = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    let open = |host: Options| {
        let opened = hamlyn::open_shared(host.in_namespace(&namespace), options);
        opened.expect("a manager")
    };
    let (alice, bob) = (open(Options::named("alice")), open(Options::default()));
    let mut threads = Builder::new_multi_thread();
    let runtime = threads.worker_threads(4).enable_all().build().unwrap();
    let ended = runtime.block_on(async {
        let _driven = [spawn(&alice).unwrap(), spawn(&bob).unwrap()];
        timeout(TIMEOUT, program(alice, bob)).await
    });
    assert!(ended.is_ok(), "{strategy:?}: it did not end");
}

pub(crate) async fn join(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}
