/* Hamlyn: a network interface in software. Programs that do not trust each other exchange messages at memory speed.
 *
 * Functions return a hamlyn_status: HAMLYN_OK, or an error, of which hamlyn_error is given a text with the remedy; null
 * for `error`: nobody reads it. `wait_ns` says how long a call may wait: HAMLYN_POLL, so many nanoseconds, or
 * HAMLYN_FOREVER; any other negative number is a time that is over, and the call polls. A signal does not end a wait: its handler runs, and the wait goes on.
 *
 * Handles. A manager belongs to the thread that opened it, with its end points, unless it was opened as shared; then any
 * thread may use each of them, one at a time. Null, a closed handle, one of another kind and one of another thread
 * are refused with an error. (A closed handle is told for sure until a thousand more of its kind were closed.) A child
 * of fork opens its own manager: each call with a handle of its parent is refused there (HAMLYN_BAD_HANDLE), closing
 * included, and changes nothing.
 *
 * Pointers. What is not said to be optional must not be null. Texts are UTF-8 and end with a zero. Data are read during
 * the call only. What is received stays where it landed until it is released; a message of a mailbox, until the next is taken.
 *
 * This file is generated from the library's source. */

#ifndef HAMLYN_H
#define HAMLYN_H

#include <stddef.h>
#include <stdint.h>

/**
 * Memory that only this program maps: for receiving and sending. The default.
 */
#define HAMLYN_AREA_PRIVATE 0

/**
 * Whole pages that may be shared with peers (hamlyn_share_region), present in full.
 */
#define HAMLYN_AREA_SHARED 1

/**
 * Whole pages that may be shared with peers. They appear when they are touched.
 */
#define HAMLYN_AREA_SPARSE 2

/**
 * Bytes of metadata that a message may carry.
 */
#define HAMLYN_METADATA_BYTES 60

/**
 * Bytes of the seed of a lane.
 */
#define HAMLYN_LANE_SEED_LENGTH_BYTES 96

/**
 * Number of its bytes that are significant.
 */
#define HAMLYN_LANE_SEED_USED_BYTES 60

/**
 * The link ended before the packet was acknowledged; it may have been delivered.
 */
#define HAMLYN_LINK_ENDED 4294967295

/**
 * Every asker is given what is offered, and it replaces what was offered under the item before.
 */
#define HAMLYN_OFFER_ALWAYS 0

/**
 * The first asker is given it; several offers of one item queue up.
 */
#define HAMLYN_OFFER_ONCE 1

/**
 * Every asker is given it while no offer of the item that is given once is left.
 */
#define HAMLYN_OFFER_AFTERWARDS 2

/**
 * The most bytes that can be offered under an item.
 */
#define HAMLYN_OFFER_BYTES_MAX 1024

/**
 * When a reader has no room, a publisher waits.
 */
#define HAMLYN_BLOCK 0

/**
 * The reader does not get the message; it is counted.
 */
#define HAMLYN_LOSE 1

/**
 * The same, but readers get the newest message, also if they come late. On this host that takes no further call of the publisher.
 */
#define HAMLYN_LATEST 2

/**
 * Bytes of a member.
 */
#define HAMLYN_MEMBER_LENGTH_BYTES 96

/**
 * Of these so many are used.
 */
#define HAMLYN_MEMBER_USED_BYTES 60

/**
 * Adds; wraps.
 */
#define HAMLYN_CHANGE_ADD 0

/**
 * Bitwise and.
 */
#define HAMLYN_CHANGE_AND 1

/**
 * Bitwise or.
 */
#define HAMLYN_CHANGE_OR 2

/**
 * Bitwise exclusive or.
 */
#define HAMLYN_CHANGE_XOR 3

/**
 * Stores the operand.
 */
#define HAMLYN_CHANGE_SWAP 4

/**
 * Stores the operand if the word is what is expected.
 */
#define HAMLYN_CHANGE_COMPARE_SWAP 5

/**
 * The lesser, of numbers with sign.
 */
#define HAMLYN_CHANGE_MIN 6

/**
 * The greater, of numbers with sign.
 */
#define HAMLYN_CHANGE_MAX 7

/**
 * Adds floating-point numbers: the operand has the bits of a float or double.
 */
#define HAMLYN_CHANGE_FLOAT_ADD 8

/**
 * The program's thread drives the interface, in its calls: lowest latency, fewest processors.
 */
#define HAMLYN_PROC 0

/**
 * A network processor, a thread of this process, drives it.
 */
#define HAMLYN_NP 1

/**
 * The program's thread transmits, the network processor receives.
 */
#define HAMLYN_INJECT 2

/**
 * The program's thread transmits, and receives while it polls; the network processor receives while it does not.
 */
#define HAMLYN_RECEIVE 3

/**
 * This user, and root, may be linked to the manager. The default.
 */
#define HAMLYN_ACCESS_SAME_USER 0

/**
 * The users and the groups that are listed, and nobody else.
 */
#define HAMLYN_ACCESS_LISTED 1

/**
 * Everybody on this host.
 */
#define HAMLYN_ACCESS_ANYONE 2

/**
 * Other hosts are reached if the environment says how (HAMLYN_SECRET and so on). The default.
 */
#define HAMLYN_NETWORK_ENVIRONMENT 0

/**
 * The manager stays on this host.
 */
#define HAMLYN_NETWORK_OFF 1

/**
 * Other hosts are reached as the hamlyn_network_options say.
 */
#define HAMLYN_NETWORK_ON 2

/**
 * As buffer_bytes_per_peer: none.
 */
#define HAMLYN_NO_BUFFER UINT32_MAX

/**
 * The entry of messages in fast mode: none.
 */
#define HAMLYN_NO_ENTRY 65535

/**
 * Bytes of the ticket of a region.
 */
#define HAMLYN_REGION_TICKET_LENGTH_BYTES 64

/**
 * Number of its bytes that are significant.
 */
#define HAMLYN_REGION_TICKET_USED_BYTES 64

/**
 * Holders read the region. The slot grants HAMLYN_RIGHT_READ alone.
 */
#define HAMLYN_REGION_READ_ONLY 0

/**
 * Holders read and write the region. The slot grants HAMLYN_RIGHT_WRITE.
 */
#define HAMLYN_REGION_WRITABLE 1

/**
 * In place of a link: every peer of this host that is linked.
 */
#define HAMLYN_ALL_LINKED UINT64_MAX

/**
 * Holders of the key may send into the slot.
 */
#define HAMLYN_RIGHT_WRITE 1

/**
 * They may read it (hamlyn_begin_read).
 */
#define HAMLYN_RIGHT_READ 2

/**
 * They may change words of it (hamlyn_begin_atomic), and so learn what they were.
 */
#define HAMLYN_RIGHT_ATOMIC 4

/**
 * They may do nothing: packets are checked and discarded.
 */
#define HAMLYN_RIGHT_NONE 8

/**
 * The slot's bounds and key alone guard it. The default.
 */
#define HAMLYN_MODE_NORMAL 0

/**
 * Besides, each metadata entry has limits, and a key instead of the slot's.
 */
#define HAMLYN_MODE_PARANOID 1

/**
 * As paranoid, and each entry lets in one message until it is armed again.
 */
#define HAMLYN_MODE_ONE_SHOT 2

/**
 * So long may a call wait that waits for ever.
 */
#define HAMLYN_FOREVER -1

/**
 * So long a call that does not wait.
 */
#define HAMLYN_POLL 0

/**
 * Bytes of the text of an error, its zero included.
 */
#define HAMLYN_ERROR_TEXT_BYTES 508

/**
 * Bytes of a seed.
 */
#define HAMLYN_SEED_LENGTH_BYTES 96

/**
 * Of these so many are used.
 */
#define HAMLYN_SEED_USED_BYTES 76

/**
 * Bytes of a ticket.
 */
#define HAMLYN_TICKET_LENGTH_BYTES 64

/**
 * Of these so many are used.
 */
#define HAMLYN_TICKET_USED_BYTES 52

/**
 * The handle of a source is a hamlyn_queue.
 */
#define HAMLYN_SOURCE_MESSAGES 0

/**
 * The handle of a source is a hamlyn_completion_queue.
 */
#define HAMLYN_SOURCE_COMPLETIONS 1

/**
 * The handle of a source is a hamlyn_shared_lane. It is ready as long as messages wait, also while the program has all buffers.
 */
#define HAMLYN_SOURCE_SHARED_LANE 2

/**
 * What became of a call. Zero is success; all others are errors, of which hamlyn_error has a text with the remedy.
 */
typedef enum {
    /**
     * It is done.
     */
    HAMLYN_OK = 0,
    /**
     * It was not done in the time that it was given; trying again may help. Nothing is lost.
     */
    HAMLYN_TIMED_OUT = 1,
    /**
     * An argument cannot be used: null, a length, a setting, a name.
     */
    HAMLYN_INVALID = 2,
    /**
     * A handle that was closed, is of another kind, is that of the process from which this one was
     * forked, or is none.
     */
    HAMLYN_BAD_HANDLE = 3,
    /**
     * The handle belongs to another thread, or another thread uses it now.
     */
    HAMLYN_OTHER_THREAD = 4,
    /**
     * A message of this handle is held, or a view: release it first. Or none is held that could be released. Or another has what is asked for.
     */
    HAMLYN_HELD = 5,
    /**
     * Nobody is there under that name, or nothing under that item.
     */
    HAMLYN_NOT_FOUND = 6,
    /**
     * The other side, or its access list or ours, does not want it.
     */
    HAMLYN_REFUSED = 7,
    /**
     * The peer is gone.
     */
    HAMLYN_PEER_LOST = 8,
    /**
     * The stream, service or sender has come to its end in good order.
     */
    HAMLYN_FINISHED = 9,
    /**
     * The message is too long for its receiver.
     */
    HAMLYN_TOO_LONG = 10,
    /**
     * A peer broke the rules of the protocol.
     */
    HAMLYN_MALFORMED = 11,
    /**
     * Notifications were lost: the manager's queue is too short.
     */
    HAMLYN_OVERRUN = 12,
    /**
     * A part of the message was sent when the time was over: its receiver must make itself ready again.
     */
    HAMLYN_CUT = 13,
    /**
     * The name, item, stream, group or address is taken.
     */
    HAMLYN_TAKEN = 14,
    /**
     * The system has no more memory or descriptors, or failed otherwise.
     */
    HAMLYN_SYSTEM = 15,
    /**
     * The library has a fault; please report it. The handle cannot be used any more.
     */
    HAMLYN_FAULT = 16,
    /**
     * A limit of the library is reached: give something back first, as the text says.
     */
    HAMLYN_LIMIT = 17,
} hamlyn_status;

/**
 * What happened.
 */
typedef enum {
    /**
     * There is a link to a peer.
     */
    HAMLYN_PEER_ARRIVED = 0,
    /**
     * A peer is gone.
     */
    HAMLYN_PEER_LEFT = 1,
    /**
     * A packet of this manager was not delivered; the text says which, and why.
     */
    HAMLYN_PACKET_REFUSED = 2,
    /**
     * `count` notifications were lost: open the manager with a longer queue.
     */
    HAMLYN_NOTIFICATIONS_LOST = 3,
    /**
     * `count` arrivals and departures are not told: ask for events more often.
     */
    HAMLYN_MISSED = 4,
    /**
     * Something that a later version of the library tells.
     */
    HAMLYN_OTHER = 5,
    /**
     * `count` bytes wait for a peer that takes nothing, half of what it has room for or more.
     */
    HAMLYN_BUFFERING = 6,
    /**
     * After that: the peer has taken all of them.
     */
    HAMLYN_DRAINED = 7,
    /**
     * `count` bytes of a peer wait for this program, which did not take them: half of the room or
     * more.
     */
    HAMLYN_BUFFERING_INCOMING = 8,
    /**
     * After that: this program has taken all of them.
     */
    HAMLYN_DRAINED_INCOMING = 9,
} hamlyn_event_kind;

/**
 * What became of a message that was sent.
 */
typedef enum {
    /**
     * It waits: its buffers must stay as they are.
     */
    HAMLYN_MESSAGE_PENDING = 0,
    /**
     * It was handed to the link whole: its buffers are free.
     */
    HAMLYN_MESSAGE_SENT = 1,
    /**
     * Its link was lost before all of it was handed over; its buffers are free.
     */
    HAMLYN_MESSAGE_FAILED = 2,
} hamlyn_completion;

/**
 * Why a packet was refused. Later versions of the library add reasons at the end.
 */
typedef enum {
    /**
     * The host has not set up the interface yet (Hamlyn 2.8).
     */
    HAMLYN_REFUSED_NOT_SET_UP = 0,
    /**
     * The host's periodic handshake stopped (Hamlyn 2.8).
     */
    HAMLYN_REFUSED_HANDSHAKE_LAPSED = 1,
    /**
     * No slot of that number was ever opened.
     */
    HAMLYN_REFUSED_NO_SUCH_SLOT = 2,
    /**
     * The slot was closed, perhaps opened anew under another generation.
     */
    HAMLYN_REFUSED_SLOT_CLOSED = 3,
    /**
     * The slot was revoked.
     */
    HAMLYN_REFUSED_SLOT_REVOKED = 4,
    /**
     * The key is not the slot's.
     */
    HAMLYN_REFUSED_BAD_KEY = 5,
    /**
     * The data would not lie within the slot.
     */
    HAMLYN_REFUSED_OUT_OF_BOUNDS = 6,
    /**
     * The metadata index names no entry of the slot.
     */
    HAMLYN_REFUSED_NO_METADATA_ENTRY = 7,
    /**
     * A fast-mode packet for a paranoid slot, which needs an entry.
     */
    HAMLYN_REFUSED_FAST_TO_PARANOID = 8,
    /**
     * The data would not lie within the entry's limits.
     */
    HAMLYN_REFUSED_OUT_OF_LIMITS = 9,
    /**
     * The key is not the entry's.
     */
    HAMLYN_REFUSED_BAD_ENTRY_KEY = 10,
    /**
     * The one-shot entry has had its message.
     */
    HAMLYN_REFUSED_ENTRY_SPENT = 11,
    /**
     * The slot does not grant this kind of access.
     */
    HAMLYN_REFUSED_NO_RIGHT = 12,
    /**
     * A kind of packet that this version does not know.
     */
    HAMLYN_REFUSED_UNKNOWN_KIND = 13,
    /**
     * A flag that this version does not know.
     */
    HAMLYN_REFUSED_UNKNOWN_FLAG = 14,
    /**
     * More than 60 bytes of metadata, or metadata beside fast mode's word.
     */
    HAMLYN_REFUSED_BAD_METADATA = 15,
    /**
     * The place is in the application's hands.
     */
    HAMLYN_REFUSED_PLACE_IN_USE = 16,
    /**
     * The packet says that its data were placed, but it does not lie in a region that its sender may write.
     */
    HAMLYN_REFUSED_NOT_GRANTED = 17,
    /**
     * A request whose data or metadata are not those of its kind.
     */
    HAMLYN_REFUSED_BAD_REQUEST = 18,
    /**
     * An atomic operation that this version does not know.
     */
    HAMLYN_REFUSED_NO_SUCH_OPERATION = 19,
    /**
     * An atomic operation on a word that is not at a multiple of its width.
     */
    HAMLYN_REFUSED_MISALIGNED = 20,
    /**
     * More requests of one link than are answered at a time.
     */
    HAMLYN_REFUSED_TOO_MANY_REQUESTS = 21,
    /**
     * No port of that name is open.
     */
    HAMLYN_REFUSED_PORT_CLOSED = 22,
    /**
     * The port is of another group than the message.
     */
    HAMLYN_REFUSED_WRONG_GROUP = 23,
    /**
     * The port has no handler of that number.
     */
    HAMLYN_REFUSED_NO_SUCH_HANDLER = 24,
    /**
     * The port is parked: its owner keeps no memory ready for it.
     */
    HAMLYN_REFUSED_NOT_RESIDENT = 25,
    /**
     * The messages that wait at the port, together or those of this sender, leave no room.
     */
    HAMLYN_REFUSED_QUEUE_FULL = 26,
} hamlyn_refusal;

/**
 * Memory for messages. Other objects that use it keep it when its handle is closed.
 */
typedef struct hamlyn_area hamlyn_area;

/**
 * A region of a peer that this manager has attached.
 */
typedef struct hamlyn_attached hamlyn_attached;

/**
 * A client of a service.
 */
typedef struct hamlyn_client hamlyn_client;

/**
 * A completion queue: the ends of what was given to it (hamlyn_track_send, hamlyn_track_fence, hamlyn_track_operation, hamlyn_track_word), each
 * with a number of the program's own. Each takes a place until its completion is fetched, so no completion is lost. They come in any order.
 */
typedef struct hamlyn_completion_queue hamlyn_completion_queue;

/**
 * Counts completions of operations. Any thread may use it, one at a time.
 */
typedef struct hamlyn_counter hamlyn_counter;

/**
 * The receiving end of datagrams.
 */
typedef struct hamlyn_datagram_receiver hamlyn_datagram_receiver;

/**
 * A sending end of datagrams.
 */
typedef struct hamlyn_datagram_sender hamlyn_datagram_sender;

/**
 * A call that is answered later. Belongs to the thread that put it off.
 */
typedef struct hamlyn_deferred_call hamlyn_deferred_call;

/**
 * A manager that no thread has.
 */
typedef struct hamlyn_detached hamlyn_detached;

/**
 * The receiving end of a group.
 */
typedef struct hamlyn_group_receiver hamlyn_group_receiver;

/**
 * A member of a group: the right to send a part.
 */
typedef struct hamlyn_group_sender hamlyn_group_sender;

/**
 * The program's end of an area in pieces that change hands: it sees the pieces that it has, and opens them to peers again.
 */
