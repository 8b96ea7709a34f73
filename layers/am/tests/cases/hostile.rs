//! A peer that speaks to the ports directly, with the keys that it has, and says what it likes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hamlyn::engine::key::Key;
use hamlyn::engine::packet::SlotName;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::transport::Return;
use hamlyn::error::FenceError;
use hamlyn::{Area, Message, NewPort, Target, Ticket, Wait};
use hamlyn_am::{Error, Name, Reason, Tag};
use ring::hmac;

use crate::World;
use crate::player::LONG;

const TAG: Tag = Tag::new(7);
const ASK: u8 = 3;

/// The tickets that follow from a name and a tag: of the port of its endpoint, and of that of its
/// node to which answers go.
fn tickets(name: &Name, any: &Ticket) -> [Ticket; 2] {
    let bytes = name.to_bytes();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut text = *b"am-tag/2........";
    text[8..].copy_from_slice(&7_u64.to_le_bytes());
    let sum = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes[24..40]), &text);
    let key = u64::from_le_bytes(sum.as_ref()[..8].try_into().unwrap());
    let ticket = |port, key| Ticket {
        destination: name.interface(),
        slot: SlotName::from_bits(port),
        key: Key::from_bits(key),
        ..*any
    };
    [ticket(half(20), key), ticket(half(40), word(44))]
}

/// Whatever a peer with the right tag sends, nothing is harmed but its own link.
pub(crate) fn a_peer_that_lies_harms_nobody(world: World) {
    const MESSAGES: u64 = 3_000;
    world.run(3, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let (asked, lies) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (counted, lied) = (Rc::clone(&asked), Rc::clone(&lies));
        endpoint.on_short(ASK, move |call, arguments| {
            match arguments {
                [1234, number] => {
                    assert_eq!(*number, counted.get());
                    counted.set(counted.get() + 1);
                    call.reply(ASK + 1, &[*number])
                }
                // Of the liar: its source is itself, or nobody.
                _ => {
                    lied.set(lied.get() + 1);
                    let _ = call.source();
                    call.reply(99, &[])
                }
            }
        })?;
        match player.number {
            0 => {
                let returned = Rc::new(RefCell::new(0_u64));
                let seen = Rc::clone(&returned);
                endpoint.on_returned(move |_| *seen.borrow_mut() += 1)?;
                player.finish()?;
                let statistics = player.node.statistics()?;
                assert_eq!(asked.get(), 200);
                assert!(statistics.violations > 0, "{statistics:?}");
                Ok(())
            }
            1 => {
                let answers = Rc::new(Cell::new(0));
                let counted = Rc::clone(&answers);
                endpoint.on_short(ASK + 1, move |_, arguments| {
                    assert_eq!(arguments, [counted.get()]);
                    counted.set(counted.get() + 1);
                    Ok(())
                })?;
                endpoint.on_returned(|back| panic!("{back:?}"))?;
                let to = player.map(&endpoint, 0, "server", TAG);
                for number in 0..200 {
                    endpoint.request(&to, ASK, &[1234, number], LONG)?;
                    player.serve_until("the answer", || answers.get() == number + 1);
                }
                player.finish()
            }
            _ => {
                lie(player, MESSAGES)?;
                player.finish()
            }
        }
    });
}

/// A peer that forges answers: each request ends once, by the first answer that is one.
pub(crate) fn forged_answers_count_once(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let forger = Forger::open(player)?;
            forger.answer()?;
            return player.finish();
        }
        let replies = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&replies);
        endpoint.on_short(ASK, move |_, arguments| {
            seen.borrow_mut().push(arguments.to_vec());
            Ok(())
        })?;
        let backs = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&backs);
        endpoint.on_returned(move |back| {
            seen.borrow_mut()
                .push((back.reason, back.arguments.to_vec()));
        })?;
        let to = player.map(&endpoint, 0, "forger", TAG);
        for number in 0..3 {
            endpoint.request(&to, ASK, &[number], LONG)?;
        }
        let outstanding = || endpoint.outstanding().unwrap();
        player.serve_until("all ends", || {
            let ends = replies.borrow().len() + backs.borrow().len();
            ends == 2 && outstanding() == 0
        });
        // The forger says when it has said all.
        player.finish()?;
        assert_eq!(*replies.borrow(), [[77]], "the first of both, once");
        assert_eq!(*backs.borrow(), [(Reason::BadEndpoint, vec![1])]);
        let statistics = player.node.statistics()?;
        assert!(statistics.violations >= 5, "{statistics:?}");
        assert_eq!((statistics.replies_taken, statistics.returned), (1, 1));
        Ok(())
    });
}

