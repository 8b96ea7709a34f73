// Managers of hamlyn.hpp, which make all else.

#ifndef HAMLYN_MANAGER_HPP
#define HAMLYN_MANAGER_HPP

#include "loans.hpp"
#include "protocols.hpp"

namespace hamlyn {

// What happened, and what it says for people.
struct event {
    hamlyn_event what;
    std::string text;
};

// A manager's settings, with their defaults.
class options {
  public:
    options() {
        detail::attempt(hamlyn_default_options, &options_).value();
    }
    options &name(std::string name) {
        name_ = std::move(name);
        return *this;
    }
    options &in_namespace(std::string name) {
        namespace_ = std::move(name);
        return *this;
    }
    // HAMLYN_PROC, HAMLYN_NP, HAMLYN_INJECT or HAMLYN_RECEIVE.
    options &strategy(std::uint32_t strategy) {
        options_.strategy = strategy;
        return *this;
    }
    // Any thread may use the manager and its end points, one at a time.
    options &shared() {
        options_.shared = 1;
        return *this;
    }
    options &queue_entries(std::uint32_t entries) {
        options_.queue_entries = entries;
        return *this;
    }
    // Only this user, and root, may be linked to the manager: the default. Then: everybody, or those that are listed.
    options &access_anyone() {
        options_.access = HAMLYN_ACCESS_ANYONE;
        return *this;
    }
    options &access(std::vector<std::uint32_t> users, std::vector<std::uint32_t> groups = {}) {
        options_.access = HAMLYN_ACCESS_LISTED;
        users_ = std::move(users);
        groups_ = std::move(groups);
        return *this;
    }
    // It stays on this host.
    options &network_off() {
        options_.network = HAMLYN_NETWORK_OFF;
        return *this;
    }
    // Other hosts are reached as the settings say; their texts must last until the manager is opened.
    options &network(const hamlyn_network_options &settings) {
        options_.network = HAMLYN_NETWORK_ON;
        network_ = settings;
        return *this;
    }
    // For how long a call that waits polls before it sleeps.
    options &spin(std::chrono::nanoseconds limit) {
        options_.spin_ns = limit.count();
        return *this;
    }
    // The others: see hamlyn_options.
    hamlyn_options &all() noexcept { return options_; }
    // As hamlyn.h has them, as long as this lasts and is not changed.
    hamlyn_options get() const {
        hamlyn_options all = options_;
        if (!users_.empty()) {
            all.users = users_.data();
            all.users_count = static_cast<std::uint32_t>(users_.size());
        }
        if (!groups_.empty()) {
            all.groups = groups_.data();
            all.groups_count = static_cast<std::uint32_t>(groups_.size());
        }
        if (network_) {
            all.network_options = &*network_;
        }
        all.name = name_ ? name_->c_str() : nullptr;
        all.namespace_name = namespace_ ? namespace_->c_str() : nullptr;
        return all;
    }

  private:
    hamlyn_options options_;
    std::optional<std::string> name_, namespace_;
    std::vector<std::uint32_t> users_, groups_;
    std::optional<hamlyn_network_options> network_;
};

// What was sent and did not arrive, and what it says for people.
struct undelivered {
    hamlyn_undelivered what;
    std::string text;
};

// The state of a link, and what it says for people.
struct link_state {
    hamlyn_link_state what;
    std::string text;
};

class manager;

// A manager on its way from one thread to another.
class detached : public detail::handle<hamlyn_detached, hamlyn_close_detached> {
  public:
    using handle::handle;

    // It belongs to the thread that calls this.
    manager attach();
};

// An interface and its end points. Belongs to the thread that opened it, unless it is shared.
class manager : public detail::handle<hamlyn_manager, hamlyn_close> {
  public:
    // One that others reach by tickets only.
    manager() : manager(hamlyn::options()) {}
    explicit manager(std::string name) : manager(hamlyn::options().name(std::move(name))) {}
    explicit manager(const hamlyn::options &options) : handle(opened(options)) {}

