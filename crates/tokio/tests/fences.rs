//! Fences in tasks, in every strategy.

mod support;

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use hamlyn::{FenceError, datagram, tagged_write};
use support::{LONG, in_every_strategy, join};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// When a fence is over, what its task sent before is in its place. Many are under way at a time,
/// and some are given up.
#[test]
fn what_was_sent_before_a_fence_is_in_its_place_after_it() {
    const TASKS: u64 = 6;
    const ROUNDS: u64 = 100;
    in_every_strategy(|alice, bob| async move {
        let tags = tagged_write::Receiver::new(&alice, 8 * TASKS, 4096).unwrap();
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let mut sender = tagged_write::Sender::grow(&bob, &tags.ticket(), LONG).unwrap();
            let (bob, area) = (bob.clone(), tags.area().clone());
            tasks.spawn(async move {
                for round in 1..=ROUNDS {
                    let data = round.to_le_bytes();
                    sender.send_async(8 * task, &data, round).await.unwrap();
                    if round % 3 == 0 {
                        let _ = timeout(Duration::ZERO, bob.fence_async()).await;
                        drop(sender.fence_async());
                    }
                    let fenced = match round % 2 {
                        0 => bob.fence_async().await,
                        _ => sender.fence_async().await,
                    };
                    assert_eq!(fenced, Ok(()));
                    let mut found = [0; 8];
                    area.read_at(8 * task, &mut found).unwrap();
                    assert_eq!(found, data);
                }
            });
        }
        join(tasks).await;
    });
}

/// A refusal is told once, whether by a fence of its sender or by one to all, and whatever was
/// given up before.
#[test]
fn a_refusal_is_told_by_the_fence_that_is_not_given_up() {
    const ROUNDS: usize = 50;
    in_every_strategy(|alice, bob| async move {
        let not_ready = datagram::Receiver::new(&alice, 64).unwrap();
        let sender = datagram::Sender::grow(&bob, &not_ready.ticket(), LONG).unwrap();
        for round in 0..ROUNDS {
            sender.send(b"refused", LONG).unwrap();
            let mut refused = 0;
            if round % 2 == 0 {
                let mut fence = Box::pin(bob.fence_async());
                let polled = poll_fn(|context| Poll::Ready(fence.as_mut().poll(context))).await;
                if let Poll::Ready(fenced) = polled {
                    assert!(matches!(fenced, Err(FenceError::Refused { count: 1, .. })));
                    refused += 1;
                }
            }
            let fenced = match round % 4 {
                0 | 1 => sender.fence_async().await,
                _ => bob.fence_async().await,
            };
            match fenced {
                Err(FenceError::Refused { count: 1, .. }) => refused += 1,
                Ok(()) => {}
                other => panic!("{other:?}"),
            }
            assert_eq!(refused, 1);
        }
    });
}

/// A peer that goes ends the fences that wait for it.
#[test]
fn a_fence_ends_with_its_peer() {
    in_every_strategy(|alice, bob| async move {
        let namespace = bob.session().host().namespace().to_owned();
        // Nobody drives it.
        let host = hamlyn::host::process::Options::default().in_namespace(&namespace);
        let silent = hamlyn::open_shared(host, hamlyn::ManagerOptions::default()).unwrap();
        let tags = tagged_write::Receiver::new(&silent, 64, 16).unwrap();
        let mut sender = tagged_write::Sender::grow(&bob, &tags.ticket(), LONG).unwrap();
        sender.send_async(0, b"unheard", 1).await.unwrap();
        let of_sender = tokio::spawn(async move { sender.fence_async().await });
        let to_all = tokio::spawn(async move { bob.fence_async().await });
        assert_eq!(alice.fence_async().await, Ok(()));
        drop((tags, silent));
        let mut lost = 0;
        for fence in [of_sender, to_all] {
            match fence.await.unwrap() {
                Err(FenceError::PeerLost(_)) => lost += 1,
                // It began when the other one had told of it.
                fenced => assert_eq!(fenced, Ok(())),
            }
        }
        assert!(lost > 0);
    });
}
