//! Fences: one interface is both ends, so it knows of itself what it refused and what has come.

use hamlyn::{FenceError, Host, Manager};
use hamlyn_sim::reference::Violation;

use super::{GROW, failed};

pub struct Fences {
    /// Refused packets that fences have told of.
    told: u64,
}

impl Fences {
    pub fn open<H: Host>(manager: &Manager<H>) -> Result<Self, Violation> {
        fence(manager)?;
        let told = manager.session().refusals().total();
        Ok(Self { told })
    }

    /// All that was sent has come, and all that was refused is told of, once.
    pub fn check<H: Host>(&mut self, manager: &Manager<H>) -> Result<(), Violation> {
        self.told += fence(manager)?;
        let refused = manager.session().refusals().total();
        if self.told != refused {
            let error = format!("{} of {refused} refused packets were told of", self.told);
            return Err(failed("a fence")(error));
        }
        Ok(())
    }
}

/// How many packets it told of.
fn fence<H: Host>(manager: &Manager<H>) -> Result<u64, Violation> {
    match manager.fence(GROW) {
        Ok(()) => Ok(0),
        Err(FenceError::Refused { count, .. }) => Ok(count),
        Err(error) => Err(failed("a fence")(error)),
    }
}
