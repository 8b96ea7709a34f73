//! All end points of a pair of managers: what they exchange, and their calls in a forked child.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use hamlyn::engine::counting::Counting;
use hamlyn::loans::{Publisher, PublisherOptions, Subscriber};
use hamlyn::service::{Client, Service, ServiceOptions};
use hamlyn::stream::StreamOptions;
use hamlyn::{Address, Host, Manager, Wait, datagram, group, stream, tagged_write};

use crate::Complaints;
use crate::support::{LONG, until};

const BYTES: usize = 64;

pub(crate) struct Ends<H: Host> {
    inbox: datagram::Receiver<H>,
    post: datagram::Sender<H>,
    records: stream::Receiver<H>,
    log: stream::Sender<H>,
    tags: tagged_write::Receiver<H>,
    tagged: tagged_write::Sender<H>,
    parts: group::Receiver<H>,
    service: Service<H>,
    client: Client<H>,
    publisher: Publisher<H>,
    subscriber: Subscriber<H>,
    at: String,
    /// The named one, and the one that connects to it.
    pub(crate) managers: [Manager<H>; 2],
}

/// The first look of a task.
fn first_look<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

impl<H: Host> Ends<H> {
    pub(crate) fn new(managers: [Manager<H>; 2], at: &str) -> Self {
        let [there, here] = &managers;
        let to = |item: &str| format!("{at}/{item}");
        let inbox = there.bind_datagram("inbox", BYTES as u32).unwrap();
        let records = there.bind_stream("log", StreamOptions::default()).unwrap();
        let tags = there.bind_tagged_write("tags", BYTES as u64, 16).unwrap();
        let parts = there
            .bind_group("parts", BYTES as u32, Counting::Bits32)
            .unwrap();
        let mut service = there
            .bind_service("service", ServiceOptions::default())
            .unwrap();
        let options = PublisherOptions::default();
        let mut publisher = there.bind_publisher("frames", options).unwrap();
        let client = here.connect_service(&to("service"), LONG).unwrap();
        let subscriber = here.connect_subscriber(&to("frames"), LONG).unwrap();
        assert!(service.next(Wait::Poll).unwrap().is_none());
        until("the reader", || {
            publisher.poll();
            here.poll_nowait().unwrap();
            (publisher.readers() == 1).then_some(())
        });
        Self {
            post: here.connect_datagram(&to("inbox"), LONG).unwrap(),
            log: here.connect_stream(&to("log"), LONG).unwrap(),
            tagged: here.connect_tagged_write(&to("tags"), LONG).unwrap(),
            inbox,
            records,
            tags,
            parts,
            service,
            client,
            publisher,
            subscriber,
            at: at.to_owned(),
            managers,
        }
    }

    /// One message each way over each pair of end points. Nothing else comes.
    pub(crate) fn exchange(&mut self, round: u8) {
        let bytes = [round; BYTES];
        let [there, here] = &self.managers;
        let drive = || {
            here.poll_nowait().unwrap();
            there.poll_nowait().unwrap();
        };
        self.post.send(&bytes, LONG).unwrap();
        self.log.send(&bytes, LONG).unwrap();
        self.log.flush(LONG).unwrap();
        self.tagged.send(0, &bytes, round.into(), LONG).unwrap();
        until("the datagram", || {
            drive();
            let came = self.inbox.recv(Wait::Poll).unwrap()?;
            assert_eq!(came, bytes);
            Some(())
        });
        until("the record", || {
            drive();
            let came = self.records.recv(Wait::Poll).unwrap()?;
            assert_eq!(came, bytes);
            Some(())
        });
        let tag = until("the tag", || {
            drive();
            self.tags.get_tag(Wait::Poll).unwrap()
        });
        assert_eq!(tag, round.into());
        let member = self.parts.begin().unwrap();
        let mut part = group::Sender::grow(here, &member, LONG).unwrap();
        part.send_last(0, &bytes, LONG).unwrap();
        until("the group", || {
            drive();
            let came = self.parts.recv(Wait::Poll).unwrap()?;
            assert_eq!(came, bytes);
            Some(())
        });
        let call = self.client.start(&bytes, LONG).unwrap();
        until("the call", || {
            drive();
            let asked = self.service.next(Wait::Poll).unwrap()?;
            assert_eq!(*asked, bytes);
            asked.reply(&[!round]).unwrap();
            Some(())
        });
        until("the reply", || {
            drive();
            let reply = self.client.reply(&call, Wait::Poll).unwrap()?;
            assert_eq!(*reply, [!round]);
            Some(())
        });
        drop(call);
        let mut loan = self.publisher.loan(BYTES, LONG).unwrap();
        loan.copy_from_slice(&bytes);
        loan.publish(LONG).unwrap();
        until("the sample", || {
            drive();
            let sample = self.subscriber.recv(Wait::Poll).unwrap()?;
            assert_eq!(sample.to_vec(), bytes);
            Some(())
        });
        assert!(self.inbox.recv(Wait::Poll).unwrap().is_none());
        assert!(self.records.recv(Wait::Poll).unwrap().is_none());
        assert!(self.tags.get_tag(Wait::Poll).unwrap().is_none());
        assert!(self.service.next(Wait::Poll).unwrap().is_none());
        assert!(self.subscriber.recv(Wait::Poll).unwrap().is_none());
        for manager in [here, there] {
            while let Some(event) = manager.next_event(Wait::Poll).unwrap() {
                let told = event.to_string();
                assert!(matches!(event, hamlyn::Event::PeerArrived { .. }), "{told}");
            }
        }
    }

