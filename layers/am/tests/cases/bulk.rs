//! Bulk messages that are written straight into the segment, and gets: the data are in their place
//! when the handler runs, and each transfer ends once, whatever becomes of the segment meanwhile.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use hamlyn::region::SharedOptions;
use hamlyn::{Area, Wait};
use hamlyn_am::{Blocked, Endpoint, Error, Operation, Reason, Tag, Translation};

use crate::player::{LONG, Player};
use crate::{Host, World};

const TAG: Tag = Tag::new(7);
const OTHER_TAG: Tag = Tag::new(8);
const ANSWER: u8 = 4;
const PUT: u8 = 7;
const GOT: u8 = 8;
const CHANGE: u8 = 9;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The bytes of a transfer.
fn pattern(id: u32, length: u64) -> Vec<u8> {
    let seed = id.wrapping_mul(2_654_435_761);
    (0..length as u32)
        .map(|at| (at.wrapping_mul(at | 1) ^ seed >> (at % 3 * 8)) as u8)
        .collect()
}

/// Has a server check what it is sent, and answer the number of the transfer.
fn check_what_comes(endpoint: &mut Endpoint<Host>, segment: &Rc<RefCell<Option<Area>>>) {
    let segment = Rc::clone(segment);
    endpoint
        .on_bulk(PUT, move |call, range, arguments| {
            let [id, ..] = arguments else {
                panic!("a transfer has a number");
            };
            let mut found = vec![0; (range.end - range.start) as usize];
            let area = segment.borrow();
            area.as_ref()
                .expect("there is a segment")
                .read_at(range.start, &mut found)
                .unwrap();
            let expected = pattern(*id, range.end - range.start);
            let wrong = found.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "transfer {id} to {range:?}");
            call.reply(ANSWER, &[*id])
        })
        .unwrap();
}

/// A segment of an endpoint that other processes may map, where they can.
fn shared_segment(endpoint: &mut Endpoint<Host>, length: u64) -> Area {
    let area = Area::shared(SharedOptions::reserved(length)).unwrap();
    endpoint.set_segment(Some((area.clone(), length))).unwrap();
    area
}

/// The end of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
enum End {
    Answer,
    Back(Reason, usize),
}

type Ends = Rc<RefCell<BTreeMap<u32, Vec<End>>>>;

fn collect(endpoint: &mut Endpoint<Host>) -> Ends {
    let ends = Ends::default();
    let seen = Rc::clone(&ends);
    endpoint
        .on_short(ANSWER, move |_, arguments| {
            let mut ends = seen.borrow_mut();
            ends.entry(arguments[0]).or_default().push(End::Answer);
            Ok(())
        })
        .unwrap();
    let seen = Rc::clone(&ends);
    endpoint
        .on_returned(move |back| {
            let id = back.arguments.first().copied().unwrap_or(u32::MAX);
            if back.operation == Operation::Transfer && !back.data.is_empty() {
                assert!(back.data == pattern(id, back.length_bytes), "its own data");
            }
            let end = End::Back(back.reason, back.data.len());
            seen.borrow_mut().entry(id).or_default().push(end);
        })
        .unwrap();
    ends
}

/// Sends a transfer by a call that waits, or by calls that do not.
fn transfer(
    player: &Player<'_>,
    endpoint: &Endpoint<Host>,
    to: &Translation,
    (id, offset, length): (u32, u64, u64),
    waits: bool,
) {
    let data = pattern(id, length);
    let send = |wait| endpoint.transfer(to, PUT, offset, &data, &[id], wait);
    if waits {
        return send(LONG).unwrap();
    }
    player.look_until("room for a transfer", || match send(Wait::Poll) {
        Ok(()) => true,
        Err(Error::WouldBlock(_)) => false,
        Err(error) => panic!("{error}"),
    });
}

