//! `hamlyn keygen`: what it makes is what the network reads.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hamlyn::host::network::{ClusterSecret, HostKey, PublicKey};

/// A directory of a test's own.
struct Room(PathBuf);

impl Room {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("keygen-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // It is left if it cannot be removed; nobody reads it again.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn keygen(what: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hamlyn"))
        .arg("keygen")
        .args(what)
        .arg(file)
        .env_remove("HAMLYN_HOST")
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn mode(file: &Path) -> u32 {
    let metadata = fs::metadata(file).expect("the file");
    metadata.permissions().mode() & 0o777
}

#[test]
fn a_secret_is_made_for_its_owner_and_no_two_are_alike() {
    let room = Room::new("secret");
    let secrets = ["one", "other"].map(|name| {
        let file = room.file(name);
        let output = keygen(&["secret"], &file);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(mode(&file), 0o600);
        let secret = ClusterSecret::read(&file).expect("the network reads it");
        // Nothing of it is printed.
        assert!(output.stdout.is_empty());
        assert!(!text(&output.stderr).contains(secret.to_text().as_str()));
        secret.to_text()
    });
    assert_ne!(secrets[0], secrets[1]);
}

#[test]
fn a_host_key_is_made_and_its_public_line_printed() {
    let room = Room::new("host");
    let file = room.file("key");
    let output = keygen(&["host", "--name", "Zeus"], &file);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(mode(&file), 0o600);
    let key = HostKey::read(&file).expect("the network reads it");
    let line = text(&output.stdout);
    assert_eq!(line, format!("zeus {}\n", key.public()));
    assert!(PublicKey::parse(line.split_whitespace().nth(1).unwrap()).is_ok());
    let private = key.to_text();
    assert!(!line.contains(private.as_str()) && !text(&output.stderr).contains(private.as_str()));
}

/// The name that the host has for the network is that of its key.
#[test]
fn a_host_key_has_the_name_of_the_environment() {
    let room = Room::new("environment");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamlyn"));
    let file = room.file("key");
    command
        .args(["keygen", "host"])
        .arg(&file)
        .env("HAMLYN_HOST", "Hera");
    let output = command.output().expect("the command starts");
    let line = text(&output.stdout);
    assert!(line.starts_with("hera "), "{line}");
}

#[test]
fn nothing_is_overwritten_and_no_link_followed() {
    let room = Room::new("keep");
    let kept = room.file("kept");
    fs::write(&kept, "mine").expect("written");
    let dangling = room.file("dangling");
    std::os::unix::fs::symlink(room.file("nowhere"), &dangling).expect("a link");
    for what in ["secret", "host"] {
        for file in [&kept, &dangling] {
            let output = keygen(&[what], file);
            assert!(!output.status.success(), "{what} {}", file.display());
            assert!(text(&output.stderr).contains("not overwritten"));
            assert!(output.stdout.is_empty());
        }
    }
    assert_eq!(fs::read_to_string(&kept).expect("readable"), "mine");
    assert!(!room.file("nowhere").exists());
}

#[test]
fn a_name_that_no_host_can_have_makes_no_file() {
    let room = Room::new("name");
    let file = room.file("key");
    let output = keygen(&["host", "--name", "not a name"], &file);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("not a name"));
    assert!(!file.exists());
    // Nor one where there is no place for it.
    let output = keygen(&["secret"], &room.file("nowhere/key"));
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("nowhere"));
}
