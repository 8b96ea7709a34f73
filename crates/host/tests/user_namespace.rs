//! Programs of one user, some of which are in a user namespace of their own, as in a rootless
//! container. The kernel gives the user another number there. Needs `unshare` and the right to
//! make such namespaces; otherwise it is skipped aloud.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use hamlyn_host::process::{Access, Options};
use hamlyn_host::{Address, Connector, Destination, Host, Supply};
use support::{Owner, TIMEOUT_NS, after_ns, namespace};

const ROLE: &str = "HAMLYN_TEST_ROLE";
const NAMESPACE: &str = "HAMLYN_TEST_NAMESPACE";
/// Instead of root, whose number is the same in any namespace that root makes.
const USER: u32 = 12_345;

/// What the children do: the first one offers where it is, the second goes there.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let namespace = std::env::var(NAMESPACE).unwrap();
    let (role, access) = role.split_once(' ').unwrap();
    let mut options = Options::default().in_namespace(&namespace);
    options.access = match access {
        "anyone" => Access::Anyone,
        _ => Access::SameUser,
    };
    let said = match role {
        "stand" => {
            options.name = Some("stand".to_owned());
            let mut owner = Owner::open(options).unwrap();
            let Destination {
                interface, user, ..
            } = owner.identity();
            let ticket = format!("{interface} {user}");
            owner
                .offer("ticket", Supply::Always, ticket.as_bytes())
                .unwrap();
            println!("said:ready");
            // Until the test lets it go.
            let _ = std::io::stdin().read(&mut [0]);
            return;
        }
        _ => {
            let mut owner = Owner::open(options).unwrap();
            let deadline_ns = after_ns(&owner, TIMEOUT_NS);
            let ticket = owner.ask(Address::Name("stand"), "ticket", deadline_ns);
            let connected = ticket.and_then(|ticket| {
                let ticket = String::from_utf8(ticket).unwrap();
                let (interface, user) = ticket.split_once(' ').unwrap();
                let to = Destination {
                    node: 0,
                    interface: interface.parse().unwrap(),
                    user: user.parse().unwrap(),
                };
                let connector = owner.connector();
                connector.connect(Address::Destination(to), deadline_ns)
            });
            connected.map_or_else(|why| why.to_string(), |_| "connected".to_owned())
        }
    };
    println!("said:{said}");
}

/// A child as an ordinary user, perhaps in a user namespace of its own.
fn start(namespace: &str, is_inside: bool, role: &str) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = match is_inside {
        true => {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user"]).arg(program);
            command
        }
        false => Command::new(program),
    };
    if rustix::process::geteuid().is_root() {
        command.uid(USER).gid(USER);
    }
    let command = command
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(NAMESPACE, namespace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn says(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let mut words = lines.map_while(Result::ok).filter_map(|line| {
        let (_, word) = line.split_once("said:")?;
        Some(word.to_owned())
    });
    words.next().expect("a word")
}

/// Whether this user may have namespaces of its own.
fn is_allowed() -> bool {
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "true"])
        .stderr(Stdio::null());
    if rustix::process::geteuid().is_root() {
        command.uid(USER).gid(USER);
    }
    let is_allowed = command.status().is_ok_and(|status| status.success());
    if !is_allowed {
        // Not through the macros, whose output a test harness keeps to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED: no user namespaces here");
    }
    is_allowed
}

#[test]
fn programs_of_one_user_are_linked_whichever_namespace_they_are_in() {
    if !is_allowed() {
        return;
    }
    for access in ["user", "anyone"] {
        for (stands_inside, goes_inside) in [(true, false), (false, true), (true, true)] {
            let namespace = namespace();
            let mut stands = start(&namespace, stands_inside, &format!("stand {access}"));
            assert_eq!(says(&mut stands), "ready");
            let mut goes = start(&namespace, goes_inside, &format!("go {access}"));
            let said = says(&mut goes);
            drop(stands.stdin.take());
            stands.wait().unwrap();
            goes.wait().unwrap();
            assert_eq!(said, "connected", "{access} {stands_inside} {goes_inside}");
        }
    }
}
