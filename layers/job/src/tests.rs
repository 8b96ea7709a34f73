use crate::error::Error;
use crate::job::*;

fn job(variables: &[(&str, &str)]) -> Result<Job, Error> {
    let get = |name: &'static str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    Job::from_variables(&get, 77)
}

#[test]
fn a_program_that_is_started_alone_is_a_job_of_one() {
    let job = job(&[]).unwrap();
    assert_eq!((job.proc, job.procs), (0, 1));
    assert!(!job.is_started_by_launcher);
    assert_eq!(job.name, "alone-77");
}

#[test]
fn launchers_are_understood() {
    let ours = [
        ("HAMLYN_RANK", "2"),
        ("HAMLYN_PROCS", "3"),
        ("HAMLYN_JOB", "j"),
    ];
    let mpi = [
        ("OMPI_COMM_WORLD_RANK", "2"),
        ("OMPI_COMM_WORLD_SIZE", "3"),
        ("PMIX_NAMESPACE", "prterun-host-1234@1"),
    ];
    let slurm = [
        ("SLURM_PROCID", "2"),
        ("SLURM_STEP_NUM_TASKS", "3"),
        ("SLURM_JOB_ID", "9"),
        ("SLURM_STEP_ID", "0"),
    ];
    let names = [&ours[..], &mpi, &slurm].map(|variables| {
        let job = job(variables).unwrap();
        assert_eq!((job.proc, job.procs), (2, 3));
        assert!(job.is_started_by_launcher);
        job.name
    });
    assert_eq!(names, ["j", "prterun-host-1234-1", "9.0"]);
}

#[test]
fn jobs_of_one_name_are_told_apart() {
    // Open MPI 4 names its jobs by 16 bits that differ.
    let mpi = |unique| {
        job(&[
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("PMIX_NAMESPACE", "81395713"),
            ("OMPI_MCA_orte_precondition_transports", unique),
        ])
        .unwrap()
        .name
    };
    assert_eq!(
        mpi("0949b608986c18b6-8ede17dcc417556e"),
        "81395713-0949b608986c18b6"
    );
    assert_ne!(mpi("1949b608986c18b6"), mpi("0949b608986c18b6"));
}

#[test]
fn a_script_of_slurm_is_no_member_of_a_job() {
    let script = job(&[
        ("SLURM_PROCID", "0"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_JOB_ID", "9"),
    ]);
    assert_eq!(script.unwrap().procs, 1);
}

#[test]
fn hosts_of_slurm_are_those_of_the_job() {
    let step = [
        ("SLURM_PROCID", "2"),
        ("SLURM_STEP_NUM_TASKS", "3"),
        ("SLURM_JOB_ID", "9"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NODELIST", "n[1-2]"),
        ("SLURM_STEP_TASKS_PER_NODE", "2,1"),
        ("SLURMD_NODENAME", "n2"),
        ("SLURM_GTIDS", "2"),
    ];
    let found = job(&step).unwrap();
    assert_eq!(found.interface_address(1), "n1/job.9.0.1");
    assert!(found.is_near(2) && !found.is_near(1));
    // Dealt out cyclically: nobody says which is where.
    let mut cyclic = step;
    cyclic[7].1 = "1";
    let error = job(&cyclic).unwrap_err().to_string();
    assert!(error.contains("HAMLYN_JOB_HOSTS"), "{error}");
    let told = [&cyclic[..], &[("HAMLYN_JOB_HOSTS", "n1:1,n2:1,n1:1")]].concat();
    assert_eq!(job(&told).unwrap().host_of(2), Some("n1"));
}

#[test]
fn a_job_over_hosts_that_nobody_names_is_refused() {
    let mpi = [
        ("OMPI_COMM_WORLD_RANK", "0"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ("PMIX_NAMESPACE", "j"),
    ];
    let error = job(&mpi).unwrap_err().to_string();
    assert!(error.contains("HAMLYN_JOB_HOSTS"), "{error}");
    assert!(error.contains("a:2,b:2"), "{error}");
    let told = [&mpi[..], &[("HAMLYN_JOB_HOSTS", "a:2,b:2")]].concat();
    assert_eq!(job(&told).unwrap().procs, 4);
}

#[test]
fn what_cannot_be_is_named() {
    for (variable, value) in [
        ("HAMLYN_RANK", "3"),
        ("HAMLYN_RANK", "x"),
        ("HAMLYN_PROCS", "0"),
        ("HAMLYN_PROCS", "65537"),
        ("HAMLYN_JOB", "a/b"),
        ("HAMLYN_STRATEGY", "fast"),
        ("HAMLYN_PLACEMENT", "near"),
        ("HAMLYN_MEMORY", "1K"),
        ("HAMLYN_MEMORY", "9E"),
        ("HAMLYN_JOB_HOSTS", "a:1"),
        ("HAMLYN_JOB_HOSTS", "a"),
        ("HAMLYN_BARRIER_TIMEOUT", "-1"),
        ("HAMLYN_START_TIMEOUT", "soon"),
    ] {
        let mut variables = vec![(variable, value)];
        variables.extend([
            ("HAMLYN_RANK", "2"),
            ("HAMLYN_PROCS", "3"),
            ("HAMLYN_JOB", "j"),
        ]);
        let error = job(&variables).unwrap_err().to_string();
        assert!(
            error.contains(variable) || error.contains("HAMLYN_RANK"),
            "{error}"
        );
    }
    let half = job(&[("HAMLYN_RANK", "0")]).unwrap_err().to_string();
    assert!(half.contains("HAMLYN_PROCS"), "{half}");
}

#[test]
fn processes_lie_on_hosts_in_turn() {
    let job = job(&[
        ("HAMLYN_RANK", "2"),
        ("HAMLYN_PROCS", "5"),
        ("HAMLYN_JOB", "j"),
        ("HAMLYN_JOB_HOSTS", "a:2,b:3"),
        ("HAMLYN_BARRIER_TIMEOUT", "0"),
        ("HAMLYN_MEMORY", "64M"),
    ])
    .unwrap();
    assert_eq!(job.interface_address(1), "a/job.j.1");
    assert_eq!(job.interface_address(4), "job.j.4");
    assert!(job.is_near(2) && !job.is_near(0));
    assert_eq!(job.barrier_timeout, None);
    assert_eq!(job.memory_bytes, 64 << 20);
}
