#pragma once

#include <simt/words.hpp>

#include <cstddef>
#include <source_location>

/// Twins of the functions in cuda/kernels/synchronization.cuh. Every place that waits is a barrier that
/// simt::unnoticed_barriers leaves out.

namespace tapegraph::cuda::kernels {

namespace simt_detail {

inline simt::site site_of(const std::source_location& where) {
    return {where.file_name(), static_cast<int>(where.line())};
}

} // namespace simt_detail

template <class T>
T load_from_others(const T* at) {
    return *at;
}
inline void add_to_count(unsigned* count) {
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
template <class T>
void store_to_cluster(T* own, unsigned rank, T value) {
    const auto offset = reinterpret_cast<unsigned char*>(own) - static_cast<unsigned char*>(simt::dynamic_shared());
    *reinterpret_cast<T*>(static_cast<unsigned char*>(simt::cluster_shared(rank)) + offset) = value;
}
inline void arrive_at_cluster() { simt::executor::active()->arrive_at_cluster(); }
inline void wait_for_cluster(const std::source_location& where = std::source_location::current()) {
    if (simt::detail::skips(simt_detail::site_of(where))) return simt::executor::active()->forget_cluster_wait();
    simt::executor::active()->wait_for_cluster(simt_detail::site_of(where));
}

} // namespace tapegraph::cuda::kernels
