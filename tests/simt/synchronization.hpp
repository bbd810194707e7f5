#pragma once

#include <simt/words.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>

/// Twins of the functions in cuda/kernels/synchronization.cuh. Every function that waits is a
/// barrier that simt::unnoticed_barriers leaves out.

namespace tapegraph::cuda::kernels {

namespace simt_detail {

inline simt::site site_of(const std::source_location& where) {
    return {where.file_name(), static_cast<int>(where.line())};
}

} // namespace simt_detail

// What a block stores for others stays with it until it increments the counter, as late as the
// memory model allows. When left out like a barrier, a load goes through a cache that keeps the
// lines that a block has once read, and incrementing no longer publishes anything.
template <class T>
T load_from_others(const T* at, const std::source_location& where = std::source_location::current()) {
    simt::block& own = *simt::executor::running()->owner;
    T value;
    if (simt::detail::skips(simt_detail::site_of(where)))
        own.read_cached(at, &value, sizeof value);
    else
        own.read(at, &value, sizeof value);
    return value;
}
template <class T>
void store_for_others(T* at, T value) {
    simt::executor::running()->owner->stored.push_back({nullptr, at, {}, sizeof value});
    std::memcpy(simt::executor::running()->owner->stored.back().value, &value, sizeof value);
}
inline void add_to_count(unsigned* count, const std::source_location& where = std::source_location::current()) {
    if (!simt::detail::skips(simt_detail::site_of(where))) simt::executor::running()->owner->publish();
    __atomic_fetch_add(count, 1u, __ATOMIC_RELEASE);
    simt::executor::active()->give_turns();
}
inline void wait_for_count(const unsigned* count, unsigned target,
                           const std::source_location& where = std::source_location::current()) {
    if (simt::detail::skips(simt_detail::site_of(where))) return;
    while (static_cast<int>(__atomic_load_n(count, __ATOMIC_ACQUIRE) - target) < 0)
        simt::executor::active()->wait(simt::waiting::turn, simt_detail::site_of(where));
}

inline unsigned cluster_rank() { return simt::cluster_rank(); }
// Sent data may arrive at once, or no sooner than everything that the receiver waits for: seeds
// alternate between the two.
using arrivals = std::uint64_t;
namespace simt_detail {
/// As in hardware, an arrivals object is 64 opaque bits.
struct arrival_state {
    std::int32_t missing;     ///< bytes that are expected and have not arrived; negative before they are expected
    std::uint16_t unexpected; ///< 1 until the phase's expect_bytes
    std::uint16_t phase;
};
inline arrival_state& state_of(arrivals* own) {
    static_assert(sizeof(arrival_state) == sizeof(arrivals));
    if (reinterpret_cast<std::uintptr_t>(own) % sizeof(arrivals) != 0)
        throw simt::error("a barrier of arrivals that is not aligned to its 8 bytes");
    return *reinterpret_cast<arrival_state*>(own);
}
inline void settle(simt::block& receiver, arrivals* at) {
    const simt::unwatched scope;
    arrival_state& state = state_of(at);
    if (state.missing != 0 || state.unexpected != 0) return;
    receiver.deliver(at);
    state.unexpected = 1;
    ++state.phase;
    simt::executor::active()->give_turns();
}
} // namespace simt_detail
inline void begin_arrivals(arrivals* own) { simt_detail::state_of(own) = {0, 1, 0}; }
inline void expect_bytes(arrivals* own, unsigned bytes) {
    simt_detail::arrival_state& state = simt_detail::state_of(own);
    if (state.unexpected != 1) throw simt::error("bytes are expected twice in one phase, or of a barrier not begun");
    state.missing += static_cast<std::int32_t>(bytes);
    state.unexpected = 0;
    simt_detail::settle(*simt::executor::running()->owner, own);
}
template <class T>
void send_to_cluster(T* own, unsigned rank, T value, arrivals* arrived) {
    simt::block& receiver = simt::executor::active()->peer(rank);
    if (receiver.ended()) throw simt::error("a block of the cluster is sent to that has ended");
    auto* const base = static_cast<unsigned char*>(simt::dynamic_shared());
    auto* const to = receiver.dynamic + (reinterpret_cast<unsigned char*>(own) - base);
    auto* const counted =
        reinterpret_cast<arrivals*>(receiver.dynamic + (reinterpret_cast<unsigned char*>(arrived) - base));
    if (simt::current_settings().seed % 2 == 0)
        receiver.keep(counted, to, &value, sizeof value);
    else
        std::memcpy(to, &value, sizeof value);
#ifdef SIMT_TSAN
    __tsan_release(counted);
#endif
    simt_detail::state_of(counted).missing -= static_cast<std::int32_t>(sizeof value);
    simt_detail::settle(receiver, counted);
}
inline void wait_for_arrivals(arrivals* own, unsigned parity,
                              const std::source_location& where = std::source_location::current()) {
    if (simt::detail::skips(simt_detail::site_of(where))) return;
    while (simt_detail::state_of(own).phase % 2 == parity)
        simt::executor::active()->wait(simt::waiting::turn, simt_detail::site_of(where));
#ifdef SIMT_TSAN
    __tsan_acquire(own);
#endif
}
inline void arrive_at_cluster() { simt::executor::active()->arrive_at_cluster(); }
inline void wait_for_cluster(const std::source_location& where = std::source_location::current()) {
    if (simt::detail::skips(simt_detail::site_of(where))) return simt::executor::active()->forget_cluster_wait();
    simt::executor::active()->wait_for_cluster(simt_detail::site_of(where));
}

} // namespace tapegraph::cuda::kernels
