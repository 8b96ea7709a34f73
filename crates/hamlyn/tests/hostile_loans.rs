//! Readers and publishers of loaned messages that break the rules: what they can do harms
//! themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{LONG, Random, namespace, open, until};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::{Address, Host as _};
use hamlyn::lane::SEED_BYTES;
use hamlyn::loans::{LoanError, Publisher, PublisherOptions, SlowReaders, Subscriber};
use hamlyn::ticket::TICKET_BYTES;
use hamlyn::{
    Holders, Manager, ManagerOptions, Message, NewSlot, Queue, ReceiveError, SendError, Slot,
    Target, Ticket, Wait,
};
use hamlyn_engine::memory::LinkId;
use hamlyn_host::Supply;
use hamlyn_ring::area::Area;
use hamlyn_ring::pool::{Chunks, Pool, file_bytes, file_bytes_with_head};
use hamlyn_ring::region::{ReceivedRegion, RegionFiles};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

const BYTES: u32 = 4096;
const CHUNKS: u32 = 16;
const DEPTH: u16 = 4;
/// Of an offer: what stands before its body.
const HEADER: [u8; 14] = [b'h', b'I', 1, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const GREETING_OFFSET: u64 = 16;
const POOL_OFFSET: u64 = 16;
const ENTRIES_OFFSET: u64 = 32;
const POOL: u64 = u64::MAX;

fn named(namespace: &str) -> Manager<ProcessHost> {
    let options = Options::named("publisher").in_namespace(namespace);
    hamlyn::open_with(options, ManagerOptions::default()).unwrap()
}

fn options(slow_readers: SlowReaders) -> PublisherOptions {
    PublisherOptions {
        message_bytes: BYTES,
        chunks: CHUNKS,
        depth: DEPTH,
        slow_readers,
        ..PublisherOptions::default()
    }
}

fn send(
    manager: &Manager<ProcessHost>,
    to: &Target,
    message: &Message<'_>,
) -> Result<(), SendError> {
    let terminus = manager.terminus();
    let sent = manager.session().send_msg(terminus, to, message, LONG);
    sent.map(|_| ())
}

fn pair(first: u64, second: u64) -> [u8; 16] {
    let mut data = [0; 16];
    data[..8].copy_from_slice(&first.to_le_bytes());
    data[8..].copy_from_slice(&second.to_le_bytes());
    data
}

/// A reader by hand.
struct Reader {
    manager: Manager<ProcessHost>,
    door: Target,
    board: Target,
    _list: Slot,
    queue: Queue,
}

impl Reader {
    fn connect(namespace: &str) -> Self {
        Self::connect_as(namespace, None)
    }

    /// Says that its list is that one, or its own.
    fn connect_as(namespace: &str, list_of: Option<Ticket>) -> Self {
        let manager = open(namespace);
        let name = Address::Name("publisher");
        let offer = manager.session().ask(name, "frames", LONG).unwrap();
        assert_eq!(offer[..HEADER.len()], HEADER);
        let lane = &offer[HEADER.len()..];
        let ticket = |at: usize| Ticket::from_bytes(&lane[at..at + TICKET_BYTES]).unwrap();
        let door = manager.session().target(&ticket(0), LONG).unwrap();
        let board = door.with_ticket(ticket(TICKET_BYTES)).unwrap();
        let area = manager.session().allocate(4096).unwrap();
        let queue = manager.session().open_queue(1024).unwrap();
        let new = NewSlot::new(&area).queue(&queue);
        let list = manager.session().open_slot(new).unwrap();
        let reader = Self {
            manager,
            door,
            board,
            _list: list,
            queue,
        };
        let ticket = list_of.unwrap_or_else(|| reader._list.fast_ticket(0, 4096).unwrap());
        let mut greeting = [0; SEED_BYTES];
        greeting[..TICKET_BYTES].copy_from_slice(&ticket.to_bytes());
        let greeting = Message::new(&greeting).at(GREETING_OFFSET).word(1);
        send(&reader.manager, &reader.door, &greeting).unwrap();
        reader
    }

    fn say(&self, word: u64) {
        send(&self.manager, &self.door, &Message::new(&[]).word(word)).unwrap();
    }

    /// Writes anywhere on the board, and beyond.
    fn scribble(&mut self, random: &mut Random) {
        let at = random.below(u64::from(DEPTH) * 16 + 1);
        let word = match random.below(3) {
            // What it has, had, or will have, once or many times,
            0 | 1 => random.below(3000),
            // or anything.
            _ => random.next() << 20,
        };
        let data = pair(word, random.next());
        let mut wide = *self.board.ticket();
        wide.length_bytes = 1 << 20;
        let beyond = self.board.with_ticket(wide).unwrap();
        let sent = send(&self.manager, &beyond, &Message::new(&data).at(at));
        sent.unwrap();
        while let Ok(Some(_)) = self.manager.session().rcv(&mut self.queue) {}
    }
}

fn expected(number: u64, len: usize) -> Vec<u8> {
    Random::new(number + 1).bytes(len)
}

fn all_come_back(publisher: &mut Publisher) {
    until("all chunks", || {
        publisher.poll();
        (publisher.chunks_free() == CHUNKS as usize).then_some(())
    });
}

#[test]
fn a_reader_that_gives_back_what_it_does_not_have_disturbs_no_other() {
    const ROUNDS: u64 = 5_000;
    let namespace = namespace();
    let manager = named(&namespace);
    let options = options(SlowReaders::Lose);
    let mut publisher = manager.bind_publisher("frames", options).unwrap();
    let other = open(&namespace);
    let mut honest = other.connect_subscriber("publisher/frames", LONG).unwrap();
    let mut hostile = Reader::connect(&namespace);
    assert_eq!(publisher.await_readers(2, LONG), Ok(2));
    let mut random = Random::new(3);
    let (mut read, mut kept) = (0, Vec::new());
    for round in 0..ROUNDS {
        for _ in 0..2 {
            hostile.scribble(&mut random);
        }
        if publisher.chunks_free() < 3 {
            publisher.poll();
        }
        let len = random.below(300) as usize;
        let mut loan = publisher.loan(len, LONG).unwrap();
        loan.copy_from_slice(&expected(round, len));
        loan.publish(Wait::Poll).unwrap();
        if round % 3 == 0 {
            continue;
        }
        while let Some(sample) = honest.recv(Wait::Poll).unwrap() {
            assert!(sample.to_vec() == expected(sample.number(), sample.len()));
            read += 1;
            if random.below(4) == 0 {
                kept.push(sample.keep());
            }
        }
        // What is kept stays as it is, whatever was said of it by another.
        for sample in &kept {
            let mut bytes = vec![0; sample.len()];
            sample.read_at(0, &mut bytes).unwrap();
            assert!(bytes == expected(sample.number(), sample.len()));
        }
        if kept.len() > 2 || random.below(8) == 0 {
            kept.clear();
        }
    }
    assert!(read > ROUNDS / 4, "{read}");
    drop((kept, hostile));
    until("its end", || {
        publisher.poll();
        honest.reclaim();
        while honest.recv(Wait::Poll).unwrap().is_some() {}
        (publisher.readers() == 1 && publisher.chunks_free() == CHUNKS as usize).then_some(())
    });
}

#[test]
fn a_reader_that_gives_nothing_back_holds_what_it_may_and_no_more() {
    let namespace = namespace();
    let manager = named(&namespace);
    let options = options(SlowReaders::Lose);
    let mut publisher = manager.bind_publisher("frames", options).unwrap();
    let greedy = Reader::connect(&namespace);
    assert_eq!(publisher.await_readers(1, LONG), Ok(1));
    for _ in 0..1000 {
        publisher
            .loan(9, Wait::Poll)
            .unwrap()
            .publish(LONG)
            .unwrap();
    }
    publisher.poll();
    assert_eq!(
        publisher.chunks_free(),
        usize::from(DEPTH).abs_diff(CHUNKS as usize)
    );
    assert_eq!(publisher.lost(), 1000 - u64::from(DEPTH));
    drop(greedy);
    all_come_back(&mut publisher);
}

#[test]
fn greetings_that_are_none_and_second_ones_cost_the_lane() {
    const ROUNDS: u64 = 300;
    let namespace = namespace();
    let manager = named(&namespace);
    let options = options(SlowReaders::Block);
    let mut publisher = manager.bind_publisher("frames", options).unwrap();
    let honest_manager = open(&namespace);
    let mut honest = honest_manager
        .connect_subscriber("publisher/frames", LONG)
        .unwrap();
    assert_eq!(publisher.await_readers(1, LONG), Ok(1));
    let mut random = Random::new(8);
    for round in 0..ROUNDS {
        let bad = Reader::connect(&namespace);
        let before = publisher.misbehaved();
        // The first is good; so is nothing that follows.
        let bytes = random.bytes(SEED_BYTES);
        let word = [0, 1, 2, random.next()][round as usize % 4];
        let again = Message::new(&bytes).at(GREETING_OFFSET).word(word);
        // The publisher may have closed the lane by now.
        let _ = send(&bad.manager, &bad.door, &again);
        let _ = send(&bad.manager, &bad.door, &again);
        until("its end", || {
            publisher.poll();
            (publisher.misbehaved() > before).then_some(())
        });
        assert_eq!(publisher.readers(), 1);
        publisher.loan(8, LONG).unwrap().publish(LONG).unwrap();
        let sample = honest.recv(LONG).unwrap().unwrap();
        assert_eq!(sample.number(), round);
    }
    all_come_back(&mut publisher);
}

/// Readers go, politely or not; what they lost stays counted, what they had comes back, and one in
/// another's name is not let in.
#[test]
fn readers_that_go_are_counted_as_they_went() {
    const FETCHED: u64 = 4;
    const FAREWELL: u64 = 3;
    let namespace = namespace();
    let manager = named(&namespace);
    let options = options(SlowReaders::Lose);
    let mut publisher = manager.bind_publisher("frames", options).unwrap();
    let (mut lost, mut misbehaved) = (0, 0);
    for words in [
        &[FETCHED, FETCHED][..],
        &[FETCHED, FAREWELL],
        &[FAREWELL],
        &[9],
    ] {
        let reader = Reader::connect(&namespace);
        assert_eq!(publisher.await_readers(1, LONG), Ok(1));
        for _ in 0..10 {
            let loan = publisher.loan(9, Wait::Poll).unwrap();
            loan.publish(LONG).unwrap();
        }
        lost += 10 - u64::from(DEPTH);
        assert_eq!(publisher.lost(), lost);
        // All is said, and the pool not fetched.
        assert_eq!(publisher.flush(Wait::Poll), Ok(false));
        let (last, before) = words.split_last().unwrap();
        for word in before {
            reader.say(*word);
            assert_eq!(publisher.flush(LONG), Ok(true));
            assert_eq!(publisher.readers(), 1);
        }
        reader.say(*last);
        until("its end", || {
            publisher.poll();
            (publisher.readers() == 0).then_some(())
        });
        misbehaved += u64::from(*last != FAREWELL);
        assert_eq!(
            (publisher.lost(), publisher.misbehaved()),
            (lost, misbehaved)
        );
        all_come_back(&mut publisher);
    }
    let other = open(&namespace);
    let area = other.session().allocate(4096).unwrap();
    let slot = other.session().open_slot(NewSlot::new(&area)).unwrap();
    let ticket = slot.fast_ticket(0, 4096).unwrap();
    let _liar = Reader::connect_as(&namespace, Some(ticket));
    until("the lie", || {
        publisher.poll();
        (publisher.misbehaved() == misbehaved + 1).then_some(())
    });
    assert_eq!(publisher.readers(), 0);
}

/// A publisher by hand.
struct Hand {
    manager: Manager<ProcessHost>,
    _door: Slot,
    _board: Slot,
    greetings: Area,
    queue: Queue,
}

impl Hand {
    fn offer(namespace: &str) -> Self {
        Self::offer_pool(namespace, None)
    }

    /// With a file, a publisher whose readers look at the head of a pool.
    fn offer_pool(namespace: &str, file: Option<(OwnedFd, u64)>) -> Self {
        let manager = named(namespace);
        let greetings = manager.session().allocate(4096).unwrap();
        let queue = manager.session().open_queue(64).unwrap();
        let new = NewSlot::new(&greetings).queue(&queue);
        let door = manager.session().open_slot(new).unwrap();
        let board = manager.session().allocate(4096).unwrap();
        let board = manager.session().open_slot(NewSlot::new(&board)).unwrap();
        let mut offer = HEADER.to_vec();
        offer.extend(door.fast_ticket(0, 4096).unwrap().to_bytes());
        offer.extend(board.fast_ticket(0, 4096).unwrap().to_bytes());
        offer.extend(BYTES.to_le_bytes());
        offer.extend(CHUNKS.to_le_bytes());
        offer.extend(DEPTH.to_le_bytes());
        offer.extend([u8::from(file.is_some()), 0]);
        if let Some((file, announced)) = file {
            let mut interface = manager.session();
            let number = interface.host_mut().share(files(file, announced), None);
            offer.extend(number.unwrap().to_le_bytes());
        }
        let offered = manager.session().offer("frames", Supply::Always, &offer);
        offered.unwrap();
        Self {
            manager,
            _door: door,
            _board: board,
            greetings,
            queue,
        }
    }

    /// Takes a greeting in: over which link it came, and the reader's list.
    fn greeted(&mut self) -> (LinkId, Target) {
        let told = until("a greeting", || {
            let told = self.manager.session().rcv(&mut self.queue).unwrap();
            told.filter(|told| told.word == 1)
        });
        let mut ticket = [0; TICKET_BYTES];
        self.greetings
            .read_at(GREETING_OFFSET, &mut ticket)
            .unwrap();
        let ticket = Ticket::from_bytes(&ticket).unwrap();
        let list = self.manager.session().target(&ticket, LONG).unwrap();
        (told.from, list)
    }

    fn say_pool(&self, list: &Target, number: u64) {
        let data = pair(number, 0);
        let message = Message::new(&data).at(POOL_OFFSET).word(POOL);
        send(&self.manager, list, &message).unwrap();
    }

    fn say(&self, list: &Target, position: u64, place: u64) {
        let data = pair(place, position);
        let at = ENTRIES_OFFSET + position % u64::from(DEPTH) * 16;
        let message = Message::new(&data).at(at).word(position);
        send(&self.manager, list, &message).unwrap();
    }
}

fn subscriber(manager: &Manager<ProcessHost>) -> Subscriber {
    manager
        .connect_subscriber("publisher/frames", LONG)
        .unwrap()
}

fn is_malformed<T>(came: &Result<T, ReceiveError>) -> bool {
    matches!(came, Err(ReceiveError::Malformed { .. }))
}

#[test]
fn places_outside_the_pool_are_refused() {
    let namespace = namespace();
    let mut hand = Hand::offer(&namespace);
    let victim = open(&namespace);
    let pool = Pool::new(BYTES as usize, CHUNKS).unwrap();
    let mut random = Random::new(5);
    let fixed = [
        u64::from(CHUNKS),
        u64::from(u32::MAX),
        u64::from(BYTES + 1) << 32,
        u64::MAX,
        u64::MAX << 32,
    ];
    let any = (0..300).map(|_| random.next() << 8 | u64::from(CHUNKS));
    for place in fixed.into_iter().chain(any) {
        let mut subscriber = subscriber(&victim);
        let (link, list) = hand.greeted();
        let number = hand
            .manager
            .session()
            .show_pool(&pool, Holders::One(link))
            .unwrap();
        hand.say_pool(&list, number);
        hand.say(&list, 0, u64::from(BYTES) << 32 | u64::from(CHUNKS - 1));
        let sample = subscriber.recv(LONG).unwrap().unwrap();
        assert_eq!(sample.to_vec().len(), BYTES as usize);
        drop(sample);
        hand.say(&list, 1, place);
        assert!(is_malformed(&subscriber.recv(LONG)), "{place:x}");
        // It stays so, whatever follows.
        hand.say(&list, 1, 0);
        assert!(is_malformed(&subscriber.recv(Wait::Poll)));
    }
}

#[test]
fn messages_out_of_turn_and_without_a_pool_are_refused() {
    let namespace = namespace();
    let mut hand = Hand::offer(&namespace);
    let victim = open(&namespace);
    for position in [0, 1, 5, u64::MAX - 2] {
        let mut subscriber = subscriber(&victim);
        let (_, list) = hand.greeted();
        hand.say(&list, position, 0);
        assert!(is_malformed(&subscriber.recv(LONG)), "{position}");
    }
    // More than a list holds: its queue is overrun, and no other.
    let mut flooded = subscriber(&victim);
    let (_, list) = hand.greeted();
    for _ in 0..10_000 {
        hand.say(&list, 0, 0);
        victim.session().poll();
    }
    assert!(flooded.recv(LONG).is_err());
    assert!(flooded.recv(LONG).is_err());
}

fn file(len: u64, present: bool, seals: SealFlags) -> OwnedFd {
    let fd = memfd_create("hostile", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, len).unwrap();
    if present {
        let flags = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(&fd, flags, 0, len).unwrap();
    }
    fcntl_add_seals(&fd, seals).unwrap();
    fd
}

#[test]
fn files_that_are_no_sealed_pool_are_refused() {
    let namespace = namespace();
    let mut hand = Hand::offer(&namespace);
    let victim = open(&namespace);
    let len = file_bytes(BYTES as usize, CHUNKS).unwrap() as u64;
    let fixed = SealFlags::SHRINK | SealFlags::GROW;
    let all = fixed | SealFlags::FUTURE_WRITE;
    let bad = [
        (file(len, true, SealFlags::empty()), len),
        (file(len, true, fixed), len),
        (file(len, false, all), len),
        (file(len - 4096, true, all), len),
        (file(len - 4096, true, all), len - 4096),
        (file(len + 4096, true, all), len + 4096),
        (file(len, true, all), u64::MAX),
        (std::fs::File::open("/dev/null").unwrap().into(), len),
    ];
    for (at, (file, announced)) in bad.into_iter().enumerate() {
        let mut subscriber = subscriber(&victim);
        let (link, list) = hand.greeted();
        let number = {
            let mut interface = hand.manager.session();
            let peer = interface
                .peers()
                .find(|(id, _)| *id == link)
                .unwrap()
                .1
                .clone();
            let files = files(file, announced);
            interface.host_mut().share(files, Some(&peer)).unwrap()
        };
        hand.say_pool(&list, number);
        hand.say(&list, 0, 0);
        assert!(is_malformed(&subscriber.recv(LONG)), "{at}");
    }
    let mut subscriber = subscriber(&victim);
    let (_, list) = hand.greeted();
    hand.say_pool(&list, 12_345);
    // As of a publisher that has ended; what it announces is nothing.
    hand.say(&list, 0, 0);
    assert!(matches!(subscriber.recv(Wait::millis(50)), Ok(None)));
}

/// A region with any memory. Its word says that it has ended, which readers of pools do not ask.
fn files(memory: OwnedFd, length_bytes: u64) -> Arc<RegionFiles> {
    let pool = Pool::new(64, 1).unwrap();
    let files = pool.files().duplicate().unwrap();
    Arc::new(RegionFiles::from(ReceivedRegion {
        memory,
        length_bytes,
        ..files
    }))
}

/// A file that is a pool with a head, and is written through a mapping that was made before it was
/// sealed.
fn pool_with_head() -> (Pool, OwnedFd, u64) {
    let pool = Pool::with_head(BYTES as usize, CHUNKS).unwrap();
    let file = pool.files().duplicate().unwrap().memory;
    let len = file_bytes_with_head(BYTES as usize, CHUNKS).unwrap() as u64;
    assert_eq!(pool.length_bytes(), len);
    (pool, file, len)
}

#[test]
fn a_head_that_shows_what_lies_outside_the_pool_ends_the_reader() {
    let len = file_bytes_with_head(BYTES as usize, CHUNKS).unwrap();
    for words in [
        // The head, then the stamp and the length in chunk 0.
        [u64::from(CHUNKS) + 1, 1, 1],
        [u64::MAX, 1, 1],
        [1, 1, u64::from(BYTES) + 1],
        [1, 1, u64::MAX],
    ] {
        let namespace = namespace();
        let mut bytes = vec![0; len];
        let head = Chunks::stride_bytes(BYTES as usize) * CHUNKS as usize;
        for (at, word) in [head, 0, 8].into_iter().zip(words) {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let file = memfd_create("hostile", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::io::pwrite(&file, &bytes, 0).unwrap();
        let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE;
        fcntl_add_seals(&file, all).unwrap();
        let _hand = Hand::offer_pool(&namespace, Some((file, len as u64)));
        let victim = open(&namespace);
        let mut subscriber = subscriber(&victim);
        assert!(is_malformed(&subscriber.recv(Wait::Poll)), "{words:x?}");
        // It stays so.
        assert!(is_malformed(&subscriber.recv(Wait::Poll)));
    }
}

#[test]
fn a_file_that_is_no_pool_with_a_head_is_refused_when_a_reader_connects() {
    let (_pool, good, len) = pool_with_head();
    let plain = Pool::new(BYTES as usize, CHUNKS + 1).unwrap();
    let sealed = SealFlags::SHRINK | SealFlags::GROW;
    let bad = [
        (good, len + 4096),
        (
            plain.files().duplicate().unwrap().memory,
            plain.length_bytes(),
        ),
        (file(len, true, sealed), len),
    ];
    for (at, (file, announced)) in bad.into_iter().enumerate() {
        let namespace = namespace();
        let _hand = Hand::offer_pool(&namespace, Some((file, announced)));
        let victim = open(&namespace);
        let refused = victim.connect_subscriber("publisher/frames", LONG);
        assert!(refused.is_err(), "{at}");
    }
}

/// Stamps and head change all the time, against all rules: the reader goes on, and every message
/// has its length.
#[test]
fn a_publisher_whose_newest_changes_always_is_read_to_the_end() {
    const ROUNDS: u64 = 3_000;
    let namespace = namespace();
    let (mut pool, file, len) = pool_with_head();
    let _hand = Hand::offer_pool(&namespace, Some((file, len)));
    let victim = open(&namespace);
    let mut subscriber = subscriber(&victim);
    let mut chunks: Vec<_> = (0..CHUNKS)
        .map(|_| pool.chunks().take(BYTES as usize).unwrap())
        .collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                let chunk = &mut chunks[number as usize % CHUNKS as usize];
                // It is the newest while it is written.
                pool.show_newest(chunk);
                pool.finish_version(chunk, number);
                chunk.fill(number as u8);
                if number % 3 == 0 {
                    pool.begin_version(chunk);
                }
                number += 1;
            }
        });
        let mut before = None;
        for _ in 0..ROUNDS {
            if let Some(sample) = subscriber.recv(Wait::Poll).unwrap() {
                assert_eq!(sample.to_vec().len(), BYTES as usize);
                assert!(before.is_none_or(|before| sample.number() > before));
                before = Some(sample.number());
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_message_that_changes_while_it_is_read_is_read_to_its_end() {
    const ROUNDS: u64 = 3_000;
    let namespace = namespace();
    let mut hand = Hand::offer(&namespace);
    let victim = open(&namespace);
    let mut pool = Pool::new(BYTES as usize, CHUNKS).unwrap();
    let mut subscriber = subscriber(&victim);
    let (link, list) = hand.greeted();
    let number = hand
        .manager
        .session()
        .show_pool(&pool, Holders::One(link))
        .unwrap();
    hand.say_pool(&list, number);
    let mut chunks: Vec<_> = (0..CHUNKS)
        .map(|_| pool.chunks().take(BYTES as usize).unwrap())
        .collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for value in (0..=u8::MAX).cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                chunks.iter_mut().for_each(|chunk| chunk.fill(value));
            }
        });
        let mut random = Random::new(11);
        for position in 0..ROUNDS {
            let (chunk, len) = (
                random.below(u64::from(CHUNKS)),
                random.below(u64::from(BYTES) + 1),
            );
            hand.say(&list, position, len << 32 | chunk);
            let sample = subscriber.recv(LONG).unwrap().unwrap();
            assert_eq!(
                (sample.len() as u64, sample.to_vec().len() as u64),
                (len, len)
            );
            let word: Option<u64> = sample.read(0);
            assert_eq!(word.is_some(), len >= 8);
            assert!(
                sample
                    .view()
                    .unwrap()
                    .read_at(0, &mut vec![0; len as usize + 1])
                    .is_err()
            );
            hand.manager.session().poll();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(
        Chunks::offset_of(CHUNKS - 1, BYTES as usize) as u64 + u64::from(BYTES)
            <= pool.length_bytes()
    );
}

#[test]
fn what_cannot_be_is_named() {
    let manager = open(&namespace());
    let bad = [
        PublisherOptions {
            message_bytes: 0,
            ..PublisherOptions::default()
        },
        PublisherOptions {
            chunks: 0,
            ..PublisherOptions::default()
        },
        PublisherOptions {
            message_bytes: u32::MAX,
            ..PublisherOptions::default()
        },
        PublisherOptions {
            depth: 0,
            ..PublisherOptions::default()
        },
        PublisherOptions {
            depth: 1025,
            ..PublisherOptions::default()
        },
        PublisherOptions {
            readers: 0,
            ..PublisherOptions::default()
        },
    ];
    for options in bad {
        let refused = manager.bind_publisher("frames", options).unwrap_err();
        assert!(refused.to_string().contains("a publisher's"), "{refused}");
    }
    let mut publisher = manager
        .bind_publisher("frames", options(SlowReaders::Block))
        .unwrap();
    let too_long = publisher.loan(BYTES as usize + 1, Wait::Poll).unwrap_err();
    assert!(matches!(
        too_long,
        LoanError::TooLong {
            limit_bytes: BYTES,
            ..
        }
    ));
    // A loan that is dropped is free again.
    for _ in 0..3 * CHUNKS {
        drop(publisher.loan(1, Wait::Poll).unwrap());
    }
}
