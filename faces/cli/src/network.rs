//! What commands that reach other hosts have in common: how they are told of them.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use hamlyn::host::network::hosts::{HostName, Hosts, address_of};
use hamlyn::host::network::{NetworkOptions, Security};
use hamlyn::host::process::NetworkUse;

/// Settings that are not given here come from the environment: HAMLYN_HOST, HAMLYN_HOSTS,
/// HAMLYN_LISTEN, HAMLYN_SECRET, HAMLYN_KEY and HAMLYN_KNOWN, HAMLYN_INSECURE.
#[derive(clap::Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArguments {
    /// What this host is called by the others.
    #[arg(long, value_name = "NAME")]
    host_name: Option<String>,
    /// Where another host is; may be repeated.
    #[arg(long = "host", value_name = "NAME=ADDRESS")]
    hosts: Vec<String>,
    /// A file that says where the others are: on each line a name and addresses.
    #[arg(long = "hosts", value_name = "FILE")]
    hosts_file: Option<PathBuf>,
    /// At which address of this host, and on which port, frames are taken.
    #[arg(long, value_name = "ADDRESS")]
    listen_at: Option<String>,
    /// The port of this host's name service.
    #[arg(long, value_name = "PORT")]
    name_service_port: Option<u16>,
    /// The file with the secret of the cluster.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["insecure", "key"])]
    secret: Option<PathBuf>,
    /// Instead: the file with this host's own key.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        requires = "known"
    )]
    key: Option<PathBuf>,
    /// And the file with the names and public keys of all hosts.
    #[arg(long, value_name = "FILE", requires = "key")]
    known: Option<PathBuf>,
    /// Neither authenticate nor encrypt: for a network that nobody else reaches.
    #[arg(long)]
    insecure: bool,
}

impl NetworkArguments {
    /// What is to be set.
    pub(crate) fn network(&self) -> Result<NetworkUse> {
        // No two of them are said at once: the command's syntax sees to that.
        let security = match (&self.secret, &self.key, &self.known) {
            (Some(file), ..) => Some(Security::Secret(file.clone())),
            (None, Some(own), Some(known)) => Some(Security::Keys {
                own: own.clone(),
                known: known.clone(),
            }),
            _ => self.insecure.then_some(Security::Insecure),
        };
        let mut options = match security {
            Some(security) => NetworkOptions::new(security),
            None => match NetworkOptions::from_environment()? {
                Some(options) => options,
                None if self.says_nothing() => return Ok(NetworkUse::Off),
                None => {
                    return Err(anyhow!(
                        "the network needs keys of hosts, or the secret of the cluster: --key FILE and --known FILE, or --secret FILE, or --insecure"
                    ));
                }
            },
        };
        if let Some(name) = &self.host_name {
            options.host = Some(HostName::new(name)?);
        }
        if let Some(file) = &self.hosts_file {
            options.hosts = Hosts::read(file)?;
        }
        for host in &self.hosts {
            let (name, address) = host
                .split_once('=')
                .context("a host is said as NAME=ADDRESS")?;
            let address = address_of(address)
                .with_context(|| format!("--host {host}: {address:?} is no address of a host"))?;
            options.hosts.insert(HostName::new(name)?, address)?;
        }
        if let Some(at) = &self.listen_at {
            let bare = |ip| SocketAddr::new(ip, 0);
            options.listen = at
                .parse()
                .or_else(|_| at.parse().map(bare))
                .with_context(|| format!("{at:?} is no address"))?;
        }
        if let Some(port) = self.name_service_port {
            options.name_service_port = port;
        }
        if options.security == Security::Insecure {
            // Diagnostics are off unless they are asked for; this is said to everybody.
            eprintln!(
                "hamlyn: the network is used without security: any host that reaches this one may do anything that is offered"
            );
        }
        Ok(NetworkUse::On(Box::new(options)))
    }

    fn says_nothing(&self) -> bool {
        self.host_name.is_none()
            && self.hosts.is_empty()
            && self.hosts_file.is_none()
            && self.listen_at.is_none()
            && self.name_service_port.is_none()
    }
}
