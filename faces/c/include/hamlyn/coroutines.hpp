// Coroutines of hamlyn.hpp (C++20): tasks that wait for messages with co_await, on an event loop of epoll.
//
//     hamlyn::task<void> answer(hamlyn::event_loop &loop, hamlyn::service &sums) {
//         for (;;) { auto call = co_await loop.recv(sums); call.reply(add(call)); }
//     }
//
// A loop, its tasks and the managers that it drives stay in one thread. What a task awaits must live until it has come. A failure is
// thrown where it was awaited; one that no task catches ends event_loop::run, which throws it.

#ifndef HAMLYN_COROUTINES_HPP
#define HAMLYN_COROUTINES_HPP

#include "manager.hpp"

#include <algorithm>
#include <cerrno>
#include <coroutine>
#include <exception>
#include <list>
#include <memory>
#include <sys/epoll.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace hamlyn {

// A coroutine that begins when it is awaited or given to a loop.
template <class T>
class task;

namespace detail {

struct task_promise_base {
    std::coroutine_handle<> continuation = std::noop_coroutine();
    std::exception_ptr failure;

    struct final_awaiter {
        bool await_ready() const noexcept { return false; }
        template <class P>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<P> ended) const noexcept {
            return ended.promise().continuation;
        }
        void await_resume() const noexcept {}
    };
    std::suspend_always initial_suspend() const noexcept { return {}; }
    final_awaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() { failure = std::current_exception(); }
};

template <class T>
struct task_promise : task_promise_base {
    std::optional<T> value;

    task<T> get_return_object();
    template <class U>
    void return_value(U &&given) {
        value.emplace(std::forward<U>(given));
    }
    T take() { return std::move(*value); }
};

template <>
struct task_promise<void> : task_promise_base {
    task<void> get_return_object();
    void return_void() const noexcept {}
    void take() const noexcept {}
};

} // namespace detail

template <class T>
class [[nodiscard]] task {
  public:
    using promise_type = detail::task_promise<T>;

    explicit task(std::coroutine_handle<promise_type> of) : coroutine_(of) {}
    task(task &&other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    task &operator=(task &&) = delete;
    ~task() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
        coroutine_.promise().continuation = awaiting;
        return coroutine_;
    }
    T await_resume() {
        if (coroutine_.promise().failure) {
            std::rethrow_exception(coroutine_.promise().failure);
        }
        return coroutine_.promise().take();
    }
    // For the loop.
    std::coroutine_handle<promise_type> coroutine() const noexcept { return coroutine_; }

  private:
    std::coroutine_handle<promise_type> coroutine_;
};

template <class T>
task<T> detail::task_promise<T>::get_return_object() {
    return task<T>(std::coroutine_handle<task_promise<T>>::from_promise(*this));
}
inline task<void> detail::task_promise<void>::get_return_object() {
    return task<void>(std::coroutine_handle<task_promise<void>>::from_promise(*this));
}

class event_loop {
    // A coroutine that waits until something can be done.
    struct waiting {
        std::coroutine_handle<> coroutine;

        virtual ~waiting() = default;
        // Whether it is done, or has failed.
        virtual bool attempt() = 0;
    };

