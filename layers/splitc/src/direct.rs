//! What faces in other languages need in order to reach memory of other processors without a call:
//! windows, and the places of words of the control areas.

use hamlyn::{DirectWindow, Host};

use crate::control::ATTENTION;
use crate::error::Error;
use crate::runtime::{Program, Splitc};

/// What is mapped of a processor.
#[derive(Debug)]
pub struct DirectMemory {
    /// Its segments, and at which place of its memory each begins.
    pub segments: Vec<(u64, DirectWindow)>,
    /// Its control area.
    pub control: DirectWindow,
    /// Where in it the word is that counts the bytes which this processor has stored there. Only
    /// this processor writes it, after the bytes.
    pub stored_offset: u64,
}

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// What is mapped of a processor, this one included; nothing if its memory is reached by
    /// operations.
    pub fn direct_memory(&mut self, proc: u32) -> Result<Option<DirectMemory>, Error> {
        let stored_offset = self.layout.stored(self.job.proc);
        if proc == self.job.proc {
            let window = |segment: &crate::memory::OwnSegment| {
                let all = segment.area.direct_window(0..segment.span.length_bytes)?;
                Some((segment.span.start, all))
            };
            let segments: Option<Vec<_>> = self.segments.iter().map(window).collect();
            let control = self.control.direct_window(0..self.layout.length_bytes());
            let both = segments.zip(control);
            return Ok(both.map(|(segments, control)| DirectMemory {
                segments,
                control,
                stored_offset,
            }));
        }
        let peer = self.peer(proc)?;
        let mut segments = Vec::new();
        for segment in &peer.segments {
            let Some(window) = segment.initiator.window() else {
                return Ok(None);
            };
            segments.push((segment.span.start, window.clone()));
        }
        let Some(control) = peer.control().window() else {
            return Ok(None);
        };
        Ok(Some(DirectMemory {
            segments,
            control: control.clone(),
            stored_offset,
        }))
    }

    /// Whether a processor was connected to, which this one always is. Large jobs connect as
    /// needed.
    pub fn is_connected(&self, proc: u32) -> bool {
        let is_there = |peer: &Option<_>| peer.is_some();
        proc == self.job.proc || self.peers.get(proc as usize).is_some_and(is_there)
    }

    /// The word that is not 0 when another processor has asked for an atomic procedure directly;
    /// nothing if nobody does so.
    pub fn attention_word(&self) -> Option<DirectWindow> {
        match self.is_direct {
            true => self.control.direct_window(ATTENTION..ATTENTION + 8),
            false => None,
        }
    }
}