    datagram_receiver bind_datagram(const std::string &item, std::uint32_t buffer_bytes) {
        return made<datagram_receiver>(hamlyn_bind_datagram, item.c_str(), buffer_bytes);
    }
    // One that is reached by its ticket.
    datagram_receiver datagram(std::uint32_t buffer_bytes) {
        return made<datagram_receiver>(hamlyn_bind_datagram, static_cast<const char *>(nullptr), buffer_bytes);
    }
    datagram_sender connect_datagram(const std::string &to, wait limit = wait::forever()) {
        return made<datagram_sender>(hamlyn_connect_datagram, to.c_str(), limit.ns());
    }
    datagram_sender grow_datagram(const hamlyn::ticket &given, wait limit = wait::forever()) {
        return made<datagram_sender>(hamlyn_grow_datagram, &given, limit.ns());
    }
    mailbox_receiver bind_mailbox(const std::string &item, const hamlyn_mailbox_options &options = {}) {
        return made<mailbox_receiver>(hamlyn_bind_mailbox, item.c_str(), &options);
    }
    // One that is reached by its ticket.
    mailbox_receiver mailbox(const hamlyn_mailbox_options &options = {}) {
        return made<mailbox_receiver>(hamlyn_bind_mailbox, static_cast<const char *>(nullptr), &options);
    }
    mailbox_sender connect_mailbox(const std::string &to, wait limit = wait::forever()) {
        return made<mailbox_sender>(hamlyn_connect_mailbox, to.c_str(), limit.ns());
    }
    mailbox_sender grow_mailbox(const hamlyn::ticket &given, wait limit = wait::forever()) {
        return made<mailbox_sender>(hamlyn_grow_mailbox, &given, limit.ns());
    }
    stream_receiver bind_stream(const std::string &item, const hamlyn_stream_options &options = {}) {
        return made<stream_receiver>(hamlyn_bind_stream, item.c_str(), &options);
    }
    // One whose sender grows from its seed.
    stream_receiver stream(const hamlyn_stream_options &options = {}) {
        return made<stream_receiver>(hamlyn_bind_stream, static_cast<const char *>(nullptr), &options);
    }
    stream_sender grow_stream(const hamlyn::seed &given, wait limit = wait::forever()) {
        return made<stream_sender>(hamlyn_grow_stream, &given, limit.ns());
    }
    stream_sender connect_stream(const std::string &to, wait limit = wait::forever()) {
        return made<stream_sender>(hamlyn_connect_stream, to.c_str(), limit.ns());
    }
    tag_receiver bind_tagged_write(const std::string &item, std::uint64_t area_bytes, std::uint32_t tags) {
        return made<tag_receiver>(hamlyn_bind_tagged_write, item.c_str(), area_bytes, tags);
    }
    tag_sender connect_tagged_write(const std::string &to, wait limit = wait::forever()) {
        return made<tag_sender>(hamlyn_connect_tagged_write, to.c_str(), limit.ns());
    }
    tag_sender grow_tagged_write(const hamlyn::ticket &given, wait limit = wait::forever()) {
        return made<tag_sender>(hamlyn_grow_tagged_write, &given, limit.ns());
    }
    service bind_service(const std::string &item, const hamlyn_service_options &options = {}) {
        return made<service>(hamlyn_bind_service, item.c_str(), &options);
    }
    client connect_service(const std::string &to, wait limit = wait::forever()) {
        return made<client>(hamlyn_connect_service, to.c_str(), limit.ns());
    }
    group_receiver bind_group(const std::string &item, std::uint32_t place_bytes) {
        return made<group_receiver>(hamlyn_bind_group, item.c_str(), place_bytes);
    }
    // One that is reached by members.
    group_receiver group(std::uint32_t place_bytes) {
        return made<group_receiver>(hamlyn_bind_group, static_cast<const char *>(nullptr), place_bytes);
    }
    group_sender grow_group(const hamlyn::member &given, wait limit = wait::forever()) {
        return made<group_sender>(hamlyn_grow_group, &given, limit.ns());
    }
    group_sender connect_group(const std::string &to, wait limit = wait::forever()) {
        return made<group_sender>(hamlyn_connect_group, to.c_str(), limit.ns());
    }
    publisher bind_publisher(const std::string &item, const hamlyn_publisher_options &options = {}) {
        return made<publisher>(hamlyn_bind_publisher, item.c_str(), &options);
    }
    subscriber connect_subscriber(const std::string &to, wait limit = wait::forever()) {
        return made<subscriber>(hamlyn_connect_subscriber, to.c_str(), limit.ns());
    }
    std::optional<event> next_event(wait limit = wait::poll()) {
        event happened;
        char text[256];
        if (!detail::attempt_in_time(hamlyn_next_event, get(), limit.ns(), &happened.what, text, sizeof text).value()) {
            return std::nullopt;
        }
        happened.text = text;
        return happened;
    }
    void poll() {
        detail::attempt(hamlyn_poll, get()).value();
    }
    done try_fence(wait limit) { return detail::attempt(hamlyn_fence, get(), limit.ns()); }
    void fence(wait limit = wait::forever()) { try_fence(limit).value(); }
    void flush(wait limit = wait::forever()) { detail::attempt(hamlyn_flush, get(), limit.ns()).value(); }
    // Prepares to wait for the descriptor: for how long in nanoseconds at most; negative: without limit.
    std::int64_t prepare_sleep(wait limit = wait::forever()) {
        return detail::found<std::int64_t>(hamlyn_prepare_sleep, get(), limit.ns());
    }
    void end_sleep() { detail::attempt(hamlyn_end_sleep, get()).value(); }
    // Offers bytes under an item: to every peer that asks, with HAMLYN_OFFER_ONCE to the first, with HAMLYN_OFFER_AFTERWARDS to those that
    // ask when what is offered once is given away.
    void offer(const std::string &item, bytes data, std::uint32_t supply = HAMLYN_OFFER_ALWAYS) {
        detail::attempt(hamlyn_offer, get(), item.c_str(), supply, data.data(), data.size()).value();
    }
    // What the manager of that name offers under an item.
    std::string ask(const std::string &name, const std::string &item, wait limit = wait::forever()) {
        std::string answer(HAMLYN_OFFER_BYTES_MAX, '\0');
        std::size_t size = 0;
        detail::attempt(hamlyn_ask, get(), name.c_str(), item.c_str(), limit.ns(), static_cast<void *>(answer.data()),
                        answer.size(), &size)
            .value();
        answer.resize(size);
        return answer;
    }
    int descriptor() const {
        return detail::found<int>(hamlyn_descriptor, get());
    }
    // Takes in what has come until something happens or the time is over.
    void await(wait limit = wait::forever()) { detail::attempt(hamlyn_wait, get(), limit.ns()).value(); }
    void withdraw(const std::string &item) { detail::attempt(hamlyn_withdraw, get(), item.c_str()).value(); }
    // Notifications of its end points that were lost because its queue is too short.
    std::uint64_t notifications_lost() const { return detail::found<std::uint64_t>(hamlyn_notifications_lost, get()); }
    std::uint64_t new_key() { return detail::found<std::uint64_t>(hamlyn_new_key, get()); }

