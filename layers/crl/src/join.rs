//! A node over User Direct Messaging.

use hamlyn::{Host, Wait};
use hamlyn_udm::Group;

use crate::crl::{Crl, CrlOptions};
use crate::error::CrlError;
use crate::udm::UdmCourier;

impl<H: Host> Crl<UdmCourier<H>> {
    /// Opens the node of a group under that name. Blocks until all nodes have opened theirs, as
    /// long as `wait` says for each.
    ///
    /// # Errors
    ///
    /// A node could not be reached in time, there is no memory, or there are more nodes than
    /// [`NODES_MAX`](crate::NODES_MAX).
    pub fn join(
        group: &Group<H>,
        name: &str,
        options: CrlOptions,
        wait: Wait,
    ) -> Result<Self, CrlError> {
        let courier = UdmCourier::open(group, name, wait);
        let courier = courier.map_err(|error| CrlError::Messages {
            cause: error.to_string(),
        })?;
        Self::open(courier, options)
    }
}