typedef struct hamlyn_handover hamlyn_handover;

/**
 * Access to the memory that a ticket names. Up to 64 operations may be outstanding.
 */
typedef struct hamlyn_initiator hamlyn_initiator;

/**
 * A record that is kept. Its sender is told of memory in order: it has to wait, or the stream has to grow, as long as an old record is kept.
 */
typedef struct hamlyn_kept_record hamlyn_kept_record;

/**
 * A message of a publisher that is kept.
 */
typedef struct hamlyn_kept_sample hamlyn_kept_sample;

/**
 * The receiving end of a lane.
 */
typedef struct hamlyn_lane hamlyn_lane;

/**
 * The sending end of a lane.
 */
typedef struct hamlyn_lane_sender hamlyn_lane_sender;

/**
 * The receiving end of a mailbox.
 */
typedef struct hamlyn_mailbox_receiver hamlyn_mailbox_receiver;

/**
 * A sending end of a mailbox.
 */
typedef struct hamlyn_mailbox_sender hamlyn_mailbox_sender;

/**
 * An interface and its end points, found by others under its name. Belongs to the thread that opened it, with all its end points,
 * unless it was opened as shared.
 */
typedef struct hamlyn_manager hamlyn_manager;

/**
 * A call whose reply has not been taken. Closing it cancels it.
 */
typedef struct hamlyn_pending_call hamlyn_pending_call;

/**
 * A pool of this program's. Any thread may use it, one at a time.
 */
typedef struct hamlyn_pool hamlyn_pool;

/**
 * The publishing end.
 */
typedef struct hamlyn_publisher hamlyn_publisher;

/**
 * A notification queue, read by this program alone.
 */
typedef struct hamlyn_queue hamlyn_queue;

/**
 * A region, in the hands of the slot's owner.
 */
typedef struct hamlyn_region hamlyn_region;

/**
 * A service.
 */
typedef struct hamlyn_service hamlyn_service;

/**
 * The receiving end of a shared lane.
 */
typedef struct hamlyn_shared_lane hamlyn_shared_lane;

/**
 * A pool of a peer's, which this program reads. Any thread may use it, one at a time.
 */
typedef struct hamlyn_shared_pool hamlyn_shared_pool;

/**
 * A slot of this program.
 */
typedef struct hamlyn_slot hamlyn_slot;

/**
 * The receiving end of a stream.
 */
typedef struct hamlyn_stream_receiver hamlyn_stream_receiver;

/**
 * The sending end of a stream.
 */
typedef struct hamlyn_stream_sender hamlyn_stream_sender;

/**
 * A reading end.
 */
typedef struct hamlyn_subscriber hamlyn_subscriber;

/**
 * The receiving end of tagged writes, and the link over which the last tag came.
 */
typedef struct hamlyn_tag_receiver hamlyn_tag_receiver;

/**
 * A sending end of tagged writes.
 */
typedef struct hamlyn_tag_sender hamlyn_tag_sender;

/**
 * A terminus, and a ticket that can be sent to.
 */
typedef struct hamlyn_target hamlyn_target;

/**
 * A send terminus.
 */
typedef struct hamlyn_terminus hamlyn_terminus;

/**
 * Memory that is mapped here and that others may write at any time. Any thread may use it, one at a time.
 */
typedef struct hamlyn_window hamlyn_window;

/**
 * Room for what is said of an error. It need not be set before a call, and is not changed by a call that succeeds.
 */
typedef struct {
    /**
     * As the function returned it.
     */
    hamlyn_status status;
    /**
     * What happened to which object, and the remedy; ends with a zero.
     */
    char text[HAMLYN_ERROR_TEXT_BYTES];
} hamlyn_error;

/**
 * An atomic change of a word.
 */
typedef struct {
    /**
     * HAMLYN_CHANGE_ADD and so on.
     */
    uint32_t change;
    /**
     * Bits of the word: 64, or 32; 0: 64.
     */
    uint32_t bits;
    /**
     * With what; of 32 bits the lower half.
     */
    uint64_t operand;
    /**
     * What HAMLYN_CHANGE_COMPARE_SWAP expects.
     */
    uint64_t expected;
} hamlyn_atomic_change;

/**
 * A packet that was not delivered.
 */
typedef struct {
    /**
     * The number of the interface that it was for; 0 if that is not known any more.
     */
    uint64_t interface_number;
    /**
     * The place in the slot that it was for.
     */
    uint64_t offset;
    /**
     * Its word in fast mode, or its delta.
     */
    uint64_t word;
    /**
     * The slot that it was for.
     */
    uint32_t slot;
    /**
     * How many bytes it has.
     */
    uint32_t length_bytes;
    /**
     * A number of hamlyn_refusal, or of a later version of the library; HAMLYN_LINK_ENDED.
     */
    uint32_t reason;
    /**
     * The metadata entry that it was for; HAMLYN_NO_ENTRY in fast mode.
     */
    uint16_t entry;
} hamlyn_undelivered;

/**
 * The end of what was given to a completion queue, or a packet that came back.
 */
typedef struct {
    /**
     * The number that it was given to the queue with; of a packet that came back that of its link (hamlyn_set_link_context).
     */
    uint64_t context;
    /**
     * Of an operation that was given by hamlyn_track_word: the word before its change, or as it was read. Otherwise 0.
     */
    uint64_t word;
    /**
     * HAMLYN_OK, or the status of the same error in the call that waits: hamlyn_fence_link, hamlyn_finish.
     */
    hamlyn_status status;
    /**
     * Not 0: a packet came back, and `packet` says which (hamlyn_track_refusals).
     */
    uint32_t is_returned;
    /**
     * The packet that came back; otherwise zeros.
     */
    hamlyn_undelivered packet;
} hamlyn_work_completion;

/**
 * A message that is held: where it lies, and how long it is. Valid until it is released, or its handle closed.
 */
typedef struct {
    /**
     * Its bytes. Nobody writes them while the message is held.
     */
    const void *data;
    /**
     * How many.
     */
    size_t length_bytes;
} hamlyn_message;

/**
 * A peer, as the kernel vouches on one host and the handshake between hosts. The name that a peer gives itself is not in here.
 */
typedef struct {
    /**
     * The number of its host; 0 is this one.
     */
    uint32_t node;
    /**
     * Its user.
     */
    uint32_t user;
    /**
     * Its group; 0 if it is on another host.
     */
    uint32_t group;
    /**
     * Its process; 0 if that is not visible here.
     */
    uint32_t process;
    /**
     * The number of its interface, which no other has.
     */
    uint64_t interface_number;
    /**
     * The link over which it is reached (hamlyn_disconnect, hamlyn_check_link).
     */
    uint64_t link;
} hamlyn_peer;

/**
 * A ticket: the place in the receiver's memory, and the key that guards it. Who has it can send there, until the receiver takes it
 * back. May be copied and sent as bytes.
 */
typedef struct {
    /**
     * Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_TICKET_USED_BYTES alone; the others are 0.
     */
    uint8_t bytes[HAMLYN_TICKET_LENGTH_BYTES];
} hamlyn_ticket;

/**
 * What an entry lets in, and what came there last.
 */
typedef struct {
    /**
     * Not 0 while a one-shot entry waits for its message.
     */
    uint32_t armed;
    /**
     * Bytes of metadata that the last message with metadata brought.
     */
    uint32_t metadata_bytes;
    /**
     * Those bytes; of those after them nothing is said.
     */
    uint8_t metadata[HAMLYN_METADATA_BYTES];
    /**
     * Sum of what has come of a message; 0 when nothing or all of it has.
     */
    uint64_t accumulator;
    /**
     * What hamlyn_set_entry_class has set.
     */
    uint64_t receive_class;
    /**
     * The key that packets must carry in the paranoid modes.
     */
    uint64_t key;
    /**
     * The first byte that may be touched, as an offset in the slot.
     */
    uint64_t low;
    /**
     * The first byte above those that may be touched.
     */
    uint64_t high;
} hamlyn_entry;

/**
 * An event.
 */
typedef struct {
    /**
     * What happened.
     */
    hamlyn_event_kind kind;
    /**
     * The peer that came or left, takes nothing, or sent what was not taken; zeros otherwise.
     */
    hamlyn_peer peer;
    /**
     * How many; 0 where nothing is counted.
     */
    uint64_t count;
} hamlyn_event;

/**
 * The state of a slot.
 */
typedef struct {
    /**
     * Bytes that it covers.
     */
    uint64_t length_bytes;
    /**
     * Packets that were refused, for all reasons (hamlyn_slot_refusals).
     */
    uint64_t refusals;
    /**
     * HAMLYN_RIGHT_WRITE and so on, summed; HAMLYN_RIGHT_NONE.
     */
    uint32_t rights;
    /**
     * HAMLYN_MODE_NORMAL and so on.
     */
    uint32_t mode;
    /**
     * How many metadata entries it has.
     */
    uint32_t entries;
    /**
     * Bits of its accumulators.
     */
    uint32_t counting_bits;
    /**
     * Regions that are shared.
     */
    uint32_t grants;
    /**
     * Not 0: it was revoked.
     */
    uint32_t revoked;
} hamlyn_slot_info;

/**
 * The state of a mailbox.
 */
typedef struct {
    /**
     * Messages that wait in its queue.
     */
    uint64_t waiting;
    /**
     * Messages that were put into its queue so far, as they were not taken in turn.
     */
    uint64_t queued;
    /**
     * Messages that were refused, for all reasons (hamlyn_mailbox_refusals).
     */
    uint64_t refusals;
    /**
     * Bytes of its queue that the messages there take.
     */
    uint32_t waiting_bytes;
    /**
     * Bytes that its queue holds.
     */
    uint32_t queue_bytes;
} hamlyn_mailbox_info;

/**
 * What a publisher knows of its readers.
 */
typedef struct {
    /**
     * How many readers there are.
     */
    uint64_t readers;
    /**
     * Messages that readers did not get because they were slow.
     */
    uint64_t lost;
    /**
     * Readers that lost their place because they broke the protocol.
     */
    uint64_t misbehaved;
    /**
     * Messages that can be had on loan, as far as is known: hamlyn_poll_publisher takes in what was given back.
     */
    uint64_t chunks_free;
} hamlyn_publisher_info;

/**
 * What a subscriber knows of its publisher.
 */
typedef struct {
    /**
     * Messages that it did not get.
     */
    uint64_t lost;
    /**
     * Bytes of the longest message.
     */
    uint32_t message_bytes_max;
    /**
     * How many messages it may have that it has not given back.
     */
    uint32_t depth;
    /**
     * Not 0: messages are read where the publisher wrote them; otherwise they are copied to here.
     */
    uint32_t reads_in_place;
} hamlyn_subscriber_info;

/**
 * Pieces of an area that change hands.
 */
typedef struct {
    /**
     * How many there are.
     */
    uint32_t pieces;
    /**
     * Bytes of each.
     */
    uint32_t piece_bytes;
    /**
     * How many of them are in the program's hands now.
     */
    uint32_t held;
    /**
     * Of how many there are views (hamlyn_view_pieces).
     */
    uint32_t viewed;
} hamlyn_handover_info;

/**
 * Settings with which a lane is opened; 0 in a field means its default.
 */
typedef struct {
    /**
     * Number of buffers, 1 to 4,096. Default 16.
     */
    uint32_t buffers;
    /**
     * Bytes of each, 1 to 128 MiB. Default 4,096.
     */
    uint32_t buffer_bytes;
} hamlyn_lane_options;

/**
 * All that the sending end of a lane needs. A capability, like a ticket; to be used by one holder, once. May be copied and sent as bytes.
 */
typedef struct {
    /**
     * Meaningful to the library only. Programs in Rust take the first HAMLYN_LANE_SEED_USED_BYTES alone; the others are 0.
     */
    uint8_t bytes[HAMLYN_LANE_SEED_LENGTH_BYTES];
} hamlyn_lane_seed;

/**
 * A message in a buffer of a lane or of a shared lane.
 */
typedef struct {
    /**
     * Its bytes: valid until its buffer is given back, or the lane is closed.
     */
    const void *data;
    /**
     * Number of bytes.
     */
    size_t length_bytes;
    /**
     * The link over which it came (hamlyn_link_peer).
     */
    uint64_t link;
    /**
     * The number that its sender gave it.
     */
    uint32_t tag;
    /**
     * The number of its buffer.
     */
    uint32_t buffer;
} hamlyn_lane_message;

/**
 * The state of a lane's sending end.
 */
typedef struct {
    /**
     * The link to the receiver (hamlyn_fence_link, hamlyn_track_fence).
     */
    uint64_t link;
    /**
     * Number of buffers.
     */
    uint32_t buffers;
    /**
     * Bytes of each: the longest message.
     */
    uint32_t buffer_bytes;
    /**
     * Number of free buffers, as far as credit has come.
     */
    uint32_t credits;
} hamlyn_lane_sender_info;

/**
 * How a link to another host is, and what its transport did. The counters never go down.
 */
typedef struct {
    /**
     * Not 0: frames are encrypted and authenticated; otherwise they are in the clear.
     */
    uint32_t is_encrypted;
    /**
     * The longest frame at present, in bytes.
     */
    uint32_t frame_bytes;
    /**
     * Over how many paths packets go.
     */
    uint32_t paths;
    /**
     * Packets that came back, were not fetched, and were forgotten because there were too many.
     */
    uint64_t forgotten;
} hamlyn_link_state;

/**
 * The use that messages of this program to a peer of this host have made of the memory that it lends with buffer_bytes_per_peer.
 */
typedef struct {
    /**
     * How often they went on there.
     */
    uint64_t episodes;
    /**
     * Bytes that were written there, in all.
     */
    uint64_t spilled_bytes;
    /**
     * Those that the peer has not taken, at present: an upper bound.
     */
    uint64_t waiting_bytes;
    /**
     * The most that these were when somebody looked, or when the peer had taken all.
     */
    uint64_t most_bytes;
    /**
     * Length of the memory.
     */
    uint64_t log_bytes;
    /**
     * Times that messages were held back, as three quarters of the memory waited.
     */
    uint64_t pauses;
    /**
     * Pages of the memory that are present, at present: an upper bound.
     */
    uint64_t pages;
    /**
     * The most that these were, as for most_bytes.
     */
    uint64_t most_pages;
} hamlyn_log_use;

/**
 * What a publisher is opened with; 0 in a field means its default.
 */
typedef struct {
    /**
     * Bytes of the longest message. Default 1 MiB.
     */
    uint32_t message_bytes;
    /**
     * Messages at a time, those on loan and those that readers have. Default 16.
     */
    uint32_t chunks;
    /**
     * Messages that a reader may have that it has not given back, up to 1,024. Default 4.
     */
    uint16_t depth;
    /**
     * Readers, up to 1,024. Default 64.
     */
    uint16_t readers;
    /**
     * What is done when a reader has no room: HAMLYN_BLOCK, the default, HAMLYN_LOSE or HAMLYN_LATEST.
     */
    uint32_t slow_readers;
} hamlyn_publisher_options;

/**
 * Settings with which a mailbox is opened; 0 in a field means its default.
 */
typedef struct {
    /**
     * Bytes of its queue, 64 to 2^30. A message there counts 64 for each 64 bytes that it
     * begins, and 64 at least. Default 1 MiB.
     */
    uint32_t queue_bytes;
    /**
     * Bytes of the queue that the messages of one peer may take. Default: half of it.
     */
    uint32_t peer_bytes;
} hamlyn_mailbox_options;

/**
 * How other hosts are reached, and this one by them: set all of it to 0 first. Exactly one of a secret, keys, and no security is chosen.
 * Names of files are read when the manager is opened.
 */
typedef struct {
    /**
     * What this host is called by the others. Null: what the system says.
     */
    const char *host;
    /**
     * An address of this host, perhaps with a port, where frames are taken. Null: all addresses, any port.
     */
    const char *listen;
    /**
     * A file that says where other hosts are. Null: none.
     */
    const char *hosts_file;
    /**
     * A file with the secret that all hosts of the cluster hold.
     */
    const char *secret_file;
    /**
     * A file with this host's own key.
     */
    const char *key_file;
    /**
     * A file with the names and public keys of the hosts that are known; with `key_file`.
     */
    const char *known_file;
    /**
     * Not 0: no security. For a network that no attacker reaches.
     */
    uint32_t insecure;
    /**
     * Over how many paths packets are sent to each peer, up to 16. 0: 1.
     */
    uint32_t paths;
    /**
     * How long a peer may be silent before it is asked whether it is there, up to a minute. 0: 2 s; negative: it is never asked.
     */
    int64_t silence_ns;
    /**
     * How long a peer may take nothing, though it answers. 0: 60 s.
     */
    int64_t no_progress_ns;
    /**
     * The port of this host's name service. 0: 7407.
     */
    uint16_t name_service_port;
} hamlyn_network_options;

/**
 * What a manager is opened with. Begin with hamlyn_default_options, which sets the first field; later versions of the library add
 * fields at the end, and take those of an older program to be defaults. 0 in a field means its default.
 */