    // Links: to a manager by its name, and to those who connected here.
    std::uint64_t connect(const std::string &name, wait limit = wait::forever()) {
        return detail::found<std::uint64_t>(hamlyn_connect, get(), name.c_str(), limit.ns());
    }
    void disconnect(std::uint64_t link) { detail::attempt(hamlyn_disconnect, get(), link).value(); }
    // Fails if the link has ended, and says why.
    done try_check(std::uint64_t link) const { return detail::attempt(hamlyn_check_link, get(), link); }
    peer link_peer(std::uint64_t link) const { return detail::found<peer>(hamlyn_link_peer, get(), link); }
    std::string link_peer_name(std::uint64_t link) const {
        char name[256];
        detail::attempt(hamlyn_link_peer_name, get(), link, static_cast<char *>(name), sizeof name).value();
        return name;
    }
    hamlyn::link_state link_state(std::uint64_t link) const {
        hamlyn::link_state state{};
        char text[256];
        detail::attempt(hamlyn_get_link_state, get(), link, &state.what, static_cast<char *>(text), sizeof text).value();
        state.text = text;
        return state;
    }
    // The use of the memory that a peer lends for messages which it does not take.
    hamlyn_log_use log_use(std::uint64_t link) const { return detail::found<hamlyn_log_use>(hamlyn_get_log_use, get(), link); }
    // A number of the program's own that a link has, 0 before.
    void set_link_context(std::uint64_t link, std::uint64_t context) {
        detail::attempt(hamlyn_set_link_context, get(), link, context).value();
    }
    std::uint64_t link_context(std::uint64_t link) const {
        return detail::found<std::uint64_t>(hamlyn_link_context, get(), link);
    }
    // The longest message that a link takes without other memory, and the longest payload of a packet of it, in bytes.
    std::uint64_t cells_bytes_max(std::uint64_t link) const {
        return detail::found<std::uint64_t>(hamlyn_cells_bytes_max, get(), link);
    }
    std::size_t packet_bytes_max(std::uint64_t link) const {
        return detail::found<std::size_t>(hamlyn_packet_bytes_max, get(), link);
    }
    // All waits look again after so long at the latest, once.
    template <class Rep, class Period>
    void look_within(std::chrono::duration<Rep, Period> span) {
        const auto ns = wait(span).ns();
        detail::attempt(hamlyn_look_within, get(), static_cast<std::uint64_t>(ns)).value();
    }
    void fence(std::uint64_t link, wait limit) { detail::attempt(hamlyn_fence_link, get(), link, limit.ns()).value(); }
    std::vector<peer> peers() const {
        std::vector<peer> all;
        std::size_t count = 0;
        do {
            all.resize(count);
            detail::attempt(hamlyn_peers, get(), all.data(), all.size(), &count).value();
        } while (count > all.size());
        all.resize(count);
        return all;
    }
    // As others see this manager.
    peer identity() const { return detail::found<peer>(hamlyn_identity, get()); }

