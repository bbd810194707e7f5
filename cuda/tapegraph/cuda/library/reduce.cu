#include <tapegraph/cuda/driver.cuh>
#include <tapegraph/cuda/library_reduction.hpp>

#include <cub/device/device_reduce.cuh>
#include <cuda/std/functional>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

#include <type_traits>

/// Reductions of whole tensors by CUB, compiled once per program.

// The types that CUB's kernels are instantiated with lie outside our namespace, so that
// tests/gpu.sh can distinguish its kernels from ours by name.
namespace positions_of_extremes {

template <class T>
struct candidate {
    T value;
    std::int32_t at; ///< -1: none
};

template <class T>
struct candidate_at {
    const T* x;

    __host__ __device__ candidate<T> operator()(std::int32_t i) const { return {x[i], i}; }
};

/// The rule of kernels::wins (cuda/kernels/arg_reduce.cuh). No two candidates compare equal, so the
/// same one wins in every order.
template <bool Maximum, class T>
struct better {
    __host__ __device__ candidate<T> operator()(const candidate<T>& a, const candidate<T>& b) const {
        if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
        return wins(a, b) ? a : b;
    }
    static __host__ __device__ bool wins(const candidate<T>& a, const candidate<T>& b) {
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan != b_nan) return a_nan;
        if (a_nan || a.value == b.value) return a.at < b.at;
        return Maximum ? a.value > b.value : a.value < b.value;
    }
};

template <class T>
struct place_of {
    __host__ __device__ std::int32_t operator()(const candidate<T>& c) const { return c.at; }
};

} // namespace positions_of_extremes

namespace tapegraph::cuda {
namespace {

/// Whether sums and products are taken of these integers: of signed ones they are taken as unsigned ones
/// (runtime::reduced_element).
template <class T>
constexpr bool adds = std::is_unsigned_v<T>;

// Operators with an explicit type: CUB accumulates in the operator's type, so nothing becomes wider
// than the elements.
template <class T>
cudaError_t device_reduce(void* scratch, std::size_t& bytes, reduction kind, const T* x, T* out, std::int64_t count,
                          cudaStream_t stream) {
    const auto n = static_cast<std::int32_t>(count);
    const auto folded = [&](auto fold, T start) {
        return cub::DeviceReduce::Reduce(scratch, bytes, x, out, n, fold, start, stream);
    };
    using tapegraph::detail::identity;
    if constexpr (adds<T>) {
        if (kind == reduction::sum) return folded(::cuda::std::plus<T>{}, identity<reduction::sum, T>);
        if (kind == reduction::product) return folded(::cuda::std::multiplies<T>{}, identity<reduction::product, T>);
    }
    if (kind == reduction::maximum) return folded(::cuda::maximum<T>{}, identity<reduction::maximum, T>);
    return folded(::cuda::minimum<T>{}, identity<reduction::minimum, T>);
}

template <class T>
cudaError_t device_find(void* scratch, std::size_t& bytes, bool maximum, const T* x, std::int32_t* out,
                        std::int64_t count, cudaStream_t stream) {
    namespace p = positions_of_extremes;
    const auto from =
        thrust::make_transform_iterator(thrust::counting_iterator<std::int32_t>(0), p::candidate_at<T>{x});
    const auto to = thrust::make_transform_output_iterator(out, p::place_of<T>{});
    const auto found = [&](auto best) {
        return cub::DeviceReduce::Reduce(scratch, bytes, from, to, static_cast<std::int32_t>(count), best,
                                         p::candidate<T>{T{}, -1}, stream);
    };
    return maximum ? found(p::better<true, T>{}) : found(p::better<false, T>{});
}

/// The scratch memory that CUB requires, at least one byte, because 0 means that it has no kernels
/// for the device.
std::size_t scratch_bytes(cudaError_t error, std::size_t bytes) {
    if (error == cudaSuccess) return bytes > 0 ? bytes : 1;
    cudaGetLastError();
    return 0;
}

template <class T>
std::size_t reduction_bytes(reduction kind, std::int64_t count) {
    if (!adds<T> && (kind == reduction::sum || kind == reduction::product)) return 0;
    std::size_t bytes = 0;
    const cudaError_t error = device_reduce<T>(nullptr, bytes, kind, nullptr, nullptr, count, nullptr);
    return scratch_bytes(error, bytes);
}
template <class T>
void reduce(const char* operation, void* stream, reduction kind, const T* x, T* out, std::int64_t count, void* scratch,
            std::size_t bytes) {
    driver::check(device_reduce<T>(scratch, bytes, kind, x, out, count, static_cast<cudaStream_t>(stream)),
                  "cub::DeviceReduce", operation);
}

template <class T>
std::size_t search_bytes(bool maximum, std::int64_t count) {
    std::size_t bytes = 0;
    const cudaError_t error = device_find<T>(nullptr, bytes, maximum, nullptr, nullptr, count, nullptr);
    return scratch_bytes(error, bytes);
}
template <class T>
void find(const char* operation, void* stream, bool maximum, const T* x, std::int32_t* out, std::int64_t count,
          void* scratch, std::size_t bytes) {
    driver::check(device_find<T>(scratch, bytes, maximum, x, out, count, static_cast<cudaStream_t>(stream)),
                  "cub::DeviceReduce", operation);
}

template <class... T>
void give_reductions() {
    ((reduction_of_library<T> = {&reduction_bytes<T>, &reduce<T>}), ...);
}
template <class... T>
void give_searches() {
    ((arg_reduction_of_library<T> = {&search_bytes<T>, &find<T>}), ...);
}
[[maybe_unused]] const bool reductions_are_known = [] {
    give_reductions<std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>();
    give_searches<float, double, std::uint8_t, std::int32_t, std::int64_t>();
    return true;
}();

} // namespace
} // namespace tapegraph::cuda
