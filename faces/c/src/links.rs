//! Links to peers: who is at the other end, whether it is up, ending it; offers by name (`Hamlyn 6.3`); packets that came back.

use std::ffi::{c_char, c_void};

use hamlyn::engine::memory::LinkId;
use hamlyn::engine::transport::Return;
use hamlyn::host::{Address, Supply};

use crate::boundary::{TextRoom, bytes, bytes_mut, call, room, text, wait_of};
use crate::datagram::NOTHING_CAME;
use crate::lower::with_interface;
use crate::manager::ManagerHandle;
use crate::peer::{self, Peer};
use crate::status::{Error, Failure, Status};

const NO_SUCH_LINK: Failure = Failure::new(Status::NotFound, "there is no such link (any more)");

/// Connects to an interface by its name, host/name or name, and says over which link it is reached. For programs that hold no
/// ticket yet; hamlyn_open_target connects by itself. Blocks for `wait_ns` at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_connect(
    manager: *mut ManagerHandle,
    name: *const c_char,
    wait_ns: i64,
    link: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the link", link)?;
        let name = text("the name", name)?;
        let link = with_interface!(manager, interface => {
            let connected = interface.connect(Address::Name(name), wait_of(wait_ns));
            Ok(connected.map_err(hamlyn::ConnectError::from)?)
        })?;
        place.put(link.to_bits());
        Ok(())
    })
}

/// Ends a link. What was sent over it stays sent; what waits for it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_disconnect(
    manager: *mut ManagerHandle,
    link: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        with_interface!(manager, interface => {
            interface.disconnect(LinkId::from_bits(link));
            Ok(())
        })
    })
}

/// Who is at the other end of a link; also after its end, until another link has its place. HAMLYN_NOT_FOUND if that is not known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_link_peer(
    manager: *mut ManagerHandle,
    link: u64,
    peer: *mut Peer,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the peer", peer)?;
        let identity = with_interface!(manager, interface => {
            Ok(interface.identity_of(LinkId::from_bits(link)))
        })?;
        peer::put(place, identity)
    })
}

/// Whether a link is up: HAMLYN_OK, or HAMLYN_PEER_LOST with the reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_check_link(
    manager: *mut ManagerHandle,
    link: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let end = with_interface!(manager, interface => {
            // What is known of the peer is heard first.
            interface.identity_of(LinkId::from_bits(link));
            Ok(interface.link_end(LinkId::from_bits(link)))
        })?;
        match end {
            None => Ok(()),
            Some(end) => Err(Failure::of(
                Status::PeerLost,
                &format_args!("the link is not up: {end}"),
            )),
        }
    })
}

/// The peers that are linked: the first `most` of them into an array, and how many there are. Null for `peers` if `most` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_peers(
    manager: *mut ManagerHandle,
    peers: *mut Peer,
    most: usize,
    count: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", count)?;
        if most > 0 && (peers.is_null() || !peers.is_aligned()) {
            return Err(Failure::new(
                Status::Invalid,
                "the array for the peers is null",
            ));
        }
        let found = with_interface!(manager, interface => {
            let links: Vec<LinkId> = interface.peers().map(|(link, _)| link).collect();
            let identities = links.into_iter().filter_map(|link| interface.identity_of(link));
            Ok(identities.collect::<Vec<_>>())
        })?;
        for (index, &identity) in found.iter().enumerate().take(most) {
            // SAFETY: the array has room for `most`, as the header demands.
            unsafe { peers.add(index).write(identity.into()) };
        }
        place.put(found.len());
        Ok(())
    })
}

/// The name that a peer gives itself, if any; nobody vouches for it. HAMLYN_NOT_FOUND if the link is not up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_link_peer_name(
    manager: *mut ManagerHandle,
    link: u64,
    name: *mut c_char,
    name_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let room_of_name = TextRoom::of(name, name_bytes)?;
        let link = LinkId::from_bits(link);
        let found = with_interface!(manager, interface => {
            let found = interface.peers().find(|(of, _)| *of == link);
            Ok(found.map(|(_, peer)| peer.name.clone().unwrap_or_default()))
        })?;
        room_of_name.put(&found.ok_or(NO_SUCH_LINK)?);
        Ok(())
    })
}

