//! Hosts that reach each other, and only each other.

use hamlyn_testbed::{TestHost, Testbed, TestbedError};
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const PORT: u16 = 7;
const ROLE: &str = "HAMLYN_TESTBED_TEST_CHILD";

/// A process of a host that listens, and says what it is told to.
struct Resident {
    child: Child,
    orders: ChildStdin,
    heard: Lines<BufReader<ChildStdout>>,
}

impl Resident {
    fn of(host: &TestHost, own: IpAddr) -> Self {
        let mut command = host.command(std::env::current_exe().unwrap());
        Self::run(command.env(ROLE, SocketAddr::from((own, PORT)).to_string()))
    }

    fn run(command: &mut Command) -> Self {
        let mut child = command
            .args(["--exact", "child", "--ignored", "--nocapture", "-q"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let heard = BufReader::new(child.stdout.take().unwrap()).lines();
        let orders = child.stdin.take().unwrap();
        let mut resident = Self {
            child,
            orders,
            heard,
        };
        assert_eq!(resident.next(), "listening");
        resident
    }

    fn say(&mut self, to: IpAddr, word: &str) {
        writeln!(self.orders, "{} {word}", SocketAddr::from((to, PORT))).unwrap();
    }

    /// Comes back when all that was ordered before is done.
    fn echo(&mut self, word: &str) {
        writeln!(self.orders, "- {word}").unwrap();
    }

    /// What it says next of its own accord, not the test harness.
    fn next(&mut self) -> String {
        for line in &mut self.heard {
            if let Some((_, said)) = line.unwrap().split_once("> ") {
                return said.to_owned();
            }
        }
        panic!("the resident is gone");
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "the other half of the tests"]
fn child() {
    let Ok(own) = std::env::var(ROLE) else {
        return;
    };
    let socket = UdpSocket::bind(own).unwrap();
    let ear = socket.try_clone().unwrap();
    println!("\n> listening");
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok(length) = ear.recv(&mut bytes) {
            println!("\n> {}", String::from_utf8_lossy(&bytes[..length]));
        }
    });
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (to, word) = line.split_once(' ').unwrap();
        if to == "-" {
            println!("\n> {word}");
            continue;
        }
        // A host whose cable is cut may be told so.
        let _ = socket.send_to(word.as_bytes(), to);
    }
}

/// Says words until one is heard; some may be lost on the way while addresses are looked for.
fn reaches(from: &mut Resident, to: &mut Resident, address: IpAddr, word: &str) {
    std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel();
        scope.spawn(move || {
            while stopped.try_recv().is_err() {
                from.say(address, word);
                std::thread::yield_now();
            }
        });
        while to.next() != word {}
        stop.send(()).unwrap();
    });
}

fn visit(hosts: usize, own: impl Fn(&TestHost) -> IpAddr) {
    let Some(testbed) = Testbed::or_skip(hosts) else {
        return;
    };
    let hosts = testbed.hosts();
    let mut residents: Vec<_> = hosts
        .iter()
        .map(|host| Resident::of(host, own(host)))
        .collect();
    for from in 0..hosts.len() {
        let to = (from + 1) % hosts.len();
        let [from, to_resident] = residents.get_disjoint_mut([from, to]).unwrap();
        reaches(from, to_resident, own(&hosts[to]), "there");
    }
}

#[test]
fn two_hosts_reach_each_other() {
    visit(2, |host| host.address().into());
    visit(2, |host| host.address_6().into());
}

#[test]
fn five_hosts_reach_each_other_over_a_switch() {
    visit(5, |host| host.address().into());
    visit(5, |host| host.address_6().into());
}

#[test]
fn a_cable_is_cut_and_mended() {
    for hosts in [2, 3] {
        cut(hosts, |host| host.address().into());
        cut(hosts, |host| host.address_6().into());
    }
}

fn cut(hosts: usize, own: impl Fn(&TestHost) -> IpAddr) {
    let Some(testbed) = Testbed::or_skip(hosts) else {
        return;
    };
    let [from, to, ..] = testbed.hosts() else {
        panic!("{testbed:?}");
    };
    let address = own(to);
    let mut speaker = Resident::of(from, own(from));
    let mut listener = Resident::of(to, address);
    reaches(&mut speaker, &mut listener, address, "before");
    testbed.cut(1).unwrap();
    // The order comes back after what was said before it.
    speaker.say(address, "meanwhile");
    speaker.echo("said");
    while speaker.next() != "said" {}
    testbed.mend(1).unwrap();
    std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel();
        scope.spawn(move || {
            while stopped.try_recv().is_err() {
                speaker.say(address, "after");
                std::thread::yield_now();
            }
        });
        loop {
            match &listener.next()[..] {
                "after" => break,
                word => assert_eq!(word, "before"),
            }
        }
        stop.send(()).unwrap();
    });
}

#[test]
fn what_is_taken_away_is_gone() {
    let Some(testbed) = Testbed::or_skip(3) else {
        return;
    };
    let mark = format!("hamlyn-{}-", std::process::id());
    let is_there = |namespace: &str| std::path::Path::new("/run/netns").join(namespace).exists();
    let words = format!("{testbed:?}");
    let names: Vec<&str> = words
        .split('"')
        .filter(|word| word.starts_with(&mark))
        .collect();
    assert_eq!(names.len(), 4, "{words}");
    assert!(names.iter().all(|name| is_there(name)));
    drop(testbed);
    assert!(!names.iter().any(|name| is_there(name)));
}

#[test]
fn bounds_are_kept() {
    for hosts in [0, 1, hamlyn_testbed::HOSTS_MAX + 1] {
        let refused = Testbed::new(hosts);
        assert!(matches!(refused, Err(TestbedError::OutOfBounds { .. })));
    }
    let refused = Testbed::with_names(&["a", "b"], 1_279);
    assert!(matches!(refused, Err(TestbedError::OutOfBounds { .. })));
}

/// An `ip` as it is where namespaces can be made and not entered: in a chroot.
const IP_OF_A_CHROOT: &str = "#!/bin/sh
if [ \"$1\" = netns ] && [ \"$2\" != exec ]; then exit 0; fi
echo 'mount --make-rslave / failed: Invalid argument' >&2
exit 255
";

#[test]
#[ignore = "the other half of a test"]
fn child_in_a_chroot() {
    if std::env::var_os(ROLE).is_some() {
        println!("\n> {:?}", Testbed::or_skip(2).map(|_| ()));
    }
}

#[test]
fn hosts_that_cannot_be_entered_are_skipped_aloud() {
    use std::os::unix::fs::PermissionsExt;
    let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("chroot");
    std::fs::create_dir_all(&place).unwrap();
    let ip = place.join("ip");
    std::fs::write(&ip, IP_OF_A_CHROOT).unwrap();
    std::fs::set_permissions(&ip, PermissionsExt::from_mode(0o755)).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_in_a_chroot", "--ignored", "--nocapture"])
        .env("PATH", format!("{}:/usr/bin:/bin", place.display()))
        .env(ROLE, "skips")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("> None"), "{output:?}");
    let aloud = String::from_utf8_lossy(&output.stderr);
    assert!(aloud.contains("SKIPPED: network namespaces"), "{aloud}");
}