/// A port that is said to be an endpoint.
struct Forger {
    manager: hamlyn::Manager<crate::Host>,
    port: RefCell<hamlyn::Port>,
}

impl Forger {
    /// Publishes a name with its port, whose key follows from the tag.
    fn open(player: &crate::player::Player<'_>) -> Result<Self, Error> {
        let manager = crate::open_unnamed();
        let mut session = manager.session();
        let mut port = session.open_port(NewPort::new().handlers(4096))?;
        let mut bytes = player.look_up(0, "server").to_bytes();
        let identity = session.identity();
        bytes[4..8].copy_from_slice(&identity.node.to_le_bytes());
        bytes[8..12].copy_from_slice(&identity.user.to_le_bytes());
        bytes[12..20].copy_from_slice(&identity.interface.to_le_bytes());
        bytes[20..24].copy_from_slice(&port.ticket().slot.to_bits().to_le_bytes());
        let name = Name::from_bytes(&bytes).unwrap();
        let [ticket, _] = tickets(&name, &port.ticket());
        session.rekey_port(&mut port, Some(ticket.key))?;
        drop(session);
        player.node.publish("forger", &name)?;
        Ok(Self {
            manager,
            port: RefCell::new(port),
        })
    }

    /// Takes three requests, and answers them in all ways but the right one.
    fn answer(&self) -> Result<(), Error> {
        let mut session = self.manager.session();
        let mut requests = Vec::new();
        let port = &mut *self.port.borrow_mut();
        while requests.len() < 3 {
            let count = session.await_messages(port, 3, LONG, |message, outbox| {
                let mut bytes = vec![0; message.len()];
                message.copy_to(&mut bytes);
                let interface = outbox.identity_of(message.from()).unwrap().interface;
                // Its introduction says where answers go.
                let introduced = &bytes[bytes.len() - 12..];
                let port = u32::from_le_bytes(introduced[..4].try_into().unwrap());
                let key = u64::from_le_bytes(introduced[4..].try_into().unwrap());
                requests.push((message.handler(), interface, port, key, bytes[8]));
            })?;
            assert!(count > 0, "requests come");
        }
        requests.sort_by_key(|request| request.4);
        let (_, destination, slot, key, _) = requests[0];
        let ticket = Ticket {
            destination,
            slot: SlotName::from_bits(slot),
            key: Key::from_bits(key),
            ..port.ticket()
        };
        let to = session.target(&ticket, LONG).unwrap();
        let [first, second, third] = [0, 1, 2].map(|at| requests[at].0);
        let word = |handler: u8, arguments: u8, category: u8, reason: u8| {
            let bytes = [handler, arguments, category, 0, 0, 0, reason, 0];
            bytes.to_vec()
        };
        let reply = |value: u32| [word(ASK, 1, 0, 0), value.to_le_bytes().to_vec()].concat();
        let credit = |stamp: u16| [word(0, 0, 9, 0), stamp.to_le_bytes().to_vec()].concat();
        let credits = 31;
        for (stamp, bytes) in [
            // Records that are free, and other uses of those that are not.
            (first ^ 1 << 11, reply(1)),
            (first ^ 1 << 5, reply(2)),
            ((first & !31) | 30, reply(3)),
            (credits, credit(first ^ 1 << 11)),
            // The rejection of a reply that was never sent, and no message at all.
            (first, word(0, 0, 8, 2)),
            (first, word(ASK, 17, 0, 0)),
            (first ^ 1 << 5, Vec::new()),
            // An answer, and others of the same request.
            (first, reply(77)),
            (first, reply(78)),
            (credits, credit(first)),
            (first, word(0, 0, 7, 2)),
            // A return for a reason that nobody knows, and a reply after it.
            (second, word(0, 0, 7, 200)),
            (second, reply(79)),
            // A credit twice.
            (credits, credit(third)),
            (credits, credit(third)),
        ] {
            session.send_message(&to, stamp, &bytes, LONG)?;
            // In this order, between hosts too.
            session.fence_link(to.link(), LONG).unwrap();
        }
        Ok(())
    }
}

