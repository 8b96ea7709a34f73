//! What bad input gets: an error that names the object and the remedy, and nothing lost.

use crate::support;
use crate::support::{LONG, namespace, open, until};
use hamlyn::engine::counting::{Counting, Share};
use hamlyn::engine::key::Key;
use hamlyn::engine::packet::SlotName;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::transport::Return;
use hamlyn::group::{MEMBER_BYTES, Member, MemberError};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::{ConnectError, HostError};
use hamlyn::lane::LaneSeed;
use hamlyn::stream::{SEED_BYTES, StreamOptions, StreamSeed};
use hamlyn::ticket::TICKET_BYTES;
use hamlyn::ticket::TicketKind;
use hamlyn::{
    Address, Destination, FenceError, Manager, ManagerOptions, NewSlot, OpenError, ReceiveError,
    Ticket, TicketError, Wait, datagram, group, stream, tagged_write,
};
use proptest::prelude::*;

fn tickets() -> impl Strategy<Value = Ticket> {
    let destination =
        (any::<u32>(), any::<u32>(), any::<u64>()).prop_map(|(node, user, interface)| {
            Destination {
                node,
                user,
                interface,
            }
        });
    let bounds = (any::<u64>(), any::<u64>())
        .prop_map(|(one, two)| (one.min(two), one.max(two) - one.min(two)));
    (
        destination,
        any::<u32>(),
        any::<u16>(),
        any::<u64>(),
        bounds,
        0..3,
    )
        .prop_map(
            |(destination, slot, metadata_index, key, (base, length_bytes), kind)| Ticket {
                destination,
                slot: SlotName::from_bits(slot),
                metadata_index: match kind {
                    // A port has no entries.
                    2 => u16::MAX,
                    _ => metadata_index,
                },
                key: Key::from_bits(key),
                base,
                length_bytes,
                counting: match kind {
                    0 => Counting::Bits64,
                    _ => Counting::Bits32,
                },
                kind: match kind {
                    2 => TicketKind::Port,
                    _ => TicketKind::Slot,
                },
            },
        )
}

fn members() -> impl Strategy<Value = Member> {
    (tickets(), any::<u64>()).prop_map(|(ticket, share)| {
        let ticket = Ticket {
            kind: TicketKind::Slot,
            ..ticket
        };
        let share = if ticket.counting == Counting::Bits32 {
            share >> 32
        } else {
            share
        };
        Member {
            ticket,
            share: Share::from_minus_one(share, ticket.counting).unwrap(),
        }
    })
}

/// A seed as some receiver made it.
fn seed() -> [u8; SEED_BYTES] {
    let manager = open(&namespace());
    let receiver = stream::Receiver::new(&manager, StreamOptions::default()).unwrap();
    receiver.make_seed().to_bytes()
}

proptest! {
    #[test]
    fn tickets_come_out_as_they_went_in(ticket in tickets()) {
        prop_assert_eq!(Ticket::from_bytes(&ticket.to_bytes()), Ok(ticket));
    }

    #[test]
    fn members_come_out_as_they_went_in(member in members()) {
        prop_assert_eq!(Member::from_bytes(&member.to_bytes()), Ok(member));
    }

    #[test]
    fn any_bytes_are_a_ticket_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(ticket) = Ticket::from_bytes(&bytes) {
            prop_assert_eq!(&ticket.to_bytes()[..], &bytes[..]);
        }
        if let Ok(member) = Member::from_bytes(&bytes) {
            prop_assert_eq!(&member.to_bytes()[..], &bytes[..]);
        }
        if let Ok(seed) = StreamSeed::from_bytes(&bytes) {
            prop_assert_eq!(&seed.to_bytes()[..], &bytes[..]);
        }
        if let Ok(seed) = LaneSeed::from_bytes(&bytes) {
            prop_assert_eq!(&seed.to_bytes()[..], &bytes[..]);
        }
    }

    #[test]
    fn a_ticket_that_was_cut_says_so(ticket in tickets(), length in 0..TICKET_BYTES) {
        let error = Ticket::from_bytes(&ticket.to_bytes()[..length]).unwrap_err();
        prop_assert_eq!(error, TicketError::Length { length_bytes: length });
        prop_assert!(error.to_string().contains("cut"));
    }

    #[test]
    fn a_change_of_one_byte_of_a_ticket_is_found(
        ticket in tickets(), at in 0..TICKET_BYTES, change in 1..=255_u8,
    ) {
        let mut bytes = ticket.to_bytes();
        bytes[at] ^= change;
        prop_assert_eq!(Ticket::from_bytes(&bytes), Err(TicketError::Damaged));
    }

    #[test]
    fn a_change_of_one_byte_of_a_member_is_found(
        member in members(), at in 0..MEMBER_BYTES, change in 1..=255_u8,
    ) {
        let mut bytes = member.to_bytes();
        bytes[at] ^= change;
        prop_assert_eq!(Member::from_bytes(&bytes), Err(MemberError::Ticket(TicketError::Damaged)));
    }
}

