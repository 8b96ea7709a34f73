// The party in C++ of the promises about mailboxes in conformance.rs: it understands those lines of party.c, and gives the same answers.
#include <hamlyn.hpp>

#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

class party {
  public:
    // Does what a line says, and returns the answer; throws if it cannot do that.
    std::string does(const std::string &line) {
        std::istringstream words(line);
        std::string verb, text, more;
        int at = 0;
        std::int64_t limit_ms = 0;
        words >> verb >> at >> limit_ms >> text >> more;
        const hamlyn::wait limit =
            limit_ms < 0 ? hamlyn::wait::forever() : hamlyn::wait(std::chrono::milliseconds(limit_ms));
        if (verb == "open") {
            manager = hamlyn::manager(hamlyn::options().name(text).strategy(number(more)));
        } else if (verb == "poll") {
            manager.poll();
        } else if (verb == "bind_mailbox") {
            const hamlyn_mailbox_options options{number(more), 0};
            mailboxes[at] = text == "-" ? manager.mailbox(options) : manager.bind_mailbox(text, options);
        } else if (verb == "connect_mailbox") {
            posts[at] = manager.connect_mailbox(text, limit);
        } else if (verb == "grow_mailbox") {
            posts[at] = manager.grow_mailbox(ticket_of(text), limit);
        } else if (verb == "mail_bytes_max") {
            return std::to_string(posts.at(at).message_bytes_max());
        } else if (verb == "send_mail") {
            send(posts.at(at), number(text), more, limit);
        } else if (verb == "fence_mailbox") {
            posts.at(at).fence(limit);
        } else if (verb == "recv_mail") {
            return receive(mailboxes.at(at), limit);
        } else if (verb == "mailbox_ticket") {
            return digits_of(mailboxes.at(at).ticket());
        } else if (verb == "mailbox_info") {
            const auto &mailbox = mailboxes.at(at);
            const auto info = mailbox.info();
            std::ostringstream said;
            said << info.waiting << ' ' << info.waiting_bytes << ' ' << info.queued << ' ' << info.refusals << ' '
                 << mailbox.refusals(number(text));
            return said.str();
        } else if (verb == "revoke_mailbox") {
            mailboxes.at(at).revoke();
        } else {
            throw std::runtime_error("no verb is called " + verb);
        }
        return "";
    }

  private:
    static std::uint32_t number(const std::string &digits) { return static_cast<std::uint32_t>(std::stoul(digits)); }

    static hamlyn::ticket ticket_of(const std::string &digits) {
        hamlyn::ticket ticket{};
        for (std::size_t i = 0; i < HAMLYN_TICKET_USED_BYTES; i++) {
            ticket.bytes[i] = static_cast<std::uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
        }
        return ticket;
    }

    static std::string digits_of(const hamlyn::ticket &ticket) {
        std::string digits;
        for (std::size_t i = 0; i < HAMLYN_TICKET_USED_BYTES; i++) {
            char byte[3];
            std::snprintf(byte, sizeof byte, "%02x", ticket.bytes[i]);
            digits += byte;
        }
        return digits;
    }

    static void send(hamlyn::mailbox_sender &post, std::uint32_t seed, const std::string &lengths, hamlyn::wait limit) {
        std::istringstream list(lengths);
        for (std::string each; std::getline(list, each, ',');) {
            std::vector<unsigned char> message(number(each));
            for (std::size_t i = 0; i < message.size(); i++) {
                message[i] = static_cast<unsigned char>(seed * 31 + message.size() + i * 7);
            }
            post.send(message, limit);
        }
    }

    static std::string receive(hamlyn::mailbox_receiver &mailbox, hamlyn::wait limit) {
        const auto mail = mailbox.recv(limit);
        if (!mail) {
            hamlyn_error nothing{HAMLYN_TIMED_OUT, "nothing came in time"};
            throw hamlyn::error(nothing);
        }
        std::uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (const std::byte byte : *mail) {
            hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * UINT64_C(0x100000001b3);
        }
        std::ostringstream said;
        said << mail->sender().value().process << ' ' << mail->size() << ' ' << std::hex << hash;
        return said.str();
    }

    hamlyn::manager manager;
    std::map<int, hamlyn::mailbox_receiver> mailboxes;
    std::map<int, hamlyn::mailbox_sender> posts;
};

} // namespace

int main() {
    party party;
    for (std::string line; std::getline(std::cin, line);) {
        try {
            const auto answer = party.does(line);
            std::cout << "0 " << answer << std::endl;
        } catch (const hamlyn::error &error) {
            std::cout << error.code() << ' ' << error.what() << std::endl;
        }
    }
}
