//! Examples that there are in Rust alone: each is run as its first lines say, and says what it
//! must. Those of several languages are run by `languages.rs`.

mod support;

use support::{Running, Stage, two_hosts};

#[test]
fn hello() {
    let program = env!("CARGO_BIN_EXE_hello");
    let stage = Stage::new("hello");
    let receiver = stage.start(program, &["receive", "2"]);
    for text in ["good morning", "good evening"] {
        stage.run(program, &["send", text]);
    }
    let said = receiver.end();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].ends_with("says: good morning"), "{said}");
    assert!(lines[1].ends_with("says: good evening"), "{said}");
    assert!(lines[0].starts_with("process "), "{said}");
}

#[test]
fn sum() {
    let program = env!("CARGO_BIN_EXE_sum");
    let stage = Stage::new("sum");
    let server = stage.start(program, &["serve", "3"]);
    let clients = [("1.5", "2.25"), ("1", "2"), ("-4", "0.5")]
        .map(|(left, right)| stage.start(program, &["ask", left, right]));
    let said = clients.map(Running::end);
    assert_eq!(said, ["3.75\n", "3\n", "-3.5\n"]);
    server.end();
}

#[test]
fn board() {
    let program = env!("CARGO_BIN_EXE_board");
    let stage = Stage::new("board");
    let owner = stage.start(program, &["show", "4"]);
    let writers = ["1", "2", "3", "4"].map(|row| {
        let points = format!("{row}00");
        stage.start(program, &["score", row, &points])
    });
    for writer in writers {
        writer.end();
    }
    let said = owner.end();
    let mut rows: Vec<&str> = said
        .lines()
        .map(|line| line.split(" (").next().unwrap())
        .collect();
    rows.sort_unstable();
    assert_eq!(
        rows,
        ["row 1: 100", "row 2: 200", "row 3: 300", "row 4: 400"]
    );
}

#[test]
fn echo() {
    let program = env!("CARGO_BIN_EXE_echo");
    let stage = Stage::new("echo");
    let server = stage.start(program, &["serve", "1500"]);
    let clients = [500_u64, 1000].map(|questions| {
        let running = stage.start(program, &["ask", &questions.to_string()]);
        (questions, running)
    });
    for (questions, client) in clients {
        let sum = questions * (questions - 1) / 2;
        let expected = format!("{questions} answers, their sum {sum}\n");
        assert_eq!(client.end(), expected);
    }
    assert_eq!(server.end(), "1500 questions answered\n");
}

#[test]
fn active() {
    let program = env!("CARGO_BIN_EXE_active");
    let stage = Stage::new("active");
    let server = stage.start(program, &["serve", "2"]);
    assert_eq!(stage.run(program, &["add", "5"]), "5\n");
    let came_back = "Request of [7] came back: the endpoint has another tag\n";
    assert_eq!(stage.run(program, &["guess", "7"]), came_back);
    assert_eq!(stage.run(program, &["add", "30"]), "35\n");
    assert_eq!(server.end(), "2 requests\n");
}

#[test]
fn locks() {
    let program = env!("CARGO_BIN_EXE_locks");
    let stage = Stage::new("locks");
    let server = stage.start(program, &["serve", "2"]);
    let counters = [0, 1].map(|_| stage.start(program, &["count", "1000"]));
    let numbers = counters.map(|counter| counter.end().trim().parse::<u64>().unwrap());
    // Each counts what the other one has counted, unless one was over before the other began.
    assert!(
        numbers.iter().all(|number| (1000..=2000).contains(number)),
        "{numbers:?}"
    );
    assert!(server.end().starts_with("2 clients, "));
}