/// Serves until all transfers have ended; each once. Their ends.
fn all_end(player: &Player<'_>, endpoint: &Endpoint<Host>, ends: &Ends, count: u32) -> Vec<End> {
    let is_done = || {
        let all = ends.borrow().len() as u32 == count;
        all && endpoint.outstanding().unwrap() == 0
    };
    player.look_until("all ends", is_done);
    let ends = std::mem::take(&mut *ends.borrow_mut());
    let mut all = Vec::new();
    for (id, mut ends) in ends {
        assert_eq!(ends.len(), 1, "transfer {id} ends once: {ends:?}");
        all.append(&mut ends);
    }
    all
}

/// Transfers of all lengths, to private memory and to shared memory, by both kinds of calls.
pub(crate) fn data_are_there_when_the_handler_runs(world: World) {
    let lengths = [
        0,
        1,
        7_999,
        8_000,
        8_001,
        64 * KIB - 1,
        64 * KIB,
        64 * KIB + 1,
        200_000,
        MIB - 1,
        MIB,
        MIB + 511,
    ];
    world.run(2, &|player| {
        let mut server = player.endpoint("private", TAG);
        let mut direct = player.endpoint("shared", TAG);
        if player.number == 0 {
            let private = server.new_segment(MIB + 4_096)?;
            let shared = shared_segment(&mut direct, MIB + 4_096);
            for (endpoint, area) in [(&mut server, private), (&mut direct, shared)] {
                check_what_comes(endpoint, &Rc::new(RefCell::new(Some(area))));
            }
            return player.finish();
        }
        let ends = collect(&mut server);
        let mut id = 0;
        for item in ["private", "shared"] {
            let to = player.map(&server, 0, item, TAG);
            for length in lengths {
                for waits in [false, true, true] {
                    // To the same bytes as the one before, which has been answered.
                    let offset = u64::from(id) % 3 * 700;
                    transfer(player, &server, &to, (id, offset, length), waits);
                    let ends = all_end(player, &server, &ends, 1);
                    assert_eq!(ends, [End::Answer], "{length} bytes");
                    id += 1;
                }
            }
        }
        player.finish()
    });
}

/// A call that waits goes on for as long as there are data, though its peer says nothing while it
/// sends: a turn that is over is no reason to sleep.
pub(crate) fn a_transfer_of_many_turns_goes_on(world: World) {
    const LENGTH: u64 = 48 * MIB;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let area = shared_segment(&mut endpoint, LENGTH);
            endpoint.on_bulk(PUT, move |call, range, _| {
                let (mut found, mut expected) = (vec![0; MIB as usize], vec![0; MIB as usize]);
                for turn in 0..LENGTH / MIB {
                    area.read_at(range.start + turn * MIB, &mut found).unwrap();
                    expected.fill(turn as u8);
                    assert!(found == expected, "turn {turn}");
                }
                call.reply(ANSWER, &[0])
            })?;
            return player.finish();
        }
        let ends = collect(&mut endpoint);
        let to = player.map(&endpoint, 0, "server", TAG);
        let mut data = vec![0; LENGTH as usize];
        for (turn, bytes) in data.chunks_mut(MIB as usize).enumerate() {
            bytes.fill(turn as u8);
        }
        for _ in 0..2 {
            // The second one finds the segment attached, where it can be.
            endpoint.transfer(&to, PUT, 0, &data, &[0], LONG)?;
            let ends = all_end(player, &endpoint, &ends, 1);
            assert_eq!(ends, [End::Answer]);
        }
        player.finish()
    });
}

