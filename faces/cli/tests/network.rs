//! How the command goes on the network, and what it says about it.

use std::process::{Command, Output, Stdio};

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
        "--door",
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
        said(&output).contains("needs the secret"),
        "{}",
        said(&output)
    );
    // Without a network there is nothing to be said.
    let output = sends_to_nobody(&[]);
    assert!(!said(&output).contains("security"), "{}", said(&output));
    assert!(said(&output).contains("nobody"), "{}", said(&output));
}
