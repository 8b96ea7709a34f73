//! A node over each kind of messages.

use hamlyn::{Host, Wait};
use hamlyn_am::Node;
use hamlyn_udm::{Group, GroupOptions};

use crate::am::AmCourier;
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
        let courier = courier.map_err(|error| CrlError::join(&error))?;
        Self::open(courier, options)
    }
}

impl<H: Host> Crl<AmCourier<H>> {
    /// Opens the node of a program under that name, over a node of Active Messages, which the
    /// program may use besides. Blocks until all nodes have opened theirs, as long as `wait` says a
    /// few times for each.
    ///
    /// # Errors
    ///
    /// Those of [`AmCourier::open`].
    pub fn join_over_am(
        node: &Node<H>,
        program: &GroupOptions,
        name: &str,
        options: CrlOptions,
        wait: Wait,
    ) -> Result<Self, CrlError> {
        Self::open(AmCourier::open(node, program, name, wait)?, options)
    }
}
