//! Programs of User Direct Messaging in processes that `run --gang` stops and continues: messages
//! come to stopped processes, wait in their memory, and all of them arrive in order; and the live
//! experiment, `reproduce udm --live`.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn::{ManagerOptions, Wait};
use hamlyn_job::Job;
use hamlyn_udm::{Group, GroupOptions, Interrupt, Udm, UdmOptions};

const LONG: Wait = Wait::millis(60_000);
/// Stops of a process in a run.
const STOPS: u32 = 12;
/// Tells a process' own words from those of the harness of tests.
const WORD: &str = "child:";

const PID: u16 = 0;
const NUMBER: u16 = 1;
const DONE: u16 = 2;

/// The other node's words.
#[derive(Default)]
struct Heard {
    pid: u32,
    numbers: u32,
    sent: Option<u32>,
}

fn is_stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('T')
}

/// One of two nodes: numbers messages for the other until it was stopped often enough, and looks
/// before and after each of them if the other one is stopped.
#[test]
#[ignore = "a role of the other tests"]
fn child() {
    let job = Job::from_environment().unwrap();
    let mut host = job.host_options();
    // More than one message at a time finds no place in the ring.
    host.cells = 2;
    let manager = hamlyn::open_with(host, ManagerOptions::default()).unwrap();
    let group = Group::new(manager, GroupOptions::of_job(&job)).unwrap();
    let mut options = UdmOptions::default();
    (options.interrupt, options.wait) = (Interrupt::Polling, LONG);
    let mut udm = Udm::open(&group, "numbers", options, Heard::default(), LONG).unwrap();
    udm.on(PID, |arrival| {
        let mut call = arrival.extract();
        call.state().pid = call.word(0);
        call
    })
    .unwrap();
    udm.on(NUMBER, |arrival| {
        let mut call = arrival.extract();
        assert_eq!(call.word(0), call.state().numbers, "in order, and once");
        call.state().numbers += 1;
        call
    })
    .unwrap();
    udm.on(DONE, |arrival| {
        let mut call = arrival.extract();
        call.state().sent = Some(call.word(0));
        call
    })
    .unwrap();
    let goes_on = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGCONT, Arc::clone(&goes_on)).unwrap();
    let other = 1 - job.proc;
    udm.barrier(LONG).unwrap();
    udm.inject(other, PID, &[std::process::id()]).unwrap();
    while udm.state().pid == 0 {
        udm.serve(LONG).unwrap();
    }
    let pid = udm.state().pid;
    let (mut sent, mut to_stopped, mut stops) = (0, 0, 0);
    while stops < STOPS {
        let was_stopped = is_stopped(pid);
        udm.inject(other, NUMBER, &[sent]).unwrap();
        sent += 1;
        to_stopped += u32::from(was_stopped && is_stopped(pid));
        udm.poll(64).unwrap();
        stops += u32::from(goes_on.swap(false, Ordering::Relaxed));
    }
    udm.inject(other, DONE, &[sent]).unwrap();
    while udm.state().sent.is_none() {
        udm.serve(LONG).unwrap();
    }
    assert_eq!(udm.state().sent, Some(udm.state().numbers));
    let used = group.log_use(other).unwrap();
    udm.barrier(LONG).unwrap();
    assert!(udm.flush(LONG).unwrap());
    println!("{WORD}{sent} {to_stopped} {}", used.spilled_bytes);
}

