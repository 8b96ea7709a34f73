//! Tasks that wait for streams, services, loans and fences: each is woken for what it waits for,
//! whatever that is, and for nothing that comes to others (decision 0021). All in one thread, so
//! nothing happens but what a test does.

use hamlyn::host::process::ProcessHost;
use hamlyn::loans::{PublisherOptions, Subscriber};
use hamlyn::service::{CallError, Client, Deferred, Pending, Service, ServiceOptions};
use hamlyn::stream::{self, StreamOptions};
use hamlyn::{FenceError, ReceiveError, SendError, Strategy, Wait, tagged_write};

use crate::support::LONG;
use crate::support::counted_tasks::{Bystanders, Manager, Scene, Task};

/// Tasks of each kind, and messages that wake them.
const TASKS: usize = 100;
const ROUNDS: usize = 20;

/// The task of a round: each has its turn.
fn task_of(round: usize) -> usize {
    round * 37 % TASKS
}

fn small() -> StreamOptions {
    StreamOptions {
        pieces: 8,
        piece_bytes: 1024,
        limit_bytes: 8 << 10,
        ahead: false,
    }
}

type Received = (stream::Receiver<ProcessHost>, Result<Vec<u8>, ReceiveError>);

fn receiving(mut receiver: stream::Receiver<ProcessHost>) -> Task<Received> {
    Task::new(async move {
        let came = receiver.recv_async().await.map(|record| record.to_vec());
        (receiver, came)
    })
}

fn stream_to(from: &Manager, to: &Manager) -> (stream::Sender<ProcessHost>, Task<Received>) {
    let receiver = stream::Receiver::new(to, small()).unwrap();
    let sender = stream::Sender::grow(from, &receiver.make_seed(), LONG).unwrap();
    (sender, receiving(receiver))
}

#[test]
fn a_record_wakes_the_task_of_its_stream() {
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let (mut senders, mut tasks): (Vec<_>, Vec<_>) = (0..TASKS)
            .map(|_| stream_to(&scene.there, &scene.here))
            .unzip();
        scene.there.flush(LONG).unwrap();
        scene.begin(&mut tasks);
        let mut bystanders = Bystanders::of(&tasks);
        for round in 0..ROUNDS {
            let of = task_of(round);
            senders[of].send(&[round as u8], LONG).unwrap();
            scene.await_woken("a record", &tasks[of]);
            let (receiver, came) = tasks[of].poll().unwrap();
            assert_eq!(came.unwrap(), [round as u8]);
            tasks[of] = receiving(receiver);
            assert!(tasks[of].poll().is_none());
            bystanders.count(&mut tasks);
        }
    }
}

/// Ends all links of a peer, whose end points are still there.
fn end_links(of: &Manager) {
    let links: Vec<_> = of.session().peers().map(|(link, _)| link).collect();
    for link in links {
        of.session().disconnect(link);
    }
}

#[test]
fn a_task_hears_of_the_end_of_its_stream() {
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let (mut closed, first) = stream_to(&scene.there, &scene.here);
        let (dropped, second) = stream_to(&scene.there, &scene.here);
        let (_lost, third) = stream_to(&scene.there, &scene.here);
        scene.there.flush(LONG).unwrap();
        let mut tasks = [first, second, third];
        scene.begin(&mut tasks);
        closed.close(LONG).unwrap();
        let (_, ended) = scene.finish("the end of a stream", &mut tasks[0]);
        assert_eq!(ended, Err(ReceiveError::Closed));
        drop(dropped);
        scene.there.session().poll();
        let (_, ended) = scene.finish("the end of a dropped stream", &mut tasks[1]);
        assert_eq!(ended, Err(ReceiveError::Closed));
        end_links(&scene.there);
        let (_, ended) = scene.finish("the end of a peer", &mut tasks[2]);
        assert!(matches!(ended, Err(ReceiveError::PeerLost(_))), "{ended:?}");
    }
}

type Sent = (stream::Sender<ProcessHost>, Result<(), SendError>);

fn sending(mut sender: stream::Sender<ProcessHost>) -> Task<Sent> {
    Task::new(async move {
        let sent = sender.send_async(&[7; 1024]).await;
        (sender, sent)
    })
}

/// A receiver that keeps all that its memory has room for.
struct Full {
    receiver: stream::Receiver<ProcessHost>,
    kept: Vec<stream::Kept>,
}