typedef struct {
    /**
     * Bytes of this structure, as the program was compiled with.
     */
    size_t struct_bytes;
    /**
     * The name under which others find it: 1 to 64 of A-Z a-z 0-9 . _ / and the hyphen. Null: none.
     */
    const char *name;
    /**
     * Interfaces of different namespaces do not see each other. Null: what HAMLYN_NAMESPACE says, or "default".
     */
    const char *namespace_name;
    /**
     * Who drives the interface: HAMLYN_PROC, the default, HAMLYN_NP, HAMLYN_INJECT or HAMLYN_RECEIVE.
     */
    uint32_t strategy;
    /**
     * Not 0: several threads use the manager and its end points, each of them one at a time. Each call takes a lock.
     */
    uint32_t shared;
    /**
     * Messages that all its receivers together may have outstanding. 0: 4,096.
     */
    uint32_t queue_entries;
    /**
     * How long a call that waits polls at most before it sleeps. Negative: 20 us, or none if there is but one processor.
     */
    int64_t spin_ns;
    /**
     * Who may be linked to it: HAMLYN_ACCESS_SAME_USER, the default, HAMLYN_ACCESS_LISTED or HAMLYN_ACCESS_ANYONE.
     */
    uint32_t access;
    /**
     * How many users are listed.
     */
    uint32_t users_count;
    /**
     * Numbers of users; for HAMLYN_ACCESS_LISTED.
     */
    const uint32_t *users;
    /**
     * Numbers of groups; a peer's effective group counts.
     */
    const uint32_t *groups;
    /**
     * How many groups are listed.
     */
    uint32_t groups_count;
    /**
     * HAMLYN_NETWORK_ENVIRONMENT, the default, HAMLYN_NETWORK_OFF or HAMLYN_NETWORK_ON.
     */
    uint32_t network;
    /**
     * For HAMLYN_NETWORK_ON.
     */
    const hamlyn_network_options *network_options;
    /**
     * Cells of each ring in which it receives, a power of two from 2 to 65,536; each has 64 bytes. 0: 256.
     */
    uint32_t cells;
    /**
     * Bytes of each such ring for longer payloads, whole pages, 128 KiB to 64 MiB. 0: as the processor's cache suggests.
     */
    uint32_t arena_bytes;
    /**
     * The largest payload of a packet that it takes, 64 bytes to 64 KiB. 0: 64 KiB.
     */
    uint32_t payload_bytes_max;
    /**
     * Links at a time. 0: 4,096.
     */
    uint32_t links_max;
    /**
     * Handshakes at a time that others began. 0: 64.
     */
    uint32_t handshakes_max;
    /**
     * Messages that may wait for each destination, up to 4,095. 0: 63.
     */
    uint32_t terminus_entries;
    /**
     * How long a peer that connects may take for the handshake. 0: 1 s.
     */
    uint64_t handshake_timeout_ns;
    /**
     * Bytes of all such memory as buffer_bytes_per_peer, of all peers together. A peer gets an eighth of what is left at most, or 1 MiB;
     * those that come last get nothing. 0: 1 GiB.
     */
    uint64_t buffer_bytes_total;
    /**
     * How long a ring to a peer must be full, with nothing taken from it, before messages go to that memory of the peer, at least; up to
     * 20 times as long where the peer often went on by then. 0: 100 us; negative: no time at all.
     */
    int64_t patience_ns;
    /**
     * Bytes in which each peer of this host goes on when its ring is full and this manager takes nothing: a power of two from 1 MiB to
     * 512 MiB. It takes no memory until it is used; the sender pays for that. 0: 16 MiB; HAMLYN_NO_BUFFER: none, then such a peer waits.
     */
    uint32_t buffer_bytes_per_peer;
    /**
     * Zero.
     */
    uint32_t reserved;
} hamlyn_options;

/**
 * A part of a group's place, and of what its receiver counts. A capability, like a ticket; to be used by one holder, once. May be copied
 * and sent as bytes.
 */
typedef struct {
    /**
     * Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_MEMBER_USED_BYTES alone; the others are 0.
     */
    uint8_t bytes[HAMLYN_MEMBER_LENGTH_BYTES];
} hamlyn_member;

/**
 * Pieces of memory at equal distances, of one length each.
 */
typedef struct {
    /**
     * Where the first begins, in the ticket's place.
     */
    uint64_t offset;
    /**
     * How far the beginning of each is from that of the one before.
     */
    uint64_t stride_bytes;
    /**
     * How long each is.
     */
    uint64_t piece_bytes;
    /**
     * How many there are.
     */
    uint64_t pieces;
} hamlyn_strided;

/**
 * A chunk that was taken from a pool.
 */
typedef struct {
    /**
     * Its first byte, for this program to write and read until the chunk is given back or the pool is closed. Peers that have the pool read
     * it at any time.
     */
    void *data;
    /**
     * How many bytes were asked for.
     */
    size_t length_bytes;
    /**
     * Where it lies in the pool, for hamlyn_read_shared_pool of peers.
     */
    uint64_t offset;
    /**
     * Its number, for hamlyn_give_back_chunk.
     */
    uint32_t index;
} hamlyn_chunk;

/**
 * What a pool is like.
 */
typedef struct {
    /**
     * Bytes of all of it, as peers map it.
     */
    uint64_t length_bytes;
    /**
     * The most bytes that a chunk has.
     */
    size_t chunk_bytes;
    /**
     * How many chunks there are.
     */
    uint32_t chunks;
    /**
     * How many are free.
     */
    uint32_t free;
} hamlyn_pool_info;

/**
 * A message has arrived whole.
 */
typedef struct {
    /**
     * The number of the slot that it came to (hamlyn_slot_number).
     */
    uint32_t slot;
    /**
     * Its metadata entry; HAMLYN_NO_ENTRY in fast mode.
     */
    uint16_t entry;
    /**
     * In fast mode the word of the message; otherwise the receive class of its entry.
     */
    uint64_t word;
    /**
     * The link over which it, or the last packet of it, came: hamlyn_link_peer says whose that is.
     */
    uint64_t link;
} hamlyn_notification;

/**
 * The right to attach a region, for the peers with which it is shared. May be copied and sent as bytes.
 */
typedef struct {
    /**
     * Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_REGION_TICKET_USED_BYTES alone; the others are 0.
     */
    uint8_t bytes[HAMLYN_REGION_TICKET_LENGTH_BYTES];
} hamlyn_region_ticket;

/**
 * What a service is opened with; 0 in a field means its default.
 */
typedef struct {
    /**
     * Bytes of the longest request, up to 128 MiB. Default 4,096.
     */
    uint32_t request_bytes;
    /**
     * Bytes of the longest reply, up to 128 MiB. Default 4,096.
     */
    uint32_t reply_bytes;
    /**
     * Calls that each client may have outstanding, up to 4,096. Default 8.
     */
    uint16_t outstanding;
    /**
     * Clients at a time. Default: as many as the manager's queue has entries for, 256 at most.
     */
    uint16_t clients;
} hamlyn_service_options;

/**
 * Settings with which a shared lane is opened; 0 in a field means its default.
 */
typedef struct {
    /**
     * Its key: who knows it may send. Default: a random one.
     */
    uint64_t key;
    /**
     * The group of those who may send. It is no secret. Default: group 0.
     */
    uint64_t group;
    /**
     * Number of buffers that the program may have at a time, 1 to 4,096. Default 64.
     */
    uint32_t buffers;
    /**
     * Bytes of each, 1 to 65,536: the longest message. Default 4,096.
     */
    uint32_t buffer_bytes;
    /**
     * Number of tags, from 0 on, 1 to 4,096. Default 4,096.
     */
    uint32_t tags;
    /**
     * Bytes of the queue in which messages wait for a buffer, 64 to 2^30. A message there counts 64 for each 64 bytes that it begins, and 64 at
     * least. Default 1 MiB.
     */
    uint32_t queue_bytes;
    /**
     * Bytes of the queue that messages of one peer may take. Default: half of it.
     */
    uint32_t peer_bytes;
} hamlyn_shared_lane_options;

/**
 * The state of a shared lane.
 */
typedef struct {
    /**
     * Messages that wait in its queue.
     */
    uint64_t waiting;
    /**
     * Messages that were put into its queue so far, as they were not taken in turn.
     */
    uint64_t queued;
    /**
     * Messages that were refused, for all reasons (hamlyn_shared_lane_refusals).
     */
    uint64_t refusals;
    /**
     * Messages that were dropped because they are longer than a buffer: their senders did not keep to the ticket.
     */
    uint64_t too_long;
    /**
     * Buffers that the program has.
     */
    uint32_t taken;
    /**
     * Bytes of its queue that the messages there take.
     */
    uint32_t waiting_bytes;
    /**
     * Bytes that its queue holds.
     */
    uint32_t queue_bytes;
} hamlyn_shared_lane_info;

/**
 * What a slot is opened with; 0 in a field means its default.
 */
typedef struct {
    /**
     * Where in the area the slot begins.
     */
    uint64_t offset;
    /**
     * How many bytes it covers. Default: to the end of the area.
     */
    uint64_t length_bytes;
    /**
     * Where arrivals are announced; null: nowhere.
     */
    hamlyn_queue *queue;
    /**
     * Sums of HAMLYN_RIGHT_WRITE, the default, HAMLYN_RIGHT_READ and HAMLYN_RIGHT_ATOMIC; or HAMLYN_RIGHT_NONE.
     */
    uint32_t rights;
    /**
     * HAMLYN_MODE_NORMAL, the default, HAMLYN_MODE_PARANOID or HAMLYN_MODE_ONE_SHOT.
     */
    uint32_t mode;
    /**
     * Metadata entries, up to 65,535; 0: messages in fast mode and silent ones only.
     */
    uint32_t entries;
    /**
     * Bits of the packet accumulators: 32, the default, or 64.
     */
    uint32_t counting_bits;
    /**
     * Not 0: the slot counts what is stored into it (hamlyn_store), apart for each entry. It has no queue, and counts 64 bits.
     */
    uint32_t counts_stores;
} hamlyn_slot_options;

/**
 * A ticket's fields, as its sender sees them.
 */
typedef struct {
    /**
     * The number of the interface that it leads to.
     */
    uint64_t interface_number;
    /**
     * The host of that interface, as the interface numbers it; its own is 0.
     */
    uint32_t node;
    /**
     * The user of that interface.
     */
    uint32_t user;
    /**
     * Its slot.
     */
    uint32_t slot;
    /**
     * The metadata entry; HAMLYN_NO_ENTRY in fast mode.
     */
    uint16_t entry;
    /**
     * Bits of the slot's accumulators.
     */
    uint16_t counting_bits;
    /**
     * Where in the slot its place begins.
     */
    uint64_t offset;
    /**
     * How many bytes its place has.
     */
    uint64_t length_bytes;
} hamlyn_ticket_info;

/**
 * What a stream is opened with; 0 in a field means its default.
 */
typedef struct {
    /**
     * Pieces at first, up to 65,535. Default 64.
     */
    uint32_t pieces;
    /**
     * Bytes of a piece, a power of two from 64. Default 16 KiB, what a packet carries.
     */
    uint32_t piece_bytes;
    /**
     * Bytes that the stream may grow to; also bounds a record. Default 64 MiB.
     */
    uint64_t limit_bytes;
    /**
     * Not 0: the sender may use all of limit_bytes from the beginning, 1 TiB at most, so that it goes on while this program reads nothing;
     * pieces is not used, and pieces have 4 KiB or more. This memory takes pages as records come, and gives them back as they are read; if
     * memory is short then, the system ends a process. If this process is stopped as a whole, what is sent waits in the memory of
     * buffer_bytes_per_peer, which must be as large.
     */
    uint32_t ahead;
    /**
     * Zero.
     */
    uint32_t reserved;
} hamlyn_stream_options;

/**
 * What the sending end of a stream grows from. A capability, like a ticket; to be used by one holder, once. May be copied and sent as bytes.
 */
typedef struct {
    /**
     * Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_SEED_USED_BYTES alone; the others are 0.
     */
    uint8_t bytes[HAMLYN_SEED_LENGTH_BYTES];
} hamlyn_seed;

/**
 * A message to be sent; set all of it to 0 first, then what it needs.
 */
typedef struct {
    /**
     * Its bytes. Not used by hamlyn_send_gather.
     */
    const void *data;
    /**
     * How many.
     */
    size_t length_bytes;
    /**
     * Where in the ticket's place they go.
     */
    uint64_t offset;
    /**
     * In fast mode: a word of the program's, which the notification tells.
     */
    uint64_t word;
    /**
     * To an entry: up to HAMLYN_METADATA_BYTES of metadata.
     */
    const void *metadata;
    /**
     * How many.
     */
    size_t metadata_bytes;
    /**
     * A part of the count of a message that several send together (hamlyn_divide_share); 0: it is whole.
     */
    uint64_t share;
    /**
     * Not 0: it lands unannounced.
     */
    uint32_t silent;
} hamlyn_outgoing_message;

/**
 * A part of a send-buffer area (hamlyn_bind_area).
 */
typedef struct {
    /**
     * Where in the area it begins.
     */
    uint64_t offset;
    /**
     * How many bytes it has.
     */
    uint64_t length_bytes;
    /**
     * Which area.
     */
    uint16_t tag;
} hamlyn_piece;

/**
 * Something that hamlyn_await_any looks at.
 */
typedef struct {
    /**
     * HAMLYN_SOURCE_MESSAGES, HAMLYN_SOURCE_COMPLETIONS or HAMLYN_SOURCE_SHARED_LANE.
     */
    uint32_t kind;
    /**
     * A handle of that kind.
     */
    void *handle;
} hamlyn_source;

/**
 * The place of a window, and the accesses that it allows.
 */
typedef struct {
    /**
     * Its first byte, until the window is closed. Others access the memory at any time: use atomic loads and stores, or volatile ones.
     */
    void *data;
    /**
     * Its number of bytes.
     */
    uint64_t length_bytes;
    /**
     * Not 0: it may be written. Otherwise the kernel ends a program that does.
     */
    uint32_t is_writable;
    /**
     * Not 0: the memory is still that of its owner. What is stored after that reaches nobody.
     */
    uint32_t lasts;
} hamlyn_window_info;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Allocates an area, zeroed: HAMLYN_AREA_PRIVATE, HAMLYN_AREA_SHARED or HAMLYN_AREA_SPARSE; the last two are rounded up to whole
 * pages. HAMLYN_SYSTEM if there is no memory.
 */
hamlyn_status hamlyn_allocate_area(hamlyn_manager *manager,
                                   uint64_t length_bytes,
                                   uint32_t area_kind,
                                   hamlyn_area **area,
                                   hamlyn_error *error);

/**
 * Allocates an area of HAMLYN_AREA_SPARSE at a chosen address, a multiple of 4,096: for programs whose peers map it at the same one.
 * HAMLYN_TAKEN if something is mapped in that range already, which stays as it is. HAMLYN_SYSTEM if there is no memory.
 */
hamlyn_status hamlyn_allocate_area_at(hamlyn_manager *manager,
                                      uint64_t length_bytes,
                                      void *address,
                                      hamlyn_area **area,
                                      hamlyn_error *error);

/**
 * How many bytes an area has.
 */
hamlyn_status hamlyn_area_bytes(hamlyn_area *area, uint64_t *length_bytes, hamlyn_error *error);

/**
 * Copies out of an area. Bytes that peers write meanwhile come out old or new.
 */
hamlyn_status hamlyn_copy_from_area(hamlyn_area *area,
                                    uint64_t offset,
                                    void *into,
                                    size_t length_bytes,
                                    hamlyn_error *error);

/**
 * Copies into an area. HAMLYN_HELD if it changes hands and was handed over to a slot (hamlyn_allocate_handover); so for all that write it.
 */
hamlyn_status hamlyn_copy_to_area(hamlyn_area *area,
                                  uint64_t offset,
                                  const void *data,
                                  size_t length_bytes,
                                  hamlyn_error *error);

/**
 * Fills a part of an area with one value.
 */
hamlyn_status hamlyn_fill_area(hamlyn_area *area,
                               uint64_t offset,
                               uint64_t length_bytes,
                               uint8_t value,
                               hamlyn_error *error);

/**
 * The word at `offset`, whole if that is a multiple of 8. It is loaded before whatever the program loads afterwards.
 */
hamlyn_status hamlyn_load_from_area(hamlyn_area *area,
                                    uint64_t offset,
                                    uint64_t *value,
                                    hamlyn_error *error);

/**
 * Stores a word at `offset`, whole if that is a multiple of 8.
 */
hamlyn_status hamlyn_store_to_area(hamlyn_area *area, uint64_t offset, uint64_t value, hamlyn_error *error);

/**
 * Changes the word at `offset`, a multiple of its width, as one-sided operations of peers do, and says what it was. Null for
 * `before`: nobody asks.
 */
hamlyn_status hamlyn_change_area(hamlyn_area *area,
                                 uint64_t offset,
                                 const hamlyn_atomic_change *change,
                                 uint64_t *before,
                                 hamlyn_error *error);

/**
 * Closes an area's handle. Its memory goes with the last slot, terminus or window that uses it. Null is allowed.
 */
hamlyn_status hamlyn_close_area(hamlyn_area *area,
                                hamlyn_error *error);

/**
 * Makes a counter that stands at 0. Allocates.
 */
hamlyn_status hamlyn_open_counter(hamlyn_counter **counter, hamlyn_error *error);

/**
 * Gives an operation to a counter: it counts it when it ends, and the operation cannot be finished any more. For operations without a word.
 */
hamlyn_status hamlyn_count_completion(hamlyn_initiator *initiator,
                                      uint32_t operation,
                                      hamlyn_counter *counter,
                                      hamlyn_error *error);

/**
 * How many operations a counter has counted: those that were carried out, and those that were refused or are lost with their target.
 */
hamlyn_status hamlyn_counts(hamlyn_counter *counter,
                            uint64_t *completed,
                            uint64_t *failed,
                            hamlyn_error *error);

/**
 * Waits until that many operations have ended, well or not, since the counter was made.
 */
hamlyn_status hamlyn_await_completions(hamlyn_manager *manager,
                                       hamlyn_counter *counter,
                                       uint64_t ended,
                                       int64_t wait_ns,
                                       hamlyn_error *error);

/**
 * Closes a counter's handle; operations that were given to it go on. Null is allowed.
 */
hamlyn_status hamlyn_close_counter(hamlyn_counter *counter, hamlyn_error *error);

/**
 * Opens a completion queue of that many places, 1 to 65,536. Allocates.
 */
