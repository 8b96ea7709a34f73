//! Several hosts on one machine, for tests, benchmarks and demonstrations: network namespaces,
//! joined by cables (veth pairs) that are made here and taken away again.
//!
//! Two hosts are joined directly. More are joined by a switch, a bridge in a namespace of its own.
//! Nothing of this lies in the namespace of its creator, so several testbeds can stand side by
//! side, with the same addresses. Abstract sockets end at a namespace too: what runs on one of
//! these hosts finds nobody of another but over the network.
//!
//! It calls `ip` (iproute2), and needs the rights of root. Without them it is refused, with an
//! error of which [`TestbedError::is_want_of_rights`] is true, and what would use it is to say so
//! and go without.
//!
//! Cables have neither delay nor loss nor a limit of bandwidth. A long path beside the cable of the
//! first two hosts does ([`Testbed::long_path`]).

#![deny(unsafe_code)]

mod relay;

pub use relay::{BASE_MAX, LongPath, Relay};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Most hosts of one testbed.
pub const HOSTS_MAX: usize = 64;
/// Least payload of a cable's frames that a testbed takes, in bytes: what IPv6 demands.
pub const MTU_BYTES_MIN: u32 = 1_280;
/// Largest payload of a cable's frames, in bytes.
pub const MTU_BYTES_MAX: u32 = 65_535;

/// The name of the cable's end in each host.
const CABLE: &str = "eth0";
const PREFIX: &str = "hamlyn";

/// Why there is no testbed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// Only root may make network namespaces.
    #[error("network namespaces need the rights of root")]
    NotRoot,
    /// The kernel, or the sandbox of this process, refuses it.
    #[error("this process may not make network namespaces: `ip {arguments}` said {said:?}")]
    NotPermitted {
        /// What was asked of `ip`.
        arguments: String,
        /// What it printed.
        said: String,
    },
    /// Namespaces can be made here, but not entered: in a chroot, `ip` cannot give them mounts of
    /// their own.
    #[error("network namespaces cannot be entered here: `ip {arguments}` said {said:?}")]
    NotEntered {
        /// What was asked of `ip`.
        arguments: String,
        /// What it printed.
        said: String,
    },
    /// There is no `ip`.
    #[error("no `ip` command ({0}): install iproute2")]
    NoCommand(#[source] std::io::Error),
    /// `ip` failed.
    #[error("`ip {arguments}` failed: {said:?}")]
    Failed {
        /// What was asked of it.
        arguments: String,
        /// What it printed.
        said: String,
    },
    /// A number of hosts or an MTU out of bounds.
    #[error("{what} is {value}; it can be {least} to {most}")]
    OutOfBounds {
        /// What is out of bounds.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// The least that can be.
        least: u64,
        /// The most that can be.
        most: u64,
    },
}

impl TestbedError {
    /// This user cannot have it here at all.
    pub fn is_want_of_rights(&self) -> bool {
        matches!(
            self,
            Self::NotRoot
                | Self::NotPermitted { .. }
                | Self::NotEntered { .. }
                | Self::NoCommand(_)
        )
    }
}

/// Hosts joined by cables. They go when this goes, also after a panic; what a killed process left
/// is swept away by the next one.
#[derive(Debug)]
pub struct Testbed {
    /// Of the switch, if there are more than two hosts.
    switch: Option<String>,
    hosts: Vec<TestHost>,
}

/// One of the hosts.
#[derive(Debug)]
pub struct TestHost {
    namespace: String,
    name: String,
    number: u8,
}

impl Testbed {
    /// So many hosts (2 to [`HOSTS_MAX`]), named `a`, `b` ..., with the MTU of Ethernet.
    ///
    /// # Errors
    ///
    /// See [`TestbedError`]. What was made until then is taken away again.
    pub fn new(hosts: usize) -> Result<Self, TestbedError> {
        let names: Vec<String> = (1..=hosts).map(letters).collect();
        Self::with_names(&names, 1_500)
    }

    /// As [`Testbed::new`], for tests: nothing, said aloud, for a user who may not have one.
    ///
    /// # Panics
    ///
    /// If it fails for another reason.
    pub fn or_skip(hosts: usize) -> Option<Self> {
        match Self::new(hosts) {
            Ok(testbed) => Some(testbed),
            Err(why) if why.is_want_of_rights() => {
                // Not through the macros, whose output a test harness keeps to itself.
                let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
                None
            }
            Err(why) => panic!("{why}"),
        }
    }