/// A stream whose memory is full, and a task that sends one record more.
fn full_stream(scene: &Scene) -> (Full, Task<Sent>) {
    let mut receiver = stream::Receiver::new(&scene.there, small()).unwrap();
    let seed = receiver.make_seed();
    let mut sender = stream::Sender::grow(&scene.here, &seed, LONG).unwrap();
    let mut kept = Vec::new();
    for _ in 0..small().pieces {
        sender.send(&[7; 1024], LONG).unwrap();
        scene.here.flush(LONG).unwrap();
        kept.push(receiver.recv(LONG).unwrap().unwrap().keep());
    }
    (Full { receiver, kept }, sending(sender))
}

#[test]
fn credit_wakes_the_task_that_sends() {
    const STREAMS: usize = 20;
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let (mut receivers, mut tasks): (Vec<_>, Vec<_>) =
            (0..STREAMS).map(|_| full_stream(&scene)).unzip();
        scene.begin(&mut tasks);
        let mut bystanders = Bystanders::of(&tasks);
        scene.here.flush(LONG).unwrap();
        for of in (0..STREAMS).rev() {
            let Full { receiver, kept } = &mut receivers[of];
            kept.clear();
            assert!(receiver.recv(Wait::Poll).unwrap().is_none());
            let (_, sent) = scene.finish("credit", &mut tasks[of]);
            assert_eq!(sent, Ok(()));
            tasks.truncate(of);
            bystanders.count(&mut tasks);
        }
    }
}

#[test]
fn a_task_that_sends_hears_of_the_end_of_its_receiver() {
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let (dropped, first) = full_stream(&scene);
        let (_lost, second) = full_stream(&scene);
        let mut tasks = [first, second];
        scene.begin(&mut tasks);
        drop(dropped);
        scene.there.session().poll();
        let (_, ended) = scene.finish("the end of a receiver", &mut tasks[0]);
        assert_eq!(ended, Err(SendError::ClosedByReceiver));
        end_links(&scene.there);
        let (_, ended) = scene.finish("the end of a peer", &mut tasks[1]);
        assert!(matches!(ended, Err(SendError::PeerLost(_))), "{ended:?}");
    }
}

/// For one client, with one call.
fn single() -> ServiceOptions {
    ServiceOptions {
        clients: 1,
        outstanding: 1,
        request_bytes: 64,
        reply_bytes: 64,
    }
}

fn serving(mut service: Service<ProcessHost>) -> Task<(Service<ProcessHost>, Vec<u8>)> {
    Task::new(async move {
        let call = service.next_async().await.unwrap();
        let request = call.to_vec();
        call.reply(&request).unwrap();
        (service, request)
    })
}

#[test]
fn a_call_wakes_the_task_of_its_service() {
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let bind = |of| scene.here.bind_service(&format!("{of}"), single()).unwrap();
        let mut tasks: Vec<_> = (0..TASKS).map(bind).map(serving).collect();
        let connect = |of| scene.there.connect_service(&format!("here/{of}"), LONG);
        let mut clients: Vec<_> = (0..TASKS).map(|of| connect(of).unwrap()).collect();
        scene.there.flush(LONG).unwrap();
        scene.begin(&mut tasks);
        let mut others_woken = 0;
        for round in 0..ROUNDS {
            let of = task_of(round);
            let call = clients[of].start(&[round as u8], LONG).unwrap();
            scene.await_woken("a call", &tasks[of]);
            for (other, task) in tasks.iter_mut().enumerate() {
                if other != of && task.take_woken() > 0 {
                    others_woken += 1;
                    assert!(task.poll().is_none());
                }
            }
            let (service, request) = tasks[of].poll().unwrap();
            assert_eq!(request, [round as u8]);
            assert_eq!(*clients[of].reply(&call, LONG).unwrap().unwrap(), *request);
            tasks[of] = serving(service);
            assert!(tasks[of].poll().is_none());
        }
        // All look every five seconds who has asked for a place and did not come.
        assert!(others_woken <= 2 * TASKS as u64, "{others_woken}");
    }
}

