//! The hosts of a soak and the processes on them: network namespaces joined by cables where they
//! can be made, and otherwise addresses of the loopback device, whose cables nobody can cut.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;

use anyhow::{Context, Result};
use hamlyn::host::network::ClusterSecret;
use hamlyn_testbed::Testbed;
use rustix::process::{Pid, Signal, kill_process};

use super::orders::{Life, Order, Report};

/// See the module.
pub(super) struct Cluster {
    testbed: Option<Testbed>,
    addresses: Vec<IpAddr>,
    directory: PathBuf,
    /// In the clear.
    is_insecure: bool,
}

/// What a process said, or that it says nothing any more.
pub(super) type Said = (Life, Option<Report>);

/// A process of the soak, killed when dropped.
pub(super) struct Process {
    child: Child,
    orders: Option<ChildStdin>,
}

impl Cluster {
    /// So many hosts. Says aloud what they are, if it is not what was wanted.
    pub(super) fn new(hosts: usize, is_loopback: bool, is_insecure: bool) -> Result<Self> {
        let testbed = if is_loopback {
            None
        } else {
            match Testbed::new(hosts) {
                Ok(testbed) => Some(testbed),
                Err(error) if error.is_want_of_rights() => {
                    eprintln!(
                        "hamlyn: {error}: the hosts are addresses of the loopback device, and no cable is cut"
                    );
                    None
                }
                Err(error) => return Err(error).context("making hosts"),
            }
        };
        let addresses: Vec<IpAddr> = match &testbed {
            Some(testbed) => {
                let hosts = testbed.hosts().iter();
                hosts.map(|host| host.address().into()).collect()
            }
            None => {
                // So that two soaks at a time hardly meet.
                let network = 127 << 24 | (std::process::id() % 0xff00 + 0x80) << 8;
                let hosts = 1..=hosts as u32;
                hosts
                    .map(|host| Ipv4Addr::from_bits(network | host).into())
                    .collect()
            }
        };
        let directory = std::env::temp_dir().join(format!("hamlyn-soak-{}", std::process::id()));
        std::fs::create_dir(&directory).context("making a directory for the secret")?;
        let cluster = Self {
            testbed,
            addresses,
            directory,
            is_insecure,
        };
        let table = cluster.addresses.iter().enumerate();
        let table: String = table
            .map(|(host, address)| format!("h{host} {address}\n"))
            .collect();
        std::fs::write(cluster.hosts_file(), table)?;
        let mut open = OpenOptions::new();
        open.write(true).create_new(true).mode(0o600);
        open.open(cluster.secret_file())?
            .write_all(ClusterSecret::generate()?.to_text().as_bytes())?;
        Ok(cluster)
    }

    fn hosts_file(&self) -> PathBuf {
        self.directory.join("hosts")
    }

    fn secret_file(&self) -> PathBuf {
        self.directory.join("secret")
    }

    /// Whether cables can be cut.
    pub(super) fn has_cables(&self) -> bool {
        self.testbed.is_some()
    }

    pub(super) fn cut(&self, host: usize) -> Result<()> {
        match &self.testbed {
            Some(testbed) => Ok(testbed.cut(host)?),
            None => Ok(()),
        }
    }

    pub(super) fn mend(&self, host: usize) -> Result<()> {
        match &self.testbed {
            Some(testbed) => Ok(testbed.mend(host)?),
            None => Ok(()),
        }
    }

    /// Starts a process; what it says goes to `say`.
    pub(super) fn start(&self, life: Life, strategy: &str, say: Sender<Said>) -> Result<Process> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut command = match &self.testbed {
            Some(testbed) => testbed.hosts()[life.host].command(&program),
            None => Command::new(&program),
        };
        for variable in ["SECRET", "KEY", "KNOWN", "INSECURE", "NAMESPACE"] {
            command.env_remove(format!("HAMLYN_{variable}"));
        }
        if self.is_insecure {
            command.env("HAMLYN_INSECURE", "1");
        } else {
            command.env("HAMLYN_SECRET", self.secret_file());
        }
        let mut child = command
            .args(["actor", "soak"])
            .env("HAMLYN_HOST", format!("h{}", life.host))
            .env("HAMLYN_HOSTS", self.hosts_file())
            .env("HAMLYN_LISTEN", self.addresses[life.host].to_string())
            .env("HAMLYN_NAMESPACE", format!("soak-{}", std::process::id()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a process")?;
        let orders = child.stdin.take();
        let answers = child.stdout.take().context("no standard output")?;
        std::thread::spawn(move || {
            for line in BufReader::new(answers).lines() {
                // A killed process may have been about to say something.
                let Some(report) = line.ok().and_then(|line| serde_json::from_str(&line).ok())
                else {
                    break;
                };
                if say.send((life, Some(report))).is_err() {
                    return;
                }
            }
            // If nobody listens any more, nobody needs to know.
            let _ = say.send((life, None));
        });
        let mut process = Process { child, orders };
        process.order(&Order::Begin {
            life,
            hosts: self.addresses.len(),
            strategy: strategy.to_owned(),
        })?;
        Ok(process)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Process {
    pub(super) fn order(&mut self, order: &Order) -> Result<()> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        let orders = self.orders.as_mut().context("it takes no more orders")?;
        orders.write_all(line.as_bytes())?;
        Ok(orders.flush()?)
    }

    /// As `kill -9`.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops it where it is, or lets it go on.
    pub(super) fn hold(&self, is_held: bool) -> Result<()> {
        let signal = if is_held { Signal::STOP } else { Signal::CONT };
        let process = Pid::from_raw(self.child.id() as i32).context("no process")?;
        Ok(kill_process(process, signal)?)
    }

    /// Whether it has ended, and well.
    pub(super) fn has_ended(&mut self) -> Result<Option<bool>> {
        Ok(self.child.try_wait()?.map(|status| status.success()))
    }

    /// Resident memory in bytes, and open descriptors. Nothing if it is gone.
    pub(super) fn holds(&self) -> Option<(u64, usize)> {
        let place = Path::new("/proc").join(self.child.id().to_string());
        let status = std::fs::read_to_string(place.join("status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        let descriptors = std::fs::read_dir(place.join("fd")).ok()?.count();
        Some((kib << 10, descriptors))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
