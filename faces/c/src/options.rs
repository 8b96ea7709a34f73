//! What a manager is opened with.
//!
//! The structure begins with its length, so that later versions can add fields at its end: those that a program does not know are its
//! defaults. Refused: structures that do not say their length, and values that are none.

use std::ffi::c_char;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hamlyn::host::network::hosts::{HostName, Hosts};
use hamlyn::host::network::{NetworkError, NetworkOptions, Security};
use hamlyn::host::process::{Access, NetworkUse, Options as HostOptions};
use hamlyn::{ManagerOptions, Strategy};

use crate::boundary::{call, room, text_or_none};
use crate::status::{Error, Failure, Status};

/// The program's thread drives the interface, in its calls: lowest latency, fewest processors.
pub const PROC: u32 = 0;
/// A network processor, a thread of this process, drives it.
pub const NP: u32 = 1;
/// The program's thread transmits, the network processor receives.
pub const INJECT: u32 = 2;
/// The program's thread transmits, and receives while it polls; the network processor receives while it does not.
pub const RECEIVE: u32 = 3;

/// This user, and root, may be linked to the manager. The default.
pub const ACCESS_SAME_USER: u32 = 0;
/// The users and the groups that are listed, and nobody else.
pub const ACCESS_LISTED: u32 = 1;
/// Everybody on this host.
pub const ACCESS_ANYONE: u32 = 2;

/// Other hosts are reached if the environment says how (HAMLYN_SECRET and so on). The default.
pub const NETWORK_ENVIRONMENT: u32 = 0;
/// The manager stays on this host.
pub const NETWORK_OFF: u32 = 1;
/// Other hosts are reached as the hamlyn_network_options say.
pub const NETWORK_ON: u32 = 2;

/// As buffer_bytes_per_peer: none.
pub const NO_BUFFER: u32 = u32::MAX;

/// How other hosts are reached, and this one by them: set all of it to 0 first. Exactly one of a secret, keys, and no security is chosen.
/// Names of files are read when the manager is opened.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NetworkSettings {
    /// What this host is called by the others. Null: what the system says.
    pub host: *const c_char,
    /// An address of this host, perhaps with a port, where frames are taken. Null: all addresses, any port.
    pub listen: *const c_char,
    /// A file that says where other hosts are. Null: none.
    pub hosts_file: *const c_char,
    /// A file with the secret that all hosts of the cluster hold.
    pub secret_file: *const c_char,
    /// A file with this host's own key.
    pub key_file: *const c_char,
    /// A file with the names and public keys of the hosts that are known; with `key_file`.
    pub known_file: *const c_char,
    /// Not 0: no security. For a network that no attacker reaches.
    pub insecure: u32,
    /// Over how many paths packets are sent to each peer, up to 16. 0: 1.
    pub paths: u32,
    /// How long a peer may be silent before it is asked whether it is there, up to a minute. 0: 2 s; negative: it is never asked.
    pub silence_ns: i64,
    /// How long a peer may take nothing, though it answers. 0: 60 s.
    pub no_progress_ns: i64,
    /// The port of this host's name service. 0: 7407.
    pub name_service_port: u16,
}