#[test]
fn census() {
    let stage = Stage::new("census");
    let job = format!("HAMLYN_JOB=census-{}", std::process::id());
    let processes = [0, 1, 2].map(|rank| {
        let rank = format!("HAMLYN_RANK={rank}");
        let program = env!("CARGO_BIN_EXE_census");
        stage.start("env", &[&job, &rank, "HAMLYN_PROCS=3", program, "5000"])
    });
    let said = processes.map(Running::end);
    assert_eq!(said[1..], ["", ""]);
    let counts = said[0].lines().map(|line| {
        let (sum, count) = line.split_once(": ").unwrap();
        (sum.trim().parse().unwrap(), count.parse().unwrap())
    });
    let counts: Vec<(u32, u32)> = counts.collect();
    assert_eq!(counts.len(), 11);
    assert!(counts.iter().map(|(sum, _)| *sum).eq(2..=12), "{counts:?}");
    // Each throw was counted once, and sevens are the most.
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u32>(), 15_000);
    assert_eq!(counts.iter().max_by_key(|(_, count)| count).unwrap().0, 7);
}

#[test]
fn gather() {
    let program = env!("CARGO_BIN_EXE_gather");
    let stage = Stage::new("gather");
    let owner = stage.start(program, &["own"]);
    stage.run(program, &["paint", "a"]);
    stage.run(program, &["delegate", "b", "c"]);
    let expected = ["a".repeat(32), "b".repeat(16), "c".repeat(16)].concat();
    assert_eq!(owner.end().trim_end(), expected);
}

#[test]
fn frames() {
    let program = env!("CARGO_BIN_EXE_frames");
    let stage = Stage::new("frames");
    let publisher = stage.start(program, &["publish", "3", "2"]);
    let readers = [0, 1].map(|_| stage.start(program, &["read"]));
    let expected = "0: 307200 bytes, 100\n1: 307200 bytes, 101\n2: 307200 bytes, 102\n";
    for reader in readers {
        assert_eq!(reader.end(), expected);
    }
    publisher.end();
}

#[test]
fn hosts() {
    let program = env!("CARGO_BIN_EXE_hosts");
    let (zeus, hera) = two_hosts("hosts", 77);
    let server = zeus.start(program, &["serve", "1"]);
    let answer = hera.run(program, &["ask", "zeus", "who is there?"]);
    assert!(answer.contains("asked: who is there?"), "{answer}");
    assert!(answer.contains("of user"), "{answer}");
    server.end();
}

#[test]
fn busy() {
    let said = Stage::new("busy").run(env!("CARGO_BIN_EXE_busy"), &[]);
    assert_eq!(
        said,
        "sent 50000 messages to a process that is stopped\n3 MiB wait in its memory\n\
         took 50000 messages, in order\n"
    );
}

#[test]
fn provider() {
    let stage = Stage::new("provider");
    let said = stage.run(env!("CARGO_BIN_EXE_provider"), &[]);
    // Memory that is shared has a region's key, which was expected first.
    assert_eq!(
        said,
        "wrote and read by key 17, of 64 bytes\nwrote and read by key 16, of 52 bytes\n\
         closed memory: the target refused the operation: the slot was closed\n"
    );
}

/// The program of `docs/tutorial-rust.md` is `tally`, and does what it says there: on one host,
#[test]
fn tally() {
    let document = include_str!("../../docs/tutorial-rust.md");
    let source = include_str!("../src/bin/tally.rs");
    let body = &source[source.find("use std").unwrap()..];
    assert!(document.contains(&format!("// tally.rs\n{body}```")));
    let stage = Stage::new("tally");
    let program = env!("CARGO_BIN_EXE_tally");
    let server = stage.start(program, &["serve", "3"]);
    let vote = |choice| stage.run(program, &["vote", "tally/votes", choice]);
    assert_eq!(vote("tea"), "tea: 1\n");
    assert_eq!(vote("tea"), "tea: 2\n");
    assert_eq!(vote("coffee"), "coffee: 1\n");
    server.end();
}

/// and on two.
#[test]
fn tally_of_two_hosts() {
    let program = env!("CARGO_BIN_EXE_tally");
    let (zeus, hera) = two_hosts("tally-hosts", 78);
    let server = zeus.start(program, &["serve", "1"]);
    assert_eq!(
        hera.run(program, &["vote", "zeus/tally/votes", "tea"]),
        "tea: 1\n"
    );
    server.end();
}
