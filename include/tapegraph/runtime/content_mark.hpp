#pragma once

#include <tapegraph/core/config.hpp>

#include <atomic>
#include <cstdint>

namespace tapegraph::runtime {

/// A buffer's mark tells whether its elements have changed. Whoever writes them calls `change`.
/// `number` gives the same number as before only if nobody has. No two contents of a process share
/// a number, so a buffer that takes another's place in memory is not mistaken for it.
class content_mark {
public:
    /// The elements are about to be written, by someone who is done before they are read again.
    void change() {
        if (number_.load(std::memory_order_relaxed) != anybody) number_.store(0, std::memory_order_relaxed);
    }
    /// From now on, anybody may write at any time: a pointer has left the library.
    void escape() { number_.store(anybody, std::memory_order_relaxed); }
    /// The buffer is used for other elements, and no pointer into it is valid any more.
    void renew() { number_.store(0, std::memory_order_relaxed); }

    /// A number for the present elements; 0 where nobody can tell whether they change. Several
    /// threads may ask at once.
    std::uint64_t number() {
        std::uint64_t n = number_.load(std::memory_order_relaxed);
        if (n == anybody) return 0;
        if (n != 0) return n;
        static std::atomic<std::uint64_t> last{0};
        const std::uint64_t mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
        return number_.compare_exchange_strong(n, mine, std::memory_order_relaxed) ? mine : n == anybody ? 0 : n;
    }

    /// Tests set it: everything is kept at once, and whoever uses what was kept compares a hash of the
    /// elements (runtime/kept_memory.hpp). std::logic_error where a writer has not called `change`.
    static inline std::atomic<bool> checked{false};

private:
    static constexpr std::uint64_t anybody = ~std::uint64_t{0};

    std::atomic<std::uint64_t> number_{0}; // 0: not asked for since the last change
};

} // namespace tapegraph::runtime
