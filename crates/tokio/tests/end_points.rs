//! What end points offer to tasks, in every strategy: receives, sends and events as futures.

mod support;

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use hamlyn::ReceiveError;
use hamlyn::event::Event;
use hamlyn::host::process::ProcessHost;
use hamlyn::host::sharing::AnyThread;
use hamlyn::stream::StreamOptions;
use support::{LONG, Shared, in_every_strategy, join};
use tokio::task::JoinSet;

#[test]
fn datagrams_of_any_length_are_sent_and_received() {
    const BYTES: usize = 3 << 20;
    in_every_strategy(|alice, bob| async move {
        let mut inbox = alice.bind_datagram("inbox", BYTES as u32).unwrap();
        let mut done = bob.bind_datagram("done", 64).unwrap();
        let mut outbox = bob.connect_datagram("alice/inbox", LONG).unwrap();
        let mut answers = datagrams_to(&alice, &done);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            for length in [1, 5_000, BYTES, 16] {
                let datagram = inbox.recv_async().await.unwrap();
                assert!(datagram.len() == length && datagram.iter().all(|&byte| byte == 7));
                drop(datagram);
                answers.send_async(b"next").await.unwrap();
            }
        });
        tasks.spawn(async move {
            for length in [1, 5_000, BYTES, 16] {
                outbox.send_async(&vec![7; length]).await.unwrap();
                assert_eq!(done.recv_async().await.unwrap(), b"next");
            }
        });
        join(tasks).await;
    });
}

/// The same by hand; one of them is given up for another.
#[test]
fn a_datagram_that_is_polled_goes_on_where_it_was() {
    const BYTES: usize = 3 << 20;
    in_every_strategy(|alice, bob| async move {
        let mut inbox = alice.bind_datagram("inbox", BYTES as u32).unwrap();
        let mut outbox = bob.connect_datagram("alice/inbox", LONG).unwrap();
        let given_up = vec![1; BYTES];
        let polled = poll_fn(|context| Poll::Ready(outbox.poll_send(context, &given_up))).await;
        match polled {
            Poll::Pending => {
                assert_eq!(outbox.fence_async().await, Ok(()));
                inbox.reset();
            }
            // There was room for all of it.
            Poll::Ready(sent) => {
                sent.unwrap();
                assert_eq!(inbox.recv_async().await.unwrap(), given_up);
            }
        }
        let (taken, mut is_taken) = tokio::sync::mpsc::channel(1);
        let sending = tokio::spawn(async move {
            for length in [BYTES / 2, 1, 5_000, BYTES] {
                let data = vec![length as u8; length];
                let sent = poll_fn(|context| outbox.poll_send(context, &data)).await;
                sent.unwrap();
                is_taken.recv().await.unwrap();
            }
        });
        for length in [BYTES / 2, 1, 5_000, BYTES] {
            let datagram = inbox.recv_async().await.unwrap();
            assert!(datagram.len() == length);
            assert!(datagram.iter().all(|&byte| byte == length as u8));
            drop(datagram);
            taken.send(()).await.unwrap();
        }
        sending.await.unwrap();
    });
}

fn datagrams_to(
    manager: &Shared,
    inbox: &hamlyn::datagram::Receiver<ProcessHost<AnyThread>>,
) -> hamlyn::datagram::Sender<ProcessHost<AnyThread>> {
    hamlyn::datagram::Sender::grow(manager, &inbox.ticket(), LONG).unwrap()
}

#[test]
fn a_stream_is_sent_received_and_closed() {
    const RECORDS: usize = 2_000;
    in_every_strategy(|alice, bob| async move {
        let options = StreamOptions {
            pieces: 8,
            piece_bytes: 256,
            limit_bytes: 8 * 256,
            ahead: false,
        };
        let mut records = alice.bind_stream("log", options).unwrap();
        let mut sender = bob.connect_stream("alice/log", LONG).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            for number in 0..RECORDS {
                // Far more than there is memory for.
                let record = vec![number as u8; number % 700];
                sender.send_async(&record).await.unwrap();
            }
            sender.close_async().await.unwrap();
        });
        tasks.spawn(async move {
            for number in 0..RECORDS {
                let record = records.recv_async().await.unwrap();
                assert_eq!(*record, vec![number as u8; number % 700]);
            }
            let ended = records.recv_async().await;
            assert!(matches!(ended, Err(ReceiveError::Closed)), "{ended:?}");
        });
        join(tasks).await;
    });
}

#[test]
fn events_are_awaited() {
    in_every_strategy(|alice, bob| async move {
        let tags = alice.bind_tagged_write("board", 64, 16).unwrap();
        let waiting = tokio::spawn(async move {
            let arrived = alice.next_event_async().await.unwrap();
            assert!(matches!(arrived, Event::PeerArrived { .. }), "{arrived:?}");
            let left = alice.next_event_async().await.unwrap();
            assert!(matches!(left, Event::PeerLeft { .. }), "{left:?}");
        });
        let sender = bob.connect_tagged_write("alice/board", LONG).unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        drop(sender);
        let links: Vec<_> = bob.session().peers().map(|(link, _)| link).collect();
        let mut interface = bob.session();
        links
            .into_iter()
            .for_each(|link| interface.disconnect(link));
        drop(interface);
        waiting.await.unwrap();
        drop(tags);
    });
}
