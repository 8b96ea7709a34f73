//! The processor that a program runs on: of User Direct Messaging, or over regions.

use hamlyn::{Host, Wait};
use hamlyn_crl::{Courier, Crl, CrlError, CrlNull, Regions};
use hamlyn_udm::{InjectError, Udm};

/// A program that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The layer could not.
    #[error(transparent)]
    Udm(#[from] hamlyn_udm::Error),
    /// A message could not be injected.
    #[error(transparent)]
    Inject(#[from] InjectError),
    /// No message came in time.
    #[error("node {me} waits, and no message has come for {waited_ms} ms")]
    Late {
        /// The node.
        me: u32,
        /// The time that it has waited.
        waited_ms: u64,
    },
    /// Messages came that were not sent.
    #[error("{wrong} messages came to node {me} that nobody should have sent")]
    Wrong {
        /// The node.
        me: u32,
        /// Their number.
        wrong: u64,
    },
    /// Shared memory could not.
    #[error(transparent)]
    Crl(#[from] CrlError),
    /// There is no such puzzle.
    #[error(transparent)]
    Board(#[from] crate::enumerate::BoardError),
}

/// A processor: it computes, waits, and runs the handlers of messages that come meanwhile. Clones
/// are the same one; handlers have one.
pub trait Processor<H: Host>: Clone + Send + 'static {
    /// The program computes so many operations. Handlers may run before its end.
    fn compute<S>(&self, udm: &mut Udm<S, H>, operations: u64) -> Result<(), ProgramError>;

    /// A handler computes so many operations.
    fn compute_in_handler(&self, operations: u64);

    /// The program waits until a handler has run.
    fn wait<S>(&self, udm: &mut Udm<S, H>) -> Result<(), ProgramError>;
}

/// A processor of a program over regions: it computes, and answers other nodes meanwhile.
pub trait RegionProcessor<R: Regions> {
    /// The program computes so many operations, of the size that its documentation says. Operations
    /// on regions may be open: others wait for their end.
    ///
    /// # Errors
    ///
    /// Messages cannot be carried any more.
    fn compute(&self, crl: &R, operations: u64) -> Result<(), CrlError>;
}

/// Messages that a processor handles before its program goes on.
const VISIT: usize = 64;
/// The time for which a program waits for a message before it gives up.
const PATIENCE_MS: u64 = 20_000;

/// A processor of this host. Operations take what they take; the program polls between them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live;

impl<H: Host> Processor<H> for Live {
    fn compute<S>(&self, udm: &mut Udm<S, H>, _: u64) -> Result<(), ProgramError> {
        udm.poll(VISIT)?;
        Ok(())
    }

    fn compute_in_handler(&self, _: u64) {}

    fn wait<S>(&self, udm: &mut Udm<S, H>) -> Result<(), ProgramError> {
        match udm.serve(Wait::millis(PATIENCE_MS))? {
            0 => Err(ProgramError::Late {
                me: udm.me(),
                waited_ms: PATIENCE_MS,
            }),
            _ => Ok(()),
        }
    }
}

impl<C: Courier> RegionProcessor<Crl<C>> for Live {
    fn compute(&self, crl: &Crl<C>, _: u64) -> Result<(), CrlError> {
        crl.serve(Wait::Poll)?;
        Ok(())
    }
}

/// A program alone has nobody to answer.
impl RegionProcessor<CrlNull> for Live {
    fn compute(&self, _: &CrlNull, _: u64) -> Result<(), CrlError> {
        Ok(())
    }
}
