//! The `hamlyn-lab` command: what its parts print, and that they end.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn hamlyn(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hamlyn-lab"));
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
    let output = run(&["bench", "--senders", "--trial", "--json"]);
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
        .args(["-c", "ulimit -n 200 && exec \"$0\" bench --senders --trial"])
        .arg(env!("CARGO_BIN_EXE_hamlyn-lab"))
        .output()
        .expect("the shell starts");
    assert!(!output.status.success() && output.stdout.is_empty());
    let error = text(&output.stderr);
    assert!(error.contains("ulimit"), "{error}");
    // A soft limit alone is raised.
    let output = Command::new("sh")
        .args([
            "-c",
            "ulimit -S -n 200 && exec \"$0\" bench --senders --trial --json",
        ])
        .arg(env!("CARGO_BIN_EXE_hamlyn-lab"))
        .output()
        .expect("the shell starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn bench_serves_every_pair_when_there_are_more_processes_than_processors() {
    if !has_two_processors() {
        return;
    }
    let output = run(&["bench", "--oversubscribed", "--trial", "--json"]);
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
    let output = run(&["bench", "--stopped-peer", "--trial", "--json"]);
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

/// The tables of a command, and the object that it saves beside them, in one run.
fn shown_and_saved(arguments: &[&str], directory: &Path) -> (String, serde_json::Value) {
    std::fs::create_dir_all(directory).expect("a directory of ours");
    let file = directory.join("report.json");
    let [plots, place] = [directory, &file].map(|path| path.to_str().expect("a path of text"));
    let output = run(&[arguments, &["--save", place, "--plot", plots]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let saved = std::fs::read(file).expect("a report");
    let saved = serde_json::from_slice(&saved).expect("an object");
    (text(&output.stdout), saved)
}

#[test]
fn the_papers_measurements_are_reproduced() {
    let directory = std::env::temp_dir().join(format!("hamlyn-plots-{}", std::process::id()));
    let (shown, report) = shown_and_saved(&["reproduce", "hamlyn"], &directory);
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

    for word in [
        "Table 4",
        "H-001",
        "D-14",
        "cited, not measured",
        "within 5 %",
    ] {
        assert!(shown.contains(word), "{word}");
    }
    assert!(!run(&["reproduce", "nobody"]).status.success());
    assert!(!run(&["reproduce", "hamlyn", "--quick"]).status.success());
}

#[test]
fn table_1_of_the_global_addresses_is_reproduced() {
    let directory = std::env::temp_dir().join(format!("hamlyn-splitc-{}", std::process::id()));
    let place = directory.to_str().expect("a path of text");
    let output = run(&["reproduce", "splitc", "--quick", "--json", "--plot", place]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = json(&output);
    let median = report["headline"]["median_deviation_predicted"].as_f64();
    assert!(median.is_some_and(|percent| percent <= 15.0), "{median:?}");
    for (name, holds) in [
        ("splitc-bulk-store", "polyline"),
        ("splitc-polling-cs2", "polyline"),
        ("splitc-polling-paragon", "polyline"),
        ("splitc-programs-cs2", "cannon"),
        ("splitc-programs-paragon", "cannon"),
    ] {
        let drawn = std::fs::read_to_string(directory.join(format!("{name}.svg")));
        let drawn = drawn.expect("a plot");
        assert!(drawn.contains(holds), "{name}");
        // Quick is without the programs of many messages.
        assert!(!drawn.contains("wator"), "{name}");
    }
    std::fs::remove_dir_all(&directory).expect("the plots were there");
}

#[test]
fn what_lies_beyond_the_paper_is_measured() {
    let directory = std::env::temp_dir().join(format!("hamlyn-beyond-{}", std::process::id()));
    let (shown, beyond) = shown_and_saved(&["reproduce", "beyond", "--quick"], &directory);
    let gains = beyond["gains"].as_array().expect("gains");
    assert_eq!(gains.len(), 2 * 5);
    for plot in beyond["plots"].as_array().expect("plots") {
        let name = plot["name"].as_str().expect("a name");
        let drawn = std::fs::read_to_string(directory.join(format!("{name}.svg")));
        let drawn = drawn.expect("a plot");
        assert!(drawn.starts_with("<svg") && drawn.contains("polyline"));
    }
    std::fs::remove_dir_all(&directory).expect("the plots are ours to remove");

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

#[test]
fn a_hunt_ends_quietly_when_nobody_reads_what_it_prints() {
    let unread = std::io::pipe().expect("a pipe").1;
    let output = hamlyn(&["simulate", "--scenarios", "1"])
        .stdin(Stdio::null())
        .stdout(unread)
        .output()
        .expect("the command starts");
    assert_eq!(text(&output.stderr), "");
    // As a shell says of SIGPIPE: 128 and its number.
    assert_eq!(output.status.code(), Some(141));
}