hamlyn_status hamlyn_open_completions(hamlyn_manager *manager,
                                      size_t places,
                                      hamlyn_completion_queue **queue,
                                      hamlyn_error *error);

/**
 * Closes a completion queue. All that it tracks goes on; no completion of it is told any more. Null is allowed.
 */
hamlyn_status hamlyn_close_completions(hamlyn_completion_queue *queue,
                                       hamlyn_error *error);

/**
 * Completes with that context when the message of that number (hamlyn_send_msg, hamlyn_send_gather) is handed to the link whole, so that its
 * buffers are free; HAMLYN_PEER_LOST if its link is lost before. HAMLYN_LIMIT if all places are taken: the message goes all the
 * same, and hamlyn_get_completion says how it ends. A number that no send has told takes its place until the queue is closed. Does not
 * block; may allocate.
 */
hamlyn_status hamlyn_track_send(hamlyn_completion_queue *queue,
                                hamlyn_target *target,
                                uint64_t sequence,
                                uint64_t context,
                                hamlyn_error *error);

/**
 * Completes with that context when everything that was accepted for that link before is in its place at its receiver; otherwise with the
 * status that hamlyn_fence_link has. So a message that is followed by this is complete when it is delivered, and one fence answers for all
 * messages before it. Does not block; allocates.
 */
hamlyn_status hamlyn_track_fence(hamlyn_completion_queue *queue,
                                 uint64_t link,
                                 uint64_t context,
                                 hamlyn_error *error);

/**
 * Gives an operation to a queue: it completes there with that context and the status that hamlyn_finish has, cannot be finished any more,
 * and its place among the initiator's is free when it ends. HAMLYN_BAD_HANDLE if the initiator is closed before. Does not block. The first such
 * call of an initiator allocates.
 */
hamlyn_status hamlyn_track_operation(hamlyn_completion_queue *queue,
                                     hamlyn_initiator *initiator,
                                     uint32_t operation,
                                     uint64_t context,
                                     hamlyn_error *error);

/**
 * The same for an operation with a word (hamlyn_begin_atomic, hamlyn_begin_read_word): the completion has the word.
 */
hamlyn_status hamlyn_track_word(hamlyn_completion_queue *queue,
                                hamlyn_initiator *initiator,
                                uint32_t operation,
                                uint64_t context,
                                hamlyn_error *error);

/**
 * From now on this queue tells packets that came back, in place of hamlyn_next_undelivered, whenever nothing else is complete; no other queue of
 * the manager does any more. They take no places. Their context is that of the link (hamlyn_set_link_context).
 */
hamlyn_status hamlyn_track_refusals(hamlyn_completion_queue *queue,
                                    hamlyn_error *error);

/**
 * The next completion. Blocks for `wait_ns` at most. Does not allocate, unless one is told that failed. HAMLYN_OK also if that which was
 * tracked failed: see its status, of which `why` is given a text; null: nobody reads it.
 */
hamlyn_status hamlyn_next_completion(hamlyn_completion_queue *queue,
                                     int64_t wait_ns,
                                     hamlyn_work_completion *completion,
                                     hamlyn_error *why,
                                     hamlyn_error *error);

/**
 * Not 0 for `has_room`: a message to that target could be queued, if its link has no room itself. For programs that ask before they prepare a
 * message. Not 0 also if the link or the terminus is gone: then a send says so.
 */
hamlyn_status hamlyn_has_room(hamlyn_target *target,
                              uint32_t *has_room,
                              hamlyn_error *error);

/**
 * Binds a receiver for datagrams of up to `buffer_bytes`, 1 byte to 2 GiB, ready for the first. Any number of senders may connect to
 * manager/item. Null for `item`: senders use its ticket. Allocates; does not block.
 */
hamlyn_status hamlyn_bind_datagram(hamlyn_manager *manager,
                                   const char *item,
                                   uint32_t buffer_bytes,
                                   hamlyn_datagram_receiver **receiver,
                                   hamlyn_error *error);

/**
 * Receives the next datagram, where it landed. It is held, and the receiver takes no other, until hamlyn_release_datagram. Blocks for
 * `wait_ns` at most. Does not allocate.
 */
hamlyn_status hamlyn_recv_datagram(hamlyn_datagram_receiver *receiver,
                                   int64_t wait_ns,
                                   hamlyn_message *message,
                                   hamlyn_error *error);

/**
 * Who sent the datagram that is held.
 */
hamlyn_status hamlyn_datagram_peer(hamlyn_datagram_receiver *receiver,
                                   hamlyn_peer *peer,
                                   hamlyn_error *error);

/**
 * Where the sender of the datagram that is held awaits an answer. HAMLYN_NOT_FOUND if it awaits none.
 */
hamlyn_status hamlyn_datagram_reply_ticket(hamlyn_datagram_receiver *receiver,
                                           hamlyn_ticket *ticket,
                                           hamlyn_error *error);

/**
 * Gives the buffer back: the receiver is ready for the next datagram, which may lie over this one.
 */
hamlyn_status hamlyn_release_datagram(hamlyn_datagram_receiver *receiver, hamlyn_error *error);

/**
 * A ticket with which others can send to this receiver.
 */
hamlyn_status hamlyn_datagram_ticket(hamlyn_datagram_receiver *receiver,
                                     hamlyn_ticket *ticket,
                                     hamlyn_error *error);

/**
 * Takes back all tickets of this receiver. Those who connect from now on are given a new one. What had landed and was not received is lost;
 * a message must not be held.
 */
hamlyn_status hamlyn_revoke_datagram(hamlyn_datagram_receiver *receiver,
                                     hamlyn_error *error);

/**
 * Closes a receiver; a message that is held is not valid any more. Null is allowed.
 */
hamlyn_status hamlyn_close_datagram_receiver(hamlyn_datagram_receiver *receiver, hamlyn_error *error);

/**
 * Connects to a receiver of datagrams: manager/item, or host/manager/item. Blocks for `wait_ns` at most while nobody has the name or
 * has bound the item, so both programs may start in any order. Allocates.
 */
hamlyn_status hamlyn_connect_datagram(hamlyn_manager *manager,
                                      const char *to,
                                      int64_t wait_ns,
                                      hamlyn_datagram_sender **sender,
                                      hamlyn_error *error);

/**
 * The same, by a ticket of the receiver.
 */
hamlyn_status hamlyn_grow_datagram(hamlyn_manager *manager,
                                   const hamlyn_ticket *ticket,
                                   int64_t wait_ns,
                                   hamlyn_datagram_sender **sender,
                                   hamlyn_error *error);

/**
 * Sends a datagram. HAMLYN_OK means accepted: if the receiver is not ready when it comes, it is refused there, which
 * hamlyn_fence_datagram tells. Blocks for `wait_ns` at most while there is no room. Does not allocate.
 */
hamlyn_status hamlyn_send_datagram(hamlyn_datagram_sender *sender,
                                   const void *data,
                                   size_t length_bytes,
                                   int64_t wait_ns,
                                   hamlyn_error *error);

/**
 * Sends a datagram to `offset` in the receiver's buffer, with a ticket for the answer: of a receiver of this manager. Null: no ticket.
 */
hamlyn_status hamlyn_send_datagram_to(hamlyn_datagram_sender *sender,
                                      uint32_t offset,
                                      const void *data,
                                      size_t length_bytes,
                                      const hamlyn_ticket *reply,
                                      int64_t wait_ns,
                                      hamlyn_error *error);

/**
 * Waits until all that this manager sent to the receiver's interface is in its place, or says what was refused since the fence before.
 */
hamlyn_status hamlyn_fence_datagram(hamlyn_datagram_sender *sender,
                                    int64_t wait_ns,
                                    hamlyn_error *error);

/**
 * Closes a sender. What it sent arrives all the same. Null is allowed.
 */
hamlyn_status hamlyn_close_datagram_sender(hamlyn_datagram_sender *sender, hamlyn_error *error);

/**
 * Takes a manager from its thread, which closes its handle; hamlyn_attach gives it to another. It must have no end points and no objects of
 * the lower layer.
 */
hamlyn_status hamlyn_detach(hamlyn_manager *manager,
                            hamlyn_detached **detached,
                            hamlyn_error *error);

/**
 * Gives a detached manager to the thread that calls this, which closes its handle.
 */
hamlyn_status hamlyn_attach(hamlyn_detached *detached, hamlyn_manager **manager, hamlyn_error *error);

/**
 * Closes a detached manager. Null is allowed.
 */
hamlyn_status hamlyn_close_detached(hamlyn_detached *detached, hamlyn_error *error);

/**
 * A key of 64 random bits, for hamlyn_permit_entry.
 */
hamlyn_status hamlyn_new_key(hamlyn_manager *manager, uint64_t *key, hamlyn_error *error);

/**
 * Sets what an entry of a paranoid slot lets in: messages with that key, to the bytes of the slot from `low` to below `high`. A packet that
 * comes meanwhile is judged by the old or by the new permission.
 */
hamlyn_status hamlyn_permit_entry(hamlyn_slot *slot,
                                  uint16_t entry,
                                  uint64_t key,
                                  uint64_t low,
                                  uint64_t high,
                                  hamlyn_error *error);

/**
 * Lets in one more message, in one-shot mode; permit it first.
 */
hamlyn_status hamlyn_arm_entry(hamlyn_slot *slot, uint16_t entry, hamlyn_error *error);

/**
 * Lets in nothing more, in one-shot mode.
 */
hamlyn_status hamlyn_disarm_entry(hamlyn_slot *slot, uint16_t entry, hamlyn_error *error);

/**
 * Forgets a message that came only in part, because its sender died for example.
 */
hamlyn_status hamlyn_reset_entry(hamlyn_slot *slot, uint16_t entry, hamlyn_error *error);

/**
 * Sets what notifications of an entry's messages say in `word`.
 */
hamlyn_status hamlyn_set_entry_class(hamlyn_slot *slot,
                                     uint16_t entry,
                                     uint64_t receive_class,
                                     hamlyn_error *error);

/**
 * Tells what an entry lets in, and what came there last. Read it after the notification of its message, and before it is armed again.
 */
hamlyn_status hamlyn_get_entry(hamlyn_slot *slot,
                               uint16_t entry,
                               hamlyn_entry *state,
                               hamlyn_error *error);

/**
 * How many bytes were stored under an entry of a slot that counts stores. When the count has reached the sum of all that a source
 * has stored, all of it is in its place. The source says how many bytes a store has, so a count is as good as its word.
 */
hamlyn_status hamlyn_stored_bytes(hamlyn_slot *slot,
                                  uint16_t entry,
                                  uint64_t *bytes,
                                  hamlyn_error *error);

/**
 * The next event. `text` is given what it says for people, and a zero; null: nobody reads it. Blocks for `wait_ns` at most.
 */
hamlyn_status hamlyn_next_event(hamlyn_manager *manager,
                                int64_t wait_ns,
                                hamlyn_event *event,
                                char *text,
                                size_t text_bytes,
                                hamlyn_error *error);

/**
 * The descriptor of a manager, for poll, epoll and their like. It stays the same, and is the library's to close. It says something only
 * between hamlyn_prepare_sleep and hamlyn_end_sleep.
 */
hamlyn_status hamlyn_descriptor(hamlyn_manager *manager,
                                int *descriptor,
                                hamlyn_error *error);

/**
 * Prepares to wait elsewhere, with the descriptor of the manager among other things. Polls for a few microseconds, and for `wait_ns` at
 * most. `timeout_ns` is for how long to wait at most; negative: there is no limit. Then call hamlyn_end_sleep as soon as the program is
 * awake, and ask each end point until it has nothing. It is 0 if something has happened already. A clock of coarser units must round up.
 */
hamlyn_status hamlyn_prepare_sleep(hamlyn_manager *manager,
                                   int64_t wait_ns,
                                   int64_t *timeout_ns,
                                   hamlyn_error *error);

/**
 * Ends what hamlyn_prepare_sleep began, if it began a sleep.
 */
hamlyn_status hamlyn_end_sleep(hamlyn_manager *manager, hamlyn_error *error);

/**
 * How many notifications this manager's receivers have lost, because its queue was too short.
 */
hamlyn_status hamlyn_notifications_lost(hamlyn_manager *manager, uint64_t *lost, hamlyn_error *error);

/**
 * Forgets a datagram that came only in part, because its sender died or gave up. A message must not be held.
 */
hamlyn_status hamlyn_reset_datagram(hamlyn_datagram_receiver *receiver, hamlyn_error *error);

/**
 * The state of the slot that a datagram receiver stands on: what it refused, above all. A message must not be held.
 */
hamlyn_status hamlyn_get_datagram_info(hamlyn_datagram_receiver *receiver,
                                       hamlyn_slot_info *info,
                                       hamlyn_error *error);

/**
 * The state of the slot that an area for tagged writes stands on.
 */
hamlyn_status hamlyn_get_tags_info(hamlyn_tag_receiver *receiver,
                                   hamlyn_slot_info *info,
                                   hamlyn_error *error);

/**
 * How many tags a receiver has lost, because there were more than it has room for.
 */
hamlyn_status hamlyn_tags_lost(hamlyn_tag_receiver *receiver, uint64_t *lost, hamlyn_error *error);

/**
 * Tells the state of a mailbox. The message that was taken last stays valid.
 */
hamlyn_status hamlyn_get_mailbox_info(hamlyn_mailbox_receiver *receiver,
                                      hamlyn_mailbox_info *info,
                                      hamlyn_error *error);

/**
 * Tells how many messages to a mailbox were refused for that reason, a number of hamlyn_refusal.
 * HAMLYN_NOT_FOUND if there is no such reason.
 */
hamlyn_status hamlyn_mailbox_refusals(hamlyn_mailbox_receiver *receiver,
                                      uint32_t reason,
                                      uint64_t *count,
                                      hamlyn_error *error);

/**
 * The state of the slot that a group stands on.
 */
hamlyn_status hamlyn_get_group_info(hamlyn_group_receiver *receiver,
                                    hamlyn_slot_info *info,
                                    hamlyn_error *error);

/**
 * The state of the slot that a stream stands on at present, and how much memory the stream has. HAMLYN_NOT_FOUND before a sender has connected.
 * A record must not be held.
 */
hamlyn_status hamlyn_get_stream_info(hamlyn_stream_receiver *receiver,
                                     hamlyn_slot_info *info,
                                     uint64_t *memory_bytes,
                                     hamlyn_error *error);

/**
 * How many clients lost their place in a service because they broke the protocol. No call may be held.
 */
hamlyn_status hamlyn_service_misbehaved(hamlyn_service *service, uint64_t *clients, hamlyn_error *error);

/**
 * How many calls of a client may be outstanding, and how long a request may be. No reply may be held.
 */
hamlyn_status hamlyn_client_limits(hamlyn_client *client,
                                   uint16_t *outstanding_max,
                                   uint32_t *request_bytes_max,
                                   hamlyn_error *error);

/**
 * Tells what a publisher knows of its readers. No message may be on loan.
 */
hamlyn_status hamlyn_get_publisher_info(hamlyn_publisher *publisher,
                                        hamlyn_publisher_info *info,
                                        hamlyn_error *error);

/**
 * Takes in what readers have said: who came, who left, what was given back; and sends what is kept for those that have room again. Other calls
 * do the same when they need it. Does not block. No message may be on loan.
 */
hamlyn_status hamlyn_poll_publisher(hamlyn_publisher *publisher,
                                    hamlyn_error *error);

/**
 * Waits until every reader has room for a message. HAMLYN_TIMED_OUT if one had none when the time was over.
 */
hamlyn_status hamlyn_await_room(hamlyn_publisher *publisher, int64_t wait_ns, hamlyn_error *error);

/**
 * Waits until all that was published is handed over to its readers: before a publisher is closed whose last messages matter.
 */
hamlyn_status hamlyn_flush_publisher(hamlyn_publisher *publisher,
                                     int64_t wait_ns,
                                     hamlyn_error *error);

/**
 * Tells what a subscriber knows of its publisher. No message may be held.
 */
hamlyn_status hamlyn_get_subscriber_info(hamlyn_subscriber *subscriber,
                                         hamlyn_subscriber_info *info,
                                         hamlyn_error *error);

/**
 * Who publishes. HAMLYN_NOT_FOUND if its link ended long ago. No message may be held.
 */
hamlyn_status hamlyn_publisher_peer(hamlyn_subscriber *subscriber, hamlyn_peer *peer, hamlyn_error *error);

/**
 * Binds a group with a place of `place_bytes`, 0 to 2 GiB; 0 for a barrier. Its members are found when hamlyn_begin_group offers them. Null for
 * `item`: it is reached by members of hamlyn_begin_member only.
 */
hamlyn_status hamlyn_bind_group(hamlyn_manager *manager,
                                const char *item,
                                uint32_t place_bytes,
                                hamlyn_group_receiver **receiver,
                                hamlyn_error *error);

/**
 * Begins a round: the place is divided into consecutive parts of the given lengths, and each is offered to one member, in that order. Members
 * of earlier rounds are worthless.
 */
hamlyn_status hamlyn_begin_group(hamlyn_group_receiver *receiver,
                                 const uint64_t *lengths_bytes,
                                 size_t members,
                                 hamlyn_error *error);

/**
 * Waits until everything from all members has come: the whole place, valid until the next round begins or the handle is closed.
 */
hamlyn_status hamlyn_recv_group(hamlyn_group_receiver *receiver,
                                int64_t wait_ns,
                                hamlyn_message *message,
                                hamlyn_error *error);

/**
 * Closes a group. Null is allowed.
 */
hamlyn_status hamlyn_close_group_receiver(hamlyn_group_receiver *receiver, hamlyn_error *error);

/**
 * Connects to a group as the next of its members. Blocks for `wait_ns` at most.
 */
