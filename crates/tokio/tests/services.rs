//! Services and their clients in tasks, in every strategy.

mod support;

use std::time::Duration;

use hamlyn::host::process::ProcessHost;
use hamlyn::host::sharing::AnyThread;
use hamlyn::service::{CallError, Client, ServiceOptions};
use hamlyn::{Address, Strategy, Wait};
use support::{LONG, Shared, in_every_strategy, in_strategy, join};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

async fn connect(manager: &Shared) -> Client<ProcessHost<AnyThread>> {
    let connect = |manager: &Shared| manager.connect_service("alice/service", LONG);
    hamlyn_tokio::connect(manager, connect).await.unwrap()
}

/// Clients connect while the manager that they share is in use; there are more of them than lanes
/// are offered at a time.
#[test]
fn a_service_answers_calls_of_many_tasks() {
    const CLIENTS: u32 = 6;
    const CALLS: u32 = 50;
    in_every_strategy(|alice, bob| async move {
        let mut service = alice
            .bind_service("service", ServiceOptions::default())
            .unwrap();
        let serving = tokio::spawn(async move {
            loop {
                let call = service.next_async().await.unwrap();
                let sum: u32 = call.iter().map(|&byte| u32::from(byte)).sum();
                // One that is cancelled has nobody to hear its answer.
                let _ = call.reply(&sum.to_le_bytes());
            }
        });
        let mut tasks = JoinSet::new();
        for number in 0..CLIENTS {
            let bob = bob.clone();
            tasks.spawn(async move {
                let mut client = connect(&bob).await;
                for call in 0..CALLS {
                    let request = [number as u8, call as u8];
                    // Given up at once, most of them before the answer.
                    let _ = timeout(Duration::ZERO, client.call_async(&[1])).await;
                    let reply = client.call_async(&request).await.unwrap();
                    assert_eq!(*reply, (number + call).to_le_bytes());
                }
            });
        }
        join(tasks).await;
        serving.abort();
    });
}

/// One that is given up connects all the same, and leaves again.
#[test]
fn a_connection_that_is_given_up_costs_others_nothing() {
    in_every_strategy(|alice, bob| async move {
        let wait = Wait::millis(100);
        let early = move |bob: &Shared| bob.connect_service("alice/service", wait);
        let early = hamlyn_tokio::connect(&bob, early);
        assert!(timeout(Duration::ZERO, early).await.is_err());
        let options = ServiceOptions {
            clients: 1,
            ..ServiceOptions::default()
        };
        let mut service = alice.bind_service("service", options).unwrap();
        let serving = tokio::spawn(async move {
            let call = service.next_async().await.unwrap();
            call.reply(b"heard").unwrap();
            service
        });
        // There is room for it when the first one has left.
        let mut client = connect(&bob).await;
        assert_eq!(*client.call_async(b"?").await.unwrap(), *b"heard");
        serving.await.unwrap();
    });
}

/// Before anything was asked, while the reply is awaited, and while a place for another call is.
#[test]
fn a_call_that_is_dropped_is_cancelled_or_never_sent() {
    in_every_strategy(|alice, bob| async move {
        let options = ServiceOptions {
            outstanding: 1,
            ..ServiceOptions::default()
        };
        let mut service = alice.bind_service("service", options).unwrap();
        let mut client = connect(&bob).await;
        drop(client.call_async(b"unasked"));
        let once = async |client: &mut Client<_>, request: &[u8]| {
            let called = timeout(Duration::ZERO, client.call_async(request)).await;
            assert!(called.is_err(), "{called:?}");
        };
        once(&mut client, b"given up").await;
        once(&mut client, b"without a place").await;
        let serving = tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                let call = service.next_async().await.unwrap();
                seen.push(call.to_vec());
                let is_last = *call == *b"awaited";
                call.reply(b"heard").unwrap();
                if is_last {
                    return seen;
                }
            }
        });
        assert_eq!(*client.call_async(b"awaited").await.unwrap(), *b"heard");
        let seen = serving.await.unwrap();
        // What was given up may have come before it was.
        let (last, before) = seen.split_last().unwrap();
        assert_eq!(last, b"awaited");
        assert!(
            before.iter().all(|request| request == b"given up"),
            "{seen:?}"
        );
    });
}

#[test]
fn a_wait_for_calls_that_is_dropped_loses_none() {
    const CALLS: u8 = 100;
    in_every_strategy(|alice, bob| async move {
        let mut service = alice
            .bind_service("service", ServiceOptions::default())
            .unwrap();
        let calling = tokio::spawn(async move {
            let mut client = connect(&bob).await;
            for number in 0..CALLS {
                assert_eq!(*client.call_async(&[number]).await.unwrap(), [number]);
            }
        });
        let (mut answered, mut tries) = (0, 0);
        while answered < CALLS {
            // Now and then for no time, and for about as long as it takes.
            let span = Duration::from_micros(tries % 5 * 50);
            tries += 1;
            if let Ok(call) = timeout(span, service.next_async()).await {
                let call = call.unwrap();
                assert_eq!(*call, [answered]);
                answered += 1;
                let request = call.to_vec();
                call.reply(&request).unwrap();
            } else {
                tokio::task::yield_now().await;
            }
        }
        calling.await.unwrap();
    });
}

/// A call that was dropped, and a service that ends.
#[test]
fn a_task_that_awaits_a_reply_is_told_that_none_comes() {
    in_every_strategy(|alice, bob| async move {
        let mut service = alice
            .bind_service("service", ServiceOptions::default())
            .unwrap();
        let mut client = connect(&bob).await;
        let calling = tokio::spawn(async move {
            let dropped = client.call_async(b"dropped").await.map(|_| ());
            assert!(
                matches!(dropped, Err(CallError::Unanswered { .. })),
                "{dropped:?}"
            );
            client.call_async(b"too late").await.map(|_| ())
        });
        drop(service.next_async().await.unwrap());
        let call = service.next_async().await.unwrap().defer();
        drop(service);
        let ended = calling.await.unwrap();
        assert!(
            matches!(ended, Err(CallError::Dismissed { .. })),
            "{ended:?}"
        );
        drop(call);
    });
}

/// Lanes whose askers never come are replaced while the service's task waits and nothing happens.
#[test]
fn a_service_that_waits_offers_lanes_anew() {
    std::thread::scope(|scope| {
        for strategy in Strategy::ALL {
            scope.spawn(move || {
                in_strategy(strategy, |alice, bob| async move {
                    let mut service = alice
                        .bind_service("service", ServiceOptions::default())
                        .unwrap();
                    let serving = tokio::spawn(async move {
                        let call = service.next_async().await.unwrap();
                        call.reply(b"heard").unwrap();
                        service
                    });
                    let asking = bob.clone();
                    let ask = move || {
                        let alice = Address::Name("alice");
                        let mut interface = asking.session();
                        while interface.ask(alice, "service", Wait::millis(50)).is_ok() {}
                    };
                    spawn_blocking(ask).await.unwrap();
                    let mut client = connect(&bob).await;
                    assert_eq!(*client.call_async(b"?").await.unwrap(), *b"heard");
                    serving.await.unwrap();
                });
            });
        }
    });
}
