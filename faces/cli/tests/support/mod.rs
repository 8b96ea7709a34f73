//! The command as tests run it: hosts that are addresses of the loopback device, and processes that
//! end with their test.

#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The command, in a namespace of this test's own and without a word of the environment about the
/// network.
pub(crate) fn hamlyn(test: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamlyn"));
    for variable in [
        "SECRET", "KEY", "KNOWN", "INSECURE", "HOST", "HOSTS", "LISTEN", "TRACE", "LOG",
    ] {
        command.env_remove(format!("HAMLYN_{variable}"));
    }
    let namespace = format!("{test}-{}", std::process::id());
    command.args(arguments).env("HAMLYN_NAMESPACE", namespace);
    command.stdin(Stdio::null());
    command
}

/// What a process printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a process printed for programs.
pub(crate) fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// A directory of a test's own, removed at its end.
pub(crate) struct Room(PathBuf);

impl Room {
    pub(crate) fn new(test: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a plain path").to_owned()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // It is left if it cannot be removed; nobody reads it again.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Two hosts, `red` and `blue`, that are addresses of the loopback device.
pub(crate) struct Pair {
    doors: [u16; 2],
}

pub(crate) const NAMES: [&str; 2] = ["red", "blue"];

impl Pair {
    pub(crate) fn new() -> Self {
        let doors = [0, 1].map(|host| {
            let socket = UdpSocket::bind((Self::address(host), 0)).expect("a port");
            socket.local_addr().expect("its number").port()
        });
        Self { doors }
    }

    fn address(host: usize) -> String {
        format!("127.0.0.{}", host + 1)
    }

    /// What the command is told to be that host.
    pub(crate) fn be(&self, host: usize) -> Vec<String> {
        let mut arguments = Vec::new();
        for (other, door) in self.doors.iter().enumerate() {
            arguments.push("--host".to_owned());
            arguments.push(format!("{}={}:{door}", NAMES[other], Self::address(other)));
        }
        arguments.extend(["--host-name".to_owned(), NAMES[host].to_owned()]);
        arguments.extend(["--listen-at".to_owned(), Self::address(host)]);
        arguments.extend([
            "--name-service-port".to_owned(),
            self.doors[host].to_string(),
        ]);
        arguments
    }
}

/// A process whose standard error is read line by line; killed when dropped.
pub(crate) struct Running {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let said = BufReader::new(child.stderr.take().expect("its standard error"));
        Self { child, said }
    }

    /// Waits until it says that, or ends.
    pub(crate) fn says(&mut self, what: &str) -> String {
        let mut before = String::new();
        loop {
            let mut line = String::new();
            let length = self.said.read_line(&mut line).expect("its standard error");
            assert!(length > 0, "it ended, and said only: {before}");
            if line.contains(what) {
                return line;
            }
            before.push_str(&line);
        }
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a signal");
    }

    /// Waits for its end: what it printed.
    pub(crate) fn ends(mut self) -> Output {
        let mut output = Output {
            status: Default::default(),
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        let mut printed = self.child.stdout.take().expect("its standard output");
        printed.read_to_end(&mut output.stdout).expect("read");
        self.said.read_to_end(&mut output.stderr).expect("read");
        output.status = self.child.wait().expect("its end");
        output
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
