#pragma once

/// For tests that run on a GPU when nvcc compiles them, and on the SIMT executor when a plain C++
/// compiler does. Include it first.

#undef TG_CUDA // kernels are called directly here, and runtime::kernel_for is the CPU's
#ifdef __CUDACC__
#include <tapegraph/cuda/driver.cuh>
#else
#define TG_SIMT
#include <simt/driver.hpp>
#include <simt/instructions.hpp>
#include <simt/mutation.hpp>
#endif
#include <tapegraph/core/call.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

namespace on_device {

/// Elements in the device's memory, each array in an allocation of its own, so that memory checkers see its ends.
template <class T>
class device_array {
public:
    /// Poisoned: every byte is 0xFF, which is NaN in all floating-point types.
    explicit device_array(std::int64_t count) : count_(count) {
        if (bytes() == 0) return;
#ifdef TG_SIMT
        at_.reset(static_cast<T*>(::operator new (bytes(), std::align_val_t{256})));
        std::memset(static_cast<void*>(at_.get()), 0xFF, bytes());
#else
        at_.reset(static_cast<T*>(tapegraph::cuda::driver::allocate_plain(bytes())));
        tapegraph::cuda::driver::fill(at_.get(), 0xFF, bytes(), nullptr);
        tapegraph::cuda::driver::wait(nullptr);
#endif
    }
    device_array(const T* values, std::int64_t count) : device_array(count) { assign(values); }
    device_array(const std::vector<T>& values)
        : device_array(values.data(), static_cast<std::int64_t>(values.size())) {}

    T* data() const { return at_.get(); }
    std::int64_t size() const { return count_; }
    void assign(const T* values) { copy(at_.get(), values); }
    /// Waits for the device.
    std::vector<T> host() const {
        std::vector<T> values(static_cast<std::size_t>(count_));
        copy(values.data(), at_.get());
        return values;
    }

private:
    struct release {
        void operator()(T* at) const {
#ifdef TG_SIMT
            ::operator delete (at, std::align_val_t{256});
#else
            tapegraph::cuda::driver::release_plain(at);
#endif
        }
    };
    std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }
    void copy(T* to, const T* from) const {
        if (bytes() == 0) return;
#ifdef TG_SIMT
        std::memcpy(static_cast<void*>(to), from, bytes());
#else
        tapegraph::cuda::driver::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        tapegraph::cuda::driver::check(cudaMemcpy(to, from, bytes(), cudaMemcpyDefault), "cudaMemcpy");
#endif
    }

    std::int64_t count_;
    std::unique_ptr<T, release> at_;
};

/// A tensor in the form that kernels expect.
template <class T>
tapegraph::buffer_view view(const T* data, const std::vector<std::int64_t>& extents) {
    tapegraph::buffer_view v;
    v.data = const_cast<T*>(data);
    v.type = tapegraph::dtype_of<T>;
    v.rank = static_cast<int>(extents.size());
    for (std::size_t i = 0; i < extents.size(); ++i) v.extents[i] = extents[i];
    return v;
}

/// Launches a kernel that a test chooses; on the executor it has run when this returns.
template <class... P, class... A>
void launch(const tapegraph::cuda::driver::launch_shape& shape, void (*kernel)(P...), A&&... arguments) {
    tapegraph::cuda::driver::launch(nullptr, "test", shape, kernel, std::forward<A>(arguments)...);
}

#ifdef TG_SIMT
/// Whether in_orders takes its orders in turn, as in the quick suite: TAPEGRAPH_ORDERS=in_turn.
inline bool orders_in_turn() {
    const char* const wish = std::getenv("TAPEGRAPH_ORDERS");
    return wish != nullptr && std::string_view(wish) == "in_turn";
}
#endif

/// Calls f under both orders of threads, or under one of them if they are taken in turn; each place that
/// calls it begins with both. A GPU has its own order.
template <class F>
void in_orders(const F& f) {
#ifdef TG_SIMT
    static int calls = 0; // each lambda is a type, and so has a number of its own
    const int call = calls++;
    for (const simt::order o : {simt::order::forward, simt::order::greedy}) {
        if (call > 0 && (call % 2 == 0) != (o == simt::order::forward) && orders_in_turn()) continue;
        const simt::with_settings set(o);
        f();
    }
#else
    f();
#endif
}

/// Integers from -most to most: their sums and products are exact, so that results can be compared
/// for equality.
template <class T>
std::vector<T> whole_numbers(std::int64_t count, unsigned seed, int most = 3) {
    std::vector<T> v(static_cast<std::size_t>(count));
    for (T& x : v) {
        seed = seed * 1664525u + 1013904223u;
        x = static_cast<T>(static_cast<int>(seed >> 16) % (2 * most + 1) - most);
    }
    return v;
}

} // namespace on_device
