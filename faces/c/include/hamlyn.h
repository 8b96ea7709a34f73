/* Hamlyn: a network interface in software. Programs that do not trust each other exchange messages at memory speed.
 *
 * Functions return a hamlyn_status: HAMLYN_OK, or an error, of which hamlyn_error is given a text with the remedy; null
 * for `error`: nobody reads it. `wait_ns` says how long a call may wait: HAMLYN_POLL, so many nanoseconds, or
 * HAMLYN_FOREVER. A signal does not end a wait: its handler runs, and the wait goes on.
 *
 * Handles. A manager belongs to the thread that opened it, with its end points, unless it was opened as shared; then any
 * thread may use each of them, one at a time. Null, a closed handle, one of another kind and one of another thread
 * are refused with an error. (A closed handle is told for sure until a thousand more of its kind were closed.) A child
 * of fork must not use handles of its parent: it is refused, and opens its own.
 *
 * Pointers. What is not said to be optional must not be null. Texts are UTF-8 and end with a zero. Data are read during
 * the call only. What is received stays where it landed until it is released.
 *
 * This file is generated from the library's source. */

#ifndef HAMLYN_H
#define HAMLYN_H

#include <stddef.h>
#include <stdint.h>

/**
 * When a reader has no room, a publisher waits.
 */
#define HAMLYN_BLOCK 0

/**
 * The reader does not get the message; it is counted.
 */
#define HAMLYN_LOSE 1

/**
 * The same, but the newest message is kept for the reader until it has room.
 */
#define HAMLYN_LATEST 2

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
 * Bytes of a ticket.
 */
#define HAMLYN_TICKET_LENGTH_BYTES 64

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
     * A handle that was closed, is of another kind, or is none.
     */
    HAMLYN_BAD_HANDLE = 3,
    /**
     * The handle belongs to another thread, or another thread uses it now.
     */
    HAMLYN_OTHER_THREAD = 4,
    /**
     * A message of this handle is held: release it first. Or none is held that could be released.
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
     * The name, item, stream or group is taken.
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
} hamlyn_event_kind;

/**
 * A client of a service.
 */
typedef struct hamlyn_client hamlyn_client;

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
 * The receiving end of a group.
 */
typedef struct hamlyn_group_receiver hamlyn_group_receiver;

/**
 * A member of a group: the right to send a part.
 */
typedef struct hamlyn_group_sender hamlyn_group_sender;

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
 * The publishing end.
 */
typedef struct hamlyn_publisher hamlyn_publisher;

/**
 * A service.
 */
typedef struct hamlyn_service hamlyn_service;

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
 * The receiving end of tagged writes, and the tag that it received last.
 */
typedef struct hamlyn_tag_receiver hamlyn_tag_receiver;

/**
 * A sending end of tagged writes.
 */
typedef struct hamlyn_tag_sender hamlyn_tag_sender;

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
} hamlyn_peer;

/**
 * A ticket: the place in the receiver's memory, and the key that guards it. Who has it can send there, until the receiver takes it
 * back. May be copied and sent as bytes.
 */
typedef struct {
    /**
     * Meaningful to the library only.
     */
    uint8_t bytes[HAMLYN_TICKET_LENGTH_BYTES];
} hamlyn_ticket;

/**
 * An event.
 */
typedef struct {
    /**
     * What happened.
     */
    hamlyn_event_kind kind;
    /**
     * Who came or left; zeros otherwise.
     */
    hamlyn_peer peer;
    /**
     * How many; 0 where nothing is counted.
     */
    uint64_t count;
} hamlyn_event;

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
 * What a manager is opened with. Begin with hamlyn_default_options, which sets the first field; later versions of the library add
 * fields at the end, and take those of an older program to be defaults.
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
} hamlyn_options;

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
     * Clients at a time. Default 256.
     */
    uint16_t clients;
} hamlyn_service_options;

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
} hamlyn_stream_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

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
 * Binds a group with a place of `place_bytes`, 0 to 2 GiB; 0 for a barrier. Its members are found when hamlyn_begin_group offers them.
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
 * Sets all options to their defaults.
 */
hamlyn_status hamlyn_default_options(hamlyn_options *options, hamlyn_error *error);

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
 * Binds the receiving end of a stream, for the one sender that connects first. Null for `options`: the defaults. Allocates; does not
 * block.
 */
hamlyn_status hamlyn_bind_stream(hamlyn_manager *manager,
                                 const char *item,
                                 const hamlyn_stream_options *options,
                                 hamlyn_stream_receiver **receiver,
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
 * A ticket for a part of the area.
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
 * A ticket for a part of the place: `length_bytes` from `offset` on. For delegates that are to write there only.
 */
hamlyn_status hamlyn_narrow_ticket(const hamlyn_ticket *ticket,
                                   uint64_t offset,
                                   uint64_t length_bytes,
                                   hamlyn_ticket *narrowed,
                                   hamlyn_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAMLYN_H */
