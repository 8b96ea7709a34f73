//! Other processes: this test program again, in another role.

use std::fs::DirEntry;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Says which role to play.
pub(crate) const ROLE: &str = "HAMLYN_TEST_ROLE";
/// The namespace to play in.
pub(crate) const NAMESPACE: &str = "HAMLYN_TEST_NAMESPACE";
/// What a child says to the test, since the test harness prints, too.
const WORD: &str = "child:";

/// A child, killed when dropped. Words go to it and come from it as lines of hexadecimal bytes.
pub(crate) struct Actor {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Actor {
    pub(crate) fn start(role: &str, namespace: &str) -> Self {
        let program = Command::new(std::env::current_exe().unwrap());
        Self::start_by(program, role, namespace)
    }

    /// By a command that is this program, somewhere.
    pub(crate) fn start_by(mut program: Command, role: &str, namespace: &str) -> Self {
        let mut child = program
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(NAMESPACE, namespace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, to, from }
    }

    pub(crate) fn tell(&mut self, bytes: &[u8]) {
        writeln!(self.to, "{}", to_hex(bytes)).unwrap();
    }

    pub(crate) fn hear(&mut self) -> Vec<u8> {
        let line = self.from.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, word) = line.split_once(WORD)?;
            Some(from_hex(word))
        });
        line.expect("the child says a word")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for the child's end; whether it was a success.
    pub(crate) fn ended(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stops a process: when this returns, none of its threads runs until it is told to go on.
pub(crate) fn stop(process: u32) {
    let id = Pid::from_raw(process as i32).unwrap();
    kill_process(id, Signal::STOP).unwrap();
    let is_running = |thread: std::io::Result<DirEntry>| {
        // A thread that has just ended runs no more either.
        let state = std::fs::read_to_string(thread.unwrap().path().join("stat"));
        state.is_ok_and(|state| {
            state
                .rsplit_once(") ")
                .unwrap()
                .1
                .starts_with(['R', 'S', 'D'])
        })
    };
    let runs = || {
        let mut threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        threads.any(is_running)
    };
    while runs() {
        std::thread::yield_now();
    }
}

pub(crate) fn go_on(process: u32) {
    let id = Pid::from_raw(process as i32).unwrap();
    kill_process(id, Signal::CONT).unwrap();
}

/// The role and the namespace, in a child.
pub(crate) fn role() -> Option<(String, String)> {
    Some((std::env::var(ROLE).ok()?, std::env::var(NAMESPACE).ok()?))
}

/// A child's word to the test.
pub(crate) fn say(bytes: &[u8]) {
    println!("{WORD}{}", to_hex(bytes));
}

/// The test's next word to a child.
pub(crate) fn listen() -> Vec<u8> {
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).unwrap() == 0 {
        // The test is gone.
        std::process::exit(0);
    }
    from_hex(line.trim_end())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}
