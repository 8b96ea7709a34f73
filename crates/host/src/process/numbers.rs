//! Numbers of users and groups, as the namespace above this process's own has them.
//!
//! In a user namespace (a rootless container, say) the kernel gives users other numbers. Tickets,
//! credentials and access lists have to agree among programs inside and outside, so all of them
//! have the numbers of the namespace above. There a user of which this namespace knows nothing has
//! the number that the kernel gives such users.

use rustix::process::{getegid, geteuid};

/// A line of a map: first number here, first number above, how many.
type Range = [u32; 3];

/// The maps of this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    users: Vec<Range>,
    groups: Vec<Range>,
}

impl Numbers {
    /// As the kernel has them now. Without `/proc` the numbers are taken as they are.
    pub(crate) fn here() -> Self {
        let read = |path| parse(&std::fs::read_to_string(path).unwrap_or_default());
        Self {
            users: read("/proc/self/uid_map"),
            groups: read("/proc/self/gid_map"),
        }
    }

    pub(crate) fn user(&self, here: u32) -> u32 {
        above(&self.users, here)
    }

    pub(crate) fn group(&self, here: u32) -> u32 {
        above(&self.groups, here)
    }

    pub(crate) fn own_user(&self) -> u32 {
        self.user(geteuid().as_raw())
    }

    pub(crate) fn own_group(&self) -> u32 {
        self.group(getegid().as_raw())
    }
}

fn parse(map: &str) -> Vec<Range> {
    let range = |line: &str| {
        let mut numbers = line.split_whitespace().map(|word| word.parse().ok());
        Some([numbers.next()??, numbers.next()??, numbers.next()??])
    };
    map.lines().filter_map(range).collect()
}

fn above(map: &[Range], here: u32) -> u32 {
    map.iter()
        .find_map(|&[first, above, count]| {
            let at = here.checked_sub(first).filter(|at| *at < count)?;
            above.checked_add(at)
        })
        .unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_namespace_above() {
        let container =
            parse("         0       1001          1\n         1     100000      65536\n");
        assert_eq!(above(&container, 0), 1001);
        assert_eq!(above(&container, 1), 100_000);
        assert_eq!(above(&container, 65_536), 165_535);
        assert_eq!(above(&container, 65_537), 65_537, "of nobody known");
        let plain = parse("0 0 4294967295\n");
        assert_eq!((above(&plain, 7), above(&plain, u32::MAX)), (7, u32::MAX));
        assert_eq!(above(&parse("no map"), 7), 7);
    }
}
