//! Access by typed pointers.

use hamlyn::Host;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::address::{GlobalAddress, GlobalPtr, SpreadPtr};
use crate::error::Error;
use crate::runtime::{Program, Splitc};

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Reads a value. Blocks until it is here.
    pub fn read<T: FromBytes + IntoBytes>(&mut self, from: GlobalPtr<T>) -> Result<T, Error> {
        let mut value = T::new_zeroed();
        self.read_bytes(from.address(), value.as_mut_bytes())?;
        Ok(value)
    }

    /// Writes a value. Blocks until it is in its place.
    pub fn write<T: IntoBytes + Immutable>(
        &mut self,
        to: GlobalPtr<T>,
        value: T,
    ) -> Result<(), Error> {
        self.write_bytes(to.address(), value.as_bytes())
    }

    /// Begins to read a value to a place of the program's own memory; it is there after the next
    /// [`Splitc::sync`].
    pub fn get<T: FromBytes>(&mut self, to: u64, from: GlobalPtr<T>) -> Result<(), Error> {
        self.get_bytes(to, from.address(), size_of::<T>() as u64)
    }

    /// Begins to write a value; it is in its place after the next [`Splitc::sync`].
    pub fn put<T: IntoBytes + Immutable>(
        &mut self,
        to: GlobalPtr<T>,
        value: T,
    ) -> Result<(), Error> {
        self.put_bytes(to.address(), value.as_bytes())
    }

    /// Stores a value; its owner counts the bytes.
    pub fn store<T: IntoBytes + Immutable>(
        &mut self,
        to: GlobalPtr<T>,
        value: T,
    ) -> Result<(), Error> {
        self.store_bytes(to.address(), value.as_bytes())
    }

    /// Memory for `count` values, spread cyclically over the processors. Collective.
    pub fn all_spread<T>(&mut self, count: u64) -> Result<SpreadPtr<T>, Error> {
        let address = self.all_spread_allocate(count, size_of::<T>() as u64)?;
        Ok(SpreadPtr::at(address, self.procs()))
    }

    /// A pointer to a place of that processor's memory (`toglobal`).
    pub fn pointer<T>(&self, proc: u32, place: u64) -> GlobalPtr<T> {
        GlobalPtr::at(GlobalAddress::new(proc, place))
    }
}