/// Gives a link a number of the program's own, which is 0 before. HAMLYN_NOT_FOUND if there is no such link.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_set_link_context(
    manager: *mut ManagerHandle,
    link: u64,
    context: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let is_set = with_interface!(manager, interface => {
            Ok(interface.set_link_context(LinkId::from_bits(link), context))
        })?;
        match is_set {
            true => Ok(()),
            false => Err(NO_SUCH_LINK),
        }
    })
}

/// The number of the program's own that a link has; also after its end, until another link has its place; otherwise 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_link_context(
    manager: *mut ManagerHandle,
    link: u64,
    context: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the context", context)?;
        place.put(with_interface!(manager, interface => {
            Ok(interface.link_context(LinkId::from_bits(link)))
        })?);
        Ok(())
    })
}

/// The longest message that a send to that link takes without other memory, in bytes: about 1 KiB on one host; 0 between hosts, and if the
/// link has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_cells_bytes_max(
    manager: *mut ManagerHandle,
    link: u64,
    length_bytes: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the length", length_bytes)?;
        place.put(with_interface!(manager, interface => {
            Ok(interface.cells_bytes_max(LinkId::from_bits(link)))
        })?);
        Ok(())
    })
}

/// The longest payload of a packet of that link, metadata and data together, in bytes. HAMLYN_NOT_FOUND if the link has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_packet_bytes_max(
    manager: *mut ManagerHandle,
    link: u64,
    length_bytes: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the length", length_bytes)?;
        let found = with_interface!(manager, interface => {
            Ok(interface.packet_bytes_max(LinkId::from_bits(link)))
        })?;
        place.put(found.ok_or(NO_SUCH_LINK)?);
        Ok(())
    })
}

/// This manager's own interface, as its peers see it. Its link is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_identity(
    manager: *mut ManagerHandle,
    peer: *mut Peer,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the identity", peer)?;
        let own = with_interface!(manager, interface => Ok(interface.identity()))?;
        place.put(Peer {
            node: own.node,
            user: own.user,
            process: std::process::id(),
            interface_number: own.interface,
            ..Peer::default()
        });
        Ok(())
    })
}

/// How a link to another host is, and what its transport did. The counters never go down.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkState {
    /// Not 0: frames are encrypted and authenticated; otherwise they are in the clear.
    pub is_encrypted: u32,
    /// The longest frame at present, in bytes.
    pub frame_bytes: u32,
    /// Over how many paths packets go.
    pub paths: u32,
    /// Packets that came back, were not fetched, and were forgotten because there were too many.
    pub forgotten: u64,
}

/// Tells how a link to another host is. `text` is given all that is known of it, for people; null: nobody reads it. HAMLYN_NOT_FOUND if the
/// link has ended, or leads to an interface of this host. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_link_state(
    manager: *mut ManagerHandle,
    link: u64,
    state: *mut LinkState,
    text: *mut c_char,
    text_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the state", state)?;
        let text = TextRoom::of(text, text_bytes)?;
        let found = with_interface!(manager, interface => {
            Ok(interface.connection_state(LinkId::from_bits(link)))
        })?;
        let found = found.ok_or(Failure::new(
            Status::NotFound,
            "the link has ended, or stays on this host",
        ))?;
        text.put(&format_args!("{found:?}"));
        place.put(LinkState {
            is_encrypted: found.is_encrypted.into(),
            frame_bytes: u32::try_from(found.frame_bytes).unwrap_or(u32::MAX),
            paths: u32::try_from(found.paths.len()).unwrap_or(u32::MAX),
            forgotten: found.forgotten,
        });
        Ok(())
    })
}