/// What a manager is opened with. Begin with hamlyn_default_options, which sets the first field; later versions of the library add
/// fields at the end, and take those of an older program to be defaults. 0 in a field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of this structure, as the program was compiled with.
    pub struct_bytes: usize,
    /// The name under which others find it: 1 to 64 of A-Z a-z 0-9 . _ / and the hyphen. Null: none.
    pub name: *const c_char,
    /// Interfaces of different namespaces do not see each other. Null: what HAMLYN_NAMESPACE says, or "default".
    pub namespace_name: *const c_char,
    /// Who drives the interface: HAMLYN_PROC, the default, HAMLYN_NP, HAMLYN_INJECT or HAMLYN_RECEIVE.
    pub strategy: u32,
    /// Not 0: several threads use the manager and its end points, each of them one at a time. Each call takes a lock.
    pub shared: u32,
    /// Messages that all its receivers together may have outstanding. 0: 4,096.
    pub queue_entries: u32,
    /// How long a call that waits polls at most before it sleeps. Negative: 20 us, or none if there is but one processor.
    pub spin_ns: i64,
    /// Who may be linked to it: HAMLYN_ACCESS_SAME_USER, the default, HAMLYN_ACCESS_LISTED or HAMLYN_ACCESS_ANYONE.
    pub access: u32,
    /// How many users are listed.
    pub users_count: u32,
    /// Numbers of users; for HAMLYN_ACCESS_LISTED.
    pub users: *const u32,
    /// Numbers of groups; a peer's effective group counts.
    pub groups: *const u32,
    /// How many groups are listed.
    pub groups_count: u32,
    /// HAMLYN_NETWORK_ENVIRONMENT, the default, HAMLYN_NETWORK_OFF or HAMLYN_NETWORK_ON.
    pub network: u32,
    /// For HAMLYN_NETWORK_ON.
    pub network_options: *const NetworkSettings,
    /// Cells of each ring in which it receives, a power of two from 2 to 65,536; each has 64 bytes. 0: 256.
    pub cells: u32,
    /// Bytes of each such ring for longer payloads, whole pages, 128 KiB to 64 MiB. 0: as the processor's cache suggests.
    pub arena_bytes: u32,
    /// The largest payload of a packet that it takes, 64 bytes to 64 KiB. 0: 64 KiB.
    pub payload_bytes_max: u32,
    /// Links at a time. 0: 4,096.
    pub links_max: u32,
    /// Handshakes at a time that others began. 0: 64.
    pub handshakes_max: u32,
    /// Messages that may wait for each destination, up to 4,095. 0: 63.
    pub terminus_entries: u32,
    /// How long a peer that connects may take for the handshake. 0: 1 s.
    pub handshake_timeout_ns: u64,
    /// Bytes of all such memory as buffer_bytes_per_peer, of all peers together. A peer gets an eighth of what is left at most, or 1 MiB;
    /// those that come last get nothing. 0: 1 GiB.
    pub buffer_bytes_total: u64,
    /// How long a ring to a peer must be full, with nothing taken from it, before messages go to that memory of the peer, at least; up to
    /// 20 times as long where the peer often went on by then. 0: 100 us; negative: no time at all.
    pub patience_ns: i64,
    /// Bytes in which each peer of this host goes on when its ring is full and this manager takes nothing: a power of two from 1 MiB to
    /// 512 MiB. It takes no memory until it is used; the sender pays for that. 0: 16 MiB; HAMLYN_NO_BUFFER: none, then such a peer waits.
    pub buffer_bytes_per_peer: u32,
    /// Zero.
    pub reserved: u32,
}

/// The options of the first version had so many bytes.
const OPTIONS_BYTES_MIN: usize = offset_of!(Options, access);

fn invalid(text: &'static str) -> Failure {
    Failure::new(Status::Invalid, text)
}

impl From<NetworkError> for Failure {
    fn from(error: NetworkError) -> Self {
        Self::of(Status::Invalid, &error)
    }
}

/// Numbers of the caller's.
fn numbers(of: *const u32, count: u32) -> Result<Vec<u32>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if of.is_null() || !of.is_aligned() {
        return Err(invalid("the list of users or of groups is null"));
    }
    // SAFETY: there are so many, as the header demands, and a u32 counts no more than memory can hold.
    Ok(unsafe { std::slice::from_raw_parts(of, count as usize) }.to_vec())
}

impl NetworkSettings {
    fn read(&self) -> Result<NetworkOptions, Failure> {
        let file = |what, path| Ok::<_, Failure>(text_or_none(what, path)?.map(PathBuf::from));
        let secret = file("the name of the file of the secret", self.secret_file)?;
        let key = file("the name of the file of the key", self.key_file)?;
        let known = file("the name of the file of known hosts", self.known_file)?;
        let security = match (secret, key, known, self.insecure) {
            (Some(file), None, None, 0) => Security::Secret(file),
            (None, Some(own), Some(known), 0) => Security::Keys { own, known },
            (None, None, None, 1..) => Security::Insecure,
            _ => {
                return Err(invalid(
                    "choose one of a secret, a key with the known hosts, and no security",
                ));
            }
        };
        let mut options = NetworkOptions::new(security);
        if let Some(host) = text_or_none("the name of the host", self.host)? {
            options.host = Some(HostName::new(host)?);
        }
        if let Some(listen) = text_or_none("the address", self.listen)? {
            let bare = |ip| SocketAddr::new(ip, 0);
            let address = listen.parse().or_else(|_| listen.parse().map(bare));
            options.listen = address.map_err(|_| {
                invalid("the address to listen at is none: an IP address, perhaps with a port")
            })?;
        }
        if let Some(file) = text_or_none("the name of the file of hosts", self.hosts_file)? {
            options.hosts = Hosts::read(Path::new(file))?;
        }
        if self.paths != 0 {
            options.paths =
                u8::try_from(self.paths).map_err(|_| invalid("there are 1 to 16 paths"))?;
        }
        match self.silence_ns {
            0 => {}
            1.. => options.silence = Duration::from_nanos(self.silence_ns as u64),
            _ => options.silence = Duration::ZERO,
        }
        if self.no_progress_ns > 0 {
            options.no_progress = Duration::from_nanos(self.no_progress_ns as u64);
        }
        if self.name_service_port != 0 {
            options.name_service_port = self.name_service_port;
        }
        Ok(options)
    }
}

