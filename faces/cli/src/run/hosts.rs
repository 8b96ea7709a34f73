//! The file that says where the processes of a job run: the table of hosts of the library, with the
//! number of processes that a host takes.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use hamlyn::host::network::hosts::{HostName, Hosts};

/// A host of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct JobHost {
    pub(super) name: String,
    pub(super) procs: u32,
}

/// The hosts of a job, and the table in the form of the library.
#[derive(Debug)]
pub(super) struct JobHosts {
    pub(super) hosts: Vec<JobHost>,
    pub(super) table: String,
}

impl JobHosts {
    pub(super) fn read(path: &Path, procs: u32) -> Result<Self> {
        let name = || path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", name()))?;
        Self::parse(&text, procs).with_context(|| format!("{}", name()))
    }

    fn parse(text: &str, procs: u32) -> Result<Self> {
        let mut table = String::new();
        let mut hosts = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let line = line.split('#').next().unwrap_or_default();
            let mut slots = None;
            let mut words = Vec::new();
            for word in line.split_whitespace() {
                match word.strip_prefix("slots=") {
                    Some(count) => {
                        let count = count.parse().ok().filter(|&count: &u32| count > 0);
                        slots = Some(count.with_context(|| {
                            format!("line {number}: {word} is no number of processes")
                        })?);
                    }
                    None => words.push(word),
                }
            }
            let Some(first) = words.first() else { continue };
            let name = HostName::new(first).with_context(|| format!("line {number}"))?;
            hosts.push((name.to_string(), slots));
            table.push_str(&words.join(" "));
            table.push('\n');
        }
        Hosts::parse(&table)?;
        ensure!(!hosts.is_empty(), "it names no host");
        Ok(Self {
            hosts: divide(hosts, procs)?,
            table,
        })
    }
}

/// Gives each host as many processes as it takes; those that do not say share what is left evenly.
fn divide(hosts: Vec<(String, Option<u32>)>, procs: u32) -> Result<Vec<JobHost>> {
    let open = hosts.iter().filter(|(_, slots)| slots.is_none()).count() as u32;
    let fixed: u64 = hosts
        .iter()
        .filter_map(|(_, slots)| *slots)
        .map(u64::from)
        .sum();
    if open == 0 && fixed < u64::from(procs) {
        bail!("its hosts take {fixed} processes, and the job has {procs}: raise slots=");
    }
    let mut left = procs;
    let mut shared = u64::from(procs).saturating_sub(fixed) as u32;
    let mut sharers = open;
    let mut divided = Vec::new();
    for (name, slots) in hosts {
        let count = match slots {
            Some(slots) => slots,
            None => {
                let count = shared.div_ceil(sharers);
                shared -= count;
                sharers -= 1;
                count
            }
        };
        let procs = count.min(left);
        left -= procs;
        if procs > 0 {
            divided.push(JobHost { name, procs });
        }
    }
    Ok(divided)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str, procs: u32) -> Vec<(String, u32)> {
        let hosts = JobHosts::parse(text, procs).unwrap().hosts;
        hosts
            .into_iter()
            .map(|host| (host.name, host.procs))
            .collect()
    }

    #[test]
    fn hosts_take_what_they_say_and_share_the_rest() {
        let text = "a 10.0.0.1 # the first\n\nb 10.0.0.2 slots=1\nc 10.0.0.3\n";
        let expected = [("a", 2), ("b", 1), ("c", 2)].map(|(name, procs)| (name.to_owned(), procs));
        assert_eq!(counts(text, 5), expected);
        assert_eq!(counts(text, 1), [("b".to_owned(), 1)]);
        let table = JobHosts::parse(text, 2).unwrap().table;
        assert_eq!(table, "a 10.0.0.1\nb 10.0.0.2\nc 10.0.0.3\n");
    }

    #[test]
    fn bad_tables_are_refused() {
        for text in [
            "",
            "a",
            "a nowhere",
            "a 10.0.0.1 slots=0",
            "a 10.0.0.1 slots=1",
            "a/b 10.0.0.1",
        ] {
            assert!(JobHosts::parse(text, 2).is_err(), "{text}");
        }
    }
}
