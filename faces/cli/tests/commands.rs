//! The command as people and programs use it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn hamlyn(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamlyn"));
    // So that tests that run at the same time do not meet.
    command
        .args(arguments)
        .env("HAMLYN_NAMESPACE", format!("cli-{}", std::process::id()));
    command
}

fn run(arguments: &[&str]) -> Output {
    hamlyn(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn demo_shows_that_all_of_it_holds() {
    let output = run(&["demo", "--megabytes", "16", "--json"]);
    let shown = json(&output);
    assert_eq!(shown["ok"], true, "{shown:#}");
    assert!(output.status.success());
    let steps = shown["steps"].as_array().expect("steps");
    // With the hosts, or with the reason why there are none.
    let skipped = steps.iter().filter(|step| step["skipped"] == true).count();
    if skipped > 0 {
        println!("SKIPPED: {}", steps[7]["outcome"]);
    }
    assert_eq!(steps.len(), if skipped > 0 { 8 } else { 12 }, "{shown:#}");
    assert!(skipped <= 1);
    let held = steps.iter().filter(|step| step["ok"] == true).count();
    assert_eq!(held + skipped, steps.len());
}

/// Bytes that are not the same everywhere.
fn some_bytes(length: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

fn piped(name: &str, bytes: Vec<u8>, sender_first: bool) {
    let start_receiver = || {
        hamlyn(&["pipe", "--listen", name])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the receiver starts")
    };
    let start_sender = || {
        let mut sender = hamlyn(&["pipe", name, "--wait", "60"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("the sender starts");
        let mut input = sender.stdin.take().expect("its input");
        let bytes = bytes.clone();
        (sender, std::thread::spawn(move || input.write_all(&bytes)))
    };
    let ((mut sender, feeder), receiver) = if sender_first {
        let sender = start_sender();
        (sender, start_receiver())
    } else {
        let receiver = start_receiver();
        (start_sender(), receiver)
    };
    let output = receiver.wait_with_output().expect("the receiver ends");
    feeder
        .join()
        .expect("the feeder ends")
        .expect("the sender takes its input");
    assert!(sender.wait().expect("the sender ends").success());
    assert!(output.status.success());
    assert!(
        output.stdout == bytes,
        "{} of {} bytes, or others",
        output.stdout.len(),
        bytes.len()
    );
}

#[test]
fn pipe_carries_every_byte() {
    piped("large", some_bytes(20 << 20), false);
}

#[test]
fn pipe_waits_for_its_receiver() {
    piped("late", some_bytes(100_000), true);
}

#[test]
fn pipe_carries_nothing_too() {
    piped("empty", Vec::new(), false);
}

#[test]
fn pipe_to_nobody_fails_and_says_so() {
    let output = run(&["pipe", "nobody", "--wait", "0"]);
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("nobody"),
        "{}",
        text(&output.stderr)
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn pipe_name_is_held_by_one() {
    let mut first = hamlyn(&["pipe", "--listen", "held"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the first starts");
    let mut second = hamlyn(&["pipe", "--listen", "held"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the second starts");
    // Whichever of the two came later ends at once.
    let refused = loop {
        if let Some(status) = first.try_wait().expect("asking") {
            std::mem::swap(&mut first, &mut second);
            break status;
        }
        if let Some(status) = second.try_wait().expect("asking") {
            break status;
        }
        std::thread::yield_now();
    };
    first.kill().expect("killing the receiver");
    first.wait().expect("it is gone");
    assert!(!refused.success());
}

#[test]
fn pipe_whose_receiver_is_killed_fails() {
    let mut receiver = hamlyn(&["pipe", "--listen", "doomed"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the receiver starts");
    let mut sender = hamlyn(&["pipe", "doomed", "--wait", "60"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the sender starts");
    let mut input = sender.stdin.take().expect("its input");
    // More than everything between the two can hold, as nobody reads the receiver's output.
    let feeder = std::thread::spawn(move || while input.write_all(&[1; 65536]).is_ok() {});
    let mut first = [0];
    std::io::Read::read_exact(&mut receiver.stdout.take().expect("its output"), &mut first)
        .expect("something arrives");
    receiver.kill().expect("killing the receiver");
    receiver.wait().expect("it is gone");
    let output = sender.wait_with_output().expect("the sender ends");
    feeder.join().expect("the feeder ends");
    assert!(!output.status.success());
    assert!(
        text(&output.stderr).contains("gone"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn doctor_finds_this_machine_fit() {
    let output = run(&["doctor", "--json"]);
    let found = json(&output);
    assert_eq!(found["ok"], true, "{found:#}");
    assert!(output.status.success());
    for finding in found["findings"].as_array().expect("findings") {
        assert!(!finding["found"].as_str().expect("text").is_empty());
    }
}

/// A benchmark measures two processors.
fn has_two_processors() -> bool {
    std::thread::available_parallelism().is_ok_and(|many| many.get() >= 2)
}

fn figure(value: &serde_json::Value, name: &str) -> f64 {
    value[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} in {value:#}"))
}

#[test]
fn bench_hears_every_message_of_many_senders() {
    if !has_two_processors() {
        return;
    }
    let output = run(&["bench", "--senders", "--quick", "--json"]);
    let measured = json(&output);
    assert!(output.status.success());
    let senders = measured["senders"].as_array().expect("by number");
    let numbers: Vec<f64> = senders.iter().map(|of| figure(of, "senders")).collect();
    assert_eq!(numbers, [1.0, 10.0, 100.0]);
    for of in senders {
        let share = figure(of, "slowest_over_mean");
        assert!((0.0..=1.0).contains(&share), "{of:#}");
        assert!(figure(of, "messages_per_s") > 0.0 && figure(of, "empty_poll_ns") > 0.0);
        assert!(figure(of, "one_busy_messages_per_s") > 0.0);
    }
}

#[test]
fn bench_of_more_senders_than_descriptors_says_what_to_do() {
    if !has_two_processors() {
        return;
    }
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 200 && exec \"$0\" bench --senders --quick"])
        .arg(env!("CARGO_BIN_EXE_hamlyn"))
        .output()
        .expect("the shell starts");
    assert!(!output.status.success() && output.stdout.is_empty());
    let error = text(&output.stderr);
    assert!(error.contains("ulimit"), "{error}");
    // A soft limit alone is raised.
    let output = Command::new("sh")
        .args([
            "-c",
            "ulimit -S -n 200 && exec \"$0\" bench --senders --quick --json",
        ])
        .arg(env!("CARGO_BIN_EXE_hamlyn"))
        .output()
        .expect("the shell starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn bench_serves_every_pair_when_there_are_more_processes_than_processors() {
    if !has_two_processors() {
        return;
    }
    let output = run(&["bench", "--oversubscribed", "--quick", "--json"]);
    let measured = json(&output);
    assert!(output.status.success());
    let crowd = &measured["oversubscribed"];
    assert_eq!(crowd["processes"], 8);
    for exchange in ["round_trips", "stream"] {
        assert!(figure(&crowd[exchange], "two_processes_per_s") > 0.0);
        for placing in ["placed", "free"] {
            let together = &crowd[exchange][placing];
            assert!(figure(together, "per_s") > 0.0);
            let share = figure(together, "slowest_over_mean");
            assert!(share > 0.0 && share <= 1.0, "{crowd:#}");
        }
    }
}

/// The measurement ends, and reports the effect of the stopped peer on the others.
#[test]
fn bench_beside_a_stopped_peer_ends() {
    if !has_two_processors() {
        return;
    }
    let output = run(&["bench", "--stopped-peer", "--quick", "--json"]);
    let measured = json(&output);
    assert!(output.status.success());
    let rows = measured["beside_a_stopped_peer"].as_array().expect("rows");
    let named = |row: &serde_json::Value| row["protocol"].as_str().map(str::to_owned);
    for protocol in ["tagged_write", "datagram", "stream"] {
        assert!(
            rows.iter()
                .any(|row| named(row).as_deref() == Some(protocol))
        );
    }
    for row in rows {
        assert!(figure(row, "alone_per_s") > 0.0, "{row:#}");
        assert!(figure(row, "ratio") >= 0.0, "{row:#}");
    }
}

#[test]
fn wrong_arguments_are_errors() {
    for arguments in [&["pipe"][..], &["fly"], &["demo", "--megabytes", "0"]] {
        let output = run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(
            !output.stderr.is_empty() && output.stdout.is_empty(),
            "{arguments:?}"
        );
    }
}

#[test]
fn the_papers_measurements_are_reproduced() {
    let directory = std::env::temp_dir().join(format!("hamlyn-plots-{}", std::process::id()));
    let place = directory.to_str().expect("a path of text");
    let output = run(&["reproduce", "hamlyn", "--json", "--plot", place]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = json(&output);
    let entries = report["entries"].as_array().expect("entries");
    let of = |id: &str| {
        entries
            .iter()
            .find(|entry| entry["id"] == id)
            .expect("an entry")
    };
    assert_eq!(of("H-294")["verdict"], "reached");
    assert_eq!(of("H-360")["verdict"], "cited");
    assert_eq!(of("H-294")["figures"][0]["origin"], "calibrated");
    assert_eq!(of("H-353")["figures"][0]["verdict"], "predicted-hit");
    let headline = |name: &str| report["headline"][name].as_u64().expect("a count");
    assert!(headline("calibrated") <= headline("independent"));
    assert!(headline("predicted_hit") > headline("predicted_missed"));
    assert!(headline("inputs") > 0);
    for figure in 7..=10 {
        let plot = std::fs::read_to_string(directory.join(format!("figure-{figure}.svg")));
        let plot = plot.expect("a plot");
        assert!(plot.starts_with("<svg") && plot.contains("polyline"));
    }
    std::fs::remove_dir_all(&directory).expect("the plots are ours to remove");

    let shown = text(&run(&["reproduce", "hamlyn"]).stdout);
    for word in [
        "Table 4",
        "H-001",
        "D-14",
        "cited, not measured",
        "within 5 %",
    ] {
        assert!(shown.contains(word), "{word}");
    }
    let output = run(&["reproduce", "first-look", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let reports = json(&output);
    let reports = reports.as_array().expect("a report for each machine");
    assert_eq!(reports.len(), 2);
    for report in reports {
        assert_eq!(report["headline"]["defects"], serde_json::json!([]));
    }
    let shown = text(&run(&["reproduce", "first-look"]).stdout);
    assert!(shown.contains("V-230") && shown.contains("predicted, hit"));
    assert!(!run(&["reproduce", "nobody"]).status.success());
    assert!(!run(&["reproduce", "hamlyn", "--quick"]).status.success());
}

#[test]
fn table_1_of_the_global_addresses_is_reproduced() {
    let directory = std::env::temp_dir().join(format!("hamlyn-splitc-{}", std::process::id()));
    let place = directory.to_str().expect("a path of text");
    let output = run(&["reproduce", "splitc", "--json", "--plot", place]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = json(&output);
    let median = report["headline"]["median_deviation_predicted"].as_f64();
    assert!(median.is_some_and(|percent| percent <= 15.0), "{median:?}");
    for (name, holds) in [
        ("splitc-bulk-store", "polyline"),
        ("splitc-polling-cs2", "polyline"),
        ("splitc-polling-paragon", "polyline"),
        ("splitc-programs-cs2", "wator"),
        ("splitc-programs-paragon", "wator"),
    ] {
        let drawn = std::fs::read_to_string(directory.join(format!("{name}.svg")));
        assert!(drawn.is_ok_and(|drawn| drawn.contains(holds)), "{name}");
    }
    std::fs::remove_dir_all(&directory).expect("the plots were there");
}

#[test]
fn what_lies_beyond_the_paper_is_measured() {
    let directory = std::env::temp_dir().join(format!("hamlyn-beyond-{}", std::process::id()));
    let place = directory.to_str().expect("a path of text");
    let output = run(&["reproduce", "beyond", "--quick", "--json", "--plot", place]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let beyond = json(&output);
    let gains = beyond["gains"].as_array().expect("gains");
    assert_eq!(gains.len(), 2 * 5);
    for plot in beyond["plots"].as_array().expect("plots") {
        let name = plot["name"].as_str().expect("a name");
        let drawn = std::fs::read_to_string(directory.join(format!("{name}.svg")));
        let drawn = drawn.expect("a plot");
        assert!(drawn.starts_with("<svg") && drawn.contains("polyline"));
    }
    std::fs::remove_dir_all(&directory).expect("the plots are ours to remove");

    let shown = text(&run(&["reproduce", "beyond", "--quick"]).stdout);
    for word in ["assumed", "Table 4", "bit reversal", "over receiver"] {
        assert!(shown.contains(word), "{word}");
    }
}

#[test]
fn scenarios_are_the_same_whenever_they_run_and_can_be_saved() {
    let scenarios = |threads: &str| {
        let mut found = json(&run(&[
            "simulate",
            "--seed",
            "40",
            "--scenarios",
            "12",
            "--threads",
            threads,
            "--json",
        ]));
        let figures = found.as_object_mut().expect("an object");
        figures.remove("seconds");
        figures.remove("events_per_s");
        figures.remove("messages_per_s");
        assert_eq!(figures["scenarios"], 12);
        assert_eq!(figures["failures"], serde_json::json!([]));
        found
    };
    assert_eq!(scenarios("1"), scenarios("3"));

    let plan = run(&["simulate", "--seed", "41", "--print"]);
    assert!(plan.status.success());
    let file = std::env::temp_dir().join(format!("hamlyn-plan-{}.toml", std::process::id()));
    std::fs::write(&file, &plan.stdout).unwrap();
    let path = file.to_str().unwrap();
    let saved = json(&run(&["simulate", "--plan", path, "--json"]));
    let seed = json(&run(&[
        "simulate",
        "--seed",
        "41",
        "--scenarios",
        "1",
        "--json",
    ]));
    assert_eq!(saved["events"], seed["events"]);
    assert_eq!(saved["messages"], seed["messages"]);
    std::fs::write(&file, "seed = 1\nparties = 3").unwrap();
    let broken = run(&["simulate", "--plan", path]);
    std::fs::remove_file(&file).unwrap();
    assert!(!broken.status.success());
    assert!(
        text(&broken.stderr).contains("no plan"),
        "{}",
        text(&broken.stderr)
    );
}

#[test]
fn a_scenario_that_fails_is_named_and_shown() {
    use hamlyn_sim::network::Impairment;
    use hamlyn_sim::scenario::Plan;
    let plans = (0..100).map(Plan::of_seed);
    let mut calm = plans.filter(|plan| plan.is_lossless() && plan.flows.len() > 2);
    let mut plan = calm.next().expect("most plans are");
    // Nothing ever comes.
    plan.network.push(Impairment::Lose {
        per_million: 2_000_000,
        run_frames: 1,
    });
    let file = std::env::temp_dir().join(format!("hamlyn-broken-{}.toml", std::process::id()));
    std::fs::write(&file, toml::to_string(&plan).expect("a plan is TOML")).unwrap();
    let path = file.to_str().unwrap();
    let simulate = |explained: &str| {
        let output = run(&[
            "simulate",
            "--plan",
            path,
            "--no-shrink",
            "--explained",
            explained,
            "--json",
        ]);
        assert_eq!(output.status.code(), Some(1));
        json(&output)["failures"][0].clone()
    };
    let (named, shown) = (simulate("0"), simulate("1"));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(named["seed"], plan.seed);
    assert_eq!(named["violations"], shown["violations"]);
    assert!(named["plan"].is_null(), "{named}");
    assert!(!named["violations"].as_array().expect("a list").is_empty());
    let again: Plan = toml::from_str(shown["plan"].as_str().expect("a text")).unwrap();
    assert_eq!(again, plan);
}

/// A pipe that nobody reads.
fn unread() -> std::io::PipeWriter {
    std::io::pipe().expect("a pipe").1
}

/// What a process ends with that wrote to such a pipe, as a shell says it: 128 and the number of SIGPIPE.
const NOBODY_READS: i32 = 141;

#[test]
fn commands_end_quietly_when_nobody_reads_what_they_print() {
    for arguments in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["trace", "--dissector"],
        &["simulate", "--scenarios", "1"],
        &["demo", "--megabytes", "1"],
    ] {
        let mut command = hamlyn(arguments);
        let output = command.stdin(Stdio::null()).stdout(unread()).output();
        let output = output.expect("the command starts");
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(NOBODY_READS), "{arguments:?}");
    }
}

#[test]
fn pipe_ends_quietly_when_nobody_reads_what_came() {
    let receiver = hamlyn(&["pipe", "--listen", "unread"])
        .stdin(Stdio::null())
        .stdout(unread())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the receiver starts");
    let mut sender = hamlyn(&["pipe", "unread", "--wait", "60"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the sender starts");
    let mut input = sender.stdin.take().expect("its input");
    // The sender may end before it has read all of it.
    let _ = input.write_all(&some_bytes(1 << 20));
    drop(input);
    let output = receiver.wait_with_output().expect("the receiver ends");
    sender.wait().expect("the sender ends");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(NOBODY_READS));
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = hamlyn(&["doctor"])
        .stdout(full.expect("a device without room"))
        .output()
        .expect("the command starts");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("hamlyn: writing standard output: "),
        "{said}"
    );
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}
