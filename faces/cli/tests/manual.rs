//! `hamlyn completions` and `hamlyn manual`: what shells and `man` are given.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn hamlyn(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hamlyn"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The subcommands that the help shows.
fn subcommands() -> Vec<String> {
    let help = text(&hamlyn(&["--help"]).stdout);
    let list = help.split("Commands:\n").nth(1).expect("a list");
    list.lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn completions_of_each_shell_know_each_subcommand() {
    let subcommands = subcommands();
    assert!(subcommands.len() >= 10, "{subcommands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let output = hamlyn(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        let script = text(&output.stdout);
        for name in &subcommands {
            assert!(script.contains(name.as_str()), "{shell}: {name}");
        }
    }
}

/// What bash itself says of a line that was begun.
#[test]
fn bash_completes_a_subcommand() {
    let script = text(&hamlyn(&["completions", "bash"]).stdout);
    let asks = "COMP_WORDS=(hamlyn dem); COMP_CWORD=1; _hamlyn hamlyn dem hamlyn; echo \"${COMPREPLY[*]}\"";
    let bash = Command::new("bash")
        .args(["--norc", "-c", &format!("{script}\n{asks}")])
        .output();
    let Ok(output) = bash else {
        eprintln!("SKIPPED: no bash");
        return;
    };
    assert_eq!(text(&output.stdout), "demo\n", "{}", text(&output.stderr));
}

#[test]
fn each_subcommand_has_a_page() {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("manual-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let output = hamlyn(&["manual", directory.to_str().expect("a path of text")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = |name: &str| std::fs::read_to_string(directory.join(name)).expect(name);
    assert!(page("hamlyn.1").starts_with(".ie"), "{}", page("hamlyn.1"));
    for name in subcommands() {
        assert!(page(&format!("hamlyn-{name}.1")).contains("SYNOPSIS"));
    }
    // Of those that are not for people there is none.
    assert!(!directory.join("hamlyn-actor.1").exists());
    std::fs::remove_dir_all(&directory).expect("it can be removed");
}

#[test]
fn pages_do_not_make_a_directory() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manual-nowhere");
    let output = hamlyn(&["manual", directory.to_str().expect("a path of text")]);
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(
        said.contains("manual-nowhere") && said.contains("make the directory first"),
        "{said}"
    );
    assert!(!directory.exists());
}

/// Behind `head`, the command ends quietly.
#[test]
fn completions_that_nobody_reads_are_no_fault() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hamlyn"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stderr), "");
}