#[test]
fn a_task_serves_the_next_client_when_the_one_before_is_gone() {
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let service = scene.here.bind_service("one", single()).unwrap();
        let mut first = scene.there.connect_service("here/one", LONG).unwrap();
        let mut task = [serving(service)];
        scene.begin(&mut task);
        // Its greeting, too, has come when its call has: only its end wakes the task then.
        let call = first.start(b"first", LONG).unwrap();
        let (service, request) = scene.finish("a call", &mut task[0]);
        assert_eq!(request, b"first");
        assert_eq!(*first.reply(&call, LONG).unwrap().unwrap(), *b"first");
        task = [serving(service)];
        scene.begin(&mut task);
        end_links(&scene.there);
        scene.await_woken("the end of a client", &task[0]);
        assert!(task[0].poll().is_none());
        let other = Scene::open_peer(&scene.namespace, "other");
        let mut second = other.connect_service("here/one", LONG).unwrap();
        let call = second.start(b"next", LONG).unwrap();
        let (_service, request) = scene.finish("a call", &mut task[0]);
        assert_eq!(request, b"next");
        assert_eq!(*second.reply(&call, LONG).unwrap().unwrap(), *b"next");
        drop(first);
    }
}

type Replied = (Client<ProcessHost>, Result<Vec<u8>, CallError>);

fn calling(mut client: Client<ProcessHost>, call: Pending) -> Task<Replied> {
    Task::new(async move {
        let reply = client.reply_async(&call).await.map(|reply| reply.to_vec());
        (client, reply)
    })
}

/// Calls of as many clients, which their service has put off.
fn calls(
    scene: &Scene,
    clients: usize,
) -> (Service<ProcessHost>, Vec<Deferred>, Vec<Task<Replied>>) {
    let options = ServiceOptions {
        clients: clients as u16,
        ..single()
    };
    let mut service = scene.there.bind_service("calls", options).unwrap();
    let mut begin = || {
        let mut client = loop {
            match scene.here.connect_service("there/calls", Wait::millis(1)) {
                Ok(client) => break client,
                Err(hamlyn::ConnectError::Reach(_)) => {
                    assert!(service.next(Wait::Poll).unwrap().is_none());
                }
                Err(error) => panic!("{error}"),
            }
        };
        let call = client.start(&[], LONG).unwrap();
        let came = service.next(LONG).unwrap().unwrap().defer();
        (came, calling(client, call))
    };
    let (deferred, tasks) = (0..clients).map(|_| begin()).unzip();
    (service, deferred, tasks)
}

#[test]
fn a_reply_wakes_the_task_of_its_call() {
    const CLIENTS: usize = 40;
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let (mut service, mut deferred, mut tasks) = calls(&scene, CLIENTS);
        scene.begin(&mut tasks);
        let mut bystanders = Bystanders::of(&tasks);
        for of in (0..CLIENTS).rev() {
            service.reply(deferred.remove(of), &[of as u8]).unwrap();
            let mut task = tasks.remove(of);
            let (_, reply) = scene.finish("a reply", &mut task);
            assert_eq!(reply.unwrap(), [of as u8]);
            bystanders.count(&mut tasks);
        }
    }
}

#[test]
fn a_task_that_calls_hears_of_the_end_of_its_service() {
    for strategy in Strategy::ALL {
        for is_lost in [false, true] {
            let mut scene = Scene::open(strategy);
            let _bystander = scene.bystander();
            let (service, deferred, mut tasks) = calls(&scene, 2);
            scene.begin(&mut tasks);
            match is_lost {
                true => end_links(&scene.there),
                false => {
                    drop(service);
                    scene.there.session().poll();
                }
            }
            for task in &mut tasks {
                let (_, ended) = scene.finish("the end of a service", task);
                match is_lost {
                    true => assert!(matches!(ended, Err(CallError::PeerLost(_))), "{ended:?}"),
                    false => assert!(
                        matches!(ended, Err(CallError::Dismissed { .. })),
                        "{ended:?}"
                    ),
                }
            }
            drop(deferred);
        }
    }
}

type Read = (Subscriber<ProcessHost>, Result<u64, ReceiveError>);

fn reading(mut subscriber: Subscriber<ProcessHost>) -> Task<Read> {
    Task::new(async move {
        let came = subscriber.recv_async().await.map(|sample| sample.number());
        (subscriber, came)
    })
}

