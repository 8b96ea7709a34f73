//! Pages that are lent to a peer and wait for it to fetch them (decision 0006), and areas that are
//! exported to all peers (decision 0037).
//!
//! They are fetched, never pushed: no process is sent descriptors that it did not ask for. The
//! owner gets a random number when it lends the pages, and sends it to the peer in a message. The
//! control thread hands the file over once, to a peer that names that number and that the kernel
//! reports as the user and process at the other end of the link that they were lent to. Pages that
//! are lent to all, and an exported area, it hands over to each peer that names the number and has
//! a link to this interface, as often as it asks.

use super::credentials::Credentials;
use super::registry::PeerKey;
use crate::places::{Asker, Places};
use crate::{Errno, HostError, Peer};
use hamlyn_ring::export::ExportFiles;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lent pages of one interface that no peer has fetched yet.
pub(super) const LENDINGS_MAX: usize = 256;
/// Areas that one interface exports at a time.
pub(crate) const EXPORTS_MAX: usize = 256;

struct Lending {
    file: OwnedFd,
    length_bytes: u64,
    /// The one peer that it is for, and its process; without one it is for all that are linked.
    borrower: Option<(PeerKey, u32)>,
}

struct Exported {
    files: ExportFiles,
    length_bytes: u64,
}

struct Tables {
    lendings: HashMap<u64, Lending>,
    /// Who has how many lendings to fetch, so that one that fetches none is in nobody else's way.
    places: Places,
    own_user: u32,
    exports: HashMap<u64, Exported>,
}

impl Tables {
    /// Nobody can fetch that any more.
    fn end(&mut self, secret: u64) {
        self.lendings.remove(&secret);
        self.places.take_back(secret, self.own_user);
    }
}

/// What a peer is handed.
pub(super) enum HandOver<'a> {
    Lent(BorrowedFd<'a>, u64),
    Exported([BorrowedFd<'a>; 2], u64),
}

/// See the module.
pub(super) struct Lendings(Mutex<Tables>);

impl Lendings {
    /// Of an interface of that user.
    pub(super) fn new(own_user: u32) -> Self {
        Self(Mutex::new(Tables {
            lendings: HashMap::new(),
            places: Places::new(LENDINGS_MAX as u32),
            own_user,
            exports: HashMap::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        // Every critical section leaves the tables whole at each step that can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(
        &self,
        secret: u64,
        file: OwnedFd,
        length_bytes: u64,
        to: Option<&Peer>,
    ) -> Result<(), HostError> {
        let tables = &mut *self.lock();
        let allowed = LENDINGS_MAX as u32;
        if tables.places.left() == 0 {
            return Err(HostError::LendingsFull { allowed });
        }
        let asker = match to {
            Some(to) => Asker::process(to.destination.user, to.process),
            None => Asker::Oneself,
        };
        if !tables.places.has_share(asker, tables.own_user) {
            return Err(HostError::LendingsShare { allowed });
        }
        tables.places.give(secret, asker, tables.own_user);
        let lending = Lending {
            file,
            length_bytes,
            borrower: to.map(|to| (PeerKey::of(&to.destination), to.process)),
        };
        tables.lendings.insert(secret, lending);
        Ok(())
    }

    pub(super) fn withdraw(&self, secret: u64) {
        self.lock().end(secret);
    }

    pub(super) fn export(
        &self,
        secret: u64,
        files: ExportFiles,
        length_bytes: u64,
    ) -> Result<(), HostError> {
        let exports = &mut self.lock().exports;
        if exports.len() >= EXPORTS_MAX {
            return Err(HostError::ExportsFull {
                allowed: EXPORTS_MAX as u32,
            });
        }
        let exported = Exported {
            files,
            length_bytes,
        };
        exports.insert(secret, exported);
        Ok(())
    }

    pub(super) fn withdraw_export(&self, secret: u64) {
        self.lock().exports.remove(&secret);
    }

    /// Has `send` hand over what lies under that number, if it is for the asker. Lent pages stay if
    /// that fails. `is_linked` says whether the asker has a link to this interface.
    pub(super) fn hand_over(
        &self,
        secret: u64,
        interface: u64,
        credentials: &Credentials,
        is_linked: impl FnOnce(PeerKey) -> bool,
        send: impl FnOnce(HandOver<'_>) -> Result<(), Errno>,
    ) -> Option<Result<(), Errno>> {
        let tables = &mut *self.lock();
        let asker = PeerKey::neighbour(interface, credentials.user);
        if let Some(exported) = tables.exports.get(&secret) {
            let files = [exported.files.area.as_fd(), exported.files.state.as_fd()];
            return is_linked(asker)
                .then(|| send(HandOver::Exported(files, exported.length_bytes)));
        }
        let lending = tables.lendings.get(&secret)?;
        let is_for_asker = match lending.borrower {
            Some(borrower) => borrower == (asker, credentials.process),
            None => is_linked(asker),
        };
        if !is_for_asker {
            return None;
        }
        let sent = send(HandOver::Lent(lending.file.as_fd(), lending.length_bytes));
        if sent.is_ok() && lending.borrower.is_some() {
            tables.end(secret);
        }
        Some(sent)
    }
}