/// The use that messages of this program to a peer of this host have made of the memory that it lends with buffer_bytes_per_peer.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogUse {
    /// How often they went on there.
    pub episodes: u64,
    /// Bytes that were written there, in all.
    pub spilled_bytes: u64,
    /// Those that the peer has not taken, at present: an upper bound.
    pub waiting_bytes: u64,
    /// The most that these were when somebody looked, or when the peer had taken all.
    pub most_bytes: u64,
    /// Length of the memory.
    pub log_bytes: u64,
    /// Times that messages were held back, as three quarters of the memory waited.
    pub pauses: u64,
    /// Pages of the memory that are present, at present: an upper bound.
    pub pages: u64,
    /// The most that these were, as for most_bytes.
    pub most_pages: u64,
}

/// Tells the use of the memory that a peer lends for messages that it does not take. HAMLYN_NOT_FOUND if the link has ended, or the peer
/// lends none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_log_use(
    manager: *mut ManagerHandle,
    link: u64,
    log_use: *mut LogUse,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the use", log_use)?;
        let found =
            with_interface!(manager, interface => Ok(interface.log_use(LinkId::from_bits(link))))?;
        let found = found.ok_or(Failure::new(
            Status::NotFound,
            "the link has ended, or the peer lends no memory: its buffer_bytes_per_peer says how much",
        ))?;
        place.put(LogUse {
            episodes: found.episodes,
            spilled_bytes: found.spilled_bytes,
            waiting_bytes: found.waiting_bytes,
            most_bytes: found.most_bytes,
            log_bytes: found.log_bytes,
            pauses: found.pauses,
            pages: found.pages,
            most_pages: found.most_pages,
        });
        Ok(())
    })
}

/// Waits until all that was sent over a link is in its place, or says what was refused since the fence before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fence_link(
    manager: *mut ManagerHandle,
    link: u64,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        with_interface!(manager, interface => {
            Ok(interface.fence_link(LinkId::from_bits(link), wait_of(wait_ns))?)
        })
    })
}

/// A packet that was not delivered.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Undelivered {
    /// The number of the interface that it was for; 0 if that is not known any more.
    pub interface_number: u64,
    /// The place in the slot that it was for.
    pub offset: u64,
    /// Its word in fast mode, or its delta.
    pub word: u64,
    /// The slot that it was for.
    pub slot: u32,
    /// How many bytes it has.
    pub length_bytes: u32,
    /// A number of hamlyn_refusal, or of a later version of the library; HAMLYN_LINK_ENDED.
    pub reason: u32,
    /// The metadata entry that it was for; HAMLYN_NO_ENTRY in fast mode.
    pub entry: u16,
}

impl From<&hamlyn::Undelivered> for Undelivered {
    fn from(found: &hamlyn::Undelivered) -> Self {
        Self {
            interface_number: found.to.map_or(0, |to| to.interface),
            offset: found.offset,
            word: found.word,
            slot: found.slot.to_bits(),
            length_bytes: found.length_bytes,
            reason: match found.reason {
                Return::Refused(reason) => reason as u32,
                Return::RefusedOtherwise(code) => code.into(),
                // Whatever else brings a packet back ends its link.
                _ => LINK_ENDED,
            },
            entry: found.metadata_index,
        }
    }
}

/// The link ended before the packet was acknowledged; it may have been delivered.
pub const LINK_ENDED: u32 = 0xFFFF_FFFF;

/// The next packet that was sent and not delivered; each is told once, here or by hamlyn_next_event. `text` is given why; null: nobody reads
/// it. Does not block: HAMLYN_TIMED_OUT if there is none. At the latest after a fence that follows it is answered, it is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_next_undelivered(
    manager: *mut ManagerHandle,
    undelivered: *mut Undelivered,
    text: *mut c_char,
    text_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the packet", undelivered)?;
        let text = TextRoom::of(text, text_bytes)?;
        let found = with_interface!(manager, interface => Ok(interface.next_undelivered()))?;
        let found = found.ok_or(NOTHING_CAME)?;
        text.put(&found);
        place.put((&found).into());
        Ok(())
    })
}

