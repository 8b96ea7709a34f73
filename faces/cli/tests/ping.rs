//! `hamlyn ping`: figures of what was measured, and nothing else; losses and ends with their
//! causes; no hang.

mod support;

use rustix::process::Signal;
use support::{Pair, Room, Running, hamlyn, json, text};

/// Somebody who answers on this host.
fn answering(test: &str) -> Running {
    let mut answering = Running::start(&mut hamlyn(test, &["ping", "--listen", "echo"]));
    answering.says("answering as echo");
    answering
}

/// Two hosts that have a secret; the first answers.
struct Hosts {
    test: &'static str,
    pair: Pair,
    room: Room,
    answering: Running,
}

impl Hosts {
    fn new(test: &'static str) -> Self {
        let (pair, room) = (Pair::new(), Room::new(test));
        let secret = room.file("secret");
        let made = hamlyn(test, &["keygen", "secret", &secret]).output();
        assert!(made.expect("the command starts").status.success());
        let mut command = hamlyn(test, &["ping", "--listen", "echo", "--secret", &secret]);
        let mut answering = Running::start(command.args(pair.be(0)));
        let line = answering.says("answering as echo");
        assert!(line.contains("red/echo"), "{line}");
        Self {
            test,
            pair,
            room,
            answering,
        }
    }

    fn ask(&self, arguments: &[&str]) -> std::process::Command {
        let secret = self.room.file("secret");
        let mut command = hamlyn(self.test, &["ping", "red/echo", "--secret", &secret]);
        command.args(self.pair.be(1)).args(arguments);
        command
    }
}

#[test]
fn on_one_host_each_way_is_measured() {
    let answering = answering("ping-here");
    let arguments = ["ping", "echo", "--count", "50", "--interval", "0", "--json"];
    let output = hamlyn("ping-here", &arguments).output().expect("it runs");
    let shown = json(&output);
    assert!(output.status.success(), "{shown:#}");
    assert_eq!(shown["sent"], 50);
    assert_eq!(shown["answered"], 50);
    assert_eq!(shown["ended"], "done");
    assert_eq!(shown["path"]["kind"], "local");
    assert_eq!(shown["one_way"]["measured"], true);
    // Both ways are parts of the round trip.
    let least = |what: &serde_json::Value| what["min_ns"].as_u64().expect("a time");
    let ways = least(&shown["one_way"]["there"]) + least(&shown["one_way"]["back"]);
    assert!(least(&shown["round_trip"]) > 0);
    assert!(ways <= shown["round_trip"]["max_ns"].as_u64().expect("a time"));
    answering.send(Signal::INT);
    let output = answering.ends();
    assert!(output.status.success());
    assert!(text(&output.stderr).contains(": 50 answered"));
}

#[test]
fn two_hosts_have_two_clocks_and_the_way_is_told() {
    let mut hosts = Hosts::new("ping-hosts");
    // Longer than a frame, so that it goes in several.
    let output = hosts.ask(&["--count", "20", "--size", "30000", "--json"]);
    let output = { output }.output().expect("it runs");
    let shown = json(&output);
    assert!(output.status.success(), "{shown:#}");
    assert_eq!(shown["answered"], 20);
    assert_eq!(shown["one_way"]["measured"], false);
    assert_eq!(shown["one_way"]["half_of_round_trip"]["count"], 20);
    let path = &shown["path"];
    assert_eq!(path["kind"], "udp");
    assert_eq!(path["encrypted"], true);
    assert!(
        path["to"]
            .as_str()
            .is_some_and(|to| to.starts_with("127.0.0.1:"))
    );
    assert!(
        path["transport"]["frames_sent"].as_u64() >= Some(20),
        "{path}"
    );
    // The answering side is told that the run is over, and not by silence.
    hosts.answering.says(": 20 answered");
}

#[test]
fn who_is_killed_is_said_to_be_gone() {
    let mut answering = answering("ping-killed");
    let arguments = ["ping", "echo", "--count", "0", "--json"];
    let asking = Running::start(&mut hamlyn("ping-killed", &arguments));
    answering.says("asks with 16 bytes");
    answering.send(Signal::KILL);
    let output = asking.ends();
    let shown = json(&output);
    assert!(!output.status.success());
    assert_eq!(shown["ended"], "peer lost");
    let error = shown["error"].as_str().expect("an error");
    assert!(error.contains("its process ended"), "{error}");
}

#[test]
fn who_is_killed_on_another_host_is_said_to_be_gone() {
    let mut hosts = Hosts::new("ping-far-killed");
    let asking = Running::start(&mut hosts.ask(&["--count", "0"]));
    hosts.answering.says("asks with 16 bytes");
    hosts.answering.send(Signal::KILL);
    let output = asking.ends();
    assert!(!output.status.success());
    let said = text(&output.stdout);
    assert!(
        said.contains("ended early") && said.contains("is gone"),
        "{said}"
    );
}

#[test]
fn an_interrupt_ends_it_with_the_summary() {
    let mut answering = answering("ping-stop");
    let asking = Running::start(&mut hamlyn(
        "ping-stop",
        &["ping", "echo", "-c", "0", "--json"],
    ));
    answering.says("asks with");
    asking.send(Signal::INT);
    let shown = json(&asking.ends());
    assert_eq!(shown["ended"], "interrupted");
    assert_eq!(shown["lost"], 0);
}

#[test]
fn several_ask_at_once() {
    let answering = answering("ping-many");
    let arguments = ["ping", "echo", "--count", "30", "--interval", "0", "--json"];
    // More than tickets are in stock at a time.
    let asking: Vec<_> = (0..20)
        .map(|_| Running::start(&mut hamlyn("ping-many", &arguments)))
        .collect();
    for asking in asking {
        let output = asking.ends();
        assert_eq!(json(&output)["answered"], 30);
    }
    drop(answering);
}

#[test]
fn nobody_answers_for_nobody() {
    let output = hamlyn("ping-nobody", &["ping", "nobody", "--wait", "0"]).output();
    let output = output.expect("it runs");
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("nobody"));
    assert!(output.stdout.is_empty());
}
