#include <tapegraph/cuda/driver.cuh>
#include <tapegraph/cuda/ops/movement/library_sequence.hpp>
#include <tapegraph/cuda/ops/ordering/library_places.hpp>

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/sequence.h>
#include <thrust/system_error.h>

/// Selections, run lengths and histograms by CUB, and bisections and sequences by Thrust, compiled
/// once per program.

// The types that these kernels are instantiated with lie outside our namespace, so that
// tests/gpu.sh can distinguish their kernels from ours by name.
namespace first_places {

/// Keeps the first results, as many as the output has room for.
struct kept {
    std::int32_t* out;
    std::int64_t size;

    template <class Index, class Value>
    __host__ __device__ void operator()(Index i, Value value) const {
        if (static_cast<std::int64_t>(i) < size) out[i] = static_cast<std::int32_t>(value);
    }
};

struct nan_last {
    template <class T>
    __host__ __device__ bool operator()(T a, T b) const {
        return a < b || (b != b && a == a);
    }
};

} // namespace first_places

namespace tapegraph::cuda {
namespace {

/// CUB writes the number of results in front of its own scratch memory. Nobody reads it: the host
/// would have to wait for it.
constexpr std::size_t front = 256;

cudaError_t device_select(void* scratch, std::size_t& bytes, std::int32_t* found, const std::uint8_t* marks,
                          std::int32_t* out, std::int64_t count, std::int64_t size, cudaStream_t stream) {
    const auto to = thrust::make_tabulate_output_iterator(first_places::kept{out, size});
    return cub::DeviceSelect::Flagged(scratch, bytes, thrust::counting_iterator<std::int32_t>(1), marks, to, found,
                                      count, stream);
}
cudaError_t device_encode(void* scratch, std::size_t& bytes, std::int32_t* found, const std::int32_t* x,
                          std::int32_t* out, std::int64_t count, std::int64_t size, cudaStream_t stream) {
    const auto to = thrust::make_tabulate_output_iterator(first_places::kept{out, size});
    return cub::DeviceRunLengthEncode::Encode(scratch, bytes, x, thrust::make_discard_iterator(), to, found,
                                              static_cast<std::int32_t>(count), stream);
}
cudaError_t device_count(void* scratch, std::size_t& bytes, const std::int32_t* x, std::int32_t* out,
                         std::int64_t count, std::int64_t length, cudaStream_t stream) {
    const auto parts = static_cast<std::int32_t>(length);
    return cub::DeviceHistogram::HistogramEven(scratch, bytes, x, out, parts + 1, std::int32_t{0}, parts,
                                               static_cast<std::int32_t>(count), stream);
}

/// The scratch memory that CUB requires; 0 means that it has no kernels for the device.
std::size_t scratch_bytes(cudaError_t error, std::size_t bytes) {
    if (error == cudaSuccess) return front + bytes;
    cudaGetLastError();
    return 0;
}

std::size_t selection_bytes(std::int64_t count) {
    std::size_t bytes = 0;
    const cudaError_t error = device_select(nullptr, bytes, nullptr, nullptr, nullptr, count, 0, nullptr);
    return scratch_bytes(error, bytes);
}
void select(const char* operation, void* stream, const std::uint8_t* marks, std::int32_t* out, std::int64_t count,
            std::int64_t size, void* scratch, std::size_t bytes) {
    bytes -= front;
    driver::check(device_select(static_cast<std::byte*>(scratch) + front, bytes, static_cast<std::int32_t*>(scratch),
                                marks, out, count, size, static_cast<cudaStream_t>(stream)),
                  "cub::DeviceSelect::Flagged", operation);
}

std::size_t run_bytes(std::int64_t count) {
    std::size_t bytes = 0;
    const cudaError_t error = device_encode(nullptr, bytes, nullptr, nullptr, nullptr, count, 0, nullptr);
    return scratch_bytes(error, bytes);
}
void encode(const char* operation, void* stream, const std::int32_t* x, std::int32_t* out, std::int64_t count,
            std::int64_t size, void* scratch, std::size_t bytes) {
    bytes -= front;
    driver::check(device_encode(static_cast<std::byte*>(scratch) + front, bytes, static_cast<std::int32_t*>(scratch), x,
                                out, count, size, static_cast<cudaStream_t>(stream)),
                  "cub::DeviceRunLengthEncode", operation);
}

std::size_t histogram_bytes(std::int64_t count, std::int64_t length) {
    std::size_t bytes = 0;
    const cudaError_t error = device_count(nullptr, bytes, nullptr, nullptr, count, length, nullptr);
    return scratch_bytes(error, bytes);
}
void count_places(const char* operation, void* stream, const std::int32_t* x, std::int32_t* out, std::int64_t count,
                  std::int64_t length, void* scratch, std::size_t bytes) {
    bytes -= front;
    driver::check(device_count(static_cast<std::byte*>(scratch) + front, bytes, x, out, count, length,
                               static_cast<cudaStream_t>(stream)),
                  "cub::DeviceHistogram::HistogramEven", operation);
}

bool usable() {
    int version = 0;
    if (cub::PtxVersion(version) == cudaSuccess) return true;
    cudaGetLastError();
    return false;
}
/// Rethrows Thrust's exceptions as the library's.
template <class F>
void checked(const char* algorithm, const char* operation, void* stream, const F& f) {
    try {
        f(thrust::cuda::par_nosync.on(static_cast<cudaStream_t>(stream)));
    } catch (const thrust::system_error& e) {
        driver::check(static_cast<cudaError_t>(e.code().value()), algorithm, operation);
    }
}
template <class T>
void search(const char* operation, void* stream, bool right, const T* sorted, std::int64_t n, const T* values,
            std::int64_t m, std::int32_t* out) {
    const first_places::nan_last before;
    checked(right ? "thrust::upper_bound" : "thrust::lower_bound", operation, stream, [&](const auto& in_order) {
        if (right)
            thrust::upper_bound(in_order, sorted, sorted + n, values, values + m, out, before);
        else
            thrust::lower_bound(in_order, sorted, sorted + n, values, values + m, out, before);
    });
}
template <class Word>
void sequence(const char* operation, void* stream, Word* out, std::int64_t count, Word begin, Word step) {
    checked("thrust::sequence", operation, stream,
            [&](const auto& in_order) { thrust::sequence(in_order, out, out + count, begin, step); });
}

template <class... T>
void give_searches() {
    ((search_of_library<T> = {&usable, &search<T>}), ...);
}
template <class... Word>
void give_sequences() {
    ((sequence_of_library<Word> = {&usable, &sequence<Word>}), ...);
}
[[maybe_unused]] const bool places_are_known = [] {
    selection_of_library = {&selection_bytes, &select};
    runs_of_library = {&run_bytes, &encode};
    histogram_of_library = {&histogram_bytes, &count_places};
    give_searches<float, double, std::int32_t, std::int64_t>();
    give_sequences<std::uint32_t, std::uint64_t>();
    return true;
}();

} // namespace
} // namespace tapegraph::cuda
