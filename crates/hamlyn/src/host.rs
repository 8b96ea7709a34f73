//! What of the hosts programs need: how an interface is opened, who may be linked to it, and what
//! can go wrong.

pub use hamlyn_host::{
    Address, ConnectError, Destination, Errno, Host, HostError, LossCause, Peer, RefusedBecause,
    Silence, Supply,
};

/// The network: keys, secrets, and where other hosts are.
pub mod network {
    pub use hamlyn_host::network::{
        ClusterSecret, HostKey, NetworkError, NetworkOptions, PublicKey, Security, Trace,
    };

    /// Names of hosts.
    pub mod hosts {
        pub use hamlyn_host::network::hosts::{
            BadAddress, HostName, Hosts, NAME_SERVICE_PORT, address_of,
        };
    }
}

/// The host that is embedded in a process.
pub mod process {
    pub use hamlyn_host::process::{Access, NetworkUse, Options, ProcessHost};
}

/// How a manager is shared.
pub mod sharing {
    pub use hamlyn_host::sharing::{AnyThread, OneThread, Sharing};
}
