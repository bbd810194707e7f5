#pragma once

#include <tapegraph/core/call.hpp>

#include <atomic>
#include <source_location>
#include <string_view>

/// Observer of a thread's kernel calls, used by the profiler. Without one, a call costs one flag
/// test.

namespace tapegraph::runtime {

/// The name, cost and source line of an eager operation. With an empty name, the caller reports the
/// call itself.
struct call_label {
    constexpr call_label(std::string_view name = {}, cost_function flops_of = nullptr, cost_function bytes_of = nullptr,
                         const std::source_location& line = {},
                         std::string_view (*method_of)(const kernel_call&) = nullptr)
        : operation(name), flops(flops_of), bytes(bytes_of), where(line), method(method_of) {}

    std::string_view operation;
    cost_function flops, bytes; ///< null: unknown, and operands plus results
    std::source_location where;
    std::string_view (*method)(const kernel_call&); ///< null: there is only one
};

/// The subject of a call: an operation, a formula's value, its leaves' adjoints, their sums over
/// axes, a call of a program, or waiting for other ranks.
enum class call_part : unsigned char { operation, value, adjoints, summed_adjoints, program, exchange };

/// One kernel call, as reported to an observer.
struct observed_call {
    call_part part;
    const kernel_call* call;
    /// The detail::formula_view or ir::program; null for operations.
    const void* source = nullptr;
    /// Of a program's call or an exchange; the number after the last call means the copies that
    /// apply updates
    int number = 0;
    call_label label{}; ///< its name is empty for formulas and programs
};

/// Notified before and after each call. A call that throws ends without `end`.
class call_observer {
public:
    virtual void begin(const observed_call& c) = 0;
    virtual void end() = 0;

protected:
    ~call_observer() = default;
};

namespace detail {
inline std::atomic<int> observers{0}; // in all threads
inline call_observer*& observer_of_thread() {
    static thread_local call_observer* current = nullptr;
    return current;
}
} // namespace detail

/// The observer of this thread, or null.
inline call_observer* observer() {
    return detail::observers.load(std::memory_order_relaxed) == 0 ? nullptr : detail::observer_of_thread();
}

/// While it lives, `o` observes the calls of this thread, in place of any previous observer.
class observer_scope {
public:
    explicit observer_scope(call_observer& o) : before_(detail::observer_of_thread()) {
        detail::observers.fetch_add(1, std::memory_order_relaxed);
        detail::observer_of_thread() = &o;
    }
    observer_scope(const observer_scope&) = delete;
    observer_scope& operator=(const observer_scope&) = delete;
    ~observer_scope() {
        detail::observer_of_thread() = before_;
        detail::observers.fetch_sub(1, std::memory_order_relaxed);
    }

private:
    call_observer* before_;
};

/// Calls run() and reports it to the observer, if there is one, as the observed_call that
/// `describe` returns.
template <class Describe, class Run>
void observed(const Describe& describe, const Run& run) {
    call_observer* const who = observer();
    if (who == nullptr) return run();
    who->begin(describe());
    run();
    who->end();
}

} // namespace tapegraph::runtime
