//! The same programs under launchers of others: `mpirun` of Open MPI and `srun` of Slurm, where
//! they are. A machine without them skips these tests, and says so.

mod support;

use std::path::PathBuf;
use std::process::Command;

use support::{Outcome, UNBOUND, answer, compile, mpirun, nothing_is_left_in, open_mpi};

fn passed(outcome: &Outcome, procs: usize) {
    outcome.each_said(procs, |proc| format!("processor {proc} of {procs} passed"));
}

#[test]
fn mpirun_starts_a_job() {
    let Some(directory) = open_mpi("mpirun_starts_a_job") else {
        return;
    };
    let program = compile("everything.c", "c99", "mpirun_starts_a_job");
    for procs in [1, 2, 4, 8] {
        for placement in ["direct", "copied"] {
            let mut command = mpirun(procs, &directory);
            command.env("HAMLYN_PLACEMENT", placement);
            command.arg(&program).arg(procs.to_string());
            passed(&Outcome::of(&mut command), procs);
        }
    }
    nothing_is_left_in(directory);
}

#[test]
fn jobs_of_mpirun_beside_each_other_do_not_meet() {
    let Some(directory) = open_mpi("jobs_beside_each_other") else {
        return;
    };
    let program = compile("everything.c", "c99", "jobs_of_mpirun_beside");
    std::thread::scope(|scope| {
        for procs in [2, 2, 3] {
            let (program, directory) = (&program, &directory);
            scope.spawn(move || {
                let mut command = mpirun(procs, directory);
                passed(
                    &Outcome::of(command.arg(program).arg(procs.to_string())),
                    procs,
                );
            });
        }
    });
    nothing_is_left_in(directory);
}

#[test]
fn mpirun_ends_all_and_tells_the_first_that_failed() {
    let Some(directory) = open_mpi("mpirun_ends_all") else {
        return;
    };
    let program = compile("failures.c", "gnu99", "mpirun_ends_all");
    for (what, status) in [
        ("status", 7),
        ("fail", 1),
        ("kill", 137),
        ("segv", 139),
        ("null", 1),
    ] {
        let outcome = Outcome::of(mpirun(3, &directory).arg(&program).arg(what));
        assert_eq!(outcome.status, Some(status), "{what}: {}", outcome.errors);
    }
    // It has no failure of its own: the others tell.
    let outcome = Outcome::of(mpirun(3, &directory).arg(&program).arg("exit"));
    assert_eq!(outcome.status, Some(75), "{}", outcome.errors);
    let says = "processor 2 is gone (it has come to its end";
    assert!(outcome.errors.contains(says), "{}", outcome.errors);
    nothing_is_left_in(directory);
}

#[test]
fn a_job_of_mpirun_over_hosts_asks_for_their_names() {
    let Some(directory) = open_mpi("hosts_are_asked_for") else {
        return;
    };
    let program = compile("everything.c", "c99", "hosts_are_asked_for");
    let mut command = mpirun(2, &directory);
    // As if the other process were on another host.
    command.args(["sh", "-c"]);
    command.arg(format!(
        "OMPI_COMM_WORLD_LOCAL_SIZE=1 exec {} 2",
        program.display()
    ));
    let outcome = Outcome::of(&mut command);
    assert_eq!(outcome.status, Some(1), "{}", outcome.errors);
    assert!(
        outcome.errors.contains("HAMLYN_JOB_HOSTS"),
        "{}",
        outcome.errors
    );
    nothing_is_left_in(directory);
}

/// Two hosts that `mpirun` reaches by a remote shell: it is told the names of hosts, and we are
/// told where the processes are.
#[test]
fn mpirun_starts_a_job_over_two_hosts() {
    let Some(testbed) = hamlyn_testbed::Testbed::or_skip(2) else {
        return;
    };
    let Some(directory) = open_mpi("two_hosts_of_mpirun") else {
        return;
    };
    let program = compile("everything.c", "c99", "two_hosts_of_mpirun");
    let file = |name: &str| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (mut table, mut places, mut slots) = (String::new(), Vec::new(), Vec::new());
    for host in testbed.hosts() {
        table += &format!("{} {}\n", host.name(), host.address());
        places.push(format!("{}:2", host.name()));
        slots.push(host.name());
    }
    let runs =
        |host: &hamlyn_testbed::TestHost| format!("sh -c \"HAMLYN_HOST={} $*\"", host.name());
    let shell = testbed.remote_shell(runs);
    let (hosts, agent, secret) = (
        file("mpirun_hosts.table"),
        file("mpirun_hosts.sh"),
        file("mpirun_hosts.secret"),
    );
    std::fs::write(&hosts, table).unwrap();
    std::fs::write(&agent, shell).unwrap();
    let _ = std::fs::remove_file(&secret);
    let made = support::hamlyn(&["keygen", "secret"]).arg(&secret).status();
    assert!(made.unwrap().success());
    let places = places.join(",");
    // The launcher itself is on the first host.
    let mut command = testbed.hosts()[0].command("env");
    command.arg(format!("TMPDIR={}", directory.display()));
    command.args([
        "OMPI_ALLOW_RUN_AS_ROOT=1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    ]);
    command.arg(format!("HAMLYN_HOST={}", slots[0]));
    command.args(["mpirun", "-n", "4", "-H", &places, "--mca", "plm_rsh_agent"]);
    command.arg(format!("sh {}", agent.display()));
    command.args(["--mca", "oob_tcp_if_include", "eth0"]);
    command.args(UNBOUND);
    command.arg("-x").arg(format!("HAMLYN_JOB_HOSTS={places}"));
    command
        .arg("-x")
        .arg(format!("HAMLYN_HOSTS={}", hosts.display()));
    command
        .arg("-x")
        .arg(format!("HAMLYN_SECRET={}", secret.display()));
    passed(&Outcome::of(command.arg(&program).arg("4")), 4);
    nothing_is_left_in(directory);
}

#[test]
fn srun_starts_a_job() {
    let test = "srun_starts_a_job";
    let is_up = answer("scontrol", &["ping"]).is_some_and(|text| text.contains("UP"));
    let first = ["--immediate=10", "-n", "4"];
    if !is_up || answer("srun", &[&first[..], &["true"]].concat()).is_none() {
        eprintln!(
            "== no srun of Slurm that has 4 processors for us (Debian: slurm-wlm): {test} is skipped"
        );
        return;
    }
    let program = compile("everything.c", "c99", test);
    let mut command = Command::new("srun");
    passed(&Outcome::of(command.args(first).arg(&program).arg("4")), 4);
    let program = compile("failures.c", "gnu99", "srun_ends_all");
    for (what, says) in [("kill", "Killed"), ("status", "Exited with exit code 7")] {
        let mut command = Command::new("srun");
        let outcome = Outcome::of(command.args(first).arg(&program).arg(what));
        assert_ne!(outcome.status, Some(0), "{what}: {}", outcome.errors);
        assert!(outcome.errors.contains(says), "{what}: {}", outcome.errors);
        let says = "processor 3 is gone";
        assert!(outcome.errors.contains(says), "{what}: {}", outcome.errors);
    }
    // A script is no member of the job, though Slurm numbers it.
    let alone = Command::new(compile("everything.c", "c99", "in_a_script"))
        .arg("1")
        .env("SLURM_PROCID", "0")
        .env("SLURM_NTASKS", "4")
        .env("SLURM_JOB_ID", "1")
        .status();
    assert!(alone.unwrap().success());
}
