#pragma once

#include <tapegraph/core/system.hpp>

#include <atomic>
#include <mutex>

namespace tapegraph::detail {

/// While one lives, Ctrl-C (SIGINT) only sets a flag; the next one ends the process as usual. The
/// last guard restores the previous handler.
class interrupt_guard {
public:
    interrupt_guard() {
        const std::lock_guard lock(mutex());
        if (count()++ > 0) return;
        pending_flag() = false;
        before() = interrupt_action::once([](int) { pending_flag().store(true, std::memory_order_relaxed); });
    }
    ~interrupt_guard() {
        const std::lock_guard lock(mutex());
        if (--count() == 0) before().restore();
    }
    interrupt_guard(const interrupt_guard&) = delete;
    interrupt_guard& operator=(const interrupt_guard&) = delete;

    static bool pending() { return pending_flag().load(std::memory_order_relaxed); }

private:
    static_assert(std::atomic<bool>::is_always_lock_free); // signal handlers may only use these
    static std::atomic<bool>& pending_flag() {
        static constinit std::atomic<bool> flag{false};
        return flag;
    }
    static std::mutex& mutex() {
        static std::mutex m;
        return m;
    }
    static int& count() {
        static int n = 0;
        return n;
    }
    static interrupt_action& before() {
        static interrupt_action action;
        return action;
    }
};

} // namespace tapegraph::detail
