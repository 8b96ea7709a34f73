//! The word of a launcher on a process: its number, of how many, in which job, and the hosts of
//! the others.
//!
//! `hamlyn run`, `mpirun` of Open MPI, `srun` of Slurm, and launchers that set the variables of
//! PMI are understood. A number of processes that does not belong to this process alone is refused
//! or not used: the script of an `sbatch` is no member of a job.

use crate::error::{Error, environment};
use crate::variables::{HOSTS, JOB, PROCS, PROCS_MAX, RANK};

/// Longest name of a job: the name of an interface has 64 bytes.
const NAME_BYTES_MAX: usize = 48;
/// Letters of a launcher's random number that go into the name of a job.
const UNIQUE_BYTES: usize = 16;
/// Nodes of a list of Slurm at most: a longer one than the processes of a job is not needed.
const NODES_MAX: usize = PROCS_MAX as usize;

/// Reads a variable of the environment.
pub(crate) type Get<'g> = &'g dyn Fn(&'static str) -> Option<String>;

/// The word of a launcher on this process.
pub(crate) struct Membership {
    pub(crate) job: String,
    pub(crate) proc: u32,
    pub(crate) procs: u32,
    /// True if the launcher is not `hamlyn run`, which tells causes from consequences.
    pub(crate) is_foreign: bool,
    /// The number of processes on this host, if the launcher says so.
    here: Option<u32>,
    /// The hosts of the processes, if the launcher says so.
    pub(crate) hosts: Option<Vec<(Option<String>, u32)>>,
}

/// The variables of a launcher.
struct Launcher {
    rank: &'static str,
    size: &'static str,
    /// The name of the job, of these that are set.
    job: &'static [&'static str],
    /// A random number of the job, for launchers whose names of jobs repeat.
    unique: Option<&'static str>,
    /// The number of processes of the job on this host.
    here: Option<&'static str>,
}

const OWN: Launcher = Launcher {
    rank: RANK,
    size: PROCS,
    job: &[JOB],
    unique: None,
    here: None,
};

const OPEN_MPI: Launcher = Launcher {
    rank: "OMPI_COMM_WORLD_RANK",
    size: "OMPI_COMM_WORLD_SIZE",
    job: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
    // Of the name's 32 bits, 16 are the same for all jobs of Open MPI 4.
    unique: Some("OMPI_MCA_orte_precondition_transports"),
    here: Some("OMPI_COMM_WORLD_LOCAL_SIZE"),
};

/// Of a step: the allocation around it has variables of the same kind, which scripts see that are
/// no processes of a job.
const SLURM: Launcher = Launcher {
    rank: "SLURM_PROCID",
    size: "SLURM_STEP_NUM_TASKS",
    job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    unique: None,
    here: None,
};

const PMI: Launcher = Launcher {
    rank: "PMI_RANK",
    size: "PMI_SIZE",
    job: &["PMI_JOBID"],
    unique: None,
    here: Some("MPI_LOCALNRANKS"),
};

impl Membership {
    pub(crate) fn find(get: Get<'_>) -> Result<Option<Self>, Error> {
        for launcher in [OWN, OPEN_MPI, SLURM, PMI] {
            let (rank, size) = (launcher.rank, launcher.size);
            let (Some(rank_value), Some(size_value)) = (get(rank), get(size)) else {
                if rank == RANK && (get(rank).is_some() || get(size).is_some()) {
                    let value = get(rank).or_else(|| get(size)).unwrap_or_default();
                    let reason = "HAMLYN_RANK and HAMLYN_PROCS are set together, by `hamlyn run`";
                    return Err(environment(rank, &value, reason));
                }
                continue;
            };
            let procs = size_value.parse().ok();
            let procs = procs.filter(|procs| (1..=PROCS_MAX).contains(procs));
            let procs = procs
                .ok_or_else(|| environment(size, &size_value, "a job has 1 to 65,536 processes"))?;
            let proc = rank_value.parse().ok().filter(|&proc: &u32| proc < procs);
            let proc = proc.ok_or_else(|| {
                environment(rank, &rank_value, "it is less than the number of processes")
            })?;
            let name = launcher.name_of_the_job(get);
            if name.is_empty() && procs > 1 && get(JOB).is_none() {
                let reason =
                    "the launcher names no job: set HAMLYN_JOB to the same name on all processes";
                return Err(environment(launcher.job[0], &name, reason));
            }
            let is_slurm = launcher.rank == SLURM.rank;
            let hosts = is_slurm.then(|| slurm_hosts(get, proc, procs)).flatten();
            let here = launcher.here.and_then(get);
            return Ok(Some(Self {
                job: if name.is_empty() {
                    "alone".to_owned()
                } else {
                    name
                },
                proc,
                procs,
                is_foreign: rank != RANK,
                here: match is_slurm {
                    true => slurm_here(get),
                    false => here.and_then(|here| here.parse().ok()),
                },
                hosts,
            }));
        }
        Ok(None)
    }

    /// Fails if other processes are on other hosts and nobody says where.
    pub(crate) fn expect_all_here(&self) -> Result<(), Error> {
        match self.here {
            Some(here) if here < self.procs => {
                let reason = format!(
                    "{here} of the {} processes are on this host, and the launcher does not say where the others are: \
                     set it for all of them to the hosts and how many processes each has, in the order of their numbers, \
                     such as `a:{here},b:{}`; HAMLYN_SECRET or HAMLYN_KEY say how the hosts trust each other",
                    self.procs,
                    self.procs - here
                );
                Err(environment(HOSTS, "", &reason))
            }
            _ => Ok(()),
        }
    }
}