#[test]
fn a_loaned_message_wakes_the_task_of_its_reader() {
    const PUBLISHERS: usize = 20;
    let options = PublisherOptions {
        message_bytes: 64,
        chunks: 4,
        ..PublisherOptions::default()
    };
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let open = |of| {
            let publisher = scene.there.bind_publisher(&format!("{of}"), options);
            let subscriber = scene.here.connect_subscriber(&format!("there/{of}"), LONG);
            scene.here.flush(LONG).unwrap();
            let mut publisher = publisher.unwrap();
            assert_eq!(publisher.await_readers(1, LONG), Ok(1));
            (publisher, reading(subscriber.unwrap()))
        };
        let (mut publishers, mut tasks): (Vec<_>, Vec<_>) = (0..PUBLISHERS).map(open).unzip();
        scene.begin(&mut tasks);
        let mut bystanders = Bystanders::of(&tasks);
        for of in (0..PUBLISHERS).rev() {
            for number in 0..2 {
                let loan = publishers[of].loan(8, LONG).unwrap();
                loan.publish(LONG).unwrap();
                let (subscriber, came) = scene.finish("a message", &mut tasks[of]);
                assert_eq!(came, Ok(number));
                tasks[of] = reading(subscriber);
                assert!(tasks[of].poll().is_none());
                bystanders.count(&mut tasks);
            }
            publishers.truncate(of);
            let (_, ended) = scene.finish("the end of a publisher", &mut tasks[of]);
            assert_eq!(ended, Err(ReceiveError::Closed));
            tasks.truncate(of);
        }
    }
}

/// A fence of what was sent to a peer, which has not looked.
fn fencing(scene: &Scene, to: &Manager) -> Task<Result<(), FenceError>> {
    let tags = tagged_write::Receiver::new(to, 64, 4).unwrap();
    let sender = tagged_write::Sender::grow(&scene.here, &tags.ticket(), LONG).unwrap();
    to.session().poll();
    sender.send(0, &[], 7, LONG).unwrap();
    Task::new(async move {
        let _tags = tags;
        sender.fence_async().await
    })
}

#[test]
fn an_answer_wakes_the_task_of_its_fence() {
    const PEERS: usize = 20;
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let open = |of| Scene::open_peer(&scene.namespace, &format!("peer-{of}"));
        let mut peers: Vec<_> = (0..PEERS).map(open).collect();
        let mut tasks: Vec<_> = peers.iter().map(|peer| fencing(&scene, peer)).collect();
        scene.begin(&mut tasks);
        let mut bystanders = Bystanders::of(&tasks);
        scene.here.flush(LONG).unwrap();
        for of in (0..PEERS - 1).rev() {
            let mut task = tasks.remove(of);
            assert_eq!(scene.fenced(&peers[of], &mut task), Ok(()));
            bystanders.count(&mut tasks);
            peers.truncate(of + 1);
        }
    }
}

/// Of two fences to one peer the first is answered before the second is put, and its end is no end
/// of the wait for the second.
#[test]
fn every_answer_of_a_peer_wakes_its_task() {
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let peer = Scene::open_peer(&scene.namespace, "peer");
        let tags = tagged_write::Receiver::new(&peer, 64, 64).unwrap();
        let sender = tagged_write::Sender::grow(&scene.here, &tags.ticket(), LONG).unwrap();
        let fence = || {
            let sender = sender.clone();
            sender.send(0, &[], 7, LONG).unwrap();
            Task::new(async move { sender.fence_async().await })
        };
        for _ in 0..ROUNDS {
            let mut first = [fence()];
            scene.begin(&mut first);
            scene.here.flush(LONG).unwrap();
            while peer.session().poll() > 0 {}
            let mut second = fence();
            assert!(second.poll().is_none());
            let [first] = &mut first;
            let ended = match strategy {
                Strategy::Proc => scene.finish("the first answer", first),
                // Its question may not be put yet.
                _ => scene.fenced(&peer, first),
            };
            assert_eq!(ended, Ok(()));
            // After this nothing tells of the second but its answer.
            scene.drive();
            assert_eq!(scene.fenced(&peer, &mut second), Ok(()));
        }
    }
}

#[test]
fn a_task_that_fences_hears_of_the_end_of_its_peer() {
    for strategy in Strategy::ALL {
        let mut scene = Scene::open(strategy);
        let _bystander = scene.bystander();
        let peers = ["first", "second"].map(|name| Scene::open_peer(&scene.namespace, name));
        let [first, second] = &peers;
        let mut tasks = [first, second].map(|peer| fencing(&scene, peer));
        scene.begin(&mut tasks);
        end_links(first);
        let ended = scene.finish("the end of a peer", &mut tasks[0]);
        assert!(matches!(ended, Err(FenceError::PeerLost(_))), "{ended:?}");
        assert!(tasks[1].poll().is_none());
    }
}
