//! The promises of the library, kept by parties that are programs in C: protocols, refusals,
//! revocation, peers that do what they may not, that stop, and that are killed.
//!
//! A party reads lines and does one call for each (`programs/party.c`). The promises name no
//! language: a party in another one is a program that understands the same lines. The environment
//! variable HAMLYN_PARTY names such a program. The promises are then kept by parties of that
//! language, and between it and C in both directions; `make python` does so with
//! `faces/python/tests/party.py`. Those of mailboxes are kept between C, C++
//! (`programs/party.cpp`) and Rust (`conformance/in_rust.rs`), each with each, or between the
//! language of that program and each of these and itself.

#[path = "conformance/completions.rs"]
mod completions;
#[path = "conformance/in_rust.rs"]
mod in_rust;
#[path = "conformance/mailboxes.rs"]
mod mailboxes;
mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use hamlyn_c::status::Status;
use support::{OF_C, compiled};

/// More than anything takes that ends at all.
const LONG_MS: i64 = 60_000;

/// A program that does what it is told; killed when this is dropped.
struct Party {
    child: Child,
    lines: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The programs that the parties of a world run, each in some language.
#[derive(Clone, Debug)]
struct Languages {
    /// Of the party that is called `SERVES`.
    serves: Program,
    /// Of all others.
    asks: Program,
}

/// A program that a party runs.
#[derive(Clone, Debug)]
enum Program {
    /// One of its own.
    Own(PathBuf),
    /// The party in Rust, which is a test of this program.
    InRust,
}

/// The party that serves the others.
const SERVES: &str = "serves";

impl Languages {
    /// The worlds in which each promise is kept.
    fn all() -> Vec<Self> {
        let in_c = Program::in_c;
        let of = |serves, asks| Self { serves, asks };
        match Program::of_environment() {
            None => vec![of(in_c(), in_c())],
            Some(other) => vec![
                of(other.clone(), other.clone()),
                of(in_c(), other.clone()),
                of(other, in_c()),
            ],
        }
    }

    /// The worlds in which each promise of mailboxes is kept. With a party of another language they
    /// are those that it is in: those without it are the same as without HAMLYN_PARTY.
    fn with_mailboxes() -> Vec<Self> {
        let all = [Program::in_c(), Program::in_cpp(), Program::InRust];
        let of = |serves: &Program, asks: &Program| Self {
            serves: serves.clone(),
            asks: asks.clone(),
        };
        let other = Program::of_environment();
        let mut pairs = Vec::new();
        for one in &all {
            match &other {
                None => pairs.extend(all.iter().map(|asks| of(one, asks))),
                Some(other) => pairs.extend([of(one, other), of(other, one)]),
            }
        }
        pairs.extend(other.map(|other| of(&other, &other)));
        pairs
    }
}

impl Program {
    /// The one that HAMLYN_PARTY names, if any.
    fn of_environment() -> Option<Self> {
        let path = std::env::var_os("HAMLYN_PARTY")?;
        Some(Self::Own(path.into()))
    }

    fn in_c() -> Self {
        static IN_C: OnceLock<PathBuf> = OnceLock::new();
        let path = IN_C.get_or_init(|| compiled("party.c", "party", &OF_C));
        Self::Own(path.clone())
    }

    fn in_cpp() -> Self {
        static IN_CPP: OnceLock<PathBuf> = OnceLock::new();
        let path =
            IN_CPP.get_or_init(|| compiled("party.cpp", "party-cpp", &["c++", "-std=c++17"]));
        Self::Own(path.clone())
    }

    fn command(&self) -> Command {
        match self {
            Self::Own(path) => Command::new(path),
            Self::InRust => in_rust::command(),
        }
    }
}

/// Parties that see each other and nobody else.
struct World {
    namespace: String,
    languages: Languages,
}

impl World {
    fn new(languages: Languages) -> Self {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        Self {
            namespace: format!("promises-{}-{number}", std::process::id()),
            languages,
        }
    }

    /// A party with an interface of that name.
    fn party(&self, name: &str, strategy: u32) -> Party {
        let program = match name == SERVES {
            true => &self.languages.serves,
            false => &self.languages.asks,
        };
        let mut party = Party::start(program, &self.namespace);
        party.does(&format!("open 0 0 {name} {strategy}"));
        party
    }
}

impl Party {
    fn start(program: &Program, namespace: &str) -> Self {
        let mut command = program.command();
        command.env("HAMLYN_NAMESPACE", namespace);
        command.env_remove("LD_LIBRARY_PATH");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = command.spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{program:?}: {error}"));
        let lines = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        if let Program::InRust = program {
            in_rust::skip_words_of_harness(&mut answers);
        }
        Self {
            child,
            lines,
            answers,
        }
    }