    // What was sent and did not arrive: the oldest that was not told of.
    std::optional<undelivered> next_undelivered() {
        undelivered next{};
        char text[256];
        if (!detail::attempt_in_time(hamlyn_next_undelivered, get(), &next.what, static_cast<char *>(text), sizeof text).value()) {
            return std::nullopt;
        }
        next.text = text;
        return next;
    }
    std::uint64_t undelivered_forgotten() const { return detail::found<std::uint64_t>(hamlyn_undelivered_forgotten, get()); }
    // Packets refused for a reason, of all that came.
    std::uint64_t refusals(std::uint32_t reason) const { return detail::found<std::uint64_t>(hamlyn_refusals, get(), reason); }
    // How many different wrong keys a peer may present before it is cut off.
    void set_bad_keys_max(std::uint32_t packets) { detail::attempt(hamlyn_set_bad_keys_max, get(), packets).value(); }

    // Regions that it shares, and regions of others that it has attached.
    std::pair<std::size_t, std::size_t> regions() const {
        std::size_t shared, attached;
        detail::attempt(hamlyn_regions, get(), &shared, &attached).value();
        return {shared, attached};
    }

    // Takes it from its thread. It must have no end points; if it has, it stays as it was, and this throws.
    detached detach() {
        auto moved = detail::found<hamlyn_detached *>(hamlyn_detach, get());
        handle::release();
        return detached(moved);
    }
    // Another handle of a shared manager, for another thread.
    manager share() const {
        return manager(detail::found<hamlyn_manager *>(hamlyn_share_manager, get()));
    }

  private:
    friend detached;
    explicit manager(hamlyn_manager *of) : handle(of) {}

    static hamlyn_manager *opened(const hamlyn::options &options) {
        const hamlyn_options all = options.get();
        return detail::found<hamlyn_manager *>(hamlyn_open_with, &all);
    }

    // Makes an end point with a function of hamlyn.h.
    template <class E, class F, class... A>
    E made(F make, A... arguments) {
        using H = std::remove_pointer_t<decltype(std::declval<E &>().get())>;
        return E(detail::found<H *>(make, get(), arguments...));
    }
};

inline manager detached::attach() {
    auto attached = detail::found<hamlyn_manager *>(hamlyn_attach, get());
    handle::release();
    return manager(attached);
}

// Why packets are refused, for people.
inline std::string refusal_text(std::uint32_t reason) {
    char text[256];
    detail::attempt(hamlyn_refusal_text, reason, static_cast<char *>(text), sizeof text).value();
    return text;
}

} // namespace hamlyn

#endif // HAMLYN_MANAGER_HPP