  public:
    event_loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
        if (epoll_ < 0) {
            throw std::system_error(errno, std::generic_category(), "epoll_create1");
        }
    }
    explicit event_loop(manager &drives) : event_loop() { add(drives); }
    event_loop(event_loop &&) = delete;
    ~event_loop() { ::close(epoll_); }

    // Drives that manager, too, which must live as long as the loop runs.
    void add(manager &drives) {
        managers_.push_back(&drives);
        watch(drives.descriptor(), EPOLLIN, nullptr);
    }
    // Begins a task when the loop runs; a task may begin others.
    void spawn(task<void> task) { fresh_.push_back(std::move(task)); }

    // Awaits the result of an attempt, which is made again whenever something may have happened: it returns a
    // result<std::optional<T>>, with nothing in it as long as it cannot be made.
    template <class F>
    auto until(F attempt) {
        return awaiter<F>(*this, std::move(attempt));
    }
    // The next message of an end point that receives.
    template <class E>
    auto recv(E &end) {
        return until([&end] { return end.try_recv(wait::poll()); });
    }
    // The reply to a call that was started.
    auto take(client &of, const pending_call &pending) {
        return until([&of, &pending] { return of.try_take(pending, wait::poll()); });
    }
    // Sends, as soon as there is room. The bytes must live as long.
    template <class E>
    auto send(E &end, bytes data) {
        return until([&end, data]() -> result<std::optional<std::monostate>> {
            auto sent = end.try_send(data, wait::poll());
            if (sent.code() == HAMLYN_TIMED_OUT) {
                return std::optional<std::monostate>();
            }
            return std::move(sent).map([](std::monostate nothing) { return std::optional<std::monostate>(nothing); });
        });
    }
    // Until a descriptor of the program's can be read.
    auto readable(int descriptor) { return descriptor_awaiter{*this, descriptor, {}}; }

    // Runs until all tasks have ended, or one has failed.
    void run() {
        for (;;) {
            while (!fresh_.empty()) {
                tasks_.splice(tasks_.end(), fresh_, fresh_.begin());
                tasks_.back().coroutine().resume();
            }
            reap();
            if (tasks_.empty()) {
                return;
            }
            if (!advance()) {
                sleep();
            }
        }
    }

  private:
    template <class F>
    struct awaiter : waiting {
        using answer = decltype(std::declval<F &>()());
        event_loop &loop;
        F make;
        std::optional<answer> made;

        awaiter(event_loop &of, F attempt) : loop(of), make(std::move(attempt)) {}
        bool attempt() override {
            auto found = make();
            if (found && !*found) {
                return false;
            }
            made.emplace(std::move(found));
            return true;
        }
        bool await_ready() { return attempt(); }
        void await_suspend(std::coroutine_handle<> suspended) {
            coroutine = suspended;
            loop.waiting_.push_back(this);
        }
        auto await_resume() { return *std::move(*made).value(); }
    };

    struct descriptor_awaiter {
        event_loop &loop;
        int descriptor;
        std::coroutine_handle<> coroutine;

        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> suspended) {
            coroutine = suspended;
            loop.watch(descriptor, EPOLLIN | EPOLLONESHOT, this);
        }
        void await_resume() { epoll_ctl(loop.epoll_, EPOLL_CTL_DEL, descriptor, nullptr); }
    };

    void watch(int descriptor, std::uint32_t events, descriptor_awaiter *sleeper) {
        epoll_event event{};
        event.events = events;
        event.data.ptr = sleeper;
        if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
            throw std::system_error(errno, std::generic_category(), "epoll_ctl");
        }
    }

    // Forgets tasks that have ended; throws what one has thrown.
    void reap() {
        for (auto task = tasks_.begin(); task != tasks_.end();) {
            if (!task->coroutine().done()) {
                ++task;
                continue;
            }
            auto failure = task->coroutine().promise().failure;
            task = tasks_.erase(task);
            if (failure) {
                std::rethrow_exception(failure);
            }
        }
    }

    // Goes on with those that need not wait any more; whether there were any.
    bool advance() {
        bool is_any = false;
        // What begins to wait meanwhile has looked just now.
        auto before = std::exchange(waiting_, {});
        for (auto *waits : before) {
            if (waits->attempt()) {
                is_any = true;
                waits->coroutine.resume();
            } else {
                waiting_.push_back(waits);
            }
        }
        return is_any;
    }

    void sleep() {
        // Each must end what it began, whatever happens.
        struct sleeping {
            std::vector<manager *> &managers;
            ~sleeping() {
                for (auto *manager : managers) {
                    hamlyn_end_sleep(manager->get(), nullptr);
                }
            }
        };
        std::int64_t timeout_ns = -1;
        epoll_event events[16];
        int count, failure;
        {
            sleeping until_here{managers_};
            for (auto *manager : managers_) {
                const std::int64_t own_ns = manager->prepare_sleep();
                // A sleep that was not begun says 0, and so the loop looks again at once.
                if (own_ns >= 0 && (timeout_ns < 0 || own_ns < timeout_ns)) {
                    timeout_ns = own_ns;
                }
            }
            // A day at most, which an int holds.
            const std::int64_t rounded_ms = std::min<std::int64_t>((timeout_ns + 999999) / 1000000, 86400000);
            const int timeout_ms = timeout_ns < 0 ? -1 : static_cast<int>(rounded_ms);
            count = epoll_wait(epoll_, events, 16, timeout_ms);
            failure = errno;
        }
        if (count < 0 && failure != EINTR) {
            throw std::system_error(failure, std::generic_category(), "epoll_wait");
        }
        for (int at = 0; at < count; at++) {
            if (auto *sleeper = static_cast<descriptor_awaiter *>(events[at].data.ptr)) {
                sleeper->coroutine.resume();
            }
        }
    }

    int epoll_;
    std::vector<manager *> managers_;
    std::list<task<void>> tasks_, fresh_;
    std::vector<waiting *> waiting_;
};

} // namespace hamlyn

#endif // HAMLYN_COROUTINES_HPP