    /// Every public call, as a forked child would make it.
    pub(crate) fn use_all(&mut self, told: &mut Complaints) {
        for bytes in [&[7; 8][..], &[7; BYTES], &[7; 100_000]] {
            told.refused("datagram send", self.post.send(bytes, Wait::Poll));
            told.refused("stream send", self.log.send(bytes, Wait::Poll));
            told.refused("tagged send", self.tagged.send(0, bytes, 9, Wait::Poll));
            told.refused("service call", self.client.call(bytes, Wait::Poll));
            told.refused("service start", self.client.start(bytes, Wait::Poll));
        }
        for wait in [Wait::Poll, Wait::millis(1)] {
            told.refused("datagram recv", self.inbox.recv(wait));
            told.refused("stream recv", self.records.recv(wait));
            told.refused("get_tag", self.tags.get_tag(wait));
            told.refused("specific tag", self.tags.get_specific_tag(1, wait));
            told.refused("tagged recv", self.tags.recv(wait));
            told.refused("group recv", self.parts.recv(wait));
            told.refused("service next", self.service.next(wait));
            told.refused("subscriber recv", self.subscriber.recv(wait));
            told.refused("loan", self.publisher.loan(8, wait));
            told.refused("await_readers", self.publisher.await_readers(9, wait));
            told.refused("await_room", self.publisher.await_room(wait));
            told.refused("publisher flush", self.publisher.flush(wait));
            told.refused("stream flush", self.log.flush(wait));
            told.refused("stream fence", self.log.fence(wait));
            told.refused("datagram fence", self.post.fence(wait));
            told.refused("tagged fence", self.tagged.fence(wait));
            for manager in &self.managers {
                told.refused("flush", manager.flush(wait));
                told.refused("fence", manager.fence(wait));
                told.refused("wait", manager.wait(wait));
                told.refused("next_event", manager.next_event(wait));
            }
        }
        told.refused("datagram revoke", self.inbox.revoke());
        told.refused("tagged revoke", self.tags.revoke());
        told.refused("group begin", self.parts.begin());
        told.refused("group begin_shared", self.parts.begin_shared(&[1, 2]));
        told.refused("datagram info", self.inbox.info());
        told.refused("stream info", self.records.info());
        told.refused("tagged info", self.tags.info());
        told.refused("group info", self.parts.info());
        told.refused("stream close", self.log.close(Wait::Poll));
        self.use_tasks(told);
        self.use_managers(told);
        // These have no error to tell. They must come back, and change nothing.
        self.publisher.poll();
        self.subscriber.reclaim();
        self.records.reclaim();
        self.inbox.reset();
        let _ = (self.subscriber.publisher(), self.records.sender());
        let _ = (self.publisher.readers(), self.publisher.chunks_free());
        let _ = (
            self.log.pieces_free(),
            self.tags.ticket(),
            self.inbox.latest(),
        );
    }

    fn use_tasks(&mut self, told: &mut Complaints) {
        macro_rules! refused {
            ($($name:literal: $future:expr;)*) => {$(
                match first_look($future) {
                    Some(result) => told.refused($name, result),
                    None => told.add(concat!($name, " waits")),
                }
            )*};
        }
        refused! {
            "datagram send_async": self.post.send_async(b"child");
            "datagram recv_async": self.inbox.recv_async();
            "datagram fence_async": self.post.fence_async();
            "stream send_async": self.log.send_async(b"child");
            "stream flush_async": self.log.flush_async();
            "stream fence_async": self.log.fence_async();
            "stream recv_async": self.records.recv_async();
            "tagged send_async": self.tagged.send_async(0, b"child", 1);
            "tagged recv_async": self.tags.recv_async();
            "tagged fence_async": self.tagged.fence_async();
            "service call_async": self.client.call_async(b"child");
            "service start_async": self.client.start_async(b"child");
            "service next_async": self.service.next_async();
            "fence_async": self.managers[1].fence_async();
            "next_event_async": self.managers[1].next_event_async();
            "stream close_async": self.log.close_async();
        }
    }

    fn use_managers(&mut self, told: &mut Complaints) {
        let at = &self.at;
        let to = |item: &str| format!("{at}/{item}");
        let [there, here] = &mut self.managers;
        told.refused("bind_datagram", there.bind_datagram("new", 64));
        told.refused("bind_stream", there.bind_stream("new", Default::default()));
        told.refused("bind_tagged", there.bind_tagged_write("new", 64, 1));
        told.refused("bind_group", there.bind_group("new", 64, Counting::Bits32));
        let options = ServiceOptions::default();
        told.refused("bind_service", there.bind_service("new", options));
        let options = PublisherOptions::default();
        told.refused("bind_publisher", there.bind_publisher("new", options));
        let wait = Wait::millis(1);
        told.refused("datagram", here.connect_datagram(&to("inbox"), wait));
        told.refused("stream", here.connect_stream(&to("log"), wait));
        told.refused("tagged", here.connect_tagged_write(&to("tags"), wait));
        told.refused("service", here.connect_service(&to("service"), wait));
        told.refused("subscriber", here.connect_subscriber(&to("frames"), wait));
        told.refused("group", here.connect_group(&to("parts"), wait));
        told.refused("ask", here.ask(Address::Name("there"), "inbox", wait));
        for manager in [there, here] {
            told.refused("poll_nowait", manager.poll_nowait());
            told.refused("register_waker", manager.register_waker(Waker::noop()));
            told.refused("prepare_sleep", manager.prepare_sleep(wait));
            let mut waiting = hamlyn::Waiting::new(wait);
            told.refused("look", manager.look(&mut waiting));
            let _ = (manager.terminus(), manager.queue_id(), manager.lost());
            let _ = (format!("{manager:?}"), manager.clone().detach().err());
        }
    }
}
