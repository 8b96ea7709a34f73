//! The memory that is left for this process: in its control group, in those above it, and in the
//! machine.
//!
//! A page beyond the limit of a group is no error: the kernel ends a process of the group. A program
//! that wants memory which it can do without must look first.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

/// Such a part of each limit is left for those who cannot do without.
const PART_LEFT: u64 = 16;

/// The folder in which the kernel shows control groups.
const GROUPS: &str = "/sys/fs/cgroup";
/// The first version of control groups says this, or a little more, of a group without a limit.
const NO_LIMIT: u64 = i64::MAX as u64 / 4096 * 4096;

/// Bytes that are read of a file: more than any of these has.
const FILE_BYTES_MAX: usize = 8192;
/// Bytes of a path; a longer one is not seen.
const PATH_BYTES_MAX: usize = 1024;

/// True if so many bytes more leave enough. Reads some small files. Does not allocate, as a sender
/// may do this in a signal handler.
pub(crate) fn leaves_enough(bytes: u64) -> bool {
    let meminfo = Text::of(c"/proc/meminfo");
    let meminfo = meminfo.as_ref().map_or("", Text::as_str);
    if !machine_has(meminfo, bytes) {
        return false;
    }
    let own_groups = own_groups();
    let own_groups = own_groups.as_ref().map_or("", Text::as_str);
    groups_have(Path::new(GROUPS), own_groups, bytes)
}

/// The least limit of memory of this process's control group and of those above it. Nothing if
/// there is none, or none that is seen from here. Reads some small files.
pub fn group_limit_bytes() -> Option<u64> {
    let own_groups = own_groups()?;
    let groups = groups_of(Path::new(GROUPS), own_groups.as_str());
    let limits = groups.filter_map(|group| group.version.limit(&group));
    limits.filter(|limit| *limit < NO_LIMIT).min()
}

fn own_groups() -> Option<Text> {
    Text::of(c"/proc/self/cgroup")
}

/// The beginning of a file.
struct Text {
    bytes: [u8; FILE_BYTES_MAX],
    length_bytes: usize,
}

impl Text {
    fn of(path: &CStr) -> Option<Self> {
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut text = Self {
            bytes: [0; FILE_BYTES_MAX],
            length_bytes: 0,
        };
        while let Some(rest) = text.bytes.get_mut(text.length_bytes..)
            && !rest.is_empty()
        {
            match read(&file, rest) {
                Ok(0) => break,
                Ok(count) => text.length_bytes += count,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        Some(text)
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length_bytes).unwrap_or(&[]);
        // As far as it is text: it may end in the middle of a character.
        match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let whole = bytes.get(..error.valid_up_to()).unwrap_or(&[]);
                std::str::from_utf8(whole).unwrap_or_default()
            }
        }
    }
}

/// True if that leaves enough of a limit.
const fn leaves(bytes: u64, limit: u64, used: u64) -> bool {
    used.saturating_add(bytes) <= limit - limit / PART_LEFT
}

/// The number after that word at the beginning of a line.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

fn machine_has(meminfo: &str, bytes: u64) -> bool {
    let kib = |word| number_after(meminfo, word).map(|kib| kib.saturating_mul(1024));
    match (kib("MemTotal:"), kib("MemAvailable:")) {
        (Some(total), Some(available)) => leaves(bytes, total, total.saturating_sub(available)),
        // Not told: as before there was this look.
        _ => true,
    }
}

/// A control group: its folder is the path of the group below that of its version.
struct Group<'a> {
    root: &'a Path,
    path: &'a Path,
    version: &'static Version,
}

/// The groups of `/proc/self/cgroup`, and those above them: each of its lines is a number,
/// controllers, and a group, which is a path below that of the controllers, or below one that is
/// not seen from here.
fn groups_of<'a>(root: &'a Path, own_groups: &'a str) -> impl Iterator<Item = Group<'a>> {
    own_groups.lines().flat_map(move |line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next(), parts.next());
        let group = group.unwrap_or_default().trim_start_matches('/');
        let version = match controllers {
            Some("") => Some(&SECOND),
            Some(names) if names.split(',').any(|name| name == "memory") => Some(&FIRST),
            _ => None,
        };
        let groups = Path::new(group).ancestors();
        groups.filter_map(move |path| {
            Some(Group {
                root,
                path,
                version: version?,
            })
        })
    })
}

fn groups_have(root: &Path, own_groups: &str, bytes: u64) -> bool {
    groups_of(root, own_groups).all(|group| group.version.has(&group, bytes))
}

/// The files of a group in which a version of control groups says what it may have and has.
struct Version {
    /// Its folder, if it has one.
    folder: &'static str,
    limits: &'static [&'static str],
    used: &'static str,
    /// Of what is used, that which the kernel can take back at once.
    spare: &'static str,
}

