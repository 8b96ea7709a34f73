//! The null version: one node, no messages, no protocol. For the serial time of a program.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::error::CrlError;
use crate::guard::{Ends, ReadGuard, WriteGuard};
use crate::id::RegionId;
use crate::memory::{Bytes, Memory};
use crate::regions::{RegionHandle, Regions};

/// A region: its memory, the number of its bytes, and how often it is mapped.
type Entry = (Memory, usize, Rc<Cell<u32>>);

/// A node that is alone. Its operations are those of [`Crl`](crate::Crl) without its costs.
#[derive(Debug, Default)]
pub struct CrlNull {
    regions: RefCell<HashMap<RegionId, Entry>>,
    created: Cell<u32>,
}

/// A mapped region of a node that is alone.
#[derive(Debug)]
pub struct NullRegion {
    id: RegionId,
    memory: Memory,
    bytes: usize,
    mapped: Rc<Cell<u32>>,
}

impl Regions for CrlNull {
    type Region = NullRegion;

    fn me(&self) -> u32 {
        0
    }

    fn nodes(&self) -> u32 {
        1
    }

    fn create(&self, bytes: usize) -> Result<RegionId, CrlError> {
        let memory = Bytes::new(bytes)?;
        let index = self.created.get();
        self.created.set(index + 1);
        let region = RegionId { home: 0, index };
        let mut regions = self.regions.borrow_mut();
        regions.insert(region, (memory, bytes, Rc::default()));
        Ok(region)
    }

    fn destroy(&self, region: RegionId) -> Result<(), CrlError> {
        let mut regions = self.regions.borrow_mut();
        match regions.get(&region) {
            None => Err(CrlError::NoRegion { region }),
            Some((.., mapped)) if mapped.get() > 0 => Err(CrlError::Mapped { region, node: 0 }),
            Some(_) => {
                regions.remove(&region);
                Ok(())
            }
        }
    }

    fn map(&self, region: RegionId) -> Result<NullRegion, CrlError> {
        let regions = self.regions.borrow();
        let found = regions.get(&region);
        let (memory, bytes, mapped) = found.ok_or(CrlError::NoRegion { region })?;
        mapped.set(mapped.get() + 1);
        Ok(NullRegion {
            id: region,
            memory: Rc::clone(memory),
            bytes: *bytes,
            mapped: Rc::clone(mapped),
        })
    }

    fn barrier(&self) -> Result<(), CrlError> {
        Ok(())
    }

    fn broadcast(&self, _bytes: &[u8]) -> Result<(), CrlError> {
        Ok(())
    }

    /// # Errors
    ///
    /// There is no other node that sends one: it would never come.
    fn receive_broadcast(&self, _bytes: &mut [u8]) -> Result<(), CrlError> {
        Err(CrlError::NodeLost { node: 1 })
    }

    fn reduce_add(&self, value: f64) -> Result<f64, CrlError> {
        Ok(value)
    }

    fn reduce_min(&self, value: f64) -> Result<f64, CrlError> {
        Ok(value)
    }

    fn reduce_max(&self, value: f64) -> Result<f64, CrlError> {
        Ok(value)
    }
}

impl RegionHandle for NullRegion {
    fn id(&self) -> RegionId {
        self.id
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn read(&self) -> Result<ReadGuard<'_, Self>, CrlError> {
        let region = self.id;
        let bytes = self.memory.try_borrow();
        let bytes = bytes.map_err(|_| CrlError::Open { region })?;
        Ok(ReadGuard::new(bytes, self))
    }

    fn write(&self) -> Result<WriteGuard<'_, Self>, CrlError> {
        let region = self.id;
        let bytes = self.memory.try_borrow_mut();
        let bytes = bytes.map_err(|_| CrlError::Open { region })?;
        Ok(WriteGuard::new(bytes, self))
    }

    fn flush(&self) -> Result<(), CrlError> {
        Ok(())
    }
}

impl Ends for NullRegion {
    fn end_read(&self) {}

    fn end_write(&self) {}
}

impl Drop for NullRegion {
    fn drop(&mut self) {
        self.mapped.set(self.mapped.get() - 1);
    }
}