/// How many packets that were not delivered were forgotten, because there were too many and nobody fetched them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_undelivered_forgotten(
    manager: *mut ManagerHandle,
    count: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the count", count)?;
        place.put(with_interface!(manager, interface => Ok(interface.undelivered_forgotten()))?);
        Ok(())
    })
}

/// How many different wrong keys a peer may present before it is cut off. Every 1,024 good packets make up for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_set_bad_keys_max(
    manager: *mut ManagerHandle,
    packets: u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        with_interface!(manager, interface => {
            interface.set_bad_keys_max(packets);
            Ok(())
        })
    })
}

/// Every asker is given what is offered, and it replaces what was offered under the item before.
pub const OFFER_ALWAYS: u32 = 0;
/// The first asker is given it; several offers of one item queue up.
pub const OFFER_ONCE: u32 = 1;
/// Every asker is given it while no offer of the item that is given once is left.
pub const OFFER_AFTERWARDS: u32 = 2;

/// The most bytes that can be offered under an item.
pub const OFFER_BYTES_MAX: usize = 1_024;

/// Offers 1 to 1,024 bytes, a ticket say, to peers that ask for `item` of this manager (Hamlyn 6.3): HAMLYN_OFFER_ALWAYS, HAMLYN_OFFER_ONCE or
/// HAMLYN_OFFER_AFTERWARDS. It is given while this program computes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_offer(
    manager: *mut ManagerHandle,
    item: *const c_char,
    supply: u32,
    data: *const c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let item = text("the item", item)?;
        let data = bytes(data, length_bytes)?;
        let supply = match supply {
            OFFER_ALWAYS => Supply::Always,
            OFFER_ONCE => Supply::Once,
            OFFER_AFTERWARDS => Supply::Afterwards,
            _ => {
                return Err(Failure::new(
                    Status::Invalid,
                    "the supply is none of HAMLYN_OFFER_ALWAYS, _ONCE and _AFTERWARDS",
                ));
            }
        };
        with_interface!(manager, interface => Ok(interface.offer(item, supply, data)?))
    })
}

/// Takes back all offers under an item. Peers that were given one keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_withdraw(
    manager: *mut ManagerHandle,
    item: *const c_char,
    error: *mut Error,
) -> Status {
    call(error, || {
        let item = text("the item", item)?;
        with_interface!(manager, interface => {
            interface.withdraw(item);
            Ok(())
        })
    })
}

/// Asks the interface of that name for what it offers under `item`, and copies it into `into`. Makes no link. Blocks for `wait_ns` at most
/// while nobody has the name or nothing is offered; nothing is received meanwhile, but by other threads of a shared manager. There must be
/// room for HAMLYN_OFFER_BYTES_MAX, so that what is offered once is not lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_ask(
    manager: *mut ManagerHandle,
    name: *const c_char,
    item: *const c_char,
    wait_ns: i64,
    into: *mut c_void,
    room_bytes: usize,
    length_bytes: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the length", length_bytes)?;
        let (name, item) = (text("the name", name)?, text("the item", item)?);
        let into = bytes_mut(into, room_bytes)?;
        if room_bytes < OFFER_BYTES_MAX {
            return Err(Failure::new(
                Status::TooLong,
                "there is too little room for what may be offered: give HAMLYN_OFFER_BYTES_MAX",
            ));
        }
        let found = with_interface!(manager, interface => {
            let asked = interface.ask(Address::Name(name), item, wait_of(wait_ns));
            Ok(asked.map_err(hamlyn::ConnectError::from)?)
        })?;
        place.put(found.len());
        // A host takes no longer ones.
        let length_bytes = found.len().min(room_bytes);
        into[..length_bytes].copy_from_slice(&found[..length_bytes]);
        Ok(())
    })
}
