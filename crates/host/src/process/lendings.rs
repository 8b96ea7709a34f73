//! Pages that are lent to a peer and wait for it to fetch them (decision 0006).
//!
//! They are fetched, never pushed: no process is sent descriptors that it did not ask for. The
//! owner gets a random number when it lends the pages, and sends it to the peer in a message. The control thread
//! hands the file over once, to a peer that names that number and that the kernel reports as the user and process
//! at the other end of the link that they were lent to.

use super::credentials::Credentials;
use super::registry::PeerKey;
use crate::{Errno, HostError, Peer};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lent pages of one interface that no peer has fetched yet.
pub(super) const LENDINGS_MAX: usize = 256;

struct Lending {
    file: OwnedFd,
    length_bytes: u64,
    borrower: PeerKey,
    process: u32,
}

/// See the module.
#[derive(Default)]
pub(super) struct Lendings(Mutex<HashMap<u64, Lending>>);

impl Lendings {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Lending>> {
        // Every critical section leaves the table whole at each step that can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(
        &self,
        secret: u64,
        file: OwnedFd,
        length_bytes: u64,
        to: &Peer,
    ) -> Result<(), HostError> {
        let mut lendings = self.lock();
        if lendings.len() >= LENDINGS_MAX {
            return Err(HostError::LendingsFull {
                allowed: LENDINGS_MAX as u32,
            });
        }
        let lending = Lending {
            file,
            length_bytes,
            borrower: PeerKey::of(&to.destination),
            process: to.process,
        };
        lendings.insert(secret, lending);
        Ok(())
    }

    pub(super) fn withdraw(&self, secret: u64) {
        self.lock().remove(&secret);
    }

    /// Has `send` hand the file and its length over, if they are for the asker. The file stays if that fails.
    pub(super) fn hand_over(
        &self,
        secret: u64,
        interface: u64,
        credentials: &Credentials,
        send: impl FnOnce(BorrowedFd<'_>, u64) -> Result<(), Errno>,
    ) -> Option<Result<(), Errno>> {
        let mut lendings = self.lock();
        let lending = lendings.get(&secret)?;
        let asker = PeerKey::neighbour(interface, credentials.user);
        if lending.borrower != asker || lending.process != credentials.process {
            return None;
        }
        let sent = send(lending.file.as_fd(), lending.length_bytes);
        if sent.is_ok() {
            lendings.remove(&secret);
        }
        Some(sent)
    }
}
