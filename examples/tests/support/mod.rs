//! Starting programs that see each other and nobody else.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// Programs that see each other and nobody else.
pub(crate) struct Stage {
    namespace: String,
    environment: Vec<(&'static str, String)>,
}

impl Stage {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            namespace: format!("x{}-{name}", std::process::id()),
            environment: Vec::new(),
        }
    }

    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("HAMLYN_NAMESPACE", &self.namespace)
            // It names a folder where a library of an earlier build may lie, which programs in C
            // would take.
            .env_remove("LD_LIBRARY_PATH")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self, program: &str, arguments: &[&str]) -> Running {
        Running(Some(self.command(program, arguments).spawn().unwrap()))
    }

    /// Starts a program that is to read that from its standard input.
    #[allow(dead_code, reason = "each test program uses a part of this module")]
    pub(crate) fn start_with(&self, program: &str, arguments: &[&str], input: &str) -> Running {
        let mut command = self.command(program, arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        let running = Running(Some(child));
        to.write_all(input.as_bytes()).unwrap();
        running
    }

    /// Runs a program to its end; what it printed.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        self.start(program, arguments).end()
    }
}

/// A program that is killed if its test fails.
pub(crate) struct Running(Option<Child>);

impl Running {
    #[allow(dead_code, reason = "each test program uses a part of this module")]
    pub(crate) fn signal_end(&self) {
        let child = self.0.as_ref().unwrap();
        let process = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    }

    pub(crate) fn end(mut self) -> String {
        let child = self.0.take().unwrap();
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{said}");
        String::from_utf8(stdout).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Two hosts on this one: two addresses of the loopback device.
#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) fn two_hosts(name: &str, network: u8) -> (Stage, Stage) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let process = std::process::id() % 240 + 1;
    let address = |host: u8| format!("127.{process}.{network}.{host}");
    let known = directory.join("hosts");
    std::fs::write(
        &known,
        format!("zeus {}\nhera {}\n", address(1), address(2)),
    )
    .unwrap();
    let stage = |host: &str, number| Stage {
        environment: vec![
            ("HAMLYN_INSECURE", "1".to_owned()),
            ("HAMLYN_HOSTS", known.to_string_lossy().into_owned()),
            ("HAMLYN_HOST", host.to_owned()),
            ("HAMLYN_LISTEN", format!("{}:0", address(number))),
        ],
        ..Stage::new(name)
    };
    (stage("zeus", 1), stage("hera", 2))
}