hamlyn_status hamlyn_connect_group(hamlyn_manager *manager,
                                   const char *to,
                                   int64_t wait_ns,
                                   hamlyn_group_sender **sender,
                                   hamlyn_error *error);

/**
 * Sends to `offset` of this member's part. `is_last` not 0: this completes the member, and nothing can be sent after it.
 */
hamlyn_status hamlyn_send_part(hamlyn_group_sender *sender,
                               uint64_t offset,
                               const void *data,
                               size_t length_bytes,
                               uint32_t is_last,
                               int64_t wait_ns,
                               hamlyn_error *error);

/**
 * Waits until all that this manager sent to the receiver's interface is in its place, or says what was refused since the fence before.
 */
hamlyn_status hamlyn_fence_group(hamlyn_group_sender *sender,
                                 int64_t wait_ns,
                                 hamlyn_error *error);

/**
 * Closes a member. If it has not sent its last part, the round is never complete. Null is allowed.
 */
hamlyn_status hamlyn_close_group_sender(hamlyn_group_sender *sender, hamlyn_error *error);

/**
 * Allocates an area of `pieces` pieces that change hands, zeroed: each has `piece_bytes` bytes, a power of two, at least 16. A piece is in the
 * program's hands, as all are at first, or open (hamlyn_open_pieces). Peers write open pieces only; what they send to others is refused.
 * When a message to an entry of a slot of HAMLYN_MODE_ONE_SHOT is complete, all pieces between the limits of the entry
 * (hamlyn_permit_entry) are the program's: it reads them in place (hamlyn_view_pieces), opens them, and arms the entry again.
 *
 * `area` is for hamlyn_open_slot, once: the slot has the area to itself, and the handle only reads from then on. A second slot over it is
 * refused with HAMLYN_HELD, also if the first is closed or could not be opened. HAMLYN_SYSTEM if there is no memory. Does not block.
 */
hamlyn_status hamlyn_allocate_handover(hamlyn_manager *manager,
                                       uint32_t pieces,
                                       uint32_t piece_bytes,
                                       hamlyn_area **area,
                                       hamlyn_handover **handover,
                                       hamlyn_error *error);

/**
 * Tells which pieces an area has. Looks at each.
 */
hamlyn_status hamlyn_get_handover_info(hamlyn_handover *handover,
                                       hamlyn_handover_info *info,
                                       hamlyn_error *error);

/**
 * Opens pieces to peers: `count` of them, from number `first` on. What was read of them is not to be used any more. HAMLYN_HELD if a view of one
 * of them was not ended; then none is opened. Does not allocate.
 */
hamlyn_status hamlyn_open_pieces(hamlyn_handover *handover,
                                 uint32_t first,
                                 uint32_t count,
                                 hamlyn_error *error);

/**
 * Tells whether a piece is in the program's hands: not 0, or 0 if it is open to peers.
 */
hamlyn_status hamlyn_is_piece_held(hamlyn_handover *handover,
                                   uint32_t piece,
                                   uint32_t *is_held,
                                   hamlyn_error *error);

/**
 * Tells where bytes of the area lie, of one piece or of several side by side, all in the program's hands: HAMLYN_HELD if one of them is open.
 * Nothing writes them before hamlyn_end_view is called with the same range: until then these pieces cannot be opened, nor the
 * handover be closed. Of one piece there may be several views. Does not allocate.
 *
 * The pointer is of no use after that. As long as the area's memory is there, it leads to bytes that peers may be writing, which come out
 * old or new; once the handover, the area's handle and the slot are closed, it leads nowhere.
 */
hamlyn_status hamlyn_view_pieces(hamlyn_handover *handover,
                                 uint64_t offset,
                                 size_t length_bytes,
                                 const void **data,
                                 hamlyn_error *error);

/**
 * Ends a view: the program does not use its pointer any more. HAMLYN_HELD if there is none of these bytes.
 */
hamlyn_status hamlyn_end_view(hamlyn_handover *handover,
                              uint64_t offset,
                              size_t length_bytes,
                              hamlyn_error *error);

/**
 * Closes the program's end of an area; pieces that are open stay so. HAMLYN_HELD, and it stays open, if a view was not ended. Null is
 * allowed.
 */
hamlyn_status hamlyn_close_handover(hamlyn_handover *handover,
                                    hamlyn_error *error);

/**
 * Keeps the record that is held, instead of releasing it: the next one can be received. Closing what is kept gives its memory back, in any
 * order, at the next call of the stream. Allocates now and then.
 */
hamlyn_status hamlyn_keep_record(hamlyn_stream_receiver *receiver,
                                 hamlyn_kept_record **kept,
                                 hamlyn_error *error);

/**
 * Where a record that is kept lies: valid until it or its receiver is closed. No other record may be held.
 */
hamlyn_status hamlyn_view_kept_record(hamlyn_stream_receiver *receiver,
                                      hamlyn_kept_record *kept,
                                      hamlyn_message *record,
                                      hamlyn_error *error);

/**
 * Gives back the memory of kept records that were closed, as the next call of the stream would.
 */
hamlyn_status hamlyn_reclaim_records(hamlyn_stream_receiver *receiver, hamlyn_error *error);

/**
 * Closes a record that is kept. Null is allowed.
 */
hamlyn_status hamlyn_close_kept_record(hamlyn_kept_record *kept, hamlyn_error *error);

/**
 * Keeps the sample that is held, instead of releasing it. As long as it is kept, its reader gets no more than those in between and as many as
 * its depth. Closing it gives it back at the next call of the subscriber. Allocates.
 */
hamlyn_status hamlyn_keep_sample(hamlyn_subscriber *subscriber,
                                 hamlyn_kept_sample **kept,
                                 hamlyn_error *error);

/**
 * The length and the number of a sample that is kept. Null for `number`: nobody asks.
 */
hamlyn_status hamlyn_get_kept_sample(hamlyn_kept_sample *kept,
                                     size_t *length_bytes,
                                     uint64_t *number,
                                     hamlyn_error *error);

/**
 * Copies from a sample that is kept, as hamlyn_read_sample does.
 */
hamlyn_status hamlyn_read_kept_sample(hamlyn_kept_sample *kept,
                                      size_t offset,
                                      void *into,
                                      size_t length_bytes,
                                      hamlyn_error *error);

/**
 * Gives back samples that were kept and closed, as the next call of the subscriber would.
 */
hamlyn_status hamlyn_reclaim_samples(hamlyn_subscriber *subscriber, hamlyn_error *error);

/**
 * Closes a sample that is kept. Null is allowed.
 */
hamlyn_status hamlyn_close_kept_sample(hamlyn_kept_sample *kept, hamlyn_error *error);

/**
 * Opens a lane, all of whose buffers are free. It takes as many entries of the manager's queue, and two more. Null for `options`: the
 * defaults. Does not block; allocates.
 */
hamlyn_status hamlyn_open_lane(hamlyn_manager *manager,
                               const hamlyn_lane_options *options,
                               hamlyn_lane **lane,
                               hamlyn_error *error);

/**
 * Closes a lane, and tells its sender as soon as there is room. Messages that the program has are not valid any more. Does not block. Null is
 * allowed.
 */
hamlyn_status hamlyn_close_lane(hamlyn_lane *lane,
                                hamlyn_error *error);

/**
 * Tells the seed of a lane's sender.
 */
hamlyn_status hamlyn_get_lane_seed(hamlyn_lane *lane, hamlyn_lane_seed *seed, hamlyn_error *error);

/**
 * Takes the next message, in a buffer that is the program's until it gives it back (hamlyn_give_back_lane). Any number of buffers may be the
 * program's. Blocks for `wait_ns` at most. HAMLYN_FINISHED if the sender has ended and everything was taken; HAMLYN_PEER_LOST if it is gone;
 * HAMLYN_MALFORMED if it broke the protocol. Does not allocate.
 */
hamlyn_status hamlyn_recv_lane(hamlyn_lane *lane,
                               int64_t wait_ns,
                               hamlyn_lane_message *message,
                               hamlyn_error *error);

/**
 * Gives the buffer of a message back to the sender. HAMLYN_HELD if the program has no message there. Does not block.
 */
hamlyn_status hamlyn_give_back_lane(hamlyn_lane *lane,
                                    uint32_t buffer,
                                    hamlyn_error *error);

/**
 * Makes this program the sender of a lane. Blocks for `wait_ns` at most while it connects. Of a second sender of one seed the greeting is refused,
 * as a fence shows. Allocates.
 */
hamlyn_status hamlyn_connect_lane(hamlyn_manager *manager,
                                  const hamlyn_lane_seed *seed,
                                  int64_t wait_ns,
                                  hamlyn_lane_sender **sender,
                                  hamlyn_error *error);

/**
 * Closes a sender. The receiver gets all that was sent, and then learns that nothing more comes. Does not block. Null is allowed.
 */
hamlyn_status hamlyn_close_lane_sender(hamlyn_lane_sender *sender,
                                       hamlyn_error *error);

/**
 * Sends a message to the next free buffer, and tells its number; null for `buffer`: nobody asks. Blocks for `wait_ns` at most while no buffer is
 * free, or there is no room on the way. HAMLYN_TOO_LONG if it is longer than a buffer; HAMLYN_FINISHED if the receiver closed the lane.
 */
hamlyn_status hamlyn_send_lane(hamlyn_lane_sender *sender,
                               uint32_t tag,
                               const void *data,
                               size_t length_bytes,
                               int64_t wait_ns,
                               uint32_t *buffer,
                               hamlyn_error *error);

/**
 * The same to a buffer of the program's choice, as soon as that is free. HAMLYN_INVALID if there is no such buffer.
 */
hamlyn_status hamlyn_send_lane_to(hamlyn_lane_sender *sender,
                                  uint32_t buffer,
                                  uint32_t tag,
                                  const void *data,
                                  size_t length_bytes,
                                  int64_t wait_ns,
                                  hamlyn_error *error);

/**
 * Sends a message to the next free buffer, and keeps a copy until credit comes for it: hamlyn_next_kept tells those for which none came. Otherwise
 * like hamlyn_send_lane. Allocates.
 */
hamlyn_status hamlyn_send_lane_kept(hamlyn_lane_sender *sender,
                                    uint32_t tag,
                                    const void *data,
                                    size_t length_bytes,
                                    int64_t wait_ns,
                                    uint32_t *buffer,
                                    hamlyn_error *error);

/**
 * Tells a message that was sent by hamlyn_send_lane_kept and for which no credit came, the oldest first; its link is the receiver's. The receiver
 * may have had it, and the lane keeps it no longer. Its bytes are valid until this is called again, or the sender is closed. HAMLYN_NOT_FOUND if
 * there is none. Does not block.
 */
hamlyn_status hamlyn_next_kept(hamlyn_lane_sender *sender,
                               hamlyn_lane_message *message,
                               hamlyn_error *error);

/**
 * Tells the state of a sending end.
 */
hamlyn_status hamlyn_get_lane_sender_info(hamlyn_lane_sender *sender,
                                          hamlyn_lane_sender_info *info,
                                          hamlyn_error *error);

/**
 * Not 0 for `is_free`: that buffer was never filled, or given back since. HAMLYN_INVALID if there is no such buffer.
 */
hamlyn_status hamlyn_is_lane_buffer_free(hamlyn_lane_sender *sender,
                                         uint32_t buffer,
                                         uint32_t *is_free,
                                         hamlyn_error *error);

/**
 * Connects to an interface by its name, host/name or name, and says over which link it is reached. For programs that hold no
 * ticket yet; hamlyn_open_target connects by itself. Blocks for `wait_ns` at most.
 */
hamlyn_status hamlyn_connect(hamlyn_manager *manager,
                             const char *name,
                             int64_t wait_ns,
                             uint64_t *link,
                             hamlyn_error *error);

/**
 * Ends a link. What was sent over it stays sent; what waits for it fails.
 */
hamlyn_status hamlyn_disconnect(hamlyn_manager *manager, uint64_t link, hamlyn_error *error);

/**
 * Who is at the other end of a link; also after its end, until another link has its place. HAMLYN_NOT_FOUND if that is not known.
 */
hamlyn_status hamlyn_link_peer(hamlyn_manager *manager,
                               uint64_t link,
                               hamlyn_peer *peer,
                               hamlyn_error *error);

/**
 * Whether a link is up: HAMLYN_OK, or HAMLYN_PEER_LOST with the reason.
 */
hamlyn_status hamlyn_check_link(hamlyn_manager *manager, uint64_t link, hamlyn_error *error);

/**
 * The peers that are linked: the first `most` of them into an array, and how many there are. Null for `peers` if `most` is 0.
 */
hamlyn_status hamlyn_peers(hamlyn_manager *manager,
                           hamlyn_peer *peers,
                           size_t most,
                           size_t *count,
                           hamlyn_error *error);

/**
 * The name that a peer gives itself, if any; nobody vouches for it. HAMLYN_NOT_FOUND if the link is not up.
 */
hamlyn_status hamlyn_link_peer_name(hamlyn_manager *manager,
                                    uint64_t link,
                                    char *name,
                                    size_t name_bytes,
                                    hamlyn_error *error);

/**
 * Gives a link a number of the program's own, which is 0 before. HAMLYN_NOT_FOUND if there is no such link.
 */
hamlyn_status hamlyn_set_link_context(hamlyn_manager *manager,
                                      uint64_t link,
                                      uint64_t context,
                                      hamlyn_error *error);

/**
 * The number of the program's own that a link has; also after its end, until another link has its place; otherwise 0.
 */
hamlyn_status hamlyn_link_context(hamlyn_manager *manager,
                                  uint64_t link,
                                  uint64_t *context,
                                  hamlyn_error *error);

/**
 * The longest message that a send to that link takes without other memory, in bytes: about 1 KiB on one host; 0 between hosts, and if the
 * link has ended.
 */
hamlyn_status hamlyn_cells_bytes_max(hamlyn_manager *manager,
                                     uint64_t link,
                                     uint64_t *length_bytes,
                                     hamlyn_error *error);

/**
 * The longest payload of a packet of that link, metadata and data together, in bytes. HAMLYN_NOT_FOUND if the link has ended.
 */
hamlyn_status hamlyn_packet_bytes_max(hamlyn_manager *manager,
                                      uint64_t link,
                                      size_t *length_bytes,
                                      hamlyn_error *error);

/**
 * This manager's own interface, as its peers see it. Its link is 0.
 */
hamlyn_status hamlyn_identity(hamlyn_manager *manager, hamlyn_peer *peer, hamlyn_error *error);

/**
 * Tells how a link to another host is. `text` is given all that is known of it, for people; null: nobody reads it. HAMLYN_NOT_FOUND if the
 * link has ended, or leads to an interface of this host. Allocates.
 */
hamlyn_status hamlyn_get_link_state(hamlyn_manager *manager,
                                    uint64_t link,
                                    hamlyn_link_state *state,
                                    char *text,
                                    size_t text_bytes,
                                    hamlyn_error *error);

/**
 * Tells the use of the memory that a peer lends for messages that it does not take. HAMLYN_NOT_FOUND if the link has ended, or the peer
 * lends none.
 */
hamlyn_status hamlyn_get_log_use(hamlyn_manager *manager,
                                 uint64_t link,
                                 hamlyn_log_use *log_use,
                                 hamlyn_error *error);

/**
 * Waits until all that was sent over a link is in its place, or says what was refused since the fence before.
 */
hamlyn_status hamlyn_fence_link(hamlyn_manager *manager, uint64_t link, int64_t wait_ns, hamlyn_error *error);

/**
 * The next packet that was sent and not delivered; each is told once, here or by hamlyn_next_event. `text` is given why; null: nobody reads
 * it. Does not block: HAMLYN_TIMED_OUT if there is none. At the latest after a fence that follows it is answered, it is there.
 */
hamlyn_status hamlyn_next_undelivered(hamlyn_manager *manager,
                                      hamlyn_undelivered *undelivered,
                                      char *text,
                                      size_t text_bytes,
                                      hamlyn_error *error);

/**
 * How many packets that were not delivered were forgotten, because there were too many and nobody fetched them.
 */
hamlyn_status hamlyn_undelivered_forgotten(hamlyn_manager *manager,
                                           uint64_t *count,
                                           hamlyn_error *error);

/**
 * How many different wrong keys a peer may present before it is cut off. Every 1,024 good packets make up for one.
 */
hamlyn_status hamlyn_set_bad_keys_max(hamlyn_manager *manager,
                                      uint32_t packets,
                                      hamlyn_error *error);

/**
 * Offers 1 to 1,024 bytes, a ticket say, to peers that ask for `item` of this manager (Hamlyn 6.3): HAMLYN_OFFER_ALWAYS, HAMLYN_OFFER_ONCE or
 * HAMLYN_OFFER_AFTERWARDS. It is given while this program computes.
 */
hamlyn_status hamlyn_offer(hamlyn_manager *manager,
                           const char *item,
                           uint32_t supply,
                           const void *data,
                           size_t length_bytes,
                           hamlyn_error *error);

/**
 * Takes back all offers under an item. Peers that were given one keep it.
 */
hamlyn_status hamlyn_withdraw(hamlyn_manager *manager, const char *item, hamlyn_error *error);

/**
 * Asks the interface of that name for what it offers under `item`, and copies it into `into`. Makes no link. Blocks for `wait_ns` at most
 * while nobody has the name or nothing is offered; nothing is received meanwhile, but by other threads of a shared manager. There must be
 * room for HAMLYN_OFFER_BYTES_MAX, so that what is offered once is not lost.
 */
hamlyn_status hamlyn_ask(hamlyn_manager *manager,
                         const char *name,
                         const char *item,
                         int64_t wait_ns,
                         void *into,
                         size_t room_bytes,
                         size_t *length_bytes,
                         hamlyn_error *error);

/**
 * Binds a publisher. Null for `options`: the defaults. Allocates the memory of all messages.
 */
