//! What can be set about the network, by a program or by its environment.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::NetworkError;
use super::hosts::{HostName, Hosts, NAME_SERVICE_PORT, own_address_of};

/// How hosts know each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Security {
    /// By a secret that all hosts of the cluster hold, in this file.
    Secret(PathBuf),
    /// By a key for each host: our own in the first file, those of the others, a name and a public
    /// key on each line, in the second.
    Keys {
        /// Our own key.
        own: PathBuf,
        /// The hosts that we know.
        known: PathBuf,
    },
    /// No security: any host on the network may do anything. For a network that no attacker
    /// reaches, as the paper assumes.
    Insecure,
}

/// How an interface uses the network.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NetworkOptions {
    /// What this host is called by the others. By default what the system says.
    pub host: Option<HostName>,
    /// At which address of this host frames are taken, and on which port; 0 for any. By default all
    /// addresses.
    pub listen: SocketAddr,
    /// The port of this host's name service. By default 7407.
    pub name_service_port: u16,
    /// Hosts whose addresses are known.
    pub hosts: Hosts,
    /// How hosts know each other.
    pub security: Security,
    /// Over how many paths (UDP sockets) packets are sent to each peer; 1 to 16. By default 1:
    /// several help where the network spreads them over several ways, and cost where it does not.
    pub paths: u8,
    /// How long a peer with which nothing is under way may be silent before it is asked whether it
    /// is there: after about 5 s without an answer it counts as gone. By default 2 s; zero: it is
    /// never asked, and its death is noticed when something is sent. At most a minute.
    pub silence: Duration,
    /// How long a peer may take nothing, though it answers, before it counts as unreachable. By
    /// default 60 s.
    pub no_progress: Duration,
}

/// Flows at most.
pub const PATHS_MAX: u8 = 16;
const PATHS: u8 = 1;
/// Longer silence than this is not waited for.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(2);
const NO_PROGRESS: Duration = Duration::from_secs(60);

const HOST: &str = "HAMLYN_HOST";
const HOSTS: &str = "HAMLYN_HOSTS";
const LISTEN: &str = "HAMLYN_LISTEN";
const SECRET: &str = "HAMLYN_SECRET";
const KEY: &str = "HAMLYN_KEY";
const KNOWN: &str = "HAMLYN_KNOWN";
const INSECURE: &str = "HAMLYN_INSECURE";

impl NetworkOptions {
    /// The defaults, with this security.
    pub fn new(security: Security) -> Self {
        Self {
            host: None,
            listen: SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
            name_service_port: NAME_SERVICE_PORT,
            hosts: Hosts::new(),
            security,
            paths: PATHS,
            silence: SILENCE,
            no_progress: NO_PROGRESS,
        }
    }

    /// What the environment says: nothing if it names neither a secret (`HAMLYN_SECRET`), keys
    /// (`HAMLYN_KEY` and `HAMLYN_KNOWN`), nor says that none are wanted (`HAMLYN_INSECURE=1`), for
    /// then the program stays on its host. Besides: `HAMLYN_HOST`, what this host is called;
    /// `HAMLYN_HOSTS`, a file that says where the others are; `HAMLYN_LISTEN`, an address and a
    /// port.
    pub fn from_environment() -> Result<Option<Self>, NetworkError> {
        Self::from_variables(|variable| std::env::var_os(variable).map(PathBuf::from))
    }

    fn from_variables(
        mut get: impl FnMut(&'static str) -> Option<PathBuf>,
    ) -> Result<Option<Self>, NetworkError> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let insecure = match get(INSECURE).map(text) {
            None => false,
            Some(value) => match value.as_str() {
                "1" => true,
                "0" | "" => false,
                _ => {
                    return Err(NetworkError::Variable {
                        variable: INSECURE,
                        value,
                        reason: "it must be 0 or 1",
                    });
                }
            },
        };
        for variable in [SECRET, KEY, KNOWN, HOSTS] {
            if get(variable).is_some_and(|path| path.as_os_str().is_empty()) {
                return Err(NetworkError::Variable {
                    variable,
                    value: String::new(),
                    reason: "it must name a file, or not be set",
                });
            }
        }
        let security = match (get(SECRET), get(KEY), get(KNOWN), insecure) {
            (Some(file), None, None, false) => Security::Secret(file),
            (None, Some(own), Some(known), false) => Security::Keys { own, known },
            (None, None, None, true) => Security::Insecure,
            (None, None, None, false) => {
                return match get(HOST).or_else(|| get(HOSTS)).or_else(|| get(LISTEN)) {
                    Some(_) => Err(NetworkError::NoSecret),
                    None => Ok(None),
                };
            }
            (_, _, _, _) => {
                return Err(NetworkError::Variable {
                    variable: SECRET,
                    value: String::new(),
                    reason: "one of a secret, a key with those that are known, and no security must be chosen",
                });
            }
        };
        let mut options = Self::new(security);
        if let Some(name) = get(HOST).map(text) {
            options.host = Some(HostName::new(&name)?);
        }
        if let Some(path) = get(HOSTS) {
            options.hosts = Hosts::read(&path)?;
        }
        if let Some(value) = get(LISTEN).map(text) {
            let listen = own_address_of(&value);
            options.listen = listen.map_err(|_| NetworkError::Variable {
                variable: LISTEN,
                value,
                reason: "it must be an address, perhaps with a port",
            })?;
        }
        Ok(Some(options))
    }
}

#[cfg(test)]
mod tests;