/// More transfers than there may be at a time, from several nodes, to places beside each other.
pub(crate) fn many_transfers_go_at_once(world: World) {
    const LENGTH: u64 = 30_000;
    const COUNT: u32 = 70;
    world.run(3, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let area = endpoint.new_segment(2 * u64::from(COUNT) * LENGTH)?;
            check_what_comes(&mut endpoint, &Rc::new(RefCell::new(Some(area))));
            return player.finish();
        }
        let ends = collect(&mut endpoint);
        let to = player.map(&endpoint, 0, "server", TAG);
        for number in 0..COUNT {
            let id = (player.number as u32 - 1) * COUNT + number;
            let place = (id, u64::from(id) * LENGTH, LENGTH);
            transfer(player, &endpoint, &to, place, number % 3 == 0);
        }
        let ends = all_end(player, &endpoint, &ends, COUNT);
        assert!(ends.iter().all(|end| *end == End::Answer));
        player.finish()
    });
}

/// Transfers to an endpoint that nobody polls: as many as there may be are copied, and no call that
/// may not wait does.
pub(crate) fn an_unpolled_receiver_holds_up_nobody(world: World) {
    const LENGTH: u64 = 20_000;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let apart = player.node.bundle()?;
            let mut unpolled = apart.endpoint()?;
            unpolled.set_tag(TAG)?;
            let area = unpolled.new_segment(64 * LENGTH)?;
            check_what_comes(&mut unpolled, &Rc::new(RefCell::new(Some(area))));
            player.node.publish("unpolled", &unpolled.name()?)?;
            let told = Rc::new(Cell::new(false));
            let seen = Rc::clone(&told);
            endpoint.on_short(CHANGE, move |_, _| {
                seen.set(true);
                Ok(())
            })?;
            player.serve_until("the word", || told.get());
            return player.finish_with(|| {
                apart.poll().unwrap();
            });
        }
        let ends = collect(&mut endpoint);
        let to = player.map(&endpoint, 0, "unpolled", TAG);
        let server = player.map(&endpoint, 0, "server", TAG);
        let mut begun = 0;
        let blocked = loop {
            let data = pattern(begun, LENGTH);
            let place = u64::from(begun) * LENGTH;
            match endpoint.transfer(&to, PUT, place, &data, &[begun], Wait::Poll) {
                Ok(()) => begun += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(blocked, Error::WouldBlock(Blocked::Transfer));
        assert_eq!(begun, 64);
        // Others are served meanwhile.
        endpoint.request(&server, CHANGE, &[], LONG)?;
        let ends = all_end(player, &endpoint, &ends, begun);
        assert!(ends.iter().all(|end| *end == End::Answer));
        player.finish()
    });
}

/// A transfer that is sent but for its last message, which has no credit, ends with its receiver.
pub(crate) fn a_transfer_without_a_credit_ends_with_its_receiver(mut world: World) {
    const LENGTH: u64 = 9_000;
    world.options.credits = 1;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let area = endpoint.new_segment(LENGTH)?;
            check_what_comes(&mut endpoint, &Rc::new(RefCell::new(Some(area))));
            let apart = player.node.bundle()?;
            let mut word = apart.endpoint()?;
            word.set_tag(TAG)?;
            let told = Rc::new(Cell::new(false));
            let seen = Rc::clone(&told);
            word.on_short(CHANGE, move |_, _| {
                seen.set(true);
                Ok(())
            })?;
            // Its reply never comes.
            endpoint.on_short(CHANGE, |call, _| {
                std::mem::forget(call.defer()?);
                Ok(())
            })?;
            player.node.publish("word", &word.name()?)?;
            player.look_until("the word", || {
                apart.poll().unwrap();
                told.get()
            });
            player.leave();
            return Ok(());
        }
        let ends = collect(&mut endpoint);
        let to = player.map(&endpoint, 0, "server", TAG);
        let word = player.map(&endpoint, 0, "word", TAG);
        endpoint.transfer(&to, PUT, 0, &pattern(0, LENGTH), &[0], LONG)?;
        player.look_until("its end", || ends.borrow().contains_key(&0));
        player.look_until("its credit", || endpoint.outstanding().unwrap() == 0);
        endpoint.request(&to, CHANGE, &[], LONG)?;
        endpoint.transfer(&to, PUT, 0, &pattern(1, LENGTH), &[1], Wait::Poll)?;
        for _ in 0..20 {
            player.bundle.serve(Wait::millis(1))?;
        }
        endpoint.request(&word, CHANGE, &[], LONG)?;
        player.look_until("its end", || ends.borrow().contains_key(&1));
        let end = ends.borrow()[&1].clone();
        let is_it =
            |end: &End| matches!(end, End::Back(Reason::BadEndpoint | Reason::Unreachable, _));
        assert!(end.len() == 1 && is_it(&end[0]), "{end:?}");
        player.leave();
        Ok(())
    });
}