    /// Tells it to do something, without waiting for it.
    fn begins(&mut self, line: &str) {
        writeln!(self.lines, "{line}").unwrap();
    }

    /// What it answers to what it began.
    fn ended(&mut self) -> (i32, String) {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let (status, rest) = (answer.trim_end_matches('\n').split_once(' '))
            .unwrap_or_else(|| panic!("the party ended: {answer:?}"));
        (status.parse().unwrap(), rest.to_owned())
    }

    /// It does that, and says what came.
    fn does(&mut self, line: &str) -> String {
        self.begins(line);
        let (status, rest) = self.ended();
        assert_eq!(status, Status::Ok as i32, "{line}: {rest}");
        rest
    }

    /// It cannot do that, and says why.
    fn fails(&mut self, line: &str, expected: Status, said: &str) {
        self.begins(line);
        self.failed(line, expected, said);
    }

    fn failed(&mut self, line: &str, expected: Status, said: &str) {
        let (status, rest) = self.ended();
        assert_eq!(status, expected as i32, "{line}: {rest}");
        assert!(rest.contains(said), "{line}: {rest}");
    }

    /// What another answers to what it began, while this one moves packets: with some strategies
    /// nobody else moves its own.
    fn drives(&mut self, other: &mut Party) -> (i32, String) {
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| other.ended());
            while !answer.is_finished() {
                self.does("poll");
            }
            answer.join().unwrap()
        })
    }

    fn signal(&self, signal: &str) {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &process]).status();
        assert!(sent.unwrap().success());
    }

    /// Ends it without a word.
    fn is_killed(&mut self) -> u32 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child.id()
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each promise between all languages, with every strategy of the party that serves.
macro_rules! promises {
    ($module:ident, $languages:ident: $($name:ident)*) => {$(
        #[test]
        fn $name() {
            for languages in Languages::$languages() {
                for strategy in 0..4 {
                    println!("{languages:?}, strategy {strategy}");
                    let world = World::new(languages.clone());
                    let serves = world.party(SERVES, strategy);
                    $module::$name(&world, serves);
                }
            }
        }
    )*};
}

promises! {
    promise, all:
    messages_arrive_as_they_were_sent
    records_come_in_order_and_the_end_is_told
    who_is_not_ready_gets_nothing_and_the_sender_is_told
    what_is_taken_back_is_worthless
    what_does_not_fit_is_refused
    death_of_a_sender_is_told
    death_of_a_receiver_is_told
    a_stopped_peer_delays_nobody_else
}

promises! {
    completions, all:
    what_is_tracked_ends_with_its_own_number
    what_fails_ends_with_its_reason
}

promises! {
    mailboxes, with_mailboxes:
    mail_of_every_length_arrives_whole_and_in_order
    a_mailbox_that_nobody_asks_keeps_messages_and_refuses_beyond_its_bound
    a_ticket_of_a_mailbox_is_good_until_it_is_taken_back
}

mod promise {
    use super::{LONG_MS, Party, SERVES, Status, World};

    pub(super) fn messages_arrive_as_they_were_sent(world: &World, mut serves: Party) {
        let mut asks = world.party("asks", 0);
        for (kind, item) in [
            ("datagram", "inbox"),
            ("tags", "table"),
            ("service", "echo"),
        ] {
            serves.does(&format!("bind_{kind} 0 0 {item}"));
            asks.does(&format!("connect_{kind} 0 {LONG_MS} serves/{item}"));
        }
        asks.does(&format!("send_datagram 0 {LONG_MS} hello"));
        assert_eq!(serves.does(&format!("recv_datagram 0 {LONG_MS}")), "hello");
        asks.does(&format!("send_tag 0 {LONG_MS} written 7"));
        serves.does(&format!("recv_tag 0 {LONG_MS} 7"));
        assert_eq!(serves.does("read_tags 0 0 7"), "written");
        serves.begins(&format!("serve 0 {LONG_MS}"));
        assert_eq!(asks.does(&format!("call 0 {LONG_MS} question")), "question");
        assert_eq!(serves.ended().0, Status::Ok as i32);

        serves.does("bind_publisher 0 0 frames");
        serves.begins(&format!("await_readers 0 {LONG_MS}"));
        asks.does(&format!("connect_subscriber 0 {LONG_MS} serves/frames"));
        assert_eq!(serves.ended().0, Status::Ok as i32);
        asks.begins(&format!("recv_sample 0 {LONG_MS}"));
        assert_eq!(serves.does(&format!("publish 0 {LONG_MS} frame")), "1");
        assert_eq!(serves.drives(&mut asks), (0, "frame".to_owned()));
    }

