//! Regions of this interface that peers may fetch ([`hamlyn_ring::region`]).
//!
//! They are fetched, never pushed: no process is sent descriptors that it did not ask for. The
//! owner gets a random number when it shares a region, and sends it to peers in messages. The
//! control thread hands the files to a process that names that number. A region for one peer goes
//! once, to the user and process that the kernel reports at the other end of the link. A region for
//! all goes to each peer that has a link to this interface, as often as it asks.

use super::credentials::Credentials;
use super::registry::PeerKey;
use crate::places::{Asker, Places};
use crate::{Errno, HostError, Peer};
use hamlyn_ring::region::RegionFiles;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Regions of one interface that can be fetched at a time.
pub(crate) const REGIONS_MAX: usize = 512;

struct Entry {
    files: Arc<RegionFiles>,
    /// The one peer that it is for, and its process; without one it is for all that are linked.
    holder: Option<(PeerKey, u32)>,
}

struct Tables {
    entries: HashMap<u64, Entry>,
    /// The number of regions that each peer has to fetch, so that one that fetches none is in
    /// nobody else's way.
    places: Places,
    own_user: u32,
}

/// See the module.
pub(super) struct Broker(Mutex<Tables>);

impl Broker {
    /// Of an interface of that user.
    pub(super) fn new(own_user: u32) -> Self {
        Self(Mutex::new(Tables {
            entries: HashMap::new(),
            places: Places::new(REGIONS_MAX as u32),
            own_user,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        // Every critical section leaves the tables whole at each step that can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn share(
        &self,
        secret: u64,
        files: Arc<RegionFiles>,
        with: Option<&Peer>,
    ) -> Result<(), HostError> {
        let tables = &mut *self.lock();
        let allowed = REGIONS_MAX as u32;
        if tables.places.left() == 0 {
            return Err(HostError::RegionsFull { allowed });
        }
        let asker = match with {
            Some(peer) => Asker::process(peer.destination.user, peer.process),
            None => Asker::Oneself,
        };
        if !tables.places.has_share(asker, tables.own_user) {
            return Err(HostError::RegionsShare { allowed });
        }
        tables.places.give(secret, asker, tables.own_user);
        let holder = with.map(|peer| (PeerKey::of(&peer.destination), peer.process));
        tables.entries.insert(secret, Entry { files, holder });
        Ok(())
    }

    pub(super) fn withdraw(&self, secret: u64) {
        let tables = &mut *self.lock();
        tables.entries.remove(&secret);
        tables.places.take_back(secret, tables.own_user);
    }

    /// Has `send` hand over the files under that number, if they are for the asker. If that fails
    /// they stay. `is_linked` says whether the asker has a link to this interface.
    pub(super) fn hand_over(
        &self,
        secret: u64,
        interface: u64,
        credentials: &Credentials,
        is_linked: impl FnOnce(PeerKey) -> bool,
        send: impl FnOnce(&RegionFiles) -> Result<(), Errno>,
    ) -> Option<Result<(), Errno>> {
        let tables = &mut *self.lock();
        let asker = PeerKey::neighbour(interface, credentials.user);
        let entry = tables.entries.get(&secret)?;
        let is_for_asker = match entry.holder {
            Some(holder) => holder == (asker, credentials.process),
            None => is_linked(asker),
        };
        if !is_for_asker {
            return None;
        }
        let sent = send(&entry.files);
        if sent.is_ok() && entry.holder.is_some() {
            tables.entries.remove(&secret);
            tables.places.take_back(secret, tables.own_user);
        }
        Some(sent)
    }
}