/// The receiver changes its segment, and its tag, again and again: each transfer is there whole
/// when its handler runs, or comes back.
fn changes_under_traffic(
    world: World,
    change: &(impl Fn(&mut Endpoint<Host>, &Rc<RefCell<Option<Area>>>, u32) + Sync),
    reasons: &'static [Reason],
) {
    const COUNT: u32 = 150;
    const LENGTH: u64 = 100_000;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let area = endpoint.new_segment(4 * LENGTH)?;
            let segment = Rc::new(RefCell::new(Some(area)));
            check_what_comes(&mut endpoint, &segment);
            let mut round = 0;
            player.finish_with(|| {
                round += 1;
                change(&mut endpoint, &segment, round);
            })?;
            return Ok(());
        }
        let ends = collect(&mut endpoint);
        let to = player.map(&endpoint, 0, "server", TAG);
        for id in 0..COUNT {
            let place = (id, u64::from(id % 4) * LENGTH, LENGTH - u64::from(id));
            transfer(player, &endpoint, &to, place, id % 3 > 0);
            if id % 4 == 3 {
                // The same bytes are written again.
                let is_done = || endpoint.outstanding().unwrap() == 0;
                player.look_until("their ends", is_done);
            }
        }
        for end in all_end(player, &endpoint, &ends, COUNT) {
            match end {
                End::Answer => {}
                End::Back(reason, _) => assert!(reasons.contains(&reason), "{reason:?}"),
            }
        }
        player.finish()
    });
}

pub(crate) fn a_segment_may_be_replaced_under_traffic(world: World) {
    let change = |endpoint: &mut Endpoint<Host>, segment: &Rc<RefCell<Option<Area>>>, round| {
        let area = match round % 8 {
            0 => Some(endpoint.new_segment(400_000).unwrap()),
            2 => Some(shared_segment(endpoint, 400_000)),
            4 => {
                endpoint.set_segment(None).unwrap();
                None
            }
            // Shorter than some places.
            5 => Some(endpoint.new_segment(150_000).unwrap()),
            _ => return,
        };
        *segment.borrow_mut() = area;
    };
    let reasons = &[Reason::Moved, Reason::BadOffset, Reason::BadLength];
    changes_under_traffic(world, &change, reasons);
}

pub(crate) fn a_tag_may_change_under_traffic(world: World) {
    let change = |endpoint: &mut Endpoint<Host>, _: &Rc<RefCell<Option<Area>>>, round| {
        let tag = match round % 6 {
            0 => TAG,
            2 => OTHER_TAG,
            3 => Tag::Any,
            _ => return,
        };
        endpoint.set_tag(tag).unwrap();
    };
    changes_under_traffic(world, &change, &[Reason::Moved, Reason::BadTag]);
}

