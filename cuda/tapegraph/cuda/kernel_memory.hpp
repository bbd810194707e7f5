#pragma once

#include <tapegraph/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

/// Caches what the driver has answered about kernels on each device. The answers never change, so
/// nothing is asked twice.

namespace tapegraph::cuda::detail {

/// How many blocks or clusters of a kernel a device holds at once, keyed by everything that this
/// depends on. Thread-safe.
class residency_answers {
public:
    struct question {
        int device = 0;
        const void* kernel = nullptr;
        std::size_t shared = 0; ///< bytes of dynamic shared memory
        unsigned threads = 0;   ///< of a block
        unsigned cluster = 0;   ///< blocks of a cluster; 0: the question is about single blocks
    };

    /// The answer of `ask()`, which is called the first time only; if it throws, nothing is
    /// remembered.
    template <class Ask>
    int operator()(const question& q, const Ask& ask) {
        const key k(q.device, reinterpret_cast<std::uintptr_t>(q.kernel), q.shared, q.threads, q.cluster);
        const std::lock_guard lock(guard_);
        if (const auto known = answers_.find(k); known != answers_.end()) return known->second;
        const int answer = ask();
        answers_.emplace(k, answer);
        return answer;
    }

private:
    using key = std::tuple<int, std::uintptr_t, std::size_t, unsigned, unsigned>;
    std::mutex guard_;
    std::map<key, int> answers_;
};

/// The attributes that kernels have been granted beyond the defaults: more shared memory, and
/// clusters of more than 8 blocks. Setting a smaller amount would revoke a larger one, so amounts
/// only grow. Thread-safe.
class kernel_allowances {
public:
    /// Calls `allow_shared(bytes)` and `allow_wide()` where a kernel needs more than it has been
    /// granted so far.
    template <class Shared, class Wide>
    void operator()(int device, const void* kernel, std::size_t bytes, bool wide, const Shared& allow_shared,
                    const Wide& allow_wide) {
        const std::lock_guard lock(guard_);
        allowance& so_far = allowed_[{device, reinterpret_cast<std::uintptr_t>(kernel)}];
        if (bytes > so_far.bytes) {
            allow_shared(bytes);
            so_far.bytes = bytes;
        }
        if (wide && !so_far.wide) {
            allow_wide();
            so_far.wide = true;
        }
    }

private:
    struct allowance {
        std::size_t bytes = 0;
        bool wide = false;
    };
    std::mutex guard_;
    std::map<std::pair<int, std::uintptr_t>, allowance> allowed_;
};

/// Whether a device grants what `ask` requests. A refusal is not an error: the plan is meant for
/// other devices.
template <class Ask>
bool is_granted(const Ask& ask) {
    try {
        ask();
        return true;
    } catch (const device_error&) {
        return false;
    }
}

/// The answers of this process; never destroyed, since kernels may be launched while static objects
/// are destroyed.
inline residency_answers& known_residency() {
    static auto& all = *new residency_answers;
    return all;
}
/// Cached answers to whether kernels wait for what was launched before them.
inline residency_answers& known_waits() {
    static auto& all = *new residency_answers;
    return all;
}
inline kernel_allowances& known_allowances() {
    static auto& all = *new kernel_allowances;
    return all;
}

} // namespace tapegraph::cuda::detail
