//! A pending connection: what this side has prepared for a link.

use hamlyn_engine::limits::FRAME_BYTES_MIN;
use hamlyn_engine::transport::{Association, Settings};
use hamlyn_link::trace::{Tap, TapSettings};
use hamlyn_link::udp::handshake::{Credentials, Keys};
use hamlyn_link::udp::protection::{RxProtection, TxProtection};
use hamlyn_link::udp::socket::Socket;
use hamlyn_link::udp_endpoint::{ConnectionConfig, UdpLink};

use super::{ACKNOWLEDGE_FRAMES, Network, READY_FRAMES_MAX, Side};
use crate::process::name::Name;
use crate::process::numbers::Numbers;
use crate::{Destination, HostError};

/// See the module.
pub(crate) struct PendingConnection<'a> {
    pub(super) network: &'a Network,
    pub(super) number: u32,
    pub(super) sockets: Vec<Socket>,
    pub(super) frame_bytes: usize,
    pub(super) is_taken: bool,
}

impl Drop for PendingConnection<'_> {
    fn drop(&mut self) {
        if !self.is_taken {
            self.network.endpoint.release(self.number);
        }
    }
}

impl PendingConnection<'_> {
    /// This side's half of the agreement.
    pub(crate) fn side(&self, destination: Destination, name: Option<Name>) -> Side {
        Side {
            destination,
            group: Numbers::here().own_group(),
            process: std::process::id(),
            name,
            association: self.number,
            channels: Settings::default().channels,
            frame_bytes: self.frame_bytes as u32,
            paths: self.sockets.len() as u8,
            port: self.network.endpoint.local().port(),
        }
    }

    /// Where the frames of the link are written to, if this process is traced.
    fn tap(&self, side: &Side) -> Option<Tap> {
        let to = side.destination;
        let trace = self.network.trace.as_ref()?;
        Some(trace.tap(TapSettings {
            own_association: self.number,
            peer_association: side.association,
            peer_interface: to.interface,
            peer_host: to.node,
            peer_user: to.user,
            is_encrypted: !matches!(self.network.credentials, Credentials::Insecure),
        }))
    }

    /// Makes the link to a peer with that half.
    pub(crate) fn link(mut self, keys: &Keys, side: &Side) -> Result<UdpLink, HostError> {
        let options = &self.network.options;
        let frame_bytes = self.frame_bytes.min(side.frame_bytes as usize);
        self.sockets.truncate(usize::from(side.paths));
        let settings = Settings {
            channels: Settings::default().channels.min(side.channels),
            frame_bytes: frame_bytes.max(FRAME_BYTES_MIN),
            paths: self.sockets.len() as u8,
            keep_alive_ns: options.silence.as_nanos() as u64,
            no_progress_ns: options.no_progress.as_nanos() as u64,
            acknowledge_frames: ACKNOWLEDGE_FRAMES,
            ready_frames_max: READY_FRAMES_MAX,
            ..Settings::default()
        };
        let association = Association::new(settings).map_err(|_| HostError::BadSetting {
            setting: "the peer's frames",
            value: u64::from(side.frame_bytes),
            reason: "no association can have them",
        })?;
        let parts = ConnectionConfig {
            association,
            tx_protection: TxProtection::new(&keys.send, side.association),
            rx_protection: RxProtection::new(&keys.receive, self.number),
            sockets: std::mem::take(&mut self.sockets),
            tap: self.tap(side),
        };
        self.is_taken = true;
        Ok(self.network.endpoint.link(self.number, parts))
    }
}
