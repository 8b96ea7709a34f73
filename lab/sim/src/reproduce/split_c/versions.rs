//! The ten versions of the language that the paper compares (`Split-C 3`).

use hamlyn::Strategy;

/// Who carries out at the target what a get, a put or a store asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Server {
    /// The program, in handlers of messages.
    Program,
    /// The interface, by one-sided operations and counted messages.
    Interface,
}

/// A version of the language.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// Its column of Table 1.
    pub name: &'static str,
    /// The file of its machine.
    pub machine: &'static str,
    /// Who drives the interface.
    pub strategy: Strategy,
    /// Who serves gets and puts.
    pub memory: Server,
    /// Who serves stores.
    pub stores: Server,
    /// Who runs the null handler of an active message.
    pub handlers: Server,
    /// Whether each store is acknowledged, for want of other flow control (G-212 to G-214).
    pub acknowledges_stores: bool,
}

const fn version(name: &'static str, machine: &'static str, strategy: Strategy) -> Version {
    Version {
        name,
        machine,
        strategy,
        memory: Server::Interface,
        stores: Server::Interface,
        handlers: Server::Program,
        acknowledges_stores: false,
    }
}

const fn by_program(name: &'static str, machine: &'static str, strategy: Strategy) -> Version {
    Version {
        memory: Server::Program,
        stores: Server::Program,
        ..version(name, machine, strategy)
    }
}

/// All of them, in the order of Table 1.
pub static VERSIONS: [Version; 10] = [
    by_program("CM5", "cm5", Strategy::Proc),
    by_program("Meiko-Proc", "cs2", Strategy::Np),
    Version {
        handlers: Server::Interface,
        ..version("Meiko-NP", "cs2-np", Strategy::Np)
    },
    Version {
        acknowledges_stores: true,
        ..by_program("Paragon-Proc", "paragon", Strategy::Np)
    },
    // Handlers of users cannot run on the Paragon's network processor (G-193).
    version("Paragon-NP", "paragon", Strategy::Np),
    version("Paragon-Inject", "paragon", Strategy::Inject),
    version("Paragon-Receive", "paragon", Strategy::Receive),
    // A store is an active message there (G-205).
    Version {
        stores: Server::Program,
        ..version("T3D", "t3d", Strategy::Inject)
    },
    by_program("NOW-Proc", "now", Strategy::Np),
    Version {
        handlers: Server::Interface,
        ..version("NOW-NP", "now-np", Strategy::Np)
    },
];

/// The files of their machines.
pub const MACHINES: [&str; 7] = ["cm5", "cs2", "cs2-np", "paragon", "t3d", "now", "now-np"];
