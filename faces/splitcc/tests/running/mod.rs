//! Compiles programs with `splitcc` and runs them with several processors.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The compiler under test.
pub(crate) fn splitcc() -> Command {
    Command::new(env!("CARGO_BIN_EXE_splitcc"))
}

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A name that no other test of this machine has at the moment.
fn unique() -> String {
    format!(
        "splitcc-test-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// A directory of a test, under a name of its own; it goes with what lies in it.
#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) struct Directory(pub(crate) PathBuf);

#[allow(dead_code, reason = "each test program uses a part of this module")]
impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("splitcc-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A compiled program; its file goes with it.
pub(crate) struct Program {
    path: PathBuf,
}

impl Program {
    /// Compiles and links.
    pub(crate) fn compile(sources: &[&Path], options: &[&str]) -> Result<Self, String> {
        let path = std::env::temp_dir().join(unique());
        let output = splitcc()
            .args(options)
            .args(sources)
            .arg("-o")
            .arg(&path)
            .output()
            .unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            Ok(Self { path })
        } else {
            Err(format!("it does not compile:\n{messages}"))
        }
    }

    /// The file.
    #[allow(dead_code, reason = "each test program uses a part of this module")]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The launcher beside the compiler, built now if nobody has built it.
#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) fn launcher() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_splitcc")).with_file_name("hamlyn");
    if !beside.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--locked", "--package", "hamlyn-cli"]);
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success(), "building hamlyn-cli");
    }
    beside
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Whether all processes ended well.
    pub success: bool,
    /// What all of them wrote.
    pub output: String,
    /// Their messages.
    #[allow(dead_code, reason = "it is shown when a test fails")]
    pub messages: String,
}

#[allow(dead_code, reason = "each test program uses a part of this module")]
/// Runs `program` with so many processors, as the launcher does: a process for each, described in
/// its environment.
pub(crate) fn run(program: &Program, procs: usize, arguments: &[&str]) -> Outcome {
    let job = unique();
    let children: Vec<Child> = (0..procs)
        .map(|rank| {
            Command::new(&program.path)
                .args(arguments)
                .env("HAMLYN_JOB", &job)
                .env("HAMLYN_RANK", rank.to_string())
                .env("HAMLYN_PROCS", procs.to_string())
                .env("HAMLYN_MEMORY", "256M")
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut outcome = Outcome {
        success: true,
        output: String::new(),
        messages: String::new(),
    };
    // What a process writes is less than a pipe holds; so one after the other may be waited for.
    for child in children {
        let output = child.wait_with_output().unwrap();
        outcome.success &= output.status.success();
        outcome
            .output
            .push_str(&String::from_utf8_lossy(&output.stdout));
        outcome
            .messages
            .push_str(&String::from_utf8_lossy(&output.stderr));
    }
    outcome
}

#[allow(dead_code, reason = "each test program uses a part of this module")]
/// Checks all files, on as many threads as there are processors, and says what is wrong with each.
pub(crate) fn in_parallel(files: &[PathBuf], check: impl Fn(&Path) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = check(file) {
                        wrong
                            .lock()
                            .unwrap()
                            .push(format!("{}: {error}", file.display()));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {} files:\n{}",
        wrong.len(),
        files.len(),
        wrong.join("\n")
    );
}