    pub(super) fn records_come_in_order_and_the_end_is_told(world: &World, mut serves: Party) {
        serves.does("bind_stream 0 0 log");
        let mut asks = world.party("asks", 0);
        asks.does(&format!("connect_stream 0 {LONG_MS} serves/log"));
        asks.begins(&format!("send_records 0 {LONG_MS} 5000"));
        serves.does(&format!("recv_records 0 {LONG_MS} 5000"));
        assert_eq!(asks.ended().0, Status::Ok as i32);
        asks.begins(&format!("finish_stream 0 {LONG_MS}"));
        let closed = "the sending end was closed";
        serves.fails(
            &format!("recv_record 0 {LONG_MS}"),
            Status::Finished,
            closed,
        );
        assert_eq!(asks.ended().0, Status::Ok as i32);
    }

    pub(super) fn who_is_not_ready_gets_nothing_and_the_sender_is_told(
        world: &World,
        mut serves: Party,
    ) {
        serves.does("bind_datagram 0 0 inbox");
        let mut asks = world.party("asks", 0);
        asks.does(&format!("connect_datagram 0 {LONG_MS} serves/inbox"));
        asks.does(&format!("send_datagram 0 {LONG_MS} first"));
        assert_eq!(serves.does(&format!("hold_datagram 0 {LONG_MS}")), "first");
        // One that is held is the only one that there is room for.
        asks.does(&format!("send_datagram 0 {LONG_MS} second"));
        asks.begins(&format!("fence_datagram 0 {LONG_MS}"));
        let (status, text) = serves.drives(&mut asks);
        assert_eq!(status, Status::Refused as i32, "{text}");
        serves.does("release_datagram");
        serves.fails("recv_datagram", Status::TimedOut, "nothing came");
        asks.does(&format!("send_datagram 0 {LONG_MS} third"));
        assert_eq!(serves.does(&format!("recv_datagram 0 {LONG_MS}")), "third");
    }

    pub(super) fn what_is_taken_back_is_worthless(world: &World, mut serves: Party) {
        for (kind, item) in [("datagram", "inbox"), ("tags", "table")] {
            serves.does(&format!("bind_{kind} 0 0 {item}"));
        }
        let mut asks = world.party("asks", 0);
        for (kind, item) in [("datagram", "inbox"), ("tags", "table")] {
            asks.does(&format!("connect_{kind} 0 {LONG_MS} serves/{item}"));
            serves.does(&format!("revoke_{kind} 0 0"));
        }
        for (send, fence, recv) in [
            ("send_datagram", "fence_datagram", "recv_datagram"),
            ("send_tag", "fence_tags", "recv_tag"),
        ] {
            asks.does(&format!("{send} 0 {LONG_MS} late 7"));
            asks.begins(&format!("{fence} 0 {LONG_MS}"));
            let (status, text) = serves.drives(&mut asks);
            assert_eq!(status, Status::Refused as i32, "{text}");
            assert!(text.contains("wrong key"), "{text}");
            serves.fails(&format!("{recv} 0 0 7"), Status::TimedOut, "nothing came");
        }
        // Those who connect afterwards are welcome.
        asks.does(&format!("connect_datagram 1 {LONG_MS} serves/inbox"));
        asks.does(&format!("send_datagram 1 {LONG_MS} again"));
        assert_eq!(serves.does(&format!("recv_datagram 0 {LONG_MS}")), "again");
    }