static FIRST: Version = Version {
    folder: "memory",
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    spare: "total_inactive_file ",
};

static SECOND: Version = Version {
    folder: "",
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    spare: "inactive_file ",
};

impl Version {
    fn limit(&self, group: &Group<'_>) -> Option<u64> {
        let limits = self.limits.iter();
        limits.filter_map(|file| group.number_in(file)).min()
    }

    /// True if so many bytes more leave enough. A group that is not seen from here has no limit that
    /// can be known.
    fn has(&self, group: &Group<'_>, bytes: u64) -> bool {
        let (Some(limit), Some(used)) = (self.limit(group), group.number_in(self.used)) else {
            return true;
        };
        let spare = || number_after(group.read("memory.stat")?.as_str(), self.spare);
        leaves(bytes, limit, used)
            || leaves(bytes, limit, used.saturating_sub(spare().unwrap_or(0)))
    }
}

impl Group<'_> {
    fn read(&self, file: &str) -> Option<Text> {
        let mut path = [0; PATH_BYTES_MAX];
        let mut end = 0;
        let folder = OsStr::new(self.version.folder);
        let parts = [self.root.as_os_str(), folder, self.path.as_os_str()];
        for part in parts.into_iter().chain([OsStr::new(file)]) {
            let part = part.as_bytes();
            path.get_mut(end..)?
                .get_mut(..part.len())?
                .copy_from_slice(part);
            end += part.len();
            *path.get_mut(end)? = b'/';
            end += usize::from(!part.is_empty());
        }
        // In the place of the last slash.
        *path.get_mut(end.checked_sub(1)?)? = 0;
        Text::of(CStr::from_bytes_until_nul(&path).ok()?)
    }

    fn number_in(&self, file: &str) -> Option<u64> {
        self.read(file)?.as_str().trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_machine_keeps_a_part() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:  100 kB\nMemAvailable:    4096 kB\n";
        assert!(machine_has(meminfo, 3 * MIB));
        assert!(!machine_has(meminfo, 3 * MIB + 1));
        assert!(machine_has("", u64::MAX));
    }

    /// Groups as the kernel shows them, in a directory.
    struct Groups(std::path::PathBuf);

    impl Groups {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let name = format!("hamlyn-groups-{name}-{}", std::process::id());
            let root = std::env::temp_dir().join(name);
            for (file, text) in files {
                let file = root.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Self(root)
        }

        fn have(&self, groups: &str, bytes: u64) -> bool {
            groups_have(&self.0, groups, bytes)
        }
    }

    impl Drop for Groups {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn groups_of_the_second_version_have_limits() {
        let groups = Groups::new(
            "second",
            &[
                ("a/memory.max", "max\n"),
                ("a/memory.high", "33554432\n"),
                ("a/memory.current", "20971520\n"),
                ("a/memory.stat", "anon 7\ninactive_file 4194304\n"),
                ("a/b/memory.max", "16777216\n"),
                ("a/b/memory.current", "8388608\n"),
            ],
        );
        assert!(
            groups.have("0::/a\n", 14 * MIB),
            "what the kernel takes back is no use"
        );
        assert!(!groups.have("0::/a\n", 14 * MIB + 1));
        assert!(groups.have("0::/a/b\n", 7 * MIB));
        assert!(
            !groups.have("0::/a/b\n", 7 * MIB + 1),
            "the group's own limit"
        );
        fs::write(groups.0.join("a/memory.current"), "31457280\n").unwrap();
        assert!(
            !groups.have("0::/a/b\n", 7 * MIB),
            "that of the group above"
        );
        // A container sees its own group as the root, and its path from outside.
        fs::write(groups.0.join("memory.max"), "1048576\n").unwrap();
        fs::write(groups.0.join("memory.current"), "1048576\n").unwrap();
        assert!(!groups.have("0::/other/host\n", 1));
        assert!(groups.have("7:cpu,cpuacct:/a\nnonsense\n\n", u64::MAX));
    }

    #[test]
    fn so_have_those_of_the_first() {
        let groups = Groups::new(
            "first",
            &[
                ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/memory.usage_in_bytes", "5000000000\n"),
                ("memory/a/memory.limit_in_bytes", "16777216\n"),
                ("memory/a/memory.usage_in_bytes", "16777216\n"),
                (
                    "memory/a/memory.stat",
                    "inactive_file 0\ntotal_inactive_file 8388608\n",
                ),
            ],
        );
        assert!(groups.have("5:hugetlb,memory:/a\n4:cpu:/x\n0::/\n", 7 * MIB));
        assert!(!groups.have("5:hugetlb,memory:/a\n4:cpu:/x\n0::/\n", 7 * MIB + 1));
        assert!(groups.have("5:memory:/\n0::/\n", u64::from(u32::MAX)));
    }
}