/// Sends random messages, many of which look like good ones.
fn lie(player: &crate::player::Player<'_>, messages: u64) -> Result<(), Error> {
    let name = player.look_up(0, "server");
    let manager = crate::open_unnamed();
    let mut session = manager.session();
    let own = session.open_port(NewPort::new().handlers(4096))?;
    let targets: Vec<Target> = tickets(&name, &own.ticket())
        .iter()
        .map(|ticket| session.target(ticket, LONG).unwrap())
        .collect();
    let terminus = session.terminus();
    let mut state = 99_u64;
    let mut random = move |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(3);
        (state >> 33) % end
    };
    for _ in 0..messages {
        let mut bytes = vec![0; random(200) as usize];
        for byte in &mut bytes {
            *byte = random(256) as u8;
        }
        if bytes.len() >= 8 && random(8) > 0 {
            // A handler, a small number of arguments, a category, introduced or not.
            bytes[0] = [ASK, 0, 99][random(3) as usize];
            bytes[1] = random(20) as u8;
            bytes[2] = random(12) as u8;
            bytes[3] = random(2) as u8;
            if bytes[1] == 2 && random(2) == 0 {
                bytes.truncate(16);
            }
        }
        let stamp = match random(3) {
            0 => random(4096) as u16,
            _ => random(31) as u16,
        };
        let to = &targets[random(2) as usize];
        let mut sent = None;
        for _ in 0..200 {
            match session.try_send_message(terminus, to, stamp, &bytes) {
                Ok(None) => drop(session.wait_for(Wait::millis(5), |session| {
                    session.poll();
                    Ok::<_, Error>(None::<()>)
                })?),
                // It was cut off, which is right.
                Err(_) => return Ok(()),
                Ok(done) => {
                    sent = done;
                    break;
                }
            }
        }
        assert!(sent.is_some(), "the victim takes what comes");
    }
    assert!(session.flush(LONG)?);
    Ok(())
}

