//! Deliberate bugs, one at a time, which the tests of the simulator must find (decision 0011). They show that
//! what judges the interface can fail.
//!
//! Without the feature `mutations` there are none: [`is_on`] is false when the program is compiled, and no
//! instruction is left of a switch. No product is built with it.

/// Whose bug it is: what must be run to find it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Found by driving the two halves of the engine.
    Engine,
    /// Found only by programs that use the library.
    Library,
    /// Found only where such programs wait for each other: in the simulator's world.
    World,
    /// Found by driving two associations over a bad network: the engine's test `transport_mutations`.
    Transport,
}

macro_rules! mutations {
    ($($level:ident $name:ident $called:literal $text:literal;)*) => {
        /// A deliberate bug.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Mutation { $(#[doc = $text] $name,)* }

        impl Mutation {
            /// All of them.
            pub const ALL: &'static [Mutation] = &[$(Mutation::$name,)*];

            /// A short name, as it is typed.
            pub const fn name(self) -> &'static str {
                match self { $(Mutation::$name => $called,)* }
            }

            /// What goes wrong.
            pub const fn describe(self) -> &'static str {
                match self { $(Mutation::$name => $text,)* }
            }

            /// Whose bug it is.
            pub const fn level(self) -> Level {
                match self { $(Mutation::$name => Level::$level,)* }
            }
        }
    };
}

mutations! {
    // Protection.
    Engine KeySkipped "key-skipped" "The slot's key is not looked at.";
    Engine KeySkippedShort "key-skipped-short" "The slot's key is not looked at on the shortest way.";
    Engine KeySkippedSingle "key-skipped-single" "The slot's key is not looked at for single packets.";
    Engine KeyKept "key-kept" "A slot keeps its key when it is re-keyed.";
    Engine WayKept "way-kept" "The shortest way is not changed with its slot: it takes the old key, or a revoked slot.";
    Engine WayOpenLapsed "way-open-lapsed" "The shortest way stays open when the handshake lapses.";
    Engine BoundSkipped "bound-skipped" "The slot's bound is not looked at.";
    Engine BoundOffByOne "bound-off-by-one" "The slot's bound lets in one byte more.";
    Engine BoundOffByOneSingle "bound-off-by-one-single" "The slot's bound lets in one byte more of single packets.";
    Engine BaseForgotten "base-forgotten" "The slot's base is not added when data are deposited.";
    Engine EntryKeySkipped "entry-key-skipped" "The entry's key is not looked at.";
    Engine EntryKeySkippedOnce "entry-key-skipped-once" "The entry's key is not looked at on the ways of one-shot entries.";
    Engine LimitSkipped "limit-skipped" "The entry's upper limit is not looked at.";
    Engine LowSkippedOnce "low-skipped-once" "The entry's lower limit is not looked at on the ways of one-shot entries.";
    Engine SpendForgotten "spend-forgotten" "A one-shot entry stays armed after its message.";
    Engine SpendForgottenGuarded "spend-forgotten-guarded" "A one-shot entry stays armed after a short message.";
    Engine ArmedSkippedAwaited "armed-skipped-awaited" "An awaited message is taken though its entry is spent.";
    Engine RightsSkipped "rights-skipped" "The right to write is not looked at.";
    Engine RightsSkippedShort "rights-skipped-short" "The shortest way is open to a slot without the right to write.";
    Engine FastToParanoid "fast-to-paranoid" "A paranoid slot takes messages in fast mode.";
    Engine KindSkipped "kind-skipped" "A packet of unknown kind is taken for a write.";
    Engine GenerationReused "generation-reused" "A slot is opened anew under the name of a closed one.";
    Engine GrantSkipped "grant-skipped" "Whoever has a grant may place anywhere in the slot.";
    Engine GrantKept "grant-kept" "A grant is in force after its end.";
    Engine RefusalUncounted "refusal-uncounted" "A refused packet is not counted with its slot.";
    // Counting and announcing.
    Engine CountedFirst "counted-first" "The delta of a packet is added up before the packet is checked.";
    Engine WidthIgnored "width-ignored" "Accumulators of 64 bits count with 32.";
    Engine AnnouncedEarly "announced-early" "A message is announced when one packet is still to come.";
    Engine AnnouncedByLast "announced-by-last" "Only the last packet of a message announces it, not the one that comes last.";
    Engine AnnouncedPart "announced-part" "A single packet that is part of a message is announced.";
    Engine SilentAnnounced "silent-announced" "A silent message is announced.";
    Engine NeighbourWritten "neighbour-written" "Metadata are written to the next entry.";
    Engine MetadataCut "metadata-cut" "The last bytes of metadata are lost if they are no whole word.";
    Engine CountKept "count-kept" "Arming an entry does not reset its accumulator.";
    Engine OverrunForgotten "overrun-forgotten" "Lost notifications are passed over without a word.";
    Engine LapForgotten "lap-forgotten" "A full notification queue is written one place too far.";
    // Sending.
    Engine DeltaWrong "delta-wrong" "The last packet of a message has the delta of the one before.";
    Engine ByteDoubled "byte-doubled" "A packet that is not the first begins with a byte of the one before.";
    Engine ByteLost "byte-lost" "A byte is lost between two packets.";
    Engine OffsetKept "offset-kept" "The offset of a message's third packet is that of its second.";
    Engine PieceOffsetLost "piece-offset-lost" "A packet that begins within a piece of a gather list takes the piece from its beginning.";
    Engine QueueOverwritten "queue-overwritten" "A full work queue takes a message in place of its last.";
    Engine CompletionLost "completion-lost" "A message that waited in the work queue never completes.";
    Engine CompletionEarly "completion-early" "A message is complete when the one before it is.";
    Engine FailureForgotten "failure-forgotten" "A message whose link was lost completes as sent.";
    Engine UnboundInUse "unbound-in-use" "A send-buffer area is taken away while messages use it.";
    Engine MemberTwice "member-twice" "One part of a divided share counts one packet more.";
    // Rings, links, and the protocols of the library.
    Library CellOverwritten "cell-overwritten" "A full ring takes a cell in place of one that was not yet taken.";
    Library DataMisplaced "data-misplaced" "Data that lie in the bulk behind their metadata are sought where the metadata are.";
    Library ArrivalDropped "arrival-dropped" "A message that is found while another receiver is asked is dropped.";
    Library NarrowedBaseKept "narrowed-base-kept" "A narrowed ticket begins where the one begins that it was made of.";
    Library TagForgotten "tag-forgotten" "A tag that was passed over while another was sought is forgotten.";
    Library DatagramCut "datagram-cut" "A datagram is taken without its last byte.";
    Library CreditTwice "credit-twice" "A stream's sender counts one piece twice that came back.";
    Library PaddingDelivered "padding-delivered" "A record that shares a piece is delivered with its padding.";
    Library PieceReleasedEarly "piece-released-early" "A piece that several records share goes back with the first of them.";
    Library EndEarly "end-early" "A stream ends one piece before its last.";
    World ListenedLate "listened-late" "Who is about to sleep announces it before it listens for rings.";
    Library ShareKept "share-kept" "A member of a group keeps the share that it spent on a part: it is counted twice.";
    // The transport between hosts.
    Transport DuplicateTaken "duplicate-taken" "A frame that was taken is given out again when it comes again.";
    Transport TakenForgotten "taken-forgotten" "A channel keeps its number though its frame was taken.";
    Transport GivenTwice "given-twice" "A frame that is being taken is given out again.";
    Transport AcknowledgedEarly "acknowledged-early" "A frame is acknowledged when it comes, before it is taken.";
    Transport SequenceNew "sequence-new" "A frame that is sent again has a new number.";
    Transport ReturnTwice "return-twice" "A refused packet comes back twice.";
    Transport ReturnLost "return-lost" "Of an association that ends, the last packet of a frame does not come back.";
    Transport RefusalUntold "refusal-untold" "A frame of which packets were refused is acknowledged as if all were welcome.";
    Transport RunTooLong "run-too-long" "A run of acknowledgements names one channel more.";
    Transport EarlierNackBelieved "earlier-nack-believed" "A NACK counts for a frame that was sent again since.";
    Transport NumberSkipped "number-skipped" "An acknowledgement frees its channel whatever its number is.";
    Transport OpenFrameForgotten "open-frame-forgotten" "An association that ends forgets the frame that is being filled.";
    Transport RetriesKept "retries-kept" "A NACK is no answer: retries are counted on.";
    Transport WaitingUntold "waiting-untold" "Who sends a frame again that waits to be taken is told nothing.";
    Transport HalfTaken "half-taken" "A frame is given out though its last packets are malformed.";
}