    /// Hosts with these names, and cables with this MTU in bytes.
    ///
    /// # Errors
    ///
    /// See [`TestbedError`].
    pub fn with_names<S: AsRef<str>>(names: &[S], mtu_bytes: u32) -> Result<Self, TestbedError> {
        within("the number of hosts", names.len(), 2, HOSTS_MAX)?;
        within_mtu(mtu_bytes)?;
        if !rustix::process::geteuid().is_root() {
            return Err(TestbedError::NotRoot);
        }
        sweep()?;
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let mut testbed = Self {
            switch: None,
            hosts: Vec::new(),
        };
        for (name, number) in names.iter().zip(1..) {
            let namespace = format!("{PREFIX}-{pid}-{serial}-{number}");
            ip(&["netns", "add", &namespace])?;
            testbed.hosts.push(TestHost {
                namespace,
                name: name.as_ref().to_owned(),
                number,
            });
        }
        testbed.enter()?;
        if names.len() > 2 {
            let namespace = format!("{PREFIX}-{pid}-{serial}-switch");
            ip(&["netns", "add", &namespace])?;
            ip(&["-n", &namespace, "link", "add", "bridge", "type", "bridge"])?;
            ip(&["-n", &namespace, "link", "set", "bridge", "up"])?;
            testbed.switch = Some(namespace);
        }
        testbed.plug(&mtu_bytes.to_string())?;
        Ok(testbed)
    }

    /// The hosts, in the order of their names.
    pub fn hosts(&self) -> &[TestHost] {
        &self.hosts
    }

    /// A script for the shell that takes the place of `ssh`: its first argument names a host, on
    /// which it runs what `runs` says for that host; `"$@"` stands for the other arguments. A host
    /// that is not there is status 9.
    pub fn remote_shell(&self, runs: impl Fn(&TestHost) -> String) -> String {
        let mut script = "#!/bin/sh\nhost=$1; shift\ncase $host in\n".to_owned();
        for host in &self.hosts {
            let (name, namespace, runs) = (&host.name, &host.namespace, runs(host));
            script += &format!("{name}) exec ip netns exec {namespace} {runs};;\n");
        }
        script + "esac\nexit 9\n"
    }

    /// Pulls the cable of this host (an index into [`Testbed::hosts`]): its network interface and
    /// addresses stay, and everything sent or meant for it is lost. Of two hosts the other one
    /// loses its interface meanwhile.
    ///
    /// # Errors
    ///
    /// [`TestbedError::Failed`].
    pub fn cut(&self, host: usize) -> Result<(), TestbedError> {
        self.set_far_end(host, "down")
    }

    /// Plugs the cable in again.
    ///
    /// # Errors
    ///
    /// [`TestbedError::Failed`].
    pub fn mend(&self, host: usize) -> Result<(), TestbedError> {
        self.set_far_end(host, "up")?;
        if self.switch.is_none() {
            // A network interface that is down forgets its address of IPv6.
            self.hosts[1 - host].take_addresses()?;
        }
        Ok(())
    }

    /// Has cables from now on whose frames carry so many bytes.
    ///
    /// # Errors
    ///
    /// [`TestbedError::OutOfBounds`] and [`TestbedError::Failed`].
    pub fn set_mtu_bytes(&self, mtu_bytes: u32) -> Result<(), TestbedError> {
        within_mtu(mtu_bytes)?;
        for host in &self.hosts {
            let mtu = mtu_bytes.to_string();
            ip(&["-n", &host.namespace, "link", "set", CABLE, "mtu", &mtu])?;
            if let Some(switch) = &self.switch {
                ip(&["-n", switch, "link", "set", &host.port(), "mtu", &mtu])?;
            }
        }
        Ok(())
    }

    /// Has the network carry less to and from that host (an index into [`Testbed::hosts`]) than its
    /// own end of the cable lets it believe: longer frames are lost without a word. There must be a
    /// switch.
    ///
    /// # Errors
    ///
    /// [`TestbedError::OutOfBounds`], also if there are only two hosts, and
    /// [`TestbedError::Failed`].
    pub fn narrow(&self, host: usize, mtu_bytes: u32) -> Result<(), TestbedError> {
        within_mtu(mtu_bytes)?;
        let Some(switch) = &self.switch else {
            return within("the number of hosts", self.hosts.len(), 3, HOSTS_MAX);
        };
        for host in &self.hosts {
            // Runs that are cut late pass whole.
            let namespace = &host.namespace;
            ip(&["-n", namespace, "link", "set", CABLE, "gso_max_segs", "1"])?;
        }
        let (port, mtu) = (self.hosts[host].port(), mtu_bytes.to_string());
        ip(&["-n", switch, "link", "set", &port, "mtu", &mtu])
    }

    /// The first thing done within the hosts: whether that can be done at all is known only by
    /// doing it.
    fn enter(&self) -> Result<(), TestbedError> {
        self.hosts.iter().try_for_each(|host| {
            ip(&["-n", &host.namespace, "link", "set", "lo", "up"]).map_err(|error| match error {
                TestbedError::Failed { arguments, said } => {
                    TestbedError::NotEntered { arguments, said }
                }
                other => other,
            })
        })
    }

