//! `hamlyn doctor`: what this machine allows, and what to change.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use hamlyn::host::process::Options;
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::{LogUse, ManagerOptions, Wait};
use rustix::process::Resource;
use rustix::thread::MembarrierQuery;
use serde::Serialize;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    /// Works, but could be better.
    Note,
    /// The interface does not work here.
    Bad,
}

#[derive(Serialize)]
struct Finding {
    subject: &'static str,
    verdict: Verdict,
    found: String,
    /// What to do about it; empty if nothing.
    advice: String,
}

fn finding(
    subject: &'static str,
    verdict: Verdict,
    found: impl Into<String>,
    advice: impl Into<String>,
) -> Finding {
    Finding {
        subject,
        verdict,
        found: found.into(),
        advice: advice.into(),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let findings = [
        interface(),
        processors(),
        descriptors(),
        memory_files(),
        barrier(),
        process_descriptors(),
        locked_memory(),
        huge_pages(),
        shared_huge_pages(),
        memory_nodes(),
        caches(),
        memory(),
        group_memory(),
        overflow_logs(),
        mappings(),
    ];
    let works = findings
        .iter()
        .all(|finding| finding.verdict != Verdict::Bad);
    if arguments.json {
        let object = serde_json::json!({ "ok": works, "findings": findings });
        println!("{}", serde_json::to_string_pretty(&object)?);
    } else {
        let mut table = hamlyn_cli::terminal::table(&["", "subject", "found", "advice"]);
        for finding in &findings {
            let mark = match finding.verdict {
                Verdict::Good => "good",
                Verdict::Note => "note",
                Verdict::Bad => "BAD",
            };
            table.add_row([mark, finding.subject, &finding.found, &finding.advice]);
        }
        println!("{table}");
    }
    Ok(if works {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Opens an interface and has it connect to itself: the whole of it, once.
fn interface() -> Finding {
    let opened = hamlyn::open_with(
        Options::default().in_namespace("doctor"),
        ManagerOptions::default(),
    );
    match opened {
        Ok(_) => finding("interface", Verdict::Good, "opens", ""),
        Err(error) => finding("interface", Verdict::Bad, error.to_string(), "see below"),
    }
}

fn processors() -> Finding {
    match std::thread::available_parallelism().map(usize::from) {
        Ok(1) => finding(
            "processors",
            Verdict::Note,
            "1",
            "blocking calls sleep at once, as there is nobody to poll beside",
        ),
        Ok(count) => finding("processors", Verdict::Good, count.to_string(), ""),
        Err(error) => finding("processors", Verdict::Note, error.to_string(), ""),
    }
}

fn descriptors() -> Finding {
    /// Descriptors that a link takes at most.
    const PER_LINK: u64 = 4;
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let now = limit.current.unwrap_or(u64::MAX);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let found = format!(
        "{now} open files, so about {} links; may be raised to {most}",
        now / PER_LINK
    );
    if now < 4096 {
        let advice = format!("for many peers: ulimit -n {}", most.min(65_536));
        finding("descriptors", Verdict::Note, found, advice)
    } else {
        finding("descriptors", Verdict::Good, found, "")
    }
}

fn memory_files() -> Finding {
    match hamlyn_ring::memfd::Memfd::create("hamlyn-doctor", 1 << 16, 1 << 16) {
        Ok(_) => finding(
            "sealed memory files",
            Verdict::Good,
            "memfd_create, seals, fallocate",
            "",
        ),
        Err(error) => finding(
            "sealed memory files",
            Verdict::Bad,
            error.to_string(),
            "the kernel or a seccomp filter forbids memfd_create: allow it",
        ),
    }
}

fn barrier() -> Finding {
    if rustix::thread::membarrier_query().contains(MembarrierQuery::GLOBAL_EXPEDITED) {
        finding("membarrier", Verdict::Good, "global expedited", "")
    } else {
        finding(
            "membarrier",
            Verdict::Note,
            "not available",
            "each message costs a fence: allow membarrier in the seccomp filter",
        )
    }
}

fn process_descriptors() -> Finding {
    let own = rustix::process::pidfd_open(
        rustix::process::getpid(),
        rustix::process::PidfdFlags::empty(),
    );
    match own {
        Ok(_) => finding("process descriptors", Verdict::Good, "pidfd_open", ""),
        Err(error) => finding(
            "process descriptors",
            Verdict::Note,
            error.to_string(),
            "a peer that forks without exec may die unnoticed: allow pidfd_open (Linux 5.3)",
        ),
    }
}

/// Memory of an area for which the effect of this machine's settings is looked at.
const AREA_BYTES: u64 = 4 << 20;

/// What the kernel says of the memory of this process, in bytes.
fn own_memory(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let kilobytes = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|figure| figure.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// Makes an area, and says how much of it counts as that.
fn got_of_an_area(name: &str) -> Result<u64, String> {
    let before = own_memory(name);
    let area = hamlyn_ring::area::Area::new(AREA_BYTES).map_err(|errno| errno.to_string())?;
    let after = own_memory(name);
    drop(area);
    Ok(after.saturating_sub(before))
}

fn locked_memory() -> Finding {
    let limit = match rustix::process::getrlimit(Resource::Memlock).current {
        None => "no limit".to_owned(),
        Some(bytes) => format!("limit {}", indicatif::HumanBytes(bytes)),
    };
    let subject = "locked memory";
    match got_of_an_area("Locked:") {
        Ok(locked) if locked >= AREA_BYTES => {
            let found = format!("{limit}; areas are locked");
            finding(subject, Verdict::Good, found, "")
        }
        Ok(_) => finding(
            subject,
            Verdict::Note,
            format!("{limit}; areas are not locked"),
            "areas are present when allocated; where there is swap they may be paged out: raise ulimit -l",
        ),
        Err(error) => finding(subject, Verdict::Note, error, "areas cannot be allocated"),
    }
}

fn huge_pages() -> Finding {
    let subject = "huge pages";
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let setting = std::fs::read_to_string(path).unwrap_or_else(|error| error.to_string());
    let setting = setting.trim();
    match got_of_an_area("AnonHugePages:") {
        Ok(huge) if huge > 0 => {
            let of = indicatif::HumanBytes(AREA_BYTES);
            let found = format!(
                "{setting}; {} of an area of {of}",
                indicatif::HumanBytes(huge)
            );
            finding(subject, Verdict::Good, found, "")
        }
        Ok(_) => finding(
            subject,
            Verdict::Note,
            format!("{setting}; none in an area"),
            format!("large areas are faster with: echo madvise > {path}"),
        ),
        Err(error) => finding(subject, Verdict::Note, error, "areas cannot be allocated"),
    }
}

/// Huge pages of memory that is shared: lent pages.
fn shared_huge_pages() -> Finding {
    let subject = "huge pages for grants";
    let path = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    match std::fs::read_to_string(path) {
        Ok(text) if text.contains("[never]") || text.contains("[deny]") => finding(
            subject,
            Verdict::Note,
            text.trim().to_owned(),
            format!("granted pages get them with: echo advise > {path} (effect: docs/tuning.md)"),
        ),
        Ok(text) => finding(subject, Verdict::Good, text.trim().to_owned(), ""),
        Err(error) => finding(subject, Verdict::Note, error.to_string(), ""),
    }
}

fn memory_nodes() -> Finding {
    let subject = "memory nodes";
    match std::fs::read_to_string("/sys/devices/system/node/online") {
        Ok(nodes) if nodes.trim() == "0" => finding(subject, Verdict::Good, "one", ""),
        Ok(nodes) => finding(
            subject,
            Verdict::Note,
            format!("nodes {}", nodes.trim()),
            "areas lie where the thread runs that allocates them: keep it where it receives",
        ),
        Err(_) => finding(subject, Verdict::Good, "the kernel knows of one", ""),
    }
}

fn caches() -> Finding {
    let caches = hamlyn_ring::caches::Caches::here();
    let size = |bytes: usize| indicatif::HumanBytes(bytes as u64);
    let found = format!(
        "{} for each processor, {} together: up to {} under way on a link",
        size(caches.private_bytes),
        size(caches.shared_bytes),
        size(Options::default().arena_bytes as usize),
    );
    finding("caches", Verdict::Good, found, "")
}

fn memory() -> Finding {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|figure| figure.parse::<u64>().ok());
    match kilobytes {
        Some(kilobytes) if kilobytes < 256 << 10 => finding(
            "memory",
            Verdict::Note,
            format!("{} available", indicatif::HumanBytes(kilobytes << 10)),
            "areas are reserved when opened; large ones may be refused",
        ),
        Some(kilobytes) => finding(
            "memory",
            Verdict::Good,
            format!("{} available", indicatif::HumanBytes(kilobytes << 10)),
            "",
        ),
        None => finding("memory", Verdict::Note, "not told by the kernel", ""),
    }
}

fn group_memory() -> Finding {
    let subject = "memory of the control group";
    match hamlyn_ring::memory_left::group_limit_bytes() {
        None => finding(subject, Verdict::Good, "no limit", ""),
        Some(bytes) => finding(
            subject,
            Verdict::Good,
            format!("limit {}", indicatif::HumanBytes(bytes)),
            "what this program sends to receivers that take nothing is charged to it, and what waits in its streams with `ahead`",
        ),
    }
}

/// The use of the log of a receiver that takes nothing.
fn log_use() -> Result<LogUse> {
    /// More than a ring has room for.
    const MESSAGES: u32 = 4 * 256;
    let options = || Options::default().in_namespace("doctor");
    let (mut receiving, mut sending) = (options(), options());
    receiving.buffer_bytes_per_peer = 1 << 20;
    sending.patience = Duration::ZERO;
    let there = hamlyn::open_with(receiving, ManagerOptions::default())?;
    let here = hamlyn::open_with(sending, ManagerOptions::default())?;
    let inbox = mailbox::Receiver::new(&there, MailboxOptions::default())?;
    let sender = mailbox::Sender::grow(&here, &inbox.ticket(), Wait::millis(1_000))?;
    for _ in 0..MESSAGES {
        if sender.send(&[0; 8], Wait::millis(100)).is_err() {
            break;
        }
    }
    let mut session = here.session();
    let link = session.peers().next().map(|(link, _)| link);
    let used = link.and_then(|link| session.log_use(link));
    used.context("its receiver lends none")
}

fn overflow_logs() -> Finding {
    let subject = "overflow logs";
    match log_use() {
        Ok(LogUse {
            spilled_bytes: 0, ..
        }) => finding(
            subject,
            Verdict::Note,
            "pages of a mapping cannot be reserved",
            "senders wait for a receiver that takes nothing: allow madvise(MADV_POPULATE_WRITE) (Linux 5.14)",
        ),
        Ok(used) => finding(
            subject,
            Verdict::Good,
            format!(
                "pages of a mapping can be reserved: {} for {} to a receiver that took nothing, of {} at most",
                used.most_pages,
                indicatif::HumanBytes(used.spilled_bytes),
                indicatif::HumanBytes(used.log_bytes),
            ),
            "",
        ),
        Err(error) => finding(subject, Verdict::Note, format!("{error:#}"), ""),
    }
}

fn mappings() -> Finding {
    /// The ring and the log of each direction, and the bits in which the peer is told of news.
    const PER_LINK: u64 = 5;
    let subject = "mappings";
    let path = "/proc/sys/vm/max_map_count";
    let most = std::fs::read_to_string(path).unwrap_or_default();
    match most.trim().parse::<u64>() {
        Ok(most) => {
            let found = format!(
                "{most} of a process, so about {} links with logs",
                most / PER_LINK
            );
            let (verdict, advice) = match most < 65_530 {
                true => (
                    Verdict::Note,
                    "for many peers: sysctl vm.max_map_count=65530",
                ),
                false => (Verdict::Good, ""),
            };
            finding(subject, verdict, found, advice)
        }
        Err(_) => finding(subject, Verdict::Note, "not told by the kernel", ""),
    }
}