#[cfg(feature = "mutations")]
mod switch {
    use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

    use super::Mutation;

    const NONE: u8 = u8::MAX;
    const _: () = assert!(Mutation::ALL.len() < NONE as usize);

    /// Not one of the words of `atomic`: loom is not to try orders of it.
    static ON: AtomicU8 = AtomicU8::new(NONE);

    /// Whether that bug is to happen.
    #[inline]
    pub fn is_on(mutation: Mutation) -> bool {
        ON.load(Relaxed) == mutation as u8
    }

    /// That bug happens from now on, in the whole process, and no other; none, if that is said.
    pub fn switch(mutation: Option<Mutation>) {
        ON.store(mutation.map_or(NONE, |mutation| mutation as u8), Relaxed);
    }
}

#[cfg(feature = "mutations")]
pub use switch::{is_on, switch};

// As every product is built.
#[cfg(not(feature = "mutations"))]
const _: () = assert!(!is_on(Mutation::KeySkipped));

/// Whether that bug is to happen: never.
#[cfg(not(feature = "mutations"))]
#[inline(always)]
pub const fn is_on(_: Mutation) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_and_a_description_of_its_own() {
        for (at, one) in Mutation::ALL.iter().enumerate() {
            assert_eq!(*one as usize, at);
            assert!(one.describe().ends_with('.'), "{}", one.name());
            for other in &Mutation::ALL[..at] {
                assert_ne!(one.name(), other.name());
                assert_ne!(one.describe(), other.describe());
            }
        }
    }
}
