//! What other programs are linked with: the exported symbols, and the layout of structures.

use std::collections::BTreeSet;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use hamlyn_c::{
    completions, datagram, entry, event, figures, lanes, links, loans, mailbox, member, one_sided,
    options, peer, queue, region, service, shared_lanes, slot, status, stream, target, ticket,
    waiting, window,
};

fn header() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/hamlyn.h");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn only_what_the_header_declares_is_exported() {
    let this = std::env::current_exe().unwrap();
    let library = this.parent().unwrap().join("libhamlyn_c.so");
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(library)
        .output()
        .unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<&str> = names
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let header = header();
    let declared: BTreeSet<&str> = header
        .lines()
        .filter_map(|line| line.strip_prefix("hamlyn_status ")?.split('(').next())
        .collect();
    assert!(declared.len() > 50);
    assert_eq!(exported, declared);
}

/// A C program that knows the sizes and places as Rust has them, or does not compile.
#[test]
fn structures_are_laid_out_alike() {
    let mut program = String::from("#include <hamlyn.h>\n");
    let mut expect = |what: String, value: usize| {
        program += &format!("_Static_assert({what} == {value}, \"{what} is not {value}\");\n");
    };
    macro_rules! alike {
        ($($name:literal: $type:ty { $($field:ident),* })*) => { $(
            expect(concat!("sizeof(", $name, ")").to_owned(), size_of::<$type>());
            $( expect(format!("offsetof({}, {})", $name, stringify!($field)), offset_of!($type, $field)); )*
        )* };
    }
    alike! {
        "hamlyn_error": status::Error { status, text }
        "hamlyn_seed": stream::Seed { bytes }
        "hamlyn_member": member::Member { bytes }
        "hamlyn_lane_seed": lanes::LaneSeedBytes { bytes }
        "hamlyn_lane_options": lanes::LaneOptions { buffers, buffer_bytes }
        "hamlyn_lane_message": lanes::LaneMessage { data, length_bytes, link, tag, buffer }
        "hamlyn_lane_sender_info": lanes::LaneSenderInfo { link, buffers, buffer_bytes, credits }
        "hamlyn_shared_lane_options": shared_lanes::SharedLaneOptions {
            key, group, buffers, buffer_bytes, tags, queue_bytes, peer_bytes
        }
        "hamlyn_shared_lane_info": shared_lanes::SharedLaneInfo {
            waiting, queued, refusals, too_long, taken, waiting_bytes, queue_bytes
        }
        "hamlyn_options": options::Options {
            struct_bytes, name, namespace_name, strategy, shared, queue_entries, spin_ns, access, users_count, users, groups,
            groups_count, network, network_options, cells, arena_bytes, payload_bytes_max, links_max, handshakes_max,
            terminus_entries, handshake_timeout_ns
        }
        "hamlyn_network_options": options::NetworkSettings {
            host, listen, hosts_file, secret_file, key_file, known_file, insecure, paths, silence_ns, no_progress_ns, name_service_port
        }
        "hamlyn_notification": queue::Notification { slot, entry, word, link }
        "hamlyn_slot_options": slot::SlotOptions { offset, length_bytes, queue, rights, mode, entries, counting_bits, counts_stores }
        "hamlyn_slot_info": slot::SlotInfo { length_bytes, refusals, rights, mode, entries, counting_bits, grants, revoked }
        "hamlyn_ticket_info": slot::TicketInfo {
            interface_number, node, user, slot, entry, counting_bits, offset, length_bytes
        }
        "hamlyn_entry": entry::Entry {
            armed, metadata_bytes, metadata, accumulator, receive_class, key, low, high
        }
        "hamlyn_outgoing_message": target::OutgoingMessage {
            data, length_bytes, offset, word, metadata, metadata_bytes, share, silent
        }
        "hamlyn_piece": target::Piece { offset, length_bytes, tag }
        "hamlyn_link_state": links::LinkState { is_encrypted, frame_bytes, paths, forgotten }
        "hamlyn_log_use": links::LogUse { episodes, spilled_bytes, waiting_bytes, most_bytes, log_bytes, pauses, pages, most_pages }
        "hamlyn_undelivered": links::Undelivered {
            interface_number, offset, word, slot, length_bytes, reason, entry
        }
        "hamlyn_work_completion": completions::WorkCompletion { context, word, status, is_returned, packet }
        "hamlyn_source": waiting::Source { kind, handle }
        "hamlyn_atomic_change": one_sided::AtomicChange { change, bits, operand, expected }
        "hamlyn_strided": one_sided::Strided { offset, stride_bytes, piece_bytes, pieces }
        "hamlyn_region_ticket": region::RegionTicket { bytes }
        "hamlyn_window_info": window::WindowInfo { data, length_bytes, is_writable, lasts }
        "hamlyn_message": datagram::Message { data, length_bytes }
        "hamlyn_peer": peer::Peer { node, user, group, process, interface_number, link }
        "hamlyn_ticket": ticket::Ticket { bytes }
        "hamlyn_stream_options": stream::StreamOptions { pieces, piece_bytes, limit_bytes, ahead, reserved }
        "hamlyn_service_options": service::ServiceOptions { request_bytes, reply_bytes, outstanding, clients }
        "hamlyn_publisher_options": loans::PublisherOptions { message_bytes, chunks, depth, readers, slow_readers }
        "hamlyn_mailbox_options": mailbox::MailboxOptions { queue_bytes, peer_bytes }
        "hamlyn_mailbox_info": figures::MailboxInfo { waiting, queued, refusals, waiting_bytes, queue_bytes }
        "hamlyn_publisher_info": figures::PublisherInfo { readers, lost, misbehaved, chunks_free }
        "hamlyn_subscriber_info": figures::SubscriberInfo { lost, message_bytes_max, depth, reads_in_place }
        "hamlyn_event": event::Event { kind, peer, count }
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout.c");
    std::fs::write(&path, program).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let output = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-I"])
        .arg(include)
        .arg(&path)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
