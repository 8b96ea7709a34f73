//! Regions as C knows them: by the address of their bytes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::c_void;
use std::rc::Rc;

use hamlyn_crl::{Crl, Region, RegionHandle as _, RegionId, Regions as _};

use crate::group::OpenGroup;
use crate::status::{Code, Failure};

/// A region that is mapped, however often.
struct Mapped {
    region: Rc<Region>,
    times: u32,
    /// Operations that are open.
    open: u32,
}

/// CRL as a thread has it open.
pub(crate) struct Regions {
    pub(crate) crl: Crl,
    mapped: RefCell<HashMap<usize, Mapped>>,
    _group: Rc<OpenGroup>,
}

const NOT_MAPPED: Failure = Failure::new(
    Code::NotMapped,
    "no region is mapped at this address: use one of rgn_map that was not unmapped",
);
const OPEN: Failure = Failure::new(
    Code::OperationOpen,
    "an operation is open on the region: end it first (rgn_end_read, rgn_end_write)",
);

impl Regions {
    pub(crate) fn new(crl: Crl, group: Rc<OpenGroup>) -> Self {
        Self {
            crl,
            mapped: RefCell::default(),
            _group: group,
        }
    }

    /// Maps a region, or counts one mapping more: its address.
    pub(crate) fn map(&self, region: RegionId) -> Result<*mut c_void, Failure> {
        let region = self.crl.map(region)?;
        let address = region.as_ptr();
        match self.mapped.borrow_mut().entry(address as usize) {
            Entry::Occupied(mut mapped) => mapped.get_mut().times += 1,
            Entry::Vacant(place) => {
                place.insert(Mapped {
                    region: Rc::new(region),
                    times: 1,
                    open: 0,
                });
            }
        }
        Ok(address.cast())
    }

    /// Takes one mapping away.
    pub(crate) fn unmap(&self, address: *const c_void) -> Result<(), Failure> {
        let mut mapped = self.mapped.borrow_mut();
        let Entry::Occupied(mut place) = mapped.entry(address as usize) else {
            return Err(NOT_MAPPED);
        };
        let it = place.get_mut();
        if it.times > 1 {
            it.times -= 1;
            return Ok(());
        }
        if it.open > 0 {
            return Err(OPEN);
        }
        let it = place.remove();
        drop(mapped);
        drop(it);
        Ok(())
    }

    /// The region that is mapped at that address.
    pub(crate) fn at(&self, address: *const c_void) -> Result<Rc<Region>, Failure> {
        let mapped = self.mapped.borrow();
        let found = mapped.get(&(address as usize)).ok_or(NOT_MAPPED)?;
        Ok(Rc::clone(&found.region))
    }

    /// Begins an operation by `start`.
    pub(crate) fn start(
        &self,
        address: *const c_void,
        start: impl FnOnce(&Region) -> Result<(), hamlyn_crl::CrlError>,
    ) -> Result<(), Failure> {
        start(&*self.at(address)?)?;
        self.count(address, |open| open + 1);
        Ok(())
    }

    /// Ends one by `end`.
    pub(crate) fn end(
        &self,
        address: *const c_void,
        end: impl FnOnce(&Region) -> Result<(), hamlyn_crl::CrlError>,
    ) -> Result<(), Failure> {
        end(&*self.at(address)?)?;
        self.count(address, |open| open - 1);
        Ok(())
    }

    fn count(&self, address: *const c_void, change: impl FnOnce(u32) -> u32) {
        if let Some(mapped) = self.mapped.borrow_mut().get_mut(&(address as usize)) {
            mapped.open = change(mapped.open);
        }
    }

    /// Unmaps all, unless an operation is open.
    pub(crate) fn unmap_all(&self) -> Result<(), Failure> {
        if self.mapped.borrow().values().any(|mapped| mapped.open > 0) {
            return Err(OPEN);
        }
        drop(self.mapped.take());
        Ok(())
    }

    pub(crate) fn bytes(&self, address: *const c_void) -> Result<usize, Failure> {
        Ok(self.at(address)?.bytes())
    }
}