#[test]
fn a_seed_that_was_cut_or_changed_is_refused() {
    let good = seed();
    assert_eq!(StreamSeed::from_bytes(&good).unwrap().to_bytes(), good);
    for length in 0..SEED_BYTES {
        assert!(StreamSeed::from_bytes(&good[..length]).is_err(), "{length}");
    }
    for bit in 0..8 * SEED_BYTES {
        let mut bytes = good;
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = StreamSeed::from_bytes(&bytes).unwrap_err();
        assert!(
            error.to_string().contains("damaged") || error.to_string().contains("sum"),
            "{bit}: {error}"
        );
    }
    let cut = StreamSeed::from_bytes(&good[..40]).unwrap_err();
    assert_eq!(cut.to_string(), "the seed is damaged: it was cut");
    let long = [&good[..], &[0]].concat();
    assert!(StreamSeed::from_bytes(&long).is_err());
}

#[test]
fn tickets_of_another_version_or_with_impossible_fields_are_named() {
    let honest = {
        let manager = open(&namespace());
        datagram::Receiver::new(&manager, 64).unwrap().ticket()
    };
    // With a sum that is right: a program that makes a ticket up can do that.
    let with = |change: &dyn Fn(&mut [u8; TICKET_BYTES])| {
        let mut bytes = honest.to_bytes();
        change(&mut bytes);
        let sum = bytes[..48].iter().fold(0x811c_9dc5_u32, |sum, &byte| {
            (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        bytes[48..].copy_from_slice(&sum.to_le_bytes());
        Ticket::from_bytes(&bytes)
    };
    assert_eq!(with(&|_| ()), Ok(honest));
    assert_eq!(
        with(&|bytes| bytes[0] = 2),
        Err(TicketError::Version { found: 2 })
    );
    assert_eq!(
        with(&|bytes| bytes[1] = 3),
        Err(TicketError::Impossible { field: "flags" })
    );
    // A port has no entries.
    assert_eq!(
        with(&|bytes| bytes[1] = 2),
        Err(TicketError::Impossible { field: "entry" })
    );
    let overflow = with(&|bytes| bytes[32..48].fill(0xFF));
    assert_eq!(overflow, Err(TicketError::Impossible { field: "bounds" }));
    assert!(
        overflow
            .unwrap_err()
            .to_string()
            .contains("bounds is impossible")
    );
}

fn gone(error: hamlyn::ConnectError, what: &str) {
    assert!(
        matches!(
            error,
            hamlyn::ConnectError::Reach(ConnectError::Gone { .. })
        ),
        "{what}: {error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("is gone") && text.contains("ask for a new ticket"),
        "{what}: {text}"
    );
}

#[test]
fn tickets_to_somebody_who_is_gone_say_so_at_once() {
    let namespace = namespace();
    let here = open(&namespace);
    let (ticket, seed, member) = {
        let there = open(&namespace);
        let mut group = group::Receiver::new(&there, 64, Counting::Bits32).unwrap();
        let stream = stream::Receiver::new(&there, StreamOptions::default()).unwrap();
        let member = group.begin().unwrap();
        (
            datagram::Receiver::new(&there, 64).unwrap().ticket(),
            stream.make_seed(),
            member,
        )
    };
    let begun = std::time::Instant::now();
    let slots = here.session().slots_open();
    gone(
        datagram::Sender::grow(&here, &ticket, Wait::Forever).unwrap_err(),
        "datagram",
    );
    gone(
        tagged_write::Sender::grow(&here, &ticket, Wait::Forever).unwrap_err(),
        "tagged",
    );
    gone(
        stream::Sender::grow(&here, &seed, Wait::Forever).unwrap_err(),
        "stream",
    );
    gone(
        group::Sender::grow(&here, &member, Wait::Forever).unwrap_err(),
        "group",
    );
    assert!(begun.elapsed() < support::TIMEOUT);
    assert_eq!(
        here.session().slots_open(),
        slots,
        "nothing is left of what failed"
    );
}

#[test]
fn a_made_up_destination_of_another_user_is_not_believed() {
    let namespace = namespace();
    let here = open(&namespace);
    let there = open(&namespace);
    let honest = datagram::Receiver::new(&there, 64).unwrap().ticket();
    let user = honest.destination.user ^ 1;
    let forged = Ticket {
        destination: Destination {
            user,
            ..honest.destination
        },
        ..honest
    };
    let error = datagram::Sender::grow(&here, &forged, Wait::millis(200)).unwrap_err();
    assert!(matches!(error, hamlyn::ConnectError::Reach(_)), "{error:?}");
    assert!(
        here.session()
            .peers()
            .all(|(_, peer)| peer.destination != forged.destination)
    );
}

#[test]
fn nobody_under_that_name_is_said_at_the_deadline() {
    let here = open(&namespace());
    let begun = std::time::Instant::now();
    let error = here
        .session()
        .connect(Address::Name("nobody"), Wait::millis(50))
        .unwrap_err();
    assert!(matches!(error, ConnectError::Absent { .. }), "{error:?}");
    assert!(error.to_string().contains("nobody") && error.to_string().contains("namespace"));
    assert!(begun.elapsed().as_millis() >= 50);
}

fn open_named(namespace: &str, name: &str) -> Result<Manager<ProcessHost>, OpenError> {
    let options = Options::named(name).in_namespace(namespace);
    hamlyn::open_with(options, ManagerOptions::default())
}

#[test]
fn names_in_use_or_impossible_are_named() {
    let namespace = namespace();
    let first = open_named(&namespace, "alice").unwrap();
    let error = open_named(&namespace, "alice").unwrap_err();
    assert!(
        matches!(error, OpenError::Host(HostError::NameInUse { .. })),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("alice") && text.contains("choose another"),
        "{text}"
    );
    for bad in ["", "two words", &"x".repeat(65), "nul\0"] {
        let error = open_named(&namespace, bad).unwrap_err();
        assert!(
            matches!(error, OpenError::Host(HostError::BadName { .. })),
            "{bad:?}: {error:?}"
        );
    }
    // A name is free again as soon as its holder is gone.
    drop(first);
    open_named(&namespace, "alice").unwrap();
}

#[test]
fn impossible_settings_are_named_and_leave_nothing() {
    let manager = open(&namespace());
    let settings = [
        (0, 64, 1 << 20, "pieces"),
        (65_536, 64, u64::MAX, "pieces"),
        (4, 32, 1 << 20, "power of two"),
        (4, 100, 1 << 20, "power of two"),
        (4, 1 << 31, u64::MAX, "power of two"),
        (4, 64, 255, "cover the pieces"),
    ];
    for (pieces, piece_bytes, limit_bytes, word) in settings {
        let options = StreamOptions {
            pieces,
            piece_bytes,
            limit_bytes,
            ahead: false,
        };
        let error = stream::Receiver::new(&manager, options).unwrap_err();
        assert!(matches!(error, OpenError::Setting { .. }), "{error:?}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let ahead = [
        (2048, 1 << 20, "4 KiB"),
        (4096, 4095, "cover the pieces"),
        (4096, (1 << 40) + 1, "1 TiB"),
    ];
    for (piece_bytes, limit_bytes, word) in ahead {
        let options = StreamOptions {
            piece_bytes,
            limit_bytes,
            ahead: true,
            ..StreamOptions::default()
        };
        let error = stream::Receiver::new(&manager, options).unwrap_err();
        assert!(matches!(error, OpenError::Setting { .. }), "{error:?}");
        assert!(error.to_string().contains(word), "{error}");
    }
    for bytes in [0, (1 << 31) + 1, u32::MAX] {
        assert!(datagram::Receiver::new(&manager, bytes).is_err());
    }
    assert!(group::Receiver::new(&manager, u32::MAX, Counting::Bits32).is_err());
    assert!(matches!(
        manager.session().open_queue(1),
        Err(OpenError::Queue(_))
    ));
    let area = manager.session().allocate(64).unwrap();
    let new = || NewSlot::new(&area);
    for range in [0..65, 64..65, 65..65, u64::MAX - 1..u64::MAX] {
        let error = manager.session().open_slot(new().range(range)).unwrap_err();
        assert!(error.to_string().contains("does not fit"), "{error}");
    }
    assert!(matches!(
        manager.session().open_slot(new().entries(65_536)),
        Err(OpenError::Metadata(_))
    ));
    assert_eq!(manager.session().slots_open(), 0);
    // The room that failures reserved is free again: almost all of it.
    let options = StreamOptions {
        pieces: 4_000,
        piece_bytes: 64,
        limit_bytes: 1 << 20,
        ahead: false,
    };
    stream::Receiver::new(&manager, options).unwrap();
}

#[test]
fn memory_that_cannot_be_had_is_an_error_with_its_size() {
    let manager = open(&namespace());
    let needed = 1 << 60;
    let error = manager.session().allocate(needed).unwrap_err();
    assert!(matches!(error, HostError::Memory { needed_bytes, .. } if needed_bytes == needed));
    assert!(error.to_string().contains(&needed.to_string()), "{error}");
    let error = tagged_write::Receiver::new(&manager, needed, 16).unwrap_err();
    assert!(
        matches!(error, OpenError::Host(HostError::Memory { .. })),
        "{error:?}"
    );
    assert_eq!(manager.session().slots_open(), 0);
}

#[test]
fn a_ticket_for_another_protocol_is_refused_on_either_side() {
    let namespace = namespace();
    let here = open(&namespace);
    let there = open(&namespace);
    let mut inbox = datagram::Receiver::new(&there, 64).unwrap();
    inbox.ready();
    let mut tags = tagged_write::Receiver::new(&there, 64, 16).unwrap();
    // A datagram to a fast ticket: the sender's side knows.
    let wrong = datagram::Sender::grow(&here, &tags.ticket(), LONG).unwrap();
    let error = wrong.send(b"datagram", LONG).unwrap_err();
    assert!(error.to_string().contains("fast-mode"), "{error}");
    // A tagged write to a datagram's ticket: without metadata it is no datagram.
    let wrong = tagged_write::Sender::grow(&here, &inbox.ticket(), LONG).unwrap();
    wrong.send(0, b"tagged", 7, LONG).unwrap();
    let error = inbox.recv(LONG).unwrap_err();
    assert!(
        matches!(
            error,
            ReceiveError::Malformed {
                protocol: "datagram",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(tags.get_tag(Wait::Poll), Ok(None));
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let manager = open(&namespace());
    let huge = 1 << 50;
    match manager.session().allocate(huge) {
        Err(HostError::Memory { needed_bytes, .. }) => assert_eq!(needed_bytes, huge),
        other => panic!("{other:?}"),
    }
    assert!(manager.session().allocate(4096).is_ok());
    assert!(manager.session().allocate_handover(4, 4096).is_ok());
    assert!(matches!(
        manager.session().allocate_handover(4, 1000),
        Err(HostError::BadSetting {
            setting: "piece_bytes",
            ..
        })
    ));
}

fn named(namespace: &str, name: &str) -> Manager<ProcessHost> {
    let options = Options::named(name).in_namespace(namespace);
    hamlyn::open_with(options, ManagerOptions::default()).unwrap()
}

/// Sends a datagram to `server/inbox` and fences; why it was refused.
fn send_and_fence(namespace: &str) -> Refusal {
    let there = open(namespace);
    let outbox = there.connect_datagram("server/inbox", LONG).unwrap();
    outbox.send(b"too late", LONG).unwrap();
    match outbox.fence(LONG) {
        Err(FenceError::Refused { count: 1, last }) => match last.reason {
            Return::Refused(refusal) => refusal,
            other => panic!("{other}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_datagram_that_comes_while_another_is_kept_is_refused_and_its_sender_told() {
    let namespace = namespace();
    let server = named(&namespace, "server");
    let mut inbox = server.bind_datagram("inbox", 64).unwrap();
    let outbox = open(&namespace);
    let outbox = outbox.connect_datagram("server/inbox", LONG).unwrap();
    outbox.send(b"first", LONG).unwrap();
    let first = inbox.recv(LONG).unwrap().expect("a datagram");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| send_and_fence(&namespace));
        until("the refusal", || {
            server.session().poll();
            other.is_finished().then_some(())
        });
        assert_eq!(other.join().unwrap(), Refusal::EntrySpent);
    });
    assert_eq!(first, b"first");
    // When it is dropped, there is room again.
    drop(first);
    outbox.send(b"second", LONG).unwrap();
    assert_eq!(inbox.recv(LONG).unwrap().expect("a datagram"), b"second");
}

#[test]
fn messages_to_an_end_point_that_was_dropped_are_refused_and_their_sender_told() {
    let namespace = namespace();
    let server = named(&namespace, "server");
    let inbox = server.bind_datagram("inbox", 64).unwrap();
    let there = open(&namespace);
    let outbox = there.connect_datagram("server/inbox", LONG).unwrap();
    outbox.send(b"on its way", LONG).unwrap();
    drop(inbox);
    let refused = until("the fence", || {
        server.session().poll();
        match outbox.fence(Wait::millis(1)) {
            Err(FenceError::TimedOut { .. }) => None,
            other => Some(other.unwrap_err()),
        }
    });
    assert!(
        matches!(refused, FenceError::Refused { count: 1, .. }),
        "{refused}"
    );
    // Nor is it found any more.
    let error = there.connect_datagram("server/inbox", Wait::millis(1));
    assert!(matches!(error, Err(hamlyn::ConnectError::Reach(_))));
}

#[test]
fn no_time_at_all_is_an_error_that_names_whom_was_looked_for() {
    let there = open(&namespace());
    for wait in [Wait::Poll, Wait::millis(0)] {
        let error = there.connect_stream("nobody/stream", wait).unwrap_err();
        assert!(error.to_string().contains("nobody"), "{error}");
        let error = there.connect_service("nobody/service", wait).unwrap_err();
        assert!(error.to_string().contains("nobody"), "{error}");
    }
}

/// All texts of up to five characters of two: an interface opens under none that no address leads
/// to.
#[test]
fn a_name_that_can_be_published_can_be_reached() {
    let space = namespace();
    let mut texts = vec![String::new()];
    for at in 0.. {
        let Some(text) = texts.get(at).filter(|text| text.len() < 5).cloned() else {
            break;
        };
        texts.extend([format!("{text}a"), format!("{text}/")]);
    }
    let mut reached = 0;
    for text in texts {
        let mut options = Options::default().in_namespace(&space);
        options.name = Some(text.clone());
        let there: Manager<ProcessHost> =
            match hamlyn::open_with(options, ManagerOptions::default()) {
                Ok(there) => there,
                Err(OpenError::Host(HostError::BadName { name, .. })) => {
                    assert_eq!(name, text);
                    continue;
                }
                Err(error) => panic!("{text:?}: {error}"),
            };
        let inbox = there.bind_datagram("in", 64).unwrap();
        let here = open(&space);
        let connected = here.connect_datagram(&format!("{text}/in"), LONG);
        assert!(connected.is_ok(), "{text:?}: {connected:?}");
        drop(inbox);
        reached += 1;
    }
    assert_eq!(
        reached,
        5 + 3 + 2 + 1,
        "a to aaaaa, and those with one slash within"
    );
}