    fn plug(&self, mtu_bytes: &str) -> Result<(), TestbedError> {
        match (&self.switch, &self.hosts[..]) {
            (None, [first, second]) => {
                let ends = [&first.namespace, CABLE, &second.namespace, CABLE];
                cable(ends, mtu_bytes)?;
            }
            (Some(switch), hosts) => {
                for host in hosts {
                    let port = &host.port();
                    cable([&host.namespace, CABLE, switch, port], mtu_bytes)?;
                    ip(&["-n", switch, "link", "set", port, "master", "bridge", "up"])?;
                }
            }
            (None, _) => unreachable!("more than two hosts have a switch"),
        }
        for host in &self.hosts {
            ip(&["-n", &host.namespace, "link", "set", CABLE, "up"])?;
            host.take_addresses()?;
        }
        Ok(())
    }

    /// What is at the other end of a host's cable.
    fn set_far_end(&self, host: usize, state: &str) -> Result<(), TestbedError> {
        match &self.switch {
            Some(switch) => {
                let port = self.hosts[host].port();
                ip(&["-n", switch, "link", "set", &port, state])
            }
            None => {
                let other = &self.hosts[1 - host].namespace;
                ip(&["-n", other, "link", "set", CABLE, state])
            }
        }
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let hosts = self.hosts.iter().map(|host| &host.namespace);
        for namespace in hosts.chain(&self.switch) {
            // Remaining processes are killed next time.
            let _ = ip(&["netns", "delete", namespace]);
        }
    }
}

impl TestHost {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address on the network of the testbed.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.number)
    }

    /// The same in IPv6.
    pub fn address_6(&self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, self.number.into())
    }

    /// What runs this program on this host, with the environment of the caller. The child that
    /// comes of it is the program itself.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.namespace])
            .arg(program);
        command
    }

    /// Does that on this host, in a thread of its own: sockets that it opens belong to the host,
    /// wherever they are used.
    ///
    /// # Errors
    ///
    /// If the thread cannot enter the namespace.
    ///
    /// # Panics
    ///
    /// If `act` does.
    pub fn within<R: Send>(&self, act: impl FnOnce() -> R + Send) -> std::io::Result<R> {
        let namespace = File::open(Path::new("/run/netns").join(&self.namespace))?;
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind)?;
                Ok(act())
            });
            match inside.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn take_addresses(&self) -> Result<(), TestbedError> {
        let addresses = [
            (format!("{}/24", self.address()), None),
            (format!("{}/64", self.address_6()), Some("nodad")),
        ];
        for (address, flag) in &addresses {
            let mut arguments = vec!["-n", &self.namespace, "address", "replace", address];
            arguments.extend(["dev", CABLE].into_iter().chain(*flag));
            ip(&arguments)?;
        }
        Ok(())
    }

    /// The end of its cable at the switch.
    fn port(&self) -> String {
        format!("port{}", self.number)
    }
}

/// `a`, `b` ... `z`, `ba`, `bb` ...
fn letters(number: usize) -> String {
    let mut rest = number - 1;
    let mut name = Vec::new();
    loop {
        name.insert(0, char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
        if rest == 0 {
            return name.into_iter().collect();
        }
    }
}

fn within(what: &'static str, value: usize, least: usize, most: usize) -> Result<(), TestbedError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(TestbedError::OutOfBounds {
        what,
        value: value as u64,
        least: least as u64,
        most: most as u64,
    })
}

fn within_mtu(mtu_bytes: u32) -> Result<(), TestbedError> {
    let (least, most) = (MTU_BYTES_MIN as usize, MTU_BYTES_MAX as usize);
    within("the MTU in bytes", mtu_bytes as usize, least, most)
}

/// A cable between two namespaces, and the names of its ends there.
fn cable(ends: [&str; 4], mtu_bytes: &str) -> Result<(), TestbedError> {
    let [from, from_end, to, to_end] = ends;
    ip(&[
        "-n", from, "link", "add", from_end, "mtu", mtu_bytes, "type", "veth", "peer", "name",
        to_end, "mtu", mtu_bytes, "netns", to,
    ])
}

/// Takes away the namespaces of processes that are no more.
fn sweep() -> Result<(), TestbedError> {
    for line in listed()?.lines() {
        let Some(name) = line.split_whitespace().next() else {
            continue;
        };
        let mut parts = name.split('-');
        if parts.next() != Some(PREFIX) {
            continue;
        }
        let pid = parts.next().and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Somebody else may sweep as well.
            let _ = ip(&["netns", "delete", name]);
        }
    }
    Ok(())
}

fn listed() -> Result<String, TestbedError> {
    let output = Command::new("ip")
        .args(["netns", "list"])
        .stdin(Stdio::null())
        .output()
        .map_err(TestbedError::NoCommand)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn ip(arguments: &[&str]) -> Result<(), TestbedError> {
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(TestbedError::NoCommand)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let arguments = arguments.join(" ");
    // What the kernel says to those who may not.
    let is_forbidden = ["not permitted", "denied", "Read-only"]
        .iter()
        .any(|word| said.contains(word));
    Err(if is_forbidden {
        TestbedError::NotPermitted { arguments, said }
    } else {
        TestbedError::Failed { arguments, said }
    })
}
