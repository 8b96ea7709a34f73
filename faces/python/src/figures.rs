//! What an owner can learn of its slots and mailboxes, and of links to other hosts.

use std::collections::BTreeMap;

use hamlyn::engine::counting::Counting;
use hamlyn::engine::refusal::Refusals;
use hamlyn::engine::slot::{Mode, Rights, SlotInfo as Info};
use hamlyn::port::PortInfo;
use pyo3::prelude::*;

/// What the owner of a slot can learn of it, `Interface.slot_info`.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct SlotInfo(pub(crate) Info);

#[pymethods]
impl SlotInfo {
    /// Bytes that it covers.
    #[getter]
    fn length_bytes(&self) -> u64 {
        self.0.length_bytes
    }

    /// "normal", "paranoid" or "paranoid_one_shot".
    #[getter]
    fn mode(&self) -> &'static str {
        match self.0.mode {
            Mode::Normal => "normal",
            Mode::Paranoid => "paranoid",
            Mode::ParanoidOneShot => "paranoid_one_shot",
        }
    }

    /// Rights of those who have its key, as `Interface.open_slot` takes them.
    #[getter]
    fn rights(&self) -> String {
        let all = [
            (Rights::READ, "read"),
            (Rights::WRITE, "write"),
            (Rights::ATOMIC, "atomic"),
        ];
        let bits = self.0.rights.to_bits();
        let has =
            |(right, name): (Rights, &'static str)| (bits & right.to_bits() != 0).then_some(name);
        let names: Vec<_> = all.into_iter().filter_map(has).collect();
        match names[..] {
            [] => "none".to_owned(),
            _ if bits == Rights::ALL.to_bits() => "all".to_owned(),
            _ => names.join("+"),
        }
    }

    /// Whether it refuses everything until it is given a fresh key.
    #[getter]
    fn revoked(&self) -> bool {
        self.0.revoked
    }

    /// Number of metadata entries.
    #[getter]
    fn metadata_entries(&self) -> usize {
        self.0.metadata_entries
    }

    /// Bits of the counts of its entries, 32 or 64.
    #[getter]
    fn counting(&self) -> u32 {
        match self.0.counting {
            Counting::Bits32 => 32,
            Counting::Bits64 => 64,
        }
    }

    /// Regions that are shared.
    #[getter]
    fn grants(&self) -> usize {
        self.0.grants
    }

    /// Packets refused, by reason.
    #[getter]
    fn refusals(&self) -> BTreeMap<String, u64> {
        refusals(&self.0.refusals)
    }

    fn __repr__(&self) -> String {
        format!(
            "<hamlyn.SlotInfo of {} bytes, mode {}, rights {}>",
            self.0.length_bytes,
            self.mode(),
            self.rights()
        )
    }
}

/// The queue of a mailbox, and the packets it refused, `MailboxReceiver.info`.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct MailboxInfo(pub(crate) PortInfo);

#[pymethods]
impl MailboxInfo {
    /// Bytes that the queue holds.
    #[getter]
    fn queue_bytes(&self) -> u32 {
        self.0.queue_bytes
    }

    /// Messages that wait in the queue.
    #[getter]
    fn waiting(&self) -> usize {
        self.0.waiting
    }

    /// Bytes that these take of it.
    #[getter]
    fn waiting_bytes(&self) -> u32 {
        self.0.waiting_bytes
    }

    /// Messages that were put into the queue so far, as they were not received in turn.
    #[getter]
    fn queued(&self) -> u64 {
        self.0.queued
    }

    /// Packets refused, by reason.
    #[getter]
    fn refusals(&self) -> BTreeMap<String, u64> {
        refusals(&self.0.refusals)
    }

    fn __repr__(&self) -> String {
        format!(
            "<hamlyn.MailboxInfo: {} wait, in {} of {} bytes>",
            self.0.waiting, self.0.waiting_bytes, self.0.queue_bytes
        )
    }
}

/// How a link to another host is, and what its transport did, `Interface.connection_state`. Counts never go down.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct ConnectionState(pub(crate) hamlyn::ConnectionState);

#[pymethods]
impl ConnectionState {
    /// Where this side's frames come from, over its first path: "address:port".
    #[getter]
    fn local(&self) -> String {
        self.0.local.to_string()
    }

    /// Where they go.
    #[getter]
    fn peer(&self) -> String {
        self.0.peer.to_string()
    }

    /// Whether frames are encrypted and authenticated; otherwise they are in the clear.
    #[getter]
    fn is_encrypted(&self) -> bool {
        self.0.is_encrypted
    }

    /// How it ended; None if it has not.
    #[getter]
    fn end(&self) -> Option<String> {
        self.0.end.map(|end| end.to_string())
    }

    /// Bytes of the longest frame at present.
    #[getter]
    fn frame_bytes(&self) -> usize {
        self.0.frame_bytes
    }

    /// What the transport did: counts by name.
    #[getter]
    fn transport(&self) -> BTreeMap<&'static str, u64> {
        let did = &self.0.transport;
        BTreeMap::from([
            ("offered", did.offered),
            ("sent", did.sent),
            ("retransmitted", did.retransmitted),
            ("answers", did.answers),
            ("acknowledged", did.acknowledged),
            ("refused", did.refused),
            ("receiver_not_ready", did.receiver_not_ready),
            ("taken", did.taken),
            ("duplicates", did.duplicates),
            ("stale", did.stale),
            ("malformed", did.malformed),
            ("baseless", did.baseless),
            ("future_echoes", did.future_echoes),
            ("after_close", did.after_close),
        ])
    }

    /// Packets that came back, were not fetched, and were forgotten because there were too many.
    #[getter]
    fn forgotten(&self) -> u64 {
        self.0.forgotten
    }

    /// What counts of each path, by name: frames "sent", "lost", "in_flight"; "round_trip_ns", "round_trip_least_ns";
    /// "window_milliframes"; "is_inactive", 0 or 1; "deactivations".
    #[getter]
    fn paths(&self) -> Vec<BTreeMap<&'static str, u64>> {
        let paths = self.0.paths.iter();
        paths
            .map(|path| {
                BTreeMap::from([
                    ("sent", path.sent),
                    ("lost", path.lost),
                    ("in_flight", path.in_flight as u64),
                    ("round_trip_ns", path.round_trip_ns),
                    ("round_trip_least_ns", path.round_trip_least_ns),
                    ("window_milliframes", path.window_milliframes),
                    ("is_inactive", path.is_inactive.into()),
                    ("deactivations", path.deactivations),
                ])
            })
            .collect()
    }

    fn __repr__(&self) -> String {
        let end = match &self.0.end {
            Some(_) => ", ended",
            None => "",
        };
        format!("<hamlyn.ConnectionState to {}{end}>", self.0.peer)
    }
}

/// Packets refused, by reason.
pub(crate) fn refusals(refusals: &Refusals) -> BTreeMap<String, u64> {
    refusals
        .iter()
        .map(|(reason, count)| (reason.to_string(), count))
        .collect()
}