/// A transfer that its receiver refuses as it is comes back with its data, also after transfers that
/// it took; and one that it refuses as it has changed comes back once.
pub(crate) fn long_transfers_come_back_with_their_data(world: World) {
    const LENGTH: u64 = 100_000;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let segment = Rc::new(RefCell::new(Some(endpoint.new_segment(3 * LENGTH)?)));
            check_what_comes(&mut endpoint, &segment);
            let changes = Rc::new(Cell::new(0));
            let seen = Rc::clone(&changes);
            endpoint.on_short(CHANGE, move |call, arguments| {
                seen.set(seen.get() + 1);
                call.reply(ANSWER, arguments)
            })?;
            let mut made = 0;
            return player.finish_with(|| {
                if made == changes.get() {
                    return;
                }
                made = changes.get();
                match made {
                    1 => *segment.borrow_mut() = Some(endpoint.new_segment(3 * LENGTH).unwrap()),
                    2 => *segment.borrow_mut() = Some(endpoint.new_segment(LENGTH).unwrap()),
                    _ => endpoint.clear_handler(PUT).unwrap(),
                }
                let made =
                    |call: &mut hamlyn_am::Call<'_>, numbers: &[u32]| call.reply(ANSWER, numbers);
                endpoint.on_short(CHANGE + changes.get(), made).unwrap();
            });
        }
        let ends = collect(&mut endpoint);
        let to = player.map(&endpoint, 0, "server", TAG);
        let data = |id| pattern(id, LENGTH);
        let one_end = |reason| {
            let ends = all_end(player, &endpoint, &ends, 1);
            assert_eq!(ends, [End::Back(reason, LENGTH as usize)]);
        };
        let bad = |reason, handler, offset| {
            endpoint.transfer(&to, handler, offset, &data(1), &[1], LONG)?;
            one_end(reason);
            Ok::<_, Error>(())
        };
        for _ in 0..2 {
            bad(Reason::BadHandler, 99, 0)?;
            bad(Reason::BadHandler, ANSWER, 0)?;
            bad(Reason::BadOffset, PUT, 3 * LENGTH + 1)?;
            bad(Reason::BadLength, PUT, 2 * LENGTH + 1)?;
            endpoint.transfer(&to, PUT, 2 * LENGTH, &data(2), &[2], LONG)?;
            assert_eq!(all_end(player, &endpoint, &ends, 1), [End::Answer]);
        }
        let wrong = player.map(&endpoint, 0, "server", OTHER_TAG);
        endpoint.transfer(&wrong, PUT, 0, &data(3), &[3], LONG)?;
        one_end(Reason::BadTag);
        let changes = Cell::new(0);
        let change = || {
            endpoint.request(&to, CHANGE, &[0], LONG)?;
            assert_eq!(all_end(player, &endpoint, &ends, 1), [End::Answer]);
            // It has the handler of that number when the change was made.
            changes.set(changes.get() + 1);
            loop {
                endpoint.request(&to, CHANGE + changes.get(), &[0], LONG)?;
                if all_end(player, &endpoint, &ends, 1) == [End::Answer] {
                    return Ok::<_, Error>(());
                }
            }
        };
        // Another segment, as good as that: the data are written once more, as they are here.
        change()?;
        endpoint.transfer(&to, PUT, LENGTH, &data(3), &[3], Wait::Poll)?;
        assert_eq!(all_end(player, &endpoint, &ends, 1), [End::Answer]);
        // A shorter one, of which the sender does not know. The data may be the caller's again.
        change()?;
        endpoint.transfer(&to, PUT, LONG_PLACE, &data(5), &[5], LONG)?;
        match all_end(player, &endpoint, &ends, 1)[..] {
            [End::Back(Reason::BadLength | Reason::BadOffset | Reason::Moved, _)] => {}
            ref other => panic!("{other:?}"),
        }
        endpoint.transfer(&to, PUT, 0, &data(6), &[6], LONG)?;
        let end = all_end(player, &endpoint, &ends, 1);
        if end != [End::Answer] {
            // It was the first to hear of the change.
            assert!(matches!(end[..], [End::Back(Reason::Moved, _)]), "{end:?}");
            endpoint.transfer(&to, PUT, 0, &data(7), &[7], LONG)?;
            assert_eq!(all_end(player, &endpoint, &ends, 1), [End::Answer]);
        }
        // A handler that it has no longer.
        change()?;
        endpoint.transfer(&to, PUT, 0, &data(9), &[9], LONG)?;
        let end = all_end(player, &endpoint, &ends, 1);
        assert!(
            matches!(end[..], [End::Back(Reason::BadHandler, _)]),
            "{end:?}"
        );
        player.finish()
    });
}

