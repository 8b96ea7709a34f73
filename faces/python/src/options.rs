//! What a manager is opened with, as a program says it: by keywords, each of which is checked for what it must be.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use hamlyn::host::network::hosts::{HostName, Hosts, address_of};
use hamlyn::host::network::{NetworkOptions, Security};
use hamlyn::host::process::{Access, NetworkUse};
use hamlyn::host::{HostError, network::NetworkError};
use hamlyn::{ManagerOptions, Strategy};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::error::Failure;
use crate::number;
use crate::waiting::type_name;

fn refused(error: NetworkError) -> PyErr {
    Failure::from(HostError::from(error)).into()
}

/// How a manager is on the network: what the environment says otherwise (HAMLYN_SECRET and so on). One of `secret`, a file that all hosts
/// of the cluster hold, `key` with `known`, files of our key and of those of others, or `insecure`.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Network(NetworkOptions);

#[pymethods]
impl Network {
    #[new]
    #[pyo3(signature = (*, secret=None, key=None, known=None, insecure=false, host=None, hosts=None, listen=None, name_service_port=None, paths=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn new(
        secret: Option<PathBuf>,
        key: Option<PathBuf>,
        known: Option<PathBuf>,
        insecure: bool,
        host: Option<&str>,
        hosts: Option<&Bound<'_, PyAny>>,
        listen: Option<&str>,
        #[pyo3(from_py_with = number::name_service_port)] name_service_port: Option<u16>,
        #[pyo3(from_py_with = number::paths)] paths: Option<u8>,
    ) -> PyResult<Self> {
        let security = match (secret, key, known, insecure) {
            (Some(secret), None, None, false) => Security::Secret(secret),
            (None, Some(own), Some(known), false) => Security::Keys { own, known },
            (None, None, None, true) => Security::Insecure,
            _ => {
                return Err(PyValueError::new_err(
                    "a network needs either `secret`, or `key` and `known`, or `insecure=True`",
                ));
            }
        };
        let mut options = NetworkOptions::new(security);
        if let Some(host) = host {
            options.host = Some(HostName::new(host).map_err(refused)?);
        }
        if let Some(hosts) = hosts {
            options.hosts = read_hosts(hosts)?;
        }
        if let Some(listen) = listen {
            options.listen = listen
                .parse()
                .or_else(|_| listen.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0)))
                .map_err(|_| {
                    PyValueError::new_err(format!(
                        "listen is an address, perhaps with a port, as in \"10.0.0.1:7408\"; not {listen:?}"
                    ))
                })?;
        }
        if let Some(port) = name_service_port {
            options.name_service_port = port;
        }
        if let Some(paths) = paths {
            options.paths = paths;
        }
        Ok(Self(options))
    }

    fn __repr__(&self) -> String {
        let name = self
            .0
            .host
            .as_ref()
            .map_or("of the system's name", HostName::as_str);
        format!("<hamlyn.Network: host {name}>")
    }
}

/// Addresses of hosts by name, or a file that says them.
fn read_hosts(hosts: &Bound<'_, PyAny>) -> PyResult<Hosts> {
    let Ok(named) = hosts.cast::<PyDict>() else {
        let path: PathBuf = hosts.extract().map_err(|_| {
            PyTypeError::new_err(format!(
                "hosts is a file, or a dictionary of names and addresses; not {}",
                type_name(hosts)
            ))
        })?;
        return Hosts::read(&path).map_err(refused);
    };
    let mut hosts = Hosts::new();
    for (name, address) in named.iter() {
        let (name, address): (String, String) = (name.extract()?, address.extract()?);
        let parsed = address_of(&address).map_err(|bad| {
            PyValueError::new_err(format!("{address:?} is no address of a host: {bad}"))
        })?;
        let name = HostName::new(&name).map_err(refused)?;
        hosts.insert(name, parsed).map_err(refused)?;
    }
    Ok(hosts)
}

/// `None`: as the environment says; `False`: not on the network; or a `Network`.
pub(crate) fn network_use(network: Option<&Bound<'_, PyAny>>) -> PyResult<NetworkUse> {
    let Some(network) = network else {
        return Ok(NetworkUse::Environment);
    };
    if let Ok(network) = network.cast::<Network>() {
        return Ok(NetworkUse::On(Box::new(network.get().0.clone())));
    }
    match network.cast::<PyBool>() {
        Ok(is_on) if !is_on.is_true() => Ok(NetworkUse::Off),
        _ => Err(PyTypeError::new_err(format!(
            "network is a hamlyn.Network, False, or None for what the environment says; not {}",
            type_name(network)
        ))),
    }
}

/// Who may be linked to the interface.
pub(crate) fn access(
    users: Option<Vec<u32>>,
    groups: Option<Vec<u32>>,
    anyone: bool,
) -> PyResult<Access> {
    match (users, groups, anyone) {
        (None, None, false) => Ok(Access::SameUser),
        (None, None, true) => Ok(Access::Anyone),
        (users, groups, false) => Ok(Access::Listed {
            users: users.unwrap_or_default(),
            groups: groups.unwrap_or_default(),
        }),
        _ => Err(PyValueError::new_err(
            "`anyone=True` lets all users in: leave `users` and `groups` out",
        )),
    }
}

pub(crate) fn manager_options(
    strategy: &str,
    queue_entries: Option<usize>,
) -> PyResult<ManagerOptions> {
    let strategy = match strategy {
        "proc" => Strategy::Proc,
        "np" => Strategy::Np,
        "inject" => Strategy::Inject,
        "receive" => Strategy::Receive,
        _ => {
            return Err(PyValueError::new_err(format!(
                "strategy is \"proc\", \"np\", \"inject\" or \"receive\"; not {strategy:?}"
            )));
        }
    };
    let mut options = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    if let Some(entries) = queue_entries {
        options.queue_entries = entries;
    }
    Ok(options)
}

/// A span of time in seconds, which must be finite.
pub(crate) fn span(what: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{what} is 0 seconds or more, not {seconds}")))
}
