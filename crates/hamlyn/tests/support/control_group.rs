//! Control groups of the kernel: limits of memory, and processes that are frozen as a whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The folder of a controller's groups: of the first version of them, or the second.
fn root(controller: &str) -> Result<PathBuf, String> {
    let first = PathBuf::from("/sys/fs/cgroup").join(controller);
    if first.join("cgroup.procs").exists() {
        return Ok(first);
    }
    let second = Path::new("/sys/fs/cgroup");
    let enabled = fs::read_to_string(second.join("cgroup.subtree_control"));
    // Each group of the second version may be frozen.
    match enabled {
        Ok(enabled) if controller == "freezer" || enabled.contains(controller) => Ok(second.into()),
        Ok(_) => Err(format!("the controller {controller} is not enabled")),
        Err(error) => Err(format!("/sys/fs/cgroup: {error}")),
    }
}

/// A group, deleted when dropped; its processes are to have ended by then.
pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// A new group, or says why there is none and nothing is shown.
    pub(crate) fn or_skip(controller: &str) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("hamlyn-test-{}-{number}", std::process::id());
        let made = root(controller).and_then(|root| {
            let group = root.join(name);
            match fs::create_dir(&group) {
                Ok(()) => Ok(Self(group)),
                Err(error) => Err(format!("{}: {error}", group.display())),
            }
        });
        made.inspect_err(|why| eprintln!("SKIPPED: no control group can be made: {why}"))
            .ok()
    }

    pub(crate) fn add(&self, process: u32) {
        fs::write(self.0.join("cgroup.procs"), process.to_string()).unwrap();
    }

    fn is_first_version(&self) -> bool {
        !self.0.join("cgroup.events").exists()
    }

    /// The memory that its processes may take, file pages and those of this kind included.
    pub(crate) fn limit_memory(&self, bytes: u64) {
        let file = match self.is_first_version() {
            true => "memory.limit_in_bytes",
            false => "memory.max",
        };
        fs::write(self.0.join(file), bytes.to_string()).unwrap();
    }

    /// Freezes its processes, or lets them go on. All of them have stopped when this returns.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let (file, word) = match (self.is_first_version(), is_frozen) {
            (true, true) => ("freezer.state", "FROZEN"),
            (true, false) => ("freezer.state", "THAWED"),
            (false, true) => ("cgroup.freeze", "1"),
            (false, false) => ("cgroup.freeze", "0"),
        };
        fs::write(self.0.join(file), word).unwrap();
        let is_done = || match self.is_first_version() {
            true => fs::read_to_string(self.0.join(file)).unwrap().trim() == word,
            false => fs::read_to_string(self.0.join("cgroup.events"))
                .unwrap()
                .contains(&format!("frozen {word}")),
        };
        while !is_done() {
            std::thread::yield_now();
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
