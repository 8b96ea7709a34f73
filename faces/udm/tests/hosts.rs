//! Jobs with nodes on two hosts, in network namespaces.

mod support;

use std::process::Command;

use support::{Outcome, UDM, each_passed, on_two_hosts};

#[test]
fn a_job_may_have_nodes_on_two_hosts() {
    let Some(testbed) = hamlyn_testbed::Testbed::or_skip(2) else {
        return;
    };
    let run = on_two_hosts(&testbed, "udm");
    let job = |mut command: Command, program: &std::path::Path, procs, arguments: &[&str]| {
        let outcome = Outcome::of(command.arg(program).args(arguments));
        each_passed(&outcome, procs);
    };
    let sections = UDM.compile("sections.c", "gnu99", "two_hosts_sections");
    let regions = UDM.compile("regions.c", "gnu99", "two_hosts_regions");
    for procs in [2, 4] {
        job(run(procs), &sections, procs, &[]);
        job(run(procs), &regions, procs, &[&procs.to_string()]);
    }
    let messages = UDM.compile("messages.c", "gnu99", "two_hosts_messages");
    job(run(2), &messages, 2, &["2", "two hosts"]);
    let nodes = UDM.compile("nodes.c", "gnu99", "two_hosts_nodes");
    for what in ["lost", "barrier"] {
        job(run(2), &nodes, 2, &[what]);
    }
    // Between hosts a message is refused by name after another one was.
    job(run(2), &nodes, 2, &["refused", "far"]);
    let lost = UDM.compile("regions_lost.c", "gnu99", "two_hosts_lost");
    job(run(2), &lost, 2, &["lost"]);
}