hamlyn_status hamlyn_bind_publisher(hamlyn_manager *manager,
                                    const char *item,
                                    const hamlyn_publisher_options *options,
                                    hamlyn_publisher **publisher,
                                    hamlyn_error *error);

/**
 * A message of that length on loan, to be written in place; its bytes are those of some message before. Then it is published or dropped.
 * Blocks for `wait_ns` at most while all are in use. Does not allocate.
 */
hamlyn_status hamlyn_loan(hamlyn_publisher *publisher,
                          size_t length_bytes,
                          int64_t wait_ns,
                          void **data,
                          hamlyn_error *error);

/**
 * Publishes the message on loan: it must not be written any more. `readers` is told how many got it; null: nobody asks.
 */
hamlyn_status hamlyn_publish(hamlyn_publisher *publisher,
                             int64_t wait_ns,
                             size_t *readers,
                             hamlyn_error *error);

/**
 * Gives the message on loan back: nobody gets it.
 */
hamlyn_status hamlyn_drop_loan(hamlyn_publisher *publisher, hamlyn_error *error);

/**
 * Waits until there are as many readers. HAMLYN_TIMED_OUT if there were fewer when the time was over.
 */
hamlyn_status hamlyn_await_readers(hamlyn_publisher *publisher,
                                   size_t readers,
                                   int64_t wait_ns,
                                   hamlyn_error *error);

/**
 * Closes a publisher. Readers keep what they hold. Null is allowed.
 */
hamlyn_status hamlyn_close_publisher(hamlyn_publisher *publisher, hamlyn_error *error);

/**
 * Connects to a publisher, as one of its readers. Blocks for `wait_ns` at most.
 */
hamlyn_status hamlyn_connect_subscriber(hamlyn_manager *manager,
                                        const char *to,
                                        int64_t wait_ns,
                                        hamlyn_subscriber **subscriber,
                                        hamlyn_error *error);

/**
 * The next message: its length and number. It is held until hamlyn_release_sample, and read with hamlyn_read_sample.
 */
hamlyn_status hamlyn_recv_sample(hamlyn_subscriber *subscriber,
                                 int64_t wait_ns,
                                 size_t *length_bytes,
                                 uint64_t *number,
                                 hamlyn_error *error);

/**
 * Copies from the message that is held. A publisher that does not keep to the protocol can change it at any time: check what was copied, and
 * copy it once.
 */
hamlyn_status hamlyn_read_sample(hamlyn_subscriber *subscriber,
                                 size_t offset,
                                 void *into,
                                 size_t length_bytes,
                                 hamlyn_error *error);

/**
 * Gives the message back.
 */
hamlyn_status hamlyn_release_sample(hamlyn_subscriber *subscriber, hamlyn_error *error);

/**
 * Messages that this reader had no room for, so far.
 */
hamlyn_status hamlyn_samples_lost(hamlyn_subscriber *subscriber, uint64_t *lost, hamlyn_error *error);

/**
 * Closes a subscriber, and gives back what it holds. Null is allowed.
 */
hamlyn_status hamlyn_close_subscriber(hamlyn_subscriber *subscriber, hamlyn_error *error);

/**
 * Binds a mailbox. Any number of senders may connect to manager/item, and send whether the
 * mailbox is asked for messages or not: those that are not taken wait in its queue, in the order
 * of each sender. Null for `item`: senders use its ticket. Null for `options`: the defaults.
 * Allocates its queue, which takes memory only as it is used; does not block.
 */
hamlyn_status hamlyn_bind_mailbox(hamlyn_manager *manager,
                                  const char *item,
                                  const hamlyn_mailbox_options *options,
                                  hamlyn_mailbox_receiver **receiver,
                                  hamlyn_error *error);

/**
 * Takes the next message. Its bytes are valid until the next one is taken, or the receiver
 * closed; nothing is to be released. Blocks for `wait_ns` at most. Allocates only for a message
 * that is longer than all before.
 */
hamlyn_status hamlyn_recv_mail(hamlyn_mailbox_receiver *receiver,
                               int64_t wait_ns,
                               hamlyn_message *message,
                               hamlyn_error *error);

/**
 * Tells who sent the message that was taken last. HAMLYN_NOT_FOUND if none was, or if its link
 * ended long ago.
 */
hamlyn_status hamlyn_mail_peer(hamlyn_mailbox_receiver *receiver, hamlyn_peer *peer, hamlyn_error *error);

/**
 * A ticket with which others can send to this mailbox.
 */
hamlyn_status hamlyn_mailbox_ticket(hamlyn_mailbox_receiver *receiver,
                                    hamlyn_ticket *ticket,
                                    hamlyn_error *error);

/**
 * Takes back all tickets of this mailbox: messages that were sent with them and have not come
 * are refused. Those that wait stay. Those who connect from now on are given a new one.
 */
hamlyn_status hamlyn_revoke_mailbox(hamlyn_mailbox_receiver *receiver, hamlyn_error *error);

/**
 * Closes a receiver. Messages that wait there are gone, and the one that was taken last is not
 * valid any more. Null is allowed.
 */
hamlyn_status hamlyn_close_mailbox_receiver(hamlyn_mailbox_receiver *receiver, hamlyn_error *error);

/**
 * Connects to a mailbox: manager/item, or host/manager/item. Blocks for `wait_ns` at most while
 * nobody has the name or has bound the item, so both programs may start in any order. Allocates.
 */
hamlyn_status hamlyn_connect_mailbox(hamlyn_manager *manager,
                                     const char *to,
                                     int64_t wait_ns,
                                     hamlyn_mailbox_sender **sender,
                                     hamlyn_error *error);

/**
 * The same, by a ticket of the receiver.
 */
hamlyn_status hamlyn_grow_mailbox(hamlyn_manager *manager,
                                  const hamlyn_ticket *ticket,
                                  int64_t wait_ns,
                                  hamlyn_mailbox_sender **sender,
                                  hamlyn_error *error);

/**
 * Sends a message, one packet at most (hamlyn_mail_bytes_max). HAMLYN_OK means accepted: if the
 * mailbox has no room when it comes, it is refused there, which hamlyn_fence_mailbox tells.
 * Blocks for `wait_ns` at most while there is no room on the way. Does not allocate.
 */
hamlyn_status hamlyn_send_mail(hamlyn_mailbox_sender *sender,
                               const void *data,
                               size_t length_bytes,
                               int64_t wait_ns,
                               hamlyn_error *error);

/**
 * Tells the length of the longest message that the link to the mailbox takes: 64 KiB on one host
 * unless set otherwise, and as much as a frame of the network has room for between hosts.
 * HAMLYN_PEER_LOST if the link has ended.
 */
hamlyn_status hamlyn_mail_bytes_max(hamlyn_mailbox_sender *sender, size_t *length_bytes, hamlyn_error *error);

/**
 * Waits until all that this manager sent to the mailbox's interface has come, or says what was
 * refused since the fence before.
 */
hamlyn_status hamlyn_fence_mailbox(hamlyn_mailbox_sender *sender, int64_t wait_ns, hamlyn_error *error);

/**
 * Closes a sender. What it sent arrives all the same. Null is allowed.
 */
hamlyn_status hamlyn_close_mailbox_sender(hamlyn_mailbox_sender *sender, hamlyn_error *error);

/**
 * Opens a manager, as `options` say; null: an unnamed one with the defaults. Allocates. Does not block, but for the time that the
 * system takes.
 */
hamlyn_status hamlyn_open_with(const hamlyn_options *options,
                               hamlyn_manager **manager,
                               hamlyn_error *error);

/**
 * Opens a manager under that name; null: one that others reach by tickets only.
 */
hamlyn_status hamlyn_open(const char *name, hamlyn_manager **manager, hamlyn_error *error);

/**
 * Closes a manager. Its end points go on until each is closed; the interface ends with the last. Null is allowed.
 */
hamlyn_status hamlyn_close(hamlyn_manager *manager,
                           hamlyn_error *error);

/**
 * Takes in what has come, and sends what waits. Does not block. For programs that compute for long, and have no network processor.
 */
hamlyn_status hamlyn_poll(hamlyn_manager *manager,
                          hamlyn_error *error);

/**
 * Waits until something has happened that an end point or hamlyn_next_event may tell, for `wait_ns` at most. HAMLYN_OK also if
 * the time was over: ask the end points.
 */
hamlyn_status hamlyn_wait(hamlyn_manager *manager,
                          int64_t wait_ns,
                          hamlyn_error *error);

/**
 * Waits until everything that was sent has left this program. HAMLYN_TIMED_OUT if it had not when the time was over.
 */
hamlyn_status hamlyn_flush(hamlyn_manager *manager,
                           int64_t wait_ns,
                           hamlyn_error *error);

/**
 * Waits until everything that was sent to anybody is in its place there. HAMLYN_REFUSED, with a text about the last packet, if some
 * was not accepted since the fence before.
 */
hamlyn_status hamlyn_fence(hamlyn_manager *manager,
                           int64_t wait_ns,
                           hamlyn_error *error);

/**
 * Another handle of a manager that was opened as shared, for another thread.
 */
hamlyn_status hamlyn_share_manager(hamlyn_manager *manager, hamlyn_manager **another, hamlyn_error *error);

/**
 * Begins a round as hamlyn_begin_group does, with the whole place as one member, which is offered to nobody: divide it, and give the parts to
 * the senders.
 */
hamlyn_status hamlyn_begin_member(hamlyn_group_receiver *receiver,
                                  hamlyn_member *member,
                                  hamlyn_error *error);

/**
 * Divides a member into consecutive parts of the given lengths, into an array of as many. Allocates. HAMLYN_INVALID if they are longer than
 * it, or more than it can count.
 */
hamlyn_status hamlyn_divide_member(const hamlyn_member *member,
                                   const uint64_t *lengths_bytes,
                                   size_t count,
                                   hamlyn_member *parts,
                                   hamlyn_error *error);

/**
 * Becomes the sender of a member. Blocks for `wait_ns` at most while it connects.
 */
hamlyn_status hamlyn_grow_group(hamlyn_manager *manager,
                                const hamlyn_member *member,
                                int64_t wait_ns,
                                hamlyn_group_sender **sender,
                                hamlyn_error *error);

/**
 * Closes a sender, and gives what is left of its member, to be divided among delegates. HAMLYN_FINISHED if all of it was sent.
 */
hamlyn_status hamlyn_take_member(hamlyn_group_sender *sender,
                                 hamlyn_member *member,
                                 hamlyn_error *error);

/**
 * Opens access to what a ticket for fast mode names (hamlyn_fast_ticket). `landing_bytes` of memory are for what is read, enough for all reads
 * that are outstanding at a time; 0: 64 KiB. If this manager has attached the place (hamlyn_attach_region), operations are made in its
 * memory. Connects if need be, for which it blocks for `wait_ns` at most. Allocates.
 */
hamlyn_status hamlyn_open_initiator(hamlyn_manager *manager,
                                    const hamlyn_ticket *ticket,
                                    uint64_t landing_bytes,
                                    int64_t wait_ns,
                                    hamlyn_initiator **initiator,
                                    hamlyn_error *error);

/**
 * Begins to read bytes at `offset` of the ticket's place into the landing memory (hamlyn_landed). Blocks for `wait_ns` at most while there is no
 * room. `operation` is told its number, for hamlyn_finish.
 */
hamlyn_status hamlyn_begin_read(hamlyn_initiator *initiator,
                                uint64_t offset,
                                uint64_t landing_offset,
                                uint64_t length_bytes,
                                int64_t wait_ns,
                                uint32_t *operation,
                                hamlyn_error *error);

/**
 * Begins to put bytes to `offset` of the ticket's place. They were copied when this returns, and are in their place when the operation is
 * complete.
 */
hamlyn_status hamlyn_begin_put(hamlyn_initiator *initiator,
                               uint64_t offset,
                               const void *data,
                               size_t length_bytes,
                               int64_t wait_ns,
                               uint32_t *operation,
                               hamlyn_error *error);

/**
 * Begins to change the word at `offset` of the ticket's place, a multiple of its width in the owner's area. hamlyn_finish_word tells what it
 * was.
 */
hamlyn_status hamlyn_begin_atomic(hamlyn_initiator *initiator,
                                  uint64_t offset,
                                  const hamlyn_atomic_change *change,
                                  int64_t wait_ns,
                                  uint32_t *operation,
                                  hamlyn_error *error);

/**
 * Begins to read the eight bytes at `offset` of the ticket's place, for hamlyn_finish_word.
 */
hamlyn_status hamlyn_begin_read_word(hamlyn_initiator *initiator,
                                     uint64_t offset,
                                     int64_t wait_ns,
                                     uint32_t *operation,
                                     hamlyn_error *error);

/**
 * Begins to read pieces at equal distances, one behind the other into the landing memory. With HAMLYN_POLL no more than 64 packets can be
 * asked for.
 */
hamlyn_status hamlyn_begin_read_strided(hamlyn_initiator *initiator,
                                        const hamlyn_strided *pieces,
                                        uint64_t landing_offset,
                                        int64_t wait_ns,
                                        uint32_t *operation,
                                        hamlyn_error *error);

/**
 * Begins to put bytes to pieces at equal distances, as many bytes as all of them have.
 */
hamlyn_status hamlyn_begin_put_strided(hamlyn_initiator *initiator,
                                       const hamlyn_strided *pieces,
                                       const void *data,
                                       size_t length_bytes,
                                       int64_t wait_ns,
                                       uint32_t *operation,
                                       hamlyn_error *error);

/**
 * Begins to read pieces of `piece_bytes` at these offsets, one behind the other into the landing memory.
 */
hamlyn_status hamlyn_begin_read_indexed(hamlyn_initiator *initiator,
                                        const uint64_t *piece_offsets,
                                        size_t pieces,
                                        uint64_t piece_bytes,
                                        uint64_t landing_offset,
                                        int64_t wait_ns,
                                        uint32_t *operation,
                                        hamlyn_error *error);

/**
 * Begins to put bytes, in pieces of `piece_bytes`, to these offsets; where pieces overlap, either is there.
 */
hamlyn_status hamlyn_begin_put_indexed(hamlyn_initiator *initiator,
                                       const uint64_t *piece_offsets,
                                       size_t pieces,
                                       uint64_t piece_bytes,
                                       const void *data,
                                       size_t length_bytes,
                                       int64_t wait_ns,
                                       uint32_t *operation,
                                       hamlyn_error *error);

/**
 * Waits until an operation is complete, for `wait_ns` at most, and tells how it went. Its number is free then; after HAMLYN_TIMED_OUT it is
 * still outstanding. HAMLYN_REFUSED: the target did not allow it, and it had no effect. HAMLYN_PEER_LOST: it is not known whether
 * it had.
 */
hamlyn_status hamlyn_finish(hamlyn_initiator *initiator,
                            uint32_t operation,
                            int64_t wait_ns,
                            hamlyn_error *error);

/**
 * The same for an operation with a word: what it was before the change, or what was read.
 */
hamlyn_status hamlyn_finish_word(hamlyn_initiator *initiator,
                                 uint32_t operation,
                                 int64_t wait_ns,
                                 uint64_t *value,
                                 hamlyn_error *error);

/**
 * Waits until all operations that are outstanding are complete. Of several that failed, one is told. Values of words are not kept.
 */
hamlyn_status hamlyn_finish_all(hamlyn_initiator *initiator,
                                int64_t wait_ns,
                                hamlyn_error *error);

/**
 * How many operations are outstanding.
 */
hamlyn_status hamlyn_outstanding(hamlyn_initiator *initiator, size_t *operations, hamlyn_error *error);

/**
 * Copies out of the landing memory.
 */
hamlyn_status hamlyn_landed(hamlyn_initiator *initiator,
                            uint64_t landing_offset,
                            void *into,
                            size_t length_bytes,
                            hamlyn_error *error);

/**
 * Reads bytes at `offset` of the ticket's place to where the program wants them, as many as the ticket has, and waits for them. What does
 * not come in attached memory comes in rounds of 64 KiB. After an error a part of the bytes may be there.
 */
hamlyn_status hamlyn_read(hamlyn_initiator *initiator,
                          uint64_t offset,
                          void *into,
                          size_t length_bytes,
                          int64_t wait_ns,
                          hamlyn_error *error);

/**
 * Puts bytes to `offset` of the ticket's place, and waits until they are there.
 */
hamlyn_status hamlyn_put(hamlyn_initiator *initiator,
                         uint64_t offset,
                         const void *data,
                         size_t length_bytes,
                         int64_t wait_ns,
                         hamlyn_error *error);

/**
 * Reads the eight bytes at `offset` of the ticket's place, and waits for them.
 */
hamlyn_status hamlyn_read_word(hamlyn_initiator *initiator,
                               uint64_t offset,
                               int64_t wait_ns,
                               uint64_t *value,
                               hamlyn_error *error);

/**
 * Changes the word at `offset` of the ticket's place, and tells what it was. If the time was too short, the change may be made later.
 */
hamlyn_status hamlyn_change(hamlyn_initiator *initiator,
                            uint64_t offset,
                            const hamlyn_atomic_change *change,
                            int64_t wait_ns,
                            uint64_t *before,
                            hamlyn_error *error);

/**
 * Closes an initiator. Answers that are under way reach nothing; whether their operations were carried out is not known. Null is
 * allowed.
 */
hamlyn_status hamlyn_close_initiator(hamlyn_initiator *initiator,
                                     hamlyn_error *error);

/**
 * Sets all options to their defaults.
 */
hamlyn_status hamlyn_default_options(hamlyn_options *options, hamlyn_error *error);

/**
 * Makes a pool of `chunks` chunks of up to `chunk_bytes` bytes, less than 4 GiB together. Allocates all of it.
 */
