//! A call that fails leaves nothing behind, and takes nothing that the next one needs: end points
//! are bound and connected in vain again and again.

use std::thread;

use hamlyn::engine::counting::Counting;
use hamlyn::engine::grant::GrantRefused;
use hamlyn::engine::slot::Rights;
use hamlyn::error::{ConnectError, OpenError, SendError};
use hamlyn::group::BeginError;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::host::{Address, ConnectError as Reach, RefusedBecause, Supply};
use hamlyn::lane::{Lane, LaneOptions};
use hamlyn::loans::{PublisherOptions, SlowReaders};
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::region::SharedOptions;
use hamlyn::service::ServiceOptions;
use hamlyn::stream::StreamOptions;
use hamlyn::{Access, Area, Holders, Manager, ManagerOptions, NewSlot, ShareError, Slot, Wait};

use crate::support::{LONG, namespace, open, open_shared, until};

const ATTEMPTS: usize = 1_000;

type Local = Manager<ProcessHost>;
type Attempt<E> = (&'static str, fn(&Local, &str) -> Result<(), E>);

fn named(namespace: &str, name: &str) -> Local {
    let options = Options::named(name).in_namespace(namespace);
    hamlyn::open_with(options, ManagerOptions::default()).unwrap()
}

fn publish(manager: &Local, item: &str, slow_readers: SlowReaders) -> Result<(), OpenError> {
    let options = PublisherOptions {
        message_bytes: 64,
        slow_readers,
        ..PublisherOptions::default()
    };
    manager.bind_publisher(item, options).map(drop)
}

/// Each binds an end point and drops it.
const BINDS: [Attempt<OpenError>; 9] = [
    ("datagram", |it, item| it.bind_datagram(item, 64).map(drop)),
    ("stream", |it, item| {
        it.bind_stream(item, StreamOptions::default()).map(drop)
    }),
    ("mailbox", |it, item| {
        it.bind_mailbox(item, MailboxOptions::default()).map(drop)
    }),
    ("tagged write", |it, item| {
        it.bind_tagged_write(item, 64, 4).map(drop)
    }),
    ("group", |it, item| {
        it.bind_group(item, 64, Counting::Bits32).map(drop)
    }),
    ("service", |it, item| {
        it.bind_service(item, ServiceOptions::default()).map(drop)
    }),
    ("publisher", |it, item| {
        publish(it, item, SlowReaders::Block)
    }),
    ("publisher that loses", |it, item| {
        publish(it, item, SlowReaders::Lose)
    }),
    ("publisher of the latest", |it, item| {
        publish(it, item, SlowReaders::Latest)
    }),
];

/// Each connects to an end point and drops what it has.
const CONNECTS: [Attempt<ConnectError>; 7] = [
    ("datagram", |it, to| {
        it.connect_datagram(to, Wait::Poll).map(drop)
    }),
    ("stream", |it, to| {
        it.connect_stream(to, Wait::Poll).map(drop)
    }),
    ("mailbox", |it, to| {
        it.connect_mailbox(to, Wait::Poll).map(drop)
    }),
    ("tagged write", |it, to| {
        it.connect_tagged_write(to, Wait::Poll).map(drop)
    }),
    ("group", |it, to| it.connect_group(to, Wait::Poll).map(drop)),
    ("service", |it, to| {
        it.connect_service(to, Wait::Poll).map(drop)
    }),
    ("publisher", |it, to| {
        it.connect_subscriber(to, Wait::Poll).map(drop)
    }),
];

/// Takes all the room that there is in the manager's queue.
fn take_all_room(manager: &Local) -> Lane {
    let entries = ManagerOptions::default().queue_entries as u16;
    let options = LaneOptions {
        buffers: entries - 3,
        buffer_bytes: 1,
    };
    Lane::open(&mut manager.session(), options).unwrap()
}

#[test]
fn a_bind_to_an_item_that_is_taken_leaves_nothing() {
    for (what, bind) in BINDS {
        let here = open(&namespace());
        let owner = here
            .bind_mailbox("item", MailboxOptions::default())
            .unwrap();
        let before = here.session().slots_open();
        for _ in 0..ATTEMPTS {
            let bound = bind(&here, "item");
            assert!(
                matches!(bound, Err(OpenError::ItemTaken { .. })),
                "{what}: {bound:?}"
            );
        }
        assert_eq!(here.session().slots_open(), before, "{what}");
        drop(owner);
        bind(&here, "item").unwrap();
        take_all_room(&here).close(&mut here.session());
    }
}

#[test]
fn a_bind_without_room_leaves_nothing() {
    for (what, bind) in BINDS {
        let here = open(&namespace());
        let all = take_all_room(&here);
        let before = here.session().slots_open();
        for _ in 0..ATTEMPTS {
            let bound = bind(&here, "item");
            assert!(
                matches!(bound, Ok(()) | Err(OpenError::QueueRoom { .. })),
                "{what}: {bound:?}"
            );
        }
        assert_eq!(here.session().slots_open(), before, "{what}");
        all.close(&mut here.session());
        take_all_room(&here).close(&mut here.session());
        bind(&here, "item").unwrap();
    }
}

#[test]
fn connecting_to_nobody_leaves_nothing() {
    let namespace = namespace();
    let here = open(&namespace);
    let there = named(&namespace, "there");
    for (what, connect) in CONNECTS {
        for to in ["nobody/item", "there/item", "there/", "there"] {
            for _ in 0..ATTEMPTS {
                let connected = connect(&here, to);
                assert!(connected.is_err(), "{what}");
            }
        }
        assert_eq!(here.session().slots_open(), 0, "{what}");
    }
    take_all_room(&here).close(&mut here.session());
    drop(there);
}

/// A call that is refused leaves the round that has begun as it was.
#[test]
fn a_round_that_cannot_begin_changes_nothing() {
    let namespace = namespace();
    let there = named(&namespace, "there");
    let here = open(&namespace);
    let mut group = there.bind_group("parts", 5_000, Counting::Bits64).unwrap();
    let mut alone = hamlyn::group::Receiver::new(&there, 4, Counting::Bits32).unwrap();
    let member = alone.begin().unwrap();
    let refused = alone.begin_shared(&[4]);
    assert!(matches!(refused, Err(BeginError::NotBound)), "{refused:?}");
    let mut sender = hamlyn::group::Sender::grow(&here, &member, LONG).unwrap();
    sender.send_last(0, b"ours", LONG).unwrap();
    assert_eq!(alone.recv(LONG), Ok(Some(&b"ours"[..])));

    group.begin_shared(&[4_996, 4]).unwrap();
    for _ in 0..ATTEMPTS {
        let refused = group.begin_shared(&[5_001]);
        assert!(matches!(refused, Err(BeginError::Split(_))), "{refused:?}");
    }
    for part in [&[1; 4_996][..], &[2; 4]] {
        let mut sender = here.connect_group("there/parts", LONG).unwrap();
        sender.send_last(0, part, LONG).unwrap();
    }
    assert_eq!(group.recv(LONG).unwrap().map(<[u8]>::len), Some(5_000));

    // More parts than an interface offers.
    for _ in 0..3 {
        let refused = group.begin_shared(&[1; 5_000]);
        assert!(matches!(refused, Err(BeginError::Open(_))), "{refused:?}");
    }
    assert!(here.connect_group("there/parts", Wait::millis(10)).is_err());
    let _other = there
        .bind_mailbox("other", MailboxOptions::default())
        .unwrap();
}

type Shared = Manager<ProcessHost<AnyThread>>;

/// A program whose link is full, and the one that does not take what is in it.
struct FullLink {
    there: Local,
    here: Shared,
    inbox: mailbox::Receiver,
}

impl FullLink {
    fn new() -> Self {
        let namespace = namespace();
        let there = named(&namespace, "there");
        let inbox = there
            .bind_mailbox("inbox", MailboxOptions::default())
            .unwrap();
        let here = open_shared(&namespace);
        Self { there, here, inbox }
    }

    fn fill(&self) {
        let sender = self.here.connect_mailbox("there/inbox", LONG).unwrap();
        // The ring first, then the work queue, which takes short ones only.
        for bytes in [1_024, 64, 0] {
            while sender.send(&[7; 1_024][..bytes], Wait::Poll).is_ok() {}
        }
    }

    /// Connects twice: in vain to what was looked up while the link is full, and to the same when
    /// it is not.
    fn connect<E: Send>(
        &mut self,
        to: &str,
        connect: impl Fn(&Shared, hamlyn::EndPoint<'_>, Wait) -> Result<E, ConnectError> + Sync,
    ) -> E {
        let found = self.here.look_up(&[to], LONG).remove(0).unwrap();
        self.fill();
        let full = connect(&self.here, found.into(), Wait::Poll).map(drop);
        assert!(
            matches!(full, Err(ConnectError::Send(SendError::WouldBlock { .. }))),
            "{to}: {full:?}"
        );
        assert_eq!(self.here.session().slots_open(), 0, "{to}");
        while self.inbox.recv(Wait::Poll).unwrap().is_some() {}
        let here = &self.here;
        connected(&self.there, || connect(here, to.into(), LONG))
    }
}

/// Connects in another thread, while this one takes what comes to the peer.
fn connected<E: Send>(
    there: &Local,
    connect: impl FnOnce() -> Result<E, ConnectError> + Send,
) -> E {
    thread::scope(|scope| {
        let connecting = scope.spawn(connect);
        until("the end of connecting", || {
            there.session().poll();
            connecting.is_finished().then_some(())
        });
        connecting.join().unwrap().unwrap()
    })
}

/// What is offered to one peer alone is not lost with an attempt whose greeting found no room, nor
/// given away by it.
#[test]
fn a_greeting_without_room_takes_nothing_from_the_next() {
    let mut scene = FullLink::new();
    let mut log = scene
        .there
        .bind_stream("log", StreamOptions::default())
        .unwrap();
    let mut sender = scene.connect("there/log", |here, to, wait| here.connect_stream(to, wait));
    sender.send(b"first", LONG).unwrap();
    assert_eq!(log.recv(LONG).unwrap().unwrap(), b"first");

    let mut scene = FullLink::new();
    let for_one = ServiceOptions {
        clients: 1,
        ..ServiceOptions::default()
    };
    let mut service = scene.there.bind_service("echo", for_one).unwrap();
    let mut client = scene.connect("there/echo", |here, to, wait| {
        here.connect_service(to, wait)
    });
    let call = client.start(b"?", LONG).unwrap();
    service.next(LONG).unwrap().unwrap().reply(b"!").unwrap();
    assert_eq!(&*client.reply(&call, LONG).unwrap().unwrap(), b"!");

    let mut scene = FullLink::new();
    let for_one = PublisherOptions {
        readers: 1,
        message_bytes: 64,
        slow_readers: SlowReaders::Latest,
        ..PublisherOptions::default()
    };
    let mut publisher = scene.there.bind_publisher("news", for_one).unwrap();
    let connect = |here: &Shared, to: hamlyn::EndPoint<'_>, wait| here.connect_subscriber(to, wait);
    let _subscriber = scene.connect("there/news", connect);
    assert_eq!(publisher.await_readers(1, LONG), Ok(1));
}

/// A place that cannot be offered is one for which there is no room: those who ask hear so.
#[test]
fn a_place_that_cannot_be_offered_is_told_of() {
    let namespace = namespace();
    let there = named(&namespace, "there");
    let here = open(&namespace);
    let options = ServiceOptions {
        clients: 8,
        ..ServiceOptions::default()
    };
    let mut service = there.bind_service("echo", options).unwrap();
    let mut asked = 0;
    until("the reason", || {
        while there.session().offer("other", Supply::Once, b"x").is_ok() {}
        assert!(service.next(Wait::Poll).unwrap().is_none());
        match here.ask(Address::Name("there"), "echo", Wait::millis(50)) {
            Ok(_) => asked += 1,
            Err(ConnectError::Reach(Reach::Refused {
                reason: RefusedBecause::SHORT,
                ..
            })) => return Some(()),
            Err(_) => {}
        }
        None
    });
    assert!(asked < options.clients, "{asked}");
}

/// Nor is it lost with an attempt that took it for something else.
#[test]
fn connecting_by_another_protocol_takes_nothing_from_the_next() {
    let namespace = namespace();
    let there = named(&namespace, "there");
    let here = open_shared(&namespace);
    let _log = there.bind_stream("log", StreamOptions::default()).unwrap();
    for _ in 0..20 {
        let other = here.connect_mailbox("there/log", LONG).map(drop);
        assert!(
            matches!(other, Err(ConnectError::OtherProtocol { .. })),
            "{other:?}"
        );
    }
    connected(&there, || here.connect_stream("there/log", LONG));
}

/// A slot's handle that is another manager's says less of the slot of that name here than it has.
#[test]
fn pages_that_cannot_be_shared_are_not_shared() {
    const PAGE: u64 = 4_096;
    let open_slot = |pages: u64| {
        let manager = open(&namespace());
        let area = Area::shared(SharedOptions::sparse(2 * PAGE)).unwrap();
        let new = NewSlot::new(&area).range(0..pages * PAGE);
        let slot = manager.session().open_slot(new.rights(Rights::WRITE));
        (manager, slot.unwrap())
    };
    let ((here, slot), (_there, shorter)) = (open_slot(2), open_slot(1));
    assert_eq!(shorter.name(), slot.name());
    let share = |slot: &Slot| {
        let mut session = here.session();
        session.share(slot, PAGE..2 * PAGE, Access::Writable, Holders::Linked)
    };
    for _ in 0..ATTEMPTS {
        let refused = share(&shorter).map(drop);
        let not_open = GrantRefused::NotOpen(slot.name());
        assert_eq!(refused, Err(ShareError::Refused(not_open)));
    }
    let region = share(&slot).unwrap();
    here.session().revoke(&region).unwrap();
}