impl Options {
    pub(crate) fn new() -> Self {
        Self {
            struct_bytes: size_of::<Self>(),
            spin_ns: -1,
            // SAFETY: all other fields are numbers and pointers, for which zeros are values.
            ..unsafe { MaybeUninit::zeroed().assume_init() }
        }
    }

    /// Those of the caller, as many fields as its program knows.
    pub(crate) fn read(options: *const Self) -> Result<Self, Failure> {
        let mut read = Self::new();
        if options.is_null() {
            return Ok(read);
        }
        // SAFETY: what is not null begins with its length, as the header demands.
        let struct_bytes = unsafe { options.cast::<usize>().read_unaligned() };
        if struct_bytes < OPTIONS_BYTES_MIN {
            return Err(invalid(
                "the options do not say their length: call hamlyn_default_options first",
            ));
        }
        let known_bytes = struct_bytes.min(size_of::<Self>());
        // SAFETY: so many bytes can be read there, as the header demands, and are those of the first fields, which have no invalid values.
        unsafe {
            let to = (&raw mut read).cast::<u8>();
            to.copy_from_nonoverlapping(options.cast(), known_bytes);
        }
        Ok(read)
    }

    pub(crate) fn manager(&self) -> Result<ManagerOptions, Failure> {
        let mut options = ManagerOptions {
            strategy: match self.strategy {
                PROC => Strategy::Proc,
                NP => Strategy::Np,
                INJECT => Strategy::Inject,
                RECEIVE => Strategy::Receive,
                _ => {
                    return Err(invalid(
                        "the strategy is none: take HAMLYN_PROC, HAMLYN_NP, HAMLYN_INJECT or HAMLYN_RECEIVE",
                    ));
                }
            },
            ..ManagerOptions::default()
        };
        if self.queue_entries != 0 {
            options.queue_entries = self.queue_entries as usize;
        }
        if self.terminus_entries != 0 {
            options.terminus.queue_entries = self.terminus_entries as usize;
        }
        Ok(options)
    }

    pub(crate) fn host(&self) -> Result<HostOptions, Failure> {
        let mut options = HostOptions::default();
        options.name = text_or_none("the name", self.name)?.map(str::to_owned);
        options.namespace = text_or_none("the namespace", self.namespace_name)?.map(str::to_owned);
        options.spin_ns = u64::try_from(self.spin_ns).ok();
        options.access = match self.access {
            ACCESS_SAME_USER => Access::SameUser,
            ACCESS_LISTED => Access::Listed {
                users: numbers(self.users, self.users_count)?,
                groups: numbers(self.groups, self.groups_count)?,
            },
            ACCESS_ANYONE => Access::Anyone,
            _ => {
                return Err(invalid(
                    "the access is none of HAMLYN_ACCESS_SAME_USER, _LISTED and _ANYONE",
                ));
            }
        };
        options.network = match self.network {
            NETWORK_ENVIRONMENT => NetworkUse::Environment,
            NETWORK_OFF => NetworkUse::Off,
            NETWORK_ON => {
                let settings = self.network_options;
                if settings.is_null() || !settings.is_aligned() {
                    return Err(invalid("the network options are null"));
                }
                // SAFETY: settings that are not null can be read, and were set, as the header demands.
                NetworkUse::On(Box::new(unsafe { *settings }.read()?))
            }
            _ => {
                return Err(invalid(
                    "the network is none of HAMLYN_NETWORK_ENVIRONMENT, _OFF and _ON",
                ));
            }
        };
        let set = |option: &mut u32, given: u32| {
            if given != 0 {
                *option = given;
            }
        };
        set(&mut options.cells, self.cells);
        set(&mut options.arena_bytes, self.arena_bytes);
        set(&mut options.payload_max_bytes, self.payload_bytes_max);
        set(&mut options.links_max, self.links_max);
        set(&mut options.handshakes_max, self.handshakes_max);
        if self.handshake_timeout_ns != 0 {
            options.handshake_timeout = Duration::from_nanos(self.handshake_timeout_ns);
        }
        match self.buffer_bytes_per_peer {
            0 => {}
            NO_BUFFER => options.buffer_bytes_per_peer = 0,
            bytes => options.buffer_bytes_per_peer = bytes,
        }
        if self.buffer_bytes_total != 0 {
            options.buffer_bytes_total = self.buffer_bytes_total;
        }
        match self.patience_ns {
            0 => {}
            1.. => options.patience = Duration::from_nanos(self.patience_ns as u64),
            _ => options.patience = Duration::ZERO,
        }
        Ok(options)
    }
}

/// Sets all options to their defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_default_options(
    options: *mut Options,
    error: *mut Error,
) -> Status {
    call(error, || {
        room("the options", options)?.put(Options::new());
        Ok(())
    })
}