hamlyn_status hamlyn_open_pool(size_t chunk_bytes,
                               uint32_t chunks,
                               hamlyn_pool **pool,
                               hamlyn_error *error);

/**
 * Takes a free chunk for `length_bytes` bytes; they are those of some use before. HAMLYN_TIMED_OUT if none is free, HAMLYN_TOO_LONG if chunks
 * are shorter. Does not block, and does not allocate.
 */
hamlyn_status hamlyn_take_chunk(hamlyn_pool *pool,
                                size_t length_bytes,
                                hamlyn_chunk *chunk,
                                hamlyn_error *error);

/**
 * Gives a chunk back: it must not be written any more. What it holds stays for those who read it, until it is taken again. HAMLYN_INVALID if
 * no chunk of that number is taken.
 */
hamlyn_status hamlyn_give_back_chunk(hamlyn_pool *pool,
                                     uint32_t index,
                                     hamlyn_error *error);

/**
 * Tells what a pool is like.
 */
hamlyn_status hamlyn_get_pool_info(hamlyn_pool *pool, hamlyn_pool_info *info, hamlyn_error *error);

/**
 * Lets the peer of a link, on this host, fetch a pool once, or with HAMLYN_ALL_LINKED every peer that is linked, with the number that `number` is told (hamlyn_fetch_pool); send it in a message.
 * It reads all of the pool, now and later, for as long as it likes: nothing that is ever in it is secret from it. HAMLYN_PEER_LOST if
 * the link is not up, HAMLYN_LIMIT or HAMLYN_SYSTEM if too much waits to be fetched. Does not block.
 */
hamlyn_status hamlyn_show_pool(hamlyn_manager *manager,
                               hamlyn_pool *pool,
                               uint64_t link,
                               uint64_t *number,
                               hamlyn_error *error);

/**
 * A pool that was shown and not fetched cannot be fetched any more with that number. Nothing for any other number.
 */
hamlyn_status hamlyn_hide_pool(hamlyn_manager *manager,
                               uint64_t number,
                               hamlyn_error *error);

/**
 * Closes a pool: its chunks must not be written any more. Peers keep what they have mapped. Null is allowed.
 */
hamlyn_status hamlyn_close_pool(hamlyn_pool *pool, hamlyn_error *error);

/**
 * Fetches the pool that the peer of a link shows under that number, if the kernel confirms that it can neither shrink nor be written by others
 * than its owner. HAMLYN_NOT_FOUND if the link is not known, or if nothing is shown under that number. Blocks for `wait_ns` at most. Allocates.
 */
hamlyn_status hamlyn_fetch_pool(hamlyn_manager *manager,
                                uint64_t link,
                                uint64_t number,
                                int64_t wait_ns,
                                hamlyn_shared_pool **pool,
                                hamlyn_error *error);

/**
 * How many bytes a pool of a peer has.
 */
hamlyn_status hamlyn_shared_pool_bytes(hamlyn_shared_pool *pool, uint64_t *length_bytes, hamlyn_error *error);

/**
 * Copies bytes out of a pool of a peer. The peer may write them at any time: check what was copied, and copy it once.
 */
hamlyn_status hamlyn_read_shared_pool(hamlyn_shared_pool *pool,
                                      uint64_t offset,
                                      void *into,
                                      size_t length_bytes,
                                      hamlyn_error *error);

/**
 * Tells where bytes of a peer's pool lie, until the pool's handle is closed. The peer may write them at any time: use atomic loads, or volatile
 * ones, unless it is trusted not to. They may only be read: the kernel ends a program that writes them.
 */
hamlyn_status hamlyn_view_shared_pool(hamlyn_shared_pool *pool,
                                      uint64_t offset,
                                      size_t length_bytes,
                                      const void **data,
                                      hamlyn_error *error);

/**
 * Closes a pool of a peer: its memory is unmapped. Null is allowed.
 */
hamlyn_status hamlyn_close_shared_pool(hamlyn_shared_pool *pool, hamlyn_error *error);

/**
 * Opens a queue of that many entries, 2 to 1,048,576, rounded up to a power of two. One that is too short for what may arrive loses
 * the oldest, and says so. Allocates.
 */
hamlyn_status hamlyn_open_queue(hamlyn_manager *manager,
                                size_t entries,
                                hamlyn_queue **queue,
                                hamlyn_error *error);

/**
 * Takes the next notification (h_rcv, h_rcv_block). Blocks for `wait_ns` at most. Does not allocate. HAMLYN_OVERRUN if
 * notifications were lost: the next call goes on with the oldest that is left.
 */
hamlyn_status hamlyn_rcv(hamlyn_queue *queue,
                         int64_t wait_ns,
                         hamlyn_notification *notification,
                         hamlyn_error *error);

/**
 * Takes up to `most` notifications that have come, into an array of as many, and says how many: for less than one by one. Does not block.
 * HAMLYN_OVERRUN if notifications were lost after those `count` that were taken.
 */
hamlyn_status hamlyn_rcv_many(hamlyn_queue *queue,
                              hamlyn_notification *notifications,
                              size_t most,
                              size_t *count,
                              hamlyn_error *error);

/**
 * How many notifications a queue has lost so far because it was too short.
 */
hamlyn_status hamlyn_queue_lost(hamlyn_queue *queue, uint64_t *lost, hamlyn_error *error);

/**
 * How many entries a queue has.
 */
hamlyn_status hamlyn_queue_entries(hamlyn_queue *queue, size_t *entries, hamlyn_error *error);

/**
 * Closes a queue. Close its slots first: what comes to them afterwards is not announced. Null is allowed.
 */
hamlyn_status hamlyn_close_queue(hamlyn_queue *queue, hamlyn_error *error);

/**
 * How many packets this manager's interface has refused for that reason, a number of hamlyn_refusal.
 */
hamlyn_status hamlyn_refusals(hamlyn_manager *manager, uint32_t reason, uint64_t *count, hamlyn_error *error);

/**
 * Says for people what a reason is. HAMLYN_NOT_FOUND if there is no such reason.
 */
hamlyn_status hamlyn_refusal_text(uint32_t reason, char *text, size_t text_bytes, hamlyn_error *error);

/**
 * Lets the peer of a link, or with HAMLYN_ALL_LINKED every peer of this host that is linked, attach whole pages of the slot, over an area of
 * HAMLYN_AREA_SHARED or HAMLYN_AREA_SPARSE; `access` is HAMLYN_REGION_READ_ONLY or HAMLYN_REGION_WRITABLE. `ticket` is given the ticket with
 * which they attach it; one peer does so once. Allocates; copies the pages if they are not all of the area.
 */
hamlyn_status hamlyn_share_region(hamlyn_slot *slot,
                                  uint64_t offset,
                                  uint64_t length_bytes,
                                  uint32_t access,
                                  uint64_t link,
                                  hamlyn_region **region,
                                  hamlyn_region_ticket *ticket,
                                  hamlyn_error *error);

/**
 * Ends a region: when this has returned, nothing that its holders do changes the area any more. Copies the pages that are there. If there is no
 * memory for that, holders may still write: free some, and call this again. The handle is to be closed afterwards.
 */
hamlyn_status hamlyn_revoke_region(hamlyn_region *region,
                                   hamlyn_error *error);

/**
 * Closes the handle of a region, which lasts until it is revoked or its slot is closed. Null is allowed.
 */
hamlyn_status hamlyn_close_region(hamlyn_region *region, hamlyn_error *error);

/**
 * Attaches a region of a peer. There must be a link to the peer (hamlyn_open_target makes one). From then on messages of 512 bytes and more to
 * that part of the slot are stored in place, and initiators on it operate in memory if the slot grants HAMLYN_RIGHT_READ alone or everything.
 * Blocks for `wait_ns` at most. Allocates.
 */
hamlyn_status hamlyn_attach_region(hamlyn_manager *manager,
                                   const hamlyn_region_ticket *ticket,
                                   int64_t wait_ns,
                                   hamlyn_attached **attached,
                                   hamlyn_error *error);

/**
 * HAMLYN_OK if an attached region still lasts and there is a link to its owner, otherwise HAMLYN_PEER_LOST. It may end right after the call.
 */
hamlyn_status hamlyn_check_attached(hamlyn_attached *attached,
                                    hamlyn_error *error);

/**
 * Detaches a region: messages and operations go as packets again. Windows on it stay mapped until they are closed. Null is allowed.
 */
hamlyn_status hamlyn_close_attached(hamlyn_attached *attached,
                                    hamlyn_error *error);

/**
 * How many regions are shared and not taken back, and how many of others are attached.
 */
hamlyn_status hamlyn_regions(hamlyn_manager *manager, size_t *shared, size_t *attached, hamlyn_error *error);

/**
 * Binds a service. Null for `options`: the defaults. Allocates; does not block.
 */
hamlyn_status hamlyn_bind_service(hamlyn_manager *manager,
                                  const char *item,
                                  const hamlyn_service_options *options,
                                  hamlyn_service **service,
                                  hamlyn_error *error);

/**
 * The next call: its request, where the client placed it. It is held until it is answered, put off, or dropped. Blocks for `wait_ns` at
 * most. Does not allocate.
 */
hamlyn_status hamlyn_next_call(hamlyn_service *service,
                               int64_t wait_ns,
                               hamlyn_message *request,
                               hamlyn_error *error);

/**
 * Who makes the call that is held.
 */
hamlyn_status hamlyn_call_peer(hamlyn_service *service, hamlyn_peer *peer, hamlyn_error *error);

/**
 * Answers the call that is held. Does not block: a reply for which there is no room is kept, within the bounds of the service. HAMLYN_OK also
 * if the client has given the call up or is gone. After HAMLYN_TOO_LONG the call has been dropped.
 */
hamlyn_status hamlyn_reply(hamlyn_service *service,
                           const void *data,
                           size_t length_bytes,
                           hamlyn_error *error);

/**
 * Drops the call that is held: its client is told so.
 */
hamlyn_status hamlyn_drop_call(hamlyn_service *service, hamlyn_error *error);

/**
 * Puts the call that is held off: it is answered with hamlyn_reply_deferred, in any order. Its request stays where it is.
 */
hamlyn_status hamlyn_defer_call(hamlyn_service *service,
                                hamlyn_deferred_call **deferred,
                                hamlyn_error *error);

/**
 * The request of a call that was put off. HAMLYN_PEER_LOST if its client is gone.
 */
hamlyn_status hamlyn_deferred_request(hamlyn_service *service,
                                      hamlyn_deferred_call *deferred,
                                      hamlyn_message *request,
                                      hamlyn_error *error);

/**
 * Answers a call that was put off, and closes it, whatever is returned.
 */
hamlyn_status hamlyn_reply_deferred(hamlyn_service *service,
                                    hamlyn_deferred_call *deferred,
                                    const void *data,
                                    size_t length_bytes,
                                    hamlyn_error *error);

/**
 * Drops a call that was put off: its client is told so at the next call of the service. Null is allowed.
 */
hamlyn_status hamlyn_close_deferred_call(hamlyn_deferred_call *deferred, hamlyn_error *error);

/**
 * Takes away what the client of the call that is held has here, that call included: its calls fail, and those it makes from now on.
 */
hamlyn_status hamlyn_dismiss_client(hamlyn_service *service,
                                    hamlyn_error *error);

/**
 * Closes a service: its clients are told. Null is allowed.
 */
hamlyn_status hamlyn_close_service(hamlyn_service *service, hamlyn_error *error);

/**
 * Connects to a service. Blocks for `wait_ns` at most. Allocates.
 */
hamlyn_status hamlyn_connect_service(hamlyn_manager *manager,
                                     const char *to,
                                     int64_t wait_ns,
                                     hamlyn_client **client,
                                     hamlyn_error *error);

/**
 * Sends a request and waits for the reply, which is held until hamlyn_release_reply. The call is cancelled when the time is over.
 */
hamlyn_status hamlyn_call(hamlyn_client *client,
                          const void *data,
                          size_t length_bytes,
                          int64_t wait_ns,
                          hamlyn_message *reply,
                          hamlyn_error *error);

/**
 * Sends a request without waiting for the reply. Blocks, for `wait_ns` at most, only if as many calls are outstanding as may be, or if there
 * is no room to send.
 */
hamlyn_status hamlyn_start_call(hamlyn_client *client,
                                const void *data,
                                size_t length_bytes,
                                int64_t wait_ns,
                                hamlyn_pending_call **pending,
                                hamlyn_error *error);

/**
 * Waits for the reply to a call that was started; the reply is held until hamlyn_release_reply. HAMLYN_TIMED_OUT if it did not come in
 * time: the call goes on, until it is closed. Calls may be asked for in any order.
 */
hamlyn_status hamlyn_take_reply(hamlyn_client *client,
                                hamlyn_pending_call *pending,
                                int64_t wait_ns,
                                hamlyn_message *reply,
                                hamlyn_error *error);

/**
 * Gives the room of a reply back.
 */
hamlyn_status hamlyn_release_reply(hamlyn_client *client, hamlyn_error *error);

/**
 * Closes a call that was started; if its reply was not taken it is cancelled, of which the server learns at the client's next call. Null is
 * allowed.
 */
hamlyn_status hamlyn_close_pending_call(hamlyn_pending_call *pending,
                                        hamlyn_error *error);

/**
 * Closes a client: its calls are cancelled. Null is allowed.
 */
hamlyn_status hamlyn_close_client(hamlyn_client *client, hamlyn_error *error);

/**
 * Opens a shared lane. Null for `options`: the defaults. Does not block; allocates its queue, which takes memory as it is used.
 */
hamlyn_status hamlyn_open_shared_lane(hamlyn_manager *manager,
                                      const hamlyn_shared_lane_options *options,
                                      hamlyn_shared_lane **lane,
                                      hamlyn_error *error);

/**
 * Closes a shared lane. Messages that wait there are gone, and those that the program has are not valid any more. Null is allowed.
 */
hamlyn_status hamlyn_close_shared_lane(hamlyn_shared_lane *lane,
                                       hamlyn_error *error);

/**
 * Tells a ticket of a shared lane, with which any number of peers send: a target's message names its tag as its word.
 */
hamlyn_status hamlyn_shared_lane_ticket(hamlyn_shared_lane *lane,
                                        hamlyn_ticket *ticket,
                                        hamlyn_error *error);

/**
 * Takes the next message, in a buffer that is the program's until it gives it back (hamlyn_give_back_shared_lane). HAMLYN_TIMED_OUT at once if
 * the program has all buffers: then messages wait in the queue. Blocks for `wait_ns` at most. Allocates the first time that a buffer is used.
 */
hamlyn_status hamlyn_recv_shared_lane(hamlyn_shared_lane *lane,
                                      int64_t wait_ns,
                                      hamlyn_lane_message *message,
                                      hamlyn_error *error);

/**
 * Gives the buffer of a message back. HAMLYN_HELD if the program has no message there.
 */
hamlyn_status hamlyn_give_back_shared_lane(hamlyn_shared_lane *lane, uint32_t buffer, hamlyn_error *error);

/**
 * Tells the state of a shared lane.
 */
hamlyn_status hamlyn_get_shared_lane_info(hamlyn_shared_lane *lane,
                                          hamlyn_shared_lane_info *info,
                                          hamlyn_error *error);

/**
 * Tells how many messages to a shared lane were refused for that reason, a number of hamlyn_refusal. HAMLYN_NOT_FOUND if there is no such reason.
 */
hamlyn_status hamlyn_shared_lane_refusals(hamlyn_shared_lane *lane,
                                          uint32_t reason,
                                          uint64_t *count,
                                          hamlyn_error *error);

/**
 * Opens a slot over an area, or a part of it, with a fresh key. Null for `options`: the whole area, to be written, in normal mode,
 * unannounced. An area that changes hands (hamlyn_allocate_handover) becomes the slot's own: HAMLYN_HELD if it was another's. Allocates.
 */
hamlyn_status hamlyn_open_slot(hamlyn_manager *manager,
                               hamlyn_area *area,
                               const hamlyn_slot_options *options,
                               hamlyn_slot **slot,
                               hamlyn_error *error);

/**
 * The number of a slot in notifications.
 */
hamlyn_status hamlyn_slot_number(hamlyn_slot *slot, uint32_t *number, hamlyn_error *error);

/**
 * A ticket for messages in fast mode, and for one-sided operations, to a part of the slot.
 */
hamlyn_status hamlyn_fast_ticket(hamlyn_slot *slot,
                                 uint64_t offset,
                                 uint64_t length_bytes,
                                 hamlyn_ticket *ticket,
                                 hamlyn_error *error);

/**
 * A ticket for messages to a metadata entry, and a part of the slot. In the paranoid modes it carries the entry's key, and lies within the
 * entry's limits: permit the entry first (hamlyn_permit_entry).
 */
hamlyn_status hamlyn_entry_ticket(hamlyn_slot *slot,
                                  uint16_t entry,
                                  uint64_t offset,
                                  uint64_t length_bytes,
                                  hamlyn_ticket *ticket,
                                  hamlyn_error *error);

/**
 * Gives the slot a fresh key: tickets that were made before are worthless, in normal mode. Also lifts a revocation.
 */
hamlyn_status hamlyn_rekey_slot(hamlyn_slot *slot,
                                hamlyn_error *error);

/**
 * Refuses all messages to the slot, until it has a fresh key (hamlyn_rekey_slot).
 */
hamlyn_status hamlyn_revoke_slot(hamlyn_slot *slot, hamlyn_error *error);

/**
 * Tells the state of a slot.
 */
hamlyn_status hamlyn_get_slot_info(hamlyn_slot *slot, hamlyn_slot_info *info, hamlyn_error *error);

/**
 * How many packets to a slot were refused for that reason, a number of hamlyn_refusal. HAMLYN_NOT_FOUND if there is no such reason.
 */
