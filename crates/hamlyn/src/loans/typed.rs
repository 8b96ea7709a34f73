//! Publishers and subscribers of one type.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use hamlyn_host::Host;

use super::{Loan, LoanError, Published, Publisher, PublisherOptions, Sample, Subscriber};
use crate::error::{ConnectError, OpenError, ReceiveError, SendError};

use crate::item::{EndPoint, ItemHeader, Protocol};
use crate::manager::Manager;
use crate::typed::{Of, Typed, type_name};
use crate::wait::Wait;

/// A value to be written in place.
pub struct TypedLoan<'a, T, H: Host> {
    loan: Loan<'a, H>,
    carries: PhantomData<fn() -> T>,
}

impl<T: Typed, H: Host> TypedLoan<'_, T, H> {
    /// As [`Loan::publish`].
    pub fn publish(self, wait: Wait) -> Result<Published, SendError> {
        self.loan.publish(wait)
    }
}

impl<T: Typed, H: Host> Deref for TypedLoan<'_, T, H> {
    type Target = T;

    fn deref(&self) -> &T {
        T::ref_from_bytes(&self.loan).unwrap_or_else(|_| unreachable!("it was loaned as one"))
    }
}

impl<T: Typed, H: Host> DerefMut for TypedLoan<'_, T, H> {
    fn deref_mut(&mut self) -> &mut T {
        T::mut_from_bytes(&mut self.loan).unwrap_or_else(|_| unreachable!("it was loaned as one"))
    }
}

impl<T: Typed + fmt::Debug, H: Host> fmt::Debug for TypedLoan<'_, T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Typed, H: Host> Of<T, Publisher<H>> {
    /// As [`Publisher::loan`]. The value is one that was there before, or of zero bytes.
    pub fn loan(&mut self, wait: Wait) -> Result<TypedLoan<'_, T, H>, LoanError> {
        Ok(TypedLoan {
            loan: self.bytes_mut().loan(size_of::<T>(), wait)?,
            carries: PhantomData,
        })
    }
}

impl<T: Typed, H: Host> Of<T, Subscriber<H>> {
    /// As [`Subscriber::recv`]. [`Sample::read`] copies the value.
    pub fn recv(&mut self, wait: Wait) -> Result<Option<Sample<'_, H>>, ReceiveError> {
        let sample = self.bytes_mut().recv(wait)?;
        if sample.as_ref().is_some_and(|it| it.len() != size_of::<T>()) {
            return Err(ReceiveError::Malformed {
                protocol: "loans",
                what: "its length is not that of its type",
            });
        }
        Ok(sample)
    }

    /// A copy of the next value.
    pub fn value(&mut self, wait: Wait) -> Result<Option<T>, ReceiveError> {
        Ok(self.recv(wait)?.and_then(|sample| sample.read(0)))
    }
}

impl<H: Host> Sample<'_, H> {
    /// Copies out a value that lies at `offset`, wherever that is. Nothing if it would not lie in
    /// the message. Does not allocate.
    pub fn read<T: Typed>(&self, offset: usize) -> Option<T> {
        let mut value = T::new_zeroed();
        self.read_at(offset, value.as_mut_bytes()).ok()?;
        Some(value)
    }
}

/// End points that carry values of one type; otherwise as those that carry bytes.
impl<H: Host> Manager<H> {
    /// As [`Manager::bind_publisher`]; messages are as long as the type.
    pub fn bind_publisher_of<T: Typed>(
        &self,
        item: &str,
        options: PublisherOptions,
    ) -> Result<Of<T, Publisher<H>>, OpenError> {
        let header = ItemHeader::new(Protocol::Loans, type_name::<T>());
        let options = PublisherOptions {
            message_bytes: size_of::<T>() as u32,
            ..options
        };
        Ok(Of::new(Publisher::bind(self, item, options, header)?))
    }

    /// As [`Manager::connect_subscriber`].
    pub fn connect_subscriber_of<'a, T: Typed>(
        &self,
        to: impl Into<EndPoint<'a>>,
        wait: Wait,
    ) -> Result<Of<T, Subscriber<H>>, ConnectError> {
        let header = ItemHeader::new(Protocol::Loans, type_name::<T>());
        Ok(Of::new(Subscriber::connect(self, to.into(), header, wait)?))
    }
}
