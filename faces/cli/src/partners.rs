//! With whom a command of two sides may meet: in which namespace, as which users, and over which
//! network.

use anyhow::Result;
use hamlyn::host::process::{Access, Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions};

use crate::network::NetworkArguments;

/// See the module.
#[derive(clap::Args)]
pub(crate) struct Partners {
    /// Receivers and senders of different namespaces do not see each other.
    #[arg(long, env = "HAMLYN_NAMESPACE")]
    namespace: Option<String>,
    /// Also allow this user at the other end (a number; may be repeated).
    #[arg(long = "user")]
    users: Vec<u32>,
    /// Allow every user of this machine at the other end.
    #[arg(long, conflicts_with = "users")]
    anyone: bool,
    #[command(flatten)]
    network: NetworkArguments,
}

impl Partners {
    /// An interface that may meet them, under that name if it is to be found.
    pub(crate) fn open(&self, name: Option<&str>) -> Result<Manager<ProcessHost>> {
        let mut options = Options::default();
        options.namespace.clone_from(&self.namespace);
        options.name = name.map(str::to_owned);
        options.network = self.network.network()?;
        options.access = self.access();
        Ok(hamlyn::open_with(options, ManagerOptions::default())?)
    }

    fn access(&self) -> Access {
        if self.anyone {
            return Access::Anyone;
        }
        if self.users.is_empty() {
            return Access::SameUser;
        }
        let mut users = self.users.clone();
        users.push(rustix::process::geteuid().as_raw());
        Access::Listed {
            users,
            groups: Vec::new(),
        }
    }
}