impl Launcher {
    fn name_of_the_job(&self, get: Get<'_>) -> String {
        let parts: Vec<String> = match self.rank == OPEN_MPI.rank {
            // The second is the first in older versions.
            true => self
                .job
                .iter()
                .find_map(|name| get(name))
                .into_iter()
                .collect(),
            false => self.job.iter().filter_map(|name| get(name)).collect(),
        };
        let mut name = parts.join(".");
        if let Some(unique) = self.unique.and_then(get) {
            let unique = allowed_name(&unique);
            name.push('-');
            name.push_str(&unique[..unique.len().min(UNIQUE_BYTES)]);
        }
        allowed_name(&name)
    }
}

/// The name with what a name cannot have replaced, and not too long: the end of it differs between
/// jobs.
pub(crate) fn allowed_name(name: &str) -> String {
    let allowed = |letter: char| match letter {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '.' | '_' | '-' => letter,
        _ => '-',
    };
    let letters: Vec<char> = name.chars().map(allowed).collect();
    let start = letters.len().saturating_sub(NAME_BYTES_MAX);
    letters[start..].iter().collect()
}

pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if !name.is_empty() && allowed_name(name) == name {
        return Ok(());
    }
    let reason = "a job's name has 1 to 48 letters, digits, dots, underscores and hyphens";
    Err(environment(JOB, name, reason))
}

/// The number of processes of a step of Slurm that are on this host.
fn slurm_here(get: Get<'_>) -> Option<u32> {
    Some(get("SLURM_GTIDS")?.split(',').count() as u32)
}

/// The hosts of the processes of a step of Slurm, if they lie in blocks: its list of nodes beside
/// its list of counts.
fn slurm_hosts(get: Get<'_>, proc: u32, procs: u32) -> Option<Vec<(Option<String>, u32)>> {
    let nodes = expand_nodes(&get("SLURM_STEP_NODELIST")?)?;
    if nodes.len() < 2 {
        return None;
    }
    let counts = expand_counts(&get("SLURM_STEP_TASKS_PER_NODE")?)?;
    let own = get("SLURMD_NODENAME")?;
    if nodes.len() != counts.len() || counts.iter().sum::<u32>() != procs {
        return None;
    }
    let mut first = 0;
    for (node, count) in nodes.iter().zip(&counts) {
        let here: Vec<String> = (first..first + count)
            .map(|task| task.to_string())
            .collect();
        if *node == own && get("SLURM_GTIDS")? != here.join(",") {
            // Dealt out cyclically, or in some other way.
            return None;
        }
        if *node != own && (first..first + count).contains(&proc) {
            return None;
        }
        first += count;
    }
    Some(nodes.into_iter().map(Some).zip(counts).collect())
}

/// `a[1-3,07],b` is `a1 a2 a3 a07 b`.
fn expand_nodes(list: &str) -> Option<Vec<String>> {
    let mut nodes = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let end = match rest.find('[') {
            Some(bracket) if !rest[..bracket].contains(',') => {
                bracket + rest[bracket..].find(']')? + 1
            }
            _ => rest.find(',').unwrap_or(rest.len()),
        };
        let (item, after) = rest.split_at(end);
        rest = match after.strip_prefix(',') {
            Some(after) => after,
            None if after.is_empty() => after,
            // Names with two lists, or with something behind the list.
            None => return None,
        };
        match item.split_once('[') {
            None => nodes.push(item.to_owned()),
            Some((prefix, ranges)) => {
                for range in ranges.strip_suffix(']')?.split(',') {
                    let (low, high) = range.split_once('-').unwrap_or((range, range));
                    let (first, last): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
                    if last < first || last - first >= NODES_MAX {
                        return None;
                    }
                    let width = low.len();
                    nodes.extend((first..=last).map(|number| format!("{prefix}{number:0width$}")));
                }
            }
        }
        if nodes.len() > NODES_MAX {
            return None;
        }
    }
    Some(nodes)
}

/// `2(x3),1` is `2 2 2 1`.
fn expand_counts(list: &str) -> Option<Vec<u32>> {
    let mut counts = Vec::new();
    for item in list.split(',') {
        let (count, times) = match item.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (item, 1),
        };
        if times > NODES_MAX || counts.len() + times > NODES_MAX {
            return None;
        }
        counts.extend(std::iter::repeat_n(count.parse::<u32>().ok()?, times));
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_slurm_are_expanded() {
        let nodes = |list| expand_nodes(list).unwrap().join(" ");
        assert_eq!(nodes("vm"), "vm");
        assert_eq!(nodes("a[1-3,07],b,c[08-10]"), "a1 a2 a3 a07 b c08 c09 c10");
        for bad in [
            "a[1-",
            "a[3-1]",
            "a[1-99999999]",
            "a[1][2]",
            "a[x]",
            "a[1]-x",
        ] {
            assert_eq!(expand_nodes(bad), None, "{bad}");
        }
        assert_eq!(expand_counts("2(x3),1").unwrap(), [2, 2, 2, 1]);
        for bad in ["", "2(x", "2(x99999999)", "x", "2,(x3)"] {
            assert_eq!(expand_counts(bad), None, "{bad}");
        }
    }
}