const LONG_PLACE: u64 = 200_000;

/// Gets of all lengths; and a get whose own segment is replaced comes back, and spoils nothing.
pub(crate) fn gets_are_whole_or_come_back(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let segment = endpoint.new_segment(2 * MIB)?;
        if player.number == 0 {
            segment.write_at(0, &pattern(5, 2 * MIB)).unwrap();
            return player.finish();
        }
        let (gets, backs) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let seen = Rc::clone(&gets);
        endpoint.on_bulk(GOT, move |_, _, _| {
            seen.set(seen.get() + 1);
            Ok(())
        })?;
        let seen = Rc::clone(&backs);
        endpoint.on_returned(move |back| {
            seen.borrow_mut()
                .push((back.operation, back.reason, back.length_bytes));
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        let source = pattern(5, 2 * MIB);
        for (round, length) in [1, 4_000, 64 * KIB, 64 * KIB + 1, MIB + 1]
            .into_iter()
            .enumerate()
        {
            let from = round as u64 * 3;
            endpoint.get(&to, GOT, from..from + length, 11, &[], LONG)?;
            player.look_until("the bytes", || gets.get() == round + 1);
            let mut found = vec![0; length as usize];
            segment.read_at(11, &mut found).unwrap();
            assert!(found == source[from as usize..(from + length) as usize]);
        }
        for _ in 0..10 {
            endpoint.get(&to, GOT, 0..MIB, 0, &[], LONG)?;
            endpoint.new_segment(2 * MIB)?;
        }
        let outstanding = || endpoint.outstanding().unwrap();
        player.look_until("all ends", || outstanding() == 0);
        assert_eq!((gets.get(), backs.borrow().len()), (5, 10));
        let is_it = |back: &_| *back == (Operation::Get, Reason::BadOffset, MIB);
        assert!(backs.borrow().iter().all(is_it), "{backs:?}");
        player.finish()
    });
}

/// A node that ends half-way returns what it has: transfers and gets, each once.
pub(crate) fn the_end_of_a_node_returns_transfers(world: World) {
    const COUNT: u32 = 24;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let area = endpoint.new_segment(4 * MIB)?;
        if player.number == 0 {
            let taken = Rc::new(Cell::new(0));
            let counted = Rc::clone(&taken);
            endpoint.on_bulk(PUT, move |call, _, arguments| {
                counted.set(counted.get() + 1);
                call.reply(ANSWER, arguments)
            })?;
            player.serve_until("some of them", || taken.get() >= 3);
            player.leave();
            return Ok(());
        }
        drop(area);
        let ends = collect(&mut endpoint);
        let seen = Rc::clone(&ends);
        endpoint.on_bulk(GOT, move |_, _, arguments| {
            let mut ends = seen.borrow_mut();
            ends.entry(arguments[0]).or_default().push(End::Answer);
            Ok(())
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        let mut begun = 0;
        for id in 0..COUNT {
            let length = 150_000;
            let sent = match id % 4 {
                3 => endpoint.get(&to, GOT, 0..length, 0, &[id], LONG),
                _ => endpoint.transfer(&to, PUT, 0, &pattern(id, length), &[id], LONG),
            };
            match sent {
                Ok(()) => begun += 1,
                Err(Error::PeerLost(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
        for end in all_end(player, &endpoint, &ends, begun) {
            // The endpoint goes before its node.
            use Reason::{BadEndpoint, Unreachable};
            let is_it = matches!(end, End::Answer | End::Back(BadEndpoint | Unreachable, _));
            assert!(is_it, "{end:?}");
        }
        player.leave();
        Ok(())
    });
}