fn lab(test: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamlyn-lab"));
    let namespace = format!("{test}-{}", std::process::id());
    command
        .env("HAMLYN_NAMESPACE", namespace)
        .stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeded(output: Output) -> String {
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    printed
}

/// The part of messages that both nodes sent to a stopped one, and the bytes that lay in logs.
fn run(gang: &str) -> (f64, u64) {
    let own = std::env::current_exe().unwrap();
    let output = lab("live-gang")
        .args(["run", "-n", "2", "--gang", gang])
        .arg(own)
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let printed = succeeded(output);
    let said = printed.lines();
    let said = said.filter_map(|line| Some(line.split_once(WORD)?.1));
    let numbers = said.map(|words| {
        let words = words.split(' ').map(|word| word.parse().unwrap());
        words.collect::<Vec<u64>>()
    });
    let all: Vec<Vec<u64>> = numbers.collect();
    assert_eq!(all.len(), 2, "{printed}");
    let sum = |at: usize| all.iter().map(|of| of[at]).sum::<u64>();
    (sum(1) as f64 / sum(0) as f64, sum(2))
}

/// Half of the time in which a node runs the other one is stopped, and messages for it go to its
/// log; in step hardly any are sent to a stopped one.
#[test]
fn messages_wait_for_processes_that_are_stopped() {
    let (out_of_step, logged_bytes) = run("50ms,skew=0.5,null");
    assert!(out_of_step > 0.0 && logged_bytes > 0);
    let (in_step, _) = run("50ms,null");
    assert!(in_step < out_of_step, "{in_step} and {out_of_step}");
}

/// Every program brings what it should, or the command fails; each figure is there, of a live run
/// by name, and drawn.
#[test]
fn the_experiment_is_carried_out() {
    let directory = std::env::temp_dir().join(format!("hamlyn-live-{}", std::process::id()));
    let output = lab("live-udm")
        .args(["reproduce", "udm", "--live", "--quick", "--procs", "2"])
        .args(["--json", "--plot"])
        .arg(&directory)
        .output()
        .unwrap();
    let live: serde_json::Value = serde_json::from_str(&succeeded(output)).unwrap();
    assert_eq!(live["figures_of"], "processes of this host");
    assert!(!live["processor"].as_str().unwrap().is_empty());
    assert_eq!(live["procs"], 2);
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let programs = live["programs"].as_array().unwrap();
    let names: Vec<_> = programs.iter().map(|of| of["program"].as_str()).collect();
    let expected = [
        "barrier",
        "enum",
        "LU",
        "Water",
        "Barnes",
        "synth-10",
        "synth-100",
        "synth-1000",
    ];
    assert_eq!(names, expected.map(Some));
    for of in programs {
        assert!(number(&of["messages"]) > 0.0 && number(&of["alone_ms"]) > 0.0);
        assert_eq!(of["by_skew"][0]["run_time_ratio"], 1.0);
        for (points, count) in [("by_skew", 2), ("few_cells", 2)] {
            let points = of[points].as_array().unwrap();
            assert_eq!(points.len(), count);
            for point in points {
                let part = number(&point["after_stop_percent"]);
                assert!((0.0..=100.0).contains(&part), "{point:#}");
                assert!(number(&point["run_time_ms"]) > 0.0, "{point:#}");
            }
        }
    }
    for run in live["runs"].as_array().unwrap() {
        let is_alone = run["skew_percent"].is_null();
        // Those that compute at the pace of turns take longer than one.
        let is_paced = !["LU", "Water", "Barnes"]
            .iter()
            .any(|name| run["program"] == *name);
        if is_alone || is_paced {
            assert_eq!(number(&run["stops"]) == 0.0, is_alone, "{run:#}");
        }
        assert_eq!(run["turns"].is_null(), is_alone, "{run:#}");
        assert!(!is_alone || number(&run["after_stop_percent"]) == 0.0);
        // Messages that nobody answers, to stopped nodes whose rings hold next to nothing.
        let is_late = run["skew_percent"] == 50.0;
        if run["program"] == "enum" && run["has_few_cells"] == true && is_late {
            assert!(number(&run["pages_most"]) > 0.0, "{run:#}");
        }
    }
    for figure in ["live-figure-7.svg", "live-figure-8.svg"] {
        let drawn = std::fs::read_to_string(directory.join(figure)).unwrap();
        assert!(drawn.contains("synth-1000"), "{figure}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn live_is_for_one_paper() {
    for other in ["hamlyn", "splitc", "am2", "beyond"] {
        let output = lab("live-other")
            .args(["reproduce", other, "--live"])
            .output();
        let output = output.unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(text(&output.stderr).contains("--live is for `udm`"));
    }
    let lonely = ["reproduce", "udm", "--live", "--procs", "1"];
    assert!(
        !lab("live-lonely")
            .args(lonely)
            .output()
            .unwrap()
            .status
            .success()
    );
}
