//! The interface of a manager, in the hands of one call of the lower layer, or of several ([`Manager::interface`](crate::Manager::interface)).

use std::ops::{Deref, DerefMut};

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::terminus::{Completion, SendHandle, TerminusId};
use hamlyn_host::{Address, ConnectError, Destination, Host, HostError};
use hamlyn_ring::pool::SharedPool;

use super::{
    InHand, Interface, Queue, Sent, awaiting, blocking, completing, exporting, fencing, granting,
    pieces, pooling, receiving, sending, storing,
};
use crate::error::{FenceError, ReceiveError, SendError};
use crate::export::{ExportTicket, Import, ImportError};
use crate::grant::{AcceptError, GrantTicket};
use crate::manager::Entered;
use crate::message::{Message, Target};
use crate::one_sided::{
    Atomic, Change, CompletionCounter, Initiator, Operation, OperationError, Strided,
};
use crate::ticket::Ticket;
use crate::wait::Wait;

/// The interface of a manager, in the hands of one call of the lower layer, or of several. No other call of the manager or of
/// its end points can be made before it is dropped, but for those that other threads make while a call of this waits.
///
/// It has the calls of an [`Interface`]. Those that wait, which are listed here, let other threads use a manager that is shared
/// ([`open_shared`](crate::open_shared)) meanwhile: so one thread may wait for what another one does.
pub struct InterfaceGuard<'a, H: Host>(Entered<'a, H>);

impl<'a, H: Host> InterfaceGuard<'a, H> {
    #[inline(always)]
    pub(crate) fn new(entered: Entered<'a, H>) -> Self {
        Self(entered)
    }
}

impl<H: Host> Deref for InterfaceGuard<'_, H> {
    type Target = Interface<H>;

    fn deref(&self) -> &Interface<H> {
        &self.0.interface
    }
}

impl<H: Host> DerefMut for InterfaceGuard<'_, H> {
    fn deref_mut(&mut self) -> &mut Interface<H> {
        &mut self.0.interface
    }
}

impl<H: Host> Drop for InterfaceGuard<'_, H> {
    /// Calls of the lower layer may have taken what a task that sleeps awaits.
    fn drop(&mut self) {
        if self.0.interface.sleepers.is_any() {
            self.0.interface.wake_sleepers_if_active();
        }
    }
}

/// Calls that wait.
macro_rules! waiting {
    ($($call:path as $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl<H: Host> InterfaceGuard<'_, H> {
            $(
                #[doc = concat!("As [`Interface::", stringify!($name), "`]; other threads use a shared manager while this waits.")]
                #[inline]
                pub fn $name(&mut self, $($argument: $type,)* wait: Wait) -> $result {
                    self.0.interface.check()?;
                    $call(&mut self.0, $($argument,)* wait)
                }
            )*
        }
    };
}

waiting! {
    receiving::rcv_block as rcv_block(queue: &mut Queue) -> Result<Option<Notification>, ReceiveError>;
    storing::store as store(terminus: TerminusId, target: &Target, offset: u64, bytes: &[u8]) -> Result<(), SendError>;
    sending::drain as drain(handle: SendHandle) -> Result<Completion, SendError>;
    sending::flush_link as flush_link(link: LinkId) -> Result<bool, HostError>;
    sending::flush as flush() -> Result<bool, HostError>;
    fencing::fence as fence() -> Result<(), FenceError>;
    fencing::fence_link as fence_link(link: LinkId) -> Result<(), FenceError>;
    Entered::ask as ask(to: Address<'_>, item: &str) -> Result<Vec<u8>, ConnectError>;
    Entered::connect as connect(to: Address<'_>) -> Result<LinkId, ConnectError>;
    Entered::target as target(ticket: &Ticket) -> Result<Target, ConnectError>;
    awaiting::begin_read as begin_read(initiator: &mut Initiator, offset: u64, landing_offset: u64, length_bytes: u64) -> Result<Operation, OperationError>;
    awaiting::begin_put as begin_put(initiator: &mut Initiator, offset: u64, bytes: &[u8]) -> Result<Operation, OperationError>;
    awaiting::begin_atomic as begin_atomic(initiator: &mut Initiator, offset: u64, atomic: Atomic) -> Result<Operation, OperationError>;
    awaiting::begin_read_word as begin_read_word(initiator: &mut Initiator, offset: u64) -> Result<Operation, OperationError>;
    pieces::begin_read_strided as begin_read_strided(initiator: &mut Initiator, strided: &Strided, landing_offset: u64) -> Result<Operation, OperationError>;
    pieces::begin_put_strided as begin_put_strided(initiator: &mut Initiator, strided: &Strided, bytes: &[u8]) -> Result<Operation, OperationError>;
    pieces::begin_read_indexed as begin_read_indexed(initiator: &mut Initiator, offsets: &[u64], piece_bytes: u64, landing_offset: u64) -> Result<Operation, OperationError>;
    pieces::begin_put_indexed as begin_put_indexed(initiator: &mut Initiator, offsets: &[u64], piece_bytes: u64, bytes: &[u8]) -> Result<Operation, OperationError>;
    awaiting::finish as finish(initiator: &mut Initiator, operation: Operation) -> Result<(), OperationError>;
    awaiting::finish_word as finish_word(initiator: &mut Initiator, operation: Operation) -> Result<u64, OperationError>;
    awaiting::finish_all as finish_all(initiator: &mut Initiator) -> Result<(), OperationError>;
    completing::await_completions as await_completions(counter: &CompletionCounter, ended: u64) -> Result<(), OperationError>;
    blocking::read as read(initiator: &mut Initiator, offset: u64, into: &mut [u8]) -> Result<(), OperationError>;
    blocking::read_word as read_word(initiator: &mut Initiator, offset: u64) -> Result<u64, OperationError>;
    blocking::put as put(initiator: &mut Initiator, offset: u64, bytes: &[u8]) -> Result<(), OperationError>;
    blocking::change as change(initiator: &mut Initiator, offset: u64, change: Change, operand: u64) -> Result<u64, OperationError>;
    granting::accept_grant as accept_grant(ticket: &GrantTicket) -> Result<(), AcceptError>;
    exporting::import as import(ticket: &ExportTicket) -> Result<Import, ImportError>;
    pooling::fetch_pool as fetch_pool(from: Destination, number: u64) -> Result<SharedPool, ConnectError>;
}

impl<H: Host> InterfaceGuard<'_, H> {
    /// As [`Interface::send_msg`]; other threads use a shared manager while this waits.
    #[inline(always)]
    pub fn send_msg(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.0.interface.check()?;
        InHand::send_msg(&mut self.0, terminus, target, message, wait)
    }

    /// As [`Interface::send_many`]; other threads use a shared manager while this waits.
    #[inline]
    pub fn send_many<'m>(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        messages: impl IntoIterator<Item = Message<'m>>,
        wait: Wait,
    ) -> Result<Sent, SendError> {
        self.0.interface.check()?;
        sending::send_many(&mut self.0, terminus, target, messages, wait)
    }
}