    pub(super) fn what_does_not_fit_is_refused(world: &World, mut serves: Party) {
        serves.does("bind_stream 0 0 log");
        serves.does("bind_service 0 0 echo");
        serves.does("bind_datagram 0 0 inbox");
        serves.fails("bind_datagram 1 0 inbox", Status::Taken, "inbox");
        let mut asks = world.party("asks", 0);
        let other = "not a datagram";
        asks.fails(
            &format!("connect_datagram 0 {LONG_MS} serves/echo"),
            Status::Refused,
            other,
        );
        asks.fails(
            "connect_datagram 0 10 serves/nothing",
            Status::NotFound,
            "nothing",
        );
        asks.fails(
            "connect_datagram 0 10 nobody/inbox",
            Status::NotFound,
            "nobody",
        );
        asks.does(&format!("connect_stream 0 {LONG_MS} serves/log"));
        let mut third = world.party("third", 0);
        third.fails(
            &format!("connect_stream 0 {LONG_MS} serves/log"),
            Status::Taken,
            "one sender",
        );
        asks.does(&format!("connect_datagram 0 {LONG_MS} serves/inbox"));
        let long = "x".repeat(65);
        asks.fails(
            &format!("send_datagram 0 {LONG_MS} {long}"),
            Status::TooLong,
            "65 bytes",
        );
        // None of that has harmed anybody.
        asks.does(&format!("send_datagram 0 {LONG_MS} short"));
        assert_eq!(serves.does(&format!("recv_datagram 0 {LONG_MS}")), "short");
    }

    pub(super) fn death_of_a_sender_is_told(world: &World, mut serves: Party) {
        serves.does("bind_stream 0 0 log");
        serves.does("bind_datagram 0 0 inbox");
        let mut asks = world.party("asks", 0);
        asks.does(&format!("connect_stream 0 {LONG_MS} serves/log"));
        asks.begins(&format!("send_records 0 {LONG_MS} 10"));
        serves.does(&format!("recv_records 0 {LONG_MS} 10"));
        assert_eq!(asks.ended().0, Status::Ok as i32);
        serves.begins(&format!("recv_record 0 {LONG_MS}"));
        let process = asks.is_killed();
        serves.failed("recv_record", Status::PeerLost, "is gone");
        let left = serves.does(&format!("next_departure 0 {LONG_MS}"));
        assert_eq!(left, process.to_string());
        // Others are served as before.
        let mut third = world.party("third", 0);
        third.does(&format!("connect_datagram 0 {LONG_MS} serves/inbox"));
        third.does(&format!("send_datagram 0 {LONG_MS} here"));
        assert_eq!(serves.does(&format!("recv_datagram 0 {LONG_MS}")), "here");
    }

    pub(super) fn death_of_a_receiver_is_told(world: &World, mut serves: Party) {
        serves.does("bind_service 0 0 echo");
        serves.does("bind_datagram 0 0 inbox");
        let mut asks = world.party("asks", 0);
        asks.does(&format!("connect_service 0 {LONG_MS} serves/echo"));
        asks.does(&format!("connect_datagram 0 {LONG_MS} serves/inbox"));
        asks.begins(&format!("call 0 {LONG_MS} question"));
        serves.is_killed();
        asks.failed("call", Status::PeerLost, "is gone");
        asks.fails(
            &format!("send_datagram 0 {LONG_MS} x"),
            Status::PeerLost,
            "is gone",
        );
        asks.fails(
            "connect_datagram 1 10 serves/inbox",
            Status::NotFound,
            "serves",
        );
        // Its name is free, and what it has under it is new.
        let mut again = world.party(SERVES, 0);
        again.does("bind_datagram 0 0 inbox");
        asks.does(&format!("connect_datagram 1 {LONG_MS} serves/inbox"));
        asks.does(&format!("send_datagram 1 {LONG_MS} again"));
        assert_eq!(again.does(&format!("recv_datagram 0 {LONG_MS}")), "again");
    }

    pub(super) fn a_stopped_peer_delays_nobody_else(world: &World, mut serves: Party) {
        serves.does("bind_stream 0 0 log");
        let mut other = world.party("other", 0);
        other.does("bind_stream 0 0 log");
        let mut asks = world.party("asks", 0);
        asks.does(&format!("connect_stream 0 {LONG_MS} serves/log"));
        asks.does(&format!("connect_stream 1 {LONG_MS} other/log"));
        // So that what is sent to it later needs nothing of it but room.
        asks.begins(&format!("send_records 0 {LONG_MS} 10"));
        serves.does(&format!("recv_records 0 {LONG_MS} 10"));
        assert_eq!(asks.ended().0, Status::Ok as i32);
        serves.signal("-STOP");
        asks.fails("send_records 0 50 10000000", Status::TimedOut, "no room");
        asks.begins(&format!("send_records 1 {LONG_MS} 1000"));
        other.does(&format!("recv_records 0 {LONG_MS} 1000"));
        assert_eq!(asks.ended().0, Status::Ok as i32);
        serves.signal("-CONT");
    }
}
