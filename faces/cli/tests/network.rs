//! How the command goes on the network, and what it says about it.

mod support;

use std::process::{Command, Output, Stdio};

use support::{NAMES, Pair, Room, Running, hamlyn, text};

/// A sender that finds nobody, with a network of the loopback device alone.
fn sends_to_nobody(network: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamlyn"));
    for variable in [
        "SECRET", "KEY", "KNOWN", "INSECURE", "HOST", "HOSTS", "LISTEN",
    ] {
        command.env_remove(format!("HAMLYN_{variable}"));
    }
    command
        .args(["pipe", "nobody", "--wait", "0"])
        .args(network)
        .env(
            "HAMLYN_NAMESPACE",
            format!("network-{}", std::process::id()),
        )
        .env_remove("HAMLYN_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn without_security_the_command_says_so_at_start() {
    let here = [
        "--host-name",
        "here",
        "--listen-at",
        "127.0.0.1",
        "--name-service-port",
        "0",
    ];
    let output = sends_to_nobody(&[&here[..], &["--insecure"]].concat());
    assert!(
        said(&output).contains("without security"),
        "{}",
        said(&output)
    );
    // And does not start if nobody said that none is wanted.
    let output = sends_to_nobody(&here);
    assert!(!output.status.success());
    assert!(
        said(&output).contains("needs keys of hosts"),
        "{}",
        said(&output)
    );
    // Without a network there is nothing to be said.
    let output = sends_to_nobody(&[]);
    assert!(!said(&output).contains("security"), "{}", said(&output));
    assert!(said(&output).contains("nobody"), "{}", said(&output));
}

/// Hosts that know each other by keys: nothing is shared by all of them.
#[test]
fn with_keys_of_hosts_a_pipe_carries_every_byte_and_strangers_nothing() {
    const TEST: &str = "network-keys";
    let (pair, room) = (Pair::new(), Room::new(TEST));
    let keys = NAMES.map(|name| {
        let file = room.file(name);
        let made = hamlyn(TEST, &["keygen", "host", "--name", name, &file]).output();
        text(&made.expect("the command starts").stdout)
    });
    let stranger = room.file("stranger");
    let made = hamlyn(TEST, &["keygen", "host", "--name", "blue", &stranger]).output();
    let stranger_line = text(&made.expect("the command starts").stdout);
    let known = room.file("known");
    std::fs::write(&known, keys.concat()).expect("written");
    // The attacker claims to be blue, and knows red.
    let its_known = room.file("its-known");
    std::fs::write(&its_known, keys[0].clone() + &stranger_line).expect("written");

    let pipe = |host: usize, key: &str, known: &str, arguments: &[&str]| {
        let mut command = hamlyn(TEST, &["pipe", "--key", key, "--known", known]);
        command.args(pair.be(host)).args(arguments);
        command
    };
    let red = room.file("red");
    let receiving = Running::start(&mut pipe(0, &red, &known, &["--listen", "keyed"]));
    let refused = pipe(1, &stranger, &its_known, &["red/keyed", "--wait", "2"]).output();
    let refused = refused.expect("the command starts");
    assert!(
        !refused.status.success(),
        "a key that is not known opened the way"
    );
    // Somebody must take what comes.
    let receiving = std::thread::spawn(|| receiving.ends());
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut command = pipe(1, &room.file("blue"), &known, &["red/keyed"]);
    let mut sending = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut input = sending.stdin.take().expect("its input");
    std::io::Write::write_all(&mut input, &bytes).expect("it takes its input");
    drop(input);
    assert!(sending.wait().expect("its end").success());
    let output = receiving.join().expect("its end");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stdout == bytes, "{} bytes came", output.stdout.len());
}

#[test]
fn a_key_without_those_that_are_known_is_refused_and_so_are_two_kinds_of_security() {
    for arguments in [
        &["--key", "a"][..],
        &["--known", "a"],
        &["--key", "a", "--known", "b", "--secret", "c"],
        &["--key", "a", "--known", "b", "--insecure"],
    ] {
        let output = sends_to_nobody(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

/// A host that holds this secret and listens, and its diagnostics.
fn listens(test: &str, pair: &Pair, secret: &str) -> Running {
    let mut command = hamlyn(test, &["pipe", "--secret", secret, "--listen", "shop"]);
    command.args(pair.be(0)).env("HAMLYN_LOG", "warn");
    Running::start(&mut command)
}

fn secret(test: &str, file: String) -> String {
    let made = hamlyn(test, &["keygen", "secret", &file]).status();
    assert!(made.expect("the command starts").success());
    file
}

/// The sender's text names the remedy, and the listener says that somebody came.
#[test]
fn a_wrong_secret_is_said_on_both_sides() {
    const TEST: &str = "network-wrong-secret";
    let (pair, room) = (Pair::new(), Room::new(TEST));
    let secrets = ["one", "other"].map(|name| secret(TEST, room.file(name)));
    let mut listening = listens(TEST, &pair, &secrets[0]);
    let arguments = ["pipe", "red/shop", "--wait", "5", "--secret", &secrets[1]];
    let mut command = hamlyn(TEST, &arguments);
    command
        .args(pair.be(1))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let sending = command.spawn().expect("the command starts");
    let line = listening.says("HAMLYN_SECRET");
    assert!(line.contains("127.0.0."), "{line}");
    let output = sending.wait_with_output().expect("its end");
    let told = said(&output);
    assert!(
        told.contains("HAMLYN_SECRET") && told.contains("127.0.0.1:"),
        "{told}"
    );
}

#[test]
fn a_port_that_another_program_has_is_said() {
    const TEST: &str = "network-taken";
    let (pair, room) = (Pair::new(), Room::new(TEST));
    let arguments = pair.be(0);
    let door: u16 = arguments
        .last()
        .expect("the port")
        .parse()
        .expect("a number");
    let _other = std::net::UdpSocket::bind(("127.0.0.1", door)).expect("the port");
    let mut listening = listens(TEST, &pair, &secret(TEST, room.file("secret")));
    let line = listening.says("has the UDP port of the name service");
    assert!(line.contains(&format!("127.0.0.1:{door}")), "{line}");
}

#[test]
fn what_the_environment_says_wrongly_is_named() {
    for (value, words) in [
        ("", &["HAMLYN_SECRET=", "must name a file"][..]),
        (
            "/nowhere/at/all",
            &["HAMLYN_SECRET", "/nowhere/at/all", "No such file"],
        ),
    ] {
        let mut command = hamlyn("network-environment", &["pipe", "nobody", "--wait", "0"]);
        let output = command.env("HAMLYN_SECRET", value).output();
        let told = said(&output.expect("the command starts"));
        for word in words {
            assert!(told.contains(word), "{word:?} is not in {told:?}");
        }
    }
}