hamlyn_status hamlyn_slot_refusals(hamlyn_slot *slot,
                                   uint32_t reason,
                                   uint64_t *count,
                                   hamlyn_error *error);

/**
 * Closes a slot: its tickets are worthless from now on, and its regions are taken back. Null is allowed.
 */
hamlyn_status hamlyn_close_slot(hamlyn_slot *slot, hamlyn_error *error);

/**
 * Tells the fields of a ticket, or that the bytes are none.
 */
hamlyn_status hamlyn_get_ticket_info(const hamlyn_ticket *ticket,
                                     hamlyn_ticket_info *info,
                                     hamlyn_error *error);

/**
 * Binds the receiving end of a stream, for the one sender that connects first. Null for `options`: the defaults. Null for `item`: its sender
 * grows from its seed. Allocates; does not block.
 */
hamlyn_status hamlyn_bind_stream(hamlyn_manager *manager,
                                 const char *item,
                                 const hamlyn_stream_options *options,
                                 hamlyn_stream_receiver **receiver,
                                 hamlyn_error *error);

/**
 * A stream's seed, for a sender that is not to find it by a name. No record may be held.
 */
hamlyn_status hamlyn_stream_seed(hamlyn_stream_receiver *receiver, hamlyn_seed *seed, hamlyn_error *error);

/**
 * Becomes the sender of a stream by its seed. Blocks for `wait_ns` at most while it connects. Allocates.
 */
hamlyn_status hamlyn_grow_stream(hamlyn_manager *manager,
                                 const hamlyn_seed *seed,
                                 int64_t wait_ns,
                                 hamlyn_stream_sender **sender,
                                 hamlyn_error *error);

/**
 * Receives the next record, where it landed. It is held until hamlyn_release_record. Blocks for `wait_ns` at most. HAMLYN_FINISHED when the
 * sender has closed and all is received; HAMLYN_PEER_LOST when it is gone without a word.
 */
hamlyn_status hamlyn_recv_record(hamlyn_stream_receiver *receiver,
                                 int64_t wait_ns,
                                 hamlyn_message *record,
                                 hamlyn_error *error);

/**
 * Gives the memory of the record back to its sender.
 */
hamlyn_status hamlyn_release_record(hamlyn_stream_receiver *receiver, hamlyn_error *error);

/**
 * Who sends. No record may be held. HAMLYN_NOT_FOUND before a sender has presented itself.
 */
hamlyn_status hamlyn_stream_peer(hamlyn_stream_receiver *receiver, hamlyn_peer *peer, hamlyn_error *error);

/**
 * Closes the receiving end: its sender is told. A record that is held is not valid any more. Null is allowed.
 */
hamlyn_status hamlyn_close_stream_receiver(hamlyn_stream_receiver *receiver, hamlyn_error *error);

/**
 * Connects to a stream, as its only sender. Blocks for `wait_ns` at most while nobody has the name or has bound the item. Allocates.
 */
hamlyn_status hamlyn_connect_stream(hamlyn_manager *manager,
                                    const char *to,
                                    int64_t wait_ns,
                                    hamlyn_stream_sender **sender,
                                    hamlyn_error *error);

/**
 * Sends a record. Blocks for `wait_ns` at most while the receiver has no memory for it. Short records may wait for more of their kind, until
 * hamlyn_flush_stream, the next long one, or any call of the manager that waits.
 */
hamlyn_status hamlyn_send_record(hamlyn_stream_sender *sender,
                                 const void *data,
                                 size_t length_bytes,
                                 int64_t wait_ns,
                                 hamlyn_error *error);

/**
 * Sends what waits for more of its kind.
 */
hamlyn_status hamlyn_flush_stream(hamlyn_stream_sender *sender, int64_t wait_ns, hamlyn_error *error);

/**
 * Waits until all records that were sent are in their places.
 */
hamlyn_status hamlyn_fence_stream(hamlyn_stream_sender *sender, int64_t wait_ns, hamlyn_error *error);

/**
 * Says that the stream is whole: the receiver finds its end after the last record. Then the handle is to be closed.
 */
hamlyn_status hamlyn_finish_stream(hamlyn_stream_sender *sender,
                                   int64_t wait_ns,
                                   hamlyn_error *error);

/**
 * Closes the sending end, as hamlyn_finish_stream does without waiting. Null is allowed.
 */
hamlyn_status hamlyn_close_stream_sender(hamlyn_stream_sender *sender, hamlyn_error *error);

/**
 * Binds an area of `area_bytes` that any number of senders write, with room for so many tags that have not been taken. Allocates.
 */
hamlyn_status hamlyn_bind_tagged_write(hamlyn_manager *manager,
                                       const char *item,
                                       uint64_t area_bytes,
                                       uint32_t tags,
                                       hamlyn_tag_receiver **receiver,
                                       hamlyn_error *error);

/**
 * Takes the next tag. What was written with it is in its place. Blocks for `wait_ns` at most. Does not allocate.
 */
hamlyn_status hamlyn_recv_tag(hamlyn_tag_receiver *receiver,
                              int64_t wait_ns,
                              uint64_t *tag,
                              hamlyn_error *error);

/**
 * Waits for that very tag; others that come meanwhile stay queued, in order.
 */
hamlyn_status hamlyn_recv_specific_tag(hamlyn_tag_receiver *receiver,
                                       uint64_t tag,
                                       int64_t wait_ns,
                                       hamlyn_error *error);

/**
 * Who sent the tag that hamlyn_recv_tag took last.
 */
hamlyn_status hamlyn_tag_peer(hamlyn_tag_receiver *receiver, hamlyn_peer *peer, hamlyn_error *error);

/**
 * Copies from the area. Senders may write there meanwhile: the copy is what was there, byte by byte, at some time of the call.
 */
hamlyn_status hamlyn_read_area(hamlyn_tag_receiver *receiver,
                               uint64_t offset,
                               void *into,
                               size_t length_bytes,
                               hamlyn_error *error);

/**
 * Copies to the area.
 */
hamlyn_status hamlyn_write_area(hamlyn_tag_receiver *receiver,
                                uint64_t offset,
                                const void *data,
                                size_t length_bytes,
                                hamlyn_error *error);

/**
 * A ticket for a part of the area. Its holder's library keeps to that part; what guards the area is one key, so who makes tickets up from this
 * one reaches all of it. For parts that are guarded apart, bind several.
 */
hamlyn_status hamlyn_area_ticket(hamlyn_tag_receiver *receiver,
                                 uint64_t offset,
                                 uint64_t length_bytes,
                                 hamlyn_ticket *ticket,
                                 hamlyn_error *error);

/**
 * Takes back all tickets of the area. Those who connect from now on are given a new one.
 */
hamlyn_status hamlyn_revoke_area(hamlyn_tag_receiver *receiver, hamlyn_error *error);

/**
 * Closes a receiver. Null is allowed.
 */
hamlyn_status hamlyn_close_tag_receiver(hamlyn_tag_receiver *receiver, hamlyn_error *error);

/**
 * Connects to an area that is written with tags. Blocks for `wait_ns` at most. Allocates.
 */
hamlyn_status hamlyn_connect_tagged_write(hamlyn_manager *manager,
                                          const char *to,
                                          int64_t wait_ns,
                                          hamlyn_tag_sender **sender,
                                          hamlyn_error *error);

/**
 * The same, by a ticket of the receiver: `offset` counts from where the ticket begins.
 */
hamlyn_status hamlyn_grow_tagged_write(hamlyn_manager *manager,
                                       const hamlyn_ticket *ticket,
                                       int64_t wait_ns,
                                       hamlyn_tag_sender **sender,
                                       hamlyn_error *error);

/**
 * Writes to `offset` in the receiver's area, one packet at most, and queues the tag there. Blocks for `wait_ns` at most while there is no
 * room. Does not allocate.
 */
hamlyn_status hamlyn_send_tag(hamlyn_tag_sender *sender,
                              uint64_t offset,
                              const void *data,
                              size_t length_bytes,
                              uint64_t tag,
                              int64_t wait_ns,
                              hamlyn_error *error);

/**
 * Waits until all that this manager sent to the receiver's interface is in its place, or says what was refused since the fence before.
 */
hamlyn_status hamlyn_fence_tags(hamlyn_tag_sender *sender,
                                int64_t wait_ns,
                                hamlyn_error *error);

/**
 * Closes a sender. Null is allowed.
 */
hamlyn_status hamlyn_close_tag_sender(hamlyn_tag_sender *sender, hamlyn_error *error);

/**
 * Makes a ticket usable: finds the link to its interface, or connects, for which it blocks for `wait_ns` at most. What is sent to the target
 * goes by that terminus.
 */
hamlyn_status hamlyn_open_target(hamlyn_terminus *terminus,
                                 const hamlyn_ticket *ticket,
                                 int64_t wait_ns,
                                 hamlyn_target **target,
                                 hamlyn_error *error);

/**
 * Gives a target another ticket to the same interface, without connecting. HAMLYN_INVALID if the ticket leads to another.
 */
hamlyn_status hamlyn_retarget(hamlyn_target *target,
                              const hamlyn_ticket *ticket,
                              hamlyn_error *error);

/**
 * The link over which a target's messages go (hamlyn_link_peer, hamlyn_fence_link).
 */
hamlyn_status hamlyn_target_link(hamlyn_target *target, uint64_t *link, hamlyn_error *error);

/**
 * Sends a message (h_send_msg). A short one waits in the work queue if the link has no room; a longer one is sent from where it lies, so the
 * call lasts until all of it is handed to the link, for `wait_ns` at most. With HAMLYN_POLL nothing is sent rather than waited for, and so
 * never a message that is longer than both a packet and the 128 bytes that the work queue holds. `sequence` is told its number,
 * for hamlyn_get_completion; null: nobody asks. Does not allocate.
 */
hamlyn_status hamlyn_send_msg(hamlyn_target *target,
                              const hamlyn_outgoing_message *message,
                              int64_t wait_ns,
                              uint64_t *sequence,
                              hamlyn_error *error);

/**
 * Sends `count` messages of an array in order, for less than one by one. Blocks as hamlyn_send_msg does. `sent` is told how many went; the
 * first that cannot be sent ends the call, and its error is returned. `sequence` is told the number of the last that went; null:
 * nobody asks.
 */
hamlyn_status hamlyn_send_many(hamlyn_target *target,
                               const hamlyn_outgoing_message *messages,
                               size_t count,
                               int64_t wait_ns,
                               size_t *sent,
                               uint64_t *sequence,
                               hamlyn_error *error);

/**
 * Sends a message gathered from up to 1,024 pieces of send-buffer areas, packet by packet, as the link has room. Never blocks; allocates for
 * more than 8 pieces. If it is HAMLYN_TIMED_OUT, packets have been moved. The pieces must
 * stay as they are until hamlyn_get_completion says that the message is sent. The data of `message` are not used.
 */
hamlyn_status hamlyn_send_gather(hamlyn_target *target,
                                 const hamlyn_outgoing_message *message,
                                 const hamlyn_piece *pieces,
                                 size_t count,
                                 uint64_t *sequence,
                                 hamlyn_error *error);

/**
 * Tells what became of a message of that number. Does not look at what has come: hamlyn_poll moves messages on.
 */
hamlyn_status hamlyn_get_completion(hamlyn_target *target,
                                    uint64_t sequence,
                                    hamlyn_completion *completion,
                                    hamlyn_error *error);

/**
 * Stores bytes at `offset` of the target's place, which counts them under the entry of its ticket (hamlyn_stored_bytes); nothing comes back
 * (Split-C 2). The ticket must be one of a slot that counts stores. Blocks as hamlyn_send_msg does. Those of several packets
 * may land in any order; a fence tells when all is there.
 */
hamlyn_status hamlyn_store(hamlyn_target *target,
                           uint64_t offset,
                           const void *data,
                           size_t length_bytes,
                           int64_t wait_ns,
                           hamlyn_error *error);

/**
 * Closes a target. What was sent arrives all the same. Null is allowed.
 */
hamlyn_status hamlyn_close_target(hamlyn_target *target, hamlyn_error *error);

/**
 * How many packets a message takes on a link whose packets carry that much.
 */
hamlyn_status hamlyn_packets_needed(uint64_t data_bytes,
                                    size_t metadata_bytes,
                                    size_t payload_bytes,
                                    uint64_t *packets,
                                    hamlyn_error *error);

/**
 * Divides a share of a count among several senders (Hamlyn 2.5): part i is at least `needed[i]`, the packets that its sender needs. 0 for
 * `share`: the whole count. All of them together are the share, and the receiver is told when all that they send is there.
 */
hamlyn_status hamlyn_divide_share(uint64_t share,
                                  uint32_t counting_bits,
                                  const uint64_t *needed,
                                  uint64_t *parts,
                                  size_t count,
                                  hamlyn_error *error);

/**
 * Opens a terminus. `queue_entries` messages may wait for each destination, 1 to 4,095; 0: 63. `send_areas` may be bound at a time, up to
 * 1,024; 0: 8. `priority`: so many packets are sent per turn relative to other termini that send to the same destination, 1 to 255; 0: 1.
 * Allocates.
 */
hamlyn_status hamlyn_open_terminus(hamlyn_manager *manager,
                                   uint32_t queue_entries,
                                   uint32_t send_areas,
                                   uint8_t priority,
                                   hamlyn_terminus **terminus,
                                   hamlyn_error *error);

/**
 * Makes a part of an area a send-buffer area of a terminus, as many as it was opened with: `tag` is told its name for hamlyn_send_gather.
 */
hamlyn_status hamlyn_bind_area(hamlyn_terminus *terminus,
                               hamlyn_area *area,
                               uint64_t offset,
                               uint64_t length_bytes,
                               uint16_t *tag,
                               hamlyn_error *error);

/**
 * Copies up to HAMLYN_METADATA_BYTES of metadata for a message out of a send-buffer area, `piece` into `room_bytes` bytes of the program.
 * HAMLYN_TOO_LONG if there is less room, or the piece is longer than metadata can be. Does not block, and does not allocate.
 */
hamlyn_status hamlyn_gather_metadata(hamlyn_terminus *terminus,
                                     const hamlyn_piece *piece,
                                     void *into,
                                     size_t room_bytes,
                                     hamlyn_error *error);

/**
 * Undoes hamlyn_bind_area.
 */
hamlyn_status hamlyn_unbind_area(hamlyn_terminus *terminus, uint16_t tag, hamlyn_error *error);

/**
 * Closes a terminus; messages that wait are dropped, and its targets are of no use any more. Null is allowed.
 */
hamlyn_status hamlyn_close_terminus(hamlyn_terminus *terminus, hamlyn_error *error);

/**
 * A ticket for a part of the place: `length_bytes` from `offset` on. For delegates that are to write there only.
 */
hamlyn_status hamlyn_narrow_ticket(const hamlyn_ticket *ticket,
                                   uint64_t offset,
                                   uint64_t length_bytes,
                                   hamlyn_ticket *narrowed,
                                   hamlyn_error *error);

/**
 * Waits until one of `count` queues has something, a message or a completion, and tells the place in the array of the first that has. Blocks
 * for `wait_ns` at most. All of them are of that manager, each is given once, and no other call may use them meanwhile. Allocates.
 */
hamlyn_status hamlyn_await_any(hamlyn_manager *manager,
                               const hamlyn_source *sources,
                               size_t count,
                               int64_t wait_ns,
                               size_t *ready,
                               hamlyn_error *error);

/**
 * Has all waits with this manager look again after so long at the latest, event loops included, though nothing happens until then. For
 * protocols with time-outs, which ask for it in each look, since the earliest time of all counts, once. Does not block.
 */
hamlyn_status hamlyn_look_within(hamlyn_manager *manager,
                                 uint64_t span_ns,
                                 hamlyn_error *error);

/**
 * Opens a window on all of an attached region.
 */
hamlyn_status hamlyn_open_attached_window(hamlyn_attached *attached,
                                          hamlyn_window **window,
                                          hamlyn_error *error);

/**
 * Opens a window on the place of an initiator's ticket. HAMLYN_NOT_FOUND if that is in no region that this manager has attached.
 */
hamlyn_status hamlyn_open_initiator_window(hamlyn_initiator *initiator,
                                           hamlyn_window **window,
                                           hamlyn_error *error);

/**
 * Opens a window on a part of an own area. HAMLYN_INVALID if the part does not lie in it, or if it changes hands (hamlyn_view_pieces).
 */
hamlyn_status hamlyn_open_area_window(hamlyn_area *area,
                                      uint64_t offset,
                                      uint64_t length_bytes,
                                      hamlyn_window **window,
                                      hamlyn_error *error);

/**
 * Tells where a window lies.
 */
hamlyn_status hamlyn_get_window(hamlyn_window *window, hamlyn_window_info *info, hamlyn_error *error);

/**
 * Copies bytes out of a window. Those that others write meanwhile come out old or new.
 */
hamlyn_status hamlyn_read_window(hamlyn_window *window,
                                 uint64_t offset,
                                 void *into,
                                 size_t length_bytes,
                                 hamlyn_error *error);

/**
 * Copies bytes into a window.
 */
hamlyn_status hamlyn_write_window(hamlyn_window *window,
                                  uint64_t offset,
                                  const void *data,
                                  size_t length_bytes,
                                  hamlyn_error *error);

/**
 * Changes the word at `offset`, a multiple of its width in the owner's area, and tells what it was.
 */
hamlyn_status hamlyn_change_window(hamlyn_window *window,
                                   uint64_t offset,
                                   const hamlyn_atomic_change *change,
                                   uint64_t *before,
                                   hamlyn_error *error);

/**
 * Closes a window: its memory is unmapped with the last one on it, and its region or area. Null is allowed.
 */
hamlyn_status hamlyn_close_window(hamlyn_window *window, hamlyn_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAMLYN_H */