/// A peer that had a ticket of a segment has none when the tag has changed, the segment was replaced,
/// or the endpoint is gone; and its word that data are there counts only with a proof.
pub(crate) fn a_ticket_ends_with_the_tag(world: World) {
    const LENGTH: u64 = 100_000;
    const STORED: u8 = 3;
    world.run(1, &|player| {
        let mut endpoint = player.endpoint("endpoint", TAG);
        let count = Rc::new(Cell::new(0));
        let counted = Rc::clone(&count);
        endpoint.on_bulk(ASK, move |_, range, _| {
            assert_eq!(range, 0..LENGTH);
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        let area = endpoint.new_segment(LENGTH)?;
        let byte = |area: &Area| {
            let mut byte = [0];
            area.read_at(77, &mut byte).unwrap();
            byte[0]
        };
        let mut peer = Peer::open(player, &endpoint.name()?);
        let place = [0, LENGTH].map(u64::to_le_bytes).concat();
        let first = peer.ask(&place).expect("it has the right tag");
        assert_eq!(peer.write(&first, 1), None);
        assert_eq!(byte(&area), 1);
        // A message that runs the handler, with no proof, a wrong one, and the right one.
        let proof = first.key.to_bits() ^ u64::from(first.slot.to_bits());
        for (proof, ran) in [
            (&[][..], 0),
            (&(proof ^ 1).to_le_bytes(), 0),
            (&proof.to_le_bytes(), 1),
        ] {
            peer.say(STORED, &[&place, proof].concat());
            assert_eq!(count.get(), ran);
        }
        // The tag changes, and changes back.
        endpoint.set_tag(Tag::new(9))?;
        assert_eq!(peer.write(&first, 2), Some(Refusal::SlotClosed));
        assert!(peer.ask(&place).is_none());
        endpoint.set_tag(TAG)?;
        assert_eq!(peer.write(&first, 3), Some(Refusal::SlotClosed));
        peer.say(STORED, &[&place[..], &proof.to_le_bytes()].concat());
        assert_eq!((byte(&area), count.get()), (1, 1));
        // The segment is replaced.
        let second = peer.ask(&place).expect("the tag is right again");
        assert_eq!(peer.write(&second, 4), None);
        let new = endpoint.new_segment(LENGTH)?;
        assert_eq!(peer.write(&second, 5), Some(Refusal::SlotClosed));
        assert_eq!((byte(&area), byte(&new)), (4, 0));
        // The endpoint goes.
        let third = peer.ask(&place).expect("there is a segment");
        drop(endpoint);
        assert_eq!(peer.write(&third, 6), Some(Refusal::SlotClosed));
        assert_eq!(byte(&new), 0);
        player.finish()
    });
}

/// A question for a segment that was taken and has no answer yet has none with a ticket when the tag
/// has changed: whatever its peer has got, it writes nowhere.
pub(crate) fn a_question_ends_with_the_tag(world: World) {
    const LENGTH: u64 = 100_000;
    const ROUNDS: usize = 12;
    world.run(1, &|player| {
        let mut endpoint = player.endpoint("endpoint", TAG);
        endpoint.on_bulk(ASK, |_, _, _| Ok(()))?;
        let area = endpoint.new_segment(LENGTH)?;
        let mut peer = Peer::open(player, &endpoint.name()?);
        let place = [0, LENGTH].map(u64::to_le_bytes).concat();
        let mut came_back = 0;
        for round in 0..ROUNDS {
            peer.send(4, &place);
            assert!(player.bundle.serve(LONG)? > 0, "the question came");
            endpoint.set_tag(Tag::new(9))?;
            let answer = peer.answer().expect("the question was taken");
            if answer[2] == 6 {
                // It was answered before the tag changed.
                let ticket = Ticket::from_bytes(&answer[8..60]).unwrap();
                assert_eq!(peer.write(&ticket, 1), Some(Refusal::SlotClosed), "{round}");
            } else {
                came_back += 1;
            }
            endpoint.set_tag(TAG)?;
        }
        assert!(
            came_back > 0,
            "all were answered in the look that took them"
        );
        let mut byte = [0];
        area.read_at(77, &mut byte).unwrap();
        assert_eq!(byte, [0]);
        assert!(peer.ask(&place).is_some(), "the tag is right again");
        player.finish()
    });
}

/// A peer that speaks to the port of an endpoint, in the same thread.
struct Peer<'a> {
    player: &'a crate::player::Player<'a>,
    manager: hamlyn::Manager<crate::Host>,
    port: hamlyn::Port,
    to: Target,
    uses: u16,
}

impl<'a> Peer<'a> {
    fn open(player: &'a crate::player::Player<'a>, name: &Name) -> Self {
        let manager = crate::open_unnamed();
        let mut session = manager.session();
        let port = session.open_port(NewPort::new().handlers(4096)).unwrap();
        let [ticket, _] = tickets(name, &port.ticket());
        let to = session.target(&ticket, LONG).unwrap();
        drop(session);
        Self {
            player,
            manager,
            port,
            to,
            uses: 0,
        }
    }

    /// Sends a request of that category, and waits for its answer, or its refusal.
    fn say(&mut self, category: u8, bytes: &[u8]) -> Option<Vec<u8>> {
        self.send(category, bytes);
        self.answer()
    }

    /// Sends a request of that category.
    fn send(&mut self, category: u8, bytes: &[u8]) {
        self.uses += 1;
        let stamp = self.uses << 5;
        let own = self.port.ticket();
        let introduction = [
            &own.slot.to_bits().to_le_bytes()[..],
            &[0; 16],
            &own.slot.to_bits().to_le_bytes(),
            &own.key.to_bits().to_le_bytes(),
        ];
        let word = [ASK, 0, category, 1, 0, 0, 0, 0];
        let message = [&word[..], bytes, &introduction.concat()].concat();
        let mut session = self.manager.session();
        session
            .send_message(&self.to, stamp, &message, LONG)
            .unwrap();
    }

    /// Waits for the answer of the last request, or its refusal.
    fn answer(&mut self) -> Option<Vec<u8>> {
        let mut session = self.manager.session();
        for _ in 0..10_000 {
            self.player.bundle.serve(Wait::millis(1)).unwrap();
            let mut answer = None;
            session
                .await_messages(&mut self.port, 1, Wait::millis(1), |message, _| {
                    let mut bytes = vec![0; message.len()];
                    message.copy_to(&mut bytes);
                    answer = Some(bytes);
                })
                .unwrap();
            if answer.is_some() {
                return answer;
            }
            if session.next_undelivered().is_some() {
                return None;
            }
        }
        panic!("no answer to request {}", self.uses);
    }

    /// Asks for the segment.
    fn ask(&mut self, place: &[u8]) -> Option<Ticket> {
        let answer = self.say(4, place)?;
        assert_eq!(answer[2], 6, "the tickets: {answer:?}");
        Some(Ticket::from_bytes(&answer[8..60]).unwrap())
    }

    /// Writes a byte, and waits until it was taken, or refused.
    fn write(&mut self, ticket: &Ticket, byte: u8) -> Option<Refusal> {
        let mut session = self.manager.session();
        let target = self.to.with_ticket(*ticket).unwrap();
        let (terminus, bytes) = (session.terminus(), [byte]);
        let message = Message::new(&bytes).at(77);
        session.send_msg(terminus, &target, &message, LONG).unwrap();
        for _ in 0..10_000 {
            self.player.bundle.serve(Wait::millis(1)).unwrap();
            match session.fence_link(target.link(), Wait::millis(1)) {
                Ok(()) => return None,
                Err(FenceError::TimedOut { .. }) => {}
                Err(FenceError::Refused { last, .. }) => {
                    while session.next_undelivered().is_some() {}
                    let Return::Refused(refusal) = last.reason else {
                        panic!("{last:?}");
                    };
                    return Some(refusal);
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("nobody took it");
    }
}
